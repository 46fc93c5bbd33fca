// SPDX-License-Identifier: GPL-2.0-only
/* The command line, and the processes of a run. */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn.h"

struct config cfg = {
	.main		= { &proto_dblp, NULL },
	.n_from		= 1,
	.address	= "127.0.0.1",
	.port		= 7018,
	.listens	= true,
	.connects	= true,
	.per_host	= 1,
	.policy		= -1,
	.order		= -1,
	.seconds	= 10,
	.seed		= 1,
	.timeout	= 600,
};

struct results *results;

/* Defaults of the modes */
static const struct {
	const struct mode	*mode;
	uint32_t		size;
	uint32_t		count;
	uint32_t		warmup;
} modes[] = {
	{ &mode_bulk,		1000000,	100,	0 },
	{ &mode_fanin,		100000,		200,	2 },
	{ &mode_rr,		64,		10000,	100 },
	{ &mode_latency,	1000000,	100,	2 },
	{ &mode_idle,		1,		1,	0 },
	{ &mode_share,		100000,		1,	2 },
};

#define N_MODES		(sizeof(modes) / sizeof(modes[0]))

static int ready_pipe[2];

unsigned int total_connections(void)
{
	return cfg.n_from * cfg.per_host * (cfg.other.proto ? 2 : 1);
}

void listening(void)
{
	if (write(ready_pipe[1], "", 1) != 1)
		fail("pipe");
	close(ready_pipe[1]);
}

static void usage(FILE *f)
{
	unsigned int i;

	fputs("Usage: dblp-perf MODE [OPTION...]\n"
	      "Measure message workloads over AF_DBLP, TCP or SCTP.\n\n"
	      "Modes:\n", f);
	for (i = 0; i < N_MODES; i++)
		fprintf(f, "  %-20s %s\n", modes[i].mode->name,
			modes[i].mode->summary);
	fputs("\nTransport:\n"
	      "  --proto NAME         dblp (default), tcp or sctp\n"
	      "  --cc NAME            congestion control (default: the kernel's)\n"
	      "  --other NAME         mode share: the other side's transport (default tcp)\n"
	      "  --other-cc NAME      its congestion control\n"
	      "  --budget SHARE       loss budget of the messages: 0.02 or 2% (dblp)\n"
	      "  --policy NAME        full, eager or early (dblp)\n"
	      "  --order NAME         auto, sequential or shuffled (dblp)\n"
	      "  --key FILE           both ends authenticate packets with this (dblp)\n"
	      "  --buffer BYTES       SO_SNDBUF and SO_RCVBUF (default: the kernel's)\n"
	      "\nWorkload:\n"
	      "  -s, --size BYTES     of a message\n"
	      "  -n, --count N        messages or rounds that are measured\n"
	      "  -w, --warmup N       messages or rounds before those; in share, seconds\n"
	      "  -c, --connections N  of each host; in share, of each side\n"
	      "  -t, --time SECONDS   how long share and idle measure\n"
	      "  --verify             check each byte that is delivered\n"
	      "  --seed N             of the contents of messages\n"
	      "\nWhere:\n"
	      "  -a, --address ADDR   of the listening end (default 127.0.0.1)\n"
	      "  -p, --port N         of it (default 7018; share uses the next one, too)\n"
	      "  --to NAMESPACE       of the listening end (default: this one)\n"
	      "  --from NAMESPACE[,NAMESPACE...]  of the connecting ends\n"
	      "  --listen             only the listening end; the others are elsewhere\n"
	      "  --connect            only the connecting ends\n"
	      "  --hosts N            with --listen: number of hosts with connecting ends\n"
	      "\nOutput:\n"
	      "  -j, --json           one JSON object\n"
	      "  --samples            with every sample in it\n"
	      "  --timeout SECONDS    give up after this time (default 600)\n"
	      "  -h, --help           this\n"
	      "\nExit status: 0; 1 when the run has failed; 2 for a wrong command line; 4 when\n"
	      "this kernel lacks a transport, a congestion control or an option.\n", f);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	fputs("Try 'dblp-perf --help'.\n", stderr);
	exit(EXIT_USAGE);
}

static uint64_t number(const char *name, const char *text, uint64_t min,
		       uint64_t max)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		wrong("--%s takes a number from %llu to %llu, not '%s'", name,
		      (unsigned long long)min, (unsigned long long)max, text);
	return value;
}

static uint32_t share(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && !strcmp(end, "%"))
		value /= 100;
	else if (end == text || *end)
		value = -1;
	if (!(value >= 0 && value <= 1))
		wrong("--budget takes a share such as 0.02 or 2%%, not '%s'",
		      text);
	return lround(value * DBLP_PPM);
}

static int choice(const char *name, const char *text, const char *const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	wrong("--%s cannot be '%s'", name, text);
}

