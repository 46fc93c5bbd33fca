// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contention for a socket: packets for a listener that a call has locked, closing a listener
 * while netlink holds one of its connections, and netlink requests for a connection that is
 * being created. A bug may hang or corrupt the kernel, which ends the VM.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <pthread.h>
#include <sys/stat.h>

#include "kselftest_harness.h"

#define WAIT_MS		10000

/*
 * Tracepoints within locked sections show contention. A stack trace at each of them takes
 * time, which makes contention likely.
 */
#define TRACING		"/sys/kernel/tracing/"
#define INSTANCE	TRACING "instances/dblp-locks/"
#define CLOSES		"events/dblp/dblp_msg_close/"
#define NUMBERED	"events/dblp_locks/numbered/"
#define MARK		"now the listener is closed"

struct trace {
	int dir;
	int event;
	int pipe;
	int marker;
	size_t len;
	char text[1 << 21];
};

static struct trace trace = { .dir = -1 };

/* Write @text to @file below @dir, an open directory or AT_FDCWD */
static void put(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_APPEND);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die("cannot write '%s' to %s", text, file);
	close(fd);
}

/* Start tracing, with a stack trace at @event */
static void trace_open(const char *event)
{
	/* Trace each new socket right after it has got its number */
	put(AT_FDCWD, TRACING "kprobe_events",
	    "r:dblp_locks/numbered dblp:dblp_sock_number");
	if (mkdir(INSTANCE, 0700))
		die("mkdir(" INSTANCE ")");
	trace.dir = open(INSTANCE, O_RDONLY | O_DIRECTORY);
	/* Use one clock for all CPUs */
	put(trace.dir, "trace_clock", "global");
	put(trace.dir, "events/dblp/dblp_conn_state/enable", "1");
	trace.event = openat(trace.dir, event, O_RDONLY | O_DIRECTORY);
	put(trace.event, "enable", "1");
	put(trace.event, "trigger", "stacktrace");
	trace.pipe = openat(trace.dir, "trace_pipe", O_RDONLY | O_NONBLOCK);
	trace.marker = openat(trace.dir, "trace_marker", O_WRONLY);
	if (trace.pipe < 0 || trace.marker < 0)
		die("open(trace_pipe, trace_marker)");
}

/* Stop tracing, which would prevent unloading of the module */
static void trace_close(void)
{
	if (trace.dir < 0)
		return;
	close(trace.pipe);
	close(trace.marker);
	put(trace.event, "trigger", "!stacktrace");
	put(trace.dir, "events/enable", "0");
	close(trace.event);
	close(trace.dir);
	if (rmdir(INSTANCE))
		die("rmdir(" INSTANCE ")");
	put(AT_FDCWD, TRACING "kprobe_events", "-:dblp_locks/numbered");
}

FIXTURE(locks) {
	struct sockaddr_dblp addr;
	struct peer peer;
	struct packet p;
	pthread_t thread;
	volatile bool stop;
	volatile uint32_t id;
	int listener;
};

FIXTURE_SETUP(locks)
{
	netns_new();
	open_netlink();
	self->listener = new_listener("127.0.0.1", 4096, &self->addr);
}

FIXTURE_TEARDOWN(locks)
{
	close(self->listener);
	trace_close();
	mnl_socket_close(nl);
}

static void *lock_listener(void *arg)
{
	FIXTURE_DATA(locks) *self = arg;

	while (!self->stop)
		get_info(self->listener);
	return NULL;
}

/*
 * If the COOKIE-ACK is delayed, the client has ended when it arrives. Then an ICMP error
 * returns for the new connection, on the CPU that creates it.
 */
#define CONNECTIONS	1000

/* Number of connections, including those dropped by a full queue of a slow machine */
static u64 attended(void)
{
	return mib("ConnPassive") + mib("DropMemory");
}

