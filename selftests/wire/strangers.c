// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets of no connection or of another one, and handshakes with a misbehaving peer, as
 * client and as server.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"

#include <netinet/udp.h>
#include <sys/mman.h>
#include <time.h>

#define COOKIE_LIFE_MS	5000

/*
 * Packets of no connection, or of another one
 */
TEST_F(peer, an_unknown_connection_is_reset)
{
	u64 unknown = self->peer.scid ^ 1, before = mib("RstSent");
	struct dblp_data d = { .msg_len = 100 };

	make_data(&self->p, &self->peer, &d, 100, NULL);
	poke(&self->p, 8, 8, unknown);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_UNKNOWN, self->peer.rst_reason);
	EXPECT_EQ(unknown, self->peer.rst_echo);
	EXPECT_EQ(DBLP_RST_LEN, self->peer.last[DBLP_PKT_RST].len);
	EXPECT_EQ(before + 1, mib("RstSent"));
	EXPECT_EQ(2, socket_count());

	/* The other connection is not affected */
	EXPECT_TRUE(is_silent(self->fd));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, no_answer_is_longer_than_the_question)
{
	u64 unknown = self->peer.scid ^ 1;
	u32 len;

	for (len = 0; DBLP_HDR_LEN + len < DBLP_RST_LEN; len += 4) {
		/* No frame has only one word */
		if (len == 4)
			continue;
		make_packet(&self->p, DBLP_PKT_CTRL, 1, unknown);
		add_filler(&self->p, len);
		send_packet(&self->peer, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
}

TEST_F(peer, a_reset_is_never_answered)
{
	send_rst(&self->peer, &self->p, self->peer.scid ^ 1, DBLP_RST_UNKNOWN, 1234);
	send_rst(&self->peer, &self->p, 0, DBLP_RST_UNKNOWN, 1234);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, self->peer.n[DBLP_PKT_RST]);
	EXPECT_TRUE(is_silent(self->fd));
}

TEST_F(peer, a_reset_ends_the_connection)
{
	char byte;

	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_ERR(ECONNRESET, recv(self->fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(0, recv(self->fd, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

TEST_F(peer, a_peer_without_the_connection_can_reset_it)
{
	char byte;

	send_rst(&self->peer, &self->p, 0, DBLP_RST_UNKNOWN, self->peer.cid);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_ERR(ECONNRESET, recv(self->fd, &byte, 1, MSG_DONTWAIT));
}

TEST_F(peer, a_forged_reset_is_ignored)
{
	u64 cid = self->peer.cid, scid = self->peer.scid;

	send_rst(&self->peer, &self->p, scid, DBLP_RST_CLOSED, cid ^ 1);
	send_rst(&self->peer, &self->p, 0, DBLP_RST_UNKNOWN, cid ^ 1);
	send_rst(&self->peer, &self->p, 0, DBLP_RST_UNKNOWN, scid);
	send_rst(&self->peer, &self->p, scid, 0, cid);
	send_rst(&self->peer, &self->p, scid, 99, cid);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

/* UDP checksum errors, of IPv4 or of IPv6 */
static u64 damaged(bool v4)
{
	static const char name6[] = "Udp6InCsumErrors";
	char names[512], values[512], *name, *value, *n, *v;
	FILE *f = fopen(v4 ? "/proc/net/snmp" : "/proc/net/snmp6", "r");

	while (f && fgets(names, sizeof(names), f)) {
		if (!v4 && !strncmp(names, name6, strlen(name6)))
			goto found6;
		if (!v4 || strncmp(names, "Udp: ", 5) ||
		    !fgets(values, sizeof(values), f))
			continue;
		name = strtok_r(names, " \n", &n);
		value = strtok_r(values, " \n", &v);
		while (name && value && strcmp(name, "InCsumErrors")) {
			name = strtok_r(NULL, " \n", &n);
			value = strtok_r(NULL, " \n", &v);
		}
		if (!name || !value)
			break;
		fclose(f);
		return strtoull(value, NULL, 10);
	}
	die("no counter of damaged packets");
found6:
	fclose(f);
	return strtoull(names + strlen(name6), NULL, 10);
}

/* Send a packet with a valid or invalid UDP checksum */
static void send_raw(const struct peer *peer, const struct packet *p,
		     const struct sockaddr_dblp *to, bool good)
{
	bool v4 = is_v4(to);
	u32 skip = v4 ? 12 : 0, len = sizeof(struct udphdr) + p->len;
	const u8 *address = (const u8 *)&to->sdblp_addr + skip;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct udphdr udp = { .dest = to->sdblp_port };
	struct iovec iov[] = {
		{ &udp, sizeof(udp) }, { (void *)p->byte, p->len },
	};
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	socklen_t size = sizeof(six);
	u32 sum;
	int fd;

	if (getsockname(peer->udp, (struct sockaddr *)&six, &size))
		die("getsockname()");
	/* The port has the same offset in both address structures */
	udp.source = six.sin6_port;
	udp.len = htons(len);
	/* Both ends have the same address */
	sum = inet_sum(IPPROTO_UDP + len, address, 16 - skip);
	sum = inet_sum(sum, address, 16 - skip);
	sum = inet_sum(inet_sum(sum, &udp, sizeof(udp)), p->byte, p->len);
	sum = ntohs(inet_checksum(sum));
	/* 0 would mean no checksum */
	if (!good)
		sum = sum == 1 ? 2 : sum ^ 1;
	udp.check = htons(sum ?: 0xffff);

	memcpy(&four.sin_addr, address, 4);
	six.sin6_family = AF_INET6;
	six.sin6_port = 0;
	memcpy(&six.sin6_addr, &to->sdblp_addr, 16);
	six.sin6_scope_id = 0;
	six.sin6_flowinfo = 0;
	m.msg_name = v4 ? (void *)&four : (void *)&six;
	m.msg_namelen = v4 ? sizeof(four) : sizeof(six);
	fd = socket(v4 ? AF_INET : AF_INET6, SOCK_RAW, IPPROTO_UDP);
	if (fd < 0 || sendmsg(fd, &m, 0) < 0)
		die("sending a raw packet");
	close(fd);
}

/* The counter is that of UDP */
TEST_F(peer, a_damaged_packet_is_dropped)
{
	bool v4 = is_v4(&self->addr);
	u64 ours = damaged(v4), others = damaged(!v4);
	struct dblp_data d = { .msg_len = 100 };

	make_data(&self->p, &self->peer, &d, 100, NULL);
	send_raw(&self->peer, &self->p, &self->addr, false);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(ours + 1, damaged(v4));
	EXPECT_EQ(others, damaged(!v4));

	/* With a valid checksum the packet is accepted */
	send_raw(&self->peer, &self->p, &self->addr, true);
	EXPECT_TRUE(got_message(self->fd, 0, 100));
	EXPECT_EQ(ours + 1, damaged(v4));
}

/* The peer's address is fixed: a valid connection ID from another port is refused */
TEST_F(peer, packets_from_another_port_are_ignored)
{
	u64 before = mib("DropWrongPeer");
	struct peer other;

	peer_connect(&other, &self->addr);
	other.scid = self->peer.scid;
	other.cid = self->peer.cid;

	send_message(&other, &self->p, 0);
	send_fin(&other, &self->p, 0);
	peer_ack(&other, 0, 1000);
	send_rst(&other, &self->p, other.scid, DBLP_RST_CLOSED, other.cid);
	send_rst(&other, &self->p, 0, DBLP_RST_UNKNOWN, other.cid);

	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_LE(before + 6, mib("DropWrongPeer"));
	EXPECT_TRUE(is_silent(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	peer_drain(&other);
	EXPECT_EQ(0, other.n[DBLP_PKT_ACK] + other.n[DBLP_PKT_CTRL]);
	peer_close(&other);
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, handshake_packets_in_the_middle_of_a_connection)
{
	u64 before = mib("DropState");
	struct dblp_params ours = params_default();
	struct dblp_cookie none = { 0 };

	make_init_ack(&self->p, &self->peer, &none);
	send_packet(&self->peer, &self->p);
	make_cookie_ack(&self->p, &self->peer, &ours);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 2, mib("DropState"));
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

/*
 * The handshake
 */
TEST_F(peer, an_init_leaves_nothing_behind)
{
	u64 before = mib("CookieSent");
	struct peer other;
	unsigned int i;

	peer_connect(&other, &self->addr);
	for (i = 0; i < 200; i++) {
		make_init(&self->p, 0x1000000 + i);
		send_packet(&other, &self->p);
		EXPECT_TRUE(peer_expect(&other, DBLP_PKT_INIT_ACK, WAIT_MS));
	}
	EXPECT_EQ(DBLP_INIT_ACK_LEN, other.last[DBLP_PKT_INIT_ACK].len);
	EXPECT_EQ(before + 200, mib("CookieSent"));
	EXPECT_EQ(2, socket_count());
	fcntl(self->listener, F_SETFL, O_NONBLOCK);
	EXPECT_ERR(EAGAIN, accept(self->listener, NULL, NULL));
}

/* Cases of lengths and header fields are in unit/test_wire.c */
TEST_F(peer, bad_inits)
{
	struct peer other;

	peer_connect(&other, &self->addr);
	make_init(&self->p, 0);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	poke(&self->p, 100, 1, 1);
	send_packet(&other, &self->p);
	make_init(&self->p, 77);
	poke(&self->p, 8, 8, 5);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	peer_drain(&other);
	EXPECT_EQ(0, other.n[DBLP_PKT_INIT_ACK]);
}

TEST_F(peer, an_init_of_another_version_learns_ours)
{
	struct packet *answer;
	struct peer other;

	peer_connect(&other, &self->addr);
	make_init(&self->p, 0x1122334455667788);
	poke(&self->p, 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_INIT);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_VERSION, WAIT_MS));
	answer = &other.last[DBLP_PKT_VERSION];
	ASSERT_EQ(DBLP_HDR_LEN + 12, answer->len);
	EXPECT_EQ(0x1122334455667788,
		  dblp_get_u64(answer->byte + DBLP_HDR_LEN));
	EXPECT_EQ(DBLP_VERSION, dblp_get_u64(answer->byte + DBLP_HDR_LEN + 4) &
		  UINT32_MAX);

	/* No answer to other types or to shorter packets */
	poke(&self->p, 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_VERSION);
	send_packet(&other, &self->p);
	poke(&self->p, 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_INIT);
	self->p.len = DBLP_INIT_LEN - 1;
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	peer_drain(&other);
	EXPECT_EQ(1, other.n[DBLP_PKT_VERSION]);
	EXPECT_EQ(2, socket_count());
}

static bool connection_comes(int listener)
{
	bool came = wait_for(listener, POLLIN, 100);

	if (came)
		close(accept(listener, NULL, NULL));
	return came;
}

TEST_F(peer, altered_cookies)
{
	static const u32 places[] = {
		DBLP_HDR_LEN - 1,	/* connection ID in the header */
		DBLP_HDR_LEN + 7,	/* the client's connection ID */
		DBLP_HDR_LEN + 15,	/* the server's connection ID in the cookie */
		DBLP_HDR_LEN + 23,	/* creation time */
		DBLP_HDR_LEN + 31,	/* MAC */
	};
	unsigned int i, n = sizeof(places) / sizeof(places[0]);
	struct dblp_params ours = params_default();
	u64 before = mib("CookieBad");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	for (i = 0; i < n; i++) {
		make_echo(&self->p, &other, &ours);
		self->p.byte[places[i]] ^= 1;
		send_packet(&other, &self->p);
	}
	/* The unaltered cookie is still valid; used at once, before it expires */
	send_echo(&other, &self->p, &ours);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_COOKIE_ACK, WAIT_MS));
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + n, mib("CookieBad"));
	EXPECT_EQ(1, other.n[DBLP_PKT_COOKIE_ACK]);
	EXPECT_EQ(3, socket_count());
	EXPECT_TRUE(connection_comes(self->listener));
	EXPECT_FALSE(connection_comes(self->listener));
}

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		die("clock_gettime()");
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Cookies and ARRIVAL frames do not reveal the clocks of this machine */
TEST_F(peer, clocks_are_not_revealed)
{
	u64 limit = 200000000, ms = clock_ns(CLOCK_BOOTTIME) / 1000000;
	unsigned int i, near = 0;
	struct peer other;
	s32 off;
	int fd;

	EXPECT_LT(limit, self->peer.cookie.born_ms - ms);
	for (i = 0; i < 16; i++) {
		peer_connect(&other, &self->addr);
		other.features = DBLP_FEATURE_ARRIVAL;
		peer_handshake(&other);
		fd = accept(self->listener, NULL, NULL);
		EXPECT_TRUE(peer_sync(&other));
		ASSERT_LT(0, other.n_arrival);
		off = other.arrival - (u32)clock_ns(CLOCK_MONOTONIC);
		/* About a tenth are near by chance */
		near += off > -(s64)limit && off < (s64)limit;
		close(fd);
		peer_close(&other);
	}
	EXPECT_GT(12, near);
}

TEST_F(peer, a_cookie_is_good_for_one_address)
{
	struct dblp_params ours = params_default();
	struct peer other, thief;
	u64 before = mib("CookieBad");

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	peer_connect(&thief, &self->addr);
	thief.cookie = other.cookie;
	thief.cid = other.cid;
	send_echo(&thief, &self->p, &ours);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("CookieBad"));
	EXPECT_FALSE(connection_comes(self->listener));
}

/* All other cases are in unit/test_wire.c */
TEST_F(peer, bad_parameters)
{
	struct dblp_params ours = params_default();
	u64 before = mib("DropField");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	make_echo(&self->p, &other, &ours);
	poke(&self->p, DBLP_ECHO_PARAMS, 4, DBLP_PPM + 1);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("DropField"));
	EXPECT_FALSE(connection_comes(self->listener));
}

TEST_F_TIMEOUT(peer, a_cookie_goes_stale, 60)
{
	struct dblp_params ours = params_default();
	u64 before = mib("CookieStale");
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	/* Only time matters */
	sleep_ms(COOKIE_LIFE_MS + 200);
	send_echo(&other, &self->p, &ours);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(before + 1, mib("CookieStale"));
	EXPECT_FALSE(connection_comes(self->listener));
}

TEST_F(peer, a_repeated_echo_is_answered_but_makes_no_second_connection)
{
	struct dblp_params ours = params_default();
	int i;

	for (i = 0; i < 3; i++) {
		send_echo(&self->peer, &self->p, &ours);
		EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ACK,
					WAIT_MS));
	}
	EXPECT_FALSE(connection_comes(self->listener));
	EXPECT_EQ(2, socket_count());
	send_message(&self->peer, &self->p, 0);
	EXPECT_TRUE(got_message(self->fd, 0, 1500));
}

