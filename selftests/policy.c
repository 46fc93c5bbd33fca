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

/* How many messages were closed for each reason, in all that counts them */
struct counted {
	uint64_t all;
	uint64_t early;
	uint64_t reason[__DBLP_REASON_MAX];
};

/* One message closed as complete, two for the budget, three for the deadline */
static const struct counted one_two_three = {
	.all = 6, .early = 5, .reason = { 1, 2, 3 },
};

static struct counted counted_here(const char *side)
{
	static const char *const names[] = {
		"", "Early", "Complete", "Budget", "Deadline",
	};
	uint64_t n[5];
	char name[40];
	int i;

	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "Msg%s%s", side, names[i]);
		n[i] = mib(name);
	}
	return (struct counted) { n[0], n[1], { n[2], n[3], n[4] } };
}

static struct dblp_info info_of(int fd)
{
	struct dblp_info info = {};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	return info;
}

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

/* Whatever is missing, and however small the budget is */
TEST_F(receiver, a_deadline_closes_over_the_budget)
{
	struct dblp_frame meta = meta_frame(0, 300);
	uint64_t start = now_ms();
	struct dblp_rcvinfo info;

	peer_begin(self, 20);
	self->d.meta = true;
	self->d.budget = DBLP_PPM / 10;
	self->d.policy = DBLP_POLICY_EAGER;
	send_segs(self, 3, 1, &meta);
	EXPECT_TRUE(is_open(self));
	EXPECT_LE(300, closed_after(_metadata, self, start));
	info = read_message(_metadata, self);
	EXPECT_EQ(LENGTH - SEG, info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, info.flags);
	EXPECT_EQ(info.flags, self->peer.close.close.flags);
}

/* Also a message that is to be complete otherwise; later segments change nothing */
TEST_F(receiver, a_deadline_closes_without_a_budget)
{
	struct dblp_frame meta = meta_frame(0, 300);
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

/* What fits the budget is not said to exceed it */
TEST_F(receiver, a_deadline_within_the_budget)
{
	struct dblp_frame meta = meta_frame(0, 300);
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

/* ... and a smaller cap makes it exceed it again */
TEST_F(receiver, a_deadline_over_the_cap)
{
	struct dblp_frame meta = meta_frame(0, 300);
	u32 cap = HALF - 1;

	peer_begin(self, 60000);
	if (setsockopt(self->fd, SOL_DBLP, DBLP_BUDGET_CAP, &cap, sizeof(cap)))
		die("setsockopt()");
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
	struct dblp_frame f = {
		.type = DBLP_FRAME_BUDGET,
		.budget = { .msg_id = self->d.msg_id, .ppm = ppm },
	};

	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
}

/* No DATA has to come for it */
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

/* DATA says it, too, also with a segment that is there already */
TEST_F(receiver, data_says_the_budget)
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

/* The order of packet numbers counts, not that of arrival */
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

/* The sender waits for a CLOSE now: it has to come */
TEST_F(receiver, a_budget_that_comes_too_late_is_answered)
{
	peer_begin(self, 40000);
	self->d.policy = DBLP_POLICY_EAGER;
	self->d.budget = 0;
	send_segs(self, 0, SEGS, NULL);
	EXPECT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n_close);
	self->peer.close.close.missing = 1;
	send_budget(self, HALF);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LE(1, self->peer.n_close);
	EXPECT_EQ(0, self->peer.close.close.missing);
	EXPECT_EQ(DBLP_REASON_COMPLETE, self->peer.close.close.reason);
	EXPECT_EQ(0, read_message(_metadata, self).missing);
}

/* The kernel sends, the test receives */
/* Read one message and say why it was closed */
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

	i = info_of(self->fd);
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

FIXTURE(sender) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	u32 next_id;
	int listener;
	int fd;
};

FIXTURE_SETUP(sender)
{
	socklen_t len = sizeof(self->addr);
	u32 one = 1;

	netns_new();
	netns_set_mtu(1500);
	self->listener = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	addr_parse(&self->addr, "127.0.0.1", 0);
	if (self->listener < 0 ||
	    bind(self->listener, (struct sockaddr *)&self->addr, len) ||
	    listen(self->listener, 8) ||
	    getsockname(self->listener, (struct sockaddr *)&self->addr, &len))
		die("listening");
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	if (self->fd < 0 ||
	    setsockopt(self->fd, SOL_DBLP, DBLP_NOTIFY, &one, sizeof(one)))
		die("accept()");
}

FIXTURE_TEARDOWN(sender)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

