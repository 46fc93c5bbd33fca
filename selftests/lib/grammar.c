// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "grammar.h"

#include <linux/dblp.h>
#include <stddef.h>
#include <string.h>

#include "values.h"

/* As in net/dblp/dblp.h: credit for a message, in addition to its bytes */
#define MSG_COST	1024
#define DATA_HDR	(DBLP_HDR_LEN + DBLP_DATA_HDR_LEN)
/* Bytes; a message that the other end may refuse */
#define LARGE		(1 << 20)

u32 talker_below(struct talker *t, u32 n)
{
	return random_next(t->random) % n;
}

static bool once_in(struct talker *t, u32 n)
{
	return n && !talker_below(t, n);
}

/* Random number: small, at an edge, or any */
static u32 any(struct talker *t)
{
	static const u32 edges[] = {
		0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 119, 120, 121, 224, 255,
		256, 65527, 65528, 65535, 65536, 1000000, 1000001, 0x7fff0000,
		0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
	};
	u32 r = random_next(t->random) << 1 ^ random_next(t->random);

	return once_in(t, 2) ? r >> talker_below(t, 32) :
			       edges[r % (sizeof(edges) / sizeof(*edges))];
}

void talker_begin(struct talker *t, u8 fill)
{
	size_t from = offsetof(struct talker, fill);

	memset((u8 *)t + from, 0, offsetof(struct talker, n_spoiled) - from);
	t->fill = fill;
}

/*
 * Received packets
 */
static struct incoming *find_in(struct talker *t, u32 id)
{
	u32 i;

	for (i = 0; i < IN_MAX && i < t->n_in; i++)
		if (t->in[i].d.msg_id == id)
			return &t->in[i];
	return NULL;
}

static void see_data(struct talker *t, const struct packet *p)
{
	struct dblp_data d = packet_data(p);
	struct incoming *in = find_in(t, d.msg_id);
	u32 len = p->byte[1] * 4;
	const u8 *at = p->byte + DATA_HDR;
	struct dblp_frame f;

	if (!in) {
		in = &t->in[t->n_in++ % IN_MAX];
		memset(in, 0, sizeof(*in));
	}
	in->d = d;
	in->seg_size = p->byte[2] << 8 | p->byte[3];
	while (len && dblp_get_frame(&f, &at, &len) == DBLP_WIRE_OK)
		if (f.type == DBLP_FRAME_META)
			in->critical = f.meta.critical;
}

/* The other end has closed a message; sometimes ignore this */
static void see_close(struct talker *t, const struct dblp_frame *f)
{
	u32 i;

	for (i = 0; i < OUT_MAX; i++)
		if (t->out[i].d.msg_id == f->close.msg_id && !once_in(t, 8))
			t->out[i].next = t->out[i].segs;
}

static void see_frames(struct talker *t, const u8 *at, u32 len)
{
	struct incoming *in;
	struct dblp_frame f;

	while (len && dblp_get_frame(&f, &at, &len) == DBLP_WIRE_OK) {
		if (f.type == DBLP_FRAME_CLOSE)
			see_close(t, &f);
		in = f.type == DBLP_FRAME_CANCEL ?
		     find_in(t, f.cancel.msg_id) : NULL;
		if (in)
			in->cancelled = true;
	}
}

static void see(struct peer *peer, const struct packet *p)
{
	struct talker *t = (struct talker *)((u8 *)peer -
					     offsetof(struct talker, peer));
	struct dblp_hdr h;

	if (dblp_get_hdr(&h, p->byte, p->len) || h.dcid != peer->cid)
		return;
	t->over |= h.type == DBLP_PKT_RST;
	see_frames(t, p->byte + (h.type == DBLP_PKT_DATA ? DATA_HDR :
				 DBLP_HDR_LEN), h.ctl_len);
	if (!dblp_numbered(h.type))
		return;
	/* Simulate loss of some packets */
	t->got[h.pn % PNS] = !once_in(t, 20);
	t->got[(h.pn + PNS / 2) % PNS] = false;
	if (h.type == DBLP_PKT_DATA)
		see_data(t, p);
}

