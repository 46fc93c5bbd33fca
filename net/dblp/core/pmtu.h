/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How large a packet may be: path MTU discovery at the packetization layer, RFC
 * 8899, for paths on which ICMP does not come back.
 *
 * Unlike there, it begins with what the route says and doubts that only when
 * large packets vanish while small ones arrive: where ICMP works, or nothing is
 * in the way, there is nothing to be found, and a connection of a millisecond
 * should not have to search for it.
 *
 * Sizes are those of IP packets, headers included. Pure: see wire.h. Times are
 * nanoseconds of one monotonic clock.
 */
#ifndef _NET_DBLP_PMTU_H
#define _NET_DBLP_PMTU_H

#include <linux/types.h>

#define DBLP_PMTU_BASE		1200U	/* RFC 8899 BASE_PLPMTU, for IPv4 */
#define DBLP_PMTU_MIN		576U	/* MIN_PLPMTU, for IPv4 */
#define DBLP_PMTU_PROBES	3U	/* MAX_PROBES */
#define DBLP_PMTU_RAISE_NS	(600ULL * 1000000000)	/* PMTU_RAISE_TIMER */
#define DBLP_PMTU_STEP		8U	/* not worth another probe */
/* Timeouts in a row that make a sender ask whether its size is the reason */
#define DBLP_PMTU_DOUBT		2U
/* Rounds in a row that small packets must win: one chance in a million */
#define DBLP_PMTU_PROOF		20U

/**
 * enum dblp_pmtu_state - phases of RFC 8899 section 5.2
 * @DBLP_PMTU_COMPLETE: @mtu is in use, nothing larger is looked for
 * @DBLP_PMTU_SEARCH: probes larger than @mtu are being sent
 *
 * BASE is a doubt in one of these (@doubt of &struct dblp_pmtu), ERROR a doubt
 * of the base (@lower).
 */
enum dblp_pmtu_state {
	DBLP_PMTU_COMPLETE,
	DBLP_PMTU_SEARCH,
};

/**
 * struct dblp_pmtu - what is known of one path
 * @min: every path takes this
 * @base: nearly every path takes this; at least @min
 * @max: what the route says; at least @min
 * @mtu: PLPMTU: largest packet to be sent whole
 * @high: smallest size above @mtu that did not pass, @max + 1 if none
 * @probe: size of the probe under way, 0 if none is
 * @tries: probes of one size that were lost
 * @state: &enum dblp_pmtu_state
 * @doubt: large packets seem to vanish: small probes are being sent
 * @lower: those of @base seem to vanish, too: @min is tried
 * @hole: smallest of the large packets lost in a row, 0 if none was
 * @lost: their number
 * @rounds: rounds that small probes have won meanwhile
 * @missed: small probes lost in a row
 * @large_lost: a large packet was lost in this round
 * @small_passed: the small probe of this round was acknowledged
 * @raise_at: when to search again
 */
struct dblp_pmtu {
	u32	min;
	u32	base;
	u32	max;
	u32	mtu;
	u32	high;
	u32	probe;
	u32	tries;
	u8	state;
	bool	doubt;
	bool	lower;
	u32	hole;
	u32	lost;
	u32	rounds;
	u32	missed;
	bool	large_lost;
	bool	small_passed;
	u64	raise_at;
};

/**
 * dblp_pmtu_init() - begin on a path that nothing is known of
 * @p: filled
 * @min: see &struct dblp_pmtu
 * @base: see &struct dblp_pmtu
 * @max: MTU of the route
 */
void dblp_pmtu_init(struct dblp_pmtu *p, u32 min, u32 base, u32 max);

/**
 * dblp_pmtu_route() - the MTU of the route is now another one
 * @p: the path
 * @max: the MTU
 *
 * A smaller one counts at once. So does a larger one, unless packets have
 * vanished below the old one: then it is searched for.
 */
void dblp_pmtu_route(struct dblp_pmtu *p, u32 max);

/**
 * dblp_pmtu_next() - the probe to be sent now
 * @p: the path
 * @now: the time
 *
 * Return: its size, 0 for none. It is under way until it is acknowledged or
 * lost, or dblp_pmtu_unsent() is called.
 */
u32 dblp_pmtu_next(struct dblp_pmtu *p, u64 now);
/** dblp_pmtu_unsent() - the probe could not be sent */
void dblp_pmtu_unsent(struct dblp_pmtu *p);

/**
 * dblp_pmtu_acked() - a packet arrived
 * @p: the path
 * @size: its size; it was sent whole
 * @probe: it was a probe
 * @now: the time
 */
void dblp_pmtu_acked(struct dblp_pmtu *p, u32 size, bool probe, u64 now);

/** dblp_pmtu_lost() - the same for a packet that was declared lost */
void dblp_pmtu_lost(struct dblp_pmtu *p, u32 size, bool probe, u64 now);

/** dblp_pmtu_timeout() - @count probe timeouts have expired in a row */
void dblp_pmtu_timeout(struct dblp_pmtu *p, u32 count);

/** dblp_pmtu_known() - is there nothing to be probed for? */
static inline bool dblp_pmtu_known(const struct dblp_pmtu *p)
{
	return p->mtu == p->max && !p->doubt;
}

/** dblp_pmtu_quiet() - is there no need to tell of small packets? */
static inline bool dblp_pmtu_quiet(const struct dblp_pmtu *p)
{
	return !p->hole && !p->doubt;
}

#endif /* _NET_DBLP_PMTU_H */
