// SPDX-License-Identifier: GPL-2.0-only
/* libdblp: addresses; connections, over TCP */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libdblp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

static const struct {
	const char	*text;
	const char	*ip;
	unsigned int	port;
	u32		scope;
	const char	*written;
} addresses[] = {
	{ "192.0.2.1", "::ffff:192.0.2.1", 0, 0, "192.0.2.1" },
	{ "192.0.2.1:1", "::ffff:192.0.2.1", 1, 0, "192.0.2.1:1" },
	{ "::ffff:192.0.2.1", "::ffff:192.0.2.1", 0, 0, "192.0.2.1" },
	{ "[::ffff:192.0.2.1]:7018", "::ffff:192.0.2.1", 7018, 0,
	  "192.0.2.1:7018" },
	{ "0.0.0.0", "::ffff:0.0.0.0", 0, 0, "0.0.0.0" },
	{ "::", "::", 0, 0, "::" },
	{ "[::]:65535", "::", 65535, 0, "[::]:65535" },
	{ "2001:db8::1", "2001:db8::1", 0, 0, "2001:db8::1" },
	{ "2001:DB8:0:0::1", "2001:db8::1", 0, 0, "2001:db8::1" },
	{ "[2001:db8::1]:7018", "2001:db8::1", 7018, 0,
	  "[2001:db8::1]:7018" },
	{ "fe80::1", "fe80::1", 0, 0, "fe80::1" },
	{ "fe80::1%lo", "fe80::1", 0, 1, "fe80::1%lo" },
	{ "fe80::1%1", "fe80::1", 0, 1, "fe80::1%lo" },
	{ "[fe80::1%lo]:7018", "fe80::1", 7018, 1, "[fe80::1%lo]:7018" },
	{ "[fe80::1%2147483647]:65535", "fe80::1", 65535, 2147483647,
	  "[fe80::1%2147483647]:65535" },
};

static const struct {
	const char	*text;
	int		err;
} no_addresses[] = {
	{ "", -EINVAL },
	{ " 192.0.2.1", -EINVAL },
	{ "192.0.2.1 ", -EINVAL },
	{ "192.0.2", -EINVAL },
	{ "192.0.2.256", -EINVAL },
	{ "192.0.2.1%lo", -EINVAL },
	{ "192.0.2.1:", -EINVAL },
	{ "192.0.2.1:0", -EINVAL },
	{ "192.0.2.1:65536", -EINVAL },
	{ "192.0.2.1:65537", -EINVAL },
	{ "192.0.2.1:4294967297", -EINVAL },
	{ "192.0.2.1:99999999999999999999", -EINVAL },
	{ "192.0.2.1:-1", -EINVAL },
	{ "192.0.2.1:+1", -EINVAL },
	{ "192.0.2.1: 1", -EINVAL },
	{ "192.0.2.1:1x", -EINVAL },
	{ "192.0.2.1:1:1", -EINVAL },
	{ "[192.0.2.1]:1", -EINVAL },
	{ "[192.0.2.1]", -EINVAL },
	{ "[2001:db8::1]", -EINVAL },
	{ "[2001:db8::1]:", -EINVAL },
	{ "[2001:db8::1]1", -EINVAL },
	{ "[2001:db8::1:1", -EINVAL },
	{ "2001:db8::1]:1", -EINVAL },
	{ "[[2001:db8::1]]:1", -EINVAL },
	{ "2001:db8::1%lo", -EINVAL },
	{ "2001:db8::g", -EINVAL },
	{ "fe80::1%", -ENODEV },
	{ "fe80::1%none", -ENODEV },
	{ "fe80::1%0", -ENODEV },
	{ "fe80::1%2147483648", -ENODEV },
	{ "fe80::1%4294967297", -ENODEV },
	{ "[fe80::1%a]b]:1", -ENODEV },
	{ "fe80::1%lo:1", -ENODEV },
	{ "localhost", -EINVAL },
	{ ":", -EINVAL },
	{ "[", -EINVAL },
	{ "[]:1", -EINVAL },
	{ "[:]:1", -EINVAL },
	{ "%", -EINVAL },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee:ffff",
	  -EINVAL },
};

TEST(addresses_as_text)
{
	char text[DBLP_ADDR_TEXT];
	struct sockaddr_dblp a;
	struct in6_addr ip;
	int i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		ASSERT_EQ(0, dblp_addr_parse(addresses[i].text, &a))
			TH_LOG("%s", addresses[i].text);
		ASSERT_EQ(1, inet_pton(AF_INET6, addresses[i].ip, &ip));
		ASSERT_EQ(0, memcmp(&ip, &a.sdblp_addr, sizeof(ip)))
			TH_LOG("%s", addresses[i].text);
		ASSERT_EQ(AF_DBLP, a.sdblp_family);
		ASSERT_EQ(addresses[i].port, ntohs(a.sdblp_port));
		ASSERT_EQ(addresses[i].scope, a.sdblp_scope_id);
		dblp_addr_format(&a, text);
		ASSERT_STREQ(addresses[i].written, text);
	}
}

