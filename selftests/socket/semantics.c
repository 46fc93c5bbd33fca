// SPDX-License-Identifier: GPL-2.0-only
/*
 * Behaviour that programs know from other socket families: keepalive, linger, half-closed
 * connections, several sockets on one port, and calls that move bytes without send() and
 * recv().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "lib/conn.h"

/* Number of packets on lo */
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
/* Tolerance of a busy machine; virtual time is exact to a few ms */
#define SLACK_MS	1500

static void keep_alive(int fd)
{
	set_u32(fd, DBLP_KEEPALIVE, IDLE_MS);
	set_u32(fd, DBLP_USER_TIMEOUT, PATIENCE_MS);
	set_int(fd, SO_KEEPALIVE, 1);
}

TEST_F(conn, keepalive_ends_the_wait_for_a_dead_peer)
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
	/* The error is reported once, then end of file */
	EXPECT_EQ(0, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, keepalive_is_inherited_by_accepted_sockets)
{
	int client, server;
	char buf[8];

	keep_alive(self->listener);
	connect_pair(&self->addr, self->listener, &client, &server);
	EXPECT_EQ(1, get_int(server, SO_KEEPALIVE));
	netem("loss 100%");
	EXPECT_ERR(ETIMEDOUT, recv(server, buf, sizeof(buf), 0));
	EXPECT_EQ(IDLE_MS, get_u32(server, DBLP_KEEPALIVE));
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

/*
 * Each end answers a PING by FLOW, and sends three more FLOWs, while its own PING is in flight.
 * If one of these repeated the PING, it would be answered in turn.
 */
TEST_F(conn, keepalives_that_cross_leave_an_idle_connection)
{
	const int ends[] = { self->client, self->server };
	uint64_t sent;
	int i;

	netem("delay 50ms");
	for (i = 0; i < 2; i++) {
		set_u32(ends[i], DBLP_KEEPALIVE, 50);
		set_int(ends[i], SO_KEEPALIVE, 1);
	}
	while (mib("KeepaliveSent") < 6)
		sleep_ms(5);
	for (i = 0; i < 2; i++)
		set_int(ends[i], SO_KEEPALIVE, 0);
	for (i = 0; i < 6; i++)
		set_u32(ends[i % 2], DBLP_BUDGET_CAP, i);
	i = 0;
	do {
		sent = mib("PktSent");
		sleep_ms(300);
	} while (mib("PktSent") != sent && ++i < 30);
	EXPECT_GT(30, i);
}

TEST_F(conn, keepalive_probes_only_idle_peers)
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

TEST_F(conn, keepalive_detects_a_peer_without_the_connection)
{
	char buf[8];

	/* Lose its reset */
	netem("loss 100%");
	set_linger(self->server, 1, 0);
	close(self->server);
	self->server = -1;
	netem("loss 0%");
	keep_alive(self->client);
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, an_idle_connection_without_keepalive_sends_nothing)
{
	uint64_t before;

	EXPECT_EQ(0, get_int(self->client, SO_KEEPALIVE));
	EXPECT_EQ(2, send(self->client, "hi", 2, 0));
	EXPECT_SOON(1, get_info(self->client).msgs_sent);
	sleep_ms(500);
	before = lo_packets();
	sleep_ms(3000);
	EXPECT_EQ(before, lo_packets());
	EXPECT_EQ(0, mib("KeepaliveSent"));
}

TEST_F(conn, a_sender_without_credit_probes_rarely)
{
	int client, server, i;
	uint64_t before;
	char *buf = noise_new(10000);

	set_int(self->listener, SO_RCVBUF, 50000);
	connect_pair(&self->addr, self->listener, &client, &server);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(10000, send(client, buf, 10000, MSG_DONTWAIT));
	sleep_ms(1000);
	EXPECT_GE(100, mib("PktSent"));
	before = lo_packets();
	sleep_ms(2000);
	/* Two packets per half second, and their ACKs */
	EXPECT_GE(50, lo_packets() - before);

	for (i = 0; i < 100; i++)
		EXPECT_EQ(10000, recv(server, buf, 10000, 0));
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
	/* The server's socket and the listener are left */
	EXPECT_EQ(2, socket_count());
}

TEST_F(conn, linger_0_drops_what_was_not_sent)
{
	int size = 8 << 20;
	char *buf = noise_new(size);

	/* The data takes many round trips, and more packets than probe timeouts would send. close()
	 * does not wait for it
	 */
	netem("delay 1s");
	set_linger(self->client, 1, 0);
	EXPECT_EQ(size, send(self->client, buf, size, 0));
	close(self->client);
	self->client = -1;
	EXPECT_EQ(2, socket_count());
	EXPECT_ERR(ECONNRESET, recv(self->server, buf, size, 0));
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
	/* No socket is left in the background */
	EXPECT_EQ(2, socket_count());
	EXPECT_EQ(4, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), MSG_DONTWAIT));
}

