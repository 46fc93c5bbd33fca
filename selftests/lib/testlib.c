// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <libdblp.h>

#include "testlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void die(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	fflush(stdout);
	fputs("# ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fputc('\n', stderr);
	_exit(1);
}

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

uint64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

uint64_t tick_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC_COARSE);
}

void one_cpu(void)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		die("sched_setaffinity()");
}

void netns_new(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		die("unshare(CLONE_NEWNET)");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		die("setting lo up");
	close(fd);
}

void netns_set_mtu(int mtu)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &ifr))
		die("setting the MTU of lo");
	close(fd);
}

void netns_enter(const char *name)
{
	errno = -dblp_netns_enter(name);
	if (errno)
		die("entering namespace %s", name);
}

void addr_parse(struct sockaddr_dblp *a, const char *text, unsigned int port)
{
	errno = -dblp_addr_parse(text, a);
	if (errno)
		die("'%s' is no address", text);
	a->sdblp_port = htons(port);
}

/* Finalizer of splitmix64: each word depends on its position in the message */
static uint64_t pattern_word(uint64_t seed, uint64_t msg, uint64_t word)
{
	uint64_t x = seed + msg * 0xd1342543de82ef95ULL +
		     (word + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

void pattern_fill(void *buf, size_t len, size_t offset, uint64_t seed,
		  uint64_t msg)
{
	unsigned char *p = buf;

	while (len) {
		uint64_t word = pattern_word(seed, msg, offset / 8);
		size_t skip = offset % 8;
		size_t n = 8 - skip < len ? 8 - skip : len;

		memcpy(p, (char *)&word + skip, n);
		p += n;
		offset += n;
		len -= n;
	}
}

void *noise_new(size_t len)
{
	void *buf = malloc(len);

	if (!buf)
		die("malloc()");
	pattern_fill(buf, len, 0, 0, 0);
	return buf;
}

ssize_t pattern_check(const void *buf, size_t len, size_t offset,
		      uint64_t seed, uint64_t msg)
{
	const unsigned char *p = buf;
	size_t done = 0;

	while (done < len) {
		uint64_t word = pattern_word(seed, msg, (offset + done) / 8);
		size_t skip = (offset + done) % 8;
		size_t n = 8 - skip < len - done ? 8 - skip : len - done;

		if (memcmp(p + done, (char *)&word + skip, n)) {
			while (p[done] == ((unsigned char *)&word)[skip]) {
				done++;
				skip++;
			}
			return done;
		}
		done += n;
	}
	return -1;
}

ssize_t bytes_check(const void *buf, size_t len, unsigned char c)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != c)
			return i;
	return -1;
}

ssize_t message_recv(int fd, void *buf, size_t len, int flags,
		     struct message *m)
{
	bool sent = flags & MSG_ERRQUEUE;
	struct dblp_msg got = { 0 };
	ssize_t ret;

	ret = sent ? dblp_report(fd, flags, &got) :
		     dblp_recv(fd, buf, len, flags, &got);
	errno = ret < 0 ? -ret : 0;
	if (errno == EBADMSG)
		die("recvmsg() gave no %s, or not its loss map",
		    sent ? "CLOSEINFO" : "RCVINFO");
	if (sent && !ret && !(got.flags & MSG_ERRQUEUE))
		die("no MSG_ERRQUEUE in msg_flags");
	*m = (struct message){ got.info, got.n, got.range };
	return ret < 0 ? -1 : ret;
}

void message_free(struct message *m)
{
	free(m->range);
	m->range = NULL;
	m->n = 0;
}

ssize_t sndinfo_send(int fd, const void *buf, size_t len, int flags,
		     const struct dblp_sndinfo *info)
{
	ssize_t ret = dblp_send(fd, buf, len, flags, info);

	errno = ret < 0 ? -ret : 0;
	return ret < 0 ? -1 : ret;
}

uint32_t budget_bytes(uint32_t ppm, uint32_t bytes)
{
	return (uint64_t)ppm * bytes / DBLP_PPM;
}

bool virtual_time(void)
{
	const char *set = getenv("DBLP_VIRTUAL_TIME");

	return set && !strcmp(set, "1");
}

unsigned int less_if_slow(unsigned int n, unsigned int part, const char *what)
{
	if (!getenv("KSFT_MACHINE_SLOW"))
		return n;
	printf("# %u %s instead of %u: this kernel is slow\n", n / part, what, n);
	fflush(stdout);
	return n / part;
}

void file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("writing '%s' to %s", text, path);
	close(fd);
}

unsigned char *new_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap(%zu)", len);
	/* Without huge pages, a touched page is 4 KiB, not 2 MiB */
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

uint32_t inet_sum(uint32_t sum, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (; len > 1; len -= 2, p += 2)
		sum += p[0] << 8 | p[1];
	return len ? sum + (p[0] << 8) : sum;
}

uint16_t inet_checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

int64_t pages_of_all(void)
{
	unsigned long long pages;
	char line[256];
	FILE *f = fopen("/proc/net/protocols", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "DBLP %*s %*s %llu", &pages) == 1) {
			fclose(f);
			return pages;
		}
	die("no DBLP in /proc/net/protocols");
}

uint32_t get_meminfo(int fd, int what)
{
	uint32_t mem[SK_MEMINFO_VARS];
	socklen_t len = sizeof(mem);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len))
		die("getsockopt(SO_MEMINFO)");
	return mem[what];
}

bool wait_for(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	do {
		n = poll(&p, 1, ms);
	} while (n < 0 && errno == EINTR);
	return n == 1 && (p.revents & events);
}
