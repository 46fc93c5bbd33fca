// SPDX-License-Identifier: GPL-2.0-only
/* Round-trip times, loss detection and rate samples */
#include <linux/minmax.h>

#include "sent_model.h"
#include "test.h"

#define US	1000ULL
#define MS	1000000ULL
#define S	1000000000ULL

TEST(dblp_rtt_sample__first)
{
	struct dblp_rtt r = {};

	dblp_rtt_sample(&r, 800 * US, 0, 5 * S);
	EXPECT_EQ(800 * US, r.latest);
	EXPECT_EQ(800 * US, r.srtt);
	EXPECT_EQ(400 * US, r.var);
	EXPECT_EQ(800 * US, r.min);
}

/* ACKs were lost for 300 ms, which is not a time of the path */
TEST(dblp_rtt_sample__first_without_delay)
{
	struct dblp_rtt r = {};

	dblp_rtt_sample(&r, 301 * MS, 300 * MS, 5 * S);
	EXPECT_EQ(1 * MS, r.latest);
	EXPECT_EQ(1 * MS, r.srtt);
	EXPECT_EQ(1 * MS, r.min);
	r = (struct dblp_rtt) {};
	dblp_rtt_sample(&r, 1 * MS, U64_MAX, 5 * S);
	EXPECT_EQ(1 * MS, r.srtt);
}

/* The values of RFC 9002, 5.3, computed by hand */
TEST(dblp_rtt_sample__smooths)
{
	struct dblp_rtt r = {};

	dblp_rtt_sample(&r, 800, 0, 1);
	dblp_rtt_sample(&r, 1600, 0, 2);
	EXPECT_EQ(1600, r.latest);
	EXPECT_EQ(900, r.srtt);
	EXPECT_EQ(300 + 200, r.var);
	EXPECT_EQ(800, r.min);
}

/* One ACK in ten waits a hundred times as long for a CPU; then the path becomes longer */
TEST(dblp_rtt_sample__a_few_late_are_not_usual)
{
	struct dblp_rtt r = {};
	u32 i;

	for (i = 0; i < 1000; i++) {
		dblp_rtt_sample(&r, i % 10 == 9 ? 10 * MS : 100 * US, 0, i * MS);
		EXPECT_GE(130 * US, r.usual);
	}
	EXPECT_LT(500 * US, r.srtt);
	for (; i < 1050; i++)
		dblp_rtt_sample(&r, 800 * US, 0, i * MS);
	EXPECT_LE(750 * US, r.usual);
	EXPECT_GE(800 * US, r.usual);
}

TEST(dblp_rtt_sample__ack_delay)
{
	struct dblp_rtt r = {};

	dblp_rtt_sample(&r, 800, 0, 1);
	/* A plausible delay is subtracted */
	dblp_rtt_sample(&r, 1600, 800, 2);
	EXPECT_EQ(800, r.latest);
	EXPECT_EQ(800, r.srtt);
	/* A delay that would go below the minimum RTT is ignored */
	dblp_rtt_sample(&r, 1600, 801, 3);
	EXPECT_EQ(900, r.srtt);
	dblp_rtt_sample(&r, 1600, U64_MAX, 3);
	EXPECT_EQ(988, r.srtt);
	EXPECT_EQ(800, r.min);
}

TEST(dblp_rtt_sample__min_expires)
{
	struct dblp_rtt r = {};

	dblp_rtt_sample(&r, 1 * MS, 0, 1 * S);
	dblp_rtt_sample(&r, 3 * MS, 0, 11 * S);
	EXPECT_EQ(1 * MS, r.min);
	dblp_rtt_sample(&r, 3 * MS, 0, 11 * S + 1);
	EXPECT_EQ(3 * MS, r.min);
	dblp_rtt_sample(&r, 2 * MS, 0, 12 * S);
	EXPECT_EQ(2 * MS, r.min);
	/* The new minimum excludes the ACK delay, too */
	dblp_rtt_sample(&r, 403 * MS, 400 * MS, 23 * S);
	EXPECT_EQ(3 * MS, r.min);
	EXPECT_EQ(3 * MS, r.latest);
}

/* A packet sent at @sent waits for @queue on its way, and its ACK for @late on the way
 * back. The receiver's clock is ahead by @ahead.
 */
static struct dblp_rate_sample split(struct dblp_rtt *r, u64 sent, u64 queue, u64 late, u64 ahead)
{
	u64 rtt = 100 * US + queue + late;
	struct dblp_rate_sample rs = { .rtt = rtt, .sent = sent, .now = sent + rtt };
	u32 arrived = sent + 60 * US + queue + ahead;

	dblp_rtt_sample(r, rtt, 0, rs.now);
	dblp_rtt_split(r, &rs, &arrived);
	return rs;
}

/* For any clocks, which wrap at 2^32 ns meanwhile */
TEST(dblp_rtt_split__there_and_back)
{
	u64 ahead, late, queue, t;

	for (ahead = 0; ahead < 1ULL << 32; ahead += 1234567891) {
		struct dblp_rtt r = {};
		struct dblp_rate_sample rs = split(&r, S, 0, 0, ahead);

		EXPECT_EQ(rs.base, 100 * US);
		EXPECT_EQ(rs.queue, 0);
		for (t = 1; t < 8; t++) {
			queue = t % 3 * 200 * US;
			late = t % 2 * 300 * US;
			rs = split(&r, S + t * MS, queue, late, ahead);
			EXPECT_GE(rs.queue, queue);
			EXPECT_LE(rs.queue, queue + min(late, (t + 1) * MS / DBLP_CLOCK_DRIFT));
		}
		EXPECT_GT(r.back, 0);
	}
}

TEST(dblp_rtt_split__unknown_delay_is_forward)
{
	struct dblp_rate_sample rs = { .rtt = 100 * US, .now = S };
	struct dblp_rtt r = {};

	dblp_rtt_split(&r, &rs, NULL);
	rs.rtt = 350 * US;
	dblp_rtt_split(&r, &rs, NULL);
	EXPECT_EQ(rs.base, 100 * US);
	EXPECT_EQ(rs.queue, 250 * US);
	EXPECT_EQ(r.back, 0);
}

