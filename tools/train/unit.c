// SPDX-License-Identifier: GPL-2.0-only
/* Checks the trainer's parts. Prints TAP. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rule.h>

#include "adam.h"
#include "checkpoint.h"
#include "detector.h"
#include "hook.h"
#include "log.h"
#include "model.h"
#include "text.h"

/* model.c once more, in double precision: see the Makefile. */
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

/* Text with an order to find: each letter often follows the one before it. */
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

static void test_text(void)
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
	/* Falls fast, settles, a jump (a new learning rate), settles. */
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
	ok(refused(c, file, "is no checkpoint of this version"),
	   "what is no checkpoint is refused");
	flip(file, 3);
	truncate(file, c->bytes - 4);
	ok(refused(c, file, "is damaged: it has"), "one that was cut off is refused");
	truncate(file, c->bytes + 4);
	ok(refused(c, file, "is damaged: it has"), "one that is too long is refused");
	truncate(file, 5);
	ok(refused(c, file, "is no checkpoint"), "one of a few bytes is refused");
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
	   "there is no checkpoint where there is none");
	/* A rename is all that touches the file: a folder in its place stays */
	mkdir(file, 0700);
	ok(checkpoint_write(c, file) < 0 && !rmdir(file) && !rmdir(folder),
	   "a failed write leaves nothing behind");
	free(c);
}

enum { SEGMENT = 64, SAMPLES = 32, HELD = 512, ROUNDS = 80, RANKS = 3 };

/**
 * struct lossy - ranks that lose a share of the segments of each gradient
 * @rng: draws what is lost
 * @share: of all segments
 * @rule: what is made of it, by libdblp's rules
 * @size: elements of a gradient
 * @grad: of a rank
 * @sum: of all
 * @residual: feedback: of each rank
 * @counts: rescale: contributions
 * @range: loss map
 */
struct lossy {
	uint64_t		rng;
	double			share;
	uint32_t		rule;
	size_t			size;
	float			*grad;
	float			*sum;
	float			*residual[RANKS];
	struct dblp_counts	counts;
	struct dblp_range	*range;
};

static uint32_t lose(struct lossy *l)
{
	const uint32_t bytes = l->size * sizeof(float);
	uint32_t n = 0, at;

	for (at = 0; at + SEGMENT <= bytes; at += SEGMENT)
		if ((rng_next(&l->rng) >> 11) * 0x1p-53 < l->share)
			l->range[n++] = (struct dblp_range){ at, SEGMENT };
	return n;
}

/* The gradient of rank @w is sent, and added to the sum but for what is lost */
static void contribute(struct lossy *l, unsigned int w)
{
	const struct dblp_run one = { l->size, 1 };
	struct dblp_loss loss = {
		.range = l->range,
		.esize = sizeof(float),
		.count = l->size,
	};
	size_t i, k;

	if (l->rule == DBLP_FEEDBACK) {
		dblp_feedback_apply(DBLP_FLOAT32, l->grad, l->residual[w], l->size);
		dblp_feedback_send(DBLP_FLOAT32, l->residual[w], l->grad, l->size);
	}
	loss.n = lose(l);
	if (l->rule == DBLP_FEEDBACK)
		dblp_feedback_report(l->residual[w], &loss);
	else
		dblp_counts_add(&l->counts, 0, &one, 1, &loss);
	for (k = 0; k < loss.n; k++)
		memset((char *)l->grad + l->range[k].offset, 0, SEGMENT);
	for (i = 0; i < l->size; i++)
		l->sum[i] += l->grad[i];
}

static void lossy_init(struct lossy *l, double share, uint32_t rule, size_t size)
{
	const size_t room = size + 2;
	unsigned int w;

	*l = (struct lossy){ .rng = 17, .share = share, .rule = rule, .size = size };
	l->grad = zeroed(size * sizeof(float));
	l->sum = zeroed(size * sizeof(float));
	l->range = zeroed(size * sizeof(*l->range));
	l->counts.run = zeroed(room * sizeof(struct dblp_run));
	l->counts.spare = zeroed(room * sizeof(struct dblp_run));
	l->counts.room = room;
	for (w = 0; w < RANKS; w++)
		l->residual[w] = zeroed(size * sizeof(float));
}

static void lossy_free(struct lossy *l)
{
	unsigned int w;

	for (w = 0; w < RANKS; w++)
		free(l->residual[w]);
	free(l->counts.run);
	free(l->counts.spare);
	free(l->range);
	free(l->sum);
	free(l->grad);
}

/* Gives the loss on held-out text */
static double train_with_loss(const struct text *t, double share, uint32_t rule)
{
	const struct model m = { t->vocab, 4, 16 };
	const size_t size = model_size(&m);
	const struct dblp_finish finish = { DBLP_FLOAT32, rule, RANKS, true };
	struct adam adam = { .size = size, .rate = 0.02 };
	size_t pos[HELD];
	struct lossy l;
	unsigned int r, w;
	double loss;

	lossy_init(&l, share, rule, size);
	adam.param = zeroed(3 * size * sizeof(float));
	adam.mean = adam.param + size;
	adam.square = adam.mean + size;
	model_init(&m, adam.param, 1);
	for (r = 1; r <= ROUNDS; r++) {
		memset(l.sum, 0, size * sizeof(float));
		dblp_counts_set(&l.counts, size, 0);
		for (w = 0; w < RANKS; w++) {
			text_draw(t, pos, SAMPLES, m.context, rng_mix(1, w, r));
			model_loss(&m, adam.param, t, pos, SAMPLES, l.grad);
			contribute(&l, w);
		}
		dblp_rule_finish(&finish, l.sum, l.counts.run, l.counts.n, size);
		adam_step(&adam, l.sum);
	}
	text_draw_held(t, pos, HELD, m.context, 1);
	loss = model_loss(&m, adam.param, t, pos, HELD, NULL);
	free(adam.param);
	lossy_free(&l);
	return loss;
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
	ok(feedback < exact + 0.1, "it learns from late gradients");
	ok(rescale < exact + 0.1, "it learns from what arrives");
	text_free(&t);
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
		0.125, "burst",
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
	   r->norm == 0.25 && r->loss == 4.5 && r->drift == 0.125 && !strcmp(r->event, "burst"),
	   "and so are its rounds");
	log_free(&back);
}

int main(void)
{
	printf("TAP version 13\n");
	test_text();
	test_gradient();
	test_detector();
	test_config();
	test_checkpoint();
	test_training();
	test_hook();
	test_log();
	printf("1..%u\n", test_number);
	return !!test_failures;
}
