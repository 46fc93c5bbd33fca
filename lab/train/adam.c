// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>

#include "adam.h"

#define ADAM_SQUARE	0.99f
#define ADAM_EPSILON	1e-8f

void adam_step(struct adam *a, const float *grad)
{
	float *restrict param = a->param;
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
