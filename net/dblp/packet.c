// SPDX-License-Identifier: GPL-2.0-only
/*
 * Build packets, enter them in the sent ring, and pass them to IP.
 *
 * A buffer has one packet or a train: one large UDP datagram, which the device
 * segments, or the stack for it (GSO). Only dblp_commit() enters packets in the
 * sent ring. ACK, RST and handshake packets bypass the ring, because they have
 * no number and are not acknowledged.
 */
#include <linux/udp.h>
#include <net/inet_ecn.h>

#include "dblp.h"
#include "trace.h"

#define DBLP_DATA_LEN	(DBLP_HDR_LEN + DBLP_DATA_HDR_LEN)

/* Append the AUTH frame, which must be the last frame */
static void dblp_add_auth(struct dblp_sock *dsk, struct sk_buff *skb)
{
	if (unlikely(dsk->auth))
		dblp_auth_add(dsk, skb);
}

/* Give each port its own skb hash and flow label, for multipath by hash */
static void dblp_set_port(struct dblp_sock *dsk, struct sk_buff *skb, u32 port)
{
	dsk->path.sport = dsk->ep->ports[port];
	skb_set_hash_from_sk(skb, &dsk->sk);
	if (port)
		__skb_set_sw_hash(skb, jhash_1word(port, dsk->sk.sk_txhash),
				  true);
}

static int dblp_xmit(struct dblp_sock *dsk, struct sk_buff *skb,
		     struct dst_entry *dst, u32 port, u8 tos, u32 priority)
{
	int err;

	if (unlikely(dsk->auth))
		dblp_auth_sign(dsk, skb);
	skb_set_owner_w(skb, &dsk->sk);
	dblp_set_port(dsk, skb, port);
	skb->priority = max_t(u32, priority, READ_ONCE(dsk->sk.sk_priority));
	if (likely(dblp_same_policy(&dsk->sk, dsk->ep->usk,
				    CGROUP_INET_EGRESS))) {
		err = dblp_ip_xmit(dsk->ep, skb, dst, &dsk->path, tos);
	} else {
		kfree_skb(skb);
		err = -EPERM;
	}
	if (err)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_XMITERROR);
	return err;
}

/* Send a packet without number, which is not acknowledged */
static int dblp_xmit_unnumbered(struct dblp_sock *dsk, struct sk_buff *skb,
				struct dst_entry *dst, u8 type, u32 port)
{
	trace_dblp_packet_sent(dsk, type, 0, 1, skb->len, NULL, false, port);
	return dblp_xmit(dsk, skb, dst, port, DBLP_CTL_TOS, DBLP_CTL_PRIORITY);
}

/* Rotate ACKs over live ports, because a loss of ACKs cannot be detected */
static u32 dblp_ack_port(struct dblp_sock *dsk)
{
	const struct dblp_sent *s = &dsk->sent;
	u32 i;

	if (s->n_ports == 1)
		return 0;
	for (i = 0; i < s->n_ports; i++) {
		dsk->acks.port = (dsk->acks.port + 1) % s->n_ports;
		if (!dblp_port_dead(&s->ports[dsk->acks.port]))
			return dsk->acks.port;
	}
	return 0;
}

/*
 * Choose the port of a numbered packet or a train. After a probe timeout the
 * path of the last port may be dead, so choose again.
 */
static u32 dblp_data_port(struct dblp_sock *dsk, u32 len)
{
	struct dblp_sent *s = &dsk->sent;

	if (s->n_ports == 1)
		return 0;
	return dblp_port_next(s, len, dsk->cc.cwnd, dsk->rtt.srtt,
			      dsk->tx.pto_count);
}

/**
 * dblp_send_raw() - send a packet without number
 * @dsk: socket with a path
 * @data: packet without AUTH frame
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
	return dblp_xmit_unnumbered(dsk, skb, dst, data[0] & 0xf, 0);
}

/**
 * dblp_send_rst() - reset the connection at the peer
 * @dsk: socket
 * @reason: &enum dblp_rst_reason
 */
void dblp_send_rst(struct dblp_sock *dsk, u32 reason)
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

static void dblp_note_sent(struct dblp_sock *dsk, u32 n, u64 now)
{
	if (!dsk->sent.inflight_pkts)
		dsk->tx.progress = now;
	dsk->tx.last_sent = now;
	dsk->counts.pkts_sent += n;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTSENT, n);
}

