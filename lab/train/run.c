// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "main.h"
#include "run.h"

/* Held-out samples for evaluating the model before and after the training */
#define HELD	1024

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

static double held_loss(const struct run *r)
{
	size_t pos[HELD];

	if (!r->shows)
		return 0;
	text_draw_held(&r->text, pos, HELD, r->model.context,
		       r->opt.config.seed);
	return model_loss(&r->model, r->adam.param, &r->text, pos, HELD, NULL);
}

static unsigned int contributors(const struct run *r)
{
	return r->nranks - config_server(&r->opt.config);
}

static void set_up(struct run *r)
{
	const struct config *c = &r->opt.config;

	r->model = (struct model){
		.vocab = r->text.vocab,
		.context = c->context,
		.hidden = c->hidden,
	};
	r->size = model_size(&r->model);
	r->state = checkpoint_new(c, r->size);
	if (!r->state)
		err(1, NULL);
	r->grad = zeroed(r->size, sizeof(float));
	r->pos = zeroed(c->batch, sizeof(*r->pos));
	r->adam = (struct adam){
		.size = r->size,
		.rate = c->rate,
		.param = r->state->state,
		.mean = r->state->state + r->size,
		.square = r->state->state + 2 * r->size,
	};
	model_init(&r->model, r->adam.param, c->seed);
	detector_init(&r->state->detector, c->eta, c->epoch);
}

/* Rank 0 reads the checkpoint and sends its state to the others */
static void resume(struct run *r)
{
	const struct config *c = &r->opt.config;
	char why[CHECKPOINT_REASON];

	if (!c->resume)
		return;
	if (!r->rank && checkpoint_read(r->state, r->opt.checkpoint, why))
		run_fail(r, "%s", why);
	exchange_state(r);
	if (r->state->round >= c->rounds)
		run_fail_all(r, "the checkpoint is of round %u: --rounds %u leaves nothing to do",
			     r->state->round, c->rounds);
	r->adam.step = r->state->round;
}

static void begin_log(struct run *r)
{
	const struct options *o = &r->opt;

	if (!r->rank && !o->progress)
		r->opt.progress = 10;
	r->shows = o->progress || o->log_file;
	snprintf(r->log.name, sizeof(r->log.name), "%s", o->name);
	snprintf(r->log.transport, sizeof(r->log.transport), "%s",
		 o->attr.transport);
	r->log.workers = contributors(r);
	r->log.params = r->size;
	r->log.samples = contributors(r) * o->config.batch;
	r->log.held_start = held_loss(r);
	if (o->log_file)
		log_begin(o->log_file, &r->log);
	if (!o->progress)
		return;
	printf("%-16s %s\n", o->name, dblp_comm_describe(r->comm));
	printf("%-16s %zu parameters, %zu characters of text, loss %.3f\n",
	       o->name, r->size, r->text.len, r->log.held_start);
}

static void show_round(const struct run *r, const struct log_round *l)
{
	const struct options *o = &r->opt;
	const bool eventful = strcmp(l->event, "-");

	if (!o->progress || (!eventful && l->round % o->progress &&
			     l->round != o->config.rounds))
		return;
	printf("%-16s round %3u/%u  loss %.3f  %8.1f ms  %-8s %5.1f %% missing",
	       o->name, l->round, o->config.rounds, l->loss, l->us / 1000.0,
	       l->phase, l->asked ? 100.0 * l->missing / l->asked : 0.0);
	if (o->config.owners)
		printf(", of parameters %.1f %%", l->param_asked ? 100.0 * l->param_missing / l->param_asked : 0.0);
	if (o->config.plan == DBLP_AVERAGE || o->config.owners)
		printf("  drift %.2g", l->drift);
	printf("%s%s\n", eventful ? "  " : "", eventful ? l->event : "");
}

/* Add the record of @rank to the round @l */
static void add_record(const struct run *r, struct log_round *l, uint32_t rank)
{
	const struct record *p = record_of(r, rank);
	const unsigned int n = contributors(r);

	l->asked += p->asked;
	l->missing += p->missing;
	l->param_asked += p->param_asked;
	l->param_missing += p->param_missing;
	if (p->asked && p->budget_least < l->budget_min)
		l->budget_min = p->budget_least;
	if (p->budget_most > l->budget_max)
		l->budget_max = p->budget_most;
	if (rank < r->nranks - n)
		return;
	l->loss += p->loss / n;
	l->norm += p->norm / n;
	l->drift += p->drift / n;
}

/* Each owner knows norms of its part, and what others lack of it */
static void add_owners(struct run *r, struct log_round *l)
{
	double norm = 0, apart = 0, square = 0;
	uint32_t i;

	for (i = 0; i < r->nranks; i++) {
		const struct record *p = record_of(r, i);

		norm += p->norm * p->norm;
		apart += p->apart;
		square += p->square;
	}
	l->norm = sqrt(norm);
	l->drift = sqrt(apart / contributors(r) / square);
	exchange_norm(r, l->norm, l->round);
}

