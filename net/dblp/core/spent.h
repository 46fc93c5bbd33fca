/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cookies that made a connection, so that none makes a second one.
 *
 * Of those that fall into one place a fixed number is remembered. Who comes to
 * where all slots are taken takes that of the oldest, and what is as old as what
 * was forgotten counts as spent from then on. So a cookie that was spent stays
 * spent, in a fixed memory and with no more than a look at each slot; who makes
 * connections faster than they grow old shortens the time in which others may
 * bring their cookie back, and no more than that.
 *
 * Pure: free of kernel and socket calls, also built into the unit tests and
 * fuzzers in user space. The caller has a lock.
 */
#ifndef _NET_DBLP_SPENT_H
#define _NET_DBLP_SPENT_H

#include <linux/types.h>

#define DBLP_SPENT_SLOTS	15

/**
 * struct dblp_spent - spent cookies of one place, all zero at first
 * @floor: birth of the youngest that was forgotten
 * @slot: those remembered; free while @born is 0
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
