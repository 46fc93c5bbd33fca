// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>

#include <linux/dblp.h>

#include "closing.h"
#include "prng.h"
#include "ring.h"
#include "sim.h"
#include "wire.h"

#define RING_SIZE	64
#define ACK_DELAY	(1 * SIM_MS)

enum event_type {
	EV_WAKE,	/* a sender's timer */
	EV_ENTER,	/* a packet reaches the queue */
	EV_LEAVE,	/* a packet leaves the queue */
	EV_ARRIVE,	/* a packet reaches the receiver */
	EV_ACK_TIMER,	/* a receiver's timer */
	EV_ACK,		/* an ACK reaches the sender */
	EV_MESSAGE,	/* a sender gets more to send */
};

enum seg_state {
	SEG_COPIES	= 0x1fff,	/* in flight */
	SEG_NEED	= 0x2000,
	SEG_ACKED	= 0x4000,
	SEG_GOT		= 0x8000,
};

struct sim_ack {
	u32			n;
	u32			ce;
	u32			closed_seg;
	u32			share;
	u32			all;
	u64			delay;
	u32			arrived;
	struct dblp_acked_range	r[];
};

struct sim_event {
	u64		at;
	u64		seq;
	enum event_type	type;
	u32		flow;
	u32		segment;
	bool		ce;
	u64		pn;		/* EV_MESSAGE: bytes */
	struct sim_ack	*ack;
};

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void push_event(struct sim *s, struct sim_event e)
{
	u32 i = s->n_events++;

	if (s->n_events > s->max_events) {
		s->max_events = s->max_events ? 2 * s->max_events : 1024;
		s->heap = realloc(s->heap, s->max_events * sizeof(e));
	}
	e.seq = s->seq++;
	while (i && event_before(&e, &s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = e;
}

static struct sim_event pop_event(struct sim *s)
{
	struct sim_event top = s->heap[0], e = s->heap[--s->n_events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < s->n_events) {
		if (child + 1 < s->n_events &&
		    event_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!event_before(&s->heap[child], &e))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = e;
	return top;
}

static u32 sim_random(struct sim *s)
{
	s->rng ^= s->rng << 13;
	s->rng ^= s->rng >> 7;
	s->rng ^= s->rng << 17;
	return s->rng >> 32;
}

void sim_init(struct sim *s, u32 flows)
{
	memset(s, 0, sizeof(*s));
	s->mss = 1400;
	s->tell_share = true;
	s->queue_max = 100;
	s->rng = 0x123456789abcdefULL;
	s->n = flows;
	s->flow = calloc(flows, sizeof(*s->flow));
}

static void queue_changes(struct sim *s, int by)
{
	s->queue_area += s->queue * (s->now - s->queue_at);
	s->queue_at = s->now;
	s->queue += by;
	s->queue_peak = max(s->queue_peak, s->queue);
}

/* Time of a packet on the link, ns */
u64 sim_packet_time(const struct sim *s)
{
	return (s->mss + s->overhead) * SIM_S / s->rate;
}

static bool is_hit(struct sim *s, u32 ppm)
{
	return ppm && sim_random(s) % 1000000 < ppm;
}

static void enter_queue(struct sim *s, u32 flow, u64 pn, u32 segment)
{
	bool ce = s->mark_above && s->queue >= s->mark_above;

	if (s->queue >= s->queue_max) {
		s->dropped++;
		s->flow[flow].dropped_pkts++;
		return;
	}
	s->marked += ce;
	queue_changes(s, 1);
	s->link_free = max(s->link_free, s->now) + sim_packet_time(s);
	push_event(s, (struct sim_event) {
		.at = s->link_free, .type = EV_LEAVE, .flow = flow, .pn = pn,
		.segment = segment, .ce = ce });
}

static void transmit(struct sim *s, u32 flow, u64 pn, u32 segment)
{
	struct sim_flow *f = &s->flow[flow];

	if (sim_random(s) % 1000000 < s->loss)
		return;
	if (!s->phase) {
		enter_queue(s, flow, pn, segment);
		return;
	}
	f->entered = max(f->entered, s->now + sim_random(s) %
				     (sim_packet_time(s) + 1));
	push_event(s, (struct sim_event) {
		.at = f->entered, .type = EV_ENTER, .flow = flow, .pn = pn,
		.segment = segment });
}

static u32 payload(const struct sim *s)
{
	return s->payload ?: s->mss;
}

static void send_packet(struct sim *s, u32 flow, u32 segment)
{
	struct sim_flow *f = &s->flow[flow];

	if (!dblp_sent_free(&f->sent))
		ring_grow(&f->sent);
	transmit(s, flow, f->sent.next, segment);
	dblp_sent_push(&f->sent, s->mss, s->now)->seg = segment;
	if (f->seg[segment] & SEG_NEED)
		f->n_need--;
	f->seg[segment] &= ~SEG_NEED;
	f->seg[segment]++;
	f->last_sent = s->now;
	f->sent_pkts++;
}

static void grow_segs(struct sim_flow *f, u32 n)
{
	u32 size = f->max_segs ? 2 * f->max_segs : 1024;

	if (n <= f->max_segs)
		return;
	size = max(size, n);
	f->seg = realloc(f->seg, size * sizeof(*f->seg));
	memset(f->seg + f->max_segs, 0,
	       (size - f->max_segs) * sizeof(*f->seg));
	f->max_segs = size;
}

static u32 needed_seg(const struct sim_flow *f)
{
	u32 i = f->first_seg;

	while (!(f->seg[i] & SEG_NEED))
		i++;
	return i;
}

/* Segments of a message that are sent before the first one is known to be lost */
static u32 first_pass(const struct sim_flow *f)
{
	u32 n = f->end_seg - f->first_seg;
	u32 budget = ((u64)f->spare * DBLP_PPM + n - 1) / n;

	return dblp_first_pass(n, 1, n, 0, budget, DBLP_POLICY_EAGER,
			       dblp_sent_loss(&f->sent));
}

/* Next segment to send, like dblp_tx_pick() */
static bool pick(struct sim_flow *f, u32 *segment)
{
	u32 live = f->next_seg - f->first_seg - f->n_need;

	if (f->goal && f->closed_seg >= f->end_seg)
		return false;
	if (f->n_need && !f->spare) {
		*segment = needed_seg(f);
		return true;
	}
	if (f->goal && live >= first_pass(f))
		return false;
	if (!f->goal || f->next_seg < f->end_seg) {
		grow_segs(f, f->next_seg + 1);
		*segment = f->next_seg++;
		return true;
	}
	*segment = f->n_need ? needed_seg(f) : 0;
	return f->n_need;
}

static void acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
		  bool late)
{
	struct sim_flow *f = ctx;
	u16 *seg = &f->seg[pkt->seg];

	if (!late)
		--*seg;
	if (pkt->seg >= f->first_seg && *seg & SEG_NEED)
		f->n_need--;
	*seg = (*seg & ~SEG_NEED) | SEG_ACKED;
}

static u32 lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
		enum dblp_lost_why why)
{
	struct sim_flow *f = ctx;
	u16 *seg = &f->seg[pkt->seg];

	f->lost_pkts++;
	--*seg;
	if (pkt->seg < f->first_seg || *seg & (SEG_COPIES | SEG_ACKED))
		return 0;
	*seg |= SEG_NEED;
	f->n_need++;
	return 0;
}

static const struct dblp_sent_ops sim_ops = { .acked = acked, .lost = lost };

#define TCP_RTO_MIN	(200 * SIM_MS)
#define TCP_TIMEOUT_MIN	(8 * SIM_MS)

/* The first timeout is a loss probe, the next one is the retransmission timeout */
static u64 tcp_timeout(const struct sim_flow *f)
{
	if (f->pto_count)
		return (TCP_RTO_MIN + f->rtt.srtt) <<
		       min(f->pto_count - 1, 10u);
	return 2 * f->rtt.srtt +
	       (f->sent.inflight_pkts > 1 ? TCP_TIMEOUT_MIN : TCP_RTO_MIN);
}

static u64 pto_at(const struct sim_flow *f)
{
	if (sim_is_tcp(f->cc.ops))
		return f->last_sent + tcp_timeout(f);
	return f->last_sent + f->pto_jitter +
	       dblp_cc_pto(&f->cc, &f->rtt, ACK_DELAY, f->pto_count,
			   f->last_sent - min(f->last_sent, f->sent.delivered_at));
}

static bool has_window(const struct sim *s, const struct sim_flow *f)
{
	u64 window = f->cc.cwnd;

	if (!sim_is_tcp(f->cc.ops))
		window = dblp_cc_window(&f->cc, &f->rtt, f->sent.delivered_at,
					s->now);
	return !f->sent.inflight || f->sent.inflight + s->mss <= window;
}

/* Send as much as permitted, and set the sender's timer */
static void run_sender(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];
	u64 wake = U64_MAX, late = 0;
	u32 segment;

	if (s->skips && dblp_sent_skips(&f->sent))
		dblp_sent_skip(&f->sent, sim_random(s));
	while (has_window(s, f)) {
		if (f->pace_next > s->now) {
			wake = f->pace_next;
			break;
		}
		if (!pick(f, &segment)) {
			f->sent.app_limited = f->sent.delivered +
					      f->sent.inflight ?: 1;
			break;
		}
		send_packet(s, flow, segment);
		if (f->cc.pacing_rate)
			f->pace_next = dblp_pace_next(f->pace_next, s->now,
						      s->mss,
						      f->cc.pacing_rate,
						      &late);
	}
	if (!has_window(s, f) && !sim_is_tcp(f->cc.ops))
		wake = dblp_cc_opens_at(&f->cc, &f->rtt, f->sent.delivered_at,
					f->sent.inflight);
	if (f->sent.inflight)
		wake = min(wake, f->sent.loss_time ?: pto_at(f));
	if (wake == U64_MAX || wake == f->wake_at)
		return;
	f->wake_at = wake;
	push_event(s, (struct sim_event) {
		.at = wake, .type = EV_WAKE, .flow = flow });
}

