// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets out: control frames first, then segments as congestion control, the
 * pacer and the peer's credit allow.
 */
#include <linux/udp.h>
#include <net/inet_ecn.h>

#include "dblp.h"
#include "trace.h"

/** dblp_our_params() - what the handshake tells the peer of this end */
void dblp_our_params(const struct dblp_sock *dsk, struct dblp_params *p)
{
	sock_owned_by_me(&dsk->sk);
	p->cap = dsk->cap;
	p->max_msg = dsk->rx_max_msg;
	p->max_data = dsk->rx_max_data;
	p->msg_max = dsk->rx_msg_max;
	p->rtt_us = min_t(u64, div_u64(dsk->handshake_rtt, NSEC_PER_USEC),
			  DBLP_PARAMS_RTT_MAX);
}

/* A packet whose header and frames are there gets the last one */
static void dblp_add_auth(struct dblp_sock *dsk, struct sk_buff *skb)
{
	if (unlikely(dsk->auth))
		dblp_auth_add(dsk, skb);
}

static int __dblp_xmit(struct dblp_sock *dsk, struct sk_buff *skb,
		       struct dst_entry *dst, u8 tos, u32 priority)
{
	int err;

	if (unlikely(dsk->auth))
		dblp_auth_sign(dsk, skb);
	skb_set_owner_w(skb, &dsk->sk);
	skb_set_hash_from_sk(skb, &dsk->sk);
	skb->priority = priority;
	err = dblp_ip_xmit(dsk->ep, skb, dst, &dsk->path, tos);
	if (err)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_XMITERROR);
	return err;
}

static int dblp_xmit(struct dblp_sock *dsk, struct sk_buff *skb,
		     struct dst_entry *dst, u8 tos)
{
	return __dblp_xmit(dsk, skb, dst, tos,
			   READ_ONCE(dsk->sk.sk_priority));
}

static int dblp_xmit_ctl(struct dblp_sock *dsk, struct sk_buff *skb,
			 struct dst_entry *dst)
{
	u32 priority = READ_ONCE(dsk->sk.sk_priority);

	return __dblp_xmit(dsk, skb, dst, DBLP_CTL_TOS,
			   max_t(u32, priority, DBLP_CTL_PRIORITY));
}

/**
 * dblp_send_raw() - send a packet that is not counted nor repeated
 * @dsk: socket with a path
 * @data: all of it
 * @len: its length in bytes
 *
 * Return: 0 or a negative errno.
 */
int dblp_send_raw(struct dblp_sock *dsk, const u8 *data, u32 len)
{
	struct dst_entry *dst = dblp_conn_dst(dsk);
	struct sk_buff *skb;

	sock_owned_by_me(&dsk->sk);
	if (!dst)
		return -EHOSTUNREACH;
	skb = dblp_skb_alloc(len, GFP_ATOMIC);
	if (!skb)
		return -ENOMEM;
	skb_put_data(skb, data, len);
	dblp_add_auth(dsk, skb);
	trace_dblp_packet_sent(dsk, data[0] & 0xf, 0, 1, skb->len, NULL, false);
	return dblp_xmit_ctl(dsk, skb, dst);
}

/**
 * dblp_send_rst() - tell the peer that this end is gone
 * @dsk: socket
 * @reason: why
 */
void dblp_send_rst(struct dblp_sock *dsk, enum dblp_rst_reason reason)
{
	struct dblp_hdr h = {
		.type = DBLP_PKT_RST,
		.dcid = dsk->peer_key.cid,
	};
	u8 out[DBLP_RST_LEN];
	u8 *p;

	sock_owned_by_me(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	p = dblp_put_hdr(out, &h);
	p = dblp_put_u64(p, (u64)reason << 32);
	dblp_put_u64(p, dsk->cid);
	dblp_send_raw(dsk, out, sizeof(out));
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_RSTSENT);
}

/* @n packets are being sent */
static void dblp_note_sent(struct dblp_sock *dsk, u32 n, u64 now)
{
	if (!dsk->sent.inflight_pkts)
		dsk->progress = now;
	if (dsk->cc.ops->sent)
		dsk->cc.ops->sent(&dsk->cc, dsk->sent.inflight, now);
	dsk->last_sent = now;
	dsk->info.pkts_sent += n;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTSENT, n);
}

