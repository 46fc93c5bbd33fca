// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control frames: write META and the frames that any packet may carry (ACK,
 * ECN, SHARE, ARRIVAL, FLOW, CLOSE), and apply received frames once all frames
 * of their packet are valid. ctl.c repeats frames until acknowledged.
 */
#include <net/inet_ecn.h>

#include "dblp.h"

/** dblp_ack_done() - note that a complete ACK was sent at @now, or cannot be */
void dblp_ack_done(struct dblp_sock *dsk, u64 now)
{
	sock_owned_by_me(&dsk->sk);
	dsk->acks.sent_at = now;
	dsk->acks.pending = 0;
	dsk->acks.now = 0;
	dsk->due.ack = 0;
}

/*
 * Write an ACK of packet numbers from @from on. If room is short, write the
 * latest ranges only; then an ACK remains pending.
 */
static u8 *dblp_put_ack(struct dblp_sock *dsk, struct dblp_frame *f, u8 *p,
			const u8 *end, u64 now, u64 from)
{
	const struct dblp_ranges *s = &dsk->acks.pns;
	const struct dblp_pn_range *r;
	u8 *next;

	f->type = DBLP_FRAME_ACK;
	f->ack.delay_us = min_t(u64, div_u64(now - dsk->acks.largest_at,
					     NSEC_PER_USEC), U32_MAX);
	for (f->ack.n = 0; f->ack.n < min_t(u32, s->n, DBLP_ACK_RANGES_MAX);
	     f->ack.n++) {
		r = &s->r[s->n - 1 - f->ack.n];
		if (r->last < from)
			break;
		f->ack.range[f->ack.n].first = max(r->first, from);
		f->ack.range[f->ack.n].last = r->last;
	}
	if (!f->ack.n)
		return NULL;
	next = dblp_put_frame(p, end, f);
	if (next && !from)
		dblp_ack_done(dsk, now);
	while (!next && f->ack.n > 1) {
		f->ack.n /= 2;
		next = dblp_put_frame(p, end, f);
	}
	return next;
}

/*
 * Write the number of connections that share the path to this host. Without the
 * frame the peer assumes 1. Only connections to the same listener count,
 * because other users could open connections to slow this peer down.
 */
static u8 *dblp_put_share(struct dblp_sock *dsk, struct dblp_frame *f, u8 *p,
			  const u8 *end)
{
	int n = atomic_read(&dsk->ep->receiving);

	if (n < 2)
		return p;
	f->type = DBLP_FRAME_SHARE;
	f->share.n = min(n, U16_MAX);
	f->share.all = (u64)atomic64_read(&dsk->ep->received) / DBLP_SHARE_UNIT;
	return dblp_put_frame(p, end, f) ?: p;
}

/* Write the arrival time, which splits round trips into the two directions */
static u8 *dblp_put_arrival(struct dblp_sock *dsk, struct dblp_frame *f, u8 *p,
			    const u8 *end)
{
	if (!(dsk->features & DBLP_FEATURE_ARRIVAL) || !dsk->acks.pns.n)
		return p;
	f->type = DBLP_FRAME_ARRIVAL;
	f->arrival.at = dsk->arrival_epoch + (u32)dsk->acks.largest_at;
	return dblp_put_frame(p, end, f) ?: p;
}

/**
 * dblp_put_ecn() - write an ECN frame
 * @dsk: socket
 * @p: where to write
 * @end: end of the room
 *
 * Return: the end of the frame, NULL if there is no room for it.
 */
u8 *dblp_put_ecn(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_ECN };

	sock_owned_by_me(&dsk->sk);
	f.ecn.ect0 = dsk->acks.ecn_ect0;
	f.ecn.ect1 = dsk->acks.ecn_ect1;
	f.ecn.ce = dsk->acks.ecn_ce;
	return dblp_put_frame(p, end, &f);
}

/* Write a FLOW frame if it gives much credit: each small message frees some */
static u8 *dblp_put_flow(struct dblp_sock *dsk, struct dblp_frame *f, u8 *p,
			 const u8 *end)
{
	if (dblp_rx_credit_waits(dsk) <= dsk->rx.window / 16 || end - p < 20)
		return p;
	f->type = DBLP_FRAME_FLOW;
	dblp_ctl_flow(dsk, f);
	return dblp_put_frame(p, end, f);
}

/**
 * dblp_put_ack_frames() - write an ACK and related frames, as far as they fit
 * @dsk: socket
 * @p: where to write
 * @end: end of the room
 * @now: the time
 *
 * CLOSE frames precede the ACK. The CLOSE of a late segment must, because a
 * sender treats an acknowledged message as complete. If these frames do not
 * fit, the ACK waits until the peer has acknowledged some. Probe timeouts are a
 * sign that the peer waits in the same way: then acknowledge all packets after
 * the late ones, as otherwise neither end would ever continue.
 *
 * If they fit, other CLOSE frames are repeated, oldest first, to stop senders
 * sooner. They leave room for the ACK, because a sender without ACKs stalls
 * until its probe timeout.
 *
 * Return: the end of the frames.
 */
