// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked into each test: before main(), find out whether it can run here. If it cannot,
 * its output has the reason, and its exit status is the kernel's for a skip. Programs
 * beside it are found first.
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
