// SPDX-License-Identifier: GPL-2.0-only
/*
 * Charges of sockets: buffer limits are kept, a memory cgroup is charged each byte once, and
 * all charges are returned. The kernel warns if a freed socket has charges left.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define WAIT_MS		10000
#define MIB		(1 << 20)

/* The other end is a scripted peer, which is silent by default */
FIXTURE(buffers) {
	PLAYED_CONNECTION;
};

FIXTURE_SETUP(buffers)
{
	self->listener = listener_apart(&self->addr);
	self->peer.udp = -1;
	self->fd = -1;
}

FIXTURE_ENDS_BY_EXIT(buffers);

static void begin(FIXTURE_DATA(buffers) *self)
{
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	if (self->fd < 0)
		die("accept()");
}

/* bytes; such segments have the maximum overhead, above which they are copied */
#define NARROW		360
#define NARROWS		56

TEST_F(buffers, unread_messages_stay_within_so_rcvbuf)
{
	struct dblp_data d = { .msg_len = NARROWS * NARROW };
	u32 id, seg, most, rcvbuf;
	static char buf[NARROWS * NARROW];
	u64 dropped;

	set_int(self->listener, SO_RCVBUF, 128 << 10);
	begin(self);
	rcvbuf = get_int(self->fd, SO_RCVBUF);
	dropped = mib("DropMemory");
	EXPECT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	/* Message 0 may exceed the limit, because it must be read first */
	for (id = 1; id < 6; id++)
		for (seg = 0; seg < NARROWS; seg++) {
			d.msg_id = id;
			/* Each segment is separate */
			d.offset = (NARROWS - 1 - seg) * NARROW;
			send_one(&self->peer, &self->p, &d, NARROW, NULL);
		}
	EXPECT_TRUE(peer_sync(&self->peer));
	/* The charge does not decrease before a message is read */
	most = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u of %u bytes", most, rcvbuf);
	EXPECT_GT(rcvbuf + 4096, most);
	EXPECT_LT(rcvbuf, most + 4096);
	EXPECT_LT(dropped, mib("DropMemory"));

	/* After retransmission of dropped segments all is read, and no charge is left */
	for (id = 0; id < 6; id++) {
		d.msg_id = id;
		send_data(&self->peer, &self->p, &d, NARROW, 0, NARROWS, NULL);
		ASSERT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
		EXPECT_EQ(d.msg_len, recv(self->fd, buf, sizeof(buf), 0));
		EXPECT_EQ(-1, pattern_check(buf, d.msg_len, 0, SCRIPTED_SEED,
					    id));
	}
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC));
	EXPECT_GT(4096, get_meminfo(self->fd, SK_MEMINFO_FWD_ALLOC));
}

/* Read a message of 2024 bytes of credit. Is FLOW in the ACK of its packet, received twice? */
static bool credit_comes(FIXTURE_DATA(buffers) *self, u32 id)
{
	struct dblp_data d = { .msg_id = id, .msg_len = 1000 };
	char buf[1000];

	peer_drain(&self->peer);
	peer_ack_all(&self->peer);
	self->peer.flow.type = 0;
	send_one(&self->peer, &self->p, &d, 1000, NULL);
	if (!wait_for(self->fd, POLLIN, WAIT_MS) || recv(self->fd, buf, 1000, 0) != 1000)
		die("no message");
	send_packet(&self->peer, &self->p);
	if (!peer_expect(&self->peer, DBLP_PKT_ACK, WAIT_MS))
		die("no ACK");
	peer_drain(&self->peer);
	return self->peer.flow.type;
}

TEST_F(buffers, acks_return_a_sixteenth_of_the_window)
{
	u32 id;

	set_int(self->listener, SO_RCVBUF, 128 << 10);
	begin(self);
	ASSERT_EQ(128 << 10, self->peer.theirs.window);
	EXPECT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	for (id = 0; id < 4; id++)
		EXPECT_FALSE(credit_comes(self, id));
	EXPECT_TRUE(credit_comes(self, 4));
}

/* Maximum memory for @bytes of credit */
#define HELD_MOST(bytes)	(4 * ((bytes) + 1024))

/* The next in-order message may exceed SO_RCVBUF, but the overhead is bounded */
TEST_F_TIMEOUT(buffers, small_segments_take_no_more_than_four_times_their_bytes,
	       120)
{
	struct dblp_data d = { .msg_len = 1500 * 256 };
	static unsigned char buf[1500 * 256];
	u32 seg, held;

	begin(self);
	/* Send segments in sequence, and then backwards */
	for (seg = 0; seg < 1499; seg++) {
		d.offset = 256 * (seg < 700 ? seg : 1499 + 700 - seg);
		send_one(&self->peer, &self->p, &d, 256, NULL);
		if (seg % 256 == 0)
			ASSERT_TRUE(peer_sync(&self->peer));
	}
	ASSERT_TRUE(peer_sync(&self->peer));
	held = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u for %u bytes", held, seg * 256);
	EXPECT_LT(seg * 256, held);
	EXPECT_GT(HELD_MOST(sizeof(buf)), held);
	/* Check all segments */
	for (seg = 0; seg < 1500; seg++) {
		d.offset = 256 * seg;
		send_one(&self->peer, &self->p, &d, 256, NULL);
		if (seg % 256 == 0)
			ASSERT_TRUE(peer_sync(&self->peer));
	}
	ASSERT_EQ(sizeof(buf), recv(self->fd, buf, sizeof(buf), MSG_WAITALL));
	EXPECT_EQ(-1, pattern_check(buf, sizeof(buf), 0, SCRIPTED_SEED, 0));
}

