// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets sent: acknowledgment, loss detection, round-trip time and delivery
 * rate.
 *
 * Packets are kept in a ring by packet number. Most ranges of an ACK repeat
 * those of earlier ACKs. So an acknowledged packet stores the end of the
 * acknowledged packets from it on (@skip), and an ACK steps over them. The cost
 * of an ACK depends only on the packets that are new in it.
 *
 * A lost packet keeps its ring entry for a few round trips. If it is
 * acknowledged after all, the loss was spurious, and the tolerance for
 * reordering grows.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <linux/dblp.h>

#include "recovery.h"

#define MIN_RTT_WINDOW_NS	(10ULL * 1000000000)

/*
 * Age up to which lost packets are kept, as a multiple of the age at which they
 * are declared lost. It bounds the growth of the tolerance for one spurious
 * loss
 */
#define KEEP_LOST_TIMES		4
/* Packets behind the largest acknowledged one that are kept at least */
#define KEEP_LOST_PKTS		1200U

/* Round trips before an unused tolerance for reordering is halved */
#define REORDER_DECAY_ROUNDS	64

/* Round trips over which the least delay of ACKs counts as the path's */
#define BACK_ROUNDS		16

/* Bytes over which the loss rate is measured */
#define LOSS_MEMORY		(1024 * 1024)

/* The reported delay must not bring a sample below the minimum */
static u64 without_delay(const struct dblp_rtt *r, u64 rtt, u64 ack_delay)
{
	return rtt >= r->min && rtt - r->min >= ack_delay ? rtt - ack_delay :
							    rtt;
}

/*
 * RFC 9002 keeps the peer's ACK delay in the first sample and in the minimum,
 * as it is at most about 25 ms there. Here it is subtracted: most ACKs may be
 * lost, the delay lasts until one arrives, and the probe timeout would grow
 * with it.
 */
static u64 first_sample(u64 rtt, u64 ack_delay)
{
	return rtt > ack_delay ? rtt - ack_delay : rtt;
}

static void take_first_sample(struct dblp_rtt *r, u64 rtt, u64 now)
{
	r->latest = rtt;
	r->srtt = rtt;
	r->usual = rtt;
	r->var = rtt / 2;
	r->allowance = 4 * (DBLP_INITIAL_RTT_NS / 2);
	r->min = rtt;
	r->min_at = now;
}

void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now)
{
	u64 diff;

	rtt = max_t(u64, rtt, 1);
	if (!r->latest) {
		take_first_sample(r, first_sample(rtt, ack_delay), now);
		return;
	}
	if (now - r->min_at > MIN_RTT_WINDOW_NS) {
		r->min = first_sample(rtt, ack_delay);
		r->min_at = now;
	} else if (rtt <= r->min) {
		r->min = rtt;
		r->min_at = now;
	}
	rtt = without_delay(r, rtt, ack_delay);
	r->latest = rtt;
	diff = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
	r->var = r->var - r->var / 4 + diff / 4;
	r->allowance /= 2;
	r->srtt = max_t(u64, r->srtt - r->srtt / 8 + rtt / 8, 1);
	rtt = min(rtt, 2 * r->usual);
	r->usual = max_t(u64, r->usual - r->usual / 8 + rtt / 8, 8);
}

/*
 * One-way delay to the peer beyond the minimum, clamped to 0 ... @excess.
 * Corrects @way so that the unclamped delay of this sample would be in that
 * range.
 */
static u32 delay_there(struct dblp_rtt *r, u32 there, u32 excess, u64 now)
{
	s32 delay = excess;
	u64 drift;

	if (r->way_at) {
		drift = div_u64(max(now, r->way_at) - r->way_at, DBLP_CLOCK_DRIFT);
		drift = min_t(u64, drift, S32_MAX / 2);
		delay = clamp_t(s32, there - r->way + (u32)drift, 0, delay);
		r->way_at += drift * DBLP_CLOCK_DRIFT;
	} else {
		r->way_at = now;
	}
	r->way = there - delay;
	return delay;
}

