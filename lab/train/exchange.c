// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "alloc.h"
#include "run.h"

/* One key is enough: each round reduces the same vector */
#define KEY	1

/* Parameters of owners. The next keys are those of the means of the optimiser */
#define PARAM	2

/* Default phases of a network namespace, by number */
static const char *const phase_names[] = { "reliable", "critical", "tolerant" };
#define CRITICAL	1
#define TOLERANT	2

typedef int operation(struct dblp_comm *comm, void *v, uint64_t count,
		      const struct dblp_op *op, struct dblp_req **req);

static void carry_out(struct run *r, operation *begin, void *v, uint64_t count,
		      const struct dblp_op *op, struct dblp_result *result)
{
	struct dblp_req *req;
	int error = begin(r->comm, v, count, op, &req);

	if (!error)
		error = dblp_wait(req, -1, result, sizeof(*result));
	if (error)
		run_broken(r, error);
}

/* Operation that reduces the vector of a round */
static struct dblp_op op_of(const struct run *r, const struct log_round *round,
			    bool lossless)
{
	const struct config *c = &r->opt.config;
	struct dblp_op op = {
		.size = sizeof(op),
		.flags = c->flags | DBLP_OP_AVERAGE,
		.algo = c->plan,
		.rule = c->rule,
		.dtype = DBLP_FLOAT32,
		.budget = c->budget,
		.policy = c->policy,
		.wait_ms = c->wait_ms,
		.plan_flags = config_server(c) ? DBLP_PLAN_SERVER : 0,
		.fanin = c->fanin,
		.turn = round->round - 1,
		.levels = c->levels,
		.key = KEY,
	};

	if (c->levels)
		dblp_plan_radix(r->nranks, c->levels, op.radix);
	if (c->tune) {
		op.flags |= DBLP_OP_ENERGY;
		op.budget = round->budget_set;
	}
	if (c->phases) {
		op.budget = round->budget_set;
		op.phase = r->state->detector.clr.tolerant ? TOLERANT : CRITICAL;
	}
	if (lossless) {
		op.flags &= DBLP_OP_ENERGY;
		op.flags |= DBLP_OP_AVERAGE | DBLP_OP_BUDGET;
		op.budget = 0;
		op.wait_ms = 0;
	}
	return op;
}

static uint32_t of_job(const struct run *r, int option)
{
	uint32_t value = 0;
	socklen_t len = sizeof(value);

	getsockopt(r->job_fd, SOL_DBLP, option, &value, &len);
	return value;
}

/*
 * The budget that is found for a round, by the records of all rounds but the last one,
 * which may be under way. Jobs of several hosts may differ, so the cap is the smallest
 * one of all ranks in the last of these rounds.
 */
static uint32_t found(const struct run *r, uint32_t budget)
{
	const uint32_t most = r->opt.config.budget;

	if (r->job_fd >= 0)
		budget = r->cap;
	return dblp_tune_budget(&r->state->tune, budget < most ? budget : most);
}

void exchange_phase(const struct run *r, struct log_round *round, struct record *mine)
{
	const struct config *c = &r->opt.config;
	uint32_t phase;

	round->budget_set = c->budget;
	phase = c->budget ? UINT32_MAX : 0;
	if (r->job_fd >= 0) {
		phase = of_job(r, DBLP_PHASE);
		round->budget_set = of_job(r, DBLP_BUDGET);
	} else if (c->phases) {
		phase = r->state->detector.clr.tolerant ? TOLERANT : CRITICAL;
		round->budget_set = phase == TOLERANT ? c->high : c->low;
	}
	mine->cap = round->budget_set;
	if (c->tune)
		round->budget_set = found(r, mine->cap);
	if (phase == UINT32_MAX)
		strcpy(round->phase, c->tune ? "auto" : "fixed");
	else if (phase < sizeof(phase_names) / sizeof(*phase_names))
		strcpy(round->phase, phase_names[phase]);
	else
		snprintf(round->phase, sizeof(round->phase), "phase-%u", phase);
}

static void note(const struct dblp_result *result, struct record *mine)
{
	mine->asked = result->asked;
	mine->missing = result->missing;
	mine->budget_least = result->budget_least;
	mine->budget_most = result->budget_most;
	mine->energy_sent = result->energy_sent;
	mine->energy_lost = result->energy_lost;
	mine->energy_mean = result->energy_mean;
}

static void check_norm(struct run *r, double norm, unsigned int round)
{
	if (!isfinite(norm))
		run_fail(r, "the gradient of round %u has no finite norm: the training diverges, try a lower --rate",
			 round);
}

/* Distance of parameters @v, which are overwritten, from @param, as a share of its norm */
static double distance(float *v, const float *param, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		v[i] -= param[i];
	return gradient_norm(v, size) / gradient_norm(param, size);
}

