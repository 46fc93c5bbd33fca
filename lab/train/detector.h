/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The phase of training, by the code of the kernel's detector
 * (net/dblp/core/clr.c) in this program; a job's detector gets the same norms.
 */
#ifndef TRAIN_DETECTOR_H
#define TRAIN_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <clr.h>

/**
 * struct detector - a detector that gets the mean norm of each epoch
 * @clr: the kernel's detector
 * @sum: sum of the norms of this epoch
 * @rounds: rounds of this epoch so far
 * @epoch: rounds in an epoch
 */
struct detector {
	struct dblp_clr	clr;
	double		sum;
	uint32_t	rounds;
	uint32_t	epoch;
};

/** detector_init() - start in a critical phase; @d is all 0 */
void detector_init(struct detector *d, double eta, uint32_t epoch);

/** gradient_norm() - Euclidean norm of a vector */
double gradient_norm(const float *v, size_t size);

/**
 * detector_round() - add the gradient norm of one round
 * @d: the detector
 * @norm: at least 0, finite
 * @job: job whose detector also gets the mean of a completed epoch, 0: none
 *
 * Return: 0, or the error of dblp_job_norm().
 */
int detector_round(struct detector *d, double norm, uint32_t job);

#endif /* TRAIN_DETECTOR_H */
