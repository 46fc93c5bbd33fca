/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands of dblpctl.
 */
#ifndef DBLPCTL_H
#define DBLPCTL_H

#include <stdbool.h>
#include <stdio.h>

/* Exit statuses */
enum status {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE,
	/* What was read was changed meanwhile, each time that it was read */
	STATUS_TORN,
};

/**
 * struct command - an object, or a verb of one
 * @name: may be abbreviated; the first command that fits is taken
 * @run: called with the words behind the name
 */
struct command {
	const char	*name;
	enum status	(*run)(int argc, char **argv);
};

/**
 * only_reading - commands read their words and then do nothing
 *
 * So all lines of a batch are read before the first one is run. Each verb returns between
 * the two.
 */
extern bool only_reading;

/** is_prefix() - does @name begin with @word? */
bool is_prefix(const char *word, const char *name);

/**
 * run_command() - run the command that the first word names
 * @commands: the last has no name
 * @argc: words
 * @argv: words
 * @what: kind of command, for messages
 */
enum status run_command(const struct command *commands, int argc, char **argv,
			const char *what);

/** usage_error() - print a one-line message; returns STATUS_USAGE */
enum status usage_error(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/** no_more() - STATUS_OK if there is no word left, else an error message */
enum status no_more(int argc, char **argv);

/** show_help() - print @text, if there is no word left */
enum status show_help(int argc, char **argv, const char *text);

/**
 * run_verb() - run the verb of an object that the first word names
 * @verbs: as for run_command(); the first is run if there is no word
 * @argc: words
 * @argv: words
 */
enum status run_verb(const struct command *verbs, int argc, char **argv);

enum status do_cc(int argc, char **argv);
enum status do_doctor(int argc, char **argv);
enum status do_job(int argc, char **argv);
enum status do_monitor(int argc, char **argv);
enum status do_param(int argc, char **argv);
enum status do_phase(int argc, char **argv);
enum status do_save(int argc, char **argv);
enum status do_socket(int argc, char **argv);
enum status do_stats(int argc, char **argv);
enum status do_top(int argc, char **argv);

#endif /* DBLPCTL_H */
