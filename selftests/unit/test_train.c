// SPDX-License-Identifier: GPL-2.0-only
/* Tests of the trainer's parts. Prints TAP. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adam.h"
#include "checkpoint.h"
#include "detector.h"
#include "hook.h"
#include "log.h"
#include "lossy.h"
#include "model.h"
#include "options.h"
#include "profile.h"
#include "text.h"
#include "trial.h"

/* model.c compiled for double precision: see the Makefile */
double model_loss_double(const struct model *m, const double *param,
			 const struct text *t, const size_t *pos,
			 unsigned int n, double *grad);
void model_init_double(const struct model *m, double *param, uint64_t seed);

static unsigned int test_number, test_failures;

static void ok(bool good, const char *what)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++test_number, what);
	test_failures += !good;
}

static void *zeroed(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* Text with a learnable order: each letter often has the same successor */
static struct text make_text(size_t len)
{
	uint8_t *byte = zeroed(len);
	uint64_t rng = 5;
	struct text t;
	size_t i;

	for (i = 0; i < len; i++) {
		const unsigned int last = i ? byte[i - 1] - 'a' : 0;

		byte[i] = 'a' + (rng_next(&rng) % 8 ? last + 7 :
						      rng_next(&rng)) % 20;
	}
	text_from(&t, byte, len);
	free(byte);
	return t;
}

static void test_units(void)
{
	const unsigned int n = 4096;
	size_t *a = zeroed(n * sizeof(*a)), *b = zeroed(n * sizeof(*b));
	struct text t = make_text(20000);
	bool *held = zeroed(t.len);
	bool apart = true, context = true;
	unsigned int i;

	text_draw_held(&t, a, n, 12, 1);
	for (i = 0; i < n; i++) {
		held[a[i]] = true;
		context = context && a[i] >= 12 && a[i] < t.len;
	}
	text_draw(&t, a, n, 12, rng_mix(1, 1, 1));
	for (i = 0; i < n; i++) {
		apart = apart && !held[a[i]];
		context = context && a[i] >= 12 && a[i] < t.len;
	}
	ok(apart, "no training on held-out text");
	ok(context, "drawn positions have a context");
	text_draw(&t, b, n, 12, rng_mix(1, 1, 1));
	ok(!memcmp(a, b, n * sizeof(*a)), "the same seed draws the same batch");
	text_draw(&t, b, n, 12, rng_mix(1, 2, 1));
	ok(memcmp(a, b, n * sizeof(*a)), "another worker draws another batch");
	ok(t.vocab == 20 && t.byte[t.symbol[0]] >= 'a', "symbols are numbered");
	free(a);
	free(b);
	free(held);
	text_free(&t);
}

static void test_gradient(void)
{
	const struct model m = { 20, 4, 6 };
	const size_t size = model_size(&m);
	double *param = zeroed(size * sizeof(*param));
	double *grad = zeroed(size * sizeof(*grad));
	struct text t = make_text(4000);
	const double step = 1e-5;
	double worst = 0;
	size_t pos[16], i;

	model_init_double(&m, param, 3);
	text_draw(&t, pos, 16, m.context, 9);
	model_loss_double(&m, param, &t, pos, 16, grad);
	for (i = 0; i < size; i++) {
		const double was = param[i];
		double up, down, error;

		param[i] = was + step;
		up = model_loss_double(&m, param, &t, pos, 16, NULL);
		param[i] = was - step;
		down = model_loss_double(&m, param, &t, pos, 16, NULL);
		param[i] = was;
		error = fabs((up - down) / (2 * step) - grad[i]);
		worst = error > worst ? error : worst;
	}
	ok(worst < 1e-8, "the gradient agrees with finite differences");
	ok(size % 2 == 0, "parameters are pairs");
	free(param);
	free(grad);
	text_free(&t);
}

static void test_detector(void)
{
	/* A fast fall, a plateau, a jump by a new learning rate, a plateau */
	static const double norm[] = { 10, 4, 3.5, 3.4, 1.7, 1.6, 2.5, 1.25 };
	static const bool critical[] = { 1, 1, 0, 0, 1, 0, 1, 1 };
	const unsigned int n = sizeof(norm) / sizeof(*norm);
	bool good = true, inside = true;
	struct detector d = { 0 };
	unsigned int i, j;

	detector_init(&d, 0.5, 3);
	ok(!d.clr.tolerant, "training starts critically");
	for (i = 0; i < n; i++) {
		for (j = 0; j < 3; j++) {
			const bool was = d.clr.tolerant;

			good = good && !detector_round(&d, norm[i] + j - 1, 0);
			if (j < 2)
				inside = inside && d.clr.tolerant == was;
		}
		good = good && d.clr.tolerant != critical[i];
	}
	ok(good, "critical when the norm changes by eta or more, else tolerant");
	ok(inside, "the phase changes between epochs only");
}

static void test_config(void)
{
	struct config a = { .nranks = 3, .batch = 64, .rate = 0.5, .rounds = 9 };
	struct config b = a;
	char what[CONFIG_DIFFERENCE] = "";

	ok(!config_differ(&a, &b, false, what), "equal configurations do not differ");
	b.rounds = 10;
	ok(config_differ(&a, &b, false, what) && !config_differ(&a, &b, true, what) &&
	   !strcmp(what, "has --rounds 9, not 10"),
	   "a run may go on for more rounds than its checkpoint knew of");
	b.rate = 0.25;
	ok(config_differ(&a, &b, true, what) &&
	   !strcmp(what, "has --rate 0.5, not 0.25"), "a difference is named");
	a = config_saved(&a);
	ok(!a.rounds && a.batch == 64, "what may differ is not saved");
}

#define PARAMS	1000

/* Changes one byte of a file, and puts it back when called again */
static void flip(const char *file, long at)
{
	FILE *f = fopen(file, "r+");
	int c;

	fseek(f, at, SEEK_SET);
	c = fgetc(f);
	fseek(f, at, SEEK_SET);
	fputc(c ^ 64, f);
	fclose(f);
}

static bool refused(struct checkpoint *c, const char *file, const char *reason)
{
	char why[CHECKPOINT_REASON] = "";
	const uint64_t before = checkpoint_digest(c);
	const int error = checkpoint_read(c, file, why);

	if (error != -EINVAL || !strstr(why, reason) || strncmp(why, file, strlen(file)))
		printf("# %d: %s\n", error, why);
	return error == -EINVAL && strstr(why, reason) &&
	       checkpoint_digest(c) == before;
}

static void test_damage(struct checkpoint *c, const char *file)
{
	const long at[] = { c->bytes - 1, sizeof(*c), offsetof(struct checkpoint, round),
			    offsetof(struct checkpoint, digest) };
	bool good = true;
	unsigned int i;

	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		flip(file, at[i]);
		good = good && refused(c, file, "digest is wrong");
		flip(file, at[i]);
	}
	ok(good, "a checkpoint with a wrong bit is refused");
	flip(file, 3);
	ok(refused(c, file, "is not a checkpoint of this version"),
	   "a file of another kind is refused");
	flip(file, 3);
	truncate(file, c->bytes - 4);
	ok(refused(c, file, "is damaged: it has"), "one that was cut off is refused");
	truncate(file, c->bytes + 4);
	ok(refused(c, file, "is damaged: it has"), "one that is too long is refused");
	truncate(file, 5);
	ok(refused(c, file, "is not a checkpoint"), "a file of a few bytes is refused");
}

