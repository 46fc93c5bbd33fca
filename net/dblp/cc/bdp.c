// SPDX-License-Identifier: GPL-2.0-only
/*
 * Congestion control by a model of the path, after BBR (draft-cardwell-iccrg-
 * bbr-congestion-control): the highest recent delivery rate and the lowest recent
 * round-trip time. Their product, the BDP, is what the path holds without a queue;
 * about that much is kept in flight, sent at about that rate.
 *
 * It differs from BBR because messages are short, many senders share one switch
 * queue, and loss does not mean congestion:
 *
 * - Delay ends STARTUP: the path is full as soon as even the fastest packet of a
 *   round was delayed by a queue. Waiting for the rate to stay flat for three
 *   rounds would fill the shared queue.
 *
 * - A standing queue narrows the window and shortens the memory of past rates.
 *   If yielding does not shorten the delay, the queue is not our own: the path has
 *   become longer or a processor is busy, and yielding ends. There is no yielding to
 *   delay that varies from packet to packet: see noise.c.
 *
 * - Random loss is measured while there is no queue, and the send rate is raised by
 *   it, so that the rate *delivered* fills the path. Loss with a queue is
 *   congestion; it lowers the delivery rate and needs no other response. Loss of
 *   more than a half counts as random at once only if there is no other sender to
 *   the receiver, as a queue can be too short to be seen.
 *
 * - Probing continues for as many rounds as it finds more bandwidth, so that
 *   bandwidth that becomes free is found in a few round trips.
 *
 * - A training job sends in rounds, with different senders in each: after a pause,
 *   probing begins anew. While there is a queue, the window limits the rate rather
 *   than the pacer, so that the rate rises when other senders end.
 *
 * - Flows that fill the queue until it overflows leave no room to a flow that
 *   yields. Against them the window gets an additive part, as TCP's.
 *
 * - With many senders to one receiver, each may have less than a packet in the
 *   queue: then crowd.c decides.
 *
 * The constants were chosen with the simulator of selftests/unit, where the
 * promises are tested.
 */
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "cc.h"
#include "noise.h"

/* Gains and loss rates are in 1/1024 */
#define UNIT			1024

enum bdp_gain {
	GAIN_STARTUP	= 2840,	/* 4 ln 2: doubles each round */
	GAIN_DRAIN	= 369,	/* its inverse */
	GAIN_UP		= 1280,
	GAIN_DOWN	= 768,
	GAIN_SHARED	= 1152,	/* while a queue is there, the window limits */
	GAIN_DRAINED	= 960,	/* below 1, to see behind an old queue as well */
	GAIN_QUEUED	= 1280,	/* of the window while there is a queue */
	GAIN_WINDOW	= 2048,	/* of the window else */
};

enum bdp_limits {
	FLOOR_PKTS	= 4,
	FLOOR_GROWTH	= 8,	/* times the loss */
	DRAINED_PKTS	= 3,	/* left in the queue, or the link would idle */
	EXTRA_PKTS	= 3,	/* of the window while there is a queue */
	BW_ROUNDS	= 10,	/* rounds that a rate is remembered */
	QUEUED_ROUNDS	= 4,	/* the same while there is a queue */
	FULL_ROUNDS	= 3,	/* rounds without growth that end STARTUP */
	RIVAL_LOSSES	= 3,	/* losses that show rivals */
	DOWN_ROUNDS	= 3,	/* rounds after which draining gives up */
	CRUISE_ROUNDS	= 4,	/* and up to 3 more at random */
	CALM_ROUNDS	= 3,	/* of CRUISE_ROUNDS, with losses due to probing */
	PROBE_RTT_ROUNDS = 3,
	YIELD_ROUNDS	= 3,	/* rounds until yielding should have an effect */
	YIELD_PKTS	= 12,	/* least packets in a round to judge yielding */
	LOSS_PKTS	= 64,	/* packets of a loss sample */
	LOSS_MAX	= 512,	/* most loss that is compensated */
	LOSS_EXCESS	= 128,	/* loss above @loss that shows an overflow */
	LOSS_NOISE	= 16,	/* loss above @loss that is negligible */
	LOSS_FULL	= 512,	/* loss that ends STARTUP, queue or not, */
	LOSS_FULL_PKTS	= 8,	/* in a round of at least so many packets */
};

