// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl stats: the counters of the network namespace.
 */

#include <stddef.h>

#include "dblpctl.h"
#include "names.h"
#include "nl.h"
#include "print.h"

/* What a request for them may be refused for */
static const char *const stats_attrs[DBLP_A_STATS_MAX + 1] = {
	[DBLP_A_STATS_NONZERO] = "nonzero",
};

static enum status print_stats(bool nonzero)
{
	const struct nlattr *tb[DBLP_A_STATS_MAX + 1];
	struct nl_reply reply;
	struct nlmsghdr *nlh;
	int i;

	nlh = nl_request(DBLP_CMD_STATS_GET, 0);
	if (nonzero)
		mnl_attr_put(nlh, DBLP_A_STATS_NONZERO, 0, NULL);
	if (nl_talk(nlh, stats_attrs, &reply))
		return STATUS_FAILED;

	nl_attrs(reply.msgs, tb, DBLP_A_STATS_MAX);
	print_object();
	for (i = 0; i <= DBLP_A_STATS_MAX; i++) {
		struct heading h = { counters[i].name, NULL };

		if (h.key && tb[i] && !mnl_attr_validate(tb[i], MNL_TYPE_U64))
			print_uint(h, mnl_attr_get_u64(tb[i]), NULL);
	}
	print_object_end();
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status do_all(int argc, char **argv)
{
	return no_more(argc, argv) ?: print_stats(false);
}

static enum status do_nonzero(int argc, char **argv)
{
	return no_more(argc, argv) ?: print_stats(true);
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);
	int i;

	if (status)
		return status;
	puts("Usage: dblpctl [OPTION...] stats [all | nonzero]\n");
	for (i = 0; i <= DBLP_A_STATS_MAX; i++)
		if (counters[i].name)
			printf("  %-22s%s\n", counters[i].name,
			       counters[i].meaning);
	return STATUS_OK;
}

enum status do_stats(int argc, char **argv)
{
	static const struct command verbs[] = {
		{ "all", do_all },
		{ "nonzero", do_nonzero },
		{ "help", do_help },
		{ NULL, NULL },
	};

	if (!argc)
		return print_stats(false);
	return run_command(verbs, argc, argv, "verb");
}