TEST_F(conn, lingering_times_out_and_continues_in_the_background)
{
	uint64_t start;
	char buf[8];

	netem("loss 100%");
	set_linger(self->client, 1, 1);
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	start = now_ms();
	EXPECT_EQ(0, close(self->client));
	self->client = -1;
	/* Late ticks of a busy machine shorten a timeout */
	EXPECT_LE(900, now_ms() - start);
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

TEST_F(conn, exit_does_not_linger)
{
	uint64_t start;
	pid_t pid;

	netem("loss 100%");
	set_linger(self->client, 1, 60);
	EXPECT_EQ(4, send(self->client, "last", 4, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* Wait until the other descriptor is closed */
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

TEST_F(conn, half_close_keeps_the_other_direction_open)
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
}

TEST_F(conn, messages_after_shut_rd_are_kept)
{
	char buf[8];

	EXPECT_EQ(0, shutdown(self->server, SHUT_RD));
	EXPECT_EQ(POLLIN | POLLOUT | POLLRDHUP, poll_now(self->server));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
	/* As with TCP, the peer does not notice, and its messages are kept */
	EXPECT_EQ(3, send(self->client, "abc", 3, 0));
	while (get_info(self->server).msgs_received < 1)
		sleep_ms(5);
	EXPECT_EQ(POLLOUT, poll_now(self->client));
	EXPECT_EQ(3, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));

	/* Closing with unread messages sends a reset */
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
	/* The socket keeps its port, and can listen again */
	local_name(self->listener, &a);
	EXPECT_EQ(self->addr.sdblp_port, a.sdblp_port);
	EXPECT_EQ(0, listen(self->listener, 1));
	EXPECT_EQ(0, connect_to(client, &self->addr));
}

/*
 * Other ways to move bytes
 */

TEST_F(conn, read_and_write_are_message_operations)
{
	struct iovec out[2] = { { "ab", 2 }, { "cde", 3 } }, in[3];
	char a[1], b[2], c[8], buf[16];
	long got;

	EXPECT_EQ(3, write(self->client, "xyz", 3));
	EXPECT_EQ(5, writev(self->client, out, 2));
	EXPECT_EQ(4, write(self->client, "last", 4));
	EXPECT_EQ(3, read(self->server, buf, sizeof(buf)));
	in[0] = (struct iovec){ a, 1 };
	in[1] = (struct iovec){ b, 2 };
	in[2] = (struct iovec){ c, 8 };
	EXPECT_EQ(5, readv(self->server, in, 3));
	EXPECT_EQ('a', a[0]);
	EXPECT_EQ('b', b[0]);
	EXPECT_EQ('d', c[0]);

	/* Offsets are refused; RWF_NOWAIT is MSG_DONTWAIT, in kernels that have it */
	in[0] = (struct iovec){ buf, sizeof(buf) };
	EXPECT_ERR(ESPIPE, preadv(self->server, in, 1, 1));
	EXPECT_EQ(4, preadv2(self->server, in, 1, -1, 0));
	got = RESULT(preadv2(self->server, in, 1, -1, RWF_NOWAIT));
	EXPECT_TRUE(got == -EAGAIN || got == -EOPNOTSUPP);
	out[0] = (struct iovec){ "now", 3 };
	EXPECT_EQ(3, pwritev2(self->client, out, 1, -1,
			      got == -EAGAIN ? RWF_NOWAIT : 0));
	EXPECT_EQ(3, read(self->server, buf, sizeof(buf)));
	EXPECT_EQ(0, read(self->server, buf, 0));
	EXPECT_ERR(ESPIPE, lseek(self->server, 0, SEEK_SET));
}

#define BATCH	20

TEST_F(conn, many_messages_in_one_call)
{
	struct mmsghdr m[BATCH] = { };
	struct iovec iov[BATCH];
	char buf[BATCH][32];
	int i, n = 0, got;

	for (i = 0; i < BATCH; i++) {
		memset(buf[i], 'a' + i, sizeof(buf[i]));
		iov[i] = (struct iovec){ buf[i], i + 1 };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	EXPECT_EQ(BATCH, sendmmsg(self->client, m, BATCH, 0));
	for (i = 0; i < BATCH; i++)
		EXPECT_EQ(i + 1, m[i].msg_len);

	memset(buf, 0, sizeof(buf));
	for (i = 0; i < BATCH; i++)
		iov[i].iov_len = sizeof(buf[i]);
	while (n < BATCH) {
		got = recvmmsg(self->server, m + n, BATCH - n, MSG_WAITFORONE,
			       NULL);
		ASSERT_LT(0, got);
		n += got;
	}
	for (i = 0; i < BATCH; i++) {
		EXPECT_EQ(i + 1, m[i].msg_len);
		EXPECT_EQ(-1, bytes_check(buf[i], i + 1, 'a' + i));
		EXPECT_EQ(MSG_EOR, m[i].msg_hdr.msg_flags);
	}
}

TEST_F(conn, splice_and_sendfile_are_refused)
{
	char buf[16], *page = calloc(3, 4096);
	int file = memfd_create("file", 0), p[2];

	ASSERT_NE(NULL, page);
	ASSERT_EQ(3 * 4096, write(file, page, 3 * 4096));
	ASSERT_EQ(0, lseek(file, 0, SEEK_SET));
	ASSERT_EQ(0, pipe(p));
	EXPECT_ERR(EINVAL, sendfile(self->client, file, NULL, 100));
	EXPECT_ERR(EINVAL, sendfile(self->client, file, NULL, 3 * 4096));
	EXPECT_EQ(5, write(p[1], "12345", 5));
	EXPECT_ERR(EINVAL, splice(p[0], NULL, self->client, NULL, 5, 0));
	/* The bytes are still in the pipe, and the peer received nothing */
	EXPECT_EQ(5, read(p[0], buf, sizeof(buf)));
	EXPECT_EQ(5, send(self->client, "after", 5, 0));
	EXPECT_TRUE(wait_for(self->server, POLLIN, 10 * SECONDS));
	EXPECT_ERR(EINVAL, splice(self->server, NULL, p[1], NULL, 100, 0));
	EXPECT_EQ(5, recv(self->server, buf, sizeof(buf), 0));
	EXPECT_EQ(1, get_info(self->server).msgs_received);
}

TEST_F(conn, zero_copy_is_refused)
{
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_ZEROCOPY));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_MORE));
	EXPECT_ERR(EOPNOTSUPP, send(self->client, "x", 1, MSG_OOB));
}

