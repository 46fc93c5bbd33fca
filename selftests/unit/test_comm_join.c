// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: joining a communicator, and connections of other processes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test.h"
#include "../lib/ranks.h"
#include <join.h>

TEST(ranks_meet_by_an_address_a_list_or_the_environment)
{
	char tcp[64], file[64], list[32] = "/tmp/test_comm.XXXXXX";
	const char *const how[] = { tcp, file, "env", NULL };
	int i, k, fd = mkstemp(list);
	char port[8];

	ASSERT_LE(0, fd);
	for (k = 0; k < 4; k++) {
		u16 at = free_port();

		snprintf(tcp, sizeof(tcp), "tcp://localhost:%u", at);
		snprintf(file, sizeof(file), "file:%s", list);
		ASSERT_EQ(0, ftruncate(fd, 0));
		/* Invalid lines of any length */
		ASSERT_LT(0, dprintf(fd, "#%0300d\n127.0.0.1:%u\n127.0.0.2:1 # x\n\n[::1]:1 #%0300d\n", 0, at, 0));
		snprintf(port, sizeof(port), "%u", k == 2 ? at - 1 : at);
		setenv("MASTER_ADDR", "127.0.0.1", 1);
		setenv(k == 2 ? "MASTER_PORT" : "DBLP_PORT", port, 1);
		if (k == 2)
			unsetenv("DBLP_PORT");
		/* An IPv6 address beside IPv4 ones works if the host supports both */
		prepare(3, next_epoch(), 1000, run_allreduce);
		for (i = 0; i < 3; i++)
			rank[i].attr.rendezvous = how[k];
		run_all(3);
		expect_good(_metadata, 3);
		if (k == 1)
			EXPECT_NE(NULL, strstr(rank[1].text, "127.0.0.2:"));
		lseek(fd, 0, SEEK_SET);
	}
	close(fd);
	unlink(list);
}

#define SECRET	"000102030405060708090a0b0c0d0e0f"

/*
 * /etc/hosts may name this host 127.0.1.1, while other hosts resolve its name differently
 */
TEST(each_rank_may_use_another_address_of_rank_0)
{
	static const char *const names[] = {
		"unknown.invalid", "127.0.1.1", "localhost", "[::1]", "0.0.0.0",
	};
	char at[5][64];
	u16 port = free_port();
	int i;

	prepare(5, next_epoch(), 1000, run_allreduce);
	for (i = 0; i < 5; i++) {
		snprintf(at[i], sizeof(at[i]), "tcp://%s:%u", names[i], port);
		rank[i].attr.rendezvous = at[i];
	}
	run_all(5);
	expect_good(_metadata, 5);
}

/*
 * A key of an earlier attempt: an address without a listener, or of another
 * communicator
 */
TEST(a_stale_key_does_not_end_an_attempt)
{
	static char at[64];
	char key[64];
	int i, k;

	for (k = 0; k < 2; k++) {
		u16 port = free_port();

		prepare(3, next_epoch(), 1000, run_allreduce);
		snprintf(at, sizeof(at), "127.0.0.1:%u 1", port);
		snprintf(key, sizeof(key), "dblp/%u/0", rank[0].attr.epoch);
		store_set(NULL, key, at, strlen(at));
		for (i = 1; i < 3; i++)
			pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
		/* While the ranks join, the other communicator exists or not */
		snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
		rank[3] = rank[0];
		rank[3].attr.rendezvous = at;
		/* Long enough for one of the two to ask it */
		rank[3].attr.join_ms = 1500;
		rank[3].attr.epoch--;
		if (k) {
			rank_main(&rank[3]);
			EXPECT_EQ(-ETIMEDOUT, rank[3].opened);
		} else {
			usleep(100000);
		}
		pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
		for (i = 0; i < 3; i++)
			pthread_join(rank[i].thread, NULL);
		expect_good(_metadata, 3);
	}
}

TEST(a_rank_0_that_is_reached_and_does_not_answer_is_named_as_such)
{
	struct sockaddr_dblp at = { .sdblp_family = AF_DBLP };
	char text[64];
	struct dblp_comm *comm;
	int listener;

	ASSERT_EQ(0, dblp_addr_parse("127.0.0.1", &at));
	listener = dblp_socket(&at, IPPROTO_TCP);
	ASSERT_EQ(0, dblp_listen(listener, &at));
	ASSERT_EQ(0, dblp_name_of(listener, false, &at));
	prepare(2, next_epoch(), 1000, run_allreduce);
	snprintf(text, sizeof(text), "tcp://127.0.0.1:%u", ntohs(at.sdblp_port));
	rank[1].attr.rendezvous = text;
	rank[1].attr.join_ms = 300;
	EXPECT_EQ(-ETIMEDOUT, dblp_comm_open(&comm, &rank[1].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "no answer from rank 0"))
		TH_LOG("%s", dblp_comm_why(NULL));
	close(listener);
}

static int stale_calls;

