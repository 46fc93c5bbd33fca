// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler as a process of its own, while the test plays all others: what comes over their
 * connections in whatever order, it goes on.
 */
#include <errno.h>

#include "fabric_play.h"
#include "test.h"

#define BOUND	3000

FIXTURE(fabric) {
	char			at[32];
	struct options		o;
	pid_t			scheduler;
	struct dblp_fab_conn	server;
};

FIXTURE_SETUP(fabric)
{
	fabric_options(&self->o, self->at);
	self->o.bound = BOUND;
	self->scheduler = begin_scheduler(&self->o);
	ASSERT_EQ(join_as(&self->server, &self->o, 3, DBLP_FAB_SERVES, 0), 0);
}

FIXTURE_TEARDOWN(fabric)
{
	EXPECT_EQ(end_well(self->scheduler), 0);
}

/* The server has applied more than was planned, of workers that are gone */
TEST_F(fabric, what_became_late_is_dropped)
{
	struct dblp_fab_msg first, m;
	struct dblp_fab_conn a, b;

	ASSERT_EQ(join_as(&a, &self->o, 4, DBLP_FAB_WORKER, 0), 0);
	ASSERT_EQ(join_as(&b, &self->o, 5, DBLP_FAB_WORKER, 1), 0);
	ASSERT_EQ(say(&a, DBLP_FAB_READY, 0, 0, 0), 0);
	ASSERT_EQ(hear(&a, DBLP_FAB_GRANT, &first, 3000), 0);
	ASSERT_EQ(say(&b, DBLP_FAB_READY, 0, 0, 0), 0);
	/* Planned behind that of the other one */
	ASSERT_EQ(hear(&b, DBLP_FAB_GRANT, &m, 300), -ETIMEDOUT);
	ASSERT_EQ(say(&self->server, DBLP_FAB_APPLIED, first.run, 0, BOUND + 1), 0);
	EXPECT_EQ(hear(&b, DBLP_FAB_DROP, &m, 3000), 0);
}

TEST_HARNESS_MAIN
