/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands from a file.
 */
#ifndef DBLPCTL_BATCH_H
#define DBLPCTL_BATCH_H

#include <stdbool.h>

#include "dblpctl.h"

/*
 * The first and the last line of a saved state. Before the first command between them,
 * names that belong to others are freed; behind the last, what none of them has set is
 * deleted. A file with the first line and without the last was cut off.
 */
#define BATCH_BEGIN	"begin"
#define BATCH_COMPLETE	"complete"

/**
 * run_batch() - run each line of a file
 * @file: its name, "-" for the standard input
 * @force: go on after an error
 * @run: called with the words of each line that is not empty
 *
 * Words are separated by blanks; "#" begins a comment where a word may begin. All lines
 * are read, with only_reading, before the first is run; none is run after an error
 * there, unless @force.
 *
 * Return: the status of the first error, or STATUS_OK.
 */
enum status run_batch(const char *file, bool force,
		      enum status (*run)(int argc, char **argv));

#endif /* DBLPCTL_BATCH_H */
