// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU time of a packet is at most BAR times that of the median packet, whatever state its
 * peer has built up. Also the memory and packets that a peer causes if it acknowledges
 * nothing.
 *
 * The test runs in virtual time, where each instruction takes a nanosecond. Sending over
 * the loopback interface returns after the packet has been processed: its CPU time is the
 * cost of the packet, including the stack in both directions and all packets that the
 * other end sends in response.
 *
 * An ACK may cost more: a PART of the median packet for each packet that it acknowledges,
 * and a median packet for each packet that it lets the sender send.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <sched.h>
#include <time.h>

#define BAR		20U
#define PART		16U
#define HALF		(DBLP_PPM / 2)
#define MANY		4000U
#define WINDOW		4096U	/* messages; see FLOW in protocol.rst */
#define SEG		256U
#define SAMPLES		50U

FIXTURE(cost) {
	PLAYED_CONNECTION;
	u64 median;
	u64 bytes;
};

static void __attribute__((constructor)) only_in_virtual_time(void)
{
	if (!virtual_time())
		skip_all("runs in virtual time");
}

/* CPU time of this thread */
static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Send the packet; returns its cost */
static u64 cost_of(FIXTURE_DATA(cost) *self)
{
	u64 start = now_ns();

	send_packet(&self->peer, &self->p);
	start = now_ns() - start;
	self->bytes += self->p.len;
	peer_drain(&self->peer);
	return start;
}

/* Send a segment of a message of two segments with this budget */
static u64 segment(FIXTURE_DATA(cost) *self, u32 id, u32 seg, u32 budget)
{
	struct dblp_data d = {
		.msg_id = id, .msg_len = 2 * SEG, .offset = seg * SEG,
		.budget = budget, .policy = DBLP_POLICY_EAGER,
	};

	make_data(&self->p, &self->peer, &d, SEG, NULL);
	return cost_of(self);
}

static u64 frame(FIXTURE_DATA(cost) *self, const struct dblp_frame *f)
{
	make_ctrl(&self->p, &self->peer, f);
	return cost_of(self);
}

static u64 acknowledge(FIXTURE_DATA(cost) *self, u32 first, u32 last)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_ACK, .ack.n = 1,
		.ack.range = { { first, last } },
	};

	return frame(self, &f);
}

static u64 acknowledge_all(FIXTURE_DATA(cost) *self)
{
	struct dblp_frame f = frame_of_all(&self->peer);

	return frame(self, &f);
}

static int compare(const void *a, const void *b)
{
	return *(const u64 *)a < *(const u64 *)b ? -1 : 1;
}

/* Cost of ordinary packets, those of a message with budget 0 */
static u64 median(FIXTURE_DATA(cost) *self)
{
	u64 took[SAMPLES];
	static char buf[(SAMPLES + 1) * SEG];
	u32 i;

	for (i = 0; i <= SAMPLES; i++) {
		struct dblp_data d = {
			.msg_len = sizeof(buf), .offset = i * SEG,
		};

		make_data(&self->p, &self->peer, &d, SEG, NULL);
		took[i % SAMPLES] = cost_of(self);
	}
	if (!wait_for(self->fd, POLLIN, WAIT_MS) ||
	    recv(self->fd, buf, sizeof(buf), 0) != sizeof(buf))
		die("no message");
	qsort(took, SAMPLES, sizeof(took[0]), compare);
	return took[SAMPLES / 2];
}

FIXTURE_SETUP(cost)
{
	struct sched_param none = {};

	/* With lowest priority, ksoftirqd runs before the next packet is sent */
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_IDLE, &none));
	/* Wait until the namespace of the previous test is cleaned up; idle time is skipped */
	usleep(1000000);
	self->listener = listener_apart(&self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
	ASSERT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	self->median = median(self);
	self->bytes = 0;
}

FIXTURE_ENDS_BY_EXIT(cost);

