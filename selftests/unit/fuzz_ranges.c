// SPDX-License-Identifier: GPL-2.0-only
/* Packet numbers in any order, against a plain array */
#include <string.h>

#include "fuzz.h"
#include "ranges.h"

#define NUMBERS	320	/* more than twice DBLP_RANGES_MAX */

static void check_sane(const struct dblp_ranges *s)
{
	u32 i;

	CHECK(s->n <= DBLP_RANGES_MAX);
	for (i = 0; i < s->n; i++) {
		CHECK(s->r[i].first <= s->r[i].last);
		CHECK(s->r[i].first >= s->floor);
		CHECK(!i || s->r[i].first - s->r[i - 1].last >= 2);
	}
}

/*
 * Two bytes of input are a packet number; the first two are the start of the array.
 */
int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct dblp_pn_range mem[DBLP_RANGES_MAX];
	bool seen[NUMBERS] = {};
	struct dblp_ranges s;
	u64 at = 0;
	size_t i;

	dblp_ranges_init(&s);
	for (i = 0; i + 1 < len; i += 2) {
		u32 k = (data[i] << 8 | data[i + 1]) % NUMBERS;
		bool fresh;

		if (!i) {
			at = data[0] & 1 ? -(u64)NUMBERS : (u64)data[1] << 26;
			continue;
		}
		fresh = !seen[k] && at + k >= s.floor;
		CHECK(dblp_ranges_has(&s, at + k) == !fresh);
		if (k & 1 && dblp_ranges_crowded(&s))
			dblp_ranges_grow(&s, mem);
		CHECK(dblp_ranges_add(&s, at + k) == fresh);
		CHECK(dblp_ranges_has(&s, at + k));
		seen[k] = true;
		check_sane(&s);
	}
	for (i = 0; i < NUMBERS; i++)
		CHECK(dblp_ranges_has(&s, at + i) ==
		      (seen[i] || at + i < s.floor));
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
