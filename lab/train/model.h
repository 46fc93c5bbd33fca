/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model that predicts the next symbol of a text from those before it.
 *
 * Each symbol has one vector of @hidden numbers for each position in the context.
 * Their sum goes through tanh, and a softmax layer gives the probabilities.
 * Nearly all parameters are in the table of vectors, of which a sample uses few. A
 * gradient is thus long but cheap to compute, as a test of a transport on an emulated
 * CPU needs.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* test_train.c checks the gradient by finite differences in double precision. */
#ifndef MODEL_REAL
#define MODEL_REAL	float
#endif
typedef MODEL_REAL real;

/**
 * struct model - shape of a model; its parameters are a separate array
 * @vocab: number of symbols
 * @context: number of symbols that predict the next one
 * @hidden: width of the hidden layer
 */
struct model {
	unsigned int	vocab;
	unsigned int	context;
	unsigned int	hidden;
};

/** model_size() - number of parameters, always even, for pairs of 8 bytes */
size_t model_size(const struct model *m);

/** model_init() - random initial parameters */
void model_init(const struct model *m, real *param, uint64_t seed);

/**
 * model_loss() - mean cross entropy, in nats
 * @m: the shape
 * @param: the parameters
 * @t: the text
 * @pos: positions to predict
 * @n: number of positions
 * @grad: set to the gradient of the loss, unless NULL
 */
double model_loss(const struct model *m, const real *param,
		  const struct text *t, const size_t *pos, unsigned int n,
		  real *grad);

#endif /* TRAIN_MODEL_H */
