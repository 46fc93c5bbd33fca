// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Names of values that the kernel does not know; for the others see names-gen.c.
 */

#include "plan.h"
#include "libdblp.h"

const char *const dblp_algo_names[DBLP_NAMES] = {
	[DBLP_PS] = "ps",
	[DBLP_TRANSPOSE] = "transpose",
	[DBLP_RING] = "ring",
	[DBLP_TREE] = "tree",
	[DBLP_BCUBE] = "bcube",
	[DBLP_AVERAGE] = "average",
	NULL
};

const char *const dblp_rule_names[DBLP_NAMES] = {
	[DBLP_BUBBLE] = "bubble",
	[DBLP_RESCALE] = "rescale",
	[DBLP_FEEDBACK] = "feedback",
	NULL
};
