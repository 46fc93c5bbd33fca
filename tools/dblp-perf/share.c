// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode share: flows of two transports through the same bottleneck at the same time,
 * and the share of each. The first half of the connections belongs to one side, the
 * second half to the other.
 */
#include <errno.h>
#include <stdlib.h>

#include "conn.h"

#define MS	1000000ULL	/* ns */

struct sharing {
	struct watched	all;
	unsigned int	open;
	uint64_t	from;		/* bytes received from this time on count */
	uint64_t	until;
	bool		spans;		/* span_begin() was called */
};

/* Bytes count when the program receives them, also within an incomplete message */
static void share_take(struct sharing *s, unsigned int i, bool counts)
{
	struct conn *c = &s->all.conn[i];
	uint32_t before = c->got, now;

	switch (conn_take(c, s->all.buf[i], cfg.size, false)) {
	case RECEIVED_END:
		watch_end(&s->all, i);
		s->open--;
		return;
	case RECEIVED_PART:
		now = c->got;
		break;
	default:
		now = cfg.size;
		contents_check(c, s->all.buf[i]);
	}
	if (!counts)
		return;
	results->side[i >= s->all.n / 2] += now - before - c->missing;
	results->delivered += now - before - c->missing;
	results->missing += c->missing;
	results->early += c->missing > 0;
}

static void share_listen(void)
{
	struct sharing s = { .spans = false };
	unsigned int which[WATCH_MAX], i, n;

	watch_all(&s.all);
	s.open = s.all.n;
	s.from = now_ns() + cfg.warmup * MS;
	s.until = s.from + cfg.time_ms * MS;
	for (i = 0; i < s.all.n; i++)
		conn_signal(&s.all.conn[i]);
	while (s.open) {
		uint64_t now;
		bool counts;

		n = watch_wait(&s.all, which);
		now = now_ns();
		counts = now >= s.from && now < s.until;
		if (counts && !s.spans) {
			span_begin();
			s.spans = true;
		}
		if (now >= s.until && s.spans && !results->valid)
			span_end();
		for (i = 0; i < n; i++)
			share_take(&s, which[i], counts);
	}
	errno = 0;
	if (!results->valid)
		fail("the flows ended before the measurement");
	for (i = 0; i < s.all.n; i++)
		conn_finish(&s.all.conn[i]);
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
	until = now_ns() + (cfg.warmup + cfg.time_ms + 1000) * MS;
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
