// SPDX-License-Identifier: GPL-2.0-only
/* Congestion control sqrt */
#include <linux/minmax.h>

#include "sim.h"
#include "test.h"

static void path_init(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 queue)
{
	u32 i;

	sim_path(s, n, mbit, rtt, 0);
	s->queue_max = queue;
	s->phase = true;
	s->skips = true;
	for (i = 0; i < n; i++)
		s->flow[i].ops = &dblp_cc_sqrt;
}

static u64 sent_pkts(const struct sim *s)
{
	u64 pkts = 0;
	u32 i;

	for (i = 0; i < s->n; i++)
		pkts += s->flow[i].sent_pkts;
	return pkts;
}

/* From 100 Mbit/s and 10 ms to 100 Gbit/s and 10 us: the law has no unit of these. A
 * sender that ignores the queue fills it.
 */
TEST(sqrt__fills_links_and_keeps_queues_short)
{
	static const struct {
		u64 mbit, rtt;
	} paths[] = {
		{ 100, 10000 }, { 1000, 500 }, { 10000, 50 }, { 100000, 10 },
	};
	u32 i, got, queue, bdp;
	struct sim s;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		path_init(&s, 1, paths[i].mbit, paths[i].rtt * SIM_US, 0);
		bdp = s.rate * s.rtt / SIM_S / s.mss;
		s.queue_max = bdp;
		sim_run(&s, 60 * s.rtt);
		s.queue_area = 0;
		got = sim_share(&s, 0, 200 * s.rtt);
		queue = s.queue_area / (200 * s.rtt);
		EXPECT_GE(got, 970);
		EXPECT_LE(queue, bdp / 4 + 4) {
			TH_LOG("%llu Mbit/s, %llu us: 0.%03u, queue %u",
			       paths[i].mbit, paths[i].rtt, got, queue);
		}
		sim_free(&s);
	}
}

/* If the queue is too short for its delay to be measured, its drops are congestion. A
 * sender that makes up for all losses loses half of its packets.
 */
TEST(sqrt__a_short_queue_is_not_random_loss)
{
	u64 sent, dropped;
	struct sim s;
	u32 n;

	for (n = 2; n <= 32; n *= 4) {
		path_init(&s, n, 10000, 50 * SIM_US, 8);
		sim_run(&s, 20 * SIM_MS);
		sent = sent_pkts(&s);
		dropped = s.dropped;
		sim_run(&s, 60 * SIM_MS);
		sent = sent_pkts(&s) - sent;
		dropped = s.dropped - dropped;
		EXPECT_LE(dropped * 25, sent) {
			TH_LOG("%u flows: %llu of %llu", n, dropped, sent);
		}
		sim_free(&s);
	}
}

/* From windows of few packets, in which 5 % of random loss may measure as 10 %, to
 * windows of a thousand packets
 */
TEST(sqrt__fills_a_link_with_random_loss)
{
	static const struct {
		u64 mbit, rtt;
		u32 queue, least;
	} paths[] = {
		{ 100, 500, 100, 960 }, { 1000, 500, 45, 850 },
		{ 1000, 10000, 833, 900 },
	};
	struct sim s;
	u32 loss, i;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		for (loss = 1000; loss <= 50000; loss *= 7) {
			path_init(&s, 1, paths[i].mbit, paths[i].rtt * SIM_US,
				  paths[i].queue);
			s.loss = loss;
			sim_run(&s, SIM_S);
			EXPECT_GE(sim_share(&s, 0, SIM_S), paths[i].least) {
				TH_LOG("%llu Mbit/s, %llu us at %u ppm",
				       paths[i].mbit, paths[i].rtt, loss);
			}
			sim_free(&s);
		}
	}
}

/* Beyond the excused loss, the window is a few packets, like TCP's, and not nearly 0.
 * Shares are per mille of the link.
 */