static void dblp_note_paced(struct dblp_sock *dsk, u32 wire_bytes, u64 now)
{
	if (!dsk->cc.pacing_rate)
		return;
	dsk->pace_next = max(dsk->pace_next, now) +
			 div64_u64((u64)wire_bytes * NSEC_PER_SEC,
				   dsk->cc.pacing_rate);
}

/*
 * What answers packets of the peer is sent at once, whatever the window says, up
 * to three times what came. Anything else is as large as window and pacer allow.
 */
static void dblp_note_answer(struct dblp_sock *dsk, u32 len, u64 now)
{
	if (dsk->answer >= len)
		dsk->answer -= len;
	else
		dblp_note_paced(dsk, len, now);
}

/*
 * Send a CTRL packet with as many waiting frames as it holds, or as a probe, see
 * dblp_ctl_fill(). That leaves room for an ACK: the last one may have been lost.
 */
static bool dblp_send_ctl(struct dblp_sock *dsk, struct dst_entry *dst,
			  u32 mss, int probe, u64 now)
{
	u8 out[DBLP_HDR_LEN + DBLP_CTL_MAX];
	struct dblp_hdr h = {
		.type = DBLP_PKT_CTRL,
		.pn = (u32)dsk->sent.next,
		.dcid = dsk->peer_key.cid,
	};
	u32 room = min_t(u32, sizeof(out), mss) - dblp_auth_len(dsk);
	const u8 *end = out + room;
	struct dblp_carried *carried;
	struct sk_buff *skb;
	u8 *p;

	if (!dblp_ring_room(dsk, 1))
		return false;
	skb = dblp_skb_alloc(end - out, GFP_ATOMIC);
	if (!skb)
		return false;
	if (probe >= 0)
		room = clamp_t(u32, room - DBLP_NEWS_ROOM,
			       DBLP_HDR_LEN + DBLP_LOSSMAP_LEN_MAX, room);
	p = dblp_ctl_fill(dsk, out + DBLP_HDR_LEN, out + room, dsk->sent.next,
			  probe, &carried);
	WARN_ON_ONCE(p == out + DBLP_HDR_LEN);
	p = dblp_put_news(dsk, p, end, now);
	/* A RST is never longer than what it answers: be worth one */
	if (p - out < DBLP_RST_LEN)
		p = dblp_put_ecn(dsk, p, end);
	h.ctl_len = p - out - DBLP_HDR_LEN;
	dblp_put_hdr(out, &h);
	skb_put_data(skb, out, p - out);
	dblp_add_auth(dsk, skb);

	dblp_note_answer(dsk, skb->len, now);
	dblp_note_sent(dsk, 1, now);
	trace_dblp_packet_sent(dsk, DBLP_PKT_CTRL, dsk->sent.next, 1, skb->len,
			       NULL, false);
	dblp_sent_push(&dsk->sent, skb->len, now)->carried = carried;
	dblp_xmit_ctl(dsk, skb, dst);
	return true;
}

static u8 *dblp_put_meta(const struct dblp_tx_msg *msg, u8 *p, const u8 *end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_META };

	f.meta.msg_id = msg->id;
	f.meta.critical = msg->critical;
	f.meta.deadline = msg->deadline;
	f.meta.offset = msg->offset;
	f.meta.total = msg->total;
	f.meta.tag = msg->tag;
	return dblp_put_frame(p, end, &f);
}

/* Bytes for control frames besides @len others. The path may have become too
 * narrow for the segment alone: then META makes the packet longer, which IP cuts
 * up in any case. Its ACK says that META has arrived.
 */
static u32 dblp_ctl_room(const struct dblp_sock *dsk,
			 const struct dblp_tx_msg *msg, u32 len, u32 mss)
{
	u32 auth_len = dblp_auth_len(dsk);
	u32 least = msg->meta && !msg->meta_acked ? DBLP_META_LEN : 0;

	len += auth_len;
	return clamp_t(u32, len < mss ? mss - len : 0, least,
		       DBLP_CTL_MAX - auth_len);
}

/* Control frames of a DATA packet: META while needed, what is not repeated if it
 * fits
 */
