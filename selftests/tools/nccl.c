// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network plugin for NCCL, loaded and called as by NCCL, in both versions of the interface;
 * with host memory, without NCCL.
 */
#define _GNU_SOURCE
#include "lib/sock.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../tools/nccl/abi.h"
#include "kselftest_harness.h"

#define PLUGIN		"$ORIGIN/../../tools/nccl/libnccl-net-dblp.so"
#define TAG		0x11
#define LIMIT_MS	(20 * SECONDS)
#define MANY		(1 << 20)

static const struct nccl_net_v8 *v8;
static const struct nccl_net_v10 *v10;
/* Log output of the plugin */
static char said[1 << 16];

static void logger(enum nccl_log_level level, unsigned long parts,
		   const char *file, int line, const char *format, ...)
{
	size_t at = strlen(said);
	va_list ap;

	va_start(ap, format);
	vsnprintf(said + at, sizeof(said) - at, format, ap);
	va_end(ap);
	at = strlen(said);
	snprintf(said + at, sizeof(said) - at, "%s\n",
		 level == NCCL_LOG_WARN ? " (warning)" : "");
}

static bool is_said(const char *text)
{
	if (!strstr(said, text))
		fprintf(stderr, "# not said: %s\n# but: %s\n", text, said);
	return strstr(said, text);
}

static void load(int version)
{
	void *lib = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		die("%s", dlerror());
	if (version == 8)
		v8 = dlsym(lib, "ncclNetPlugin_v8");
	else
		v10 = dlsym(lib, "ncclNetPlugin_v10");
	if (!v8 && !v10)
		die("no symbol");
}

/* Call a function that both versions have */
#define CALL(function, ...) \
	(v8 ? v8->function(__VA_ARGS__) : v10->function(__VA_ARGS__))

static enum nccl_result init(void)
{
	return v8 ? v8->init(logger) : v10->init(logger, NULL);
}

static enum nccl_result do_connect(int traffic_class, void *handle, void **conn)
{
	struct nccl_config_v10 config = { traffic_class };
	void *offload = NULL;

	return v8 ? v8->connect(0, handle, conn, &offload) :
		    v10->connect(0, &config, handle, conn, &offload);
}

static enum nccl_result do_accept(void *listener, void **conn)
{
	void *offload = NULL;

	return CALL(accept, listener, conn, &offload);
}

static enum nccl_result do_send(void *conn, void *data, size_t size, int tag,
				void **request)
{
	return v8 ? v8->isend(conn, data, size, tag, NULL, request) :
		    v10->isend(conn, data, size, tag, NULL, NULL, request);
}

static enum nccl_result do_recv(void *conn, void *data, size_t size, int tag,
				void **request)
{
	void *region = NULL, *profile = NULL;
	int size_v8 = size;

	*request = NULL;
	return v8 ? v8->irecv(conn, 1, &data, &size_v8, &tag, &region, request) :
		    v10->irecv(conn, 1, &data, &size, &tag, &region, &profile,
			       request);
}

/* Test requests until all are done or one fails; -1 after the time limit */
static int await(void **request, int n, int *size)
{
	u64 end = now_ms() + LIMIT_MS;
	int left = n, i, done, result;

	while (left && now_ms() < end)
		for (i = n - 1; i >= 0; i--) {
			if (!request[i])
				continue;
			result = CALL(test, request[i], &done, &size[i]);
			if (result)
				return result;
			if (done) {
				request[i] = NULL;
				left--;
			}
		}
	return left ? -1 : 0;
}

static void *listener, *sender, *receiver;
static char handle[NCCL_HANDLE_BYTES];

static int connect_result, accept_result;

/* Connect both ends, which are nonblocking, in turns; true on success */
static bool open_class(int traffic_class)
{
	u64 end = now_ms() + LIMIT_MS;

	sender = receiver = NULL;
	connect_result = accept_result = 0;
	if (CALL(listen, 0, handle, &listener))
		die("listen: %s", said);
	while ((!sender || !receiver) && !connect_result && !accept_result &&
	       now_ms() < end) {
		if (!sender)
			connect_result = do_connect(traffic_class, handle,
						    &sender);
		if (!receiver)
			accept_result = do_accept(listener, &receiver);
		usleep(100);
	}
	return sender && receiver;
}