/* A standing queue this long that overflows is filled by rivals */
#define RIVAL_QUEUE_NS		1000000ULL
#define RIVAL_NS		(50ULL * 1000000)	/* between losses */

#define MIN_RTT_WINDOW_NS	(10ULL * 1000000000)

/* ACKs come in bunches and losses are detected late: cwnd covers this time */
#define ACK_SLACK_NS		200000ULL

enum bdp_mode {
	STARTUP,
	DRAIN,
	PROBE_UP,		/* PROBE_BW has three phases */
	PROBE_DOWN,
	PROBE_CRUISE,
	PROBE_RTT,
};

/**
 * struct bdp - the model
 * @bw: highest rate of each of the last rounds, bytes a second
 * @min_rtt: propagation delay
 * @min_rtt_at: when it was last seen
 * @acked_at: when the last ACK came
 * @full_bw: rate that must be clearly exceeded to count as growth
 * @slot: index of the present round in @bw
 * @mode: &enum bdp_mode
 * @mode_rounds: rounds begun since it was entered
 * @full_rounds: STARTUP: rounds without growth
 * @cruise_rounds: rounds of this PROBE_CRUISE
 * @filled: STARTUP is over
 * @round_sampled: this round has a rate that counts
 * @round_tried: the application did not limit it
 * @queued: the last span, see noise.h, saw a queue all along
 * @futile: yielding does not shorten the queue
 * @yield_rounds: rounds since we yielded
 * @cruise_queued: there was a queue while loss was measured
 * @noise: delay not caused by a queue
 * @bunch: ACKs that come in bunches
 * @queued_rtt: lowest round-trip time of the last span with a queue
 * @yield_from: most bytes acknowledged in a round since there is a queue
 * @yield_rtt: round-trip time in that round
 * @rivals: rivals fill the queue until it overflows
 * @rival_losses: losses seen while there is a long queue
 * @rival_at: time of the last of them, or when there was last no long queue
 * @rival_bytes: bytes added to the window against rivals
 * @base_rtt: shortest round trip, renewed slowly: rivals may hide @min_rtt
 * @crowded: the receiver has so many senders that @cc.crowd decides
 * @round_end: the round is over when a packet sent later is acknowledged
 * @round_rtt: lowest round-trip time of this round, U64_MAX before the first
 * @round_acked: bytes acknowledged in this round
 * @round_lost: bytes lost in this round
 * @cruise_acked: bytes acknowledged while loss was measured
 * @cruise_lost: bytes lost while loss was measured
 * @loss: random loss, 1/1024
 * @random: state of the generator for @cruise_rounds
 */
struct bdp {
	u64	bw[BW_ROUNDS];
	u64	min_rtt;
	u64	min_rtt_at;
	u64	acked_at;
	u64	full_bw;
	u8	slot;
	u8	mode;
	u8	mode_rounds;
	u8	full_rounds;
	u8	cruise_rounds;
	bool	filled;
	bool	round_sampled;
	bool	round_tried;
	bool	queued;
	bool	futile;
	u8	yield_rounds;
	bool	cruise_queued;
	struct dblp_noise noise;
	struct dblp_bunch bunch;
	u64	queued_rtt;
	u64	yield_from;
	u64	yield_rtt;
	bool	rivals;
	u8	rival_losses;
	bool	crowded;
	u64	rival_at;
	u64	rival_bytes;
	u64	base_rtt;
	u64	round_end;
	u64	round_rtt;
	u64	round_acked;
	u64	round_lost;
	u64	cruise_acked;
	u64	cruise_lost;
	u32	loss;
	u32	random;
};

static struct bdp *model(struct dblp_cc *cc)
{
	BUILD_BUG_ON(sizeof(struct bdp) > sizeof(cc->priv));
	return (struct bdp *)cc->priv;
}

static u64 max_bw(const struct bdp *b)
{
	u64 bw = 0;
	u32 i;

	for (i = 0; i < BW_ROUNDS; i++)
		bw = max(bw, b->bw[i]);
	return bw;
}

