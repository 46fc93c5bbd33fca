// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <libdblp.h>

#include "arg.h"
#include "collective.h"
#include "conn.h"
#include "options.h"

#define DAY	86400000	/* ms */

static const struct config defaults = {
	.main		= { &proto_dblp, NULL },
	.n_from		= 1,
	.address	= "127.0.0.1",
	.port		= 7018,
	.listens	= true,
	.connects	= true,
	.per_host	= 1,
	.policy		= -1,
	.order		= -1,
	.time_ms	= 10000,
	.seed		= 1,
	.timeout_ms	= 600000,
};

/* Defaults of each mode */
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
	{ &mode_share,		100000,		1,	2000 },
	{ &mode_collective,	1000000,	100,	2 },
};

#define N_MODES		(sizeof(modes) / sizeof(modes[0]))

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
	      "  --other NAME         share: transport of the other side (default tcp)\n"
	      "  --other-cc NAME      share: its congestion control\n"
	      "  --budget SHARE       dblp: loss budget of the messages, such as 2%\n"
	      "  --policy NAME        dblp: full, eager or early\n"
	      "  --order NAME         dblp: auto, sequential or shuffled\n"
	      "  --spray N            dblp: number of UDP ports that each end sends from\n"
	      "  --key FILE           dblp: authenticate packets with the contents of FILE\n"
	      "  --buffer BYTES       SO_SNDBUF and SO_RCVBUF (default: the kernel's)\n"
	      "\nWorkload:\n"
	      "  -s, --size BYTES     size of a message; collective: of a vector, or B,B,...\n"
	      "  -n, --count N        measured messages or rounds\n"
	      "  -w, --warmup N       messages or rounds before them; share: a time\n"
	      "  -c, --connections N  connections of each host; share: of each side\n"
	      "  -t, --time TIME      duration of share and idle (default 10s)\n"
	      "  --hook COMMAND       fanin: run before each round; $DBLP_ROUND is its number\n"
	      "  --verify             check each delivered byte\n"
	      "  --seed N             seed of the contents of messages (default 1)\n"
	      "\nWhere:\n"
	      "  -a, --address ADDR   address of the listening end (default 127.0.0.1)\n"
	      "  -p, --port N         its port (default 7018); share also uses the next one\n"
	      "  --to NAMESPACE       namespace of the listening end (default: this one)\n"
	      "  --from NAMESPACE[,NAMESPACE...]  namespaces of the connecting ends\n"
	      "  --listen             start only the listening end\n"
	      "  --connect            start only the connecting ends\n"
	      "  --hosts N            with --listen: number of hosts with connecting ends\n"
	      "\nMode collective:\n"
	      "  --spawn N            start N ranks here, or\n"
	      "  --spawn NAMESPACE,NAMESPACE...  one rank in each namespace\n"
	      "  --rank N, --nranks N run rank N of this number of ranks (default: from\n"
	      "                       the environment, such as RANK and WORLD_SIZE)\n"
	      "  --rendezvous AT      tcp://ADDR:PORT of rank 0, file:PATH or env (default)\n"
	      "  --plan NAME          ps, transpose (default), ring, tree, bcube or average\n"
	      "  --op NAME            allreduce (default), reduce-scatter or allgather\n"
	      "  --server             ps, tree: the root contributes nothing\n"
	      "  --root N             ps, tree: rank of the root (default 0)\n"
	      "  --fanin N            tree: children of a rank (default 2)\n"
	      "  --levels N           bcube, average: digits of a rank's number (default 1)\n"
	      "  --radix N[,N...]     bcube, average: radix of each digit, lowest first\n"
	      "  --devices DEV[,DEV...]  device of each level (default: as routed)\n"
	      "  --rule NAME          bubble (default), rescale or feedback\n"
	      "  --dtype NAME         float32 (default), float16, bfloat16, or int32, whose\n"
	      "                       sums are checked\n"
	      "  --carry              later rounds may use budget that is left\n"
	      "  --sparse[=N]         do not send blocks of N zero elements (default: the N\n"
	      "                       that sends the fewest bytes)\n"
	      "  --density SHARE      share of nonzero elements (default 100%)\n"
	      "  --cluster N          nonzero elements are in groups of N (default 1)\n"
	      "  --vectors FILE       contribute the vectors of FILE, round by round\n"
	      "  --wait TIME          continue without ranks that are later than this\n"
	      "  --gap TIME           time between two rounds\n"
	      "  --message BYTES      maximum size of a message (default 1048576)\n"
	      "  --job N, --phase N   dblp: job of the connections, phase of the data\n"
	      "  --lane WORD[,WORD...]  one more connection to each peer: share=SHARE of the\n"
	      "                       vector, tos=N, priority=N, budget=SHARE, policy=NAME,\n"
	      "                       not-ect, large=SHARE of the elements, rest=LANE of others\n"
	      "\nOutput:\n"
	      "  -j, --json           one JSON object; collective: one for each size\n"
	      "  --samples            include every sample\n"
	      "  --timeout TIME       fail after this time (default 10min)\n"
	      "  -h, --help           print this help\n"
	      "\nA SHARE is 2% or 20000ppm, a TIME 500ms, 1.5s, 2min or 1h. BYTES are 64000, 64kB or\n"
	      "64KiB.\n"
	      "\nExit status: 0 on success; 1 if the run failed; 2 for an invalid command line;\n"
	      "4 if this kernel does not support a transport, congestion control or option.\n", f);
}

