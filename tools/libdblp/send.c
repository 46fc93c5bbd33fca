// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Sending the messages of steps, and their reports.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>

/* Send no runs if no contribution is missing */
static int make_counts(struct dblp_link *l, const struct dblp_task *t)
{
	const uint32_t most = t->req->counts.n < dblp_task_part(t) ?
			      t->req->counts.n : (uint32_t)dblp_task_part(t);
	int n = dblp_link_runs(l, most);

	if (!n)
		n = dblp_losses_cut(t, dblp_task_part(t), l->run, most);
	if (n == 1 && l->run[0].contributions == t->step->contributions)
		n = 0;
	if (n > 0 && dblp_runs_alloc(&l->out.runs, (uint32_t)n))
		n = -ENOMEM;
	if (n < 0)
		return n;
	l->out.n_runs = (uint32_t)n;
	dblp_runs_put(l->run, l->out.n_runs, l->out.runs);
	dblp_task_head(t, l->comm->rank, l->out.n_runs, l->out.head);
	return 0;
}

/* Prepare the next message, of kind @part */
static int prepare(struct dblp_link *l, const struct dblp_task *t)
{
	int err = 0;

	l->out.info = (struct dblp_sndinfo) {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.policy = DBLP_POLICY_FULL,
	};
	l->out.n_packed = 0;
	l->out.n_repaired = 0;
	if (l->out.part == DBLP_PART_DATA && dblp_losses_need_counts(t) &&
	    !l->out.runs_sent)
		l->out.part = DBLP_PART_COUNTS;
	if (l->out.part == DBLP_PART_RUNS)
		return 0;
	if (l->out.part == DBLP_PART_COUNTS)
		return make_counts(l, t);
	dblp_task_head(t, l->comm->rank, 0, l->out.head);
	if (dblp_is_sparse(t))
		err = dblp_pack(l, t);
	else if (dblp_repairs(t))
		err = dblp_repair_pack(l, t);
	if (err)
		return err;
	return dblp_budget_set(l, t, &l->out.info);
}

/* Buffers of the message being sent; returns its length, bytes */
static size_t message_of(struct dblp_link *l, struct dblp_task *t,
			 struct iovec iov[2])
{
	iov[0] = (struct iovec) { l->out.head, sizeof(l->out.head) };
	if (l->out.n_packed)
		iov[1] = (struct iovec) { l->out.packed, l->out.n_packed };
	else
		iov[1] = (struct iovec) { dblp_task_data(t),
					  dblp_task_part(t) * t->req->esize };
	if (l->out.part != DBLP_PART_DATA)
		iov[1].iov_len = 0;
	if (l->out.part == DBLP_PART_RUNS)
		iov[0] = (struct iovec) { l->out.runs,
					  l->out.n_runs * DBLP_RUN_LEN };
	return iov[0].iov_len + iov[1].iov_len;
}

/* Send a part of the message; returns bytes, or a negative errno */
static ssize_t send_part(struct dblp_link *l, struct dblp_task *t)
{
	struct iovec iov[2];
	int err = 0;

	/*
	 * Prepare once, although send() may fail with EAGAIN: preparing
	 * consumes credit
	 */
	if (!l->out.is_ready)
		err = prepare(l, t);
	if (err)
		return err;
	l->out.is_ready = true;
	message_of(l, t, iov);
	dblp_iov_skip(iov, l->out.sent);
	return l->comm->transport->send(l->fd, iov, &l->out.info);
}

/* A message with data was sent completely */
static int data_sent(struct dblp_link *l, struct dblp_task *t)
{
	int err = dblp_losses_sent(l, t, l->out.tag, dblp_task_part(t));

	if (err)
		return err;
	t->done += dblp_task_part(t);
	if (t->done < t->step->count)
		return 0;
	dblp_queue_pop(&l->sends);
	if (t->own)
		dblp_late_free(t);
	else if (!t->reports)
		dblp_task_end(t);
	return 0;
}

/* A message was sent completely: advance @part */
static int message_sent(struct dblp_link *l, struct dblp_task *t)
{
	l->out.sent = 0;
	l->out.is_ready = false;
	switch (l->out.part) {
	case DBLP_PART_COUNTS:
		l->out.part = l->out.n_runs ? DBLP_PART_RUNS : DBLP_PART_DATA;
		l->out.runs_sent = true;
		break;
	case DBLP_PART_RUNS:
		l->out.part = DBLP_PART_DATA;
		break;
	case DBLP_PART_DATA:
		l->out.runs_sent = false;
		return data_sent(l, t);
	}
	return 0;
}

/* Send a part of the first queued task. Return true on progress */
bool dblp_link_send(struct dblp_link *l)
{
	struct dblp_task *t = l->sends.first;
	struct iovec iov[2];
	ssize_t n;
	int err;

	if (!t || t->waits || l->state != DBLP_LINK_READY || !l->can_write)
		return false;
	n = send_part(l, t);
	if (n == -EAGAIN)
		l->can_write = false;
	if (n == -EAGAIN || n == -EINTR)
		return n == -EINTR;
	if (n < 0) {
		dblp_link_died(l, (int)n);
		return false;
	}
	t->begun = true;
	/*
	 * The result is final once the operation has ended: data for late ranks
	 * is not counted
	 */
	if (!t->req->ended)
		t->req->result.sent += (uint64_t)n;
	l->out.sent += (size_t)n;
	err = l->out.sent == message_of(l, t, iov) ? message_sent(l, t) : 0;
	if (err)
		dblp_link_died(l, err);
	return !err;
}

void dblp_link_reports(struct dblp_link *l)
{
	struct dblp_msg report = { 0 };
	int lost = 0;

	while (!l->comm->transport->protocol) {
		struct dblp_task *t;

		lost = dblp_report(l->fd, 0, &report);
		if (lost)
			break;
		t = dblp_losses_reported(l, &report);
		if (t && !t->reports && t->done == t->step->count)
			dblp_task_end(t);
	}
	dblp_msg_free(&report);
	/*
	 * A lost report is not repeated, and the operation would wait for it
	 * forever
	 */
	if (lost && lost != -EAGAIN && lost != -EINTR)
		dblp_suspect(l->comm, l->comm->rank, lost, NULL);
}