/* Longest run of other tasks and timers on the CPU within @ms */
static u64 longest_run(u64 ms)
{
	struct timespec ts;
	u64 now, last = 0, end = 0, longest = 0;

	do {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		now = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
		if (!last)
			end = now + ms * 1000000;
		else if (now - last > longest)
			longest = now - last;
		last = now;
	} while (now < end);
	return longest;
}

#define TELL(cost, what)						\
	TH_LOG("%s: %llu ns, median %llu ns", what,			\
	       (unsigned long long)(cost),				\
	       (unsigned long long)self->median)

#define EXPECT_BELOW(medians, cost, what) do {				\
	u64 _cost = cost;						\
									\
	TELL(_cost, what);						\
	EXPECT_GE((medians) * self->median, _cost);			\
} while (0)

#define EXPECT_CHEAP(cost, what)	EXPECT_BELOW(BAR, cost, what)

static u64 most(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Read all pending messages; returns their number */
static u32 read_all(FIXTURE_DATA(cost) *self)
{
	static char buf[2 * SEG];
	u32 n = 0;

	while (recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
		n++;
	return n;
}

/* Wait for @n messages, and read them */
static u32 read_many(FIXTURE_DATA(cost) *self, u32 n)
{
	u32 i = 0;

	while (i < n && wait_for(self->fd, POLLIN, WAIT_MS))
		i += read_all(self);
	return i;
}

TEST_F(cost, another_budget_while_many_are_open)
{
	u64 worst = 0;
	u32 i;

	for (i = 0; i < MANY; i++)
		worst = most(worst, segment(self, 1 + i, 0, 1000));
	TELL(worst, "a message is opened");
	for (worst = 0, i = 0; i < SAMPLES; i++)
		worst = most(worst, segment(self, MANY / 2, 0, 1001 + i));
	EXPECT_CHEAP(worst, "a duplicate segment with another budget");
}

/* Let the receiver close @n messages without their second segments, and read them */
static void close_many(struct __test_metadata *_metadata,
		       FIXTURE_DATA(cost) *self, u32 n)
{
	u64 worst = 0;
	u32 i, read = 0;

	for (i = 0; i < n; i++) {
		worst = most(worst, segment(self, 1 + i, 0, HALF));
		if (i % 64 == 63)
			read += read_all(self);
	}
	EXPECT_EQ(n, read + read_many(self, n - read));
	TELL(worst, "a message is closed");
}

TEST_F(cost, many_closes_are_not_acknowledged)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };
	u64 worst = 0;
	u32 i, largest;

	close_many(_metadata, self, MANY);
	for (i = 0; i < SAMPLES; i++)
		worst = most(worst, frame(self, &ping));
	EXPECT_CHEAP(worst, "a PING");
	for (worst = 0, i = 0; i < SAMPLES; i++)
		worst = most(worst, segment(self, 1 + i, 1, HALF));
	EXPECT_CHEAP(worst, "a late segment of an old message");
	for (i = 0; i < SAMPLES; i++)
		worst = most(worst, segment(self, MANY - i, 1, HALF));
	EXPECT_CHEAP(worst, "a late segment of a new message");
	for (i = 0; i < MANY; i++)
		segment(self, 1 + i, 1, HALF);
	usleep(1000000);
	peer_drain(&self->peer);
	for (worst = 0, i = 0; i < SAMPLES; i++)
		worst = most(worst, segment(self, 1 + i, 1, HALF));
	EXPECT_BELOW(4, worst, "a late segment when all are late, after probe timeouts");
	largest = self->peer.largest - 1;
	for (worst = 0, i = 0; i < SAMPLES; i++)
		worst = most(worst, acknowledge(self, i, i));
	EXPECT_CHEAP(worst, "an old CLOSE is acknowledged");
	worst = acknowledge(self, largest, largest);
	EXPECT_CHEAP(worst, "a new CLOSE is acknowledged, others are lost");
	EXPECT_CHEAP(longest_run(20), "what follows");
}