/* Zero maps of one segment each */
TEST_F(buffers, zero_maps_take_no_more_than_four_times_the_bytes_they_describe)
{
	struct dblp_data d = { .msg_len = 8 * MIB };
	static const u32 map[] = { 1, 0, 0, 0, 0, 0, 0, 0 };
	u32 n, held;

	begin(self);
	for (n = 0; n < 1000; n++) {
		d.offset = n * 32 * 256;
		send_zeromap(&self->peer, &self->p, &d, 256, NULL, map, 8);
		if (n % 100 == 0)
			ASSERT_TRUE(peer_sync(&self->peer));
	}
	ASSERT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, mib("DropField"));
	held = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u for %u bytes", held, n * 256);
	/* Plus one bit per segment of the message */
	EXPECT_GT(HELD_MOST(n * 256) + 8192, held);
}

static u64 mem_free(void)
{
	u64 kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	if (!f)
		die("/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemFree: %llu", &kib) == 1)
			break;
	fclose(f);
	return kib << 10;
}

/*
 * Trains with segments of two messages, of which one is read and one is not: the charge of
 * the first one is returned.
 */
#define WIDE		1000

TEST_F_TIMEOUT(buffers, a_segment_does_not_hold_its_train, 120)
{
	struct dblp_data first = { .msg_len = WIDE };
	struct dblp_data rest = { .msg_id = 1000, .msg_len = 400 * WIDE };
	const char *debug = getenv("DBLP_DEBUG");
	static struct packet train[60];
	unsigned char buf[WIDE];
	u64 before;
	u32 n, i;
	s64 held;

	begin(self);
	ASSERT_TRUE(peer_sync(&self->peer));
	before = mem_free();
	for (n = 0; n < 300; n++) {
		first.msg_id = n;
		make_data(&train[0], &self->peer, &first, WIDE, NULL);
		for (i = 1; i < 59; i++)
			train[i] = train[0];
		rest.offset = n * WIDE;
		make_data(&train[59], &self->peer, &rest, WIDE, NULL);
		send_train(&self->peer, train, 60);
		ASSERT_TRUE(wait_for(self->fd, POLLIN, WAIT_MS));
		ASSERT_EQ(WIDE, recv(self->fd, buf, WIDE, 0));
		ASSERT_EQ(-1, pattern_check(buf, WIDE, 0, SCRIPTED_SEED, n));
	}
	ASSERT_TRUE(peer_sync(&self->peer));
	held = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%lld charged, %lld less are free", held,
	       (s64)(before - mem_free()));
	EXPECT_LT(n * WIDE, held);
	EXPECT_GT(HELD_MOST(n * WIDE), held);
	/* The debug kernel keeps freed memory for a while, to detect accesses */
	if (!debug || *debug == '0')
		EXPECT_GT(held + 8 * MIB, (s64)(before - mem_free()));
}

/* The state of messages with almost no received segments is charged */
TEST_F(buffers, open_messages_are_charged)
{
	struct dblp_data d = { .msg_len = 7000 };
	u32 most;

	begin(self);
	EXPECT_TRUE(peer_ask(&self->peer, self->peer.theirs.window));
	for (d.msg_id = 1; d.msg_id <= 1000; d.msg_id++) {
		send_one(&self->peer, &self->p, &d, 256, NULL);
		if (d.msg_id % 100 == 0)
			ASSERT_TRUE(peer_sync(&self->peer));
	}
	most = get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC);
	TH_LOG("%u bytes", most);
	EXPECT_LT(1000 * (256 + 300 + 256), most);
	EXPECT_GT(1000 * HELD_MOST(7000), most);
}

/*
 * Acknowledge all packets until the socket has nothing left to send. Returns the time of the
 * end, or slightly before.
 */
static u64 take_all(int fd, struct peer *peer)
{
	u64 last = now_ms();
	u32 acked = 0;

	while (get_meminfo(fd, SK_MEMINFO_WMEM_QUEUED)) {
		if (now_ms() - last > WAIT_MS)
			die("nothing more comes");
		peer_expect(peer, DBLP_PKT_DATA, 10);
		peer_drain(peer);
		if (peer->largest > acked) {
			last = now_ms();
			peer_ack_all(peer);
			acked = peer->largest;
		}
	}
	peer_drain(peer);
	return last;
}

