/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ECN validation of a path: RFC 9000 section 13.4.2 and appendix A.4.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_ECN_H
#define _NET_DBLP_ECN_H

#include <linux/types.h>

/* Packets marked before the first acknowledgment of a marked packet */
#define DBLP_ECN_TEST		10U
/* Timeouts in a row that end the test early */
#define DBLP_ECN_TIMEOUTS	2U

/**
 * enum dblp_ecn_state - state of ECN validation of a path, as in RFC 9000
 * @DBLP_ECN_TESTING: packets are marked to test the path
 * @DBLP_ECN_UNKNOWN: the test packets were sent, their ACKs are awaited; no
 *	further packets are marked
 * @DBLP_ECN_CAPABLE: marks arrive as they were sent, or as CE
 * @DBLP_ECN_FAILED: marks are cleared or changed, or marked packets are dropped
 */
enum dblp_ecn_state {
	DBLP_ECN_TESTING,
	DBLP_ECN_UNKNOWN,
	DBLP_ECN_CAPABLE,
	DBLP_ECN_FAILED,
};

/**
 * struct dblp_ecn - marks sent on one path, and the peer's counts of them
 * @state: &enum dblp_ecn_state
 * @sent: packets sent with ECT(0)
 * @acked: packets of @sent that were acknowledged
 * @lost: packets of @sent that were declared lost in DBLP_ECN_UNKNOWN
 * @ect0: the peer's latest count of ECT(0)
 * @ect1: the peer's latest count of ECT(1)
 * @ce: the peer's latest count of CE
 * @ce_new: increase of @ce since dblp_ecn_check() last returned it
 *
 * All counts are modulo 2^32. The initial state is all zero.
 */
struct dblp_ecn {
	u8	state;
	u32	sent;
	u32	acked;
	u32	lost;
	u32	ect0;
	u32	ect1;
	u32	ce;
	u32	ce_new;
};

/** dblp_ecn_marks() - must a packet be marked now? */
static inline bool dblp_ecn_marks(const struct dblp_ecn *e)
{
	return e->state == DBLP_ECN_CAPABLE || e->state == DBLP_ECN_TESTING;
}

/** dblp_ecn_sent() - @n packets were sent with ECT(0) */
void dblp_ecn_sent(struct dblp_ecn *e, u32 n);
/** dblp_ecn_acked() - a packet that was sent with ECT(0) was acknowledged */
static inline void dblp_ecn_acked(struct dblp_ecn *e)
{
	e->acked++;
}

/** dblp_ecn_lost() - a packet that was sent with ECT(0) was declared lost */
void dblp_ecn_lost(struct dblp_ecn *e);
/** dblp_ecn_timeout() - @count probe timeouts have expired in a row */
void dblp_ecn_timeout(struct dblp_ecn *e, u32 count);
/** dblp_ecn_counted() - counts by mark of received packets, from the peer */
void dblp_ecn_counted(struct dblp_ecn *e, u32 ect0, u32 ect1, u32 ce);

/**
 * dblp_ecn_check() - validate the peer's counts after an ACK was processed
 * @e: the path
 *
 * The peer counts a packet before it acknowledges it, so its counts cannot be
 * lower than the number of acknowledged packets that were sent with a mark.
 * This holds for ACKs in any order.
 *
 * Return: packets newly reported with CE, 0 if the counts are invalid.
 */
u32 dblp_ecn_check(struct dblp_ecn *e);

#endif /* _NET_DBLP_ECN_H */
