/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a receiver may declare a message done: the one place where loss is
 * forgiven.
 *
 * Pure: see wire.h.
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
 * @early_at: with policy early: the time from which the budget may be used, see
 *	early.h
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

enum dblp_verdict dblp_close_decide(const struct dblp_close_state *s);
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

#endif /* _NET_DBLP_CLOSING_H */