static u32 dblp_seg_ctl(struct dblp_sock *dsk, const struct dblp_tx_msg *msg,
			u8 *out, u32 room, u64 now)
{
	const u8 *end = out + min_t(u32, room, DBLP_CTL_MAX);
	u8 *p = out, *next;

	if (msg->meta && !msg->meta_acked) {
		next = dblp_put_meta(msg, p, end);
		p = next ?: p;
	}
	if (dsk->ack_pending)
		p = dblp_put_news(dsk, p, end, now);
	return p - out;
}

/* @pass is what has been sent or described, this one included */
static void dblp_put_seg_hdr(struct dblp_sock *dsk,
			     const struct dblp_tx_msg *msg, u8 *p, u32 seg,
			     u32 pass, u32 ctl_len, bool zeros)
{
	struct dblp_hdr h = {
		.type = DBLP_PKT_DATA,
		.ctl_len = ctl_len,
		.seg_size = msg->seg_size,
		.pn = (u32)dsk->sent.next,
		.dcid = dsk->peer_key.cid,
	};
	struct dblp_data d = {
		.msg_id = msg->id,
		.offset = seg * msg->seg_size,
		.msg_len = msg->len,
		.budget = msg->budget,
		.policy = msg->policy,
		.phase = msg->phase,
		.repair = pass >= msg->first_pass,
		.meta = msg->meta,
		.zeros = zeros,
	};

	dblp_put_data(dblp_put_hdr(p, &h), &d);
}

/* A DATA packet of its own goes out: with segment @seg, or the map it is in */
static void dblp_xmit_seg(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			  u32 seg, bool again, struct sk_buff *skb,
			  struct dst_entry *dst, u32 mss, u64 now)
{
	u8 tos = dblp_path_data_tos(dsk, 1);
	struct dblp_sent_pkt *pkt;

	dblp_note_sent(dsk, 1, now);
	trace_dblp_packet_sent(dsk, DBLP_PKT_DATA, dsk->sent.next, 1, skb->len,
			       msg, again);
	pkt = dblp_sent_push(&dsk->sent, skb->len, now);
	pkt->data = 1;
	pkt->msg = msg->id;
	pkt->seg = seg;
	pkt->fragmented = skb->len > mss;
	pkt->ect = tos & INET_ECN_ECT_0 ? 1 : 0;
	dblp_note_paced(dsk, skb->len, now);
	dblp_xmit(dsk, skb, dst, tos);
}

/* Instead of elided segments the map that says so */
static bool dblp_send_zeros(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			    u32 seg, struct dst_entry *dst, u32 mss, u64 now)
{
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN, room, ctl_len;
	u32 first = dblp_elide_first(msg, seg);
	u32 len = 4 * dblp_elide_map(msg, seg);
	struct sk_buff *skb;
	bool again, last;
	u8 *hdr;

	if (!dblp_ring_room(dsk, 1))
		return false;
	room = dblp_ctl_room(dsk, msg, hdr_len + len, mss);
	skb = dblp_skb_alloc(hdr_len + room + len, GFP_ATOMIC);
	if (!skb)
		return false;
	last = dblp_elide_ends_pass(msg, seg);
	hdr = skb_put(skb, hdr_len);
	ctl_len = dblp_seg_ctl(dsk, msg, skb_tail_pointer(skb), room, now);
	skb_put(skb, ctl_len);
	dblp_put_seg_hdr(dsk, msg, hdr, round_down(first, 32),
			 last ? U32_MAX : 0, ctl_len, true);
	dblp_add_auth(dsk, skb);
	dblp_elide_put(msg, seg, skb_put(skb, len));

	again = msg->sent[first] & DBLP_SEG_SENT;
	dblp_tx_described(dsk, msg, seg);
	dblp_xmit_seg(dsk, msg, first, again, skb, dst, mss, now);
	return true;
}

