// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets with the right connection ID that arrive elsewhere: at another port of this
 * machine, by another device, link or VRF, or at a multicast or broadcast address. They
 * must not bypass filters of ports, cgroups and devices.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <net/if.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>

/* Send packets of all types, which would affect the connection if accepted */
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

TEST_F(peer, another_port_does_not_reach_a_connection)
{
	u64 before = mib("DropUnknownConn");
	struct sockaddr_dblp other;

	new_listener(variant->address, 1, &other);
	send_all_to(&self->peer, &self->p, &other);
	EXPECT_SOON(before + 4, mib("DropUnknownConn"));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

static void bind_to_device(int fd, const char *name)
{
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name)))
		die("SO_BINDTODEVICE %s", name);
}

/* Also if the socket was bound to a device after its UDP socket was created */
TEST_F(peer, another_device_does_not_reach_a_connection)
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

TEST_F(peer, another_device_does_not_reach_a_listener)
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
}

/* Send UDP with this source address by a raw socket */
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

/* Repeat until one is answered, because a new link may lose the first packets */
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

/* Otherwise each listener on the link would answer one packet: an amplification */
TEST(an_init_to_many_hosts_is_not_answered)
{
	int there, here;
	struct sockaddr_dblp addr4, addr6;
	struct peer v4, v6, silent[2];
	struct packet p;
	u64 before;

	netns_new();
	here = netns_this();
	there = netns_cable("gro off", "gro off");
	run("ip addr add fd09::2/64 dev eth0 nodad");
	new_listener("0.0.0.0", 8, &addr4);
	new_listener("::", 8, &addr6);
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
}

/*
 * Two links between the namespaces, eth0 and eth1, with the same addresses on both: in two
 * VRFs here, or only as two links
 */
FIXTURE(twins) {
	struct sockaddr_dblp addr;
	struct peer peer[2];
	struct packet p;
	int fd[2];
	int here;
	int there;
	int listener;
};

FIXTURE_VARIANT(twins) {
	const char *here;
	const char *there;
	bool vrf;
};

FIXTURE_VARIANT_ADD(twins, ipv4_in_vrfs) {
	.here = "10.8.0.2", .there = "10.8.0.1", .vrf = true,
};
FIXTURE_VARIANT_ADD(twins, ipv6_in_vrfs) {
	.here = "fd08::2", .there = "fd08::1", .vrf = true,
};
FIXTURE_VARIANT_ADD(twins, link_local_in_vrfs) {
	.here = "fe80::2", .there = "fe80::1", .vrf = true,
};
FIXTURE_VARIANT_ADD(twins, link_local) {
	.here = "fe80::2", .there = "fe80::1",
};

/* Create a link, with addresses at both ends */
static void link_new(int here, int there, unsigned int n,
		     const char *address_here, const char *address_there,
		     bool vrf)
{
	const char *more = strchr(address_here, ':') ? "/64 nodad" : "/24";

	netns_set(there);
	run("ip link add eth%u type veth peer name eth%u netns /proc/%d/fd/%d",
	    n, n, getpid(), here);
	run("ip link set eth%u addrgenmode none up && ip addr add dev eth%u %s%s",
	    n, n, address_there, more);
	netns_set(here);
	if (vrf)
		run("ip link add vrf%u type vrf table %u && ip link set vrf%u up && "
		    "ip link set eth%u master vrf%u", n, 10 + n, n, n, n);
	run("ip link set eth%u addrgenmode none up && ip addr add dev eth%u %s%s",
	    n, n, address_here, more);
}

/* Address @a with the scope of eth@n of this namespace, if it is link-local */
static struct sockaddr_in6 on_link(const char *a, unsigned int n, u16 port)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	char device[] = { 'e', 't', 'h', '0' + n, 0 };
	struct sockaddr_dblp at;

	addr_parse(&at, a, 0);
	memcpy(&sin6.sin6_addr, &at.sdblp_addr, 16);
	sin6.sin6_port = port;
	if (!strncmp(a, "fe80:", 5))
		sin6.sin6_scope_id = if_nametoindex(device);
	return sin6;
}

