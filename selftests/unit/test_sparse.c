// SPDX-License-Identifier: GPL-2.0-only
/* Packed vectors, which omit blocks of zeroes, compared with plain arrays */
#include <errno.h>
#include <math.h>
#include <reduce.h>
#include <sparse.h>
#include <stdio.h>

#include <linux/minmax.h>

#include "exact.h"
#include "test.h"

#define COUNT	3000

static const struct dblp_sparse_how plain = {
	.dtype = DBLP_FLOAT32, .last = DBLP_SPARSE_SHIFTS,
};

/* Set about @ppm of the elements, in runs of about @run */
static void draw(struct prng *rng, float *v, u64 count, u32 ppm, u32 run)
{
	u64 i, left = 0;

	for (i = 0; i < count; i++) {
		if (!left && prng_below(rng, 1000000) < ppm / run)
			left = run;
		v[i] = left ? 1 + prng_below(rng, 1000) : 0;
		left -= left > 0;
	}
}

/* Bytes for blocks of 2^shift elements, counted one by one */
static u64 cost(const char *v, u64 count, u32 esize, u32 shift)
{
	u64 bytes = dblp_sparse_front(count, shift), first, end, i;

	for (first = 0; first < count; first = end) {
		end = min(first + (1ULL << shift), count);
		for (i = first * esize; i < end * esize && !v[i]; i++)
			;
		bytes += i < end * esize ? (end - first) * esize : 0;
	}
	return bytes;
}

static u64 least_cost(const char *v, u64 count, u32 esize)
{
	u64 least = cost(v, count, esize, 0);
	u32 j;

	for (j = 1; j < DBLP_SPARSE_SHIFTS; j++)
		least = min(least, cost(v, count, esize, j));
	return least;
}

struct packed {
	u8			*p;
	size_t			len;
	struct dblp_sparse	s;
};

static struct packed put(const struct dblp_sparse_how *how, const void *v, u64 count)
{
	size_t bound = dblp_sparse_bound(count, dblp_dtype_size(how->dtype));
	struct packed k = { .p = malloc(bound) };

	memset(k.p, 0xee, bound);
	k.len = dblp_sparse_put(how, v, count, k.p, &k.s);
	return k;
}

TEST(any_vector_comes_back_in_the_fewest_bytes)
{
	struct prng rng = { 1 };
	char v[COUNT * 8 + 1], back[COUNT * 8];
	u32 k, i;

	for (k = 0; k < 3000; k++) {
		u32 dtype = prng_below(&rng, DBLP_DTYPES);
		u32 esize = dblp_dtype_size(dtype);
		u64 count = 1 + prng_below(&rng, k % 3 ? 100 : COUNT);
		u32 rare = 1 + prng_any(&rng) % 2000, bytes = count * esize;
		struct dblp_sparse_how how = {
			.dtype = dtype, .last = DBLP_SPARSE_SHIFTS,
		};
		char *at = v + k % 2;
		struct dblp_sparse s;
		struct packed p;

		/* Single bytes, which give -0.0, NaN and denormal numbers, too */
		for (i = 0; i < bytes; i++)
			at[i] = prng_below(&rng, rare) ? 0 : 1 << prng_below(&rng, 8);
		p = put(&how, at, count);
		ASSERT_EQ(least_cost(at, count, esize), p.len);
		ASSERT_EQ(p.len, dblp_sparse_len(p.p, count, esize));
		ASSERT_EQ(0, dblp_sparse_get(p.p, p.len, count, esize, &s));
		ASSERT_EQ(p.s.packed, s.packed);
		memset(back, 0x55, sizeof(back));
		dblp_sparse_copy(&s, dtype, back,
				 p.p + dblp_sparse_front(count, s.shift));
		ASSERT_EQ(0, memcmp(back, at, bytes));
		free(p.p);
	}
}

/* Each packed element has its position, wherever a walk is interrupted */
TEST(elements_are_found_at_their_places)
{
	struct prng rng = { 2 };
	float v[COUNT];
	u32 k, i;

	for (k = 0; k < 500; k++) {
		u64 count = 1 + prng_below(&rng, COUNT);
		struct dblp_sparse_at at = { 0 };
		struct dblp_span span;
		struct packed p;
		const float *packed;

		draw(&rng, v, count, 100 + prng_below(&rng, 500000),
		     1 + prng_below(&rng, 40));
		p = put(&plain, v, count);
		packed = (void *)(p.p + p.len - p.s.packed * 4);
		while (at.packed < p.s.packed) {
			u64 from = at.packed += prng_below(&rng, 3), end;

			if (from >= p.s.packed)
				break;
			end = from + 1 + prng_below(&rng, p.s.packed - from);
			while (dblp_sparse_next(&p.s, &at, end, &span)) {
				ASSERT_LT(span.first, span.end);
				ASSERT_LE(span.end, count);
				for (i = 0; i < span.end - span.first; i++)
					ASSERT_EQ(packed[from + i], v[span.first + i]);
				from += i;
				ASSERT_EQ(from, at.packed);
			}
			ASSERT_EQ(end, at.packed);
		}
		ASSERT_FALSE(dblp_sparse_next(&p.s, &at, p.s.packed, &span));
		free(p.p);
	}
}

