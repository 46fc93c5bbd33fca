// SPDX-License-Identifier: GPL-2.0-only
/* Spent cookies, compared with a list of all of them */
#include "spent.h"
#include "test.h"

#define COOKIES	1000

TEST(nothing_is_spent_at_first)
{
	struct dblp_spent s = {};

	EXPECT_FALSE(dblp_spent_has(&s, 0, 1));
	EXPECT_FALSE(dblp_spent_has(&s, 1, 1));
	EXPECT_FALSE(dblp_spent_has(&s, UINT64_MAX, UINT64_MAX));
}

TEST(cookies_that_fit_are_distinguished_from_others)
{
	struct dblp_spent s = {};
	u32 i;

	for (i = 0; i < DBLP_SPENT_SLOTS; i++)
		dblp_spent_add(&s, 100 + i, 10);
	for (i = 0; i < DBLP_SPENT_SLOTS; i++)
		EXPECT_TRUE(dblp_spent_has(&s, 100 + i, 10));
	/* Unspent cookies of the same age, and older */
	EXPECT_FALSE(dblp_spent_has(&s, 99, 10));
	EXPECT_FALSE(dblp_spent_has(&s, 99, 1));
}

TEST(cookies_as_old_as_forgotten_ones_count_as_spent)
{
	struct dblp_spent s = {};
	u32 i;

	for (i = 0; i <= DBLP_SPENT_SLOTS; i++)
		dblp_spent_add(&s, 100 + i, 10 + i);
	EXPECT_TRUE(dblp_spent_has(&s, 100, 10));
	EXPECT_TRUE(dblp_spent_has(&s, 99, 10));
	EXPECT_FALSE(dblp_spent_has(&s, 99, 11));
	EXPECT_TRUE(dblp_spent_has(&s, 101, 11));
}

/* In any order, a spent cookie stays spent */
TEST(a_spent_cookie_stays_spent)
{
	static const u32 spreads[] = { 1, 10, 100, 10000 };
	struct prng r = { 1 };
	u64 born[COOKIES];
	u32 i, k, n;

	for (n = 0; n < 4; n++) {
		struct dblp_spent s = {};
		u32 refused = 0;

		for (i = 0; i < COOKIES; i++) {
			born[i] = 1 + i + prng_below(&r, spreads[n]);
			if (dblp_spent_has(&s, i, born[i]))
				refused++;
			else
				dblp_spent_add(&s, i, born[i]);
			for (k = 0; k <= i; k++)
				ASSERT_TRUE(dblp_spent_has(&s, k, born[k]));
		}
		/* Cookies in the order of their creation are accepted */
		EXPECT_TRUE(n || !refused);
	}
}

TEST_HARNESS_MAIN
