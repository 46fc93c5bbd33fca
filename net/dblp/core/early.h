/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policy early: when a receiver may use the budget of a message. Closing too soon
 * gives up bytes that are still on their way; closing too late waits for bytes
 * that the network has lost. After LTP (IWQoS 2023): a threshold from propagation
 * time and delivery rate, adapted from message to message, and the end of the
 * first pass.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_EARLY_H
#define _NET_DBLP_EARLY_H

#include <linux/types.h>

/* First passes without a late straggler after which the tolerance is halved */
#define DBLP_EARLY_CALM		16

/**
 * struct dblp_early - what a connection has learnt from its messages
 * @rate: bytes a second: rises at once to that of the fastest message, falls
 *	slowly; 0 before the first
 * @straggler_ns: nanoseconds that stragglers came after the end of a first pass
 * @reorder: packets of reordering tolerated; values below DBLP_REORDER_MIN, such
 *	as the initial 0, count as that
 * @calm: first passes since @straggler_ns or @reorder changed
 * @pass_pn: packet that marked the end of the latest first pass
 * @pass_at: when it came; 0 if there was none yet
 * @watch: dblp_early_passed() has not reported this first pass yet
 */
struct dblp_early {
	u64	rate;
	u64	straggler_ns;
	u32	reorder;
	u32	calm;
	u64	pass_pn;
	u64	pass_at;
	bool	watch;
};

/**
 * struct dblp_rx_timing - arrival times of one message
 * @first_at: when its first segment came
 * @last_at: when its latest segment came
 * @first_bytes: bytes of the first segment, which do not count for the rate
 * @pass_pn: packet that marked the end of its first pass
 * @pass_at: when it came; 0 if it has not
 */
struct dblp_rx_timing {
	u64	first_at;
	u64	last_at;
	u32	first_bytes;
	u64	pass_pn;
	u64	pass_at;
};

void dblp_rx_timing_segment(struct dblp_rx_timing *r, u32 bytes, u64 now);
void dblp_rx_timing_pass(struct dblp_rx_timing *r, struct dblp_early *e, u64 pn,
			 u64 now);
bool dblp_early_passed(struct dblp_early *e, u64 largest);
void dblp_early_late(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
		     u64 now);
void dblp_early_done(struct dblp_early *e, const struct dblp_rx_timing *r,
		     u32 received, u64 rtt);
u64 dblp_early_at(const struct dblp_early *e, const struct dblp_rx_timing *r,
		  u32 length, u32 received, u64 largest, u64 rtt);

#endif /* _NET_DBLP_EARLY_H */
