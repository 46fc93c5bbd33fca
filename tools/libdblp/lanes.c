// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Lanes and their steps: see lanes.h.
 */

#include "lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "libdblp.h"

static const struct dblp_lane plain;

const struct dblp_layout dblp_layout_plain = { .lane = &plain, .lanes = 1 };

static bool lane_good(const struct dblp_lane *lane, uint32_t n, uint32_t i)
{
	const struct dblp_lane *l = &lane[i];
	const uint32_t flags = DBLP_LANE_BUDGET | DBLP_LANE_POLICY |
			       DBLP_LANE_NOT_ECT | DBLP_LANE_AFTER;

	if (l->flags & ~flags || l->budget > DBLP_PPM ||
	    l->policy > DBLP_POLICY_EARLY || l->tos > 0xfc || l->tos % 4 ||
	    l->large >= DBLP_PPM || l->reserved ||
	    (l->flags & DBLP_LANE_AFTER && !i))
		return false;
	/* The lane for the other elements must not divide them again */
	return l->large ? l->rest < n && !lane[l->rest].large : !l->rest;
}

int dblp_lanes_check(const struct dblp_lane *lane, uint32_t n)
{
	uint32_t i;

	if (!n || n > DBLP_LANES_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (!lane_good(lane, n, i))
			return -EINVAL;
	return 0;
}

int dblp_parts_check(const struct dblp_layout *layout, uint64_t count)
{
	uint64_t at = 0;
	uint32_t i;

	if (!layout->part != !layout->parts)
		return -EINVAL;
	for (i = 0; i < layout->parts; i++) {
		const struct dblp_lane_part *p = &layout->part[i];

		if (p->lane >= layout->lanes)
			return -ENOENT;
		if (p->first != at || p->end <= at || p->reserved)
			return -EINVAL;
		at = p->end;
	}
	return count > DBLP_COUNT_MAX || (layout->parts && at != count) ? -EINVAL : 0;
}

bool dblp_layout_splits(const struct dblp_layout *layout)
{
	uint32_t i;

	for (i = 0; i < layout->parts; i++)
		if (layout->lane[layout->part[i].lane].large)
			return true;
	return !layout->parts && layout->lane[0].large;
}

/* Output array of steps; @n also counts steps beyond @room */
struct writer {
	const struct dblp_layout	*layout;
	struct dblp_step		*step;
	struct dblp_way			*way;
	size_t				room;
	size_t				n;
};

static void put_one(struct writer *w, const struct dblp_step *step,
		    const struct dblp_way *way)
{
	if (w->n < w->room) {
		w->step[w->n] = *step;
		w->way[w->n] = *way;
	}
	w->n++;
}

static void put(struct writer *w, const struct dblp_step *step, uint32_t lane,
		enum dblp_choice choice, uint32_t large)
{
	const uint64_t most = w->layout->most, end = step->offset + step->count;
	struct dblp_step piece = *step;
	struct dblp_way way = {
		.lane = (uint8_t)lane,
		.choice = (uint8_t)choice,
		.large = large,
	};

	for (; most && end - piece.offset > most; piece.offset += most) {
		piece.count = most;
		put_one(w, &piece, &way);
		way.goes_on = true;
	}
	piece.count = end - piece.offset;
	put_one(w, &piece, &way);
}

static bool is_contribution(const struct dblp_step *step)
{
	return !step->reliable && (step->op == DBLP_STEP_SEND ||
				   step->op == DBLP_STEP_ADD);
}

/*
 * Write a step, divided between two lanes if it carries contributions. Sums are
 * reliable and not divided
 */
static void put_ways(struct writer *w, const struct dblp_step *step,
		     uint32_t lane)
{
	const struct dblp_lane *l = &w->layout->lane[lane];

	if (!l->large || !is_contribution(step)) {
		put(w, step, lane, DBLP_CHOICE_ALL, 0);
		return;
	}
	put(w, step, lane, DBLP_CHOICE_LARGE, l->large);
	put(w, step, l->rest, DBLP_CHOICE_REST, l->large);
}

/*
 * A position in the vector of a lane: element @at of that vector is the first
 * one of part @part.
 */
struct place {
	uint32_t	part;
	uint64_t	at;
};

static uint64_t part_len(const struct dblp_lane_part *p, uint32_t lane)
{
	return p->lane == lane ? p->end - p->first : 0;
}

/*
 * Write a step of a lane's vector as contiguous pieces. Steps of a plan jump
 * back and forth, so the search starts from the last position, @from.
 */
static void put_pieces(struct writer *w, const struct dblp_step *step,
		       uint32_t lane, struct place *from)
{
	const struct dblp_lane_part *part = w->layout->part;
	uint64_t first = step->offset, end = first + step->count;
	struct dblp_step piece = *step;
	struct place p = *from;

	while (p.at > first)
		p.at -= part_len(&part[--p.part], lane);
	while (p.at + part_len(&part[p.part], lane) <= first)
		p.at += part_len(&part[p.part++], lane);
	*from = p;
	for (; first < end; p.at += part_len(&part[p.part++], lane)) {
		uint64_t len = part_len(&part[p.part], lane);

		if (!len)
			continue;
		piece.offset = part[p.part].first + first - p.at;
		piece.count = p.at + len < end ? p.at + len - first : end - first;
		put_ways(w, &piece, lane);
		first += piece.count;
	}
}

static void put_lane(struct writer *w, const struct dblp_step *step, size_t n,
		     uint32_t lane)
{
	struct place from = { 0 };
	size_t i;

	for (i = 0; i < n; i++)
		if (w->layout->parts)
			put_pieces(w, &step[i], lane, &from);
		else
			put_ways(w, &step[i], lane);
}

/* Number of elements in the vector of a lane */
static uint64_t lane_count(const struct dblp_layout *layout, uint64_t count,
			   uint32_t lane)
{
	uint64_t n = 0;
	uint32_t i;

	if (!layout->parts)
		return lane ? 0 : count;
	for (i = 0; i < layout->parts; i++)
		n += part_len(&layout->part[i], lane);
	return n;
}

static int plan_lane(struct writer *w, const struct dblp_plan *whole,
		     uint32_t lane)
{
	struct dblp_plan plan = *whole;
	struct dblp_step *step;
	ssize_t n;

	plan.count = lane_count(w->layout, whole->count, lane);
	n = dblp_plan_steps(&plan, NULL, 0);
	if (n <= 0)
		return (int)n;
	step = calloc((size_t)n, sizeof(*step));
	if (!step)
		return -ENOMEM;
	dblp_plan_steps(&plan, step, (size_t)n);
	put_lane(w, step, (size_t)n, lane);
	free(step);
	return 0;
}

ssize_t dblp_layout_steps(const struct dblp_plan *plan,
			  const struct dblp_layout *layout, struct dblp_step *step,
			  struct dblp_way *way, size_t room)
{
	struct writer w = {
		.layout = layout, .step = step, .way = way, .room = room,
	};
	uint32_t i;
	int err = 0;

	for (i = 0; i < layout->lanes && !err; i++)
		err = plan_lane(&w, plan, i);
	return err ?: (ssize_t)w.n;
}