TEST_F(peer, a_cookie_is_good_for_one_connection)
{
	struct dblp_params ours = params_default();
	u64 before = mib("CookieStale");
	struct peer witness;

	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	send_echo(&self->peer, &self->p, &ours);

	peer_connect(&witness, &self->addr);
	peer_handshake(&witness);
	EXPECT_EQ(before + 1, mib("CookieStale"));
	EXPECT_TRUE(connection_comes(self->listener));
	EXPECT_FALSE(connection_comes(self->listener));
}

TEST_F(peer, a_closed_listener_refuses)
{
	struct dblp_params ours = params_default();
	struct peer other;

	peer_connect(&other, &self->addr);
	peer_get_cookie(&other);
	/* The connection keeps the port open */
	close(self->listener);
	self->listener = -1;
	send_echo(&other, &self->p, &ours);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_REFUSED, other.rst_reason);
	EXPECT_EQ(other.cookie.scid, other.rst_echo);
	make_init(&self->p, other.cid);
	send_packet(&other, &self->p);
	EXPECT_TRUE(peer_expect(&other, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_REFUSED, other.rst_reason);
	EXPECT_EQ(other.cid, other.rst_echo);
	EXPECT_EQ(0, other.n[DBLP_PKT_COOKIE_ACK]);
	EXPECT_EQ(1, socket_count());
}