static void forget_bw(struct bdp *b, u32 keep)
{
	u32 i;

	for (i = keep; i < BW_ROUNDS; i++)
		b->bw[(b->slot + BW_ROUNDS - i) % BW_ROUNDS] = 0;
}

/* Rate at which to send so that @bw arrives. A little less than the measured loss is
 * compensated: if it is congestion after all, it dies out.
 */
static u64 send_rate(const struct bdp *b, u64 bw, u32 gain)
{
	u64 rate = min_t(u64, bw, U64_MAX / UNIT / UNIT);

	return div_u64(rate * gain, UNIT - b->loss * 15 / 16);
}

/* Bytes sent at that rate in @time */
static u64 bytes_in(const struct bdp *b, u64 time)
{
	time = min_t(u64, time, MIN_RTT_WINDOW_NS);
	return mul_u64_u64_div_u64(send_rate(b, max_bw(b), UNIT), time,
				   1000000000);
}

/* The usual round-trip time without a queue */
static u64 path_rtt(const struct bdp *b)
{
	return b->min_rtt + b->noise.excess;
}

/* The BDP times @gain */
static u64 bdp_bytes(const struct bdp *b, u32 gain)
{
	return bytes_in(b, path_rtt(b)) * gain / UNIT;
}

/* Least window: later packets show the loss of one, and with a high loss rate enough
 * of them must arrive.
 */
static u64 floor_bytes(const struct dblp_cc *cc, const struct bdp *b)
{
	return FLOOR_PKTS * (u64)cc->mss * (UNIT + FLOOR_GROWTH * b->loss) /
	       UNIT;
}

/* Bytes in flight when the queue is drained */
static u64 drained_bytes(const struct dblp_cc *cc, const struct bdp *b)
{
	u64 bytes = bdp_bytes(b, GAIN_DRAINED) + DRAINED_PKTS * (u64)cc->mss;

	return max(bytes, floor_bytes(cc, b));
}

/* Does round-trip time @rtt show a queue? */
static bool is_queue(const struct bdp *b, u64 rtt)
{
	return dblp_is_longer(rtt, path_rtt(b));
}

/* The same for the lowest of some time: was there a queue all along? */
static bool is_queued(const struct bdp *b, u64 rtt)
{
	return rtt != U64_MAX && is_queue(b, rtt);
}

static u32 round_loss(const struct bdp *b)
{
	u64 bytes = b->round_acked + b->round_lost;

	return bytes ? div64_u64(b->round_lost * UNIT, bytes) : 0;
}

static void enter(struct bdp *b, enum bdp_mode mode)
{
	b->mode = mode;
	b->mode_rounds = 0;
	if (mode == PROBE_CRUISE) {
		b->cruise_rounds = CRUISE_ROUNDS +
				   (dblp_cc_random(&b->random) >> 30);
	}
	if (mode == PROBE_UP)
		b->full_bw = max_bw(b);
}

static void bdp_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct bdp *b = model(cc);

	b->random = now ^ now >> 32;
	b->round_rtt = U64_MAX;
	dblp_noise_init(&b->noise);
	cc->cwnd = DBLP_CC_INITIAL_PKTS * mss;
	/* Other flows may begin at the same time */
	cc->pacing_rate = (u64)cc->cwnd * DBLP_CC_INITIAL_HZ;
	enter(b, STARTUP);
}

/* The rate that the previous control reached is near that of the path */
static void bdp_take(struct dblp_cc *cc, u64 rate, const struct dblp_rtt *rtt)
{
	struct bdp *b = model(cc);

	b->bw[b->slot] = rate;
	b->filled = true;
	enter(b, PROBE_UP);
}

/* Is this the first ACK of a packet sent after the last round began? */
static bool round_is_over(struct bdp *b, const struct dblp_rate_sample *rs)
{
	if (!rs->acked || rs->prior_delivered < b->round_end)
		return false;
	b->round_end = rs->delivered;
	return true;
}

