// SPDX-License-Identifier: GPL-2.0-only
/*
 * Floods of packets from unknown senders use no memory, do not keep clients from
 * connecting, and are not amplified.
 */
#define _GNU_SOURCE
#include "lib/hostile.h"
#include "lib/trap.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sys/mman.h>

/*
 * A thread that holds the lock of a listener while it waits for a page fault in the second
 * half of an option's value.
 */
struct locker {
	int		fd;
	struct trap	trap;
	char		*value;
	pthread_t	thread;
};

static void *set_linger_slowly(void *arg)
{
	struct locker *l = arg;

	if (setsockopt(l->fd, SOL_SOCKET, SO_LINGER, l->value,
		       sizeof(struct linger)))
		die("setsockopt(SO_LINGER)");
	return NULL;
}

static void lock_begin(struct locker *l, int fd)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap()");
	memset(at, 0, page);
	l->fd = fd;
	l->trap = trap_set(at + page, page);
	l->value = at + page - sizeof(struct linger) / 2;
	if (pthread_create(&l->thread, NULL, set_linger_slowly, l))
		die("pthread_create()");
	errno = 0;
	if (!wait_for(l->trap.fd, POLLIN, WAIT_MS))
		die("nobody locks the listener");
}

static void lock_end(struct locker *l)
{
	trap_fill(&l->trap);
	pthread_join(l->thread, NULL);
	close(l->trap.fd);
}

static bool mib_reaches(const char *name, u64 value)
{
	u64 end = now_ms() + WAIT_MS;

	while (mib(name) < value && now_ms() < end)
		sleep_ms(10);
	return mib(name) == value;
}

#define FORGED	500

TEST_F(peer, forged_cookies_do_not_wait_for_a_listener)
{
	struct dblp_params ours = params_default();
	u64 bad = mib("CookieBad");
	struct locker locker;
	struct peer other;
	u32 i;

	peer_connect(&other, &self->addr);
	lock_begin(&locker, self->listener);
	for (i = 0; i < FORGED; i++) {
		other.cookie.scid = 1 + i;
		send_echo(&other, &self->p, &ours);
	}
	/* They are dropped while the lock is held, and none is in the backlog */
	EXPECT_TRUE(mib_reaches("CookieBad", bad + FORGED));
	EXPECT_EQ(0, get_meminfo(self->listener, SK_MEMINFO_BACKLOG));
	lock_end(&locker);
	EXPECT_EQ(bad + FORGED, mib("CookieBad"));
	EXPECT_EQ(2, socket_count());
}

#define CALLERS	600

/* About as many valid cookies as may become connections */
TEST_F(peer, the_backlog_limits_pending_connections)
{
	u64 passive = mib("ConnPassive"), lost = mib("DropMemory");
	u32 backlog = 32, waiting, i;
	struct dblp_params ours = params_default();
	struct peer other, last;
	struct locker locker;

	peer_connect(&other, &self->addr);
	lock_begin(&locker, self->listener);
	for (i = 0; i < CALLERS; i++) {
		other.cid = 1 + i;
		peer_get_cookie(&other);
		send_echo(&other, &self->p, &ours);
	}
	waiting = get_meminfo(self->listener, SK_MEMINFO_BACKLOG);
	EXPECT_LT(0, waiting);
	EXPECT_GE((backlog + 1) * 4096, waiting);
	EXPECT_LT(lost, mib("DropMemory"));
	lock_end(&locker);
	/* The backlog admits one more than its number, as for TCP */
	EXPECT_GE(passive + backlog + 1, mib("ConnPassive"));
	EXPECT_EQ(0, get_meminfo(self->listener, SK_MEMINFO_BACKLOG));

	while (accept4(self->listener, NULL, NULL, SOCK_CLOEXEC) >= 0 &&
	       wait_for(self->listener, POLLIN, 0))
		;
	peer_connect(&last, &self->addr);
	peer_handshake(&last);
	EXPECT_TRUE(wait_for(self->listener, POLLIN, WAIT_MS));
}

/*
 * Packets and their answers
 */
struct question {
	const char *what;
	struct packet p;
	u8 answer;
};

