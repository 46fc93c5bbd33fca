/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: packed vectors, which omit blocks of zeroes.
 *
 * Pure: no sockets, no memory of its own. After DFS (Computer Networks 2023)
 * and OmniReduce (SIGCOMM 2021): a vector is cut into blocks of 2^shift
 * elements, and blocks that are all zero are omitted. The block size is the one
 * that takes the fewest bytes. Blocks with a small norm can be pruned: omitted,
 * too.
 *
 *	 0	shift
 *	 1	zero		3 bytes
 *	 4	packed		number of elements after the bitmap, 4 bytes
 *	 8	bitmap		bit i mod 8 of byte i / 8 is 1 if block i is present; zero bits
 *				up to a multiple of 8 bytes
 *		elements of these blocks, in the byte order of the machine
 *
 * The part before the elements is the front. It is big-endian, and elements
 * cannot be placed without it. An element is zero if no bit is set: -0.0 is not
 * zero.
 */
#ifndef DBLP_SPARSE_H
#define DBLP_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/** DBLP_SPARSE_HEAD - bytes of the front before the bitmap */
#define DBLP_SPARSE_HEAD	8

/** DBLP_SPARSE_SHIFTS - number of block sizes: 1, 2, 4 ... 2^20 elements */
#define DBLP_SPARSE_SHIFTS	21

/** DBLP_SPARSE_STAYS - per cent of bytes that a change of the block size must save */
#define DBLP_SPARSE_STAYS	5

/**
 * struct dblp_sparse - position of the elements of a packed vector
 * @bitmap: blocks that are present; points into the packed vector
 * @count: elements of the vector
 * @packed: elements that are present
 * @pruned: elements of pruned blocks; 0 for received vectors
 * @shift: blocks have 2^@shift elements; the last one may have fewer
 */
struct dblp_sparse {
	const uint8_t	*bitmap;
	uint64_t	count;
	uint64_t	pruned;
	uint32_t	packed;
	uint32_t	shift;
};

/**
 * struct dblp_sparse_how - how to pack a vector
 * @dtype: &enum dblp_dtype
 * @last: shift of the last vector, kept unless another one saves more than
 *	%DBLP_SPARSE_STAYS per cent; %DBLP_SPARSE_SHIFTS: none
 * @fixed: always use @last
 * @most: largest shift, also instead of @last; 0: no limit
 * @prune: ppm: share of the squared norm of the vector that may be pruned; 0:
 *	none
 * @residual: pruned blocks are copied to it, at their positions; other elements
 *	are unchanged. As long as the vector. May be NULL if @prune is 0
 */
struct dblp_sparse_how {
	uint32_t	dtype;
	uint32_t	last;
	bool		fixed;
	uint32_t	most;
	uint32_t	prune;
	void		*residual;
};

/**
 * dblp_sparse_front() - bytes before the elements
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @shift: of the block size
 *
 * Return: bytes, a multiple of 8.
 */
size_t dblp_sparse_front(uint64_t count, uint32_t shift);

/**
 * dblp_sparse_bound() - maximum length of a packed vector
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @esize: bytes of an element
 *
 * Return: bytes.
 */
size_t dblp_sparse_bound(uint64_t count, uint32_t esize);

/**
 * dblp_sparse_put() - pack a vector
 * @how: how
 * @v: the vector
 * @count: its elements, 1 ... 2^32 - 1
 * @p: filled; dblp_sparse_bound() bytes
 * @s: filled
 *
 * Blocks of the least norm are pruned first, and the block size is the best one for
 * what is left. A vector whose norm is not finite is not pruned.
 *
 * Return: bytes of @p that were filled.
 */
size_t dblp_sparse_put(const struct dblp_sparse_how *how, const void *v,
		       uint64_t count, uint8_t *p, struct dblp_sparse *s);

/**
 * dblp_sparse_len() - length of a packed vector, from its first bytes
 * @p: its first %DBLP_SPARSE_HEAD bytes, from a peer
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @esize: bytes of an element
 *
 * Return: bytes, at most dblp_sparse_bound(); 0 if these bytes are invalid.
 */
size_t dblp_sparse_len(const uint8_t p[DBLP_SPARSE_HEAD], uint64_t count,
		       uint32_t esize);

/**
 * dblp_sparse_get() - decode the front of a packed vector
 * @p: bytes from a peer; its elements may be missing
 * @len: length of the packed vector
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @esize: bytes of an element
 * @s: filled; unchanged on failure
 *
 * Accepts what dblp_sparse_put() makes, and also block sizes that take more
 * bytes, and blocks of zeroes.
 *
 * Return: 0; -EBADMSG if the length is wrong, or the front contradicts itself
 * or @count.
 */
int dblp_sparse_get(const uint8_t *p, size_t len, uint64_t count, uint32_t esize,
		    struct dblp_sparse *s);

/**
 * struct dblp_sparse_at - a position in a packed vector; zero it first
 * @packed: element of the packed vector; the caller may move it forward between
 *	calls
 * @first: element of the packed vector with which @block starts
 * @block: a block at or before @packed
 */
struct dblp_sparse_at {
	uint64_t	packed;
	uint64_t	first;
	uint64_t	block;
};

/**
 * dblp_sparse_next() - position in the vector of elements of the packed vector
 * @s: a packed vector
 * @at: first of these elements; moved behind @span
 * @end: end of these elements, exclusive, at most @s->packed
 * @span: set to as many of them as are contiguous in the vector
 *
 * Return: false if @at is not before @end.
 */
bool dblp_sparse_next(const struct dblp_sparse *s, struct dblp_sparse_at *at,
		      uint64_t end, struct dblp_span *span);

/**
 * dblp_sparse_add() - add elements of a packed vector
 * @s: the packed vector
 * @dtype: &enum dblp_dtype
 * @to: a vector of @s->count elements
 * @packed: all elements of the packed vector
 * @at: first element to add; moved to @end
 * @end: end of the elements to add, exclusive
 */
void dblp_sparse_add(const struct dblp_sparse *s, uint32_t dtype, void *to,
		     const void *packed, struct dblp_sparse_at *at, uint64_t end);

/**
 * dblp_sparse_copy() - unpack a vector
 * @s: the packed vector
 * @dtype: &enum dblp_dtype
 * @to: a vector of @s->count elements; omitted elements become zero
 * @packed: elements of the packed vector
 */
void dblp_sparse_copy(const struct dblp_sparse *s, uint32_t dtype, void *to,
		      const void *packed);

#endif /* DBLP_SPARSE_H */