static bool dblp_send_seg(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			  u32 seg, bool again, struct dst_entry *dst, u32 mss,
			  u64 now)
{
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN, room, ctl_len;
	u32 len = dblp_tx_seg_len(msg, seg);
	struct sk_buff *skb;
	u8 *hdr;

	if (dblp_tx_elided(msg, seg))
		return dblp_send_zeros(dsk, msg, seg, dst, mss, now);
	if (!dblp_ring_room(dsk, 1))
		return false;
	room = dblp_ctl_room(dsk, msg, hdr_len + len, mss);
	skb = dblp_skb_alloc(hdr_len + room + (msg->small ? len : 0),
			     GFP_ATOMIC);
	if (!skb)
		return false;
	hdr = skb_put(skb, hdr_len);
	ctl_len = dblp_seg_ctl(dsk, msg, skb_tail_pointer(skb), room, now);
	skb_put(skb, ctl_len);
	dblp_put_seg_hdr(dsk, msg, hdr, seg, msg->cursor + msg->ahead + !again,
			 ctl_len, false);
	dblp_add_auth(dsk, skb);
	dblp_txbuf_frags(msg, skb, dblp_tx_slot(msg, seg) *
			 (msg->room + msg->seg_size) + msg->room, len);

	dblp_tx_sent(dsk, msg, seg, again);
	dblp_xmit_seg(dsk, msg, seg, again, skb, dst, mss, now);
	return true;
}

/* Packets of @size bytes that the window and the pacer let go now, at least 1 */
static u32 dblp_burst(const struct dblp_sock *dsk, u32 size, u64 now)
{
	u64 window = dsk->cc.cwnd - min(dsk->cc.cwnd, dsk->sent.inflight), n;
	u64 ahead = now + DBLP_PACE_AHEAD_NS - max(dsk->pace_next, now);
	u64 rate = dsk->cc.pacing_rate;

	n = div_u64(window, size);
	if (rate)
		n = min(n, 1 + div_u64(min_t(u64, rate, U32_MAX) * ahead,
				       NSEC_PER_SEC) / size);
	return clamp_t(u64, n, 1, UDP_MAX_SEGMENTS);
}

/*
 * How many packets the stack takes at once: all of them together are one UDP
 * datagram to it. It does that for packets that need no fragmentation, and
 * sees to devices that do not know of it.
 */
static u32 dblp_train_max(const struct dst_entry *dst, u32 size, u32 mss)
{
	const struct net_device *dev = dst->dev;
	u32 room = min_t(u32, READ_ONCE(dev->gso_max_size), U16_MAX);

	if (size > mss || dst_xfrm(dst) || room < MAX_HEADER + 2 * size)
		return 1;
	return min_t(u32, (room - MAX_HEADER) / size,
		     READ_ONCE(dev->gso_max_segs));
}

/* How many segments may go in one train, beginning with the next unsent one */
static u32 dblp_train_len(struct dblp_sock *dsk, const struct dblp_tx_msg *msg,
			  const struct dst_entry *dst, u32 mss, u64 now)
{
	u32 size = msg->room + msg->seg_size, n = dblp_tx_run(msg);

	if (n == 1)
		return 1;
	n = min(n, dblp_train_max(dst, size, mss));
	if (n > 1)
		n = min(n, dblp_burst(dsk, size, now));
	return n > 1 ? dblp_ring_room(dsk, n) : 1;
}

/* Write headers for @n segments never sent before; returns their bytes */
static u32 dblp_note_train(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			   u32 n, bool ect, u64 now)
{
	u8 hdr[DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + DBLP_META_LEN +
	       DBLP_AUTH_LEN];
	struct dblp_sent_pkt pkt = { .data = 1, .msg = msg->id, .ect = ect };
	u32 slot = msg->cursor, end = slot + n, bytes = 0;
	u32 data = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN;
	u32 len, row, pass;

	dblp_put_seg_hdr(dsk, msg, hdr, 0, slot + msg->ahead + 1,
			 msg->room - data, false);
	if (msg->meta)
		dblp_put_meta(msg, hdr + data, hdr + sizeof(hdr));
	if (unlikely(dsk->auth))
		dblp_auth_put(dsk, hdr + msg->room - DBLP_AUTH_LEN);
	for (; slot < end; slot += row) {
		pkt.seg = dblp_tx_slot_seg(msg, slot);
		len = dblp_tx_seg_len(msg, pkt.seg);
		row = min(end - slot, dblp_tx_row(msg, slot));
		/* The one that ends the first pass says so */
		pass = slot + msg->ahead + 1;
		if (pass < msg->first_pass)
			row = min(row, msg->first_pass - pass);
		else if (pass == msg->first_pass)
			dblp_put_seg_hdr(dsk, msg, hdr, 0, pass,
					 msg->room - data, false);
		dblp_txbuf_write(msg, slot, row, hdr, dsk->sent.next, pkt.seg);
		pkt.bytes = msg->room + len;
		dblp_sent_push_row(&dsk->sent, &pkt, row, now);
		memset(msg->sent + pkt.seg, DBLP_SEG_SENT | 1, row);
		bytes += row * len;
	}
	return bytes;
}

