// SPDX-License-Identifier: GPL-2.0-only
#include "adam.h"
#include "alloc.h"
#include "detector.h"
#include "lossy.h"
#include "model.h"
#include "trial.h"

/* Held-out samples for evaluating the model */
#define HELD		2048

/* Separates the seed of losses from those of batches, which mix in rank and round */
#define LOSSES		UINT64_C(0x6c6f73736573)

struct dblp_plan trial_plan(const struct config *c, uint64_t count)
{
	struct dblp_plan plan = {
		.algo = c->plan,
		.nranks = c->nranks,
		.flags = config_server(c) ? DBLP_PLAN_SERVER : 0,
		.fanin = c->fanin,
		.levels = c->levels,
		.count = count,
	};

	if (c->levels)
		dblp_plan_radix(c->nranks, c->levels, plan.radix);
	return plan;
}

/* Compute the gradients of all ranks that contribute */
static void compute(const struct trial *t, const struct model *m,
		    const float *param, struct lossy *l, size_t *pos,
		    uint32_t round)
{
	const struct config *c = &t->config;
	const uint32_t server = config_server(c);
	uint32_t i;

	for (i = server; i < c->nranks; i++) {
		text_draw(t->text, pos, c->batch, c->context,
			  rng_mix(c->seed, i + !server, round));
		model_loss(m, c->owners ? l->rank[i].copy.param : param, t->text, pos, c->batch,
			   l->rank[i].vector);
	}
}

static uint32_t budget_of(const struct config *c, const struct detector *d,
			  const struct dblp_tune *tune)
{
	uint32_t budget = c->budget;

	if (c->phases)
		budget = d->clr.tolerant ? c->high : c->low;
	return c->tune ? dblp_tune_budget(tune, budget) : budget;
}

static void train(struct trial *t, const struct model *m, struct adam *adam)
{
	const struct config *c = &t->config;
	const struct lossy_attr attr = {
		.plan = trial_plan(c, adam->size),
		.rule = c->rule,
		.budget = c->budget,
		.sparse = t->sparse,
		.large = t->large,
		.segment = t->segment,
		.seed = rng_mix(c->seed, LOSSES, 0),
	};
	float *average = zeroed(adam->size, sizeof(float));
	size_t *pos = zeroed(c->batch, sizeof(*pos));
	struct dblp_tune tune = { 0 };
	struct detector d = { 0 };
	struct lossy l;
	uint32_t round;

	detector_init(&d, c->eta, c->epoch);
	if (lossy_open(&l, &attr))
		errx(1, "this --plan does not exist for %u ranks", c->nranks);
	lossy_start(&l, adam->param);
	for (round = 1; round <= c->rounds; round++) {
		compute(t, m, adam->param, &l, pos, round);
		l.attr.budget = budget_of(c, &d, &tune);
		lossy_average(&l, average);
		dblp_tune_round(&tune, &l.energy);
		detector_round(&d, gradient_norm(average, adam->size), 0);
		adam_step(adam, average);
		if (c->owners)
			lossy_spread(&l, adam->param, c->param_budget);
	}
	t->asked = l.asked;
	t->missing = l.missing;
	lossy_close(&l);
	free(pos);
	free(average);
}

double trial_run(struct trial *t)
{
	const struct config *c = &t->config;
	const struct model m = { t->text->vocab, c->context, c->hidden };
	const size_t size = model_size(&m);
	struct adam adam = { .size = size, .rate = c->rate };
	size_t pos[HELD];
	double loss;

	adam.param = zeroed(3 * size, sizeof(float));
	adam.mean = adam.param + size;
	adam.square = adam.mean + size;
	model_init(&m, adam.param, c->seed);
	train(t, &m, &adam);
	text_draw_held(t->text, pos, HELD, m.context, 0);
	loss = model_loss(&m, adam.param, t->text, pos, HELD, NULL);
	free(adam.param);
	return loss;
}