static const struct proto *proto_option(const char *name, const char *text)
{
	const struct proto *proto = proto_find(text);

	if (!proto)
		wrong("--%s is dblp, tcp or sctp, not '%s'", name, text);
	return proto;
}

/* The contents of a file, as a key; the kernel checks it */
static const struct dblp_auth_key *key_file(const char *name)
{
	static struct dblp_auth_key key;
	FILE *f = fopen(name, "re");

	if (!f)
		wrong("--key: %s: %s", name, strerror(errno));
	key.length = fread(key.key, 1, sizeof(key.key), f);
	if (key.length < DBLP_AUTH_KEY_MIN || fgetc(f) != EOF)
		wrong("--key takes a file of %u to %u bytes, not '%s'",
		      DBLP_AUTH_KEY_MIN, DBLP_AUTH_KEY_MAX, name);
	fclose(f);
	return &key;
}

static void set_hosts(char *text)
{
	char *word;

	cfg.n_from = 0;
	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (cfg.n_from == MAX_HOSTS)
			wrong("more than %u hosts", MAX_HOSTS);
		cfg.from[cfg.n_from++] = word;
	}
	if (!cfg.n_from)
		wrong("--from names no namespace");
}

enum {
	OPT_PROTO = 256, OPT_CC, OPT_OTHER, OPT_OTHER_CC, OPT_BUDGET,
	OPT_POLICY, OPT_ORDER, OPT_KEY, OPT_BUFFER, OPT_VERIFY, OPT_SEED, OPT_TO,
	OPT_FROM, OPT_LISTEN, OPT_CONNECT, OPT_HOSTS, OPT_SAMPLES, OPT_TIMEOUT,
};

static const struct option options[] = {
	{ "proto", 1, NULL, OPT_PROTO },
	{ "cc", 1, NULL, OPT_CC },
	{ "other", 1, NULL, OPT_OTHER },
	{ "other-cc", 1, NULL, OPT_OTHER_CC },
	{ "budget", 1, NULL, OPT_BUDGET },
	{ "policy", 1, NULL, OPT_POLICY },
	{ "order", 1, NULL, OPT_ORDER },
	{ "key", 1, NULL, OPT_KEY },
	{ "buffer", 1, NULL, OPT_BUFFER },
	{ "size", 1, NULL, 's' },
	{ "count", 1, NULL, 'n' },
	{ "warmup", 1, NULL, 'w' },
	{ "connections", 1, NULL, 'c' },
	{ "time", 1, NULL, 't' },
	{ "verify", 0, NULL, OPT_VERIFY },
	{ "seed", 1, NULL, OPT_SEED },
	{ "address", 1, NULL, 'a' },
	{ "port", 1, NULL, 'p' },
	{ "to", 1, NULL, OPT_TO },
	{ "from", 1, NULL, OPT_FROM },
	{ "listen", 0, NULL, OPT_LISTEN },
	{ "connect", 0, NULL, OPT_CONNECT },
	{ "hosts", 1, NULL, OPT_HOSTS },
	{ "json", 0, NULL, 'j' },
	{ "samples", 0, NULL, OPT_SAMPLES },
	{ "timeout", 1, NULL, OPT_TIMEOUT },
	{ "help", 0, NULL, 'h' },
	{ }
};

static void transport_option(int opt)
{
	switch (opt) {
	case OPT_PROTO: cfg.main.proto = proto_option("proto", optarg); break;
	case OPT_CC: cfg.main.cc = optarg; break;
	case OPT_OTHER: cfg.other.proto = proto_option("other", optarg); break;
	case OPT_OTHER_CC: cfg.other.cc = optarg; break;
	case OPT_BUDGET: cfg.budget = share(optarg); break;
	case OPT_POLICY:
		cfg.policy = choice("policy", optarg, dblp_policy_names);
		break;
	case OPT_ORDER:
		cfg.order = choice("order", optarg, dblp_order_names);
		break;
	case OPT_KEY: cfg.key = key_file(optarg); break;
	case OPT_BUFFER:
		cfg.buffer = number("buffer", optarg, 1, INT32_MAX / 2);
		break;
	default: exit(EXIT_USAGE);
	}
}

