// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Descriptors: a communicator that lacks them would fail in the midst of the work, so it
 * is better not opened.
 */

#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

/* Its own, listeners, control connections and all connections for data; room for others */
#define OWN	4
#define OTHERS	64

static uint64_t count_needed(const struct dblp_comm *comm)
{
	return OWN + comm->n_nics + comm->n_ctl +
	       (uint64_t)(comm->nranks - 1) * comm->n_links + OTHERS;
}

/* Those that this process has open; 3 if that cannot be found out */
static uint64_t count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!dir)
		return 3;
	while (readdir(dir))
		n++;
	closedir(dir);
	/* ".", ".." and @dir are no open files */
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
		return dblp_why(-EMFILE, "rank %u needs %llu open files, beside the %llu that it has: the limit is %llu (ulimit -Hn)",
				comm->rank, (unsigned long long)needed,
				(unsigned long long)has,
				(unsigned long long)limit.rlim_max);
	limit.rlim_cur = has + needed;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}
