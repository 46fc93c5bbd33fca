// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages larger than the buffers, between two sockets: results of sendmsg(), contents at
 * the receiver, and memory use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "lib/sock.h"

#define MIB		(1 << 20)
#define BUFFER		(4 * MIB)

/* A client that sends and a server that receives */
struct pair {
	int client;
	int server;
};

static void pair_open(struct pair *p, int placement, int sndbuf, int rcvbuf)
{
	struct sockaddr_dblp addr;
	socklen_t len = sizeof(addr);
	int listener = new_socket();

	addr_parse(&addr, "127.0.0.1", 0);
	set_int(listener, SO_RCVBUFFORCE, rcvbuf);
	set_u32(listener, DBLP_PLACEMENT, placement);
	if (bind(listener, (void *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&addr, &len))
		die("making a listener");
	p->client = new_socket();
	set_int(p->client, SO_SNDBUFFORCE, sndbuf);
	set_u32(p->client, DBLP_NOTIFY, 1);
	if (connect(p->client, (void *)&addr, sizeof(addr)))
		die("connect()");
	p->server = accept(listener, NULL, NULL);
	if (p->server < 0)
		die("accept()");
	close(listener);
}

static void pair_close(struct pair *p)
{
	close(p->client);
	close(p->server);
}

static void drop_pages(void *p, size_t len)
{
	if (madvise(p, len, MADV_DONTNEED))
		die("madvise()");
}

/*
 * Contents that need little memory: one mebibyte that is mapped repeatedly. One word in
 * each 256 KiB has its own page and tells its position.
 */
#define MARK		(256 << 10)

static uint64_t word_at(size_t offset)
{
	return offset % MARK ? offset % MIB : offset;
}

static unsigned char *new_repeated(size_t len)
{
	int fd = memfd_create("bigmsg", 0);
	unsigned char *buf = new_pages(len);
	uint64_t word;
	size_t i;

	if (fd < 0)
		die("memfd_create()");
	for (i = 0; i < MIB; i += 8) {
		word = word_at(i);
		memcpy(buf + i, &word, 8);
	}
	if (write(fd, buf, MIB) != MIB)
		die("write()");
	for (i = 0; i < len; i += MIB)
		if (mmap(buf + i, MIB, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			die("mmap()");
	for (i = 0; i < len; i += MARK)
		memcpy(buf + i, &i, 8);
	close(fd);
	return buf;
}

static bool words_check(const void *buf, size_t offset, size_t len)
{
	const uint64_t *word = buf;
	size_t i;

	for (i = 0; i < len / 8; i++)
		if (word[i] != word_at(offset + 8 * i))
			return false;
	return true;
}

static bool make_nonblock(int fd)
{
	return !fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Ranges that one call has placed */
struct placed {
	ssize_t ret;
	int flags;
	struct dblp_rcvinfo info;
	uint32_t n;
	struct dblp_range range[512];
};

static void place(int fd, void *buf, size_t len, int flags, struct placed *g)
{
	char control[8 * 512 + 256] __attribute__((aligned(8)));
	struct iovec iov = { buf, len };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;

	g->n = 0;
	errno = 0;
	g->ret = recvmsg(fd, &m, flags);
	g->flags = g->ret < 0 ? 0 : m.msg_flags;
	if (g->ret < 0)
		return;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		size_t n = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_type == DBLP_RCVINFO)
			memcpy(&g->info, CMSG_DATA(c), sizeof(g->info));
		if (c->cmsg_type != DBLP_PLACED)
			continue;
		if (n > sizeof(g->range))
			die("%zu bytes of ranges", n);
		g->n = n / 8;
		memcpy(g->range, CMSG_DATA(c), n);
	}
}

/*
 * Size of a message of many times the buffers. Neither end has memory for it: the receiver
 * checks and drops placed bytes. The environment variable BIGMSG_MIB sets it; the default
 * is a gibibyte in virtual time, where a slow machine misses no deadline.
 */
static size_t large(void)
{
	const char *mib = getenv("BIGMSG_MIB");

	if (!mib)
		mib = virtual_time() ? "1024" : "64";
	return strtoul(mib, NULL, 10) * MIB;
}

static void send_large(int fd, size_t len)
{
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET };
	unsigned char *buf = new_repeated(len);
	int ep = epoll_create1(0);
	unsigned int waits = 0;
	size_t done = 0;
	ssize_t ret;

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) ||
	    !make_nonblock(fd))
		die("epoll");
	set_u32(fd, DBLP_PARTIAL_SEND, 1);
	while (done < len) {
		ret = send(fd, buf + done, len - done, 0);
		if (ret > 0) {
			done += ret;
			continue;
		}
		if (errno != EAGAIN)
			die("send() after %zu bytes", done);
		waits++;
		if (get_meminfo(fd, SK_MEMINFO_WMEM_QUEUED) > 2 * BUFFER + 2 * MIB)
			die("%u bytes queued", get_meminfo(fd, SK_MEMINFO_WMEM_QUEUED));
		if (epoll_wait(ep, &ev, 1, 20 * SECONDS) != 1)
			die("no wake-up after %zu bytes", done);
	}
	printf("# sender waited %u times\n", waits);
	fflush(stdout);
	close(ep);
}

