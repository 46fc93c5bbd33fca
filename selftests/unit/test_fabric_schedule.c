// SPDX-License-Identifier: GPL-2.0-only
/*
 * A scheduler as a process; the test plays all other processes. The scheduler survives
 * any order of their messages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

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

/* An update has arrived at the joining host, and waits for the last run to leave */
static void come_along(struct __test_metadata *_metadata, FIXTURE_DATA(fabric) *self,
		       const struct dblp_fab_conn *joiner, u64 run)
{
	struct dblp_fab_msg m;

	ASSERT_EQ(say(joiner, DBLP_FAB_RECEIVED, run, 0, 0), 0);
	/* An unknown run: its answer shows that the message before was handled */
	ASSERT_EQ(say(joiner, DBLP_FAB_RECEIVED, 12345, 0, 0), 0);
	ASSERT_EQ(hear(joiner, DBLP_FAB_ABANDON, &m, HEAR_MS), 0);
	ASSERT_EQ(m.run, 12345);
}

/* The scheduler gets updates of two workers at once, and plans one run */
static void plan_run(struct __test_metadata *_metadata, FIXTURE_DATA(fabric) *self,
		     struct dblp_fab_conn *joiner, struct dblp_fab_conn *worker)
{
	ASSERT_EQ(join_as(joiner, &self->o, 2, DBLP_FAB_JOINS, 0), 0);
	ASSERT_EQ(join_as(&worker[0], &self->o, 2, DBLP_FAB_WORKER, 0), 0);
	ASSERT_EQ(join_as(&worker[1], &self->o, 2, DBLP_FAB_WORKER, 1), 0);
	kill(self->scheduler, SIGSTOP);
	ASSERT_EQ(waitpid(self->scheduler, NULL, WUNTRACED), self->scheduler);
	ASSERT_EQ(say(&worker[0], DBLP_FAB_READY, 0, 0, 0), 0);
	ASSERT_EQ(say(&worker[1], DBLP_FAB_READY, 0, 0, 0), 0);
	kill(self->scheduler, SIGCONT);
}

/* A run waits for one worker, while another one leaves and joins again repeatedly */
TEST_F(fabric, runs_are_bounded)
{
	struct dblp_fab_conn worker[2], *again = worker, joiner;
	struct dblp_fab_msg m;
	u32 n;

	plan_run(_metadata, self, &joiner, worker);
	for (n = 0; n < 2 * DBLP_FAB_WORKERS_MAX; n++) {
		if (hear(again, DBLP_FAB_GRANT, &m, n < 1000 ? HEAR_MS : 300))
			break;
		come_along(_metadata, self, &joiner, m.run);
		dblp_fab_hang_up(again);
		usleep(100);
		while (join_as(again, &self->o, 2, DBLP_FAB_WORKER, 0) == -EEXIST)
			dblp_fab_hang_up(again);
		ASSERT_EQ(say(again, DBLP_FAB_READY, 0, 0, 0), 0);
	}
	EXPECT_GT(n, 1000);
	EXPECT_LT(n, DBLP_FAB_WORKERS_MAX);
}

/* The joining host stopped sending in the middle of the sum */
TEST_F(fabric, the_server_reports_a_failed_run)
{
	struct dblp_fab_conn worker[2], joiner;
	struct dblp_fab_msg m;
	u32 i;

	plan_run(_metadata, self, &joiner, worker);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(hear(&worker[i], DBLP_FAB_GRANT, &m, HEAR_MS), 0);
		ASSERT_EQ(say(&joiner, DBLP_FAB_RECEIVED, m.run, i, 0), 0);
	}
	ASSERT_EQ(hear(&joiner, DBLP_FAB_LEAVE, &m, HEAR_MS), 0);
	ASSERT_EQ(say(&self->server, DBLP_FAB_FAILED, m.run, 0, 0), 0);
	EXPECT_EQ(hear(&joiner, DBLP_FAB_ABANDON, &m, HEAR_MS), 0);
}

/* The server applied more updates than planned, of workers that have left */
TEST_F(fabric, late_updates_are_dropped)
{
	struct dblp_fab_msg first, m;
	struct dblp_fab_conn a, b;

	ASSERT_EQ(join_as(&a, &self->o, 4, DBLP_FAB_WORKER, 0), 0);
	ASSERT_EQ(join_as(&b, &self->o, 5, DBLP_FAB_WORKER, 1), 0);
	ASSERT_EQ(say(&a, DBLP_FAB_READY, 0, 0, 0), 0);
	ASSERT_EQ(hear(&a, DBLP_FAB_GRANT, &first, HEAR_MS), 0);
	ASSERT_EQ(say(&b, DBLP_FAB_READY, 0, 0, 0), 0);
	/* Planned after the other update */
	ASSERT_EQ(hear(&b, DBLP_FAB_GRANT, &m, 300), -ETIMEDOUT);
	ASSERT_EQ(say(&self->server, DBLP_FAB_APPLIED, first.run, 0, BOUND + 1), 0);
	EXPECT_EQ(hear(&b, DBLP_FAB_DROP, &m, HEAR_MS), 0);
}

