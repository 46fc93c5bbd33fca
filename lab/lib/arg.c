// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include <units.h>

#include "arg.h"

/* End the program if @why, the result of a parser, is not NULL */
static void judge(const char *name, const char *text, const char *why)
{
	if (why)
		errx(2, "--%s: '%s' %s", name, text, why);
}

uint64_t arg_number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	judge(name, text, dblp_number_parse(text, min, max, &value));
	return value;
}

uint64_t arg_time(const char *name, const char *text, uint64_t min_ms, uint64_t max_ms)
{
	char least[DBLP_VALUE_TEXT], most[DBLP_VALUE_TEXT];
	uint32_t ms = 0;

	judge(name, text, dblp_time_parse(text, &ms));
	dblp_time_format(min_ms, least);
	dblp_time_format(max_ms, most);
	if (ms < min_ms || ms > max_ms)
		errx(2, "--%s: '%s' is not a time from %s to %s", name, text, least, most);
	return ms;
}

uint64_t arg_size(const char *name, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	judge(name, text, dblp_size_parse(text, min, max, &value));
	return value;
}

double arg_real(const char *name, const char *text, double min, double max)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !(value >= min && value <= max))
		errx(2, "--%s: '%s' is not a number from %g to %g", name, text, min, max);
	return value;
}

uint32_t arg_share(const char *name, const char *text)
{
	uint32_t ppm = 0;

	judge(name, text, dblp_share_parse(text, &ppm));
	return ppm;
}

struct sockaddr_dblp arg_address(const char *name, const char *text)
{
	struct sockaddr_dblp addr = { 0 };

	judge(name, text, dblp_addr_port(text, &addr));
	return addr;
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
