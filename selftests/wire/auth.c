// SPDX-License-Identifier: GPL-2.0-only
/*
 * DBLP_AUTH_KEY: an attacker without the key can neither connect, nor forge, change or
 * replay packets of a connection. A relay between the two ends sees and can change all
 * packets.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>

#include "lib/scripted.h"
#include "lib/sock.h"

#include "kselftest_harness.h"

#define WAIT_MS		10000
#define ROUNDS		200

/* Origin of a packet */
enum side { NOBODY, CLIENT, SERVER };

struct relay {
	int			fd[3];	/* by side */
	struct sockaddr_storage	client;
	socklen_t		client_len;
};

#define OLD	"the key of the first week"
#define NEW	"the key of the second week"

/* Number of dropped packets, for any reason */
static uint64_t drops(void)
{
	static const char * const names[] = {
		"DropShort", "DropVersion", "DropType", "DropField",
		"DropTrailing", "DropAuth", "DropUnknownConn", "DropWrongPeer",
		"DropDuplicate", "DropLate", "DropWindow", "DropMismatch",
		"DropMemory", "DropState", "DropNoListener", "CookieBad",
		"CookieStale", "AcceptQueueFull",
	};
	uint64_t *all = mib_all();
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		sum += mib_of(all, names[i]);
	free(all);
	return sum;
}

/* A UDP socket with a buffer that does not overflow */
static int udp_at(const struct sockaddr_dblp *at, bool connected)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_port = connected ? at->sdblp_port : 0,
		.sin6_addr = at->sdblp_addr,
	};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0), off = 0;

	if (fd < 0 || setsockopt(fd, SOL_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		die("socket()");
	set_int(fd, SO_RCVBUFFORCE, 16 << 20);
	if (connected ? connect(fd, (struct sockaddr *)&sin6, sizeof(sin6)) :
			bind(fd, (struct sockaddr *)&sin6, sizeof(sin6)))
		die("UDP socket");
	return fd;
}

/* A relay to @server; clients connect to it at @at */
static void relay_new(struct relay *r, const struct sockaddr_dblp *server,
		      struct sockaddr_dblp *at)
{
	struct sockaddr_in6 sin6;
	socklen_t len = sizeof(sin6);

	r->fd[CLIENT] = udp_at(server, false);
	r->fd[SERVER] = udp_at(server, true);
	r->client_len = 0;
	if (getsockname(r->fd[CLIENT], (struct sockaddr *)&sin6, &len))
		die("getsockname()");
	*at = *server;
	at->sdblp_port = sin6.sin6_port;
}

static void relay_send(struct relay *r, enum side from, const void *bytes,
		       size_t len, uint16_t size)
{
	union {
		struct cmsghdr	align;
		char		buf[CMSG_SPACE(sizeof(size))];
	} control = { 0 };
	struct iovec iov = { (void *)bytes, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c = &control.align;

	if (from == SERVER) {
		m.msg_name = &r->client;
		m.msg_namelen = r->client_len;
	}
	if (size) {
		m.msg_control = control.buf;
		m.msg_controllen = sizeof(control.buf);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(c), &size, sizeof(size));
	}
	if (sendmsg(r->fd[from == CLIENT ? SERVER : CLIENT], &m, 0) < 0 &&
	    errno != ECONNREFUSED)
		die("sendmsg()");
}

/* Forward a packet from a side */
static void relay_pass(struct relay *r, enum side from, const struct packet *p)
{
	relay_send(r, from, p->byte, p->len, 0);
}

/* Wait for a packet, for one of @events on @fd, or for @ms */
static enum side relay_next(struct relay *r, struct packet *p, int fd,
			    short events, int ms)
{
	struct pollfd fds[] = {
		{ fd, events, 0 },
		{ r->fd[CLIENT], POLLIN, 0 }, { r->fd[SERVER], POLLIN, 0 },
	};
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n;
	int side;

	if (poll(fds, 3, ms) <= 0 || fds[0].revents)
		return NOBODY;
	side = fds[CLIENT].revents ? CLIENT : SERVER;
	n = recvfrom(r->fd[side], p->byte, sizeof(p->byte), 0,
		     (struct sockaddr *)&from, &len);
	/* An ICMP error */
	p->len = n < 0 ? 0 : n;
	if (side == CLIENT && n >= 0) {
		r->client = from;
		r->client_len = len;
	}
	return side;
}

/* Forward all packets until @fd has one of @events; false after the time limit */
static bool relay_until(struct relay *r, int fd, short events)
{
	struct packet *p = malloc(sizeof(*p));
	enum side side;

	while ((side = relay_next(r, p, fd, events, WAIT_MS)))
		relay_pass(r, side, p);
	free(p);
	return poll_now(fd) & events;
}

/* Forward all packets until one of a type arrives from a side, and hold this one */
static bool relay_hold(struct relay *r, enum side from, u8 type,
		       struct packet *p)
{
	enum side side;

	while ((side = relay_next(r, p, -1, 0, WAIT_MS))) {
		if (side == from && p->len && (p->byte[0] & 0xf) == type)
			return true;
		relay_pass(r, side, p);
	}
	return false;
}

/* Forward all packets until both ends are silent */
static void relay_settle(struct relay *r)
{
	struct packet *p = malloc(sizeof(*p));
	enum side side;

	while ((side = relay_next(r, p, -1, 0, 50)))
		relay_pass(r, side, p);
	free(p);
}

/* Drop all packets that arrive within @ms */
static void relay_drain(struct relay *r, int ms)
{
	struct packet *p = malloc(sizeof(*p));

	while (relay_next(r, p, -1, 0, ms))
		;
	free(p);
}

static void start_connect(int fd, const struct sockaddr_dblp *to)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (connect_to(fd, to) == 0 || errno != EINPROGRESS)
		die("connect()");
}

