// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Receiving the messages of steps.
 */

#include "engine.h"
#include "reduce.h"

#include <errno.h>
#include <string.h>

/* Add the complete elements of @range, which may include bytes of the head */
static void add_range(struct dblp_link *l, struct dblp_task *t,
		      const struct dblp_range *range)
{
	const uint32_t esize = t->req->esize, head = sizeof(l->in.head);
	uint64_t from = range->offset, to = from + range->length;

	if (to <= head)
		return;
	from = from > head ? (from - head) / esize : 0;
	to = (to - head) / esize;
	if (to > from)
		dblp_reduce_add(t->req->op.dtype, dblp_task_data(t) + from * esize,
				l->in.stage + from * esize, to - from);
}

/* Expect the runs that the head has announced */
static int expect_runs(struct dblp_link *l)
{
	int err = dblp_runs_alloc(&l->in.runs, l->in.n_runs);

	if (!err)
		dblp_inbox_set(&l->in.inbox, l->in.runs, l->in.n_runs * DBLP_RUN_LEN,
			       NULL, 0);
	return err;
}

static int expect_message(struct dblp_link *l, struct dblp_task *t)
{
	bool stage = t->step->op == DBLP_STEP_ADD || dblp_keeps(t);
	int err;

	if (l->in.part == DBLP_PART_RUNS)
		return expect_runs(l);
	l->in.head_ok = false;
	if (dblp_losses_need_counts(t) && !l->in.runs_received) {
		l->in.part = DBLP_PART_COUNTS;
		dblp_inbox_set(&l->in.inbox, l->in.head, sizeof(l->in.head), NULL,
			       0);
		return 0;
	}
	if (dblp_is_sparse(t))
		return dblp_packed_expect(l, t);
	err = stage ? dblp_link_stage(l, l->comm->attr.message_bytes) : 0;
	if (err)
		return err;
	dblp_inbox_set(&l->in.inbox, l->in.head, sizeof(l->in.head),
		       stage ? l->in.stage : dblp_task_data(t),
		       dblp_task_part(t) * t->req->esize);
	return 0;
}

static bool has_head(const struct dblp_link *l)
{
	if (l->comm->transport->protocol)
		return l->in.inbox.got >= sizeof(l->in.head);
	return l->in.inbox.closed || (l->in.inbox.n && !l->in.inbox.range[0].offset &&
				   l->in.inbox.range[0].length >=
				   sizeof(l->in.head));
}

/* Is this the head of the expected message? */
static int check_head(struct dblp_link *l, const struct dblp_task *t)
{
	uint8_t want[DBLP_HEAD_LEN];
	struct dblp_head head;

	if (dblp_head_get(l->in.head, sizeof(l->in.head), &head))
		return -EPROTO;
	if (l->in.part == DBLP_PART_COUNTS)
		l->in.n_runs = head.runs;
	dblp_task_head(t, l->rank, l->in.part == DBLP_PART_COUNTS ? l->in.n_runs : 0,
		  want);
	if (memcmp(want, l->in.head, sizeof(want)))
		return -EPROTO;
	l->in.head_ok = true;
	return 0;
}

/* A part of the message has arrived */
static int part_received(struct dblp_link *l, struct dblp_task *t)
{
	uint32_t i;
	int err = 0;

	t->begun = true;
	if (l->in.part == DBLP_PART_RUNS)
		return 0;
	if (!l->in.head_ok && has_head(l))
		err = check_head(l, t);
	if (err)
		return err;
	if (t->step->op == DBLP_STEP_ADD && !t->late &&
	    !dblp_is_sparse(t))
		for (i = 0; i < l->in.inbox.n; i++)
			add_range(l, t, &l->in.inbox.range[i]);
	return 0;
}

static int read_runs(struct dblp_link *l, const struct dblp_task *t)
{
	struct dblp_head head;
	int err = dblp_link_runs(l, l->in.n_runs);

	if (err)
		return err;
	return dblp_head_get(l->in.head, sizeof(l->in.head), &head) ||
	       dblp_runs_get(&head, l->in.runs, t->step->contributions,
			     l->run) ? -EPROTO : 0;
}

