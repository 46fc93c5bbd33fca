// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets in: from UDP to the connection they belong to, and what they do
 * there. A packet is either taken as a whole or changes nothing, and whatever
 * is dropped is counted under the name of its reason.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "dblp.h"
#include "trace.h"

static const enum dblp_mib_item dblp_wire_mib[] = {
	[DBLP_WIRE_SHORT]	= DBLP_MIB_DROPSHORT,
	[DBLP_WIRE_VERSION]	= DBLP_MIB_DROPVERSION,
	[DBLP_WIRE_TYPE]	= DBLP_MIB_DROPTYPE,
	[DBLP_WIRE_FIELD]	= DBLP_MIB_DROPFIELD,
	[DBLP_WIRE_TRAILING]	= DBLP_MIB_DROPTRAILING,
	[DBLP_WIRE_AUTH]	= DBLP_MIB_DROPAUTH,
};

/** dblp_wire_why() - the counter of packets with such an error */
enum dblp_mib_item dblp_wire_why(enum dblp_wire_error err)
{
	return dblp_wire_mib[err];
}

/**
 * dblp_count_drops() - packets are not wanted
 * @net: namespace
 * @dsk: socket they were for, NULL if that is not known
 * @why: counter
 * @n: number of packets
 */
void dblp_count_drops(struct net *net, const struct dblp_sock *dsk,
		      enum dblp_mib_item why, u32 n)
{
	DBLP_ADD_STATS(net, why, n);
	trace_dblp_packet_dropped(net, dsk, why, n);
}

/**
 * dblp_drop() - a packet is not wanted, before its socket is known
 * @net: namespace
 * @skb: the packet; consumed
 * @why: counter
 */
void dblp_drop(struct net *net, struct sk_buff *skb, enum dblp_mib_item why)
{
	dblp_count_drops(net, NULL, why, 1);
	kfree_skb(skb);
}

/**
 * dblp_drop_at() - a packet is not wanted by the socket it is for
 * @dsk: socket
 * @skb: the packet; consumed
 * @why: counter
 */
void dblp_drop_at(const struct dblp_sock *dsk, struct sk_buff *skb,
		  enum dblp_mib_item why)
{
	dblp_count_drops(sock_net(&dsk->sk), dsk, why, 1);
	kfree_skb(skb);
}

static void dblp_packets_acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
			       u32 n, bool late)
{
	struct dblp_sock *dsk = ctx;
	struct dblp_tx_msg *msg;

	if (late)
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTSPURIOUS, n);
	if (!pkt->data && !pkt->probe)
		dblp_ctl_acked(dsk, pkt);
	dblp_path_acked(dsk, pkt, n);
	msg = pkt->data ? dblp_tx_find(dsk, pkt->msg) : NULL;
	if (msg)
		dblp_tx_acked(dsk, msg, pkt->seg, n, late);
}

static u32 dblp_packet_lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
			    enum dblp_lost_why why)
{
	struct dblp_sock *dsk = ctx;
	struct dblp_tx_msg *msg;
	u32 frames = 0;

	dsk->info.pkts_lost++;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_PKTLOST);
	trace_dblp_packet_lost(dsk, pn, pkt, why);
	if (!pkt->data && !pkt->probe)
		frames = dblp_ctl_lost(dsk, pkt);
	dblp_path_lost(dsk, pkt);
	msg = pkt->data ? dblp_tx_find(dsk, pkt->msg) : NULL;
	if (msg)
		dblp_tx_lost(dsk, msg, pkt->seg);
	return frames;
}

static const struct dblp_sent_ops dblp_sent_ops = {
	.acked	= dblp_packets_acked,
	.lost	= dblp_packet_lost,
};

/* Who waits for the pacer waits as the new rate wants it: at less than a packet
 * a round trip, the old one would hold for too long.
 */
static void dblp_cc_ack(struct dblp_sock *dsk,
			const struct dblp_rate_sample *rs)
{
	u64 rate = dsk->cc.pacing_rate, now = rs->now;

	dsk->cc.ops->ack(&dsk->cc, rs, &dsk->rtt);
	trace_dblp_cc(dsk, rs);
	if (!rate || !dsk->cc.pacing_rate || dsk->pace_next <= now)
		return;
	dsk->pace_next = now + mul_u64_u64_div_u64(dsk->pace_next - now, rate,
						   dsk->cc.pacing_rate);
}

