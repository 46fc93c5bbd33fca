// SPDX-License-Identifier: GPL-2.0-only
/* Measures which loss budget does not harm a training. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "alloc.h"
#include "lossy.h"
#include "main.h"
#include "model.h"
#include "options.h"
#include "profile.h"
#include "trial.h"

#define PERCENT	(DBLP_PPM / 100.0)

static const char *const verdict_text[] = {
	[PROFILE_BASE] = "",
	[PROFILE_UNUSED] = "too small to lose anything",
	[PROFILE_WITHIN] = "within the noise of seeds",
	[PROFILE_BEYOND] = "beyond it",
};

static const char *const verdict_word[] = {
	[PROFILE_BASE] = "base",
	[PROFILE_UNUSED] = "unused",
	[PROFILE_WITHIN] = "within",
	[PROFILE_BEYOND] = "beyond",
};

/* Mean of @v[i] - @base[i], or of @v[i] if @base is NULL */
static double mean_of(const double *v, const double *base, uint32_t n)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += v[i] - (base ? base[i] : 0);
	return sum / n;
}

static double deviation_of(const double *v, const double *base, uint32_t n)
{
	const double mean = mean_of(v, base, n);
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const double d = v[i] - (base ? base[i] : 0) - mean;

		sum += d * d;
	}
	return sqrt(sum / (n - 1));
}

void profile_judge(struct profile_point *p, uint32_t n, uint32_t seeds)
{
	const double *base = p[0].loss;
	uint32_t i;

	for (i = 0; i < n; i++) {
		p[i].mean = mean_of(p[i].loss, NULL, seeds);
		p[i].spread = deviation_of(p[i].loss, NULL, seeds);
		p[i].worse = mean_of(p[i].loss, base, seeds);
		p[i].error = deviation_of(p[i].loss, base, seeds) / sqrt(seeds);
		/* NaN compares as false, so a training that diverges is beyond */
		if (!i)
			p[i].verdict = PROFILE_BASE;
		else if (!p[i].missing)
			p[i].verdict = PROFILE_UNUSED;
		else if (p[i].worse <= p[0].spread)
			p[i].verdict = PROFILE_WITHIN;
		else
			p[i].verdict = PROFILE_BEYOND;
	}
}