static void close_all(void)
{
	CALL(close_send, sender);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

FIXTURE(nccl) { };
FIXTURE_VARIANT(nccl) { int version; };
FIXTURE_VARIANT_ADD(nccl, v8) { .version = 8 };
FIXTURE_VARIANT_ADD(nccl, v10) { .version = 10 };

static void set_up(int version)
{
	netns_new();
	netns_set_mtu(1500);
	load(version);
}

FIXTURE_SETUP(nccl)
{
	set_up(variant->version);
}

FIXTURE_TEARDOWN(nccl) { }

/* Tests that do not depend on the version, and traffic classes, which version 8 lacks */
FIXTURE(newest) { };
FIXTURE_SETUP(newest)
{
	set_up(10);
}

FIXTURE_TEARDOWN(newest) { }

static unsigned char out[40 * MANY], in[41 * MANY + 1];

/* Transfer a message of @n bytes to a buffer of @room bytes */
static int transfer(size_t n, size_t room, int tag, int *size)
{
	void *request[2] = { NULL };
	int sizes[2] = { 0 };
	int result = do_recv(receiver, in, room, tag, &request[1]) ?:
		     do_send(sender, out, n, TAG, &request[0]) ?:
		     await(request, 2, sizes);

	*size = sizes[1];
	return result ?: sizes[0] == n ? 0 : -1;
}

TEST_F(nccl, messages_of_all_sizes_are_exact)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 1500, 65536, MANY - 1, 4 * MANY + 3, 40 * MANY, 0,
	};
	size_t room;
	int i, size;

	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		room = sizes[i] + (i % 2 ? MANY : 0);
		pattern_fill(out, sizes[i], 0, 1, i);
		memset(in, 0x5a, room + 1);
		ASSERT_EQ(0, transfer(sizes[i], room, TAG, &size));
		EXPECT_EQ(sizes[i], size);
		EXPECT_EQ(-1, pattern_check(in, sizes[i], 0, 1, i));
		EXPECT_EQ(-1, bytes_check(in + sizes[i], room + 1 - sizes[i], 0x5a));
	}
	close_all();
}

TEST_F(newest, thirty_two_messages_are_in_flight)
{
	void *request[2 * NCCL_REQUESTS_MAX], *more;
	int size[2 * NCCL_REQUESTS_MAX], i, round;
	const size_t n = 100000;

	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	for (round = 0; round < 2; round++) {
		memset(in, 0, sizeof(in));
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			pattern_fill(out + i * n, n, 0, round, i);
			ASSERT_EQ(0, do_recv(receiver, in + i * n, n, i, &request[2 * i]));
			ASSERT_EQ(0, do_send(sender, out + i * n, n - i, i, &request[2 * i + 1]));
			ASSERT_NE(NULL, request[2 * i]);
			ASSERT_NE(NULL, request[2 * i + 1]);
		}
		/* One more gets no request, without an error */
		more = out;
		EXPECT_EQ(0, do_send(sender, out, 1, 0, &more));
		EXPECT_EQ(NULL, more);
		EXPECT_EQ(0, do_recv(receiver, in, 1, 0, &more));
		EXPECT_EQ(NULL, more);
		/* Test the last request first */
		ASSERT_EQ(0, await(request, 2 * NCCL_REQUESTS_MAX, size));
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			EXPECT_EQ(n - i, size[2 * i]);
			EXPECT_EQ(-1, pattern_check(in + i * n, n - i, 0, round, i));
		}
	}
	close_all();
}

