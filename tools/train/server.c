// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server.h"

/* Samples for evaluating the model before and after the training. */
#define SERVER_HELD	1024

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* Sets phase and budget of the next round, for the workers and the log. */
static void set_phase(struct server *s, struct log_round *r)
{
	struct params_head *head = &s->params->head;
	const char *name;

	if (!s->phases) {
		head->phase = TRAIN_RELIABLE;
		head->budget = TP_SOCKET_BUDGET;
		r->budget_set = s->config.budget;
		name = s->config.budget ? "fixed" : "reliable";
	} else {
		head->phase = s->clr.critical ? TRAIN_CRITICAL : TRAIN_TOLERANT;
		head->budget = s->clr.critical ? s->low : s->high;
		r->budget_set = head->budget;
		name = s->clr.critical ? "critical" : "tolerant";
	}
	snprintf(r->phase, sizeof(r->phase), "%s", name);
}

/* Collects the results of the round from the workers' messages. */
static void take_stock(const struct server *s, struct log_round *r)
{
	unsigned int i;

	r->budget_min = UINT32_MAX;
	for (i = 0; i < s->workers; i++) {
		const struct peer *p = &s->peer[i];

		r->loss += p->grad->head.loss / s->workers;
		r->asked += p->msg.info.length;
		r->missing += p->msg.info.missing;
		if (p->msg.info.budget < r->budget_min)
			r->budget_min = p->msg.info.budget;
		if (p->msg.info.budget > r->budget_max)
			r->budget_max = p->msg.info.budget;
	}
}

static void learn(struct server *s, struct log_round *r)
{
	struct dblp_msg msg[s->workers];
	float *grad[s->workers];
	unsigned int i;

	for (i = 0; i < s->workers; i++) {
		grad[i] = s->peer[i].grad->grad;
		msg[i] = s->peer[i].msg;
	}
	reduce_average(s->config.feedback ? REDUCE_BUBBLE : REDUCE_RESCALE,
		       s->avg, s->size, grad, msg, sizeof(struct grad_head),
		       s->workers);
	r->norm = reduce_norm(s->avg, s->size);
	adam_step(&s->adam, s->params->param, s->avg);
	clr_round(&s->clr, r->norm);
}

static void show_round(const struct server *s, const struct log_round *r)
{
	const bool eventful = strcmp(r->event, "-");

	if (!eventful && r->round % s->progress && r->round != s->rounds)
		return;
	printf("%-16s round %3u/%u  loss %.3f  %8.1f ms  %-8s %5.1f %% missing%s%s\n",
	       s->log.name, r->round, s->rounds, r->loss, r->us / 1000.0,
	       r->phase, 100.0 * r->missing / r->asked, eventful ? "  " : "",
	       eventful ? r->event : "");
}

static void do_round(struct server *s, unsigned int round)
{
	struct log_round r = { .round = round };
	uint64_t start;

	s->params->head.round = round;
	set_phase(s, &r);
	start = now_us();
	snprintf(r.event, sizeof(r.event), "%s", hooks_start(s, round));
	peers_round(s);
	take_stock(s, &r);
	learn(s, &r);
	r.us = now_us() - start;
	if (s->log_file)
		log_round(s->log_file, &r);
	show_round(s, &r);
}

static double held_loss(const struct server *s)
{
	size_t pos[SERVER_HELD];

	text_draw_held(&s->text, pos, SERVER_HELD, s->model.context,
		       s->config.seed);
	return model_loss(&s->model, s->params->param, &s->text, pos,
			  SERVER_HELD, NULL);
}

void server_set_up(struct server *s)
{
	s->model = (struct model){
		.vocab = s->text.vocab,
		.context = s->config.context,
		.hidden = s->config.hidden,
	};
	s->size = model_size(&s->model);
	s->params = calloc(1, sizeof(*s->params) + s->size * sizeof(float));
	s->avg = calloc(s->size, sizeof(*s->avg));
	if (!s->params || !s->avg)
		err(1, NULL);
	model_init(&s->model, s->params->param, s->config.seed);
	adam_init(&s->adam, s->size, s->rate);

	snprintf(s->log.transport, sizeof(s->log.transport), "%s", s->tp->name);
	s->log.workers = s->workers;
	s->log.params = s->size;
	s->log.samples = s->workers * s->config.batch;
	s->log.held_start = held_loss(s);
}

void server_run(struct server *s)
{
	unsigned int round;

	printf("%-16s %u workers, %zu parameters, %zu characters of text, loss %.3f\n",
	       s->log.name, s->workers, s->size, s->text.len,
	       s->log.held_start);
	if (s->log_file)
		log_begin(s->log_file, &s->log);
	for (round = 1; round <= s->rounds; round++)
		do_round(s, round);

	s->params->head.round = round;
	s->params->head.stop = 1;
	peers_finish(s);
	hooks_wait();
	s->log.held_end = held_loss(s);
	printf("%-16s loss on text never trained on: %.3f -> %.3f\n",
	       s->log.name, s->log.held_start, s->log.held_end);
	if (!s->log_file)
		return;
	log_end(s->log_file, &s->log);
	if (fclose(s->log_file))
		err(1, "cannot write the log");
}

void server_free(struct server *s)
{
	adam_free(&s->adam);
	free(s->params);
	free(s->avg);
	text_free(&s->text);
}
