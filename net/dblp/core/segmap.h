/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One bit for each segment of a message, the order in which segments are sent,
 * and the loss map as byte ranges.
 *
 * Pure: see wire.h. The bits belong to the caller.
 */
#ifndef _NET_DBLP_SEGMAP_H
#define _NET_DBLP_SEGMAP_H

#include <linux/bitmap.h>
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
/** dblp_segmap_fill() - put all segments into the set */
void dblp_segmap_fill(struct dblp_segmap *m);
bool dblp_segmap_test(const struct dblp_segmap *m, u32 i);
/** dblp_segmap_add() - add @i to the set; true if it was not there */
bool dblp_segmap_add(struct dblp_segmap *m, u32 i);
/** dblp_segmap_del() - remove @i from the set; true if it was there */
bool dblp_segmap_del(struct dblp_segmap *m, u32 i);
/** dblp_segmap_add_run() - add @count segments from @first on, none in the set */
void dblp_segmap_add_run(struct dblp_segmap *m, u32 first, u32 count);
/** dblp_segmap_del_run() - remove @count segments from @first on, all in the set */
void dblp_segmap_del_run(struct dblp_segmap *m, u32 first, u32 count);
/**
 * dblp_segmap_del_word() - remove up to 32 segments from the set
 * @m: the set
 * @first: the first of the 32, a multiple of 32
 * @word: bit i is segment @first + i, which exists; it need not be in the set
 */
void dblp_segmap_del_word(struct dblp_segmap *m, u32 first, u32 word);
/**
 * dblp_segmap_add_of() - add the segments of another set
 * @m: the set
 * @of: the other set, of as many segments
 * @first: first segment to look at
 * @end: segment after the last; larger than @first
 *
 * Return: number of segments added.
 */
u32 dblp_segmap_add_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/** dblp_segmap_del_of() - the same, removing; returns the number removed */
u32 dblp_segmap_del_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/** dblp_segmap_common() - number of segments @first ... @end - 1 in both sets */
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

/** dblp_segmap_add_word() - add the segments of a word, none in the set */
void dblp_segmap_add_word(struct dblp_segmap *m, u32 first, u32 word);
/** dblp_segmap_free() - length of the hole at @first, at most @count */
u32 dblp_segmap_free(const struct dblp_segmap *m, u32 first, u32 count);
/** dblp_segmap_next() - first segment >= @from in the set, or @n */
u32 dblp_segmap_next(const struct dblp_segmap *m, u32 from);
/** dblp_segmap_next_hole() - first segment >= @from not in the set, or @n */
u32 dblp_segmap_next_hole(const struct dblp_segmap *m, u32 from);
/**
 * dblp_segmap_missing_word() - 32 segments of a loss map
 * @m: segments that are there
 * @first: the first of the 32, a multiple of 32
 *
 * Return: a word of a LOSSMAP frame: bit i is set if segment @first + i exists
 * and is missing.
 */
u32 dblp_segmap_missing_word(const struct dblp_segmap *m, u32 first);

/** dblp_segmap_ranges() - number of byte ranges in the loss map of @m */
u32 dblp_segmap_ranges(const struct dblp_segmap *m);

/**
 * dblp_segmap_missing() - number of missing bytes
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 *
 * Return: sum of the ranges of the loss map.
 */
u32 dblp_segmap_missing(const struct dblp_segmap *m, u32 seg_size, u32 msg_len);

/**
 * dblp_segmap_next_missing() - next byte range of a loss map
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @from: segment to start at; set to the one behind the range found
 * @offset: set to the offset of the range
 * @length: set to its length in bytes
 *
 * Return: false if nothing is missing from @from on.
 */
bool dblp_segmap_next_missing(const struct dblp_segmap *m, u32 seg_size,
			      u32 msg_len, u32 *from, u32 *offset,
			      u32 *length);

struct dblp_range;

/**
 * dblp_segmap_list() - write a loss map as byte ranges
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @base: added to each offset
 * @r: array for the ranges
 * @n: ranges in it already, by rising offset, all before @base
 *
 * A range that touches the last range in @r is joined with it.
 *
 * Return: @n plus the ranges added.
 */
u32 dblp_segmap_list(const struct dblp_segmap *m, u32 seg_size, u32 msg_len,
		     u32 base, struct dblp_range *r, u32 n);
/** dblp_segmap_touch() - do @a end and @b begin with a hole? */
bool dblp_segmap_touch(const struct dblp_segmap *a,
		       const struct dblp_segmap *b);

/* With four rounds, neighbours stay neighbours a third too often */
#define DBLP_SHUFFLE_ROUNDS	6

/**
 * struct dblp_shuffle - a permutation of 0 ... n - 1 without memory
 * @n: number of elements
 * @bits: bits of one half of the Feistel network's block
 * @key: round keys
 *
 * A balanced Feistel network over the smallest even number of bits that holds
 * @n, walked until it lands below @n (cycle walking).
 */
struct dblp_shuffle {
	u32	n;
	u32	bits;
	u32	key[DBLP_SHUFFLE_ROUNDS];
};

void dblp_shuffle_init(struct dblp_shuffle *s, u32 n, u64 seed);
/** dblp_shuffle_at() - the @i-th element of the permutation, @i < n */
u32 dblp_shuffle_at(const struct dblp_shuffle *s, u32 i);
/** dblp_shuffle_find() - index of @x in the permutation, @x < n */
u32 dblp_shuffle_find(const struct dblp_shuffle *s, u32 x);

#endif /* _NET_DBLP_SEGMAP_H */
