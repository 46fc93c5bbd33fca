// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closed connections with undelivered messages: a peer keeps them alive only by progress of
 * messages. The peer is scripted.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#define WAIT_MS		10000
#define PATIENCE_MS	1000
/* ms; the kernel checks once a second, and a busy machine is late */
#define SLACK_MS	3000
#define MIB		(1 << 20)
#define CREDIT		(64 << 10)
#define SYSCTL		"/proc/sys/net/dblp/"

static void sysctl_write(const char *name, const char *text)
{
	char path[100];

	snprintf(path, sizeof(path), SYSCTL "%s", name);
	file_write(path, text);
}

FIXTURE(orphan) {
	struct sockaddr_dblp addr;
	char mem[100];
	char *buf;
	enum half half;
	int mem_fd;
	int listener;
	u32 rtt_us;
};

FIXTURE_VARIANT(orphan) {
	enum half half;
};

FIXTURE_VARIANT_ADD(orphan, open) { .half = HALF_NONE };
FIXTURE_VARIANT_ADD(orphan, after_fin) { .half = HALF_PEER };

FIXTURE_SETUP(orphan)
{
	/* Only the first namespace has this file */
	self->mem_fd = open(SYSCTL "mem", O_RDWR | O_CLOEXEC);
	ASSERT_LT(0, read(self->mem_fd, self->mem, sizeof(self->mem) - 1));
	self->buf = noise_new(8 * MIB);
	self->half = variant->half;
}

FIXTURE_TEARDOWN(orphan)
{
	pwrite(self->mem_fd, self->mem, strlen(self->mem), 0);
	close(self->mem_fd);
	close(self->listener);
	free(self->buf);
}

static void listen_here(FIXTURE_DATA(orphan) *self, u32 patience)
{
	self->listener = listener_apart(&self->addr);
	set_u32(self->listener, DBLP_USER_TIMEOUT, patience);
}

/* Connect to a peer that gives @credit bytes */
static int join(FIXTURE_DATA(orphan) *self, struct peer *peer, u64 credit)
{
	struct dblp_params ours = params_default();
	struct packet p;
	int fd;

	ours.max_data = credit;
	ours.rtt_us = self->rtt_us;
	peer_connect(peer, &self->addr);
	peer_get_cookie(peer);
	peer->scid = peer->cookie.scid;
	send_echo(peer, &p, &ours);
	if (!peer_expect(peer, DBLP_PKT_COOKIE_ACK, WAIT_MS))
		die("no COOKIE-ACK came");
	fd = accept(self->listener, NULL, NULL);
	if (fd < 0)
		die("accept()");
	half_close(peer, fd, self->half, 0);
	return fd;
}

/* Send small messages beyond the credit, then close */
static void leave(FIXTURE_DATA(orphan) *self, int fd, u32 bytes)
{
	u32 n;

	for (n = 0; n < bytes; n += 16384)
		if (send(fd, self->buf + n, 16384, MSG_DONTWAIT) != 16384)
			die("send()");
	close(fd);
}

/* Acknowledge all packets; returns the time until the reset, ms */
static u64 acknowledge_until_reset(struct peer *peer, u64 ms)
{
	u64 start = now_ms();
	u32 acked = 0;

	while (!peer->n[DBLP_PKT_RST] && now_ms() - start < ms) {
		peer_expect(peer, DBLP_PKT_RST, 10);
		if (peer->largest > acked)
			peer_ack_all(peer);
		acked = peer->largest;
	}
	return now_ms() - start;
}

static bool only_listener_left(void)
{
	u64 end = now_ms() + WAIT_MS;

	while (socket_count() > 1 && now_ms() < end)
		sleep_ms(5);
	return socket_count() == 1;
}

TEST_F(orphan, a_peer_that_only_acknowledges_does_not_keep_it)
{
	static struct peer peer;
	u64 took;

	listen_here(self, PATIENCE_MS);
	leave(self, join(self, &peer, CREDIT), 4 * MIB);
	took = acknowledge_until_reset(&peer, WAIT_MS);
	TH_LOG("reset after %llu ms", (unsigned long long)took);
	EXPECT_EQ(1, peer.n[DBLP_PKT_RST]);
	EXPECT_EQ(DBLP_RST_TIMEOUT, peer.rst_reason);
	EXPECT_LE(PATIENCE_MS, took);
	EXPECT_GE(PATIENCE_MS + SLACK_MS, took);
	EXPECT_EQ(1, mib("OrphanTimeout"));
	EXPECT_TRUE(only_listener_left());
}

/* The first FIN is lost, and the probe timeout is longer than 5 s */
TEST_F(orphan, repeats_fin_on_a_path_with_a_long_round_trip)
{
	static struct peer peer;
	u64 end;
	u32 n;
	int fd;

	self->rtt_us = 1800000;
	listen_here(self, 3 * WAIT_MS);
	fd = join(self, &peer, CREDIT);
	peer_drain(&peer);
	n = peer.n[DBLP_PKT_CTRL];
	close(fd);
	end = now_ms() + 2 * WAIT_MS;
	while (peer.n[DBLP_PKT_CTRL] < n + 2 && !peer.n[DBLP_PKT_RST] &&
	       now_ms() < end)
		peer_expect(&peer, DBLP_PKT_RST, 100);
	EXPECT_EQ(0, peer.n[DBLP_PKT_RST]);
	EXPECT_LE(n + 2, peer.n[DBLP_PKT_CTRL]);
	peer_ack_all(&peer);
}

/* A packet in 300 ms is slow, but progress. A busy machine may need seconds for it.
 */
