// SPDX-License-Identifier: GPL-2.0-only
/*
 * DCTCP for the simulator (RFC 8257): the window is halved after a loss, as in Linux, and
 * reduced by the share of marked packets otherwise.
 */
#include <linux/minmax.h>

#include "sim.h"

#define GAIN	(1.0 / 16)

struct dctcp {
	double	cwnd;		/* packets */
	double	ssthresh;
	double	alpha;
	u64	recovery_end;	/* delivered */
	u64	round_end;
	u64	round_acked;
	u64	round_ce;
};

static struct dctcp *state(struct dblp_cc *cc)
{
	return (struct dctcp *)cc->priv;
}

static void dctcp_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct dctcp *d = state(cc);

	d->cwnd = 10;
	d->ssthresh = 1e9;
	d->alpha = 1;
	cc->cwnd = 10 * mss;
}

static void dctcp_reduce(struct dctcp *d, double to)
{
	d->ssthresh = to > 2 ? to : 2;
	d->cwnd = d->ssthresh;
}

static void heed_marks(struct dblp_cc *cc, struct dctcp *d,
		       const struct dblp_rate_sample *rs)
{
	d->round_acked += rs->acked;
	d->round_ce += (u64)rs->ce * cc->mss;
	if (rs->prior_delivered < d->round_end)
		return;
	if (d->round_acked)
		d->alpha += GAIN * (min(1.0, (double)d->round_ce /
					     d->round_acked) - d->alpha);
	if (d->round_ce)
		dctcp_reduce(d, d->cwnd * (1 - d->alpha / 2));
	d->round_end = rs->delivered;
	d->round_acked = 0;
	d->round_ce = 0;
}

static void dctcp_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		      const struct dblp_rtt *rtt)
{
	struct dctcp *d = state(cc);
	double acked = (double)rs->acked / cc->mss;

	heed_marks(cc, d, rs);
	if (rs->lost && rs->delivered >= d->recovery_end) {
		dctcp_reduce(d, d->cwnd / 2);
		d->recovery_end = rs->delivered + rs->inflight + 1;
	} else if (rs->acked && rs->delivered >= d->recovery_end &&
		   !rs->app_limited) {
		d->cwnd += d->cwnd < d->ssthresh ? acked : acked / d->cwnd;
	}
	cc->cwnd = d->cwnd * cc->mss;
}

static void dctcp_timeout(struct dblp_cc *cc, u32 count, u64 acked_at, u64 now)
{
	struct dctcp *d = state(cc);

	/* The first timeout is a loss probe */
	if (count < 2)
		return;
	dctcp_reduce(d, d->cwnd / 2);
	d->cwnd = 1;
	cc->cwnd = cc->mss;
}

const struct dblp_cc_ops sim_dctcp = {
	.name		= "dctcp",
	.init		= dctcp_init,
	.ack		= dctcp_ack,
	.timeout	= dctcp_timeout,
};
