// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Finding the other ranks: each connects to rank 0 over TCP and says which addresses it
 * has; when all have come, rank 0 tells each the addresses of all. The connections stay,
 * see control.c.
 */

#include "engine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Strangers that rank 0 listens to at a time, besides ranks */
#define STRANGERS	64
#define RETRY_MS	20
#define KEY_MAX		64

/* What a connection to rank 0 says when it begins */
struct hello {
	struct dblp_ctl		ctl;
	struct sockaddr_dblp	addr[DBLP_NICS_MAX];
};

/* Who has connected to rank 0, and when */
struct guest {
	int		fd;
	uint64_t	since;
	size_t		got;
	struct hello	hello;
};

/* Rank 0 while ranks come */
struct party {
	struct dblp_comm	*comm;
	uint64_t		until;
	uint32_t		come;
	uint32_t		n;
	uint32_t		room;
	struct guest		*guest;
	struct pollfd		*poll;
	uint32_t		wrong_rank;
	uint32_t		error;
};

static int ms_left(uint64_t until)
{
	uint64_t now = dblp_comm_now();

	return now < until ? dblp_poll_ms(until - now) : 0;
}

/* Send or receive all of @buf */
static int transfer(int fd, void *buf, size_t len, bool out, uint64_t until)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd p = { fd, out ? POLLOUT : POLLIN, 0 };
		char *at = (char *)buf + done;
		ssize_t n = out ?
			send(fd, at, len - done, MSG_DONTWAIT | MSG_NOSIGNAL) :
			recv(fd, at, len - done, MSG_DONTWAIT);

		if (n > 0)
			done += (size_t)n;
		else if (!n)
			return -ECONNRESET;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (!ms_left(until))
			return -ETIMEDOUT;
		else
			poll(&p, 1, ms_left(until));
	}
	return 0;
}

/* Addresses */

static int resolve(const char *host, const char *port,
		   struct sockaddr_dblp *addr)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	bool found;

	if (getaddrinfo(host, port, &hints, &list))
		return -EADDRNOTAVAIL;
	found = dblp_addr_from(addr, list->ai_addr);
	freeaddrinfo(list);
	return found ? 0 : -EADDRNOTAVAIL;
}

static int parse_tcp(const char *text, struct sockaddr_dblp *addr)
{
	char host[256];
	const char *port = strrchr(text, ':');
	size_t len = port ? (size_t)(port - text) : 0;

	if (!dblp_addr_parse(text, addr))
		return addr->sdblp_port ? 0 : -EINVAL;
	if (!len || len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	return resolve(host, port + 1, addr) ?: addr->sdblp_port ? 0 : -EINVAL;
}

/* 1 ... 65535, or 0 */
static long port_number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n <= 65535 ? n : 0;
}

static int parse_env(struct sockaddr_dblp *addr)
{
	const char *host = getenv("MASTER_ADDR"), *own = getenv("DBLP_PORT");
	const char *master = getenv("MASTER_PORT");
	char port[12];
	long n;

	if (!host || !(own || master))
		return -EINVAL;
	n = port_number(own ?: master);
	if (n <= 0 || (!own && ++n > 65535))
		return -EINVAL;
	snprintf(port, sizeof(port), "%ld", n);
	return resolve(host, port, addr);
}

/* The address in line @rank of the list */
static int parse_file(const char *path, uint32_t rank, uint32_t nranks,
		      struct sockaddr_dblp *addr)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	int err = -EINVAL;
	uint32_t i = 0;

	if (!file)
		return -errno;
	while (getline(&line, &room, file) >= 0) {
		line[strcspn(line, " \t\r\n#")] = '\0';
		if (!line[0])
			continue;
		if (i == rank)
			err = parse_tcp(line, addr);
		i++;
	}
	free(line);
	fclose(file);
	return i == nranks ? err : -EINVAL;
}

/* The address of @ifa, if it is one */
static bool take_address(const struct ifaddrs *ifa, struct sockaddr_dblp *addr)
{
	return ifa->ifa_addr && dblp_addr_from(addr, ifa->ifa_addr) &&
	       !IN6_IS_ADDR_LINKLOCAL(&addr->sdblp_addr);
}

/*
 * device_address() - first address of a device
 * @name: the device, or "": the first one that is not for this host only, if any
 */
