// SPDX-License-Identifier: GPL-2.0-only
/* The detector of critical regimes: its arithmetic, and series of norms */
#include <linux/dblp.h>

#include "clr.h"
#include "test.h"

/* The value 1 in the unit of DBLP_NORM; the rule does not depend on the unit */
#define ONE	(1ULL << 32)
#define HALF	DBLP_CLR_ETA_DEFAULT

static const u64 edges[] = {
	0, 1, 2, 3, 999999, 1000000, 1000001, 4294, 4295, U32_MAX - 1, U32_MAX,
	ONE, ONE + 1, 1ULL << 43, 1ULL << 44, (1ULL << 44) + 1, 1ULL << 62,
	(1ULL << 63) - 1, 1ULL << 63, (1ULL << 63) + 1,
	U64_MAX / 1000000, U64_MAX / 1000000 + 1, U64_MAX / 4295, U64_MAX / 2,
	U64_MAX / 2 + 1, U64_MAX / 3 * 2, U64_MAX - 1, U64_MAX,
};

/* In exact arithmetic, for which 84 bits are enough */
static u32 exact(u64 previous, u64 norm)
{
	unsigned __int128 diff = norm > previous ? norm - previous :
						   previous - norm;

	if (!previous)
		return diff ? U32_MAX : 0;
	diff = diff * DBLP_PPM / previous;
	return diff < U32_MAX ? (u32)diff : U32_MAX;
}

TEST(dblp_clr_change__small_cases)
{
	EXPECT_EQ(0, dblp_clr_change(ONE, ONE));
	EXPECT_EQ(HALF, dblp_clr_change(2 * ONE, ONE));
	EXPECT_EQ(HALF, dblp_clr_change(2 * ONE, 3 * ONE));
	EXPECT_EQ(DBLP_PPM, dblp_clr_change(ONE, 0));
	EXPECT_EQ(DBLP_PPM, dblp_clr_change(ONE, 2 * ONE));
	/* A third, rounded down */
	EXPECT_EQ(333333, dblp_clr_change(3, 2));
	EXPECT_EQ(499999, dblp_clr_change(2 * ONE, ONE + 1));
}

TEST(dblp_clr_change__from_nothing)
{
	EXPECT_EQ(0, dblp_clr_change(0, 0));
	EXPECT_EQ(U32_MAX, dblp_clr_change(0, 1));
	EXPECT_EQ(U32_MAX, dblp_clr_change(0, U64_MAX));
}

TEST(dblp_clr_change__saturates)
{
	/* A growth by 4294.967295 is the largest value that fits */
	EXPECT_EQ(4294967294U, dblp_clr_change(1000000, 4295967294ULL));
	EXPECT_EQ(U32_MAX, dblp_clr_change(1000000, 4295967295ULL));
	EXPECT_EQ(U32_MAX, dblp_clr_change(1000000, 4295967296ULL));
	EXPECT_EQ(4294000000U, dblp_clr_change(1, 4295));
	EXPECT_EQ(U32_MAX, dblp_clr_change(1, 4296));
	EXPECT_EQ(U32_MAX, dblp_clr_change(1, U64_MAX));
}

TEST(dblp_clr_change__is_exact_at_the_edges)
{
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		for (j = 0; j < ARRAY_SIZE(edges); j++)
			EXPECT_EQ(exact(edges[i], edges[j]),
				  dblp_clr_change(edges[i], edges[j]));
}

TEST(dblp_clr_change__is_exact_anywhere)
{
	struct prng r = { .state = 1 };
	u64 a, b;
	u32 i;

	for (i = 0; i < 1000000; i++) {
		a = prng_any(&r);
		/* Distant or close values, for which the result does not saturate */
		b = i & 1 ? prng_any(&r) : a + (prng_any(&r) & (a >> 1)) -
					   (prng_any(&r) & (a >> 2));
		ASSERT_EQ(exact(a, b), dblp_clr_change(a, b)) {
			TH_LOG("%llu, %llu", (unsigned long long)a,
			       (unsigned long long)b);
		}
	}
}

/*
 * The rule in exact arithmetic. It compares a product, not a quotient, because rounding
 * must not move the limit.
 */
static bool critical(u64 previous, u64 norm, u32 eta)
{
	unsigned __int128 diff = norm > previous ? norm - previous :
						   previous - norm;

	return diff * DBLP_PPM >= (unsigned __int128)eta * previous &&
	       (diff || !eta);
}

TEST(dblp_clr_report__follows_the_rule)
{
	struct dblp_clr clr = {};
	struct prng r = { .state = 2 };
	u64 previous, norm = 1;
	u32 i;

	dblp_clr_report(&clr, norm);
	for (i = 0; i < 1000000; i++) {
		previous = norm;
		norm = i % 3 ? previous + (prng_any(&r) & previous) -
			       (prng_any(&r) & (previous >> 1)) : prng_any(&r);
		clr.eta = prng_any(&r);
		/* As close to the limit as possible, on both sides */
		if (i % 5 == 0)
			clr.eta = exact(previous, norm) + i % 2;
		dblp_clr_report(&clr, norm);
		ASSERT_EQ(!critical(previous, norm, clr.eta), clr.tolerant) {
			TH_LOG("%llu, %llu, eta %u",
			       (unsigned long long)previous,
			       (unsigned long long)norm, clr.eta);
		}
		ASSERT_EQ(previous, clr.previous);
		ASSERT_EQ(norm, clr.norm);
	}
}