/* A clock that drifts never hides a queue that stands for 8 s. If some ACKs are late, the
 * result is too high by little.
 */
TEST(dblp_rtt_split__clocks_drift)
{
	struct dblp_rate_sample rs;
	u64 t, late;
	s32 ppm;

	for (ppm = -500; ppm <= 500; ppm += 250) {
		struct dblp_rtt r = {};

		split(&r, S, 0, 0, 0);
		for (t = 0; t < 8 * S; t += 2 * US * 101) {
			late = t / MS % 2 * 400 * US;
			rs = split(&r, S + t, 500 * US, late, (s64)t * ppm / 1000000);
			EXPECT_GE(rs.queue, 500 * US - US);
			EXPECT_LE(rs.queue, 520 * US);
		}
	}
}

/* If all ACKs become later, the path has become longer; it may become shorter again */
TEST(dblp_rtt_split__a_longer_way_back)
{
	struct dblp_rate_sample rs;
	struct dblp_rtt r = {};
	u64 t;

	split(&r, S, 0, 0, 77);
	for (t = 1; t < 100; t++)
		rs = split(&r, S + t * 500 * US, 200 * US, 400 * US, 77);
	EXPECT_GE(rs.base, 485 * US);
	EXPECT_LE(rs.base, 500 * US);
	EXPECT_GE(rs.queue, 200 * US);
	EXPECT_LE(rs.queue, 215 * US);
	EXPECT_LE(r.back, 15 * US);
	rs = split(&r, S + t * 500 * US, 0, 0, 77);
	EXPECT_EQ(rs.base, 100 * US);
	EXPECT_EQ(rs.queue, 0);
}

/* The RTT grows a thousandfold at once, half of it on the way back: half of the usual RTT
 * counts as the way to the peer, even without samples
 */
TEST(dblp_rtt_split__at_once_much_later)
{
	struct dblp_rtt r = {};
	u64 t;

	for (t = 0; t < 20; t++)
		split(&r, S + t * MS, 0, 0, 77);
	for (; t < 25; t++)
		split(&r, S + t * MS, 50 * MS, 50 * MS, 77);
	EXPECT_LE(r.usual, 200 * US);
	EXPECT_GE(r.usual - r.back, r.usual / 2);
	EXPECT_LE(r.usual - r.back, 100 * US + r.usual / 2);
}

/* The results for any reported time stay within the measured RTT */
TEST(dblp_rtt_split__any_number)
{
	struct prng p = { .state = 1 };
	struct dblp_rtt r = {};
	u64 now = S;
	u32 i;

	for (i = 0; i < 100000; i++) {
		struct dblp_rate_sample rs = { .rtt = 1 + prng_any(&p) % (20 * S), .sent = prng_any(&p) };
		u32 arrived = prng_any(&p);

		now += prng_any(&p) % (2 * S);
		rs.now = now;
		dblp_rtt_split(&r, &rs, &arrived);
		ASSERT_LE(rs.queue, rs.rtt);
		ASSERT_LE(r.back, 20 * S);
		ASSERT_LE(r.base, 20 * S);
		ASSERT_GE(r.base, 1);
	}
}

TEST(dblp_rtt_sample__never_zero)
{
	struct dblp_rtt r = {};
	u32 i;

	for (i = 0; i < 100; i++) {
		dblp_rtt_sample(&r, 0, 0, i);
		EXPECT_EQ(1, r.latest);
		EXPECT_GE(r.srtt, 1);
	}
}

TEST(dblp_pto__before_the_first_sample)
{
	struct dblp_rtt r = {};

	EXPECT_EQ(30 * MS + 7, dblp_pto(&r, 7, 0));
}

TEST(dblp_pto__follows_the_rtt)
{
	struct dblp_rtt r = {};
	u32 i;

	dblp_rtt_sample(&r, 40 * MS, 0, 1);
	EXPECT_EQ(40 * MS + 80 * MS + 5, dblp_pto(&r, 5, 0));
	/* The only minimum is the timer's granularity */
	for (i = 0; i < 200; i++)
		dblp_rtt_sample(&r, 50 * US, 0, i);
	EXPECT_LT(dblp_pto(&r, 0, 0), 151 * US);
	EXPECT_GE(dblp_pto(&r, 0, 0), 150 * US);
}

/* One sample of an idle path does not show the variation under load. So the initial
 * variation is halved by each sample.
 */
TEST(dblp_pto__does_not_trust_the_first_samples)
{
	u64 most = 20 * MS, rtt = 40 * US;
	struct dblp_rtt r = {};
	u32 i;

	for (i = 1; i <= 3; i++) {
		dblp_rtt_sample(&r, rtt, 0, i);
		EXPECT_EQ(rtt + most + 1 * MS, dblp_pto(&r, 1 * MS, 0));
		most /= 2;
	}
	for (; i <= 20; i++)
		dblp_rtt_sample(&r, rtt, 0, i);
	EXPECT_EQ(rtt + DBLP_GRANULARITY_NS + 1 * MS, dblp_pto(&r, 1 * MS, 0));
}

/* Number of timeouts of a dead path until @end, and the longest interval. No interval is
 * shorter than the one before.
 */
static u32 timeouts(u64 end, u64 *longest)
{
	struct dblp_rtt r = {};
	u64 t, pto;
	u32 n = 0;

	for (t = 0; t < 20; t++)
		dblp_rtt_sample(&r, 100 * US, 0, t + 1);
	*longest = 0;
	for (t = 0; t < end; t += pto, n++) {
		pto = dblp_pto(&r, 1 * MS, t);
		if (pto < *longest)
			return U32_MAX;
		*longest = pto;
	}
	return n;
}

TEST(dblp_pto__backs_off_on_a_dead_path)
{
	u64 longest;

	EXPECT_LE(timeouts(1 * S, &longest), 40);
	EXPECT_LE(timeouts(30 * S, &longest), 65);
	EXPECT_GE(longest, 4 * S);
	EXPECT_LE(timeouts(3600 * S, &longest), 140);
	EXPECT_EQ(DBLP_PTO_MAX_NS, longest);
}

