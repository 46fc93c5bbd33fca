// SPDX-License-Identifier: GPL-2.0-only
/* Rules of lossy reductions, compared with plain arrays */
#include <errno.h>
#include <math.h>
#include <reduce.h>
#include <repair.h>
#include <rule.h>
#include <time.h>

#include <linux/minmax.h>

#include "test.h"

#define COUNT	120
#define HEAD	16
#define RANGES	12

/* A random loss map of a message: nothing, everything, or some ranges */
static u32 draw_ranges(struct prng *rng, u32 bytes, struct dblp_range *range)
{
	u32 n = 0, at = 0, max = prng_below(rng, RANGES + 1);

	if (!prng_below(rng, 8)) {
		range[0] = (struct dblp_range) { 0, HEAD + bytes };
		return 1;
	}
	while (n < max && at < HEAD + bytes) {
		range[n].offset = at + prng_below(rng, 40);
		range[n].length = 1 + prng_below(rng, 40);
		at = range[n].offset + range[n].length;
		n++;
	}
	return n;
}

static void mark(const struct dblp_loss *loss, bool *lost)
{
	u32 i, r;

	for (i = 0; i < loss->count; i++) {
		u32 first = loss->head + i * loss->esize;
		u32 end = first + loss->esize;

		lost[i] = false;
		for (r = 0; r < loss->n; r++)
			lost[i] |= loss->range[r].offset < end &&
				   loss->range[r].offset +
				   loss->range[r].length > first;
	}
}

TEST(loss_of_elements)
{
	struct dblp_range range[RANGES + 1];
	struct prng rng = { 1 };
	bool lost[COUNT], found[COUNT];
	u32 i, k;

	for (k = 0; k < 3000; k++) {
		struct dblp_loss loss = {
			.range = range,
			.head = prng_below(&rng, HEAD + 1),
			.esize = prng_below(&rng, 2) ? 4 : 2,
			.count = prng_below(&rng, COUNT + 1),
		};
		struct dblp_loss_at at = { 0 };
		struct dblp_span span;
		u64 before = 0;

		loss.n = draw_ranges(&rng, loss.count * loss.esize, range);
		mark(&loss, lost);
		memset(found, 0, sizeof(found));
		while (dblp_loss_next(&loss, &at, &span)) {
			ASSERT_TRUE(span.first >= before &&
				    span.first < span.end &&
				    span.end <= loss.count);
			before = span.end;
			memset(found + span.first, 1, span.end - span.first);
		}
		for (i = 0; i < loss.count; i++)
			ASSERT_EQ(found[i], lost[i]);
	}
}

/* Exactly the lost elements stay in the residual, and are added to the next vector */
TEST(residual)
{
	struct dblp_range range[RANGES + 1];
	struct prng rng = { 2 };
	s32 to[COUNT], from[COUNT], residual[COUNT];
	bool lost[COUNT];
	u32 i, k, n;

	for (k = 0; k < 2000; k++) {
		struct dblp_loss loss = {
			.range = range,
			.head = HEAD,
			.esize = 4,
			.count = prng_below(&rng, COUNT + 1),
		};

		loss.n = draw_ranges(&rng, loss.count * 4, range);
		mark(&loss, lost);
		for (i = 0, n = 0; i < loss.count; i++) {
			to[i] = i;
			from[i] = 1000 + i;
			residual[i] = 7;
			n += lost[i];
		}
		dblp_feedback_send(DBLP_INT32, residual, from, loss.count);
		ASSERT_EQ(dblp_feedback_report(DBLP_INT32, residual, &loss), n);
		for (i = 0; i < loss.count; i++)
			ASSERT_EQ(residual[i], lost[i] ? from[i] : 0);
		dblp_feedback_apply(DBLP_INT32, to, residual, loss.count);
		for (i = 0; i < loss.count; i++) {
			ASSERT_EQ(to[i], (s32)(lost[i] ? 1000 + 2 * i : i));
			ASSERT_EQ(residual[i], 0);
		}
	}
}

