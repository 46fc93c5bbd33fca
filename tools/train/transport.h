/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole messages between two programs, over TCP or AF_DBLP, so that the same
 * training runs over both.
 *
 * Unless it says otherwise, a function returns -1 with errno set on failure.
 */
#ifndef TRAIN_TRANSPORT_H
#define TRAIN_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/dblp.h>

/**
 * struct tp_addr - where to listen or to connect to
 * @host: IPv4 or IPv6 address, in figures
 * @port: TCP or UDP port
 */
struct tp_addr {
	const char	*host;
	unsigned int	port;
};

/**
 * struct tp_send - how a message is sent
 * @tag: comes out at the receiver
 * @budget: ppm, or TP_SOCKET_BUDGET for what the socket is set to
 * @critical: bytes at the start that may not be missing
 * @phase: label; only if @budget is given
 */
struct tp_send {
	uint64_t	tag;
	uint32_t	budget;
	uint32_t	critical;
	uint8_t		phase;
};

#define TP_SOCKET_BUDGET	UINT32_MAX

/**
 * struct tp_msg - what became of a message, and its loss map
 * @tag: given by the sender
 * @length: bytes, missing ones counted
 * @missing: bytes that are missing
 * @budget: ppm: the sender's
 * @phase: the sender's
 * @n: number of missing ranges
 * @range: the missing ranges by rising offset; starts as NULL and is reused
 *	from call to call
 * @room: entries that @range has room for
 */
struct tp_msg {
	uint64_t		tag;
	uint32_t		length;
	uint32_t		missing;
	uint32_t		budget;
	uint8_t			phase;
	uint32_t		n;
	struct dblp_range	*range;
	uint32_t		room;
};

/**
 * struct transport - one way of carrying messages
 * @name: of it
 * @listen: a listening socket
 * @accept: the next connection of one
 * @connect: a connection; fails at once if nobody listens
 * @set_budget: loss budget of messages sent with TP_SOCKET_BUDGET
 * @send: send one message, all of it
 * @recv: receive one message. Missing bytes are zero. Gives its length, 0 when
 *	the peer has shut the connection down
 * @closed: what became of a message sent earlier. Does not wait: gives 1, or 0
 *	if there is nothing to report. Transports without loss report nothing
 */
struct transport {
	const char *name;
	int (*listen)(const struct tp_addr *addr);
	int (*accept)(int fd);
	int (*connect)(const struct tp_addr *addr);
	int (*set_budget)(int fd, uint32_t budget);
	int (*send)(int fd, const void *buf, size_t len,
		    const struct tp_send *how);
	ssize_t (*recv)(int fd, void *buf, size_t len, struct tp_msg *msg);
	int (*closed)(int fd, struct tp_msg *msg);
};

extern const struct transport tp_tcp;
extern const struct transport tp_dblp;

/** tp_find() - transport by name, NULL if there is none */
const struct transport *tp_find(const char *name);

/** tp_msg_hash() - a digest of a loss map, to compare two of them by */
uint32_t tp_msg_hash(const struct tp_msg *msg);
/** tp_msg_room() - make room for @n ranges; ends the program without memory */
void tp_msg_room(struct tp_msg *msg, uint32_t n);

#endif /* TRAIN_TRANSPORT_H */
