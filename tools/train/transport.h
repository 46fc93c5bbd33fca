/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole messages between two programs, over TCP or AF_DBLP, so that the same
 * training runs over both.
 *
 * Unless stated otherwise, a function returns -1 with errno set on failure.
 */
#ifndef TRAIN_TRANSPORT_H
#define TRAIN_TRANSPORT_H

#include <libdblp.h>

/**
 * struct tp_addr - address to listen at or to connect to
 * @host: IPv4 or IPv6 address
 * @port: TCP or UDP port
 */
struct tp_addr {
	const char	*host;
	unsigned int	port;
};

/**
 * struct transport - one way of carrying messages
 * @name: on the command line
 * @protocol: as for dblp_socket()
 * @notify: enable reports about messages; NULL if there are none
 * @ask_for_holes: accept messages with bytes missing; NULL if there are none
 * @set_budget: set the loss budget of messages without their own
 * @send: send one message, all of it
 * @recv: receive one message. Missing bytes are zero. Returns its length, 0 when
 *	the peer has shut the connection down
 * @closed: read a report about a message sent earlier. Does not wait: returns 1, or
 *	0 if there is no report. Transports without loss have none
 */
struct transport {
	const char *name;
	int protocol;
	int (*notify)(int fd);
	int (*ask_for_holes)(int fd);
	int (*set_budget)(int fd, uint32_t budget);
	int (*send)(int fd, const void *buf, size_t len,
		    const struct dblp_sndinfo *how);
	ssize_t (*recv)(int fd, void *buf, size_t len, struct dblp_msg *msg);
	int (*closed)(int fd, struct dblp_msg *msg);
};

extern const struct transport tp_tcp;
extern const struct transport tp_dblp;

/** tp_find() - transport by name, NULL if there is none */
const struct transport *tp_find(const char *name);

#define TP_SOCKET_BUDGET	UINT32_MAX

/**
 * tp_how() - attributes of a message
 * @tag: delivered to the receiver
 * @budget: ppm, or TP_SOCKET_BUDGET for that of the socket
 * @phase: label; only if @budget is given
 */
struct dblp_sndinfo tp_how(uint64_t tag, uint32_t budget, uint8_t phase);

/**
 * tp_listen() - a listening socket; dblp_accept() takes its connections, which
 * accept messages with bytes missing
 */
int tp_listen(const struct transport *tp, const struct tp_addr *addr);
/** tp_connect() - a connection; fails at once if there is no listener */
int tp_connect(const struct transport *tp, const struct tp_addr *addr);

/** tp_result() - @result; if it is a negative errno, -1 with errno set to that */
ssize_t tp_result(ssize_t result);

/** tp_msg_hash() - a digest of a loss map, for comparing two */
uint32_t tp_msg_hash(const struct dblp_msg *msg);

#endif /* TRAIN_TRANSPORT_H */
