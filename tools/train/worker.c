// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reduce.h"
#include "text.h"
#include "train.h"

/* Gradients kept until the transport reports about them. */
#define WORKER_KEEP	4
#define WORKER_PATIENCE	10	/* seconds for the server to appear */

/**
 * struct sent - a gradient that was sent
 * @head: begin of the message
 * @grad: rest of the message
 */
struct sent {
	struct grad_head	head;
	float			grad[];
};

/**
 * struct worker - a worker
 * @tp: transport
 * @fd: connection
 * @id: number
 * @text: to train on
 * @config: from the server
 * @model: shape of the model
 * @size: number of parameters
 * @params: the last message from the server
 * @sent: the last gradients, by round modulo WORKER_KEEP
 * @residual: missing elements that are still to be sent
 * @closed: the latest report of the transport
 * @pos: positions of the batch
 */
struct worker {
	const struct transport	*tp;
	int			fd;
	uint32_t		id;
	struct text		text;
	struct train_config	config;
	struct model		model;
	size_t			size;
	struct {
		struct params_head	head;
		float			param[];
	}			*params;
	struct sent		*sent[WORKER_KEEP];
	float			*residual;
	struct dblp_msg		closed;
	size_t			*pos;
};

static void *allocate(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		err(1, NULL);
	return p;
}

static int connect_to(const struct transport *tp, const struct tp_addr *addr)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	unsigned int tries = WORKER_PATIENCE * 20;
	int fd;

	for (;;) {
		fd = tp_connect(tp, addr);
		if (fd >= 0)
			return fd;
		if (errno != ECONNREFUSED || !tries--)
			err(1, "cannot connect to %s port %u by %s", addr->host,
			    addr->port, tp->name);
		nanosleep(&pause, NULL);
	}
}

static void shake_hands(struct worker *w)
{
	const struct train_hello hello = {
		.magic = TRAIN_MAGIC,
		.worker = w->id,
		.text_hash = w->text.hash,
	};
	const struct dblp_sndinfo how = tp_how(0, 0, 0);
	struct dblp_msg msg = { 0 };
	ssize_t n;

	if (w->tp->send(w->fd, &hello, sizeof(hello), &how))
		err(1, "cannot send to the server");
	n = w->tp->recv(w->fd, &w->config, sizeof(w->config), &msg);
	if (n < 0)
		err(1, "cannot receive from the server");
	if (n != sizeof(w->config) || w->config.magic != TRAIN_MAGIC)
		errx(1, "the server refused this worker: its message says why");
	if (w->tp->set_budget(w->fd, w->config.budget))
		err(1, "cannot set a loss budget");
	dblp_msg_free(&msg);
}

static void set_up(struct worker *w)
{
	unsigned int i;

	w->model = (struct model){
		.vocab = w->text.vocab,
		.context = w->config.context,
		.hidden = w->config.hidden,
	};
	w->size = model_size(&w->model);
	w->params = allocate(sizeof(*w->params) + w->size * sizeof(float));
	for (i = 0; i < WORKER_KEEP; i++)
		w->sent[i] = allocate(sizeof(struct sent) +
				      w->size * sizeof(float));
	w->residual = allocate(w->size * sizeof(float));
	w->pos = allocate(w->config.batch * sizeof(*w->pos));
}

static struct sent *sent_in(const struct worker *w, uint32_t round)
{
	return w->sent[round % WORKER_KEEP];
}

static void hear_what_was_lost(struct worker *w)
{
	int ret;

	while ((ret = w->tp->closed(w->fd, &w->closed)) > 0) {
		const struct sent *sent = sent_in(w, w->closed.info.tag);

		/* The tag is the round; hello has none. */
		if (!w->closed.info.tag || sent->head.round != w->closed.info.tag)
			continue;
		if (w->config.feedback)
			reduce_keep(w->residual, sent->grad, w->size,
				    &w->closed, sizeof(sent->head));
	}
	if (ret < 0)
		err(1, "cannot read the report about a gradient");
}

static void send_gradient(struct worker *w, struct sent *sent, size_t size)
{
	const struct params_head *asked = &w->params->head;
	struct dblp_sndinfo how = tp_how(asked->round, size ? asked->budget : 0,
					 asked->phase);

	how.critical = sizeof(sent->head);
	sent->head.worker = w->id;
	sent->head.closed_round = w->closed.info.tag;
	sent->head.closed_hash = tp_msg_hash(&w->closed);
	if (w->tp->send(w->fd, sent, sizeof(sent->head) + size * sizeof(float),
			&how))
		err(1, "cannot send the gradient of round %u", asked->round);
}

static void do_round(struct worker *w)
{
	const uint32_t round = w->params->head.round;
	struct sent *sent = sent_in(w, round);
	size_t i;

	text_draw(&w->text, w->pos, w->config.batch, w->model.context,
		  rng_mix(w->config.seed, w->id + 1, round));
	/* This overwrites an older gradient: read the reports first. */
	hear_what_was_lost(w);
	sent->head.round = round;
	sent->head.loss = model_loss(&w->model, w->params->param, &w->text,
				     w->pos, w->config.batch, sent->grad);
	hear_what_was_lost(w);
	for (i = 0; i < w->size; i++)
		sent->grad[i] += w->residual[i];
	memset(w->residual, 0, w->size * sizeof(*w->residual));
	send_gradient(w, sent, w->size);
}

/* Pass on the last report. */
static void say_goodbye(struct worker *w)
{
	struct sent *sent = sent_in(w, w->params->head.round);

	hear_what_was_lost(w);
	sent->head.round = w->params->head.round;
	send_gradient(w, sent, 0);
}

/* Returns false when training is over. */
static bool next_round(struct worker *w)
{
	const size_t full = sizeof(*w->params) + w->size * sizeof(float);
	struct dblp_msg msg = { 0 };
	ssize_t n;

	n = w->tp->recv(w->fd, w->params, full, &msg);
	dblp_msg_free(&msg);
	if (n < 0)
		err(1, "cannot receive parameters");
	if (!n)
		errx(1, "the server closed the connection: its message says why");
	if (n >= (ssize_t)sizeof(w->params->head) && w->params->head.stop)
		return false;
	if ((size_t)n != full || msg.info.missing)
		errx(1, "parameters of %zd bytes, %u missing, instead of %zu",
		     n, msg.info.missing, full);
	return true;
}

static void tear_down(struct worker *w)
{
	unsigned int i;

	close(w->fd);
	for (i = 0; i < WORKER_KEEP; i++)
		free(w->sent[i]);
	free(w->params);
	free(w->residual);
	dblp_msg_free(&w->closed);
	free(w->pos);
	text_free(&w->text);
}

int worker_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "transport", required_argument, NULL, 't' },
		{ "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' },
		{ "worker", required_argument, NULL, 'w' },
		{ 0 }
	};
	struct tp_addr addr = { "127.0.0.1", 7000 };
	struct worker w = { .tp = &tp_tcp };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 't':
			w.tp = arg_transport(optarg);
			break;
		case 'a':
			addr.host = optarg;
			break;
		case 'p':
			addr.port = arg_number("port", optarg, 1, 65535);
			break;
		case 'w':
			w.id = arg_number("worker", optarg, 0, 65535);
			break;
		default:
			return 2;
		}
	}
	if (optind == argc)
		errx(2, "a worker needs the text files to train on");
	text_load(&w.text, argv + optind, argc - optind);

	w.fd = connect_to(w.tp, &addr);
	shake_hands(&w);
	set_up(&w);
	while (next_round(&w))
		do_round(&w);
	say_goodbye(&w);
	tear_down(&w);
	return 0;
}
