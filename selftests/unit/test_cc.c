// SPDX-License-Identifier: GPL-2.0-only
/* The table of congestion controls */
#include <linux/dblp.h>

#include "cc.h"
#include "test.h"

TEST(dblp_cc_at__all_are_complete)
{
	const struct dblp_cc_ops *ops;
	u32 i;

	for (i = 0; (ops = dblp_cc_at(i)); i++) {
		EXPECT_GT(strlen(ops->name), 0);
		EXPECT_LT(strlen(ops->name), DBLP_CC_NAME_MAX);
		EXPECT_NE(NULL, ops->init);
		EXPECT_NE(NULL, ops->ack);
		/* Names are unique */
		EXPECT_EQ(ops, dblp_cc_find(ops->name));
	}
	EXPECT_GT(i, 0);
	EXPECT_EQ(NULL, dblp_cc_at(i + 1));
	EXPECT_EQ(NULL, dblp_cc_at(U32_MAX));
}

TEST(dblp_cc_find__unknown)
{
	EXPECT_EQ(NULL, dblp_cc_find(""));
	EXPECT_EQ(NULL, dblp_cc_find("sqr"));
	EXPECT_EQ(NULL, dblp_cc_find("sqrtt"));
}

TEST(dblp_cc_start__initialises_all_state)
{
	const struct dblp_cc_ops *ops;
	struct dblp_cc a, b;
	u32 i;

	memset(&a, 0, sizeof(a));
	memset(&b, 0xff, sizeof(b));
	for (i = 0; (ops = dblp_cc_at(i)); i++) {
		dblp_cc_start(&a, ops, 1400, 1000);
		dblp_cc_start(&b, ops, 1400, 1000);
		EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)));
		EXPECT_EQ(ops, a.ops);
		EXPECT_EQ(1400, a.mss);
		EXPECT_GE(a.cwnd, 2 * 1400);
	}
}

static void no_init(struct dblp_cc *cc, u32 mss, u64 now)
{
}

static const struct dblp_cc_ops paced_only = { .init = no_init };

static void paced(struct dblp_cc *cc, struct dblp_rtt *rtt, u64 rate)
{
	*rtt = (struct dblp_rtt) { .latest = 1000000, .srtt = 1000000 };
	dblp_cc_start(cc, &paced_only, 1000, 1);
	cc->cwnd = 10000;
	cc->pacing_rate = rate;
}

static u64 pto(const struct dblp_cc *cc, const struct dblp_rtt *rtt, u32 count)
{
	return dblp_cc_pto(cc, rtt, 0, count, 0);
}

/* A hundred flows must not refill a full queue by their probes */
TEST(dblp_cc_pto__does_not_go_round_the_pacer)
{
	struct dblp_rtt rtt;
	struct dblp_cc cc;

	paced(&cc, &rtt, 100000);
	EXPECT_EQ(10000000, dblp_cc_gap(&cc));
	EXPECT_EQ(30000000, pto(&cc, &rtt, 0));
	EXPECT_EQ(1, dblp_cc_probes(&cc, &rtt, 1));
	paced(&cc, &rtt, 1000000);
	EXPECT_EQ(3000000, pto(&cc, &rtt, 0));
	EXPECT_EQ(pto(&cc, &rtt, 0), pto(&cc, &rtt, 6));
	paced(&cc, &rtt, 10000000);
	EXPECT_EQ(dblp_pto(&rtt, 0, 0), pto(&cc, &rtt, 0));
	EXPECT_EQ(2, dblp_cc_probes(&cc, &rtt, 2));
	EXPECT_EQ(1, dblp_cc_probes(&cc, &rtt, 3));
	paced(&cc, &rtt, 1);
	EXPECT_EQ(DBLP_PTO_MAX_NS, pto(&cc, &rtt, 0));
	paced(&cc, &rtt, 0);
	EXPECT_EQ(dblp_pto(&rtt, 0, 0), pto(&cc, &rtt, 0));
	EXPECT_EQ(2, dblp_cc_probes(&cc, &rtt, 1));
}

