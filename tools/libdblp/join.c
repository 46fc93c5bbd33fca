// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Joining, on ranks other than 0. See join.h for the messages.
 */

#include "join.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * Pause after an attempt, ms, doubled each time: all ranks ask the same name
 * server or store
 */
#define RETRY_MS	20
#define RETRY_MAX_MS	500
/* Timeout of one attempt to connect, ms; its packets may be lost */
#define ATTEMPT_MS	1000

/* Describe why an attempt failed; the last attempt counts */
static int failed(const struct sockaddr_dblp *addr, int err)
{
	char text[DBLP_ADDR_TEXT];

	dblp_addr_format(addr, text);
	errno = -err;
	dblp_why_clear();
	return dblp_why(err, "rank 0 does not answer at %s: %m%s", text, dblp_is_loopback(addr) ?
			"; that is a loopback address: is rank 0 on this host?" : "");
}

/* Try each address of rank 0 once; 0, -EAGAIN if none answers, or another error */
static int connect_to_rank_0(struct dblp_comm *comm, const struct dblp_where *where, uint64_t until,
			     struct sockaddr_dblp *reached)
{
	uint32_t i;
	bool tried = false;
	int *fd = &comm->ctl[0].fd, err, left;

	for (i = 0; i < where->n; i++) {
		left = dblp_ms_left(until);
		*fd = dblp_socket(&where->addr[i], IPPROTO_TCP);
		if (*fd == -EAFNOSUPPORT && (tried || i + 1 < where->n))
			continue;
		if (*fd < 0)
			return dblp_why(*fd, "cannot create a socket to reach rank 0");
		tried = true;
		err = dblp_connect(*fd, &where->addr[i], left < ATTEMPT_MS ? left : ATTEMPT_MS);
		if (!err)
			err = dblp_tcp_keep_joining(comm, *fd) ?: dblp_name_of(*fd, true, reached);
		if (!err) {
			/* What failed at another address no longer matters */
			dblp_why_clear();
			return 0;
		}
		dblp_fd_close(fd);
		failed(&where->addr[i], err);
	}
	return -EAGAIN;
}

/* Do the listeners of the last attempt have the address @own? */
static bool is_listening_at(const struct dblp_comm *comm, const struct sockaddr_dblp *own)
{
	const struct dblp_nic *nic = &comm->nic[0];

	return nic->listener >= 0 &&
	       (nic->name[0] || IN6_ARE_ADDR_EQUAL(&nic->addr.sdblp_addr, &own->sdblp_addr));
}

/*
 * Listen for data at the address from which rank 0 was reached, or that of the
 * list
 */
static int listen_here(struct dblp_comm *comm)
{
	struct sockaddr_dblp own;
	uint32_t i;
	int err = dblp_rendezvous_own(comm, &own);

	/* A host may know its own name as a loopback address */
	comm->nic[0].is_listed = !err && !dblp_is_loopback(&own);
	if (err > 0)
		err = dblp_name_of(comm->ctl[0].fd, false, &own);
	if (err || is_listening_at(comm, &own))
		return err;
	for (i = 0; i < comm->n_nics; i++)
		dblp_fd_close(&comm->nic[i].listener);
	return dblp_nics_listen(comm, &own);
}

/*
 * Rank 0 refuses this rank, or fails all. Return its error as a positive errno
 */
static int refused(struct dblp_comm *comm, const struct dblp_ctl *ctl, uint64_t until)
{
	int error = ctl->error && ctl->error < 4096 ? (int)ctl->error : EPROTO;
	char why[DBLP_WHY_TEXT] = "";

	dblp_why_clear();
	if (ctl->type == DBLP_CTL_ABORT &&
	    !dblp_transfer(comm->ctl[0].fd, why, sizeof(why), false, until)) {
		why[sizeof(why) - 1] = '\0';
		if (why[0])
			dblp_why(-error, "%s", why);
	}
	if (error == EACCES)
		dblp_why(-error, "rank 0 has another secret");
	if (error == EEXIST)
		dblp_why(-error, "another process has joined as rank %u", comm->rank);
	if (error == ESTALE)
		dblp_why(-error, "epoch %u is over: there are ranks of a later epoch", comm->attr.epoch);
	return error;
}

/*
 * Receive the head of rank 0's next message. It has @type unless an error is
 * returned
 */
static int receive_ctl(struct dblp_comm *comm, uint16_t type, struct dblp_ctl *ctl, uint64_t until)
{
	int err = dblp_transfer(comm->ctl[0].fd, ctl, sizeof(*ctl), false, until);

	if (err)
		return err;
	if (ctl->magic != DBLP_CTL_MAGIC)
		return -EPROTO;
	if (ctl->version != DBLP_COMM_VERSION)
		return dblp_why(-EPROTONOSUPPORT, "rank 0 has protocol version %u, this rank has %u",
				ctl->version, DBLP_COMM_VERSION);
	if (ctl->type == DBLP_CTL_ABORT || ctl->type == DBLP_CTL_REFUSE)
		return refused(comm, ctl, until);
	return ctl->type == type ? 0 : -EPROTO;
}

