// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Collective operations as plans: see plan.h.
 *
 * Pure: no sockets. Both ends of a message compute its range from attributes
 * they share, so they need no agreement.
 */

#include "plan.h"

#include <errno.h>

#define PLAN_FLAGS \
	(DBLP_PLAN_REDUCE | DBLP_PLAN_SPREAD | DBLP_PLAN_SERVER)

/* Elements next to each other */
struct span {
	uint64_t	offset;
	uint64_t	count;
};

/* Output array of steps; @n also counts steps beyond @room */
struct writer {
	const struct dblp_plan	*plan;
	struct dblp_step	*step;
	size_t			room;
	size_t			n;
};

/*
 * Part @i of @n of a range; the first parts get the remainder, one element each
 */
static struct span split(struct span s, uint32_t n, uint32_t i)
{
	uint64_t each = s.count / n, more = s.count % n;

	return (struct span) {
		.offset = s.offset + each * i + (i < more ? i : more),
		.count = each + (i < more),
	};
}

static struct span whole(const struct dblp_plan *plan)
{
	return (struct span) { .count = plan->count };
}

static bool has_half(const struct dblp_plan *plan, uint32_t half)
{
	uint32_t halves = plan->flags & (DBLP_PLAN_REDUCE | DBLP_PLAN_SPREAD);

	return !halves || halves & half;
}

/* Write a step with range @s, unless its half is not wanted */
static void put(struct writer *w, struct span s, struct dblp_step step)
{
	uint32_t half = step.reliable ? DBLP_PLAN_SPREAD : DBLP_PLAN_REDUCE;

	if (!s.count || !has_half(w->plan, half))
		return;
	step.offset = s.offset;
	step.count = s.count;
	if (w->n < w->room)
		w->step[w->n] = step;
	w->n++;
}

static void put_local(struct writer *w, struct span s, uint32_t round,
		      uint32_t op, uint32_t contributions)
{
	put(w, s, (struct dblp_step) {
		.round = round,
		.op = op,
		.peer = w->plan->rank,
		.contributions = contributions,
	});
}

/* All others send to the root, then the root sends to them */
static void plan_ps(struct writer *w)
{
	const struct dblp_plan *plan = w->plan;
	bool server = plan->flags & DBLP_PLAN_SERVER, root = plan->rank == plan->root;
	uint32_t all = plan->nranks - server;
	struct dblp_step up = { .round = 1, .contributions = 1 };
	struct dblp_step down = { .round = 3, .contributions = all, .reliable = 1 };

	if (!root) {
		up.op = DBLP_STEP_SEND;
		down.op = DBLP_STEP_COPY;
		up.peer = down.peer = plan->root;
		put(w, whole(plan), up);
		put(w, whole(plan), down);
		return;
	}
	if (server)
		put_local(w, whole(plan), 0, DBLP_STEP_CLEAR, 0);
	up.op = DBLP_STEP_ADD;
	for (up.peer = 0; up.peer < plan->nranks; up.peer++)
		if (up.peer != plan->rank)
			put(w, whole(plan), up);
	put_local(w, whole(plan), 2, DBLP_STEP_FINISH, all);
	down.op = DBLP_STEP_SEND;
	for (down.peer = 0; down.peer < plan->nranks; down.peer++)
		if (down.peer != plan->rank)
			put(w, whole(plan), down);
}

/*
 * A rank's place in the tree: the root is 0, and the children of place p are
 * fanin x p + 1 ... fanin x p + fanin.
 */
struct tree {
	uint64_t	fanin;
	uint32_t	n;
	uint32_t	root;
};

static uint32_t tree_rank(const struct tree *t, uint64_t place)
{
	return (place + t->root) % t->n;
}

static uint32_t tree_depth(const struct tree *t, uint64_t place)
{
	uint32_t depth = 0;

	for (; place; place = (place - 1) / t->fanin)
		depth++;
	return depth;
}

/* Ranks at and below a place */
static uint32_t tree_size(const struct tree *t, uint64_t place)
{
	uint64_t first = place, last = place;
	uint32_t size = 0;

	while (first < t->n) {
		if (last >= t->n)
			last = t->n - 1;
		size += last - first + 1;
		first = t->fanin * first + 1;
		last = t->fanin * last + t->fanin;
	}
	return size;
}

static void put_children(struct writer *w, const struct tree *t, uint64_t place,
			 struct dblp_step step)
{
	uint64_t child = t->fanin * place + 1, i;

	for (i = 0; i < t->fanin && child + i < t->n; i++) {
		step.peer = tree_rank(t, child + i);
		if (!step.reliable)
			step.contributions = tree_size(t, child + i);
		put(w, whole(w->plan), step);
	}
}

