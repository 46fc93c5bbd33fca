// SPDX-License-Identifier: GPL-2.0-only
/*
 * What came from the peer, and the frames that are not repeated by themselves: what
 * it is told of that (acknowledgments, the marks on its packets, credit, CLOSE frames),
 * which any packet takes along, and META.
 */
#include <net/inet_ecn.h>

#include "dblp.h"

/** dblp_ack_done() - an ACK that says all goes, or would if it could */
void dblp_ack_done(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->acked_at = ktime_get_ns();
	dsk->ack_pending = 0;
	dsk->ack_now = 0;
	dsk->ack_at = 0;
}

/* With less room, only the latest packets: the others are still to be acknowledged */
static u8 *dblp_put_ack(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now)
{
	const struct dblp_ranges *s = &dsk->pns;
	struct dblp_frame f = { .type = DBLP_FRAME_ACK };
	u8 *next;
	u32 i;

	if (!s->n)
		return NULL;
	f.ack.delay_us = min_t(u64, div_u64(now - dsk->largest_at,
					    NSEC_PER_USEC), U32_MAX);
	f.ack.n = min_t(u32, s->n, DBLP_ACK_RANGES_MAX);
	for (i = 0; i < f.ack.n; i++) {
		f.ack.range[i].first = s->r[s->n - 1 - i].first;
		f.ack.range[i].last = s->r[s->n - 1 - i].last;
	}
	next = dblp_put_frame(p, end, &f);
	if (next)
		dblp_ack_done(dsk);
	while (!next && f.ack.n > 1) {
		f.ack.n /= 2;
		next = dblp_put_frame(p, end, &f);
	}
	return next;
}

/*
 * How many share the way to this end with the peer; that it is alone it takes
 * from the absence of this frame. Only those count who send to the same listener:
 * others may be strangers, who would make this peer slow.
 */
static u8 *dblp_put_share(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_SHARE };
	int n = atomic_read(&dsk->ep->receiving);

	if (n < 2)
		return p;
	f.share.n = min(n, U16_MAX);
	return dblp_put_frame(p, end, &f) ?: p;
}

/**
 * dblp_put_ecn() - write an ECN frame
 * @dsk: socket
 * @p: where
 * @end: of the room there
 *
 * Return: the end of the frame, NULL if there is no room for it.
 */
u8 *dblp_put_ecn(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_ECN };

	sock_owned_by_me(&dsk->sk);
	f.ecn.ect0 = dsk->ecn_ect0;
	f.ecn.ect1 = dsk->ecn_ect1;
	f.ecn.ce = dsk->ecn_ce;
	return dblp_put_frame(p, end, &f);
}

static u8 *dblp_put_flow(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_FLOW };

	if (!dblp_rx_credit_waits(dsk))
		return NULL;
	if (end - p < 20)
		return NULL;
	dblp_ctl_flow(dsk, &f);
	return dblp_put_frame(p, end, &f);
}

/**
 * dblp_put_news() - write what every packet takes along, as far as there is room
 * @dsk: socket
 * @p: where
 * @end: of the room there
 * @now: the time
 *
 * CLOSE frames come before the ACK, or a sender could take an acknowledged
 * message for one that is complete, or of which more is wanted. The former must
 * not be. Of the others those that have waited longest go, and leave room: without
 * ACKs a sender stops until its probe timeout.
 *
 * Return: the end of what was written.
 */
u8 *dblp_put_news(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now)
{
	u8 *next;

	sock_owned_by_me(&dsk->sk);
	if (!dblp_ctl_fill_late(dsk, &p, end))
		return p;
	p = dblp_ctl_fill_closes(dsk, p, min_t(const u8 *, end, p + DBLP_CLOSES_AGAIN));
	if (dsk->ecn_ect0 || dsk->ecn_ect1 || dsk->ecn_ce) {
		next = dblp_put_ecn(dsk, p, end);
		p = next ?: p;
	}
	p = dblp_put_share(dsk, p, end);
	next = dblp_put_ack(dsk, p, end, now);
	if (!next)
		return p;
	p = next;
	next = dblp_put_flow(dsk, p, end);
	return next ?: p;
}

/**
 * dblp_put_meta() - write what a user said of a message
 * @msg: message with such
 * @p: where
 * @end: of the room there
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

/**
 * dblp_note_received() - numbered packets were taken: they will be acknowledged
 * @dsk: socket
 * @run: the packets
 */
void dblp_note_received(struct dblp_sock *dsk, const struct dblp_run *run)
{
	struct dblp_ranges *s = &dsk->pns;
	u64 expected = s->n ? s->r[s->n - 1].last + 1 : 0;

	sock_owned_by_me(&dsk->sk);
	if (dblp_ranges_crowded(s))
		dblp_more_ranges(dsk);
	if (run->n > 1)
		dblp_ranges_add_run(s, run->pn, run->n);
	else
		dblp_ranges_add(s, run->pn);
	if (run->pn >= expected)
		dsk->largest_at = ktime_get_ns();
	if (run->pn != expected || run->h.type != DBLP_PKT_DATA)
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
