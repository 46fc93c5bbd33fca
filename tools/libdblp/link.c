// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Links: connections for data, one for each peer, lane and device, made when
 * the first operation needs it. The higher rank connects, and first sends a
 * hello.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Most connections to accept at a time: the engine has other work, too */
#define ACCEPT_MAX	16
/* Pause of accepting after descriptors or memory ran out, ms */
#define DEAF_MS		100

#define LINK_EVENTS	(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static int watch(struct dblp_comm *comm, int op, int fd, uint32_t events,
		 void *source)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	return epoll_ctl(comm->epoll, op, fd, &ev) ? -errno : 0;
}

int dblp_links_begin(struct dblp_comm *comm)
{
	uint32_t i;
	int err = 0;

	comm->woken_end = &comm->woken;
	for (i = 0; i < comm->nranks * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		l->source = DBLP_SOURCE_LINK;
		l->comm = comm;
		l->rank = i / comm->n_links;
		l->lane = i % comm->n_links / comm->n_nics;
		l->nic = i % comm->n_links % comm->n_nics;
		l->fd = -1;
		l->phase = DBLP_INHERIT;
		l->shift[0] = DBLP_SPARSE_SHIFTS;
		l->shift[1] = DBLP_SPARSE_SHIFTS;
		l->own_budget = DBLP_INHERIT;
		l->out_end = &l->out;
		l->in_end = &l->in;
	}
	for (i = 0; !err && i < comm->n_nics; i++)
		err = watch(comm, EPOLL_CTL_ADD, comm->nic[i].listener, EPOLLIN,
			    &comm->nic[i]);
	return err;
}

static void pending_free(struct dblp_pending *p)
{
	dblp_fd_close(&p->fd);
	dblp_msg_free(&p->in.map);
	free(p);
}

void dblp_links_end(struct dblp_comm *comm)
{
	struct dblp_pending *p;
	uint32_t i;

	for (i = 0; comm->link && i < comm->nranks * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		dblp_fd_close(&l->fd);
		dblp_msg_free(&l->inbox.map);
		free(l->stage);
		free(l->chosen);
		free(l->packed);
		free(l->run);
		free(l->runs_in);
		free(l->runs_out);
		dblp_losses_forget(l);
	}
	while ((p = comm->pending)) {
		comm->pending = p->next;
		pending_free(p);
	}
}

/* Is the peer the cause of an error? All other errors are local. */
static bool is_of_peer(int error)
{
	return error == -ECONNRESET || error == -EPIPE ||
	       error == -ECONNREFUSED || error == -ETIMEDOUT ||
	       error == -EHOSTUNREACH || error == -ENETUNREACH ||
	       error == -EPROTO;
}

static void blame(const struct dblp_link *l)
{
	dblp_ctl_suspect(l->comm, is_of_peer(l->error) ? l->rank :
			 l->comm->rank, l->error);
}

static const struct sockaddr_dblp *address_of(const struct dblp_link *l)
{
	return &l->comm->table[l->rank * l->comm->n_nics + l->nic];
}

/* Record the address, which a firewall may block */
static void unreached(const struct dblp_link *l)
{
	struct dblp_unreached *u = &l->comm->unreached;

	if (u->port)
		return;
	u->from = l->comm->rank;
	u->port = address_of(l)->sdblp_port;
	u->addr = address_of(l)->sdblp_addr;
}

/*
 * The socket stays open until all ranks know the reason: a peer that sees it
 * closed would suspect this rank.
 */
void dblp_link_died(struct dblp_link *l, int error)
{
	if (l->state == DBLP_LINK_DEAD)
		return;
	if (l->fd >= 0)
		epoll_ctl(l->comm->epoll, EPOLL_CTL_DEL, l->fd, NULL);
	if (l->state == DBLP_LINK_CONNECTING) {
		l->comm->n_connecting--;
		unreached(l);
	}
	/* One errno for a peer that has ended */
	if (error == -EPIPE || error == -ECONNREFUSED)
		error = -ECONNRESET;
	l->state = DBLP_LINK_DEAD;
	l->error = error;
	if (l->out || l->in || l->record)
		blame(l);
}

void dblp_link_wake(struct dblp_link *l)
{
	struct dblp_comm *comm = l->comm;

	if (l->is_woken)
		return;
	l->is_woken = true;
	l->next_woken = NULL;
	*comm->woken_end = l;
	comm->woken_end = &l->next_woken;
}

static void ready(struct dblp_link *l, int fd)
{
	if (l->state == DBLP_LINK_CONNECTING)
		l->comm->n_connecting--;
	l->fd = fd;
	l->state = DBLP_LINK_READY;
	l->can_read = true;
	l->can_write = true;
	dblp_link_wake(l);
}

