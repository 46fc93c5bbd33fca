// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Arithmetic on elements: see reduce.h.
 *
 * binary16 and bfloat16 are added as binary32, which has more than twice their
 * precision: so rounding twice gives the same as rounding once. Conversions use
 * integers where floats would be subnormal, because programs may let the
 * processor flush those to zero.
 */

#include "reduce.h"

#include <math.h>
#include <string.h>

#include "plan.h"

#define F32_INF		0x7f800000U
#define F32_SIGN	0x80000000U
/*
 * Difference of the exponent biases of binary32 and binary16, in units of a
 * binary32's last exponent bit
 */
#define F16_BIAS	(112U << 23)
/* 2^16. Smaller values that are too large become infinities by rounding */
#define F16_OVERFLOW	0x47800000U
/*
 * The least normal binary16, and the value whose last bit is that of subnormals
 */
#define F16_NORMAL	0x38800000U
#define F16_SUBNORMAL	0.5f

static float bits_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Drop the @low lower bits, rounding to nearest, ties to even */
static uint32_t round_bits(uint32_t bits, unsigned int low)
{
	uint32_t half = (1U << (low - 1)) - 1;

	return (bits + half + (bits >> low & 1)) >> low;
}

static float from_bf16(uint16_t h)
{
	return bits_float((uint32_t)h << 16);
}

static uint16_t to_bf16(float f)
{
	/*
	 * A NaN stays a NaN: its lower bits are zero, as those of its operand,
	 * or it is new
	 */
	return round_bits(float_bits(f), 16);
}

static float from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits = h & 0x7fff;

	if (bits >= 0x7c00)
		return bits_float(sign | F32_INF | (bits & 0x3ff) << 13);
	if (bits >= 0x400)
		return bits_float(sign | ((bits << 13) + F16_BIAS));
	return bits_float(sign | float_bits((float)bits * 0x1p-24f));
}

static uint16_t to_f16(float f)
{
	uint32_t bits = float_bits(f), sign = bits >> 16 & 0x8000;

	bits &= ~F32_SIGN;
	/* NaNs from arithmetic are quiet, which is in their upper bits */
	if (bits > F32_INF)
		return sign | 0x7c00 | (bits >> 13 & 0x3ff);
	if (bits >= F16_OVERFLOW)
		return sign | 0x7c00;
	if (bits >= F16_NORMAL)
		return sign | round_bits(bits - F16_BIAS, 13);
	/* The addition rounds */
	return sign | (float_bits(bits_float(bits) + F16_SUBNORMAL) -
		       float_bits(F16_SUBNORMAL));
}

static float get_f32(const void *p)
{
	float f;

	memcpy(&f, p, sizeof(f));
	return f;
}

static void put_f32(void *p, float f)
{
	memcpy(p, &f, sizeof(f));
}

static double get_f64(const void *p)
{
	double f;

	memcpy(&f, p, sizeof(f));
	return f;
}

static void put_f64(void *p, double f)
{
	memcpy(p, &f, sizeof(f));
}

static uint16_t get_16(const void *p)
{
	uint16_t h;

	memcpy(&h, p, sizeof(h));
	return h;
}

static void put_16(void *p, uint16_t h)
{
	memcpy(p, &h, sizeof(h));
}

static float get_f16(const void *p)
{
	return from_f16(get_16(p));
}

static void put_f16(void *p, float f)
{
	put_16(p, to_f16(f));
}

static float get_bf16(const void *p)
{
	return from_bf16(get_16(p));
}

static void put_bf16(void *p, float f)
{
	put_16(p, to_bf16(f));
}

