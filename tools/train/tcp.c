// SPDX-License-Identifier: GPL-2.0-only
/* Messages over TCP: each after a header with its length. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "transport.h"

/* In the byte order of the machine: both ends are this program. */
struct tcp_head {
	uint64_t	tag;
	uint32_t	length;
	uint32_t	phase;
};

static int tcp_set_budget(int fd, uint32_t budget)
{
	(void)fd;
	if (!budget)
		return 0;
	errno = EOPNOTSUPP;
	return -1;
}

static int tcp_send(int fd, const void *buf, size_t len,
		    const struct dblp_sndinfo *how)
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

static ssize_t tcp_recv(int fd, void *buf, size_t len, struct dblp_msg *msg)
{
	struct tcp_head head;
	ssize_t n;

	n = dblp_recv_all(fd, &head, sizeof(head));
	if (n <= 0)
		return tp_result(n);
	if (n < (ssize_t)sizeof(head))
		return tp_result(-ECONNRESET);
	if (!head.length || head.length > len)
		return tp_result(-EMSGSIZE);
	msg->info = (struct dblp_rcvinfo){
		.tag = head.tag,
		.length = head.length,
		.phase = head.phase,
	};
	msg->n = 0;
	n = dblp_recv_all(fd, buf, head.length);
	if (n >= 0 && n < head.length)
		n = -ECONNRESET;
	return tp_result(n);
}

static int tcp_closed(int fd, struct dblp_msg *msg)
{
	(void)fd;
	(void)msg;
	return 0;
}

const struct transport tp_tcp = {
	.name = "tcp",
	.protocol = IPPROTO_TCP,
	.set_budget = tcp_set_budget,
	.send = tcp_send,
	.recv = tcp_recv,
	.closed = tcp_closed,
};
