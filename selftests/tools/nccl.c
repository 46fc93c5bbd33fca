// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network plugin for NCCL: its messages, errors and devices.
 */
#define _GNU_SOURCE
#include "lib/nccl_fixtures.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TEST_F(nccl, messages_of_all_sizes_are_exact)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 1500, 65536, MANY - 1, 4 * MANY + 3, 40 * MANY, 0,
	};
	size_t room;
	int i, size;

	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		room = sizes[i] + (i % 2 ? MANY : 0);
		pattern_fill(out, sizes[i], 0, 1, i);
		memset(in, 0x5a, room + 1);
		ASSERT_EQ(0, transfer(sizes[i], room, NCCL_TAG, &size));
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

	ASSERT_EQ(0, nccl_init());
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

	ASSERT_EQ(0, nccl_init());
	netem("delay 2s");
	ASSERT_EQ(0, do_listen(0, handle, &listener));
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
	ASSERT_EQ(0, do_recv(receiver, in, 8, NCCL_TAG, &request));
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

	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	memset(in, 0x5a, sizeof(in));
	EXPECT_EQ(ncclInvalidUsage, transfer(101, 100, NCCL_TAG, &size));
	EXPECT_TRUE(is_said("sent 101 bytes, where 100 were expected"));
	EXPECT_EQ(-1, bytes_check(in + 100, 100, 0x5a));
	/* The error stays */
	EXPECT_EQ(ncclInvalidUsage, do_recv(receiver, in, 8, NCCL_TAG, &request));
	close_all();
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	EXPECT_EQ(ncclInternalError, transfer(100, 100, NCCL_TAG + 1, &size));
	EXPECT_TRUE(is_said("sent tag 0x11, where 0x12 was expected"));
	EXPECT_EQ(ncclInternalError, CALL(reg_mr, sender, in, 8, NCCL_PTR_CUDA, &request));
	EXPECT_EQ(0, CALL(reg_mr, sender, in, 8, NCCL_PTR_HOST, &request));
	EXPECT_EQ(0, CALL(dereg_mr, sender, request));
	if (!plugin.v8) {
		EXPECT_EQ(ncclInvalidUsage, do_send(sender, in, 8 + (1ULL << 32), 0, &request));
		EXPECT_TRUE(is_said("a message of 4294967304 bytes exceeds the maximum"));
	}
	request = in;
	EXPECT_EQ(0, CALL(iflush, receiver, 1, data, tags, NULL, &request));
	EXPECT_EQ(NULL, request);
	EXPECT_EQ(ncclInternalError, CALL(test, NULL, &done, &size));
	request = NULL;
	EXPECT_EQ(ncclInternalError, plugin.v8 ?
		  plugin.v8->irecv(receiver, 2, data, tags, tags, NULL, &request) :
		  CALL_V10(irecv, receiver, 2, data, sizes, tags, NULL, NULL, &request));
	memset(handle, 1, sizeof(handle));
	EXPECT_EQ(ncclInvalidUsage, do_connect(NCCL_NO_CLASS, handle, &request));
	EXPECT_EQ(ncclInternalError, do_listen(1, handle, &request));
	EXPECT_TRUE(is_said("there is no device 1"));
	close_all();
}