/* A path that loses nine of ten packets is probed often enough to get answers */
TEST(dblp_pto__is_short_after_an_answer)
{
	struct dblp_rtt r = {};
	u64 longest;

	EXPECT_GE(timeouts(100 * MS, &longest), 20);
	dblp_rtt_sample(&r, 10 * MS, 0, 1);
	EXPECT_EQ(30 * MS, dblp_pto(&r, 0, 0));
	EXPECT_EQ(30 * MS, dblp_pto(&r, 0, DBLP_PTO_SILENCE * 30 * MS));
	EXPECT_EQ(31 * MS, dblp_pto(&r, 0, DBLP_PTO_SILENCE * 31 * MS));
	EXPECT_EQ(DBLP_PTO_MAX_NS, dblp_pto(&r, 0, 3600 * S));
}


FIXTURE(sent) {
	struct sent_model m;
};

FIXTURE_SETUP(sent)
{
	model_begin(&self->m);
}

FIXTURE_TEARDOWN(sent)
{
	model_end(&self->m);
}

static void push(struct sent_model *m, u32 n)
{
	while (n--)
		model_push(m, 1000, 0);
}

/* Advance the time by @wait, and pass an ACK of one range */
static bool ack(struct sent_model *m, u64 first, u64 last, u64 wait)
{
	struct dblp_acked_range r = { first, last };

	m->now += wait;
	return model_ack(m, &r, 1, 0);
}

static u8 state(const struct sent_model *m, u64 pn)
{
	return m->pkt[pn].told;
}

/* Number of the oldest packet in flight, or U64_MAX */
static u64 oldest(struct sent_model *m)
{
	u64 pn = 0;

	return dblp_sent_inflight(&m->s, &pn) ? pn : U64_MAX;
}

TEST_F(sent, dblp_sent_ack__everything)
{
	push(&self->m, 100);
	EXPECT_EQ(100000, self->m.s.inflight);
	EXPECT_TRUE(ack(&self->m, 0, 99, 1 * MS));
	EXPECT_EQ(0, self->m.s.inflight);
	EXPECT_EQ(1 * MS, self->m.rtt.latest);
	EXPECT_EQ(100, self->m.s.base);
}

TEST_F(sent, dblp_sent_ack__twice)
{
	push(&self->m, 10);
	EXPECT_TRUE(ack(&self->m, 2, 8, 1 * MS));
	EXPECT_EQ(7000, self->m.s.delivered);
	EXPECT_TRUE(ack(&self->m, 2, 8, 50 * US));
	EXPECT_EQ(7000, self->m.s.delivered);
	/* A packet that was acknowledged before gives no RTT sample */
	EXPECT_EQ(1 * MS, self->m.rtt.latest);
}

TEST_F(sent, dblp_sent_ack__rtt_only_from_the_largest)
{
	struct dblp_acked_range r[2] = { { 8, 8 }, { 5, 5 } };

	push(&self->m, 10);
	EXPECT_TRUE(ack(&self->m, 8, 8, 1 * MS));
	self->m.now += 50 * US;
	EXPECT_TRUE(model_ack(&self->m, r, 2, 0));
	EXPECT_EQ(DBLP_SENT_ACKED, state(&self->m, 5));
	EXPECT_EQ(1 * MS, self->m.rtt.latest);
}

TEST_F(sent, dblp_sent_ack__of_packets_never_sent)
{
	push(&self->m, 10);
	EXPECT_TRUE(ack(&self->m, 0, 10, 1 * MS));
	EXPECT_TRUE(ack(&self->m, 10, 10, 0));
	EXPECT_TRUE(ack(&self->m, 0, U64_MAX, 0));
	EXPECT_EQ(10000, self->m.s.inflight);
	EXPECT_TRUE(ack(&self->m, 0, 9, 0));
	EXPECT_EQ(0, self->m.s.inflight);
}

TEST_F(sent, dblp_sent_skip__is_noticed_and_costs_nothing)
{
	struct dblp_acked_range r[2] = { { 11, 12 }, { 3, 9 } };

	push(&self->m, 10);
	EXPECT_TRUE(model_skip(&self->m, 0));
	EXPECT_EQ(11, self->m.s.next);
	EXPECT_EQ(10000, self->m.s.inflight);
	push(&self->m, 2);
	/* A second number is skipped only after the first one has left the ring */
	EXPECT_TRUE(model_skip(&self->m, 0));
	EXPECT_EQ(13, self->m.s.next);
	EXPECT_TRUE(ack(&self->m, 0, 12, 1 * MS));
	EXPECT_TRUE(ack(&self->m, 10, 10, 0));
	EXPECT_TRUE(ack(&self->m, 10, 11, 0));
	EXPECT_TRUE(ack(&self->m, 9, 10, 0));
	EXPECT_EQ(12000, self->m.s.inflight);

	/* A skipped number does not count as a packet that overtook others */
	EXPECT_TRUE(ack(&self->m, 11, 12, 0));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 9));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 8));
	EXPECT_TRUE(model_ack(&self->m, r, 2, 0));
	EXPECT_EQ(9000, self->m.s.delivered);
	EXPECT_EQ(6, self->m.s.spurious);
	EXPECT_TRUE(ack(&self->m, 0, 2, 0));
	EXPECT_EQ(13, self->m.s.base);
	EXPECT_TRUE(model_skip(&self->m, 0));
	EXPECT_EQ(14, self->m.s.next);
	push(&self->m, 1);
	EXPECT_TRUE(ack(&self->m, 13, 14, 0));
	EXPECT_TRUE(ack(&self->m, 14, 14, 0));
	EXPECT_EQ(0, self->m.s.inflight);
	EXPECT_EQ(15, self->m.s.base);
}

TEST_F(sent, dblp_sent_skip__without_room)
{
	push(&self->m, MODEL_RING);
	EXPECT_EQ(0, dblp_sent_free(&self->m.s));
	EXPECT_TRUE(model_skip(&self->m, 0));
	EXPECT_EQ(MODEL_RING, self->m.s.next);
}

