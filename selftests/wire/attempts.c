// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attempts to connect. A failed attempt leaves nothing behind: for each way to fail, the
 * socket is compared with an unused one, and its next attempt succeeds, with and without
 * a key. A successful attempt has measured the round-trip time.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"
#include "lib/nltest.h"

#define KEY	"the key of both ends"
#define OTHER	"the key of someone else"
#define PORTS	4
#define OPTIONS	128
/* User timeout, long enough for a busy machine; no test waits for it */
#define TIMEOUT_MS	30000

/* All readable state of a socket, a line for each value */
struct said {
	size_t	len;
	char	text[1 << 16];
};

static void say(struct said *s, const char *what, int number, long result,
		const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	if (s->len + 2 * len + 100 > sizeof(s->text))
		die("a socket says too much");
	s->len += sprintf(s->text + s->len, "%s %d: %ld ", what, number, result);
	for (; len; len--)
		s->len += sprintf(s->text + s->len, "%02x", *p++);
	s->len += sprintf(s->text + s->len, "\n");
}

static void say_options(struct said *s, int fd, int level)
{
	unsigned char buf[1024];
	socklen_t len;
	long result;
	int name;

	for (name = 0; name < OPTIONS; name++) {
		/* Skip the cookie of the socket and the CPU of its last packet */
		if (level == SOL_SOCKET &&
		    (name == SO_COOKIE || name == SO_INCOMING_CPU))
			continue;
		len = sizeof(buf);
		memset(buf, 0, sizeof(buf));
		result = RESULT(getsockopt(fd, level, name, buf, &len));
		/* Clear the number of the socket, which is unique */
		if (level == SOL_DBLP && name == DBLP_INFO)
			((struct dblp_info *)buf)->id = 0;
		say(s, level == SOL_DBLP ? "SOL_DBLP" : "SOL_SOCKET", name,
		    result, buf, result ? 0 : len);
	}
}

static void say_attributes(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;
	int type;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		type = mnl_attr_get_type(attr);
		if (type == DBLP_A_SOCKET_ID || type == DBLP_A_SOCKET_INODE)
			continue;
		say(arg, "attribute", type, 0, mnl_attr_get_payload(attr),
		    mnl_attr_get_payload_len(attr));
	}
}

static void say_calls(struct said *s, int fd)
{
	static const int requests[] = { FIONREAD, TIOCOUTQ, 0x894b };
	struct sockaddr_dblp a = { 0 };
	socklen_t len = sizeof(a);
	unsigned int i;
	char byte;
	int n;

	local_name(fd, &a);
	say(s, "getsockname()", 0, 0, &a, sizeof(a));
	say(s, "getpeername()", 0,
	    RESULT(getpeername(fd, (struct sockaddr *)&a, &len)), NULL, 0);
	say(s, "poll()", poll_now(fd), 0, NULL, 0);
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		n = -1;
		say(s, "ioctl()", requests[i],
		    RESULT(ioctl(fd, requests[i], &n)), &n, sizeof(n));
	}
	say(s, "recv()", 0, RESULT(recv(fd, &byte, 1, MSG_DONTWAIT)), NULL, 0);
	say(s, "recv() of an error", 0,
	    RESULT(recv(fd, &byte, 1, MSG_DONTWAIT | MSG_ERRQUEUE)), NULL, 0);
	say(s, "send()", 0,
	    RESULT(send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL)), NULL, 0);
	say(s, "accept()", 0, RESULT(accept(fd, NULL, NULL)), NULL, 0);
	errno = 0;
}

static struct said *all_said(int fd)
{
	struct said *s = calloc(1, sizeof(*s));
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_GET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, get_info(fd).id);
	result_each(nlh, say_attributes, s);
	say_options(s, fd, SOL_SOCKET);
	say_options(s, fd, SOL_DBLP);
	say_calls(s, fd);
	return s;
}

/* Do both sockets have the same state? Prints differences */
static bool all_alike(int fd, int fresh)
{
	struct said *a = all_said(fd), *b = all_said(fresh);
	char *p = a->text, *q = b->text, *x, *y;
	bool alike = a->len == b->len && !memcmp(a->text, b->text, a->len);

	while (!alike && (x = strsep(&p, "\n")) && (y = strsep(&q, "\n")))
		if (strcmp(x, y))
			printf("# - %s\n# + %s\n", y, x);
	fflush(stdout);
	free(a);
	free(b);
	return alike;
}

