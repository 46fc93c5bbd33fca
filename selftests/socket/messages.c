// SPDX-License-Identifier: GPL-2.0-only
/*
 * The socket interface of a connection: messages, control messages, blocking, shutdown and
 * close. Invalid input fails at once with the documented errno and changes nothing.
 */
#define _GNU_SOURCE
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib/conn.h"

static int get_int_ioctl(int fd, int request)
{
	int value = -1;

	if (ioctl(fd, request, &value))
		die("ioctl(%#x)", request);
	return value;
}

TEST_F(conn, names)
{
	struct sockaddr_dblp client, server, a;
	socklen_t len = sizeof(a);

	EXPECT_EQ(0, getsockname(self->client, (struct sockaddr *)&client,
				 &len));
	EXPECT_EQ(0, getsockname(self->server, (struct sockaddr *)&server,
				 &len));
	EXPECT_EQ(0, memcmp(&server, &self->addr, sizeof(server)));
	EXPECT_EQ(0, memcmp(&client.sdblp_addr, &self->addr.sdblp_addr, 16));
	EXPECT_NE(0, client.sdblp_port);
	EXPECT_EQ(0, getpeername(self->client, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(0, memcmp(&a, &server, sizeof(a)));
	EXPECT_EQ(0, getpeername(self->server, (struct sockaddr *)&a, &len));
	EXPECT_EQ(0, memcmp(&a, &client, sizeof(a)));
}

TEST_F(conn, calls_in_the_wrong_state)
{
	EXPECT_ERR(EISCONN, connect_to(self->client, &self->addr));
	EXPECT_ERR(EISCONN, connect_to(self->server, &self->addr));
	EXPECT_ERR(EINVAL, listen(self->client, 1));
	EXPECT_ERR(EINVAL, bind_to(self->client, &self->addr));
	EXPECT_ERR(EINVAL, accept(self->client, NULL, NULL));
	EXPECT_ERR(EISCONN, sendto(self->client, "x", 1, 0,
				   (struct sockaddr *)&self->addr,
				   sizeof(self->addr)));
	EXPECT_ERR(EINVAL, shutdown(self->client, 3));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->client).state);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->server).state);
}

