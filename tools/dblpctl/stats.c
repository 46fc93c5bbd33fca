// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl stats: the counters of the network namespace.
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dblpctl.h"
#include "interval.h"
#include "names.h"
#include "nl.h"
#include "print.h"
#include "prometheus.h"

#define N_COUNTERS	(DBLP_A_STATS_MAX + 1)

/* Names of attributes in a refusal */
static const char *const stats_attrs[DBLP_A_STATS_MAX + 1] = {
	[DBLP_A_STATS_NONZERO] = "nonzero",
};

/* Counters to show */
enum stats_which {
	STATS_DEFAULT,
	STATS_ALL,
	STATS_NONZERO,
	STATS_PROMETHEUS,
};

/**
 * struct stats_args - the words after "stats"
 * @which: counters to show
 * @interval: interval of rates; without one, counters are shown once
 */
struct stats_args {
	enum stats_which	which;
	struct interval		interval;
};

/**
 * struct sample - the counters at one time
 * @at: time in seconds, of seconds_now()
 * @there: by attribute: did the kernel send the counter?
 * @n: value by attribute, 0 if the kernel did not send it
 */
struct sample {
	double		at;
	bool		there[N_COUNTERS];
	uint64_t	n[N_COUNTERS];
};

static enum status take_sample(struct sample *s, bool nonzero)
{
	struct nlmsghdr *nlh = nl_request(DBLP_CMD_STATS_GET, 0);
	const struct nlattr *tb[N_COUNTERS];
	struct nl_reply reply;
	int i;

	if (nonzero)
		mnl_attr_put(nlh, DBLP_A_STATS_NONZERO, 0, NULL);
	if (nl_talk(nlh, stats_attrs, DBLP_A_STATS_MAX, &reply))
		return STATUS_FAILED;
	s->at = seconds_now();
	nl_attrs(reply.msgs, tb, DBLP_A_STATS_MAX);
	for (i = 0; i < N_COUNTERS; i++) {
		s->there[i] = counters[i].name && tb[i] &&
			      !mnl_attr_validate(tb[i], MNL_TYPE_U64);
		s->n[i] = s->there[i] ? mnl_attr_get_u64(tb[i]) : 0;
	}
	nl_reply_free(&reply);
	return STATUS_OK;
}

static enum status print_stats(bool nonzero)
{
	struct sample s;
	int i;

	if (take_sample(&s, nonzero))
		return STATUS_FAILED;
	print_object();
	print_timestamp();
	for (i = 0; i < N_COUNTERS; i++) {
		struct heading h = { counters[i].name, NULL };

		if (s.there[i])
			print_uint(h, s.n[i], NULL);
	}
	print_object_end();
	return STATUS_OK;
}

static void print_rates(const struct sample *old, const struct sample *new,
			bool all)
{
	int i;

	print_object();
	print_timestamp();
	for (i = 0; i < N_COUNTERS; i++) {
		struct heading h = { counters[i].name, NULL };

		if (h.key && (all || new->n[i] != old->n[i]))
			print_real(h, (double)(new->n[i] - old->n[i]) /
				      (new->at - old->at));
	}
	print_object_end();
}

static enum status repeat(const struct stats_args *args)
{
	struct sample samples[2], *old = samples, *new = samples + 1, *swap;
	struct timespec next;
	enum status status;
	uint32_t i;

	clock_gettime(CLOCK_MONOTONIC, &next);
	status = take_sample(old, false);
	for (i = 0; !status && (!args->interval.count || i < args->interval.count); i++) {
		sleep_until_next(&next, args->interval.ms);
		status = take_sample(new, false);
		if (status)
			return status;
		if (i)
			print_gap();
		print_rates(old, new, args->which == STATS_ALL);
		if (print_end())
			return STATUS_FAILED;
		swap = old;
		old = new;
		new = swap;
	}
	return status;
}

/* Remove one of "all", "nonzero", "--prometheus", "-i TIME" and "-c COUNT" from the words */
static enum status read_one(int *argc, char ***argv, struct stats_args *args)
{
	const char *word = **argv;
	bool taken;
	enum status status = take_interval(argc, argv, &args->interval, &taken);

	if (status || taken)
		return status;
	(*argc)--;
	(*argv)++;
	if (args->which)
		return usage_error("unexpected word '%s'", word);
	if (is_prefix(word, "all"))
		args->which = STATS_ALL;
	else if (is_prefix(word, "nonzero"))
		args->which = STATS_NONZERO;
	else if (!strcmp(word, "--prometheus"))
		args->which = STATS_PROMETHEUS;
	else
		return usage_error("there is no verb '%s' (see dblpctl help)",
				   word);
	return STATUS_OK;
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);
	int i;

	if (status || only_reading)
		return status;
	puts("Usage: dblpctl [OPTION...] stats [all | nonzero | --prometheus] [-i TIME [-c COUNT]]\n"
	     "\n"
	     "  all, nonzero  counters to show (default: all)\n"
	     "  -i TIME       show increases per second, after each TIME (1s, 500ms); without\n"
	     "                all, omit counters that did not change\n"
	     "  -c COUNT      show them COUNT times\n"
	     "  --prometheus  print counters, and sums of sockets and jobs, in Prometheus' format\n");
	for (i = 0; i < N_COUNTERS; i++)
		if (counters[i].name)
			printf("  %-22s%s\n", counters[i].name,
			       counters[i].meaning);
	return STATUS_OK;
}

enum status do_stats(int argc, char **argv)
{
	struct stats_args args = { STATS_DEFAULT, { 0, 0 } };
	enum status status = STATUS_OK;

	if (argc && is_prefix(argv[0], "help"))
		return do_help(argc - 1, argv + 1);
	while (!status && argc)
		status = read_one(&argc, &argv, &args);
	if (!status && args.interval.count && !args.interval.ms)
		status = usage_error("-c needs -i TIME");
	if (!status && args.which == STATS_PROMETHEUS && (args.interval.ms || print_is_json()))
		status = usage_error("--prometheus prints counters once, and no JSON");
	if (status || only_reading)
		return status;
	if (args.interval.ms)
		return repeat(&args);
	if (args.which == STATS_PROMETHEUS)
		return print_prometheus();
	return print_stats(args.which == STATS_NONZERO);
}
