// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets sent: the memory of the sent ring (core/recovery.h), and processing
 * of acknowledged and lost packets.
 *
 * The ring grows in softirq context, so it consists of blocks of at most a
 * page, which are charged before they are allocated. A ring of one block is not
 * charged, like the socket itself: with it queued data can be sent even when
 * charges are refused. If the ring cannot grow, it forgets lost packets sooner,
 * and packets without room wait. The ring of an idle connection shrinks to its
 * first size.
 */
#include <linux/build_bug.h>
#include <linux/slab.h>

#include "dblp.h"
#include "trace.h"

#define DBLP_RING_GFP	(GFP_ATOMIC | __GFP_NOWARN)

/* Bytes charged for a ring of @pkts packets */
static u32 dblp_ring_size(u32 pkts)
{
	if (pkts <= DBLP_SENT_BLOCK)
		return 0;
	return pkts * sizeof(struct dblp_sent_pkt) +
	       pkts / DBLP_SENT_BLOCK * sizeof(struct dblp_sent_pkt *);
}

/** dblp_ring_truesize() - bytes charged to a socket for its ring */
u32 dblp_ring_truesize(const struct dblp_sock *dsk)
{
	return dsk->sent.blocks ? dblp_ring_size(dsk->sent.mask + 1) : 0;
}

/**
 * dblp_ring_init() - allocate the ring of a new connection
 * @dsk: socket without one
 * @gfp: allocation flags
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_ring_init(struct dblp_sock *dsk, gfp_t gfp)
{
	struct dblp_sent_pkt *block;
	u32 n = dsk->opt.spray;
	struct dblp_port *ports;

	BUILD_BUG_ON(DBLP_SENT_BLOCK * sizeof(*block) > PAGE_SIZE);
	BUILD_BUG_ON(DBLP_SENT_RING_MIN < DBLP_PROBE_PKTS);
	/* The receiver must remember all packets that the sender does */
	BUILD_BUG_ON(DBLP_RANGES_SPAN < DBLP_SENT_RING_MAX);
	block = kcalloc(DBLP_SENT_RING_MIN, sizeof(*block), gfp);
	if (!block)
		return -ENOMEM;
	dblp_sent_init(&dsk->sent, block, DBLP_SENT_RING_MIN);
	if (n == 1)
		return 0;
	dsk->peer_ports = kcalloc(n, sizeof(*dsk->peer_ports), gfp);
	ports = kcalloc(n, sizeof(*ports), gfp);
	if (!ports || !dsk->peer_ports) {
		kfree(ports);
		dblp_ring_free(dsk);
		return -ENOMEM;
	}
	dblp_sent_spray(&dsk->sent, ports, n);
	return 0;
}

static void dblp_ring_free_blocks(struct dblp_sent_pkt **blocks, u32 from,
				  u32 to)
{
	for (; from < to; from++)
		kfree(blocks[from]);
}

/* Free and uncharge all blocks */
static void dblp_ring_free_all(struct dblp_sock *dsk)
{
	struct dblp_sent *s = &dsk->sent;

	sk_mem_uncharge(&dsk->sk, dblp_ring_truesize(dsk));
	dblp_ring_free_blocks(s->blocks, 0, dblp_sent_blocks(s));
	if (s->blocks != &s->first)
		kfree(s->blocks);
}

/** dblp_ring_free() - free the ring of a connection that has ended */
void dblp_ring_free(struct dblp_sock *dsk)
{
	struct dblp_sent *s = &dsk->sent;

	if (!s->blocks)
		return;
	dblp_ring_free_all(dsk);
	if (s->ports != &s->own_port)
		kfree(s->ports);
	kfree(dsk->peer_ports);
	dsk->peer_ports = NULL;
	s->blocks = NULL;
}

/**
 * dblp_ring_idle() - schedule dblp_ring_shrink(), as nothing is in flight
 * @dsk: socket; the caller updates the timer
 */
