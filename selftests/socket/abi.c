// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs of 32 and of 64 bits use the same structures in options and control messages,
 * and programs built with older or newer headers work. This file is built for both word
 * sizes. selftests/abi compares layouts.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

#define SIZE	400000

FIXTURE(abi) {
	struct sockaddr_dblp addr;
	char *buf;
	int listener;
	int client;
	int server;
};

FIXTURE_SETUP(abi)
{
	netns_new();
	netns_set_mtu(1500);
	self->buf = noise_new(SIZE);
	self->listener = new_listener("::1", 4, &self->addr);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
}

FIXTURE_ENDS_BY_EXIT(abi);

TEST_F(abi, addresses)
{
	struct sockaddr_dblp a, b;
	socklen_t len = sizeof(b);

	local_name(self->client, &a);
	EXPECT_EQ(AF_DBLP, a.sdblp_family);
	EXPECT_NE(0, a.sdblp_port);
	EXPECT_EQ(0, getpeername(self->server, (struct sockaddr *)&b, &len));
	EXPECT_EQ(28, len);
	EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)));
}

TEST_F(abi, info_is_filled_to_its_end)
{
	struct dblp_info info;

	EXPECT_EQ(3, send(self->client, "abc", 3, 0));
	EXPECT_EQ(3, recv(self->server, self->buf, SIZE, 0));
	info = get_info(self->server);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, info.state);
	EXPECT_EQ(DBLP_PPM, info.budget_cap);
	EXPECT_EQ(3, info.bytes_received);
	EXPECT_EQ(1, info.msgs_received);
	EXPECT_LT(0, info.pkts_received);
	EXPECT_EQ(0, info.spurious);
}

/* Send with @len bytes of DBLP_SNDINFO */
static ssize_t send_as(int fd, char *buf, size_t size, const void *info,
		       size_t len)
{
	char control[8192] __attribute__((aligned(8))) = "";
	struct cmsghdr *c = (struct cmsghdr *)control;
	struct iovec iov = { buf, size };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = CMSG_SPACE(len),
	};

	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = DBLP_SNDINFO;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), info, len);
	return sendmsg(fd, &m, 0);
}

static ssize_t send_with(int fd, char *buf, const struct dblp_sndinfo *info)
{
	return send_as(fd, buf, SIZE, info, sizeof(*info));
}

/* Result of recvmsg(), with pointers into the control buffer */
struct got {
	int flags;
	const struct dblp_rcvinfo *info;
	const struct dblp_range *range;
	size_t ranges;
	char control[8192] __attribute__((aligned(8)));
};

static const void *data_of(const struct cmsghdr *c, int type, size_t len)
{
	if (!c || c->cmsg_level != SOL_DBLP || c->cmsg_type != type ||
	    c->cmsg_len != CMSG_LEN(len))
		die("control message of level %d, type %d, %zu bytes",
		    c ? c->cmsg_level : 0, c ? c->cmsg_type : 0,
		    c ? (size_t)c->cmsg_len : 0);
	return CMSG_DATA(c);
}

/* Receive with a control buffer of @room bytes; the loss map is set unless truncated */
static ssize_t receive(int fd, char *buf, size_t room, int flags, struct got *g)
{
	bool sent = flags & MSG_ERRQUEUE;
	struct iovec iov = { buf, SIZE };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = g->control, .msg_controllen = room,
	};
	ssize_t ret = recvmsg(fd, &m, flags);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (ret < 0)
		die("recvmsg()");
	g->flags = m.msg_flags;
	g->info = data_of(c, sent ? DBLP_CLOSEINFO : DBLP_RCVINFO,
			  sizeof(*g->info));
	g->ranges = g->flags & MSG_CTRUNC ? 0 : g->info->ranges;
	g->range = !g->ranges ? NULL :
		data_of(CMSG_NXTHDR(&m, c), DBLP_RANGES,
			g->ranges * sizeof(*g->range));
	return ret;
}

