// SPDX-License-Identifier: GPL-2.0-only
/* Commands that are started during training. */
#include <err.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "server.h"

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

/* The training does not wait for the command. */
static void hook_start(const struct hook *h)
{
	char *argv[] = { "sh", "-c", (char *)h->command, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	if (errno)
		err(1, "cannot run '%s'", h->command);
}

/* If a command failed, the experiment is invalid. */
void hooks_wait(void)
{
	int status;

	while (wait(&status) > 0)
		if (status)
			errx(1, "a command of --hook has failed");
}

const char *hooks_start(const struct server *s, unsigned int round)
{
	const char *event = "-";
	unsigned int i;

	for (i = 0; i < s->hooks; i++) {
		if (!hook_due(&s->hook[i], round))
			continue;
		hook_start(&s->hook[i]);
		event = s->hook[i].name;
	}
	return event;
}
