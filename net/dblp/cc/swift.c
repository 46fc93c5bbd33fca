// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control by delay and marks, after Swift (Kumar et al., SIGCOMM
 * 2020) and DCTCP (RFC 8257): a window that grows by a packet a round trip
 * while the queue is shorter than a target, and shrinks once a round trip by as
 * much as the delay exceeds it, or as large a share of packets was marked.
 *
 * The delay of a round trip is that of its fastest packet, and the usual variation
 * of delay is added to the target: see noise.c.
 *
 * The target is longer for small windows: more flows have smaller windows, and their
 * noise makes longer queues. A window of less than a packet is a packet every few
 * round trips.
 *
 * Loss without delay or marks is congestion only if it exceeds the usual loss, as at
 * a queue shorter than the target. Where more than a fifth of the packets are lost
 * at random, bdp does better.
 *
 * Unlike bdp it does not reserve room for a rate that it once measured, so it keeps
 * shorter queues where switches mark, and finds free bandwidth more slowly.
 */
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "cc.h"
#include "noise.h"

/* Shares are in 1/1024 */
#define UNIT			1024

enum swift_limits {
	LEAST_PART	= 32,	/* least window: a packet per 32 round trips */
	ALPHA_SHIFT	= 4,	/* RFC 8257: g = 1/16 */
	DELAY_BETA	= 819,	/* of the excess delay */
	DELAY_MOST	= 512,	/* least that is left */
	LOSS_SHIFT	= 4,
	LOSS_EXCESS	= 64,	/* above twice the usual loss */
	LOSS_USUAL	= 64,	/* most that counts as usual */
	LOSS_LEFT	= 716,
	PACE_GAIN	= 1280,
	START_GAIN	= 2048,
	SECOND		= 1000000000,
};

#define QUEUE_NS		300000ULL	/* of a large window */
#define QUEUE_SMALL_NS		700000ULL	/* added for a window of a packet */
#define MIN_RTT_WINDOW_NS	(10ULL * 1000000000)
#define WND_MAX			S32_MAX

/**
 * struct swift - state
 * @min_rtt: propagation delay
 * @min_rtt_at: when it was last seen
 * @noise: delay not caused by a queue
 * @round_rtt: lowest round-trip time of this round, U64_MAX before the first
 * @round_end: the round trip is over when a packet sent later is acknowledged
 * @round_acked: bytes acknowledged in it
 * @round_lost: bytes lost in it
 * @round_ce: packets marked in it
 * @wnd: window, bytes; may be less than a packet
 * @alpha: share of packets marked, smoothed
 * @loss: share of bytes lost, smoothed
 * @shrunk: the window was reduced in this round trip
 * @starting: it doubles each round trip
 * @random: state of a generator
 */
struct swift {
	u64	min_rtt;
	u64	min_rtt_at;
	struct dblp_noise noise;
	u64	round_rtt;
	u64	round_end;
	u64	round_acked;
	u64	round_lost;
	u32	round_ce;
	u32	wnd;
	u32	alpha;
	u32	loss;
	bool	shrunk;
	bool	starting;
	u32	random;
};

static struct swift *state(struct dblp_cc *cc)
{
	BUILD_BUG_ON(sizeof(struct swift) > sizeof(cc->priv));
	return (struct swift *)cc->priv;
}

static void swift_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct swift *s = state(cc);

	s->wnd = DBLP_CC_INITIAL_PKTS * mss;
	s->starting = true;
	s->random = now ^ now >> 32;
	s->round_rtt = U64_MAX;
	dblp_noise_init(&s->noise);
	cc->cwnd = s->wnd;
	cc->pacing_rate = (u64)cc->cwnd * DBLP_CC_INITIAL_HZ;
}

static void swift_take(struct dblp_cc *cc, u64 rate, const struct dblp_rtt *rtt)
{
	struct swift *s = state(cc);
	u64 wnd;

	wnd = mul_u64_u64_div_u64(rate, min(rtt->min, MIN_RTT_WINDOW_NS),
				  SECOND);
	s->wnd = clamp_t(u64, wnd, cc->mss, WND_MAX);
	s->starting = false;
}

static void update_min_rtt(struct swift *s, const struct dblp_rate_sample *rs,
			   const struct dblp_rtt *rtt)
{
	if (!s->min_rtt)
		s->min_rtt = rtt->min;
	if (!rs->rtt)
		return;
	dblp_noise_sample(&s->noise, rs->rtt);
	s->round_rtt = min(s->round_rtt, rs->rtt);
	if (!s->min_rtt || rs->rtt <= s->min_rtt) {
		s->min_rtt = rs->rtt;
		s->min_rtt_at = rs->now;
	}
	/* The path may have become longer: raise the minimum step by step */
	if (rs->now - s->min_rtt_at > MIN_RTT_WINDOW_NS) {
		s->min_rtt = min(rs->rtt, s->min_rtt + s->min_rtt / 8);
		s->min_rtt_at = rs->now;
	}
}

static u64 target_rtt(const struct dblp_cc *cc, const struct swift *s)
{
	u64 pkts = max_t(u32, s->wnd / cc->mss, 1), root = 1;

	while (root * root < pkts && root < 32)
		root++;
	return s->min_rtt + s->min_rtt / 8 + s->noise.excess + QUEUE_NS +
	       div_u64(QUEUE_SMALL_NS, root);
}

/* Once a round trip; @left in 1/1024 */
static void shrink(struct dblp_cc *cc, struct swift *s, u32 left)
{
	u32 least = cc->mss / LEAST_PART + 1;

	s->starting = false;
	if (s->shrunk)
		return;
	s->shrunk = true;
	s->wnd = max_t(u64, (u64)s->wnd * left / UNIT, least);
}