/*
 * Send @n segments that were never sent before. To the stack they are one large
 * datagram until a device, or the stack on its behalf, cuts it up.
 */
static bool dblp_send_train(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			    u32 n, struct dst_entry *dst, u64 now)
{
	u32 size = msg->room + msg->seg_size, pos = msg->cursor * size;
	struct skb_shared_info *shinfo;
	struct sk_buff *skb;
	u32 bytes;
	u8 tos;

	skb = dblp_skb_alloc(0, GFP_ATOMIC);
	if (!skb)
		return false;
	tos = dblp_path_data_tos(dsk, n);
	dblp_note_sent(dsk, n, now);
	bytes = dblp_note_train(dsk, msg, n, tos & INET_ECN_ECT_0, now);
	dblp_txbuf_frags(msg, skb, pos, bytes + n * msg->room);
	trace_dblp_packet_sent(dsk, DBLP_PKT_DATA, dsk->sent.next - n, n,
			       skb->len, msg, false);
	shinfo = skb_shinfo(skb);
	shinfo->gso_type = SKB_GSO_UDP_L4;
	shinfo->gso_size = size;
	shinfo->gso_segs = n;

	dblp_tx_sent_run(dsk, msg, n, bytes);
	dblp_note_paced(dsk, skb->len, now);
	dblp_xmit(dsk, skb, dst, tos);
	return true;
}

/* May a full packet go now? If not for the pacer, its timer is set */
static bool dblp_may_send(struct dblp_sock *dsk, u32 mss, u64 now)
{
	if (dsk->sent.inflight && dsk->sent.inflight + mss > dsk->cc.cwnd)
		return false;
	if (!dsk->cc.pacing_rate || dsk->pace_next <= now + DBLP_PACE_AHEAD_NS)
		return true;
	dsk->pace_at = dsk->pace_next - DBLP_PACE_AHEAD_NS / 2;
	return false;
}

static bool dblp_push_ctl(struct dblp_sock *dsk, struct dst_entry *dst,
			  u32 mss, u64 now)
{
	u32 most = min_t(u32, DBLP_HDR_LEN + DBLP_CTL_MAX, mss);

	while (dblp_ctl_waits(dsk) &&
	       (dsk->answer >= most || dblp_may_send(dsk, most, now)))
		if (!dblp_send_ctl(dsk, dst, mss, -1, now))
			return false;
	return true;
}

/* What is measured from here on shows what the application sends, not the path */
static void dblp_note_idle(struct dblp_sock *dsk)
{
	struct dblp_sent *sent = &dsk->sent;

	sent->app_limited = sent->delivered + sent->inflight ?: 1;
}

static bool dblp_push_data(struct dblp_sock *dsk, struct dst_entry *dst,
			   u32 mss, u64 now)
{
	struct dblp_tx_msg *msg;
	u32 seg, n = 1;
	bool again, ok;

	while (dblp_may_send(dsk, mss, now)) {
		msg = dblp_tx_pick(dsk, &seg, &again);
		if (!msg) {
			dblp_note_idle(dsk);
			break;
		}
		if (!again)
			n = dblp_train_len(dsk, msg, dst, mss, now);
		if (again || n == 1)
			ok = dblp_send_seg(dsk, msg, seg, again, dst, mss, now);
		else
			ok = n && dblp_send_train(dsk, msg, n, dst, now);
		if (!ok)
			return false;
	}
	return true;
}

/* Somebody who waits for credit says so, lest an update lost hold him for ever */
static void dblp_tell_blocked(struct dblp_sock *dsk)
{
	if (dsk->blocked || !dblp_tx_blocked(dsk))
		return;
	dblp_ctl_add(dsk, DBLP_FRAME_PING);
	dsk->blocked = 1;
}

/*
 * With nothing in flight, a message can still wait for the peer: for credit,
 * for its CLOSE, for its loss map. A peer that is gone would never say so.
 */
static bool dblp_awaits_peer(const struct dblp_sock *dsk)
{
	return !list_empty(&dsk->tx_msgs) && !dsk->pace_at;
}

