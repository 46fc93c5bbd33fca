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

FIXTURE_BY_FAMILY(conn);

FIXTURE_SETUP(conn)
{
	netns_new();
	self->listener = new_listener(variant->address, 16, &self->addr);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
}

FIXTURE_ENDS_BY_EXIT(conn);

#endif /* DBLP_TEST_CONN_H */
