// SPDX-License-Identifier: GPL-2.0-only
/* Values of options. */
#include <err.h>
#include <errno.h>
#include <linux/dblp.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		wrong("--%s takes a number from %llu to %llu, not '%s'", name,
		      (unsigned long long)min, (unsigned long long)max, text);
	return value;
}

uint32_t share(const char *name, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end != text && !strcmp(end, "%"))
		value /= 100;
	else if (end == text || *end)
		value = -1;
	if (!(value >= 0 && value <= 1))
		wrong("--%s takes a share such as 0.02 or 2%%, not '%s'", name,
		      text);
	return lround(value * DBLP_PPM);
}

int choice(const char *name, const char *text, const char *const *names)
{
	int i;

	for (i = 0; names[i]; i++)
		if (!strcmp(text, names[i]))
			return i;
	wrong("--%s does not take '%s'", name, text);
}

unsigned int numbers(const char *name, char *text, uint32_t max, uint32_t *list,
		     unsigned int room)
{
	unsigned int n = 0;
	char *word;

	while ((word = strsep(&text, ","))) {
		if (n == room)
			wrong("--%s takes at most %u numbers", name, room);
		list[n++] = number(name, word, 1, max);
	}
	return n;
}

void set_hosts(const char *name, char *text)
{
	char *word;

	cfg.n_from = 0;
	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (cfg.n_from == MAX_HOSTS)
			wrong("more than %u hosts", MAX_HOSTS);
		cfg.from[cfg.n_from++] = word;
	}
	if (!cfg.n_from)
		wrong("--%s names no namespace", name);
}