TEST_F(locks, connections_start_while_calls_lock_the_listener)
{
	struct dblp_params ours = params_default();
	u64 end = now_ms() + WAIT_MS;
	u32 i;

	ASSERT_EQ(0, pthread_create(&self->thread, NULL, lock_listener, self));
	for (i = 0; i < CONNECTIONS && now_ms() < end; i++) {
		peer_connect(&self->peer, &self->addr);
		peer_get_cookie(&self->peer);
		send_echo(&self->peer, &self->p, &ours);
		peer_close(&self->peer);
	}
	end += WAIT_MS;
	while (attended() < i && now_ms() < end)
		sleep_ms(20);
	self->stop = true;
	pthread_join(self->thread, NULL);
	EXPECT_EQ(i, attended());
	EXPECT_LT(0, mib("ConnPassive"));
	TH_LOG("%u errors came back", (u32)mib("ConnReset"));
}

/*
 * Half of each message has arrived. When half may be missing, all messages are closed at once,
 * which takes a while.
 */
#define ROUNDS		200
#define MESSAGES	500
/* Number of contentions to observe */
#define HITS		3

static void open_messages(struct __test_metadata *_metadata,
			  FIXTURE_DATA(locks) *self)
{
	struct dblp_data d = {
		.msg_len = 512, .budget = 500000, .policy = DBLP_POLICY_EAGER,
	};

	for (d.msg_id = 1; d.msg_id <= MESSAGES; d.msg_id++) {
		send_one(&self->peer, &self->p, &d, 256, NULL);
	}
	ASSERT_TRUE(peer_sync(&self->peer));
}

static int set_cap(uint32_t id, uint32_t ppm)
{
	return result(ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, id, DBLP_A_SOCKET_BUDGET_CAP,
			  ppm));
}

/* Read at most @most bytes of the trace; false if it is empty */
static bool trace_read(size_t most)
{
	ssize_t n = read(trace.pipe, trace.text + trace.len, most);

	if (n < 0 && errno != EAGAIN)
		die("read(trace_pipe)");
	trace.len += n > 0 ? n : 0;
	return n > 0;
}

static void trace_read_all(void)
{
	while (trace_read(sizeof(trace.text) - 1 - trace.len))
		;
	trace.text[trace.len] = 0;
}

/* Number of messages of socket @id closed in the trace from @at to @end */
static u32 closes(const char *at, const char *end, uint32_t id)
{
	char sock[32];
	u32 n = 0;

	snprintf(sock, sizeof(sock), " sock=%#x ", id);
	while ((at = strstr(at, "dblp_msg_close: ")) && at < end) {
		n += !strncmp(strstr(at, " sock="), sock, strlen(sock));
		at++;
	}
	return n;
}

/* Position in the trace where socket @id is closed */
static const char *over(uint32_t id)
{
	char sock[64];

	snprintf(sock, sizeof(sock), " sock=%#x from=established", id);
	return strstr(trace.text, sock);
}

static void *raise_cap(void *arg)
{
	FIXTURE_DATA(locks) *self = arg;

	/* The connection may have ended */
	if (set_cap(self->id, 1000000) && got.err != ENOENT)
		die("socket set: %s", got.msg);
	self->stop = true;
	return NULL;
}

/* Close the listener as soon as netlink has started */
static void close_amid(struct __test_metadata *_metadata,
		       FIXTURE_DATA(locks) *self)
{
	trace_read_all();
	trace.len = 0;
	self->stop = false;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, raise_cap, self));
	/* Reading one byte is fast */
	while (!trace_read(1) && !self->stop)
		;
	if (write(trace.marker, MARK, strlen(MARK)) < 0)
		die("write(trace_marker)");
	close(self->listener);
	self->listener = -1;
	pthread_join(self->thread, NULL);
	trace_read_all();
}

