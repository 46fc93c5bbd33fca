// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets sent: acknowledgment, loss detection, round-trip time and delivery rate.
 *
 * They are kept in a ring by packet number. Most ranges of an ACK repeat those of
 * earlier ACKs, so acknowledged packets hold the end of their run (@skip) and are
 * stepped over: an ACK costs as much as is new in it.
 *
 * A lost packet keeps its slot for a few round trips. If it is acknowledged after
 * all, the loss was spurious, and the tolerance for reordering grows.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <linux/dblp.h>

#include "recovery.h"

#define MIN_RTT_WINDOW_NS	(10ULL * 1000000000)

/* How long lost packets are kept, as a multiple of the age at which they are lost: the
 * tolerance grows to that at most, each time
 */
#define KEEP_LOST_TIMES		4
/* And how far behind, at least */
#define KEEP_LOST_PKTS		1200U

/* Round trips until the tolerance is halved, if no packet has needed it */
#define REORDER_DECAY_ROUNDS	64

/* Round trips in which the path's part of the delay of ACKs shows */
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
 * RFC 9002 keeps the peer's delay in the first sample and in the minimum, as
 * it is at most about 25 ms there. Here most ACKs may be lost; the delay lasts until
 * one arrives, and the probe timeout would grow with it.
 */
static u64 first_sample(u64 rtt, u64 ack_delay)
{
	return rtt > ack_delay ? rtt - ack_delay : rtt;
}

static void take_first_sample(struct dblp_rtt *r, u64 rtt, u64 now)
{
	r->latest = rtt;
	r->srtt = rtt;
	r->var = rtt / 2;
	r->doubt = 4 * (DBLP_INITIAL_RTT_NS / 2);
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
	r->doubt /= 2;
	r->srtt = max_t(u64, r->srtt - r->srtt / 8 + rtt / 8, 1);
}

/* By how much the way there is longer than the shortest: no less than nothing, no more than
 * the whole excess, and each sample corrects @way so far that it is neither
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

/* What each ACK is late by is the path's */
static void learn_back(struct dblp_rtt *r, u64 back, u64 now)
{
	r->back = r->back - r->back / 8 + back / 8;
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
	learn_back(r, excess - rs->queue, rs->now);
	rs->base = r->base;
}

u64 dblp_backoff(u64 wait, u64 silence)
{
	return min(max(wait, silence / DBLP_PTO_SILENCE), DBLP_PTO_MAX_NS);
}

u64 dblp_pto(const struct dblp_rtt *r, u64 max_ack_delay, u32 count,
	     u64 silence)
{
	u64 srtt = r->latest ? r->srtt : DBLP_INITIAL_RTT_NS;
	u64 var = r->latest ? r->var : DBLP_INITIAL_RTT_NS / 2;
	u64 pto = srtt + max(4 * var, DBLP_GRANULARITY_NS) + max_ack_delay;

	pto <<= min(count, DBLP_PTO_BACKOFF_MAX);
	pto = max(pto, srtt + r->doubt + max_ack_delay);
	return dblp_backoff(pto, silence);
}

static struct dblp_sent_pkt *slot(const struct dblp_sent *s, u64 pn)
{
	return dblp_sent_slot(s, pn);
}

/* How many slots from that of @pn on follow each other in memory? */
static u32 in_a_row(const struct dblp_sent *s, u64 pn)
{
	u32 size = min(s->mask + 1, DBLP_SENT_BLOCK);

	return size - (pn & (size - 1));
}