/* Send a new segment, or one in flight again */
static void probe(struct sim *s, u32 flow, u64 *pn)
{
	struct sim_flow *f = &s->flow[flow];
	struct dblp_sent_pkt *pkt;
	u32 segment;

	if (pick(f, &segment)) {
		send_packet(s, flow, segment);
		return;
	}
	while ((pkt = dblp_sent_inflight(&f->sent, pn))) {
		++*pn;
		if (pkt->seg < max(f->first_seg, f->closed_seg))
			continue;
		send_packet(s, flow, pkt->seg);
		return;
	}
}

static void on_timeout(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];
	u64 next = f->sent.next, pn = 0;

	f->pto_count++;
	f->pto_jitter = sim_random(s) % (100 * SIM_US);
	f->last_sent = s->now;
	if (f->cc.ops->timeout)
		f->cc.ops->timeout(&f->cc, f->pto_count, f->sent.delivered_at, s->now);
	probe(s, flow, &pn);
	if (!sim_is_tcp(f->cc.ops) && f->sent.next != next &&
	    dblp_cc_probes(&f->cc, &f->rtt, f->pto_count) > 1)
		probe(s, flow, &pn);
	/* A PING has no segment */
	if (f->sent.next == next)
		send_packet(s, flow, f->next_seg - 1);
}

