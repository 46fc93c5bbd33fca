// SPDX-License-Identifier: GPL-2.0-only
/* The bound: what is forgiven never exceeds the budget, not by one byte */
#include <linux/dblp.h>

#include "closing.h"
#include "test.h"

static const u32 lengths[] = {
	1, 2, 7, 8, 99, 100, 101, 1000, 1400, 4096, 65536, 999999, 1000000,
	1000001, 16 << 20, DBLP_MSG_MAX - 1, DBLP_MSG_MAX,
};

static const u32 budgets[] = {
	0, 1, 2, 9, 8000, 333333, 408000, 500000, 999999, DBLP_PPM,
};

/* Is @bytes out of @droppable within @budget, in exact arithmetic? */
static bool within(u64 bytes, u32 budget, u32 droppable)
{
	return bytes * DBLP_PPM <= (u64)budget * droppable;
}

TEST(dblp_budget_bytes__is_the_floor)
{
	const u32 *l, *b;

	for (l = lengths; l < lengths + ARRAY_SIZE(lengths); l++) {
		for (b = budgets; b < budgets + ARRAY_SIZE(budgets); b++) {
			u32 bytes = dblp_budget_bytes(*b, *l);

			EXPECT_TRUE(within(bytes, *b, *l));
			EXPECT_FALSE(within(bytes + 1ULL, *b, *l));
		}
		EXPECT_EQ(0, dblp_budget_bytes(0, *l));
		EXPECT_EQ(*l, dblp_budget_bytes(DBLP_PPM, *l));
	}
	EXPECT_EQ(0, dblp_budget_bytes(DBLP_PPM, 0));
}

TEST(dblp_budget_bytes__never_more_than_all)
{
	EXPECT_EQ(1000, dblp_budget_bytes(DBLP_PPM + 1, 1000));
	EXPECT_EQ(DBLP_MSG_MAX, dblp_budget_bytes(U32_MAX, DBLP_MSG_MAX));
}

static enum dblp_verdict decide(u32 length, u32 missing, u32 critical,
				u32 budget)
{
	struct dblp_close_state s = {
		.length = length, .missing = missing, .critical = critical,
		.budget = budget, .policy = DBLP_POLICY_EAGER,
	};

	return dblp_close_decide(&s);
}

TEST(dblp_close_decide__complete)
{
	struct dblp_close_state s = { .length = 100 };

	EXPECT_EQ(DBLP_CLOSE_COMPLETE, dblp_close_decide(&s));
	s.policy = DBLP_POLICY_EAGER;
	EXPECT_EQ(DBLP_CLOSE_COMPLETE, dblp_close_decide(&s));
	s.budget = DBLP_PPM;
	EXPECT_EQ(DBLP_CLOSE_COMPLETE, dblp_close_decide(&s));
}

/* Each length, each budget, each critical prefix: around the edge */
TEST(dblp_close_decide__never_beyond_the_budget)
{
	const u32 *l, *b, *c;

	for (l = lengths; l < lengths + ARRAY_SIZE(lengths); l++) {
		for (c = lengths; c < lengths + ARRAY_SIZE(lengths); c++) {
			u32 critical = *c < *l ? *c : *l;
			u32 droppable = *l - critical;

			for (b = budgets; b < budgets + ARRAY_SIZE(budgets); b++) {
				u64 edge = (u64)*b * droppable / DBLP_PPM;
				u64 m = edge > 3 ? edge - 3 : 1;

				for (; m <= edge + 3 && m <= *l; m++)
					EXPECT_EQ(within(m, *b, droppable) ?
						  DBLP_CLOSE_BUDGET : DBLP_WAIT,
						  decide(*l, m, critical, *b));
			}
		}
	}
}

TEST(dblp_close_decide__all_of_a_small_message)
{
	u32 length, missing, critical, budget;

	for (length = 1; length < 24; length++)
		for (missing = 1; missing <= length; missing++)
			for (critical = 0; critical <= length; critical++)
				for (budget = 0; budget <= DBLP_PPM;
				     budget += 12500)
					ASSERT_EQ(within(missing, budget,
							 length - critical) ?
						  DBLP_CLOSE_BUDGET : DBLP_WAIT,
						  decide(length, missing,
							 critical, budget));
}

TEST(dblp_close_decide__budget_zero)
{
	EXPECT_EQ(DBLP_WAIT, decide(DBLP_MSG_MAX, 1, 0, 0));
	EXPECT_EQ(DBLP_WAIT, decide(1, 1, 0, 0));
}

