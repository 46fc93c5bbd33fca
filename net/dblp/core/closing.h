/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a receiver may declare a message done: the one place where loss is
 * forgiven.
 *
 * Policy early: closing too soon gives up bytes that are still on their way;
 * closing too late waits for bytes that the network has lost. After LTP (IWQoS
 * 2023): a threshold from propagation time and delivery rate, adapted from message
 * to message, and the end of the first pass.
 *
 * Pure: see wire.h. Times are nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_CLOSING_H
#define _NET_DBLP_CLOSING_H

#include <linux/types.h>

/**
 * enum dblp_verdict - what to do with a message
 * @DBLP_WAIT: it stays open
 * @DBLP_CLOSE_COMPLETE: close it, nothing is missing
 * @DBLP_CLOSE_BUDGET: close it, what is missing fits the budget
 * @DBLP_CLOSE_DEADLINE: close it, its deadline has passed
 */
enum dblp_verdict {
	DBLP_WAIT,
	DBLP_CLOSE_COMPLETE,
	DBLP_CLOSE_BUDGET,
	DBLP_CLOSE_DEADLINE,
};

/**
 * struct dblp_close_state - what the decision looks at
 * @length: bytes of the message, at least 1
 * @missing: bytes that have not arrived, at most @length
 * @critical: bytes at the start which may not be missing, at most @length
 * @critical_missing: true while any of those is missing
 * @meta_missing: the message has a META frame that has not arrived: tag and
 *	@critical are unknown yet
 * @budget: ppm: the effective budget
 * @policy: &enum dblp_policy
 * @now: the time
 * @early_at: with policy early: the time from which the budget may be used, of
 *	dblp_early_at()
 * @deadline_at: the time from which all but critical bytes may be missing; 0: never
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
 * dblp_budget_bytes() - the most bytes that may be missing
 * @budget: ppm, 0 ... DBLP_PPM
 * @droppable: bytes of the message that are not critical
 *
 * Return: floor(@budget x @droppable), invariant 1 of the protocol.
 */
u32 dblp_budget_bytes(u32 budget, u32 droppable);

/**
 * dblp_may_miss() - does the budget of a message allow any segment to be missing?
 * @seg_size: bytes of each segment but the last
 * @length: bytes of the message, at least 1
 * @critical: bytes at its start that may not be missing
 * @budget: ppm
 *
 * Return: true if any segment without critical bytes may be missing.
 */
bool dblp_may_miss(u32 seg_size, u32 length, u32 critical, u32 budget);

/**
 * dblp_close_decide() - may the receiver declare this message done?
 * @s: what has become of it so far
 *
 * Return: what to do.
 */
enum dblp_verdict dblp_close_decide(const struct dblp_close_state *s);

/**
 * dblp_close_again() - when to ask again though no packet has come
 * @s: the state of a message that had to wait
 *
 * Return: the time, or 0 if nothing but packets can change the decision.
 */
u64 dblp_close_again(const struct dblp_close_state *s);

/**
 * dblp_first_pass() - segments that the first pass of a message sends
 * @n: segments of the message
 * @seg_size: bytes of each but the last
 * @length: bytes of the message
 * @critical: bytes at its start that may not be missing
 * @budget: ppm: the effective budget as far as the sender knows it
 * @policy: &enum dblp_policy
 * @loss: ppm: how much of what is sent will be lost
 *
 * With policy eager the sender holds back as many whole segments as the budget
 * allows to be missing, until losses show that they are needed (DBLP, MLT). It
 * sends more by the expected loss: repairs cost a round trip and the same bytes.
 *
 * Return: number of segments, 1 ... @n, such that the message can close when
 * all of them arrive, or all but the share @loss, whichever segments they are.
 */
u32 dblp_first_pass(u32 n, u32 seg_size, u32 length, u32 critical, u32 budget,
		    u8 policy, u32 loss);

/* First passes without a worse straggler after which the tolerance is halved */
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

/**
 * dblp_rx_timing_segment() - a new segment of a message came
 * @r: its message
 * @bytes: of the segment
 * @now: the time, not 0
 */
void dblp_rx_timing_segment(struct dblp_rx_timing *r, u32 bytes, u64 now);

/**
 * dblp_rx_timing_pass() - a packet says that every segment was sent once
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
 * dblp_early_passed() - have enough packets come after the latest first pass?
 * @e: its connection
 * @largest: largest packet number that came so far
 *
 * Those packets may be of other messages, so the caller must look at all messages
 * that wait.
 *
 * Return: true once for each first pass.
 */
bool dblp_early_passed(struct dblp_early *e, u64 largest);

/**
 * dblp_early_straggler() - a packet sent before the end of the latest first pass
 * came after it
 * @e: its connection
 * @pn: its number, below @pass_pn
 * @largest: largest packet number that came so far
 * @rtt: propagation time there and back
 * @now: the time
 *
 * Packet numbers are never reused, so only the network can have delayed it.
 */
void dblp_early_straggler(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
			  u64 now);

/**
 * dblp_early_done() - a message was closed
 * @e: its connection
 * @r: the message
 * @received: bytes of it that came
 * @rtt: propagation time there and back
 *
 * A message that took less than @rtt gives no rate sample: bursts look fast.
 */
void dblp_early_done(struct dblp_early *e, const struct dblp_rx_timing *r,
		     u32 received, u64 rtt);

/**
 * dblp_early_at() - time from which the budget of a message may be used
 * @e: its connection
 * @r: the message; at least one segment has come
 * @length: its bytes
 * @received: bytes of it that came
 * @largest: largest packet number that came
 * @rtt: propagation time there and back
 *
 * Return: the time. It can change with each packet that comes. Until a rate is
 * known it may be too early: ask again then.
 */
u64 dblp_early_at(const struct dblp_early *e, const struct dblp_rx_timing *r,
		  u32 length, u32 received, u64 largest, u64 rtt);

#endif /* _NET_DBLP_CLOSING_H */
