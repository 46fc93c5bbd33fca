// SPDX-License-Identifier: GPL-2.0-only
/* Prints tables of training runs from their logs. */
#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <linux/dblp.h>

#include "log.h"
#include "main.h"

/* Rounds over which the final training loss is averaged */
#define REPORT_LAST	5

/* Name of hooks that cause packet loss */
#define REPORT_BURST	"burst"

/**
 * struct group - rounds with the same phase and budgets
 * @first: its earliest round
 * @rounds: number of rounds
 * @us: durations of its rounds, sorted
 * @asked: droppable bytes
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
 * struct style - format of the rows of a table
 * @begin: text before the first cell
 * @between: text between two cells
 * @end: text after the last cell
 */
struct style {
	const char	*begin;
	const char	*between;
	const char	*end;
};

static const struct style plain = { "", "  ", "" };
static const struct style markdown = { "| ", " | ", " |" };

#define CELL		96
#define GROUP_CELLS	9
#define RUN_CELLS	8

/* As in printf(), a negative width aligns to the left */
static const int group_width[GROUP_CELLS] = {
	-12, -24, 6, 8, 8, 8, 8, 9, 8,
};
static const char group_head[GROUP_CELLS][CELL] = {
	"run", "phase, loss budget", "rounds", "p50 ms", "p99 ms", "max ms",
	"MB asked", "delivered", "forgiven",
};
static const int run_width[RUN_CELLS] = { -12, 8, 8, 19, 11, 6, 13, 6 };
static const char run_head[RUN_CELLS][CELL] = {
	"run", "time s", "of first", "burst mean / max ms", "loss: start",
	"end", "unseen: start", "end",
};

static void print_row(const struct style *s, const int *width,
		      const char (*cell)[CELL], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		printf("%s%*s", i ? s->between : s->begin, width[i], cell[i]);
	printf("%s\n", s->end);
}

static void print_head(const struct style *s, const int *width,
		       const char (*cell)[CELL], unsigned int n)
{
	unsigned int i;

	print_row(s, width, cell, n);
	if (s != &markdown)
		return;
	for (i = 0; i < n; i++)
		printf("|%s", width[i] < 0 ? "---" : "--:");
	printf("|\n");
}

static bool same_group(const struct log_round *a, const struct log_round *b)
{
	/* A budget that is found differs in each round */
	if (!strcmp(a->phase, "auto") && !strcmp(b->phase, "auto"))
		return true;
	return !strcmp(a->phase, b->phase) && a->budget_set == b->budget_set &&
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

/* Quantile by the nearest-rank method, in milliseconds */
static double quantile(const uint64_t *sorted, unsigned int n, double q)
{
	const unsigned int rank = ceil(q * n);

	return sorted[rank ? rank - 1 : 0] / 1000.0;
}

static void group_name(const struct log_round *r, char *name, size_t size)
{
	const double percent = DBLP_PPM / 100.0;

	if ((!r->budget_set && !r->budget_max) || !strcmp(r->phase, "auto"))
		snprintf(name, size, "%s", r->phase);
	else if (r->budget_min != r->budget_max)
		snprintf(name, size, "%s %g to %g %% (changing)", r->phase,
			 r->budget_min / percent, r->budget_max / percent);
	else
		snprintf(name, size, "%s %g %%%s", r->phase,
			 r->budget_min / percent,
			 r->budget_min == r->budget_set ? "" : " (dblpctl)");
}

static void print_group(const struct style *s, const struct log *log,
			const struct group *g)
{
	char cell[GROUP_CELLS][CELL];

	snprintf(cell[0], CELL, "%s", log->name);
	group_name(g->first, cell[1], CELL);
	snprintf(cell[2], CELL, "%u", g->rounds);
	snprintf(cell[3], CELL, "%.1f", quantile(g->us, g->rounds, 0.5));
	snprintf(cell[4], CELL, "%.1f", quantile(g->us, g->rounds, 0.99));
	snprintf(cell[5], CELL, "%.1f", quantile(g->us, g->rounds, 1));
	snprintf(cell[6], CELL, "%.3f", g->asked / 1e6);
	snprintf(cell[7], CELL, "%.3f", (g->asked - g->missing) / 1e6);
	snprintf(cell[8], CELL, "%.3f", g->missing / 1e6);
	print_row(s, group_width, cell, GROUP_CELLS);
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

static uint64_t total_us(const struct log *log)
{
	uint64_t total = 0;
	unsigned int i;

	for (i = 0; i < log->n; i++)
		total += log->round[i].us;
	return total;
}

/* Mean and longest duration of the rounds in which a microburst began */
static void burst_rounds(const struct log *log, char *cell)
{
	uint64_t sum = 0, longest = 0;
	unsigned int i, n = 0;

	for (i = 0; i < log->n; i++) {
		const struct log_round *r = &log->round[i];

		if (strcmp(r->event, REPORT_BURST))
			continue;
		n++;
		sum += r->us;
		longest = r->us > longest ? r->us : longest;
	}
	if (n)
		snprintf(cell, CELL, "%.1f / %.1f", sum / 1000.0 / n,
			 longest / 1000.0);
	else
		snprintf(cell, CELL, "none");
}

static void print_run(const struct style *s, const struct log *log,
		      const struct log *first)
{
	const uint64_t us = total_us(log);
	char cell[RUN_CELLS][CELL];

	snprintf(cell[0], CELL, "%s", log->name);
	snprintf(cell[1], CELL, "%.2f", us / 1e6);
	snprintf(cell[2], CELL, "%.3f", (double)us / total_us(first));
	burst_rounds(log, cell[3]);
	snprintf(cell[4], CELL, "%.3f", log->round[0].loss);
	snprintf(cell[5], CELL, "%.3f", last_loss(log));
	snprintf(cell[6], CELL, "%.3f", log->held_start);
	snprintf(cell[7], CELL, "%.3f", log->held_end);
	print_row(s, run_width, cell, RUN_CELLS);
}

static void print_tables(const struct style *s, const struct log *log,
			 unsigned int n)
{
	unsigned int i;

	print_head(s, group_width, group_head, GROUP_CELLS);
	for (i = 0; i < n; i++)
		print_groups(s, &log[i]);
	printf("\n");
	print_head(s, run_width, run_head, RUN_CELLS);
	for (i = 0; i < n; i++)
		print_run(s, &log[i], log);
	printf("\n");
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
		errx(2, "a report needs one or more log files");
	log = calloc(n, sizeof(*log));
	if (!log)
		err(1, NULL);
	for (i = 0; i < n; i++)
		log_read(&log[i], argv[optind + i]);

	print_tables(style, log, n);
	for (i = 0; i < n; i++)
		log_free(&log[i]);
	free(log);
	return 0;
}
