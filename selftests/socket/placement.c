// SPDX-License-Identifier: GPL-2.0-only
/*
 * Placement mode and messages in pieces at a receiver. The sender is a scripted peer, which
 * sends segment by segment, so that an open message stays open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#define SEG	600
#define LEN	(5 * SEG / 2)	/* bytes of a message or piece: three segments */
#define GREY	0x5a		/* initial contents of buffers */
#define WAIT_MS	10000

/* A socket and its scripted peer, in placement mode or not. Either may have shut down
 * sending before the first message.
 */
struct ends {
	struct peer peer;
	struct packet p;
	enum half half;
	u32 end;
	int listener;
	int fd;
	unsigned char buf[4 * LEN];
};

static void ends_join(struct ends *e, const struct sockaddr_dblp *addr)
{
	e->fd = peer_join(&e->peer, addr, e->listener);
	if (e->fd < 0)
		die("accept()");
	half_close(&e->peer, e->fd, e->half, e->end);
}

/* If the peer shuts down sending, its FIN is after @end messages */
static void ends_open(struct ends *e, u32 placement, u32 fill, enum half half,
		      u32 end)
{
	struct sockaddr_dblp addr;

	one_cpu();
	netns_new();
	netns_set_mtu(1500);
	e->listener = listen_at(plain_socket(), "127.0.0.1", 1, &addr);
	set_u32(e->listener, DBLP_PLACEMENT, placement);
	set_u32(e->listener, DBLP_FILL, fill);
	e->half = half;
	e->end = end;
	ends_join(e, &addr);
	memset(e->buf, GREY, sizeof(e->buf));
}

/* Fixture of placement mode */
FIXTURE(place) {
	struct ends e;
};

FIXTURE_BY_HALF(place);

FIXTURE_SETUP(place)
{
	ends_open(&self->e, 1, DBLP_FILL_ZERO, variant->half, 100);
}

FIXTURE_ENDS_BY_EXIT(place);

/* Fixture of both modes */
FIXTURE(both) {
	struct ends e;
};

FIXTURE_VARIANT(both) {
	bool whole;
	u32 fill;
	enum half half;
};

FIXTURE_VARIANT_ADD(both, placing) { .fill = DBLP_FILL_ZERO };
FIXTURE_VARIANT_ADD(both, placing_keep) { .fill = DBLP_FILL_KEEP };
FIXTURE_VARIANT_ADD(both, whole) { .whole = true };
FIXTURE_VARIANT_ADD(both, placing_after_fin) { .half = HALF_PEER };
FIXTURE_VARIANT_ADD(both, placing_after_shutdown) { .half = HALF_OURS };
FIXTURE_VARIANT_ADD(both, whole_after_fin) { .whole = true, .half = HALF_PEER };
FIXTURE_VARIANT_ADD(both, whole_after_shutdown) { .whole = true, .half = HALF_OURS };
FIXTURE_VARIANT_ADD(both, whole_after_both) { .whole = true, .half = HALF_BOTH };

FIXTURE_SETUP(both)
{
	ends_open(&self->e, !variant->whole, variant->fill, variant->half, 3);
}

FIXTURE_ENDS_BY_EXIT(both);

/* Properties of a message in pieces; total 0: one piece without META */
struct shape {
	u32 total;
	u32 budget;
	u64 tag;
};

/* Send segment @seg of message @id, a piece at @offset of the user's message */
static void send_seg(struct peer *peer, struct packet *p, u32 id, u32 seg,
		     const struct shape *s, u32 offset)
{
	struct dblp_frame meta = { .type = DBLP_FRAME_META };
	struct dblp_data d = {
		.msg_id = id, .offset = seg * SEG, .msg_len = LEN,
		.budget = s ? s->budget : 0, .meta = s && s->total,
		.policy = s && s->budget ? DBLP_POLICY_EAGER : 0,
	};

	meta.meta.msg_id = id;
	meta.meta.offset = offset;
	meta.meta.total = s ? s->total : 0;
	meta.meta.tag = s ? s->tag : 0;
	send_one(peer, p, &d, SEG, d.meta ? &meta : NULL);
}

