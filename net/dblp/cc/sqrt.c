// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control by a window that grows until the queue answers.
 *
 * See Documentation/congestion.rst for the model and the constants. All is
 * measured in what the flow has itself seen: its round trips, its packets, the
 * delay at which the path overflowed. There is no time, size or rate in here
 * that stands for a network.
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
	SPAN_PKTS	= 8,	/* that tell of a queue and of loss */
	LEAST_PART	= 64,	/* least window: a packet in so many round trips */
	LOSS_PKTS	= 512,	/* that make the mean loss */
	LOSS_LEFT	= 716,	/* of the window after congestion: 0.7, RFC 9438 */
	LOSS_UNIT	= 65536,
	LOSS_USUAL	= 12,	/* an empty queue excuses one of so many packets */
	LOSS_LOSSY	= 2,	/* the same on paths said to lose many */
	LOSS_CREDIT	= 32,	/* and so many at once, as chance has it */
	MARK_LEFT	= 870,	/* of the window after a mark: 0.85, RFC 8511 */
	BURST_LOSS	= 19661,	/* of a span: that much at once is no overload */
	CALM_LOSS	= 9830,
	CALM_SPANS	= 16,	/* before a burst is believed */
	RIVAL_YIELDS	= 2,
	RIVAL_ACTS	= 255,
	FLAT_PART	= 32,	/* of a delay: by that much one is as another */

	EXCUSED		= 768,	/* of the delay of an overflow: there is none */
	PACE_GAIN	= 1280,
	START_GAIN	= 2048,
};

/**
 * struct span - what was seen in a round trip or more
 * @low: lowest delay on the way there; U64_MAX before the first
 * @sum: of all
 * @rtts: sum of round-trip times
 * @n: how many of each
 * @acked: bytes
 * @lost: bytes
 * @most: bytes that ACKs of one bunch acknowledged
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
 * struct root - state
 * @now: span
 * @wnd: window, bytes; may be less than a packet
 * @before: the same at the end of the last spans, to go back to in a burst
 * @hit: where it was when something was hit
 * @step: bytes to grow by, doubles while there is no queue
 * @min_rtt: shortest round trip
 * @longer: by so much it is longer than who knows no rates can tell
 * @top: delay beyond it with which the path overflowed, 0 before it did
 * @usual: highest delay of calm spans, renewed slowly
 * @at_once: @most of the last span
 * @bunch: bytes acknowledged sooner than the pacer sends them
 * @last_excess: mean delay of the last span
 * @last_rtt: mean round trip of the last span, 0 if it does not tell of this one
 * @round_end: the round trip is over when so many bytes were acknowledged
 * @cut_end: no further cut until then
 * @uncut: window before it was cut for losses that may be spurious, or 0
 * @untop: @top then
 * @unhit: @hit then
 * @doubted: bytes declared lost that may have arrived
 * @doubted_at: @acts of the last of them
 * @held_at: amid a burst: since when, or when it was last halved; else 0
 * @acked_at: when the last ACK came, or the window was halved for want of one
 * @all_at: all who began a round with us have been heard of by then
 * @full: window, and what has arrived while its ACKs were late
 * @pace_rtt: round trip in which the window is sent
 * @own_from: bytes acknowledged when @part and @rate were last measured
 * @rate_at: when that was, 0 since there was nothing to send
 * @rate: bytes a second that the receiver has of all of us, or of this one; mean
 * @all_from: what the receiver had of all then
 * @part: of what it received, times their number: UNIT if all have the same
 * @yield_from: window to go back to if it is in vain to give way, or 0
 * @yield_rate: highest @rate since there is a queue to give way to
 * @yields: how often it was much less
 * @flat_delay: lowest of the delays that have not differed of late
 * @flat_least: lowest @rate meanwhile
 * @flat_most: highest
 * @rivals: others fill the queue: so many acts more their delay is ignored
 * @credit: bytes that may be lost
 * @loss_empty: share of bytes lost while there was clearly no queue, mean of
 *	LOSS_PKTS packets
 * @loss_queued: the same while there was one
 * @senders: at the receiver, when all was calm
 * @peak: most of them, forgotten a quarter a span
 * @random: state of a generator
 * @calm: spans with little loss in a row
 * @acts: spans
 * @starting: it doubles each round trip
 * @limited: all of this span the application sent less than it might, or not half of
 *	the window was used
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
	u32	doubted;
	u32	doubted_at;
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

/* Delay of the span that is a queue's: what differs from packet to packet is not */
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

/* At the receiver, as far as it has said */
static u32 senders(const struct dblp_cc *cc)
{
	return max_t(u32, cc->senders, 1);
}

/* Less than two packets of all senders tell nothing of the path */
static u64 least_wnd(const struct dblp_cc *cc)
{
	return 2 * cc->mss / senders(cc);
}

