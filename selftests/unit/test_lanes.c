// SPDX-License-Identifier: GPL-2.0-only
/* Lanes: valid attributes, the lane of each step, and the choice of large elements */
#include <choose.h>
#include <errno.h>
#include <lanes.h>
#include <reduce.h>
#include <stdio.h>

#include <linux/minmax.h>

#include "exact.h"
#include "test.h"

#define LANES	4
#define PARTS	12
#define RANKS	9

TEST(invalid_lanes_are_refused)
{
	const struct dblp_lane good[3] = {
		{ .large = 200000, .rest = 2, .tos = 0xfc, .priority = 6 },
		{ .flags = DBLP_LANE_BUDGET | DBLP_LANE_POLICY, .budget = 1000000,
		  .policy = 2 },
		{ .flags = DBLP_LANE_NOT_ECT | DBLP_LANE_AFTER },
	};
	struct dblp_lane bad[3];

	EXPECT_EQ(0, dblp_lanes_check(good, 3));
	EXPECT_EQ(-EINVAL, dblp_lanes_check(good, 0));
	EXPECT_EQ(-EINVAL, dblp_lanes_check(good, DBLP_LANES_MAX + 1));
#define BAD(change) do { \
		memcpy(bad, good, sizeof(bad)); \
		change; \
		EXPECT_EQ(-EINVAL, dblp_lanes_check(bad, 3)) TH_LOG(#change); \
	} while (0)
	BAD(bad[1].flags = 1 << 4);
	BAD(bad[0].flags = DBLP_LANE_AFTER);
	BAD(bad[1].budget = 1000001);
	BAD(bad[1].policy = 3);
	BAD(bad[1].tos = 2);
	BAD(bad[1].tos = 0x100);
	BAD(bad[1].large = 1000000);
	BAD(bad[1].rest = 2);
	BAD(bad[1].reserved = 1);
	/* The rest must have another lane, which takes all elements */
	BAD(bad[0].rest = 3);
	BAD(bad[0].rest = 0);
	BAD(bad[1].large = 1; bad[1].rest = 0);
}

TEST(invalid_parts_are_refused)
{
	const struct dblp_lane lane[2] = { { 0 } };
	struct dblp_lane_part part[2] = { { 0, 4, 0, 0 }, { 4, 10, 1, 0 } };
	struct dblp_layout layout = { lane, 2, part, 2, 0 };

	EXPECT_EQ(0, dblp_parts_check(&layout, 10));
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 9));
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 11));
	part[1].end = DBLP_COUNT_MAX + 1;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, DBLP_COUNT_MAX + 1));
	part[1].end = 10;
	part[1].lane = 2;
	EXPECT_EQ(-ENOENT, dblp_parts_check(&layout, 10));
	part[1].lane = 1;
	part[1].first = 5;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 10));
	part[1].first = 3;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 10));
	part[1].first = 4;
	part[1].reserved = 1;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 10));
	part[1].reserved = 0;
	part[1].end = 4;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 4));
	layout.parts = 0;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 4));
	layout.part = NULL;
	EXPECT_EQ(0, dblp_parts_check(&layout, 4));
	layout.parts = 1;
	EXPECT_EQ(-EINVAL, dblp_parts_check(&layout, 4));
}

/* A vector with parts, and the steps of all ranks */
struct case_of {
	struct dblp_lane	lane[LANES];
	struct dblp_lane_part	part[PARTS];
	struct dblp_layout	layout;
	struct dblp_plan	plan;
	ssize_t			n[RANKS];
	struct dblp_step	*step[RANKS];
	struct dblp_way		*way[RANKS];
};

