// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Packed vectors: see sparse.h. No other file interprets these bytes.
 */

#include "sparse.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "reduce.h"

#define SHIFTS		DBLP_SPARSE_SHIFTS
/*
 * Classes of squared norms by powers of two: the highest ones that may be
 * pruned
 */
#define OCTAVES		64
/* A word of a bitmap has 2^WORD bits */
#define WORD		6

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t blocks_of(uint64_t count, uint32_t shift)
{
	return (count + (UINT64_C(1) << shift) - 1) >> shift;
}

static size_t bitmap_bytes(uint64_t count, uint32_t shift)
{
	return (blocks_of(count, shift) + 63) / 64 * 8;
}

/* Bitmaps are arrays of little-endian words */
static uint64_t get_word(const uint8_t *bitmap, uint64_t i)
{
	uint64_t word;

	memcpy(&word, bitmap + i * sizeof(word), sizeof(word));
	return le64toh(word);
}

static void put_word(uint8_t *bitmap, uint64_t i, uint64_t word)
{
	word = htole64(word);
	memcpy(bitmap + i * sizeof(word), &word, sizeof(word));
}

static bool has_block(const uint8_t *bitmap, uint64_t block)
{
	return bitmap[block / 8] >> block % 8 & 1;
}

/* Number of elements of a block */
static uint64_t block_len(uint64_t count, uint32_t shift, uint64_t block)
{
	return min64(count - (block << shift), UINT64_C(1) << shift);
}

size_t dblp_sparse_front(uint64_t count, uint32_t shift)
{
	return DBLP_SPARSE_HEAD + bitmap_bytes(count, shift);
}

size_t dblp_sparse_bound(uint64_t count, uint32_t esize)
{
	return dblp_sparse_front(count, 0) + count * esize;
}

/* Packing */

struct vector {
	const char	*v;
	uint64_t	count;
	uint32_t	dtype;
	uint32_t	esize;
};

static bool is_set(const struct vector *a, uint64_t i)
{
	uint64_t word;
	uint32_t half;
	uint16_t quarter;

	switch (a->esize) {
	case sizeof(word):
		memcpy(&word, a->v + i * sizeof(word), sizeof(word));
		return word;
	case sizeof(half):
		memcpy(&half, a->v + i * sizeof(half), sizeof(half));
		return half;
	case 1:
		return a->v[i];
	default:
		memcpy(&quarter, a->v + i * sizeof(quarter), sizeof(quarter));
		return quarter;
	}
}

/* One bit for each of up to 64 elements: 1 if it is not zero */
static uint64_t set_bits(const struct vector *a, uint64_t first, uint32_t n)
{
	const uint32_t each = sizeof(uint64_t) / a->esize;
	uint64_t bits = 0, word;
	uint32_t i = 0, e;

	for (; i + each <= n; i += each) {
		memcpy(&word, a->v + (first + i) * a->esize, sizeof(word));
		for (e = i; word && e < i + each; e++)
			bits |= (uint64_t)is_set(a, first + e) << e;
	}
	for (; i < n; i++)
		bits |= (uint64_t)is_set(a, first + i) << i;
	return bits;
}

/* Make the bitmap for blocks of one element */
static void mark_elements(const struct vector *a, uint8_t *bitmap)
{
	uint64_t i;

	for (i = 0; i < a->count; i += 64)
		put_word(bitmap, i / 64,
			 set_bits(a, i, (uint32_t)min64(a->count - i, 64)));
}

/*
 * Join pairs of blocks of 2^shift elements each; the bit of the first one
 * stands for both
 */
static uint64_t or_pairs(uint64_t word, uint32_t shift)
{
	static const uint64_t firsts[WORD] = {
		0x5555555555555555, 0x1111111111111111, 0x0101010101010101,
		0x0001000100010001, 0x0000000100000001, 1,
	};

	return (word | word >> (1U << shift)) & firsts[shift];
}

/*
 * Cost of each block size
 *
 * @blocks: blocks to send
 * @less: elements that the last block lacks, if it is among them
 */
