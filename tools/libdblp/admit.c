// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Admitting ranks, on rank 0. See join.h for the messages. A rank that has
 * joined is watched until all have: if its connection ends, rank 0 forgets it,
 * and it may join again.
 */

#include "join.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/**
 * struct admission - state of rank 0 while ranks join
 * @comm: the communicator
 * @until: timeout for all ranks to join, ns
 * @n_joined: number of other ranks that have joined
 * @n: number of candidates, which are the first entries of @candidate of the
 *	communicator
 * @poll: the listening socket, then ranks 1, 2, ..., then candidates
 * @reached: by rank, the address at which it reached rank 0
 * @is_loopback: this host resolves the address of rank 0 to a loopback address
 * @error: positive errno once the ranks cannot form a communicator
 * @wrong_rank: rank that caused @error
 */
struct admission {
	struct dblp_comm	*comm;
	uint64_t		until;
	uint32_t		n_joined;
	uint32_t		n;
	struct pollfd		*poll;
	struct sockaddr_dblp	*reached;
	bool			is_loopback;
	uint32_t		error;
	uint32_t		wrong_rank;
};

static void refuse(const struct dblp_comm *comm, int fd, uint32_t error)
{
	struct dblp_ctl no = dblp_ctl_make(comm, DBLP_CTL_REFUSE);

	no.error = error;
	send(fd, &no, sizeof(no), MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
}

/*
 * Remove a candidate whose socket is closed, or has another entry, too. At any
 * time, each socket has an entry by which a child finds it.
 */
static void drop(struct admission *a, struct dblp_candidate *c)
{
	struct dblp_candidate *last = &a->comm->candidate[--a->n];

	*c = *last;
	last->fd = -1;
}

/* Close a connection; @error: positive errno for the peer, or 0 */
static void reject(struct admission *a, struct dblp_candidate *c,
		   uint64_t *counter, uint32_t error)
{
	if (error)
		refuse(a->comm, c->fd, error);
	if (counter)
		dblp_comm_count(a->comm, counter);
	dblp_fd_close(&c->fd);
	drop(a, c);
}

/* Attribute in which a rank differs from rank 0; NULL: none */
static const char *difference(const struct dblp_comm *comm, const struct dblp_hello *h)
{
	struct dblp_hello own;

	dblp_hello_make(comm, &own);
	if (h->ctl.nranks != own.ctl.nranks)
		return "number of ranks";
	if (memcmp(h->ctl.transport, own.ctl.transport, sizeof(own.ctl.transport)))
		return "transport";
	if (h->ctl.nics != own.ctl.nics)
		return "number of devices";
	if (h->ctl.message_bytes != own.ctl.message_bytes)
		return "size of messages";
	if (h->ctl.authenticate != own.ctl.authenticate)
		return "authentication of data";
	return h->ctl.digest == own.ctl.digest ? NULL : "lanes";
}

/*
 * Store a rank's addresses; the peer address of its connection replaces
 * unspecified ones
 */
static int take_addresses(struct admission *a, const struct dblp_candidate *c)
{
	struct sockaddr_dblp *to = &a->comm->table[c->hello.ctl.rank * a->comm->n_nics];
	struct sockaddr_dblp peer;
	int err = dblp_name_of(c->fd, true, &peer);
	uint32_t i;

	for (i = 0; !err && i < a->comm->n_nics; i++) {
		to[i] = c->hello.addr[i];
		if (!dblp_is_any(&to[i]) || dblp_is_loopback(&peer))
			continue;
		to[i] = peer;
		to[i].sdblp_port = c->hello.addr[i].sdblp_port;
	}
	a->reached[c->hello.ctl.rank] = c->hello.reached;
	return err;
}

/* The peer is a rank of this communicator */
static void join(struct admission *a, struct dblp_candidate *c)
{
	const uint32_t rank = c->hello.ctl.rank;
	const char *what = difference(a->comm, &c->hello);

	if (what && !a->error) {
		a->error = EINVAL;
		a->wrong_rank = rank;
		dblp_why(-EINVAL, "rank %u has another %s than rank 0", rank, what);
	}
	if (!a->error && take_addresses(a, c)) {
		reject(a, c, NULL, 0);
		return;
	}
	a->comm->ctl[rank].fd = c->fd;
	a->n_joined++;
	drop(a, c);
}

/* The peer knows the secret */
static void authenticated(struct admission *a, struct dblp_candidate *c)
{
	const struct dblp_ctl *ctl = &c->hello.ctl;
	struct dblp_comm *comm = a->comm;

	/*
	 * It wants another communicator at this address: no reason to end this
	 * attempt
	 */
	if (ctl->comm && ctl->comm != comm->id) {
		reject(a, c, &comm->stats.strangers, EAGAIN);
	} else if (ctl->epoch < comm->attr.epoch) {
		reject(a, c, &comm->stats.stale, ESTALE);
	} else if (ctl->epoch > comm->attr.epoch) {
		/* This attempt is over, for rank 0 and all that have joined */
		a->error = ESTALE;
		a->wrong_rank = 0;
		dblp_why(-ESTALE, "rank %u has epoch %u, rank 0 has %u", ctl->rank,
			 ctl->epoch, comm->attr.epoch);
	} else if (ctl->rank >= comm->nranks) {
		a->error = EINVAL;
		a->wrong_rank = ctl->rank;
		dblp_why(-EINVAL, "rank %u is too large: there are %u ranks", ctl->rank, comm->nranks);
		reject(a, c, NULL, EINVAL);
	} else if (!ctl->rank || comm->ctl[ctl->rank].fd >= 0) {
		reject(a, c, &comm->stats.strangers, EEXIST);
	} else {
		join(a, c);
	}
}

/* The hello is complete: send a challenge, with the proof of rank 0 */
static void challenge(struct admission *a, struct dblp_candidate *c)
{
	struct dblp_challenge out = {
		.ctl = dblp_ctl_make(a->comm, DBLP_CTL_CHALLENGE),
	};

	c->challenged = true;
	c->got = 0;
	if (getrandom(out.nonce, sizeof(out.nonce), 0) != sizeof(out.nonce)) {
		reject(a, c, NULL, 0);
		return;
	}
	dblp_prove(a->comm, "rank 0", &c->hello, out.nonce, out.mac);
	dblp_prove(a->comm, "rank r", &c->hello, out.nonce, c->proof);
	/*
	 * The send buffer is empty, so a short send means that the connection
	 * has ended
	 */
	if (send(c->fd, &out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(out))
		reject(a, c, &a->comm->stats.strangers, 0);
}

/*
 * Bytes missing of the current message; 0: it is complete; -1: the
 * connection was closed
 */
static ssize_t missing(struct admission *a, struct dblp_candidate *c)
{
	struct dblp_comm *comm = a->comm;
	const struct dblp_ctl *ctl = &c->hello.ctl;

	if (c->challenged)
		return (ssize_t)(sizeof(c->mac) - c->got);
	/* The first eight bytes are the same in all versions */
	if (c->got >= 8 && ctl->magic != DBLP_CTL_MAGIC) {
		reject(a, c, &comm->stats.strangers, 0);
		return -1;
	}
	if (c->got >= 8 && ctl->version != DBLP_COMM_VERSION) {
		reject(a, c, &comm->stats.versions, EPROTONOSUPPORT);
		return -1;
	}
	if (c->got < sizeof(*ctl))
		return (ssize_t)(sizeof(*ctl) - c->got);
	if (ctl->type != DBLP_CTL_JOIN || ctl->nics > DBLP_NICS_MAX) {
		reject(a, c, &comm->stats.strangers, 0);
		return -1;
	}
	return (ssize_t)(dblp_hello_length(&c->hello) - c->got);
}

/* The socket of a candidate is readable */
static void receive_from(struct admission *a, struct dblp_candidate *c)
{
	char *at = c->challenged ? (char *)c->mac : (char *)&c->hello;
	ssize_t n = recv(c->fd, at + c->got, (size_t)missing(a, c), MSG_DONTWAIT);

	if (n <= 0) {
		if (!n || (errno != EAGAIN && errno != EINTR))
			reject(a, c, &a->comm->stats.strangers, 0);
		return;
	}
	c->got += (size_t)n;
	if (missing(a, c))
		return;
	if (!c->challenged)
		challenge(a, c);
	else if (dblp_is_equal(c->mac, c->proof, sizeof(c->mac)))
		authenticated(a, c);
	else
		reject(a, c, &a->comm->stats.strangers, EACCES);
}

/* The candidate that was accepted first */
static struct dblp_candidate *oldest(const struct admission *a)
{
	struct dblp_candidate *first = a->comm->candidate;
	uint32_t i;

	for (i = 1; i < a->n; i++)
		if (a->comm->candidate[i].since < first->since)
			first = &a->comm->candidate[i];
	return first;
}

/* Descriptors or memory are used up: does closing a connection without proof free some? */
static int make_room(struct admission *a, int error)
{
	if (!a->n)
		return dblp_why(error, "rank 0 cannot accept more connections");
	reject(a, oldest(a), &a->comm->stats.strangers, 0);
	return 0;
}

/* A client that disconnected is not an error */
static int accept_one(struct admission *a)
{
	int fd = dblp_accept(a->comm->join_listener);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
		return make_room(a, fd);
	if (fd < 0)
		return 0;
	/*
	 * Without keepalive, a host that fails would keep its connection open. A
	 * rank that starts again retries for 2 x @timeout_ms (join.c).
	 */
	if (dblp_tcp_keep_joining(a->comm, fd)) {
		close(fd);
		return 0;
	}
	if (a->n == a->comm->n_candidates)
		reject(a, oldest(a), &a->comm->stats.strangers, 0);
	a->comm->candidate[a->n++] = (struct dblp_candidate) {
		.fd = fd,
		.since = dblp_comm_now(),
	};
	return 0;
}

/*
 * A rank that has joined sends nothing: an event means that its connection has
 * ended
 */
static void disconnected(struct admission *a, uint32_t rank)
{
	dblp_fd_close(&a->comm->ctl[rank].fd);
	a->n_joined--;
}

/* "1, 3-5": the ranks that have not joined */
static void name_missing(const struct admission *a, char *text, size_t room)
{
	const struct dblp_comm *comm = a->comm;
	uint32_t i, end;
	size_t at = 0;

	text[0] = '\0';
	for (i = 1; i < comm->nranks && at + 32 < room; i = end) {
		end = i + 1;
		if (comm->ctl[i].fd >= 0)
			continue;
		while (end < comm->nranks && comm->ctl[end].fd < 0)
			end++;
		at += (size_t)snprintf(text + at, room - at, end > i + 1 ? "%s%u-%u" : "%s%u",
				       at ? ", " : "", i, end - 1);
	}
	if (i < comm->nranks)
		snprintf(text + at, room - at, ", ...");
}

static int out_of_time(const struct admission *a)
{
	const struct dblp_comm *comm = a->comm;
	char ranks[128];
	bool own;

	if (a->error)
		return -(int)a->error;
	name_missing(a, ranks, sizeof(ranks));
	own = a->is_loopback && getenv("MASTER_ADDR") && !dblp_uses_kv(comm);
	return dblp_why(-ETIMEDOUT, "of %u ranks, some have not joined within %u ms: %s%s",
			comm->nranks, comm->attr.join_ms, ranks, own ?
			"; on this host MASTER_ADDR is a loopback address: is it right on other hosts?" : "");
}

static void watch(struct admission *a)
{
	const struct dblp_comm *comm = a->comm;
	uint32_t i;

	a->poll[0] = (struct pollfd) { comm->join_listener, POLLIN, 0 };
	for (i = 1; i < comm->nranks; i++)
		a->poll[i] = (struct pollfd) { comm->ctl[i].fd, POLLIN, 0 };
	for (i = 0; i < a->n; i++)
		a->poll[comm->nranks + i] =
			(struct pollfd) { comm->candidate[i].fd, POLLIN, 0 };
}

/* Handle the events of ranks, of the first @n candidates and of the listening socket */
static int handle(struct admission *a, uint32_t n)
{
	struct dblp_comm *comm = a->comm;
	uint32_t i;

	for (i = 1; i < comm->nranks; i++)
		if (a->poll[i].revents)
			disconnected(a, i);
	/* Iterate backwards: removal moves the last entry into the hole */
	for (i = n; i--; )
		if (a->poll[comm->nranks + i].revents)
			receive_from(a, &comm->candidate[i]);
	return a->poll[0].revents ? accept_one(a) : 0;
}

/*
 * Receive until all have joined, a rank has a later epoch, or a rank number is
 * invalid
 */
static int receive_ranks(struct admission *a)
{
	const struct dblp_comm *comm = a->comm;
	int err = 0;

	while (!err && a->n_joined + 1 < comm->nranks &&
	       a->error != ESTALE && a->wrong_rank < comm->nranks) {
		uint32_t n = a->n;

		if (!dblp_ms_left(a->until))
			return out_of_time(a);
		watch(a);
		if (poll(a->poll, comm->nranks + n, dblp_ms_left(a->until)) >= 0)
			err = handle(a, n);
	}
	return err ?: -(int)a->error;
}

/*
 * Table for rank @to. Unspecified addresses are on the host of rank 0: use the
 * address at which @to has reached rank 0.
 */
static void table_for(const struct admission *a, uint32_t to, struct sockaddr_dblp *table)
{
	const struct dblp_comm *comm = a->comm;
	const size_t n = (size_t)comm->nranks * comm->n_nics;
	size_t i;

	for (i = 0; i < n; i++) {
		table[i] = comm->table[i];
		if (!dblp_is_any(&table[i]))
			continue;
		table[i] = a->reached[to];
		table[i].sdblp_port = comm->table[i].sdblp_port;
	}
}

/* A rank connects to all lower ranks: can rank @to reach their addresses? */
static int check_table(const struct admission *a, uint32_t to, const struct sockaddr_dblp *table)
{
	const struct dblp_comm *comm = a->comm;
	char text[DBLP_ADDR_TEXT];
	size_t i;

	for (i = 0; i < (size_t)to * comm->n_nics; i++) {
		if (!dblp_is_loopback(&table[i]) || dblp_is_loopback(&a->reached[to]))
			continue;
		dblp_addr_format(&table[i], text);
		return dblp_why(-EADDRNOTAVAIL, "rank %u listens at %s, which rank %u cannot reach",
				(uint32_t)(i / comm->n_nics), text, to);
	}
	return 0;
}

static void send_error(const struct admission *a, int error, uint64_t until)
{
	const struct dblp_comm *comm = a->comm;
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_ABORT);
	char why[DBLP_WHY_TEXT] = "";
	uint32_t i;

	snprintf(why, sizeof(why), "%s", dblp_comm_why(NULL));
	ctl.rank = a->wrong_rank;
	ctl.error = (uint32_t)-error;
	for (i = 1; i < comm->nranks; i++)
		if (comm->ctl[i].fd >= 0 &&
		    !dblp_transfer(comm->ctl[i].fd, &ctl, sizeof(ctl), true, until))
			dblp_transfer(comm->ctl[i].fd, why, sizeof(why), true, until);
}

/* Check the tables of all ranks; @table: room for one */
static int check_tables(struct admission *a, struct sockaddr_dblp *table)
{
	uint32_t i;
	int err = 0;

	for (i = 1; !err && i < a->comm->nranks; i++) {
		a->wrong_rank = i;
		table_for(a, i, table);
		err = check_table(a, i, table);
	}
	return err;
}

/* Send each rank its table, unless that of any rank is wrong: then none may begin */
static int send_tables(struct admission *a, uint64_t until)
{
	struct dblp_comm *comm = a->comm;
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_TABLE);
	size_t len = (size_t)comm->nranks * comm->n_nics * sizeof(*comm->table);
	struct sockaddr_dblp *table = malloc(len);
	int err = table ? check_tables(a, table) : -ENOMEM;
	uint32_t i;

	ctl.nranks = comm->nranks;
	ctl.nics = comm->n_nics;
	ctl.comm = comm->id;
	for (i = 1; !err && i < comm->nranks; i++) {
		a->wrong_rank = i;
		table_for(a, i, table);
		err = dblp_transfer(comm->ctl[i].fd, &ctl, sizeof(ctl), true, until) ?:
		      dblp_transfer(comm->ctl[i].fd, table, len, true, until);
		if (err)
			dblp_why(err, "rank %u has disconnected while ranks joined", i);
	}
	free(table);
	return err;
}

