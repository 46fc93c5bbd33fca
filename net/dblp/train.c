// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trains: packets of one sender that come in one buffer, all of the same size
 * but the last. The stack makes them (GRO), or had never parted them (GSO).
 *
 * A train stays whole. Packets in it that continue each other are dealt with at
 * once, and the buffer waits in the queue of their message. Each of them is a
 * packet by itself all the same: it may be malformed, or be for somebody else.
 */
#include <linux/unaligned.h>

#include "dblp.h"
#include "window.h"

/* Headers of a DATA packet, and the frames that those of a train have */
#define DBLP_TRAIN_CTL	(DBLP_META_LEN + DBLP_AUTH_LEN)
#define DBLP_TRAIN_HDR	(DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + DBLP_TRAIN_CTL)

static void dblp_window_set(struct dblp_window *w, const u8 *p, u32 len)
{
	w->p = p;
	w->from = w->end;
	w->to = p ? w->end + len : w->end;
	w->end += len;
	w->next++;
}

/** dblp_window_move() - move a window to the piece that has byte @at */
void dblp_window_move(struct dblp_window *w, u32 at)
{
	const struct skb_shared_info *shinfo = skb_shinfo(w->skb);
	const skb_frag_t *frag;

	if (at < w->from) {
		w->end = 0;
		w->next = 0;
	}
	if (!w->next)
		dblp_window_set(w, w->skb->data, skb_headlen(w->skb));
	while (at >= w->end && w->next <= shinfo->nr_frags) {
		frag = &shinfo->frags[w->next - 1];
		dblp_window_set(w, PageHighMem(skb_frag_page(frag)) ? NULL :
				   skb_frag_address(frag), skb_frag_size(frag));
	}
}

static u32 dblp_train_len(const struct dblp_train *t, u32 i)
{
	return min(t->stride, t->skb->len - i * t->stride);
}

/* Other buffers have a size for the parts of one packet, as those that a virtual
 * machine leaves to the stack to be fragmented
 */
static bool dblp_train_is(const struct sk_buff *skb)
{
	return skb_is_gso(skb) &&
	       skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;
}

/*
 * All trains are made here, also those of one packet: nobody has to care whether
 * there is a stride. Where there are packets, it is not 0.
 */
static struct dblp_train dblp_train_of(struct sk_buff *skb)
{
	u32 stride = dblp_train_is(skb) ? skb_shinfo(skb)->gso_size : skb->len;

	return (struct dblp_train) {
		.skb = skb,
		.truesize = skb->truesize,
		.stride = stride,
		.n = stride ? DIV_ROUND_UP(skb->len, stride) : 0,
	};
}

/* One packet of the train as a packet of its own */
static struct sk_buff *dblp_train_cut(const struct dblp_train *t, u32 i)
{
	u32 hdr_len = skb_network_offset(t->skb) * -1;
	u32 len = dblp_train_len(t, i);
	struct sk_buff *skb;

	skb = alloc_skb(hdr_len + len, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_put_data(skb, skb_network_header(t->skb), hdr_len);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, skb_network_header_len(t->skb));
	__skb_pull(skb, hdr_len);
	if (skb_copy_bits(t->skb, i * t->stride, skb_put(skb, len), len)) {
		kfree_skb(skb);
		return NULL;
	}
	skb->protocol = t->skb->protocol;
	skb->skb_iif = t->skb->skb_iif;
	memcpy(skb->cb, t->skb->cb, sizeof(skb->cb));
	return skb;
}

/* What connections exchange once they are established */
static bool dblp_train_type(u8 first)
{
	return first == (DBLP_VERSION << 4 | DBLP_PKT_DATA) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_CTRL) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_ACK) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_PROBE);
}

/* How many of @n packets from @p on, as far as a window shows them, have headers
 * that established connections exchange, and are for @dcid?
 */
static u32 dblp_train_same(const struct dblp_window *w, const u8 *p, u32 stride,
			   u32 n, u64 dcid)
{
	const u8 *last = w->p + (w->to - w->from) - DBLP_HDR_LEN;
	u8 type = p[0];
	u32 i;

	if (!dblp_train_type(type))
		return 0;
	for (i = 0; i < n && p <= last; i++, p += stride)
		if ((p[0] != type && !dblp_train_type(p[0])) ||
		    get_unaligned_be64(p + 8) != dcid)
			break;
	return i;
}

