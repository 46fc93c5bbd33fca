// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sender's reaction to the CLOSE of its receiver, under the present or an earlier budget
 * of the message. The kernel sends; the receiver is a scripted peer.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/counted.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#define WAIT_MS		10000
#define HALF		(DBLP_PPM / 2)


FIXTURE(sender) {
	PLAYED_CONNECTION;
	u32 next_id;
	enum half half;
};

FIXTURE_BY_HALF(sender);

FIXTURE_SETUP(sender)
{
	one_cpu();
	self->listener = listener_apart(&self->addr);
	self->half = variant->half;
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
	set_u32(self->fd, DBLP_NOTIFY, 1);
}

FIXTURE_ENDS_BY_EXIT(sender);

/* Send a message of pattern_fill() */
static void send_pattern(FIXTURE_DATA(sender) *self, u32 len,
			 const struct dblp_sndinfo *info)
{
	static char buf[100000];

	pattern_fill(buf, len, 0, SCRIPTED_SEED, 0);
	if (sndinfo_send(self->fd, buf, len, 0, info) != len)
		die("sendmsg()");
}

/* Receive the next DATA packet */
static struct dblp_data take_data(FIXTURE_DATA(sender) *self)
{
	errno = 0;
	if (!peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS))
		die("too little data has come");
	return packet_data(&self->peer.last[DBLP_PKT_DATA]);
}

/* Send a message and receive the packets of its first pass */
static struct dblp_data send_and_take(FIXTURE_DATA(sender) *self, u32 len,
				      const struct dblp_sndinfo *info)
{
	struct dblp_data d = {};
	u32 bytes = 0, want = len;

	/* With eager, the sender withholds the budget's share */
	if (!info)
		want -= budget_bytes(get_u32(self->fd, DBLP_BUDGET), len) / 1440 * 1440;
	send_pattern(self, len, info);
	while (bytes < want) {
		d = take_data(self);
		/* Skip a probe of the previous message */
		if (d.msg_id != self->next_id)
			continue;
		bytes += d.seg_len;
		if (bytes < want && d.repair)
			die("the first pass ends after %u bytes", bytes);
	}
	self->next_id++;
	return d;
}

TEST_F(sender, early_marks_the_end_of_the_first_pass)
{
	struct dblp_sndinfo info = SNDINFO(HALF, EARLY);
	struct dblp_data d = send_and_take(self, 10000, &info);

	EXPECT_EQ(DBLP_POLICY_EARLY, d.policy);
	EXPECT_TRUE(d.repair);
}

/* Send a message with a loss of every fifth packet, until it has arrived */
static void send_with_losses(FIXTURE_DATA(sender) *self, u32 len)
{
	struct dblp_sndinfo info = {};
	bool have[64] = {};
	u32 bytes = 0;

	send_pattern(self, len, &info);
	while (bytes < len) {
		struct dblp_data d = take_data(self);
		u64 pn = self->peer.largest - 1;

		if (pn % 5 == 0)
			continue;
		peer_ack(&self->peer, pn, pn);
		if (have[d.offset / 1440])
			continue;
		have[d.offset / 1440] = true;
		bytes += d.seg_len;
	}
	self->next_id++;
}

/* Number of packets in the first pass of a message with a budget of a half */
static u32 first_pass(FIXTURE_DATA(sender) *self)
{
	struct dblp_sndinfo info = SNDINFO(HALF, EAGER);
	struct dblp_data d = {};
	u32 n = 0;

	send_pattern(self, 57600, &info);
	while (!d.repair || d.msg_id != self->next_id) {
		d = take_data(self);
		n += d.msg_id == self->next_id;
		peer_ack_all(&self->peer);
	}
	self->next_id++;
	return n;
}

TEST_F(sender, eager_withholds_the_budget)
{
	EXPECT_EQ(20, first_pass(self));
}

/* It withholds less by the expected loss: 20 of 25 packets will arrive */
TEST_F(sender, eager_expects_as_much_loss_as_there_was)
{
	u32 n;

	send_with_losses(self, 60000);
	n = first_pass(self);
	EXPECT_GE(n, 23);
	EXPECT_LE(n, 26);
}

