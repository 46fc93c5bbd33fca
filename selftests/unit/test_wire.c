// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec of headers and handshakes: written packets read the same, and invalid ones
 * are refused
 */
#include <linux/dblp.h>

#include "exact.h"
#include "test.h"
#include "spray.h"
#include "values.h"
#include "wire.h"

static enum dblp_wire_error get_hdr(struct dblp_hdr *h, const u8 *p, u32 len)
{
	u8 *copy = exact(p, len < DBLP_HDR_LEN ? len : DBLP_HDR_LEN);
	enum dblp_wire_error err = dblp_get_hdr(h, copy, len);

	free_exact(copy, len < DBLP_HDR_LEN ? len : DBLP_HDR_LEN);
	return err;
}

/* Length of the shortest packet of a type, without frames */
static u32 least_len(u32 type)
{
	static const u8 len[__DBLP_PKT_MAX] = {
		[DBLP_PKT_INIT] = 128, [DBLP_PKT_INIT_ACK] = 48,
		[DBLP_PKT_COOKIE_ECHO] = 80, [DBLP_PKT_COOKIE_ACK] = 48,
		[DBLP_PKT_VERSION] = 24, [DBLP_PKT_RST] = 32,
		[DBLP_PKT_ACK] = 16, [DBLP_PKT_CTRL] = 16,
		[DBLP_PKT_DATA] = 32, [DBLP_PKT_PROBE] = 16,
	};

	return len[type];
}

/* Length of the longest packet of a type */
static u32 most_len(u32 type)
{
	if (type == DBLP_PKT_DATA || type == DBLP_PKT_PROBE)
		return 65000;
	return type == DBLP_PKT_VERSION ? 128 : least_len(type);
}

TEST(dblp_put_hdr__layout)
{
	static const u8 want[DBLP_HDR_LEN] = {
		DBLP_VERSION << 4 | DBLP_PKT_DATA, 0x03, 0x05, 0x78,
		0x12, 0x34, 0x56, 0x78,
		0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10,
	};
	struct dblp_hdr h = {
		.type = DBLP_PKT_DATA, .ctl_len = 12, .seg_size = 1400,
		.pn = 0x12345678, .dcid = 0xfedcba9876543210,
	};
	u8 p[DBLP_HDR_LEN];

	ASSERT_EQ(p + DBLP_HDR_LEN, dblp_put_hdr(p, &h));
	EXPECT_EQ(0, memcmp(p, want, sizeof(want)));
}

TEST(dblp_get_hdr__round_trip)
{
	struct prng r = { 1 };
	u32 i;

	for (i = 0; i < 10000; i++) {
		struct dblp_hdr h = {
			.type = 1 + prng_below(&r, __DBLP_PKT_MAX - 1),
			.dcid = prng_any(&r),
		}, back;
		u32 len = least_len(h.type);
		u8 p[DBLP_HDR_LEN];

		if (h.type >= DBLP_PKT_ACK && h.type != DBLP_PKT_PROBE)
			h.ctl_len = 4 * prng_below(&r, 256);
		if (h.type >= DBLP_PKT_CTRL)
			h.pn = prng_any(&r);
		if (h.type == DBLP_PKT_DATA) {
			h.seg_size = prng_any(&r);
			len += prng_below(&r, 1500);
		}
		dblp_put_hdr(p, &h);
		ASSERT_EQ(DBLP_WIRE_OK, get_hdr(&back, p, len + h.ctl_len));
		EXPECT_EQ(h.type, back.type);
		EXPECT_EQ(h.ctl_len, back.ctl_len);
		EXPECT_EQ(h.seg_size, back.seg_size);
		EXPECT_EQ(h.pn, back.pn);
		EXPECT_EQ(h.dcid, back.dcid);
	}
}

TEST(dblp_get_hdr__short)
{
	struct dblp_hdr h;
	u32 type, len;

	for (type = 1; type < __DBLP_PKT_MAX; type++) {
		u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type };

		for (len = 0; len < least_len(type); len++)
			EXPECT_EQ(DBLP_WIRE_SHORT, get_hdr(&h, p, len));
		EXPECT_EQ(DBLP_WIRE_OK, get_hdr(&h, p, len));
	}
}

