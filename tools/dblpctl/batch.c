// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands from a file.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "err.h"

/* More than any command has */
#define LINE_WORDS	64

static const char blanks[] = " \t\r\n";

/* Splits @line into words; returns their number, -1 if there are too many */
static int split(char *line, char *words[LINE_WORDS])
{
	char *at = line + strspn(line, blanks);
	int n = 0;

	while (*at && *at != '#') {
		if (n == LINE_WORDS)
			return -1;
		words[n++] = at;
		at += strcspn(at, blanks);
		if (*at)
			*at++ = '\0';
		at += strspn(at, blanks);
	}
	return n;
}

static enum status run_line(char *line, size_t len,
			    enum status (*run)(int argc, char **argv))
{
	char *words[LINE_WORDS];
	int n;

	if (strlen(line) != len)
		return usage_error("this line is not text");
	n = split(line, words);
	if (n < 0)
		return usage_error("this line has more than %d words",
				   LINE_WORDS);
	return n ? run(n, words) : STATUS_OK;
}

static enum status run_lines(FILE *f, const char *file, bool force,
			     enum status (*run)(int argc, char **argv))
{
	enum status first = STATUS_OK, status;
	unsigned int number = 0;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	while ((force || !first) && (len = getline(&line, &size, f)) >= 0) {
		error_at(file, ++number);
		status = run_line(line, (size_t)len, run);
		if (!first)
			first = status;
	}
	error_at(NULL, 0);
	free(line);
	if (!ferror(f))
		return first;
	complain("cannot read %s: %s", file, strerror(errno));
	return STATUS_FAILED;
}

enum status run_batch(const char *file, bool force,
		      enum status (*run)(int argc, char **argv))
{
	enum status status;
	FILE *f;

	if (!strcmp(file, "-"))
		return run_lines(stdin, "-", force, run);
	f = fopen(file, "re");
	if (!f) {
		complain("cannot read %s: %s", file, strerror(errno));
		return STATUS_FAILED;
	}
	status = run_lines(f, file, force, run);
	fclose(f);
	return status;
}