FIXTURE(auth) {
	struct sockaddr_dblp addr;
	struct sockaddr_dblp via;
	struct relay relay;
	struct packet p;
	int listener;
	int client;
	int server;
};

FIXTURE_BY_FAMILY(auth);

FIXTURE_SETUP(auth)
{
	netns_new();
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 16, &self->addr);
	relay_new(&self->relay, &self->addr, &self->via);
	self->client = new_socket();
	self->server = -1;
	errno = 0;
}

FIXTURE_ENDS_BY_EXIT(auth);

/* Connect by the relay, with the same key at both ends */
#define CONNECT() do { \
	set_key(self->listener, OLD); \
	set_key(self->client, OLD); \
	start_connect(self->client, &self->via); \
	ASSERT_TRUE(relay_until(&self->relay, self->client, POLLOUT)); \
	self->server = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK); \
	ASSERT_LE(0, self->server); \
} while (0)

/* Transfer a message of @len bytes from @from to @to by the relay */
static bool one_message(struct relay *r, int from, int to, uint32_t len,
			uint64_t seed)
{
	unsigned char *out = malloc(len), *in = malloc(len + 1);
	bool good;

	pattern_fill(out, len, 0, seed, 0);
	good = send(from, out, len, 0) == (ssize_t)len &&
	       relay_until(r, to, POLLIN) &&
	       recv(to, in, len + 1, 0) == (ssize_t)len &&
	       !memcmp(in, out, len);
	free(out);
	free(in);
	return good;
}

#define CARRY(from, to, len, seed) \
	EXPECT_TRUE(one_message(&self->relay, self->from, self->to, len, seed))

/* Let the client send a message of 8 bytes, and hold its packet */
#define HOLD_DATA() do { \
	ASSERT_EQ(8, RESULT(send(self->client, "exactly", 8, 0))); \
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_DATA, &self->p)); \
} while (0)

TEST_F(auth, same_key)
{
	CONNECT();
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->listener).auth);
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->client).auth);
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->server).auth);
	CARRY(client, server, 1, 1);
	CARRY(server, client, 300000, 2);
	CARRY(client, server, 3000000, 3);
	EXPECT_EQ(0, mib("DropAuth"));
	EXPECT_EQ(0, mib("DropField"));
	/* The end of the connection has a tag, too */
	EXPECT_EQ(0, close(self->client));
	self->client = -1;
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_EQ(0, RESULT(recv(self->server, &self->p, 1, 0)));
	EXPECT_EQ(0, mib("DropAuth"));
}

/* Without a relay, the loopback interface has trains */
TEST_F(auth, same_key_in_trains)
{
	uint32_t len = 4000000, i;
	char *buf = noise_new(len), *in = malloc(len);
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_DEADLINE, .deadline = 60000000, .tag = 7,
	};

	set_key(self->listener, OLD);
	set_key(self->client, OLD);
	ASSERT_EQ(0, RESULT(connect_to(self->client, &self->addr)));
	self->server = accept(self->listener, NULL, NULL);
	for (i = 0; i < 4; i++) {
		/* With a META frame in each packet, and without */
		ASSERT_EQ(len, RESULT(sndinfo_send(self->client, buf, len, 0,
						   i & 1 ? &info : NULL)));
		ASSERT_EQ(len, RESULT(recv(self->server, in, len, MSG_WAITALL)));
		EXPECT_EQ(0, memcmp(in, buf, len));
	}
	EXPECT_EQ(0, mib("DropAuth"));
}