TEST(sqrt__keeps_a_window_beyond_the_compensated_loss)
{
	static const struct {
		u32 mbit, loss, least;
	} cells[] = {
		{ 100, 50000, 900 }, { 100, 100000, 300 }, { 100, 300000, 150 },
		{ 1000, 50000, 900 }, { 1000, 100000, 35 }, { 1000, 300000, 20 },
	};
	struct sim s;
	u32 i, got;

	for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		path_init(&s, 1, cells[i].mbit, 500 * SIM_US, 100);
		s.loss = cells[i].loss;
		sim_run(&s, SIM_S / 2);
		got = sim_share(&s, 0, SIM_S);
		EXPECT_GE(got, cells[i].least) {
			TH_LOG("%u Mbit/s, %u ppm: %u", cells[i].mbit,
			       cells[i].loss, got);
		}
		sim_free(&s);
	}
}

/* Also 64 flows, of which late ones have never seen an empty queue */
TEST(sqrt__flows_share_fairly)
{
	static const struct {
		u32 n, mbit, rtt, queue, start;
	} paths[] = {
		{ 8, 1000, 500, 45, 10000 },
		{ 64, 10000, 50, 167, 100 },
	};
	u64 before[64], sum, got;
	struct sim s;
	u32 k, i;

	for (k = 0; k < ARRAY_SIZE(paths); k++) {
		path_init(&s, paths[k].n, paths[k].mbit, paths[k].rtt * SIM_US,
			  paths[k].queue);
		for (i = 0; i < s.n; i++)
			s.flow[i].start = i * paths[k].start * SIM_US;
		sim_run(&s, SIM_S / 4);
		for (i = 0; i < s.n; i++)
			before[i] = s.flow[i].received;
		sim_run(&s, SIM_S / 2);
		for (sum = 0, i = 0; i < s.n; i++)
			sum += s.flow[i].received - before[i];
		for (i = 0; i < s.n; i++) {
			got = (s.flow[i].received - before[i]) * s.n * 100 / sum;
			EXPECT_GE(got, 60);
			EXPECT_LE(got, 150);
		}
		sim_free(&s);
	}
}

/*
 * Beside TCP in a queue of 8 packets: a sender that makes up for all losses would
 * starve TCP
 */
TEST(sqrt__leaves_cubic_its_part)
{
	u64 theirs = 0, all = 0;
	struct sim s;
	u32 i;

	path_init(&s, 8, 10000, 50 * SIM_US, 8);
	for (i = 4; i < 8; i++)
		s.flow[i].ops = &sim_cubic;
	sim_run(&s, SIM_S / 20);
	for (i = 0; i < 8; i++)
		*(i < 4 ? &all : &theirs) -= s.flow[i].received;
	sim_run(&s, SIM_S / 5);
	for (i = 0; i < 8; i++)
		*(i < 4 ? &all : &theirs) += s.flow[i].received;
	all += theirs;
	EXPECT_GE(theirs * 100, all * 35);
	EXPECT_LE(theirs * 100, all * 90);
	sim_free(&s);
}

/* Beside TCP in a queue of twelve times the path, which TCP keeps full: a sender that
 * always yields would starve
 */
TEST(sqrt__is_not_starved_by_cubic_in_a_deep_queue)
{
	u64 theirs = 0, all = 0;
	struct sim s;
	u32 i;

	path_init(&s, 16, 200, 500 * SIM_US, 100);
	for (i = 8; i < 16; i++)
		s.flow[i].ops = &sim_cubic;
	sim_run(&s, 2 * SIM_S);
	for (i = 0; i < 16; i++)
		*(i < 8 ? &all : &theirs) -= s.flow[i].received;
	sim_run(&s, 8 * SIM_S);
	for (i = 0; i < 16; i++)
		*(i < 8 ? &all : &theirs) += s.flow[i].received;
	all += theirs;
	EXPECT_GE(theirs * 100, all * 40);
	EXPECT_LE(theirs * 100, all * 72);
	sim_free(&s);
}

