/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: transports, which carry messages over AF_DBLP or a stream.
 */
#ifndef DBLP_TRANSPORT_H
#define DBLP_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "comm.h"
#include "libdblp.h"

/*
 * Room for the control messages of a message: rcvinfo and 128 ranges. A module
 * with a shorter rcvinfo leaves room for more ranges.
 */
#define DBLP_INBOX_CONTROL						\
	(CMSG_SPACE(sizeof(struct dblp_rcvinfo)) +			\
	 CMSG_SPACE(128 * sizeof(struct dblp_range)))

/**
 * struct dblp_inbox - a message being received
 * @iov: buffers for head and data
 * @len: length of the message, bytes; 0: none is expected
 * @is_most: @len is an upper bound, until the message is closed
 * @got: bytes received
 * @closed: the message is complete, except for the losses in @map
 * @n: number of entries of @range
 * @range: bytes placed by the last call
 * @map: loss map, valid when @closed
 */
struct dblp_inbox {
	struct iovec		iov[2];
	size_t			len;
	bool			is_most;
	size_t			got;
	bool			closed;
	uint32_t		n;
	struct dblp_range	range[DBLP_INBOX_CONTROL /
				      sizeof(struct dblp_range)];
	struct dblp_msg		map;
};

/**
 * struct dblp_transport - operations of a transport
 * @name: its name
 * @protocol: protocol for dblp_socket(); 0 is AF_DBLP
 * @setup: set the options of a new socket, also of a listening one
 * @lane: set the options of a lane
 * @send: send a part of the message @iov, whose critical bytes are in @info.
 *	Return: bytes sent, or a negative errno
 * @recv: receive a part of a message. Return: 1; 0 at the end of the stream; or
 *	a negative errno
 * @is_alive: is the connection alive, without an unanswered retransmission or
 *	keepalive probe? Adds to @received the count of packets and bytes received,
 *	if the transport has one
 *
 * None blocks.
 */
struct dblp_transport {
	const char	*name;
	int		protocol;
	int		(*setup)(const struct dblp_comm *comm, int fd);
	int		(*lane)(int fd, const struct dblp_lane *lane);
	ssize_t		(*send)(int fd, const struct iovec *iov,
				const struct dblp_sndinfo *info);
	int		(*recv)(int fd, struct dblp_inbox *in);
	bool		(*is_alive)(int fd, uint64_t *received);
};

/* conn.c */

/*
 * dblp_addr_from() - convert an IPv4, IPv6 or AF_DBLP address; false: another
 *	family
 */
bool dblp_addr_from(struct sockaddr_dblp *addr, const struct sockaddr *sa);
/*
 * Is a TCP socket connected to itself? That can happen if no socket listens at
 * a port of the ephemeral range.
 */
bool dblp_is_own_peer(int fd);

/* transport.c */

extern const struct dblp_transport dblp_transport_dblp;
extern const struct dblp_transport dblp_transport_tcp;

/** dblp_inbox_set() - expect a message of @head and @data */
void dblp_inbox_set(struct dblp_inbox *in, void *head, size_t head_len,
		    void *data, size_t data_len);

/** dblp_iov_skip() - remove the first @n bytes */
void dblp_iov_skip(struct iovec iov[2], size_t n);
/** dblp_tcp_tos() - set the TOS byte of sent packets; 0 or a negative errno */
int dblp_tcp_tos(int fd, uint32_t tos);
/** dblp_tcp_keep_alive() - probe idle connections; 0 or a negative errno */
int dblp_tcp_keep_alive(const struct dblp_comm *comm, int fd);
/*
 * dblp_tcp_keep_joining() - the same while ranks join: TCP ends a connection
 *	after about @timeout_ms of silence
 */
int dblp_tcp_keep_joining(const struct dblp_comm *comm, int fd);

#endif /* DBLP_TRANSPORT_H */
