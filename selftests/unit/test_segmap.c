// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets of segments and zero maps, compared with an array of booleans; properties of the
 * shuffled order.
 */
#include <linux/minmax.h>

#include "segmap.h"
#include "test.h"

#define MAX_SEGS	1500

struct model {
	struct dblp_segmap	m;
	bool			has[MAX_SEGS];
};

static void model_init(struct model *m, u32 n)
{
	memset(m, 0, sizeof(*m));
	dblp_segmap_init(&m->m, calloc(1, dblp_segmap_bytes(n)), n);
}

static void model_free(struct model *m)
{
	free(m->m.bits);
}

static u32 model_next(const struct model *m, u32 from, bool has)
{
	while (from < m->m.n && m->has[from] != has)
		from++;
	return from;
}

static bool model_agrees(const struct model *m)
{
	u32 i, count = 0;

	for (i = 0; i < m->m.n; i++) {
		count += m->has[i];
		if (dblp_segmap_test(&m->m, i) != m->has[i])
			return false;
	}
	for (i = 0; i <= m->m.n; i++) {
		if (dblp_segmap_next(&m->m, i) != model_next(m, i, true))
			return false;
		if (dblp_segmap_next_hole(&m->m, i) != model_next(m, i, false))
			return false;
	}
	return count == m->m.count;
}

/* Fill with runs and single segments of both kinds, from none to all */
static void model_fill(struct model *m, struct prng *r)
{
	u32 i, run = 0, share = prng_below(r, 5);
	bool has = false;

	for (i = 0; i < m->m.n; i++) {
		if (!run--) {
			run = prng_any(r) % 200;
			has = prng_below(r, 4) < share;
		}
		if (has != m->has[i])
			(has ? dblp_segmap_add : dblp_segmap_del)(&m->m, i);
		m->has[i] = has;
	}
}

/* Add the segments of another set between two segments, or remove them; returns true if
 * the result is that of the model
 */
static bool of_another(struct model *m, const struct model *of, u32 first,
		       u32 end, bool add)
{
	u32 i, common = 0, n = 0, found = m->m.n;

	for (i = m->m.n; i--; )
		if (m->has[i] && of->has[i])
			found = i;
	for (i = first; i < end; i++) {
		common += m->has[i] && of->has[i];
		if (!of->has[i] || m->has[i] == add)
			continue;
		n++;
		m->has[i] = add;
	}
	if (dblp_segmap_next_common(&m->m, &of->m) != found ||
	    dblp_segmap_common(&m->m, &of->m, first, end) != common)
		return false;
	if (add && dblp_segmap_add_of(&m->m, &of->m, first, end) != n)
		return false;
	return add ||
	       dblp_segmap_del_of(&m->m, &of->m, first, end) == n;
}

TEST(dblp_segmap_add_of__like_the_model)
{
	struct prng r = { 23 };
	struct model m, of;
	u32 i, n, first;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 100)) {
		model_init(&m, n);
		model_init(&of, n);
		for (i = 0; i < 20; i++) {
			if (i % 4 == 0)
				model_fill(&m, &r);
			model_fill(&of, &r);
			first = prng_below(&r, n);
			EXPECT_TRUE(of_another(&m, &of, first, first + 1 +
					       prng_below(&r, n - first),
					       i % 2));
			EXPECT_TRUE(model_agrees(&m));
		}
		model_free(&m);
		model_free(&of);
	}
}

TEST(dblp_segmap_bytes__whole_words)
{
	EXPECT_EQ(sizeof(long), dblp_segmap_bytes(1));
	EXPECT_EQ(8, dblp_segmap_bytes(64));
	EXPECT_EQ(8 + sizeof(long), dblp_segmap_bytes(65));
	EXPECT_EQ(1U << 29, dblp_segmap_bytes(U32_MAX));
}

TEST(dblp_segmap_add__like_the_model)
{
	struct prng r = { 21 };
	struct model m;
	u32 i, n;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 60)) {
		model_init(&m, n);
		for (i = 0; i < 2 * n; i++) {
			u32 seg = prng_below(&r, n);

			if (prng_below(&r, 3)) {
				EXPECT_EQ(!m.has[seg],
					  dblp_segmap_add(&m.m, seg));
				m.has[seg] = true;
			} else {
				EXPECT_EQ(m.has[seg],
					  dblp_segmap_del(&m.m, seg));
				m.has[seg] = false;
			}
		}
		EXPECT_TRUE(model_agrees(&m));
		model_fill(&m, &r);
		EXPECT_TRUE(model_agrees(&m));
		model_free(&m);
	}
}