TEST(invalid_addresses_are_refused)
{
	struct sockaddr_dblp a, before;
	int i;

	memset(&a, 0x5a, sizeof(a));
	before = a;
	for (i = 0; i < ARRAY_SIZE(no_addresses); i++) {
		ASSERT_EQ(no_addresses[i].err,
			  dblp_addr_parse(no_addresses[i].text, &a))
			TH_LOG("%s", no_addresses[i].text);
		ASSERT_EQ(0, memcmp(&a, &before, sizeof(a)));
	}
}

/* Listen over TCP; @addr gets the address */
static int listen_at(const char *text, struct sockaddr_dblp *addr)
{
	struct sockaddr_in6 name;
	socklen_t len = sizeof(name);
	int fd;

	if (dblp_addr_parse(text, addr))
		return -1;
	fd = dblp_socket(addr, IPPROTO_TCP);
	if (fd < 0 || dblp_listen(fd, addr) ||
	    getsockname(fd, (struct sockaddr *)&name, &len))
		return -1;
	addr->sdblp_port = name.sin6_port;
	return fd;
}

/* Connect; returns a descriptor or a negative errno */
static int connect_to(const struct sockaddr_dblp *addr, int ms)
{
	int fd = dblp_socket(addr, IPPROTO_TCP), err;

	if (fd < 0)
		return fd;
	err = dblp_connect(fd, addr, ms);
	if (err)
		close(fd);
	return err ?: fd;
}

TEST(connections_that_succeed)
{
	static const int patience[] = { -1, 0, 10000 };
	struct sockaddr_dblp addr;
	int l, i, a, b;
	char byte = 'x';

	l = listen_at("127.0.0.1", &addr);
	ASSERT_LE(0, l);
	for (i = 0; i < ARRAY_SIZE(patience); i++) {
		a = connect_to(&addr, patience[i]);
		/* On lo the answer arrives at once or never */
		if (a == -ETIMEDOUT && !patience[i])
			continue;
		ASSERT_LE(0, a);
		ASSERT_EQ(0, fcntl(a, F_GETFL) & O_NONBLOCK);
		ASSERT_EQ(FD_CLOEXEC, fcntl(a, F_GETFD));
		b = dblp_accept(l);
		ASSERT_LE(0, b);
		ASSERT_EQ(FD_CLOEXEC, fcntl(b, F_GETFD));
		ASSERT_EQ(1, write(a, &byte, 1));
		ASSERT_EQ(0, shutdown(a, SHUT_WR));
		ASSERT_EQ(1, dblp_recv_all(b, &byte, 1));
		ASSERT_EQ(0, dblp_recv_all(b, &byte, 1));
		close(a);
		close(b);
	}
	close(l);
}

TEST(connections_that_fail)
{
	struct sockaddr_dblp addr;
	int l, a;

	l = listen_at("127.0.0.1", &addr);
	ASSERT_LE(0, l);
	/*
	 * The kernel completes one connection without accept() and has no room for
	 * another
	 */
	ASSERT_EQ(0, listen(l, 0));
	a = connect_to(&addr, 10000);
	ASSERT_LE(0, a);
	ASSERT_EQ(-ETIMEDOUT, connect_to(&addr, 50));
	close(a);
	close(l);
	ASSERT_EQ(-ECONNREFUSED, connect_to(&addr, -1));
	ASSERT_EQ(-ECONNREFUSED, connect_to(&addr, 10000));
	ASSERT_EQ(-EBADF, dblp_connect(a, &addr, 0));
	ASSERT_EQ(-EBADF, dblp_listen(a, &addr));
	ASSERT_EQ(-EBADF, dblp_accept(a));
	ASSERT_EQ(-EBADF, dblp_recv_all(a, &a, 1));
	ASSERT_EQ(-EPROTONOSUPPORT, dblp_socket(&addr, IPPROTO_UDP));
}

TEST(an_early_end_of_the_stream)
{
	struct sockaddr_dblp addr;
	char buf[8];
	int l, a, b;

	l = listen_at("127.0.0.1", &addr);
	ASSERT_LE(0, l);
	a = connect_to(&addr, -1);
	ASSERT_LE(0, a);
	b = dblp_accept(l);
	ASSERT_EQ(3, write(a, "abc", 3));
	close(a);
	ASSERT_EQ(3, dblp_recv_all(b, buf, sizeof(buf)));
	close(b);
	close(l);
}

TEST(invalid_namespaces_are_refused)
{
	char name[5000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	EXPECT_EQ(-ENAMETOOLONG, dblp_netns_enter(name));
	EXPECT_EQ(-ENOENT, dblp_netns_enter("no-such-namespace"));
	EXPECT_EQ(-ENOENT, dblp_netns_enter("/no/such/file"));
	EXPECT_NE(0, dblp_netns_enter("/dev/null"));
	EXPECT_NE(0, dblp_netns_enter(""));
}

TEST_HARNESS_MAIN