/* An infinite residual would make all later rounds infinite */
TEST(infinities_are_never_kept)
{
	static const u32 dtypes[] = { DBLP_FLOAT32, DBLP_FLOAT64, DBLP_FLOAT16, DBLP_BFLOAT16 };
	u16 half[] = { 0x7c00, 0xfc00, 0x7e01, 1, 0x7bff };
	u16 brain[] = { 0x7f80, 0xff80, 0x7fc1, 1, 0x7f7f };
	float single[] = { INFINITY, -INFINITY, NAN, 0x1p-149f, -1 };
	double real[] = { INFINITY, -INFINITY, NAN, 0x1p-1074, -1 };
	void *from[] = { single, real, half, brain };
	char residual[5 * sizeof(double)];
	u32 i, k, esize;

	for (k = 0; k < 4; k++) {
		struct dblp_range range = { 0, 5 * (esize = dblp_dtype_size(dtypes[k])) };
		struct dblp_loss loss = {
			.range = &range, .n = 1, .esize = esize, .count = 5,
		};

		dblp_feedback_send(dtypes[k], residual, from[k], 5);
		ASSERT_EQ(5, dblp_feedback_report(dtypes[k], residual, &loss));
		for (i = 0; i < 3 * esize; i++)
			EXPECT_EQ(0, residual[i]);
		/* Finite elements keep their bits */
		EXPECT_EQ(0, memcmp(residual + 3 * esize, (char *)from[k] + 3 * esize, 2 * esize));
	}
}

/*
 * Losses of a packed vector belong to the positions of its elements; other elements
 * stay
 */
TEST(loss_of_a_packed_vector)
{
	const struct dblp_sparse_how how = {
		.dtype = DBLP_INT32, .last = DBLP_SPARSE_SHIFTS,
	};
	u8 packed[COUNT * 5 + 16];
	struct dblp_range range[RANGES + 1];
	s32 v[COUNT], residual[COUNT];
	struct prng rng = { 7 };
	bool lost[COUNT], found[COUNT];
	u32 i, k, p, n;

	for (k = 0; k < 3000; k++) {
		u64 count = 1 + prng_below(&rng, COUNT);
		u32 rare = 1 + prng_below(&rng, 20);
		struct dblp_loss_at at = { 0 };
		struct dblp_sparse s;
		struct dblp_span span;
		struct dblp_loss loss = {
			.range = range, .head = HEAD, .esize = 4, .sparse = &s,
		};

		for (i = 0; i < count; i++)
			v[i] = residual[i] = prng_below(&rng, rare) ? 0 : 1 + i;
		dblp_sparse_put(&how, v, count, packed, &s);
		loss.count = s.packed;
		loss.n = draw_ranges(&rng, loss.count * 4, range);
		mark(&loss, lost);
		memset(found, 0, sizeof(found));
		while (dblp_loss_next(&loss, &at, &span))
			memset(found + span.first, 1, span.end - span.first);
		/* Mark the other elements as pruned */
		for (i = 0; i < count; i++)
			residual[i] = residual[i] ?: -1;
		n = dblp_feedback_report(DBLP_INT32, residual, &loss);
		for (i = 0, p = 0; i < count; i++) {
			u32 block = i >> s.shift;

			if (!(s.bitmap[block / 8] >> block % 8 & 1)) {
				ASSERT_FALSE(found[i]);
				ASSERT_EQ(-1, residual[i]);
				continue;
			}
			ASSERT_EQ(lost[p], found[i]);
			ASSERT_EQ(lost[p] ? v[i] ?: -1 : 0, residual[i]);
			n -= lost[p++];
		}
		ASSERT_EQ(p, loss.count);
		ASSERT_EQ(0, n);
	}
}

static bool runs_sane(const struct dblp_run *run, u32 n, u64 count)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (run[i].end <= (i ? run[i - 1].end : 0) ||
		    (i && run[i].contributions == run[i - 1].contributions))
			return false;
	return n ? run[n - 1].end == count : !count;
}

static bool runs_are(const struct dblp_run *run, u32 n, const u32 *dense,
		     u64 count)
{
	u64 i;

	if (!runs_sane(run, n, count))
		return false;
	for (i = 0; i < count; i++) {
		run += i == run->end;
		if (run->contributions != dense[i])
			return false;
	}
	return true;
}

