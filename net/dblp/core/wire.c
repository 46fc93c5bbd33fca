// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packet formats: the only place that interprets the bytes of a packet. All
 * fields are big-endian and read byte by byte, so packets need not be aligned.
 * A packet that Documentation/protocol.rst does not allow is refused, so that
 * later versions can use the reserved fields.
 */
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "spray.h"
#include "values.h"
#include "wire.h"

/* Smallest number of words of each frame; ACK and LOSSMAP can have more */
enum dblp_frame_words {
	DBLP_ACK_WORDS		= 4,
	DBLP_ECN_WORDS		= 4,
	DBLP_FLOW_WORDS		= 5,
	DBLP_CLOSE_WORDS	= 5,
	DBLP_LOSSMAP_WORDS	= 3,
	DBLP_META_WORDS		= DBLP_META_LEN / 4,
	DBLP_FIN_WORDS		= 2,
	DBLP_PING_WORDS		= 3,
	DBLP_SHARE_WORDS	= 2,
	DBLP_ARRIVAL_WORDS	= 2,
	DBLP_BUDGET_WORDS	= 3,
	DBLP_AUTH_WORDS		= DBLP_AUTH_LEN / 4,
	DBLP_CANCEL_WORDS	= 7,
};

/* More segments than the largest message has with the smallest segments */
#define DBLP_SEGS_MAX	(DBLP_MSG_MAX / DBLP_SEG_MIN + 1)

static u16 get_u16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get_u32(const u8 *p)
{
	return (u32)get_u16(p) << 16 | get_u16(p + 2);
}

static u8 *put_u16(u8 *p, u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
	return p + 2;
}

static u8 *put_u32(u8 *p, u32 v)
{
	return put_u16(put_u16(p, v >> 16), v);
}

/**
 * dblp_get_u64() - read 8 bytes
 * @p: the bytes, most significant first
 *
 * Return: their value.
 */
u64 dblp_get_u64(const u8 *p)
{
	return (u64)get_u32(p) << 32 | get_u32(p + 4);
}

/**
 * dblp_put_u64() - write 8 bytes
 * @p: the bytes, most significant first
 * @v: their value
 *
 * Return: the byte after them.
 */
u8 *dblp_put_u64(u8 *p, u64 v)
{
	return put_u32(put_u32(p, v >> 32), v);
}

/* Frames that a packet may have: none, an AUTH frame, or any */
enum dblp_ctl_kind { DBLP_CTL_NONE, DBLP_CTL_AUTH, DBLP_CTL_ANY };

/*
 * Bytes of each type of packet, without its frames. Only DATA, PROBE and
 * VERSION, the list of versions, have a variable length.
 */
static const struct {
	u16	least;
	u16	most;
	u8	ctl;
} dblp_pkt_len[__DBLP_PKT_MAX] = {
	[DBLP_PKT_INIT]		= { DBLP_INIT_LEN, DBLP_INIT_LEN, DBLP_CTL_NONE },
	[DBLP_PKT_INIT_ACK]	= { DBLP_INIT_ACK_LEN, DBLP_INIT_ACK_LEN,
				    DBLP_CTL_NONE },
	[DBLP_PKT_COOKIE_ECHO]	= { DBLP_ECHO_LEN, DBLP_ECHO_LEN,
				    DBLP_CTL_AUTH },
	[DBLP_PKT_COOKIE_ACK]	= { DBLP_COOKIE_ACK_LEN, DBLP_COOKIE_ACK_LEN,
				    DBLP_CTL_AUTH },
	[DBLP_PKT_VERSION]	= { DBLP_HDR_LEN + 8, DBLP_INIT_LEN, DBLP_CTL_NONE },
	[DBLP_PKT_RST]		= { DBLP_RST_LEN, DBLP_RST_LEN, DBLP_CTL_AUTH },
	[DBLP_PKT_ACK]		= { DBLP_HDR_LEN, DBLP_HDR_LEN, DBLP_CTL_ANY },
	[DBLP_PKT_CTRL]		= { DBLP_HDR_LEN, DBLP_HDR_LEN, DBLP_CTL_ANY },
	[DBLP_PKT_DATA]		= { DBLP_HDR_LEN + DBLP_DATA_HDR_LEN, U16_MAX,
				    DBLP_CTL_ANY },
	[DBLP_PKT_PROBE]	= { DBLP_HDR_LEN, U16_MAX, DBLP_CTL_AUTH },
};

