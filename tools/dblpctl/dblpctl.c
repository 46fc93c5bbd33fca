// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl: shows and configures AF_DBLP sockets.
 */

#include <getopt.h>

#include "batch.h"
#include "dblpctl.h"
#include "netns.h"
#include "nl.h"
#include "print.h"
#include "version.h"

static enum status do_help(int argc, char **argv);
static enum status do_version(int argc, char **argv);

static const struct command objects[] = {
	{ "socket", do_socket },
	{ "phase", do_phase },
	{ "job", do_job },
	{ "param", do_param },
	{ "cc", do_cc },
	{ "stats", do_stats },
	{ "top", do_top },
	{ "monitor", do_monitor },
	{ "save", do_save },
	{ "doctor", do_doctor },
	{ "version", do_version },
	{ "help", do_help },
	{ NULL, NULL },
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: dblpctl [OPTION...] OBJECT [VERB] [ARG...]\n"
		"       dblpctl [OPTION...] -b FILE\n"
		"       dblpctl [OPTION...] socket [list [-p] [-m] [-i] [FILTER...]]\n"
		"       dblpctl [OPTION...] socket show ID\n"
		"       dblpctl socket set ID [loss SHARE] [cap SHARE] [phase PHASE] [job JOB]\n"
		"       dblpctl [OPTION...] phase [list]\n"
		"       dblpctl [OPTION...] phase show PHASE\n"
		"       dblpctl phase set PHASE [loss SHARE] [close POLICY] ...\n"
		"       dblpctl phase { del PHASE | flush }\n"
		"       dblpctl [OPTION...] job [list]\n"
		"       dblpctl [OPTION...] job { show | stats } JOB\n"
		"       dblpctl job { add | replace } NUMBER [phase PHASE] [name NAME] ...\n"
		"       dblpctl job set JOB [phase PHASE] [name NAME] ...\n"
		"       dblpctl job { del JOB | flush }\n"
		"       dblpctl [OPTION...] param [list]\n"
		"       dblpctl [OPTION...] param show NAME\n"
		"       dblpctl param set [congestion CC] [cap SHARE] [timeout TIME] ...\n"
		"       dblpctl [OPTION...] cc [list]\n"
		"       dblpctl [OPTION...] stats [all | nonzero | --prometheus] [-i TIME [-c COUNT]]\n"
		"       dblpctl [OPTION...] top [-i TIME] [-c COUNT]\n"
		"       dblpctl [OPTION...] monitor [conn | msg | job | phase]...\n"
		"       dblpctl save [FILE]\n"
		"       dblpctl [OPTION...] doctor [ADDRESS [PORT]]\n"
		"       dblpctl version\n"
		"\n"
		"  ID     number of a socket, as in socket list: 0x1f or 31\n"
		"  PHASE  number (0 to 7) or name\n"
		"  JOB    number (from 1) or name\n"
		"  SHARE  share of the bytes: 2%%, 0.8%% or 8000ppm\n"
		"  TIME   500ms, 1.5s, 2min or 1h\n"
		"\n"
		"  -j, --json         print JSON\n"
		"  -p, --pretty       print JSON with line breaks\n"
		"  -t, --timestamp    print the time of day: monitor, top, stats\n"
		"  -N, --netns NAME   run in this network namespace\n"
		"  -b, --batch FILE   run the commands in FILE, or of the standard input with -\n"
		"  -f, --force        with -b: skip invalid lines, continue after a failed one\n"
		"  -h, --help         print this\n"
		"  -V, --version      print the version\n"
		"\n"
		"Objects, verbs and keywords may be abbreviated. For help on an object, run for\n"
		"example: dblpctl socket help. Changes, monitor and save need CAP_NET_ADMIN.\n");
}

static enum status do_help(int argc, char **argv)
{
	enum status status = no_more(argc, argv);

	if (!status && !only_reading)
		usage(stdout);
	return status;
}

static enum status do_version(int argc, char **argv)
{
	static const struct heading version = { "version", NULL };
	enum status status;

	if (argc && is_prefix(argv[0], "help"))
		return show_help(argc - 1, argv + 1,
			"Usage: dblpctl [OPTION...] version\n"
			"\n"
			"Prints the version of dblpctl, as -V does. The version of the module is in\n"
			"/sys/module/dblp/version; dblpctl doctor compares both.");
	status = no_more(argc, argv);
	if (status || only_reading)
		return status;
	print_object();
	print_string(version, DBLP_BUILD, NULL);
	print_object_end();
	return STATUS_OK;
}

static struct {
	const char	*netns;
	const char	*batch;
	bool		json;
	bool		pretty;
	bool		timestamps;
	bool		force;
} opts;

static enum status run_one(int argc, char **argv)
{
	enum status status;

	print_begin(opts.json, opts.pretty, opts.timestamps);
	status = run_command(objects, argc, argv, "object");
	if (print_end() && !status)
		status = STATUS_FAILED;
	return status;
}

static enum status run_all(int argc, char **argv)
{
	if (opts.batch && argc)
		return usage_error("unexpected word '%s': the commands are in %s",
				   argv[0], opts.batch);
	if (opts.force && !opts.batch)
		return usage_error("-force needs -b FILE");
	if (!opts.batch && !argc) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (opts.netns) {
		enum status status = netns_enter(opts.netns);

		if (status)
			return status;
	}
	if (opts.batch)
		return run_batch(opts.batch, opts.force, run_one);
	return run_one(argc, argv);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "timestamp", no_argument, NULL, 't' },
		{ "netns", required_argument, NULL, 'N' },
		{ "batch", required_argument, NULL, 'b' },
		{ "force", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	enum status status;
	int c;

	/* As with ip, long options may have one dash */
	while ((c = getopt_long_only(argc, argv, "+jptN:b:fhV", options,
				     NULL)) != -1) {
		switch (c) {
		case 'j':
			opts.json = true;
			break;
		case 'p':
			opts.pretty = true;
			break;
		case 't':
			opts.timestamps = true;
			break;
		case 'N':
			opts.netns = optarg;
			break;
		case 'b':
			opts.batch = optarg;
			break;
		case 'f':
			opts.force = true;
			break;
		case 'h':
			usage(stdout);
			return STATUS_OK;
		case 'V':
			printf("dblpctl %s\n", DBLP_BUILD);
			return STATUS_OK;
		default:
			return STATUS_USAGE;
		}
	}
	status = run_all(argc - optind, argv + optind);
	nl_close();
	return status;
}
