// SPDX-License-Identifier: GPL-2.0-only
/* What the congestion control promises, on simulated paths */

#include <linux/minmax.h>

#include "sim.h"
#include "test.h"

static const struct {
	const char	*name;
	u64		mbit;
	u64		rtt;
	u64		settle;
	u64		time;
} paths[] = {
	{ "100 Mbit/s, 10 ms", 100, 10 * SIM_MS, SIM_S, 5 * SIM_S },
	{ "100 Mbit/s, 1 ms", 100, 1 * SIM_MS, SIM_S / 2, 2 * SIM_S },
	{ "1 Gbit/s, 500 us", 1000, 500 * SIM_US, SIM_S / 5, SIM_S / 2 },
	{ "1 Gbit/s, 30 us", 1000, 30 * SIM_US, SIM_S / 10, SIM_S / 4 },
	{ "10 Gbit/s, 30 us", 10000, 30 * SIM_US, SIM_S / 20, SIM_S / 20 },
	{ "20 Mbit/s, 100 ms", 20, 100 * SIM_MS, 10 * SIM_S, 20 * SIM_S },
};

#define N_PATHS	ARRAY_SIZE(paths)

/* The goodput of one flow after it has settled, on each path */
static void check_goodput(struct __test_metadata *_metadata, u32 loss,
			  u32 least)
{
	struct sim s;
	u32 i, got;

	for (i = 0; i < N_PATHS; i++) {
		sim_path(&s, 1, paths[i].mbit, paths[i].rtt, loss);
		s.skips = true;
		sim_run(&s, paths[i].settle);
		got = sim_share(&s, 0, paths[i].time);
		EXPECT_GE(got, least) {
			TH_LOG("%s: 0.%03u of the link", paths[i].name, got);
		}
		sim_free(&s);
	}
}

TEST(bdp__fills_a_clean_link)
{
	check_goodput(_metadata, 0, 960);
}

TEST(bdp__fills_a_link_with_1_percent_loss)
{
	check_goodput(_metadata, 10000, 950);
}

TEST(bdp__fills_a_link_with_5_percent_loss)
{
	check_goodput(_metadata, 50000, 930);
}

/* What reliable messages need when the network is really bad */
TEST(bdp__does_not_collapse_with_30_percent_loss)
{
	check_goodput(_metadata, 300000, 850);
}

/* More than could be told from congestion, if others were there */
TEST(bdp__does_not_crawl_with_50_percent_loss)
{
	check_goodput(_metadata, 500000, 850);
}

/* Not all of it is made up for */
TEST(bdp__does_not_crawl_with_60_percent_loss)
{
	check_goodput(_metadata, 600000, 100);
}

/* What is made up for is too much then, for some round trips */
TEST(bdp__a_storm_passes)
{
	struct sim s;
	u64 rtt;

	for (rtt = 30 * SIM_US; rtt <= 30 * SIM_MS; rtt *= 10) {
		sim_path(&s, 1, 100, rtt, 700000);
		sim_run(&s, 100 * rtt + SIM_S / 2);
		s.loss = 0;
		sim_run(&s, s.now + 100 * (rtt + 2 * SIM_MS));
		s.dropped = 0;
		EXPECT_GE(sim_share(&s, 0, 100 * (rtt + SIM_MS)), 950);
		EXPECT_EQ(0, s.dropped) TH_LOG("%llu us", rtt / SIM_US);
		sim_free(&s);
	}
}

/* Though hardly more than two packets fit the path */
TEST(bdp__small_windows_bear_loss)
{
	struct sim s;

	sim_path(&s, 1, 1000, 30 * SIM_US, 300000);
	sim_run(&s, SIM_S / 4);
	EXPECT_GE(sim_share(&s, 0, SIM_S / 4), 970);
	sim_free(&s);
}

TEST(bdp__finds_the_rate_in_a_few_round_trips)
{
	struct sim s;

	sim_path(&s, 1, 1000, 1 * SIM_MS, 0);
	/* BDP is 89 packets: three doublings of ten, and one to see it */
	sim_run(&s, 6 * SIM_MS);
	EXPECT_GE(sim_share(&s, 0, 10 * SIM_MS), 930);
	sim_free(&s);
}