TEST_F(conn, messages_have_boundaries)
{
	char buf[16];

	EXPECT_EQ(3, send(self->client, "one", 3, 0));
	EXPECT_EQ(5, send(self->client, "three", 5, 0));
	EXPECT_EQ(3, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(5, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, memcmp(buf, "three", 5));
	EXPECT_ERR(EAGAIN, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
}

TEST_F(conn, scatter_and_gather)
{
	char a[3] = "abc", b[5] = "defgh", x[1], y[7];
	struct iovec out[] = { { a, 3 }, { NULL, 0 }, { b, 5 } };
	struct iovec in[] = { { x, 1 }, { y, 7 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 3 };

	EXPECT_EQ(8, sendmsg(self->client, &msg, 0));
	msg = (struct msghdr) { .msg_iov = in, .msg_iovlen = 2 };
	EXPECT_EQ(8, recvmsg(self->server, &msg, 0));
	EXPECT_EQ('a', x[0]);
	EXPECT_EQ(0, memcmp(y, "bcdefgh", 7));
}

TEST_F(conn, rcvinfo)
{
	struct dblp_sndinfo info = {
		.tag = 0x123456789abcdef0, .phase = 2, .critical = 2,
		.flags = DBLP_SND_BUDGET | DBLP_SND_PHASE, .budget = 1000,
	};
	struct message m;
	char buf[16];

	ASSERT_EQ(4, sndinfo_send(self->client, "text", 4, 0, &info));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(info.tag, m.info.tag);
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(4, m.info.length);
	EXPECT_EQ(0, m.info.missing);
	EXPECT_EQ(0, m.info.ranges);
	EXPECT_EQ(1000, m.info.budget);
	EXPECT_EQ(2, m.info.phase);
	EXPECT_EQ(DBLP_REASON_COMPLETE, m.info.reason);
	EXPECT_EQ(0, m.n);
	ASSERT_EQ(4, send(self->client, "more", 4, 0));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(1, m.info.msg_id);
	EXPECT_EQ(0, m.info.tag);
	EXPECT_EQ(0, m.info.budget);
	EXPECT_EQ(0, m.info.phase);
}

TEST_F(conn, bad_control_messages)
{
	const struct dblp_sndinfo bad[] = {
		{ .flags = DBLP_SND_BUDGET, .budget = DBLP_PPM + 1 },
		{ .flags = DBLP_SND_BUDGET, .budget = UINT32_MAX },
		{ .flags = DBLP_SND_PHASE << 1 },
		{ .flags = 1U << 31 },
		{ .flags = DBLP_SND_POLICY, .policy = 3 },
		{ .phase = 1 },
		{ .flags = DBLP_SND_PHASE, .phase = DBLP_PHASES },
		{ .flags = DBLP_SND_PHASE, .phase = 255 },
		{ .deadline = 1 },
		{ .flags = DBLP_SND_DEADLINE, .deadline = 3600000001 },
		{ .reserved = { 1 } },
		{ .reserved = { 0, 0, 0, 0, 0, 1 } },
		{ .reserved = { [sizeof(bad[0].reserved) - 1] = 1 } },
		{ .critical = 5 },
	};
	char control[128] __attribute__((aligned(8))), buf[16];
	struct iovec iov = { "text", 4 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
	};
	struct cmsghdr *c = (struct cmsghdr *)control;
	int type;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_ERR(EINVAL, sndinfo_send(self->client, "text", 4, 0,
						&bad[i])) {
			TH_LOG("case %zu", i);
		}
	for (i = 0; i < 32; i += 4) {
		memset(control, 0, sizeof(control));
		c->cmsg_level = SOL_DBLP;
		c->cmsg_type = DBLP_SNDINFO;
		c->cmsg_len = CMSG_LEN(i);
		msg.msg_controllen = CMSG_SPACE(i);
		EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));
	}
	memset(control, 0, sizeof(control));
	c->cmsg_level = SOL_DBLP;
	c->cmsg_len = CMSG_LEN(sizeof(bad[0]));
	msg.msg_controllen = CMSG_SPACE(sizeof(bad[0]));
	for (type = 0; type < 8; type++) {
		c->cmsg_type = type;
		if (type != DBLP_SNDINFO)
			EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));
	}
	c->cmsg_type = DBLP_SNDINFO;
	c->cmsg_len = 4;
	EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));

	/* No message was sent */
	EXPECT_EQ(2, send(self->client, "ok", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

/* Append a control message */
static void put_control(struct msghdr *msg, int level, int type,
			const void *data, size_t len)
{
	struct cmsghdr *c;

	c = (struct cmsghdr *)((char *)msg->msg_control + msg->msg_controllen);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

static void put_foreign(struct msghdr *msg, int level, int type, uint32_t value)
{
	put_control(msg, level, type, &value, sizeof(value));
}

static void put_tag(struct msghdr *msg, uint64_t tag)
{
	struct dblp_sndinfo info = { .tag = tag };

	put_control(msg, SOL_DBLP, DBLP_SNDINFO, &info, sizeof(info));
}

/* Programs for any family may add control messages of other levels */
TEST_F(conn, control_messages_for_others)
{
	char control[256] __attribute__((aligned(8))) = "", buf[16];
	struct iovec iov = { "text", 4 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
	};
	struct message m;

	put_foreign(&msg, SOL_IP, IP_TOS, 0x10);
	put_tag(&msg, 5);
	put_foreign(&msg, SOL_DBLP + 1, DBLP_SNDINFO, 1);
	ASSERT_EQ(4, sendmsg(self->client, &msg, 0));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(5, m.info.tag);

	/* Of level SOL_SOCKET only known ones, as for TCP */
	put_foreign(&msg, SOL_SOCKET, SO_MARK, 1);
	ASSERT_EQ(4, sendmsg(self->client, &msg, 0));
	ASSERT_EQ(4, message_recv(self->server, buf, sizeof(buf), 0, &m));
	EXPECT_EQ(5, m.info.tag);
	put_foreign(&msg, SOL_SOCKET, 12345, 1);
	EXPECT_ERR(EINVAL, sendmsg(self->client, &msg, 0));
	EXPECT_ERR(EAGAIN, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
}

TEST_F(conn, invalid_flags)
{
	char buf[16];

	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_OOB));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_FASTOPEN));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_DONTROUTE));
	EXPECT_EQ(2, send(self->client, "ok", 2, MSG_EOR | MSG_NOSIGNAL));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	EXPECT_ERR(EOPNOTSUPP, recv(self->server, buf, 16, MSG_OOB));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, empty_messages)
{
	EXPECT_ERR(EINVAL, send(self->client, "", 0, 0));
	EXPECT_ERR(EINVAL, write(self->client, "", 0));
}

