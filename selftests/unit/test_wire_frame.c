// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec of control frames: written frames read the same, and invalid ones are
 * refused
 */
#include <linux/dblp.h>

#include "exact.h"
#include "test.h"
#include "values.h"
#include "wire.h"

static void set_u16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void set_u32(u8 *p, u32 v)
{
	set_u16(p, v >> 16);
	set_u16(p + 2, v);
}

static enum dblp_wire_error frame_parse(struct dblp_frame *f, const u8 *p,
					u32 len, u32 *left)
{
	u8 *copy = exact(p, len);
	const u8 *at = copy;
	enum dblp_wire_error err;

	*left = len;
	memset(f, 0, sizeof(*f));
	err = dblp_get_frame(f, &at, left);
	if (err ? at != copy || *left != len : at + *left != copy + len)
		err = -1;
	/* Pointers into the copy would become invalid here */
	if (!err && f->type == DBLP_FRAME_LOSSMAP)
		f->lossmap.bits = p + (f->lossmap.bits - copy);
	free_exact(copy, len);
	return err;
}

static const u8 some_tag[DBLP_TAG_LEN] = "0123456789abcde";

/* A frame of each type with extreme values, and the bytes of a loss map */
static void frame_init(struct dblp_frame *f, u8 type, u8 *bits)
{
	u32 i;

	memset(f, 0, sizeof(*f));
	f->type = type;
	switch (type) {
	case DBLP_FRAME_ACK:
		f->ack.delay_us = 0xfedcba98;
		f->ack.n = DBLP_ACK_RANGES_MAX;
		for (i = 0; i < f->ack.n; i++) {
			f->ack.range[i].last = 0x100 - 70000 * i;
			f->ack.range[i].first = 0x100 - 70000 * i - 65535;
		}
		break;
	case DBLP_FRAME_ECN:
		f->ecn.ect0 = 0x01020304;
		f->ecn.ect1 = 0x11121314;
		f->ecn.ce = 0xf1f2f3f4;
		break;
	case DBLP_FRAME_FLOW:
		f->flow.max_msg = 0xfedcba98;
		f->flow.cap = DBLP_PPM;
		f->flow.max_data = 0xfedcba9876543210;
		break;
	case DBLP_FRAME_CLOSE:
		f->close.msg_id = 0xf1f2f3f4;
		f->close.missing = DBLP_MSG_MAX;
		f->close.missing_segs = 0x01020304;
		f->close.budget = DBLP_PPM;
		f->close.reason = DBLP_REASON_DEADLINE;
		f->close.flags = DBLP_RCV_OVER_BUDGET;
		break;
	case DBLP_FRAME_LOSSMAP:
		f->lossmap.msg_id = 0xf1f2f3f4;
		f->lossmap.first = 0x20e0;
		f->lossmap.words = DBLP_LOSSMAP_WORDS_MAX;
		for (i = 0; i < 4 * DBLP_LOSSMAP_WORDS_MAX; i++)
			bits[i] = i * 7;
		f->lossmap.bits = bits;
		break;
	case DBLP_FRAME_META:
		f->meta.msg_id = 0xf1f2f3f4;
		f->meta.critical = DBLP_MSG_MAX - 0x01020304;
		f->meta.deadline = 0xa1a2a3a4;
		f->meta.offset = 0x01020304;
		f->meta.total = DBLP_MSG_MAX;
		f->meta.tag = 0xfedcba9876543210;
		break;
	case DBLP_FRAME_FIN:
		f->fin.end = 0xf1f2f3f4;
		break;
	case DBLP_FRAME_PING:
		f->ping.wanted = 0xfedcba9876543210;
		break;
	case DBLP_FRAME_SHARE:
		f->share.n = 0xf1f2;
		f->share.all = 0xe1e2e3e4;
		break;
	case DBLP_FRAME_BUDGET:
		f->budget.msg_id = 0xf1f2f3f4;
		f->budget.ppm = DBLP_PPM;
		break;
	case DBLP_FRAME_AUTH:
		f->auth.key = 0xf1f2;
		f->auth.number = 0xf1f2f3f4;
		f->auth.tag = some_tag;
		break;
	case DBLP_FRAME_CANCEL:
		f->cancel.msg_id = 0xf1f2f3f4;
		f->cancel.len = 0x11121314;
		f->cancel.offset = 0x01020304;
		f->cancel.total = 0x11121314 + 0x01020304;
		f->cancel.tag = 0xfedcba9876543210;
		f->cancel.started = true;
		break;
	case DBLP_FRAME_ARRIVAL:
		f->arrival.at = 0xf1f2f3f4;
		break;
	}
}

