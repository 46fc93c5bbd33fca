// SPDX-License-Identifier: GPL-2.0-only
/* TCP and SCTP: a stream of messages of a length that both ends know. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

#include "conn.h"

static ssize_t stream_recv(struct conn *c, void *buf, size_t len, int flags)
{
	return recv(c->fd, buf, len, flags);
}

const struct proto proto_tcp = {
	.name		= "tcp",
	.timers		= "tcp_",
	.protocol	= IPPROTO_TCP,
	.most		= UINT32_MAX,
	.cc_level	= IPPROTO_TCP,
	.cc_option	= TCP_CONGESTION,
	.recv		= stream_recv,
};

/* SCTP refuses a send() that exceeds the send buffer. */
const struct proto proto_sctp = {
	.name		= "sctp",
	.timers		= "sctp_",
	.protocol	= IPPROTO_SCTP,
	.most		= 65536,
	.recv		= stream_recv,
};