TEST_F(conn, a_message_larger_than_the_peer_accepts)
{
	uint32_t max = get_info(self->client).peer_msg_max;
	char *big = mmap(NULL, (size_t)max + 1, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char buf[16];

	ASSERT_NE(MAP_FAILED, (void *)big);
	EXPECT_LE(16 << 20, max);
	EXPECT_ERR(EMSGSIZE, send(self->client, big, (size_t)max + 1, 0));
	EXPECT_ERR(EMSGSIZE, send(self->client, big, (size_t)max + 1,
				  MSG_DONTWAIT));
	EXPECT_EQ(2, send(self->client, "ok", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, the_receive_buffer_limits_the_message)
{
	int client = new_socket(), server, rcvbuf = 100000;
	char *buf = noise_new(1 << 20);
	struct dblp_info info;

	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, setsockopt(self->listener, SOL_SOCKET, SO_RCVBUF, &rcvbuf,
				sizeof(rcvbuf)));
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	info = get_info(client);
	EXPECT_LE(50000, info.peer_msg_max);
	EXPECT_GE(400000, info.peer_msg_max);
	EXPECT_ERR(EMSGSIZE, send(client, buf, info.peer_msg_max + 1, 0));
	EXPECT_EQ(info.peer_msg_max, send(client, buf, info.peer_msg_max, 0));
	EXPECT_EQ(info.peer_msg_max, recv(server, buf, 1 << 20, 0));
}

/* While a process uses a socket, its packets wait, also where unread bytes exceed SO_RCVBUF */
TEST_F(conn, acks_arrive_beside_a_message_larger_than_the_buffer)
{
	const size_t len = 3 << 20;
	char *buf = noise_new(len);
	uint64_t dropped;

	one_cpu();
	ASSERT_EQ(len, send(self->client, buf, len, 0));
	ASSERT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	set_int(self->server, SO_RCVBUF, 1);
	dropped = mib("DropMemory");
	ASSERT_EQ(len, send(self->server, buf, len, 0));
	EXPECT_EQ(len, recv(self->client, buf, len, 0));
	EXPECT_EQ(len, recv(self->server, buf, len, 0));
	EXPECT_EQ(dropped, mib("DropMemory"));
}

TEST_F(conn, a_short_buffer)
{
	char buf[16] = "................";
	struct iovec iov = { buf, 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	EXPECT_EQ(8, send(self->client, "abcdefgh", 8, 0));
	EXPECT_EQ(4, recvmsg(self->server, &msg, 0));
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(0, memcmp(buf, "abcd....", 8));

	/* With MSG_TRUNC the result is the whole length */
	EXPECT_EQ(8, send(self->client, "abcdefgh", 8, 0));
	EXPECT_EQ(8, recvmsg(self->server, &msg, MSG_TRUNC));
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(0, memcmp(buf, "abcd....", 8));

	/* The rest of the message is dropped */
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(1, recvmsg(self->server, &msg, 0));
	EXPECT_FALSE(msg.msg_flags & MSG_TRUNC);
	EXPECT_TRUE(msg.msg_flags & MSG_EOR);
	EXPECT_EQ('x', buf[0]);
}

TEST_F(conn, peeking)
{
	char buf[16];
	struct message m;

	EXPECT_EQ(3, send(self->client, "one", 3, 0));
	EXPECT_EQ(3, send(self->client, "two", 3, 0));
	EXPECT_EQ(3, message_recv(self->server, buf, 16, MSG_PEEK, &m));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(3, recv(self->server, NULL, 0, MSG_PEEK | MSG_TRUNC));
	EXPECT_EQ(3, message_recv(self->server, buf, 16, 0, &m));
	EXPECT_EQ(0, memcmp(buf, "one", 3));
	EXPECT_EQ(0, m.info.msg_id);
	EXPECT_EQ(3, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, memcmp(buf, "two", 3));
	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, MSG_PEEK | MSG_DONTWAIT));
}

TEST_F(conn, nonblocking_receive_and_timeout)
{
	uint64_t start;
	char buf[16];

	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, MSG_DONTWAIT));
	set_timeout(self->server, SO_RCVTIMEO, SHORT_MS);
	start = tick_ms();
	EXPECT_ERR(EAGAIN, recv(self->server, buf, 16, 0));
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
	EXPECT_GE(50 * SHORT_MS, tick_ms() - start);
}

