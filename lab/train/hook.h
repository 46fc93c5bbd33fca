/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands to start in given rounds of a training. */
#ifndef TRAIN_HOOK_H
#define TRAIN_HOOK_H

#include <stdbool.h>

#include "log.h"

#define HOOKS_MAX	16

/**
 * struct hook - a command to start in given rounds
 * @name: the event of these rounds in the log
 * @rounds: numbers of the rounds, "a,b,c"
 * @command: command line for the shell
 */
struct hook {
	char		name[LOG_WORD];
	const char	*rounds;
	const char	*command;
};

/** hook_parse() - parse NAME:ROUNDS:COMMAND; ends the program if invalid */
void hook_parse(struct hook *h, char *text);
/** hook_due() - does the hook run in @round? */
bool hook_due(const struct hook *h, unsigned int round);

/**
 * hooks_start() - start the commands that are due in @round
 *
 * Return: the name of the last command started, or "-".
 */
const char *hooks_start(const struct hook *hook, unsigned int n,
			unsigned int round);
/** hooks_wait() - wait for all commands; false if one failed */
bool hooks_wait(void);

#endif /* TRAIN_HOOK_H */
