/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which phase training is in, after DBLP (arXiv 2605.01989): it is in a
 * critical learning regime while the norm of the gradient changes much from one
 * epoch to the next.
 */
#ifndef TRAIN_CLR_H
#define TRAIN_CLR_H

#include <stdbool.h>

/**
 * struct clr - the detector
 * @eta: relative change from which on a regime is critical
 * @epoch: rounds of an epoch
 * @rounds: rounds seen of the present epoch
 * @sum: of their norms
 * @last: mean norm of the epoch before, negative if there was none
 * @critical: the present answer
 */
struct clr {
	double		eta;
	unsigned int	epoch;
	unsigned int	rounds;
	double		sum;
	double		last;
	bool		critical;
};

/** clr_init() - training begins, critically */
void clr_init(struct clr *c, double eta, unsigned int epoch);

/**
 * clr_round() - take the gradient norm of one round
 *
 * Return: true if the next round is critical. The answer changes only between
 * epochs.
 */
bool clr_round(struct clr *c, double norm);

#endif /* TRAIN_CLR_H */