/* Unread messages fill the receive buffer, then the send buffer */
static size_t fill_up(int fd, const char *buf, size_t size)
{
	size_t n = 0;

	while (send(fd, buf, size, MSG_DONTWAIT) == (ssize_t)size)
		n++;
	if (errno != EAGAIN)
		die("send()");
	return n;
}

/* Ways for a sender to end while messages wait for credit */
enum ending {
	GOES_ON,
	SHUTS,
	BOTH_SHUT,
	CLOSES,
};

static void end_sending(int client, int server, enum ending how)
{
	if (how == CLOSES)
		close(client);
	if ((how == SHUTS || how == BOTH_SHUT) && shutdown(client, SHUT_WR))
		die("shutdown()");
	if (how == BOTH_SHUT && shutdown(server, SHUT_WR))
		die("shutdown()");
}

/* A window of one message. Each message read gives credit at once, not only in reply to a
 * probe
 */
static void overfill(struct __test_metadata *_metadata,
		     FIXTURE_DATA(conn) *self, enum ending how)
{
	int size = 100000, rcvbuf = 150000, client, server;
	char *buf = noise_new(size);
	uint64_t start, probes;
	size_t n, i;

	ASSERT_NE(NULL, buf);
	setsockopt(self->listener, SOL_SOCKET, SO_RCVBUF, &rcvbuf, 4);
	client = new_socket();
	set_int(client, SO_SNDBUFFORCE, 1000000);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);

	n = fill_up(client, buf, size);
	EXPECT_LT(0, n);
	set_timeout(client, SO_SNDTIMEO, SHORT_MS);
	start = tick_ms();
	while (send(client, buf, size, 0) == size)
		n++;
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
	EXPECT_GE(40, n);
	EXPECT_FALSE(poll_now(client) & POLLOUT);
	EXPECT_LT(0, get_int_ioctl(client, SIOCOUTQ));
	end_sending(client, server, how);

	/* Reading makes room, and no message was lost */
	probes = mib("PtoExpired");
	for (i = 0; i < n; i++)
		EXPECT_EQ(size, recv(server, buf, size, 0));
	EXPECT_GT(n / 2, mib("PtoExpired") - probes);
	if (how == GOES_ON) {
		EXPECT_TRUE(wait_for(client, POLLOUT, 10 * SECONDS));
		EXPECT_ERR(EAGAIN, recv(server, buf, size, MSG_DONTWAIT));
	} else {
		EXPECT_EQ(0, recv(server, buf, size, 0));
	}
	if (how != CLOSES)
		close(client);
	close(server);
}

