// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spent cookies: see spent.h.
 */
#include "spent.h"

/**
 * dblp_spent_has() - is a cookie spent?
 * @s: hash bucket of the cookie
 * @cid: connection ID in the cookie
 * @born: creation time of the cookie, not 0
 */
bool dblp_spent_has(const struct dblp_spent *s, u64 cid, u64 born)
{
	u32 i;

	if (born <= s->floor)
		return true;
	for (i = 0; i < DBLP_SPENT_SLOTS; i++)
		if (s->slot[i].born && s->slot[i].cid == cid)
			return true;
	return false;
}

/**
 * dblp_spent_add() - store a cookie that opens a connection
 * @s: hash bucket of the cookie
 * @cid: connection ID in the cookie, which is not spent yet
 * @born: creation time of the cookie, not 0
 */
void dblp_spent_add(struct dblp_spent *s, u64 cid, u64 born)
{
	u32 i, oldest = 0;

	for (i = 1; i < DBLP_SPENT_SLOTS; i++)
		if (s->slot[i].born < s->slot[oldest].born)
			oldest = i;
	if (s->floor < s->slot[oldest].born)
		s->floor = s->slot[oldest].born;
	s->slot[oldest].cid = cid;
	s->slot[oldest].born = born;
}