/*
 * Reports norms, given in thousandths. Writes each decision to @regimes as C or T, and
 * returns the number of changes.
 */
static u32 replay(struct dblp_clr *clr, const u32 *norms, u32 n, char *regimes)
{
	u32 i, changes = 0;

	for (i = 0; i < n; i++) {
		changes += dblp_clr_report(clr, norms[i] * ONE / 1000);
		regimes[i] = clr->tolerant ? 'T' : 'C';
	}
	regimes[n] = 0;
	return changes;
}

/*
 * The paper's pattern: the norm falls fast, becomes steady, and falls by more than half
 * again when the learning rate is reduced (epochs 10 and 16).
 */
static const u32 paper[] = {
	40000, 18000, 8000, 3900, 3000, 2600, 2400, 2300, 2250, 2200,
	1000, 980, 960, 950, 945, 940, 400, 395, 393, 392,
};

TEST(dblp_clr__the_pattern_of_the_paper)
{
	struct dblp_clr clr = { .eta = HALF };
	char regimes[ARRAY_SIZE(paper) + 1];

	dblp_clr_start(&clr);
	EXPECT_FALSE(clr.tolerant);
	EXPECT_EQ(5, replay(&clr, paper, ARRAY_SIZE(paper), regimes));
	EXPECT_STREQ("CCCCTTTTTTCTTTTTCTTT", regimes);
	EXPECT_EQ(ARRAY_SIZE(paper), clr.reports);
}

TEST(dblp_clr__stays_critical_for_the_hold_time)
{
	struct dblp_clr clr = { .eta = HALF, .hold = 2 };
	char regimes[ARRAY_SIZE(paper) + 1];

	EXPECT_EQ(5, replay(&clr, paper, ARRAY_SIZE(paper), regimes));
	EXPECT_STREQ("CCCCCCTTTTCCCTTTCCCT", regimes);

	/* A hold longer than the test */
	dblp_clr_start(&clr);
	clr.hold = U32_MAX;
	EXPECT_EQ(0, replay(&clr, paper, ARRAY_SIZE(paper), regimes));
	EXPECT_EQ(U32_MAX - 3, clr.left);
}

TEST(dblp_clr__each_critical_report_restarts_the_hold)
{
	static const u32 norms[] = { 100, 100, 400, 400, 100, 100, 100, 100 };
	struct dblp_clr clr = { .eta = HALF, .hold = 2 };
	char regimes[ARRAY_SIZE(norms) + 1];

	EXPECT_EQ(1, replay(&clr, norms, ARRAY_SIZE(norms), regimes));
	EXPECT_STREQ("CCCCCCCT", regimes);
}

TEST(dblp_clr__a_steady_norm_is_tolerant_at_once)
{
	static const u32 norms[] = { 7, 7, 7, 7 };
	struct dblp_clr clr = { .eta = 1 };
	char regimes[ARRAY_SIZE(norms) + 1];

	EXPECT_EQ(1, replay(&clr, norms, ARRAY_SIZE(norms), regimes));
	EXPECT_STREQ("CTTT", regimes);
	/* With eta 0 all reports are critical */
	dblp_clr_start(&clr);
	clr.eta = 0;
	EXPECT_EQ(0, replay(&clr, norms, ARRAY_SIZE(norms), regimes));
	EXPECT_STREQ("CCCC", regimes);
}

TEST(dblp_clr__a_norm_of_zero)
{
	static const u32 norms[] = { 0, 0, 1, 1, 0, 0, 5 };
	struct dblp_clr clr = { .eta = U32_MAX };
	char regimes[ARRAY_SIZE(norms) + 1];

	/* Growth from 0 exceeds any share */
	replay(&clr, norms, ARRAY_SIZE(norms), regimes);
	EXPECT_STREQ("CTCTTTC", regimes);
	clr = (struct dblp_clr){ .eta = DBLP_PPM };
	/* A fall to 0 is a change of 100 %, not more */
	replay(&clr, norms, ARRAY_SIZE(norms), regimes);
	EXPECT_STREQ("CTCTCTC", regimes);
}

TEST(dblp_clr_start__forgets_all_but_the_settings)
{
	struct dblp_clr clr = { .eta = HALF, .hold = 3 };

	dblp_clr_report(&clr, ONE);
	dblp_clr_report(&clr, ONE);
	clr.hold = 0;
	dblp_clr_report(&clr, ONE);
	dblp_clr_report(&clr, ONE);
	dblp_clr_report(&clr, ONE);
	EXPECT_TRUE(clr.tolerant);
	dblp_clr_start(&clr);
	EXPECT_FALSE(clr.tolerant);
	EXPECT_EQ(0, clr.norm + clr.previous + clr.change + clr.left +
		     clr.reports);
	EXPECT_EQ(HALF, clr.eta);
	/* The next report counts as the first one */
	EXPECT_FALSE(dblp_clr_report(&clr, ONE));
	EXPECT_FALSE(clr.tolerant);
}

TEST(dblp_clr_report__counter_saturates)
{
	struct dblp_clr clr = { .eta = HALF, .reports = U32_MAX, .norm = ONE };

	EXPECT_TRUE(dblp_clr_report(&clr, ONE));
	EXPECT_EQ(U32_MAX, clr.reports);
	EXPECT_TRUE(clr.tolerant);
}

TEST_HARNESS_MAIN
