/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One bit for each segment of a message, the loss map as byte ranges, zero
 * maps, and the order in which segments are sent.
 *
 * Pure: see wire.h. The caller allocates and frees the bits.
 */
#ifndef _NET_DBLP_SEGMAP_H
#define _NET_DBLP_SEGMAP_H

#include <linux/bitmap.h>
#include <linux/string.h>
#include <linux/types.h>

/**
 * struct dblp_segmap - a set of segments
 * @bits: DIV_ROUND_UP(@n, BITS_PER_LONG) words; bits from @n on are zero
 * @n: segments of the message
 * @count: segments in the set
 */
struct dblp_segmap {
	unsigned long	*bits;
	u32		n;
	u32		count;
};

/** dblp_segmap_bytes() - bytes of memory for the bits of @n segments */
size_t dblp_segmap_bytes(u32 n);
/** dblp_segmap_init() - empty set of @n segments in zeroed memory @bits */
void dblp_segmap_init(struct dblp_segmap *m, unsigned long *bits, u32 n);
/** dblp_segmap_fill() - add all segments to an empty set */
void dblp_segmap_fill(struct dblp_segmap *m);
bool dblp_segmap_test(const struct dblp_segmap *m, u32 i);
/** dblp_segmap_add() - add @i to the set; true if it was not in the set */
bool dblp_segmap_add(struct dblp_segmap *m, u32 i);
/** dblp_segmap_del() - remove @i from the set; true if it was in the set */
bool dblp_segmap_del(struct dblp_segmap *m, u32 i);
/** dblp_segmap_add_run() - add @count segments from @first on; all are new */
void dblp_segmap_add_run(struct dblp_segmap *m, u32 first, u32 count);
/** dblp_segmap_del_run() - remove @count segments of the set from @first on */
void dblp_segmap_del_run(struct dblp_segmap *m, u32 first, u32 count);
/**
 * dblp_segmap_del_word() - remove up to 32 segments from the set
 * @m: the set
 * @first: first of the 32 segments, a multiple of 32
 * @word: bit i is segment @first + i, which exists; it need not be in the set
 */
void dblp_segmap_del_word(struct dblp_segmap *m, u32 first, u32 word);
/**
 * dblp_segmap_add_of() - add the segments of another set
 * @m: the set
 * @of: the other set, for the same number of segments
 * @first: first segment to add
 * @end: segment after the last to add; larger than @first
 *
 * Return: number of segments added.
 */
u32 dblp_segmap_add_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/**
 * dblp_segmap_del_of() - remove the segments of another set
 * @m: the set
 * @of: the other set, for the same number of segments
 * @first: first segment to remove
 * @end: segment after the last to remove; larger than @first
 *
 * Return: number of segments removed.
 */
u32 dblp_segmap_del_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/** dblp_segmap_common() - number of @first ... @end - 1 in both sets */
u32 dblp_segmap_common(const struct dblp_segmap *m,
		       const struct dblp_segmap *of, u32 first, u32 end);
/** dblp_segmap_next_common() - first segment in both sets, or @n */
u32 dblp_segmap_next_common(const struct dblp_segmap *m,
			    const struct dblp_segmap *of);
/** dblp_segmap_word() - 32 bits from @first on, a multiple of 32 below @n */
static inline u32 dblp_segmap_word(const struct dblp_segmap *m, u32 first)
{
	return m->bits[first / BITS_PER_LONG] >> first % BITS_PER_LONG;
}

/** dblp_segmap_add_word() - add the segments of a word; all are new */
void dblp_segmap_add_word(struct dblp_segmap *m, u32 first, u32 word);
/** dblp_segmap_free() - length of the gap at @first, at most @count */
u32 dblp_segmap_free(const struct dblp_segmap *m, u32 first, u32 count);
/** dblp_segmap_next() - first segment >= @from in the set, or @n */
u32 dblp_segmap_next(const struct dblp_segmap *m, u32 from);
/** dblp_segmap_next_hole() - first segment >= @from not in the set, or @n */
u32 dblp_segmap_next_hole(const struct dblp_segmap *m, u32 from);
/**
 * dblp_segmap_missing_word() - 32 segments of a loss map
 * @m: segments that have arrived
 * @first: first of the 32 segments, a multiple of 32
 *
 * Return: a word of a LOSSMAP frame: bit i is set if segment @first + i exists
 * and is missing.
 */
u32 dblp_segmap_missing_word(const struct dblp_segmap *m, u32 first);

/** dblp_segmap_ranges() - number of byte ranges in the loss map of @m */
u32 dblp_segmap_ranges(const struct dblp_segmap *m);

/**
 * dblp_segmap_missing() - number of missing bytes
 * @m: segments that have arrived
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 *
 * Return: total length of the ranges of the loss map.
 */
u32 dblp_segmap_missing(const struct dblp_segmap *m, u32 seg_size, u32 msg_len);