/*
 * The socket as a file
 */

TEST_F(conn, the_last_file_descriptor_ends_the_connection)
{
	int again = dup(self->client), pid;
	char buf[8];

	ASSERT_LE(0, again);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send(self->client, "child", 5, 0) != 5);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(5, recv(self->server, buf, sizeof(buf), 0));
	close(self->client);
	self->client = again;
	EXPECT_EQ(POLLOUT, poll_now(self->server));
	EXPECT_EQ(2, send(again, "me", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
	close(self->client);
	self->client = -1;
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, a_socket_is_passed_to_another_process)
{
	char control[CMSG_SPACE(sizeof(int))] = { }, buf[8];
	struct iovec iov = { buf, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int sv[2], fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &self->client, sizeof(int));
	ASSERT_EQ(1, sendmsg(sv[0], &m, 0));
	close(self->client);
	self->client = -1;
	ASSERT_EQ(1, recvmsg(sv[1], &m, 0));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	EXPECT_EQ(2, send(fd, "hi", 2, 0));
	EXPECT_EQ(2, recv(self->server, buf, sizeof(buf), 0));
	close(fd);
	close(sv[0]);
	close(sv[1]);
	EXPECT_EQ(0, recv(self->server, buf, sizeof(buf), 0));
}

TEST_F(conn, flags_of_accept4)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);
	int client = new_socket(), fd;
	char buf[8];

	ASSERT_EQ(0, connect_to(client, &self->addr));
	fd = accept4(self->listener, (struct sockaddr *)&a, &len,
		     SOCK_NONBLOCK | SOCK_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(sizeof(a), len);
	EXPECT_EQ(AF_DBLP, a.sdblp_family);
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_ERR(EAGAIN, recv(fd, buf, sizeof(buf), 0));
	EXPECT_ERR(EINVAL, accept4(self->listener, NULL, NULL, 0x40));
}

