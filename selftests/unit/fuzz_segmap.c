// SPDX-License-Identifier: GPL-2.0-only
/* Sets of segments, and their maps in packets, against an array of flags */
#include <string.h>

#include <linux/dblp.h>

#include "fuzz.h"
#include "segmap.h"

#define SEGS	700
#define WORDS	4

struct model {
	struct dblp_segmap	m;
	unsigned long		bits[SEGS / 32 + 2];
	bool			has[SEGS];
};

static u32 next(const struct model *m, u32 from, bool has)
{
	while (from < m->m.n && m->has[from] != has)
		from++;
	return from < m->m.n ? from : m->m.n;
}

static void check(const struct model *m)
{
	u32 i, count = 0;

	for (i = 0; i < m->m.n; i++) {
		CHECK(dblp_segmap_test(&m->m, i) == m->has[i]);
		count += m->has[i];
	}
	CHECK(m->m.count == count);
}

/* The missing ranges must add up to the missing segments */
static void check_ranges(const struct model *m, u32 seg_size, u32 last_len)
{
	u32 msg_len = (m->m.n - 1) * seg_size + last_len, from = 0, offset, len;
	struct dblp_range list[SEGS];
	u32 n = 0, sum = 0, seg;

	while (dblp_segmap_next_missing(&m->m, seg_size, msg_len, &from, &offset,
					&len)) {
		CHECK(len && offset % seg_size == 0);
		CHECK(!n || offset > list[n - 1].offset + list[n - 1].length);
		for (seg = offset / seg_size; seg * seg_size < offset + len; seg++)
			CHECK(seg < m->m.n && !m->has[seg]);
		list[n].offset = offset;
		list[n++].length = len;
		sum += len;
	}
	CHECK(sum == dblp_segmap_missing(&m->m, seg_size, msg_len));
	CHECK(n == dblp_segmap_ranges(&m->m));
	if (n) {
		struct dblp_range again[SEGS];

		CHECK(dblp_segmap_list(&m->m, seg_size, msg_len, 0, again, 0) == n);
		CHECK(!memcmp(list, again, n * sizeof(*list)));
	}
}

/* Any received map, and the set that results */
static void try_map(struct model *m, const u8 *p, u32 words, u32 first)
{
	struct dblp_zeromap z = { .p = p, .first = first, .words = words };
	u32 at = 0, from, count, i, sum = 0, known;
	bool named[SEGS] = {};

	if (first >= m->m.n || first + 32 * (words - 1) >= m->m.n ||
	    !dblp_zeromap_valid(&z, m->m.n))
		return;
	while (dblp_zeromap_next(&z, &at, &from, &count)) {
		CHECK(count && from >= first && from + count <= m->m.n);
		for (i = from; i < from + count; i++) {
			CHECK(!named[i]);
			named[i] = true;
			sum++;
		}
	}
	for (known = i = 0; i < m->m.n; i++)
		known += named[i] && m->has[i];
	CHECK(dblp_zeromap_common(&z, &m->m, &count) == known && count == sum);
	if (known)
		return;
	dblp_zeromap_add(&z, &m->m);
	for (i = 0; i < m->m.n; i++)
		m->has[i] |= named[i];
	if (p[0] & 1)
		return;
	dblp_zeromap_del(&z, &m->m);
	for (i = 0; i < m->m.n; i++)
		m->has[i] &= !named[i];
}

static void step(struct model *m, u8 op, u32 i, u8 arg)
{
	u32 n, k, word = 0;

	switch (op % 6) {
	case 0:
		CHECK(dblp_segmap_add(&m->m, i) == !m->has[i]);
		m->has[i] = true;
		break;
	case 1:
		CHECK(dblp_segmap_del(&m->m, i) == m->has[i]);
		m->has[i] = false;
		break;
	case 2:
		n = next(m, i, true) - i;
		n = n < arg ? n : arg;
		CHECK(dblp_segmap_free(&m->m, i, n) == n);
		if (!n)
			break;
		dblp_segmap_add_run(&m->m, i, n);
		memset(m->has + i, true, n);
		break;
	case 3:
		n = next(m, i, false) - i;
		n = n < arg ? n : arg;
		if (!n)
			break;
		dblp_segmap_del_run(&m->m, i, n);
		memset(m->has + i, false, n);
		break;
	case 4:
		i &= ~31U;
		for (k = i; k < i + 32 && k < m->m.n; k++) {
			word |= (u32)((k ^ arg) & 1) << (k - i);
			m->has[k] &= !((k ^ arg) & 1);
		}
		dblp_segmap_del_word(&m->m, i, word);
		break;
	case 5:
		CHECK(dblp_segmap_next(&m->m, i) == next(m, i, true));
		CHECK(dblp_segmap_next_hole(&m->m, i) == next(m, i, false));
		i &= ~31U;
		for (k = i; k < i + 32 && k < m->m.n; k++)
			word |= (u32)!m->has[k] << (k - i);
		CHECK(dblp_segmap_missing_word(&m->m, i) == word);
		break;
	}
}

static void check_shuffle(u32 n, u64 seed)
{
	bool seen[SEGS] = {};
	struct dblp_shuffle s;
	u32 i, x;

	dblp_shuffle_init(&s, n, seed);
	for (i = 0; i < n; i++) {
		x = dblp_shuffle_at(&s, i);
		CHECK(x < n && !seen[x]);
		CHECK(dblp_shuffle_find(&s, x) == i);
		seen[x] = true;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct model m = {};
	u32 n, seg;

	if (len < 4)
		return 0;
	n = 1 + (data[0] << 8 | data[1]) % SEGS;
	CHECK(dblp_segmap_bytes(n) <= sizeof(m.bits));
	dblp_segmap_init(&m.m, m.bits, n);
	if (data[2] % 8 == 0)
		check_shuffle(n, data[3]);
	for (data += 4, len -= 4; len >= 4; data += 4, len -= 4) {
		seg = (data[1] << 8 | data[2]) % n;
		if (data[0] & 0x80 && len >= 4 + 4 * WORDS)
			try_map(&m, data + 4, 1 + data[3] % WORDS, seg & ~31U);
		else
			step(&m, data[0], seg, data[3]);
	}
	check(&m);
	check_ranges(&m, 8, 1 + n % 8);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
