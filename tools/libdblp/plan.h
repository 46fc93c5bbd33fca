/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: collective operations as plans.
 *
 * A plan lists what one rank sends, receives and adds, and in which order. Each
 * rank computes its own plan from the same attributes, without a socket. The
 * code that carries a plan out, over any transport, is called its executor.
 *
 * Each rank has a vector of elements 0 ... count - 1 in one buffer. A *reduce*
 * half ends with the sum of each element at one rank, its owner. A *spread*
 * half copies sums from their owners to all other ranks. A loss in the reduce
 * half makes a sum smaller. The spread half is reliable, so that all ranks end
 * with the same bits, whatever was lost and in whatever order contributions
 * were added.
 *
 * Rules for executors
 *
 * Steps
 *	A step is one message in one direction, or a local one. dblp_plan_steps()
 *	returns them by rising round, and within a round by rising operation, so that
 *	receives follow sends. No step is empty. A step may travel as several
 *	messages, each with a part of its elements.
 * Matching
 *	For each %DBLP_STEP_SEND in round r to rank B, rank B has a %DBLP_STEP_ADD or
 *	%DBLP_STEP_COPY in round r from this rank, with the same range, lane,
 *	contributions and reliability. There is at most one in each direction between
 *	two ranks in a round.
 * Order
 *	Two steps conflict if their ranges overlap and their operations differ
 *	(dblp_step_conflict()). A step may begin when all conflicting steps of *lower
 *	rounds* have ended, and must not wait for anything else. Steps of one round
 *	never conflict: they run concurrently, in any order, and a rank does not wait
 *	for the rounds of others. A send has ended when its bytes are no longer needed
 *	in the buffer, a receive when its last byte is in place or is known to be
 *	lost. Adds to the same element are serialised, in any order.
 * Connections
 *	On one connection, messages are sent by rising round. An executor must
 *	receive from all connections at once, except from those whose next step must
 *	not begin yet. Then it cannot deadlock, even if the transport buffers nothing:
 *	of all unfinished steps of all ranks, those of the lowest round can proceed.
 * Losses
 *	A step that is not reliable may lose dblp_step_budget() of its elements. Lost
 *	elements of %DBLP_STEP_ADD leave the element unchanged.
 */
#ifndef DBLP_PLAN_H
#define DBLP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum dblp_dtype - type of an element
 * @DBLP_FLOAT32: IEEE 754 binary32
 * @DBLP_FLOAT16: IEEE 754 binary16
 * @DBLP_BFLOAT16: the upper half of a binary32
 * @DBLP_INT32: two's complement; sums wrap
 * @DBLP_FLOAT64: IEEE 754 binary64
 * @DBLP_INT64: two's complement; sums wrap
 * @DBLP_UINT8: bytes; sums wrap
 * @DBLP_DTYPES: number of types
 *
 * Elements are in the byte order of the machine. Types of 16 bits are added as
 * binary32, and rounded to nearest, ties to even, after each addition.
 */
enum dblp_dtype {
	DBLP_FLOAT32,
	DBLP_FLOAT16,
	DBLP_BFLOAT16,
	DBLP_INT32,
	DBLP_FLOAT64,
	DBLP_INT64,
	DBLP_UINT8,
	DBLP_DTYPES,
};

/**
 * enum dblp_rule - how sums with missing contributions are corrected
 * @DBLP_BUBBLE: not at all: missing contributions count as zero
 * @DBLP_RESCALE: multiply by the number of expected contributions and divide by
 *	the number of received ones, which travels with each partial sum:
 *	unbiased
 * @DBLP_FEEDBACK: as bubble; also, the sender adds its lost contributions to
 *	its next vector: losses become delays
 * @DBLP_RULES: number of rules
 *
 * Rescale and feedback exclude each other: together they would count missing
 * contributions twice.
 */
enum dblp_rule {
	DBLP_BUBBLE,
	DBLP_RESCALE,
	DBLP_FEEDBACK,
	DBLP_RULES,
};

/**
 * enum dblp_algo - algorithms
 * @DBLP_PS: all ranks send to one rank, the root (parameter server)
 * @DBLP_TRANSPOSE: each rank owns one of N parts. In one round each rank sends
 *	each part to its owner, in the next one each owner sends its sum to all
 * @DBLP_RING: each rank sends only to the next one, N - 1 rounds for each half
 * @DBLP_TREE: sums travel up a tree with a given number of children, and down
 *	again
 * @DBLP_BCUBE: ranks are numbers of several digits (BCube). A level connects
 *	the ranks that differ in one digit only, and is a network of its own.
 *	With one digit it equals transpose, with radices of 2 recursive halving
 *	and doubling
 * @DBLP_AVERAGE: only ranks that differ in one digit reduce among each other,
 *	as transpose (DS-Sync); the digit changes each time. After as many
 *	operations as there are digits, an average is that of all ranks
 * @DBLP_ALGOS: number of algorithms
 */
enum dblp_algo {
	DBLP_PS,
	DBLP_TRANSPOSE,
	DBLP_RING,
	DBLP_TREE,
	DBLP_BCUBE,
	DBLP_AVERAGE,
	DBLP_ALGOS,
};

/** DBLP_RANKS_MAX - most ranks of a plan */
#define DBLP_RANKS_MAX	65536

/** DBLP_LEVELS_MAX - most digits of a rank's number */
#define DBLP_LEVELS_MAX	16