/* Open UDP ports of this namespace, as /proc has them */
static unsigned int udp_ports(void)
{
	static const char * const files[] = { "/proc/net/udp", "/proc/net/udp6" };
	unsigned int n = 0, i;
	char line[512];
	FILE *f;

	for (i = 0; i < 2; i++) {
		f = fopen(files[i], "r");
		while (f && fgets(line, sizeof(line), f))
			n++;
		if (f)
			fclose(f);
	}
	return n;
}

/* Wait for the number of ports, because a kernel thread closes them */
static unsigned int udp_ports_soon(unsigned int want)
{
	uint64_t until = now_ms() + WAIT_MS;
	unsigned int n;

	while ((n = udp_ports()) > want && now_ms() < until)
		sleep_ms(1);
	return n;
}

FIXTURE(attempts) {
	PLAYED_CONNECTION;
	int fresh;
};

FIXTURE_VARIANT(attempts) {
	const char *address;
	bool key;
};

FIXTURE_VARIANT_ADD(attempts, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(attempts, ipv6) { .address = "::1" };
FIXTURE_VARIANT_ADD(attempts, ipv4_key) { .address = "127.0.0.1", .key = true };
FIXTURE_VARIANT_ADD(attempts, ipv6_key) { .address = "::1", .key = true };

static int one_socket(bool key)
{
	int fd = new_socket();

	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (key)
		set_key(fd, KEY);
	return fd;
}

FIXTURE_SETUP(attempts)
{
	netns_new();
	open_netlink();
	self->listener = one_socket(variant->key);
	set_u32(self->listener, DBLP_SPRAY, PORTS);
	listen_at(self->listener, variant->address, 8, &self->addr);
	self->fd = one_socket(variant->key);
	self->fresh = one_socket(variant->key);
	self->peer.udp = -1;
	errno = 0;
}

FIXTURE_ENDS_BY_EXIT(attempts);

static bool one_message(int from, int to)
{
	char byte = 0;

	return send(from, "x", 1, 0) == 1 && wait_for(to, POLLIN, WAIT_MS) &&
	       recv(to, &byte, 1, 0) == 1 && byte == 'x';
}

/* The next attempt of @fd succeeds, and a message arrives */
#define EXPECT_SUCCESS(fd) do { \
	int __server; \
	\
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &self->addr)); \
	EXPECT_TRUE(wait_for(fd, POLLOUT, WAIT_MS)); \
	EXPECT_EQ(0, get_int(fd, SO_ERROR)); \
	EXPECT_EQ(0, RESULT(connect_to(fd, &self->addr))); \
	ASSERT_TRUE(wait_for(self->listener, POLLIN, WAIT_MS)); \
	__server = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK); \
	ASSERT_LE(0, __server); \
	EXPECT_TRUE(one_message(fd, __server)); \
	EXPECT_TRUE(one_message(__server, fd)); \
	close(__server); \
} while (0)

/*
 * connect() has failed with @error: the socket is like an unused one. Options that cannot
 * be changed in a connection can be changed.
 */
#define EXPECT_NOTHING_LEFT(error, ports) do { \
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS)); \
	EXPECT_ERR(error, connect_to(self->fd, &self->addr)); \
	EXPECT_TRUE(all_alike(self->fd, self->fresh)); \
	EXPECT_EQ(ports, udp_ports_soon(ports)); \
	set_u32(self->fd, DBLP_PLACEMENT, 1); \
	EXPECT_EQ(0, RESULT(try_u32(self->fd, DBLP_PLACEMENT, 0))); \
	EXPECT_EQ(0, RESULT(try_u32(self->fd, DBLP_SPRAY, 2))); \
	set_u32(self->fd, DBLP_USER_TIMEOUT, TIMEOUT_MS); \
	EXPECT_SUCCESS(self->fd); \
} while (0)

/* Start to connect to @to */
#define BEGIN(to) EXPECT_ERR(EINPROGRESS, connect_to(self->fd, to))

TEST_F(attempts, no_socket_at_the_port)
{
	struct sockaddr_dblp a = self->addr;
	unsigned int ports = udp_ports();

	a.sdblp_port = htons(9);
	BEGIN(&a);
	EXPECT_NOTHING_LEFT(ECONNREFUSED, ports);
}