/* Closes each connection, as a server of another kind may */
static void *hang_up(void *listener)
{
	int fd;

	while ((fd = accept(*(int *)listener, NULL, NULL)) >= 0) {
		close(fd);
		__atomic_add_fetch(&stale_calls, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* A stale key names another address of this host than the one of rank 0 */
TEST(a_rank_listens_at_the_address_by_which_it_reached_rank_0)
{
	struct sockaddr_dblp own = { .sdblp_family = AF_DBLP };
	char key[64], at[DBLP_ADDR_TEXT + 2];
	int listener, i;
	pthread_t thread;

	if (dblp_device_pick(&own) || dblp_is_loopback(&own))
		SKIP(return, "this host has a loopback address only");
	listener = dblp_socket(&own, IPPROTO_TCP);
	ASSERT_EQ(0, dblp_listen(listener, &own));
	ASSERT_EQ(0, dblp_name_of(listener, false, &own));
	prepare(3, next_epoch(), 1000, run_allreduce);
	rank[0].attr.bind = "127.0.0.1";
	snprintf(key, sizeof(key), "dblp/%u/0", rank[0].attr.epoch);
	dblp_addr_format(&own, at);
	strcat(at, " 1");
	store_set(NULL, key, at, strlen(at));
	pthread_create(&thread, NULL, hang_up, &listener);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	/* The first attempt is over when the second one calls */
	while (__atomic_load_n(&stale_calls, __ATOMIC_SEQ_CST) < 2)
		usleep(1000);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	pthread_create(&rank[2].thread, NULL, rank_main, &rank[2]);
	for (i = 0; i < 3; i++)
		pthread_join(rank[i].thread, NULL);
	expect_good(_metadata, 3);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
}

/* Rank 1 listens at a loopback address, which rank 2 cannot reach */
TEST(no_rank_opens_a_communicator_in_which_an_address_cannot_be_reached)
{
	struct sockaddr_dblp own = { .sdblp_family = AF_DBLP };
	char at[DBLP_ADDR_TEXT + 8] = "tcp://";
	int i;

	if (dblp_device_pick(&own) || dblp_is_loopback(&own))
		SKIP(return, "this host has a loopback address only");
	own.sdblp_port = htons(free_port());
	dblp_addr_format(&own, at + strlen(at));
	prepare(3, next_epoch(), 1000, run_allreduce);
	EACH_RANK(3, r->attr.rendezvous = at);
	rank[1].attr.devices = "lo";
	run_all(3);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-EADDRNOTAVAIL, rank[i].opened);
		EXPECT_NE(NULL, strstr(rank[i].text, "which rank 2 cannot reach")) {
			TH_LOG("rank %d: %s", i, rank[i].text);
		}
	}
}

static bool no_ipv6;
static int n_refused;
/* How often rank 0 has looked up its address */
static int n_lookups;

int __real_dblp_socket(const struct sockaddr_dblp *addr, int protocol);
int __real_dblp_rendezvous(struct dblp_comm *comm, struct dblp_where *where);

int __wrap_dblp_socket(const struct sockaddr_dblp *addr, int protocol)
{
	if (!no_ipv6 || IN6_IS_ADDR_V4MAPPED(&addr->sdblp_addr))
		return __real_dblp_socket(addr, protocol);
	__atomic_add_fetch(&n_refused, 1, __ATOMIC_SEQ_CST);
	return -EAFNOSUPPORT;
}

/* The name of rank 0 has an IPv6 address as well, after that of IPv4 */
int __wrap_dblp_rendezvous(struct dblp_comm *comm, struct dblp_where *where)
{
	int err = __real_dblp_rendezvous(comm, where);

	__atomic_add_fetch(&n_lookups, !comm->rank, __ATOMIC_SEQ_CST);
	if (err || !no_ipv6)
		return err;
	where->addr[1] = where->addr[0];
	where->addr[1].sdblp_addr = in6addr_loopback;
	where->n = 2;
	return 0;
}

TEST(a_host_without_ipv6_waits_for_rank_0_at_its_ipv4_address)
{
	char at[64];
	int i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_allreduce);
	EACH_RANK(2, r->attr.rendezvous = at);
	no_ipv6 = true;
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	while (!__atomic_load_n(&n_refused, __ATOMIC_SEQ_CST))
		usleep(1000);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	for (i = 0; i < 2; i++)
		pthread_join(rank[i].thread, NULL);
	no_ipv6 = false;
	expect_good(_metadata, 2);
}

/* The next messages of joining fail with these errors, as if the network did; 0: none */
static int cuts[4], n_cuts;

int __real_dblp_transfer(int fd, void *buf, size_t len, bool out, uint64_t until);

int __wrap_dblp_transfer(int fd, void *buf, size_t len, bool out, uint64_t until)
{
	if (cuts[n_cuts])
		return cuts[n_cuts++];
	return __real_dblp_transfer(fd, buf, len, out, until);
}

TEST(a_rank_retries_while_rank_0_is_unreachable)
{
	prepare(2, next_epoch(), 1000, run_allreduce);
	cuts[0] = -ETIMEDOUT;
	cuts[1] = -EHOSTUNREACH;
	cuts[2] = -ENETUNREACH;
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(3, n_cuts);
}

static int store_count(void *kv, const char *key, void *v, size_t *n)
{
	++*(int *)kv;
	return -EAGAIN;
}

TEST(a_store_is_asked_at_growing_intervals)
{
	struct dblp_comm *comm;
	int n = 0;

	prepare(2, next_epoch(), 10, run_allreduce);
	rank[1].attr.kv = &n;
	rank[1].attr.kv_get = store_count;
	rank[1].attr.join_ms = 2000;
	EXPECT_EQ(-ETIMEDOUT, dblp_comm_open(&comm, &rank[1].attr));
	/* After 0, 20, 60, 140, 300, 620 and 1120 ms, and at the end */
	EXPECT_GE(9, n);
	EXPECT_LE(2, n);
}

