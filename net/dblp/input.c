// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive path: from the UDP socket to the connection, and processing there.
 *
 * UDP delivers trains: packets of one sender in one buffer, all except the last
 * of one size, coalesced by GRO or never segmented (GSO). A single packet is a
 * train of one. A train is not split if all its packets are for one connection.
 * Consecutive packets that continue each other, a run, are processed together,
 * and the buffer is queued to their message.
 *
 * Each packet is validated by itself, as it may be malformed or for another
 * connection. A packet is either accepted completely or changes nothing, and
 * each drop is counted by its reason.
 *
 *	dblp_rcv()	UDP has queued the packet and verified its checksum
 *	dblp_rcv_conn()	finds the connection of all packets by their IDs
 *	dblp_sk_rcv()	adds to the backlog if a process owns the socket
 *	dblp_do_rcv()	socket locked: checks device and addresses
 *	dblp_run_hdr()	checks headers, copied if the sender can write to them
 *	dblp_rcv_run()	checks state, port, data header and tag; finds the run
 *	dblp_rcv_*()	processes packets of one type
 *
 * Buffers may share memory with their sender, which may be a local process. So
 * headers and frames are validated in memory that only this code can write to.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/rps.h>

#include "dblp.h"
#include "trace.h"
#include "window.h"

static const enum dblp_mib_item dblp_wire_mib[] = {
	[DBLP_WIRE_OK]		= DBLP_MIB_NONE,
	[DBLP_WIRE_SHORT]	= DBLP_MIB_DROPSHORT,
	[DBLP_WIRE_VERSION]	= DBLP_MIB_DROPVERSION,
	[DBLP_WIRE_TYPE]	= DBLP_MIB_DROPTYPE,
	[DBLP_WIRE_FIELD]	= DBLP_MIB_DROPFIELD,
	[DBLP_WIRE_TRAILING]	= DBLP_MIB_DROPTRAILING,
	[DBLP_WIRE_AUTH]	= DBLP_MIB_DROPAUTH,
};

static u32 dblp_train_len(const struct dblp_train *t, u32 i)
{
	return min(t->stride, t->skb->len - i * t->stride);
}

static struct dblp_train dblp_train_of(struct sk_buff *skb)
{
	return (struct dblp_train) {
		.skb = skb,
		.truesize = skb->truesize,
		.stride = DBLP_SKB_CB(skb)->stride,
		.n = DBLP_SKB_CB(skb)->n,
	};
}

/* Copy one packet of a train to a linear buffer of its own */
static struct sk_buff *dblp_train_cut(const struct dblp_train *t, u32 i)
{
	u32 hdr_len = skb_network_offset(t->skb) * -1;
	u32 len = dblp_train_len(t, i);
	struct sk_buff *skb;

	skb = alloc_skb(hdr_len + len, GFP_ATOMIC | __GFP_NOWARN);
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
	DBLP_SKB_CB(skb)->stride = len;
	DBLP_SKB_CB(skb)->n = 1;
	return skb;
}

/*
 * Must the packet be copied to a buffer of its own, because its headers exceed
 * the @have bytes at @p? A zero map must be alone in its buffer and linear.
 */
static bool dblp_run_apart(const struct dblp_run *run, u32 have)
{
	u32 need = DBLP_HDR_LEN + run->h.ctl_len;

	switch (run->h.type) {
	case DBLP_PKT_DATA:
		if (dblp_has_zeromap(run->p))
			return run->train->n > 1 || run->p == run->hdr ||
			       run->len > have;
		return need + DBLP_DATA_HDR_LEN > have;
	case DBLP_PKT_PROBE:
		return need > have;
	default:
		return run->len > have;
	}
}

/*
 * Parse the header of packet @i of a train. Sets @apart if dblp_rcv_apart()
 * must process the packet.
 */
static enum dblp_mib_item dblp_run_hdr(struct dblp_run *run,
				       struct dblp_train *t,
				       struct dblp_window *w, u32 i)
{
	u32 least = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN, have;
	u32 at = i * t->stride, linear = skb_headlen(t->skb);
	enum dblp_wire_error err;
	const u8 *p;

