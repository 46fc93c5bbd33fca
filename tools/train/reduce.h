/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Averaging the gradients of the workers, and the optimiser.
 */
#ifndef TRAIN_REDUCE_H
#define TRAIN_REDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "transport.h"

/**
 * enum reduction - what a missing contribution does to an average
 * @REDUCE_BUBBLE: it counts as zero: right if the sender adds it to its next
 *	gradient, so that nothing counts twice
 * @REDUCE_RESCALE: the average is over the contributions that arrived: right if
 *	the others never come
 */
enum reduction {
	REDUCE_BUBBLE,
	REDUCE_RESCALE,
};

/**
 * reduce_average() - average of the gradients that arrived
 * @how: see &enum reduction
 * @avg: filled
 * @size: number of elements
 * @grad: the contributions, zero where something is missing
 * @msg: the loss maps of the messages that brought them
 * @head: offset of the contributions in those messages, in bytes
 * @n: number of contributions
 */
void reduce_average(enum reduction how, float *avg, size_t size,
		    float *const *grad, const struct dblp_msg *msg, size_t head,
		    unsigned int n);

/** reduce_norm() - Euclidean norm */
double reduce_norm(const float *v, size_t size);

/**
 * reduce_keep() - error feedback: keep the missing elements of a gradient
 * @residual: gains the elements of @grad that are missing
 * @grad: the gradient that was sent
 * @size: number of elements
 * @msg: the report about the message
 * @head: offset of the gradient in the message, in bytes
 */
void reduce_keep(float *residual, const float *grad, size_t size,
		 const struct dblp_msg *msg, size_t head);

/**
 * struct adam - the optimiser
 * @size: number of parameters
 * @step: steps done
 * @rate: learning rate
 * @mean: running mean of the gradient
 * @square: running mean of its square
 */
struct adam {
	size_t		size;
	unsigned int	step;
	float		rate;
	float		*mean;
	float		*square;
};

void adam_init(struct adam *a, size_t size, float rate);
/** adam_step() - move @param along @grad */
void adam_step(struct adam *a, float *param, const float *grad);
void adam_free(struct adam *a);

#endif /* TRAIN_REDUCE_H */
