/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An average over ranks in one memory, which loses all that it may: plans and rules are
 * those of libdblp, and what may be missing of a message is what the kernel allows.
 */
#ifndef TRAIN_LOSSY_H
#define TRAIN_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#include <collective.h>
#include <rule.h>

/** LOSSY_SEGMENT - bytes of a message in a full packet, at an MTU of 1500 */
#define LOSSY_SEGMENT	1408

/**
 * struct lossy_attr - what is averaged, and how
 * @plan: its @count is that of the vectors; @rank and halves are not read
 * @rule: &enum dblp_rule
 * @budget: ppm: share of all contributions that is lost
 * @sparse: messages are packed: zeroes are neither sent nor lost
 * @large: ppm: share of the elements of a message of which nothing is lost, the largest
 *	ones, with @sparse; 0: what is lost is lost at random
 * @segment: bytes, a multiple of 4: what is lost is lost together
 * @seed: of what is lost
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
 * @vector: its contribution, then what it was added to
 * @residual: feedback: what it has lost
 * @counts: rescale: contributions in @vector
 * @step: of the reduce half
 * @steps: number of steps
 */
struct lossy_rank {
	float			*vector;
	float			*residual;
	struct dblp_counts	counts;
	struct dblp_step	*step;
	size_t			steps;
};

/**
 * struct lossy - ranks that average vectors over and over
 * @attr: as given
 * @rank: the ranks
 * @rng: draws what is lost
 * @range: loss map of a message
 * @order: its segments, in the order in which they are lost
 * @chosen: elements of a message of which some may be lost, and what was not
 * @packed: the same without the others
 * @asked: bytes that were sent and might have been lost
 * @missing: of those, the lost ones
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
};

/* These end the program if there is no memory. */

/**
 * lossy_open() - begin without residuals
 *
 * Return: 0, -EINVAL if there is no such plan.
 */
int lossy_open(struct lossy *l, const struct lossy_attr *attr);

/**
 * lossy_average() - average the vectors of all ranks
 * @l: the ranks; each @vector that contributes was filled, and is overwritten
 * @average: filled with what all ranks would end with
 *
 * Of each message whole segments are lost, drawn anew each time, until no other one fits
 * its budget: the most that any close policy lets a network lose. The first segment has
 * the head of the message and is never lost.
 */
void lossy_average(struct lossy *l, float *average);

void lossy_close(struct lossy *l);

#endif /* TRAIN_LOSSY_H */