static void send_piece(struct peer *peer, struct packet *p, u32 id,
		       const struct shape *s, u32 offset)
{
	send_seg(peer, p, id, 0, s, offset);
	send_seg(peer, p, id, 1, s, offset);
	send_seg(peer, p, id, 2, s, offset);
}

/* Results of one recvmsg() */
struct got {
	ssize_t ret;
	int flags;
	bool has_info;
	struct dblp_rcvinfo info;
	u32 n_placed;
	struct dblp_range placed[64];
	u32 n_ranges;
	struct dblp_range ranges[64];
};

static u32 take_ranges(struct dblp_range *to, const struct cmsghdr *c)
{
	size_t len = c->cmsg_len - CMSG_LEN(0);

	if (len > 64 * sizeof(*to))
		die("%zu bytes of ranges", len);
	memcpy(to, CMSG_DATA(c), len);
	return len / sizeof(*to);
}

static void get(int fd, void *buf, size_t len, size_t control_len, int flags,
		struct got *g)
{
	char control[2048] __attribute__((aligned(8)));
	struct iovec iov[2] = {
		/* Two buffers, whose border is within a segment */
		{ buf, len < 700 ? len : 700 },
		{ (char *)buf + 700, len < 700 ? 0 : len - 700 },
	};
	struct msghdr m = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = control_len ? control : NULL,
		.msg_controllen = control_len,
	};
	struct cmsghdr *c;

	memset(g, 0, sizeof(*g));
	errno = 0;
	g->ret = recvmsg(fd, &m, flags);
	if (g->ret < 0)
		return;
	g->flags = m.msg_flags;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_DBLP)
			die("control message of level %d", c->cmsg_level);
		if (c->cmsg_type == DBLP_PLACED)
			g->n_placed = take_ranges(g->placed, c);
		if (c->cmsg_type == DBLP_RANGES)
			g->n_ranges = take_ranges(g->ranges, c);
		if (c->cmsg_type == DBLP_RCVINFO) {
			g->has_info = true;
			memcpy(&g->info, CMSG_DATA(c), sizeof(g->info));
		}
	}
}

#define GET(g, flags) \
	get(e->fd, e->buf, sizeof(e->buf), 2048, \
	    MSG_DONTWAIT | (flags), &(g))

/* The call has placed exactly @bytes bytes at @at */
#define EXPECT_PLACED(g, at, bytes) do {				\
	EXPECT_EQ((bytes), (g).ret);					\
	EXPECT_EQ(1, (g).n_placed);					\
	EXPECT_EQ((at), (g).placed[0].offset);				\
	EXPECT_EQ((bytes), (g).placed[0].length);			\
} while (0)

/* Does @buf have @len bytes of message @id, from byte @from of the piece? */
static bool is_there(const unsigned char *buf, u32 id, u32 from, u32 len)
{
	return pattern_check(buf, len, from, SCRIPTED_SEED, id) < 0;
}

