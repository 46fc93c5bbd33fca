// SPDX-License-Identifier: GPL-2.0-only
/* From when on policy early uses a budget, and what it learns */
#include <linux/dblp.h>

#include "closing.h"
#include "early.h"
#include "recovery.h"
#include "test.h"

#define MS	1000000ULL
#define RTT	(4 * MS)
#define SEG	1000U

/* @n segments, one each millisecond, from @from on */
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

	/* 80 segments in 80 ms after the first one: all 100 take 100 ms */
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

	/* Which was a segment in a millisecond */
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
	/* No timer is finer */
	EXPECT_EQ(last + DBLP_GRANULARITY_NS,
		  dblp_early_at(&e, &r, 100 * SEG, 90 * SEG, 200, 1000));
	/* What says so a second time does not put it off */
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

TEST(dblp_early_late__is_borne_the_next_time)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {}, s = {};
	u64 last = arrive(&r, 1, 90);

	dblp_rx_timing_pass(&r, &e, 200, last);
	/* Ten packets and 3 ms behind one that was sent after it */
	dblp_early_late(&e, 195, 204, RTT, last + 3 * MS);
	EXPECT_EQ(10, e.reorder);
	EXPECT_EQ(3 * MS, e.straggler_ns);

	last = arrive(&s, 1000 * MS, 90);
	dblp_rx_timing_pass(&s, &e, 400, last);
	EXPECT_EQ(last + 3 * MS + RTT / 4,
		  dblp_early_at(&e, &s, 100 * SEG, 90 * SEG, 409, RTT));
	EXPECT_EQ(last, dblp_early_at(&e, &s, 100 * SEG, 90 * SEG, 410, RTT));
}

TEST(dblp_early_late__has_bounds)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	arrive(&r, 1, 90);
	dblp_rx_timing_pass(&r, &e, 1 << 20, 100 * MS);
	dblp_early_late(&e, 0, 1 << 20, RTT, 1000000 * MS);
	EXPECT_EQ(DBLP_REORDER_MAX, e.reorder);
	EXPECT_EQ(RTT, e.straggler_ns);
}

TEST(dblp_early_late__is_forgotten)
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

TEST(dblp_early_done__up_at_once_down_slowly)
{
	struct dblp_early e = {};
	struct dblp_rx_timing r = {};

	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 101 * SEG, RTT);
	EXPECT_EQ(1000 * 1000, e.rate);

	/* Half as fast */
	r = (struct dblp_rx_timing) {};
	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 51 * SEG, RTT);
	EXPECT_EQ(1000 * 1000 - 500 * 1000 / 8, e.rate);

	r = (struct dblp_rx_timing) {};
	arrive(&r, 1, 101);
	dblp_early_done(&e, &r, 201 * SEG, RTT);
	EXPECT_EQ(2000 * 1000, e.rate);
}

TEST(dblp_early_done__bursts_tell_nothing)
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

/* Whatever it is given, UBSan finds nothing, and no time lies before its cause */
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
			dblp_early_late(&e, prng_below(&p, e.pass_pn),
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
	EXPECT_EQ(100, dblp_first_pass(100, 1000, 100000, 0, DBLP_PPM,
				       DBLP_POLICY_EARLY, 0));
}

TEST_HARNESS_MAIN
