// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which segments are all zero: finding out, saying so, and reading it.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "zeromap.h"

/**
 * dblp_zeromap_words() - how long the map of a stretch of a message is
 * @zeros: segments that are zero
 * @first: first segment of the stretch, a multiple of 32
 * @end: the segment behind it
 *
 * Return: words up to that of the stretch's last segment that is zero, 0 if
 * there is none.
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
 * @p: where to, 4 bytes a word
 * @zeros: segments that are zero
 * @first: first segment, a multiple of 32 before the end of the message
 * @words: number of words, of which none begins behind it
 *
 * Return: the byte behind it.
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

/* First bit from @at on that is 1 or, with @flip all ones, 0 */
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
 * @at: bit to start at; moved behind the run
 * @first: where the run's first segment goes
 * @count: where its length goes
 *
 * Return: false if there is none.
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
 * dblp_zeromap_valid() - does a map name segments, and only such as there are?
 * @z: map that dblp_get_data() found
 * @n: segments of the message
 *
 * Return: true if it does.
 */
bool dblp_zeromap_valid(const struct dblp_zeromap *z, u32 n)
{
	if (next_bit(z, 0, 0) == 32 * z->words)
		return false;
	return next_bit(z, n - z->first, 0) == 32 * z->words;
}

/**
 * dblp_zeromap_common() - how many segments of a map are in a set
 * @z: valid map
 * @have: the set
 * @count: where the number of segments in the map goes
 *
 * Return: the number of those that are in the set, too.
 */
u32 dblp_zeromap_common(const struct dblp_zeromap *z,
			const struct dblp_segmap *have, u32 *count)
{
	u32 i, word, common = 0;

	*count = 0;
	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		/* There may be words behind the end, where nothing is */
		if (!word)
			continue;
		*count += hweight_long(word);
		common += hweight_long(word &
				       dblp_segmap_word(have, z->first + 32 * i));
	}
	return common;
}

/** dblp_zeromap_add() - put the segments of a map into a set that has none */
void dblp_zeromap_add(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_add_word(have, z->first + 32 * i, word);
	}
}

/** dblp_zeromap_del() - take the segments of a map out of a set that has all */
void dblp_zeromap_del(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_del_word(have, z->first + 32 * i, word);
	}
}
