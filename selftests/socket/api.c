// SPDX-License-Identifier: GPL-2.0-only
/*
 * The socket interface before a connection: addresses, bind(), listen(), connect(),
 * accept(). Invalid input fails at once with the documented errno and changes nothing.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

/* A namespace and a loopback address for each test */
FIXTURE(sock) {
	struct sockaddr_dblp addr;
	int fd;
};

FIXTURE_BY_FAMILY(sock);

FIXTURE_SETUP(sock)
{
	netns_new();
	addr_parse(&self->addr, variant->address, 0);
	self->fd = new_socket();
}

FIXTURE_ENDS_BY_EXIT(sock);

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
}

TEST(socket_reports_domain_type_and_protocol)
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
}

/* Addresses that both bind() and connect() refuse */
static void refuse_addresses(struct __test_metadata *_metadata, int fd,
			     const struct sockaddr_dblp *good,
			     int (*call)(int, const struct sockaddr *,
					 socklen_t))
{
	struct sockaddr_dblp a = *good;
	bool v4 = good->sdblp_addr.s6_addr[10] == 0xff;
	socklen_t len;

	for (len = 0; len < sizeof(a); len++)
		EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, len));

	a.sdblp_family = AF_INET6;
	EXPECT_ERR(EAFNOSUPPORT, call(fd, (struct sockaddr *)&a, sizeof(a)));
	a.sdblp_family = AF_INET;
	EXPECT_ERR(EAFNOSUPPORT, call(fd, (struct sockaddr *)&a, sizeof(a)));

	a = *good;
	a.sdblp_flowinfo = htonl(v4 ? 1 : 0x00100000);
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));
	a.sdblp_flowinfo = htonl(0x80000000);
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));

	/* ::1 and IPv4 addresses must not have a scope */
	a = *good;
	a.sdblp_scope_id = 1;
	EXPECT_ERR(EINVAL, call(fd, (struct sockaddr *)&a, sizeof(a)));

	/* A link-local address must have a scope */
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

	/* The socket is still unbound */
	EXPECT_EQ(0, getsockname(self->fd, (struct sockaddr *)&a, &len));
	EXPECT_EQ(0, a.sdblp_port);
	EXPECT_EQ(0, bind_to(self->fd, &self->addr));
}

/* Programs for any family use struct sockaddr_storage */
TEST_F(sock, addresses_in_a_longer_structure)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_dblp a;
	} s;
	socklen_t len = sizeof(s);
	int client = new_socket();

	memset(&s, 0xaa, sizeof(s));
	s.a = self->addr;
	ASSERT_EQ(0, bind(self->fd, (struct sockaddr *)&s, sizeof(s)));
	ASSERT_EQ(0, listen(self->fd, 1));
	ASSERT_EQ(0, getsockname(self->fd, (struct sockaddr *)&s, &len));
	EXPECT_EQ(sizeof(s.a), len);
	EXPECT_EQ(0, connect(client, (struct sockaddr *)&s, sizeof(s.a) + 1));
	close(client);
	client = new_socket();
	EXPECT_ERR(EINVAL, connect(client, (struct sockaddr *)&s, sizeof(s) + 1));
	EXPECT_EQ(0, connect(client, (struct sockaddr *)&s, sizeof(s)));
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
	int other = new_socket(), i;
	uint64_t start;

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	local_name(self->fd, &a);
	EXPECT_NE(0, a.sdblp_port);
	EXPECT_ERR(EADDRINUSE, bind_to(other, &a));
	addr_parse(&b, "::", ntohs(a.sdblp_port));
	EXPECT_ERR(EADDRINUSE, bind_to(other, &b));
	ASSERT_EQ(0, listen(self->fd, 1));
	EXPECT_ERR(EADDRINUSE, bind_to(other, &a));

	/* A closed socket frees its port at once, without an RCU grace period. A hundred grace
	 * periods take longer than this limit, which only virtual time can show.
	 */
	start = now_ms();
	for (i = 0; i < 100; i++) {
		close(self->fd);
		ASSERT_EQ(0, bind_to(other, &a));
		self->fd = other;
		other = new_socket();
	}
	EXPECT_GE(virtual_time() ? 100 : 60000, now_ms() - start);
	EXPECT_EQ(0, listen(self->fd, 1));
}

TEST_F(sock, udp_and_dblp_sockets_share_no_port)
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

	/* A short buffer gets a part, and the length is that of the address */
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

	ASSERT_EQ(0, listen(self->fd, 1));
	local_name(self->fd, &a);
	EXPECT_NE(0, a.sdblp_port);
}

