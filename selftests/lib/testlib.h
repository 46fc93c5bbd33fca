/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the test programs: namespaces, addresses, contents that reveal misplaced
 * bytes, control messages, counters.
 */
#ifndef DBLP_TESTLIB_H
#define DBLP_TESTLIB_H

#include <linux/dblp.h>
#include <linux/sock_diag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/** die() - print a message (with ": strerror" if errno is set) and exit(1) */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/** skip_all() - before main(): print @why as the reason of a skip, and exit */
void skip_all(const char *why) __attribute__((noreturn));

uint64_t now_ms(void);

/**
 * tick_ms() - time of the last tick, ms
 *
 * Timeouts of system calls are in ticks. On a busy host ticks are late, and made up at once: by
 * now_ms() such a timeout is early.
 */
uint64_t tick_ms(void);

/** netns_new() - move the thread to a new network namespace with lo up */
void netns_new(void);

/** one_cpu() - pin to one CPU: several would reorder packets of the loopback device */
void one_cpu(void);

/** netns_set_mtu() - set the MTU of lo */
void netns_set_mtu(int mtu);

/** netns_enter() - move the thread to a namespace, by its name in `ip netns` or its path */
void netns_enter(const char *name);

/**
 * addr_parse() - address from text and port
 * @a: filled
 * @text: argument of dblp_addr_parse()
 * @port: host byte order
 */
void addr_parse(struct sockaddr_dblp *a, const char *text, unsigned int port);

/** pattern_fill() - write @len bytes of the contents of message @msg, from @offset */
void pattern_fill(void *buf, size_t len, size_t offset, uint64_t seed,
		  uint64_t msg);

/** noise_new() - allocate @len bytes without runs of zeroes */
void *noise_new(size_t len);

/**
 * pattern_check() - are @len bytes what pattern_fill() would write?
 *
 * Return: -1, or the index of the first byte that differs.
 */
ssize_t pattern_check(const void *buf, size_t len, size_t offset,
		      uint64_t seed, uint64_t msg);

/** bytes_check() - like pattern_check(), for @len bytes of value @c */
ssize_t bytes_check(const void *buf, size_t len, unsigned char c);

/**
 * struct message - information about a message at one of its ends
 * @info: DBLP_RCVINFO or DBLP_CLOSEINFO
 * @n: number of elements of @range
 * @range: the loss map
 */
struct message {
	struct dblp_rcvinfo	info;
	uint32_t		n;
	struct dblp_range	*range;
};

/**
 * message_recv() - recvmsg() with all control messages
 * @fd: AF_DBLP socket
 * @buf: buffer of the contents
 * @len: size of @buf
 * @flags: MSG_ERRQUEUE: read the report of a sent message
 * @m: filled, as by dblp_recv()
 *
 * Return: that of recvmsg(). @m is valid if it is > 0; with MSG_ERRQUEUE, if >= 0.
 */
ssize_t message_recv(int fd, void *buf, size_t len, int flags,
		     struct message *m);
void message_free(struct message *m);

/**
 * less_if_slow() - reduce a number of iterations on slow kernels
 * @n: the number; divided by @part if KSFT_MACHINE_SLOW is set, as for debug kernels
 * @what: name of the iterations, for a line of output
 */
unsigned int less_if_slow(unsigned int n, unsigned int part, const char *what);

/** virtual_time() - is time virtual, that is, independent of the load of the host? */
bool virtual_time(void);

/** file_write() - write @text to the file @path by one write(), or die */
void file_write(const char *path, const char *text);

/** new_pages() - allocate @len zeroed bytes by mmap() */
unsigned char *new_pages(size_t len);

/** inet_sum() - add @len bytes to the sum of an Internet checksum */
uint32_t inet_sum(uint32_t sum, const void *bytes, size_t len);
/** inet_checksum() - finish a checksum; returns it in network byte order (RFC 1071) */
uint16_t inet_checksum(uint32_t sum);

/** sndinfo_send() - sendmsg() with DBLP_SNDINFO, unless @info is NULL */
ssize_t sndinfo_send(int fd, const void *buf, size_t len, int flags,
		     const struct dblp_sndinfo *info);

/** budget_bytes() - floor(@ppm x @bytes) */
uint32_t budget_bytes(uint32_t ppm, uint32_t bytes);

/** mib() - read a counter of this network namespace, by its name in `dblpctl stats` */
uint64_t mib(const char *name);

/** mib_all() - read all counters, for mib_of(); the caller frees them */
uint64_t *mib_all(void);

/** mib_of() - one of the counters that mib_all() read */
uint64_t mib_of(const uint64_t *all, const char *name);

/** socket_count() - number of sockets of this network namespace */
unsigned int socket_count(void);

/** pages_of_all() - pages charged to AF_DBLP sockets, in all namespaces */
int64_t pages_of_all(void);

/** get_meminfo() - read SO_MEMINFO of a socket; @what is an SK_MEMINFO_ */
uint32_t get_meminfo(int fd, int what);

/** wait_for() - poll for @events; false after @ms */
bool wait_for(int fd, short events, int ms);

#endif /* DBLP_TESTLIB_H */
