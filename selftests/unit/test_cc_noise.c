// SPDX-License-Identifier: GPL-2.0-only
/* Delay that is not a queue's: what is taken for it, and what becomes of paths that
 * have it
 */
#include <linux/minmax.h>

#include "noise.h"
#include "sim.h"
#include "test.h"

#define MSS	1400
#define MIN_RTT	(2 * SIM_MS)

/* A span of a round trip in which @n packets need @rtt, and @more at most besides */
static enum dblp_span span(struct dblp_noise *n, struct prng *r, u64 rtt,
			   u64 more, u32 pkts)
{
	u32 i;

	for (i = 0; i < pkts; i++)
		dblp_noise_sample(n, rtt + prng_below(r, more + 1));
	return dblp_noise_round(n, MSS, pkts * MSS, MIN_RTT);
}

TEST(noise__few_packets_tell_nothing)
{
	struct prng r = { 1 };
	struct dblp_noise n;
	u32 i;

	dblp_noise_init(&n);
	for (i = 0; i < 11; i++)
		EXPECT_EQ(DBLP_SPAN_GOES_ON, span(&n, &r, 9 * SIM_MS - i, 0, 1));
	EXPECT_EQ(DBLP_SPAN_ENDS, span(&n, &r, 9 * SIM_MS, 0, 1));
	EXPECT_EQ(9 * SIM_MS - 10, n.span_rtt);
	/* Nor do acknowledgments that measure nothing */
	EXPECT_EQ(DBLP_SPAN_ENDS, dblp_noise_round(&n, MSS, 100 * MSS, MIN_RTT));
	EXPECT_EQ(U64_MAX, n.span_rtt);
}

/* It holds up all packets, some a little more than others */
TEST(noise__a_standing_queue_is_none)
{
	struct prng r = { 2 };
	struct dblp_noise n;
	u64 queue;
	u32 i;

	for (queue = SIM_MS; queue <= 100 * SIM_MS; queue *= 10) {
		dblp_noise_init(&n);
		for (i = 0; i < 1000; i++)
			ASSERT_EQ(DBLP_SPAN_ENDS, span(&n, &r, MIN_RTT + queue,
						       queue / 3, 50));
		EXPECT_EQ(0, n.excess);
	}
}

/* One that comes and goes differs as much, but not for long */
TEST(noise__a_queue_that_comes_and_goes_is_none)
{
	struct prng r = { 3 };
	struct dblp_noise n;
	u32 i;

	dblp_noise_init(&n);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(DBLP_SPAN_ENDS, i % 4 ?
			  span(&n, &r, MIN_RTT + SIM_MS, 4 * SIM_MS, 50) :
			  span(&n, &r, MIN_RTT, SIM_MS / 10, 50));
	EXPECT_EQ(0, n.excess);
}

TEST(noise__is_found_once_and_wears_off)
{
	struct prng r = { 4 };
	struct dblp_noise n;
	u32 i, found = 0;
	u64 excess;

	dblp_noise_init(&n);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(DBLP_SPAN_ENDS,
			  span(&n, &r, MIN_RTT + SIM_MS, 4 * SIM_MS, 50));
	EXPECT_EQ(0, n.excess);
	for (i = 0; i < 100; i++)
		found += span(&n, &r, MIN_RTT + SIM_MS, 4 * SIM_MS, 50) ==
			 DBLP_SPAN_NOISE;
	EXPECT_EQ(1, found);
	EXPECT_TRUE(n.varied);
	/* What nearly all packets need */
	EXPECT_GE(n.excess, 5 * SIM_MS);
	EXPECT_LE(n.excess, 7 * SIM_MS);

	excess = n.excess;
	for (i = 0; i < 10; i++)
		span(&n, &r, MIN_RTT, 0, 50);
	EXPECT_FALSE(n.varied);
	EXPECT_GE(n.excess, excess / 2);
	excess = n.excess;
	for (i = 0; i < 10; i++)
		span(&n, &r, MIN_RTT + 4 * SIM_MS, 0, 50);
	EXPECT_LE(n.excess, excess / 3);
	/* And may begin again */
	for (i = 0; i < 4; i++)
		found += span(&n, &r, MIN_RTT + 5 * SIM_MS, 9 * SIM_MS, 50) ==
			 DBLP_SPAN_NOISE;
	EXPECT_EQ(2, found);
}

static void bunch_ack(struct dblp_bunch *b, u64 now, u32 acked)
{
	struct dblp_rate_sample rs = { .now = now, .acked = acked };

	dblp_bunch_ack(b, &rs, 1000 * MSS, 100 * MSS);
}

