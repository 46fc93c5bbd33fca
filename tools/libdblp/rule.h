/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: corrections of a reduction with losses.
 *
 * Pure: no sockets, no memory of its own. The input is the loss map of a
 * message, which both of its ends have. The state is
 *
 *	counts		rescale: contributions of each element, as runs; they travel
 *			with partial sums
 *	residuals	feedback: elements that were sent and lost, in a vector as long
 *			as the reduced one. Each element is sent at most once in a
 *			reduce half
 *	credit		carry: unused budget of messages
 */
#ifndef DBLP_RULE_H
#define DBLP_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "libdblp.h"
#include "sparse.h"

/**
 * struct dblp_loss - lost elements of a message
 * @range: loss map, by rising offset, bytes of the message
 * @n: number of ranges
 * @head: bytes of the message before its first element
 * @esize: bytes of an element
 * @count: elements of the message
 * @sparse: if the message carries a packed vector: the position of its
 *	elements; or NULL
 *
 * An element is lost if any of its bytes is. Ranges may extend beyond the
 * elements.
 */
struct dblp_loss {
	const struct dblp_range	*range;
	uint32_t		n;
	uint32_t		head;
	uint32_t		esize;
	uint64_t		count;
	const struct dblp_sparse *sparse;
};

/**
 * struct dblp_loss_at - a position in a loss map; zero it first
 * @range: number of ranges before it
 * @lost: lost elements of the message that were found last
 * @place: packed vector: elements of @lost that dblp_loss_next() has not
 *	returned yet
 */
struct dblp_loss_at {
	uint32_t		range;
	struct dblp_span	lost;
	struct dblp_sparse_at	place;
};

/**
 * dblp_loss_lost() - find the next lost elements of a message
 * @loss: losses of the message
 * @at: position; @at->lost is set to the next span, which is not empty and
 *	follows the one before
 *
 * Return: false if there are no more.
 */
bool dblp_loss_lost(const struct dblp_loss *loss, struct dblp_loss_at *at);

/**
 * dblp_loss_next() - find the next lost elements of the vector
 * @loss: losses of the message
 * @at: position
 * @span: set to the next span, which is not empty and follows the one before
 *
 * Elements that a packed vector omits are not lost.
 *
 * Return: false if there are no more.
 */
bool dblp_loss_next(const struct dblp_loss *loss, struct dblp_loss_at *at,
		    struct dblp_span *span);

/* Counts */

/**
 * struct dblp_run - consecutive elements with the same number of contributions
 * @end: end of the run, exclusive; it starts at the end of the run before, or
 *	at 0
 * @contributions: contributions of each element
 */
struct dblp_run {
	uint64_t	end;
	uint32_t	contributions;
};

/**
 * struct dblp_counts - contributions of each element of a vector
 * @run: runs without gaps; neighbours differ. The caller owns the memory
 * @spare: memory of the same size
 * @n: number of runs
 * @room: allocated entries of @run and of @spare
 */
struct dblp_counts {
	struct dblp_run	*run;
	struct dblp_run	*spare;
	uint32_t	n;
	uint32_t	room;
};

/**
 * dblp_counts_set() - give all elements the same number of contributions
 * @c: counts, with room for a run
 * @count: elements of the vector
 * @contributions: contributions of each element
 */
void dblp_counts_set(struct dblp_counts *c, uint64_t count,
		     uint32_t contributions);

/**
 * dblp_counts_add() - count the contributions of an added message
 * @c: counts
 * @offset: element of the vector to which the message's first one was added
 * @run: contributions of the message's elements; none after the last run
 * @n: number of these runs
 * @loss: losses of the message
 *
 * Takes time for each run that the message has or touches; other runs are at
 * most moved. The number of runs grows by at most @n + 2 x ranges + 2.
 *
 * Return: 0; -ENOSPC if @c has too little room: then it is unchanged.
 */
int dblp_counts_add(struct dblp_counts *c, uint64_t offset,
		    const struct dblp_run *run, uint32_t n,
		    const struct dblp_loss *loss);

/**
 * dblp_counts_cut() - copy the runs of a part of the vector
 * @c: counts
 * @offset: first element of the part
 * @count: number of elements
 * @run: filled, relative to @offset
 * @room: entries of @run
 *
 * Return: number of runs; -ENOSPC if @room is too small.
 */
