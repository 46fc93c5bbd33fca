// SPDX-License-Identifier: GPL-2.0-only
/*
 * Invariant 6: packets that do not belong change nothing and allocate nothing.
 * What a stranger, a liar or a broken network may send is sent by hand: it has
 * to be dropped, counted under a name, and harm no message.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "lib/scripted.h"

#define WAIT_MS		10000

static int new_socket(void)
{
	int fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket(AF_DBLP)");
	return fd;
}

static int new_listener(const char *text, int backlog, struct sockaddr_dblp *a)
{
	socklen_t len = sizeof(*a);
	int fd = new_socket();

	addr_parse(a, text, 0);
	if (bind(fd, (struct sockaddr *)a, sizeof(*a)) ||
	    listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)a, &len))
		die("listening on %s", text);
	return fd;
}

static struct dblp_info get_info(int fd)
{
	struct dblp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	return info;
}

static int get_state(int fd)
{
	return get_info(fd).state;
}

static void set_u32(int fd, int opt, uint32_t value)
{
	if (setsockopt(fd, SOL_DBLP, opt, &value, sizeof(value)))
		die("setsockopt(%d, %u)", opt, value);
}

/* Is there nothing to be read, and no error? */
static bool is_silent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The next message is the one with this ID and length, exact */
static bool got_message(int fd, u32 id, u32 len)
{
	unsigned char *buf = malloc(len + 1);
	struct message m;
	bool good;

	if (!buf || !wait_for(fd, POLLIN, WAIT_MS))
		return false;
	good = message_recv(fd, buf, len + 1, MSG_DONTWAIT, &m) == len &&
	       m.info.msg_id == id && !m.info.missing &&
	       pattern_check(buf, len, 0, SCRIPTED_SEED, id) < 0;
	message_free(&m);
	free(buf);
	return good;
}

/* A connection whose other end is played by the test */
FIXTURE(peer) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int listener;
	int fd;
};

FIXTURE_VARIANT(peer) {
	const char *address;
};