/* Convert the first @count of @dense to runs */
static u32 make_runs(const u32 *dense, u32 count, struct dblp_run *run)
{
	u32 n = 0, i;

	for (i = 0; i < count; i++) {
		if (!n || run[n - 1].contributions != dense[i])
			run[n++].contributions = dense[i];
		run[n - 1].end = i + 1;
	}
	return n;
}

/* Add a message; with too little room, nothing changes */
static const char *add_message(struct prng *rng, struct dblp_counts *c,
			       u32 *dense, u32 count)
{
	struct dblp_range range[RANGES + 1];
	struct dblp_run run[COUNT], part[COUNT];
	u32 incoming[COUNT], offset, i, n, before = c->n;
	struct dblp_counts small = *c;
	bool lost[COUNT];
	struct dblp_loss loss = { .range = range, .head = HEAD, .esize = 4 };
	int got;

	offset = prng_below(rng, count + 1);
	loss.count = prng_below(rng, count - offset + 1);
	loss.n = draw_ranges(rng, loss.count * 4, range);
	for (i = 0; i < loss.count; i++)
		incoming[i] = i && prng_below(rng, 5) ? incoming[i - 1] :
							prng_below(rng, 4);
	n = make_runs(incoming, loss.count, run);
	/* Memory for exactly its room, so that ASan detects writes beyond it */
	small.room = before;
	small.run = malloc(before * sizeof(*run) + !before);
	small.spare = malloc(before * sizeof(*run) + !before);
	memcpy(small.run, c->run, before * sizeof(*run));
	got = dblp_counts_add(&small, offset, run, n, &loss);
	if (got && !runs_are(small.run, small.n, dense, count))
		return "changed without room";
	free(small.run);
	free(small.spare);
	if (dblp_counts_add(c, offset, run, n, &loss))
		return "no room";
	if (got != (c->n > before ? -ENOSPC : 0))
		return "not as much room as there is";
	mark(&loss, lost);
	for (i = 0; i < loss.count; i++)
		dense[offset + i] += lost[i] ? 0 : incoming[i];
	if (!runs_are(c->run, c->n, dense, count))
		return "wrong counts";
	if (c->n > before + n + 2 * loss.n + 2)
		return "too many runs";

	got = dblp_counts_cut(c, offset, loss.count, part, COUNT);
	if (loss.count && !runs_are(part, got, dense + offset, loss.count))
		return "wrong part";
	if (got > 0 && dblp_counts_cut(c, offset, loss.count, part, got - 1) !=
		       -ENOSPC)
		return "too little room for a part was enough";
	return NULL;
}

TEST(counts)
{
	struct dblp_run memory[2][COUNT];
	struct prng rng = { 3 };
	u32 dense[COUNT], i, k;

	for (k = 0; k < 300; k++) {
		struct dblp_counts c = { memory[0], memory[1], 0, COUNT };
		u32 count = prng_below(&rng, COUNT + 1);

		dblp_counts_set(&c, count, 1);
		for (i = 0; i < count; i++)
			dense[i] = 1;
		ASSERT_TRUE(runs_are(c.run, c.n, dense, count));
		for (i = 0; i < 6; i++)
			ASSERT_EQ(add_message(&rng, &c, dense, count), NULL);
	}
}

/* Elements after the last run of a message have no contributions */
TEST(counts_of_few_runs)
{
	struct dblp_run memory[2][4];
	const struct dblp_run run = { 3, 5 };
	struct dblp_counts c = { memory[0], memory[1], 0, 4 };
	const struct dblp_loss loss = { .esize = 4, .count = 10 };

	dblp_counts_set(&c, 10, 1);
	ASSERT_EQ(dblp_counts_add(&c, 0, &run, 1, &loss), 0);
	ASSERT_EQ(c.n, 2);
	EXPECT_EQ(c.run[0].contributions, 6);
	EXPECT_EQ(c.run[0].end, 3);
	EXPECT_EQ(c.run[1].contributions, 1);
	EXPECT_EQ(c.run[1].end, 10);
}

#define RUNS_MAX	65536

