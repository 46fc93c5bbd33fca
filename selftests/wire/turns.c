// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that are opened, completed or closed before their turn: they wait for earlier
 * ones, are delivered in order, and neither lost nor leaked. The kernel receives; the
 * sender is a scripted peer.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

/* A message of segments of 600, 600 and 300 bytes, whose budget is one segment */
#define LENGTH		1500U
#define ALL		7U
#define FOUR_TENTHS	400000U

/* As send_segment(), for a message with a budget */
static void send_part(FIXTURE_DATA(peer) *self, u32 id, u32 seg, u32 budget)
{
	struct dblp_data d = {
		.msg_id = id, .offset = seg * 600, .msg_len = LENGTH,
		.budget = budget, .policy = DBLP_POLICY_EAGER,
	};

	send_one(&self->peer, &self->p, &d, 600, NULL);
}

static u32 seg_bytes(u32 seg)
{
	return seg == 2 ? 300 : 600;
}

/* Is the next message @id, with these segments? */
static bool take(int fd, u32 id, u32 segs)
{
	unsigned char buf[LENGTH];
	struct message m;
	u32 seg, missing = 0;
	bool good;

	if (message_recv(fd, buf, sizeof(buf), MSG_DONTWAIT, &m) != LENGTH)
		return false;
	good = m.info.msg_id == id;
	for (seg = 0; seg < 3; seg++) {
		unsigned char *at = buf + seg * 600;
		u32 len = seg_bytes(seg);

		if (segs & 1 << seg) {
			good &= pattern_check(at, len, seg * 600,
					      SCRIPTED_SEED, id) < 0;
		} else {
			good &= bytes_check(at, len, 0) < 0;
			missing += len;
		}
	}
	good &= m.info.missing == missing;
	message_free(&m);
	return good;
}

/* After all sent packets were processed, is no message readable? */
static bool still_waits(FIXTURE_DATA(peer) *self)
{
	return peer_sync(&self->peer) && is_silent(self->fd) &&
	       !(poll_now(self->fd) & (POLLIN | POLLRDHUP));
}

TEST_F(peer, complete_messages_wait_for_earlier_ones)
{
	static const u32 order[] = { 3, 1, 2 };
	u32 i;

	send_segment(&self->peer, &self->p, 0, 0);
	send_segment(&self->peer, &self->p, 0, 1);
	for (i = 0; i < 3; i++) {
		send_message(&self->peer, &self->p, order[i]);
		EXPECT_TRUE(still_waits(self));
	}
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(take(self->fd, i, ALL));
	EXPECT_TRUE(is_silent(self->fd));
}

/* Later messages have arrived, of some earlier ones no segment has */
TEST_F(peer, messages_wait_for_one_without_segments)
{
	send_message(&self->peer, &self->p, 2);
	send_message(&self->peer, &self->p, 3);
	EXPECT_TRUE(still_waits(self));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));
	EXPECT_TRUE(still_waits(self));
	send_message(&self->peer, &self->p, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 1, ALL));
	EXPECT_TRUE(take(self->fd, 2, ALL));
	EXPECT_TRUE(take(self->fd, 3, ALL));
	EXPECT_TRUE(is_silent(self->fd));
}

/* Opened before its turn, completed after it */
TEST_F(peer, a_message_keeps_its_segments_until_its_turn)
{
	send_segment(&self->peer, &self->p, 1, 1);
	send_segment(&self->peer, &self->p, 2, 0);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));

	send_segment(&self->peer, &self->p, 1, 0);
	send_segment(&self->peer, &self->p, 2, 1);
	send_segment(&self->peer, &self->p, 2, 2);
	EXPECT_TRUE(still_waits(self));
	send_segment(&self->peer, &self->p, 1, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 1, ALL));
	EXPECT_TRUE(take(self->fd, 2, ALL));
}

