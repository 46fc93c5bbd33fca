// SPDX-License-Identifier: GPL-2.0-only
/*
 * What users of other families of sockets expect: keepalive, linger, half
 * closed connections, the generic options, inheritance, and the calls that move
 * bytes without send() and recv().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

FIXTURE(conn) {
	struct sockaddr_dblp addr;
	int listener;
	int client;
	int server;
};

FIXTURE_VARIANT(conn) {
	const char *address;
};

FIXTURE_VARIANT_ADD(conn, ipv4) { .address = "127.0.0.1" };
FIXTURE_VARIANT_ADD(conn, ipv6) { .address = "::1" };

FIXTURE_SETUP(conn)
{
	netns_new();
	self->listener = new_listener(variant->address, 16, &self->addr);
	self->client = new_socket();
	ASSERT_EQ(0, connect_to(self->client, &self->addr));
	self->server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, self->server);
}

FIXTURE_TEARDOWN(conn)
{
	close(self->server);
	close(self->client);
	close(self->listener);
}

/* One more connection by the listener of the fixture */
static void connect_more(const struct sockaddr_dblp *addr, int listener,
			 int *client, int *server)
{
	*client = new_socket();
	if (connect_to(*client, addr))
		die("connect()");
	*server = accept(listener, NULL, NULL);
	if (*server < 0)
		die("accept()");
}

/* Packets that lo has carried, whatever they are */
static uint64_t lo_packets(void)
{
	FILE *f = fopen("/proc/thread-self/net/dev", "r");
	char line[512];
	uint64_t n;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " lo: %*u %lu", &n) == 1) {
			fclose(f);
			return n;
		}
	die("no lo in /proc/net/dev");
}

/*
 * Keepalive
 */

#define IDLE_MS		200
#define PATIENCE_MS	500
/* Real time on a busy machine; virtual time is exact to a few milliseconds */
#define SLACK_MS	1500

static void keep_alive(int fd)
{
	set_u32(fd, DBLP_KEEPALIVE, IDLE_MS);
	set_u32(fd, DBLP_USER_TIMEOUT, PATIENCE_MS);
	set_int(fd, SO_KEEPALIVE, 1);
}

TEST_F(conn, keepalive_tells_a_waiting_receiver_that_its_peer_is_dead)
{
	uint64_t start, took;
	char buf[8];

	netem("loss 100%");
	start = now_ms();
	keep_alive(self->client);
	EXPECT_ERR(ETIMEDOUT, recv(self->client, buf, sizeof(buf), 0));
	took = now_ms() - start;
	EXPECT_LE(PATIENCE_MS, took);
	EXPECT_GE(IDLE_MS + PATIENCE_MS + SLACK_MS, took);
	EXPECT_EQ(1, mib("KeepaliveSent"));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(self->client).state);
	/* Once: after that it is the end of messages */
	EXPECT_EQ(0, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, keepalive_is_inherited_by_accepted_sockets)
{
	int client, server;
	char buf[8];

	keep_alive(self->listener);
	connect_more(&self->addr, self->listener, &client, &server);
	EXPECT_EQ(1, get_int(server, SO_KEEPALIVE));
	netem("loss 100%");
	EXPECT_ERR(ETIMEDOUT, recv(server, buf, sizeof(buf), 0));
	EXPECT_EQ(IDLE_MS, get_u32(server, DBLP_KEEPALIVE));
	close(client);
	close(server);
}

TEST_F(conn, keepalive_leaves_a_living_peer_alone)
{
	uint64_t start = now_ms(), asked;

	set_u32(self->client, DBLP_KEEPALIVE, 50);
	set_u32(self->client, DBLP_USER_TIMEOUT, PATIENCE_MS);
	set_int(self->client, SO_KEEPALIVE, 1);
	sleep_ms(3 * PATIENCE_MS);
	asked = mib("KeepaliveSent");
	EXPECT_LE(5, asked);
	EXPECT_GE((now_ms() - start) / 50, asked);
	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(POLLOUT, poll_now(self->server));

	set_int(self->client, SO_KEEPALIVE, 0);
	asked = mib("KeepaliveSent");
	sleep_ms(3 * PATIENCE_MS);
	EXPECT_EQ(asked, mib("KeepaliveSent"));
}

