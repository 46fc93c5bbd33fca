// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several readers of one socket. A waiting reader copies received segments of the next
 * message ahead of its end, which is visible only in the time. While a reader copies,
 * other readers get neither this message nor a later one. The sender is a scripted peer,
 * so that an open message stays open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"
#include "lib/trap.h"

#define SEG	1000
#define SEGS	150		/* segments of a message */
#define MOST	100		/* segments that are enough to be copied ahead */
#define LEN	(SEGS * SEG - 1)
#define GREY	0x5a		/* initial contents of buffers */
#define WAIT_MS	10000

FIXTURE(ahead) {
	struct peer peer;
	struct packet p;
	int listener;
	int fd;
};

static void on_signal(int nr)
{
	(void)nr;
}

FIXTURE_SETUP(ahead)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sockaddr_dblp addr;

	one_cpu();
	netns_new();
	netns_set_mtu(1500);
	self->listener = listen_at(plain_socket(), "127.0.0.1", 1, &addr);
	set_u32(self->listener, DBLP_FILL, DBLP_FILL_ZERO);
	if (sigaction(SIGUSR1, &act, NULL))
		die("sigaction()");
	self->fd = peer_join(&self->peer, &addr, self->listener);
	if (self->fd < 0)
		die("accept()");
}

FIXTURE_ENDS_BY_EXIT(ahead);

/* A call of recv() in its own thread */
struct reader {
	pthread_t thread;
	int fd;
	int flags;
	ssize_t ret;
	int err;
	volatile bool done;
	/* Initial contents of the buffer */
	unsigned char grey;
	volatile unsigned char *buf;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	r->ret = recv(r->fd, (void *)r->buf, 2 * LEN, r->flags);
	r->err = r->ret < 0 ? errno : 0;
	r->done = true;
	return NULL;
}

static struct reader *reader_new(int fd, int flags)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		die("no memory");
	r->fd = fd;
	r->flags = flags;
	r->buf = new_pages(2 * LEN);
	return r;
}

static struct reader *reader_start(struct reader *r)
{
	if (pthread_create(&r->thread, NULL, reader_main, r))
		die("pthread_create()");
	return r;
}

static struct reader *reader_begin(int fd, int flags)
{
	struct reader *r = reader_new(fd, flags);

	r->grey = GREY;
	memset((void *)r->buf, GREY, 2 * LEN);
	return reader_start(r);
}

/* Start a reader that blocks at the first byte that it copies */
static struct reader *reader_stopped(int fd, int flags, struct trap *trap)
{
	struct reader *r = reader_new(fd, flags);
	size_t len = (2 * LEN + 4095) & -4096UL;

	*trap = trap_set((char *)r->buf, len);
	reader_start(r);
	errno = 0;
	if (!wait_for(trap->fd, POLLIN, WAIT_MS))
		die("nothing is copied");
	return r;
}

static void reader_free(struct reader *r)
{
	munmap((void *)r->buf, 2 * LEN);
	free(r);
}

/* Wait until the call returns; its result is in @ret and @err */
static void reader_end(struct reader *r)
{
	if (pthread_join(r->thread, NULL))
		die("pthread_join()");
}

/* Are bytes @from to @to of the buffer those of message @id? */
static bool reader_is(const struct reader *r, __u32 id, __u32 from, __u32 to)
{
	return pattern_check((void *)(r->buf + from), to - from, from,
			     SCRIPTED_SEED, id) < 0;
}

/* Wait until the first segment of message @id is in the buffer */
static bool reader_begins(const struct reader *r, __u32 id)
{
	int ms;

	for (ms = 0; !reader_is(r, id, 0, SEG) && ms < WAIT_MS; ms++)
		usleep(1000);
	return ms < WAIT_MS;
}

#define READS(r, id) do {						\
	reader_end(r);							\
	EXPECT_EQ(0, (r)->err);						\
	EXPECT_EQ(LEN, (r)->ret);					\
	EXPECT_TRUE(reader_is(r, id, 0, LEN));				\
	EXPECT_EQ((r)->grey, (r)->buf[LEN]);				\
	reader_free(r);							\
} while (0)

