// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <arg.h>
#include <tune.h>
#include "lossy.h"
#include "options.h"

#define RUN	OPTIONS_RUN
#define PROFILE	OPTIONS_PROFILE
#define ASYNC	OPTIONS_ASYNC

/* Options that set a number of &struct options, and the subcommands that take them */
static const struct {
	const char	*name;
	unsigned int	verbs;
	size_t		offset;
	uint64_t	(*parse)(const char *name, const char *text, uint64_t min, uint64_t max);
	uint64_t	min;
	uint64_t	max;
} numbers[] = {
#define VALUE(name, verbs, field, parse, min, max) \
	{ name, verbs, offsetof(struct options, field), parse, min, max }
#define NUMBER(name, verbs, field, min, max)	VALUE(name, verbs, field, arg_number, min, max)
#define TIME(name, verbs, field, min, max)	VALUE(name, verbs, field, arg_time, min, max)
	NUMBER("rank", RUN, attr.rank, 0, DBLP_RANKS_MAX - 1),
	NUMBER("nranks", RUN | PROFILE, attr.nranks, 1, DBLP_RANKS_MAX),
	NUMBER("job", RUN, attr.job, 1, UINT32_MAX),
	NUMBER("rounds", RUN | PROFILE | ASYNC, config.rounds, 1, 1000000),
	NUMBER("batch", RUN | PROFILE | ASYNC, config.batch, 1, 65536),
	NUMBER("context", RUN | PROFILE | ASYNC, config.context, 1, 256),
	NUMBER("hidden", RUN | PROFILE | ASYNC, config.hidden, 1, 4096),
	NUMBER("seed", RUN | PROFILE | ASYNC, config.seed, 0, UINT32_MAX),
	NUMBER("epoch", RUN | PROFILE, config.epoch, 1, 1000000),
	NUMBER("fanin", RUN | PROFILE, config.fanin, 1, DBLP_RANKS_MAX),
	NUMBER("levels", RUN | PROFILE, config.levels, 1, DBLP_LEVELS_MAX),
	TIME("wait", RUN, config.wait_ms, 1, 3600000),
	NUMBER("checkpoint-rounds", RUN, config.every, 1, 1000000),
	NUMBER("progress", RUN, progress, 1, 1000000),
	NUMBER("seeds", PROFILE, seeds, 2, SEEDS_MAX),
	VALUE("segment", PROFILE, segment, arg_size, 64, 65536),
	NUMBER("worker", ASYNC, worker, 0, DBLP_RANKS_MAX - 1),
	TIME("time", ASYNC, time_ms, 1, UINT32_MAX),
	TIME("pause", ASYNC, pause_ms, 1, 3600000),
	NUMBER("pause-every", ASYNC, pause_every, 1, 1000000),
#undef TIME
#undef NUMBER
#undef VALUE
};

#define NUMBERS	(sizeof(numbers) / sizeof(*numbers))

/* First value of getopt_long() for a number, above all characters */
#define FIRST_NUMBER	256

static const struct {
	struct option	option;
	unsigned int	verbs;
} others[] = {
#define VALUE(name, verbs, letter) \
	{ { name, required_argument, NULL, letter }, verbs }
#define FLAG(name, verbs, letter) \
	{ { name, no_argument, NULL, letter }, verbs }
	VALUE("rendezvous", RUN, 'v'),
	VALUE("transport", RUN | ASYNC, 't'),
	VALUE("devices", RUN, 'd'),
	VALUE("plan", RUN | PROFILE, 'a'),
	VALUE("rule", RUN | PROFILE, 'u'),
	VALUE("budget", RUN | PROFILE, 'b'),
	VALUE("param-budget", RUN | PROFILE, 'm'),
	VALUE("policy", RUN, 'o'),
	FLAG("carry", RUN, 'y'),
	VALUE("phases", RUN | PROFILE, 'p'),
	VALUE("eta", RUN | PROFILE, 'e'),
	VALUE("rate", RUN | PROFILE, 'r'),
	VALUE("checkpoint", RUN, 'c'),
	FLAG("resume", RUN, 's'),
	VALUE("hook", RUN, 'h'),
	VALUE("log", RUN | ASYNC, 'l'),
	VALUE("name", RUN, 'n'),
	VALUE("budgets", PROFILE, 'g'),
	FLAG("sparse", PROFILE, 'z'),
	VALUE("large", PROFILE, 'i'),
	FLAG("json", PROFILE, 'j'),
	VALUE("scheduler", ASYNC, 'k'),
	FLAG("count", ASYNC, 'w'),
#undef FLAG
#undef VALUE
};