/*
 * Handshakes as a client, with a misbehaving server
 */
FIXTURE(server) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int fd;
};

FIXTURE_BY_FAMILY(server);

FIXTURE_SETUP(server)
{
	netns_new();
	peer_listen(&self->peer, variant->address, &self->addr);
	self->fd = new_socket();
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EINPROGRESS, connect_to(self->fd, &self->addr));
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_INIT, WAIT_MS));
	self->peer.scid = dblp_get_u64(self->peer.last[DBLP_PKT_INIT].byte +
				       DBLP_HDR_LEN);
}

FIXTURE_ENDS_BY_EXIT(server);

static void send_init_ack(struct peer *peer, struct packet *p, u64 dcid)
{
	struct dblp_cookie cookie = { .scid = peer->cid, .mac = 42 };

	make_init_ack(p, peer, &cookie);
	poke(p, 8, 8, dcid);
	send_packet(peer, p);
}

static void send_cookie_ack(struct peer *peer, struct packet *p)
{
	struct dblp_params ours = params_default();

	make_cookie_ack(p, peer, &ours);
	send_packet(peer, p);
}

static int connect_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	if (!wait_for(fd, POLLOUT | POLLHUP | POLLERR, WAIT_MS) ||
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -1;
	return err;
}

/* Does the handshake succeed after the packets sent before? */
static bool handshake_succeeds(struct peer *peer, struct packet *p, int fd)
{
	send_init_ack(peer, p, peer->scid);
	if (!peer_expect(peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS))
		return false;
	send_cookie_ack(peer, p);
	return connect_error(fd) == 0 &&
	       get_state(fd) == DBLP_STATE_ESTABLISHED && peer_sync(peer);
}

