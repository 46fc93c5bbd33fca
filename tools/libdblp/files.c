// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The limit of open files. A communicator that will exceed it is not opened,
 * because it would fail later, in the middle of an operation.
 */

#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

/* Descriptors of a communicator: epoll, eventfds and rank 0's listener */
#define OWN	4
/* Reserve for the program */
#define OTHERS	64

static uint64_t count_needed(const struct dblp_comm *comm)
{
	return OWN + comm->n_nics + comm->n_ctl +
	       (uint64_t)(comm->nranks - 1) * comm->n_links +
	       DBLP_STRANGERS + OTHERS;
}

/* Open files of this process; 3 if they cannot be counted */
static uint64_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 3;
	while (readdir(dir))
		n++;
	closedir(dir);
	/* Subtract ".", ".." and @dir */
	return n - 3;
}

int dblp_files_reserve(const struct dblp_comm *comm)
{
	uint64_t needed = count_needed(comm), has = count_open();
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (has + needed <= limit.rlim_cur)
		return 0;
	if (has + needed > limit.rlim_max)
		return dblp_why(-EMFILE, "rank %u needs %llu more open files than its %llu: the limit is %llu (ulimit -Hn)",
				comm->rank, (unsigned long long)needed,
				(unsigned long long)has,
				(unsigned long long)limit.rlim_max);
	limit.rlim_cur = has + needed;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}