struct census {
	uint64_t	blocks[SHIFTS];
	uint64_t	less[SHIFTS];
};

/*
 * Count the blocks of a word. Within the word, join blocks level by level.
 * Larger blocks consist of 2^j words: this word is in another one than the last
 * word sent if their indices differ in bit j or above. Only the highest such
 * bit is counted, and count_blocks() adds it to all below.
 */
static void count_word(struct census *c, uint64_t word, uint64_t differs)
{
	uint32_t j, bit = WORD + 63 - (uint32_t)__builtin_clzll(differs);

	for (j = 0; j < WORD; j++) {
		c->blocks[j] += (uint64_t)__builtin_popcountll(word);
		word = or_pairs(word, j);
	}
	c->blocks[bit < SHIFTS ? bit : SHIFTS - 1]++;
}

static void count_blocks(uint64_t count, const uint8_t *bitmap, struct census *c)
{
	uint64_t before = UINT64_MAX, last = 0, i, word, all;
	uint32_t j;

	memset(c, 0, sizeof(*c));
	for (i = 0; i << WORD < count; i++) {
		word = get_word(bitmap, i);
		if (!word)
			continue;
		count_word(c, word, before ^ i);
		before = i;
		last = (i << WORD) + 63 - (uint64_t)__builtin_clzll(word);
	}
	for (j = SHIFTS - 1; j-- > WORD;)
		c->blocks[j] += c->blocks[j + 1];
	for (j = 0; j < SHIFTS && c->blocks[j]; j++) {
		all = blocks_of(count, j);
		if (last >> j == all - 1)
			c->less[j] = (all << j) - count;
	}
}

/*
 * Blocks that may be pruned
 *
 * @allowed: squared norm that may be pruned; 0: prune nothing
 * @blocks: number of blocks of each size and octave
 * @norm: sum of their squared norms
 * @most: largest of their squared norms
 */
struct prune {
	double		allowed;
	uint32_t	blocks[SHIFTS][OCTAVES];
	double		norm[SHIFTS][OCTAVES];
	double		most[SHIFTS][OCTAVES];
};

/* Biased exponent of a positive number */
static uint32_t exponent_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint32_t)(bits >> 52);
}

/* Octave of a squared norm; 0 is the least, OCTAVES exceeds what is allowed */
static uint32_t octave_of(const struct prune *p, double norm)
{
	uint32_t below;

	if (norm > p->allowed)
		return OCTAVES;
	below = exponent_of(p->allowed) - exponent_of(norm);
	return below < OCTAVES ? OCTAVES - 1 - below : 0;
}

/*
 * Count a block. A norm of 0 with bits set is never pruned: its signs would be
 * lost
 */
static void note_block(struct prune *p, uint32_t shift, double norm)
{
	uint32_t o = norm > 0 ? octave_of(p, norm) : OCTAVES;

	if (o == OCTAVES)
		return;
	p->blocks[shift][o]++;
	p->norm[shift][o] += norm;
	if (norm > p->most[shift][o])
		p->most[shift][o] = norm;
}

/*
 * Measure the blocks of all sizes: a block is complete when its second half is
 */
static void measure_blocks(const struct vector *a, struct prune *p)
{
	double half[SHIFTS] = { 0 }, norm;
	uint64_t i;
	uint32_t j;

	for (i = 0; i < a->count; i++) {
		norm = dblp_reduce_squares(a->dtype, a->v + i * a->esize, 1);
		for (j = 0; j < SHIFTS; norm += half[j++]) {
			note_block(p, j, norm);
			if (!(i >> j & 1))
				break;
		}
		if (j < SHIFTS)
			half[j] = norm;
	}
	/* Blocks that are short because the vector ends */
	for (j = 0, norm = 0; j < SHIFTS - 1; j++) {
		if (a->count >> j & 1)
			norm += half[j];
		note_block(p, j + 1, a->count & ((2ULL << j) - 1) ? norm : 0);
	}
}