/* Missing bytes and ranges of a message whose last segment may be shorter */
static u32 model_missing(const struct model *m, u32 seg_size, u32 msg_len,
			 u32 *ranges)
{
	u32 i, bytes = 0;

	*ranges = 0;
	for (i = 0; i < m->m.n; i++) {
		if (m->has[i])
			continue;
		bytes += i < m->m.n - 1 ? seg_size : msg_len - i * seg_size;
		*ranges += !i || m->has[i - 1];
	}
	return bytes;
}

TEST(dblp_segmap_ranges__like_the_model)
{
	struct prng r = { 28 };
	u32 n, i, ranges, bytes, len;
	struct model m;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 3)) {
		model_init(&m, n);
		len = n * 8 - prng_below(&r, 8);
		for (i = 0; i < 3; i++) {
			bytes = model_missing(&m, 8, len, &ranges);
			EXPECT_EQ(ranges, dblp_segmap_ranges(&m.m));
			EXPECT_EQ(bytes, dblp_segmap_missing(&m.m, 8, len));
			model_fill(&m, &r);
		}
		model_free(&m);
	}
}

TEST(dblp_segmap_del_word__like_the_model)
{
	struct prng r = { 29 };
	u32 n, i, j, first, word;
	struct model m;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 60)) {
		model_init(&m, n);
		model_fill(&m, &r);
		for (i = 0; i < 20; i++) {
			first = prng_below(&r, n) / 32 * 32;
			word = prng_any(&r);
			if (n - first < 32)
				word &= (1U << (n - first)) - 1;
			dblp_segmap_del_word(&m.m, first, word);
			for (j = 0; j < 32; j++)
				if (word >> j & 1)
					m.has[first + j] = false;
		}
		EXPECT_TRUE(model_agrees(&m));
		for (i = 0; i < n; i++) {
			j = prng_below(&r, n - i + 1);
			EXPECT_EQ(min(j, model_next(&m, i, true) - i),
				  dblp_segmap_free(&m.m, i, j));
		}
		model_free(&m);
	}
}

TEST(dblp_segmap_add_run__like_the_model)
{
	struct prng r = { 27 };
	struct model m;
	u32 i, n, from, end;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 60)) {
		model_init(&m, n);
		for (i = 0; i < 50; i++) {
			from = prng_below(&r, n);
			end = model_next(&m, from, !m.has[from]);
			end = from + 1 + prng_below(&r, end - from);
			(m.has[from] ? dblp_segmap_del_run :
				       dblp_segmap_add_run)(&m.m, from,
							    end - from);
			memset(m.has + from, !m.has[from], end - from);
		}
		EXPECT_TRUE(model_agrees(&m));
		model_free(&m);
	}
}

TEST(dblp_segmap_fill__all)
{
	struct model m;
	u32 n;

	for (n = 1; n < 200; n++) {
		model_init(&m, n);
		dblp_segmap_add(&m.m, n / 2);
		dblp_segmap_fill(&m.m);
		memset(m.has, true, n);
		EXPECT_TRUE(model_agrees(&m));
		model_free(&m);
	}
}

TEST(dblp_segmap_missing_word__like_the_model)
{
	struct prng r = { 22 };
	struct model m;
	u32 i, k, n;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 10)) {
		model_init(&m, n);
		model_fill(&m, &r);
		for (i = 0; i < n + 256; i += 32) {
			u32 want = 0;

			for (k = i; k < i + 32 && k < n; k++)
				want |= (u32)!m.has[k] << (k - i);
			EXPECT_EQ(want, dblp_segmap_missing_word(&m.m, i));
		}
		EXPECT_EQ(0, dblp_segmap_missing_word(&m.m, U32_MAX - 31));
		model_free(&m);
	}
}

/* Do the ranges cover exactly the missing bytes? */
static bool ranges_are_the_holes(const struct model *m, u32 seg_size,
				 u32 msg_len)
{
	u32 from = 0, offset, length, seg = 0, end = 0;
	bool first = true;

	while (dblp_segmap_next_missing(&m->m, seg_size, msg_len, &from,
					&offset, &length)) {
		/* Separate and not empty */
		if (!length || (!first && offset <= end))
			return false;
		while (seg * (u64)seg_size < offset)
			if (!m->has[seg++])
				return false;
		end = offset + length;
		while (seg < m->m.n && seg * (u64)seg_size < end)
			if (m->has[seg++])
				return false;
		if (end != (seg == m->m.n ? msg_len : seg * seg_size))
			return false;
		first = false;
	}
	while (seg < m->m.n)
		if (!m->has[seg++])
			return false;
	return true;
}