/* Each depth has a round of its own: the deepest sends first */
static void plan_tree(struct writer *w)
{
	const struct dblp_plan *plan = w->plan;
	struct tree t = {
		.fanin = plan->fanin ? plan->fanin : 2,
		.n = plan->nranks,
		.root = plan->root,
	};
	uint32_t place = (plan->rank + t.n - t.root) % t.n;
	uint32_t depth = tree_depth(&t, place), deepest = tree_depth(&t, t.n - 1);
	uint32_t all = t.n - !!(plan->flags & DBLP_PLAN_SERVER);
	struct dblp_step step = { .op = DBLP_STEP_ADD, .round = deepest - depth };

	if (!place && all < t.n)
		put_local(w, whole(plan), 0, DBLP_STEP_CLEAR, 0);
	put_children(w, &t, place, step);
	step.peer = tree_rank(&t, place ? (place - 1) / t.fanin : 0);
	step.op = DBLP_STEP_SEND;
	step.round++;
	step.contributions = tree_size(&t, place);
	if (place)
		put(w, whole(plan), step);
	else
		put_local(w, whole(plan), step.round, DBLP_STEP_FINISH, all);

	step.reliable = 1;
	step.contributions = all;
	step.op = DBLP_STEP_COPY;
	step.round = deepest + 1 + depth;
	if (place)
		put(w, whole(plan), step);
	step.op = DBLP_STEP_SEND;
	step.round++;
	put_children(w, &t, place, step);
}

/* Part (@rank - @back) mod N of the vector */
static struct span ring_part(const struct dblp_plan *plan, uint32_t back)
{
	uint32_t n = plan->nranks;

	return split(whole(plan), n, (plan->rank + n - back) % n);
}

/* Each rank ends up owning the part with its own number */
static void plan_ring(struct writer *w)
{
	const struct dblp_plan *plan = w->plan;
	uint32_t n = plan->nranks, i;
	struct dblp_step send = {
		.op = DBLP_STEP_SEND,
		.peer = (plan->rank + 1) % n,
	};
	struct dblp_step recv = {
		.op = DBLP_STEP_ADD,
		.peer = (plan->rank + n - 1) % n,
	};

	for (i = 1; i < n; i++) {
		send.round = recv.round = i;
		send.contributions = recv.contributions = i;
		put(w, ring_part(plan, i), send);
		put(w, ring_part(plan, i + 1), recv);
	}
	put_local(w, ring_part(plan, 0), n, DBLP_STEP_FINISH, n);
	recv.op = DBLP_STEP_COPY;
	send.reliable = recv.reliable = 1;
	send.contributions = recv.contributions = n;
	for (i = 0; i < n - 1; i++) {
		send.round = recv.round = n + 1 + i;
		put(w, ring_part(plan, i), send);
		put(w, ring_part(plan, i + 1), recv);
	}
}

/*
 * Digits of a rank's number that take part, and its neighbours in each. After
 * BML (NeurIPS 2018): the vector is divided into as many threads as there are
 * levels, and in each step each thread uses another level.
 */
struct cube {
	uint32_t	levels;
	struct level {
		uint32_t	radix;
		uint32_t	stride;
		uint32_t	digit;
		uint32_t	lane;
	} level[DBLP_LEVELS_MAX];
};

static void cube_add(struct cube *c, const struct dblp_plan *plan,
		     uint32_t radix, uint32_t stride, uint32_t lane)
{
	c->level[c->levels++] = (struct level) {
		.radix = radix,
		.stride = stride,
		.digit = plan->rank / stride % radix,
		.lane = lane,
	};
}

static void cube_init(struct cube *c, const struct dblp_plan *plan)
{
	uint32_t stride = 1, l;

	c->levels = 0;
	if (plan->algo == DBLP_TRANSPOSE || !plan->levels)
		return cube_add(c, plan, plan->nranks, 1, 0);
	for (l = 0; l < plan->levels; l++) {
		if (plan->algo == DBLP_BCUBE || plan->turn % plan->levels == l)
			cube_add(c, plan, plan->radix[l], stride, l);
		stride *= plan->radix[l];
	}
}

static const struct level *cube_level(const struct cube *c, uint32_t thread,
				      uint32_t s)
{
	return &c->level[(thread + s) % c->levels];
}

/* Range of this rank in a thread after @s steps */
static struct span cube_part(const struct cube *c, const struct dblp_plan *plan,
			     uint32_t thread, uint32_t s)
{
	struct span part = split(whole(plan), c->levels, thread);
	uint32_t i;

	for (i = 0; i < s; i++) {
		const struct level *l = cube_level(c, thread, i);

		part = split(part, l->radix, l->digit);
	}
	return part;
}

/* Contributions in a partial sum of a thread after @s steps */
static uint32_t cube_contributions(const struct cube *c, uint32_t thread,
				   uint32_t s)
{
	uint32_t n = 1, i;

	for (i = 0; i < s; i++)
		n *= cube_level(c, thread, i)->radix;
	return n;
}

