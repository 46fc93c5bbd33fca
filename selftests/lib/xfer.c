// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command line of dblp-xfer.
 */
#include "xfer.h"

#include <errno.h>
#include <getopt.h>
#include <libdblp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xfer_config cfg = {
	.address	= "127.0.0.1",
	.count		= 1,
	.n_sizes	= 1,
	.size		= { 1000 },
	.cap		= UINT32_MAX,
	.element	= 8,
	.spray		= 1,
	.policy		= DBLP_POLICY_EAGER,
	.seed		= 1,
	.timeout	= 30,
	.allow_missing	= UINT64_MAX,
	.ect		= 1,
};

static void usage(void)
{
	fputs("Usage: dblp-xfer [OPTION...]\n"
	      "  --from NS --to NS    namespaces of both ends (default: here)\n"
	      "  --address ADDRESS    of the listening end\n"
	      "  --count N --size N[,N...]  messages and their sizes in turn\n"
	      "  --budget PPM --cap PPM --critical BYTES --element BYTES\n"
	      "  --policy full|eager|early --order auto|sequential|shuffled\n"
	      "  --deadline MICROSECONDS --spray PORTS\n"
	      "  --fill zero|keep --cc NAME --seed N --timeout SECONDS\n"
	      "  --zeros PERCENT      of the contents, in blocks of 4000 bytes\n"
	      "  --expect-elided N    minimum of zero bytes that are not sent\n"
	      "  --duplex             messages in both directions\n"
	      "  --per-message        budget by control message\n"
	      "  --nonblock           poll() and MSG_DONTWAIT\n"
	      "  --halfway COMMAND    run when half of the messages are sent\n"
	      "  --settled            run --halfway when they are closed\n"
	      "  --then PPM           budget that --halfway sets\n"
	      "  --connected COMMAND  run before the first message\n"
	      "  --spread             missing bytes must be spread over messages\n"
	      "  --expect-missing N   minimum of missing bytes\n"
	      "  --allow-missing N    maximum of missing bytes\n"
	      "  --ect 0|1            DBLP_ECT\n",
	      stderr);
	exit(2);
}

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || value > max) {
		fprintf(stderr, "dblp-xfer: '%s' is no number up to %llu\n",
			text, (unsigned long long)max);
		exit(2);
	}
	return value;
}

static uint32_t choice(const char *text, const char *const *names)
{
	uint32_t i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	fprintf(stderr, "dblp-xfer: '%s' is unknown\n", text);
	exit(2);
}

static void parse_sizes(char *text)
{
	char *word;

	cfg.n_sizes = 0;
	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (cfg.n_sizes == sizeof(cfg.size) / sizeof(cfg.size[0]))
			usage();
		cfg.size[cfg.n_sizes++] = number(word, DBLP_MSG_MAX);
	}
	if (!cfg.n_sizes)
		usage();
}

enum {
	OPT_FROM = 1, OPT_TO, OPT_ADDRESS, OPT_COUNT, OPT_SIZE, OPT_BUDGET,
	OPT_CAP, OPT_CRITICAL, OPT_ELEMENT, OPT_POLICY, OPT_ORDER, OPT_FILL,
	OPT_CC, OPT_DEADLINE, OPT_SEED, OPT_TIMEOUT, OPT_DUPLEX, OPT_PER_MESSAGE,
	OPT_NONBLOCK, OPT_CONNECTED, OPT_HALFWAY, OPT_THEN, OPT_SPREAD,
	OPT_EXPECT_MISSING, OPT_ALLOW_MISSING, OPT_ZEROS, OPT_EXPECT_ELIDED,
	OPT_SETTLED, OPT_ECT, OPT_SPRAY,
};

