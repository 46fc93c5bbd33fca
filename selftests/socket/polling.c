// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() and epoll: the events of a socket in each state, and wakeups of all waiters.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/sock.h"

#include "kselftest_harness.h"

#define WAIT_MS		(20 * SECONDS)

FIXTURE(conn) {
	struct sockaddr_dblp addr;
	int listener;
	int client;
	int server;
};

FIXTURE_SETUP(conn)
{
	netns_new();
	self->listener = new_listener("::1", 64, &self->addr);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
}

FIXTURE_ENDS_BY_EXIT(conn);

/*
 * The table of the documentation
 */

TEST(states_before_a_connection)
{
	struct sockaddr_dblp addr;
	int fd = new_socket(), client = new_socket();

	netns_new();
	close(fd);
	close(client);
	fd = new_socket();
	client = new_socket();
	EXPECT_EQ(POLLOUT | POLLHUP, poll_now(fd));
	addr_parse(&addr, "::1", 0);
	EXPECT_EQ(0, bind_to(fd, &addr));
	EXPECT_EQ(POLLOUT | POLLHUP, poll_now(fd));
	EXPECT_EQ(0, listen(fd, 4));
	EXPECT_EQ(0, poll_now(fd));
	local_name(fd, &addr);
	EXPECT_EQ(0, connect_to(client, &addr));
	EXPECT_TRUE(wait_for(fd, POLLIN, WAIT_MS));
	EXPECT_EQ(POLLIN, poll_now(fd));
	EXPECT_EQ(0, shutdown(fd, SHUT_RDWR));
	EXPECT_EQ(POLLOUT | POLLHUP, poll_now(fd));
}

TEST_F(conn, states_while_connecting)
{
	int fd = new_socket();

	netem("delay 200ms");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &self->addr));
	EXPECT_EQ(0, poll_now(fd));
	EXPECT_TRUE(wait_for(fd, POLLOUT, WAIT_MS));
	EXPECT_EQ(POLLOUT, poll_now(fd));
	close(fd);

	fd = new_socket();
	netem("delay 0ms");
	self->addr.sdblp_port = htons(9);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	connect_to(fd, &self->addr);
	EXPECT_TRUE(wait_for(fd, POLLHUP, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP,
		  poll_now(fd));
	EXPECT_EQ(ECONNREFUSED, get_int(fd, SO_ERROR));
	EXPECT_EQ(POLLIN | POLLOUT | POLLHUP | POLLRDHUP, poll_now(fd));
}

TEST_F(conn, states_of_a_connection)
{
	char buf[8];

	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(self->server));

	/* The end is reported before everything is read, as with TCP */
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_TRUE(wait_for(self->server, POLLRDHUP, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(1, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));

	EXPECT_EQ(0, shutdown(self->server, SHUT_WR));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
		  poll_now(self->server));
	EXPECT_TRUE(wait_for(self->client, POLLHUP, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
		  poll_now(self->client));
}

TEST_F(conn, states_after_a_reset)
{
	char buf[8];

	set_linger(self->server, 1, 0);
	close(self->server);
	self->server = -1;
	EXPECT_TRUE(wait_for(self->client, POLLERR, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLERR | POLLRDHUP | POLLHUP,
		  poll_now(self->client));
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, sizeof(buf), 0));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP | POLLHUP,
		  poll_now(self->client));
}

TEST_F(conn, states_with_a_full_send_buffer)
{
	int size = 50000, sent = 0, client = new_socket(), server;
	char *buf = noise_new(size);

	set_int(self->listener, SO_RCVBUF, 200000);
	set_int(client, SO_SNDBUF, 200000);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	do {
		while (send(client, buf, size, MSG_DONTWAIT) == size)
			sent++;
	} while (wait_for(client, POLLOUT, 1000));
	EXPECT_EQ(0, poll_now(client));
	EXPECT_EQ(1, send(server, "x", 1, 0));
	EXPECT_TRUE(wait_for(client, POLLIN, WAIT_MS));
	EXPECT_EQ(POLLIN, poll_now(client));
	while (sent--)
		EXPECT_EQ(size, recv(server, buf, size, 0));
	EXPECT_TRUE(wait_for(client, POLLOUT, WAIT_MS));
	EXPECT_EQ(POLLIN | POLLOUT, poll_now(client));
}

TEST_F(conn, states_with_a_report)
{
	struct message m;

	set_u32(self->client, DBLP_NOTIFY, 1);
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_TRUE(wait_for(self->client, POLLERR, WAIT_MS));
	EXPECT_EQ(POLLOUT | POLLERR, poll_now(self->client));
	EXPECT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	EXPECT_EQ(POLLOUT, poll_now(self->client));
}

