// SPDX-License-Identifier: GPL-2.0-only
/*
 * DBLP_SPRAY with a scripted peer: the number of ports that it may request in the handshake,
 * and the ports that it may send from.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"
#include "spray.h"

#include <sched.h>

FIXTURE(spray) {
	PLAYED_CONNECTION;
	struct peer other;
};

FIXTURE_BY_FAMILY(spray);

/* Send a COOKIE-ECHO that requests @ports ports */
static void ask(struct peer *peer, struct packet *p, u32 ports)
{
	struct dblp_params ours = params_default();

	peer->scid = peer->cookie.scid;
	make_echo(p, peer, &ours);
	poke(p, 2, 2, ports);
	send_packet(peer, p);
}

/* Make a connection of @ports ports */
static int join(struct peer *peer, const struct sockaddr_dblp *to, int listener,
		u32 ports)
{
	peer_connect(peer, to);
	peer->ports = ports;
	peer_handshake(peer);
	return accept(listener, NULL, NULL);
}

/* Make a peer that is another port of @peer */
static void other_port(struct peer *other, const struct peer *peer,
		       const struct sockaddr_dblp *to)
{
	peer_connect(other, to);
	other->cid = peer->cid;
	other->scid = peer->scid;
}

static void make_announcement(struct packet *p, struct peer *peer, u32 port)
{
	make_packet(p, DBLP_PKT_PROBE, peer->pn++, peer->scid);
	poke(p, 2, 2, port);
	put_zero(p, 16);
}

static void announce(struct peer *from, struct peer *peer, struct packet *p,
		     u32 port)
{
	make_announcement(p, peer, port);
	send_packet(from, p);
}

FIXTURE_SETUP(spray)
{
	one_cpu();
	netns_new();
	self->listener = plain_socket();
	set_u32(self->listener, DBLP_SPRAY, 4);
	listen_at(self->listener, variant->address, 8, &self->addr);
	self->fd = join(&self->peer, &self->addr, self->listener, 4);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(4, get_u32(self->fd, DBLP_SPRAY));
	other_port(&self->other, &self->peer, &self->addr);
}

FIXTURE_ENDS_BY_EXIT(spray);

