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
 * struct guest - a connection whose peer has not proved to be a rank
 * @fd: its socket
 * @since: when it was accepted, ns
 * @got: bytes received of @hello, then of @mac
 * @challenged: @hello is complete, and a challenge was sent
 * @proof: expected MAC
 * @mac: received MAC
 * @hello: the peer's hello
 */
struct guest {
	int			fd;
	uint64_t		since;
	size_t			got;
	bool			challenged;
	uint8_t			proof[DBLP_MAC];
	uint8_t			mac[DBLP_MAC];
	struct dblp_hello	hello;
};

/**
 * struct party - state of rank 0 while ranks join
 * @comm: the communicator
 * @until: timeout for all ranks to join, ns
 * @come: number of other ranks that have joined
 * @n: entries of @guest
 * @room: allocated entries of @guest
 * @guest: connections whose peer has not proved to be a rank
 * @poll: the listening socket, then ranks 1, 2, ..., then guests
 * @reached: by rank, the address at which it reached rank 0
 * @error: positive errno once the ranks cannot form a communicator
 * @wrong_rank: rank that caused @error
 */
struct party {
	struct dblp_comm	*comm;
	uint64_t		until;
	uint32_t		come;
	uint32_t		n;
	uint32_t		room;
	struct guest		*guest;
	struct pollfd		*poll;
	struct sockaddr_dblp	*reached;
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

/* Remove a guest from the list; its socket stays open */
static void drop(struct party *p, struct guest *g)
{
	*g = p->guest[--p->n];
}

static void send_away(struct party *p, struct guest *g, uint64_t *counter,
		      uint32_t error)
{
	if (error)
		refuse(p->comm, g->fd, error);
	if (counter)
		dblp_comm_count(p->comm, counter);
	close(g->fd);
	drop(p, g);
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
	return h->ctl.digest == own.ctl.digest ? NULL : "lanes";
}

/*
 * Store a rank's addresses; the peer address of its connection replaces
 * unspecified ones
 */
static int take_addresses(struct party *p, const struct guest *g)
{
	struct sockaddr_dblp *to = &p->comm->table[g->hello.ctl.rank * p->comm->n_nics];
	struct sockaddr_dblp peer;
	int err = dblp_name_of(g->fd, true, &peer);
	uint32_t i;

	for (i = 0; !err && i < p->comm->n_nics; i++) {
		to[i] = g->hello.addr[i];
		if (!dblp_is_any(&to[i]) || dblp_is_loopback(&peer))
			continue;
		to[i] = peer;
		to[i].sdblp_port = g->hello.addr[i].sdblp_port;
	}
	p->reached[g->hello.ctl.rank] = g->hello.reached;
	return err;
}

/* The peer is a rank of this communicator */
static void welcome(struct party *p, struct guest *g)
{
	const uint32_t rank = g->hello.ctl.rank;
	const char *what = difference(p->comm, &g->hello);

	if (what && !p->error) {
		p->error = EINVAL;
		p->wrong_rank = rank;
		dblp_why(-EINVAL, "rank %u has another %s than rank 0", rank, what);
	}
	if (!p->error && take_addresses(p, g)) {
		send_away(p, g, NULL, 0);
		return;
	}
	p->comm->ctl[rank].fd = g->fd;
	p->come++;
	drop(p, g);
}

/* The peer knows the secret */
static void proved(struct party *p, struct guest *g)
{
	const struct dblp_ctl *ctl = &g->hello.ctl;
	struct dblp_comm *comm = p->comm;

	/*
	 * It wants another communicator at this address: no reason to end this
	 * attempt
	 */
	if (ctl->comm && ctl->comm != comm->id) {
		send_away(p, g, &comm->stats.strangers, EAGAIN);
	} else if (ctl->epoch < comm->attr.epoch) {
		send_away(p, g, &comm->stats.stale, ESTALE);
	} else if (ctl->epoch > comm->attr.epoch) {
		/* This attempt is over, for rank 0 and all that have joined */
		p->error = ESTALE;
		p->wrong_rank = 0;
		dblp_why(-ESTALE, "rank %u has epoch %u, rank 0 has %u", ctl->rank,
			 ctl->epoch, comm->attr.epoch);
	} else if (ctl->rank >= comm->nranks) {
		p->error = EINVAL;
		p->wrong_rank = ctl->rank;
		dblp_why(-EINVAL, "rank %u is too large: there are %u ranks", ctl->rank, comm->nranks);
		send_away(p, g, NULL, EINVAL);
	} else if (!ctl->rank || comm->ctl[ctl->rank].fd >= 0) {
		send_away(p, g, &comm->stats.strangers, EEXIST);
	} else {
		welcome(p, g);
	}
}

/* The hello is complete: send a challenge, with the proof of rank 0 */
static void challenge(struct party *p, struct guest *g)
{
	struct dblp_challenge c = {
		.ctl = dblp_ctl_make(p->comm, DBLP_CTL_CHALLENGE),
	};

	g->challenged = true;
	g->got = 0;
	if (getrandom(c.nonce, sizeof(c.nonce), 0) != sizeof(c.nonce)) {
		send_away(p, g, NULL, 0);
		return;
	}
	dblp_prove(p->comm, "rank 0", &g->hello, c.nonce, c.mac);
	dblp_prove(p->comm, "rank r", &g->hello, c.nonce, g->proof);
	/*
	 * The send buffer is empty, so a short send means that the connection
	 * has ended
	 */
	if (send(g->fd, &c, sizeof(c), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(c))
		send_away(p, g, &p->comm->stats.strangers, 0);
}

/*
 * Bytes missing of the current message; 0: it is complete; -1: the guest was
 * dropped
 */
static ssize_t missing(struct party *p, struct guest *g)
{
	struct dblp_comm *comm = p->comm;
	const struct dblp_ctl *ctl = &g->hello.ctl;

	if (g->challenged)
		return (ssize_t)(sizeof(g->mac) - g->got);
	/* The first eight bytes are the same in all versions */
	if (g->got >= 8 && ctl->magic != DBLP_CTL_MAGIC) {
		send_away(p, g, &comm->stats.strangers, 0);
		return -1;
	}
	if (g->got >= 8 && ctl->version != DBLP_COMM_VERSION) {
		send_away(p, g, &comm->stats.versions, EPROTONOSUPPORT);
		return -1;
	}
	if (g->got < sizeof(*ctl))
		return (ssize_t)(sizeof(*ctl) - g->got);
	if (ctl->type != DBLP_CTL_JOIN || ctl->nics > DBLP_NICS_MAX) {
		send_away(p, g, &comm->stats.strangers, 0);
		return -1;
	}
	return (ssize_t)(dblp_hello_length(&g->hello) - g->got);
}

/* A guest's socket is readable */
static void listen_to(struct party *p, struct guest *g)
{
	char *at = g->challenged ? (char *)g->mac : (char *)&g->hello;
	ssize_t n = recv(g->fd, at + g->got, (size_t)missing(p, g), MSG_DONTWAIT);

	if (n <= 0) {
		if (!n || (errno != EAGAIN && errno != EINTR))
			send_away(p, g, &p->comm->stats.strangers, 0);
		return;
	}
	g->got += (size_t)n;
	if (missing(p, g))
		return;
	if (!g->challenged)
		challenge(p, g);
	else if (dblp_is_equal(g->mac, g->proof, sizeof(g->mac)))
		proved(p, g);
	else
		send_away(p, g, &p->comm->stats.strangers, EACCES);
}

/* The guest that was accepted first */
static struct guest *oldest(const struct party *p)
{
	struct guest *first = p->guest;
	uint32_t i;

	for (i = 1; i < p->n; i++)
		if (p->guest[i].since < first->since)
			first = &p->guest[i];
	return first;
}

/* Descriptors or memory are used up: does closing a connection without proof free some? */
static int make_room(struct party *p, int error)
{
	if (!p->n)
		return dblp_why(error, "rank 0 cannot accept more connections");
	send_away(p, oldest(p), &p->comm->stats.strangers, 0);
	return 0;
}

/* A client that disconnected is not an error */
static int let_in(struct party *p)
{
	int fd = dblp_accept(p->comm->door);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS)
		return make_room(p, fd);
	if (fd < 0)
		return 0;
	/*
	 * Without keepalive, a host that fails would keep its connection open
	 */
	if (dblp_tcp_keep_alive(p->comm, fd)) {
		close(fd);
		return 0;
	}
	if (p->n == p->room)
		send_away(p, oldest(p), &p->comm->stats.strangers, 0);
	p->guest[p->n++] = (struct guest) {
		.fd = fd,
		.since = dblp_comm_now(),
	};
	return 0;
}

/*
 * A rank that has joined sends nothing: an event means that its connection has
 * ended
 */
static void forget(struct party *p, uint32_t rank)
{
	dblp_fd_close(&p->comm->ctl[rank].fd);
	p->come--;
}

/* "1, 3-5": the ranks that have not joined */
static void name_missing(const struct party *p, char *text, size_t room)
{
	const struct dblp_comm *comm = p->comm;
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

static int out_of_time(const struct party *p)
{
	const struct dblp_comm *comm = p->comm;
	const char *host = getenv("MASTER_ADDR");
	struct dblp_where where;
	char ranks[128];
	bool own;

	if (p->error)
		return -(int)p->error;
	name_missing(p, ranks, sizeof(ranks));
	own = host && !dblp_uses_kv(comm) && !dblp_rendezvous(p->comm, &where) &&
	      where.n && dblp_is_loopback(&where.addr[0]);
	return dblp_why(-ETIMEDOUT, "of %u ranks, some have not joined within %u ms: %s%s",
			comm->nranks, comm->attr.join_ms, ranks, own ?
			"; on this host MASTER_ADDR is a loopback address: is it right on other hosts?" : "");
}

static void watch(struct party *p)
{
	const struct dblp_comm *comm = p->comm;
	uint32_t i;

	p->poll[0] = (struct pollfd) { comm->door, POLLIN, 0 };
	for (i = 1; i < comm->nranks; i++)
		p->poll[i] = (struct pollfd) { comm->ctl[i].fd, POLLIN, 0 };
	for (i = 0; i < p->n; i++)
		p->poll[comm->nranks + i] = (struct pollfd) { p->guest[i].fd, POLLIN, 0 };
}

static int handle(struct party *p, uint32_t n)
{
	const uint32_t nranks = p->comm->nranks;
	uint32_t i;

	for (i = 1; i < nranks; i++)
		if (p->poll[i].revents)
			forget(p, i);
	/* Iterate backwards: removal moves the last entry into the hole */
	for (i = n; i--; )
		if (p->poll[nranks + i].revents)
			listen_to(p, &p->guest[i]);
	return p->poll[0].revents ? let_in(p) : 0;
}

/*
 * Receive until all have joined, a rank has a later epoch, or a rank number is
 * invalid
 */
static int receive_guests(struct party *p)
{
	const struct dblp_comm *comm = p->comm;
	int err = 0;

	while (!err && p->come + 1 < comm->nranks &&
	       p->error != ESTALE && p->wrong_rank < comm->nranks) {
		uint32_t n = p->n;

		if (!dblp_ms_left(p->until))
			return out_of_time(p);
		watch(p);
		if (poll(p->poll, comm->nranks + n, dblp_ms_left(p->until)) >= 0)
			err = handle(p, n);
	}
	return err ?: -(int)p->error;
}

/*
 * Table for rank @to. Unspecified addresses are on the host of rank 0: use the
 * address at which @to has reached rank 0.
 */
static void table_for(const struct party *p, uint32_t to, struct sockaddr_dblp *table)
{
	const struct dblp_comm *comm = p->comm;
	const size_t n = (size_t)comm->nranks * comm->n_nics;
	size_t i;

	for (i = 0; i < n; i++) {
		table[i] = comm->table[i];
		if (!dblp_is_any(&table[i]))
			continue;
		table[i] = p->reached[to];
		table[i].sdblp_port = comm->table[i].sdblp_port;
	}
}

/* A rank connects to all lower ranks: can rank @to reach their addresses? */
static int check_table(const struct party *p, uint32_t to, const struct sockaddr_dblp *table)
{
	const struct dblp_comm *comm = p->comm;
	char text[DBLP_ADDR_TEXT];
	size_t i;

	for (i = 0; i < (size_t)to * comm->n_nics; i++) {
		if (!dblp_is_loopback(&table[i]) || dblp_is_loopback(&p->reached[to]))
			continue;
		dblp_addr_format(&table[i], text);
		return dblp_why(-EADDRNOTAVAIL, "rank %u listens at %s, which rank %u cannot reach",
				(uint32_t)(i / comm->n_nics), text, to);
	}
	return 0;
}

static void tell_error(const struct party *p, int error, uint64_t until)
{
	const struct dblp_comm *comm = p->comm;
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_ABORT);
	char why[DBLP_WHY_TEXT] = "";
	uint32_t i;

	snprintf(why, sizeof(why), "%s", dblp_comm_why(NULL));
	ctl.rank = p->wrong_rank;
	ctl.error = (uint32_t)-error;
	for (i = 1; i < comm->nranks; i++)
		if (comm->ctl[i].fd >= 0 &&
		    !dblp_transfer(comm->ctl[i].fd, &ctl, sizeof(ctl), true, until))
			dblp_transfer(comm->ctl[i].fd, why, sizeof(why), true, until);
}

static int tell_table(struct party *p, uint64_t until)
{
	struct dblp_comm *comm = p->comm;
	struct dblp_ctl ctl = dblp_ctl_make(comm, DBLP_CTL_TABLE);
	size_t len = (size_t)comm->nranks * comm->n_nics * sizeof(*comm->table);
	struct sockaddr_dblp *table = malloc(len);
	int err = table ? 0 : -ENOMEM;
	uint32_t i;

	ctl.nranks = comm->nranks;
	ctl.nics = comm->n_nics;
	ctl.comm = comm->id;
	for (i = 1; !err && i < comm->nranks; i++) {
		p->wrong_rank = i;
		table_for(p, i, table);
		err = check_table(p, i, table);
		if (err)
			break;
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

static int prepare(struct party *p)
{
	struct dblp_comm *comm = p->comm;
	struct sockaddr_dblp addr = { .sdblp_family = AF_DBLP };
	struct dblp_where where;
	int err = dblp_rendezvous(comm, &where);

	p->room = comm->nranks + DBLP_STRANGERS;
	p->guest = calloc(p->room, sizeof(*p->guest));
	p->poll = calloc(comm->nranks + p->room + 1, sizeof(*p->poll));
	p->reached = calloc(comm->nranks, sizeof(*p->reached));
	if (!err && !(p->guest && p->poll && p->reached))
		err = -ENOMEM;
	if (!err)
		err = has_protocol(&where);
	if (!err)
		err = dblp_door_open(comm, where.port, p->until);
	if (where.n)
		addr = where.addr[0];
	comm->nic[0].is_listed = !dblp_is_loopback(&addr) &&
				 !dblp_rendezvous_own(comm, &addr);
	if (!err)
		err = dblp_nics_listen(comm, &addr);
	if (!err && dblp_uses_kv(comm)) {
		dblp_name_of(comm->door, false, &where.addr[0]);
		addr.sdblp_port = where.addr[0].sdblp_port;
		err = dblp_rendezvous_tell(comm, &addr);
	}
	return err;
}

int dblp_admit(struct dblp_comm *comm, uint64_t until)
{
	struct party p = { .comm = comm, .until = until };
	struct dblp_hello own;
	int err = prepare(&p);

	if (!err) {
		dblp_hello_make(comm, &own);
		memcpy(comm->table, own.addr, comm->n_nics * sizeof(*own.addr));
		err = receive_guests(&p);
		until = dblp_comm_now() + comm->attr.timeout_ms * MS_NS;
		err = err ?: tell_table(&p, until);
		/* Ranks that have their table get the error, too */
		if (err)
			tell_error(&p, err, until);
	}
	while (p.n)
		send_away(&p, p.guest, NULL, 0);
	dblp_fd_close(&comm->door);
	free(p.guest);
	free(p.poll);
	free(p.reached);
	return err;
}
