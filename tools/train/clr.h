/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The phase of training, after DBLP (arXiv 2605.01989): it is in a critical learning
 * regime while the norm of the gradient changes much from one epoch to the next.
 */
#ifndef TRAIN_CLR_H
#define TRAIN_CLR_H

#include <stdbool.h>

/**
 * struct clr - the detector
 * @eta: least relative change in a critical regime
 * @epoch: rounds per epoch
 * @rounds: rounds of the present epoch so far
 * @sum: sum of their norms
 * @last: mean norm of the epoch before, negative if there was none
 * @critical: the present regime is critical
 */
struct clr {
	double		eta;
	unsigned int	epoch;
	unsigned int	rounds;
	double		sum;
	double		last;
	bool		critical;
};

/** clr_init() - begin in a critical regime */
void clr_init(struct clr *c, double eta, unsigned int epoch);

/**
 * clr_round() - take the gradient norm of one round
 *
 * Return: true if the next round is critical. The regime changes only between
 * epochs.
 */
bool clr_round(struct clr *c, double norm);

#endif /* TRAIN_CLR_H */