TEST_F(conn, sending_to_a_peer_that_does_not_read)
{
	overfill(_metadata, self, GOES_ON);
}

TEST_F(conn, sending_to_a_peer_that_does_not_read_and_shutdown)
{
	overfill(_metadata, self, SHUTS);
}

TEST_F(conn, sending_to_a_peer_that_does_not_read_and_shutdown_of_both)
{
	overfill(_metadata, self, BOTH_SHUT);
}

TEST_F(conn, sending_to_a_peer_that_does_not_read_and_close)
{
	overfill(_metadata, self, CLOSES);
}

TEST_F(conn, queue_lengths)
{
	EXPECT_EQ(0, get_int_ioctl(self->server, SIOCINQ));
	EXPECT_EQ(0, get_int_ioctl(self->client, SIOCOUTQ));
	EXPECT_EQ(5, send(self->client, "12345", 5, 0));
	EXPECT_EQ(3, send(self->client, "123", 3, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	/* As a datagram socket: the length of the next message */
	EXPECT_EQ(5, get_int_ioctl(self->server, SIOCINQ));
	EXPECT_EQ(0, get_int_ioctl(self->listener, SIOCINQ));
	EXPECT_ERR(EFAULT, ioctl(self->server, SIOCINQ, (void *)8));
	EXPECT_ERR(ENOTTY, ioctl(self->server, SIOCGIFHWADDR + 0x1000,
				 self));
}

TEST_F(conn, poll_states)
{
	char buf[16];

	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(POLLOUT, poll_now(self->server));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->server));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
	EXPECT_EQ(POLLOUT, poll_now(self->server));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_TRUE(wait_for(self->server, POLLRDHUP, 10 * SECONDS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(0, shutdown(self->server, SHUT_WR));
	EXPECT_TRUE(wait_for(self->client, POLLRDHUP, 10 * SECONDS));
}

TEST_F(conn, epoll_reports_each_change_once)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(0);
	char buf[16];

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->server, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, 10 * SECONDS));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	EXPECT_EQ(1, send(self->client, "y", 1, 0));
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, 10 * SECONDS));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
	EXPECT_EQ(1, recv(self->server, buf, 16, 0));
}

TEST_F(conn, shutdown_for_writing)
{
	char buf[16];

	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(4, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, recv(self->server, buf, 16, 0));
	EXPECT_EQ(0, recv(self->server, buf, 16, MSG_DONTWAIT));

	/* The other direction stays open */
	EXPECT_EQ(4, send(self->server, "back", 4, 0));
	EXPECT_EQ(4, recv(self->client, buf, 16, 0));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(0, shutdown(self->server, SHUT_WR));
	EXPECT_EQ(0, recv(self->client, buf, 16, 0));
}

TEST_F(conn, shutdown_for_reading)
{
	char buf[16];

	EXPECT_EQ(0, shutdown(self->server, SHUT_RD));
	EXPECT_EQ(0, recv(self->server, buf, 16, 0));
	EXPECT_EQ(3, send(self->server, "out", 3, 0));
	EXPECT_EQ(3, recv(self->client, buf, 16, 0));
}

TEST_F_SIGNAL(conn, writing_after_shutdown_raises_sigpipe, SIGPIPE)
{
	shutdown(self->client, SHUT_WR);
	send(self->client, "x", 1, 0);
}