/* Control messages of a message with bytes missing, at both ends */
TEST_F(abi, control_messages_both_ways)
{
	struct dblp_sndinfo snd = {
		.tag = 0x0123456789abcdefULL,
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY |
			 DBLP_SND_PHASE,
		.budget = 300000,
		.critical = 100,
		.phase = 2,
		.policy = DBLP_POLICY_EAGER,
	};
	struct got g, report;
	uint32_t i, missing = 0;

	set_u32(self->client, DBLP_NOTIFY, 1);
	ASSERT_EQ(SIZE, send_with(self->client, self->buf, &snd));
	ASSERT_EQ(SIZE, receive(self->server, self->buf, sizeof(g.control), 0,
				&g));
	EXPECT_EQ(snd.tag, g.info->tag);
	EXPECT_EQ(0, g.info->msg_id);
	EXPECT_EQ(SIZE, g.info->length);
	EXPECT_EQ(snd.budget, g.info->budget);
	EXPECT_EQ(snd.phase, g.info->phase);
	EXPECT_EQ(DBLP_REASON_BUDGET, g.info->reason);
	EXPECT_LT(0, g.info->missing);
	ASSERT_LT(0, g.ranges);
	for (i = 0; i < g.ranges; i++) {
		EXPECT_LE(snd.critical, g.range[i].offset);
		missing += g.range[i].length;
	}
	EXPECT_EQ(g.info->missing, missing);

	ASSERT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	ASSERT_EQ(0, receive(self->client, self->buf, sizeof(g.control),
			     MSG_ERRQUEUE, &report));
	EXPECT_TRUE(report.flags & MSG_ERRQUEUE);
	EXPECT_EQ(0, memcmp(g.info, report.info, sizeof(*g.info)));
	ASSERT_EQ(g.ranges, report.ranges);
	EXPECT_EQ(0, memcmp(g.range, report.range,
			    g.ranges * sizeof(*g.range)));
}

TEST_F(abi, a_control_buffer_that_just_fits)
{
	size_t fits = CMSG_SPACE(sizeof(struct dblp_rcvinfo));
	struct got g;

	set_u32(self->client, DBLP_BUDGET, 300000);
	ASSERT_EQ(SIZE, send(self->client, self->buf, SIZE, 0));
	ASSERT_EQ(SIZE, receive(self->server, self->buf, fits, MSG_PEEK, &g));
	EXPECT_TRUE(g.flags & MSG_CTRUNC);
	ASSERT_LT(0, g.info->ranges);

	fits += CMSG_LEN(g.info->ranges * sizeof(*g.range));
	EXPECT_EQ(SIZE, receive(self->server, self->buf, fits, MSG_PEEK, &g));
	EXPECT_FALSE(g.flags & MSG_CTRUNC);
	EXPECT_EQ(SIZE, receive(self->server, self->buf, fits - 1, MSG_PEEK,
				&g));
	EXPECT_TRUE(g.flags & MSG_CTRUNC);
}

TEST_F(abi, loss_map_by_option)
{
	char space[sizeof(struct dblp_lossmap) + 64 * 1024];
	struct dblp_lossmap *map = (struct dblp_lossmap *)space;
	socklen_t len = sizeof(space);
	int i;

	set_u32(self->client, DBLP_BUDGET, 300000);
	ASSERT_EQ(SIZE, send(self->client, self->buf, SIZE, 0));
	ASSERT_EQ(SIZE, recv(self->server, self->buf, SIZE, 0));
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&len));
	EXPECT_LT(0, map->ranges);
	EXPECT_EQ(map->offset + map->ranges * sizeof(struct dblp_range), len);
	EXPECT_LT(0, dblp_lossmap_range(map)->length);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, map->reserved[i]);
}

/* Sizes of a structure that a program may have been built with */
#define FIRST		32	/* bytes of struct dblp_sndinfo in its first version */
#define LARGER		5000

TEST_F(abi, structures_of_other_versions_to_send)
{
	static char info[LARGER] __attribute__((aligned(8)));
	size_t len;
	struct got g;

	((struct dblp_sndinfo *)info)->tag = 7;
	for (len = FIRST; len <= 200; len += 4) {
		ASSERT_EQ(1, send_as(self->client, self->buf, 1, info, len))
			TH_LOG("%zu bytes", len);
		ASSERT_EQ(1, receive(self->server, self->buf,
				     sizeof(g.control), 0, &g));
		EXPECT_EQ(7, g.info->tag);
	}
	EXPECT_ERR(EINVAL, send_as(self->client, self->buf, 1, info, FIRST - 1));
	EXPECT_ERR(EINVAL, send_as(self->client, self->buf, 1, info, 0));
	EXPECT_ERR(E2BIG, send_as(self->client, self->buf, 1, info, LARGER));
	/* Unknown fields that are not zero are refused */
	for (len = sizeof(struct dblp_sndinfo); len < 200; len += 17) {
		info[len] = 1;
		EXPECT_ERR(E2BIG, send_as(self->client, self->buf, 1, info, 200))
			TH_LOG("byte %zu", len);
		info[len] = 0;
	}
	/* So are reserved fields, also at the end of a short structure */
	info[FIRST - 1] = 1;
	EXPECT_ERR(EINVAL, send_as(self->client, self->buf, 1, info, FIRST));
	EXPECT_ERR(EAGAIN, recv(self->server, self->buf, SIZE, MSG_DONTWAIT));
}