/* A loss reduces a small window faster than it can grow. Without the SHARE frame, one
 * flow would take the shares of all others, including TCP's.
 */
TEST(sqrt__no_flow_is_locked_out_beside_cubic)
{
	u64 theirs = 0, all = 0, most = 0, got;
	u64 before[16];
	struct sim s;
	u32 i;

	path_init(&s, 16, 400, 2000 * SIM_US, 8);
	for (i = 8; i < 16; i++)
		s.flow[i].ops = &sim_cubic;
	sim_run(&s, SIM_S);
	for (i = 0; i < 16; i++)
		before[i] = s.flow[i].received;
	sim_run(&s, 5 * SIM_S);
	for (i = 0; i < 16; i++) {
		got = s.flow[i].received - before[i];
		if (i < 8)
			most = max(most, got);
		else
			theirs += got;
		all += got;
	}
	EXPECT_LE(most * 100, (all - theirs) * 35);
	EXPECT_GE(theirs * 100, all * 35);
	sim_free(&s);
}

/* Including the last packets of messages: no flow waits for a backoff, unless no packet
 * of its first window is answered
 */
TEST(sqrt__a_round_in_a_burst)
{
	u32 loss, round, i, late = 0;
	u64 at, last, limit;
	struct sim s;

	for (loss = 600000; loss <= 900000; loss += 100000) {
		path_init(&s, 3, 300, 500 * SIM_US, 100);
		for (i = 0; i < 3; i++)
			s.flow[i].goal = 1;
		sim_run(&s, SIM_S);
		for (round = 0; round < 24; round++) {
			at = s.now + 2 * SIM_MS;
			s.loss_behind = round % 6 == 5 ? loss : 0;
			limit = 30 * SIM_MS * 1000000 / (1000000 - loss);
			for (i = 0; i < 3; i++) {
				s.flow[i].spare = 1;
				sim_message(&s, i, 287000, at);
			}
			sim_run(&s, at + 6 * limit);
			last = 0;
			for (i = 0; i < 3; i++)
				last = max(last, s.flow[i].finished ?: U64_MAX);
			EXPECT_GE(at + 6 * limit, last) {
				TH_LOG("round %u at %u ppm", round, loss);
			}
			late += last > at + 2 * limit;
		}
		sim_free(&s);
	}
	EXPECT_LE(late, 1);
}

/* When the others of a round have finished, the last one takes what they leave, until its end, with
 * a window of a packet or less: losses that look like congestion end with the others
 */
TEST(sqrt__the_last_of_a_round_fills_the_link)
{
	u64 at, took = 0;
	struct sim s;
	u32 round, i;

	path_init(&s, 4, 50, 500 * SIM_US, 8);
	for (i = 0; i < 4; i++)
		s.flow[i].goal = 1;
	sim_run(&s, SIM_S / 10);
	for (round = 0; round < 20; round++) {
		at = s.now + 2 * SIM_MS;
		for (i = 0; i < 4; i++)
			sim_message(&s, i, i ? 50000 : 150000, at);
		s.loss = 200000;
		sim_run(&s, at + 40 * SIM_MS);
		s.loss = 0;
		sim_run(&s, at + SIM_S);
		ASSERT_NE(0, s.flow[0].finished);
		took += s.flow[0].finished - at;
	}
	/* It took 88 ms with a number of senders that falls from span to span, and takes 74 ms */
	EXPECT_LE(took / 20, 80 * SIM_MS);
	sim_free(&s);
}

/* The rate before the burst continues, during it and at once after it, although the
 * queue is still there: the lower delivery rate says nothing about the path
 */