TEST(parts_are_added)
{
	struct prng rng = { 3 };
	float v[COUNT], sum[COUNT];
	struct dblp_sparse_at at = { 0 };
	struct packed p;
	u32 i;

	draw(&rng, v, COUNT, 200000, 5);
	p = put(&plain, v, COUNT);
	for (i = 0; i < COUNT; i++)
		sum[i] = 1;
	for (i = 0; i < p.s.packed; i += 7)
		dblp_sparse_add(&p.s, DBLP_FLOAT32, sum, p.p + p.len - p.s.packed * 4,
				&at, min(i + 7, p.s.packed));
	for (i = 0; i < COUNT; i++)
		ASSERT_EQ(v[i] + 1, sum[i]);
	free(p.p);
}

/* The block size changes only if that saves more than 5 %, or never */
TEST(the_block_size_stays)
{
	struct prng rng = { 4 };
	float v[COUNT];
	u32 k, stayed = 0, changed = 0, large = 0;

	for (k = 0; k < 3000; k++) {
		u64 count = 1 + prng_below(&rng, COUNT), least, before;
		u32 run = 1 + prng_below(&rng, 20);
		u32 share = 1000 + prng_below(&rng, 300000);
		struct dblp_sparse_how how = plain;
		struct packed p;

		draw(&rng, v, count, share, run);
		how.last = prng_below(&rng, DBLP_SPARSE_SHIFTS);
		p = put(&how, v, count);
		least = least_cost((char *)v, count, 4);
		before = cost((char *)v, count, 4, how.last);
		ASSERT_EQ(least * 100 < before * 95 ? least : before, p.len);
		ASSERT_LE(p.len * 95, least * 100);
		stayed += p.len > least;
		changed += p.s.shift != how.last;
		free(p.p);
		how.fixed = true;
		p = put(&how, v, count);
		ASSERT_EQ(before, p.len);
		ASSERT_EQ(how.last, p.s.shift);
		free(p.p);
		how.most = 4;
		p = put(&how, v, count);
		ASSERT_EQ(min(how.last, 4U), p.s.shift);
		free(p.p);
		how.fixed = false;
		p = put(&how, v, count);
		ASSERT_LE(p.s.shift, 4);
		large += how.last > 4 && p.s.shift == 4;
		free(p.p);
	}
	EXPECT_LT(20, large);
	EXPECT_LT(100, stayed);
	EXPECT_LT(1000, changed);
}

static double squares(const float *v, u64 count)
{
	return dblp_reduce_squares(DBLP_FLOAT32, v, count);
}

/* Sent and kept elements add up to the vector; kept ones are within the budget */
TEST(pruned_elements_are_kept_and_within_the_budget)
{
	struct prng rng = { 5 };
	float v[COUNT], back[COUNT], kept[COUNT];
	u32 k, i, pruned = 0, used = 0;

	for (k = 0; k < 600; k++) {
		u64 count = 1 + prng_below(&rng, COUNT);
		u32 ppm = 1 + prng_any(&rng) % 500000;
		struct dblp_sparse_how how = plain;
		struct packed whole, p;
		double all;

		draw(&rng, v, count, 500000, 1 + prng_below(&rng, 40));
		/* Magnitudes like those of gradients: most are small */
		for (i = 0; i < count; i++)
			v[i] *= expf((float)prng_below(&rng, 2000) / 100 - 10);
		all = squares(v, count);
		whole = put(&how, v, count);
		memset(kept, 0, sizeof(kept));
		how.prune = ppm;
		how.residual = kept;
		p = put(&how, v, count);
		ASSERT_LE(p.len, whole.len);
		ASSERT_LE(squares(kept, count), all * ppm / 1e6 * (1 + 1e-12));
		dblp_sparse_copy(&p.s, DBLP_FLOAT32, back, p.p + p.len - p.s.packed * 4);
		for (i = 0; i < count; i++) {
			ASSERT_TRUE(!kept[i] || !back[i]);
			ASSERT_EQ(v[i], kept[i] + back[i]);
		}
		pruned += p.len < whole.len;
		used += squares(kept, count) > all * ppm / 1e6 / 2;
		free(p.p);
		free(whole.p);
	}
	EXPECT_LT(300, pruned);
	EXPECT_LT(300, used);
}

/*
 * Blocks of the smallest norm are pruned first: 90 % of the blocks have a hundredth of
 * the norm
 */
