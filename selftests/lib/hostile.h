/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invariant 6: packets that do not belong change nothing and allocate nothing.
 * What a stranger, a liar or a broken network may send is sent by hand: it has
 * to be dropped, counted under a name, and harm no message.
 *
 * What the programs that try it share: the fixture of most of their tests, a
 * connection whose other end is played by the test, and its messages.
 */
#ifndef DBLP_TEST_HOSTILE_H
#define DBLP_TEST_HOSTILE_H

#include "scripted.h"
#include "sock.h"

#include "kselftest_harness.h"

#define WAIT_MS		10000

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

/* A connection whose other end is played by the test */
FIXTURE(peer) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int listener;
	int fd;
};

FIXTURE_VARIANT(peer) {
	const char *address;
};

FIXTURE_VARIANT_ADD(peer, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(peer, ipv6) { .address = "::1" };

FIXTURE_SETUP(peer)
{
	netns_new();
	/* As on Ethernet: messages are more than one segment */
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 8, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(peer)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

/* A segment of message @id of 1500 bytes in three segments */
static inline void send_segment(struct peer *peer, struct packet *p, u32 id,
				u32 seg)
{
	struct dblp_data d = {
		.msg_id = id, .offset = seg * 600, .msg_len = 1500,
	};

	make_data(p, peer, &d, 600, NULL);
	send_packet(peer, p);
}

static inline void send_message(struct peer *peer, struct packet *p, u32 id)
{
	send_segment(peer, p, id, 2);
	send_segment(peer, p, id, 0);
	send_segment(peer, p, id, 1);
}

static inline void send_fin(struct peer *peer, struct packet *p, u32 end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_FIN, .fin.end = end };

	make_ctrl(p, peer, &f);
	send_packet(peer, p);
}

#endif /* DBLP_TEST_HOSTILE_H */
