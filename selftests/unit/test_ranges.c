// SPDX-License-Identifier: GPL-2.0-only
/* Ranges compared with an array of booleans */
#include "ranges.h"
#include "test.h"

#define NUMBERS	4096

/* A set of maximum size */
#define NEW_RANGES(name)					\
	struct dblp_pn_range name##_mem[DBLP_RANGES_MAX];	\
	struct dblp_ranges name;				\
	dblp_ranges_init(&name);				\
	dblp_ranges_grow(&name, name##_mem)

/* Are the ranges sorted, separate, and above the floor? */
static bool ranges_are_sane(const struct dblp_ranges *s)
{
	u32 i;

	if (s->n > DBLP_RANGES_MAX)
		return false;
	for (i = 0; i < s->n; i++) {
		if (s->r[i].first > s->r[i].last || s->r[i].first < s->floor)
			return false;
		if (i && s->r[i].first < s->r[i - 1].last + 2)
			return false;
	}
	return true;
}

static bool agrees(const struct dblp_ranges *s, const bool *seen, u64 at)
{
	u64 i;

	for (i = 0; i < NUMBERS; i++) {
		bool want = seen[i] || at + i < s->floor;

		if (dblp_ranges_has(s, at + i) != want)
			return false;
	}
	return true;
}

/* Add numbers in an order disturbed by up to @spread, and compare after each */
static bool model_holds(struct prng *r, u64 at, u32 spread, u32 loss)
{
	bool seen[NUMBERS] = {};
	u32 i;
	NEW_RANGES(s);

	for (i = 0; i + spread < NUMBERS; i++) {
		u64 k = i + prng_below(r, spread + 1);
		bool fresh = !seen[k] && at + k >= s.floor;

		if (prng_below(r, 100) < loss)
			continue;
		if (dblp_ranges_add(&s, at + k) != fresh)
			return false;
		seen[k] = true;
		if (!ranges_are_sane(&s))
			return false;
		if (i % 64 == 0 && !agrees(&s, seen, at))
			return false;
	}
	return agrees(&s, seen, at);
}

TEST(dblp_ranges_add__in_order)
{
	u64 pn;
	NEW_RANGES(s);

	for (pn = 0; pn < 10000; pn++) {
		EXPECT_TRUE(dblp_ranges_add(&s, pn));
		EXPECT_FALSE(dblp_ranges_add(&s, pn));
	}
	EXPECT_EQ(1, s.n);
	EXPECT_EQ(0, s.r[0].first);
	EXPECT_EQ(9999, s.r[0].last);
	EXPECT_EQ(0, s.floor);
}

TEST(dblp_ranges_add__joins_neighbours)
{
	NEW_RANGES(s);

	EXPECT_TRUE(dblp_ranges_add(&s, 10));
	EXPECT_TRUE(dblp_ranges_add(&s, 12));
	EXPECT_EQ(2, s.n);
	EXPECT_TRUE(dblp_ranges_add(&s, 13));
	EXPECT_EQ(2, s.n);
	EXPECT_TRUE(dblp_ranges_add(&s, 9));
	EXPECT_EQ(2, s.n);
	EXPECT_TRUE(dblp_ranges_add(&s, 11));
	EXPECT_EQ(1, s.n);
	EXPECT_EQ(9, s.r[0].first);
	EXPECT_EQ(13, s.r[0].last);
}

TEST(dblp_ranges_add__full)
{
	u64 i;
	NEW_RANGES(s);

	for (i = 0; i < DBLP_RANGES_MAX; i++)
		EXPECT_TRUE(dblp_ranges_add(&s, 10 + 2 * i));
	EXPECT_EQ(DBLP_RANGES_MAX, s.n);
	EXPECT_EQ(0, s.floor);

	/* The lowest range is removed, and counts as received from then on */
	EXPECT_TRUE(dblp_ranges_add(&s, 1000));
	EXPECT_EQ(DBLP_RANGES_MAX, s.n);
	EXPECT_EQ(11, s.floor);
	EXPECT_EQ(12, s.r[0].first);
	EXPECT_FALSE(dblp_ranges_add(&s, 5));
	EXPECT_TRUE(dblp_ranges_has(&s, 10));

	/* A number that joins ranges needs no room */
	EXPECT_TRUE(dblp_ranges_add(&s, 999));
	EXPECT_EQ(11, s.floor);
}

TEST(dblp_ranges_grow__keeps_what_is_there)
{
	struct dblp_pn_range mem[DBLP_RANGES_MAX];
	struct dblp_ranges s;
	u32 i;

	dblp_ranges_init(&s);
	for (i = 0; i < DBLP_RANGES_FEW; i++) {
		EXPECT_FALSE(dblp_ranges_crowded(&s));
		EXPECT_TRUE(dblp_ranges_add(&s, 10 + 2 * i));
	}
	EXPECT_TRUE(dblp_ranges_crowded(&s));
	dblp_ranges_grow(&s, mem);
	EXPECT_FALSE(dblp_ranges_crowded(&s));
	EXPECT_TRUE(dblp_ranges_add(&s, 1000));
	EXPECT_EQ(DBLP_RANGES_FEW + 1, s.n);
	EXPECT_EQ(0, s.floor);
	for (i = 0; i < DBLP_RANGES_FEW; i++)
		EXPECT_TRUE(dblp_ranges_has(&s, 10 + 2 * i));
	for (i = 0; i < DBLP_RANGES_MAX; i++)
		dblp_ranges_add(&s, 2000 + 2 * i);
	EXPECT_EQ(DBLP_RANGES_MAX, s.n);
	EXPECT_FALSE(dblp_ranges_crowded(&s));
}

/* Without more room the lowest range is removed, and counts as received */
TEST(dblp_ranges_add__few)
{
	struct dblp_ranges s;
	u32 i;

	dblp_ranges_init(&s);
	for (i = 0; i <= DBLP_RANGES_FEW; i++)
		EXPECT_TRUE(dblp_ranges_add(&s, 10 + 2 * i));
	EXPECT_EQ(DBLP_RANGES_FEW, s.n);
	EXPECT_EQ(11, s.floor);
	EXPECT_TRUE(ranges_are_sane(&s));
}

TEST(dblp_ranges_add__full_and_lowest)
{
	u64 i;
	NEW_RANGES(s);

	for (i = 0; i < DBLP_RANGES_MAX; i++)
		dblp_ranges_add(&s, 100 + 2 * i);
	/* The number is new, but cannot be stored */
	EXPECT_TRUE(dblp_ranges_add(&s, 50));
	EXPECT_EQ(51, s.floor);
	EXPECT_FALSE(dblp_ranges_add(&s, 50));
	EXPECT_FALSE(dblp_ranges_add(&s, 20));
	EXPECT_TRUE(dblp_ranges_add(&s, 51));
	EXPECT_TRUE(ranges_are_sane(&s));
}

TEST(dblp_ranges_add__ends_of_the_number_space)
{
	NEW_RANGES(s);

	EXPECT_TRUE(dblp_ranges_add(&s, 1));
	EXPECT_TRUE(dblp_ranges_add(&s, 0));
	EXPECT_EQ(1, s.n);
	EXPECT_EQ(0, s.r[0].first);
	EXPECT_EQ(1, s.r[0].last);
	EXPECT_TRUE(dblp_ranges_add(&s, U64_MAX));
	EXPECT_TRUE(dblp_ranges_add(&s, U64_MAX - 1));
	EXPECT_EQ(1, s.n);
	EXPECT_EQ(2, s.floor);
	EXPECT_EQ(U64_MAX - 1, s.r[0].first);
	EXPECT_EQ(U64_MAX, s.r[0].last);
	EXPECT_FALSE(dblp_ranges_add(&s, U64_MAX));
	EXPECT_FALSE(dblp_ranges_has(&s, U64_MAX - 2));
}

/* A packet that never arrives takes neither room in ACKs nor in memory forever */
TEST(dblp_ranges_add__forgets_what_is_far_behind)
{
	struct dblp_ranges s;
	u64 pn;

	dblp_ranges_init(&s);
	for (pn = 0; pn < 10; pn++)
		dblp_ranges_add(&s, pn);
	dblp_ranges_add(&s, 11);
	dblp_ranges_add_run(&s, 13, DBLP_RANGES_SPAN - 5);
	EXPECT_EQ(3, s.n);
	EXPECT_EQ(DBLP_RANGES_SPAN + 7, s.r[2].last);
	dblp_ranges_add(&s, DBLP_RANGES_SPAN + 8);
	EXPECT_EQ(3, s.n);
	dblp_ranges_add(&s, DBLP_RANGES_SPAN + 9);
	EXPECT_EQ(2, s.n);
	EXPECT_EQ(10, s.floor);
	dblp_ranges_add_run(&s, DBLP_RANGES_SPAN + 10, 2);
	EXPECT_EQ(1, s.n);
	EXPECT_EQ(12, s.floor);
	EXPECT_FALSE(dblp_ranges_has(&s, 12));
	EXPECT_TRUE(dblp_ranges_add(&s, 12));
	/* Too late to be stored */
	dblp_ranges_add_run(&s, 4 * DBLP_RANGES_SPAN, 1);
	EXPECT_EQ(1, s.n);
	EXPECT_TRUE(dblp_ranges_add(&s, 2 * DBLP_RANGES_SPAN));
	EXPECT_FALSE(dblp_ranges_add(&s, 2 * DBLP_RANGES_SPAN));
	EXPECT_EQ(1, s.n);
	EXPECT_TRUE(ranges_are_sane(&s));
}

TEST(dblp_ranges_add__like_the_model)
{
	static const u32 spreads[] = { 0, 1, 3, 20, 100, 500, NUMBERS - 1 };
	struct prng r = { 11 };
	u32 i, loss;

	for (i = 0; i < ARRAY_SIZE(spreads); i++) {
		for (loss = 0; loss < 100; loss += 15) {
			EXPECT_TRUE(model_holds(&r, 0, spreads[i], loss));
			EXPECT_TRUE(model_holds(&r, (1ULL << 32) - 99,
						spreads[i], loss));
		}
	}
}

TEST_HARNESS_MAIN
