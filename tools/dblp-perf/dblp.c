// SPDX-License-Identifier: GPL-2.0-only
/* AF_DBLP: the kernel keeps the messages apart and says what is missing. */
#include <errno.h>
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

static ssize_t dblp_take(struct conn *c, void *buf, size_t len, int flags)
{
	ssize_t n;

	c->missing = 0;
	/* Nobody asks what is missing where nothing can be. */
	if (!cfg.budget)
		return recv(c->fd, buf, len, flags);
	n = dblp_recv(c->fd, buf, len, flags, &c->msg);
	if (n < 0) {
		errno = -n;
		return -1;
	}
	c->missing = c->msg.info.missing;
	return n;
}

const struct proto proto_dblp = {
	.name		= "dblp",
	.timers		= "dblp_",
	.most		= UINT32_MAX,
	.lossy		= true,
	.setup		= dblp_setup,
	.sender		= dblp_sender,
	.get_cc		= dblp_get_cc,
	.recv		= dblp_take,
};
