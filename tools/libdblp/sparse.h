/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: vectors of which most elements are zero, without blocks of zeroes.
 *
 * Pure: no sockets, no memory of its own. After DFS (Computer Networks 2023) and
 * OmniReduce (SIGCOMM 2021): a vector is cut into blocks of 2^shift elements, of which
 * those that are all zero are left out. The block size is the one that takes the
 * fewest bytes, and blocks can be pruned whose norm is small.
 *
 *	 0	shift
 *	 1	zero		3 bytes
 *	 4	packed		number of elements that follow the bitmap, 4 bytes
 *	 8	bitmap		bit i mod 8 of byte i / 8 is 1 if block i is there; zeroes up
 *				to a multiple of 8 bytes
 *		elements of these blocks, in the byte order of the machine
 *
 * All but the elements is big-endian, and is called the front: without it nothing can be
 * made of the elements. A zero element has no bit set: -0.0 is not one.
 */
#ifndef DBLP_SPARSE_H
#define DBLP_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective.h"

/** DBLP_SPARSE_HEAD - bytes of the front before the bitmap */
#define DBLP_SPARSE_HEAD	8

/** DBLP_SPARSE_SHIFTS - number of block sizes: 1, 2, 4 ... 2^20 elements */
#define DBLP_SPARSE_SHIFTS	21

/** DBLP_SPARSE_STAYS - per cent that another block size has to save more than */
#define DBLP_SPARSE_STAYS	5

/**
 * struct dblp_sparse - where the elements of a packed vector belong
 * @bitmap: which blocks are there; the memory is that of the packed vector
 * @count: elements of the vector
 * @packed: elements that are there
 * @pruned: elements that were left out though they are not zero, or among such; 0 if it
 *	came from a peer
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
 * struct dblp_sparse_how - how a vector is packed
 * @dtype: &enum dblp_dtype
 * @last: shift of the vector before, which stays unless another one saves more than
 *	%DBLP_SPARSE_STAYS per cent; %DBLP_SPARSE_SHIFTS: there was none
 * @fixed: it stays, whatever others save
 * @most: the largest shift, also instead of @last; 0: there is none
 * @prune: ppm: which share of the squared norm of the vector may be left out, 0: none
 * @residual: filled with blocks that were left out, at their places, else not changed;
 *	as long as the vector. May be NULL if @prune is 0
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
 * dblp_sparse_bound() - the most bytes that a packed vector has
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
 * dblp_sparse_len() - how long is a packed vector?
 * @p: its first %DBLP_SPARSE_HEAD bytes, of a peer
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @esize: bytes of an element
 *
 * Return: bytes, at most dblp_sparse_bound(); 0 if no vector begins like that.
 */
size_t dblp_sparse_len(const uint8_t p[DBLP_SPARSE_HEAD], uint64_t count,
		       uint32_t esize);

/**
 * dblp_sparse_get() - decode the front of a packed vector
 * @p: bytes of a peer; elements need not be there
 * @len: length of the packed vector
 * @count: elements of the vector, 1 ... 2^32 - 1
 * @esize: bytes of an element
 * @s: filled; not changed on failure
 *
 * Whatever dblp_sparse_put() does not make is refused, but for a block size that takes
 * more bytes, and for blocks of zeroes.
 *
 * Return: 0; -EBADMSG if it is cut short or too long, or contradicts itself or @count.
 */
int dblp_sparse_get(const uint8_t *p, size_t len, uint64_t count, uint32_t esize,
		    struct dblp_sparse *s);

/**
 * struct dblp_sparse_at - a place in a packed vector; zero at first
 * @packed: element of the packed vector; may be moved forward between two calls
 * @first: element of the packed vector that @block begins with
 * @block: a block at or before @packed
 */
struct dblp_sparse_at {
	uint64_t	packed;
	uint64_t	first;
	uint64_t	block;
};

/**
 * dblp_sparse_next() - where in the vector are elements of the packed vector?
 * @s: a packed vector
 * @at: the first of these elements; set to the one behind @span
 * @end: the one behind the last of them, at most @s->packed
 * @span: set to as many of them as are side by side
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
 * @packed: elements of the packed vector, from its first one on
 * @at: the first one to be added; set to @end
 * @end: the one behind the last
 */
void dblp_sparse_add(const struct dblp_sparse *s, uint32_t dtype, void *to,
		     const void *packed, struct dblp_sparse_at *at, uint64_t end);

/**
 * dblp_sparse_copy() - unpack a vector
 * @s: the packed vector
 * @dtype: &enum dblp_dtype
 * @to: a vector of @s->count elements; what is not there is zero
 * @packed: elements of the packed vector
 */
void dblp_sparse_copy(const struct dblp_sparse *s, uint32_t dtype, void *to,
		      const void *packed);

#endif /* DBLP_SPARSE_H */
