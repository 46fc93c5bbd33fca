// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl save: what an operator has set, as commands that set it again.
 */

#include <stdio.h>

#include "dblpctl.h"
#include "field.h"
#include "job.h"
#include "names.h"
#include "nl.h"
#include "param.h"
#include "phase.h"
#include "print.h"
#include "words.h"

static enum status save_params(void)
{
	const struct nlattr *tb[DBLP_A_PARAM_MAX + 1];
	struct values v = { param_attrs, tb };
	struct nl_reply reply;
	enum status status = param_talk(&reply);

	if (status)
		return status;
	nl_attrs(reply.msgs, tb, DBLP_A_PARAM_MAX);
	fputs("param set", stdout);
	write_words(param_keywords, &v);
	putchar('\n');
	nl_reply_free(&reply);
	return STATUS_OK;
}

/* Jobs are in phases, so these go last and come first */
static enum status save(void)
{
	puts("# What was set, for dblpctl -b");
	puts("job flush");
	puts("phase flush");
	return save_phases() ?: save_jobs() ?: save_params();
}

enum status do_save(int argc, char **argv)
{
	if (argc && is_prefix(argv[0], "help")) {
		puts("Usage: dblpctl save\n"
		     "\n"
		     "Prints the phases, jobs and parameters of the network namespace as commands\n"
		     "that dblpctl -b FILE runs to have them again.");
		return no_more(argc - 1, argv + 1);
	}
	if (print_is_json())
		return usage_error("what is saved are commands, not JSON");
	return no_more(argc, argv) ?: save();
}