TEST(ranks_and_their_number_come_from_the_environment)
{
	struct dblp_comm_attr attr;

	prepare(1, next_epoch(), 10, run_allreduce);
	rank[0].attr.rank = DBLP_COMM_RANK_ENV;
	rank[0].attr.nranks = DBLP_COMM_RANK_ENV;
	attr = rank[0].attr;
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	setenv("PMI_RANK", "0", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
	run_all(1);
	expect_good(_metadata, 1);
	setenv("RANK", "1", 1);
	rank[0].attr = attr;
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	setenv("RANK", "x", 1);
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	unsetenv("RANK");
}

static void run_who(struct rank *r)
{
	r->good = dblp_comm_rank(r->comm) == (u32)(r - rank) &&
		  dblp_comm_nranks(r->comm) == r->nranks;
}

TEST(a_communicator_returns_its_rank)
{
	prepare(3, next_epoch(), 10, run_who);
	run_all(3);
	expect_good(_metadata, 3);
	setenv("RANK", "0", 1);
	setenv("WORLD_SIZE", "1", 1);
	prepare(1, next_epoch(), 10, run_who);
	rank[0].attr.rank = DBLP_COMM_RANK_ENV;
	rank[0].attr.nranks = DBLP_COMM_RANK_ENV;
	run_all(1);
	expect_good(_metadata, 1);
}

TEST(the_transport_and_devices_in_use_are_described)
{
	prepare(2, next_epoch(), 10, run_allreduce);
	rank[0].attr.transport = "tcp:reno";
	rank[1].attr.transport = "tcp:reno";
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_NE(NULL, strstr(rank[1].text, "rank 1 of 2, epoch "));
	EXPECT_NE(NULL, strstr(rank[1].text, "over tcp:reno at "));
	EXPECT_EQ(NULL, strchr(rank[1].text, '\n'));
}

TEST(the_epoch_comes_from_the_environment)
{
	struct dblp_comm_attr attr;
	char port[8];
	int i;

	snprintf(port, sizeof(port), "%u", free_port());
	setenv("MASTER_ADDR", "localhost", 1);
	setenv("DBLP_PORT", port, 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "7", 1);
	prepare(2, 0, 10, run_allreduce);
	rank[0].attr.rendezvous = "env";
	rank[1].attr.rendezvous = NULL;
	run_all(2);
	expect_good(_metadata, 2);
	for (i = 0; i < 2; i++)
		EXPECT_NE(NULL, strstr(rank[i].text, "epoch 7,"));
	prepare(1, 3, 10, run_allreduce);
	rank[0].attr.rendezvous = NULL;
	attr = rank[0].attr;
	run_all(1);
	EXPECT_NE(NULL, strstr(rank[0].text, "epoch 3,"));
	setenv("TORCHELASTIC_RESTART_COUNT", "-1", 1);
	rank[0].attr = attr;
	rank[0].attr.epoch = 0;
	run_all(1);
	EXPECT_EQ(-EINVAL, rank[0].opened);
	unsetenv("TORCHELASTIC_RESTART_COUNT");
	unsetenv("DBLP_PORT");
}

TEST(attributes_that_contradict_themselves_are_refused)
{
	struct {
		struct dblp_comm_attr	attr;
		char			more[8];
	} longer;
	const struct dblp_lane lane[DBLP_LANES_MAX + 1] = { [1].tos = 1 };
	struct dblp_comm *comm = NULL;
	struct dblp_comm_attr good, a;

	prepare(1, next_epoch(), 10, run_allreduce);
	good = rank[0].attr;
#define REFUSED(err, change) do { \
		a = good; \
		change; \
		EXPECT_EQ(err, dblp_comm_open(&comm, &a)); \
		EXPECT_EQ(NULL, comm); \
	} while (0)
	REFUSED(-EINVAL, a.size = 4);
	REFUSED(-EINVAL, a.lanes = 1);
	REFUSED(-EINVAL, a.lane = lane);
	REFUSED(-EINVAL, a.lane = lane; a.lanes = 2);
	REFUSED(-EINVAL, a.lane = lane; a.lanes = DBLP_LANES_MAX + 1);
	REFUSED(-EINVAL, a.rank = 1);
	REFUSED(-EINVAL, a.nranks = 0);
	REFUSED(-EINVAL, a.nranks = DBLP_RANKS_MAX + 1);
	REFUSED(-EINVAL, a.transport = "udp");
	REFUSED(-EINVAL, a.transport = "tcp:");
	REFUSED(-EINVAL, a.transport = "tcp:abcdefghijklmnop");
	REFUSED(-ENOENT, a.transport = "tcp:nothing");
	REFUSED(-EINVAL, a.devices = "lo,");
	REFUSED(-EINVAL, a.devices = "");
	REFUSED(-ENODEV, a.devices = "nothing");
	REFUSED(-EINVAL, a.rendezvous = "udp://127.0.0.1:1");
	REFUSED(-EINVAL, a.rendezvous = "tcp://127.0.0.1");
	REFUSED(-ENOENT, a.rendezvous = "file:/nothing");
	REFUSED(-EINVAL, a.kv_get = NULL);
	unsetenv("DBLP_PORT");
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "abc", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "1x", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("MASTER_PORT", "65535", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("DBLP_PORT", "-1", 1));
	REFUSED(-EINVAL, a.rendezvous = "env"; setenv("DBLP_PORT", "65536", 1));
	unsetenv("DBLP_PORT");
	REFUSED(-EINVAL, a.message_bytes = 4);
	REFUSED(-EINVAL, a.message_bytes = 1U << 31);
	REFUSED(-EINVAL, a.keepalive_ms = 999);
	REFUSED(-EINVAL, a.timeout_ms = 1999);
	REFUSED(-EINVAL, a.authenticate = 2);
	EXPECT_STREQ("", dblp_comm_why(NULL));
	REFUSED(-EINVAL, a.authenticate = 1);
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "only with a secret"));
	REFUSED(-EINVAL, a.authenticate = 1; a.secret = SECRET);
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "only over transport dblp"));
	setenv("DBLP_TIMEOUT_MS", "1999", 1);
	REFUSED(-EINVAL, (void)a);
	setenv("DBLP_TIMEOUT_MS", "5s", 1);
	REFUSED(-EINVAL, (void)a);
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "DBLP_TIMEOUT_MS=5s"));
	unsetenv("DBLP_TIMEOUT_MS");
	memset(&longer, 0, sizeof(longer));
	longer.attr = good;
	longer.attr.size = sizeof(longer);
	longer.more[7] = 1;
	EXPECT_EQ(-E2BIG, dblp_comm_open(&comm, &longer.attr));
	longer.more[7] = 0;
	EXPECT_EQ(0, dblp_comm_open(&comm, &longer.attr));
	dblp_comm_close(comm);
	dblp_comm_close(NULL);
}