void talker_listen(struct talker *t)
{
	t->peer.seen = see;
	t->peer.flow.flow.max_msg = t->peer.theirs.max_msg;
	t->peer.flow.flow.max_data = t->peer.theirs.max_data;
}

/*
 * Frames
 */
static bool ack_frame(struct talker *t, struct dblp_frame *f)
{
	u32 pn = t->peer.largest, n = 0, end;

	if (!pn)
		return false;
	end = pn > 1000 ? pn - 1000 : 0;
	/* Sometimes not the latest packet */
	pn -= once_in(t, 8) ? talker_below(t, 20) % pn : 0;
	f->ack.delay_us = once_in(t, 4) ? any(t) : 0;
	while (pn > end && n < DBLP_ACK_RANGES_MAX) {
		while (pn > end && !t->got[(pn - 1) % PNS])
			pn--;
		if (pn == end)
			break;
		f->ack.range[n].last = pn - 1;
		while (pn > end && t->got[(pn - 1) % PNS])
			pn--;
		f->ack.range[n++].first = pn;
	}
	f->ack.n = n;
	return n;
}

static u32 in_segs(const struct incoming *in)
{
	return (in->d.msg_len - 1) / in->seg_size + 1;
}

/* Pick a message of the other end that may be closed with bytes missing */
static struct incoming *some_in(struct talker *t, bool closed)
{
	struct incoming *in;
	u32 back;

	if (!t->n_in)
		return NULL;
	/* Prefer the latest, which are most likely still open */
	back = talker_below(t, once_in(t, 2) ? 3 : IN_MAX);
	in = &t->in[(t->n_in - 1 - back % t->n_in) % IN_MAX];
	if (in->closed != closed || in->cancelled || !in->d.budget ||
	    in->d.policy == DBLP_POLICY_FULL || in_segs(in) > 32 * MAP_WORDS)
		return NULL;
	return in;
}

/* Close a cancelled message, which has no loss map */
static bool close_cancelled(struct talker *t, struct dblp_frame *f)
{
	struct incoming *in = &t->in[talker_below(t, IN_MAX)];

	if (!in->cancelled || in->closed)
		return false;
	in->closed = true;
	f->close.msg_id = in->d.msg_id;
	f->close.reason = DBLP_REASON_CANCELLED;
	return true;
}

/* Make a CLOSE within the budget; @greedy: beyond it, with consistent counts */
static bool close_frame(struct talker *t, struct dblp_frame *f, bool greedy)
{
	struct incoming *in = some_in(t, false);
	u32 segs, most, seg, len, bytes = 0, n = 0, i;
	/* Also critical bytes may be in the loss map */
	bool all = greedy && once_in(t, 3);

	if (!in)
		return false;
	segs = in_segs(in);
	most = (u64)in->d.budget * (in->d.msg_len - in->critical) / DBLP_PPM;
	if (greedy)
		most = in->d.msg_len;
	memset(in->map, 0, sizeof(in->map));
	for (i = 0; i < 8; i++) {
		seg = talker_below(t, segs);
		len = in->d.msg_len - seg * in->seg_size;
		len = len < in->seg_size ? len : in->seg_size;
		if ((seg * in->seg_size < in->critical && !all) ||
		    bytes + len > most ||
		    in->map[seg / 32 * 4 + 3 - seg % 32 / 8] & 1 << seg % 8)
			continue;
		in->map[seg / 32 * 4 + 3 - seg % 32 / 8] |= 1 << seg % 8;
		bytes += len;
		n++;
	}
	if (!n)
		return false;
	in->words = (segs + 31) / 32;
	in->closed = true;
	f->close.msg_id = in->d.msg_id;
	f->close.missing = bytes;
	f->close.missing_segs = n;
	f->close.budget = in->d.budget;
	f->close.reason = DBLP_REASON_BUDGET;
	return true;
}

static bool lossmap_frame(struct talker *t, struct dblp_frame *f)
{
	struct incoming *in = some_in(t, true);

	if (!in)
		return false;
	f->lossmap.msg_id = in->d.msg_id;
	f->lossmap.words = in->words;
	f->lossmap.bits = in->map;
	return true;
}

/* Pick a message of which a segment was sent */
static struct outgoing *some_out(struct talker *t)
{
	struct outgoing *out = &t->out[talker_below(t, OUT_MAX)];