static void plan_pruning(const struct vector *a, uint32_t ppm, struct prune *p)
{
	double all = ppm ? dblp_reduce_squares(a->dtype, a->v, a->count) : 0;

	memset(p, 0, sizeof(*p));
	if (!isfinite(all))
		return;
	p->allowed = all * ppm / 1e6;
	if (p->allowed > 0)
		measure_blocks(a, p);
}

/*
 * Return the first octave that is not pruned completely. @left is the squared
 * norm that may be pruned from it.
 */
static uint32_t last_octave(const struct prune *p, uint32_t shift, double *left)
{
	uint32_t o;

	*left = p->allowed;
	for (o = 0; o < OCTAVES && p->norm[shift][o] <= *left; o++)
		*left -= p->norm[shift][o];
	return o;
}

/* Lower bound of the number of pruned blocks */
static uint64_t pruned_of(const struct prune *p, uint32_t shift)
{
	uint64_t n = 0;
	double left;
	uint32_t last, o;

	if (!(p->allowed > 0))
		return 0;
	last = last_octave(p, shift, &left);
	for (o = 0; o < last; o++)
		n += p->blocks[shift][o];
	if (last < OCTAVES)
		n += (uint64_t)(left / p->most[shift][last]);
	return n;
}

/* Upper bound of the packed length, bytes */
static uint64_t cost_of(const struct vector *a, const struct census *c,
			const struct prune *p, uint32_t shift)
{
	uint64_t pruned = pruned_of(p, shift);
	uint64_t elements = (c->blocks[shift] - pruned) << shift;

	/* The last block, which may be short, may be among the pruned ones */
	if (!pruned)
		elements -= c->less[shift];
	return dblp_sparse_front(a->count, shift) + elements * a->esize;
}

static uint32_t choose(const struct vector *a, const uint8_t *bitmap,
		       const struct dblp_sparse_how *how, const struct prune *p)
{
	const uint32_t last = how->last, most = how->most ? how->most : SHIFTS - 1;
	uint64_t least = UINT64_MAX, cost;
	uint32_t shift = 0, j;
	struct census c;

	if (how->fixed)
		return last < most ? last : most;
	count_blocks(a->count, bitmap, &c);
	for (j = 0; j <= most && (!j || a->count >> (j - 1) > 1); j++) {
		cost = cost_of(a, &c, p, j);
		if (cost < least) {
			least = cost;
			shift = j;
		}
	}
	if (last <= most && least * 100 >= cost_of(a, &c, p, last) *
					    (100 - DBLP_SPARSE_STAYS))
		return last;
	return shift;
}

/* Convert a word of element bits to bits of blocks of 2^shift elements */
static uint64_t squeeze(uint64_t word, uint32_t shift)
{
	uint64_t bits = 0;
	uint32_t j;

	for (j = 0; j < WORD && j < shift; j++)
		word = or_pairs(word, j);
	for (; word; word &= word - 1)
		bits |= UINT64_C(1) << (__builtin_ctzll(word) >> j);
	return bits;
}

/* Convert the bitmap of elements to that of blocks, in place */
static void mark_blocks(uint64_t count, uint32_t shift, uint8_t *bitmap)
{
	uint64_t i, bits = 0, at = 0, block;

	for (i = 0; shift && i << WORD < count; i++) {
		block = i << WORD >> shift;
		if (block / 64 != at) {
			put_word(bitmap, at++, bits);
			bits = 0;
		}
		bits |= squeeze(get_word(bitmap, i), shift) << block % 64;
	}
	if (shift)
		put_word(bitmap, at, bits);
}

/*
 * May a block be pruned? Its octave must be @last with enough @left, or lower
 */
static bool prune_block(const struct vector *a, const struct prune *p,
			uint32_t last, double *left, uint64_t first,
			uint64_t n)
{
	double norm = dblp_reduce_squares(a->dtype, a->v + first * a->esize, n);
	uint32_t o = norm > 0 ? octave_of(p, norm) : OCTAVES;

	if (o == OCTAVES || o > last || (o == last && norm > *left))
		return false;
	if (o == last)
		*left -= norm;
	return true;
}

