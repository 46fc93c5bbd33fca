// SPDX-License-Identifier: GPL-2.0-only
/* The command line of the server. */
#include <err.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* Options that set an unsigned int of &struct server. */
static const struct {
	const char	*name;
	size_t		offset;
	unsigned long	min;
	unsigned long	max;
} numbers[] = {
#define NUMBER(name, field, min, max) \
	{ name, offsetof(struct server, field), min, max }
	NUMBER("port", addr.port, 1, 65535),
	NUMBER("workers", workers, 1, 1024),
	NUMBER("rounds", rounds, 1, 1000000),
	NUMBER("batch", config.batch, 1, 65536),
	NUMBER("context", config.context, 1, 256),
	NUMBER("hidden", config.hidden, 1, 4096),
	NUMBER("seed", config.seed, 0, UINT32_MAX),
	NUMBER("epoch", clr.epoch, 1, 1000000),
	NUMBER("progress", progress, 1, 1000000),
#undef NUMBER
};

#define NUMBERS	(sizeof(numbers) / sizeof(*numbers))

/* Value of getopt_long() for numbers[0], above all characters. */
#define FIRST_NUMBER	256

static const struct option others[] = {
	{ "transport", required_argument, NULL, 't' },
	{ "address", required_argument, NULL, 'a' },
	{ "rate", required_argument, NULL, 'r' },
	{ "budget", required_argument, NULL, 'b' },
	{ "phases", required_argument, NULL, 'p' },
	{ "eta", required_argument, NULL, 'e' },
	{ "no-feedback", no_argument, NULL, 'f' },
	{ "hook", required_argument, NULL, 'h' },
	{ "log", required_argument, NULL, 'l' },
	{ "name", required_argument, NULL, 'n' },
};

#define OTHERS	(sizeof(others) / sizeof(*others))

static void parse_number(struct server *s, unsigned int i, const char *text)
{
	unsigned int *field = (void *)((char *)s + numbers[i].offset);

	*field = arg_number(numbers[i].name, text, numbers[i].min,
			    numbers[i].max);
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

static void parse_hook(struct server *s, char *text)
{
	if (s->hooks == SERVER_HOOKS)
		errx(2, "--hook: at most %d", SERVER_HOOKS);
	hook_parse(&s->hook[s->hooks++], text);
}

static void parse_option(struct server *s, int opt, char *text)
{
	switch (opt) {
	case 't':
		s->tp = arg_transport(text);
		break;
	case 'a':
		s->addr.host = text;
		break;
	case 'r':
		s->rate = arg_real("rate", text, 0, 10);
		break;
	case 'b':
		s->config.budget = arg_percent("budget", text);
		break;
	case 'p':
		parse_phases(s, text);
		break;
	case 'e':
		s->clr.eta = arg_real("eta", text, 0, 1000);
		break;
	case 'f':
		s->config.feedback = false;
		break;
	case 'h':
		parse_hook(s, text);
		break;
	case 'l':
		s->log_file = fopen(text, "we");
		if (!s->log_file)
			err(1, "%s", text);
		break;
	case 'n':
		snprintf(s->log.name, sizeof(s->log.name), "%s", text);
		break;
	default:
		exit(2);
	}
}

static void parse(struct server *s, int argc, char **argv)
{
	struct option options[NUMBERS + OTHERS + 1] = { 0 };
	unsigned int i;
	int opt;

	for (i = 0; i < NUMBERS; i++)
		options[i] = (struct option){ numbers[i].name,
			required_argument, NULL, FIRST_NUMBER + i };
	for (i = 0; i < OTHERS; i++)
		options[NUMBERS + i] = others[i];

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt >= FIRST_NUMBER)
			parse_number(s, opt - FIRST_NUMBER, optarg);
		else
			parse_option(s, opt, optarg);
	}
	if (optind == argc)
		errx(2, "the server needs the same text files as the workers");
	if (s->tp == &tp_tcp && (s->phases || s->config.budget))
		errx(2, "--phases and --budget need --transport dblp");
	if (!*s->log.name)
		snprintf(s->log.name, sizeof(s->log.name), "%s", s->tp->name);
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
	clr_init(&s.clr, 0.5, 4);
	parse(&s, argc, argv);
	text_load(&s.text, argv + optind, argc - optind);
	server_set_up(&s);
	peers_accept(&s);
	server_run(&s);
	server_free(&s);
	return 0;
}