/**
 * dblp_check_len() - check the length of a packet
 * @h: its header, with a valid type
 * @len: bytes of the packet
 *
 * dblp_get_data() checks the length of the segment of a DATA packet.
 *
 * Return: DBLP_WIRE_OK, or why the packet is refused.
 */
enum dblp_wire_error dblp_check_len(const struct dblp_hdr *h, u32 len)
{
	u8 ctl = dblp_pkt_len[h->type].ctl;

	if ((ctl == DBLP_CTL_NONE && h->ctl_len) ||
	    (ctl == DBLP_CTL_AUTH && h->ctl_len &&
	     h->ctl_len != DBLP_AUTH_LEN))
		return DBLP_WIRE_FIELD;
	if (len < dblp_pkt_len[h->type].least + h->ctl_len)
		return DBLP_WIRE_SHORT;
	return len > dblp_pkt_len[h->type].most + h->ctl_len ?
	       DBLP_WIRE_TRAILING : DBLP_WIRE_OK;
}

/* For DATA, dblp_get_data() checks @seg_size */
static bool seg_size_is_sane(const struct dblp_hdr *h)
{
	switch (h->type) {
	case DBLP_PKT_DATA:
		return true;
	case DBLP_PKT_PROBE:
		return h->seg_size < DBLP_SPRAY_MAX;
	case DBLP_PKT_COOKIE_ECHO:
		return h->seg_size != 1 && h->seg_size <= DBLP_SPRAY_MAX;
	default:
		return !h->seg_size;
	}
}

/**
 * dblp_get_hdr() - parse the header of a packet
 * @h: set to the header. For a packet of another version only @type and @dcid
 *	are set, from the positions that they have in this version
 * @p: first byte of the packet, DBLP_HDR_LEN bytes of it must be readable
 *	unless @len is less
 * @len: bytes of the whole packet
 *
 * Return: DBLP_WIRE_OK, or why the packet is refused.
 */
enum dblp_wire_error dblp_get_hdr(struct dblp_hdr *h, const u8 *p, u32 len)
{
	memset(h, 0, sizeof(*h));
	if (len < DBLP_HDR_LEN)
		return DBLP_WIRE_SHORT;
	h->type = p[0] & 0xf;
	h->dcid = dblp_get_u64(p + 8);
	if (p[0] >> 4 != DBLP_VERSION)
		return DBLP_WIRE_VERSION;
	if (!h->type || h->type >= __DBLP_PKT_MAX)
		return DBLP_WIRE_TYPE;
	h->ctl_len = p[1] * 4;
	h->seg_size = get_u16(p + 2);
	h->pn = get_u32(p + 4);
	if (h->pn && !dblp_numbered(h->type))
		return DBLP_WIRE_FIELD;
	if (!seg_size_is_sane(h))
		return DBLP_WIRE_FIELD;
	return dblp_check_len(h, len);
}

/**
 * dblp_put_hdr() - write the header of a packet
 * @p: DBLP_HDR_LEN bytes
 * @h: the header; @ctl_len must be a multiple of 4, at most DBLP_CTL_MAX
 *
 * Return: the byte after it.
 */
u8 *dblp_put_hdr(u8 *p, const struct dblp_hdr *h)
{
	*p++ = DBLP_VERSION << 4 | h->type;
	*p++ = h->ctl_len / 4;
	p = put_u16(p, h->seg_size);
	p = put_u32(p, h->pn);
	return dblp_put_u64(p, h->dcid);
}

static bool get_attr(struct dblp_data *d, u32 attr)
{
	d->budget = attr >> DBLP_ATTR_BUDGET_SHIFT;
	d->policy = attr >> DBLP_ATTR_POLICY_SHIFT & 3;
	d->phase = attr >> DBLP_ATTR_PHASE_SHIFT & 7;
	d->repair = attr & DBLP_ATTR_REPAIR;
	d->meta = attr & DBLP_ATTR_META;
	d->zeros = attr & DBLP_ATTR_ZEROS;

	return d->budget <= DBLP_PPM && d->policy < __DBLP_POLICY_MAX &&
	       !(attr >> DBLP_ATTR_CLASS_SHIFT & 3) &&
	       !(attr & DBLP_ATTR_RESERVED);
}