static void on_wake(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];

	if (!f->cc.ops) {
		dblp_ranges_init(&f->seen);
		dblp_ranges_grow(&f->seen, f->seen_mem);
		ring_init(&f->sent, RING_SIZE);
		if (f->handshake_rtt)
			dblp_rtt_sample(&f->rtt, f->handshake_rtt, 0, s->now);
		dblp_cc_start(&f->cc, f->ops ?: &dblp_cc_sqrt, s->mss, s->now);
		f->end_seg = (f->goal + payload(s) - 1) / payload(s);
		grow_segs(f, f->end_seg + 1);
	} else if (f->wake_at != s->now) {
		return;
	}
	f->wake_at = 0;
	if (f->sent.loss_time && f->sent.loss_time <= s->now) {
		struct dblp_rate_sample rs = { .now = s->now };

		rs.lost = dblp_sent_timeout(&f->sent, &f->rtt, s->now, &sim_ops,
					    f);
		rs.inflight = f->sent.inflight;
		rs.delivered = f->sent.delivered;
		f->cc.ops->ack(&f->cc, &rs, &f->rtt);
	} else if (f->sent.inflight && !f->sent.loss_time &&
		   pto_at(f) <= s->now) {
		on_timeout(s, flow);
	}
	run_sender(s, flow);
}

/* Arrival time of a packet that leaves at @at */
static u64 travelled(struct sim *s, u64 at)
{
	at += s->rtt / 2;
	if (s->jitter)
		at += sim_random(s) % (s->jitter + 1);
	return at;
}

/* Time at which the host handles a packet that arrives at @at */
static u64 attended(const struct sim *s, u64 at)
{
	struct prng r;
	u64 start;

	if (!s->stall_every)
		return at;
	r.state = at / s->stall_every;
	start = r.state * s->stall_every;
	return max(at, start + prng_below(&r, s->stall_max + 1));
}