	run->train = t;
	run->first = i;
	run->n = 1;
	run->len = dblp_train_len(t, i);
	if (at + min(run->len, least) <= linear) {
		run->p = t->skb->data + at;
		have = min(run->len, linear - at);
	} else {
		have = min_t(u32, run->len, sizeof(run->hdr));
		p = dblp_window_peek(w, at, have);
		if (likely(p))
			memcpy(run->hdr, p, have);
		else if (skb_copy_bits(t->skb, at, run->hdr, have))
			return DBLP_MIB_DROPMEMORY;
		run->p = run->hdr;
	}
	err = dblp_get_hdr(&run->h, run->p, run->len);
	/* VERSION packets have the same format in all versions */
	if (err == DBLP_WIRE_VERSION && run->h.type == DBLP_PKT_VERSION)
		err = dblp_check_len(&run->h, run->len);
	if (err)
		return dblp_wire_mib[err];
	run->apart = dblp_run_apart(run, have);
	return DBLP_MIB_NONE;
}

/*
 * Number of packets from @p on, at most @most and within the window, that
 * continue the @n packets of @run before @p.
 */
static u32 dblp_run_follow(const struct dblp_window *w, const u8 *p,
			   const struct dblp_run *run, u32 n, u32 most)
{
	u32 offset = run->d.offset + n * run->h.seg_size;
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

/* Number of packets of the run that begins with a DATA packet */
static u32 dblp_run_scan(struct dblp_window *w, const struct dblp_run *run)
{
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len;
	u32 seg_size = run->h.seg_size, stride = run->train->stride;
	u32 left = run->d.msg_len - run->d.offset, n, more, most;
	const u8 *p;

	most = min(run->train->n - run->first, DIV_ROUND_UP(left, seg_size));
	for (n = 1; n < most; n += more) {
		p = dblp_window_peek(w, (run->first + n) * stride, hdr_len);
		more = p ? dblp_run_follow(w, p, run, n, most - n) : 0;
		if (!more)
			break;
	}
	/* Only the last packet can be short, and must end the message */
	if (n > 1 && dblp_train_len(run->train, run->first + n - 1) !=
	    hdr_len + min(seg_size, left - (n - 1) * seg_size))
		n--;
	return n;
}

static enum dblp_wire_error dblp_run_data(struct dblp_run *run,
					  struct dblp_window *w)
{
	const struct dblp_data *d = &run->d;
	struct dblp_zeromap z;
	enum dblp_wire_error err;

	err = dblp_get_data(&run->d, &run->h, run->p + DBLP_HDR_LEN,
			    DBLP_DATA_HDR_LEN, run->len);
	if (err)
		return err;
	if (d->zeros) {
		z = dblp_run_zeromap(run);
		if (!dblp_zeromap_valid(&z, DIV_ROUND_UP(d->msg_len,
							 run->h.seg_size)))
			return DBLP_WIRE_FIELD;
	} else if (run->first + 1 < run->train->n) {
		run->n = dblp_run_scan(w, run);
	}
	return DBLP_WIRE_OK;
}

/* Check a probe: only zeroes may follow its frames */
static enum dblp_wire_error dblp_run_probe(const struct dblp_run *run,
					   struct dblp_window *w)
{
	u32 at = run->first * run->train->stride, n;
	u32 from = at + DBLP_HDR_LEN + run->h.ctl_len, to = at + run->len;
	u8 buf[DBLP_WINDOW_BUF];
	const u8 *p;

	for (; from < to; from += n) {
		p = dblp_window_piece(w, from, to, buf, &n);
		if (!p || memchr_inv(p, 0, n))
			return DBLP_WIRE_FIELD;
	}
	return DBLP_WIRE_OK;
}

/* Check a packet behind its header, without side effects */
static enum dblp_wire_error dblp_run_body(struct dblp_run *run,
					  struct dblp_window *w)
{
	switch (run->h.type) {
	case DBLP_PKT_DATA:
		return dblp_run_data(run, w);
	case DBLP_PKT_PROBE:
		return dblp_run_probe(run, w);
	default:
		return DBLP_WIRE_OK;
	}
}

static bool dblp_pn_is_largest(const struct dblp_sock *dsk, u64 pn)
{
	const struct dblp_ranges *s = &dsk->acks.pns;

	return !s->n || pn > s->r[s->n - 1].last;
}

/* Is this a new message after close(), which would never be read? */
static bool dblp_rx_after_close(const struct dblp_sock *dsk,
				const struct dblp_data *d)
{
	return dsk->state == DBLP_STATE_CLOSING &&
	       !dblp_before(d->msg_id, dsk->rx.next);
}

/* Returns false if the packets are refused; @why: the drop reason, or NONE */
static bool dblp_take_data(struct dblp_sock *dsk, struct dblp_run *run,
			   const struct dblp_frame *meta,
			   enum dblp_mib_item *why)
{
	int ret;

	*why = DBLP_MIB_NONE;
	if (run->h.type != DBLP_PKT_DATA)
		return true;
	if (dblp_rx_after_close(dsk, &run->d)) {
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		*why = DBLP_MIB_DROPSTATE;
		return false;
	}
	ret = dblp_rx_data(dsk, run, meta, why);
	if (ret == 1)
		*why = DBLP_MIB_NONE;
	return ret >= 0;
}

static void dblp_taken(struct dblp_sock *dsk, const struct dblp_run *run)
{
	trace_dblp_packet_received(dsk, run, run->pn);
	if (run->h.type != DBLP_PKT_ACK)
		dblp_note_received(dsk, run);
	if (dsk->rx.early.watch)
		dblp_rx_pass_ended(dsk);
}

/* Not inlined, because struct dblp_frame is large and most packets have none */
static noinline_for_stack enum dblp_mib_item
dblp_take_frames(struct dblp_sock *dsk, struct dblp_run *run)
{
	u32 len = run->h.ctl_len;
	const u8 *meta = NULL;
	struct dblp_frame f;
	enum dblp_mib_item why;
	int err;

	err = dblp_check_frames(dsk, run, &f, &meta) ?:
	      meta ? dblp_get_frame(&f, &meta, &len) : DBLP_WIRE_OK;
	if (err)
		return dblp_wire_mib[err];
	if (!dblp_take_data(dsk, run, meta ? &f : NULL, &why))
		return why;
	err = dblp_apply_frames(dsk, run, &f);
	if (!err) {
		dblp_taken(dsk, run);
		return why;
	}
	if (err == -EPROTO)
		dblp_abort(dsk, DBLP_RST_PROTOCOL, EPROTO);
	if (run->h.type == DBLP_PKT_DATA && why == DBLP_MIB_NONE)
		return DBLP_MIB_NONE;
	return err == -EPROTO ? DBLP_MIB_DROPFIELD : DBLP_MIB_DROPMEMORY;
}

static enum dblp_mib_item dblp_take(struct dblp_sock *dsk, struct dblp_run *run)
{
	enum dblp_mib_item why;

	if (run->h.ctl_len)
		return dblp_take_frames(dsk, run);
	if (dblp_take_data(dsk, run, NULL, &why))
		dblp_taken(dsk, run);
	return why;
}

static enum dblp_mib_item dblp_rcv_ack(struct dblp_sock *dsk,
				       struct dblp_run *run)
{
	run->pn = 0;
	return dblp_take(dsk, run);
}

/* DATA, CTRL, PROBE */
static enum dblp_mib_item dblp_rcv_numbered(struct dblp_sock *dsk,
					    struct dblp_run *run)
{
	run->pn = dblp_pn_full(&dsk->acks.pns, run->h.pn);
	if ((s64)run->pn < 0)
		return DBLP_MIB_DROPFIELD;
	if (run->n > 1 && !dblp_pn_is_largest(dsk, run->pn))
		run->n = 1;
	if (dblp_ranges_has(&dsk->acks.pns, run->pn)) {
		dsk->acks.now = 1;
		return DBLP_MIB_DROPDUPLICATE;
	}
	return dblp_take(dsk, run);
}

/* Check the source port of a packet. Returns the drop reason, or NONE */
static enum dblp_mib_item dblp_check_port(const struct dblp_sock *dsk,
					  const struct dblp_run *run)
{
	__be16 port = udp_hdr(run->train->skb)->source;
	u32 i;

	if (port == dsk->peer.sdblp_port || dsk->state == DBLP_STATE_LISTEN)
		return DBLP_MIB_NONE;
	if (dsk->opt.spray == 1)
		return DBLP_MIB_DROPWRONGPEER;
	for (i = 1; i < dsk->opt.spray; i++)
		if (port && dsk->peer_ports[i] == port)
			return DBLP_MIB_NONE;
	return run->h.type == DBLP_PKT_PROBE && run->h.seg_size ?
	       DBLP_MIB_NONE : DBLP_MIB_DROPPORT;
}

/* A probe may announce a port, and replaces one that NAT has changed */
static enum dblp_mib_item dblp_rcv_probe(struct dblp_sock *dsk,
					 struct dblp_run *run)
{
	u32 port = run->h.seg_size;
	enum dblp_mib_item why;

	if (port >= dsk->opt.spray)
		return DBLP_MIB_DROPFIELD;
	why = dblp_rcv_numbered(dsk, run);
	if (why == DBLP_MIB_NONE && port)
		dsk->peer_ports[port] = udp_hdr(run->train->skb)->source;
	return why;
}

/*
 * Does a RST answer packets of the current state? It echoes a connection ID
 * that only receivers of those packets know. After INIT_SENT, ignore a RST that
 * answers an INIT: a repeated INIT is refused if the listening socket was
 * closed, although the first INIT has led to a connection.
 */
static bool dblp_rst_knows(const struct dblp_sock *dsk, u64 echo)
{
	return echo == (dsk->state == DBLP_STATE_INIT_SENT ? dsk->cid :
							     dsk->peer_key.cid);
}

static enum dblp_mib_item dblp_rcv_rst(struct dblp_sock *dsk,
				       struct dblp_run *run)
{
	u32 reason = get_unaligned_be32(run->p + DBLP_HDR_LEN);
	u64 echo = dblp_get_u64(run->p + DBLP_HDR_LEN + 8);

	if (get_unaligned_be32(run->p + DBLP_HDR_LEN + 4) ||
	    !reason || reason >= __DBLP_RST_MAX ||
	    !dblp_rst_knows(dsk, echo))
		return DBLP_MIB_DROPFIELD;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_RSTRECEIVED);
	if (!dblp_connecting(dsk) ||
	    !dblp_auth_note_refusal(dsk, -dblp_rst_errno(dsk, reason)))
		dblp_peer_gone(dsk, reason);
	return DBLP_MIB_NONE;
}

