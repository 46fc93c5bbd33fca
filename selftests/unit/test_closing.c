// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bound: missing bytes never exceed the budget. Also policy early: when it uses a
 * budget, and what it learns.
 */
#include <linux/dblp.h>

#include "closing.h"
#include "recovery.h"
#include "test.h"
#include "values.h"

#define MS	1000000ULL
#define RTT	(4 * MS)
#define SEG	1000U

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

/* All lengths, budgets and critical prefixes around the limit */
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
	/* The critical prefix covers the whole message: nothing can be dropped */
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

/* A deadline overrides any budget, but not the critical prefix */
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
	/* An unknown policy forgives nothing */
	s.policy = __DBLP_POLICY_MAX;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
}

/* Can a message close if any @held segments are missing? The worst case is full
 * segments that are not critical.
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
		/* One segment fewer is not enough, whichever is left out */
		if (pass > 1) {
			u64 held = n - pass + 1ULL;

			ASSERT_FALSE(within(held * seg_size, budget,
					    length - critical));
		}
	}
}

/* A message that cannot close without some segment never misses one */
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
	/* Both results are frequent */
	EXPECT_LT(20000, may);
	EXPECT_GT(180000, may);
}

TEST(dblp_may_miss__edges)
{
	/* 2 % of 3000 are 60 bytes, but the last of three segments has 120 */
	EXPECT_FALSE(dblp_may_miss(1440, 3000, 0, 20000));
	EXPECT_TRUE(dblp_may_miss(1440, 2880 + 60, 0, 20409));
	EXPECT_FALSE(dblp_may_miss(1440, 2880 + 60, 0, 20408));
	/* Critical bytes do not count and must not be missing */
	EXPECT_FALSE(dblp_may_miss(1000, 3000, 2001, DBLP_PPM));
	EXPECT_TRUE(dblp_may_miss(1000, 3000, 2000, DBLP_PPM));
	EXPECT_FALSE(dblp_may_miss(1000, 3000, 2000, DBLP_PPM - 1));
	EXPECT_TRUE(dblp_may_miss(1000, 100, 0, DBLP_PPM));
	EXPECT_FALSE(dblp_may_miss(1000, 100, 0, DBLP_PPM - 1));
	EXPECT_FALSE(dblp_may_miss(1000, 100, 0, 0));
}

/* Of 100 segments of 1000 bytes */
#define EXPECT_PASS(want, critical, budget, policy, loss) \
	EXPECT_EQ(want, dblp_first_pass(100, 1000, 100000, critical, budget, \
					DBLP_POLICY_##policy, loss))

TEST(dblp_first_pass__without_budget)
{
	EXPECT_PASS(100, 0, 0, EAGER, 0);
	EXPECT_PASS(100, 0, DBLP_PPM, FULL, 0);
	EXPECT_EQ(1, dblp_first_pass(1, 1000, 10, 0, 0, DBLP_POLICY_EAGER, 0));
}

TEST(dblp_first_pass__edges)
{
	/* 40.8 % of 100 segments: 40 may be missing */
	EXPECT_PASS(60, 0, 408000, EAGER, 0);
	EXPECT_PASS(1, 0, DBLP_PPM, EAGER, 0);
	/* The prefix counts as whole segments */
	EXPECT_PASS(2, 1001, DBLP_PPM, EAGER, 0);
	EXPECT_PASS(100, 100000, DBLP_PPM, EAGER, 0);
	EXPECT_PASS(100, U32_MAX, DBLP_PPM, EAGER, 0);
}

/* Segments for expected losses are sent at once, up to all segments */
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

/* @n segments arrive, one per ms, from @from on */
static u64 arrive(struct dblp_rx_timing *r, u64 from, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		dblp_rx_timing_segment(r, SEG, from + i * MS);
	return from + (n - 1) * MS;
}

TEST(dblp_early_at__expects_the_rate_so_far)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};
	u64 last = arrive(&r, 100 * MS, 81);

	/* 80 segments in 80 ms after the first one: 100 take 100 ms */
	EXPECT_EQ(180 * MS, last);
	EXPECT_EQ(100 * MS + 100 * MS + RTT + RTT / 2,
		  dblp_early_at(&e, &r, 100 * SEG, 81 * SEG, 0, RTT));
}

TEST(dblp_early_at__with_one_segment)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	arrive(&r, 7, 1);
	EXPECT_EQ(7 + RTT + RTT / 2,
		  dblp_early_at(&e, &r, DBLP_MSG_MAX, SEG, 0, RTT));
}

