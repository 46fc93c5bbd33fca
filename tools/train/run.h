/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a rank: what it computes, and what it exchanges with others. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "adam.h"
#include "checkpoint.h"
#include "gather.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "text.h"

/**
 * struct record - what a rank tells the others of a round
 * @asked: see &struct dblp_result
 * @missing: see there
 * @digest: of its replica, when replicas are compared
 * @loss: of its batch
 * @norm: of the gradient
 * @drift: see &struct log_round
 * @budget_least: see &struct dblp_result
 * @budget_most: see there
 */
struct record {
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	digest;
	double		loss;
	double		norm;
	double		drift;
	uint32_t	budget_least;
	uint32_t	budget_most;
};

/**
 * struct run - a rank
 * @opt: what it was told
 * @comm: joins it with the others
 * @rank: its number
 * @nranks: number of ranks
 * @server: it contributes nothing
 * @shows: it prints progress or writes a log
 * @job: job whose detector it tells of norms; 0: none, or another rank of this
 *	host does
 * @job_fd: a socket in the job, to see its phase; -1: there is no job
 * @text: to train on
 * @model: shape of the model
 * @size: number of parameters
 * @state: parameters and all else that lasts
 * @adam: the optimiser, whose memory is @state
 * @grad: its gradient, then that of all; average: the parameters before
 * @pos: positions of the batch
 * @records: of the last round, of all ranks
 * @round: the last round, of which @records are still to come; its number is 0 if
 *	none are
 * @met: the last round after which replicas were compared, 0: none
 * @digest: of all replicas then
 * @log: of the run
 */
struct run {
	struct options		opt;
	struct dblp_comm	*comm;
	uint32_t		rank;
	uint32_t		nranks;
	bool			server;
	bool			shows;
	uint32_t		job;
	int			job_fd;
	struct text		text;
	struct model		model;
	size_t			size;
	struct checkpoint	*state;
	struct adam		adam;
	float			*grad;
	size_t			*pos;
	struct gather		records;
	struct log_round	round;
	uint32_t		met;
	uint64_t		digest;
	struct log		log;
};

/* Joining: join.c */

/** run_join() - join the other ranks, and agree with them */
void run_join(struct run *r);

/* Exchanges: exchange.c. Each ends the program on failure. */

/**
 * exchange() - exchange gradients or parameters, and step
 * @r: the rank, with its gradient
 * @round: what is known of the round; filled
 * @mine: filled
 * @lossless: nothing may be lost, nor remain of what was lost before
 */
void exchange(struct run *r, struct log_round *round, struct record *mine,
	      bool lossless);

/** exchange_averages() - average parameters and optimiser over all ranks */
void exchange_averages(struct run *r);
/** exchange_state() - make all replicas that of rank 0 */
void exchange_state(struct run *r);
/** exchange_digests() - compare the replicas; ends the program if they differ */
uint64_t exchange_digests(struct run *r);
/** record_of() - what a rank has told, after gather_end() */
const struct record *record_of(const struct run *r, uint32_t rank);
/** exchange_phase() - in which phase is this round? */
void exchange_phase(const struct run *r, struct log_round *round);

/* The end of a run that has failed: run.c */

/** run_fail() - end the program, on all ranks, with a message on this one */
void run_fail(struct run *r, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** run_fail_all() - the same, where all ranks find out for themselves */
void run_fail_all(struct run *r, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** run_broken() - end the program: an exchange has failed with this negative errno */
void run_broken(struct run *r, int error) __attribute__((noreturn));

#endif /* TRAIN_RUN_H */