TEST(sqrt__a_burst_holds_the_rate)
{
	u32 loss, before, amid, queue;
	struct sim s;
	u64 sent;

	for (loss = 600000; loss <= 900000; loss += 100000) {
		path_init(&s, 1, 1000, 500 * SIM_US, 45);
		s.rng += loss;
		sim_run(&s, SIM_S / 5);
		sent = sent_pkts(&s);
		queue = sim_mean_queue(&s, SIM_S / 6);
		before = sent_pkts(&s) - sent;
		s.loss_behind = loss;
		sent = sent_pkts(&s);
		sim_run(&s, s.now + SIM_S / 6);
		amid = sent_pkts(&s) - sent;
		EXPECT_GE(amid * 100, before * 80);
		EXPECT_LE(amid * 100, before * 105);
		s.loss_behind = 0;
		sim_run(&s, s.now + 3 * s.rtt);
		EXPECT_GE(sim_share(&s, 0, SIM_S / 6), 900);
		EXPECT_LE(sim_mean_queue(&s, SIM_S / 6), queue + 3);
		sim_free(&s);
	}
}

static void none_is(struct __test_metadata *_metadata, const struct sim *s,
		    const char *mode)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		ASSERT_STRNE(mode, s->flow[i].cc.ops->mode(&s->flow[i].cc));
}

/* After the path becomes longer or its link slower, the sender fills the link with a
 * queue as if the path had always been so. A sender that keeps the old round-trip time,
 * or attributes the delay to rivals, leaves the link idle or the queue full.
 */
TEST(sqrt__detects_a_changed_path)
{
	static const struct {
		u32 n, mbit, rtt, queue;
	} paths[] = {
		{ 1, 1000, 1000, 20 }, { 1, 1000, 2000, 20 },
		{ 8, 1000, 1000, 50 }, { 8, 1000, 2000, 60 },
		{ 1, 200, 500, 10 }, { 8, 200, 500, 30 },
	};
	u32 k, i, got, queue;
	struct sim s;

	for (k = 0; k < ARRAY_SIZE(paths); k++) {
		path_init(&s, paths[k].n, 1000, 500 * SIM_US, 180);
		sim_run(&s, SIM_S / 5);
		s.rate = paths[k].mbit * SIM_MBIT;
		s.rtt = paths[k].rtt * SIM_US;
		sim_run(&s, s.now + SIM_S / 2);
		queue = sim_mean_queue(&s, SIM_S / 10);
		got = 0;
		for (i = 0; i < s.n; i++)
			got -= s.flow[i].received;
		sim_run(&s, s.now + SIM_S / 10);
		for (i = 0; i < s.n; i++)
			got += s.flow[i].received;
		EXPECT_GE(got, s.rate / 100 * 9) {
			TH_LOG("%u flows, %u Mbit/s, %u us", paths[k].n, paths[k].mbit, paths[k].rtt);
		}
		EXPECT_LE(queue, paths[k].queue) {
			TH_LOG("%u flows, %u Mbit/s, %u us: %llu of 1000, queue %u",
			       paths[k].n, paths[k].mbit, paths[k].rtt,
			       got * 10000ULL / s.rate, queue);
		}
		sim_free(&s);
	}
}

/* Many flows that start together overflow the queue. That is not a burst. */
TEST(sqrt__a_start_in_step_is_no_burst)
{
	struct sim s;
	u32 i, ms;

	path_init(&s, 32, 1000, 500 * SIM_US, 45);
	for (i = 0; i < 32; i++)
		s.flow[i].start = 0;
	for (ms = 1; ms <= 200; ms++) {
		sim_run(&s, ms * SIM_MS);
		none_is(_metadata, &s, "hold");
	}
	sim_free(&s);
}

/* A flow that sends rarely has a low delivery rate. That is not a sign of rivals. */
TEST(sqrt__rest_is_no_rival)
{
	u32 round, i;
	struct sim s;
	u64 at;

	path_init(&s, 8, 200, 60 * SIM_US, 100);
	sim_run(&s, SIM_S / 2);
	for (round = 0; round < 50; round++) {
		at = s.now + 50 * SIM_MS;
		for (i = 0; i < s.n; i++)
			sim_message(&s, i, 30000, at);
		for (i = 1; i <= 20; i++) {
			sim_run(&s, at + i * SIM_MS);
			none_is(_metadata, &s, "rivals");
		}
	}
	sim_free(&s);
}

