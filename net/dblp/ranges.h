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

/**
 * struct dblp_ranges - packet numbers received, by rising number
 * @floor: smaller numbers count as received: their ranges were dropped
 * @n: ranges in use
 * @r: the ranges, both ends included, never touching each other
 */
struct dblp_ranges {
	u64	floor;
	u32	n;
	struct dblp_pn_range {
		u64	first;
		u64	last;
	} r[DBLP_RANGES_MAX];
};

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