/* Skipped numbers in a million packets without loss */
TEST(dblp_sent_skip__is_rare)
{
	u64 was[4] = {}, n = 0;
	struct prng r = { 9 };
	struct dblp_sent s;

	ring_init(&s, MODEL_RING);
	EXPECT_TRUE(dblp_sent_skips(&s));
	for (; s.next < 1000000; s.base = ++s.next) {
		u64 next = s.next;

		if (!dblp_sent_skips(&s))
			continue;
		dblp_sent_skip(&s, prng_any(&r));
		if (s.next != next && n++ < 4)
			was[n - 1] = next;
	}
	EXPECT_TRUE(was[0] >= 256 && was[0] < 512);
	EXPECT_TRUE(was[1] - was[0] > 4096 && was[1] - was[0] <= 8192);
	EXPECT_TRUE(was[2] - was[1] > 65536 && was[2] - was[1] <= 131072);
	EXPECT_TRUE(was[3] - was[2] > 65536 && was[3] - was[2] <= 131072);
	EXPECT_TRUE(n >= 2 + 7 && n <= 2 + 15);
	ring_free(&s);
}

TEST_F(sent, dblp_sent_ack__ranges_that_cannot_be)
{
	static const struct dblp_acked_range bad[][2] = {
		{ { 5, 4 }, { 1, 2 } },
		{ { 5, 6 }, { 3, 2 } },
		{ { 1, 2 }, { 5, 6 } },
		{ { 5, 6 }, { 4, 5 } },
		{ { 5, 6 }, { 5, 6 } },
		{ { 2, 4 }, { 1, 8 } },
	};
	u32 i;

	push(&self->m, 10);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_TRUE(model_ack(&self->m, bad[i], 2, 0));
	EXPECT_TRUE(model_ack(&self->m, bad[0], 0, 0));
	EXPECT_EQ(10000, self->m.s.inflight);
	EXPECT_FALSE(self->m.s.any_acked);
}

TEST_F(sent, dblp_sent_ack__packet_threshold)
{
	push(&self->m, 10);
	EXPECT_TRUE(ack(&self->m, 2, 2, 1 * MS));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 0));
	EXPECT_TRUE(ack(&self->m, 3, 3, 0));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 0));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 1));
	EXPECT_TRUE(ack(&self->m, 6, 6, 0));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 1));
	EXPECT_EQ(DBLP_LOST_REORDERED, self->m.pkt[1].why);
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 4));
	/* Packets after the acknowledged one stay in flight */
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 9));
}

TEST_F(sent, dblp_sent_timeout__time_threshold)
{
	u64 sent = self->m.now, due = sent + 8 * MS + 1 * MS;

	push(&self->m, 3);
	EXPECT_TRUE(ack(&self->m, 2, 2, 8 * MS));
	EXPECT_EQ(due, self->m.s.loss_time);
	self->m.now = due - 1;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 0));
	self->m.now = due;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 0));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 1));
	EXPECT_EQ(DBLP_LOST_OVERDUE, self->m.pkt[1].why);
	EXPECT_EQ(0, self->m.s.loss_time);
}

TEST_F(sent, dblp_sent_timeout__only_below_an_ack)
{
	push(&self->m, 3);
	self->m.now += 100 * S;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(3000, self->m.s.inflight);
	EXPECT_TRUE(ack(&self->m, 0, 0, 0));
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(2000, self->m.s.inflight);
}

TEST_F(sent, dblp_sent_ack__spurious_widens_distance)
{
	push(&self->m, 400);
	EXPECT_TRUE(ack(&self->m, 9, 9, 1 * MS));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 2));
	EXPECT_TRUE(ack(&self->m, 2, 2, 10 * US));
	EXPECT_EQ(1, self->m.s.spurious);
	EXPECT_EQ(8, self->m.s.reorder);
	/* The same reordering is tolerated now */
	EXPECT_TRUE(ack(&self->m, 27, 27, 0));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 19));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 20));
	EXPECT_TRUE(ack(&self->m, 399, 399, 0));
	EXPECT_TRUE(ack(&self->m, 20, 20, 0));
	EXPECT_EQ(380, self->m.s.reorder);
}

/*
 * A packet overtakes a whole flight, the next one one packet more; the third is
 * tolerated
 */
TEST_F(sent, dblp_sent_ack__one_overtakes_thousands)
{
	push(&self->m, 1100);
	EXPECT_TRUE(ack(&self->m, 1099, 1099, 1 * MS));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 0));
	EXPECT_TRUE(ack(&self->m, 0, 1098, 10 * US));
	EXPECT_EQ(1097, self->m.s.spurious);
	push(&self->m, 1500);
	EXPECT_TRUE(ack(&self->m, 2599, 2599, 1 * MS));
	EXPECT_TRUE(ack(&self->m, 1100, 2598, 10 * US));
	EXPECT_EQ(1500, self->m.s.reorder);
	push(&self->m, 1400);
	EXPECT_TRUE(ack(&self->m, 3999, 3999, 1 * MS));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(&self->m, 2600));
}

TEST_F(sent, dblp_sent_ack__spurious_widens_time)
{
	u64 i, sent, usual, late, most, step = 4 * MS / 4 + 1;

	push(&self->m, 4);
	EXPECT_TRUE(ack(&self->m, 3, 3, 4 * MS));
	EXPECT_TRUE(ack(&self->m, 0, 0, 10 * US));
	EXPECT_EQ(step, self->m.s.reorder_ns);
	/* Tolerates the observed delay plus an eighth */
	self->m.now += 6 * MS;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 1));
	usual = self->m.rtt.latest + self->m.rtt.latest / 8;
	EXPECT_TRUE(ack(&self->m, 1, 1, 0));
	late = 10 * MS + 10 * US - usual;
	EXPECT_EQ(late + late / 8, self->m.s.reorder_ns);
	EXPECT_TRUE(ack(&self->m, 2, 2, 0));
	EXPECT_EQ(late + late / 8, self->m.s.reorder_ns);
	EXPECT_EQ(3, self->m.s.spurious);
	/* Grows with the observed delay, up to 64 round trips */
	for (i = 4; i < 40; i += 4) {
		push(&self->m, 4);
		sent = self->m.now;
		EXPECT_TRUE(ack(&self->m, i + 2, i + 3, 4 * MS));
		self->m.now = self->m.s.loss_time;
		EXPECT_TRUE(model_timeout(&self->m));
		EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, i));
		self->m.now = sent + 3 * (self->m.now - sent);
		usual = max(self->m.rtt.latest, self->m.rtt.srtt);
		late = self->m.now - sent - usual - usual / 8;
		most = max(64 * self->m.rtt.srtt, self->m.s.reorder_ns);
		EXPECT_TRUE(ack(&self->m, i, i + 3, 0));
		EXPECT_EQ(min(late + late / 8, most), self->m.s.reorder_ns);
	}
	EXPECT_EQ(most, self->m.s.reorder_ns);
}

