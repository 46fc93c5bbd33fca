// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sockets are charged for: the limits of their buffers hold, a memory
 * cgroup has each byte once, and all of it comes back. That nothing is left is
 * checked by the kernel, which warns when a socket is freed.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <linux/sock_diag.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define WAIT_MS		10000
#define MIB		(1 << 20)

/* The other end is played by the test: it is silent unless told otherwise */
FIXTURE(buffers) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	int listener;
	int fd;
};

FIXTURE_SETUP(buffers)
{
	netns_new();
	netns_set_mtu(1500);
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	self->fd = -1;
}

FIXTURE_TEARDOWN(buffers)
{
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
}

static void begin(FIXTURE_DATA(buffers) *self)
{
	peer_connect(&self->peer, &self->addr);
	peer_handshake(&self->peer);
	self->fd = accept(self->listener, NULL, NULL);
	if (self->fd < 0)
		die("accept()");
}

static u32 meminfo(int fd, int what)
{
	u32 info[SK_MEMINFO_VARS];
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		die("SO_MEMINFO");
	return info[what];
}

/* Small segments take several times their bytes */
TEST_F(buffers, what_waits_to_be_read_stays_within_so_rcvbuf)
{
	struct dblp_data d = { .msg_len = 64 * 256 };
	u32 id, seg, most, rcvbuf;
	static char buf[64 * 256];
	u64 dropped;

	set_int(self->listener, SO_RCVBUF, 128 << 10);
	begin(self);
	rcvbuf = get_int(self->fd, SO_RCVBUF);
	dropped = mib("DropMemory");
	/* Message 0 may go beyond, as nothing else can be read before it */
	for (id = 1; id < 7; id++)
		for (seg = 0; seg < 64; seg++) {
			d.msg_id = id;
			d.offset = seg * 256;
			make_data(&self->p, &self->peer, &d, 256, NULL);
			send_packet(&self->peer, &self->p);
		}
	EXPECT_TRUE(peer_sync(&self->peer));
	/* It never falls before something is read */
	most = meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u of %u bytes", most, rcvbuf);
	EXPECT_GT(rcvbuf + 4096, most);
	EXPECT_LT(rcvbuf, most + 4096);
	EXPECT_LT(dropped, mib("DropMemory"));

	/* With what was dropped sent again, all is read, and nothing is left */
	for (id = 0; id < 7; id++) {
		d.msg_id = id;
		for (seg = 0; seg < 64; seg++) {
			d.offset = seg * 256;
			make_data(&self->p, &self->peer, &d, 256, NULL);
			send_packet(&self->peer, &self->p);
		}
		ASSERT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
		EXPECT_EQ(d.msg_len, recv(self->fd, buf, sizeof(buf), 0));
		EXPECT_EQ(-1, pattern_check(buf, d.msg_len, 0, SCRIPTED_SEED,
					    id));
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
	EXPECT_GT(4096, meminfo(self->fd, SK_MEMINFO_FWD_ALLOC));
}

/* Acknowledge all that comes until the socket has nothing more to send */
static void take_all(FIXTURE_DATA(buffers) *self)
{
	u64 end = now_ms() + WAIT_MS;
	u32 acked = 0;

	while (meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED) && now_ms() < end) {
		peer_expect(&self->peer, DBLP_PKT_DATA, 10);
		peer_drain(&self->peer);
		if (self->peer.largest > acked) {
			peer_ack(&self->peer, 0, self->peer.largest - 1);
			acked = self->peer.largest;
		}
	}
}

TEST_F(buffers, what_waits_to_be_sent_stays_within_so_sndbuf)
{
	static const u32 sizes[] = { 1, 64, 5000, 100, 20000, 1, 1500 };
	static char buf[20000];
	u32 i, n = 0, most = 0, sndbuf;
	long ret;

	set_int(self->listener, SO_SNDBUF, 128 << 10);
	begin(self);
	sndbuf = get_int(self->fd, SO_SNDBUF);
	for (i = 0; i < 100000; i++) {
		ret = RESULT(send(self->fd, buf, sizes[i % 7], MSG_DONTWAIT));
		if (ret < 0)
			break;
		n += ret;
		if (meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED) > most)
			most = meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED);
	}
	EXPECT_EQ(-EAGAIN, ret);
	TH_LOG("%u bytes of messages, %u of %u charged", n, most, sndbuf);
	EXPECT_LT(n, most);
	EXPECT_GE(sndbuf, most);
	EXPECT_LT(sndbuf / 2, most);

	take_all(self);
	EXPECT_EQ(0, meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED));
	EXPECT_GT(4096, meminfo(self->fd, SK_MEMINFO_FWD_ALLOC));
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, 0));
}