FIXTURE_VARIANT_ADD(peer, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(peer, ipv6) { .address = "::1" };

FIXTURE_SETUP(peer)
{
	netns_new();
	/* As on Ethernet: messages are more than one segment */
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 8, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(peer)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

/* A segment of message @id of 1500 bytes in three segments */
static void send_segment(struct peer *peer, struct packet *p, u32 id, u32 seg)
{
	struct dblp_data d = {
		.msg_id = id, .offset = seg * 600, .msg_len = 1500,
	};

	make_data(p, peer, &d, 600, NULL);
	send_packet(peer, p);
}

static void send_message(struct peer *peer, struct packet *p, u32 id)
{
	send_segment(peer, p, id, 2);
	send_segment(peer, p, id, 0);
	send_segment(peer, p, id, 1);
}

TEST_F(peer, an_honest_one_is_served)
{
	send_message(&self->peer, &self->p, 0);
	send_message(&self->peer, &self->p, 1);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(got_message(self->fd, 1, 1500));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(self->peer.acked[0]);
	EXPECT_TRUE(self->peer.acked[5]);
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

/*
 * Packets that break the format. Each is a good one, spoiled.
 */
enum base {
	BASE_DATA,	/* first of two segments of 500 bytes, message 0 */
	BASE_SINGLE,	/* the only segment, 8 bytes, message 0 */
	BASE_CTRL,	/* with a PING frame */
	BASE_ACK,
	BASE_RST,
	BASE_PROBE,	/* of 100 bytes */
	BASE_ZEROS,	/* both of two segments of 500 bytes, message 0 */
	BASE_FRAME,	/* CTRL with the frame in @words */
};

FIXTURE(malformed) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int listener;
	int fd;
};

FIXTURE_VARIANT(malformed) {
	enum base base;
	u32 len;		/* cut or zero-filled to so many bytes, if set */
	u32 at;			/* @size bytes there become @value */
	u32 size;
	u64 value;
	u32 words[8];
	u32 n_words;
	const char *counter;
};

#define MALFORMED(name, ...) \
	FIXTURE_VARIANT_ADD(malformed, name) { __VA_ARGS__ }

MALFORMED(empty, .base = BASE_DATA, .len = UINT32_MAX, .counter = "DropShort");
MALFORMED(one_byte, .base = BASE_DATA, .len = 1, .counter = "DropShort");
MALFORMED(half_a_header, .base = BASE_DATA, .len = 15, .counter = "DropShort");
MALFORMED(no_data_header, .base = BASE_DATA, .len = 16, .counter = "DropShort");
MALFORMED(half_a_data_header, .base = BASE_DATA, .len = 31,
	  .counter = "DropShort");
MALFORMED(no_payload, .base = BASE_DATA, .len = 32, .counter = "DropShort");
MALFORMED(one_byte_less, .base = BASE_DATA, .len = 531, .counter = "DropShort");
MALFORMED(one_byte_more, .base = BASE_DATA, .len = 533,
	  .counter = "DropTrailing");
MALFORMED(single_segment_too_long, .base = BASE_SINGLE, .len = 41,
	  .counter = "DropTrailing");
MALFORMED(version_0, .base = BASE_DATA, .size = 1, .value = 0x09,
	  .counter = "DropVersion");
MALFORMED(version_2, .base = BASE_DATA, .size = 1, .value = 0x29,
	  .counter = "DropVersion");
MALFORMED(type_0, .base = BASE_DATA, .size = 1, .value = 0x10,
	  .counter = "DropType");
MALFORMED(type_11, .base = BASE_DATA, .size = 1, .value = 0x1b,
	  .counter = "DropType");
MALFORMED(type_15, .base = BASE_DATA, .size = 1, .value = 0x1f,
	  .counter = "DropType");
MALFORMED(frames_beyond_the_end, .base = BASE_DATA, .at = 1, .size = 1,
	  .value = 255, .counter = "DropShort");
MALFORMED(frames_that_are_payload, .base = BASE_DATA, .at = 1, .size = 1,
	  .value = 2, .counter = "DropShort");
MALFORMED(segment_size_0, .base = BASE_DATA, .at = 2, .size = 2, .value = 0,
	  .counter = "DropField");
MALFORMED(segment_size_too_small, .base = BASE_DATA, .at = 2, .size = 2,
	  .value = 128, .counter = "DropField");
MALFORMED(segment_size_too_large, .base = BASE_DATA, .at = 2, .size = 2,
	  .value = 65535, .counter = "DropField");
MALFORMED(message_length_0, .base = BASE_DATA, .at = 24, .size = 4,
	  .value = 0, .counter = "DropField");
MALFORMED(message_length_too_large, .base = BASE_DATA, .at = 24, .size = 4,
	  .value = 0x7fff0001, .counter = "DropField");
MALFORMED(message_length_negative, .base = BASE_DATA, .at = 24, .size = 4,
	  .value = 0xffffffff, .counter = "DropField");
MALFORMED(offset_at_the_end, .base = BASE_DATA, .at = 20, .size = 4,
	  .value = 1000, .counter = "DropField");
MALFORMED(offset_between_segments, .base = BASE_DATA, .at = 20, .size = 4,
	  .value = 499, .counter = "DropField");
MALFORMED(offset_negative, .base = BASE_DATA, .at = 20, .size = 4,
	  .value = 0xfffffe0c, .counter = "DropField");
MALFORMED(budget_over_100_percent, .base = BASE_DATA, .at = 28, .size = 4,
	  .value = 1000001ULL << 12, .counter = "DropField");
MALFORMED(policy_3, .base = BASE_DATA, .at = 28, .size = 4,
	  .value = 3 << 10, .counter = "DropField");
MALFORMED(importance, .base = BASE_DATA, .at = 28, .size = 4,
	  .value = 1 << 5, .counter = "DropField");
MALFORMED(reserved_attributes, .base = BASE_DATA, .at = 28, .size = 4,
	  .value = 1, .counter = "DropField");
MALFORMED(zero_map_without_words, .base = BASE_ZEROS, .len = 32,
	  .counter = "DropShort");
MALFORMED(half_a_word_of_a_zero_map, .base = BASE_ZEROS, .len = 34,
	  .counter = "DropShort");
MALFORMED(zero_map_beyond_the_end, .base = BASE_ZEROS, .len = 40,
	  .counter = "DropTrailing");
MALFORMED(zero_map_as_long_as_a_segment, .base = BASE_ZEROS, .len = 532,
	  .counter = "DropTrailing");
MALFORMED(zero_map_off_its_grid, .base = BASE_ZEROS, .at = 20, .size = 4,
	  .value = 500, .counter = "DropField");
MALFORMED(zero_map_of_nothing, .base = BASE_ZEROS, .at = 32, .size = 4,
	  .value = 0, .counter = "DropField");
MALFORMED(zero_map_of_a_segment_that_is_not, .base = BASE_ZEROS, .at = 32,
	  .size = 4, .value = 7, .counter = "DropField");
MALFORMED(zero_map_of_the_last_bit, .base = BASE_ZEROS, .at = 32, .size = 4,
	  .value = 0x80000000, .counter = "DropField");
MALFORMED(zero_map_with_reserved_bits, .base = BASE_ZEROS, .at = 31, .size = 1,
	  .value = 6, .counter = "DropField");
MALFORMED(ctrl_with_segment_size, .base = BASE_CTRL, .at = 2, .size = 2,
	  .value = 8, .counter = "DropField");
MALFORMED(ctrl_with_trailing_bytes, .base = BASE_CTRL, .len = 24,
	  .counter = "DropTrailing");
MALFORMED(ctrl_cut, .base = BASE_CTRL, .len = 19, .counter = "DropShort");
MALFORMED(ack_with_a_number, .base = BASE_ACK, .at = 4, .size = 4, .value = 1,
	  .counter = "DropField");
MALFORMED(rst_cut, .base = BASE_RST, .len = 31, .counter = "DropShort");
MALFORMED(rst_with_trailing_bytes, .base = BASE_RST, .len = 33,
	  .counter = "DropTrailing");
MALFORMED(rst_with_frames, .base = BASE_RST, .at = 1, .size = 1, .value = 4,
	  .counter = "DropField");
MALFORMED(probe_with_contents, .base = BASE_PROBE, .at = 99, .size = 1,
	  .value = 1, .counter = "DropField");
MALFORMED(probe_with_frames, .base = BASE_PROBE, .at = 1, .size = 1,
	  .value = 4, .counter = "DropField");
MALFORMED(frame_type_0, .base = BASE_FRAME, .words = { 0x00010000 },
	  .n_words = 1, .counter = "DropType");
MALFORMED(frame_type_11, .base = BASE_FRAME, .words = { 0x0b010000 },
	  .n_words = 1, .counter = "DropType");
MALFORMED(share_of_nobody, .base = BASE_FRAME, .words = { 0x09010000 },
	  .n_words = 1, .counter = "DropField");
MALFORMED(long_share, .base = BASE_FRAME, .words = { 0x09020002, 0 },
	  .n_words = 2, .counter = "DropField");
MALFORMED(frame_of_no_words, .base = BASE_FRAME, .words = { 0x08000000 },
	  .n_words = 1, .counter = "DropField");
MALFORMED(frame_beyond_the_frames, .base = BASE_FRAME,
	  .words = { 0x08020000 }, .n_words = 1, .counter = "DropShort");
MALFORMED(long_ping, .base = BASE_FRAME, .words = { 0x08020000, 0 },
	  .n_words = 2, .counter = "DropField");
MALFORMED(ping_with_argument, .base = BASE_FRAME, .words = { 0x08010001 },
	  .n_words = 1, .counter = "DropField");
MALFORMED(short_ack, .base = BASE_FRAME, .words = { 0x01030000, 0, 0 },
	  .n_words = 3, .counter = "DropField");
MALFORMED(ack_without_its_ranges, .base = BASE_FRAME,
	  .words = { 0x01040001, 0, 0, 0 }, .n_words = 4,
	  .counter = "DropField");
MALFORMED(ack_that_spans_half_the_numbers, .base = BASE_FRAME,
	  .words = { 0x01040000, 0, 0, 0x80000000 }, .n_words = 4,
	  .counter = "DropField");
MALFORMED(short_flow, .base = BASE_FRAME, .words = { 0x03040000, 0, 0, 0 },
	  .n_words = 4, .counter = "DropField");
MALFORMED(flow_with_a_cap_over_100_percent, .base = BASE_FRAME,
	  .words = { 0x03050000, 1000, 1000001, 0, 1 << 24 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(close_with_unknown_reason, .base = BASE_FRAME,
	  .words = { 0x04050003, 0, 8, 1, 0 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(close_with_unknown_flags, .base = BASE_FRAME,
	  .words = { 0x04050202, 0, 8, 1, 0 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(close_over_the_budget_for_no_reason, .base = BASE_FRAME,
	  .words = { 0x04050101, 0, 8, 1, 0 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(close_with_a_budget_over_100_percent, .base = BASE_FRAME,
	  .words = { 0x04050001, 0, 8, 1, 1000001 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(complete_close_with_something_missing, .base = BASE_FRAME,
	  .words = { 0x04050000, 0, 8, 1, 0 }, .n_words = 5,
	  .counter = "DropField");
MALFORMED(lossmap_without_words, .base = BASE_FRAME,
	  .words = { 0x05030000, 0, 0 }, .n_words = 3,
	  .counter = "DropField");
MALFORMED(lossmap_off_its_grid, .base = BASE_FRAME,
	  .words = { 0x05040001, 0, 31, 1 }, .n_words = 4,
	  .counter = "DropField");
MALFORMED(short_fin, .base = BASE_FRAME, .words = { 0x07010000 },
	  .n_words = 1, .counter = "DropField");
MALFORMED(bad_frame_behind_a_good_one, .base = BASE_FRAME,
	  .words = { 0x07020000, 0, 0x08010001 }, .n_words = 3,
	  .counter = "DropField");

FIXTURE_SETUP(malformed)
{
	netns_new();
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(malformed)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

static void make_base(struct packet *p, struct peer *peer,
		      const struct _fixture_variant_malformed *v)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };
	struct dblp_data d = { .msg_len = 1000 };
	static const u32 two = 3;
	u32 i;

	switch (v->base) {
	case BASE_DATA:
		make_data(p, peer, &d, 500, NULL);
		break;
	case BASE_SINGLE:
		d.msg_len = 8;
		make_data(p, peer, &d, 8, NULL);
		break;
	case BASE_ZEROS:
		make_zeros(p, peer, &d, 500, NULL, &two, 1);
		break;
	case BASE_CTRL:
		make_ctrl(p, peer, &ping);
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

	/* Neither message nor connection was harmed. */
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, duplicates_are_counted_and_harmless)
{
	u64 before = mib("DropDuplicate");
	int i;

	send_segment(&self->peer, &self->p, 0, 1);
	for (i = 0; i < 5; i++)
		send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 5, mib("DropDuplicate"));
	send_segment(&self->peer, &self->p, 0, 0);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));

	/* Nor does the replay of a whole message make another one. */
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(before + 6, mib("DropDuplicate"));
}

TEST_F(peer, a_segment_comes_twice_with_other_contents)
{
	send_segment(&self->peer, &self->p, 0, 0);
	self->p.byte[100] ^= 0xff;
	poke(&self->p, 4, 4, self->peer.pn++);
	send_packet(&self->peer, &self->p);
	send_segment(&self->peer, &self->p, 0, 1);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));

	/* Late ones of a message that is done are acknowledged, and that's it. */
	self->p.byte[100] ^= 0xff;
	poke(&self->p, 4, 4, self->peer.pn++);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(self->peer.acked[self->peer.pn - 2]);
	EXPECT_TRUE(is_silent(self->fd));
}

/* META frames say something of the message they come with, or nothing */
TEST_F(peer, metas_that_cannot_be_are_refused)
{
	static const struct {
		u32 id, critical, offset, total;
		const char *counter;
	} bad[] = {
		{ 0, 0, 0, 0, "DropField" },
		{ 0, 0, 0, DBLP_MSG_MAX + 1, "DropField" },
		{ 0, 0, 0, UINT32_MAX, "DropField" },
		{ 0, 0, 1500, 1500, "DropField" },
		{ 0, 0, UINT32_MAX, DBLP_MSG_MAX, "DropField" },
		{ 0, 1501, 0, 1500, "DropField" },
		{ 0, UINT32_MAX, 0, 1500, "DropField" },
		{ 0, 1501, 0, 3000, "DropMismatch" },
		{ 0, 0, 0, 1499, "DropMismatch" },
		{ 0, 0, 1, 1500, "DropMismatch" },
		{ 0, 0, DBLP_MSG_MAX - 1499, DBLP_MSG_MAX, "DropMismatch" },
		{ 1, 0, 0, 1500, "DropMismatch" },
	};
	struct dblp_data d = { .msg_len = 1500, .meta = true };
	struct dblp_frame f = { .type = DBLP_FRAME_META };
	u64 before;
	u32 i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		before = mib(bad[i].counter);
		f.meta.msg_id = bad[i].id;
		f.meta.critical = bad[i].critical;
		f.meta.offset = bad[i].offset;
		f.meta.total = bad[i].total;
		make_data(&self->p, &self->peer, &d, 600, &f);
		send_packet(&self->peer, &self->p);
		EXPECT_TRUE(peer_sync(&self->peer));
		EXPECT_EQ(before + 1, mib(bad[i].counter)) TH_LOG("%u", i);
		EXPECT_FALSE(self->peer.acked[self->peer.pn - 2]);
	}

	/* A good one says how it is, and others may not contradict it. */
	before = mib("DropMismatch");
	f.meta = (typeof(f.meta)) { .critical = 1500, .total = 1500 };
	make_data(&self->p, &self->peer, &d, 600, &f);
	send_packet(&self->peer, &self->p);
	d.offset = 600;
	f.meta.total++;
	make_data(&self->p, &self->peer, &d, 600, &f);
	send_packet(&self->peer, &self->p);
	f.meta.total--;
	make_data(&self->p, &self->peer, &d, 600, &f);
	send_packet(&self->peer, &self->p);
	d.offset = 1200;
	f.meta.critical--;
	make_data(&self->p, &self->peer, &d, 600, &f);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropMismatch"));
	make_data(&self->p, &self->peer, &d, 600, NULL);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/* Segments of one message that say different things about it */
TEST_F(peer, contradictions_are_refused)
{
	static const struct {
		struct dblp_data d;
		u32 seg_size;
	} bad[] = {
		{ { .msg_len = 1501, .offset = 600 }, 600 },
		{ { .msg_len = 900, .offset = 600 }, 600 },
		{ { .msg_len = 1500, .offset = 500 }, 500 },
		{ { .msg_len = 1500, .offset = 600, .policy = 1 }, 600 },
		{ { .msg_len = 1500, .offset = 600, .phase = 3 }, 600 },
	};
	u64 before = mib("DropMismatch");
	unsigned int i, n = sizeof(bad) / sizeof(bad[0]);

	send_segment(&self->peer, &self->p, 0, 0);
	for (i = 0; i < n; i++) {
		make_data(&self->p, &self->peer, &bad[i].d, bad[i].seg_size,
			  NULL);
		send_packet(&self->peer, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + n, mib("DropMismatch"));
	for (i = 0; i < n; i++)
		EXPECT_FALSE(self->peer.acked[1 + i]) TH_LOG("case %u", i);
	EXPECT_TRUE(is_silent(self->fd));
	send_segment(&self->peer, &self->p, 0, 1);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, more_than_there_is_room_for_is_refused)
{
	struct dblp_data d = { };
	u64 before = mib("DropWindow");
	u32 first = self->peer.pn;

	/* A message number that was not allowed yet */
	d.msg_id = self->peer.theirs.max_msg;
	d.msg_len = 100;
	make_data(&self->p, &self->peer, &d, 100, NULL);
	send_packet(&self->peer, &self->p);
	d.msg_id = 0x7fffffff;
	make_data(&self->p, &self->peer, &d, 100, NULL);
	send_packet(&self->peer, &self->p);

	/* A message larger than the credit, its cost of 1024 bytes counted */
	d.msg_id = 0;
	d.msg_len = self->peer.theirs.max_data - 1023;
	make_data(&self->p, &self->peer, &d, 1000, NULL);
	send_packet(&self->peer, &self->p);

	/* Two that are too much together */
	d.msg_len = self->peer.theirs.max_data / 2;
	d.msg_id = 1;
	make_data(&self->p, &self->peer, &d, 1000, NULL);
	send_packet(&self->peer, &self->p);
	d.msg_id = 2;
	make_data(&self->p, &self->peer, &d, 1000, NULL);
	send_packet(&self->peer, &self->p);

	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 4, mib("DropWindow"));
	EXPECT_FALSE(self->peer.acked[first]);
	EXPECT_FALSE(self->peer.acked[first + 1]);
	EXPECT_FALSE(self->peer.acked[first + 2]);
	EXPECT_TRUE(self->peer.acked[first + 3]);
	EXPECT_FALSE(self->peer.acked[first + 4]);

	/* What is refused costs nothing. */
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/* Lies about messages have no good end: they end the connection. */
static void expect_abort(struct __test_metadata *_metadata, struct peer *peer,
			 int fd)
{
	char byte;

	EXPECT_TRUE(peer_expect(peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, peer->rst_reason);
	EXPECT_EQ(-1, recv(fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(EPROTO, errno);
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(fd));
}

TEST_F(peer, acknowledging_what_was_never_sent)
{
	static const u32 never[] = { 0, 1, 1000, 0x7fffffff, 0xffffffff };
	unsigned int i, n = sizeof(never) / sizeof(never[0]);
	u64 before = mib("DropField");

	for (i = 0; i < n; i++)
		peer_ack(&self->peer, never[i], never[i]);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + n, mib("DropField"));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, closing_what_was_never_sent)
{
	struct dblp_frame f = { .type = DBLP_FRAME_CLOSE };

	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, a_loss_map_of_what_was_never_sent)
{
	u8 bits[4] = { 0, 0, 0, 1 };
	struct dblp_frame f = {
		.type = DBLP_FRAME_LOSSMAP,
		.lossmap = { .msg_id = 0, .words = 1, .bits = bits },
	};

	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* Has the other end send a message of 20000 bytes, the first 3000 critical */
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
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 1701, .missing_segs = 1,
			.budget = 100000, .reason = DBLP_REASON_BUDGET,
		},
	};

	/* 10 % of the 17000 that are not critical are 1700. */
	have_message(&self->peer, self->fd, 100000);
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, forgiving_without_a_budget)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 8, .missing_segs = 1,
			.reason = DBLP_REASON_BUDGET,
		},
	};

	have_message(&self->peer, self->fd, 0);
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

/*
 * Segments that are described instead of sent. Message @id has 1500 bytes in
 * three segments, as that of send_message().
 */
static void send_zeros(struct peer *peer, struct packet *p, u32 id, u32 map)
{
	struct dblp_data d = { .msg_id = id, .msg_len = 1500 };

	make_zeros(p, peer, &d, 600, NULL, &map, 1);
	send_packet(peer, p);
}

/* The next message is @id, in which the segments of @map are zero */
static bool got_zeros(int fd, u32 id, u32 map)
{
	unsigned char buf[1501];
	struct message m;
	u32 seg, at, len;
	ssize_t bad;

	memset(buf, 0xa5, sizeof(buf));
	if (!wait_for(fd, POLLIN, WAIT_MS) ||
	    message_recv(fd, buf, sizeof(buf), MSG_DONTWAIT, &m) != 1500)
		return false;
	message_free(&m);
	if (m.info.msg_id != id || m.info.missing || buf[1500] != 0xa5)
		return false;
	for (seg = 0; seg < 3; seg++) {
		at = seg * 600;
		len = seg < 2 ? 600 : 300;
		bad = map & 1 << seg ? bytes_check(buf + at, len, 0) :
		      pattern_check(buf + at, len, at, SCRIPTED_SEED, id);
		if (bad >= 0)
			return false;
	}
	return true;
}

TEST_F(peer, zeroes_are_delivered)
{
	u32 map, seg;

	for (map = 0; map < 8; map++) {
		/* Before the others, or behind them */
		if (map && map % 2)
			send_zeros(&self->peer, &self->p, map, map);
		for (seg = 0; seg < 3; seg++)
			if (!(map & 1 << seg))
				send_segment(&self->peer, &self->p, map, seg);
		if (map && !(map % 2))
			send_zeros(&self->peer, &self->p, map, map);
		EXPECT_TRUE(got_zeros(self->fd, map, map));
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

/* The first to come counts; what comes later is not needed */
TEST_F(peer, a_segment_is_sent_and_described)
{
	u64 before = mib("DropLate");
	u32 pn;

	send_zeros(&self->peer, &self->p, 0, 1);
	pn = self->peer.pn;
	send_segment(&self->peer, &self->p, 0, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropLate"));
	EXPECT_TRUE(self->peer.acked[pn]);
	send_segment(&self->peer, &self->p, 0, 1);
	pn = self->peer.pn;
	send_zeros(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropLate"));
	EXPECT_TRUE(self->peer.acked[pn]);
	EXPECT_TRUE(is_silent(self->fd));
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(got_zeros(self->fd, 0, 1));
}

/* A map that is new and is not contradicts what came before */
TEST_F(peer, a_map_that_contradicts_is_refused)
{
	u64 before = mib("DropMismatch"), late = mib("DropLate");
	struct dblp_data d = { .msg_len = 1500 };
	const u32 one = 1;
	u32 pn;

	send_segment(&self->peer, &self->p, 0, 0);
	pn = self->peer.pn;
	send_zeros(&self->peer, &self->p, 0, 3);
	send_zeros(&self->peer, &self->p, 0, 5);
	send_zeros(&self->peer, &self->p, 0, 7);
	/* Nor are other messages described than those that are sent */
	d.msg_len = 1501;
	make_zeros(&self->p, &self->peer, &d, 600, NULL, &one, 1);
	send_packet(&self->peer, &self->p);
	d.msg_len = 1500;
	make_zeros(&self->p, &self->peer, &d, 601, NULL, &one, 1);
	send_packet(&self->peer, &self->p);
	d.phase = 1;
	make_zeros(&self->p, &self->peer, &d, 600, NULL, &one, 1);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 6, mib("DropMismatch"));
	for (; pn < self->peer.pn - 1; pn++)
		EXPECT_FALSE(self->peer.acked[pn]);
	EXPECT_EQ(late, mib("DropLate"));
	EXPECT_TRUE(is_silent(self->fd));
	send_zeros(&self->peer, &self->p, 0, 6);
	EXPECT_TRUE(got_zeros(self->fd, 0, 6));
}

TEST_F(peer, a_map_that_comes_again)
{
	u64 before = mib("DropDuplicate"), late = mib("DropLate");
	u32 pn;

	send_zeros(&self->peer, &self->p, 0, 2);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropDuplicate"));
	send_zeros(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(late + 1, mib("DropLate"));
	send_zeros(&self->peer, &self->p, 0, 5);
	EXPECT_TRUE(got_zeros(self->fd, 0, 7));

	/* After the message is closed */
	pn = self->peer.pn;
	send_zeros(&self->peer, &self->p, 0, 5);
	send_zeros(&self->peer, &self->p, 0, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(late + 3, mib("DropLate"));
	EXPECT_TRUE(self->peer.acked[pn]);
	EXPECT_TRUE(self->peer.acked[pn + 1]);
	EXPECT_TRUE(is_silent(self->fd));
	send_message(&self->peer, &self->p, 1);
	EXPECT_TRUE(got_message(self->fd, 1, 1500));
}

/* Credit counts what is described as it counts what is sent */
TEST_F(peer, zeroes_beyond_the_credit_are_refused)
{
	struct dblp_data d = { .msg_len = self->peer.theirs.max_data };
	u64 before = mib("DropWindow");
	const u32 one = 1;

	make_zeros(&self->p, &self->peer, &d, 60000, NULL, &one, 1);
	send_packet(&self->peer, &self->p);
	d.msg_len = 1500;
	d.msg_id = self->peer.theirs.max_msg;
	make_zeros(&self->p, &self->peer, &d, 600, NULL, &one, 1);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropWindow"));
	EXPECT_TRUE(is_silent(self->fd));
	send_zeros(&self->peer, &self->p, 0, 7);
	EXPECT_TRUE(got_zeros(self->fd, 0, 7));
}

/* Maps of a bit each take no more than the receive buffer, as segments do */
TEST_F(peer, many_maps_fill_the_receive_buffer_and_no_more)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = 600 * 32 * 1000 };
	u64 before = mib("DropMemory");
	int size = 100000, i;
	const u32 one = 1;

	ASSERT_EQ(0, setsockopt(self->fd, SOL_SOCKET, SO_RCVBUF, &size,
				sizeof(size)));
	for (i = 0; i < 1000; i++, d.offset += 32 * 600) {
		make_zeros(&self->p, &self->peer, &d, 600, NULL, &one, 1);
		send_packet(&self->peer, &self->p);
		if (i % 50 == 0)
			EXPECT_TRUE(peer_sync(&self->peer));
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LT(before, mib("DropMemory"));
	EXPECT_GE(get_meminfo(self->fd, SK_MEMINFO_RCVBUF) + 4096,
		  get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/* Packets that come in one buffer: two maps, or a segment and a map */
TEST_F(peer, maps_in_a_train)
{
	struct dblp_data d = { .msg_len = 33 * 600 };
	struct packet one, *two = &self->p;
	unsigned char buf[33 * 600];
	u32 map, seg, stride;
	struct message m;

	map = 0x55555555;
	make_zeros(&one, &self->peer, &d, 600, NULL, &map, 1);
	d.offset = 32 * 600;
	map = 1;
	make_zeros(two, &self->peer, &d, 600, NULL, &map, 1);
	stride = one.len;
	memcpy(one.byte + one.len, two->byte, two->len);
	one.len += two->len;
	ASSERT_EQ(0, setsockopt(self->peer.udp, SOL_UDP, UDP_SEGMENT, &stride,
				sizeof(stride)));
	send_packet(&self->peer, &one);
	for (seg = 1; seg < 31; seg += 2) {
		d.offset = seg * 600;
		make_data(&one, &self->peer, &d, 600, NULL);
		stride = one.len;
		/* The last of a train is the shorter one */
		d.offset = 0;
		map = 0x55555555;
		make_zeros(two, &self->peer, &d, 600, NULL, &map, 1);
		memcpy(one.byte + one.len, two->byte, two->len);
		one.len += two->len;
		ASSERT_EQ(0, setsockopt(self->peer.udp, SOL_UDP, UDP_SEGMENT,
					&stride, sizeof(stride)));
		send_packet(&self->peer, &one);
	}
	stride = 0;
	ASSERT_EQ(0, setsockopt(self->peer.udp, SOL_UDP, UDP_SEGMENT, &stride,
				sizeof(stride)));
	d.offset = 31 * 600;
	make_data(two, &self->peer, &d, 600, NULL);
	send_packet(&self->peer, two);
	ASSERT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
	ASSERT_EQ(33 * 600, message_recv(self->fd, buf, sizeof(buf), 0, &m));
	message_free(&m);
	for (seg = 0; seg < 33; seg++)
		EXPECT_EQ(-1, seg % 2 ?
			  pattern_check(buf + seg * 600, 600, seg * 600,
					SCRIPTED_SEED, 0) :
			  bytes_check(buf + seg * 600, 600, 0));
	EXPECT_EQ(15, mib("DropLate"));
}

/* The data header of the last DATA packet that came, and its zero map if any */
static struct dblp_data last_data(const struct peer *peer, u32 *map)
{
	const struct packet *p = &peer->last[DBLP_PKT_DATA];
	struct dblp_data d = packet_data(p);

	if (d.zeros && d.seg_len == 4)
		*map = dblp_get_u64(p->byte + p->len - 8);
	return d;
}

/* A message of ten segments at the other end; a bit of @map is a zero one */
static void have_zeros(int fd, u32 map, u32 policy)
{
	u32 size = get_info(fd).seg_size, seg;
	static char buf[14400];
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = policy ? 100000 : 0, .policy = policy,
	};

	pattern_fill(buf, 10 * size, 0, SCRIPTED_SEED, 0);
	for (seg = 0; seg < 10; seg++)
		if (map & 1 << seg)
			memset(buf + seg * size, 0, size);
	if (sndinfo_send(fd, buf, 10 * size, 0, &info) != 10 * size)
		die("sendmsg()");
}

/* A map that is not acknowledged is sent again, the same */
TEST_F(peer, a_lost_map_is_repeated)
{
	struct dblp_data d;
	u32 map = 0, i;

	have_zeros(self->fd, 0x3ff, DBLP_POLICY_EARLY);
	for (i = 0; i < 4; i++, map = 0) {
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
		d = last_data(&self->peer, &map);
		EXPECT_TRUE(d.zeros);
		/* It is all of the first pass */
		EXPECT_TRUE(d.repair);
		EXPECT_EQ(0, d.offset);
		EXPECT_EQ(0x3ff, map);
	}
}

/* The map comes first, and what is in it does not come in any other way */
TEST_F(peer, what_is_described_is_not_sent)
{
	struct dblp_data d;
	u32 map = 0, seg = get_info(self->fd).seg_size, n;

	have_zeros(self->fd, 0x1ef, DBLP_POLICY_EARLY);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
	d = last_data(&self->peer, &map);
	EXPECT_TRUE(d.zeros);
	EXPECT_FALSE(d.repair);
	EXPECT_EQ(0x1ef, map);
	for (n = 0; n < 8; n++) {
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
		d = last_data(&self->peer, &map);
		if (d.zeros)
			continue;
		EXPECT_TRUE(d.offset == 4 * seg || d.offset == 9 * seg);
		/* The first pass is over with the second of them */
		EXPECT_EQ(n > 0, d.repair);
	}
}

/* Nothing of an all-zero message was sent, and yet it can be closed */
TEST_F(peer, a_message_of_zeroes_is_closed)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = { .budget = 100000 },
	};
	struct message m;
	uint32_t on = 1;

	ASSERT_EQ(0, setsockopt(self->fd, SOL_DBLP, DBLP_NOTIFY, &on,
				sizeof(on)));
	have_zeros(self->fd, 0x3ff, DBLP_POLICY_EARLY);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	ASSERT_TRUE(wait_for(self->fd, POLLERR, WAIT_MS));
	ASSERT_EQ(0, message_recv(self->fd, NULL, 0, MSG_ERRQUEUE |
				  MSG_DONTWAIT, &m));
	EXPECT_EQ(0, m.info.missing);
	message_free(&m);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

/* Told before the message: not taken, not kept */
TEST_F(peer, a_budget_of_a_message_that_has_not_come)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_BUDGET, .budget = { .ppm = DBLP_PPM },
	};
	u64 before = mib("DropField");
	u32 pn = self->peer.pn;

	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
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
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 1440, .missing_segs = 1, .budget = 10,
			.reason = DBLP_REASON_DEADLINE,
			.flags = DBLP_RCV_OVER_BUDGET,
		},
	};

	have_message(&self->peer, self->fd, 10);
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, claiming_another_budget)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 1440, .missing_segs = 1, .budget = 900000,
			.reason = DBLP_REASON_BUDGET,
		},
	};

	have_message(&self->peer, self->fd, 500000);
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* One LOSSMAP word for message 0 */
static void send_lossmap(struct peer *peer, struct packet *p, u32 first,
			 u32 word)
{
	u8 bits[4] = { word >> 24, word >> 16, word >> 8, word };
	struct dblp_frame f = {
		.type = DBLP_FRAME_LOSSMAP,
		.lossmap = { .first = first, .words = 1, .bits = bits },
	};

	make_ctrl(p, peer, &f);
	send_packet(peer, p);
}

TEST_F(peer, missing_what_is_critical)
{
	have_message(&self->peer, self->fd, 500000);
	send_lossmap(&self->peer, &self->p, 0, 1);
	expect_abort(_metadata, &self->peer, self->fd);
}

TEST_F(peer, missing_segments_beyond_the_end)
{
	have_message(&self->peer, self->fd, 500000);
	send_lossmap(&self->peer, &self->p, 3200, 1);
	expect_abort(_metadata, &self->peer, self->fd);
}

/* Credit told along with an ACK may be lost: who asks is told again. */
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
	struct dblp_frame f = {
		.type = DBLP_FRAME_CLOSE,
		.close = {
			.missing = 100, .missing_segs = 1,
			.budget = 900000, .reason = DBLP_REASON_BUDGET,
		},
	};
	struct message m;

	set_u32(self->fd, DBLP_NOTIFY, 1);
	/* A segment has more than 100 bytes, and the sixth is not the last. */
	have_message(&self->peer, self->fd, 900000);
	make_ctrl(&self->p, &self->peer, &f);
	send_packet(&self->peer, &self->p);
	send_lossmap(&self->peer, &self->p, 0, 1 << 5);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(-1, message_recv(self->fd, NULL, 0,
				   MSG_ERRQUEUE | MSG_DONTWAIT, &m));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

static void send_fin(struct peer *peer, struct packet *p, u32 end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_FIN, .fin.end = end };

	make_ctrl(p, peer, &f);
	send_packet(peer, p);
}

TEST_F(peer, ending_before_what_was_sent)
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

/*
 * Packets that belong to no connection, or to that of somebody else
 */
TEST_F(peer, an_unknown_connection_is_reset)
{
	u64 unknown = self->peer.scid ^ 1, before = mib("RstSent");
	struct dblp_data d = { .msg_len = 100 };

	make_data(&self->p, &self->peer, &d, 100, NULL);
	poke(&self->p, 8, 8, unknown);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_UNKNOWN, self->peer.rst_reason);
	EXPECT_EQ(unknown, self->peer.rst_echo);
	EXPECT_EQ(DBLP_RST_LEN, self->peer.last[DBLP_PKT_RST].len);
	EXPECT_EQ(before + 1, mib("RstSent"));
	EXPECT_EQ(2, socket_count());

	/* The connection next to it knows nothing of that. */
	EXPECT_TRUE(is_silent(self->fd));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, no_answer_is_longer_than_the_question)
{
	u64 unknown = self->peer.scid ^ 1;
	u32 len;

	for (len = DBLP_HDR_LEN; len < DBLP_RST_LEN; len += 4) {
		make_packet(&self->p, DBLP_PKT_CTRL, 1, unknown);
		while (self->p.len < len) {
			put_word(&self->p, 0x08010000);
			self->p.byte[1]++;
		}
		send_packet(&self->peer, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

TEST_F(peer, a_reset_is_never_answered)
{
	make_rst(&self->p, self->peer.scid ^ 1, DBLP_RST_UNKNOWN, 1234);
	send_packet(&self->peer, &self->p);
	make_rst(&self->p, 0, DBLP_RST_UNKNOWN, 1234);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
	EXPECT_TRUE(is_silent(self->fd));
}

TEST_F(peer, a_reset_ends_the_connection)
{
	char byte;

	make_rst(&self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_EQ(-1, recv(self->fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_EQ(0, recv(self->fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

TEST_F(peer, one_who_has_forgotten_us_can_say_so)
{
	char byte;

	make_rst(&self->p, 0, DBLP_RST_UNKNOWN, self->peer.cid);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_EQ(-1, recv(self->fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(ECONNRESET, errno);
}

TEST_F(peer, a_forged_reset_is_ignored)
{
	u64 cid = self->peer.cid, scid = self->peer.scid;

	make_rst(&self->p, scid, DBLP_RST_CLOSED, cid ^ 1);
	send_packet(&self->peer, &self->p);
	make_rst(&self->p, 0, DBLP_RST_UNKNOWN, cid ^ 1);
	send_packet(&self->peer, &self->p);
	make_rst(&self->p, 0, DBLP_RST_UNKNOWN, scid);
	send_packet(&self->peer, &self->p);
	make_rst(&self->p, scid, 0, cid);
	send_packet(&self->peer, &self->p);
	make_rst(&self->p, scid, 99, cid);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

/* The peer's address is fixed: the right connection ID is not enough. */
TEST_F(peer, packets_from_another_port_are_ignored)
{
	u64 before = mib("DropWrongPeer");
	struct peer other;

	peer_connect(&other, &self->addr);
	other.scid = self->peer.scid;
	other.cid = self->peer.cid;

	send_message(&other, &self->p, 0);
	send_fin(&other, &self->p, 0);
	peer_ack(&other, 0, 1000);
	make_rst(&self->p, other.scid, DBLP_RST_CLOSED, other.cid);
	send_packet(&other, &self->p);
	make_rst(&self->p, 0, DBLP_RST_UNKNOWN, other.cid);
	send_packet(&other, &self->p);

	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LE(before + 6, mib("DropWrongPeer"));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	peer_drain(&other);
	EXPECT_EQ(0, other.n[DBLP_PKT_ACK] + other.n[DBLP_PKT_CTRL]);
	peer_close(&other);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, handshake_packets_in_the_middle_of_a_connection)
{
	u64 before = mib("DropState");
	struct dblp_params ours = params_default();

	make_packet(&self->p, DBLP_PKT_INIT_ACK, 0, self->peer.scid);
	put_zero(&self->p, DBLP_COOKIE_LEN);
	send_packet(&self->peer, &self->p);
	make_packet(&self->p, DBLP_PKT_COOKIE_ACK, 0, self->peer.scid);
	dblp_put_params(self->p.byte + self->p.len, &ours);
	self->p.len += DBLP_PARAMS_LEN;
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropState"));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/*
 * The handshake
 */
TEST_F(peer, an_init_leaves_nothing_behind)
{
	u64 before = mib("CookieSent");
	struct peer other;
	unsigned int i;

	peer_connect(&other, &self->addr);
	for (i = 0; i < 200; i++) {
		make_init(&self->p, 0x1000000 + i);
		send_packet(&other, &self->p);
		EXPECT_TRUE(peer_expect(&other, DBLP_PKT_INIT_ACK, WAIT_MS));
	}
	EXPECT_EQ(DBLP_HDR_LEN + DBLP_COOKIE_LEN,
		  other.last[DBLP_PKT_INIT_ACK].len);
	EXPECT_EQ(before + 200, mib("CookieSent"));
	EXPECT_EQ(2, socket_count());
	fcntl(self->listener, F_SETFL, O_NONBLOCK);
	EXPECT_EQ(-1, accept(self->listener, NULL, NULL));
	EXPECT_EQ(EAGAIN, errno);
	peer_close(&other);
}

TEST_F(peer, bad_inits)
{
	struct peer other;

	peer_connect(&other, &self->addr);
	make_init(&self->p, 0);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	poke(&self->p, 100, 1, 1);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	self->p.len--;
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	put_zero(&self->p, 1);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	poke(&self->p, 8, 8, 5);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	poke(&self->p, 4, 4, 5);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	peer_drain(&other);
	EXPECT_EQ(0, other.n[DBLP_PKT_INIT_ACK]);
	peer_close(&other);
}

TEST_F(peer, an_init_of_another_version_learns_ours)
{
	struct packet *answer;
	struct peer other;

	peer_connect(&other, &self->addr);
	make_init(&self->p, 0x1122334455667788);
	poke(&self->p, 0, 1, 0x21);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_VERSION, WAIT_MS));
	answer = &other.last[DBLP_PKT_VERSION];
	ASSERT_EQ(DBLP_HDR_LEN + 12, answer->len);
	EXPECT_EQ(0x1122334455667788,
		  dblp_get_u64(answer->byte + DBLP_HDR_LEN));
	EXPECT_EQ(1, dblp_get_u64(answer->byte + DBLP_HDR_LEN + 4) &
		  UINT32_MAX);

	/* Never in answer to anything else, or to something shorter */
	poke(&self->p, 0, 1, 0x25);
	send_packet(&other, &self->p);
	poke(&self->p, 0, 1, 0x21);
	self->p.len = DBLP_INIT_LEN - 1;
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	peer_drain(&other);
	EXPECT_EQ(1, other.n[DBLP_PKT_VERSION]);
	EXPECT_EQ(2, socket_count());
	peer_close(&other);
}

static bool connection_comes(int listener)
{
	bool came = wait_for(listener, POLLIN, 100);

	if (came)
		close(accept(listener, NULL, NULL));
	return came;
}

TEST_F(peer, altered_cookies)
{
	static const u32 places[] = {
		DBLP_HDR_LEN - 1,	/* connection ID in the header */
		DBLP_HDR_LEN + 7,	/* the client's */
		DBLP_HDR_LEN + 15,	/* the server's in the cookie */
		DBLP_HDR_LEN + 23,	/* birth */
		DBLP_HDR_LEN + 31,	/* MAC */
	};
	unsigned int i, n = sizeof(places) / sizeof(places[0]);
	struct dblp_params ours = params_default();
	u64 before = mib("CookieBad");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	for (i = 0; i < n; i++) {
		make_echo(&self->p, &other, &ours);
		self->p.byte[places[i]] ^= 1;
		send_packet(&other, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + n, mib("CookieBad"));
	EXPECT_FALSE(connection_comes(self->listener));
	EXPECT_EQ(2, socket_count());

	/* The cookie itself is good all the same. */
	make_echo(&self->p, &other, &ours);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_COOKIE_ACK, WAIT_MS));
	EXPECT_TRUE(connection_comes(self->listener));
	peer_close(&other);
}

TEST_F(peer, a_cookie_is_good_for_one_address)
{
	struct dblp_params ours = params_default();
	struct peer other, thief;
	u64 before = mib("CookieBad");

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	peer_connect(&thief, &self->addr);
	thief.cookie = other.cookie;
	thief.cid = other.cid;
	make_echo(&self->p, &thief, &ours);
	send_packet(&thief, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("CookieBad"));
	EXPECT_FALSE(connection_comes(self->listener));
	peer_close(&other);
	peer_close(&thief);
}

TEST_F(peer, bad_parameters)
{
	struct dblp_params ours = params_default();
	u32 at = DBLP_ECHO_LEN - DBLP_PARAMS_LEN;
	u64 before = mib("DropField");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	make_echo(&self->p, &other, &ours);
	poke(&self->p, at, 4, DBLP_PPM + 1);
	send_packet(&other, &self->p);
	make_echo(&self->p, &other, &ours);
	poke(&self->p, at + 16, 4, 0);
	send_packet(&other, &self->p);
	make_echo(&self->p, &other, &ours);
	poke(&self->p, at + 16, 4, DBLP_MSG_MAX + 1);
	send_packet(&other, &self->p);
	make_echo(&self->p, &other, &ours);
	poke(&self->p, at + 20, 4, DBLP_PARAMS_RTT_MAX + 1);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 4, mib("DropField"));
	EXPECT_FALSE(connection_comes(self->listener));
	peer_close(&other);
}

TEST_F_TIMEOUT(peer, a_cookie_goes_stale, 60)
{
	struct dblp_params ours = params_default();
	u64 before = mib("CookieStale");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	/* Nothing to wait for but the clock: cookies live for 5 s. */
	usleep(5200000);
	make_echo(&self->p, &other, &ours);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("CookieStale"));
	EXPECT_FALSE(connection_comes(self->listener));
	peer_close(&other);
}

TEST_F(peer, a_repeated_echo_is_answered_but_makes_no_second_connection)
{
	struct dblp_params ours = params_default();
	int i;

	for (i = 0; i < 3; i++) {
		make_echo(&self->p, &self->peer, &ours);
		send_packet(&self->peer, &self->p);
		EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ACK,
					WAIT_MS));
	}
	EXPECT_FALSE(connection_comes(self->listener));
	EXPECT_EQ(2, socket_count());
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, a_cookie_is_good_for_one_connection)
{
	struct dblp_params ours = params_default();
	u64 before = mib("CookieStale");
	struct peer witness;

	make_rst(&self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	make_echo(&self->p, &self->peer, &ours);
	send_packet(&self->peer, &self->p);

	peer_connect(&witness, &self->addr);
	peer_handshake(&witness);
	EXPECT_EQ(before + 1, mib("CookieStale"));
	EXPECT_TRUE(connection_comes(self->listener));
	EXPECT_FALSE(connection_comes(self->listener));
	peer_close(&witness);
}

TEST_F(peer, nobody_listens_any_more)
{
	struct dblp_params ours = params_default();
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	/* The connection keeps the port open. */
	close(self->listener);
	self->listener = -1;
	make_echo(&self->p, &other, &ours);
	send_packet(&other, &self->p);
	make_init(&self->p, other.cid);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_RST, WAIT_MS));
	peer_drain(&other);
	EXPECT_EQ(DBLP_RST_REFUSED, other.rst_reason);
	EXPECT_EQ(other.cid, other.rst_echo);
	EXPECT_EQ(0, other.n[DBLP_PKT_COOKIE_ACK]);
	EXPECT_EQ(1, socket_count());
	peer_close(&other);
}

/*
 * The same from the other side: the server is not what it should be.
 */
FIXTURE(server) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int fd;
};

FIXTURE_VARIANT(server) {
	const char *address;
};

FIXTURE_VARIANT_ADD(server, ipv4) { .address = "::ffff:127.0.0.1" };
FIXTURE_VARIANT_ADD(server, ipv6) { .address = "::1" };

FIXTURE_SETUP(server)
{
	netns_new();
	peer_listen(&self->peer, variant->address, &self->addr);
	self->fd = new_socket();
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, connect(self->fd, (struct sockaddr *)&self->addr,
			      sizeof(self->addr)));
	EXPECT_EQ(EINPROGRESS, errno);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_INIT, WAIT_MS));
	self->peer.scid = dblp_get_u64(self->peer.last[DBLP_PKT_INIT].byte +
				       DBLP_HDR_LEN);
}

FIXTURE_TEARDOWN(server)
{
	close(self->fd);
	peer_close(&self->peer);
}

static void send_init_ack(struct peer *peer, struct packet *p, u64 dcid)
{
	struct dblp_cookie cookie = { .scid = peer->cid, .mac = 42 };

	make_packet(p, DBLP_PKT_INIT_ACK, 0, dcid);
	dblp_put_cookie(p->byte + p->len, &cookie);
	p->len += DBLP_COOKIE_LEN;
	send_packet(peer, p);
}

static void send_cookie_ack(struct peer *peer, struct packet *p)
{
	struct dblp_params ours = params_default();

	make_packet(p, DBLP_PKT_COOKIE_ACK, 0, peer->scid);
	dblp_put_params(p->byte + p->len, &ours);
	p->len += DBLP_PARAMS_LEN;
	send_packet(peer, p);
}

static int connect_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	if (!wait_for(fd, POLLOUT | POLLHUP | POLLERR, WAIT_MS) ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -1;
	return err;
}

/* Has the client come through the handshake, whatever was sent before? */
static bool handshake_succeeds(struct peer *peer, struct packet *p, int fd)
{
	send_init_ack(peer, p, peer->scid);
	if (!peer_expect(peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS))
		return false;
	send_cookie_ack(peer, p);
	return connect_error(fd) == 0 &&
	       get_state(fd) == DBLP_STATE_ESTABLISHED && peer_sync(peer);
}

TEST_F(server, an_honest_one_is_accepted)
{
	static const struct dblp_cookie none;
	struct dblp_cookie echoed;

	EXPECT_EQ(DBLP_INIT_LEN, self->peer.last[DBLP_PKT_INIT].len);
	EXPECT_EQ(-1, bytes_check(self->peer.last[DBLP_PKT_INIT].byte + 24,
				  DBLP_INIT_LEN - 24, 0));
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
	dblp_get_cookie(&echoed, self->peer.last[DBLP_PKT_COOKIE_ECHO].byte +
			DBLP_HDR_LEN + 8);
	EXPECT_EQ(self->peer.cid, echoed.scid);
	EXPECT_EQ(42, echoed.mac);
	EXPECT_NE(0, memcmp(&none, &echoed, sizeof(none)));
}

TEST_F(server, answers_of_others_are_ignored)
{
	struct sockaddr_dblp client;
	socklen_t len = sizeof(client);
	struct peer other;

	/* A cookie for another client, or none; the ACK before its time */
	send_init_ack(&self->peer, &self->p, self->peer.scid ^ 1);
	make_packet(&self->p, DBLP_PKT_INIT_ACK, 0, self->peer.scid);
	put_zero(&self->p, DBLP_COOKIE_LEN);
	send_packet(&self->peer, &self->p);
	send_cookie_ack(&self->peer, &self->p);

	/* The right answers from the wrong port */
	ASSERT_EQ(0, getsockname(self->fd, (struct sockaddr *)&client, &len));
	peer_connect(&other, &client);
	other.scid = self->peer.scid;
	send_init_ack(&other, &self->p, other.scid);
	make_rst(&self->p, other.scid, DBLP_RST_REFUSED, other.scid);
	send_packet(&other, &self->p);

	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_EQ(DBLP_STATE_INIT_SENT, get_state(self->fd));
	peer_close(&other);
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
}

TEST_F(server, a_refusal_refuses)
{
	make_rst(&self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.scid);
	send_packet(&self->peer, &self->p);
	EXPECT_EQ(ECONNREFUSED, connect_error(self->fd));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

TEST_F(server, a_refusal_after_the_cookie)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	make_rst(&self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.scid);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, 1000));
	EXPECT_EQ(ECONNREFUSED, connect_error(self->fd));
}