#define FAILS(r, error) do {						\
	reader_end(r);							\
	EXPECT_EQ(-1, (r)->ret);					\
	EXPECT_EQ((error), (r)->err);					\
	reader_free(r);							\
} while (0)

/* Send segments @first ... @first + @n - 1 of message @id */
static void send_some(struct peer *peer, struct packet *p, __u32 id, __u32 first,
		      __u32 n, __u32 budget)
{
	struct dblp_data d = {
		.msg_id = id, .msg_len = LEN, .budget = budget,
		.policy = budget ? DBLP_POLICY_EAGER : 0,
	};

	send_data(peer, p, &d, SEG, first, n, NULL);
	if (!peer_sync(peer))
		die("no answer");
}

/* Start a reader that has copied part of message @id and waits for the rest */
#define READER_AHEAD(id, budget) ({					\
	struct reader *ahead = reader_begin(self->fd, 0);		\
									\
	send_some(&self->peer, &self->p, id, 0, MOST, budget);		\
	ASSERT_TRUE(reader_begins(ahead, id));				\
	EXPECT_FALSE(ahead->done);					\
	ahead;								\
})

TEST_F(ahead, received_segments_are_copied_before_the_rest)
{
	struct reader *r = READER_AHEAD(0, 0);

	/* No other reader is woken */
	EXPECT_EQ(0, poll_now(self->fd) & ~POLLOUT);
	send_some(&self->peer, &self->p, 0, MOST + 1, SEGS - MOST - 1, 0);
	EXPECT_FALSE(r->done);
	send_some(&self->peer, &self->p, 0, MOST, 1, 0);
	READS(r, 0);
	EXPECT_EQ(0, poll_now(self->fd) & ~POLLOUT);
}

TEST_F(ahead, an_interrupted_reader_leaves_the_message)
{
	struct reader *r = READER_AHEAD(0, 0);

	pthread_kill(r->thread, SIGUSR1);
	FAILS(r, EINTR);
	r = reader_begin(self->fd, 0);
	ASSERT_TRUE(reader_begins(r, 0));
	send_some(&self->peer, &self->p, 0, MOST, SEGS - MOST, 0);
	READS(r, 0);
}

TEST_F(ahead, other_readers_wait_until_the_message_is_read)
{
	struct reader *r = READER_AHEAD(0, 0), *other;
	char c;

	EXPECT_ERR(EAGAIN, recv(self->fd, &c, 1, MSG_DONTWAIT));
	other = reader_begin(self->fd, 0);
	send_some(&self->peer, &self->p, 1, 0, SEGS, 0);
	let_others_sleep();
	EXPECT_FALSE(other->done);
	EXPECT_TRUE(bytes_check((void *)other->buf, LEN, GREY) < 0);
	send_some(&self->peer, &self->p, 0, MOST, SEGS - MOST, 0);
	READS(r, 0);
	READS(other, 1);
}

TEST_F(ahead, another_reader_continues_after_a_signal)
{
	struct reader *r = READER_AHEAD(0, 0), *other;

	other = reader_begin(self->fd, 0);
	let_others_sleep();
	EXPECT_TRUE(bytes_check((void *)other->buf, LEN, GREY) < 0);
	pthread_kill(r->thread, SIGUSR1);
	FAILS(r, EINTR);
	ASSERT_TRUE(reader_begins(other, 0));
	send_some(&self->peer, &self->p, 0, MOST, SEGS - MOST, 0);
	READS(other, 0);
}

TEST_F(ahead, holes_are_filled_where_they_are)
{
	/* At most a fifth of the segments may be missing */
	__u32 budget = 200020, hole = SEGS / 5 * SEG;
	struct reader *r = READER_AHEAD(0, budget);

	send_some(&self->peer, &self->p, 0, MOST + SEGS / 5,
		  SEGS - MOST - SEGS / 5, budget);
	reader_end(r);
	EXPECT_EQ(LEN, r->ret);
	EXPECT_TRUE(reader_is(r, 0, 0, MOST * SEG));
	EXPECT_EQ(-1, bytes_check((void *)(r->buf + MOST * SEG), hole, 0));
	EXPECT_TRUE(reader_is(r, 0, MOST * SEG + hole, LEN));
	EXPECT_EQ(GREY, r->buf[LEN]);
}

