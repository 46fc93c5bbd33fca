// SPDX-License-Identifier: GPL-2.0-only
/*
 * The socket interface: what each call does, and what bad input gets: the
 * precise errno, at once, with nothing changed.
 */
#define _GNU_SOURCE
#include "lib/testlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"

/* What a call gives, -errno if it fails */
#define RESULT(call) ({ \
	long __ret = (errno = 0, (call)); \
	__ret == -1 ? -(long)errno : __ret; \
})

#define EXPECT_ERR(err, call)	EXPECT_EQ(-(err), RESULT(call))

#define SECONDS		1000
#define SHORT_MS	100
/* The kernel counts ticks, and a busy host makes up for late ones at once */
#define EARLY_MS	40

_Static_assert(sizeof(struct sockaddr_dblp) == 28, "sockaddr_dblp");
_Static_assert(offsetof(struct sockaddr_dblp, sdblp_addr) == 8, "sdblp_addr");
_Static_assert(offsetof(struct sockaddr_dblp, sdblp_scope_id) == 24, "scope");
_Static_assert(sizeof(struct dblp_sndinfo) == 32, "dblp_sndinfo");
_Static_assert(sizeof(struct dblp_rcvinfo) == 32, "dblp_rcvinfo");
_Static_assert(sizeof(struct dblp_range) == 8, "dblp_range");
_Static_assert(sizeof(struct dblp_lossmap) == 16, "dblp_lossmap");
_Static_assert(sizeof(struct dblp_info) == 56 + 17 * 8 + 8 + 6 * 8, "dblp_info");
_Static_assert(offsetof(struct dblp_info, pacing_rate) == 56, "dblp_info");

static int new_socket(void)
{
	int fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket(AF_DBLP)");
	return fd;
}

static int bind_to(int fd, const struct sockaddr_dblp *a)
{
	return bind(fd, (const struct sockaddr *)a, sizeof(*a));
}

static int connect_to(int fd, const struct sockaddr_dblp *a)
{
	return connect(fd, (const struct sockaddr *)a, sizeof(*a));
}

/* A listener at @text, and the address to connect to in @a */
static int new_listener(const char *text, int backlog, struct sockaddr_dblp *a)
{
	socklen_t len = sizeof(*a);
	int fd = new_socket();

	addr_parse(a, text, 0);
	if (bind_to(fd, a) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)a, &len))
		die("listening on %s", text);
	return fd;
}

static void set_u32(int fd, int opt, uint32_t value)
{
	if (setsockopt(fd, SOL_DBLP, opt, &value, sizeof(value)))
		die("setsockopt(%d, %u)", opt, value);
}

static uint32_t get_u32(int fd, int opt)
{
	uint32_t value = 0xdeadbeef;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, SOL_DBLP, opt, &value, &len))
		die("getsockopt(%d)", opt);
	errno = 0;
	if (len != sizeof(value))
		die("getsockopt(%d) gave %u bytes", opt, len);
	return value;
}

static struct dblp_info get_info(int fd)
{
	struct dblp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	return info;
}

static void set_timeout(int fd, int opt, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, opt, &tv, sizeof(tv)))
		die("setsockopt(timeout)");
}

static int get_int_ioctl(int fd, int request)
{
	int value = -1;

	if (ioctl(fd, request, &value))
		die("ioctl(%#x)", request);
	return value;
}

static short poll_now(int fd)
{
	struct pollfd p = {
		.fd = fd,
		.events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI,
	};

	if (poll(&p, 1, 0) < 0)
		die("poll()");
	return p.revents;
}

/* @len bytes of memory with none behind them */
static void *edge_of_memory(size_t len)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + 4096, 4096, PROT_NONE))
		die("mmap()");
	return p + 4096 - len;
}

/* One namespace and an address of the loopback interface for each test */
FIXTURE(sock) {
	struct sockaddr_dblp addr;
	int fd;
};

FIXTURE_VARIANT(sock) {
	const char *address;
};

FIXTURE_VARIANT_ADD(sock, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(sock, ipv6) { .address = "::1" };

FIXTURE_SETUP(sock)
{
	netns_new();
	addr_parse(&self->addr, variant->address, 0);
	self->fd = new_socket();
}

FIXTURE_TEARDOWN(sock)
{
	close(self->fd);
}

/* A connection */
FIXTURE(conn) {
	struct sockaddr_dblp addr;
	int listener;
	int client;
	int server;
};

FIXTURE_VARIANT(conn) {
	const char *address;
};

FIXTURE_VARIANT_ADD(conn, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(conn, ipv6) { .address = "::1" };

FIXTURE_SETUP(conn)
{
	netns_new();
	self->listener = new_listener(variant->address, 4, &self->addr);
	self->client = new_socket();
	ASSERT_EQ(0, connect_to(self->client, &self->addr));
	self->server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, self->server);
}

FIXTURE_TEARDOWN(conn)
{
	close(self->server);
	close(self->client);
	close(self->listener);
}

TEST(types_and_protocols_of_socket)
{
	static const int types[] = {
		SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_DCCP,
	};
	int fd, sv[2];
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		EXPECT_ERR(ESOCKTNOSUPPORT, socket(AF_DBLP, types[i], 0));
	EXPECT_ERR(EPROTONOSUPPORT, socket(AF_DBLP, SOCK_SEQPACKET, 1));
	EXPECT_ERR(EPROTONOSUPPORT,
		   socket(AF_DBLP, SOCK_SEQPACKET, IPPROTO_UDP));
	EXPECT_ERR(EOPNOTSUPP, socketpair(AF_DBLP, SOCK_SEQPACKET, 0, sv));

	fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
}

TEST(socket_tells_what_it_is)
{
	socklen_t len = sizeof(int);
	int fd = new_socket(), value;

	EXPECT_EQ(0, getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len));
	EXPECT_EQ(AF_DBLP, value);
	EXPECT_EQ(0, getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	EXPECT_EQ(SOCK_SEQPACKET, value);
	EXPECT_EQ(0, getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len));
	EXPECT_EQ(0, value);
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(fd).state);
	EXPECT_NE(0, get_info(fd).id);
	close(fd);
}

