// SPDX-License-Identifier: GPL-2.0-only
/* Arguments of the command line. */
#include <err.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

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

const struct transport *arg_transport(const char *text)
{
	const struct transport *tp = tp_find(text);

	if (!tp)
		errx(2, "--transport is tcp or dblp, not '%s'", text);
	return tp;
}
