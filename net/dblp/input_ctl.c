// SPDX-License-Identifier: GPL-2.0-only
/*
 * What packets in say besides their segments: frames are checked, and then each
 * is done, and what an ACK makes of the packets that we sent.
 */
#include <net/inet_ecn.h>

#include "dblp.h"
#include "trace.h"

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

/**
 * dblp_check_frames() - can each frame be what it says?
 * @dsk: socket
 * @run: packets that have it; those of the first are looked at
 * @f: for whatever use
 * @meta: the META frame goes there, if there is one; its type is 0 before
 *
 * None of them has done anything yet. Frames are large, so the caller has them.
 *
 * Return: DBLP_WIRE_OK, or why the packets are refused.
 */
enum dblp_wire_error dblp_check_frames(struct dblp_sock *dsk,
				       const struct dblp_run *run,
				       struct dblp_frame *f,
				       struct dblp_frame *meta)
{
	u32 len = run->h.ctl_len;
	const u8 *p = dblp_run_ctl(run);
	u8 type = run->h.type;
	enum dblp_wire_error err;
	bool acks = false;

	sock_owned_by_me(&dsk->sk);
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

/**
 * dblp_apply_frames() - do what the frames say
 * @dsk: socket
 * @run: packets that have them, found good by dblp_check_frames()
 * @f: for whatever use
 *
 * Return: 0, -EPROTO if the peer breaks the protocol, or -ENOMEM.
 */
int dblp_apply_frames(struct dblp_sock *dsk, const struct dblp_run *run,
		      struct dblp_frame *f)
{
	u32 len = run->h.ctl_len;
	const u8 *p = dblp_run_ctl(run);
	u64 now = ktime_get_ns();
	int err;

	sock_owned_by_me(&dsk->sk);
	dsk->share = 0;
	while (len) {
		if (dblp_get_frame(f, &p, &len))
			return -EPROTO;
		err = dblp_apply_frame(dsk, f, run->pn, now);
		if (err)
			return err;
	}
	dblp_tx_settle(dsk, DBLP_STEPS);
	return 0;
}
