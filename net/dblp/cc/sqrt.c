// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control by a window that grows until a queue forms.
 *
 * See Documentation/congestion.rst for the model and the constants. The flow
 * measures the path itself: its round trips, its packets, and the delay at
 * which the queue overflowed. No constant is a property of a particular
 * network.
 */
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "../core/wire.h"
#include "cc.h"

/* Shares are in 1/1024 */
#define UNIT			1024

#define SECOND_NS		1000000000ULL
#define LONGEST_NS		(10 * SECOND_NS)

enum sqrt_limits {
	SPAN_PKTS	= 8,	/* packets of a span, at least */
	LEAST_PART	= 64,	/* least window: 1 packet in 64 round trips */
	LOSS_PKTS	= 512,	/* packets of the mean loss */
	LOSS_LEFT	= 716,	/* window kept after loss: 0.7, RFC 9438 */
	LOSS_UNIT	= 65536,	/* 1 in the unit of shares of loss */
	LOSS_USUAL	= 12,	/* 1 of 12 packets may be lost by chance */
	LOSS_LOSSY	= 2,	/* the same for dblp_cc_lossy */
	LOSS_CREDIT	= 32,	/* packets that may be lost at once */
	MARK_LEFT	= 870,	/* same after a CE mark: 0.85, RFC 8511 */
	BURST_LOSS	= 19661,	/* 0.3 of a span: a burst */
	CALM_LOSS	= 9830,	/* 0.15: a calm span loses less */
	CALM_SPANS	= 16,	/* calm spans that must precede a burst */
	RIVAL_YIELDS	= 2,	/* low rates before rivals are assumed */
	RIVAL_ACTS	= 255,	/* delays ignored while rivals are assumed */
	FLAT_PART	= 32,	/* delays that differ by 1/32 count as equal */

	EXCUSED		= 768,	/* 3/4 of @top: less delay is no full queue */
	PACE_GAIN	= 1280,	/* pacing rate: 1.25 windows a round trip */
	START_GAIN	= 2048,	/* the same at the start: 2 */
};

/**
 * struct span - measurements of a round trip or more, with SPAN_PKTS packets
 * @low: lowest one-way delay to the peer, ns; U64_MAX before the first sample
 * @sum: sum of these delays
 * @rtts: sum of round-trip times, ns
 * @n: number of samples
 * @acked: bytes acknowledged
 * @lost: bytes declared lost
 * @most: largest number of bytes acknowledged in one bunch, see count_bunch()
 */
struct span {
	u64	low;
	u64	sum;
	u64	rtts;
	u32	n;
	u32	acked;
	u32	lost;
	u64	most;
};

