// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ten thousand idle connections: they fit a small machine, use little kernel memory, and
 * cause neither timers nor packets. Opening and closing sockets does not disturb the
 * machine either.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/hits.h"
#include "lib/sock.h"

#include "kselftest_harness.h"

#define N		10000
/*
 * Maximum kernel memory of a connection, both ends together, in bytes, including two files
 * and a UDP socket.
 */
#define LIMIT		13500
#define TRACING		"/sys/kernel/tracing/"

static int client[N], server[N];

/* Value of a line "NAME: N kB" of /proc/meminfo, bytes */
static long meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kb = -1;

	while (f && kb < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) &&
		    line[strlen(name)] == ':')
			kb = atol(line + strlen(name) + 1);
	if (kb < 0)
		die("no %s in /proc/meminfo", name);
	fclose(f);
	return kb * 1024;
}

static long kernel_memory(void)
{
	return meminfo("Slab") + meminfo("Percpu") + meminfo("VmallocUsed");
}

static void put(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");

	if (!f || fputs(text, f) == EOF || fclose(f))
		die("cannot write '%s' to %s", text, file);
}

static unsigned long symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long at, found = 0;
	char line[256], sym[128];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %*c %127s", &at, sym) == 2 &&
		    !strcmp(sym, name))
			found = at;
	if (!found)
		die("no %s in /proc/kallsyms", name);
	fclose(f);
	return found;
}

/* Start to count expirations of connections' timers */
static void watch_timers(void)
{
	char filter[64];

	snprintf(filter, sizeof(filter), "function == 0x%lx",
		 symbol("dblp_timer_expired"));
	put(TRACING "events/timer/hrtimer_expire_entry/filter", filter);
	put(TRACING "events/timer/hrtimer_expire_entry/enable", "1");
	put(TRACING "trace", "");
}

/* Number of expirations since watch_timers() or the last call */
static int expirations(void)
{
	FILE *f = fopen(TRACING "trace", "r");
	char line[512];
	int n = 0;

	if (!f)
		die("no " TRACING "trace");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "hrtimer_expire_entry:") != NULL;
	fclose(f);
	put(TRACING "trace", "");
	return n;
}

static void unwatch_timers(void)
{
	put(TRACING "events/timer/hrtimer_expire_entry/enable", "0");
	put(TRACING "events/timer/hrtimer_expire_entry/filter", "0");
}

static void allow_files(void)
{
	struct rlimit r = { 2 * N + 100, 2 * N + 100 };

	if (setrlimit(RLIMIT_NOFILE, &r))
		die("setrlimit()");
}

/* Send messages of one packet and of many in each direction */
static void use(int a, int b)
{
	static const size_t sizes[] = { 100, 20000 };
	static char buf[20000];
	size_t i;

	/* Zeroes would not be sent */
	memset(buf, 1, sizeof(buf));
	for (i = 0; i < 2; i++)
		if (send(a, buf, sizes[i], 0) != (ssize_t)sizes[i] ||
		    recv(b, buf, sizes[i], 0) != (ssize_t)sizes[i] ||
		    send(b, buf, sizes[i], 0) != (ssize_t)sizes[i] ||
		    recv(a, buf, sizes[i], 0) != (ssize_t)sizes[i])
			die("a message did not arrive");
}

FIXTURE(idle) {
	int listener;
};

FIXTURE_SETUP(idle)
{
	netns_new();
	netns_set_mtu(1500);
	allow_files();
}

FIXTURE_ENDS_BY_EXIT(idle);

TEST_F_TIMEOUT(idle, ten_thousand_connections, 400)
{
	struct sockaddr_dblp addr;
	long before, fresh, used;
	uint64_t packets;
	int i;

	self->listener = new_listener("::1", 16, &addr);
	client[0] = new_socket();
	ASSERT_EQ(0, connect_to(client[0], &addr));
	server[0] = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, server[0]);
	use(client[0], server[0]);

	before = kernel_memory();
	for (i = 1; i < N; i++) {
		client[i] = new_socket();
		ASSERT_EQ(0, connect_to(client[i], &addr));
		server[i] = accept(self->listener, NULL, NULL);
		ASSERT_LE(0, server[i]);
	}
	fresh = (kernel_memory() - before) / (N - 1);
	fprintf(stderr, "# %ld bytes of kernel memory for a new connection\n", fresh);

	watch_timers();
	for (i = 1; i < N; i++)
		use(client[i], server[i]);
	/* Wait for memory freed by RCU, which may be late on a busy machine */
	i = 0;
	do {
		sleep_ms(1000);
		used = (kernel_memory() - before) / (N - 1);
	} while (used > LIMIT && ++i < 20);
	fprintf(stderr, "# %ld bytes for one that was used\n", used);
	fprintf(stderr, "# %d timers expired meanwhile\n", i = expirations());
	/* Otherwise the count below would be meaningless */
	EXPECT_LT(0, i);
	EXPECT_GE(LIMIT, used);

	packets = mib("PktSent") + mib("AckSent");
	sleep_ms(5000);
	i = expirations();
	fprintf(stderr, "# %d timers expired in 5 s of silence\n", i);
	EXPECT_EQ(0, i);
	EXPECT_EQ(packets, mib("PktSent") + mib("AckSent"));
	unwatch_timers();

	/* All connections are alive */
	for (i = 0; i < N; i++)
		use(client[i], server[i]);
}

/* Number of patches of kernel text while a port is bound and freed */
static unsigned long patches(const char *addr, int times)
{
	unsigned long before = hits();
	struct sockaddr_dblp a;
	int fd;

	while (times--) {
		fd = new_socket();
		addr_parse(&a, addr, 0);
		if (bind_to(fd, &a))
			die("bind()");
		close(fd);
		/* Wait until the UDP socket is freed, before the next one is created */
		sleep_ms(5);
	}
	return hits() - before;
}

/*
 * Each patch interrupts all CPUs, so only the first use of a family may patch. A VM with
 * several CPUs prevents patches itself (lib/prog/udp-encap.c), so that this test can fail
 * in virtual time only.
 */
TEST(binding_a_port_does_not_patch_the_kernel)
{
	static const char *const addrs[] = { "127.0.0.1", "::1" };
	uint64_t end;
	size_t i;

	netns_new();
	hits_open("arch_jump_label_transform_queue");
	for (i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		end = now_ms() + 10 * SECONDS;
		while (patches(addrs[i], 10) && now_ms() < end)
			;
		EXPECT_EQ(0, patches(addrs[i], 100));
	}
	hits_close();
}

TEST_HARNESS_MAIN
