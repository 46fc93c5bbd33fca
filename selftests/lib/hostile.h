/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of invariant 6: packets that do not belong to a validated connection change
 * nothing and allocate nothing. The tests send packets of an unknown sender, a lying
 * peer or a broken network. The module must drop and count them, and messages must not
 * be harmed.
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

/* Does the socket have neither data nor an error? */
static inline bool is_silent(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Is the next message complete, with this ID and length? */
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

/* Send one of the three segments of message @id, which has 1500 bytes */
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

/* A false frame about a message must end the connection */
static inline void expect_abort(struct __test_metadata *_metadata, struct peer *peer, int fd)
{
	char byte;

	EXPECT_TRUE(peer_expect(peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_PROTOCOL, peer->rst_reason);
	EXPECT_ERR(EPROTO, recv(fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(fd));
}

#endif /* DBLP_TEST_HOSTILE_H */