TEST_F(conn, keepalive_asks_only_idle_peers)
{
	char buf[8];
	int i;

	set_u32(self->client, DBLP_KEEPALIVE, 10 * IDLE_MS);
	set_int(self->client, SO_KEEPALIVE, 1);
	for (i = 0; i < 15; i++) {
		EXPECT_EQ(1, send(self->server, "x", 1, 0));
		EXPECT_EQ(1, recv(self->client, buf, sizeof(buf), 0));
		sleep_ms(IDLE_MS);
	}
	EXPECT_EQ(0, mib("KeepaliveSent"));
}

TEST_F(conn, keepalive_finds_a_peer_that_has_forgotten_us)
{
	char buf[8];

	/* Its reset is lost */
	netem("loss 100%");
	set_linger(self->server, 1, 0);
	close(self->server);
	self->server = -1;
	netem("loss 0%");
	keep_alive(self->client);
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, an_idle_connection_without_keepalive_says_nothing)
{
	uint64_t before;

	EXPECT_EQ(0, get_int(self->client, SO_KEEPALIVE));
	EXPECT_EQ(2, send(self->client, "hi", 2, 0));
	sleep_ms(500);
	before = lo_packets();
	sleep_ms(3000);
	EXPECT_EQ(before, lo_packets());
	EXPECT_EQ(0, mib("KeepaliveSent"));
}

TEST_F(conn, range_of_the_keepalive_option)
{
	uint32_t value = 0;
	socklen_t len = sizeof(value);

	EXPECT_EQ(0, getsockopt(self->client, SOL_DBLP, DBLP_KEEPALIVE, &value,
				&len));
	EXPECT_EQ(15000, value);
	value = 9;
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_KEEPALIVE,
				      &value, sizeof(value)));
	value = 86400001;
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_KEEPALIVE,
				      &value, sizeof(value)));
	set_u32(self->client, DBLP_KEEPALIVE, 10);
	set_u32(self->client, DBLP_KEEPALIVE, 86400000);
}

/*
 * Linger
 */