/*
 * Memory cgroups. The test's own memory is touched before it enters one, and
 * its UDP sockets are made before.
 */
#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/dblp-memory"

static void cgroup_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("writing '%s' to %s", text, path);
	close(fd);
}

/* The number behind @key, or at the file's start */
static s64 cgroup_read(const char *path, const char *key)
{
	char text[8192], *at = text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof(text) - 1);

	if (len <= 0)
		die("reading %s", path);
	text[len] = 0;
	close(fd);
	if (key) {
		at = strstr(text, key);
		errno = 0;
		if (!at)
			die("%s has no%s", path, key);
		at += strlen(key);
	}
	return strtoll(at, NULL, 10);
}

static s64 charged(void)
{
	return cgroup_read(CGROUP "/memory.current", NULL);
}

static s64 charged_sock(void)
{
	return cgroup_read(CGROUP "/memory.stat", "\nsock ");
}

FIXTURE(cgroup) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	char *buf;
	int listener;
	int fd;
};

FIXTURE_SETUP(cgroup)
{
	netns_new();
	netns_set_mtu(1500);
	self->buf = malloc(16 * MIB);
	ASSERT_NE(NULL, self->buf);
	memset(self->buf, 1, 16 * MIB);
	self->fd = -1;
	cgroup_write(CGROUPS "/cgroup.subtree_control", "+memory");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	peer_connect(&self->peer, &self->addr);
	peer_handshake(&self->peer);
}

FIXTURE_TEARDOWN(cgroup)
{
	cgroup_write(CGROUPS "/cgroup.procs", "0");
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
	free(self->buf);
}

static void accept_in_cgroup(FIXTURE_DATA(cgroup) *self)
{
	cgroup_write(CGROUP "/cgroup.procs", "0");
	self->fd = accept(self->listener, NULL, NULL);
	if (self->fd < 0)
		die("accept()");
}

static bool falls_to(s64 (*value)(void), s64 most)
{
	u64 end = now_ms() + WAIT_MS;

	while (value() > most && now_ms() < end)
		sleep_ms(20);
	return value() <= most;
}

/* What of the 16 MiB is charged to the cgroup, and comes back */
static void pays_once(struct __test_metadata *_metadata, int fd, char *buf)
{
	s64 before = charged(), sock = charged_sock();

	ASSERT_EQ(16 * MIB, RESULT(send(fd, buf, 16 * MIB, MSG_DONTWAIT)));
	TH_LOG("%lld bytes in all, %lld of sockets",
	       (long long)(charged() - before),
	       (long long)(charged_sock() - sock));
	EXPECT_LE(16 * MIB, charged_sock() - sock);
	EXPECT_GT(18 * MIB, charged_sock() - sock);
	EXPECT_LE(16 * MIB, charged() - before);
	EXPECT_GT(20 * MIB, charged() - before);
	set_linger(fd, 1, 0);
	close(fd);
	EXPECT_TRUE(falls_to(charged_sock, sock));
	EXPECT_TRUE(falls_to(charged, before + MIB));
}

TEST_F(cgroup, who_accepts_pays_once)
{
	accept_in_cgroup(self);
	pays_once(_metadata, self->fd, self->buf);
	self->fd = -1;
}

