// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any bytes as a packet: no byte beyond it is read, and an accepted packet is built
 * again to the same bytes. So each packet has one encoding.
 */
#include <string.h>

#include <linux/dblp.h>

#include "fuzz.h"
#include "segmap.h"
#include "values.h"
#include "wire.h"

static void check_frames(const u8 *p, u32 len)
{
	u8 again[DBLP_CTL_MAX], *end;
	struct dblp_frame f;

	while (len) {
		const u8 *begin = p;

		if (dblp_get_frame(&f, &p, &len))
			break;
		end = dblp_put_frame(again, again + sizeof(again), &f);
		CHECK(end && end - again == p - begin);
		CHECK(!memcmp(again, begin, end - again));
	}
}

/* A valid map names existing segments only, and can be built again */
static void check_zeromap(const struct dblp_hdr *h, const struct dblp_data *d,
			  const u8 *p)
{
	u32 n = (d->msg_len - 1) / h->seg_size + 1, at = 0, first, count, sum;
	struct dblp_zeromap z = {
		.p = p, .first = d->offset / h->seg_size,
		.words = d->seg_len / 4,
	};
	struct dblp_segmap m;
	u8 *again;

	CHECK(z.words && z.first < n && z.first + 32 * (z.words - 1) < n);
	if (!dblp_zeromap_valid(&z, n) || n > 1 << 20)
		return;
	dblp_segmap_init(&m, calloc(1, dblp_segmap_bytes(n)), n);
	CHECK(!dblp_zeromap_common(&z, &m, &sum) && sum);
	while (dblp_zeromap_next(&z, &at, &first, &count)) {
		CHECK(count && first >= z.first && first + count <= n);
		sum -= count;
	}
	CHECK(!sum);
	dblp_zeromap_add(&z, &m);
	CHECK(dblp_zeromap_common(&z, &m, &sum) == sum && sum == m.count);
	again = malloc(4 * z.words);
	dblp_zeromap_put(again, &m, z.first, z.words);
	CHECK(!memcmp(again, p, 4 * z.words));
	dblp_zeromap_del(&z, &m);
	CHECK(!m.count && dblp_segmap_next(&m, 0) == n);
	free(again);
	free(m.bits);
}

static void check_data(const struct dblp_hdr *h, const u8 *p, u32 len)
{
	u8 again[DBLP_DATA_HDR_LEN];
	struct dblp_data d;

	if (dblp_get_data(&d, h, p + DBLP_HDR_LEN, len - DBLP_HDR_LEN, len))
		return;
	CHECK(d.msg_len && d.msg_len <= DBLP_MSG_MAX);
	CHECK(d.offset < d.msg_len && d.offset % h->seg_size == 0);
	if (d.zeros)
		check_zeromap(h, &d, p + len - d.seg_len);
	else
		CHECK(d.seg_len && d.seg_len <= d.msg_len - d.offset);
	CHECK(DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + h->ctl_len + d.seg_len == len);
	CHECK(d.budget <= DBLP_PPM && d.policy < __DBLP_POLICY_MAX);
	dblp_put_data(again, &d);
	CHECK(!memcmp(again, p + DBLP_HDR_LEN, sizeof(again)));
}

static void check_packet(const u8 *p, u32 len)
{
	u8 again[DBLP_HDR_LEN];
	struct dblp_hdr h;
	u32 frames = DBLP_HDR_LEN, auth;

	if (dblp_get_hdr(&h, p, len))
		return;
	dblp_put_hdr(again, &h);
	CHECK(!memcmp(again, p, sizeof(again)));
	if (h.type == DBLP_PKT_DATA) {
		check_data(&h, p, len);
		frames += DBLP_DATA_HDR_LEN;
	}
	CHECK(frames + h.ctl_len <= len);
	auth = dblp_auth_at(&h, len);
	CHECK(!auth || (auth >= DBLP_HDR_LEN && auth + DBLP_AUTH_LEN <= len));
	check_frames(p + frames, h.ctl_len);
}

static void check_params(const u8 *p)
{
	u8 again[DBLP_PARAMS_LEN];
	struct dblp_params a;

	if (dblp_get_params(&a, p))
		return;
	dblp_put_params(again, &a);
	CHECK(!memcmp(again, p, sizeof(again)));
}

static u8 *seed_auth(struct prng *r, u8 *p, const u8 *end)
{
	static const u8 tag[DBLP_TAG_LEN];
	struct dblp_frame f = {
		.type = DBLP_FRAME_AUTH,
		.auth.key = prng_any(r), .auth.number = prng_any(r),
		.auth.tag = tag,
	};

	return dblp_put_frame(p, end, &f) ?: p;
}