/* Both peers have the same address and port */
static void twin_new(struct peer *peer, unsigned int n, const char *from,
		     const char *to, u16 port)
{
	char device[] = { 'e', 't', 'h', '0' + n, 0 };
	struct sockaddr_in6 sin6 = on_link(from, n, htons(5000));

	memset(peer, 0, sizeof(*peer));
	peer->cid = 4711 + n;
	peer->udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bind_to_device(peer->udp, device);
	if (bind(peer->udp, (struct sockaddr *)&sin6, sizeof(sin6)))
		die("bind() to %s", from);
	sin6 = on_link(to, n, port);
	if (connect(peer->udp, (struct sockaddr *)&sin6, sizeof(sin6)))
		die("connect() to %s", to);
}

/* A new link may lose the first packets */
static void twin_join(struct peer *peer)
{
	struct packet p;

	do {
		make_init(&p, peer->cid);
		send_packet(peer, &p);
	} while (!peer_expect(peer, DBLP_PKT_INIT_ACK, 100));
	peer_handshake(peer);
}

FIXTURE_SETUP(twins)
{
	unsigned int n;

	netns_new();
	self->there = netns_this();
	netns_new();
	self->here = netns_this();
	if (variant->vrf)
		file_write("/proc/sys/net/ipv4/udp_l3mdev_accept", "1");
	self->listener = new_listener("::", 8, &self->addr);
	for (n = 0; n < 2; n++)
		link_new(self->here, self->there, n, variant->here,
			 variant->there, variant->vrf);
	for (n = 0; n < 2; n++) {
		netns_set(self->there);
		twin_new(&self->peer[n], n, variant->there, variant->here,
			 self->addr.sdblp_port);
		netns_set(self->here);
		twin_join(&self->peer[n]);
		self->fd[n] = accept(self->listener, NULL, NULL);
	}
}

FIXTURE_ENDS_BY_EXIT(twins);

TEST_F(twins, have_a_connection_each)
{
	unsigned int n;

	for (n = 0; n < 2; n++)
		send_message(&self->peer[n], &self->p, 0);
	for (n = 0; n < 2; n++)
		EXPECT_TRUE(got_message(self->fd[n], 0, 1500));
}

/* A twin knows the other's connection IDs, and has the same address and port */
TEST_F(twins, do_not_reach_each_other)
{
	u64 wrong = mib("DropWrongPeer"), unknown = mib("DropUnknownConn");
	struct dblp_params ours = params_default();
	u64 bad = mib("CookieBad");
	struct sockaddr_dblp to;
	struct sockaddr_in6 sin6;
	struct peer liar;

	liar = self->peer[0];
	liar.udp = self->peer[1].udp;
	netns_set(self->there);
	sin6 = on_link(variant->here, 1, self->addr.sdblp_port);
	netns_set(self->here);
	addr_parse(&to, variant->here, ntohs(self->addr.sdblp_port));
	to.sdblp_scope_id = sin6.sin6_scope_id;
	send_all_to(&liar, &self->p, &to);
	EXPECT_SOON(wrong + 3, mib("DropWrongPeer"));
	EXPECT_SOON(unknown + 1, mib("DropUnknownConn"));
	EXPECT_TRUE(is_silent(self->fd[0]));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd[0]));

	/* Packets to one twin arrive on its own link only */
	peer_drain(&self->peer[0]);
	self->peer[0].cid++;
	peer_get_cookie(&self->peer[0]);
	make_echo(&self->p, &self->peer[0], &ours);
	send_packet(&liar, &self->p);
	EXPECT_SOON(bad + 1, mib("CookieBad"));
	send_packet(&self->peer[0], &self->p);
	EXPECT_TRUE(peer_expect(&self->peer[0], DBLP_PKT_COOKIE_ACK, WAIT_MS));
}

TEST_HARNESS_MAIN
