// SPDX-License-Identifier: GPL-2.0-only
/* Any feedback of a receiver at any time: the sender's numbers stay in range */
#include <linux/limits.h>

#include "cc.h"
#include "fuzz.h"
#include "wire.h"

#define MSS	1432U

struct reader {
	const u8	*p;
	const u8	*end;
};

/* The part of a socket that congestion control uses */
struct sender {
	struct dblp_sent	s;
	struct dblp_sent_pkt	block[DBLP_SENT_BLOCK];
	struct dblp_port	ports[2];
	struct dblp_rtt		rtt;
	struct dblp_cc		cc;
	u64			now;
	u64			pace_next;
	u32			pto_count;
};

static u64 get(struct reader *r, u32 bytes)
{
	u64 v = 0;

	while (bytes--)
		v = v << 8 | (r->p < r->end ? *r->p++ : 0);
	return v;
}

/* A random number: all powers of two are equally likely */
static u64 any(struct reader *r, u32 bits)
{
	u32 n = get(r, 1) % bits;

	return (1ULL << n) + (get(r, 4) & ((1ULL << n) - 1));
}

static void acked(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, u32 n, bool was_lost)
{
}

static u32 lost(void *ctx, u64 pn, struct dblp_sent_pkt *pkt, enum dblp_lost_why why)
{
	return 0;
}

static const struct dblp_sent_ops ops = { .acked = acked, .lost = lost };

static void begin(struct sender *m, u32 how)
{
	memset(m, 0, sizeof(*m));
	m->now = 1000000000ULL * 1000;
	dblp_sent_init(&m->s, m->block, DBLP_SENT_BLOCK);
	if (how & 1)
		dblp_sent_spray(&m->s, m->ports, 2);
	dblp_cc_start(&m->cc, dblp_cc_at(how >> 1 & 1), MSS, m->now);
}

/* Like dblp_note_paced() */
static void push(struct sender *m, u32 n, u32 port, u32 bytes)
{
	struct dblp_sent_pkt pkt = { .bytes = bytes, .port = port };
	u64 ahead = m->pace_next > m->now ? m->pace_next : m->now;

	n = dblp_sent_trim(&m->s, n);
	if (!n)
		return;
	dblp_sent_push_row(&m->s, &pkt, n, m->now);
	if (m->cc.pacing_rate)
		m->pace_next = ahead + div64_u64((u64)n * bytes * 1000000000ULL,
						 m->cc.pacing_rate);
}

/* Like dblp_cc_ack() */
static void tell(struct sender *m, const struct dblp_rate_sample *rs)
{
	u64 rate = m->cc.pacing_rate;

	m->cc.ops->ack(&m->cc, rs, &m->rtt);
	if (!rate || !m->cc.pacing_rate || m->pace_next <= m->now)
		return;
	m->pace_next = m->now + mul_u64_u64_div_u64(m->pace_next - m->now, rate,
						    m->cc.pacing_rate);
}

static void ack(struct sender *m, struct reader *r)
{
	struct dblp_acked_range range;
	struct dblp_rate_sample rs = {};
	u32 how = get(r, 1), back = get(r, 1) % DBLP_SENT_BLOCK, arrived;
	u64 delay = how & 1 ? any(r, 32) * 1000 : 0;

	if (!m->s.next)
		return;
	range.last = m->s.next - 1 - (how & 2 && m->s.next > 1);
	range.first = range.last - (back < range.last ? back : range.last);
	CHECK(dblp_sent_ack(&m->s, &range, 1, delay, &m->rtt, m->now, &ops, NULL, &rs) >= 0);
	arrived = how & 4 ? get(r, 4) : (u32)rs.sent + (u32)any(r, 31);
	dblp_rtt_split(&m->rtt, &rs, how & 8 ? &arrived : NULL);
	CHECK(!rs.rtt || (rs.base && rs.base <= rs.rtt && rs.queue <= rs.rtt));
	rs.share = how & 16 ? get(r, 2) : 1;
	rs.all = how & 32 ? get(r, 4) : 0;
	rs.ce = how & 64 ? get(r, 4) : 0;
	rs.app_limited |= !(how & 128);
	if (rs.acked)
		m->pto_count = 0;
	if (rs.acked || rs.lost)
		tell(m, &rs);
}

static void overdue(struct sender *m)
{
	struct dblp_rate_sample rs = { .now = m->now };

	rs.lost = dblp_sent_timeout(&m->s, &m->rtt, m->now, &ops, NULL);
	rs.inflight = m->s.inflight;
	rs.delivered = m->s.delivered;
	if (rs.lost)
		tell(m, &rs);
}

static void check(struct sender *m)
{
	u64 pto = dblp_cc_pto(&m->cc, &m->rtt, 25000000, m->pto_count, 0);

	CHECK(m->cc.cwnd >= MSS && m->cc.cwnd <= S32_MAX);
	CHECK(m->cc.pacing_rate && dblp_cc_gap(&m->cc) <= MSS * 1000000000ULL);
	/* During a burst, probes are sent at the pacer's rate, but not forever */
	CHECK(pto <= DBLP_PTO_MAX_NS && (pto || m->cc.holding));
	CHECK(dblp_cc_window(&m->cc, &m->rtt, m->s.delivered_at, m->now) <= U32_MAX);
	CHECK(dblp_cc_opens_at(&m->cc, &m->rtt, m->s.delivered_at, m->s.inflight));
	CHECK(m->cc.ops->mode(&m->cc));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct reader r = { data, data + len };
	static struct sender m;
	u32 steps = 0, op;

	begin(&m, get(&r, 1));
	while (r.p < r.end && steps++ < 200) {
		op = get(&r, 1);
		switch (op % 8) {
		case 0:
		case 1:
			push(&m, 1 + op / 8, op / 8 % m.s.n_ports,
			     op & 1 ? MSS : 1 + get(&r, 2) % U16_MAX);
			break;
		case 2:
		case 3:
			m.now += any(&r, 38);
			break;
		case 4:
		case 5:
			ack(&m, &r);
			break;
		case 6:
			overdue(&m);
			break;
		case 7:
			if (op & 8)
				dblp_cc_switch(&m.cc, dblp_cc_at(op >> 4 & 1), m.now);
			else if (op & 16)
				m.cc.ops->timeout(&m.cc, ++m.pto_count, m.s.delivered_at, m.now);
			else
				m.pace_next = m.now + m.cc.ops->resume(&m.cc, m.now);
			break;
		}
		check(&m);
	}
	return 0;
}

size_t fuzz_seed(struct prng *r, u8 *p, size_t max)
{
	return fuzz_any(r, p, max);
}