/**
 * dblp_loss_expired() - packets are overdue
 * @dsk: socket
 * @now: the time
 */
void dblp_loss_expired(struct dblp_sock *dsk, u64 now)
{
	struct dblp_rate_sample rs = { .now = now };

	sock_owned_by_me(&dsk->sk);
	rs.lost = dblp_sent_timeout(&dsk->sent, &dsk->rtt, now, &dblp_sent_ops,
				    dsk);
	rs.inflight = dsk->sent.inflight;
	rs.delivered = dsk->sent.delivered;
	if (rs.lost)
		dblp_cc_ack(dsk, &rs);
}

/**
 * dblp_lose_size_probes() - the answers to probes of the path's size are overdue
 * @dsk: socket
 *
 * Return: false if there were others in flight: then nothing is done.
 */
bool dblp_lose_size_probes(struct dblp_sock *dsk)
{
	struct dblp_sent *s = &dsk->sent;
	u64 pn = 0;

	sock_owned_by_me(&dsk->sk);
	if (s->inflight || !s->inflight_pkts)
		return false;
	for (; dblp_sent_inflight(s, &pn); pn++)
		dblp_sent_lose(s, pn, &dblp_sent_ops, dsk);
	return true;
}

/**
 * dblp_lose_larger() - packets were too large for the path
 * @dsk: socket
 * @mss: UDP payload of the largest that passes
 */
void dblp_lose_larger(struct dblp_sock *dsk, u32 mss)
{
	sock_owned_by_me(&dsk->sk);
	dblp_sent_lose_larger(&dsk->sent, mss, ktime_get_ns(), &dblp_sent_ops,
			      dsk);
}

/**
 * dblp_lose_oldest() - a probe needs room among the packets outstanding
 * @dsk: socket
 * @n: for so many packets
 */
void dblp_lose_oldest(struct dblp_sock *dsk, u32 n)
{
	sock_owned_by_me(&dsk->sk);
	dblp_sent_lose_oldest(&dsk->sent, n, &dblp_sent_ops, dsk);
}

static u64 dblp_acked_pn(const struct dblp_sock *dsk, u32 pn)
{
	return dblp_pn_expand(dsk->sent.next - 1, pn);
}

/* Who acknowledges what was not sent wants more than the path bears */
static noinline_for_stack int
dblp_apply_ack(struct dblp_sock *dsk, const struct dblp_frame *f, u64 now)
{
	struct dblp_acked_range r[DBLP_ACK_RANGES_MAX];
	struct dblp_rate_sample rs = {};
	u32 i;

	for (i = 0; i < f->ack.n; i++) {
		r[i].first = dblp_acked_pn(dsk, f->ack.range[i].first);
		r[i].last = dblp_acked_pn(dsk, f->ack.range[i].last);
	}
	if (dblp_sent_ack(&dsk->sent, r, f->ack.n,
			  (u64)f->ack.delay_us * NSEC_PER_USEC, &dsk->rtt, now,
			  &dblp_sent_ops, dsk, &rs) < 0) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ACKUNSENT);
		return -EPROTO;
	}
	rs.ce = dblp_path_ce(dsk);
	rs.share = dsk->share ?: 1;
	if (rs.acked) {
		dsk->pto_count = 0;
		dsk->progress = now;
	}
	if (rs.rate && !rs.app_limited)
		dsk->info.delivery_rate = rs.rate;
	if (rs.acked || rs.lost)
		dblp_cc_ack(dsk, &rs);
	return 0;
}

static void dblp_apply_flow(struct dblp_sock *dsk, const struct dblp_frame *f)
{
	if (f->flow.max_data < dsk->peer_max_data ||
	    dblp_before(f->flow.max_msg, dsk->peer_max_msg))
		return;
	/* The answer to a PING may bring nothing: more will come unasked then */
	if (f->flow.max_data != dsk->peer_max_data ||
	    f->flow.max_msg != dsk->peer_max_msg)
		dsk->blocked = 0;
	dsk->peer_max_data = f->flow.max_data;
	dsk->peer_max_msg = f->flow.max_msg;
	if (f->flow.cap == dsk->peer_cap)
		return;
	dsk->peer_cap = f->flow.cap;
	dblp_tx_recount(dsk);
}