static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* CPU time of messages of two elements in a vector of @n runs; 0 if they fail */
static u64 time_messages(struct dblp_counts *c, u32 n)
{
	static const struct dblp_run run = { 2, 1 };
	const struct dblp_loss loss = { .esize = 4, .count = 2 };
	struct prng rng = { 4 };
	struct dblp_run part[2];
	u64 begin;
	u32 i, at;

	for (i = 0; i < n; i++)
		c->run[i] = (struct dblp_run) { i + 1, i * 10000 };
	c->n = n;
	begin = cpu_ns();
	for (i = 0; i < 2000; i++) {
		at = prng_below(&rng, n - 1);
		if (dblp_counts_add(c, at, &run, 1, &loss) ||
		    dblp_counts_cut(c, at, 2, part, 2) != 2)
			return 0;
	}
	return cpu_ns() - begin + 1;
}

TEST(a_message_costs_little_for_any_number_of_runs)
{
	struct dblp_counts c = { .room = RUNS_MAX };
	u64 few, many;

	c.run = calloc(RUNS_MAX, sizeof(*c.run));
	c.spare = calloc(RUNS_MAX, sizeof(*c.spare));
	few = time_messages(&c, 64);
	many = time_messages(&c, RUNS_MAX);
	EXPECT_LT(0, few);
	EXPECT_LT(0, many);
	/*
	 * Allows a search and cold caches; visiting all runs would take a thousand
	 * times as long
	 */
	EXPECT_LT(many, 30 * few);
	free(c.run);
	free(c.spare);
}

TEST(finish)
{
	static const struct dblp_run run[] = { { 1, 4 }, { 2, 2 }, { 4, 0 }, { 5, 1 } };
	static const struct {
		u32	rule;
		bool	average;
		float	want[5];
		u64	none;
		u32	least;
	} cases[] = {
		{ DBLP_BUBBLE, false, { 8, 8, 8, 8, 8 }, 0, 4 },
		{ DBLP_BUBBLE, true, { 2, 2, 2, 2, 2 }, 0, 4 },
		{ DBLP_FEEDBACK, true, { 2, 2, 2, 2, 2 }, 0, 4 },
		{ DBLP_RESCALE, false, { 8, 16, 0, 0, 32 }, 2, 0 },
		{ DBLP_RESCALE, true, { 2, 4, 0, 0, 8 }, 2, 0 },
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct dblp_finish f = {
			.dtype = DBLP_FLOAT32, .rule = cases[i].rule,
			.contributions = 4, .average = cases[i].average,
		};
		float v[5] = { 8, 8, 8, 8, 8 };
		struct dblp_finished found;

		found = dblp_rule_finish(&f, v, run, ARRAY_SIZE(run), 5);
		for (k = 0; k < 5; k++)
			EXPECT_EQ(v[k], cases[i].want[k]);
		EXPECT_EQ(found.none, cases[i].none);
		EXPECT_EQ(found.least, cases[i].least);
		found = dblp_rule_finish(&f, NULL, run, 0, 0);
		EXPECT_EQ(found.none, 0);
		EXPECT_EQ(found.least, 4);
	}
}

/*
 * For any messages and losses: no message loses more than its budget, and all together
 * lose no more than the sum of their budgets. With a @limit, no unused budget expires.
 * Returns the share of the budget that was used.
 */
static const char *carry_on(struct prng *rng, u64 limit, bool all, double *used)
{
	struct { u32 bytes, w, taken; } sent[4] = { 0 };
	double budgets = 0, lost = 0, on_way = 0;
	struct dblp_carry c;
	u32 i;

	dblp_carry_init(&c, limit);
	for (i = 0; i < 2000; i++) {
		u32 k = i % 4, most = 100000 + prng_below(rng, 500000);
		u32 budget = prng_below(rng, 30000), missing;

		missing = (u64)sent[k].bytes * sent[k].taken / 1000000;
		if (!all && missing)
			missing = prng_below(rng, missing + 1);
		dblp_carry_give(&c, sent[k].bytes, sent[k].w, sent[k].taken,
				missing);
		lost += (double)missing * sent[k].w;
		on_way -= (double)sent[k].bytes * sent[k].w * sent[k].taken / 1e6;
		sent[k].bytes = prng_below(rng, 40000);
		sent[k].w = 1 + prng_below(rng, 8);
		sent[k].taken = dblp_carry_take(&c, sent[k].bytes, sent[k].w,
						budget, most);
		if (sent[k].taken > most)
			return "more than a message may lose";
		if (!limit && sent[k].w == 1 && sent[k].taken > budget)
			return "credit without a limit";
		budgets += (double)sent[k].bytes * budget / 1e6;
		on_way += (double)sent[k].bytes * sent[k].w * sent[k].taken / 1e6;
		if (lost + on_way > budgets + 1e-3)
			return "more than all budgets";
	}
	*used = lost / budgets;
	return NULL;
}

