// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP CUBIC for the simulator (RFC 9438): slow start, the cubic function and its
 * Reno-friendly region, one reduction per round trip.
 */
#include <linux/minmax.h>

#include "sim.h"

#define BETA	0.7
#define SCALE	0.4
#define ALPHA	(3 * (1 - BETA) / (1 + BETA))

struct cubic {
	double	cwnd;		/* packets */
	double	ssthresh;
	double	w_max;
	double	w_reno;
	u64	epoch;		/* 0: none */
	u64	recovery_end;	/* delivered */
};

static struct cubic *state(struct dblp_cc *cc)
{
	return (struct cubic *)cc->priv;
}

static void cubic_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct cubic *c = state(cc);

	c->cwnd = 10;
	c->ssthresh = 1e9;
	cc->cwnd = 10 * mss;
}

static double cubic_root(double x)
{
	double r = 1;
	int i;

	for (i = 0; i < 60; i++)
		r -= (r * r * r - x) / (3 * r * r + 0.000000001);
	return r;
}

static void cubic_reduce(struct cubic *c, double to)
{
	c->w_max = c->cwnd < c->w_max ? c->cwnd * (1 + BETA) / 2 : c->cwnd;
	c->cwnd = to > 1 ? to : 1;
	c->ssthresh = c->cwnd > 2 ? c->cwnd : 2;
	c->epoch = 0;
}

static void cubic_grow(struct cubic *c, double acked, u64 now, u64 rtt)
{
	double t, k, target;

	if (c->cwnd < c->ssthresh) {
		c->cwnd += acked;
		return;
	}
	if (!c->epoch) {
		c->epoch = now;
		c->w_reno = c->cwnd;
	}
	k = cubic_root((c->w_max > c->cwnd ? c->w_max - c->cwnd : 0) / SCALE);
	t = (double)(now - c->epoch + rtt) / SIM_S - k;
	target = SCALE * t * t * t + c->w_max;
	c->w_reno += ALPHA * acked / c->cwnd;
	if (target > 1.5 * c->cwnd)
		target = 1.5 * c->cwnd;
	if (target > c->cwnd)
		c->cwnd += (target - c->cwnd) / c->cwnd * acked;
	else
		c->cwnd += acked / (100 * c->cwnd);
	if (c->w_reno > c->cwnd)
		c->cwnd = c->w_reno;
}

static void cubic_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		      const struct dblp_rtt *rtt)
{
	struct cubic *c = state(cc);

	if (rs->lost && rs->delivered >= c->recovery_end) {
		cubic_reduce(c, c->cwnd * BETA);
		c->recovery_end = rs->delivered + rs->inflight + 1;
	} else if (rs->acked && rs->delivered >= c->recovery_end &&
		   !rs->app_limited) {
		cubic_grow(c, (double)rs->acked / cc->mss, rs->now, rtt->min);
	}
	cc->cwnd = c->cwnd * cc->mss;
}

static void cubic_timeout(struct dblp_cc *cc, u32 count, u64 acked_at, u64 now)
{
	struct cubic *c = state(cc);

	/* The first timeout is a loss probe */
	if (count < 2)
		return;
	cubic_reduce(c, c->cwnd / 2);
	c->cwnd = 1;
	cc->cwnd = cc->mss;
}

const struct dblp_cc_ops sim_cubic = {
	.name		= "cubic",
	.init		= cubic_init,
	.ack		= cubic_ack,
	.timeout	= cubic_timeout,
};