/* Cancel message 0 */
static void send_cancel(struct peer *peer, struct packet *p)
{
	struct dblp_frame f = { .type = DBLP_FRAME_CANCEL };

	f.cancel.started = 1;
	f.cancel.len = LEN;
	f.cancel.total = LEN;
	send_frame(peer, p, &f);
}

TEST_F(ahead, a_cancelled_message_is_an_error)
{
	struct reader *r = READER_AHEAD(0, 0);

	send_cancel(&self->peer, &self->p);
	FAILS(r, ECANCELED);
	send_some(&self->peer, &self->p, 1, 0, SEGS, 0);
	r = reader_begin(self->fd, 0);
	READS(r, 1);
}

TEST_F(ahead, the_connection_ends_in_the_middle_of_a_message)
{
	struct reader *r = READER_AHEAD(0, 0);

	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	FAILS(r, ECONNRESET);
}

TEST_F(ahead, a_piece_that_does_not_follow_is_tried_once)
{
	struct dblp_frame f = { .type = DBLP_FRAME_META };
	struct dblp_data d = { .msg_len = LEN, .meta = 1 };
	struct reader *r = reader_begin(self->fd, 0);

	/* This is not the start of a message */
	f.meta.offset = SEG;
	f.meta.total = SEG + LEN;
	send_data(&self->peer, &self->p, &d, SEG, 0, MOST, &f);
	EXPECT_TRUE(peer_sync(&self->peer));
	let_others_sleep();
	EXPECT_FALSE(r->done);
	EXPECT_EQ(-1, bytes_check((void *)r->buf, 2 * LEN, GREY));
	pthread_kill(r->thread, SIGUSR1);
	FAILS(r, EINTR);
}

TEST_F(ahead, placement_starts_from_the_first_byte)
{
	struct reader *r = READER_AHEAD(0, 0);
	__u32 on = 1;

	ASSERT_EQ(0, setsockopt(self->fd, SOL_DBLP, DBLP_PLACEMENT, &on, 4));
	reader_end(r);
	EXPECT_EQ(MOST * SEG, r->ret);
	EXPECT_TRUE(reader_is(r, 0, 0, MOST * SEG));
}

static void set_placement(int fd)
{
	__u32 on = 1;

	if (setsockopt(fd, SOL_DBLP, DBLP_PLACEMENT, &on, 4))
		die("setsockopt(DBLP_PLACEMENT)");
}

/* The message returns to the queue; its bytes do not get into the next one */
TEST_F(ahead, the_mode_changes_while_a_message_is_copied)
{
	struct reader *r, *other;
	struct trap trap;

	send_some(&self->peer, &self->p, 0, 0, SEGS, 0);
	send_some(&self->peer, &self->p, 1, 0, MOST, 0);
	r = reader_stopped(self->fd, 0, &trap);
	set_placement(self->fd);
	other = reader_begin(self->fd, MSG_DONTWAIT);
	let_others_sleep();
	EXPECT_FALSE(other->done);
	trap_break(&trap);
	FAILS(r, EFAULT);
	READS(other, 0);
	other = reader_begin(self->fd, MSG_DONTWAIT);
	reader_end(other);
	EXPECT_EQ(MOST * SEG, other->ret);
	EXPECT_TRUE(reader_is(other, 1, 0, MOST * SEG));
}

/* The same for a reader that copies ahead, with an empty queue */
TEST_F(ahead, the_mode_changes_while_something_is_copied_ahead)
{
	struct reader *r, *other;
	struct trap trap;

	send_some(&self->peer, &self->p, 0, 0, MOST, 0);
	r = reader_stopped(self->fd, 0, &trap);
	set_placement(self->fd);
	other = reader_begin(self->fd, MSG_WAITALL);
	let_others_sleep();
	EXPECT_FALSE(other->done);
	trap_fill(&trap);
	reader_end(r);
	EXPECT_EQ(MOST * SEG, r->ret);
	EXPECT_TRUE(reader_is(r, 0, 0, MOST * SEG));
	reader_free(r);
	send_some(&self->peer, &self->p, 0, MOST, SEGS - MOST, 0);
	reader_end(other);
	EXPECT_EQ(LEN - MOST * SEG, other->ret);
	EXPECT_TRUE(reader_is(other, 0, MOST * SEG, LEN));
}

