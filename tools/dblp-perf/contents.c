// SPDX-License-Identifier: GPL-2.0-only
/* Contents of messages: generation and verification. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"

/* Finalizer of splitmix64: each word depends on its position. */
uint64_t contents_word(uint64_t key, uint64_t at)
{
	uint64_t x = key + (at + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint64_t message_key(unsigned int index, uint64_t n)
{
	return contents_word(contents_word(cfg.seed, index), n);
}

static void fill(unsigned char *buf, uint64_t key)
{
	uint32_t at;

	for (at = 0; at < cfg.size; at += 8) {
		uint64_t word = contents_word(key, at);
		uint32_t left = cfg.size - at;

		memcpy(buf + at, &word, left < 8 ? left : 8);
	}
}

/* Pseudo-random, because a transport may describe zero bytes instead of sending them. */
void *contents_new(void)
{
	void *buf = xcalloc(1, cfg.size);

	fill(buf, message_key(0, 0));
	return buf;
}

void contents_make(const struct conn *c, void *buf, uint64_t n)
{
	if (cfg.verify)
		fill(buf, message_key(c->index, n));
}

static void check_from(const struct conn *c, const unsigned char *buf,
		       const unsigned char *wanted, uint32_t from, uint32_t to)
{
	uint32_t at = from;

	if (!memcmp(buf + from, wanted + from, to - from))
		return;
	while (buf[at] == wanted[at])
		at++;
	fail("connection %u, message %llu: byte %u is wrong, but not reported missing",
	     c->index, (unsigned long long)c->received - 1, at);
}

void contents_check(const struct conn *c, const void *buf)
{
	unsigned char *wanted;
	uint32_t i, at = 0;

	if (!cfg.verify)
		return;
	wanted = xcalloc(1, cfg.size);
	fill(wanted, message_key(c->index, c->received - 1));
	errno = 0;
	for (i = 0; i < c->msg.n; i++) {
		const struct dblp_range *gap = &c->msg.range[i];

		if (gap->offset < at || gap->offset > cfg.size ||
		    gap->length > cfg.size - gap->offset)
			fail("connection %u: missing range %u+%u of %u bytes",
			     c->index, gap->offset, gap->length, cfg.size);
		check_from(c, buf, wanted, at, gap->offset);
		at = gap->offset + gap->length;
	}
	check_from(c, buf, wanted, at, cfg.size);
	free(wanted);
}
