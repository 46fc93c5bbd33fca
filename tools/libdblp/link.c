// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Links: connections for data, one for each peer, lane and device, made when
 * the first operation needs it. The higher rank connects, and first sends a
 * hello.
 */

#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int dblp_watch(struct dblp_comm *comm, int op, int fd, uint32_t events, void *source)
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
		l->sends.end = &l->sends.first;
		l->receives.end = &l->receives.first;
	}
	for (i = 0; !err && i < comm->n_nics; i++)
		err = dblp_watch(comm, EPOLL_CTL_ADD, comm->nic[i].listener, EPOLLIN,
			    &comm->nic[i]);
	return err;
}

void dblp_links_end(struct dblp_comm *comm)
{
	uint32_t i;

	for (i = 0; comm->link && i < comm->nranks * comm->n_links; i++) {
		struct dblp_link *l = &comm->link[i];

		dblp_fd_close(&l->fd);
		free(l->out.runs);
		free(l->out.packed);
		dblp_msg_free(&l->in.inbox.map);
		free(l->in.runs);
		free(l->in.stage);
		free(l->run);
		free(l->chosen);
		dblp_records_free(l);
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

static const struct sockaddr_dblp *address_of(const struct dblp_link *l)
{
	return &l->comm->table[l->rank * l->comm->n_nics + l->nic];
}

/* Report a dead link. A firewall may block an address that was never reached */
static void suspect_peer(const struct dblp_link *l)
{
	struct dblp_comm *comm = l->comm;
	struct dblp_unreached u = { .from = comm->rank };

	if (!is_of_peer(l->error)) {
		dblp_suspect(comm, comm->rank, l->error, NULL);
		return;
	}
	if (l->never_connected) {
		u.port = address_of(l)->sdblp_port;
		u.addr = address_of(l)->sdblp_addr;
	}
	dblp_suspect(comm, l->rank, l->error, &u);
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
		l->never_connected = true;
	}
	/* One errno for a peer that has ended */
	if (error == -EPIPE || error == -ECONNREFUSED)
		error = -ECONNRESET;
	l->state = DBLP_LINK_DEAD;
	l->error = error;
	if (l->sends.first || l->receives.first || l->record)
		suspect_peer(l);
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

void dblp_link_ready(struct dblp_link *l, int fd)
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
void dblp_link_hello(const struct dblp_link *l, uint32_t from, uint32_t to,
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
void dblp_link_connected(struct dblp_link *l)
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
	dblp_link_hello(l, l->comm->rank, l->rank, hello);
	n = l->comm->transport->send(l->fd, iov, &info);
	if (n == -EAGAIN)
		return;
	if (n != sizeof(hello))
		dblp_link_died(l, n < 0 ? (int)n : -EPROTO);
	else
		dblp_link_ready(l, l->fd);
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
		suspect_peer(l);
	if (l->state != DBLP_LINK_NONE || l->comm->rank < l->rank)
		return;
	l->state = DBLP_LINK_CONNECTING;
	l->since = dblp_comm_now();
	l->comm->n_connecting++;
	err = try_connect(l);
	if (!err)
		err = dblp_watch(l->comm, EPOLL_CTL_ADD, l->fd, DBLP_LINK_EVENTS, l);
	if (err)
		dblp_link_died(l, err);
}

/* Time out connection attempts, which TCP itself would continue for minutes */
uint64_t dblp_link_timeout(struct dblp_comm *comm, uint64_t now)
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

int dblp_link_runs(struct dblp_link *l, uint32_t n)
{
	struct dblp_run *run = reallocarray(l->run, n, sizeof(*run));

	if (!run)
		return -ENOMEM;
	l->run = run;
	return 0;
}

int dblp_runs_alloc(uint8_t **encoded, uint32_t n)
{
	uint8_t *p = reallocarray(*encoded, n, DBLP_RUN_LEN);

	if (!p)
		return -ENOMEM;
	*encoded = p;
	return 0;
}
