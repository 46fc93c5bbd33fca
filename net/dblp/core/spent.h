/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spent cookies: those that made a connection, so that none makes a second one.
 *
 * Each hash bucket remembers a fixed number of cookies. When all slots are taken,
 * the oldest cookie is forgotten, and from then on all cookies as old as that count
 * as spent. So a spent cookie stays spent, in a fixed amount of memory and time. A
 * flood of connections can only shorten the lifetime of other clients' cookies.
 *
 * Pure: free of kernel and socket calls, also built into the unit tests and
 * fuzzers in user space. The caller has a lock.
 */
#ifndef _NET_DBLP_SPENT_H
#define _NET_DBLP_SPENT_H

#include <linux/types.h>

#define DBLP_SPENT_SLOTS	15

/**
 * struct dblp_spent - spent cookies of one hash bucket, all zero at first
 * @floor: birth of the youngest forgotten cookie
 * @slot: cookies remembered; a slot is free while @born is 0
 */
struct dblp_spent {
	u64 floor;
	struct {
		u64 cid;
		u64 born;
	} slot[DBLP_SPENT_SLOTS];
};

bool dblp_spent_has(const struct dblp_spent *s, u64 cid, u64 born);
void dblp_spent_add(struct dblp_spent *s, u64 cid, u64 born);

#endif /* _NET_DBLP_SPENT_H */
