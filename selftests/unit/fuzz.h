/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _UNIT_FUZZ_H
#define _UNIT_FUZZ_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "prng.h"

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

/* Test one input; aborts if an invariant is violated */
int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

/* A valid input of at most @max bytes, as a start for mutations; returns its length */
size_t fuzz_seed(struct prng *r, u8 *p, size_t max);

/* The same, if any bytes are valid */
static inline size_t fuzz_any(struct prng *r, u8 *p, size_t max)
{
	size_t len = prng_below(r, max < 200 ? max : 200), i;

	for (i = 0; i < len; i++)
		p[i] = prng_any(r);
	return len;
}

#endif /* _UNIT_FUZZ_H */