static int device_address(const char *name, struct sockaddr_dblp *addr)
{
	struct sockaddr_dblp found;
	struct ifaddrs *list, *ifa;
	int err = name[0] ? -ENODEV : dblp_addr_parse("127.0.0.1", addr);

	if (getifaddrs(&list))
		return -errno;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (name[0] ? strcmp(ifa->ifa_name, name) :
			      !strcmp(ifa->ifa_name, "lo"))
			continue;
		if (!take_address(ifa, &found))
			continue;
		*addr = found;
		err = 0;
		break;
	}
	freeifaddrs(list);
	return err;
}

/* The address of this end of a connection */
static int own_address(int fd, struct sockaddr_dblp *addr)
{
	union {
		struct sockaddr		any;
		struct sockaddr_in6	v6;
	} name;
	socklen_t len = sizeof(name);

	if (getsockname(fd, &name.any, &len))
		return -errno;
	if (!dblp_addr_from(addr, &name.any))
		return -EAFNOSUPPORT;
	addr->sdblp_port = 0;
	return 0;
}

int dblp_bind_device(const struct dblp_nic *nic, int fd)
{
	if (!nic->name[0])
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, nic->name,
			  (socklen_t)strlen(nic->name)) ? -errno : 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 name;
	socklen_t len = sizeof(name);

	/* The port is at the same place in all families */
	return getsockname(fd, (struct sockaddr *)&name, &len) ? 0 :
	       name.sin6_port;
}

int dblp_nic_listen(struct dblp_comm *comm, struct dblp_nic *nic)
{
	int fd = dblp_socket(&nic->addr, comm->transport->protocol);
	int err;

	if (fd < 0)
		return fd;
	nic->addr.sdblp_port = 0;
	err = dblp_bind_device(nic, fd);
	if (!err)
		err = comm->transport->setup(comm, fd);
	if (!err)
		err = dblp_listen(fd, &nic->addr);
	if (err) {
		close(fd);
		return err;
	}
	nic->listener = fd;
	nic->addr.sdblp_port = port_of(fd);
	return 0;
}

/* Listen on each device. @addr: of the only one, if it has no name */
static int listen_all(struct dblp_comm *comm, const struct sockaddr_dblp *addr)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < comm->n_nics; i++) {
		struct dblp_nic *nic = &comm->nic[i];

		if (nic->name[0])
			err = device_address(nic->name, &nic->addr);
		else
			nic->addr = *addr;
		if (!err)
			err = dblp_nic_listen(comm, nic);
	}
	return err;
}

/* Where is rank 0? On rank 0: where to listen, with port 0 if others will be told */
static int find_rank_0(struct dblp_comm *comm, struct sockaddr_dblp *addr)
{
	const char *at = comm->attr.rendezvous;

	if (!at || !strcmp(at, "env"))
		return parse_env(addr);
	if (!strncmp(at, "tcp://", 6))
		return parse_tcp(at + 6, addr);
	if (!strncmp(at, "file:", 5))
		return parse_file(at + 5, 0, comm->nranks, addr);
	if (!strcmp(at, "kv") && comm->attr.kv_set && comm->attr.kv_get)
		return device_address(comm->nic[0].name, addr);
	return -EINVAL;
}

static bool uses_kv(const struct dblp_comm *comm)
{
	return comm->attr.rendezvous && !strcmp(comm->attr.rendezvous, "kv");
}

static void kv_key(const struct dblp_comm *comm, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "dblp/%u/0", comm->attr.epoch);
}

/* Tell the others where rank 0 listens */
static int kv_tell(struct dblp_comm *comm, int listener,
		   struct sockaddr_dblp *addr)
{
	char key[KEY_MAX], text[DBLP_ADDR_TEXT];

	kv_key(comm, key);
	addr->sdblp_port = port_of(listener);
	dblp_addr_format(addr, text);
	return comm->attr.kv_set(comm->attr.kv, key, text, strlen(text));
}

static int kv_ask(struct dblp_comm *comm, struct sockaddr_dblp *addr,
		  uint64_t until)
{
	char key[KEY_MAX], text[DBLP_ADDR_TEXT];
	size_t n;
	int err;

	kv_key(comm, key);
	for (;;) {
		n = sizeof(text) - 1;
		err = comm->attr.kv_get(comm->attr.kv, key, text, &n);
		if (err != -EAGAIN)
			break;
		if (!ms_left(until))
			return -ETIMEDOUT;
		poll(NULL, 0, RETRY_MS);
	}
	if (err || n >= sizeof(text))
		return err ?: -EINVAL;
	text[n] = '\0';
	return dblp_addr_parse(text, addr);
}

