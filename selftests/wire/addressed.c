// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that name the right connection and come another way: to another port of
 * this machine, by another device, to an address of many hosts. What filters of port,
 * cgroup and device refuse has no other entrance.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <netinet/ip6.h>
#include <netinet/udp.h>

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

/* UDP with this source: raw, as IP would not send it */
static void send_from(const char *source, const char *to, u16 port,
		      const struct packet *p)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	struct ip6_hdr ip = { .ip6_flow = htonl(6 << 28), .ip6_hlim = 64 };
	struct udphdr udp = { .source = htons(9), .dest = port };
	struct iovec iov[] = {
		{ &ip, sizeof(ip) }, { &udp, sizeof(udp) },
		{ (void *)p->byte, p->len },
	};
	struct msghdr m = {
		.msg_name = &sin6, .msg_namelen = sizeof(sin6),
		.msg_iov = iov, .msg_iovlen = 3,
	};
	u32 len = sizeof(udp) + p->len, sum;
	int fd = socket(AF_INET6, SOCK_RAW, IPPROTO_RAW);

	inet_pton(AF_INET6, source, &ip.ip6_src);
	inet_pton(AF_INET6, to, &ip.ip6_dst);
	sin6.sin6_addr = ip.ip6_dst;
	ip.ip6_plen = htons(len);
	ip.ip6_nxt = IPPROTO_UDP;
	udp.len = htons(len);
	sum = inet_sum(IPPROTO_UDP + len, &ip.ip6_src, 32);
	sum = inet_sum(inet_sum(sum, &udp, sizeof(udp)), p->byte, p->len);
	udp.check = inet_checksum(sum);
	if (fd < 0 || sendmsg(fd, &m, 0) < 0)
		die("a packet from %s", source);
	close(fd);
}

static void send_init_to(const struct peer *peer, const char *to, u16 port)
{
	struct sockaddr_dblp a;
	struct packet p;

	addr_parse(&a, to, ntohs(port));
	make_init(&p, peer->cid);
	send_packet_to(peer, &p, &a);
}

/* Until one is answered: a new link may lose the first */
static bool answers(struct peer *peer, const char *to, u16 port)
{
	int tries;

	for (tries = 0; tries < 100; tries++) {
		send_init_to(peer, to, port);
		if (peer_expect(peer, DBLP_PKT_INIT_ACK, 100))
			return true;
	}
	return false;
}

static void peer_at(struct peer *peer, const char *text)
{
	struct sockaddr_dblp at;

	peer_listen(peer, text, &at);
	set_int(peer->udp, SO_BROADCAST, 1);
}

/* Else each listener on the link answers what a stranger sent once */
TEST(an_init_for_many_hosts_is_not_answered)
{
	int there, here, listener4, listener6;
	struct sockaddr_dblp addr4, addr6;
	struct peer v4, v6, silent[2];
	struct packet p;
	u64 before;

	netns_new();
	here = netns_this();
	there = netns_cable("gro off", "gro off");
	run("ip addr add fd09::2/64 dev eth0 nodad");
	listener4 = new_listener("0.0.0.0", 8, &addr4);
	listener6 = new_listener("::", 8, &addr6);
	before = mib("DropNotUnicast");

	netns_set(there);
	run("ip addr add fd09::1/64 dev eth0 nodad && ip route add 224.0.0.0/4 dev eth0");
	peer_at(&v4, "10.9.0.1");
	peer_at(&v6, "fd09::1");
	EXPECT_TRUE(answers(&v4, "10.9.0.2", addr4.sdblp_port));
	EXPECT_TRUE(answers(&v6, "fd09::2", addr6.sdblp_port));
	peer_at(&silent[0], "10.9.0.1");
	peer_at(&silent[1], "fd09::1");
	send_init_to(&silent[0], "224.0.0.1", addr4.sdblp_port);
	send_init_to(&silent[0], "10.9.0.255", addr4.sdblp_port);
	send_init_to(&silent[1], "ff02::1", addr6.sdblp_port);
	make_init(&p, 77);
	send_from("::", "fd09::2", addr6.sdblp_port, &p);
	send_from("::ffff:10.9.0.1", "fd09::2", addr6.sdblp_port, &p);

	netns_set(here);
	EXPECT_SOON(before + 5, mib("DropNotUnicast"));
	EXPECT_FALSE(peer_expect(&silent[0], DBLP_PKT_INIT_ACK, SHORT_MS));
	EXPECT_FALSE(peer_expect(&silent[1], DBLP_PKT_INIT_ACK, SHORT_MS));
	peer_close(&v4);
	peer_close(&v6);
	peer_close(&silent[0]);
	peer_close(&silent[1]);
	close(listener4);
	close(listener6);
	close(there);
	close(here);
}

TEST_HARNESS_MAIN
