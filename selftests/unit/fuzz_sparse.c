// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as a packed vector: an accepted one refers to elements of the vector only,
 * and takes no more bytes when packed again. The first two bytes are the number of
 * elements, the third is their type.
 */
#include <errno.h>
#include <reduce.h>
#include <sparse.h>
#include <string.h>

#include "exact.h"
#include "fuzz.h"

static void check_places(const struct dblp_sparse *s)
{
	struct dblp_sparse_at at = { 0 };
	struct dblp_span span;
	u64 done = 0, n = 0;

	while (dblp_sparse_next(s, &at, s->packed, &span)) {
		CHECK(span.first >= done && span.first < span.end);
		done = span.end;
		n += span.end - span.first;
		CHECK(at.packed == n);
	}
	CHECK(done <= s->count && n == s->packed);
}

static void check_again(const struct dblp_sparse *s, u32 dtype, const u8 *p,
			size_t len)
{
	const struct dblp_sparse_how how = {
		.dtype = dtype, .last = DBLP_SPARSE_SHIFTS,
	};
	u32 esize = dblp_dtype_size(dtype);
	u8 *v = malloc(s->count * esize), *back = malloc(s->count * esize);
	u8 *again = malloc(dblp_sparse_bound(s->count, esize));
	struct dblp_sparse own;

	dblp_sparse_copy(s, dtype, v, p + dblp_sparse_front(s->count, s->shift));
	CHECK(dblp_sparse_put(&how, v, s->count, again, &own) <= len);
	dblp_sparse_copy(&own, dtype, back,
			 again + dblp_sparse_front(s->count, own.shift));
	CHECK(!memcmp(v, back, s->count * esize));
	free(v);
	free(back);
	free(again);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct dblp_sparse s, before;
	u32 dtype, esize;
	u64 count;
	u8 *p;
	int err;

	if (len < 3)
		return 0;
	count = 1 + (data[0] << 8 | data[1]);
	dtype = data[2] % DBLP_DTYPES;
	esize = dblp_dtype_size(dtype);
	len -= 3;
	p = exact(data + 3, len);
	memset(&s, 0x5a, sizeof(s));
	before = s;
	err = dblp_sparse_get(p, len, count, esize, &s);
	if (err) {
		CHECK(err == -EBADMSG);
		CHECK(!memcmp(&s, &before, sizeof(s)));
	} else {
		CHECK(dblp_sparse_len(p, count, esize) == len);
		CHECK(len <= dblp_sparse_bound(count, esize));
		check_places(&s);
		check_again(&s, dtype, p, len);
	}
	free_exact(p, len);
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	struct dblp_sparse_how how = { .dtype = prng_below(r, DBLP_DTYPES) };
	u32 count = 1 + prng_below(r, 200), rare = 1 + prng_below(r, 60), i;
	u8 v[200 * 8], packed[1800];
	struct dblp_sparse s;
	size_t len;

	for (i = 0; i < sizeof(v); i++)
		v[i] = prng_below(r, rare) ? 0 : prng_any(r);
	how.last = prng_below(r, DBLP_SPARSE_SHIFTS + 1);
	len = dblp_sparse_put(&how, v, count, packed, &s);
	p[0] = (count - 1) >> 8;
	p[1] = count - 1;
	p[2] = how.dtype;
	if (len > max - 3)
		len = max - 3;
	memcpy(p + 3, packed, len);
	return 3 + len;
}