/*
 * The digest of a hello is a MAC, which proves that the sender knows the
 * secret. A replayed hello is useless: it is accepted once only, and names the
 * communicator.
 */
static void make_hello(const struct dblp_link *l, uint32_t from, uint32_t to,
		       uint8_t p[DBLP_HEAD_LEN])
{
	struct dblp_head hello = {
		.type = DBLP_HEAD_HELLO,
		.nic = (uint8_t)dblp_link_index(l),
		.epoch = l->comm->attr.epoch,
		.from = from,
		.round = to,
		.comm = l->comm->id,
	};

	dblp_head_put(&hello, p);
	hello.digest = dblp_mac_64(l->comm->data_key, p, DBLP_HEAD_LEN);
	dblp_head_put(&hello, p);
}

/* Connected: send a hello, for which a new socket has room */
static void connected(struct dblp_link *l)
{
	uint8_t hello[DBLP_HEAD_LEN];
	struct iovec iov[2] = { { hello, sizeof(hello) }, { NULL, 0 } };
	struct dblp_sndinfo info = { .critical = sizeof(hello) };
	socklen_t len = sizeof(int);
	ssize_t n;
	int err;

	if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err && l->comm->transport->protocol && dblp_is_own_peer(l->fd))
		err = ECONNREFUSED;
	if (err) {
		dblp_link_died(l, -err);
		return;
	}
	make_hello(l, l->comm->rank, l->rank, hello);
	n = l->comm->transport->send(l->fd, iov, &info);
	if (n == -EAGAIN)
		return;
	if (n != sizeof(hello))
		dblp_link_died(l, n < 0 ? (int)n : -EPROTO);
	else
		ready(l, l->fd);
}

static int try_connect(struct dblp_link *l)
{
	struct dblp_comm *comm = l->comm;
	const struct sockaddr_dblp *to = address_of(l);
	int err;

	l->fd = dblp_socket(to, comm->transport->protocol);
	if (l->fd < 0)
		return l->fd;
	err = dblp_bind_device(&comm->nic[l->nic], l->fd);
	if (!err)
		err = comm->transport->setup(comm, l->fd) ?: dblp_lock_data(comm, l->fd);
	if (!err)
		err = comm->transport->lane(l->fd, &comm->lane[l->lane]);
	if (!err)
		err = dblp_connect(l->fd, to, -1);
	return err == -EINPROGRESS ? 0 : err;
}

void dblp_link_want(struct dblp_link *l)
{
	int err;

	if (l->state == DBLP_LINK_DEAD)
		blame(l);
	if (l->state != DBLP_LINK_NONE || l->comm->rank < l->rank)
		return;
	l->state = DBLP_LINK_CONNECTING;
	l->since = dblp_comm_now();
	l->comm->n_connecting++;
	err = try_connect(l);
	if (!err)
		err = watch(l->comm, EPOLL_CTL_ADD, l->fd, LINK_EVENTS, l);
	if (err)
		dblp_link_died(l, err);
}

void dblp_link_event(struct dblp_link *l, uint32_t events)
{
	if (l->state == DBLP_LINK_DEAD)
		return;
	if (l->state == DBLP_LINK_CONNECTING &&
	    events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		connected(l);
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

/*
 * Close a pending connection. dblp_pending_timeout() frees it, because epoll
 * may have returned it already. EPOLL_CTL_DEL is needed because a child may
 * still hold the socket open.
 */
static void send_away(struct dblp_comm *comm, struct dblp_pending *p,
		      uint64_t *counter)
{
	epoll_ctl(comm->epoll, EPOLL_CTL_DEL, p->fd, NULL);
	dblp_fd_close(&p->fd);
	comm->n_pending--;
	dblp_comm_count(comm, counter);
}

/* The pending connection that was accepted first */
static struct dblp_pending *first_pending(const struct dblp_comm *comm)
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

			if (l->state == DBLP_LINK_NONE && (l->in || l->out))
				return true;
		}
	return false;
}

/*
 * accept() has failed with @error: close the pending connection that has been
 * silent for longest. Without one, pause watching the listener, which would
 * stay readable. Fail after @timeout_ms of errors if an operation needs a
 * connection: it might wait forever.
 */
