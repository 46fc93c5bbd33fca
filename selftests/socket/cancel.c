// SPDX-License-Identifier: GPL-2.0-only
/*
 * DBLP_CANCEL between two sockets: messages that wait for credit, are in flight, or are in
 * pieces. Both ends agree, and later messages are not blocked.
 */
#define _GNU_SOURCE
#include <linux/sockios.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/conn.h"

#define LEN		40000

/* A connection with credit for one message of LEN bytes */
FIXTURE(narrow) {
	struct sockaddr_dblp addr;
	char *buf;
	int listener;
	int client;
	int server;
};

/* Connect to a receiver with this buffer, in placement mode or not */
static void join(FIXTURE_DATA(narrow) *self, int rcvbuf, bool placement)
{
	self->listener = plain_socket();
	addr_parse(&self->addr, "127.0.0.1", 0);
	set_int(self->listener, SO_RCVBUFFORCE, rcvbuf);
	set_u32(self->listener, DBLP_PLACEMENT, placement);
	if (bind_to(self->listener, &self->addr) || listen(self->listener, 1))
		die("listening");
	local_name(self->listener, &self->addr);
	self->client = plain_socket();
	set_int(self->client, SO_SNDBUFFORCE, 32 << 20);
	set_u32(self->client, DBLP_NOTIFY, 1);
	if (connect_to(self->client, &self->addr))
		die("connect()");
	self->server = accept(self->listener, NULL, NULL);
	if (self->server < 0)
		die("accept()");
	set_timeout(self->server, SO_RCVTIMEO, 10 * SECONDS);
}

static void leave(FIXTURE_DATA(narrow) *self)
{
	close(self->server);
	close(self->client);
	close(self->listener);
}

FIXTURE_SETUP(narrow)
{
	netns_new();
	self->buf = noise_new(8 << 20);
	join(self, 50000, false);
}

FIXTURE_ENDS_BY_EXIT(narrow);

static void send_tag(FIXTURE_DATA(narrow) *self, uint64_t tag, size_t len)
{
	struct dblp_sndinfo info = { .tag = tag };

	if (sndinfo_send(self->client, self->buf, len, 0, &info) != (ssize_t)len)
		die("sendmsg(%zu)", len);
}

/* The next report is that of message @number */
static void expect_report(struct __test_metadata *_metadata,
			  FIXTURE_DATA(narrow) *self, uint64_t tag,
			  uint32_t number, uint32_t len, enum dblp_reason reason)
{
	bool cancelled = reason == DBLP_REASON_CANCELLED;
	struct message m;

	ASSERT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	ASSERT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(tag, m.info.tag);
	EXPECT_EQ(number, m.info.msg_id);
	EXPECT_EQ(len, m.info.length);
	EXPECT_EQ(reason, m.info.reason);
	EXPECT_EQ(cancelled ? len : 0, m.info.missing);
	ASSERT_EQ(cancelled, m.n);
	if (cancelled)
		EXPECT_TRUE(!m.range[0].offset && m.range[0].length == len);
	message_free(&m);
}

/* Reading message @number fails with ECANCELED, and all of it is missing */
static void expect_cancelled(struct __test_metadata *_metadata, int fd,
			     uint64_t tag, uint32_t number, uint32_t len)
{
	struct {
		struct dblp_lossmap	map;
		struct dblp_range	range[2];
	} got = { 0 };
	socklen_t size = sizeof(got);
	char buf[16];

	EXPECT_ERR(ECANCELED, recv(fd, buf, sizeof(buf), 0));
	ASSERT_EQ(0, getsockopt(fd, SOL_DBLP, DBLP_LOSSMAP, &got, &size));
	EXPECT_EQ(tag, got.map.tag);
	EXPECT_EQ(number, got.map.msg_id);
	EXPECT_EQ(1, got.map.ranges);
	EXPECT_EQ(0, got.range[0].offset);
	EXPECT_EQ(len, got.range[0].length);
}

static void expect_counted(struct __test_metadata *_metadata,
			   FIXTURE_DATA(narrow) *self, uint32_t cancelled,
			   uint32_t others)
{
	struct dblp_info out = get_info(self->client), in = get_info(self->server);

	EXPECT_EQ(cancelled, out.msgs_sent_cancelled);
	EXPECT_EQ(cancelled, in.msgs_received_cancelled);
	EXPECT_EQ(cancelled, out.msgs_sent_early);
	EXPECT_EQ(others, in.msgs_received_complete);
	EXPECT_EQ(cancelled + others, out.msgs_sent);
	EXPECT_EQ(cancelled + others, in.msgs_received);
	EXPECT_EQ(cancelled, mib("MsgSentCancelled"));
	EXPECT_EQ(cancelled, mib("MsgReceivedCancelled"));
}