TEST(carry_is_bounded)
{
	struct prng rng = { 4 };
	double used;
	u32 i;

	for (i = 0; i < 100; i++) {
		ASSERT_EQ(carry_on(&rng, prng_any(&rng), i & 1, &used), NULL);
		ASSERT_EQ(carry_on(&rng, 0, i & 1, &used), NULL);
		/* Almost all of the budget is used if all of it may be used */
		ASSERT_EQ(carry_on(&rng, 1 << 30, true, &used), NULL);
		ASSERT_GT(used, 0.99);
	}
}

/* The use of carry: 2 % of 38 kB are less than a segment, 2 % of two messages are more */
TEST(carry_of_short_messages)
{
	const u32 bytes = 38000, segment = 1400, budget = 20000;
	struct dblp_carry c;
	u32 lost = 0, i;

	dblp_carry_init(&c, 1 << 20);
	for (i = 0; i < 1000; i++) {
		u32 ppm = dblp_carry_take(&c, bytes, 1, budget, 100000);
		u32 missing = (u64)bytes * ppm / 1000000 / segment * segment;

		ASSERT_TRUE(ppm <= 100000);
		dblp_carry_give(&c, bytes, 1, ppm, missing);
		lost += missing;
	}
	EXPECT_TRUE(lost <= 1000 * 760 && lost > 1000 * 760 - 2 * segment);
}

/* After a deadline exceeded the budget, nothing may be lost until the debt is repaid */
TEST(carry_pays_back)
{
	struct dblp_carry c;
	u32 ppm, i;

	dblp_carry_init(&c, 1 << 20);
	ppm = dblp_carry_take(&c, 10000, 2, 20000, 500000);
	EXPECT_EQ(ppm, 10000);
	dblp_carry_give(&c, 10000, 2, ppm, 500);
	for (i = 0; i < 4; i++) {
		ppm = dblp_carry_take(&c, 10000, 2, 20000, 500000);
		EXPECT_EQ(ppm, 0);
		dblp_carry_give(&c, 10000, 2, ppm, 0);
	}
	EXPECT_EQ(dblp_carry_take(&c, 10000, 2, 20000, 500000), 10000);
}

/* Maximum numbers cause no overflow, and no credit without unused budget */
TEST(carry_of_large_numbers)
{
	struct dblp_carry c;
	u32 i, ppm;

	dblp_carry_init(&c, UINT64_MAX);
	for (i = 0; i < 20; i++) {
		ppm = dblp_carry_take(&c, UINT32_MAX, 65536, 1000000, 1000000);
		EXPECT_TRUE(ppm <= 1000000);
		dblp_carry_give(&c, UINT32_MAX, 65536, ppm, 1U << 31);
		EXPECT_TRUE(c.credit <= c.limit);
	}
	EXPECT_LT(c.credit, -(INT64_MAX / 8));
	dblp_carry_init(&c, 0);
	EXPECT_EQ(dblp_carry_take(&c, 0, 1, 1000000, 1000000), 0);
	EXPECT_EQ(dblp_carry_take(&c, 1000, 1, 1000000, UINT32_MAX), 1000000);
	EXPECT_EQ(c.credit, 0);
	dblp_carry_init(&c, 1 << 20);
	EXPECT_EQ(dblp_carry_take(&c, 1000, 1, 1000000, 0), 0);
	EXPECT_EQ(dblp_carry_take(&c, 1000, 1, 1000000, UINT32_MAX), 1000000);
}

/*
 * A sender and a receiver of @COUNT parameters in messages of @PART, at most 16 of whose packed
 * elements get lost. @value has the number of the operation whose value an element has.
 */
