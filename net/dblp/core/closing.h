/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a receiver may close a message: the only place where loss is forgiven.
 *
 * Policy early: closing too soon gives up bytes that are still in flight;
 * closing too late waits for bytes that the network has lost. The time follows
 * LTP (IWQoS 2023): a threshold from propagation time and delivery rate,
 * adapted from message to message, and the end of the first pass.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_CLOSING_H
#define _NET_DBLP_CLOSING_H

#include <linux/types.h>

/**
 * enum dblp_verdict - decision about a message
 * @DBLP_WAIT: keep it open
 * @DBLP_CLOSE_COMPLETE: close it: no byte is missing
 * @DBLP_CLOSE_BUDGET: close it: the missing bytes fit the budget
 * @DBLP_CLOSE_DEADLINE: close it: its deadline has passed
 */
enum dblp_verdict {
	DBLP_WAIT,
	DBLP_CLOSE_COMPLETE,
	DBLP_CLOSE_BUDGET,
	DBLP_CLOSE_DEADLINE,
};

/**
 * struct dblp_close_state - input of the decision about a message
 * @length: bytes of the message, at least 1
 * @missing: bytes that have not arrived, at most @length
 * @critical: bytes at the start that may not be missing, at most @length
 * @critical_missing: true while any critical byte is missing
 * @meta_missing: true while a META frame is outstanding, which has the tag and
 *	@critical
 * @budget: ppm: the effective budget
 * @policy: &enum dblp_policy
 * @now: the time
 * @early_at: with policy early: the time from which the budget may be used,
 *	from dblp_early_at()
 * @deadline_at: the time from which all bytes but critical ones may be missing;
 *	0: never
 */
struct dblp_close_state {
	u32	length;
	u32	missing;
	u32	critical;
	bool	critical_missing;
	bool	meta_missing;
	u32	budget;
	u8	policy;
	u64	now;
	u64	early_at;
	u64	deadline_at;
};

/**
 * dblp_budget_bytes() - largest number of bytes that may be missing
 * @budget: ppm, 0 ... DBLP_PPM
 * @droppable: bytes of the message that are not critical
 *
 * Return: floor(@budget x @droppable), invariant 1 of the protocol.
 */
u32 dblp_budget_bytes(u32 budget, u32 droppable);

/**
 * dblp_may_miss() - does the budget of a message allow a missing segment?
 * @seg_size: bytes of each segment but the last
 * @length: bytes of the message, at least 1
 * @critical: bytes at its start that may not be missing
 * @budget: ppm
 *
 * Return: true if any segment without critical bytes may be missing.
 */
bool dblp_may_miss(u32 seg_size, u32 length, u32 critical, u32 budget);

/**
 * dblp_close_decide() - may the receiver close a message?
 * @s: state of the message
 *
 * Return: the decision.
 */
enum dblp_verdict dblp_close_decide(const struct dblp_close_state *s);

/**
 * dblp_close_again() - when to decide again even if no packet arrives
 * @s: state of a message that stays open
 *
 * Return: the time, or 0 if only packets can change the decision.
 */
u64 dblp_close_again(const struct dblp_close_state *s);

/**
 * dblp_first_pass() - segments that the first pass of a message sends
 * @n: segments of the message
 * @seg_size: bytes of each segment but the last
 * @length: bytes of the message
 * @critical: bytes at its start that may not be missing
 * @budget: ppm: the effective budget as far as the sender knows it
 * @policy: &enum dblp_policy
 * @loss: ppm: expected share of the sent segments that will be lost
 *
 * With policy eager the sender holds back as many whole segments as may be
 * missing, until losses show that they are needed (DBLP, MLT). It adds segments
 * for the expected loss, because a repair costs the same bytes and a round
 * trip.
 *
 * Return: number of segments, 1 ... @n. If all of them arrive except the share
 * @loss, the message can close, whichever segments they are.
 */
u32 dblp_first_pass(u32 n, u32 seg_size, u32 length, u32 critical, u32 budget,
		    u8 policy, u32 loss);

/* First passes without a later straggler before the tolerance is halved */
#define DBLP_EARLY_CALM		16

/**
 * struct dblp_early - estimates of a connection for policy early
 * @rate: arrival rate of messages, bytes a second: rises at once to that of a
 *	faster message, falls slowly; 0 before the first sample
 * @straggler_ns: delay of stragglers after the end of a first pass, nanoseconds
 * @reorder: reordering tolerated, packets; a value below DBLP_REORDER_MIN, such
 *	as the initial 0, counts as DBLP_REORDER_MIN
 * @calm: first passes since @straggler_ns or @reorder changed
 * @pass_pn: number of the packet that marked the end of the latest first pass
 * @pass_at: arrival time of that packet; 0 before the first
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
 * @first_at: arrival time of its first segment; 0 before that
 * @last_at: arrival time of its latest segment
 * @first_bytes: bytes of the first segment, which do not count for the rate
 * @pass_pn: number of the packet that marked the end of its first pass
 * @pass_at: arrival time of that packet; 0 before that
 */
struct dblp_rx_timing {
	u64	first_at;
	u64	last_at;
	u32	first_bytes;
	u64	pass_pn;
	u64	pass_at;
};

/**
 * dblp_rx_timing_segment() - a new segment of a message has arrived
 * @r: its message
 * @bytes: bytes of the segment
 * @now: the time, not 0
 */
void dblp_rx_timing_segment(struct dblp_rx_timing *r, u32 bytes, u64 now);

/**
 * dblp_rx_timing_pass() - a packet marks the end of a message's first pass
 * @r: its message
 * @e: its connection
 * @pn: number of the packet
 * @now: the time, not 0
 *
 * Only the first such packet of a message counts.
 */
void dblp_rx_timing_pass(struct dblp_rx_timing *r, struct dblp_early *e, u64 pn,
			 u64 now);

/**
 * dblp_early_passed() - have enough packets arrived since a first pass?
 * @e: its connection
 * @largest: largest packet number received
 *
 * Packets of other messages count too, so the caller must look at all messages
 * that wait.
 *
 * Return: true once for each first pass.
 */
bool dblp_early_passed(struct dblp_early *e, u64 largest);

/**
 * dblp_early_straggler() - a packet of the latest first pass arrived after its
 * end
 * @e: its connection
 * @pn: number of the packet, below @pass_pn
 * @largest: largest packet number received
 * @rtt: smallest round-trip time
 * @now: the time
 *
 * The network has delayed the packet, because packet numbers are never reused.
 */
void dblp_early_straggler(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
			  u64 now);

/**
 * dblp_early_done() - a message was closed
 * @e: its connection
 * @r: the message
 * @received: bytes of the message that have arrived
 * @rtt: smallest round-trip time
 *
 * A message that took less than @rtt gives no rate sample, because a burst
 * arrives faster than the path's rate.
 */
void dblp_early_done(struct dblp_early *e, const struct dblp_rx_timing *r,
		     u32 received, u64 rtt);

/**
 * dblp_early_at() - time from which the budget of a message may be used
 * @e: its connection
 * @r: the message; at least one segment has arrived
 * @length: bytes of the message
 * @received: bytes of the message that have arrived
 * @largest: largest packet number received
 * @rtt: smallest round-trip time
 *
 * Return: the time. It can change with each packet that arrives. Before the
 * first rate sample it may be too early, so the caller must ask again at that
 * time.
 */
u64 dblp_early_at(const struct dblp_early *e, const struct dblp_rx_timing *r,
		  u32 length, u32 received, u64 largest, u64 rtt);

#endif /* _NET_DBLP_CLOSING_H */
