/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fixture of tests of what the other end may say: a connection in a namespace
 * of its own, by IPv4 and by IPv6, whose other end is played by the test.
 */
#ifndef DBLP_TEST_PEER_H
#define DBLP_TEST_PEER_H

#include "scripted.h"
#include "sock.h"

#include "kselftest_harness.h"

FIXTURE(peer) {
	PLAYED_CONNECTION;
};

FIXTURE_BY_FAMILY(peer);

FIXTURE_SETUP(peer)
{
	one_cpu();
	netns_new();
	/* As on Ethernet: messages are more than one segment */
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 32, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_ENDS_BY_EXIT(peer);

#endif /* DBLP_TEST_PEER_H */
