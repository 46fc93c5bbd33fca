/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is shown again and again: "-i TIME" and "-c COUNT".
 */
#ifndef DBLPCTL_INTERVAL_H
#define DBLPCTL_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "dblpctl.h"

/**
 * struct interval - how often something is shown
 * @ms: time between, 0 if it was not given
 * @count: number of times, 0 if it was not given
 */
struct interval {
	uint32_t	ms;
	uint32_t	count;
};

/**
 * take_interval() - take "-i TIME" or "-c COUNT" from the words, if they begin with it
 * @argc: words, at least one
 * @argv: words
 * @interval: @ms or @count of it is filled
 * @taken: filled
 */
enum status take_interval(int *argc, char ***argv, struct interval *interval,
			  bool *taken);

/** seconds_now() - of a clock that nobody sets */
double seconds_now(void);

/**
 * sleep_until_next() - sleep until @ms after @next, and advance @next
 *
 * So the time that printing takes does not add up. @next is of CLOCK_MONOTONIC.
 */
void sleep_until_next(struct timespec *next, uint32_t ms);

#endif /* DBLPCTL_INTERVAL_H */