TEST_F(attempts, no_listener_at_the_port)
{
	struct sockaddr_dblp a = self->addr;
	int other = one_socket(false);
	unsigned int ports;

	a.sdblp_port = 0;
	ASSERT_EQ(0, bind_to(other, &a));
	local_name(other, &a);
	ports = udp_ports();
	BEGIN(&a);
	EXPECT_NOTHING_LEFT(ECONNREFUSED, ports);
}

/* A blocking call fails at once */
TEST_F(attempts, no_socket_at_the_port_in_a_blocking_call)
{
	struct sockaddr_dblp a = self->addr;

	a.sdblp_port = htons(9);
	fcntl(self->fd, F_SETFL, 0);
	EXPECT_ERR(ECONNREFUSED, connect_to(self->fd, &a));
	fcntl(self->fd, F_SETFL, O_NONBLOCK);
	EXPECT_TRUE(all_alike(self->fd, self->fresh));
	EXPECT_SUCCESS(self->fd);
}

TEST_F(attempts, no_route)
{
	bool v4 = variant->address[0] != ':';
	unsigned int ports = udp_ports();
	struct sockaddr_dblp a;

	run("ip %s route add unreachable %s", v4 ? "" : "-6",
	    v4 ? "10.8.0.1/32" : "fd08::1/128");
	addr_parse(&a, v4 ? "10.8.0.1" : "fd08::1", 5000);
	EXPECT_ERR(EHOSTUNREACH, connect_to(self->fd, &a));
	EXPECT_TRUE(all_alike(self->fd, self->fresh));
	EXPECT_EQ(ports, udp_ports_soon(ports));
	EXPECT_SUCCESS(self->fd);
}

/* Start to connect to a scripted server, which gets an INIT */
#define BEGIN_SCRIPTED() do { \
	struct sockaddr_dblp __a; \
	\
	peer_listen(&self->peer, variant->address[0] == ':' ? "::1" : \
		    "::ffff:127.0.0.1", &__a); \
	ports = udp_ports(); \
	BEGIN(&__a); \
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_INIT, WAIT_MS)); \
	self->peer.scid = dblp_get_u64(self->peer.last[DBLP_PKT_INIT].byte + \
				       DBLP_HDR_LEN); \
} while (0)

TEST_F(attempts, no_answer)
{
	unsigned int ports;

	set_u32(self->fd, DBLP_USER_TIMEOUT, 300);
	set_u32(self->fresh, DBLP_USER_TIMEOUT, 300);
	BEGIN_SCRIPTED();
	EXPECT_NOTHING_LEFT(ETIMEDOUT, ports);
}

static void send_cookie(struct peer *peer, struct packet *p)
{
	peer->cookie = (struct dblp_cookie){
		.scid = peer->cid, .features = DBLP_FEATURES, .mac = 42,
	};
	make_init_ack(p, peer, &peer->cookie);
	send_packet(peer, p);
}

TEST_F(attempts, no_answer_to_the_cookie)
{
	unsigned int ports;

	set_u32(self->fd, DBLP_USER_TIMEOUT, 300);
	set_u32(self->fresh, DBLP_USER_TIMEOUT, 300);
	BEGIN_SCRIPTED();
	send_cookie(&self->peer, &self->p);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	EXPECT_NOTHING_LEFT(ETIMEDOUT, ports);
}

TEST_F(attempts, a_refusal_after_the_cookie)
{
	unsigned int ports;

	BEGIN_SCRIPTED();
	send_cookie(&self->peer, &self->p);
	EXPECT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_REFUSED, self->peer.cid);
	EXPECT_NOTHING_LEFT(ECONNREFUSED, ports);
}

TEST_F(attempts, no_version_in_common)
{
	unsigned int ports;

	BEGIN_SCRIPTED();
	make_packet(&self->p, DBLP_PKT_VERSION, 0, 0);
	put_u64_be(&self->p, self->peer.scid);
	put_word(&self->p, ANOTHER_VERSION);
	send_packet(&self->peer, &self->p);
	EXPECT_NOTHING_LEFT(EPROTONOSUPPORT, ports);
}