static int dblp_apply_frame(struct dblp_sock *dsk, const struct dblp_frame *f,
			    u64 pn, u64 now)
{
	switch (f->type) {
	case DBLP_FRAME_ACK:
		return dblp_apply_ack(dsk, f, now);
	case DBLP_FRAME_ECN:
		dblp_ecn_counted(&dsk->ecn, f->ecn.ect0, f->ecn.ect1,
				 f->ecn.ce);
		return 0;
	case DBLP_FRAME_SHARE:
		dsk->share = f->share.n;
		return 0;
	case DBLP_FRAME_FLOW:
		dblp_apply_flow(dsk, f);
		return 0;
	case DBLP_FRAME_CLOSE:
		return dblp_tx_close(dsk, f);
	case DBLP_FRAME_LOSSMAP:
		return dblp_tx_lossmap(dsk, f);
	case DBLP_FRAME_FIN:
		return dblp_rx_fin(dsk, f->fin.end);
	case DBLP_FRAME_PING:
		/* What it was told before may have been lost */
		dsk->peer_waits = true;
		dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
		return 0;
	case DBLP_FRAME_BUDGET:
		return dblp_rx_budget(dsk, f, pn);
	}
	return 0;
}

/* Can each frame be what it says, before any of them does something? */
static enum dblp_wire_error dblp_check_frames(struct dblp_sock *dsk, u8 type,
					      const u8 *p, u32 len,
					      struct dblp_frame *f,
					      struct dblp_frame *meta)
{
	enum dblp_wire_error err;
	bool acks = false;

	while (len) {
		err = dblp_get_frame(f, &p, &len);
		if (err)
			return err;
		if (f->type == DBLP_FRAME_META) {
			if (type != DBLP_PKT_DATA || meta->type)
				return DBLP_WIRE_FIELD;
			*meta = *f;
		}
		/* It does most of all frames, and one says it all */
		if (f->type == DBLP_FRAME_ACK && acks)
			return DBLP_WIRE_FIELD;
		acks |= f->type == DBLP_FRAME_ACK;
		/* It was checked, and belongs at the end */
		if (f->type == DBLP_FRAME_AUTH && !dsk->auth)
			return DBLP_WIRE_AUTH;
		if (f->type == DBLP_FRAME_AUTH ? len : type == DBLP_PKT_PROBE)
			return DBLP_WIRE_FIELD;
		/* These need an acknowledgment, which an ACK never gets */
		if (type == DBLP_PKT_ACK && (f->type == DBLP_FRAME_LOSSMAP ||
					     f->type == DBLP_FRAME_FIN ||
					     f->type == DBLP_FRAME_PING ||
					     f->type == DBLP_FRAME_BUDGET))
			return DBLP_WIRE_FIELD;
		if (f->type == DBLP_FRAME_BUDGET &&
		    !dblp_budget_known(dsk, f->budget.msg_id))
			return DBLP_WIRE_FIELD;
	}
	return DBLP_WIRE_OK;
}

static int dblp_apply_frames(struct dblp_sock *dsk, const u8 *p, u32 len,
			     struct dblp_frame *f, u64 pn)
{
	u64 now = ktime_get_ns();
	int err;

	dsk->share = 0;
	while (len) {
		if (dblp_get_frame(f, &p, &len))
			return -EPROTO;
		err = dblp_apply_frame(dsk, f, pn, now);
		if (err)
			return err;
	}
	dblp_tx_settle(dsk, DBLP_STEPS);
	return 0;
}

static void dblp_count_ecn(struct dblp_sock *dsk, u8 ecn, u32 n)
{
	dsk->ecn_ect0 += ecn == INET_ECN_ECT_0 ? n : 0;
	dsk->ecn_ect1 += ecn == INET_ECN_ECT_1 ? n : 0;
	dsk->ecn_ce += ecn == INET_ECN_CE ? n : 0;
	if (ecn == INET_ECN_CE)
		dsk->ack_now = 1;
}

