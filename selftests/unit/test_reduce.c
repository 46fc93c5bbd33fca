// SPDX-License-Identifier: GPL-2.0-only
/* Arithmetic of element types, compared with doubles */
#include <plan.h>
#include <math.h>
#include <reduce.h>

#include "test.h"

/* A 16-bit type: bits of its significand, and its smallest exponent */
static const struct format {
	u32	dtype;
	int	digits;
	int	least;
	int	most;
} formats[] = {
	{ DBLP_FLOAT16, 11, -14, 15 },
	{ DBLP_BFLOAT16, 8, -126, 127 },
};

static double value_of(const struct format *f, u16 h)
{
	u16 bits = h & 0x7fff, fraction = bits & ((1 << (f->digits - 1)) - 1);
	int exponent = (bits >> (f->digits - 1)) + f->least - 1;
	double v;

	if (exponent > f->most)
		v = fraction ? NAN : INFINITY;
	else if (exponent < f->least)
		v = ldexp(fraction, f->least - f->digits + 1);
	else
		v = ldexp(fraction + (1 << (f->digits - 1)),
			  exponent - f->digits + 1);
	return h & 0x8000 ? -v : v;
}

/* The nearest value of the type; rint() rounds ties to even */
static double round_to(const struct format *f, double v)
{
	int exponent;
	double unit;

	if (!v || !isfinite(v))
		return v;
	frexp(v, &exponent);
	exponent = exponent - 1 < f->least ? f->least : exponent - 1;
	unit = ldexp(1, exponent - f->digits + 1);
	v = rint(v / unit) * unit;
	return fabs(v) >= ldexp(1, f->most + 1) ? copysign(INFINITY, v) : v;
}

static bool same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

TEST(each_value_of_16_bits)
{
	u32 i, h;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		for (h = 0; h < 0x10000; h++) {
			const struct format *f = &formats[i];
			u16 v = h, zero = 0x8000;

			dblp_reduce_add(f->dtype, &v, &zero, 1);
			ASSERT_TRUE(isnan(value_of(f, h)) ?
				    isnan(value_of(f, v)) : v == h);
			v = h;
			dblp_reduce_scale(f->dtype, &v, 1, 1, 3);
			ASSERT_TRUE(same(value_of(f, v),
					 round_to(f, (float)(value_of(f, h) *
							     (1. / 3)))));
		}
	}
}

TEST(sums_of_16_bits)
{
	struct prng rng = { 1 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		for (k = 0; k < 300000; k++) {
			const struct format *f = &formats[i];
			u16 a = prng_u64(&rng), b = prng_u64(&rng), sum = a;

			/*
			 * Half of the pairs have similar magnitude: otherwise rounding
			 * is rare
			 */
			if (k & 1)
				b = (a & 0x7c00) | (b & 0x83ff);
			dblp_reduce_add(f->dtype, &sum, &b, 1);
			ASSERT_TRUE(same(value_of(f, sum),
					 round_to(f, value_of(f, a) +
						     value_of(f, b))));
		}
	}
}

TEST(float32)
{
	float a[] = { 1, -2.5f, INFINITY, 1e-42f, 16777216, 0 };
	const float b[] = { 2, 2.5f, -INFINITY, 1e-42f, 1, -0.f };
	u32 i;

	dblp_reduce_add(DBLP_FLOAT32, a, b, ARRAY_SIZE(a));
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		const float sum[] = { 3, 0, NAN, 1e-42f * 2, 16777216, 0 };

		EXPECT_TRUE(same(a[i], sum[i]));
	}
	a[0] = 3;
	a[1] = -1e38f;
	dblp_reduce_scale(DBLP_FLOAT32, a, 2, 4, 3);
	EXPECT_EQ(a[0], 4.f);
	EXPECT_EQ(a[1], (float)(-1e38f * (4. / 3)));
}

TEST(float64)
{
	double a[] = { 1, 0x1p53, INFINITY, 5e-324, -0., 1e308 };
	const double b[] = { 0x1p-52, 1, -INFINITY, 5e-324, -0., 1e308 };
	const double sum[] = { 1 + 0x1p-52, 0x1p53, NAN, 1e-323, -0., INFINITY };
	u32 i;

	dblp_reduce_add(DBLP_FLOAT64, a, b, ARRAY_SIZE(a));
	for (i = 0; i < ARRAY_SIZE(a); i++)
		EXPECT_TRUE(same(a[i], sum[i]));
	a[0] = 0x1.0000000000001p0;
	dblp_reduce_scale(DBLP_FLOAT64, a, 1, 3, 4);
	EXPECT_EQ(a[0], 0x1.0000000000001p0 * .75);
	EXPECT_EQ(dblp_reduce_squares(DBLP_FLOAT64, b, 2), 0x1p-104 + 1);
}

static s64 scaled64(s64 v, u32 mul, u32 div)
{
	dblp_reduce_scale(DBLP_INT64, &v, 1, mul, div);
	return v;
}

