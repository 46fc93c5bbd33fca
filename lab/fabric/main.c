// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <arg.h>
#include "process.h"

static const char usage[] =
"Usage: dblp-fabric schedule --listen ADDRESS:PORT --workers N --count N [OPTION...]\n"
"       dblp-fabric serve --scheduler ADDRESS:PORT --count N --eta R [OPTION...]\n"
"       dblp-fabric replica --scheduler ADDRESS:PORT --count N --eta R [OPTION...]\n"
"       dblp-fabric join --scheduler ADDRESS:PORT --count N [OPTION...]\n"
"Asynchronous updates of a model. A server has the model, workers pull it and push\n"
"updates (dblp_fabric(3)), and a scheduler decides when and where each update is sent.\n"
"\n"
"  schedule            order, join and drop updates\n"
"  serve               serve the model, which starts as 0\n"
"  replica             follow the server, and replace it after a failure\n"
"  join                join updates of several workers into one message, on this host\n"
"\n"
"  --count N           elements of the model, float32\n"
"  --timeout TIME      timeout of a connection on which a message is due (default 10s)\n"
"schedule:\n"
"  --listen A:P        address and port to listen at, over TCP\n"
"  --workers N         number of workers, which are 0 to N - 1\n"
"  --policy POLICY     ordered (default), or fifo: send each update to the server at once\n"
"  --delay-bound N     maximum number of updates applied between reading a model and\n"
"                      applying the update computed from it (default 4 for each worker);\n"
"                      later updates are dropped before they are sent\n"
"serve, replica, join:\n"
"  --scheduler A:P     address and port of the scheduler\n"
"  --transport NAME    transport of updates and models: dblp (default) or tcp\n"
"serve, replica:\n"
"  --eta R             step size of an update without delay\n"
"  --div-max R         maximum sum of the norms of the steps that the replica lacks\n"
"                      (default: no bound)\n"
"  --log FILE          write a line for each step: version, updates, norm, norms that\n"
"                      the replica lacks, delay\n";

enum verb {
	SCHEDULE	= 1 << 0,
	SERVE		= 1 << 1,
	REPLICA		= 1 << 2,
	JOIN		= 1 << 3,
	SERVERS		= SERVE | REPLICA,
	MEMBERS		= SERVERS | JOIN,
	ALL		= SCHEDULE | MEMBERS,
};

static const struct {
	const char	*name;
	enum verb	verb;
} verbs[] = {
	{ "schedule", SCHEDULE },
	{ "serve", SERVE },
	{ "replica", REPLICA },
	{ "join", JOIN },
};

/* Options, and the subcommands that take them */
static const struct {
	struct option	option;
	unsigned int	verbs;
} list[] = {
#define OPTION(name, letter, verbs) { { name, required_argument, NULL, letter }, verbs }
	OPTION("listen", 'l', SCHEDULE),
	OPTION("workers", 'w', SCHEDULE),
	OPTION("policy", 'p', SCHEDULE),
	OPTION("delay-bound", 'b', SCHEDULE),
	OPTION("scheduler", 's', MEMBERS),
	OPTION("transport", 't', MEMBERS),
	OPTION("count", 'c', ALL),
	OPTION("timeout", 'm', ALL),
	OPTION("eta", 'e', SERVERS),
	OPTION("div-max", 'd', SERVERS),
	OPTION("log", 'o', SERVERS),
#undef OPTION
};

#define OPTIONS	(sizeof(list) / sizeof(*list))

static const char *transport(const char *text)
{
	if (dblp_fab_protocol(text) < 0)
		errx(2, "--transport is dblp or tcp, not '%s'", text);
	return text;
}

static FILE *open_log(const char *text)
{
	FILE *log = fopen(text, "we");

	if (!log)
		err(1, "%s", text);
	return log;
}

static void set(struct options *o, int opt, const char *text)
{
	static const char *const policies[] = { "ordered", "fifo", NULL };

	switch (opt) {
	case 'l':
		o->listen = arg_address("listen", text);
		break;
	case 'w':
		o->workers = arg_number("workers", text, 1, DBLP_FAB_WORKERS_MAX);
		break;
	case 'p':
		o->fifo = arg_name("policy", text, policies);
		break;
	case 'b':
		o->bound = arg_number("delay-bound", text, 1, UINT32_MAX);
		break;
	case 's':
		o->scheduler = arg_address("scheduler", text);
		break;
	case 't':
		o->transport = transport(text);
		break;
	case 'c':
		o->count = arg_number("count", text, 1, DBLP_FAB_COUNT_MAX);
		break;
	case 'm':
		o->timeout_ms = arg_time("timeout", text, 2000, 3600000);
		break;
	case 'e':
		o->eta = arg_real("eta", text, 1e-30, 1e30);
		break;
	case 'd':
		o->div_max = arg_real("div-max", text, 1e-30, 1e30);
		break;
	case 'o':
		o->log = open_log(text);
		break;
	default:
		exit(2);
	}
}

static void check(const struct options *o, enum verb verb)
{
	if (!o->count)
		errx(2, "--count is needed");
	if (verb == SCHEDULE && (!o->listen.sdblp_port || !o->workers))
		errx(2, "a scheduler needs --listen and --workers");
	if (verb & MEMBERS && !o->scheduler.sdblp_port)
		errx(2, "--scheduler is needed");
	if (verb & SERVERS && !o->eta)
		errx(2, "--eta is needed");
}

static void parse(struct options *o, enum verb verb, int argc, char **argv)
{
	struct option options[OPTIONS + 1] = { 0 };
	size_t i, n = 0;
	int opt;

	for (i = 0; i < OPTIONS; i++)
		if (list[i].verbs & verb)
			options[n++] = list[i].option;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		set(o, opt, optarg);
	if (optind < argc)
		errx(2, "unexpected argument '%s'", argv[optind]);
	check(o, verb);
	if (!o->bound)
		o->bound = 4 * o->workers;
}

/* Up to 1024 workers need a descriptor each, more than the usual soft limit */
static void allow_connections(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int run(const struct options *o, enum verb verb)
{
	if (verb == SCHEDULE)
		return schedule(o);
	return verb == JOIN ? join(o) : serve(o, verb == REPLICA);
}

int main(int argc, char **argv)
{
	static struct options o = { .transport = "dblp", .timeout_ms = 10000 };
	size_t i;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(usage, stdout);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	allow_connections();
	for (i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (strcmp(argv[1], verbs[i].name))
			continue;
		parse(&o, verbs[i].verb, argc - 1, argv + 1);
		return run(&o, verbs[i].verb);
	}
	fputs(usage, stderr);
	return 2;
}