static void dblp_note_paced(struct dblp_sock *dsk, u32 wire_bytes, u64 now)
{
	if (!dsk->cc.pacing_rate)
		return;
	dsk->pace.next = dblp_pace_next(dsk->pace.next, now, wire_bytes,
					dsk->cc.pacing_rate, &dsk->pace.late);
}

/*
 * CTRL packets of up to three times the bytes received bypass cwnd and pacer.
 * Others are paced.
 */
static void dblp_note_answer(struct dblp_sock *dsk, u32 len, u64 now)
{
	if (dsk->answer >= len)
		dsk->answer -= len;
	else
		dblp_note_paced(dsk, len, now);
}

/* REPAIR marks the packet that ends the first pass, and all later packets */
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

/*
 * Write headers in the headroom of @n segments from @slot on, or of fewer if
 * the first pass ends among them. Returns the number of segments.
 */
static u32 dblp_put_in_place(struct dblp_sock *dsk, const struct dblp_out *out,
			     u32 slot, u32 seg, u32 n)
{
	struct dblp_tx_msg *msg = out->msg;
	u32 pass = msg->cursor + msg->ahead + 1;

	if (pass < msg->first_pass)
		n = min(n, msg->first_pass - pass);
	else if (pass == msg->first_pass)
		dblp_put_seg_hdr(dsk, msg, out->hdr, 0, pass,
				 msg->room - DBLP_DATA_LEN, false);
	dblp_txbuf_write(msg, slot, n, out->hdr, dsk->sent.next, seg);
	return n;
}

/* Enter segments in the ring, row by row, and update their message */
static void dblp_commit_segs(struct dblp_sock *dsk, struct dblp_out *out,
			     struct dblp_sent_pkt *pkt)
{
	u32 slot = out->slot, end = slot + out->n, row;
	struct dblp_tx_msg *msg = out->msg;

	for (; slot < end; slot += row) {
		pkt->seg = slot == out->slot ? out->seg :
			   dblp_tx_slot_seg(msg, slot);
		row = min(end - slot, dblp_tx_row(msg, slot));
		if (out->hdr)
			row = dblp_put_in_place(dsk, out, slot, pkt->seg, row);
		pkt->bytes = out->hdr_len + dblp_tx_seg_len(msg, pkt->seg);
		pkt->fragmented = pkt->bytes > out->mss;
		dblp_sent_push_row(&dsk->sent, pkt, row, out->now);
		dblp_tx_sent(dsk, msg, pkt->seg, row, out->again);
	}
}

/*
 * Send packets: enter them in the sent ring as described by @pkt, update
 * congestion control, pacer and counters, and pass the packets to IP.
 */
static void dblp_commit(struct dblp_sock *dsk, struct dblp_out *out,
			struct dblp_sent_pkt *pkt)
{
	struct sk_buff *skb = out->skb;
	u64 pn = dsk->sent.next;
	u32 priority = 0;
	u8 tos = dsk->opt.tos;

	if (out->type == DBLP_PKT_DATA) {
		tos = dblp_path_data_tos(dsk, out->n);
		pkt->ect = tos & INET_ECN_ECT_0 ? 1 : 0;
	}
	if (!dblp_tries_port(pkt))
		pkt->port = dblp_data_port(dsk, skb->len);
	dblp_note_sent(dsk, out->n, out->now);
	if (out->hdr_len)
		dblp_commit_segs(dsk, out, pkt);
	else
		dblp_sent_push_row(&dsk->sent, pkt, 1, out->now);
	trace_dblp_packet_sent(dsk, out->type, pn, out->n, skb->len, out->msg,
			       out->again, pkt->port);
	if (out->type == DBLP_PKT_DATA) {
		dblp_note_paced(dsk, skb->len, out->now);
	} else if (out->type == DBLP_PKT_CTRL) {
		dblp_note_answer(dsk, skb->len, out->now);
		tos = DBLP_CTL_TOS;
		priority = DBLP_CTL_PRIORITY;
	}
	if (dblp_xmit(dsk, skb, out->dst, pkt->port, tos, priority) > 0)
		dsk->tx.queue_full = 1;
}

/*
 * Build a CTRL or ACK packet. CTRL starts with frames that are repeated until
 * acknowledged, see dblp_ctl_fill(). A probe reserves room for an ACK, because
 * the last ACK may have been lost. Both types end with ACK frames.
 */
