/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TRAIN_ALLOC_H
#define TRAIN_ALLOC_H

#include <err.h>
#include <stdlib.h>

/** zeroed() - @n zeroed elements of @size bytes; ends the program if out of memory */
static inline void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n ?: 1, size);

	if (!p)
		err(1, NULL);
	return p;
}

#endif /* TRAIN_ALLOC_H */
