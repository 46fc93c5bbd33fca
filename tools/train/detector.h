/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The phase of training, by the kernel's detector: that of a job, or the same code
 * (net/dblp/core/clr.c) in this program.
 */
#ifndef TRAIN_DETECTOR_H
#define TRAIN_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <clr.h>

/**
 * struct detector - a detector, which is given the mean norm of each epoch
 * @clr: the detector
 * @sum: of the norms of the present epoch
 * @rounds: of the present epoch so far
 * @epoch: rounds of an epoch
 */
struct detector {
	struct dblp_clr	clr;
	double		sum;
	uint32_t	rounds;
	uint32_t	epoch;
};

/** detector_init() - begin in a critical regime; @d is zero */
void detector_init(struct detector *d, double eta, uint32_t epoch);

/** gradient_norm() - Euclidean norm */
double gradient_norm(const float *v, size_t size);

/**
 * detector_round() - take the gradient norm of one round
 * @d: the detector
 * @norm: at least 0, finite
 * @job: job whose detector is told of the epoch, too; 0: none
 *
 * Return: 0, or what dblp_job_norm() returned.
 */
int detector_round(struct detector *d, double norm, uint32_t job);

#endif /* TRAIN_DETECTOR_H */
