// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "server.h"

/* Samples that the model is tried on before and after the training. */
#define SERVER_HELD	1024

extern char **environ;

void hook_parse(struct hook *h, char *text)
{
	char *rounds = strchr(text, ':');
	char *command = rounds ? strchr(rounds + 1, ':') : NULL;
	size_t len;

	if (!command || !command[1])
		errx(2, "--hook takes NAME:ROUNDS:COMMAND, not '%s'", text);
	*rounds++ = 0;
	*command++ = 0;
	len = strlen(text);
	if (!len || len >= sizeof(h->name) || strpbrk(text, " \t\n"))
		errx(2, "--hook: '%s' is no name", text);
	if (strspn(rounds, "0123456789,") != strlen(rounds))
		errx(2, "--hook: '%s' are no rounds", rounds);
	memcpy(h->name, text, len + 1);
	h->rounds = rounds;
	h->command = command;
}

bool hook_due(const struct hook *h, unsigned int round)
{
	const char *at = h->rounds;
	char *end;

	while (*at) {
		if (*at == ',') {
			at++;
			continue;
		}
		if (strtoul(at, &end, 10) == round)
			return true;
		at = end;
	}
	return false;
}

/* The command runs beside the training, which does not wait for it. */
static void hook_start(const struct hook *h)
{
	char *argv[] = { "sh", "-c", (char *)h->command, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	if (errno)
		err(1, "cannot run '%s'", h->command);
}

/* Children that failed have spoiled the experiment. */
static void hooks_wait(void)
{
	int status;

	while (wait(&status) > 0)
		if (status)
			errx(1, "a command of --hook has failed");
}

static const char *start_hooks(const struct server *s, unsigned int round)
{
	const char *event = "-";
	unsigned int i;

	for (i = 0; i < s->hooks; i++) {
		if (!hook_due(&s->hook[i], round))
			continue;
		hook_start(&s->hook[i]);
		event = s->hook[i].name;
	}
	return event;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* Fills in phase and budget of the next round, for the workers and the log. */
static void set_phase(struct server *s, struct log_round *r)
{
	struct params_head *head = &s->params->head;
	const char *name;

	if (!s->phases) {
		head->phase = TRAIN_RELIABLE;
		head->budget = TP_SOCKET_BUDGET;
		r->told = s->config.budget;
		name = s->config.budget ? "fixed" : "reliable";
	} else {
		head->phase = s->clr.critical ? TRAIN_CRITICAL : TRAIN_TOLERANT;
		head->budget = s->clr.critical ? s->low : s->high;
		r->told = head->budget;
		name = s->clr.critical ? "critical" : "tolerant";
	}
	snprintf(r->phase, sizeof(r->phase), "%s", name);
}

/* What the workers' messages say of the round. */
static void take_stock(const struct server *s, struct log_round *r)
{
	unsigned int i;

	r->budget_min = UINT32_MAX;
	for (i = 0; i < s->workers; i++) {
		const struct peer *p = &s->peer[i];

		r->loss += p->grad->head.loss / s->workers;
		r->asked += p->msg.length;
		r->missing += p->msg.missing;
		if (p->msg.budget < r->budget_min)
			r->budget_min = p->msg.budget;
		if (p->msg.budget > r->budget_max)
			r->budget_max = p->msg.budget;
	}
}

static void learn(struct server *s, struct log_round *r)
{
	struct tp_msg msg[s->workers];
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
	snprintf(r.event, sizeof(r.event), "%s", start_hooks(s, round));
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

static void set_up(struct server *s)
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

static void run(struct server *s)
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

static void parse_phases(struct server *s, char *text)
{
	char *comma = strchr(text, ',');

	if (!comma)
		errx(2, "--phases takes LOW,HIGH, not '%s'", text);
	*comma = 0;
	s->low = arg_percent("phases", text);
	s->high = arg_percent("phases", comma + 1);
	s->phases = true;
}

static void parse(struct server *s, int argc, char **argv)
{
	enum { NO_FEEDBACK = 256 };
	static const struct option options[] = {
		{ "transport", required_argument, NULL, 't' },
		{ "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' },
		{ "workers", required_argument, NULL, 'w' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "batch", required_argument, NULL, 'b' },
		{ "context", required_argument, NULL, 'c' },
		{ "hidden", required_argument, NULL, 'h' },
		{ "rate", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "budget", required_argument, NULL, 'B' },
		{ "phases", required_argument, NULL, 'P' },
		{ "eta", required_argument, NULL, 'e' },
		{ "epoch", required_argument, NULL, 'E' },
		{ "no-feedback", no_argument, NULL, NO_FEEDBACK },
		{ "hook", required_argument, NULL, 'k' },
		{ "log", required_argument, NULL, 'L' },
		{ "name", required_argument, NULL, 'n' },
		{ "progress", required_argument, NULL, 'g' },
		{ 0 }
	};
	double eta = 0.5;
	unsigned int epoch = 4;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 't':
			s->tp = arg_transport(optarg);
			break;
		case 'a':
			s->addr.host = optarg;
			break;
		case 'p':
			s->addr.port = arg_number("port", optarg, 1, 65535);
			break;
		case 'w':
			s->workers = arg_number("workers", optarg, 1, 1024);
			break;
		case 'r':
			s->rounds = arg_number("rounds", optarg, 1, 1000000);
			break;
		case 'b':
			s->config.batch = arg_number("batch", optarg, 1, 65536);
			break;
		case 'c':
			s->config.context = arg_number("context", optarg, 1,
						       256);
			break;
		case 'h':
			s->config.hidden = arg_number("hidden", optarg, 1,
						      4096);
			break;
		case 'l':
			s->rate = arg_real("rate", optarg, 0, 10);
			break;
		case 's':
			s->config.seed = arg_number("seed", optarg, 0,
						    UINT32_MAX);
			break;
		case 'B':
			s->config.budget = arg_percent("budget", optarg);
			break;
		case 'P':
			parse_phases(s, optarg);
			break;
		case 'e':
			eta = arg_real("eta", optarg, 0, 1000);
			break;
		case 'E':
			epoch = arg_number("epoch", optarg, 1, 1000000);
			break;
		case NO_FEEDBACK:
			s->config.feedback = false;
			break;
		case 'k':
			if (s->hooks == SERVER_HOOKS)
				errx(2, "--hook: at most %d", SERVER_HOOKS);
			hook_parse(&s->hook[s->hooks++], optarg);
			break;
		case 'L':
			s->log_file = fopen(optarg, "we");
			if (!s->log_file)
				err(1, "%s", optarg);
			break;
		case 'n':
			snprintf(s->log.name, sizeof(s->log.name), "%s",
				 optarg);
			break;
		case 'g':
			s->progress = arg_number("progress", optarg, 1,
						 1000000);
			break;
		default:
			exit(2);
		}
	}
	if (optind == argc)
		errx(2, "the server needs the text that the workers have");
	if (!*s->log.name)
		snprintf(s->log.name, sizeof(s->log.name), "%s", s->tp->name);
	if (s->tp == &tp_tcp && (s->phases || s->config.budget))
		errx(2, "tcp loses nothing: --phases and --budget are for dblp");
	clr_init(&s->clr, eta, epoch);
}

int server_main(int argc, char **argv)
{
	struct server s = {
		.tp = &tp_tcp,
		.addr = { "127.0.0.1", 7000 },
		.config = {
			.magic = TRAIN_MAGIC,
			.seed = 1,
			.batch = 128,
			.context = 12,
			.hidden = 64,
			.feedback = true,
		},
		.rounds = 60,
		.workers = 3,
		.rate = 0.02,
		.progress = 10,
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	parse(&s, argc, argv);
	text_load(&s.text, argv + optind, argc - optind);
	set_up(&s);
	peers_accept(&s);
	run(&s);
	adam_free(&s.adam);
	free(s.params);
	free(s.avg);
	text_free(&s.text);
	return 0;
}
