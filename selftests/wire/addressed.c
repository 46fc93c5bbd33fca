// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that name the right connection and come another way: to another port of
 * this machine, by another device, to an address of many hosts. What filters of port,
 * cgroup and device refuse has no other entrance.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

/* What a peer can do to a connection, if it is taken */
static void send_all_to(struct peer *peer, struct packet *p,
			const struct sockaddr_dblp *to)
{
	struct dblp_data d = { .msg_len = 100 };
	struct dblp_frame fin = { .type = DBLP_FRAME_FIN };

	make_data(p, peer, &d, 100, NULL);
	send_packet_to(peer, p, to);
	make_ctrl(p, peer, &fin);
	send_packet_to(peer, p, to);
	make_rst(p, peer->scid, DBLP_RST_CLOSED, peer->cid);
	send_packet_to(peer, p, to);
	make_rst(p, 0, DBLP_RST_UNKNOWN, peer->cid);
	send_packet_to(peer, p, to);
}

TEST_F(peer, another_port_is_no_entrance_to_a_connection)
{
	u64 before = mib("DropUnknownConn");
	struct sockaddr_dblp other;
	int listener = new_listener(variant->address, 1, &other);

	send_all_to(&self->peer, &self->p, &other);
	EXPECT_SOON(before + 4, mib("DropUnknownConn"));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	close(listener);
}

static void bind_to_device(int fd, const char *name)
{
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)))
		die("SO_BINDTODEVICE %s", name);
}

/* Also if it was bound to a device after the port below it was made */
TEST_F(peer, another_device_is_no_entrance_to_a_connection)
{
	u64 before = mib("DropWrongPeer");

	run("ip link add other type dummy && ip link set other up");
	bind_to_device(self->fd, "other");
	send_all_to(&self->peer, &self->p, &self->addr);
	EXPECT_SOON(before + 4, mib("DropWrongPeer"));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	bind_to_device(self->fd, "lo");
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, another_device_is_no_entrance_to_a_listener)
{
	struct peer other;

	run("ip link add other type dummy && ip link set other up");
	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	bind_to_device(self->listener, "other");
	make_init(&self->p, other.cid);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_REFUSED, other.rst_reason);
	bind_to_device(self->listener, "lo");
	make_init(&self->p, other.cid);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_INIT_ACK, WAIT_MS));
	peer_close(&other);
}

TEST_HARNESS_MAIN
