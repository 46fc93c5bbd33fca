// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode collective: the vectors. Floats are pseudo-random, because a transport may describe
 * zero bytes instead of sending them. Sums of floats depend on the order of additions
 * and are not checked. Sums of integers are checked: each element has a base number, and
 * each rank contributes this number times its weight, or zero.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "conn.h"

/* Ranks differ, and sums of many of them stay small */
#define WEIGHTS		7

static uint32_t weight(uint32_t rank)
{
	return coll.what == WHAT_ALLGATHER ? 1 : 1 + rank % WEIGHTS;
}

/* Ranks have zeroes at different elements; in an allgather, at the same elements */
static bool is_zero(uint32_t rank, uint64_t i)
{
	uint64_t key = coll.what == WHAT_ALLGATHER ? 0 : rank + 1ULL;
	uint64_t noise = contents_word(~cfg.seed + key, i / coll.cluster) >> 32;

	return coll.density < DBLP_PPM && noise * DBLP_PPM >> 32 >= coll.density;
}

/* With feedback the losses of all earlier rounds may be added in one round */
static uint64_t rounds_in_sum(void)
{
	return coll.op.rule == DBLP_FEEDBACK ?
	       (uint64_t)cfg.warmup + cfg.count : 1;
}

/* Largest base number of an element, so that sums do not overflow */
static uint64_t largest(uint32_t nranks)
{
	uint64_t most = INT32_MAX / WEIGHTS / nranks / rounds_in_sum();

	errno = 0;
	if (!most)
		fail("sums of %u ranks over all rounds overflow int32",
		     nranks);
	return most;
}

uint32_t vector_dtype_size(void)
{
	return coll.op.dtype == DBLP_FLOAT32 || coll.op.dtype == DBLP_INT32 ? 4 : 2;
}

/* Base number of element @i, 1 ... @most */
static uint64_t number_of(const struct vector *v, uint64_t i)
{
	return 1 + ((contents_word(cfg.seed, i) >> 32) * v->most >> 32);
}

static void fill_ints(struct vector *v)
{
	int32_t *own = v->own;
	uint64_t i;

	v->most = largest(v->nranks);
	for (i = 0; i < v->count; i++)
		own[i] = (int32_t)(number_of(v, i) * weight(v->rank));
}

/* Sign and mantissa are pseudo-random: values are 0.5 ... 1 or -1 ... -0.5 */
static void fill_floats(struct vector *v)
{
	const uint64_t key = contents_word(cfg.seed, v->rank);
	uint64_t i, *own = v->own, noise = 0x807fffff807fffffULL,
		 half = 0x3f0000003f000000ULL;

	if (coll.op.dtype == DBLP_FLOAT16) {
		noise = 0x83ff83ff83ff83ffULL;
		half = 0x3800380038003800ULL;
	} else if (coll.op.dtype == DBLP_BFLOAT16) {
		noise = 0x807f807f807f807fULL;
		half = 0x3f003f003f003f00ULL;
	}
	for (i = 0; i < (v->bytes + 7) / 8; i++)
		own[i] = (contents_word(key, i) & noise) | half;
}

static void clear_zeroes(struct vector *v)
{
	const uint32_t size = vector_dtype_size();
	uint64_t i;

	for (i = 0; i < v->count; i++)
		if (is_zero(v->rank, i))
			memset((char *)v->own + i * size, 0, size);
}

static void count_given(struct vector *v)
{
	const uint64_t round = (uint64_t)v->bytes * v->givers;
	const off_t len = lseek(coll.vectors, 0, SEEK_END);

	if (len < 0)
		fail("--vectors: cannot seek");
	errno = 0;
	v->given = (uint64_t)len / round;
	if (!len || (uint64_t)len % round)
		fail("--vectors: %" PRIu64 " bytes are not a multiple of %u vectors of %zu",
		     (uint64_t)len, v->givers, v->bytes);
}

void vector_init(struct vector *v, uint32_t size, uint32_t rank, uint32_t nranks)
{
	const bool server = coll.op.plan_flags & DBLP_PLAN_SERVER;

	memset(v, 0, sizeof(*v));
	v->rank = rank;
	v->nranks = nranks;
	v->givers = nranks - server;
	v->bytes = size;
	v->count = size / vector_dtype_size();
	v->own = xcalloc(size / 8 + 1, 8);
	v->buf = xcalloc(size / 8 + 1, 8);
	if (coll.vectors >= 0)
		count_given(v);
	if (coll.op.dtype == DBLP_INT32)
		fill_ints(v);
	else
		fill_floats(v);
	clear_zeroes(v);
}