/*
 * Does this host have the protocol of an address of rank 0? Ranks with an IPv6
 * address could never connect without it.
 */
static int has_protocol(const struct dblp_where *where)
{
	uint32_t i;
	int fd;

	for (i = 0; i < where->n; i++) {
		fd = dblp_socket(&where->addr[i], IPPROTO_TCP);
		if (fd >= 0)
			close(fd);
		if (fd != -EAFNOSUPPORT)
			return 0;
	}
	return where->n ? -EAFNOSUPPORT : 0;
}

/* Descriptors are -1 before a child can see them */
static int allocate(struct admission *a)
{
	struct dblp_comm *comm = a->comm;
	const uint32_t n = comm->nranks + DBLP_UNKNOWN_PEERS;
	struct dblp_candidate *c = calloc(n, sizeof(*c));
	uint32_t i;

	for (i = 0; c && i < n; i++)
		c[i].fd = -1;
	comm->n_candidates = n;
	__atomic_store_n(&comm->candidate, c, __ATOMIC_RELEASE);
	a->poll = calloc(comm->nranks + n, sizeof(*a->poll));
	a->reached = calloc(comm->nranks, sizeof(*a->reached));
	return c && a->poll && a->reached ? 0 : -ENOMEM;
}

static void release(struct admission *a)
{
	struct dblp_candidate *c = a->comm->candidate;
	uint32_t i;

	for (i = 0; c && i < a->comm->n_candidates; i++)
		dblp_fd_close(&c[i].fd);
	__atomic_store_n(&a->comm->candidate, NULL, __ATOMIC_RELEASE);
	free(c);
	free(a->poll);
	free(a->reached);
}

