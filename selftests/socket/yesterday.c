// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program built with the header of version 0.1, in uapi-0.1: its structures, options and
 * control messages still work.
 */
#define _GNU_SOURCE
#include <string.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

#define SIZE	400000

_Static_assert(sizeof(struct dblp_sndinfo) == 32 &&
	       sizeof(struct dblp_rcvinfo) == 32 &&
	       sizeof(struct dblp_lossmap) == 16 && DBLP_LOSSMAP == 11 &&
	       sizeof(struct dblp_info) == 264, "the header of version 0.1");

FIXTURE(yesterday) {
	char *buf;
	char control[8192] __attribute__((aligned(8)));
	struct dblp_rcvinfo info;
	struct dblp_range range[512];
	size_t ranges;
	int client;
	int server;
};

FIXTURE_SETUP(yesterday)
{
	struct sockaddr_dblp addr;
	int listener;

	netns_new();
	netns_set_mtu(1500);
	self->buf = noise_new(SIZE);
	listener = new_listener("127.0.0.1", 4, &addr);
	connect_pair(&addr, listener, &self->client, &self->server);
	close(listener);
	set_u32(self->server, DBLP_BUDGET_CAP, DBLP_PPM);
}

FIXTURE_ENDS_BY_EXIT(yesterday);

static void transmit(struct __test_metadata *_metadata,
		     FIXTURE_DATA(yesterday) *self)
{
	struct dblp_sndinfo info = {
		.tag = 77, .flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = 300000, .critical = 64, .policy = DBLP_POLICY_EAGER,
	};
	struct iovec iov = { self->buf, SIZE };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = self->control,
		.msg_controllen = CMSG_SPACE(sizeof(info)),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = DBLP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	ASSERT_EQ(SIZE, sendmsg(self->client, &msg, 0));
}

/* As in the documents of version 0.1 */
static void receive(struct __test_metadata *_metadata,
		    FIXTURE_DATA(yesterday) *self, int fd, int flags)
{
	struct iovec iov = { self->buf, SIZE };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = self->control,
		.msg_controllen = sizeof(self->control),
	};
	struct cmsghdr *c;

	ASSERT_EQ(flags ? 0 : SIZE, recvmsg(fd, &msg, flags));
	EXPECT_FALSE(msg.msg_flags & MSG_CTRUNC);
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_DBLP)
			continue;
		if (c->cmsg_type == DBLP_RCVINFO || c->cmsg_type == DBLP_CLOSEINFO)
			memcpy(&self->info, CMSG_DATA(c), sizeof(self->info));
		if (c->cmsg_type != DBLP_RANGES)
			continue;
		self->ranges = (c->cmsg_len - CMSG_LEN(0)) / sizeof(self->range[0]);
		ASSERT_GE(512, self->ranges);
		memcpy(self->range, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	}
}

static void check(struct __test_metadata *_metadata,
		  FIXTURE_DATA(yesterday) *self, int fd, int option)
{
	static char space[sizeof(struct dblp_lossmap) + 512 * 8];
	struct dblp_lossmap *map = (struct dblp_lossmap *)space;
	socklen_t len = sizeof(space);
	size_t i, missing = 0;

	EXPECT_EQ(77, self->info.tag);
	EXPECT_EQ(SIZE, self->info.length);
	EXPECT_EQ(300000, self->info.budget);
	EXPECT_EQ(DBLP_REASON_BUDGET, self->info.reason);
	ASSERT_EQ(self->info.ranges, self->ranges);
	for (i = 0; i < self->ranges; i++)
		missing += self->range[i].length;
	EXPECT_LT(0, missing);
	EXPECT_EQ(self->info.missing, missing);

	ASSERT_EQ(0, getsockopt(fd, SOL_DBLP, option, map, &len));
	EXPECT_EQ(77, map->tag);
	ASSERT_EQ(self->ranges, map->ranges);
	EXPECT_EQ(sizeof(*map) + self->ranges * 8, len);
	EXPECT_EQ(0, memcmp(map->range, self->range, self->ranges * 8));
}

TEST_F(yesterday, a_message_and_its_control_messages)
{
	set_u32(self->client, DBLP_NOTIFY, 1);
	transmit(_metadata, self);
	receive(_metadata, self, self->server, 0);
	check(_metadata, self, self->server, DBLP_LOSSMAP);
	ASSERT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	receive(_metadata, self, self->client, MSG_ERRQUEUE);
	check(_metadata, self, self->client, DBLP_SENT_LOSSMAP);
}

TEST_F(yesterday, options)
{
	static const int options[] = {
		DBLP_BUDGET, DBLP_BUDGET_CAP, DBLP_CLOSE_POLICY, DBLP_ORDER,
		DBLP_ELEMENT, DBLP_FILL, DBLP_NOTIFY, DBLP_USER_TIMEOUT,
		DBLP_DEADLINE, DBLP_ELIDE, DBLP_TOS, DBLP_KEEPALIVE,
	};
	struct dblp_auth_key key = { .length = 64 };
	int fd = new_socket();
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		set_u32(fd, options[i], get_u32(fd, options[i]));
	set_u32(fd, DBLP_PLACEMENT, 1);
	EXPECT_EQ(0, get_u32(fd, DBLP_PHASE));
	EXPECT_EQ(0, get_u32(fd, DBLP_JOB));
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_CONGESTION, "lossy", 5));
	EXPECT_EQ(0, setsockopt(fd, SOL_DBLP, DBLP_AUTH_KEY, &key, sizeof(key)));
	EXPECT_EQ(DBLP_AUTH_ON, get_info(fd).auth);
}

TEST_F(yesterday, counters)
{
	struct dblp_info info;

	transmit(_metadata, self);
	receive(_metadata, self, self->server, 0);
	info = get_info(self->server);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, info.state);
	EXPECT_EQ(DBLP_PPM, info.budget_cap);
	EXPECT_EQ(SIZE, info.bytes_received);
	EXPECT_EQ(self->info.missing, info.bytes_missing);
	EXPECT_EQ(1, info.msgs_received_budget);
	EXPECT_EQ(0, info.auth);
}

TEST_HARNESS_MAIN
