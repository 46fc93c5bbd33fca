/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command line. Every error in it ends the program with EXIT_USAGE.
 */
#ifndef DBLP_PERF_OPTIONS_H
#define DBLP_PERF_OPTIONS_H

/** options - long options without a letter; from OPT_PLAN on, of mode collective only */
enum {
	OPT_PROTO = 256, OPT_CC, OPT_OTHER, OPT_OTHER_CC, OPT_BUDGET,
	OPT_POLICY, OPT_ORDER, OPT_KEY, OPT_BUFFER, OPT_HOOK, OPT_VERIFY, OPT_SEED, OPT_SPRAY,
	OPT_TO, OPT_FROM, OPT_LISTEN, OPT_CONNECT, OPT_HOSTS, OPT_SAMPLES, OPT_TIMEOUT,
	OPT_PLAN, OPT_OP, OPT_RULE, OPT_DTYPE, OPT_CARRY, OPT_WAIT, OPT_GAP,
	OPT_SPARSE, OPT_DENSITY, OPT_CLUSTER,
	OPT_ROOT, OPT_SERVER, OPT_FANIN, OPT_LEVELS, OPT_RADIX, OPT_SPAWN,
	OPT_RANK, OPT_NRANKS, OPT_RENDEZVOUS, OPT_DEVICES, OPT_JOB, OPT_PHASE,
	OPT_MESSAGE, OPT_VECTORS, OPT_LANE,
};

/** options_parse() - fill cfg */
void options_parse(int argc, char **argv);

#endif /* DBLP_PERF_OPTIONS_H */