/*
 * Being woken
 */

struct waiter {
	int fd;
	short events;
	short revents;
	pthread_t thread;
};

static void *wait_in_poll(void *arg)
{
	struct waiter *w = arg;
	struct pollfd p = { .fd = w->fd, .events = w->events };

	if (poll(&p, 1, WAIT_MS) == 1)
		w->revents = p.revents;
	return NULL;
}

static void start_waiting(struct waiter *w, int fd, short events)
{
	*w = (struct waiter){ .fd = fd, .events = events };
	if (pthread_create(&w->thread, NULL, wait_in_poll, w))
		die("pthread_create()");
	/* Wait until it sleeps */
	let_others_sleep();
}

static short end_waiting(struct waiter *w)
{
	if (pthread_join(w->thread, NULL))
		die("pthread_join()");
	return w->revents;
}

TEST_F(conn, a_waiter_for_the_end_is_woken)
{
	struct waiter w;

	start_waiting(&w, self->server, POLLRDHUP);
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(0, shutdown(self->client, SHUT_WR));
	EXPECT_EQ(POLLRDHUP, end_waiting(&w));
}

TEST_F(conn, a_waiter_for_no_event_is_woken_by_the_end)
{
	struct waiter w;

	start_waiting(&w, self->client, 0);
	set_linger(self->server, 1, 0);
	close(self->server);
	self->server = -1;
	EXPECT_EQ(POLLERR | POLLHUP, end_waiting(&w));
}

TEST_F(conn, a_waiter_for_its_own_shutdown_is_woken)
{
	struct waiter w;

	start_waiting(&w, self->client, POLLRDHUP);
	EXPECT_EQ(0, shutdown(self->client, SHUT_RDWR));
	EXPECT_EQ(POLLRDHUP | POLLHUP, end_waiting(&w));
}

TEST_F(conn, a_waiter_for_reports_is_woken)
{
	struct waiter w;

	set_u32(self->client, DBLP_NOTIFY, 1);
	start_waiting(&w, self->client, 0);
	EXPECT_EQ(1, send(self->client, "x", 1, 0));
	EXPECT_EQ(POLLERR, end_waiting(&w));
}

/*
 * Many small messages: a consumer and a producer that wait only when they must. After a
 * lost wakeup both sleep until the time limit.
 */
#define MESSAGES	1000

struct worker {
	int fd;
	uint32_t mode;
	bool drain;
	int moved;
	int waits;
	const char *failed;
	pthread_t thread;
};

static size_t size_of(int i)
{
	return 1 + i * 37 % 3000;
}

static bool epoll_once(struct worker *w, int ep)
{
	struct epoll_event ev;

	w->waits++;
	if (epoll_wait(ep, &ev, 1, WAIT_MS) == 1)
		return true;
	w->failed = "nothing happened for long";
	return false;
}

static int epoll_for(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int ep = epoll_create1(0);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll");
	return ep;
}

static void *consume(void *arg)
{
	struct worker *w = arg;
	int ep = epoll_for(w->fd, EPOLLIN | w->mode);
	char buf[4096];
	ssize_t n;

	while (w->moved < MESSAGES && epoll_once(w, ep)) {
		do {
			n = recv(w->fd, buf, sizeof(buf), MSG_DONTWAIT);
			if (n > 0 && (n != size_of(w->moved) ||
				      pattern_check(buf, n, 0, 3,
						    w->moved) >= 0))
				w->failed = "a wrong message";
			w->moved += n > 0;
		} while (n > 0 && w->drain);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			w->failed = "recv()";
		if (w->failed)
			break;
	}
	close(ep);
	return NULL;
}

static void *produce(void *arg)
{
	struct worker *w = arg;
	int ep = epoll_for(w->fd, EPOLLOUT | w->mode);
	char buf[4096];
	size_t size;
	ssize_t n;

	while (w->moved < MESSAGES && epoll_once(w, ep)) {
		do {
			size = size_of(w->moved);
			pattern_fill(buf, size, 0, 3, w->moved);
			n = send(w->fd, buf, size, MSG_DONTWAIT);
			w->moved += n > 0;
		} while (n > 0 && w->drain && w->moved < MESSAGES);
		if (n < 0 && errno != EAGAIN) {
			w->failed = "send()";
			break;
		}
	}
	close(ep);
	return NULL;
}

