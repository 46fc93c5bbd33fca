// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delay not caused by a queue. Radio links send ACKs in bunches, processors are busy
 * now and then, and packets take different times through many switches. A congestion
 * control that takes such delay for its own queue yields without end.
 *
 * A standing queue delays all packets alike, for longer than it takes to drain it.
 * So delay is judged in spans of a round trip or more. If even the fastest packet of
 * each span is late, there is a queue, unless the other packets are much later
 * still, in several spans: then delay varies, and a multiple of the variation is
 * expected without a queue.
 *
 * This allowance decays when delays no longer vary; quickly if packets are still
 * late, as that is a queue.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "noise.h"

enum noise_limits {
	SPAN_PKTS	= 12,	/* least packets of a span */
	NOISY_PART	= 4,	/* of the delay: variation that is noise */
	NOISY_SPANS	= 4,	/* in a row that show noise */
	NOISE_GAIN	= 3,	/* times the mean above the lowest */
	NOISE_SHIFT	= 3,
	QUEUE_SHIFT	= 3,	/* decay with a queue, */
	CALM_SHIFT	= 5,	/* and without */
	BUNCH_ROUNDS	= 5,	/* half of the rounds that a bunch is remembered */
};

#define SECOND_NS		1000000000ULL

/* Longer round trips and pauses between ACKs count as this */
#define LONGEST_NS		(10 * SECOND_NS)

void dblp_noise_init(struct dblp_noise *n)
{
	*n = (struct dblp_noise) { .lowest = U64_MAX };
}

void dblp_noise_sample(struct dblp_noise *n, u64 rtt)
{
	n->lowest = min(n->lowest, rtt);
	n->sum += min(rtt, LONGEST_NS);
	n->n++;
}

static bool is_known(const struct dblp_noise *n)
{
	return n->spans >= NOISY_SPANS;
}

/* Delay that does not vary: that of a queue, or none */
static void judge_steady(struct dblp_noise *n, bool queue)
{
	if (!is_known(n))
		n->spans = 0;
	else if (queue)
		n->spans--;
	n->excess -= n->excess >> (queue ? QUEUE_SHIFT : CALM_SHIFT);
}

static enum dblp_span judge_noisy(struct dblp_noise *n, u64 noise)
{
	if (is_known(n)) {
		n->spans = min(n->spans + 1, 2 * NOISY_SPANS);
		n->excess -= n->excess >> NOISE_SHIFT;
		n->excess += noise >> NOISE_SHIFT;
		return DBLP_SPAN_ENDS;
	}
	if (++n->spans < NOISY_SPANS)
		return DBLP_SPAN_ENDS;
	n->spans = 2 * NOISY_SPANS;
	if (noise < 2 * n->excess)
		return DBLP_SPAN_ENDS;
	n->excess = noise;
	return DBLP_SPAN_NOISE;
}

static enum dblp_span judge_span(struct dblp_noise *n, u64 min_rtt)
{
	u64 rtt = min(n->lowest, LONGEST_NS), spread;

	spread = div64_u64(n->sum, n->n) - rtt;
	n->varied = dblp_is_longer(rtt + spread, rtt);
	if (!dblp_is_longer(rtt, min_rtt)) {
		judge_steady(n, false);
		return DBLP_SPAN_ENDS;
	}
	if (spread < (rtt - min_rtt) / NOISY_PART) {
		judge_steady(n, true);
		return DBLP_SPAN_ENDS;
	}
	return judge_noisy(n, spread * NOISE_GAIN);
}

enum dblp_span dblp_noise_round(struct dblp_noise *n, u32 mss, u64 acked,
				u64 min_rtt)
{
	enum dblp_span span = DBLP_SPAN_ENDS;

	n->acked += acked;
	if (n->acked < SPAN_PKTS * (u64)mss)
		return DBLP_SPAN_GOES_ON;
	if (n->n)
		span = judge_span(n, min_rtt);
	n->span_rtt = n->lowest;
	n->lowest = U64_MAX;
	n->sum = 0;
	n->n = 0;
	n->acked = 0;
	return span;
}

/*
 * As many bytes as a bunch acknowledges beyond the rate must be in flight in
 * addition, or the path would be idle until the next bunch (draft-cardwell-iccrg-
 * bbr-congestion-control section 4.5.9).
 */
void dblp_bunch_ack(struct dblp_bunch *b, const struct dblp_rate_sample *rs,
		    u64 rate, u32 cwnd)
{
	u64 expected, extra;

	expected = mul_u64_u64_div_u64(rate, min(rs->now - b->at, LONGEST_NS),
				       SECOND_NS);
	if (b->acked <= expected) {
		b->at = rs->now;
		b->acked = 0;
		expected = 0;
	}
	b->acked += rs->acked;
	extra = b->acked - min(b->acked, expected);
	b->most[0] = max_t(u64, b->most[0], min_t(u64, extra, cwnd));
}

void dblp_bunch_round(struct dblp_bunch *b)
{
	if (++b->rounds < BUNCH_ROUNDS)
		return;
	b->most[1] = b->most[0];
	b->most[0] = 0;
	b->rounds = 0;
}

u32 dblp_bunch_bytes(const struct dblp_bunch *b)
{
	return max(b->most[0], b->most[1]);
}
