// SPDX-License-Identifier: GPL-2.0-only
/* Messages over TCP: each after a header with its length. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport.h"

/* In the byte order of the machine: both ends are this program. */
struct tcp_head {
	uint64_t	tag;
	uint32_t	length;
	uint32_t	phase;
};

static int tcp_socket(const struct tp_addr *addr,
		      struct sockaddr_storage *name, socklen_t *len)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)name;
	struct sockaddr_in *in = (struct sockaddr_in *)name;
	const int one = 1;
	int fd;

	memset(name, 0, sizeof(*name));
	if (inet_pton(AF_INET, addr->host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(addr->port);
		*len = sizeof(*in);
	} else if (inet_pton(AF_INET6, addr->host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(addr->port);
		*len = sizeof(*in6);
	} else {
		errno = EINVAL;
		return -1;
	}
	fd = socket(name->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* The connections of a listening socket inherit it. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int tcp_listen(const struct tp_addr *addr)
{
	struct sockaddr_storage name;
	socklen_t len;
	int fd;

	fd = tcp_socket(addr, &name, &len);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name, len) || listen(fd, SOMAXCONN)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int tcp_accept(int fd)
{
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

static int tcp_connect(const struct tp_addr *addr)
{
	struct sockaddr_storage name;
	socklen_t len;
	int fd;

	fd = tcp_socket(addr, &name, &len);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&name, len)) {
		const int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

static int tcp_set_budget(int fd, uint32_t budget)
{
	(void)fd;
	if (!budget)
		return 0;
	errno = EOPNOTSUPP;
	return -1;
}

static int tcp_send(int fd, const void *buf, size_t len,
		    const struct tp_send *how)
{
	struct tcp_head head = {
		.tag = how->tag,
		.length = len,
		.phase = how->phase,
	};
	struct iovec iov[2] = {
		{ &head, sizeof(head) }, { (void *)buf, len },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	while (msg.msg_iovlen) {
		ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		while (msg.msg_iovlen && (size_t)n >= msg.msg_iov->iov_len) {
			n -= msg.msg_iov->iov_len;
			msg.msg_iov++;
			msg.msg_iovlen--;
		}
		if (msg.msg_iovlen) {
			msg.msg_iov->iov_base =
				(char *)msg.msg_iov->iov_base + n;
			msg.msg_iov->iov_len -= n;
		}
	}
	return 0;
}

/* Gives @len, or 0 if the stream ends before the first byte. */
static ssize_t tcp_read(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = recv(fd, (char *)buf + done, len - done,
				 MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += n;
	}
	if (!done || done == len)
		return done;
	errno = ECONNRESET;
	return -1;
}

static ssize_t tcp_recv(int fd, void *buf, size_t len, struct tp_msg *msg)
{
	struct tcp_head head;
	ssize_t n;

	n = tcp_read(fd, &head, sizeof(head));
	if (n <= 0)
		return n;
	if (!head.length || head.length > len) {
		errno = EMSGSIZE;
		return -1;
	}
	msg->tag = head.tag;
	msg->length = head.length;
	msg->missing = 0;
	msg->budget = 0;
	msg->phase = head.phase;
	msg->n = 0;
	n = tcp_read(fd, buf, head.length);
	if (n)
		return n;
	errno = ECONNRESET;
	return -1;
}

static int tcp_closed(int fd, struct tp_msg *msg)
{
	(void)fd;
	(void)msg;
	return 0;
}

const struct transport tp_tcp = {
	.name = "tcp",
	.listen = tcp_listen,
	.accept = tcp_accept,
	.connect = tcp_connect,
	.set_budget = tcp_set_budget,
	.send = tcp_send,
	.recv = tcp_recv,
	.closed = tcp_closed,
};
