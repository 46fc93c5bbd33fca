/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A simple model of loss detection: for each ACK it looks at every packet ever sent.
 * Tests compare the behaviour of the real one with it, step by step.
 */
#ifndef _UNIT_SENT_MODEL_H
#define _UNIT_SENT_MODEL_H

#include <stdlib.h>
#include <string.h>

#include <linux/limits.h>

#include "recovery.h"
#include "ring.h"

#define MODEL_PKTS	4096
#define MODEL_RING	8

struct sent_model {
	struct dblp_sent	s;
	struct dblp_rtt		rtt;
	u64			now;
	bool			broken;
	u32			n_lost;		/* losses reported by one call, with weight */
	u32			weight;
	/* The model */
	u64			next;
	u64			delivered;
	u64			skipped;
	u32			port;		/* port of the next packets */
	struct dblp_port	ports[DBLP_SPRAY_MAX];
	struct {
		u64	at;
		u16	bytes;
		u8	state;
		u8	told;		/* state according to callbacks */
		u8	why;		/* reason of the loss */
		u8	port;
		u32	msg;
	} pkt[MODEL_PKTS];
};

static void model_acked_one(struct sent_model *m, u64 pn,
			    const struct dblp_sent_pkt *pkt, bool late)
{
	if (pn >= m->next || pkt->bytes != m->pkt[pn].bytes ||
	    pkt->msg != m->pkt[pn].msg || pkt->seg != (u32)pn ||
	    m->pkt[pn].told != (late ? DBLP_SENT_LOST : DBLP_SENT_INFLIGHT))
		m->broken = true;
	else
		m->pkt[pn].told = DBLP_SENT_ACKED;
}

static void model_acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n,
			bool late)
{
	u32 i;

	for (i = 0; i < n; i++)
		model_acked_one(ctx, pn + i, pkt + i, late);
}

static u32 model_lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt,
		      enum dblp_lost_why why)
{
	struct sent_model *m = ctx;

	if (pn >= m->next || pkt->bytes != m->pkt[pn].bytes ||
	    pkt->msg != m->pkt[pn].msg || pkt->seg != (u32)pn ||
	    m->pkt[pn].told != DBLP_SENT_INFLIGHT)
		m->broken = true;
	else
		m->pkt[pn].told = DBLP_SENT_LOST;
	if (pn < m->next)
		m->pkt[pn].why = why;
	m->n_lost += 1 + m->weight;
	return m->weight;
}

static const struct dblp_sent_ops model_ops = {
	.acked = model_acked, .lost = model_lost,
};

static inline void model_begin(struct sent_model *m)
{
	memset(m, 0, sizeof(*m));
	m->now = 1000000000;
	m->skipped = U64_MAX;
	ring_init(&m->s, MODEL_RING);
}

/* Called before the first packet */
static inline void model_spray(struct sent_model *m, u32 n)
{
	dblp_sent_spray(&m->s, m->ports, n);
}

static inline void model_end(struct sent_model *m)
{
	ring_free(&m->s);
}

static inline void model_push(struct sent_model *m, u16 bytes, u32 msg)
{
	struct dblp_sent_pkt pkt = {
		.bytes = bytes, .port = m->port, .msg = msg, .data = msg != 0,
		.seg = m->next,
	};

	if (m->next == MODEL_PKTS)
		return;
	if (!dblp_sent_free(&m->s))
		ring_grow(&m->s);
	dblp_sent_push_row(&m->s, &pkt, 1, m->now);
	m->pkt[m->next].port = m->port;
	m->pkt[m->next].at = m->now;
	m->pkt[m->next].bytes = bytes;
	m->pkt[m->next].msg = msg;
	m->pkt[m->next].state = DBLP_SENT_INFLIGHT;
	m->pkt[m->next].told = DBLP_SENT_INFLIGHT;
	m->next++;
}

/* Skip a packet number if allowed. False if one was skipped that must not be */
static inline bool model_skip(struct sent_model *m, u32 random)
{
	if (m->next == MODEL_PKTS)
		return true;
	if (!m->s.skip_gap)
		dblp_sent_skip(&m->s, random);
	dblp_sent_skip(&m->s, random);
	if (m->s.next == m->next)
		return true;
	if (m->skipped != U64_MAX && m->skipped >= m->s.base)
		return false;
	m->skipped = m->next;
	m->pkt[m->next].state = DBLP_SENT_ACKED;
	m->pkt[m->next].told = DBLP_SENT_ACKED;
	m->next++;
	return m->s.next == m->next;
}

/* Packets sent on the same port after @pn, up to the latest acknowledged one */
static inline u64 model_behind(const struct sent_model *m, u64 pn)
{
	u64 n = 0, at, least = 0;

	for (at = pn + 1; at < m->next; at++) {
		if (at == m->skipped || m->pkt[at].port != m->pkt[pn].port)
			continue;
		n++;
		if (m->pkt[at].state == DBLP_SENT_ACKED)
			least = n;
	}
	return least;
}

/* Were more packets lost than one call may report? */
static inline bool model_lost_much(const struct sent_model *m)
{
	return m->n_lost > DBLP_LOSE_MAX + m->weight;
}

/*
 * Let the real one handle all overdue packets, which it does in steps. Returns the
 * bytes lost.
 */
static inline u64 model_go_on(struct sent_model *m)
{
	u32 steps = 2 + (1 + m->weight) * MODEL_PKTS / DBLP_LOSE_MAX;
	u64 lost = 0;

	while (m->s.loss_time && m->s.loss_time <= m->now && !m->broken) {
		m->n_lost = 0;
		lost += dblp_sent_timeout(&m->s, &m->rtt, m->now, &model_ops, m);
		m->broken |= model_lost_much(m) || !steps--;
	}
	return lost;
}

