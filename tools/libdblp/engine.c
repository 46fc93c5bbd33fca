// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The engine carries out the steps of operations, by the rules of collective.h.
 *
 * Each link has a queue of tasks to send and one of tasks to receive, in the
 * order of operations and rounds. The peer's queues have the same order, so a
 * receiver knows in advance which message is next and where its data belongs.
 * The first task of a queue proceeds when the steps for which it waits have
 * ended.
 */

#include "engine.h"
#include "reduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Report an operation to rank 0 after this time, ms */
#define REPORT_MS	20
#define EVENTS		64
/* No errno is larger */
#define ERRNO_MAX	4095

/*
 * Set @first to the first operation from @req on that has not ended and
 * involves all ranks
 */
static void set_first(struct dblp_comm *comm, struct dblp_req *req)
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
static void req_end(struct dblp_req *req)
{
	struct dblp_comm *comm = req->comm;
	uint64_t one = 1;

	if (req->ended)
		return;
	req->result.ns = dblp_comm_now() - req->begin;
	pthread_mutex_lock(&comm->lock);
	dblp_losses_free(req);
	req->ended = true;
	if (req == comm->first)
		set_first(comm, req);
	if (write(comm->ended_fd, &one, sizeof(one)) < 0) {
		/* The 64-bit counter cannot overflow */
	}
	pthread_cond_broadcast(&comm->cond);
	pthread_mutex_unlock(&comm->lock);
	if (!req->queued)
		req_over(req);
}

static void run_local(struct dblp_task *t)
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
		dblp_ctl_suspect(req->comm, req->comm->rank, err);
	else
		dblp_task_end(t);
}

static bool is_local(const struct dblp_task *t)
{
	return t->step->op == DBLP_STEP_CLEAR || t->step->op == DBLP_STEP_FINISH;
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
		/*
		 * A failure may end the operation here: then the program owns
		 * the vector again
		 */
		if (!is_local(next))
			dblp_link_wake(dblp_task_link(next));
		else if (!req->ended)
			run_local(next);
	}
	if (!req->left)
		req_end(req);
}

