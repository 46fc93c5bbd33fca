// SPDX-License-Identifier: GPL-2.0-only
/* Rules of reduction with plans: all algorithms, any order, any loss */
#include "plan_world.h"

#include <math.h>
#include <reduce.h>
#include <rule.h>

#define RANKS	14
#define COUNT	48
#define HEAD	64

/* A rank's vector; @from has a bit for each rank that contributed to an element */
struct vec {
	char			value[COUNT * 8];
	char			residual[COUNT * 8];
	u32			from[COUNT];
	struct dblp_counts	counts;
	struct dblp_run		run[2][COUNT];
};

struct message {
	char		value[COUNT * 8];
	u32		from[COUNT];
	struct dblp_run	run[COUNT];
	int		n;
};

/* Repeated reductions; @loss is the chance of loss in percent */
struct run {
	struct world	w;
	u32		dtype;
	u32		rule;
	bool		average;
	u32		loss;
	struct vec	rank[RANKS];
	double		finished[COUNT];
	double		given[COUNT];
	double		size[COUNT];
	double		input[RANKS][COUNT];
	u64		none;
};

static struct run *run_of(struct world *w)
{
	return w->arg;
}

static double get(u32 dtype, const void *v, u32 i)
{
	float value;
	u32 bits;
	u16 h;

	if (dtype == DBLP_INT32)
		return ((const s32 *)v)[i];
	if (dtype == DBLP_INT64)
		return ((const s64 *)v)[i];
	if (dtype == DBLP_FLOAT64)
		return ((const double *)v)[i];
	if (dtype == DBLP_FLOAT32)
		return ((const float *)v)[i];
	h = ((const u16 *)v)[i];
	if (dtype == DBLP_BFLOAT16) {
		bits = (u32)h << 16;
		memcpy(&value, &bits, sizeof(value));
		return value;
	}
	/* Finite values only */
	value = ldexpf((h & 0x3ff) + (h & 0x7c00 ? 0x400 : 0),
		       (h & 0x7c00 ? h >> 10 & 0x1f : 1) - 25);
	return h & 0x8000 ? -value : value;
}

/* Small integers are exact in all types */
static void set(u32 dtype, void *v, u32 i, int x)
{
	static const u16 ones[DBLP_DTYPES] = {
		[DBLP_FLOAT16] = 0x3c00, [DBLP_BFLOAT16] = 0x3f80,
	};

	if (dtype == DBLP_INT32) {
		((s32 *)v)[i] = x;
	} else if (dtype == DBLP_INT64) {
		((s64 *)v)[i] = x;
	} else if (dtype == DBLP_FLOAT64) {
		((double *)v)[i] = x;
	} else if (dtype == DBLP_FLOAT32) {
		((float *)v)[i] = x;
	} else {
		((u16 *)v)[i] = ones[dtype] | (x < 0 ? 0x8000 : 0);
		dblp_reduce_scale(dtype, (u16 *)v + i, 1, abs(x), 1);
	}
}

/* Number of types with negative numbers: all but bytes, which wrap */
#define SIGNED	DBLP_UINT8

static u32 esize_of(const struct run *r)
{
	return dblp_dtype_size(r->dtype);
}

static void do_local(struct world *w, u32 rank, struct pstep *p)
{
	struct run *r = run_of(w);
	struct vec *v = &r->rank[rank];
	const struct dblp_finish f = {
		.dtype = r->dtype, .rule = r->rule, .average = r->average,
		.contributions = p->s.contributions,
	};
	char *at = v->value + p->s.offset * esize_of(r);
	struct dblp_run run[COUNT];
	struct dblp_finished found;
	u32 i, n;

	if (p->s.op == DBLP_STEP_CLEAR) {
		memset(v->value, 0, sizeof(v->value));
		memset(v->from, 0, sizeof(v->from));
		dblp_counts_set(&v->counts, w->plan.count, 0);
		return;
	}
	n = dblp_counts_cut(&v->counts, p->s.offset, p->s.count, run, COUNT);
	found = dblp_rule_finish(&f, at, run, n, p->s.count);
	r->none += found.none;
	for (i = 0, n = 0; i < p->s.count; i++) {
		u32 from = v->from[p->s.offset + i], q, many;
		double sum = 0;

		r->finished[p->s.offset + i] += get(r->dtype, at, i);
		n += !from;
		if (r->rule != DBLP_RESCALE || r->dtype != DBLP_FLOAT32)
			continue;
		/* The mean of exactly the contributions in it */
		many = __builtin_popcount(from);
		for (q = 0; q < w->plan.nranks; q++)
			sum += from >> q & 1 ? r->input[q][p->s.offset + i] : 0;
		sum *= many ? (r->average ? 1. : f.contributions) / many : 0;
		if (fabs(get(r->dtype, at, i) - sum) > 1e-4 * fabs(sum))
			w->wrong = "not the mean of what has arrived";
	}
	if (r->rule == DBLP_RESCALE && found.none != n)
		w->wrong = "wrong number without contributions";
}

