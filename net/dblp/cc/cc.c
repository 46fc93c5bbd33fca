// SPDX-License-Identifier: GPL-2.0-only
/*
 * The congestion controls there are. A new one is a table of functions in a
 * file of its own, and a line here.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>

#include "cc.h"

/* The first is the default */
static const struct dblp_cc_ops *const controllers[] = {
	&dblp_cc_bdp,
	&dblp_cc_swift,
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
	memset(cc, 0, sizeof(*cc));
	cc->ops = ops;
	cc->mss = mss;
	cc->crowd.mss = mss;
	ops->init(cc, mss, now);
}

void dblp_cc_switch(struct dblp_cc *cc, const struct dblp_cc_ops *ops,
		    const struct dblp_rtt *rtt, u64 now)
{
	struct dblp_crowd crowd = cc->crowd;
	u64 rate = cc->pacing_rate;
	u32 cwnd = cc->cwnd;

	if (ops == cc->ops)
		return;
	dblp_cc_start(cc, ops, cc->mss, now);
	cc->crowd = crowd;
	/* Before the first round trip, neither knows anything */
	if (!rate || !rtt->latest)
		return;
	cc->cwnd = cwnd;
	cc->pacing_rate = rate;
	if (ops->take)
		ops->take(cc, rate, rtt);
}