/* bind() and connect() look at an address in the same way */
static void refuse_addresses(struct __test_metadata *_metadata, int fd,
			     const struct sockaddr_dblp *good,
			     int (*call)(int, const struct sockaddr *,
					 socklen_t))
{
	char longer[sizeof(*good) + 4] = { };
	struct sockaddr_dblp a = *good;
	bool v4 = good->sdblp_addr.s6_addr[10] == 0xff;
	socklen_t len;

	for (len = 0; len < sizeof(a); len++)
		EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, len));
	memcpy(longer, &a, sizeof(a));
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)longer, sizeof(a) + 1));
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)longer, sizeof(a) + 4));

	a.sdblp_family = AF_INET6;
	EXPECT_ERR(EAFNOSUPPORT, call(fd, (struct sockaddr *)&a, sizeof(a)));
	a.sdblp_family = AF_INET;
	EXPECT_ERR(EAFNOSUPPORT, call(fd, (struct sockaddr *)&a, sizeof(a)));

	a = *good;
	a.sdblp_flowinfo = htonl(v4 ? 1 : 0x00100000);
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));
	a.sdblp_flowinfo = htonl(0x80000000);
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));

	/* Neither ::1 nor an IPv4 address is of one link alone. */
	a = *good;
	a.sdblp_scope_id = 1;
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));

	/* ... and a link-local one is nothing without its link. */
	addr_parse(&a, "fe80::1", 5000);
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));

	EXPECT_ERR(EFAULT, call(fd, (struct sockaddr *)8, sizeof(a)));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(fd).state);
}

TEST_F(sock, bind_refuses_bad_addresses)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);

	refuse_addresses(_metadata, self->fd, &self->addr, bind);
	addr_parse(&a, variant->address[0] == ':' ? "2001:db8::1" : "192.0.2.1",
		   0);
	EXPECT_ERR(EADDRNOTAVAIL, bind_to(self->fd, &a));
	addr_parse(&a, variant->address[0] == ':' ? "ff05::1" : "224.0.0.1", 0);
	EXPECT_ERR(EADDRNOTAVAIL, bind_to(self->fd, &a));

	/* None of it has bound the socket. */
	EXPECT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_EQ(0, a.sdblp_port);
	EXPECT_EQ(0, bind_to(self->fd, &self->addr));
}

TEST_F(sock, connect_refuses_bad_addresses)
{
	struct sockaddr_dblp a = self->addr;

	a.sdblp_port = htons(5000);
	refuse_addresses(_metadata, self->fd, &a, connect);
	a.sdblp_port = 0;
	EXPECT_ERR(EADDRNOTAVAIL, connect_to(self->fd, &a));
	addr_parse(&a, variant->address[0] == ':' ? "::" : "0.0.0.0", 5000);
	EXPECT_ERR(EADDRNOTAVAIL, connect_to(self->fd, &a));
	addr_parse(&a, variant->address[0] == ':' ? "ff05::1" : "224.0.0.1",
		   5000);
	EXPECT_ERR(EADDRNOTAVAIL, connect_to(self->fd, &a));
	addr_parse(&a, variant->address[0] == ':' ? "2001:db8::1" : "192.0.2.1",
		   5000);
	EXPECT_ERR(ENETUNREACH, connect_to(self->fd, &a));
}

TEST_F(sock, connect_refuses_the_other_protocol)
{
	struct sockaddr_dblp a;

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	addr_parse(&a, variant->address[0] == ':' ? "127.0.0.1" : "::1", 5000);
	EXPECT_ERR(EAFNOSUPPORT, connect_to(self->fd, &a));
}

TEST_F(sock, bind_twice)
{
	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	EXPECT_ERR(EINVAL, bind_to(self->fd, &self->addr));
}

TEST_F(sock, a_port_has_one_owner)
{
	struct sockaddr_dblp a, b;
	socklen_t len = sizeof(a);
	int other = new_socket();

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	ASSERT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_NE(0, a.sdblp_port);
	EXPECT_ERR(EADDRINUSE, bind_to(other, &a));
	addr_parse(&b, "::", ntohs(a.sdblp_port));
	EXPECT_ERR(EADDRINUSE, bind_to(other, &b));
	ASSERT_EQ(0, listen(self->fd, 1));
	EXPECT_ERR(EADDRINUSE, bind_to(other, &a));

	/* Once it is closed, the port is free, at once. */
	close(self->fd);
	EXPECT_EQ(0, bind_to(other, &a));
	EXPECT_EQ(0, listen(other, 1));
	self->fd = other;
}

TEST_F(sock, a_udp_socket_and_we_share_no_port)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(sin6);
	struct sockaddr_dblp a;
	int udp = socket(AF_INET6, SOCK_DGRAM, 0);

	ASSERT_EQ(0, bind(udp, (struct sockaddr *)&sin6, sizeof(sin6)));
	ASSERT_EQ(0, getsockname(udp, (struct sockaddr *)&sin6, &len));
	a = self->addr;
	a.sdblp_port = sin6.sin6_port;
	EXPECT_ERR(EADDRINUSE, bind_to(self->fd, &a));
	close(udp);
}

TEST_F(sock, names_of_an_unconnected_socket)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);

	EXPECT_ERR(ENOTCONN,
		   getpeername(self->fd, (struct sockaddr *)&a, &len));
	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	len = sizeof(a);
	ASSERT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(AF_DBLP, a.sdblp_family);
	EXPECT_EQ(0, memcmp(&a.sdblp_addr, &self->addr.sdblp_addr, 16));
	EXPECT_EQ(0, a.sdblp_flowinfo);
	EXPECT_EQ(0, a.sdblp_scope_id);

	/* A short buffer gets what fits, and is told what there is. */
	memset(&a, 0x55, sizeof(a));
	len = 2;
	EXPECT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(AF_DBLP, a.sdblp_family);
	EXPECT_EQ(0x5555, a.sdblp_port);
}