static const struct proto *proto_option(const char *name, const char *text)
{
	static const struct proto *const all[] = {
		&proto_dblp, &proto_tcp, &proto_sctp,
	};
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, text))
			return all[i];
	wrong("--%s takes dblp, tcp or sctp, not '%s'", name, text);
}

/* Reads a key from a file */
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

static const struct option options[] = {
	{ "proto", 1, NULL, OPT_PROTO },
	{ "cc", 1, NULL, OPT_CC },
	{ "other", 1, NULL, OPT_OTHER },
	{ "other-cc", 1, NULL, OPT_OTHER_CC },
	{ "budget", 1, NULL, OPT_BUDGET },
	{ "policy", 1, NULL, OPT_POLICY },
	{ "order", 1, NULL, OPT_ORDER },
	{ "spray", 1, NULL, OPT_SPRAY },
	{ "key", 1, NULL, OPT_KEY },
	{ "buffer", 1, NULL, OPT_BUFFER },
	{ "size", 1, NULL, 's' },
	{ "count", 1, NULL, 'n' },
	{ "warmup", 1, NULL, 'w' },
	{ "connections", 1, NULL, 'c' },
	{ "time", 1, NULL, 't' },
	{ "hook", 1, NULL, OPT_HOOK },
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
	{ "plan", 1, NULL, OPT_PLAN },
	{ "op", 1, NULL, OPT_OP },
	{ "rule", 1, NULL, OPT_RULE },
	{ "dtype", 1, NULL, OPT_DTYPE },
	{ "carry", 0, NULL, OPT_CARRY },
	{ "sparse", 2, NULL, OPT_SPARSE },
	{ "density", 1, NULL, OPT_DENSITY },
	{ "cluster", 1, NULL, OPT_CLUSTER },
	{ "wait", 1, NULL, OPT_WAIT },
	{ "gap", 1, NULL, OPT_GAP },
	{ "root", 1, NULL, OPT_ROOT },
	{ "server", 0, NULL, OPT_SERVER },
	{ "fanin", 1, NULL, OPT_FANIN },
	{ "levels", 1, NULL, OPT_LEVELS },
	{ "radix", 1, NULL, OPT_RADIX },
	{ "spawn", 1, NULL, OPT_SPAWN },
	{ "rank", 1, NULL, OPT_RANK },
	{ "nranks", 1, NULL, OPT_NRANKS },
	{ "rendezvous", 1, NULL, OPT_RENDEZVOUS },
	{ "devices", 1, NULL, OPT_DEVICES },
	{ "job", 1, NULL, OPT_JOB },
	{ "phase", 1, NULL, OPT_PHASE },
	{ "message", 1, NULL, OPT_MESSAGE },
	{ "vectors", 1, NULL, OPT_VECTORS },
	{ "lane", 1, NULL, OPT_LANE },
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
	case OPT_BUDGET:
		cfg.budget = share("budget", optarg);
		cfg.has_budget = true;
		break;
	case OPT_POLICY:
		cfg.policy = choice("policy", optarg, dblp_policy_names);
		break;
	case OPT_ORDER:
		cfg.order = choice("order", optarg, dblp_order_names);
		break;
	case OPT_SPRAY: cfg.spray = number("spray", optarg, 1, UINT16_MAX); break;
	case OPT_KEY: cfg.key = key_file(optarg); break;
	case OPT_BUFFER:
		cfg.buffer = size("buffer", optarg, 1, INT32_MAX / 2);
		break;
	default: collective_option(opt, optarg);
	}
}