TEST(dblp_segmap_next_missing__like_the_model)
{
	struct prng r = { 23 };
	struct model m;
	u32 n;

	for (n = 1; n < MAX_SEGS; n += 1 + prng_below(&r, 4)) {
		u32 seg_size = 1 + prng_any(&r) % 65528;
		u32 msg_len = (n - 1) * seg_size +
			      1 + prng_below(&r, seg_size);

		model_init(&m, n);
		EXPECT_TRUE(ranges_are_the_holes(&m, seg_size, msg_len));
		model_fill(&m, &r);
		EXPECT_TRUE(ranges_are_the_holes(&m, seg_size, msg_len));
		model_free(&m);
	}
}

TEST(dblp_segmap_next_missing__largest_message)
{
	u32 n = 0x7fff00, msg_len = 0x7fff0000, from = 0, offset, length;
	struct dblp_segmap m;

	dblp_segmap_init(&m, calloc(1, dblp_segmap_bytes(n)), n);
	dblp_segmap_add(&m, n - 2);
	EXPECT_TRUE(dblp_segmap_next_missing(&m, 256, msg_len, &from, &offset,
					     &length));
	EXPECT_EQ(0, offset);
	EXPECT_EQ(msg_len - 512, length);
	EXPECT_TRUE(dblp_segmap_next_missing(&m, 256, msg_len, &from, &offset,
					     &length));
	EXPECT_EQ(msg_len - 256, offset);
	EXPECT_EQ(256, length);
	EXPECT_FALSE(dblp_segmap_next_missing(&m, 256, msg_len, &from, &offset,
					      &length));
	free(m.bits);
}

/* A map in memory of its exact size, so that ASan detects reads beyond it */
static struct dblp_zeromap map_new(const struct model *m, u32 first, u32 words)
{
	u8 *p = malloc(4 * words);

	if (dblp_zeromap_put(p, &m->m, first, words) != p + 4 * words)
		abort();
	return (struct dblp_zeromap) { .p = p, .first = first, .words = words };
}

static void map_free(const struct dblp_zeromap *z)
{
	free((void *)z->p);
}

TEST(dblp_all_zero__one_byte_matters)
{
	u8 *p = calloc(1, 1500);
	u32 len, at;

	for (len = 1; len <= 1500; len = len < 40 ? len + 1 : len * 2) {
		EXPECT_TRUE(dblp_all_zero(p, len));
		for (at = 0; at < len; at++) {
			p[at] = 1 << at % 8;
			EXPECT_FALSE(dblp_all_zero(p, len));
			p[at] = 0;
		}
		p[len % 1500] = 1;
		EXPECT_TRUE(dblp_all_zero(p, len));
		p[len % 1500] = 0;
	}
	free(p);
}

/* Memory is read up to its end and not beyond, at any alignment */
TEST(dblp_all_zero__bounds)
{
	u32 len, skip;

	for (skip = 0; skip < 9; skip++)
		for (len = 1; len < 40; len++) {
			u8 *p = calloc(1, skip + len);

			EXPECT_TRUE(dblp_all_zero(p + skip, len));
			free(p);
		}
}

TEST(dblp_zeromap_put__layout)
{
	static const u8 want[] = { 0x80, 0, 0, 0x02, 0, 0, 0x01, 0x04 };
	struct model m;
	u8 p[8];

	model_init(&m, 100);
	dblp_segmap_add(&m.m, 33);
	dblp_segmap_add(&m.m, 63);
	dblp_segmap_add(&m.m, 66);
	dblp_segmap_add(&m.m, 72);
	EXPECT_EQ(2, dblp_zeromap_words(&m.m, 32, 100));
	EXPECT_EQ(p + 8, dblp_zeromap_put(p, &m.m, 32, 2));
	EXPECT_EQ(0, memcmp(p, want, 8));
	model_free(&m);
}

