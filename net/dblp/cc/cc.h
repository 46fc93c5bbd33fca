/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion control: how many bytes may be in flight, and the rate at which
 * they are sent.
 *
 * A congestion control is a table of functions with private memory. It gets
 * events and sets @cwnd and @pacing_rate; it sends no packets and sets no
 * timers. Pure: see wire.h.
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
 * @resume: a message is queued on an idle connection; returns the delay of its
 *	first packet in nanoseconds; optional
 * @ack: an ACK arrived
 * @mode: present state in one word, for users
 * @timeout: a probe timeout expired, @count in a row; @acked_at: see
 *	dblp_cc_window(); optional
 * @ecn: the control responds to @ce of &struct dblp_rate_sample, so data may be
 *	marked ECT(0)
 *
 * All functions are called with the socket locked. None may fail.
 */
struct dblp_cc_ops {
	const char *name;
	void (*init)(struct dblp_cc *cc, u32 mss, u64 now);
	u64 (*resume)(struct dblp_cc *cc, u64 now);
	void (*ack)(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		    const struct dblp_rtt *rtt);
	void (*timeout)(struct dblp_cc *cc, u32 count, u64 acked_at, u64 now);
	const char *(*mode)(struct dblp_cc *cc);
	bool ecn;
};

/**
 * struct dblp_cc - the congestion control of one connection
 * @ops: functions of the congestion control
 * @mss: UDP payload of a full packet, bytes
 * @cwnd: bytes that may be in flight, at least one packet
 * @pacing_rate: bytes a second, 0 means as fast as @cwnd allows
 * @senders: connections that send to the same receiver, including this one, as
 *	the receiver reports; 0 if unknown
 * @holding: the control keeps its window during a burst of losses, see
 *	dblp_cc_pto()
 * @priv: private memory of @ops
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
 * enum dblp_cc_limits - constants of all congestion controls
 * @DBLP_CC_INITIAL_PKTS: initial window, packets
 * @DBLP_CC_INITIAL_HZ: initial windows sent per second before the first ACK
 * @DBLP_CC_PTO_GAPS: lower bound of a probe timeout, packet intervals of the
 *	pacer
 * @DBLP_CC_SILENT_PKTS: packets that may be sent beyond the window without an
 *	ACK
 * @DBLP_CC_HELD_PROBES: probes at the pacer's rate during a burst of losses
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
 * @state: state of the generator
 *
 * Pure code cannot use the kernel's generators.
 *
 * Return: the number; its upper bits are more random than its lower ones.
 */
static inline u32 dblp_cc_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state;
}

/**
 * dblp_pace_next() - when the pacer allows the next packet
 * @at: when the pacer allowed this packet
 * @now: the time, which may be before or after @at
 * @bytes: bytes of this packet or train
 * @rate: bytes per second, at least 1
 * @late: nanoseconds by which a timer of the pacer was late. The next packet
 *	makes up for up to half of its own time, as with TCP, and @late is
 *	reduced by that
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
 * dblp_cc_gap() - time from one full packet to the next at the pacing rate
 * @cc: the congestion control
 *
 * Return: nanoseconds, 0 if @pacing_rate is 0.
 */
static inline u64 dblp_cc_gap(const struct dblp_cc *cc)
{
	return cc->pacing_rate ?
	       div64_u64(cc->mss * 1000000000ULL, cc->pacing_rate) : 0;
}

/**
 * dblp_cc_pto() - probe timeout, not shorter than the pacer's interval
 * @cc: the congestion control
 * @rtt: round-trip time estimator
 * @max_ack_delay: see dblp_pto()
 * @count: probe timeouts since the last ACK
 * @silence: see dblp_pto()
 *
 * A hundred flows with less than a packet in flight each are slow because the
 * path is full. Probes at shorter intervals than the pacer's would then be most
 * of the load.
 *
 * During a burst of losses the window is held (@holding). ACKs are not delayed
 * then, because packets are missing. So the first probe waits neither for a
 * delayed ACK nor for the timer's granularity. Further probes follow at the
 * pacer's rate: with a backoff, the message would end long after the burst. If
 * one of ten packets arrives, DBLP_CC_HELD_PROBES probes stay without an answer
 * once in a thousand bursts. After them the probes become rarer.
 *
 * Return: nanoseconds, at least DBLP_CC_PTO_GAPS intervals of the pacer.
 */
u64 dblp_cc_pto(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		u64 max_ack_delay, u32 count, u64 silence);

/**
 * dblp_cc_probes() - packets that a probe timeout may send
 * @cc: the congestion control
 * @rtt: round-trip time estimator
 * @count: probe timeouts since the last ACK
 *
 * Return: two as in RFC 9002 section 6.2.4; one if the pacer sends fewer than
 * two packets in a round trip, or after two timeouts without an ACK.
 */
u32 dblp_cc_probes(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u32 count);

/**
 * dblp_cc_window() - bytes that may be in flight now
 * @cc: the congestion control
 * @rtt: round-trip time estimator
 * @acked_at: arrival time of the last ACK, or time since when one is awaited
 * @now: the time
 *
 * On a path that loses most packets, most ACKs are lost too, and a sender that
 * waits for them sends next to nothing. So after a round trip without an ACK
 * the window grows at the pacing rate, by DBLP_CC_SILENT_PKTS packets. After
 * these, only probes are sent.
 *
 * Return: bytes.
 */
u64 dblp_cc_window(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		   u64 acked_at, u64 now);

/**
 * dblp_cc_opens_at() - when dblp_cc_window() has room for another packet
 * @cc: the congestion control
 * @rtt: round-trip time estimator
 * @acked_at: see dblp_cc_window()
 * @inflight: bytes in flight
 *
 * Return: the time, U64_MAX if only an ACK can make room.
 */
u64 dblp_cc_opens_at(const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		     u64 acked_at, u32 inflight);

/** dblp_cc_find() - congestion control by name, NULL if unknown */
const struct dblp_cc_ops *dblp_cc_find(const char *name);
/** dblp_cc_at() - control number @i, NULL after the last; 0 is the default */
const struct dblp_cc_ops *dblp_cc_at(u32 i);
/** dblp_cc_start() - start @ops from its initial state */
void dblp_cc_start(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u32 mss,
		   u64 now);

/**
 * dblp_cc_switch() - change the congestion control of a connection
 * @cc: the congestion control
 * @ops: the new one
 * @now: the time
 *
 * If the new control has the functions of the previous one, it keeps all state.
 * Otherwise a program that switches all the time would never respond to
 * congestion, and take the share of other flows. Any other control starts from
 * its initial state.
 */
void dblp_cc_switch(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u64 now);

/* Responds to queueing delay, loss and CE marks */
extern const struct dblp_cc_ops dblp_cc_sqrt;
/* The same for paths that lose up to half of the packets without congestion */
extern const struct dblp_cc_ops dblp_cc_lossy;

#endif /* _NET_DBLP_CC_H */