static const struct option options[] = {
	{ "from", 1, NULL, OPT_FROM },
	{ "to", 1, NULL, OPT_TO },
	{ "address", 1, NULL, OPT_ADDRESS },
	{ "count", 1, NULL, OPT_COUNT },
	{ "size", 1, NULL, OPT_SIZE },
	{ "budget", 1, NULL, OPT_BUDGET },
	{ "cap", 1, NULL, OPT_CAP },
	{ "critical", 1, NULL, OPT_CRITICAL },
	{ "element", 1, NULL, OPT_ELEMENT },
	{ "policy", 1, NULL, OPT_POLICY },
	{ "order", 1, NULL, OPT_ORDER },
	{ "fill", 1, NULL, OPT_FILL },
	{ "cc", 1, NULL, OPT_CC },
	{ "deadline", 1, NULL, OPT_DEADLINE },
	{ "seed", 1, NULL, OPT_SEED },
	{ "timeout", 1, NULL, OPT_TIMEOUT },
	{ "duplex", 0, NULL, OPT_DUPLEX },
	{ "per-message", 0, NULL, OPT_PER_MESSAGE },
	{ "nonblock", 0, NULL, OPT_NONBLOCK },
	{ "connected", 1, NULL, OPT_CONNECTED },
	{ "halfway", 1, NULL, OPT_HALFWAY },
	{ "settled", 0, NULL, OPT_SETTLED },
	{ "then", 1, NULL, OPT_THEN },
	{ "spread", 0, NULL, OPT_SPREAD },
	{ "expect-missing", 1, NULL, OPT_EXPECT_MISSING },
	{ "allow-missing", 1, NULL, OPT_ALLOW_MISSING },
	{ "zeros", 1, NULL, OPT_ZEROS },
	{ "expect-elided", 1, NULL, OPT_EXPECT_ELIDED },
	{ "ect", 1, NULL, OPT_ECT },
	{ "spray", 1, NULL, OPT_SPRAY },
	{ }
};

static void parse_option(int opt)
{
	switch (opt) {
	case OPT_FROM: cfg.from = optarg; break;
	case OPT_TO: cfg.to = optarg; break;
	case OPT_ADDRESS: cfg.address = optarg; break;
	case OPT_COUNT: cfg.count = number(optarg, 1000000); break;
	case OPT_SIZE: parse_sizes(optarg); break;
	case OPT_BUDGET: cfg.budget = number(optarg, UINT32_MAX); break;
	case OPT_CAP: cfg.cap = number(optarg, UINT32_MAX); break;
	case OPT_CRITICAL: cfg.critical = number(optarg, UINT32_MAX); break;
	case OPT_ELEMENT: cfg.element = number(optarg, UINT32_MAX); break;
	case OPT_POLICY: cfg.policy = choice(optarg, dblp_policy_names); break;
	case OPT_ORDER: cfg.order = choice(optarg, dblp_order_names); break;
	case OPT_FILL: cfg.fill = choice(optarg, dblp_fill_names); break;
	case OPT_CC: cfg.cc = optarg; break;
	case OPT_DEADLINE: cfg.deadline = number(optarg, UINT32_MAX); break;
	case OPT_SEED: cfg.seed = number(optarg, UINT64_MAX); break;
	case OPT_TIMEOUT: cfg.timeout = number(optarg, 86400); break;
	case OPT_DUPLEX: cfg.duplex = true; break;
	case OPT_PER_MESSAGE: cfg.per_message = true; break;
	case OPT_NONBLOCK: cfg.nonblock = true; break;
	case OPT_CONNECTED: cfg.connected = optarg; break;
	case OPT_HALFWAY: cfg.halfway = optarg; break;
	case OPT_SETTLED: cfg.settled = true; break;
	case OPT_THEN: cfg.then = number(optarg, UINT32_MAX); break;
	case OPT_SPREAD: cfg.spread = true; break;
	case OPT_EXPECT_MISSING:
		cfg.expect_missing = number(optarg, UINT64_MAX);
		break;
	case OPT_ALLOW_MISSING:
		cfg.allow_missing = number(optarg, UINT64_MAX);
		break;
	case OPT_ECT: cfg.ect = number(optarg, 1); break;
	case OPT_SPRAY: cfg.spray = number(optarg, UINT32_MAX); break;
	case OPT_ZEROS: cfg.zeros = number(optarg, 100); break;
	case OPT_EXPECT_ELIDED:
		cfg.expect_elided = number(optarg, UINT64_MAX);
		break;
	default: usage();
	}
}

void xfer_parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		parse_option(opt);
	if (optind != argc)
		usage();
	/* As wait_until() of lib.sh */
	if (getenv("KSFT_MACHINE_SLOW"))
		cfg.timeout *= 4;
}