/* Write this frame to @p, which has DBLP_CTL_MAX bytes */
static void frame_write(u8 *p, u8 type)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	struct dblp_frame f;

	frame_init(&f, type, bits);
	dblp_put_frame(p, p + DBLP_CTL_MAX, &f);
}

/* Compare all fields of frames that were zero before they were filled */
static bool frames_equal(const struct dblp_frame *a, const struct dblp_frame *b)
{
	struct dblp_frame same = *b;

	if (a->type != b->type)
		return false;
	if (a->type == DBLP_FRAME_LOSSMAP) {
		same.lossmap.bits = a->lossmap.bits;
		if (memcmp(a->lossmap.bits, b->lossmap.bits, 4 * a->lossmap.words))
			return false;
	}
	if (a->type == DBLP_FRAME_AUTH)
		same.auth.tag = a->auth.tag;
	return !memcmp(a, &same, sizeof(same));
}

static const u32 frame_len[__DBLP_FRAME_MAX] = {
	[DBLP_FRAME_ACK]	= 16 + 4 * (DBLP_ACK_RANGES_MAX - 1),
	[DBLP_FRAME_ECN]	= 16,
	[DBLP_FRAME_FLOW]	= 20,
	[DBLP_FRAME_CLOSE]	= 20,
	[DBLP_FRAME_LOSSMAP]	= 12 + 4 * DBLP_LOSSMAP_WORDS_MAX,
	[DBLP_FRAME_META]	= DBLP_META_LEN,
	[DBLP_FRAME_FIN]	= 8,
	[DBLP_FRAME_PING]	= 12,
	[DBLP_FRAME_SHARE]	= 8,
	[DBLP_FRAME_BUDGET]	= 12,
	[DBLP_FRAME_AUTH]	= DBLP_AUTH_LEN,
	[DBLP_FRAME_CANCEL]	= 28,
	[DBLP_FRAME_ARRIVAL]	= 8,
};

TEST(dblp_put_frame__round_trip)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX], p[DBLP_CTL_MAX];
	struct dblp_frame f, back;
	u32 type, left;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		frame_init(&f, type, bits);
		memset(p, 0xee, sizeof(p));
		ASSERT_EQ(p + frame_len[type],
			  dblp_put_frame(p, p + sizeof(p), &f));
		EXPECT_EQ(0xee, p[frame_len[type]]);
		EXPECT_EQ(DBLP_WIRE_OK,
			  frame_parse(&back, p, frame_len[type], &left));
		EXPECT_EQ(0, left);
		EXPECT_TRUE(frames_equal(&f, &back));
		/* The next frame stays unchanged */
		EXPECT_EQ(DBLP_WIRE_OK,
			  frame_parse(&back, p, sizeof(p), &left));
		EXPECT_EQ(sizeof(p) - frame_len[type], left);
	}
}

TEST(dblp_put_frame__layout)
{
	static const u8 flow[] = { 3, 5, 0, 0, 0, 0, 0, 9, 0, 0x0f, 0x42, 0x40,
				   1, 2, 3, 4, 5, 6, 7, 8 };
	static const u8 ack[] = { 1, 5, 0, 1, 0, 0, 0, 100, 0, 0, 0, 77,
				  0, 0, 0, 10, 0, 5, 0, 3 };
	struct dblp_frame f = { .type = DBLP_FRAME_FLOW };
	u8 p[64];

	f.flow.max_msg = 9;
	f.flow.cap = DBLP_PPM;
	f.flow.max_data = 0x0102030405060708;
	ASSERT_EQ(p + sizeof(flow), dblp_put_frame(p, p + sizeof(p), &f));
	EXPECT_EQ(0, memcmp(p, flow, sizeof(flow)));

	/* RFC 9000, 19.3.1: 90 - 5 - 2 = 83 */
	f.type = DBLP_FRAME_ACK;
	f.ack.delay_us = 77;
	f.ack.n = 2;
	f.ack.range[0].last = 100;
	f.ack.range[0].first = 90;
	f.ack.range[1].last = 83;
	f.ack.range[1].first = 80;
	ASSERT_EQ(p + sizeof(ack), dblp_put_frame(p, p + sizeof(p), &f));
	EXPECT_EQ(0, memcmp(p, ack, sizeof(ack)));
}