static bool segment_is_sane(const struct dblp_data *d, u32 seg_size)
{
	if (!d->msg_len || d->msg_len > DBLP_MSG_MAX)
		return false;
	if (!seg_size || seg_size > DBLP_SEG_MAX)
		return false;
	if (d->msg_len > seg_size && seg_size < DBLP_SEG_MIN)
		return false;
	return d->offset < d->msg_len && d->offset % seg_size == 0;
}

/* Refuse words of a zero map that lie beyond the end of the message */
static enum dblp_wire_error check_zeromap(const struct dblp_data *d,
					  u32 seg_size)
{
	u32 first = d->offset / seg_size, n = (d->msg_len - 1) / seg_size + 1;

	if (first % 32)
		return DBLP_WIRE_FIELD;
	if (d->seg_len % 4)
		return DBLP_WIRE_SHORT;
	return d->seg_len / 4 > (n - first - 1) / 32 + 1 ? DBLP_WIRE_TRAILING :
							 DBLP_WIRE_OK;
}

/**
 * dblp_get_data() - parse the data header of a DATA packet
 * @d: set to the data header
 * @h: the packet's header
 * @p: first byte after the header
 * @len: bytes that are readable at @p, perhaps not the whole packet
 * @pkt_len: bytes of the whole packet, including the header
 *
 * The control frames follow the data header, then the segment or zero map,
 * which dblp_zeromap_valid() checks.
 *
 * Return: DBLP_WIRE_OK, or why the packet is refused.
 */
enum dblp_wire_error dblp_get_data(struct dblp_data *d,
				   const struct dblp_hdr *h,
				   const u8 *p, u32 len, u32 pkt_len)
{
	u32 before = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + h->ctl_len;
	u32 want;

	memset(d, 0, sizeof(*d));
	if (len < DBLP_DATA_HDR_LEN || pkt_len <= before)
		return DBLP_WIRE_SHORT;
	d->msg_id = get_u32(p);
	d->offset = get_u32(p + 4);
	d->msg_len = get_u32(p + 8);
	if (!get_attr(d, get_u32(p + 12)) || !segment_is_sane(d, h->seg_size))
		return DBLP_WIRE_FIELD;

	d->seg_len = pkt_len - before;
	if (d->zeros)
		return check_zeromap(d, h->seg_size);
	want = min_t(u32, h->seg_size, d->msg_len - d->offset);
	if (d->seg_len < want)
		return DBLP_WIRE_SHORT;
	return d->seg_len > want ? DBLP_WIRE_TRAILING : DBLP_WIRE_OK;
}

/**
 * dblp_put_data() - write the data header of a DATA packet
 * @p: DBLP_DATA_HDR_LEN bytes
 * @d: the segment; @seg_len is not written, it follows from the other fields
 *
 * Return: the byte after it.
 */
u8 *dblp_put_data(u8 *p, const struct dblp_data *d)
{
	u32 attr = d->budget << DBLP_ATTR_BUDGET_SHIFT |
		   (u32)d->policy << DBLP_ATTR_POLICY_SHIFT |
		   (u32)d->phase << DBLP_ATTR_PHASE_SHIFT;

	if (d->repair)
		attr |= DBLP_ATTR_REPAIR;
	if (d->meta)
		attr |= DBLP_ATTR_META;
	if (d->zeros)
		attr |= DBLP_ATTR_ZEROS;
	p = put_u32(p, d->msg_id);
	p = put_u32(p, d->offset);
	p = put_u32(p, d->msg_len);
	return put_u32(p, attr);
}

/*
 * Packet numbers are the low 32 bits and may wrap within an ACK. The ranges
 * span less than half of the number space; otherwise the numbers could not be
 * expanded.
 */
static bool get_ack(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	u32 last = get_u32(p + 4), span = get_u32(p + 12), i;

	if (arg >= DBLP_ACK_RANGES_MAX || words != DBLP_ACK_WORDS + arg ||
	    span > S32_MAX)
		return false;
	f->ack.delay_us = get_u32(p + 8);
	f->ack.n = arg + 1;
	f->ack.range[0].last = last;
	f->ack.range[0].first = last - span;
	p += 4 * DBLP_ACK_WORDS;
	for (i = 1; i <= arg; i++, p += 4) {
		span += get_u16(p) + 2;
		f->ack.range[i].last = last - span;
		span += get_u16(p + 2);
		f->ack.range[i].first = last - span;
	}
	return span <= S32_MAX;
}

