/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the test programs share: namespaces, addresses, contents that show a
 * misplaced byte, control messages, counters.
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

/** skip_all() - end this test, which cannot run here: @why is in its output. Before main(). */
void skip_all(const char *why) __attribute__((noreturn));

uint64_t now_ms(void);

/** netns_new() - move the thread to a new network namespace with lo up */
void netns_new(void);

/** one_cpu() - what two send over the loopback device comes in any order */
void one_cpu(void);

/** netns_set_mtu() - of lo */
void netns_set_mtu(int mtu);

/** netns_enter() - move the thread to a namespace of `ip netns`, or by its path */
void netns_enter(const char *name);

/**
 * addr_parse() - address from text and port
 * @a: filled
 * @text: as dblp_addr_parse() takes it
 * @port: host byte order
 */
void addr_parse(struct sockaddr_dblp *a, const char *text, unsigned int port);

/** pattern_fill() - contents of message @msg at @offset of @len bytes */
void pattern_fill(void *buf, size_t len, size_t offset, uint64_t seed,
		  uint64_t msg);

/** noise_new() - @len bytes without zero runs */
void *noise_new(size_t len);

/**
 * pattern_check() - are @len bytes what pattern_fill() would write?
 *
 * Return: -1 if they are, else the index of the first byte that differs.
 */
ssize_t pattern_check(const void *buf, size_t len, size_t offset,
		      uint64_t seed, uint64_t msg);

/** bytes_check() - like pattern_check(), for @len bytes of value @c */
ssize_t bytes_check(const void *buf, size_t len, unsigned char c);

/**
 * struct message - information about a message at one of its ends
 * @info: from DBLP_RCVINFO or DBLP_CLOSEINFO
 * @n: elements of @range
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
 * @buf: for the contents
 * @len: its size
 * @flags: with MSG_ERRQUEUE, a message of this socket that was closed
 * @m: filled, as by dblp_recv()
 *
 * Return: recvmsg()'s, @m is only valid if it is > 0, with MSG_ERRQUEUE >= 0.
 */
ssize_t message_recv(int fd, void *buf, size_t len, int flags,
		     struct message *m);
void message_free(struct message *m);

/**
 * less_if_slow() - a number of iterations
 * @n: the number; divided by @part if KSFT_MACHINE_SLOW is set, as it is for kernels
 *	that look for bugs
 * @what: the iterations, for a line of output
 */
unsigned int less_if_slow(unsigned int n, unsigned int part, const char *what);

/** virtual_time() - whether time is virtual, so that a busy host is not noticed */
bool virtual_time(void);

/** file_write() - write @text to the file @path, as a whole, or die */
void file_write(const char *path, const char *text);

/** new_pages() - @len zeroed bytes from mmap() */
unsigned char *new_pages(size_t len);

/** inet_sum() - add @len bytes to the sum of an Internet checksum */
uint32_t inet_sum(uint32_t sum, const void *bytes, size_t len);
/** inet_checksum() - the checksum, in network byte order (RFC 1071) */
uint16_t inet_checksum(uint32_t sum);

/** sndinfo_send() - sendmsg() with DBLP_SNDINFO, unless @info is NULL */
ssize_t sndinfo_send(int fd, const void *buf, size_t len, int flags,
		     const struct dblp_sndinfo *info);

/** budget_bytes() - floor(@ppm x @bytes) */
uint32_t budget_bytes(uint32_t ppm, uint32_t bytes);

/** mib() - counter of this network namespace, as `dblpctl -j stats` names it */
uint64_t mib(const char *name);

/** mib_all() - all of them, for mib_of(); to be freed */
uint64_t *mib_all(void);

/** mib_of() - one of them */
uint64_t mib_of(const uint64_t *all, const char *name);

/** socket_count() - sockets of this network namespace */
unsigned int socket_count(void);

/** pages_of_all() - pages that the sockets of the family are charged for, of all namespaces */
int64_t pages_of_all(void);

/** get_meminfo() - memory of a socket; @what is an SK_MEMINFO_ */
uint32_t get_meminfo(int fd, int what);

/** wait_for() - poll for @events; true if one of them came within @ms */
bool wait_for(int fd, short events, int ms);

#endif /* DBLP_TESTLIB_H */
