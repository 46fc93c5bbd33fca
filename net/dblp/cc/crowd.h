/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Incast: many senders and one receiver, where each sender has room for less than a
 * few packets in the switch's queue. See crowd.c.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_CC_CROWD_H
#define _NET_DBLP_CC_CROWD_H

#include <linux/types.h>

#include "../core/recovery.h"

struct dblp_cc;

/**
 * struct dblp_crowd - senders to one receiver, as known to one of them
 * @n: number of senders, itself included, as the receiver reported last
 * @peak: largest @n since the last pause
 * @before: @peak before that pause
 * @mss: bytes of a packet
 * @wnd: bytes that may be in flight on average, perhaps less than a packet
 * @rate: bytes a second
 * @fair: bytes a second that arrived while nearly all senders were sending
 * @least: limit to which @fair may fall until the next pause
 * @hold: until this time @before counts as well: not all senders have begun yet
 * @from: bytes acknowledged when the measurement of @fair began, 0: not yet
 * @from_at: when the measurement of @fair began
 */
struct dblp_crowd {
	u16	n;
	u16	peak;
	u16	before;
	u32	mss;
	u32	wnd;
	u64	rate;
	u64	fair;
	u64	least;
	u64	hold;
	u64	from;
	u64	from_at;
};

/**
 * dblp_crowd_ack() - an ACK arrived
 * @c: crowd
 * @rs: its rate sample
 * @min_rtt: propagation delay in nanoseconds, 0 if unknown
 *
 * Return: true if there is a crowd: then use @rate and @wnd.
 */
bool dblp_crowd_ack(struct dblp_crowd *c, const struct dblp_rate_sample *rs,
		    u64 min_rtt);

/**
 * dblp_crowd_resume() - sending goes on after a pause
 * @c: crowd
 * @random: any number
 * @now: the time
 *
 * Return: nanoseconds that the first packet should wait, so that the first packets
 * of all senders are spread. If not 0, begin with @rate.
 */
u64 dblp_crowd_resume(struct dblp_crowd *c, u32 random, u64 now);

#endif /* _NET_DBLP_CC_CROWD_H */