static bool get_close(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	f->close.reason = arg & 0xff;
	f->close.flags = arg >> 8;
	/* A complete message needs no CLOSE: its segments are acknowledged */
	if (words != DBLP_CLOSE_WORDS ||
	    f->close.reason == DBLP_REASON_COMPLETE ||
	    f->close.reason >= __DBLP_REASON_MAX ||
	    f->close.flags & ~DBLP_RCV_OVER_BUDGET)
		return false;
	f->close.msg_id = get_u32(p + 4);
	f->close.missing = get_u32(p + 8);
	f->close.missing_segs = get_u32(p + 12);
	f->close.budget = get_u32(p + 16);
	if (f->close.budget > DBLP_PPM ||
	    (f->close.flags && f->close.reason != DBLP_REASON_DEADLINE))
		return false;
	if (f->close.reason == DBLP_REASON_CANCELLED)
		return !f->close.missing && !f->close.missing_segs &&
		       !f->close.budget;
	return f->close.missing_segs && f->close.missing <= DBLP_MSG_MAX &&
	       f->close.missing_segs <= f->close.missing;
}

static bool get_lossmap(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	if (!arg || arg > DBLP_LOSSMAP_WORDS_MAX ||
	    words != DBLP_LOSSMAP_WORDS + arg)
		return false;
	f->lossmap.msg_id = get_u32(p + 4);
	f->lossmap.first = get_u32(p + 8);
	f->lossmap.words = arg;
	f->lossmap.bits = p + 4 * DBLP_LOSSMAP_WORDS;
	return f->lossmap.first % 32 == 0 && f->lossmap.first < DBLP_SEGS_MAX;
}

/* The caller checks the fields against the data header */
static bool get_meta(struct dblp_frame *f, const u8 *p)
{
	f->meta.msg_id = get_u32(p + 4);
	f->meta.critical = get_u32(p + 8);
	f->meta.deadline = get_u32(p + 12);
	f->meta.offset = get_u32(p + 16);
	f->meta.total = get_u32(p + 20);
	f->meta.tag = dblp_get_u64(p + 24);
	return f->meta.total <= DBLP_MSG_MAX &&
	       f->meta.offset < f->meta.total &&
	       f->meta.critical <= f->meta.total - f->meta.offset;
}

static bool get_share(struct dblp_frame *f, const u8 *p, u32 arg)
{
	f->share.n = arg;
	f->share.all = get_u32(p + 4);
	return arg;
}

static bool get_auth(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	if (words != DBLP_AUTH_WORDS)
		return false;
	f->auth.key = arg;
	f->auth.number = get_u32(p + 4);
	f->auth.tag = p + DBLP_AUTH_LEN - DBLP_TAG_LEN;
	return true;
}

static bool get_cancel(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	if (words != DBLP_CANCEL_WORDS || arg > 1)
		return false;
	f->cancel.started = arg;
	f->cancel.msg_id = get_u32(p + 4);
	f->cancel.len = get_u32(p + 8);
	f->cancel.offset = get_u32(p + 12);
	f->cancel.total = get_u32(p + 16);
	f->cancel.tag = dblp_get_u64(p + 20);
	return f->cancel.len && f->cancel.total <= DBLP_MSG_MAX &&
	       f->cancel.offset < f->cancel.total &&
	       f->cancel.len <= f->cancel.total - f->cancel.offset;
}

/* Parse a frame of fixed length whose argument is reserved, 0 */
static bool get_plain(struct dblp_frame *f, const u8 *p, u32 words, u32 arg)
{
	if (arg)
		return false;
	switch (f->type) {
	case DBLP_FRAME_ECN:
		if (words != DBLP_ECN_WORDS)
			return false;
		f->ecn.ect0 = get_u32(p + 4);
		f->ecn.ect1 = get_u32(p + 8);
		f->ecn.ce = get_u32(p + 12);
		return true;
	case DBLP_FRAME_FLOW:
		if (words != DBLP_FLOW_WORDS)
			return false;
		f->flow.max_msg = get_u32(p + 4);
		f->flow.cap = get_u32(p + 8);
		f->flow.max_data = dblp_get_u64(p + 12);
		return f->flow.cap <= DBLP_PPM;
	case DBLP_FRAME_META:
		if (words != DBLP_META_WORDS)
			return false;
		return get_meta(f, p);
	case DBLP_FRAME_FIN:
		if (words != DBLP_FIN_WORDS)
			return false;
		f->fin.end = get_u32(p + 4);
		return true;
	case DBLP_FRAME_BUDGET:
		if (words != DBLP_BUDGET_WORDS)
			return false;
		f->budget.msg_id = get_u32(p + 4);
		f->budget.ppm = get_u32(p + 8);
		return f->budget.ppm <= DBLP_PPM;
	case DBLP_FRAME_ARRIVAL:
		if (words != DBLP_ARRIVAL_WORDS)
			return false;
		f->arrival.at = get_u32(p + 4);
		return true;
	default:
		if (words != DBLP_PING_WORDS)
			return false;
		f->ping.wanted = dblp_get_u64(p + 4);
		return true;
	}
}

