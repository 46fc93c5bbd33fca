/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands from a file.
 */
#ifndef DBLPCTL_BATCH_H
#define DBLPCTL_BATCH_H

#include <stdbool.h>

#include "dblpctl.h"

/**
 * run_batch() - run each line of a file
 * @file: its name, "-" for the standard input
 * @force: go on after an error
 * @run: called with the words of each line that is not empty
 *
 * Words are separated by blanks; "#" begins a comment where a word may begin.
 *
 * Return: the status of the first line that failed, or STATUS_OK.
 */
enum status run_batch(const char *file, bool force,
		      enum status (*run)(int argc, char **argv));

#endif /* DBLPCTL_BATCH_H */