/*
 * Learn the delay on the way back. The part by which all ACKs are late belongs
 * to the path. A sample has the weight that it has in @usual: that clamps it to
 * twice its previous value, which is 16/9 of the present one. Otherwise a delay
 * that @usual does not contain yet could exceed it, and leave no delay to the
 * peer.
 */
static void learn_back(struct dblp_rtt *r, u64 rtt, u64 back, u64 now)
{
	u64 counts = min(rtt, r->usual + div_u64(r->usual, 9) * 7);

	r->back = r->back - r->back / 8 + mul_u64_u64_div_u64(back, counts, rtt) / 8;
	r->back_low = min(r->back_low, back);
	if (now - r->back_from < BACK_ROUNDS * r->srtt)
		return;
	r->base += r->back_low;
	r->back -= min(r->back, r->back_low);
	r->back_low = U64_MAX;
	r->back_from = now;
}

void dblp_rtt_split(struct dblp_rtt *r, struct dblp_rate_sample *rs, const u32 *arrived)
{
	u64 excess;

	if (!rs->rtt)
		return;
	r->base = r->base ? min(r->base, rs->rtt) : rs->rtt;
	excess = min_t(u64, rs->rtt - r->base, S32_MAX);
	rs->queue = arrived ? delay_there(r, *arrived - (u32)rs->sent, excess, rs->now) : excess;
	learn_back(r, rs->rtt, excess - rs->queue, rs->now);
	rs->base = r->base;
}

u64 dblp_backoff(u64 wait, u64 silence)
{
	return min(max(wait, div_u64(silence, DBLP_PTO_SILENCE)),
		   DBLP_PTO_MAX_NS);
}

u64 dblp_pto(const struct dblp_rtt *r, u64 max_ack_delay, u64 silence)
{
	u64 srtt = r->latest ? r->srtt : DBLP_INITIAL_RTT_NS;
	u64 var = r->latest ? r->var : DBLP_INITIAL_RTT_NS / 2;
	u64 pto = srtt + max(4 * var, DBLP_GRANULARITY_NS) + max_ack_delay;

	pto = max(pto, srtt + r->allowance + max_ack_delay);
	return dblp_backoff(pto, silence);
}

static struct dblp_sent_pkt *slot(const struct dblp_sent *s, u64 pn)
{
	return dblp_sent_slot(s, pn);
}

/* Number of ring entries from that of @pn on that are adjacent in memory */
static u32 in_a_row(const struct dblp_sent *s, u64 pn)
{
	u32 size = min(s->mask + 1, DBLP_SENT_BLOCK);

	return size - (pn & (size - 1));
}

void dblp_sent_spray(struct dblp_sent *s, struct dblp_port *ports, u32 n)
{
	ports[0].announced = true;
	s->ports = ports;
	s->n_ports = n;
}

void dblp_sent_init(struct dblp_sent *s, struct dblp_sent_pkt *block, u32 size)
{
	memset(s, 0, sizeof(*s));
	s->first = block;
	s->blocks = &s->first;
	s->mask = size - 1;
	dblp_sent_spray(s, &s->own_port, 1);
	s->skipped = U64_MAX;
	s->reorder = DBLP_REORDER_MIN;
}

struct dblp_sent_pkt *dblp_sent_grow_block(struct dblp_sent *s,
					   struct dblp_sent_pkt *block,
					   u32 size)
{
	struct dblp_sent_pkt *old = s->first;
	u64 pn;

	for (pn = s->base; pn != s->next; pn++)
		block[pn & (size - 1)] = *slot(s, pn);
	s->first = block;
	s->mask = size - 1;
	return old;
}

struct dblp_sent_pkt **dblp_sent_grow(struct dblp_sent *s,
				      struct dblp_sent_pkt **blocks)
{
	u64 lo = s->base / DBLP_SENT_BLOCK, hi = s->next / DBLP_SENT_BLOCK;
	struct dblp_sent_pkt **old = s->blocks;
	u32 n = dblp_sent_blocks(s), i;

