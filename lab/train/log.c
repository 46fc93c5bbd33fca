// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define LOG_FIRST	"dblp-train log 3\n"

void log_begin(FILE *f, const struct log *log)
{
	fprintf(f, LOG_FIRST "name %s\n", log->name);
	fprintf(f, "setup %s %u %u %u %.6f\n", log->transport, log->workers,
		log->params, log->samples, log->held_start);
	fprintf(f, "# round: phase, budget asked for, smallest, largest (ppm), duration (us),\n"
		   "# bytes asked for, missing, gradient norm, loss, drift, bytes of parameters asked for,\n"
		   "# missing, event\n");
	fflush(f);
}

void log_round(FILE *f, const struct log_round *r)
{
	fprintf(f, "round %u %s %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
		" %.6f %.6f %.9f %" PRIu64 " %" PRIu64 " %s\n", r->round, r->phase, r->budget_set, r->budget_min,
		r->budget_max, r->us, r->asked, r->missing, r->norm, r->loss,
		r->drift, r->param_asked, r->param_missing, r->event);
	fflush(f);
}

void log_end(FILE *f, const struct log *log)
{
	fprintf(f, "end %.6f\n", log->held_end);
	fflush(f);
}

static int parse_round(struct log *log, const char *line)
{
	struct log_round *r;

	if (!(log->n & (log->n - 1))) {
		const size_t room = log->n ? 2 * log->n : 1;

		log->round = realloc(log->round, room * sizeof(*log->round));
		if (!log->round)
			err(1, NULL);
	}
	r = &log->round[log->n++];
	return sscanf(line, "round %u %31s %u %u %u %" SCNu64 " %" SCNu64 " %"
		      SCNu64 " %lf %lf %lf %" SCNu64 " %" SCNu64 " %31s", &r->round, r->phase, &r->budget_set,
		      &r->budget_min, &r->budget_max, &r->us, &r->asked,
		      &r->missing, &r->norm, &r->loss, &r->drift,
		      &r->param_asked, &r->param_missing, r->event) == 14;
}

/* Returns 0 for an invalid line, 2 for the last line, else 1 */
static int parse_line(struct log *log, const char *line)
{
	if (*line == '#')
		return 1;
	if (sscanf(line, "name %63[^\n]", log->name) == 1)
		return 1;
	if (sscanf(line, "setup %31s %u %u %u %lf", log->transport,
		   &log->workers, &log->params, &log->samples,
		   &log->held_start) == 5)
		return 1;
	if (sscanf(line, "end %lf", &log->held_end) == 1)
		return 2;
	return parse_round(log, line);
}

void log_read(struct log *log, const char *file)
{
	FILE *f = fopen(file, "r");
	unsigned int number = 1;
	char line[512];
	int what = 1;

	*log = (struct log){ 0 };
	if (!f)
		err(1, "%s", file);
	if (!fgets(line, sizeof(line), f) || strcmp(line, LOG_FIRST))
		errx(1, "%s is not a log of this version", file);
	while (what == 1 && fgets(line, sizeof(line), f)) {
		number++;
		what = parse_line(log, line);
		if (!what)
			errx(1, "%s:%u: invalid line", file, number);
	}
	if (ferror(f))
		err(1, "%s", file);
	if (what != 2 || !log->n)
		errx(1, "%s: the run has not ended", file);
	fclose(f);
}

void log_free(struct log *log)
{
	free(log->round);
	*log = (struct log){ 0 };
}