/* The connection that all packets of a train are for, or NULL */
static struct dblp_sock *dblp_train_find(struct dblp_endpoint *ep,
					 const struct dblp_train *t)
{
	struct dblp_window w = { .skb = t->skb };
	u32 i, same;
	const u8 *p;
	u64 dcid;

	if (!t->n || t->n > DBLP_TRAIN_MAX ||
	    dblp_train_len(t, t->n - 1) < DBLP_HDR_LEN)
		return NULL;
	for (i = 0; i < t->n; i += same) {
		p = dblp_window_peek(&w, i * t->stride, DBLP_HDR_LEN);
		if (!p)
			return NULL;
		if (!i)
			dcid = get_unaligned_be64(p + 8);
		same = dblp_train_same(&w, p, t->stride, t->n - i, dcid);
		if (!same)
			return NULL;
	}
	return dblp_conn_find(ep->net, dcid);
}

/* Hand a train on, if all of it is for one connection */
static bool dblp_train_whole(struct dblp_endpoint *ep,
			     const struct dblp_train *t)
{
	struct dblp_sock *dsk = dblp_train_find(ep, t);

	DBLP_SKB_CB(t->skb)->train = dsk;
	if (!dsk)
		return false;
	dblp_rcv_sock(dsk, t->skb);
	sock_put(&dsk->sk);
	return true;
}

/* A train whose packets go different ways */
static void dblp_train_part(struct dblp_endpoint *ep,
			    const struct dblp_train *t)
{
	struct dblp_train one;
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < t->n; i++) {
		skb = dblp_train_cut(t, i);
		if (!skb) {
			dblp_count_drops(ep->net, NULL, DBLP_MIB_DROPMEMORY,
					 1);
			continue;
		}
		one = dblp_train_of(skb);
		if (!dblp_train_whole(ep, &one))
			dblp_rcv_single(ep, skb);
	}
	consume_skb(t->skb);
}

/**
 * dblp_train_rcv() - something has come in, a train perhaps
 * @ep: where
 * @skb: it
 *
 * Context: softirq, RCU.
 * Return: true if it was consumed; false if it is a single packet that is not
 * for an established connection.
 */
bool dblp_train_rcv(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	struct dblp_train t = dblp_train_of(skb);

	if (dblp_train_whole(ep, &t))
		return true;
	if (!dblp_train_is(skb))
		return false;
	dblp_train_part(ep, &t);
	return true;
}

/* A zero map is needed in one piece */
static bool dblp_train_has_map(const struct dblp_run *run)
{
	return run->h.type == DBLP_PKT_DATA &&
	       run->len >= DBLP_HDR_LEN + DBLP_DATA_HDR_LEN &&
	       dblp_has_zeromap(run->p);
}

/*
 * A DATA packet that has a segment, and no other frames than META and AUTH, can be
 * looked at where it is
 */
static bool dblp_train_plain(const struct dblp_run *run)
{
	return run->h.type == DBLP_PKT_DATA &&
	       run->h.ctl_len <= DBLP_TRAIN_CTL && !dblp_train_has_map(run);
}

/* How many of @most packets from @p on, as far as a window shows them, continue
 * @run, of which @n precede them?
 */
static u32 dblp_train_follow(const struct dblp_window *w, const u8 *p,
			     const struct dblp_run *run, u32 n, u32 most)
{
	u32 offset = dblp_load_u32(run->p + DBLP_HDR_LEN + 4) +
		     n * run->h.seg_size;
	u32 ctl_len = run->h.ctl_len, pn = run->h.pn + n, i;
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN;
	const u8 *last = w->p + (w->to - w->from) - hdr_len - ctl_len;
	u32 alike = dblp_ctl_alike(run->p + hdr_len, ctl_len);

	for (i = 0; i < most && p <= last; i++, p += run->train->stride) {
		if (!dblp_hdr_follows(p, run->p, pn, offset))
			break;
		if (alike && memcmp(p + hdr_len, run->p + hdr_len, alike))
			break;
		offset += run->h.seg_size;
		pn++;
	}
	return i;
}

/* How many packets from @run's first on continue each other */
static u32 dblp_train_scan(struct dblp_window *w, const struct dblp_run *run)
{
	u32 ctl_len = run->h.ctl_len, seg_size = run->h.seg_size;
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + ctl_len;
	u32 offset = get_unaligned_be32(run->p + DBLP_HDR_LEN + 4);
	u32 end = get_unaligned_be32(run->p + DBLP_HDR_LEN + 8);
	u32 stride = run->train->stride, n, more, most;
	const u8 *p;

	/* Whatever has another length than the others is the last of its train */
	if (!seg_size || stride != hdr_len + seg_size || offset >= end)
		return 1;
	most = min(run->train->n - run->first, 1 + (end - offset - 1) / seg_size);
	for (n = 1; n < most; n += more) {
		p = dblp_window_peek(w, (run->first + n) * stride, hdr_len);
		more = p ? dblp_train_follow(w, p, run, n, most - n) : 0;
		if (!more)
			break;
	}
	/* Only the last one can be short, and must be what is left */
	if (n > 1 && dblp_train_len(run->train, run->first + n - 1) != hdr_len +
	    min(seg_size, end - (offset + (n - 1) * seg_size)))
		n--;
	return n;
}