	/* If the ring begins and ends in the same block, move the end part */
	i = lo & (n - 1);
	if (hi == lo + n)
		memcpy(blocks[n + i], old[i],
		       s->next % DBLP_SENT_BLOCK * sizeof(**old));
	for (i = 0; i < n; i++) {
		u32 at = (lo + ((i - lo) & (n - 1))) & (2 * n - 1);
		struct dblp_sent_pkt *fresh = blocks[n + i];

		blocks[at] = old[i];
		blocks[at ^ n] = fresh;
	}
	s->blocks = blocks;
	s->mask = 2 * n * DBLP_SENT_BLOCK - 1;
	return old;
}

void dblp_sent_shrink(struct dblp_sent *s, struct dblp_sent_pkt *block,
		      u32 size)
{
	s->base = s->next;
	s->scan = s->next;
	s->first = block;
	s->blocks = &s->first;
	s->mask = size - 1;
}

void dblp_sent_push_row(struct dblp_sent *s, struct dblp_sent_pkt *pkt, u32 n,
			u64 now)
{
	struct dblp_port *port = &s->ports[pkt->port];
	u32 seg = pkt->seg, order = port->sent, part;
	struct dblp_sent_pkt *to, *end;

	/* After a pause, restart the rate measurement */
	if (!s->inflight_pkts) {
		s->first_sent = now;
		s->delivered_at = now;
	}
	pkt->sent = now;
	pkt->delivered = s->delivered;
	pkt->delivered_at = s->delivered_at;
	pkt->first_sent = s->first_sent;
	pkt->state = DBLP_SENT_INFLIGHT;
	pkt->app_limited = s->app_limited != 0;
	s->inflight += n * pkt->bytes;
	s->inflight_pkts += n;
	if (!port->inflight_pkts)
		port->scan = s->next;
	port->inflight_pkts += n;
	port->sent += n;
	for (; n; n -= part) {
		to = slot(s, s->next);
		part = min(n, in_a_row(s, s->next));
		s->next += part;
		for (end = to + part; to < end; to++) {
			*to = *pkt;
			to->seg = seg++;
			to->order = ++order;
		}
	}
}

struct dblp_sent_pkt *dblp_sent_push(struct dblp_sent *s, u16 bytes, u64 now)
{
	struct dblp_sent_pkt pkt = { .bytes = bytes };

	dblp_sent_push_row(s, &pkt, 1, now);
	return slot(s, s->next - 1);
}

void dblp_sent_skip(struct dblp_sent *s, u32 random)
{
	if (s->skip_gap) {
		if (!dblp_sent_free(s) || dblp_sent_pkt(s, s->skipped))
			return;
		s->skipped = s->next++;
		*slot(s, s->skipped) = (struct dblp_sent_pkt) {
			.state = DBLP_SENT_ACKED, .skip = s->next,
		};
	}
	s->skip_gap = s->skip_gap ? min(s->skip_gap * DBLP_SKIP_GROWS,
					DBLP_SKIP_MAX) : DBLP_SKIP_MIN;
	s->skip_at = s->next + s->skip_gap + (random & (s->skip_gap - 1));
}

static struct dblp_port *port_of(const struct dblp_sent *s, u64 pn)
{
	return &s->ports[slot(s, pn)->port];
}

/* Number of packets that its port sent after @pn, up to its packet @later */
static u32 behind(const struct dblp_sent *s, u64 pn, u32 later)
{
	return max_t(s32, later - slot(s, pn)->order, 0);
}

/* First packet of @pn ... @end - 1 that is not acknowledged, or >= @end */
static u64 next_unacked(struct dblp_sent *s, u64 pn, u64 end)
{
	while (pn < end && slot(s, pn)->state == DBLP_SENT_ACKED) {
		struct dblp_sent_pkt *pkt = slot(s, pn);

		/* Path halving keeps later walks short */
		if (pkt->skip < end &&
		    slot(s, pkt->skip)->state == DBLP_SENT_ACKED)
			pkt->skip = slot(s, pkt->skip)->skip;
		pn = pkt->skip;
	}
	return pn;
}

