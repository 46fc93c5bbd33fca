// SPDX-License-Identifier: GPL-2.0-only
/* AF_DBLP: the kernel keeps message boundaries and reports missing ranges. */
#include <errno.h>
#include <sys/socket.h>

#include "conn.h"

static void set_u32(int fd, int name, uint32_t value, const char *what)
{
	if (!setsockopt(fd, SOL_DBLP, name, &value, sizeof(value)))
		return;
	if (errno == EINVAL || errno == ENOPROTOOPT)
		lacking("this dblp.ko does not support %s %u", what, value);
	fail("setting %s to %u", what, value);
}

static void dblp_setup(int fd)
{
	/* A receiver has to accept messages with bytes missing */
	if (cfg.budget)
		set_u32(fd, DBLP_BUDGET_CAP, DBLP_PPM, "a cap of");
	if (cfg.spray)
		set_u32(fd, DBLP_SPRAY, cfg.spray, "ports");
	if (!cfg.key || !setsockopt(fd, SOL_DBLP, DBLP_AUTH_KEY, cfg.key,
				    sizeof(*cfg.key)))
		return;
	if (errno == ENOPROTOOPT)
		lacking("this dblp.ko does not support keys");
	fail("setting the key");
}

static void dblp_sender(int fd)
{
	set_u32(fd, DBLP_BUDGET, cfg.budget, "a budget of");
	if (cfg.policy >= 0)
		set_u32(fd, DBLP_CLOSE_POLICY, cfg.policy, "close policy");
	if (cfg.order >= 0)
		set_u32(fd, DBLP_ORDER, cfg.order, "order");
}

static ssize_t dblp_take(struct conn *c, void *buf, size_t len, int flags)
{
	ssize_t n;

	c->missing = 0;
	/* Without a budget no byte can be missing. */
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
	.cc_level	= SOL_DBLP,
	.cc_option	= DBLP_CONGESTION,
	.setup		= dblp_setup,
	.sender		= dblp_sender,
	.recv		= dblp_take,
};
