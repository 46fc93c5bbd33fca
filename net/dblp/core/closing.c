// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loss budget in bytes and in segments, and the time from which policy
 * early may use it.
 *
 * All rounding favours delivery: the bytes that may be missing are rounded
 * down, the segments that must be sent are rounded up.
 *
 * Policy early may use the budget after either of two events.
 *
 * - The first pass is over: a packet says that every segment was sent once.
 *   Missing segments are then lost or late. The receiver applies the two
 *   thresholds of RFC 9002 section 6.1: the segments count as lost a number of
 *   packets, or a time, after that packet. Both thresholds adapt to reordering,
 *   as those of the sender do.
 * - The message has taken longer than expected, because a burst of losses may
 *   include the packet that marks the end of the first pass.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include <linux/dblp.h>

#include "closing.h"
#include "recovery.h"

/* The rate falls by this share of the difference with each slower message */
#define FALL	8

u32 dblp_budget_bytes(u32 budget, u32 droppable)
{
	return div_u64((u64)min_t(u32, budget, DBLP_PPM) * droppable, DBLP_PPM);
}

bool dblp_may_miss(u32 seg_size, u32 length, u32 critical, u32 budget)
{
	u32 last = length % seg_size ?: seg_size;

	/* The last segment is the smallest, at the non-critical end */
	return critical <= length - last &&
	       last <= dblp_budget_bytes(budget, length - critical);
}

/* Could the message close with the bytes that are missing now? */
static bool fits_budget(const struct dblp_close_state *s)
{
	u32 critical = min(s->critical, s->length);

	if (s->meta_missing || s->critical_missing)
		return false;
	if (s->policy != DBLP_POLICY_EAGER && s->policy != DBLP_POLICY_EARLY)
		return false;
	return s->missing <= dblp_budget_bytes(s->budget,
					       s->length - critical);
}

enum dblp_verdict dblp_close_decide(const struct dblp_close_state *s)
{
	if (s->meta_missing)
		return DBLP_WAIT;
	if (!s->missing)
		return DBLP_CLOSE_COMPLETE;
	if (fits_budget(s) &&
	    (s->policy != DBLP_POLICY_EARLY || s->now >= s->early_at))
		return DBLP_CLOSE_BUDGET;
	if (s->deadline_at && s->now >= s->deadline_at && !s->critical_missing)
		return DBLP_CLOSE_DEADLINE;
	return DBLP_WAIT;
}

u64 dblp_close_again(const struct dblp_close_state *s)
{
	u64 at = s->deadline_at;

	if (s->meta_missing || s->critical_missing)
		return 0;
	if (s->policy == DBLP_POLICY_EARLY && fits_budget(s))
		at = at ? min(at, s->early_at) : s->early_at;
	return at;
}

u32 dblp_first_pass(u32 n, u32 seg_size, u32 length, u32 critical, u32 budget,
		    u8 policy, u32 loss)
{
	u32 may_miss, need, arrive;

	if (policy != DBLP_POLICY_EAGER)
		return n;
	critical = min(critical, length);
	may_miss = dblp_budget_bytes(budget, length - critical) / seg_size;
	need = may_miss < n ? n - may_miss : 1;
	arrive = DBLP_PPM - min_t(u32, loss, DBLP_PPM / 2);
	return min_t(u64, n,
		     div_u64((u64)need * DBLP_PPM + arrive / 2, arrive));
}

static u32 to_us(u64 ns)
{
	return min_t(u64, div_u64(ns, 1000), U32_MAX);
}

void dblp_rx_timing_segment(struct dblp_rx_timing *r, u32 bytes, u64 now)
{
	if (!r->first_at) {
		r->first_at = now;
		r->first_bytes = bytes;
	}
	r->last_at = now;
}

void dblp_rx_timing_pass(struct dblp_rx_timing *r, struct dblp_early *e, u64 pn,
			 u64 now)
{
	if (r->pass_at)
		return;
	r->pass_pn = pn;
	r->pass_at = now;
	e->pass_pn = pn;
	e->pass_at = now;
	e->watch = true;
	if (++e->calm < DBLP_EARLY_CALM)
		return;
	e->calm = 0;
	e->straggler_ns /= 2;
	e->reorder /= 2;
}

static bool enough_packets(const struct dblp_early *e, u64 pass_pn, u64 largest)
{
	return largest >= pass_pn &&
	       largest - pass_pn >= max_t(u32, e->reorder, DBLP_REORDER_MIN);
}

bool dblp_early_passed(struct dblp_early *e, u64 largest)
{
	if (!e->watch || !enough_packets(e, e->pass_pn, largest))
		return false;
	e->watch = false;
	return true;
}

void dblp_early_straggler(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
			  u64 now)
{
	u64 packets = largest - pn + 1, straggler_ns = now - e->pass_at;

	packets = min_t(u64, packets, DBLP_REORDER_MAX);
	straggler_ns = min(straggler_ns, rtt);
	if (packets > max_t(u32, e->reorder, DBLP_REORDER_MIN)) {
		e->reorder = packets;
		e->calm = 0;
	}
	if (straggler_ns > e->straggler_ns) {
		e->straggler_ns = straggler_ns;
		e->calm = 0;
	}
}

void dblp_early_done(struct dblp_early *e, const struct dblp_rx_timing *r,
		     u32 received, u64 rtt)
{
	u32 us = to_us(r->last_at - r->first_at);
	u64 rate;

	if (!us || r->last_at - r->first_at < rtt ||
	    received <= r->first_bytes)
		return;
	rate = div_u64((u64)(received - r->first_bytes) * 1000000, us);
	if (rate >= e->rate)
		e->rate = rate;
	else
		e->rate -= (e->rate - rate) / FALL;
}

/* Expected time from the first to the last segment of a message */
static u64 expected_ns(const struct dblp_early *e,
		       const struct dblp_rx_timing *r, u32 length, u32 received)
{
	u64 us = to_us(r->last_at - r->first_at);

	if (e->rate)
		us = div64_u64((u64)length * 1000000, e->rate);
	else if (received > r->first_bytes)
		/* At the rate of the message so far */
		us = div_u64(us * length, received - r->first_bytes);
	return min_t(u64, us, U32_MAX) * 1000;
}

u64 dblp_early_at(const struct dblp_early *e, const struct dblp_rx_timing *r,
		  u32 length, u32 received, u64 largest, u64 rtt)
{
	u64 slow = r->first_at + rtt + rtt / 2 +
		   expected_ns(e, r, length, received);
	u64 pass;

	if (!r->pass_at)
		return slow;
	if (enough_packets(e, r->pass_pn, largest))
		return r->pass_at;
	pass = r->pass_at + e->straggler_ns +
	       max_t(u64, rtt / 4, DBLP_GRANULARITY_NS);
	return min(slow, pass);
}
