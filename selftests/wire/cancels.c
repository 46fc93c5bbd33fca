// SPDX-License-Identifier: GPL-2.0-only
/*
 * CANCEL and the CLOSE that answers it, with a scripted peer: a sender's reaction to the
 * answer, and a receiver's reaction to a CANCEL that is late, lost or false.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/hostile.h"

#define WAIT_MS		10000
#define LEN		3000
#define SEG		1000

FIXTURE(end) {
	PLAYED_CONNECTION;
	enum half half;
};

FIXTURE_VARIANT(end) {
	enum half half;
};

FIXTURE_VARIANT_ADD(end, open) { .half = HALF_NONE };
FIXTURE_VARIANT_ADD(end, after_fin) { .half = HALF_PEER };
FIXTURE_VARIANT_ADD(end, after_shutdown) { .half = HALF_OURS };
FIXTURE_VARIANT_ADD(end, after_both) { .half = HALF_BOTH };

/* Connect to a peer with these features; it may have sent its FIN */
static void join(FIXTURE_DATA(end) *self, u16 features)
{
	peer_connect(&self->peer, &self->addr);
	self->peer.features = features;
	peer_handshake(&self->peer);
	self->fd = accept(self->listener, NULL, NULL);
	if (self->fd < 0)
		die("accept()");
	set_u32(self->fd, DBLP_NOTIFY, 1);
	half_close(&self->peer, self->fd, self->half & HALF_PEER, 1000);
	errno = 0;
}

/* The socket has sent all messages, and may shut down sending */
static void sent_all(FIXTURE_DATA(end) *self)
{
	half_close(&self->peer, self->fd, self->half & HALF_OURS, 0);
}

FIXTURE_SETUP(end)
{
	self->half = variant->half;
	one_cpu();
	self->listener = listener_apart(&self->addr);
	join(self, DBLP_FEATURES);
}

FIXTURE_ENDS_BY_EXIT(end);

/* Send a message of three segments with a budget of a half; the peer gets all */
static void send_tag(FIXTURE_DATA(end) *self, u64 tag)
{
	struct dblp_sndinfo info = {
		.tag = tag, .flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = DBLP_PPM / 2, .policy = DBLP_POLICY_EARLY,
	};
	unsigned int n = self->peer.n[DBLP_PKT_DATA] + 3;
	char buf[LEN];

	pattern_fill(buf, LEN, 0, SCRIPTED_SEED, 0);
	if (sndinfo_send(self->fd, buf, LEN, 0, &info) != LEN)
		die("sendmsg()");
	while (self->peer.n[DBLP_PKT_DATA] < n)
		if (!peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS))
			die("too little data");
	errno = 0;
}

static void expect_cancel(struct __test_metadata *_metadata,
			  FIXTURE_DATA(end) *self, u64 tag)
{
	const struct dblp_frame *f = &self->peer.cancel;
	unsigned int n = self->peer.n_cancel;

	ASSERT_EQ(0, try_u64(self->fd, DBLP_CANCEL, tag));
	while (self->peer.n_cancel == n)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_EQ(tag, f->cancel.tag);
	EXPECT_EQ(LEN, f->cancel.len);
	EXPECT_EQ(0, f->cancel.offset);
	EXPECT_EQ(LEN, f->cancel.total);
	EXPECT_TRUE(f->cancel.started);
}

static void send_close(FIXTURE_DATA(end) *self, u32 id, enum dblp_reason reason)
{
	struct dblp_frame f = FRAME(CLOSE, close, .msg_id = id, .reason = reason);

	if (reason == DBLP_REASON_BUDGET) {
		f.close.missing = 1408;
		f.close.missing_segs = 1;
		f.close.budget = DBLP_PPM / 2;
	}
	send_frame(&self->peer, &self->p, &f);
}

static void expect_report(struct __test_metadata *_metadata, int fd, u64 tag,
			  enum dblp_reason reason, u32 missing)
{
	struct message m;

