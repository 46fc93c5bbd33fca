/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by test programs of the socket interface: short calls, and a connection in a
 * new namespace.
 */
#ifndef DBLP_TEST_SOCK_H
#define DBLP_TEST_SOCK_H

#include "testlib.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

/* Fixture without teardown: exit of the test's process frees sockets and memory */
#define FIXTURE_ENDS_BY_EXIT(name) \
	FIXTURE_TEARDOWN(name) { } \
	struct fixture_of_##name

/* Variants of a fixture for IPv4 and IPv6, with the loopback address */
#define FIXTURE_BY_FAMILY(name) \
	FIXTURE_VARIANT(name) { const char *address; }; \
	FIXTURE_VARIANT_ADD(name, ipv4) { .address = "127.0.0.1" }; \
	FIXTURE_VARIANT_ADD(name, ipv6) { .address = "::1" }

/* Result of a call, -errno if it fails */
#define RESULT(call) ({ \
	long __ret = (errno = 0, (call)); \
	__ret == -1 ? -(long)errno : __ret; \
})

#define EXPECT_ERR(err, call)	EXPECT_EQ(-(err), RESULT(call))

#define SECONDS		1000

/* Evaluate @get until it is @want, or for some time; returns the last value */
#define SOON(want, get) ({ \
	uint64_t __until = now_ms() + 10 * SECONDS, __v; \
	\
	while ((__v = (get)) < (uint64_t)(want) && now_ms() < __until) \
		sleep_ms(1); \
	__v; \
})

#define EXPECT_SOON(want, get)	EXPECT_EQ(want, SOON(want, get))

/* Initializer of struct dblp_sndinfo: a message with its own policy and budget */
#define SNDINFO(BUDGET, POLICY) { \
	.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY, \
	.budget = BUDGET, .policy = DBLP_POLICY_##POLICY, \
}

/* Timeout for which tests wait, ms */
#define SHORT_MS	100
/* ms that a timeout may be early by tick_ms(): a tick, and rounding */
#define EARLY_MS	11

/* A socket with default options, which receives no missing bytes */
static inline int plain_socket(void)
{
	int fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket(AF_DBLP)");
	return fd;
}

static inline int try_u32(int fd, int opt, uint32_t value)
{
	return setsockopt(fd, SOL_DBLP, opt, &value, sizeof(value));
}

static inline void set_u32(int fd, int opt, uint32_t value)
{
	if (try_u32(fd, opt, value))
		die("setsockopt(%d, %u)", opt, value);
}

static inline int try_u64(int fd, int opt, uint64_t value)
{
	return setsockopt(fd, SOL_DBLP, opt, &value, sizeof(value));
}

static inline int try_key(int fd, const char *text, uint32_t flags)
{
	struct dblp_auth_key key = { .flags = flags, .length = strlen(text) };

	memcpy(key.key, text, key.length);
	return setsockopt(fd, SOL_DBLP, DBLP_AUTH_KEY, &key, sizeof(key));
}

static inline void set_key(int fd, const char *text)
{
	if (try_key(fd, text, 0))
		die("setsockopt(DBLP_AUTH_KEY)");
}

static inline int bind_to(int fd, const struct sockaddr_dblp *a)
{
	return bind(fd, (const struct sockaddr *)a, sizeof(*a));
}

static inline int connect_to(int fd, const struct sockaddr_dblp *a)
{
	return connect(fd, (const struct sockaddr *)a, sizeof(*a));
}

static inline void local_name(int fd, struct sockaddr_dblp *a)
{
	socklen_t len = sizeof(*a);

	if (getsockname(fd, (struct sockaddr *)a, &len))
		die("getsockname()");
}

/* A socket that accepts missing bytes */
static inline int new_socket(void)
{
	int fd = plain_socket();

	set_u32(fd, DBLP_BUDGET_CAP, DBLP_PPM);
	return fd;
}

/* Listen at @text; stores the address to connect to in @a */
static inline int listen_at(int fd, const char *text, int backlog, struct sockaddr_dblp *a)
{
	addr_parse(a, text, 0);
	if (bind_to(fd, a) || listen(fd, backlog))
		die("listening on %s", text);
	local_name(fd, a);
	return fd;
}

static inline int new_listener(const char *text, int backlog, struct sockaddr_dblp *a)
{
	return listen_at(new_socket(), text, backlog, a);
}