TEST(dblp_get_hdr__trailing)
{
	struct dblp_hdr h;
	u32 type, len;

	for (type = 1; type < __DBLP_PKT_MAX; type++) {
		u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type };

		for (len = least_len(type); len < 2000; len++)
			EXPECT_EQ(len > most_len(type) ? DBLP_WIRE_TRAILING :
							 DBLP_WIRE_OK,
				  get_hdr(&h, p, len));
	}
}

/* An answer that is stateless, or to a repeated packet, is not longer than the packet */
TEST(dblp_wire_size__of_answers)
{
	EXPECT_LE(DBLP_INIT_ACK_LEN, DBLP_INIT_LEN);
	EXPECT_LE(DBLP_COOKIE_ACK_LEN, DBLP_ECHO_LEN);
	EXPECT_LE(DBLP_RST_LEN, DBLP_ECHO_LEN);
	EXPECT_LE(DBLP_RST_LEN, DBLP_INIT_LEN);
}

/* A list of versions has the same format in all versions */
TEST(dblp_check_len__of_another_version)
{
	struct dblp_hdr h = { .type = DBLP_PKT_VERSION };
	u32 len;

	for (len = 0; len < 200; len++)
		EXPECT_EQ(len < 24 ? DBLP_WIRE_SHORT :
			  len > 128 ? DBLP_WIRE_TRAILING : DBLP_WIRE_OK,
			  dblp_check_len(&h, len));
}

TEST(dblp_get_hdr__version)
{
	u32 version;

	for (version = 0; version < 16; version++) {
		/* Other fields of another version's header are not checked */
		u8 p[DBLP_HDR_LEN] = {
			version << 4 | DBLP_PKT_VERSION, 0, 0, 0, 0, 0, 0, 0,
			1, 2, 3, 4, 5, 6, 7, 8,
		};
		struct dblp_hdr h;

		if (version == DBLP_VERSION)
			continue;
		EXPECT_EQ(DBLP_WIRE_VERSION, get_hdr(&h, p, sizeof(p)));
		EXPECT_EQ(DBLP_PKT_VERSION, h.type);
		EXPECT_EQ(0x0102030405060708, h.dcid);
		memset(p + 1, 0xff, 7);
		EXPECT_EQ(DBLP_WIRE_VERSION, get_hdr(&h, p, sizeof(p)));
	}
}

TEST(dblp_get_hdr__type)
{
	struct dblp_hdr h;
	u32 type;

	for (type = 0; type < 16; type++) {
		u8 p[DBLP_HDR_LEN + DBLP_DATA_HDR_LEN] = {
			DBLP_VERSION << 4 | type,
		};
		u32 len = type && type < __DBLP_PKT_MAX ? least_len(type) :
							  DBLP_HDR_LEN;

		EXPECT_EQ(type && type < __DBLP_PKT_MAX ? DBLP_WIRE_OK :
							  DBLP_WIRE_TYPE,
			  get_hdr(&h, p, len));
	}
}

TEST(dblp_get_hdr__fields_that_must_be_zero)
{
	struct dblp_hdr h;
	u32 type, byte;

	for (type = 1; type < __DBLP_PKT_MAX; type++) {
		bool numbered = type >= DBLP_PKT_CTRL;

		for (byte = 2; byte < 8; byte++) {
			u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type };
			/* In a PROBE this field is a port */
			bool ok = byte > 3 ? numbered :
				  type == DBLP_PKT_DATA ||
				  (type == DBLP_PKT_PROBE && byte == 3);
			u32 len = least_len(type);

			p[byte] = 1;
			EXPECT_EQ(ok ? DBLP_WIRE_OK : DBLP_WIRE_FIELD,
				  get_hdr(&h, p, len));
		}
	}
}

/* Number of ports of a COOKIE-ECHO, and port that a PROBE announces */
static bool may_name(u8 type, u32 ports)
{
	if (type == DBLP_PKT_COOKIE_ECHO)
		return ports != 1 && ports <= DBLP_SPRAY_MAX;
	return type == DBLP_PKT_DATA || !ports ||
	       (type == DBLP_PKT_PROBE && ports < DBLP_SPRAY_MAX);
}