static void send_ack(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];
	struct sim_ack *ack;
	u64 at = s->now;
	u32 i;

	f->ack_pending = 0;
	f->ack_at = 0;
	if (is_hit(s, s->ack_loss))
		return;
	ack = malloc(sizeof(*ack) + f->seen.n * sizeof(ack->r[0]));
	ack->n = 0;
	for (i = f->seen.n; i--; ack->n++) {
		ack->r[ack->n].first = f->seen.r[i].first;
		ack->r[ack->n].last = f->seen.r[i].last;
	}
	ack->delay = s->now - f->largest_at;
	ack->arrived = f->largest_at + (s64)f->largest_at * s->drift / 1000000;
	ack->ce = f->ce;
	ack->share = s->tell_share ? s->receiving + s->strangers : 0;
	ack->all = s->tell_share ? s->all / DBLP_SHARE_UNIT : 0;
	ack->closed_seg = f->finished && f->spare ? f->end_seg : 0;
	if (s->ack_every)
		at = (at / s->ack_every + 1) * s->ack_every;
	push_event(s, (struct sim_event) {
		   .at = attended(s, travelled(s, at)), .type = EV_ACK,
		   .flow = flow, .ack = ack });
}

/* Returns true if this segment completes a message */
static bool receive_seg(struct sim *s, struct sim_flow *f, u32 segment)
{
	if (f->seg[segment] & SEG_GOT || (f->goal && f->finished)) {
		f->unneeded_pkts++;
		return false;
	}
	f->seg[segment] |= SEG_GOT;
	f->received += payload(s);
	s->receiving += !f->n_got && !sim_is_tcp(f->cc.ops);
	f->n_got++;
	if (!f->goal || f->n_got + f->spare < f->end_seg - f->first_seg)
		return false;
	f->finished = s->now;
	s->receiving -= !sim_is_tcp(f->cc.ops);
	return true;
}

static void on_arrive(struct sim *s, const struct sim_event *e)
{
	struct sim_flow *f = &s->flow[e->flow];
	bool in_order = !f->seen.n || e->pn == f->seen.r[f->seen.n - 1].last + 1;
	bool ends;

	if (!dblp_ranges_add(&f->seen, e->pn))
		return;
	if (!sim_is_tcp(f->cc.ops))
		s->all += s->mss;
	ends = receive_seg(s, f, e->segment);
	f->ce += e->ce;
	if (e->pn == f->seen.r[f->seen.n - 1].last)
		f->largest_at = s->now;
	if (++f->ack_pending >= 2 || !in_order || e->ce || (ends && f->spare)) {
		send_ack(s, e->flow);
	} else if (!f->ack_at) {
		f->ack_at = s->now + ACK_DELAY;
		push_event(s, (struct sim_event) { .at = f->ack_at,
			   .type = EV_ACK_TIMER, .flow = e->flow });
	}
}

static void on_ack(struct sim *s, u32 flow, struct sim_ack *ack)
{
	struct sim_flow *f = &s->flow[flow];
	struct dblp_rate_sample rs;
	u64 rate;

	if (dblp_sent_ack(&f->sent, ack->r, ack->n, ack->delay, &f->rtt, s->now,
			  &sim_ops, f, &rs) < 0)
		abort();
	dblp_rtt_split(&f->rtt, &rs, &ack->arrived);
	rs.share = ack->share;
	rs.all = ack->all;
	rs.ce = max(ack->ce, f->ce_told) - f->ce_told;
	f->ce_told += rs.ce;
	f->closed_seg = max(f->closed_seg, ack->closed_seg);
	free(ack);
	if (rs.acked)
		f->pto_count = 0;
	rate = f->cc.pacing_rate;
	f->cc.ops->ack(&f->cc, &rs, &f->rtt);
	/* A change of the pacing rate also changes the current wait */
	if (rate && f->cc.pacing_rate && f->pace_next > s->now)
		f->pace_next = s->now + (f->pace_next - s->now) * rate /
					f->cc.pacing_rate;
	run_sender(s, flow);
}

void sim_message(struct sim *s, u32 i, u64 bytes, u64 at)
{
	s->messages++;
	push_event(s, (struct sim_event) {
		.at = at, .type = EV_MESSAGE, .flow = i, .pn = bytes });
}

static void on_message(struct sim *s, u32 flow, u64 bytes)
{
	struct sim_flow *f = &s->flow[flow];

	s->messages--;
	s->receiving -= f->n_got && f->goal && !f->finished &&
			!sim_is_tcp(f->cc.ops);
	f->goal = f->received + bytes;
	f->finished = 0;
	f->n_got = 0;
	f->n_need = 0;
	f->first_seg = f->end_seg;
	f->next_seg = f->end_seg;
	f->end_seg += (bytes + payload(s) - 1) / payload(s);
	grow_segs(f, f->end_seg + 1);
	if (!f->sent.inflight && f->cc.ops->resume)
		f->pace_next = max(f->pace_next, s->now +
				   f->cc.ops->resume(&f->cc, s->now));
	run_sender(s, flow);
}

