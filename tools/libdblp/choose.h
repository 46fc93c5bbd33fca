/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: which elements of a message are large.
 *
 * Pure. Elements are taken by blocks, whose magnitude is that of their largest element;
 * each magnitude is one of some thousand steps, and how many blocks there are of each
 * one is counted in one pass, whatever the share.
 */
#ifndef DBLP_CHOOSE_H
#define DBLP_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective.h"

/** DBLP_CHOOSE_BLOCK - elements of a block; the last one may have fewer */
#define DBLP_CHOOSE_BLOCK	16

/**
 * dblp_choose() - copy the elements that are large, or all others
 * @dtype: &enum dblp_dtype
 * @v: elements
 * @count: their number
 * @share: ppm: how many of them are large: so many, and less than a block more. Of
 *	blocks with as large a step those that come first
 * @large: copy these; else the others
 * @to: filled with them, at their places, and with zeroes
 *
 * What is no number is large.
 */
void dblp_choose(uint32_t dtype, const void *v, uint64_t count, uint32_t share,
		 bool large, void *to);

#endif /* DBLP_CHOOSE_H */