TEST(dblp_close_decide__critical)
{
	struct dblp_close_state s = {
		.length = 1000, .missing = 1, .critical = 10,
		.critical_missing = true, .budget = DBLP_PPM,
		.policy = DBLP_POLICY_EAGER,
	};

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	s.critical_missing = false;
	EXPECT_EQ(DBLP_CLOSE_BUDGET, dblp_close_decide(&s));
	/* All of it is critical, and more: nothing can be dropped */
	s.critical = 1000;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	s.critical = U32_MAX;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
}

TEST(dblp_close_decide__meta)
{
	struct dblp_close_state s = {
		.length = 1000, .meta_missing = true, .budget = DBLP_PPM,
		.policy = DBLP_POLICY_EAGER,
	};

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	s.missing = 10;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	s.meta_missing = false;
	EXPECT_EQ(DBLP_CLOSE_BUDGET, dblp_close_decide(&s));
}

/* A deadline exceeds any budget, but spares what is critical */
TEST(dblp_close_decide__deadline)
{
	struct dblp_close_state s = {
		.length = 1000, .missing = 999, .critical = 10,
		.policy = DBLP_POLICY_FULL, .deadline_at = 500, .now = 499,
	};

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(500, dblp_close_again(&s));
	s.now = 500;
	EXPECT_EQ(DBLP_CLOSE_DEADLINE, dblp_close_decide(&s));
	s.critical_missing = true;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
	s.critical_missing = false;
	s.meta_missing = true;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
	s.meta_missing = false;
	s.missing = 0;
	EXPECT_EQ(DBLP_CLOSE_COMPLETE, dblp_close_decide(&s));
}

TEST(dblp_close_decide__deadline_and_budget)
{
	struct dblp_close_state s = {
		.length = 1000, .missing = 100, .budget = 100000,
		.policy = DBLP_POLICY_EARLY, .deadline_at = 500,
		.early_at = 700, .now = 400,
	};

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(500, dblp_close_again(&s));
	s.now = 500;
	EXPECT_EQ(DBLP_CLOSE_DEADLINE, dblp_close_decide(&s));
	s.early_at = 450;
	EXPECT_EQ(450, dblp_close_again(&s));
	EXPECT_EQ(DBLP_CLOSE_BUDGET, dblp_close_decide(&s));
	s.missing = 101;
	EXPECT_EQ(DBLP_CLOSE_DEADLINE, dblp_close_decide(&s));
	s.deadline_at = 0;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
}

TEST(dblp_close_decide__full)
{
	struct dblp_close_state s = {
		.length = 1000, .missing = 1, .budget = DBLP_PPM,
		.policy = DBLP_POLICY_FULL,
	};

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	/* Nor does a policy that does not exist forgive anything */
	s.policy = __DBLP_POLICY_MAX;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
}

/* Can a message close when all segments but any @held have arrived? The worst
 * are held back: full ones that are not critical.
 */
static bool suffices(u32 held, u32 seg_size, u32 length, u32 critical,
		     u32 budget)
{
	u32 n = (length - 1) / seg_size + 1;
	u32 crit_segs = critical ? (critical - 1) / seg_size + 1 : 0;
	u64 missing = (u64)held * seg_size;

	if (!held)
		return true;
	if (held > n - crit_segs)
		return false;
	if (held == n - crit_segs)
		missing = length - (u64)crit_segs * seg_size;
	return decide(length, missing, critical, budget) == DBLP_CLOSE_BUDGET;
}

TEST(dblp_first_pass__suffices_and_no_more)
{
	struct prng r = { 31 };
	u32 i;

	for (i = 0; i < 200000; i++) {
		u32 seg_size = 256 + prng_any(&r) % 65000;
		u32 length = 1 + prng_any(&r) % DBLP_MSG_MAX;
		u32 critical = prng_below(&r, 2) ? 0 : prng_any(&r) % length;
		u32 budget = prng_any(&r) % (DBLP_PPM + 1);
		u32 n = (length - 1) / seg_size + 1;
		u32 pass = dblp_first_pass(n, seg_size, length, critical,
					   budget, DBLP_POLICY_EAGER, 0);

		ASSERT_GE(pass, 1);
		ASSERT_LE(pass, n);
		ASSERT_TRUE(suffices(n - pass, seg_size, length, critical,
				     budget));
		/* One fewer would not be enough, whichever is left out */
		if (pass > 1) {
			u64 held = n - pass + 1ULL;

			ASSERT_FALSE(within(held * seg_size, budget,
					    length - critical));
		}
	}
}

