/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of the subcommands. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdio.h>

#include "config.h"
#include "hook.h"
#include "log.h"

/* Default of --progress: every 10 rounds at rank 0, none at others */
#define PROGRESS_DEFAULT	0

/* Limits of a profile */
#define BUDGETS_MAX	32
#define SEEDS_MAX	1000

/**
 * enum options_verb - subcommand that takes an option
 * @OPTIONS_RUN: run
 * @OPTIONS_PROFILE: profile
 * @OPTIONS_ASYNC: async
 */
enum options_verb {
	OPTIONS_RUN	= 1 << 0,
	OPTIONS_PROFILE	= 1 << 1,
	OPTIONS_ASYNC	= 1 << 2,
};

/**
 * struct options - values of all options
 * @attr: how to find the other ranks
 * @config: options on which all ranks agree; its @text and @nranks are not set
 * @rule_given: --rule was given
 * @checkpoint: file for checkpoints, or NULL
 * @hook: commands to start in given rounds
 * @hooks: number of @hook
 * @progress: rounds between two lines of progress, or %PROGRESS_DEFAULT
 * @log_file: the log, or NULL
 * @name: name of the run in the report
 * @files: the text to train on
 * @n_files: number of @files
 * @seeds: profile: trainings for each budget
 * @segment: profile: see &struct lossy_attr
 * @sparse: profile: see &struct lossy_attr
 * @large: profile: ppm, see &struct lossy_attr
 * @budget: profile: ppm, ascending, above 0
 * @n_budgets: number of @budget
 * @budgets_given: --budgets was given
 * @json: profile: print JSON instead of a table
 * @scheduler: async: address and port of the scheduler
 * @worker: async: number of this worker
 * @time_ms: async: time limit of the training, 0: only @config.rounds limits it
 * @pause_ms: async: duration of a pause
 * @pause_every: async: rounds between two pauses, 0: no pauses
 * @count: async: only print the number of parameters
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
	uint32_t		time_ms;
	uint32_t		pause_ms;
	uint32_t		pause_every;
	bool			count;
};

/** options_parse() - parse the options of a subcommand; ends the program if invalid */
void options_parse(struct options *o, unsigned int verb, int argc, char **argv);

#endif /* TRAIN_OPTIONS_H */
