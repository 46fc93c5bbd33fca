// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages and their loss maps.
 */

#include "msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Ranges that fit the control buffer; more need a second call */
#define RANGES_AT_ONCE	512

ssize_t dblp_send(int fd, const void *buf, size_t len, int flags,
		  const struct dblp_sndinfo *info)
{
	union {
		char		space[CMSG_SPACE(sizeof(*info))];
		struct cmsghdr	head;
	} control;
	struct iovec iov = { (void *)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (info) {
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_DBLP;
		control.head.cmsg_type = DBLP_SNDINFO;
		control.head.cmsg_len = CMSG_LEN(sizeof(*info));
		memcpy(CMSG_DATA(&control.head), info, sizeof(*info));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	n = sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

static int set_ranges(struct dblp_msg *m, const void *range, uint32_t n)
{
	if (n > m->room) {
		void *new = reallocarray(m->range, n, sizeof(*m->range));

		if (!new)
			return -ENOMEM;
		m->range = new;
		m->room = n;
	}
	if (n)
		memcpy(m->range, range, n * sizeof(*m->range));
	m->n = n;
	return 0;
}

/*
 * Copy the ranges of a received loss map of @len bytes, and check that none is
 * missing
 */
static int take_map(struct dblp_msg *m, struct dblp_lossmap *map, size_t len)
{
	if (len < sizeof(*map) || map->offset < sizeof(*map) ||
	    map->offset > len || map->ranges != m->info.ranges ||
	    map->msg_id != m->info.msg_id || map->tag != m->info.tag)
		return -EBADMSG;
	if ((len - map->offset) / sizeof(*m->range) < map->ranges)
		return -EMSGSIZE;
	return set_ranges(m, dblp_lossmap_range(map), map->ranges);
}

/*
 * Fetch a loss map that did not fit the control buffer. A newer kernel may put
 * more fields before the ranges, so that the first buffer is too short; then
 * retry with a larger one.
 */
static int fetch_map(int fd, int option, struct dblp_msg *m)
{
	size_t head = sizeof(struct dblp_lossmap), more;
	struct dblp_lossmap *map;
	int err = -EMSGSIZE;
	socklen_t len;

	while (err == -EMSGSIZE) {
		len = (socklen_t)(head + m->info.ranges * sizeof(*m->range));
		map = malloc(len);
		if (!map)
			return -ENOMEM;
		if (getsockopt(fd, SOL_DBLP, option, map, &len))
			err = -errno;
		else
			err = take_map(m, map, len);
		more = err == -EMSGSIZE ? map->offset : 0;
		free(map);
		if (err == -EMSGSIZE && more <= head)
			return -EBADMSG;
		head = more;
	}
	return err;
}

/* Copy the rcvinfo, which is shorter or longer in older or newer kernels */
static void set_info(struct dblp_msg *m, const void *info, size_t len)
{
	memset(&m->info, 0, sizeof(m->info));
	memcpy(&m->info, info, len < sizeof(m->info) ? len : sizeof(m->info));
}

/* Read the control messages; the one of @type has a struct dblp_rcvinfo */
static int read_control(struct msghdr *msg, int type, struct dblp_msg *m)
{
	int err = -EBADMSG, bad = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		const void *data = CMSG_DATA(c);
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_DBLP)
			continue;
		if (c->cmsg_type == type) {
			set_info(m, data, len);
			err = 0;
		} else if (c->cmsg_type == DBLP_RANGES) {
			bad = set_ranges(m, data, (uint32_t)(len /
					 sizeof(*m->range)));
		}
	}
	return err ?: bad;
}

int dblp_msg_read(int fd, struct msghdr *msg, bool sent, struct dblp_msg *m)
{
	int err = read_control(msg, sent ? DBLP_CLOSEINFO : DBLP_RCVINFO, m);

	if (!err && m->n != m->info.ranges)
		err = fetch_map(fd, sent ? DBLP_SENT_LOSSMAP : DBLP_LOSSMAP, m);
	return err;
}

/* Identify the cancelled message by the loss map that it has left */
static int read_cancelled(int fd, struct dblp_msg *m)
{
	struct dblp_msg all = { .info.reason = DBLP_REASON_CANCELLED };
	struct dblp_lossmap map;
	socklen_t len = sizeof(map);
	int err;

	if (getsockopt(fd, SOL_DBLP, DBLP_LOSSMAP, &map, &len))
		return -errno;
	all.info.tag = map.tag;
	all.info.msg_id = map.msg_id;
	all.info.ranges = 1;
	err = fetch_map(fd, DBLP_LOSSMAP, &all);
	if (!err) {
		all.info.length = all.range->length;
		all.info.missing = all.range->length;
		dblp_msg_free(m);
		*m = all;
	}
	return err;
}

static ssize_t receive(int fd, void *buf, size_t len, int flags,
		       struct dblp_msg *m)
{
	union {
		char		space[CMSG_SPACE(sizeof(m->info)) +
				      CMSG_SPACE(RANGES_AT_ONCE *
						 sizeof(*m->range))];
		struct cmsghdr	head;
	} control;
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	bool sent = flags & MSG_ERRQUEUE;
	ssize_t n = recvmsg(fd, &msg, flags);
	int err;

	if (n < 0 && errno == ECANCELED && !(flags & MSG_PEEK)) {
		read_cancelled(fd, m);
		return -ECANCELED;
	}
	if (n < 0)
		return -errno;
	memset(&m->info, 0, sizeof(m->info));
	m->n = 0;
	m->flags = msg.msg_flags;
	if (!n && !sent)
		return 0;
	err = dblp_msg_read(fd, &msg, sent, m);
	return err ?: n;
}

ssize_t dblp_recv(int fd, void *buf, size_t len, int flags,
		  struct dblp_msg *m)
{
	return receive(fd, buf, len, flags & ~MSG_ERRQUEUE, m);
}

int dblp_cancel(int fd, uint64_t tag)
{
	return setsockopt(fd, SOL_DBLP, DBLP_CANCEL, &tag, sizeof(tag)) ?
	       -errno : 0;
}

int dblp_report(int fd, int flags, struct dblp_msg *m)
{
	ssize_t n = receive(fd, NULL, 0, flags | MSG_ERRQUEUE, m);

	return n < 0 ? (int)n : 0;
}

void dblp_msg_free(struct dblp_msg *m)
{
	free(m->range);
	memset(m, 0, sizeof(*m));
}