TEST(dblp_get_hdr__ports)
{
	u32 type, ports;

	for (type = 1; type < __DBLP_PKT_MAX; type++)
		for (ports = 0; ports < 20; ports++) {
			u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type, 0, 0, ports };
			u8 again[DBLP_HDR_LEN];
			struct dblp_hdr h;

			EXPECT_EQ(may_name(type, ports) ? DBLP_WIRE_OK : DBLP_WIRE_FIELD,
				  get_hdr(&h, p, least_len(type)));
			if (!may_name(type, ports))
				continue;
			EXPECT_EQ(ports, h.seg_size);
			dblp_put_hdr(again, &h);
			EXPECT_EQ(0, memcmp(p, again, sizeof(p)));
		}
}

TEST(dblp_get_hdr__ctl_len)
{
	struct dblp_hdr h;
	u32 type;

	for (type = 1; type < __DBLP_PKT_MAX; type++) {
		u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type, 255 };
		u32 len = DBLP_HDR_LEN + DBLP_CTL_MAX;

		if (type < DBLP_PKT_ACK || type == DBLP_PKT_PROBE) {
			EXPECT_EQ(DBLP_WIRE_FIELD, get_hdr(&h, p, len));
			continue;
		}
		if (type == DBLP_PKT_DATA)
			len += DBLP_DATA_HDR_LEN;
		EXPECT_EQ(DBLP_WIRE_SHORT, get_hdr(&h, p, len - 1));
		EXPECT_EQ(DBLP_WIRE_OK, get_hdr(&h, p, len));
		EXPECT_EQ(type == DBLP_PKT_DATA ? DBLP_WIRE_OK :
						  DBLP_WIRE_TRAILING,
			  get_hdr(&h, p, len + 1));
	}
}

/* Packets of the handshake, RST and PROBE have an AUTH frame or no frame */
TEST(dblp_get_hdr__auth)
{
	struct dblp_hdr h;
	u32 type, len, words;

	for (type = DBLP_PKT_INIT; type < __DBLP_PKT_MAX; type++) {
		bool may = type == DBLP_PKT_COOKIE_ECHO ||
			   type == DBLP_PKT_COOKIE_ACK ||
			   type == DBLP_PKT_RST || type == DBLP_PKT_PROBE;

		if (type >= DBLP_PKT_ACK && type != DBLP_PKT_PROBE)
			continue;
		for (words = 1; words < 256; words++) {
			u8 p[DBLP_HDR_LEN] = { DBLP_VERSION << 4 | type, words };
			bool ok = may && 4 * words == DBLP_AUTH_LEN;

			len = least_len(type) + 4 * words;
			EXPECT_EQ(ok ? DBLP_WIRE_OK : DBLP_WIRE_FIELD,
				  get_hdr(&h, p, len));
			EXPECT_EQ(ok ? DBLP_WIRE_SHORT : DBLP_WIRE_FIELD,
				  get_hdr(&h, p, len - 1));
		}
	}
}

TEST(dblp_auth_at__is_the_last_frame)
{
	static const struct {
		u8	type;
		u32	ctl_len;
		u32	len;
		u32	at;
	} cases[] = {
		{ DBLP_PKT_DATA, 20, 1000, 0 },
		{ DBLP_PKT_DATA, 24, 1000, 32 },
		{ DBLP_PKT_DATA, 56, 1000, 64 },
		{ DBLP_PKT_CTRL, 24, 40, 16 },
		{ DBLP_PKT_ACK, 1020, 1036, 1012 },
		{ DBLP_PKT_PROBE, 24, 1400, 16 },
		{ DBLP_PKT_PROBE, 0, 1400, 0 },
		{ DBLP_PKT_COOKIE_ECHO, 24, DBLP_ECHO_LEN + 24, DBLP_ECHO_LEN },
		{ DBLP_PKT_RST, 24, DBLP_RST_LEN + 24, DBLP_RST_LEN },
		{ DBLP_PKT_RST, 0, DBLP_RST_LEN, 0 },
	};
	u32 i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dblp_hdr h = {
			.type = cases[i].type, .ctl_len = cases[i].ctl_len,
		};

		EXPECT_EQ(cases[i].at, dblp_auth_at(&h, cases[i].len));
	}
}