u8 *dblp_put_ack_frames(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now)
{
	struct dblp_frame f;
	u8 *next = p;
	u64 from = 0;

	sock_owned_by_me(&dsk->sk);
	if (dblp_ctl_fill_late(dsk, &next, end))
		p = dblp_ctl_fill_closes(dsk, next,
					 min_t(const u8 *, end,
					       next + DBLP_CLOSES_AGAIN));
	else if (dsk->tx.pto_count)
		from = dsk->ctl.late_pn + 1;
	else
		return next;
	if (dsk->acks.ecn_ect0 || dsk->acks.ecn_ect1 || dsk->acks.ecn_ce) {
		next = dblp_put_ecn(dsk, p, end);
		p = next ?: p;
	}
	p = dblp_put_share(dsk, &f, p, end);
	p = dblp_put_arrival(dsk, &f, p, end);
	next = dblp_put_ack(dsk, &f, p, end, now, from);
	return next ? dblp_put_flow(dsk, &f, next, end) : p;
}

/**
 * dblp_put_meta() - write a META frame
 * @msg: message that has metadata
 * @p: where to write
 * @end: end of the room
 *
 * Return: the end of the frame, NULL if there is no room for it.
 */
u8 *dblp_put_meta(const struct dblp_tx_msg *msg, u8 *p, const u8 *end)
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

static void dblp_count_ecn(struct dblp_sock *dsk, u8 ecn, u32 n)
{
	dsk->acks.ecn_ect0 += ecn == INET_ECN_ECT_0 ? n : 0;
	dsk->acks.ecn_ect1 += ecn == INET_ECN_ECT_1 ? n : 0;
	dsk->acks.ecn_ce += ecn == INET_ECN_CE ? n : 0;
	if (ecn == INET_ECN_CE)
		dsk->acks.now = 1;
}

/* Loss and reordering need more ranges: allocate them */
static void dblp_more_ranges(struct dblp_sock *dsk)
{
	struct dblp_pn_range *mem;

	if (!dblp_rmem_schedule(&dsk->sk, DBLP_RANGES_SIZE))
		return;
	mem = kmalloc(DBLP_RANGES_SIZE, GFP_ATOMIC | __GFP_NOWARN);
	if (!mem)
		return;
	dblp_rmem_charge(&dsk->sk, DBLP_RANGES_SIZE);
	dblp_ranges_grow(&dsk->acks.pns, mem);
}

/** dblp_ranges_free() - free the ranges of a socket without users */
void dblp_ranges_free(struct dblp_sock *dsk)
{
	if (dsk->acks.pns.r == dsk->acks.pns.few)
		return;
	kfree(dsk->acks.pns.r);
	dblp_rmem_uncharge(&dsk->sk, DBLP_RANGES_SIZE);
}

/**
 * dblp_note_received() - record accepted packets, to be acknowledged
 * @dsk: socket
 * @run: the packets
 */
void dblp_note_received(struct dblp_sock *dsk, const struct dblp_run *run)
{
	struct dblp_ranges *s = &dsk->acks.pns;
	u64 expected = s->n ? s->r[s->n - 1].last + 1 : 0;

	sock_owned_by_me(&dsk->sk);
	if (dblp_ranges_crowded(s))
		dblp_more_ranges(dsk);
	if (run->n > 1)
		dblp_ranges_add_run(s, run->pn, run->n);
	else
		dblp_ranges_add(s, run->pn);
	if (run->pn >= expected)
		dsk->acks.largest_at = run->train->now;
	if (run->pn != expected || run->h.type != DBLP_PKT_DATA)
		dsk->acks.now = 1;
	dsk->acks.pending += run->n;
	dsk->counts.pkts_received += run->n;
	atomic64_add((u64)run->n * run->len, &dsk->ep->received);
	dblp_count_ecn(dsk, DBLP_SKB_CB(run->train->skb)->ecn, run->n);
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTRECEIVED, run->n);
}

static void dblp_apply_flow(struct dblp_sock *dsk, const struct dblp_frame *f,
			    const struct dblp_run *run)
{
	bool grants = f->flow.max_data != dsk->tx.data_limit ||
		      f->flow.max_msg != dsk->tx.id_limit;
	bool numbered = run->h.type != DBLP_PKT_ACK;

	/* An ACK packet has no number, and carries FLOW only to grant credit */
	if (f->flow.max_data < dsk->tx.data_limit ||
	    dblp_before(f->flow.max_msg, dsk->tx.id_limit) ||
	    (numbered ? run->pn < dsk->tx.flow_pn : !grants))
		return;
	if (numbered)
		dsk->tx.flow_pn = run->pn;
	/* Without new credit, the peer still has our request for it */
	if (grants)
		dsk->tx.asked = 0;
	dsk->tx.data_limit = f->flow.max_data;
	dsk->tx.id_limit = f->flow.max_msg;
	if (f->flow.cap == dsk->tx.cap)
		return;
	dsk->tx.cap = f->flow.cap;
	dblp_tx_recount(dsk);
}

