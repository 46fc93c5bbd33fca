// SPDX-License-Identifier: GPL-2.0-only
/* Connections, and messages on them. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <units.h>

#include "conn.h"

/*
 * First message of each connection, in network byte order. The listening end compares
 * it with its own options, because ends with different options would deadlock.
 */
struct hello {
	char		magic[8];
	char		mode[8];
	uint32_t	index;
	uint32_t	connections;
	uint32_t	size;
	uint32_t	count;
	uint32_t	warmup;
	uint32_t	verify;
	uint64_t	seed;
};

static void make_hello(struct hello *h, unsigned int index)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, "dblpperf", 8);
	memcpy(h->mode, cfg.mode->name, strlen(cfg.mode->name));
	h->index = htobe32(index);
	h->connections = htobe32(total_connections());
	h->size = htobe32(cfg.size);
	h->count = htobe32(cfg.count);
	h->warmup = htobe32(cfg.warmup);
	h->verify = htobe32(cfg.verify);
	h->seed = htobe64(cfg.seed);
}

/* Address of the listening end, with @port */
static struct sockaddr_dblp make_addr(unsigned int port)
{
	struct sockaddr_dblp addr;
	const char *why = dblp_addr_alone(cfg.address, &addr);

	errno = 0;
	if (why)
		fail("--address: '%s' %s", cfg.address, why);
	addr.sdblp_port = htons(port);
	return addr;
}

static void set_buffers(int fd, const struct proto *proto)
{
	int size = cfg.buffer;

	if (!size)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
		fail("%s: setting buffer sizes", proto->name);
}

static void set_cc(int fd, const struct proto *proto, const char *cc)
{
	errno = 0;
	if (!proto->cc_level)
		lacking("%s has no option for congestion control", proto->name);
	if (!setsockopt(fd, proto->cc_level, proto->cc_option, cc, strlen(cc)))
		return;
	if (errno == ENOENT || errno == EINVAL)
		lacking("%s has no congestion control '%s'", proto->name, cc);
	fail("setting the congestion control");
}

/* EAFNOSUPPORT means that the kernel has no IPv6: all other addresses are IPv4 */
static void check_family(int error)
{
	errno = 0;
	if (error == EAFNOSUPPORT)
		lacking("this kernel has no IPv6, which %s needs", cfg.address);
	errno = error;
}

static int open_socket(const struct flavour *f,
		       const struct sockaddr_dblp *addr)
{
	const struct proto *proto = f->proto;
	int fd = dblp_socket(addr, proto->protocol);

	errno = fd < 0 ? -fd : 0;
	if (proto->protocol)
		check_family(errno);
	if (errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT ||
	    errno == ESOCKTNOSUPPORT)
		lacking("this kernel has no %s", proto->name);
	if (errno)
		fail("%s: socket()", proto->name);
	if (proto->setup)
		proto->setup(fd);
	if (f->cc)
		set_cc(fd, proto, f->cc);
	set_buffers(fd, proto);
	return fd;
}

int conn_listener(const struct flavour *flavour, unsigned int port)
{
	const struct sockaddr_dblp addr = make_addr(port);
	int fd = open_socket(flavour, &addr);

	check_family(-dblp_listen(fd, &addr));
	if (errno)
		fail("%s: listening on %s, port %u", flavour->proto->name,
		     cfg.address, port);
	return fd;
}

void conn_accept(struct conn *c, int fd, const struct flavour *flavour)
{
	struct hello hello, wanted;
	ssize_t n;

	memset(c, 0, sizeof(*c));
	c->proto = flavour->proto;
	c->fd = dblp_accept(fd);
	errno = -c->fd;
	if (c->fd < 0)
		fail("%s: accept()", c->proto->name);
	n = dblp_recv_all(c->fd, &hello, sizeof(hello));
	errno = n < 0 ? -n : 0;
	if (n != sizeof(hello))
		fail("%s: a connection ended before its first message", c->proto->name);
	c->index = be32toh(hello.index);
	make_hello(&wanted, c->index);
	if (memcmp(&hello, &wanted, sizeof(hello)) ||
	    c->index >= total_connections())
		fail("the options of the two ends differ: give both the same");
}