TEST_F(server, a_valid_server_is_accepted)
{
	static const struct dblp_cookie none;
	struct dblp_cookie echoed;

	EXPECT_EQ(DBLP_INIT_LEN, self->peer.last[DBLP_PKT_INIT].len);
	EXPECT_EQ(-1, bytes_check(self->peer.last[DBLP_PKT_INIT].byte + 32,
				  DBLP_INIT_LEN - 32, 0));
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
	dblp_get_cookie(&echoed, self->peer.last[DBLP_PKT_COOKIE_ECHO].byte +
			DBLP_HDR_LEN + 8);
	EXPECT_EQ(self->peer.cid, echoed.scid);
	EXPECT_EQ(42, echoed.mac);
	EXPECT_NE(0, memcmp(&none, &echoed, sizeof(none)));
}

TEST_F(server, answers_of_others_are_ignored)
{
	struct dblp_cookie none = { 0 };
	struct sockaddr_dblp client;
	struct peer other;

	/* A cookie for another client or without one; a premature COOKIE-ACK */
	send_init_ack(&self->peer, &self->p, self->peer.scid ^ 1);
	make_init_ack(&self->p, &self->peer, &none);
	send_packet(&self->peer, &self->p);
	send_cookie_ack(&self->peer, &self->p);

	/* Valid answers from another port */
	local_name(self->fd, &client);
	peer_connect(&other, &client);
	other.scid = self->peer.scid;
	send_init_ack(&other, &self->p, other.scid);
	send_rst(&other, &self->p, other.scid, DBLP_RST_REFUSED, other.scid);

	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_EQ(DBLP_STATE_INIT_SENT, get_state(self->fd));
	peer_close(&other);
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
}