static void parse_option(int opt)
{
	switch (opt) {
	case 's': cfg.size = number("size", optarg, 1, DBLP_MSG_MAX); break;
	case 'n': cfg.count = number("count", optarg, 1, 100000000); break;
	case 'w': cfg.warmup = number("warmup", optarg, 0, 1000000); break;
	case 'c':
		cfg.per_host = number("connections", optarg, 1, 60000);
		break;
	case 't': cfg.seconds = number("time", optarg, 1, 86400); break;
	case 'a': cfg.address = optarg; break;
	case 'p': cfg.port = number("port", optarg, 1, 65534); break;
	case 'j': cfg.json = true; break;
	case 'h':
		usage(stdout);
		exit(0);
	case OPT_VERIFY: cfg.verify = true; break;
	case OPT_SEED: cfg.seed = number("seed", optarg, 0, UINT64_MAX); break;
	case OPT_TO: cfg.to = optarg; break;
	case OPT_FROM: set_hosts(optarg); break;
	case OPT_LISTEN: cfg.connects = false; break;
	case OPT_CONNECT: cfg.listens = false; break;
	case OPT_HOSTS:
		cfg.n_from = number("hosts", optarg, 1, MAX_HOSTS);
		break;
	case OPT_SAMPLES: cfg.samples = true; break;
	case OPT_TIMEOUT:
		cfg.timeout = number("timeout", optarg, 1, 1000000);
		break;
	case '?':
		fputs("Try 'dblp-perf --help'.\n", stderr);
		exit(EXIT_USAGE);
	default: transport_option(opt);
	}
}

static void check_config(void)
{
	bool shares = cfg.mode == &mode_share;

	if (!cfg.listens && !cfg.connects)
		wrong("--listen and --connect exclude each other: leave out both to start both ends");
	if (cfg.other.proto && !shares)
		wrong("--other is for mode share");
	if (shares && !cfg.other.proto)
		cfg.other.proto = &proto_tcp;
	if (cfg.other.cc && !shares)
		wrong("--other-cc is for mode share");
	if (!cfg.main.proto->lossy &&
	    (cfg.budget || cfg.policy >= 0 || cfg.order >= 0 || cfg.key))
		wrong("%s has no --budget, --policy, --order and --key",
		      cfg.main.proto->name);
	if ((cfg.mode == &mode_rr || cfg.mode == &mode_latency) &&
	    total_connections() != 1)
		wrong("mode %s has one connection", cfg.mode->name);
	if (cfg.mode == &mode_idle && cfg.n_from != 1)
		wrong("mode idle has one host on the connecting side");
}

static void parse(int argc, char **argv)
{
	unsigned int i;
	int opt;

	if (argc > 1 && *argv[1] != '-') {
		for (i = 0; i < N_MODES; i++)
			if (!strcmp(argv[1], modes[i].mode->name))
				break;
		if (i == N_MODES)
			wrong("there is no mode '%s'", argv[1]);
		cfg.mode = modes[i].mode;
		cfg.size = modes[i].size;
		cfg.count = modes[i].count;
		cfg.warmup = modes[i].warmup;
		optind = 2;
	}
	while ((opt = getopt_long(argc, argv, "s:n:w:c:t:a:p:jh", options,
				  NULL)) != -1)
		parse_option(opt);
	if (!cfg.mode)
		wrong("a mode is needed");
	if (optind != argc)
		wrong("'%s' is one word too many", argv[optind]);
	check_config();
}

static void map_results(void)
{
	size_t size = sizeof(*results) +
		      (size_t)cfg.count * sizeof(results->sample[0]);

	results = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED)
		fail("no memory for %u samples", cfg.count);
	if (pipe(ready_pipe))
		fail("pipe()");
}

/* Fork a child that does not outlive this process */
static pid_t start(const char *netns)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork()");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	if (netns)
		netns_enter(netns);
	return 0;
}

static void start_listening_end(void)
{
	if (start(cfg.to))
		return;
	close(ready_pipe[0]);
	cfg.mode->listen();
	_exit(0);
}

static void start_connecting_end(unsigned int index, const char *netns)
{
	if (start(netns))
		return;
	cfg.mode->connect(index);
	_exit(0);
}

/* Hosts take turns, so that the connections of one host do not come at once. */
static unsigned int start_connecting_ends(void)
{
	unsigned int n = cfg.mode->one_connector ? 1 : total_connections(), i;

	for (i = 0; i < n; i++)
		start_connecting_end(i, cfg.from[i % cfg.n_from]);
	return n;
}

/* The first process that fails prints why; the others end with this process. */
static void await_all(unsigned int n)
{
	int status;

	while (n--) {
		if (wait(&status) < 0)
			fail("wait()");
		if (!status)
			continue;
		errno = 0;
		if (WIFSIGNALED(status))
			fail("a process of the run has died: %s",
			     strsignal(WTERMSIG(status)));
		_exit(WEXITSTATUS(status));
	}
}

static void timed_out(int sig)
{
	static const char text[] =
		"dblp-perf: the run did not end in time (see --timeout)\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_FAILED);
	_exit(EXIT_FAILED);
}

static void run(void)
{
	unsigned int children = 0;
	char byte;

	signal(SIGALRM, timed_out);
	alarm(cfg.timeout);
	if (cfg.listens) {
		start_listening_end();
		children++;
		close(ready_pipe[1]);
		if (read(ready_pipe[0], &byte, 1) != 1)
			await_all(children);
	}
	if (cfg.connects)
		children += start_connecting_ends();
	await_all(children);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	map_results();
	run();
	if (results->valid)
		report();
	return 0;
}