#define OTHERS	(sizeof(others) / sizeof(*others))

static void parse_number(struct options *o, unsigned int i, const char *text)
{
	uint32_t *field = (void *)((char *)o + numbers[i].offset);

	*field = numbers[i].parse(numbers[i].name, text, numbers[i].min, numbers[i].max);
}

static void parse_phases(struct config *c, char *text)
{
	char *comma = strchr(text, ',');

	if (!comma)
		errx(2, "--phases takes LOW,HIGH, not '%s'", text);
	*comma = 0;
	c->low = arg_share("phases", text);
	c->high = arg_share("phases", comma + 1);
	c->phases = true;
}

static void parse_hook(struct options *o, char *text)
{
	if (o->hooks == HOOKS_MAX)
		errx(2, "--hook: at most %d", HOOKS_MAX);
	hook_parse(&o->hook[o->hooks++], text);
}

static void parse_budgets(struct options *o, char *text)
{
	char *next;

	for (o->n_budgets = 0; text; text = next) {
		next = strchr(text, ',');
		if (next)
			*next++ = 0;
		if (o->n_budgets == BUDGETS_MAX)
			errx(2, "--budgets: at most %d", BUDGETS_MAX);
		o->budget[o->n_budgets] = arg_share("budgets", text);
		if (o->budget[o->n_budgets] <= (o->n_budgets ? o->budget[o->n_budgets - 1] : 0))
			errx(2, "--budgets takes ascending shares above 0%%; 0%% is always included");
		o->n_budgets++;
	}
}

static void parse_budget(struct config *c, const char *text)
{
	c->flags |= DBLP_OP_BUDGET;
	c->tune = !strncmp(text, "auto", 4) && (!text[4] || text[4] == ':');
	if (!c->tune)
		c->budget = arg_share("budget", text);
	else
		c->budget = text[4] ? arg_share("budget", text + 5) : DBLP_TUNE_CAP;
}

static void parse_config(struct config *c, int opt, char *text)
{
	switch (opt) {
	case 'a':
		c->plan = arg_name("plan", text, dblp_algo_names);
		break;
	case 'u':
		c->rule = arg_name("rule", text, dblp_rule_names);
		break;
	case 'b':
		parse_budget(c, text);
		break;
	case 'm':
		c->owners = true;
		c->param_budget = arg_share("param-budget", text);
		break;
	case 'o':
		c->policy = arg_name("policy", text, dblp_policy_names);
		c->flags |= DBLP_OP_POLICY;
		break;
	case 'y':
		c->flags |= DBLP_OP_CARRY;
		break;
	case 'p':
		parse_phases(c, text);
		break;
	case 'e':
		c->eta = arg_real("eta", text, 0, 1000);
		break;
	case 'r':
		c->rate = arg_real("rate", text, 0, 10);
		break;
	case 's':
		c->resume = true;
		break;
	default:
		exit(2);
	}
}