static u32 credit(FIXTURE_DATA(cost) *self)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };

	frame(self, &ping);
	peer_expect(&self->peer, DBLP_PKT_CTRL, 100);
	peer_drain(&self->peer);
	return self->peer.flow.flow.max_msg;
}

/*
 * Messages whose CLOSE is not acknowledged are kept: they use credit, and count in the
 * receive buffer.
 */
TEST_F(cost, unacknowledged_closes_are_limited_to_a_window)
{
	u64 sent, end, dropped = mib("DropWindow");
	u32 i, kept, none;

	none = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	EXPECT_EQ(WINDOW + 1, credit(self));
	close_many(_metadata, self, WINDOW);
	kept = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u bytes are charged for %u messages", kept, WINDOW);
	EXPECT_LE(none + WINDOW * 256, kept);
	EXPECT_EQ(WINDOW + 1, credit(self));
	for (i = 0; i < SAMPLES; i++)
		segment(self, WINDOW + 1 + i, 0, HALF);
	EXPECT_EQ(dropped + SAMPLES, mib("DropWindow"));

	/* In seconds without packets from the peer, only a few probes are sent */
	sent = self->bytes;
	end = now_ms() + 3000;
	while (now_ms() < end)
		peer_expect(&self->peer, DBLP_PKT_RST, end - now_ms());
	TH_LOG("%llu bytes came for %llu",
	       (unsigned long long)self->peer.bytes, (unsigned long long)sent);
	EXPECT_GE(3 * sent, self->peer.bytes);

	/* Then the peer acknowledges all */
	end = now_ms() + WAIT_MS;
	while (get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC) > none &&
	       now_ms() < end) {
		acknowledge_all(self);
		peer_expect(&self->peer, DBLP_PKT_CTRL, 10);
		peer_drain(&self->peer);
	}
	EXPECT_EQ(2 * WINDOW + 1, credit(self));
}

/* One message delays the delivery of many */
TEST_F(cost, many_messages_can_be_read_at_once)
{
	u64 worst = 0;
	u32 i;

	for (i = 1; i < MANY; i++)
		worst = most(worst, segment(self, 1 + i, 0, HALF));
	TELL(worst, "a message is closed before its turn");
	EXPECT_CHEAP(segment(self, 1, 0, HALF), "the first message");
	EXPECT_CHEAP(longest_run(20), "those behind it");
	EXPECT_EQ(MANY, read_many(self, MANY));
}

/* Send a segment of a message of two segments with a deadline */
static u64 segment_due(FIXTURE_DATA(cost) *self, u32 id, u32 us)
{
	struct dblp_data d = {
		.msg_id = id, .msg_len = 2 * SEG, .meta = true,
	};
	struct dblp_frame meta = FRAME(META, meta, .msg_id = id, .total = 2 * SEG, .deadline = us);

	make_data(&self->p, &self->peer, &d, SEG, &meta);
	return cost_of(self);
}

TEST_F(cost, many_deadlines_pass_at_once)
{
	u64 worst = 0, end = now_ms() + 1000;
	u32 i;

	for (i = 1; i < MANY; i++)
		worst = most(worst, segment_due(self, i, 1000 * (end - now_ms())));
	TELL(worst, "a message with a deadline is opened");
	EXPECT_CHEAP(longest_run(end + 200 - now_ms()), "deadlines pass");
	EXPECT_EQ(MANY - 1, read_many(self, MANY - 1));
}

/* Send a segment of a message of two segments with policy early */
static u64 segment_early(FIXTURE_DATA(cost) *self, u32 id, u32 seg, u32 budget,
			 bool repair)
{
	struct dblp_data d = {
		.msg_id = id, .msg_len = 2 * SEG, .offset = seg * SEG,
		.budget = budget, .policy = DBLP_POLICY_EARLY, .repair = repair,
	};

	make_data(&self->p, &self->peer, &d, SEG, NULL);
	return cost_of(self);
}