/* Programs size their control buffers for it */
TEST_F(abi, received_info_keeps_its_size)
{
	struct got g;

	ASSERT_EQ(1, send(self->client, self->buf, 1, 0));
	ASSERT_EQ(1, receive(self->server, self->buf, CMSG_LEN(64), 0, &g));
	EXPECT_FALSE(g.flags & MSG_CTRUNC);
	EXPECT_EQ(1, g.info->length);
}

TEST_F(abi, structures_of_other_versions_by_options)
{
	char info[1024] __attribute__((aligned(8)));
	struct dblp_info now = get_info(self->listener);
	static struct {
		struct dblp_auth_key key;
		char more[LARGER];
	} key = { .key.length = 16 };
	socklen_t len;
	int i;

	for (i = 4; i < 1024; i += 60) {
		memset(info, 0xff, sizeof(info));
		len = i;
		ASSERT_EQ(0, getsockopt(self->listener, SOL_DBLP, DBLP_INFO,
					info, &len));
		EXPECT_EQ(i < sizeof(now) ? i : sizeof(now), len);
		EXPECT_EQ(0, memcmp(&now, info, len));
		EXPECT_EQ((char)0xff, info[len]);
	}
	for (i = 0; i < 200; i += 8)
		EXPECT_EQ(0, RESULT(setsockopt(self->listener, SOL_DBLP,
					       DBLP_AUTH_KEY, &key,
					       sizeof(key.key) + i)));
	key.more[199] = 1;
	EXPECT_ERR(E2BIG, setsockopt(self->listener, SOL_DBLP, DBLP_AUTH_KEY,
				     &key, sizeof(key.key) + 200));
	EXPECT_ERR(E2BIG, setsockopt(self->listener, SOL_DBLP, DBLP_AUTH_KEY,
				     &key, sizeof(key)));
	EXPECT_ERR(EINVAL, setsockopt(self->listener, SOL_DBLP, DBLP_AUTH_KEY,
				      &key, 71));
}

/* DBLP_AUTH_KEY is a structure, and can be set but not read */
TEST_F(abi, keys)
{
	static const char longest[] =
		"a key that has as many bytes as there can be: sixty-four of them";
	struct dblp_auth_key key = { .length = DBLP_AUTH_KEY_MIN };
	int late = new_socket(), client, server;
	socklen_t len = sizeof(key);

	ASSERT_EQ(DBLP_AUTH_KEY_MAX, strlen(longest));
	EXPECT_ERR(EINVAL, setsockopt(late, SOL_DBLP, DBLP_AUTH_KEY, &key,
				      sizeof(key) - 4));
	EXPECT_ERR(EINVAL, try_key(late, longest, 2));
	EXPECT_ERR(ENOPROTOOPT, getsockopt(late, SOL_DBLP, DBLP_AUTH_KEY, &key,
					   &len));
	EXPECT_ERR(EISCONN, try_key(self->client, longest, 0));

	ASSERT_EQ(0, RESULT(try_key(self->listener, longest, 0)));
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->listener).auth);
	/* Every byte of the key matters */
	ASSERT_EQ(0, RESULT(try_key(late, longest + 1, 0)));
	EXPECT_ERR(EKEYREJECTED, connect_to(late, &self->addr));
	ASSERT_EQ(0, RESULT(try_key(late, longest, 0)));
	EXPECT_EQ(DBLP_AUTH_ON | DBLP_AUTH_OLD, get_info(late).auth);
	ASSERT_EQ(0, RESULT(connect_to(late, &self->addr)));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_EQ(DBLP_AUTH_ON, get_info(late).auth);
	EXPECT_EQ(DBLP_AUTH_ON, get_info(server).auth);
	ASSERT_EQ(SIZE, send(late, self->buf, SIZE, 0));
	EXPECT_EQ(SIZE, recv(server, self->buf, SIZE, 0));

	/* Remove the key */
	ASSERT_EQ(0, RESULT(try_key(self->listener, "", 0)));
	EXPECT_EQ(0, get_info(self->listener).auth);
	client = new_socket();
	EXPECT_EQ(0, RESULT(connect_to(client, &self->addr)));
}

TEST_F(abi, queue_lengths_and_timeouts)
{
	int queued = -1;
	uint64_t start;

	EXPECT_EQ(0, ioctl(self->server, FIONREAD, &queued));
	EXPECT_EQ(0, queued);
	set_timeout(self->server, SO_RCVTIMEO, SHORT_MS);
	start = tick_ms();
	EXPECT_ERR(EAGAIN, recv(self->server, self->buf, SIZE, 0));
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
}

TEST_HARNESS_MAIN
