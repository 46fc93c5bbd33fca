// SPDX-License-Identifier: GPL-2.0-only
/* Cookies in any order: a spent cookie stays spent */
#include "fuzz.h"
#include "spent.h"

/* A cookie is two bytes: its creation time and its client. IDs are unique. */
static u64 cid_of(const u8 *data)
{
	return data[0] << 8 | data[1];
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct dblp_spent s = {};
	size_t i, k, n = len / 2;
	u64 cid, born;

	n = n < 64 ? n : 64;
	for (i = 0; i < n; i++) {
		cid = cid_of(data + 2 * i);
		born = 1 + data[2 * i];
		if (!dblp_spent_has(&s, cid, born))
			dblp_spent_add(&s, cid, born);
		for (k = 0; k <= i; k++)
			CHECK(dblp_spent_has(&s, cid_of(data + 2 * k),
					     1 + data[2 * k]));
	}
	/* A newer cookie than all of these is accepted */
	CHECK(!dblp_spent_has(&s, 1 << 20, 1000));
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
