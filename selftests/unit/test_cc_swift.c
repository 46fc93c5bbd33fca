// SPDX-License-Identifier: GPL-2.0-only
/* What the congestion control by delay and marks promises */
#include <linux/minmax.h>

#include "sim.h"
#include "test.h"

static void path_init(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss)
{
	u32 i;

	sim_path(s, n, mbit, rtt, loss);
	for (i = 0; i < n; i++)
		s->flow[i].ops = &dblp_cc_swift;
}

TEST(swift__fills_a_link_whatever_is_lost)
{
	u32 loss, rtt;
	struct sim s;

	for (loss = 0; loss <= 50000; loss += 10000) {
		for (rtt = 100; rtt <= 1000; rtt += 300) {
			path_init(&s, 1, 100, rtt * SIM_US, loss);
			sim_run(&s, SIM_S / 2);
			EXPECT_GE(sim_share(&s, 0, SIM_S), 950);
			sim_free(&s);
		}
	}
}

/* A queue of half a millisecond, and of what marks allow if that is less */
TEST(swift__keeps_the_queue_short)
{
	struct sim s;
	u32 delay;

	path_init(&s, 1, 1000, 100 * SIM_US, 0);
	sim_run(&s, SIM_S / 2);
	delay = sim_mean_queue(&s, SIM_S);
	EXPECT_GE(delay, 15);
	EXPECT_LE(delay, 60);
	EXPECT_EQ(0, s.dropped);
	sim_free(&s);

	path_init(&s, 1, 1000, 100 * SIM_US, 0);
	s.mark_above = 8;
	sim_run(&s, SIM_S / 2);
	EXPECT_LE(sim_mean_queue(&s, SIM_S), 9);
	EXPECT_GE(sim_share(&s, 0, SIM_S), 950);
	EXPECT_GT(s.marked, 0);
	sim_free(&s);
}

/* A queue that overflows before it is long enough to be seen in the delay */
TEST(swift__heeds_overflow)
{
	struct sim s;

	path_init(&s, 4, 10000, 30 * SIM_US, 0);
	s.queue_max = 40;
	sim_run(&s, SIM_S / 20);
	s.dropped = 0;
	sim_run(&s, s.now + SIM_S / 20);
	EXPECT_LE(s.dropped, 10000000000ULL / 20 / 8 / s.mss / 3);
	sim_free(&s);
}

TEST(swift__flows_share_fairly)
{
	u64 before[8], sum = 0;
	struct sim s;
	u32 i, got;

	path_init(&s, 8, 1000, 100 * SIM_US, 10000);
	sim_run(&s, SIM_S / 2);
	for (i = 0; i < 8; i++)
		before[i] = s.flow[i].received;
	sim_run(&s, s.now + SIM_S);
	for (i = 0; i < 8; i++)
		sum += s.flow[i].received - before[i];
	for (i = 0; i < 8; i++) {
		got = (s.flow[i].received - before[i]) * 1000 / sum;
		EXPECT_GE(got, 80);
		EXPECT_LE(got, 180);
	}
	sim_free(&s);
}

TEST(swift__uses_bandwidth_that_becomes_free)
{
	struct sim s;

	path_init(&s, 1, 20, 500 * SIM_US, 0);
	sim_run(&s, SIM_S);
	s.rate = 100 * SIM_MBIT;
	sim_run(&s, s.now + 50 * SIM_MS);
	EXPECT_GE(sim_share(&s, 0, 100 * SIM_MS), 950);
	sim_free(&s);
}

/* More flows than the queue holds packets, without SHARE */
TEST(swift__windows_of_less_than_a_packet)
{
	u64 pkts = 0;
	struct sim s;
	u32 i;

	path_init(&s, 150, 200, 100 * SIM_US, 0);
	s.tell_share = false;
	sim_run(&s, SIM_S);
	s.dropped = 0;
	for (i = 0; i < s.n; i++)
		pkts -= s.flow[i].received / s.mss;
	EXPECT_LE(sim_mean_queue(&s, SIM_S), 80);
	for (i = 0; i < s.n; i++)
		pkts += s.flow[i].received / s.mss;
	EXPECT_LE(s.dropped, pkts / 20);
	EXPECT_GE(pkts * s.mss * 100, s.rate * 90);
	sim_free(&s);
}

/* Amid a connection, there and back: the link stays full, and no burst comes */
TEST(dblp_cc_switch__live)
{
	const struct dblp_cc_ops *to[] = { &dblp_cc_bdp, &dblp_cc_swift };
	struct sim s;
	u32 i;

	path_init(&s, 1, 1000, 200 * SIM_US, 0);
	sim_run(&s, SIM_S / 2);
	for (i = 0; i < 10; i++) {
		struct sim_flow *f = &s.flow[0];
		u64 rate = f->cc.pacing_rate;

		dblp_cc_switch(&f->cc, to[i % 2], &f->rtt, s.now);
		EXPECT_EQ(to[i % 2], f->cc.ops);
		EXPECT_EQ(rate, f->cc.pacing_rate);
		s.dropped = 0;
		EXPECT_GE(sim_share(&s, 0, 20 * SIM_MS), 900);
		EXPECT_EQ(0, s.dropped);
	}
	sim_free(&s);
}

/* Whatever it is told, it neither stops sending nor computes nonsense */
TEST(swift__any_sample)
{
	struct prng r = { 52 };
	u32 i, k;

	for (i = 0; i < 300; i++) {
		u32 mss = 1 + prng_any(&r) % 65535;
		struct dblp_rtt rtt = {};
		struct dblp_cc cc;
		u64 now = prng_any(&r);

		dblp_cc_start(&cc, &dblp_cc_swift, mss, now);
		for (k = 0; k < 300; k++) {
			struct dblp_rate_sample rs =
				sim_any_sample(&r, &rtt, &now);

			if (prng_below(&r, 10) == 0)
				cc.ops->timeout(&cc, prng_below(&r, 5), now);
			if (prng_below(&r, 10) == 0)
				ASSERT_LE(cc.ops->resume(&cc, now), SIM_S);
			cc.ops->ack(&cc, &rs, &rtt);
			ASSERT_GE(cc.cwnd, 2 * (u64)mss);
			ASSERT_LE(cc.cwnd, S32_MAX);
			ASSERT_GT(cc.pacing_rate, 0);
		}
	}
}

TEST_HARNESS_MAIN
