/* SPDX-License-Identifier: GPL-2.0-only */
/* The optimiser. */
#ifndef TRAIN_ADAM_H
#define TRAIN_ADAM_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct adam - the optimiser; its memory is the caller's
 * @size: number of parameters
 * @step: steps done
 * @rate: learning rate
 * @param: the parameters
 * @mean: running mean of the gradient, at first 0
 * @square: running mean of its square, at first 0
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
 * The same numbers in are the same bits out: ranks that begin with the same and step
 * along the same gradients stay the same.
 */
void adam_step(struct adam *a, const float *grad);

#endif /* TRAIN_ADAM_H */