/*
 * One port for several sockets
 */

static int bind_new(const struct sockaddr_dblp *a, bool reuse, int *fd)
{
	*fd = new_socket();
	set_int(*fd, SO_REUSEADDR, reuse);
	return bind_to(*fd, a);
}

TEST_F(conn, two_listeners_at_one_address)
{
	struct sockaddr_dblp any;
	int fd, one, two;

	EXPECT_ERR(EADDRINUSE, bind_new(&self->addr, false, &fd));
	close(fd);
	EXPECT_ERR(EADDRINUSE, bind_new(&self->addr, true, &fd));
	close(fd);

	/* Before listen(), several sockets may be bound to the address */
	addr_parse(&any, variant->address, 4242);
	EXPECT_EQ(0, bind_new(&any, true, &one));
	EXPECT_ERR(EADDRINUSE, bind_new(&any, false, &two));
	close(two);
	EXPECT_EQ(0, bind_new(&any, true, &two));
	EXPECT_EQ(0, listen(two, 1));
	EXPECT_ERR(EADDRINUSE, listen(one, 1));
	EXPECT_EQ(0, listen(two, 2));
	close(two);
	EXPECT_EQ(0, listen(one, 1));
}

TEST_F(conn, a_server_restarts_while_connections_live)
{
	struct sockaddr_dblp addr;
	int old, client, server, fresh, more, got;
	char buf[8];

	addr_parse(&addr, variant->address, 4242);
	ASSERT_EQ(0, bind_new(&addr, true, &old));
	ASSERT_EQ(0, listen(old, 4));
	connect_pair(&addr, old, &client, &server);
	close(old);

	EXPECT_ERR(EADDRINUSE, bind_new(&addr, false, &fresh));
	close(fresh);
	ASSERT_EQ(0, bind_new(&addr, true, &fresh));
	/* The new socket does not listen yet */
	more = new_socket();
	EXPECT_ERR(ECONNREFUSED, connect_to(more, &addr));
	ASSERT_EQ(0, listen(fresh, 4));
	ASSERT_EQ(0, connect_to(more, &addr));
	got = accept(fresh, NULL, NULL);
	ASSERT_LE(0, got);
	EXPECT_EQ(3, send(more, "new", 3, 0));
	EXPECT_EQ(3, recv(got, buf, sizeof(buf), 0));
	/* The old connection is not affected, and its end does not affect others */
	EXPECT_EQ(3, send(client, "old", 3, 0));
	EXPECT_EQ(3, recv(server, buf, sizeof(buf), 0));
	close(server);
	close(client);
	EXPECT_EQ(3, send(got, "new", 3, 0));
	EXPECT_EQ(3, recv(more, buf, sizeof(buf), 0));
}