static void draw(struct prng *rng, struct case_of *c)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	c->layout = (struct dblp_layout) {
		c->lane, 1 + prng_below(rng, LANES), c->part,
		1 + prng_below(rng, PARTS), prng_below(rng, 2) * prng_below(rng, 30),
	};
	if (c->layout.lanes > 1 && prng_below(rng, 2)) {
		c->lane[0].large = 1 + prng_below(rng, 999999);
		c->lane[0].rest = c->layout.lanes - 1;
	}
	for (i = 0; i < c->layout.parts; i++) {
		c->part[i].first = c->plan.count;
		c->plan.count += 1 + prng_below(rng, 40);
		c->part[i].end = c->plan.count;
		c->part[i].lane = prng_below(rng, c->layout.lanes);
	}
	c->plan.algo = prng_below(rng, DBLP_ALGOS);
	c->plan.nranks = 1 + prng_below(rng, RANKS);
	c->plan.flags = prng_below(rng, 4);
	if (c->plan.algo >= DBLP_BCUBE) {
		c->plan.levels = 1 + prng_below(rng, 2);
		dblp_plan_radix(c->plan.nranks, c->plan.levels, c->plan.radix);
	}
}

/* Room for exactly the steps of a plan, so that ASan detects writes beyond it */
static void plan_all(struct case_of *c)
{
	struct dblp_plan plan = c->plan;
	u32 r;

	for (r = 0; r < plan.nranks; r++) {
		plan.rank = r;
		c->n[r] = dblp_layout_steps(&plan, &c->layout, NULL, NULL, 0);
		if (c->n[r] < 0)
			abort();
		c->step[r] = malloc(c->n[r] * sizeof(*c->step[r]));
		c->way[r] = malloc(c->n[r] * sizeof(*c->way[r]));
		if (dblp_layout_steps(&plan, &c->layout, c->step[r], c->way[r],
				      c->n[r]) != c->n[r])
			abort();
	}
}

static void free_all(struct case_of *c)
{
	u32 r;

	for (r = 0; r < c->plan.nranks; r++) {
		free(c->step[r]);
		free(c->way[r]);
	}
}

static const struct dblp_lane_part *part_of(const struct case_of *c, const struct dblp_step *s)
{
	u32 i;

	for (i = 0; i < c->layout.parts; i++)
		if (s->offset >= c->part[i].first &&
		    s->offset + s->count <= c->part[i].end)
			return &c->part[i];
	return NULL;
}

/* Is a step within one part, and does it use the part's lane or the lane of the rest? */
static bool way_is_good(const struct case_of *c, const struct dblp_step *s, struct dblp_way way)
{
	const struct dblp_lane_part *p = part_of(c, s);
	bool message = s->op == DBLP_STEP_SEND || s->op == DBLP_STEP_ADD;
	u32 large;

	if (!p || !s->count)
		return false;
	large = message && !s->reliable ? c->lane[p->lane].large : 0;
	if (way.choice == DBLP_CHOICE_REST)
		return large && way.lane == c->lane[p->lane].rest &&
		       way.large == large;
	return way.lane == p->lane && way.large == large &&
	       (way.choice == DBLP_CHOICE_LARGE) == !!large;
}

/* Do steps with more elements than a message become several, in order? */
static bool cuts_are_good(const struct case_of *c, u32 r)
{
	const u64 most = c->layout.most;
	struct dblp_layout whole = c->layout;
	struct dblp_plan plan = c->plan;
	ssize_t i, n = 0;

	for (i = 0; i < c->n[r]; i++) {
		const struct dblp_step *s = &c->step[r][i];

		n += !c->way[r][i].goes_on;

		if (most && s->count > most)
			return false;
		if (!c->way[r][i].goes_on)
			continue;
		if (!i || s[-1].count != most || s[-1].offset + most != s->offset ||
		    s[-1].op != s->op || s[-1].peer != s->peer || s[-1].round != s->round)
			return false;
	}
	plan.rank = r;
	whole.most = 0;
	return n == dblp_layout_steps(&plan, &whole, NULL, NULL, 0);
}

static bool same_message(const struct dblp_step *a, struct dblp_way x,
			 const struct dblp_step *b, struct dblp_way y)
{
	return a->round == b->round && a->offset == b->offset &&
	       a->count == b->count && a->lane == b->lane &&
	       a->contributions == b->contributions &&
	       a->reliable == b->reliable && x.lane == y.lane &&
	       x.choice == y.choice;
}

