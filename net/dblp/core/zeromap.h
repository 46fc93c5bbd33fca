/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Segments that are all zero are not sent but named in a zero map, which has words
 * like those of a LOSSMAP frame. Bit i of word w, counted from the least
 * significant, is segment first + 32 w + i; 1 is zero.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_ZEROMAP_H
#define _NET_DBLP_ZEROMAP_H

#include <linux/string.h>
#include <linux/types.h>

#include "segmap.h"

/**
 * struct dblp_zeromap - a zero map
 * @p: its words, big-endian
 * @first: segment of the first bit, a multiple of 32
 * @words: number of words, at least 1
 */
struct dblp_zeromap {
	const u8	*p;
	u32		first;
	u32		words;
};

/**
 * dblp_all_zero() - is memory all zero?
 * @p: first byte
 * @len: number of bytes, at least 1
 *
 * Most data that is not zero has a non-zero first word, which is in the cache.
 */
static inline bool dblp_all_zero(const void *p, u32 len)
{
	u64 word;

	if (len >= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		if (word)
			return false;
	}
	return !memchr_inv(p, 0, len);
}

u32 dblp_zeromap_words(const struct dblp_segmap *zeros, u32 first, u32 end);
u8 *dblp_zeromap_put(u8 *p, const struct dblp_segmap *zeros, u32 first,
		     u32 words);
bool dblp_zeromap_valid(const struct dblp_zeromap *z, u32 n);
bool dblp_zeromap_next(const struct dblp_zeromap *z, u32 *at, u32 *first,
		       u32 *count);
u32 dblp_zeromap_common(const struct dblp_zeromap *z,
			const struct dblp_segmap *have, u32 *count);
void dblp_zeromap_add(const struct dblp_zeromap *z, struct dblp_segmap *have);
void dblp_zeromap_del(const struct dblp_zeromap *z, struct dblp_segmap *have);

#endif /* _NET_DBLP_ZEROMAP_H */