/**
 * struct root - state of the congestion control
 * @now: present span
 * @wnd: window, bytes; may be less than a packet
 * @before: @wnd at the end of the last three spans, to restore in a burst
 * @hit: @wnd at the latest congestion; 0 before the first
 * @step: bytes to grow by; doubles while there is no queue
 * @min_rtt: shortest round trip, ns
 * @longer: part of @min_rtt inferred from delivery rates, see judge_path()
 * @top: delay beyond @min_rtt at which the queue overflowed, 0 before it did
 * @usual: highest delay of calm spans, falls slowly
 * @at_once: @most of the last span
 * @bunch: bytes acknowledged faster than the pacing rate, see count_bunch()
 * @last_excess: mean delay of the last span
 * @last_rtt: mean round trip of the last span, 0 if not comparable with this
 *	one
 * @round_end: the round trip is over when this many bytes were acknowledged
 * @cut_end: no further cut until this many bytes were acknowledged, or 0
 * @uncut: @wnd before it was cut for losses that may be spurious, or 0
 * @untop: @top at that time
 * @unhit: @hit at that time
 * @undo_bytes: bytes declared lost whose loss may still turn out to be spurious
 * @undo_at: @acts at the latest loss
 * @held_at: during a burst: its start, or when @wnd was last halved; else 0
 * @acked_at: arrival time of the last ACK, or when @wnd was halved for lack of
 *	one
 * @all_at: time by which SHARE counts all senders of a round again
 * @full: window plus the bytes that arrive while their ACKs are delayed on the
 *	way back
 * @pace_rtt: time in which the window is sent, ns
 * @own_from: bytes acknowledged when @part and @rate were last measured
 * @rate_at: time of that measurement, 0 after an idle period
 * @rate: mean rate at which the receiver gets bytes of all senders, or of this
 *	one if the others are unknown; bytes a second
 * @all_from: the receiver's count of all bytes at that time, DBLP_SHARE_UNIT
 *	bytes
 * @part: this flow's share of the received bytes, times the number of senders;
 *	UNIT if all shares are equal
 * @yield_from: @wnd to restore if giving way to a queue does not help, or 0
 * @yield_rate: highest @rate while the queue has been too long
 * @yields: number of spans with a rate much below @yield_rate
 * @flat_delay: lowest of the recent delays if they were equal
 * @flat_least: lowest @rate with these delays
 * @flat_most: highest @rate with these delays
 * @rivals: other flows fill the queue: number of further delays to ignore, or 0
 * @credit: bytes that may be lost before loss counts as congestion
 * @loss_empty: share of bytes lost without a queue, mean of LOSS_PKTS packets,
 *	in LOSS_UNIT
 * @loss_queued: share of bytes lost with a queue, likewise
 * @senders: connections that send to the receiver, in calm spans
 * @peak: largest recent number of senders; a quarter of the difference is
 *	dropped every CALM_SPANS spans, because the last senders of a round need
 *	it until its end
 * @random: state of a generator
 * @calm: calm spans in a row; falls in other spans
 * @acts: number of spans
 * @starting: slow start: the window doubles each round trip
 * @limited: during the whole span the application limited the flow, or less
 *	than half of the window was used
 */
struct root {
	struct span now;
	u64	wnd;
	u64	before[3];
	u64	hit;
	u64	step;
	u64	min_rtt;
	u64	longer;
	u64	top;
	u64	usual;
	u64	at_once;
	u64	bunch;
	u64	last_excess;
	u64	last_rtt;
	u64	round_end;
	u64	cut_end;
	u64	uncut;
	u64	untop;
	u64	unhit;
	u32	undo_bytes;
	u32	undo_at;
	u64	held_at;
	u64	acked_at;
	u64	all_at;
	u64	full;
	u64	pace_rtt;
	u64	own_from;
	u64	rate_at;
	u64	rate;
	u32	all_from;
	u32	part;
	u64	yield_from;
	u64	yield_rate;
	u64	flat_delay;
	u64	flat_least;
	u64	flat_most;
	u8	yields;
	u8	rivals;
	u32	credit;
	u32	loss_empty;
	u32	loss_queued;
	u32	senders;
	u32	peak;
	u32	random;
	u32	calm;
	u32	acts;
	bool	starting;
	bool	limited;
};

static struct root *state(struct dblp_cc *cc)
{
	BUILD_BUG_ON(sizeof(struct root) > sizeof(cc->priv));
	return (struct root *)cc->priv;
}

static void next_span(struct root *r)
{
	r->now = (struct span) { .low = U64_MAX };
}

static void set_wnd(struct dblp_cc *cc, struct root *r, u64 wnd)
{
	wnd = max_t(u64, wnd, cc->mss / LEAST_PART + 1);
	r->wnd = min_t(u64, wnd, S32_MAX / 4);
}

static void sqrt_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct root *r = state(cc);

	next_span(r);
	r->wnd = DBLP_CC_INITIAL_PKTS * mss;
	r->starting = true;
	r->credit = LOSS_CREDIT * mss;
	r->acked_at = now;
	r->random = now ^ now >> 32;
	cc->cwnd = r->wnd;
	cc->pacing_rate = (u64)cc->cwnd * DBLP_CC_INITIAL_HZ;
}

/*
 * Delay of a standing queue: the lowest delay of the span, less the excess of
 * the mean over it, because such variation is no queue
 */
static u64 standing_delay(const struct root *r)
{
	const struct span *s = &r->now;
	u64 spread = div64_u64(s->sum, s->n) - s->low;

	return s->low - min(spread, s->low);
}

