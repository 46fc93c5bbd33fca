// SPDX-License-Identifier: GPL-2.0-only
/* Messages over AF_DBLP. */
#include <errno.h>
#include <sys/socket.h>

#include "transport.h"

static int set_u32(int fd, int option, uint32_t value)
{
	return setsockopt(fd, SOL_DBLP, option, &value, sizeof(value)) ?
	       -errno : 0;
}

static int notify(int fd)
{
	return set_u32(fd, DBLP_NOTIFY, 1);
}

static int ask_for_holes(int fd)
{
	return set_u32(fd, DBLP_BUDGET_CAP, DBLP_PPM);
}

static int set_budget(int fd, uint32_t budget)
{
	return tp_result(set_u32(fd, DBLP_BUDGET, budget));
}

static int send_all(int fd, const void *buf, size_t len,
		    const struct dblp_sndinfo *how)
{
	ssize_t n;

	do {
		n = dblp_send(fd, buf, len, 0, how);
	} while (n == -EINTR);
	if (n >= 0 && (size_t)n != len)
		n = -EIO;
	return n < 0 ? tp_result(n) : 0;
}

static ssize_t receive(int fd, void *buf, size_t len, struct dblp_msg *msg)
{
	ssize_t n;

	do {
		n = dblp_recv(fd, buf, len, 0, msg);
	} while (n == -EINTR);
	return tp_result(n > 0 && msg->flags & MSG_TRUNC ? -EMSGSIZE : n);
}

static int closed(int fd, struct dblp_msg *msg)
{
	int err = dblp_report(fd, 0, msg);

	if (err == -EAGAIN)
		return 0;
	return err ? tp_result(err) : 1;
}

const struct transport tp_dblp = {
	.name = "dblp",
	.notify = notify,
	.ask_for_holes = ask_for_holes,
	.set_budget = set_budget,
	.send = send_all,
	.recv = receive,
	.closed = closed,
};
