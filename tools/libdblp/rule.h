/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: what is made of a reduction of which parts were lost.
 *
 * Pure: no sockets, no memory of its own. What was lost comes as the loss map of a
 * message, which both of its ends have; what is kept here is
 *
 *	counts		rescale: how many contributions each element has, as runs; they
 *			travel with partial sums
 *	residuals	feedback: what was sent and lost, in a vector as long as that
 *			which is reduced. Each element is sent at most once in a reduce half
 *	credit		carry: budget that messages could not use
 */
#ifndef DBLP_RULE_H
#define DBLP_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective.h"
#include "libdblp.h"
#include "sparse.h"

/**
 * struct dblp_loss - what was lost of the elements of a message
 * @range: loss map, by rising offset: bytes of the message
 * @n: number of ranges
 * @head: bytes of the message before its first element
 * @esize: bytes of an element
 * @count: elements of the message
 * @sparse: they are a packed vector: where its elements belong; or NULL
 *
 * An element of which any byte is lost is lost. Ranges may reach beyond the elements.
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
 * struct dblp_loss_at - a place in a loss map; zero at first
 * @range: ranges before it
 * @lost: elements of the message that were found last
 * @place: of a packed vector, how far these are in @span of dblp_loss_next()
 */
struct dblp_loss_at {
	uint32_t		range;
	struct dblp_span	lost;
	struct dblp_sparse_at	place;
};

/**
 * dblp_loss_lost() - elements of the message that were lost, span by span
 * @loss: of the message
 * @at: where to go on; @at->lost is set to the next span, which is not empty and lies
 *	behind the one before
 *
 * Return: false if there is none.
 */
bool dblp_loss_lost(const struct dblp_loss *loss, struct dblp_loss_at *at);

/**
 * dblp_loss_next() - elements of the vector that were lost, span by span
 * @loss: of the message
 * @at: where to go on
 * @span: set to the next span, which is not empty and lies behind the one before
 *
 * What a packed vector does not have is not lost.
 *
 * Return: false if there is none.
 */
bool dblp_loss_next(const struct dblp_loss *loss, struct dblp_loss_at *at,
		    struct dblp_span *span);

/* Counts */

/**
 * struct dblp_run - elements with as many contributions
 * @end: first element behind them; they begin where the run before ends, or at 0
 * @contributions: of each of them
 */
struct dblp_run {
	uint64_t	end;
	uint32_t	contributions;
};

/**
 * struct dblp_counts - contributions of each element of a vector
 * @run: runs without gaps, neighbours differ; the memory is the caller's
 * @spare: as much memory again
 * @n: number of runs
 * @room: entries that @run and @spare each have room for
 */
struct dblp_counts {
	struct dblp_run	*run;
	struct dblp_run	*spare;
	uint32_t	n;
	uint32_t	room;
};

/**
 * dblp_counts_set() - the whole vector has as many contributions
 * @c: counts, with room for a run
 * @count: elements of the vector
 * @contributions: of each
 */
void dblp_counts_set(struct dblp_counts *c, uint64_t count,
		     uint32_t contributions);

/**
 * dblp_counts_add() - a message was added
 * @c: counts
 * @offset: element of the vector that the first one of the message was added to
 * @run: contributions in the elements of the message; none behind the last run
 * @n: number of those runs
 * @loss: what was lost of the message
 *
 * It takes time for each run that the message has or touches; others are searched and
 * moved at most. @run are at most @n + 2 x ranges + 2 more than before.
 *
 * Return: 0; -ENOSPC if @c has not enough room, and nothing was changed.
 */
int dblp_counts_add(struct dblp_counts *c, uint64_t offset,
		    const struct dblp_run *run, uint32_t n,
		    const struct dblp_loss *loss);

/**
 * dblp_counts_cut() - contributions of a part of the vector
 * @c: counts
 * @offset: first element
 * @count: number of elements
 * @run: filled; element @offset is its element 0
 * @room: entries that it has room for
 *
 * Return: number of runs, -ENOSPC if there is not enough room.
 */