	ASSERT_TRUE(wait_for(fd, POLLERR, WAIT_MS));
	ASSERT_EQ(0, message_recv(fd, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(tag, m.info.tag);
	EXPECT_EQ(reason, m.info.reason);
	EXPECT_EQ(missing, m.info.missing);
	ASSERT_EQ(!!missing, m.n);
	if (missing)
		EXPECT_TRUE(!m.range->offset && m.range->length == missing);
	message_free(&m);
}

TEST_F(end, an_older_peer_gets_no_cancel)
{
	close(self->fd);
	peer_close(&self->peer);
	join(self, 0);
	send_tag(self, 1);
	EXPECT_ERR(EOPNOTSUPP, try_u64(self->fd, DBLP_CANCEL, 1));
	EXPECT_ERR(EOPNOTSUPP, try_u64(self->fd, DBLP_CANCEL, 2));
	peer_ack_all(&self->peer);
	expect_report(_metadata, self->fd, 1, DBLP_REASON_COMPLETE, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n_cancel);
}

/* A client does not announce features that its server lacks */
TEST_F(end, features_are_those_that_both_have)
{
	struct peer server;
	struct sockaddr_dblp at;
	struct dblp_cookie cookie = { .scid = 1, .born_ms = 1 };
	struct dblp_params theirs;
	int features, fd;

	for (features = 0; features < 2; features++) {
		peer_listen(&server, "127.0.0.1", &at);
		fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		EXPECT_ERR(EINPROGRESS, connect_to(fd, &at));
		ASSERT_TRUE(peer_expect(&server, DBLP_PKT_INIT, WAIT_MS));
		cookie.features = features ? UINT16_MAX : 0;
		server.scid = dblp_get_u64(server.last[DBLP_PKT_INIT].byte +
					   DBLP_HDR_LEN);
		make_init_ack(&self->p, &server, &cookie);
		send_packet(&server, &self->p);
		ASSERT_TRUE(peer_expect(&server, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
		ASSERT_EQ(DBLP_WIRE_OK,
			  dblp_get_params(&theirs,
					  server.last[DBLP_PKT_COOKIE_ECHO].byte +
					  DBLP_ECHO_PARAMS));
		EXPECT_EQ(features ? DBLP_FEATURES : 0, theirs.features);
		close(fd);
		peer_close(&server);
	}
}

TEST_F(end, a_cancel_is_repeated_and_nothing_else)
{
	unsigned int n;

	send_tag(self, 1);
	expect_cancel(_metadata, self, 1);
	n = self->peer.n[DBLP_PKT_DATA];
	/* Nothing is acknowledged, so that probes are sent */
	while (self->peer.n_cancel < 3)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_EQ(n, self->peer.n[DBLP_PKT_DATA]);
	send_close(self, 0, DBLP_REASON_CANCELLED);
	expect_report(_metadata, self->fd, 1, DBLP_REASON_CANCELLED, LEN);
	/* The message is gone, so a CLOSE of it has no effect */
	send_close(self, 0, DBLP_REASON_CANCELLED);
	send_lossmap(&self->peer, &self->p, 0, 0, 1);
	send_close(self, 0, DBLP_REASON_BUDGET);
	EXPECT_TRUE(peer_sync(&self->peer));
	send_tag(self, 2);
	sent_all(self);
	peer_ack_all(&self->peer);
	expect_report(_metadata, self->fd, 2, DBLP_REASON_COMPLETE, 0);
}

/* The CANCEL arrives after the CLOSE was sent */
TEST_F(end, a_message_that_was_closed_is_not_cancelled)
{
	send_tag(self, 1);
	expect_cancel(_metadata, self, 1);
	peer_ack_all(&self->peer);
	expect_report(_metadata, self->fd, 1, DBLP_REASON_COMPLETE, 0);
	send_tag(self, 2);
	sent_all(self);
	expect_cancel(_metadata, self, 2);
	send_lossmap(&self->peer, &self->p, 1, 0, 1);
	send_close(self, 1, DBLP_REASON_BUDGET);
	expect_report(_metadata, self->fd, 2, DBLP_REASON_BUDGET, 1408);
	EXPECT_EQ(0, get_info(self->fd).msgs_sent_cancelled);
}

/* Acknowledge all copies of the CANCEL, and nothing else, until the socket processes the
 * ACK
 */
static bool ack_cancel(FIXTURE_DATA(end) *self)
{
	uint64_t end = now_ms() + WAIT_MS;

	do {
		peer_drain(&self->peer);
		peer_ack(&self->peer, self->peer.largest - 1,
			 self->peer.largest - 1);
	} while (!wait_for(self->fd, POLLERR, 50) && now_ms() < end);
	return poll_now(self->fd) & POLLERR;
}

/* Segments are not retransmitted, so only the ACK of the CANCEL can settle it */
TEST_F(end, the_ack_of_the_cancel_settles_the_message)
{
	send_tag(self, 1);
	sent_all(self);
	expect_cancel(_metadata, self, 1);
	EXPECT_TRUE(ack_cancel(self));
	expect_report(_metadata, self->fd, 1, DBLP_REASON_COMPLETE, 0);
	EXPECT_EQ(0, get_info(self->fd).msgs_sent_cancelled);
	send_close(self, 0, DBLP_REASON_CANCELLED);
	peer_ack_all(&self->peer);
	EXPECT_TRUE(peer_sync(&self->peer));
}

/* Half of the message was never sent, so it cannot be complete */
TEST_F(end, a_message_sent_in_part_is_not_complete)
{
	struct dblp_sndinfo info = {
		.tag = 1, .flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = DBLP_PPM / 2, .policy = DBLP_POLICY_EAGER,
	};
	unsigned int n = self->peer.n_cancel;
	static char buf[16000];

	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	ASSERT_EQ(sizeof(buf), sndinfo_send(self->fd, buf, sizeof(buf), 0, &info));
	sent_all(self);
	ASSERT_EQ(0, try_u64(self->fd, DBLP_CANCEL, 1));
	while (self->peer.n_cancel == n)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	EXPECT_TRUE(ack_cancel(self));
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(end, a_receiver_does_not_cancel)
{
	send_tag(self, 1);
	sent_all(self);
	send_close(self, 0, DBLP_REASON_CANCELLED);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(end, a_cancelled_message_has_no_loss_map)
{
	send_tag(self, 1);
	sent_all(self);
	expect_cancel(_metadata, self, 1);
	send_lossmap(&self->peer, &self->p, 0, 0, 1);
	send_close(self, 0, DBLP_REASON_CANCELLED);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* The peer sends a CANCEL */

static const struct dblp_frame cancel_frame = FRAME(CANCEL, cancel, .len = LEN, .total = LEN,
								    .started = true);

static void expect_dropped(struct __test_metadata *_metadata,
			   FIXTURE_DATA(end) *self, u32 id)
{
	char c;

	set_timeout(self->fd, SO_RCVTIMEO, WAIT_MS);
	EXPECT_ERR(ECANCELED, recv(self->fd, &c, 1, 0));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(id, self->peer.close.close.msg_id);
	EXPECT_EQ(DBLP_REASON_CANCELLED, self->peer.close.close.reason);
	EXPECT_TRUE(is_silent(self->fd));
}

/* A CANCEL may overtake its whole message */
TEST_F(end, a_message_that_never_arrived_is_cancelled)
{
	struct dblp_data d = { .msg_len = LEN };
	struct dblp_frame f = cancel_frame;
	unsigned int n;

	sent_all(self);
	send_frame(&self->peer, &self->p, &f);
	expect_dropped(_metadata, self, 0);
	/* Later segments are late; the CLOSE precedes their ACK */
	n = self->peer.n_close;
	send_data(&self->peer, &self->p, &d, SEG, 0, 3, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LT(n, self->peer.n_close);
	EXPECT_EQ(3, mib("DropLate"));
	send_frame(&self->peer, &self->p, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	send_message(&self->peer, &self->p, 1);
	EXPECT_TRUE(got_message(self->fd, 1, 1500));
}

/* A later segment, of any size, finds the cancelled message before its turn */
TEST_F(end, later_segments_are_late)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = LEN };
	struct dblp_frame f = cancel_frame;

	sent_all(self);
	f.cancel.msg_id = 1;
	send_frame(&self->peer, &self->p, &f);
	send_data(&self->peer, &self->p, &d, SEG, 0, 3, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(3, mib("DropLate"));
	EXPECT_TRUE(is_silent(self->fd));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	expect_dropped(_metadata, self, 1);
}

/* Some messages lack only the last segment, others only the first one */
TEST_F(end, received_segments_are_dropped)
{
	struct dblp_data d = { .msg_len = LEN, .budget = 100000,
			       .policy = DBLP_POLICY_EAGER };
	struct dblp_frame f = cancel_frame;
	u32 before = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC), i;

	sent_all(self);
	for (i = 0; i < 4; i++) {
		set_u32(self->fd, DBLP_BUDGET_CAP, i < 2 ? DBLP_PPM : 0);
		d.msg_id = f.cancel.msg_id = i;
		send_data(&self->peer, &self->p, &d, SEG, i % 2, 2, NULL);
		EXPECT_TRUE(peer_sync(&self->peer));
		EXPECT_LT(before + 2 * SEG,
			  get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
		send_frame(&self->peer, &self->p, &f);
		EXPECT_TRUE(peer_sync(&self->peer));
		/* Only the state of the close is kept */
		EXPECT_GT(before + 2 * SEG,
			  get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
		expect_dropped(_metadata, self, i);
		EXPECT_TRUE(peer_ack_closes(&self->peer));
	}
	EXPECT_EQ(4, get_info(self->fd).msgs_received_cancelled);
	EXPECT_EQ(4 * LEN, get_info(self->fd).bytes_missing);
}

/* In a packet that is parsed in a copy, after one whose segment was queued */
TEST_F(end, a_cancel_in_one_buffer_with_its_message)
{
	static char pages[4096] __attribute__((aligned(4096)));
	struct dblp_data d = { .msg_len = 3 * 256 };
	struct dblp_frame f = cancel_frame;
	static struct packet p[2];

	sent_all(self);
	f.cancel.len = f.cancel.total = d.msg_len;
	make_data(&p[0], &self->peer, &d, 256, NULL);
	make_ctrl(&p[1], &self->peer, &f);
	add_filler(&p[1], 120);
	splice_train(&self->peer, pages, p, 2);
	expect_dropped(_metadata, self, 0);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

TEST_F(end, a_complete_message_is_not_cancelled)
{
	struct dblp_frame f = cancel_frame;

	sent_all(self);
	/* Before its turn, and after it was read */
	f.cancel.msg_id = 1;
	f.cancel.len = f.cancel.total = 1500;
	send_message(&self->peer, &self->p, 1);
	send_frame(&self->peer, &self->p, &f);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(got_message(self->fd, 1, 1500));
	send_frame(&self->peer, &self->p, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(0, self->peer.n_close);
}

/* A message of two pieces is cancelled as a whole, also its complete piece */
TEST_F(end, a_piece_is_cancelled_with_its_message)
{
	struct dblp_data d = { .msg_len = 1000, .meta = true };
	struct dblp_frame f = cancel_frame;
	struct dblp_frame meta = FRAME(META, meta, .total = 1000 + LEN, .tag = 7);
	struct dblp_lossmap map;
	socklen_t len = sizeof(map);

	sent_all(self);
	send_data(&self->peer, &self->p, &d, SEG, 0, 1, &meta);
	f.cancel.msg_id = 1;
	f.cancel.offset = 1000;
	f.cancel.total = 1000 + LEN;
	f.cancel.tag = 7;
	send_frame(&self->peer, &self->p, &f);
	expect_dropped(_metadata, self, 1);
	ASSERT_EQ(0, getsockopt(self->fd, SOL_DBLP, DBLP_LOSSMAP, &map, &len));
	EXPECT_EQ(7, map.tag);
	EXPECT_EQ(1, map.ranges);
}

/* A message that was never started neither uses nor returns credit for bytes */
TEST_F(end, both_ends_agree_on_the_credit)
{
	const u64 window = self->peer.theirs.window;
	struct dblp_frame f = cancel_frame, ping = { .type = DBLP_FRAME_PING };
	u32 i;

	sent_all(self);
	EXPECT_TRUE(peer_ask(&self->peer, window));
	for (i = 0; i < 2; i++) {
		f.cancel.msg_id = i;
		f.cancel.started = i;
		send_frame(&self->peer, &self->p, &f);
		expect_dropped(_metadata, self, i);
		EXPECT_TRUE(peer_ack_closes(&self->peer));
		send_frame(&self->peer, &self->p, &ping);
		EXPECT_TRUE(peer_sync(&self->peer));
		EXPECT_EQ(window + (i + 1) * 1024 + i * LEN,
			  self->peer.flow.flow.max_data);
	}
}

/* A false CANCEL ends the connection */
TEST_F(end, a_contradicting_cancel_ends_the_connection)
{
	struct dblp_data d = { .msg_len = LEN, .meta = true };
	struct dblp_frame f, meta = FRAME(META, meta, .total = LEN, .tag = 7);
	u32 i;

	for (i = 0; i < 6; i++) {
		sent_all(self);
		f = cancel_frame;
		f.cancel.tag = 7;
		send_data(&self->peer, &self->p, &d, SEG, 0, 1, &meta);
		EXPECT_TRUE(peer_sync(&self->peer));
		switch (i) {
		case 0:
			f.cancel.len--;
			break;
		case 1:
			f.cancel.started = false;
			break;
		case 2:
			f.cancel.tag++;
			break;
		case 3:
			f.cancel.total++;
			break;
		case 4:
			/* More messages or bytes than the credit */
			f.cancel.msg_id = self->peer.theirs.max_msg;
			break;
		case 5:
			f.cancel.msg_id = 1;
			f.cancel.len = f.cancel.total =
				self->peer.theirs.max_data - LEN - 2 * 1024 + 1;
			break;
		}
		send_frame(&self->peer, &self->p, &f);
		expect_abort(_metadata, &self->peer, self->fd);
		close(self->fd);
		peer_close(&self->peer);
		join(self, DBLP_FEATURES);
	}
}

TEST_HARNESS_MAIN