/* The model with the run that the failed server applied may have been read */
TEST_F(fabric, versions_continue_after_updates_that_may_be_lost)
{
	struct dblp_fab_conn replica, a, b;
	struct dblp_fab_msg m;

	ASSERT_EQ(join_as(&replica, &self->o, 2, DBLP_FAB_REPLICA, 0), 0);
	ASSERT_EQ(join_as(&a, &self->o, 4, DBLP_FAB_WORKER, 0), 0);
	ASSERT_EQ(join_as(&b, &self->o, 5, DBLP_FAB_WORKER, 1), 0);
	ASSERT_EQ(say(&a, DBLP_FAB_READY, 0, 0, 0), 0);
	ASSERT_EQ(hear(&a, DBLP_FAB_GRANT, &m, HEAR_MS), 0);
	dblp_fab_hang_up(&self->server);
	ASSERT_EQ(hear(&replica, DBLP_FAB_PROMOTE, &m, HEAR_MS), 0);
	EXPECT_EQ(m.version, 1);
	ASSERT_EQ(say(&b, DBLP_FAB_READY, 0, 0, 1), 0);
	EXPECT_EQ(hear(&b, DBLP_FAB_GRANT, &m, HEAR_MS), 0);
}

/* Each worker has another address, as containers have */
TEST_F(fabric, addresses_of_workers_that_left_are_reused)
{
	struct dblp_fab_conn c;
	u32 host;
	int err;

	for (host = 10; host < 2200; host++) {
		while ((err = join_as(&c, &self->o, host, DBLP_FAB_WORKER, host % 2)) == -EEXIST)
			dblp_fab_hang_up(&c);
		dblp_fab_hang_up(&c);
		ASSERT_EQ(err, 0) {
			TH_LOG("host %u", host);
		}
	}
}

TEST_F(fabric, connections_without_join_have_a_fixed_timeout)
{
	struct dblp_fab_conn c;
	u32 n;

	ASSERT_EQ(dial_from(&c, &self->o, 2), 0);
	for (n = 0; n < 300 && send(c.fd, "", 1, MSG_NOSIGNAL) == 1; n++)
		usleep(200000);
	EXPECT_LT(n, 300);
	dblp_fab_hang_up(&c);
}

/* A client that disconnects before it is accepted: how many of the next ones do? */
static volatile int *n_vanish;

int __real_dblp_accept(int fd);

int __wrap_dblp_accept(int fd)
{
	int child = __real_dblp_accept(fd);

	if (child < 0 || !*n_vanish)
		return child;
	--*n_vanish;
	close(child);
	return -ECONNABORTED;
}

static void __attribute__((constructor)) share_n_vanish(void)
{
	n_vanish = mmap(NULL, sizeof(*n_vanish), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n_vanish == MAP_FAILED)
		abort();
}

TEST_F(fabric, a_client_that_disconnects_ends_no_other_connection)
{
	struct dblp_fab_conn c[4];
	char end;

	ASSERT_EQ(dial_from(&c[0], &self->o, 2), 0);
	/* Connections are accepted in their order */
	ASSERT_EQ(join_as(&c[1], &self->o, 2, DBLP_FAB_WORKER, 0), 0);
	*n_vanish = 1;
	ASSERT_EQ(dial_from(&c[2], &self->o, 2), 0);
	ASSERT_LE(recv(c[2].fd, &end, 1, 0), 0);
	ASSERT_EQ(join_as(&c[3], &self->o, 2, DBLP_FAB_WORKER, 1), 0);
	EXPECT_EQ(recv(c[0].fd, &end, 1, MSG_DONTWAIT), -1);
	dblp_fab_hang_up(&c[0]);
	dblp_fab_hang_up(&c[2]);
}

/* No connection can be accepted then, but the scheduler must not spin */
TEST_F(fabric, no_descriptors)
{
	struct dblp_fab_conn c[40];
	struct timespec t;
	clockid_t used;
	u32 i;

	ASSERT_EQ(prlimit(self->scheduler, RLIMIT_NOFILE, &(struct rlimit) { 20, 20 }, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		ASSERT_EQ(dial_from(&c[i], &self->o, 2), 0);
	sleep(1);
	ASSERT_EQ(clock_getcpuclockid(self->scheduler, &used), 0);
	ASSERT_EQ(clock_gettime(used, &t), 0);
	EXPECT_EQ(t.tv_sec, 0);
	EXPECT_LT(t.tv_nsec, 300000000);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		dblp_fab_hang_up(&c[i]);
	/* Others can join again */
	ASSERT_EQ(join_as(&c[0], &self->o, 2, DBLP_FAB_WORKER, 0), 0);
}

TEST_HARNESS_MAIN