/* Send a message; are its segments in sequence? */
static bool in_sequence(FIXTURE_DATA(sender) *self, u32 len, u32 budget)
{
	struct dblp_sndinfo info = SNDINFO(budget, EARLY);
	u32 bytes = 0, late = 0;
	bool seen[512] = {};
	struct dblp_data d;

	send_pattern(self, len, &info);
	while (bytes < len) {
		d = take_data(self);
		peer_ack_all(&self->peer);
		/* On a busy machine a probe may repeat segments of this message or the last one */
		if (d.msg_id != self->next_id || seen[d.offset / DBLP_SEG_MIN])
			continue;
		seen[d.offset / DBLP_SEG_MIN] = true;
		late += d.offset != bytes;
		bytes += d.seg_len;
	}
	self->next_id++;
	return !late;
}

TEST_F(sender, messages_without_a_budget_are_sequential)
{
	EXPECT_TRUE(in_sequence(self, 60000, 0));
	EXPECT_TRUE(in_sequence(self, 60000, 1000));
	EXPECT_FALSE(in_sequence(self, 60000, HALF));
}

/* The receiver closes at the deadline: the sender learns the missing bytes */
TEST_F(sender, learns_of_a_deadline)
{
	struct dblp_sndinfo info = {
		.tag = 5, .flags = DBLP_SND_DEADLINE, .deadline = 1000,
		.critical = 8,
	};
	struct dblp_frame close = FRAME(CLOSE, close, .missing = 10000 - 1000, .missing_segs = 1,
						      .reason = DBLP_REASON_DEADLINE,
						      .flags = DBLP_RCV_OVER_BUDGET);
	struct dblp_data d = send_and_take(self, 10000, &info);
	struct message m;
	u32 seg = 1500 - 28 - 32 - DBLP_META_LEN;

	/* Seven of eight segments are missing */
	EXPECT_TRUE(d.meta);
	EXPECT_EQ(0, d.budget);
	close.close.missing = 10000 - seg / 8 * 8;
	close.close.missing_segs = 7;
	send_frame(&self->peer, &self->p, &close);
	send_lossmap(&self->peer, &self->p, 0, 0, 0xfe);
	ASSERT_TRUE(wait_for(self->fd, POLLERR, WAIT_MS));
	ASSERT_EQ(0, message_recv(self->fd, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(close.close.missing, m.info.missing);
	EXPECT_EQ(DBLP_REASON_DEADLINE, m.info.reason);
	EXPECT_EQ(DBLP_RCV_OVER_BUDGET, m.info.flags);
	EXPECT_EQ(1, m.n);
}

/* Critical bytes may not be missing even at a deadline */
TEST_F(sender, refuses_a_deadline_without_critical_bytes)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_DEADLINE, .deadline = 1000, .critical = 5000,
	};
	struct dblp_frame close = FRAME(CLOSE, close, .missing = 5001, .missing_segs = 4,
						      .reason = DBLP_REASON_DEADLINE,
						      .flags = DBLP_RCV_OVER_BUDGET);

	send_and_take(self, 10000, &info);
	send_frame(&self->peer, &self->p, &close);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, self->peer.rst_reason);
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

/* The socket has sent all messages; it and its peer may shut down sending */
static void sent_all(FIXTURE_DATA(sender) *self)
{
	half_close(&self->peer, self->fd, self->half, 0);
}

/* The whole message is in flight, so a BUDGET frame is sent */
TEST_F(sender, sends_a_new_budget)
{
	send_and_take(self, 10000, NULL);
	sent_all(self);
	set_u32(self->fd, DBLP_BUDGET, HALF);
	while (self->peer.budget.budget.ppm != HALF)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_EQ(0, self->peer.budget.budget.msg_id);

	/* It is repeated until it is acknowledged */
	memset(&self->peer.budget, 0, sizeof(self->peer.budget));
	while (self->peer.budget.budget.ppm != HALF)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
}

/* Packets with BUDGET, with FLOW, and with both */
static u32 n_budget, n_flow, n_both;