static void test_checkpoint(void)
{
	const struct config config = { .text = 5, .nranks = 2, .batch = 7, .rounds = 3 };
	struct config more = config, other = config;
	struct checkpoint *c = checkpoint_new(&config, PARAMS), *back;
	char folder[] = "/tmp/dblp-train-unit.XXXXXX", file[64], why[CHECKPOINT_REASON];
	unsigned int i;

	snprintf(file, sizeof(file), "%s/checkpoint", mkdtemp(folder));
	for (i = 0; i < 3 * PARAMS; i++)
		c->state[i] = i * 0.37f;
	c->round = 3;
	c->detector.sum = 1.5;
	ok(!checkpoint_write(c, file), "a checkpoint is written");
	c->round = 4;
	ok(!checkpoint_write(c, file), "and replaced");
	more.rounds = 30;
	back = checkpoint_new(&more, PARAMS);
	ok(!checkpoint_read(back, file, why) && !memcmp(back, c, c->bytes),
	   "and read as it was written, also for more rounds");
	test_damage(c, file);
	ok(!checkpoint_write(c, file) && !checkpoint_read(back, file, why),
	   "a damaged one is replaced");
	free(back);
	other.batch = 8;
	back = checkpoint_new(&other, PARAMS);
	ok(refused(back, file, "is of another run: it has --batch 7, not 8"),
	   "one of another configuration is refused");
	free(back);
	back = checkpoint_new(&config, PARAMS + 1);
	ok(refused(back, file, "is of another model"), "one of another model is refused");
	free(back);
	unlink(file);
	ok(checkpoint_read(c, file, why) == -ENOENT && strstr(why, "cannot be read"),
	   "there is not a checkpoint where there is none");
	/* Only rename() touches the file, so a folder with its name stays */
	mkdir(file, 0700);
	ok(checkpoint_write(c, file) < 0 && !rmdir(file) && !rmdir(folder),
	   "a failed write leaves nothing behind");
	free(c);
}