static void run_stress(struct __test_metadata *_metadata, int listener,
		       const struct sockaddr_dblp *addr, uint32_t mode,
		       bool drain)
{
	int fd[2], i, waits = 0;
	struct worker w[4];

	fd[0] = new_socket();
	set_int(fd[0], SO_SNDBUF, 20000);
	set_int(fd[0], SO_RCVBUF, 20000);
	set_int(listener, SO_SNDBUF, 20000);
	set_int(listener, SO_RCVBUF, 20000);
	ASSERT_EQ(0, connect_to(fd[0], addr));
	fd[1] = accept(listener, NULL, NULL);
	ASSERT_LE(0, fd[1]);
	for (i = 0; i < 4; i++) {
		w[i] = (struct worker){
			.fd = fd[i / 2], .mode = mode, .drain = drain,
		};
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL,
					    i % 2 ? produce : consume, &w[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		if (w[i].failed)
			TH_LOG("worker %d: %s after %d", i, w[i].failed,
			       w[i].moved);
		EXPECT_TRUE(w[i].failed == NULL);
		EXPECT_EQ(MESSAGES, w[i].moved);
		waits += w[i].waits;
	}
	/* Without waits the test would prove nothing */
	EXPECT_LT(40, waits);
	close(fd[0]);
	close(fd[1]);
}

TEST_F_TIMEOUT(conn, edge_triggered_wakeups_are_not_lost, 120)
{
	run_stress(_metadata, self->listener, &self->addr, EPOLLET, true);
}

TEST_F_TIMEOUT(conn, level_triggered_wakeups_are_not_lost, 120)
{
	run_stress(_metadata, self->listener, &self->addr, 0, false);
}

/* Number of unread reports that blocks the next message */
#define REPORTS		4096

static void *send_one(void *fd)
{
	return (void *)RESULT(send(*(int *)fd, "x", 1, MSG_NOSIGNAL));
}

static void take_report(struct __test_metadata *_metadata, int fd)
{
	struct message m;

	ASSERT_EQ(0, message_recv(fd, NULL, 0, MSG_ERRQUEUE, &m));
	message_free(&m);
}

/* They act as a full send buffer: poll() reports room */
TEST_F_TIMEOUT(conn, unread_reports_block_sending, 60)
{
	struct epoll_event ev;
	pthread_t thread;
	void *sent;
	char c;
	int ep, i;

	set_u32(self->client, DBLP_NOTIFY, 1);
	for (i = 0; i < REPORTS; i++) {
		ASSERT_EQ(1, send(self->client, "x", 1, 0));
		ASSERT_EQ(1, recv(self->server, &c, 1, 0));
	}
	while (get_info(self->client).reports < REPORTS)
		sleep_ms(1);
	EXPECT_EQ(POLLERR, poll_now(self->client));
	EXPECT_ERR(EAGAIN, send(self->client, "x", 1, MSG_DONTWAIT));
	set_timeout(self->client, SO_SNDTIMEO, SHORT_MS);
	EXPECT_ERR(EAGAIN, send(self->client, "x", 1, 0));
	set_timeout(self->client, SO_SNDTIMEO, 0);

	ep = epoll_for(self->client, EPOLLOUT | EPOLLET);
	EXPECT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
	EXPECT_FALSE(ev.events & EPOLLOUT);
	take_report(_metadata, self->client);
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
	EXPECT_TRUE(ev.events & EPOLLOUT);
	EXPECT_TRUE(poll_now(self->client) & POLLOUT);
	EXPECT_EQ(1, send(self->client, "x", 1, MSG_DONTWAIT));
	close(ep);

	/* A waiting sender is woken by a read */
	while (get_info(self->client).reports < REPORTS)
		sleep_ms(1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_one, &self->client));
	let_others_sleep();
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, &sent));
	take_report(_metadata, self->client);
	ASSERT_EQ(0, pthread_join(thread, &sent));
	EXPECT_EQ(1, (long)sent);
	/* Turning reports off also wakes it */
	while (get_info(self->client).reports < REPORTS)
		sleep_ms(1);
	EXPECT_FALSE(poll_now(self->client) & POLLOUT);
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_one, &self->client));
	let_others_sleep();
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, &sent));
	set_u32(self->client, DBLP_NOTIFY, 0);
	ASSERT_EQ(0, pthread_join(thread, &sent));
	EXPECT_EQ(1, (long)sent);
	EXPECT_TRUE(poll_now(self->client) & POLLOUT);
}