/*
 * When a cookie gets no answer, the server may have made a connection nevertheless, and
 * report it too late.
 */
TEST_F(server, another_cookie_is_requested_as_another_client)
{
	u64 first = self->peer.scid, second;
	u64 start = now_ms();

	send_init_ack(&self->peer, &self->p, first);
	do {
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_INIT, WAIT_MS));
		second = dblp_get_u64(self->peer.last[DBLP_PKT_INIT].byte +
				      DBLP_HDR_LEN);
	} while (second == first);
	EXPECT_LE(COOKIE_LIFE_MS, now_ms() - start);
	EXPECT_LE(5, self->peer.n[DBLP_PKT_COOKIE_ECHO]);

	send_init_ack(&self->peer, &self->p, first);
	send_cookie_ack(&self->peer, &self->p);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_UNKNOWN, self->peer.rst_reason);
	EXPECT_EQ(first, self->peer.rst_echo);
	self->peer.scid = second;
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
}

TEST_F(server, a_refusal_ends_the_attempt)
{
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.scid);
	EXPECT_EQ(ECONNREFUSED, connect_error(self->fd));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_state(self->fd));
}

TEST_F(server, a_refusal_after_the_cookie)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.cid);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, 1000));
	EXPECT_EQ(ECONNREFUSED, connect_error(self->fd));
}