TEST_F(sock, the_wildcard_listener_takes_both_protocols)
{
	static const char *const addresses[] = { "127.0.0.1", "::1" };
	struct sockaddr_dblp any, a;
	int listener = new_listener("::", 4, &any), client, server;
	socklen_t len;
	size_t i;

	for (i = 0; i < 2; i++) {
		client = new_socket();
		addr_parse(&a, addresses[i], ntohs(any.sdblp_port));
		ASSERT_EQ(0, connect_to(client, &a));
		len = sizeof(any);
		server = accept(listener, (struct sockaddr *)&any, &len);
		ASSERT_LE(0, server);
		EXPECT_EQ(sizeof(any), len);
		EXPECT_EQ(0, memcmp(&any.sdblp_addr, &a.sdblp_addr, 16));
		len = sizeof(any);
		EXPECT_EQ(0, getsockname(server, (struct sockaddr *)&any, &len));
		EXPECT_EQ(0, memcmp(&any, &a, sizeof(a)));
		EXPECT_EQ(3, send(client, "abc", 3, 0));
		EXPECT_EQ(3, recv(server, &any, sizeof(any), 0));
		EXPECT_EQ(0, memcmp(&any, "abc", 3));
		any.sdblp_port = a.sdblp_port;
		close(client);
		close(server);
	}
	close(listener);
}

TEST_F(sock, calls_in_the_wrong_state)
{
	struct sockaddr_dblp a = self->addr;
	char buf[8];

	EXPECT_ERR(EINVAL, accept(self->fd, NULL, NULL));
	EXPECT_ERR(ENOTCONN, send(self->fd, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERR(ENOTCONN, recv(self->fd, buf, sizeof(buf), 0));
	EXPECT_ERR(ENOTCONN, shutdown(self->fd, SHUT_RDWR));

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	EXPECT_ERR(EINVAL, accept(self->fd, NULL, NULL));
	ASSERT_EQ(0, listen(self->fd, 1));
	EXPECT_EQ(DBLP_STATE_LISTEN, get_info(self->fd).state);
	EXPECT_EQ(0, listen(self->fd, 2));
	EXPECT_ERR(ENOTCONN, send(self->fd, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERR(ENOTCONN, recv(self->fd, buf, sizeof(buf), 0));
	a.sdblp_port = htons(5000);
	EXPECT_ERR(EISCONN, connect_to(self->fd, &a));
	EXPECT_ERR(EINVAL, bind_to(self->fd, &self->addr));
}

TEST_F(sock, listen_without_bind_finds_a_port)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);

	ASSERT_EQ(0, listen(self->fd, 1));
	ASSERT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_NE(0, a.sdblp_port);
}

TEST_F(sock, accept_without_waiting)
{
	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	ASSERT_EQ(0, listen(self->fd, 1));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EAGAIN, accept(self->fd, NULL, NULL));
	EXPECT_EQ(0, poll_now(self->fd));
}

TEST_F(sock, accept_gives_up_in_time)
{
	uint64_t start = now_ms();

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	ASSERT_EQ(0, listen(self->fd, 1));
	set_timeout(self->fd, SO_RCVTIMEO, SHORT_MS);
	EXPECT_ERR(EAGAIN, accept(self->fd, NULL, NULL));
	EXPECT_LE(SHORT_MS - EARLY_MS, now_ms() - start);
}

TEST_F(sock, nobody_listens)
{
	struct sockaddr_dblp a = self->addr;
	socklen_t len = sizeof(a);
	int listener;

	a.sdblp_port = htons(5000);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(self->fd).state);
	EXPECT_ERR(ENOTCONN, getpeername(self->fd, (struct sockaddr *)&a,
					 &len));

	/* The socket can try again, and another time somebody is there. */
	a.sdblp_port = htons(5000);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	listener = new_listener(variant->address, 1, &a);
	EXPECT_EQ(0, connect_to(self->fd, &a));
	EXPECT_EQ(1, send(self->fd, "x", 1, 0));
	close(listener);
}

TEST_F(sock, one_who_is_bound_but_does_not_listen_refuses)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);
	int other = new_socket();

	ASSERT_EQ(0, bind_to(other, &self->addr));
	ASSERT_EQ(0, getsockname(other, (struct sockaddr *)&a, &len));
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	close(other);
}

TEST_F(sock, connecting_without_waiting)
{
	int listener = new_listener(variant->address, 1, &self->addr), err = -1;
	socklen_t len = sizeof(err);

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, 10 * SECONDS));
	EXPECT_EQ(0, getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT_EQ(0, err);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
	EXPECT_EQ(0, connect_to(self->fd, &self->addr));
	EXPECT_ERR(EISCONN, connect_to(self->fd, &self->addr));
	EXPECT_TRUE(wait_for(listener, POLLIN, 10 * SECONDS));
	close(listener);
}

TEST_F(sock, connecting_without_waiting_to_nobody)
{
	int err = -1;
	socklen_t len = sizeof(err);

	self->addr.sdblp_port = htons(5000);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_TRUE(wait_for(self->fd, POLLERR | POLLHUP, 10 * SECONDS));
	EXPECT_EQ(0, getsockopt(self->fd, SOL_SOCKET, SO_ERROR, &err, &len));
	EXPECT_EQ(ECONNREFUSED, err);
}

/* A UDP socket that answers nothing stands for a silent peer. */
static int silent_peer(const char *text, struct sockaddr_dblp *a)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(sin6);
	int udp = socket(AF_INET6, SOCK_DGRAM, 0);

	if (bind(udp, (struct sockaddr *)&sin6, sizeof(sin6)) ||
	    getsockname(udp, (struct sockaddr *)&sin6, &len))
		die("UDP socket");
	addr_parse(a, text, ntohs(sin6.sin6_port));
	return udp;
}

TEST_F(sock, connecting_twice_at_once)
{
	int udp = silent_peer(variant->address, &self->addr);

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_ERR(EALREADY, connect_to(self->fd, &self->addr));
	EXPECT_EQ(DBLP_STATE_INIT_SENT, get_info(self->fd).state);
	EXPECT_ERR(EAGAIN, send(self->fd, "x", 1, MSG_NOSIGNAL));
	close(udp);
}

TEST_F(sock, connecting_gives_up_after_the_send_timeout)
{
	int udp = silent_peer(variant->address, &self->addr);
	uint64_t start = now_ms();

	set_timeout(self->fd, SO_SNDTIMEO, SHORT_MS);
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_LE(SHORT_MS - EARLY_MS, now_ms() - start);
	close(udp);
}

