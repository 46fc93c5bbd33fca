/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands of a file.
 */
#ifndef DBLPCTL_BATCH_H
#define DBLPCTL_BATCH_H

#include <stdbool.h>

#include "cmd.h"

/*
 * First and last line of a saved state. BATCH_BEGIN renames objects whose names the file
 * gives to others. BATCH_COMPLETE deletes objects that the file does not set. A file
 * with the first line but not the last is truncated.
 */
#define BATCH_BEGIN	"begin"
#define BATCH_COMPLETE	"complete"

/**
 * run_batch() - run each line of a file
 * @file: name of the file, "-" for the standard input
 * @force: continue after an error
 * @run: called with the words of each line that is not empty
 *
 * Blanks separate words; a word that begins with "#" starts a comment. All lines are
 * parsed, with only_reading set, before the first one runs. If a line is invalid, no
 * line runs, unless @force is set.
 *
 * Return: the status of the first error, or STATUS_OK.
 */
enum status run_batch(const char *file, bool force,
		      enum status (*run)(int argc, char **argv));

#endif /* DBLPCTL_BATCH_H */
