/* SPDX-License-Identifier: GPL-2.0-only */
/* The options on which all ranks of a run must agree. */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libdblp.h>
#include <comm.h>

/* CONFIG_DIFFERENCE - room for what config_differ() writes */
#define CONFIG_DIFFERENCE	128

/**
 * struct config - options of a run
 * @text: digest of the text
 * @rate: learning rate
 * @eta: see &struct dblp_clr
 * @nranks: number of ranks
 * @plan: &enum dblp_algo
 * @fanin: children of a rank in a tree
 * @levels: digits of bcube and average
 * @rule: &enum dblp_rule
 * @batch: samples of each rank in a round
 * @context: shape of the model
 * @hidden: shape of the model
 * @seed: seed of all random numbers
 * @epoch: rounds between two decisions of the detector
 * @rounds: number of rounds
 * @every: rounds between two checkpoints, 0: no checkpoints
 * @resume: continue from a checkpoint
 * @flags: &enum dblp_op_flags of all exchanges
 * @budget: ppm, if @flags has %DBLP_OP_BUDGET and @phases is 0; with @tune: its cap
 * @policy: &enum dblp_policy, if @flags has %DBLP_OP_POLICY
 * @wait_ms: see &struct dblp_op
 * @phases: the detector sets the budget of each round, to @low or @high
 * @low: ppm: budget in critical phases
 * @high: ppm: budget in tolerant phases
 * @job: budgets are those of the rank's job
 * @tune: budgets are found; @budget and those of phases and jobs are caps
 * @owners: owners do the step of their parameters, and send parameters
 * @param_budget: ppm: loss budget of these
 *
 * It has no padding, so digests of its bytes are equal for equal options.
 */
struct config {
	uint64_t	text;
	double		rate;
	double		eta;
	uint32_t	nranks;
	uint32_t	plan;
	uint32_t	fanin;
	uint32_t	levels;
	uint32_t	rule;
	uint32_t	batch;
	uint32_t	context;
	uint32_t	hidden;
	uint32_t	seed;
	uint32_t	epoch;
	uint32_t	rounds;
	uint32_t	every;
	uint32_t	resume;
	uint32_t	flags;
	uint32_t	budget;
	uint32_t	policy;
	uint32_t	wait_ms;
	uint32_t	phases;
	uint32_t	low;
	uint32_t	high;
	uint32_t	job;
	uint32_t	tune;
	uint32_t	owners;
	uint32_t	param_budget;
};

/** config_server() - does rank 0 contribute nothing? */
static inline bool config_server(const struct config *c)
{
	return c->plan == DBLP_PS;
}

/**
 * config_differ() - do two configurations differ?
 * @a: one
 * @b: the other one
 * @saved: compare only the fields that config_saved() copies
 * @what: the first difference, for a message, such as "has --batch 32, not 64"
 */
bool config_differ(const struct config *a, const struct config *b, bool saved,
		   char what[CONFIG_DIFFERENCE]);

/** config_saved() - the fields that a checkpoint must agree with; others are 0 */
struct config config_saved(const struct config *c);

#endif /* TRAIN_CONFIG_H */