TEST_F(sock, nonblocking_accept)
{
	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	ASSERT_EQ(0, listen(self->fd, 1));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EAGAIN, accept(self->fd, NULL, NULL));
	EXPECT_EQ(0, poll_now(self->fd));
}

TEST_F(sock, accept_times_out)
{
	uint64_t start = tick_ms();

	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	ASSERT_EQ(0, listen(self->fd, 1));
	set_timeout(self->fd, SO_RCVTIMEO, SHORT_MS);
	EXPECT_ERR(EAGAIN, accept(self->fd, NULL, NULL));
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
}

TEST_F(sock, connect_without_a_listener_is_refused)
{
	struct sockaddr_dblp a = self->addr;
	socklen_t len = sizeof(a);

	a.sdblp_port = htons(5000);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(self->fd).state);
	EXPECT_ERR(ENOTCONN, getpeername(self->fd, (struct sockaddr *)&a,
					 &len));

	/* The socket can try again, now with a listener */
	a.sdblp_port = htons(5000);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	new_listener(variant->address, 1, &a);
	EXPECT_EQ(0, connect_to(self->fd, &a));
	EXPECT_EQ(1, send(self->fd, "x", 1, 0));
}

/* Connect without a listener, from an address that is local in all namespaces */
static void get_refused(struct __test_metadata *_metadata, int fd,
			const char *address)
{
	struct sockaddr_dblp a;

	addr_parse(&a, address, 5000);
	EXPECT_ERR(ECONNREFUSED, connect_to(fd, &a));
}

static bool is_address(const struct sockaddr_dblp *a, const char *address)
{
	struct sockaddr_dblp b;

	addr_parse(&b, address, 0);
	return !memcmp(&a->sdblp_addr, &b.sdblp_addr, sizeof(b.sdblp_addr));
}

/* Connect to a listener at @address, from the source address of the route */
static void get_through(struct __test_metadata *_metadata, int fd,
			const char *address)
{
	struct sockaddr_dblp a, local;
	int listener = new_listener(address, 1, &a), server;
	char c;

	ASSERT_EQ(0, connect_to(fd, &a));
	local_name(fd, &local);
	EXPECT_TRUE(is_address(&local, address));
	server = accept(listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_EQ(1, send(fd, "x", 1, 0));
	EXPECT_EQ(1, recv(server, &c, 1, 0));
	close(server);
	close(listener);
}

/* A failed attempt has no effect on the next one, which may use the other protocol and
 * another source address.
 */
TEST_F(sock, connect_again_elsewhere)
{
	bool v4 = variant->address[0] != ':';
	struct sockaddr_dblp a;

	ASSERT_EQ(0, system("ip addr add 10.7.0.1/32 dev lo"));
	ASSERT_EQ(0, system("ip addr add fd07::1/128 dev lo nodad"));
	get_refused(_metadata, self->fd, variant->address);
	local_name(self->fd, &a);
	EXPECT_EQ(0, a.sdblp_port);
	EXPECT_TRUE(is_address(&a, "::"));
	get_refused(_metadata, self->fd, v4 ? "10.7.0.1" : "fd07::1");
	get_refused(_metadata, self->fd, v4 ? "fd07::1" : "10.7.0.1");
	addr_parse(&a, v4 ? "192.0.2.1" : "2001:db8::1", 5000);
	EXPECT_ERR(ENETUNREACH, connect_to(self->fd, &a));
	get_through(_metadata, self->fd, v4 ? "fd07::1" : "10.7.0.1");
}

/* The port is free again, and the socket can be bound and listen */
TEST_F(sock, bind_and_listen_after_a_refusal)
{
	struct sockaddr_dblp a;
	int other = new_socket();

	get_refused(_metadata, self->fd, variant->address);
	ASSERT_EQ(0, bind_to(self->fd, &self->addr));
	local_name(self->fd, &a);
	EXPECT_TRUE(is_address(&a, variant->address));
	ASSERT_EQ(0, listen(self->fd, 1));
	EXPECT_EQ(0, connect_to(other, &a));
}

/* The address of bind() stays, other addresses do not */
TEST_F(sock, connect_again_from_a_bound_port)
{
	const char *any = variant->address[0] == ':' ? "::" : "0.0.0.0";
	struct sockaddr_dblp a, b;

	ASSERT_EQ(0, system("ip addr add 10.7.0.1/32 dev lo"));
	ASSERT_EQ(0, system("ip addr add fd07::1/128 dev lo nodad"));
	addr_parse(&a, any, 0);
	ASSERT_EQ(0, bind_to(self->fd, &a));
	local_name(self->fd, &a);
	get_refused(_metadata, self->fd, variant->address);
	local_name(self->fd, &b);
	EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)));
	get_through(_metadata, self->fd,
		    variant->address[0] == ':' ? "fd07::1" : "10.7.0.1");
	local_name(self->fd, &b);
	EXPECT_EQ(a.sdblp_port, b.sdblp_port);
}