TEST_F(cost, many_messages_wait_for_a_first_pass)
{
	u64 worst = 0;
	u32 i;

	for (i = 1; i <= MANY; i++)
		segment_early(self, i, 0, 1000, false);
	for (i = 1; i <= SAMPLES; i++) {
		worst = most(worst, segment_early(self, MANY + i, 0, HALF, true));
		worst = most(worst, segment_early(self, 1, 0, 1000, false));
		worst = most(worst, segment_early(self, 1, 0, 1000, false));
		worst = most(worst, segment_early(self, 1, 0, 1000, false));
	}
	EXPECT_CHEAP(worst, "a first pass is over");
	EXPECT_CHEAP(longest_run(20), "what follows");
}

TEST_F(cost, the_last_message_is_named_while_many_are_open)
{
	struct dblp_frame fin = {
		.type = DBLP_FRAME_FIN, .fin.end = MANY + 1,
	};
	u32 i;

	for (i = 2; i <= MANY; i++)
		segment(self, i, 0, 0);
	EXPECT_CHEAP(frame(self, &fin), "a FIN");
}

/* Send a segment of a piece of three segments; the message has the maximum of pieces */
static u64 piece(FIXTURE_DATA(cost) *self, u32 i, u32 seg)
{
	struct dblp_data d = {
		.msg_id = 1 + i, .msg_len = 3 * SEG, .offset = seg * SEG,
		.meta = true,
	};
	struct dblp_frame meta = FRAME(META, meta, .msg_id = 1 + i, .offset = i * 3 * SEG,
						   .total = MANY * 3 * SEG);

	make_data(&self->p, &self->peer, &d, SEG, &meta);
	return cost_of(self);
}

static u64 place(FIXTURE_DATA(cost) *self, bool *any)
{
	static char buf[MANY * 3 * SEG];
	u64 start;

	/* Touch the pages */
	if (!buf[0])
		memset(buf, 1, sizeof(buf));
	start = now_ns();
	*any = recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0;
	return now_ns() - start;
}

TEST_F(cost, many_pieces_have_been_placed)
{
	u64 worst = 0, call = 0;
	bool any;
	u32 i, n;

	set_u32(self->fd, DBLP_PLACEMENT, 1);
	for (i = n = 0; i < MANY; i++) {
		worst = most(worst, piece(self, i, 0));
		call = most(call, place(self, &any));
		n += any;
	}
	TH_LOG("segments of %u pieces were placed", n);
	EXPECT_LE(200, n);
	EXPECT_CHEAP(worst, "a piece begins");
	EXPECT_CHEAP(call, "a call that places it");
	for (worst = call = i = 0; i < MANY; i += 199) {
		worst = most(worst, piece(self, i, 1));
		call = most(call, place(self, &any));
	}
	EXPECT_CHEAP(worst, "it goes on");
	EXPECT_CHEAP(call, "a call that places that");
	for (i = 0; i < MANY; i++) {
		piece(self, i, 0);
		piece(self, i, 1);
		piece(self, i, 2);
		call = most(call, place(self, &any));
	}
	TELL(call, "a call");
	EXPECT_TRUE(any);
	place(self, &any);
	EXPECT_FALSE(any);
}

/* Add frames while they fit; returns their number */
static u32 add_frames(FIXTURE_DATA(cost) *self, struct dblp_frame *f, u32 n,
		      u32 *id)
{
	u32 len, i;
	u8 *end;

	for (i = 0; i < n; i++) {
		if (id)
			*id += !!i;
		end = dblp_put_frame(self->p.byte + self->p.len,
				     self->p.byte + DBLP_HDR_LEN + DBLP_CTL_MAX,
				     f);
		if (!end)
			break;
		len = end - self->p.byte;
		self->p.byte[1] += (len - self->p.len) / 4;
		self->p.len = len;
	}
	return i;
}

static void begin_ctrl(FIXTURE_DATA(cost) *self)
{
	make_packet(&self->p, DBLP_PKT_CTRL, self->peer.pn++, self->peer.scid);
}

