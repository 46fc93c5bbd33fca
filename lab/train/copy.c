// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "adam.h"
#include "alloc.h"
#include "copy.h"

void copy_init(struct copy *c, float *param, size_t size)
{
	*c = (struct copy){
		.size = size,
		.param = param,
		.last = zeroed(size, sizeof(float)),
		.before = zeroed(size, sizeof(float)),
	};
	copy_reset(c);
}

void copy_reset(struct copy *c)
{
	memcpy(c->last, c->param, c->size * sizeof(float));
	memcpy(c->before, c->param, c->size * sizeof(float));
}

void copy_begin(struct copy *c)
{
	float *last = c->before;

	c->before = c->last;
	c->last = last;
	memcpy(last, c->param, c->size * sizeof(float));
}

void copy_end(struct copy *c, const struct dblp_span *span, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = span[i].first; k < span[i].end; k++)
			c->param[k] = c->last[k] + ADAM_MEAN * (c->last[k] - c->before[k]);
}

double copy_apart(const struct copy *c, const float *v, const struct dblp_span *span,
		  size_t n)
{
	double sum = 0;
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = span[i].first; k < span[i].end; k++) {
			const double d = (double)c->param[k] - v[k];

			sum += d * d;
		}
	return sum;
}

void copy_free(struct copy *c)
{
	free(c->last);
	free(c->before);
}