/* Whatever the order, no segment can be missing of what need not have one */
TEST(dblp_may_miss__what_may_close_without_a_segment)
{
	struct prng r = { 37 };
	u32 i, may = 0;

	for (i = 0; i < 200000; i++) {
		u32 seg_size = 256 + prng_any(&r) % 3000;
		u32 length = 1 + prng_any(&r) % 20000;
		u32 critical = prng_below(&r, 2) ? 0 :
						   prng_below(&r, length + 1);
		u32 budget = prng_below(&r, 2) ? prng_below(&r, DBLP_PPM + 1) :
						 prng_below(&r, 50000);
		u32 n = (length - 1) / seg_size + 1, seg;
		bool any = false;

		for (seg = 0; seg < n; seg++) {
			u32 at = seg * seg_size;
			u32 len = length - at < seg_size ? length - at :
							   seg_size;

			any |= at >= critical &&
			       decide(length, len, critical, budget) ==
			       DBLP_CLOSE_BUDGET;
		}
		ASSERT_EQ(any, dblp_may_miss(seg_size, length, critical,
					     budget));
		may += any;
	}
	/* Neither is rare */
	EXPECT_LT(20000, may);
	EXPECT_GT(180000, may);
}

TEST(dblp_may_miss__edges)
{
	/* 2 % of 3000 are 60 bytes, and the last of three has 120 */
	EXPECT_FALSE(dblp_may_miss(1440, 3000, 0, 20000));
	EXPECT_TRUE(dblp_may_miss(1440, 2880 + 60, 0, 20409));
	EXPECT_FALSE(dblp_may_miss(1440, 2880 + 60, 0, 20408));
	/* What is critical does not count, nor may it be missing */
	EXPECT_FALSE(dblp_may_miss(1000, 3000, 2001, DBLP_PPM));
	EXPECT_TRUE(dblp_may_miss(1000, 3000, 2000, DBLP_PPM));
	EXPECT_FALSE(dblp_may_miss(1000, 3000, 2000, DBLP_PPM - 1));
	EXPECT_TRUE(dblp_may_miss(1000, 100, 0, DBLP_PPM));
	EXPECT_FALSE(dblp_may_miss(1000, 100, 0, DBLP_PPM - 1));
	EXPECT_FALSE(dblp_may_miss(1000, 100, 0, 0));
}

TEST(dblp_first_pass__without_budget)
{
	EXPECT_EQ(100, dblp_first_pass(100, 1000, 100000, 0, 0,
				       DBLP_POLICY_EAGER, 0));
	EXPECT_EQ(100, dblp_first_pass(100, 1000, 100000, 0, DBLP_PPM,
				       DBLP_POLICY_FULL, 0));
	EXPECT_EQ(1, dblp_first_pass(1, 1000, 10, 0, 0, DBLP_POLICY_EAGER, 0));
}

TEST(dblp_first_pass__edges)
{
	/* 40.8 % of 100 segments: 40 can stay away */
	EXPECT_EQ(60, dblp_first_pass(100, 1000, 100000, 0, 408000,
				      DBLP_POLICY_EAGER, 0));
	EXPECT_EQ(1, dblp_first_pass(100, 1000, 100000, 0, DBLP_PPM,
				     DBLP_POLICY_EAGER, 0));
	/* The prefix counts in whole segments */
	EXPECT_EQ(2, dblp_first_pass(100, 1000, 100000, 1001, DBLP_PPM,
				     DBLP_POLICY_EAGER, 0));
	EXPECT_EQ(100, dblp_first_pass(100, 1000, 100000, 100000, DBLP_PPM,
				       DBLP_POLICY_EAGER, 0));
	EXPECT_EQ(100, dblp_first_pass(100, 1000, 100000, U32_MAX, DBLP_PPM,
				       DBLP_POLICY_EAGER, 0));
}

/* What is likely to be lost is sent at once, but no more than there is */
TEST(dblp_first_pass__expects_loss)
{
	static const struct { u32 n, budget, loss, pass; } at[] = {
		{ 70, 20000, 0, 69 },
		{ 70, 20000, 1000, 69 },
		{ 70, 20000, 10000, 70 },
		{ 1000, 20000, 10000, 990 },
		{ 1000, 20000, 50000, 1000 },
		{ 1000, 500000, 100000, 556 },
		{ 1000, 600000, DBLP_PPM, 800 },
		{ 1000, DBLP_PPM, 400000, 2 },
		{ 1, DBLP_PPM, 900000, 1 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(at); i++)
		EXPECT_EQ(at[i].pass,
			  dblp_first_pass(at[i].n, 1000, at[i].n * 1000, 0,
					  at[i].budget, DBLP_POLICY_EAGER,
					  at[i].loss)) {
			TH_LOG("%u", i);
		}
}

TEST_HARNESS_MAIN
