/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of a training run, written by a rank and read by the report. */
#ifndef TRAIN_LOG_H
#define TRAIN_LOG_H

#include <stdint.h>
#include <stdio.h>

#define LOG_WORD	32
#define LOG_NAME	64

/**
 * struct log_round - one round
 * @round: from 1
 * @phase: name of the phase
 * @budget_set: ppm: budget that the program or the job set
 * @budget_min: ppm: smallest budget of a contribution received by any rank
 * @budget_max: ppm: largest such budget
 * @us: duration, microseconds
 * @asked: bytes of contributions due at all ranks that a budget covers
 * @missing: bytes of @asked that did not arrive
 * @norm: norm of the average gradient
 * @loss: mean training loss of all batches
 * @drift: distance of the parameters from the average of their group, or from those of
 *	their owners, as a share of their norm; root mean square of the ranks that
 *	compute gradients. 0 if all ranks do the same step
 * @param_asked: bytes of parameters due at all ranks that their budget covers
 * @param_missing: bytes of @param_asked that did not arrive
 * @event: name of the hook that was started, or "-"
 */
struct log_round {
	unsigned int	round;
	char		phase[LOG_WORD];
	uint32_t	budget_set;
	uint32_t	budget_min;
	uint32_t	budget_max;
	uint64_t	us;
	uint64_t	asked;
	uint64_t	missing;
	double		norm;
	double		loss;
	double		drift;
	uint64_t	param_asked;
	uint64_t	param_missing;
	char		event[LOG_WORD];
};

/**
 * struct log - the log of a run
 * @name: name of the run
 * @transport: transport of the exchanges
 * @workers: number of ranks that compute gradients
 * @params: number of parameters of the model
 * @samples: samples per round, over all ranks
 * @held_start: loss on held-out text before the first round
 * @held_end: loss on held-out text after the last round
 * @n: number of rounds
 * @round: the rounds
 */
struct log {
	char			name[LOG_NAME];
	char			transport[LOG_WORD];
	unsigned int		workers;
	unsigned int		params;
	unsigned int		samples;
	double			held_start;
	double			held_end;
	unsigned int		n;
	struct log_round	*round;
};

/* Write one part of a log, in this order, and flush it. */
void log_begin(FILE *f, const struct log *log);
void log_round(FILE *f, const struct log_round *round);
void log_end(FILE *f, const struct log *log);

/** log_read() - read a complete log; ends the program on failure */
void log_read(struct log *log, const char *file);
void log_free(struct log *log);

#endif /* TRAIN_LOG_H */
