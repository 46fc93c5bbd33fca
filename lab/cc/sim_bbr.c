// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP BBR version 1 for the simulator, as in Linux: the highest delivery rate of ten
 * rounds, the lowest round-trip time of ten seconds, and a cycle of gains. Loss reduces
 * the window only in the first round of a recovery and after a timeout.
 */
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>

#include "sim.h"

#define BW_ROUNDS	10
#define MIN_RTT_NS	(10 * SIM_S)
#define PROBE_RTT_NS	(200 * SIM_MS)
#define HIGH_GAIN	2.885
#define CYCLE		8

enum bbr_mode {
	STARTUP,
	DRAIN,
	PROBE_BW,
	PROBE_RTT,
};

struct bbr {
	double	bw[BW_ROUNDS];	/* bytes/ns */
	double	full_bw;
	u64	min_rtt;
	u64	min_rtt_at;
	u64	round_end;
	u64	cycle_at;
	u64	probe_end;
	u64	recovery_end;
	u32	random;
	u8	slot;
	u8	mode;
	u8	full_rounds;
	u8	phase;
	bool	lossy;		/* in this phase */
	bool	restored;	/* the window after a timeout */
};

static struct bbr *state(struct dblp_cc *cc)
{
	return (struct bbr *)cc->priv;
}

static void bbr_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct bbr *b = state(cc);

	_Static_assert(sizeof(*b) <= sizeof(cc->priv), "priv");
	b->random = now ^ now >> 32;
	b->restored = true;
	cc->cwnd = 10 * mss;
}

static double max_bw(const struct bbr *b)
{
	double bw = 0;
	int i;

	for (i = 0; i < BW_ROUNDS; i++)
		bw = b->bw[i] > bw ? b->bw[i] : bw;
	return bw;
}

static void next_phase(struct bbr *b, u64 now)
{
	b->phase = (b->phase + 1) % CYCLE;
	b->cycle_at = now;
	b->lossy = false;
}

static void enter_probe_bw(struct bbr *b, u64 now)
{
	b->mode = PROBE_BW;
	/* Any phase except draining */
	b->phase = (dblp_cc_random(&b->random) >> 8) % (CYCLE - 1);
	b->phase = b->phase ? b->phase + 1 : 0;
	b->cycle_at = now;
	b->lossy = false;
}

static double bbr_gain(const struct bbr *b)
{
	switch (b->mode) {
	case STARTUP:
		return HIGH_GAIN;
	case DRAIN:
		return 1 / HIGH_GAIN;
	case PROBE_BW:
		return b->phase == 0 ? 1.25 : b->phase == 1 ? 0.75 : 1;
	}
	return 1;
}

static double bdp(const struct bbr *b)
{
	return max_bw(b) * b->min_rtt;
}

static void update_cycle(struct bbr *b, const struct dblp_rate_sample *rs)
{
	bool full = rs->now - b->cycle_at > b->min_rtt;

	b->lossy |= rs->lost;
	if (b->phase == 0)
		full = full && (b->lossy ||
				rs->inflight >= 1.25 * bdp(b));
	else if (b->phase == 1)
		full = full || rs->inflight <= bdp(b);
	if (full)
		next_phase(b, rs->now);
}

static void check_full(struct bbr *b, const struct dblp_rate_sample *rs)
{
	if (b->mode != STARTUP || rs->app_limited)
		return;
	if (max_bw(b) >= b->full_bw * 1.25) {
		b->full_bw = max_bw(b);
		b->full_rounds = 0;
	} else if (++b->full_rounds >= 3) {
		b->mode = DRAIN;
	}
}

static void update_model(struct bbr *b, const struct dblp_rate_sample *rs)
{
	if (rs->acked && rs->prior_delivered >= b->round_end) {
		b->round_end = rs->delivered;
		b->slot = (b->slot + 1) % BW_ROUNDS;
		b->bw[b->slot] = 0;
		check_full(b, rs);
	}
	if (rs->rate && (!rs->app_limited || rs->rate / 1e9 > max_bw(b)) &&
	    rs->rate / 1e9 > b->bw[b->slot])
		b->bw[b->slot] = rs->rate / 1e9;
	if (rs->rtt && (!b->min_rtt || rs->rtt <= b->min_rtt ||
			(rs->now > b->min_rtt_at + MIN_RTT_NS &&
			 b->mode == PROBE_RTT))) {
		b->min_rtt = rs->rtt;
		b->min_rtt_at = rs->now;
	}
}

static void update_mode(struct dblp_cc *cc, struct bbr *b,
			const struct dblp_rate_sample *rs)
{
	if (b->mode == DRAIN && rs->inflight <= bdp(b))
		enter_probe_bw(b, rs->now);
	if (b->mode == PROBE_BW)
		update_cycle(b, rs);
	if (b->mode != PROBE_RTT && b->min_rtt &&
	    rs->now > b->min_rtt_at + MIN_RTT_NS) {
		b->mode = PROBE_RTT;
		b->probe_end = 0;
	}
	if (b->mode != PROBE_RTT)
		return;
	if (!b->probe_end && rs->inflight <= 4 * cc->mss)
		b->probe_end = rs->now + PROBE_RTT_NS;
	if (b->probe_end && rs->now > b->probe_end) {
		b->min_rtt_at = rs->now;
		b->mode = b->full_rounds >= 3 ? PROBE_BW : STARTUP;
	}
}

static void bbr_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		    const struct dblp_rtt *rtt)
{
	struct bbr *b = state(cc);
	double gain, target, bw;
	u64 cwnd = cc->cwnd;

	update_model(b, rs);
	update_mode(cc, b, rs);
	bw = max_bw(b);
	gain = b->mode == PROBE_BW || b->mode == PROBE_RTT ? 2 : HIGH_GAIN;
	target = bw && b->min_rtt ? gain * bdp(b) + 3 * cc->mss :
				    10 * cc->mss;
	/* Packet conservation for one round trip */
	if (rs->lost && rs->delivered >= b->recovery_end) {
		b->recovery_end = rs->delivered + rs->inflight + 1;
		b->restored = false;
		cwnd = rs->inflight + max(rs->acked, cc->mss);
	} else if (rs->delivered < b->recovery_end) {
		cwnd = max_t(u64, cwnd, rs->inflight + rs->acked);
	} else if (b->mode != STARTUP && !b->restored) {
		b->restored = true;
		cwnd = target;
	} else {
		cwnd += rs->acked;
	}
	if (b->mode != STARTUP && cwnd > target)
		cwnd = target;
	if (b->mode == PROBE_RTT)
		cwnd = min_t(u64, cwnd, 4 * cc->mss);
	cwnd = max_t(u64, cwnd, 4 * cc->mss);
	cc->cwnd = min_t(u64, cwnd, S32_MAX);
	if (!bw)
		bw = rtt->srtt ? 10.0 * cc->mss / rtt->srtt : 0;
	bw *= bbr_gain(b) * 0.99 * 1e9;
	if (b->mode != STARTUP || bw > cc->pacing_rate)
		cc->pacing_rate = bw < 1 ? 1 : bw;
}

static void bbr_timeout(struct dblp_cc *cc, u32 count, u64 acked_at, u64 now)
{
	struct bbr *b = state(cc);

	/* The first timeout is a loss probe */
	if (count < 2)
		return;
	b->restored = false;
	cc->cwnd = cc->mss;
}

const struct dblp_cc_ops sim_bbr = {
	.name		= "bbr",
	.init		= bbr_init,
	.ack		= bbr_ack,
	.timeout	= bbr_timeout,
};