/* In mode share the second half of the indexes belongs to the other side. */
static void accept_some(struct conn *all, const struct flavour *flavour, int fd,
			unsigned int n)
{
	struct conn c;

	while (n--) {
		conn_accept(&c, fd, flavour);
		errno = 0;
		if (all[c.index].proto)
			fail("two connections have the number %u", c.index);
		all[c.index] = c;
	}
	close(fd);
}

struct conn *conn_accept_all(void)
{
	unsigned int n = total_connections();
	struct conn *all = xcalloc(n, sizeof(*all));
	bool shared = cfg.other.proto;
	int fd[2];

	fd[0] = conn_listener(&cfg.main, cfg.port);
	if (shared)
		fd[1] = conn_listener(&cfg.other, cfg.port + 1);
	listening();
	accept_some(all, &cfg.main, fd[0], shared ? n / 2 : n);
	if (shared)
		accept_some(all, &cfg.other, fd[1], n / 2);
	return all;
}

void conn_connect(struct conn *c, const struct flavour *flavour,
		  unsigned int port, unsigned int index)
{
	const struct sockaddr_dblp addr = make_addr(port);
	struct hello hello;

	memset(c, 0, sizeof(*c));
	c->proto = flavour->proto;
	c->index = index;
	c->fd = open_socket(flavour, &addr);
	check_family(-dblp_connect(c->fd, &addr, -1));
	if (errno)
		fail("%s: connecting to %s, port %u", c->proto->name,
		     cfg.address, port);
	make_hello(&hello, index);
	conn_send(c, &hello, sizeof(hello));
	if (c->proto->sender)
		c->proto->sender(c->fd);
}

void conn_finish(struct conn *c)
{
	ssize_t n;
	char byte;

	/* SCTP has no half-close: the peer may have closed both directions. */
	if (shutdown(c->fd, SHUT_WR) && errno != ENOTCONN)
		fail("%s: shutdown()", c->proto->name);
	do {
		n = recv(c->fd, &byte, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ENOTCONN)
		fail("%s: connection %u", c->proto->name, c->index);
	close(c->fd);
	dblp_msg_free(&c->msg);
}

void conn_send(struct conn *c, const void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t part = len - done;
		ssize_t n;

		if (part > c->proto->most)
			part = c->proto->most;
		n = send(c->fd, (const char *)buf + done, part, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("%s: sending %zu bytes on connection %u",
			     c->proto->name, part, c->index);
		done += n;
	}
}

enum received conn_take(struct conn *c, void *buf, uint32_t len, bool wait)
{
	const int flags = wait ? MSG_WAITALL : MSG_DONTWAIT;

	do {
		ssize_t n = c->proto->recv(c, (char *)buf + c->got,
					   len - c->got, flags);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !wait)
			return RECEIVED_PART;
		if (n < 0)
			fail("%s: receiving on connection %u", c->proto->name,
			     c->index);
		errno = 0;
		if (!n && c->got)
			fail("%s: connection %u ended within a message",
			     c->proto->name, c->index);
		if (!n)
			return RECEIVED_END;
		c->got += n;
	} while (wait && c->got < len);
	if (c->got < len)
		return RECEIVED_PART;
	c->got = 0;
	c->received++;
	return RECEIVED_MESSAGE;
}

void conn_expect(struct conn *c, void *buf, uint32_t len)
{
	if (conn_take(c, buf, len, true) == RECEIVED_END)
		fail("%s: connection %u ended before a message", c->proto->name, c->index);
}

void conn_signal(struct conn *c)
{
	const char byte = 'g';

	conn_send(c, &byte, sizeof(byte));
}

bool conn_await(struct conn *c)
{
	ssize_t n;
	char byte;

	do {
		n = recv(c->fd, &byte, 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		fail("%s: connection %u", c->proto->name, c->index);
	return n;
}

void conn_note_cc(const struct conn *c, unsigned int side)
{
	char *name = results->cc[side];
	socklen_t len = sizeof(results->cc[side]) - 1;

	if (!c->proto->cc_level)
		len = 0;
	else if (getsockopt(c->fd, c->proto->cc_level, c->proto->cc_option,
			    name, &len))
		fail("reading the congestion control");
	name[len] = 0;
}
