// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Heads and runs of messages: see head.h. No other file interprets these bytes.
 *
 *	 0	magic		"dblp"
 *	 4	version, type, dtype, nic: a byte each
 *	 8	epoch
 *	12	from
 *	16	comm		8 bytes
 *	24	digest		8 bytes
 *	32	seq
 *	36	round
 *	40	offset		8 bytes
 *	48	count
 *	52	runs
 *
 * A run is its number of elements and their contributions, 4 bytes each.
 */

#include "head.h"

#include <errno.h>

#include "reduce.h"

#define MAGIC	0x64626c70
#define VERSION	1

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	*p++ = v >> 24;
	*p++ = v >> 16;
	*p++ = v >> 8;
	*p++ = v;
	return p;
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	return put_u32(put_u32(p, v >> 32), v);
}

static uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

static uint64_t get_u64(const uint8_t *p)
{
	return (uint64_t)get_u32(p) << 32 | get_u32(p + 4);
}

void dblp_head_put(const struct dblp_head *h, uint8_t p[DBLP_HEAD_LEN])
{
	p = put_u32(p, MAGIC);
	*p++ = VERSION;
	*p++ = h->type;
	*p++ = h->dtype;
	*p++ = h->nic;
	p = put_u32(p, h->epoch);
	p = put_u32(p, h->from);
	p = put_u64(p, h->comm);
	p = put_u64(p, h->digest);
	p = put_u32(p, h->seq);
	p = put_u32(p, h->round);
	p = put_u64(p, h->offset);
	p = put_u32(p, h->count);
	put_u32(p, h->runs);
}

/* Bytes of head, runs and elements: lengths of messages have 32 bits */
static uint64_t total(const struct dblp_head *h)
{
	return DBLP_HEAD_LEN + (uint64_t)h->runs * DBLP_RUN_LEN +
	       (uint64_t)h->count * dblp_dtype_size(h->dtype);
}

static int hello_valid(const struct dblp_head *h)
{
	return !(h->dtype || h->seq || h->offset || h->count ||
		 h->runs) && h->round < DBLP_RANKS_MAX;
}

static int data_valid(const struct dblp_head *h)
{
	return dblp_dtype_size(h->dtype) && !h->nic && h->round && h->count &&
	       h->offset <= DBLP_COUNT_MAX - h->count && h->runs <= h->count &&
	       total(h) <= UINT32_MAX;
}

int dblp_head_get(const uint8_t *p, size_t len, struct dblp_head *h)
{
	struct dblp_head new;

	if (len < DBLP_HEAD_LEN || get_u32(p) != MAGIC)
		return -EBADMSG;
	if (p[4] != VERSION)
		return -EPROTONOSUPPORT;
	new = (struct dblp_head) {
		.type = p[5],
		.dtype = p[6],
		.nic = p[7],
		.epoch = get_u32(p + 8),
		.from = get_u32(p + 12),
		.comm = get_u64(p + 16),
		.digest = get_u64(p + 24),
		.seq = get_u32(p + 32),
		.round = get_u32(p + 36),
		.offset = get_u64(p + 40),
		.count = get_u32(p + 48),
		.runs = get_u32(p + 52),
	};
	if (new.type >= DBLP_HEAD_TYPES || new.from >= DBLP_RANKS_MAX ||
	    !(new.type == DBLP_HEAD_DATA ? data_valid(&new) : hello_valid(&new)))
		return -EBADMSG;
	*h = new;
	return 0;
}

void dblp_runs_put(const struct dblp_run *run, uint32_t n, uint8_t *p)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		p = put_u32(p, run[i].end - at);
		p = put_u32(p, run[i].contributions);
		at = run[i].end;
	}
}

int dblp_runs_get(const struct dblp_head *h, const uint8_t *p, uint32_t most,
		  struct dblp_run *run)
{
	uint64_t at = 0;
	uint32_t i, n;

	for (i = 0; i < h->runs; i++, p += DBLP_RUN_LEN) {
		n = get_u32(p);
		at += n;
		run[i].end = at;
		run[i].contributions = get_u32(p + 4);
		if (!n || run[i].contributions > most ||
		    (i && run[i].contributions == run[i - 1].contributions))
			return -EBADMSG;
	}
	return h->runs && at != h->count ? -EBADMSG : 0;
}