/* The handshake is refused; a NULL key means none */
static void refused(struct __test_metadata *_metadata, int listener, int client,
		    const struct sockaddr_dblp *to, const char *theirs,
		    const char *ours)
{
	uint64_t counted = mib("DropAuth"), began = now_ms();

	if (theirs)
		set_key(listener, theirs);
	if (ours)
		set_key(client, ours);
	EXPECT_ERR(EKEYREJECTED, connect_to(client, to));
	EXPECT_GT(5 * SECONDS, now_ms() - began);
	EXPECT_LT(counted, mib("DropAuth"));
	EXPECT_EQ(0, poll_now(listener) & POLLIN);
	EXPECT_LT(0, mib("ConnRefused"));
	EXPECT_EQ(2, socket_count());
}

TEST_F(auth, another_key)
{
	refused(_metadata, self->listener, self->client, &self->addr, NEW, OLD);
}

TEST_F(auth, client_without_key)
{
	refused(_metadata, self->listener, self->client, &self->addr, NEW, NULL);
}

TEST_F(auth, listener_without_key)
{
	refused(_metadata, self->listener, self->client, &self->addr, NULL, OLD);
	/* The same socket may try again without a key */
	ASSERT_EQ(0, RESULT(try_key(self->client, "", 0)));
	EXPECT_EQ(0, RESULT(connect_to(self->client, &self->addr)));
	EXPECT_EQ(0, get_info(self->client).auth);
}

/* A refusal has no tag, so it may be forged: wait for an answer of the server */
TEST_F(auth, refusal_is_not_believed_at_once)
{
	struct packet *rst = malloc(sizeof(*rst));
	uint32_t reason;
	u64 cid, scid;

	set_key(self->listener, OLD);
	set_key(self->client, OLD);
	start_connect(self->client, &self->via);
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_COOKIE_ECHO,
			       &self->p));
	cid = dblp_get_u64(self->p.byte + DBLP_HDR_LEN);
	scid = dblp_get_u64(self->p.byte + DBLP_HDR_LEN - 8);
	for (reason = DBLP_RST_UNKNOWN; reason < __DBLP_RST_MAX; reason++) {
		make_rst(rst, cid, reason, scid);
		relay_pass(&self->relay, SERVER, rst);
	}
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_TRUE(relay_until(&self->relay, self->client, POLLOUT));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->client).state);
	/* In a connection, neither a refusal nor ICMP is believed */
	make_rst(rst, cid, DBLP_RST_CLOSED, scid);
	relay_pass(&self->relay, SERVER, rst);
	EXPECT_SOON(1, mib("DropAuth"));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->client).state);
}

TEST_F(auth, no_socket_at_the_port)
{
	set_key(self->client, OLD);
	close(self->listener);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->client, &self->addr));
	self->listener = -1;
}

/* Send a packet with one bit of each byte changed: each is dropped */
static bool flips_dropped(struct relay *r, enum side from, struct packet *p)
{
	uint64_t want = drops() + p->len;
	u32 i;

	for (i = 0; i < p->len; i++) {
		p->byte[i] ^= 1 << i % 8;
		relay_pass(r, from, p);
		p->byte[i] ^= 1 << i % 8;
	}
	return SOON(want, drops()) == want;
}

/* Compare all fields that only the peer can change; timers may change the rest */
static bool same_but_for_timers(const struct dblp_info *a,
				const struct dblp_info *b)
{
	return a->state == b->state && a->auth == b->auth &&
	       a->peer_budget_cap == b->peer_budget_cap &&
	       a->peer_msg_max == b->peer_msg_max &&
	       a->srtt_us == b->srtt_us && a->rttvar_us == b->rttvar_us &&
	       a->min_rtt_us == b->min_rtt_us &&
	       a->bytes_delivered == b->bytes_delivered &&
	       a->bytes_received == b->bytes_received &&
	       a->msgs_sent == b->msgs_sent &&
	       a->msgs_received == b->msgs_received &&
	       a->pkts_received == b->pkts_received &&
	       a->spurious == b->spurious;
}