static void update_bw(struct bdp *b, const struct dblp_rate_sample *rs)
{
	if (!rs->rate || (rs->app_limited && rs->rate < max_bw(b)))
		return;
	b->bw[b->slot] = max(b->bw[b->slot], rs->rate);
	b->round_sampled = true;
	b->round_tried |= !rs->app_limited;
}

static void update_min_rtt(struct bdp *b, const struct dblp_rate_sample *rs,
			   const struct dblp_rtt *rtt)
{
	/* The handshake measured the path before our own packets filled it */
	if (!b->min_rtt && rtt->min) {
		b->min_rtt = rtt->min;
		b->min_rtt_at = rs->now;
		b->base_rtt = b->min_rtt;
	}
	if (!rs->rtt)
		return;
	dblp_noise_sample(&b->noise, rs->rtt);
	b->round_rtt = min(b->round_rtt, rs->rtt);
	b->base_rtt = min(b->base_rtt, rs->rtt);
	if (rs->rtt <= b->min_rtt) {
		b->min_rtt = rs->rtt;
		b->min_rtt_at = rs->now;
	}
}

/* More than half of the last round was lost */
static bool overflows(const struct dblp_cc *cc, const struct bdp *b)
{
	return b->round_acked + b->round_lost >= LOSS_FULL_PKTS * (u64)cc->mss &&
	       round_loss(b) > LOSS_FULL;
}

/* Without a queue and without other senders, even heavy loss is random. A rate that
 * does not compensate it shrinks with each round, so do not wait for PROBE_CRUISE to
 * measure it.
 */
static bool is_storm(const struct dblp_cc *cc, const struct bdp *b)
{
	return overflows(cc, b) && cc->crowd.n < 2 &&
	       b->round_rtt != U64_MAX && !dblp_is_longer(b->round_rtt, b->base_rtt);
}

/* Late in PROBE_CRUISE, no loss is due to probing. With a queue it may still be
 * congestion, so then it can only lower the estimate.
 */
static void update_loss(const struct dblp_cc *cc, struct bdp *b)
{
	u64 bytes;
	u32 loss;

	if (is_storm(cc, b)) {
		b->loss = (3 * b->loss + LOSS_MAX) / 4;
		return;
	}
	if (b->mode != PROBE_CRUISE || b->mode_rounds < CALM_ROUNDS)
		return;
	b->cruise_acked += b->round_acked;
	b->cruise_lost += b->round_lost;
	b->cruise_queued |= dblp_is_longer(b->round_rtt, b->base_rtt);
	bytes = b->cruise_acked + b->cruise_lost;
	if (bytes < (u64)LOSS_PKTS * cc->mss)
		return;
	loss = min_t(u32, div64_u64(b->cruise_lost * UNIT, bytes), LOSS_MAX);
	if (loss < b->loss || !b->cruise_queued)
		b->loss = (3 * b->loss + loss) / 4;
	b->cruise_acked = 0;
	b->cruise_lost = 0;
	b->cruise_queued = false;
}

/* A busy processor may have delayed a few small packets, which do not fill the path.
 * Nor is it full at the first ACK, which ends the first round while most of the
 * first window is in flight.
 */
static bool is_full(const struct dblp_cc *cc, const struct bdp *b,
		    const struct dblp_rate_sample *rs)
{
	if (b->mode_rounds == 1 && b->round_acked < rs->inflight)
		return false;
	return is_queued(b, b->round_rtt) && b->round_acked > cc->mss;
}

static void startup_round(const struct dblp_cc *cc, struct bdp *b,
			  const struct dblp_rate_sample *rs)
{
	if (!b->round_sampled)
		return;
	if (is_full(cc, b, rs) || overflows(cc, b)) {
		b->filled = true;
	} else if (max_bw(b) >= b->full_bw + b->full_bw / 4) {
		b->full_bw = max_bw(b);
		b->full_rounds = 0;
	} else if (b->round_tried && ++b->full_rounds >= FULL_ROUNDS) {
		b->filled = true;
	}
	if (b->filled)
		enter(b, DRAIN);
}