/* Where packets are lost or overtake each other there are more ranges */
static void dblp_more_ranges(struct dblp_sock *dsk)
{
	struct dblp_pn_range *mem;

	if (!dblp_rmem_schedule(&dsk->sk, DBLP_RANGES_SIZE))
		return;
	mem = kmalloc(DBLP_RANGES_SIZE, GFP_ATOMIC | __GFP_NOWARN);
	if (!mem)
		return;
	dblp_rmem_charge(&dsk->sk, DBLP_RANGES_SIZE);
	dblp_ranges_grow(&dsk->pns, mem);
}

/** dblp_ranges_free() - no packets come any more; the socket has no users */
void dblp_ranges_free(struct dblp_sock *dsk)
{
	if (dsk->pns.r == dsk->pns.few)
		return;
	kfree(dsk->pns.r);
	dblp_rmem_uncharge(&dsk->sk, DBLP_RANGES_SIZE);
}

/* Numbered packets were taken: they will be acknowledged */
static void dblp_note_received(struct dblp_sock *dsk, u64 pn,
			       const struct dblp_run *run)
{
	struct dblp_ranges *s = &dsk->pns;
	u64 expected = s->n ? s->r[s->n - 1].last + 1 : 0;

	if (dblp_ranges_crowded(s))
		dblp_more_ranges(dsk);
	if (run->n > 1)
		dblp_ranges_add_run(s, pn, run->n);
	else
		dblp_ranges_add(s, pn);
	if (pn >= expected)
		dsk->largest_at = ktime_get_ns();
	if (pn != expected || run->h.type != DBLP_PKT_DATA)
		dsk->ack_now = 1;
	dsk->ack_pending += run->n;
	dsk->info.pkts_received += run->n;
	dblp_count_ecn(dsk, DBLP_SKB_CB(run->train->skb)->ecn, run->n);
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTRECEIVED, run->n);
}

/**
 * dblp_pn_full() - the number in full of a packet that came
 * @seen: numbers that came before
 * @low: its low 32 bits
 *
 * Return: the number, negative as s64 if it cannot be one.
 */
u64 dblp_pn_full(const struct dblp_ranges *seen, u32 low)
{
	return dblp_pn_expand(seen->n ? seen->r[seen->n - 1].last : U64_MAX,
			      low);
}

static bool dblp_pn_is_largest(const struct dblp_sock *dsk, u64 pn)
{
	const struct dblp_ranges *s = &dsk->pns;

	return !s->n || pn > s->r[s->n - 1].last;
}

/* Nobody will read what comes after close() */
static bool dblp_unwanted(const struct dblp_sock *dsk,
			  const struct dblp_data *d)
{
	return dsk->state == DBLP_STATE_CLOSING &&
	       !dblp_before(d->msg_id, dsk->rx_next);
}

/* The data header of the first packet; the others are alike */
static enum dblp_wire_error dblp_run_data(const struct dblp_run *run,
					  struct dblp_data *d)
{
	return dblp_get_data(d, &run->h, run->p + DBLP_HDR_LEN,
			     DBLP_DATA_HDR_LEN, run->len);
}

/* Does the zero map say what it may? */
static enum dblp_wire_error dblp_check_zeros(const struct dblp_run *run,
					     const struct dblp_data *d)
{
	struct dblp_zeromap z = dblp_run_zeromap(run, d);

	return dblp_zeromap_valid(&z, DIV_ROUND_UP(d->msg_len,
						   run->h.seg_size)) ?
	       DBLP_WIRE_OK : DBLP_WIRE_FIELD;
}

/**
 * struct dblp_taking - packets that are being taken
 * @run: the packets
 * @pn: number of the first, in full
 * @d: its data header
 * @why: why their segments were not kept, DBLP_MIB_NONE if they were
 */
struct dblp_taking {
	struct dblp_run		*run;
	u64			pn;
	struct dblp_data	d;
	enum dblp_mib_item	why;
};

