// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of units.c, prefix.c and rates.c, without a kernel. Prints TAP.
 */

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "prefix.h"
#include "rates.h"
#include "units.h"

static int count, failed;

static void verdict(int ok, const char *what, const char *text)
{
	count++;
	failed += !ok;
	printf("%s %d %s '%s'\n", ok ? "ok" : "not ok", count, what, text);
}

#define REFUSED	UINT64_MAX
/* Value of the result before parsing; a refused text must not change it */
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
	/* The kernel refuses these, with its own message */
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
	const char	*text;
	uint64_t	ms;
} spans[] = {
	{ "0ms", 0 },
	{ "10ms", 10 },
	{ "1s", 1000 },
	{ "1.5s", 1500 },
	{ "0.001s", 1 },
	{ "2.50000000000000000000s", 2500 },
	{ "2min", 120000 },
	{ "0.5min", 30000 },
	{ "1h", 3600000 },
	{ "0.0000002777777h", REFUSED },
	{ "0.00001min", REFUSED },
	{ "1.00005min", 60003 },
	{ "4294967295ms", 4294967295 },
	{ "4294967296ms", REFUSED },
	{ "4294967295s", REFUSED },
	{ "1194h", REFUSED },
	{ "1193h", 4294800000 },
	{ "0.0001s", REFUSED },
	{ "0.5ms", REFUSED },
	{ "1.0ms", 1 },
	{ "1.0000000001s", REFUSED },
	{ "", REFUSED },
	{ "s", REFUSED },
	{ "10", REFUSED },
	{ "1.", REFUSED },
	{ "1.s", REFUSED },
	{ ".5s", REFUSED },
	{ "1..5s", REFUSED },
	{ "1.5.s", REFUSED },
	{ "-1s", REFUSED },
	{ "1 s", REFUSED },
	{ "1S", REFUSED },
	{ "1m", REFUSED },
	{ "1us", REFUSED },
	{ "1sx", REFUSED },
	{ "inf", REFUSED },
};

/* Is @addr in the prefix? -1 if the prefix is invalid */
static const struct {
	const char	*prefix;
	const char	*addr;
	int		has;
} prefixes[] = {
	{ "10.0.0.0/24", "::ffff:10.0.0.255", 1 },
	{ "10.0.0.0/24", "::ffff:10.0.1.0", 0 },
	{ "10.0.0.77/24", "::ffff:10.0.0.1", 1 },
	{ "10.0.0.0/23", "::ffff:10.0.1.0", 1 },
	{ "10.0.0.0/23", "::ffff:10.0.2.0", 0 },
	{ "10.0.0.1", "::ffff:10.0.0.1", 1 },
	{ "10.0.0.1", "::ffff:10.0.0.2", 0 },
	{ "10.0.0.1/32", "::ffff:10.0.0.0", 0 },
	{ "0.0.0.0/0", "::ffff:10.0.0.1", 1 },
	{ "0.0.0.0/0", "fd00::1", 0 },
	{ "::/0", "::ffff:10.0.0.1", 1 },
	{ "::/0", "fd00::1", 1 },
	{ "fd00::/8", "fdff::1", 1 },
	{ "fd00::/8", "fc00::1", 0 },
	{ "fc00::/7", "fd00::1", 1 },
	{ "::1", "::1", 1 },
	{ "::1/128", "::2", 0 },
	{ "::1/127", "::", 1 },
	{ "10.0.0.0/33", "::", -1 },
	{ "::/129", "::", -1 },
	{ "::/4294967296", "::", -1 },
	{ "10.0.0/24", "::", -1 },
	{ "10.0.0.0/", "::", -1 },
	{ "10.0.0.0/-1", "::", -1 },
	{ "10.0.0.0/ 8", "::", -1 },
	{ "10.0.0.0/8x", "::", -1 },
	{ "10.0.0.0/8/8", "::", -1 },
	{ "/8", "::", -1 },
	{ "", "::", -1 },
	{ "localhost", "::", -1 },
	{ "fd00:::/8", "::", -1 },
	{ "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", "::", -1 },
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
}, whole[] = {
	{ 0, "0ms" },
	{ 1, "1ms" },
	{ 1500, "1500ms" },
	{ 30000, "30s" },
	{ 60000, "1min" },
	{ 90000, "90s" },
	{ 3600000, "1h" },
	{ 4294967295, "4294967295ms" },
}, percents[] = {
	{ 0, "0%" },
	{ 1, "0.0001%" },
	{ 8000, "0.8%" },
	{ 408000, "40.8%" },
	{ 999999, "99.9999%" },
	{ 1000000, "100%" },
	{ 4294967295, "429496.7295%" },
}, norms[] = {
	{ 0, "0" },
	{ 1, "0" },
	{ 4295, "0.000001" },
	{ 1ULL << 31, "0.5" },
	{ 1ULL << 32, "1" },
	{ 10ULL << 32, "10" },
	{ UINT64_MAX, "4294967295.999999" },
};