TEST(a_large_message_through_four_mebibytes)
{
	size_t len = large();
	struct placed *g = calloc(1, sizeof(*g));
	uint64_t start = now_ms(), sum = 0;
	unsigned int i, most = 0, calls = 0;
	unsigned char *buf;
	struct pair p;
	int status;
	pid_t pid;

	netns_new();
	pair_open(&p, 1, BUFFER, BUFFER);
	buf = new_pages(len);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		send_large(p.client, len);
		_exit(0);
	}
	do {
		place(p.server, buf, len, 0, g);
		ASSERT_LT(0, g->ret) TH_LOG("%s", strerror(errno));
		for (i = 0; i < g->n; i++) {
			size_t at = g->range[i].offset, n = g->range[i].length;

			ASSERT_TRUE(words_check(buf + at, at, n));
			/* A byte that is placed twice would differ */
			memset(buf + at, 0xee, n);
			drop_pages(buf + ((at + 4095) & ~4095UL),
				   n < 8192 ? 0 : ((at + n) & ~4095UL) -
				   ((at + 4095) & ~4095UL));
			sum += n;
		}
		if (get_meminfo(p.server, SK_MEMINFO_RMEM_ALLOC) > most)
			most = get_meminfo(p.server, SK_MEMINFO_RMEM_ALLOC);
		calls++;
	} while (!(g->flags & MSG_EOR));
	EXPECT_EQ(len, sum);
	EXPECT_EQ(len, g->info.length);
	EXPECT_EQ(0, g->info.missing);
	EXPECT_EQ(0, g->info.msg_id);
	EXPECT_GE(2 * BUFFER + 2 * MIB, most);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	TH_LOG("%llu ms, %u calls, receive memory up to %u",
	       (unsigned long long)(now_ms() - start), calls, most);
}

#define LEN	(4 * MIB)

static unsigned char *new_message(uint64_t msg)
{
	unsigned char *buf = new_pages(LEN);

	pattern_fill(buf, LEN, 0, 1, msg);
	return buf;
}

