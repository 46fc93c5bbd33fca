// SPDX-License-Identifier: GPL-2.0-only
/*
 * Segments of a message: sets of them, loss maps and zero maps, and the order
 * in which they are sent.
 */
#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <linux/dblp.h>

#include "segmap.h"

size_t dblp_segmap_bytes(u32 n)
{
	return BITS_TO_LONGS((size_t)n) * sizeof(unsigned long);
}

void dblp_segmap_init(struct dblp_segmap *m, unsigned long *bits, u32 n)
{
	m->bits = bits;
	m->n = n;
	m->count = 0;
}

void dblp_segmap_fill(struct dblp_segmap *m)
{
	bitmap_set(m->bits, 0, m->n);
	m->count = m->n;
}

bool dblp_segmap_test(const struct dblp_segmap *m, u32 i)
{
	return test_bit(i, m->bits);
}

bool dblp_segmap_add(struct dblp_segmap *m, u32 i)
{
	if (test_bit(i, m->bits))
		return false;
	__set_bit(i, m->bits);
	m->count++;
	return true;
}

bool dblp_segmap_del(struct dblp_segmap *m, u32 i)
{
	if (!test_bit(i, m->bits))
		return false;
	__clear_bit(i, m->bits);
	m->count--;
	return true;
}

void dblp_segmap_add_run(struct dblp_segmap *m, u32 first, u32 count)
{
	bitmap_set(m->bits, first, count);
	m->count += count;
}

void dblp_segmap_del_run(struct dblp_segmap *m, u32 first, u32 count)
{
	bitmap_clear(m->bits, first, count);
	m->count -= count;
}

void dblp_segmap_del_word(struct dblp_segmap *m, u32 first, u32 word)
{
	unsigned long *at = &m->bits[first / BITS_PER_LONG];
	unsigned long gone = (unsigned long)word << first % BITS_PER_LONG & *at;

	*at ^= gone;
	m->count -= hweight_long(gone);
}

void dblp_segmap_add_word(struct dblp_segmap *m, u32 first, u32 word)
{
	m->bits[first / BITS_PER_LONG] |= (unsigned long)word <<
					  first % BITS_PER_LONG;
	m->count += hweight_long(word);
}

/* Word @i of a set, without bits below @first or from @end on */
static unsigned long part_of(const struct dblp_segmap *m, u32 i, u32 first,
			     u32 end)
{
	unsigned long word = m->bits[i];

	if (i == first / BITS_PER_LONG)
		word &= ~0UL << first % BITS_PER_LONG;
	if (i == end / BITS_PER_LONG)
		word &= ~(~0UL << end % BITS_PER_LONG);
	return word;
}

u32 dblp_segmap_add_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end)
{
	u32 i = first / BITS_PER_LONG, n = 0;

	for (; i < BITS_TO_LONGS(end); i++) {
		unsigned long more = part_of(of, i, first, end) & ~m->bits[i];

		m->bits[i] |= more;
		n += hweight_long(more);
	}
	m->count += n;
	return n;
}

u32 dblp_segmap_del_of(struct dblp_segmap *m, const struct dblp_segmap *of,
		       u32 first, u32 end)
{
	u32 i = first / BITS_PER_LONG, n = 0;

	for (; i < BITS_TO_LONGS(end); i++) {
		unsigned long less = part_of(of, i, first, end) & m->bits[i];

		m->bits[i] ^= less;
		n += hweight_long(less);
	}
	m->count -= n;
	return n;
}

u32 dblp_segmap_common(const struct dblp_segmap *m,
		       const struct dblp_segmap *of, u32 first, u32 end)
{
	u32 i = first / BITS_PER_LONG, n = 0;

	for (; i < BITS_TO_LONGS(end); i++)
		n += hweight_long(part_of(of, i, first, end) & m->bits[i]);
	return n;
}

u32 dblp_segmap_next_common(const struct dblp_segmap *m,
			    const struct dblp_segmap *of)
{
	u32 i;

	for (i = 0; i < BITS_TO_LONGS(m->n); i++)
		if (m->bits[i] & of->bits[i])
			return i * BITS_PER_LONG +
			       __ffs(m->bits[i] & of->bits[i]);
	return m->n;
}

u32 dblp_segmap_free(const struct dblp_segmap *m, u32 first, u32 count)
{
	return find_next_bit(m->bits, first + count, first) - first;
}

u32 dblp_segmap_next(const struct dblp_segmap *m, u32 from)
{
	return find_next_bit(m->bits, m->n, from);
}

u32 dblp_segmap_next_hole(const struct dblp_segmap *m, u32 from)
{
	return find_next_zero_bit(m->bits, m->n, from);
}

u32 dblp_segmap_missing_word(const struct dblp_segmap *m, u32 first)
{
	u32 missing;

	if (first >= m->n)
		return 0;
	missing = ~(m->bits[first / BITS_PER_LONG] >> first % BITS_PER_LONG);
	if (m->n - first < 32)
		missing &= (1U << (m->n - first)) - 1;
	return missing;
}

