// SPDX-License-Identifier: GPL-2.0-only
/* Messages over AF_DBLP, which has them already. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport.h"

/* Ranges that are asked for with each message; more need a second call. */
#define DBLP_RANGES_ROOM	512

static int dblp_name(const struct tp_addr *addr, struct sockaddr_dblp *name)
{
	struct in_addr in;

	memset(name, 0, sizeof(*name));
	name->sdblp_family = AF_DBLP;
	name->sdblp_port = htons(addr->port);
	if (inet_pton(AF_INET6, addr->host, &name->sdblp_addr) == 1)
		return 0;
	if (inet_pton(AF_INET, addr->host, &in) != 1) {
		errno = EINVAL;
		return -1;
	}
	name->sdblp_addr.s6_addr[10] = 0xff;
	name->sdblp_addr.s6_addr[11] = 0xff;
	memcpy(&name->sdblp_addr.s6_addr[12], &in, sizeof(in));
	return 0;
}

static int dblp_socket(const struct tp_addr *addr, struct sockaddr_dblp *name)
{
	if (dblp_name(addr, name))
		return -1;
	return socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int close_for(int fd, int error)
{
	close(fd);
	errno = error;
	return -1;
}

static int dblp_listen(const struct tp_addr *addr)
{
	const int one = 1;
	struct sockaddr_dblp name;
	int fd;

	fd = dblp_socket(addr, &name);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&name, sizeof(name)) ||
	    listen(fd, SOMAXCONN))
		return close_for(fd, errno);
	return fd;
}

static int dblp_accept(int fd)
{
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

static int dblp_connect(const struct tp_addr *addr)
{
	const __u32 one = 1;
	struct sockaddr_dblp name;
	int fd;

	fd = dblp_socket(addr, &name);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_DBLP, DBLP_NOTIFY, &one, sizeof(one)) ||
	    connect(fd, (struct sockaddr *)&name, sizeof(name)))
		return close_for(fd, errno);
	return fd;
}

static int dblp_set_budget(int fd, uint32_t budget)
{
	const __u32 ppm = budget;

	return setsockopt(fd, SOL_DBLP, DBLP_BUDGET, &ppm, sizeof(ppm));
}

static int dblp_send(int fd, const void *buf, size_t len,
		     const struct tp_send *how)
{
	union {
		char		space[CMSG_SPACE(sizeof(struct dblp_sndinfo))];
		struct cmsghdr	align;
	} control = { 0 };
	struct iovec iov = { (void *)buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct dblp_sndinfo info = {
		.tag = how->tag,
		.critical = how->critical,
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	if (how->budget != TP_SOCKET_BUDGET) {
		info.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY | DBLP_SND_PHASE;
		info.budget = how->budget;
		info.policy = DBLP_POLICY_EAGER;
		info.phase = how->phase;
	}
	cmsg->cmsg_level = SOL_DBLP;
	cmsg->cmsg_type = DBLP_SNDINFO;
	cmsg->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(cmsg), &info, sizeof(info));

	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if ((size_t)n == len)
		return 0;
	errno = EIO;
	return -1;
}

/* The loss map when it did not fit the control buffer. */
static int dblp_ask_map(int fd, int option, struct tp_msg *msg, uint32_t n)
{
	union {
		struct dblp_lossmap	map;
		char			space[sizeof(struct dblp_lossmap) +
					      16384 * sizeof(struct dblp_range)];
	} buf;
	socklen_t len = sizeof(buf);

	if (getsockopt(fd, SOL_DBLP, option, &buf, &len))
		return -1;
	if (buf.map.tag != msg->tag || buf.map.ranges != n ||
	    len < sizeof(buf.map) + n * sizeof(struct dblp_range)) {
		errno = EPROTO;
		return -1;
	}
	tp_msg_room(msg, n);
	memcpy(msg->range, buf.map.range, n * sizeof(*msg->range));
	msg->n = n;
	return 0;
}

/* Reads the control messages: @type is the one with a struct dblp_rcvinfo. */
static int dblp_parse(int fd, struct msghdr *hdr, int type, int option,
		      struct tp_msg *msg)
{
	struct dblp_rcvinfo info;
	struct cmsghdr *cmsg;
	bool found = false;

	msg->n = 0;
	for (cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		const size_t len = cmsg->cmsg_len - CMSG_LEN(0);

		if (cmsg->cmsg_level != SOL_DBLP)
			continue;
		if (cmsg->cmsg_type == type && len >= sizeof(info)) {
			memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
			found = true;
		} else if (cmsg->cmsg_type == DBLP_RANGES) {
			msg->n = len / sizeof(*msg->range);
			tp_msg_room(msg, msg->n);
			memcpy(msg->range, CMSG_DATA(cmsg),
			       msg->n * sizeof(*msg->range));
		}
	}
	if (!found) {
		errno = EPROTO;
		return -1;
	}
	msg->tag = info.tag;
	msg->length = info.length;
	msg->missing = info.missing;
	msg->budget = info.budget;
	msg->phase = info.phase;
	if (msg->n == info.ranges)
		return 0;
	return dblp_ask_map(fd, option, msg, info.ranges);
}

static ssize_t dblp_recvmsg(int fd, void *buf, size_t len, int flags,
			    struct tp_msg *msg)
{
	union {
		char	space[CMSG_SPACE(sizeof(struct dblp_rcvinfo)) +
			      CMSG_SPACE(DBLP_RANGES_ROOM *
					 sizeof(struct dblp_range))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, len };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const bool report = flags & MSG_ERRQUEUE;
	ssize_t n;

	do {
		n = recvmsg(fd, &hdr, flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0 || (!n && !report))
		return n;
	if (hdr.msg_flags & MSG_TRUNC) {
		errno = EMSGSIZE;
		return -1;
	}
	if (dblp_parse(fd, &hdr, report ? DBLP_CLOSEINFO : DBLP_RCVINFO,
		       report ? DBLP_SENT_LOSSMAP : DBLP_LOSSMAP, msg))
		return -1;
	return report ? 1 : n;
}

static ssize_t dblp_recv(int fd, void *buf, size_t len, struct tp_msg *msg)
{
	return dblp_recvmsg(fd, buf, len, 0, msg);
}

static int dblp_closed(int fd, struct tp_msg *msg)
{
	ssize_t n = dblp_recvmsg(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT, msg);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return n;
}

const struct transport tp_dblp = {
	.name = "dblp",
	.listen = dblp_listen,
	.accept = dblp_accept,
	.connect = dblp_connect,
	.set_budget = dblp_set_budget,
	.send = dblp_send,
	.recv = dblp_recv,
	.closed = dblp_closed,
};
