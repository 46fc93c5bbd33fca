// SPDX-License-Identifier: GPL-2.0-only
/* Mode collective: its options. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "arg.h"
#include "collective.h"
#include "conn.h"
#include "options.h"

#define HOUR	3600000	/* ms */

/* @text: the number of ranks, or the namespace of each */
static void set_spawn(char *text)
{
	coll.spawn = true;
	if (strspn(text, "0123456789") == strlen(text))
		cfg.n_from = number("spawn", text, 1, MAX_HOSTS);
	else
		set_hosts("spawn", text);
}

static void join_option(int opt, char *text)
{
	struct dblp_comm_attr *a = &coll.attr;

	switch (opt) {
	case OPT_SPAWN: set_spawn(text); break;
	case OPT_RANK: a->rank = number("rank", text, 0, DBLP_RANKS_MAX - 1); break;
	case OPT_NRANKS: a->nranks = number("nranks", text, 1, DBLP_RANKS_MAX); break;
	case OPT_RENDEZVOUS:
		if (strncmp(text, "tcp://", 6) && strncmp(text, "file:", 5) &&
		    strcmp(text, "env"))
			wrong("--rendezvous takes tcp://ADDR:PORT, file:PATH or env, not '%s'",
			      text);
		a->rendezvous = text;
		break;
	case OPT_DEVICES: a->devices = text; break;
	case OPT_JOB: a->job = number("job", text, 1, UINT32_MAX); break;
	case OPT_MESSAGE:
		a->message_bytes = size("message", text, 8, DBLP_MSG_MAX / 2);
		if (a->message_bytes % 8)
			wrong("--message takes a multiple of 8");
		break;
	default: exit(EXIT_USAGE);
	}
}

static void plan_option(int opt, char *text)
{
	struct dblp_op *op = &coll.op;

	switch (opt) {
	case OPT_PLAN: op->algo = choice("plan", text, dblp_algo_names); break;
	case OPT_ROOT: op->root = number("root", text, 0, DBLP_RANKS_MAX - 1); break;
	case OPT_SERVER: op->plan_flags = DBLP_PLAN_SERVER; break;
	case OPT_FANIN: op->fanin = number("fanin", text, 1, DBLP_RANKS_MAX); break;
	case OPT_LEVELS:
		op->levels = number("levels", text, 1, DBLP_LEVELS_MAX);
		break;
	case OPT_RADIX:
		coll.radices = numbers("radix", text, DBLP_RANKS_MAX, op->radix,
				       DBLP_LEVELS_MAX);
		break;
	default: join_option(opt, text);
	}
}

static uint32_t block(const char *name, const char *text)
{
	uint64_t n = number(name, text, 1, DBLP_BLOCK_MAX);

	if (n & (n - 1))
		wrong("--%s takes a power of two, not '%s'", name, text);
	return (uint32_t)n;
}

void collective_option(int opt, char *text)
{
	struct dblp_op *op = &coll.op;

	switch (opt) {
	case 's':
		coll.n_sizes = sizes("size", text, DBLP_MSG_MAX, coll.size, SIZES_MAX);
		break;
	case OPT_OP: coll.what = choice("op", text, what_names); break;
	case OPT_RULE: op->rule = choice("rule", text, dblp_rule_names); break;
	case OPT_DTYPE: op->dtype = choice("dtype", text, dtype_names); break;
	case OPT_CARRY: op->flags |= DBLP_OP_CARRY; break;
	case OPT_SPARSE:
		op->flags |= DBLP_OP_SPARSE;
		op->block = text ? block("sparse", text) : 0;
		break;
	case OPT_DENSITY: coll.density = share("density", text); break;
	case OPT_CLUSTER: coll.cluster = number("cluster", text, 1, UINT32_MAX); break;
	case OPT_VECTORS:
		coll.vectors = open(text, O_RDONLY | O_CLOEXEC);
		if (coll.vectors < 0)
			wrong("--vectors: %s: %s", text, strerror(errno));
		break;
	case OPT_PHASE:
		op->phase = number("phase", text, 0, DBLP_PHASES - 1);
		op->flags |= DBLP_OP_PHASE;
		break;
	case OPT_WAIT: op->wait_ms = duration("wait", text, HOUR); break;
	case OPT_LANE: lanes_option(text); break;
	case OPT_GAP: coll.gap_ms = duration("gap", text, HOUR); break;
	default: plan_option(opt, text);
	}
}

