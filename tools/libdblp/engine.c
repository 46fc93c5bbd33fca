// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The loop of the engine, which carries out the steps of operations by the rules
 * of plan.h. It takes operations from the program, lets links send and receive,
 * handles timeouts and events, and acts on failures.
 *
 * Each link has a queue of tasks to send and one of tasks to receive, in the
 * order of operations and rounds. The peer's queues have the same order, so a
 * receiver knows in advance which message is next and where its data belongs.
 * The first task of a queue proceeds when the steps for which it waits have
 * ended.
 */

#include "engine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Report an operation to rank 0 after this time, ms */
#define REPORT_MS	20
#define EVENTS		64
/* No errno is larger */
#define ERRNO_MAX	4095

void dblp_engine_wake(struct dblp_comm *comm)
{
	uint64_t one = 1;

	if (write(comm->wake, &one, sizeof(one)) < 0) {
		/* EAGAIN: the engine is awake anyway */
	}
}

/*
 * Let each woken link send and receive a part of a message. Links with progress
 * stay woken. Return true if a link is woken.
 */
static bool run_links(struct dblp_comm *comm)
{
	struct dblp_link *l = comm->woken, *next;

	comm->woken = NULL;
	comm->woken_end = &comm->woken;
	for (; l; l = next) {
		bool received, sent;

		next = l->next_woken;
		l->is_woken = false;
		received = dblp_link_receive(l);
		sent = dblp_link_send(l);
		if (received || sent)
			dblp_link_wake(l);
	}
	return comm->woken;
}

/* Operations */

static void queue_task(struct dblp_task *t)
{
	const struct dblp_step *step = t->step;
	struct dblp_link *l = dblp_task_link(t);

	dblp_queue_add(step->op == DBLP_STEP_SEND ? &l->sends : &l->receives, t);
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
		dblp_req_first(comm, req);
	if (req->op.wait_ms)
		comm->due = 0;
	comm->due = dblp_earlier(comm->due, dblp_limit_until(req));
	dblp_losses_begin(req);
	if (req->peer < 0) {
		comm->begun = req->seq + 1;
		comm->digest[req->seq % DBLP_DIGESTS] = req->digest;
		dblp_ctl_began(comm, req);
	}
	for (i = 0; i < req->sched->n; i++)
		if (!dblp_task_is_local(&req->task[i]))
			queue_task(&req->task[i]);
	for (i = 0; i < req->sched->n; i++)
		if (dblp_task_is_local(&req->task[i]) && !req->task[i].waits &&
		    !req->task[i].ended)
			dblp_task_run(&req->task[i]);
	if (!req->left)
		dblp_req_end(req);
}

/*
 * Fail the communicator: end all operations, also those that the engine has not
 * taken yet. No others follow, because they are refused under the same lock.
 */
static void fail(struct dblp_comm *comm, uint32_t rank, uint32_t error)
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
	TAILQ_CONCAT(&comm->reqs, &comm->inbox, entry);
	pthread_mutex_unlock(&comm->lock);
	for (i = 0; i < comm->nranks * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		l->sends.first = NULL;
		l->receives.first = NULL;
		dblp_records_free(l);
	}
	for (req = TAILQ_FIRST(&comm->reqs); req; req = next) {
		next = TAILQ_NEXT(req, entry);
		for (i = 0; i < req->sched->n; i++)
			if (req->task[i].own)
				dblp_late_free(&req->task[i]);
		if (!req->ended) {
			req->result.error = comm->error;
			req->result.failed_rank = comm->failed_rank;
		}
		if (req->queued) {
			req->queued = 1;
			dblp_req_unqueue(req);
		}
		dblp_req_end(req);
	}
}