TEST_F(locks, a_listener_is_closed_while_netlink_has_its_connections)
{
	const char *end = trace.text + sizeof(trace.text);
	u64 until = now_ms() + 6 * WAIT_MS;
	/* A single CPU has no contention */
	const bool races = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	const u32 rounds = races ? ROUNDS : ROUNDS / 10;
	const char *mark;
	u32 i, hits = 0;

	close(self->listener);
	trace_open(CLOSES);
	for (i = 0; i < rounds && hits < HITS && now_ms() < until; i++) {
		self->listener = new_listener("127.0.0.1", 8, &self->addr);
		set_u32(self->listener, DBLP_BUDGET_CAP, 0);
		peer_connect(&self->peer, &self->addr);
		peer_handshake(&self->peer);
		/* Numbers of sockets are consecutive in a namespace */
		self->id = get_info(self->listener).id + 1;
		ASSERT_EQ(0, set_cap(self->id, 0));
		open_messages(_metadata, self);
		close_amid(_metadata, self);
		peer_close(&self->peer);

		/* Messages are closed in steps, none after the end of the connection */
		mark = strstr(trace.text, MARK);
		ASSERT_NE(NULL, mark);
		ASSERT_NE(NULL, over(self->id));
		ASSERT_NE(0, closes(trace.text, end, self->id));
		ASSERT_EQ(0, closes(over(self->id), end, self->id));
		hits += closes(mark, end, self->id) > 0;
	}
	EXPECT_EQ(0, socket_count());
	TH_LOG("closed amid the work of netlink in %u of %u rounds", hits, i);
	if (races)
		EXPECT_NE(0, hits);
}

/*
 * Netlink requests the next connection repeatedly. If connections could be found too early,
 * one of the first 30 would be.
 */
#define CHILDREN	200

struct seen {
	u32 id;
	u32 state;
	u32 peer_port;
	u32 peer_msg_max;
};

static void note_seen(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;
	struct seen *seen = arg;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(attr)) {
		case DBLP_A_SOCKET_ID:
			seen->id = mnl_attr_get_u32(attr);
			break;
		case DBLP_A_SOCKET_STATE:
			seen->state = mnl_attr_get_u8(attr);
			break;
		case DBLP_A_SOCKET_PEER_PORT:
			seen->peer_port = mnl_attr_get_u16(attr);
			break;
		case DBLP_A_SOCKET_PEER_MSG_MAX:
			seen->peer_msg_max = mnl_attr_get_u32(attr);
			break;
		}
	}
}

static void *ask_for_children(void *arg)
{
	FIXTURE_DATA(locks) *self = arg;
	struct seen seen;

	while (!self->stop) {
		struct nlmsghdr *nlh = begin(family, DBLP_CMD_SOCKET_GET,
					     NLM_F_ACK);

		memset(&seen, 0, sizeof(seen));
		mnl_attr_put_u32(nlh, DBLP_A_SOCKET_ID, self->id);
		if (result_each(nlh, note_seen, &seen))
			continue;
		if (seen.id != self->id ||
		    seen.state != DBLP_STATE_ESTABLISHED ||
		    !seen.peer_port || !seen.peer_msg_max) {
			printf("# %#x is in state %u, peer port %u, messages of %u\n",
			       seen.id, seen.state, seen.peer_port,
			       seen.peer_msg_max);
			fflush(stdout);
			self->stop = true;
			break;
		}
		self->id++;
	}
	return NULL;
}

TEST_F(locks, netlink_finds_no_incomplete_connection)
{
	struct dblp_params ours = params_default();
	u64 end = now_ms() + WAIT_MS;
	uint32_t first, i;

	trace_open(NUMBERED);
	first = get_info(self->listener).id + 1;
	self->id = first;
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, ask_for_children,
				    self));
	for (i = 0; i < CHILDREN && !self->stop && now_ms() < end; i++) {
		peer_connect(&self->peer, &self->addr);
		peer_get_cookie(&self->peer);
		send_echo(&self->peer, &self->p, &ours);
		/* Wait until it is found, otherwise it may end before */
		while (self->id <= first + i && !self->stop && now_ms() < end)
			;
		peer_close(&self->peer);
		/* An incomplete connection was found, or the time is over */
		if (self->id <= first + i)
			break;
	}
	EXPECT_FALSE(self->stop);
	self->stop = true;
	pthread_join(self->thread, NULL);
	EXPECT_NE(0, i);
}

TEST_HARNESS_MAIN
