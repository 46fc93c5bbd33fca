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
 * @bits: DIV_ROUND_UP(@n, BITS_PER_LONG) words; those behind @n are zero
 * @n: segments of the message
 * @count: segments in the set
 */
struct dblp_segmap {
	unsigned long	*bits;
	u32		n;
	u32		count;
};

/** dblp_segmap_bytes() - memory that the bits of @n segments need */
size_t dblp_segmap_bytes(u32 n);
/** dblp_segmap_init() - empty set of @n segments in zeroed memory @bits */
void dblp_segmap_init(struct dblp_segmap *m, unsigned long *bits, u32 n);
/** dblp_segmap_fill() - put all segments into the set */
void dblp_segmap_fill(struct dblp_segmap *m);
bool dblp_segmap_test(const struct dblp_segmap *m, u32 i);
/** dblp_segmap_add() - put @i into the set; true if it was not there */
bool dblp_segmap_add(struct dblp_segmap *m, u32 i);
/** dblp_segmap_del() - take @i out of the set; true if it was there */
bool dblp_segmap_del(struct dblp_segmap *m, u32 i);
/** dblp_segmap_add_run() - put the @count from @first on into the set, new all */
void dblp_segmap_add_run(struct dblp_segmap *m, u32 first, u32 count);
/** dblp_segmap_del_run() - take these out of the set, which has them all */
void dblp_segmap_del_run(struct dblp_segmap *m, u32 first, u32 count);
/**
 * dblp_segmap_del_word() - take up to 32 segments out of the set
 * @m: the set
 * @first: the first of the 32, a multiple of 32
 * @word: bit i is segment @first + i, which exists; it need not be in the set
 */
void dblp_segmap_del_word(struct dblp_segmap *m, u32 first, u32 word);
/**
 * dblp_segmap_add_of() - put what is in another set into this one
 * @m: the set
 * @of: the other, of as many segments
 * @first: from this segment on,
 * @end: and before this one; larger than @first
 *
 * Return: how many were new.
 */
u32 dblp_segmap_add_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/** dblp_segmap_del_of() - the same, taking them out; returns how many were in it */
u32 dblp_segmap_del_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end);
/** dblp_segmap_common() - how many of those between are in both? */
u32 dblp_segmap_common(const struct dblp_segmap *m,
		       const struct dblp_segmap *of, u32 first, u32 end);
/** dblp_segmap_next_common() - first segment that is in both, or @n */
u32 dblp_segmap_next_common(const struct dblp_segmap *m,
			    const struct dblp_segmap *of);
/** dblp_segmap_word() - 32 segments from @first on, a multiple of 32 below @n */
static inline u32 dblp_segmap_word(const struct dblp_segmap *m, u32 first)
{
	return m->bits[first / BITS_PER_LONG] >> first % BITS_PER_LONG;
}

/** dblp_segmap_add_word() - put those into the set that are in a word, new all */
void dblp_segmap_add_word(struct dblp_segmap *m, u32 first, u32 word);
/** dblp_segmap_free() - how many from @first on are not in it, at most @count */
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

/** dblp_segmap_ranges() - byte ranges of the loss map; @m says what is there */
u32 dblp_segmap_ranges(const struct dblp_segmap *m);

/**
 * dblp_segmap_missing() - bytes of a loss map
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 *
 * Return: their sum.
 */
u32 dblp_segmap_missing(const struct dblp_segmap *m, u32 seg_size, u32 msg_len);

/**
 * dblp_segmap_next_missing() - next byte range of a loss map
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @from: segment to start at; moved behind the range that was found
 * @offset: where the range's first byte goes
 * @length: where its length in bytes goes
 *
 * Return: false if nothing is missing from @from on.
 */
bool dblp_segmap_next_missing(const struct dblp_segmap *m, u32 seg_size,
			      u32 msg_len, u32 *from, u32 *offset,
			      u32 *length);

struct dblp_range;

/**
 * dblp_segmap_list() - write a loss map down as byte ranges
 * @m: segments that are there
 * @seg_size: bytes of each segment but the last
 * @msg_len: bytes of the message
 * @base: added to each offset
 * @r: where the ranges go
 * @n: ranges that are there already, by rising offset, all before @base
 *
 * A range that touches the last one of those is joined with it.
 *
 * Return: @n plus the ranges added.
 */
u32 dblp_segmap_list(const struct dblp_segmap *m, u32 seg_size, u32 msg_len,
		     u32 base, struct dblp_range *r, u32 n);
/** dblp_segmap_touch() - do @a end and @b begin with a hole? */
bool dblp_segmap_touch(const struct dblp_segmap *a,
		       const struct dblp_segmap *b);

/* With four, neighbours stay neighbours a third too often */
#define DBLP_SHUFFLE_ROUNDS	6

/**
 * struct dblp_shuffle - a permutation of 0 ... n - 1 without memory
 * @n: how many
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
/** dblp_shuffle_find() - where in the permutation is @x? @x < n */
u32 dblp_shuffle_find(const struct dblp_shuffle *s, u32 x);

#endif /* _NET_DBLP_SEGMAP_H */
