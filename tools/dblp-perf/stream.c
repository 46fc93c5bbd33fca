// SPDX-License-Identifier: GPL-2.0-only
/* TCP and SCTP: a stream of bytes, of which both ends know the lengths. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "conn.h"

static void tcp_setup(int fd, const char *cc)
{
	if (!cc || !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc,
			       strlen(cc)))
		return;
	if (errno == ENOENT)
		lacking("tcp has no congestion control '%s'", cc);
	fail("setting the congestion control");
}

static void tcp_get_cc(int fd, char *name, size_t size)
{
	socklen_t len = size - 1;

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		fail("asking for the congestion control");
	name[len] = 0;
}

static void sctp_setup(int fd, const char *cc)
{
	(void)fd;
	if (cc)
		lacking("sctp has no choice of congestion control");
}

static void sctp_get_cc(int fd, char *name, size_t size)
{
	(void)fd;
	(void)size;
	name[0] = 0;
}

static void stream_sender(int fd)
{
	(void)fd;
}

static ssize_t stream_recv(struct conn *c, void *buf, size_t len, int flags)
{
	return recv(c->fd, buf, len, flags);
}

const struct proto proto_tcp = {
	.name		= "tcp",
	.timers		= "tcp_",
	.protocol	= IPPROTO_TCP,
	.most		= UINT32_MAX,
	.setup		= tcp_setup,
	.sender		= stream_sender,
	.get_cc		= tcp_get_cc,
	.recv		= stream_recv,
};

/* A send() of SCTP must fit the send buffer. */
const struct proto proto_sctp = {
	.name		= "sctp",
	.timers		= "sctp_",
	.protocol	= IPPROTO_SCTP,
	.most		= 65536,
	.setup		= sctp_setup,
	.sender		= stream_sender,
	.get_cc		= sctp_get_cc,
	.recv		= stream_recv,
};
