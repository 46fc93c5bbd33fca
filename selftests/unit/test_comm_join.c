// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdblp: how ranks become a communicator, and who does not belong to them.
 */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "test.h"
#include "../lib/ranks.h"

TEST(ranks_meet_at_an_address_a_list_or_what_the_environment_says)
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
		/* However long what is no address may be */
		ASSERT_LT(0, dprintf(fd, "#%0300d\n127.0.0.1:%u\n127.0.0.2:1 # x\n\n[::1]:1 #%0300d\n", 0, at, 0));
		snprintf(port, sizeof(port), "%u", k == 2 ? at - 1 : at);
		setenv("MASTER_ADDR", "127.0.0.1", 1);
		setenv(k == 2 ? "MASTER_PORT" : "DBLP_PORT", port, 1);
		if (k == 2)
			unsetenv("DBLP_PORT");
		/* An IPv6 address beside IPv4 ones works where both do */
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

TEST(a_rank_can_ask_which_one_it_is)
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

TEST(what_is_in_use_is_told)
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
	REFUSED(-EINVAL, a.reserved = 1);
	EXPECT_STREQ("", dblp_comm_why(NULL));
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

/* Says something to @port of this host, and waits for the other end to close */
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

/* Connects to @port of this host, and says nothing; -1 if nobody listens */
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

/* Rank 1 says who it is, and is gone when the last one comes */
TEST(who_joins_with_a_rank_that_is_gone_is_told_so)
{
	const struct linger reset = { .l_onoff = 1 };
	struct {
		struct dblp_ctl		ctl;
		struct sockaddr_dblp	addr;
	} hello = { .ctl = {
		.magic = DBLP_CTL_MAGIC, .version = DBLP_COMM_VERSION,
		.type = DBLP_CTL_JOIN, .rank = 1, .nranks = 4, .nics = 1,
		.message_bytes = DBLP_COMM_BYTES, .transport = "tcp",
	} };
	u16 port = free_port();
	char at[64];
	int fd, i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", port);
	prepare(4, next_epoch(), 1, run_allreduce);
	hello.ctl.epoch = rank[0].attr.epoch;
	for (i = 0; i < 4; i++)
		rank[i].attr.rendezvous = at;
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	while ((fd = try_call(port)) < 0)
		usleep(1000);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	ASSERT_EQ(sizeof(hello), send(fd, &hello, sizeof(hello), 0));
	close(fd);
	for (i = 2; i < 4; i++)
		pthread_create(&rank[i].thread, NULL, rank_main, &rank[i]);
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		pthread_join(rank[i].thread, NULL);
		EXPECT_TRUE(rank[i].opened == -ECONNRESET ||
			    rank[i].opened == -EPIPE);
	}
}

TEST(who_does_not_belong_to_the_ranks_is_refused_and_counted)
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
	/* One that says something else, one that says nothing: nobody waits for them */
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
	/* Ranks of yesterday, and one that is there already */
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

static u64 strangers_of(const struct rank *r)
{
	struct dblp_comm_stats stats;

	dblp_comm_stats(r->comm, &stats, sizeof(stats));
	return stats.strangers;
}

/* Many are there before the other rank is */
static void run_among_strangers(struct rank *r)
{
	int fd[300], i;

	for (i = 0; !r->attr.rank && i < 300; i++)
		fd[i] = call(port_of_rank(r));
	/* There is room for two connections of each of two ranks, and 64 more */
	while (!r->attr.rank && strangers_of(r) < 300 - 68)
		usleep(1000);
	__atomic_add_fetch(&n_over, !r->attr.rank, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&n_over, __ATOMIC_SEQ_CST))
		usleep(1000);
	run_allreduce(r);
	for (i = 0; !r->attr.rank && i < 300; i++)
		close(fd[i]);
}

TEST(strangers_that_are_silent_make_room_for_ranks)
{
	char at[64];
	int i;

	n_over = 0;
	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_among_strangers);
	for (i = 0; i < 2; i++) {
		rank[i].attr.rendezvous = at;
		/* Whoever goes does not do so because of his silence */
		rank[i].attr.timeout_ms = 600000;
	}
	run_all(2);
	expect_good(_metadata, 2);
}

/* Who says what no rank says is sent away: all who came before were let in by then */
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