TEST(bdp__keeps_the_queue_short)
{
	struct sim s;
	u32 i, bdp;

	for (i = 0; i < N_PATHS; i++) {
		sim_path(&s, 1, paths[i].mbit, paths[i].rtt, 0);
		sim_run(&s, paths[i].settle);
		bdp = s.rate * paths[i].rtt / SIM_S / s.mss;
		s.dropped = 0;
		EXPECT_LE(sim_mean_queue(&s, paths[i].time), bdp / 4 + 4) {
			TH_LOG("%s", paths[i].name);
		}
		EXPECT_LE(s.queue_peak, bdp / 2 + 10);
		EXPECT_EQ(0, s.dropped);
		sim_free(&s);
	}
}

/* Not so short that bunched ACKs leave the link idle */
TEST(bdp__bears_bunched_acks)
{
	u32 loss;
	struct sim s;

	for (loss = 0; loss <= 50000; loss += 50000) {
		sim_path(&s, 1, 1000, 30 * SIM_US, loss);
		s.ack_every = 200 * SIM_US;
		sim_run(&s, SIM_S / 10);
		EXPECT_GE(sim_share(&s, 0, SIM_S / 4), 930);
		sim_free(&s);
	}
}

/* A processor that others need as well holds all packets up, half of the time */
TEST(bdp__does_not_crawl_on_a_busy_host)
{
	u32 ms, got;
	struct sim s;

	for (ms = 2; ms <= 24; ms++) {
		sim_path(&s, 1, 100, 2 * SIM_MS, 20000);
		s.queue_max = 1000;
		s.stall_every = ms * SIM_MS;
		s.stall_max = s.stall_every;
		sim_run(&s, SIM_S);
		got = sim_share(&s, 0, 2 * SIM_S);
		EXPECT_GE(got, 430) {
			TH_LOG("up to %u ms: 0.%03u of the link", ms, got);
		}
		sim_free(&s);
	}
}

TEST(bdp__two_flows_share_fairly)
{
	struct sim s;
	u32 loss, a, b;
	u64 before;

	for (loss = 0; loss <= 50000; loss += 10000) {
		sim_path(&s, 2, 100, 10 * SIM_MS, loss);
		sim_run(&s, 5 * SIM_S);
		before = s.flow[1].received;
		a = sim_share(&s, 0, 10 * SIM_S);
		b = (s.flow[1].received - before) * 1000 / (s.rate * 10);
		EXPECT_GE(a + b, 950);
		EXPECT_GE(a * 100, (a + b) * 35);
		EXPECT_LE(a * 100, (a + b) * 65);
		sim_free(&s);
	}
}

TEST(bdp__a_late_flow_gets_its_share)
{
	struct sim s;
	u32 i, got;

	sim_path(&s, 4, 1000, 1 * SIM_MS, 0);
	for (i = 1; i < 4; i++)
		s.flow[i].start = i * SIM_S / 4;
	sim_run(&s, 2 * SIM_S);
	for (i = 0; i < 4; i++) {
		got = sim_share(&s, i, SIM_S);
		EXPECT_GE(got, 150);
		EXPECT_LE(got, 400);
	}
	/* And the queue that they share is not full */
	s.dropped = 0;
	EXPECT_LE(sim_mean_queue(&s, SIM_S), 60);
	EXPECT_EQ(0, s.dropped);
	sim_free(&s);
}

TEST(bdp__uses_bandwidth_that_becomes_free)
{
	struct sim s;
	u32 loss;

	for (loss = 0; loss <= 50000; loss += 50000) {
		sim_path(&s, 1, 20, 10 * SIM_MS, loss);
		sim_run(&s, 2 * SIM_S);
		s.rate = 100 * SIM_MBIT;
		/* Eight steps of a quarter each, which follow each other */
		sim_run(&s, s.now + 300 * SIM_MS);
		EXPECT_GE(sim_share(&s, 0, 100 * SIM_MS), 930);
		sim_free(&s);
	}
}

TEST(bdp__gives_way_when_bandwidth_is_taken)
{
	struct sim s;

	sim_path(&s, 1, 100, 10 * SIM_MS, 0);
	sim_run(&s, 2 * SIM_S);
	s.rate = 20 * SIM_MBIT;
	/* Five round trips through the full queue */
	sim_run(&s, s.now + 330 * SIM_MS);
	s.dropped = 0;
	EXPECT_LE(sim_mean_queue(&s, 150 * SIM_MS), 30);
	EXPECT_LE(sim_mean_queue(&s, SIM_S), 10);
	EXPECT_EQ(0, s.dropped);
	EXPECT_GE(sim_share(&s, 0, SIM_S), 930);
	sim_free(&s);
}