/* A call takes a part, and the next calls continue */
TEST(a_nonblocking_call_takes_a_part)
{
	struct dblp_sndinfo info = { .tag = 99, .critical = 300000 };
	struct dblp_sndinfo other = { .tag = 11 };
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	struct message m, report;
	uint32_t element = 16;
	struct dblp_info all;
	ssize_t ret, done;
	struct pair p;

	netns_new();
	pair_open(&p, 0, MIB, 8 * MIB);
	/* With less delay, bytes would be acknowledged before the call returns */
	ASSERT_EQ(0, system("tc qdisc add dev lo root netem delay 50ms limit 10000"));
	set_u32(p.client, DBLP_PARTIAL_SEND, 1);
	done = sndinfo_send(p.client, buf, LEN, MSG_DONTWAIT, &info);
	ASSERT_LT(0, done);
	ASSERT_GT(LEN, done);
	/* A call with anything but the exact rest fails and changes nothing */
	EXPECT_ERR(EINVAL, send(p.client, buf, LEN, 0));
	EXPECT_ERR(EINVAL, send(p.client, buf, LEN - done - 8, 0));
	EXPECT_ERR(EBUSY, setsockopt(p.client, SOL_DBLP, DBLP_ELEMENT, &element,
				     sizeof(element)));
	EXPECT_ERR(EBUSY, try_u32(p.client, DBLP_PARTIAL_SEND, 0));
	while (done < LEN) {
		ASSERT_TRUE(wait_for(p.client, POLLOUT, 20 * SECONDS));
		ret = sndinfo_send(p.client, buf + done, LEN - done,
				   MSG_DONTWAIT, &other);
		ASSERT_LT(0, ret) TH_LOG("%s", strerror(errno));
		done += ret;
	}
	EXPECT_EQ(0, setsockopt(p.client, SOL_DBLP, DBLP_ELEMENT, &element,
				sizeof(element)));
	EXPECT_EQ(8, send(p.client, buf, 8, 0));

	EXPECT_EQ(LEN, message_recv(p.server, to, LEN, 0, &m));
	EXPECT_EQ(-1, pattern_check(to, LEN, 0, 1, 0));
	EXPECT_EQ(99, m.info.tag);
	EXPECT_EQ(0, m.info.msg_id);
	message_free(&m);
	EXPECT_EQ(8, message_recv(p.server, to, LEN, 0, &m));
	EXPECT_EQ(1, m.info.msg_id);
	message_free(&m);

	/* One report for each message, and one count. */
	ASSERT_TRUE(wait_for(p.client, POLLERR, 20 * SECONDS));
	EXPECT_EQ(0, message_recv(p.client, NULL, 0, MSG_ERRQUEUE, &report));
	EXPECT_EQ(99, report.info.tag);
	EXPECT_EQ(LEN, report.info.length);
	EXPECT_EQ(0, report.info.msg_id);
	ASSERT_TRUE(wait_for(p.client, POLLERR, 20 * SECONDS));
	EXPECT_EQ(0, message_recv(p.client, NULL, 0, MSG_ERRQUEUE, &report));
	EXPECT_EQ(1, report.info.msg_id);
	all = get_info(p.client);
	EXPECT_EQ(2, all.msgs_sent);
	EXPECT_EQ(LEN + 8, all.bytes_delivered);
	all = get_info(p.server);
	EXPECT_EQ(2, all.msgs_received);
	EXPECT_EQ(0, get_meminfo(p.client, SK_MEMINFO_WMEM_QUEUED));
	EXPECT_EQ(0, get_meminfo(p.server, SK_MEMINFO_RMEM_ALLOC));
}

/*
 * Without DBLP_PARTIAL_SEND no call takes a part: the program would send the next message,
 * which may be exactly as long as the rest of this one.
 */
