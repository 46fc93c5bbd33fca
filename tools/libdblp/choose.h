/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: choosing the large elements of a message.
 *
 * Pure: no sockets. Elements are taken in blocks. The magnitude of a block is
 * that of its largest element, rounded to one of some thousand steps. One pass
 * counts the blocks of each step, whatever the share.
 */
#ifndef DBLP_CHOOSE_H
#define DBLP_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

/** DBLP_CHOOSE_BLOCK - elements of a block; the last one may have fewer */
#define DBLP_CHOOSE_BLOCK	16

/**
 * dblp_choose() - copy the large elements, or all others
 * @dtype: &enum dblp_dtype
 * @v: elements
 * @count: their number
 * @share: ppm: share of the elements that are large, rounded up to a block.
 *	Among blocks of the same step the first ones are large
 * @large: copy large elements; else the others
 * @to: filled with the chosen elements, at their positions, and with zeroes
 *	elsewhere
 *
 * NaNs are large.
 */
void dblp_choose(uint32_t dtype, const void *v, uint64_t count, uint32_t share,
		 bool large, void *to);

#endif /* DBLP_CHOOSE_H */