TEST(ranks_that_disagree_about_the_communicator_do_not_open_it)
{
	static const struct dblp_lane lane[3];
	int k, i;

	for (k = 0; k < 6; k++) {
		prepare(3, next_epoch(), 1000, run_allreduce);
		switch (k) {
		case 0: rank[1].attr.nranks = 4; break;
		case 1: rank[1].attr.message_bytes = 800; break;
		case 2: rank[1].attr.transport = "tcp:reno"; break;
		case 3: rank[1].attr.devices = "lo,lo"; break;
		case 4:
			rank[1].attr.lane = lane;
			rank[1].attr.lanes = 2;
			break;
		case 5:
			for (i = 0; i < 3; i++) {
				rank[i].attr.lane = lane;
				rank[i].attr.lanes = i == 1 ? 3 : 2;
			}
			break;
		}
		run_all(3);
		for (i = 0; i < 3; i++)
			EXPECT_EQ(-EINVAL, rank[i].opened);
	}
}

/* Sends data to @port of this host, and waits for the other end to close */
static ssize_t say(u16 port, const void *what, size_t len, void *answer, size_t room)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ssize_t n = -1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (connect(fd, (void *)&a, sizeof(a)))
		usleep(1000);
	if (send(fd, what, len, MSG_NOSIGNAL) == (ssize_t)len)
		n = recv(fd, answer, room, MSG_WAITALL);
	close(fd);
	return n;
}

/* Connects to @port of this host without sending; -1 if no socket listens */
static int try_call(u16 port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!connect(fd, (void *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -1;
}

static int call(u16 port)
{
	int fd = try_call(port);

	if (fd < 0)
		abort();
	return fd;
}

/*
 * Joins rank 0 at @port as rank 1 with @secret; returns the answer, or 0 if rank 0
 * waits
 */
static int join_by_hand(u16 port, u32 epoch, const uint8_t secret[DBLP_MAC], int *fd)
{
	struct dblp_comm me = { .transport = &dblp_transport_tcp };
	struct dblp_challenge c;
	struct dblp_hello h;
	uint8_t mac[DBLP_MAC];

	me.rank = 1;
	me.nranks = 4;
	me.n_nics = 1;
	me.n_lanes = 1;
	me.attr.epoch = epoch;
	me.attr.message_bytes = DBLP_COMM_BYTES;
	memcpy(me.secret, secret, DBLP_MAC);
	dblp_hello_make(&me, &h);
	while ((*fd = try_call(port)) < 0)
		usleep(1000);
	if (send(*fd, &h, dblp_hello_length(&h), MSG_NOSIGNAL) < 0 ||
	    recv(*fd, &c, sizeof(c), MSG_WAITALL) != sizeof(c))
		abort();
	dblp_prove(&me, "rank 0", &h, c.nonce, mac);
	if (memcmp(mac, c.mac, sizeof(mac)))
		return EACCES;
	dblp_prove(&me, "rank r", &h, c.nonce, mac);
	return send(*fd, mac, sizeof(mac), MSG_NOSIGNAL) == sizeof(mac) ? 0 : errno;
}

static void prepare_at(int n, u16 port, void (*run)(struct rank *r))
{
	static char at[64];
	int i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	prepare(n, next_epoch(), 1000, run);
	for (i = 0; i < n; i++)
		rank[i].attr.rendezvous = at;
}

static const uint8_t no_secret[DBLP_MAC];

/* The first two test vectors of SipHash's authors */
TEST(macs_match_siphash)
{
	static const uint8_t want[2][DBLP_MAC] = {
		{ 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6,
		  0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 },
		{ 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44,
		  0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 },
	};
	uint8_t key[DBLP_MAC], mac[DBLP_MAC];
	int i;

	for (i = 0; i < DBLP_MAC; i++)
		key[i] = (uint8_t)i;
	for (i = 0; i < 2; i++) {
		dblp_mac(key, key, (size_t)i, mac);
		EXPECT_EQ(0, memcmp(want[i], mac, sizeof(mac)));
	}
}

TEST(processes_without_the_secret_neither_join_nor_end_the_job)
{
	struct dblp_comm_attr other;
	struct dblp_comm *comm;
	u16 port = free_port();
	struct dblp_ctl answer;
	int fd;

	prepare_at(2, port, run_allreduce);
	EACH_RANK(2, r->attr.secret = SECRET);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	/* A rank without the secret cannot verify rank 0's proof */
	EXPECT_EQ(EACCES, join_by_hand(port, rank[0].attr.epoch, no_secret, &fd));
	/* An invalid proof, for this epoch and a later one */
	EXPECT_EQ(sizeof(no_secret), send(fd, no_secret, sizeof(no_secret), 0));
	EXPECT_EQ(sizeof(answer), recv(fd, &answer, sizeof(answer), MSG_WAITALL));
	EXPECT_EQ(EACCES, answer.error);
	close(fd);
	EXPECT_EQ(EACCES, join_by_hand(port, rank[0].attr.epoch + 1, no_secret, &fd));
	EXPECT_EQ(sizeof(no_secret), send(fd, no_secret, sizeof(no_secret), 0));
	EXPECT_EQ(sizeof(answer), recv(fd, &answer, sizeof(answer), MSG_WAITALL));
	close(fd);
	other = rank[1].attr;
	other.secret = "ffffffffffffffffffffffffffffffff";
	EXPECT_EQ(-EACCES, dblp_comm_open(&comm, &other));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "another secret"));
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	expect_good(_metadata, 2);
	EXPECT_LE(2, rank[0].stats.strangers);
}

TEST(the_secret_is_in_a_file_that_others_cannot_read)
{
	char path[] = "/tmp/test_comm.XXXXXX";
	int fd = mkstemp(path);
	struct dblp_comm *comm;

	ASSERT_LE(0, fd);
	ASSERT_EQ(33, write(fd, SECRET "\n", 33));
	setenv("DBLP_SECRET_FILE", path, 1);
	prepare_at(2, free_port(), run_allreduce);
	rank[0].attr.secret = SECRET;
	run_all(2);
	expect_good(_metadata, 2);
	fchmod(fd, 0644);
	EXPECT_EQ(-EACCES, dblp_comm_open(&comm, &rank[1].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), path));
	fchmod(fd, 0600);
	/* Only root can give a file away */
	if (!fchown(fd, 65534, -1)) {
		EXPECT_EQ(-EACCES, dblp_comm_open(&comm, &rank[1].attr));
		EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "another user"));
		ASSERT_EQ(0, fchown(fd, geteuid(), -1));
	}
	EXPECT_EQ(0, ftruncate(fd, 31));
	EXPECT_EQ(-EINVAL, dblp_comm_open(&comm, &rank[1].attr));
	unlink(path);
	EXPECT_EQ(-ENOENT, dblp_comm_open(&comm, &rank[1].attr));
	unsetenv("DBLP_SECRET_FILE");
	close(fd);
}

