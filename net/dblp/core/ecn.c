// SPDX-License-Identifier: GPL-2.0-only
/*
 * ECN validation: see ecn.h. A path that clears or changes marks, or drops
 * marked packets, is used without ECN.
 */
#include <linux/types.h>

#include "ecn.h"

void dblp_ecn_sent(struct dblp_ecn *e, u32 n)
{
	e->sent += n;
	if (e->state == DBLP_ECN_TESTING && e->sent >= DBLP_ECN_TEST)
		e->state = DBLP_ECN_UNKNOWN;
}

/* If all marked packets are lost, the marks may be the reason */
void dblp_ecn_lost(struct dblp_ecn *e)
{
	if (e->state == DBLP_ECN_UNKNOWN && ++e->lost >= e->sent && !e->acked)
		e->state = DBLP_ECN_FAILED;
}

void dblp_ecn_timeout(struct dblp_ecn *e, u32 count)
{
	if (e->state == DBLP_ECN_TESTING && !e->acked &&
	    count >= DBLP_ECN_TIMEOUTS)
		e->state = DBLP_ECN_UNKNOWN;
}

static bool grew(u32 now, u32 before)
{
	return (s32)(now - before) > 0;
}

void dblp_ecn_counted(struct dblp_ecn *e, u32 ect0, u32 ect1, u32 ce)
{
	/* Counts only grow; an ACK with lower ones was reordered */
	if (grew(ect0, e->ect0))
		e->ect0 = ect0;
	if (grew(ect1, e->ect1))
		e->ect1 = ect1;
	if (grew(ce, e->ce)) {
		e->ce_new += ce - e->ce;
		e->ce = ce;
	}
}

u32 dblp_ecn_check(struct dblp_ecn *e)
{
	u32 counted = e->ect0 + e->ce, ce = e->ce_new;

	e->ce_new = 0;
	if (e->state == DBLP_ECN_FAILED)
		return 0;
	if (e->ect1 || grew(e->acked, counted) || grew(counted, e->sent)) {
		e->state = DBLP_ECN_FAILED;
		return 0;
	}
	if (e->acked && e->state != DBLP_ECN_CAPABLE)
		e->state = DBLP_ECN_CAPABLE;
	return ce;
}
