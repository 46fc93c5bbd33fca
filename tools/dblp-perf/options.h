/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command line. Every error in it ends the program with EXIT_USAGE.
 */
#ifndef DBLP_PERF_OPTIONS_H
#define DBLP_PERF_OPTIONS_H

#include <stdint.h>

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

/** wrong() - print an error in the command line, and exit */
void wrong(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

/** share() - parse @text, a share, as the value of option @name; returns ppm */
uint32_t share(const char *name, const char *text);

/** number() - parse @text, from @min to @max, as the value of option @name */
uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max);

/** choice() - find the value @text of option @name in @names; returns its index */
int choice(const char *name, const char *text, const char *const *names);

/**
 * numbers() - parse the value of an option, a list separated by commas
 * @name: the option
 * @text: its value; modified
 * @max: maximum of each number; the minimum is 1
 * @list: filled
 * @room: number of entries in @list
 *
 * Return: number of values.
 */
unsigned int numbers(const char *name, char *text, uint32_t max, uint32_t *list,
		     unsigned int room);

/** set_hosts() - set cfg.from to the namespaces in @text, which is modified */
void set_hosts(const char *name, char *text);

#endif /* DBLP_PERF_OPTIONS_H */
