// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl: shows and steers AF_DBLP sockets.
 */

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "dblpctl.h"
#include "nl.h"
#include "print.h"

#ifndef DBLP_VERSION
#error "the Makefile gives the version"
#endif

static enum status do_help(int argc, char **argv);
static enum status do_version(int argc, char **argv);

static const struct command objects[] = {
	{ "socket", do_socket },
	{ "phase", do_phase },
	{ "job", do_job },
	{ "stats", do_stats },
	{ "version", do_version },
	{ "help", do_help },
	{ NULL, NULL },
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: dblpctl [OPTION...] OBJECT [VERB] [ARG...]\n"
		"       dblpctl [OPTION...] socket [list]\n"
		"       dblpctl [OPTION...] socket show ID\n"
		"       dblpctl socket set ID [loss SHARE] [cap SHARE] [phase PHASE] [job JOB]\n"
		"       dblpctl [OPTION...] phase [list]\n"
		"       dblpctl [OPTION...] phase show PHASE\n"
		"       dblpctl phase set PHASE [loss SHARE] [close POLICY] ...\n"
		"       dblpctl phase del PHASE\n"
		"       dblpctl [OPTION...] job [list]\n"
		"       dblpctl [OPTION...] job { show | stats } JOB\n"
		"       dblpctl job { add | set } JOB [phase PHASE] [name NAME]\n"
		"       dblpctl job del JOB\n"
		"       dblpctl [OPTION...] stats [all | nonzero]\n"
		"       dblpctl version\n"
		"\n"
		"  ID     number of a socket, as in the list: 0x1f or 31\n"
		"  PHASE  number (0 to 7) or name\n"
		"  JOB    number (from 1) or name\n"
		"  SHARE  of the bytes: 2%%, 0.8%% or 8000ppm\n"
		"\n"
		"  -j, --json     print JSON\n"
		"  -p, --pretty   with line breaks\n"
		"  -h, --help     print this\n"
		"  -V, --version  print the version\n"
		"\n"
		"Names may be abbreviated. Each object has a help: dblpctl socket help.\n");
}

bool is_prefix(const char *word, const char *name)
{
	return *word && !strncmp(word, name, strlen(word));
}

enum status usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("dblpctl: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return STATUS_USAGE;
}

enum status no_more(int argc, char **argv)
{
	if (!argc)
		return STATUS_OK;
	return usage_error("'%s' is one word too many", argv[0]);
}

enum status run_command(const struct command *commands, int argc, char **argv,
			const char *what)
{
	const struct command *c;

	for (c = commands; c->name; c++)
		if (is_prefix(argv[0], c->name))
			return c->run(argc - 1, argv + 1);
	return usage_error("there is no %s '%s' (see dblpctl help)", what,
			   argv[0]);
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);

	if (!status)
		usage(stdout);
	return status;
}

static enum status do_version(int argc, char **argv)
{
	static const struct heading version = { "version", NULL };
	enum status status = no_more(argc, argv);

	if (status)
		return status;
	print_object();
	print_string(version, DBLP_VERSION, NULL);
	print_object_end();
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	bool json = false, pretty = false;
	enum status status;
	int c;

	while ((c = getopt_long(argc, argv, "+jphV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'p':
			pretty = true;
			break;
		case 'h':
			usage(stdout);
			return STATUS_OK;
		case 'V':
			printf("dblpctl %s\n", DBLP_VERSION);
			return STATUS_OK;
		default:
			return STATUS_USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	if (!argc) {
		usage(stderr);
		return STATUS_USAGE;
	}
	print_begin(json, pretty);
	status = run_command(objects, argc, argv, "object");
	nl_close();
	if (print_end() && !status)
		status = STATUS_FAILED;
	return status;
}
