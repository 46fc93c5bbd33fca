// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reduce.h"

/* Elements that a range of a message overlaps. */
struct span {
	size_t	first;
	size_t	end;
};

static struct span span_of(const struct dblp_range *range, size_t head,
			   size_t size)
{
	const size_t from = range->offset > head ? range->offset - head : 0;
	const size_t to = (size_t)range->offset + range->length;
	struct span s = { from / sizeof(float), 0 };

	if (to > head)
		s.end = (to - head + sizeof(float) - 1) / sizeof(float);
	if (s.end > size)
		s.end = size;
	return s;
}

/* Returns the number of missing contributions of each element. */
static uint16_t *count_missing(const struct dblp_msg *msg, size_t head,
			       unsigned int n, size_t size)
{
	uint16_t *missing = calloc(size, sizeof(*missing));
	unsigned int i;
	uint32_t r;
	size_t e;

	if (!missing)
		err(1, NULL);
	for (i = 0; i < n; i++) {
		for (r = 0; r < msg[i].n; r++) {
			const struct span s = span_of(&msg[i].range[r], head,
						      size);

			for (e = s.first; e < s.end; e++)
				missing[e]++;
		}
	}
	return missing;
}

void reduce_average(enum reduction how, float *avg, size_t size,
		    float *const *grad, const struct dblp_msg *msg, size_t head,
		    unsigned int n)
{
	const float share = 1.0f / n;
	uint16_t *missing;
	unsigned int i;
	size_t e;

	memset(avg, 0, size * sizeof(*avg));
	for (i = 0; i < n; i++)
		for (e = 0; e < size; e++)
			avg[e] += share * grad[i][e];
	if (how == REDUCE_BUBBLE)
		return;

	missing = count_missing(msg, head, n, size);
	for (e = 0; e < size; e++)
		if (missing[e] && missing[e] < n)
			avg[e] *= (float)n / (n - missing[e]);
	free(missing);
}

double reduce_norm(const float *v, size_t size)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < size; i++)
		sum += (double)v[i] * v[i];
	return sqrt(sum);
}

void reduce_keep(float *residual, const float *grad, size_t size,
		 const struct dblp_msg *msg, size_t head)
{
	uint32_t r;
	size_t e;

	for (r = 0; r < msg->n; r++) {
		const struct span s = span_of(&msg->range[r], head, size);

		for (e = s.first; e < s.end; e++)
			residual[e] += grad[e];
	}
}

#define ADAM_MEAN	0.9f
#define ADAM_SQUARE	0.99f
#define ADAM_EPSILON	1e-8f

void adam_init(struct adam *a, size_t size, float rate)
{
	*a = (struct adam){
		.size = size,
		.rate = rate,
		.mean = calloc(size, sizeof(float)),
		.square = calloc(size, sizeof(float)),
	};
	if (!a->mean || !a->square)
		err(1, NULL);
}

void adam_step(struct adam *a, float *param, const float *grad)
{
	float *restrict mean = a->mean;
	float *restrict square = a->square;
	float rate, scale;
	size_t i;

	a->step++;
	rate = a->rate / (1 - powf(ADAM_MEAN, a->step));
	scale = 1 / (1 - powf(ADAM_SQUARE, a->step));
	for (i = 0; i < a->size; i++) {
		mean[i] += (1 - ADAM_MEAN) * (grad[i] - mean[i]);
		square[i] += (1 - ADAM_SQUARE) * (grad[i] * grad[i] - square[i]);
		param[i] -= rate * mean[i] /
			    (sqrtf(scale * square[i]) + ADAM_EPSILON);
	}
}

void adam_free(struct adam *a)
{
	free(a->mean);
	free(a->square);
}
