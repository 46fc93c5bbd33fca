// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads counters by netlink, because a test reads them hundreds of times and starting
 * dblpctl would be slow. ynl.py tests that dblpctl shows the same values.
 */
#define _GNU_SOURCE
#include "nltest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "testlib.h"

#define NOT_TOLD	UINT64_MAX

static void note_stats(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;
	uint64_t *all = arg;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) <= DBLP_A_STATS_MAX &&
		    !mnl_attr_validate(attr, MNL_TYPE_U64))
			all[mnl_attr_get_type(attr)] = mnl_attr_get_u64(attr);
}

static void note_socket(const struct nlmsghdr *nlh, void *arg)
{
	++*(unsigned int *)arg;
}

/* Send a request in the thread's namespace, on a new socket */
static void ask_here(uint8_t cmd, uint16_t flags,
		     void (*each)(const struct nlmsghdr *nlh, void *arg), void *arg)
{
	struct mnl_socket *of_test = nl;
	uint16_t family_of_test = family;

	open_netlink();
	result_each(begin(family, cmd, flags), each, arg);
	mnl_socket_close(nl);
	nl = of_test;
	family = family_of_test;
	if (got.err)
		die("netlink refuses %u: error %d, %s", cmd, got.err, got.msg);
}

uint64_t *mib_all(void)
{
	uint64_t *all = malloc((DBLP_A_STATS_MAX + 1) * sizeof(*all));

	if (!all)
		die("malloc()");
	memset(all, 0xff, (DBLP_A_STATS_MAX + 1) * sizeof(*all));
	ask_here(DBLP_CMD_STATS_GET, NLM_F_ACK, note_stats, all);
	return all;
}

uint64_t mib_of(const uint64_t *all, const char *name)
{
	int i;

	for (i = 0; i <= DBLP_A_STATS_MAX; i++)
		if (counters[i].name && !strcmp(counters[i].name, name) &&
		    all[i] != NOT_TOLD)
			return all[i];
	errno = 0;
	die("there is no counter %s", name);
}

uint64_t mib(const char *name)
{
	uint64_t *all = mib_all(), n = mib_of(all, name);

	free(all);
	return n;
}

unsigned int socket_count(void)
{
	unsigned int n;

	do {
		n = 0;
		ask_here(DBLP_CMD_SOCKET_GET, NLM_F_DUMP, note_socket, &n);
	} while (got.torn);
	return n;
}