TEST_F(newest, an_unreachable_peer_is_an_error)
{
	void *request;
	int size;

	/* Applies to new sockets */
	run("dblpctl param set keepalive 100ms timeout 1s");
	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	ASSERT_EQ(0, do_recv(receiver, in, 8, NCCL_TAG, &request));
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

	ASSERT_EQ(0, nccl_init());
	/* Not zero, because elided zeroes would fit any buffer */
	memset(out, 1, sizeof(out));
	for (end = 0; end < 2; end++) {
		ASSERT_TRUE(open_class(NCCL_NO_CLASS));
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			ASSERT_EQ(0, do_recv(receiver, in, sizeof(out), NCCL_TAG, &request[i]));
			if (end)
				ASSERT_EQ(0, do_send(sender, out, sizeof(out), NCCL_TAG, &request[i]));
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

	ASSERT_EQ(0, nccl_init());
	memset(out, 1, sizeof(out));
	for (end = 0; end < 2; end++) {
		ASSERT_EQ(0, do_listen(0, handle, &listener));
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
			ASSERT_EQ(0, end ? do_send(sender, out, sizeof(out), NCCL_TAG, &request[i]) :
					   do_recv(receiver, in, 8, NCCL_TAG, &request[i]));
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

	ASSERT_EQ(0, nccl_init());
	ASSERT_EQ(0, do_listen(0, handle, &listener));
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
	EXPECT_EQ(0, transfer(1000, 1000, NCCL_TAG, &size));
	EXPECT_TRUE(is_said("does not have our handle"));
	close_all();
}

/* What a process holds */
struct held {
	size_t	fds;
	size_t	threads;
	size_t	heap;
	size_t	anonymous_kb;
};

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	if (!dir)
		die("%s", path);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static struct held held_now(void)
{
	struct held h = {
		.fds = entries("/proc/self/fd"),
		.threads = entries("/proc/self/task"),
		.heap = mallinfo2().uordblks,
	};
	/* statm counts pages of files, too, and may lag by 64 pages a thread */
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];

	while (file && !h.anonymous_kb && fgets(line, sizeof(line), file))
		sscanf(line, "Anonymous: %zu kB", &h.anonymous_kb);
	if (!h.anonymous_kb)
		die("smaps_rollup");
	fclose(file);
	return h;
}

/* Abort with requests outstanding at both ends, and a connection that is not open yet */
static void abort_in_flight(struct __test_metadata *_metadata, bool finalize_first)
{
	void *request, *other;
	int i;

	ASSERT_EQ(0, nccl_init());
	ASSERT_TRUE(open_class(NCCL_NO_CLASS));
	for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
		ASSERT_EQ(0, do_recv(receiver, in, sizeof(in), NCCL_TAG, &request));
		ASSERT_NE(NULL, request);
		ASSERT_EQ(0, do_send(sender, out, sizeof(out), NCCL_TAG, &request));
		ASSERT_NE(NULL, request);
	}
	ASSERT_EQ(0, do_listen(0, handle, &other));
	ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, handle, &request));
	ASSERT_EQ(NULL, request);
	CALL(close_listen, other);
	if (finalize_first)
		nccl_finalize();
	close_all();
	if (!finalize_first)
		nccl_finalize();
}

TEST_F(nccl, loading_and_aborting_leaves_nothing_behind)
{
	struct held first, last;
	int i;

	memset(out, 1, sizeof(out));
	memset(in, 1, sizeof(in));
	run("ip link add e0 type dummy && ip addr add 10.1.0.1/24 dev e0 && ip link set e0 up");
	for (i = 0; i < 200; i++) {
		said[0] = '\0';
		abort_in_flight(_metadata, i % 2);
		ASSERT_TRUE(nccl_unload());
		/* The first call allocates what the C library keeps */
		if (i == 20) {
			held_now();
			first = held_now();
		}
		if (i < 199)
			nccl_load(variant->version);
	}
	last = held_now();
	EXPECT_EQ(first.fds, last.fds);
	EXPECT_EQ(first.threads, last.threads);
	EXPECT_EQ(first.heap, last.heap);
	EXPECT_GE(first.anonymous_kb + 64, last.anonymous_kb);
}

/* Are properties of a version right? */
#define IS_RIGHT(p)							\
	(!strcmp((p).name, name) && !(p).pci_path && (p).guid == i &&	\
	 (p).memory == NCCL_PTR_HOST && (p).mbit_s == 10000 && (p).recvs_max == 1)
#define IS_RIGHT_V10(p)							\
	(IS_RIGHT(p) && (p).nic.n == 1 && (p).nic.device[0] == i &&	\
	 (p).p2p_max == 1 << 30 && (p).collective_max == 1 << 30)