TEST(dblp_put_frame__no_room)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX], p[DBLP_CTL_MAX];
	struct dblp_frame f;
	u32 type, room, i;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		u32 least = type == DBLP_FRAME_ACK ? 16 : frame_len[type];

		frame_init(&f, type, bits);
		for (room = 0; room < least; room++) {
			memset(p, 0xee, sizeof(p));
			EXPECT_EQ(NULL, dblp_put_frame(p, p + room, &f));
			for (i = 0; i < sizeof(p); i++)
				ASSERT_EQ(0xee, p[i]);
		}
		EXPECT_NE(NULL, dblp_put_frame(p, p + least, &f));
	}
}

TEST(dblp_put_frame__not_a_frame)
{
	struct dblp_frame f = { .type = 0 };
	u8 p[DBLP_CTL_MAX], bits[4] = {};

	EXPECT_EQ(NULL, dblp_put_frame(p, p + sizeof(p), &f));
	f.type = __DBLP_FRAME_MAX;
	EXPECT_EQ(NULL, dblp_put_frame(p, p + sizeof(p), &f));
	f.type = DBLP_FRAME_ACK;
	EXPECT_EQ(NULL, dblp_put_frame(p, p + sizeof(p), &f));
	f.type = DBLP_FRAME_LOSSMAP;
	f.lossmap.bits = bits;
	EXPECT_EQ(NULL, dblp_put_frame(p, p + sizeof(p), &f));
	f.lossmap.words = DBLP_LOSSMAP_WORDS_MAX + 1;
	EXPECT_EQ(NULL, dblp_put_frame(p, p + sizeof(p), &f));
}

/* Was the frame cut to @n ranges, which are the first ones of @f? */
static bool ack_is_cut(const struct dblp_frame *f, u32 room, u32 n)
{
	u8 p[DBLP_CTL_MAX] = {}, *end = dblp_put_frame(p, p + room, f);
	struct dblp_frame back;
	u32 left;

	if (!end || frame_parse(&back, p, end - p, &left) || left)
		return false;
	return back.ack.n == n && back.ack.delay_us == f->ack.delay_us &&
	       !memcmp(back.ack.range, f->ack.range,
		       n * sizeof(f->ack.range[0]));
}

TEST(dblp_put_frame__ack_room)
{
	struct dblp_frame f;
	u32 room;

	frame_init(&f, DBLP_FRAME_ACK, NULL);
	for (room = 16; room < frame_len[DBLP_FRAME_ACK]; room++)
		EXPECT_TRUE(ack_is_cut(&f, room, (room - 16) / 4 + 1));
}

TEST(dblp_put_frame__ack_too_far)
{
	struct dblp_frame f = { .type = DBLP_FRAME_ACK, .ack.n = 3 };

	/* The largest gap and length, and one more of each */
	f.ack.range[0].last = 1000000;
	f.ack.range[0].first = 1000000;
	f.ack.range[1].last = 1000000 - 65535 - 2;
	f.ack.range[1].first = f.ack.range[1].last - 65535;
	f.ack.range[2].last = f.ack.range[1].first - 2;
	f.ack.range[2].first = f.ack.range[2].last;
	EXPECT_TRUE(ack_is_cut(&f, DBLP_CTL_MAX, 3));
	f.ack.range[1].first--;
	f.ack.range[2].last--;
	EXPECT_TRUE(ack_is_cut(&f, DBLP_CTL_MAX, 1));
	f.ack.range[1].first = --f.ack.range[1].last;
	EXPECT_TRUE(ack_is_cut(&f, DBLP_CTL_MAX, 1));

	/* Ranges beyond the maximum of a frame are cut, too */
	frame_init(&f, DBLP_FRAME_ACK, NULL);
	f.ack.n = U32_MAX;
	EXPECT_TRUE(ack_is_cut(&f, DBLP_CTL_MAX, DBLP_ACK_RANGES_MAX));
}

