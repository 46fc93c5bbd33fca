// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cookies that made a connection.
 */
#include "spent.h"

/**
 * dblp_spent_has() - may a cookie not be used any more?
 * @s: its place
 * @cid: connection ID that it gives
 * @born: its birth; later is more, never 0
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
 * dblp_spent_add() - a cookie makes a connection
 * @s: its place
 * @cid: see dblp_spent_has(), which is false
 * @born: as there
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
