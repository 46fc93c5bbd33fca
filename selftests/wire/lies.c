// SPDX-License-Identifier: GPL-2.0-only
/*
 * Malformed packets, and well-formed packets with false contents: impossible
 * acknowledgments, CLOSEs, loss maps, budgets and FINs.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

/*
 * Malformed packets. Each is a valid packet with a change.
 */
enum base {
	BASE_DATA,	/* first of two segments of 500 bytes, message 0 */
	BASE_ACK,
	BASE_RST,
	BASE_PROBE,	/* of 100 bytes */
	BASE_ZEROS,	/* both of two segments of 500 bytes, message 0 */
	BASE_FRAME,	/* CTRL with the frame in @words */
};

FIXTURE(malformed) {
	PLAYED_CONNECTION;
};

FIXTURE_VARIANT(malformed) {
	enum base base;
	u32 len;		/* truncated or zero-filled to this length, if set */
	u32 at;			/* @size bytes at this offset become @value */
	u32 size;
	u64 value;
	u32 words[8];
	u32 n_words;
	const char *counter;
};

#define MALFORMED(name, ...) \
	FIXTURE_VARIANT_ADD(malformed, name) { __VA_ARGS__ }

/*
 * One case for each place that refuses packets and each counter. All other cases are in
 * unit/test_wire.c and test_wire_frame.c, which test the same codec.
 */
MALFORMED(empty, .base = BASE_DATA, .len = UINT32_MAX, .counter = "DropShort");
MALFORMED(one_byte_less, .base = BASE_DATA, .len = 531, .counter = "DropShort");
MALFORMED(one_byte_more, .base = BASE_DATA, .len = 533,
	  .counter = "DropTrailing");
MALFORMED(version_1, .base = BASE_DATA, .size = 1, .value = 0x19,
	  .counter = "DropVersion");
MALFORMED(type_15, .base = BASE_DATA, .size = 1, .value = DBLP_VERSION << 4 | 15,
	  .counter = "DropType");
MALFORMED(reserved_attributes, .base = BASE_DATA, .at = 28, .size = 4,
	  .value = 1, .counter = "DropField");
MALFORMED(zero_map_of_nothing, .base = BASE_ZEROS, .at = 32, .size = 4,
	  .value = 0, .counter = "DropField");
MALFORMED(ack_with_a_number, .base = BASE_ACK, .at = 4, .size = 4, .value = 1,
	  .counter = "DropField");
MALFORMED(rst_cut, .base = BASE_RST, .len = 31, .counter = "DropShort");
MALFORMED(probe_with_contents, .base = BASE_PROBE, .at = 99, .size = 1,
	  .value = 1, .counter = "DropField");
MALFORMED(frame_type_14, .base = BASE_FRAME, .words = { 0x0e010000 },
	  .n_words = 1, .counter = "DropType");
MALFORMED(frame_beyond_the_frames, .base = BASE_FRAME,
	  .words = { 0x08020000 }, .n_words = 1, .counter = "DropShort");
MALFORMED(two_acks, .base = BASE_FRAME,
	  .words = { 0x01040000, 0, 0, 0, 0x01040000, 0, 0, 0 }, .n_words = 8,
	  .counter = "DropField");
MALFORMED(bad_frame_behind_a_good_one, .base = BASE_FRAME,
	  .words = { 0x07020000, 0, 0x08030001, 0, 0 }, .n_words = 5,
	  .counter = "DropField");