TEST_F(attempts, too_many_ports)
{
	struct sockaddr_dblp a;
	int other = one_socket(variant->key);
	unsigned int ports;

	listen_at(other, variant->address, 1, &a);
	set_u32(self->fd, DBLP_SPRAY, PORTS);
	set_u32(self->fresh, DBLP_SPRAY, PORTS);
	ports = udp_ports();
	BEGIN(&a);
	EXPECT_NOTHING_LEFT(EMLINK, ports);
}

TEST_F(attempts, another_key)
{
	struct sockaddr_dblp a;
	int other = one_socket(false);
	unsigned int ports;

	/* With two different keys the error is the same */
	if (variant->key) {
		set_key(self->fd, OTHER);
		set_key(self->fresh, OTHER);
		set_key(self->fd, KEY);
		set_key(self->fresh, KEY);
		EXPECT_EQ(DBLP_AUTH_ON | DBLP_AUTH_OLD, get_info(self->fd).auth);
	}
	set_key(other, "the key of nobody");
	listen_at(other, variant->address, 1, &a);
	ports = udp_ports();
	BEGIN(&a);
	EXPECT_NOTHING_LEFT(EKEYREJECTED, ports);
	EXPECT_EQ(variant->key ? DBLP_AUTH_ON : 0, get_info(self->fd).auth);
}

/* After a refusal the socket can listen; connect() then fails */
TEST_F(attempts, a_refused_socket_can_listen)
{
	struct sockaddr_dblp a = self->addr;
	int other = one_socket(variant->key);

	a.sdblp_port = htons(9);
	BEGIN(&a);
	EXPECT_TRUE(wait_for(self->fd, POLLHUP, WAIT_MS));
	EXPECT_EQ(ECONNREFUSED, get_int(self->fd, SO_ERROR));
	a.sdblp_port = 0;
	EXPECT_EQ(0, RESULT(bind_to(self->fd, &a)));
	EXPECT_EQ(0, RESULT(listen(self->fd, 8)));
	EXPECT_ERR(EISCONN, connect_to(self->fd, &self->addr));
	local_name(self->fd, &self->addr);
	close(self->listener);
	self->listener = dup(self->fd);
	EXPECT_SUCCESS(other);
}

/*
 * While the accept queue is full, COOKIE-ECHOs are dropped. The cookie expires before the
 * queue has room, so that the client requests another one.
 */
TEST_F_TIMEOUT(attempts, an_accept_queue_that_stays_full, 90)
{
	int waiting = one_socket(variant->key), server;
	uint64_t cookies;

	ASSERT_EQ(0, listen(self->listener, 0));
	EXPECT_ERR(EINPROGRESS, connect_to(waiting, &self->addr));
	ASSERT_TRUE(wait_for(waiting, POLLOUT, WAIT_MS));
	BEGIN(&self->addr);
	EXPECT_SOON(true, get_state(self->fd) == DBLP_STATE_COOKIE_SENT);
	cookies = mib("CookieSent") + 1;
	EXPECT_LE(cookies, SOON(cookies, mib("CookieSent")));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	close(server);
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, 2 * WAIT_MS));
	EXPECT_EQ(0, RESULT(connect_to(self->fd, &self->addr)));
	ASSERT_TRUE(wait_for(self->listener, POLLIN, WAIT_MS));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_TRUE(one_message(self->fd, server));
	EXPECT_TRUE(one_message(server, self->fd));
}

/*
 * Each packet of the handshake is repeated before its answer can arrive. Still each end
 * knows which copy was answered, so that both know the round-trip time at once, and no
 * probe timeout expires before an ACK can arrive.
 */
TEST_F(attempts, a_long_round_trip)
{
	static const uint32_t rtt_us = 600000;
	struct dblp_info ends[2];
	int server, i;

	netem("delay 300ms");
	BEGIN(&self->addr);
	ASSERT_TRUE(wait_for(self->fd, POLLOUT, WAIT_MS));
	ends[0] = get_info(self->fd);
	ASSERT_TRUE(wait_for(self->listener, POLLIN, WAIT_MS));
	server = accept4(self->listener, NULL, NULL, SOCK_NONBLOCK);
	ASSERT_LE(0, server);
	ends[1] = get_info(server);
	for (i = 0; i < 2; i++) {
		EXPECT_LE(rtt_us, ends[i].srtt_us);
		/* A busy machine makes it longer */
		if (virtual_time())
			EXPECT_GE(rtt_us + rtt_us / 100, ends[i].srtt_us);
	}
	EXPECT_TRUE(one_message(self->fd, server));
	EXPECT_TRUE(one_message(server, self->fd));
	if (virtual_time())
		EXPECT_EQ(0, mib("PtoExpired"));
}