TEST(dblp_early_at__expects_the_rate_of_earlier_messages)
{
	struct dblp_early e = { .rate = 1000 * 1000 };
	struct dblp_rx_timing r = {};

	/* Earlier messages had a segment per ms */
	dblp_rx_timing_segment(&r, SEG, 5 * MS);
	dblp_rx_timing_segment(&r, SEG, 500 * MS);
	EXPECT_EQ(5 * MS + 100 * MS + RTT + RTT / 2,
		  dblp_early_at(&e, &r, 100 * SEG, 2 * SEG, 0, RTT));
}

TEST(dblp_early_at__after_the_first_pass_by_time)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};
	u64 last = arrive(&r, 1, 90);

	dblp_rx_timing_pass(&r, &e, 200, last);
	EXPECT_EQ(last + RTT / 4,
		  dblp_early_at(&e, &r, 100 * SEG, 90 * SEG, 200, RTT));
	/* The granularity of timers is the minimum */
	EXPECT_EQ(last + DBLP_GRANULARITY_NS,
		  dblp_early_at(&e, &r, 100 * SEG, 90 * SEG, 200, 1000));
	/* A second indication does not delay it */
	dblp_rx_timing_pass(&r, &e, 201, last + MS);
	EXPECT_EQ(last + RTT / 4,
		  dblp_early_at(&e, &r, 100 * SEG, 90 * SEG, 201, RTT));
}

TEST(dblp_early_at__after_the_first_pass_by_packets)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};
	u64 last = arrive(&r, 1, 90);

	dblp_rx_timing_pass(&r, &e, 200, last);
	EXPECT_LT(last, dblp_early_at(&e, &r, 100 * SEG, 90 * SEG,
				      200 + DBLP_REORDER_MIN - 1, RTT));
	EXPECT_GE(last, dblp_early_at(&e, &r, 100 * SEG, 90 * SEG,
				      200 + DBLP_REORDER_MIN, RTT));
}

TEST(dblp_early_passed__once)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	EXPECT_FALSE(dblp_early_passed(&e, 1000));
	arrive(&r, 1, 90);
	dblp_rx_timing_pass(&r, &e, 200, 90 * MS);
	EXPECT_FALSE(dblp_early_passed(&e, 199));
	EXPECT_FALSE(dblp_early_passed(&e, 200 + DBLP_REORDER_MIN - 1));
	EXPECT_TRUE(dblp_early_passed(&e, 200 + DBLP_REORDER_MIN));
	EXPECT_FALSE(dblp_early_passed(&e, 200 + DBLP_REORDER_MIN));
}

TEST(dblp_early_straggler__is_waited_for_the_next_time)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {}, s = {};
	u64 last = arrive(&r, 1, 90);

	dblp_rx_timing_pass(&r, &e, 200, last);
	/* 3 ms and ten packets after a packet that was sent later */
	dblp_early_straggler(&e, 195, 204, RTT, last + 3 * MS);
	EXPECT_EQ(10, e.reorder);
	EXPECT_EQ(3 * MS, e.straggler_ns);

	last = arrive(&s, 1000 * MS, 90);
	dblp_rx_timing_pass(&s, &e, 400, last);
	EXPECT_EQ(last + 3 * MS + RTT / 4,
		  dblp_early_at(&e, &s, 100 * SEG, 90 * SEG, 409, RTT));
	EXPECT_EQ(last, dblp_early_at(&e, &s, 100 * SEG, 90 * SEG, 410, RTT));
}

TEST(dblp_early_straggler__is_bounded)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	arrive(&r, 1, 90);
	dblp_rx_timing_pass(&r, &e, 1 << 20, 100 * MS);
	dblp_early_straggler(&e, 0, 1 << 20, RTT, 1000000 * MS);
	EXPECT_EQ(DBLP_REORDER_MAX, e.reorder);
	EXPECT_EQ(RTT, e.straggler_ns);
}

TEST(dblp_early_straggler__is_forgotten)
{
	struct dblp_early e = { .reorder = 80, .straggler_ns = 8 * MS };
	u32 i;

	for (i = 1; i <= 20 * DBLP_EARLY_CALM; i++) {
		struct dblp_rx_timing r = {};

		dblp_rx_timing_pass(&r, &e, i, i);
		if (i == DBLP_EARLY_CALM - 1)
			EXPECT_EQ(80, e.reorder);
		if (i == DBLP_EARLY_CALM) {
			EXPECT_EQ(40, e.reorder);
			EXPECT_EQ(4 * MS, e.straggler_ns);
		}
	}
	EXPECT_LT(e.reorder, DBLP_REORDER_MIN);
	EXPECT_LT(e.straggler_ns, 100);
}