void exchange_norm(struct run *r, double norm, unsigned int round)
{
	int error = detector_round(&r->state->detector, norm, r->job);

	if (error)
		run_fail(r, "cannot report the norm of round %u to job %u: %s",
			 round, r->job, strerror(-error));
}

/* All ranks get the same average and do the same step, so their replicas stay equal */
static void exchange_gradients(struct run *r, const struct dblp_op *op,
			       struct log_round *round, struct record *mine)
{
	struct dblp_result result;

	carry_out(r, dblp_allreduce, r->grad, r->size, op, &result);
	note(&result, mine);
	mine->norm = gradient_norm(r->grad, r->size);
	check_norm(r, mine->norm, round->round);
	adam_step(&r->adam, r->grad);
	exchange_norm(r, mine->norm, round->round);
}

/* The part of the vector that this rank owns, which may be empty */
static struct dblp_span owned(struct run *r, const struct dblp_op *op)
{
	struct dblp_span part = { 0 };
	int n = dblp_comm_owned(r->comm, r->size, op, &part, 1);

	if (n < 0)
		run_broken(r, n);
	return part;
}

static void step_of_part(struct run *r, struct dblp_span part)
{
	struct adam adam = r->adam;

	adam.size = part.end - part.first;
	adam.param += part.first;
	adam.mean += part.first;
	adam.square += part.first;
	adam_step(&adam, r->grad + part.first);
	r->adam.step = adam.step;
}

/* Parameters on their way back from owners, after the operation @op */
static struct dblp_op way_back(const struct dblp_op *op, uint32_t budget)
{
	struct dblp_op back = *op;

	back.flags &= DBLP_OP_POLICY | DBLP_OP_PHASE;
	back.flags |= DBLP_OP_BUDGET | DBLP_OP_KEEP | DBLP_OP_REPAIR;
	back.budget = budget;
	back.wait_ms = 0;
	back.key = PARAM;
	return back;
}

void exchange_begin(struct run *r)
{
	uint32_t i;

	if (!r->opt.config.owners)
		return;
	copy_init(&r->own, r->adam.param, r->size);
	r->copy = zeroed(r->nranks, sizeof(*r->copy));
	for (i = 0; i < r->nranks; i++) {
		float *param = zeroed(r->size, sizeof(float));

		memcpy(param, r->adam.param, r->size * sizeof(float));
		copy_init(&r->copy[i], param, r->size);
	}
}

void exchange_end(struct run *r)
{
	uint32_t i;

	if (!r->opt.config.owners)
		return;
	copy_free(&r->own);
	for (i = 0; i < r->nranks; i++) {
		free(r->copy[i].param);
		copy_free(&r->copy[i]);
	}
	free(r->copy);
}

/* Elements that @rank lacks, as far as this rank knows; to be freed */
static struct dblp_span *lost_by(struct run *r, uint32_t rank, int *n)
{
	struct dblp_span *span;

	*n = dblp_comm_stale(r->comm, PARAM, rank, NULL, 0);
	if (*n < 0)
		run_broken(r, *n);
	span = zeroed(*n, sizeof(*span));
	dblp_comm_stale(r->comm, PARAM, rank, span, *n);
	return span;
}

/* Follow the parameters of this part that @rank has; returns their squared distance */
static double follow(struct run *r, uint32_t rank, struct dblp_span part)
{
	struct copy *c = &r->copy[rank];
	struct dblp_span *span;
	double apart;
	int n;

	span = lost_by(r, rank, &n);
	copy_begin(c);
	memcpy(c->param + part.first, r->adam.param + part.first,
	       (part.end - part.first) * sizeof(float));
	copy_end(c, span, n);
	apart = copy_apart(c, r->adam.param, span, n);
	free(span);
	return apart;
}

static void receive_parameters(struct run *r, const struct dblp_op *back, struct record *mine)
{
	struct dblp_result result;
	struct dblp_span *span;
	int n;

	copy_begin(&r->own);
	carry_out(r, dblp_allgather, r->adam.param, r->size, back, &result);
	span = lost_by(r, r->rank, &n);
	copy_end(&r->own, span, n);
	free(span);
	mine->param_asked = result.asked;
	mine->param_missing = result.missing;
}

/*
 * Owners do the step and send parameters. A rank may lack the last step of some, until the
 * next round at the latest
 */
static void exchange_owned(struct run *r, const struct dblp_op *op,
			   struct log_round *round, struct record *mine)
{
	const struct dblp_op back = way_back(op, r->opt.config.param_budget);
	const struct dblp_span part = owned(r, op);
	const size_t n = part.end - part.first;
	struct dblp_result result;
	uint32_t i;

