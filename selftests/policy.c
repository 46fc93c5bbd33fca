// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a message is closed, and what both ends say of it then. One end is the
 * kernel's, the other is played by the test, so that exactly the segments come
 * that should, exactly when they should.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "lib/scripted.h"

#define WAIT_MS		10000

/* A message of ten segments; half of it may be missing */
#define SEG		600U
#define SEGS		10U
#define LENGTH		(SEG * SEGS)
#define HALF		(DBLP_PPM / 2)

FIXTURE(receiver) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	struct dblp_data d;
	int listener;
	int fd;
};

FIXTURE_SETUP(receiver)
{
	socklen_t len = sizeof(self->addr);

	netns_new();
	netns_set_mtu(1500);
	self->listener = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	addr_parse(&self->addr, "127.0.0.1", 0);
	if (self->listener < 0 ||
	    bind(self->listener, (struct sockaddr *)&self->addr, len) ||
	    listen(self->listener, 8) ||
	    getsockname(self->listener, (struct sockaddr *)&self->addr, &len))
		die("listening");
	self->fd = -1;
	self->d = (struct dblp_data) {
		.msg_len = LENGTH, .budget = HALF,
		.policy = DBLP_POLICY_EARLY,
	};
}

FIXTURE_TEARDOWN(receiver)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

/* A peer that says it has measured this round trip */
static void peer_begin(FIXTURE_DATA(receiver) *self, u32 rtt_ms)
{
	peer_connect(&self->peer, &self->addr);
	self->peer.rtt_us = rtt_ms * 1000;
	peer_handshake(&self->peer);
	self->fd = accept(self->listener, NULL, NULL);
	if (self->fd < 0)
		die("accept()");
}

static void send_segs(FIXTURE_DATA(receiver) *self, u32 first, u32 n,
		      const struct dblp_frame *f)
{
	for (; n; n--, first++) {
		self->d.offset = first * SEG;
		make_data(&self->p, &self->peer, &self->d, SEG, f);
		send_packet(&self->peer, &self->p);
	}
}

/* Milliseconds from @start until message 0 is closed; it must be in the end */
static uint64_t closed_after(struct __test_metadata *_metadata,
			     FIXTURE_DATA(receiver) *self, uint64_t start)
{
	uint64_t ms;

	ASSERT_TRUE(wait_for(self->fd, POLLIN, 2 * WAIT_MS));
	ms = now_ms() - start;
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LE(1, self->peer.n_close);
	EXPECT_EQ(self->d.msg_id, self->peer.close.close.msg_id);
	TH_LOG("closed after %llu ms", (unsigned long long)ms);
	return ms;
}

static struct dblp_rcvinfo read_message(struct __test_metadata *_metadata,
					FIXTURE_DATA(receiver) *self)
{
	static char buf[LENGTH];
	struct message m = {};

	EXPECT_EQ(LENGTH, message_recv(self->fd, buf, sizeof(buf),
				       MSG_DONTWAIT, &m));
	EXPECT_EQ(m.info.missing, self->peer.close.close.missing);
	EXPECT_EQ(m.info.reason, self->peer.close.close.reason);
	message_free(&m);
	return m.info;
}

static bool is_open(FIXTURE_DATA(receiver) *self)
{
	return peer_sync(&self->peer) && !self->peer.n_close &&
	       !wait_for(self->fd, POLLIN, 0);
}

TEST_F(receiver, eager_closes_at_once)
{
	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 0, 4, NULL);
	EXPECT_TRUE(is_open(self));
	send_segs(self, 7, 1, NULL);
	EXPECT_GT(5000, closed_after(_metadata, self, now_ms()));
	EXPECT_EQ(LENGTH / 2, read_message(_metadata, self).missing);
}

/* Nobody says that the first pass is over: 1.5 round trips */
TEST_F(receiver, early_waits_until_the_threshold)
{
	uint64_t start = now_ms();

	peer_begin(self, 400);
	send_segs(self, 0, 9, NULL);
	EXPECT_TRUE(is_open(self));
	EXPECT_LE(600, closed_after(_metadata, self, start));
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* A quarter of a round trip after the first pass, long before the threshold */
TEST_F(receiver, early_waits_for_stragglers_of_the_first_pass)
{
	uint64_t start = now_ms(), ms;

	peer_begin(self, 8000);
	send_segs(self, 0, 8, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	ms = closed_after(_metadata, self, start);
	EXPECT_LE(2000, ms);
	EXPECT_GT(12000, ms);
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* ... or as soon as three later packets have come */
TEST_F(receiver, early_counts_later_packets)
{
	uint64_t start;

	peer_begin(self, 60000);
	send_segs(self, 0, 8, NULL);
	self->d.repair = true;
	start = now_ms();
	send_segs(self, 9, 1, NULL);
	EXPECT_TRUE(is_open(self));
	send_segs(self, 0, 2, NULL);
	EXPECT_GT(5000, closed_after(_metadata, self, start));
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

TEST_F(receiver, early_takes_a_straggler)
{
	struct dblp_rcvinfo info;

	peer_begin(self, 60000);
	send_segs(self, 0, 8, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	EXPECT_TRUE(is_open(self));
	self->d.repair = false;
	send_segs(self, 8, 1, NULL);
	closed_after(_metadata, self, now_ms());
	info = read_message(_metadata, self);
	EXPECT_EQ(0, info.missing);
	EXPECT_EQ(DBLP_REASON_COMPLETE, info.reason);
}

/* One that came four packets late is waited for the next time */
TEST_F(receiver, early_learns_from_a_straggler)
{
	struct packet late;

	peer_begin(self, 60000);
	send_segs(self, 0, 8, NULL);
	self->d.offset = 8 * SEG;
	make_data(&late, &self->peer, &self->d, SEG, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	send_segs(self, 0, 3, NULL);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
	send_packet(&self->peer, &late);
	EXPECT_TRUE(peer_sync(&self->peer));

	self->d.msg_id = 1;
	self->d.repair = false;
	self->peer.n_close = 0;
	self->peer.close.close.msg_id = 0;
	send_segs(self, 0, 9, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(0, read_message(_metadata, self).missing);

	self->d.msg_id = 2;
	self->d.repair = false;
	send_segs(self, 0, 8, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	send_segs(self, 0, 2, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 0));
	send_segs(self, 0, 3, NULL);
	EXPECT_GT(5000, closed_after(_metadata, self, now_ms()));
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* Time alone forgives nothing */
TEST_F(receiver, early_never_exceeds_the_budget)
{
	peer_begin(self, 20);
	send_segs(self, 0, 3, NULL);
	self->d.repair = true;
	send_segs(self, 9, 1, NULL);
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 1000));
	send_segs(self, 8, 1, NULL);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(LENGTH / 2, read_message(_metadata, self).missing);
}

TEST_F(receiver, early_needs_critical_bytes_and_meta)
{
	struct dblp_frame meta = {
		.type = DBLP_FRAME_META,
		.meta = { .critical = SEG + 1, .total = LENGTH, .tag = 77 },
	};

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.repair = true;
	send_segs(self, 2, 8, NULL);
	send_segs(self, 0, 1, NULL);
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 500));
	send_segs(self, 0, 1, &meta);
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 500));
	send_segs(self, 1, 1, &meta);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(77, read_message(_metadata, self).tag);
}

TEST_HARNESS_MAIN
