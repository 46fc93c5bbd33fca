// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl save: what an operator has set, as commands that set it again.
 */

#include <stdio.h>

#include "dblpctl.h"
#include "job.h"
#include "param.h"
#include "phase.h"
#include "print.h"

/* Jobs refer to phases: delete jobs first, restore phases first */
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
		     "that restore them when run by dblpctl -b FILE.");
		return no_more(argc - 1, argv + 1);
	}
	if (print_is_json())
		return usage_error("save prints commands, not JSON: leave out -j");
	return no_more(argc, argv) ?: save();
}