/* Window on a host that takes 2 us per packet, if @n packets are acknowledged together */
static u64 window_of_trains(u32 n)
{
	struct dblp_rate_sample rs = { 0 };
	struct dblp_rtt rtt = {};
	struct dblp_cc cc;
	u32 round, i, w;

	dblp_cc_start(&cc, &dblp_cc_sqrt, 1472, SIM_S);
	rs.now = SIM_S;
	rs.acked = n * cc.mss;
	for (round = 0; round < 2000; round++) {
		w = cc.cwnd / cc.mss;
		rs.rtt = round ? max(w, 10u) * 2 * SIM_US : 20 * SIM_US;
		rs.inflight = cc.cwnd;
		for (i = 0; i < w; i += n) {
			rs.prior_delivered = rs.delivered - i * cc.mss;
			rs.delivered += rs.acked;
			rs.now += n * 2 * SIM_US;
			dblp_rtt_sample(&rtt, rs.rtt, 0, rs.now);
			dblp_rtt_split(&rtt, &rs, NULL);
			cc.ops->ack(&cc, &rs, &rtt);
		}
	}
	return cc.cwnd / cc.mss;
}

/* Packets of a train wait for each other. A sender that takes this for a queue has less
 * than a train in flight, so that sending and receiving processor wait for each other.
 */
TEST(sqrt__does_not_take_a_train_for_a_queue)
{
	EXPECT_GE(window_of_trains(45), 2 * 45);
	EXPECT_LE(window_of_trains(45), 4 * 45);
	EXPECT_LE(window_of_trains(2), 20);
}

/* One of ten ACKs is late by a hundred round trips: the others set the pacing rate */
TEST(sqrt__paces_by_what_is_usual)
{
	struct dblp_rate_sample rs = { .now = SIM_S };
	struct dblp_rtt rtt = {};
	struct dblp_cc cc;
	u32 i;

	dblp_cc_start(&cc, &dblp_cc_sqrt, 1472, SIM_S);
	rs.acked = 2 * cc.mss;
	for (i = 0; i < 1000; i++) {
		rs.rtt = i % 10 == 9 ? 10 * SIM_MS : 100 * SIM_US;
		rs.prior_delivered = rs.delivered;
		rs.delivered += rs.acked;
		rs.inflight = cc.cwnd;
		rs.now += 20 * SIM_US;
		dblp_rtt_sample(&rtt, rs.rtt, 0, rs.now);
		dblp_rtt_split(&rtt, &rs, NULL);
		cc.ops->ack(&cc, &rs, &rtt);
	}
	EXPECT_GE(cc.pacing_rate, cc.cwnd * (SIM_S / SIM_US) / 200);
}

/* When other flows end, a flow sends as before they began, with the same queue */
TEST(sqrt__forgets_senders_that_are_gone)
{
	u32 before, others, after;
	struct sim s;

	for (others = 1; others <= 7; others++) {
		path_init(&s, 1, 100, 100 * SIM_US, 100);
		sim_run(&s, SIM_S / 2);
		before = sim_mean_queue(&s, SIM_S / 2);
		s.strangers = others;
		sim_run(&s, s.now + SIM_S / 2);
		s.strangers = 0;
		sim_run(&s, s.now + SIM_S / 2);
		after = sim_mean_queue(&s, SIM_S / 2);
		EXPECT_LE(after, before + 1) {
			TH_LOG("%u others: %u and %u packets", others, before,
			       after);
		}
		sim_free(&s);
	}
}

/* Twice as long as a packet train, and four times: packets that a host handles together
 * are neither a queue nor a burst, even if packets are lost
 */