/* What this rank says of itself */
static void say_hello(const struct dblp_comm *comm, struct hello *h)
{
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->ctl = dblp_ctl_make(comm, DBLP_CTL_JOIN);
	h->ctl.nranks = comm->nranks;
	h->ctl.nics = comm->n_nics;
	h->ctl.message_bytes = comm->attr.message_bytes;
	h->ctl.digest = dblp_lanes_digest(comm);
	snprintf(h->ctl.transport, sizeof(h->ctl.transport), "%s%s%s",
		 comm->transport->name, comm->cc[0] ? ":" : "", comm->cc);
	for (i = 0; i < comm->n_nics; i++)
		h->addr[i] = comm->nic[i].addr;
}

/* Rank 0 */

static void refuse(const struct dblp_comm *comm, int fd, uint32_t error)
{
	struct dblp_ctl no = dblp_ctl_make(comm, DBLP_CTL_REFUSE);

	no.error = error;
	send(fd, &no, sizeof(no), MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
}

static void forget(struct party *p, uint32_t i)
{
	close(p->guest[i].fd);
	p->guest[i] = p->guest[--p->n];
}

static void send_away(struct party *p, uint32_t i, uint64_t *counter,
		      uint32_t error)
{
	if (error)
		refuse(p->comm, p->guest[i].fd, error);
	dblp_comm_count(p->comm, counter);
	forget(p, i);
}

static size_t hello_length(const struct hello *h)
{
	return sizeof(h->ctl) + h->ctl.nics * sizeof(*h->addr);
}

/* It is a rank of this communicator */
static void welcome(struct party *p, uint32_t i)
{
	struct dblp_comm *comm = p->comm;
	const struct hello *h = &p->guest[i].hello;
	struct hello own;

	say_hello(comm, &own);
	own.ctl.rank = h->ctl.rank;
	if (memcmp(&own.ctl, &h->ctl, sizeof(own.ctl)) && !p->error) {
		p->error = EINVAL;
		p->wrong_rank = h->ctl.rank;
	} else if (!p->error) {
		memcpy(&comm->table[h->ctl.rank * comm->n_nics], h->addr,
		       comm->n_nics * sizeof(*h->addr));
	}
	comm->ctl[h->ctl.rank].fd = p->guest[i].fd;
	p->come++;
	p->guest[i] = p->guest[--p->n];
}

/* All of a greeting has come */
static void greeted(struct party *p, uint32_t i)
{
	const struct dblp_ctl *ctl = &p->guest[i].hello.ctl;
	struct dblp_comm *comm = p->comm;

	if (ctl->epoch < comm->attr.epoch) {
		send_away(p, i, &comm->stats.stale, ESTALE);
	} else if (ctl->epoch > comm->attr.epoch) {
		/* This one is of yesterday, and all that have come to it */
		p->error = ESTALE;
		p->wrong_rank = 0;
	} else if (ctl->rank >= comm->nranks) {
		p->error = EINVAL;
		p->wrong_rank = ctl->rank;
		refuse(comm, p->guest[i].fd, EINVAL);
		forget(p, i);
	} else if (!ctl->rank || comm->ctl[ctl->rank].fd >= 0) {
		send_away(p, i, &comm->stats.strangers, EEXIST);
	} else {
		welcome(p, i);
	}
}

/* Something has come from a guest */
static void listen_to(struct party *p, uint32_t i)
{
	struct guest *g = &p->guest[i];
	struct dblp_comm *comm = p->comm;
	size_t want = g->got < sizeof(g->hello.ctl) ? sizeof(g->hello.ctl) :
		      hello_length(&g->hello);
	ssize_t n = recv(g->fd, (char *)&g->hello + g->got, want - g->got,
			 MSG_DONTWAIT);

	if (n <= 0) {
		if (n && (errno == EAGAIN || errno == EINTR))
			return;
		send_away(p, i, &comm->stats.strangers, 0);
		return;
	}
	g->got += (size_t)n;
	/* The first eight bytes are of all versions */
	if (g->got >= 8 && g->hello.ctl.magic != DBLP_CTL_MAGIC)
		send_away(p, i, &comm->stats.strangers, 0);
	else if (g->got >= 8 && g->hello.ctl.version != DBLP_COMM_VERSION)
		send_away(p, i, &comm->stats.versions, EPROTONOSUPPORT);
	else if (g->got >= sizeof(g->hello.ctl) &&
		 (g->hello.ctl.type != DBLP_CTL_JOIN ||
		  g->hello.ctl.nics > DBLP_NICS_MAX))
		send_away(p, i, &comm->stats.strangers, 0);
	else if (g->got >= sizeof(g->hello.ctl) &&
		 g->got == hello_length(&g->hello))
		greeted(p, i);
}

/* Whoever came first and has not said all goes if there is no room */
static uint32_t oldest(const struct party *p)
{
	uint32_t i, first = 0;

	for (i = 1; i < p->n; i++)
		if (p->guest[i].since < p->guest[first].since)
			first = i;
	return first;
}

/* Whoever went again is no error, the want of descriptors or memory is one */
static int let_in(struct party *p)
{
	int fd = dblp_accept(p->comm->door);

	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ||
		       fd == -ENOBUFS ? fd : 0;
	if (p->n == p->room)
		send_away(p, oldest(p), &p->comm->stats.strangers, 0);
	p->guest[p->n++] = (struct guest) {
		.fd = fd,
		.since = dblp_comm_now(),
	};
	return 0;
}

/* Until all have come, or one is of a later epoch, or there cannot be all */
static int receive_guests(struct party *p)
{
	uint32_t i, n;
	int err;

	while (p->come + 1 < p->comm->nranks &&
	       !(p->error && (p->error == ESTALE ||
			      p->wrong_rank >= p->comm->nranks))) {
		n = p->n;
		p->poll[n] = (struct pollfd) { p->comm->door, POLLIN, 0 };
		for (i = 0; i < n; i++)
			p->poll[i] = (struct pollfd) { p->guest[i].fd, POLLIN, 0 };
		if (!ms_left(p->until))
			return -ETIMEDOUT;
		if (poll(p->poll, n + 1, ms_left(p->until)) < 0)
			continue;
		/* From behind: who goes away leaves his place to the last one */
		for (i = n; i--; )
			if (p->poll[i].revents)
				listen_to(p, i);
		err = p->poll[n].revents ? let_in(p) : 0;
		if (err)
			return err;
	}
	return p->error ? -(int)p->error : 0;
}

/* Tell all that have come how it ends: @error or the table */
static int tell_all(struct dblp_comm *comm, int error, uint32_t wrong_rank,
		    uint64_t until)
{
	struct dblp_ctl ctl = dblp_ctl_make(comm, error ? DBLP_CTL_ABORT :
							  DBLP_CTL_TABLE);
	size_t len = (size_t)comm->nranks * comm->n_nics * sizeof(*comm->table);
	uint32_t i;
	int err = 0;

	ctl.rank = wrong_rank;
	ctl.error = (uint32_t)-error;
	ctl.nranks = comm->nranks;
	ctl.nics = comm->n_nics;
	ctl.comm = comm->id;
	for (i = 1; i < comm->nranks; i++) {
		int fd = comm->ctl[i].fd;

		if (fd < 0)
			continue;
		err = transfer(fd, &ctl, sizeof(ctl), true, until);
		if (!error && !err)
			err = transfer(fd, comm->table, len, true, until);
		/* Whoever has the table hears it, too, and then who is missing */
		if (!error && err)
			return tell_all(comm, err, i, until);
	}
	return error;
}

static int be_rank_0(struct dblp_comm *comm, struct sockaddr_dblp *addr,
		     uint64_t until)
{
	struct party p = { .comm = comm, .until = until };
	int err;
	uint32_t i;

	p.room = comm->nranks + STRANGERS;
	p.guest = calloc(p.room, sizeof(*p.guest));
	p.poll = calloc(p.room + 1, sizeof(*p.poll));
	err = p.guest && p.poll ? 0 : -ENOMEM;
	if (!err)
		comm->door = dblp_socket(addr, IPPROTO_TCP);
	if (!err && comm->door < 0)
		err = comm->door;
	if (!err)
		err = dblp_listen(comm->door, addr);
	if (!err)
		err = listen_all(comm, addr);
	if (!err && uses_kv(comm))
		err = kv_tell(comm, comm->door, addr);
	for (i = 0; !err && i < comm->n_nics; i++)
		comm->table[i] = comm->nic[i].addr;
	if (!err) {
		err = receive_guests(&p);
		/* Who waits for the others should not do so in vain */
		err = tell_all(comm, err, p.wrong_rank,
			       dblp_comm_now() + 1000 * MS_NS);
	}
	while (p.n)
		forget(&p, p.n - 1);
	dblp_fd_close(&comm->door);
	free(p.guest);
	free(p.poll);
	return err;
}

/* The other ranks */

static int connect_to_0(const struct sockaddr_dblp *addr, uint64_t until)
{
	for (;;) {
		int left = ms_left(until), fd, err;

		if (!left)
			return -ETIMEDOUT;
		fd = dblp_socket(addr, IPPROTO_TCP);
		if (fd < 0)
			return fd;
		err = dblp_connect(fd, addr, left < 1000 ? left : 1000);
		if (!err)
			return fd;
		close(fd);
		/* It may not have begun, nor its host */
		poll(NULL, 0, RETRY_MS);
	}
}

/* What rank 0 answers; the table if it is well. A positive errno is what it says */
static int hear_0(struct dblp_comm *comm, int fd, uint64_t until)
{
	size_t len = (size_t)comm->nranks * comm->n_nics * sizeof(*comm->table);
	struct dblp_ctl ctl;
	int err = transfer(fd, &ctl, sizeof(ctl), false, until);

	if (err)
		return err;
	if (ctl.magic != DBLP_CTL_MAGIC)
		return -EPROTO;
	if (ctl.version != DBLP_COMM_VERSION)
		return -EPROTONOSUPPORT;
	if (ctl.type == DBLP_CTL_ABORT || ctl.type == DBLP_CTL_REFUSE)
		return ctl.error && ctl.error < 4096 ? (int)ctl.error : EPROTO;
	if (ctl.type != DBLP_CTL_TABLE || ctl.nranks != comm->nranks ||
	    ctl.nics != comm->n_nics)
		return -EPROTO;
	comm->id = ctl.comm;
	return transfer(fd, comm->table, len, false, until);
}

/* Listen at the address from which rank 0 is reached, or that of the list */
static int listen_here(struct dblp_comm *comm)
{
	const char *at = comm->attr.rendezvous;
	struct sockaddr_dblp own;
	int err;

	if (at && !strncmp(at, "file:", 5))
		err = parse_file(at + 5, comm->rank, comm->nranks, &own);
	else
		err = own_address(comm->ctl[0].fd, &own);
	return err ?: listen_all(comm, &own);
}

static int greet(struct dblp_comm *comm, uint64_t until)
{
	int fd = comm->ctl[0].fd, err;
	struct hello h;

	say_hello(comm, &h);
	err = transfer(fd, &h, hello_length(&h), true, until);
	return err ?: hear_0(comm, fd, until);
}

/* A rank 0 that ends without a word was one of before: another one will come */
static int be_other_rank(struct dblp_comm *comm, struct sockaddr_dblp *addr,
			 uint64_t until)
{
	int err = uses_kv(comm) ? kv_ask(comm, addr, until) : 0;

	while (!err) {
		bool first = comm->nic[0].listener < 0;

		err = connect_to_0(addr, until);
		if (err < 0)
			break;
		comm->ctl[0].fd = err;
		err = first ? listen_here(comm) : 0;
		if (!err)
			err = greet(comm, until);
		if (err != -ECONNRESET && err != -EPIPE)
			break;
		dblp_fd_close(&comm->ctl[0].fd);
		err = 0;
		poll(NULL, 0, RETRY_MS);
	}
	return err > 0 ? -err : err;
}

int dblp_join(struct dblp_comm *comm)
{
	uint64_t until = dblp_comm_now() + comm->attr.join_ms * MS_NS;
	struct sockaddr_dblp addr;
	int err = find_rank_0(comm, &addr);

	if (err)
		return err;
	return comm->rank ? be_other_rank(comm, &addr, until) :
	       be_rank_0(comm, &addr, until);
}