static void parse_option(struct options *o, int opt, char *text)
{
	switch (opt) {
	case 'v':
		o->attr.rendezvous = text;
		break;
	case 't':
		o->attr.transport = text;
		break;
	case 'd':
		o->attr.devices = text;
		break;
	case 'c':
		o->checkpoint = text;
		break;
	case 'h':
		parse_hook(o, text);
		break;
	case 'l':
		o->log_file = fopen(text, "we");
		if (!o->log_file)
			err(1, "%s", text);
		break;
	case 'g':
		o->budgets_given = true;
		parse_budgets(o, text);
		break;
	case 'z':
		o->sparse = true;
		break;
	case 'i':
		o->large = arg_share("large", text);
		break;
	case 'j':
		o->json = true;
		break;
	case 'k':
		o->scheduler = text;
		break;
	case 'w':
		o->count = true;
		break;
	case 'n':
		snprintf(o->name, sizeof(o->name), "%s", text);
		break;
	default:
		o->rule_given |= opt == 'u';
		parse_config(&o->config, opt, text);
	}
}

static void check_transport(const struct options *o)
{
	const struct config *c = &o->config;
	const char *name = o->attr.transport;

	if (!strcmp(name, "dblp"))
		return;
	if (strcmp(name, "tcp") && (strncmp(name, "tcp:", 4) || !name[4]))
		errx(2, "--transport is dblp, tcp or tcp:CC, not '%s'", name);
	if (c->flags || c->phases || c->param_budget || o->attr.job)
		errx(2, "--budget, --param-budget, --policy, --carry, --phases and --job need --transport dblp");
}

/* Refuse contradictory options of losses */
static void check_losses(const struct options *o)
{
	const struct config *c = &o->config;

	if (o->attr.job && ((c->flags && !c->tune) || c->flags & ~(uint32_t)DBLP_OP_BUDGET || c->phases))
		errx(2, "the job sets what may be lost: --job excludes --budget, except auto, --policy, --carry and --phases");
	if (c->phases && c->flags & DBLP_OP_BUDGET && !c->tune)
		errx(2, "--phases and --budget exclude each other: both set budgets");
	if (c->flags & DBLP_OP_CARRY && !(c->flags & DBLP_OP_BUDGET) && !c->phases)
		errx(2, "--carry needs --budget or --phases");
}

static void check_plan(const struct options *o)
{
	const struct config *c = &o->config;
	const bool digits = c->plan == DBLP_BCUBE || c->plan == DBLP_AVERAGE;

	if (c->fanin && c->plan != DBLP_TREE)
		errx(2, "--fanin needs --plan tree");
	if (c->levels && !digits)
		errx(2, "--levels needs --plan bcube or average");
	if (c->owners && c->plan != DBLP_PS && c->plan != DBLP_TRANSPOSE)
		errx(2, "--param-budget needs --plan ps or transpose, where owners send to all ranks");
	if (c->owners && c->tune)
		errx(2, "--param-budget and --budget auto exclude each other: only owners know the mean gradient");
	if (c->plan != DBLP_AVERAGE)
		return;
	if (o->rule_given && c->rule != DBLP_RESCALE)
		errx(2, "--plan average needs --rule rescale: a missing parameter does not count as 0");
	if (c->phases || c->tune || o->attr.job)
		errx(2, "--phases, --budget auto and --job need gradients: --plan average exchanges parameters");
}

/* Refuse options that a profile cannot use */
static void check_profile(const struct options *o)
{
	if (o->attr.nranks < 2)
		errx(2, "a profile needs --nranks 2 or more: a single rank sends nothing");
	if (o->config.plan == DBLP_AVERAGE)
		errx(2, "a profile needs gradients: --plan average exchanges parameters");
	if (o->budgets_given && (o->config.phases || o->config.flags))
		errx(2, "--budgets excludes --phases and --budget: all set budgets");
	if (o->config.flags && !o->config.tune)
		errx(2, "a profile takes --budget auto, or --budgets");
	if (o->config.phases && !o->config.high)
		errx(2, "--phases: a profile needs HIGH above 0%%");
	if (o->large && o->config.rule == DBLP_RESCALE)
		errx(2, "--large and --rule rescale exclude each other: rescale counts the contributions to all elements");
	if (o->large == DBLP_PPM)
		errx(2, "--large takes a share below 100%%");
	if (o->segment % 4)
		errx(2, "--segment takes a multiple of 4, the bytes of an element");
}