/**
 * struct dblp_rcv_type - how packets of a type are received
 * @states: bits of &enum dblp_state in which these packets are accepted
 * @rcv: returns the drop reason or DBLP_MIB_NONE; lowers @n of the run to the
 *	packets that the result applies to
 */
struct dblp_rcv_type {
	u8			states;
	enum dblp_mib_item	(*rcv)(struct dblp_sock *dsk,
				       struct dblp_run *run);
};

#define DBLP_IN(state)	BIT(DBLP_STATE_##state)
#define DBLP_IN_CONN	(DBLP_IN(ESTABLISHED) | DBLP_IN(CLOSING))

/* By packet type. INIT is missing, because it never belongs to a connection */
static const struct dblp_rcv_type dblp_rcv_types[__DBLP_PKT_MAX] = {
	[DBLP_PKT_INIT_ACK]	= { DBLP_IN(INIT_SENT), dblp_rcv_init_ack },
	[DBLP_PKT_COOKIE_ECHO]	= { DBLP_IN(LISTEN) | DBLP_IN_CONN,
				    dblp_rcv_cookie_echo },
	[DBLP_PKT_COOKIE_ACK]	= { DBLP_IN(COOKIE_SENT), dblp_rcv_cookie_ack },
	[DBLP_PKT_VERSION]	= { DBLP_IN(INIT_SENT), dblp_rcv_version },
	[DBLP_PKT_RST]		= { DBLP_IN(INIT_SENT) | DBLP_IN(COOKIE_SENT) |
				    DBLP_IN_CONN, dblp_rcv_rst },
	[DBLP_PKT_ACK]		= { DBLP_IN_CONN, dblp_rcv_ack },
	[DBLP_PKT_CTRL]		= { DBLP_IN_CONN, dblp_rcv_numbered },
	[DBLP_PKT_DATA]		= { DBLP_IN_CONN, dblp_rcv_numbered },
	[DBLP_PKT_PROBE]	= { DBLP_IN_CONN, dblp_rcv_probe },
};

