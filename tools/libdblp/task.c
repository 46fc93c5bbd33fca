// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The end of steps and of operations: a step that ends wakes the steps that
 * wait for it.
 */

#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Set @first to the first operation from @req on that has not ended and
 * involves all ranks
 */
void dblp_req_first(struct dblp_comm *comm, struct dblp_req *req)
{
	while (req && (req->ended || req->peer >= 0))
		req = TAILQ_NEXT(req, entry);
	comm->first = req;
}

/* Hand @req over later, in hand_over(), because the caller may still use it */
static void req_over(struct dblp_req *req)
{
	TAILQ_REMOVE(&req->comm->reqs, req, entry);
	TAILQ_INSERT_TAIL(&req->comm->over, req, entry);
}

void dblp_req_unqueue(struct dblp_req *req)
{
	if (!--req->queued && req->ended)
		req_over(req);
}

/* The operation has ended: publish its result */
void dblp_req_end(struct dblp_req *req)
{
	struct dblp_comm *comm = req->comm;
	uint64_t one = 1;

	if (req->ended)
		return;
	if (!req->result.error)
		dblp_losses_end(req);
	req->result.ns = dblp_comm_now() - req->begin;
	pthread_mutex_lock(&comm->lock);
	dblp_losses_free(req);
	req->ended = true;
	if (req == comm->first)
		dblp_req_first(comm, req);
	if (write(comm->ended_fd, &one, sizeof(one)) < 0) {
		/* The 64-bit counter cannot overflow */
	}
	pthread_cond_broadcast(&comm->cond);
	pthread_mutex_unlock(&comm->lock);
	if (!req->queued)
		req_over(req);
}

void dblp_req_put(struct dblp_req *req)
{
	if (--req->users)
		return;
	dblp_losses_free(req);
	dblp_sched_put(req->sched);
	free(req);
}

void dblp_task_run(struct dblp_task *t)
{
	const struct dblp_step *step = t->step;
	struct dblp_req *req = t->req;
	int err = 0;

	if (step->op == DBLP_STEP_CLEAR) {
		memset(req->buf + step->offset * req->esize, 0,
		       step->count * req->esize);
		dblp_losses_clear(t);
	} else {
		err = dblp_losses_finish(t);
	}
	if (err)
		dblp_suspect(req->comm, req->comm->rank, err, NULL);
	else
		dblp_task_end(t);
}

void dblp_task_end(struct dblp_task *t)
{
	struct dblp_req *req = t->req;
	const struct dblp_sched *s = req->sched;
	const uint32_t lane = dblp_task_way(t).lane;
	uint32_t i, k = (uint32_t)(t - req->task);

	if (t->ended)
		return;
	t->ended = true;
	req->left--;
	if (!--req->lane_left[lane])
		req->result.lane[lane].ns = dblp_comm_now() - req->begin;
	for (i = s->after[k]; i < s->after[k + 1]; i++) {
		struct dblp_task *next = &req->task[s->next[i]];

		if (--next->waits)
			continue;
		if (dblp_task_is_local(next))
			dblp_task_run(next);
		else
			dblp_link_wake(dblp_task_link(next));
	}
	if (!req->left)
		dblp_req_end(req);
}

/* If two lanes share the elements of a step: bytes that this one carries */
uint64_t dblp_task_share(const struct dblp_task *t)
{
	const struct dblp_way way = dblp_task_way(t);
	const uint64_t all = t->step->count;
	uint64_t large = all / DBLP_PPM * way.large +
			 all % DBLP_PPM * way.large / DBLP_PPM;

	if (way.choice != DBLP_CHOICE_LARGE)
		large = all - large;
	return large * t->req->esize;
}

void dblp_task_missing(const struct dblp_task *t, uint64_t bytes)
{
	t->req->result.missing += bytes;
	t->req->result.lane[dblp_task_way(t).lane].missing += bytes;
}

void dblp_task_head(const struct dblp_task *t, uint32_t from, uint32_t runs,
		    uint8_t p[DBLP_HEAD_LEN])
{
	const struct dblp_comm *comm = dblp_task_comm(t);
	const struct dblp_head head = {
		.type = DBLP_HEAD_DATA,
		.dtype = (uint8_t)t->req->op.dtype,
		.epoch = comm->attr.epoch,
		.from = from,
		.comm = comm->id,
		.digest = t->req->digest,
		.seq = t->req->seq,
		.round = t->step->round,
		.offset = t->step->offset + t->done,
		.count = (uint32_t)dblp_task_part(t),
		.runs = runs,
	};

	dblp_head_put(&head, p);
}