TEST_F(narrow, a_message_without_credit_is_never_sent)
{
	/* Size of the whole window */
	const uint32_t all = get_info(self->client).peer_msg_max;
	uint32_t before, left = 0;

	send_tag(self, 1, all);
	send_tag(self, 2, LEN);
	send_tag(self, 3, 1000);
	before = get_meminfo(self->client, SK_MEMINFO_WMEM_QUEUED);
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 2));
	/* Its memory is free before the peer receives the CANCEL */
	EXPECT_LE(LEN, before - get_meminfo(self->client, SK_MEMINFO_WMEM_QUEUED));
	EXPECT_ERR(EALREADY, try_u64(self->client, DBLP_CANCEL, 2));
	EXPECT_EQ(all, recv(self->server, self->buf, all, 0));
	expect_cancelled(_metadata, self->server, 2, 1, LEN);
	EXPECT_EQ(1000, recv(self->server, self->buf, LEN, 0));
	expect_report(_metadata, self, 1, 0, all, DBLP_REASON_COMPLETE);
	expect_report(_metadata, self, 2, 1, LEN, DBLP_REASON_CANCELLED);
	expect_report(_metadata, self, 3, 2, 1000, DBLP_REASON_COMPLETE);
	EXPECT_EQ(all + 1000, get_info(self->client).bytes_first);
	EXPECT_EQ(LEN, get_info(self->client).bytes_forgiven_unsent);
	EXPECT_EQ(0, ioctl(self->client, SIOCOUTQ, &left));
	EXPECT_EQ(0, left);
	expect_counted(_metadata, self, 1, 2);
}

/* Cancelled bytes need no credit: the receiver does not read here */
TEST_F(narrow, a_cancelled_message_needs_no_credit)
{
	uint64_t tag;

	send_tag(self, 1, 15000);
	for (tag = 2; tag < 12; tag++)
		send_tag(self, tag, LEN);
	for (tag = 2; tag < 12; tag++)
		ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, tag));
	expect_report(_metadata, self, 1, 0, 15000, DBLP_REASON_COMPLETE);
	for (tag = 2; tag < 12; tag++)
		expect_report(_metadata, self, tag, tag - 1, LEN,
			      DBLP_REASON_CANCELLED);
	EXPECT_EQ(15000, recv(self->server, self->buf, LEN, 0));
	for (tag = 2; tag < 12; tag++)
		expect_cancelled(_metadata, self->server, tag, tag - 1, LEN);
	/* The whole credit is available again, and no more */
	for (tag = 12; tag < 16; tag++) {
		send_tag(self, tag, LEN);
		send_tag(self, tag, 15000);
		EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
		EXPECT_EQ(15000, recv(self->server, self->buf, LEN, 0));
	}
	expect_report(_metadata, self, 12, 11, LEN, DBLP_REASON_COMPLETE);
	EXPECT_EQ(10, get_info(self->server).msgs_received_cancelled);
}

TEST_F(narrow, a_message_in_flight_is_stopped)
{
	const uint32_t len = 4 << 20;
	uint64_t sent;

	leave(self);
	join(self, 2 * len, false);
	run("tc qdisc replace dev lo root tbf rate 20mbit burst 20k limit 10m");
	send_tag(self, 7, len);
	do
		sleep_ms(1);
	while (!(sent = get_info(self->client).bytes_first));
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 7));
	sent = get_info(self->client).bytes_first;
	ASSERT_GT(len / 2, sent);
	expect_cancelled(_metadata, self->server, 7, 0, len);
	expect_report(_metadata, self, 7, 0, len, DBLP_REASON_CANCELLED);
	EXPECT_EQ(sent, get_info(self->client).bytes_first);
	EXPECT_EQ(0, get_info(self->client).bytes_again);
	EXPECT_EQ(sent, get_info(self->client).bytes_forgiven_sent);
	send_tag(self, 8, 1000);
	EXPECT_EQ(1000, recv(self->server, self->buf, LEN, 0));
	expect_report(_metadata, self, 8, 1, 1000, DBLP_REASON_COMPLETE);
	expect_counted(_metadata, self, 1, 1);
}

TEST_F(narrow, the_oldest_of_several_is_cancelled)
{
	send_tag(self, 0, LEN);
	send_tag(self, 5, LEN);
	send_tag(self, 6, 1000);
	send_tag(self, 5, 2000);
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 5));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	expect_cancelled(_metadata, self->server, 5, 1, LEN);
	EXPECT_EQ(1000, recv(self->server, self->buf, LEN, 0));
	EXPECT_EQ(2000, recv(self->server, self->buf, LEN, 0));
}

TEST_F(narrow, bad_calls_change_nothing)
{
	uint64_t tag = 2;
	int fd = plain_socket();

	EXPECT_ERR(ENOTCONN, try_u64(fd, DBLP_CANCEL, 1));
	close(fd);
	EXPECT_ERR(ENOTCONN, try_u64(self->listener, DBLP_CANCEL, 1));
	EXPECT_ERR(ENOENT, try_u64(self->client, DBLP_CANCEL, 0));
	send_tag(self, 1, LEN);
	send_tag(self, 2, LEN);
	EXPECT_ERR(ENOENT, try_u64(self->client, DBLP_CANCEL, 3));
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_CANCEL, &tag, 4));
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_CANCEL, &tag, 16));
	EXPECT_ERR(EFAULT, setsockopt(self->client, SOL_DBLP, DBLP_CANCEL, NULL, 8));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	expect_report(_metadata, self, 1, 0, LEN, DBLP_REASON_COMPLETE);
	expect_report(_metadata, self, 2, 1, LEN, DBLP_REASON_COMPLETE);
	EXPECT_ERR(ENOENT, try_u64(self->client, DBLP_CANCEL, 2));
	expect_counted(_metadata, self, 0, 2);
}