/* How long nothing was heard when the last packet was sent */
static u64 dblp_silence(const struct dblp_sock *dsk)
{
	u64 heard = dblp_last_heard(dsk);

	return dsk->last_sent - min(dsk->last_sent, heard);
}

static void dblp_set_pto(struct dblp_sock *dsk)
{
	u64 end = dsk->progress + dblp_patience(dsk), pto;

	dsk->pto_at = 0;
	dsk->keepalive_at = 0;
	if (dsk->sent.loss_time)
		return;
	if (!dsk->sent.inflight_pkts) {
		if (dblp_awaits_peer(dsk))
			dsk->pto_at = dsk->last_sent + DBLP_PERSIST_NS;
		else
			dblp_keepalive_set(dsk);
		return;
	}
	pto = dblp_pto(&dsk->rtt, DBLP_ACK_DELAY_NS, dsk->pto_count,
		       dblp_silence(dsk));
	/* The last one ends with the user timeout */
	dsk->pto_at = min(dsk->last_sent + pto, end);
}

/*
 * There is no memory, or no route: try again, and give up when that has gone
 * on for as long as a silent peer would be borne.
 */
static void dblp_retry(struct dblp_sock *dsk, u64 now)
{
	u64 end;

	if (!dblp_ctl_waits(dsk) && list_empty(&dsk->tx_msgs))
		return;
	if (!dsk->stuck_since)
		dsk->stuck_since = now;
	end = dsk->stuck_since + dblp_patience(dsk);
	dsk->pace_at = min(end, now + dblp_backoff(DBLP_RETRY_NS,
						   now - dsk->stuck_since));
	if (now < end)
		return;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNTIMEOUT);
	dblp_abort(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
}

/*
 * Most packets that come, and most messages that are read, leave nothing to be
 * sent. A probe of the path's size goes only while others are in flight.
 */
static bool dblp_has_work(const struct dblp_sock *dsk)
{
	return dsk->tx_cur || dblp_ctl_waits(dsk) ||
	       !list_empty(&dsk->tx_lost) || !dsk->pmtu.max ||
	       (dsk->sent.inflight && !dblp_pmtu_known(&dsk->pmtu));
}

/* Returns false if there is no memory for it, or no route */
static bool dblp_push_all(struct dblp_sock *dsk, u64 now)
{
	struct dst_entry *dst;
	u32 mss;

	if (!dblp_has_work(dsk)) {
		dblp_note_idle(dsk);
		return true;
	}
	if (dblp_sent_skips(&dsk->sent))
		dblp_sent_skip(&dsk->sent, get_random_u32());
	mss = dblp_mss(dsk, &dst);
	dblp_tell_blocked(dsk);
	if (!dst || !dblp_push_ctl(dsk, dst, mss, now) ||
	    !dblp_push_data(dsk, dst, mss, now))
		return false;
	dblp_path_probe(dsk, dst, now);
	return true;
}

/**
 * dblp_push() - send everything that may go now, and set the timer
 * @dsk: socket; the caller has a reference besides the socket's own
 */
void dblp_push(struct dblp_sock *dsk)
{
	u64 now = ktime_get_ns();

	sock_owned_by_me(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	if (dsk->work_at && now >= dsk->work_at)
		dblp_work(dsk, now);
	if (dsk->rx_broken) {
		dblp_rx_abort(dsk);
		return;
	}
	dsk->pace_at = 0;
	if (dblp_push_all(dsk, now))
		dsk->stuck_since = 0;
	else
		dblp_retry(dsk, now);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	dblp_ack_or_wait(dsk, now);
	dblp_set_pto(dsk);
	dblp_timer_update(dsk);
}

static void dblp_skb_add_zeroes(struct sk_buff *skb, u32 len)
{
	struct page *page = ZERO_PAGE(0);
	u32 n;

	for (; len; len -= n) {
		n = min_t(u32, len, PAGE_SIZE);
		get_page(page);
		skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page, 0, n);
		skb->len += n;
		skb->data_len += n;
		skb->truesize += n;
	}
}

/**
 * dblp_send_size_probe() - send a packet whose only purpose is its size
 * @dsk: socket
 * @dst: route
 * @len: UDP payload in bytes, at least DBLP_HDR_LEN
 * @now: the time
 *
 * It counts for nothing in congestion control.
 *
 * Return: false if there was no memory for it.
 */