TEST_F_TIMEOUT(conn, one_shot_wakeups_are_not_lost, 120)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT };
	int ep = epoll_for(self->server, ev.events), i;
	char buf[8];

	for (i = 0; i < 100; i++) {
		EXPECT_EQ(1, send(self->client, "x", 1, 0));
		ASSERT_EQ(1, epoll_wait(ep, &ev, 1, WAIT_MS));
		EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
		EXPECT_EQ(1, recv(self->server, buf, sizeof(buf), 0));
		ev.events = EPOLLIN | EPOLLONESHOT;
		ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, self->server, &ev));
	}
}

/* Several blocked writers on one socket */
static void *send_blocking(void *arg)
{
	struct worker *w = arg;
	char buf[3000];

	pattern_fill(buf, sizeof(buf), 0, 0, 0);
	for (w->moved = 0; w->moved < 40; w->moved++)
		if (send(w->fd, buf, sizeof(buf), 0) != sizeof(buf))
			break;
	return NULL;
}

TEST_F_TIMEOUT(conn, blocked_writers_are_all_woken, 120)
{
	int client = new_socket(), server, i;
	struct worker w[6];
	char buf[4096];

	set_int(self->listener, SO_RCVBUF, 20000);
	set_int(client, SO_SNDBUF, 10000);
	ASSERT_EQ(0, connect_to(client, &self->addr));
	server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server);
	set_timeout(server, SO_RCVTIMEO, WAIT_MS);
	for (i = 0; i < 6; i++) {
		w[i] = (struct worker){ .fd = client };
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, send_blocking,
					    &w[i]));
	}
	for (i = 0; i < 6 * 40; i++)
		ASSERT_EQ(3000, recv(server, buf, sizeof(buf), 0));
	for (i = 0; i < 6; i++) {
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(40, w[i].moved);
	}
}

/*
 * Several acceptors
 */
#define ACCEPTORS	8
#define CONNECTIONS	40

static void *accept_by_epoll(void *arg)
{
	struct worker *w = arg;
	int ep = epoll_for(w->fd, EPOLLIN | EPOLLEXCLUSIVE), fd;
	struct epoll_event ev;

	while (epoll_wait(ep, &ev, 1, WAIT_MS) == 1) {
		w->waits++;
		if (ev.events & EPOLLHUP)
			break;
		fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK);
		w->moved += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	close(ep);
	return NULL;
}

static void *accept_blocking(void *arg)
{
	struct worker *w = arg;
	int fd;

	while ((fd = accept(w->fd, NULL, NULL)) >= 0) {
		w->waits++;
		w->moved++;
		close(fd);
	}
	return NULL;
}

/* Returns how often acceptors were woken */
static int run_acceptors(struct __test_metadata *_metadata, int listener,
			 const struct sockaddr_dblp *addr,
			 void *(*acceptor)(void *))
{
	struct worker w[ACCEPTORS];
	int i, fd, moved = 0, waits = 0;
	char buf[8];

	fcntl(listener, F_SETFL,
	      acceptor == accept_blocking ? 0 : O_NONBLOCK);
	for (i = 0; i < ACCEPTORS; i++) {
		w[i] = (struct worker){ .fd = listener };
		if (pthread_create(&w[i].thread, NULL, acceptor, &w[i]))
			die("pthread_create()");
	}
	let_others_sleep();
	for (i = 0; i < CONNECTIONS; i++) {
		fd = new_socket();
		EXPECT_EQ(0, connect_to(fd, addr));
		/* A waiter receives each message before the next one is sent */
		EXPECT_EQ(0, recv(fd, buf, sizeof(buf), 0));
		close(fd);
	}
	shutdown(listener, SHUT_RDWR);
	for (i = 0; i < ACCEPTORS; i++) {
		pthread_join(w[i].thread, NULL);
		moved += w[i].moved;
		waits += w[i].waits;
	}
	EXPECT_EQ(CONNECTIONS, moved);
	return waits;
}

TEST_F_TIMEOUT(conn, blocked_acceptors, 120)
{
	run_acceptors(_metadata, self->listener, &self->addr, accept_blocking);
}

TEST_F_TIMEOUT(conn, exclusive_acceptors_are_no_thundering_herd, 120)
{
	int woken = run_acceptors(_metadata, self->listener, &self->addr,
				  accept_by_epoll);

	/* Each acceptor once at the end, and a few spurious ones */
	EXPECT_GE(2 * CONNECTIONS + ACCEPTORS, woken);
}

TEST_HARNESS_MAIN
