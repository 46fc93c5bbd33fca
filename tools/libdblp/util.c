// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Times, hashes, descriptors, counters and sized structures.
 */

#include "engine.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t dblp_comm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int dblp_ms_left(uint64_t until)
{
	uint64_t now = dblp_comm_now();

	return now < until ? dblp_poll_ms(until - now) : 0;
}

uint64_t dblp_hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len--)
		h = (h ^ *at++) * 0x100000001b3ULL;
	return h;
}

/* Atomic, because another thread may call fork() at any time */
void dblp_fd_close(int *fd)
{
	int old = __atomic_exchange_n(fd, -1, __ATOMIC_SEQ_CST);

	if (old >= 0)
		close(old);
}

void dblp_comm_count(struct dblp_comm *comm, uint64_t *field)
{
	pthread_mutex_lock(&comm->lock);
	++*field;
	pthread_mutex_unlock(&comm->lock);
}

int dblp_sized_take(void *to, size_t len, const void *from, size_t least)
{
	uint32_t size;
	size_t i;

	memcpy(&size, from, sizeof(size));
	if (size < least)
		return -EINVAL;
	for (i = len; i < size; i++)
		if (((const char *)from)[i])
			return -E2BIG;
	memset(to, 0, len);
	memcpy(to, from, size < len ? size : len);
	return 0;
}

void dblp_sized_fill(void *to, size_t size, const void *from, size_t len)
{
	if (!size)
		return;
	memset(to, 0, size);
	memcpy(to, from, size < len ? size : len);
}