/* Packets of a train have the same frames, except their tags */
TEST(dblp_ctl_alike__ignores_the_tag)
{
	struct dblp_frame meta = { .type = DBLP_FRAME_META, .meta.total = 1 };
	u8 p[DBLP_META_LEN + DBLP_AUTH_LEN], tag[DBLP_TAG_LEN] = {};
	struct dblp_frame auth = {
		.type = DBLP_FRAME_AUTH, .auth.key = 0xffff, .auth.tag = tag,
	};
	u8 *end = p + sizeof(p), *at = dblp_put_frame(p, end, &meta);

	ASSERT_EQ(end, dblp_put_frame(at, end, &auth));
	EXPECT_EQ(sizeof(p) - DBLP_TAG_LEN, dblp_ctl_alike(p, sizeof(p)));
	EXPECT_EQ(DBLP_AUTH_LEN - DBLP_TAG_LEN,
		  dblp_ctl_alike(at, DBLP_AUTH_LEN));
	EXPECT_EQ(DBLP_META_LEN, dblp_ctl_alike(p, DBLP_META_LEN));
	EXPECT_EQ(DBLP_AUTH_LEN - 4, dblp_ctl_alike(p, DBLP_AUTH_LEN - 4));
	EXPECT_EQ(0, dblp_ctl_alike(p, 0));
	/* Frames of another length or another type */
	at[1]++;
	EXPECT_EQ(sizeof(p), dblp_ctl_alike(p, sizeof(p)));
	at[1]--;
	at[0]--;
	EXPECT_EQ(sizeof(p), dblp_ctl_alike(p, sizeof(p)));
}

/* A segment, its header, and the length of its packet */
struct segment {
	struct dblp_hdr		h;
	struct dblp_data	d;
	u32			pkt_len;
	u8			p[DBLP_DATA_HDR_LEN];
};

static void segment_init(struct segment *s)
{
	*s = (struct segment) {
		.h = { .type = DBLP_PKT_DATA, .ctl_len = 20, .seg_size = 1000 },
		.d = { .msg_id = 7, .offset = 3000, .msg_len = 10000,
		       .budget = 8000, .policy = DBLP_POLICY_EAGER,
		       .phase = 5 },
		.pkt_len = 16 + 16 + 20 + 1000,
	};
}

static enum dblp_wire_error segment_parse(struct segment *s,
					  struct dblp_data *d)
{
	u8 *copy = exact(s->p, DBLP_DATA_HDR_LEN);
	enum dblp_wire_error err;

	err = dblp_get_data(d, &s->h, copy, DBLP_DATA_HDR_LEN, s->pkt_len);
	free_exact(copy, DBLP_DATA_HDR_LEN);
	return err;
}

static enum dblp_wire_error segment_check(struct segment *s)
{
	struct dblp_data d;

	dblp_put_data(s->p, &s->d);
	return segment_parse(s, &d);
}

TEST(dblp_put_data__layout)
{
	static const u8 want[DBLP_DATA_HDR_LEN] = {
		0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
		0x21, 0x22, 0x23, 0x24, 0xf4, 0x23, 0xf6, 0x98,
	};
	struct dblp_data d = {
		.msg_id = 0x01020304, .offset = 0x11121314,
		.msg_len = 0x21222324, .budget = 999999,
		.policy = DBLP_POLICY_EAGER, .phase = 5, .repair = true,
		.meta = true,
	};
	u8 p[DBLP_DATA_HDR_LEN];

	ASSERT_EQ(p + sizeof(p), dblp_put_data(p, &d));
	EXPECT_EQ(0, memcmp(p, want, sizeof(want)));
}