TEST_F(sock, connecting_gives_up_after_the_user_timeout)
{
	int udp = silent_peer(variant->address, &self->addr);
	uint64_t start = now_ms();

	set_u32(self->fd, DBLP_USER_TIMEOUT, 3 * SHORT_MS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &self->addr));
	EXPECT_LE(3 * SHORT_MS - EARLY_MS, now_ms() - start);
	close(udp);
}

TEST_F(sock, a_full_backlog_lets_nobody_in)
{
	int listener = new_listener(variant->address, 1, &self->addr), i, n = 0;
	int fd[6];

	for (i = 0; i < 6; i++) {
		fd[i] = new_socket();
		set_u32(fd[i], DBLP_USER_TIMEOUT, 10 * SHORT_MS);
		fcntl(fd[i], F_SETFL, O_NONBLOCK);
		connect_to(fd[i], &self->addr);
	}
	for (i = 0; i < 6; i++)
		wait_for(fd[i], POLLOUT, 20 * SECONDS);
	for (i = 0; i < 6; i++)
		n += get_info(fd[i]).state == DBLP_STATE_ESTABLISHED;
	EXPECT_LE(1, n);
	EXPECT_GE(2, n);

	/* What was let in is what accept() gives. */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (i = 0; accept(listener, NULL, NULL) >= 0; i++)
		;
	EXPECT_EQ(n, i);
	close(listener);
}

struct option {
	const char *name;
	int opt;
	uint32_t min;
	uint32_t max;
	uint32_t initial;
	bool of_phase;
};

static const struct option options[] = {
	{ "budget", DBLP_BUDGET, 0, DBLP_PPM, 0, true },
	{ "budget cap", DBLP_BUDGET_CAP, 0, DBLP_PPM, DBLP_PPM, false },
	{ "policy", DBLP_CLOSE_POLICY, 0, 2, DBLP_POLICY_EAGER,
	  true },
	{ "deadline", DBLP_DEADLINE, 0, 3600000000, 0, false },
	{ "order", DBLP_ORDER, 0, 2, DBLP_ORDER_AUTO, true },
	{ "element", DBLP_ELEMENT, 1, 256, 8, false },
	{ "fill", DBLP_FILL, 0, 1, DBLP_FILL_ZERO, true },
	{ "notify", DBLP_NOTIFY, 0, 1, 0, false },
	{ "user timeout", DBLP_USER_TIMEOUT, 1, 3600000, 30000, false },
	{ "tos", DBLP_TOS, 0, 0xfc, 0, false },
};

static void try_option(struct __test_metadata *_metadata, int fd,
		       const struct option *o)
{
	uint32_t value[2] = { o->max, 0 };
	socklen_t len;

	EXPECT_EQ(o->initial, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	set_u32(fd, o->opt, o->min);
	EXPECT_EQ(o->min, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	set_u32(fd, o->opt, o->max);
	EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);

	/* Refused, and unchanged */
	for (len = 0; len < sizeof(value[0]); len++)
		EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, len));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 8));
	EXPECT_ERR(EFAULT, setsockopt(fd, SOL_DBLP, o->opt, (void *)8, 4));
	value[0] = o->max + 1;
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
	value[0] = o->min - 2;
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
	EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	value[0] = o->min - 1;
	if (o->of_phase) {
		EXPECT_EQ(DBLP_INHERIT, value[0]);
		set_u32(fd, o->opt, value[0]);
		EXPECT_EQ(o->initial, get_u32(fd, o->opt))
			TH_LOG("%s", o->name);
	} else {
		EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, o->opt, value, 4));
		EXPECT_EQ(o->max, get_u32(fd, o->opt)) TH_LOG("%s", o->name);
	}

	for (len = 0; len < sizeof(value[0]); len++) {
		socklen_t l = len;

		EXPECT_ERR(EINVAL, getsockopt(fd, SOL_DBLP, o->opt, value, &l));
	}
	len = 4;
	EXPECT_ERR(EFAULT, getsockopt(fd, SOL_DBLP, o->opt, (void *)8, &len));
	len = 8;
	EXPECT_EQ(0, getsockopt(fd, SOL_DBLP, o->opt, value, &len));
	EXPECT_EQ(4, len);
}

TEST(every_option)
{
	int fd = new_socket();
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		try_option(_metadata, fd, &options[i]);
	close(fd);
}

TEST(unknown_options)
{
	static const int unknown[] = { 0, -1, 200, 1000 };
	static const int levels[] = {
		SOL_IP, SOL_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_DBLP + 1,
	};
	uint32_t value = 1;
	int fd = new_socket();
	socklen_t len;
	size_t i;

	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		len = sizeof(value);
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, SOL_DBLP, unknown[i],
						   &value, len));
		EXPECT_ERR(ENOPROTOOPT, getsockopt(fd, SOL_DBLP, unknown[i],
						   &value, &len));
	}
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		len = sizeof(value);
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, levels[i], DBLP_BUDGET,
						   &value, len));
		EXPECT_ERR(ENOPROTOOPT, getsockopt(fd, levels[i], DBLP_BUDGET,
						   &value, &len));
	}
	/* These can be read but not set. */
	for (i = DBLP_INFO; i <= DBLP_SENT_LOSSMAP; i++)
		EXPECT_ERR(ENOPROTOOPT, setsockopt(fd, SOL_DBLP, i, &value,
						   sizeof(value)));
	EXPECT_EQ(0, get_u32(fd, DBLP_BUDGET));
	close(fd);
}

TEST(congestion_controls)
{
	char name[64] = "", first[64];
	int fd = new_socket();
	socklen_t len = sizeof(name);

	ASSERT_EQ(0, getsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name, &len));
	EXPECT_GE(DBLP_CC_NAME_MAX, len);
	EXPECT_LT(1, strnlen(name, sizeof(name)));
	strcpy(first, name);
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, first,
				strlen(first)));
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, first,
				strlen(first) + 1));
	EXPECT_ERR(ENOENT, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, "nosuch",
				      7));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, "", 0));
	memset(name, 'x', sizeof(name));
	EXPECT_ERR(EINVAL, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name,
				      sizeof(name)));
	memset(name, 0, sizeof(name));
	len = sizeof(name);
	EXPECT_EQ(0, getsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name, &len));
	EXPECT_STREQ(first, name);
	close(fd);
}

