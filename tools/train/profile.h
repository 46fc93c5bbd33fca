/* SPDX-License-Identifier: GPL-2.0-only */
/* Which loss budget a training bears: what is told of trainings by budget and seed. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include <stdint.h>

/**
 * enum profile_verdict - of a budget
 * @PROFILE_BASE: it is 0, and others are compared with it
 * @PROFILE_UNUSED: nothing was lost, as no segment fits the budget: this says nothing
 * @PROFILE_WITHIN: on average not worse than @PROFILE_BASE by more than its spread, so
 *	it matters no more than which seed is taken
 * @PROFILE_BEYOND: worse, or it does not converge
 */
enum profile_verdict {
	PROFILE_BASE,
	PROFILE_UNUSED,
	PROFILE_WITHIN,
	PROFILE_BEYOND,
};

/**
 * struct profile_point - trainings with one budget
 * @budget: ppm
 * @high: ppm: that of tolerant phases, 0: there are no phases
 * @loss: after each, by seed
 * @asked: bytes of all that might have been lost
 * @missing: of those, the lost ones
 * @mean: filled: of @loss
 * @spread: filled: its standard deviation
 * @worse: filled: mean of how much more it is than with the same seed and no losses
 * @error: filled: standard error of @worse
 * @verdict: filled: &enum profile_verdict
 */
struct profile_point {
	uint32_t	budget;
	uint32_t	high;
	double		*loss;
	uint64_t	asked;
	uint64_t	missing;
	double		mean;
	double		spread;
	double		worse;
	double		error;
	uint32_t	verdict;
};

/**
 * profile_judge() - fill in what is made of losses
 * @p: points by rising budget; the first is without a budget
 * @n: their number
 * @seeds: losses of each, at least 2
 */
void profile_judge(struct profile_point *p, uint32_t n, uint32_t seeds);

/**
 * profile_best() - the largest budget within the noise, below any that is beyond it
 *
 * Return: its index, 0 if there is none.
 */
uint32_t profile_best(const struct profile_point *p, uint32_t n);

#endif /* TRAIN_PROFILE_H */