	return out->used && out->taken ? out : NULL;
}

static bool budget_frame(struct talker *t, struct dblp_frame *f)
{
	struct outgoing *out = some_out(t);

	if (!out)
		return false;
	f->budget.msg_id = out->d.msg_id;
	f->budget.ppm = once_in(t, 3) ? 0 : talker_below(t, DBLP_PPM + 1);
	return true;
}

/* After a CANCEL, mostly stop sending the message */
static bool cancel_frame(struct talker *t, struct dblp_frame *f)
{
	struct outgoing *out = some_out(t);

	if (!out)
		return false;
	f->cancel.msg_id = out->d.msg_id;
	f->cancel.len = out->d.msg_len;
	f->cancel.total = out->d.msg_len;
	f->cancel.started = true;
	if (out->d.meta) {
		f->cancel.offset = out->meta.meta.offset;
		f->cancel.total = out->meta.meta.total;
		f->cancel.tag = out->meta.meta.tag;
	}
	if (!once_in(t, 4))
		out->next = out->segs;
	return true;
}

static void ping_frame(struct talker *t, struct dblp_frame *f)
{
	f->ping.wanted = once_in(t, 8) ? any(t) : t->spent + any(t) % (64 << 20);
}

static void flow_frame(struct talker *t, struct dblp_frame *f)
{
	struct dblp_params ours = params_default();
	u32 more = t->peer.largest;

	f->flow.max_msg = ours.max_msg + more;
	f->flow.max_data = ours.max_data + (u64)more * 4096;
	f->flow.cap = once_in(t, 4) ? talker_below(t, DBLP_PPM + 1) : DBLP_PPM;
	if (once_in(t, 8))
		f->flow.max_data = any(t);
}

/* Make a false frame: the connection ends, unless the frame happens to be true */
static bool lie(struct talker *t, struct dblp_frame *f)
{
	struct outgoing *out = some_out(t);
	/* Prefer messages that may be closed with bytes missing */
	struct incoming *in = some_in(t, once_in(t, 2)) ?:
			      &t->in[(t->n_in - 1) % IN_MAX];
	static u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	u32 i;

	switch (talker_below(t, 6)) {
	case 0:
		f->type = DBLP_FRAME_CLOSE;
		if (once_in(t, 2))
			return close_frame(t, f, true);
		f->close.msg_id = once_in(t, 4) ? any(t) : in->d.msg_id;
		f->close.missing_segs = 1 + any(t) % 64;
		f->close.missing = f->close.missing_segs + any(t) % 65536;
		f->close.budget = once_in(t, 2) ? in->d.budget :
						  any(t) % DBLP_PPM;
		f->close.reason = 1 + talker_below(t, 2);
		f->close.flags = f->close.reason == DBLP_REASON_DEADLINE &&
				 once_in(t, 2);
		return true;
	case 1:
		f->type = DBLP_FRAME_LOSSMAP;
		f->lossmap.msg_id = once_in(t, 4) ? any(t) : in->d.msg_id;
		f->lossmap.first = once_in(t, 2) ? 0 : any(t) % 0x800000 & ~31;
		f->lossmap.words = 1 + talker_below(t, DBLP_LOSSMAP_WORDS_MAX);
		for (i = 0; i < sizeof(bits); i++)
			bits[i] = once_in(t, 3) ? any(t) : 0;
		f->lossmap.bits = bits;
		return true;
	case 2:
		f->type = DBLP_FRAME_FIN;
		f->fin.end = once_in(t, 2) ? t->next_id + talker_below(t, 3) :
					     any(t);
		return true;
	case 3:
		f->type = DBLP_FRAME_CANCEL;
		if (!cancel_frame(t, f))
			f->cancel.len = f->cancel.total = 1 + any(t) % 65536;
		if (once_in(t, 2))
			f->cancel.msg_id = t->next_id + talker_below(t, 3);
		f->cancel.started = once_in(t, 2);
		f->cancel.tag += once_in(t, 2);
		return true;
	case 4:
		/* Acknowledge all packet numbers */
		f->type = DBLP_FRAME_ACK;
		f->ack.n = 1;
		f->ack.range[0].last = t->peer.largest - 1;
		return t->peer.largest;
	default:
		if (!out)
			return false;
		f->type = DBLP_FRAME_META;
		*f = out->meta;
		f->type = DBLP_FRAME_META;
		f->meta.msg_id = out->d.msg_id;
		f->meta.offset = any(t) % DBLP_MSG_MAX;
		f->meta.total = f->meta.offset + out->d.msg_len;
		f->meta.critical = any(t) % (out->d.msg_len + 1);
		return f->meta.total <= DBLP_MSG_MAX;
	}
}