/** DBLP_COUNT_MAX - most elements of a vector */
#define DBLP_COUNT_MAX	(UINT64_C(1) << 48)

/**
 * struct dblp_span - a range of elements of a vector
 * @first: first element
 * @end: end of the range, exclusive
 */
struct dblp_span {
	uint64_t	first;
	uint64_t	end;
};

/**
 * enum dblp_plan_flags - flags of a plan
 * @DBLP_PLAN_REDUCE: only the reduce half, including %DBLP_STEP_FINISH
 * @DBLP_PLAN_SPREAD: only the spread half. With both flags, or neither: both
 *	halves
 * @DBLP_PLAN_SERVER: the root contributes nothing (ps and tree, 2 ranks or
 *	more): its vector is cleared first
 */
enum dblp_plan_flags {
	DBLP_PLAN_REDUCE	= 1 << 0,
	DBLP_PLAN_SPREAD	= 1 << 1,
	DBLP_PLAN_SERVER	= 1 << 2,
};

/**
 * struct dblp_plan - attributes of a plan
 * @algo: &enum dblp_algo
 * @nranks: number of ranks, at least 1
 * @rank: the rank whose steps are computed
 * @flags: &enum dblp_plan_flags
 * @root: ps and tree: the root
 * @fanin: tree: most children of a rank; 0: 2
 * @turn: average: number of earlier averages; digit @turn mod @levels is used
 * @levels: bcube and average: number of digits; 0: 1
 * @radix: radices of the digits, least significant first, as from
 *	dblp_plan_radix(); their product is @nranks. Ignored if @levels is 0
 * @count: elements of the vector
 *
 * All ranks give the same values, except for @rank.
 */
struct dblp_plan {
	uint32_t	algo;
	uint32_t	nranks;
	uint32_t	rank;
	uint32_t	flags;
	uint32_t	root;
	uint32_t	fanin;
	uint32_t	turn;
	uint32_t	levels;
	uint32_t	radix[DBLP_LEVELS_MAX];
	uint64_t	count;
};

/**
 * enum dblp_step_op - what a step does with its range
 * @DBLP_STEP_CLEAR: local: set it to zero, without contributions
 * @DBLP_STEP_SEND: send it to the peer
 * @DBLP_STEP_ADD: add the peer's message to it
 * @DBLP_STEP_COPY: replace it by the peer's message
 * @DBLP_STEP_FINISH: local: it holds the sum, and this rank owns it: apply the
 *	rule, and divide if an average is wanted
 */
enum dblp_step_op {
	DBLP_STEP_CLEAR,
	DBLP_STEP_SEND,
	DBLP_STEP_ADD,
	DBLP_STEP_COPY,
	DBLP_STEP_FINISH,
};

/**
 * struct dblp_step - a step of one rank
 * @round: see "Order"; clears have round 0, messages begin in round 1
 * @op: &enum dblp_step_op
 * @peer: the other rank; this one if the step is local
 * @lane: level of the network: index of the device, modulo the number of
 *	devices
 * @contributions: number of vectors in the sum if nothing was lost: of the
 *	message (send, add), or of the result (copy, finish)
 * @reliable: 1: the message may lose nothing
 * @offset: first element
 * @count: number of elements, at least 1
 */
struct dblp_step {
	uint32_t	round;
	uint32_t	op;
	uint32_t	peer;
	uint32_t	lane;
	uint32_t	contributions;
	uint32_t	reliable;
	uint64_t	offset;
	uint64_t	count;
};

/**
 * dblp_plan_steps() - compute the steps of a rank
 * @plan: the attributes
 * @step: filled with the first steps
 * @room: entries of @step, may be 0
 *
 * Return: number of steps of the plan, which may exceed @room; -EINVAL if the
 * attributes contradict each other or exceed their limits.
 */
ssize_t dblp_plan_steps(const struct dblp_plan *plan, struct dblp_step *step,
			size_t room);

/**
 * dblp_plan_radix() - choose radices for a number of ranks
 * @nranks: number of ranks
 * @levels: number of digits wanted
 * @radix: filled with @levels radices by falling value, as even as possible:
 *	equal if @nranks is a power. Some are 1 if @nranks has fewer prime
 *	factors
 *
 * Return: 0; -EINVAL if @nranks or @levels exceeds its limits.
 */
int dblp_plan_radix(uint32_t nranks, uint32_t levels, uint32_t *radix);

/**
 * dblp_step_budget() - loss budget of a step
 * @step: the step
 * @budget: ppm: share of all contributions that may be lost
 *
 * A lost element costs as many contributions as are summed in it. Divided by
 * their number, the budget lets all algorithms lose the same share: at most
 * @budget (N - 1) / N.
 *
 * Return: ppm.
 */
static inline uint32_t dblp_step_budget(const struct dblp_step *step,
					uint32_t budget)
{
	return step->reliable ? 0 : budget / step->contributions;
}

/**
 * dblp_step_conflict() - must one of these steps of a rank wait for the other?
 * @a: a step
 * @b: another step
 *
 * Return: true if the step with the higher round must not begin before the
 * other has ended; never for two steps of one round.
 */
static inline bool dblp_step_conflict(const struct dblp_step *a,
				      const struct dblp_step *b)
{
	return a->op != b->op && a->offset < b->offset + b->count &&
	       b->offset < a->offset + a->count;
}

#ifdef __cplusplus
}
#endif

#endif /* DBLP_PLAN_H */