void dblp_ring_idle(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->due.spare && dsk->sent.mask >= DBLP_SENT_RING_MIN)
		dsk->due.spare = ktime_get_ns() + DBLP_SPARE_NS;
}

/**
 * dblp_ring_shrink() - shrink the ring to its first size
 * @dsk: socket; nothing happens while it has packets in flight
 *
 * The largest burst of a connection may exceed all later ones a thousandfold.
 * Without memory for the small ring, this is tried again later.
 */
void dblp_ring_shrink(struct dblp_sock *dsk)
{
	struct dblp_sent_pkt *block;

	sock_owned_by_me(&dsk->sk);
	if (dsk->sent.mask < DBLP_SENT_RING_MIN || dsk->sent.inflight_pkts)
		return;
	block = kcalloc(DBLP_SENT_RING_MIN, sizeof(*block), DBLP_RING_GFP);
	if (!block) {
		dblp_ring_idle(dsk);
		return;
	}
	dblp_ring_free_all(dsk);
	dblp_sent_shrink(&dsk->sent, block, DBLP_SENT_RING_MIN);
}

static bool dblp_ring_grow_block(struct dblp_sent *s)
{
	u32 size = min(4 * (s->mask + 1), DBLP_SENT_BLOCK);
	struct dblp_sent_pkt *block;

	block = kcalloc(size, sizeof(*block), DBLP_RING_GFP);
	if (block)
		kfree(dblp_sent_grow_block(s, block, size));
	return block;
}

/* Double the number of blocks */
static bool dblp_ring_add_blocks(struct dblp_sent *s)
{
	u32 n = dblp_sent_blocks(s), i;
	struct dblp_sent_pkt **blocks, **old;

	blocks = kcalloc(2 * n, sizeof(*blocks), DBLP_RING_GFP);
	if (!blocks)
		return false;
	for (i = n; i < 2 * n; i++) {
		blocks[i] = kcalloc(DBLP_SENT_BLOCK, sizeof(**blocks),
				    DBLP_RING_GFP);
		if (blocks[i])
			continue;
		dblp_ring_free_blocks(blocks, n, i);
		kfree(blocks);
		return false;
	}
	old = dblp_sent_grow(s, blocks);
	if (old != &s->first)
		kfree(old);
	return true;
}

static bool dblp_ring_grow(struct dblp_sock *dsk)
{
	u32 size = dsk->sent.mask + 1, more;

	if (2 * size > DBLP_SENT_RING_MAX)
		return false;
	if (size < DBLP_SENT_BLOCK)
		return dblp_ring_grow_block(&dsk->sent);
	more = dblp_ring_size(2 * size) - dblp_ring_size(size);
	if (!dblp_wmem_schedule(&dsk->sk, more))
		return false;
	sk_mem_charge(&dsk->sk, more);
	if (dblp_ring_add_blocks(&dsk->sent))
		return true;
	sk_mem_uncharge(&dsk->sk, more);
	return false;
}

/**
 * dblp_ring_room() - make room for packets to be sent
 * @dsk: socket
 * @want: packets
 *
 * Return: number of packets with room, at most @want.
 */
u32 dblp_ring_room(struct dblp_sock *dsk, u32 want)
{
	sock_owned_by_me(&dsk->sk);
	while (dblp_sent_free(&dsk->sent) < want && dblp_ring_grow(dsk))
		;
	return dblp_sent_trim(&dsk->sent, want);
}

static void dblp_packets_acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
			       u32 n, bool was_lost)
{
	struct dblp_sock *dsk = ctx;
	struct dblp_tx_msg *msg;

	if (was_lost)
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_PKTSPURIOUS, n);
	while (!pkt->data && !pkt->probe && (msg = dblp_ctl_acked(dsk, pkt)))
		dblp_tx_cancel_acked(dsk, msg);
	dblp_path_acked(dsk, pkt, n);
	msg = pkt->data ? dblp_tx_find(dsk, pkt->msg) : NULL;
	if (msg)
		dblp_tx_acked(dsk, msg, pkt->seg, n, was_lost);
}