TEST_F(cgroup, who_connects_pays_once)
{
	struct dblp_cookie cookie = { .mac = 42 };
	struct dblp_params ours = params_default();
	struct sockaddr_dblp addr;
	struct peer server;
	int fd;

	peer_listen(&server, "127.0.0.1", &addr);
	cgroup_write(CGROUP "/cgroup.procs", "0");
	fd = new_socket();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &addr));
	ASSERT_TRUE(peer_expect(&server, DBLP_PKT_INIT, WAIT_MS));
	server.scid = dblp_get_u64(server.last[DBLP_PKT_INIT].byte +
				   DBLP_HDR_LEN);
	cookie.scid = server.cid;
	make_packet(&self->p, DBLP_PKT_INIT_ACK, 0, server.scid);
	dblp_put_cookie(self->p.byte + self->p.len, &cookie);
	self->p.len += DBLP_COOKIE_LEN;
	send_packet(&server, &self->p);
	ASSERT_TRUE(peer_expect(&server, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	make_packet(&self->p, DBLP_PKT_COOKIE_ACK, 0, server.scid);
	dblp_put_params(self->p.byte + self->p.len, &ours);
	self->p.len += DBLP_PARAMS_LEN;
	send_packet(&server, &self->p);
	ASSERT_TRUE(wait_for(fd, POLLOUT, WAIT_MS));
	pays_once(_metadata, fd, self->buf);
	peer_close(&server);
}

/* What came before accept(), and after it */
TEST_F(cgroup, who_accepts_pays_for_what_waits)
{
	struct dblp_data d = { .msg_len = MIB };
	u32 i, n = (MIB + 1399) / 1400;
	s64 early;

	for (i = 0; i < n / 2; i++) {
		d.offset = i * 1400;
		make_data(&self->p, &self->peer, &d, 1400, NULL);
		send_packet(&self->peer, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, charged_sock());
	accept_in_cgroup(self);
	early = charged_sock();
	EXPECT_LE(MIB / 2 - 1400, early);
	EXPECT_LE((s64)meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC), early);
	for (; i < n; i++) {
		d.offset = i * 1400;
		make_data(&self->p, &self->peer, &d, 1400, NULL);
		send_packet(&self->peer, &self->p);
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	TH_LOG("%lld bytes before accept(), %lld after", (long long)early,
	       (long long)charged_sock());
	EXPECT_LE(MIB, charged_sock());
	EXPECT_LE((s64)meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC),
		  charged_sock());
	ASSERT_EQ(MIB, recv(self->fd, self->buf, 16 * MIB, MSG_DONTWAIT));
	EXPECT_TRUE(falls_to(charged_sock, 4096));
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(falls_to(charged_sock, 0));
}

/* Who has no more memory is told, and not killed */
TEST_F(cgroup, a_full_cgroup_sends_no_more)
{
	/* Of the size for which the kernel kills, where nothing else is left */
	static const u32 sizes[] = { 100, 3000, 20000 };
	u32 i, n = 0;
	long ret;

	accept_in_cgroup(self);
	cgroup_write(CGROUP "/memory.max", "12M");
	cgroup_write(CGROUP "/memory.swap.max", "0");
	for (i = 0; i < 10000; i++) {
		ret = RESULT(send(self->fd, self->buf, sizes[i % 3],
				  MSG_DONTWAIT));
		if (ret < 0)
			break;
		n += ret;
	}
	TH_LOG("%u bytes, then %ld", n, ret);
	EXPECT_TRUE(ret == -ENOBUFS || ret == -EAGAIN);
	EXPECT_LT(4 * MIB, n);
	EXPECT_GT(12 * MIB, n);
	EXPECT_EQ(0, cgroup_read(CGROUP "/memory.events", "oom_kill "));
}

/* Who waits goes on as memory comes back */
TEST_F(cgroup, a_full_cgroup_waits)
{
	u32 acked = 0;
	pid_t child;
	int status;

	accept_in_cgroup(self);
	cgroup_write(CGROUP "/memory.max", "12M");
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		u32 i;

		for (i = 0; i < 24; i++)
			if (send(self->fd, self->buf, MIB, 0) != MIB)
				_exit(errno);
		_exit(0);
	}
	cgroup_write(CGROUPS "/cgroup.procs", "0");
	while (!waitpid(child, &status, WNOHANG)) {
		peer_expect(&self->peer, DBLP_PKT_DATA, 10);
		peer_drain(&self->peer);
		if (self->peer.largest > acked) {
			peer_ack(&self->peer, 0, self->peer.largest - 1);
			acked = self->peer.largest;
		}
	}
	EXPECT_EQ(0, status);
	EXPECT_LT(0, cgroup_read(CGROUP "/memory.events", "max "));
	EXPECT_EQ(0, cgroup_read(CGROUP "/memory.events", "oom_kill "));
}

TEST_HARNESS_MAIN