TEST_F(place, received_segments_of_an_open_message)
{
	struct ends *e = &self->e;
	struct got g;

	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
	send_seg(&e->peer, &e->p, 0, 2, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(POLLIN, poll_now(e->fd) & ~POLLOUT);
	GET(g, 0);
	EXPECT_PLACED(g, 2 * SEG, LEN - 2 * SEG);
	EXPECT_EQ(0, g.flags & (MSG_EOR | MSG_TRUNC | MSG_CTRUNC));
	EXPECT_FALSE(g.has_info);
	EXPECT_TRUE(is_there(e->buf + 2 * SEG, 0, 2 * SEG, LEN - 2 * SEG));
	EXPECT_EQ(-1, bytes_check(e->buf, 2 * SEG, GREY));
	EXPECT_EQ(-1, bytes_check(e->buf + LEN, SEG, GREY));

	/* Each byte is returned once */
	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
	GET(g, 0);
	EXPECT_EQ(-1, g.ret);
	EXPECT_EQ(EAGAIN, errno);

	/* One call does not return bytes of two messages */
	send_seg(&e->peer, &e->p, 0, 0, NULL, 0);
	send_seg(&e->peer, &e->p, 0, 1, NULL, 0);
	send_piece(&e->peer, &e->p, 1, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	memset(e->buf, GREY, sizeof(e->buf));
	GET(g, 0);
	EXPECT_PLACED(g, 0, 2 * SEG);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_TRUE(g.has_info);
	EXPECT_EQ(0, g.info.msg_id);
	EXPECT_EQ(LEN, g.info.length);
	EXPECT_EQ(0, g.info.missing);
	EXPECT_TRUE(is_there(e->buf, 0, 0, 2 * SEG));
	EXPECT_EQ(-1, bytes_check(e->buf + 2 * SEG, SEG, GREY));

	/* A message that one call places completely has no list */
	EXPECT_EQ(POLLIN, poll_now(e->fd) & ~POLLOUT);
	GET(g, 0);
	EXPECT_EQ(LEN, g.ret);
	EXPECT_EQ(0, g.n_placed);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_EQ(1, g.info.msg_id);
	EXPECT_TRUE(is_there(e->buf, 1, 0, LEN));
	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
}

TEST_F(place, pieces_by_their_offsets)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 3 * LEN, .tag = 77 };
	struct got g;
	u32 i;

	/* The position of the third piece is not known yet */
	send_seg(&e->peer, &e->p, 2, 1, &s, 2 * LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
	send_seg(&e->peer, &e->p, 1, 0, &s, LEN);
	send_seg(&e->peer, &e->p, 0, 2, &s, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_EQ(SEG + SEG + SEG / 2, g.ret);
	EXPECT_EQ(2, g.n_placed);
	EXPECT_EQ(2 * SEG, g.placed[0].offset);
	EXPECT_EQ(SEG + SEG / 2, g.placed[0].length);
	EXPECT_EQ(2 * LEN + SEG, g.placed[1].offset);
	EXPECT_EQ(SEG, g.placed[1].length);
	EXPECT_FALSE(g.flags & MSG_EOR);

	for (i = 0; i < 3; i++)
		send_piece(&e->peer, &e->p, i, &s, i * LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(3 * LEN - g.ret, ({ int n; ioctl(e->fd, SIOCINQ, &n); n; }));
	GET(g, 0);
	EXPECT_EQ(3 * LEN - 2 * SEG - SEG / 2, g.ret);
	EXPECT_EQ(3, g.n_placed);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_EQ(3 * LEN, g.info.length);
	EXPECT_EQ(77, g.info.tag);
	EXPECT_EQ(0, g.info.ranges);
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(is_there(e->buf + i * LEN, i, 0, LEN));
	EXPECT_EQ(-1, bytes_check(e->buf + 3 * LEN, LEN, GREY));

	/* msg_id counts messages, not pieces */
	send_piece(&e->peer, &e->p, 3, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_EQ(LEN, g.ret);
	EXPECT_EQ(1, g.info.msg_id);
}

TEST_F(both, pieces_are_one_message_with_one_loss_map)
{
	struct ends *e = &self->e;
	/* 40 %: each piece can close with any one segment missing */
	static const struct shape s = { .total = 3 * LEN, .budget = 400000,
					.tag = 1ULL << 63 };
	struct dblp_lossmap *map = calloc(1, 1024);
	socklen_t len = 1024;
	struct got g;

	send_seg(&e->peer, &e->p, 0, 0, &s, 0);
	send_seg(&e->peer, &e->p, 0, 2, &s, 0);
	send_seg(&e->peer, &e->p, 1, 1, &s, LEN);
	send_seg(&e->peer, &e->p, 1, 2, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	if (variant->whole)
		EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
	send_seg(&e->peer, &e->p, 2, 1, &s, 2 * LEN);
	send_seg(&e->peer, &e->p, 2, 2, &s, 2 * LEN);
	EXPECT_TRUE(peer_sync(&e->peer));

	GET(g, 0);
	EXPECT_EQ(variant->whole ? 3 * LEN : 3 * LEN - 3 * SEG, g.ret);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_EQ(3 * SEG, g.info.missing);
	EXPECT_EQ(3 * LEN, g.info.length);
	EXPECT_EQ(1ULL << 63, g.info.tag);
	EXPECT_EQ(DBLP_REASON_BUDGET, g.info.reason);
	EXPECT_EQ(3, g.info.ranges);
	EXPECT_EQ(3, g.n_ranges);
	EXPECT_EQ(SEG, g.ranges[0].offset);
	EXPECT_EQ(LEN, g.ranges[1].offset);
	EXPECT_EQ(2 * LEN, g.ranges[2].offset);
	EXPECT_EQ(-1, bytes_check(e->buf + SEG, SEG,
				  variant->fill ? GREY : 0));
	EXPECT_EQ(-1, bytes_check(e->buf + 2 * LEN, SEG,
				  variant->fill ? GREY : 0));
	EXPECT_TRUE(is_there(e->buf, 0, 0, SEG));
	EXPECT_TRUE(is_there(e->buf + LEN + SEG, 1, SEG, LEN - SEG));
	ASSERT_EQ(0, getsockopt(e->fd, SOL_DBLP, DBLP_LOSSMAP, map, &len));
	EXPECT_EQ(3, map->ranges);
	EXPECT_EQ(0, memcmp(dblp_lossmap_range(map), g.ranges,
			    3 * sizeof(g.ranges[0])));
}

/* The missing bytes of a message are within the reported budget */
TEST_F(both, pieces_with_budgets_of_their_own)
{
	struct ends *e = &self->e;
	static const struct shape none = { .total = 3 * LEN, .tag = 5 };
	static const struct shape most = { .total = 3 * LEN, .tag = 5,
					   .budget = 400000 };
	static const struct shape last = { .total = 3 * LEN, .tag = 5,
					   .budget = 900000 };
	struct got g;

	send_piece(&e->peer, &e->p, 0, &none, 0);
	send_seg(&e->peer, &e->p, 1, 0, &most, LEN);
	send_seg(&e->peer, &e->p, 1, 2, &most, LEN);
	send_seg(&e->peer, &e->p, 2, 1, &last, 2 * LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_EQ(SEG + LEN - SEG, g.info.missing);
	EXPECT_EQ(900000, g.info.budget);
}

TEST_F(both, holes_that_meet_are_one)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 2 * LEN, .budget = 400000 };
	struct got g;

	send_seg(&e->peer, &e->p, 0, 0, &s, 0);
	send_seg(&e->peer, &e->p, 0, 1, &s, 0);
	send_seg(&e->peer, &e->p, 1, 1, &s, LEN);
	send_seg(&e->peer, &e->p, 1, 2, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_EQ(1, g.n_ranges);
	EXPECT_EQ(1, g.info.ranges);
	EXPECT_EQ(2 * SEG, g.ranges[0].offset);
	EXPECT_EQ(SEG / 2 + SEG, g.ranges[0].length);
}

TEST_F(both, waiting_for_all)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 2 * LEN };
	struct got g;
	pid_t pid;

	/* Send segments one by one while the reader waits */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		u32 i;

		for (i = 0; i < 6; i++) {
			usleep(20000);
			send_seg(&e->peer, &e->p, i / 3, i % 3, &s,
				 i / 3 * LEN);
		}
		_exit(0);
	}
	get(e->fd, e->buf, sizeof(e->buf), 2048, MSG_WAITALL, &g);
	EXPECT_EQ(2 * LEN, g.ret);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_EQ(2 * LEN, g.info.length);
	EXPECT_EQ(0, g.n_placed);
	EXPECT_TRUE(is_there(e->buf, 0, 0, LEN));
	EXPECT_TRUE(is_there(e->buf + LEN, 1, 0, LEN));
}

TEST_F(place, waiting_for_all_can_end_with_a_part)
{
	struct ends *e = &self->e;
	struct timeval tv = { .tv_usec = SHORT_MS * 1000 };
	struct got g;
	u64 start;

	ASSERT_EQ(0, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &tv,
				sizeof(tv)));
	send_seg(&e->peer, &e->p, 0, 1, NULL, 0);
	start = tick_ms();
	get(e->fd, e->buf, sizeof(e->buf), 2048, MSG_WAITALL, &g);
	EXPECT_LE(SHORT_MS - EARLY_MS, tick_ms() - start);
	EXPECT_PLACED(g, SEG, SEG);
	EXPECT_FALSE(g.flags & MSG_EOR);
	get(e->fd, e->buf, sizeof(e->buf), 2048, MSG_WAITALL, &g);
	EXPECT_EQ(-1, g.ret);
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(place, buffers_that_are_too_short)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 2 * LEN };
	struct got g;

	send_piece(&e->peer, &e->p, 0, &s, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, e->buf, SEG + 100, 2048, MSG_DONTWAIT, &g);
	EXPECT_PLACED(g, 0, SEG + 100);
	EXPECT_TRUE(g.flags & MSG_TRUNC);
	EXPECT_EQ(-1, bytes_check(e->buf + SEG + 100, SEG, GREY));

	/* Without room no bytes are placed, until the end of the message */
	send_seg(&e->peer, &e->p, 1, 0, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, e->buf, SEG, 2048, MSG_DONTWAIT, &g);
	EXPECT_EQ(-1, g.ret);
	EXPECT_EQ(EAGAIN, errno);
	send_piece(&e->peer, &e->p, 1, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, e->buf, SEG, 2048, MSG_DONTWAIT, &g);
	EXPECT_EQ(0, g.ret);
	EXPECT_EQ(MSG_EOR | MSG_TRUNC, g.flags & (MSG_EOR | MSG_TRUNC));
	EXPECT_EQ(2 * LEN, g.info.length);

	/* With MSG_TRUNC, the result includes bytes without room */
	send_piece(&e->peer, &e->p, 2, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, e->buf, 10, 2048, MSG_DONTWAIT | MSG_TRUNC, &g);
	EXPECT_EQ(LEN, g.ret);
}

