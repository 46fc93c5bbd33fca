// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl save: what an operator has set, as commands that set it again.
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

/* How often to look while others change what is saved */
#define TRIES	10

static enum status failed(const char *file)
{
	complain("cannot write %s: %s", file, strerror(errno));
	return STATUS_FAILED;
}

/* Jobs refer to phases: phases first */
static enum status render(char **text, size_t *len)
{
	FILE *to = open_memstream(text, len);
	enum status status;

	if (!to)
		return failed("memory");
	fputs(BATCH_BEGIN "\t# What was set, for dblpctl -b; without its last line it is refused\n",
	      to);
	status = save_phases(to) ?: save_jobs(to) ?: save_params(to);
	fputs(BATCH_COMPLETE "\n", to);
	if (fclose(to) && !status)
		status = failed("memory");
	return status;
}

/* What was read twice the same was not changed in between */
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
	complain("what is to be saved changes all the time: try again");
	return STATUS_TORN;
}

/* To where no reader looks yet */
static enum status write_beside(const char *file, const char *text,
				char beside[PATH_MAX])
{
	struct stat st = { .st_mode = 0644 };
	bool ok;
	int fd;

	if (!stat(file, &st) && !S_ISREG(st.st_mode)) {
		complain("%s is not a file that could be replaced", file);
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

/* The file has its old contents or all of the new ones, whatever happens */
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

	/* Others see only their own jobs */
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
		"Writes the phases, jobs and parameters of the network namespace as commands\n"
		"that restore them when run by dblpctl -b FILE: to FILE, which keeps its old\n"
		"contents if that fails, or to the standard output (needs CAP_NET_ADMIN, as\n"
		"others do not see all jobs).");
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