/* Prune blocks; returns the number of their elements */
static uint64_t prune_marked(const struct vector *a, const struct prune *p,
			     uint32_t shift, void *residual, uint8_t *bitmap)
{
	const uint64_t blocks = blocks_of(a->count, shift);
	uint64_t pruned = 0, i, at, n;
	double left;
	uint32_t last = last_octave(p, shift, &left);

	for (i = 0; i < blocks; i++) {
		at = i << shift;
		n = block_len(a->count, shift, i);
		if (!has_block(bitmap, i) ||
		    !prune_block(a, p, last, &left, at, n))
			continue;
		bitmap[i / 8] &= ~(1U << i % 8);
		memcpy((char *)residual + at * a->esize, a->v + at * a->esize,
		       n * a->esize);
		pruned += n;
	}
	return pruned;
}

static uint64_t count_packed(const struct dblp_sparse *s)
{
	uint64_t blocks = blocks_of(s->count, s->shift), n = 0, i;

	for (i = 0; i * 64 < blocks; i++)
		n += (uint64_t)__builtin_popcountll(get_word(s->bitmap, i));
	n <<= s->shift;
	if (has_block(s->bitmap, blocks - 1))
		n -= (blocks << s->shift) - s->count;
	return n;
}

static void pack(const struct vector *a, const struct dblp_sparse *s, char *to)
{
	struct dblp_sparse_at at = { 0 };
	struct dblp_span span;

	while (dblp_sparse_next(s, &at, s->packed, &span)) {
		size_t len = (span.end - span.first) * a->esize;

		memcpy(to, a->v + span.first * a->esize, len);
		to += len;
	}
}

static void put_head(const struct dblp_sparse *s, uint8_t *p)
{
	memset(p, 0, DBLP_SPARSE_HEAD);
	p[0] = (uint8_t)s->shift;
	p[4] = s->packed >> 24;
	p[5] = s->packed >> 16;
	p[6] = s->packed >> 8;
	p[7] = s->packed;
}

size_t dblp_sparse_put(const struct dblp_sparse_how *how, const void *v,
		       uint64_t count, uint8_t *p, struct dblp_sparse *s)
{
	const struct vector a = {
		v, count, how->dtype, dblp_dtype_size(how->dtype)
	};
	uint8_t *bitmap = p + DBLP_SPARSE_HEAD;
	struct prune prune;
	size_t front;

	plan_pruning(&a, how->prune, &prune);
	mark_elements(&a, bitmap);
	s->count = count;
	s->shift = choose(&a, bitmap, how, &prune);
	s->bitmap = bitmap;
	front = dblp_sparse_front(count, s->shift);
	mark_blocks(count, s->shift, bitmap);
	s->pruned = prune.allowed > 0 ?
		    prune_marked(&a, &prune, s->shift, how->residual, bitmap) : 0;
	s->packed = (uint32_t)count_packed(s);
	put_head(s, p);
	pack(&a, s, (char *)p + front);
	return front + (size_t)s->packed * a.esize;
}

/* Unpacking */

size_t dblp_sparse_len(const uint8_t p[DBLP_SPARSE_HEAD], uint64_t count,
		       uint32_t esize)
{
	uint32_t packed = (uint32_t)p[4] << 24 | (uint32_t)p[5] << 16 |
			  (uint32_t)p[6] << 8 | p[7];

	if (p[0] >= SHIFTS || p[1] || p[2] || p[3] || packed > count)
		return 0;
	return dblp_sparse_front(count, p[0]) + (size_t)packed * esize;
}

/* Are the bits after the last block zero? */
static bool ends_clean(const struct dblp_sparse *s)
{
	uint64_t i, blocks = blocks_of(s->count, s->shift);

	for (i = blocks; i < bitmap_bytes(s->count, s->shift) * 8; i++)
		if (has_block(s->bitmap, i))
			return false;
	return true;
}