int dblp_counts_cut(const struct dblp_counts *c, uint64_t offset,
		    uint64_t count, struct dblp_run *run, uint32_t room);

/**
 * struct dblp_finish - how a sum is finished
 * @dtype: &enum dblp_dtype
 * @rule: &enum dblp_rule
 * @contributions: contributions if nothing was lost
 * @average: divide by the number of contributions
 */
struct dblp_finish {
	uint32_t	dtype;
	uint32_t	rule;
	uint32_t	contributions;
	bool		average;
};

/**
 * struct dblp_finished - result of dblp_rule_finish()
 * @none: elements without any contribution; they are 0
 * @least: least number of contributions of an element
 */
struct dblp_finished {
	uint64_t	none;
	uint32_t	least;
};

/**
 * dblp_rule_finish() - apply the rule to a sum (%DBLP_STEP_FINISH)
 * @f: how
 * @v: the sum
 * @run: %DBLP_RESCALE: runs of the sum; ignored by other rules
 * @n: number of runs
 * @count: elements of @v
 *
 * Return: elements without contributions, and the least number of
 * contributions.
 */
struct dblp_finished dblp_rule_finish(const struct dblp_finish *f, void *v,
				      const struct dblp_run *run, uint32_t n,
				      uint64_t count);

/* Residuals */

/**
 * dblp_feedback_apply() - add the residual to the next vector
 * @dtype: &enum dblp_dtype
 * @v: the vector, before any of it is sent
 * @residual: added, and set to zero
 * @count: elements of both
 */
void dblp_feedback_apply(uint32_t dtype, void *v, void *residual,
			 uint64_t count);

/**
 * dblp_feedback_send() - elements are sent: assume that they are lost until
 *	reported
 * @dtype: &enum dblp_dtype
 * @residual: residual of these elements
 * @v: the elements as sent, including the added residual
 * @count: their number
 */
void dblp_feedback_send(uint32_t dtype, void *residual, const void *v,
			uint64_t count);

/**
 * dblp_feedback_report() - a message was reported: keep only its lost elements
 * @dtype: &enum dblp_dtype
 * @residual: residual of its elements: delivered ones become 0; lost finite
 *	ones, and those that a packed vector omits, stay
 * @loss: losses of the message
 *
 * Infinities and NaNs are dropped, because they would spoil each later sum as
 * they did the first one.
 *
 * Return: number of lost elements.
 */
uint64_t dblp_feedback_report(uint32_t dtype, void *residual,
			      const struct dblp_loss *loss);

/* Credit */

/**
 * struct dblp_carry - unused budget
 * @credit: bytes x contributions x ppm
 * @limit: maximum of @credit
 *
 * Messages that are too short to lose a segment within their budget save it for
 * a later message, which may then lose more. At any time the loss of all
 * messages so far, each byte counted once for each contribution, is within the
 * sum of their budgets.
 */
struct dblp_carry {
	int64_t		credit;
	int64_t		limit;
};

/**
 * dblp_carry_init() - start without credit
 * @c: filled
 * @bytes: limit of the credit: all bytes of a message of this length with one
 *	contribution
 */
void dblp_carry_init(struct dblp_carry *c, uint64_t bytes);

/**
 * dblp_carry_take() - budget of a message, taken from the credit
 * @c: the credit
 * @bytes: length of the message without its critical part
 * @contributions: number of vectors in its sum
 * @budget: ppm: share of contributions that may be lost in the long run
 * @most: ppm: limit of this message
 *
 * The credit stays reduced until dblp_carry_give().
 *
 * Return: ppm, at most @most.
 */
uint32_t dblp_carry_take(struct dblp_carry *c, uint32_t bytes,
			 uint32_t contributions, uint32_t budget,
			 uint32_t most);

/**
 * dblp_carry_give() - a message was reported: return its unused budget
 * @c: the credit
 * @bytes: as for dblp_carry_take()
 * @contributions: the same
 * @taken: budget returned by dblp_carry_take()
 * @missing: bytes lost. If they exceed the budget (a deadline), the credit pays
 *	for it
 */
void dblp_carry_give(struct dblp_carry *c, uint32_t bytes,
		     uint32_t contributions, uint32_t taken, uint32_t missing);

#endif /* DBLP_RULE_H */