static void do_send(struct world *w, u32 rank, struct pstep *p)
{
	struct run *r = run_of(w);
	struct vec *v = &r->rank[rank];
	struct message *m = malloc(sizeof(*m));
	u64 at = p->s.offset * esize_of(r);

	memcpy(m->value, v->value + at, p->s.count * esize_of(r));
	memcpy(m->from, v->from + p->s.offset, p->s.count * sizeof(*m->from));
	m->n = dblp_counts_cut(&v->counts, p->s.offset, p->s.count, m->run, COUNT);
	if (!p->s.reliable && r->rule == DBLP_FEEDBACK)
		dblp_feedback_send(r->dtype, v->residual + at, v->value + at,
				   p->s.count);
	p->data = m;
}

/* Lose blocks of random length, which may cut elements, each with the same chance */
static u32 draw_loss(struct run *r, u32 bytes, struct dblp_range *range)
{
	u32 block = 1 + prng_below(&r->w.rng, 40), n = 0, at;

	for (at = HEAD; at < HEAD + bytes; at += block)
		if (prng_below(&r->w.rng, 100) < r->loss)
			range[n++] = (struct dblp_range) { at, block };
	return n;
}

/* Lost elements are 0 and have no contributions */
static void lose(const struct dblp_loss *loss, struct message *m)
{
	struct dblp_span span;
	struct dblp_loss_at at = { 0 };

	while (dblp_loss_next(loss, &at, &span)) {
		memset(m->from + span.first, 0,
		       (span.end - span.first) * sizeof(*m->from));
		memset(m->value + span.first * loss->esize, 0,
		       (span.end - span.first) * loss->esize);
	}
}

static void do_recv(struct world *w, u32 rank, struct pstep *p,
		    struct pstep *sender)
{
	struct run *r = run_of(w);
	struct vec *v = &r->rank[rank];
	struct message *m = sender->data;
	u32 esize = esize_of(r), i;
	struct dblp_range range[COUNT * 8];
	struct dblp_loss loss = {
		.range = range, .head = HEAD, .esize = esize, .count = p->s.count,
	};

	if (p->s.op == DBLP_STEP_ADD) {
		loss.n = draw_loss(r, p->s.count * esize, range);
		lose(&loss, m);
		for (i = 0; i < p->s.count; i++)
			v->from[p->s.offset + i] |= m->from[i];
		dblp_reduce_add(r->dtype, v->value + p->s.offset * esize,
				m->value, p->s.count);
		if (dblp_counts_add(&v->counts, p->s.offset, m->run, m->n, &loss))
			w->wrong = "no room";
		if (r->rule == DBLP_FEEDBACK)
			dblp_feedback_report(r->dtype, r->rank[p->s.peer].residual +
					     p->s.offset * esize, &loss);
	} else {
		memcpy(v->value + p->s.offset * esize, m->value,
		       p->s.count * esize);
	}
	free(m);
	sender->data = NULL;
}

/* Set the vectors of all ranks before a round, equal ones if @same */
static void contribute(struct run *r, bool same, int least, int most)
{
	bool server = r->w.plan.flags & DBLP_PLAN_SERVER;
	u32 q, i, k;

	for (i = 0; i < r->w.plan.count; i++) {
		int x = 0;

		for (q = 0; q < r->w.plan.nranks; q++) {
			struct vec *v = &r->rank[q];

			if (!q || !same)
				x = least + (int)prng_below(&r->w.rng, most - least + 1);
			k = server && q == r->w.plan.root ? 0 : x;
			set(r->dtype, v->value, i, k);
			v->from[i] = 1U << q;
			r->input[q][i] = (int)k;
			r->given[i] += (int)k;
			r->size[i] += abs((int)k);
		}
	}
}