TEST(dblp_zeromap_words__counts_words_of_a_range)
{
	struct model m;

	model_init(&m, 100);
	EXPECT_EQ(0, dblp_zeromap_words(&m.m, 0, 100));
	dblp_segmap_add(&m.m, 0);
	EXPECT_EQ(1, dblp_zeromap_words(&m.m, 0, 100));
	EXPECT_EQ(0, dblp_zeromap_words(&m.m, 32, 100));
	dblp_segmap_add(&m.m, 99);
	EXPECT_EQ(4, dblp_zeromap_words(&m.m, 0, 100));
	EXPECT_EQ(4, dblp_zeromap_words(&m.m, 0, U32_MAX));
	EXPECT_EQ(1, dblp_zeromap_words(&m.m, 96, 128));
	EXPECT_EQ(1, dblp_zeromap_words(&m.m, 0, 99));
	EXPECT_EQ(1, dblp_zeromap_words(&m.m, 0, 64));
	model_free(&m);
}

/* A written map reads as the same runs */
TEST(dblp_zeromap_next__round_trip)
{
	struct prng r = { 11 };
	u32 i;

	for (i = 0; i < 3000; i++) {
		u32 n = 1 + prng_below(&r, MAX_SEGS), at = 0, first, count;
		u32 begin = prng_below(&r, n) / 32 * 32, seg = begin, words;
		struct dblp_zeromap z;
		struct model m;

		model_init(&m, n);
		model_fill(&m, &r);
		words = dblp_zeromap_words(&m.m, begin, n);
		if (words) {
			z = map_new(&m, begin, words);
			EXPECT_TRUE(dblp_zeromap_valid(&z, n));
			while (dblp_zeromap_next(&z, &at, &first, &count)) {
				for (; seg < first; seg++)
					EXPECT_FALSE(m.has[seg]);
				EXPECT_LE(1, count);
				for (; seg < first + count; seg++)
					EXPECT_TRUE(m.has[seg]);
				EXPECT_EQ(seg - begin, at);
			}
			map_free(&z);
		}
		for (; seg < n; seg++)
			EXPECT_FALSE(m.has[seg]);
		model_free(&m);
	}
}

TEST(dblp_zeromap_valid__only_existing_segments)
{
	u8 p[8] = {};
	struct dblp_zeromap z = { .p = p, .first = 64, .words = 2 };

	EXPECT_FALSE(dblp_zeromap_valid(&z, 200));
	p[7] = 1;
	EXPECT_TRUE(dblp_zeromap_valid(&z, 200));
	/* Segment 96 must exist */
	EXPECT_TRUE(dblp_zeromap_valid(&z, 97));
	EXPECT_FALSE(dblp_zeromap_valid(&z, 96));
	p[7] = 0;
	p[0] = 0x80;
	EXPECT_TRUE(dblp_zeromap_valid(&z, 96));
	EXPECT_FALSE(dblp_zeromap_valid(&z, 95));
	p[3] = 1;
	EXPECT_FALSE(dblp_zeromap_valid(&z, 95));
	p[0] = 0;
	EXPECT_TRUE(dblp_zeromap_valid(&z, 65));
}

/* With a set that has some of the segments */
TEST(dblp_zeromap__and_a_set)
{
	struct prng r = { 12 };
	u32 i, seg;

	for (i = 0; i < 3000; i++) {
		u32 n = 1 + prng_below(&r, MAX_SEGS), words, count, both = 0;
		struct model m, have;
		struct dblp_zeromap z;

		model_init(&m, n);
		model_init(&have, n);
		model_fill(&m, &r);
		model_fill(&have, &r);
		words = dblp_zeromap_words(&m.m, 0, n);
		if (words) {
			z = map_new(&m, 0, words);
			for (seg = 0; seg < n; seg++)
				both += m.has[seg] && have.has[seg];
			EXPECT_EQ(both, dblp_zeromap_common(&z, &have.m,
							    &count));
			EXPECT_EQ(m.m.count, count);
			for (seg = 0; seg < n; seg++)
				if (m.has[seg])
					dblp_segmap_del(&have.m, seg);
			count = have.m.count;
			dblp_zeromap_add(&z, &have.m);
			EXPECT_EQ(count + m.m.count, have.m.count);
			for (seg = 0; seg < n; seg++)
				EXPECT_EQ(m.has[seg] || have.has[seg],
					  dblp_segmap_test(&have.m, seg));
			dblp_zeromap_del(&z, &have.m);
			EXPECT_EQ(count, have.m.count);
			for (seg = 0; seg < n; seg++)
				EXPECT_EQ(have.has[seg] && !m.has[seg],
					  dblp_segmap_test(&have.m, seg));
			map_free(&z);
		}
		model_free(&m);
		model_free(&have);
	}
}