static bool make_frame(struct talker *t, struct dblp_frame *f, u8 pkt)
{
	static const u8 types[] = {
		DBLP_FRAME_ACK, DBLP_FRAME_ACK, DBLP_FRAME_ACK, DBLP_FRAME_ACK,
		DBLP_FRAME_ECN, DBLP_FRAME_FLOW, DBLP_FRAME_CLOSE,
		DBLP_FRAME_SHARE, DBLP_FRAME_ARRIVAL, DBLP_FRAME_LOSSMAP, DBLP_FRAME_LOSSMAP,
		DBLP_FRAME_PING, DBLP_FRAME_BUDGET, DBLP_FRAME_BUDGET,
		DBLP_FRAME_CANCEL,
	};
	/* An ACK packet may have only the first nine types */
	u32 n = pkt == DBLP_PKT_ACK ? 9 : sizeof(types);

	memset(f, 0, sizeof(*f));
	if (pkt != DBLP_PKT_ACK && once_in(t, t->lies) && lie(t, f)) {
		t->lied = true;
		return true;
	}
	f->type = types[talker_below(t, n)];
	switch (f->type) {
	case DBLP_FRAME_ACK:
		return ack_frame(t, f);
	case DBLP_FRAME_CLOSE:
		return close_cancelled(t, f) || close_frame(t, f, false);
	case DBLP_FRAME_LOSSMAP:
		return lossmap_frame(t, f);
	case DBLP_FRAME_BUDGET:
		return budget_frame(t, f);
	case DBLP_FRAME_CANCEL:
		/* With more cancellations no message would complete */
		return once_in(t, 8) && cancel_frame(t, f);
	case DBLP_FRAME_PING:
		ping_frame(t, f);
		return true;
	case DBLP_FRAME_FLOW:
		flow_frame(t, f);
		return true;
	case DBLP_FRAME_ECN:
		f->ecn.ect0 = once_in(t, 2) ? 10 : any(t);
		f->ecn.ce = once_in(t, 2) ? 0 : any(t);
		return true;
	case DBLP_FRAME_SHARE:
		f->share.n = 1 + talker_below(t, 64);
		f->share.all = any(t);
		return true;
	case DBLP_FRAME_ARRIVAL:
		f->arrival.at = any(t);
		return true;
	default:
		return true;
	}
}

/* Append frames of at most @room bytes; of exactly @room bytes if @all */
static void put_frames(struct talker *t, struct packet *p, u32 room, bool all)
{
	struct dblp_frame f;
	u32 tries = 1 + talker_below(t, 6), end_at = p->len + room, left;
	u8 frame[DBLP_CTL_MAX];
	bool acks = false;
	u8 *end;

	for (; tries && p->len < end_at; tries--) {
		if (!make_frame(t, &f, p->byte[0] & 0xf))
			continue;
		/* A second ACK is refused */
		if (f.type == DBLP_FRAME_ACK && acks && !once_in(t, 8))
			continue;
		/* Shorten an ACK to the room */
		left = end_at - p->len;
		end = dblp_put_frame(frame, frame + left, &f);
		/* No frame fits a rest of one word */
		if (!end || (all && frame + left - end == 4))
			continue;
		acks |= f.type == DBLP_FRAME_ACK;
		p->byte[1] += (end - frame) / 4;
		put_bytes(p, frame, end - frame);
	}
	if (all)
		add_filler(p, end_at - p->len);
}

/*
 * Packets
 */