/* A thousand packets a second, one by one and ten at a time */
TEST(noise__bunches_of_acks)
{
	struct dblp_bunch b = {};
	u32 i;

	for (i = 1; i <= 100; i++)
		bunch_ack(&b, i * SIM_MS, MSS);
	EXPECT_LE(dblp_bunch_bytes(&b), 2 * MSS);
	for (i = 1; i <= 100; i++)
		bunch_ack(&b, (110 + i / 10 * 10) * SIM_MS, MSS);
	EXPECT_GE(dblp_bunch_bytes(&b), 10 * MSS);
	EXPECT_LE(dblp_bunch_bytes(&b), 20 * MSS);
	for (i = 0; i < 5; i++)
		dblp_bunch_round(&b);
	EXPECT_GE(dblp_bunch_bytes(&b), 10 * MSS);
	for (i = 0; i < 5; i++)
		dblp_bunch_round(&b);
	EXPECT_EQ(0, dblp_bunch_bytes(&b));
	/* Never more than what was in flight */
	bunch_ack(&b, SIM_S, 1000 * MSS);
	EXPECT_EQ(100 * MSS, dblp_bunch_bytes(&b));
}

static const struct dblp_cc_ops *const controls[] = {
	&dblp_cc_bdp, &dblp_cc_swift,
};

/* ACKs wait for each other, or each way takes longer for one packet than for the
 * next: what arrives of the link, in thousandths, by bdp and by swift at least
 */
static const struct {
	u64	mbit, rtt, ack_every, jitter;
	u32	least[2];
} noisy[] = {
	{ 100, 2000, 7000, 0, { 950, 950 } },
	{ 100, 500, 3000, 0, { 950, 950 } },
	{ 100, 500, 10000, 0, { 950, 950 } },
	{ 1000, 100, 4000, 0, { 950, 900 } },
	{ 100, 2000, 30000, 0, { 950, 600 } },
	{ 100, 10000, 10000, 0, { 750, 950 } },
	{ 100, 6000, 0, 4000, { 950, 900 } },
	{ 1000, 1000, 0, 1000, { 650, 600 } },
	{ 1000, 100, 0, 500, { 300, 700 } },
};

static void noisy_path(struct sim *s, u32 i, u32 flows, u32 loss,
		       const struct dblp_cc_ops *ops)
{
	u32 k;

	sim_path(s, flows, noisy[i].mbit, noisy[i].rtt * SIM_US, loss);
	s->ack_every = noisy[i].ack_every * SIM_US;
	s->jitter = noisy[i].jitter * SIM_US;
	s->queue_max = 1000;
	for (k = 0; k < flows; k++)
		s->flow[k].ops = ops;
}

static void check_noisy(struct __test_metadata *_metadata, u32 loss)
{
	struct sim s;
	u32 i, k, got;

	for (i = 0; i < ARRAY_SIZE(noisy); i++) {
		for (k = 0; k < 2; k++) {
			noisy_path(&s, i, 1, loss, controls[k]);
			sim_run(&s, SIM_S);
			got = sim_share(&s, 0, 3 * SIM_S);
			EXPECT_GE(got, noisy[i].least[k]) {
				TH_LOG("path %u, %s: 0.%03u of the link", i,
				       controls[k]->name, got);
			}
			sim_free(&s);
		}
	}
}

TEST(noise__of_the_path_is_borne)
{
	check_noisy(_metadata, 0);
}

TEST(noise__and_loss_are_borne)
{
	check_noisy(_metadata, 5000);
}

/* Nor does it hide that the link has become slower: the queue stays below a few
 * times what noise may hide, and two flows both live
 */
static void check_slower(struct __test_metadata *_metadata, u32 i,
			 const struct dblp_cc_ops *ops)
{
	u64 before, start, noise, queue;
	struct sim s;
	u32 a, b;

	noisy_path(&s, i, 2, 0, ops);
	noise = s.ack_every + s.jitter;
	sim_run(&s, SIM_S);
	s.rate /= 4;
	sim_run(&s, s.now + 2 * SIM_S);
	before = s.flow[1].received;
	start = s.now;
	s.queue_area = 0;
	a = sim_share(&s, 0, 5 * SIM_S);
	b = (s.flow[1].received - before) * 1000 / (s.rate * 5);
	queue = s.queue_area / (s.now - start) * s.mss * SIM_S / s.rate;
	EXPECT_LE(queue, 4 * noise + s.rtt / 2);
	EXPECT_GE(a, 80);
	EXPECT_GE(b, 80);
	EXPECT_GE(a + b, 900) {
		TH_LOG("path %u, %s: shares %u and %u, queue %llu us", i,
		       ops->name, a, b, queue / SIM_US);
	}
	sim_free(&s);
}

TEST(noise__does_not_hide_a_queue)
{
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(noisy); i++)
		for (k = 0; k < 2; k++)
			check_slower(_metadata, i, controls[k]);
}

TEST_HARNESS_MAIN