TEST(blocks_of_small_norm_are_pruned_together_with_the_size)
{
	float v[4096], kept[4096] = { 0 };
	struct dblp_sparse_how how = {
		.dtype = DBLP_FLOAT32, .last = DBLP_SPARSE_SHIFTS,
		.prune = 10000, .residual = kept,
	};
	struct packed p;
	u32 i;

	for (i = 0; i < 4096; i++)
		v[i] = i / 64 % 10 ? 0.001 : 1;
	p = put(&how, v, 4096);
	EXPECT_EQ(6, p.s.shift);
	EXPECT_EQ(7 * 64, p.s.packed);
	free(p.p);
	/* Nothing is pruned if an element is NaN or infinite */
	for (i = 0; i < 2; i++) {
		v[70] = i ? NAN : INFINITY;
		p = put(&how, v, 4096);
		EXPECT_EQ(4096, p.s.packed);
		free(p.p);
	}
}

TEST(invalid_packed_vectors_are_refused)
{
	struct dblp_sparse s = { .count = 77 }, before = s;
	float v[100] = { [3] = 1, [50] = 2, [99] = 3 };
	struct packed p = put(&plain, v, 100);
	u32 i, bit, refused = 0;
	u8 *cut;

	ASSERT_EQ(DBLP_SPARSE_HEAD, 8);
	for (i = 0; i < p.len; i++) {
		cut = exact(p.p, i);
		ASSERT_EQ(-EBADMSG, dblp_sparse_get(cut, i, 100, 4, &s));
		free_exact(cut, i);
	}
	ASSERT_EQ(-EBADMSG, dblp_sparse_get(p.p, p.len + 4, 100, 4, &s));
	ASSERT_EQ(-EBADMSG, dblp_sparse_get(p.p, p.len, 99, 4, &s));
	/* Each bit of the front matters, and none refers to elements beyond the vector */
	for (bit = 0; bit < 8 * (p.len - p.s.packed * 4); bit++) {
		p.p[bit / 8] ^= 1 << bit % 8;
		refused += dblp_sparse_get(p.p, p.len, 100, 4, &s) == -EBADMSG;
		p.p[bit / 8] ^= 1 << bit % 8;
	}
	EXPECT_EQ(bit, refused);
	ASSERT_EQ(0, memcmp(&s, &before, sizeof(s)));
	ASSERT_EQ(0, dblp_sparse_get(p.p, p.len, 100, 4, &s));
	free(p.p);
}

#define RANKS	4
#define PART	(1 << 16)

/*
 * Bytes of packed vectors, with the chosen and the best block size, and with blocks of
 * 256
 */
struct bytes {
	u64	packed;
	u64	least;
	u64	fixed;
};

static void measure(const float *v, u32 *last, struct bytes *sum)
{
	struct dblp_sparse_how how = plain;
	struct packed p;

	how.last = *last;
	p = put(&how, v, PART);
	*last = p.s.shift;
	sum->packed += p.len;
	sum->least += least_cost((char *)v, PART, 4);
	sum->fixed += cost((char *)v, PART, 4, 8);
	free(p.p);
}

/*
 * Some rounds of transpose: each rank sends the parts of the others, then the sum of
 * its own part to each of them.
 */
static struct bytes both_ways(struct prng *rng, u32 ppm, u32 run)
{
	u32 last[2] = { DBLP_SPARSE_SHIFTS, DBLP_SPARSE_SHIFTS }, round, r, i;
	float *v = malloc(PART * 4), *sum = malloc(PART * 4);
	struct bytes all = { 0 };

	for (round = 0; round < 3; round++) {
		memset(sum, 0, PART * 4);
		for (r = 0; r < RANKS; r++) {
			draw(rng, v, PART, ppm, run);
			for (i = 0; i < PART; i++)
				sum[i] += v[i];
			if (r)
				measure(v, &last[0], &all);
		}
		for (r = 1; r < RANKS; r++)
			measure(sum, &last[1], &all);
	}
	free(v);
	free(sum);
	return all;
}

/* The limits: 1.1 of the bytes at the best size, and half of those of blocks of 256 */
TEST(figures)
{
	static const u32 densities[] = { 10000, 50000, 200000 };
	static const u32 runs[] = { 1, 16, 64, 1024 };
	struct prng rng = { 6 };
	struct bytes b;
	u32 i, k;

	for (k = 0; k < ARRAY_SIZE(runs); k++)
		for (i = 0; i < ARRAY_SIZE(densities); i++) {
			b = both_ways(&rng, densities[i], runs[k]);
			printf("# %2u %% in runs of %4u, both ways: %.3f of the best, %.3f of blocks of 256, %.3f of all\n",
			       densities[i] / 10000, runs[k],
			       (double)b.packed / b.least,
			       (double)b.packed / b.fixed,
			       (double)b.packed / (3.0 * 2 * (RANKS - 1) * PART * 4));
			EXPECT_LE(b.packed * 10, b.least * 11);
			/* With longer runs, few of the blocks of 256 could be smaller */
			if (runs[k] <= 64)
				EXPECT_LE(b.packed * 2, b.fixed);
		}
	fflush(stdout);
}

TEST_HARNESS_MAIN
