// SPDX-License-Identifier: GPL-2.0-only
/* Values of options. */
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <units.h>

#include "arg.h"
#include "perf.h"

void wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	fputs("Try 'dblp-perf --help'.\n", stderr);
	exit(EXIT_USAGE);
}

/* Print an error if @why, the result of a parser, is not NULL */
static void judge(const char *name, const char *text, const char *why)
{
	if (why)
		wrong("--%s: '%s' %s", name, text, why);
}

uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	judge(name, text, dblp_number_parse(text, min, max, &value));
	return value;
}

uint64_t size(const char *name, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	judge(name, text, dblp_size_parse(text, min, max, &value));
	return value;
}

uint32_t share(const char *name, const char *text)
{
	uint32_t ppm = 0;

	judge(name, text, dblp_share_parse(text, &ppm));
	return ppm;
}

uint32_t duration(const char *name, const char *text, uint32_t max_ms)
{
	char most[DBLP_VALUE_TEXT];
	uint32_t ms = 0;

	judge(name, text, dblp_time_parse(text, &ms));
	dblp_time_format(max_ms, most);
	if (!ms || ms > max_ms)
		wrong("--%s: '%s' is not a time from 1ms to %s", name, text, most);
	return ms;
}

int choice(const char *name, const char *text, const char *const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	wrong("--%s does not take '%s'", name, text);
}

/* Split a list of at most @room words, of which none is empty */
static unsigned int split(const char *name, char *text, const char **word, size_t room)
{
	size_t n = dblp_words(text, word, room), i;

	if (!n)
		wrong("--%s takes at most %zu values", name, room);
	for (i = 0; i < n; i++)
		if (!*word[i])
			wrong("--%s: a value is empty", name);
	return (unsigned int)n;
}

unsigned int numbers(const char *name, char *text, uint32_t max, uint32_t *list,
		     unsigned int room)
{
	const char *word[MAX_HOSTS];
	unsigned int n = split(name, text, word, room), i;

	for (i = 0; i < n; i++)
		list[i] = number(name, word[i], 1, max);
	return n;
}

unsigned int sizes(const char *name, char *text, uint32_t max, uint32_t *list,
		   unsigned int room)
{
	const char *word[MAX_HOSTS];
	unsigned int n = split(name, text, word, room), i;

	for (i = 0; i < n; i++)
		list[i] = size(name, word[i], 1, max);
	return n;
}

void set_hosts(const char *name, char *text)
{
	cfg.n_from = split(name, text, cfg.from, MAX_HOSTS);
}