void dblp_sent_init(struct dblp_sent *s, struct dblp_sent_pkt *block, u32 size)
{
	memset(s, 0, sizeof(*s));
	s->first = block;
	s->blocks = &s->first;
	s->mask = size - 1;
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

	/* If the ring begins and ends in the same block, move its end */
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

struct dblp_sent_pkt **dblp_sent_shrink(struct dblp_sent *s)
{
	struct dblp_sent_pkt **old = s->blocks;

	s->base = s->next;
	s->scan = s->next;
	s->first = old[0];
	s->blocks = &s->first;
	s->mask = DBLP_SENT_BLOCK - 1;
	return old;
}

void dblp_sent_push_row(struct dblp_sent *s, struct dblp_sent_pkt *pkt, u32 n,
			u64 now)
{
	struct dblp_sent_pkt *to, *end;
	u32 seg = pkt->seg, part;

	/* After a pause, the rate is measured from now on */
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
	for (; n; n -= part) {
		to = slot(s, s->next);
		part = min(n, in_a_row(s, s->next));
		s->next += part;
		for (end = to + part; to < end; to++) {
			*to = *pkt;
			to->seg = seg++;
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

/* Number of packets sent after @pn, up to @later */
static u64 behind(const struct dblp_sent *s, u64 pn, u64 later)
{
	return later - pn - (pn < s->skipped && s->skipped < later);
}

/* First packet of @pn ... @end - 1 that is not acknowledged, or @end or more */
static u64 next_unacked(struct dblp_sent *s, u64 pn, u64 end)
{
	while (pn < end && slot(s, pn)->state == DBLP_SENT_ACKED) {
		struct dblp_sent_pkt *pkt = slot(s, pn);

		/* Halving the path keeps later walks short */
		if (pkt->skip < end &&
		    slot(s, pkt->skip)->state == DBLP_SENT_ACKED)
			pkt->skip = slot(s, pkt->skip)->skip;
		pn = pkt->skip;
	}
	return pn;
}

/* Age at which a packet is lost if there is no reordering */
static u64 usual_delay(const struct dblp_rtt *rtt)
{
	u64 delay = max(rtt->srtt, rtt->latest);

	if (!delay)
		delay = DBLP_INITIAL_RTT_NS;
	return max(delay + delay / 8, DBLP_GRANULARITY_NS);
}

static u64 loss_delay(const struct dblp_sent *s, const struct dblp_rtt *rtt)
{
	return usual_delay(rtt) + s->reorder_ns;
}

/* A packet declared lost has arrived, @distance behind the largest and @excess_ns
 * after the usual delay. Those that overtake others make round trips look short, and
 * queues as well, so the tolerance may be many of them: as many as it lasts unused.
 */
static void widen_reordering(struct dblp_sent *s, const struct dblp_rtt *rtt,
			     u64 distance, u64 excess_ns, u64 now)
{
	if (distance >= s->reorder)
		s->reorder = min_t(u64, distance + 1, DBLP_REORDER_MAX);
	excess_ns = min(excess_ns + excess_ns / 8,
			REORDER_DECAY_ROUNDS * rtt->srtt);
	s->reorder_ns = max(s->reorder_ns, excess_ns);
	/* Count packets of one round trip as one reordering */
	if (s->reorder_at && now - s->reorder_at < rtt->srtt)
		return;
	if (s->reorder_ns < rtt->srtt)
		s->reorder_ns = min(s->reorder_ns + rtt->min / 4 + 1,
				    rtt->srtt);
	s->reorder_at = now;
}

/* Packet @pn has arrived; if it was sent before @before it is reordered. If half of
 * the tolerance would not suffice for it, all of it is still needed. Who is heard of late,
 * but not behind another one, may have arrived long ago: its ACK was lost.
 */
static void note_reordering(struct dblp_sent *s, const struct dblp_rtt *rtt,
			    u64 pn, u64 before, u64 now)
{
	bool lost = slot(s, pn)->state == DBLP_SENT_LOST;
	u64 excess_ns;

	if (lost) {
		s->spurious++;
		s->recent_lost -= min_t(u32, s->recent_lost,
					slot(s, pn)->bytes);
	}
	if (pn > before)
		return;
	excess_ns = now - slot(s, pn)->sent;
	excess_ns -= min(excess_ns, usual_delay(rtt));
	if (lost)
		widen_reordering(s, rtt, behind(s, pn, s->largest_acked),
				 excess_ns, now);
	else if (behind(s, pn, before) > s->reorder / 2 ||
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

/* Packets newly acknowledged by an ACK: the newest of them, and all bytes */
struct newly_acked {
	struct dblp_sent_pkt	pkt;
	u64			pn;
	u32			bytes;
	bool			any;
};

/* Number of packets from @pn to below @end that are in flight, carry segments in a
 * row of one message, and are adjacent in memory
 */
static u32 ack_run(const struct dblp_sent *s, u64 pn, u64 end)
{
	const struct dblp_sent_pkt *pkt = slot(s, pn);
	u32 most = min_t(u64, end - pn, in_a_row(s, pn)), n = 1;

	if (pkt->state != DBLP_SENT_INFLIGHT || !pkt->data)
		return 1;
	while (n < most && pkt[n].state == DBLP_SENT_INFLIGHT &&
	       pkt[n].data && pkt[n].msg == pkt->msg &&
	       pkt[n].seg == pkt->seg + n)
		n++;
	return n;
}

static void ack_packets(struct dblp_sent *s, u64 pn, u32 n,
			struct newly_acked *newly,
			const struct dblp_sent_ops *ops, void *ctx)
{
	struct dblp_sent_pkt *pkt = slot(s, pn);
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
	}
	newly->bytes += bytes;
	s->delivered += bytes;
	ops->acked(ctx, pn, pkt, n, was_lost);
}

static void ack_range(struct dblp_sent *s, const struct dblp_acked_range *r,
		      u64 before, const struct dblp_rtt *rtt, u64 now,
		      struct newly_acked *newly,
		      const struct dblp_sent_ops *ops, void *ctx)
{
	u64 first = max(r->first, s->base), end = r->last + 1, pn = first;
	u32 n;

	for (; (pn = next_unacked(s, pn, end)) < end; pn += n) {
		note_reordering(s, rtt, pn, before, now);
		n = ack_run(s, pn, end);
		ack_packets(s, pn, n, newly, ops, ctx);
	}
	if (first < end && slot(s, first)->skip < end)
		slot(s, first)->skip = end;
}

/* Returns the work done, in packets */
static u32 lose_packet(struct dblp_sent *s, u64 pn, enum dblp_lost_why why,
		       const struct dblp_sent_ops *ops, void *ctx)
{
	struct dblp_sent_pkt *pkt = slot(s, pn);

	s->inflight -= pkt->bytes;
	s->inflight_pkts--;
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

/* Returns bytes lost; @scan is where the next call continues */
static u32 detect_lost(struct dblp_sent *s, const struct dblp_rtt *rtt, u64 now,
		       const struct dblp_sent_ops *ops, void *ctx)
{
	u64 end = s->any_acked ? s->largest_acked + 1 : 0, pn = s->scan;
	u64 delay = loss_delay(s, rtt);
	enum dblp_lost_why why;
	u32 lost = 0, took = 0;

	s->loss_time = 0;
	for (; (pn = next_unacked(s, pn, end)) < end; pn++) {
		struct dblp_sent_pkt *pkt = slot(s, pn);

		if (took >= DBLP_LOSE_MAX) {
			s->loss_time = now;
			break;
		}
		if (pkt->state != DBLP_SENT_INFLIGHT) {
			took++;
			continue;
		}
		if (behind(s, pn, s->largest_acked) >= s->reorder) {
			why = DBLP_LOST_REORDERED;
		} else if (now >= pkt->sent + delay) {
			why = DBLP_LOST_OVERDUE;
		} else {
			/* All further packets were sent later */
			s->loss_time = pkt->sent + delay;
			break;
		}
		lost += pkt->bytes;
		took += lose_packet(s, pn, why, ops, ctx);
	}
	s->scan = pn;
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

/* How far behind may a lost packet still arrive? The ring must hold what is kept. */
static u64 keep_pkts(const struct dblp_sent *s)
{
	return max_t(u64, 2 * (s->next - s->scan),
		     max(4 * s->reorder, KEEP_LOST_PKTS));
}

static void advance_base(struct dblp_sent *s, const struct dblp_rtt *rtt,
			 u64 now)
{
	u64 keep = KEEP_LOST_TIMES * loss_delay(s, rtt);

	while (s->base < s->scan) {
		struct dblp_sent_pkt *pkt = slot(s, s->base);

		if (pkt->state == DBLP_SENT_LOST && now - pkt->sent < keep &&
		    s->largest_acked < s->base + keep_pkts(s))
			return;
		s->base = pkt->state == DBLP_SENT_ACKED ?
			  min(pkt->skip, s->scan) : s->base + 1;
	}
}

/* The rate over the flight that ended with @pkt, the lower of its send rate and its
 * ACK rate: ACKs that come in a burst must not look fast.
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
	u64 before;
	u32 i;

	memset(rs, 0, sizeof(*rs));
	if (!ranges_are_sane(s, r, n))
		return -1;
	rs->now = now;
	before = s->largest_acked;
	if (!s->any_acked || r[0].last > s->largest_acked)
		s->largest_acked = r[0].last;
	s->any_acked = true;
	for (i = 0; i < n && r[i].last >= s->base; i++)
		ack_range(s, &r[i], before, rtt, now, &newly, ops, ctx);

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

/* @scan must not stay below @base */
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