TEST(sqrt__does_not_take_bunches_of_acks_for_a_queue)
{
	struct sim s;
	u32 loss;

	for (loss = 0; loss <= 20000; loss += 20000) {
		path_init(&s, 1, 10000, 50 * SIM_US, 200);
		s.loss = loss;
		s.ack_every = 200 * SIM_US;
		sim_run(&s, 20 * SIM_MS);
		EXPECT_GE(sim_share(&s, 0, 50 * SIM_MS), 900);
		sim_free(&s);
	}
}

/* A queue of a hundred packets that marks from the eighth on */
TEST(sqrt__reduces_on_marks)
{
	struct sim s;
	u32 n;

	for (n = 1; n <= 8; n *= 8) {
		path_init(&s, n, 1000, 500 * SIM_US, 100);
		s.mark_above = 8;
		sim_run(&s, SIM_S / 2);
		s.dropped = 0;
		s.marked = 0;
		EXPECT_LE(sim_mean_queue(&s, SIM_S), 8);
		EXPECT_EQ(0, s.dropped);
		EXPECT_GT(s.marked, 0);
		EXPECT_GE(sim_share(&s, 0, SIM_S) * n, 800);
		sim_free(&s);
	}
}

static void lose(struct sim_flow *f, u32 lost, u32 spurious)
{
	struct dblp_rate_sample rs = {
		.acked = spurious, .lost = lost, .spurious = spurious,
		.inflight = f->sent.inflight, .delivered = f->sent.delivered,
	};

	f->cc.ops->ack(&f->cc, &rs, &f->rtt);
}

/* Only when all lost packets have arrived late, and not before */
TEST(sqrt__takes_back_a_cut_for_nothing)
{
	struct sim s;
	u32 before;

	path_init(&s, 1, 1000, 10 * SIM_MS, 900);
	sim_run(&s, 4 * SIM_S);
	before = s.flow[0].cc.cwnd;
	lose(&s.flow[0], before / 5, 0);
	EXPECT_LT(s.flow[0].cc.cwnd, before * 4 / 5);
	lose(&s.flow[0], 0, before / 10);
	EXPECT_LT(s.flow[0].cc.cwnd, before * 4 / 5);
	lose(&s.flow[0], 0, before / 5 - before / 10);
	EXPECT_GE(s.flow[0].cc.cwnd, before);
	sim_free(&s);
}

/* Tolerates loss that sqrt takes for congestion, on paths of 1 to 80 packets */
TEST(lossy__fills_a_link_that_loses_many)
{
	static const struct {
		u64 mbit, rtt;
	} paths[] = {
		{ 100, 10000 }, { 100, 1000 }, { 1000, 500 }, { 10000, 50 },
	};
	struct sim s;
	u32 i, loss;

	for (i = 0; i < 4 * ARRAY_SIZE(paths); i++) {
		loss = 100000 * (1 + i % 4);
		path_init(&s, 1, paths[i / 4].mbit, paths[i / 4].rtt * SIM_US,
			  100);
		s.flow[0].ops = &dblp_cc_lossy;
		s.loss = loss;
		sim_run(&s, 200 * s.rtt);
		EXPECT_GE(sim_share(&s, 0, 1000 * s.rtt), 800) {
			TH_LOG("%llu Mbit/s, %llu us, %u ppm lost",
			       paths[i / 4].mbit, paths[i / 4].rtt, loss);
		}
		sim_free(&s);
	}
}

static u64 received_bytes(const struct sim *s)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < s->n; i++)
		bytes += s->flow[i].received;
	return bytes;
}

/* In a burst before the link, flows take what it leaves of the link; in one behind it, they do not
 * overfill its queue. Both last for 100 ms
 */
