/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture of most tests of the socket interface: a connection in a
 * namespace of its own, by IPv4 and by IPv6.
 */
#ifndef DBLP_TEST_CONN_H
#define DBLP_TEST_CONN_H

#include "sock.h"

#include "kselftest_harness.h"

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
	self->listener = new_listener(variant->address, 16, &self->addr);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
}

FIXTURE_TEARDOWN(conn)
{
	close(self->server);
	close(self->client);
	close(self->listener);
}

#endif /* DBLP_TEST_CONN_H */