#define MANY	20	/* segments */
#define WIDE	600	/* segment size at which each stays in its own sk_buff */

static void send_one_of_many(struct ends *e, u32 seg)
{
	struct dblp_data d = { .offset = seg * WIDE, .msg_len = MANY * WIDE };

	send_one(&e->peer, &e->p, &d, WIDE, NULL);
}

/* A call places no more ranges than the control buffer can list */
TEST_F(place, control_buffers_that_are_too_short)
{
	size_t others = CMSG_SPACE(sizeof(struct dblp_rcvinfo)) + CMSG_LEN(0);
	static unsigned char buf[MANY * WIDE];
	struct ends *e = &self->e;
	struct got g;
	u32 i;

	for (i = 0; i < MANY; i += 2)
		send_one_of_many(e, i);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, buf, sizeof(buf), others + 8 * 8, MSG_DONTWAIT, &g);
	EXPECT_EQ(8 * WIDE, g.ret);
	EXPECT_EQ(8, g.n_placed);
	EXPECT_FALSE(g.flags & MSG_CTRUNC);
	EXPECT_EQ(POLLIN, poll_now(e->fd) & ~POLLOUT);
	get(e->fd, buf, sizeof(buf), others + 8 * 8, MSG_DONTWAIT, &g);
	EXPECT_EQ(2 * WIDE, g.ret);
	EXPECT_EQ(2, g.n_placed);
	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);

	/* With room for too few ranges: MSG_CTRUNC */
	send_one_of_many(e, 1);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, buf, sizeof(buf), others + 8 * 8 - 1, MSG_DONTWAIT,
	    &g);
	EXPECT_EQ(WIDE, g.ret);
	EXPECT_EQ(0, g.n_placed);
	EXPECT_TRUE(g.flags & MSG_CTRUNC);

	/* Without a control buffer: no MSG_CTRUNC */
	send_one_of_many(e, 3);
	EXPECT_TRUE(peer_sync(&e->peer));
	get(e->fd, buf, sizeof(buf), 0, MSG_DONTWAIT, &g);
	EXPECT_EQ(WIDE, g.ret);
	EXPECT_FALSE(g.flags & MSG_CTRUNC);

	/* MSG_WAITALL places everything, so the list is complete or absent */
	for (i = 5; i < MANY; i += 2)
		send_one_of_many(e, i);
	get(e->fd, buf, sizeof(buf), 2048, MSG_WAITALL, &g);
	EXPECT_EQ(8 * WIDE, g.ret);
	EXPECT_EQ(8, g.n_placed);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_TRUE(is_there(buf, 0, 0, MANY * WIDE));
}

