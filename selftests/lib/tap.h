/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cable whose other end is in the hands of the test: an Ethernet device of tun,
 * by which it hands buffers to the stack as a driver of a virtual machine does:
 * in pieces of any size, with checksums that are still to be made, and several
 * packets in one (virtio-net header).
 */
#ifndef DBLP_TEST_TAP_H
#define DBLP_TEST_TAP_H

#include "scripted.h"

#include <pthread.h>

/** enum tap_kind - what the device does with buffers */
enum tap_kind {
	TAP_PLAIN,	/* nothing; they are linear as far as a random number says */
	TAP_FRAGS,	/* they are made of pieces, and go through GRO one by one */
	TAP_GRO,	/* they wait for each other in GRO, which makes trains */
	__TAP_KIND_MAX
};

/** enum tap_how - how packets are handed over */
enum tap_how {
	TAP_SINGLE,	/* one by one */
	TAP_TRAIN,	/* as one buffer of UDP segments; alone if the kernel cannot */
	TAP_UFO,	/* all in one datagram, that is still to be fragmented */
	TAP_FRAGMENTS,	/* each in fragments of IP, which the stack puts together */
	__TAP_HOW_MAX
};

/**
 * struct tap - one such device
 * @fd: of tun
 * @kind: of device
 * @uso: trains can be handed over
 * @here: addresses of the stack's end, of IPv4 and IPv6
 * @pair: what is sent to and read from @pair[0] goes over the cable
 * @v6: of the connection that uses it, as are
 * @port: the port of the test's end, and
 * @to: that of the stack's, in network byte order
 * @random: state of random_next()
 * @refused: buffers that the kernel did not take
 */
struct tap {
	int			fd;
	enum tap_kind		kind;
	bool			uso;
	char			here[2][16];
	int			pair[2];
	volatile bool		v6;
	volatile u16		port;
	volatile u16		to;
	u64			random;
	u32			refused;
	pthread_t		thread;
};

/**
 * tap_open() - lay a cable
 * @t: filled
 * @net: number of its networks
 * @kind: of device
 */
void tap_open(struct tap *t, u32 net, enum tap_kind kind);

/** tap_send() - hand over packets, all of one length but the last; any @how */
void tap_send(struct tap *t, const struct packet *p, u32 n, enum tap_how how);

/**
 * tap_peer() - the test's end of connections, of which there is one at a time
 * @t: the cable
 * @peer: filled; as peer_connect() does it
 * @v6: IPv6
 * @port: of the test's end, @to that of the stack's, 0 for whoever is the first to
 *	send something to @port; both in network byte order
 */
void tap_peer(struct tap *t, struct peer *peer, bool v6, u16 port, u16 to);

#endif /* DBLP_TEST_TAP_H */