/* Start two ranks of a job on this range of ports */
static int run_job(u16 port, const char *ports)
{
	prepare_at(2, port, run_allreduce);
	EACH_RANK(2, r->attr.ports = ports);
	run_all(2);
	if (rank[0].opened || rank[1].opened)
		fprintf(stderr, "# %s\n", dblp_comm_why(NULL));
	return rank[0].good && rank[1].good ? 0 : 1;
}

TEST(twenty_jobs_share_a_range_of_ports)
{
	u16 first = (u16)(20000 + getpid() % 10000), port[20];
	char ports[16], text[8];
	struct dblp_comm *comm;
	int i, status;

	snprintf(ports, sizeof(ports), "%u-%u", first, first + 59);
	for (i = 0; i < 20; i++)
		port[i] = free_port();
	for (i = 0; i < 20; i++)
		if (!fork())
			_exit(run_job(port[i], ports));
	for (i = 0; i < 20; i++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_EQ(0, status);
	}
	prepare_at(1, free_port(), run_allreduce);
	rank[0].attr.ports = "40000";
	EXPECT_EQ(-EINVAL, dblp_comm_open(&comm, &rank[0].attr));
	rank[0].attr.ports = "40000-39999";
	EXPECT_EQ(-EINVAL, dblp_comm_open(&comm, &rank[0].attr));
	snprintf(text, sizeof(text), ":%u", first);
	snprintf(ports, sizeof(ports), "%u-%u", first, first);
	rank[0].attr.ports = ports;
	EXPECT_EQ(0, dblp_comm_open(&comm, &rank[0].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_describe(comm), text));
	prepare_at(1, free_port(), run_allreduce);
	rank[0].attr.ports = ports;
	run_all(1);
	EXPECT_EQ(-EADDRINUSE, rank[0].opened);
	dblp_comm_close(comm);
}

/* After @before communicators of one rank */
static int open_with_limit(int before, rlim_t soft, rlim_t hard, const char *why)
{
	struct rlimit limit = { soft, hard };
	struct dblp_comm *comm;
	int err;

	for (; before; before--) {
		prepare_at(1, free_port(), run_allreduce);
		if (dblp_comm_open(&comm, &rank[0].attr))
			return 3;
	}
	prepare_at(1, free_port(), run_allreduce);
	rank[0].attr.nranks = 500;
	rank[0].attr.join_ms = 1;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 2;
	err = dblp_comm_open(&comm, &rank[0].attr);
	if (err != (strstr(why, "limit") ? -EMFILE : -ETIMEDOUT) ||
	    !strstr(dblp_comm_why(NULL), why))
		return 1;
	return getrlimit(RLIMIT_NOFILE, &limit) || (err == -ETIMEDOUT && limit.rlim_cur < 998);
}

/* In child processes, because limits cannot be raised again */
TEST(the_limit_of_open_files_is_raised_or_joining_fails)
{
	static const struct {
		int		before;
		rlim_t		soft;
		rlim_t		hard;
		const char	*why;
	} limit[] = {
		{ 0, 64, 4000, "499" }, { 0, 64, 900, "the limit is 900" },
		/* Alone it needs less than 1800, but others may open more, too */
		{ 0, 64, 1800, "499" }, { 10, 64, 1800, "the limit is 1800" },
	};
	int i, status;

	for (i = 0; i < ARRAY_SIZE(limit); i++) {
		if (!fork())
			_exit(open_with_limit(limit[i].before, limit[i].soft, limit[i].hard,
					      limit[i].why));
		ASSERT_LT(0, wait(&status));
		EXPECT_EQ(0, status);
	}
}

/*
 * A connection to a port without listener may get the same port as its own, and so
 * succeed
 */
TEST(a_socket_is_not_connected_to_itself)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(free_port()),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_dblp to;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ASSERT_EQ(0, bind(fd, (void *)&a, sizeof(a)));
	dblp_addr_from(&to, (void *)&a);
	EXPECT_EQ(-ECONNREFUSED, dblp_connect(fd, &to, 1000));
	close(fd);
}

/* A listener with a full queue drops further connections, like a firewall */
static u16 blocked_port(int fd[3])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int i;

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd[0], (void *)&a, len) || listen(fd[0], 0) ||
	    getsockname(fd[0], (void *)&a, &len))
		abort();
	for (i = 1; i < 3; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fd[i], (void *)&a, len);
	}
	return a.sin_port;
}

static u16 blocked;

static void run_blocked(struct rank *r)
{
	char text[32];

	if (r->attr.rank)
		r->comm->table[0].sdblp_port = blocked;
	run_allreduce(r);
	snprintf(text, sizeof(text), "127.0.0.1:%u, where rank 0", ntohs(blocked));
	r->good = !!strstr(dblp_comm_why(r->comm), text);
}

TEST(an_address_that_does_not_answer_is_named_in_time)
{
	int fd[3], i;

	blocked = blocked_port(fd);
	prepare_at(2, free_port(), run_blocked);
	EACH_RANK(2, r->attr.timeout_ms = 2000);
	run_all(2);
	expect_failed(_metadata, 2, -ETIMEDOUT, 0, 20000);
	expect_good(_metadata, 2);
	for (i = 0; i < 3; i++)
		close(fd[i]);
}

/* Duplicate the other end of @fd, which is a socket of this process */
static int dup_other_end(int fd)
{
	struct sockaddr_dblp own, peer;
	int i;

	dblp_name_of(fd, false, &own);
	for (i = 3; i < 256; i++)
		if (!dblp_name_of(i, true, &peer) && peer.sdblp_port == own.sdblp_port)
			return dup(i);
	return -1;
}