FIXTURE_SETUP(malformed)
{
	netns_new();
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_ENDS_BY_EXIT(malformed);

static void make_base(struct packet *p, struct peer *peer,
		      const struct _fixture_variant_malformed *v)
{
	struct dblp_data d = { .msg_len = 1000 };
	static const u32 two = 3;
	u32 i;

	switch (v->base) {
	case BASE_DATA:
		make_data(p, peer, &d, 500, NULL);
		break;
	case BASE_ZEROS:
		make_zeros(p, peer, &d, 500, NULL, &two, 1);
		break;
	case BASE_ACK:
		make_packet(p, DBLP_PKT_ACK, 0, peer->scid);
		break;
	case BASE_PROBE:
		make_packet(p, DBLP_PKT_PROBE, peer->pn++, peer->scid);
		put_zero(p, 100 - p->len);
		break;
	case BASE_RST:
		make_rst(p, peer->scid, DBLP_RST_CLOSED, peer->cid);
		break;
	case BASE_FRAME:
		make_packet(p, DBLP_PKT_CTRL, peer->pn++, peer->scid);
		poke(p, 1, 1, v->n_words);
		for (i = 0; i < v->n_words; i++)
			put_word(p, v->words[i]);
	}
}

TEST_F(malformed, is_dropped)
{
	u64 before = mib(variant->counter);
	u32 pn = self->peer.pn;

	make_base(&self->p, &self->peer, variant);
	poke(&self->p, variant->at, variant->size, variant->value);
	if (variant->len == UINT32_MAX) {
		self->p.len = 0;
	} else if (variant->len) {
		if (variant->len > self->p.len)
			put_zero(&self->p, variant->len - self->p.len);
		self->p.len = variant->len;
	}
	send_packet(&self->peer, &self->p);

	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib(variant->counter)) {
		TH_LOG("%s did not count it", variant->counter);
	}
	EXPECT_FALSE(self->peer.acked[pn] && self->peer.pn > pn + 1);
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
	EXPECT_EQ(2, socket_count());

	/* Message and connection were not harmed */
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, acknowledging_unsent_packets)
{
	static const u32 never[] = { 0, 1, 1000, 0x7fffffff, 0xffffffff };
	unsigned int i, n = sizeof(never) / sizeof(never[0]);

	for (i = 0; i < n; i++) {
		struct peer peer;
		int fd = peer_join(&peer, &self->addr, self->listener);

		ASSERT_LE(0, fd);
		peer_ack(&peer, never[i], never[i]);
		expect_abort(_metadata, &peer, fd);
		EXPECT_EQ(i + 1, mib("AckUnsent"));
		close(fd);
		peer_close(&peer);
	}
	/* An ACK of another connection has no effect on this one */
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/*
 * Let the other end send so many packets that it skips packet numbers, and acknowledge the
 * received ones
 */
static void have_numbers(FIXTURE_DATA(peer) *self, u32 n)
{
	static char buf[100000];

	set_int(self->peer.udp, SO_RCVBUFFORCE, 4 << 20);
	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	while (self->peer.largest < n) {
		if (send(self->fd, buf, sizeof(buf), MSG_DONTWAIT) < 0 &&
		    errno != EAGAIN)
			die("send()");
		if (!peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS))
			die("%u packets came", self->peer.largest);
		peer_drain(&self->peer);
		peer_ack_all(&self->peer);
	}
	/* Packets from two CPUs may be reordered */
	if (!peer_sync(&self->peer))
		die("a PING was not acknowledged");
}

/* Returns the first skipped packet number, 0 if all arrived */
static u32 left_out(const struct peer *peer)
{
	return peer->came.n > 1 ? peer->came.r[0].last + 1 : 0;
}

/* One of the first packet numbers is skipped, which does not harm a peer that acknowledges
 * only received packets
 */
TEST_F(peer, acknowledging_received_packets)
{
	u64 lost = mib("PktLost");
	struct dblp_info info;

	have_numbers(self, 700);
	EXPECT_EQ(2, self->peer.came.n);
	EXPECT_LE(256, left_out(&self->peer));
	/* Twice the interval, plus one train of packets */
	EXPECT_GT(512 + 128, left_out(&self->peer));
	EXPECT_EQ(left_out(&self->peer) + 1, self->peer.came.r[1].first);
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
	EXPECT_EQ(0, mib("AckUnsent"));
	info = get_info(self->fd);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, info.state);
	EXPECT_GE(info.pkts_sent, self->peer.largest - 1);
	/* On a busy machine, a probe timeout may declare two packets lost */
	EXPECT_GE(2 * mib("PtoExpired"), mib("PktLost") - lost);
}

/* Optimistic ACKs, to get more than the path can carry */
TEST_F(peer, acknowledging_skipped_packets)
{
	have_numbers(self, 700);
	ASSERT_LT(0, left_out(&self->peer));
	peer_ack(&self->peer, 0, self->peer.largest - 1);
	expect_abort(_metadata, &self->peer, self->fd);
	EXPECT_EQ(1, mib("AckUnsent"));
}

/* Close message 0 with @missing bytes of @segs segments missing, within its budget */
static void send_close(struct peer *peer, struct packet *p, u32 missing,
		       u32 segs, u32 budget)
{
	struct dblp_frame f = FRAME(CLOSE, close, .missing = missing, .missing_segs = segs,
						  .budget = budget, .reason = DBLP_REASON_BUDGET);

	send_frame(peer, p, &f);
}

TEST_F(peer, closing_an_unsent_message)
{
	send_close(&self->peer, &self->p, 1, 1, 0);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, a_loss_map_of_an_unsent_message)
{
	send_lossmap(&self->peer, &self->p, 0, 0, 1);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* Let the other end send a message of 20000 bytes, of which 3000 are critical */
static void have_message(struct peer *peer, int fd, uint32_t budget)
{
	static char buf[20000];
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET, .budget = budget, .critical = 3000,
	};

	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	if (sndinfo_send(fd, buf, sizeof(buf), 0, &info) != sizeof(buf))
		die("sendmsg()");
	errno = 0;
	if (!peer_expect(peer, DBLP_PKT_DATA, WAIT_MS))
		die("no DATA came");
}