/*
 * Time until a packet is lost. Reordering tolerance and round-trip times of ports are
 * those of the real one: other tests cover them.
 */
static inline u64 model_delay(const struct sent_model *m, u64 pn)
{
	u64 delay = m->rtt.srtt > m->rtt.latest ? m->rtt.srtt : m->rtt.latest;
	u64 srtt = m->ports[m->pkt[pn].port].srtt;

	if (srtt > delay)
		delay = srtt;
	if (!delay)
		delay = DBLP_INITIAL_RTT_NS;
	delay += delay / 8;
	if (delay < DBLP_GRANULARITY_NS)
		delay = DBLP_GRANULARITY_NS;
	delay += m->s.reorder_ns;
	/* No later packet of its port has arrived */
	if (!model_behind(m, pn))
		delay += 4 * (m->rtt.var > m->ports[m->pkt[pn].port].var ?
			      m->rtt.var : m->ports[m->pkt[pn].port].var);
	return delay;
}

static inline u64 model_lose(struct sent_model *m)
{
	u64 pn, loss_time = 0, delay;

	if (!m->s.any_acked)
		return 0;
	for (pn = 0; pn < m->next && pn < m->s.largest_acked; pn++) {
		if (m->pkt[pn].state != DBLP_SENT_INFLIGHT)
			continue;
		delay = model_delay(m, pn);
		if (model_behind(m, pn) >= m->s.reorder ||
		    m->pkt[pn].at + delay <= m->now)
			m->pkt[pn].state = DBLP_SENT_LOST;
		else if (!loss_time || m->pkt[pn].at + delay < loss_time)
			loss_time = m->pkt[pn].at + delay;
	}
	return loss_time;
}

static inline bool model_agrees(struct sent_model *m, u64 loss_time)
{
	u64 pn, inflight = 0, pkts = 0, oldest = m->next;

	for (pn = 0; pn < m->next; pn++) {
		struct dblp_sent_pkt *slot = dblp_sent_slot(&m->s, pn);

		if (m->pkt[pn].state != m->pkt[pn].told)
			return false;
		if (m->pkt[pn].state == DBLP_SENT_INFLIGHT) {
			inflight += m->pkt[pn].bytes;
			pkts++;
			if (oldest == m->next)
				oldest = pn;
		}
		if (pn < m->s.base ? m->pkt[pn].state == DBLP_SENT_INFLIGHT :
				     m->pkt[pn].state != slot->state)
			return false;
	}
	pn = 0;
	if (dblp_sent_inflight(&m->s, &pn) ? pn != oldest : oldest != m->next)
		return false;
	return m->s.inflight == inflight && m->s.inflight_pkts == pkts &&
	       m->s.delivered == m->delivered && m->s.next == m->next &&
	       m->s.loss_time == loss_time && m->s.base <= m->s.scan &&
	       m->s.scan <= m->s.next &&
	       m->s.next - m->s.base <= m->s.mask + 1ULL &&
	       m->s.reorder >= DBLP_REORDER_MIN &&
	       m->s.reorder <= DBLP_REORDER_MAX && !m->broken;
}

/* Pass an ACK to both. False if they disagree */
static inline bool model_ack(struct sent_model *m,
			     const struct dblp_acked_range *r, u32 n,
			     u64 ack_delay)
{
	struct dblp_sent before = m->s;
	u64 pn, acked = 0, lost = 0, total;
	struct dblp_rate_sample rs;
	bool sane = n && r[0].last < m->next;
	s64 ret;
	u32 i;

	for (i = 0; i < n; i++) {
		if (r[i].first > r[i].last ||
		    (i && r[i].last >= r[i - 1].first) ||
		    (m->skipped >= r[i].first && m->skipped <= r[i].last))
			sane = false;
	}
	m->n_lost = 0;
	ret = dblp_sent_ack(&m->s, r, n, ack_delay, &m->rtt, m->now, &model_ops,
			    m, &rs);
	if (!sane)
		return ret == -1 && !memcmp(&before, &m->s, sizeof(before)) &&
		       !m->broken;
	m->broken |= model_lost_much(m);
	total = rs.lost + model_go_on(m);

	for (i = 0; i < n; i++) {
		pn = r[i].first > before.base ? r[i].first : before.base;
		for (; pn <= r[i].last; pn++) {
			if (m->pkt[pn].state == DBLP_SENT_ACKED)
				continue;
			m->pkt[pn].state = DBLP_SENT_ACKED;
			acked += m->pkt[pn].bytes;
		}
	}
	m->delivered += acked;
	for (pn = 0; pn < m->next; pn++)
		lost += m->pkt[pn].state == DBLP_SENT_INFLIGHT ?
			m->pkt[pn].bytes : 0;
	pn = model_lose(m);
	for (i = 0; i < m->next; i++)
		lost -= m->pkt[i].state == DBLP_SENT_INFLIGHT ?
			m->pkt[i].bytes : 0;
	return ret == (s64)acked && rs.acked == acked && total == lost &&
	       rs.inflight == m->s.inflight + total - rs.lost &&
	       rs.delivered == m->delivered &&
	       model_agrees(m, pn);
}

static inline bool model_timeout(struct sent_model *m)
{
	m->n_lost = 0;
	dblp_sent_timeout(&m->s, &m->rtt, m->now, &model_ops, m);
	m->broken |= model_lost_much(m);
	model_go_on(m);
	return model_agrees(m, model_lose(m));
}

#endif /* _UNIT_SENT_MODEL_H */
