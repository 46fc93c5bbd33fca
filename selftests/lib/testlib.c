// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
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

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
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
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("entering namespace %s", name);
	close(fd);
}

void addr_parse(struct sockaddr_dblp *a, const char *text, unsigned int port)
{
	char ip[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
	struct in_addr v4;
	char *percent;

	memset(a, 0, sizeof(*a));
	a->sdblp_family = AF_DBLP;
	a->sdblp_port = htons(port);

	snprintf(ip, sizeof(ip), "%s", text);
	percent = strchr(ip, '%');
	if (percent) {
		*percent = 0;
		a->sdblp_scope_id = if_nametoindex(percent + 1);
	}
	errno = 0;
	if (inet_pton(AF_INET, ip, &v4) == 1) {
		a->sdblp_addr.s6_addr[10] = 0xff;
		a->sdblp_addr.s6_addr[11] = 0xff;
		memcpy(&a->sdblp_addr.s6_addr[12], &v4, 4);
	} else if (inet_pton(AF_INET6, ip, &a->sdblp_addr) != 1) {
		die("'%s' is no address", text);
	}
}

/* Finalizer of splitmix64: each word tells its place in its message */
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

/* The whole loss map, when the control buffer was too short for it */
static void ranges_fetch(int fd, int opt, struct message *m)
{
	size_t want = sizeof(struct dblp_lossmap) +
		      m->info.ranges * sizeof(struct dblp_range);
	struct dblp_lossmap *map = calloc(1, want);
	socklen_t len = want;

	if (!map)
		die("calloc");
	if (getsockopt(fd, SOL_DBLP, opt, map, &len))
		die("getsockopt(loss map)");
	errno = 0;
	if (len != want || map->ranges != m->info.ranges ||
	    map->msg_id != m->info.msg_id || map->tag != m->info.tag)
		die("loss map of %u bytes, message %u, %u ranges; expected %zu, %u, %u",
		    len, map->msg_id, map->ranges, want, m->info.msg_id,
		    m->info.ranges);
	m->n = map->ranges;
	m->range = calloc(m->n + 1, sizeof(*m->range));
	if (!m->range)
		die("calloc");
	memcpy(m->range, map->range, m->n * sizeof(*m->range));
	free(map);
}

static bool cmsg_take(const struct cmsghdr *c, int info_type,
		      struct message *m)
{
	size_t len = c->cmsg_len - CMSG_LEN(0);

	if (c->cmsg_level != SOL_DBLP)
		return false;
	if (c->cmsg_type == info_type && len == sizeof(m->info)) {
		memcpy(&m->info, CMSG_DATA(c), len);
		return true;
	}
	if (c->cmsg_type == DBLP_RANGES && len % sizeof(*m->range) == 0) {
		m->n = len / sizeof(*m->range);
		m->range = malloc(len + 1);
		if (!m->range)
			die("malloc");
		memcpy(m->range, CMSG_DATA(c), len);
	}
	return false;
}

ssize_t message_recv(int fd, void *buf, size_t len, int flags,
		     struct message *m)
{
	bool sent = flags & MSG_ERRQUEUE;
	char control[8192] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= control,
		.msg_controllen	= sizeof(control),
	};
	struct cmsghdr *c;
	bool found = false;
	ssize_t ret;

	memset(m, 0, sizeof(*m));
	ret = recvmsg(fd, &msg, flags);
	if (ret < 0 || (ret == 0 && !sent))
		return ret;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		found |= cmsg_take(c, sent ? DBLP_CLOSEINFO : DBLP_RCVINFO, m);
	errno = 0;
	if (!found)
		die("recvmsg() gave no %s", sent ? "CLOSEINFO" : "RCVINFO");
	if (sent && !(msg.msg_flags & MSG_ERRQUEUE))
		die("no MSG_ERRQUEUE in msg_flags");
	if (msg.msg_flags & MSG_CTRUNC) {
		message_free(m);
		ranges_fetch(fd, sent ? DBLP_SENT_LOSSMAP : DBLP_LOSSMAP, m);
	}
	return ret;
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
	char control[CMSG_SPACE(sizeof(*info))] __attribute__((aligned(8)));
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (info) {
		memset(control, 0, sizeof(control));
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_DBLP;
		c->cmsg_type = DBLP_SNDINFO;
		c->cmsg_len = CMSG_LEN(sizeof(*info));
		memcpy(CMSG_DATA(c), info, sizeof(*info));
	}
	return sendmsg(fd, &msg, flags);
}

uint32_t budget_bytes(uint32_t ppm, uint32_t bytes)
{
	return (uint64_t)ppm * bytes / DBLP_PPM;
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
	/* Who drops a page at a time would be given 2 MiB for each again */
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
