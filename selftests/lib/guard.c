// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into each test: before main(), check whether the test can run here. If not,
 * print the reason and exit with the status of a skipped kselftest. Also put the
 * directory of the test first in PATH.
 */
#define _GNU_SOURCE
#include "testlib.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest.h"

void skip_all(const char *why)
{
	printf("TAP version 13\n1..0 # SKIP %s\n", why);
	exit(KSFT_SKIP);
}

static void look_beside(void)
{
	char path[2 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
	char *end;

	if (len < 0)
		return;
	path[len] = '\0';
	end = strrchr(path, '/');
	snprintf(end, path + sizeof(path) - end, ":%s", getenv("PATH") ?: "/usr/bin:/bin");
	setenv("PATH", path, 1);
}

void __attribute__((constructor)) guard(void)
{
	int fd;

	if (geteuid())
		skip_all("needs root");
	/* This loads the module if it is installed */
	fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT)
		skip_all("the module dblp is not loaded");
	close(fd);
	look_beside();
}