/* Bytes of the window that wait in the queue if it delays by @delay */
static u64 backlog(const struct root *r, u64 delay)
{
	return mul_u64_u64_div_u64(r->wnd, delay, r->min_rtt + delay);
}

/* Number of connections that send to the receiver, at least 1 */
static u32 senders(const struct dblp_cc *cc)
{
	return max_t(u32, cc->senders, 1);
}

/* Two packets of all senders: with less in flight, no path is measured */
static u64 least_wnd(const struct dblp_cc *cc)
{
	return 2 * cc->mss / senders(cc);
}

/*
 * Bytes of the window that should wait in the queue: its square root, in
 * packets. So flows with the same delay get equal windows, and on faster paths
 * the queue is a smaller part of the window.
 */
static u64 target(const struct dblp_cc *cc, const struct root *r)
{
	u64 most = r->top ? backlog(r, r->top / 2) : U64_MAX;
	u64 root = int_sqrt64(r->wnd * cc->mss);
	u64 at_once = max_t(u64, r->at_once, r->now.most);

	at_once = 2 * (at_once - min_t(u64, at_once, 2 * cc->mss));
	return max(min(max(root, at_once), most),
		   min(least_wnd(cc), r->wnd / 2));
}

static u32 span_loss(const struct span *s)
{
	u64 bytes = (u64)s->acked + s->lost;

	return bytes ? div64_u64((u64)s->lost * LOSS_UNIT, bytes) : 0;
}

/* Mean delay of this span */
static u64 mean_excess(const struct root *r)
{
	return r->now.n ? div64_u64(r->now.sum, r->now.n) : 0;
}

static u64 mean_rtt(const struct root *r)
{
	return r->now.n ? div64_u64(r->now.rtts, r->now.n) : 0;
}

/* Delay at a loss, which is detected late: the queue may have drained */
static u64 excess(const struct root *r)
{
	return max(mean_excess(r), r->last_excess);
}

/* Is the delay close to that of a full queue? */
static bool is_queued(const struct root *r)
{
	return r->top && excess(r) * UNIT >= r->top * EXCUSED;
}

/* Packets per loss that may be chance: it differs in the two controls */
static u32 usual_loss(const struct dblp_cc *cc)
{
	return cc->ops == &dblp_cc_lossy ? LOSS_LOSSY : LOSS_USUAL;
}

/* Is more lost in this span than chance explains? */
static bool is_heavy(const struct dblp_cc *cc, const struct root *r)
{
	u64 sent = (u64)r->now.acked + r->now.lost;

	return r->now.lost > 3 * cc->mss +
			     div_u64(3 * sent, 2 * usual_loss(cc));
}

/*
 * Is the loss chance, not congestion? It is while @credit lasts, if the delay
 * is below that of a full queue, or if about as much was lost without a queue.
 */
static bool is_excused(const struct dblp_cc *cc, const struct root *r)
{
	if (r->rivals || !r->credit || (!r->top && is_heavy(cc, r)))
		return false;
	return !is_queued(r) || r->loss_queued <= 2 * r->loss_empty;
}

/* Token bucket of random losses: many at a time may be chance if few follow */
static void count_credit(const struct dblp_cc *cc, struct root *r,
			 const struct dblp_rate_sample *rs)
{
	u64 credit = r->credit + rs->spurious +
		     div_u64((u64)rs->acked + rs->lost, usual_loss(cc));
	u32 most = LOSS_CREDIT * cc->mss;

	r->credit = min_t(u64, credit, most);
	r->credit = r->held_at ? most : r->credit - min(r->credit, rs->lost);
}

static void learn_top(struct root *r)
{
	u64 delay = excess(r);

	if (delay > r->top)
		r->top = delay;
	else
		r->top -= (r->top - delay) >> (is_queued(r) ? 6 : 2);
}

static void cut_to(struct dblp_cc *cc, struct root *r, u64 wnd)
{
	set_wnd(cc, r, max(wnd, min(r->wnd, least_wnd(cc))));
}

