// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family, asked in ways that dblpctl has no words for:
 * what bad requests get. Dumps are tested by dumps.c.
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

TEST_F(family, get_without_a_number)
{
	REFUSED(EINVAL, begin(family, DBLP_CMD_SOCKET_GET, 0));
	EXPECT_EQ(DBLP_A_SOCKET_ID, got.missing);
}

TEST_F(family, set_without_a_number)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET, 1);
	REFUSED(EINVAL, nlh);
	EXPECT_EQ(DBLP_A_SOCKET_ID, got.missing);
	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET));
}

TEST_F(family, set_nothing)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	REFUSED(EINVAL, nlh);
}

/* Each attribute at a time is over the limit; the other one stays unset too */
TEST_F(family, set_too_much)
{
	static const struct {
		uint32_t budget, cap, wrong;
	} tries[] = {
		{ DBLP_PPM + 1, 5, DBLP_A_SOCKET_BUDGET },
		{ 5, DBLP_PPM + 1, DBLP_A_SOCKET_BUDGET_CAP },
		{ DBLP_INHERIT - 1, 5, DBLP_A_SOCKET_BUDGET },
		{ 5, DBLP_INHERIT - 1, DBLP_A_SOCKET_BUDGET_CAP },
	};
	const struct nlattr *wrong;
	struct nlmsghdr *nlh;
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);
		mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
		mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET, tries[i].budget);
		mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET_CAP, tries[i].cap);
		REFUSED(EINVAL, nlh);
		wrong = (const void *)(request + got.offset);
		EXPECT_EQ(tries[i].wrong, mnl_attr_get_type(wrong));
		EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET));
		EXPECT_EQ(DBLP_PPM, get_u32(self->fd, DBLP_BUDGET_CAP));
	}
}

TEST_F(family, set_to_the_limit)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET, DBLP_PPM);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET_CAP, 0);
	EXPECT_EQ(0, result(nlh));
	EXPECT_EQ(DBLP_PPM, get_u32(self->fd, DBLP_BUDGET));
	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET_CAP));
}

/* What the policy has no place for, or a place of another size */
TEST_F(family, strange_attributes)
{
	struct nlmsghdr *nlh;

	nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET, 1);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_STATE, DBLP_STATE_CLOSED);
	REFUSED(EINVAL, nlh);

	nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_BUDGET, 1);
	mnl_attr_put_u32(nlh, 4000, 1);
	REFUSED(EINVAL, nlh);

	nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	mnl_attr_put_u16(nlh, DBLP_A_SOCKET_BUDGET, 1);
	REFUSED(EINVAL, nlh);

	nlh = begin(family, DBLP_CMD_SOCKET_SET, 0);
	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	mnl_attr_put_u64(nlh, DBLP_A_SOCKET_BUDGET, 1);
	REFUSED(EINVAL, nlh);

	EXPECT_EQ(0, get_u32(self->fd, DBLP_BUDGET));
}

/* They may get a meaning, so they must be zero */
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
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_GET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	EXPECT_EQ(0, result(nlh));
	close(self->fd);
	REFUSED(ENOENT, nlh);
	EXPECT_EQ(DBLP_A_SOCKET_ID,
		  mnl_attr_get_type((const void *)(request + got.offset)));
	self->fd = -1;
}

TEST_F(family, dump_takes_no_attribute)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_GET, NLM_F_DUMP);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
	REFUSED(EINVAL, nlh);
}

static void count_one(const struct nlmsghdr *nlh, void *arg)
{
	++*(unsigned int *)arg;
}

/* Without permission, no sockets of a namespace are shown */
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
