// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events on a machine with traffic: CPU hotplug, failing allocations, killed processes, deleted
 * namespaces, removal of the module, many threads with the same sockets.
 *
 *	stress [MODE [COUNT]]
 *
 * Without COUNT a short run, without MODE all modes. A line "# value N" has the number of
 * events. Normal connections work before and after, and at the end the module has no
 * references.
 */
#define _GNU_SOURCE
#include "lib/sock.h"
#include "lib/traffic.h"

#include "kselftest.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS	3
#define DEBUGFS	"/sys/kernel/debug/"

/* Shared memory of the processes */
static struct {
	unsigned long done;
	unsigned int ready;
	int stop;
} *shared;
static pid_t worker[WORKERS];

static bool slow(void)
{
	return getenv("KSFT_MACHINE_SLOW");
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return false;
	ret = write(fd, text, strlen(text));
	close(fd);
	return ret > 0;
}

static long read_number(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = read(fd, text, sizeof(text) - 1);
	close(fd);
	return ret > 0 ? strtol(text, NULL, 0) : -1;
}

static void must_write(const char *path, const char *text)
{
	if (!write_file(path, text))
		die("writing %s to %s", text, path);
}

/* Let a process fail if it hangs */
static void be_done_within(int seconds)
{
	alarm(slow() ? 4 * seconds : seconds);
}

/* Count an event; print progress at each tenth of @count */
static void one_done(unsigned int count)
{
	if (++shared->done % (count / 10 ?: 1) == 0)
		ksft_print_msg("%lu of %u\n", shared->done, count);
}

static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork()");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Run normal connections until stopped, and then one that must work */
static void beside(int n, bool may_fail)
{
	struct traffic t;

	traffic_start(&t, n % 2 ? "::1" : "127.0.0.1", n + 1);
	t.may_fail = may_fail;
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE))
		traffic_one(&t);
	/* One more connection may fail after the last fault */
	if (may_fail)
		traffic_one(&t);
	t.may_fail = false;
	if (!traffic_one(&t))
		die("no connection at the end");
	if (!t.messages)
		die("no message came through");
	_exit(0);
}

static void start_workers(bool may_fail)
{
	int i;

	shared->ready = 0;
	shared->stop = 0;
	for (i = 0; i < WORKERS; i++) {
		worker[i] = fork_child();
		if (!worker[i])
			beside(i, may_fail);
	}
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < WORKERS)
		sleep_ms(1);
}

static void end_workers(void)
{
	int i, status, bad = 0;

	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	for (i = 0; i < WORKERS; i++) {
		if (waitpid(worker[i], &status, 0) < 0 || status)
			bad++;
	}
	errno = 0;
	if (bad)
		die("%d of %d beside have failed", bad, WORKERS);
}

/* Processors */

static int set_cpu(int cpu, bool on)
{
	char path[64];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%d/online", cpu);
	return write_file(path, on ? "1" : "0");
}

static void hotplug(unsigned int count)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu;

	start_workers(false);
	while (shared->done < count) {
		cpu = 1 + shared->done % (cpus - 1);
		if (!set_cpu(cpu, false))
			die("taking CPU %d away", cpu);
		sleep_ms(shared->done % 20);
		if (!set_cpu(cpu, true))
			die("giving CPU %d back", cpu);
		one_done(count);
	}
	end_workers();
}

/* Processes and namespaces */

/* Run one end in this process and the other in a child, until one is killed */
static void converse(unsigned int seed)
{
	struct traffic t;

	traffic_start(&t, seed % 2 ? "::1" : "127.0.0.1", seed);
	t.may_fail = true;
	if (!fork_child()) {
		/* A listener and its connections in two processes */
		close(t.listener);
		t.listener = -1;
	}
	for (;;) {
		int fd = new_socket(), peer = -1, i;
		char buf[20000];

		try_u32(fd, DBLP_BUDGET, traffic_below(&t, 2) * 400000);
		if (t.listener >= 0)
			peer = accept(t.listener, NULL, NULL);
		else if (!connect_to(fd, &t.addr))
			peer = dup(fd);
		pattern_fill(buf, sizeof(buf), 0, seed, 0);
		for (i = 0; peer >= 0 && i < 20; i++) {
			if (send(peer, buf, 1 + traffic_below(&t, sizeof(buf)), 0) < 0)
				break;
			if (i % 3 == 0 && recv(peer, buf, sizeof(buf), 0) <= 0)
				break;
		}
		close(peer);
		close(fd);
	}
}