int dblp_sparse_get(const uint8_t *p, size_t len, uint64_t count, uint32_t esize,
		    struct dblp_sparse *s)
{
	struct dblp_sparse new = {
		.bitmap = p + DBLP_SPARSE_HEAD,
		.count = count,
	};
	size_t front;

	if (len < DBLP_SPARSE_HEAD || dblp_sparse_len(p, count, esize) != len)
		return -EBADMSG;
	new.shift = p[0];
	front = dblp_sparse_front(count, new.shift);
	new.packed = (uint32_t)((len - front) / esize);
	if (!ends_clean(&new) || count_packed(&new) != new.packed)
		return -EBADMSG;
	*s = new;
	return 0;
}

/* First present block from @block on, or the end of the bitmap */
static uint64_t next_block(const struct dblp_sparse *s, uint64_t block)
{
	const uint64_t end = bitmap_bytes(s->count, s->shift) * 8;
	uint64_t word;

	for (; block < end; block = (block | 63) + 1) {
		word = get_word(s->bitmap, block / 64) >> block % 64;
		if (word)
			return block + (uint64_t)__builtin_ctzll(word);
	}
	return end;
}

/*
 * Number of consecutive present blocks from @block on; counting stops at @most
 * or a little later
 */
static uint64_t run_of(const struct dblp_sparse *s, uint64_t block, uint64_t most)
{
	const uint64_t end = bitmap_bytes(s->count, s->shift) * 8;
	uint64_t at = block, gone, n;

	do {
		gone = ~(get_word(s->bitmap, at / 64) >> at % 64);
		n = min64(gone ? (uint64_t)__builtin_ctzll(gone) : 64, 64 - at % 64);
		at += n;
	} while (n && !(at % 64) && at < end && at - block < most);
	return at - block;
}

bool dblp_sparse_next(const struct dblp_sparse *s, struct dblp_sparse_at *at,
		      uint64_t end, struct dblp_span *span)
{
	uint64_t run, place, n;

	while (at->packed < end) {
		at->block = next_block(s, at->block);
		place = at->block << s->shift;
		run = run_of(s, at->block, ((end - at->first) >> s->shift) + 1);
		n = min64(run << s->shift, s->count - place);
		if (at->packed < at->first + n) {
			span->first = place + at->packed - at->first;
			n = min64(at->first + n, end) - at->packed;
			span->end = span->first + n;
			at->packed += n;
			/*
			 * The next call starts with the block in which this one
			 * ended
			 */
			run = (at->packed - at->first) >> s->shift;
			at->first += run << s->shift;
			at->block += run;
			return true;
		}
		at->first += n;
		at->block += run;
	}
	return false;
}

void dblp_sparse_add(const struct dblp_sparse *s, uint32_t dtype, void *to,
		     const void *packed, struct dblp_sparse_at *at, uint64_t end)
{
	const uint32_t esize = dblp_dtype_size(dtype);
	const char *from = (const char *)packed + at->packed * esize;
	struct dblp_span span;

	while (dblp_sparse_next(s, at, end, &span)) {
		uint64_t n = span.end - span.first;

		dblp_reduce_add(dtype, (char *)to + span.first * esize, from, n);
		from += n * esize;
	}
}

void dblp_sparse_copy(const struct dblp_sparse *s, uint32_t dtype, void *to,
		      const void *packed)
{
	const uint32_t esize = dblp_dtype_size(dtype);
	struct dblp_sparse_at at = { 0 };
	struct dblp_span span;
	const char *from = packed;
	char *end = to;

	while (dblp_sparse_next(s, &at, s->packed, &span)) {
		char *first = (char *)to + span.first * esize;
		size_t len = (span.end - span.first) * esize;

		memset(end, 0, (size_t)(first - end));
		memcpy(first, from, len);
		from += len;
		end = first + len;
	}
	memset(end, 0, (size_t)((char *)to + s->count * esize - end));
}