TEST_F(newest, no_call_blocks)
{
	char copy[NCCL_HANDLE_BYTES];
	void *request;
	u64 start;
	int done;

	ASSERT_EQ(0, init());
	netem("delay 2s");
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	memcpy(copy, handle, sizeof(copy));
	start = now_ms();
	ASSERT_EQ(0, do_accept(listener, &receiver));
	ASSERT_EQ(NULL, receiver);
	ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, copy, &sender));
	ASSERT_EQ(NULL, sender);
	EXPECT_GT(2000, now_ms() - start);
	for (; !sender; sleep_ms(10))
		ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, copy, &sender));
	for (; !receiver; sleep_ms(10))
		ASSERT_EQ(0, do_accept(listener, &receiver));
	start = now_ms();
	ASSERT_EQ(0, do_recv(receiver, in, 8, TAG, &request));
	ASSERT_EQ(0, CALL(test, request, &done, NULL));
	EXPECT_EQ(0, done);
	EXPECT_GT(2000, now_ms() - start);
	close_all();
}

TEST_F(nccl, a_message_that_does_not_fit_is_an_error)
{
	void *request, *data[2] = { in, in };
	size_t sizes[2] = { 1, 1 };
	int tags[2] = { 0 }, size, done;

	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	memset(in, 0x5a, sizeof(in));
	EXPECT_EQ(ncclInvalidUsage, transfer(101, 100, TAG, &size));
	EXPECT_TRUE(is_said("sent 101 bytes, where 100 were expected"));
	EXPECT_EQ(-1, bytes_check(in + 100, 100, 0x5a));
	/* The error stays */
	EXPECT_EQ(ncclInvalidUsage, do_recv(receiver, in, 8, TAG, &request));
	close_all();
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	EXPECT_EQ(ncclInternalError, transfer(100, 100, TAG + 1, &size));
	EXPECT_TRUE(is_said("sent tag 0x11, where 0x12 was expected"));
	EXPECT_EQ(ncclInternalError, CALL(reg_mr, sender, in, 8, NCCL_PTR_CUDA, &request));
	EXPECT_EQ(0, CALL(reg_mr, sender, in, 8, NCCL_PTR_HOST, &request));
	EXPECT_EQ(0, CALL(dereg_mr, sender, request));
	request = in;
	EXPECT_EQ(0, CALL(iflush, receiver, 1, data, tags, NULL, &request));
	EXPECT_EQ(NULL, request);
	EXPECT_EQ(ncclInternalError, CALL(test, NULL, &done, &size));
	request = NULL;
	EXPECT_EQ(ncclInternalError, v8 ?
		  v8->irecv(receiver, 2, data, tags, tags, NULL, &request) :
		  v10->irecv(receiver, 2, data, sizes, tags, NULL, NULL, &request));
	memset(handle, 1, sizeof(handle));
	EXPECT_EQ(ncclInvalidUsage, do_connect(NCCL_NO_CLASS, handle, &request));
	EXPECT_EQ(ncclInternalError, CALL(listen, 1, handle, &request));
	EXPECT_TRUE(is_said("there is no device 1"));
	close_all();
}

TEST_F(newest, an_unreachable_peer_is_an_error)
{
	void *request;
	int size;

	/* Applies to new sockets */
	run("dblpctl param set keepalive 100ms timeout 1s");
	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	ASSERT_EQ(0, do_recv(receiver, in, 8, TAG, &request));
	netem("loss 100%");
	EXPECT_EQ(ncclRemoteError, await(&request, 1, &size));
	EXPECT_TRUE(is_said("Connection timed out"));
	netem("loss 0%");
	close_all();
	EXPECT_EQ(0, do_connect(NCCL_NO_CLASS, handle, &sender));
	while (!(size = do_connect(NCCL_NO_CLASS, handle, &sender)) && !sender)
		;
	EXPECT_EQ(ncclRemoteError, size);
	EXPECT_TRUE(is_said("connecting to 127.0.0.1"));
}