TEST_F(conn, a_closed_port_is_free_at_once)
{
	int fd;

	close(self->server);
	close(self->client);
	close(self->listener);
	self->server = -1;
	self->client = -1;
	/* Wait until both have exchanged FINs */
	while (socket_count())
		sleep_ms(5);
	EXPECT_EQ(0, bind_new(&self->addr, false, &fd));
	EXPECT_EQ(0, listen(fd, 1));
	self->listener = fd;
}

TEST_F(conn, joining_a_privileged_port_needs_the_privilege)
{
	struct sockaddr_dblp addr;
	int fd, other, status;
	pid_t pid;

	addr_parse(&addr, variant->address, 100);
	ASSERT_EQ(0, bind_new(&addr, true, &fd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(RESULT(bind_new(&addr, true, &other)) == -EACCES ? 0 : 2);
	}
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/*
 * Names and connecting
 */

TEST_F(conn, names_when_the_connection_is_over)
{
	struct sockaddr_dblp a;
	socklen_t len = sizeof(a);
	char buf[8];

	set_linger(self->server, 1, 0);
	close(self->server);
	self->server = -1;
	EXPECT_ERR(ECONNRESET, recv(self->client, buf, sizeof(buf), 0));
	EXPECT_ERR(ENOTCONN, getpeername(self->client, (struct sockaddr *)&a,
					 &len));
	EXPECT_EQ(0, getsockname(self->client, (struct sockaddr *)&a, &len));
	EXPECT_EQ(sizeof(a), len);
	EXPECT_ERR(ENOTCONN, shutdown(self->client, SHUT_RDWR));
	EXPECT_ERR(EISCONN, connect_to(self->client, &self->addr));
	EXPECT_ERR(EINVAL, listen(self->client, 1));
}

static void nothing(int sig)
{
}

/* Send signals every @ms, in case the call has not begun yet; 0: stop */
static void interrupt_in(int ms)
{
	struct itimerval it = {
		.it_value.tv_usec = ms * 1000, .it_interval.tv_usec = ms * 1000,
	};
	struct sigaction sa = { .sa_handler = nothing };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

TEST_F(conn, an_interrupted_connect_continues)
{
	int fd = new_socket();

	netem("delay 400ms");
	interrupt_in(100);
	EXPECT_ERR(EINTR, connect_to(fd, &self->addr));
	interrupt_in(0);
	EXPECT_EQ(0, poll_now(fd));
	EXPECT_TRUE(wait_for(fd, POLLOUT, 10 * SECONDS));
	EXPECT_EQ(0, get_int(fd, SO_ERROR));
	EXPECT_EQ(0, connect_to(fd, &self->addr));
	EXPECT_ERR(EISCONN, connect_to(fd, &self->addr));
}

TEST_F(conn, an_interrupted_receiver)
{
	char buf[8];

	interrupt_in(100);
	EXPECT_ERR(EINTR, recv(self->client, buf, sizeof(buf), 0));
	interrupt_in(100);
	EXPECT_ERR(EINTR, accept(self->listener, NULL, NULL));
	interrupt_in(0);
	EXPECT_EQ(1, send(self->server, "x", 1, 0));
	EXPECT_EQ(1, recv(self->client, buf, sizeof(buf), 0));
}

TEST_F(conn, the_result_of_connect_is_reported_once)
{
	struct sockaddr_dblp nobody = self->addr;
	int fd = new_socket();

	nobody.sdblp_port = htons(9);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &nobody));
	EXPECT_TRUE(wait_for(fd, POLLOUT, 10 * SECONDS));
	EXPECT_EQ(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP,
		  poll_now(fd));
	EXPECT_ERR(ECONNREFUSED, connect_to(fd, &nobody));
	EXPECT_EQ(0, get_int(fd, SO_ERROR));

	/* A new attempt does not see the result of the old one */
	EXPECT_ERR(EINPROGRESS, connect_to(fd, &self->addr));
	EXPECT_TRUE(wait_for(fd, POLLOUT, 10 * SECONDS));
	EXPECT_EQ(POLLOUT, poll_now(fd));
	EXPECT_EQ(0, connect_to(fd, &self->addr));
	EXPECT_EQ(1, send(fd, "x", 1, 0));
}

TEST_HARNESS_MAIN