static bool has_device(int i, const char *name)
{
	struct nccl_properties_v8 p8;
	struct nccl_properties_v10 p10;
	struct nccl_properties_v11 p11;
	struct nccl_properties_v12 p12;

	if (plugin.v8)
		return !plugin.v8->properties(i, &p8) && IS_RIGHT(p8);
	if (plugin.v10)
		return !plugin.v10->properties(i, &p10) && IS_RIGHT_V10(p10);
	if (plugin.v11)
		return !plugin.v11->properties(i, &p11) && IS_RIGHT_V10(p11) &&
		       p11.requests_max == 1;
	return !plugin.v12->properties(i, &p12) && IS_RIGHT_V10(p12) &&
	       p12.requests_max == 1 && p12.rail == NCCL_NO_ID && p12.plane == NCCL_NO_ID;
}

/* Run in a new process, because a plugin finds its devices only once */
static bool finds(const char *list, int n, const char *name)
{
	int status, found = 0;
	pid_t pid = fork();

	if (!pid) {
		if (list)
			setenv("NCCL_SOCKET_IFNAME", list, 1);
		if (nccl_init())
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

static void add_cable(int netns, const char *name, const char *here, const char *there)
{
	run("ip link add %s type veth peer name %s netns /proc/%d/fd/%d", name, name,
	    getpid(), netns);
	run("ip addr add %s dev %s nodad && ip link set %s up", here, name, name);
	run("nsenter --net=/proc/%d/fd/%d sh -c 'ip addr add %s dev %s nodad && ip link set %s up'",
	    getpid(), netns, there, name, name);
}

/* Listen at the far device, and receive one message for each connection */
static void receive_until_killed(int netns, int handle_fd)
{
	void *request;
	int size;

	netns_set(netns);
	setenv("NCCL_SOCKET_IFNAME", "=far", 1);
	if (nccl_init())
		die("init: %s", said);
	while (!do_listen(0, handle, &listener) &&
	       write(handle_fd, handle, sizeof(handle)) == sizeof(handle)) {
		while (!do_accept(listener, &receiver) && !receiver)
			;
		if (do_recv(receiver, in, MANY, NCCL_TAG, &request) ||
		    await(&request, 1, &size))
			die("receiving: %s", said);
	}
	die("listening: %s", said);
}

static void send_to(struct __test_metadata *_metadata, int handle_fd)
{
	void *request;
	int size;

	ASSERT_EQ(sizeof(handle), read(handle_fd, handle, sizeof(handle)));
	sender = NULL;
	while (!sender)
		ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, handle, &sender));
	memset(out, 1, MANY);
	ASSERT_EQ(0, do_send(sender, out, MANY, NCCL_TAG, &request));
	ASSERT_EQ(0, await(&request, 1, &size));
	CALL(close_send, sender);
}

static bool left_by(const char *device)
{
	char line[120];

	snprintf(line, sizeof(line), "ip -s -j link show %s | "
		 "jq -e '.[0].stats64.tx.bytes > %d' > /dev/null", device, MANY / 2);
	return !system(line);
}

/* A host that listens at the address of its device far, and two cables to it */
FIXTURE(routes) { int netns; int handle; pid_t pid; };
FIXTURE_VARIANT(routes) { const char *net[2], *far; int bits[2]; };
FIXTURE_VARIANT_ADD(routes, ipv4) { { "10.1.0.", "10.3.0." }, "10.9.0.", { 24, 16 } };
FIXTURE_VARIANT_ADD(routes, ipv6) {
	{ "2001:db8:1::", "2001:db8:3::" }, "2001:db8:9::", { 64, 48 }
};

