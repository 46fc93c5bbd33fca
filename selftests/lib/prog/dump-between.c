// SPDX-License-Identifier: GPL-2.0-only
/*
 * For LD_PRELOAD: has the shell command $BETWEEN run after the first part of a
 * dump that a program gets by libmnl, in the first $TIMES of its dumps.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef ssize_t recv_fn(const struct mnl_socket *nl, void *buf, size_t size);

/* Without this in its environment */
static void run_command(void)
{
	unsetenv("LD_PRELOAD");
	if (system(getenv("BETWEEN"))) {
		fputs("dump-between: the command failed\n", stderr);
		_Exit(99);
	}
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	static recv_fn *real;
	static bool amid;
	static int done;
	const struct nlmsghdr *nlh = buf;
	const char *times = getenv("TIMES");
	ssize_t n;

	if (!real)
		real = (recv_fn *)dlsym(RTLD_NEXT, "mnl_socket_recvfrom");
	n = real(nl, buf, size);
	if (n < (ssize_t)sizeof(*nlh) || !(nlh->nlmsg_flags & NLM_F_MULTI))
		return n;
	if (nlh->nlmsg_type == NLMSG_DONE) {
		amid = false;
	} else if (!amid) {
		amid = true;
		if (times && done++ < atoi(times))
			run_command();
	}
	return n;
}