static void note_frames(struct peer *peer, const struct packet *p)
{
	(void)p;
	n_budget += !!peer->budget.type;
	n_flow += !!peer->flow.type;
	n_both += peer->budget.type && peer->flow.type;
	peer->budget.type = 0;
	peer->flow.type = 0;
}

/* The peer refuses a packet with a BUDGET if nothing of its message has arrived */
TEST_F(sender, a_budget_holds_no_other_frame)
{
	send_and_take(self, 10000, NULL);
	set_u32(self->fd, DBLP_BUDGET, HALF);
	self->peer.seen = note_frames;
	/* The answer to PING is FLOW; neither frame is acknowledged */
	EXPECT_TRUE(peer_sync(&self->peer));
	while (n_budget < 3 || n_flow < 3)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_EQ(0, n_both);
}

/* A message keeps a budget of its own */
TEST_F(sender, keeps_the_budget_of_a_message)
{
	struct dblp_sndinfo info = { .flags = DBLP_SND_BUDGET, .budget = 10 };
	struct dblp_frame close = FRAME(CLOSE, close, .missing = 1440, .missing_segs = 1,
						      .budget = HALF,
						      .reason = DBLP_REASON_BUDGET);

	send_and_take(self, 10000, &info);
	sent_all(self);
	set_u32(self->fd, DBLP_BUDGET, HALF);
	EXPECT_FALSE(peer_expect(&self->peer, DBLP_PKT_CTRL, 300) &&
		     self->peer.budget.budget.ppm);
	send_frame(&self->peer, &self->p, &close);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, self->peer.rst_reason);
}

static void close_with(FIXTURE_DATA(sender) *self, u32 budget)
{
	struct dblp_frame close = FRAME(CLOSE, close, .missing = 1440, .missing_segs = 1,
						      .budget = budget,
						      .reason = DBLP_REASON_BUDGET);

	send_frame(&self->peer, &self->p, &close);
	send_lossmap(&self->peer, &self->p, 0, 0, 2);
}

/* A message whose segments are all acknowledged is complete, whatever its budget */
static void expect_complete(struct __test_metadata *_metadata,
			    FIXTURE_DATA(sender) *self)
{
	struct dblp_rcvinfo info;

	peer_ack_all(&self->peer);
	info = take_report(_metadata, self);
	EXPECT_EQ(0, info.missing);
	EXPECT_EQ(DBLP_REASON_COMPLETE, info.reason);
}

TEST_F(sender, acknowledgments_complete_a_message_with_a_budget)
{
	struct dblp_sndinfo info = SNDINFO(HALF, EARLY);

	send_and_take(self, 100, &info);
	expect_complete(_metadata, self);
	send_and_take(self, 10000, &info);
	expect_complete(_metadata, self);
	EXPECT_EQ(0, get_info(self->fd).msgs_sent_early);
}

TEST_F(sender, acknowledgments_complete_a_message_with_a_deadline)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_DEADLINE, .deadline = 1000,
	};

	send_and_take(self, 10000, &info);
	expect_complete(_metadata, self);
}

TEST_F(sender, acknowledgments_complete_a_message_after_raising)
{
	send_and_take(self, 10000, NULL);
	set_u32(self->fd, DBLP_BUDGET, HALF);
	expect_complete(_metadata, self);
}

/* A segment is not acknowledged, so only a CLOSE can settle the message */
TEST_F(sender, waits_for_the_close_of_an_incomplete_message)
{
	set_u32(self->fd, DBLP_BUDGET, 200000);
	send_and_take(self, 10000, &(struct dblp_sndinfo) {
		.flags = DBLP_SND_POLICY, .policy = DBLP_POLICY_EARLY,
	});
	peer_ack(&self->peer, 1, self->peer.largest - 1);
	EXPECT_FALSE(wait_for(self->fd, POLLERR, 300));
	close_with(self, 200000);
	EXPECT_EQ(1440, take_report(_metadata, self).missing);
}

