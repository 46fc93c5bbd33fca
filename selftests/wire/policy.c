// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a receiver closes a message, and what it reports. The kernel receives; the sender is
 * a scripted peer, which determines the segments and their times.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/counted.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#define WAIT_MS		10000

/* A message of ten segments with a budget of a half */
#define SEG		600U
#define SEGS		10U
#define LENGTH		(SEG * SEGS)
#define HALF		(DBLP_PPM / 2)

FIXTURE(receiver) {
	PLAYED_CONNECTION;
	struct dblp_data d;
	enum half half;
};

FIXTURE_BY_HALF(receiver);

FIXTURE_SETUP(receiver)
{
	one_cpu();
	self->listener = listener_apart(&self->addr);
	self->fd = -1;
	self->half = variant->half;
	self->d = (struct dblp_data) {
		.msg_len = LENGTH, .budget = HALF,
		.policy = DBLP_POLICY_EARLY,
	};
}

FIXTURE_ENDS_BY_EXIT(receiver);

/* Connect a peer that reports this round-trip time; it may have sent its FIN */
static void peer_begin(FIXTURE_DATA(receiver) *self, u32 rtt_ms)
{
	peer_connect(&self->peer, &self->addr);
	self->peer.rtt_us = rtt_ms * 1000;
	peer_handshake(&self->peer);
	self->fd = accept(self->listener, NULL, NULL);
	if (self->fd < 0)
		die("accept()");
	half_close(&self->peer, self->fd, self->half, 100);
}

static void send_segs(FIXTURE_DATA(receiver) *self, u32 first, u32 n,
		      const struct dblp_frame *f)
{
	send_data(&self->peer, &self->p, &self->d, SEG, first, n, f);
}

/* Returns the time from @start until message 0 is closed, ms */
static uint64_t closed_after(struct __test_metadata *_metadata,
			     FIXTURE_DATA(receiver) *self, uint64_t start)
{
	uint64_t ms;

	ASSERT_TRUE(wait_for(self->fd, POLLIN, 2 * WAIT_MS));
	ms = now_ms() - start;
	EXPECT_TRUE(peer_sync(&self->peer));
	TH_LOG("closed after %llu ms", (unsigned long long)ms);
	return ms;
}

/* Read a message and compare it with its CLOSE; a complete message has none. On a busy
 * machine the CLOSE of another message may be repeated.
 */
static struct dblp_rcvinfo read_message(struct __test_metadata *_metadata,
					FIXTURE_DATA(receiver) *self)
{
	static char buf[LENGTH];
	struct message m = {};

	EXPECT_EQ(LENGTH, message_recv(self->fd, buf, sizeof(buf),
				       MSG_DONTWAIT, &m));
	if (m.info.missing) {
		EXPECT_LE(1, self->peer.n_close);
		EXPECT_EQ(self->d.msg_id, self->peer.close.close.msg_id);
		EXPECT_EQ(m.info.missing, self->peer.close.close.missing);
		EXPECT_EQ(m.info.reason, self->peer.close.close.reason);
	} else if (self->peer.n_close) {
		EXPECT_NE(self->d.msg_id, self->peer.close.close.msg_id);
	}
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

/* Without the end of the first pass, the threshold is 1.5 round trips */
TEST_F(receiver, early_waits_until_the_threshold)
{
	uint64_t start = now_ms();

	peer_begin(self, 2000);
	send_segs(self, 0, 9, NULL);
	EXPECT_TRUE(is_open(self));
	EXPECT_LE(3000, closed_after(_metadata, self, start));
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* It waits a quarter of a round trip after the first pass, less than the threshold */
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

/* ... or until three later packets have arrived */
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

/* After a segment that was four packets late, it waits for the next such segment */
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
	/* Do not ACK the CLOSE: its RTT sample would be far below the reported one */
	send_packet(&self->peer, &late);
	EXPECT_TRUE(peer_sync(&self->peer));

	self->d.msg_id = 1;
	self->d.repair = false;
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
	send_segs(self, 0, 8, NULL);
	EXPECT_GT(5000, closed_after(_metadata, self, now_ms()));
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* Without budget, time does not close a message */
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
	struct dblp_frame meta = FRAME(META, meta, .critical = SEG + 1, .total = LENGTH, .tag = 77);

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

/* ms, within which also a busy machine sends the packets of a test */
#define DEADLINE_MS	2000

static struct dblp_frame meta_frame(u32 critical, u32 deadline_ms)
{
	return (struct dblp_frame) {
		.type = DBLP_FRAME_META,
		.meta = {
			.critical = critical, .total = LENGTH,
			.deadline = deadline_ms * 1000,
		},
	};
}

/* With any missing bytes and any budget */
TEST_F(receiver, a_deadline_closes_over_the_budget)
{
	struct dblp_frame meta = meta_frame(0, DEADLINE_MS);
	uint64_t start = now_ms();
	struct dblp_rcvinfo info;

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.budget = DBLP_PPM / 10;
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 3, 1, &meta);
	EXPECT_TRUE(is_open(self));
	EXPECT_LE(DEADLINE_MS, closed_after(_metadata, self, start));
	info = read_message(_metadata, self);
	EXPECT_EQ(LENGTH - SEG, info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, info.flags);
	EXPECT_EQ(info.flags, self->peer.close.close.flags);
}

/* Also with budget 0; later segments have no effect */
TEST_F(receiver, a_deadline_closes_without_a_budget)
{
	struct dblp_frame meta = meta_frame(0, DEADLINE_MS);
	struct dblp_rcvinfo info;

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.budget = 0;
	self->d.policy = DBLP_POLICY_FULL;
	send_segs(self, 0, 9, &meta);
	closed_after(_metadata, self, now_ms());
	send_segs(self, 9, 1, &meta);
	EXPECT_TRUE(peer_sync(&self->peer));
	info = read_message(_metadata, self);
	EXPECT_EQ(SEG, info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, info.flags);
}

/* Missing bytes within the budget are not flagged */
TEST_F(receiver, a_deadline_within_the_budget)
{
	struct dblp_frame meta = meta_frame(0, DEADLINE_MS);
	struct dblp_rcvinfo info;

	peer_begin(self, 60000);
	self->d.meta = true;
	send_segs(self, 0, 5, &meta);
	EXPECT_GT(30000, closed_after(_metadata, self, now_ms()));
	info = read_message(_metadata, self);
	EXPECT_EQ(LENGTH / 2, info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, info.reason);
	EXPECT_EQ(0, info.flags);
}

/* ... unless a smaller cap is the effective budget */
TEST_F(receiver, a_deadline_over_the_cap)
{
	struct dblp_frame meta = meta_frame(0, DEADLINE_MS);

	peer_begin(self, 60000);
	set_u32(self->fd, DBLP_BUDGET_CAP, HALF - 1);
	self->d.meta = true;
	send_segs(self, 0, 5, &meta);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, read_message(_metadata, self).flags);
}

