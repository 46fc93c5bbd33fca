/* SPDX-License-Identifier: GPL-2.0-only */
/* A training in one process, without a network, that loses what a budget lets it lose. */
#ifndef TRAIN_TRIAL_H
#define TRAIN_TRIAL_H

#include "config.h"
#include "text.h"

/**
 * struct trial - a training
 * @config: the model, the ranks, the plan and the rule; its @seed; its @budget, or with
 *	@phases @low and @high, each round as the detector says
 * @text: to train on
 * @segment: bytes that are lost together, a multiple of 4
 * @sparse: see &struct lossy_attr
 * @large: the same
 * @asked: filled: bytes that were sent and might have been lost
 * @missing: filled: of those, the lost ones
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
 * trial_run() - train
 *
 * Ranks compute the same batches from the same start as those of dblp-train run. Trials
 * with the same @config and @segment give the same bits.
 *
 * Return: the loss on text not trained on, at the same places for all seeds; NaN or
 * infinite if it does not converge.
 */
double trial_run(struct trial *t);

/** trial_plan() - plan of a configuration, for @count elements */
struct dblp_plan trial_plan(const struct config *c, uint64_t count);

#endif /* TRAIN_TRIAL_H */