/* The message does not return to the queue */
TEST_F(ahead, a_message_is_cancelled_while_it_is_copied)
{
	struct reader *r, *other;
	struct trap trap;

	set_placement(self->fd);
	send_some(&self->peer, &self->p, 0, 0, MOST, 0);
	r = reader_stopped(self->fd, 0, &trap);
	send_cancel(&self->peer, &self->p);
	ASSERT_TRUE(peer_sync(&self->peer));
	trap_break(&trap);
	FAILS(r, EFAULT);
	other = reader_begin(self->fd, MSG_DONTWAIT);
	reader_end(other);
	EXPECT_EQ(ECANCELED, other->err);
	EXPECT_EQ(-1, bytes_check((void *)other->buf, 2 * LEN, GREY));
}

/* Missing bytes of a message must not show bytes of the next one */
TEST_F(ahead, no_copying_ahead_of_a_message_that_may_return)
{
	__u32 budget = 200020, hole = SEGS / 5 * SEG, keep = DBLP_FILL_KEEP;
	struct reader *r, *other;
	struct trap trap;

	ASSERT_EQ(0, setsockopt(self->fd, SOL_DBLP, DBLP_FILL, &keep, 4));
	send_some(&self->peer, &self->p, 0, 0, MOST, budget);
	send_some(&self->peer, &self->p, 0, MOST + SEGS / 5,
		  SEGS - MOST - SEGS / 5, budget);
	send_some(&self->peer, &self->p, 1, 0, MOST + SEGS / 5, 0);
	r = reader_stopped(self->fd, 0, &trap);
	other = reader_begin(self->fd, 0);
	let_others_sleep();
	EXPECT_EQ(-1, bytes_check((void *)other->buf, 2 * LEN, GREY));
	trap_break(&trap);
	FAILS(r, EFAULT);
	reader_end(other);
	EXPECT_EQ(LEN, other->ret);
	EXPECT_TRUE(reader_is(other, 0, 0, MOST * SEG));
	EXPECT_EQ(-1, bytes_check((void *)(other->buf + MOST * SEG), hole, GREY));
	EXPECT_TRUE(reader_is(other, 0, MOST * SEG + hole, LEN));
}

/* Other readers see neither the next message nor the end of file yet */
TEST_F(ahead, the_last_message_is_visible_while_it_is_copied)
{
	struct reader *r, *other;
	struct trap trap;
	int bytes = 0;

	send_some(&self->peer, &self->p, 0, 0, SEGS, 0);
	send_fin(&self->peer, &self->p, 1);
	ASSERT_TRUE(peer_sync(&self->peer));
	r = reader_stopped(self->fd, 0, &trap);
	EXPECT_EQ(POLLIN, poll_now(self->fd) & POLLIN);
	EXPECT_EQ(0, ioctl(self->fd, SIOCINQ, &bytes));
	EXPECT_EQ(LEN, bytes);
	other = reader_begin(self->fd, MSG_DONTWAIT);
	let_others_sleep();
	EXPECT_FALSE(other->done);
	trap_break(&trap);
	FAILS(r, EFAULT);
	READS(other, 0);
	EXPECT_EQ(0, recv(self->fd, &bytes, 1, MSG_DONTWAIT));
}

/* Send piece @id, a segment at @offset of a message of @total bytes */
static void send_piece(struct peer *peer, struct packet *p, __u32 id, __u32 offset, __u32 total)
{
	struct dblp_frame meta = FRAME(META, meta, .msg_id = id, .offset = offset, .total = total);
	struct dblp_data d = { .msg_id = id, .msg_len = SEG, .meta = true };

	send_one(peer, p, &d, SEG, &meta);
	if (!peer_sync(peer))
		die("no answer");
}

