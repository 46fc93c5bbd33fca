// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as the head of a message of a collective: an accepted head is encoded to the
 * same bytes. Its length and runs are valid, and no byte after it is read.
 */
#include <errno.h>
#include <head.h>
#include <reduce.h>
#include <string.h>

#include "fuzz.h"

static void check_runs(const struct dblp_head *h, const u8 *p)
{
	size_t size = h->runs * sizeof(struct dblp_run);
	struct dblp_run *run = malloc(size + !size);
	u8 *again = malloc(h->runs * DBLP_RUN_LEN + 1);
	u32 most = h->epoch, i;

	if (!dblp_runs_get(h, p, most, run)) {
		for (i = 0; i < h->runs; i++) {
			CHECK(run[i].end > (i ? run[i - 1].end : 0));
			CHECK(run[i].contributions <= most);
			CHECK(!i || run[i].contributions !=
				    run[i - 1].contributions);
		}
		CHECK(!i || run[i - 1].end == h->count);
		dblp_runs_put(run, h->runs, again);
		CHECK(!memcmp(p, again, h->runs * DBLP_RUN_LEN));
	}
	free(run);
	free(again);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct dblp_head h, before;
	u8 again[DBLP_HEAD_LEN];
	u64 critical;
	int err;

	memset(&h, 0x5a, sizeof(h));
	before = h;
	err = dblp_head_get(data, len, &h);
	if (err) {
		CHECK(err == -EBADMSG || err == -EPROTONOSUPPORT);
		CHECK(!memcmp(&h, &before, sizeof(h)));
		return 0;
	}
	dblp_head_put(&h, again);
	CHECK(!memcmp(data, again, sizeof(again)));
	critical = DBLP_HEAD_LEN + (u64)h.runs * DBLP_RUN_LEN;
	CHECK(critical + (u64)h.count * dblp_dtype_size(h.dtype) <= UINT32_MAX);
	CHECK(h.offset + h.count <= DBLP_COUNT_MAX);
	if (critical <= len)
		check_runs(&h, data + DBLP_HEAD_LEN);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	struct dblp_head h = {
		.type = prng_below(r, DBLP_HEAD_TYPES),
		.epoch = 1 + prng_below(r, 9),
		.from = prng_below(r, DBLP_RANKS_MAX),
		.comm = prng_u64(r),
		.round = 1 + prng_below(r, 9),
	};
	struct dblp_run run;
	u32 i;

	if (h.type == DBLP_HEAD_DATA) {
		h.dtype = prng_below(r, DBLP_DTYPES);
		h.digest = prng_u64(r);
		h.seq = prng_any(r);
		h.offset = prng_any(r) >> 16;
		h.runs = prng_below(r, 9);
		h.count = h.runs ? h.runs : 1 + prng_below(r, 1000000);
	}
	dblp_head_put(&h, p);
	for (i = 0; i < h.runs; i++) {
		run = (struct dblp_run) { 1, i & 1 };
		dblp_runs_put(&run, 1, p + DBLP_HEAD_LEN + i * DBLP_RUN_LEN);
	}
	return DBLP_HEAD_LEN + h.runs * DBLP_RUN_LEN;
}
