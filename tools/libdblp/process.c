// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Communicators of this process.
 *
 * Peers detect the end of a process by its closed connections. So a child must
 * not keep them open: it closes them before fork() returns.
 *
 * A communicator that will exceed the limit of open files is not opened, because
 * it would fail later, in the middle of an operation.
 */

#include "join.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct dblp_comm *comms;
static int failed;

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_all(struct dblp_comm *comm)
{
	const struct dblp_pending *p;
	uint32_t i;

	for (i = 0; comm->ctl && i < comm->n_ctl; i++)
		close_one(comm->ctl[i].fd);
	for (i = 0; comm->link && i < comm->nranks * comm->n_links; i++)
		close_one(comm->link[i].fd);
	for (i = 0; i < comm->n_nics; i++)
		close_one(comm->nic[i].listener);
	for (p = comm->pending; p; p = p->next)
		close_one(p->fd);
	for (i = 0; comm->candidate && i < comm->n_candidates; i++)
		close_one(comm->candidate[i].fd);
	close_one(comm->join_listener);
	close_one(comm->epoll);
	close_one(comm->wake);
	close_one(comm->ended_fd);
}

static void before(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Only sockets are closed: the engines do not run in the child */
static void in_child(void)
{
	struct dblp_comm *comm;

	for (comm = comms; comm; comm = comm->next_comm)
		close_all(comm);
	comms = NULL;
	pthread_mutex_unlock(&lock);
}

static void set_up(void)
{
	failed = pthread_atfork(before, in_parent, in_child);
}

int dblp_process_add(struct dblp_comm *comm)
{
	pthread_once(&once, set_up);
	if (failed)
		return -failed;
	pthread_mutex_lock(&lock);
	comm->next_comm = comms;
	comms = comm;
	pthread_mutex_unlock(&lock);
	return 0;
}

void dblp_process_del(struct dblp_comm *comm)
{
	struct dblp_comm **at = &comms;

	pthread_mutex_lock(&lock);
	while (*at && *at != comm)
		at = &(*at)->next_comm;
	if (*at)
		*at = comm->next_comm;
	pthread_mutex_unlock(&lock);
}

/* Descriptors of a communicator: epoll, eventfds and rank 0's listener */
#define OWN	4
/* Reserve for the program */
#define OTHERS	64

static uint64_t count_needed(const struct dblp_comm *comm)
{
	return OWN + comm->n_nics + comm->n_ctl +
	       (uint64_t)(comm->nranks - 1) * comm->n_links + DBLP_UNKNOWN_PEERS;
}

static bool is_open(const int *fd)
{
	return __atomic_load_n(fd, __ATOMIC_RELAXED) >= 0;
}

/* Descriptors that a communicator may still open, counting at least these */
static uint64_t count_missing(const struct dblp_comm *comm)
{
	uint64_t n = 0;
	uint32_t i;

	/* It has not called dblp_process_reserve() yet */
	if (!comm->files)
		return 0;
	for (i = 0; i < comm->n_ctl; i++)
		n += is_open(&comm->ctl[i].fd);
	for (i = 0; i < comm->nranks * comm->n_links; i++)
		n += is_open(&comm->link[i].fd);
	for (i = 0; i < comm->n_nics; i++)
		n += is_open(&comm->nic[i].listener);
	return comm->files - n;
}

/* Open files of this process; 3 if they cannot be counted */
static uint64_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 3;
	while (readdir(dir))
		n++;
	closedir(dir);
	/* Subtract ".", ".." and @dir */
	return n - 3;
}

/* Raise the limit for @needed more files; @comm is the communicator that opens */
static int raise_limit(const struct dblp_comm *comm, uint64_t needed)
{
	const uint64_t has = count_open();
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (has + needed <= limit.rlim_cur)
		return 0;
	if (has + needed > limit.rlim_max)
		return dblp_why(-EMFILE, "the process of rank %u needs %llu more open files than its %llu: the limit is %llu (ulimit -Hn)",
				comm->rank, (unsigned long long)needed,
				(unsigned long long)has,
				(unsigned long long)limit.rlim_max);
	limit.rlim_cur = has + needed;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

int dblp_process_reserve(struct dblp_comm *comm)
{
	const struct dblp_comm *c;
	uint64_t needed = OTHERS;
	int err;

	pthread_mutex_lock(&lock);
	comm->files = count_needed(comm);
	for (c = comms; c; c = c->next_comm)
		needed += count_missing(c);
	err = raise_limit(comm, needed);
	if (err)
		comm->files = 0;
	pthread_mutex_unlock(&lock);
	return err;
}
