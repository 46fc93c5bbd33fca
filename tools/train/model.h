/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A next-character model: it predicts a symbol from the symbols before it.
 *
 * Every symbol has one vector of @hidden numbers for each place of the context;
 * their sum goes through tanh, and a softmax layer over the result gives the
 * probabilities. So nearly all parameters are in the table of vectors, few of which
 * a sample uses: much data for little arithmetic, to test a transport on an
 * emulated CPU.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* The gradient is checked against finite differences in double precision. */
#ifndef MODEL_REAL
#define MODEL_REAL	float
#endif
typedef MODEL_REAL real;

/**
 * struct model - shape of a model; its parameters are a separate array
 * @vocab: number of symbols
 * @context: symbols looked at
 * @hidden: width of the hidden layer
 */
struct model {
	unsigned int	vocab;
	unsigned int	context;
	unsigned int	hidden;
};

/** model_size() - number of parameters, even: float pairs are 8 bytes */
size_t model_size(const struct model *m);

/** model_init() - random parameters to start from */
void model_init(const struct model *m, real *param, uint64_t seed);

/**
 * model_loss() - mean cross entropy, in nats
 * @m: the shape
 * @param: the parameters
 * @t: the text
 * @pos: positions to predict
 * @n: how many
 * @grad: if not NULL: set to the gradient of the loss
 */
double model_loss(const struct model *m, const real *param,
		  const struct text *t, const size_t *pos, unsigned int n,
		  real *grad);

#endif /* TRAIN_MODEL_H */
