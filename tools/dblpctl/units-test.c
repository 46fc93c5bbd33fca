// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of units.c, without a kernel. Prints TAP.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

static int count, failed;

static void verdict(int ok, const char *what, const char *text)
{
	count++;
	failed += !ok;
	printf("%s %d %s '%s'\n", ok ? "ok" : "not ok", count, what, text);
}

#define REFUSED	UINT64_MAX
/* What a refused text must leave alone */
#define BEFORE	0xdeadbeef

static const struct {
	const char	*text;
	uint64_t	ppm;
} shares[] = {
	{ "0%", 0 },
	{ "0ppm", 0 },
	{ "2%", 20000 },
	{ "0.8%", 8000 },
	{ "40.8%", 408000 },
	{ "8000ppm", 8000 },
	{ "100%", 1000000 },
	{ "1000000ppm", 1000000 },
	{ "0.0001%", 1 },
	{ "33.3333%", 333333 },
	{ "99.9999%", 999999 },
	{ "2.50000000000000000000%", 25000 },
	{ "00002%", 20000 },
	/* The kernel says no to these, with its own words */
	{ "101%", 1010000 },
	{ "429496.7295%", 4294967295 },
	{ "4294967295ppm", 4294967295 },

	{ "429496.7296%", REFUSED },
	{ "4294967296ppm", REFUSED },
	{ "18446744073709551616%", REFUSED },
	{ "18446744073709551617ppm", REFUSED },
	{ "99999999999999999999999999999999%", REFUSED },
	{ "0.00001%", REFUSED },
	{ "0.80001%", REFUSED },
	{ "0.5ppm", REFUSED },
	{ "1.0ppm", REFUSED },
	{ "", REFUSED },
	{ "%", REFUSED },
	{ "ppm", REFUSED },
	{ ".", REFUSED },
	{ ".%", REFUSED },
	{ ".5%", REFUSED },
	{ "5.%", REFUSED },
	{ "2", REFUSED },
	{ "0", REFUSED },
	{ "0.8", REFUSED },
	{ "-1%", REFUSED },
	{ "+1%", REFUSED },
	{ " 1%", REFUSED },
	{ "1% ", REFUSED },
	{ "1 %", REFUSED },
	{ "1%%", REFUSED },
	{ "1.2.3%", REFUSED },
	{ "1,5%", REFUSED },
	{ "0x10%", REFUSED },
	{ "1e2%", REFUSED },
	{ "1k%", REFUSED },
	{ "1PPM", REFUSED },
	{ "1ppmx", REFUSED },
	{ "a%", REFUSED },
	{ "nan%", REFUSED },
	{ "inf%", REFUSED },
};

static const struct {
	const char	*text;
	uint64_t	id;
} ids[] = {
	{ "1", 1 },
	{ "31", 31 },
	{ "0x1f", 31 },
	{ "0X1F", 31 },
	{ "010", 10 },
	{ "0", 0 },
	{ "4294967295", 4294967295 },
	{ "0xffffffff", 4294967295 },
	{ "4294967296", REFUSED },
	{ "0x100000000", REFUSED },
	{ "18446744073709551617", REFUSED },
	{ "", REFUSED },
	{ "0x", REFUSED },
	{ "x1", REFUSED },
	{ "1f", REFUSED },
	{ "0x1g", REFUSED },
	{ "-1", REFUSED },
	{ "+1", REFUSED },
	{ " 1", REFUSED },
	{ "1 ", REFUSED },
	{ "1.0", REFUSED },
	{ "P", REFUSED },
	{ "\x10", REFUSED },
	{ "0x\x11", REFUSED },
};

static const struct {
	uint64_t	n;
	const char	*text;
} counts[] = {
	{ 0, "0" },
	{ 9999, "9999" },
	{ 10000, "10.0k" },
	{ 99999, "99.9k" },
	{ 100000, "100k" },
	{ 999999, "999k" },
	{ 1000000, "1.0M" },
	{ 16777216, "16.7M" },
	{ 1000000000, "1.0G" },
	{ 18446744073709551615U, "18.4E" },
}, times[] = {
	{ 0, "0us" },
	{ 999, "999us" },
	{ 1000, "1.00ms" },
	{ 1059, "1.05ms" },
	{ 999999, "999.99ms" },
	{ 1000000, "1.00s" },
	{ 4294967295, "4294.96s" },
}, percents[] = {
	{ 0, "0%" },
	{ 1, "0.0001%" },
	{ 8000, "0.8%" },
	{ 408000, "40.8%" },
	{ 999999, "99.9999%" },
	{ 1000000, "100%" },
	{ 4294967295, "429496.7295%" },
};

#define N(array)	(sizeof(array) / sizeof((array)[0]))

static void check_parsed(const char *what, const char *text,
			 const char *wrong, uint32_t value, uint64_t expected)
{
	if (expected == REFUSED)
		verdict(wrong && *wrong && value == BEFORE, what, text);
	else
		verdict(!wrong && value == expected, what, text);
	if (wrong && expected != REFUSED)
		printf("# it %s\n", wrong);
}

int main(void)
{
	char buf[UNITS_TEXT];
	const char *wrong;
	uint32_t value;
	size_t i;

	puts("TAP version 13");
	for (i = 0; i < N(shares); i++) {
		value = BEFORE;
		wrong = parse_share(shares[i].text, &value);
		check_parsed("share", shares[i].text, wrong, value,
			     shares[i].ppm);
	}
	for (i = 0; i < N(ids); i++) {
		value = BEFORE;
		wrong = parse_id(ids[i].text, &value);
		check_parsed("number", ids[i].text, wrong, value, ids[i].id);
	}
	for (i = 0; i < N(counts); i++) {
		format_count(buf, counts[i].n);
		verdict(!strcmp(buf, counts[i].text), "count", buf);
	}
	for (i = 0; i < N(times); i++) {
		format_us(buf, (uint32_t)times[i].n);
		verdict(!strcmp(buf, times[i].text), "time", buf);
	}
	for (i = 0; i < N(percents); i++) {
		format_share(buf, (uint32_t)percents[i].n);
		wrong = parse_share(buf, &value);
		verdict(!strcmp(buf, percents[i].text) && !wrong &&
			value == percents[i].n, "percentage", buf);
	}
	printf("1..%d\n", count);
	return failed > 0;
}
