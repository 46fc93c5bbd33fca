// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Communicators: functions that programs call.
 */

#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Opening and closing */

static int new_lock(struct dblp_comm *comm)
{
	pthread_condattr_t attr;

	if (pthread_condattr_init(&attr))
		return -ENOMEM;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->cond, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static struct dblp_comm *new_comm(void)
{
	struct dblp_comm *comm = calloc(1, sizeof(*comm));
	int i;

	if (!comm)
		return NULL;
	comm->epoll = -1;
	comm->wake = -1;
	comm->ended_fd = -1;
	comm->join_listener = -1;
	comm->failed_rank = -1;
	comm->due = UINT64_MAX;
	TAILQ_INIT(&comm->reqs);
	TAILQ_INIT(&comm->over);
	TAILQ_INIT(&comm->inbox);
	TAILQ_INIT(&comm->done);
	for (i = 0; i < DBLP_NICS_MAX; i++)
		comm->nic[i].listener = -1;
	if (new_lock(comm) || dblp_process_add(comm)) {
		free(comm);
		return NULL;
	}
	return comm;
}

static int allocate(struct dblp_comm *comm)
{
	size_t n = (size_t)comm->nranks * comm->n_links;
	struct dblp_ctlconn *ctl;
	struct dblp_link *link;
	uint32_t i;

	comm->n_ctl = comm->rank ? 1 : comm->nranks;
	ctl = calloc(comm->n_ctl, sizeof(*ctl));
	comm->table = calloc((size_t)comm->nranks * comm->n_nics, sizeof(*comm->table));
	comm->left = calloc(comm->nranks, sizeof(*comm->left));
	comm->left_at = calloc(comm->nranks, sizeof(*comm->left_at));
	link = calloc(n, sizeof(*link));
	/*
	 * fork() may happen at any time: fds must be -1 before a child sees
	 * them
	 */
	for (i = 0; ctl && i < comm->n_ctl; i++) {
		ctl[i].source = DBLP_SOURCE_CTL;
		ctl[i].fd = -1;
		ctl[i].rank = i;
	}
	for (i = 0; link && i < n; i++)
		link[i].fd = -1;
	__atomic_store_n(&comm->ctl, ctl, __ATOMIC_RELEASE);
	__atomic_store_n(&comm->link, link, __ATOMIC_RELEASE);
	if (!ctl || !link || !comm->table || !comm->left || !comm->left_at ||
	    getrandom(&comm->id, sizeof(comm->id), 0) < 0)
		return -ENOMEM;
	return 0;
}

static int make_fds(struct dblp_comm *comm)
{
	struct epoll_event ev = {
		.events = EPOLLIN,
		.data.ptr = &comm->wake_source,
	};

	comm->wake_source = DBLP_SOURCE_WAKE;
	comm->epoll = epoll_create1(EPOLL_CLOEXEC);
	comm->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	comm->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (comm->epoll < 0 || comm->wake < 0 || comm->ended_fd < 0 ||
	    epoll_ctl(comm->epoll, EPOLL_CTL_ADD, comm->wake, &ev))
		return -errno;
	return 0;
}

/* Start the engine, with all signals blocked */
static int start(struct dblp_comm *comm)
{
	char name[sizeof(DBLP_THREAD_NAME) + 10];
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&comm->thread, NULL, dblp_engine, comm);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	comm->running = !err;
	snprintf(name, sizeof(name), DBLP_THREAD_NAME "%u", comm->rank);
	if (!err)
		pthread_setname_np(comm->thread, name);
	return -err;
}

static int try_lane(const struct dblp_comm *comm, const struct dblp_lane *lane)
{
	int fd = dblp_socket(&comm->nic[0].addr, comm->transport->protocol);
	int err;

	if (fd < 0)
		return fd;
	err = comm->transport->lane(fd, lane);
	close(fd);
	return err;
}

/* May this process set the options of its lanes? */
static int try_lanes(const struct dblp_comm *comm)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < comm->n_lanes; i++)
		err = try_lane(comm, &comm->lane[i]);
	return err;
}

static int join(struct dblp_comm *comm)
{
	uint64_t until = dblp_comm_now() + comm->attr.join_ms * MS_NS;

	return comm->rank ? dblp_join(comm, until) : dblp_admit(comm, until);
}

static void describe(struct dblp_comm *comm)
{
	char addr[DBLP_ADDR_TEXT];

	dblp_addr_format(&comm->nic[0].addr, addr);
	snprintf(comm->describe, sizeof(comm->describe),
		 "rank %u of %u, epoch %u, over %s%s%s at %s, devices %s, messages of %u bytes, lanes %u",
		 comm->rank, comm->nranks, comm->attr.epoch,
		 comm->transport->name, comm->cc[0] ? ":" : "", comm->cc, addr,
		 comm->attr.devices ?: "as routed", comm->attr.message_bytes, comm->n_lanes);
}