/* Age at which a packet of a port is lost, without tolerance for reordering */
static u64 usual_delay(const struct dblp_rtt *rtt, const struct dblp_port *p)
{
	u64 delay = max(max(rtt->srtt, rtt->latest), p->srtt);

	if (!delay)
		delay = DBLP_INITIAL_RTT_NS;
	return max(delay + delay / 8, DBLP_GRANULARITY_NS);
}

static u64 loss_delay(const struct dblp_sent *s, const struct dblp_rtt *rtt,
		      const struct dblp_port *p)
{
	return usual_delay(rtt, p) + s->reorder_ns;
}

/*
 * Age at which a packet is lost if later packets of other ports only were
 * acknowledged. They took other paths, so they prove nothing, and the packet
 * gets as much time as a probe timeout.
 */
static u64 silent_delay(const struct dblp_sent *s, const struct dblp_rtt *rtt,
			const struct dblp_port *p)
{
	return loss_delay(s, rtt, p) + 4 * max(rtt->var, p->var);
}

/*
 * A packet declared lost has arrived, @distance packets behind the largest of
 * its port and @excess_ns after the usual delay. Packets that overtake others
 * make round trips and queues look short, so the tolerance may be many round
 * trips: as many as it lasts unused.
 */
static void widen_reordering(struct dblp_sent *s, const struct dblp_rtt *rtt,
			     u64 distance, u64 excess_ns, u64 now)
{
	if (distance >= s->reorder)
		s->reorder = min_t(u64, distance + 1, DBLP_REORDER_MAX);
	excess_ns = min(excess_ns + excess_ns / 8,
			REORDER_DECAY_ROUNDS * rtt->srtt);
	s->reorder_ns = max(s->reorder_ns, excess_ns);
	/* Spurious losses of one round trip count as one event */
	if (s->reorder_at && now - s->reorder_at < rtt->srtt)
		return;
	if (s->reorder_ns < rtt->srtt)
		s->reorder_ns = min(s->reorder_ns + rtt->min / 4 + 1,
				    rtt->srtt);
	s->reorder_at = now;
}

/*
 * Packet @pn was acknowledged. It was reordered if a later packet of its port
 * was acknowledged before. If half of the tolerance would not suffice, all of
 * it is still needed. A late acknowledgment without such a later packet is no
 * reordering: an earlier ACK may have been lost.
 */
static void note_reordering(struct dblp_sent *s, const struct dblp_rtt *rtt,
			    u64 pn, u64 now)
{
	const struct dblp_port *p = port_of(s, pn);
	bool lost = slot(s, pn)->state == DBLP_SENT_LOST;
	u64 excess_ns;

	if (lost) {
		s->spurious++;
		s->recent_lost -= min_t(u32, s->recent_lost,
					slot(s, pn)->bytes);
	}
	if ((s32)(slot(s, pn)->order - p->before) > 0)
		return;
	excess_ns = now - slot(s, pn)->sent;
	excess_ns -= min(excess_ns, usual_delay(rtt, p));
	if (lost)
		widen_reordering(s, rtt, behind(s, pn, p->acked), excess_ns,
				 now);
	else if (behind(s, pn, p->before) > s->reorder / 2 ||
		 excess_ns > s->reorder_ns / 2)
		s->reorder_at = now;
}

static void narrow_reordering(struct dblp_sent *s, const struct dblp_rtt *rtt,
			      u64 now)
{
	if (s->reorder == DBLP_REORDER_MIN && !s->reorder_ns)
		return;
	if (now - s->reorder_at < REORDER_DECAY_ROUNDS * rtt->srtt)
		return;
	s->reorder -= (s->reorder - DBLP_REORDER_MIN + 1) / 2;
	s->reorder_ns /= 2;
	s->reorder_at = now;
}

