// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network namespaces.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "netns.h"

static enum status failed(const char *name)
{
	if (errno == ENOENT)
		complain("there is no network namespace '%s' (see ip netns list)",
			 name);
	else if (errno == EPERM)
		complain("no permission: to enter network namespace '%s' needs CAP_SYS_ADMIN (sudo)",
			 name);
	else if (errno == EINVAL)
		complain("'%s' is not a network namespace", name);
	else
		complain("cannot enter network namespace '%s': %s", name,
			 strerror(errno));
	return STATUS_FAILED;
}

enum status netns_enter(const char *name)
{
	enum status status = STATUS_OK;
	char path[PATH_MAX];
	int fd;

	if (!*name)
		return usage_error("a network namespace needs a name");
	snprintf(path, sizeof(path), "%s%s",
		 strchr(name, '/') ? "" : "/run/netns/", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(name);
	if (setns(fd, CLONE_NEWNET))
		status = failed(name);
	close(fd);
	return status;
}
