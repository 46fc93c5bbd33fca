// SPDX-License-Identifier: GPL-2.0-only
/*
 * Held memory is charged. For each state in which a socket holds memory, the test brings
 * dozens of connections into it. The decrease of free memory is what they hold, and the
 * increase in the memory cgroup is what they are charged. Held memory is never more than a
 * small multiple of the charge, and all of it is freed.
 *
 * The other ends are scripted peers, whose memory is allocated before the measurement, and
 * whose UDP sockets are not in the cgroup. Or they are real: then both ends are in the
 * cgroup, and packets refer to memory of the sender.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define WAIT_MS		10000
#define MIB		(1 << 20)
#define CONNS		40
/* Packets or messages per connection */
#define EACH		300U
#define WIDE		1400U
#define NARROW		256U

/* Limit of held memory: the charge with the rounding of allocations, */
#define HELD_MOST(charged)	((charged) + (charged) / 2)
/* a fixed amount per connection, */
#define FIXED		8192
/* and pages in per-CPU lists of allocators */
#define NOISE		(2 * MIB)

#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/dblp-charged"

/* Sum of the numbers after @key in a file */
static s64 sum_in(const char *path, const char *key)
{
	FILE *f = fopen(path, "r");
	size_t len = strlen(key);
	long long sum = 0;
	char line[512];
	char *at;

	if (!f)
		die("%s", path);
	while (fgets(line, sizeof(line), f)) {
		at = line + strspn(line, " ");
		if (!strncmp(at, key, len))
			sum += atoll(at + len);
	}
	fclose(f);
	return sum;
}

static s64 charged(void)
{
	return sum_in(CGROUP "/memory.stat", "sock ");
}

/* Free memory, including pages in per-CPU lists */
static s64 free_now(void)
{
	return sum_in("/proc/meminfo", "MemFree:") * 1024 +
	       sum_in("/proc/zoneinfo", "count:") * getpagesize();
}

/* Free memory when it no longer changes, that is, after RCU grace periods */
static s64 free_memory(void)
{
	u64 end = now_ms() + WAIT_MS;
	s64 last, now = free_now();

	do {
		last = now;
		sleep_ms(100);
		now = free_now();
	} while (llabs(now - last) > MIB / 8 && now_ms() < end);
	return now;
}

/* @to: the socket at the other end, if it is real */
struct conn {
	int	fd;
	int	to;
	int	udp;
	u64	scid;
	u32	pn;
};

/* How connections get into the state; @peer is a scripted end, @to a real one */
struct state {
	struct packet	*p;
	struct peer	*peer;
	int		fd;
	int		to;
};

FIXTURE(held) {
	struct sockaddr_dblp addr;
	struct conn conn[CONNS];
	struct peer peer;
	struct packet p;
	int listener;
};

FIXTURE_VARIANT(held) {
	void (*build)(struct state *s);
	/* Minimum charge of all connections, bytes */
	s64 least;
	bool unaccepted;
	bool real;
};

static void data(struct state *s, const struct dblp_data *d, u32 seg_size)
{
	send_one(s->peer, s->p, d, seg_size, NULL);
}

/* Send every other segment of a message */
static void half_of(struct state *s, u32 seg_size)
{
	struct dblp_data d = { .msg_len = 2 * EACH * seg_size };

	for (; d.offset < d.msg_len; d.offset += 2 * seg_size)
		data(s, &d, seg_size);
}

static void holes(struct state *s)
{
	half_of(s, WIDE);
}

static void narrow_holes(struct state *s)
{
	half_of(s, NARROW);
}

/* Messages are complete, but not read */
static void unread(struct state *s)
{
	struct dblp_data d = { .msg_len = 100 };

	for (; d.msg_id < EACH; d.msg_id++)
		data(s, &d, 104);
}

/* One segment of each message, and none of the next one to read */
static void half_open(struct state *s)
{
	struct dblp_data d = { .msg_len = 7000 };

	for (d.msg_id = 1; d.msg_id <= EACH; d.msg_id++)
		data(s, &d, NARROW);
}

