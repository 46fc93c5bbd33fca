// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode share: flows of two transports through the same bottleneck at the same time,
 * and the share of each. The first half of the connections belongs to one side, the
 * second half to the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conn.h"

#define SECOND	1000000000ULL

struct sharing {
	struct conn	*conn;
	void		**buf;
	unsigned int	n;
	unsigned int	open;
	int		epoll;
	uint64_t	from;		/* bytes received from this time on count */
	uint64_t	until;
	bool		spans;		/* span_begin() was called */
};

static void sharing_init(struct sharing *s)
{
	unsigned int i;

	s->conn = conn_accept_all();
	s->n = total_connections();
	s->open = s->n;
	s->spans = false;
	s->buf = xcalloc(s->n, sizeof(*s->buf));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		fail("epoll_create1()");
	for (i = 0; i < s->n; i++) {
		struct epoll_event event = {
			.events = EPOLLIN,
			.data.u32 = i,
		};

		s->buf[i] = contents_new();
		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->conn[i].fd, &event))
			fail("epoll_ctl()");
	}
}

/* Bytes count when the program receives them, also within an incomplete message */
static void share_take(struct sharing *s, unsigned int i, bool counts)
{
	struct conn *c = &s->conn[i];
	uint32_t before = c->got, now;

	switch (conn_take(c, s->buf[i], cfg.size, false)) {
	case RECEIVED_END:
		if (epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL))
			fail("epoll_ctl()");
		s->open--;
		return;
	case RECEIVED_PART:
		now = c->got;
		break;
	default:
		now = cfg.size;
		contents_check(c, s->buf[i]);
	}
	if (!counts)
		return;
	results->side[i >= s->n / 2] += now - before - c->missing;
	results->delivered += now - before - c->missing;
	results->missing += c->missing;
	results->early += c->missing > 0;
}

static void share_listen(void)
{
	struct epoll_event event[64];
	struct sharing s;
	unsigned int i;
	int n;

	sharing_init(&s);
	s.from = now_ns() + cfg.warmup * SECOND;
	s.until = s.from + cfg.seconds * SECOND;
	for (i = 0; i < s.n; i++)
		conn_signal(&s.conn[i]);
	while (s.open) {
		uint64_t now;
		bool counts;
		int k;

		n = epoll_wait(s.epoll, event, 64, -1);
		if (n < 0 && errno != EINTR)
			fail("epoll_wait()");
		now = now_ns();
		counts = now >= s.from && now < s.until;
		if (counts && !s.spans) {
			span_begin();
			s.spans = true;
		}
		if (now >= s.until && s.spans && !results->valid)
			span_end();
		for (k = 0; k < n; k++)
			share_take(&s, event[k].data.u32, counts);
	}
	errno = 0;
	if (!results->valid)
		fail("the flows ended before the measurement");
	for (i = 0; i < s.n; i++)
		conn_finish(&s.conn[i]);
}

/* Sends for a second longer than the measurement */
static void share_connect(unsigned int index)
{
	unsigned int side = index >= total_connections() / 2;
	const struct flavour *flavour = side ? &cfg.other : &cfg.main;
	void *buf = contents_new();
	uint64_t until, n = 0;
	struct conn c;

	conn_connect(&c, flavour, cfg.port + side, index);
	conn_note_cc(&c, side);
	if (!conn_await(&c)) {
		errno = 0;
		fail("connection %u ended before its start byte", index);
	}
	until = now_ns() + (cfg.warmup + cfg.seconds + 1) * SECOND;
	while (now_ns() < until) {
		contents_make(&c, buf, n++);
		conn_send(&c, buf, cfg.size);
		__atomic_add_fetch(&results->sent, cfg.size, __ATOMIC_RELAXED);
	}
	conn_finish(&c);
	free(buf);
}

const struct mode mode_share = {
	.name		= "share",
	.summary	= "flows of two transports at once: share of each side",
	.listen		= share_listen,
	.connect	= share_connect,
};
