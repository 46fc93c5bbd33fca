// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "hook.h"

extern char **environ;

void hook_parse(struct hook *h, char *text)
{
	char *rounds = strchr(text, ':');
	char *command = rounds ? strchr(rounds + 1, ':') : NULL;
	size_t len;

	if (!command || !command[1])
		errx(2, "--hook takes NAME:ROUNDS:COMMAND, not '%s'", text);
	*rounds++ = 0;
	*command++ = 0;
	len = strlen(text);
	if (!len || len >= sizeof(h->name) || strpbrk(text, " \t\n"))
		errx(2, "--hook: the name '%s' is empty, too long or has blanks", text);
	if (strspn(rounds, "0123456789,") != strlen(rounds))
		errx(2, "--hook: rounds are numbers such as 10,20, not '%s'", rounds);
	memcpy(h->name, text, len + 1);
	h->rounds = rounds;
	h->command = command;
}

bool hook_due(const struct hook *h, unsigned int round)
{
	const char *at = h->rounds;
	char *end;

	while (*at) {
		if (*at == ',') {
			at++;
			continue;
		}
		if (strtoul(at, &end, 10) == round)
			return true;
		at = end;
	}
	return false;
}

/* Start the command; the training continues meanwhile */
static void hook_start(const struct hook *h)
{
	char *argv[] = { "sh", "-c", (char *)h->command, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	if (errno)
		err(1, "cannot run '%s'", h->command);
}

/* A failed command makes the experiment invalid. */
bool hooks_wait(void)
{
	bool good = true;
	int status;

	while (wait(&status) > 0)
		good = good && !status;
	return good;
}

const char *hooks_start(const struct hook *hook, unsigned int n,
			unsigned int round)
{
	const char *event = "-";
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!hook_due(&hook[i], round))
			continue;
		hook_start(&hook[i]);
		event = hook[i].name;
	}
	return event;
}