static void send_version(struct peer *peer, struct packet *p, u64 echo,
			 u32 version)
{
	make_packet(p, DBLP_PKT_VERSION, 0, 0);
	put_u64_be(p, echo);
	put_word(p, version);
	send_packet(peer, p);
}

TEST_F(server, no_version_in_common)
{
	send_version(&self->peer, &self->p, self->peer.scid, 2);
	EXPECT_EQ(EPROTONOSUPPORT, connect_error(self->fd));
}

TEST_F(server, forged_version_lists_are_ignored)
{
	/* Not for this INIT; or with our version in it, which makes no sense */
	send_version(&self->peer, &self->p, self->peer.scid ^ 1, 2);
	send_version(&self->peer, &self->p, self->peer.scid, 1);
	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
	send_version(&self->peer, &self->p, self->peer.scid, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

TEST_F(server, bad_parameters_are_refused)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	make_packet(&self->p, DBLP_PKT_COOKIE_ACK, 0, self->peer.scid);
	put_zero(&self->p, DBLP_PARAMS_LEN);
	poke(&self->p, DBLP_HDR_LEN, 4, DBLP_PPM + 1);
	send_packet(&self->peer, &self->p);
	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_EQ(DBLP_STATE_COOKIE_SENT, get_state(self->fd));
	send_cookie_ack(&self->peer, &self->p);
	EXPECT_EQ(0, connect_error(self->fd));
}

/*
 * Whatever comes: packets that are nearly good. The seed is fixed, so what
 * fails once fails again.
 */
static u32 random_next(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static void make_random(struct packet *p, struct peer *peer, u64 *state)
{
	static const u8 types[] = {
		DBLP_FRAME_FLOW, DBLP_FRAME_CLOSE, DBLP_FRAME_META,
		DBLP_FRAME_FIN, DBLP_FRAME_PING, DBLP_FRAME_ECN,
	};
	struct dblp_frame f = { .type = types[random_next(state) % 6] };
	struct dblp_data d = {
		.msg_id = random_next(state) % 8,
		.msg_len = 1500,
		.offset = random_next(state) % 3 * 600,
	};
	u32 flips = random_next(state) % 4;

	if (peer->pn > 4000)
		peer->pn = 0;
	if (random_next(state) % 3)
		make_data(p, peer, &d, 600, random_next(state) % 2 ? &f : NULL);
	else
		make_ctrl(p, peer, &f);
	while (flips--)
		p->byte[random_next(state) % (p->len < 64 ? p->len : 64)] ^=
			1 << random_next(state) % 8;
	if (random_next(state) % 16 == 0)
		p->len = random_next(state) % p->len;
}

TEST_F_TIMEOUT(peer, thousands_of_spoiled_packets, 120)
{
	struct peer good;
	u64 state = 1;
	int fd, i;

	for (i = 0; i < 4000; i++) {
		make_random(&self->p, &self->peer, &state);
		/* The connection does not change by others' packets ... */
		send_packet(&self->peer, &self->p);
		if (i % 64)
			continue;
		peer_drain(&self->peer);
		if (get_state(self->fd) == DBLP_STATE_ESTABLISHED)
			continue;
		/* ... but may end by its own peer's: then there is another. */
		close(self->fd);
		peer_close(&self->peer);
		self->fd = peer_join(&self->peer, &self->addr, self->listener);
		ASSERT_LE(0, self->fd);
	}

	fd = peer_join(&good, &self->addr, self->listener);
	ASSERT_LE(0, fd);
	send_message(&good, &self->p, 0);
	EXPECT_TRUE(got_message(fd, 0, 1500));
	close(fd);
	peer_close(&good);
}

TEST_HARNESS_MAIN