/* Decode the runs again, because sending may have overwritten @run */
static int add_counts(struct dblp_link *l, struct dblp_task *t,
		      const struct dblp_sparse *s)
{
	int err = 0;

	if (l->in.n_runs) {
		dblp_task_head(t, l->rank, l->in.n_runs, l->in.head);
		err = read_runs(l, t);
	}
	return err ?: dblp_losses_added(t, dblp_task_part(t), s, &l->in.inbox.map, l->run,
					l->in.n_runs);
}

/* Record the budget of a received message, which an operator may have set */
static void record_budget(struct dblp_task *t, const struct dblp_msg *m)
{
	struct dblp_result *r = &t->req->result;
	uint32_t budget = m->info.budget * t->step->contributions;

	if (t->step->op != DBLP_STEP_ADD)
		return;
	if (!t->req->budgets++ || budget < r->budget_least)
		r->budget_least = budget;
	if (budget > r->budget_most)
		r->budget_most = budget;
}

/* A message with data is complete */
static int data_received(struct dblp_link *l, struct dblp_task *t)
{
	const bool sparse = dblp_is_sparse(t);
	struct dblp_comm *comm = l->comm;
	struct dblp_sparse s;
	uint32_t i;
	int err = 0;

	for (i = 0; i < l->in.inbox.map.n && !t->late; i++)
		dblp_task_missing(t, l->in.inbox.map.range[i].length);
	if (t->late)
		dblp_comm_count(comm, &comm->stats.late);
	else if (sparse)
		err = dblp_packed_take(l, t, &s);
	else if (dblp_keeps(t))
		err = dblp_kept_take(l, t);
	if (!t->late && !err)
		err = add_counts(l, t, sparse ? &s : NULL);
	if (!t->late)
		record_budget(t, &l->in.inbox.map);
	l->in.n_runs = 0;
	l->in.runs_received = false;
	t->done += dblp_task_part(t);
	if (err || t->done < t->step->count)
		return err;
	dblp_queue_pop(&l->receives);
	if (t->late)
		dblp_req_unqueue(t->req);
	else
		dblp_task_end(t);
	return 0;
}

static int message_received(struct dblp_link *l, struct dblp_task *t)
{
	int err = 0;

	if (l->in.part == DBLP_PART_DATA && dblp_is_sparse(t) &&
	    l->comm->transport->protocol &&
	    l->in.inbox.iov[1].iov_len == DBLP_SPARSE_HEAD)
		return dblp_packed_rest(l, t);
	switch (l->in.part) {
	case DBLP_PART_COUNTS:
		l->in.part = l->in.n_runs ? DBLP_PART_RUNS : DBLP_PART_DATA;
		l->in.runs_received = true;
		break;
	case DBLP_PART_RUNS:
		l->in.part = DBLP_PART_DATA;
		err = read_runs(l, t);
		break;
	case DBLP_PART_DATA:
		err = data_received(l, t);
		break;
	}
	l->in.inbox.len = 0;
	return err;
}

bool dblp_link_receive(struct dblp_link *l)
{
	struct dblp_task *t = l->receives.first;
	int n = 0;

	if (!t || (t->waits && !t->late) || l->state != DBLP_LINK_READY ||
	    !l->can_read)
		return false;
	if (!l->in.inbox.len)
		n = expect_message(l, t);
	if (n) {
		dblp_link_died(l, n);
		return false;
	}
	n = l->comm->transport->recv(l->fd, &l->in.inbox);
	if (n == -EAGAIN)
		l->can_read = false;
	if (n == -EAGAIN || n == -EINTR)
		return n == -EINTR;
	if (n > 0)
		n = part_received(l, t);
	else
		n = n ?: -ECONNRESET;
	if (!n && l->in.inbox.closed)
		n = message_received(l, t);
	if (n)
		dblp_link_died(l, n);
	return !n;
}
