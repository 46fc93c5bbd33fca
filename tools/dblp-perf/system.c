// SPDX-License-Identifier: GPL-2.0-only
/* Measurements of the whole machine. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libdblp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

/*
 * One for each measurement: Linux 6.1 crashes if an instance is removed while another process
 * sets a trigger in it.
 */
#define INSTANCE	"/sys/kernel/tracing/instances/dblp-perf-XXXXXX"

static const char *const timer_events[] = {
	"timer_expire_entry",
	"hrtimer_expire_entry",
};

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};

	while (nanosleep(&ts, &ts))
		if (errno != EINTR)
			fail("nanosleep()");
}

/* Not from /proc/stat, whose unit is 10 ms */
uint64_t idle_ns(void)
{
	FILE *f = fopen("/proc/timer_list", "r");
	uint64_t sum = 0;
	bool known = false;
	char line[200];

	if (!f)
		return UNKNOWN;
	while (fgets(line, sizeof(line), f)) {
		unsigned long long ns;

		if (sscanf(line, " .idle_sleeptime : %llu", &ns) != 1)
			continue;
		sum += ns;
		known = true;
	}
	fclose(f);
	return known ? sum : UNKNOWN;
}

unsigned int cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

void netns_enter(const char *name)
{
	errno = -dblp_netns_enter(name);
	if (errno)
		fail("entering the namespace %s", name);
}

void want_files(unsigned int n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail("getrlimit()");
	if (limit.rlim_cur >= n)
		return;
	limit.rlim_cur = n;
	if (limit.rlim_max < n)
		limit.rlim_max = n;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("raising the limit of open files to %u", n);
}

void read_memory(struct memory *m)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kb, total = 0, left = 0;
	char line[200];

	if (!f)
		fail("/proc/meminfo");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemTotal: %llu", &kb) == 1)
			total = kb;
		else if (sscanf(line, "MemFree: %llu", &kb) == 1)
			left = kb;
		else if (sscanf(line, "Slab: %llu", &kb) == 1)
			m->slab = kb * 1024;
	}
	fclose(f);
	m->used = (total - left) * 1024;
}

static bool set_trigger(const char *instance, const char *event, const char *text)
{
	char path[256];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "%s/events/timer/%s/trigger", instance, event);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

/* { function: [ffffffff81234567] name [module] } hitcount:         12 */
static void take_histogram(struct timers *t, const char *instance, const char *event)
{
	char path[256], line[300], *name, *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/events/timer/%s/hist", instance, event);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		struct timer_count *entry = &t->timer[t->n];

		name = strstr(line, "] ");
		end = strstr(line, " } hitcount:");
		if (!name || !end || t->n == MAX_TIMERS)
			continue;
		name += 2;
		entry->count = strtoull(end + strlen(" } hitcount:"), NULL, 10);
		while (end > name && end[-1] == ' ')
			end--;
		snprintf(entry->name, sizeof(entry->name), "%.*s",
			 (int)(end - name), name);
		t->n++;
	}
	if (f)
		fclose(f);
}

void count_timers(struct timers *t, uint32_t ms)
{
	char instance[] = INSTANCE;
	bool made = mkdtemp(instance);
	unsigned int i;

	memset(t, 0, sizeof(*t));
	t->known = made;
	for (i = 0; t->known && i < 2; i++)
		t->known = set_trigger(instance, timer_events[i], "hist:keys=function.sym\n");
	sleep_ns(ms * 1000000ULL);
	for (i = 0; t->known && i < 2; i++)
		take_histogram(t, instance, timer_events[i]);
	for (i = 0; made && i < 2; i++)
		set_trigger(instance, timer_events[i], "!hist:keys=function.sym\n");
	if (made)
		rmdir(instance);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		fail("no memory for %zu x %zu bytes", n, size);
	return p;
}

static void vfail(const char *fmt, va_list ap)
{
	int error = errno;
	char text[300];

	vsnprintf(text, sizeof(text), fmt, ap);
	errno = error;
	if (error)
		warn("%s", text);
	else
		warnx("%s", text);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(fmt, ap);
	va_end(ap);
	_exit(EXIT_FAILED);
}

void lacking(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(fmt, ap);
	va_end(ap);
	_exit(EXIT_MISSING);
}