static const struct {
	const char *text;
	uint64_t ppm;
} ratios[] = {
	{ "0.5", 500000 },
	{ "2", 2000000 },
	{ "0", 0 },
	{ "0.000001", 1 },
	{ "0.50000000", 500000 },
	{ "4294.967295", 4294967295 },
	{ "4294.967296", REFUSED },
	{ "4295", REFUSED },
	{ "99999999999999999999", REFUSED },
	{ "0.0000001", REFUSED },
	{ "0.", REFUSED },
	{ ".5", REFUSED },
	{ "-1", REFUSED },
	{ "50%", REFUSED },
	{ "", REFUSED },
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

static void check_prefixes(void)
{
	struct in6_addr addr;
	struct prefix p;
	int has;
	size_t i;

	for (i = 0; i < N(prefixes); i++) {
		p.bits = BEFORE;
		has = -1;
		if (inet_pton(AF_INET6, prefixes[i].addr, &addr) == 1 &&
		    !parse_prefix(prefixes[i].prefix, &p))
			has = prefix_has(&p, &addr);
		verdict(has == prefixes[i].has &&
			(has >= 0 || p.bits == BEFORE), "prefix",
			prefixes[i].prefix);
	}
}

/* Sockets and jobs, with counters in the order of enum count */
#define SOCKET(number, in, rtt, ...) \
	{ .socket = number, .job = in, .sockets = 1, .srtt_us = rtt, .n = { __VA_ARGS__ } }
#define JOB(number, text, in) \
	{ .job = number, .is_known = true, .name = text, .phase = in }

static const struct row looks[][5] = {
	{
		/* Moves to job 7; continues; ends; is idle; ends, and its number is reused */
		SOCKET(9, 0, 300, 100, 10, 1, 0, 50, 1),
		SOCKET(2, 7, 100, UINT64_MAX - 5, 0, 0, 0, 20, 0),
		SOCKET(5, 7, 999, 700, 0, 0, 0, 70, 7),
		SOCKET(3, 7, 900, 40, 4, 4, 4, 40, 4),
		SOCKET(4, 0, 100, 600, 60, 9, 9, 90, 9),
	},
	{
		SOCKET(2, 7, 200, UINT64_MAX, 3, 0, 0, 30, 1),
		SOCKET(9, 7, 100, 130, 11, 1, 0, 150, 5),
		SOCKET(3, 7, 900, 40, 4, 4, 4, 40, 4),
		SOCKET(4, 0, 400, 601, 60, 10, 9, 8, 0),
		/* A new socket */
		SOCKET(6, 8, 50, 0, 0, 77, 7, 0, 3),
	},
};

static const struct row jobs[] = {
	JOB(8, "other", 1), JOB(12, "idle", 2), JOB(7, "resnet", 3),
};

/* Expected rows in the order of rows_order() */
static const struct {
	struct row	row;
	uint64_t	asked;
	uint32_t	loss;
} shown[] = {
	{ { .job = 7, .is_known = true, .name = "resnet", .phase = 3, .sockets = 3, .srtt_us = 200,
	    .n = { 35, 4, 0, 0, 110, 5 } }, 39, 45454 },
	{ { .job = 8, .is_known = true, .name = "other", .phase = 1, .sockets = 1,
	    .n = { 0, 0, 77, 7, 0, 3 } }, 0, 0 },
	{ { .job = 12, .is_known = true, .name = "idle", .phase = 2 }, 0, 0 },
	{ { .sockets = 1, .srtt_us = 400, .n = { 601, 60, 10, 9, 8, 0 } }, 661, 0 },
};

static int is_row(const struct row *r, const struct row *wanted)
{
	return r->job == wanted->job && r->is_known == wanted->is_known &&
	       !strcmp(r->name, wanted->name) && r->phase == wanted->phase &&
	       r->sockets == wanted->sockets && r->srtt_us == wanted->srtt_us &&
	       !memcmp(r->n, wanted->n, sizeof(r->n));
}

static void check_rates(void)
{
	struct row before[5], rows[8] = { 0 };
	size_t i, n;

	memcpy(before, looks[0], sizeof(before));
	memcpy(rows, looks[1], 5 * sizeof(rows[0]));
	memcpy(rows + 5, jobs, sizeof(jobs));
	rows_by_socket(before, N(before));
	rows_since(rows, 5, before, N(before));
	n = rows_by_job(rows, N(rows));
	rows_order(rows, n);
	verdict(n == N(shown), "rates", "as many rows as jobs, and one without");
	for (i = 0; i < n && i < N(shown); i++)
		verdict(is_row(&rows[i], &shown[i].row) &&
			row_asked(&rows[i]) == shown[i].asked &&
			row_loss(&rows[i]) == shown[i].loss, "rates",
			rows[i].job ? rows[i].name : "none");
}

/* Extreme values */
static void check_ends(void)
{
	struct row all = SOCKET(1, 1, 1, 0, 0, 0, 0, UINT64_MAX, UINT64_MAX - 1);
	struct row late = SOCKET(1, 1, 1, 0, 0, 0, 0, 3, 4);

	verdict(row_loss(&all) == 999999, "loss", "of 2^64 packets");
	verdict(row_loss(&late) == 1000000, "loss", "of packets sent before");
	rows_since(&late, 1, NULL, 0);
	verdict(late.n[COUNT_PKTS_SENT] == 3, "rates", "since there was nothing");
	verdict(!rows_by_job(NULL, 0), "rates", "of nothing");
	rows_order(NULL, 0);
	verdict(per_second(3, 2.0) == 2 && per_second(5, 4.0) == 1 &&
		per_second(0, 1.0) == 0, "a second", "rounded");
	verdict(per_second(1, 0.0) == UINT64_MAX && per_second(0, 0.0) == UINT64_MAX &&
		per_second(UINT64_MAX, 0.5) == UINT64_MAX, "a second", "of no time");
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
	for (i = 0; i < N(spans); i++) {
		value = BEFORE;
		wrong = parse_ms(spans[i].text, &value);
		check_parsed("span", spans[i].text, wrong, value, spans[i].ms);
	}
	check_prefixes();
	check_rates();
	check_ends();
	for (i = 0; i < N(whole); i++) {
		format_ms(buf, (uint32_t)whole[i].n);
		wrong = parse_ms(buf, &value);
		verdict(!strcmp(buf, whole[i].text) && !wrong &&
			value == whole[i].n, "span", buf);
	}
	for (i = 0; i < N(counts); i++) {
		format_count(buf, counts[i].n);
		verdict(!strcmp(buf, counts[i].text), "count", buf);
	}
	for (i = 0; i < N(times); i++) {
		format_us(buf, (uint32_t)times[i].n);
		verdict(!strcmp(buf, times[i].text), "time", buf);
	}
	for (i = 0; i < N(ratios); i++) {
		value = BEFORE;
		wrong = parse_ratio(ratios[i].text, &value);
		check_parsed("ratio", ratios[i].text, wrong, value,
			     ratios[i].ppm);
		if (wrong)
			continue;
		format_ratio(buf, value);
		verdict(!parse_ratio(buf, &value) && value == ratios[i].ppm,
			"ratio, written", buf);
	}
	for (i = 0; i < N(norms); i++) {
		format_norm(buf, norms[i].n);
		verdict(!strcmp(buf, norms[i].text), "norm", buf);
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