static void probe_up_round(struct bdp *b)
{
	u64 bw = max_bw(b);

	/* The first round ends before what it sent is acknowledged */
	if (b->mode_rounds < 2)
		return;
	if (!is_queued(b, b->round_rtt) && bw > b->full_bw + b->full_bw / 8)
		b->full_bw = bw;
	else
		enter(b, PROBE_DOWN);
}

/* One round ends as PROBE_RTT begins, one drains the path, one finds it empty */
static void probe_rtt_round(struct bdp *b, u64 now)
{
	if (b->mode_rounds < PROBE_RTT_ROUNDS)
		return;
	if (b->round_rtt != U64_MAX && !b->rivals)
		b->min_rtt = b->round_rtt;
	b->base_rtt = min(b->base_rtt + b->base_rtt / 8, b->min_rtt);
	b->min_rtt_at = now;
	enter(b, b->filled ? PROBE_CRUISE : STARTUP);
}

/* Did the queue shrink when we yielded? If not, it is not ours, or no queue at all:
 * the path may have become longer, or a processor busy. Yielding would not end.
 */
static void judge_yielding(const struct dblp_cc *cc, struct bdp *b, u64 rtt)
{
	u64 before = b->yield_rtt - min(b->yield_rtt, b->min_rtt);

	if (b->round_acked > b->yield_from) {
		b->yield_from = b->round_acked;
		b->yield_rtt = rtt;
	}
	if (b->round_acked > b->yield_from / 4 * 3) {
		b->yield_rounds = 0;
		return;
	}
	if (++b->yield_rounds < YIELD_ROUNDS)
		return;
	b->futile = b->yield_from > YIELD_PKTS * cc->mss &&
		    rtt - b->min_rtt > before - before / 8;
	b->yield_from = b->round_acked;
	b->yield_rtt = rtt;
	b->yield_rounds = 0;
}

/* Rivals fill the queue until it overflows, and yielding to them would never end:
 * share the queue as TCP does, with the additive increase that makes a decrease to
 * 7/10 fair (RFC 9438 section 4.3).
 */
static void judge_rivals(const struct dblp_cc *cc, struct bdp *b, u64 now)
{
	u64 bytes = b->round_acked + b->round_lost, cwnd = cc->cwnd;
	bool lossy = b->round_lost > bytes * (b->loss + LOSS_NOISE) / UNIT;

	if (b->round_rtt == U64_MAX)
		return;
	if (b->crowded ||
	    b->round_rtt <= b->base_rtt + b->base_rtt / 4 + RIVAL_QUEUE_NS) {
		b->rivals = false;
		b->rival_losses = 0;
		b->rival_at = now;
		return;
	}
	if (!b->rivals) {
		if (!lossy || now - b->rival_at < max(RIVAL_NS, 4 * b->round_rtt))
			return;
		b->rival_at = now;
		b->rivals = ++b->rival_losses >= RIVAL_LOSSES;
		b->rival_bytes = 0;
	} else if (lossy) {
		b->rival_bytes -= min(b->rival_bytes, cwnd / 10 * 3);
	} else {
		b->rival_bytes += cc->mss / 2;
	}
}

/* There was no queue after all, so the path is not full either */
static void search_anew(struct bdp *b)
{
	b->filled = false;
	b->full_bw = 0;
	b->full_rounds = 0;
	if (b->mode != PROBE_RTT)
		enter(b, STARTUP);
}

/* With a queue, past rates are forgotten sooner, and sooner still if it overflows. A
 * few packets do not show a queue: a busy processor also delays all packets of a
 * round, and yielding to that would end with a few packets per round.
 */
static void judge_queue(const struct dblp_cc *cc, struct bdp *b)
{
	enum dblp_span span;
	u64 rtt;

	span = dblp_noise_round(&b->noise, cc->mss, b->round_acked, b->min_rtt);
	if (span == DBLP_SPAN_GOES_ON)
		return;
	if (span == DBLP_SPAN_NOISE)
		search_anew(b);
	rtt = b->noise.span_rtt;
	b->queued = is_queued(b, rtt);
	if (!b->queued) {
		b->futile = false;
		b->yield_from = 0;
		return;
	}
	judge_yielding(cc, b, rtt);
	if (round_loss(b) > b->loss + LOSS_EXCESS && b->round_sampled) {
		forget_bw(b, 1);
		b->futile = false;
	} else {
		forget_bw(b, QUEUED_ROUNDS);
	}
	b->queued_rtt = rtt;
}