/* As flips_dropped(), to connection @to, which must not change */
static void flips_do_nothing(struct __test_metadata *_metadata,
			     struct relay *r, enum side from, struct packet *p,
			     int to)
{
	struct dblp_info was = get_info(to), is;
	uint64_t auth = mib("DropAuth");

	EXPECT_TRUE(flips_dropped(r, from, p));
	/* Behind the header, the tag is checked first */
	EXPECT_LE(auth + p->len - DBLP_HDR_LEN, mib("DropAuth"));
	is = get_info(to);
	EXPECT_TRUE(same_but_for_timers(&was, &is));
}

TEST_F(auth, any_bit_of_a_data_packet)
{
	struct dblp_info info;
	uint64_t want;
	char byte;
	u32 len;

	CONNECT();
	HOLD_DATA();
	relay_drain(&self->relay, 1);
	info = get_info(self->server);
	flips_do_nothing(_metadata, &self->relay, CLIENT, &self->p, self->server);
	/* A truncated packet is dropped, too */
	len = self->p.len;
	want = drops() + len - 1;
	while (--self->p.len)
		relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_SOON(want, drops());
	EXPECT_EQ(info.pkts_received, get_info(self->server).pkts_received);
	EXPECT_ERR(EAGAIN, recv(self->server, &byte, 1, MSG_DONTWAIT));
	/* The message arrives by retransmission */
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_EQ(8, RESULT(recv(self->server, &self->p, 9, 0)));
	EXPECT_EQ(0, strcmp("exactly", (char *)&self->p));
}

/* Changed ACKs have no effect; the original one has */
TEST_F(auth, any_bit_of_an_acknowledgment)
{
	uint64_t had;

	CONNECT();
	relay_settle(&self->relay);
	had = get_info(self->client).bytes_delivered;
	ASSERT_EQ(8, RESULT(send(self->client, "exactly", 8, 0)));
	ASSERT_TRUE(relay_hold(&self->relay, SERVER, DBLP_PKT_ACK, &self->p));
	flips_do_nothing(_metadata, &self->relay, SERVER, &self->p, self->client);
	EXPECT_EQ(had, get_info(self->client).bytes_delivered);
	relay_pass(&self->relay, SERVER, &self->p);
	EXPECT_SOON(had + 8, get_info(self->client).bytes_delivered);
}

TEST_F(auth, any_bit_of_a_probe)
{
	static const char text[2000];
	uint64_t had;
	enum side side;

	CONNECT();
	relay_settle(&self->relay);
	had = get_info(self->server).pkts_received;
	ASSERT_EQ(2000, RESULT(send(self->client, text, 2000, 0)));
	/* Packets vanish, so that the sender probes the MTU */
	do {
		side = relay_next(&self->relay, &self->p, -1, 0, WAIT_MS);
		ASSERT_NE(0, side);
	} while (side != CLIENT || (self->p.byte[0] & 0xf) != DBLP_PKT_PROBE);
	flips_do_nothing(_metadata, &self->relay, CLIENT, &self->p, self->server);
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_SOON(had + 1, get_info(self->server).pkts_received);
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
}

TEST_F(auth, any_bit_of_the_end)
{
	char byte;

	CONNECT();
	relay_settle(&self->relay);
	ASSERT_EQ(0, RESULT(shutdown(self->client, SHUT_WR)));
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_CTRL, &self->p));
	flips_do_nothing(_metadata, &self->relay, CLIENT, &self->p, self->server);
	EXPECT_ERR(EAGAIN, recv(self->server, &byte, 1, 0));
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_EQ(0, RESULT(recv(self->server, &byte, 1, 0)));
}

TEST_F(auth, any_bit_of_a_reset)
{
	char byte;

	CONNECT();
	relay_settle(&self->relay);
	set_linger(self->client, 1, 0);
	EXPECT_EQ(0, close(self->client));
	self->client = -1;
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_RST, &self->p));
	flips_do_nothing(_metadata, &self->relay, CLIENT, &self->p, self->server);
	EXPECT_ERR(EAGAIN, recv(self->server, &byte, 1, 0));
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_ERR(ECONNRESET, recv(self->server, &byte, 1, 0));
}

/*
 * Pages spliced into a UDP socket reach another local socket without a copy (Linux 6.1
 * does copy them): a relay can still write to them after the tag was checked.
 */