/* Do one round; returns an error text, or NULL */
static const char *reduce(struct run *r)
{
	const char *wrong;
	u32 q;

	for (q = 0; q < r->w.plan.nranks; q++) {
		struct vec *v = &r->rank[q];

		v->counts = (struct dblp_counts) { v->run[0], v->run[1], 0, COUNT };
		dblp_counts_set(&v->counts, r->w.plan.count, 1);
		if (r->rule == DBLP_FEEDBACK)
			dblp_feedback_apply(r->dtype, v->value, v->residual,
					    r->w.plan.count);
	}
	r->w.buffered = prng_below(&r->w.rng, 2);
	r->w.arg = r;
	r->w.local = do_local;
	r->w.send = do_send;
	r->w.recv = do_recv;
	if (!world_init(&r->w))
		return "refused";
	wrong = world_match(&r->w) ?: world_run(&r->w);
	world_free(&r->w);
	for (q = 1; q < r->w.plan.nranks && r->w.plan.algo != DBLP_AVERAGE; q++)
		if (memcmp(r->rank[0].value, r->rank[q].value,
			   r->w.plan.count * esize_of(r)))
			return "replicas differ";
	return wrong;
}

static void draw_run(struct prng *rng, struct run *r)
{
	struct dblp_plan *plan = &r->w.plan;

	memset(r, 0, sizeof(*r));
	plan->algo = prng_below(rng, DBLP_ALGOS);
	plan->nranks = 1 + prng_below(rng, RANKS);
	plan->root = prng_below(rng, plan->nranks);
	plan->fanin = prng_below(rng, 4);
	plan->turn = prng_below(rng, 3);
	plan->levels = 1 + prng_below(rng, 3);
	dblp_plan_radix(plan->nranks, plan->levels, plan->radix);
	plan->count = prng_below(rng, COUNT + 1);
	if (plan->nranks > 1 && plan->algo != DBLP_TRANSPOSE &&
	    (plan->algo == DBLP_PS || plan->algo == DBLP_TREE) &&
	    prng_below(rng, 2))
		plan->flags = DBLP_PLAN_SERVER;
	r->w.rng.state = prng_u64(rng);
	r->loss = prng_below(rng, 3) ? prng_below(rng, 60) : 100 * prng_below(rng, 2);
}

/* Tolerance of inexact types: one rounding for each addition */
static double exactness(const struct run *r, u32 rounds)
{
	static const double epsilon[DBLP_DTYPES] = {
		[DBLP_FLOAT32] = 0x1p-24,
		[DBLP_FLOAT16] = 0x1p-11,
		[DBLP_BFLOAT16] = 0x1p-8,
		[DBLP_FLOAT64] = 0x1p-53,
	};

	return 2 * rounds * r->w.plan.nranks * epsilon[r->dtype];
}

/* Sums and residuals of all rounds add up to the contributions: lost data is only late */
TEST(feedback_conserves)
{
	struct prng rng = { 1 };
	static struct run r;
	u32 i, k, q, round;

	for (i = 0; i < 600; i++) {
		draw_run(&rng, &r);
		r.rule = DBLP_FEEDBACK;
		r.dtype = i % SIGNED;
		for (round = 0; round < 4; round++) {
			contribute(&r, false, -9, 9);
			ASSERT_EQ(reduce(&r), NULL);
		}
		for (k = 0; k < r.w.plan.count; k++) {
			double sum = r.finished[k];

			for (q = 0; q < r.w.plan.nranks; q++)
				sum += get(r.dtype, r.rank[q].residual, k);
			ASSERT_LE(fabs(sum - r.given[k]),
				  exactness(&r, 4) * r.size[k]);
		}
	}
}

/* The mean of the contributions that arrived; without any it is 0 and reported */
TEST(rescale_is_the_mean_of_what_arrived)
{
	struct prng rng = { 2 };
	static struct run r;
	u32 i;

	for (i = 0; i < 1000; i++) {
		draw_run(&rng, &r);
		r.rule = DBLP_RESCALE;
		r.average = i & 1;
		contribute(&r, false, -9, 9);
		ASSERT_EQ(reduce(&r), NULL);
	}
}

