/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: collective operations as plans.
 *
 * A plan is data: what one rank sends, receives and adds, and in which order. It is
 * computed by each rank for itself from the same attributes, without a socket.
 * Whoever carries it out, over whatever transport, is called its executor.
 *
 * Elements 0 ... count - 1 are a vector that each rank has in one buffer. A *reduce*
 * half ends with the sum of each element at one rank, its owner; a *spread* half
 * copies it to all others. What is lost in the reduce half makes a sum smaller; what
 * is copied is reliable, so that all ranks end with the same bits whatever was lost
 * and in whatever order was added.
 *
 * What an executor has to do
 *
 * Steps
 *	One step is one message in one direction (or local). dblp_plan_steps() gives
 *	them by rising round, in a round by rising operation, so receives stand behind
 *	sends. No step is empty. A step may travel as several messages, each with a part
 *	of its elements.
 * Matching
 *	%DBLP_STEP_SEND in round r to rank B is what rank B has as %DBLP_STEP_ADD or
 *	%DBLP_STEP_COPY in round r from this rank: same range, lane, contributions and
 *	reliability. There is at most one in each direction between two ranks in a round.
 * Order
 *	A step may begin when all steps of *lower rounds* with which it conflicts
 *	(dblp_step_conflict(): their ranges overlap, and their operations differ) have
 *	ended. Nothing else holds it: steps of one round never conflict, run at once and
 *	in any order, and a rank does not wait for a round of others.
 *	A send has ended when its bytes are no longer needed in the buffer, a receive
 *	when its last byte is in its place or is known to be lost. Adds to the same
 *	element come one after the other, in any order.
 * Connections
 *	On one connection, messages are sent by rising round. An executor that
 *	receives all connections at once, and leaves alone one whose next step must not
 *	begin yet, cannot deadlock, even if no transport holds a single byte: of all
 *	steps that have not ended anywhere, those of the lowest round can always go on.
 * Losses
 *	A step that is not reliable may lose dblp_step_budget() of its elements. Lost
 *	elements of %DBLP_STEP_ADD leave the element as it is.
 */
#ifndef DBLP_COLLECTIVE_H
#define DBLP_COLLECTIVE_H

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
 * In the byte order of the machine. Types of 16 bits are added as binary32 and rounded
 * to nearest, ties to even, after each addition: as exact as their type can be.
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
 * enum dblp_rule - what is made of a sum that lacks contributions
 * @DBLP_BUBBLE: nothing: what is missing counts as zero
 * @DBLP_RESCALE: it is multiplied by how many contributions there should be, and
 *	divided by how many there are, which travel with each partial sum: unbiased
 * @DBLP_FEEDBACK: as bubble, and the sender of what was lost adds it to its next
 *	vector: nothing is lost, but some comes late
 * @DBLP_RULES: number of rules
 *
 * Rescale and feedback together would count the missing twice.
 */
enum dblp_rule {
	DBLP_BUBBLE,
	DBLP_RESCALE,
	DBLP_FEEDBACK,
	DBLP_RULES,
};

/**
 * enum dblp_algo - algorithms
 * @DBLP_PS: all send to one rank, the root (parameter server)
 * @DBLP_TRANSPOSE: each rank owns one part of N; in one round all send each their
 *	part, in the next one each owner sends the sum to all
 * @DBLP_RING: each rank sends to the next one only, N - 1 rounds each way
 * @DBLP_TREE: sums go up a tree with a given number of children, and come down it
 * @DBLP_BCUBE: ranks are numbers of several digits (BCube); a level joins those that
 *	differ in one digit only and is a network of its own (lane). With one digit it is
 *	transpose, with digits of 2 recursive halving and doubling
 * @DBLP_AVERAGE: only the ranks that differ in one digit, another one each time,
 *	reduce among each other, as transpose (DS-Sync). After as many times as there are
 *	digits, an average is that of all
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

/** DBLP_RANKS_MAX - the most ranks of a plan */
#define DBLP_RANKS_MAX	65536

