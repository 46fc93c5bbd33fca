/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion control: how many bytes may be in flight and how fast they leave.
 *
 * A controller is a table of functions with private memory. Events are passed to it,
 * and it sets @cwnd and @pacing_rate; it neither sends nor sets timers. Pure: see
 * wire.h.
 */
#ifndef _NET_DBLP_CC_H
#define _NET_DBLP_CC_H

#include <linux/types.h>

#include "crowd.h"
#include "../core/recovery.h"

struct dblp_cc;

/**
 * struct dblp_cc_ops - one congestion control
 * @name: at most DBLP_CC_NAME_MAX - 1 characters
 * @init: start on a path whose packets carry @mss bytes
 * @sent: a packet is about to be sent with @inflight bytes in flight before it;
 *	optional
 * @take: after @init: go on from @rate, bytes a second, that another control had
 *	reached; optional
 * @resume: there is something to send after a pause in which nothing was in
 *	flight; returns how many nanoseconds the first packet should wait;
 *	optional
 * @ack: an ACK arrived
 * @mode: what it is doing at the moment, in a word
 * @timeout: a probe timeout expired, @count in a row; optional
 * @ecn: it reacts to @ce of &struct dblp_rate_sample: data may be marked ECT(0)
 *
 * All are called with the socket locked. None may fail.
 */
struct dblp_cc_ops {
	const char *name;
	void (*init)(struct dblp_cc *cc, u32 mss, u64 now);
	void (*sent)(struct dblp_cc *cc, u32 inflight, u64 now);
	void (*take)(struct dblp_cc *cc, u64 rate, const struct dblp_rtt *rtt);
	u64 (*resume)(struct dblp_cc *cc, u64 now);
	void (*ack)(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		    const struct dblp_rtt *rtt);
	void (*timeout)(struct dblp_cc *cc, u32 count, u64 now);
	const char *(*mode)(struct dblp_cc *cc);
	bool ecn;
};

/**
 * struct dblp_cc - the congestion control of one connection
 * @ops: which
 * @mss: bytes of a full packet, UDP payload
 * @cwnd: bytes that may be in flight, at least two packets
 * @pacing_rate: bytes a second, 0 means as fast as @cwnd allows
 * @crowd: others who send to the same receiver
 * @priv: for @ops
 */
struct dblp_cc {
	const struct dblp_cc_ops	*ops;
	u32				mss;
	u32				cwnd;
	u64				pacing_rate;
	struct dblp_crowd		crowd;
	u64				priv[40];
};

/**
 * enum dblp_cc_limits - what every control begins with
 * @DBLP_CC_INITIAL_PKTS: packets of the window
 * @DBLP_CC_INITIAL_HZ: so often a second it may be sent, until the first ACK
 */
enum dblp_cc_limits {
	DBLP_CC_INITIAL_PKTS	= 10,
	DBLP_CC_INITIAL_HZ	= 1000,
};

/**
 * dblp_cc_random() - next number of a generator (Numerical Recipes, ranqd1)
 * @state: of the generator; pure code has no other
 *
 * Return: the number; its upper bits are the better ones.
 */
static inline u32 dblp_cc_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state;
}

/** dblp_cc_find() - controller by name, NULL if there is none */
const struct dblp_cc_ops *dblp_cc_find(const char *name);
/** dblp_cc_at() - the @i-th controller, NULL past the last; 0 is the default */
const struct dblp_cc_ops *dblp_cc_at(u32 i);
/** dblp_cc_start() - begin with @ops, keeping nothing of an earlier one */
void dblp_cc_start(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u32 mss,
		   u64 now);

/**
 * dblp_cc_switch() - change to @ops amid a connection
 * @cc: the congestion control
 * @ops: which; nothing happens if it is that already
 * @rtt: round-trip time so far
 * @now: the time
 *
 * Window and rate go on from where they are; what else was learned is lost.
 */
void dblp_cc_switch(struct dblp_cc *cc, const struct dblp_cc_ops *ops,
		    const struct dblp_rtt *rtt, u64 now);

/* Delay- and rate-based after BBR: random loss is not congestion */
extern const struct dblp_cc_ops dblp_cc_bdp;
/* By delay and ECN marks, after Swift and DCTCP */
extern const struct dblp_cc_ops dblp_cc_swift;

#endif /* _NET_DBLP_CC_H */