TEST_F(conn, closing_sends_everything_first)
{
	int size = 1 << 20, i;
	char *buf = malloc(size);

	ASSERT_NE(NULL, buf);
	for (i = 0; i < 3; i++) {
		pattern_fill(buf, size, 0, 9, i);
		EXPECT_EQ(size, send(self->client, buf, size, 0));
	}
	close(self->client);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(size, recv(self->server, buf, size, 0));
		EXPECT_EQ(-1, pattern_check(buf, size, 0, 9, i));
	}
	EXPECT_EQ(0, recv(self->server, buf, size, 0));
	self->client = -1;
}

TEST_F(conn, closing_with_unread_messages_resets_the_peer)
{
	char buf[16];

	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	close(self->server);
	self->server = -1;
	EXPECT_TRUE(wait_for(self->client, POLLHUP | POLLERR, 10 * SECONDS));
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, 16, 0));
	EXPECT_EQ(0, recv(self->client, buf, 16, 0));
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
}

static void *receive_in_thread(void *arg)
{
	char buf[16];
	long ret = recv(*(int *)arg, buf, sizeof(buf), 0);

	return (void *)(ret < 0 ? -errno : ret);
}

static long blocked_recv_ends(int fd, void (*how)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, receive_in_thread, &fd))
		die("pthread_create()");
	let_others_sleep();
	how(arg);
	if (pthread_join(thread, &result))
		die("pthread_join()");
	return (long)result;
}

static void shut_reading(void *fd)
{
	shutdown(*(int *)fd, SHUT_RD);
}

static void shut_writing(void *fd)
{
	shutdown(*(int *)fd, SHUT_WR);
}

static void send_x(void *fd)
{
	send(*(int *)fd, "x", 1, 0);
}

TEST_F(conn, a_waiting_reader_is_woken)
{
	EXPECT_EQ(1, blocked_recv_ends(self->server, send_x, &self->client));
	EXPECT_EQ(0, blocked_recv_ends(self->server, shut_writing,
				       &self->client));
	EXPECT_EQ(0, blocked_recv_ends(self->client, shut_reading,
				       &self->client));
}

static void *accept_in_thread(void *arg)
{
	return (void *)(long)(accept(*(int *)arg, NULL, NULL) < 0 ? errno : 0);
}

TEST_F(conn, a_waiting_accept_is_woken_by_shutdown)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, accept_in_thread,
				    &self->listener));
	let_others_sleep();
	EXPECT_EQ(0, shutdown(self->listener, SHUT_RDWR));
	pthread_join(thread, &result);
	EXPECT_EQ(EINVAL, (long)result);
}

TEST_F(conn, a_listener_that_closes_leaves_its_children_alone)
{
	char buf[16];

	close(self->listener);
	self->listener = -1;
	EXPECT_EQ(2, send(self->client, "hi", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, 16, 0));
	EXPECT_EQ(2, send(self->server, "ho", 2, 0));
	EXPECT_EQ(2, recv(self->client, buf, 16, 0));
}

TEST_F(conn, unaccepted_connections_are_reset)
{
	int client = new_socket();
	char buf[16];

	ASSERT_EQ(0, connect_to(client, &self->addr));
	close(self->listener);
	self->listener = -1;
	EXPECT_TRUE(wait_for(client, POLLHUP | POLLERR, 10 * SECONDS));
	EXPECT_ERR(ECONNRESET, recv(client, buf, 16, 0));
}

TEST_F(conn, reports_for_the_sender)
{
	struct dblp_sndinfo info = { .tag = 77 };
	struct message m;
	char buf[16];

	EXPECT_ERR(EAGAIN, message_recv(self->client, NULL, 0, MSG_ERRQUEUE,
					&m));
	set_u32(self->client, DBLP_NOTIFY, 1);
	EXPECT_EQ(3, sndinfo_send(self->client, "abc", 3, 0, &info));
	EXPECT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	EXPECT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(77, m.info.tag);
	EXPECT_EQ(3, m.info.length);
	EXPECT_EQ(0, m.info.missing);
	EXPECT_ERR(EAGAIN, message_recv(self->client, NULL, 0, MSG_ERRQUEUE,
					&m));
	EXPECT_EQ(POLLOUT, poll_now(self->client));

	/* The report is not an error of the socket */
	EXPECT_EQ(3, recv(self->server, buf, 16, 0));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
}

