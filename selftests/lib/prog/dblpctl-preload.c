// SPDX-License-Identifier: GPL-2.0-only
/*
 * For LD_PRELOAD: redirects the netlink socket of dblpctl to descriptor $NETLINK_FD, whose
 * other end is a fake kernel, and /proc, /sys, /lib/modules and /var/lib to $ROOT, if set.
 * See selftests/host/dblpctl.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <libmnl/libmnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mnl_socket *mnl_socket_open(int bus)
{
	return mnl_socket_fdopen(dup(atoi(getenv("NETLINK_FD"))));
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	return 0;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf,
			  socklen_t len)
{
	return 0;
}

/* A message of one byte stands for dropped messages */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	ssize_t n = recv(mnl_socket_get_fd(nl), buf, size, 0);

	if (n != 1)
		return n;
	errno = ENOBUFS;
	return -1;
}

static const char *moved(const char *path, char *buf, size_t size)
{
	const char *root = getenv("ROOT");

	if (!root || (strncmp(path, "/proc/", 6) && strncmp(path, "/sys/", 5) &&
		      strncmp(path, "/lib/modules/", 13) && strncmp(path, "/var/lib/", 9)))
		return path;
	snprintf(buf, size, "%s%s", root, path);
	return buf;
}

#define REAL(name)	((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

FILE *fopen(const char *path, const char *mode)
{
	char buf[512];

	return REAL(fopen)(moved(path, buf, sizeof(buf)), mode);
}

int access(const char *path, int mode)
{
	char buf[512];

	return REAL(access)(moved(path, buf, sizeof(buf)), mode);
}

int glob(const char *pattern, int flags, int (*error)(const char *path, int err),
	 glob_t *found)
{
	char buf[512];

	return REAL(glob)(moved(pattern, buf, sizeof(buf)), flags, error, found);
}