/* Send a packet of an unknown sender, and receive its answer, if any */
static void ask(struct __test_metadata *_metadata, struct peer *peer,
		const struct question *q)
{
	u32 got = 0, i;

	peer_drain(peer);
	for (i = 0; i < __DBLP_PKT_MAX; i++)
		peer->n[i] = peer->last[i].len = 0;
	send_packet(peer, &q->p);
	if (q->answer)
		EXPECT_TRUE(peer_expect(peer, q->answer, WAIT_MS));
	peer_drain(peer);
	for (i = 0; i < __DBLP_PKT_MAX; i++) {
		EXPECT_GE(1, peer->n[i]);
		got += peer->last[i].len;
	}
	TH_LOG("%s: %u bytes, answered by %u", q->what, q->p.len, got);
	EXPECT_EQ(!q->answer, !got);
	EXPECT_GE(q->p.len, got);
}

/* Before the sender's address is validated, an answer is not longer than its packet */
TEST_F(peer, answers_to_unknown_senders_are_not_longer)
{
	struct question init = { "INIT", .answer = DBLP_PKT_INIT_ACK };
	struct question old = { "INIT of another version",
				.answer = DBLP_PKT_VERSION };
	struct question echo = { "COOKIE-ECHO, forged", .answer = 0 };
	struct question data = { "DATA, unknown", .answer = DBLP_PKT_RST };
	struct question ctrl = { "CTRL, unknown", .answer = DBLP_PKT_RST };
	struct question ack = { "COOKIE-ACK, unknown", .answer = DBLP_PKT_RST };
	struct question refused = { "INIT, nobody listens",
				    .answer = DBLP_PKT_RST };
	struct question echoed = { "COOKIE-ECHO, nobody listens",
				   .answer = DBLP_PKT_RST };
	struct dblp_frame ecn = { .type = DBLP_FRAME_ECN };
	struct dblp_params ours = params_default();
	struct dblp_data d = { .msg_len = 1 };
	struct packet train[64];
	struct peer other;
	u32 i;

	peer_connect(&other, &self->addr);
	other.scid = 12345;
	make_init(&init.p, other.cid);
	ask(_metadata, &other, &init);
	make_init(&old.p, other.cid);
	poke(&old.p, 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_INIT);
	ask(_metadata, &other, &old);
	other.cookie.mac ^= 1;
	make_echo(&echo.p, &other, &ours);
	ask(_metadata, &other, &echo);
	make_data(&data.p, &other, &d, 1, NULL);
	ask(_metadata, &other, &data);
	make_ctrl(&ctrl.p, &other, &ecn);
	ask(_metadata, &other, &ctrl);
	make_cookie_ack(&ack.p, &other, &ours);
	ask(_metadata, &other, &ack);

	/* Packets in one buffer get no more answers than single ones */
	for (i = 0; i < 64; i++)
		make_init(&train[i], 1 + i);
	other.n[DBLP_PKT_INIT_ACK] = 0;
	send_train(&other, train, 64);
	for (i = 0; i < 64; i++)
		EXPECT_TRUE(peer_expect(&other, DBLP_PKT_INIT_ACK, WAIT_MS));
	peer_drain(&other);
	EXPECT_EQ(64, other.n[DBLP_PKT_INIT_ACK]);

	close(self->listener);
	self->listener = -1;
	make_init(&refused.p, other.cid);
	ask(_metadata, &other, &refused);
	make_echo(&echoed.p, &other, &ours);
	ask(_metadata, &other, &echoed);
}

/* Open a UDP socket at an unused address of a local network */
static int udp_from(bool v4, u32 host, const struct sockaddr_dblp *to)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6 }, sin6 = {
		.sin6_family = AF_INET6, .sin6_port = to->sdblp_port,
	};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_dblp a;
	char text[64];
	int on = 1;

	if (v4)
		snprintf(text, sizeof(text), "127.1.0.%u", host);
	else
		snprintf(text, sizeof(text), "fd00:0:0:%x::1", host);
	addr_parse(&a, text, 0);
	memcpy(&from.sin6_addr, &a.sdblp_addr, 16);
	memcpy(&sin6.sin6_addr, &to->sdblp_addr, 16);
	if (fd < 0 || setsockopt(fd, SOL_IPV6, IPV6_FREEBIND, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(fd, (struct sockaddr *)&sin6, sizeof(sin6)))
		die("UDP from %s", text);
	return fd;
}

static bool is_reset(int fd, const struct packet *p)
{
	char answer[DBLP_RST_LEN + 1];

	return send(fd, p->byte, p->len, 0) == p->len &&
	       wait_for(fd, POLLIN, 1000) &&
	       recv(fd, answer, sizeof(answer), 0) == DBLP_RST_LEN;
}