TEST_F(sock, a_bound_socket_that_does_not_listen_refuses)
{
	struct sockaddr_dblp a;
	int other = new_socket();

	ASSERT_EQ(0, bind_to(other, &self->addr));
	local_name(other, &a);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
}

TEST_F(sock, nonblocking_connect)
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
}

TEST_F(sock, nonblocking_connect_without_a_listener)
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

/* A silent peer is a UDP socket that does not answer */
static void silent_peer(const char *text, struct sockaddr_dblp *a)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	socklen_t len = sizeof(sin6);
	int udp = socket(AF_INET6, SOCK_DGRAM, 0);

	if (bind(udp, (struct sockaddr *)&sin6, sizeof(sin6)) ||
	    getsockname(udp, (struct sockaddr *)&sin6, &len))
		die("UDP socket");
	addr_parse(a, text, ntohs(sin6.sin6_port));
}

TEST_F(sock, connecting_twice_at_once)
{
	silent_peer(variant->address, &self->addr);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_ERR(EALREADY, connect_to(self->fd, &self->addr));
	EXPECT_EQ(DBLP_STATE_INIT_SENT, get_info(self->fd).state);
	EXPECT_ERR(EAGAIN, send(self->fd, "x", 1, MSG_NOSIGNAL));
}

TEST_F(sock, connecting_times_out_by_the_send_timeout)
{
	uint64_t start = tick_ms();

	silent_peer(variant->address, &self->addr);
	set_timeout(self->fd, SO_SNDTIMEO, SHORT_MS);
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
	/* The next call waits for the same attempt, as with TCP */
	EXPECT_ERR(EALREADY, connect_to(self->fd, &self->addr));
	EXPECT_LE(2 * (SHORT_MS - EARLY_MS), tick_ms() - start);
}

static void *connect_and_wait(void *arg)
{
	FIXTURE_DATA(sock) *self = arg;

	return (void *)RESULT(connect_to(self->fd, &self->addr));
}

/* shutdown() of any direction ends an attempt, also a blocking one */
TEST_F(sock, shutdown_while_connecting)
{
	struct sockaddr_dblp silent, there;
	pthread_t thread;
	void *result;
	int how;

	silent_peer(variant->address, &silent);
	new_listener(variant->address, 4, &there);
	for (how = SHUT_RD; how <= SHUT_RDWR; how++) {
		self->addr = silent;
		ASSERT_EQ(0, pthread_create(&thread, NULL, connect_and_wait,
					    self));
		EXPECT_SOON(DBLP_STATE_INIT_SENT, get_info(self->fd).state);
		EXPECT_EQ(0, RESULT(shutdown(self->fd, how)));
		ASSERT_EQ(0, pthread_join(thread, &result));
		EXPECT_EQ(-ECONNRESET, (long)result);
		EXPECT_ERR(ENOTCONN, shutdown(self->fd, how));

		fcntl(self->fd, F_SETFL, O_NONBLOCK);
		EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &silent));
		EXPECT_EQ(0, RESULT(shutdown(self->fd, how)));
		EXPECT_EQ(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP,
			  poll_now(self->fd));
		EXPECT_EQ(ECONNRESET, get_int(self->fd, SO_ERROR));
		fcntl(self->fd, F_SETFL, 0);
	}
	/* The socket is as before the attempt, and can connect */
	EXPECT_EQ(0, RESULT(connect_to(self->fd, &there)));
	EXPECT_EQ(1, RESULT(send(self->fd, "x", 1, 0)));
}

TEST_F(sock, connecting_times_out_by_the_user_timeout)
{
	uint64_t start = now_ms();

	silent_peer(variant->address, &self->addr);
	set_u32(self->fd, DBLP_USER_TIMEOUT, 3 * SHORT_MS);
	EXPECT_ERR(ETIMEDOUT, connect_to(self->fd, &self->addr));
	EXPECT_LE(3 * SHORT_MS, now_ms() - start);
}

TEST_F(sock, a_full_backlog_accepts_no_connection)
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

	/* accept() returns the connections that were established */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (i = 0; accept(listener, NULL, NULL) >= 0; i++)
		;
	EXPECT_EQ(n, i);
}

TEST_HARNESS_MAIN