/* The CLOSE is sent at once, the reader has to wait */
TEST_F(peer, a_close_does_not_wait)
{
	struct dblp_frame more = FRAME(BUDGET, budget, .msg_id = 1, .ppm = DBLP_PPM);
	u64 late = mib("DropLate");
	u32 n;

	send_segment(&self->peer, &self->p, 0, 0);
	send_part(self, 1, 0, FOUR_TENTHS);
	send_part(self, 1, 2, FOUR_TENTHS);
	EXPECT_TRUE(still_waits(self));
	ASSERT_LE(1, self->peer.n_close);
	EXPECT_EQ(1, self->peer.close.close.msg_id);
	EXPECT_EQ(600, self->peer.close.close.missing);
	EXPECT_EQ(DBLP_REASON_BUDGET, self->peer.close.close.reason);
	EXPECT_TRUE(peer_ack_closes(&self->peer));

	/* A later segment has no effect, but is acknowledged */
	send_part(self, 1, 1, FOUR_TENTHS);
	EXPECT_TRUE(still_waits(self));
	EXPECT_TRUE(self->peer.acked[self->peer.pn - 2]);
	EXPECT_EQ(late + 1, mib("DropLate"));
	n = self->peer.n_close;
	send_frame(&self->peer, &self->p, &more);
	EXPECT_TRUE(still_waits(self));
	EXPECT_EQ(n, self->peer.n_close);

	send_segment(&self->peer, &self->p, 0, 1);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));
	EXPECT_TRUE(take(self->fd, 1, 1 | 4));
	EXPECT_TRUE(is_silent(self->fd));
}

TEST_F(peer, a_deadline_does_not_jump_the_queue)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = LENGTH, .meta = true };
	struct dblp_frame meta = FRAME(META, meta, .msg_id = 1, .deadline = 1000, .total = LENGTH);

	send_segment(&self->peer, &self->p, 0, 0);
	send_one(&self->peer, &self->p, &d, 600, &meta);
	while (!self->peer.n_close &&
	       peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS))
		;
	EXPECT_EQ(1, self->peer.close.close.msg_id);
	EXPECT_EQ(DBLP_REASON_DEADLINE, self->peer.close.close.reason);
	EXPECT_TRUE(still_waits(self));

	send_segment(&self->peer, &self->p, 0, 1);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));
	EXPECT_TRUE(take(self->fd, 1, 1));
}

/* A higher cap closes several messages, in any order */
TEST_F(peer, several_messages_are_closed_at_once)
{
	u32 id;

	set_u32(self->fd, DBLP_BUDGET_CAP, 0);
	for (id = 4; id--;) {
		send_part(self, id, id % 3, FOUR_TENTHS);
		send_part(self, id, (id + 1) % 3, FOUR_TENTHS);
	}
	/* One was complete before; one has too many bytes missing */
	send_message(&self->peer, &self->p, 4);
	send_part(self, 5, 0, FOUR_TENTHS);
	EXPECT_TRUE(still_waits(self));
	EXPECT_EQ(0, self->peer.n_close);

	set_u32(self->fd, DBLP_BUDGET_CAP, DBLP_PPM);
	for (id = 0; id < 4; id++)
		EXPECT_TRUE(take(self->fd, id,
				 1 << id % 3 | 1 << (id + 1) % 3));
	EXPECT_TRUE(take(self->fd, 4, ALL));
	EXPECT_TRUE(still_waits(self));
	EXPECT_LE(4, self->peer.n_close);
	send_part(self, 5, 1, FOUR_TENTHS);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 5, 1 | 2));
}

/* An unacknowledged CLOSE is repeated in every packet, but does not delay credit for the
 * sender
 */
TEST_F(peer, many_closes_leave_room_for_acks)
{
	u32 id;

	for (id = 0; id < 200; id++) {
		send_part(self, id, 0, FOUR_TENTHS);
		send_part(self, id, 1, FOUR_TENTHS);
		ASSERT_TRUE(peer_sync(&self->peer))
			TH_LOG("after %u messages", id + 1);
	}
	EXPECT_LT(200, self->peer.n_close);
	for (id = 0; id < 200; id++)
		EXPECT_TRUE(take(self->fd, id, 1 | 2));
}