/* Returns false if the packets are refused */
static bool dblp_take_data(struct dblp_sock *dsk, struct dblp_taking *t,
			   const struct dblp_frame *meta)
{
	int ret;

	if (t->run->h.type != DBLP_PKT_DATA)
		return true;
	if (dblp_unwanted(dsk, &t->d)) {
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		t->why = DBLP_MIB_DROPSTATE;
		return false;
	}
	ret = dblp_rx_data(dsk, t->run, &t->d, meta, t->pn, &t->why);
	if (ret == 1)
		t->why = DBLP_MIB_NONE;
	return ret >= 0;
}

static void dblp_taken(struct dblp_sock *dsk, struct dblp_taking *t)
{
	trace_dblp_packet_received(dsk, t->run, t->pn);
	if (t->run->h.type != DBLP_PKT_ACK)
		dblp_note_received(dsk, t->pn, t->run);
	if (dsk->early.watch)
		dblp_rx_passed(dsk);
}

/* Frames are large: packets without them need not have the room */
static noinline_for_stack void dblp_take_frames(struct dblp_sock *dsk,
						struct dblp_taking *t)
{
	bool data = t->run->h.type == DBLP_PKT_DATA;
	u32 at = DBLP_HDR_LEN + (data ? DBLP_DATA_HDR_LEN : 0);
	struct dblp_frame f, meta = { .type = 0 };
	u32 len = t->run->h.ctl_len;
	const u8 *ctl = t->run->p + at;
	int err;

	err = dblp_check_frames(dsk, t->run->h.type, ctl, len, &f, &meta);
	if (err) {
		t->why = dblp_wire_mib[err];
		return;
	}
	if (!dblp_take_data(dsk, t, meta.type ? &meta : NULL))
		return;
	err = dblp_apply_frames(dsk, ctl, len, &f, t->pn);
	if (!err) {
		dblp_taken(dsk, t);
		return;
	}
	if (err == -EPROTO)
		dblp_abort(dsk, DBLP_RST_PROTOCOL, EPROTO);
	if (!data || t->why != DBLP_MIB_NONE)
		t->why = err == -EPROTO ? DBLP_MIB_DROPFIELD :
					  DBLP_MIB_DROPMEMORY;
}

/* Returns why the packets were not kept, or DBLP_MIB_NONE */
static enum dblp_mib_item dblp_take_run(struct dblp_sock *dsk,
					struct dblp_run *run)
{
	struct dblp_taking t = { .run = run, .why = DBLP_MIB_NONE };
	const struct dblp_hdr *h = &run->h;
	int err;

	if (h->type != DBLP_PKT_ACK) {
		t.pn = dblp_pn_full(&dsk->pns, h->pn);
		if ((s64)t.pn < 0)
			return DBLP_MIB_DROPFIELD;
		if (run->n > 1 && !dblp_pn_is_largest(dsk, t.pn))
			run->n = 1;
		if (dblp_ranges_has(&dsk->pns, t.pn)) {
			dsk->ack_now = 1;
			return DBLP_MIB_DROPDUPLICATE;
		}
	}
	if (h->type == DBLP_PKT_DATA) {
		err = dblp_run_data(run, &t.d);
		if (!err && t.d.zeros)
			err = dblp_check_zeros(run, &t.d);
		if (err) {
			/* The others have other lengths */
			run->n = 1;
			return dblp_wire_mib[err];
		}
	}
	if (h->type == DBLP_PKT_PROBE &&
	    memchr_inv(run->p + DBLP_HDR_LEN + h->ctl_len, 0,
		       run->len - DBLP_HDR_LEN - h->ctl_len))
		return DBLP_MIB_DROPFIELD;
	if (h->ctl_len)
		dblp_take_frames(dsk, &t);
	else if (dblp_take_data(dsk, &t, NULL))
		dblp_taken(dsk, &t);
	return t.why;
}

/**
 * dblp_rcv_run() - packets of an established connection
 * @dsk: socket
 * @run: the packets; @n is lowered if only some were dealt with
 *
 * The caller calls dblp_push() when there are no more.
 */
