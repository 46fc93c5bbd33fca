/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares trainings with different loss budgets. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum profile_verdict - result for a budget
 * @PROFILE_BASE: the budget is 0; the other budgets are compared with it
 * @PROFILE_UNUSED: no segment fits the budget, so nothing was lost
 * @PROFILE_WITHIN: the mean loss exceeds that of @PROFILE_BASE by no more than the
 *	spread of @PROFILE_BASE over seeds
 * @PROFILE_BEYOND: the mean loss exceeds it by more, or a training diverges
 */
enum profile_verdict {
	PROFILE_BASE,
	PROFILE_UNUSED,
	PROFILE_WITHIN,
	PROFILE_BEYOND,
};

/**
 * struct profile_point - trainings with one budget
 * @budget: ppm; with @high: budget in critical phases
 * @high: ppm: budget in tolerant phases, 0: no phases
 * @tune: budgets are found, and @budget or @high is their cap
 * @loss: loss on held-out text after each training, by seed
 * @asked: droppable bytes sent in all trainings
 * @missing: bytes of @asked that were lost
 * @mean: filled: mean of @loss
 * @spread: filled: standard deviation of @loss
 * @worse: filled: mean increase of the loss over the same seed without losses
 * @error: filled: standard error of @worse
 * @verdict: filled: &enum profile_verdict
 */
struct profile_point {
	uint32_t	budget;
	uint32_t	high;
	bool		tune;
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
 * profile_judge() - compute the filled fields of all points
 * @p: points by ascending budget; the first has budget 0
 * @n: number of points
 * @seeds: trainings of each point, at least 2
 */
void profile_judge(struct profile_point *p, uint32_t n, uint32_t seeds);

/**
 * profile_best() - largest budget %PROFILE_WITHIN below the first %PROFILE_BEYOND
 *
 * Return: the index of its point, 0 if there is none.
 */
uint32_t profile_best(const struct profile_point *p, uint32_t n);

#endif /* TRAIN_PROFILE_H */
