// SPDX-License-Identifier: GPL-2.0-only
/* ECN validation: use of marks, and which CE counts are accepted */
#include "ecn.h"
#include "test.h"

static void acked(struct dblp_ecn *e, u32 n)
{
	while (n--)
		dblp_ecn_acked(e);
}

static void lost(struct dblp_ecn *e, u32 n)
{
	while (n--)
		dblp_ecn_lost(e);
}

TEST(ecn__a_path_that_carries_marks)
{
	struct dblp_ecn e = {};

	EXPECT_TRUE(dblp_ecn_marks(&e));
	dblp_ecn_sent(&e, DBLP_ECN_TEST - 1);
	EXPECT_TRUE(dblp_ecn_marks(&e));
	dblp_ecn_sent(&e, 1);
	EXPECT_FALSE(dblp_ecn_marks(&e));
	acked(&e, 1);
	dblp_ecn_counted(&e, 1, 0, 0);
	EXPECT_EQ(0, dblp_ecn_check(&e));
	EXPECT_EQ(DBLP_ECN_CAPABLE, e.state);
	EXPECT_TRUE(dblp_ecn_marks(&e));
}

TEST(ecn__each_ce_is_reported_once)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 10);
	acked(&e, 4);
	dblp_ecn_counted(&e, 2, 0, 2);
	EXPECT_EQ(2, dblp_ecn_check(&e));
	EXPECT_EQ(0, dblp_ecn_check(&e));
	/* An ACK that was overtaken: its counts are outdated */
	acked(&e, 1);
	dblp_ecn_counted(&e, 3, 0, 3);
	dblp_ecn_counted(&e, 2, 0, 1);
	EXPECT_EQ(1, dblp_ecn_check(&e));
	EXPECT_EQ(DBLP_ECN_CAPABLE, e.state);
}

TEST(ecn__cleared_marks_fail_the_test)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 10);
	acked(&e, 2);
	dblp_ecn_counted(&e, 1, 0, 0);
	EXPECT_EQ(0, dblp_ecn_check(&e));
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);
	/* ECN has failed for the connection, and CE counts are ignored */
	acked(&e, 1);
	dblp_ecn_counted(&e, 2, 0, 2);
	EXPECT_EQ(0, dblp_ecn_check(&e));
	EXPECT_FALSE(dblp_ecn_marks(&e));
}

TEST(ecn__no_counts_at_all)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 1);
	acked(&e, 1);
	dblp_ecn_check(&e);
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);
}

TEST(ecn__more_marks_than_were_sent)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 5);
	acked(&e, 5);
	dblp_ecn_counted(&e, 5, 0, 1);
	EXPECT_EQ(0, dblp_ecn_check(&e));
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);
}

TEST(ecn__changed_marks_fail_the_test)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 5);
	acked(&e, 4);
	dblp_ecn_counted(&e, 4, 1, 0);
	dblp_ecn_check(&e);
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);
}

/* Later acknowledgements decide whether the path is capable or has failed */
TEST(ecn__marked_packets_vanish)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 12);
	lost(&e, 11);
	EXPECT_EQ(DBLP_ECN_UNKNOWN, e.state);
	lost(&e, 1);
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);

	memset(&e, 0, sizeof(e));
	dblp_ecn_sent(&e, 12);
	acked(&e, 1);
	lost(&e, 11);
	EXPECT_EQ(DBLP_ECN_UNKNOWN, e.state);
}

TEST(ecn__timeouts_end_the_test)
{
	struct dblp_ecn e = {};

	dblp_ecn_sent(&e, 1);
	dblp_ecn_timeout(&e, 1);
	EXPECT_TRUE(dblp_ecn_marks(&e));
	dblp_ecn_timeout(&e, 2);
	EXPECT_FALSE(dblp_ecn_marks(&e));
	lost(&e, 1);
	EXPECT_EQ(DBLP_ECN_FAILED, e.state);
	/* A capable path stays capable after timeouts */
	memset(&e, 0, sizeof(e));
	dblp_ecn_sent(&e, 10);
	acked(&e, 1);
	dblp_ecn_counted(&e, 1, 0, 0);
	dblp_ecn_check(&e);
	dblp_ecn_timeout(&e, 5);
	EXPECT_EQ(DBLP_ECN_CAPABLE, e.state);
}

TEST(ecn__counts_wrap)
{
	struct dblp_ecn e = {
		.state = DBLP_ECN_CAPABLE, .sent = -2, .acked = -3,
		.ect0 = -2 - 5, .ce = 5,
	};

	EXPECT_EQ(0, dblp_ecn_check(&e));
	dblp_ecn_sent(&e, 10);
	acked(&e, 10);
	dblp_ecn_counted(&e, 2, 0, 6);
	EXPECT_EQ(1, dblp_ecn_check(&e));
	EXPECT_EQ(DBLP_ECN_CAPABLE, e.state);
}

TEST_HARNESS_MAIN
