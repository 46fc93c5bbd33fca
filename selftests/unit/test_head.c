// SPDX-License-Identifier: GPL-2.0-only
/* Heads of messages of collective operations */
#include <errno.h>
#include <head.h>

#include "test.h"

static const struct dblp_head data = {
	.type = DBLP_HEAD_DATA, .dtype = DBLP_BFLOAT16, .epoch = 0x01020304,
	.from = 0x0506, .comm = 0x0708090a0b0c0d0e, .digest = 0x0f10111213141516,
	.seq = 0x1718191a, .round = 0x1b1c1d1e, .offset = 0x1f2021222324,
	.count = 5, .runs = 2,
};

static const struct dblp_head plain = {
	.type = DBLP_HEAD_DATA, .round = 1, .count = 1,
};

static const struct dblp_head hello = {
	.type = DBLP_HEAD_HELLO, .nic = 3, .epoch = 1, .from = 2, .comm = 4,
	.round = 5,
};

static const u8 data_bytes[] = {
	'd', 'b', 'l', 'p', 1, 1, 2, 0, 1, 2, 3, 4, 0, 0, 5, 6,
	7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
	0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e,
	0, 0, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0, 0, 0, 5, 0, 0, 0, 2,
	0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 0,
};

/* The bytes of each message of this version */
TEST(bytes)
{
	static const struct dblp_run run[] = { { 3, 9 }, { 5, 0 } };
	struct dblp_run got[2];
	struct dblp_head h;
	u8 p[sizeof(data_bytes)];

	dblp_head_put(&data, p);
	dblp_runs_put(run, 2, p + DBLP_HEAD_LEN);
	ASSERT_EQ(memcmp(p, data_bytes, sizeof(p)), 0);
	ASSERT_EQ(dblp_head_get(p, sizeof(p), &h), 0);
	dblp_head_put(&h, p);
	EXPECT_EQ(memcmp(p, data_bytes, sizeof(p)), 0);
	ASSERT_EQ(dblp_runs_get(&h, p + DBLP_HEAD_LEN, 9, got), 0);
	EXPECT_EQ(got[0].end, 3);
	EXPECT_EQ(got[0].contributions, 9);
	EXPECT_EQ(got[1].end, 5);
	EXPECT_EQ(got[1].contributions, 0);
}

/* Heads with one field changed, or cut off */
static const struct {
	const struct dblp_head	*of;
	u32			at;
	u32			len;
	u64			value;
	int			err;
} changes[] = {
	{ &data, 0, 0, 0, 0 },
	{ &data, 0, 1, 'D', -EBADMSG },
	{ &data, 4, 1, 0, -EPROTONOSUPPORT },
	{ &data, 4, 1, 2, -EPROTONOSUPPORT },
	{ &data, 5, 1, DBLP_HEAD_TYPES, -EBADMSG },
	{ &data, 6, 1, DBLP_DTYPES, -EBADMSG },
	{ &data, 7, 1, 1, -EBADMSG },
	{ &data, 12, 4, DBLP_RANKS_MAX - 1, 0 },
	{ &data, 12, 4, DBLP_RANKS_MAX, -EBADMSG },
	{ &data, 36, 4, 0, -EBADMSG },
	{ &data, 40, 8, DBLP_COUNT_MAX - 5, 0 },
	{ &data, 40, 8, DBLP_COUNT_MAX - 4, -EBADMSG },
	{ &data, 40, 8, UINT64_MAX, -EBADMSG },
	{ &data, 48, 4, 0, -EBADMSG },
	{ &data, 48, 4, 1, -EBADMSG },
	{ &data, 48, 4, (UINT32_MAX - 72) / 2, 0 },
	{ &data, 48, 4, (UINT32_MAX - 72) / 2 + 1, -EBADMSG },
	{ &data, 48, 4, UINT32_MAX, -EBADMSG },
	{ &data, 52, 4, 5, 0 },
	{ &data, 52, 4, 6, -EBADMSG },
	{ &data, 52, 4, UINT32_MAX, -EBADMSG },
	{ &plain, 0, 0, 0, 0 },
	{ &plain, 48, 4, 0, -EBADMSG },
	{ &hello, 0, 0, 0, 0 },
	{ &hello, 5, 1, DBLP_HEAD_TYPES, -EBADMSG },
	{ &hello, 6, 1, 1, -EBADMSG },
	{ &hello, 7, 1, 255, 0 },
	{ &hello, 12, 4, DBLP_RANKS_MAX, -EBADMSG },
	{ &hello, 24, 8, 1, 0 },
	{ &hello, 32, 4, 1, -EBADMSG },
	{ &hello, 36, 4, 0, 0 },
	{ &hello, 36, 4, DBLP_RANKS_MAX, -EBADMSG },
	{ &hello, 40, 8, 1, -EBADMSG },
	{ &hello, 48, 4, 1, -EBADMSG },
	{ &hello, 52, 4, 1, -EBADMSG },
};

TEST(only_valid_fields_of_a_sender_are_accepted)
{
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		struct dblp_head h, before;
		u8 p[DBLP_HEAD_LEN];

		dblp_head_put(changes[i].of, p);
		for (k = 0; k < changes[i].len; k++)
			p[changes[i].at + k] = changes[i].value >>
					       8 * (changes[i].len - 1 - k);
		memset(&h, 0x5a, sizeof(h));
		before = h;
		EXPECT_EQ(dblp_head_get(p, sizeof(p), &h), changes[i].err);
		EXPECT_EQ(!memcmp(&h, &before, sizeof(h)), !!changes[i].err);
	}
}

TEST(cut_short)
{
	struct dblp_head h;
	u8 *p;
	u32 n;

	for (n = 0; n < DBLP_HEAD_LEN; n++) {
		p = malloc(n + !n);
		memcpy(p, data_bytes, n);
		EXPECT_EQ(dblp_head_get(p, n, &h), -EBADMSG);
		free(p);
	}
}

/* Runs of a message of 5 elements with at most 4 contributions each */
static const struct {
	u32	n;
	u32	run[3][2];
	int	err;
} runs[] = {
	{ 0, { }, 0 },
	{ 1, { { 5, 4 } }, 0 },
	{ 3, { { 1, 4 }, { 3, 0 }, { 1, 4 } }, 0 },
	{ 1, { { 5, 5 } }, -EBADMSG },
	{ 1, { { 5, UINT32_MAX } }, -EBADMSG },
	{ 1, { { 4, 4 } }, -EBADMSG },
	{ 1, { { 6, 4 } }, -EBADMSG },
	{ 2, { { 2, 4 }, { 3, 4 } }, -EBADMSG },
	{ 2, { { 0, 4 }, { 5, 3 } }, -EBADMSG },
	{ 2, { { 5, 4 }, { 0, 3 } }, -EBADMSG },
	{ 3, { { 5, 4 }, { UINT32_MAX, 3 }, { 1, 4 } }, -EBADMSG },
};

TEST(runs_fit_the_message)
{
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		struct dblp_head h = data;
		struct dblp_run run[3];
		u8 p[3 * DBLP_RUN_LEN] = { 0 };

		for (k = 0; k < 6 * 4; k++)
			p[k] = runs[i].run[k / 8][k / 4 % 2] >> 8 * (3 - k % 4);
		h.runs = runs[i].n;
		EXPECT_EQ(dblp_runs_get(&h, p, 4, run), runs[i].err);
	}
}

TEST_HARNESS_MAIN