/* Delay that giving way does not shorten, as of a busy processor */
TEST(bdp__a_longer_path_is_no_queue)
{
	static const struct {
		u64 mbit, before, after;
	} paths[] = {
		{ 1000, 50, 3000 },
		{ 1000, 300, 2000 },
		{ 100, 10000, 15000 },
		{ 100, 10000, 40000 },
	};
	struct sim s;
	u32 i;

	for (i = 0; i < 4; i++) {
		sim_path(&s, 1, paths[i].mbit, paths[i].before * SIM_US, 0);
		s.queue_max = 1000;
		sim_run(&s, SIM_S / 4);
		s.rtt = paths[i].after * SIM_US;
		sim_run(&s, s.now + 200 * s.rtt);
		EXPECT_GE(sim_share(&s, 0, SIM_S), 850);
		sim_free(&s);
	}
}

/* In the end, the path is looked at anew */
TEST(bdp__a_longer_path_is_used_in_full)
{
	struct sim s;

	sim_path(&s, 1, 100, 10 * SIM_MS, 0);
	sim_run(&s, SIM_S / 2);
	s.rtt = 15 * SIM_MS;
	sim_run(&s, s.now + 11 * SIM_S);
	EXPECT_GE(sim_share(&s, 0, SIM_S), 970);
	sim_free(&s);
}

TEST(bdp__a_shorter_path_is_seen)
{
	struct sim s;

	sim_path(&s, 1, 100, 40 * SIM_MS, 0);
	sim_run(&s, 2 * SIM_S);
	s.rtt = 10 * SIM_MS;
	sim_run(&s, s.now + SIM_S);
	s.dropped = 0;
	EXPECT_LE(sim_mean_queue(&s, SIM_S), 25);
	EXPECT_EQ(0, s.dropped);
	sim_free(&s);
}

/* Many short messages at once into one queue of 100 packets. Returns how long
 * it takes, in percent of what the link needs.
 */
static u32 incast(u32 n, u64 bytes, bool handshake, u32 *sent)
{
	u64 end = 0, pkts = 0, ideal;
	struct sim s;
	u32 i, took;

	sim_path(&s, n, 1000, 100 * SIM_US, 0);
	for (i = 0; i < n; i++) {
		s.flow[i].goal = bytes;
		if (!handshake)
			s.flow[i].handshake_rtt = 0;
	}
	sim_run(&s, 10 * SIM_S);
	for (i = 0; i < n; i++) {
		if (!s.flow[i].finished)
			end = 10 * SIM_S;
		if (s.flow[i].finished > end)
			end = s.flow[i].finished;
		pkts += s.flow[i].sent_pkts;
	}
	ideal = (bytes + s.mss - 1) / s.mss * n;
	*sent = pkts * 100 / ideal;
	took = end * 100 / (ideal * s.mss * SIM_S / s.rate + s.rtt);
	sim_free(&s);
	return took;
}

TEST(bdp__incast)
{
	u32 hs, sent;

	for (hs = 0; hs < 2; hs++) {
		EXPECT_LE(incast(8, 20000, hs, &sent), 115);
		EXPECT_LE(sent, 110);
		EXPECT_LE(incast(8, 100000, hs, &sent), 120);
		EXPECT_LE(sent, 115);
		EXPECT_LE(incast(128, 20000, hs, &sent), 300);
		EXPECT_LE(sent, 220);
		EXPECT_LE(incast(128, 100000, hs, &sent), 150);
		EXPECT_LE(sent, 200);
	}
}

/* Messages of a training round, given within @skew from @at on. Returns how long
 * they take together, in thousandths of what the link needs.
 */
static u32 training_round(struct sim *s, struct prng *r, u32 n, u64 at,
			  u64 skew)
{
	u64 bytes = 205 * s->mss, first = U64_MAX, last = 0, start;
	u32 i;

	for (i = 0; i < n; i++) {
		start = at + prng_below(r, skew);
		first = min(first, start);
		sim_message(s, i, bytes, start);
	}
	sim_run(s, at + 10 * SIM_S);
	for (i = 0; i < n; i++)
		last = max(last, s->flow[i].finished ?: at + 10 * SIM_S);
	return (last - first) * 1000 /
	       (bytes * n * SIM_S / s->rate + s->rtt / 2);
}