TEST_F(cost, one_packet_closes_many_messages)
{
	struct dblp_frame f = FRAME(BUDGET, budget, .msg_id = 1, .ppm = HALF);
	u32 i, n;

	for (i = 1; i < 100; i++)
		segment(self, i, 0, 0);
	begin_ctrl(self);
	n = add_frames(self, &f, 100, &f.budget.msg_id);
	TH_LOG("%u frames", n);
	/* The packet closes 85 messages, at 3 us each */
	EXPECT_BELOW(2 * BAR, cost_of(self), "a packet full of BUDGET frames");
	EXPECT_EQ(n, read_many(self, n));
}

/* Segments of a message: the maximum that one packet can describe, of which every second
 * is zero
 */
#define WIDE		1440U
#define WIDE_SEGS	(8 * WIDE)

TEST_F(cost, a_packet_describes_as_much_as_it_can)
{
	struct dblp_data d = {
		.msg_id = 1, .msg_len = WIDE_SEGS * WIDE,
		.budget = HALF, .policy = DBLP_POLICY_FULL,
	};
	static u32 map[WIDE / 4];
	u32 i;

	for (i = 0; i < WIDE / 4; i++)
		map[i] = 0x55555555;
	make_zeros(&self->p, &self->peer, &d, WIDE, NULL, map, WIDE / 4);
	EXPECT_CHEAP(cost_of(self), "each second segment is zero");
	self->p.byte[7]++;
	self->peer.pn++;
	EXPECT_CHEAP(cost_of(self), "the same description again");
	d.policy = DBLP_POLICY_EAGER;
	d.msg_id++;
	make_zeros(&self->p, &self->peer, &d, WIDE, NULL, map, WIDE / 4);
	EXPECT_CHEAP(cost_of(self), "that is enough of a message");
}

/* Send a packet that refers to a page of the test; returns its cost */
static u64 cost_of_page(FIXTURE_DATA(cost) *self, void *page)
{
	u64 start = now_ns();

	splice_train(&self->peer, page, &self->p, 1);
	start = now_ns() - start;
	peer_drain(&self->peer);
	return start;
}

/* Send many packets of message @id that share one page, then one that does not */
static u64 share_page(FIXTURE_DATA(cost) *self, void *page, u32 id, u32 seg_size)
{
	struct dblp_data d = { .msg_id = id, .msg_len = 1 << 20 };
	u64 worst = 0;
	u32 i;

	for (i = 0; i < 800; i++, d.offset += seg_size) {
		make_data(&self->p, &self->peer, &d, seg_size, NULL);
		worst = most(worst, cost_of_page(self, page));
	}
	make_data(&self->p, &self->peer, &d, seg_size, NULL);
	return most(worst, cost_of(self));
}

/* A message may hold a page much larger than its packets while more packets of this page may
 * follow. Later, or earlier, the packets are copied; when depends on the overhead of their
 * buffers, which differs between kernels
 */