static void grow(struct dblp_cc *cc, struct swift *s, u32 acked)
{
	u64 step = acked;

	if (!s->starting)
		step = div_u64((u64)cc->mss * min(acked, s->wnd), s->wnd);
	s->wnd = min_t(u64, s->wnd + step, WND_MAX);
}

static void heed_delay(struct dblp_cc *cc, struct swift *s, u64 rtt)
{
	u64 target = target_rtt(cc, s), excess;

	if (rtt == U64_MAX || rtt <= target)
		return;
	excess = div64_u64((rtt - target) * DELAY_BETA, rtt);
	shrink(cc, s, max_t(u64, UNIT - excess, DELAY_MOST));
}

static void heed_ack(struct dblp_cc *cc, struct swift *s,
		     const struct dblp_rate_sample *rs)
{
	/* While the window doubles, do not wait for the end of a round */
	if (s->starting && rs->rtt)
		heed_delay(cc, s, rs->rtt);
	/* A window that is not used is not tested */
	if (rs->rtt && !rs->app_limited && s->round_rtt <= target_rtt(cc, s))
		grow(cc, s, rs->acked);
}

/* RFC 8257 section 3.3 */
static void heed_marks(struct dblp_cc *cc, struct swift *s)
{
	u64 bytes = (u64)s->round_ce * cc->mss;
	u32 share = 0;

	if (s->round_acked)
		share = min_t(u64, div64_u64(bytes * UNIT, s->round_acked),
			      UNIT);
	s->alpha += ((s32)share - (s32)s->alpha) / (1 << ALPHA_SHIFT);
	if (!s->round_ce)
		return;
	/* The very first marks must not be smoothed away */
	s->alpha = max(s->alpha, share >> ALPHA_SHIFT);
	shrink(cc, s, UNIT - s->alpha / 2);
}

static void heed_loss(struct dblp_cc *cc, struct swift *s)
{
	u64 bytes = s->round_acked + s->round_lost;
	u32 share = bytes ? div64_u64(s->round_lost * UNIT, bytes) : 0;

	if (share > 2 * s->loss + LOSS_EXCESS && s->round_lost > 2 * cc->mss)
		shrink(cc, s, LOSS_LEFT);
	s->loss += ((s32)share - (s32)s->loss) / (1 << LOSS_SHIFT);
	s->loss = min_t(u32, s->loss, LOSS_USUAL);
}

static void next_round(struct dblp_cc *cc, struct swift *s,
		       const struct dblp_rate_sample *rs)
{
	enum dblp_span span;

	if (!rs->acked || rs->prior_delivered < s->round_end)
		return;
	s->round_end = rs->delivered;
	span = dblp_noise_round(&s->noise, cc->mss, s->round_acked, s->min_rtt);
	if (span != DBLP_SPAN_GOES_ON)
		heed_delay(cc, s, s->noise.span_rtt);
	heed_marks(cc, s);
	heed_loss(cc, s);
	s->starting |= span == DBLP_SPAN_NOISE;
	s->round_rtt = U64_MAX;
	s->round_acked = 0;
	s->round_lost = 0;
	s->round_ce = 0;
	s->shrunk = false;
}

static void set_rates(struct dblp_cc *cc, const struct swift *s,
		      const struct dblp_rtt *rtt)
{
	u32 gain = s->starting ? START_GAIN : PACE_GAIN;

	if (s->wnd < 2 * cc->mss)
		gain = UNIT;
	cc->cwnd = max(s->wnd, 2 * cc->mss);
	cc->pacing_rate = max_t(u64, 1, div64_u64((u64)s->wnd * SECOND,
						  max_t(u64, rtt->srtt, 1)));
	cc->pacing_rate = min_t(u64, cc->pacing_rate, U64_MAX / UNIT / 4) *
			  gain / UNIT;
}

static void swift_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		      const struct dblp_rtt *rtt)
{
	struct swift *s = state(cc);

	update_min_rtt(s, rs, rtt);
	s->round_acked += rs->acked;
	s->round_lost += rs->lost;
	s->round_ce += rs->ce;
	if (dblp_crowd_ack(&cc->crowd, rs, s->min_rtt)) {
		s->wnd = max_t(u32, cc->crowd.wnd, 1);
		s->starting = false;
	} else if (rs->acked) {
		heed_ack(cc, s, rs);
	}
	next_round(cc, s, rs);
	set_rates(cc, s, rtt);
}

static u64 swift_resume(struct dblp_cc *cc, u64 now)
{
	struct swift *s = state(cc);
	u64 wait;

	wait = dblp_crowd_resume(&cc->crowd, dblp_cc_random(&s->random), now);
	if (wait)
		cc->pacing_rate = cc->crowd.rate;
	return wait;
}

/* There are no ACKs at all */
static void swift_timeout(struct dblp_cc *cc, u32 count, u64 now)
{
	struct swift *s = state(cc);

	if (count < 2)
		return;
	s->wnd = max_t(u32, s->wnd / 2, cc->mss);
	s->starting = false;
	cc->cwnd = max(s->wnd, 2 * cc->mss);
}

static const char *swift_mode(struct dblp_cc *cc)
{
	const struct swift *s = state(cc);

	return s->starting ? "startup" : s->shrunk ? "shrunk" : "steady";
}

const struct dblp_cc_ops dblp_cc_swift = {
	.name		= "swift",
	.ecn		= true,
	.init		= swift_init,
	.take		= swift_take,
	.resume		= swift_resume,
	.ack		= swift_ack,
	.timeout	= swift_timeout,
	.mode		= swift_mode,
};