/* With messages in flight, there and back: what is in flight is not lost */
TEST_F(conn, congestion_control_changes_amid_a_connection)
{
	static const char *const names[] = { "swift", "bdp" };
	static char buf[100000], got[sizeof(buf)];
	char name[DBLP_CC_NAME_MAX] = "";
	socklen_t len;
	int i, k;

	for (i = 0; i < 8; i++) {
		memset(buf, 'a' + i, sizeof(buf));
		for (k = 0; k < 4; k++)
			ASSERT_EQ(sizeof(buf), send(self->client, buf,
						    sizeof(buf), 0));
		ASSERT_EQ(0, setsockopt(self->client, SOL_DBLP, DBLP_CONGESTION,
					names[i % 2], strlen(names[i % 2])));
		len = sizeof(name);
		ASSERT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_CONGESTION,
					name, &len));
		EXPECT_STREQ(names[i % 2], name);
		for (k = 0; k < 4; k++) {
			ASSERT_EQ(sizeof(got), recv(self->server, got,
						    sizeof(got), 0));
			EXPECT_EQ(0, memcmp(buf, got, sizeof(got)));
		}
	}
}

TEST_F(conn, options_are_inherited_from_the_listener)
{
	int client = new_socket(), server;

	set_u32(self->listener, DBLP_BUDGET, 12345);
	set_u32(self->listener, DBLP_BUDGET_CAP, 54321);
	set_u32(self->listener, DBLP_FILL, DBLP_FILL_KEEP);
	set_u32(self->listener, DBLP_ELEMENT, 24);
	set_u32(self->listener, DBLP_NOTIFY, 1);
	set_u32(self->listener, DBLP_USER_TIMEOUT, 7777);
	set_u32(self->listener, DBLP_TOS, 0x28);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_EQ(12345, get_u32(server, DBLP_BUDGET));
	EXPECT_EQ(54321, get_u32(server, DBLP_BUDGET_CAP));
	EXPECT_EQ(DBLP_FILL_KEEP, get_u32(server, DBLP_FILL));
	EXPECT_EQ(24, get_u32(server, DBLP_ELEMENT));
	EXPECT_EQ(1, get_u32(server, DBLP_NOTIFY));
	EXPECT_EQ(7777, get_u32(server, DBLP_USER_TIMEOUT));
	EXPECT_EQ(0x28, get_u32(server, DBLP_TOS));
	/* The cap is known to the client from the first message on. */
	EXPECT_EQ(54321, get_info(client).peer_budget_cap);
	close(client);
	close(server);
}

TEST_F(conn, names)
{
	struct sockaddr_dblp client, server, a;
	socklen_t len = sizeof(a);

	EXPECT_EQ(0, getsockname(self->client, (struct sockaddr *)&client,
				 &len));
	EXPECT_EQ(0, getsockname(self->server, (struct sockaddr *)&server,
				 &len));
	EXPECT_EQ(0, memcmp(&server, &self->addr, sizeof(server)));
	EXPECT_EQ(0, memcmp(&client.sdblp_addr, &self->addr.sdblp_addr, 16));
	EXPECT_NE(0, client.sdblp_port);
	EXPECT_EQ(0, getpeername(self->client, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(0, memcmp(&a, &server, sizeof(a)));
	EXPECT_EQ(0, getpeername(self->server, (struct sockaddr *)&a, &len));
	EXPECT_EQ(0, memcmp(&a, &client, sizeof(a)));
}

TEST_F(conn, calls_in_the_wrong_state)
{
	EXPECT_ERR(EISCONN, connect_to(self->client, &self->addr));
	EXPECT_ERR(EISCONN, connect_to(self->server, &self->addr));
	EXPECT_ERR(EINVAL, listen(self->client, 1));
	EXPECT_ERR(EINVAL, bind_to(self->client, &self->addr));
	EXPECT_ERR(EINVAL, accept(self->client, NULL, NULL));
	EXPECT_ERR(EISCONN, sendto(self->client, "x", 1, 0,
				   (struct sockaddr *)&self->addr,
				   sizeof(self->addr)));
	EXPECT_ERR(EINVAL, shutdown(self->client, 3));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->client).state);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->server).state);
}