TEST_F(narrow, peeking_leaves_the_error)
{
	char c;

	send_tag(self, 1, LEN);
	send_tag(self, 2, LEN);
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 2));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	EXPECT_ERR(ECANCELED, recv(self->server, &c, 1, MSG_PEEK));
	EXPECT_ERR(ECANCELED, recv(self->server, &c, 1, MSG_PEEK));
	expect_cancelled(_metadata, self->server, 2, 1, LEN);
	EXPECT_ERR(EAGAIN, recv(self->server, &c, 1, MSG_DONTWAIT));
}

TEST_F(narrow, end_of_file_follows_a_cancelled_message)
{
	send_tag(self, 1, LEN);
	send_tag(self, 2, LEN);
	ASSERT_EQ(0, shutdown(self->client, SHUT_WR));
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 2));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	expect_cancelled(_metadata, self->server, 2, 1, LEN);
	EXPECT_EQ(0, recv(self->server, self->buf, LEN, 0));
}

/* The search releases the socket lock in between */
TEST_F(narrow, the_last_of_thousands_is_found)
{
	uint32_t i;

	send_tag(self, 1, LEN);
	for (i = 2; i < 5000; i++)
		send_tag(self, i, 100);
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 4999));
	EXPECT_EQ(LEN, recv(self->server, self->buf, LEN, 0));
	for (i = 2; i < 4999; i++)
		ASSERT_EQ(100, recv(self->server, self->buf, LEN, 0));
	expect_cancelled(_metadata, self->server, 4999, 4998, 100);
}

/* A message of the user in pieces, because it exceeds the send buffer */
TEST_F(narrow, a_message_in_pieces_is_one)
{
	const uint32_t len = 90000;

	leave(self);
	join(self, 100000, false);
	set_int(self->client, SO_SNDBUFFORCE, 150000);
	send_tag(self, 1, 30000);
	send_tag(self, 2, len);
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 2));
	EXPECT_EQ(30000, recv(self->server, self->buf, LEN, 0));
	expect_cancelled(_metadata, self->server, 2, 1, len);
	expect_report(_metadata, self, 1, 0, 30000, DBLP_REASON_COMPLETE);
	expect_report(_metadata, self, 2, 1, len, DBLP_REASON_CANCELLED);
	send_tag(self, 3, 1000);
	EXPECT_EQ(1000, recv(self->server, self->buf, LEN, 0));
	expect_report(_metadata, self, 3, 2, 1000, DBLP_REASON_COMPLETE);
	expect_counted(_metadata, self, 1, 2);
}

/* The message ends with an error, so placed bytes are invalid */
TEST_F(narrow, a_message_is_cancelled_while_it_is_placed)
{
	const uint32_t len = 8 << 20;
	struct dblp_sndinfo info = { .tag = 9 };
	ssize_t n, got;
	int left;
	unsigned char *to = new_pages(len);

	leave(self);
	join(self, 100000, true);
	set_int(self->client, SO_SNDBUFFORCE, 1 << 20);
	set_u32(self->client, DBLP_PARTIAL_SEND, 1);
	n = sndinfo_send(self->client, self->buf, len, MSG_DONTWAIT, &info);
	ASSERT_LT(0, n);
	/* Wait until the receiver has dropped all bytes that the call took */
	do {
		recv(self->server, to, len, MSG_DONTWAIT);
		sleep_ms(1);
		ASSERT_EQ(0, ioctl(self->client, SIOCOUTQ, &left));
	} while (left);
	while (n < len) {
		/* A message whose rest was not sent yet cannot be cancelled */
		EXPECT_ERR(EBUSY, try_u64(self->client, DBLP_CANCEL, 9));
		recv(self->server, to, len, MSG_DONTWAIT);
		got = sndinfo_send(self->client, self->buf + n, len - n,
				   MSG_DONTWAIT, &info);
		if (got > 0)
			n += got;
		else
			sleep_ms(1);
	}
	ASSERT_EQ(0, try_u64(self->client, DBLP_CANCEL, 9));
	do
		n = RESULT(recv(self->server, to, len, 0));
	while (n > 0);
	EXPECT_EQ(-ECANCELED, n);
	expect_report(_metadata, self, 9, 0, len, DBLP_REASON_CANCELLED);
	send_tag(self, 10, 1000);
	EXPECT_EQ(1000, recv(self->server, to, len, 0));
	EXPECT_EQ(0, memcmp(to, self->buf, 1000));
}

TEST_HARNESS_MAIN