/* On each lane, do the receives of @b from @a match the sends of @a to @b in order? */
static bool lane_is_good(const struct case_of *c, u32 lane, u32 a, u32 b)
{
	ssize_t i = 0, k = 0;

	for (;; i++, k++) {
		while (i < c->n[a] && (c->step[a][i].op != DBLP_STEP_SEND ||
				       c->step[a][i].peer != b ||
				       c->way[a][i].lane != lane))
			i++;
		while (k < c->n[b] && ((c->step[b][k].op != DBLP_STEP_ADD &&
					c->step[b][k].op != DBLP_STEP_COPY) ||
				       c->step[b][k].peer != a ||
				       c->way[b][k].lane != lane))
			k++;
		if (i == c->n[a] || k == c->n[b])
			return i == c->n[a] && k == c->n[b];
		if (!same_message(&c->step[a][i], c->way[a][i], &c->step[b][k],
				  c->way[b][k]))
			return false;
	}
}

/* Does each element have one owner in each group that reduces? */
static bool owners_are_good(const struct case_of *c)
{
	u32 owners[PARTS * 40] = { 0 }, want = 1, r;
	ssize_t i;
	u64 e;

	if (c->plan.flags == DBLP_PLAN_SPREAD)
		return true;
	if (c->plan.algo == DBLP_AVERAGE && c->plan.levels)
		want = c->plan.nranks / c->plan.radix[0];
	for (r = 0; r < c->plan.nranks; r++)
		for (i = 0; i < c->n[r]; i++)
			for (e = 0; c->step[r][i].op == DBLP_STEP_FINISH &&
				    e < c->step[r][i].count; e++)
				owners[c->step[r][i].offset + e]++;
	for (e = 0; e < c->plan.count; e++)
		if (owners[e] != want)
			return false;
	return true;
}

TEST(steps_of_parts_are_those_of_one_vector_for_each_lane)
{
	struct prng rng = { 1 };
	struct case_of c;
	u32 k, a, b, lane;
	ssize_t i;

	for (k = 0; k < 3000; k++) {
		draw(&rng, &c);
		ASSERT_EQ(0, dblp_parts_check(&c.layout, c.plan.count));
		plan_all(&c);
		for (a = 0; a < c.plan.nranks; a++) {
			ASSERT_TRUE(cuts_are_good(&c, a));
			for (i = 0; i < c.n[a]; i++)
				ASSERT_TRUE(way_is_good(&c, &c.step[a][i], c.way[a][i]));
			for (b = 0; b < c.plan.nranks; b++)
				for (lane = 0; lane < c.layout.lanes; lane++)
					ASSERT_TRUE(lane_is_good(&c, lane, a, b));
		}
		ASSERT_TRUE(owners_are_good(&c));
		free_all(&c);
	}
}

/* Also if the elements of a lane are spread over the vector */
TEST(each_rank_owns_as_much_of_each_lane)
{
	struct prng rng = { 1 };
	struct case_of c;
	u64 owned[RANKS][LANES], n;
	u32 k, r, lane;
	ssize_t i;

	for (k = 0; k < 1000; k++) {
		draw(&rng, &c);
		c.plan.algo = prng_below(&rng, 2) ? DBLP_TRANSPOSE : DBLP_RING;
		c.plan.flags = 0;
		c.plan.levels = 0;
		plan_all(&c);
		memset(owned, 0, sizeof(owned));
		for (r = 0; r < c.plan.nranks; r++)
			for (i = 0; i < c.n[r]; i++)
				if (c.step[r][i].op == DBLP_STEP_FINISH)
					owned[r][c.way[r][i].lane] += c.step[r][i].count;
		for (lane = 0; lane < c.layout.lanes; lane++) {
			for (r = 0, n = 0; r < c.plan.nranks; r++)
				n += owned[r][lane];
			for (r = 0; r < c.plan.nranks; r++) {
				ASSERT_GE(1 + n / c.plan.nranks, owned[r][lane]);
				ASSERT_LE(n / c.plan.nranks, owned[r][lane]);
			}
		}
		free_all(&c);
	}
}