/* Connections that stay open meet in one queue round by round */
TEST(bdp__rounds_of_training)
{
	static const struct {
		u64 mbit, rtt, skew;
		u32 n, mean;
	} cases[] = {
		{ 100, 600, 100, 3, 1020 },
		{ 200, 600, 100, 3, 1020 },
		{ 100, 600, 3000, 3, 1050 },
		{ 200, 600, 3000, 8, 1050 },
		{ 1000, 100, 100, 8, 1040 },
	};
	u32 i, k, round, sum;
	struct prng r = { 7 };
	struct sim s;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		sim_path(&s, cases[i].n, cases[i].mbit, cases[i].rtt * SIM_US,
			  0);
		for (k = 0; k < cases[i].n; k++)
			s.flow[k].goal = 1;
		sim_run(&s, SIM_S);
		sum = 0;
		for (round = 0; round < 30; round++) {
			k = training_round(&s, &r, cases[i].n,
					   s.now + 70 * SIM_MS,
					   cases[i].skew * SIM_US);
			sum += round ? k : 0;
		}
		EXPECT_LE(sum / 29, cases[i].mean) {
			TH_LOG("%u flows at %u Mbit/s", cases[i].n,
			       (u32)cases[i].mbit);
		}
		EXPECT_EQ(0, s.dropped);
		sim_free(&s);
	}
}

TEST(bdp__shares_with_cubic)
{
	static const u32 rtts[] = { 100, 500, 10000 };
	u64 ours, theirs;
	struct sim s;
	u32 i, k;

	for (k = 0; k < ARRAY_SIZE(rtts); k++) {
		sim_wire(&s, 16, 200, rtts[k] * SIM_US, 0);
		for (i = 8; i < 16; i++)
			s.flow[i].ops = &sim_cubic;
		sim_run(&s, 2 * SIM_S);
		ours = 0;
		theirs = 0;
		/* Twice past where the shortest round trip is looked for */
		for (i = 0; i < 16; i++)
			*(i < 8 ? &ours : &theirs) -= s.flow[i].received;
		sim_run(&s, 25 * SIM_S);
		for (i = 0; i < 16; i++)
			*(i < 8 ? &ours : &theirs) += s.flow[i].received;
		EXPECT_GE(ours * 100, (ours + theirs) * 35);
		EXPECT_LE(ours * 100, (ours + theirs) * 65);
		sim_free(&s);
	}
}

/* After a pause, probing for more bandwidth begins at once */
TEST(bdp__probes_after_a_pause)
{
	struct prng r = { 8 };
	u64 before, pause;
	struct sim s;

	for (pause = 10; pause <= 1000; pause *= 10) {
		sim_path(&s, 1, 200, 600 * SIM_US, 0);
		s.flow[0].goal = 1;
		sim_run(&s, SIM_S);
		training_round(&s, &r, 1, s.now + 70 * SIM_MS, 1);
		before = s.flow[0].cc.pacing_rate;
		sim_message(&s, 0, 100 * s.mss, s.now + pause * SIM_MS);
		sim_run(&s, s.now + pause * SIM_MS);
		EXPECT_GE(s.flow[0].cc.pacing_rate, before * 6 / 5);
		EXPECT_LE(s.flow[0].cc.pacing_rate, before * 4 / 3);
		sim_free(&s);
	}
}

static u64 packets_received(const struct sim *s)
{
	u64 pkts = 0;
	u32 i;

	for (i = 0; i < s->n; i++)
		pkts += s->flow[i].received / s->mss;
	return pkts;
}

/* A queue that overflows must not be taken for a bad network: sending more for
 * what is lost would never end.
 */
TEST(bdp__overflow_is_not_random_loss)
{
	struct sim s;
	u64 pkts;

	sim_path(&s, 32, 1000, 100 * SIM_US, 0);
	s.queue_max = 40;
	sim_run(&s, SIM_S / 2);
	s.dropped = 0;
	pkts = packets_received(&s);
	sim_run(&s, SIM_S);
	pkts = packets_received(&s) - pkts;
	/* The least windows alone are twice of what there is room for */
	EXPECT_LE(s.dropped, pkts / 4);
	sim_free(&s);
}

/* Not even if the queue is too short to be noticed */
TEST(bdp__overflow_of_a_short_queue_is_not_random_loss)
{
	struct sim s;
	u64 pkts;

	sim_path(&s, 11, 1000, 60 * SIM_US, 0);
	s.queue_max = 5;
	sim_run(&s, SIM_S / 8);
	s.dropped = 0;
	pkts = packets_received(&s);
	sim_run(&s, s.now + SIM_S / 16);
	pkts = packets_received(&s) - pkts;
	/* Here, too, the least windows alone are more than there is room for */
	EXPECT_LE(5 * s.dropped, 8 * pkts) {
		TH_LOG("%llu of %llu", s.dropped, s.dropped + pkts);
	}
	sim_free(&s);
}

