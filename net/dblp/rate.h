/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rate limits: number of events in a second.
 */
#ifndef _NET_DBLP_RATE_H
#define _NET_DBLP_RATE_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/types.h>

/**
 * struct dblp_rate - number of events in a second
 * @since: jiffies when the second began
 * @count: events since then
 */
struct dblp_rate {
	u32	since;
	u32	count;
};

/**
 * dblp_rate_count() - count an event
 * @r: counter; used in any context, races lose a few counts
 * @most: events allowed in a second
 *
 * Return: number of events in this second before this one. It is @most for the
 * first event that exceeds the limit, and larger for later ones.
 */
static inline u32 dblp_rate_count(struct dblp_rate *r, u32 most)
{
	u32 now = jiffies, count = READ_ONCE(r->count);

	if (now - READ_ONCE(r->since) > HZ) {
		WRITE_ONCE(r->since, now);
		count = 0;
	}
	if (count <= most)
		WRITE_ONCE(r->count, count + 1);
	return count;
}

#endif /* _NET_DBLP_RATE_H */