/* A packet lost without a later ACK was not overtaken: its ACK was lost */
TEST_F(sent, dblp_sent_ack__late_news_are_no_reordering)
{
	push(&self->m, 4);
	dblp_sent_lose(&self->m.s, 3, &model_ops, &self->m);
	EXPECT_TRUE(ack(&self->m, 3, 3, 900 * MS));
	EXPECT_EQ(1, self->m.s.spurious);
	EXPECT_EQ(DBLP_REORDER_MIN, self->m.s.reorder);
	EXPECT_EQ(0, self->m.s.reorder_ns);
}

/* Grows by a quarter of a round trip at a time if no ACK is later than usual */
TEST_F(sent, dblp_sent_ack__spurious_widens_time_step_by_step)
{
	u64 i, step = 4 * MS / 4 + 1;

	for (i = 0; i < 40; i += 10) {
		push(&self->m, 10);
		EXPECT_TRUE(ack(&self->m, i + 9, i + 9, 4 * MS));
		self->m.s.reorder = DBLP_REORDER_MIN;
		EXPECT_TRUE(model_timeout(&self->m));
		EXPECT_TRUE(ack(&self->m, i, i, 10 * US));
		EXPECT_TRUE(ack(&self->m, i + 1, i + 1, 10 * US));
		EXPECT_EQ((i / 10 + 1) * step, self->m.s.reorder_ns);
	}
}

/* Tolerance that is still needed does not decay */
TEST_F(sent, dblp_sent_ack__tolerance_needed_stays)
{
	u64 pn, late;

	push(&self->m, 40);
	EXPECT_TRUE(ack(&self->m, 39, 39, 1 * MS));
	EXPECT_TRUE(ack(&self->m, 0, 0, 2 * MS));
	late = self->m.s.reorder_ns;
	EXPECT_NE(0, late);
	for (pn = 40; pn < 40 + 40 * 100; pn += 40) {
		push(&self->m, 40);
		EXPECT_TRUE(ack(&self->m, pn + 39, pn + 39, 1 * MS));
		EXPECT_TRUE(ack(&self->m, pn, pn + 38, 1900 * US));
		EXPECT_EQ(1, self->m.s.spurious);
		EXPECT_EQ(40, self->m.s.reorder);
		EXPECT_EQ(late, self->m.s.reorder_ns);
	}
}

TEST_F(sent, dblp_sent_ack__tolerance_decays)
{
	u64 pn;

	push(&self->m, 100);
	EXPECT_TRUE(ack(&self->m, 99, 99, 1 * MS));
	EXPECT_TRUE(ack(&self->m, 0, 0, 10 * US));
	EXPECT_EQ(100, self->m.s.reorder);
	EXPECT_NE(0, self->m.s.reorder_ns);
	for (pn = 100; pn < 1100; pn++) {
		push(&self->m, 1);
		EXPECT_TRUE(ack(&self->m, pn, pn, 1 * MS));
		/* No decay at first */
		if (pn < 160)
			EXPECT_EQ(100, self->m.s.reorder);
	}
	EXPECT_EQ(DBLP_REORDER_MIN, self->m.s.reorder);
	EXPECT_LT(self->m.s.reorder_ns, 10 * US);
}

TEST_F(sent, dblp_sent_ack__lost_are_kept_for_a_while)
{
	push(&self->m, 10);
	EXPECT_TRUE(ack(&self->m, 1, 9, 1 * MS));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 0));
	EXPECT_EQ(0, self->m.s.base);
	/* After three round trips the lost packets are still known */
	self->m.now += 2 * MS;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(0, self->m.s.base);
	/* After twenty they are forgotten, and their ACKs have no effect */
	self->m.now += 18 * MS;
	EXPECT_TRUE(model_timeout(&self->m));
	EXPECT_EQ(10, self->m.s.base);
	EXPECT_TRUE(ack(&self->m, 0, 9, 0));
	EXPECT_EQ(9000, self->m.s.delivered);
	EXPECT_EQ(0, self->m.s.spurious);
}

TEST_F(sent, dblp_sent_ack__lost_far_below_are_dropped)
{
	push(&self->m, 3000);
	EXPECT_TRUE(ack(&self->m, 1, 100, 1 * MS));
	EXPECT_EQ(0, self->m.s.base);
	/* The window of packets in flight limits this */
	EXPECT_TRUE(ack(&self->m, 1, 1900, 0));
	EXPECT_EQ(0, self->m.s.base);
	EXPECT_TRUE(ack(&self->m, 1, 2000, 0));
	EXPECT_EQ(2001, self->m.s.base);
}

/* One packet in ten is lost, then none; packets that arrive late do not count as lost */
TEST_F(sent, dblp_sent_loss__of_late)
{
	u64 i;

	EXPECT_EQ(0, dblp_sent_loss(&self->m.s));
	for (i = 0; i < 1000; i += 10) {
		push(&self->m, 10);
		EXPECT_TRUE(ack(&self->m, i + 1, i + 9, 1 * MS));
	}
	EXPECT_GE(dblp_sent_loss(&self->m.s), 99000);
	EXPECT_LE(dblp_sent_loss(&self->m.s), 101000);
	EXPECT_TRUE(ack(&self->m, i - 10, i - 10, 0));
	EXPECT_LE(dblp_sent_loss(&self->m.s), 99500);
	for (; i < MODEL_PKTS - 10; i += 10) {
		push(&self->m, 10);
		EXPECT_TRUE(ack(&self->m, i, i + 9, 1 * MS));
	}
	EXPECT_LE(dblp_sent_loss(&self->m.s), 2000);
}

