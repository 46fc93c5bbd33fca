/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ECN validation of a path: RFC 9000 section 13.4.2 and appendix A.4.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_ECN_H
#define _NET_DBLP_ECN_H

#include <linux/types.h>

/* Packets that are marked before any is acknowledged */
#define DBLP_ECN_TEST		10U
/* Timeouts in a row that end the test early */
#define DBLP_ECN_TIMEOUTS	2U

/**
 * enum dblp_ecn_state - what is known of the path
 * @DBLP_ECN_TESTING: nothing; packets are marked to test the path
 * @DBLP_ECN_UNKNOWN: nothing; the test is over and no more packets are marked
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
 * struct dblp_ecn - marks sent on one path, and what the peer says of them
 * @state: &enum dblp_ecn_state
 * @sent: packets sent with ECT(0)
 * @acked: of @sent, acknowledged
 * @lost: of @sent, declared lost in the test
 * @ect0: the peer's latest count of ECT(0)
 * @ect1: the peer's latest count of ECT(1)
 * @ce: the peer's latest count of CE
 * @ce_new: of @ce, not yet returned by dblp_ecn_check()
 *
 * All counts are modulo 2^32. Zero is the state of a path nothing was sent on.
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

/** dblp_ecn_marks() - shall a packet be marked now? */
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
/** dblp_ecn_counted() - the peer's counts of packets received with each mark */
void dblp_ecn_counted(struct dblp_ecn *e, u32 ect0, u32 ect1, u32 ce);

/**
 * dblp_ecn_check() - an ACK was taken in, with the counts that came with it
 * @e: the path
 *
 * The peer counts a packet before it acknowledges it, so there cannot be fewer
 * marks than acknowledged packets that were sent with one. That holds whatever
 * the order in which ACKs come.
 *
 * Return: packets newly reported with CE, 0 if the counts cannot be believed.
 */
u32 dblp_ecn_check(struct dblp_ecn *e);

#endif /* _NET_DBLP_ECN_H */