int dblp_comm_open(struct dblp_comm **new, const struct dblp_comm_attr *attr)
{
	struct dblp_comm *comm = new_comm();
	int err;

	dblp_why_clear();
	if (!comm)
		return -ENOMEM;
	err = dblp_attr_set(comm, attr);
	if (!err)
		err = allocate(comm);
	if (!err)
		err = make_fds(comm);
	if (!err)
		err = dblp_process_reserve(comm) ?: join(comm);
	if (!err)
		err = try_lanes(comm);
	if (!err)
		err = dblp_links_begin(comm);
	if (!err)
		err = dblp_ctl_begin(comm);
	if (!err) {
		describe(comm);
		/* Strings belong to the caller */
		comm->attr.rendezvous = NULL;
		comm->attr.transport = NULL;
		comm->attr.devices = NULL;
		comm->attr.lane = NULL;
		comm->attr.secret = NULL;
		comm->attr.ports = NULL;
		comm->attr.bind = NULL;
		err = start(comm);
	}
	if (err)
		dblp_comm_close(comm);
	else
		*new = comm;
	return err;
}

static void free_reqs(struct dblp_reqs *reqs)
{
	struct dblp_req *req;
	uint32_t i;

	while ((req = TAILQ_FIRST(reqs))) {
		TAILQ_REMOVE(reqs, req, entry);
		for (i = 0; i < req->sched->n; i++)
			free(req->task[i].own);
		req->users = 1;
		dblp_req_put(req);
	}
}

void dblp_comm_close(struct dblp_comm *comm)
{
	uint32_t i;

	if (!comm)
		return;
	if (comm->running) {
		pthread_mutex_lock(&comm->lock);
		comm->quit = true;
		pthread_mutex_unlock(&comm->lock);
		dblp_engine_wake(comm);
		pthread_join(comm->thread, NULL);
	}
	free_reqs(&comm->reqs);
	free_reqs(&comm->over);
	free_reqs(&comm->inbox);
	free_reqs(&comm->done);
	dblp_keys_free(comm);
	dblp_links_end(comm);
	dblp_pending_free(comm);
	for (i = 0; i < comm->n_nics; i++)
		dblp_fd_close(&comm->nic[i].listener);
	for (i = 0; comm->ctl && i < comm->n_ctl; i++)
		dblp_fd_close(&comm->ctl[i].fd);
	dblp_fd_close(&comm->epoll);
	dblp_fd_close(&comm->wake);
	dblp_fd_close(&comm->ended_fd);
	dblp_process_del(comm);
	for (i = 0; i < sizeof(comm->sched) / sizeof(*comm->sched); i++)
		dblp_sched_put(comm->sched[i]);
	pthread_cond_destroy(&comm->cond);
	pthread_mutex_destroy(&comm->lock);
	free(comm->ctl);
	free(comm->table);
	free(comm->left);
	free(comm->left_at);
	free(comm->link);
	explicit_bzero(comm->secret, sizeof(comm->secret));
	explicit_bzero(comm->data_key, sizeof(comm->data_key));
	free(comm);
}

void dblp_comm_abort(struct dblp_comm *comm, int error)
{
	pthread_mutex_lock(&comm->lock);
	if (!comm->abort)
		comm->abort = error > 0 ? (uint32_t)error : ECANCELED;
	pthread_mutex_unlock(&comm->lock);
	dblp_engine_wake(comm);
}

uint32_t dblp_comm_rank(const struct dblp_comm *comm)
{
	return comm->rank;
}

uint32_t dblp_comm_nranks(const struct dblp_comm *comm)
{
	return comm->nranks;
}

const char *dblp_comm_describe(const struct dblp_comm *comm)
{
	return comm->describe;
}

int dblp_comm_error(struct dblp_comm *comm, int32_t *rank)
{
	int err;

	pthread_mutex_lock(&comm->lock);
	err = comm->error;
	if (rank)
		*rank = comm->failed_rank;
	pthread_mutex_unlock(&comm->lock);
	return err;
}

int dblp_comm_absent(struct dblp_comm *comm, uint32_t *rank, size_t room)
{
	uint32_t i, n = 0;

	pthread_mutex_lock(&comm->lock);
	if (comm->error == -ETIMEDOUT)
		n = comm->absent.n;
	for (i = 0; i < n && i < room && i < DBLP_ABSENT_RANKS; i++)
		rank[i] = comm->absent.rank[i];
	pthread_mutex_unlock(&comm->lock);
	return (int)n;
}

int dblp_comm_fd(const struct dblp_comm *comm)
{
	return comm->ended_fd;
}

void dblp_comm_stats(struct dblp_comm *comm, struct dblp_comm_stats *stats,
		     size_t size)
{
	pthread_mutex_lock(&comm->lock);
	dblp_sized_fill(stats, size, &comm->stats, sizeof(comm->stats));
	pthread_mutex_unlock(&comm->lock);
}

/* Operations */