/*
 * Packets newly acknowledged by an ACK: @pkt and @pn are the newest of them,
 * @spurious the part of @bytes that had been declared lost
 */
struct newly_acked {
	struct dblp_sent_pkt	pkt;
	u64			pn;
	u32			bytes;
	u32			spurious;
	bool			any;
};

/*
 * Number of packets from @pn to below @end that are in flight and adjacent in
 * memory, with consecutive segments of one message, from one port
 */
static u32 ack_run(const struct dblp_sent *s, u64 pn, u64 end)
{
	const struct dblp_sent_pkt *pkt = slot(s, pn);
	u32 most = min_t(u64, end - pn, in_a_row(s, pn)), n = 1;

	if (pkt->state != DBLP_SENT_INFLIGHT || !pkt->data)
		return 1;
	while (n < most && pkt[n].state == DBLP_SENT_INFLIGHT &&
	       pkt[n].port == pkt->port && pkt[n].data && pkt[n].msg == pkt->msg &&
	       pkt[n].seg == pkt->seg + n)
		n++;
	return n;
}

/* Is every later packet of its port unacknowledged? */
static bool is_silent(const struct dblp_port *p,
		      const struct dblp_sent_pkt *pkt)
{
	return (s32)(pkt->order - p->acked) > 0;
}

/* The path of a port has delivered a packet */
static void ack_port(struct dblp_port *p, const struct dblp_sent_pkt *pkt,
		     u64 now)
{
	if (is_silent(p, pkt)) {
		p->acked = pkt->order;
		p->acked_sent = pkt->sent;
	}
	p->missed = 0;
	p->announced = true;
	p->acked_at = now;
}

static void ack_packets(struct dblp_sent *s, u64 pn, u32 n, u64 now,
			struct newly_acked *newly,
			const struct dblp_sent_ops *ops, void *ctx)
{
	struct dblp_sent_pkt *pkt = slot(s, pn);
	struct dblp_port *p = &s->ports[pkt->port];
	bool was_lost = pkt->state == DBLP_SENT_LOST;
	u64 end = pn + n;
	u32 bytes = 0, i;

	if (!newly->any || end - 1 > newly->pn) {
		newly->pkt = pkt[n - 1];
		newly->pn = end - 1;
		newly->any = true;
	}
	for (i = 0; i < n; i++) {
		bytes += pkt[i].bytes;
		pkt[i].state = DBLP_SENT_ACKED;
		pkt[i].skip = end;
	}
	if (!was_lost) {
		s->inflight -= bytes;
		s->inflight_pkts -= n;
		p->inflight_pkts -= n;
	}
	ack_port(p, &pkt[n - 1], now);
	dblp_port_note(p, bytes, 0);
	newly->bytes += bytes;
	newly->spurious += was_lost ? bytes : 0;
	s->delivered += bytes;
	ops->acked(ctx, pn, pkt, n, was_lost);
}

static void ack_range(struct dblp_sent *s, const struct dblp_acked_range *r,
		      const struct dblp_rtt *rtt, u64 now,
		      struct newly_acked *newly,
		      const struct dblp_sent_ops *ops, void *ctx)
{
	u64 first = max(r->first, s->base), end = r->last + 1, pn = first;
	u32 n;

	if (slot(s, r->last)->state != DBLP_SENT_ACKED)
		ack_port(port_of(s, r->last), slot(s, r->last), now);
	for (; (pn = next_unacked(s, pn, end)) < end; pn += n) {
		note_reordering(s, rtt, pn, now);
		n = ack_run(s, pn, end);
		ack_packets(s, pn, n, now, newly, ops, ctx);
	}
	if (first < end && slot(s, first)->skip < end)
		slot(s, first)->skip = end;
}

