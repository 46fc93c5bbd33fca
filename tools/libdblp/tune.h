/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: finds the loss budget of a training.
 *
 * Pure: no sockets, no memory of its own.
 *
 * N ranks average gradients v[1] ... v[N], which differ because each rank has
 * other samples. The mean of the ranks thus differs from the gradient of all
 * data: that is the noise of a step, which a training tolerates anyway. The
 * controller holds the error that losses add to the mean at a share of this
 * noise, @target. A target of 15 % costs no more than batches that are a seventh
 * smaller.
 *
 * With A = the mean of |v[i]|^2 over ranks, and c = the mean of v[i] v[j] over
 * pairs of ranks, divided by A (their agreement: 0 if ranks have nothing in
 * common, 1 if they are equal):
 *
 *	noise^2 = (1 - c) A / N		variance of the mean of N gradients
 *	error^2 = (x + x^2 (N - 1) c) A / N
 *
 * where each rank loses the share x of its energy, |v[i]|^2, in random places:
 * the first term is that of independent losses, the second one the part of the
 * common gradient that is missing. Neither N nor A is left in their ratio:
 *
 *	(x + x^2 (N - 1) c) / (1 - c) = target		[1]
 *
 * Early in a training ranks agree and x is small. As c falls, x rises to the
 * target. c follows from the squared norm of the mean of what arrived: of its
 * energy, (1 - x) A / N is that of single ranks and (1 - x)^2 (N - 1) c A / N
 * that of pairs. Rescale divides by the k contributions that arrived for an
 * element: then these are E(1/k) A and E(1 - 1/k) c A. (Noise and agreement
 * as in McCandlish et al., "An Empirical Model of Large-Batch Training",
 * 2018; error and losses as derived here.)
 *
 * What a round has not lost of the target, by the left side of [1], is saved,
 * and what it has lost beyond the target is subtracted. The right side of [1] is
 * the target times 1 + saved / %DBLP_TUNE_SAVED: between 0 and twice the target.
 * So calm rounds with policy early leave their share to bursts, and budgets
 * change slowly, because a round as long as its slowest message gains little from
 * a large budget once in a while.
 */
#ifndef DBLP_TUNE_H
#define DBLP_TUNE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DBLP_TUNE_TARGET - default of @target, ppm
 *
 * A third of it with rules other than %DBLP_FEEDBACK, which lose for good.
 */
#define DBLP_TUNE_TARGET	150000
/** DBLP_TUNE_CAP - default of the cap, ppm */
#define DBLP_TUNE_CAP		400000
/** DBLP_TUNE_SAVED - most that is saved or overspent, in targets */
#define DBLP_TUNE_SAVED		10

/**
 * struct dblp_energy - an operation, or all operations of a round, on all ranks
 * @contributions: vectors in a sum
 * @rule: &enum dblp_rule
 * @sent: sum of @energy_sent of &struct dblp_result over ranks
 * @lost: the same of @energy_lost. %DBLP_FEEDBACK only: other rules do not keep
 *	lost elements, and their energy is estimated by @missing
 * @mean: squared norm of the mean: @energy_mean of any rank
 * @missing: sum of @missing over ranks, bytes
 * @bytes: size of all contributions, bytes
 *
 * Fields of several operations with the same @contributions and @rule add up.
 */
struct dblp_energy {
	uint32_t	contributions;
	uint32_t	rule;
	double		sent;
	double		lost;
	double		mean;
	uint64_t	missing;
	uint64_t	bytes;
};

/**
 * struct dblp_tune - a controller; zero it first
 * @target: ppm: error as a share of the noise, both squared; 0:
 *	%DBLP_TUNE_TARGET
 * @rounds: rounds so far
 * @saved: unspent part of earlier targets, in targets; negative: overspent
 * @common: running mean of the energy of pairs in the mean, as a share of A
 * @most: running mean of the same if all ranks were equal
 * @agreement: c, 0 ... 1
 * @contributions: of the last round
 * @rule: of the last round
 *
 * Ranks with equal fields get equal budgets. A checkpoint may store it.
 */
struct dblp_tune {
	uint32_t	target;
	uint32_t	rounds;
	double		saved;
	double		common;
	double		most;
	double		agreement;
	uint32_t	contributions;
	uint32_t	rule;
};

/**
 * dblp_tune_budget() - budget of the next round
 * @t: the controller
 * @cap: ppm: the most that it may be
 *
 * Return: ppm, a multiple of 1000; 0 before the first round.
 */
uint32_t dblp_tune_budget(const struct dblp_tune *t, uint32_t cap);

/**
 * dblp_tune_round() - learn from a round
 * @t: the controller
 * @e: the round, equal on all ranks. Rounds whose energies are not finite, or
 *	are 0, are omitted, as those of a GradScaler that overflows
 */
void dblp_tune_round(struct dblp_tune *t, const struct dblp_energy *e);

#ifdef __cplusplus
}
#endif

#endif /* DBLP_TUNE_H */