static void check_plan(void)
{
	const struct dblp_op *op = &coll.op;
	const bool rooted = op->algo == DBLP_PS || op->algo == DBLP_TREE;
	const bool digits = op->algo == DBLP_BCUBE || op->algo == DBLP_AVERAGE;

	if (!rooted && (op->root || op->plan_flags & DBLP_PLAN_SERVER))
		wrong("--root and --server are for --plan ps and tree");
	if (op->fanin && op->algo != DBLP_TREE)
		wrong("--fanin is for --plan tree");
	if (!digits && (op->levels || coll.radices))
		wrong("--levels and --radix are for --plan bcube and average");
	if (op->levels && coll.radices)
		wrong("--levels and --radix exclude each other");
	if (coll.what == WHAT_ALLGATHER &&
	    (cfg.has_budget || cfg.policy >= 0 || op->rule || op->wait_ms))
		wrong("--op allgather loses nothing: it has no --budget, --policy, --rule and --wait");
}

static void check_transport(void)
{
	static char name[32];

	if (!strcmp(cfg.main.proto->name, "sctp"))
		wrong("mode collective does not support sctp");
	if (cfg.main.cc && cfg.main.proto->lossy)
		wrong("--cc is for --proto tcp: dblp uses the default of the namespace");
	if (!cfg.main.proto->lossy && (coll.attr.job || coll.op.flags & DBLP_OP_PHASE))
		wrong("%s has no --job and --phase", cfg.main.proto->name);
	if (cfg.main.cc && (size_t)snprintf(name, sizeof(name), "tcp:%s",
					    cfg.main.cc) >= sizeof(name))
		wrong("--cc '%s' is too long", cfg.main.cc);
	coll.attr.transport = cfg.main.cc ? name : cfg.main.proto->name;
}

static void check_ranks_here(void)
{
	struct dblp_comm_attr *a = &coll.attr;

	if (coll.spawn && (a->rank >= 0 || a->nranks >= 0))
		wrong("--spawn starts all ranks: it excludes --rank and --nranks");
	if (!coll.spawn && (a->rank < 0) != (a->nranks < 0))
		wrong("--rank and --nranks go together");
	if (a->rank >= 0 && a->rank >= a->nranks)
		wrong("--rank %d: there are only %d ranks, counted from 0", a->rank,
		      a->nranks);
	if (coll.spawn)
		a->nranks = (int32_t)cfg.n_from;
	else if (!a->rendezvous && !getenv("MASTER_ADDR"))
		wrong("--spawn or --rendezvous is needed: the environment has no MASTER_ADDR");
	if (a->nranks >= 0)
		collective_check_ranks((uint32_t)a->nranks);
}

void collective_check(void)
{
	struct dblp_op *op = &coll.op;
	unsigned int i;

	cfg.listens = false;
	if (!coll.n_sizes)
		coll.size[coll.n_sizes++] = cfg.size;
	for (i = 0; i < coll.n_sizes; i++)
		if (coll.size[i] % vector_dtype_size())
			wrong("--size %u is not a multiple of a %s, which has %u bytes", coll.size[i],
			      dtype_names[op->dtype], vector_dtype_size());
	if (op->flags & DBLP_OP_CARRY && !cfg.has_budget)
		wrong("--carry needs a --budget");
	if (coll.cluster > 1 && coll.density == DBLP_PPM)
		wrong("--cluster needs a --density");
	if (coll.vectors >= 0 &&
	    (coll.n_sizes > 1 || coll.density < DBLP_PPM || op->dtype == DBLP_INT32 ||
	     coll.what == WHAT_ALLGATHER))
		wrong("--vectors needs one --size of floats, and excludes --density and --op allgather");
	check_plan();
	check_transport();
	lanes_check();
	check_ranks_here();
	if (cfg.has_budget)
		op->flags |= DBLP_OP_BUDGET;
	op->budget = cfg.budget;
	if (cfg.policy >= 0) {
		op->flags |= DBLP_OP_POLICY;
		op->policy = (uint32_t)cfg.policy;
	}
}