static int prepare(struct admission *a)
{
	struct dblp_comm *comm = a->comm;
	struct sockaddr_dblp addr = { .sdblp_family = AF_DBLP };
	struct dblp_where where;
	int err = dblp_rendezvous(comm, &where);

	if (!err)
		err = allocate(a);
	if (!err)
		err = has_protocol(&where);
	if (!err)
		err = dblp_join_listen(comm, where.port, a->until);
	if (where.n)
		addr = where.addr[0];
	a->is_loopback = where.n && dblp_is_loopback(&addr);
	comm->nic[0].is_listed = !dblp_is_loopback(&addr) &&
				 !dblp_rendezvous_own(comm, &addr);
	if (!err)
		err = dblp_nics_listen(comm, &addr);
	if (!err && dblp_uses_kv(comm)) {
		dblp_name_of(comm->join_listener, false, &where.addr[0]);
		addr.sdblp_port = where.addr[0].sdblp_port;
		err = dblp_rendezvous_store(comm, &addr);
	}
	return err;
}

int dblp_admit(struct dblp_comm *comm, uint64_t until)
{
	struct admission a = { .comm = comm, .until = until };
	struct dblp_hello own;
	int err = prepare(&a);

	if (!err) {
		dblp_hello_make(comm, &own);
		memcpy(comm->table, own.addr, comm->n_nics * sizeof(*own.addr));
		/* Names that preparing could not resolve do not matter any more */
		dblp_why_clear();
		err = receive_ranks(&a);
		until = dblp_comm_now() + comm->attr.timeout_ms * MS_NS;
		err = err ?: send_tables(&a, until);
		/* Ranks that have their table get the error, too */
		if (err)
			send_error(&a, err, until);
	}
	dblp_fd_close(&comm->join_listener);
	release(&a);
	return err;
}