/* Share of the window to keep: the share that arrived, at most TCP's 0.7 */
static u32 loss_left(const struct root *r)
{
	u32 left = (LOSS_UNIT - span_loss(&r->now)) / (LOSS_UNIT / UNIT);

	return clamp_t(u32, left, UNIT / 4, LOSS_LEFT);
}

static void cut(struct dblp_cc *cc, struct root *r,
		const struct dblp_rate_sample *rs, u32 left)
{
	r->cut_end = rs->delivered + rs->inflight + 1;
	r->starting = false;
	r->hit = r->wnd;
	r->step = 0;
	r->yield_from = 0;
	cut_to(cc, r, r->wnd * left / UNIT);
}

/* Window before a burst, which is detected only after some cuts */
static u64 held_wnd(const struct root *r)
{
	return max(max(r->before[0], r->before[1]), max(r->before[2], r->wnd));
}

/*
 * Has a burst of losses without congestion begun? Many packets are lost after
 * calm spans, while the delay is usual and neither this flow nor others send
 * more.
 */
static bool is_burst(const struct dblp_cc *cc, const struct root *r)
{
	return r->now.lost > 3 * cc->mss &&
	       span_loss(&r->now) > BURST_LOSS + r->loss_empty &&
	       r->calm >= CALM_SPANS &&
	       held_wnd(r) <= r->before[0] +
			      max_t(u64, r->before[0] / 8, 2 * cc->mss) &&
	       mean_excess(r) <= r->usual + r->usual / 2 &&
	       cc->senders <= r->senders;
}

/* The window cut has taken effect: drop the delays measured before it */
static void end_cut(struct root *r)
{
	r->cut_end = 0;
	r->last_excess = 0;
	r->last_rtt = 0;
}

/* Save the state to restore if all losses turn out to be spurious */
static void remember(struct root *r)
{
	if (r->uncut)
		return;
	r->uncut = r->wnd;
	r->untop = r->top;
	r->unhit = r->hit;
}

static void end_undo(struct root *r)
{
	r->undo_bytes = 0;
	r->uncut = 0;
}

/* Undo cuts for packets that a late CPU or another path has only delayed */
static void on_spurious(struct dblp_cc *cc, struct root *r,
			const struct dblp_rate_sample *rs)
{
	r->now.lost -= min(r->now.lost, rs->spurious);
	r->undo_bytes -= min(r->undo_bytes, rs->spurious);
	if (r->undo_bytes)
		return;
	if (r->uncut) {
		set_wnd(cc, r, max(r->wnd, r->uncut));
		r->top = r->untop;
		r->hit = r->unhit;
		end_cut(r);
	}
	end_undo(r);
}

static void on_loss(struct dblp_cc *cc, struct root *r,
		    const struct dblp_rate_sample *rs)
{
	r->undo_bytes = min_t(u64, (u64)r->undo_bytes + rs->lost, U32_MAX);
	r->undo_at = r->acts;
	if (r->held_at)
		return;
	if (is_burst(cc, r)) {
		r->held_at = rs->now;
		set_wnd(cc, r, held_wnd(r));
	} else if (rs->delivered < r->cut_end) {
		return;
	} else if (!is_excused(cc, r)) {
		remember(r);
		learn_top(r);
		cut(cc, r, rs, loss_left(r));
	} else if (is_queued(r)) {
		r->top = min(r->top + r->top / 8, max(r->top, r->usual));
	}
}

/*
 * Smallest growth of the window. The senders to one receiver together add as
 * much as one would alone, which bounds the queue that they build at a time.
 * Against rivals, each flow adds what TCP adds in two spans.
 */
static u64 least_step(const struct dblp_cc *cc, const struct root *r)
{
	u32 n = senders(cc);
	u64 step = div_u64(int_sqrt64(n * r->wnd * cc->mss), 6);

	if (r->rivals)
		step = div64_u64((u64)cc->mss * r->now.acked, r->wnd);
	else
		step = div_u64(max_t(u64, cc->mss, step), n);
	return min(step, r->wnd / 4);
}

/* Cut the window for a CE mark, also during a burst: the queue is long */
static void on_mark(struct dblp_cc *cc, struct root *r,
		    const struct dblp_rate_sample *rs)
{
	if (rs->delivered < r->cut_end)
		return;
	cut(cc, r, rs, MARK_LEFT);
}

