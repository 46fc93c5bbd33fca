/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delay not caused by a queue: see noise.c.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_CC_NOISE_H
#define _NET_DBLP_CC_NOISE_H

#include <linux/types.h>

#include "../core/recovery.h"

/* Less delay than this is noise of timers and interrupts */
#define DBLP_NOISE_NS		200000ULL

/**
 * struct dblp_noise - variation of round-trip times
 * @lowest: lowest round-trip time of this span, U64_MAX before the first
 * @sum: sum of the round-trip times in this span
 * @n: number of round-trip times in this span
 * @spans: spans in a row in which they varied more than with a queue; once noise is
 *	known, as many spans without it are ignored
 * @varied: they varied in the last span, queue or not
 * @acked: bytes acknowledged in this span
 * @span_rtt: lowest round-trip time of the last span, U64_MAX if it had none
 * @excess: nanoseconds of delay not caused by a queue
 */
struct dblp_noise {
	u64	lowest;
	u64	sum;
	u32	n;
	u8	spans;
	bool	varied;
	u64	acked;
	u64	span_rtt;
	u64	excess;
};

/**
 * enum dblp_span - state of a span at the end of a round trip
 * @DBLP_SPAN_GOES_ON: it has too few packets to judge
 * @DBLP_SPAN_ENDS: it is over, @span_rtt is its lowest round-trip time
 * @DBLP_SPAN_NOISE: it is over, and new noise was found: past judgments of queues
 *	were wrong
 */
enum dblp_span {
	DBLP_SPAN_GOES_ON,
	DBLP_SPAN_ENDS,
	DBLP_SPAN_NOISE,
};

/** dblp_is_longer() - is round-trip time @rtt clearly longer than @base? */
static inline bool dblp_is_longer(u64 rtt, u64 base)
{
	return rtt > base + base / 8 + DBLP_NOISE_NS;
}

/** dblp_noise_init() - begin on an unknown path */
void dblp_noise_init(struct dblp_noise *n);
/** dblp_noise_sample() - take a round-trip time in nanoseconds */
void dblp_noise_sample(struct dblp_noise *n, u64 rtt);

/**
 * dblp_noise_round() - a round trip is over
 * @n: noise
 * @mss: bytes of a packet
 * @acked: bytes acknowledged in it
 * @min_rtt: propagation delay in nanoseconds
 */
enum dblp_span dblp_noise_round(struct dblp_noise *n, u32 mss, u64 acked,
				u64 min_rtt);

/**
 * struct dblp_bunch - ACKs that come in bunches
 * @at: when this bunch began
 * @acked: bytes acknowledged since @at
 * @most: bytes beyond the rate, in the last @rounds and in BUNCH_ROUNDS before
 * @rounds: rounds of the first of these
 */
struct dblp_bunch {
	u64	at;
	u64	acked;
	u32	most[2];
	u32	rounds;
};

/**
 * dblp_bunch_ack() - an ACK arrived
 * @b: bunch
 * @rs: its rate sample
 * @rate: bytes a second that the path delivers
 * @cwnd: bytes that may be in flight
 */
void dblp_bunch_ack(struct dblp_bunch *b, const struct dblp_rate_sample *rs,
		    u64 rate, u32 cwnd);
/** dblp_bunch_round() - a round trip is over */
void dblp_bunch_round(struct dblp_bunch *b);
/** dblp_bunch_bytes() - additional bytes that must be in flight */
u32 dblp_bunch_bytes(const struct dblp_bunch *b);

#endif /* _NET_DBLP_CC_NOISE_H */