TEST_F(sent, dblp_sent_grow__keeps_all)
{
	u32 i;

	push(&self->m, 5);
	EXPECT_TRUE(ack(&self->m, 4, 4, 1 * MS));
	push(&self->m, 1000);
	EXPECT_EQ(1023, self->m.s.mask);
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 1));
	for (i = 5; i < 1005; i += 5)
		EXPECT_TRUE(ack(&self->m, i, i + 4, i == 5 ? 1 * MS : 0));
	EXPECT_TRUE(ack(&self->m, 1, 1, 0));
	EXPECT_EQ(1, self->m.s.spurious);
}

/*
 * Lost packets are forgotten: their late ACKs are neither spurious nor for other
 * packets
 */
TEST_F(sent, dblp_sent_shrink__continues_in_a_small_block)
{
	const u32 size = 4;
	u32 i;

	push(&self->m, 1000);
	EXPECT_TRUE(ack(&self->m, 1, 998, 1 * MS));
	EXPECT_EQ(DBLP_SENT_LOST, state(&self->m, 0));
	EXPECT_TRUE(ack(&self->m, 999, 999, 0));
	EXPECT_EQ(0, self->m.s.inflight_pkts);
	ring_shrink(&self->m.s, size);
	EXPECT_EQ(size - 1, self->m.s.mask);
	EXPECT_EQ(size, dblp_sent_free(&self->m.s));
	push(&self->m, size);
	EXPECT_EQ(0, dblp_sent_free(&self->m.s));
	EXPECT_TRUE(ack(&self->m, 0, 0, 0));
	EXPECT_EQ(size, self->m.s.inflight_pkts);
	EXPECT_EQ(0, self->m.s.spurious);
	push(&self->m, 1060);
	for (i = 1000; i < 2064; i += 8)
		EXPECT_TRUE(ack(&self->m, i, i + 7, 0));
	EXPECT_EQ(0, self->m.s.inflight_pkts);
	EXPECT_FALSE(self->m.broken);
}

TEST_F(sent, dblp_sent_free__until_the_ring_is_full)
{
	u32 i;

	for (i = 0; i < MODEL_RING; i++) {
		EXPECT_EQ(MODEL_RING - i, dblp_sent_free(&self->m.s));
		push(&self->m, 1);
	}
	EXPECT_EQ(0, dblp_sent_free(&self->m.s));
	EXPECT_TRUE(ack(&self->m, 0, 0, 1 * MS));
	EXPECT_EQ(1, dblp_sent_free(&self->m.s));
}

/* A ring that does not grow works for any number of packets */
TEST_F(sent, dblp_sent_push__wraps)
{
	u64 pn;

	for (pn = 0; pn < 4000; pn += 4) {
		push(&self->m, 4);
		EXPECT_TRUE(ack(&self->m, pn, pn + 3, 100 * US));
	}
	EXPECT_EQ(MODEL_RING - 1, self->m.s.mask);
}

/* Across blocks of the ring, and from its end to its start */
TEST_F(sent, dblp_sent_push_row__each_has_its_segment)
{
	struct dblp_sent *s = &self->m.s;
	struct dblp_sent_pkt pkt, *got;
	u32 n, seg = 7, i;

	while (s->mask + 1 < 4 * DBLP_SENT_BLOCK)
		ring_grow(s);
	for (n = 1; n < 3 * DBLP_SENT_BLOCK; n += 13, seg += n) {
		pkt = (struct dblp_sent_pkt) {
			.bytes = 1000 + n, .data = 1, .msg = n, .seg = seg,
		};
		dblp_sent_push_row(s, &pkt, n, n);
		for (i = 0; i < n; i++) {
			got = dblp_sent_slot(s, s->next - n + i);
			EXPECT_TRUE(got->state == DBLP_SENT_INFLIGHT);
			EXPECT_EQ(n, got->sent);
			EXPECT_EQ(1000 + n, got->bytes);
			EXPECT_EQ(n, got->msg);
			EXPECT_EQ(seg + i, got->seg);
			EXPECT_EQ(1, (u32)got->data);
		}
		EXPECT_EQ(n, s->inflight_pkts);
		EXPECT_EQ(n * (1000 + n), s->inflight);
		s->base = s->next;
		s->inflight_pkts = 0;
		s->inflight = 0;
	}
}

/* An ACK that shows a thousand losses declares a few, and so does each later one. The
 * timer handles the others, unless they are acknowledged before.
 */
