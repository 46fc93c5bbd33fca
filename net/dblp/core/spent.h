/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spent cookies: cookies that opened a connection and must not open a second
 * one.
 *
 * Each hash bucket stores a fixed number of cookies. A new cookie replaces the
 * oldest one when all entries are in use. From then on all cookies of that age
 * or older count as spent. So a spent cookie stays spent, in a fixed amount of
 * memory and time. A flood of connections can only shorten the lifetime of
 * other clients' cookies.
 *
 * Pure: see wire.h. The caller has a lock.
 */
#ifndef _NET_DBLP_SPENT_H
#define _NET_DBLP_SPENT_H

#include <linux/types.h>

#define DBLP_SPENT_SLOTS	15

/**
 * struct dblp_spent - spent cookies of one hash bucket, initially all zero
 * @floor: creation time of the youngest replaced cookie
 * @slot: stored cookies: @cid is the connection ID, @born the creation time; 0
 *	in an unused entry
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