TEST(all_or_nothing_in_nonblocking_calls)
{
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	uint32_t most, n, i;
	struct pair p;

	netns_new();
	pair_open(&p, 1, MIB, 8 * MIB);
	/* POLLERR would end each wait for POLLOUT */
	set_u32(p.client, DBLP_NOTIFY, 0);
	most = get_info(p.client).whole_max;
	ASSERT_EQ(MIB, most);
	/* EAGAIN until a message fits, EMSGSIZE if it never fits */
	EXPECT_ERR(EMSGSIZE, send(p.client, buf, most + 1, MSG_DONTWAIT));
	EXPECT_EQ(most, send(p.client, buf, most, MSG_DONTWAIT));
	ASSERT_EQ(0, system("tc qdisc add dev lo root netem delay 5ms limit 10000"));
	for (n = 1; send(p.client, buf, most, MSG_DONTWAIT) == most; n++)
		;
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_ERR(EMSGSIZE, send(p.client, buf, most + 1, MSG_DONTWAIT));
	for (i = 1; i < n; i++)
		ASSERT_EQ(most, recv(p.server, to, LEN, MSG_WAITALL));
	ASSERT_TRUE(wait_for(p.client, POLLOUT, 20 * SECONDS));
	EXPECT_EQ(most, send(p.client, buf, most, MSG_DONTWAIT));
	/* The timeout may expire during the call */
	set_timeout(p.client, SO_SNDTIMEO, 60000);
	EXPECT_ERR(EMSGSIZE, send(p.client, buf, most + 1, 0));
	EXPECT_EQ(most, send(p.client, buf, most, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(most, recv(p.server, to, LEN, MSG_WAITALL));
	EXPECT_ERR(EAGAIN, recv(p.server, to, LEN, MSG_DONTWAIT));
}

static void on_alarm(int sig)
{
}

/* Is a signal of a process pending, that is, does a call ignore it? */
static bool has_pending(pid_t pid)
{
	char path[64], line[256];
	unsigned long long set = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "r");
	if (!status)
		die("%s", path);
	while (fgets(line, sizeof(line), status) &&
	       sscanf(line, "ShdPnd: %llx", &set) != 1)
		;
	fclose(status);
	return set;
}

TEST(all_or_nothing_despite_signals)
{
	struct itimerval often = {
		.it_value.tv_usec = 10000, .it_interval.tv_usec = 10000,
	};
	struct sigaction sa = { .sa_handler = on_alarm };
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	struct pair p;
	int status;
	pid_t pid;

	netns_new();
	pair_open(&p, 1, MIB, MIB);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		while (!has_pending(getppid()))
			sleep_ms(1);
		_exit(recv(p.server, to, LEN, MSG_WAITALL) != LEN ||
		      pattern_check(to, LEN, 0, 1, 0) >= 0);
	}
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	EXPECT_EQ(LEN, send(p.client, buf, LEN, 0));
	setitimer(ITIMER_REAL, &(struct itimerval){}, NULL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* The peer may have reset the connection */
static bool sends_no_more(int fd, const void *buf)
{
	ssize_t ret = RESULT(send(fd, buf, MIB, MSG_NOSIGNAL));

	return ret == -EPIPE || ret == -ECONNRESET;
}

/* The rest of the message is unreadable: the next message must not replace it */
TEST(all_or_nothing_of_bad_memory)
{
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	size_t good = LEN - MIB;
	ssize_t ret, sum = 0;
	struct pair p;

	netns_new();
	pair_open(&p, 1, MIB, 8 * MIB);
	ASSERT_EQ(0, mprotect(buf + good, MIB, PROT_NONE));
	EXPECT_EQ(8, send(p.client, buf, 8, 0));
	EXPECT_ERR(EFAULT, send(p.client, buf, LEN, 0));
	EXPECT_TRUE(sends_no_more(p.client, buf));
	EXPECT_EQ(8, recv(p.server, to, LEN, 0));
	while ((ret = recv(p.server, to, LEN, 0)) > 0)
		sum += ret;
	EXPECT_EQ(-1, ret);
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_LT(0, sum);
	EXPECT_GE(good, sum);
}

/* A fatal signal ends the call */
TEST(all_or_nothing_until_killed)
{
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	struct pair p;
	ssize_t ret;
	int status;
	pid_t pid;

	netns_new();
	pair_open(&p, 1, MIB, MIB);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send(p.client, buf, LEN, 0) == LEN);
	ASSERT_TRUE(wait_for(p.server, POLLIN, 20 * SECONDS));
	while (get_info(p.client).bytes_first < MIB / 2)
		sleep_ms(1);
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	/* Another process also has the socket open */
	EXPECT_TRUE(sends_no_more(p.client, buf));
	while ((ret = recv(p.server, to, LEN, 0)) > 0)
		;
	EXPECT_EQ(-1, ret);
	EXPECT_EQ(ECONNRESET, errno);
}

/* A timeout or a signal ends a message early; then the connection ends */
static void cut_off(struct __test_metadata *_metadata, bool by_signal,
		    bool shut)
{
	/* Repeat the signal, in case the call has not begun yet */
	struct itimerval soon = {
		.it_value.tv_usec = 100000, .it_interval.tv_usec = 100000,
	}, never = { };
	struct sigaction sa = { .sa_handler = on_alarm };
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	ssize_t done, ret, sum = 0;
	struct pair p;

	netns_new();
	pair_open(&p, 1, MIB, MIB);
	set_u32(p.client, DBLP_PARTIAL_SEND, 1);
	EXPECT_EQ(8, send(p.client, buf, 8, 0));
	if (by_signal) {
		sigaction(SIGALRM, &sa, NULL);
		setitimer(ITIMER_REAL, &soon, NULL);
	} else {
		set_timeout(p.client, SO_SNDTIMEO, 100);
	}
	done = send(p.client, buf, LEN, 0);
	setitimer(ITIMER_REAL, &never, NULL);
	EXPECT_LT(0, done);
	EXPECT_GT(LEN, done);
	EXPECT_LT(0, ({ int n; ioctl(p.client, SIOCOUTQNSD, &n); n; }));
	if (shut) {
		EXPECT_EQ(0, shutdown(p.client, SHUT_WR));
		EXPECT_ERR(EPIPE, send(p.client, buf, LEN - done,
				       MSG_NOSIGNAL));
	} else {
		close(p.client);
	}

	/* A complete message arrives; the incomplete one never does */
	EXPECT_EQ(8, recv(p.server, to, LEN, 0));
	while ((ret = recv(p.server, to, LEN, 0)) > 0)
		sum += ret;
	EXPECT_EQ(-1, ret);
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_EQ(done, sum);
	EXPECT_EQ(-1, pattern_check(to, sum, 0, 1, 0));
	EXPECT_EQ(0, recv(p.server, to, LEN, 0));
	if (shut)
		close(p.client);
	close(p.server);
}

TEST(a_timeout_and_close_in_the_middle)
{
	cut_off(_metadata, false, false);
}

TEST(a_signal_and_shutdown_in_the_middle)
{
	cut_off(_metadata, true, true);
}

#define THREADS		4
#define EACH		3

struct sender {
	pthread_t thread;
	int fd;
	int number;
};

static void *send_some(void *arg)
{
	struct sender *s = arg;
	struct dblp_sndinfo info = { .tag = s->number };
	unsigned char *buf = new_pages(LEN);
	int i;

	memset(buf, s->number, LEN);
	for (i = 0; i < EACH; i++)
		if (sndinfo_send(s->fd, buf, LEN, 0, &info) != LEN)
			die("send()");
	munmap(buf, LEN);
	return NULL;
}

TEST(threads_that_send_at_once)
{
	unsigned char *to = new_pages(LEN);
	struct sender s[THREADS];
	struct message m;
	struct pair p;
	int i;

	netns_new();
	pair_open(&p, 0, MIB, 8 * MIB);
	for (i = 0; i < THREADS; i++) {
		s[i].fd = p.client;
		s[i].number = i + 1;
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, send_some,
					    &s[i]));
	}
	for (i = 0; i < THREADS * EACH; i++) {
		ASSERT_EQ(LEN, message_recv(p.server, to, LEN, 0, &m));
		EXPECT_EQ(i, m.info.msg_id);
		EXPECT_EQ(-1, bytes_check(to, LEN, m.info.tag));
		message_free(&m);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(s[i].thread, NULL);
	EXPECT_SOON(1, !get_meminfo(p.client, SK_MEMINFO_WMEM_QUEUED));
}