TEST(lossy__takes_what_a_burst_leaves)
{
	const struct dblp_cc_ops *ops[] = { &dblp_cc_sqrt, &dblp_cc_lossy };
	u64 received[2], sent;
	struct sim s;
	u32 i, k;

	for (k = 0; k < 2; k++) {
		path_init(&s, 3, 100, SIM_MS, 1000);
		for (i = 0; i < 3; i++)
			s.flow[i].ops = ops[k];
		sim_run(&s, SIM_S);
		s.loss = 800000;
		received[k] = -received_bytes(&s);
		sim_run(&s, s.now + SIM_S / 10);
		received[k] += received_bytes(&s);
		sim_free(&s);
	}
	EXPECT_GE(received[1] * 4, received[0] * 5);
	path_init(&s, 1, 1000, 500 * SIM_US, 45);
	s.flow[0].ops = &dblp_cc_lossy;
	sim_run(&s, SIM_S / 5);
	s.loss_behind = 600000;
	sent = sent_pkts(&s);
	sim_run(&s, s.now + SIM_S / 10);
	EXPECT_LE(sent_pkts(&s) - sent, 83333U / 10 * 11 / 10);
	sim_free(&s);
}

/* Switches in a connection, and back: the link stays full, without a burst */
TEST(dblp_cc_switch__live)
{
	const struct dblp_cc_ops *to[] = { &dblp_cc_lossy, &dblp_cc_sqrt };
	struct sim s;
	u32 i;

	path_init(&s, 1, 1000, 200 * SIM_US, 100);
	sim_run(&s, SIM_S / 2);
	for (i = 0; i < 10; i++) {
		struct sim_flow *f = &s.flow[0];
		u64 rate = f->cc.pacing_rate;

		dblp_cc_switch(&f->cc, to[i % 2], s.now);
		EXPECT_EQ(to[i % 2], f->cc.ops);
		EXPECT_EQ(rate, f->cc.pacing_rate);
		s.dropped = 0;
		EXPECT_GE(sim_share(&s, 0, 20 * SIM_MS), 900);
		EXPECT_EQ(0, s.dropped);
	}
	sim_free(&s);
}

/* Bytes received in four seconds, with a switch every 40 ms or without */
static u64 received_amid_switches(u64 jitter, u64 stall, bool switches)
{
	const struct dblp_cc_ops *to[] = { &dblp_cc_lossy, &dblp_cc_sqrt };
	u64 received;
	struct sim s;
	u32 i;

	path_init(&s, 1, 100, 4 * SIM_MS, 1000);
	s.loss = 30000;
	s.jitter = jitter;
	s.stall_every = stall + stall / 4;
	s.stall_max = stall;
	sim_run(&s, SIM_S / 2);
	received = s.flow[0].received;
	for (i = 0; i < 100; i++) {
		if (switches)
			dblp_cc_switch(&s.flow[0].cc, to[i % 2], s.now);
		sim_run(&s, s.now + 40 * SIM_MS);
	}
	received = s.flow[0].received - received;
	sim_free(&s);
	return received;
}

/* Switches do not slow a flow down if most round trips exceed the shortest one: on a
 * path with varying delay, and between busy hosts
 */
TEST(dblp_cc_switch__round_trips_vary)
{
	static const struct {
		u64 jitter, stall;
	} paths[] = {
		{ 5 * SIM_MS, 0 }, { 20 * SIM_MS, 0 }, { 0, 40 * SIM_MS },
	};
	u64 without, with;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		without = received_amid_switches(paths[i].jitter,
						 paths[i].stall, false);
		with = received_amid_switches(paths[i].jitter, paths[i].stall,
					      true);
		EXPECT_GE(with, without * 3 / 4) {
			TH_LOG("jitter %llu, stall %llu", paths[i].jitter,
			       paths[i].stall);
		}
	}
}