static struct sk_buff *dblp_frames_skb(struct dblp_sock *dsk, u8 type,
				       u32 room, int probe, u64 now,
				       struct dblp_carried **carried)
{
	struct dblp_hdr h = { .type = type, .dcid = dsk->peer_key.cid };
	struct sk_buff *skb = dblp_skb_alloc(room, GFP_ATOMIC);
	const u8 *end;
	u8 *hdr, *p;

	if (!skb)
		return NULL;
	hdr = skb_tail_pointer(skb);
	p = hdr + DBLP_HDR_LEN;
	room -= dblp_auth_len(dsk);
	end = hdr + room;
	if (type == DBLP_PKT_CTRL) {
		h.pn = (u32)dsk->sent.next;
		if (probe >= 0)
			room = clamp_t(u32, room - DBLP_ACK_FRAMES_ROOM,
				       DBLP_HDR_LEN + DBLP_LOSSMAP_LEN_MAX,
				       room);
		p = dblp_ctl_fill(dsk, p, hdr + room, dsk->sent.next, probe,
				  carried);
		WARN_ON_ONCE(p == hdr + DBLP_HDR_LEN);
	}
	p = dblp_put_ack_frames(dsk, p, end, now);
	/* Pad to DBLP_RST_LEN: peers send no RST for a shorter packet */
	if (type == DBLP_PKT_CTRL && p - hdr < DBLP_RST_LEN)
		p = dblp_put_ecn(dsk, p, end);
	h.ctl_len = p - hdr - DBLP_HDR_LEN;
	dblp_put_hdr(hdr, &h);
	skb_put(skb, p - hdr);
	dblp_add_auth(dsk, skb);
	return skb;
}

/**
 * dblp_send_ack() - send an ACK packet
 * @dsk: socket
 * @now: the time
 */
void dblp_send_ack(struct dblp_sock *dsk, u64 now)
{
	struct dst_entry *dst;
	struct sk_buff *skb;
	u32 room;

	sock_owned_by_me(&dsk->sk);
	room = min_t(u32, DBLP_HDR_LEN + DBLP_CTL_MAX, dblp_mss(dsk, &dst));
	room = min(room, max_t(u32, dsk->answer, DBLP_ANSWER_MIN) +
		   dblp_auth_len(dsk));
	skb = dst ? dblp_frames_skb(dsk, DBLP_PKT_ACK, room, -1, now, NULL) :
		    NULL;
	dblp_ack_done(dsk, now);
	if (!skb)
		return;
	dsk->answer -= min_t(u32, dsk->answer, skb->len);
	dblp_xmit_unnumbered(dsk, skb, dst, DBLP_PKT_ACK, dblp_ack_port(dsk));
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_ACKSENT);
}

/**
 * dblp_send_ctl() - send a CTRL packet
 * @dsk: socket; dblp_ctl_waits(), or for a probe dblp_ctl_owed(), is true
 * @out: has route, mss and time
 * @probe: see dblp_ctl_fill(), -1 if this is not a probe
 *
 * Return: false if memory is short.
 */
bool dblp_send_ctl(struct dblp_sock *dsk, struct dblp_out *out, int probe)
{
	u32 room = min_t(u32, DBLP_HDR_LEN + DBLP_CTL_MAX, out->mss);
	struct dblp_sent_pkt pkt = {};

	sock_owned_by_me(&dsk->sk);
	if (!dblp_ring_room(dsk, 1))
		return false;
	out->skb = dblp_frames_skb(dsk, DBLP_PKT_CTRL, room, probe, out->now,
				   &pkt.carried);
	if (!out->skb)
		return false;
	out->type = DBLP_PKT_CTRL;
	out->n = 1;
	out->msg = NULL;
	out->hdr_len = 0;
	pkt.bytes = out->skb->len;
	dblp_commit(dsk, out, &pkt);
	return true;
}

/*
 * Bytes for control frames beside @len other bytes. If the segment alone
 * exceeds the path MTU, IP fragments the packet, and META is sent nevertheless:
 * the ACK of any segment must imply that META has arrived.
 */
static u32 dblp_ctl_room(const struct dblp_sock *dsk,
			 const struct dblp_tx_msg *msg, u32 len, u32 mss)
{
	u32 least = msg->meta && !msg->meta_acked ? DBLP_META_LEN : 0;
	u32 most = least + (dsk->acks.pending ? DBLP_ACK_FRAMES_ROOM : 0);

	len += dblp_auth_len(dsk);
	return clamp_t(u32, len < mss ? mss - len : 0, least, most);
}

