// SPDX-License-Identifier: GPL-2.0-only
/*
 * Repeated output: "-i TIME" and "-c COUNT".
 */

#include <string.h>

#include "interval.h"
#include "units.h"

static enum status read_interval(const char *word, uint32_t *ms)
{
	const char *wrong = dblp_time_parse(word, ms);

	if (wrong)
		return usage_error("'%s' %s", word, wrong);
	return *ms ? STATUS_OK : usage_error("'%s' is not a time above 0", word);
}

static enum status read_count(const char *word, uint32_t *count)
{
	if (!is_number(word, count) || !*count)
		return usage_error("'%s' is not a number above 0", word);
	return STATUS_OK;
}

enum status take_interval(int *argc, char ***argv, struct interval *interval,
			  bool *taken)
{
	const char *word = **argv, *value = *argc > 1 ? (*argv)[1] : NULL;
	bool is_time = !strcmp(word, "-i");

	*taken = is_time || !strcmp(word, "-c");
	if (!*taken)
		return STATUS_OK;
	if (!value)
		return usage_error("'%s' needs %s", word, is_time ?
				   "a time, such as 1s or 500ms" :
				   "a number of outputs");
	*argc -= 2;
	*argv += 2;
	return is_time ? read_interval(value, &interval->ms) :
			 read_count(value, &interval->count);
}

double seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void sleep_until_next(struct timespec *next, uint32_t ms)
{
	next->tv_nsec += (long)(ms % 1000) * 1000000;
	next->tv_sec += ms / 1000 + next->tv_nsec / 1000000000;
	next->tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL))
		;
}