/* A server for one connection has closed its listening socket by then */
TEST_F(server, a_repeated_init_is_refused_after_the_cookie)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.scid);
	send_cookie_ack(&self->peer, &self->p);
	EXPECT_EQ(0, connect_error(self->fd));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

static void make_version(struct packet *p, u64 echo, u32 version)
{
	make_packet(p, DBLP_PKT_VERSION, 0, 0);
	put_u64_be(p, echo);
	put_word(p, version);
}

static void send_version(struct peer *peer, struct packet *p, u64 echo,
			 u32 version)
{
	make_version(p, echo, version);
	send_packet(peer, p);
}

TEST_F(server, no_version_in_common)
{
	send_version(&self->peer, &self->p, self->peer.scid, ANOTHER_VERSION);
	EXPECT_EQ(EPROTONOSUPPORT, connect_error(self->fd));
}

TEST_F(server, forged_version_lists_are_ignored)
{
	/* For another INIT; or with our version, which is contradictory */
	send_version(&self->peer, &self->p, self->peer.scid ^ 1, ANOTHER_VERSION);
	send_version(&self->peer, &self->p, self->peer.scid, DBLP_VERSION);
	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_TRUE(handshake_succeeds(&self->peer, &self->p, self->fd));
	send_version(&self->peer, &self->p, self->peer.scid, ANOTHER_VERSION);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
}

/*
 * A list of versions is never longer than an INIT. A spliced packet arrives in several
 * pieces, so that its end is in another page.
 */
TEST_F(server, lists_of_versions_that_are_too_long)
{
	u64 before = mib("DropTrailing");
	u8 *pages = new_pages(2 * 4096);
	u32 version, len;

	for (version = ANOTHER_VERSION; version <= DBLP_VERSION; version++)
		for (len = DBLP_INIT_LEN + 4; len <= 1400; len += 212) {
			make_version(&self->p, self->peer.scid, ANOTHER_VERSION);
			poke(&self->p, 0, 1, version << 4 | DBLP_PKT_VERSION);
			put_zero(&self->p, len - self->p.len);
			splice_train(&self->peer, pages, &self->p, 1);
		}
	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_EQ(before + 12, mib("DropTrailing"));
	munmap(pages, 2 * 4096);
	send_version(&self->peer, &self->p, self->peer.scid, ANOTHER_VERSION);
	EXPECT_EQ(EPROTONOSUPPORT, connect_error(self->fd));
}

/* The cap in the COOKIE-ECHO is obsolete */
TEST_F(server, a_cap_set_during_the_handshake)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	set_u32(self->fd, DBLP_BUDGET_CAP, 12345);
	send_cookie_ack(&self->peer, &self->p);
	EXPECT_EQ(0, connect_error(self->fd));
	while (self->peer.flow.flow.cap != 12345 &&
	       peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS))
		;
	EXPECT_EQ(12345, self->peer.flow.flow.cap);
}

TEST_F(server, bad_parameters_are_refused)
{
	send_init_ack(&self->peer, &self->p, self->peer.scid);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	make_packet(&self->p, DBLP_PKT_COOKIE_ACK, 0, self->peer.scid);
	put_zero(&self->p, DBLP_COOKIE_ACK_LEN - DBLP_HDR_LEN);
	poke(&self->p, DBLP_HDR_LEN, 4, DBLP_PPM + 1);
	send_packet(&self->peer, &self->p);
	EXPECT_EQ(0, poll(&(struct pollfd) { self->fd, POLLOUT, 0 }, 1, 100));
	EXPECT_EQ(DBLP_STATE_COOKIE_SENT, get_state(self->fd));
	send_cookie_ack(&self->peer, &self->p);
	EXPECT_EQ(0, connect_error(self->fd));
}

TEST_HARNESS_MAIN