/* Send a message and take the packets of its first pass */
static struct dblp_data send_and_take(FIXTURE_DATA(sender) *self, u32 len,
				      const struct dblp_sndinfo *info)
{
	static char buf[100000];
	struct dblp_data d = {};
	u32 bytes = 0, want = len;
	u32 budget;
	socklen_t optlen = sizeof(budget);

	/* With eager, the budget is held back */
	if (getsockopt(self->fd, SOL_DBLP, DBLP_BUDGET, &budget, &optlen))
		die("getsockopt()");
	if (!info)
		want -= budget_bytes(budget, len) / 1440 * 1440;
	pattern_fill(buf, len, 0, SCRIPTED_SEED, 0);
	if (sndinfo_send(self->fd, buf, len, 0, info) != len)
		die("sendmsg()");
	while (bytes < want) {
		const struct packet *p = &self->peer.last[DBLP_PKT_DATA];
		struct dblp_hdr h;

		errno = 0;
		if (!peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS) ||
		    dblp_get_hdr(&h, p->byte, p->len) ||
		    dblp_get_data(&d, &h, p->byte + DBLP_HDR_LEN,
				  p->len - DBLP_HDR_LEN, p->len))
			die("%u bytes of %u have come", bytes, len);
		/* A probe for the message before */
		if (d.msg_id != self->next_id)
			continue;
		bytes += d.seg_len;
		if (bytes < want && d.repair)
			die("the first pass ends after %u bytes", bytes);
	}
	self->next_id++;
	return d;
}

static void send_frame(FIXTURE_DATA(sender) *self, const struct dblp_frame *f)
{
	make_ctrl(&self->p, &self->peer, f);
	send_packet(&self->peer, &self->p);
}

TEST_F(sender, early_marks_the_end_of_the_first_pass)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = HALF, .policy = DBLP_POLICY_EARLY,
	};
	struct dblp_data d = send_and_take(self, 10000, &info);

	EXPECT_EQ(DBLP_POLICY_EARLY, d.policy);
	EXPECT_TRUE(d.repair);
}

/* The receiver gives up at the deadline: the sender hears how much */
TEST_F(sender, hears_of_a_deadline)
{
	struct dblp_sndinfo info = {
		.tag = 5, .flags = DBLP_SND_DEADLINE, .deadline = 1000,
		.critical = 8,
	};
	struct dblp_frame close = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 10000 - 1000, .missing_segs = 1,
			.reason = DBLP_REASON_DEADLINE,
			.flags = DBLP_RCV_OVER_BUDGET,
		},
	};
	struct dblp_data d = send_and_take(self, 10000, &info);
	u8 bits[4] = { 0, 0, 0, 0xfe };
	struct dblp_frame map = {
		.type = DBLP_FRAME_LOSSMAP,
		.lossmap = { .words = 1, .bits = bits },
	};
	struct message m;
	u32 seg = 1500 - 28 - 32 - DBLP_META_LEN;

	/* All but the first of eight segments */
	EXPECT_TRUE(d.meta);
	EXPECT_EQ(0, d.budget);
	close.close.missing = 10000 - seg / 8 * 8;
	close.close.missing_segs = 7;
	send_frame(self, &close);
	send_frame(self, &map);
	ASSERT_TRUE(wait_for(self->fd, POLLERR, WAIT_MS));
	ASSERT_EQ(0, message_recv(self->fd, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(close.close.missing, m.info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, m.info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, m.info.flags);
	EXPECT_EQ(1, m.n);
	message_free(&m);
}

/* A deadline does not excuse critical bytes */
TEST_F(sender, refuses_a_deadline_without_critical_bytes)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_DEADLINE, .deadline = 1000, .critical = 5000,
	};
	struct dblp_frame close = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 5001, .missing_segs = 4,
			.reason = DBLP_REASON_DEADLINE,
			.flags = DBLP_RCV_OVER_BUDGET,
		},
	};

	send_and_take(self, 10000, &info);
	send_frame(self, &close);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, self->peer.rst_reason);
}

static void set_budget(FIXTURE_DATA(sender) *self, u32 ppm)
{
	if (setsockopt(self->fd, SOL_DBLP, DBLP_BUDGET, &ppm, sizeof(ppm)))
		die("setsockopt(DBLP_BUDGET)");
}

/* The report of message 0 */
static struct dblp_rcvinfo take_report(struct __test_metadata *_metadata,
				       FIXTURE_DATA(sender) *self)
{
	struct message m = {};

	EXPECT_TRUE(wait_for(self->fd, POLLERR, WAIT_MS));
	EXPECT_EQ(0, message_recv(self->fd, NULL, 0,
				  MSG_ERRQUEUE | MSG_DONTWAIT, &m));
	message_free(&m);
	return m.info;
}

/* All is in flight: a frame says it */
TEST_F(sender, tells_of_a_new_budget)
{
	send_and_take(self, 10000, NULL);
	set_budget(self, HALF);
	while (self->peer.budget.budget.ppm != HALF)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_EQ(0, self->peer.budget.budget.msg_id);

	/* Until it is acknowledged */
	memset(&self->peer.budget, 0, sizeof(self->peer.budget));
	while (self->peer.budget.budget.ppm != HALF)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
}

/* What the message was given by itself stays */
TEST_F(sender, keeps_the_budget_of_a_message)
{
	struct dblp_sndinfo info = { .flags = DBLP_SND_BUDGET, .budget = 10 };
	struct dblp_frame close = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 1440, .missing_segs = 1, .budget = HALF,
			.reason = DBLP_REASON_BUDGET,
		},
	};

	send_and_take(self, 10000, &info);
	set_budget(self, HALF);
	EXPECT_FALSE(peer_expect(&self->peer, DBLP_PKT_CTRL, 300) &&
		     self->peer.budget.budget.ppm);
	send_frame(self, &close);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, self->peer.rst_reason);
}

