// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Norms of gradients, for the detector of a job.
 */

#include "libdblp.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Norms are in units of 2^-32 */
#define NORM_ONE	0x1p32

static int report(int fd, uint32_t job, uint64_t norm)
{
	if (setsockopt(fd, SOL_DBLP, DBLP_JOB, &job, sizeof(job)) ||
	    setsockopt(fd, SOL_DBLP, DBLP_NORM, &norm, sizeof(norm)))
		return -errno;
	return 0;
}

/* Use a new socket: any socket in the job will do */
int dblp_job_norm(uint32_t job, double norm)
{
	int fd, err;

	if (!__builtin_isfinite(norm) || norm < 0)
		return -EINVAL;
	if (norm >= NORM_ONE)
		return -ERANGE;
	fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = report(fd, job, (uint64_t)(norm * NORM_ONE));
	close(fd);
	return err;
}