#define PART	50

struct copy {
	struct dblp_stale	old;
	struct dblp_stale	lost;
	u32			value[COUNT];
};

static void next_operation(struct copy *c)
{
	struct dblp_stale old = c->old;

	c->old = c->lost;
	c->lost = old;
	c->lost.n = 0;
}

/* Losses of a message behind its head and the elements that it repairs */
static u32 lose_behind(struct prng *rng, u32 critical, u32 count, struct dblp_range *range)
{
	u32 n = 0, at = 0, i;

	for (i = 0; i < 4 && at + 8 < count; i++) {
		at += 1 + prng_below(rng, 8);
		range[n].offset = critical + 4 * at;
		range[n].length = 4 + prng_below(rng, 13);
		at += range[n++].length / 4 + 1;
	}
	return n;
}

/* Carries a message; both ends learn its losses. Returns the number of lost elements */
static u64 carry_message(struct copy *from, struct copy *to, struct dblp_span part,
			 struct prng *rng, bool lossy)
{
	const u64 count = part.end - part.first, repaired = dblp_stale_count(&from->old, part);
	struct dblp_range range[RANGES];
	struct dblp_loss loss = { .range = range, .head = HEAD, .esize = 4, .count = count };
	u32 packed[COUNT], i;
	struct dblp_pieces p;
	enum dblp_piece what;
	u64 lost = 0;

	dblp_pieces_begin(&p, &from->old, part, &loss);
	while (dblp_pieces_next(&p))
		memcpy(packed + p.packed, from->value + p.span.first, 4 * (p.span.end - p.span.first));
	if (lossy)
		loss.n = lose_behind(rng, HEAD + 4 * repaired, count - repaired, range);
	dblp_pieces_begin(&p, &from->old, part, &loss);
	while ((what = dblp_pieces_next(&p)))
		if (what == DBLP_PIECE_LOST)
			dblp_stale_add(&from->lost, p.span);
	dblp_pieces_begin(&p, &to->old, part, &loss);
	while ((what = dblp_pieces_next(&p))) {
		for (i = p.span.first; what != DBLP_PIECE_LOST && i < p.span.end; i++)
			to->value[i] = packed[p.packed + i - p.span.first];
		if (what != DBLP_PIECE_LOST)
			continue;
		dblp_stale_add(&to->lost, p.span);
		lost += p.span.end - p.span.first;
	}
	return lost;
}

/* Is an element in the list? */
static bool is_stale(const struct dblp_stale *s, u64 i)
{
	return dblp_stale_count(s, (struct dblp_span) { i, i + 1 });
}

/* Lost elements are one operation old, all others are new, and both ends know which */
TEST(lost_elements_are_repaired_in_the_next_operation)
{
	struct copy from = { 0 }, to = { 0 };
	u64 all = 0, lost, stale;
	struct prng rng = { 5 };
	u32 op, i, part;

	for (op = 1; op <= 2000; op++) {
		for (i = 0; i < COUNT; i++)
			from.value[i] = op;
		next_operation(&from);
		next_operation(&to);
		/* Reports may arrive in another order than messages */
		for (part = 0, lost = 0; part < 3; part++) {
			i = PART * ((part + op) % 3);
			lost += carry_message(&from, &to, (struct dblp_span) { i, min(i + PART, (u32)COUNT) },
					      &rng, op < 2000);
		}
		for (i = 0, stale = 0; i < COUNT; i++) {
			ASSERT_EQ(to.value[i], op - is_stale(&from.lost, i));
			stale += is_stale(&to.lost, i);
		}
		ASSERT_EQ(stale, lost);
		ASSERT_EQ(from.lost.n, to.lost.n);
		ASSERT_TRUE(!to.lost.n || !memcmp(from.lost.span, to.lost.span, to.lost.n * sizeof(*to.lost.span)));
		all += lost;
	}
	EXPECT_LT(2000 * COUNT / 20, all);
	dblp_stale_free(&from.old);
	dblp_stale_free(&from.lost);
	dblp_stale_free(&to.old);
	dblp_stale_free(&to.lost);
}

TEST_HARNESS_MAIN