TEST_F(newest, one_end_closes_during_a_message)
{
	void *request[NCCL_REQUESTS_MAX];
	int size[NCCL_REQUESTS_MAX], end, i;

	ASSERT_EQ(0, init());
	/* Not zero, because elided zeroes would fit any buffer */
	memset(out, 1, sizeof(out));
	for (end = 0; end < 2; end++) {
		ASSERT_TRUE(open_class(NCCL_NO_CLASS));
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			ASSERT_EQ(0, do_recv(receiver, in, sizeof(out), TAG, &request[i]));
			if (end)
				ASSERT_EQ(0, do_send(sender, out, sizeof(out), TAG, &request[i]));
		}
		if (end)
			CALL(close_recv, receiver);
		else
			CALL(close_send, sender);
		EXPECT_EQ(ncclRemoteError, await(request, NCCL_REQUESTS_MAX, size));
		EXPECT_TRUE(is_said(end ? "sending to 127" : "receiving from 127"));
		if (end)
			CALL(close_send, sender);
		else
			CALL(close_recv, receiver);
		CALL(close_listen, listener);
	}
	EXPECT_EQ(0, socket_count());
}

TEST_F(newest, a_peer_that_is_killed_is_an_error)
{
	void *request[NCCL_REQUESTS_MAX];
	int size[NCCL_REQUESTS_MAX], end, i;
	pid_t pid;

	ASSERT_EQ(0, init());
	memset(out, 1, sizeof(out));
	for (end = 0; end < 2; end++) {
		ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
		sender = receiver = NULL;
		pid = fork();
		while (!pid)
			if (end ? do_accept(listener, &receiver) :
				  do_connect(NCCL_NO_CLASS, handle, &sender))
				_exit(1);
		while (end ? !sender : !receiver)
			ASSERT_EQ(0, end ? do_connect(NCCL_NO_CLASS, handle, &sender) :
					   do_accept(listener, &receiver));
		for (i = 0; i < NCCL_REQUESTS_MAX; i++)
			ASSERT_EQ(0, end ? do_send(sender, out, sizeof(out), TAG, &request[i]) :
					   do_recv(receiver, in, 8, TAG, &request[i]));
		CALL(close_listen, listener);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		EXPECT_EQ(ncclRemoteError, await(request, NCCL_REQUESTS_MAX, size));
		if (end)
			CALL(close_send, sender);
		else
			CALL(close_recv, receiver);
	}
}

TEST_F(newest, unknown_clients_are_rejected)
{
	struct sockaddr_dblp addr;
	int fd[40], i, size;

	ASSERT_EQ(0, init());
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	/* Address of the handle; half of the unknown clients are silent, half send garbage */
	memcpy(&addr, handle + 24, sizeof(addr));
	for (i = 0; i < 40; i++) {
		fd[i] = plain_socket();
		ASSERT_EQ(0, connect_to(fd[i], &addr));
		if (i % 2)
			ASSERT_EQ(24, send(fd[i], out, 24, 0));
		ASSERT_EQ(0, do_accept(listener, &receiver));
		ASSERT_EQ(NULL, receiver);
	}
	sender = NULL;
	while (!sender)
		ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, handle, &sender));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	EXPECT_EQ(0, transfer(1000, 1000, TAG, &size));
	EXPECT_TRUE(is_said("does not have our handle"));
	close_all();
}

/* Environment that lossy classes need */
static void allow(const char *classes)
{
	setenv("DBLP_NCCL_LOSSY", classes, 1);
	setenv("NCCL_PROTO", "Simple", 1);
	setenv("NCCL_P2P_LL_THRESHOLD", "0", 1);
}

/* Returns the missing bytes of some messages; other bytes must be right */
static size_t lose(struct __test_metadata *_metadata)
{
	size_t missing = 0, i;
	int round, size;

	netem("loss 5%");
	memset(out, 0x77, MANY);
	for (round = 0; round < 5; round++) {
		memset(in, 0x5a, MANY);
		ASSERT_EQ(0, transfer(MANY, MANY, TAG, &size));
		EXPECT_EQ(MANY, size);
		for (i = 0; i < MANY; i++) {
			ASSERT_TRUE(in[i] == 0x77 || !in[i]);
			missing += !in[i];
		}
	}
	return missing;
}