/* Send a hello; both ends prove that they know the secret */
static int authenticate(struct dblp_comm *comm, struct dblp_hello *h, uint64_t until)
{
	const size_t rest = sizeof(struct dblp_challenge) - sizeof(struct dblp_ctl);
	int fd = comm->ctl[0].fd, err;
	struct dblp_challenge c;
	uint8_t mac[DBLP_MAC];

	if (getrandom(h->nonce, sizeof(h->nonce), 0) != sizeof(h->nonce))
		return -errno;
	err = dblp_transfer(fd, h, dblp_hello_length(h), true, until);
	if (!err)
		err = receive_ctl(comm, DBLP_CTL_CHALLENGE, &c.ctl, until);
	if (!err)
		err = dblp_transfer(fd, c.nonce, rest, false, until);
	if (err == -ETIMEDOUT)
		dblp_why(err, "a connection to the address of rank 0 exists, but no answer from rank 0 has arrived");
	if (err)
		return err;
	dblp_prove(comm, "rank 0", h, c.nonce, mac);
	if (!dblp_is_equal(mac, c.mac, sizeof(mac)))
		return dblp_why(-EACCES, "rank 0 has another secret");
	dblp_prove(comm, "rank r", h, c.nonce, mac);
	return dblp_transfer(fd, mac, sizeof(mac), true, until);
}

/*
 * Set the scope of link-local addresses: the device by which this rank reaches
 * the others
 */
static int set_scopes(struct dblp_comm *comm)
{
	struct sockaddr_dblp own;
	uint32_t i, scope;
	int err = dblp_name_of(comm->ctl[0].fd, false, &own);

	for (i = 0; !err && i < comm->nranks * comm->n_nics; i++) {
		const struct dblp_nic *nic = &comm->nic[i % comm->n_nics];

		if (!IN6_IS_ADDR_LINKLOCAL(&comm->table[i].sdblp_addr))
			continue;
		scope = nic->name[0] ? if_nametoindex(nic->name) : own.sdblp_scope_id;
		if (!scope)
			err = dblp_why(-EADDRNOTAVAIL, "rank %u has only a link-local address: name a device that all ranks have",
				       i / comm->n_nics);
		comm->table[i].sdblp_scope_id = scope;
	}
	return err;
}

static int receive_table(struct dblp_comm *comm, uint64_t until)
{
	size_t len = (size_t)comm->nranks * comm->n_nics * sizeof(*comm->table);
	struct dblp_ctl ctl;
	int err = receive_ctl(comm, DBLP_CTL_TABLE, &ctl, until);

	if (err)
		return err;
	if (ctl.nranks != comm->nranks || ctl.nics != comm->n_nics)
		return -EPROTO;
	comm->id = ctl.comm;
	err = dblp_transfer(comm->ctl[0].fd, comm->table, len, false, until);
	return err ?: set_scopes(comm);
}

/*
 * Has the connection ended because rank 0, or the network to it, has failed for
 * now? At @until, -ETIMEDOUT is the timeout for all ranks to join.
 */
static bool is_cut(int err, uint64_t until)
{
	return err == -ECONNRESET || err == -EPIPE ||
	       ((err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH) &&
		dblp_ms_left(until));
}

/* One attempt to join; -EAGAIN: retry */
static int attempt(struct dblp_comm *comm, uint64_t until)
{
	struct dblp_where where;
	struct dblp_hello h;
	struct sockaddr_dblp reached;
	int err;

	dblp_why_clear();
	err = dblp_rendezvous(comm, &where) ?: connect_to_rank_0(comm, &where, until, &reached);
	if (err)
		return err;
	err = listen_here(comm);
	if (err)
		return err;
	dblp_hello_make(comm, &h);
	h.ctl.comm = where.id;
	h.reached = reached;
	/*
	 * Wait longer than rank 0, which may have started later and knows which
	 * ranks are missing
	 */
	err = authenticate(comm, &h, until) ?:
	      receive_table(comm, until + comm->attr.timeout_ms * MS_NS);
	/*
	 * This was rank 0 of an earlier attempt, or another program has its
	 * address now
	 */
	if (is_cut(err, until) || err == EAGAIN ||
	    (dblp_uses_kv(comm) && (err == -EACCES || err == EACCES || err == -EPROTO)))
		return failed(&reached, err > 0 ? -ESTALE : err), -EAGAIN;
	return err;
}

/*
 * EEXIST: rank 0 may still count an earlier process of this rank, whose host
 * has failed. Retry until rank 0 must have noticed.
 */
static bool may_retry(const struct dblp_comm *comm, int err, uint64_t *retry_until)
{
	uint64_t now = dblp_comm_now();

	if (err == -EAGAIN)
		return true;
	if (err != EEXIST)
		return false;
	if (!*retry_until)
		*retry_until = now + 2 * comm->attr.timeout_ms * MS_NS;
	return now < *retry_until;
}

int dblp_join(struct dblp_comm *comm, uint64_t until)
{
	uint64_t retry_until = 0;
	int err, pause = RETRY_MS;

	for (;;) {
		err = attempt(comm, until);
		if (!may_retry(comm, err, &retry_until))
			break;
		if (!dblp_ms_left(until))
			return err == -EAGAIN ? -ETIMEDOUT : -err;
		dblp_fd_close(&comm->ctl[0].fd);
		poll(NULL, 0, pause);
		pause = 2 * pause < RETRY_MAX_MS ? 2 * pause : RETRY_MAX_MS;
	}
	if (err == -ETIMEDOUT)
		dblp_why(err, "rank 0 was reached, but not all ranks have joined");
	return err > 0 ? -err : err;
}
