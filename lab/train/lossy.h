/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Averages vectors of ranks in one process, with the largest loss that a budget
 * allows. Plans and rules are those of libdblp; losses obey the kernel's limits.
 */
#ifndef TRAIN_LOSSY_H
#define TRAIN_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#include <plan.h>
#include <repair.h>
#include <rule.h>
#include <tune.h>

#include "copy.h"

/** LOSSY_SEGMENT - bytes of a message in a full packet at an MTU of 1500 */
#define LOSSY_SEGMENT	1408

/**
 * struct lossy_attr - how vectors are averaged, and how much is lost
 * @plan: plan for vectors of @count elements; its @rank and half are ignored
 * @rule: &enum dblp_rule
 * @budget: ppm: loss budget of all contributions
 * @sparse: messages are packed: zeroes are neither sent nor lost
 * @large: ppm: with @sparse: share of the elements of a message, the largest ones,
 *	that is never lost; 0: losses are random
 * @segment: bytes that are lost together, a multiple of 4
 * @seed: seed of the losses
 */
struct lossy_attr {
	struct dblp_plan	plan;
	uint32_t		rule;
	uint32_t		budget;
	bool			sparse;
	uint32_t		large;
	uint32_t		segment;
	uint64_t		seed;
};

/**
 * struct lossy_rank - a rank
 * @vector: its contribution, then the sum that it receives
 * @copy: its parameters
 * @old: parameters that it lost in the last lossy_spread() but one
 * @lost: the same of the last one
 * @residual: with %DBLP_FEEDBACK: elements lost so far, to be sent again
 * @counts: with %DBLP_RESCALE: contributions in each element of @vector
 * @step: its steps of the reduce half
 * @steps: number of @step
 */
struct lossy_rank {
	float			*vector;
	struct copy		copy;
	struct dblp_stale	old;
	struct dblp_stale	lost;
	float			*residual;
	struct dblp_counts	counts;
	struct dblp_step	*step;
	size_t			steps;
};

/**
 * struct lossy - ranks that average vectors repeatedly
 * @attr: from lossy_open()
 * @rank: the ranks
 * @rng: state of the random numbers for losses
 * @range: loss map of a message
 * @order: segments of a message, in the order of their loss
 * @chosen: the large or the small elements of a message, as chosen by @large
 * @packed: packed form of a message
 * @asked: droppable bytes sent
 * @missing: bytes of @asked that were lost
 * @energy: the last average, for dblp_tune_round()
 */
struct lossy {
	struct lossy_attr	attr;
	struct lossy_rank	*rank;
	uint64_t		rng;
	struct dblp_range	*range;
	uint32_t		*order;
	float			*chosen;
	uint8_t			*packed;
	uint64_t		asked;
	uint64_t		missing;
	struct dblp_energy	energy;
};

/* These functions end the program if out of memory. */

/**
 * lossy_open() - allocate ranks without residuals
 *
 * Return: 0; -EINVAL: the plan does not exist.
 */
int lossy_open(struct lossy *l, const struct lossy_attr *attr);

/**
 * lossy_average() - average the vectors of all ranks
 * @l: the ranks; the @vector of each contributor is filled, and is overwritten
 * @average: the average that all ranks would receive
 *
 * Each message loses random whole segments until no further segment fits its budget:
 * the most that any close policy permits. The first segment has the head of the
 * message and is never lost.
 */
void lossy_average(struct lossy *l, float *average);

/** lossy_start() - give all ranks the parameters @param */
void lossy_start(struct lossy *l, const float *param);

/**
 * lossy_spread() - send parameters from their owners to all ranks, with losses
 * @l: the ranks; where a parameter is lost, see copy.h
 * @param: the parameters
 * @budget: ppm: share of each message that may be lost. What was lost last time is not
 *	lost again, as with %DBLP_OP_REPAIR
 */
void lossy_spread(struct lossy *l, const float *param, uint32_t budget);

void lossy_close(struct lossy *l);

#endif /* TRAIN_LOSSY_H */