TEST_F(both, a_bad_buffer_loses_nothing)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 2 * LEN };
	size_t page = sysconf(_SC_PAGESIZE);
	unsigned char *edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct got g;

	ASSERT_NE(MAP_FAILED, edge);
	ASSERT_EQ(0, munmap(edge + page, page));
	send_piece(&e->peer, &e->p, 0, &s, 0);
	send_seg(&e->peer, &e->p, 1, 2, &s, LEN);
	send_seg(&e->peer, &e->p, 1, 0, &s, LEN);
	if (variant->whole)
		send_seg(&e->peer, &e->p, 1, 1, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	/* The last segment reaches beyond the mapped page */
	get(e->fd, edge + page - 2 * LEN + 1, 2 * LEN, 2048, MSG_DONTWAIT,
	    &g);
	EXPECT_EQ(-1, g.ret);
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(POLLIN, poll_now(e->fd) & ~POLLOUT);
	send_seg(&e->peer, &e->p, 1, 1, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_EQ(2 * LEN, g.ret);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_TRUE(is_there(e->buf, 0, 0, LEN));
	EXPECT_TRUE(is_there(e->buf + LEN, 1, 0, LEN));
}

TEST_F(both, peeking)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 2 * LEN };
	struct got g;

	send_piece(&e->peer, &e->p, 0, &s, 0);
	send_piece(&e->peer, &e->p, 1, &s, LEN);
	send_piece(&e->peer, &e->p, 2, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, MSG_PEEK);
	if (!variant->whole) {
		EXPECT_EQ(-1, g.ret);
		EXPECT_EQ(EOPNOTSUPP, errno);
	} else {
		EXPECT_EQ(2 * LEN, g.ret);
		EXPECT_EQ(2 * LEN, g.info.length);
	}
	GET(g, 0);
	EXPECT_EQ(2 * LEN, g.ret);
	EXPECT_EQ(0, g.info.msg_id);
	GET(g, 0);
	EXPECT_EQ(LEN, g.ret);
	EXPECT_EQ(1, g.info.msg_id);
}