TEST_F(buffers, unsent_messages_stay_within_so_sndbuf)
{
	static const u32 sizes[] = { 1, 64, 5000, 100, 20000, 1, 1500 };
	static char buf[20000];
	u32 i, n = 0, most = 0, sndbuf;
	long ret;

	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	set_int(self->listener, SO_SNDBUF, 128 << 10);
	begin(self);
	sndbuf = get_int(self->fd, SO_SNDBUF);
	for (i = 0; i < 100000; i++) {
		ret = RESULT(send(self->fd, buf, sizes[i % 7], MSG_DONTWAIT));
		if (ret < 0)
			break;
		n += ret;
		if (get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED) > most)
			most = get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED);
	}
	EXPECT_EQ(-EAGAIN, ret);
	TH_LOG("%u bytes of messages, %u of %u charged", n, most, sndbuf);
	EXPECT_LT(n, most);
	/* Plus the overhead of the last message */
	EXPECT_GE(sndbuf + 8192, most);
	EXPECT_LT(sndbuf / 2, most);

	take_all(self->fd, &self->peer);
	EXPECT_EQ(0, get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED));
	EXPECT_GT(4096, get_meminfo(self->fd, SK_MEMINFO_FWD_ALLOC));
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, 0));
}

/* The message is all critical, so its budget needs no memory */
TEST_F(buffers, a_budget_takes_no_memory_where_nothing_may_be_missing)
{
	static const u32 sizes[] = { 100, 1000, 3000, 20000 };
	static char buf[20000];
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.policy = DBLP_POLICY_EAGER,
	};
	u32 i, before, without;

	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	begin(self);
	for (i = 0; i < 4; i++) {
		before = get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED);
		info.budget = 0;
		sndinfo_send(self->fd, buf, sizes[i], MSG_DONTWAIT, &info);
		without = get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED) -
			  before;
		before += without;
		info.budget = 20000;
		sndinfo_send(self->fd, buf, sizes[i], MSG_DONTWAIT, &info);
		EXPECT_EQ(without, get_meminfo(self->fd,
					       SK_MEMINFO_WMEM_QUEUED) - before);
	}
}

/*
 * The memory of a message is reused for later messages, but not while a packet refers to it,
 * here in the receive queue of the other end's UDP socket.
 */
#define AGAIN_LEN	(128 << 10)

static void send_pattern(int fd, u32 id, const struct dblp_sndinfo *info)
{
	static char buf[AGAIN_LEN];

	pattern_fill(buf, AGAIN_LEN, 0, SCRIPTED_SEED, id);
	if (sndinfo_send(fd, buf, AGAIN_LEN, MSG_DONTWAIT, info) != AGAIN_LEN)
		die("sending message %u", id);
}

static bool shows(const struct packet *p, u32 *id)
{
	struct dblp_data d = packet_data(p);

	*id = d.msg_id;
	return pattern_check(p->byte + p->len - d.seg_len, d.seg_len, d.offset,
			     SCRIPTED_SEED, d.msg_id) == -1;
}

/*
 * Read packets at the other end, and compare them with the sent bytes. Those that another
 * processor has sent may be late.
 */
static void read_all(struct __test_metadata *_metadata,
		     FIXTURE_DATA(buffers) *self, u32 least)
{
	u64 end = now_ms() + WAIT_MS;
	u32 n[2] = { }, bad = 0, id;
	ssize_t ret;

	for (;;) {
		ret = recv(self->peer.udp, self->p.byte, sizeof(self->p.byte),
			   MSG_DONTWAIT);
		if (ret < 0 && ((n[0] >= least && n[1]) || now_ms() > end))
			break;
		if (ret < 0) {
			sleep_ms(1);
			continue;
		}
		self->p.len = ret;
		if ((self->p.byte[0] & 0xf) != DBLP_PKT_DATA)
			continue;
		bad += !shows(&self->p, &id);
		ASSERT_GT(2, id);
		n[id]++;
	}
	TH_LOG("%u and %u packets", n[0], n[1]);
	EXPECT_EQ(0, bad);
	EXPECT_LE(least, n[0]);
	EXPECT_LT(0, n[1]);
}

static bool settles(FIXTURE_DATA(buffers) *self)
{
	u64 end = now_ms() + WAIT_MS, sent, acked = 0;

	while (get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED) && now_ms() < end) {
		sent = get_info(self->fd).pkts_sent;
		if (sent > acked)
			peer_ack(&self->peer, 0, sent - 1);
		acked = sent;
	}
	return !get_meminfo(self->fd, SK_MEMINFO_WMEM_QUEUED);
}

static void begin_unread(FIXTURE_DATA(buffers) *self)
{
	begin(self);
	set_int(self->peer.udp, SO_RCVBUFFORCE, 16 * MIB);
}

TEST_F(buffers, memory_of_an_acknowledged_message_waits_for_its_packets)
{
	begin_unread(self);
	send_pattern(self->fd, 0, NULL);
	ASSERT_TRUE(settles(self));
	send_pattern(self->fd, 1, NULL);
	read_all(_metadata, self, AGAIN_LEN / 1500);
}

