/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: which elements of a vector go by which lane, and in which steps.
 *
 * Pure. The elements of a lane are a vector of their own, to which the plan is applied;
 * so each lane's are divided among all ranks. Its steps are cut where that vector is not
 * in one piece, so that each is a range of the whole one. After MLT (NSDI 2024), which
 * tells apart layers and magnitudes by the priority of packets.
 */
#ifndef DBLP_LANES_H
#define DBLP_LANES_H

#include "comm.h"

/**
 * struct dblp_layout - lanes, and what goes by them
 * @lane: the lanes
 * @lanes: their number, at least 1
 * @part: parts of a vector; NULL: all of it goes by lane 0
 * @parts: their number
 */
struct dblp_layout {
	const struct dblp_lane	*lane;
	uint32_t		lanes;
	const struct dblp_lane_part	*part;
	uint32_t		parts;
};

/** dblp_layout_plain - a lane, by which all goes */
extern const struct dblp_layout dblp_layout_plain;

/**
 * enum dblp_choice - which elements of a step go by a lane
 * @DBLP_CHOICE_ALL: all
 * @DBLP_CHOICE_LARGE: those that dblp_choose() finds to be large
 * @DBLP_CHOICE_REST: the others
 */
enum dblp_choice {
	DBLP_CHOICE_ALL,
	DBLP_CHOICE_LARGE,
	DBLP_CHOICE_REST,
};

/**
 * struct dblp_way - how a step travels
 * @lane: the lane; of a local step, that of its elements
 * @choice: &enum dblp_choice
 * @large: ppm: share of the elements that are large, unless all go by one lane
 */
struct dblp_way {
	uint8_t		lane;
	uint8_t		choice;
	uint32_t	large;
};

/**
 * dblp_lanes_check() - are these lanes?
 * @lane: the lanes
 * @n: their number
 *
 * Return: 0, -EINVAL.
 */
int dblp_lanes_check(const struct dblp_lane *lane, uint32_t n);

/**
 * dblp_parts_check() - are these parts a vector?
 * @layout: parts and lanes
 * @count: elements of the vector
 *
 * Return: 0; -ENOENT: there is no such lane; -EINVAL: they are empty, overlap, leave
 * elements out or have more.
 */
int dblp_parts_check(const struct dblp_layout *layout, uint64_t count);

/**
 * dblp_layout_splits() - does any part go by a lane that only takes what is large?
 * @layout: parts and lanes, which are good
 */
bool dblp_layout_splits(const struct dblp_layout *layout);

/**
 * dblp_layout_steps() - compute the steps of a rank
 * @plan: of the whole vector
 * @layout: its parts, which are good
 * @step: filled with the first steps, in the order of lanes, and of each one as
 *	dblp_plan_steps() has them
 * @way: the same
 * @room: entries of both, may be 0
 *
 * Return: number of steps, also if @room is less; -EINVAL as dblp_plan_steps(), -ENOMEM.
 */
ssize_t dblp_layout_steps(const struct dblp_plan *plan,
			  const struct dblp_layout *layout, struct dblp_step *step,
			  struct dblp_way *way, size_t room);

#endif /* DBLP_LANES_H */