static bool all_finished(const struct sim *s)
{
	u32 i;

	if (s->messages)
		return false;
	for (i = 0; i < s->n; i++) {
		if (!s->flow[i].goal || !s->flow[i].finished)
			return false;
	}
	return true;
}

static void on_event(struct sim *s, const struct sim_event *e)
{
	switch (e->type) {
	case EV_WAKE:
		on_wake(s, e->flow);
		break;
	case EV_ENTER:
		enter_queue(s, e->flow, e->pn, e->segment);
		break;
	case EV_LEAVE:
		queue_changes(s, -1);
		if (is_hit(s, s->loss_behind))
			break;
		s->arrived = max(s->arrived, travelled(s, s->now));
		push_event(s, (struct sim_event) {
			   .at = attended(s, s->arrived),
			   .type = EV_ARRIVE, .flow = e->flow, .pn = e->pn,
			   .segment = e->segment, .ce = e->ce });
		break;
	case EV_ARRIVE:
		on_arrive(s, e);
		break;
	case EV_ACK_TIMER:
		if (s->flow[e->flow].ack_at == s->now)
			send_ack(s, e->flow);
		break;
	case EV_ACK:
		on_ack(s, e->flow, e->ack);
		break;
	case EV_MESSAGE:
		on_message(s, e->flow, e->pn);
		break;
	}
}

void sim_run(struct sim *s, u64 until)
{
	u32 i;

	bool begun = s->seq;

	for (i = 0; !begun && i < s->n; i++)
		push_event(s, (struct sim_event) { .at = s->flow[i].start,
			   .type = EV_WAKE, .flow = i });
	while (s->n_events && s->heap[0].at <= until && !all_finished(s)) {
		struct sim_event e = pop_event(s);

		s->now = e.at;
		on_event(s, &e);
	}
	if (!all_finished(s))
		s->now = until;
	queue_changes(s, 0);
}

void sim_free(struct sim *s)
{
	u32 i;

	for (i = 0; i < s->n_events; i++)
		free(s->heap[i].ack);
	for (i = 0; i < s->n; i++) {
		ring_free(&s->flow[i].sent);
		free(s->flow[i].seg);
	}
	free(s->heap);
	free(s->flow);
}

void sim_path(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss)
{
	u32 i;

	sim_init(s, n);
	s->rate = mbit * SIM_MBIT;
	s->rtt = rtt;
	s->loss = loss;
	for (i = 0; i < n; i++) {
		s->flow[i].start = i * 1237;
		s->flow[i].handshake_rtt = rtt;
	}
}

void sim_wire(struct sim *s, u32 n, u64 mbit, u64 rtt, u32 loss)
{
	sim_path(s, n, mbit, rtt, loss);
	s->mss = 1472;
	s->overhead = 42;
	s->payload = 1440;
}

u32 sim_share(struct sim *s, u32 i, u64 time)
{
	u64 before = s->flow[i].received, start = s->now;

	sim_run(s, start + time);
	return (s->flow[i].received - before) * 1000 /
	       (s->rate * (s->now - start) / SIM_S);
}

u32 sim_mean_queue(struct sim *s, u64 time)
{
	s->queue_area = 0;
	s->queue_peak = 0;
	sim_run(s, s->now + time);
	return s->queue_area / time;
}

struct dblp_rate_sample sim_any_sample(struct prng *r, struct dblp_rtt *rtt,
				       u64 *now)
{
	struct dblp_rate_sample rs = {
		.rate = prng_any(r), .acked = prng_any(r),
		.lost = prng_any(r), .ce = prng_any(r),
		.inflight = prng_any(r),
		.delivered = prng_any(r), .prior_delivered = prng_any(r),
		.share = prng_below(r, 3) * prng_below(r, 65536),
		.all = prng_any(r),
		.app_limited = prng_below(r, 2),
		.rtt = prng_below(r, 2) ? 1 + prng_any(r) : 0,
	};
	u32 arrived;

	if (rs.rtt)
		dblp_rtt_sample(rtt, rs.rtt, 0, *now);
	*now += prng_any(r) % (20 * SIM_S);
	rs.now = *now;
	rs.sent = prng_any(r);
	arrived = prng_any(r);
	dblp_rtt_split(rtt, &rs, prng_below(r, 4) ? &arrived : NULL);
	return rs;
}