TEST_F(sent, dblp_sent_ack__loses_a_few_at_a_time)
{
	struct dblp_acked_range r = { 1000, 1000 };
	struct sent_model *m = &self->m;
	u32 n = DBLP_LOSE_MAX, lost;
	struct dblp_rate_sample rs;

	push(m, 1001);
	m->now += 1 * MS;
	dblp_sent_ack(&m->s, &r, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	EXPECT_EQ(n, m->n_lost);
	EXPECT_EQ(1000 * n, rs.lost);
	EXPECT_EQ(1000 * (1000 - n), rs.inflight);
	EXPECT_EQ(n, oldest(m));
	EXPECT_EQ(m->now, m->s.loss_time);
	r = (struct dblp_acked_range) { 2 * n + 1, 999 };
	dblp_sent_ack(&m->s, &r, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	EXPECT_EQ(0, m->s.spurious);
	EXPECT_EQ(2 * n, m->n_lost);
	EXPECT_EQ(m->now, m->s.loss_time);
	lost = dblp_sent_timeout(&m->s, &m->rtt, m->now, &model_ops, m);
	EXPECT_EQ(1000, lost);
	EXPECT_EQ(0, m->s.loss_time);
	EXPECT_EQ(0, m->s.inflight_pkts);
	EXPECT_EQ(1001, m->s.scan);
	EXPECT_EQ(1000 * (2 * n + 1), m->s.recent_lost);
	EXPECT_FALSE(m->broken);

	/* Fewer packets if each is expensive */
	m->weight = 51;
	push(m, 100);
	m->n_lost = 0;
	r = (struct dblp_acked_range) { 1100, 1100 };
	dblp_sent_ack(&m->s, &r, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	EXPECT_GE(DBLP_LOSE_MAX + 51, m->n_lost);
	EXPECT_EQ(1000 * (97 - n / 52 - 1), model_go_on(m));
	EXPECT_EQ(2, m->s.inflight_pkts);
	EXPECT_FALSE(m->broken);
}

/* Each is reported lost once, and its later ACK counts as late */
TEST_F(sent, dblp_sent_lose_larger__once)
{
	struct sent_model *m = &self->m;

	model_push(m, 1400, 0);
	model_push(m, 1200, 0);
	model_push(m, 1400, 0);
	model_push(m, 1201, 0);
	dblp_sent_inflight(&m->s, &(u64){ 0 })->fragmented = 1;
	dblp_sent_lose_larger(&m->s, 1200, m->now, &model_ops, m);
	EXPECT_EQ(2600, m->s.inflight);
	EXPECT_EQ(2, m->s.inflight_pkts);
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(m, 0));
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(m, 1));
	EXPECT_EQ(DBLP_SENT_LOST, state(m, 2));
	EXPECT_EQ(DBLP_SENT_LOST, m->pkt[3].told);
	EXPECT_EQ(DBLP_LOST_TOO_LARGE, m->pkt[3].why);
	dblp_sent_lose_larger(&m->s, 1200, m->now, &model_ops, m);
	EXPECT_EQ(2600, m->s.inflight);
	EXPECT_FALSE(m->broken);
	m->pkt[2].state = DBLP_SENT_LOST;
	m->pkt[3].state = DBLP_SENT_LOST;
	EXPECT_TRUE(ack(m, 0, 3, 0));
	EXPECT_EQ(0, m->s.inflight);
	EXPECT_EQ(0, m->s.inflight_pkts);
	EXPECT_EQ(2, m->s.spurious);
}

/* Thousands of packets are handled in steps, which skip the first ones and exclude
 * packets sent since. Other losses are detected meanwhile.
 */
TEST_F(sent, dblp_sent_lose_larger__step_by_step)
{
	struct dblp_acked_range r = { 1001, 1001 }, one = { 5, 5 };
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;

	push(m, 1000);
	model_push(m, 500, 0);
	m->n_lost = 0;
	dblp_sent_lose_larger(&m->s, 500, m->now, &model_ops, m);
	EXPECT_EQ(DBLP_LOSE_MAX, m->n_lost);
	EXPECT_EQ(DBLP_LOSE_MAX, oldest(m));
	EXPECT_EQ(m->now, m->s.loss_time);
	/* An ACK without news does not stop this */
	dblp_sent_ack(&m->s, &one, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	EXPECT_EQ(m->now, m->s.loss_time);
	push(m, 1);
	m->now += 1 * MS;
	dblp_sent_ack(&m->s, &r, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	EXPECT_EQ(m->now, m->s.loss_time);
	/* These losses are no sign of congestion */
	EXPECT_GE(1000 * DBLP_LOSE_MAX, rs.lost + model_go_on(m));
	EXPECT_FALSE(m->broken);
	/* Packet 999 is not reordered enough, but too large */
	EXPECT_EQ(DBLP_LOST_REORDERED, m->pkt[DBLP_LOSE_MAX].why);
	EXPECT_EQ(DBLP_LOST_TOO_LARGE, m->pkt[999].why);
	EXPECT_EQ(DBLP_SENT_INFLIGHT, state(m, 1000));
	EXPECT_EQ(500, m->s.inflight);
}

/* A ring full of unanswered packets: probes get room nevertheless, any number of times,
 * and the ACK of a probe restores normal operation.
 */
TEST_F(sent, dblp_sent_lose_oldest__probes_of_a_dead_path)
{
	struct sent_model *m = &self->m;
	u32 i;

	push(m, MODEL_RING);
	EXPECT_EQ(0, dblp_sent_free(&m->s));
	for (i = 0; i < 10 * MODEL_RING; i++) {
		EXPECT_EQ(0, dblp_sent_trim(&m->s, 2));
		dblp_sent_lose_oldest(&m->s, 2, &model_ops, m);
		EXPECT_EQ(2, dblp_sent_free(&m->s));
		EXPECT_EQ(DBLP_LOST_NO_ROOM, m->pkt[m->s.base - 1].why);
		push(m, 2);
	}
	EXPECT_EQ(MODEL_RING, m->s.inflight_pkts);
	EXPECT_EQ(MODEL_RING - 1, m->s.mask);
	EXPECT_FALSE(m->broken);
	for (i = 0; i < m->s.base; i++)
		m->pkt[i].state = DBLP_SENT_LOST;
	/* ACKs of removed packets have no effect */
	EXPECT_TRUE(ack(m, 0, m->s.base - 1, 0));
	EXPECT_EQ(0, m->s.spurious);
	EXPECT_EQ(MODEL_RING, m->s.inflight_pkts);
	m->now += 10 * MS;
	EXPECT_TRUE(ack(m, m->s.next - 1, m->s.next - 1, 0));
	EXPECT_EQ(DBLP_REORDER_MIN - 1, m->s.inflight_pkts);
}

/* Lost packets are remembered only as long as the ring has room */
TEST_F(sent, dblp_sent_trim__forgets_lost_packets)
{
	struct sent_model *m = &self->m;

	push(m, MODEL_RING);
	EXPECT_TRUE(ack(m, MODEL_RING - 1, MODEL_RING - 1, 0));
	EXPECT_EQ(0, dblp_sent_free(&m->s));
	EXPECT_EQ(2, dblp_sent_trim(&m->s, 2));
	EXPECT_EQ(2, m->s.base);
	push(m, 2);
	EXPECT_TRUE(ack(m, MODEL_RING + 1, MODEL_RING + 1, 0));
}

TEST_F(sent, dblp_sent_inflight__oldest)
{
	EXPECT_EQ(U64_MAX, oldest(&self->m));
	push(&self->m, 10);
	EXPECT_EQ(0, oldest(&self->m));
	EXPECT_TRUE(ack(&self->m, 0, 4, 1 * MS));
	EXPECT_EQ(5, oldest(&self->m));
	EXPECT_TRUE(ack(&self->m, 9, 9, 1 * MS));
	EXPECT_EQ(7, oldest(&self->m));
}

/* Rate sample of an ACK of one packet, without the model */
static struct dblp_rate_sample rate_of(struct sent_model *m, u64 pn)
{
	struct dblp_acked_range r = { pn, pn };
	struct dblp_rate_sample rs;

	dblp_sent_ack(&m->s, &r, 1, 0, &m->rtt, m->now, &model_ops, m, &rs);
	return rs;
}

TEST_F(sent, dblp_sent_ack__rate_of_a_steady_flow)
{
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;
	u64 i;

	/* A packet of 1000 bytes each 100 us; its ACK arrives after 1 ms */
	for (i = 0; i < 1000; i++) {
		push(m, 1);
		if (i >= 10) {
			rs = rate_of(m, i - 10);
			if (i >= 30)
				EXPECT_EQ(10 * 1000 * 1000, rs.rate);
			EXPECT_EQ(1 * MS, rs.rtt);
			EXPECT_FALSE(rs.app_limited);
		}
		m->now += 100 * US;
	}
}

TEST_F(sent, dblp_sent_ack__rate_when_acks_bunch)
{
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;
	u64 i, best = 0;

	/* The same flow, but ten ACKs arrive together */
	for (i = 0; i < 1000; i++) {
		push(m, 1);
		if (i >= 20 && i % 10 == 0) {
			u64 pn;

			for (pn = i - 20; pn < i - 10; pn++) {
				rs = rate_of(m, pn);
				if (i >= 50 && rs.rate > best)
					best = rs.rate;
			}
		}
		m->now += 100 * US;
	}
	EXPECT_GE(best, 9 * 1000 * 1000);
	EXPECT_LE(best, 11 * 1000 * 1000);
}

/* The rate does not exceed the sending rate, however close the ACKs are */
TEST_F(sent, dblp_sent_ack__rate_is_not_above_sending)
{
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;
	u32 i;

	for (i = 0; i < 10; i++) {
		push(m, 1);
		m->now += 1 * MS;
	}
	rate_of(m, 0);
	push(m, 1);
	m->now += 1 * MS;
	for (i = 1; i <= 10; i++)
		rs = rate_of(m, i);
	EXPECT_EQ(10 * MS, rs.interval);
	EXPECT_EQ(1000 * 1000, rs.rate);
}

TEST_F(sent, dblp_sent_ack__rate_limited_by_the_application)
{
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;

	push(m, 2);
	m->s.app_limited = m->s.delivered + m->s.inflight;
	push(m, 1);
	m->now += 1 * MS;
	rs = rate_of(m, 0);
	EXPECT_FALSE(rs.app_limited);
	rs = rate_of(m, 1);
	EXPECT_NE(0, m->s.app_limited);
	rs = rate_of(m, 2);
	EXPECT_TRUE(rs.app_limited);
	/*
	 * The packets in flight are acknowledged, so the rate is not
	 * application-limited any more
	 */
	EXPECT_EQ(0, m->s.app_limited);
	push(m, 1);
	m->now += 1 * MS;
	rs = rate_of(m, 3);
	EXPECT_FALSE(rs.app_limited);
}

TEST_F(sent, dblp_sent_ack__rate_after_a_pause)
{
	struct sent_model *m = &self->m;
	struct dblp_rate_sample rs;

	push(m, 1);
	m->now += 1 * MS;
	rate_of(m, 0);
	m->now += 100 * S;
	push(m, 10);
	m->now += 1 * MS;
	/* The pause is excluded */
	rs = rate_of(m, 10);
	EXPECT_EQ(1 * MS, rs.interval);
	EXPECT_EQ(1000, rs.prior_delivered);
	EXPECT_EQ(1000 * 1000, rs.rate);
}

/* A skipped packet does not arrive */
static void see(const struct sent_model *m, bool *seen, u64 pn)
{
	if (m->pkt[pn].bytes)
		seen[pn] = true;
}

/* Random sending, loss, reordering and pauses */
static bool random_life(struct prng *r, u32 loss, u32 spread, u32 ports)
{
	struct sent_model m;
	bool seen[MODEL_PKTS] = {}, ok = true;
	u64 next = 0;

	model_begin(&m);
	model_spray(&m, ports);
	while (m.next < MODEL_PKTS - 64 && ok) {
		struct dblp_acked_range acks[64];
		u64 i, n = 0;

		m.port = prng_below(r, ports);
		for (i = prng_below(r, 16); i; i--)
			model_push(&m, 1 + prng_below(r, 1500),
				   prng_below(r, 4));
		for (; next + spread < m.next; next++)
			if (prng_below(r, 100) >= loss)
				see(&m, seen, next + prng_below(r, spread + 1));
		m.now += prng_any(r) % (5 * MS);
		if (prng_below(r, 4) == 0)
			ok = model_skip(&m, prng_any(r));
		for (i = m.next; i-- && n < 64;) {
			if (!seen[i] || prng_below(r, 50) == 0)
				continue;
			acks[n].last = i;
			while (i && seen[i - 1] && prng_below(r, 20))
				i--;
			acks[n++].first = i;
		}
		if (n)
			ok = model_ack(&m, acks, n, prng_any(r) % MS);
		if (ok && prng_below(r, 4) == 0)
			ok = model_timeout(&m);
	}
	model_end(&m);
	return ok;
}

TEST(dblp_sent_ack__like_the_model)
{
	static const u32 losses[] = { 0, 1, 10, 30, 90 };
	static const u32 spreads[] = { 0, 2, 10, 60 };
	struct prng r = { 41 };
	u32 i, k, ports;

	for (i = 0; i < 5; i++)
		for (k = 0; k < 4; k++)
			for (ports = 1; ports <= DBLP_SPRAY_MAX; ports *= 4)
				EXPECT_TRUE(random_life(&r, losses[i],
							spreads[k], ports)) {
					TH_LOG("loss %u spread %u ports %u",
					       losses[i], spreads[k], ports);
				}
}

TEST_HARNESS_MAIN
