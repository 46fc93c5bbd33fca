// SPDX-License-Identifier: GPL-2.0-only
/*
 * Segments that are duplicates, contradict each other or exceed the credit, whether they are
 * sent or described by a zero map.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <netinet/udp.h>

TEST_F(peer, a_valid_peer_is_served)
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

	/* The replay of a whole message does not make another message */
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

	/* Late segments of a closed message are only acknowledged */
	self->p.byte[100] ^= 0xff;
	poke(&self->p, 4, 4, self->peer.pn++);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(self->peer.acked[self->peer.pn - 2]);
	EXPECT_TRUE(is_silent(self->fd));
}

/* A META frame is about the message of its packet; all others are refused */
TEST_F(peer, impossible_metas_are_refused)
{
	static const struct {
		u32 id, critical, offset, total;
		const char *counter;
	} bad[] = {
		/* All other cases are in unit/test_wire_frame.c */
		{ 0, 1501, 0, 1500, "DropField" },
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
		send_one(&self->peer, &self->p, &d, 600, &f);
		EXPECT_TRUE(peer_sync(&self->peer));
		EXPECT_EQ(before + 1, mib(bad[i].counter)) TH_LOG("%u", i);
		EXPECT_FALSE(self->peer.acked[self->peer.pn - 2]);
	}

	/* After a valid META, others may not contradict it */
	before = mib("DropMismatch");
	f.meta = (typeof(f.meta)) { .critical = 1500, .total = 1500 };
	send_one(&self->peer, &self->p, &d, 600, &f);
	d.offset = 600;
	f.meta.total++;
	send_one(&self->peer, &self->p, &d, 600, &f);
	f.meta.total--;
	send_one(&self->peer, &self->p, &d, 600, &f);
	d.offset = 1200;
	f.meta.critical--;
	send_one(&self->peer, &self->p, &d, 600, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropMismatch"));
	send_one(&self->peer, &self->p, &d, 600, NULL);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/* Segments of a message that contradict each other */
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
		send_one(&self->peer, &self->p, &bad[i].d, bad[i].seg_size, NULL);
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

TEST_F(peer, segments_beyond_the_credit_are_refused)
{
	struct dblp_data d = { };
	u64 before = mib("DropWindow");
	u32 first = self->peer.pn;

	/* A message ID beyond the credit */
	d.msg_id = self->peer.theirs.max_msg;
	d.msg_len = 100;
	send_one(&self->peer, &self->p, &d, 100, NULL);
	d.msg_id = 0x7fffffff;
	send_one(&self->peer, &self->p, &d, 100, NULL);

	/* A message larger than the credit, with its cost of 1024 bytes */
	d.msg_id = 0;
	d.msg_len = self->peer.theirs.max_data - 1023;
	send_one(&self->peer, &self->p, &d, 1000, NULL);

	/* Two messages that exceed the credit together */
	d.msg_len = self->peer.theirs.max_data / 2;
	d.msg_id = 1;
	send_one(&self->peer, &self->p, &d, 1000, NULL);
	d.msg_id = 2;
	send_one(&self->peer, &self->p, &d, 1000, NULL);

	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 4, mib("DropWindow"));
	EXPECT_FALSE(self->peer.acked[first]);
	EXPECT_FALSE(self->peer.acked[first + 1]);
	EXPECT_FALSE(self->peer.acked[first + 2]);
	EXPECT_TRUE(self->peer.acked[first + 3]);
	EXPECT_FALSE(self->peer.acked[first + 4]);

	/* Refused messages use no credit */
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/*
 * Describe segments instead of sending them. Message @id has 1500 bytes in three segments, as
 * that of send_message().
 */
static void send_zeros(struct peer *peer, struct packet *p, u32 id, u32 map)
{
	struct dblp_data d = { .msg_id = id, .msg_len = 1500 };

	send_zeromap(peer, p, &d, 600, NULL, &map, 1);
}

/* Is the next message @id, with the segments of @map zero? */
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
		/* Before the other segments, or after them */
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

/* The first arrival counts, later ones are duplicates */
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

/* A map of new and known segments contradicts earlier packets */
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
	/* Maps of a message with another length are refused, too */
	d.msg_len = 1501;
	send_zeromap(&self->peer, &self->p, &d, 600, NULL, &one, 1);
	d.msg_len = 1500;
	send_zeromap(&self->peer, &self->p, &d, 601, NULL, &one, 1);
	d.phase = 1;
	send_zeromap(&self->peer, &self->p, &d, 600, NULL, &one, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 6, mib("DropMismatch"));
	for (; pn < self->peer.pn - 1; pn++)
		EXPECT_FALSE(self->peer.acked[pn]);
	EXPECT_EQ(late, mib("DropLate"));
	EXPECT_TRUE(is_silent(self->fd));
	send_zeros(&self->peer, &self->p, 0, 6);
	EXPECT_TRUE(got_zeros(self->fd, 0, 6));
}

TEST_F(peer, a_duplicate_map)
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

/* The window grows with each received message, as far as the next one needs */
static void expect_growth(struct __test_metadata *_metadata,
			  FIXTURE_DATA(peer) *self, enum half half)
{
	const u64 window = self->peer.theirs.window, more = 5 << 20;
	struct dblp_data d = { .msg_id = 1, .msg_len = 1500 };
	const u64 *got = &self->peer.flow.flow.max_data;
	const u64 cost = 1500 + 1024;
	u64 now = self->peer.theirs.max_data;

	half_close(&self->peer, self->fd, half, 3);
	EXPECT_EQ(32 << 20, window);
	EXPECT_EQ(window / 16, now);
	EXPECT_TRUE(peer_ask(&self->peer, now));
	EXPECT_EQ(now, *got);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(now + cost, *got);
	EXPECT_TRUE(peer_ask(&self->peer, now + more));
	EXPECT_EQ(now + more, *got);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(now + more + cost, *got);

	/* An open message means that the sender has not used its credit */
	send_data(&self->peer, &self->p, &d, 500, 0, 1, NULL);
	EXPECT_TRUE(peer_ask(&self->peer, UINT64_MAX));
	EXPECT_EQ(now + more + cost, *got);
	send_data(&self->peer, &self->p, &d, 500, 1, 2, NULL);
	EXPECT_TRUE(got_message(self->fd, 1, 1500));
	/* The credit is sent after the reader was woken */
	while (*got != window + 2 * cost &&
	       peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS))
		;
	EXPECT_EQ(window + 2 * cost, *got);
}