TEST_F(nccl, a_lossy_class_loses_within_its_budget)
{
	size_t missing;
	char text[80];

	allow("3:1%,7:2.5%");
	run("dblpctl phase set reliable fill keep");
	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(7));
	missing = lose(_metadata);
	/* Version 8 has no traffic classes */
	if (v8) {
		EXPECT_EQ(0, missing);
	} else {
		EXPECT_LT(0, missing);
		EXPECT_GE(5 * MANY / 40, missing);
		EXPECT_TRUE(is_said("are missing, and zero"));
	}
	close_all();
	snprintf(text, sizeof(text), "%zu of %d bytes from", missing, 5 * MANY);
	EXPECT_TRUE(v8 || is_said(text));
}

TEST_F(nccl, other_classes_lose_nothing_despite_operators)
{
	static const int classes[] = { NCCL_NO_CLASS, 0, 6 };
	int i;

	allow("7:2.5%");
	run("dblpctl phase set reliable loss 20%% close eager cap 20%%");
	ASSERT_EQ(0, init());
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(open_class(classes[i]));
		run("dblpctl -j socket list state established | "
		    "jq -e 'map(select(.own == \"budget,policy\")) | length == 1 and "
		    ".[0].budget == 0 and .[0].policy == \"full\"' > /dev/null");
		EXPECT_EQ(0, lose(_metadata));
		close_all();
	}
}

/* Connect as the plugin does, with any budget */
static int connect_by_hand(int traffic_class)
{
	int hello[6] = { 0 }, fd = plain_socket();
	struct sockaddr_dblp addr;

	memcpy(&hello[2], handle + 8, 8);
	hello[4] = traffic_class;
	memcpy(&addr, handle + 24, sizeof(addr));
	set_u32(fd, DBLP_BUDGET, 200000);
	set_u32(fd, DBLP_CLOSE_POLICY, DBLP_POLICY_EAGER);
	if (connect_to(fd, &addr) ||
	    send(fd, hello, sizeof(hello), 0) != sizeof(hello))
		die("connecting by hand");
	return fd;
}