/* During a burst, missing data is probed at the pacer's rate, for a limited time */
TEST(dblp_cc_pto__does_not_back_off_in_a_burst)
{
	struct dblp_rtt rtt;
	struct dblp_cc cc;
	u32 i;

	paced(&cc, &rtt, 10000000);
	cc.holding = true;
	EXPECT_EQ(rtt.srtt + 4 * rtt.var, pto(&cc, &rtt, 0));
	EXPECT_LT(pto(&cc, &rtt, 0), dblp_pto(&rtt, 0, 0));
	for (i = 1; i < DBLP_CC_HELD_PROBES; i++)
		EXPECT_EQ(300000, pto(&cc, &rtt, i));
	EXPECT_EQ(dblp_pto(&rtt, 0, 0), pto(&cc, &rtt, i));
	EXPECT_EQ(dblp_pto(&rtt, 0, 1000000000),
		  dblp_cc_pto(&cc, &rtt, 0, i, 1000000000));
	EXPECT_LT(pto(&cc, &rtt, i), dblp_cc_pto(&cc, &rtt, 0, i, 1000000000));
}

TEST(dblp_pace_next__makes_up_for_a_late_timer)
{
	const u32 us = 1000;
	u64 late = 0, next;

	/* 1500 bytes at 15 MB/s: 100 us */
	next = dblp_pace_next(1000 * us, 1000 * us, 1500, 15000000, &late);
	EXPECT_EQ(1100 * us, next);
	/* Earlier than its time */
	next = dblp_pace_next(next, 1050 * us, 1500, 15000000, &late);
	EXPECT_EQ(1200 * us, next);
	/*
	 * 70 us late: this packet makes up for 50, the next one for 20; all are sent by
	 * 1400
	 */
	late = 70 * us;
	next = dblp_pace_next(next, 1270 * us, 1500, 15000000, &late);
	EXPECT_EQ(1320 * us, next);
	next = dblp_pace_next(next, 1320 * us, 1500, 15000000, &late);
	EXPECT_EQ(1400 * us, next);
	EXPECT_EQ(0, late);
	/* The sender had no data, so no timer was late */
	EXPECT_EQ(2100 * us, dblp_pace_next(next, 2000 * us, 1500, 15000000,
					    &late));
}

/* Without ACKs the window opens for a while, but not forever */
TEST(dblp_cc_window__opens_in_silence)
{
	struct dblp_rtt rtt;
	struct dblp_cc cc;
	u64 at;
	u32 i;

	paced(&cc, &rtt, 10000000);
	EXPECT_EQ(10000, dblp_cc_window(&cc, &rtt, 5, 1000005));
	for (i = 1; i <= DBLP_CC_SILENT_PKTS; i++) {
		at = dblp_cc_opens_at(&cc, &rtt, 5, 9000 + i * 1000);
		EXPECT_EQ(1000005 + i * 100000, at);
		EXPECT_EQ(10000 + i * 1000,
			  dblp_cc_window(&cc, &rtt, 5, at));
		EXPECT_GT(10000 + i * 1000,
			  dblp_cc_window(&cc, &rtt, 5, at - 1));
	}
	EXPECT_EQ(U64_MAX, dblp_cc_opens_at(&cc, &rtt, 5, 9000 + i * 1000));
	EXPECT_EQ(10000 + DBLP_CC_SILENT_PKTS * 1000,
		  dblp_cc_window(&cc, &rtt, 5, U64_MAX));
	/* A sender without a pacing rate, or before the first ACK, waits */
	cc.pacing_rate = 0;
	EXPECT_EQ(10000, dblp_cc_window(&cc, &rtt, 5, U64_MAX));
	/* At less than 1 ns per packet the sender waits for ACKs: its timer would
	 * expire at once, again and again
	 */
	cc.pacing_rate = U64_MAX;
	EXPECT_EQ(10000, dblp_cc_window(&cc, &rtt, 5, U64_MAX));
	EXPECT_EQ(U64_MAX, dblp_cc_opens_at(&cc, &rtt, 5, 10000));
	paced(&cc, &rtt, 10000000);
	rtt.latest = 0;
	EXPECT_EQ(10000, dblp_cc_window(&cc, &rtt, 5, U64_MAX));
}

TEST_HARNESS_MAIN
