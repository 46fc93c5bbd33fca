/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cable with one end in the test: an Ethernet device of tun, by which it passes
 * buffers to the stack as the driver of a virtual machine does: in pieces of any
 * size, with checksums to be completed, and with several packets in one (virtio-net
 * header).
 */
#ifndef DBLP_TEST_TAP_H
#define DBLP_TEST_TAP_H

#include "scripted.h"

#include <pthread.h>

/** enum tap_kind - how the device handles buffers */
enum tap_kind {
	TAP_PLAIN,	/* unchanged, with linear parts of random length */
	TAP_FRAGS,	/* made of page fragments, through GRO one by one */
	TAP_GRO,	/* coalesced by GRO into trains */
	__TAP_KIND_MAX
};

/** enum tap_how - how packets are passed to the stack */
enum tap_how {
	TAP_SINGLE,	/* one by one */
	TAP_TRAIN,	/* as one buffer of UDP segments; one by one without USO */
	TAP_UFO,	/* all in one datagram, not fragmented yet */
	TAP_FRAGMENTS,	/* each in IP fragments, which the stack reassembles */
	__TAP_HOW_MAX
};

/**
 * struct tap - one such device
 * @fd: of tun
 * @kind: of device
 * @uso: the device takes trains (UDP segmentation offload)
 * @here: addresses of the stack's end, of IPv4 and IPv6
 * @pair: writing to and reading from @pair[0] uses the cable
 * @v6: the connection uses IPv6
 * @port: port of the test's end, in network byte order
 * @to: port of the stack's end, in network byte order
 * @from: port that tap_send() sends from instead of @port, 0: none
 * @random: state of random_next()
 * @refused: buffers that the kernel refused
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
	u16			from;
	u64			random;
	u32			refused;
	pthread_t		thread;
};

/**
 * tap_open() - set up a cable
 * @t: filled
 * @net: number of its networks
 * @kind: of device
 */
void tap_open(struct tap *t, u32 net, enum tap_kind kind);

/** tap_send() - send packets, all of one length but the last; any @how */
void tap_send(struct tap *t, const struct packet *p, u32 n, enum tap_how how);

/**
 * tap_peer() - the test's end of connections, of which there is one at a time
 * @t: the cable
 * @peer: filled; as peer_connect() does it
 * @v6: IPv6
 * @port: of the test's end; @to: of the stack's end, 0: that of the first packet to
 *	@port; both in network byte order
 */
void tap_peer(struct tap *t, struct peer *peer, bool v6, u16 port, u16 to);

#endif /* DBLP_TEST_TAP_H */
