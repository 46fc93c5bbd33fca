/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of one training run: the server writes it, the report reads it. */
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
 * @budget_set: ppm: the budget that the server set
 * @budget_min: ppm: smallest budget a gradient came with
 * @budget_max: ppm: largest budget a gradient came with
 * @us: duration, microseconds
 * @asked: bytes of all gradients
 * @missing: of those, the missing ones
 * @norm: of the average gradient
 * @loss: mean over the workers' batches
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
	char		event[LOG_WORD];
};

/**
 * struct log_maps - loss maps of sender and receiver, compared
 * @equal: messages whose maps were the same
 * @different: messages whose maps were not
 * @unknown: messages of which the sender had no report in time
 */
struct log_maps {
	unsigned int	equal;
	unsigned int	different;
	unsigned int	unknown;
};

/**
 * struct log - a run
 * @name: name of the run
 * @transport: its transport
 * @workers: number of workers
 * @params: number of parameters of the model
 * @samples: samples per round, of all workers
 * @held_start: loss on text not trained on, before the first round
 * @held_end: the same after the last
 * @maps: see &struct log_maps
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
	struct log_maps		maps;
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