uint32_t profile_best(const struct profile_point *p, uint32_t n)
{
	uint32_t best = 0, i;

	for (i = 0; i < n && p[i].verdict != PROFILE_BEYOND; i++)
		if (p[i].verdict == PROFILE_WITHIN)
			best = i;
	return best;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Room for budget_text() */
#define BUDGET_TEXT	40

static const char *budget_text(const struct profile_point *p, char *text)
{
	const char *tune = p->tune ? "auto, " : "";

	if (p->high)
		snprintf(text, BUDGET_TEXT, "%s%g to %g %%", tune, p->budget / PERCENT,
			 p->high / PERCENT);
	else
		snprintf(text, BUDGET_TEXT, "%s%g %%", p->tune ? "auto to " : "",
			 p->budget / PERCENT);
	return text;
}

static void show_trial(const struct profile_point *p, const struct trial *t, double loss, uint32_t done,
		       uint32_t all, double seconds)
{
	char text[BUDGET_TEXT];

	fprintf(stderr, "%u/%u: budget %s, seed %u: loss %.4f, %.0f s left\n",
		done, all, budget_text(p, text), t->config.seed, loss,
		seconds * (all - done) / done);
}

static double try_one(const struct options *o, const struct text *text,
		      struct profile_point *p, uint32_t seed, struct trial *t)
{
	double loss;

	*t = (struct trial){
		.config = o->config,
		.text = text,
		.segment = o->segment,
		.sparse = o->sparse || o->large,
		.large = o->large,
	};
	t->config.budget = p->budget;
	if (!p->budget && !p->high)
		t->config.owners = false;
	t->config.phases = !!p->high;
	t->config.tune = p->tune;
	t->config.seed += seed;
	loss = trial_run(t);
	/* Negated, so that NaN is an error, too */
	if (!p->budget && !p->high && !(loss < log(text->vocab)))
		errx(1, "seed %u learns nothing, even without losses (loss %.2f, guessing has %.2f): try a lower --rate or more --rounds",
		     t->config.seed, loss, log(text->vocab));
	p->asked += t->asked;
	p->missing += t->missing;
	return loss;
}

static void try_all(const struct options *o, const struct text *text,
		    struct profile_point *p, uint32_t n)
{
	const double start = now_s();
	uint32_t i, k, done = 0;
	struct trial t;

	for (i = 0; i < n; i++) {
		for (k = 0; k < o->seeds; k++) {
			p[i].loss[k] = try_one(o, text, &p[i], k, &t);
			show_trial(&p[i], &t, p[i].loss[k], ++done, n * o->seeds,
				   now_s() - start);
		}
	}
}

/* Bytes of the shortest message that a budget covers; the engine splits long steps */
static uint64_t shortest(const struct config *c, size_t size)
{
	struct dblp_plan plan = trial_plan(c, size);
	struct dblp_step *step;
	uint64_t least = DBLP_COMM_BYTES / sizeof(float);
	ssize_t n, i;

	plan.rank = c->nranks - 1;
	n = dblp_plan_steps(&plan, NULL, 0);
	if (n < 0)
		errx(2, "this --plan does not exist for %u ranks", c->nranks);
	step = zeroed(n, sizeof(*step));
	dblp_plan_steps(&plan, step, n);
	for (i = 0; i < n; i++)
		if (step[i].op == DBLP_STEP_SEND && !step[i].reliable &&
		    step[i].count < least)
			least = step[i].count;
	free(step);
	return least * sizeof(float);
}

static void show_messages(const struct options *o, uint64_t bytes)
{
	printf("messages of %" PRIu64 " bytes in segments of %u: budgets below %.2g %% are too small for one\n\n",
	       bytes, o->segment, 100.0 * o->segment / bytes);
}

static void show_table(const struct options *o, const struct profile_point *p,
		       uint32_t n, size_t size)
{
	const struct config *c = &o->config;
	char text[BUDGET_TEXT];
	uint32_t i;

	printf("%u ranks, plan %s, rule %s, %zu parameters, %u rounds, %u seeds\n",
	       c->nranks, dblp_algo_names[c->plan], dblp_rule_names[c->rule], size, c->rounds,
	       o->seeds);
	if (c->owners)
		printf("parameters return with a budget of %g %%\n", c->param_budget / PERCENT);
	show_messages(o, shortest(c, size));
	printf("%14s  %8s  %8s  %7s  %16s\n", "budget", "missing", "loss",
	       "spread", "worse by");
	for (i = 0; i < n; i++) {
		printf("%14s  %6.2f %%  %8.4f  %7.4f", budget_text(&p[i], text),
		       100.0 * p[i].missing / p[i].asked, p[i].mean, p[i].spread);
		if (i)
			printf("  %7.4f +- %.4f  %s", p[i].worse, p[i].error,
			       verdict_text[p[i].verdict]);
		printf("\n");
	}
	printf("\n");
}

static void show_best(const struct profile_point *p, uint32_t n)
{
	const uint32_t best = profile_best(p, n);
	const double percent = p[best].budget / PERCENT;
	char low[DBLP_VALUE_TEXT], high[DBLP_VALUE_TEXT];

	dblp_share_format(p[best].budget, low);
	dblp_share_format(p[best].high, high);
	if (p[n - 1].tune)
		printf("Found budgets: %s\n", best ? "dblp-train run --budget auto" : "not for this training");
	else if (p[n - 1].high && best)
		printf("Phases: dblp-train run --phases %s,%s\n", low, high);
	else if (p[n - 1].high && p[n - 1].verdict == PROFILE_BEYOND)
		printf("Phases: not these. A smaller HIGH, or a smaller --eta, may do.\n");
	else if (p[n - 1].verdict == PROFILE_UNUSED)
		printf("P_low: unknown, as nothing was lost. Larger budgets or longer messages may lose something.\n");
	else if (!best)
		printf("P_low: none of these. Smaller budgets, another --rule or more --rounds may do.\n");
	else if (best == n - 1)
		printf("P_low: %g %%, the largest that was tried; larger ones may do, too.\n",
		       percent);
	else
		printf("P_low: %g %%: dblp-train run --budget %s\n", percent, low);
}

/* JSON has neither NaN nor infinity */
static void json_number(const char *name, double value)
{
	if (isfinite(value))
		printf("%s%.6f", name, value);
	else
		printf("%snull", name);
}

static void json_point(const struct profile_point *p, uint32_t seeds)
{
	uint32_t k;

	printf("{\"budget_ppm\":%u,\"high_ppm\":%u,\"asked_bytes\":%" PRIu64 ",\"missing_bytes\":%" PRIu64,
	       p->budget, p->high, p->asked, p->missing);
	for (k = 0; k < seeds; k++)
		json_number(k ? "," : ",\"losses\":[", p->loss[k]);
	json_number("],\"loss\":", p->mean);
	json_number(",\"spread\":", p->spread);
	json_number(",\"worse\":", p->worse);
	json_number(",\"error\":", p->error);
	printf(",\"verdict\":\"%s\"}", verdict_word[p->verdict]);
}

static void show_json(const struct options *o, const struct profile_point *p,
		      uint32_t n, size_t size)
{
	const struct config *c = &o->config;
	const uint32_t best = profile_best(p, n);
	uint32_t i;

	printf("{\"ranks\":%u,\"plan\":\"%s\",\"rule\":\"%s\",\"params\":%zu,\"rounds\":%u",
	       c->nranks, dblp_algo_names[c->plan], dblp_rule_names[c->rule], size, c->rounds);
	printf(",\"message_bytes\":%" PRIu64 ",\"segment_bytes\":%u,\"seeds\":%u",
	       shortest(c, size), o->segment, o->seeds);
	printf(",\"param_budget_ppm\":%u", c->param_budget);
	for (i = 0; i < n; i++) {
		printf("%s", i ? "," : ",\"budgets\":[");
		json_point(&p[i], o->seeds);
	}
	if (best)
		printf("],\"p_low_ppm\":%u}\n", p[best].budget);
	else
		printf("],\"p_low_ppm\":null}\n");
}

static struct profile_point *make_points(const struct options *o)
{
	struct profile_point *p = zeroed(o->n_budgets + 1, sizeof(*p));
	uint32_t i;

	for (i = 0; i <= o->n_budgets; i++) {
		p[i].budget = i ? o->budget[i - 1] : 0;
		if (i && o->config.tune)
			p[i].budget = o->config.budget;
		if (i && o->config.phases) {
			p[i].budget = o->config.low;
			p[i].high = o->config.high;
		}
		p[i].tune = i && o->config.tune;
		p[i].loss = zeroed(o->seeds, sizeof(*p[i].loss));
	}
	return p;
}

int profile_main(int argc, char **argv)
{
	struct profile_point *p;
	struct options o;
	struct text text;
	uint32_t n, i;
	size_t size;

	options_parse(&o, OPTIONS_PROFILE, argc, argv);
	if (o.config.phases || o.config.tune)
		o.n_budgets = 1;
	o.config.nranks = o.attr.nranks;
	text_load(&text, o.files, o.n_files);
	size = model_size(&(struct model){ text.vocab, o.config.context, o.config.hidden });
	shortest(&o.config, size);
	n = o.n_budgets + 1;
	p = make_points(&o);
	try_all(&o, &text, p, n);
	profile_judge(p, n, o.seeds);
	if (o.json) {
		show_json(&o, p, n, size);
	} else {
		show_table(&o, p, n, size);
		show_best(p, n);
	}
	for (i = 0; i < n; i++)
		free(p[i].loss);
	free(p);
	text_free(&text);
	return 0;
}
