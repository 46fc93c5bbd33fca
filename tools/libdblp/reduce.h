/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: arithmetic on elements.
 *
 * Pure. Vectors are in the byte order of the machine and may be at any address.
 */
#ifndef DBLP_REDUCE_H
#define DBLP_REDUCE_H

#include <stddef.h>
#include <stdint.h>

/**
 * dblp_dtype_size() - bytes of an element
 * @dtype: &enum dblp_dtype
 *
 * Return: 1, 2, 4, 8, or 0 if there is no such type.
 */
uint32_t dblp_dtype_size(uint32_t dtype);

/**
 * dblp_reduce_add() - add a vector to another one
 * @dtype: of the elements
 * @to: sum and first addend
 * @from: second addend; does not overlap @to
 * @n: number of elements
 */
void dblp_reduce_add(uint32_t dtype, void *to, const void *from, size_t n);

/**
 * dblp_reduce_scale() - multiply a vector by a fraction
 * @dtype: of the elements
 * @v: the vector
 * @n: number of elements
 * @mul: numerator, at most DBLP_RANKS_MAX
 * @div: denominator, not 0 and at most DBLP_RANKS_MAX
 *
 * Floats are multiplied by @mul / @div as doubles. Integers are rounded to nearest,
 * ties away from zero, and stop at the limits of the type.
 */
void dblp_reduce_scale(uint32_t dtype, void *v, size_t n, uint32_t mul,
		       uint32_t div);

/**
 * dblp_reduce_squares() - squared norm of a vector
 * @dtype: of the elements
 * @v: the vector
 * @n: number of elements
 *
 * Return: the sum of the squares, as doubles.
 */
double dblp_reduce_squares(uint32_t dtype, const void *v, size_t n);

/**
 * dblp_reduce_finite() - set infinities and NaNs to 0
 * @dtype: of the elements; integers stay as they are
 * @v: the vector
 * @n: number of elements
 */
void dblp_reduce_finite(uint32_t dtype, void *v, size_t n);

#endif /* DBLP_REDUCE_H */