TEST_F(conn, messages_have_boundaries)
{
	char buf[16];

	EXPECT_EQ(3, send(self->client, "one", 3, 0));
	EXPECT_EQ(5, send(self->client, "three", 5, 0));
	EXPECT_EQ(3, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(5, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, memcmp(buf, "three", 5));
	EXPECT_ERR(EAGAIN, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
}

TEST_F(conn, scatter_and_gather)
{
	char a[3] = "abc", b[5] = "defgh", x[1], y[7];
	struct iovec out[] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	struct iovec in[] = { { x, 1 }, { y, 7 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 3 };

	EXPECT_EQ(8, sendmsg(self->client, &msg, 0));
	msg = (struct msghdr) { .msg_iov = in, .msg_iovlen = 2 };
	EXPECT_EQ(8, recvmsg(self->server, &msg, 0));
	EXPECT_EQ('a', x[0]);
	EXPECT_EQ(0, memcmp(y, "bcdefgh", 7));
}

TEST_F(conn, rcvinfo)
{
	struct dblp_sndinfo info = {
		.tag = 0x123456789abcdef0, .phase = 2, .critical = 2,
		.flags = DBLP_SND_BUDGET | DBLP_SND_PHASE, .budget = 1000,
	};
	struct message m;
	char buf[16];

	ASSERT_EQ(4, sndinfo_send(self->client, "text", 4, 0, &info));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(info.tag, m.info.tag);
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(4, m.info.length);
	EXPECT_EQ(0, m.info.missing);
	EXPECT_EQ(0, m.info.ranges);
	EXPECT_EQ(1000, m.info.budget);
	EXPECT_EQ(2, m.info.phase);
	EXPECT_EQ(DBLP_REASON_COMPLETE, m.info.reason);
	EXPECT_EQ(0, m.n);
	ASSERT_EQ(4, send(self->client, "more", 4, 0));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(1, m.info.msg_id);
	EXPECT_EQ(0, m.info.tag);
	EXPECT_EQ(0, m.info.budget);
	EXPECT_EQ(0, m.info.phase);
}

TEST_F(conn, bad_control_messages)
{
	static const struct dblp_sndinfo bad[] = {
		{ .flags = DBLP_SND_BUDGET, .budget = DBLP_PPM + 1 },
		{ .flags = DBLP_SND_BUDGET, .budget = UINT32_MAX },
		{ .flags = 1U << 5 },
		{ .flags = 1U << 31 },
		{ .flags = DBLP_SND_POLICY, .policy = 3 },
		{ .phase = 1 },
		{ .flags = DBLP_SND_PHASE, .phase = DBLP_PHASES },
		{ .flags = DBLP_SND_PHASE, .phase = 255 },
		{ .deadline = 1 },
		{ .flags = DBLP_SND_DEADLINE, .deadline = 3600000001 },
		{ .reserved = { 1 } },
		{ .reserved = { 0, 0, 0, 0, 0, 1 } },
		{ .critical = 5 },
	};
	char control[64] __attribute__((aligned(8))), buf[16];
	struct iovec iov = { "text", 4 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
	};
	struct cmsghdr *c = (struct cmsghdr *)control;
	int type;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_ERR(EINVAL, sndinfo_send(self->client, "text", 4, 0,
						&bad[i])) {
			TH_LOG("case %zu", i);
		}
	for (i = 0; i <= sizeof(bad[0]) + 8; i += 4) {
		if (i == sizeof(bad[0]))
			continue;
		memset(control, 0, sizeof(control));
		c->cmsg_level = SOL_DBLP;
		c->cmsg_type = DBLP_SNDINFO;
		c->cmsg_len = CMSG_LEN(i);
		msg.msg_controllen = CMSG_SPACE(i);
		EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));
	}
	memset(control, 0, sizeof(control));
	c->cmsg_level = SOL_DBLP;
	c->cmsg_len = CMSG_LEN(sizeof(bad[0]));
	msg.msg_controllen = CMSG_SPACE(sizeof(bad[0]));
	for (type = 0; type < 8; type++) {
		c->cmsg_type = type;
		if (type != DBLP_SNDINFO)
			EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));
	}
	c->cmsg_type = DBLP_SNDINFO;
	c->cmsg_len = 4;
	EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));

	/* None of it was sent. */
	EXPECT_EQ(2, send(self->client, "ok", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, flags_that_make_no_sense)
{
	char buf[16];

	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_OOB));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_FASTOPEN));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_DONTROUTE));
	EXPECT_EQ(2, send(self->client, "ok", 2, MSG_EOR | MSG_NOSIGNAL));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	EXPECT_ERR(EOPNOTSUPP, recv(self->server, buf, 16, MSG_OOB));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, empty_messages)
{
	EXPECT_ERR(EINVAL, send(self->client, "", 0, 0));
	EXPECT_ERR(EINVAL, write(self->client, "", 0));
}

TEST_F(conn, bad_memory)
{
	char *p = edge_of_memory(100), buf[4096];

	EXPECT_ERR(EFAULT, send(self->client, p, 200, 0));
	EXPECT_EQ(100, send(self->client, p, 100, 0));
	EXPECT_EQ(100, recv(self->server, buf, sizeof(buf), 0));
	memset(buf, 'z', sizeof(buf));
	EXPECT_EQ(200, send(self->client, buf, 200, 0));
	EXPECT_ERR(EFAULT, recv(self->server, p, 200, 0));

	/* The connection has survived it. */
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->server).state);
}

TEST_F(conn, a_message_larger_than_the_peer_takes)
{
	uint32_t max = get_info(self->client).peer_msg_max;
	char *big = mmap(NULL, (size_t)max + 1, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char buf[16];

	ASSERT_NE(MAP_FAILED, (void *)big);
	EXPECT_LE(16 << 20, max);
	EXPECT_ERR(EMSGSIZE, send(self->client, big, (size_t)max + 1, 0));
	EXPECT_ERR(EMSGSIZE, send(self->client, big, (size_t)max + 1,
				  MSG_DONTWAIT));
	EXPECT_EQ(2, send(self->client, "ok", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, the_receive_buffer_limits_the_message)
{
	int client = new_socket(), server, rcvbuf = 100000;
	char *buf = calloc(1, 1 << 20);
	struct dblp_info info;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, setsockopt(self->listener, SOL_SOCKET, SO_RCVBUF, &rcvbuf,
				sizeof(rcvbuf)));
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	info = get_info(client);
	EXPECT_LE(50000, info.peer_msg_max);
	EXPECT_GE(400000, info.peer_msg_max);
	EXPECT_ERR(EMSGSIZE, send(client, buf, info.peer_msg_max + 1, 0));
	EXPECT_EQ(info.peer_msg_max, send(client, buf, info.peer_msg_max, 0));
	EXPECT_EQ(info.peer_msg_max, recv(server, buf, 1 << 20, 0));
	close(client);
	close(server);
}

TEST_F(conn, a_short_buffer)
{
	char buf[16] = "................";
	struct iovec iov = { buf, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	EXPECT_EQ(8, send(self->client, "abcdefgh", 8, 0));
	EXPECT_EQ(4, recvmsg(self->server, &msg, 0));
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(0, memcmp(buf, "abcd....", 8));

	/* With MSG_TRUNC the whole length is told. */
	EXPECT_EQ(8, send(self->client, "abcdefgh", 8, 0));
	EXPECT_EQ(8, recvmsg(self->server, &msg, MSG_TRUNC));
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(0, memcmp(buf, "abcd....", 8));

	/* The rest of a message is gone with it. */
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(1, recvmsg(self->server, &msg, 0));
	EXPECT_FALSE(msg.msg_flags & MSG_TRUNC);
	EXPECT_TRUE(msg.msg_flags & MSG_EOR);
	EXPECT_EQ('x', buf[0]);
}

TEST_F(conn, peeking)
{
	char buf[16];
	struct message m;

	EXPECT_EQ(3, send(self->client, "one", 3, 0));
	EXPECT_EQ(3, send(self->client, "two", 3, 0));
	EXPECT_EQ(3, message_recv(self->server, buf, 16, MSG_PEEK, &m));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(3, recv(self->server, NULL, 0, MSG_PEEK | MSG_TRUNC));
	EXPECT_EQ(3, message_recv(self->server, buf, 16, 0, &m));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(3, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, memcmp(buf, "two", 3));
	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, MSG_PEEK | MSG_DONTWAIT));
}

TEST_F(conn, receiving_without_waiting_and_for_a_while)
{
	uint64_t start;
	char buf[16];

	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, MSG_DONTWAIT));
	set_timeout(self->server, SO_RCVTIMEO, SHORT_MS);
	start = now_ms();
	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, 0));
	EXPECT_LE(SHORT_MS - EARLY_MS, now_ms() - start);
	EXPECT_GE(50 * SHORT_MS, now_ms() - start);
}