TEST_F(peer, complete_messages_get_no_close)
{
	u32 id;

	for (id = 0; id < 20; id++) {
		send_part(self, id, 0, 1);
		send_part(self, id, 1, 1);
		send_part(self, id, 2, 1);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	for (id = 0; id < 3 * 20; id++)
		EXPECT_TRUE(self->peer.acked[id]);
	EXPECT_EQ(0, self->peer.n_close);
	for (id = 0; id < 20; id++)
		EXPECT_TRUE(take(self->fd, id, ALL));
}

#define MANY		200U

/* Mark the segments with these packet numbers that a packet acknowledges. Does the CLOSE of
 * their message precede each ACK?
 */
static bool closes_precede(const struct packet *p, const u32 *late, bool *acked)
{
	const u8 *at = p->byte + DBLP_HDR_LEN;
	bool closed[MANY] = {}, good = true;
	struct dblp_frame f;
	struct dblp_hdr h;
	u32 len, id, i;

	if (dblp_get_hdr(&h, p->byte, p->len))
		die("received an invalid packet");
	for (len = h.ctl_len; len && !dblp_get_frame(&f, &at, &len);) {
		if (f.type == DBLP_FRAME_CLOSE)
			closed[f.close.msg_id % MANY] = true;
		for (i = 0; f.type == DBLP_FRAME_ACK && i < f.ack.n; i++)
			for (id = 0; id < MANY; id++)
				if (late[id] >= f.ack.range[i].first &&
				    late[id] <= f.ack.range[i].last) {
					acked[id] = true;
					good &= closed[id];
				}
	}
	return good;
}

/* Check packets until all segments are acknowledged, or no packet arrives */
static bool all_precede(struct peer *peer, const u32 *late, bool *acked,
			u32 want, int ms)
{
	static struct packet p;
	bool good = true;
	struct dblp_hdr h;
	ssize_t len;

	while (!acked[want] && wait_for(peer->udp, POLLIN, ms)) {
		len = recv(peer->udp, p.byte, sizeof(p.byte), MSG_DONTWAIT);
		if (len < 0 || dblp_get_hdr(&h, p.byte, len))
			die("receiving UDP");
		p.len = len;
		good &= closes_precede(&p, late, acked);
		if (h.type == DBLP_PKT_CTRL)
			peer_came(peer, h.pn);
	}
	return good;
}

static u32 count_acked(const struct peer *peer, const u32 *late)
{
	u32 id, n = 0;

	for (id = 0; id < MANY; id++)
		n += peer->acked[late[id]];
	return n;
}

/* Send a late segment, or a late CANCEL */
static u32 send_late(FIXTURE_DATA(peer) *self, u32 id)
{
	const struct dblp_frame cancel = FRAME(CANCEL, cancel, .msg_id = id, .len = LENGTH,
							       .total = LENGTH, .started = true);
	u32 pn = self->peer.pn;

	if (id % 2)
		send_frame(&self->peer, &self->p, &cancel);
	else
		send_part(self, id, 2, FOUR_TENTHS);
	return pn;
}

/* The sender must learn of the CLOSE with missing bytes before all segments, or its CANCEL,
 * are acknowledged
 */
TEST_F(peer, late_segments_are_acknowledged_after_the_close)
{
	uint64_t end = now_ms() + WAIT_MS;
	u64 before = mib("DropLate");
	bool acked[MANY] = {};
	u32 late[MANY], id;

	for (id = 0; id < MANY; id++) {
		send_part(self, id, 0, FOUR_TENTHS);
		send_part(self, id, 1, FOUR_TENTHS);
		late[id] = ~0U;
	}
	EXPECT_TRUE(peer_sync(&self->peer));

	/* A message that was read, and the one with the latest CLOSE */
	EXPECT_TRUE(take(self->fd, 0, 1 | 2));
	late[0] = send_late(self, 0);
	late[MANY - 1] = send_late(self, MANY - 1);
	EXPECT_TRUE(all_precede(&self->peer, late, acked, MANY - 1, WAIT_MS));
	EXPECT_TRUE(acked[0]);
	EXPECT_TRUE(acked[MANY - 1]);

	/* More closed messages than fit a packet */
	for (id = 1; id < MANY - 1; id++)
		late[id] = send_late(self, id);
	while (mib("DropLate") < before + MANY / 2 && now_ms() < end)
		sleep_ms(1);
	EXPECT_TRUE(all_precede(&self->peer, late, acked, MANY - 2, 50));
	EXPECT_FALSE(acked[MANY - 2]);

	/* A PING is acknowledged meanwhile, otherwise both ends could wait forever */
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, count_acked(&self->peer, late));

	/* After all CLOSEs are acknowledged, the ACKs follow */
	while (count_acked(&self->peer, late) < MANY && now_ms() < end) {
		peer_ack_all(&self->peer);
		peer_expect(&self->peer, DBLP_PKT_ACK, 10);
	}
	EXPECT_EQ(MANY, count_acked(&self->peer, late));
	for (id = 1; id < MANY; id++)
		EXPECT_TRUE(take(self->fd, id, 1 | 2));
}

