/* SPDX-License-Identifier: GPL-2.0-only */
/* The optimiser. */
#ifndef TRAIN_ADAM_H
#define TRAIN_ADAM_H

#include <stddef.h>
#include <stdint.h>

/** ADAM_MEAN - share of the running mean of the gradient that remains after a step */
#define ADAM_MEAN	0.9f

/**
 * struct adam - the optimiser; the caller owns its memory
 * @size: number of parameters
 * @step: steps done
 * @rate: learning rate
 * @param: the parameters
 * @mean: running mean of the gradient, initially 0
 * @square: running mean of the squared gradient, initially 0
 */
struct adam {
	size_t		size;
	unsigned int	step;
	float		rate;
	float		*param;
	float		*mean;
	float		*square;
};

/**
 * adam_step() - move the parameters along @grad
 *
 * The result is deterministic: ranks with equal state and equal gradients stay equal
 * to the bit.
 */
void adam_step(struct adam *a, const float *grad);

#endif /* TRAIN_ADAM_H */
