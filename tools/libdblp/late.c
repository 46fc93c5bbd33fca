// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Late ranks: an operation with @wait_ms goes on without contributions that may be lost
 * and of which nothing has come, and what is sent to their ranks does not hold it up.
 */

#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes to copy for ranks that are late */
#define OWNED_MAX	(64U << 20)

/* A contribution that may be lost, and of which nothing has come */
static bool can_do_without(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_ADD && !t->step->reliable && !t->begun &&
	       !t->ended;
}

/*
 * Give up what has not come in time. A round has so long after the one before: whoever
 * sends it may have waited for others. What comes later is thrown away.
 */
static bool leave_out(struct dblp_req *req, uint64_t now)
{
	bool late = false;
	uint64_t until;
	uint32_t i;

	req->late_at = UINT64_MAX;
	for (i = 0; i < req->sched->n; i++) {
		struct dblp_task *t = &req->task[i];

		if (!can_do_without(t))
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
	return &dblp_link_of(dblp_task_comm(t), t->step->peer, 0)->left_out;
}

/* Which ranks were left out? Each counts once, however many of its steps were */
static uint32_t mark_late(const struct dblp_req *req)
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

/* The last one that ends may be the end of the operation */
static void end_late(struct dblp_req *req)
{
	uint32_t i;

	req->result.late_ranks = mark_late(req);
	for (i = 0; i < req->sched->n; i++)
		if (req->task[i].late)
			dblp_task_end(&req->task[i]);
}

/* Is it sent to a rank that was left out, which mark_late() has found? */
static bool is_for_late(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_SEND && !t->ended && !t->waits &&
	       *late_flag(t) &&
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

void dblp_late_forget(struct dblp_task *t)
{
	dblp_task_comm(t)->owned -= (t->step->count - t->own_from) *
				    t->req->esize;
	free(t->own);
	t->own = NULL;
	dblp_req_unqueue(t->req);
}

/*
 * What is sent to a rank that was left out is copied, so that the operation can end
 * without that rank's taking it. If there is no memory it does not.
 */
static void copy_for_late(struct dblp_req *req)
{
	uint32_t i;

	mark_late(req);
	for (i = 0; i < req->sched->n && !req->ended; i++)
		if (is_for_late(&req->task[i]))
			copy(&req->task[i]);
}

uint64_t dblp_late_timeout(struct dblp_req *req, uint64_t now)
{
	if (now >= req->late_at && leave_out(req, now))
		end_late(req);
	if (req->result.late_ranks)
		copy_for_late(req);
	/* At once if more can go on */
	return req->comm->woken ? now : req->late_at;
}
