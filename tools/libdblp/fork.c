// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Peers detect the end of a process by its closed connections. So a child must
 * not keep them open: it closes them before fork() returns.
 */

#include "engine.h"

#include <errno.h>
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
	close_one(comm->door);
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

int dblp_fork_add(struct dblp_comm *comm)
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

void dblp_fork_del(struct dblp_comm *comm)
{
	struct dblp_comm **at = &comms;

	pthread_mutex_lock(&lock);
	while (*at && *at != comm)
		at = &(*at)->next_comm;
	if (*at)
		*at = comm->next_comm;
	pthread_mutex_unlock(&lock);
}