	carry_out(r, dblp_reduce_scatter, r->grad, r->size, op, &result);
	note(&result, mine);
	mine->norm = gradient_norm(r->grad + part.first, n);
	check_norm(r, mine->norm, round->round);
	step_of_part(r, part);
	receive_parameters(r, &back, mine);
	mine->square = pow(gradient_norm(r->adam.param + part.first, n), 2);
	for (i = 0; n && i < r->nranks; i++)
		if (i != r->rank)
			mine->apart += follow(r, i, part);
}

double exchange_replicas(struct run *r)
{
	const struct log_round none = { 0 };
	const struct dblp_op op = op_of(r, &none, true);
	struct dblp_op back = way_back(&op, 0);
	struct dblp_result result;
	size_t i;

	memcpy(r->grad, r->adam.param, r->size * sizeof(float));
	for (i = 0; i < 3; i++, back.key++)
		carry_out(r, dblp_allgather, r->state->state + i * r->size, r->size,
			  &back, &result);
	for (i = 0; i < r->nranks; i++)
		memcpy(r->copy[i].param, r->adam.param, r->size * sizeof(float));
	return distance(r->grad, r->adam.param, r->size);
}

/* Each rank does a step along its own gradient, then averages parameters in its group */
static void exchange_parameters(struct run *r, const struct dblp_op *op,
				struct log_round *round, struct record *mine)
{
	struct dblp_result result;

	mine->norm = gradient_norm(r->grad, r->size);
	check_norm(r, mine->norm, round->round);
	adam_step(&r->adam, r->grad);
	memcpy(r->grad, r->adam.param, r->size * sizeof(float));
	carry_out(r, dblp_allreduce, r->adam.param, r->size, op, &result);
	note(&result, mine);
	mine->drift = distance(r->grad, r->adam.param, r->size);
}

void exchange(struct run *r, struct log_round *round, struct record *mine,
	      bool lossless)
{
	const struct config *c = &r->opt.config;
	struct dblp_op op;

	/* save() averages the parameters of all ranks without losses */
	lossless = lossless && c->plan != DBLP_AVERAGE;
	op = op_of(r, round, lossless);
	if (lossless && (c->flags || c->job || c->wait_ms)) {
		strcpy(round->phase, "checkpoint");
		round->budget_set = 0;
	}
	if (c->plan == DBLP_AVERAGE)
		exchange_parameters(r, &op, round, mine);
	else if (c->owners)
		exchange_owned(r, &op, round, mine);
	else
		exchange_gradients(r, &op, round, mine);
}

void exchange_averages(struct run *r)
{
	const struct dblp_op op = {
		.size = sizeof(op),
		.flags = DBLP_OP_AVERAGE | DBLP_OP_BUDGET,
		.algo = DBLP_TRANSPOSE,
		.dtype = DBLP_FLOAT32,
	};
	struct dblp_result result;

	carry_out(r, dblp_allreduce, r->state->state, 3 * r->size, &op, &result);
}

/* Integer sums are exact. All other ranks contribute 0, so the sum is that of rank 0 */
void exchange_state(struct run *r)
{
	const struct dblp_op op = {
		.size = sizeof(op),
		.flags = DBLP_OP_BUDGET,
		.algo = DBLP_TRANSPOSE,
		.dtype = DBLP_INT32,
	};
	const size_t bytes = r->state->bytes;
	struct dblp_result result;

	if (r->rank)
		memset(r->state, 0, bytes);
	carry_out(r, dblp_allreduce, r->state, bytes / 4, &op, &result);
}

const struct record *record_of(const struct run *r, uint32_t rank)
{
	return (const void *)(r->records.all + rank * r->records.each);
}

void exchange_learn(struct run *r)
{
	const struct config *c = &r->opt.config;
	struct dblp_energy e = {
		.contributions = r->nranks - config_server(c),
		.rule = c->rule,
		.mean = record_of(r, 0)->energy_mean,
	};
	uint32_t i;

	r->cap = UINT32_MAX;
	for (i = 0; i < r->nranks; i++) {
		const struct record *p = record_of(r, i);

		e.sent += p->energy_sent;
		e.lost += p->energy_lost;
		e.missing += p->missing;
		if (p->cap < r->cap)
			r->cap = p->cap;
	}
	e.bytes = (uint64_t)e.contributions * r->size * sizeof(float);
	dblp_tune_round(&r->state->tune, &e);
}

uint64_t exchange_digests(struct run *r)
{
	const struct record mine = { .digest = checkpoint_digest(r->state) };
	uint32_t i;
	int error;

	error = gather_begin(&r->records, &mine);
	if (!error)
		error = gather_end(&r->records);
	if (error)
		run_broken(r, error);
	for (i = 1; i < r->nranks; i++)
		if (record_of(r, i)->digest != record_of(r, 0)->digest)
			run_fail_all(r, "after round %u rank %u has other parameters than rank 0",
				     r->state->round, i);
	return mine.digest;
}
