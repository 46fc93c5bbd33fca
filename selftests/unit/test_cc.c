// SPDX-License-Identifier: GPL-2.0-only
/* The table of congestion controls */
#include <linux/dblp.h>

#include "cc.h"
#include "test.h"

TEST(dblp_cc_at__all_are_complete)
{
	const struct dblp_cc_ops *ops;
	u32 i;

	for (i = 0; (ops = dblp_cc_at(i)); i++) {
		EXPECT_GT(strlen(ops->name), 0);
		EXPECT_LT(strlen(ops->name), DBLP_CC_NAME_MAX);
		EXPECT_NE(NULL, ops->init);
		EXPECT_NE(NULL, ops->ack);
		/* Names are unique */
		EXPECT_EQ(ops, dblp_cc_find(ops->name));
	}
	EXPECT_GT(i, 0);
	EXPECT_EQ(NULL, dblp_cc_at(i + 1));
	EXPECT_EQ(NULL, dblp_cc_at(U32_MAX));
}

TEST(dblp_cc_find__unknown)
{
	EXPECT_EQ(NULL, dblp_cc_find(""));
	EXPECT_EQ(NULL, dblp_cc_find("bd"));
	EXPECT_EQ(NULL, dblp_cc_find("bdpp"));
}

TEST(dblp_cc_start__forgets)
{
	const struct dblp_cc_ops *ops;
	struct dblp_cc a, b;
	u32 i;

	memset(&a, 0, sizeof(a));
	memset(&b, 0xff, sizeof(b));
	for (i = 0; (ops = dblp_cc_at(i)); i++) {
		dblp_cc_start(&a, ops, 1400, 1000);
		dblp_cc_start(&b, ops, 1400, 1000);
		EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)));
		EXPECT_EQ(ops, a.ops);
		EXPECT_EQ(1400, a.mss);
		EXPECT_GE(a.cwnd, 2 * 1400);
	}
}

TEST_HARNESS_MAIN
