/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of packet numbers received: tells new packets from duplicates and
 * feeds the ACK frames.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_RANGES_H
#define _NET_DBLP_RANGES_H

#include <linux/types.h>

#define DBLP_RANGES_MAX		64
/* Packet numbers; more than a sender can have outstanding */
#define DBLP_RANGES_SPAN	65536U
#define DBLP_RANGES_FEW		4	/* enough without losses */
#define DBLP_RANGES_SIZE	(DBLP_RANGES_MAX * sizeof(struct dblp_pn_range))

/** struct dblp_pn_range - packet numbers, both ends included */
struct dblp_pn_range {
	u64	first;
	u64	last;
};

/**
 * struct dblp_ranges - packet numbers received, by rising number
 *
 * A missing number separates two ranges, whether its packet was lost or the
 * sender skipped it. To bound the cost, a range is dropped when all of it is
 * %DBLP_RANGES_SPAN below the largest number.
 *
 * @floor: smaller numbers count as received, because their ranges were dropped
 * @n: ranges in use
 * @room: ranges that @r can hold
 * @r: the ranges; a gap separates each two
 * @few: initial memory of @r
 */
struct dblp_ranges {
	u64			floor;
	u32			n;
	u32			room;
	struct dblp_pn_range	*r;
	struct dblp_pn_range	few[DBLP_RANGES_FEW];
};

/** dblp_ranges_init() - make a set empty; it must not move in memory */
void dblp_ranges_init(struct dblp_ranges *s);

/** dblp_ranges_crowded() - must the caller call dblp_ranges_grow()? */
static inline bool dblp_ranges_crowded(const struct dblp_ranges *s)
{
	return s->n == s->room && s->room < DBLP_RANGES_MAX;
}

/**
 * dblp_ranges_grow() - give a set room for DBLP_RANGES_MAX ranges
 * @s: a set that has not grown yet
 * @mem: DBLP_RANGES_SIZE bytes. The caller frees @r of a set that is not used
 *	any more, unless @r is @few
 *
 * Growing is optional: a small set drops its lowest range sooner.
 */
void dblp_ranges_grow(struct dblp_ranges *s, struct dblp_pn_range *mem);

/**
 * dblp_ranges_add() - note that a packet has arrived
 * @s: the set; when it is full its lowest range is dropped to make room
 * @pn: packet number
 *
 * Return: true if @pn is new, false if it is in the set or below @floor.
 */
bool dblp_ranges_add(struct dblp_ranges *s, u64 pn);

/**
 * dblp_ranges_add_run() - note that a run of packets has arrived
 * @s: the set
 * @pn: number of the first packet, larger than all in the set
 * @n: number of packets
 */
void dblp_ranges_add_run(struct dblp_ranges *s, u64 pn, u32 n);

/** dblp_ranges_has() - has @pn arrived, or is it below @floor? */
bool dblp_ranges_has(const struct dblp_ranges *s, u64 pn);

#endif /* _NET_DBLP_RANGES_H */
