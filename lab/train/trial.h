/* SPDX-License-Identifier: GPL-2.0-only */
/* A training in one process, without a network, with simulated losses. */
#ifndef TRAIN_TRIAL_H
#define TRAIN_TRIAL_H

#include "config.h"
#include "text.h"

/**
 * struct trial - a training
 * @config: shape, ranks, plan, rule, seed, and @budget, or @low and @high with @phases;
 *	with @tune these are caps
 * @text: training text
 * @segment: see &struct lossy_attr
 * @sparse: see &struct lossy_attr
 * @large: see &struct lossy_attr
 * @asked: filled: see &struct lossy
 * @missing: filled: see &struct lossy
 */
struct trial {
	struct config		config;
	const struct text	*text;
	uint32_t		segment;
	bool			sparse;
	uint32_t		large;
	uint64_t		asked;
	uint64_t		missing;
};

/**
 * trial_run() - train a model
 *
 * Batches and initial parameters are those of dblp-train run. Trials with equal
 * @config, @segment, @sparse and @large give the same bits.
 *
 * Return: the loss on held-out text, at the same positions for all seeds; NaN or
 * infinite if the training diverges.
 */
double trial_run(struct trial *t);

/** trial_plan() - plan of configuration @c for @count elements */
struct dblp_plan trial_plan(const struct config *c, uint64_t count);

#endif /* TRAIN_TRIAL_H */