static u32 out_len(struct talker *t)
{
	switch (talker_below(t, 8)) {
	case 0:
		return 1 + talker_below(t, 200);
	case 1:
	case 2:
		return 1 + talker_below(t, t->stride - DATA_HDR);
	case 3:
		return 1 + talker_below(t, 60000);
	default:
		return 1 + talker_below(t, 12000);
	}
}

/* Set the META frame of a message or a piece */
static void begin_meta(struct talker *t, struct outgoing *out)
{
	struct dblp_frame *f = &out->meta;

	out->d.meta = true;
	f->type = DBLP_FRAME_META;
	f->meta.msg_id = out->d.msg_id;
	if (t->chain.offset < t->chain.total) {
		u32 left = t->chain.total - t->chain.offset;

		if (out->d.msg_len > left || once_in(t, 3))
			out->d.msg_len = left;
		f->meta.tag = t->chain.tag;
	} else {
		t->chain.offset = 0;
		t->chain.total = out->d.msg_len;
		if (once_in(t, 3))
			t->chain.total += talker_below(t, 30000);
		f->meta.tag = t->chain.tag = any(t);
	}
	f->meta.offset = t->chain.offset;
	f->meta.total = t->chain.total;
	t->chain.offset += out->d.msg_len;
	f->meta.critical = once_in(t, 2) ? 0 :
			   talker_below(t, out->d.msg_len + 1);
	f->meta.deadline = once_in(t, 6) ? 1 + talker_below(t, 20000) : 0;
}

static bool may_begin(struct talker *t, u32 len)
{
	return !t->fin && t->next_id < t->peer.flow.flow.max_msg &&
	       t->spent + len + MSG_COST <= t->peer.flow.flow.max_data;
}

static struct outgoing *begin_message(struct talker *t)
{
	struct outgoing *out = &t->out[talker_below(t, OUT_MAX)];
	u32 len = out_len(t);

	if (t->placement && once_in(t, 20))
		len = LARGE;
	if ((out->used && out->next < out->segs) || !may_begin(t, len))
		return NULL;
	memset(out, 0, sizeof(*out));
	out->d.msg_id = t->next_id;
	out->d.msg_len = len;
	if (once_in(t, 3) || t->chain.offset < t->chain.total)
		begin_meta(t, out);
	len = out->d.msg_len;
	out->frames = once_in(t, 3) ? 8 + 4 * talker_below(t, 38) : 0;
	if (out->d.meta)
		out->frames += DBLP_META_LEN;
	out->seg_size = t->stride - DATA_HDR - out->frames;
	if (once_in(t, 20) && len > 4000)
		out->seg_size = 1500 + talker_below(t, 60000);
	out->segs = (len - 1) / out->seg_size + 1;
	out->d.policy = talker_below(t, __DBLP_POLICY_MAX);
	out->d.phase = talker_below(t, 8);
	out->d.budget = once_in(t, 3) ? 0 : talker_below(t, DBLP_PPM + 1);
	out->used = true;
	t->next_id++;
	t->spent += len + MSG_COST;
	return out;
}

/* Pick a message with segments to send, perhaps a new one */
static struct outgoing *pick_message(struct talker *t)
{
	struct outgoing *out;
	u32 i, at = talker_below(t, OUT_MAX);

	if (once_in(t, 6)) {
		out = begin_message(t);
		if (out)
			return out;
	}
	for (i = 0; i < OUT_MAX; i++) {
		out = &t->out[(at + i) % OUT_MAX];
		if (out->used && out->next < out->segs)
			return out;
	}
	return begin_message(t);
}

static void put_header(struct talker *t, struct packet *p, u8 type)
{
	make_packet(p, type, dblp_numbered(type) ? t->peer.pn++ : 0,
		    t->peer.scid);
}

static void put_map(struct talker *t, struct packet *p, struct outgoing *out)
{
	u32 left = out->segs - out->d.offset / out->seg_size, bits;

	bits = left < 32 ? (1ULL << left) - 1 : 0xffffffff;
	put_word(p, bits & (once_in(t, 2) ? any(t) : bits) ?: 1);
	t->zeros = true;
}

/* Make a packet with the next segment of a message, or another segment */
static void data_packet(struct talker *t, struct packet *p,
			struct outgoing *out)
{
	bool again = once_in(t, 12), zeros = t->zeros && once_in(t, 12);
	u32 seg = again ? talker_below(t, out->segs) : out->next, len;