/**
 * dblp_get_frame() - parse one control frame
 * @f: set to the frame
 * @p: first byte of the frame; set to the byte after it
 * @len: bytes of control frames at @p; reduced by those of the frame
 *
 * Return: DBLP_WIRE_OK, or why the frame is refused; @p and @len do not change
 * then.
 */
enum dblp_wire_error dblp_get_frame(struct dblp_frame *f, const u8 **p,
				    u32 *len)
{
	u32 words, arg;
	bool ok;

	if (*len < 4)
		return DBLP_WIRE_SHORT;
	f->type = (*p)[0];
	words = (*p)[1];
	arg = get_u16(*p + 2);
	if (!f->type || f->type >= __DBLP_FRAME_MAX)
		return DBLP_WIRE_TYPE;
	if (!words)
		return DBLP_WIRE_FIELD;
	if (4 * words > *len)
		return DBLP_WIRE_SHORT;

	if (f->type == DBLP_FRAME_ACK)
		ok = words >= DBLP_ACK_WORDS && get_ack(f, *p, words, arg);
	else if (f->type == DBLP_FRAME_CLOSE)
		ok = get_close(f, *p, words, arg);
	else if (f->type == DBLP_FRAME_LOSSMAP)
		ok = get_lossmap(f, *p, words, arg);
	else if (f->type == DBLP_FRAME_SHARE)
		ok = words == DBLP_SHARE_WORDS && get_share(f, *p, arg);
	else if (f->type == DBLP_FRAME_AUTH)
		ok = get_auth(f, *p, words, arg);
	else if (f->type == DBLP_FRAME_CANCEL)
		ok = get_cancel(f, *p, words, arg);
	else
		ok = get_plain(f, *p, words, arg);
	if (!ok)
		return DBLP_WIRE_FIELD;
	*p += 4 * words;
	*len -= 4 * words;
	return DBLP_WIRE_OK;
}

static u8 *put_first_word(u8 *p, u8 type, u32 words, u32 arg)
{
	*p++ = type;
	*p++ = words;
	return put_u16(p, arg);
}

/* Ranges that do not fit are left out, lowest first: a later ACK has them */
static u8 *put_ack(u8 *p, const u8 *end, const struct dblp_frame *f)
{
	u32 room = (end - p) / 4 - DBLP_ACK_WORDS;
	u32 n = min_t(u32, f->ack.n, DBLP_ACK_RANGES_MAX);
	u32 largest = f->ack.range[0].last, first, i;
	u8 *start = p;

	first = f->ack.range[0].first;
	if (largest - first > S32_MAX)
		first = largest - S32_MAX;
	p = put_u32(p + 4, largest);
	p = put_u32(p, f->ack.delay_us);
	p = put_u32(p, largest - first);
	for (i = 1; i < n && i <= room; i++) {
		u32 gap = first - f->ack.range[i].last - 2;
		u32 len = f->ack.range[i].last - f->ack.range[i].first;

		if (gap > U16_MAX || len > U16_MAX ||
		    largest - f->ack.range[i].first > S32_MAX)
			break;
		p = put_u16(put_u16(p, gap), len);
		first = f->ack.range[i].first;
	}
	put_first_word(start, DBLP_FRAME_ACK, (p - start) / 4, i - 1);
	return p;
}

static u8 *put_lossmap(u8 *p, const struct dblp_frame *f)
{
	u32 words = f->lossmap.words;

	p = put_first_word(p, DBLP_FRAME_LOSSMAP, DBLP_LOSSMAP_WORDS + words,
			   words);
	p = put_u32(p, f->lossmap.msg_id);
	p = put_u32(p, f->lossmap.first);
	memcpy(p, f->lossmap.bits, 4 * words);
	return p + 4 * words;
}