/* A message that is closed early still has packets in flight */
TEST_F(buffers, memory_of_a_closed_message_waits_for_its_packets)
{
	struct dblp_sndinfo info = SNDINFO(100000, EARLY);
	struct dblp_frame close = FRAME(CLOSE, close, .reason = DBLP_REASON_BUDGET,
						      .budget = 100000, .missing_segs = 1);

	begin_unread(self);
	close.close.missing = get_info(self->fd).seg_size;
	send_pattern(self->fd, 0, &info);
	ASSERT_LT(0, get_info(self->fd).pkts_sent);
	send_frame(&self->peer, &self->p, &close);
	send_lossmap(&self->peer, &self->p, 0, 0, 1);
	send_pattern(self->fd, 1, NULL);
	ASSERT_TRUE(settles(self));
	read_all(_metadata, self, 1);
}

/* Memory is not reused before a local receiver has read it either */
TEST_F(buffers, memory_of_a_message_waits_for_its_reader)
{
	static char buf[AGAIN_LEN];
	int client, server;
	u32 id;

	connect_pair(&self->addr, self->listener, &client, &server);
	for (id = 0; id < 8; id++) {
		u64 end = now_ms() + WAIT_MS;

		send_pattern(client, id, NULL);
		while (get_meminfo(client, SK_MEMINFO_WMEM_QUEUED)) {
			ASSERT_GT(end, now_ms());
			sleep_ms(1);
		}
	}
	for (id = 0; id < 8; id++) {
		ASSERT_EQ(AGAIN_LEN, recv(server, buf, AGAIN_LEN, 0));
		EXPECT_EQ(-1, pattern_check(buf, AGAIN_LEN, 0, SCRIPTED_SEED,
					    id));
	}
}

/*
 * Memory cgroups. The test touches its own memory and creates its UDP sockets before it enters
 * one.
 */
#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/dblp-memory"

/* The number after @key, or at the start of the file */
static s64 number_in(const char *path, const char *key)
{
	char text[16384], *at = text;
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
	return number_in(CGROUP "/memory.current", NULL);
}

static s64 charged_sock(void)
{
	return number_in(CGROUP "/memory.stat", "\nsock ");
}

FIXTURE(cgroup) {
	PLAYED_CONNECTION;
	char *buf;
};

FIXTURE_SETUP(cgroup)
{
	netns_new();
	netns_set_mtu(1500);
	self->buf = malloc(16 * MIB);
	ASSERT_NE(NULL, self->buf);
	memset(self->buf, 1, 16 * MIB);
	self->fd = -1;
	file_write(CGROUPS "/cgroup.subtree_control", "+memory");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	self->listener = new_listener("127.0.0.1", 8, &self->addr);
	/* Without queues the window grows, so that many packets are in flight */
	ASSERT_EQ(0, setsockopt(self->listener, SOL_DBLP, DBLP_CONGESTION,
				"sqrt", 4));
	peer_connect(&self->peer, &self->addr);
	peer_handshake(&self->peer);
}

FIXTURE_TEARDOWN(cgroup)
{
	file_write(CGROUPS "/cgroup.procs", "0");
	close(self->fd);
	close(self->listener);
	peer_close(&self->peer);
	free(self->buf);
}

static void accept_in_cgroup(FIXTURE_DATA(cgroup) *self)
{
	file_write(CGROUP "/cgroup.procs", "0");
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

/* 16 MiB are charged to the cgroup once, and returned */
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

TEST_F(cgroup, the_accepting_cgroup_is_charged_once)
{
	accept_in_cgroup(self);
	pays_once(_metadata, self->fd, self->buf);
	self->fd = -1;
}

TEST_F(cgroup, the_connecting_cgroup_is_charged_once)
{
	struct dblp_cookie cookie = { .mac = 42 };
	struct dblp_params ours = params_default();
	struct sockaddr_dblp addr;
	struct peer server;
	int fd;

	peer_listen(&server, "127.0.0.1", &addr);
	file_write(CGROUP "/cgroup.procs", "0");
	fd = new_socket();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &addr));
	ASSERT_TRUE(peer_expect(&server, DBLP_PKT_INIT, WAIT_MS));
	server.scid = dblp_get_u64(server.last[DBLP_PKT_INIT].byte +
				   DBLP_HDR_LEN);
	cookie.scid = server.cid;
	make_init_ack(&self->p, &server, &cookie);
	send_packet(&server, &self->p);
	ASSERT_TRUE(peer_expect(&server, DBLP_PKT_COOKIE_ECHO, WAIT_MS));
	make_cookie_ack(&self->p, &server, &ours);
	send_packet(&server, &self->p);
	ASSERT_TRUE(wait_for(fd, POLLOUT, WAIT_MS));
	pays_once(_metadata, fd, self->buf);
}

/*
 * Memory of messages is cached for later ones. The time starts after @since; a value read too
 * late is meaningless.
 */
#define SPARE_MS	100
#define SPARE_MOST	(4 * MIB)
#define TRIES		20

/*
 * Returns the charge less than SPARE_MS after messages are settled; a charge above @most is
 * freed in steps
 */
static s64 left_over(FIXTURE_DATA(cgroup) *self, s64 len, s64 most, u64 *since)
{
	s64 left;
	u32 i;

	for (i = 0; i < TRIES; i++) {
		if (send(self->fd, self->buf, len, MSG_DONTWAIT) != len)
			die("send()");
		*since = take_all(self->fd, &self->peer);
		do {
			left = charged_sock();
		} while (left >= most && now_ms() - *since < SPARE_MS);
		if (now_ms() - *since < SPARE_MS)
			return left;
	}
	die("this machine is too slow");
}