int dblp_counts_cut(const struct dblp_counts *c, uint64_t offset,
		    uint64_t count, struct dblp_run *run, uint32_t room);

/**
 * struct dblp_finish - how a sum is finished
 * @dtype: &enum dblp_dtype
 * @rule: &enum dblp_rule
 * @contributions: how many there should be in it
 * @average: it is divided by the number of contributions
 */
struct dblp_finish {
	uint32_t	dtype;
	uint32_t	rule;
	uint32_t	contributions;
	bool		average;
};

/**
 * struct dblp_finished - what was found
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
 * @run: %DBLP_RESCALE: its contributions; other rules take @f->contributions
 * @n: number of runs
 * @count: elements of @v
 *
 * Return: what was found.
 */
struct dblp_finished dblp_rule_finish(const struct dblp_finish *f, void *v,
				      const struct dblp_run *run, uint32_t n,
				      uint64_t count);

/* Residuals */

/**
 * dblp_feedback_apply() - add what was lost to the next vector
 * @dtype: &enum dblp_dtype
 * @v: the vector, before any of it is sent
 * @residual: becomes zero
 * @count: elements of both
 */
void dblp_feedback_apply(uint32_t dtype, void *v, void *residual,
			 uint64_t count);

/**
 * dblp_feedback_send() - elements are sent: they are lost until reported otherwise
 * @dtype: &enum dblp_dtype
 * @residual: of these elements
 * @v: as they are sent: what this rank has added to them, too
 * @count: their number
 */
void dblp_feedback_send(uint32_t dtype, void *residual, const void *v,
			uint64_t count);

/**
 * dblp_feedback_report() - a message was reported
 * @dtype: &enum dblp_dtype
 * @residual: of its elements; only what was lost and is finite remains, and what a
 *	packed vector does not have
 * @loss: what was lost
 *
 * Infinities and NaNs are dropped, because each round that they are added to fails as
 * the first one did.
 *
 * Return: number of elements that were lost.
 */
uint64_t dblp_feedback_report(uint32_t dtype, void *residual,
			      const struct dblp_loss *loss);

/* Credit */

/**
 * struct dblp_carry - budget that is left over
 * @credit: bytes x contributions x ppm
 * @limit: the most it may be
 *
 * Messages that are too short to lose a segment within their budget save it up for
 * one that may then lose more. However that goes, what was lost of all messages so
 * far, each byte as often as it has contributions, is within the budget of them all.
 */
struct dblp_carry {
	int64_t		credit;
	int64_t		limit;
};

/**
 * dblp_carry_init() - begin without credit
 * @c: filled
 * @bytes: the most that may be left over: so many bytes of single contributions
 */
void dblp_carry_init(struct dblp_carry *c, uint64_t bytes);

/**
 * dblp_carry_take() - budget of a message
 * @c: the credit
 * @bytes: length of the message without its critical part
 * @contributions: vectors whose sum it holds
 * @budget: ppm: share of contributions that may be lost in the long run
 * @most: ppm: the most that this message may lose
 *
 * What the message may lose is taken from the credit until dblp_carry_give().
 *
 * Return: ppm, at most @most.
 */
uint32_t dblp_carry_take(struct dblp_carry *c, uint32_t bytes,
			 uint32_t contributions, uint32_t budget,
			 uint32_t most);

/**
 * dblp_carry_give() - a message was reported
 * @c: the credit
 * @bytes: as it was taken
 * @contributions: the same
 * @taken: what dblp_carry_take() has returned
 * @missing: bytes that were lost; if more (a deadline), later messages pay for it
 */
void dblp_carry_give(struct dblp_carry *c, uint32_t bytes,
		     uint32_t contributions, uint32_t taken, uint32_t missing);

#endif /* DBLP_RULE_H */
