/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tap device whose wire end is the test. The test passes buffers to the stack as the
 * driver of a virtual machine does: in pieces of any size, with checksums to be
 * completed, and with several packets in one buffer (virtio-net header).
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
	TAP_UFO,	/* all in one datagram without fragmentation */
	TAP_FRAGMENTS,	/* each in IP fragments, which the stack reassembles */
	__TAP_HOW_MAX
};

/**
 * struct tap - one such device
 * @fd: descriptor of the tap device
 * @kind: how the device handles buffers
 * @uso: the device takes trains (UDP segmentation offload)
 * @here: addresses of the stack's end, of IPv4 and IPv6
 * @pair: sockets; the test writes packets to and reads packets from @pair[0]
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
 * tap_open() - set up a tap device
 * @t: filled
 * @net: number in its network addresses
 * @kind: how the device handles buffers
 */
void tap_open(struct tap *t, u32 net, enum tap_kind kind);

/** tap_send() - send packets; only the last may be shorter */
void tap_send(struct tap *t, const struct packet *p, u32 n, enum tap_how how);

/**
 * tap_peer() - set up a scripted peer behind the device, one at a time
 * @t: the device
 * @peer: filled, as by peer_connect()
 * @v6: use IPv6
 * @port: port of the test's end, network byte order
 * @to: port of the stack's end, network byte order; 0: the source port of the first
 *	packet to @port
 */
void tap_peer(struct tap *t, struct peer *peer, bool v6, u16 port, u16 to);

#endif /* DBLP_TEST_TAP_H */
