// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>
#include <linux/minmax.h>

#include "sim.h"

#define RING_SIZE	64
#define ACK_DELAY	(1 * SIM_MS)

enum event_type {
	EV_WAKE,	/* a sender's timer */
	EV_LEAVE,	/* a packet leaves the queue */
	EV_ARRIVE,	/* a packet reaches the receiver */
	EV_ACK_TIMER,	/* a receiver's timer */
	EV_ACK,		/* an ACK reaches the sender */
	EV_MESSAGE,	/* a sender is given more */
};

struct sim_ack {
	u32			n;
	u64			delay;
	struct dblp_acked_range	r[DBLP_RANGES_MAX];
};

struct sim_event {
	u64		at;
	u64		seq;
	enum event_type	type;
	u32		flow;
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

static void transmit(struct sim *s, u32 flow, u64 pn)
{
	u64 time = s->mss * SIM_S / s->rate;

	if (sim_random(s) % 1000000 < s->loss)
		return;
	if (s->queue >= s->queue_max) {
		s->dropped++;
		return;
	}
	queue_changes(s, 1);
	s->link_free = max(s->link_free, s->now) + time;
	push_event(s, (struct sim_event) {
		.at = s->link_free, .type = EV_LEAVE, .flow = flow, .pn = pn });
}

static void send_packet(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];

	if (dblp_sent_full(&f->sent)) {
		u32 size = 2 * (f->sent.mask + 1);

		free(dblp_sent_grow(&f->sent,
				    calloc(size, sizeof(struct dblp_sent_pkt)),
				    size));
	}
	if (f->cc.ops->sent)
		f->cc.ops->sent(&f->cc, f->sent.inflight, s->now);
	transmit(s, flow, f->sent.next);
	dblp_sent_push(&f->sent, s->mss, s->now);
	f->last_sent = s->now;
	f->sent_pkts++;
}

static bool has_more(const struct sim_flow *f)
{
	return !f->goal || f->sent.delivered + f->sent.inflight < f->goal;
}

static void acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
		  bool late)
{
}

static void lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt)
{
	struct sim_flow *f = ctx;

	f->lost_pkts++;
}

static const struct dblp_sent_ops sim_ops = { .acked = acked, .lost = lost };

static u64 pto_at(const struct sim_flow *f)
{
	return f->last_sent + f->pto_jitter +
	       dblp_pto(&f->rtt, ACK_DELAY, f->pto_count);
}

/* Send what may be sent and set the sender's timer */
static void run_sender(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];
	u64 wake = U64_MAX;

	while (has_more(f) && f->sent.inflight + s->mss <= f->cc.cwnd) {
		if (f->pace_next > s->now) {
			wake = f->pace_next;
			break;
		}
		send_packet(s, flow);
		if (f->cc.pacing_rate)
			f->pace_next = max(f->pace_next, s->now) +
				       s->mss * SIM_S / f->cc.pacing_rate;
	}
	if (!has_more(f))
		f->sent.app_limited = f->sent.delivered + f->sent.inflight + 1;
	if (f->sent.inflight)
		wake = min(wake, f->sent.loss_time ?: pto_at(f));
	if (wake == U64_MAX || wake == f->wake_at)
		return;
	f->wake_at = wake;
	push_event(s, (struct sim_event) {
		.at = wake, .type = EV_WAKE, .flow = flow });
}

static void on_wake(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];

	if (!f->cc.ops) {
		dblp_ranges_init(&f->seen);
		dblp_ranges_grow(&f->seen, f->seen_mem);
		dblp_sent_init(&f->sent, calloc(RING_SIZE,
						sizeof(struct dblp_sent_pkt)),
			       RING_SIZE);
		if (f->handshake_rtt)
			dblp_rtt_sample(&f->rtt, f->handshake_rtt, 0, s->now);
		dblp_cc_start(&f->cc, dblp_cc_at(0), s->mss, s->now);
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
		f->pto_count++;
		f->pto_jitter = sim_random(s) % (100 * SIM_US);
		if (f->cc.ops->timeout)
			f->cc.ops->timeout(&f->cc, f->pto_count, s->now);
		send_packet(s, flow);
	}
	run_sender(s, flow);
}

static void send_ack(struct sim *s, u32 flow)
{
	struct sim_flow *f = &s->flow[flow];
	struct sim_ack *ack = calloc(1, sizeof(*ack));
	u64 at = s->now;
	u32 i;

	for (i = f->seen.n; i--; ack->n++) {
		ack->r[ack->n].first = f->seen.r[i].first;
		ack->r[ack->n].last = f->seen.r[i].last;
	}
	ack->delay = s->now - f->largest_at;
	f->ack_pending = 0;
	f->ack_at = 0;
	if (s->ack_every)
		at = (at / s->ack_every + 1) * s->ack_every;
	push_event(s, (struct sim_event) { .at = at + s->rtt / 2,
		   .type = EV_ACK, .flow = flow, .ack = ack });
}

static void on_arrive(struct sim *s, u32 flow, u64 pn)
{
	struct sim_flow *f = &s->flow[flow];
	bool in_order = !f->seen.n || pn == f->seen.r[f->seen.n - 1].last + 1;

	if (!dblp_ranges_add(&f->seen, pn))
		return;
	f->received += s->mss;
	if (f->goal && f->received >= f->goal && !f->finished)
		f->finished = s->now;
	f->largest_at = s->now;
	if (++f->ack_pending >= 2 || !in_order) {
		send_ack(s, flow);
	} else if (!f->ack_at) {
		f->ack_at = s->now + ACK_DELAY;
		push_event(s, (struct sim_event) {
			.at = f->ack_at, .type = EV_ACK_TIMER, .flow = flow });
	}
}

static void on_ack(struct sim *s, u32 flow, struct sim_ack *ack)
{
	struct sim_flow *f = &s->flow[flow];
	struct dblp_rate_sample rs;

	if (dblp_sent_ack(&f->sent, ack->r, ack->n, ack->delay, &f->rtt, s->now,
			  &sim_ops, f, &rs) < 0)
		abort();
	free(ack);
	if (rs.acked)
		f->pto_count = 0;
	f->cc.ops->ack(&f->cc, &rs, &f->rtt);
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
	f->goal = f->received + bytes;
	f->finished = 0;
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
	case EV_LEAVE:
		queue_changes(s, -1);
		push_event(s, (struct sim_event) { .at = s->now + s->rtt / 2,
			   .type = EV_ARRIVE, .flow = e->flow, .pn = e->pn });
		break;
	case EV_ARRIVE:
		on_arrive(s, e->flow, e->pn);
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
	for (i = 0; i < s->n; i++)
		free(s->flow[i].sent.ring);
	free(s->heap);
	free(s->flow);
}