TEST_F(cost, many_packets_share_a_large_page)
{
	u8 *page = large_pages(128 << 10, 1);
	u32 seg_size, id = 1;

	for (seg_size = 224; seg_size < 416; seg_size += 32) {
		TH_LOG("segments of %u bytes", seg_size);
		EXPECT_CHEAP(share_page(self, page, id++, seg_size),
			     "one more in this page, or in another");
	}
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

/* Wait until @n packets in all have arrived from the other end; acknowledge none */
static bool await_packets(FIXTURE_DATA(cost) *self, u32 n)
{
	u64 end = now_ms() + WAIT_MS;

	while (self->peer.largest < n && now_ms() < end) {
		peer_expect(&self->peer, DBLP_PKT_DATA, 1);
		peer_drain(&self->peer);
	}
	return self->peer.largest >= n;
}

/* Close message @id with all @n segments missing */
static u64 close_all_missing(FIXTURE_DATA(cost) *self, u32 id, u32 len, u32 n)
{
	static u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	struct dblp_frame map = FRAME(LOSSMAP, lossmap, .msg_id = id, .bits = bits);
	struct dblp_frame f = FRAME(CLOSE, close, .msg_id = id, .missing = len, .missing_segs = n,
						  .budget = DBLP_PPM,
						  .reason = DBLP_REASON_BUDGET);
	u64 worst = 0;
	u32 left;

	memset(bits, 0xff, sizeof(bits));
	for (; map.lossmap.first < n; map.lossmap.first += 32 * map.lossmap.words) {
		left = n - map.lossmap.first;
		map.lossmap.words = left < 32 * DBLP_LOSSMAP_WORDS_MAX ?
				    left / 32 : DBLP_LOSSMAP_WORDS_MAX;
		worst = most(worst, frame(self, &map));
	}
	return most(worst, frame(self, &f));
}

static const struct dblp_frame ample_credit = FRAME(FLOW, flow, .max_msg = 1 << 20,
								.max_data = 1ULL << 40,
								.cap = DBLP_PPM);

static const struct dblp_sndinfo all_forgiven = SNDINFO(DBLP_PPM, EARLY);

TEST_F(cost, a_large_message_is_sent_and_settled)
{
	static u8 buf[WIDE_SEGS * WIDE];
	u64 worst = 0, start;
	u32 i, largest;

	frame(self, &ample_credit);
	set_u32(self->fd, DBLP_ELIDE, 1);
	set_u32(self->fd, DBLP_ORDER, DBLP_ORDER_SEQUENTIAL);
	for (i = 0; i < WIDE_SEGS; i += 2)
		buf[i * WIDE] = 1;
	start = now_ns();
	ASSERT_EQ(sizeof(buf), sndinfo_send(self->fd, buf, sizeof(buf),
					    MSG_DONTWAIT, &all_forgiven));
	TELL(now_ns() - start, "sendmsg()");
	ASSERT_TRUE(await_packets(self, 10));
	largest = self->peer.largest;
	for (i = 4; i < largest; i++)
		worst = most(worst, acknowledge(self, i, i));
	EXPECT_CHEAP(worst, "the map is lost");
	ASSERT_TRUE(await_packets(self, largest + 1));
	EXPECT_CHEAP(acknowledge(self, 0, self->peer.largest - 1), "it has come");
	EXPECT_CHEAP(close_all_missing(self, 0, sizeof(buf), WIDE_SEGS),
		     "it is closed, and settled");
	EXPECT_CHEAP(longest_run(20), "what follows");
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

/* Send @n messages of one segment with budget 100 %, unacknowledged */
static void send_many(FIXTURE_DATA(cost) *self, u32 n)
{
	char byte[8] = {};
	u32 i;

	frame(self, &ample_credit);
	for (i = 0; i < n; i++)
		if (sndinfo_send(self->fd, byte, sizeof(byte), MSG_DONTWAIT,
				 &all_forgiven) != sizeof(byte))
			die("message %u", i);
	peer_drain(&self->peer);
}

/* Fill a packet with CLOSE frames of sent messages from @id on */
static void make_closes(FIXTURE_DATA(cost) *self, u32 id, u32 n)
{
	struct dblp_frame f = FRAME(CLOSE, close, .missing = 8, .missing_segs = 1,
						  .budget = DBLP_PPM,
						  .reason = DBLP_REASON_BUDGET);

	begin_ctrl(self);
	f.close.msg_id = id;
	add_frames(self, &f, n, &f.close.msg_id);
}

/* Fill a packet with FLOW frames, each of which changes the cap */
static void make_flows(FIXTURE_DATA(cost) *self, struct dblp_frame *f)
{
	begin_ctrl(self);
	do
		f->flow.cap ^= DBLP_PPM;
	while (add_frames(self, f, 1, NULL));
}

/* Get thousands of messages in flight, one packet each */
static void fly_many(struct __test_metadata *_metadata,
		     FIXTURE_DATA(cost) *self)
{
	u64 cost, bar, worst = 0, sent, end = now_ms() + WAIT_MS;
	u32 acked = 0, n;

	send_many(self, 10000);
	/* Acknowledge packets, so that the window opens */
	while (self->peer.largest < 5000 && now_ms() < end) {
		n = self->peer.largest - acked;
		acked = self->peer.largest;
		sent = get_info(self->fd).pkts_sent;
		cost = acknowledge_all(self);
		sent = get_info(self->fd).pkts_sent - sent;
		bar = (BAR + sent) * self->median + n * self->median / PART;
		worst = most(worst, 100 * cost / bar);
		EXPECT_GE(bar, cost) {
			TH_LOG("an ACK of %u packets, for %llu", n,
			       (unsigned long long)sent);
		}
		peer_expect(&self->peer, DBLP_PKT_DATA, 10);
		peer_drain(&self->peer);
	}
	TH_LOG("the most expensive ACK takes %llu %% of the bar",
	       (unsigned long long)worst);
	TH_LOG("%u packets came, %u bytes are in flight", self->peer.largest,
	       get_info(self->fd).inflight);
	EXPECT_LE(5000, self->peer.largest);
}

/* One ACK acknowledges only the latest packet */
TEST_F(cost, many_packets_are_lost)
{
	u64 cost, sent, lost, worst = 0, with = 0, end;
	u32 largest;

	fly_many(_metadata, self);
	lost = get_info(self->fd).pkts_lost;
	end = now_ms() + WAIT_MS;
	while (get_info(self->fd).pkts_lost < lost + 1000 && now_ms() < end) {
		peer_expect(&self->peer, DBLP_PKT_DATA, 10);
		peer_drain(&self->peer);
		sent = get_info(self->fd).pkts_sent;
		largest = self->peer.largest - 1;
		cost = acknowledge(self, largest, largest);
		if (cost < worst)
			continue;
		worst = cost;
		with = get_info(self->fd).pkts_sent - sent;
	}
	/* Nearly all of the cost is sending of new packets */
	TH_LOG("an ACK of the latest, which lets %llu go: %llu ns",
	       (unsigned long long)with, (unsigned long long)worst);
	/* ksoftirqd does several steps in a row, which also send new packets */
	EXPECT_BELOW(3 * BAR, longest_run(20), "what follows");
	lost = get_info(self->fd).pkts_lost - lost;
	TH_LOG("%llu packets are lost", (unsigned long long)lost);
	EXPECT_LE(1000, lost);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

TEST_F(cost, many_messages_are_in_flight)
{
	struct dblp_frame flow = FRAME(FLOW, flow, .max_msg = 1 << 20, .max_data = 1ULL << 40);
	u64 worst = 0, start;
	u32 i;

	fly_many(_metadata, self);
	for (worst = 0, i = 0; i < SAMPLES; i++) {
		flow.flow.cap = i % 2 ? DBLP_PPM : 0;
		worst = most(worst, frame(self, &flow));
	}
	EXPECT_CHEAP(worst, "the cap changes");
	make_flows(self, &flow);
	EXPECT_CHEAP(cost_of(self), "a packet full of FLOW frames");
	EXPECT_CHEAP(longest_run(20), "what follows");
	for (worst = 0, i = 0; i < 2; i++) {
		make_closes(self, self->peer.largest - 120 + 60 * i, 60);
		worst = most(worst, cost_of(self));
	}
	EXPECT_CHEAP(worst, "a packet full of CLOSE frames");
	for (worst = 0, i = 0; i < 10; i++) {
		start = now_ns();
		set_u32(self->fd, DBLP_BUDGET, HALF + i);
		worst = most(worst, now_ns() - start);
	}
	TH_LOG("DBLP_BUDGET takes %llu ns", (unsigned long long)worst);
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->fd).state);
}

TEST_HARNESS_MAIN