TEST(dblp_get_data__round_trip)
{
	struct prng r = { 2 };
	u32 i;

	for (i = 0; i < 20000; i++) {
		struct dblp_data d = {
			.msg_id = prng_any(&r),
			.msg_len = 1 + prng_any(&r) % DBLP_MSG_MAX,
			.budget = prng_any(&r) % (DBLP_PPM + 1),
			.policy = prng_below(&r, __DBLP_POLICY_MAX),
			.phase = prng_below(&r, 8),
			.repair = prng_below(&r, 2),
			.meta = prng_below(&r, 2),
		}, back;
		struct segment s = { .h.type = DBLP_PKT_DATA };
		u32 segs;

		s.h.ctl_len = 4 * prng_below(&r, 256);
		s.h.seg_size = DBLP_SEG_MIN +
			       prng_below(&r, DBLP_SEG_MAX - DBLP_SEG_MIN + 1);
		segs = (d.msg_len - 1) / s.h.seg_size + 1;
		d.offset = prng_below(&r, segs) * s.h.seg_size;
		d.seg_len = s.h.seg_size;
		if (d.msg_len - d.offset < d.seg_len)
			d.seg_len = d.msg_len - d.offset;
		s.pkt_len = 32 + s.h.ctl_len + d.seg_len;
		dblp_put_data(s.p, &d);
		ASSERT_EQ(DBLP_WIRE_OK, segment_parse(&s, &back));
		EXPECT_EQ(d.msg_id, back.msg_id);
		EXPECT_EQ(d.offset, back.offset);
		EXPECT_EQ(d.msg_len, back.msg_len);
		EXPECT_EQ(d.seg_len, back.seg_len);
		EXPECT_EQ(d.budget, back.budget);
		EXPECT_EQ(d.policy, back.policy);
		EXPECT_EQ(d.phase, back.phase);
		EXPECT_EQ(d.repair, back.repair);
		EXPECT_EQ(d.meta, back.meta);
	}
}

/*
 * The result for segment_init() with these fields, which may refer to other fields of
 * @s
 */
#define EXPECT_SEGMENT(want, ...) do { \
	struct segment s; \
	\
	segment_init(&s); \
	__VA_ARGS__; \
	EXPECT_EQ(DBLP_WIRE_##want, segment_check(&s)); \
} while (0)

TEST(dblp_get_data__budget)
{
	EXPECT_SEGMENT(OK, s.d.budget = DBLP_PPM);
	EXPECT_SEGMENT(FIELD, s.d.budget = DBLP_PPM + 1);
	EXPECT_SEGMENT(FIELD, s.d.budget = 0xfffff);
}

TEST(dblp_get_data__reserved_attributes)
{
	u32 bit;

	for (bit = 0; bit < DBLP_ATTR_BUDGET_SHIFT; bit++) {
		struct dblp_data d;
		struct segment s;
		bool kept;

		segment_init(&s);
		s.d.policy = 1;
		s.d.phase = 0;
		s.d.offset = 0;
		dblp_put_data(s.p, &s.d);
		s.p[14] ^= (1 << bit) >> 8;
		s.p[15] ^= (1 << bit) & 0xff;
		/* Reserved bits, importance, and unknown policies */
		kept = bit < 2 || bit == 5 || bit == 6 || bit == 11;
		/* The segment is too long for a zero map */
		EXPECT_EQ(kept ? DBLP_WIRE_FIELD :
			  1 << bit == DBLP_ATTR_ZEROS ? DBLP_WIRE_TRAILING :
							DBLP_WIRE_OK,
			  segment_parse(&s, &d));
	}
}

TEST(dblp_get_data__msg_len)
{
	EXPECT_SEGMENT(FIELD, s.d.msg_len = 0);
	EXPECT_SEGMENT(OK, s.d.msg_len = DBLP_MSG_MAX);
	EXPECT_SEGMENT(FIELD, s.d.msg_len = DBLP_MSG_MAX + 1);
	EXPECT_SEGMENT(FIELD, s.d.msg_len = U32_MAX);
}

TEST(dblp_get_data__offset)
{
	EXPECT_SEGMENT(OK, s.d.offset = 9000);
	EXPECT_SEGMENT(FIELD, s.d.offset = 10000);
	EXPECT_SEGMENT(FIELD, s.d.offset = 11000);
	EXPECT_SEGMENT(FIELD, s.d.offset = 3001);
	EXPECT_SEGMENT(FIELD, s.d.offset = U32_MAX - U32_MAX % 1000);
}