TEST_F(auth, pages_that_change_after_the_check)
{
	static struct peer relay;
	unsigned char out[1000], in[1001];
	u8 *page = new_pages(4096);

	CONNECT();
	pattern_fill(out, sizeof(out), 0, 1, 0);
	ASSERT_EQ(1000, RESULT(send(self->client, out, 1000, 0)));
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_DATA, &self->p));
	relay.udp = self->relay.fd[SERVER];
	splice_train(&relay, page, &self->p, 1);
	ASSERT_TRUE(wait_for(self->server, POLLIN, WAIT_MS));
	memset(page, 0xff, self->p.len);
	ASSERT_EQ(1000, RESULT(recv(self->server, in, sizeof(in), 0)));
	EXPECT_EQ(0, memcmp(in, out, 1000));
	EXPECT_EQ(0, mib("DropAuth"));
}

TEST_F(auth, any_bit_of_the_handshake)
{
	set_key(self->listener, OLD);
	set_key(self->client, OLD);
	start_connect(self->client, &self->via);
	ASSERT_TRUE(relay_hold(&self->relay, CLIENT, DBLP_PKT_COOKIE_ECHO,
			       &self->p));
	ASSERT_EQ(DBLP_ECHO_LEN + DBLP_AUTH_LEN, self->p.len);
	EXPECT_TRUE(flips_dropped(&self->relay, CLIENT, &self->p));
	EXPECT_EQ(0, poll_now(self->listener) & POLLIN);
	relay_pass(&self->relay, CLIENT, &self->p);
	ASSERT_TRUE(relay_hold(&self->relay, SERVER, DBLP_PKT_COOKIE_ACK,
			       &self->p));
	EXPECT_TRUE(flips_dropped(&self->relay, SERVER, &self->p));
	EXPECT_EQ(DBLP_STATE_COOKIE_SENT, get_info(self->client).state);
	relay_pass(&self->relay, SERVER, &self->p);
	EXPECT_SOON(DBLP_STATE_ESTABLISHED, get_info(self->client).state);
}

