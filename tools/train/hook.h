/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands that are started during training. */
#ifndef TRAIN_HOOK_H
#define TRAIN_HOOK_H

#include <stdbool.h>

#include "log.h"

#define HOOKS_MAX	16

/**
 * struct hook - a command to start during training
 * @name: marks the round in the log
 * @rounds: "a,b,c"
 * @command: for the shell
 */
struct hook {
	char		name[LOG_WORD];
	const char	*rounds;
	const char	*command;
};

/** hook_parse() - parse NAME:ROUNDS:COMMAND; ends the program on failure */
void hook_parse(struct hook *h, char *text);
/** hook_due() - is @round among the rounds of a hook? */
bool hook_due(const struct hook *h, unsigned int round);

/**
 * hooks_start() - start the commands of a round
 *
 * Return: the name of the last command started, or "-".
 */
const char *hooks_start(const struct hook *hook, unsigned int n,
			unsigned int round);
/** hooks_wait() - wait for the commands; false if one failed */
bool hooks_wait(void);

#endif /* TRAIN_HOOK_H */
