// SPDX-License-Identifier: GPL-2.0-only
/*
 * Zero maps: writing and reading them.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "zeromap.h"

/**
 * dblp_zeromap_words() - length of the map of a part of a message
 * @zeros: segments that are zero
 * @first: first segment of the part, a multiple of 32
 * @end: segment behind the part
 *
 * Return: words up to that of the last zero segment of the part, 0 if there is
 * none.
 */
u32 dblp_zeromap_words(const struct dblp_segmap *zeros, u32 first, u32 end)
{
	u32 words = 0, seg = first;

	while ((seg = dblp_segmap_next(zeros, seg)) < min(end, zeros->n)) {
		words = (seg - first) / 32 + 1;
		seg = first + 32 * words;
	}
	return words;
}

/**
 * dblp_zeromap_put() - write a zero map
 * @p: buffer, 4 bytes per word
 * @zeros: segments that are zero
 * @first: first segment, a multiple of 32 before the end of the message
 * @words: number of words, all of which begin before the end of the message
 *
 * Return: the byte behind the map.
 */
u8 *dblp_zeromap_put(u8 *p, const struct dblp_segmap *zeros, u32 first,
		     u32 words)
{
	u32 word;

	for (; words--; first += 32, p += 4) {
		word = dblp_segmap_word(zeros, first);
		p[0] = word >> 24;
		p[1] = word >> 16;
		p[2] = word >> 8;
		p[3] = word;
	}
	return p;
}

static u32 get_word(const struct dblp_zeromap *z, u32 word)
{
	const u8 *p = z->p + 4 * word;

	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* First bit from @at on that is 1 or, if @flip is all ones, 0 */
static u32 next_bit(const struct dblp_zeromap *z, u32 at, u32 flip)
{
	u32 end = 32 * z->words, word;

	for (; at < end; at = (at / 32 + 1) * 32) {
		word = (get_word(z, at / 32) ^ flip) >> at % 32;
		if (word)
			return at + __ffs(word);
	}
	return end;
}

/**
 * dblp_zeromap_next() - next run of segments that are zero
 * @z: the map
 * @at: bit to start at; set to the one behind the run
 * @first: set to the first segment of the run
 * @count: set to its length
 *
 * Return: false if there is no run.
 */
bool dblp_zeromap_next(const struct dblp_zeromap *z, u32 *at, u32 *first,
		       u32 *count)
{
	u32 begin = next_bit(z, *at, 0);

	if (begin == 32 * z->words)
		return false;
	*at = next_bit(z, begin, U32_MAX);
	*first = z->first + begin;
	*count = *at - begin;
	return true;
}

/**
 * dblp_zeromap_valid() - check a map
 * @z: map that dblp_get_data() found
 * @n: segments of the message
 *
 * Return: true if it names at least one segment, and none behind the end.
 */
bool dblp_zeromap_valid(const struct dblp_zeromap *z, u32 n)
{
	if (next_bit(z, 0, 0) == 32 * z->words)
		return false;
	return next_bit(z, n - z->first, 0) == 32 * z->words;
}

/**
 * dblp_zeromap_common() - number of segments of a map that are in a set
 * @z: valid map
 * @have: the set
 * @count: set to the number of segments in the map
 *
 * Return: number of segments in both.
 */
u32 dblp_zeromap_common(const struct dblp_zeromap *z,
			const struct dblp_segmap *have, u32 *count)
{
	u32 i, word, common = 0;

	*count = 0;
	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		/* A word behind the end of the set is zero */
		if (!word)
			continue;
		*count += hweight_long(word);
		common += hweight_long(word &
				       dblp_segmap_word(have, z->first + 32 * i));
	}
	return common;
}

/** dblp_zeromap_add() - add the segments of a map, none of which is in the set */
void dblp_zeromap_add(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_add_word(have, z->first + 32 * i, word);
	}
}

/** dblp_zeromap_del() - remove the segments of a map, all of which are in the set */
void dblp_zeromap_del(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_del_word(have, z->first + 32 * i, word);
	}
}