TEST_F(cgroup, some_memory_is_cached_for_a_while)
{
	u64 since, gone;
	s64 left;

	accept_in_cgroup(self);
	left = left_over(self, 2 * MIB, 2 * MIB + MIB / 2, &since);
	EXPECT_LT(2 * MIB - MIB / 8, left);
	EXPECT_GT(2 * MIB + MIB / 2, left);
	left = left_over(self, SPARE_MOST + 2 * MIB, SPARE_MOST + MIB / 2, &since);
	EXPECT_LE(SPARE_MOST, left);
	EXPECT_GT(SPARE_MOST + MIB / 2, left);
	EXPECT_TRUE(falls_to(charged_sock, MIB));
	gone = now_ms() - since;
	TH_LOG("%lld bytes, gone after %llu ms", (long long)left,
	       (unsigned long long)gone);
	EXPECT_LE(SPARE_MS, gone);
	EXPECT_GT(10 * SPARE_MS, gone);
	EXPECT_TRUE(falls_to(charged_sock, 4096));
}

TEST_F(cgroup, cached_memory_is_reused)
{
	s64 again;
	u64 since;
	u32 i;

	accept_in_cgroup(self);
	for (i = 0; i < TRIES; i++) {
		left_over(self, SPARE_MOST, SPARE_MOST + MIB, &since);
		ASSERT_EQ(SPARE_MOST, send(self->fd, self->buf, SPARE_MOST,
					   MSG_DONTWAIT));
		again = charged_sock();
		if (now_ms() - since < SPARE_MS)
			break;
		take_all(self->fd, &self->peer);
	}
	ASSERT_GT(TRIES, i);
	TH_LOG("%lld bytes", (long long)again);
	EXPECT_LE(SPARE_MOST, again);
	EXPECT_GT(SPARE_MOST + MIB, again);
}

TEST_F(cgroup, cached_memory_is_freed_with_the_connection)
{
	u64 since;

	accept_in_cgroup(self);
	EXPECT_LT(MIB, left_over(self, 2 * MIB, 2 * MIB + MIB / 2, &since));
	send_rst(&self->peer, &self->p, self->peer.scid, DBLP_RST_CLOSED, self->peer.cid);
	EXPECT_TRUE(falls_to(charged_sock, 4096));
	EXPECT_EQ(DBLP_STATE_CLOSED, get_info(self->fd).state);
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(falls_to(charged_sock, 0));
}

/* Newer kernels delay changes of fewer than 64 pages per CPU */
#define STAT_LAG	(MIB / 2)

/* Messages received before accept(), and after it */
TEST_F(cgroup, the_accepting_cgroup_is_charged_for_pending_messages)
{
	struct dblp_data d = { .msg_len = MIB };
	u32 n = (MIB + 1399) / 1400;
	s64 early;

	send_data(&self->peer, &self->p, &d, 1400, 0, n / 2, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	EXPECT_EQ(0, charged_sock());
	accept_in_cgroup(self);
	early = charged_sock();
	EXPECT_LE(MIB / 2 - 1400, early);
	EXPECT_LE((s64)get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC),
		  early + STAT_LAG);
	send_data(&self->peer, &self->p, &d, 1400, n / 2, n - n / 2, NULL);
	EXPECT_TRUE(peer_sync(&self->peer));
	TH_LOG("%lld bytes before accept(), %lld after", (long long)early,
	       (long long)charged_sock());
	EXPECT_LE(MIB, charged_sock());
	EXPECT_LE((s64)get_meminfo(self->fd, SK_MEMINFO_RMEM_ALLOC),
		  charged_sock() + STAT_LAG);
	ASSERT_EQ(MIB, recv(self->fd, self->buf, 16 * MIB, MSG_DONTWAIT));
	EXPECT_TRUE(falls_to(charged_sock, 4096));
	close(self->fd);
	self->fd = -1;
	EXPECT_TRUE(falls_to(charged_sock, 0));
}

/* Without memory, calls fail and no process is killed */
TEST_F(cgroup, a_full_cgroup_sends_no_more)
{
	/* Sizes of allocations for which the kernel would call the OOM killer */
	static const u32 sizes[] = { 100, 3000, 20000 };
	u32 i, n = 0;
	long ret;
	int max;

	accept_in_cgroup(self);
	file_write(CGROUP "/memory.max", "12M");
	/* Kernels without swap do not have this file */
	if (!access(CGROUP "/memory.swap.max", F_OK))
		file_write(CGROUP "/memory.swap.max", "0");
	max = open(CGROUP "/memory.max", O_WRONLY);
	ASSERT_LE(0, max);
	for (i = 0; i < 10000; i++) {
		ret = RESULT(send(self->fd, self->buf, sizes[i % 3],
				  MSG_DONTWAIT));
		if (ret < 0)
			break;
		n += ret;
	}
	/* Do not limit memory of the test itself from here on */
	EXPECT_EQ(3, write(max, "max", 3));
	close(max);
	TH_LOG("%u bytes, then %ld", n, ret);
	EXPECT_TRUE(ret == -ENOBUFS || ret == -ENOMEM || ret == -EAGAIN);
	EXPECT_LT(4 * MIB, n);
	EXPECT_GT(12 * MIB, n);
	EXPECT_EQ(0, number_in(CGROUP "/memory.events", "oom_kill "));
}

