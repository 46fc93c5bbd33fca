// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of congestion controls. A new one is a table of functions in a file
 * of its own, and a line here.
 */
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "cc.h"

/* The first is the default */
static const struct dblp_cc_ops *const controllers[] = {
	&dblp_cc_sqrt,
	&dblp_cc_lossy,
};

const struct dblp_cc_ops *dblp_cc_at(u32 i)
{
	if (i >= ARRAY_SIZE(controllers))
		return NULL;
	return controllers[i];
}

const struct dblp_cc_ops *dblp_cc_find(const char *name)
{
	const struct dblp_cc_ops *ops;
	u32 i;

	for (i = 0; (ops = dblp_cc_at(i)); i++) {
		if (!strcmp(ops->name, name))
			return ops;
	}
	return NULL;
}

void dblp_cc_start(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u32 mss,
		   u64 now)
{
	/* Readers that do not own the socket use @ops: it is never NULL */
	WRITE_ONCE(cc->ops, ops);
	memset_after(cc, 0, ops);
	cc->mss = mss;
	ops->init(cc, mss, now);
}

void dblp_cc_switch(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u64 now)
{
	u32 senders = cc->senders;

	if (ops->ack == cc->ops->ack) {
		WRITE_ONCE(cc->ops, ops);
		return;
	}
	dblp_cc_start(cc, ops, cc->mss, now);
	cc->senders = senders;
}

u64 dblp_cc_pto(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		u64 max_ack_delay, u32 count, u64 silence)
{
	u64 pto;

	if (!cc->holding || count >= DBLP_CC_HELD_PROBES)
		pto = dblp_pto(rtt, max_ack_delay, silence);
	else
		pto = count ? 0 : rtt->srtt + 4 * rtt->var;
	return min(max(pto, DBLP_CC_PTO_GAPS * dblp_cc_gap(cc)),
		   DBLP_PTO_MAX_NS);
}

u32 dblp_cc_probes(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u32 count)
{
	if (count > 2)
		return 1;
	return rtt->latest && 2 * dblp_cc_gap(cc) > rtt->srtt ? 1 : 2;
}

/* Nanoseconds without an ACK per further packet; 0: no further packets */
static u64 silent_gap(const struct dblp_cc *cc, const struct dblp_rtt *rtt)
{
	return rtt->latest ? dblp_cc_gap(cc) : 0;
}

static u64 silent_since(const struct dblp_rtt *rtt, u64 acked_at)
{
	return acked_at + max(rtt->srtt, rtt->latest);
}

u64 dblp_cc_window(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u64 acked_at, u64 now)
{
	u64 gap = silent_gap(cc, rtt), since, pkts;

	if (!gap)
		return cc->cwnd;
	since = silent_since(rtt, acked_at);
	if (now <= since)
		return cc->cwnd;
	pkts = min_t(u64, div64_u64(now - since, gap), DBLP_CC_SILENT_PKTS);
	return cc->cwnd + pkts * cc->mss;
}

u64 dblp_cc_opens_at(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		     u64 acked_at, u32 inflight)
{
	u64 gap = silent_gap(cc, rtt), over, pkts;

	if (!gap)
		return U64_MAX;
	over = (u64)inflight + cc->mss - min(cc->cwnd, inflight + cc->mss);
	pkts = div_u64(over + cc->mss - 1, cc->mss);
	return pkts > DBLP_CC_SILENT_PKTS ? U64_MAX :
	       silent_since(rtt, acked_at) + pkts * gap;
}
