// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Choosing the large elements of a message: see choose.h.
 */

#include "choose.h"

#include <string.h>

#include "reduce.h"

#define BLOCK	DBLP_CHOOSE_BLOCK
#define PPM	1000000

/*
 * Steps of magnitude: the upper 12 bits of a number without its sign, which
 * grow with it. For a float these are its exponent and the next 1 (float64), 4
 * (float32, bfloat16) or 7 (float16) bits.
 */
#define STEPS	4096

static uint32_t step_of_int(uint64_t x)
{
	uint32_t e;

	if (x < 16)
		return (uint32_t)x;
	e = 63 - (uint32_t)__builtin_clzll(x);
	return (e - 3) << 4 | (uint32_t)(x >> (e - 4) & 15);
}

static uint32_t step_of_32(const char *p, uint32_t n)
{
	uint32_t most = 0, bits, i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
		bits &= 0x7fffffff;
		most = bits > most ? bits : most;
	}
	return most >> 19;
}

static uint32_t step_of_16(const char *p, uint32_t n)
{
	uint16_t most = 0, bits;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
		bits &= 0x7fff;
		most = bits > most ? bits : most;
	}
	return most >> 3;
}

static uint32_t step_of_ints(const char *p, uint32_t n)
{
	uint32_t most = 0, bits, i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
		bits = bits >> 31 ? -bits : bits;
		most = bits > most ? bits : most;
	}
	return step_of_int(most);
}

static uint32_t step_of_64(const char *p, uint32_t n)
{
	uint64_t most = 0, bits;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
		bits &= INT64_MAX;
		most = bits > most ? bits : most;
	}
	return (uint32_t)(most >> 51);
}

static uint32_t step_of_bytes(const char *p, uint32_t n)
{
	uint32_t most = 0, i;

	for (i = 0; i < n; i++)
		most = (uint8_t)p[i] > most ? (uint8_t)p[i] : most;
	return most;
}

static uint32_t step_of_longs(const char *p, uint32_t n)
{
	uint64_t most = 0, bits;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&bits, p + i * sizeof(bits), sizeof(bits));
		bits = bits >> 63 ? -bits : bits;
		most = bits > most ? bits : most;
	}
	return step_of_int(most);
}

static uint32_t step_of(uint32_t dtype, const char *p, uint32_t n)
{
	switch (dtype) {
	case DBLP_FLOAT32:
		return step_of_32(p, n);
	case DBLP_INT32:
		return step_of_ints(p, n);
	case DBLP_FLOAT64:
		return step_of_64(p, n);
	case DBLP_INT64:
		return step_of_longs(p, n);
	case DBLP_UINT8:
		return step_of_bytes(p, n);
	default:
		return step_of_16(p, n);
	}
}

static uint32_t block_len(uint64_t count, uint64_t at)
{
	return count - at < BLOCK ? (uint32_t)(count - at) : BLOCK;
}

/*
 * Limit between large blocks and others
 *
 * @step: blocks above it are large, and the first ones at it
 * @left: elements of blocks at @step that are large, rounded up to a block
 */
struct cut {
	uint32_t	step;
	uint64_t	left;
};

static struct cut find_cut(uint32_t dtype, const char *v, uint64_t count,
			   uint64_t want)
{
	const uint32_t esize = dblp_dtype_size(dtype);
	struct cut cut = { STEPS - 1, want };
	uint64_t at, elements[STEPS] = { 0 };
	uint32_t n;

	for (at = 0; at < count; at += n) {
		n = block_len(count, at);
		elements[step_of(dtype, v + at * esize, n)] += n;
	}
	while (cut.step && elements[cut.step] <= cut.left)
		cut.left -= elements[cut.step--];
	return cut;
}

static bool is_large(struct cut *cut, uint32_t step, uint32_t n)
{
	if (step != cut->step)
		return step > cut->step;
	if (!cut->left)
		return false;
	cut->left -= n < cut->left ? n : cut->left;
	return true;
}

void dblp_choose(uint32_t dtype, const void *v, uint64_t count, uint32_t share,
		 bool large, void *to)
{
	const uint64_t want = count / PPM * share + count % PPM * share / PPM;
	const uint32_t esize = dblp_dtype_size(dtype);
	struct cut cut = find_cut(dtype, v, count, want);
	uint64_t at;
	uint32_t n;

	for (at = 0; at < count; at += n) {
		const char *from = (const char *)v + at * esize;
		char *block = (char *)to + at * esize;

		n = block_len(count, at);
		if (is_large(&cut, step_of(dtype, from, n), n) == large)
			memcpy(block, from, n * esize);
		else
			memset(block, 0, n * esize);
	}
}