enum { RANKS = 4, COUNT = 1000, LOSSY_ROUNDS = 6 };

/* All plans of a profile, for four ranks */
static const struct config lossy_plans[] = {
	{ .nranks = RANKS, .plan = DBLP_PS },
	{ .nranks = RANKS, .plan = DBLP_TRANSPOSE },
	{ .nranks = RANKS, .plan = DBLP_RING },
	{ .nranks = RANKS, .plan = DBLP_TREE, .fanin = 1 },
	{ .nranks = RANKS, .plan = DBLP_BCUBE, .levels = 2 },
};

#define LOSSY_PLANS	(sizeof(lossy_plans) / sizeof(*lossy_plans))

static void lossy_of(struct lossy *l, const struct config *c, uint32_t rule,
		     uint32_t budget)
{
	const struct lossy_attr attr = {
		.plan = trial_plan(c, COUNT),
		.rule = rule,
		.budget = budget,
		.segment = 64,
		.seed = 3,
	};

	if (lossy_open(l, &attr))
		abort();
}

/* Set contributions and add them to @sum; multiples of 12 have integer averages */
static void contribute(struct lossy *l, uint64_t *rng, double *sum)
{
	const bool server = l->attr.plan.flags & DBLP_PLAN_SERVER;
	uint32_t i, k;

	for (i = server; i < RANKS; i++) {
		for (k = 0; k < COUNT; k++) {
			l->rank[i].vector[k] = 12 * (int)(rng_next(rng) % 100);
			sum[k] += l->rank[i].vector[k];
		}
	}
}

/* With feedback, averages and residuals add up to the contributions */
static bool conserves(const struct config *c, uint32_t budget, bool sparse, uint32_t large)
{
	const uint32_t n = RANKS - config_server(c);
	double given[COUNT] = { 0 };
	float average[COUNT];
	uint64_t rng = 9;
	bool good = true;
	struct lossy l;
	uint32_t i, k;

	lossy_of(&l, c, DBLP_FEEDBACK, budget);
	l.attr.sparse = sparse;
	l.attr.large = large;
	for (i = 0; i < LOSSY_ROUNDS; i++) {
		contribute(&l, &rng, given);
		lossy_average(&l, average);
		for (k = 0; k < COUNT; k++)
			given[k] -= (double)average[k] * n;
	}
	for (i = 0; i < RANKS; i++)
		for (k = 0; k < COUNT; k++)
			given[k] -= l.rank[i].residual[k];
	for (k = 0; k < COUNT; k++)
		good = good && fabs(given[k]) < 0.01;
	good = good && (budget ? l.missing > 0 : !l.missing);
	if (!good)
		printf("# plan %s, %u ppm\n", dblp_algo_names[c->plan], budget);
	lossy_close(&l);
	return good;
}