/* A loss before an acknowledged packet is no sign of a dead path */
static void lose_port(struct dblp_port *p, const struct dblp_sent_pkt *pkt)
{
	p->inflight_pkts--;
	dblp_port_note(p, 0, pkt->bytes);
	if (pkt->bytes && is_silent(p, pkt))
		p->missed = min(p->missed + 1U, DBLP_SPRAY_DEAD);
}

/* Declare a packet lost. Returns the work done, in packets */
static u32 lose_packet(struct dblp_sent *s, u64 pn, enum dblp_lost_why why,
		       const struct dblp_sent_ops *ops, void *ctx)
{
	struct dblp_sent_pkt *pkt = slot(s, pn);

	s->inflight -= pkt->bytes;
	s->inflight_pkts--;
	lose_port(&s->ports[pkt->port], pkt);
	pkt->state = DBLP_SENT_LOST;
	return 1 + ops->lost(ctx, pn, pkt, why);
}

/* One step of dblp_sent_lose_larger(); detect_lost() continues afterwards */
static void lose_larger(struct dblp_sent *s, u64 now,
			const struct dblp_sent_ops *ops, void *ctx)
{
	u64 pn = max(s->lose_from, s->scan);
	u32 took = 0;

	for (; pn < s->lose_end && took < DBLP_LOSE_MAX; pn++) {
		struct dblp_sent_pkt *pkt = slot(s, pn);

		if (pkt->state == DBLP_SENT_INFLIGHT &&
		    pkt->bytes > s->lose_larger && !pkt->fragmented)
			took += lose_packet(s, pn, DBLP_LOST_TOO_LARGE, ops,
					    ctx);
		else
			took++;
		if (pn == s->scan && pkt->state != DBLP_SENT_INFLIGHT)
			s->scan++;
	}
	s->lose_from = pn;
	s->loss_time = now;
}

/*
 * Declare packets of one port below @end lost. Returns bytes lost, and adds the
 * work done to @took. The next call continues at @scan of the port.
 */
static u32 detect_lost_of(struct dblp_sent *s, struct dblp_port *p, u64 end,
			  const struct dblp_rtt *rtt, u64 now, u32 *took,
			  const struct dblp_sent_ops *ops, void *ctx)
{
	u64 pn = max(p->scan, s->scan), at;
	enum dblp_lost_why why;
	u32 lost = 0;

	for (; (pn = next_unacked(s, pn, end)) < end; pn++) {
		struct dblp_sent_pkt *pkt = slot(s, pn);

		at = now;
		if (*took >= DBLP_LOSE_MAX)
			break;
		if (pkt->state != DBLP_SENT_INFLIGHT || port_of(s, pn) != p) {
			++*took;
			continue;
		}
		at = pkt->sent + (is_silent(p, pkt) ? silent_delay(s, rtt, p) :
						      loss_delay(s, rtt, p));
		if (behind(s, pn, p->acked) >= s->reorder)
			why = DBLP_LOST_REORDERED;
		else if (now >= at)
			why = DBLP_LOST_OVERDUE;
		else
			break;	/* all further packets were sent later */
		lost += pkt->bytes;
		*took += lose_packet(s, pn, why, ops, ctx);
	}
	if (pn < end)
		s->loss_time = min(s->loss_time ?: at, at);
	p->scan = pn;
	return lost;
}

/*
 * Declare packets lost; returns their bytes. Each port is judged by itself,
 * because packets of different ports overtake each other.
 */
static u32 detect_lost(struct dblp_sent *s, const struct dblp_rtt *rtt, u64 now,
		       const struct dblp_sent_ops *ops, void *ctx)
{
	u64 end = s->any_acked ? s->largest_acked + 1 : 0, scan = end;
	struct dblp_port *p;
	u32 lost = 0, took = 0;

	s->loss_time = 0;
	for (p = s->ports; p < s->ports + s->n_ports; p++) {
		if (p->inflight_pkts)
			lost += detect_lost_of(s, p, end, rtt, now, &took, ops,
					       ctx);
		if (p->inflight_pkts)
			scan = min(scan, p->scan);
	}
	s->scan = max(s->scan, scan);
	if (s->lose_from < s->lose_end)
		s->loss_time = now;
	return lost;
}

