// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers with units in text.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

#define PERCENT		10000	/* ppm */
#define ONE		1000000	/* ppm */

static const char too_large[] = "is too large";

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned int)(c - 'A') + 10;
	return UINT32_MAX;
}

/* Parse digits and advance @text; false if the number exceeds 32 bits */
static bool take_digits(const char **text, unsigned int base, uint64_t *n)
{
	for (*n = 0; digit(**text) < base; (*text)++) {
		*n = *n * base + digit(**text);
		if (*n > UINT32_MAX)
			return false;
	}
	return true;
}

/*
 * Parse the decimals of a number whose unit is @unit ppm, a power of ten, and add them
 * to @ppm
 */
static const char *take_fraction(const char **text, unsigned int unit,
				 uint64_t *ppm)
{
	unsigned int n = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++, n++) {
		if (unit == 1 && **text != '0')
			return "is finer than 0.0001% (1ppm)";
		unit = unit > 1 ? unit / 10 : 1;
		*ppm += (uint64_t)(**text - '0') * unit;
	}
	return n ? NULL : "needs digits after the point";
}

const char *parse_share(const char *text, uint32_t *ppm)
{
	const char *at = text, *wrong;
	bool fraction;
	uint64_t n;

	if (!take_digits(&at, 10, &n))
		return too_large;
	if (at == text)
		return "is not a share such as 2% or 8000ppm";

	fraction = *at == '.';
	if (!fraction && !strcmp(at, "ppm")) {
		*ppm = (uint32_t)n;
		return NULL;
	}
	n *= PERCENT;
	if (fraction) {
		at++;
		wrong = take_fraction(&at, PERCENT, &n);
		if (wrong)
			return wrong;
		if (!strcmp(at, "ppm"))
			return "is a fraction of 1ppm, the smallest unit";
	}
	if (!*at)
		return "has no unit: % or ppm";
	if (strcmp(at, "%"))
		return "is not a share such as 2% or 8000ppm";
	if (n > UINT32_MAX)
		return too_large;
	*ppm = (uint32_t)n;
	return NULL;
}

static const struct {
	const char	*name;
	uint32_t	ms;
} times[] = {
	{ "h", 3600000 },
	{ "min", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

#define N_TIMES	(sizeof(times) / sizeof(times[0]))

#define SCALE_MAX	1000000000	/* of the decimals of a time */

/* Parse the decimals of a time whose unit is @unit ms, and add them to @ms */
static const char *take_part(const char **text, uint32_t unit, uint64_t *ms)
{
	const char *start = *text;
	uint64_t part = 0, scale = 1;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		if (scale < SCALE_MAX) {
			part = part * 10 + digit(**text);
			scale *= 10;
		} else if (**text != '0') {
			return "is finer than 1ms";
		}
	}
	if (*text == start)
		return "needs digits after the point";
	if (part * unit % scale)
		return "is finer than 1ms";
	*ms += part * unit / scale;
	return NULL;
}

const char *parse_ms(const char *text, uint32_t *ms)
{
	const char *at = text, *unit, *wrong;
	uint64_t n;
	size_t i;

	if (!take_digits(&at, 10, &n))
		return too_large;
	if (at == text)
		return "is not a time such as 500ms or 10s";
	unit = at + (*at == '.');
	unit += unit == at ? 0 : strspn(unit, "0123456789");
	if (!*unit)
		return "has no unit: ms, s, min or h";
	for (i = 0; i < N_TIMES && strcmp(unit, times[i].name); i++)
		;
	if (i == N_TIMES)
		return "is not a time such as 500ms or 10s";
	n *= times[i].ms;
	if (*at == '.') {
		at++;
		wrong = take_part(&at, times[i].ms, &n);
		if (wrong)
			return wrong;
	}
	if (n > UINT32_MAX)
		return too_large;
	*ms = (uint32_t)n;
	return NULL;
}

const char *parse_ratio(const char *text, uint32_t *ppm)
{
	const char *at = text, *wrong;
	uint64_t n;

	if (!take_digits(&at, 10, &n))
		return too_large;
	if (at == text)
		return "is not a ratio such as 0.5";
	n *= ONE;
	if (*at == '.') {
		at++;
		wrong = take_fraction(&at, ONE, &n);
		if (wrong)
			return wrong;
	}
	if (*at)
		return "is not a ratio such as 0.5";
	if (n > UINT32_MAX)
		return too_large;
	*ppm = (uint32_t)n;
	return NULL;
}

const char *parse_id(const char *text, uint32_t *id)
{
	const char *at = text, *start;
	unsigned int base = 10;
	uint64_t n;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		base = 16;
		at += 2;
	}
	start = at;
	if (!take_digits(&at, base, &n))
		return too_large;
	if (at == start || *at)
		return "is not the number of a socket, such as 0x1f or 31";
	*id = (uint32_t)n;
	return NULL;
}

/* Remove trailing zeros of the decimals */
static void cut_zeros(char *buf)
{
	size_t len = strlen(buf);

	while (buf[len - 1] == '0')
		len--;
	if (buf[len - 1] == '.')
		len--;
	buf[len] = 0;
}

void format_share(char buf[UNITS_TEXT], uint32_t ppm)
{
	snprintf(buf, UNITS_TEXT, "%" PRIu32 ".%04" PRIu32, ppm / PERCENT,
		 ppm % PERCENT);
	cut_zeros(buf);
	strcat(buf, "%");
}

void format_ratio(char buf[UNITS_TEXT], uint32_t ppm)
{
	snprintf(buf, UNITS_TEXT, "%" PRIu32 ".%06" PRIu32, ppm / ONE,
		 ppm % ONE);
	cut_zeros(buf);
}

void format_norm(char buf[UNITS_TEXT], uint64_t n)
{
	snprintf(buf, UNITS_TEXT, "%" PRIu64 ".%06" PRIu64, n >> 32,
		 (n & UINT32_MAX) * ONE >> 32);
	cut_zeros(buf);
}

void format_count(char buf[UNITS_TEXT], uint64_t n)
{
	const char *unit = "kMGTPE";
	uint64_t scale = 1000;

	if (n < 10000) {
		snprintf(buf, UNITS_TEXT, "%" PRIu64, n);
		return;
	}
	/* Round down, so that 99.99 % does not look like all */
	for (; unit[1] && n / scale >= 1000; unit++)
		scale *= 1000;
	if (n / scale >= 100)
		snprintf(buf, UNITS_TEXT, "%" PRIu64 "%c", n / scale, *unit);
	else
		snprintf(buf, UNITS_TEXT, "%" PRIu64 ".%" PRIu64 "%c",
			 n / scale, n / (scale / 10) % 10, *unit);
}

void format_ms(char buf[UNITS_TEXT], uint32_t ms)
{
	size_t i = 0;

	/* Use the largest unit of which @ms is a multiple */
	while (ms % times[i].ms || (!ms && times[i].ms != 1))
		i++;
	snprintf(buf, UNITS_TEXT, "%" PRIu32 "%s", ms / times[i].ms,
		 times[i].name);
}

void format_us(char buf[UNITS_TEXT], uint32_t us)
{
	if (us < 1000)
		snprintf(buf, UNITS_TEXT, "%" PRIu32 "us", us);
	else if (us < 1000000)
		snprintf(buf, UNITS_TEXT, "%" PRIu32 ".%02" PRIu32 "ms",
			 us / 1000, us % 1000 / 10);
	else
		snprintf(buf, UNITS_TEXT, "%" PRIu32 ".%02" PRIu32 "s",
			 us / 1000000, us % 1000000 / 10000);
}