void dblp_rcv_run(struct dblp_sock *dsk, struct dblp_run *run)
{
	enum dblp_mib_item why = dblp_take_run(dsk, run);

	sock_owned_by_me(&dsk->sk);
	dsk->answer = min_t(u32, dsk->answer +
			    DBLP_ANSWER_TIMES * run->len * run->n,
			    DBLP_ANSWER_MAX);
	if (why != DBLP_MIB_NONE)
		dblp_count_drops(sock_net(&dsk->sk), dsk, why, run->n);
}

static int dblp_rst_errno(const struct dblp_sock *dsk, u32 reason)
{
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return reason == DBLP_RST_AUTH ? -EKEYREJECTED : -ECONNREFUSED;
	/* It had said goodbye, and we had nothing more to say */
	if (dsk->rx_fin && list_empty(&dsk->tx_msgs))
		return 0;
	return reason == DBLP_RST_PROTOCOL ? -EPROTO : -ECONNRESET;
}

/**
 * dblp_peer_gone() - the peer has no such connection
 * @dsk: socket; the caller has a reference besides the socket's own
 * @reason: &enum dblp_rst_reason
 */
void dblp_peer_gone(struct dblp_sock *dsk, u32 reason)
{
	int err = dblp_rst_errno(dsk, reason);

	sock_owned_by_me(&dsk->sk);
	DBLP_INC_SK_STATS(dsk, dblp_connecting(dsk) ? DBLP_MIB_CONNREFUSED :
						      DBLP_MIB_CONNRESET);
	dblp_done(dsk, -err);
}

/* Only who has seen our packets can know these */
static bool dblp_rst_knows(const struct dblp_sock *dsk, u64 echo)
{
	if (dsk->state < DBLP_STATE_ESTABLISHED && echo == dsk->cid)
		return true;
	return dsk->peer_key.cid && echo == dsk->peer_key.cid;
}

static void dblp_rcv_rst(struct dblp_sock *dsk, struct sk_buff *skb)
{
	u32 reason = get_unaligned_be32(skb->data + DBLP_HDR_LEN);
	u64 echo = dblp_get_u64(skb->data + DBLP_HDR_LEN + 8);

	if (get_unaligned_be32(skb->data + DBLP_HDR_LEN + 4) ||
	    !reason || reason >= __DBLP_RST_MAX ||
	    !dblp_rst_knows(dsk, echo))
		return dblp_drop_at(dsk, skb, DBLP_MIB_DROPFIELD);
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_RSTRECEIVED);
	if (!dblp_connecting(dsk) ||
	    !dblp_auth_doubts(dsk, -dblp_rst_errno(dsk, reason)))
		dblp_peer_gone(dsk, reason);
	consume_skb(skb);
}

/** dblp_from_peer() - did the connection's peer send this packet? */
bool dblp_from_peer(const struct dblp_sock *dsk, const struct sk_buff *skb)
{
	return dblp_skb_is_from(skb, &dsk->peer, &dsk->local);
}

/* The socket is locked, or owned by the process that works on its backlog */
static void dblp_do_rcv(struct dblp_sock *dsk, struct sk_buff *skb)
{
	enum dblp_mib_item why;
	struct dblp_hdr h;

	sock_owned_by_me(&dsk->sk);
	if (unlikely(dsk->auth)) {
		skb = dblp_auth_own(dsk, skb);
		if (!skb)
			return;
	}
	if (DBLP_SKB_CB(skb)->train)
		return dblp_train_rcv_sock(dsk, skb);
	if (dblp_get_hdr(&h, skb->data, skb_headlen(skb)) != DBLP_WIRE_OK &&
	    h.type != DBLP_PKT_VERSION)
		return dblp_drop_at(dsk, skb, DBLP_MIB_DROPFIELD);
	if (dsk->state == DBLP_STATE_LISTEN)
		return dblp_handshake_accept(dsk, skb);
	if (dsk->state == DBLP_STATE_CLOSED)
		return dblp_drop_at(dsk, skb, DBLP_MIB_DROPSTATE);
	if (!dblp_from_peer(dsk, skb))
		return dblp_drop_at(dsk, skb, DBLP_MIB_DROPWRONGPEER);
	why = dblp_auth_rcv(dsk, &h, skb);
	if (why != DBLP_MIB_NONE)
		return dblp_drop_at(dsk, skb, why);

	switch (h.type) {
	case DBLP_PKT_INIT_ACK:
	case DBLP_PKT_COOKIE_ACK:
	case DBLP_PKT_COOKIE_ECHO:
		return dblp_handshake_rcv(dsk, &h, skb);
	case DBLP_PKT_VERSION:
		return dblp_rcv_version(dsk, skb);
	case DBLP_PKT_RST:
		return dblp_rcv_rst(dsk, skb);
	default:
		/* It came a moment before its connection */
		dblp_drop_at(dsk, skb, DBLP_MIB_DROPSTATE);
	}
}