static void note_loss(struct dblp_sent *s, u32 acked, u32 lost)
{
	s->recent += acked + lost;
	s->recent_lost += lost;
	while (s->recent > LOSS_MEMORY) {
		s->recent /= 2;
		s->recent_lost /= 2;
	}
}

u32 dblp_sent_loss(const struct dblp_sent *s)
{
	if (!s->recent)
		return 0;
	return div64_u64((u64)s->recent_lost * DBLP_PPM, s->recent);
}

/* Distance behind the largest acknowledged packet that is kept */
static u64 keep_pkts(const struct dblp_sent *s)
{
	return max_t(u64, 2 * (s->next - s->scan),
		     max(4 * s->reorder, KEEP_LOST_PKTS));
}

/* May a packet that was declared lost still arrive? */
static bool is_awaited(const struct dblp_sent *s, const struct dblp_rtt *rtt,
		       u64 pn, u64 now)
{
	return now - slot(s, pn)->sent <
	       KEEP_LOST_TIMES * silent_delay(s, rtt, port_of(s, pn)) &&
	       s->largest_acked < pn + keep_pkts(s);
}

static void advance_base(struct dblp_sent *s, const struct dblp_rtt *rtt,
			 u64 now)
{
	while (s->base < s->scan) {
		struct dblp_sent_pkt *pkt = slot(s, s->base);

		if (pkt->state == DBLP_SENT_LOST &&
		    is_awaited(s, rtt, s->base, now))
			return;
		s->base = pkt->state == DBLP_SENT_ACKED ?
			  min(pkt->skip, s->scan) : s->base + 1;
	}
}

/*
 * Delivery rate over the flight that ended with @pkt: the lower of its send
 * rate and its ACK rate. ACKs that arrive in a burst make the ACK rate too
 * high.
 */
static void sample_rate(struct dblp_sent *s, const struct dblp_sent_pkt *pkt,
			const struct dblp_rtt *rtt, struct dblp_rate_sample *rs)
{
	u64 bytes = s->delivered - pkt->delivered;
	u64 interval = max(pkt->sent - pkt->first_sent,
			   rs->now - pkt->delivered_at);

	rs->prior_delivered = pkt->delivered;
	rs->app_limited = pkt->app_limited;
	s->first_sent = max(s->first_sent, pkt->sent);
	s->delivered_at = rs->now;
	if (s->app_limited && s->delivered > s->app_limited)
		s->app_limited = 0;
	if (!interval || interval < rtt->min)
		return;
	rs->interval = interval;
	rs->rate = div64_u64(min_t(u64, bytes, U32_MAX) * 1000000000, interval);
}

/*
 * Round-trip time of one of several ports. The sample may include some ACK
 * delay of the peer; that is short, because reordered packets are acknowledged
 * at once.
 */
static void sample_port(struct dblp_port *p, u64 now)
{
	u64 sample = now - p->acked_sent, diff;

	if (p->acked == p->before)
		return;
	if (!p->srtt) {
		p->srtt = max_t(u64, sample, 1);
		p->var = sample / 2;
		return;
	}
	diff = sample > p->srtt ? sample - p->srtt : p->srtt - sample;
	p->var = p->var - p->var / 4 + diff / 4;
	p->srtt = max_t(u64, p->srtt - p->srtt / 8 + sample / 8, 1);
}

static bool ranges_are_sane(const struct dblp_sent *s,
			    const struct dblp_acked_range *r, u32 n)
{
	u32 i;

	if (!n || r[0].last >= s->next)
		return false;
	for (i = 0; i < n; i++) {
		if (r[i].first > r[i].last ||
		    (r[i].first <= s->skipped && s->skipped <= r[i].last))
			return false;
		if (i && r[i].last >= r[i - 1].first)
			return false;
	}
	return true;
}