/* With equal contributions, the mean of those that arrived is independent of losses */
static bool rescales(const struct config *c, bool sparse)
{
	const bool server = config_server(c);
	float average[COUNT];
	uint32_t i, k, none = 0;
	bool good = true;
	struct lossy l;

	lossy_of(&l, c, DBLP_RESCALE, 300000);
	l.attr.sparse = sparse;
	for (i = server; i < RANKS; i++)
		for (k = 0; k < COUNT; k++)
			l.rank[i].vector[k] = 7;
	lossy_average(&l, average);
	for (k = 0; k < COUNT; k++) {
		none += !average[k];
		good = good && (!average[k] || fabsf(average[k] - 7) < 1e-5f);
	}
	good = good && l.missing && (server ? none < COUNT / 10 : !none);
	if (!good)
		printf("# plan %s\n", dblp_algo_names[c->plan]);
	lossy_close(&l);
	return good;
}

static void test_lossy_plans(void)
{
	bool exact = true, conserved = true, rescaled = true;
	unsigned int i;

	for (i = 0; i < LOSSY_PLANS; i++) {
		const struct config *c = &lossy_plans[i];

		exact = exact && conserves(c, 0, false, 0) && conserves(c, 0, true, 0) &&
			conserves(c, 0, true, 400000);
		conserved = conserved && conserves(c, 300000, false, 0) &&
			    conserves(c, 300000, true, 0) && conserves(c, 300000, true, 400000);
		rescaled = rescaled && rescales(c, false) && rescales(c, true);
	}
	ok(exact, "each plan averages over memory");
	ok(conserved, "with feedback nothing is lost for good");
	ok(rescaled, "rescale takes the mean of what has arrived");
}

/* The largest elements are never lost; the others lose as many bytes as without @large */
static void test_lossy_choice(void)
{
	const struct config c = { .nranks = 2, .plan = DBLP_PS };
	bool spared = true, others = false;
	float average[COUNT];
	uint32_t k, round;
	struct lossy l;

	lossy_of(&l, &c, DBLP_BUBBLE, 100000);
	l.attr.sparse = true;
	l.attr.large = 300000;
	for (round = 1; round <= 50; round++) {
		for (k = 0; k < COUNT; k++)
			l.rank[1].vector[k] = 1 + k;
		lossy_average(&l, average);
		for (k = 0; k < COUNT; k++) {
			spared = spared && (k < 700 || average[k] == 1 + k);
			others = others || (k < 700 && !average[k]);
		}
	}
	ok(spared && others, "none of the largest elements is lost");
	ok(l.missing > 50 * 320 && l.missing <= 50 * 400,
	   "as many bytes are lost of the others");
	lossy_close(&l);
}

/* Half of a vector is zero: the budget is a share of the other half, which loses it */
static void test_lossy_sparse(void)
{
	const struct config c = { .nranks = 2, .plan = DBLP_PS };
	uint32_t k, round, lost = 0;
	float average[COUNT];
	struct lossy l;

	lossy_of(&l, &c, DBLP_BUBBLE, 200000);
	l.attr.sparse = true;
	for (round = 1; round <= 50; round++) {
		for (k = 0; k < COUNT; k++)
			l.rank[1].vector[k] = k < COUNT / 2 ? 0 : 1;
		lossy_average(&l, average);
		for (k = COUNT / 2; k < COUNT; k++)
			lost += !average[k];
	}
	ok(l.asked >= 50 * 2000 && l.asked < 50 * 2100, "zeroes are not sent");
	ok(lost == l.missing / sizeof(float) && l.missing > l.asked / 6 &&
	   l.missing <= l.asked / 5, "no zeroes are lost");
	lossy_close(&l);
}

/* One message of 64 segments, the first of which has a head of 56 bytes */
static void test_lossy_message(void)
{
	const struct config c = { .nranks = 2, .plan = DBLP_PS };
	uint32_t k, times[COUNT] = { 0 }, round, lost;
	bool whole = true, exact = true, all = true;
	float average[COUNT];
	struct lossy l;

	lossy_of(&l, &c, DBLP_BUBBLE, 100000);
	for (round = 1; round <= 200; round++) {
		for (k = 0; k < COUNT; k++)
			l.rank[1].vector[k] = 1;
		lost = l.missing;
		lossy_average(&l, average);
		lost = l.missing - lost;
		for (k = 0; k < COUNT; k++) {
			/* The second segment begins with element 2 */
			if (k > 2 && (k - 2) % 16)
				whole = whole && average[k] == average[k - 1];
			times[k] += !average[k];
		}
		/* The budget is 400 bytes: 6 segments, or 5 and the last one of 24 */
		exact = exact && (lost == 6 * 64 || lost == 5 * 64 + 24);
	}
	for (k = 0; k < COUNT; k++)
		all = all && (k < 2 ? !times[k] : times[k] > 0);
	ok(whole, "whole segments are lost");
	ok(exact && l.asked == 200 * 4 * COUNT, "as many as fit the budget");
	ok(all, "any but the first, sooner or later");
	lossy_close(&l);
	lossy_of(&l, &c, DBLP_BUBBLE, 5000);
	lossy_average(&l, average);
	ok(!l.missing, "a budget of less than a segment loses nothing");
	lossy_close(&l);
}

