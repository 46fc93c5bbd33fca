/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parameters of a rank that may lack some of the last round. What it lacks goes on as in
 * the round before: steps of Adam follow a running mean of gradients, so that a step is much
 * like the last one.
 */
#ifndef TRAIN_COPY_H
#define TRAIN_COPY_H

#include <stddef.h>

#include <plan.h>

/**
 * struct copy - the parameters of a rank
 * @size: number of parameters
 * @param: the parameters; memory of the caller
 * @last: those after the round before
 * @before: those after the round before that
 */
struct copy {
	size_t	size;
	float	*param;
	float	*last;
	float	*before;
};

/** copy_init() - parameters @param, in memory that the caller keeps */
void copy_init(struct copy *c, float *param, size_t size);
/** copy_reset() - @param was set: it has not moved yet */
void copy_reset(struct copy *c);
/** copy_begin() - before parameters of a round arrive in @param */
void copy_begin(struct copy *c);
/** copy_end() - they have arrived, but for those of @n spans, which go on as before */
void copy_end(struct copy *c, const struct dblp_span *span, size_t n);
/** copy_apart() - squared distance from parameters @v that differ only in these spans */
double copy_apart(const struct copy *c, const float *v, const struct dblp_span *span,
		  size_t n);
void copy_free(struct copy *c);

#endif /* TRAIN_COPY_H */
