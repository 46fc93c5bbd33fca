// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Numbers with units as text.
 */

#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PERCENT		10000	/* ppm */
#define ONE		1000000	/* ppm */

static const char no_share[] = "is not a share such as 2% or 8000ppm";
static const char too_much[] = "is more than 100%";
static const char no_time[] = "is not a time such as 500ms, 10s or 2min";
static const char no_ratio[] = "is not a ratio such as 0.5";
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

/* Parse digits and advance @text; false if the number exceeds @max */
static bool take_digits(const char **text, unsigned int base, uint64_t max,
			uint64_t *n)
{
	unsigned int next;

	for (*n = 0; (next = digit(**text)) < base; (*text)++) {
		if (next > max || *n > (max - next) / base)
			return false;
		*n = *n * base + next;
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
	const char *finer = unit == ONE ? "is finer than 0.000001" :
					  "is finer than 0.0001% (1ppm)";
	unsigned int n = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++, n++) {
		if (unit == 1 && **text != '0')
			return finer;
		unit = unit > 1 ? unit / 10 : 1;
		*ppm += (uint64_t)(**text - '0') * unit;
	}
	return n ? NULL : "needs digits after the point";
}

const char *dblp_share_parse(const char *text, uint32_t *ppm)
{
	const char *at = text, *wrong;
	bool fraction;
	uint64_t n;

	if (!take_digits(&at, 10, UINT32_MAX, &n))
		return too_much;
	if (at == text)
		return no_share;
	fraction = *at == '.';
	if (fraction || strcmp(at, "ppm"))
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
	if (strcmp(at, "%") && strcmp(at, "ppm"))
		return no_share;
	if (n > DBLP_PPM)
		return too_much;
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

const char *dblp_time_parse(const char *text, uint32_t *ms)
{
	const char *at = text, *unit, *wrong;
	uint64_t n;
	size_t i;

	if (!take_digits(&at, 10, UINT32_MAX, &n))
		return too_large;
	if (at == text)
		return no_time;
	unit = at + (*at == '.');
	unit += unit == at ? 0 : strspn(unit, "0123456789");
	if (!*unit)
		return "has no unit: ms, s, min or h";
	for (i = 0; i < N_TIMES && strcmp(unit, times[i].name); i++)
		;
	if (i == N_TIMES)
		return no_time;
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

const char *dblp_ratio_parse(const char *text, uint32_t *ppm)
{
	const char *at = text, *wrong;
	uint64_t n;

	if (!take_digits(&at, 10, UINT32_MAX, &n))
		return too_large;
	if (at == text)
		return no_ratio;
	n *= ONE;
	if (*at == '.') {
		at++;
		wrong = take_fraction(&at, ONE, &n);
		if (wrong)
			return wrong;
	}
	if (*at)
		return no_ratio;
	if (n > UINT32_MAX)
		return too_large;
	*ppm = (uint32_t)n;
	return NULL;
}

/* Reason for a number that is not from @min to @max */
static const char *outside(const char *what, uint64_t min, uint64_t max,
			   const char *unit)
{
	static _Thread_local char why[96];

	snprintf(why, sizeof(why), "is not a %s from %" PRIu64 " to %" PRIu64 "%s",
		 what, min, max, unit);
	return why;
}

const char *dblp_number_parse(const char *text, uint64_t min, uint64_t max,
			      uint64_t *n)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *start = text + 2 * hex, *at = start;
	uint64_t value;

	if (!take_digits(&at, hex ? 16 : 10, max, &value) || at == start ||
	    *at || value < min)
		return outside("number", min, max, "");
	*n = value;
	return NULL;
}

static const struct {
	const char	*name;
	uint32_t	bytes;
} sizes[] = {
	{ "", 1 }, { "B", 1 },
	{ "kB", 1000 }, { "MB", 1000000 }, { "GB", 1000000000 },
	{ "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "GiB", 1 << 30 },
};

#define N_SIZES	(sizeof(sizes) / sizeof(sizes[0]))

const char *dblp_size_parse(const char *text, uint64_t min, uint64_t max,
			    uint64_t *bytes)
{
	const char *at = text;
	uint64_t n;
	size_t i;

	if (!take_digits(&at, 10, max, &n))
		return outside("size", min, max, " bytes");
	for (i = 0; i < N_SIZES && strcmp(at, sizes[i].name); i++)
		;
	if (at == text || i == N_SIZES)
		return "is not a size such as 1000000, 64KiB or 1MB";
	if (n > max / sizes[i].bytes || n * sizes[i].bytes < min)
		return outside("size", min, max, " bytes");
	*bytes = n * sizes[i].bytes;
	return NULL;
}

size_t dblp_words(char *list, const char **word, size_t room)
{
	size_t n = 0;
	char *next;

	while ((next = strsep(&list, ","))) {
		if (n == room)
			return 0;
		word[n++] = next;
	}
	return n;
}

/* Remove trailing zeros of the decimals */
static void cut_zeros(char *text)
{
	size_t len = strlen(text);

	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	text[len] = 0;
}

void dblp_share_format(uint32_t ppm, char text[DBLP_VALUE_TEXT])
{
	snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 ".%04" PRIu32,
		 ppm / PERCENT, ppm % PERCENT);
	cut_zeros(text);
	strcat(text, "%");
}

void dblp_ratio_format(uint32_t ppm, char text[DBLP_VALUE_TEXT])
{
	snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 ".%06" PRIu32, ppm / ONE,
		 ppm % ONE);
	cut_zeros(text);
}

void dblp_norm_format(uint64_t n, char text[DBLP_VALUE_TEXT])
{
	snprintf(text, DBLP_VALUE_TEXT, "%" PRIu64 ".%06" PRIu64, n >> 32,
		 (n & UINT32_MAX) * ONE >> 32);
	cut_zeros(text);
}

void dblp_count_format(uint64_t n, char text[DBLP_VALUE_TEXT])
{
	const char *unit = "kMGTPE";
	uint64_t scale = 1000;

	if (n < 10000) {
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu64, n);
		return;
	}
	/* Round down, so that 99.99 % does not look like all */
	for (; unit[1] && n / scale >= 1000; unit++)
		scale *= 1000;
	if (n / scale >= 100)
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu64 "%c", n / scale,
			 *unit);
	else
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu64 ".%" PRIu64 "%c",
			 n / scale, n / (scale / 10) % 10, *unit);
}

void dblp_time_format(uint32_t ms, char text[DBLP_VALUE_TEXT])
{
	size_t i = 0;

	/* Use the largest unit of which @ms is a multiple */
	while (ms % times[i].ms || (!ms && times[i].ms != 1))
		i++;
	snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 "%s", ms / times[i].ms,
		 times[i].name);
}

void dblp_us_format(uint32_t us, char text[DBLP_VALUE_TEXT])
{
	if (us < 1000)
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 "us", us);
	else if (us < 1000000)
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 ".%02" PRIu32 "ms",
			 us / 1000, us % 1000 / 10);
	else
		snprintf(text, DBLP_VALUE_TEXT, "%" PRIu32 ".%02" PRIu32 "s",
			 us / 1000000, us % 1000000 / 10000);
}