/* Smallest number of words of a frame, 0 if the frame is invalid */
static u32 frame_words(const struct dblp_frame *f)
{
	switch (f->type) {
	case DBLP_FRAME_ACK:
		return f->ack.n ? DBLP_ACK_WORDS : 0;
	case DBLP_FRAME_ECN:
		return DBLP_ECN_WORDS;
	case DBLP_FRAME_FLOW:
		return DBLP_FLOW_WORDS;
	case DBLP_FRAME_CLOSE:
		return DBLP_CLOSE_WORDS;
	case DBLP_FRAME_LOSSMAP:
		if (!f->lossmap.words ||
		    f->lossmap.words > DBLP_LOSSMAP_WORDS_MAX)
			return 0;
		return DBLP_LOSSMAP_WORDS + f->lossmap.words;
	case DBLP_FRAME_META:
		return DBLP_META_WORDS;
	case DBLP_FRAME_FIN:
		return DBLP_FIN_WORDS;
	case DBLP_FRAME_PING:
		return DBLP_PING_WORDS;
	case DBLP_FRAME_SHARE:
		return f->share.n ? DBLP_SHARE_WORDS : 0;
	case DBLP_FRAME_BUDGET:
		return DBLP_BUDGET_WORDS;
	case DBLP_FRAME_AUTH:
		return DBLP_AUTH_WORDS;
	case DBLP_FRAME_CANCEL:
		return DBLP_CANCEL_WORDS;
	case DBLP_FRAME_ARRIVAL:
		return DBLP_ARRIVAL_WORDS;
	default:
		return 0;
	}
}

static u32 frame_arg(const struct dblp_frame *f)
{
	if (f->type == DBLP_FRAME_CLOSE)
		return f->close.flags << 8 | f->close.reason;
	if (f->type == DBLP_FRAME_AUTH)
		return f->auth.key;
	if (f->type == DBLP_FRAME_CANCEL)
		return f->cancel.started;
	return f->type == DBLP_FRAME_SHARE ? f->share.n : 0;
}

/**
 * dblp_needs_ack() - must a frame of this type be acknowledged?
 * @type: &enum dblp_frame_type
 *
 * Return: true if so. Such a frame is not allowed in an ACK packet, which is
 * never acknowledged.
 */
bool dblp_needs_ack(u8 type)
{
	return type == DBLP_FRAME_LOSSMAP || type == DBLP_FRAME_FIN ||
	       type == DBLP_FRAME_PING || type == DBLP_FRAME_BUDGET ||
	       type == DBLP_FRAME_CANCEL;
}

/**
 * dblp_put_frame() - write one control frame
 * @p: first byte to write
 * @end: byte after the last that may be written
 * @f: the frame. Ranges of an ACK are written from the largest packet number
 *	on, as many as fit
 *
 * Return: the byte after the frame; NULL, with nothing written, if it does not
 * fit or is invalid.
 */
u8 *dblp_put_frame(u8 *p, const u8 *end, const struct dblp_frame *f)
{
	u32 words = frame_words(f);

	if (!words || p >= end || (size_t)(end - p) < 4 * words)
		return NULL;
	if (f->type == DBLP_FRAME_ACK)
		return put_ack(p, end, f);
	if (f->type == DBLP_FRAME_LOSSMAP)
		return put_lossmap(p, f);

	p = put_first_word(p, f->type, words, frame_arg(f));
	switch (f->type) {
	case DBLP_FRAME_ECN:
		p = put_u32(put_u32(p, f->ecn.ect0), f->ecn.ect1);
		return put_u32(p, f->ecn.ce);
	case DBLP_FRAME_FLOW:
		p = put_u32(put_u32(p, f->flow.max_msg), f->flow.cap);
		return dblp_put_u64(p, f->flow.max_data);
	case DBLP_FRAME_CLOSE:
		p = put_u32(put_u32(p, f->close.msg_id), f->close.missing);
		return put_u32(put_u32(p, f->close.missing_segs),
			       f->close.budget);
	case DBLP_FRAME_META:
		p = put_u32(put_u32(p, f->meta.msg_id), f->meta.critical);
		p = put_u32(put_u32(p, f->meta.deadline), f->meta.offset);
		p = put_u32(p, f->meta.total);
		return dblp_put_u64(p, f->meta.tag);
	case DBLP_FRAME_FIN:
		return put_u32(p, f->fin.end);
	case DBLP_FRAME_PING:
		return dblp_put_u64(p, f->ping.wanted);
	case DBLP_FRAME_SHARE:
		return put_u32(p, f->share.all);
	case DBLP_FRAME_BUDGET:
		return put_u32(put_u32(p, f->budget.msg_id), f->budget.ppm);
	case DBLP_FRAME_AUTH:
		p = put_u32(p, f->auth.number);
		memcpy(p, f->auth.tag, DBLP_TAG_LEN);
		return p + DBLP_TAG_LEN;
	case DBLP_FRAME_CANCEL:
		p = put_u32(put_u32(p, f->cancel.msg_id), f->cancel.len);
		p = put_u32(put_u32(p, f->cancel.offset), f->cancel.total);
		return dblp_put_u64(p, f->cancel.tag);
	case DBLP_FRAME_ARRIVAL:
		return put_u32(p, f->arrival.at);
	default:
		return p;
	}
}