/* A peer can only echo a time that was sent in this attempt */
TEST_F(attempts, echoes_of_unsent_times)
{
	struct dblp_params ours = params_default(), theirs;
	struct tags tags;
	unsigned int ports;

	BEGIN_SCRIPTED();
	self->peer.time = UINT64_MAX;
	send_cookie(&self->peer, &self->p);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	EXPECT_EQ(DBLP_WIRE_OK,
		  dblp_get_params(&theirs,
				  self->peer.last[DBLP_PKT_COOKIE_ECHO].byte +
				  DBLP_ECHO_PARAMS));
	EXPECT_EQ(0, theirs.rtt_us);
	if (variant->key) {
		tags_key(&tags, KEY);
		tags_begin(&tags, self->peer.scid, &self->peer.cookie, false);
		self->peer.tags = &tags;
	}
	self->peer.time = UINT64_MAX / 2;
	make_cookie_ack(&self->p, &self->peer, &ours);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, WAIT_MS));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	EXPECT_EQ(0, get_info(self->fd).srtt_us);
	EXPECT_LT(0, ports);
}

#define AHEAD_MS	10

/* Wait, then answer with a forged echo, almost the time of the answer */
static void shorten(struct peer *peer)
{
	sleep_ms(AHEAD_MS);
	peer->time += AHEAD_MS * 1000000 - 1;
}

/* Is the RTT sample from the forged echo? A real one is longer */
static bool is_short(u32 rtt_us)
{
	return rtt_us && rtt_us < AHEAD_MS * 1000 / 2;
}

/* A peer cannot forge an RTT below the time since the last packet */
TEST_F(attempts, echoes_of_times_between_packets)
{
	struct dblp_params ours = params_default(), theirs;
	struct tags tags;
	unsigned int ports;

	BEGIN_SCRIPTED();
	shorten(&self->peer);
	send_cookie(&self->peer, &self->p);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	EXPECT_EQ(DBLP_WIRE_OK,
		  dblp_get_params(&theirs,
				  self->peer.last[DBLP_PKT_COOKIE_ECHO].byte +
				  DBLP_ECHO_PARAMS));
	EXPECT_FALSE(is_short(theirs.rtt_us));
	if (variant->key) {
		tags_key(&tags, KEY);
		tags_begin(&tags, self->peer.scid, &self->peer.cookie, false);
		self->peer.tags = &tags;
	}
	shorten(&self->peer);
	make_cookie_ack(&self->p, &self->peer, &ours);
	send_packet(&self->peer, &self->p);
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, WAIT_MS));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_state(self->fd));
	EXPECT_FALSE(is_short(get_info(self->fd).srtt_us));
	EXPECT_LT(0, ports);
}

/* The server echoes the time of the last COOKIE-ECHO, and measures nothing by it */
TEST_F(attempts, the_server_echoes)
{
	struct dblp_params ours = params_default();
	struct tags tags;
	int server, i;

	peer_connect(&self->peer, &self->addr);
	if (variant->key) {
		tags_key(&tags, KEY);
		self->peer.tags = &tags;
	}
	make_init(&self->p, self->peer.cid);
	poke(&self->p, DBLP_HDR_LEN + 8, 8, UINT64_MAX - 1);
	send_packet(&self->peer, &self->p);
	ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_INIT_ACK, WAIT_MS));
	EXPECT_EQ(UINT64_MAX - 1, self->peer.time);
	if (variant->key)
		tags_begin(&tags, self->peer.cid, &self->peer.cookie, true);
	ours.rtt_us = 12345;
	for (i = 0; i < 2; i++) {
		make_echo(&self->p, &self->peer, &ours);
		poke(&self->p, DBLP_ECHO_LEN - DBLP_TIME_LEN, 8, i);
		send_packet(&self->peer, &self->p);
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_COOKIE_ACK,
					WAIT_MS));
		EXPECT_EQ(i, self->peer.time);
	}
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	EXPECT_EQ(12345, get_info(server).srtt_us);
}

TEST_HARNESS_MAIN
