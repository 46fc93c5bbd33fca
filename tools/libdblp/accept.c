// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Accepting connections for data. A connection is pending until its first
 * message, the hello, proves that its peer is a higher rank.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Most connections to accept at a time: the engine has other work, too */
#define ACCEPT_MAX	16
/*
 * Pause of accepting after descriptors or memory ran out, and time that a new
 * connection then has for its hello, ms
 */
#define PAUSE_MS	100

static void pending_free(struct dblp_pending *p)
{
	dblp_fd_close(&p->fd);
	dblp_msg_free(&p->in.map);
	free(p);
}

/*
 * Close a pending connection. dblp_pending_timeout() frees it, because epoll
 * may have returned it already. EPOLL_CTL_DEL is needed because a child may
 * still hold the socket open.
 */
static void reject(struct dblp_comm *comm, struct dblp_pending *p,
		   uint64_t *counter)
{
	epoll_ctl(comm->epoll, EPOLL_CTL_DEL, p->fd, NULL);
	dblp_fd_close(&p->fd);
	comm->n_pending--;
	dblp_comm_count(comm, counter);
}

/* The pending connection that was accepted first */
static struct dblp_pending *oldest_pending(const struct dblp_comm *comm)
{
	struct dblp_pending *p, *first = NULL;

	for (p = comm->pending; p; p = p->next)
		if (p->fd >= 0)
			first = p;
	return first;
}

/* Does an operation need a connection from a higher rank? */
static bool is_awaited(const struct dblp_comm *comm)
{
	uint32_t rank, i;

	for (rank = comm->rank + 1; rank < comm->nranks; rank++)
		for (i = 0; i < comm->n_links; i++) {
			const struct dblp_link *l = dblp_link_of(comm, rank, i);

			if (l->state == DBLP_LINK_NONE && (l->receives.first || l->sends.first))
				return true;
		}
	return false;
}

/*
 * accept() has failed with @error, perhaps without a connection to accept,
 * because it takes a descriptor first. Close the pending connection that has
 * been silent for longest. If it is new, or there is none, pause watching the
 * listener, which would stay readable. Without one, fail after @timeout_ms of
 * errors if an operation needs a connection: it might wait forever.
 */
static void pause_accepting(struct dblp_comm *comm, struct dblp_nic *nic, int error)
{
	const uint64_t now = dblp_comm_now();
	struct dblp_pending *first = oldest_pending(comm);

	if (first && now >= first->since + PAUSE_MS * MS_NS) {
		reject(comm, first, &comm->stats.strangers);
		return;
	}
	if (!dblp_watch(comm, EPOLL_CTL_MOD, nic->listener, 0, nic))
		nic->paused_until = now + PAUSE_MS * MS_NS;
	if (first)
		return;
	nic->failing_since = nic->failing_since ?: now;
	if (now - nic->failing_since < comm->attr.timeout_ms * MS_NS || !is_awaited(comm))
		return;
	if (dblp_suspect(comm, comm->rank, error, NULL))
		comm->suspicion.cannot_accept = true;
}

static uint64_t accept_timeout(struct dblp_comm *comm, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < comm->n_nics; i++) {
		struct dblp_nic *nic = &comm->nic[i];

		if (nic->paused_until && now >= nic->paused_until &&
		    !dblp_watch(comm, EPOLL_CTL_MOD, nic->listener, EPOLLIN, nic))
			nic->paused_until = 0;
		if (nic->paused_until && nic->paused_until < next)
			next = nic->paused_until;
	}
	return next;
}

/* Links of higher ranks that are missing, and connections of unknown peers */
static uint32_t max_pending(const struct dblp_comm *comm)
{
	return (comm->nranks - 1 - comm->rank) * comm->n_links - comm->n_accepted +
	       DBLP_UNKNOWN_PEERS;
}

void dblp_listener_event(struct dblp_comm *comm, struct dblp_nic *nic)
{
	struct dblp_pending *p;
	int fd = 0, i;

	for (i = 0; i < ACCEPT_MAX; i++) {
		fd = dblp_accept(nic->listener);
		if (fd < 0)
			break;
		nic->failing_since = 0;
		if (comm->n_pending >= max_pending(comm))
			reject(comm, oldest_pending(comm),
			       &comm->stats.strangers);
		p = calloc(1, sizeof(*p));
		if (!p || comm->transport->setup(comm, fd) ||
		    dblp_watch(comm, EPOLL_CTL_ADD, fd, EPOLLIN, p)) {
			dblp_comm_count(comm, &comm->stats.strangers);
			close(fd);
			free(p);
			continue;
		}
		p->source = DBLP_SOURCE_PENDING;
		p->fd = fd;
		p->nic = nic->index;
		p->since = dblp_comm_now();
		p->next = comm->pending;
		comm->pending = p;
		comm->n_pending++;
		dblp_inbox_set(&p->in, p->head, sizeof(p->head), NULL, 0);
	}
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
		pause_accepting(comm, nic, fd);
}

/* The hello of a pending connection has arrived */
static void hello_received(struct dblp_comm *comm, struct dblp_pending *p)
{
	uint8_t want[DBLP_HEAD_LEN];
	struct dblp_head h;
	struct dblp_link *l;
	int err = dblp_head_get(p->head, sizeof(p->head), &h);

	if (err == -EPROTONOSUPPORT) {
		reject(comm, p, &comm->stats.versions);
		return;
	}
	if (!err && h.type == DBLP_HEAD_HELLO && h.epoch < comm->attr.epoch) {
		reject(comm, p, &comm->stats.stale);
		return;
	}
	if (err || h.from <= comm->rank || h.from >= comm->nranks ||
	    h.nic >= comm->n_links) {
		reject(comm, p, &comm->stats.strangers);
		return;
	}
	l = dblp_link_of(comm, h.from, h.nic);
	dblp_link_hello(l, h.from, comm->rank, want);
	if (!dblp_is_equal(want, p->head, sizeof(want)) || l->nic != p->nic ||
	    l->state != DBLP_LINK_NONE ||
	    comm->transport->lane(p->fd, &comm->lane[l->lane]) ||
	    dblp_watch(comm, EPOLL_CTL_MOD, p->fd, DBLP_LINK_EVENTS, l)) {
		reject(comm, p, &comm->stats.strangers);
		return;
	}
	dblp_link_ready(l, p->fd);
	comm->n_accepted++;
	p->fd = -1;
	comm->n_pending--;
}

void dblp_pending_event(struct dblp_comm *comm, struct dblp_pending *p)
{
	int n;

	if (p->fd < 0)
		return;
	n = comm->transport->recv(p->fd, &p->in);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0)
		reject(comm, p, &comm->stats.strangers);
	else if (p->in.closed)
		hello_received(comm, p);
}

uint64_t dblp_pending_timeout(struct dblp_comm *comm, uint64_t now)
{
	uint64_t limit = comm->attr.timeout_ms * MS_NS;
	uint64_t next = accept_timeout(comm, now);
	struct dblp_pending **at = &comm->pending, *p;

	while ((p = *at)) {
		if (p->fd >= 0 && now >= p->since + limit)
			reject(comm, p, &comm->stats.strangers);
		if (p->fd < 0) {
			*at = p->next;
			pending_free(p);
			continue;
		}
		if (p->since + limit < next)
			next = p->since + limit;
		at = &p->next;
	}
	return next;
}

void dblp_pending_free(struct dblp_comm *comm)
{
	struct dblp_pending *p;

	while ((p = comm->pending)) {
		comm->pending = p->next;
		pending_free(p);
	}
}