TEST_F(peer, forgiving_more_than_allowed)
{
	/* 10 % of the 17000 bytes that are not critical are 1700 */
	have_message(&self->peer, self->fd, 100000);
	send_close(&self->peer, &self->p, 1701, 1, 100000);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, forgiving_without_a_budget)
{
	have_message(&self->peer, self->fd, 0);
	send_close(&self->peer, &self->p, 8, 1, 0);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* A BUDGET before its message is neither acknowledged nor kept */
TEST_F(peer, a_budget_of_an_unknown_message)
{
	struct dblp_frame f = FRAME(BUDGET, budget, .ppm = DBLP_PPM);
	u64 before = mib("DropField");
	u32 pn = self->peer.pn;

	send_frame(&self->peer, &self->p, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_FALSE(self->peer.acked[pn]);
	EXPECT_EQ(before + 1, mib("DropField"));
	send_segment(&self->peer, &self->p, 0, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(0, self->peer.n_close);
}

/* Only a deadline lets a receiver exceed the budget. */
TEST_F(peer, exceeding_the_budget_without_a_deadline)
{
	struct dblp_frame f = FRAME(CLOSE, close, .missing = 1440, .missing_segs = 1,
						  .budget = 10, .reason = DBLP_REASON_DEADLINE,
						  .flags = DBLP_RCV_OVER_BUDGET);

	have_message(&self->peer, self->fd, 10);
	send_frame(&self->peer, &self->p, &f);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, claiming_another_budget)
{
	have_message(&self->peer, self->fd, 500000);
	send_close(&self->peer, &self->p, 1440, 1, 900000);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, missing_critical_bytes)
{
	have_message(&self->peer, self->fd, 500000);
	send_lossmap(&self->peer, &self->p, 0, 0, 1);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, missing_segments_beyond_the_end)
{
	have_message(&self->peer, self->fd, 500000);
	send_lossmap(&self->peer, &self->p, 0, 3200, 1);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* Credit sent with an ACK may be lost, so a PING requests it again */
TEST_F(peer, a_ping_brings_credit_each_time)
{
	int i;

	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	for (i = 0; i < 3; i++) {
		memset(&self->peer.flow, 0, sizeof(self->peer.flow));
		EXPECT_TRUE(peer_sync(&self->peer));
		EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
		EXPECT_EQ(DBLP_FRAME_FLOW, self->peer.flow.type);
	}
}

TEST_F(peer, a_loss_map_that_contradicts_its_close)
{
	struct message m;

	set_u32(self->fd, DBLP_NOTIFY, 1);
	/* Segments have more than 100 bytes, and the sixth is not the last */
	have_message(&self->peer, self->fd, 900000);
	send_close(&self->peer, &self->p, 100, 1, 900000);
	send_lossmap(&self->peer, &self->p, 0, 0, 1 << 5);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(-1, message_recv(self->fd, NULL, 0,
				   MSG_ERRQUEUE | MSG_DONTWAIT, &m));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

/* A loss map with more missing bytes than its CLOSE would never settle */
TEST_F(peer, a_loss_map_with_too_many_holes)
{
	have_message(&self->peer, self->fd, 900000);
	send_close(&self->peer, &self->p, 2 * 1440, 2, 900000);
	send_lossmap(&self->peer, &self->p, 0, 0, 7 << 5);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, a_loss_map_with_too_many_holes_before_its_close)
{
	have_message(&self->peer, self->fd, 900000);
	send_lossmap(&self->peer, &self->p, 0, 0, 7 << 5);
	send_close(&self->peer, &self->p, 2 * 1440, 2, 900000);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, ending_before_the_last_message)
{
	send_segment(&self->peer, &self->p, 5, 0);
	send_fin(&self->peer, &self->p, 5);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, ending_twice_at_different_places)
{
	send_fin(&self->peer, &self->p, 5);
	send_fin(&self->peer, &self->p, 6);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* The FIN is received, a message before it is not */
TEST_F(peer, ending_before_all_messages_arrived)
{
	char byte;

	send_message(&self->peer, &self->p, 0);
	send_fin(&self->peer, &self->p, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_ERR(ECONNRESET, recv(self->fd, &byte, 1, MSG_DONTWAIT));
}

/* Send a piece of a message of two pieces, or a complete message */
static void send_piece(struct peer *peer, struct packet *p, u32 id, u32 total)
{
	struct dblp_data d = { .msg_id = id, .msg_len = 8, .meta = true };
	struct dblp_frame meta = FRAME(META, meta, .msg_id = id, .total = total);

	send_one(peer, p, &d, 8, &meta);
}

/* The FIN arrives before all messages behind the first one are processed: the end is within
 * a message
 */
TEST_F(peer, ending_within_a_message)
{
	u32 i, n = 2000;
	char buf[16];

	for (i = 1; i < n; i++) {
		send_piece(&self->peer, &self->p, i, 8);
		/* Send in batches, because a busy CPU drops larger ones */
		if (i % 256 == 0)
			EXPECT_TRUE(peer_sync(&self->peer));
	}
	send_piece(&self->peer, &self->p, n, 16);
	send_fin(&self->peer, &self->p, n + 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	send_piece(&self->peer, &self->p, 0, 8);
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	for (i = 0; wait_for(self->fd, POLLIN, WAIT_MS); i++)
		if (recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT) != 8)
			break;
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_EQ(n, i);
}

TEST_F(peer, sending_after_the_end)
{
	u64 before = mib("DropWindow");
	char byte;

	send_message(&self->peer, &self->p, 0);
	send_fin(&self->peer, &self->p, 1);
	send_segment(&self->peer, &self->p, 1, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropWindow"));
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_EQ(0, recv(self->fd, &byte, 1, MSG_DONTWAIT));
}

TEST_HARNESS_MAIN
