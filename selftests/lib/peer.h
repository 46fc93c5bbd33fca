/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fixture of tests that play the peer: a connection in a new namespace, by IPv4 and by
 * IPv6, whose other end is a scripted peer.
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
	/* As on Ethernet, so that messages have several segments */
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 32, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_ENDS_BY_EXIT(peer);

#endif /* DBLP_TEST_PEER_H */
