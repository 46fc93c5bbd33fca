// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl save: writes the settings of operators as commands that restore them.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch.h"
#include "dblpctl.h"
#include "err.h"
#include "job.h"
#include "nl.h"
#include "param.h"
#include "phase.h"
#include "print.h"

/* Attempts to read the state while other programs change it */
#define TRIES	10

static enum status failed(const char *file)
{
	complain("cannot write %s: %s", file, strerror(errno));
	return STATUS_FAILED;
}

/* Jobs refer to phases, so phases are first */
static enum status render(char **text, size_t *len)
{
	FILE *to = open_memstream(text, len);
	enum status status;

	if (!to)
		return failed("memory");
	fputs(BATCH_BEGIN "\t# Restore by dblpctl -b, which refuses this file without its last line\n",
	      to);
	status = save_phases(to) ?: save_jobs(to) ?: save_params(to);
	fputs(BATCH_COMPLETE "\n", to);
	if (fclose(to) && !status)
		status = failed("memory");
	return status;
}

/* Read the state until two readings agree, so that it is consistent */
static enum status render_all(char **text, size_t *len)
{
	enum status status = render(text, len);
	char *before = NULL;
	int tries;

	for (tries = 0; !status && tries < TRIES; tries++) {
		free(before);
		before = *text;
		*text = NULL;
		status = render(text, len);
		if (!status && !strcmp(before, *text))
			break;
	}
	free(before);
	if (status || tries < TRIES)
		return status;
	complain("the state changed during every attempt to read it: try again");
	return STATUS_TORN;
}

/* Write a temporary file in the same directory */
static enum status write_beside(const char *file, const char *text,
				char beside[PATH_MAX])
{
	struct stat st = { .st_mode = 0644 };
	bool ok;
	int fd;

	if (!stat(file, &st) && !S_ISREG(st.st_mode)) {
		complain("%s is not a regular file, so it is not replaced", file);
		return STATUS_FAILED;
	}
	if (snprintf(beside, PATH_MAX, "%s.XXXXXX", file) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return failed(file);
	}
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return failed(file);
	ok = dprintf(fd, "%s", text) >= 0 && !fchmod(fd, st.st_mode & 0777) &&
	     !fsync(fd);
	if (!close(fd) && ok)
		return STATUS_OK;
	failed(file);
	unlink(beside);
	return STATUS_FAILED;
}

/* Replace a file atomically: it has its old or its new contents at any time */
static enum status replace(const char *word, const char *text)
{
	char *file = realpath(word, NULL), beside[PATH_MAX];
	enum status status;

	if (!file && errno != ENOENT)
		return failed(word);
	status = write_beside(file ?: word, text, beside);
	if (!status && rename(beside, file ?: word)) {
		status = failed(word);
		unlink(beside);
	}
	free(file);
	return status;
}

static enum status save(const char *file)
{
	char *text = NULL;
	size_t len;
	enum status status;

	/* Users without the right see only their own jobs */
	if (nl_need_right())
		return STATUS_FAILED;
	status = render_all(&text, &len);
	if (!status && file)
		status = replace(file, text);
	else if (!status)
		fwrite(text, 1, len, stdout);
	free(text);
	return status;
}

static enum status do_help(int argc, char **argv)
{
	return show_help(argc, argv,
		"Usage: dblpctl save [FILE]\n"
		"\n"
		"Writes the phases, jobs and parameters of the network namespace to FILE, or to the\n"
		"standard output, as commands that dblpctl -b FILE runs to restore them. FILE keeps\n"
		"its old contents if this fails. Needs CAP_NET_ADMIN, because other users do not see\n"
		"all jobs.");
}

enum status do_save(int argc, char **argv)
{
	enum status status;

	if (argc == 1 && !strcmp(argv[0], "help"))
		return do_help(argc - 1, argv + 1);
	if (print_is_json())
		return usage_error("save prints commands, not JSON: leave out -j");
	status = argc > 1 ? no_more(argc - 1, argv + 1) : STATUS_OK;
	if (status || only_reading)
		return status;
	return save(argc ? argv[0] : NULL);
}