TEST_F(peer, credit_grows_with_received_messages)
{
	expect_growth(_metadata, self, HALF_NONE);
}

/* Messages before a FIN need credit, too */
TEST_F(peer, credit_grows_with_received_messages_after_a_fin)
{
	expect_growth(_metadata, self, HALF_PEER);
}

TEST_F(peer, credit_grows_with_received_messages_after_shutdown)
{
	expect_growth(_metadata, self, HALF_OURS);
}

TEST_F(peer, credit_grows_with_received_messages_after_both)
{
	expect_growth(_metadata, self, HALF_BOTH);
}

/* Described segments use credit as sent ones do */
TEST_F(peer, zeroes_beyond_the_credit_are_refused)
{
	struct dblp_data d = { .msg_len = self->peer.theirs.max_data };
	u64 before = mib("DropWindow");
	const u32 one = 1;

	send_zeromap(&self->peer, &self->p, &d, 60000, NULL, &one, 1);
	d.msg_len = 1500;
	d.msg_id = self->peer.theirs.max_msg;
	send_zeromap(&self->peer, &self->p, &d, 600, NULL, &one, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropWindow"));
	EXPECT_TRUE(is_silent(self->fd));
	send_zeros(&self->peer, &self->p, 0, 7);
	EXPECT_TRUE(got_zeros(self->fd, 0, 7));
}

/* Pages with little needed data are not kept, whichever packet is the last in a page */
TEST_F(peer, held_memory_is_bounded_by_the_credit)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = 1 << 20 };
	const u32 seg = 256, page = 32 << 10, n = 200;
	u8 *pages = large_pages(page, 2);
	u32 i;

	EXPECT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	for (i = 0; i < 3 * n; i++, d.offset += seg) {
		make_data(&self->p, &self->peer, &d, seg, NULL);
		/* A packet in a page, one across its end, and one elsewhere */
		if (i % 3 == 2)
			send_packet(&self->peer, &self->p);
		else
			splice_train(&self->peer, pages + (i % 3 ? page - 100 :
							   page / 2),
				     &self->p, 1);
		if (i % 50 == 0)
			EXPECT_TRUE(peer_sync(&self->peer));
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_GE(4 * (1024 + 3 * n * seg + (64 << 10)),
		  get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

/* Maps of one bit each use at most the receive buffer, as segments do */
TEST_F(peer, many_maps_fill_the_receive_buffer_and_no_more)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = 600 * 32 * 1000 };
	u64 before = mib("DropMemory");
	const u32 one = 1;
	int i;

	set_int(self->fd, SO_RCVBUF, 100000);
	EXPECT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	for (i = 0; i < 1000; i++, d.offset += 32 * 600) {
		send_zeromap(&self->peer, &self->p, &d, 600, NULL, &one, 1);
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

/* Packets in one buffer: two maps, or a segment and a map */
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
		/* The last packet of a train is shorter */
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
	send_one(&self->peer, two, &d, 600, NULL);
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

/* Data header of the last received DATA packet, and its zero map if any */
static struct dblp_data last_data(const struct peer *peer, u32 *map)
{
	const struct packet *p = &peer->last[DBLP_PKT_DATA];
	struct dblp_data d = packet_data(p);

	if (d.zeros && d.seg_len == 4)
		*map = dblp_get_u64(p->byte + p->len - 8);
	return d;
}

/* Let the other end send ten segments; those of @map are zero */
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

/* An unacknowledged map is retransmitted unchanged */
TEST_F(peer, a_lost_map_is_repeated)
{
	struct dblp_data d;
	u32 map = 0, i;

	have_zeros(self->fd, 0x3ff, DBLP_POLICY_EARLY);
	for (i = 0; i < 4; i++, map = 0) {
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
		d = last_data(&self->peer, &map);
		EXPECT_TRUE(d.zeros);
		/* The map is the whole first pass */
		EXPECT_TRUE(d.repair);
		EXPECT_EQ(0, d.offset);
		EXPECT_EQ(0x3ff, map);
	}
}

/* The map is sent first, and its segments are not sent otherwise */
TEST_F(peer, described_segments_are_not_sent)
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
		/* The first pass ends with the second packet */
		EXPECT_EQ(n > 0, d.repair);
	}
}

/* A message of zeroes is complete without any segment sent */
TEST_F(peer, a_message_of_zeroes_is_complete)
{
	struct message m;

	set_u32(self->fd, DBLP_NOTIFY, 1);
	have_zeros(self->fd, 0x3ff, DBLP_POLICY_EARLY);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS));
	peer_ack_all(&self->peer);
	ASSERT_TRUE(wait_for(self->fd, POLLERR, WAIT_MS));
	ASSERT_EQ(0, message_recv(self->fd, NULL, 0, MSG_ERRQUEUE |
				  MSG_DONTWAIT, &m));
	EXPECT_EQ(0, m.info.missing);
	message_free(&m);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

TEST_HARNESS_MAIN
