// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modes bulk and fanin: the listening end starts all senders by one byte on each
 * connection, and measures the time until it has received their messages: all of
 * them in bulk, one from each sender per round in fanin.
 */
#include <errno.h>
#include <stdlib.h>

#include "conn.h"

/* Senders wait for this byte before they close, because epoll would report the end. */
static void gathering_finish(struct watched *g)
{
	unsigned int i;

	for (i = 0; i < g->n; i++)
		conn_signal(&g->conn[i]);
	for (i = 0; i < g->n; i++)
		conn_finish(&g->conn[i]);
}

static void got_message(struct watched *g, unsigned int i, bool counts)
{
	const struct conn *c = &g->conn[i];

	contents_check(c, g->buf[i]);
	if (!counts)
		return;
	results->delivered += cfg.size - c->missing;
	results->missing += c->missing;
	results->early += c->missing > 0;
}

/* Receive on connection @i; true if a message is complete */
static bool take(struct watched *g, unsigned int i, bool wait)
{
	switch (conn_take(&g->conn[i], g->buf[i], cfg.size, wait)) {
	case RECEIVED_MESSAGE:
		return true;
	case RECEIVED_PART:
		return false;
	default:
		fail("connection %u ended before its last message", i);
	}
}

/* Receive all messages of the only connection, without epoll */
static void gather_one(struct watched *g, uint64_t messages, bool counts)
{
	while (messages--) {
		take(g, 0, true);
		got_message(g, 0, counts);
	}
}

static void gather_all(struct watched *g, uint64_t messages, bool counts)
{
	unsigned int which[WATCH_MAX], n, i;
	uint64_t left = messages * g->n;

	while (left) {
		n = watch_wait(g, which);
		for (i = 0; i < n; i++) {
			if (!take(g, which[i], false))
				continue;
			got_message(g, which[i], counts);
			left--;
		}
	}
}

/* Returns nanoseconds from the first start byte to the last message */
static uint64_t gather_round(struct watched *g, uint64_t messages,
			     bool counts)
{
	uint64_t start = now_ns();
	unsigned int i;

	for (i = 0; i < g->n; i++)
		conn_signal(&g->conn[i]);
	if (g->n == 1)
		gather_one(g, messages, counts);
	else
		gather_all(g, messages, counts);
	return now_ns() - start;
}

static void add_round(struct watched *g, uint64_t messages)
{
	results->sample[results->n++] = gather_round(g, messages, true);
}

static void bulk_listen(void)
{
	struct watched g;

	watch_all(&g);
	if (cfg.warmup)
		gather_round(&g, cfg.warmup, false);
	span_begin();
	add_round(&g, cfg.count);
	span_end();
	gathering_finish(&g);
}

/* Runs outside the measured time */
static void run_hook(uint32_t round)
{
	char text[16];

	if (!cfg.hook)
		return;
	snprintf(text, sizeof(text), "%u", round);
	setenv("DBLP_ROUND", text, 1);
	errno = 0;
	if (system(cfg.hook))
		fail("the hook failed before round %u", round);
}

static void fanin_listen(void)
{
	struct watched g;
	uint32_t i;

	watch_all(&g);
	for (i = 0; i < cfg.warmup; i++)
		gather_round(&g, 1, false);
	span_begin();
	for (i = 0; i < cfg.count; i++) {
		run_hook(i);
		add_round(&g, 1);
	}
	span_end();
	gathering_finish(&g);
}

static void await_go(struct conn *c)
{
	if (conn_await(c))
		return;
	errno = 0;
	fail("connection %u ended before its start byte", c->index);
}

static void send_messages(struct conn *c, void *buf, uint64_t first,
			  uint64_t messages)
{
	uint64_t i;

	await_go(c);
	for (i = first; i < first + messages; i++) {
		contents_make(c, buf, i);
		conn_send(c, buf, cfg.size);
		__atomic_add_fetch(&results->sent, cfg.size, __ATOMIC_RELAXED);
	}
}

static void bulk_connect(unsigned int index)
{
	void *buf = contents_new();
	struct conn c;

	conn_connect(&c, &cfg.main, cfg.port, index);
	conn_note_cc(&c, 0);
	if (cfg.warmup)
		send_messages(&c, buf, 0, cfg.warmup);
	send_messages(&c, buf, cfg.warmup, cfg.count);
	await_go(&c);
	conn_finish(&c);
	free(buf);
}

static void fanin_connect(unsigned int index)
{
	void *buf = contents_new();
	struct conn c;
	uint32_t i;

	conn_connect(&c, &cfg.main, cfg.port, index);
	conn_note_cc(&c, 0);
	for (i = 0; i < cfg.warmup + cfg.count; i++)
		send_messages(&c, buf, i, 1);
	await_go(&c);
	conn_finish(&c);
	free(buf);
}

const struct mode mode_bulk = {
	.name		= "bulk",
	.summary	= "messages back to back: goodput",
	.listen		= bulk_listen,
	.connect	= bulk_connect,
};

const struct mode mode_fanin = {
	.name		= "fanin",
	.summary	= "all connections send one message at once: time of a round",
	.listen		= fanin_listen,
	.connect	= fanin_connect,
};