/* The first segment of a message, in a packet of its exact length */
#define EXPECT_FIRST(want, seg, msg, len) \
	EXPECT_SEGMENT(want, s.d.offset = 0; s.h.seg_size = (seg); \
		       s.d.msg_len = (msg); s.pkt_len = 52 + (len))

TEST(dblp_get_data__seg_size)
{
	EXPECT_FIRST(FIELD, 0, 10000, 1000);
	EXPECT_FIRST(OK, DBLP_SEG_MAX, 100000, DBLP_SEG_MAX);
	EXPECT_FIRST(FIELD, DBLP_SEG_MAX + 1, 100000, DBLP_SEG_MAX + 1);
	/* A small segment size only if the message has a single segment */
	EXPECT_FIRST(FIELD, DBLP_SEG_MIN - 1, DBLP_SEG_MIN, DBLP_SEG_MIN - 1);
	EXPECT_FIRST(OK, DBLP_SEG_MIN - 1, DBLP_SEG_MIN - 1, DBLP_SEG_MIN - 1);
	EXPECT_FIRST(OK, DBLP_SEG_MIN, DBLP_SEG_MIN + 1, DBLP_SEG_MIN);
}

TEST(dblp_get_data__length_of_segment)
{
	u32 len;

	EXPECT_SEGMENT(TRAILING, s.pkt_len++);
	EXPECT_SEGMENT(TRAILING, s.pkt_len = U32_MAX);
	for (len = 0; len < 52 + 1000; len++)
		EXPECT_SEGMENT(SHORT, s.pkt_len = len);
	/* The last segment has the remaining bytes */
	for (len = 0; len < 3; len++)
		EXPECT_EQ(len == 0 ? DBLP_WIRE_SHORT : len == 1 ? DBLP_WIRE_OK :
								  DBLP_WIRE_TRAILING,
			  segment_check(&(struct segment) {
				.h = { .type = DBLP_PKT_DATA, .ctl_len = 20, .seg_size = 1000 },
				.d = { .msg_len = 9001, .offset = 9000 }, .pkt_len = 52 + len,
			  }));
}

/* A message of 101 segments, so 4 words */
TEST(dblp_get_data__zeromap)
{
	struct dblp_data d;
	struct segment s;
	u32 words;

	segment_init(&s);
	s.d.msg_len = 100001;
	s.d.offset = 0;
	s.d.zeros = true;
	for (words = 0; words < 260; words++) {
		s.pkt_len = 52 + 4 * words;
		EXPECT_EQ(!words ? DBLP_WIRE_SHORT :
			  words > 4 ? DBLP_WIRE_TRAILING : DBLP_WIRE_OK,
			  segment_check(&s));
	}
	s.pkt_len = 52 + 12;
	EXPECT_EQ(DBLP_WIRE_OK, segment_parse(&s, &d));
	EXPECT_TRUE(d.zeros);
	EXPECT_EQ(12, d.seg_len);
	for (s.pkt_len = 52; s.pkt_len < 56; s.pkt_len++)
		EXPECT_EQ(DBLP_WIRE_SHORT, segment_check(&s));

	/* A map begins at a multiple of 32 segments */
	s.pkt_len = 56;
	for (s.d.offset = 0; s.d.offset < s.d.msg_len; s.d.offset += 1000)
		EXPECT_EQ(s.d.offset % 32000 ? DBLP_WIRE_FIELD : DBLP_WIRE_OK,
			  segment_check(&s));
	s.pkt_len = 60;
	s.d.offset = 96000;
	EXPECT_EQ(DBLP_WIRE_TRAILING, segment_check(&s));
	s.d.offset = 64000;
	EXPECT_EQ(DBLP_WIRE_OK, segment_check(&s));
	s.d.msg_len = 96000;
	EXPECT_EQ(DBLP_WIRE_TRAILING, segment_check(&s));
}

TEST(dblp_get_data__linear_part)
{
	struct dblp_data d;
	struct segment s;
	u32 len;

	segment_init(&s);
	dblp_put_data(s.p, &s.d);
	for (len = 0; len < DBLP_DATA_HDR_LEN; len++) {
		u8 *copy = exact(s.p, len);

		EXPECT_EQ(DBLP_WIRE_SHORT,
			  dblp_get_data(&d, &s.h, copy, len, s.pkt_len));
		free_exact(copy, len);
	}
	EXPECT_EQ(DBLP_WIRE_OK, segment_parse(&s, &d));
}

