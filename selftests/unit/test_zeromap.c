// SPDX-License-Identifier: GPL-2.0-only
/* Zero maps against an array of booleans, and whether zeroes are found */
#include "test.h"
#include "zeromap.h"

#define MAX_SEGS	700

struct model {
	struct dblp_segmap	m;
	bool			has[MAX_SEGS];
};

static void model_init(struct model *m, u32 n)
{
	memset(m, 0, sizeof(*m));
	dblp_segmap_init(&m->m, calloc(1, dblp_segmap_bytes(n)), n);
}

/* Runs of both kinds, from none to all */
static void model_fill(struct model *m, struct prng *r)
{
	u32 i, run = 0, share = prng_below(r, 5);
	bool has = false;

	for (i = 0; i < m->m.n; i++) {
		if (!run--) {
			run = prng_any(r) % 70;
			has = prng_below(r, 4) < share;
		}
		m->has[i] = has;
		if (has)
			dblp_segmap_add(&m->m, i);
	}
}

/* A map with no byte to spare, so that the sanitizer sees what is read */
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

/* Memory is read up to its end and not beyond, wherever it begins */
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
	free(m.m.bits);
}

TEST(dblp_zeromap_words__stretches)
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
	free(m.m.bits);
}

/* What was put is what comes out, run by run */
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
		free(m.m.bits);
	}
}

TEST(dblp_zeromap_valid__names_segments_that_there_are)
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

/* Against a set that has some of the segments */
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
		free(m.m.bits);
		free(have.m.bits);
	}
}

TEST_HARNESS_MAIN
