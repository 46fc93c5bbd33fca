// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to the generic netlink family that dblpctl cannot make. Refusals are in
 * refusals.c, dumps in dumps.c.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"

FIXTURE(family)
{
	int fd;
	uint32_t id;
};

FIXTURE_SETUP(family)
{
	netns_new();
	open_netlink();
	self->fd = new_socket();
	self->id = get_info(self->fd).id;
}

FIXTURE_ENDS_BY_EXIT(family);

TEST_F(family, set_to_the_limit)
{
	EXPECT_EQ(0, result(ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, self->id,
				DBLP_A_SOCKET_BUDGET, DBLP_PPM, DBLP_A_SOCKET_BUDGET_CAP, 0)));
	EXPECT_EQ(DBLP_PPM, get_u32(self->fd, DBLP_BUDGET));
	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET_CAP));
}

/* Reserved bytes must be zero, because they may get a meaning */
TEST_F(family, reserved_bytes_of_the_header)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_STATS_GET, 0);
	struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);

	genl->reserved = 1;
	EXPECT_EQ(EINVAL, result(nlh));
	genl->reserved = 0;
	EXPECT_EQ(0, result(nlh));
}

TEST_F(family, no_such_operation)
{
	EXPECT_EQ(EOPNOTSUPP, result(begin(family, DBLP_CMD_MAX + 1, 0)));
	EXPECT_EQ(EOPNOTSUPP, result(begin(family, 0, 0)));
}

TEST_F(family, a_socket_that_was_closed)
{
	struct nlmsghdr *nlh = ASK(DBLP_CMD_SOCKET_GET, DBLP_A_SOCKET_ID, self->id);

	EXPECT_EQ(0, result(nlh));
	close(self->fd);
	REFUSED(ENOENT, nlh);
	EXPECT_EQ(DBLP_A_SOCKET_ID,
		  mnl_attr_get_type((const void *)(request + got.offset)));
	self->fd = -1;
}

static void count_one(const struct nlmsghdr *nlh, void *arg)
{
	++*(unsigned int *)arg;
}

/* Sockets of another namespace are not shown */
TEST_F(family, namespaces_are_apart)
{
	unsigned int seen = 0;
	struct nlmsghdr *nlh;

	netns_new();
	mnl_socket_close(nl);
	open_netlink();
	nlh = begin(family, DBLP_CMD_SOCKET_GET, NLM_F_DUMP);
	EXPECT_EQ(0, result_each(nlh, count_one, &seen));
	EXPECT_EQ(0, seen);
}

TEST_HARNESS_MAIN
