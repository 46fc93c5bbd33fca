/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of one training run: a rank writes it, the report reads it. */
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
 * @budget_set: ppm: the budget that the program or the job set
 * @budget_min: ppm: smallest budget that something came with at any rank
 * @budget_max: ppm: largest one
 * @us: duration, microseconds
 * @asked: bytes that were to come to all ranks and might have been lost
 * @missing: of those, the missing ones
 * @norm: of the average gradient
 * @loss: mean over all batches
 * @drift: how far parameters were from their average, as a share of it; 0 if
 *	gradients are averaged
 * @event: name of the hook that ran, or "-"
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
	char		event[LOG_WORD];
};

/**
 * struct log - a run
 * @name: name of the run
 * @transport: its transport
 * @workers: number of ranks that compute gradients
 * @params: number of parameters of the model
 * @samples: samples per round, of all ranks
 * @held_start: loss on text not trained on, before the first round
 * @held_end: the same after the last
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

/* Write the parts of a log, in this order; each is flushed at once. */
void log_begin(FILE *f, const struct log *log);
void log_round(FILE *f, const struct log_round *round);
void log_end(FILE *f, const struct log *log);

/** log_read() - read a whole log; ends the program with a message on failure */
void log_read(struct log *log, const char *file);
void log_free(struct log *log);

#endif /* TRAIN_LOG_H */
