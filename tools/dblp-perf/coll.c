// SPDX-License-Identifier: GPL-2.0-only
/* Mode collective: its configuration. */
#include <linux/dblp.h>

#include "arg.h"
#include "collective.h"

struct collective coll = {
	.attr = {
		.size	= sizeof(coll.attr),
		.rank	= DBLP_COMM_RANK_ENV,
		.nranks	= DBLP_COMM_RANK_ENV,
	},
	.op = {
		.size	= sizeof(coll.op),
		.algo	= DBLP_TRANSPOSE,
		.policy	= DBLP_POLICY_FULL,
	},
	.density = DBLP_PPM,
	.cluster = 1,
	.vectors = -1,
};

const char *const what_names[] = {
	[WHAT_ALLREDUCE]	= "allreduce",
	[WHAT_REDUCE_SCATTER]	= "reduce-scatter",
	[WHAT_ALLGATHER]	= "allgather",
	NULL
};

const char *const dtype_names[] = {
	[DBLP_FLOAT32]		= "float32",
	[DBLP_FLOAT16]		= "float16",
	[DBLP_BFLOAT16]		= "bfloat16",
	[DBLP_INT32]		= "int32",
	NULL
};

void collective_check_ranks(uint32_t nranks)
{
	struct dblp_op *op = &coll.op;
	uint64_t product = 1;
	unsigned int i;

	if (op->root >= nranks)
		wrong("--root %u: there are only %u ranks, counted from 0", op->root,
		      nranks);
	if (op->plan_flags & DBLP_PLAN_SERVER && nranks < 2)
		wrong("--server needs at least two ranks");
	if (op->levels && !coll.radices)
		dblp_plan_radix(nranks, op->levels, op->radix);
	for (i = 0; i < coll.radices && product <= nranks; i++)
		product *= op->radix[i];
	if (coll.radices && (product != nranks || i < coll.radices))
		wrong("--radix: the product is not the number of ranks, %u", nranks);
	op->levels = op->levels ?: coll.radices;
}
