// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker that trains asynchronously: it pulls the model, computes the gradient of a
 * batch, and pushes the gradient, without waiting for other workers. See dblp_fabric(3).
 *
 * The server's model starts as 0. Workers add the same initial parameters to it.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <fabric.h>

#include "alloc.h"
#include "main.h"
#include "model.h"
#include "options.h"
#include "text.h"

/* Samples for evaluating the model at the end */
#define HELD	1024

/**
 * struct async - a worker
 * @opt: values of its options
 * @fabric: connection to the server
 * @text: training text
 * @model: shape of the model
 * @size: number of parameters
 * @start: initial parameters, equal on all workers
 * @param: parameters that were pulled last
 * @grad: gradient
 * @pos: positions of the batch
 * @began: start of the training, ns
 */
struct async {
	struct options		opt;
	struct dblp_fabric	*fabric;
	struct text		text;
	struct model		model;
	size_t			size;
	float			*start;
	float			*param;
	float			*grad;
	size_t			*pos;
	uint64_t		began;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void failed(const char *what, int error)
{
	if (error == -ENOTCONN)
		errx(1, "%s: the scheduler has failed", what);
	if (error == -ESHUTDOWN)
		errx(1, "%s: the scheduler was ended", what);
	if (error == -EHOSTDOWN)
		errx(1, "%s: the server has failed, and there is no replica", what);
	errx(1, "%s: %s", what, strerror(-error));
}

static void set_up(struct async *a)
{
	const struct config *c = &a->opt.config;

	a->model = (struct model){
		.vocab = a->text.vocab,
		.context = c->context,
		.hidden = c->hidden,
	};
	a->size = model_size(&a->model);
	a->start = zeroed(a->size, sizeof(float));
	a->param = zeroed(a->size, sizeof(float));
	a->grad = zeroed(a->size, sizeof(float));
	a->pos = zeroed(c->batch, sizeof(*a->pos));
	model_init(&a->model, a->start, c->seed);
}

static void open_fabric(struct async *a)
{
	const struct dblp_fabric_attr attr = {
		.size = sizeof(attr),
		.worker = a->opt.worker,
		.scheduler = a->opt.scheduler,
		.transport = a->opt.attr.transport,
		.count = a->size,
	};
	int error = dblp_fabric_open(&a->fabric, &attr);

	if (error == -EINVAL)
		errx(2, "--scheduler takes an address and a port, --transport dblp or tcp");
	if (error == -ENOENT)
		errx(1, "the scheduler has fewer workers than %u", a->opt.worker + 1);
	if (error == -EEXIST)
		errx(1, "worker %u has joined already", a->opt.worker);
	if (error == -EMSGSIZE)
		errx(1, "the model has %zu parameters, but the scheduler has another --count",
		     a->size);
	if (error)
		failed("cannot join the scheduler", error);
}

static void pull(struct async *a, uint64_t *version)
{
	size_t i;
	int error = dblp_pull(a->fabric, a->param, a->size, version);

	if (error)
		failed("cannot pull the model", error);
	for (i = 0; i < a->size; i++)
		a->param[i] += a->start[i];
}

/* Simulate a straggler */
static void pause_now_and_then(const struct options *o, unsigned int round)
{
	const struct timespec t = { o->pause_ms / 1000, o->pause_ms % 1000 * 1000000L };

	if (o->pause_every && round % o->pause_every == 0)
		nanosleep(&t, NULL);
}

static void do_round(struct async *a, unsigned int round)
{
	const struct config *c = &a->opt.config;
	struct dblp_pushed pushed;
	uint64_t version;
	double loss;
	int error;

	pull(a, &version);
	text_draw(&a->text, a->pos, c->batch, c->context,
		  rng_mix(c->seed, a->opt.worker + 1, round));
	loss = model_loss(&a->model, a->param, &a->text, a->pos, c->batch, a->grad);
	pause_now_and_then(&a->opt, round);
	error = dblp_push(a->fabric, a->grad, a->size, version, &pushed, sizeof(pushed));
	if (error)
		failed("cannot push an update", error);
	if (!a->opt.log_file)
		return;
	fprintf(a->opt.log_file, "update %" PRIu64 " %" PRIu64 " %" PRIu64 " %.6f %u %u\n",
		now_ns() / 1000, version, pushed.version, loss, pushed.dropped, pushed.tries);
	fflush(a->opt.log_file);
}

static void finish(struct async *a)
{
	const struct options *o = &a->opt;
	size_t pos[HELD];
	uint64_t version;
	double held;

	pull(a, &version);
	text_draw_held(&a->text, pos, HELD, a->model.context, o->config.seed);
	held = model_loss(&a->model, a->param, &a->text, pos, HELD, NULL);
	printf("worker %u: version %" PRIu64 ", loss on text never trained on: %.3f\n",
	       o->worker, version, held);
	if (!o->log_file)
		return;
	fprintf(o->log_file, "end %.6f\n", held);
	if (fclose(o->log_file))
		err(1, "cannot write the log");
}

int async_main(int argc, char **argv)
{
	struct async a = { 0 };
	unsigned int round;

	options_parse(&a.opt, OPTIONS_ASYNC, argc, argv);
	text_load(&a.text, a.opt.files, a.opt.n_files);
	set_up(&a);
	if (a.opt.count) {
		printf("%zu\n", a.size);
		return 0;
	}
	open_fabric(&a);
	a.began = now_ns();
	for (round = 1; round <= a.opt.config.rounds; round++) {
		do_round(&a, round);
		if (a.opt.time_ms && now_ns() - a.began >= a.opt.time_ms * 1000000ULL)
			break;
	}
	finish(&a);
	dblp_fabric_close(a.fabric);
	return 0;
}
