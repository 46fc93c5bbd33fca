/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory whose first access blocks the accessing thread until the test resolves the fault.
 */
#ifndef DBLP_TEST_TRAP_H
#define DBLP_TEST_TRAP_H

#include "testlib.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* @fd is readable while a thread is blocked in a page fault */
struct trap {
	int	fd;
	char	*at;
	size_t	len;
};

/* Map untouched pages */
static inline struct trap trap_set(char *at, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { .start = (unsigned long)at, .len = len },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct trap t = { .at = at, .len = len };

	t.fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (t.fd < 0 || ioctl(t.fd, UFFDIO_API, &api) ||
	    ioctl(t.fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	return t;
}

static inline struct trap trap_make(size_t len)
{
	char *at = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED)
		die("mmap()");
	return trap_set(at, len);
}

/* Resolve the fault: the pages are zero */
static inline void trap_fill(const struct trap *t)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (unsigned long)t->at, .len = t->len },
	};

	if (ioctl(t->fd, UFFDIO_ZEROPAGE, &zero))
		die("UFFDIO_ZEROPAGE");
}

/* Let the access fail */
static inline void trap_break(const struct trap *t)
{
	if (mprotect(t->at, t->len, PROT_NONE) || close(t->fd))
		die("breaking a trap");
}

#endif /* DBLP_TEST_TRAP_H */