/* Message IDs are as far apart as the window allows */
static void sparse(struct state *s)
{
	struct dblp_data d = { .msg_len = 7000 };

	for (d.msg_id = 13; d.msg_id < 13 * EACH; d.msg_id += 13)
		data(s, &d, NARROW);
}

static void zero_maps(struct state *s)
{
	struct dblp_data d = { .msg_len = 8 * MIB };
	static const u32 map[] = { 1, 0, 0, 0, 0, 0, 0, 0 };
	u32 i;

	for (i = 0; i < EACH; i++) {
		d.offset = i * 32 * NARROW;
		send_zeromap(s->peer, s->p, &d, NARROW, NULL, map, 8);
	}
}

static void duplicates(struct state *s)
{
	struct dblp_data d = { .msg_len = 100 * WIDE };
	u32 i;

	for (i = 0; i < EACH; i++)
		data(s, &d, WIDE);
}

/* Messages are closed early and read; the CLOSE is not acknowledged */
static void closes(struct state *s)
{
	struct dblp_data d = {
		.msg_len = 2 * NARROW, .budget = DBLP_PPM / 2,
		.policy = DBLP_POLICY_EAGER,
	};
	char buf[2 * NARROW];

	for (; d.msg_id < EACH; d.msg_id++) {
		data(s, &d, NARROW);
		if (!wait_for(s->fd, POLLIN, WAIT_MS) ||
		    recv(s->fd, buf, sizeof(buf), 0) != sizeof(buf))
			die("message %u is not closed", d.msg_id);
		peer_drain(s->peer);
	}
}

/* Each PING is answered by a packet, which is not acknowledged */
static void pings(struct state *s, u32 n, u32 lost)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };

	for (; n; n--, s->peer->pn += lost)
		send_frame(s->peer, s->p, &ping);
}

static void ring(struct state *s)
{
	pings(s, 4 * EACH, 0);
}

/* Every other packet is lost: fewer ranges than the ring holds without growing */
static void ranges(struct state *s)
{
	pings(s, 40, 1);
	/* A small charge may not be in the statistics of the cgroup yet */
	if (!peer_sync(s->peer) ||
	    get_meminfo(s->fd, SK_MEMINFO_RMEM_ALLOC) < 1024)
		die("ranges are not charged");
}

static void send_each(struct state *s, const void *buf, u32 len, u32 n)
{
	for (; n; n--)
		if (send(s->fd, buf, len, MSG_DONTWAIT) != (ssize_t)len)
			die("send()");
}

static void unacknowledged(struct state *s)
{
	static const char buf[100] = { 1 };

	send_each(s, buf, sizeof(buf), EACH);
}

static void large(struct state *s)
{
	static const char buf[MIB / 2] = { 1 };

	set_u32(s->fd, DBLP_ELIDE, 0);
	send_each(s, buf, sizeof(buf), 1);
}

/* Messages are acknowledged, reports are not read */
static void reports(struct state *s)
{
	static const char buf[100] = { 1 };
	u64 end = now_ms() + WAIT_MS;
	u32 acked = 0;

	set_u32(s->fd, DBLP_NOTIFY, 1);
	send_each(s, buf, sizeof(buf), EACH);
	while (get_meminfo(s->fd, SK_MEMINFO_WMEM_QUEUED)) {
		if (now_ms() > end)
			die("nothing more comes");
		peer_drain(s->peer);
		if (s->peer->largest > acked)
			peer_ack_all(s->peer);
		acked = s->peer->largest;
	}
}

/* The budget of messages in flight changes, so that BUDGET frames are queued */
static void budgets(struct state *s)
{
	struct dblp_frame flow = FRAME(FLOW, flow, .max_msg = 1 << 20, .max_data = 1ULL << 40);

	set_u32(s->fd, DBLP_BUDGET, DBLP_PPM);
	send_frame(s->peer, s->p, &flow);
	unacknowledged(s);
	set_u32(s->fd, DBLP_BUDGET, DBLP_PPM / 2);
}