TEST(dblp_get_params__round_trip)
{
	struct dblp_params a = {
		.cap = DBLP_PPM, .max_msg = 0xf1f2f3f4,
		.window = 0xfedcba98, .max_data = 0x76543210,
		.msg_max = DBLP_MSG_MAX,
		.rtt_us = DBLP_PARAMS_RTT_MAX, .features = 0xfff,
	}, back;
	u8 p[DBLP_PARAMS_LEN];

	ASSERT_EQ(p + sizeof(p), dblp_put_params(p, &a));
	ASSERT_EQ(DBLP_WIRE_OK, dblp_get_params(&back, p));
	EXPECT_EQ(a.cap, back.cap);
	EXPECT_EQ(a.max_msg, back.max_msg);
	EXPECT_EQ(a.window, back.window);
	EXPECT_EQ(a.max_data, back.max_data);
	EXPECT_EQ(a.msg_max, back.msg_max);
	EXPECT_EQ(a.rtt_us, back.rtt_us);
	EXPECT_EQ(a.features, back.features);
}

TEST(dblp_get_params__refused)
{
	static const struct {
		struct dblp_params p;
		enum dblp_wire_error want;
	} cases[] = {
		{ { .msg_max = 1 }, DBLP_WIRE_OK },
		{ { .msg_max = 1, .cap = DBLP_PPM + 1 }, DBLP_WIRE_FIELD },
		{ { .msg_max = 0 }, DBLP_WIRE_FIELD },
		{ { .msg_max = DBLP_MSG_MAX + 1 }, DBLP_WIRE_FIELD },
		{ { .msg_max = DBLP_MSG_MAX, .rtt_us = DBLP_PARAMS_RTT_MAX + 1 }, DBLP_WIRE_FIELD },
		{ { .msg_max = DBLP_MSG_MAX, .rtt_us = U32_MAX }, DBLP_WIRE_FIELD },
		{ { .msg_max = DBLP_MSG_MAX, .window = 4096, .max_data = 4096 }, DBLP_WIRE_OK },
		{ { .msg_max = DBLP_MSG_MAX, .window = 4096, .max_data = 4097 }, DBLP_WIRE_FIELD },
	};
	struct dblp_params back;
	u8 p[DBLP_PARAMS_LEN];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		dblp_put_params(p, &cases[i].p);
		EXPECT_EQ(cases[i].want, dblp_get_params(&back, p)) TH_LOG("case %u", i);
	}
}

TEST(dblp_get_cookie__round_trip)
{
	struct dblp_cookie c = {
		.scid = 0x0102030405060708, .born_ms = 0x131415161718,
		.features = 0x1112, .mac = 0xf1f2f3f4f5f6f7f8,
	}, back;
	u8 p[DBLP_COOKIE_LEN];

	ASSERT_EQ(p + sizeof(p), dblp_put_cookie(p, &c));
	EXPECT_EQ(0x01, p[0]);
	EXPECT_EQ(0xf8, p[23]);
	dblp_get_cookie(&back, p);
	EXPECT_EQ(c.scid, back.scid);
	EXPECT_EQ(c.born_ms, back.born_ms);
	EXPECT_EQ(c.features, back.features);
	EXPECT_EQ(c.mac, back.mac);
}

TEST(dblp_pn_expand__nearest)
{
	struct prng r = { 4 };
	u32 i;

	EXPECT_EQ(0, dblp_pn_expand(0, 0));
	EXPECT_EQ(0xffffffff, dblp_pn_expand(0x100000000, 0xffffffff));
	EXPECT_EQ(0x100000000, dblp_pn_expand(0xffffffff, 0));
	for (i = 0; i < 100000; i++) {
		u64 largest = (1ULL << 32) + prng_any(&r) / 4;
		u64 pn = largest + 1 + (s64)(s32)prng_u64(&r);

		ASSERT_EQ(pn, dblp_pn_expand(largest, pn));
	}
}

TEST_HARNESS_MAIN