TEST(int64)
{
	s64 a[] = { INT64_MAX, -5, INT64_C(1) << 32 };
	const s64 b[] = { 1, 3, INT64_C(1) << 32 };

	dblp_reduce_add(DBLP_INT64, a, b, 3);
	EXPECT_EQ(a[0], INT64_MIN);
	EXPECT_EQ(a[1], -2);
	EXPECT_EQ(a[2], INT64_C(1) << 33);
	EXPECT_EQ(scaled64(INT64_C(10) << 40, 1, 4), INT64_C(10) << 38);
	EXPECT_EQ(scaled64(-10, 1, 4), -3);
	EXPECT_EQ(scaled64(INT64_MAX, DBLP_RANKS_MAX, 1), INT64_MAX);
	EXPECT_EQ(scaled64(INT64_MIN, DBLP_RANKS_MAX, 1), INT64_MIN);
	EXPECT_EQ(scaled64(INT64_MIN, DBLP_RANKS_MAX, DBLP_RANKS_MAX), INT64_MIN);
	EXPECT_EQ(dblp_reduce_squares(DBLP_INT64, &b[1], 1), 9);
}

static s32 scaled(s32 v, u32 mul, u32 div)
{
	dblp_reduce_scale(DBLP_INT32, &v, 1, mul, div);
	return v;
}

TEST(int32)
{
	s32 a[] = { INT32_MAX, -5, 0x40000000 };
	const s32 b[] = { 1, 3, 0x40000000 };

	dblp_reduce_add(DBLP_INT32, a, b, 3);
	EXPECT_EQ(a[0], INT32_MIN);
	EXPECT_EQ(a[1], -2);
	EXPECT_EQ(a[2], INT32_MIN);
	EXPECT_EQ(scaled(10, 1, 4), 3);
	EXPECT_EQ(scaled(-10, 1, 4), -3);
	EXPECT_EQ(scaled(9, 1, 4), 2);
	EXPECT_EQ(scaled(-9, 1, 4), -2);
	EXPECT_EQ(scaled(7, 1, 1), 7);
	EXPECT_EQ(scaled(INT32_MIN, 1, 1), INT32_MIN);
	EXPECT_EQ(scaled(INT32_MAX, 1, 2), 1 << 30);
	EXPECT_EQ(scaled(INT32_MAX, DBLP_RANKS_MAX, 1), INT32_MAX);
	EXPECT_EQ(scaled(INT32_MIN, DBLP_RANKS_MAX, 1), INT32_MIN);
	EXPECT_EQ(scaled(INT32_MIN, DBLP_RANKS_MAX, DBLP_RANKS_MAX), INT32_MIN);
}

TEST(uint8)
{
	u8 a[] = { 255, 3, 200 };
	const u8 b[] = { 1, 4, 100 };

	dblp_reduce_add(DBLP_UINT8, a, b, 3);
	EXPECT_EQ(a[0], 0);
	EXPECT_EQ(a[1], 7);
	EXPECT_EQ(a[2], 44);
	a[0] = 255;
	dblp_reduce_scale(DBLP_UINT8, a, 3, 3, 2);
	EXPECT_EQ(a[0], 255);
	EXPECT_EQ(a[1], 11);
	EXPECT_EQ(a[2], 66);
	EXPECT_EQ(dblp_reduce_squares(DBLP_UINT8, b, 2), 17);
}

/* Elements need no alignment, and bytes beside them stay unchanged */
TEST(any_address)
{
	u32 dtype, at, i;

	for (dtype = 0; dtype < DBLP_DTYPES; dtype++) {
		for (at = 0; at < 9; at++) {
			u32 size = dblp_dtype_size(dtype);
			u8 to[64], from[64] = { 0 };

			memset(to, 0x11, sizeof(to));
			memcpy(from + 1, to, 5 * size);
			dblp_reduce_scale(dtype, to + at, 5, 0, 1);
			dblp_reduce_add(dtype, to + at, from + 1, 5);
			for (i = 0; i < sizeof(to); i++)
				ASSERT_EQ(to[i], 0x11);
		}
	}
}

TEST(sizes)
{
	EXPECT_EQ(dblp_dtype_size(DBLP_FLOAT32), 4);
	EXPECT_EQ(dblp_dtype_size(DBLP_FLOAT16), 2);
	EXPECT_EQ(dblp_dtype_size(DBLP_BFLOAT16), 2);
	EXPECT_EQ(dblp_dtype_size(DBLP_INT32), 4);
	EXPECT_EQ(dblp_dtype_size(DBLP_FLOAT64), 8);
	EXPECT_EQ(dblp_dtype_size(DBLP_INT64), 8);
	EXPECT_EQ(dblp_dtype_size(DBLP_UINT8), 1);
	EXPECT_EQ(dblp_dtype_size(DBLP_DTYPES), 0);
	EXPECT_EQ(dblp_dtype_size(UINT32_MAX), 0);
}

TEST_HARNESS_MAIN