/* A round trip is over: judge it and begin the next */
static void next_round(struct dblp_cc *cc, struct bdp *b,
		       const struct dblp_rate_sample *rs)
{
	update_loss(cc, b);
	if (b->mode_rounds < U8_MAX)
		b->mode_rounds++;
	switch (b->mode) {
	case STARTUP:
		startup_round(cc, b, rs);
		break;
	case DRAIN:
	case PROBE_DOWN:
		if (b->mode_rounds >= DOWN_ROUNDS)
			enter(b, PROBE_CRUISE);
		break;
	case PROBE_UP:
		probe_up_round(b);
		break;
	case PROBE_CRUISE:
		if (b->mode_rounds >= b->cruise_rounds)
			enter(b, PROBE_UP);
		break;
	case PROBE_RTT:
		probe_rtt_round(b, rs->now);
		break;
	}
	judge_rivals(cc, b, rs->now);
	judge_queue(cc, b);
	dblp_bunch_round(&b->bunch);
	/* A rate is kept while the application sends too little to test it */
	if (b->round_sampled) {
		b->slot = (b->slot + 1) % BW_ROUNDS;
		b->bw[b->slot] = 0;
	}
	b->round_sampled = false;
	b->round_tried = false;
	b->round_rtt = U64_MAX;
	b->round_acked = 0;
	b->round_lost = 0;
}

static u32 pacing_gain(const struct bdp *b)
{
	switch (b->mode) {
	case STARTUP:
		return GAIN_STARTUP;
	case DRAIN:
		return GAIN_DRAIN;
	case PROBE_UP:
		return GAIN_UP;
	case PROBE_DOWN:
		return GAIN_DOWN;
	default:
		return b->queued && !b->futile ? GAIN_SHARED : UNIT;
	}
}

static void set_pacing_rate(struct dblp_cc *cc, const struct bdp *b,
			    const struct dblp_rtt *rtt)
{
	u64 bw = max_bw(b), srtt = max_t(u64, rtt->srtt, 1), rate, least;

	if (!bw)
		bw = div64_u64(cc->cwnd * 1000000000ULL, srtt);
	rate = send_rate(b, bw, pacing_gain(b));
	/* Half a packet a round trip keeps samples coming */
	least = div64_u64(cc->mss * 500000000ULL, srtt);
	if (b->filled || rate > cc->pacing_rate)
		cc->pacing_rate = max(rate, least);
}

/* Without a queue, pacing limits the rate. The window does not: it covers what the
 * path may hold while ACKs are on their way.
 */
static u64 free_cwnd(const struct bdp *b)
{
	u64 slack = bytes_in(b, ACK_SLACK_NS);

	if (b->noise.varied)
		slack = max_t(u64, slack, dblp_bunch_bytes(&b->bunch));
	return max(bytes_in(b, b->min_rtt) * GAIN_WINDOW / UNIT,
		   bdp_bytes(b, GAIN_QUEUED)) + slack;
}

static u64 target_cwnd(const struct dblp_cc *cc, const struct bdp *b)
{
	u64 extra = EXTRA_PKTS * (u64)cc->mss;

	if (b->mode == PROBE_RTT)
		return bdp_bytes(b, UNIT / 2);
	if (b->rivals)
		return bdp_bytes(b, GAIN_QUEUED) + extra + b->rival_bytes;
	if (!b->queued)
		return free_cwnd(b);
	/* The same extra for all flows lets smaller ones grow */
	if (!b->futile)
		return bdp_bytes(b, GAIN_QUEUED) + extra;
	return bytes_in(b, b->mode == PROBE_UP ?
			b->queued_rtt / UNIT * GAIN_UP : b->queued_rtt) + extra;
}