/* Start a group of processes with traffic, in a new namespace or not */
static pid_t start_group(unsigned int seed, bool own_ns, int leave)
{
	pid_t pid = fork_child();

	if (pid) {
		setpgid(pid, pid);
		return pid;
	}
	setpgid(0, 0);
	if (own_ns)
		netns_new();
	if (own_ns && seed % 3 == 0) {
		/* Only sockets hold the namespace, from outside */
		struct traffic t;

		traffic_start(&t, "127.0.0.1", seed);
		if (setns(leave, CLONE_NEWNET))
			die("leaving the namespace");
		close(t.listener);
		_exit(0);
	}
	converse(seed);
	_exit(1);
}

static void kill_groups(unsigned int count, bool own_ns)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), status;
	unsigned int seed = 1;
	pid_t group[4] = { 0 };
	int i = 0;

	while (shared->done < count) {
		if (group[i]) {
			usleep(rand_r(&seed) % (slow() ? 60000 : 10000));
			kill(-group[i], SIGKILL);
			waitpid(group[i], &status, 0);
			errno = 0;
			if (WIFEXITED(status) && WEXITSTATUS(status))
				die("a process has failed");
			one_done(count);
		}
		group[i] = start_group(shared->done + 1, own_ns, here);
		i = (i + 1) % 4;
	}
	for (i = 0; i < 4; i++) {
		kill(-group[i], SIGKILL);
		waitpid(group[i], &status, 0);
	}
}

static void kills(unsigned int count)
{
	start_workers(false);
	kill_groups(count, false);
	end_workers();
}

static void namespaces(unsigned int count)
{
	start_workers(false);
	kill_groups(count, true);
	end_workers();
}

/* The module */

static void reload(void)
{
	const char *path = getenv("DBLP_KO") ?: "/dblp.ko";
	const char *args = getenv("DBLP_MODULE_ARGS") ?: "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, args, 0))
		die("loading %s", path);
	close(fd);
}

/* Make a connection, and close both ends, because an orphan would live for seconds */
static void use_once(const struct sockaddr_dblp *addr)
{
	int l = socket(AF_DBLP, SOCK_SEQPACKET, 0), peer = -1;
	int fd = socket(AF_DBLP, SOCK_SEQPACKET, 0);
	char buf[sizeof(*addr)];

	if (l >= 0 && fd >= 0 && !bind_to(l, addr) && !listen(l, 4) &&
	    !connect_to(fd, addr)) {
		peer = accept(l, NULL, NULL);
		send(fd, addr, sizeof(*addr), 0);
		recv(peer, buf, sizeof(buf), 0);
	}
	close(fd);
	if (peer >= 0)
		recv(peer, buf, sizeof(buf), 0);
	close(peer);
	close(l);
}

/*
 * Use the module, which may be unloaded. One process opens sockets or uses netlink repeatedly;
 * others have connections, unless the module shall be idle.
 */
static void use_module(int n)
{
	struct sockaddr_dblp addr;

	addr_parse(&addr, n % 2 ? "::1" : "127.0.0.1", 7100 + n);
	for (;;) {
		if (n) {
			while (__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE))
				sleep_ms(1);
			use_once(&addr);
			continue;
		}
		close(socket(AF_DBLP, SOCK_SEQPACKET, 0));
		if (system("dblpctl socket list > /dev/null 2>&1; "
			   "dblpctl stats > /dev/null 2>&1") < 0)
			die("system()");
	}
}

static void unloads(unsigned int count)
{
	int i, status;

	shared->stop = 0;
	for (i = 0; i < WORKERS; i++) {
		worker[i] = fork_child();
		if (!worker[i])
			use_module(i);
	}
	for (i = 0; shared->done < count; i++) {
		/* Try to unload under use for a while, then until it succeeds */
		__atomic_store_n(&shared->stop, i > 20, __ATOMIC_RELEASE);
		if (!syscall(SYS_delete_module, "dblp", O_NONBLOCK)) {
			one_done(count);
			reload();
			i = -1;
		} else if (errno != EWOULDBLOCK && errno != EBUSY) {
			die("removing the module");
		}
		sleep_ms(1);
	}
	for (i = 0; i < WORKERS; i++) {
		kill(worker[i], SIGKILL);
		waitpid(worker[i], &status, 0);
	}
}

/* Memory */