/*
 * Process a run. A wrong tag takes precedence over other errors behind the
 * header, because those do not matter in a forged packet.
 */
static enum dblp_mib_item dblp_rcv_run(struct dblp_sock *dsk,
				       struct dblp_run *run,
				       struct dblp_window *w)
{
	const struct dblp_rcv_type *type = &dblp_rcv_types[run->h.type];
	enum dblp_mib_item why, tag;

	if (!(type->states & BIT(dsk->state)))
		return DBLP_MIB_DROPSTATE;
	why = dblp_check_port(dsk, run);
	if (why != DBLP_MIB_NONE)
		return why;
	why = dblp_wire_mib[dblp_run_body(run, w)];
	if (unlikely(dsk->auth) || run->h.type < DBLP_PKT_ACK) {
		tag = dblp_auth_run(dsk, run);
		if (tag != DBLP_MIB_NONE)
			return tag;
	}
	if (why == DBLP_MIB_NONE)
		why = type->rcv(dsk, run);
	if (dsk->state != DBLP_STATE_CLOSED)
		dsk->answer = min_t(u32, dsk->answer +
				    DBLP_ANSWER_TIMES * run->len * run->n,
				    DBLP_ANSWER_MAX);
	return why;
}

/*
 * Process a packet that cannot be read in place as a train of one. First finish
 * the message of the preceding packets, which the packet may change or close.
 */