int dblp_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	dblp_do_rcv(dblp_sk(sk), skb);
	return 0;
}

static struct dblp_sock *dblp_find_rst(struct dblp_endpoint *ep,
				       const struct dblp_hdr *h,
				       const struct sk_buff *skb)
{
	struct dblp_peer_key key = {};
	struct sockaddr_dblp from;

	if (h->dcid)
		return dblp_conn_find(ep->net, h->dcid);
	dblp_skb_addrs(skb, &from, NULL);
	key.cid = dblp_get_u64(skb->data + DBLP_HDR_LEN + 8);
	key.addr = from.sdblp_addr;
	key.port = from.sdblp_port;
	return dblp_conn_find_peer(ep->net, &key);
}

static struct dblp_sock *dblp_find(struct dblp_endpoint *ep,
				   const struct dblp_hdr *h,
				   const struct sk_buff *skb)
{
	switch (h->type) {
	case DBLP_PKT_RST:
		return dblp_find_rst(ep, h, skb);
	case DBLP_PKT_VERSION:
		return dblp_conn_find(ep->net,
				      dblp_get_u64(skb->data + DBLP_HDR_LEN));
	default:
		return dblp_conn_find(ep->net, h->dcid);
	}
}

/* Packets without frames but AUTH have one length, which is all of them */
static const u16 dblp_fixed_len[__DBLP_PKT_MAX] = {
	[DBLP_PKT_INIT]		= DBLP_INIT_LEN,
	[DBLP_PKT_INIT_ACK]	= DBLP_HDR_LEN + DBLP_COOKIE_LEN,
	[DBLP_PKT_COOKIE_ECHO]	= DBLP_ECHO_LEN,
	[DBLP_PKT_COOKIE_ACK]	= DBLP_HDR_LEN + DBLP_PARAMS_LEN,
	[DBLP_PKT_RST]		= DBLP_RST_LEN,
};

/*
 * Get the header, and have in the linear part what will be looked at: all of a
 * packet but for its segment. What is beyond it, nobody looks at.
 */
static enum dblp_mib_item dblp_pull(struct sk_buff *skb, struct dblp_hdr *h)
{
	enum dblp_wire_error err;
	u32 len = skb->len, need, fixed;

	if (!pskb_may_pull(skb, min_t(u32, len, DBLP_HDR_LEN)))
		return DBLP_MIB_DROPMEMORY;
	/* All is there, though not all of it is linear yet */
	err = dblp_get_hdr(h, skb->data, len);
	if (err == DBLP_WIRE_VERSION && h->type == DBLP_PKT_INIT)
		need = min_t(u32, len, DBLP_INIT_LEN);
	else if (err && (err != DBLP_WIRE_VERSION ||
			 h->type != DBLP_PKT_VERSION))
		return dblp_wire_mib[err];
	else if (h->type == DBLP_PKT_DATA)
		need = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + h->ctl_len;
	else
		need = len;

	fixed = dblp_fixed_len[h->type] ? dblp_fixed_len[h->type] + h->ctl_len :
					  0;
	if (len < need || len < fixed)
		return DBLP_MIB_DROPSHORT;
	if (h->type == DBLP_PKT_VERSION && len < DBLP_HDR_LEN + 8)
		return DBLP_MIB_DROPSHORT;
	if (!err && fixed && len > fixed)
		return DBLP_MIB_DROPTRAILING;
	/* No answer is longer than what it answers */
	if (h->type == DBLP_PKT_VERSION && len > DBLP_INIT_LEN)
		return DBLP_MIB_DROPTRAILING;
	if (!pskb_may_pull(skb, need))
		return DBLP_MIB_DROPMEMORY;
	return err == DBLP_WIRE_VERSION && h->type == DBLP_PKT_INIT ?
	       DBLP_MIB_DROPVERSION : DBLP_MIB_NONE;
}