bool dblp_send_size_probe(struct dblp_sock *dsk, struct dst_entry *dst, u32 len,
			  u64 now)
{
	struct dblp_hdr h = {
		.type = DBLP_PKT_PROBE,
		.pn = (u32)dsk->sent.next,
		.dcid = dsk->peer_key.cid,
	};
	struct dblp_sent_pkt *pkt;
	struct sk_buff *skb;

	sock_owned_by_me(&dsk->sk);
	if (!dblp_ring_room(dsk, 1))
		return false;
	skb = dblp_skb_alloc(DBLP_HDR_LEN, GFP_ATOMIC);
	if (!skb)
		return false;
	dblp_put_hdr(skb_put(skb, DBLP_HDR_LEN), &h);
	dblp_add_auth(dsk, skb);
	dblp_skb_add_zeroes(skb, len - skb->len);
	dblp_note_sent(dsk, 1, now);
	trace_dblp_packet_sent(dsk, DBLP_PKT_PROBE, dsk->sent.next, 1, len,
			       NULL, false);
	pkt = dblp_sent_push(&dsk->sent, 0, now);
	pkt->probe = 1;
	pkt->seg = len;
	dblp_xmit(dsk, skb, dst, dsk->tos);
	return true;
}

/*
 * A segment of a packet in flight. There may be thousands without one that is
 * needed: a probe is not worth to look at all of them.
 */
static struct dblp_tx_msg *dblp_inflight_seg(struct dblp_sock *dsk, u64 *from,
					     u32 *seg)
{
	struct dblp_sent_pkt *pkt;
	struct dblp_tx_msg *msg;
	int i;

	for (i = 0; i < DBLP_PROBE_LOOK; i++, ++*from) {
		pkt = dblp_sent_inflight(&dsk->sent, from);
		if (!pkt)
			return NULL;
		msg = pkt->data ? dblp_tx_find(dsk, pkt->msg) : NULL;
		if (!msg || msg->closed)
			continue;
		*seg = pkt->seg;
		++*from;
		return msg;
	}
	return NULL;
}

/* Send one segment as a probe: a new one, or that of a packet in flight */
static bool dblp_probe_seg(struct dblp_sock *dsk, u64 *from,
			   struct dst_entry *dst, u32 mss, u64 now)
{
	struct dblp_tx_msg *msg;
	bool again;
	u32 seg;

	msg = dblp_tx_pick(dsk, &seg, &again);
	if (!msg) {
		msg = dblp_inflight_seg(dsk, from, &seg);
		again = true;
	}
	return msg && dblp_send_seg(dsk, msg, seg, again, dst, mss, now);
}

/**
 * dblp_probe() - the probe timeout expired: make the peer acknowledge something
 * @dsk: socket
 * @now: the time
 *
 * RFC 9002 section 6.2.4: two packets, whatever the congestion window says: with
 * data if there is any, and one besides with control frames that were not
 * acknowledged; a PING if there is neither. Of control frames there may be more
 * than that holds: the others wait for the next one, or for an answer.
 */
void dblp_probe(struct dblp_sock *dsk, u64 now)
{
	u64 next = dsk->sent.next, from = 0;
	struct dst_entry *dst;
	u32 mss;

	sock_owned_by_me(&dsk->sk);
	/* A failed attempt counts too, else the next were due at once */
	dsk->last_sent = now;
	mss = dblp_mss(dsk, &dst);
	if (!dst)
		return;
	if (dblp_ring_room(dsk, DBLP_PROBE_PKTS) < DBLP_PROBE_PKTS)
		dblp_lose_oldest(dsk, DBLP_PROBE_PKTS);
	if (dblp_probe_seg(dsk, &from, dst, mss, now))
		dblp_probe_seg(dsk, &from, dst, mss, now);
	if (dsk->sent.next == next && !dblp_ctl_owed(dsk))
		dblp_ctl_add(dsk, DBLP_FRAME_PING);
	/* In turn, as the CLOSE frames alone may be more than fit */
	if (!dblp_ctl_owed(dsk) ||
	    !dblp_send_ctl(dsk, dst, mss, dsk->pto_count & 1, now))
		return;
	if (dsk->sent.next == next + 1)
		dblp_send_ctl(dsk, dst, mss, !(dsk->pto_count & 1), now);
}
