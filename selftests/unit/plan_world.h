/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Executes the plans of all ranks in memory, in a random order that plan.h allows.
 * The including test defines the effect of steps on the data, and links plan.c.
 */
#ifndef _UNIT_PLAN_WORLD_H
#define _UNIT_PLAN_WORLD_H

#include <plan.h>

#include "test.h"

/**
 * struct pstep - a step and its state
 * @s: the step of the plan
 * @match: of a receive: index of the sender's step
 * @matched: of a send: a receive matches it
 * @blockers: unfinished steps of this rank that must end first
 * @sent: of a send: the message was sent
 * @done: the step has ended
 * @data: of a send: the message
 */
struct pstep {
	struct dblp_step	s;
	u32			match;
	bool			matched;
	u32			blockers;
	bool			sent;
	bool			done;
	void			*data;
};

struct prank {
	struct pstep	*step;
	size_t		n;
};

/**
 * struct world - all ranks
 * @plan: the plan; its @rank is not used
 * @rank: the ranks' steps
 * @buffered: true: the transport buffers any number of messages; false: a send ends
 *	together with its receive, and moves data only when both may begin
 * @rng: draws the next step
 * @left: unfinished steps of all ranks
 * @wrong: set by the callbacks on an error
 * @local: executes a local step
 * @send: sends a message
 * @recv: receives the message of step @sender
 * @arg: argument of the callbacks
 */
struct world {
	struct dblp_plan	plan;
	struct prank		*rank;
	bool			buffered;
	struct prng		rng;
	size_t			left;
	const char		*wrong;
	void (*local)(struct world *w, u32 rank, struct pstep *step);
	void (*send)(struct world *w, u32 rank, struct pstep *step);
	void (*recv)(struct world *w, u32 rank, struct pstep *step,
		     struct pstep *sender);
	void			*arg;
};

static inline bool pstep_receives(const struct pstep *p)
{
	return p->s.op == DBLP_STEP_ADD || p->s.op == DBLP_STEP_COPY;
}

static inline bool pstep_local(const struct pstep *p)
{
	return p->s.op == DBLP_STEP_CLEAR || p->s.op == DBLP_STEP_FINISH;
}

static inline void world_free(struct world *w)
{
	u32 r;

	for (r = 0; r < w->plan.nranks; r++)
		free(w->rank[r].step);
	free(w->rank);
	w->rank = NULL;
}

/* Compute the plans of all ranks; false if they are invalid */
static inline bool world_init(struct world *w)
{
	struct dblp_plan plan = w->plan;
	struct dblp_step *steps;
	ssize_t n, i;

	w->rank = calloc(plan.nranks, sizeof(*w->rank));
	for (plan.rank = 0; plan.rank < plan.nranks; plan.rank++) {
		struct prank *r = &w->rank[plan.rank];

		n = dblp_plan_steps(&plan, NULL, 0);
		if (n < 0) {
			world_free(w);
			return false;
		}
		/* Room for exactly @n steps, so that ASan detects writes beyond it */
		steps = malloc(n * sizeof(*steps));
		dblp_plan_steps(&plan, steps, n);
		r->n = n;
		r->step = calloc(n + 1, sizeof(*r->step));
		for (i = 0; i < n; i++)
			r->step[i].s = steps[i];
		free(steps);
	}
	return true;
}

/* Find the send of each receive; returns an error text, or NULL */
static inline const char *world_match(struct world *w)
{
	size_t sends = 0, i, k, found;
	ssize_t receives = 0;
	u32 r;

	for (r = 0; r < w->plan.nranks; r++) {
		for (i = 0; i < w->rank[r].n; i++) {
			struct pstep *p = &w->rank[r].step[i];
			struct prank *peer;

			if (p->s.peer >= w->plan.nranks)
				return "no such peer";
			if (pstep_local(p) != (p->s.peer == r))
				return "wrong peer";
			sends += p->s.op == DBLP_STEP_SEND;
			if (!pstep_receives(p))
				continue;
			receives++;
			peer = &w->rank[p->s.peer];
			for (k = 0, found = 0; k < peer->n; k++) {
				const struct dblp_step *s = &peer->step[k].s;

				if (peer->step[k].matched || s->op != DBLP_STEP_SEND || s->peer != r ||
				    s->round != p->s.round)
					continue;
				p->match = k;
				found++;
				if (s->offset != p->s.offset ||
				    s->count != p->s.count ||
				    s->lane != p->s.lane ||
				    s->contributions != p->s.contributions ||
				    s->reliable != p->s.reliable)
					return "ends of a message differ";
			}
			if (found != 1)
				return "a receive needs one send";
			peer->step[p->match].matched = true;
		}
	}
	return sends == receives ? NULL : "a send without a receive";
}

/*
 * Must step @a of a rank wait for the end of @b? A connection keeps the order of
 * messages.
 */
static inline bool pstep_waits(const struct dblp_step *a,
			       const struct dblp_step *b)
{
	bool same = a->peer == b->peer &&
		    (a->op == DBLP_STEP_SEND) == (b->op == DBLP_STEP_SEND);

	return a->round > b->round && (same || dblp_step_conflict(a, b));
}

static inline void world_block(struct prank *r, const struct pstep *step, int by)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (pstep_waits(&r->step[i].s, &step->s))
			r->step[i].blockers += by;
}

static inline void world_end(struct world *w, u32 rank, struct pstep *step)
{
	step->done = true;
	w->left--;
	world_block(&w->rank[rank], step, -1);
}

static inline bool world_try_recv(struct world *w, u32 rank, struct pstep *p)
{
	struct pstep *from = &w->rank[p->s.peer].step[p->match];

	if (!from->sent) {
		if (w->buffered || from->blockers)
			return false;
		w->send(w, p->s.peer, from);
		from->sent = true;
	}
	w->recv(w, rank, p, from);
	world_end(w, rank, p);
	if (!from->done)
		world_end(w, p->s.peer, from);
	return true;
}

static inline bool world_try(struct world *w, u32 rank, struct pstep *p)
{
	if (p->done || p->blockers)
		return false;
	if (pstep_receives(p))
		return world_try_recv(w, rank, p);
	if (pstep_local(p)) {
		w->local(w, rank, p);
	} else {
		if (!w->buffered || p->sent)
			return false;
		w->send(w, rank, p);
		p->sent = true;
	}
	world_end(w, rank, p);
	return true;
}

/* Execute all steps; returns an error text, or NULL */
static inline const char *world_run(struct world *w)
{
	size_t i;
	u32 r, tried;

	w->left = 0;
	for (r = 0; r < w->plan.nranks; r++) {
		for (i = 0; i < w->rank[r].n; i++)
			world_block(&w->rank[r], &w->rank[r].step[i], 1);
		w->left += w->rank[r].n;
	}
	while (w->left) {
		bool ended = false;

		/* Try the steps of all ranks, beginning with a random one */
		r = prng_below(&w->rng, w->plan.nranks);
		for (tried = 0; tried < w->plan.nranks && !ended; tried++) {
			struct prank *k = &w->rank[(r + tried) % w->plan.nranks];
			size_t from = k->n ? prng_below(&w->rng, k->n) : 0;

			for (i = 0; i < k->n && !ended; i++)
				ended = world_try(w, k - w->rank,
						  &k->step[(from + i) % k->n]);
		}
		if (!ended)
			return "deadlock";
	}
	return w->wrong;
}

#endif /* _UNIT_PLAN_WORLD_H */