/* The kernel may free some memory of the cgroup later. Returns what the last send() did */
static long send_all_that_fits(FIXTURE_DATA(cgroup) *self)
{
	long ret;

	do
		ret = RESULT(send(self->fd, self->buf, 20000, MSG_DONTWAIT));
	while (ret >= 0);
	return ret;
}

/*
 * Without memory a poller does not spin: the kernel checks ten times per second, and the socket
 * becomes writable when memory is available, without any other event.
 */
#define POLLED_MS	2000
#define LOOKS_MOST	200

TEST_F(cgroup, a_full_cgroup_is_not_writable)
{
	struct pollfd pfd = { .events = POLLOUT };
	long ret, looks = 0;
	u64 end;
	int max;

	accept_in_cgroup(self);
	pfd.fd = self->fd;
	file_write(CGROUP "/memory.max", "12M");
	max = open(CGROUP "/memory.max", O_WRONLY);
	ASSERT_LE(0, max);
	ret = send_all_that_fits(self);
	EXPECT_EQ(-EAGAIN, ret);
	end = now_ms() + POLLED_MS;
	while (now_ms() < end && looks <= LOOKS_MOST) {
		if (poll(&pfd, 1, POLLED_MS) <= 0)
			continue;
		looks++;
		EXPECT_EQ(POLLOUT, pfd.revents);
		ret = send_all_that_fits(self);
		EXPECT_EQ(-EAGAIN, ret);
	}
	EXPECT_EQ(3, write(max, "max", 3));
	close(max);
	TH_LOG("woken %ld times", looks);
	EXPECT_LT(0, looks);
	EXPECT_GE(LOOKS_MOST, looks);
	EXPECT_TRUE(wait_for(self->fd, POLLOUT, WAIT_MS));
	EXPECT_EQ(20000, send(self->fd, self->buf, 20000, MSG_DONTWAIT));
	EXPECT_EQ(0, number_in(CGROUP "/memory.events", "oom_kill "));
}

/* Waiting senders continue when memory is available again */
TEST_F(cgroup, senders_of_a_full_cgroup_wait)
{
	u32 acked = 0;
	pid_t child;
	int status;
	u64 end;

	accept_in_cgroup(self);
	file_write(CGROUP "/memory.max", "12M");
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		u32 i;

		for (i = 0; i < 16; i++)
			if (send(self->fd, self->buf, MIB, 0) != MIB)
				_exit(errno);
		_exit(0);
	}
	file_write(CGROUPS "/cgroup.procs", "0");
	end = now_ms() + WAIT_MS;
	while (!number_in(CGROUP "/memory.events", "max ") && now_ms() < end)
		sleep_ms(10);
	while (!waitpid(child, &status, WNOHANG)) {
		peer_expect(&self->peer, DBLP_PKT_DATA, 10);
		peer_drain(&self->peer);
		if (self->peer.largest > acked) {
			peer_ack_all(&self->peer);
			acked = self->peer.largest;
		}
	}
	EXPECT_EQ(0, status);
	EXPECT_LT(0, number_in(CGROUP "/memory.events", "max "));
	EXPECT_EQ(0, number_in(CGROUP "/memory.events", "oom_kill "));
}

/*
 * Forty users send 32 MiB each on a machine of 1 GiB, to peers that do not read: some get all
 * the memory they request, all get some, and no process is killed.
 */
#define SENDERS		40
#define SENT_EACH	(32 * MIB)
#define PATIENCE_MS	2000

/* Send as an ordinary user; stores the bytes taken, or -errno, in @taken */
static void send_as_nobody(int fd, const char *buf, long *taken)
{
	if (setgid(65534) || setuid(65534))
		die("becoming nobody");
	set_timeout(fd, SO_SNDTIMEO, PATIENCE_MS);
	set_u32(fd, DBLP_PARTIAL_SEND, 1);
	*taken = RESULT(send(fd, buf, SENT_EACH, 0));
}