	if (seg >= out->segs)
		seg = 0;
	if (zeros)
		seg = seg & ~31U;
	out->d.zeros = zeros;
	out->d.offset = seg * out->seg_size;
	out->d.repair = seg == out->segs - 1 || again;
	if (!zeros && !again)
		out->next++;
	if (out->d.budget && once_in(t, 30))
		out->d.budget = 1 + talker_below(t, DBLP_PPM);

	put_header(t, p, DBLP_PKT_DATA);
	poke(p, 2, 2, out->seg_size);
	dblp_put_data(p->byte + p->len, &out->d);
	p->len += DBLP_DATA_HDR_LEN;
	if (out->d.meta)
		add_frame(p, &out->meta);
	put_frames(t, p, out->frames - (out->d.meta ? DBLP_META_LEN : 0),
		   out->segs > 1);
	if (zeros)
		return put_map(t, p, out);
	len = out->d.msg_len - out->d.offset;
	len = len < out->seg_size ? len : out->seg_size;
	memset(p->byte + p->len, t->fill, len);
	p->len += len;
}

static void probe_packet(struct talker *t, struct packet *p, u32 len)
{
	put_header(t, p, DBLP_PKT_PROBE);
	if (t->peer.ports)
		poke(p, 2, 2, talker_below(t, t->peer.ports));
	put_zero(p, len - p->len);
}

static void ctrl_packet(struct talker *t, struct packet *p, u32 len)
{
	put_header(t, p, once_in(t, 3) && !len ? DBLP_PKT_ACK : DBLP_PKT_CTRL);
	put_frames(t, p, len ? len - DBLP_HDR_LEN : 16 + talker_below(t, 900),
		   len);
}

/* Make a packet that is invalid in state ESTABLISHED */
static void odd_packet(struct talker *t, struct packet *p)
{
	struct dblp_params ours = params_default();

	switch (talker_below(t, 6)) {
	case 0:
		make_init(p, t->peer.cid);
		break;
	case 1:
		make_echo(p, &t->peer, &ours);
		break;
	case 2:
		make_rst(p, t->peer.scid, 1 + any(t) % 8, any(t));
		break;
	case 3:
		make_packet(p, DBLP_PKT_VERSION, 0, 0);
		put_u64_be(p, t->peer.cid);
		put_word(p, any(t));
		break;
	case 4:
		make_cookie_ack(p, &t->peer, &ours);
		break;
	case 5:
		probe_packet(t, p, DBLP_HDR_LEN + talker_below(t, 9000));
		break;
	}
}

/* Repeat an earlier packet, with its packet number or a new one */
static bool past_packet(struct talker *t, struct packet *p, u32 len)
{
	u32 i = talker_below(t, HISTORY);

	if (i >= t->n_past || (len && t->past[i].len != len))
		return false;
	p->len = 0;
	put_bytes(p, t->past[i].byte, t->past[i].len);
	if (once_in(t, 2) && dblp_numbered(p->byte[0] & 0xf))
		poke(p, 4, 4, t->peer.pn++);
	return true;
}

static void remember(struct talker *t, const struct packet *p)
{
	u32 i = t->n_past % HISTORY;

	if (p->len > sizeof(t->past[i].byte) || once_in(t, 2))
		return;
	t->n_past++;
	t->past[i].len = p->len;
	memcpy(t->past[i].byte, p->byte, p->len);
}

/*
 * Spoiling
 */
static u64 peek(const struct packet *p, u32 at, u32 size)
{
	u64 v = 0;

	while (size--)
		v = v << 8 | p->byte[at++];
	return v;
}

static void spoil_field(struct talker *t, struct packet *p, u32 at, u32 size)
{
	u64 v;

	if (at + size > p->len)
		return;
	v = peek(p, at, size);
	switch (talker_below(t, 6)) {
	case 0:
		v++;
		break;
	case 1:
		v--;
		break;
	case 2:
		v ^= 1ULL << talker_below(t, 8 * size);
		break;
	case 3:
		v += (s32)any(t) % 64;
		break;
	case 4:
		v = once_in(t, 2) ? v << 1 : v >> 1;
		break;
	default:
		v = any(t);
	}
	poke(p, at, size, v);
}

