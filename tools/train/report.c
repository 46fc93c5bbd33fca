// SPDX-License-Identifier: GPL-2.0-only
/* A table of training runs from their logs. */
#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "train.h"

/* Rounds that the training loss at the end is the mean of. */
#define REPORT_LAST	5

/**
 * struct group - rounds of one phase with one budget
 * @first: the earliest of them: phase and budget
 * @rounds: how many
 * @us: their durations, rising
 * @asked: bytes asked for
 * @missing: bytes missing
 */
struct group {
	const struct log_round	*first;
	unsigned int		rounds;
	uint64_t		*us;
	uint64_t		asked;
	uint64_t		missing;
};

/**
 * struct style - how a table looks
 * @begin: before the first cell of a row
 * @between: two cells
 * @end: after the last
 */
struct style {
	const char	*begin;
	const char	*between;
	const char	*end;
};

static const struct style plain = { "", "  ", "" };
static const struct style markdown = { "| ", " | ", " |" };

static bool same_group(const struct log_round *a, const struct log_round *b)
{
	return !strcmp(a->phase, b->phase) && a->told == b->told &&
	       a->budget_min == b->budget_min && a->budget_max == b->budget_max;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct group group_of(const struct log *log,
			     const struct log_round *first)
{
	struct group g = { .first = first };
	unsigned int i;

	g.us = malloc(log->n * sizeof(*g.us));
	if (!g.us)
		err(1, NULL);
	for (i = 0; i < log->n; i++) {
		const struct log_round *r = &log->round[i];

		if (!same_group(r, first))
			continue;
		g.us[g.rounds++] = r->us;
		g.asked += r->asked;
		g.missing += r->missing;
	}
	qsort(g.us, g.rounds, sizeof(*g.us), by_value);
	return g;
}

/* The nearest rank: a value that did occur. In milliseconds. */
static double quantile(const uint64_t *sorted, unsigned int n, double q)
{
	const unsigned int rank = ceil(q * n);

	return sorted[rank ? rank - 1 : 0] / 1000.0;
}

static void group_name(const struct log_round *r, char *name, size_t size)
{
	const double percent = DBLP_PPM / 100.0;

	if (!r->told && !r->budget_max)
		snprintf(name, size, "%s", r->phase);
	else if (r->budget_min != r->budget_max)
		snprintf(name, size, "%s %g to %g %% (changing)", r->phase,
			 r->budget_min / percent, r->budget_max / percent);
	else
		snprintf(name, size, "%s %g %%%s", r->phase,
			 r->budget_min / percent,
			 r->budget_min == r->told ? "" : " (dblpctl)");
}

static void print_group(const struct style *s, const struct log *log,
			const struct group *g)
{
	char name[LOG_WORD + 64];

	group_name(g->first, name, sizeof(name));
	printf("%s%-16s%s%-26s%s%6u%s%8.1f%s%8.1f%s%8.1f%s%8.3f%s%9.3f%s%8.3f%s\n",
	       s->begin, log->name, s->between, name, s->between, g->rounds,
	       s->between, quantile(g->us, g->rounds, 0.5), s->between,
	       quantile(g->us, g->rounds, 0.99), s->between,
	       quantile(g->us, g->rounds, 1), s->between, g->asked / 1e6,
	       s->between, (g->asked - g->missing) / 1e6, s->between,
	       g->missing / 1e6, s->end);
}

static void print_groups(const struct style *s, const struct log *log)
{
	unsigned int i, j;

	for (i = 0; i < log->n; i++) {
		struct group g;

		for (j = 0; j < i; j++)
			if (same_group(&log->round[i], &log->round[j]))
				break;
		if (j < i)
			continue;
		g = group_of(log, &log->round[i]);
		print_group(s, log, &g);
		free(g.us);
	}
}

static double last_loss(const struct log *log)
{
	const unsigned int n = log->n < REPORT_LAST ? log->n : REPORT_LAST;
	double sum = 0;
	unsigned int i;

	for (i = log->n - n; i < log->n; i++)
		sum += log->round[i].loss;
	return sum / n;
}

static void print_run(const struct style *s, const struct log *log)
{
	uint64_t total = 0, eventful = 0, worst = 0;
	unsigned int i, events = 0;
	char burst[64] = "none";

	for (i = 0; i < log->n; i++) {
		const struct log_round *r = &log->round[i];

		total += r->us;
		if (strcmp(r->event, "burst"))
			continue;
		events++;
		eventful += r->us;
		if (r->us > worst)
			worst = r->us;
	}
	if (events)
		snprintf(burst, sizeof(burst), "%8.1f / %8.1f",
			 eventful / 1000.0 / events, worst / 1000.0);
	printf("%s%-16s%s%9.2f%s%-19s%s%7.3f%s%7.3f%s%7.3f%s%7.3f%s\n", s->begin,
	       log->name, s->between, total / 1e6, s->between, burst,
	       s->between, log->round[0].loss, s->between, last_loss(log),
	       s->between, log->held_start, s->between, log->held_end, s->end);
}

static void print_head(const struct style *s, const char *const *cell,
		       const int *width, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		printf("%s%*s", i ? s->between : s->begin, width[i], cell[i]);
	printf("%s\n", s->end);
	if (s != &markdown)
		return;
	for (i = 0; i < n; i++)
		printf("|%s", width[i] < 0 ? "---" : "--:");
	printf("|\n");
}

static void print_tables(const struct style *s, const struct log *log,
			 unsigned int n)
{
	static const char *const group_head[] = {
		"run", "phase and loss budget", "rounds", "p50 ms", "p99 ms",
		"max ms", "MB asked", "delivered", "forgiven",
	};
	static const int group_width[] = { -16, -26, 6, 8, 8, 8, 8, 9, 8 };
	static const char *const run_head[] = {
		"run", "seconds", "burst mean / max ms", "loss at start",
		"end", "held-out loss at start", "end",
	};
	static const int run_width[] = { -16, 9, -19, 7, 7, 7, 7 };
	unsigned int i;

	print_head(s, group_head, group_width, 9);
	for (i = 0; i < n; i++)
		print_groups(s, &log[i]);
	printf("\n");
	print_head(s, run_head, run_width, 7);
	for (i = 0; i < n; i++)
		print_run(s, &log[i]);
	printf("\n");
}

static void print_maps(const struct log *log)
{
	const struct log_maps *m = &log->maps;

	if (m->equal + m->different + m->unknown)
		printf("%s: loss maps at sender and receiver: %u equal, %u different, %u unknown\n",
		       log->name, m->equal, m->different, m->unknown);
}

int report_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "markdown", no_argument, NULL, 'm' },
		{ 0 }
	};
	const struct style *style = &plain;
	unsigned int i, n;
	struct log *log;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt != 'm')
			return 2;
		style = &markdown;
	}
	n = argc - optind;
	if (!n)
		errx(2, "a report needs logs");
	log = calloc(n, sizeof(*log));
	if (!log)
		err(1, NULL);
	for (i = 0; i < n; i++)
		log_read(&log[i], argv[optind + i]);

	print_tables(style, log, n);
	for (i = 0; i < n; i++)
		print_maps(&log[i]);
	for (i = 0; i < n; i++)
		log_free(&log[i]);
	free(log);
	return 0;
}