#define BURST	2000

/* Resets are rate-limited per address, so that addresses do not compete */
TEST_F(peer, resets_are_limited_per_address)
{
	bool v4 = is_v4(&self->addr);
	struct dblp_data d = { .msg_len = 100 };
	struct peer greedy = {};
	struct packet train[64];
	u32 i, round, reset = 0;
	u64 before;
	int fd;

	if (!v4)
		run("ip -6 route add local fd00::/16 dev lo");
	self->peer.scid ^= 1;
	make_data(&self->p, &self->peer, &d, 100, NULL);
	self->peer.scid ^= 1;
	for (i = 0; i < 64; i++)
		train[i] = self->p;
	greedy.udp = udp_from(v4, 1, &self->addr);
	for (round = 0; round < 20; round++) {
		before = mib("RstSent");
		for (i = 0; i < BURST; i += 64)
			send_train(&greedy, train, 64);
		if (mib("RstSent") < before + BURST)
			break;
	}
	/* Sources are distinguished by a hash, which may collide */
	for (i = 2; i < 6; i++) {
		fd = udp_from(v4, i, &self->addr);
		reset += is_reset(fd, &self->p);
		close(fd);
	}
	EXPECT_LE(3, reset);
}

/*
 * The flood
 */
#define BATCH		64
#define PACKETS		50000
#define SINK_PORT	9

struct spoofer {
	struct sockaddr_dblp	to;
	bool			v4;
	int			fd;
	u64			random;
	u8			byte[BATCH][256];
};

static void spoofer_open(struct spoofer *s, const struct sockaddr_dblp *to)
{
	s->to = *to;
	s->v4 = is_v4(to);
	s->random = 1;
	s->fd = socket(s->v4 ? AF_INET : AF_INET6, SOCK_RAW, IPPROTO_RAW);
	if (s->fd < 0)
		die("raw socket");
}

/* Add headers with a random source to @p; returns the length */
static u32 spoof(struct spoofer *s, u8 *at, const struct packet *p)
{
	u32 ip_len = s->v4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	u32 len = sizeof(struct udphdr) + p->len, sum;
	struct udphdr udp = {
		.source = htons(SINK_PORT), .dest = s->to.sdblp_port,
		.len = htons(len),
	};
	const u8 *to = (const u8 *)&s->to.sdblp_addr;

	if (s->v4) {
		struct iphdr ip = {
			.version = 4, .ihl = 5, .ttl = 64,
			.protocol = IPPROTO_UDP,
			.saddr = htonl(127 << 24 | (random_next(&s->random) &
						    0xfffffe) | 1),
		};

		memcpy(&ip.daddr, to + 12, 4);
		memcpy(at, &ip, sizeof(ip));
	} else {
		struct ip6_hdr ip = {
			.ip6_plen = htons(len), .ip6_nxt = IPPROTO_UDP,
			.ip6_hlim = 64,
		};
		/* IPv6 has a neighbour entry on lo for each source, so use few sources */
		u32 net[3] = { random_next(&s->random) % 1024 };

		ip.ip6_vfc = 6 << 4;
		ip.ip6_src.s6_addr[0] = 0xfd;
		memcpy(ip.ip6_src.s6_addr + 4, net, sizeof(net));
		memcpy(&ip.ip6_dst, to, 16);
		sum = inet_sum(IPPROTO_UDP + len, &ip.ip6_src, 32);
		sum = inet_sum(inet_sum(sum, &udp, sizeof(udp)), p->byte,
			       p->len);
		udp.check = inet_checksum(sum) ?: 0xffff;
		memcpy(at, &ip, sizeof(ip));
	}
	memcpy(at + ip_len, &udp, sizeof(udp));
	memcpy(at + ip_len + sizeof(udp), p->byte, p->len);
	return ip_len + len;
}