void vector_free(struct vector *v)
{
	free(v->own);
	free(v->buf);
}

/* Does @rank contribute to the result of this rank? In plan average: if one digit differs */
static bool contributes(const struct vector *v, uint32_t rank)
{
	const struct dblp_op *op = &coll.op;
	uint32_t stride = 1, radix = v->nranks, l;

	if (op->plan_flags & DBLP_PLAN_SERVER && rank == op->root)
		return false;
	if (op->algo != DBLP_AVERAGE || !op->levels)
		return true;
	for (l = 0; l < op->turn % op->levels; l++)
		stride *= op->radix[l];
	radix = op->radix[l];
	return rank % stride == v->rank % stride &&
	       rank / stride / radix == v->rank / stride / radix;
}

static void find_parts(struct vector *v, struct dblp_comm *comm)
{
	v->part[0] = (struct dblp_span) { 0, v->count };
	v->parts = 1;
	if (coll.what == WHAT_ALLREDUCE)
		return;
	v->parts = dblp_comm_owned(comm, v->count, &coll.op, v->part,
				   sizeof(v->part) / sizeof(v->part[0]));
	errno = v->parts < 0 ? -v->parts : 0;
	if (errno)
		fail("rank %u: dblp_comm_owned()", v->rank);
}

/* After the last round of the file the first follows. A server has no vectors. */
static void read_given(struct vector *v, uint32_t round)
{
	const bool server = v->givers < v->nranks;
	uint64_t at = round % v->given * v->givers + v->rank -
		      (server && v->rank > coll.op.root);

	if (server && v->rank == coll.op.root)
		return;
	errno = 0;
	if (pread(coll.vectors, v->own, v->bytes, (off_t)(at * v->bytes)) != (ssize_t)v->bytes)
		fail("--vectors: cannot read vector %" PRIu64, at);
}

void vector_begin(struct vector *v, struct dblp_comm *comm, uint32_t round)
{
	const uint32_t size = vector_dtype_size();
	int i;

	find_parts(v, comm);
	if (coll.vectors >= 0)
		read_given(v, round);
	if (coll.what != WHAT_ALLGATHER) {
		memcpy(v->buf, v->own, v->bytes);
		return;
	}
	memset(v->buf, 0, v->bytes);
	for (i = 0; i < v->parts; i++) {
		size_t at = v->part[i].first * size;

		memcpy((char *)v->buf + at, (char *)v->own + at,
		       v->part[i].end * size - at);
	}
}

/* Sum of all contributions to an element, divided by its base number */
static uint64_t full_sum(const struct vector *v, uint64_t i)
{
	uint64_t full = 0;
	uint32_t rank;

	if (coll.what == WHAT_ALLGATHER)
		return !is_zero(v->rank, i);
	for (rank = 0; rank < v->nranks; rank++)
		if (contributes(v, rank) && !is_zero(rank, i))
			full += weight(rank);
	return full;
}

/* Largest valid sum of an element, divided by its base number */
static uint64_t most_sum(const struct vector *v, uint64_t full)
{
	if (coll.what != WHAT_ALLGATHER && coll.op.rule == DBLP_RESCALE)
		return (uint64_t)WEIGHTS * v->nranks;
	return full * rounds_in_sum();
}

static void check_part(struct vector *v, struct dblp_span part, uint32_t round)
{
	const int32_t *sum = v->buf;
	uint64_t i;

	for (i = part.first; i < part.end; i++) {
		uint64_t one = number_of(v, i), full = full_sum(v, i);
		uint64_t most = most_sum(v, full);

		if (sum[i] == (int64_t)(one * full))
			continue;
		v->differing++;
		if (sum[i] >= 0 && sum[i] <= (int64_t)(one * most))
			continue;
		errno = 0;
		fail("rank %u: wrong: element %" PRIu64 " of %" PRIu64
		     " in round %u is %d, not within 0 and %" PRIu64,
		     v->rank, i, v->count, round, sum[i], one * most);
	}
}

void vector_check(struct vector *v, uint32_t round)
{
	const struct dblp_span whole = { 0, v->count };
	int i;

	if (coll.op.dtype != DBLP_INT32)
		return;
	if (coll.what == WHAT_ALLGATHER) {
		check_part(v, whole, round);
		return;
	}
	for (i = 0; i < v->parts; i++)
		check_part(v, v->part[i], round);
}
