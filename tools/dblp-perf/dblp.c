// SPDX-License-Identifier: GPL-2.0-only
/* AF_DBLP: the kernel keeps the messages apart and says what is missing. */
#include <errno.h>
#include <linux/dblp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "conn.h"

static void set_u32(int fd, int name, uint32_t value, const char *what)
{
	if (!setsockopt(fd, SOL_DBLP, name, &value, sizeof(value)))
		return;
	if (errno == EINVAL || errno == ENOPROTOOPT)
		lacking("this dblp.ko does not take %s %u", what, value);
	fail("setting %s to %u", what, value);
}

static void set_key(int fd)
{
	if (!setsockopt(fd, SOL_DBLP, DBLP_AUTH_KEY, cfg.key, sizeof(*cfg.key)))
		return;
	if (errno == ENOPROTOOPT)
		lacking("this dblp.ko does not take a key");
	fail("setting the key");
}

static void dblp_setup(int fd, const char *cc)
{
	if (cfg.key)
		set_key(fd);
	if (!cc || !setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, cc, strlen(cc)))
		return;
	if (errno == ENOENT || errno == EINVAL)
		lacking("dblp has no congestion control '%s'", cc);
	fail("setting the congestion control");
}

static void dblp_sender(int fd)
{
	set_u32(fd, DBLP_BUDGET, cfg.budget, "a budget of");
	if (cfg.policy >= 0)
		set_u32(fd, DBLP_CLOSE_POLICY, cfg.policy, "close policy");
	if (cfg.order >= 0)
		set_u32(fd, DBLP_ORDER, cfg.order, "order");
}

static void dblp_get_cc(int fd, char *name, size_t size)
{
	socklen_t len = size - 1;

	if (getsockopt(fd, SOL_DBLP, DBLP_CONGESTION, name, &len))
		fail("asking for the congestion control");
	name[len] = 0;
}

/* The whole loss map, which may not have fitted the control buffer */
static void get_gaps(struct conn *c, uint32_t n)
{
	socklen_t len = sizeof(struct dblp_lossmap) + n * sizeof(*c->gap);
	struct dblp_lossmap *map = xcalloc(1, len);

	if (getsockopt(c->fd, SOL_DBLP, DBLP_LOSSMAP, map, &len))
		fail("asking for the loss map");
	errno = 0;
	if (map->ranges != n)
		fail("RCVINFO says %u ranges, the loss map has %u", n,
		     map->ranges);
	free(c->gap);
	c->gap = xcalloc(n, sizeof(*c->gap));
	memcpy(c->gap, map->range, n * sizeof(*c->gap));
	c->n_gaps = n;
	free(map);
}

static void take_info(struct conn *c, struct msghdr *msg)
{
	const struct dblp_rcvinfo *info;
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_DBLP ||
		    cmsg->cmsg_type != DBLP_RCVINFO)
			continue;
		info = (const struct dblp_rcvinfo *)CMSG_DATA(cmsg);
		c->missing = info->missing;
		if (cfg.verify && info->ranges)
			get_gaps(c, info->ranges);
		return;
	}
	errno = 0;
	fail("a message came without RCVINFO");
}

static ssize_t dblp_recv(struct conn *c, void *buf, size_t len, int flags)
{
	char control[CMSG_SPACE(sizeof(struct dblp_rcvinfo))]
		__attribute__((aligned(8)));
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	c->missing = 0;
	c->n_gaps = 0;
	/* Nobody asks what is missing where nothing can be. */
	if (!cfg.budget)
		return recv(c->fd, buf, len, flags);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	n = recvmsg(c->fd, &msg, flags);
	if (n > 0)
		take_info(c, &msg);
	return n;
}

const struct proto proto_dblp = {
	.name		= "dblp",
	.timers		= "dblp_",
	.family		= AF_DBLP,
	.type		= SOCK_SEQPACKET,
	.most		= UINT32_MAX,
	.lossy		= true,
	.setup		= dblp_setup,
	.sender		= dblp_sender,
	.get_cc		= dblp_get_cc,
	.recv		= dblp_recv,
};