static u32 dblp_packet_lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
			    enum dblp_lost_why why)
{
	struct dblp_sock *dsk = ctx;
	struct dblp_tx_msg *msg;
	u32 frames = 0;

	dsk->counts.pkts_lost++;
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

/**
 * dblp_cap_rate() - apply SO_MAX_PACING_RATE
 * @dsk: socket
 *
 * Call this before the pacing rate is used, when the congestion control or the
 * user may have raised it.
 */
void dblp_cap_rate(struct dblp_sock *dsk)
{
	unsigned long most = READ_ONCE(dsk->sk.sk_max_pacing_rate);

	sock_owned_by_me(&dsk->sk);
	/* Used by sch_fq; setsockopt() only lowers it */
	WRITE_ONCE(dsk->sk.sk_pacing_rate, most);
	if (most != ~0UL)
		dsk->cc.pacing_rate = clamp_t(u64, most, 1,
					      dsk->cc.pacing_rate);
}

/*
 * Update the congestion control, and scale the time until the next packet to
 * the new pacing rate. At less than a packet per round trip, the old rate would
 * delay that packet for too long.
 */
static void dblp_cc_ack(struct dblp_sock *dsk,
			const struct dblp_rate_sample *rs)
{
	u64 rate = dsk->cc.pacing_rate, now = rs->now;

	dsk->cc.ops->ack(&dsk->cc, rs, &dsk->rtt);
	dblp_cap_rate(dsk);
	trace_dblp_cc(dsk, rs);
	if (!rate || !dsk->cc.pacing_rate || dsk->pace.next <= now)
		return;
	dsk->pace.next = now + mul_u64_u64_div_u64(dsk->pace.next - now, rate,
						   dsk->cc.pacing_rate);
}

/**
 * dblp_loss_expired() - detect losses by time, RFC 9002 section 6.1.2
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
 * dblp_lose_size_probes() - at a probe timeout, declare PMTU probes lost
 * @dsk: socket
 *
 * Return: true if only PMTU probes were in flight; else false, without change.
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
 * dblp_lose_larger() - declare packets lost that exceed the path MTU
 * @dsk: socket
 * @mss: largest UDP payload that the path passes, in bytes
 */
void dblp_lose_larger(struct dblp_sock *dsk, u32 mss)
{
	sock_owned_by_me(&dsk->sk);
	dblp_sent_lose_larger(&dsk->sent, mss, ktime_get_ns(), &dblp_sent_ops,
			      dsk);
}

/**
 * dblp_lose_oldest() - declare the oldest packets lost to make room for a probe
 * @dsk: socket
 * @n: number of packets to make room for
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

/**
 * dblp_sent_acked() - process an ACK frame
 * @dsk: socket
 * @f: ACK frame
 * @now: the time
 *
 * Return: 0, or -EPROTO if it acknowledges a packet that was not sent: an
 * optimistic ACK attack (RFC 9000 section 21.4).
 */
int dblp_sent_acked(struct dblp_sock *dsk, const struct dblp_frame *f, u64 now)
{
	struct dblp_acked_range r[DBLP_ACK_RANGES_MAX];
	struct dblp_rate_sample rs = {};
	u32 i;

	sock_owned_by_me(&dsk->sk);
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
	dblp_rtt_split(&dsk->rtt, &rs,
		       dsk->pkt.has_arrival ? &dsk->pkt.arrival : NULL);
	rs.ce = dblp_path_ce(dsk);
	rs.share = dsk->pkt.share ?: 1;
	rs.all = dsk->pkt.share ? dsk->pkt.share_all : 0;
	if (rs.acked) {
		dsk->tx.pto_count = 0;
		dsk->tx.progress = now;
		dsk->tx.queue_full = 0;
	}
	if (rs.rate && !rs.app_limited)
		dsk->counts.delivery_rate = rs.rate;
	if (rs.acked || rs.lost)
		dblp_cc_ack(dsk, &rs);
	return 0;
}