static enum dblp_mib_item dblp_rcv_apart(struct dblp_sock *dsk,
					 struct dblp_run *run)
{
	struct sk_buff *skb = dblp_train_cut(run->train, run->first);
	struct dblp_window w = { .skb = skb };
	struct dblp_train one;
	enum dblp_mib_item why;

	if (!skb)
		return DBLP_MIB_DROPMEMORY;
	dblp_rx_train_done(dsk, run->train);
	one = dblp_train_of(skb);
	one.now = run->train->now;
	why = dblp_run_hdr(run, &one, &w, 0);
	if (why == DBLP_MIB_NONE)
		why = dblp_rcv_run(dsk, run, &w);
	dblp_rx_train_done(dsk, &one);
	consume_skb(skb);
	return why;
}

/* Replace a buffer that holds too much memory by a copy; NULL without memory */
static struct sk_buff *dblp_train_copy(struct sk_buff *skb)
{
	struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);

	if (copy)
		consume_skb(skb);
	else
		kfree_skb(skb);
	return copy;
}

/* Process and consume a train that dblp_rcv_check() has accepted */
static void dblp_rcv_train(struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct dblp_train t = dblp_train_of(skb);
	struct dblp_window w = {};
	enum dblp_mib_item why;
	struct dblp_run run;
	u32 i;

	sock_rps_save_rxhash(&dsk->sk, skb);
	if (unlikely(!dblp_rx_measure(&t))) {
		skb = dblp_train_copy(skb);
		if (!skb) {
			dblp_count_drops(sock_net(&dsk->sk), dsk,
					 DBLP_MIB_DROPMEMORY, t.n);
			return;
		}
		t = dblp_train_of(skb);
	}
	w.skb = skb;
	t.now = ktime_get_ns();
	for (i = 0; i < t.n; i += run.n) {
		why = dblp_run_hdr(&run, &t, &w, i);
		if (why == DBLP_MIB_NONE)
			why = run.apart ? dblp_rcv_apart(dsk, &run) :
					  dblp_rcv_run(dsk, &run, &w);
		if (why != DBLP_MIB_NONE)
			dblp_count_drops(sock_net(&dsk->sk), dsk, why, run.n);
	}
	dblp_rx_train_done(dsk, &t);
	consume_skb(skb);
}