TEST_F(newest, this_end_limits_losses)
{
	void *request;
	int fd, size;

	allow("7:2.5%");
	ASSERT_EQ(0, init());
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	fd = connect_by_hand(6);
	memset(out, 0x77, MANY);
	memset(out, 0, 8);
	ASSERT_EQ(MANY, send(fd, out, MANY, 0));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	ASSERT_EQ(0, do_recv(receiver, in, MANY, 0, &request));
	ASSERT_EQ(0, await(&request, 1, &size));
	EXPECT_EQ(MANY - 8, size);
	EXPECT_EQ(-1, bytes_check(in, size, 0x77));
	close(fd);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

TEST_F(newest, a_foreign_message_is_an_error)
{
	void *request;
	int fd, size;

	ASSERT_EQ(0, init());
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	fd = connect_by_hand(NCCL_NO_CLASS);
	ASSERT_EQ(7, send(fd, out, 7, 0));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	ASSERT_EQ(0, do_recv(receiver, in, MANY, 0, &request));
	EXPECT_EQ(ncclRemoteError, await(&request, 1, &size));
	EXPECT_TRUE(is_said("sent an invalid message"));
	close(fd);
}

/* The other end has a larger budget than this one */
static void send_until_killed(void)
{
	void *request;
	int size;

	setenv("DBLP_NCCL_LOSSY", "7:20%", 1);
	if (init())
		_exit(1);
	while (!sender)
		if (do_connect(7, handle, &sender))
			_exit(1);
	memset(out, 0x77, MANY);
	while (!do_send(sender, out, MANY, TAG, &request) &&
	       !await(&request, 1, &size))
		;
	_exit(1);
}

TEST_F(newest, the_smaller_budget_of_both_ends_applies)
{
	size_t missing = 0, i;
	void *request;
	int size, n;
	pid_t pid;

	allow("7:5%");
	netem("loss 10%");
	ASSERT_EQ(0, init());
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	pid = fork();
	if (!pid)
		send_until_killed();
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	EXPECT_TRUE(is_said("traffic class 7 has a loss budget of 50000 ppm"));
	for (n = 0; n < 5; n++) {
		ASSERT_EQ(0, do_recv(receiver, in, MANY, TAG, &request));
		ASSERT_EQ(0, await(&request, 1, &size));
		for (i = 0; i < MANY; i++)
			missing += !in[i];
	}
	EXPECT_LT(0, missing);
	EXPECT_GE(5 * MANY / 20, missing);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CALL(close_recv, receiver);
	CALL(close_listen, listener);
}

TEST_F(newest, only_the_simple_protocol_may_lose)
{
	static const struct {
		const char *proto, *threshold;
	} wrong[] = {
		{ NULL, "0" }, { "Simple", NULL }, { "LL128", "0" },
		{ "LL,Simple", "0" }, { "^Simple", "0" }, { "simple", "16384" },
	};
	int i;

	allow("7:2.5%");
	ASSERT_EQ(0, init());
	for (i = 0; i < 6; i++) {
		unsetenv("NCCL_PROTO");
		unsetenv("NCCL_P2P_LL_THRESHOLD");
		if (wrong[i].proto)
			setenv("NCCL_PROTO", wrong[i].proto, 1);
		if (wrong[i].threshold)
			setenv("NCCL_P2P_LL_THRESHOLD", wrong[i].threshold, 1);
		said[0] = '\0';
		EXPECT_FALSE(open_class(7));
		EXPECT_EQ(ncclInvalidUsage, connect_result);
		EXPECT_TRUE(is_said("set NCCL_PROTO=Simple and NCCL_P2P_LL_THRESHOLD=0"));
		CALL(close_listen, listener);
		/* All other classes accept any protocol */
		ASSERT_TRUE(open_class(6));
		close_all();
	}
}

TEST_F(newest, the_accepting_end_requires_the_simple_protocol_too)
{
	allow("7:2.5%");
	ASSERT_EQ(0, init());
	ASSERT_EQ(0, CALL(listen, 0, handle, &listener));
	sender = NULL;
	while (!sender)
		ASSERT_EQ(0, do_connect(7, handle, &sender));
	unsetenv("NCCL_PROTO");
	while (!accept_result && !receiver)
		accept_result = do_accept(listener, &receiver);
	EXPECT_EQ(NULL, receiver);
	EXPECT_EQ(ncclInvalidUsage, accept_result);
	EXPECT_TRUE(is_said("set NCCL_PROTO=Simple"));
}

TEST_F(newest, protocols_with_flags_in_the_data_are_not_lossy)
{
	void *data = in, *request = NCCL_FLAGS_IN_DATA, *none = NULL;
	size_t size = 8;
	int tag = TAG;

	allow("7:2.5%");
	ASSERT_EQ(0, init());
	ASSERT_TRUE(open_class(7));
	EXPECT_EQ(ncclInvalidUsage, v10->irecv(receiver, 1, &data, &size, &tag,
					       &none, &none, &request));
	close_all();
	ASSERT_TRUE(open_class(6));
	request = NCCL_FLAGS_IN_DATA;
	EXPECT_EQ(0, v10->irecv(receiver, 1, &data, &size, &tag, &none, &none,
				&request));
	EXPECT_NE(NCCL_FLAGS_IN_DATA, request);
	close_all();
}

TEST_F(newest, invalid_classes_are_refused)
{
	static const char *const wrong[] = {
		"7", "7:", "7:2", "7:0%", "7:101%", "7:2%,", ",7:2%", "7:2%x",
		"7:2%,7:3%", "-1:2%", "7:-2%", "7:0.00001%", "7:1000001ppm",
		"99999999999:2%", "7 :2%", "7:100.5%", "7:2%;8:2%",
	};
	static const char *const right[] = { "", "7:2%", "0:100%,8:1ppm", "7:0.0001%,8:2.50%" };
	int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("DBLP_NCCL_LOSSY", wrong[i], 1);
		said[0] = '\0';
		EXPECT_EQ(ncclInvalidUsage, init())
			TH_LOG("%s", wrong[i]);
		EXPECT_TRUE(is_said(wrong[i]));
	}
	for (i = 0; i < sizeof(right) / sizeof(*right); i++) {
		setenv("DBLP_NCCL_LOSSY", right[i], 1);
		EXPECT_EQ(0, init());
	}
}

