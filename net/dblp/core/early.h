/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policy early: from when on a receiver may use the budget of a message. Close
 * too soon, and bytes are given up that were still on their way; close too
 * late, and everybody waits for what the network has lost. After LTP (IWQoS
 * 2023): a threshold from propagation time and delivery rate, adapted from
 * message to message, and what is known of the first pass.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_EARLY_H
#define _NET_DBLP_EARLY_H

#include <linux/types.h>

/* First passes without a straggler that came too late, until less is borne */
#define DBLP_EARLY_CALM		16

/**
 * struct dblp_early - what a connection has learnt from its messages
 * @rate: bytes a second: rises to that of the fastest message at once, falls
 *	slowly; 0 before the first
 * @late: nanoseconds that stragglers have come later than expected, lately
 * @reorder: packets of reordering tolerated, at least DBLP_REORDER_MIN but for
 *	a structure that is all zero, which tolerates as many
 * @calm: first passes since one of these two has changed
 * @pass_pn: packet that told of the end of the latest first pass
 * @pass_at: when it came; 0 if there was none yet
 * @watch: nobody was told yet that enough packets came after it
 */
struct dblp_early {
	u64	rate;
	u64	late;
	u32	reorder;
	u32	calm;
	u64	pass_pn;
	u64	pass_at;
	bool	watch;
};

/**
 * struct dblp_round - how one message came in
 * @first_at: when its first segment came
 * @last_at: when its latest one did
 * @first_bytes: bytes of the first one: they do not count for the rate
 * @pass_pn: packet that told of the end of its first pass
 * @pass_at: when it came; 0 if it has not
 */
struct dblp_round {
	u64	first_at;
	u64	last_at;
	u32	first_bytes;
	u64	pass_pn;
	u64	pass_at;
};

void dblp_round_segment(struct dblp_round *r, u32 bytes, u64 now);
void dblp_round_pass(struct dblp_round *r, struct dblp_early *e, u64 pn,
		     u64 now);
bool dblp_early_passed(struct dblp_early *e, u64 largest);
void dblp_early_late(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
		     u64 now);
void dblp_early_done(struct dblp_early *e, const struct dblp_round *r,
		     u32 received, u64 rtt);
u64 dblp_early_at(const struct dblp_early *e, const struct dblp_round *r,
		  u32 length, u32 received, u64 largest, u64 rtt);

#endif /* _NET_DBLP_EARLY_H */