/* A training with budget @share */
/*
 * Parameters that rise by 1 in each round: a rank that has lost one adds 0.9 times its step, and
 * the next round repairs it
 */
static bool spreads(const struct config *c)
{
	float param[COUNT] = { 0 };
	bool good = true;
	uint32_t i, k, round, late;
	uint64_t missing;
	struct lossy l;

	lossy_of(&l, c, DBLP_BUBBLE, 0);
	lossy_start(&l, param);
	for (round = 1; round <= 50; round++) {
		for (k = 0; k < COUNT; k++)
			param[k] = round;
		missing = l.missing;
		lossy_spread(&l, param, round == 1 || round == 50 ? 0 : 400000);
		for (i = 0, late = 0; i < RANKS; i++)
			for (k = 0; k < COUNT; k++) {
				const float v = l.rank[i].copy.param[k];

				if (i == 0 && config_server(c))
					continue;
				late += v != round;
				good = good && (v == round || fabsf(v - round) <= 0.2f);
			}
		good = good && late * sizeof(float) == l.missing - missing &&
		       (round == 1 || round == 50 ? !late : late > COUNT / 3);
	}
	lossy_close(&l);
	return good;
}

static void test_lossy_spread(void)
{
	ok(spreads(&lossy_plans[0]) && spreads(&lossy_plans[1]),
	   "lost parameters go on as in the round before, for one round");
}

static struct trial trial_of(const struct text *t, double share, uint32_t rule)
{
	return (struct trial){
		.config = {
			.nranks = 4,
			.plan = DBLP_PS,
			.rule = rule,
			.budget = share * DBLP_PPM,
			.rate = 0.02,
			.batch = 32,
			.context = 4,
			.hidden = 16,
			.seed = 1,
			.rounds = 80,
		},
		.text = t,
		.segment = 64,
	};
}

/* Train with budget @share; returns the loss on held-out text */
static double train_with_loss(const struct text *t, double share, uint32_t rule)
{
	struct trial trial = trial_of(t, share, rule);

	return trial_run(&trial);
}

/*
 * With eta 0 each epoch is critical; with a large eta, epochs from the third on are not
 */
static void test_phases(void)
{
	struct text t = make_text(20000);
	struct trial trial = trial_of(&t, 0.9, DBLP_FEEDBACK);
	struct trial fixed = trial_of(&t, 0.4, DBLP_FEEDBACK);

	trial.config.phases = true;
	trial.config.high = 400000;
	trial.config.epoch = 20;
	trial.config.eta = 0;
	trial_run(&trial);
	ok(trial.asked && !trial.missing, "a critical training has the low budget");
	trial.config.eta = 1000;
	trial_run(&trial);
	trial_run(&fixed);
	ok(fabs(trial.missing / (fixed.missing * 0.5) - 1) < 0.05,
	   "one whose norm is steady has the high one from its third epoch on");
	text_free(&t);
}

static void test_training(void)
{
	struct text t = make_text(20000);
	const double start = log(t.vocab);
	const double exact = train_with_loss(&t, 0, DBLP_FEEDBACK);
	const double feedback = train_with_loss(&t, 0.408, DBLP_FEEDBACK);
	const double rescale = train_with_loss(&t, 0.408, DBLP_RESCALE);

	printf("# loss %.3f -> %.3f; with 40.8 %% missing: feedback %.3f, rescale %.3f\n",
	       start, exact, feedback, rescale);
	ok(exact < 0.6 * start, "the model learns");
	ok(train_with_loss(&t, 0.408, DBLP_RESCALE) == rescale,
	   "the same trial has the same bits");
	ok(feedback < exact + 0.1, "it learns from late gradients");
	ok(rescale < exact + 0.1, "it learns from what arrives");
	text_free(&t);
}