TEST_F(receiver, a_deadline_waits_for_critical_bytes)
{
	struct dblp_frame meta = meta_frame(SEG + 1, 100);
	struct dblp_rcvinfo info;

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.budget = 0;
	send_segs(self, 0, 1, &meta);
	EXPECT_FALSE(wait_for(self->fd, POLLIN, 500));
	send_segs(self, 1, 1, &meta);
	EXPECT_GT(5000, closed_after(_metadata, self, now_ms()));
	info = read_message(_metadata, self);
	EXPECT_EQ(LENGTH - 2 * SEG, info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, info.reason);
}

TEST_F(receiver, a_deadline_that_is_not_needed)
{
	struct dblp_frame meta = meta_frame(0, 60000);
	struct dblp_rcvinfo info;

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.budget = 0;
	send_segs(self, 0, SEGS, &meta);
	EXPECT_GT(30000, closed_after(_metadata, self, now_ms()));
	info = read_message(_metadata, self);
	EXPECT_EQ(DBLP_REASON_COMPLETE, info.reason);
	EXPECT_EQ(0, info.flags);
}

static void send_budget(FIXTURE_DATA(receiver) *self, u32 ppm)
{
	struct dblp_frame f = FRAME(BUDGET, budget, .msg_id = self->d.msg_id, .ppm = ppm);

	send_frame(&self->peer, &self->p, &f);
}

/* No DATA is needed */
TEST_F(receiver, a_raised_budget_closes_at_once)
{
	struct dblp_rcvinfo info;

	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	self->d.budget = 0;
	send_segs(self, 0, 5, NULL);
	EXPECT_TRUE(is_open(self));
	send_budget(self, HALF - 1);
	EXPECT_TRUE(is_open(self));
	send_budget(self, HALF);
	closed_after(_metadata, self, now_ms());
	info = read_message(_metadata, self);
	EXPECT_EQ(LENGTH / 2, info.missing);
	EXPECT_EQ(HALF, info.budget);
	EXPECT_EQ(HALF, self->peer.close.close.budget);
}

/* A DATA packet has the budget, too, also with a duplicate segment */
TEST_F(receiver, data_packets_update_the_budget)
{
	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	self->d.budget = 0;
	send_segs(self, 0, 5, NULL);
	EXPECT_TRUE(is_open(self));
	self->d.budget = HALF;
	send_segs(self, 0, 1, NULL);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(HALF, read_message(_metadata, self).budget);
}