/* How many of them there may be. The square root: equal windows for all who see
 * the same delay, and the shorter a queue, the faster the path.
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

/* Loss is seen a round trip late, when the queue may be shorter already */
static u64 excess(const struct root *r)
{
	return max(mean_excess(r), r->last_excess);
}

/* Is there the delay that congestion has come with? */
static bool is_queued(const struct root *r)
{
	return r->top && excess(r) * UNIT >= r->top * EXCUSED;
}

/* One of so many packets may be lost: all in which the two controls differ */
static u32 usual_loss(const struct dblp_cc *cc)
{
	return cc->ops == &dblp_cc_lossy ? LOSS_LOSSY : LOSS_USUAL;
}

/* More than chance explains where so much is usual */
static bool is_heavy(const struct dblp_cc *cc, const struct root *r)
{
	u64 sent = (u64)r->now.acked + r->now.lost;

	return r->now.lost > 3 * cc->mss +
			     div_u64(3 * sent, 2 * usual_loss(cc));
}

/* Loss without the delay that congestion has come with is none of it, nor is loss
 * that was as much while there was no queue
 */
static bool is_excused(const struct dblp_cc *cc, const struct root *r)
{
	if (r->rivals || !r->credit || (!r->top && is_heavy(cc, r)))
		return false;
	return !is_queued(r) || r->loss_queued <= 2 * r->loss_empty;
}

/* Random loss comes by chance: more of it now is made up for by less later */
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

/* What arrived, at most what TCP would keep */
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

/* Window from before a burst, which shows only when some of it was cut already */
static u64 held_wnd(const struct root *r)
{
	return max(max(r->before[0], r->before[1]), max(r->before[2], r->wnd));
}

/* Most is lost at once, though all was calm, the round trip is as usual, and nobody
 * sends more than before, not even this one
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

/* Round trips from before a cut do not tell what it has led to */
static void end_cut(struct root *r)
{
	r->cut_end = 0;
	r->last_excess = 0;
	r->last_rtt = 0;
}

/* To go back to if all that was lost turns out to have arrived */
static void remember(struct root *r)
{
	if (r->uncut)
		return;
	r->uncut = r->wnd;
	r->untop = r->top;
	r->unhit = r->hit;
}

static void end_doubt(struct root *r)
{
	r->doubted = 0;
	r->uncut = 0;
}

/* Packets that a late processor or another path has delayed were no congestion */
static void heed_spurious(struct dblp_cc *cc, struct root *r,
			  const struct dblp_rate_sample *rs)
{
	r->now.lost -= min(r->now.lost, rs->spurious);
	r->doubted -= min(r->doubted, rs->spurious);
	if (r->doubted)
		return;
	if (r->uncut) {
		set_wnd(cc, r, max(r->wnd, r->uncut));
		r->top = r->untop;
		r->hit = r->unhit;
		end_cut(r);
	}
	end_doubt(r);
}

