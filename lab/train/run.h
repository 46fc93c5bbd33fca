/* SPDX-License-Identifier: GPL-2.0-only */
/* A rank: its state, and what it exchanges with the other ranks. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "adam.h"
#include "checkpoint.h"
#include "copy.h"
#include "gather.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "text.h"

/**
 * struct record - what a rank reports to the others after a round
 * @asked: see &struct dblp_result
 * @missing: see &struct dblp_result
 * @digest: digest of its replica, if replicas are compared
 * @loss: training loss of its batch
 * @norm: gradient norm; with owners: that of its part
 * @drift: see &struct log_round, of %DBLP_AVERAGE
 * @param_asked: see &struct log_round, at this rank
 * @param_missing: see &struct log_round, at this rank
 * @apart: squared distance of other ranks' parameters from its own ones of its part
 * @square: squared norm of the parameters of its part
 * @budget_least: see &struct dblp_result
 * @budget_most: see &struct dblp_result
 * @cap: ppm: budget of its job
 * @reserved: 0
 * @energy_sent: see &struct dblp_result
 * @energy_lost: see &struct dblp_result
 * @energy_mean: see &struct dblp_result
 */
struct record {
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	digest;
	double		loss;
	double		norm;
	double		drift;
	uint64_t	param_asked;
	uint64_t	param_missing;
	double		apart;
	double		square;
	uint32_t	budget_least;
	uint32_t	budget_most;
	uint32_t	cap;
	uint32_t	reserved;
	double		energy_sent;
	double		energy_lost;
	double		energy_mean;
};

/**
 * struct run - a rank
 * @opt: values of its options
 * @comm: communicator with the other ranks
 * @rank: its number
 * @nranks: number of ranks
 * @server: this rank contributes no gradients
 * @shows: this rank prints progress or writes a log
 * @job: job whose detector gets the norms from this rank; 0: no job, or another rank
 *	of this host reports to it
 * @job_fd: a socket in the job, to read its phase; -1: no job
 * @text: training text
 * @model: shape of the model
 * @size: number of parameters
 * @state: state that a checkpoint saves
 * @adam: the optimiser; its arrays are in @state
 * @grad: gradient of this rank, then the average; with %DBLP_AVERAGE: parameters
 *	before the exchange
 * @own: with owners: its parameters
 * @copy: with owners: those of other ranks, as far as this one owns them, by rank
 * @records: records of all ranks, of the last round
 * @round: last round, until its @records have arrived; then its number is 0
 * @met: last round after which replicas were compared, 0: none
 * @digest: digest of all replicas after round @met
 * @drift: with owners: what exchange_replicas() returned then
 * @cap: --budget auto with a job: smallest budget of the jobs of all ranks, ppm
 * @log: head of the log
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
	struct copy		own;
	struct copy		*copy;
	size_t			*pos;
	struct gather		records;
	struct log_round	round;
	uint32_t		met;
	uint64_t		digest;
	double			drift;
	uint32_t		cap;
	struct log		log;
};

/* Joining: join.c */

/** run_join() - join the other ranks and check that their options agree */
void run_join(struct run *r);

/* Exchanges: exchange.c. Each function ends the program on failure. */

/**
 * exchange() - exchange gradients or parameters, and do the step of the optimiser
 * @r: the rank, with its gradient
 * @round: the round, with its budget and phase; a lossless round overwrites both
 * @mine: filled with the results of the exchange
 * @lossless: lose nothing, and add all residuals
 */
void exchange(struct run *r, struct log_round *round, struct record *mine,
	      bool lossless);

/** exchange_averages() - average parameters and optimiser over all ranks */
void exchange_averages(struct run *r);
/** exchange_begin() - with owners: all ranks have the same parameters */
void exchange_begin(struct run *r);
/** exchange_end() - free what exchange_begin() has allocated */
void exchange_end(struct run *r);
/**
 * exchange_replicas() - copy parameters and optimiser of owners to all ranks, without losses
 *
 * Return: how far parameters of this rank were from those, as a share of their norm.
 */
double exchange_replicas(struct run *r);
/** exchange_state() - copy the replica of rank 0 to all ranks */
void exchange_state(struct run *r);
/** exchange_digests() - compare all replicas; ends the program if they differ */
uint64_t exchange_digests(struct run *r);
/** record_of() - record of @rank, valid after gather_end() */
const struct record *record_of(const struct run *r, uint32_t rank);
/** exchange_phase() - set phase and budget of a round, and the cap of this rank */
void exchange_phase(const struct run *r, struct log_round *round, struct record *mine);
/** exchange_norm() - tell the detector the norm of the average gradient of a round */
void exchange_norm(struct run *r, double norm, unsigned int round);
/** exchange_learn() - learn from the records of all ranks which budget is good */
void exchange_learn(struct run *r);

/* Failures: fail.c */

/** run_fail() - abort the run on all ranks, with a message on this one */
void run_fail(struct run *r, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** run_fail_all() - end the program; the other ranks detect the failure themselves */
void run_fail_all(struct run *r, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/** run_broken() - end the program after an exchange failed with @error */
void run_broken(struct run *r, int error) __attribute__((noreturn));

#endif /* TRAIN_RUN_H */