void dblp_engine_agree(struct dblp_comm *comm)
{
	const struct dblp_failure *f;

	if (!dblp_has_failure(comm))
		return;
	f = dblp_ctl_agree(comm);
	if (f)
		fail(comm, f->rank, f->error);
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
		req_begin(comm, req);
	}
	if (abort)
		dblp_suspect(comm, comm->rank, -(int)abort, NULL);
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

	if (!req || req->reported)
		return UINT64_MAX;
	report = req->begin + REPORT_MS * MS_NS;
	if (now < report)
		return report;
	req->reported = true;
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

	if (now < comm->due && !comm->has_late)
		return comm->due;
	comm->due = UINT64_MAX;
	comm->has_late = false;
	for (req = TAILQ_FIRST(&comm->reqs); req; req = next) {
		next = TAILQ_NEXT(req, entry);
		if (req->op.wait_ms && !req->ended) {
			comm->due = dblp_earlier(comm->due, dblp_late_timeout(req, now));
			comm->has_late |= !req->ended && req->result.late_ranks;
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

/* Handle the timeouts of a communicator that has not failed, as dblp_ctl_timeout() */
static uint64_t work_timeouts(struct dblp_comm *comm, uint64_t now)
{
	uint64_t next = dblp_link_timeout(comm, now);

	next = dblp_earlier(next, dblp_ctl_timeout(comm, now));
	next = dblp_earlier(next, report_timeout(comm, now));
	next = dblp_earlier(next, due_timeout(comm, now));
	return dblp_earlier(next, dblp_limit_timeout(comm, now));
}

/* Handle timeouts; returns the timeout for epoll_wait(), ms */
static int timeouts(struct dblp_comm *comm)
{
	uint64_t now = dblp_comm_now(), next = dblp_pending_timeout(comm, now);

	if (!comm->error)
		next = dblp_earlier(next, work_timeouts(comm, now));
	hand_over(comm);
	/* Act on a failure at once */
	if (dblp_has_failure(comm))
		return 0;
	if (next == UINT64_MAX)
		return -1;
	now = dblp_comm_now();
	return dblp_poll_ms(next <= now ? 0 : next - now);
}

void dblp_link_event(struct dblp_link *l, uint32_t events)
{
	if (l->state == DBLP_LINK_DEAD)
		return;
	if (l->state == DBLP_LINK_CONNECTING &&
	    events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		dblp_link_connected(l);
		return;
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		l->can_read = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		l->can_write = true;
	dblp_link_wake(l);
	/*
	 * An error may stand for reports. Other errors show when the socket is
	 * written, or read: after pending data
	 */
	if (events & EPOLLERR)
		dblp_link_reports(l);
	/* A link that only waits for reports is neither read nor written */
	if (events & EPOLLHUP && l->record)
		dblp_link_died(l, -ECONNRESET);
}

static void handle_event(struct dblp_comm *comm, const struct epoll_event *ev)
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

/* Handle some of the events that arrive within @ms; return their number, or -1 */
static int handle_some(struct dblp_comm *comm, int ms)
{
	struct epoll_event ev[EVENTS];
	int i, n = epoll_wait(comm->epoll, ev, EVENTS, ms);

	for (i = 0; i < n; i++)
		handle_event(comm, &ev[i]);
	return n;
}

/*
 * Signals are blocked, so an interrupted call means that the process was
 * stopped. Handle all events before the next timeouts, because they arrived in
 * time.
 */
static void handle_events(struct dblp_comm *comm, int ms)
{
	bool was_stopped = handle_some(comm, ms) < 0;

	while (was_stopped && handle_some(comm, 0) == EVENTS) {
	}
}

void *dblp_engine(void *arg)
{
	struct dblp_comm *comm = arg;
	bool quit, more;
	int ms;

	for (;;) {
		quit = read_inbox(comm);
		/* Also before the end: other ranks need to know the failure */
		dblp_engine_agree(comm);
		if (quit)
			break;
		more = run_links(comm);
		ms = timeouts(comm);
		/* Poll for events even while links have work */
		handle_events(comm, more ? 0 : ms);
	}
	dblp_ctl_bye(comm);
	return NULL;
}