TEST(without_parts_steps_are_those_of_the_plan)
{
	struct dblp_plan plan = { .algo = DBLP_RING, .nranks = 5, .rank = 3, .count = 99 };
	struct dblp_step step[20], want[20];
	struct dblp_way way[20];
	ssize_t n = dblp_plan_steps(&plan, want, 20);

	ASSERT_EQ(n, dblp_layout_steps(&plan, &dblp_layout_plain, step, way, 20));
	EXPECT_EQ(0, memcmp(want, step, n * sizeof(*want)));
	plan.rank = 5;
	EXPECT_EQ(-EINVAL, dblp_layout_steps(&plan, &dblp_layout_plain, NULL, NULL, 0));
}

static double magnitude(u32 dtype, const u8 *p)
{
	double square = dblp_reduce_squares(dtype, p, 1);

	/* NaN and infinity count as large */
	return square == square ? square : 1e300 * 1e300;
}

/* Is the choice valid for a vector of any bits, block by block? */
static bool choice_is_good(u32 dtype, const u8 *v, u64 count, u32 share)
{
	const u32 esize = dblp_dtype_size(dtype);
	u8 *large = malloc(count * esize), *rest = malloc(count * esize);
	u64 want = count * share / 1000000, n = 0, at, i;
	double least = 1e300 * 1e300, most = 0;
	bool good = true;

	dblp_choose(dtype, v, count, share, true, large);
	dblp_choose(dtype, v, count, share, false, rest);
	for (at = 0; at < count; at += DBLP_CHOOSE_BLOCK) {
		u64 len = min(count - at, (u64)DBLP_CHOOSE_BLOCK);
		bool is_large = !memcmp(large + at * esize, v + at * esize, len * esize);
		const u8 *none = is_large ? rest : large;
		double top = 0;

		for (i = at * esize; i < (at + len) * esize; i++)
			good &= !none[i];
		for (i = at; i < at + len; i++)
			top = max(top, magnitude(dtype, v + i * esize));
		if (!top)
			continue;
		good &= !memcmp((is_large ? large : rest) + at * esize, v + at * esize,
				len * esize);
		n += is_large ? len : 0;
		least = is_large ? min(least, top) : least;
		most = is_large ? most : max(most, top);
	}
	/* The resolution for float32 is a sixteenth, or less at the smallest octaves */
	good &= n < want + DBLP_CHOOSE_BLOCK;
	if (dtype == DBLP_FLOAT32 && most > 1e-30 && least < 1e30)
		good &= most <= least * 1.13;
	free(large);
	free(rest);
	return good;
}

TEST(no_small_element_exceeds_a_large_one)
{
	struct prng rng = { 1 };
	u32 k, i;

	for (k = 0; k < 4000; k++) {
		u32 dtype = prng_below(&rng, DBLP_DTYPES);
		u64 count = 1 + prng_below(&rng, 500);
		size_t len = count * dblp_dtype_size(dtype);
		u8 *v = malloc(len);

		for (i = 0; i < len; i++)
			v[i] = prng_any(&rng);
		ASSERT_TRUE(choice_is_good(dtype, v, count, prng_below(&rng, 1000000)))
			TH_LOG("%u: type %u, %llu elements", k, dtype, count);
		free(v);
	}
}

/* The share of large elements is as requested, whatever their values are */
TEST(the_share_of_large_elements_is_as_requested)
{
	static const u32 shares[] = { 0, 1, 10000, 200000, 500000, 999999 };
	float v[4096], large[4096];
	struct prng rng = { 1 };
	u32 k, i, n;

	for (k = 0; k < 600; k++) {
		u32 share = shares[k % ARRAY_SIZE(shares)];
		u32 want = 4096ULL * share / 1000000;

		for (i = 0; i < 4096; i++)
			v[i] = k % 2 ? 1 : 1e-3 + (double)prng_any(&rng);
		dblp_choose(DBLP_FLOAT32, v, 4096, share, true, large);
		for (i = 0, n = 0; i < 4096; i++)
			n += large[i] != 0;
		ASSERT_LE(want, n);
		ASSERT_GT(want + DBLP_CHOOSE_BLOCK, n);
	}
}

TEST_HARNESS_MAIN