/* Seven points of three seeds, with the expected verdicts */
static void test_profile(void)
{
	static const uint32_t verdict[] = { PROFILE_BASE, PROFILE_UNUSED, PROFILE_WITHIN,
		PROFILE_WITHIN, PROFILE_BEYOND, PROFILE_WITHIN, PROFILE_BEYOND };
	double loss[][3] = { { 1, 2, 3 }, { 1, 2, 3 }, { 2, 2.5, 3.25 }, { 1.5, 3.5, 4 },
		{ 1, 2, 8 }, { 0, 1, 2 }, { 1, NAN, 3 } };
	const uint32_t n = sizeof(loss) / sizeof(*loss);
	struct profile_point p[n];
	bool good = true;
	uint32_t i;

	for (i = 0; i < n; i++)
		p[i] = (struct profile_point){
			.budget = i, .loss = loss[i], .asked = 100, .missing = i > 1,
		};
	profile_judge(p, n, 3);
	for (i = 0; i < n; i++)
		good = good && p[i].verdict == verdict[i];
	ok(good, "a budget is within the noise up to the spread of seeds");
	ok(p[0].spread == 1 && p[2].worse == 7.0 / 12 && p[3].worse == 1 &&
	   fabs(p[4].error - 5.0 / 3) < 1e-9,
	   "each is compared with the same seed without losses");
	ok(profile_best(p, n) == 3 && profile_best(p, 2) == 0 && profile_best(p, 3) == 2,
	   "the best is the largest below any that is beyond");
}

static void test_hook(void)
{
	char text[] = "burst:3,17:echo a:b";
	struct hook h;

	hook_parse(&h, text);
	ok(!strcmp(h.name, "burst") && !strcmp(h.command, "echo a:b"),
	   "a hook has a name and a command");
	ok(hook_due(&h, 3) && hook_due(&h, 17) && !hook_due(&h, 1) &&
	   !hook_due(&h, 7) && !hook_due(&h, 31), "it is due in its rounds");
}

static void test_log(void)
{
	const struct log_round round = {
		1, "fixed", 8000, 8000, 20000, 123456, 860616, 5600, 0.25, 4.5,
		0.125, 3000, 1408, "burst",
	};
	struct log log = {
		.name = "two words", .transport = "dblp", .workers = 3,
		.params = 71702, .samples = 384, .held_start = 4.25,
		.held_end = 2.125,
	};
	char file[] = "/tmp/dblp-train-unit.XXXXXX";
	const struct log_round *r;
	struct log back;
	FILE *f;

	f = fdopen(mkstemp(file), "w");
	log_begin(f, &log);
	log_round(f, &round);
	log_end(f, &log);
	fclose(f);
	log_read(&back, file);
	unlink(file);
	r = back.round;
	ok(!strcmp(back.name, log.name) && !strcmp(back.transport, "dblp") &&
	   back.workers == 3 && back.params == 71702 && back.samples == 384 &&
	   back.held_start == 4.25 && back.held_end == 2.125 && back.n == 1,
	   "a log is read as it was written");
	ok(r->round == 1 && !strcmp(r->phase, "fixed") && r->budget_set == 8000 &&
	   r->budget_min == 8000 && r->budget_max == 20000 &&
	   r->us == 123456 && r->asked == 860616 && r->missing == 5600 &&
	   r->norm == 0.25 && r->loss == 4.5 && r->drift == 0.125 && r->param_asked == 3000 &&
	   r->param_missing == 1408 && !strcmp(r->event, "burst"),
	   "and so are its rounds");
	log_free(&back);
}

int main(void)
{
	printf("TAP version 13\n");
	test_units();
	test_gradient();
	test_detector();
	test_config();
	test_checkpoint();
	test_lossy_plans();
	test_lossy_choice();
	test_lossy_sparse();
	test_lossy_message();
	test_lossy_spread();
	test_training();
	test_phases();
	test_profile();
	test_hook();
	test_log();
	printf("1..%u\n", test_number);
	return !!test_failures;
}