/*
 * Grow the window; the step doubles while there is no queue. A flow above its
 * fair share grows slowly, because it may mistake a standing queue for path
 * delay.
 */
static void grow(struct dblp_cc *cc, struct root *r, u64 delay, u64 room)
{
	u64 least = least_step(cc, r);

	if (r->limited)
		return;
	if (r->rivals || r->part > UNIT + UNIT / 4 || r->wnd < r->hit ||
	    backlog(r, delay) > room / 2)
		r->step = least;
	else
		r->step = max(min(2 * r->step, r->wnd / 4), least);
	set_wnd(cc, r, r->wnd + r->step);
}

/* Move the window by an eighth towards the fair share of the receiver's rate */
static void even_out(struct dblp_cc *cc, struct root *r)
{
	u32 part = clamp_t(u32, r->part, UNIT / 4, 2 * UNIT);

	set_wnd(cc, r, r->wnd + div_u64(r->wnd * UNIT, part) / 8 - r->wnd / 8);
}

/*
 * Forget delivery rates if the round trip grows by a quarter at once: the link
 * became slower or the path longer. Other flows fill a queue gradually.
 */
static void on_jump(struct root *r)
{
	if (!r->last_rtt || mean_rtt(r) <= r->last_rtt + r->last_rtt / 4)
		return;
	r->rate = 0;
	r->yield_rate = 0;
	r->yields = 0;
}

/*
 * Do other flows fill the queue? While a queue stands, the senders to the
 * receiver get all of the path's rate. If their rate falls, other flows take
 * it, and giving way to their queue is useless: then ignore delay and respond
 * to loss, as TCP does. After RIVAL_ACTS delays, try again to give way.
 */
static bool judge_rivals(struct dblp_cc *cc, struct root *r, u64 room)
{
	if (backlog(r, mean_excess(r)) <= room) {
		r->rivals /= 2;
		r->yields = 0;
		r->yield_from = 0;
		r->yield_rate -= r->yield_rate / 8;
	} else if (r->rivals == 1) {
		r->rivals = 0;
		r->yields = 0;
		r->yield_from = r->wnd;
		r->yield_rate = r->rate;
	} else if (r->rivals) {
		r->rivals--;
	} else if (r->rate > r->yield_rate) {
		r->yield_rate = r->rate;
	} else if (!r->limited && r->rate < div_u64(r->yield_rate, 10) * 7 &&
		   ++r->yields >= RIVAL_YIELDS) {
		r->rivals = RIVAL_ACTS;
		set_wnd(cc, r, max(r->wnd, r->yield_from));
	}
	return r->rivals;
}

/*
 * Has the path become longer? A delay that stays the same while the delivery
 * rate changes by a factor of 2 belongs to the path: a queue of this flow would
 * change too.
 */
static void judge_path(struct root *r)
{
	u64 low = r->now.low;
	u64 least = min(low, r->flat_delay), most = max(low, r->flat_delay);

	/* A delay of 0 tells nothing: it is no queue and no longer path */
	if (!least || most - least > least / FLAT_PART || !r->flat_least) {
		r->flat_delay = low;
		r->flat_least = r->rate;
		r->flat_most = r->rate;
		return;
	}
	r->flat_delay = least;
	r->flat_least = min(r->flat_least, r->rate);
	r->flat_most = max(r->flat_most, r->rate);
	if (r->flat_most < 2 * r->flat_least)
		return;
	r->longer += least;
	r->min_rtt += least;
	r->now.low -= least;
	r->now.sum -= r->now.n * least;
	r->last_excess = 0;
	r->flat_least = 0;
	r->top = 0;
	r->rivals = 0;
}

/*
 * Does a burst hold the rate? A sender cannot know what others lose. The user of
 * dblp_cc_lossy has said that loss is no congestion: then senders take what the
 * losses leave of the path, by the delay alone.
 */
static bool holds_rate(const struct dblp_cc *cc, const struct root *r)
{
	return r->held_at && cc->ops != &dblp_cc_lossy;
}