/* Make the head of the next message of a step */
static void make_head(const struct dblp_task *t, uint32_t from, uint32_t runs,
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

/* Sending */

/* Allocate decoded runs. A message has at most as many runs as elements */
static int need_runs(struct dblp_link *l, uint32_t n)
{
	struct dblp_run *run = reallocarray(l->run, n, sizeof(*run));

	if (!run)
		return -ENOMEM;
	l->run = run;
	return 0;
}

/* Allocate encoded runs */
static int need_encoded(uint8_t **encoded, uint32_t n)
{
	uint8_t *p = reallocarray(*encoded, n, DBLP_RUN_LEN);

	if (!p)
		return -ENOMEM;
	*encoded = p;
	return 0;
}

/* Send no runs if no contribution is missing */
static int make_counts(struct dblp_link *l, const struct dblp_task *t)
{
	const uint32_t most = t->req->counts.n < dblp_task_part(t) ?
			      t->req->counts.n : (uint32_t)dblp_task_part(t);
	int n = need_runs(l, most);

	if (!n)
		n = dblp_losses_cut(t, dblp_task_part(t), l->run, most);
	if (n == 1 && l->run[0].contributions == t->step->contributions)
		n = 0;
	if (n > 0 && need_encoded(&l->runs_out, (uint32_t)n))
		n = -ENOMEM;
	if (n < 0)
		return n;
	l->n_out = (uint32_t)n;
	dblp_runs_put(l->run, l->n_out, l->runs_out);
	make_head(t, l->comm->rank, l->n_out, l->head_out);
	return 0;
}

/* Prepare the next message, of kind @part_out */
static int begin_to_send(struct dblp_link *l, const struct dblp_task *t)
{
	int err;

	l->info = (struct dblp_sndinfo) {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.policy = DBLP_POLICY_FULL,
	};
	if (l->part_out == DBLP_PART_DATA && dblp_losses_need_counts(t) &&
	    !l->counted)
		l->part_out = DBLP_PART_COUNTS;
	if (l->part_out == DBLP_PART_RUNS)
		return 0;
	if (l->part_out == DBLP_PART_COUNTS)
		return make_counts(l, t);
	make_head(t, l->comm->rank, 0, l->head_out);
	if (dblp_is_sparse(t) && (err = dblp_pack(l, t)))
		return err;
	return dblp_lane_loss(l, t, &l->info);
}

/* Buffers of the message being sent; returns its length, bytes */
static size_t message_of(struct dblp_link *l, struct dblp_task *t,
			 struct iovec iov[2])
{
	iov[0] = (struct iovec) { l->head_out, sizeof(l->head_out) };
	if (dblp_is_sparse(t))
		iov[1] = (struct iovec) { l->packed, l->n_packed };
	else
		iov[1] = (struct iovec) { dblp_task_data(t),
					  dblp_task_part(t) * t->req->esize };
	if (l->part_out != DBLP_PART_DATA)
		iov[1].iov_len = 0;
	if (l->part_out == DBLP_PART_RUNS)
		iov[0] = (struct iovec) { l->runs_out,
					  l->n_out * DBLP_RUN_LEN };
	return iov[0].iov_len + iov[1].iov_len;
}

/* Send a part of the message; returns bytes, or a negative errno */
static ssize_t send_some(struct dblp_link *l, struct dblp_task *t)
{
	struct iovec iov[2];
	int err = 0;

	/*
	 * Prepare once, although send() may fail with EAGAIN: preparing
	 * consumes credit
	 */
	if (!l->prepared)
		err = begin_to_send(l, t);
	if (err)
		return err;
	l->prepared = true;
	message_of(l, t, iov);
	dblp_iov_skip(iov, l->sent);
	return l->comm->transport->send(l->fd, iov, &l->info);
}

static void queue_end(struct dblp_task **first, struct dblp_task ***end)
{
	*first = (*first)->next;
	if (!*first)
		*end = first;
}

/* A message with data was sent completely */
static void data_sent(struct dblp_link *l, struct dblp_task *t)
{
	int err = dblp_losses_sent(l, t, l->tag, dblp_task_part(t));

	if (err) {
		dblp_ctl_suspect(l->comm, l->comm->rank, err);
		return;
	}
	t->done += dblp_task_part(t);
	if (t->done < t->step->count)
		return;
	queue_end(&l->out, &l->out_end);
	if (t->own)
		dblp_late_forget(t);
	else if (!t->reports)
		dblp_task_end(t);
}

/* A message was sent completely: advance @part_out */
static void message_sent(struct dblp_link *l, struct dblp_task *t)
{
	l->sent = 0;
	l->prepared = false;
	switch (l->part_out) {
	case DBLP_PART_COUNTS:
		l->part_out = l->n_out ? DBLP_PART_RUNS : DBLP_PART_DATA;
		l->counted = true;
		break;
	case DBLP_PART_RUNS:
		l->part_out = DBLP_PART_DATA;
		break;
	case DBLP_PART_DATA:
		l->counted = false;
		data_sent(l, t);
		break;
	}
}

/* Send a part of the first queued task. Return true on progress */
static bool link_send(struct dblp_link *l)
{
	struct dblp_task *t = l->out;
	struct iovec iov[2];
	ssize_t n;

	if (!t || t->waits || l->state != DBLP_LINK_READY || !l->can_write)
		return false;
	n = send_some(l, t);
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
	l->sent += (size_t)n;
	if (l->sent == message_of(l, t, iov))
		message_sent(l, t);
	return true;
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
		dblp_ctl_suspect(l->comm, l->comm->rank, lost);
}

/* Receiving */

/* Add the complete elements of @range, which may include bytes of the head */
static void add_range(struct dblp_link *l, struct dblp_task *t,
		      const struct dblp_range *range)
{
	const uint32_t esize = t->req->esize, head = sizeof(l->head_in);
	uint64_t from = range->offset, to = from + range->length;

	if (to <= head)
		return;
	from = from > head ? (from - head) / esize : 0;
	to = (to - head) / esize;
	if (to > from)
		dblp_reduce_add(t->req->op.dtype, dblp_task_data(t) + from * esize,
				l->stage + from * esize, to - from);
}

/* Expect the runs that the head has announced */
static int expect_runs(struct dblp_link *l)
{
	int err = need_encoded(&l->runs_in, l->n_in);

	if (!err)
		dblp_inbox_set(&l->inbox, l->runs_in, l->n_in * DBLP_RUN_LEN,
			       NULL, 0);
	return err;
}

static int begin_message(struct dblp_link *l, struct dblp_task *t)
{
	bool stage = t->step->op == DBLP_STEP_ADD || dblp_keeps(t);
	int err;

	if (l->part_in == DBLP_PART_RUNS)
		return expect_runs(l);
	l->good = false;
	if (dblp_losses_need_counts(t) && !l->counts) {
		l->part_in = DBLP_PART_COUNTS;
		dblp_inbox_set(&l->inbox, l->head_in, sizeof(l->head_in), NULL,
			       0);
		return 0;
	}
	if (dblp_is_sparse(t))
		return dblp_packed_expect(l, t);
	err = stage ? dblp_link_stage(l, l->comm->attr.message_bytes) : 0;
	if (err)
		return err;
	dblp_inbox_set(&l->inbox, l->head_in, sizeof(l->head_in),
		       stage ? l->stage : dblp_task_data(t),
		       dblp_task_part(t) * t->req->esize);
	return 0;
}

static bool head_came(const struct dblp_link *l)
{
	if (l->comm->transport->protocol)
		return l->inbox.got >= sizeof(l->head_in);
	return l->inbox.closed || (l->inbox.n && !l->inbox.range[0].offset &&
				   l->inbox.range[0].length >=
				   sizeof(l->head_in));
}

/* Is this the head of the expected message? */
static int check_head(struct dblp_link *l, const struct dblp_task *t)
{
	uint8_t want[DBLP_HEAD_LEN];
	struct dblp_head head;

	if (dblp_head_get(l->head_in, sizeof(l->head_in), &head))
		return -EPROTO;
	if (l->part_in == DBLP_PART_COUNTS)
		l->n_in = head.runs;
	make_head(t, l->rank, l->part_in == DBLP_PART_COUNTS ? l->n_in : 0,
		  want);
	if (memcmp(want, l->head_in, sizeof(want)))
		return -EPROTO;
	l->good = true;
	return 0;
}

/* A part of the message has arrived */
static int take(struct dblp_link *l, struct dblp_task *t)
{
	uint32_t i;
	int err = 0;

	t->begun = true;
	if (l->part_in == DBLP_PART_RUNS)
		return 0;
	if (!l->good && head_came(l))
		err = check_head(l, t);
	if (err)
		return err;
	if (t->step->op == DBLP_STEP_ADD && !t->late &&
	    !dblp_is_sparse(t))
		for (i = 0; i < l->inbox.n; i++)
			add_range(l, t, &l->inbox.range[i]);
	return 0;
}

static int read_runs(struct dblp_link *l, const struct dblp_task *t)
{
	struct dblp_head head;
	int err = need_runs(l, l->n_in);

	if (err)
		return err;
	return dblp_head_get(l->head_in, sizeof(l->head_in), &head) ||
	       dblp_runs_get(&head, l->runs_in, t->step->contributions,
			     l->run) ? -EPROTO : 0;
}

/* Decode the runs again, because sending may have overwritten @run */
static int add_counts(struct dblp_link *l, struct dblp_task *t,
		      const struct dblp_sparse *s)
{
	int err = 0;

	if (l->n_in) {
		make_head(t, l->rank, l->n_in, l->head_in);
		err = read_runs(l, t);
	}
	return err ?: dblp_losses_added(t, dblp_task_part(t), s, &l->inbox.map, l->run,
					l->n_in);
}

/* Record the budget of a received message, which an operator may have set */
static void note_budget(struct dblp_task *t, const struct dblp_msg *m)
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

/* Copy received sums; elements that were lost keep their old value */
static void copy_rest(const struct dblp_link *l, const struct dblp_task *t)
{
	const struct dblp_loss loss = dblp_loss_of(&l->inbox.map, t->req->esize,
						   dblp_task_part(t), NULL);
	struct dblp_loss_at at = { 0 };
	uint64_t from = 0, esize = t->req->esize;

	while (dblp_loss_lost(&loss, &at)) {
		memcpy(dblp_task_data(t) + from * esize, l->stage + from * esize,
		       (at.lost.first - from) * esize);
		from = at.lost.end;
	}
	memcpy(dblp_task_data(t) + from * esize, l->stage + from * esize,
	       (loss.count - from) * esize);
}

/* A message with data is complete */
static int data_taken(struct dblp_link *l, struct dblp_task *t)
{
	const bool sparse = dblp_is_sparse(t);
	struct dblp_comm *comm = l->comm;
	struct dblp_sparse s;
	uint32_t i;
	int err = 0;

	for (i = 0; i < l->inbox.map.n && !t->late; i++)
		dblp_task_missing(t, l->inbox.map.range[i].length);
	if (t->late)
		dblp_comm_count(comm, &comm->stats.late);
	else if (sparse)
		err = dblp_packed_take(l, t, &s);
	else if (dblp_keeps(t))
		copy_rest(l, t);
	if (!t->late && !err)
		err = add_counts(l, t, sparse ? &s : NULL);
	if (!t->late)
		note_budget(t, &l->inbox.map);
	l->n_in = 0;
	l->counts = false;
	t->done += dblp_task_part(t);
	if (err || t->done < t->step->count)
		return err;
	queue_end(&l->in, &l->in_end);
	if (t->late)
		dblp_req_unqueue(t->req);
	else
		dblp_task_end(t);
	return 0;
}

static int taken(struct dblp_link *l, struct dblp_task *t)
{
	int err = 0;

	if (l->part_in == DBLP_PART_DATA && dblp_is_sparse(t) &&
	    l->comm->transport->protocol &&
	    l->inbox.iov[1].iov_len == DBLP_SPARSE_HEAD)
		return dblp_packed_rest(l, t);
	switch (l->part_in) {
	case DBLP_PART_COUNTS:
		l->part_in = l->n_in ? DBLP_PART_RUNS : DBLP_PART_DATA;
		l->counts = true;
		break;
	case DBLP_PART_RUNS:
		l->part_in = DBLP_PART_DATA;
		err = read_runs(l, t);
		break;
	case DBLP_PART_DATA:
		err = data_taken(l, t);
		break;
	}
	l->inbox.len = 0;
	return err;
}

static bool link_receive(struct dblp_link *l)
{
	struct dblp_task *t = l->in;
	int n = 0;

	if (!t || (t->waits && !t->late) || l->state != DBLP_LINK_READY ||
	    !l->can_read)
		return false;
	if (!l->inbox.len)
		n = begin_message(l, t);
	if (n) {
		dblp_link_died(l, n);
		return false;
	}
	n = l->comm->transport->recv(l->fd, &l->inbox);
	if (n == -EAGAIN)
		l->can_read = false;
	if (n == -EAGAIN || n == -EINTR)
		return n == -EINTR;
	if (n > 0)
		n = take(l, t);
	else
		n = n ?: -ECONNRESET;
	if (!n && l->inbox.closed)
		n = taken(l, t);
	if (n)
		dblp_link_died(l, n);
	return !n;
}

/*
 * Let each woken link send and receive a part of a message. Links with progress
 * stay woken. Return true if a link is woken.
 */
static bool run(struct dblp_comm *comm)
{
	struct dblp_link *l = comm->woken, *next;

	comm->woken = NULL;
	comm->woken_end = &comm->woken;
	for (; l; l = next) {
		bool received, sent;

		next = l->next_woken;
		l->is_woken = false;
		received = !comm->error && link_receive(l);
		sent = !comm->error && link_send(l);
		if (received || sent)
			dblp_link_wake(l);
	}
	return comm->woken && !comm->error;
}

/* Operations */

static void queue_task(struct dblp_task *t)
{
	const struct dblp_step *step = t->step;
	struct dblp_link *l = dblp_task_link(t);
	struct dblp_task ***end = step->op == DBLP_STEP_SEND ? &l->out_end :
							       &l->in_end;

	**end = t;
	*end = &t->next;
	if (step->op == DBLP_STEP_ADD ||
	    (step->op == DBLP_STEP_COPY && dblp_keeps(t))) {
		t->req->result.asked += dblp_task_share(t);
		t->req->result.lane[l->lane].asked += dblp_task_share(t);
	}
	dblp_link_wake(l);
	dblp_link_want(l);
}

static void req_begin(struct dblp_comm *comm, struct dblp_req *req)
{
	uint32_t i;

	TAILQ_INSERT_TAIL(&comm->reqs, req, entry);
	if (!comm->first)
		set_first(comm, req);
	if (req->op.wait_ms)
		comm->due = 0;
	comm->due = dblp_earlier(comm->due, dblp_limit_until(req));
	dblp_losses_begin(req);
	if (req->peer < 0) {
		comm->begun = req->seq + 1;
		comm->digest[req->seq % DBLP_DIGESTS] = req->digest;
		dblp_ctl_began(comm, req);
	}
	for (i = 0; i < req->sched->n && !comm->error; i++)
		if (!is_local(&req->task[i]))
			queue_task(&req->task[i]);
	for (i = 0; i < req->sched->n && !comm->error; i++)
		if (is_local(&req->task[i]) && !req->task[i].waits &&
		    !req->task[i].ended)
			run_local(&req->task[i]);
	if (!req->left)
		req_end(req);
}

void dblp_engine_fail(struct dblp_comm *comm, uint32_t rank, uint32_t error)
{
	struct dblp_req *req, *next;
	uint32_t i;

	/*
	 * dblp_wait() must not return -EAGAIN for a failure: programs would
	 * wait again for a request that is freed
	 */
	if (!error || error > ERRNO_MAX || error == EAGAIN)
		error = ECANCELED;
	pthread_mutex_lock(&comm->lock);
	comm->error = -(int)error;
	comm->failed_rank = (int32_t)rank;
	pthread_mutex_unlock(&comm->lock);
	for (i = 0; i < comm->nranks * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		l->out = NULL;
		l->in = NULL;
		dblp_losses_forget(l);
	}
	for (req = TAILQ_FIRST(&comm->reqs); req; req = next) {
		next = TAILQ_NEXT(req, entry);
		for (i = 0; i < req->sched->n; i++)
			if (req->task[i].own)
				dblp_late_forget(&req->task[i]);
		if (!req->ended) {
			req->result.error = comm->error;
			req->result.failed_rank = comm->failed_rank;
		}
		if (req->queued) {
			req->queued = 1;
			dblp_req_unqueue(req);
		}
		req_end(req);
	}
}

/*
 * Take new operations from the program. Return true if it is closing the
 * communicator
 */
static bool read_inbox(struct dblp_comm *comm)
{
	struct dblp_reqs new = TAILQ_HEAD_INITIALIZER(new);
	struct dblp_req *req;
	uint32_t abort;
	bool quit;

	pthread_mutex_lock(&comm->lock);
	TAILQ_CONCAT(&new, &comm->inbox, entry);
	abort = comm->abort;
	quit = comm->quit;
	pthread_mutex_unlock(&comm->lock);
	while ((req = TAILQ_FIRST(&new))) {
		TAILQ_REMOVE(&new, req, entry);
		if (!comm->error) {
			req_begin(comm, req);
			continue;
		}
		req->result.error = comm->error;
		req->result.failed_rank = comm->failed_rank;
		TAILQ_INSERT_TAIL(&comm->reqs, req, entry);
		req_end(req);
	}
	if (abort)
		dblp_ctl_suspect(comm, comm->rank, -(int)abort);
	return quit;
}

/*
 * Report the first operation that takes long to rank 0, once. Rank 0 keeps one
 * report of each rank; later operations may only be slow because of the first.
 * Return the time of the next report.
 */
static uint64_t report_timeout(struct dblp_comm *comm, uint64_t now)
{
	struct dblp_req *req = comm->first;
	uint64_t report;

	if (!req || req->told)
		return UINT64_MAX;
	report = req->begin + REPORT_MS * MS_NS;
	if (now < report)
		return report;
	req->told = true;
	dblp_ctl_report(comm, req);
	return UINT64_MAX;
}

/*
 * Check late ranks and time limits of all operations. There may be thousands,
 * so this waits until one of them is due
 */
static uint64_t due_timeout(struct dblp_comm *comm, uint64_t now)
{
	struct dblp_req *req, *next;

	if (now < comm->due && !comm->left_out)
		return comm->due;
	comm->due = UINT64_MAX;
	comm->left_out = false;
	for (req = TAILQ_FIRST(&comm->reqs); req && !comm->error; req = next) {
		next = TAILQ_NEXT(req, entry);
		if (req->op.wait_ms && !req->ended) {
			comm->due = dblp_earlier(comm->due, dblp_late_timeout(req, now));
			comm->left_out |= !req->ended && req->result.late_ranks;
		}
		if (now >= dblp_limit_until(req) && !req->ended)
			dblp_limit_over(req);
		if (!req->ended)
			comm->due = dblp_earlier(comm->due, dblp_limit_until(req));
	}
	return comm->due;
}

/* Move operations without work left to @done, for dblp_wait() */
static void hand_over(struct dblp_comm *comm)
{
	struct dblp_req *req;

	if (TAILQ_EMPTY(&comm->over))
		return;
	pthread_mutex_lock(&comm->lock);
	while ((req = TAILQ_FIRST(&comm->over))) {
		TAILQ_REMOVE(&comm->over, req, entry);
		if (req->users > 1)
			TAILQ_INSERT_TAIL(&comm->done, req, entry);
		dblp_req_put(req);
	}
	pthread_mutex_unlock(&comm->lock);
}

/* Handle timeouts; returns the timeout for epoll_wait(), ms */
static int timeouts(struct dblp_comm *comm)
{
	uint64_t now = dblp_comm_now(), next = dblp_pending_timeout(comm, now);

	next = dblp_earlier(next, dblp_ctl_timeout(comm, now));
	next = dblp_earlier(next, report_timeout(comm, now));
	next = dblp_earlier(next, due_timeout(comm, now));
	next = dblp_earlier(next, dblp_limit_timeout(comm, now));
	hand_over(comm);
	if (next == UINT64_MAX)
		return -1;
	now = dblp_comm_now();
	return dblp_poll_ms(next <= now ? 0 : next - now);
}

static void event(struct dblp_comm *comm, const struct epoll_event *ev)
{
	enum dblp_source *source = ev->data.ptr;
	uint64_t n;

	switch (*source) {
	case DBLP_SOURCE_WAKE:
		if (read(comm->wake, &n, sizeof(n)) < 0) {
			/* EAGAIN: already read */
		}
		break;
	case DBLP_SOURCE_CTL:
		dblp_ctl_event(comm, ev->data.ptr);
		break;
	case DBLP_SOURCE_LISTENER:
		dblp_listener_event(comm, ev->data.ptr);
		break;
	case DBLP_SOURCE_PENDING:
		dblp_pending_event(comm, ev->data.ptr);
		break;
	case DBLP_SOURCE_LINK:
		dblp_link_event(ev->data.ptr, ev->events);
		break;
	}
}

void *dblp_engine(void *arg)
{
	struct dblp_comm *comm = arg;
	struct epoll_event ev[EVENTS];
	int i, n, ms;
	bool more;

	while (!read_inbox(comm)) {
		more = run(comm);
		ms = timeouts(comm);
		/* Poll for events even while links have work */
		n = epoll_wait(comm->epoll, ev, EVENTS, more ? 0 : ms);
		for (i = 0; i < n; i++)
			event(comm, &ev[i]);
	}
	dblp_ctl_bye(comm);
	return NULL;
}