/* An application that sends a little now and then does not unlearn the rate */
TEST(bdp__remembers_through_pauses)
{
	struct sim s;
	u32 i;

	sim_path(&s, 1, 1000, 1 * SIM_MS, 0);
	sim_run(&s, 50 * SIM_MS);
	for (i = 0; i < 50; i++) {
		sim_message(&s, 0, 14000, s.now);
		sim_run(&s, s.now + 10 * SIM_MS);
	}
	EXPECT_GE(s.flow[0].cc.pacing_rate, 100 * SIM_MBIT * 7);
	sim_free(&s);
}

/* What an application sends now and then says nothing of what the path has: each
 * of its small messages goes out in one burst, whatever was lost of others
 */
TEST(bdp__is_not_held_to_the_rate_of_small_messages)
{
	u32 i, seed;

	for (seed = 1; seed <= 50; seed++) {
		struct sim s;

		sim_path(&s, 1, 1000, 80 * SIM_MS, 150000);
		s.rng = seed;
		s.flow[0].goal = 1;
		sim_run(&s, SIM_S);
		for (i = 0; i < 40; i++) {
			sim_message(&s, 0, 7 * s.mss, s.now);
			sim_run(&s, s.now + SIM_S);
		}
		EXPECT_GE(s.flow[0].cc.cwnd, 7 * s.mss);
		EXPECT_GE(s.flow[0].cc.pacing_rate, 7 * s.mss * 100);
		sim_free(&s);
	}
}

/* A first ACK like this, on a path of @rtt, leaves all as it was */
static void expect_search_goes_on(struct __test_metadata *_metadata,
				  const struct dblp_rate_sample *rs, u64 rtt)
{
	struct dblp_rtt path = {};
	struct dblp_cc cc;
	u64 rate;
	u32 cwnd;

	dblp_cc_start(&cc, &dblp_cc_bdp, 1400, 1);
	cwnd = cc.cwnd;
	rate = cc.pacing_rate;
	dblp_rtt_sample(&path, rtt, 0, rs->now);
	cc.ops->ack(&cc, rs, &path);
	EXPECT_GE(cc.cwnd, cwnd);
	EXPECT_EQ(rate, cc.pacing_rate);
}

/* One small packet of two lost tells nothing of the path */
TEST(bdp__few_losses_do_not_end_the_search)
{
	struct dblp_rate_sample rs = {
		.now = SIM_S, .rate = 720, .rtt = 80 * SIM_MS, .acked = 80,
		.lost = 124, .delivered = 80, .app_limited = true,
	};

	expect_search_goes_on(_metadata, &rs, rs.rtt);
}

/* Nor does the delay of one, for which a busy processor may be to blame */
TEST(bdp__delay_of_small_messages_does_not_end_the_search)
{
	struct dblp_rate_sample rs = {
		.now = SIM_S, .rate = 51788, .rtt = SIM_MS, .acked = 80,
		.delivered = 80,
	};

	expect_search_goes_on(_metadata, &rs, SIM_MS / 2);
}

TEST(bdp__timeouts_stop_a_flood)
{
	struct dblp_cc cc;

	dblp_cc_start(&cc, &dblp_cc_bdp, 1400, 1);
	EXPECT_EQ(14000, cc.cwnd);
	cc.cwnd = 1000000;
	cc.ops->timeout(&cc, 1, 2);
	EXPECT_EQ(1000000, cc.cwnd);
	cc.ops->timeout(&cc, 2, 3);
	EXPECT_EQ(4 * 1400, cc.cwnd);
}

/* Whatever it is told, it neither stops sending nor computes nonsense */
TEST(bdp__any_sample)
{
	struct prng r = { 51 };
	u32 i, k;

	for (i = 0; i < 300; i++) {
		u32 mss = 1 + prng_any(&r) % 65535;
		struct dblp_rtt rtt = {};
		struct dblp_cc cc;
		u64 now = prng_any(&r);

		dblp_cc_start(&cc, &dblp_cc_bdp, mss, now);
		for (k = 0; k < 300; k++) {
			struct dblp_rate_sample rs =
				sim_any_sample(&r, &rtt, &now);

			if (prng_below(&r, 10) == 0)
				cc.ops->timeout(&cc, prng_below(&r, 5), now);
			cc.ops->sent(&cc, prng_below(&r, 2), now);
			cc.ops->ack(&cc, &rs, &rtt);
			ASSERT_GE(cc.cwnd, 2 * (u64)mss);
			ASSERT_LE(cc.cwnd, S32_MAX);
			if (rtt.latest && rtt.srtt < SIM_S)
				ASSERT_GT(cc.pacing_rate, 0);
		}
	}
}

TEST_HARNESS_MAIN
