/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of a rank. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdio.h>

#include "config.h"
#include "hook.h"
#include "log.h"

/* Progress is every 10 rounds at rank 0, and never at others */
#define PROGRESS_DEFAULT	0

/* Limits of a profile */
#define BUDGETS_MAX	32
#define SEEDS_MAX	1000

/**
 * enum options_verb - whose options
 * @OPTIONS_RUN: those of a rank
 * @OPTIONS_PROFILE: those of a profile
 * @OPTIONS_ASYNC: those of a worker that trains asynchronously
 */
enum options_verb {
	OPTIONS_RUN	= 1 << 0,
	OPTIONS_PROFILE	= 1 << 1,
	OPTIONS_ASYNC	= 1 << 2,
};

/**
 * struct options - what a rank, or a profile, was told
 * @attr: how to find the others
 * @config: what all ranks have to agree on, but for the text and @nranks
 * @rule_given: the rule is not the default
 * @checkpoint: file for checkpoints, or NULL
 * @hook: commands to start
 * @hooks: number of commands
 * @progress: rounds between two lines, or %PROGRESS_DEFAULT
 * @log_file: or NULL
 * @name: of this run in the report
 * @files: the text to train on
 * @n_files: number of files
 * @seeds: profile: trainings for each budget
 * @segment: profile: bytes, a multiple of 4
 * @sparse: profile: see &struct lossy_attr
 * @large: profile: ppm, the same
 * @budget: profile: ppm, rising, above 0
 * @n_budgets: number of budgets
 * @budgets_given: they are not the default
 * @json: profile: not a table
 * @scheduler: async: its address and port
 * @worker: async: which one this is
 * @seconds: async: how long to train at most, 0: only @config.rounds count
 * @pause_ms: async: how long it pauses
 * @pause_every: async: how many rounds from one pause to the next, 0: none
 * @count: async: only say how many parameters there are
 */
struct options {
	struct dblp_comm_attr	attr;
	struct config		config;
	bool			rule_given;
	const char		*checkpoint;
	struct hook		hook[HOOKS_MAX];
	unsigned int		hooks;
	unsigned int		progress;
	FILE			*log_file;
	char			name[LOG_NAME];
	char			**files;
	unsigned int		n_files;
	uint32_t		seeds;
	uint32_t		segment;
	bool			sparse;
	uint32_t		large;
	uint32_t		budget[BUDGETS_MAX];
	uint32_t		n_budgets;
	bool			budgets_given;
	bool			json;
	const char		*scheduler;
	uint32_t		worker;
	uint32_t		seconds;
	uint32_t		pause_ms;
	uint32_t		pause_every;
	bool			count;
};

/** options_parse() - read the command line of a verb; ends the program if it is wrong */
void options_parse(struct options *o, unsigned int verb, int argc, char **argv);

#endif /* TRAIN_OPTIONS_H */