/**
 * dblp_segmap_next_missing() - next byte range of a loss map
 * @m: segments that have arrived
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @from: segment to start at; set to the segment after the range found
 * @offset: set to the offset of the range, bytes
 * @length: set to the length of the range, bytes
 *
 * Return: false if no segment is missing from @from on.
 */
bool dblp_segmap_next_missing(const struct dblp_segmap *m, u32 seg_size,
			      u32 msg_len, u32 *from, u32 *offset,
			      u32 *length);

struct dblp_range;

/**
 * dblp_segmap_list() - write a loss map as byte ranges
 * @m: segments that have arrived
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @base: bytes to add to each offset
 * @r: array for the ranges
 * @n: number of ranges already in @r, by rising offset, all before @base
 *
 * A range that touches the last range in @r is joined with it.
 *
 * Return: @n plus the ranges added.
 */
u32 dblp_segmap_list(const struct dblp_segmap *m, u32 seg_size, u32 msg_len,
		     u32 base, struct dblp_range *r, u32 n);
/** dblp_segmap_touch() - do @a end and @b begin with a missing segment? */
bool dblp_segmap_touch(const struct dblp_segmap *a,
		       const struct dblp_segmap *b);

/**
 * struct dblp_zeromap - segments that are all zero, described instead of sent
 * @p: words of the map, big-endian
 * @first: segment of the first bit, a multiple of 32
 * @words: number of words, at least 1
 *
 * The words are like those of a LOSSMAP frame: bit i of word w, counted from
 * the least significant, is segment @first + 32 w + i; 1 is zero.
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
 * The first word is checked first, because it is non-zero in most data that is
 * not all zero, and is in the cache.
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

/**
 * dblp_zeromap_words() - length of the zero map of a stretch of a message
 * @zeros: segments that are zero
 * @first: first segment of the stretch, a multiple of 32
 * @end: segment after the stretch
 *
 * Return: number of words up to the last zero segment of the stretch, 0 if it
 * has none.
 */
u32 dblp_zeromap_words(const struct dblp_segmap *zeros, u32 first, u32 end);

/**
 * dblp_zeromap_put() - write a zero map
 * @p: buffer, 4 bytes per word
 * @zeros: segments that are zero
 * @first: first segment, a multiple of 32 before the end of the message
 * @words: number of words, all of which begin before the end of the message
 *
 * Return: the byte after the map.
 */
u8 *dblp_zeromap_put(u8 *p, const struct dblp_segmap *zeros, u32 first,
		     u32 words);

/**
 * dblp_zeromap_valid() - check a zero map
 * @z: zero map of a packet that dblp_get_data() accepted
 * @n: segments of the message
 *
 * Return: true if it describes at least one segment, and none beyond the end.
 */
bool dblp_zeromap_valid(const struct dblp_zeromap *z, u32 n);

/**
 * dblp_zeromap_next() - next consecutive segments of a zero map
 * @z: the map
 * @at: bit to start at; set to the bit after these segments
 * @first: set to the first of them
 * @count: set to their number
 *
 * Return: false if the map has no further segment.
 */
bool dblp_zeromap_next(const struct dblp_zeromap *z, u32 *at, u32 *first,
		       u32 *count);

/**
 * dblp_zeromap_common() - number of segments of a map that are in a set
 * @z: valid map
 * @have: the set
 * @count: set to the number of segments in the map
 *
 * Return: number of segments in both.
 */
u32 dblp_zeromap_common(const struct dblp_zeromap *z,
			const struct dblp_segmap *have, u32 *count);

/** dblp_zeromap_add() - add the segments of a map; none may be in the set */
void dblp_zeromap_add(const struct dblp_zeromap *z, struct dblp_segmap *have);
/** dblp_zeromap_del() - remove the segments of a map; all must be in the set */
void dblp_zeromap_del(const struct dblp_zeromap *z, struct dblp_segmap *have);

/* With 4 rounds, adjacent numbers stay adjacent too often, by a third */
#define DBLP_SHUFFLE_ROUNDS	6

/**
 * struct dblp_shuffle - a permutation of 0 ... n - 1 without memory
 * @n: number of elements
 * @bits: bits of one half of the Feistel network's block
 * @key: round keys
 *
 * A balanced Feistel network over the smallest even number of bits that can
 * hold @n - 1. It is applied until the result is below @n (cycle walking).
 */
struct dblp_shuffle {
	u32	n;
	u32	bits;
	u32	key[DBLP_SHUFFLE_ROUNDS];
};

/**
 * dblp_shuffle_init() - choose a permutation
 * @s: the permutation
 * @n: number of elements, 0 ... @n - 1; at least 1
 * @seed: equal seeds give equal permutations
 */
void dblp_shuffle_init(struct dblp_shuffle *s, u32 n, u64 seed);

/** dblp_shuffle_at() - the @i-th element of the permutation, @i < n */
u32 dblp_shuffle_at(const struct dblp_shuffle *s, u32 i);
/** dblp_shuffle_find() - index of @x in the permutation, @x < n */
u32 dblp_shuffle_find(const struct dblp_shuffle *s, u32 x);

#endif /* _NET_DBLP_SEGMAP_H */