TEST(a_rank_may_join_again_while_ranks_join)
{
	const struct linger reset = { .l_onoff = 1 };
	u16 port = free_port();
	int fd, other, i, probes = 0;
	socklen_t len = sizeof(probes);

	prepare_at(4, port, run_allreduce);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	EXPECT_EQ(0, join_by_hand(port, rank[0].attr.epoch, no_secret, &fd));
	/* If its host failed, rank 0 would notice within timeout_ms and a second */
	other = dup_other_end(fd);
	EXPECT_EQ(0, getsockopt(other, IPPROTO_TCP, TCP_KEEPCNT, &probes, &len));
	EXPECT_EQ(5, probes);
	close(other);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	/* The third attempt arrives before rank 0 can notice the end of the second */
	EXPECT_EQ(0, join_by_hand(port, rank[0].attr.epoch, no_secret, &fd));
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	usleep(100000);
	close(fd);
	for (i = 2; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
	for (i = 0; i < 4; i++)
		pthread_join(rank[i].thread, NULL);
	expect_good(_metadata, 4);
}

TEST(ranks_that_are_missing_are_named)
{
	struct dblp_comm *comm;
	int status;

	prepare_at(6, free_port(), run_allreduce);
	rank[0].attr.join_ms = 2000;
	rank[2].attr.join_ms = 2000;
	if (!fork()) {
		/* Rank 2 gets this text from rank 0, although it began before */
		status = dblp_comm_open(&comm, &rank[2].attr);
		_exit(status != -ETIMEDOUT ||
		      !strstr(dblp_comm_why(NULL), "2000 ms: 1, 3-5"));
	}
	usleep(200000);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	EXPECT_EQ(-ETIMEDOUT, dblp_comm_open(&comm, &rank[0].attr));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "2000 ms: 1, 3-5"));
	EXPECT_NE(NULL, strstr(dblp_comm_why(NULL), "MASTER_ADDR is a loopback address"));
	/* A name server that does not answer must not delay the message to the others */
	EXPECT_EQ(1, n_lookups);
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
}

TEST(connections_without_a_valid_hello_are_refused_and_counted)
{
	struct dblp_ctl ctl = { .magic = DBLP_CTL_MAGIC }, answer;
	struct dblp_comm_attr old;
	struct dblp_comm *comm;
	u16 port = free_port();
	char at[64];
	int fd;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	next_epoch();
	prepare(2, next_epoch(), 1000, run_allreduce);
	rank[0].attr.rendezvous = at;
	rank[1].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	/* Neither an invalid message nor a silent connection delays the ranks */
	EXPECT_EQ(0, say(port, "GET / HTTP/1.1\r\n\r\n", 18, &answer, 1));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT_EQ(0, connect(fd, (void *)&(struct sockaddr_in) {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
		sizeof(struct sockaddr_in)));
	ctl.version = DBLP_COMM_VERSION + 1;
	EXPECT_EQ(sizeof(answer), say(port, &ctl, sizeof(ctl), &answer,
				      sizeof(answer)));
	EXPECT_EQ(DBLP_CTL_REFUSE, answer.type);
	EXPECT_EQ(EPROTONOSUPPORT, answer.error);
	/* Ranks of an earlier epoch, and a rank that has joined already */
	old = rank[1].attr;
	old.epoch--;
	EXPECT_EQ(-ESTALE, dblp_comm_open(&comm, &old));
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	close(fd);
	expect_good(_metadata, 2);
	EXPECT_EQ(1, rank[0].stats.strangers);
	EXPECT_EQ(1, rank[0].stats.versions);
	EXPECT_EQ(1, rank[0].stats.stale);
}

static u64 time_ns(const struct timespec *t)
{
	return (u64)t->tv_sec * 1000000000 + (u64)t->tv_nsec;
}

static u16 port_of_rank(const struct rank *r)
{
	return (u16)atoi(strstr(r->text, "127.0.0.1:") + 10);
}

/* Many silent connections exist before the other rank joins */
static void run_among_strangers(struct rank *r)
{
	int fd[300], i;

	for (i = 0; !r->attr.rank && i < 300; i++)
		fd[i] = call(port_of_rank(r));
	/* The limit is the two links of rank 1 and 64 others */
	while (!r->attr.rank && strangers_of(r) < 300 - 66)
		usleep(1000);
	__atomic_add_fetch(&n_over, !r->attr.rank, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	run_allreduce(r);
	for (i = 0; !r->attr.rank && i < 300; i++)
		close(fd[i]);
}

TEST(silent_connections_make_room_for_ranks)
{
	char at[64];
	int i;

	n_over = 0;
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_among_strangers);
	for (i = 0; i < 2; i++) {
		rank[i].attr.rendezvous = at;
		/* No connection is closed by its timeout */
		rank[i].attr.timeout_ms = 600000;
	}
	run_all(2);
	expect_good(_metadata, 2);
}

/* An invalid message is refused after all earlier connections were accepted */
static void wait_for_door(u16 port)
{
	static const char text[128] = "GET / HTTP/1.1";
	int fd = call(port);
	char c;

	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	while (recv(fd, &c, 1, 0) > 0) {
	}
	close(fd);
}

TEST(the_oldest_connection_makes_room_while_ranks_join)
{
	const struct timespec at_most = { .tv_sec = WAIT_MS / 1000 };
	struct pollfd p[2];
	u16 port = free_port();
	int fd[67], i;
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	prepare(2, next_epoch(), 1000, run_allreduce);
	for (i = 0; i < 2; i++)
		rank[i].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	while ((fd[0] = try_call(port)) < 0)
		usleep(1000);
	for (i = 1; i < 65; i++)
		fd[i] = call(port);
	wait_for_door(port);
	/* The last connection now has the slot of the first one */
	close(fd[0]);
	wait_for_door(port);
	/* The limit is two ranks and 64 others */
	fd[0] = call(port);
	for (; i < 67; i++)
		fd[i] = call(port);
	p[0] = (struct pollfd) { fd[1], POLLIN, 0 };
	p[1] = (struct pollfd) { fd[64], POLLIN, 0 };
	EXPECT_EQ(1, ppoll(p, 2, &at_most, NULL));
	EXPECT_TRUE(p[0].revents);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	for (i = 0; i < 2; i++)
		pthread_join(rank[i].thread, NULL);
	for (i = 0; i < 67; i++)
		close(fd[i]);
	expect_good(_metadata, 2);
}

/* Allow process @pid @more descriptors than it has now */
static void limit_files(pid_t pid, int more)
{
	struct rlimit limit;
	struct stat st;
	char path[48];

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit))
		abort();
	/* Free descriptors may be below those in use */
	for (limit.rlim_cur = 0; more; limit.rlim_cur++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", pid, (u32)limit.rlim_cur);
		more -= !!lstat(path, &st);
	}
	if (prlimit(pid, RLIMIT_NOFILE, &limit, NULL))
		abort();
}