/* Rates are invalid in a burst */
static void on_delay(struct dblp_cc *cc, struct root *r)
{
	const bool rated = !r->held_at;
	u64 delay, room, queue;

	if (rated)
		judge_path(r);
	delay = standing_delay(r);
	room = target(cc, r);
	queue = backlog(r, delay);
	if (rated && !r->limited)
		even_out(cc, r);
	if (rated && judge_rivals(cc, r, room)) {
		grow(cc, r, delay, 0);
		return;
	}
	if (queue <= room) {
		grow(cc, r, delay, room);
		return;
	}
	r->step = 0;
	r->hit = r->wnd;
	set_wnd(cc, r, r->wnd - min((queue - room) / 2, r->wnd / 4));
}

static void begin_measure(struct root *r, const struct dblp_rate_sample *rs)
{
	r->rate_at = rs->now;
	r->own_from = rs->delivered;
	r->all_from = rs->all;
}

/* Measure the receiver's rate of all senders and this flow's share of it */
static void measure(struct dblp_cc *cc, struct root *r,
		    const struct dblp_rate_sample *rs)
{
	u64 all = (u64)(rs->all - r->all_from) * DBLP_SHARE_UNIT;
	u64 own = rs->delivered - r->own_from, rate;

	if (!rs->all || !r->all_from)
		all = own;
	r->part = UNIT;
	if (cc->senders > 1 && all && own && all != own)
		r->part = min_t(u64, div64_u64(own * cc->senders * UNIT, all),
				4 * UNIT);
	if (rs->now > r->rate_at && !r->limited) {
		rate = mul_u64_u64_div_u64(min_t(u64, all, U32_MAX), SECOND_NS,
					   rs->now - r->rate_at);
		r->rate = r->rate ? r->rate - r->rate / 4 + rate / 4 : rate;
	}
	begin_measure(r, rs);
}

/* Is the loss of a span not much above that without a queue? */
static bool is_calm(const struct root *r, u32 loss)
{
	return loss < CALM_LOSS + r->loss_empty;
}

static void judge_burst(struct dblp_cc *cc, struct root *r,
			const struct dblp_rate_sample *rs, u32 loss)
{
	if (is_calm(r, loss) || cc->senders > r->senders) {
		r->held_at = 0;
		/* Rates measured during a burst are invalid */
		r->rate = 0;
	} else if (rs->now - r->held_at > SECOND_NS) {
		set_wnd(cc, r, r->wnd / 2);
		r->held_at = rs->now;
	}
}

/* Running mean in which a span has the weight of its packets */
static void average(u32 *mean, u32 value, u32 pkts)
{
	pkts = min_t(u32, pkts, LOSS_PKTS);
	*mean += ((s32)value - (s32)*mean) * (s32)pkts / LOSS_PKTS;
}

static void judge_span(struct dblp_cc *cc, struct root *r, u32 loss)
{
	u32 pkts = div_u64((u64)r->now.acked + r->now.lost, cc->mss);
	u64 delay = excess(r);

	if (cc->senders >= r->senders || !(r->acts % (4 * CALM_SPANS)))
		r->senders = cc->senders;
	if (r->top && delay < r->top / 2)
		average(&r->loss_empty, loss, pkts);
	else if (is_queued(r))
		average(&r->loss_queued, loss, pkts);
	if (!is_calm(r, loss)) {
		r->calm -= min_t(u32, r->calm, CALM_SPANS / 2);
		return;
	}
	r->calm = min_t(u32, r->calm + 1, 4 * CALM_SPANS);
	r->usual = max(delay, r->usual - r->usual / 64);
}

static void end_span(struct dblp_cc *cc, struct root *r,
		     const struct dblp_rate_sample *rs)
{
	u32 loss = span_loss(&r->now);

	if (r->held_at)
		judge_burst(cc, r, rs, loss);
	else
		judge_span(cc, r, loss);
	on_jump(r);
	measure(cc, r, rs);
	if (r->acts - r->undo_at > CALM_SPANS)
		end_undo(r);
	/* Skip every other span: it still has the previous window */
	if (!(++r->acts & 1) && !holds_rate(cc, r) && !r->starting && r->now.n &&
	    rs->delivered >= r->cut_end)
		on_delay(cc, r);
	if (!(r->acts % CALM_SPANS))
		r->peak -= DIV_ROUND_UP(r->peak - cc->senders, 4);
	r->before[0] = r->before[1];
	r->before[1] = r->before[2];
	r->before[2] = r->wnd;
	r->last_excess = mean_excess(r);
	r->last_rtt = mean_rtt(r);
	r->at_once = r->now.most;
	r->limited = true;
	next_span(r);
}