/*
 * Write the control frames of a DATA packet: META until it is acknowledged, and
 * ACK frames if they fit.
 */
static u32 dblp_seg_ctl(struct dblp_sock *dsk, const struct dblp_tx_msg *msg,
			u8 *out, u32 room, u64 now)
{
	const u8 *end = out + room;
	u8 *p = out, *next;

	if (msg->meta && !msg->meta_acked) {
		next = dblp_put_meta(msg, p, end);
		p = next ?: p;
	}
	if (dsk->acks.pending)
		p = dblp_put_ack_frames(dsk, p, end, now);
	return p - out;
}

/*
 * Build a DATA packet with its headers in the linear part. The caller appends
 * @len bytes, @copied of them to the linear part. @pass is the number of
 * segments sent or described, including this packet.
 */
static struct sk_buff *dblp_data_skb(struct dblp_sock *dsk,
				     const struct dblp_out *out, u32 seg,
				     u32 pass, u32 len, u32 copied, bool zeros)
{
	const struct dblp_tx_msg *msg = out->msg;
	u32 room = dblp_ctl_room(dsk, msg, DBLP_DATA_LEN + len, out->mss);
	struct sk_buff *skb;
	u32 ctl_len;
	u8 *hdr;

	skb = dblp_skb_alloc(DBLP_DATA_LEN + room + copied, GFP_ATOMIC);
	if (!skb)
		return NULL;
	hdr = skb_put(skb, DBLP_DATA_LEN);
	ctl_len = dblp_seg_ctl(dsk, msg, skb_tail_pointer(skb), room, out->now);
	skb_put(skb, ctl_len);
	dblp_put_seg_hdr(dsk, msg, hdr, seg, pass, ctl_len, zeros);
	dblp_add_auth(dsk, skb);
	return skb;
}

/* Send the zero map of elided segments */
static bool dblp_send_zeros(struct dblp_sock *dsk, struct dblp_out *out)
{
	struct dblp_tx_msg *msg = out->msg;
	u32 first = dblp_elide_first(msg, out->seg);
	u32 len = 4 * dblp_elide_map(msg, out->seg);
	struct dblp_sent_pkt pkt = {
		.data = 1, .msg = msg->id, .seg = first,
	};
	bool last = dblp_elide_ends_pass(msg, out->seg);

	out->skb = dblp_data_skb(dsk, out, round_down(first, 32),
				 last ? U32_MAX : 0, len, len, true);
	if (!out->skb)
		return false;
	dblp_elide_put(msg, out->seg, skb_put(out->skb, len));
	out->again = msg->sent[first] & DBLP_SEG_SENT;
	out->hdr_len = 0;
	pkt.bytes = out->skb->len;
	pkt.fragmented = pkt.bytes > out->mss;
	dblp_tx_described(dsk, msg, out->seg);
	dblp_commit(dsk, out, &pkt);
	return true;
}

/*
 * May headers be written in the headroom of the segments, so that a train is
 * contiguous? Not for segments sent before, because a queued packet may still
 * refer to their headers. The headroom has no room for ACK frames.
 */
static bool dblp_headers_in_place(const struct dblp_sock *dsk,
				  const struct dblp_out *out)
{
	return !out->again && !out->msg->small &&
	       (out->n > 1 || !dsk->acks.pending);
}

static void dblp_begin_in_place(struct dblp_sock *dsk, struct dblp_out *out,
				u8 *hdr)
{
	const struct dblp_tx_msg *msg = out->msg;

	dblp_put_seg_hdr(dsk, msg, hdr, 0, msg->cursor + msg->ahead + 1,
			 msg->room - DBLP_DATA_LEN, false);
	if (msg->meta)
		dblp_put_meta(msg, hdr + DBLP_DATA_LEN, hdr + msg->room);
	if (unlikely(dsk->auth))
		dblp_auth_put(dsk, hdr + msg->room - DBLP_AUTH_LEN);
	out->hdr = hdr;
	out->hdr_len = msg->room;
	out->skb = dblp_skb_alloc(0, GFP_ATOMIC);
}

static void dblp_begin_alone(struct dblp_sock *dsk, struct dblp_out *out)
{
	const struct dblp_tx_msg *msg = out->msg;
	u32 len = dblp_tx_seg_len(msg, out->seg);

	out->hdr = NULL;
	out->skb = dblp_data_skb(dsk, out, out->seg,
				 msg->cursor + msg->ahead + !out->again, len,
				 msg->small ? len : 0, false);
	if (out->skb)
		out->hdr_len = out->skb->len;
}