TEST_F(conn, linger_0_resets)
{
	char buf[8];

	set_linger(self->client, 1, 0);
	close(self->client);
	self->client = -1;
	EXPECT_ERR(ECONNRESET, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(1, mib("RstSent"));
	/* The server's and the listener */
	EXPECT_EQ(2, socket_count());
}

TEST_F(conn, linger_0_drops_what_was_not_sent)
{
	int size = 1 << 20;
	char *buf = calloc(1, size);

	ASSERT_NE(NULL, buf);
	netem("delay 100ms");
	set_linger(self->client, 1, 0);
	EXPECT_EQ(size, send(self->client, buf, size, 0));
	close(self->client);
	self->client = -1;
	EXPECT_EQ(2, socket_count());
	EXPECT_ERR(ECONNRESET, recv(self->server, buf, size, 0));
	free(buf);
}

TEST_F(conn, lingering_waits_until_all_is_acknowledged)
{
	uint64_t start;
	char buf[8];

	netem("delay 100ms");
	set_linger(self->client, 1, 20);
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	start = now_ms();
	close(self->client);
	self->client = -1;
	EXPECT_LE(200, now_ms() - start);
	EXPECT_GE(10 * SECONDS, now_ms() - start);
	/* Nothing goes on in the background */
	EXPECT_EQ(2, socket_count());
	EXPECT_EQ(4, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
}

TEST_F(conn, lingering_gives_up_and_goes_on_in_the_background)
{
	uint64_t start;
	char buf[8];

	netem("loss 100%");
	set_linger(self->client, 1, 1);
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	start = now_ms();
	EXPECT_EQ(0, close(self->client));
	self->client = -1;
	EXPECT_LE(990, now_ms() - start);
	EXPECT_GE(1000 + SLACK_MS, now_ms() - start);
	EXPECT_EQ(3, socket_count());
	netem("loss 0%");
	EXPECT_EQ(4, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, closing_without_linger_does_not_wait)
{
	uint64_t start;
	char buf[8];

	netem("delay 1000ms");
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	start = now_ms();
	close(self->client);
	self->client = -1;
	EXPECT_GE(900, now_ms() - start);
	EXPECT_EQ(3, socket_count());
	EXPECT_EQ(4, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, who_exits_does_not_linger)
{
	uint64_t start;
	pid_t pid;

	netem("loss 100%");
	set_linger(self->client, 1, 60);
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* Until the other file descriptor is closed */
		sleep_ms(300);
		_exit(0);
	}
	start = now_ms();
	close(self->client);
	self->client = -1;
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_GE(10 * SECONDS, now_ms() - start);
	EXPECT_EQ(3, socket_count());
}

/*
 * Shutting down
 */

TEST_F(conn, half_closed_the_other_way_lives_on)
{
	int size = 3 << 20, i;
	char *buf = malloc(size);

	ASSERT_NE(NULL, buf);
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(0, recv(self->server, buf, size, 0));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	for (i = 0; i < 4; i++) {
		pattern_fill(buf, size, 0, 5, i);
		EXPECT_EQ(size, send(self->server, buf, size, 0));
		memset(buf, 0, size);
		EXPECT_EQ(size, recv(self->client, buf, size, 0));
		EXPECT_EQ(-1, pattern_check(buf, size, 0, 5, i));
	}
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
	close(self->server);
	self->server = -1;
	EXPECT_EQ(0, recv(self->client, buf, size, 0));
	free(buf);
}

TEST_F(conn, what_comes_after_shut_rd_is_not_thrown_away)
{
	char buf[8];

	EXPECT_EQ(0, shutdown(self->server, SHUT_RD));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
	/* As with TCP: the peer sees nothing of it, what it sends is kept */
	EXPECT_EQ(3, send(self->client, "abc", 3, 0));
	while (get_info(self->server).msgs_received < 1)
		sleep_ms(5);
	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(3, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));

	/* Never silence: what nobody has read is a reset when it is closed */
	EXPECT_EQ(3, send(self->client, "def", 3, 0));
	while (get_info(self->server).msgs_received < 2)
		sleep_ms(5);
	close(self->server);
	self->server = -1;
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, shut_rdwr_ends_both_ways_here)
{
	char buf[8];

	EXPECT_EQ(0, shutdown(self->client, SHUT_RDWR));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
		  poll_now(self->client));
	EXPECT_EQ(0, recv(self->client, buf, sizeof(buf), 0));
	EXPECT_ERR(EPIPE, send(self->client, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(2, send(self->server, "ok", 2, 0));
}

TEST_F(conn, shutting_down_a_listener_ends_it)
{
	struct sockaddr_dblp a;
	int client = new_socket();

	EXPECT_EQ(0, shutdown(self->listener, SHUT_RD));
	EXPECT_EQ(POLLOUT | POLLHUP, poll_now(self->listener));
	EXPECT_ERR(EINVAL, accept(self->listener, NULL, NULL));
	EXPECT_ERR(ECONNREFUSED, connect_to(client, &self->addr));
	/* It keeps its port, and can listen again */
	local_name(self->listener, &a);
	EXPECT_EQ(self->addr.sdblp_port, a.sdblp_port);
	EXPECT_EQ(0, listen(self->listener, 1));
	EXPECT_EQ(0, connect_to(client, &self->addr));
	close(client);
}

TEST_HARNESS_MAIN