static void set_cwnd(struct dblp_cc *cc, const struct bdp *b, u32 acked)
{
	u64 target = target_cwnd(cc, b), cwnd = (u64)cc->cwnd + acked;

	if (b->mode == STARTUP)
		target = max_t(u64, target, cc->cwnd);
	cwnd = max(min(cwnd, target), floor_bytes(cc, b));
	cc->cwnd = min_t(u64, cwnd, S32_MAX);
}

/* After a pause, the rate from before it is out of date */
static void bdp_sent(struct dblp_cc *cc, u32 inflight, u64 now)
{
	struct bdp *b = model(cc);
	u64 rate;

	if (inflight || b->mode != PROBE_CRUISE || b->crowded ||
	    now - b->acked_at < b->min_rtt)
		return;
	enter(b, PROBE_UP);
	rate = send_rate(b, max_bw(b), GAIN_UP);
	cc->pacing_rate = max(cc->pacing_rate, rate);
}

/* The model is still updated, though samples of single packets tell little */
static void follow_crowd(struct dblp_cc *cc, struct bdp *b)
{
	b->crowded = true;
	cc->pacing_rate = cc->crowd.rate;
	cc->cwnd = 2 * (cc->crowd.wnd + cc->mss);
}

/* Other senders have ended: there is more bandwidth for us */
static void leave_crowd(struct dblp_cc *cc, struct bdp *b)
{
	b->crowded = false;
	b->filled = true;
	b->bw[b->slot] = max(b->bw[b->slot], cc->crowd.rate);
	enter(b, PROBE_UP);
}

static void bdp_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		    const struct dblp_rtt *rtt)
{
	struct bdp *b = model(cc);

	b->acked_at = rs->now;
	b->round_acked += rs->acked;
	b->round_lost += rs->lost;
	update_min_rtt(b, rs, rtt);
	update_bw(b, rs);
	dblp_bunch_ack(&b->bunch, rs, max_bw(b), cc->cwnd);
	if (b->mode == PROBE_UP && b->mode_rounds && is_queue(b, rs->rtt))
		enter(b, PROBE_DOWN);
	if (round_is_over(b, rs))
		next_round(cc, b, rs);
	if ((b->mode == DRAIN || b->mode == PROBE_DOWN) &&
	    rs->inflight <= drained_bytes(cc, b))
		enter(b, PROBE_CRUISE);
	if (b->mode != PROBE_RTT && b->min_rtt &&
	    rs->now - b->min_rtt_at > MIN_RTT_WINDOW_NS)
		enter(b, PROBE_RTT);
	if (dblp_crowd_ack(&cc->crowd, rs, b->min_rtt)) {
		follow_crowd(cc, b);
		return;
	}
	if (b->crowded)
		leave_crowd(cc, b);
	set_pacing_rate(cc, b, rtt);
	set_cwnd(cc, b, rs->acked);
}

static u64 bdp_resume(struct dblp_cc *cc, u64 now)
{
	struct bdp *b = model(cc);
	u64 wait;

	wait = dblp_crowd_resume(&cc->crowd, dblp_cc_random(&b->random), now);
	if (wait)
		follow_crowd(cc, b);
	return wait;
}

/* There are no ACKs: the model does not hold now */
static void bdp_timeout(struct dblp_cc *cc, u32 count, u64 now)
{
	if (count >= 2)
		cc->cwnd = FLOOR_PKTS * cc->mss;
}

static const char *const bdp_modes[] = {
	[STARTUP]	= "startup",
	[DRAIN]		= "drain",
	[PROBE_UP]	= "probe-up",
	[PROBE_DOWN]	= "probe-down",
	[PROBE_CRUISE]	= "cruise",
	[PROBE_RTT]	= "probe-rtt",
};

static const char *bdp_mode(struct dblp_cc *cc)
{
	const struct bdp *b = model(cc);

	return b->crowded ? "crowd" : bdp_modes[b->mode];
}

const struct dblp_cc_ops dblp_cc_bdp = {
	.name		= "bdp",
	.init		= bdp_init,
	.take		= bdp_take,
	.sent		= bdp_sent,
	.resume		= bdp_resume,
	.ack		= bdp_ack,
	.timeout	= bdp_timeout,
	.mode		= bdp_mode,
};
