// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode collective: the vectors. Floats are noise, since a transport may describe runs of
 * zero bytes; their sums depend on the order of additions. Sums of integers do not, and
 * are checked: an element has a number of its own, which each rank contributes times its
 * weight.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "conn.h"

/* Ranks differ, and sums of many of them stay small */
#define WEIGHTS		7

static uint32_t weight(uint32_t rank)
{
	return coll.what == WHAT_ALLGATHER ? 1 : 1 + rank % WEIGHTS;
}

/* With feedback what was lost in all rounds before may come in one */
static uint64_t rounds_in_sum(void)
{
	return coll.op.rule == DBLP_FEEDBACK ?
	       (uint64_t)cfg.warmup + cfg.count : 1;
}

/* The largest number of an element, so that sums do not wrap */
static uint64_t largest(uint32_t nranks)
{
	uint64_t most = INT32_MAX / WEIGHTS / nranks / rounds_in_sum();

	errno = 0;
	if (!most)
		fail("sums of %u ranks and so many rounds do not fit into int32",
		     nranks);
	return most;
}

uint32_t vector_dtype_size(void)
{
	return coll.op.dtype == DBLP_FLOAT32 || coll.op.dtype == DBLP_INT32 ? 4 : 2;
}

static void fill_ints(struct vector *v)
{
	const uint64_t most = largest(v->nranks);
	int32_t *own = v->own;
	uint64_t i;

	for (i = 0; i < v->count; i++) {
		uint64_t noise = contents_word(cfg.seed, i) >> 32;

		own[i] = (int32_t)((1 + (noise * most >> 32)) * weight(v->rank));
	}
}

/* The sign and all bits behind the exponent are noise: 0.5 ... 1 or -1 ... -0.5 */
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

void vector_init(struct vector *v, uint32_t size, uint32_t rank, uint32_t nranks)
{
	memset(v, 0, sizeof(*v));
	v->rank = rank;
	v->nranks = nranks;
	v->bytes = size;
	v->count = size / vector_dtype_size();
	v->own = xcalloc(size / 8 + 1, 8);
	v->buf = xcalloc(size / 8 + 1, 8);
	if (coll.op.dtype == DBLP_INT32)
		fill_ints(v);
	else
		fill_floats(v);
}

void vector_free(struct vector *v)
{
	free(v->own);
	free(v->buf);
}

/* Does @rank contribute to what this rank gets? In plan average those do that differ in one digit */
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
				   DBLP_LEVELS_MAX);
	errno = v->parts < 0 ? -v->parts : 0;
	if (errno)
		fail("rank %u: asking for its parts", v->rank);
}

void vector_begin(struct vector *v, struct dblp_comm *comm)
{
	const uint32_t size = vector_dtype_size();
	uint32_t rank;
	int i;

	find_parts(v, comm);
	v->full = coll.what == WHAT_ALLGATHER;
	for (rank = 0; rank < v->nranks && coll.what != WHAT_ALLGATHER; rank++)
		v->full += contributes(v, rank) ? weight(rank) : 0;
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

/* The most that may come to an element whose own number is 1 */
static uint64_t most_sum(const struct vector *v)
{
	if (coll.what != WHAT_ALLGATHER && coll.op.rule == DBLP_RESCALE)
		return (uint64_t)WEIGHTS * v->nranks;
	return v->full * rounds_in_sum();
}

static void check_part(struct vector *v, struct dblp_span part, uint32_t round)
{
	const int32_t *own = v->own, *sum = v->buf;
	const uint64_t most = most_sum(v);
	const int32_t mine = (int32_t)weight(v->rank);
	uint64_t i;

	for (i = part.first; i < part.end; i++) {
		uint64_t one = (uint64_t)(own[i] / mine);

		if (sum[i] == (int64_t)(one * v->full))
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