/* A packet that needs to be looked at more closely */
static void dblp_train_rcv_single(struct dblp_sock *dsk, struct dblp_run *run)
{
	bool all = run->h.type != DBLP_PKT_DATA || dblp_train_has_map(run);
	u32 len = all ? run->len :
		  DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len;
	struct net *net = sock_net(&dsk->sk);
	struct dblp_train one;
	struct sk_buff *skb;

	/* It is alone, and in our hands only */
	if (run->train->n == 1) {
		if (!pskb_may_pull(run->train->skb, len)) {
			dblp_count_drops(net, dsk, DBLP_MIB_DROPMEMORY, 1);
			return;
		}
		run->p = run->train->skb->data;
		run->train->truesize = run->train->skb->truesize;
		dblp_rcv_run(dsk, run);
		return;
	}
	skb = dblp_train_cut(run->train, run->first);
	if (!skb) {
		dblp_count_drops(net, dsk, DBLP_MIB_DROPMEMORY, 1);
		return;
	}
	one = dblp_train_of(skb);
	run->train = &one;
	run->first = 0;
	run->p = skb->data;
	dblp_rcv_run(dsk, run);
	dblp_rx_settle(dsk, &one);
	consume_skb(skb);
}

/* Deal with packet @i and those that continue it; returns how many */
static u32 dblp_train_rcv_from(struct dblp_sock *dsk, struct dblp_train *t,
			       struct dblp_window *w, u32 i)
{
	struct dblp_run run = {
		.train = t,
		.first = i,
		.len = dblp_train_len(t, i),
		.n = 1,
	};
	u32 len = min_t(u32, run.len, DBLP_TRAIN_HDR);
	const u8 *p = dblp_window_peek(w, i * t->stride, len);
	struct net *net = sock_net(&dsk->sk);
	u8 hdr[DBLP_TRAIN_HDR];
	enum dblp_wire_error err;
	enum dblp_mib_item why;
	bool plain;

	/* The window moves, and packets may share memory with their sender */
	if (likely(p)) {
		memcpy(hdr, p, len);
	} else if (skb_copy_bits(t->skb, i * t->stride, hdr, len)) {
		dblp_count_drops(net, dsk, DBLP_MIB_DROPMEMORY, 1);
		return 1;
	}
	run.p = hdr;
	err = dblp_get_hdr(&run.h, hdr, run.len);
	if (err) {
		dblp_count_drops(net, dsk, dblp_wire_why(err), 1);
		return 1;
	}
	plain = dblp_train_plain(&run);
	if (plain)
		run.n = dblp_train_scan(w, &run);
	if (unlikely(dsk->auth)) {
		why = dblp_auth_run(dsk, &run);
		if (why != DBLP_MIB_NONE) {
			dblp_count_drops(net, dsk, why, 1);
			return 1;
		}
	}
	if (plain)
		dblp_rcv_run(dsk, &run);
	else
		dblp_train_rcv_single(dsk, &run);
	return run.n;
}

/**
 * dblp_train_rcv_sock() - a train for a connection
 * @dsk: socket, locked or owned by the process that works on its backlog
 * @skb: the train; consumed
 */
void dblp_train_rcv_sock(struct dblp_sock *dsk, struct sk_buff *skb)
{
	enum dblp_mib_item why = DBLP_MIB_DROPSTATE;
	struct dblp_window w = { .skb = skb };
	struct dblp_train t = dblp_train_of(skb);
	u32 i = 0;

	sock_owned_by_me(&dsk->sk);
	if (dsk->state >= DBLP_STATE_ESTABLISHED && !dblp_from_peer(dsk, skb))
		why = DBLP_MIB_DROPWRONGPEER;
	else
		while (i < t.n && dsk->state >= DBLP_STATE_ESTABLISHED)
			i += dblp_train_rcv_from(dsk, &t, &w, i);
	dblp_rx_settle(dsk, &t);
	if (i < t.n)
		dblp_count_drops(sock_net(&dsk->sk), dsk, why, t.n - i);
	consume_skb(skb);
	if (!i)
		return;
	dblp_push(dsk);
	dblp_check_closing(dsk);
}