/* A valid frame, or one with an error */
static u8 *seed_frame(struct prng *r, u8 *p, const u8 *end)
{
	static u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	struct dblp_frame f = { .type = 1 + prng_below(r, __DBLP_FRAME_MAX) };
	u32 pn = prng_any(r), i;

	switch (f.type) {
	case DBLP_FRAME_ACK:
		f.ack.n = prng_below(r, DBLP_ACK_RANGES_MAX + 1);
		for (i = 0; i < f.ack.n; i++) {
			f.ack.range[i].last = pn;
			pn -= prng_any(r) % 65537;
			f.ack.range[i].first = pn;
			pn -= 2 + prng_any(r) % 65537;
		}
		break;
	case DBLP_FRAME_ECN:
		f.ecn.ce = prng_any(r);
		break;
	case DBLP_FRAME_FLOW:
		f.flow.max_msg = prng_any(r);
		f.flow.cap = prng_below(r, DBLP_PPM + 2);
		f.flow.max_data = prng_any(r);
		break;
	case DBLP_FRAME_PING:
		f.ping.wanted = prng_any(r);
		break;
	case DBLP_FRAME_CLOSE:
		f.close.msg_id = pn;
		f.close.reason = prng_below(r, __DBLP_REASON_MAX);
		f.close.flags = f.close.reason == DBLP_REASON_DEADLINE &&
				prng_below(r, 2);
		f.close.budget = prng_below(r, DBLP_PPM + 1);
		f.close.missing = prng_any(r);
		f.close.missing_segs = f.close.missing / 256;
		if (f.close.reason == DBLP_REASON_CANCELLED)
			f.close.missing = f.close.missing_segs =
				f.close.budget = 0;
		break;
	case DBLP_FRAME_LOSSMAP:
		f.lossmap.first = prng_any(r) / 4096 * 32;
		f.lossmap.words = prng_below(r, DBLP_LOSSMAP_WORDS_MAX + 1);
		f.lossmap.bits = bits;
		bits[prng_below(r, sizeof(bits))] = prng_u64(r);
		break;
	case DBLP_FRAME_META:
		f.meta.total = prng_any(r);
		f.meta.offset = prng_below(r, 2) ? prng_any(r) : 0;
		f.meta.critical = prng_below(r, 2) ? prng_any(r) : 0;
		f.meta.deadline = prng_any(r);
		f.meta.tag = prng_any(r);
		break;
	case DBLP_FRAME_FIN:
		f.fin.end = pn;
		break;
	case DBLP_FRAME_BUDGET:
		f.budget.msg_id = pn;
		f.budget.ppm = prng_below(r, DBLP_PPM + 2);
		break;
	case DBLP_FRAME_AUTH:
		return seed_auth(r, p, end);
	case DBLP_FRAME_CANCEL:
		f.cancel.msg_id = pn;
		f.cancel.started = prng_below(r, 2);
		f.cancel.len = prng_any(r);
		f.cancel.total = prng_below(r, 2) ? f.cancel.len : prng_any(r);
		f.cancel.offset = prng_below(r, 2) ? prng_any(r) : 0;
		f.cancel.tag = prng_any(r);
		break;
	case DBLP_FRAME_ARRIVAL:
		f.arrival.at = pn;
		break;
	}
	return dblp_put_frame(p, end, &f) ?: p;
}

static u8 *seed_data(struct prng *r, u8 *p, struct dblp_hdr *h, u32 room)
{
	struct dblp_data d = {
		.msg_id = prng_any(r),
		.msg_len = prng_any(r) % (DBLP_MSG_MAX + 1) + 1,
		.budget = prng_below(r, DBLP_PPM + 2),
		.policy = prng_below(r, __DBLP_POLICY_MAX),
		.phase = prng_below(r, 8),
		.repair = prng_below(r, 2),
		.meta = prng_below(r, 2),
		.zeros = !prng_below(r, 3),
	};

	h->seg_size = 200 + prng_any(r) % room;
	d.offset = prng_any(r) % d.msg_len / h->seg_size * h->seg_size;
	if (d.zeros)
		d.offset -= d.offset % (32 * h->seg_size);
	dblp_put_data(p, &d);
	return p + DBLP_DATA_HDR_LEN;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	u32 n = prng_below(r, 4), room = max - DBLP_HDR_LEN - DBLP_CTL_MAX;
	struct dblp_hdr h = {
		.type = 1 + prng_below(r, __DBLP_PKT_MAX - 1),
		.dcid = prng_any(r),
	};
	u8 *at = p + DBLP_HDR_LEN, *frames;

	if (prng_below(r, 2))
		h.type = prng_below(r, 2) ? DBLP_PKT_DATA : DBLP_PKT_CTRL;
	if (h.type >= DBLP_PKT_CTRL)
		h.pn = prng_any(r);
	if (h.type == DBLP_PKT_DATA)
		at = seed_data(r, at, &h, room - 256);
	frames = at;
	while (h.type >= DBLP_PKT_ACK && h.type != DBLP_PKT_PROBE && n--)
		at = seed_frame(r, at, frames + DBLP_CTL_MAX - 512);
	if (prng_below(r, 2))
		at = seed_auth(r, at, frames + DBLP_CTL_MAX);
	h.ctl_len = at - frames;
	dblp_put_hdr(p, &h);
	memset(at, 0x55, room);
	if (h.type == DBLP_PKT_DATA && dblp_has_zeromap(p)) {
		*at = prng_u64(r);
		at += 4 * (1 + prng_below(r, 3));
	} else if (h.type == DBLP_PKT_DATA && at + h.seg_size <= p + max) {
		at += h.seg_size;
	}
	return at - p;
}

/*
 * Random bytes hardly ever are a valid packet, so frames and parts are tried alone, too
 */
int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	u8 *p;

	check_packet(data, len);
	check_frames(data, len);
	if (len >= DBLP_PARAMS_LEN)
		check_params(data);
	if (len < DBLP_HDR_LEN)
		return 0;

	/* Add a valid header, as far as possible */
	p = malloc(len);
	memcpy(p, data, len);
	p[0] = DBLP_VERSION << 4 | (DBLP_PKT_ACK + p[0] % 3);
	if ((p[0] & 0xf) != DBLP_PKT_DATA) {
		p[1] = (len - DBLP_HDR_LEN) / 4;
		p[2] = 0;
		p[3] = 0;
	}
	if ((p[0] & 0xf) == DBLP_PKT_ACK)
		memset(p + 4, 0, 4);
	check_packet(p, len);
	free(p);
	return 0;
}