TEST(dblp_early_done__rises_at_once_and_falls_slowly)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 101 * SEG, RTT);
	EXPECT_EQ(1000 * 1000, e.rate);

	/* At half the rate */
	r = (struct dblp_rx_timing) {};
	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 51 * SEG, RTT);
	EXPECT_EQ(1000 * 1000 - 500 * 1000 / 8, e.rate);

	r = (struct dblp_rx_timing) {};
	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 201 * SEG, RTT);
	EXPECT_EQ(2000 * 1000, e.rate);
}

TEST(dblp_early_done__a_burst_gives_no_rate)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	dblp_rx_timing_segment(&r, SEG, MS);
	dblp_early_done(&e, &r, SEG, 0);
	EXPECT_EQ(0, e.rate);
	dblp_rx_timing_segment(&r, SEG, MS);
	dblp_early_done(&e, &r, 2 * SEG, 0);
	EXPECT_EQ(0, e.rate);
	dblp_rx_timing_segment(&r, SEG, MS + RTT - 1);
	dblp_early_done(&e, &r, 3 * SEG, RTT);
	EXPECT_EQ(0, e.rate);
	dblp_rx_timing_segment(&r, SEG, MS + RTT);
	dblp_early_done(&e, &r, 4 * SEG, RTT);
	EXPECT_EQ(750 * 1000, e.rate);
}

/* Any numbers cause no undefined behaviour, and no time before its cause */
TEST(dblp_early__any_numbers)
{
	struct prng p = { 77 };
	u32 i;

	for (i = 0; i < 300000; i++) {
		struct dblp_early e = {
			.rate = prng_any(&p) >> 20,
			.straggler_ns = prng_any(&p) >> 24,
			.reorder = prng_any(&p) % (DBLP_REORDER_MAX + 1),
		};
		u32 first = 1 + prng_below(&p, 65528);
		u64 t = 1 + (prng_any(&p) >> 2), rtt = prng_any(&p) >> 24;
		u32 length = first + prng_any(&p) % (DBLP_MSG_MAX - first);
		u32 received = first + prng_any(&p) % (length - first + 1);
		struct dblp_rx_timing r = {};
		u64 at;

		dblp_rx_timing_segment(&r, first, t);
		t += prng_any(&p) >> 4;
		dblp_rx_timing_segment(&r, first, t);
		if (prng_below(&p, 2))
			dblp_rx_timing_pass(&r, &e, prng_any(&p), t);
		at = dblp_early_at(&e, &r, length, received, prng_any(&p), rtt);
		ASSERT_GE(at, r.first_at);
		dblp_early_done(&e, &r, received, rtt);
		if (e.pass_pn)
			dblp_early_straggler(&e, prng_below(&p, e.pass_pn),
					e.pass_pn, rtt, t + prng_any(&p) / 16);
		ASSERT_LE(e.reorder, DBLP_REORDER_MAX);
	}
}

static struct dblp_close_state early(u32 missing, u64 now, u64 at)
{
	return (struct dblp_close_state) {
		.length = 1000, .missing = missing, .budget = 100000,
		.policy = DBLP_POLICY_EARLY, .now = now, .early_at = at,
	};
}

TEST(dblp_close_decide__early)
{
	struct dblp_close_state s = early(100, 99, 100);

	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(100, dblp_close_again(&s));
	s.now = 100;
	EXPECT_EQ(DBLP_CLOSE_BUDGET, dblp_close_decide(&s));
	s = early(101, 1000, 100);
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
	s = early(0, 0, 100);
	EXPECT_EQ(DBLP_CLOSE_COMPLETE, dblp_close_decide(&s));
	s = early(1, 1000, 100);
	s.critical_missing = true;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
	s = early(1, 1000, 100);
	s.meta_missing = true;
	EXPECT_EQ(DBLP_WAIT, dblp_close_decide(&s));
	EXPECT_EQ(0, dblp_close_again(&s));
}

TEST(dblp_first_pass__early_is_everything)
{
	EXPECT_PASS(100, 0, DBLP_PPM, EARLY, 0);
}

TEST_HARNESS_MAIN