/* Messages that nobody reads fill first the peer, then the sender. */
static size_t fill_up(int fd, const char *buf, size_t size)
{
	size_t n = 0;

	while (send(fd, buf, size, MSG_DONTWAIT) == (ssize_t)size)
		n++;
	if (errno != EAGAIN)
		die("send()");
	return n;
}

TEST_F(conn, sending_to_one_who_does_not_read)
{
	int size = 100000, sndbuf = 300000, rcvbuf = 300000, client, server;
	char *buf = calloc(1, size);
	uint64_t start;
	size_t n, i;

	ASSERT_NE(NULL, buf);
	setsockopt(self->listener, SOL_SOCKET, SO_RCVBUF, &rcvbuf, 4);
	client = new_socket();
	ASSERT_EQ(0, setsockopt(client, SOL_SOCKET, SO_SNDBUF, &sndbuf, 4));
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);

	n = fill_up(client, buf, size);
	EXPECT_LT(0, n);
	set_timeout(client, SO_SNDTIMEO, SHORT_MS);
	start = now_ms();
	while (send(client, buf, size, 0) == size)
		n++;
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_LE(SHORT_MS - EARLY_MS, now_ms() - start);
	EXPECT_GE(40, n);
	EXPECT_FALSE(poll_now(client) & POLLOUT);
	EXPECT_LT(0, get_int_ioctl(client, SIOCOUTQ));

	/* Reading makes room again, and nothing was lost by all that. */
	for (i = 0; i < n; i++)
		EXPECT_EQ(size, recv(server, buf, size, 0));
	EXPECT_TRUE(wait_for(client, POLLOUT, 10 * SECONDS));
	EXPECT_ERR(EAGAIN, recv(server, buf, size, MSG_DONTWAIT));
	close(client);
	close(server);
}

TEST_F(conn, queue_lengths)
{
	EXPECT_EQ(0, get_int_ioctl(self->server, SIOCINQ));
	EXPECT_EQ(0, get_int_ioctl(self->client, SIOCOUTQ));
	EXPECT_EQ(5, send(self->client, "12345", 5, 0));
	EXPECT_EQ(3, send(self->client, "123", 3, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	/* Like a datagram socket: the length of the next message */
	EXPECT_EQ(5, get_int_ioctl(self->server, SIOCINQ));
	EXPECT_EQ(0, get_int_ioctl(self->listener, SIOCINQ));
	EXPECT_ERR(EFAULT, ioctl(self->server, SIOCINQ, (void *)8));
	EXPECT_ERR(ENOTTY, ioctl(self->server, SIOCGIFHWADDR + 0x1000,
				 &_metadata->step));
}

TEST_F(conn, poll_states)
{
	char buf[16];

	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(POLLOUT, poll_now(self->server));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->server));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
	EXPECT_EQ(POLLOUT, poll_now(self->server));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_TRUE(wait_for(self->server, POLLRDHUP, 10 * SECONDS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(0, shutdown(self->server, SHUT_WR));
	EXPECT_TRUE(wait_for(self->client, POLLRDHUP, 10 * SECONDS));
}

TEST_F(conn, epoll_tells_each_change_once)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0);
	char buf[16];

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->server, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, 10 * SECONDS));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	EXPECT_EQ(1, send(self->client, "y", 1, 0));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, 10 * SECONDS));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
	close(ep);
}

TEST_F(conn, shutdown_for_writing)
{
	char buf[16];

	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(4, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, recv(self->server, buf, 16, MSG_DONTWAIT));

	/* The other direction lives on. */
	EXPECT_EQ(4, send(self->server, "back", 4, 0));
	EXPECT_EQ(4, recv(self->client, buf, 16, 0));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(0, shutdown(self->server, SHUT_WR));
	EXPECT_EQ(0, recv(self->client, buf, 16, 0));
}

TEST_F(conn, shutdown_for_reading)
{
	char buf[16];

	EXPECT_EQ(0, shutdown(self->server, SHUT_RD));
	EXPECT_EQ(0, recv(self->server, buf, 16, 0));
	EXPECT_EQ(3, send(self->server, "out", 3, 0));
	EXPECT_EQ(3, recv(self->client, buf, 16, 0));
}

TEST_F_SIGNAL(conn, writing_after_shutdown_raises_sigpipe, SIGPIPE)
{
	shutdown(self->client, SHUT_WR);
	send(self->client, "x", 1, 0);
}

TEST_F(conn, closing_sends_everything_first)
{
	int size = 1 << 20, i;
	char *buf = malloc(size);

	ASSERT_NE(NULL, buf);
	for (i = 0; i < 3; i++) {
		pattern_fill(buf, size, 0, 9, i);
		EXPECT_EQ(size, send(self->client, buf, size, 0));
	}
	close(self->client);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(size, recv(self->server, buf, size, 0));
		EXPECT_EQ(-1, pattern_check(buf, size, 0, 9, i));
	}
	EXPECT_EQ(0, recv(self->server, buf, size, 0));
	self->client = -1;
}

TEST_F(conn, closing_before_all_is_read_is_told)
{
	char buf[16];

	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	close(self->server);
	self->server = -1;
	EXPECT_TRUE(wait_for(self->client, POLLHUP | POLLERR, 10 * SECONDS));
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, 16, 0));
	EXPECT_EQ(0, recv(self->client, buf, 16, 0));
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
}

static void *receive_in_thread(void *arg)
{
	char buf[16];
	long ret = recv(*(int *)arg, buf, sizeof(buf), 0);

	return (void *)(ret < 0 ? -errno : ret);
}

static long blocked_recv_ends(int fd, void (*how)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, receive_in_thread, &fd))
		die("pthread_create()");
	usleep(SHORT_MS * 1000);
	how(arg);
	if (pthread_join(thread, &result))
		die("pthread_join()");
	return (long)result;
}