TEST_F(orphan, an_orphan_with_progress_lives)
{
	const u32 patience = 3 * PATIENCE_MS;
	static struct peer peer;
	u64 start = now_ms();
	u32 n = 0;

	listen_here(self, patience);
	leave(self, join(self, &peer, 16 * MIB), MIB);
	while (now_ms() - start < 2 * patience) {
		peer_drain(&peer);
		if (n < peer.largest) {
			peer_ack(&peer, n, n);
			n++;
		}
		sleep_ms(300);
	}
	TH_LOG("%u acknowledged, %u came, reason %u", n, peer.largest, peer.rst_reason);
	EXPECT_LT(5, n);
	EXPECT_EQ(0, peer.n[DBLP_PKT_RST]);
	EXPECT_EQ(2, socket_count());
	EXPECT_EQ(0, mib("OrphanTimeout"));
}

TEST_F(orphan, no_more_than_max_orphans)
{
	static struct peer peer[3];
	int fd[3], i;

	listen_here(self, 30 * SECONDS);
	sysctl_write("max_orphans", "2");
	for (i = 0; i < 3; i++)
		fd[i] = join(self, &peer[i], CREDIT);
	for (i = 0; i < 3; i++)
		leave(self, fd[i], MIB);
	EXPECT_TRUE(peer_expect(&peer[2], DBLP_PKT_RST, WAIT_MS));
	EXPECT_EQ(DBLP_RST_CLOSED, peer[2].rst_reason);
	EXPECT_EQ(1, mib("OrphanTooMany"));
	EXPECT_EQ(3, socket_count());
	for (i = 0; i < 3; i++) {
		peer_drain(&peer[i]);
		EXPECT_EQ(i == 2, peer[i].n[DBLP_PKT_RST]);
		peer_close(&peer[i]);
	}
}

/* Under memory pressure, stalled orphans are removed first */
TEST_F(orphan, memory_pressure_removes_stalled_orphans_first)
{
	static const char little[] = "64 128 256";
	static struct peer peer;
	u64 took;
	int fd;

	listen_here(self, 30 * SECONDS);
	fd = join(self, &peer, CREDIT);
	set_u32(fd, DBLP_PARTIAL_SEND, 1);
	ASSERT_EQ(4 * MIB, RESULT(send(fd, self->buf, 4 * MIB, MSG_DONTWAIT)));
	close(fd);
	acknowledge_until_reset(&peer, 2 * SECONDS);
	EXPECT_EQ(0, peer.n[DBLP_PKT_RST]);
	ASSERT_EQ(strlen(little),
		  pwrite(self->mem_fd, little, strlen(little), 0));
	took = acknowledge_until_reset(&peer, WAIT_MS);
	TH_LOG("reset after %llu ms", (unsigned long long)took);
	EXPECT_EQ(DBLP_RST_CLOSED, peer.rst_reason);
	EXPECT_EQ(1, mib("OrphanMemory"));
	EXPECT_TRUE(only_listener_left());
}

/* The ACK of a segment that arrives after the acknowledged FIN may be lost. The peer's
 * retransmission gets a second FIN with the ACK
 */
TEST_F(orphan, segments_after_the_fin_are_acknowledged)
{
	struct dblp_data d = { .msg_len = 600 };
	static struct packet p;
	static struct peer peer;
	char buf[600];
	u32 pn;
	int fd;

	listen_here(self, 30 * SECONDS);
	self->half = HALF_OURS;
	fd = join(self, &peer, CREDIT);
	while (!peer.n_fin)
		ASSERT_TRUE(peer_expect(&peer, DBLP_PKT_CTRL, WAIT_MS));
	peer_ack_all(&peer);
	pn = peer.pn;
	send_data(&peer, &p, &d, 600, 0, 1, NULL);
	if (variant->half)
		send_fin(&peer, &p, 1);
	EXPECT_TRUE(peer_sync(&peer));
	EXPECT_EQ(600, recv(fd, buf, sizeof(buf), 0));
	EXPECT_TRUE(peer.acked[pn]);
	if (!variant->half) {
		peer.n_fin = 0;
		peer.acked[pn] = false;
	}
	close(fd);
	while (!peer.n_fin || !peer.acked[pn])
		ASSERT_TRUE(peer_expect(&peer, DBLP_PKT_CTRL, WAIT_MS));
	peer_ack_all(&peer);
	EXPECT_TRUE(only_listener_left());
	EXPECT_EQ(0, peer.n[DBLP_PKT_RST]);
}

/* Defaults are sysctls of AF_DBLP; SO_SNDBUF and SO_RCVBUF are limited by net.core */
TEST_F(orphan, buffers_begin_with_the_defaults)
{
	int fd;

	netns_new();
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	EXPECT_EQ(64 * MIB, get_int(self->listener, SO_RCVBUF));
	EXPECT_EQ(64 * MIB, get_int(self->listener, SO_SNDBUF));
	sysctl_write("rmem_default", "1000000");
	sysctl_write("wmem_default", "500000");
	fd = new_socket();
	EXPECT_EQ(1000000, get_int(fd, SO_RCVBUF));
	EXPECT_EQ(500000, get_int(fd, SO_SNDBUF));
	set_int(fd, SO_SNDBUF, 1 << 30);
	set_int(fd, SO_RCVBUF, 1 << 30);
	EXPECT_GT(64 * MIB, get_int(fd, SO_SNDBUF));
	EXPECT_GT(64 * MIB, get_int(fd, SO_RCVBUF));
}

TEST_HARNESS_MAIN