static void close_with(FIXTURE_DATA(sender) *self, u32 budget)
{
	u8 bits[4] = { 0, 0, 0, 2 };
	struct dblp_frame map = {
		.type = DBLP_FRAME_LOSSMAP,
		.lossmap = { .words = 1, .bits = bits },
	};
	struct dblp_frame close = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 1440, .missing_segs = 1, .budget = budget,
			.reason = DBLP_REASON_BUDGET,
		},
	};

	send_frame(self, &close);
	send_frame(self, &map);
}

/* Acknowledgments alone are not the end once a budget was told */
TEST_F(sender, waits_for_the_close_after_raising)
{
	send_and_take(self, 10000, NULL);
	set_budget(self, HALF);
	peer_ack(&self->peer, 0, self->peer.largest - 1);
	EXPECT_FALSE(wait_for(self->fd, POLLERR, 300));
	close_with(self, HALF);
	EXPECT_EQ(1440, take_report(_metadata, self).missing);
}

/* A CLOSE under the higher budget may have been on its way */
TEST_F(sender, takes_a_close_under_the_budget_before)
{
	struct dblp_rcvinfo info;

	set_budget(self, HALF);
	send_and_take(self, 5000, NULL);
	set_budget(self, 1);
	close_with(self, HALF);
	info = take_report(_metadata, self);
	EXPECT_EQ(1440, info.missing);
	EXPECT_EQ(HALF, info.budget);
}

/* ... but it may not mix the two, nor claim what never was */
TEST_F(sender, refuses_a_close_beyond_any_budget)
{
	set_budget(self, HALF);
	send_and_take(self, 5000, NULL);
	set_budget(self, 1);
	close_with(self, 1);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
}

TEST_F(sender, refuses_a_close_under_a_budget_that_never_was)
{
	set_budget(self, HALF);
	send_and_take(self, 5000, NULL);
	set_budget(self, 1);
	close_with(self, HALF + 1);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
}

/* Send message @id as @info says, and close it for @reason with @missing bytes */
static void send_and_close(FIXTURE_DATA(sender) *self, u32 id,
			   const struct dblp_sndinfo *info, u8 reason,
			   u32 missing)
{
	u8 bits[4] = { 0, 0, 0, 2 };
	struct dblp_frame map = {
		.type = DBLP_FRAME_LOSSMAP,
		.lossmap = { .msg_id = id, .words = 1, .bits = bits },
	};
	struct dblp_frame close = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.msg_id = id, .missing = missing, .missing_segs = 1,
			.budget = info->budget, .reason = reason,
			.flags = info->budget ? 0 : DBLP_RCV_OVER_BUDGET,
		},
	};

	send_and_take(self, 2000, info);
	send_frame(self, &close);
	send_frame(self, &map);
	/* The next one needs the room that this one takes in the window */
	peer_ack(&self->peer, 0, self->peer.largest - 1);
}

TEST_F(sender, each_reason_is_counted)
{
	/* Early, as eager would hold back what send_and_take() waits for */
	struct dblp_sndinfo exact = {}, budget = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = HALF, .policy = DBLP_POLICY_EARLY,
	}, deadline = {
		.flags = DBLP_SND_DEADLINE, .deadline = 1000,
	};
	u32 seg = (1500 - 28 - 32 - DBLP_META_LEN) / 8 * 8, id;
	static const struct counted none;
	struct counted sock;
	struct dblp_info i;

	send_and_take(self, 2000, &exact);
	peer_ack(&self->peer, 0, self->peer.largest - 1);
	EXPECT_EQ(DBLP_REASON_COMPLETE, take_report(_metadata, self).reason);
	for (id = 1; id < 3; id++) {
		send_and_close(self, id, &budget, DBLP_REASON_BUDGET,
			       2000 - 1440);
		EXPECT_EQ(DBLP_REASON_BUDGET,
			  take_report(_metadata, self).reason);
	}
	for (; id < 6; id++) {
		send_and_close(self, id, &deadline, DBLP_REASON_DEADLINE,
			       2000 - seg);
		EXPECT_EQ(DBLP_REASON_DEADLINE,
			  take_report(_metadata, self).reason);
	}

	i = info_of(self->fd);
	sock = (struct counted) { i.msgs_sent, i.msgs_sent_early,
				  { i.msgs_sent_complete, i.msgs_sent_budget,
				    i.msgs_sent_deadline } };
	EXPECT_EQ(0, memcmp(&one_two_three, &sock, sizeof(sock)));
	sock = counted_here("Sent");
	EXPECT_EQ(0, memcmp(&one_two_three, &sock, sizeof(sock)));
	sock = counted_here("Received");
	EXPECT_EQ(0, memcmp(&none, &sock, sizeof(sock)));
}

TEST_HARNESS_MAIN