/* Replayed packets have no effect, in either direction */
TEST_F(auth, replayed_packets_have_no_effect)
{
	static const u8 types[] = { DBLP_PKT_COOKIE_ECHO, DBLP_PKT_DATA };
	struct packet *p = calloc(8, sizeof(*p));
	struct dblp_info info;
	enum side side;
	u32 n = 0, i;
	char byte[9];
	uint64_t dup;

	CONNECT();
	ASSERT_EQ(8, RESULT(send(self->client, "exactly", 8, 0)));
	while (n < 6) {
		side = relay_next(&self->relay, &p[n], self->server, POLLIN,
				  WAIT_MS);
		if (!side)
			break;
		relay_pass(&self->relay, side, &p[n]);
		n += side == CLIENT;
	}
	EXPECT_EQ(8, RESULT(recv(self->server, byte, 9, 0)));
	ASSERT_TRUE(relay_hold(&self->relay, SERVER, DBLP_PKT_ACK, &self->p));
	relay_pass(&self->relay, SERVER, &self->p);
	relay_drain(&self->relay, 1);
	EXPECT_LT(0, n);
	EXPECT_EQ(types[1], p[n - 1].byte[0] & 0xf);

	dup = mib("DropDuplicate");
	info = get_info(self->server);
	for (i = 0; i < ROUNDS; i++)
		relay_pass(&self->relay, CLIENT, &p[n - 1]);
	EXPECT_SOON(dup + ROUNDS, mib("DropDuplicate"));
	for (i = 0; i < ROUNDS; i++)
		relay_pass(&self->relay, SERVER, &self->p);
	EXPECT_SOON(dup + 2 * ROUNDS, mib("DropDuplicate"));
	EXPECT_EQ(info.pkts_received, get_info(self->server).pkts_received);
	EXPECT_ERR(EAGAIN, recv(self->server, byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(0, mib("DropAuth"));

	/* Reflected, with the connection ID of the other direction */
	memcpy(p[n - 1].byte + 8, self->p.byte + 8, 8);
	relay_pass(&self->relay, SERVER, &p[n - 1]);
	EXPECT_SOON(1, mib("DropAuth"));
}

#define LATE	12

/* Late packets in any order count once each */
TEST_F(auth, late_acknowledgments)
{
	struct packet *acks = calloc(LATE, sizeof(*acks));
	uint64_t before;
	int i, half;

	CONNECT();
	relay_settle(&self->relay);
	for (i = 0; i < LATE; i++) {
		ASSERT_EQ(1, RESULT(send(self->client, "x", 1, 0)));
		ASSERT_TRUE(relay_hold(&self->relay, SERVER, DBLP_PKT_ACK,
				       &acks[i]));
	}
	before = mib("DropDuplicate");
	for (half = 0; half < 2; half++)
		for (i = half; i < LATE; i += 2)
			relay_pass(&self->relay, SERVER, &acks[i]);
	relay_drain(&self->relay, 100);
	EXPECT_EQ(before, mib("DropDuplicate"));
	for (i = 0; i < LATE; i++)
		relay_pass(&self->relay, SERVER, &acks[i]);
	EXPECT_SOON(before + LATE, mib("DropDuplicate"));
	EXPECT_EQ(0, mib("DropAuth"));
}

/* A changed packet of a train does not affect the others */
TEST_F(auth, one_of_a_train)
{
	uint32_t len = 20000, bad, n = 0, at = 0, size = 0, last = 0;
	struct packet *all = calloc(1, sizeof(*all));
	char *buf = noise_new(len), *in = malloc(len);
	struct dblp_info info;
	uint64_t auth;

	CONNECT();
	/* After the first ACKs, which open the window */
	ASSERT_TRUE(one_message(&self->relay, self->client, self->server,
				len, 1));
	relay_settle(&self->relay);
	ASSERT_EQ(len, RESULT(send(self->client, buf, len, 0)));
	while (relay_next(&self->relay, &self->p, -1, 0, n > 1 ? 5 : WAIT_MS)) {
		if ((self->p.byte[0] & 0xf) != DBLP_PKT_DATA ||
		    (n > 1 && self->p.len != size))
			continue;
		/* Skip a packet with other frames */
		if (self->p.len != size)
			n = at = 0;
		if (n == 20)
			continue;
		size = self->p.len;
		memcpy(all->byte + at, self->p.byte, size);
		at += size;
		n++;
	}
	ASSERT_LE(2, n);
	info = get_info(self->server);
	for (bad = 0; bad < n; bad++) {
		auth = mib("DropAuth");
		all->byte[bad * size + size - 1] ^= 1;
		relay_send(&self->relay, CLIENT, all->byte, at, size);
		all->byte[bad * size + size - 1] ^= 1;
		EXPECT_SOON(auth + 1, mib("DropAuth"));
		if (!bad)
			EXPECT_EQ(info.pkts_received + n - 1,
				  get_info(self->server).pkts_received);
		last = mib("DropDuplicate");
	}
	EXPECT_EQ(info.pkts_received + n,
		  get_info(self->server).pkts_received);
	EXPECT_LT(0, last);
	EXPECT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_EQ(len, RESULT(recv(self->server, in, len, 0)));
	EXPECT_EQ(0, memcmp(in, buf, len));
}

TEST_F(auth, unkeyed_packets_of_a_keyed_connection)
{
	struct dblp_frame f = { .type = DBLP_FRAME_PING };
	struct peer peer = { .scid = 0 };
	uint64_t auth;

	CONNECT();
	HOLD_DATA();
	peer.scid = dblp_get_u64(self->p.byte + 8);
	peer.pn = 1000;
	auth = mib("DropAuth");
	make_ctrl(&self->p, &peer, &f);
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_SOON(auth + 1, mib("DropAuth"));
	make_packet(&self->p, DBLP_PKT_PROBE, peer.pn++, peer.scid);
	put_zero(&self->p, 100);
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_SOON(auth + 2, mib("DropAuth"));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->server).state);
}

/* The reverse */
TEST_F(auth, keyed_packet_of_an_unkeyed_connection)
{
	static const u8 tag[DBLP_TAG_LEN];
	struct dblp_frame f = { .type = DBLP_FRAME_AUTH, .auth.tag = tag };
	struct peer peer = { .cid = 0 };

	self->server = peer_join(&peer, &self->addr, self->listener);
	ASSERT_LE(0, self->server);
	make_ctrl(&self->p, &peer, &f);
	send_packet(&peer, &self->p);
	EXPECT_SOON(1, mib("DropAuth"));
	make_rst(&self->p, peer.scid, DBLP_RST_CLOSED, peer.cid);
	self->p.byte[1] = DBLP_AUTH_LEN / 4;
	put_zero(&self->p, DBLP_AUTH_LEN);
	send_packet(&peer, &self->p);
	EXPECT_SOON(2, mib("DropAuth"));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->server).state);
	EXPECT_TRUE(peer_sync(&peer));
}