TEST(dblp_put_frame__ack_span)
{
	struct dblp_frame f = { .type = DBLP_FRAME_ACK, .ack.n = 2 }, back;
	u8 p[DBLP_CTL_MAX];
	u32 left;

	/* Half of the number space is too large to be expanded */
	f.ack.range[0].last = 0xfffffff0;
	f.ack.range[0].first = 0x10;
	f.ack.range[1].last = 0xe;
	f.ack.range[1].first = 0;
	ASSERT_EQ(p + 16, dblp_put_frame(p, p + sizeof(p), &f));
	ASSERT_EQ(DBLP_WIRE_OK, frame_parse(&back, p, 16, &left));
	EXPECT_EQ(1, back.ack.n);
	EXPECT_EQ(0xfffffff0, back.ack.range[0].last);
	EXPECT_EQ(0xfffffff0 - S32_MAX, back.ack.range[0].first);
}

TEST(dblp_get_frame__ack_random)
{
	struct prng r = { 3 };
	u32 i, k;

	for (i = 0; i < 5000; i++) {
		u32 pn = prng_u64(&r), left;
		struct dblp_frame f, back;
		u8 p[DBLP_CTL_MAX], *end;

		memset(&f, 0, sizeof(f));
		f.type = DBLP_FRAME_ACK;
		f.ack.delay_us = prng_any(&r);
		f.ack.n = 1 + prng_below(&r, DBLP_ACK_RANGES_MAX);
		for (k = 0; k < f.ack.n; k++) {
			f.ack.range[k].last = pn;
			pn -= prng_any(&r) % 65536;
			f.ack.range[k].first = pn;
			pn -= 2 + prng_any(&r) % 65536;
		}
		end = dblp_put_frame(p, p + sizeof(p), &f);
		ASSERT_EQ(DBLP_WIRE_OK, frame_parse(&back, p, end - p, &left));
		EXPECT_TRUE(frames_equal(&f, &back));
	}
}

TEST(dblp_get_frame__truncated)
{
	u8 p[DBLP_CTL_MAX];
	struct dblp_frame back;
	u32 type, len, left;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		frame_write(p, type);
		for (len = 0; len < frame_len[type]; len++)
			EXPECT_EQ(DBLP_WIRE_SHORT,
				  frame_parse(&back, p, len, &left));
	}
}

/* Each type of frame has one valid number of words; others are refused */
TEST(dblp_get_frame__words)
{
	u8 p[DBLP_CTL_MAX];
	struct dblp_frame back;
	u32 type, words, left;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		memset(p, 0, sizeof(p));
		frame_write(p, type);
		for (words = 0; words < 256; words++) {
			p[1] = words;
			EXPECT_EQ(4 * words == frame_len[type] ?
				  DBLP_WIRE_OK : DBLP_WIRE_FIELD,
				  frame_parse(&back, p, sizeof(p), &left));
		}
	}
}

TEST(dblp_get_frame__type)
{
	struct dblp_frame f;
	u32 type, left;

	for (type = 0; type < 256; type++) {
		u8 p[4] = { type, 1 };

		enum dblp_wire_error want = DBLP_WIRE_FIELD;

		/* A frame has at least two words */
		if (type == 0 || type >= __DBLP_FRAME_MAX)
			want = DBLP_WIRE_TYPE;
		EXPECT_EQ(want, frame_parse(&f, p, sizeof(p), &left));
	}
}