TEST_F(spray, a_port_that_was_not_announced)
{
	u64 before = mib("DropPort");
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };

	send_message(&self->other, &self->p, 0);
	make_ctrl(&self->p, &self->other, &ping);
	send_packet(&self->other, &self->p);
	send_rst(&self->other, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	/* An MTU probe does not announce a port */
	announce(&self->other, &self->other, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 6, mib("DropPort"));
	EXPECT_TRUE(is_silent(self->fd));

	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(spray, an_announced_port)
{
	u64 before = mib("DropPort");

	announce(&self->other, &self->peer, &self->p, 3);
	self->other.pn = self->peer.pn;
	send_message(&self->other, &self->p, 0);
	self->peer.pn = self->other.pn;
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(self->peer.acked[0]);
	EXPECT_TRUE(self->peer.acked[3]);
	/* All answers go to the first port */
	peer_drain(&self->other);
	EXPECT_EQ(0, self->other.n[DBLP_PKT_ACK]);
	EXPECT_EQ(before, mib("DropPort"));
}

/* A NAT has changed the port: packets from the old one are refused */
TEST_F(spray, a_port_that_was_announced_again)
{
	u64 before = mib("DropPort");
	struct peer newer;

	other_port(&newer, &self->peer, &self->addr);
	announce(&self->other, &self->peer, &self->p, 2);
	announce(&newer, &self->peer, &self->p, 2);
	newer.pn = self->peer.pn;
	send_message(&newer, &self->p, 0);
	self->peer.pn = newer.pn;
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	send_message(&self->other, &self->p, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 3, mib("DropPort"));
}

TEST_F(spray, no_more_ports_than_requested)
{
	u64 field = mib("DropField"), port = mib("DropPort");

	announce(&self->other, &self->peer, &self->p, 4);
	announce(&self->other, &self->peer, &self->p, DBLP_SPRAY_MAX);
	self->peer.pn -= 2;
	send_message(&self->other, &self->p, 0);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(field + 2, mib("DropField"));
	EXPECT_EQ(port + 3, mib("DropPort"));
	/* A duplicate packet number announces nothing */
	self->peer.pn = 0;
	announce(&self->other, &self->peer, &self->p, 1);
	send_message(&self->other, &self->p, 0);
	self->peer.pn = 1;
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(port + 6, mib("DropPort"));
}

/* Segments of a message from 15 announced ports */
TEST_F(spray, the_most_ports)
{
	struct sockaddr_dblp addr = self->addr;
	static struct peer port[DBLP_SPRAY_MAX];
	struct peer peer;
	struct dblp_data d = { .msg_len = 15 * 600 };
	int listener = plain_socket(), fd;
	u32 i;

	set_u32(listener, DBLP_SPRAY, DBLP_SPRAY_MAX);
	addr.sdblp_port = 0;
	ASSERT_EQ(0, bind_to(listener, &addr));
	ASSERT_EQ(0, listen(listener, 8));
	local_name(listener, &addr);
	fd = join(&peer, &addr, listener, DBLP_SPRAY_MAX);
	for (i = 1; i < DBLP_SPRAY_MAX; i++) {
		other_port(&port[i], &peer, &addr);
		announce(&port[i], &peer, &self->p, i);
	}
	for (i = 1; i < DBLP_SPRAY_MAX; i++) {
		d.offset = (i - 1) * 600;
		make_data(&self->p, &peer, &d, 600, NULL);
		send_packet(&port[i], &self->p);
		peer_close(&port[i]);
	}
	EXPECT_TRUE(got_message(fd, 0, d.msg_len));
	EXPECT_EQ(0, mib("DropPort"));
}

/* The first of the two ports counts */
TEST_F(spray, one_number_on_two_ports)
{
	u64 before = mib("DropDuplicate");
	u32 pn;

	announce(&self->other, &self->peer, &self->p, 1);
	pn = self->other.pn = self->peer.pn;
	send_segment(&self->peer, &self->p, 0, 0);
	send_segment(&self->other, &self->p, 0, 1);
	self->other.pn = self->peer.pn;
	send_segment(&self->other, &self->p, 0, 1);
	self->peer.pn = self->other.pn;
	send_segment(&self->peer, &self->p, 0, 2);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropDuplicate"));
	EXPECT_TRUE(self->peer.acked[pn]);
	EXPECT_TRUE(is_silent(self->fd));
}

/* Packets of a buffer have one source port: data after the announcement is accepted */
TEST_F(spray, announced_in_one_buffer_with_data)
{
	static struct packet p[2];
	struct dblp_data d = { .msg_len = 1 };

	make_announcement(&p[0], &self->peer, 2);
	make_data(&p[1], &self->peer, &d, 600, NULL);
	put_zero(&p[0], p[1].len - p[0].len);
	send_train(&self->other, p, 2);
	EXPECT_TRUE(got_message(self->fd, 0, 1));
	EXPECT_EQ(0, mib("DropPort"));
}

/* Its frames are parsed in a copy; earlier segments were in buffers from two ports */
TEST_F(spray, a_cancel_in_a_buffer_of_another_port)
{
	static char pages[4096] __attribute__((aligned(4096)));
	struct dblp_data d = { .msg_len = 4 * 256 };
	struct dblp_frame f = FRAME(CANCEL, cancel, .len = d.msg_len, .total = d.msg_len,
						    .started = true);
	static struct packet p[2];

	announce(&self->other, &self->peer, &self->p, 1);
	make_data(&p[0], &self->peer, &d, 256, NULL);
	d.offset = 256;
	make_data(&p[1], &self->peer, &d, 256, NULL);
	send_train(&self->peer, p, 2);
	d.offset = 512;
	make_data(&p[0], &self->peer, &d, 256, NULL);
	make_ctrl(&p[1], &self->peer, &f);
	add_filler(&p[1], 120);
	splice_train(&self->other, pages, p, 2);
	EXPECT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
	EXPECT_ERR(ECANCELED, recv(self->fd, pages, sizeof(pages), 0));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

TEST_F(spray, more_ports_than_the_listener_accepts)
{
	u64 before = mib("DropPort");
	struct peer peer;

	peer_connect(&peer, &self->addr);
	peer_get_cookie(&peer);
	EXPECT_TRUE(peer.cookie.features & DBLP_FEATURE_SPRAY);
	ask(&peer, &self->p, 5);
	EXPECT_TRUE(peer_expect(&peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_SPRAY, peer.rst_reason);
	EXPECT_EQ(peer.cookie.scid, peer.rst_echo);
	EXPECT_EQ(before + 1, mib("DropPort"));
	/* Invalid numbers of ports */
	before = mib("DropField");
	ask(&peer, &self->p, 1);
	ask(&peer, &self->p, DBLP_SPRAY_MAX + 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropField"));
	EXPECT_EQ(2, socket_count());
	/* The refusal did not use up the cookie */
	ask(&peer, &self->p, 4);
	EXPECT_TRUE(peer_expect(&peer, DBLP_PKT_COOKIE_ACK, WAIT_MS));
}

/* With one port no other port can be announced */
TEST_F(spray, one_port)
{
	u64 before = mib("DropWrongPeer"), field = mib("DropField");
	struct peer peer, second;
	int fd;

	fd = peer_join(&peer, &self->addr, self->listener);
	EXPECT_EQ(1, get_u32(fd, DBLP_SPRAY));
	other_port(&second, &peer, &self->addr);
	announce(&second, &peer, &self->p, 1);
	send_message(&second, &self->p, 0);
	announce(&peer, &peer, &self->p, 1);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 4, mib("DropWrongPeer"));
	EXPECT_EQ(field + 1, mib("DropField"));
	EXPECT_TRUE(is_silent(fd));
}

/* Leave the kernel only 3 ports to choose from */
static void leave_ports(u32 first)
{
	char range[32];

	snprintf(range, sizeof(range), "%u %u", first, first + 2);
	file_write("/proc/sys/net/ipv4/ip_local_port_range", range);
}

/* Further ports only send: they accept only a RST, and no packet after one */
TEST_F(spray, a_listener_does_not_listen_there)
{
	struct sockaddr_dblp at = self->addr;
	u64 before = mib("DropPort");
	int listener = plain_socket();
	static struct packet p[2];
	struct peer peer;

	leave_ports(40000);
	set_u32(listener, DBLP_SPRAY, 3);
	at.sdblp_port = 0;
	ASSERT_EQ(0, bind_to(listener, &at));
	ASSERT_EQ(0, listen(listener, 8));
	local_name(listener, &at);
	at.sdblp_port = htons(ntohs(at.sdblp_port) == 40000 ? 40001 : 40000);
	leave_ports(50000);
	peer_connect(&peer, &at);
	make_init(&p[1], peer.cid);
	make_rst(&p[0], self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	put_zero(&p[0], p[1].len - p[0].len);
	send_packet(&peer, &p[1]);
	send_train(&peer, p, 2);
	send_packet(&peer, &p[0]);
	EXPECT_TRUE(peer_sync(&self->peer));
	peer_drain(&peer);
	EXPECT_EQ(0, peer.n[DBLP_PKT_INIT_ACK]);
	EXPECT_EQ(before + 2, mib("DropPort"));
	EXPECT_EQ(1, mib("DropTrailing"));
}

/* connect() fails at once, and the socket is unchanged */
TEST_F(spray, requesting_too_many_ports)
{
	int fd = plain_socket();

	set_u32(fd, DBLP_SPRAY, 5);
	EXPECT_ERR(EMLINK, connect_to(fd, &self->addr));
	EXPECT_ERR(EMLINK, connect_to(fd, &self->addr));
	EXPECT_EQ(5, get_u32(fd, DBLP_SPRAY));
	set_u32(fd, DBLP_SPRAY, 4);
	EXPECT_EQ(0, connect_to(fd, &self->addr));
	EXPECT_EQ(4, get_u32(fd, DBLP_SPRAY));
	EXPECT_ERR(EISCONN, try_u32(fd, DBLP_SPRAY, 1));
	EXPECT_ERR(EISCONN, try_u32(self->listener, DBLP_SPRAY, 1));
	EXPECT_EQ(4, get_u32(fd, DBLP_SPRAY));
}

/* A failed attempt frees its ports; a bound socket keeps its port */
TEST_F(spray, too_few_ports)
{
	struct sockaddr_dblp any = self->addr;
	int fd = plain_socket();

	any.sdblp_port = 0;
	leave_ports(40000);
	set_u32(fd, DBLP_SPRAY, 4);
	EXPECT_ERR(EADDRINUSE, connect_to(fd, &self->addr));
	EXPECT_ERR(EADDRINUSE, listen(fd, 8));
	EXPECT_EQ(0, bind_to(fd, &any));
	EXPECT_ERR(EADDRINUSE, connect_to(fd, &self->addr));
	EXPECT_ERR(EADDRINUSE, listen(fd, 8));
	set_u32(fd, DBLP_SPRAY, 3);
	EXPECT_EQ(0, connect_to(fd, &self->addr));
	EXPECT_EQ(3, get_u32(fd, DBLP_SPRAY));
}

/* Ports are freed by a kernel thread, which runs after the next call */
TEST_F(spray, fewer_ports_at_once)
{
	const struct sched_param first = { .sched_priority = 1 };
	int fd = plain_socket();

	leave_ports(40000);
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &first));
	set_u32(fd, DBLP_SPRAY, 4);
	EXPECT_ERR(EADDRINUSE, connect_to(fd, &self->addr));
	set_u32(fd, DBLP_SPRAY, 3);
	EXPECT_EQ(0, connect_to(fd, &self->addr));
}

/* Announcements have tags, too */
TEST_F(spray, with_a_key)
{
	static char buf[1000000];
	struct sockaddr_dblp at = self->addr;
	int listener = plain_socket(), fd = plain_socket(), server, i;
	u64 before = mib("DropPort");

	set_key(listener, "sixteen or more.");
	set_key(fd, "sixteen or more.");
	set_u32(listener, DBLP_SPRAY, DBLP_SPRAY_MAX);
	set_u32(fd, DBLP_SPRAY, DBLP_SPRAY_MAX);
	at.sdblp_port = 0;
	ASSERT_EQ(0, bind_to(listener, &at));
	ASSERT_EQ(0, listen(listener, 8));
	local_name(listener, &at);
	ASSERT_EQ(0, connect_to(fd, &at));
	server = accept(listener, NULL, NULL);
	ASSERT_LE(0, server);
	memset(buf, 1, sizeof(buf));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(sizeof(buf), send(fd, buf, sizeof(buf), 0));
		ASSERT_TRUE(wait_for(server, POLLIN, WAIT_MS));
		EXPECT_EQ(sizeof(buf), recv(server, buf, sizeof(buf), 0));
	}
	EXPECT_EQ(before, mib("DropPort"));
	EXPECT_EQ(0, mib("DropAuth"));
	EXPECT_EQ(0, mib("DropField"));
}

/* Connect to a scripted server with these features */
static int call(struct peer *server, struct packet *p, const char *address,
		u32 ports, u16 features)
{
	struct dblp_cookie cookie = { .scid = 4711, .features = features };
	struct sockaddr_dblp at;
	int fd = new_socket();

	peer_listen(server, address, &at);
	set_u32(fd, DBLP_SPRAY, ports);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) || !connect_to(fd, &at) ||
	    errno != EINPROGRESS || !peer_expect(server, DBLP_PKT_INIT, WAIT_MS))
		die("no INIT came");
	server->scid = dblp_get_u64(server->last[DBLP_PKT_INIT].byte +
				    DBLP_HDR_LEN);
	make_init_ack(p, server, &cookie);
	send_packet(server, p);
	return fd;
}

TEST_F(spray, a_peer_without_spraying)
{
	struct peer old;
	int fd = call(&old, &self->p, variant->address, 2, DBLP_FEATURE_CANCEL);

	EXPECT_TRUE(wait_for(fd, POLLHUP, WAIT_MS));
	EXPECT_EQ(EPROTONOSUPPORT, get_int(fd, SO_ERROR));
	EXPECT_EQ(0, old.n[DBLP_PKT_COOKIE_ECHO]);
}

/* With one port the handshake is as without the feature */
TEST_F(spray, the_requested_number_of_ports)
{
	struct peer server;
	u32 ports;
	int fd;

	for (ports = 1; ports <= 2; ports++) {
		fd = call(&server, &self->p, variant->address, ports, UINT16_MAX);
		EXPECT_EQ(0, server.last[DBLP_PKT_INIT].byte[3]);
		ASSERT_TRUE(peer_expect(&server, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
		EXPECT_EQ(ports > 1 ? ports : 0,
			  server.last[DBLP_PKT_COOKIE_ECHO].byte[3]);
		peer_close(&server);
		close(fd);
	}
}

TEST_HARNESS_MAIN