FIXTURE_SETUP(routes)
{
	int fd[2], old, i;
	char name[4], here[40], there[40];

	nccl_set_up(NCCL_NEWEST);
	old = netns_this();
	netns_new();
	self->netns = netns_this();
	run("ip link add far type dummy && ip link set far up && ip addr add %s1/%d dev far nodad",
	    variant->far, variant->bits[0]);
	netns_set(old);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		snprintf(here, sizeof(here), "%s1/%d", variant->net[i], variant->bits[0]);
		snprintf(there, sizeof(there), "%s2/%d", variant->net[i], variant->bits[0]);
		add_cable(self->netns, name, here, there);
	}
	if (pipe(fd))
		die("pipe");
	self->handle = fd[0];
	self->pid = fork();
	if (!self->pid)
		receive_until_killed(self->netns, fd[1]);
}

FIXTURE_TEARDOWN(routes)
{
	kill(self->pid, SIGKILL);
	waitpid(self->pid, NULL, 0);
}

/* Route to the far device by cable @i */
static void add_route(const char *net, const char *far, int bits, int i)
{
	run("ip route add %s0/%d via %s2 dev e%d metric %d", far, bits, net, i, 10 + i);
}

TEST_F(routes, packets_leave_by_the_named_device)
{
	int i;

	for (i = 0; i < 2; i++)
		add_route(variant->net[i], variant->far, variant->bits[1], i);
	setenv("NCCL_SOCKET_IFNAME", "=e1", 1);
	ASSERT_EQ(0, nccl_init());
	send_to(_metadata, self->handle);
	EXPECT_TRUE(left_by("e1"));
	EXPECT_FALSE(left_by("e0"));
	EXPECT_EQ(NULL, strstr(said, "(warning)"));
}

TEST_F(routes, ranks_of_one_host_reach_each_other)
{
	int size;

	setenv("NCCL_SOCKET_IFNAME", "e", 1);
	ASSERT_EQ(0, nccl_init());
	/* From device 0 to the address of device 1 */
	ASSERT_EQ(0, do_listen(1, handle, &listener));
	sender = receiver = NULL;
	while (!sender)
		ASSERT_EQ(0, do_connect(NCCL_NO_CLASS, handle, &sender));
	while (!receiver)
		ASSERT_EQ(0, do_accept(listener, &receiver));
	EXPECT_EQ(0, transfer(MANY, MANY, NCCL_TAG, &size));
	EXPECT_EQ(NULL, strstr(said, "(warning)"));
	close_all();
}

TEST_F(routes, a_device_without_a_route_is_a_warning)
{
	char text[200];

	add_route(variant->net[0], variant->far, variant->bits[1], 0);
	setenv("NCCL_SOCKET_IFNAME", "e1", 1);
	ASSERT_EQ(0, nccl_init());
	send_to(_metadata, self->handle);
	EXPECT_TRUE(left_by("e0"));
	EXPECT_TRUE(is_said("NCCL_SOCKET_IFNAME names e1, which has no route to"));
	snprintf(text, sizeof(text), "packets leave by e0, by the route %s%s/%d via %s2",
		 variant->far, strchr(variant->far, ':') ? "" : "0", variant->bits[1],
		 variant->net[0]);
	EXPECT_TRUE(is_said(text));
	/* The warning is logged once */
	said[0] = '\0';
	send_to(_metadata, self->handle);
	EXPECT_EQ(NULL, strstr(said, "(warning)"));
}

TEST_F(routes, routes_choose_among_devices_that_are_not_named)
{
	add_route(variant->net[1], variant->far, variant->bits[1], 1);
	setenv("NCCL_SOCKET_IFNAME", "^lo", 1);
	ASSERT_EQ(0, nccl_init());
	send_to(_metadata, self->handle);
	EXPECT_TRUE(left_by("e1"));
	EXPECT_EQ(NULL, strstr(said, "(warning)"));
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
	EXPECT_EQ(ncclSystemError, nccl_init());
	EXPECT_TRUE(is_said("(is dblp.ko loaded?); NCCL uses another network"));
	setenv("NCCL_NET", "dblp", 1);
	EXPECT_EQ(ncclSystemError, nccl_init());
	EXPECT_TRUE(is_said("NCCL_NET=DBLP requires it, so NCCL ends"));
}

TEST_HARNESS_MAIN
