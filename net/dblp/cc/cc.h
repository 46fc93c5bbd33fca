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

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "../core/recovery.h"

struct dblp_cc;

/**
 * struct dblp_cc_ops - one congestion control
 * @name: at most DBLP_CC_NAME_MAX - 1 characters
 * @init: start on a path whose packets carry @mss bytes
 * @resume: there is a message to send, and no other is left; returns how many
 *	nanoseconds the first packet should wait; optional
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
 * @senders: to the same receiver, itself included, as it has said; 0: it has not
 * @holding: amid a burst of losses that it bears, see dblp_cc_pto()
 * @priv: for @ops
 */
struct dblp_cc {
	const struct dblp_cc_ops	*ops;
	u32				mss;
	u32				cwnd;
	u64				pacing_rate;
	u32				senders;
	bool				holding;
	u64				priv[46];
};

/**
 * enum dblp_cc_limits - what all controls have in common
 * @DBLP_CC_INITIAL_PKTS: packets of the window
 * @DBLP_CC_INITIAL_HZ: so often a second it may be sent, until the first ACK
 * @DBLP_CC_PTO_GAPS: packets that the pacer would send before a probe is
 * @DBLP_CC_SILENT_PKTS: packets that are sent without an ACK besides the window
 * @DBLP_CC_HELD_PROBES: probes amid a burst at the pacer's rate
 */
enum dblp_cc_limits {
	DBLP_CC_INITIAL_PKTS	= 10,
	DBLP_CC_INITIAL_HZ	= 1000,
	DBLP_CC_PTO_GAPS	= 3,
	DBLP_CC_SILENT_PKTS	= 32,
	DBLP_CC_HELD_PROBES	= 64,
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

/**
 * dblp_pace_next() - when the pacer lets the next packet go
 * @at: when it let this one go
 * @now: the time; this one may be late, or ahead
 * @bytes: of this one, or of a train
 * @rate: bytes per second, at least 1
 * @late: nanoseconds by which a timer of the pacer was late; less what this one
 *	makes up for: it is sent at twice the rate at most, as by TCP
 *
 * Return: nanoseconds of the clock of @now.
 */
static inline u64 dblp_pace_next(u64 at, u64 now, u32 bytes, u64 rate,
				 u64 *late)
{
	u64 time = div64_u64(bytes * 1000000000ULL, rate);
	u64 less = min(time / 2, *late);

	*late -= less;
	return max(at, now) + time - less;
}

/**
 * dblp_cc_gap() - how long a full packet keeps the pacer
 * @cc: the congestion control
 *
 * Return: nanoseconds, 0 if there is no pacer.
 */
static inline u64 dblp_cc_gap(const struct dblp_cc *cc)
{
	return cc->pacing_rate ?
	       div64_u64(cc->mss * 1000000000ULL, cc->pacing_rate) : 0;
}

/**
 * dblp_cc_pto() - a probe timeout that does not go round the pacer
 * @cc: the congestion control
 * @rtt: round-trip time so far
 * @max_ack_delay: see dblp_pto()
 * @count: probe timeouts since the last ACK
 * @silence: see dblp_pto()
 *
 * A hundred flows with less than a packet in flight each are slow because the
 * path is full. Probes sooner than their pacers send would be most of the load,
 * where the control itself does not keep a part of the queue free for them.
 * Amid a burst that it bears, ACKs come at once, as packets are missing: the first
 * probe waits neither for a delayed one nor for a timer's granularity, and others
 * follow at the pacer's rate: to back off would end the message much later than the
 * burst has to. Where one of ten packets arrives, no answer to all of them is one
 * case in a thousand; then they become fewer as the silence lasts.
 *
 * Return: nanoseconds, not less than DBLP_CC_PTO_GAPS packets take the pacer.
 */
u64 dblp_cc_pto(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		u64 max_ack_delay, u32 count, u64 silence);

/**
 * dblp_cc_probes() - packets that a probe timeout may send
 * @cc: the congestion control
 * @rtt: round-trip time so far
 * @count: probe timeouts since the last ACK
 *
 * Return: two as in RFC 9002 section 6.2.4; one if no more than that leaves in a
 * round trip, or if neither the first nor the second time brought an answer.
 */
u32 dblp_cc_probes(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u32 count);

/**
 * dblp_cc_window() - how much may be in flight now
 * @cc: the congestion control
 * @rtt: round-trip time so far
 * @heard: when the last ACK came, or since when one is waited for
 * @now: the time
 *
 * Where most packets are lost, so are most ACKs, and who waits for each sends next
 * to nothing. So packets go on at the pacer's rate after a round trip without any,
 * for DBLP_CC_SILENT_PKTS packets; then there are probes only.
 *
 * Return: bytes.
 */
u64 dblp_cc_window(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u64 heard, u64 now);

/**
 * dblp_cc_opens_at() - when dblp_cc_window() has room for a packet more
 * @cc: the congestion control
 * @rtt: round-trip time so far
 * @heard: see there
 * @inflight: bytes in flight
 *
 * Return: the time, U64_MAX if only an ACK makes room.
 */
u64 dblp_cc_opens_at(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		     u64 heard, u32 inflight);

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
 * @now: the time
 *
 * A control that shares its functions with the previous one keeps all that was
 * learned. Otherwise a user who switches all the time would never respond to the
 * path, and take the share of others. Any other control starts from nothing.
 */
void dblp_cc_switch(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u64 now);

/* By the queue's own delay, loss and marks */
extern const struct dblp_cc_ops dblp_cc_sqrt;
/* The same where up to half of the packets may be lost for other reasons */
extern const struct dblp_cc_ops dblp_cc_lossy;

#endif /* _NET_DBLP_CC_H */