/* Send packets from pages that the test then unmaps: @size bytes per packet */
static void from_pages(struct state *s, size_t size, u32 n)
{
	struct dblp_data d = { .msg_len = 2 * n * WIDE };
	size_t room = 2 * size;
	u8 *map, *at;

	for (; n; n--, d.offset += 2 * WIDE) {
		map = mmap(NULL, room, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (map == MAP_FAILED)
			die("mmap()");
		/* Start of a page of this size */
		at = map + (-(uintptr_t)map & (size - 1));
		if (size > (size_t)getpagesize())
			madvise(at, size, MADV_HUGEPAGE);
		make_data(s->p, s->peer, &d, WIDE, NULL);
		splice_train(s->peer, at, s->p, 1);
		munmap(map, room);
	}
}

static void pages(struct state *s)
{
	from_pages(s, getpagesize(), EACH);
}

static void huge_pages(struct state *s)
{
	from_pages(s, 2 * MIB, 10);
}

/* Wait until the sender has nothing left: only the receiver holds memory */
static void sent(struct state *s, const void *buf, u32 len, u32 n)
{
	u64 end;

	for (; n; n--)
		if (send(s->to, buf, len, 0) != (ssize_t)len)
			die("send()");
	end = now_ms() + WAIT_MS;
	while (get_meminfo(s->to, SK_MEMINFO_WMEM_QUEUED)) {
		if (now_ms() > end)
			die("a message is not acknowledged");
		sleep_ms(1);
	}
}

static void only_ones(struct state *s)
{
	static const char buf[600] = { 1 };

	sent(s, buf, sizeof(buf), EACH);
}

/* Nearly all of each allocation is zero and not sent */
static void mostly_zero(struct state *s)
{
	static char buf[2 * MIB];
	u32 i;

	for (i = 0; i < sizeof(buf); i += 32 << 10)
		buf[i] = 1;
	sent(s, buf, sizeof(buf), 2);
}

/* Or it is abandoned because the message is closed */
static void abandoned(struct state *s)
{
	static char buf[30 << 10];

	memset(buf, 1, sizeof(buf));
	set_u32(s->to, DBLP_CLOSE_POLICY, DBLP_POLICY_EAGER);
	set_u32(s->to, DBLP_BUDGET, DBLP_PPM / 100 * 95);
	sent(s, buf, sizeof(buf), EACH / 3);
}

/* No byte is missing */
static void dense(struct state *s)
{
	static char buf[MIB];

	memset(buf, 1, sizeof(buf));
	sent(s, buf, sizeof(buf), 1);
}

#define STATE(name, ...) \
	FIXTURE_VARIANT_ADD(held, name) { .build = name, __VA_ARGS__ }

#define BYTES(each)	((s64)CONNS * EACH * (each))

STATE(holes, .least = BYTES(WIDE));
STATE(narrow_holes, .least = BYTES(NARROW));
STATE(unread, .least = BYTES(256 + 100));
STATE(half_open, .least = BYTES(256 + NARROW));
STATE(sparse, .least = BYTES(256 + NARROW));
STATE(zero_maps, .least = BYTES(256));
STATE(duplicates, .least = 0);
STATE(closes, .least = BYTES(512));
STATE(ring, .least = BYTES(4 * 48));
STATE(ranges, .least = 0);
STATE(unacknowledged, .least = BYTES(400));
STATE(large, .least = CONNS * (MIB / 2));
STATE(reports, .least = BYTES(300));
STATE(budgets, .least = BYTES(400));
STATE(pages, .least = BYTES(WIDE));
STATE(huge_pages, .least = CONNS * 10 * WIDE);
STATE(only_ones, .least = BYTES(600), .real = true);
STATE(mostly_zero, .least = CONNS * 128 * 1024, .real = true);
STATE(abandoned, .least = BYTES(1024 / 3), .real = true);
STATE(dense, .least = CONNS * MIB, .real = true);
FIXTURE_VARIANT_ADD(held, unaccepted) {
	.build = holes, .least = BYTES(WIDE), .unaccepted = true,
};

/* Accept connections in order */
static void accept_all(FIXTURE_DATA(held) *self)
{
	u32 i;

	for (i = 0; i < CONNS; i++) {
		self->conn[i].fd = accept(self->listener, NULL, NULL);
		if (self->conn[i].fd < 0)
			die("accept()");
	}
}

static void connect_played(FIXTURE_DATA(held) *self, struct conn *c)
{
	peer_connect(&self->peer, &self->addr);
	peer_handshake(&self->peer);
	if (!peer_ask(&self->peer, self->peer.theirs.window))
		die("no credit");
	*c = (struct conn){ -1, -1, self->peer.udp, self->peer.scid,
			    self->peer.pn };
}

static void connect_real(FIXTURE_DATA(held) *self, struct conn *c)
{
	*c = (struct conn){ .fd = -1, .udp = -1, .to = new_socket() };
	if (connect_to(c->to, &self->addr))
		die("connect()");
}

FIXTURE_SETUP(held)
{
	struct conn *c;

	netns_new();
	netns_set_mtu(1500);
	file_write(CGROUPS "/cgroup.subtree_control", "+memory");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	memset(&self->peer, 1, sizeof(self->peer));
	memset(&self->p, 1, sizeof(self->p));
	/* Unaccepted connections are charged to the listener */
	file_write(CGROUP "/cgroup.procs", "0");
	self->listener = new_listener("127.0.0.1", CONNS, &self->addr);
	if (!variant->real)
		file_write(CGROUPS "/cgroup.procs", "0");
	for (c = self->conn; c < self->conn + CONNS; c++)
		if (variant->real)
			connect_real(self, c);
		else
			connect_played(self, c);
	file_write(CGROUP "/cgroup.procs", "0");
	if (!variant->unaccepted)
		accept_all(self);
}

FIXTURE_TEARDOWN(held)
{
	file_write(CGROUPS "/cgroup.procs", "0");
}

static void build(FIXTURE_DATA(held) *self, struct conn *c,
		  void (*how)(struct state *s))
{
	struct state s = {
		.p = &self->p, .peer = &self->peer, .fd = c->fd, .to = c->to,
	};

	if (c->to >= 0) {
		how(&s);
		return;
	}
	self->peer.udp = c->udp;
	self->peer.scid = c->scid;
	self->peer.pn = c->pn;
	memset(self->peer.acked, 0, sizeof(self->peer.acked));
	self->peer.largest = 0;
	self->peer.came.room = 0;
	how(&s);
	if (!peer_sync(&self->peer))
		die("a connection is gone");
}

static void close_all(FIXTURE_DATA(held) *self)
{
	u32 i;

	for (i = 0; i < CONNS; i++) {
		set_linger(self->conn[i].fd, 1, 0);
		close(self->conn[i].fd);
		close(self->conn[i].to);
		close(self->conn[i].udp);
	}
	close(self->listener);
}

TEST_F_TIMEOUT(held, charged, 120)
{
	const char *debug = getenv("DBLP_DEBUG");
	u64 end;
	s64 before, held, paid, sock;
	u32 i;

	sock = charged();
	held = free_memory();
	for (i = 0; i < CONNS; i++)
		build(self, &self->conn[i], variant->build);
	/* Memory of sent messages is cached, see DBLP_CHUNK_CACHE_NS */
	before = held;
	end = now_ms() + WAIT_MS;
	do {
		sleep_ms(20);
		held = before - free_memory();
		paid = charged() - sock;
	} while (held > HELD_MOST(paid) + CONNS * FIXED + NOISE &&
		 now_ms() < end);
	TH_LOG("%lld bytes charged, %lld held: ratio %.2f", (long long)paid,
	       (long long)held,
	       (double)(held - CONNS * FIXED - NOISE) / paid);
	EXPECT_LE(variant->least, paid);
	/* The debug kernel has more overhead, and keeps freed memory */
	if (!debug || *debug == '0')
		EXPECT_GE(HELD_MOST(paid) + CONNS * FIXED + NOISE, held);

	if (variant->unaccepted)
		accept_all(self);
	EXPECT_LE(variant->least, charged() - sock);
	close_all(self);
	end = now_ms() + WAIT_MS;
	while (charged() && now_ms() < end)
		sleep_ms(20);
	EXPECT_EQ(0, charged());
}

/*
 * SO_RESERVE_MEM
 */
#define RESERVED	(16 * MIB)
/* Maximum deviation of the family's total, which is counted per CPU in batches */
#define UNCOUNTED	(RESERVED / 2 / getpagesize())

static int reserving(int fd)
{
	set_int(fd, SO_RESERVE_MEM, RESERVED);
	return fd;
}

/* In newer kernels, such as 7.3 and 6.12.118, only TCP reserves memory */
static bool only_tcp_reserves(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bytes = RESERVED;
	bool refused = setsockopt(fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes,
				  sizeof(bytes)) && errno == EOPNOTSUPP;

	close(fd);
	return refused;
}

static bool charge_falls_to(s64 most)
{
	u64 end = now_ms() + WAIT_MS;

	while (charged() > most && now_ms() < end)
		sleep_ms(20);
	return charged() <= most;
}

/* A socket in any state loses its reservation on close; an orphan has none */
TEST(a_reservation_is_charged_until_close)
{
	int listener, client[2], server, i;
	struct sockaddr_dblp addr;
	s64 pages;

	netns_new();
	file_write(CGROUPS "/cgroup.subtree_control", "+memory");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	file_write(CGROUP "/cgroup.procs", "0");
	if (only_tcp_reserves()) {
		file_write(CGROUPS "/cgroup.procs", "0");
		SKIP(return, "only TCP reserves memory in this kernel");
	}
	pages = pages_of_all();
	for (i = 0; i < 10; i++) {
		server = reserving(plain_socket());
		EXPECT_EQ(RESERVED, get_int(server, SO_RESERVE_MEM));
		EXPECT_SOON(true, charged() >= RESERVED);
		close(server);
		EXPECT_TRUE(charge_falls_to(0));
	}
	EXPECT_GT(pages + UNCOUNTED, pages_of_all());

	/* A listener, an accepted connection and an unaccepted one */
	listener = reserving(new_listener("127.0.0.1", 8, &addr));
	connect_pair(&addr, listener, &client[0], &server);
	EXPECT_EQ(0, get_int(server, SO_RESERVE_MEM));
	client[1] = new_socket();
	ASSERT_EQ(0, connect_to(client[1], &addr));
	EXPECT_TRUE(charge_falls_to(RESERVED + MIB));
	reserving(server);
	reserving(client[0]);
	EXPECT_SOON(true, charged() >= 3 * RESERVED);
	close(listener);
	EXPECT_TRUE(charge_falls_to(2 * RESERVED + MIB));

	/* An orphan with unacknowledged data */
	netem("loss 100%");
	EXPECT_EQ(5, send(client[0], "still", 5, 0));
	close(client[0]);
	close(client[1]);
	EXPECT_TRUE(charge_falls_to(RESERVED + MIB));
	EXPECT_EQ(2, socket_count());
	set_linger(server, 1, 0);
	close(server);
	EXPECT_TRUE(charge_falls_to(MIB));
	EXPECT_EQ(1, socket_count());
	run("tc qdisc del dev lo root");
	EXPECT_TRUE(charge_falls_to(0));
	EXPECT_GT(pages + UNCOUNTED, pages_of_all());
	file_write(CGROUPS "/cgroup.procs", "0");
}

TEST_HARNESS_MAIN
