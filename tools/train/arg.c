// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <linux/dblp.h>

#include "arg.h"

unsigned long arg_number(const char *name, const char *text, unsigned long min,
			 unsigned long max)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value < min ||
	    value > max)
		errx(2, "--%s takes a number from %lu to %lu, not '%s'", name,
		     min, max, text);
	return value;
}

static double real_before(const char *name, const char *text, const char *unit,
			  double min, double max)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || (*end && strcmp(end, unit)) ||
	    !(value >= min && value <= max))
		errx(2, "--%s takes a number from %g to %g, not '%s'", name,
		     min, max, text);
	return value;
}

double arg_real(const char *name, const char *text, double min, double max)
{
	return real_before(name, text, "", min, max);
}

uint32_t arg_percent(const char *name, const char *text)
{
	return lround(real_before(name, text, "%", 0, 100) * (DBLP_PPM / 100));
}

uint32_t arg_name(const char *name, const char *text, const char *const *names)
{
	char list[128] = "";
	uint32_t i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(names[i], text))
			return i;
		strncat(list, i ? ", " : "", sizeof(list) - strlen(list) - 1);
		strncat(list, names[i], sizeof(list) - strlen(list) - 1);
	}
	errx(2, "--%s is one of %s, not '%s'", name, list, text);
}