/* Check device and addresses of a buffer. Returns the drop reason, or NONE */
static enum dblp_mib_item dblp_rcv_check(struct dblp_sock *dsk,
					 const struct sk_buff *skb)
{
	if (dsk->state == DBLP_STATE_CLOSED)
		return DBLP_MIB_DROPSTATE;
	/* The socket may have been bound to a device after its endpoint */
	if (!dblp_skb_is_via(skb, READ_ONCE(dsk->sk.sk_bound_dev_if)) ||
	    !dblp_same_policy(&dsk->sk, dsk->ep->usk, CGROUP_INET_INGRESS))
		return DBLP_MIB_DROPWRONGPEER;
	if (dsk->state == DBLP_STATE_LISTEN ||
	    (dblp_skb_is_between(skb, &dsk->peer, &dsk->local) &&
	     dblp_skb_in_zone(skb, dsk)))
		return DBLP_MIB_NONE;
	return DBLP_MIB_DROPWRONGPEER;
}

/* The socket is locked, or owned by the process that runs its backlog */
static void dblp_do_rcv(struct dblp_sock *dsk, struct sk_buff *skb)
{
	enum dblp_mib_item why = dblp_rcv_check(dsk, skb);
	struct sk_buff *own = skb;

	sock_owned_by_me(&dsk->sk);
	if (why == DBLP_MIB_NONE && unlikely(dsk->auth)) {
		own = dblp_auth_own(dsk, skb);
		if (!own)
			why = DBLP_MIB_DROPMEMORY;
	}
	if (why != DBLP_MIB_NONE) {
		dblp_count_drops(sock_net(&dsk->sk), dsk, why,
				 DBLP_SKB_CB(skb)->n);
		kfree_skb(skb);
		return;
	}
	dblp_rcv_train(dsk, own);
	dblp_flush(dsk);
	dblp_check_closing(dsk);
}

int dblp_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	dblp_do_rcv(dblp_sk(sk), skb);
	return 0;
}

/*
 * Limit for the bytes of the backlog and of @sk_rmem_alloc. The latter exceeds
 * @sk_rcvbuf while only the next message may take more. Packets in the backlog
 * of a listener become connections to be accepted, so allow as many packets as
 * the accept queue.
 */
static u32 dblp_backlog_limit(const struct dblp_sock *dsk)
{
	const struct sock *sk = &dsk->sk;

	if (READ_ONCE(dsk->state) == DBLP_STATE_LISTEN)
		return READ_ONCE(sk->sk_max_ack_backlog) *
		       (u32)SKB_TRUESIZE(1500);
	return max(READ_ONCE(sk->sk_rcvbuf), atomic_read(&sk->sk_rmem_alloc)) +
	       DBLP_BACKLOG_MAX;
}

static void dblp_sk_rcv(struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct sock *sk = &dsk->sk;

	sk_incoming_cpu_update(sk);
	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk)) {
		dblp_do_rcv(dsk, skb);
	} else if (sk_add_backlog(sk, skb, dblp_backlog_limit(dsk))) {
		dblp_count_drops(sock_net(sk), dsk, DBLP_MIB_DROPMEMORY,
				 DBLP_SKB_CB(skb)->n);
		kfree_skb(skb);
	}
	bh_unlock_sock(sk);
}

/* Packet types of established connections */
static bool dblp_conn_type(u8 first)
{
	return first == (DBLP_VERSION << 4 | DBLP_PKT_DATA) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_CTRL) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_ACK) ||
	       first == (DBLP_VERSION << 4 | DBLP_PKT_PROBE);
}