/*
 * Add a delay sample to the span. A queue on the way back counts only in slow
 * start, which it ends: this flow cannot shorten it.
 */
static void sample_delay(struct root *r, const struct dblp_rate_sample *rs)
{
	u64 delay = min(r->starting ? rs->rtt - rs->base : rs->queue, LONGEST_NS);
	struct span *s = &r->now;

	if (!rs->rtt)
		return;
	r->longer = min(r->longer, delay);
	r->min_rtt = min(rs->base, LONGEST_NS) + r->longer;
	delay -= r->longer;
	s->low = min(s->low, delay);
	s->sum += delay;
	s->rtts += min(rs->rtt, LONGEST_NS);
	s->n++;
}

/* Was the flow limited by the application, or the window half empty? */
static bool is_limited(const struct root *r, const struct dblp_rate_sample *rs)
{
	u64 used = (u64)rs->inflight + rs->acked + rs->lost;

	return rs->app_limited || 2 * used < r->full;
}

/*
 * Slow start: double the window each round trip until a queue stands. A window
 * that is not used, as the pacing rate may have a limit, does not grow.
 */
static void start(struct dblp_cc *cc, struct root *r,
		  const struct dblp_rate_sample *rs)
{
	if (r->now.n >= SPAN_PKTS / 2 &&
	    backlog(r, standing_delay(r)) > target(cc, r)) {
		r->starting = false;
		r->hit = r->wnd;
		set_wnd(cc, r, r->wnd - backlog(r, standing_delay(r)) +
			       target(cc, r));
		r->cut_end = rs->delivered + rs->inflight;
	} else if (!is_limited(r, rs)) {
		set_wnd(cc, r, r->wnd + rs->acked);
	}
}

/*
 * The window plus the share of senders that have finished, up to SPAN_PKTS
 * packets, because smaller windows adapt too slowly by themselves.
 */
static u64 shared_wnd(const struct dblp_cc *cc, const struct root *r)
{
	u64 wnd = div_u64(r->wnd * r->peak, senders(cc));

	return max(r->wnd, min_t(u64, wnd, SPAN_PKTS * cc->mss));
}

/*
 * Set the window and pacing rate; @back is the delay of ACKs on the way back,
 * ns
 */
static void set_rates(struct dblp_cc *cc, struct root *r, u64 rtt, u64 back)
{
	u32 gain = r->starting ? START_GAIN : PACE_GAIN;
	u64 rate, wnd = shared_wnd(cc, r);

	r->pace_rtt = rtt;
	cc->holding = r->held_at;
	if (wnd < 2 * cc->mss || r->held_at)
		gain = UNIT;
	r->full = wnd + min_t(u64, mul_u64_u64_div_u64(wnd, back, max_t(u64, rtt, 1)),
			      S32_MAX / 2);
	cc->cwnd = max_t(u64, r->full + cc->mss, 3 * cc->mss);
	if (r->held_at)
		cc->cwnd += wnd + DBLP_CC_SILENT_PKTS * cc->mss;
	rate = mul_u64_u64_div_u64(wnd * gain / UNIT, SECOND_NS,
				   max_t(u64, rtt, 1));
	cc->pacing_rate = max_t(u64, rate, 1);
}

/*
 * Count bytes that are acknowledged faster than they were sent. Packets or ACKs
 * have waited for each other then, in one ACK or in several that a host
 * processes at once.
 */
static void count_bunch(const struct dblp_cc *cc, struct root *r,
			const struct dblp_rate_sample *rs)
{
	u64 time = min(rs->now - r->acked_at, LONGEST_NS);
	u64 sent = mul_u64_u64_div_u64(cc->pacing_rate, time, SECOND_NS);

	r->bunch -= min(r->bunch, sent);
	r->bunch += rs->acked;
	r->now.most = max_t(u64, r->now.most, r->bunch);
}