/* After a loss map, the receiver cannot have all segments */
TEST_F(sender, a_loss_map_is_not_overruled)
{
	set_u32(self->fd, DBLP_BUDGET, 200000);
	send_and_take(self, 10000, &(struct dblp_sndinfo) {
		.flags = DBLP_SND_POLICY, .policy = DBLP_POLICY_EARLY,
	});
	send_lossmap(&self->peer, &self->p, 0, 0, 2);
	peer_ack_all(&self->peer);
	EXPECT_FALSE(wait_for(self->fd, POLLERR, 300));
	close_with(self, 200000);
	EXPECT_EQ(1440, take_report(_metadata, self).missing);
}

/* All is acknowledged, and the probes that would show that the peer is gone cannot be sent */
TEST_F(sender, does_not_wait_for_a_loss_map_without_a_route)
{
	struct dblp_frame close = FRAME(CLOSE, close, .missing = 1440, .missing_segs = 1,
						      .budget = HALF,
						      .reason = DBLP_REASON_BUDGET);
	struct dblp_sndinfo info = SNDINFO(HALF, EARLY);

	set_u32(self->fd, DBLP_USER_TIMEOUT, 1500);
	send_and_take(self, 10000, &info);
	sent_all(self);
	send_frame(&self->peer, &self->p, &close);
	peer_drain(&self->peer);
	peer_ack_all(&self->peer);
	EXPECT_SOON(1, !get_info(self->fd).inflight);
	/* Within half a second: timeouts of a probe that was sent would end the connection, too */
	run("ip addr del 127.0.0.1/8 dev lo");
	EXPECT_SOON(ETIMEDOUT, get_int(self->fd, SO_ERROR));
}

/* A CLOSE under the earlier, higher budget may be in flight */
TEST_F(sender, accepts_a_close_under_the_previous_budget)
{
	struct dblp_rcvinfo info;

	set_u32(self->fd, DBLP_BUDGET, HALF);
	send_and_take(self, 5000, NULL);
	sent_all(self);
	set_u32(self->fd, DBLP_BUDGET, 1);
	close_with(self, HALF);
	info = take_report(_metadata, self);
	EXPECT_EQ(1440, info.missing);
	EXPECT_EQ(HALF, info.budget);
}

/* A CLOSE may neither mix the two budgets nor use another one */
TEST_F(sender, refuses_a_close_beyond_any_budget)
{
	set_u32(self->fd, DBLP_BUDGET, HALF);
	send_and_take(self, 5000, NULL);
	sent_all(self);
	set_u32(self->fd, DBLP_BUDGET, 1);
	close_with(self, 1);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
}

TEST_F(sender, refuses_a_close_under_a_budget_that_never_was)
{
	set_u32(self->fd, DBLP_BUDGET, HALF);
	send_and_take(self, 5000, NULL);
	sent_all(self);
	set_u32(self->fd, DBLP_BUDGET, 1);
	close_with(self, HALF + 1);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
}

/* Send message @id with @info, and close it with @reason and @missing bytes */
static void send_and_close(FIXTURE_DATA(sender) *self, u32 id,
			   const struct dblp_sndinfo *info, u8 reason,
			   u32 missing)
{
	struct dblp_frame close = FRAME(CLOSE, close, .msg_id = id, .missing = missing,
						      .missing_segs = 1, .budget = info->budget,
						      .reason = reason,
						      .flags = info->budget ? 0 : DBLP_RCV_OVER_BUDGET);

	send_and_take(self, 2000, info);
	send_frame(&self->peer, &self->p, &close);
	send_lossmap(&self->peer, &self->p, id, 0, 2);
	/* Free the window for the next message */
	peer_ack_all(&self->peer);
}

TEST_F(sender, each_reason_is_counted)
{
	/* Policy early, because eager would withhold segments that send_and_take() awaits */
	struct dblp_sndinfo exact = {}, budget = SNDINFO(HALF, EARLY), deadline = {
		.flags = DBLP_SND_DEADLINE, .deadline = 1000,
	};
	u32 seg = (1500 - 28 - 32 - DBLP_META_LEN) / 8 * 8, id;
	static const struct counted none;
	struct counted sock;
	struct dblp_info i;

	send_and_take(self, 2000, &exact);
	peer_ack_all(&self->peer);
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

	i = get_info(self->fd);
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