/*
 * Number of packets from @p on, at most @n and within the window, that have
 * @dcid and a type of established connections.
 */
static u32 dblp_conn_same(const struct dblp_window *w, const u8 *p, u32 stride,
			  u32 n, u64 dcid)
{
	const u8 *last = w->p + (w->to - w->from) - DBLP_HDR_LEN;
	u8 type = p[0];
	u32 i;

	if (!dblp_conn_type(type))
		return 0;
	for (i = 0; i < n && p <= last; i++, p += stride)
		if ((p[0] != type && !dblp_conn_type(p[0])) ||
		    get_unaligned_be64(p + 8) != dcid)
			break;
	return i;
}

/* Find the connection if all packets of a buffer belong to one, else NULL */
static struct dblp_sock *dblp_find_conn(struct dblp_endpoint *ep,
					struct sk_buff *skb)
{
	struct dblp_train t = dblp_train_of(skb);
	struct dblp_window w = { .skb = skb };
	u32 i, same;
	u64 dcid = 0;
	const u8 *p;

	if (t.n > DBLP_TRAIN_MAX || dblp_train_len(&t, t.n - 1) < DBLP_HDR_LEN)
		return NULL;
	for (i = 0; i < t.n; i += same) {
		p = dblp_window_peek(&w, i * t.stride, DBLP_HDR_LEN);
		if (!p)
			return NULL;
		if (!i)
			dcid = get_unaligned_be64(p + 8);
		same = dblp_conn_same(&w, p, t.stride, t.n - i, dcid);
		if (!same)
			return NULL;
	}
	return dblp_conn_find(ep, dcid);
}

/* Pass a buffer to its connection, if all packets belong to one */
static bool dblp_rcv_conn(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	struct dblp_sock *dsk = dblp_find_conn(ep, skb);

	if (!dsk)
		return false;
	dblp_sk_rcv(dsk, skb);
	sock_put(&dsk->sk);
	return true;
}

static struct dblp_sock *dblp_find_rst(struct dblp_endpoint *ep,
				       const struct dblp_run *run)
{
	struct dblp_peer_key key = {};
	struct sockaddr_dblp from, to;

	if (run->h.dcid)
		return dblp_conn_find(ep, run->h.dcid);
	dblp_skb_addrs(run->train->skb, &from, &to);
	key.cid = dblp_get_u64(run->p + DBLP_HDR_LEN + 8);
	key.addr = from.sdblp_addr;
	key.port = from.sdblp_port;
	key.zone = dblp_skb_zone(run->train->skb, &from.sdblp_addr,
				 &to.sdblp_addr);
	return dblp_conn_find_peer(ep, &key);
}

/*
 * Find the socket, with a reference, for a packet outside a connection. If
 * there is none, answer the packet or return the drop reason.
 */
static enum dblp_mib_item dblp_find_other(struct dblp_endpoint *ep,
					  const struct dblp_run *run,
					  struct dblp_sock **dsk)
{
	switch (run->h.type) {
	case DBLP_PKT_INIT:
		return dblp_handshake_init(ep, run);
	case DBLP_PKT_RST:
		*dsk = dblp_find_rst(ep, run);
		break;
	case DBLP_PKT_VERSION:
		*dsk = dblp_conn_find(ep, dblp_get_u64(run->p + DBLP_HDR_LEN));
		break;
	case DBLP_PKT_COOKIE_ECHO:
		*dsk = dblp_conn_find(ep, run->h.dcid);
		return *dsk ? DBLP_MIB_NONE :
			      dblp_handshake_echo(ep, run, dsk);
	case DBLP_PKT_INIT_ACK:
	case DBLP_PKT_COOKIE_ACK:
		*dsk = dblp_conn_find(ep, run->h.dcid);
		if (*dsk || run->h.type == DBLP_PKT_INIT_ACK)
			break;
		fallthrough;
	/* Only these types imply connection state at the peer: send a RST */
	case DBLP_PKT_DATA:
	case DBLP_PKT_CTRL:
		dblp_rst_unknown(ep, run);
		break;
	}
	return *dsk ? DBLP_MIB_NONE : DBLP_MIB_DROPUNKNOWNCONN;
}