static void sqrt_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		     const struct dblp_rtt *rtt)
{
	struct root *r = state(cc);
	u32 least = rs->now < r->all_at ? r->peak : 1;
	u64 mean, back;

	if (rs->share)
		cc->senders = clamp_t(u32, rs->share, least, U16_MAX);
	r->peak = max_t(u32, r->peak, cc->senders);
	sample_delay(r, rs);
	count_bunch(cc, r, rs);
	r->now.acked += rs->acked;
	r->now.lost += rs->lost;
	if (rs->acked)
		r->acked_at = rs->now;
	r->limited &= is_limited(r, rs);
	if (!r->min_rtt)
		return;
	if (!r->rate_at)
		begin_measure(r, rs);
	if (r->cut_end && rs->delivered >= r->cut_end)
		end_cut(r);
	count_credit(cc, r, rs);
	if (rs->spurious)
		on_spurious(cc, r, rs);
	if (rs->lost)
		on_loss(cc, r, rs);
	if (rs->ce)
		on_mark(cc, r, rs);
	if (r->starting && rs->acked)
		start(cc, r, rs);
	if (rs->acked && rs->prior_delivered >= r->round_end &&
	    r->now.acked + r->now.lost >= SPAN_PKTS * cc->mss) {
		r->round_end = rs->delivered;
		end_span(cc, r, rs);
	}
	/*
	 * Use the mean without outliers: a few late packets would stretch the
	 * time in which the window is sent, so that it is never full. With less
	 * than two packets in flight that mean is many round trips old.
	 */
	mean = r->wnd < 2 * cc->mss ? max(rtt->srtt, rtt->latest) : rtt->usual;
	back = r->starting ? 0 : min(rtt->back, mean - min(mean, r->min_rtt));
	set_rates(cc, r, mean - back, back);
}

/*
 * All senders start a round at once. Assume as many as before, and delay the
 * first packet by a random part of the pacer's interval, to spread them over
 * it.
 */
static u64 sqrt_resume(struct dblp_cc *cc, u64 now)
{
	struct root *r = state(cc);
	u64 rtt = max(r->min_rtt + r->usual, r->pace_rtt), gap;

	/* A low rate while idle is no sign of rivals */
	r->rate_at = 0;
	if (r->starting || !r->min_rtt || r->peak < 2)
		return 0;
	cc->senders = r->peak;
	set_rates(cc, r, rtt, 0);
	gap = dblp_cc_gap(cc);
	r->all_at = now + gap + rtt;
	return mul_u64_u64_div_u64(gap, dblp_cc_random(&r->random), 1ULL << 32);
}

/*
 * Halve the window after each second in which packets were in flight and no ACK
 * came. Before that, dblp_cc_window() limits a silent path to probes, which
 * suffices for a burst of losses.
 */
static void sqrt_timeout(struct dblp_cc *cc, u32 count, u64 acked_at, u64 now)
{
	struct root *r = state(cc);

	if (now - max(r->acked_at, acked_at) < SECOND_NS)
		return;
	r->acked_at = now;
	r->starting = false;
	cut_to(cc, r, r->wnd / 2);
	cc->cwnd = r->wnd + cc->mss;
}

static const char *sqrt_mode(struct dblp_cc *cc)
{
	const struct root *r = state(cc);

	return r->held_at ? "hold" : r->rivals ? "rivals" : r->starting ? "startup" : "steady";
}

#define SQRT_OPS(ops_name)		\
{					\
	.name		= ops_name,	\
	.ecn		= true,		\
	.init		= sqrt_init,	\
	.resume		= sqrt_resume,	\
	.ack		= sqrt_ack,	\
	.timeout	= sqrt_timeout,	\
	.mode		= sqrt_mode,	\
}

const struct dblp_cc_ops dblp_cc_sqrt = SQRT_OPS("sqrt");
const struct dblp_cc_ops dblp_cc_lossy = SQRT_OPS("lossy");
