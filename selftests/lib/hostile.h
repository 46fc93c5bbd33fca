/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invariant 6: packets that do not belong change nothing and allocate nothing.
 * What a stranger, a liar or a broken network may send is sent by hand: it has
 * to be dropped, counted under a name, and harm no message.
 *
 * What the programs that try it share besides the fixture of most of their tests.
 */
#ifndef DBLP_TEST_HOSTILE_H
#define DBLP_TEST_HOSTILE_H

#include "peer.h"

#define WAIT_MS		10000

static inline bool is_v4(const struct sockaddr_dblp *a)
{
	return !memcmp(&a->sdblp_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
}

static inline int get_state(int fd)
{
	return get_info(fd).state;
}

/* Is there nothing to be read, and no error? */
static inline bool is_silent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The next message is the one with this ID and length, exact */
static inline bool got_message(int fd, u32 id, u32 len)
{
	unsigned char *buf = malloc(len + 1);
	struct message m;
	bool good;

	if (!buf || !wait_for(fd, POLLIN, WAIT_MS))
		return false;
	good = message_recv(fd, buf, len + 1, MSG_DONTWAIT, &m) == len &&
	       m.info.msg_id == id && !m.info.missing &&
	       pattern_check(buf, len, 0, SCRIPTED_SEED, id) < 0;
	message_free(&m);
	free(buf);
	return good;
}

/* A segment of message @id of 1500 bytes in three segments */
static inline void send_segment(struct peer *peer, struct packet *p, u32 id,
				u32 seg)
{
	struct dblp_data d = {
		.msg_id = id, .offset = seg * 600, .msg_len = 1500,
	};

	send_one(peer, p, &d, 600, NULL);
}

static inline void send_message(struct peer *peer, struct packet *p, u32 id)
{
	send_segment(peer, p, id, 2);
	send_segment(peer, p, id, 0);
	send_segment(peer, p, id, 1);
}

/* Lies about messages have no good end: they end the connection. */
static inline void expect_abort(struct __test_metadata *_metadata, struct peer *peer, int fd)
{
	char byte;

	EXPECT_TRUE(peer_expect(peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, peer->rst_reason);
	EXPECT_ERR(EPROTO, recv(fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(fd));
}

#endif /* DBLP_TEST_HOSTILE_H */
