/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: times, hashes, descriptors and sized structures.
 */
#ifndef DBLP_UTIL_H
#define DBLP_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define MS_NS			1000000ULL

/** dblp_comm_now() - monotonic time, ns */
uint64_t dblp_comm_now(void);

/** dblp_earlier() - the earlier of two times, ns; ~0: never */
static inline uint64_t dblp_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** dblp_poll_ms() - timeout for poll(), ms, that covers @ns */
static inline int dblp_poll_ms(uint64_t ns)
{
	if (ns / MS_NS >= INT32_MAX)
		return INT32_MAX;
	return ns ? (int)(ns / MS_NS) + 1 : 0;
}

/** dblp_ms_left() - timeout for poll() until @until, ms; 0: it has passed */
int dblp_ms_left(uint64_t until);

/* Type of the object behind an epoll event: its first field */
enum dblp_source {
	DBLP_SOURCE_WAKE,
	DBLP_SOURCE_CTL,
	DBLP_SOURCE_LISTENER,
	DBLP_SOURCE_PENDING,
	DBLP_SOURCE_LINK,
};

#define DBLP_HASH		0xcbf29ce484222325ULL

/** dblp_hash() - continue an FNV-1a hash, which starts with %DBLP_HASH */
uint64_t dblp_hash(uint64_t h, const void *data, size_t len);

/*
 * dblp_fd_close() - close *@fd unless it is -1, and set it to -1, atomically
 *	for fork()
 */
void dblp_fd_close(int *fd);

/**
 * dblp_sized_take() - copy a program's structure, which begins with its size
 * @to: copy
 * @len: size of the structure in this library
 * @from: the program's structure
 * @least: size in the first release
 *
 * Fields that a shorter structure lacks become 0. Fields of a longer structure
 * that this library does not know must be 0.
 *
 * Return: 0; -EINVAL if it is too short; -E2BIG if an unknown field is set.
 */
int dblp_sized_take(void *to, size_t len, const void *from, size_t least);
/*
 * dblp_sized_fill() - fill @size bytes of the program's structure. Fields that
 *	this library does not know become 0
 */
void dblp_sized_fill(void *to, size_t size, const void *from, size_t len);

#endif /* DBLP_UTIL_H */