/* SIOCINQ has no more bytes than one call returns, also while the last piece is copied */
TEST_F(ahead, one_message_is_counted_while_another_is_placed)
{
	static char buf[3 * SEG];
	struct reader *r;
	struct trap trap;
	int bytes = -1;

	set_placement(self->fd);
	send_piece(&self->peer, &self->p, 0, 0, 3 * SEG);
	send_piece(&self->peer, &self->p, 1, SEG, 3 * SEG);
	EXPECT_EQ(2 * SEG, recv(self->fd, buf, sizeof(buf), MSG_DONTWAIT));
	send_piece(&self->peer, &self->p, 2, 2 * SEG, 3 * SEG);
	r = reader_stopped(self->fd, 0, &trap);
	send_piece(&self->peer, &self->p, 3, 0, SEG);
	send_piece(&self->peer, &self->p, 4, 0, SEG);
	EXPECT_EQ(0, ioctl(self->fd, SIOCINQ, &bytes));
	EXPECT_GE(SEG, bytes);
	trap_fill(&trap);
	reader_end(r);
	EXPECT_EQ(SEG, r->ret);
	reader_free(r);
}

/* Does an edge-triggered epoll report a new event? */
static bool event_within(int epoll, int ms)
{
	struct epoll_event e;

	return epoll_wait(epoll, &e, 1, ms) == 1;
}

static bool new_event(int epoll)
{
	return event_within(epoll, 0);
}

static int edge_of(int fd)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		die("epoll");
	return epoll;
}

TEST_F(ahead, peeking_is_no_event)
{
	struct reader *r, *other;
	struct trap trap;
	int epoll;

	send_some(&self->peer, &self->p, 0, 0, SEGS, 0);
	epoll = edge_of(self->fd);
	EXPECT_TRUE(new_event(epoll));
	r = reader_stopped(self->fd, MSG_PEEK, &trap);
	EXPECT_EQ(POLLIN, poll_now(self->fd) & POLLIN);
	other = reader_begin(self->fd, MSG_PEEK | MSG_DONTWAIT);
	let_others_sleep();
	EXPECT_FALSE(other->done);
	trap_fill(&trap);
	READS(r, 0);
	READS(other, 0);
	EXPECT_FALSE(new_event(epoll));
	send_some(&self->peer, &self->p, 1, 0, SEGS, 0);
	EXPECT_TRUE(new_event(epoll));
}

/* Let other threads of this CPU run only while this one sleeps */
static void set_ahead_of_others(bool on)
{
	struct sched_param p = { .sched_priority = on };

	if (sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p))
		die("sched_setscheduler()");
}

/* Also if other readers could run first; they are woken for messages that it leaves */
TEST_F(ahead, a_waiting_reader_gets_its_message)
{
	struct dblp_data d = { .msg_len = LEN };
	struct reader *r;
	int epoll;
	char c;

	set_placement(self->fd);
	r = reader_begin(self->fd, MSG_WAITALL);
	send_some(&self->peer, &self->p, 0, 0, MOST, 0);
	ASSERT_TRUE(reader_begins(r, 0));
	let_others_sleep();
	EXPECT_ERR(EAGAIN, recv(self->fd, &c, 1, MSG_DONTWAIT));
	epoll = edge_of(self->fd);
	set_ahead_of_others(true);
	send_data(&self->peer, &self->p, &d, SEG, MOST, SEGS - MOST, NULL);
	d.msg_id = 1;
	send_data(&self->peer, &self->p, &d, SEG, 0, SEGS, NULL);
	/* Let ksoftirqd run, for which packets may wait */
	new_event(epoll);
	EXPECT_ERR(EAGAIN, recv(self->fd, &c, 1, MSG_DONTWAIT));
	set_ahead_of_others(false);
	READS(r, 0);
	EXPECT_TRUE(event_within(epoll, WAIT_MS));
	r = reader_begin(self->fd, MSG_WAITALL);
	READS(r, 1);
}

TEST_HARNESS_MAIN