/* Bytes by which @n segments from @slot on are shorter than full segments */
static u32 dblp_shortfall(const struct dblp_tx_msg *msg, u32 slot, u32 n)
{
	if (msg->short_slot < slot || msg->short_slot >= slot + n)
		return 0;
	return msg->seg_size - dblp_tx_seg_len(msg, msg->acked.n - 1);
}

/**
 * dblp_send_segs() - send segments of a message, or the map of elided ones
 * @dsk: socket
 * @out: has route, mss, time, @msg, @seg, @again, and @n of at most
 *	dblp_tx_run() segments
 *
 * Return: false if memory is short.
 */
bool dblp_send_segs(struct dblp_sock *dsk, struct dblp_out *out)
{
	u8 hdr[DBLP_DATA_LEN + DBLP_META_LEN + DBLP_AUTH_LEN];
	struct dblp_tx_msg *msg = out->msg;
	u32 size = msg->room + msg->seg_size, from, to;
	struct dblp_sent_pkt pkt = { .data = 1, .msg = msg->id };

	sock_owned_by_me(&dsk->sk);
	out->type = DBLP_PKT_DATA;
	if (dblp_tx_elided(msg, out->seg))
		return dblp_send_zeros(dsk, out);
	if (dblp_headers_in_place(dsk, out))
		dblp_begin_in_place(dsk, out, hdr);
	else
		dblp_begin_alone(dsk, out);
	if (!out->skb)
		return false;

	out->slot = dblp_tx_slot(msg, out->seg);
	from = out->slot * size + (out->hdr ? 0 : msg->room);
	to = (out->slot + out->n) * size -
	     dblp_shortfall(msg, out->slot, out->n);
	dblp_txbuf_frags(msg, out->skb, from, to - from);
	if (out->n > 1) {
		skb_shinfo(out->skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(out->skb)->gso_size = size;
		skb_shinfo(out->skb)->gso_segs = out->n;
	}
	dblp_commit(dsk, out, &pkt);
	return true;
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

/* Send a PROBE packet, which congestion control ignores */
static bool dblp_send_probe(struct dblp_sock *dsk, struct dblp_out *out,
			    struct dblp_sent_pkt *pkt, u32 len)
{
	struct dblp_hdr h = {
		.type = DBLP_PKT_PROBE,
		.seg_size = pkt->port,
		.pn = (u32)dsk->sent.next,
		.dcid = dsk->peer_key.cid,
	};

	if (!dblp_ring_room(dsk, 1))
		return false;
	out->skb = dblp_skb_alloc(DBLP_HDR_LEN, GFP_ATOMIC);
	if (!out->skb)
		return false;
	out->type = DBLP_PKT_PROBE;
	out->n = 1;
	out->msg = NULL;
	out->hdr_len = 0;
	dblp_put_hdr(skb_put(out->skb, DBLP_HDR_LEN), &h);
	dblp_add_auth(dsk, out->skb);
	dblp_skb_add_zeroes(out->skb, len - out->skb->len);
	dblp_commit(dsk, out, pkt);
	return true;
}

/**
 * dblp_send_size_probe() - send a PMTU probe
 * @dsk: socket
 * @out: has route and time
 * @len: UDP payload in bytes, at least DBLP_HDR_LEN
 *
 * Return: false if memory is short.
 */
bool dblp_send_size_probe(struct dblp_sock *dsk, struct dblp_out *out, u32 len)
{
	struct dblp_sent_pkt pkt = { .probe = 1, .seg = len };

	sock_owned_by_me(&dsk->sk);
	return dblp_send_probe(dsk, out, &pkt, len);
}

/**
 * dblp_send_port_probe() - announce a port, or probe an announced one
 * @dsk: socket
 * @out: has route, mss and time
 * @port: index of the port
 *
 * Later probes have the size of full packets, because the port lost those.
 *
 * Return: false if memory is short.
 */
bool dblp_send_port_probe(struct dblp_sock *dsk, struct dblp_out *out, u32 port)
{
	bool again = dsk->sent.ports[port].announced;
	struct dblp_sent_pkt pkt = { .probe = 1, .port = port };

	sock_owned_by_me(&dsk->sk);
	return dblp_send_probe(dsk, out, &pkt,
			       again ? out->mss :
				       DBLP_RST_LEN + dblp_auth_len(dsk));
}