/* One loop for each type of float, so that the compiler can vectorise it */
#define FLOAT_OPS(type, real, size) \
static void add_##type(char *to, const char *from, size_t n) \
{ \
	size_t i; \
\
	for (i = 0; i < n; i++, to += (size), from += (size)) \
		put_##type(to, get_##type(to) + get_##type(from)); \
} \
static void scale_##type(char *v, size_t n, double by) \
{ \
	size_t i; \
\
	for (i = 0; i < n; i++, v += (size)) \
		put_##type(v, (real)(get_##type(v) * by)); \
} \
static double squares_##type(const char *v, size_t n) \
{ \
	double sum = 0, x; \
	size_t i; \
\
	for (i = 0; i < n; i++, v += (size)) { \
		x = get_##type(v); \
		sum += x * x; \
	} \
	return sum; \
} \
static void finite_##type(char *v, size_t n) \
{ \
	size_t i; \
\
	for (i = 0; i < n; i++, v += (size)) \
		if (!isfinite(get_##type(v))) \
			put_##type(v, 0); \
}

FLOAT_OPS(f32, float, 4)
FLOAT_OPS(f64, double, 8)
FLOAT_OPS(f16, float, 2)
FLOAT_OPS(bf16, float, 2)

/*
 * The same for each type of integer, with limits @min and @max. @bits is its
 * unsigned type, and products fit into @wide.
 */
#define INT_OPS(type, real, bits, wide, min, max) \
static void add_##type(char *to, const char *from, size_t n) \
{ \
	bits a, b; \
	size_t i; \
\
	for (i = 0; i < n; i++) { \
		memcpy(&a, to + i * sizeof(a), sizeof(a)); \
		memcpy(&b, from + i * sizeof(b), sizeof(b)); \
		a += b; \
		memcpy(to + i * sizeof(a), &a, sizeof(a)); \
	} \
} \
static real scale_one_##type(real x, uint32_t mul, uint32_t div) \
{ \
	wide product = (wide)x * mul, half = div / 2; \
\
	product = (product + (product < 0 ? -half : half)) / (wide)div; \
	if (product > (max)) \
		return max; \
	return product < (min) ? (min) : (real)product; \
} \
static void scale_##type(char *v, size_t n, uint32_t mul, uint32_t div) \
{ \
	real x; \
	size_t i; \
\
	for (i = 0; i < n; i++) { \
		memcpy(&x, v + i * sizeof(x), sizeof(x)); \
		x = scale_one_##type(x, mul, div); \
		memcpy(v + i * sizeof(x), &x, sizeof(x)); \
	} \
} \
static double squares_##type(const char *v, size_t n) \
{ \
	double sum = 0; \
	real x; \
	size_t i; \
\
	for (i = 0; i < n; i++) { \
		memcpy(&x, v + i * sizeof(x), sizeof(x)); \
		sum += (double)x * (double)x; \
	} \
	return sum; \
}

INT_OPS(i32, int32_t, uint32_t, int64_t, INT32_MIN, INT32_MAX)
INT_OPS(i64, int64_t, uint64_t, __int128, INT64_MIN, INT64_MAX)
INT_OPS(u8, uint8_t, uint8_t, int64_t, 0, UINT8_MAX)

uint32_t dblp_dtype_size(uint32_t dtype)
{
	static const uint8_t size[DBLP_DTYPES] = {
		[DBLP_FLOAT32] = 4,
		[DBLP_FLOAT16] = 2,
		[DBLP_BFLOAT16] = 2,
		[DBLP_INT32] = 4,
		[DBLP_FLOAT64] = 8,
		[DBLP_INT64] = 8,
		[DBLP_UINT8] = 1,
	};

	return dtype < DBLP_DTYPES ? size[dtype] : 0;
}

void dblp_reduce_add(uint32_t dtype, void *to, const void *from, size_t n)
{
	switch (dtype) {
	case DBLP_FLOAT32:
		return add_f32(to, from, n);
	case DBLP_FLOAT16:
		return add_f16(to, from, n);
	case DBLP_BFLOAT16:
		return add_bf16(to, from, n);
	case DBLP_INT32:
		return add_i32(to, from, n);
	case DBLP_FLOAT64:
		return add_f64(to, from, n);
	case DBLP_INT64:
		return add_i64(to, from, n);
	case DBLP_UINT8:
		return add_u8(to, from, n);
	}
}

void dblp_reduce_scale(uint32_t dtype, void *v, size_t n, uint32_t mul,
		       uint32_t div)
{
	double by = (double)mul / div;

	switch (dtype) {
	case DBLP_FLOAT32:
		return scale_f32(v, n, by);
	case DBLP_FLOAT16:
		return scale_f16(v, n, by);
	case DBLP_BFLOAT16:
		return scale_bf16(v, n, by);
	case DBLP_INT32:
		return scale_i32(v, n, mul, div);
	case DBLP_FLOAT64:
		return scale_f64(v, n, by);
	case DBLP_INT64:
		return scale_i64(v, n, mul, div);
	case DBLP_UINT8:
		return scale_u8(v, n, mul, div);
	}
}

double dblp_reduce_squares(uint32_t dtype, const void *v, size_t n)
{
	switch (dtype) {
	case DBLP_FLOAT32:
		return squares_f32(v, n);
	case DBLP_FLOAT16:
		return squares_f16(v, n);
	case DBLP_BFLOAT16:
		return squares_bf16(v, n);
	case DBLP_INT32:
		return squares_i32(v, n);
	case DBLP_FLOAT64:
		return squares_f64(v, n);
	case DBLP_INT64:
		return squares_i64(v, n);
	case DBLP_UINT8:
		return squares_u8(v, n);
	}
	return 0;
}

void dblp_reduce_finite(uint32_t dtype, void *v, size_t n)
{
	switch (dtype) {
	case DBLP_FLOAT32:
		return finite_f32(v, n);
	case DBLP_FLOAT64:
		return finite_f64(v, n);
	case DBLP_FLOAT16:
		return finite_f16(v, n);
	case DBLP_BFLOAT16:
		return finite_bf16(v, n);
	}
}
