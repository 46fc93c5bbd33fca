// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Dependencies between the steps of a plan: a step waits for conflicting steps
 * of lower rounds, and a send by a lane with %DBLP_LANE_AFTER for those by lane 0
 * in its round. Lane 0 waits for lower rounds only, so no steps wait for each
 * other.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int get_steps(struct dblp_sched *s)
{
	ssize_t n = dblp_layout_steps(&s->plan, &s->layout, NULL, NULL, 0);

	if (n < 0)
		return (int)n;
	if (n > UINT32_MAX - 2)
		return -E2BIG;
	s->n = (uint32_t)n;
	s->step = calloc(s->n + 1, sizeof(*s->step));
	s->way = calloc(s->n + 1, sizeof(*s->way));
	s->waits = calloc(s->n + 1, sizeof(*s->waits));
	s->after = calloc(s->n + 2, sizeof(*s->after));
	if (!s->step || !s->way || !s->waits || !s->after)
		return -ENOMEM;
	n = dblp_layout_steps(&s->plan, &s->layout, s->step, s->way, s->n);
	return n < 0 ? (int)n : 0;
}

/*
 * Copy the parts, which belong to the program; lanes belong to the communicator
 */
static int copy_layout(struct dblp_sched *s, const struct dblp_layout *layout)
{
	struct dblp_lane_part *part = NULL;

	if (layout->parts) {
		part = calloc(layout->parts, sizeof(*part));
		if (!part)
			return -ENOMEM;
		memcpy(part, layout->part, layout->parts * sizeof(*part));
	}
	s->layout = *layout;
	s->layout.part = part;
	return 0;
}

/*
 * Boundaries of the steps' ranges divide the elements into intervals. A range
 * covers an interval completely or not at all. The steps of an interval, by
 * rising round, form groups of consecutive steps with one operation. Each step
 * waits for the group before its own, and thereby for all groups before.
 *
 * @bound: start of each interval, and the end of the last one
 * @n: number of @bound
 * @first: for each interval, index of its first entry in @cover
 * @cover: steps of each interval, in order
 * @edge: dependencies: first step << 32 | waiting step
 * @n_edges: number of @edge
 * @room: allocated entries of @edge
 */
struct order {
	uint64_t	*bound;
	size_t		n;
	size_t		*first;
	uint32_t	*cover;
	uint64_t	*edge;
	size_t		n_edges;
	size_t		room;
};

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t unique(uint64_t *v, size_t n)
{
	size_t i, k = 0;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare);
	for (i = 0; i < n; i++)
		if (!k || v[i] != v[k - 1])
			v[k++] = v[i];
	return k;
}

static int find_bounds(const struct dblp_sched *s, struct order *o)
{
	uint32_t i;

	o->bound = calloc((size_t)s->n * 2 + 1, sizeof(*o->bound));
	if (!o->bound)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		o->bound[2 * i] = s->step[i].offset;
		o->bound[2 * i + 1] = s->step[i].offset + s->step[i].count;
	}
	o->n = unique(o->bound, (size_t)s->n * 2);
	return 0;
}

static size_t interval_of(const struct order *o, uint64_t element)
{
	const uint64_t *at = bsearch(&element, o->bound, o->n, sizeof(*at),
				     compare);

	return (size_t)(at - o->bound);
}

/* Find the steps of each interval: count them, then store them */
static int find_cover(const struct dblp_sched *s, struct order *o)
{
	size_t k, end;
	uint32_t i;

	o->first = calloc(o->n + 2, sizeof(*o->first));
	if (!o->first)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		end = interval_of(o, s->step[i].offset + s->step[i].count);
		for (k = interval_of(o, s->step[i].offset); k < end; k++)
			o->first[k + 2]++;
	}
	for (k = 0; k < o->n; k++)
		o->first[k + 2] += o->first[k + 1];
	o->cover = calloc(o->first[o->n + 1] + 1, sizeof(*o->cover));
	if (!o->cover)
		return -ENOMEM;
	for (i = 0; i < s->n; i++) {
		end = interval_of(o, s->step[i].offset + s->step[i].count);
		for (k = interval_of(o, s->step[i].offset); k < end; k++)
			o->cover[o->first[k + 1]++] = i;
	}
	return 0;
}

static int add_edge(struct order *o, uint32_t from, uint32_t to)
{
	size_t room = o->room * 2 + 64;
	uint64_t *edge;

	if (o->n_edges == o->room) {
		if (room > UINT32_MAX)
			return -E2BIG;
		edge = reallocarray(o->edge, room, sizeof(*edge));
		if (!edge)
			return -ENOMEM;
		o->edge = edge;
		o->room = room;
	}
	o->edge[o->n_edges++] = (uint64_t)from << 32 | to;
	return 0;
}