/* Credit of placed bytes is returned piece by piece */
TEST_F(both, credit_is_returned)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 3 * LEN };
	u64 first = e->peer.theirs.window;
	struct got g;

	EXPECT_EQ(variant->whole ? 32 * 1024 * 1024 - 1024 : DBLP_MSG_MAX,
		  e->peer.theirs.msg_max);
	EXPECT_TRUE(peer_ask(&e->peer, first));
	send_piece(&e->peer, &e->p, 0, &s, 0);
	send_seg(&e->peer, &e->p, 1, 0, &s, LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	if (!variant->whole) {
		EXPECT_EQ(first, e->peer.flow.flow.max_data);
		GET(g, 0);
		EXPECT_EQ(LEN + SEG, g.ret);
		EXPECT_TRUE(peer_sync(&e->peer));
		EXPECT_EQ(first + LEN + 1024, e->peer.flow.flow.max_data);
	} else {
		/* Only the last piece has an overhead in credit */
		EXPECT_EQ(first + 1024, e->peer.flow.flow.max_data);
	}
	send_piece(&e->peer, &e->p, 1, &s, LEN);
	send_piece(&e->peer, &e->p, 2, &s, 2 * LEN);
	EXPECT_TRUE(peer_sync(&e->peer));
	GET(g, 0);
	EXPECT_TRUE(g.flags & MSG_EOR);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(first + 3 * LEN + 3 * 1024, e->peer.flow.flow.max_data);
	EXPECT_EQ(4096 + 3, e->peer.flow.flow.max_msg);
}

