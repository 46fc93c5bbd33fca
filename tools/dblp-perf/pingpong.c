// SPDX-License-Identifier: GPL-2.0-only
/*
 * Modes rr and latency: messages one at a time on one connection. The answer is a
 * message of the same length in rr, one byte in latency. The measured time is from
 * before the message is passed to the kernel until the answer has been read.
 */
#include <errno.h>
#include <stdlib.h>

#include "conn.h"

static void answer(struct conn *c, const void *buf, bool same)
{
	if (same)
		conn_send(c, buf, cfg.size);
	else
		conn_signal(c);
}

static void listen_and_answer(bool same)
{
	void *buf = contents_new();
	struct conn *c = conn_accept_all();
	uint32_t i;

	for (i = 0; i < cfg.warmup + cfg.count; i++) {
		conn_expect(c, buf, cfg.size);
		contents_check(c, buf);
		answer(c, buf, same);
		if (i < cfg.warmup)
			continue;
		results->delivered += cfg.size - c->missing;
		results->missing += c->missing;
		results->early += c->missing > 0;
	}
	conn_finish(c);
	free(buf);
}

static void rr_listen(void)
{
	listen_and_answer(true);
}

static void latency_listen(void)
{
	listen_and_answer(false);
}

static uint64_t ask(struct conn *c, void *buf, uint64_t n, bool same)
{
	uint64_t start;

	contents_make(c, buf, n);
	start = now_ns();
	conn_send(c, buf, cfg.size);
	if (same) {
		conn_expect(c, buf, cfg.size);
	} else if (!conn_await(c)) {
		errno = 0;
		fail("the other end ended without an answer");
	}
	start = now_ns() - start;
	if (same)
		contents_check(c, buf);
	__atomic_add_fetch(&results->sent, cfg.size, __ATOMIC_RELAXED);
	return start;
}

static void connect_and_ask(unsigned int index, bool same)
{
	void *buf = contents_new();
	struct conn c;
	uint32_t i;

	conn_connect(&c, &cfg.main, cfg.port, index);
	conn_note_cc(&c, 0);
	for (i = 0; i < cfg.warmup; i++)
		ask(&c, buf, i, same);
	span_begin();
	for (i = 0; i < cfg.count; i++)
		results->sample[results->n++] = ask(&c, buf, cfg.warmup + i,
						    same);
	span_end();
	conn_finish(&c);
	free(buf);
}

static void rr_connect(unsigned int index)
{
	connect_and_ask(index, true);
}

static void latency_connect(unsigned int index)
{
	connect_and_ask(index, false);
}

const struct mode mode_rr = {
	.name		= "rr",
	.summary	= "request and response of the same size: round-trip time",
	.listen		= rr_listen,
	.connect	= rr_connect,
};

const struct mode mode_latency = {
	.name		= "latency",
	.summary	= "messages one at a time, each answered by a byte: time of each",
	.listen		= latency_listen,
	.connect	= latency_connect,
};