static void heed_loss(struct dblp_cc *cc, struct root *r,
		      const struct dblp_rate_sample *rs)
{
	r->doubted = min_t(u64, (u64)r->doubted + rs->lost, U32_MAX);
	r->doubted_at = r->acts;
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

/* All together add what one would alone, so that so much queue is made at a time;
 * beside others, each what TCP adds in the two spans of an act
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

/* A queue that marks packets is long, whatever the round trip says, and amid a
 * burst, too
 */
static void heed_mark(struct dblp_cc *cc, struct root *r,
		      const struct dblp_rate_sample *rs)
{
	if (rs->delivered < r->cut_end)
		return;
	cut(cc, r, rs, MARK_LEFT);
}

/* A little more a round trip; more and more while nothing answers. Who has more than
 * his part may have met a queue that he takes for none.
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

/* Where there is a queue to share, the windows move towards each other */
static void even_out(struct dblp_cc *cc, struct root *r)
{
	u32 part = clamp_t(u32, r->part, UNIT / 4, 2 * UNIT);

	set_wnd(cc, r, r->wnd + div_u64(r->wnd * UNIT, part) / 8 - r->wnd / 8);
}

/* Others fill a queue bit by bit. If the round trip is longer by a quarter at once, the
 * link is slower or the path longer: what was delivered before tells nothing of it.
 */
static void heed_jump(struct root *r)
{
	if (!r->last_rtt || mean_rtt(r) <= r->last_rtt + r->last_rtt / 4)
		return;
	r->rate = 0;
	r->yield_rate = 0;
	r->yields = 0;
}

/* While a queue stands, all of ours together deliver what the path carries. If that
 * falls, others fill the queue, and it is in vain to give way to them: their losses
 * are heeded then, as by TCP, and their delay is not. Now and then it is tried again.
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

/* A delay that is the same when twice as much is delivered, or half, is the path's, which
 * has become longer: of a queue our packets would be a part
 */
static void judge_path(struct root *r)
{
	u64 low = r->now.low;
	u64 least = min(low, r->flat_delay), most = max(low, r->flat_delay);

	/* No delay is that of any path, however much is delivered */
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

static void heed_delay(struct dblp_cc *cc, struct root *r)
{
	u64 delay, room, queue;

	judge_path(r);
	delay = standing_delay(r);
	room = target(cc, r);
	queue = backlog(r, delay);
	if (!r->limited)
		even_out(cc, r);
	if (judge_rivals(cc, r, room)) {
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

/* What all of us, as far as is known, and this one have brought to the receiver */
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

/* Not much more than is usual there */
static bool is_calm(const struct root *r, u32 loss)
{
	return loss < CALM_LOSS + r->loss_empty;
}

static void judge_burst(struct dblp_cc *cc, struct root *r,
			const struct dblp_rate_sample *rs, u32 loss)
{
	if (is_calm(r, loss) || cc->senders > r->senders) {
		r->held_at = 0;
		/* What was lost tells nothing of path or rivals */
		r->rate = 0;
	} else if (rs->now - r->held_at > SECOND_NS) {
		set_wnd(cc, r, r->wnd / 2);
		r->held_at = rs->now;
	}
}

/* A span tells as much as it has packets: two losses of 8 say little */
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
	heed_jump(r);
	measure(cc, r, rs);
	if (r->acts - r->doubted_at > CALM_SPANS)
		end_doubt(r);
	/* The first after a step cannot show what it has led to */
	if (!(++r->acts & 1) && !r->held_at && !r->starting && r->now.n &&
	    rs->delivered >= r->cut_end)
		heed_delay(cc, r);
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

/* A queue on the way back is not ours to keep short, but reason enough to end doubling */
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

/* Doubling goes on until a queue stands */
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
	} else if (!rs->app_limited) {
		set_wnd(cc, r, r->wnd + rs->acked);
	}
}

/* A window of less than a span learns slowly. When senders have ended, it takes what
 * they leave, as far as a span.
 */
static u64 shared_wnd(const struct dblp_cc *cc, const struct root *r)
{
	u64 wnd = div_u64(r->wnd * r->peak, senders(cc));

	return max(r->wnd, min_t(u64, wnd, SPAN_PKTS * cc->mss));
}

/* ACKs are late by @back */
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

/* What ACKs acknowledge faster than it is sent, they or the packets have waited for
 * each other: in one ACK or in several that a host attends to at once
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

/* The application had not even half of it to send */
static bool is_limited(const struct root *r, const struct dblp_rate_sample *rs)
{
	u64 used = (u64)rs->inflight + rs->acked + rs->lost;

	return rs->app_limited || 2 * used < r->full;
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
		heed_spurious(cc, r, rs);
	if (rs->lost)
		heed_loss(cc, r, rs);
	if (rs->ce)
		heed_mark(cc, r, rs);
	if (r->starting && rs->acked)
		start(cc, r, rs);
	if (rs->acked && rs->prior_delivered >= r->round_end &&
	    r->now.acked + r->now.lost >= SPAN_PKTS * cc->mss) {
		r->round_end = rs->delivered;
		end_span(cc, r, rs);
	}
	/* Sent in a mean that a few late packets have made, a window is never full. Of less
	 * than two packets in flight the mean is many round trips old.
	 */
	mean = r->wnd < 2 * cc->mss ? max(rtt->srtt, rtt->latest) : rtt->usual;
	back = r->starting ? 0 : min(rtt->back, mean - min(mean, r->min_rtt));
	set_rates(cc, r, mean - back, back);
}

/* All begin a round at once: as many as there were, and the first packets at random
 * times within those that the pacers keep between packets
 */
static u64 sqrt_resume(struct dblp_cc *cc, u64 now)
{
	struct root *r = state(cc);
	u64 rtt = max(r->min_rtt + r->usual, r->pace_rtt), gap;

	/* Rest is no sign of others */
	r->rate_at = 0;
	if (r->starting || !r->min_rtt || r->peak < 2)
		return 0;
	cc->senders = r->peak;
	set_rates(cc, r, rtt, 0);
	gap = dblp_cc_gap(cc);
	r->all_at = now + gap + rtt;
	return mul_u64_u64_div_u64(gap, dblp_cc_random(&r->random), 1ULL << 32);
}

/* Silence stops us already: for as long as a burst is borne, no more is needed */
static void sqrt_timeout(struct dblp_cc *cc, u32 count, u64 now)
{
	struct root *r = state(cc);

	if (now - r->acked_at < SECOND_NS)
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
