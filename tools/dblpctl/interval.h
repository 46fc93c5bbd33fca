/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Repeated output: "-i TIME" and "-c COUNT".
 */
#ifndef DBLPCTL_INTERVAL_H
#define DBLPCTL_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "cmd.h"

/**
 * struct interval - times of repeated output
 * @ms: interval in ms, 0 if not given
 * @count: number of outputs, 0 if not given
 */
struct interval {
	uint32_t	ms;
	uint32_t	count;
};

/**
 * take_interval() - remove "-i TIME" or "-c COUNT" from the start of the words
 * @argc: number of words, at least one
 * @argv: words
 * @interval: @ms or @count of it is set
 * @taken: set to whether the words began with one of the two
 */
enum status take_interval(int *argc, char ***argv, struct interval *interval,
			  bool *taken);

/** seconds_now() - time of CLOCK_MONOTONIC */
double seconds_now(void);

/**
 * sleep_until_next() - advance @next by @ms, and sleep until then
 *
 * @next is a time of CLOCK_MONOTONIC, so that the duration of printing does not
 * accumulate.
 */
void sleep_until_next(struct timespec *next, uint32_t ms);

#endif /* DBLPCTL_INTERVAL_H */