s64 dblp_sent_ack(struct dblp_sent *s, const struct dblp_acked_range *r, u32 n,
		  u64 ack_delay, struct dblp_rtt *rtt, u64 now,
		  const struct dblp_sent_ops *ops, void *ctx,
		  struct dblp_rate_sample *rs)
{
	struct newly_acked newly = { .any = false };
	u32 i;

	memset(rs, 0, sizeof(*rs));
	if (!ranges_are_sane(s, r, n))
		return -1;
	rs->now = now;
	for (i = 0; i < s->n_ports; i++)
		s->ports[i].before = s->ports[i].acked;
	if (!s->any_acked || r[0].last > s->largest_acked)
		s->largest_acked = r[0].last;
	s->any_acked = true;
	for (i = 0; i < n && r[i].last >= s->base; i++)
		ack_range(s, &r[i], rtt, now, &newly, ops, ctx);
	for (i = 0; s->n_ports > 1 && i < s->n_ports; i++)
		sample_port(&s->ports[i], now);

	if (newly.any && newly.pn == r[0].last) {
		u64 sample = max_t(u64, now - newly.pkt.sent, 1);

		dblp_rtt_sample(rtt, sample, ack_delay, now);
		rs->rtt = without_delay(rtt, sample, ack_delay);
		rs->sent = newly.pkt.sent;
	}
	if (newly.any)
		sample_rate(s, &newly.pkt, rtt, rs);
	narrow_reordering(s, rtt, now);
	rs->lost = detect_lost(s, rtt, now, ops, ctx);
	advance_base(s, rtt, now);
	note_loss(s, newly.bytes, rs->lost);
	rs->acked = newly.bytes;
	rs->spurious = newly.spurious;
	rs->inflight = s->inflight;
	rs->delivered = s->delivered;
	return newly.bytes;
}

u32 dblp_sent_timeout(struct dblp_sent *s, const struct dblp_rtt *rtt, u64 now,
		      const struct dblp_sent_ops *ops, void *ctx)
{
	u32 lost;

	if (s->lose_from < s->lose_end) {
		lose_larger(s, now, ops, ctx);
		return 0;
	}
	lost = detect_lost(s, rtt, now, ops, ctx);
	advance_base(s, rtt, now);
	note_loss(s, 0, lost);
	return lost;
}

struct dblp_sent_pkt *dblp_sent_inflight(struct dblp_sent *s, u64 *pn)
{
	for (*pn = max(*pn, s->scan); *pn < s->next; ++*pn) {
		if (slot(s, *pn)->state == DBLP_SENT_INFLIGHT)
			return slot(s, *pn);
	}
	return NULL;
}

void dblp_sent_lose(struct dblp_sent *s, u64 pn,
		    const struct dblp_sent_ops *ops, void *ctx)
{
	lose_packet(s, pn, DBLP_LOST_PROBE, ops, ctx);
}

void dblp_sent_lose_larger(struct dblp_sent *s, u32 bytes, u64 now,
			   const struct dblp_sent_ops *ops, void *ctx)
{
	s->lose_larger = bytes;
	s->lose_from = s->scan;
	s->lose_end = s->next;
	lose_larger(s, now, ops, ctx);
}

/* Drop the oldest packet from the ring; @scan must not be below @base */
static void drop_oldest(struct dblp_sent *s)
{
	s->base++;
	s->scan = max(s->scan, s->base);
}

u32 dblp_sent_trim(struct dblp_sent *s, u32 want)
{
	while (dblp_sent_free(s) < want && s->base < s->scan)
		drop_oldest(s);
	return min(dblp_sent_free(s), want);
}

void dblp_sent_lose_oldest(struct dblp_sent *s, u32 want,
			   const struct dblp_sent_ops *ops, void *ctx)
{
	while (dblp_sent_free(s) < want) {
		if (slot(s, s->base)->state == DBLP_SENT_INFLIGHT)
			lose_packet(s, s->base, DBLP_LOST_NO_ROOM, ops, ctx);
		drop_oldest(s);
	}
}
