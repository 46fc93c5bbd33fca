// SPDX-License-Identifier: GPL-2.0-only
/*
 * When policy early may use a budget.
 *
 * Either of two events allows it.
 *
 * The first pass is over: a packet says that every segment was sent once. Missing
 * segments are then lost or late. They count as lost by the two thresholds of RFC
 * 9002 section 6.1, applied by the receiver: a number of packets, or a time, after
 * that packet. Both adapt to reordering, as those of the sender do.
 *
 * Or the message has taken longer than expected: a burst of losses may include
 * the packet that marks the end of the first pass.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "early.h"
#include "recovery.h"

/* The rate falls by this share of the difference with each slower message */
#define FALL	8

static u32 to_us(u64 ns)
{
	return min_t(u64, div_u64(ns, 1000), U32_MAX);
}

/**
 * dblp_rx_timing_segment() - a new segment of a message came
 * @r: its message
 * @bytes: of the segment
 * @now: the time, not 0
 */
void dblp_rx_timing_segment(struct dblp_rx_timing *r, u32 bytes, u64 now)
{
	if (!r->first_at) {
		r->first_at = now;
		r->first_bytes = bytes;
	}
	r->last_at = now;
}

/**
 * dblp_rx_timing_pass() - a packet says that every segment was sent once
 * @r: its message
 * @e: its connection
 * @pn: number of the packet
 * @now: the time, not 0
 *
 * Only the first such packet of a message counts.
 */
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

/**
 * dblp_early_passed() - have enough packets come after the latest first pass?
 * @e: its connection
 * @largest: largest packet number that came so far
 *
 * Those packets may be of other messages, so the caller must look at all messages
 * that wait.
 *
 * Return: true once for each first pass.
 */
bool dblp_early_passed(struct dblp_early *e, u64 largest)
{
	if (!e->watch || !enough_packets(e, e->pass_pn, largest))
		return false;
	e->watch = false;
	return true;
}

/**
 * dblp_early_late() - a packet sent before the end of the latest first pass came
 * after it
 * @e: its connection
 * @pn: its number, below @pass_pn
 * @largest: largest packet number that came so far
 * @rtt: propagation time there and back
 * @now: the time
 *
 * Packet numbers are never reused, so only the network can have delayed it.
 */
void dblp_early_late(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
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

/**
 * dblp_early_done() - a message was closed
 * @e: its connection
 * @r: the message
 * @received: bytes of it that came
 * @rtt: propagation time there and back
 *
 * A message that took less than @rtt gives no rate sample: bursts look fast.
 */
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
		/* As fast as it came so far */
		us = div_u64(us * length, received - r->first_bytes);
	return min_t(u64, us, U32_MAX) * 1000;
}

/**
 * dblp_early_at() - time from which the budget of a message may be used
 * @e: its connection
 * @r: the message; at least one segment has come
 * @length: its bytes
 * @received: bytes of it that came
 * @largest: largest packet number that came
 * @rtt: propagation time there and back
 *
 * Return: the time. It can change with each packet that comes. Until a rate is
 * known it may be too early: ask again then.
 */
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