static void be_deaf(struct dblp_comm *comm, struct dblp_nic *nic, int error)
{
	const uint64_t now = dblp_comm_now();
	struct dblp_pending *first = first_pending(comm);

	if (first) {
		send_away(comm, first, &comm->stats.strangers);
		return;
	}
	if (!watch(comm, EPOLL_CTL_MOD, nic->listener, 0, nic))
		nic->deaf_until = now + DEAF_MS * MS_NS;
	nic->deaf_since = nic->deaf_since ?: now;
	if (now - nic->deaf_since < comm->attr.timeout_ms * MS_NS || !is_awaited(comm))
		return;
	dblp_because(comm, "rank %u cannot accept connections: it has no descriptors or memory left",
		     comm->rank);
	dblp_ctl_suspect(comm, comm->rank, error);
}

static uint64_t deaf_timeout(struct dblp_comm *comm, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	uint32_t i;

	for (i = 0; i < comm->n_nics; i++) {
		struct dblp_nic *nic = &comm->nic[i];

		if (nic->deaf_until && now >= nic->deaf_until &&
		    !watch(comm, EPOLL_CTL_MOD, nic->listener, EPOLLIN, nic))
			nic->deaf_until = 0;
		if (nic->deaf_until && nic->deaf_until < next)
			next = nic->deaf_until;
	}
	return next;
}

/* Links of higher ranks that are missing, and connections of unknown peers */
static uint32_t most_pending(const struct dblp_comm *comm)
{
	return (comm->nranks - 1 - comm->rank) * comm->n_links - comm->n_accepted +
	       DBLP_STRANGERS;
}

void dblp_listener_event(struct dblp_comm *comm, struct dblp_nic *nic)
{
	struct dblp_pending *p;
	int fd = 0, i;

	for (i = 0; i < ACCEPT_MAX; i++) {
		fd = dblp_accept(nic->listener);
		if (fd < 0)
			break;
		nic->deaf_since = 0;
		if (comm->n_pending >= most_pending(comm))
			send_away(comm, first_pending(comm),
				  &comm->stats.strangers);
		p = calloc(1, sizeof(*p));
		if (!p || comm->transport->setup(comm, fd) ||
		    watch(comm, EPOLL_CTL_ADD, fd, EPOLLIN, p)) {
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
		be_deaf(comm, nic, fd);
}

/* The hello of a pending connection has arrived */
static void greeted(struct dblp_comm *comm, struct dblp_pending *p)
{
	uint8_t want[DBLP_HEAD_LEN];
	struct dblp_head h;
	struct dblp_link *l;
	int err = dblp_head_get(p->head, sizeof(p->head), &h);

	if (err == -EPROTONOSUPPORT) {
		send_away(comm, p, &comm->stats.versions);
		return;
	}
	if (!err && h.type == DBLP_HEAD_HELLO && h.epoch < comm->attr.epoch) {
		send_away(comm, p, &comm->stats.stale);
		return;
	}
	if (err || h.from <= comm->rank || h.from >= comm->nranks ||
	    h.nic >= comm->n_links) {
		send_away(comm, p, &comm->stats.strangers);
		return;
	}
	l = dblp_link_of(comm, h.from, h.nic);
	make_hello(l, h.from, comm->rank, want);
	if (!dblp_is_equal(want, p->head, sizeof(want)) || l->nic != p->nic ||
	    l->state != DBLP_LINK_NONE ||
	    comm->transport->lane(p->fd, &comm->lane[l->lane]) ||
	    watch(comm, EPOLL_CTL_MOD, p->fd, LINK_EVENTS, l)) {
		send_away(comm, p, &comm->stats.strangers);
		return;
	}
	ready(l, p->fd);
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
		send_away(comm, p, &comm->stats.strangers);
	else if (p->in.closed)
		greeted(comm, p);
}

/* Time out connection attempts, which TCP itself would continue for minutes */
static uint64_t connecting_timeout(struct dblp_comm *comm, uint64_t now)
{
	const uint64_t limit = comm->attr.timeout_ms * MS_NS;
	uint64_t next = UINT64_MAX;
	uint32_t i;

	for (i = 0; comm->n_connecting && i < comm->rank * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		if (l->state != DBLP_LINK_CONNECTING)
			continue;
		if (now >= l->since + limit)
			dblp_link_died(l, -ETIMEDOUT);
		else
			next = dblp_earlier(next, l->since + limit);
	}
	return next;
}

uint64_t dblp_pending_timeout(struct dblp_comm *comm, uint64_t now)
{
	uint64_t limit = comm->attr.timeout_ms * MS_NS;
	uint64_t next = dblp_earlier(deaf_timeout(comm, now),
				     connecting_timeout(comm, now));
	struct dblp_pending **at = &comm->pending, *p;

	while ((p = *at)) {
		if (p->fd >= 0 && now >= p->since + limit)
			send_away(comm, p, &comm->stats.strangers);
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