struct field {
	u8	at;
	u8	size;
};

static const struct field header_fields[] = {
	{ 0, 1 }, { 1, 1 }, { 1, 1 }, { 2, 2 }, { 2, 2 }, { 4, 4 }, { 8, 8 },
};

static const struct field data_fields[] = {
	{ 16, 4 }, { 20, 4 }, { 20, 4 }, { 24, 4 }, { 28, 4 }, { 28, 4 },
	{ 31, 1 }, { 2, 2 }, { 1, 1 },
};

/* Frames that end a connection if they are false */
static bool is_grave(u8 type)
{
	return type == DBLP_FRAME_CLOSE || type == DBLP_FRAME_LOSSMAP ||
	       type == DBLP_FRAME_FIN || type == DBLP_FRAME_META ||
	       type == DBLP_FRAME_ACK || type == DBLP_FRAME_CANCEL;
}

/* Change a field of a frame */
static void spoil_frame(struct talker *t, struct packet *p)
{
	bool data = (p->byte[0] & 0xf) == DBLP_PKT_DATA;
	u32 at = data ? DATA_HDR : DBLP_HDR_LEN, end = at + 4 * p->byte[1];
	u32 skip = talker_below(t, 4), words;

	for (; at + 4 <= end && at + 4 <= p->len; at += 4 * words) {
		words = p->byte[at + 1];
		if (!words || at + 4 * words > end)
			return;
		if (skip--)
			continue;
		if (is_grave(p->byte[at]) && !once_in(t, 4))
			return spoil_field(t, p, at + 1, 1);
		t->lied |= is_grave(p->byte[at]);
		if (once_in(t, 3))
			spoil_field(t, p, at + talker_below(t, 3), 1 +
				    talker_below(t, 2));
		else
			spoil_field(t, p, at + 4 * talker_below(t, words), 4);
		return;
	}
}

/* Contradict earlier segments: same grid, other length or message ID
 */
static void contradict(struct talker *t, struct packet *p)
{
	u32 seg_size = peek(p, 2, 2), len = peek(p, 24, 4), segs, more;
	struct outgoing *out = some_out(t);

	if (!seg_size)
		return;
	more = once_in(t, 3) ? talker_below(t, 2000) : talker_below(t, 4);
	if (once_in(t, 2))
		len += more * seg_size;
	else if (len > more * seg_size)
		len -= more * seg_size;
	segs = (len - 1) / seg_size + 1;
	if (!once_in(t, 3))
		poke(p, 24, 4, len);
	poke(p, 20, 4, once_in(t, 2) ? talker_below(t, segs) * seg_size :
				       (segs - 1) * seg_size);
	if (out && once_in(t, 3))
		poke(p, 16, 4, out->d.msg_id + talker_below(t, 2));
}

/* Replace bytes of the packet by those of an earlier packet */
static void splice(struct talker *t, struct packet *p)
{
	u32 i = talker_below(t, HISTORY), at = talker_below(t, p->len), n;

	if (i >= t->n_past || t->past[i].len <= at)
		return;
	n = t->past[i].len - at;
	n = n < p->len - at ? n : p->len - at;
	memcpy(p->byte + at, t->past[i].byte + at, talker_below(t, n + 1));
}

static void spoil(struct talker *t, struct packet *p, bool may_cut)
{
	const struct field *f;
	u32 times = 1 + talker_below(t, 2), at;

	t->n_spoiled++;
	while (times--) {
		switch (talker_below(t, may_cut ? 10 : 8)) {
		case 0:
			f = &header_fields[talker_below(t, 7)];
			spoil_field(t, p, f->at, f->size);
			break;
		case 1:
		case 2:
		case 3:
			if ((p->byte[0] & 0xf) == DBLP_PKT_DATA &&
			    p->len > DATA_HDR && once_in(t, 2)) {
				contradict(t, p);
				break;
			}
			if ((p->byte[0] & 0xf) == DBLP_PKT_DATA) {
				f = &data_fields[talker_below(t, 9)];
				spoil_field(t, p, f->at, f->size);
				break;
			}
			spoil_frame(t, p);
			break;
		case 4:
		case 5:
			spoil_frame(t, p);
			break;
		case 6:
			at = talker_below(t, p->len < 128 ? p->len : 128);
			p->byte[at] ^= 1 << talker_below(t, 8);
			t->lied = true;
			break;
		case 7:
			splice(t, p);
			t->lied = true;
			break;
		case 8:
			p->len = 1 + talker_below(t, p->len);
			break;
		default:
			put_zero(p, 1 + talker_below(t, 40));
		}
	}
}