/* A segment of another message than the next is refused when the buffer is full */
TEST_F(receiver, a_refused_segment_changes_no_budget)
{
	uint64_t refused;

	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	self->d.budget = 0;
	send_segs(self, 0, 5, NULL);
	self->d.msg_id = 1;
	send_segs(self, 0, 5, NULL);
	EXPECT_TRUE(is_open(self));
	set_int(self->fd, SO_RCVBUF, 1);
	self->d.budget = HALF;
	refused = mib("DropMemory");
	send_segs(self, 5, 1, NULL);
	EXPECT_TRUE(is_open(self));
	EXPECT_EQ(refused + 1, mib("DropMemory"));
	send_budget(self, HALF);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LT(0, self->peer.n_close);
	EXPECT_EQ(1, self->peer.close.close.msg_id);
}

/* FLOW frames that overtake each other */
TEST_F(receiver, an_old_cap_changes_nothing)
{
	struct dblp_frame f = FRAME(FLOW, flow, .max_msg = 1000, .max_data = 1 << 30, .cap = HALF);
	struct packet old;

	peer_begin(self, 40000);
	make_ctrl(&old, &self->peer, &f);
	f.flow.cap = 0;
	send_frame(&self->peer, &self->p, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	send_packet(&self->peer, &old);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, get_info(self->fd).peer_budget_cap);
}

TEST_F(receiver, a_lowered_budget_holds)
{
	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 0, 4, NULL);
	send_budget(self, DBLP_PPM / 10);
	self->d.budget = DBLP_PPM / 10;
	send_segs(self, 4, 4, NULL);
	EXPECT_TRUE(is_open(self));
	send_segs(self, 8, 1, NULL);
	closed_after(_metadata, self, now_ms());
	EXPECT_EQ(SEG, read_message(_metadata, self).missing);
}

/* The packet with the largest number determines the budget, not the last arrival */
TEST_F(receiver, an_old_budget_changes_nothing)
{
	struct packet old;

	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 0, 4, NULL);
	self->d.offset = 5 * SEG;
	make_data(&old, &self->peer, &self->d, SEG, NULL);
	send_budget(self, DBLP_PPM / 10);
	EXPECT_TRUE(is_open(self));
	send_packet(&self->peer, &old);
	EXPECT_TRUE(is_open(self));
}

/* The message is complete by ACKs */
TEST_F(receiver, a_budget_that_comes_too_late_changes_nothing)
{
	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	self->d.budget = 0;
	send_segs(self, 0, SEGS, NULL);
	EXPECT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
	send_budget(self, HALF);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(self->peer.acked[self->peer.pn - 2]);
	EXPECT_EQ(0, read_message(_metadata, self).missing);
}

/* Read a message; returns the reason of its close */
static int take_reason(FIXTURE_DATA(receiver) *self)
{
	static char buf[LENGTH];
	struct message m = {};

	if (!wait_for(self->fd, POLLIN, WAIT_MS) ||
	    message_recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT, &m) !=
	    LENGTH)
		die("no message");
	message_free(&m);
	self->d.msg_id++;
	return m.info.reason;
}

TEST_F(receiver, each_reason_is_counted)
{
	struct dblp_frame meta = meta_frame(0, 1);
	static const struct counted none;
	struct counted sock;
	struct dblp_info i;

	peer_begin(self, 20);
	self->d.policy = DBLP_POLICY_FULL;
	send_segs(self, 0, 10, NULL);
	EXPECT_EQ(DBLP_REASON_COMPLETE, take_reason(self));
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 0, 5, NULL);
	EXPECT_EQ(DBLP_REASON_BUDGET, take_reason(self));
	send_segs(self, 5, 5, NULL);
	EXPECT_EQ(DBLP_REASON_BUDGET, take_reason(self));
	self->d.policy = DBLP_POLICY_FULL;
	self->d.meta = true;
	while (self->d.msg_id < 6) {
		meta.meta.msg_id = self->d.msg_id;
		send_segs(self, 0, 1, &meta);
		EXPECT_EQ(DBLP_REASON_DEADLINE, take_reason(self));
	}

	i = get_info(self->fd);
	sock = (struct counted) { i.msgs_received, i.msgs_received_early,
				  { i.msgs_received_complete,
				    i.msgs_received_budget,
				    i.msgs_received_deadline } };
	EXPECT_EQ(0, memcmp(&one_two_three, &sock, sizeof(sock)));
	sock = counted_here("Received");
	EXPECT_EQ(0, memcmp(&one_two_three, &sock, sizeof(sock)));
	sock = counted_here("Sent");
	EXPECT_EQ(0, memcmp(&none, &sock, sizeof(sock)));
}

TEST_HARNESS_MAIN