static void spoof_batch(struct spoofer *s, const struct packet *p)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct mmsghdr m[BATCH] = {};
	struct iovec iov[BATCH];
	u32 i;
	int n;

	memcpy(&six.sin6_addr, &s->to.sdblp_addr, 16);
	memcpy(&four.sin_addr, (u8 *)&s->to.sdblp_addr + 12, 4);
	for (i = 0; i < BATCH; i++) {
		iov[i].iov_base = s->byte[i];
		iov[i].iov_len = spoof(s, s->byte[i], p);
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
		m[i].msg_hdr.msg_name = s->v4 ? (void *)&four : (void *)&six;
		m[i].msg_hdr.msg_namelen = s->v4 ? sizeof(four) : sizeof(six);
	}
	for (i = 0; i < BATCH; i += n) {
		n = sendmmsg(s->fd, m + i, BATCH - i, 0);
		if (n <= 0)
			die("sendmmsg()");
	}
}

/* Kernel memory in kB */
static u64 kernel_kb(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kb;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SUnreclaim: %llu kB", &kb) == 1) {
			fclose(f);
			return kb;
		}
	die("no SUnreclaim");
}

/* A client that connects, sends a message and closes, repeatedly */
struct caller {
	const struct sockaddr_dblp	*addr;
	int				listener;
	volatile bool			stop;
	u32				calls;
	u64				slowest;
	pthread_t			thread;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	int client, server;
	char byte = 0;
	u64 begin;

	while (!c->stop) {
		begin = now_ms();
		connect_pair(c->addr, c->listener, &client, &server);
		if (send(client, &byte, 1, 0) != 1 ||
		    recv(server, &byte, 1, 0) != 1)
			die("a message got lost");
		close(client);
		close(server);
		begin = now_ms() - begin;
		c->slowest = begin > c->slowest ? begin : c->slowest;
		c->calls++;
		sleep_ms(10);
	}
	return NULL;
}

/* Limit of the growth of kernel memory, kB: packets being processed on each CPU */
#define KERNEL_KB	16384

TEST_F_TIMEOUT(peer, a_flood_blocks_no_client_and_takes_no_memory, 900)
{
	struct caller caller = { .addr = &self->addr };
	struct dblp_params ours = params_default();
	const char *count = getenv("FLOOD_PACKETS");
	u32 packets = count ? strtoul(count, NULL, 0) :
		      less_if_slow(PACKETS, 10, "packets"), i, kind = 0;
	struct dblp_data d = { .msg_len = 100 };
	struct sockaddr_in6 any = { .sin6_family = AF_INET6,
				    .sin6_port = htons(SINK_PORT) };
	int sink = socket(AF_INET6, SOCK_DGRAM, 0), size = 1;
	struct spoofer s = {};
	struct packet p[4];
	struct peer stranger;
	u64 before, most = 0;
	cpu_set_t all;

	/* Run the flood on all CPUs */
	memset(&all, 0xff, sizeof(all));
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(all), &all));
	if (!is_v4(&self->addr))
		run("ip -6 route add local fd00::/8 dev lo");
	set_int(sink, SO_RCVBUF, size);
	ASSERT_EQ(0, bind(sink, (struct sockaddr *)&any, sizeof(any)));
	peer_connect(&stranger, &self->addr);
	stranger.scid = 12345;
	make_init(&p[0], stranger.cid);
	stranger.cookie.scid = 4711;
	make_echo(&p[1], &stranger, &ours);
	make_init(&p[2], stranger.cid);
	poke(&p[2], 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_INIT);
	make_data(&p[3], &stranger, &d, 100, NULL);

	caller.listener = self->listener;
	ASSERT_EQ(0, pthread_create(&caller.thread, NULL, call, &caller));
	while (caller.calls < 3)
		sleep_ms(10);
	spoofer_open(&s, &self->addr);
	before = kernel_kb();
	for (i = 0; i < packets; i += BATCH) {
		spoof_batch(&s, &p[kind++ % 4]);
		if (kind % 32 == 0)
			most = kernel_kb() > most ? kernel_kb() : most;
	}
	i = caller.calls;
	most = kernel_kb() > most ? kernel_kb() : most;
	caller.stop = true;
	pthread_join(caller.thread, NULL);
	TH_LOG("%u packets, at most %d kB more, %u clients served in at most %u ms",
	       packets, (int)(most - before), i - 3, (u32)caller.slowest);
	EXPECT_GE(before + KERNEL_KB, most);
	EXPECT_LT(3, i);
	/* A busy machine may drop some packets before they arrive here */
	EXPECT_LT(packets / 2, mib("CookieSent") + mib("CookieBad") +
		  mib("DropVersion") + mib("DropUnknownConn"));
}

TEST_HARNESS_MAIN