/* Restore the message bytes, which must stay @fill */
static void restore_payload(struct talker *t, struct packet *p)
{
	struct dblp_data d;
	struct dblp_hdr h;

	if (dblp_get_hdr(&h, p->byte, p->len) || h.type != DBLP_PKT_DATA ||
	    dblp_get_data(&d, &h, p->byte + DBLP_HDR_LEN, p->len - DBLP_HDR_LEN,
			  p->len))
		return;
	if (d.zeros)
		t->zeros = true;
	else
		memset(p->byte + DATA_HDR + h.ctl_len, t->fill,
		       p->len - DATA_HDR - h.ctl_len);
}

/* Spoil the packet or not, and record which */
static void finish(struct talker *t, struct packet *p, struct outgoing *out,
		   bool single)
{
	bool first = out && !out->taken;

	remember(t, p);
	/* Rarely spoil the first packet, because this spoils the whole message */
	if (!once_in(t, t->spoils) || (first && !once_in(t, 30))) {
		if (out)
			out->taken = true;
		return;
	}
	spoil(t, p, single);
	restore_payload(t, p);
	/* Send this segment again */
	if (out && out->next && !out->d.zeros)
		out->next--;
}

static void single_packet(struct talker *t, struct packet *p)
{
	struct outgoing *out = NULL;

	switch (talker_below(t, 20)) {
	case 0:
		if (past_packet(t, p, 0))
			break;
		/* fallthrough */
	case 1:
		if (once_in(t, 3)) {
			odd_packet(t, p);
			break;
		}
		/* fallthrough */
	case 2:
	case 3:
	case 4:
	case 5:
	case 6:
	case 7:
		ctrl_packet(t, p, 0);
		break;
	default:
		out = pick_message(t);
		if (out)
			data_packet(t, p, out);
		else
			ctrl_packet(t, p, 0);
	}
	finish(t, p, out, true);
}

/* Make a packet of a train, of @stride bytes or, as the last one, fewer; sets @*out */
static bool wagon(struct talker *t, struct packet *p, struct outgoing **out)
{
	bool fits = t->stride % 4 == 0 &&
		    t->stride <= DBLP_HDR_LEN + DBLP_CTL_MAX;
	u32 kind = talker_below(t, 24);

	if (!kind && past_packet(t, p, t->stride))
		return false;
	if (fits && kind < 4) {
		ctrl_packet(t, p, t->stride);
		return false;
	}
	if (!*out || (*out)->next >= (*out)->segs || once_in(t, 10))
		*out = pick_message(t);
	if (kind > 1 && *out) {
		data_packet(t, p, *out);
		return true;
	}
	probe_packet(t, p, t->stride);
	return false;
}

u32 talker_train(struct talker *t, struct talker *twin, struct packet *p,
		 u32 most)
{
	u32 n, want = once_in(t, 3) ? 1 : 2 + talker_below(t, most - 1);
	struct outgoing *out[2] = { NULL, NULL };
	struct outgoing *of;
	struct talker *who;
	u32 k;

	if (want == 1) {
		single_packet(t, p);
		return 1;
	}
	for (n = 0; n < want; n++) {
		k = twin && once_in(t, 8);
		who = k ? twin : t;
		of = wagon(who, &p[n], &out[k]) ? out[k] : NULL;
		if (p[n].len > t->stride && n) {
			/* It does not fit: send it later */
			if (of && of->next)
				of->next--;
			return n;
		}
		finish(who, &p[n], of, p[n].len != t->stride);
		if (p[n].len > t->stride && n)
			p[n].len = t->stride;
		if (p[n].len != t->stride)
			return n + 1;
	}
	return n;
}
