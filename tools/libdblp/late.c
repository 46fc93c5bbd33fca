// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Late ranks: an operation with @wait_ms continues without contributions that
 * may be lost and of which nothing has arrived. Data for late ranks does not
 * delay it, either.
 */

#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* Most bytes copied for late ranks, in a communicator */
#define OWNED_MAX	(64U << 20)

/* Can the operation continue without this contribution? */
static bool may_be_late(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_ADD && !t->step->reliable && !t->begun &&
	       !t->ended;
}

/*
 * Mark contributions that are overdue as late; their messages are dropped when
 * they arrive. Each round has @wait_ms more than the one before, because its
 * sender may have waited for others.
 */
static bool mark_late_steps(struct dblp_req *req, uint64_t now)
{
	bool late = false, begun = false;
	uint64_t until;
	uint32_t i;

	req->late_at = UINT64_MAX;
	for (i = 0; i < req->sched->n; i++) {
		struct dblp_task *t = &req->task[i];

		/* Nothing is late in a contribution that has begun to arrive */
		begun = dblp_task_way(t).goes_on && (begun || t[-1].begun);
		if (begun || !may_be_late(t))
			continue;
		until = dblp_round_until(req->begin, req->op.wait_ms,
					 t->step->round);
		if (now < until) {
			if (until < req->late_at)
				req->late_at = until;
			continue;
		}
		t->late = true;
		dblp_link_wake(dblp_task_link(t));
		req->queued++;
		dblp_task_missing(t, dblp_task_share(t));
		late = true;
	}
	return late;
}

static bool *late_flag(const struct dblp_task *t)
{
	return &dblp_link_of(dblp_task_comm(t), t->step->peer, 0)->is_late;
}

/* Mark the peers of late steps, and count them, each once */
static uint32_t mark_late_ranks(const struct dblp_req *req)
{
	uint32_t n = 0, i;

	for (i = 0; i < req->sched->n; i++)
		*late_flag(&req->task[i]) = false;
	for (i = 0; i < req->sched->n; i++) {
		bool *flag = late_flag(&req->task[i]);

		n += req->task[i].late && !*flag;
		*flag |= req->task[i].late;
	}
	return n;
}

/* End late steps, which may end the operation */
static void end_late(struct dblp_req *req)
{
	uint32_t i;

	req->result.late_ranks = mark_late_ranks(req);
	for (i = 0; i < req->sched->n; i++)
		if (req->task[i].late)
			dblp_task_end(&req->task[i]);
}

/*
 * Is this a send to a rank that mark_late_ranks() has marked, and may it be copied?
 */
static bool is_for_late(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_SEND && !t->ended && !t->waits &&
	       *late_flag(t) && !t->reports &&
	       (t->step->reliable ||
		(t->req->op.rule == DBLP_BUBBLE && !t->req->key));
}

static void copy(struct dblp_task *t)
{
	size_t len = (t->step->count - t->done) * t->req->esize;
	struct dblp_comm *comm = dblp_task_comm(t);
	char *own;

	if (comm->owned + len > OWNED_MAX)
		return;
	own = malloc(len);
	if (!own)
		return;
	memcpy(own, dblp_task_data(t), len);
	t->own = own;
	t->own_from = t->done;
	comm->owned += len;
	t->req->queued++;
	dblp_task_end(t);
}

void dblp_late_free(struct dblp_task *t)
{
	dblp_task_comm(t)->owned -= (t->step->count - t->own_from) *
				    t->req->esize;
	free(t->own);
	t->own = NULL;
	dblp_req_unqueue(t->req);
}

/*
 * Copy data for late ranks, so that the operation can end before they receive
 * it. Without memory it waits for them.
 */
static void copy_for_late(struct dblp_req *req)
{
	uint32_t i;

	mark_late_ranks(req);
	for (i = 0; i < req->sched->n && !req->ended; i++)
		if (is_for_late(&req->task[i]))
			copy(&req->task[i]);
}

uint64_t dblp_late_timeout(struct dblp_req *req, uint64_t now)
{
	if (now >= req->late_at && mark_late_steps(req, now))
		end_late(req);
	if (req->result.late_ranks)
		copy_for_late(req);
	/* Return at once if a link can proceed */
	return req->comm->woken ? now : req->late_at;
}
