/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packetization layer path MTU discovery, RFC 8899, for paths that drop ICMP.
 *
 * Unlike RFC 8899, it starts with the MTU of the route. It suspects a black
 * hole only when large packets are lost while small ones arrive. On most paths
 * the MTU of the route is right, and a connection of a millisecond has no time
 * to search.
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
#define DBLP_PMTU_STEP		8U	/* the search ends at this precision */
/* Timeouts in a row that make a sender suspect a black hole */
#define DBLP_PMTU_DOUBT		2U
/*
 * Rounds in a row that small packets must win: a false alarm has a probability
 * of 2^-20. DBLP_PMTU_PROBES further rounds need the loss of a large probe.
 */
#define DBLP_PMTU_PROOF		20U

/**
 * enum dblp_pmtu_state - phases of RFC 8899 section 5.2
 * @DBLP_PMTU_COMPLETE: @mtu is in use, without a search for a larger one
 * @DBLP_PMTU_SEARCH: probes larger than @mtu are being sent
 *
 * The RFC's BASE is either state with @suspected of &struct dblp_pmtu set; its
 * ERROR is either state with @lower set.
 */
enum dblp_pmtu_state {
	DBLP_PMTU_COMPLETE,
	DBLP_PMTU_SEARCH,
};

/**
 * struct dblp_pmtu - path MTU discovery on one path
 * @min: size that every path carries
 * @base: size that nearly every path carries; at least @min
 * @max: MTU of the route; at least @min
 * @mtu: PLPMTU: largest packet to be sent unfragmented
 * @high: smallest size above @mtu whose probes were lost, @max + 1 if none
 * @probe: size of the probe in flight, 0 if none
 * @large: size of the large probe that may be in flight at the same time, 0 if
 *	none
 * @tries: lost probes of the size being tried
 * @state: &enum dblp_pmtu_state
 * @suspected: a black hole is suspected: small probes are being sent
 * @lower: packets of @base seem to be black-holed too: @min is tried
 * @hole: size of the first of the large packets lost in a row, 0 if none; the
 *	loss of a smaller one does not count
 * @lost: number of large packets lost in a row
 * @rounds: rounds that small probes have won
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
	u32	large;
	u32	tries;
	u8	state;
	bool	suspected;
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
 * dblp_pmtu_init() - start path MTU discovery on an unknown path
 * @p: initialized here
 * @min: see &struct dblp_pmtu
 * @base: see &struct dblp_pmtu
 * @max: MTU of the route
 */
void dblp_pmtu_init(struct dblp_pmtu *p, u32 min, u32 base, u32 max);

/**
 * dblp_pmtu_route() - the MTU of the route has changed
 * @p: the path
 * @max: the MTU
 *
 * A smaller MTU is used at once. So is a larger one if the old MTU was in use;
 * else it is searched for.
 */
void dblp_pmtu_route(struct dblp_pmtu *p, u32 max);

/**
 * dblp_pmtu_next() - size of the probe to send now
 * @p: the path
 * @now: the time
 *
 * Return: the size, 0 for none. The probe is in flight until it is acknowledged
 * or lost, or dblp_pmtu_unsent() is called.
 */
u32 dblp_pmtu_next(struct dblp_pmtu *p, u64 now);
/** dblp_pmtu_unsent() - the probe of @size bytes could not be sent */
void dblp_pmtu_unsent(struct dblp_pmtu *p, u32 size);

/**
 * dblp_pmtu_acked() - a packet arrived
 * @p: the path
 * @size: its size; it was sent whole
 * @probe: it was a probe
 * @now: the time
 */
void dblp_pmtu_acked(struct dblp_pmtu *p, u32 size, bool probe, u64 now);

/** dblp_pmtu_lost() - a packet was declared lost; as dblp_pmtu_acked() */
void dblp_pmtu_lost(struct dblp_pmtu *p, u32 size, bool probe, u64 now);

/** dblp_pmtu_timeout() - @count probe timeouts have expired in a row */
void dblp_pmtu_timeout(struct dblp_pmtu *p, u32 count);

/** dblp_pmtu_known() - is no probe needed? */
static inline bool dblp_pmtu_known(const struct dblp_pmtu *p)
{
	return p->mtu == p->max && !p->suspected;
}

/** dblp_pmtu_quiet() - does the outcome of small packets not matter? */
static inline bool dblp_pmtu_quiet(const struct dblp_pmtu *p)
{
	return !p->hole && !p->suspected;
}

#endif /* _NET_DBLP_PMTU_H */
