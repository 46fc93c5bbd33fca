/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Many senders and one receiver, each with less room in the switch's queue than
 * a few packets: what a congestion control does then. See crowd.c.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_CC_CROWD_H
#define _NET_DBLP_CC_CROWD_H

#include <linux/types.h>

#include "../core/recovery.h"

struct dblp_cc;

/**
 * struct dblp_crowd - what one sender knows of the others
 * @n: how many there are, itself included, as the receiver said last
 * @peak: most of them since the last pause
 * @before: the same before that pause
 * @mss: bytes of a packet
 * @wnd: bytes that may be in flight on average, less than a packet perhaps
 * @rate: bytes a second
 * @fair: bytes a second that arrived while nearly all of them were sending
 * @least: how far @fair may fall until the next pause
 * @hold: until then @before counts as well: not all have begun yet
 * @from: bytes acknowledged when the measurement of @fair began, 0: not yet
 * @from_at: when that was
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
 * @rs: what it brought
 * @min_rtt: propagation delay in nanoseconds, 0 if unknown
 *
 * Return: whether there is a crowd. Then @rate and @wnd say what to do.
 */
bool dblp_crowd_ack(struct dblp_crowd *c, const struct dblp_rate_sample *rs,
		    u64 min_rtt);

/**
 * dblp_crowd_resume() - sending goes on after a pause
 * @c: crowd
 * @random: any number
 * @now: the time
 *
 * Return: nanoseconds that the first packet should wait, lest the first packets
 * of all come at once. If that is not 0, @rate is the one to begin with.
 */
u64 dblp_crowd_resume(struct dblp_crowd *c, u32 random, u64 now);

#endif /* _NET_DBLP_CC_CROWD_H */