static int dblp_apply_frame(struct dblp_sock *dsk, const struct dblp_frame *f,
			    const struct dblp_run *run)
{
	switch (f->type) {
	case DBLP_FRAME_ACK:
		return dblp_sent_acked(dsk, f, run->train->now);
	case DBLP_FRAME_ECN:
		dblp_ecn_counted(&dsk->ecn, f->ecn.ect0, f->ecn.ect1,
				 f->ecn.ce);
		return 0;
	case DBLP_FRAME_SHARE:
		dsk->pkt.share = f->share.n;
		dsk->pkt.share_all = f->share.all;
		return 0;
	case DBLP_FRAME_ARRIVAL:
		dsk->pkt.arrival = f->arrival.at;
		dsk->pkt.has_arrival = true;
		return 0;
	case DBLP_FRAME_FLOW:
		dblp_apply_flow(dsk, f, run);
		return 0;
	case DBLP_FRAME_CLOSE:
		return dblp_tx_close(dsk, f);
	case DBLP_FRAME_LOSSMAP:
		return dblp_tx_lossmap(dsk, f);
	case DBLP_FRAME_FIN:
		return dblp_rx_fin(dsk, f->fin.end);
	case DBLP_FRAME_PING:
		/* An earlier FLOW may have been lost */
		dsk->rx.asked = max(dsk->rx.asked, f->ping.wanted);
		dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
		return 0;
	case DBLP_FRAME_BUDGET:
		dblp_rx_budget(dsk, f, run->pn);
		return 0;
	case DBLP_FRAME_CANCEL:
		/* Its message may have segments in the preceding packets */
		dblp_rx_train_done(dsk, run->train);
		return dblp_rx_cancel(dsk, f, run->pn);
	}
	return 0;
}

/**
 * dblp_check_frames() - validate the frames of a packet
 * @dsk: socket
 * @run: packets whose frames differ only in the tag; the first is checked
 * @f: scratch space, since frames are large
 * @meta: set to the first byte of the META frame, if there is one
 *
 * Nothing is applied.
 *
 * Return: DBLP_WIRE_OK, or the reason to refuse the packets.
 */
enum dblp_wire_error dblp_check_frames(struct dblp_sock *dsk,
				       const struct dblp_run *run,
				       struct dblp_frame *f, const u8 **meta)
{
	u32 len = run->h.ctl_len;
	const u8 *p = dblp_run_ctl(run), *at;
	u8 type = run->h.type;
	enum dblp_wire_error err;
	bool acks = false;

	sock_owned_by_me(&dsk->sk);
	while (len) {
		at = p;
		err = dblp_get_frame(f, &p, &len);
		if (err)
			return err;
		if (f->type == DBLP_FRAME_META) {
			if (type != DBLP_PKT_DATA || *meta)
				return DBLP_WIRE_FIELD;
			*meta = at;
		}
		/* One ACK suffices, and ACK is the most expensive frame */
		if (f->type == DBLP_FRAME_ACK && acks)
			return DBLP_WIRE_FIELD;
		acks |= f->type == DBLP_FRAME_ACK;
		/* The tag was checked already; AUTH must be last */
		if (f->type == DBLP_FRAME_AUTH && !dsk->auth)
			return DBLP_WIRE_AUTH;
		if (f->type == DBLP_FRAME_AUTH ? len : type == DBLP_PKT_PROBE)
			return DBLP_WIRE_FIELD;
		if (type == DBLP_PKT_ACK && dblp_needs_ack(f->type))
			return DBLP_WIRE_FIELD;
		if (f->type == DBLP_FRAME_BUDGET &&
		    !dblp_budget_known(dsk, f->budget.msg_id))
			return DBLP_WIRE_FIELD;
	}
	return DBLP_WIRE_OK;
}

/**
 * dblp_apply_frames() - apply the frames of a packet
 * @dsk: socket
 * @run: packets whose frames dblp_check_frames() found valid
 * @f: scratch space
 *
 * Return: 0, -EPROTO if the peer violates the protocol, or -ENOMEM.
 */
int dblp_apply_frames(struct dblp_sock *dsk, const struct dblp_run *run,
		      struct dblp_frame *f)
{
	u32 len = run->h.ctl_len;
	const u8 *p = dblp_run_ctl(run);
	int err;

	sock_owned_by_me(&dsk->sk);
	dsk->pkt.share = 0;
	dsk->pkt.has_arrival = false;
	while (len) {
		if (dblp_get_frame(f, &p, &len))
			return -EPROTO;
		err = dblp_apply_frame(dsk, f, run);
		if (err)
			return err;
	}
	dblp_tx_settle(dsk, DBLP_STEPS);
	return 0;
}