static void fail_memory(const char *what, const char *percent, const char *wait,
			unsigned int count)
{
	char path[128], text[32];
	/* Time limit for the next fault */
	uint64_t end, patience = (slow() ? 240 : 60) * SECONDS;
	long left = count, before;

#define FILE_OF(name)	(snprintf(path, sizeof(path), DEBUGFS "%s/%s", what, name), path)
	start_workers(true);
	must_write(FILE_OF("verbose"), "0");
	must_write(FILE_OF("interval"), "1");
	must_write(FILE_OF("task-filter"), "N");
	must_write(FILE_OF("ignore-gfp-wait"), wait);
	if (!strcmp(what, "fail_page_alloc"))
		must_write(FILE_OF("min-order"), "0");
	snprintf(text, sizeof(text), "%u", count);
	must_write(FILE_OF("times"), text);
	must_write(FILE_OF("probability"), percent);
	FILE_OF("times");
	end = now_ms() + patience;
	do {
		sleep_ms(50);
		before = left;
		left = read_number(path);
		/* Reading needs memory, too */
		if (left < 0)
			left = before;
		if (left < before)
			end = now_ms() + patience;
	} while (left > 0 && now_ms() < end);
	while (!write_file(FILE_OF("probability"), "0"))
		;
	shared->done = count - left;
#undef FILE_OF
	sleep_ms(200);
	end_workers();
	errno = 0;
	if (left)
		die("%ld faults are left to be injected", left);
}

static void slabs(unsigned int count)
{
	fail_memory("failslab", "3", "N", count);
}

static void pages(unsigned int count)
{
	fail_memory("fail_page_alloc", "50", "Y", count);
}

/* Threads with the same sockets */

#define SLOTS	12
static int slot[SLOTS];
static struct sockaddr_dblp crowd_addr;
static unsigned int crowd_end;

static void crowd_replace(int *place, int fd)
{
	fd = __atomic_exchange_n(place, fd, __ATOMIC_RELAXED);
	if (fd >= 0)
		close(fd);
}

static void crowd_send(int fd, unsigned int *seed)
{
	static const char buf[60000] = { 1 };
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_BUDGET | DBLP_SND_POLICY,
		.budget = rand_r(seed) % 500000,
		.policy = rand_r(seed) % 3,
	};

	sndinfo_send(fd, buf, rand_r(seed) % sizeof(buf), MSG_DONTWAIT | MSG_NOSIGNAL,
		     &info);
}

static void crowd_op(unsigned int *seed)
{
	int *place = &slot[rand_r(seed) % SLOTS];
	int fd = __atomic_load_n(place, __ATOMIC_RELAXED);
	static __thread char buf[60000];
	struct sockaddr_dblp addr;
	socklen_t len = sizeof(addr);
	struct dblp_info info;

	switch (rand_r(seed) % 32) {
	case 0:
		fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		connect_to(fd, &crowd_addr);
		crowd_replace(place, fd);
		break;
	case 1:
		crowd_replace(place, accept4(slot[0], NULL, NULL, SOCK_NONBLOCK));
		break;
	case 2:
		shutdown(fd, rand_r(seed) % 3);
		break;
	case 3:
		try_u32(fd, 1 + rand_r(seed) % DBLP_SPRAY, rand_r(seed) % 8);
		break;
	case 4:
		len = sizeof(info);
		getsockopt(fd, SOL_DBLP, 1 + rand_r(seed) % DBLP_SPRAY, &info, &len);
		break;
	case 5:
		getpeername(fd, (struct sockaddr *)&addr, &len);
		break;
	case 6:
		recv(fd, buf, sizeof(buf), MSG_ERRQUEUE | MSG_DONTWAIT);
		break;
	case 7:
		listen(fd, rand_r(seed) % 8);
		break;
	case 8:
		wait_for(fd, POLLIN | POLLOUT, 1);
		break;
	case 9:
		ioctl(fd, rand_r(seed) % 2 ? FIONREAD : TIOCOUTQ, &len);
		break;
	default:
		if (rand_r(seed) % 2)
			crowd_send(fd, seed);
		else
			recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	}
}

static void *crowd_thread(void *arg)
{
	unsigned int seed = (long)arg;

	while (__atomic_add_fetch(&shared->done, 1, __ATOMIC_RELAXED) < crowd_end)
		crowd_op(&seed);
	return NULL;
}