/*
 * Complete the records of the last round. They are exchanged while the next round
 * computes its gradients: with %DBLP_AVERAGE a group need not wait for other groups.
 */
static void end_records(struct run *r)
{
	struct log_round *l = &r->round;
	uint32_t i;
	int error;

	if (!l->round)
		return;
	error = gather_end(&r->records);
	if (error)
		run_broken(r, error);
	if (r->opt.config.tune)
		exchange_learn(r);
	l->budget_min = UINT32_MAX;
	for (i = 0; i < r->nranks; i++)
		add_record(r, l, i);
	if (r->opt.config.owners)
		add_owners(r, l);
	if (l->budget_min > l->budget_max)
		l->budget_min = l->budget_max;
	if (r->opt.log_file)
		log_round(r->opt.log_file, l);
	show_round(r, l);
	l->round = 0;
}

static void compute(struct run *r, struct record *mine, unsigned int round)
{
	const struct config *c = &r->opt.config;
	const uint32_t worker = r->rank + !config_server(c);

	if (r->server)
		return;
	text_draw(&r->text, r->pos, c->batch, c->context,
		  rng_mix(c->seed, worker, round));
	mine->loss = model_loss(&r->model, r->adam.param, &r->text, r->pos,
				c->batch, r->grad);
}

static bool checkpoint_due(const struct run *r, unsigned int round)
{
	const struct config *c = &r->opt.config;

	return c->every && (!(round % c->every) || round == c->rounds);
}

/* Make replicas equal if ranks differ by plan or by lost parameters, then verify that all are equal */
static void meet(struct run *r)
{
	if (r->met == r->state->round)
		return;
	if (r->opt.config.plan == DBLP_AVERAGE)
		exchange_averages(r);
	if (r->opt.config.owners)
		r->drift = exchange_replicas(r);
	r->digest = exchange_digests(r);
	r->met = r->state->round;
}

static void save(struct run *r)
{
	int error;

	end_records(r);
	meet(r);
	if (r->rank)
		return;
	error = checkpoint_write(r->state, r->opt.checkpoint);
	if (error)
		run_fail(r, "cannot write %s: %s", r->opt.checkpoint,
			 strerror(-error));
}

static void do_round(struct run *r, unsigned int round)
{
	const bool due = checkpoint_due(r, round);
	struct log_round l = { .round = round };
	struct record mine = { 0 };
	uint64_t start = now_us();
	int error;

	snprintf(l.event, sizeof(l.event), "%s",
		 hooks_start(r->opt.hook, r->opt.hooks, round));
	compute(r, &mine, round);
	exchange_phase(r, &l, &mine);
	exchange(r, &l, &mine, due);
	r->state->round = round;
	l.us = now_us() - start;
	end_records(r);
	error = gather_begin(&r->records, &mine);
	if (error)
		run_broken(r, error);
	r->round = l;
	if (due)
		save(r);
}

static void finish(struct run *r)
{
	const struct options *o = &r->opt;

	end_records(r);
	meet(r);
	if (!hooks_wait())
		run_fail(r, "a command of --hook has failed");
	r->log.held_end = held_loss(r);
	if (o->progress) {
		if (o->config.owners)
			printf("%-16s drift of this rank before the last exchange: %.9f\n",
			       o->name, r->drift);
		printf("%-16s loss on text never trained on: %.3f -> %.3f\n",
		       o->name, r->log.held_start, r->log.held_end);
		printf("%-16s replica after round %u, the same on all ranks: %016" PRIx64 "\n",
		       o->name, r->met, r->digest);
	}
	if (!o->log_file)
		return;
	log_end(o->log_file, &r->log);
	if (fclose(o->log_file))
		run_fail(r, "cannot write the log: %s", strerror(errno));
}

static void tear_down(struct run *r)
{
	dblp_comm_close(r->comm);
	gather_free(&r->records);
	if (r->job_fd >= 0)
		close(r->job_fd);
	free(r->state);
	free(r->grad);
	exchange_end(r);
	free(r->pos);
	text_free(&r->text);
}

int run_main(int argc, char **argv)
{
	struct run r = { 0 };
	unsigned int round;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	options_parse(&r.opt, OPTIONS_RUN, argc, argv);
	text_load(&r.text, r.opt.files, r.opt.n_files);
	r.opt.config.text = r.text.hash;
	run_join(&r);
	set_up(&r);
	if (gather_open(&r.records, r.comm, sizeof(struct record)))
		err(1, NULL);
	resume(&r);
	exchange_begin(&r);
	begin_log(&r);
	for (round = r.state->round + 1; round <= r.opt.config.rounds; round++)
		do_round(&r, round);
	finish(&r);
	tear_down(&r);
	return 0;
}
