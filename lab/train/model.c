// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/*
 * Layout of a parameter array (or of a gradient):
 * table[context][vocab][hidden], bias[hidden], out[vocab][hidden],
 * out_bias[vocab].
 */
struct parts {
	size_t	bias;
	size_t	out;
	size_t	out_bias;
	size_t	end;
};

static struct parts parts_of(const struct model *m)
{
	struct parts p;

	p.bias = (size_t)m->context * m->vocab * m->hidden;
	p.out = p.bias + m->hidden;
	p.out_bias = p.out + (size_t)m->vocab * m->hidden;
	p.end = p.out_bias + m->vocab;
	return p;
}

size_t model_size(const struct model *m)
{
	return (parts_of(m).end + 1) & ~(size_t)1;
}

static void fill(real *v, size_t n, double width, uint64_t *rng)
{
	size_t i;

	for (i = 0; i < n; i++)
		v[i] = width * ((double)(rng_next(rng) >> 11) / (1ULL << 52) -
				1);
}

void model_init(const struct model *m, real *param, uint64_t seed)
{
	const struct parts p = parts_of(m);
	uint64_t rng = rng_mix(seed, 0x6d6f64656c, 0);

	memset(param, 0, model_size(m) * sizeof(*param));
	fill(param, p.bias, 1 / sqrt(m->context), &rng);
	fill(param + p.out, p.out_bias - p.out, 1 / sqrt(m->hidden), &rng);
}

static real dot(const real *a, const real *b, unsigned int n)
{
	real sum = 0;
	unsigned int i;

#pragma omp simd reduction(+ : sum)
	for (i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* y += f * x */
static void add(real *restrict y, const real *restrict x, real f,
		unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		y[i] += f * x[i];
}

static const real *vector(const struct model *m, const real *table,
			  unsigned int place, unsigned int symbol)
{
	return table + ((size_t)place * m->vocab + symbol) * m->hidden;
}

/* From scores to probabilities, in place. */
static void softmax(real *v, unsigned int n)
{
	real max = v[0], sum = 0;
	unsigned int i;

	for (i = 1; i < n; i++)
		max = v[i] > max ? v[i] : max;
	for (i = 0; i < n; i++) {
		v[i] = sizeof(real) == sizeof(float) ? expf(v[i] - max) :
						       exp(v[i] - max);
		sum += v[i];
	}
	for (i = 0; i < n; i++)
		v[i] /= sum;
}

/* Compute the activations and @prob after the symbols @before */
static void forward(const struct model *m, const real *param,
		    const uint8_t *before, real *act, real *prob)
{
	const struct parts p = parts_of(m);
	unsigned int i;

	memcpy(act, param + p.bias, m->hidden * sizeof(*act));
	for (i = 0; i < m->context; i++)
		add(act, vector(m, param, i, before[i]), 1, m->hidden);
	for (i = 0; i < m->hidden; i++)
		act[i] = sizeof(real) == sizeof(float) ? tanhf(act[i]) :
							 tanh(act[i]);
	for (i = 0; i < m->vocab; i++)
		prob[i] = param[p.out_bias + i] +
			  dot(param + p.out + (size_t)i * m->hidden, act,
			      m->hidden);
	softmax(prob, m->vocab);
}

/*
 * Add the gradient of one sample to @grad. Overwrites @prob; @back is room for the
 * gradient of the hidden layer.
 */
static void backward(const struct model *m, const real *param,
		     const uint8_t *before, unsigned int target,
		     const real *act, real *prob, real *back, real weight,
		     real *grad)
{
	const struct parts p = parts_of(m);
	unsigned int i;

	prob[target] -= 1;
	memset(back, 0, m->hidden * sizeof(*back));
	for (i = 0; i < m->vocab; i++) {
		const size_t row = p.out + (size_t)i * m->hidden;
		const real delta = weight * prob[i];

		add(back, param + row, delta, m->hidden);
		add(grad + row, act, delta, m->hidden);
		grad[p.out_bias + i] += delta;
	}
	for (i = 0; i < m->hidden; i++)
		back[i] *= 1 - act[i] * act[i];
	add(grad + p.bias, back, 1, m->hidden);
	for (i = 0; i < m->context; i++)
		add((real *)vector(m, grad, i, before[i]), back, 1, m->hidden);
}

double model_loss(const struct model *m, const real *param,
		  const struct text *t, const size_t *pos, unsigned int n,
		  real *grad)
{
	real *act = malloc((2 * (size_t)m->hidden + m->vocab) * sizeof(real));
	real *back = act + m->hidden, *prob = back + m->hidden;
	double loss = 0;
	unsigned int i;

	if (!act)
		err(1, NULL);
	if (grad)
		memset(grad, 0, model_size(m) * sizeof(*grad));
	for (i = 0; i < n; i++) {
		const uint8_t *before = t->symbol + pos[i] - m->context;
		const unsigned int target = t->symbol[pos[i]];

		forward(m, param, before, act, prob);
		loss -= log(prob[target] > 1e-30 ? prob[target] : 1e-30);
		if (grad)
			backward(m, param, before, target, act, prob, back,
				 (real)1 / n, grad);
	}
	free(act);
	return loss / n;
}