TEST_F(auth, option)
{
	struct dblp_auth_key key = { .key = OLD };
	socklen_t len = sizeof(key);
	char text[66] = "";
	unsigned int i;

	for (i = 1; i < 66; i++) {
		text[i - 1] = 'k';
		if (i <= DBLP_AUTH_KEY_MAX)
			EXPECT_EQ(i < DBLP_AUTH_KEY_MIN ? -EINVAL : 0,
				  RESULT(try_key(self->client, text, 0)));
	}
	EXPECT_ERR(EINVAL, try_key(self->client, OLD, 2));
	key.length = 65;
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_AUTH_KEY,
				      &key, sizeof(key)));
	/* Nonzero bytes after the key */
	key.length = 16;
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_AUTH_KEY,
				      &key, sizeof(key)));
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_AUTH_KEY,
				      &key, sizeof(key) - 1));
	EXPECT_ERR(EFAULT, setsockopt(self->client, SOL_DBLP, DBLP_AUTH_KEY,
				      NULL, sizeof(key)));
	/* The key cannot be read */
	EXPECT_ERR(ENOPROTOOPT, getsockopt(self->client, SOL_DBLP,
					   DBLP_AUTH_KEY, &key, &len));
	EXPECT_EQ(DBLP_AUTH_ON | DBLP_AUTH_OLD, get_info(self->client).auth);
	EXPECT_EQ(0, RESULT(try_key(self->client, OLD, DBLP_AUTH_ONLY)));
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->client).auth);
	EXPECT_EQ(0, RESULT(try_key(self->client, "", 0)));
	EXPECT_EQ(0, get_info(self->client).auth);
	/* A key cannot be added to a connection without one */
	ASSERT_EQ(0, RESULT(connect_to(self->client, &self->addr)));
	EXPECT_ERR(EISCONN, try_key(self->client, OLD, 0));
	EXPECT_EQ(0, RESULT(try_key(self->client, "", 0)));
}

/* Messages from one thread to another, while keys change */
struct stream {
	int		fd;
	volatile unsigned int n;
	bool		failed;
	volatile bool	stop;
};

static void *stream_out(void *arg)
{
	unsigned char *buf = malloc(100000);
	struct stream *s = arg;

	while (!s->stop) {
		pattern_fill(buf, 100000, 0, 1, s->n);
		if (send(s->fd, buf, 100000, 0) != 100000) {
			s->failed = true;
			break;
		}
		s->n++;
	}
	shutdown(s->fd, SHUT_WR);
	free(buf);
	return NULL;
}

static void *stream_in(void *arg)
{
	unsigned char *buf = malloc(100000);
	struct stream *s = arg;
	ssize_t n;

	while ((n = recv(s->fd, buf, 100000, 0)) == 100000) {
		if (pattern_check(buf, 100000, 0, 1, s->n) >= 0) {
			s->failed = true;
			break;
		}
		s->n++;
	}
	s->failed |= n != 0;
	free(buf);
	return NULL;
}

/* Wait for a state of the socket's keys, while messages arrive */
static bool keys_become(int fd, uint32_t state, const struct stream *in)
{
	uint64_t until = now_ms() + WAIT_MS;
	unsigned int n = in->n, was = n;

	while (get_info(fd).auth != state) {
		if (now_ms() > until || in->n - was > ROUNDS)
			return false;
		if (in->n != n)
			until = now_ms() + WAIT_MS;
		n = in->n;
		sleep_ms(5);
	}
	return true;
}