/* A range starts at a missing segment after one that is not missing */
u32 dblp_segmap_ranges(const struct dblp_segmap *m)
{
	u32 words = BITS_TO_LONGS(m->n), n = 0, i;
	unsigned long has, there_before = 1;

	for (i = 0; i < words; i++) {
		has = m->bits[i];
		if (i == words - 1 && m->n % BITS_PER_LONG)
			has |= ~0UL << m->n % BITS_PER_LONG;
		n += hweight_long(~has & (has << 1 | there_before));
		there_before = has >> (BITS_PER_LONG - 1);
	}
	return n;
}

u32 dblp_segmap_missing(const struct dblp_segmap *m, u32 seg_size, u32 msg_len)
{
	u32 bytes = (m->n - m->count) * seg_size;

	if (!dblp_segmap_test(m, m->n - 1))
		bytes -= m->n * seg_size - msg_len;
	return bytes;
}

bool dblp_segmap_next_missing(const struct dblp_segmap *m, u32 seg_size,
			      u32 msg_len, u32 *from, u32 *offset,
			      u32 *length)
{
	u32 first = dblp_segmap_next_hole(m, *from), end;

	if (first >= m->n)
		return false;
	end = dblp_segmap_next(m, first);
	*from = end;
	*offset = first * seg_size;
	*length = (end < m->n ? end * seg_size : msg_len) - *offset;
	return true;
}

u32 dblp_segmap_list(const struct dblp_segmap *m, u32 seg_size, u32 msg_len,
		     u32 base, struct dblp_range *r, u32 n)
{
	u32 from = 0, offset, length;

	while (dblp_segmap_next_missing(m, seg_size, msg_len, &from, &offset,
					&length)) {
		offset += base;
		if (n && r[n - 1].offset + r[n - 1].length == offset)
			r[n - 1].length += length;
		else
			r[n++] = (struct dblp_range) { offset, length };
	}
	return n;
}

bool dblp_segmap_touch(const struct dblp_segmap *a, const struct dblp_segmap *b)
{
	return !dblp_segmap_test(a, a->n - 1) && !dblp_segmap_test(b, 0);
}

u32 dblp_zeromap_words(const struct dblp_segmap *zeros, u32 first, u32 end)
{
	u32 words = 0, seg = first;

	while ((seg = dblp_segmap_next(zeros, seg)) < min(end, zeros->n)) {
		words = (seg - first) / 32 + 1;
		seg = first + 32 * words;
	}
	return words;
}

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

bool dblp_zeromap_valid(const struct dblp_zeromap *z, u32 n)
{
	if (next_bit(z, 0, 0) == 32 * z->words)
		return false;
	return next_bit(z, n - z->first, 0) == 32 * z->words;
}

u32 dblp_zeromap_common(const struct dblp_zeromap *z,
			const struct dblp_segmap *have, u32 *count)
{
	u32 i, word, common = 0;

	*count = 0;
	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		/* A word beyond the end of the set is zero: skip it */
		if (!word)
			continue;
		*count += hweight_long(word);
		word &= dblp_segmap_word(have, z->first + 32 * i);
		common += hweight_long(word);
	}
	return common;
}

void dblp_zeromap_add(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_add_word(have, z->first + 32 * i, word);
	}
}

void dblp_zeromap_del(const struct dblp_zeromap *z, struct dblp_segmap *have)
{
	u32 i, word;

	for (i = 0; i < z->words; i++) {
		word = get_word(z, i);
		if (word)
			dblp_segmap_del_word(have, z->first + 32 * i, word);
	}
}

/* The finalizer of splitmix64: similar seeds give unrelated keys */
static u64 shuffle_mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

void dblp_shuffle_init(struct dblp_shuffle *s, u32 n, u64 seed)
{
	u32 i;

	s->n = n;
	s->bits = 1;
	while (s->bits < 16 && (n - 1) >> 2 * s->bits)
		s->bits++;
	for (i = 0; i < DBLP_SHUFFLE_ROUNDS; i++) {
		seed += 0x9e3779b97f4a7c15ULL;
		s->key[i] = shuffle_mix(seed) >> 32;
	}
}

static u32 shuffle_round(u32 half, u32 key)
{
	u32 x = (half + 1) * 0x9e3779b1U ^ key;

	x = (x ^ x >> 15) * 0x85ebca6bU;
	x = (x ^ x >> 13) * 0xc2b2ae35U;
	return x ^ x >> 16;
}

u32 dblp_shuffle_at(const struct dblp_shuffle *s, u32 i)
{
	u32 mask = (1U << s->bits) - 1, r;

	/* The network permutes fewer than 4 n numbers: few passes */
	do {
		u32 left = i >> s->bits, right = i & mask, next;

		for (r = 0; r < DBLP_SHUFFLE_ROUNDS; r++) {
			next = left ^ (shuffle_round(right, s->key[r]) & mask);
			left = right;
			right = next;
		}
		i = left << s->bits | right;
	} while (i >= s->n);
	return i;
}

u32 dblp_shuffle_find(const struct dblp_shuffle *s, u32 x)
{
	u32 mask = (1U << s->bits) - 1, r;

	/* The inverse of dblp_shuffle_at() */
	do {
		u32 left = x >> s->bits, right = x & mask, prev;

		for (r = DBLP_SHUFFLE_ROUNDS; r--; ) {
			prev = right ^ (shuffle_round(left, s->key[r]) & mask);
			right = left;
			left = prev;
		}
		x = left << s->bits | right;
	} while (x >= s->n);
	return x;
}