/* A flow that switches each round trip gets no more than its share */
TEST(dblp_cc_switch__heeds_others)
{
	const struct dblp_cc_ops *to[] = { &dblp_cc_lossy, &dblp_cc_sqrt };
	static const u32 queues[] = { 8, 30, 300 };
	u64 before;
	struct sim s;
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		path_init(&s, 2, 100, 4 * SIM_MS, queues[i]);
		s.flow[1].start = SIM_S;
		sim_run(&s, SIM_S);
		for (k = 0, before = 0; k < 800; k++) {
			dblp_cc_switch(&s.flow[0].cc, to[k % 2], s.now);
			sim_run(&s, s.now + 5 * SIM_MS);
			if (k == 200)
				before = s.flow[1].received;
		}
		EXPECT_GE(s.flow[1].received - before,
			  3 * s.rate * 3 / 4 / 2 / 2) {
			TH_LOG("a queue of %u packets", queues[i]);
		}
		sim_free(&s);
	}
}

/* Acknowledge @n packets, one at a time, of ten in flight on an empty path of 10 ms */
static void ack_ten_in_flight(struct dblp_cc *cc, struct dblp_rate_sample *rs, u32 n)
{
	struct dblp_rtt rtt = { .srtt = 10 * SIM_MS, .latest = 10 * SIM_MS, .min = 10 * SIM_MS };

	while (n--) {
		rs->now += SIM_MS;
		rs->acked = cc->mss;
		rs->inflight = 9 * cc->mss;
		rs->delivered += cc->mss;
		rs->prior_delivered = rs->delivered - min(rs->delivered, 10ULL * cc->mss);
		rs->rtt = 10 * SIM_MS;
		rs->base = rs->rtt;
		rs->sent = rs->now - rs->rtt;
		rs->interval = rs->rtt;
		rs->rate = 100ULL * cc->mss * 10;
		cc->ops->ack(cc, rs, &rtt);
	}
}

/* As with SO_MAX_PACING_RATE: the application always has more to send */
TEST(sqrt__an_unused_window_does_not_grow)
{
	struct dblp_rate_sample rs = { .now = SIM_S };
	struct dblp_cc cc;

	dblp_cc_start(&cc, &dblp_cc_sqrt, 1000, rs.now);
	ack_ten_in_flight(&cc, &rs, 20000);
	EXPECT_LE(10 * 1000, cc.cwnd);
	EXPECT_GE(30 * 1000, cc.cwnd);
}

/* Seconds without a packet in flight are no seconds without an ACK */
TEST(sqrt__idle_time_is_no_silence)
{
	struct dblp_rate_sample rs = { .now = SIM_S };
	struct dblp_cc cc;
	u32 cwnd;

	dblp_cc_start(&cc, &dblp_cc_sqrt, 1000, rs.now);
	ack_ten_in_flight(&cc, &rs, 1000);
	cwnd = cc.cwnd;
	rs.now += 5 * SIM_S;
	cc.ops->timeout(&cc, 1, rs.now - 12 * SIM_MS, rs.now);
	EXPECT_EQ(cwnd, cc.cwnd);
	rs.now += SIM_S;
	cc.ops->timeout(&cc, 2, rs.now - 1012 * SIM_MS, rs.now);
	EXPECT_GT(cwnd * 2 / 3, cc.cwnd);
}

/* With any feedback it continues to send, at valid rates */
TEST(sqrt__any_sample)
{
	struct prng r = { 53 };
	u32 i, k;

	for (i = 0; i < 300; i++) {
		u32 mss = 1 + prng_any(&r) % 65535;
		struct dblp_rtt rtt = {};
		struct dblp_cc cc;
		u64 now = prng_any(&r);

		dblp_cc_start(&cc, dblp_cc_at(i % 2), mss, now);
		for (k = 0; k < 300; k++) {
			struct dblp_rate_sample rs =
				sim_any_sample(&r, &rtt, &now);

			if (prng_below(&r, 10) == 0)
				cc.ops->timeout(&cc, prng_below(&r, 5), now - prng_below(&r, 1 << 30), now);
			cc.ops->ack(&cc, &rs, &rtt);
			ASSERT_GE(cc.cwnd, 2 * (u64)mss);
			ASSERT_LE(cc.cwnd, S32_MAX);
			ASSERT_GT(cc.pacing_rate, 0);
		}
	}
}

TEST_HARNESS_MAIN
