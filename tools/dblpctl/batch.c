// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of a file.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "err.h"
#include "job.h"
#include "object.h"
#include "phase.h"

/* Exceeds the number of words of every command */
#define LINE_WORDS	64

static const char blanks[] = " \t\r\n";

/* A line that is not empty */
struct command_line {
	unsigned int	number;
	char		*text;
	int		argc;
	char		**argv;
	bool		unreadable;
};

struct batch {
	const char		*file;
	struct command_line	*lines;
	size_t			n;
	bool			force;
	/* No line may run */
	bool			refused;
	/* The first error */
	enum status		status;
};

/* Split @text into words; false if there are more than LINE_WORDS */
static bool split(struct command_line *line)
{
	char *at = line->text + strspn(line->text, blanks);

	line->argv = checked(calloc(LINE_WORDS + 1, sizeof(*line->argv)));
	while (*at && *at != '#') {
		if (line->argc == LINE_WORDS)
			return false;
		line->argv[line->argc++] = at;
		at += strcspn(at, blanks);
		if (*at)
			*at++ = '\0';
		at += strspn(at, blanks);
	}
	return true;
}

static void free_line(struct command_line *line)
{
	free(line->argv);
	free(line->text);
}

/* Add a line; takes ownership of @text, of @len bytes */
static enum status add_line(struct batch *b, unsigned int number, char *text,
			    size_t len)
{
	struct command_line line = { .number = number, .text = text };
	enum status status = STATUS_OK;

	if (strlen(text) != len)
		status = usage_error("this line has a NUL character");
	else if (!split(&line))
		status = usage_error("this line has more than %d words",
				     LINE_WORDS);
	if (status || !line.argc) {
		free_line(&line);
		return status;
	}
	line.argv = checked(realloc(line.argv,
				    ((size_t)line.argc + 1) * sizeof(*line.argv)));
	b->lines = checked(realloc(b->lines, (b->n + 1) * sizeof(*b->lines)));
	b->lines[b->n++] = line;
	return STATUS_OK;
}

static void note_status(struct batch *b, enum status status)
{
	b->status = b->status ?: status;
}

static bool goes_on(const struct batch *b)
{
	return !b->refused && (b->force || !b->status);
}

static void take_lines(struct batch *b, FILE *f)
{
	unsigned int number = 0;
	char *text = NULL;
	size_t size = 0;
	ssize_t len;

	while (goes_on(b) && (len = getline(&text, &size, f)) >= 0) {
		error_at(b->file, ++number);
		note_status(b, add_line(b, number, text, (size_t)len));
		text = NULL;
		size = 0;
	}
	free(text);
	error_at(NULL, 0);
	if (!ferror(f))
		return;
	complain("cannot read %s: %s", b->file, strerror(errno));
	note_status(b, STATUS_FAILED);
	b->refused = true;
}

static bool is_line(const struct batch *b, size_t i, const char *word)
{
	return i < b->n && b->lines[i].argc == 1 &&
	       !strcmp(b->lines[i].argv[0], word);
}

static bool is_saved(const struct batch *b)
{
	return is_line(b, 0, BATCH_BEGIN);
}

static bool is_complete(const struct batch *b)
{
	return b->n && is_line(b, b->n - 1, BATCH_COMPLETE);
}

static enum status begin(void)
{
	if (only_reading)
		return STATUS_OK;
	return phases_free_names() ?: jobs_free_names();
}

/* Jobs refer to phases, so delete jobs first */
static enum status complete(const struct batch *b)
{
	if (only_reading)
		return STATUS_OK;
	if (!b->status)
		return jobs_flush() ?: phases_flush();
	complain("a command failed, so nothing is deleted");
	return STATUS_FAILED;
}

static enum status run_line(const struct batch *b, size_t i,
			    enum status (*run)(int argc, char **argv))
{
	const struct command_line *line = &b->lines[i];

	if (is_saved(b) && !i)
		return begin();
	if (is_saved(b) && i == b->n - 1)
		return complete(b);
	return run(line->argc, line->argv);
}

/* Run all lines, or parse them if only_reading */
static void run_lines(struct batch *b, enum status (*run)(int argc, char **argv))
{
	enum status status;
	size_t i;

	for (i = 0; i < b->n && goes_on(b); i++) {
		if (b->lines[i].unreadable)
			continue;
		error_at(b->file, b->lines[i].number);
		status = run_line(b, i, run);
		note_status(b, status);
		b->lines[i].unreadable = only_reading && status;
	}
	error_at(NULL, 0);
}

static void refuse_part(struct batch *b)
{
	if (b->refused || !is_saved(b) || is_complete(b))
		return;
	complain("%s begins with '" BATCH_BEGIN "' and does not end with '"
		 BATCH_COMPLETE "': the file is truncated, so no command is run",
		 b->file);
	note_status(b, STATUS_FAILED);
	b->refused = true;
}

static enum status run_file(const char *file, FILE *f, bool force,
			    enum status (*run)(int argc, char **argv))
{
	struct batch b = { .file = file, .force = force };

	take_lines(&b, f);
	if (goes_on(&b))
		refuse_part(&b);
	object_track(is_saved(&b));
	only_reading = true;
	run_lines(&b, run);
	only_reading = false;
	run_lines(&b, run);
	object_track(false);
	while (b.n)
		free_line(&b.lines[--b.n]);
	free(b.lines);
	return b.status;
}

enum status run_batch(const char *file, bool force,
		      enum status (*run)(int argc, char **argv))
{
	enum status status;
	FILE *f;

	if (!strcmp(file, "-"))
		return run_file("-", stdin, force, run);
	f = fopen(file, "re");
	if (!f) {
		complain("cannot read %s: %s", file, strerror(errno));
		return STATUS_FAILED;
	}
	status = run_file(file, f, force, run);
	fclose(f);
	return status;
}
