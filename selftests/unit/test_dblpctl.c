// SPDX-License-Identifier: GPL-2.0-only
/* dblpctl: address prefixes, rates of jobs */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "../../tools/dblpctl/prefix.h"
#include "../../tools/dblpctl/rates.h"
#include "test.h"

/* Value of a result before parsing; a refused text does not change it */
#define BEFORE	0xdeadbeef

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

TEST(prefixes_have_the_addresses_that_they_say)
{
	struct in6_addr addr;
	struct prefix p;
	int has;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++) {
		p.bits = BEFORE;
		has = -1;
		if (inet_pton(AF_INET6, prefixes[i].addr, &addr) == 1 &&
		    !parse_prefix(prefixes[i].prefix, &p))
			has = prefix_has(&p, &addr);
		EXPECT_EQ(prefixes[i].has, has)
			TH_LOG("%s", prefixes[i].prefix);
		EXPECT_TRUE(has >= 0 || p.bits == BEFORE);
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

TEST(rates_are_those_of_sockets_since_the_last_look)
{
	struct row before[5], rows[8] = { 0 };
	size_t i, n;

	memcpy(before, looks[0], sizeof(before));
	memcpy(rows, looks[1], 5 * sizeof(rows[0]));
	memcpy(rows + 5, jobs, sizeof(jobs));
	rows_by_socket(before, ARRAY_SIZE(before));
	rows_since(rows, 5, before, ARRAY_SIZE(before));
	n = rows_by_job(rows, ARRAY_SIZE(rows));
	rows_order(rows, n);
	/* A row for each job, and one for sockets without one */
	ASSERT_EQ(ARRAY_SIZE(shown), n);
	for (i = 0; i < n; i++) {
		EXPECT_TRUE(is_row(&rows[i], &shown[i].row));
		EXPECT_EQ(shown[i].asked, row_asked(&rows[i]));
		EXPECT_EQ(shown[i].loss, row_loss(&rows[i]));
	}
}

/* Extreme values */
TEST(rates_of_extreme_counts)
{
	struct row all = SOCKET(1, 1, 1, 0, 0, 0, 0, UINT64_MAX, UINT64_MAX - 1);
	struct row late = SOCKET(1, 1, 1, 0, 0, 0, 0, 3, 4);

	EXPECT_EQ(999999, row_loss(&all));
	/* More packets lost than sent: they were sent before the last look */
	EXPECT_EQ(1000000, row_loss(&late));
	rows_since(&late, 1, NULL, 0);
	EXPECT_EQ(3, late.n[COUNT_PKTS_SENT]);
	EXPECT_EQ(0, rows_by_job(NULL, 0));
	rows_order(NULL, 0);
	EXPECT_EQ(2, per_second(3, 2.0));
	EXPECT_EQ(1, per_second(5, 4.0));
	EXPECT_EQ(0, per_second(0, 1.0));
	EXPECT_EQ(UINT64_MAX, per_second(1, 0.0));
	EXPECT_EQ(UINT64_MAX, per_second(0, 0.0));
	EXPECT_EQ(UINT64_MAX, per_second(UINT64_MAX, 0.5));
}

TEST_HARNESS_MAIN