static void shut_reading(void *fd)
{
	shutdown(*(int *)fd, SHUT_RD);
}

static void shut_writing(void *fd)
{
	shutdown(*(int *)fd, SHUT_WR);
}

static void send_x(void *fd)
{
	send(*(int *)fd, "x", 1, 0);
}

TEST_F(conn, a_waiting_reader_is_woken)
{
	EXPECT_EQ(1, blocked_recv_ends(self->server, send_x, &self->client));
	EXPECT_EQ(0, blocked_recv_ends(self->server, shut_writing,
				       &self->client));
	EXPECT_EQ(0, blocked_recv_ends(self->client, shut_reading,
				       &self->client));
}

static void *accept_in_thread(void *arg)
{
	return (void *)(long)(accept(*(int *)arg, NULL, NULL) < 0 ? errno : 0);
}

TEST_F(conn, a_waiting_accept_is_woken_by_shutdown)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, accept_in_thread,
				    &self->listener));
	usleep(SHORT_MS * 1000);
	EXPECT_EQ(0, shutdown(self->listener, SHUT_RDWR));
	pthread_join(thread, &result);
	EXPECT_EQ(EINVAL, (long)result);
}

TEST_F(conn, a_listener_that_closes_leaves_its_children_alone)
{
	char buf[16];

	close(self->listener);
	self->listener = -1;
	EXPECT_EQ(2, send(self->client, "hi", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, 16, 0));
	EXPECT_EQ(2, send(self->server, "ho", 2, 0));
	EXPECT_EQ(2, recv(self->client, buf, 16, 0));
}

TEST_F(conn, connections_that_nobody_accepted_are_reset)
{
	int client = new_socket();
	char buf[16];

	ASSERT_EQ(0, connect_to(client, &self->addr));
	close(self->listener);
	self->listener = -1;
	EXPECT_TRUE(wait_for(client, POLLHUP | POLLERR, 10 * SECONDS));
	EXPECT_ERR(ECONNRESET, recv(client, buf, 16, 0));
	close(client);
}

TEST_F(conn, reports_for_the_sender)
{
	struct dblp_sndinfo info = { .tag = 77 };
	struct message m;
	char buf[16];

	EXPECT_ERR(EAGAIN, message_recv(self->client, NULL, 0, MSG_ERRQUEUE,
					&m));
	set_u32(self->client, DBLP_NOTIFY, 1);
	EXPECT_EQ(3, sndinfo_send(self->client, "abc", 3, 0, &info));
	EXPECT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	EXPECT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(77, m.info.tag);
	EXPECT_EQ(3, m.info.length);
	EXPECT_EQ(0, m.info.missing);
	EXPECT_ERR(EAGAIN, message_recv(self->client, NULL, 0, MSG_ERRQUEUE,
					&m));
	EXPECT_EQ(POLLOUT, poll_now(self->client));

	/* It is no error of the socket. */
	EXPECT_EQ(3, recv(self->server, buf, 16, 0));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
}

TEST_F(conn, a_short_control_buffer)
{
	char control[CMSG_SPACE(8)] __attribute__((aligned(8))), *buf;
	size_t size = 300000, len;
	struct iovec iov;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct dblp_lossmap *map;
	socklen_t optlen;

	buf = calloc(1, size);
	map = calloc(1, 1 << 20);
	ASSERT_TRUE(buf && map);
	set_u32(self->client, DBLP_BUDGET, 500000);
	ASSERT_EQ(size, send(self->client, buf, size, 0));
	iov = (struct iovec) { buf, size };
	EXPECT_EQ(size, recvmsg(self->server, &msg, 0));
	EXPECT_TRUE(msg.msg_flags & MSG_CTRUNC);
	optlen = 1 << 20;
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&optlen));
	EXPECT_EQ(sizeof(*map) + map->ranges * sizeof(map->range[0]), optlen);
	EXPECT_LT(0, map->ranges);

	/* A short buffer gets as much as fits, in whole ranges. */
	len = map->ranges;
	optlen = sizeof(*map) + 12;
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&optlen));
	EXPECT_EQ(sizeof(*map) + 8, optlen);
	EXPECT_EQ(len, map->ranges);
	optlen = sizeof(*map) - 1;
	EXPECT_ERR(EINVAL, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP,
				      map, &optlen));
}

TEST(loss_maps_before_the_first_message)
{
	struct dblp_lossmap map = { .ranges = 99 };
	socklen_t len = sizeof(map);
	int fd = new_socket();

	EXPECT_ERR(ENODATA, getsockopt(fd, SOL_DBLP, DBLP_LOSSMAP, &map, &len));
	EXPECT_ERR(ENODATA, getsockopt(fd, SOL_DBLP, DBLP_SENT_LOSSMAP, &map,
				       &len));
	close(fd);
}

TEST_F(conn, info_counts)
{
	struct dblp_info c, s;
	char buf[3000] = "";
	int i;

	EXPECT_EQ(3000, send(self->client, buf, 3000, 0));
	EXPECT_EQ(3000, recv(self->server, buf, 3000, 0));
	s = get_info(self->server);
	EXPECT_EQ(1, s.msgs_received);
	EXPECT_EQ(3000, s.bytes_received);
	EXPECT_EQ(0, s.bytes_missing);
	EXPECT_EQ(0, s.msgs_sent);
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(0, recv(self->server, buf, 3000, 0));
	for (i = 0; i < 100 && !get_info(self->client).msgs_sent; i++)
		usleep(50000);
	c = get_info(self->client);
	EXPECT_EQ(1, c.msgs_sent);
	EXPECT_EQ(3000, c.bytes_delivered);
	EXPECT_LE(3000, c.bytes_first);
	EXPECT_LT(0, c.srtt_us);
	EXPECT_LT(0, c.cwnd);
	EXPECT_NE(c.id, s.id);
	EXPECT_LE(get_u32(self->client, DBLP_BUDGET_CAP), c.peer_budget_cap);
}

TEST_F(conn, info_in_a_short_buffer)
{
	struct dblp_info info;
	socklen_t len = 8;

	memset(&info, 0x55, sizeof(info));
	EXPECT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_INFO, &info,
				&len));
	EXPECT_EQ(8, len);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, info.state);
	EXPECT_EQ(0x55555555, info.budget);
}

TEST_HARNESS_MAIN