/* The warm-up of mode share is a time, which may be 0s; that of others is a number */
static uint32_t warmup(const char *text)
{
	uint32_t ms = 0;

	if (cfg.mode != &mode_share)
		return number("warmup", text, 0, 1000000);
	return dblp_time_parse(text, &ms) || ms ? duration("warmup", text, DAY) : 0;
}

static void parse_option(int opt)
{
	switch (opt) {
	case 's':
		if (cfg.mode == &mode_collective)
			collective_option(opt, optarg);
		else
			cfg.size = size("size", optarg, 1, DBLP_MSG_MAX);
		break;
	case 'n': cfg.count = number("count", optarg, 1, 100000000); break;
	case 'w': cfg.warmup = warmup(optarg); break;
	case 'c':
		cfg.per_host = number("connections", optarg, 1, 60000);
		break;
	case 't': cfg.time_ms = duration("time", optarg, DAY); break;
	case 'a': cfg.address = optarg; break;
	case 'p': cfg.port = number("port", optarg, 1, 65534); break;
	case 'j': cfg.json = true; break;
	case 'h':
		usage(stdout);
		exit(0);
	case OPT_HOOK: cfg.hook = optarg; break;
	case OPT_VERIFY: cfg.verify = true; break;
	case OPT_SEED: cfg.seed = number("seed", optarg, 0, UINT64_MAX); break;
	case OPT_TO: cfg.to = optarg; break;
	case OPT_FROM: set_hosts("from", optarg); break;
	case OPT_LISTEN: cfg.connects = false; break;
	case OPT_CONNECT: cfg.listens = false; break;
	case OPT_HOSTS:
		cfg.n_from = number("hosts", optarg, 1, MAX_HOSTS);
		break;
	case OPT_SAMPLES: cfg.samples = true; break;
	case OPT_TIMEOUT:
		cfg.timeout_ms = duration("timeout", optarg, 12 * DAY);
		break;
	case '?':
		fputs("Try 'dblp-perf --help'.\n", stderr);
		exit(EXIT_USAGE);
	default: transport_option(opt);
	}
}

/* Does mode collective share option @opt with other modes? */
static bool is_common(int opt)
{
	static const int common[] = {
		's', 'n', 'w', 'j', 'h', OPT_PROTO, OPT_CC, OPT_BUDGET, OPT_POLICY,
		OPT_SEED, OPT_SAMPLES, OPT_TIMEOUT,
	};
	unsigned int i;

	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (common[i] == opt)
			return true;
	return false;
}

/* Refuse options of another mode, because they would have no effect */
static void check_option(int opt)
{
	const bool collective = cfg.mode == &mode_collective;
	const struct option *o = options;

	while (o->val != opt && o->name)
		o++;
	if (o->name && opt >= OPT_PLAN && !collective)
		wrong("--%s is for mode collective", o->name);
	if (o->name && opt < OPT_PLAN && collective && !is_common(opt))
		wrong("mode collective has no --%s", o->name);
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
	if (cfg.hook && (cfg.mode != &mode_fanin || !cfg.listens))
		wrong("--hook is for the listening end of mode fanin");
	if (!cfg.main.proto->lossy &&
	    (cfg.budget || cfg.policy >= 0 || cfg.order >= 0 || cfg.key ||
	     cfg.spray))
		wrong("%s has no --budget, --policy, --order, --spray and --key",
		      cfg.main.proto->name);
	if ((cfg.mode == &mode_rr || cfg.mode == &mode_latency) &&
	    total_connections() != 1)
		wrong("mode %s takes only one connection", cfg.mode->name);
	if (cfg.mode == &mode_idle && cfg.n_from != 1)
		wrong("mode idle takes only one host on the connecting side");
	if (cfg.mode == &mode_collective)
		collective_check();
}

void options_parse(int argc, char **argv)
{
	unsigned int i;
	int opt;

	cfg = defaults;
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
				  NULL)) != -1) {
		check_option(opt);
		parse_option(opt);
	}
	if (!cfg.mode)
		wrong("a mode is required");
	if (optind != argc)
		wrong("unexpected word '%s'", argv[optind]);
	check_config();
}