static void check_options(const struct options *o, unsigned int verb)
{
	const struct config *c = &o->config;

	check_transport(o);
	check_losses(o);
	check_plan(o);
	if (c->every && !o->checkpoint)
		errx(2, "--checkpoint-rounds needs --checkpoint");
	if (c->resume && !o->checkpoint)
		errx(2, "--resume needs --checkpoint");
	if (!o->n_files)
		errx(2, "training needs text files, the same on all ranks");
	if (verb == PROFILE)
		check_profile(o);
	if (verb == ASYNC && !o->scheduler && !o->count)
		errx(2, "--scheduler is needed");
	if (!o->pause_ms != !o->pause_every)
		errx(2, "--pause and --pause-every go together");
}

/* Set defaults that depend on other options */
static void complete(struct options *o)
{
	struct config *c = &o->config;

	if (c->plan == DBLP_AVERAGE)
		c->rule = DBLP_RESCALE;
	if (!c->levels && (c->plan == DBLP_BCUBE || c->plan == DBLP_AVERAGE))
		c->levels = 2;
	if (c->phases)
		c->flags |= DBLP_OP_BUDGET | DBLP_OP_PHASE;
	/* Early leaves the budget of calm rounds to bursts */
	if (c->tune && !c->phases && !o->attr.job && !(c->flags & DBLP_OP_POLICY)) {
		c->flags |= DBLP_OP_POLICY;
		c->policy = DBLP_POLICY_EARLY;
	}
	if (o->checkpoint && !c->every)
		c->every = 10;
	c->job = !!o->attr.job;
	if (!*o->name)
		snprintf(o->name, sizeof(o->name), "%s", o->attr.transport);
}

/* Set the defaults of all options */
static void set_defaults(struct options *o, unsigned int verb)
{
	*o = (struct options){
		.attr = {
			.size = sizeof(o->attr),
			.rank = DBLP_COMM_RANK_ENV,
			.nranks = verb == PROFILE ? 4 : DBLP_COMM_RANK_ENV,
			.transport = "dblp",
		},
		.config = {
			.rate = 0.02,
			.eta = 0.5,
			.plan = DBLP_TRANSPOSE,
			.rule = DBLP_FEEDBACK,
			.batch = 128,
			.context = 12,
			.hidden = 64,
			.seed = 1,
			.epoch = 4,
			.rounds = 60,
		},
		.seeds = 5,
		.segment = LOSSY_SEGMENT,
		.budget = { 8000, 20000, 50000, 100000, 200000, 400000, 800000 },
		.n_budgets = 7,
	};
}

/* List the options of a subcommand for getopt_long() */
static void list_options(struct option *options, unsigned int verb)
{
	unsigned int i;

	for (i = 0; i < NUMBERS; i++)
		if (numbers[i].verbs & verb)
			*options++ = (struct option){ numbers[i].name,
				required_argument, NULL, FIRST_NUMBER + i };
	for (i = 0; i < OTHERS; i++)
		if (others[i].verbs & verb)
			*options++ = others[i].option;
}

void options_parse(struct options *o, unsigned int verb, int argc, char **argv)
{
	struct option options[NUMBERS + OTHERS + 1] = { 0 };
	const char *letters = verb == PROFILE ? "j" : "";
	int opt;

	set_defaults(o, verb);
	list_options(options, verb);
	while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (opt >= FIRST_NUMBER)
			parse_number(o, opt - FIRST_NUMBER, optarg);
		else
			parse_option(o, opt, optarg);
	}
	o->files = argv + optind;
	o->n_files = argc - optind;
	check_options(o, verb);
	complete(o);
}