/** DBLP_LEVELS_MAX - the most digits of a rank's number */
#define DBLP_LEVELS_MAX	16

/** DBLP_COUNT_MAX - the most elements of a vector */
#define DBLP_COUNT_MAX	(UINT64_C(1) << 48)

/**
 * struct dblp_span - elements of a vector
 * @first: first one
 * @end: first one behind them
 */
struct dblp_span {
	uint64_t	first;
	uint64_t	end;
};

/**
 * enum dblp_plan_flags - flags of a plan
 * @DBLP_PLAN_REDUCE: only the reduce half, up to and with %DBLP_STEP_FINISH
 * @DBLP_PLAN_SPREAD: only the spread half; with both, or none of both, all
 * @DBLP_PLAN_SERVER: the root contributes nothing (ps and tree, of 2 ranks or more):
 *	its vector is cleared first
 */
enum dblp_plan_flags {
	DBLP_PLAN_REDUCE	= 1 << 0,
	DBLP_PLAN_SPREAD	= 1 << 1,
	DBLP_PLAN_SERVER	= 1 << 2,
};

/**
 * struct dblp_plan - what a plan is computed from
 * @algo: &enum dblp_algo
 * @nranks: number of ranks, at least 1
 * @rank: whose steps
 * @flags: &enum dblp_plan_flags
 * @root: ps and tree: the root
 * @fanin: tree: children of a rank; 0: 2
 * @turn: average: how often was averaged before; digit @turn mod @levels is taken
 * @levels: bcube and average: number of digits; 0: one
 * @radix: their radices, that of the least digit first, as dblp_plan_radix() finds
 *	them; their product is @nranks. Not read if @levels is 0
 * @count: elements of the vector
 *
 * All ranks give the same, but for @rank.
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
 * @DBLP_STEP_CLEAR: local: it becomes zero, without contributions
 * @DBLP_STEP_SEND: it is sent to the peer
 * @DBLP_STEP_ADD: what the peer sends is added to it
 * @DBLP_STEP_COPY: what the peer sends takes its place
 * @DBLP_STEP_FINISH: local: it holds the sum, this rank is its owner: apply the rule,
 *	and divide if an average is wanted
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
 * @round: see "Order"; 0 is that of clears, messages begin in round 1
 * @op: &enum dblp_step_op
 * @peer: the other rank; this one if the step is local
 * @lane: level of the network: which NIC, modulo as many as there are
 * @contributions: vectors whose sum the range holds if nothing was lost: of the
 *	message (send, add), or of the result (copy, finish)
 * @reliable: 1: nothing of the message may be lost
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
 * Return: number of steps the plan has, also if @room is less; -EINVAL if the
 * attributes contradict each other or are beyond their limits.
 */
ssize_t dblp_plan_steps(const struct dblp_plan *plan, struct dblp_step *step,
			size_t room);

/**
 * dblp_plan_radix() - digits for a number of ranks
 * @nranks: number of ranks
 * @levels: number of digits wanted
 * @radix: filled with @levels radices by falling value, about even and all the same if
 *	@nranks is a power; some are 1 if it has fewer prime factors
 *
 * Return: 0, -EINVAL if @nranks or @levels is beyond its limits.
 */
int dblp_plan_radix(uint32_t nranks, uint32_t levels, uint32_t *radix);

/**
 * dblp_step_budget() - loss budget of a step
 * @step: the step
 * @budget: ppm: which share of all contributions may be lost
 *
 * A lost element costs as many contributions as the message has sums of, so all
 * algorithms lose as many of them: at most @budget (N - 1) / N.
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
 * @b: another one
 *
 * Return: true if the one with the higher round must not begin before the other has
 * ended; never for two of one round.
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

#endif /* DBLP_COLLECTIVE_H */