/*
 * Exchange one message with each neighbour in step @s of a thread. A part
 * travels to its future owner in the reduce half, and from its owner in the
 * spread half.
 */
static void put_neighbours(struct writer *w, const struct cube *c,
			   uint32_t thread, uint32_t s, struct dblp_step step)
{
	const struct level *l = cube_level(c, thread, s);
	struct span part = cube_part(c, w->plan, thread, s);
	bool mine = step.reliable == (step.op == DBLP_STEP_SEND);
	uint32_t d;

	step.lane = l->lane;
	step.contributions = cube_contributions(c, thread, step.reliable ?
						c->levels : s);
	for (d = 0; d < l->radix; d++) {
		if (d == l->digit)
			continue;
		step.peer = w->plan->rank + (d - l->digit) * l->stride;
		put(w, split(part, l->radix, mine ? l->digit : d), step);
	}
}

static void plan_cube(struct writer *w)
{
	struct cube c;
	uint32_t s, p;

	cube_init(&c, w->plan);
	for (s = 0; s < c.levels; s++) {
		struct dblp_step step = { .round = 1 + s, .op = DBLP_STEP_SEND };

		for (p = 0; p < c.levels; p++)
			put_neighbours(w, &c, p, s, step);
		step.op = DBLP_STEP_ADD;
		for (p = 0; p < c.levels; p++)
			put_neighbours(w, &c, p, s, step);
	}
	for (p = 0; p < c.levels; p++)
		put_local(w, cube_part(&c, w->plan, p, s), 1 + s, DBLP_STEP_FINISH,
			  cube_contributions(&c, p, s));
	while (s--) {
		struct dblp_step step = {
			.round = 1 + 2 * c.levels - s,
			.op = DBLP_STEP_SEND,
			.reliable = 1,
		};

		for (p = 0; p < c.levels; p++)
			put_neighbours(w, &c, p, s, step);
		step.op = DBLP_STEP_COPY;
		for (p = 0; p < c.levels; p++)
			put_neighbours(w, &c, p, s, step);
	}
}

static bool radix_valid(const struct dblp_plan *plan)
{
	uint64_t product = 1;
	uint32_t l;

	if (!plan->levels)
		return true;
	if (plan->levels > DBLP_LEVELS_MAX)
		return false;
	for (l = 0; l < plan->levels; l++) {
		product *= plan->radix[l];
		if (!product || product > plan->nranks)
			return false;
	}
	return product == plan->nranks;
}

static bool plan_valid(const struct dblp_plan *plan)
{
	if (plan->flags & DBLP_PLAN_SERVER &&
	    (plan->nranks < 2 ||
	     (plan->algo != DBLP_PS && plan->algo != DBLP_TREE)))
		return false;
	return plan->algo < DBLP_ALGOS && !(plan->flags & ~PLAN_FLAGS) &&
	       plan->nranks && plan->nranks <= DBLP_RANKS_MAX &&
	       plan->rank < plan->nranks && plan->root < plan->nranks &&
	       plan->fanin <= DBLP_RANKS_MAX && plan->count <= DBLP_COUNT_MAX &&
	       radix_valid(plan);
}

ssize_t dblp_plan_steps(const struct dblp_plan *plan, struct dblp_step *step,
			size_t room)
{
	struct writer w = { .plan = plan, .step = step, .room = room };

	if (!plan_valid(plan))
		return -EINVAL;
	switch (plan->algo) {
	case DBLP_PS:
		plan_ps(&w);
		break;
	case DBLP_TREE:
		plan_tree(&w);
		break;
	case DBLP_RING:
		plan_ring(&w);
		break;
	default:
		plan_cube(&w);
	}
	return w.n;
}

static uint32_t largest_prime(uint32_t n)
{
	uint32_t p;

	for (p = 2; p * p <= n; p++)
		while (n > p && n % p == 0)
			n /= p;
	return n;
}

/* Each prime factor, by falling value, multiplies the smallest radix */
int dblp_plan_radix(uint32_t nranks, uint32_t levels, uint32_t *radix)
{
	uint32_t prime, l, i, least;

	if (!nranks || nranks > DBLP_RANKS_MAX || !levels ||
	    levels > DBLP_LEVELS_MAX)
		return -EINVAL;
	for (l = 0; l < levels; l++)
		radix[l] = 1;
	for (; nranks > 1; nranks /= prime) {
		prime = largest_prime(nranks);
		for (l = 0, i = 1; i < levels; i++)
			if (radix[i] < radix[l])
				l = i;
		radix[l] *= prime;
	}
	/* Insertion sort: there are few */
	for (l = 1; l < levels; l++) {
		least = radix[l];
		for (i = l; i && radix[i - 1] < least; i--)
			radix[i] = radix[i - 1];
		radix[i] = least;
	}
	return 0;
}