/* Losses do not change the mean of equal contributions */
TEST(rescale_of_equals)
{
	struct prng rng = { 3 };
	static struct run r;
	u32 i, k;

	for (i = 0; i < 400; i++) {
		draw_run(&rng, &r);
		if (r.w.plan.flags)
			r.loss = 0;
		r.rule = DBLP_RESCALE;
		r.average = true;
		r.dtype = i % SIGNED;
		contribute(&r, true, -9, 9);
		ASSERT_EQ(reduce(&r), NULL);
		ASSERT_EQ(r.none, 0);
		for (k = 0; k < r.w.plan.count && !r.w.plan.flags; k++)
			ASSERT_LE(fabs(get(r.dtype, r.rank[0].value, k) -
				       r.input[0][k]),
				  exactness(&r, 1) * 9 * r.w.plan.nranks);
	}
}

struct mean {
	double	n;
	double	sum;
	double	squares;
};

static void mean_add(struct mean *m, double x)
{
	m->n++;
	m->sum += x;
	m->squares += x * x;
}

/* Distance of the mean from @expected, in standard errors */
static double off_by(const struct mean *m, double expected)
{
	double mean = m->sum / m->n, var = m->squares / m->n - mean * mean;

	return (mean - expected) / sqrt(var / m->n);
}

/* Do one round with a loss of 30 %, and add its result */
static const char *one_result(struct prng *rng, struct run *r, u32 rule,
			      u32 algo, struct mean *m)
{
	const char *wrong;

	memset(r, 0, sizeof(*r));
	r->w.plan = (struct dblp_plan) {
		.algo = algo, .nranks = 9, .levels = 2, .radix = { 3, 3 },
		.count = 9,
	};
	r->w.rng.state = prng_u64(rng);
	r->rule = rule;
	r->average = true;
	r->loss = 30;
	contribute(r, false, 1, 9);
	wrong = reduce(r);
	mean_add(m, get(r->dtype, r->rank[0].value, 4));
	return wrong;
}

/*
 * Contributions are random with mean 5. The mean of any subset that is chosen without
 * their values has the same expectation; that of bubble is lower by the share lost. A
 * deviation of 5 standard errors has a chance of one in 1.7 million, and the seed is
 * fixed.
 */
TEST(rescale_is_unbiased)
{
	struct mean rescaled, bubble;
	struct prng rng = { 4 };
	static struct run r;
	u32 algo, i;

	for (algo = 0; algo < DBLP_ALGOS; algo++) {
		memset(&rescaled, 0, sizeof(rescaled));
		memset(&bubble, 0, sizeof(bubble));
		for (i = 0; i < 500; i++) {
			ASSERT_EQ(one_result(&rng, &r, DBLP_RESCALE, algo,
					     &rescaled), NULL);
			ASSERT_EQ(one_result(&rng, &r, DBLP_BUBBLE, algo,
					     &bubble), NULL);
		}
		EXPECT_LT(fabs(off_by(&rescaled, 5)), 5);
		EXPECT_LT(off_by(&bubble, 5), -10);
	}
}

/*
 * The same for fixed contributions, 1 ... 8, if all have the same chance of loss, as
 * those of workers at a server. (In other plans a rank's own contribution is never lost
 * and so has more weight.)
 */
TEST(rescale_is_unbiased_at_a_server)
{
	struct prng rng = { 5 };
	struct mean m = { 0 };
	static struct run r;
	u32 i, q;

	for (i = 0; i < 1500; i++) {
		memset(&r, 0, sizeof(r));
		r.w.plan = (struct dblp_plan) {
			.algo = DBLP_PS, .nranks = 9, .count = 1,
			.flags = DBLP_PLAN_SERVER,
		};
		r.w.rng.state = prng_u64(&rng);
		r.rule = DBLP_RESCALE;
		r.average = true;
		r.loss = 30;
		contribute(&r, false, 0, 0);
		for (q = 1; q < 9; q++) {
			set(r.dtype, r.rank[q].value, 0, q);
			r.input[q][0] = q;
		}
		ASSERT_EQ(reduce(&r), NULL);
		if (!r.none)
			mean_add(&m, get(r.dtype, r.rank[3].value, 0));
	}
	EXPECT_LT(fabs(off_by(&m, 4.5)), 5);
	/* The mean of bubble is lower by 1.35 */
	EXPECT_LT(5 * sqrt((m.squares / m.n - pow(m.sum / m.n, 2)) / m.n), 0.15);
}

TEST_HARNESS_MAIN