/* A message of the peer's whole window, in pieces, needs no more credit */
TEST(the_largest_whole_message_from_a_small_buffer)
{
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	int most = LEN - 1024;
	struct message m;
	struct pair p;
	pid_t pid;

	netns_new();
	pair_open(&p, 0, 256 << 10, LEN);
	EXPECT_ERR(EMSGSIZE, send(p.client, buf, most + 1, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send(p.client, buf, most, 0) != most);
	ASSERT_TRUE(wait_for(p.server, POLLIN, 20 * SECONDS));
	EXPECT_EQ(most, ({ int n; ioctl(p.server, SIOCINQ, &n); n; }));
	EXPECT_EQ(most, message_recv(p.server, to, LEN, 0, &m));
	EXPECT_EQ(-1, pattern_check(to, most, 0, 1, 0));
	message_free(&m);
}

/* Loss within the budget of the whole message; both ends have the same loss map */
static void lossy(struct __test_metadata *_metadata, int placement)
{
	uint32_t size = less_if_slow(LEN, 4, "bytes"), critical = size / 6;
	struct dblp_sndinfo info = {
		.tag = 7, .flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = 200000, .policy = DBLP_POLICY_EAGER,
		.critical = critical,
	};
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	struct message m, report;
	struct dblp_info all;
	uint32_t i, sum = 0;
	struct pair p;
	pid_t pid;

	netns_new();
	netns_set_mtu(1500);
	ASSERT_EQ(0, system("tc qdisc add dev lo root netem loss 10% limit 10000"));
	pair_open(&p, placement, size / 4, 2 * size);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(sndinfo_send(p.client, buf, size, 0, &info) != size);
	memset(to, 0xaa, size);
	ASSERT_LT(0, message_recv(p.server, to, size, MSG_WAITALL, &m));
	EXPECT_EQ(7, m.info.tag);
	EXPECT_EQ(size, m.info.length);
	EXPECT_LT(0, m.info.missing);
	EXPECT_GE(budget_bytes(200000, size - critical), m.info.missing);
	EXPECT_EQ(m.info.ranges, m.n);
	for (i = 0; i < m.n; i++) {
		EXPECT_LE(critical, m.range[i].offset);
		if (i)
			EXPECT_LT(m.range[i - 1].offset +
				  m.range[i - 1].length, m.range[i].offset);
		EXPECT_EQ(-1, bytes_check(to + m.range[i].offset,
					  m.range[i].length, 0));
		sum += m.range[i].length;
		pattern_fill(to + m.range[i].offset, m.range[i].length,
			     m.range[i].offset, 1, 0);
	}
	EXPECT_EQ(m.info.missing, sum);
	EXPECT_EQ(-1, pattern_check(to, size, 0, 1, 0));
	ASSERT_TRUE(wait_for(p.client, POLLERR, 20 * SECONDS));
	EXPECT_EQ(0, message_recv(p.client, NULL, 0, MSG_ERRQUEUE, &report));
	EXPECT_EQ(0, memcmp(&m.info, &report.info, sizeof(m.info)));
	ASSERT_EQ(m.n, report.n);
	EXPECT_EQ(0, memcmp(m.range, report.range, m.n * sizeof(*m.range)));
	message_free(&m);
	message_free(&report);
	/* The first piece was complete, the message was not */
	all = get_info(p.client);
	EXPECT_EQ(1, all.msgs_sent);
	EXPECT_EQ(1, all.msgs_sent_budget);
	all = get_info(p.server);
	EXPECT_EQ(1, all.msgs_received);
	EXPECT_EQ(1, all.msgs_received_budget);
	pair_close(&p);
}

TEST(loss_in_pieces_received_whole)
{
	lossy(_metadata, 0);
}

TEST(loss_in_pieces_placed)
{
	lossy(_metadata, 1);
}

/* Connect, and send the first part of a message that exceeds both buffers; returns its length */
static uint32_t send_part(struct pair *p, const unsigned char *buf, uint32_t size, bool notify,
			  const struct dblp_sndinfo *info)
{
	ssize_t part;

	netns_new();
	netns_set_mtu(1500);
	pair_open(p, 1, size / 4, size / 2);
	set_u32(p->client, DBLP_PARTIAL_SEND, 1);
	set_u32(p->client, DBLP_NOTIFY, notify);
	set_u32(p->client, DBLP_CLOSE_POLICY, DBLP_POLICY_EAGER);
	part = sndinfo_send(p->client, buf, size, MSG_DONTWAIT, info);
	if (part <= 0 || (uint32_t)part >= size)
		die("%zd of %u bytes are sent", part, size);
	return part;
}

/* In a child, send the rest after the first part is settled, with another value of an option */
static pid_t send_rest(int fd, const unsigned char *buf, uint32_t size, int option, uint32_t value)
{
	pid_t pid = fork();
	int left;

	if (pid)
		return pid;
	if (!SOON(1, (ioctl(fd, SIOCOUTQ, &left), !left)))
		die("%d bytes are not settled", left);
	set_u32(fd, option, value);
	_exit(send(fd, buf, size, 0) != size);
}

/* The message is reported with all of its ranges, or not at all */
static void switched(struct __test_metadata *_metadata, bool notify)
{
	uint32_t size = less_if_slow(LEN, 4, "bytes");
	struct dblp_sndinfo info = SNDINFO(200000, EAGER);
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	struct message m, report;
	int status, left;
	struct pair p;
	uint32_t part;
	pid_t pid;

	part = send_part(&p, buf, size, notify, &info);
	pid = send_rest(p.client, buf + part, size - part, DBLP_NOTIFY, !notify);
	ASSERT_LE(0, pid);
	ASSERT_LT(0, message_recv(p.server, to, size, MSG_WAITALL, &m));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* The sender withholds the budget's share */
	EXPECT_LT(0, m.n);
	EXPECT_GT(size / 8, m.range[0].offset);
	EXPECT_SOON(1, (ioctl(p.client, SIOCOUTQ, &left), !left));
	EXPECT_EQ(notify, get_info(p.client).reports);
	EXPECT_EQ(notify ? 0 : -1,
		  message_recv(p.client, NULL, 0, MSG_ERRQUEUE, &report));
	if (notify) {
		EXPECT_EQ(0, memcmp(&m.info, &report.info, sizeof(m.info)));
		ASSERT_EQ(m.n, report.n);
		EXPECT_EQ(0, memcmp(m.range, report.range,
				    m.n * sizeof(*m.range)));
		message_free(&report);
	}
	message_free(&m);
	/* The option applies to new messages */
	set_u32(p.client, DBLP_NOTIFY, !notify);
	EXPECT_EQ(1, send(p.client, buf, 1, 0));
	EXPECT_SOON(1, (ioctl(p.client, SIOCOUTQ, &left), !left));
	EXPECT_EQ(!notify, get_info(p.client).reports);
	pair_close(&p);
}

TEST(reports_switched_off_in_the_middle)
{
	switched(_metadata, true);
}

TEST(reports_switched_on_in_the_middle)
{
	switched(_metadata, false);
}

/* Pieces after the change are sent in random order, so that what is missing is spread */
TEST(a_budget_raised_in_the_middle)
{
	uint32_t size = less_if_slow(LEN, 4, "bytes"), part;
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	static const struct dblp_sndinfo none;
	struct message m;
	struct pair p;
	int status;
	pid_t pid;

	part = send_part(&p, buf, size, true, &none);
	pid = send_rest(p.client, buf + part, size - part, DBLP_BUDGET, 200000);
	ASSERT_LE(0, pid);
	ASSERT_LT(0, message_recv(p.server, to, size, MSG_WAITALL, &m));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_LT(size / 100, m.info.missing);
	EXPECT_LE(part, m.range[0].offset);
	TH_LOG("%u ranges are missing", m.n);
	EXPECT_LT(20, m.n);
	message_free(&m);
	pair_close(&p);
}

/* The window is that of a fast link when the device queue of a slow link is full: a sender
 * that continued would lose each packet of the window.
 */
TEST(no_sending_into_a_full_device_queue)
{
	unsigned char *buf = new_message(0), *to = new_pages(LEN);
	uint64_t window, acks, probes, refused;
	struct pair p;
	int i;

	netns_new();
	netns_set_mtu(1500);
	pair_open(&p, 0, 4 * LEN, 4 * LEN);
	for (i = 0; i < 3000 && get_info(p.client).cwnd < 300 * 1500; i++) {
		ASSERT_EQ(LEN, send(p.client, buf, LEN, 0));
		ASSERT_EQ(LEN, recv(p.server, to, LEN, MSG_WAITALL));
	}
	window = get_info(p.client).cwnd / 1500;
	ASSERT_LE(300, window);
	acks = mib("AckSent");
	probes = mib("PtoExpired");
	/* The queue passes the largest train at once and holds one more */
	ASSERT_EQ(0, system("tc qdisc add dev lo root tbf rate 8kbit burst 70000 limit 70000"));
	ASSERT_EQ(LEN, send(p.client, buf, LEN, 0));
	while (!mib("XmitError") || mib("PtoExpired") == probes)
		sleep_ms(1);
	refused = mib("XmitError");
	acks = mib("AckSent") - acks;
	probes = mib("PtoExpired") - probes;
	TH_LOG("a window of %u packets, %u buffers refused, %u ACKs, %u probe timeouts",
	       (uint32_t)window, (uint32_t)refused, (uint32_t)acks, (uint32_t)probes);
	EXPECT_GE(1 + acks + 2 * probes, refused);
	ASSERT_EQ(0, system("tc qdisc change dev lo root tbf rate 1gbit burst 70000 limit 2000000"));
	EXPECT_EQ(LEN, recv(p.server, to, LEN, MSG_WAITALL));
}

TEST_HARNESS_MAIN
