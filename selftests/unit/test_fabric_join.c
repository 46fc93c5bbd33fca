// SPDX-License-Identifier: GPL-2.0-only
/*
 * A joining host and a scheduler as processes. The test plays two workers, and the server
 * on another host.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>

#include "fabric_play.h"
#include "test.h"

FIXTURE(joined) {
	char			at[32];
	struct options		o;
	pid_t			scheduler;
	pid_t			joiner;
	int			door;
	struct dblp_fab_conn	server;
	struct dblp_fab_conn	worker[2];
	struct dblp_fab_conn	data[2];
	struct dblp_fab_msg	push[2];
};

static void open_door(struct __test_metadata *_metadata, FIXTURE_DATA(joined) *self)
{
	struct sockaddr_dblp at;

	ASSERT_EQ(dblp_addr_parse("127.0.0.3", &at), 0);
	self->door = dblp_fab_listen(&at, IPPROTO_TCP);
	ASSERT_GE(self->door, 0);
	ASSERT_EQ(dblp_fab_name(self->door, false, &at), 0);
	ASSERT_EQ(join_at(&self->server, &self->o, 3, DBLP_FAB_SERVES, 0, at.sdblp_port), 0);
}

/* A process that has joined accepts connections in a second thread, a link in task/ */
static void begin_joiner(FIXTURE_DATA(joined) *self)
{
	char path[32];
	struct stat st;
	u32 i;

	self->joiner = begin(&self->o, JOIN);
	snprintf(path, sizeof(path), "/proc/%d/task", self->joiner);
	for (i = 0; i < 100 && !stat(path, &st) && st.st_nlink < 4; i++)
		usleep(50000);
}

static void stop_scheduler(struct __test_metadata *_metadata, FIXTURE_DATA(joined) *self)
{
	kill(self->scheduler, SIGSTOP);
	ASSERT_EQ(waitpid(self->scheduler, NULL, WUNTRACED), self->scheduler);
}

/* Both workers push to the joining host, for the same run */
FIXTURE_SETUP(joined)
{
	struct dblp_fab_msg m;
	u32 i;

	fabric_options(&self->o, self->at);
	self->scheduler = begin_scheduler(&self->o);
	open_door(_metadata, self);
	begin_joiner(self);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(join_as(&self->worker[i], &self->o, 1, DBLP_FAB_WORKER, i), 0);
	stop_scheduler(_metadata, self);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(say(&self->worker[i], DBLP_FAB_READY, 0, 0, 0), 0);
	kill(self->scheduler, SIGCONT);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(hear(&self->worker[i], DBLP_FAB_GRANT, &m, HEAR_MS), 0);
		self->push[i] = (struct dblp_fab_msg) {
			.type = DBLP_FAB_PUSH, .updates = 1, .fabric = secret_of_all,
			.from = i, .place = m.place, .run = m.run,
		};
		ASSERT_EQ(dblp_fab_dial(&self->data[i], &m.addr, IPPROTO_TCP, HEAR_MS), 0);
		ASSERT_EQ(dblp_fab_send(&self->data[i], &self->push[i]), 0);
	}
	ASSERT_EQ(self->push[0].run, self->push[1].run);
}

FIXTURE_TEARDOWN(joined)
{
	int status;

	EXPECT_EQ(end_well(self->scheduler), 0);
	waitpid(self->joiner, &status, 0);
	EXPECT_EQ(status, 0);
}

static const float update[2][COUNT] = { { 1, 2, 3 }, { 0, 0, 4, 8 } };

static void send_both(struct __test_metadata *_metadata, FIXTURE_DATA(joined) *self)
{
	u32 i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(dblp_fab_send_bytes(&self->data[i], update[i], sizeof(*update)), 0);
}

/* The server gets the sum, weighted by two delays, and both workers get its answer */
TEST_F(joined, sums)
{
	struct dblp_fab_msg m, ack = { .type = DBLP_FAB_ACK, .version = 2 };
	struct dblp_fab_conn c;
	float sum[COUNT];
	u32 i, k;

	send_both(_metadata, self);
	c = (struct dblp_fab_conn) { dblp_accept(self->door), IPPROTO_TCP };
	ASSERT_EQ(hear(&c, DBLP_FAB_PUSH, &m, HEAR_MS), 0);
	EXPECT_EQ(m.role, DBLP_FAB_JOINS);
	EXPECT_EQ(m.updates, 2);
	EXPECT_EQ(m.first, 1);
	ASSERT_EQ(dblp_fab_recv_bytes(&c, sum, sizeof(sum)), 0);
	for (k = 0; k < COUNT; k++)
		for (i = 0; i < 2; i++)
			sum[k] -= update[i][k] / sqrt(1 + self->push[i].place);
	for (k = 0; k < COUNT; k++)
		EXPECT_LT(fabs(sum[k]), 1e-6);
	ASSERT_EQ(dblp_fab_send(&c, &ack), 0);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(hear(&self->data[i], DBLP_FAB_ACK, &m, HEAR_MS), 0);
		EXPECT_EQ(m.error, 0);
		EXPECT_EQ(m.version, 2);
	}
}

/*
 * The other worker must push again; its READY may arrive before the scheduler knows why
 */
TEST_F(joined, one_stops_on_its_way)
{
	struct dblp_fab_msg m;

	stop_scheduler(_metadata, self);
	ASSERT_EQ(dblp_fab_send_bytes(&self->data[0], update[0], sizeof(*update)), 0);
	ASSERT_EQ(dblp_fab_send_bytes(&self->data[1], update[1], 8), 0);
	ASSERT_EQ(hear(&self->data[0], DBLP_FAB_ACK, &m, 9000), 0);
	EXPECT_EQ(m.error, ECANCELED);
	ASSERT_EQ(say(&self->worker[0], DBLP_FAB_READY, 0, 0, 0), 0);
	kill(self->scheduler, SIGCONT);
	EXPECT_EQ(hear(&self->worker[0], DBLP_FAB_GRANT, &m, HEAR_MS), 0);
}

/* The server would refuse an infinite sum, with the updates of all workers */
TEST_F(joined, too_large_for_a_sum)
{
	const float large[COUNT] = { FLT_MAX };
	struct dblp_fab_msg m;

	ASSERT_EQ(dblp_fab_send_bytes(&self->data[1], large, sizeof(large)), 0);
	ASSERT_EQ(hear(&self->data[1], DBLP_FAB_ACK, &m, HEAR_MS), 0);
	EXPECT_EQ(m.error, EDOM);
}

/* If the server refuses a sum, both updates are refused */
TEST_F(joined, sums_that_are_refused)
{
	struct dblp_fab_msg m, ack = { .type = DBLP_FAB_ACK, .error = ESTALE };
	struct dblp_fab_conn c;
	float sum[COUNT];

	send_both(_metadata, self);
	c = (struct dblp_fab_conn) { dblp_accept(self->door), IPPROTO_TCP };
	ASSERT_EQ(hear(&c, DBLP_FAB_PUSH, &m, HEAR_MS), 0);
	ASSERT_EQ(dblp_fab_recv_bytes(&c, sum, sizeof(sum)), 0);
	ASSERT_EQ(dblp_fab_send(&c, &ack), 0);
	ASSERT_EQ(hear(&self->data[1], DBLP_FAB_ACK, &m, HEAR_MS), 0);
	EXPECT_EQ(m.error, ECANCELED);
}

TEST_HARNESS_MAIN