TEST(unknown_peers_that_take_all_descriptors_make_room_for_ranks)
{
	u16 port = free_port();
	int fd[20], i, status;
	pid_t pid;

	prepare_at(2, port, run_allreduce);
	pid = fork();
	if (!pid) {
		rank_main(&rank[0]);
		_exit(rank[0].opened || !rank[0].good);
	}
	while ((fd[0] = try_call(port)) < 0)
		usleep(1000);
	wait_for_door(port);
	/* One for the control connection, one for data */
	limit_files(pid, 2);
	for (i = 1; i < 20; i++)
		fd[i] = call(port);
	rank_main(&rank[1]);
	EXPECT_TRUE(rank[1].good);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	for (i = 0; i < 20; i++)
		close(fd[i]);
}

/* Rank 0, in a process of its own, opens files among 120 unknown peers of its data port */
static void run_crowded(struct rank *r)
{
	int i;

	shared->rank[0].rounds = port_of_rank(r);
	/* The limit is 64 */
	while (strangers_of(r) < 120 - 66)
		usleep(1000);
	for (i = 0; i < 60; i++)
		r->err |= open("/dev/null", O_RDONLY) < 0;
	shared->rank[0].err = r->err ? -1 : 1;
	/* The last calls of the test need the listening socket */
	while (!shared->over)
		usleep(1000);
}

TEST(unknown_peers_leave_descriptors_for_the_program)
{
	int fd[120], i;
	pid_t pid;

	shared_new();
	prepare_at(1, free_port(), run_crowded);
	/* No connection is closed by its timeout */
	rank[0].attr.timeout_ms = 600000;
	pid = fork();
	if (!pid) {
		const struct rlimit few = { 24, 4096 };

		if (!setrlimit(RLIMIT_NOFILE, &few))
			rank_main(&rank[0]);
		_exit(0);
	}
	while (!shared->rank[0].rounds)
		usleep(1000);
	for (i = 0; i < 120; i++)
		fd[i] = call((u16)shared->rank[0].rounds);
	shared->over = true;
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(1, shared->rank[0].err);
	for (i = 0; i < 120; i++)
		close(fd[i]);
}

static pid_t rank_0;
/* Descriptors that rank 0 has left, and unknown peers of its data port */
static int n_files, n_calls;

/* The data port of rank 0, which is another process, gets more calls than it can accept */
static void run_besieged(struct rank *r)
{
	int fd[20], i;

	if (!r->attr.rank)
		shared->rank[0].rounds = port_of_rank(r);
	while (r->attr.rank && !shared->rank[0].rounds)
		usleep(1000);
	if (r->attr.rank)
		limit_files(rank_0, n_files);
	for (i = 0; r->attr.rank && i < n_calls; i++)
		fd[i] = call((u16)shared->rank[0].rounds);
	if (r->attr.rank)
		shared->over = true;
	while (!shared->over)
		usleep(1000);
	run_allreduce(r);
	for (i = 0; r->attr.rank && i < n_calls; i++)
		close(fd[i]);
}

static void besiege(struct __test_metadata *_metadata)
{
	int status;

	shared_new();
	prepare_at(2, free_port(), run_besieged);
	/* No connection is closed by its timeout */
	EACH_RANK(2, r->attr.timeout_ms = 600000);
	rank_0 = fork();
	if (!rank_0) {
		rank_main(&rank[0]);
		/* The last calls may still wait for a descriptor */
		_exit(rank[0].opened || !rank[0].good ||
		      (int)rank[0].stats.strangers > n_calls);
	}
	rank_main(&rank[1]);
	EXPECT_TRUE(rank[1].good);
	ASSERT_EQ(rank_0, waitpid(rank_0, &status, 0));
	EXPECT_EQ(0, status);
}

TEST(unknown_peers_that_take_all_descriptors_make_room_for_connections_for_data)
{
	n_files = 2;
	n_calls = 20;
	besiege(_metadata);
}

/* accept() fails without a connection to accept, and a rank's connection is not refused */
TEST(one_descriptor_is_enough_for_a_connection_for_data)
{
	n_files = 1;
	n_calls = 0;
	besiege(_metadata);
}

/* A child process of another library would keep the descriptor open */
static void run_held(struct rank *r)
{
	static const char text[64] = "GET / HTTP/1.1";
	int fd = call(port_of_rank(r)), held, i;

	while ((held = dup_other_end(fd)) < 0)
		usleep(1000);
	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	while (!strangers_of(r))
		usleep(1000);
	for (i = 0; i < 20; i++) {
		send(fd, text, sizeof(text), MSG_NOSIGNAL);
		run_allreduce(r);
	}
	close(held);
	close(fd);
}

TEST(a_refused_connection_is_not_read_again)
{
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(1, next_epoch(), 1000, run_held);
	rank[0].attr.rendezvous = at;
	run_all(1);
	expect_good(_metadata, 1);
	EXPECT_EQ(1, rank[0].stats.strangers);
}

static int sockets(void)
{
	struct stat st;
	int fd, n = 0;

	for (fd = 3; fd < 256; fd++)
		n += !fstat(fd, &st) && S_ISSOCK(st.st_mode);
	return n;
}