/**
 * dblp_auth_at() - offset of the AUTH frame in a packet
 * @h: header of the packet
 * @len: bytes of the packet
 *
 * An AUTH frame is the last frame. dblp_get_frame() tells whether the bytes
 * there are one.
 *
 * Return: the offset, or 0 if the packet is too short for an AUTH frame.
 */
u32 dblp_auth_at(const struct dblp_hdr *h, u32 len)
{
	u32 end = DBLP_HDR_LEN + h->ctl_len;

	if (h->ctl_len < DBLP_AUTH_LEN)
		return 0;
	switch (h->type) {
	case DBLP_PKT_DATA:
		end += DBLP_DATA_HDR_LEN;
		break;
	case DBLP_PKT_COOKIE_ECHO:
	case DBLP_PKT_COOKIE_ACK:
	case DBLP_PKT_RST:
		end = len;
		break;
	}
	return end - DBLP_AUTH_LEN;
}

/**
 * dblp_get_params() - parse the parameters of a handshake
 * @a: set to the parameters
 * @p: DBLP_PARAMS_LEN bytes
 *
 * Return: DBLP_WIRE_OK, or why they are refused.
 */
enum dblp_wire_error dblp_get_params(struct dblp_params *a, const u8 *p)
{
	a->cap = get_u32(p) & 0xfffff;
	a->features = get_u32(p) >> 20;
	a->max_msg = get_u32(p + 4);
	a->window = get_u32(p + 8);
	a->max_data = get_u32(p + 12);
	a->msg_max = get_u32(p + 16);
	a->rtt_us = get_u32(p + 20);
	if (a->cap > DBLP_PPM || !a->msg_max || a->msg_max > DBLP_MSG_MAX ||
	    a->max_data > a->window || a->rtt_us > DBLP_PARAMS_RTT_MAX)
		return DBLP_WIRE_FIELD;
	return DBLP_WIRE_OK;
}

/**
 * dblp_put_params() - write the parameters of a handshake
 * @p: DBLP_PARAMS_LEN bytes
 * @a: the parameters
 *
 * Return: the byte after them.
 */
u8 *dblp_put_params(u8 *p, const struct dblp_params *a)
{
	p = put_u32(put_u32(p, (u32)a->features << 20 | a->cap), a->max_msg);
	p = put_u32(put_u32(p, a->window), a->max_data);
	return put_u32(put_u32(p, a->msg_max), a->rtt_us);
}

/**
 * dblp_get_cookie() - parse a cookie; the caller checks its MAC
 * @c: set to the cookie
 * @p: DBLP_COOKIE_LEN bytes
 */
void dblp_get_cookie(struct dblp_cookie *c, const u8 *p)
{
	c->scid = dblp_get_u64(p);
	c->features = get_u16(p + 8);
	c->born_ms = (u64)get_u16(p + 10) << 32 | get_u32(p + 12);
	c->mac = dblp_get_u64(p + 16);
}

/**
 * dblp_put_cookie() - write a cookie
 * @p: DBLP_COOKIE_LEN bytes
 * @c: the cookie
 *
 * Return: the byte after it.
 */
u8 *dblp_put_cookie(u8 *p, const struct dblp_cookie *c)
{
	p = dblp_put_u64(p, c->scid);
	p = dblp_put_u64(p, (u64)c->features << 48 | c->born_ms);
	return dblp_put_u64(p, c->mac);
}