/* Process and consume a single linear packet outside established connections */
static void dblp_rcv_other(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	struct dblp_train t = dblp_train_of(skb);
	struct dblp_window w = { .skb = skb };
	struct dblp_sock *dsk = NULL;
	enum dblp_mib_item why;
	struct dblp_run run;

	why = dblp_run_hdr(&run, &t, &w, 0);
	if (why == DBLP_MIB_NONE)
		why = dblp_find_other(ep, &run, &dsk);
	else if (why == DBLP_MIB_DROPVERSION && run.h.type == DBLP_PKT_INIT)
		dblp_handshake_version(ep, &run);
	if (dsk) {
		dblp_sk_rcv(dsk, skb);
		sock_put(&dsk->sk);
		return;
	}
	if (why == DBLP_MIB_NONE) {
		consume_skb(skb);
		return;
	}
	dblp_count_drops(ep->net, NULL, why, 1);
	kfree_skb(skb);
}

/* Receive and consume a nonlinear packet, or a train of several connections */
static void dblp_rcv_each(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	struct dblp_train t = dblp_train_of(skb);
	struct sk_buff *one;
	u32 i;

	for (i = 0; i < t.n; i++) {
		one = dblp_train_cut(&t, i);
		if (!one)
			dblp_count_drops(ep->net, NULL, DBLP_MIB_DROPMEMORY, 1);
		else if (!dblp_rcv_conn(ep, one))
			dblp_rcv_other(ep, one);
	}
	consume_skb(skb);
}

/*
 * Is a buffer a train? In other GSO types, gso_size is the fragment size of one
 * packet, as from virtual machines that leave fragmentation to the host.
 */
static bool dblp_is_train(const struct sk_buff *skb)
{
	return skb_is_gso(skb) &&
	       skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;
}

/* Set the fields that all packets in a buffer share */
static void dblp_rcv_cb(struct sk_buff *skb)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	cb->ecn = INET_ECN_MASK &
		  (skb->protocol == htons(ETH_P_IP) ? ip_hdr(skb)->tos :
		   ipv6_get_dsfield(ipv6_hdr(skb)));
	cb->stride = skb->len;
	cb->n = 1;
	if (dblp_is_train(skb) && skb->len) {
		cb->stride = skb_shinfo(skb)->gso_size;
		cb->n = DIV_ROUND_UP(skb->len, cb->stride);
	}
}

/* Receive and consume a packet or a train from an endpoint */
static void dblp_rcv(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	dblp_rcv_cb(skb);
	if (dblp_rcv_conn(ep, skb))
		return;
	/* Do not let many hosts answer one packet */
	if (!dblp_skb_is_unicast(skb)) {
		dblp_count_drops(ep->net, NULL, DBLP_MIB_DROPNOTUNICAST,
				 DBLP_SKB_CB(skb)->n);
		kfree_skb(skb);
		return;
	}
	if (DBLP_SKB_CB(skb)->n > 1 || skb_is_nonlinear(skb))
		dblp_rcv_each(ep, skb);
	else
		dblp_rcv_other(ep, skb);
}

/*
 * Process an ICMP error for a packet of a connection. "Port unreachable" means
 * that the peer has closed its UDP socket, and so its end of the connection.
 */
static void dblp_rcv_err(struct dblp_sock *dsk, int err)
{
	struct sock *sk = &dsk->sk;

	if (err == EMSGSIZE)
		set_bit(DBLP_DEFER_MTU, &dsk->deferred);
	if (sock_owned_by_user(sk))
		return;
	if (err == EMSGSIZE)
		sk->sk_prot->release_cb(sk);
	else if (!dblp_auth_note_refusal(dsk, ECONNREFUSED))
		dblp_peer_gone(dsk, DBLP_RST_UNKNOWN);
}

const struct dblp_endpoint_ops dblp_rcv_ops = {
	.rcv	= dblp_rcv,
	.err	= dblp_rcv_err,
};