/* Pieces that contradict each other */
TEST_F(both, contradicting_pieces_end_the_connection)
{
	struct ends *e = &self->e;
	static const struct {
		struct shape s;
		u32 offset;
	} bad[] = {
		{ { .total = 3 * LEN, .tag = 5 }, LEN + 1 },
		{ { .total = 3 * LEN, .tag = 5 }, 0 },
		{ { .total = 3 * LEN, .tag = 5 }, 2 * LEN },
		{ { .total = 4 * LEN, .tag = 5 }, LEN },
		{ { .total = 3 * LEN, .tag = 6 }, LEN },
		{ { .total = 0 }, 0 },
	};
	static const struct shape s = { .total = 3 * LEN, .tag = 5 };
	struct sockaddr_dblp addr;
	socklen_t len = sizeof(addr);
	struct got g;
	u32 i;

	ASSERT_EQ(0, getsockname(e->listener, (void *)&addr, &len));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		send_piece(&e->peer, &e->p, 0, NULL, 0);
		send_piece(&e->peer, &e->p, 1, &s, 0);
		send_piece(&e->peer, &e->p, 2, &bad[i].s, bad[i].offset);
		EXPECT_TRUE(peer_expect(&e->peer, DBLP_PKT_RST, WAIT_MS)) {
			TH_LOG("%u", i);
		}
		EXPECT_EQ(DBLP_RST_PROTOCOL, e->peer.rst_reason);
		/* Earlier messages are not lost */
		GET(g, 0);
		EXPECT_EQ(LEN, g.ret);
		EXPECT_TRUE(g.flags & MSG_EOR);
		if (!variant->whole) {
			GET(g, 0);
			EXPECT_EQ(LEN, g.ret);
			EXPECT_FALSE(g.flags & MSG_EOR);
		}
		EXPECT_ERR(EPROTO, recv(e->fd, e->buf, 1, MSG_DONTWAIT));
		EXPECT_EQ(0, recv(e->fd, e->buf, 1, MSG_DONTWAIT));

		close(e->fd);
		peer_close(&e->peer);
		ends_join(e, &addr);
	}
}

/* The sender ends in the middle of a message */
TEST_F(both, a_message_without_its_end_is_an_error)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 3 * LEN };
	struct got g;

	send_piece(&e->peer, &e->p, 0, NULL, 0);
	send_piece(&e->peer, &e->p, 1, &s, 0);
	send_fin(&e->peer, &e->p, 3);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(0, e->peer.n[DBLP_PKT_RST]);
	send_piece(&e->peer, &e->p, 2, &s, LEN);
	EXPECT_TRUE(peer_expect(&e->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_CLOSED, e->peer.rst_reason);
	GET(g, 0);
	EXPECT_EQ(LEN, g.ret);
	EXPECT_TRUE(g.flags & MSG_EOR);
	if (!variant->whole) {
		GET(g, 0);
		EXPECT_EQ(2 * LEN, g.ret);
		EXPECT_FALSE(g.flags & MSG_EOR);
	}
	EXPECT_ERR(ECONNRESET, recv(e->fd, e->buf, 1, MSG_DONTWAIT));
	EXPECT_EQ(0, recv(e->fd, e->buf, 1, MSG_DONTWAIT));
}

/* Messages larger than the receiver's limit */
TEST_F(both, messages_beyond_the_limit_end_the_connection)
{
	struct ends *e = &self->e;
	static const struct shape s = { .total = 32 << 20 };

	send_piece(&e->peer, &e->p, 0, &s, 0);
	EXPECT_TRUE(peer_sync(&e->peer) != variant->whole);
	EXPECT_EQ(variant->whole, e->peer.n[DBLP_PKT_RST]);
}

TEST_F(both, the_mode_when_connected)
{
	struct ends *e = &self->e;
	struct got g;
	u32 val = 0;

	if (!variant->whole) {
		EXPECT_ERR(EISCONN, setsockopt(e->fd, SOL_DBLP,
					       DBLP_PLACEMENT, &val, 4));
		return;
	}
	EXPECT_EQ(0, setsockopt(e->fd, SOL_DBLP, DBLP_PLACEMENT, &val, 4));
	send_seg(&e->peer, &e->p, 0, 1, NULL, 0);
	EXPECT_TRUE(peer_sync(&e->peer));
	EXPECT_EQ(0, poll_now(e->fd) & ~POLLOUT);
	val = 1;
	EXPECT_EQ(0, setsockopt(e->fd, SOL_DBLP, DBLP_PLACEMENT, &val, 4));
	EXPECT_EQ(POLLIN, poll_now(e->fd) & ~POLLOUT);
	GET(g, 0);
	EXPECT_PLACED(g, SEG, SEG);
}

TEST_HARNESS_MAIN