static bool has_device(int i, const char *name)
{
	struct nccl_properties_v8 p8;
	struct nccl_properties_v10 p10;
	const char *found;

	if (v8) {
		if (v8->properties(i, &p8))
			return false;
		found = p8.name;
	} else {
		if (v10->properties(i, &p10))
			return false;
		found = p10.name;
		if (p10.nic.n != 1 || p10.nic.device[0] != i || p10.p2p_max < 1 << 30)
			return false;
		memcpy(&p8, &p10, offsetof(struct nccl_properties_v8, mbit_s));
		p8.mbit_s = p10.mbit_s;
		p8.recvs_max = p10.recvs_max;
	}
	return !strcmp(found, name) && !p8.pci_path && p8.guid == i &&
	       p8.memory == NCCL_PTR_HOST && p8.mbit_s == 10000 && p8.recvs_max == 1;
}

/* Run in a new process, because a plugin finds its devices only once */
static bool finds(const char *list, int n, const char *name)
{
	int status, found = 0;
	pid_t pid = fork();

	if (!pid) {
		if (list)
			setenv("NCCL_SOCKET_IFNAME", list, 1);
		if (init())
			_exit(!n ? 0 : 1);
		CALL(devices, &found);
		_exit(found == n && has_device(n - 1, name) ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	return !status;
}

TEST_F(nccl, devices_are_interfaces_that_are_up)
{
	static const char *const inner[] = { "docker0", "virbr0", "br-0a1b", "cni0", "veth9" };
	size_t i;

	EXPECT_TRUE(finds(NULL, 1, "lo"));
	run("ip link add e0 type dummy && ip addr add 10.1.0.1/24 dev e0 && "
	    "ip addr add 10.2.0.1/24 dev e0");
	EXPECT_TRUE(finds(NULL, 1, "lo"));
	run("ip link set e0 up && ip link add e01 type dummy && ip link set e01 up");
	/* A device with only a link-local address does not count */
	EXPECT_TRUE(finds(NULL, 1, "e0"));
	run("ip addr add 2001:db8::1/64 dev e01");
	EXPECT_TRUE(finds(NULL, 2, "e01"));
	EXPECT_TRUE(finds("", 2, "e01"));
	EXPECT_TRUE(finds("e", 2, "e01"));
	EXPECT_TRUE(finds("=e0", 1, "e0"));
	EXPECT_TRUE(finds("^e0", 1, "lo"));
	EXPECT_TRUE(finds("^=e0,lo", 1, "e01"));
	EXPECT_TRUE(finds("x,lo", 1, "lo"));
	EXPECT_TRUE(finds("x", 0, NULL));
	for (i = 0; i < sizeof(inner) / sizeof(*inner); i++)
		run("ip link add %s type dummy && ip addr add 10.3.%zu.1/24 dev %s && "
		    "ip link set %s up", inner[i], i, inner[i], inner[i]);
	EXPECT_TRUE(finds(NULL, 2, "e01"));
	EXPECT_TRUE(finds("virbr0", 1, "virbr0"));
}

/* Simulate a machine without the module */
static void no_family(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_DBLP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("seccomp");
}

TEST_F(newest, without_the_module_the_log_has_the_reason)
{
	no_family();
	EXPECT_EQ(ncclSystemError, init());
	EXPECT_TRUE(is_said("(is dblp.ko loaded?); NCCL uses another network"));
	setenv("NCCL_NET", "dblp", 1);
	EXPECT_EQ(ncclSystemError, init());
	EXPECT_TRUE(is_said("NCCL_NET=DBLP requires it, so NCCL ends"));
}

TEST_HARNESS_MAIN