static void dblp_rcv_unknown(struct dblp_endpoint *ep, const struct dblp_hdr *h,
			     struct sk_buff *skb)
{
	if (h->type == DBLP_PKT_COOKIE_ECHO)
		return dblp_handshake_echo(ep, skb);
	/* Others have nothing to lose, or nothing to say to us */
	if (h->type == DBLP_PKT_DATA || h->type == DBLP_PKT_CTRL)
		dblp_rst_stranger(ep, skb, h->dcid);
	dblp_drop(ep->net, skb, DBLP_MIB_DROPUNKNOWNCONN);
}

/* Bytes of packets that may wait while a process has the socket. What a listener
 * gets there becomes a connection that waits to be accepted, of which there may
 * be so many.
 */
static u32 dblp_backlog_limit(const struct dblp_sock *dsk)
{
	const struct sock *sk = &dsk->sk;

	if (READ_ONCE(dsk->state) == DBLP_STATE_LISTEN)
		return READ_ONCE(sk->sk_max_ack_backlog) *
		       (u32)SKB_TRUESIZE(1500);
	return READ_ONCE(sk->sk_rcvbuf) + DBLP_BACKLOG_MAX;
}

/**
 * dblp_rcv_sock() - hand a packet, or a train of them, to its connection
 * @dsk: socket
 * @skb: packet; consumed
 *
 * Context: softirq.
 */
void dblp_rcv_sock(struct dblp_sock *dsk, struct sk_buff *skb)
{
	struct sock *sk = &dsk->sk;

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk))
		dblp_do_rcv(dsk, skb);
	else if (sk_add_backlog(sk, skb, dblp_backlog_limit(dsk)))
		dblp_drop_at(dsk, skb, DBLP_MIB_DROPMEMORY);
	bh_unlock_sock(sk);
}

/**
 * dblp_rcv_single() - a single packet for one of our UDP sockets
 * @ep: where it came in
 * @skb: packet behind its UDP header, ECN noted; consumed
 *
 * Context: softirq, RCU.
 */
void dblp_rcv_single(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	enum dblp_mib_item why;
	struct dblp_sock *dsk;
	struct dblp_hdr h;

	why = dblp_pull(skb, &h);
	if (why == DBLP_MIB_DROPVERSION && h.type == DBLP_PKT_INIT &&
	    skb_headlen(skb) >= DBLP_INIT_LEN)
		return dblp_handshake_version(ep, skb);
	if (why != DBLP_MIB_NONE)
		return dblp_drop(ep->net, skb, why);
	if (h.type == DBLP_PKT_INIT)
		return dblp_handshake_init(ep, skb);

	dsk = dblp_find(ep, &h, skb);
	if (!dsk)
		return dblp_rcv_unknown(ep, &h, skb);
	dblp_rcv_sock(dsk, skb);
	sock_put(&dsk->sk);
}

/**
 * dblp_rcv() - what has come in at one of our UDP sockets
 * @usk: the UDP socket
 * @skb: packet behind its UDP header, whose checksum is right, or a train of
 *	packets; consumed
 *
 * Context: softirq, RCU.
 */
void dblp_rcv(struct sock *usk, struct sk_buff *skb)
{
	struct dblp_endpoint *ep = rcu_dereference_sk_user_data(usk);

	if (!ep) {
		kfree_skb(skb);
		return;
	}
	DBLP_SKB_CB(skb)->ecn = INET_ECN_MASK &
		(skb->protocol == htons(ETH_P_IP) ? ip_hdr(skb)->tos :
		 ipv6_get_dsfield(ipv6_hdr(skb)));
	if (!dblp_train_rcv(ep, skb))
		dblp_rcv_single(ep, skb);
}