TEST_F(auth, new_key_under_traffic)
{
	const uint32_t both = DBLP_AUTH_ON | DBLP_AUTH_OLD;
	struct stream out = { 0 }, in = { 0 };
	pthread_t sender, receiver;
	int late = new_socket();

	set_key(self->listener, OLD);
	set_key(self->client, OLD);
	set_key(late, OLD);
	ASSERT_EQ(0, RESULT(connect_to(self->client, &self->addr)));
	self->server = accept(self->listener, NULL, NULL);
	out.fd = self->client;
	in.fd = self->server;
	ASSERT_EQ(0, pthread_create(&sender, NULL, stream_out, &out));
	ASSERT_EQ(0, pthread_create(&receiver, NULL, stream_in, &in));

	/* An end with the new key waits for the other end without limit */
	ASSERT_EQ(0, RESULT(try_key(self->client, NEW, 0)));
	EXPECT_ERR(EBUSY, try_key(self->client, "yet another key ...", 0));
	sleep_ms(100);
	EXPECT_EQ(both | DBLP_AUTH_SENDS_OLD, get_info(self->client).auth);
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->server).auth);
	/* Change back and forth. A busy machine may pause for three probe timeouts. */
	ASSERT_EQ(0, RESULT(try_key(self->client, OLD, 0)));
	EXPECT_EQ(both, get_info(self->client).auth |
			(virtual_time() ? 0 : DBLP_AUTH_OLD));
	ASSERT_EQ(0, RESULT(try_key(self->client, NEW, 0)));
	/* Set the key of the other end. The old key soon becomes invalid, provided that
	 * messages arrive
	 */
	ASSERT_EQ(0, RESULT(try_key(self->server, NEW, 0)));
	EXPECT_TRUE(keys_become(self->client, DBLP_AUTH_ON, &in));
	EXPECT_TRUE(keys_become(self->server, DBLP_AUTH_ON, &in));

	/* Clients may use the old key until it is removed from the listener */
	ASSERT_EQ(0, RESULT(try_key(self->listener, NEW, 0)));
	EXPECT_EQ(0, RESULT(connect_to(late, &self->addr)));
	EXPECT_EQ(0, close(late));
	/* On a busy machine, packets may be later than three probe timeouts */
	if (virtual_time())
		EXPECT_EQ(0, mib("DropAuth"));
	ASSERT_EQ(0, RESULT(try_key(self->listener, NEW, DBLP_AUTH_ONLY)));
	late = new_socket();
	set_key(late, OLD);
	EXPECT_ERR(EKEYREJECTED, connect_to(late, &self->addr));
	set_key(late, NEW);
	EXPECT_EQ(0, RESULT(connect_to(late, &self->addr)));

	out.stop = true;
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	EXPECT_FALSE(out.failed);
	EXPECT_FALSE(in.failed);
	EXPECT_LT(0, in.n);
	EXPECT_EQ(out.n, in.n);
}

/* A connection with the old key changes to the new one */
TEST_F(auth, new_key_at_the_listener_first)
{
	set_key(self->listener, OLD);
	set_key(self->listener, NEW);
	set_key(self->client, OLD);
	start_connect(self->client, &self->via);
	ASSERT_TRUE(relay_until(&self->relay, self->client, POLLOUT));
	self->server = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK);
	ASSERT_LE(0, self->server);
	EXPECT_EQ(DBLP_AUTH_ON | DBLP_AUTH_OLD | DBLP_AUTH_SENDS_OLD,
		  get_info(self->server).auth);
	CARRY(client, server, 9, 1);
	set_key(self->client, NEW);
	CARRY(client, server, 9, 2);
	CARRY(server, client, 9, 3);
	CARRY(client, server, 9, 4);
	EXPECT_EQ(0, get_info(self->server).auth & DBLP_AUTH_SENDS_OLD);
	EXPECT_EQ(0, get_info(self->client).auth & DBLP_AUTH_SENDS_OLD);
	EXPECT_EQ(0, mib("DropAuth"));
	/* Now at the latest */
	EXPECT_EQ(0, RESULT(try_key(self->server, NEW, DBLP_AUTH_ONLY)));
	EXPECT_EQ(0, RESULT(try_key(self->client, NEW, DBLP_AUTH_ONLY)));
	CARRY(client, server, 9, 5);
	EXPECT_EQ(0, mib("DropAuth"));
}

/* A packet with the old key that was held until the key expired is dropped */
TEST_F(auth, an_old_key_expires)
{
	struct dblp_info info;
	unsigned int i;
	uint64_t auth;

	CONNECT();
	HOLD_DATA();
	ASSERT_TRUE(relay_until(&self->relay, self->server, POLLIN));
	EXPECT_EQ(8, RESULT(recv(self->server, &info, 9, 0)));
	set_key(self->server, NEW);
	set_key(self->client, NEW);
	for (i = 0; i < ROUNDS &&
	     get_info(self->server).auth != DBLP_AUTH_ON; i++) {
		CARRY(client, server, 9, i);
		CARRY(server, client, 9, i);
		sleep_ms(10);
	}
	EXPECT_EQ(DBLP_AUTH_ON, get_info(self->server).auth);
	/* The limit is below 2 s, because probe timeouts are some 10 ms here */
	TH_LOG("the old key is gone after %u rounds", i);
	EXPECT_GT(ROUNDS / 2, i);
	relay_settle(&self->relay);
	EXPECT_EQ(0, mib("DropAuth"));
	auth = mib("DropAuth");
	relay_pass(&self->relay, CLIENT, &self->p);
	EXPECT_SOON(auth + 1, mib("DropAuth"));
}

TEST_HARNESS_MAIN