/*
 * Add the dependencies of an interval, whose steps are entries @i ... @end - 1
 * of @cover
 */
static int find_edges(const struct dblp_sched *s, struct order *o, size_t i,
		      size_t end)
{
	size_t before = i, group = i, k;
	int err = 0;

	for (; i < end && !err; i++) {
		if (s->step[o->cover[i]].op != s->step[o->cover[group]].op) {
			before = group;
			group = i;
		}
		for (k = before; k < group && !err; k++)
			err = add_edge(o, o->cover[k], o->cover[i]);
	}
	return err;
}

static bool is_send(const struct dblp_sched *s, uint32_t i, uint32_t lane)
{
	return s->step[i].op == DBLP_STEP_SEND && s->way[i].lane == lane;
}

static bool goes_along(const struct dblp_sched *s, uint32_t i, uint32_t first)
{
	return is_send(s, first, 0) && s->step[i].peer == s->step[first].peer &&
	       s->step[i].round == s->step[first].round;
}

/*
 * Last step that sends by lane 0 to the peer and in the round of step @i, or @n.
 * Links send in order, so it is enough to wait for the last one. All lanes have
 * the same order, so the search starts from the previous one, @from.
 */
static uint32_t turn_of(const struct dblp_sched *s, uint32_t i, uint32_t *from)
{
	uint32_t k, at, last = s->n;

	for (k = 0; k < s->n; k++) {
		at = (*from + k) % s->n;
		if (goes_along(s, i, at))
			last = at;
		else if (last < s->n && is_send(s, at, 0))
			break;
	}
	if (last < s->n)
		*from = last;
	return last;
}

static int find_turns(struct dblp_sched *s, struct order *o)
{
	uint32_t i, k, from = 0;
	int err = 0;

	for (i = 0; i < s->n && !err; i++) {
		const uint32_t lane = s->way[i].lane;

		if (!(s->layout.lane[lane].flags & DBLP_LANE_AFTER) ||
		    !is_send(s, i, lane))
			continue;
		k = turn_of(s, i, &from);
		if (k == s->n)
			continue;
		s->way[k].awaited = true;
		err = add_edge(o, k, i);
	}
	return err;
}

/* Sorted by first step, edges give @next, @waits and @after */
static int take_edges(struct dblp_sched *s, struct order *o)
{
	size_t i;

	o->n_edges = unique(o->edge, o->n_edges);
	s->next = calloc(o->n_edges + 1, sizeof(*s->next));
	if (!s->next)
		return -ENOMEM;
	for (i = 0; i < o->n_edges; i++) {
		s->next[i] = (uint32_t)o->edge[i];
		s->waits[s->next[i]]++;
		s->after[(o->edge[i] >> 32) + 1]++;
	}
	for (i = 0; i < s->n; i++)
		s->after[i + 1] += s->after[i];
	return 0;
}

static int find_order(struct dblp_sched *s)
{
	struct order o = { 0 };
	int err = find_bounds(s, &o);
	size_t k;

	if (!err)
		err = find_cover(s, &o);
	for (k = 0; k < o.n && !err; k++)
		err = find_edges(s, &o, o.first[k], o.first[k + 1]);
	if (!err)
		err = find_turns(s, &o);
	if (!err)
		err = take_edges(s, &o);
	free(o.bound);
	free(o.first);
	free(o.cover);
	free(o.edge);
	return err;
}

static uint64_t digest_of(struct dblp_plan plan)
{
	plan.rank = 0;
	return dblp_hash(DBLP_HASH, &plan, sizeof(plan));
}

int dblp_sched_new(const struct dblp_plan *plan, const struct dblp_layout *layout,
		   struct dblp_sched **sched)
{
	struct dblp_sched *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->plan = *plan;
	s->digest = digest_of(*plan);
	s->refs = 1;
	err = copy_layout(s, layout);
	if (!err)
		err = get_steps(s);
	if (!err)
		err = find_order(s);
	if (err)
		dblp_sched_put(s);
	else
		*sched = s;
	return err;
}

void dblp_sched_put(struct dblp_sched *s)
{
	if (!s || --s->refs)
		return;
	free((void *)s->layout.part);
	free(s->step);
	free(s->way);
	free(s->waits);
	free(s->after);
	free(s->next);
	free(s);
}