TEST(dblp_get_frame__arg)
{
	u8 p[DBLP_CTL_MAX];
	struct dblp_frame back;
	u32 type, arg, left;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		frame_write(p, type);
		for (arg = 0; arg < 65536; arg++) {
			bool ok = arg == 0;

			if (type == DBLP_FRAME_ACK)
				ok = arg == DBLP_ACK_RANGES_MAX - 1;
			else if (type == DBLP_FRAME_LOSSMAP)
				ok = arg == DBLP_LOSSMAP_WORDS_MAX;
			else if (type == DBLP_FRAME_CLOSE)
				ok = (arg & 0xff) == DBLP_REASON_DEADLINE ?
				     arg >> 8 <= DBLP_RCV_OVER_BUDGET :
				     arg == DBLP_REASON_BUDGET;
			else if (type == DBLP_FRAME_SHARE)
				ok = arg != 0;
			else if (type == DBLP_FRAME_AUTH)
				ok = true;
			else if (type == DBLP_FRAME_CANCEL)
				ok = arg <= 1;
			set_u16(p + 2, arg);
			ASSERT_EQ(ok ? DBLP_WIRE_OK : DBLP_WIRE_FIELD,
				  frame_parse(&back, p, frame_len[type],
					      &left));
		}
	}
}

/* Result of reading a frame with one 32-bit word changed */
static enum dblp_wire_error with_word(u8 type, u32 at, u32 v)
{
	u8 p[DBLP_CTL_MAX];
	struct dblp_frame back;
	u32 left;

	frame_write(p, type);
	set_u32(p + at, v);
	return frame_parse(&back, p, frame_len[type], &left);
}

#define EXPECT_WORD(want, type, at, v) \
	EXPECT_EQ(DBLP_WIRE_##want, with_word(DBLP_FRAME_##type, at, v))

TEST(dblp_get_frame__values)
{
	EXPECT_WORD(OK, FLOW, 8, DBLP_PPM);
	EXPECT_WORD(FIELD, FLOW, 8, DBLP_PPM + 1);
	EXPECT_WORD(FIELD, FLOW, 8, U32_MAX);

	/* The critical prefix may not exceed the message */
	EXPECT_WORD(OK, META, 8, 0);
	EXPECT_WORD(FIELD, META, 8, DBLP_MSG_MAX - 0x01020303);
	EXPECT_WORD(FIELD, META, 8, U32_MAX);
	EXPECT_WORD(OK, META, 12, U32_MAX);
	/* The piece must begin within the message */
	EXPECT_WORD(OK, META, 16, 0);
	EXPECT_WORD(FIELD, META, 16, DBLP_MSG_MAX);
	EXPECT_WORD(FIELD, META, 16, U32_MAX);
	EXPECT_WORD(FIELD, META, 20, 0);
	EXPECT_WORD(FIELD, META, 20, 0x01020304);
	EXPECT_WORD(FIELD, META, 20, DBLP_MSG_MAX + 1);

	EXPECT_WORD(OK, LOSSMAP, 8, 0);
	EXPECT_WORD(FIELD, LOSSMAP, 8, 1);
	EXPECT_WORD(FIELD, LOSSMAP, 8, 16);
	EXPECT_WORD(FIELD, LOSSMAP, 8, 0xffffffe0);

	/* 0x100 - 63 x 70000 - 65535, and at most half of the number space */
	EXPECT_WORD(OK, ACK, 12, 65535);
	EXPECT_WORD(OK, ACK, 12, 0x70000000);
	EXPECT_WORD(FIELD, ACK, 12, S32_MAX);
	EXPECT_WORD(FIELD, ACK, 12, 0x80000000);
	EXPECT_WORD(FIELD, ACK, 12, U32_MAX);
}

TEST(dblp_get_frame__close)
{
	static const struct {
		u32 reason, missing, segs, budget, flags;
		bool ok;
	} cases[] = {
		{ DBLP_REASON_COMPLETE, 0, 0, 0, 0, false },
		{ DBLP_REASON_COMPLETE, 1, 1, 0, 0, false },
		{ DBLP_REASON_COMPLETE, 0, 1, 0, 0, false },
		{ DBLP_REASON_COMPLETE, 0, 0, 0, 1, false },
		{ DBLP_REASON_BUDGET, 1, 1, 0, 0, true },
		{ DBLP_REASON_BUDGET, 1000, 1, DBLP_PPM, 0, true },
		{ DBLP_REASON_BUDGET, 1000, 1, DBLP_PPM + 1, 0, false },
		{ DBLP_REASON_BUDGET, 1000, 1, 1, 1, false },
		{ DBLP_REASON_BUDGET, DBLP_MSG_MAX, 9, 0, 0, true },
		{ DBLP_REASON_BUDGET, 0, 0, 0, 0, false },
		{ DBLP_REASON_BUDGET, 5, 0, 0, 0, false },
		{ DBLP_REASON_BUDGET, 5, 6, 0, 0, false },
		{ DBLP_REASON_BUDGET, DBLP_MSG_MAX + 1, 9, 0, 0, false },
		{ DBLP_REASON_DEADLINE, 5, 1, 0, 0, true },
		{ DBLP_REASON_DEADLINE, 5, 1, 0, 1, true },
		{ DBLP_REASON_DEADLINE, 5, 1, 0, 2, false },
		{ DBLP_REASON_DEADLINE, 0, 0, 0, 0, false },
		{ DBLP_REASON_CANCELLED, 0, 0, 0, 0, true },
		{ DBLP_REASON_CANCELLED, 0, 0, 0, 1, false },
		{ DBLP_REASON_CANCELLED, 0, 0, 1, 0, false },
		{ DBLP_REASON_CANCELLED, 5, 1, 0, 0, false },
		{ DBLP_REASON_CANCELLED, 5, 0, 0, 0, false },
		{ DBLP_REASON_CANCELLED, 0, 1, 0, 0, false },
		{ __DBLP_REASON_MAX, 5, 1, 0, 0, false },
	};
	struct dblp_frame f, back;
	u32 i, left;
	u8 p[20];

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool refused;

		f.type = DBLP_FRAME_CLOSE;
		f.close.msg_id = i;
		f.close.reason = cases[i].reason;
		f.close.missing = cases[i].missing;
		f.close.missing_segs = cases[i].segs;
		f.close.budget = cases[i].budget;
		f.close.flags = cases[i].flags;
		ASSERT_EQ(p + 20, dblp_put_frame(p, p + 20, &f));
		refused = frame_parse(&back, p, 20, &left) == DBLP_WIRE_FIELD;
		EXPECT_EQ(cases[i].ok, !refused);
	}
}

