// SPDX-License-Identifier: GPL-2.0-only
/*
 * Incast: many senders and one receiver. When a hundred workers send to a server at
 * once, and the switch's queue holds a hundred packets, each has room for less than
 * one packet. Windows of whole packets overflow the queue, and delay alone does not
 * tell a sender its part of the queue.
 *
 * The receiver reports the number n of senders (SHARE). Each then keeps its part of
 * a moderate queue: the window w moves towards
 *
 *	w x min_rtt / rtt + QUEUE_PKTS / n
 *
 * as in FAST TCP (Wei, Jin, Low, Hegde, IEEE/ACM Trans. Networking 14(6)), whose
 * fixed point is a queue of QUEUE_PKTS in all, however fast the link is, and an
 * equal rate for each sender. With less than a packet in flight, the pacer sends one
 * packet every few round trips.
 *
 * Training goes in rounds: each round begins with the number of senders and the fair
 * rate of the round before, and the first packets are spread over the time that the
 * link needs for them.
 *
 * If the bottleneck is elsewhere, n is too large: there is no queue to share, and
 * the window grows fast until there is.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "crowd.h"

enum crowd_limits {
	QUEUE_PKTS	= 48,	/* of all senders; switches have 100 or more */
	FAIR_PKTS	= 4,	/* least packets to measure a rate */
	CROWD_MIN	= 12,	/* with fewer, windows of whole packets suffice */
};

#define SECOND_NS		1000000000ULL

/* A queue this short cannot be distinguished from none */
#define QUEUE_NOISE_NS		100000ULL

/* Longest time over which the first packets of a round are spread */
#define SPREAD_MAX_NS		(20ULL * 1000000)

#define WND_MAX			0x40000000U

static u32 crowd_size(const struct dblp_crowd *c, u64 now)
{
	return now < c->hold ? max(c->n, c->before) : c->n;
}

static void count_senders(struct dblp_crowd *c,
			  const struct dblp_rate_sample *rs)
{
	if (!rs->share)
		return;
	c->n = min_t(u32, rs->share, U16_MAX);
	c->peak = max(c->peak, c->n);
}

/* Move half of the way per round trip, however many ACKs come in it */
static void move_window(struct dblp_crowd *c, u32 acked, u64 rtt, u64 min_rtt,
			u32 n)
{
	u32 own = QUEUE_PKTS * c->mss / n;
	u64 target;
	s64 step;

	if (!c->wnd)
		c->wnd = own;
	if (rtt <= min_rtt + min_rtt / 8 + QUEUE_NOISE_NS)
		target = 2 * (u64)c->wnd + own;
	else
		target = div64_u64(c->wnd * min_rtt, rtt) + own;
	target = min_t(u64, target, WND_MAX);
	step = ((s64)target - c->wnd) / 2;
	if (acked < c->wnd)
		step = div64_s64(step * acked, c->wnd);
	c->wnd += step;
	c->rate = (c->rate + div64_u64(c->wnd * SECOND_NS, rtt)) / 2;
}

/* The rate of each sender while all send. A round may at most halve it: being late in
 * one round must not make us later in the next.
 */
static void measure_fair(struct dblp_crowd *c,
			 const struct dblp_rate_sample *rs)
{
	u64 bytes = rs->delivered - c->from;

	if (!c->from) {
		c->from = rs->delivered;
		c->from_at = rs->now;
		c->least = c->fair / 2;
		return;
	}
	/* A few packets are no sample, nor are those from before a pause */
	if (c->n < c->peak - c->peak / 4 || rs->now <= c->from_at ||
	    bytes < FAIR_PKTS * c->mss)
		return;
	bytes = min_t(u64, bytes, U64_MAX / SECOND_NS);
	c->fair = max(div64_u64(bytes * SECOND_NS, rs->now - c->from_at),
		      c->least);
}

bool dblp_crowd_ack(struct dblp_crowd *c, const struct dblp_rate_sample *rs,
		    u64 min_rtt)
{
	u32 n;

	count_senders(c, rs);
	n = crowd_size(c, rs->now);
	if (n < CROWD_MIN || !min_rtt)
		return false;
	if (rs->rtt)
		move_window(c, rs->acked, max(rs->rtt, min_rtt), min_rtt, n);
	if (rs->now < c->hold && c->fair)
		c->rate = min(c->rate, c->fair + c->fair / 4);
	measure_fair(c, rs);
	return c->rate;
}

u64 dblp_crowd_resume(struct dblp_crowd *c, u32 random, u64 now)
{
	u64 spread;

	c->before = c->peak;
	c->n = c->peak;
	c->peak = 0;
	c->from = 0;
	if (c->before < CROWD_MIN || !c->fair)
		return 0;
	c->wnd = min(c->wnd, 2 * QUEUE_PKTS * c->mss / c->before);
	/* If it is wrong, the first ACK must come soon to correct it */
	c->fair = max_t(u64, c->fair,
			div64_u64(c->mss * SECOND_NS, SPREAD_MAX_NS));
	c->rate = c->fair;
	spread = div64_u64(c->mss * SECOND_NS, c->fair);
	c->hold = now + spread + spread / 2;
	return mul_u64_u64_div_u64(spread, random, 1ULL << 32) + 1;
}
