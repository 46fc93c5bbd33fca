/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: lanes of the elements of a vector, and the resulting steps.
 *
 * Pure: no sockets. The elements of a lane form a vector of their own, to which
 * the plan is applied, so they are divided among all ranks. Its steps are cut
 * where these elements are not contiguous, so that each step is a range of the
 * original vector. After MLT (NSDI 2024), which gives layers and magnitudes
 * different packet priorities.
 */
#ifndef DBLP_LANES_H
#define DBLP_LANES_H

#include "comm.h"

/**
 * struct dblp_layout - lanes, and the elements that each carries
 * @lane: the lanes
 * @lanes: their number, at least 1
 * @part: parts of a vector; NULL: lane 0 carries all elements
 * @parts: their number
 * @most: most elements of a step, those of a message; 0: no limit
 */
struct dblp_layout {
	const struct dblp_lane	*lane;
	uint32_t		lanes;
	const struct dblp_lane_part	*part;
	uint32_t		parts;
	uint64_t		most;
};

/** dblp_layout_plain - a single lane with defaults, for all elements */
extern const struct dblp_layout dblp_layout_plain;

/**
 * enum dblp_choice - elements of a step that a lane carries
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
 * struct dblp_way - lane of a step
 * @lane: the lane; for a local step, the lane of its elements
 * @choice: &enum dblp_choice
 * @goes_on: it continues the step before it, which had more than @most elements
 * @awaited: a send that ends when its messages are closed, because lanes with
 *	%DBLP_LANE_AFTER wait for it
 * @large: ppm: share of the elements that are large; 0: one lane carries all
 */
struct dblp_way {
	uint8_t		lane;
	uint8_t		choice;
	bool		goes_on;
	bool		awaited;
	uint32_t	large;
};

/**
 * dblp_lanes_check() - are these lanes valid?
 * @lane: the lanes
 * @n: their number
 *
 * Return: 0 or -EINVAL.
 */
int dblp_lanes_check(const struct dblp_lane *lane, uint32_t n);

/**
 * dblp_parts_check() - do these parts make up a vector?
 * @layout: parts and lanes
 * @count: elements of the vector
 *
 * Return: 0; -ENOENT if a lane does not exist; -EINVAL if parts are empty,
 * overlap, have gaps, or differ from @count in sum.
 */
int dblp_parts_check(const struct dblp_layout *layout, uint64_t count);

/**
 * dblp_layout_splits() - does a part use a lane that only carries large
 *	elements?
 * @layout: valid parts and lanes
 */
bool dblp_layout_splits(const struct dblp_layout *layout);

/**
 * dblp_layout_steps() - compute the steps of a rank
 * @plan: plan of the whole vector
 * @layout: valid parts and lanes
 * @step: filled with the first steps: by lane, and for each lane in the order
 *	of dblp_plan_steps(). A step with more than @most elements becomes several,
 *	so that a sum is sent as soon as its contributions have arrived, while
 *	others still arrive
 * @way: filled with the lane of each step
 * @room: entries of both, may be 0
 *
 * Return: number of steps, which may exceed @room; -EINVAL as
 * dblp_plan_steps(); -ENOMEM.
 */
ssize_t dblp_layout_steps(const struct dblp_plan *plan,
			  const struct dblp_layout *layout, struct dblp_step *step,
			  struct dblp_way *way, size_t room);

#endif /* DBLP_LANES_H */