TEST_F(peer, end_of_file_follows_all_messages)
{
	char byte;

	send_segment(&self->peer, &self->p, 0, 0);
	send_message(&self->peer, &self->p, 1);
	send_fin(&self->peer, &self->p, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	send_segment(&self->peer, &self->p, 0, 1);
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));
	EXPECT_TRUE(take(self->fd, 1, ALL));
	EXPECT_EQ(0, recv(self->fd, &byte, 1, MSG_DONTWAIT));
}

/* A message opened by a packet that is then refused does not exist */
TEST_F(peer, a_refused_message_does_not_exist)
{
	struct dblp_data d = { .msg_id = 1, .msg_len = 1200, .meta = true };
	struct dblp_frame meta = FRAME(META, meta, .msg_id = 2, .total = 1200);
	u64 before = mib("DropMismatch");

	send_one(&self->peer, &self->p, &d, 600, &meta);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropMismatch"));
	send_message(&self->peer, &self->p, 1);
	EXPECT_TRUE(still_waits(self));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(take(self->fd, 0, ALL));
	EXPECT_TRUE(take(self->fd, 1, ALL));
	EXPECT_EQ(before + 1, mib("DropMismatch"));
}

/* The connection ends with an open message, a closed one and another open one */
TEST_F(peer, pending_messages_end_with_their_connection)
{
	static struct peer other;
	int fd;

	send_segment(&self->peer, &self->p, 0, 0);
	send_message(&self->peer, &self->p, 1);
	send_segment(&self->peer, &self->p, 2, 0);
	EXPECT_TRUE(still_waits(self));
	EXPECT_LT(0, get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	/* Only the listener is left */
	EXPECT_EQ(1, socket_count());

	/* A single sender gets no SHARE frame */
	fd = peer_join(&other, &self->addr, self->listener);
	ASSERT_LE(0, fd);
	send_segment(&other, &self->p, 0, 0);
	EXPECT_TRUE(peer_sync(&other));
	EXPECT_EQ(0, other.share);
}

/**
 * struct model - expected state of the receiver
 * @segs: received segments of each message
 * @budget: budget of each message
 * @next: first message that was not delivered
 */
#define MESSAGES	24U
struct model {
	u32	segs[MESSAGES];
	u32	budget[MESSAGES];
	u32	next;
};

static bool closed(const struct model *m, u32 i)
{
	return __builtin_popcount(m->segs[i]) == (m->budget[i] ? 2 : 3);
}

/* Read all messages; they must be exactly those of the model */
static bool deliver(struct model *m, u32 base, int fd)
{
	for (; m->next < MESSAGES && closed(m, m->next); m->next++)
		if (!take(fd, base + m->next, m->segs[m->next]))
			return false;
	return is_silent(fd);
}

static void shuffle(u8 *order, u32 n, u64 *seed)
{
	while (n > 1) {
		u32 i = random_next(seed) % n--;
		u8 swap = order[i];

		order[i] = order[n];
		order[n] = swap;
	}
}

/* Send every segment once in random order, every fifth twice */
static void play_round(struct __test_metadata *_metadata,
		       FIXTURE_DATA(peer) *self, u32 base, u64 *seed)
{
	struct model m = { .next = 0 };
	u8 order[3 * MESSAGES];
	u32 i, at, seg;

	for (i = 0; i < MESSAGES; i++)
		m.budget[i] = random_next(seed) % 2 ? FOUR_TENTHS : 0;
	for (i = 0; i < 3 * MESSAGES; i++)
		order[i] = i;
	shuffle(order, 3 * MESSAGES, seed);
	for (i = 0; i < 3 * MESSAGES; i++) {
		at = order[i] / 3;
		seg = order[i] % 3;
		send_part(self, base + at, seg, m.budget[at]);
		if (!closed(&m, at))
			m.segs[at] |= 1 << seg;
		if (random_next(seed) % 5 == 0) {
			at = order[random_next(seed) % (i + 1)] / 3;
			seg = __builtin_ctz(m.segs[at]);
			send_part(self, base + at, seg, m.budget[at]);
		}
		EXPECT_TRUE(peer_sync(&self->peer));
		peer_ack_all(&self->peer);
		ASSERT_TRUE(deliver(&m, base, self->fd))
			TH_LOG("after %u packets of message %u and behind",
			       i + 1, base);
	}
	EXPECT_EQ(MESSAGES, m.next);
}

TEST_F(peer, any_order_is_sorted)
{
	u64 seed = 1;
	u32 round;

	for (round = 0; round < 6; round++)
		play_round(_metadata, self, round * MESSAGES, &seed);
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

TEST_HARNESS_MAIN