TEST(dblp_get_frame__budget)
{
	EXPECT_WORD(OK, BUDGET, 8, DBLP_PPM);
	EXPECT_WORD(FIELD, BUDGET, 8, DBLP_PPM + 1);
}

TEST(dblp_get_frame__cancel)
{
	static const struct {
		u32 len, offset, total;
		bool ok;
	} cases[] = {
		{ 1, 0, 1, true },
		{ 0, 0, 1, false },
		{ 2, 0, 1, false },
		{ 1, 1, 1, false },
		{ 1, 1, 2, true },
		{ 2, 1, 2, false },
		{ DBLP_MSG_MAX, 0, DBLP_MSG_MAX, true },
		{ 1, 0, DBLP_MSG_MAX + 1, false },
		{ 1, DBLP_MSG_MAX - 1, DBLP_MSG_MAX, true },
		{ U32_MAX, 2, 3, false },
		{ 1, U32_MAX, 3, false },
	};
	struct dblp_frame f = { .type = DBLP_FRAME_CANCEL }, back;
	u32 i, left;
	u8 p[28];

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		f.cancel.len = cases[i].len;
		f.cancel.offset = cases[i].offset;
		f.cancel.total = cases[i].total;
		ASSERT_EQ(p + 28, dblp_put_frame(p, p + 28, &f));
		EXPECT_EQ(cases[i].ok ? DBLP_WIRE_OK : DBLP_WIRE_FIELD,
			  frame_parse(&back, p, 28, &left));
	}
}

TEST(dblp_get_frame__one_after_another)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX], p[2 * DBLP_CTL_MAX], *end = p;
	struct dblp_frame f, back;
	const u8 *at = p;
	u32 type, len;

	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		frame_init(&f, type, bits);
		end = dblp_put_frame(end, p + sizeof(p), &f);
		ASSERT_NE(NULL, end);
	}
	len = end - p;
	for (type = 1; type < __DBLP_FRAME_MAX; type++) {
		frame_init(&f, type, bits);
		memset(&back, 0, sizeof(back));
		ASSERT_EQ(DBLP_WIRE_OK, dblp_get_frame(&back, &at, &len));
		EXPECT_TRUE(frames_equal(&f, &back));
	}
	EXPECT_EQ(0, len);
	EXPECT_EQ(end, at);
}

TEST_HARNESS_MAIN
