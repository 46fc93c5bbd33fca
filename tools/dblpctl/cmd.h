/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands: objects, their verbs, and the words after them.
 */
#ifndef DBLPCTL_CMD_H
#define DBLPCTL_CMD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses */
enum status {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE,
	/* The state changed during every attempt to read it */
	STATUS_TORN,
};

/**
 * struct command - an object, or a verb of one
 * @name: name; a word that is a prefix of several names means the first of them
 * @run: called with the words after the name
 */
struct command {
	const char	*name;
	enum status	(*run)(int argc, char **argv);
};

/**
 * only_reading - commands parse their words and then return
 *
 * A batch parses all lines this way before it runs the first one.
 */
extern bool only_reading;

/** is_prefix() - does @name begin with @word? */
bool is_prefix(const char *word, const char *name);

/**
 * run_command() - run the command named by the first word
 * @commands: ends with an entry without a name
 * @argc: number of words
 * @argv: words
 * @what: kind of command, for messages
 */
enum status run_command(const struct command *commands, int argc, char **argv,
			const char *what);

/** is_number() - parse a number of 32 bits, decimal or with 0x; @n is unchanged on failure */
bool is_number(const char *word, uint32_t *n);

/** usage_error() - print a message of one line; returns STATUS_USAGE */
enum status usage_error(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/** no_more() - STATUS_OK if @argc is 0, else STATUS_USAGE after a message */
enum status no_more(int argc, char **argv);

/** show_help() - print @text, or an error message if @argc is not 0 */
enum status show_help(int argc, char **argv, const char *text);

/**
 * run_verb() - run the verb of an object named by the first word
 * @verbs: as for run_command(); the first one is the default
 * @argc: number of words
 * @argv: words
 */
enum status run_verb(const struct command *verbs, int argc, char **argv);

#endif /* DBLPCTL_CMD_H */