/* Start an operator that changes settings concurrently */
static pid_t start_operator(void)
{
	static const char script[] =
		"while :; do dblpctl socket list; dblpctl stats; dblpctl job add 9;"
		" dblpctl job set 9 phase 2; dblpctl phase set tolerant loss 30%;"
		" dblpctl phase set tolerant loss 40%; dblpctl job del 9;"
		" done > /dev/null 2>&1";
	pid_t pid = fork_child();

	if (!pid) {
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	return pid;
}

static void threads(unsigned int count)
{
	pthread_t thread[6];
	pid_t operator;
	long i;

	start_workers(false);
	operator = start_operator();
	crowd_end = count;
	slot[0] = new_listener("127.0.0.1", 16, &crowd_addr);
	fcntl(slot[0], F_SETFL, O_NONBLOCK);
	for (i = 1; i < SLOTS; i++)
		slot[i] = -1;
	for (i = 0; i < 6; i++) {
		if (pthread_create(&thread[i], NULL, crowd_thread, (void *)(i + 1)))
			die("pthread_create()");
	}
	for (i = 0; i < 6; i++)
		pthread_join(thread[i], NULL);
	shared->done = count;
	kill(operator, SIGKILL);
	waitpid(operator, NULL, 0);
	end_workers();
}

static bool has_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_CONF) > 1;
}

static bool has_faults(void)
{
	return !access(DEBUGFS "failslab", W_OK);
}

static const struct mode {
	const char *name;
	const char *what;
	void (*run)(unsigned int count);
	unsigned int count, count_slow;
	bool (*possible)(void);		/* NULL: always */
	const char *needs;
} modes[] = {
	{ "hotplug", "processors come and go", hotplug, 8, 4,
	  has_cpus, "needs a second CPU" },
	{ "kill", "processes are killed", kills, 30, 12, NULL, NULL },
	{ "netns", "namespaces vanish", namespaces, 30, 12, NULL, NULL },
	{ "rmmod", "the module is removed", unloads, 3, 2, NULL, NULL },
	{ "threads", "threads share sockets", threads, 20000, 5000, NULL, NULL },
	{ "failslab", "slab allocations fail", slabs, 1000, 200,
	  has_faults, "needs fault injection" },
	{ "failpage", "page allocations fail", pages, 1000, 200,
	  has_faults, "needs fault injection" },
};

/* Run a mode in a new process, whose end ends all of it */
static bool run_child(void (*run)(unsigned int), unsigned int count, int seconds)
{
	pid_t pid = fork_child();
	int status;

	if (!pid) {
		setpgid(0, 0);
		be_done_within(seconds);
		run(count);
		fflush(NULL);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	if (WIFSIGNALED(status))
		ksft_print_msg("ended by signal %d\n", WTERMSIG(status));
	return !status;
}

static void honest(unsigned int count)
{
	struct traffic t;

	traffic_start(&t, "127.0.0.1", 42);
	while (t.connections < count)
		traffic_one(&t);
}

static long references(void)
{
	return read_number("/sys/module/dblp/refcnt");
}

/* Closed sockets may still exchange FINs for some time */
static bool nobody_holds_the_module(void)
{
	uint64_t end = now_ms() + (slow() ? 120 : 60) * SECONDS;

	while (references() > 0 && now_ms() < end)
		sleep_ms(50);
	if (!references())
		return true;
	ksft_print_msg("%ld references to the module are left\n", references());
	return false;
}

static void run_mode(const struct mode *m, unsigned int count)
{
	uint64_t start = now_ms();
	bool good;

	if (m->possible && !m->possible()) {
		/* Print the name before the reason */
		ksft_cnt.ksft_xskip++;
		printf("ok %u %s # SKIP %s\n", ksft_test_num(), m->what, m->needs);
		return;
	}
	shared->done = 0;
	good = run_child(honest, 2, 60) &&
	       run_child(m->run, count, 120 + 5 * count) &&
	       run_child(honest, 2, 60) && nobody_holds_the_module();
	ksft_print_msg("value %lu of %u: %s (%llu ms)\n", shared->done, count, m->what,
		       (unsigned long long)(now_ms() - start));
	ksft_test_result(good, "%s\n", m->what);
}

int main(int argc, char **argv)
{
	unsigned int i, n = 0, all = ARRAY_SIZE(modes);
	unsigned int count = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap()");
	netns_new();
	for (i = 0; i < all; i++)
		n += argc < 2 || !strcmp(argv[1], modes[i].name);
	if (!n) {
		fprintf(stderr, "Usage: stress [MODE [COUNT]]\nMODE is one of:\n");
		for (i = 0; i < all; i++)
			fprintf(stderr, "  %-9s %s\n", modes[i].name, modes[i].what);
		return 2;
	}
	/* Line buffering: children must not print buffered output of the parent again */
	setlinebuf(stdout);
	ksft_print_header();
	ksft_set_plan(n);
	for (i = 0; i < all; i++) {
		if (argc < 2 || !strcmp(argv[1], modes[i].name))
			run_mode(&modes[i], count ?: slow() ? modes[i].count_slow :
						modes[i].count);
	}
	ksft_finished();
}