/* Returns a listener in a new namespace, with the MTU of Ethernet */
static inline int listener_apart(struct sockaddr_dblp *a)
{
	netns_new();
	netns_set_mtu(1500);
	return new_listener("127.0.0.1", 8, a);
}

/* Make a connection to a listener at @addr */
static inline void connect_pair(const struct sockaddr_dblp *addr, int listener,
				int *client, int *server)
{
	*client = new_socket();
	if (connect_to(*client, addr))
		die("connect()");
	*server = accept(listener, NULL, NULL);
	if (*server < 0)
		die("accept()");
}

static inline uint32_t get_u32(int fd, int opt)
{
	socklen_t len = sizeof(uint32_t);
	uint32_t value = 0xdeadbeef;

	if (getsockopt(fd, SOL_DBLP, opt, &value, &len))
		die("getsockopt(%d)", opt);
	errno = 0;
	if (len != sizeof(value))
		die("getsockopt(%d) gave %u bytes", opt, len);
	return value;
}

static inline void set_int(int fd, int opt, int value)
{
	if (setsockopt(fd, SOL_SOCKET, opt, &value, sizeof(value)))
		die("setsockopt(SOL_SOCKET, %d, %d)", opt, value);
}

static inline int get_int(int fd, int opt)
{
	socklen_t len = sizeof(int);
	int value = -1;

	if (getsockopt(fd, SOL_SOCKET, opt, &value, &len))
		die("getsockopt(SOL_SOCKET, %d)", opt);
	errno = 0;
	return value;
}

static inline void set_linger(int fd, int on, int seconds)
{
	struct linger l = { on, seconds };

	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)))
		die("setsockopt(SO_LINGER)");
}

static inline void set_timeout(int fd, int opt, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, opt, &tv, sizeof(tv)))
		die("setsockopt(timeout)");
}

static inline struct dblp_info get_info(int fd)
{
	struct dblp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_DBLP, DBLP_INFO, &info, &len))
		die("getsockopt(DBLP_INFO)");
	return info;
}

/* Events that poll() reports now */
static inline short poll_now(int fd)
{
	struct pollfd p = {
		.fd = fd,
		.events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI,
	};

	if (poll(&p, 1, 0) < 0)
		die("poll()");
	return p.revents;
}

static inline void sleep_ms(int ms)
{
	usleep(ms * 1000);
}

/* Are all other threads of this process sleeping? */
static inline bool others_asleep(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	bool asleep = true;
	char path[300], state;
	FILE *f;

	if (!tasks)
		die("/proc/self/task");
	while (asleep && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
		f = fopen(path, "r");
		/* A thread that has ended counts, too */
		if (!f)
			continue;
		asleep = fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || state == 'S';
		fclose(f);
	}
	closedir(tasks);
	errno = 0;
	return asleep;
}

/* Wait until all other threads sleep */
static inline void let_others_sleep(void)
{
	int ms;

	for (ms = 0; !others_asleep(); ms++) {
		if (ms > 10 * SECONDS)
			die("a thread does not wait for anything");
		sleep_ms(1);
	}
}

/* Run a shell command, which must succeed */
static inline void run(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static inline void run(const char *format, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	errno = 0;
	if (system(line))
		die("%s", line);
}

/* Descriptor of this network namespace, for netns_set() */
static inline int netns_this(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("opening the namespace");
	return fd;
}

static inline void netns_set(int netns)
{
	if (setns(netns, CLONE_NEWNET))
		die("setns()");
}

/*
 * Make a network namespace connected to this one. Its address is 10.9.0.1, the address
 * here 10.9.0.2; @here and @there are arguments of ethtool -K for the two devices.
 */
static inline int netns_cable(const char *here, const char *there)
{
	int old = netns_this(), new;

	netns_new();
	new = netns_this();
	netns_set(old);
	run("ip link add eth0 type veth peer name eth0 netns /proc/%d/fd/%d",
	    getpid(), new);
	run("ip addr add 10.9.0.2/24 dev eth0 && ip link set eth0 up");
	run("ethtool -K eth0 %s > /dev/null", here);
	netns_set(new);
	run("ip addr add 10.9.0.1/24 dev eth0 && ip link set eth0 up");
	run("ethtool -K eth0 %s > /dev/null", there);
	netns_set(old);
	close(old);
	return new;
}

/* Apply netem to lo */
static inline void netem(const char *what)
{
	run("tc qdisc replace dev lo root netem limit 100000 %s", what);
}

#endif /* DBLP_TEST_SOCK_H */
