// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands: objects, their verbs, and the words after them.
 */

#include <stdarg.h>
#include <string.h>

#include "cmd.h"
#include "err.h"
#include "units.h"

bool only_reading;

bool is_prefix(const char *word, const char *name)
{
	return *word && !strncmp(word, name, strlen(word));
}

bool is_number(const char *word, uint32_t *n)
{
	uint64_t value;

	if (dblp_number_parse(word, 0, UINT32_MAX, &value))
		return false;
	*n = (uint32_t)value;
	return true;
}

enum status usage_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vcomplain(fmt, ap);
	va_end(ap);
	return STATUS_USAGE;
}

enum status no_more(int argc, char **argv)
{
	if (!argc)
		return STATUS_OK;
	return usage_error("unexpected word '%s'", argv[0]);
}

enum status show_help(int argc, char **argv, const char *text)
{
	enum status status = no_more(argc, argv);

	if (!status && !only_reading)
		puts(text);
	return status;
}

enum status run_verb(const struct command *verbs, int argc, char **argv)
{
	if (!argc)
		return verbs->run(0, argv);
	return run_command(verbs, argc, argv, "verb");
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