TEST(many_senders_do_not_exhaust_memory)
{
	s64 kills = number_in("/proc/vmstat", "\noom_kill ");
	s64 ram = number_in("/proc/meminfo", "MemTotal:") * 1024;
	s64 before = pages_of_all(), most = 0, now;
	int udp[SENDERS], fd[SENDERS], status, listener;
	struct sockaddr_dblp addr;
	static struct peer peer;
	u32 i, all = 0, alive = 0;
	pid_t child[SENDERS];
	long *taken;
	char *buf;

	netns_new();
	buf = noise_new(SENT_EACH);
	taken = mmap(NULL, sizeof(*taken) * SENDERS, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, taken);
	listener = new_listener("127.0.0.1", SENDERS, &addr);
	for (i = 0; i < SENDERS; i++) {
		fd[i] = peer_join(&peer, &addr, listener);
		ASSERT_LE(0, fd[i]);
		udp[i] = peer.udp;
	}
	for (i = 0; i < SENDERS; i++) {
		child[i] = fork();
		ASSERT_LE(0, child[i]);
		if (!child[i]) {
			send_as_nobody(fd[i], buf, &taken[i]);
			_exit(0);
		}
	}
	for (i = 0; i < SENDERS; i++) {
		while (!waitpid(child[i], &status, WNOHANG)) {
			now = (pages_of_all() - before) * getpagesize();
			most = now > most ? now : most;
			sleep_ms(5);
		}
		alive += WIFEXITED(status) && !WEXITSTATUS(status);
		all += taken[i] == SENT_EACH;
		EXPECT_LT(0, taken[i]);
	}
	TH_LOG("%u took all, at most %lld of %lld bytes charged", all,
	       (long long)most, (long long)ram);
	EXPECT_EQ(SENDERS, alive);
	EXPECT_LT(0, all);
	EXPECT_GT(SENDERS, all);
	EXPECT_GT(ram / 4, most);
	EXPECT_LT(ram / 16, most);
	EXPECT_EQ(kills, number_in("/proc/vmstat", "\noom_kill "));

	/* Queued messages are freed when their senders end */
	for (i = 0; i < SENDERS; i++) {
		set_linger(fd[i], 1, 0);
		close(fd[i]);
		close(udp[i]);
	}
}

/* Is the family under memory pressure? */
static bool under_pressure(void)
{
	char line[256], word[8];
	FILE *f = fopen("/proc/net/protocols", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "DBLP %*s %*s %*s %7s", word) == 1) {
			fclose(f);
			return !strcmp(word, "yes");
		}
	die("no DBLP in /proc/net/protocols");
}

/* Unread messages that hold more memory than the limit of no pressure */
struct shortage {
	int mem;
	int to;
	int at;
	char limits[64];
};

/* The limits are in the first network namespace only: call before netns_new() */
static struct shortage shortage_prepare(void)
{
	struct shortage s = {
		.mem = open("/proc/sys/net/dblp/mem", O_RDWR | O_CLOEXEC),
	};

	if (read(s.mem, s.limits, sizeof(s.limits) - 1) <= 0)
		die("net.dblp.mem");
	return s;
}

static void shortage_begin(struct shortage *s, const struct sockaddr_dblp *addr,
			   int listener)
{
	char *buf = noise_new(8 * MIB);

	connect_pair(addr, listener, &s->to, &s->at);
	if (pwrite(s->mem, "16 32 99999\n", 12, 0) != 12 ||
	    send(s->to, buf, 8 * MIB, 0) != 8 * MIB || !under_pressure())
		die("no memory pressure");
	free(buf);
}

/* End the pressure; the unread messages must be intact */
static void shortage_end(struct shortage *s)
{
	ssize_t len = strlen(s->limits);
	char *buf = noise_new(8 * MIB);

	if (pwrite(s->mem, s->limits, len, 0) != len)
		die("the limits of memory stay as they are");
	set_timeout(s->at, SO_RCVTIMEO, WAIT_MS);
	if (recv(s->at, buf, 8 * MIB, 0) != 8 * MIB)
		die("what was sent before memory was short");
	free(buf);
	close(s->to);
	close(s->at);
	close(s->mem);
}