/* A complete message causes only ACKs in return, which have no packet number, whatever its
 * budget
 */
TEST_F(conn, complete_messages_are_only_acknowledged)
{
	static const uint32_t policies[] = { DBLP_POLICY_EAGER, DBLP_POLICY_EARLY };
	static const uint32_t sizes[] = { 100, 1000, 5000 };
	uint32_t policy, size, i, sent;
	static char buf[5000];

	netns_set_mtu(1500);
	set_u32(self->client, DBLP_BUDGET, 20000);
	sent = get_info(self->server).pkts_sent;
	for (policy = 0; policy < 2; policy++) {
		set_u32(self->client, DBLP_CLOSE_POLICY, policies[policy]);
		for (size = 0; size < 3; size++) {
			pattern_fill(buf, sizes[size], 0, 1, size);
			for (i = 0; i < 50; i++) {
				ASSERT_EQ(sizes[size], send(self->client, buf,
							    sizes[size], 0));
				ASSERT_EQ(sizes[size], recv(self->server, buf,
							    sizeof(buf), 0));
			}
		}
	}
	while (get_info(self->client).msgs_sent < 300)
		sleep_ms(1);
	EXPECT_EQ(300, get_info(self->client).msgs_sent_complete);
	/* Credit is sent rarely; on a slow kernel it may be repeated
	 */
	EXPECT_GT(300 / 10, get_info(self->server).pkts_sent - sent);
}

TEST_F(conn, a_short_control_buffer)
{
	char control[CMSG_SPACE(8)] __attribute__((aligned(8))), *buf;
	size_t size = 300000, len;
	struct iovec iov;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct dblp_lossmap *map;
	socklen_t optlen;

	buf = noise_new(size);
	map = calloc(1, 1 << 20);
	ASSERT_TRUE(buf && map);
	set_u32(self->client, DBLP_BUDGET, 500000);
	ASSERT_EQ(size, send(self->client, buf, size, 0));
	iov = (struct iovec) { buf, size };
	EXPECT_EQ(size, recvmsg(self->server, &msg, 0));
	EXPECT_TRUE(msg.msg_flags & MSG_CTRUNC);
	optlen = 1 << 20;
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&optlen));
	EXPECT_EQ(map->offset + map->ranges * sizeof(struct dblp_range), optlen);
	EXPECT_LT(0, map->ranges);

	/* A short buffer gets as many whole ranges as fit */
	len = map->ranges;
	optlen = sizeof(*map) + 12;
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&optlen));
	EXPECT_EQ(sizeof(*map) + 8, optlen);
	EXPECT_EQ(len, map->ranges);
	optlen = sizeof(*map) - 1;
	EXPECT_ERR(EINVAL, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP,
				      map, &optlen));
	EXPECT_LT(0, get_meminfo(self->server, SK_MEMINFO_RMEM_ALLOC));

	/* No memory is held for the map of a complete message */
	set_u32(self->client, DBLP_BUDGET, 0);
	ASSERT_EQ(8, sndinfo_send(self->client, buf, 8, 0,
				  &(struct dblp_sndinfo) { .tag = 77 }));
	ASSERT_EQ(8, recv(self->server, buf, 8, 0));
	EXPECT_EQ(0, get_meminfo(self->server, SK_MEMINFO_RMEM_ALLOC));
	optlen = sizeof(*map);
	ASSERT_EQ(0, getsockopt(self->server, SOL_DBLP, DBLP_LOSSMAP, map,
				&optlen));
	EXPECT_EQ(77, map->tag);
	EXPECT_EQ(1, map->msg_id);
	EXPECT_EQ(0, map->ranges);
}

TEST_HARNESS_MAIN