/* Does the order have each segment once? */
static bool is_permutation(u32 n, u64 seed)
{
	bool *seen = calloc(n, sizeof(*seen)), ok = true;
	struct dblp_shuffle s;
	u32 i;

	dblp_shuffle_init(&s, n, seed);
	for (i = 0; i < n && ok; i++) {
		u32 at = dblp_shuffle_at(&s, i);

		ok = at < n && !seen[at];
		if (ok)
			seen[at] = true;
	}
	free(seen);
	return ok;
}

TEST(dblp_shuffle_at__is_a_permutation)
{
	u32 n;

	for (n = 1; n <= 2000; n++)
		ASSERT_TRUE(is_permutation(n, n * 77));
	EXPECT_TRUE(is_permutation(65535, 1));
	EXPECT_TRUE(is_permutation(65536, 2));
	EXPECT_TRUE(is_permutation(65537, 3));
	EXPECT_TRUE(is_permutation(0x100001, 4));
}

TEST(dblp_shuffle_at__largest)
{
	struct dblp_shuffle s;
	u32 i;

	dblp_shuffle_init(&s, U32_MAX, 5);
	for (i = 0; i < 1000; i++)
		EXPECT_LT(dblp_shuffle_at(&s, U32_MAX - 1 - i), U32_MAX);
}

TEST(dblp_shuffle_find__undoes_it)
{
	struct prng r = { 28 };
	struct dblp_shuffle s;
	u32 i, n;

	for (n = 1; n < 3000; n += 1 + prng_below(&r, 40)) {
		dblp_shuffle_init(&s, n, prng_any(&r));
		for (i = 0; i < n; i++)
			EXPECT_EQ(i, dblp_shuffle_find(&s,
						       dblp_shuffle_at(&s, i)));
	}
	dblp_shuffle_init(&s, U32_MAX, 5);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(i, dblp_shuffle_find(&s, dblp_shuffle_at(&s, i)));
}

TEST(dblp_shuffle_at__the_seed_decides)
{
	struct dblp_shuffle a, b, c;
	u32 i, same = 0;

	dblp_shuffle_init(&a, 1000, 1);
	dblp_shuffle_init(&b, 1000, 1);
	dblp_shuffle_init(&c, 1000, 2);
	for (i = 0; i < 1000; i++) {
		EXPECT_EQ(dblp_shuffle_at(&a, i), dblp_shuffle_at(&b, i));
		same += dblp_shuffle_at(&a, i) == dblp_shuffle_at(&c, i);
	}
	EXPECT_LT(same, 10);
}

/* Chi-square of the number of segments from each tenth of the message in the last tenth
 * of the order, over @seeds messages: the segments that an early close omits
 */
static double tail_bias(u32 n, u32 seeds)
{
	u32 bin[10] = {}, tail = n / 10, seed, i;
	double want = seeds * (double)tail / 10, chi = 0;
	struct dblp_shuffle s;

	for (seed = 0; seed < seeds; seed++) {
		dblp_shuffle_init(&s, n, seed);
		for (i = n - tail; i < n; i++)
			bin[dblp_shuffle_at(&s, i) * 10ULL / n]++;
	}
	for (i = 0; i < 10; i++)
		chi += (bin[i] - want) * (bin[i] - want) / want;
	return chi;
}

TEST(dblp_shuffle_at__no_tail_bias)
{
	static const u32 sizes[] = { 10, 20, 100, 250, 640, 1000, 12000 };
	u32 i;

	/* 9 degrees of freedom: a fair order exceeds 33.7 once in 10000 tests */
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_LT(tail_bias(sizes[i], 2000), 33.7) {
			TH_LOG("of %u segments", sizes[i]);
		}
}

/* Segments adjacent in the order are not adjacent in the message */
TEST(dblp_shuffle_at__no_runs)
{
	u32 i, seed, runs = 0, n = 1000;
	struct dblp_shuffle s;

	for (seed = 0; seed < 400; seed++) {
		dblp_shuffle_init(&s, n, seed);
		for (i = 1; i < n; i++)
			runs += dblp_shuffle_at(&s, i) ==
				dblp_shuffle_at(&s, i - 1) + 1;
	}
	/* One per message is fair: 400, with a deviation of 20 */
	EXPECT_GT(runs, 320);
	EXPECT_LT(runs, 480);
}

TEST_HARNESS_MAIN