/* A message sent under pressure is taken in pieces */
TEST(senders_continue_under_memory_pressure)
{
	struct shortage s = shortage_prepare();
	struct sockaddr_dblp addr;
	int listener, to, at;
	pid_t child;
	char *buf;

	netns_new();
	buf = noise_new(MIB);
	listener = new_listener("127.0.0.1", 2, &addr);
	connect_pair(&addr, listener, &to, &at);
	set_timeout(at, SO_RCVTIMEO, WAIT_MS);
	shortage_begin(&s, &addr, listener);
	child = fork();
	if (!child)
		_exit(send(to, buf, MIB, 0) != MIB);
	EXPECT_EQ(MIB, recv(at, buf, MIB, 0));
	EXPECT_TRUE(under_pressure());
	shortage_end(&s);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Credit for a message in addition to its bytes, see FLOW */
#define MSG_COST	1024

/* Request @wanted bytes of credit; returns the unused credit */
static u64 credit_left(struct peer *peer, u64 used, u64 wanted)
{
	memset(&peer->flow, 0, sizeof(peer->flow));
	while (!peer->flow.type)
		if (!peer_ask(peer, used + wanted) ||
		    !peer_expect(peer, DBLP_PKT_CTRL, WAIT_MS))
			die("no credit");
	peer_ack_all(peer);
	return peer->flow.flow.max_data - used;
}

/*
 * Under memory pressure the credit shrinks, but in the end suffices for a message of any size.
 * Later the full credit is given again, if the peer requests it.
 */
TEST(credit_is_minimal_under_memory_pressure)
{
	struct shortage s = shortage_prepare();
	struct dblp_data d = { .msg_len = 8000 };
	struct sockaddr_dblp addr;
	static struct packet p;
	u64 used = 0, all, left;
	int i, listener, fd;
	struct peer peer;
	char buf[8000];

	netns_new();
	netns_set_mtu(1500);
	listener = new_listener("127.0.0.1", 2, &addr);
	shortage_begin(&s, &addr, listener);
	set_int(listener, SO_RCVBUF, 128 << 10);
	fd = peer_join(&peer, &addr, listener);
	ASSERT_LE(0, fd);
	all = peer.theirs.window;
	left = credit_left(&peer, 0, all);
	EXPECT_EQ(all, left);
	for (i = 0; i < 100; i++) {
		while (left < 8000 + MSG_COST)
			left = credit_left(&peer, used,
					   8000 + MSG_COST);
		d.msg_id = i;
		send_data(&peer, &p, &d, 1000, 0, 8, NULL);
		ASSERT_EQ(8000, recv(fd, buf, sizeof(buf), 0));
		used += 8000 + MSG_COST;
		left -= 8000 + MSG_COST;
		peer_drain(&peer);
		peer_ack_all(&peer);
	}
	left = credit_left(&peer, used, 0);
	TH_LOG("%llu bytes of credit, later %llu", all, left);
	EXPECT_GT(all / 2, left);

	EXPECT_TRUE(under_pressure());
	shortage_end(&s);
	EXPECT_EQ(all, credit_left(&peer, used, all));
}

/* Segments per LOSSMAP frame */
#define MAP_SEGS	(32 * DBLP_LOSSMAP_WORDS_MAX)

/* A CLOSE whose loss map takes more than a page, which is refused when the budget is raised */
TEST(a_raised_budget_closes_its_message_when_there_is_memory)
{
	struct dblp_data d = { .msg_len = 30 * MAP_SEGS * 256, .policy = DBLP_POLICY_EAGER };
	struct dblp_frame f = FRAME(BUDGET, budget, .ppm = DBLP_PPM);
	struct shortage s = shortage_prepare();
	struct sockaddr_dblp addr;
	static struct packet p;
	struct peer peer;
	int listener, fd;

	netns_new();
	netns_set_mtu(1500);
	listener = new_listener("127.0.0.1", 2, &addr);
	set_int(listener, SO_RCVBUFFORCE, 64 * MIB);
	fd = peer_join(&peer, &addr, listener);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(peer_ask(&peer, d.msg_len + MSG_COST));
	send_one(&peer, &p, &d, 256, NULL);
	EXPECT_TRUE(peer_sync(&peer));
	shortage_begin(&s, &addr, listener);
	ASSERT_EQ(9, pwrite(s.mem, "16 32 33\n", 9, 0));
	/* A sender repeats the frame if it is refused */
	send_frame(&peer, &p, &f);
	EXPECT_TRUE(peer_sync(&peer));
	send_frame(&peer, &p, &f);
	EXPECT_TRUE(peer_sync(&peer));
	EXPECT_EQ(0, peer.n_close);
	shortage_end(&s);
	EXPECT_TRUE(wait_for(fd, POLLIN, WAIT_MS));
}

#define IDLE		200
#define LATER		40

/* Let many idle sockets reduce the share of each */
static void share_with_many(struct shortage *s, int *idle)
{
	char limits[64];
	int i, len;

	for (i = 0; i < IDLE; i++)
		idle[i] = new_socket();
	len = snprintf(limits, sizeof(limits), "16 32 %lld\n",
		       (long long)pages_of_all() + 1000);
	if (pwrite(s->mem, limits, len, 0) != len)
		die("the limits of memory stay as they are");
}

/*
 * Acknowledged segments of later messages can be neither dropped nor read: a receiver whose
 * share they use up must still accept the next message.
 */
TEST(the_next_message_passes_under_memory_pressure)
{
	struct shortage s = shortage_prepare();
	struct dblp_data d = { .msg_len = 8000 };
	struct sockaddr_dblp addr;
	static struct packet p;
	int listener, fd, i, idle[IDLE];
	static char buf[8000];
	struct peer peer;
	u64 dropped;

	netns_new();
	netns_set_mtu(1500);
	listener = new_listener("127.0.0.1", 2, &addr);
	fd = peer_join(&peer, &addr, listener);
	ASSERT_LE(0, fd);
	set_timeout(fd, SO_RCVTIMEO, WAIT_MS);
	for (d.msg_id = 1; d.msg_id <= LATER; d.msg_id++)
		send_data(&peer, &p, &d, 1000, 0, 8, NULL);
	EXPECT_TRUE(peer_sync(&peer));
	shortage_begin(&s, &addr, listener);
	share_with_many(&s, idle);

	dropped = mib("DropMemory");
	send_data(&peer, &p, &d, 1000, 0, 8, NULL);
	EXPECT_TRUE(peer_sync(&peer));
	EXPECT_LT(dropped, mib("DropMemory"));
	d.msg_id = 0;
	send_data(&peer, &p, &d, 1000, 0, 8, NULL);
	for (i = 0; i <= LATER; i++)
		EXPECT_EQ(8000, recv(fd, buf, sizeof(buf), 0));
	EXPECT_TRUE(under_pressure());

	for (i = 0; i < IDLE; i++)
		close(idle[i]);
	shortage_end(&s);
}

TEST_HARNESS_MAIN