TEST(children_inherit_no_sockets_of_a_joining_rank)
{
	int status, before = sockets();
	char key[64], value[128];
	size_t n = sizeof(value) - 1;
	int fd;

	prepare(2, next_epoch(), 1000, run_allreduce);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	snprintf(key, sizeof(key), "dblp/%u/0", rank[0].attr.epoch);
	while (store_get(NULL, key, value, &n))
		usleep(1000);
	value[n] = '\0';
	fd = call((u16)atoi(strrchr(value, ':') + 1));
	/* One socket listens for ranks, one for data, and one is connected to this test's */
	while (sockets() < before + 4)
		usleep(1000);
	EXPECT_EQ(before + 4, sockets());
	if (!fork()) {
		close(fd);
		_exit(sockets() - before);
	}
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
	close(fd);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	expect_good(_metadata, 2);
}

/* Without descriptors no connection is accepted, and nothing else changes */
static void run_poor(struct rank *r)
{
	static const char text[64] = "GET / HTTP/1.1";
	struct timespec cpu[2], pause = { .tv_nsec = 300000000 };
	struct rlimit old, none;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port_of_rank(r)),
	};
	char c;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	if (connect(fd, (void *)&a, sizeof(a)))
		abort();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[0]);
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[1]);
	run_allreduce(r);
	r->good &= time_ns(&cpu[1]) - time_ns(&cpu[0]) < 100 * MS_NS;
	setrlimit(RLIMIT_NOFILE, &old);
	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	/* The connection is accepted and refused */
	r->good &= recv(fd, &c, 1, 0) <= 0;
	while (!strangers_of(r))
		usleep(1000);
	close(fd);
}

TEST(connections_are_accepted_once_there_are_descriptors)
{
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(1, next_epoch(), 1000, run_poor);
	rank[0].attr.rendezvous = at;
	run_all(1);
	expect_good(_metadata, 1);
}

/* Rank 0 has none left for connections of others, for longer than a host may be silent */
static void run_without_files(struct rank *r)
{
	const struct rlimit none = { 3, 3 };
	int me = (int)r->attr.rank;

	if (!me && setrlimit(RLIMIT_NOFILE, &none))
		abort();
	if (!me)
		shared->over = true;
	while (!shared->over)
		usleep(1000);
	run_allreduce(r);
	shared->rank[me].err = dblp_comm_error(r->comm, &shared->rank[me].failed);
	shared->rank[me].rounds = !!strstr(dblp_comm_why(r->comm), "no descriptors");
}

TEST(a_rank_without_descriptors_fails_with_a_reason)
{
	pid_t pid[2];
	int i;

	shared_new();
	prepare_at(2, free_port(), run_without_files);
	EACH_RANK(2, r->attr.timeout_ms = 2000);
	fork_ranks(pid, 2);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(pid[i], waitpid(pid[i], NULL, 0));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EMFILE, shared->rank[i].err);
		EXPECT_EQ(0, shared->rank[i].failed);
	}
	EXPECT_EQ(1, shared->rank[0].rounds);
}

/* Rank 0 connects to its own listener for data with wrong heads */
static void run_called(struct rank *r)
{
	struct dblp_head h = {
		.type = DBLP_HEAD_HELLO, .epoch = r->attr.epoch, .from = 1,
		.comm = 1,
	};
	uint8_t head[DBLP_HEAD_LEN];
	u16 port = port_of_rank(r);
	char c;

	if (!r->attr.rank) {
		say(port, "GET / HTTP/1.1\r\n\r\n GET / HTTP/1.1\r\n\r\n"
		    "GET / HTTP/1.1\r\n\r\n GET / HTTP/1.1\r\n\r\n", 64, &c, 1);
		/* A head of this epoch and another communicator */
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
		/* A head of this communicator without a MAC */
		h.comm = r->comm->id;
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
		/* The version follows a magic number of 4 bytes */
		head[4]++;
		say(port, head, sizeof(head), &c, 1);
		h.epoch--;
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
	}
	/* Rank 1 does not connect before */
	__atomic_add_fetch(&n_over, !r->attr.rank, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	run_allreduce(r);
}

TEST(a_connection_of_an_old_epoch_is_refused_and_counted)
{
	char at[64];
	int i;

	n_over = 0;
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_called);
	for (i = 0; i < 2; i++)
		rank[i].attr.rendezvous = at;
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(3, rank[0].stats.strangers);
	EXPECT_EQ(1, rank[0].stats.versions);
	EXPECT_EQ(1, rank[0].stats.stale);
}

static void run_keepalive(struct rank *r)
{
	static const int option[] = { TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT };
	/* 100 probes of 2 s last as long as timeout_ms */
	static const int want[][3] = { { 1, 2, 127 }, { 1, 2, 100 } };
	int fd[2], value = 0, tos = 0, i, k;
	socklen_t len = sizeof(value);
	bool good;

	/* A connection for data is created at its first use */
	run_allreduce(r);
	fd[0] = r->comm->ctl[!r->attr.rank].fd;
	fd[1] = dblp_link_of(r->comm, !r->attr.rank, 0)->fd;
	for (i = 0; i < 2; i++)
		for (k = 0; k < ARRAY_SIZE(option); k++)
			r->good &= !getsockopt(fd[i], IPPROTO_TCP, option[k], &value, &len) &&
				   value == want[i][k];
	/* By IPv4, also where a socket of IPv6 has accepted it */
	r->good &= !getsockopt(fd[0], IPPROTO_IP, IP_TOS, &tos, &len) && tos == 0xb8;
	good = r->good;
	/* A rank that leaves closes connections, so all ranks read the options first */
	run_allreduce(r);
	r->good &= good;
}

TEST(keepalive_follows_the_attribute)
{
	prepare(2, next_epoch(), 1, run_keepalive);
	EACH_RANK(2, r->attr.keepalive_ms = 1999, r->attr.timeout_ms = 200000);
	run_all(2);
	expect_good(_metadata, 2);
}

TEST_HARNESS_MAIN
