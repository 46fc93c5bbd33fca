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
/* A sender forgets packets this far behind: it has no more outstanding */
#define DBLP_RANGES_SPAN	65536U
#define DBLP_RANGES_FEW		4	/* of a connection without losses */
#define DBLP_RANGES_SIZE	(DBLP_RANGES_MAX * sizeof(struct dblp_pn_range))

/** struct dblp_pn_range - packet numbers, both ends included */
struct dblp_pn_range {
	u64	first;
	u64	last;
};

/**
 * struct dblp_ranges - packet numbers received, by rising number
 *
 * A number that never comes separates two ranges, whether its packet was lost or
 * the sender skipped it. To bound the cost, a range is dropped when all of it is
 * %DBLP_RANGES_SPAN behind.
 *
 * @floor: smaller numbers count as received: their ranges were dropped
 * @n: ranges in use
 * @room: ranges that @r can hold
 * @r: the ranges, never touching each other
 * @few: where @r points at first
 */
struct dblp_ranges {
	u64			floor;
	u32			n;
	u32			room;
	struct dblp_pn_range	*r;
	struct dblp_pn_range	few[DBLP_RANGES_FEW];
};

/** dblp_ranges_init() - begin with an empty set; it must not move in memory */
void dblp_ranges_init(struct dblp_ranges *s);

/** dblp_ranges_crowded() - is it time for dblp_ranges_grow()? */
static inline bool dblp_ranges_crowded(const struct dblp_ranges *s)
{
	return s->n == s->room && s->room < DBLP_RANGES_MAX;
}

/**
 * dblp_ranges_grow() - give a set room for DBLP_RANGES_MAX ranges
 * @s: a set that has not grown yet
 * @mem: DBLP_RANGES_SIZE bytes; freed by the caller when @s is not used any more
 *	and its @r is not @few
 *
 * A set that is not grown only drops its lowest range sooner.
 */
void dblp_ranges_grow(struct dblp_ranges *s, struct dblp_pn_range *mem);

/**
 * dblp_ranges_add() - note that a packet has arrived
 * @s: the set; when it is full its lowest range is dropped to make room
 * @pn: packet number
 *
 * Return: true if @pn is new, false if it was there or is below the floor.
 */
bool dblp_ranges_add(struct dblp_ranges *s, u64 pn);

/**
 * dblp_ranges_add_run() - note that packets in a row have arrived
 * @s: the set
 * @pn: the first one's number, larger than all that arrived before
 * @n: how many
 */
void dblp_ranges_add_run(struct dblp_ranges *s, u64 pn, u32 n);

/** dblp_ranges_has() - has @pn arrived (or is it below the floor)? */
bool dblp_ranges_has(const struct dblp_ranges *s, u64 pn);

#endif /* _NET_DBLP_RANGES_H */
