// SPDX-License-Identifier: GPL-2.0-only
/*
 * When policy early may use a budget.
 *
 * Two things allow it, whichever comes first.
 *
 * The first pass is over: every segment was sent once, a packet says so. What
 * is missing then is lost or late. It is taken for lost by the two thresholds
 * of RFC 9002 section 6.1, seen from here: so many packets, or so much time,
 * after that packet. Both adapt to reordering, as those of the sender do.
 *
 * Or the message has taken longer than it should, whatever the packets say: the
 * burst that swallows half of a message swallows its last packet, too.
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
 * dblp_round_segment() - a new segment of a message came
 * @r: its message
 * @bytes: of the segment
 * @now: the time, not 0
 */
void dblp_round_segment(struct dblp_round *r, u32 bytes, u64 now)
{
	if (!r->first_at) {
		r->first_at = now;
		r->first_bytes = bytes;
	}
	r->last_at = now;
}

/**
 * dblp_round_pass() - a packet says that every segment was sent once
 * @r: its message
 * @e: its connection
 * @pn: number of the packet
 * @now: the time, not 0
 *
 * The first that comes counts.
 */
void dblp_round_pass(struct dblp_round *r, struct dblp_early *e, u64 pn,
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
	e->late /= 2;
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
 * They may be of other messages: those that wait have to be looked at then.
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
 * dblp_early_late() - a packet came after the end of the latest first pass that
 * was sent before it
 * @e: its connection
 * @pn: its number, below @pass_pn
 * @largest: largest packet number that came so far
 * @rtt: propagation time there and back
 * @now: the time
 *
 * Numbers are never used twice, so nothing but the network has delayed it.
 */
void dblp_early_late(struct dblp_early *e, u64 pn, u64 largest, u64 rtt,
		     u64 now)
{
	u64 packets = largest - pn + 1, late = now - e->pass_at;

	packets = min_t(u64, packets, DBLP_REORDER_MAX);
	late = min(late, rtt);
	if (packets > max_t(u32, e->reorder, DBLP_REORDER_MIN)) {
		e->reorder = packets;
		e->calm = 0;
	}
	if (late > e->late) {
		e->late = late;
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
 * One that took less than that tells nothing of the rate: bursts look fast.
 */
void dblp_early_done(struct dblp_early *e, const struct dblp_round *r,
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

/* How long all of a message should take to come in, once it has begun to */
static u64 expected_ns(const struct dblp_early *e, const struct dblp_round *r,
		       u32 length, u32 received)
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
 * dblp_early_at() - from when on the budget of a message may be used
 * @e: its connection
 * @r: the message; at least one segment has come
 * @length: its bytes
 * @received: those that came
 * @largest: largest packet number that came
 * @rtt: propagation time there and back
 *
 * Return: the time. It can change with each packet that comes, and without any
 * rate from before it may turn out to be too early: ask again then.
 */
u64 dblp_early_at(const struct dblp_early *e, const struct dblp_round *r,
		  u32 length, u32 received, u64 largest, u64 rtt)
{
	u64 slow = r->first_at + rtt + rtt / 2 +
		   expected_ns(e, r, length, received);
	u64 pass;

	if (!r->pass_at)
		return slow;
	if (enough_packets(e, r->pass_pn, largest))
		return r->pass_at;
	pass = r->pass_at + e->late +
	       max_t(u64, rtt / 4, DBLP_GRANULARITY_NS);
	return min(slow, pass);
}