TEST(who_came_first_makes_room_while_ranks_meet)
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
	/* The last one has the place of the first one now */
	close(fd[0]);
	wait_for_door(port);
	/* There is room for two connections of each of two ranks, and 64 more */
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

/* The other end of @fd is a socket of this process, too; a second descriptor of it */
static int dup_other_end(int fd)
{
	struct sockaddr_in own, peer;
	socklen_t len = sizeof(own);
	int i;

	getsockname(fd, (void *)&own, &len);
	for (i = 3; i < 256; i++) {
		len = sizeof(peer);
		if (!getpeername(i, (void *)&peer, &len) &&
		    peer.sin_family == AF_INET && peer.sin_port == own.sin_port)
			return dup(i);
	}
	return -1;
}

/* A child that another library has made has what it has not closed */
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

TEST(who_was_sent_away_is_not_heard_again)
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

TEST(children_have_no_sockets_of_who_still_joins)
{
	int status, before = sockets();
	char key[64], value[128];
	size_t n = sizeof(value);

	prepare(2, next_epoch(), 1000, run_allreduce);
	pthread_create(&rank[0].thread, NULL, rank_main, &rank[0]);
	snprintf(key, sizeof(key), "dblp/%u/0", rank[0].attr.epoch);
	while (store_get(NULL, key, value, &n))
		usleep(1000);
	/* Where ranks come, and where data does */
	EXPECT_EQ(before + 2, sockets());
	if (!fork())
		_exit(sockets() - before);
	ASSERT_LT(0, wait(&status));
	EXPECT_EQ(0, status);
	pthread_create(&rank[1].thread, NULL, rank_main, &rank[1]);
	pthread_join(rank[0].thread, NULL);
	pthread_join(rank[1].thread, NULL);
	expect_good(_metadata, 2);
}

/* Without descriptors nobody is accepted, and nothing else changes */
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
	/* It is accepted, and sent away */
	r->good &= recv(fd, &c, 1, 0) <= 0;
	while (!strangers_of(r))
		usleep(1000);
	close(fd);
}

TEST(without_descriptors_nobody_is_accepted_until_there_are_some)
{
	char at[64];

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(1, next_epoch(), 1000, run_poor);
	rank[0].attr.rendezvous = at;
	run_all(1);
	expect_good(_metadata, 1);
}

/* Rank 0 calls its own listener for data by wrong names */
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
		/* Of this epoch, but not of this communicator */
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
		/* The version is behind four bytes that all have */
		head[4]++;
		say(port, head, sizeof(head), &c, 1);
		h.epoch--;
		dblp_head_put(&h, head);
		say(port, head, sizeof(head), &c, 1);
	}
	run_allreduce(r);
}

TEST(a_connection_of_an_old_epoch_is_refused_and_counted)
{
	char at[64];
	int i;

	snprintf(at, sizeof(at), "tcp://127.0.0.1:%u", free_port());
	prepare(2, next_epoch(), 1000, run_called);
	for (i = 0; i < 2; i++)
		rank[i].attr.rendezvous = at;
	run_all(2);
	expect_good(_metadata, 2);
	EXPECT_EQ(2, rank[0].stats.strangers);
	EXPECT_EQ(1, rank[0].stats.versions);
	EXPECT_EQ(1, rank[0].stats.stale);
}

static void run_keepalive(struct rank *r)
{
	int second[2] = { 0, 0 }, fd[2], i;
	socklen_t len = sizeof(second[0]);

	/* A connection for data is made when it is needed */
	run_allreduce(r);
	fd[0] = r->comm->ctl[!r->attr.rank].fd;
	fd[1] = dblp_link_of(r->comm, !r->attr.rank, 0)->fd;
	for (i = 0; i < 2 && !r->err; i++)
		r->err = getsockopt(fd[i], IPPROTO_TCP, TCP_KEEPIDLE,
				    &second[i], &len);
	/* Who leaves closes them, on both sides: nobody does before all have looked */
	if (!r->err)
		run_allreduce(r);
	r->good &= second[0] == 1 && second[1] == 1;
}

TEST(hosts_are_asked_in_time)
{
	prepare(2, next_epoch(), 1, run_keepalive);
	EACH_RANK(2, r->attr.keepalive_ms = 1999, r->attr.timeout_ms = 4000);
	run_all(2);
	expect_good(_metadata, 2);
}

TEST_HARNESS_MAIN
