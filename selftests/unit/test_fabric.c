// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages of a fabric. Also a scheduler and a server as processes, over TCP, and a
 * worker that violates the protocol: it gets an error, and nothing changes.
 */
#include <errno.h>
#include <fabric.h>
#include <fabric_msg.h>
#include <float.h>
#include <math.h>

#include "fabric_play.h"
#include "test.h"

#include <sys/resource.h>

static const struct {
	struct dblp_fab_msg	m;
	int			err;
} messages[] = {
	{ { .magic = DBLP_FAB_MAGIC }, 0 },
	{ { .magic = DBLP_FAB_MAGIC + 1 }, -EPROTONOSUPPORT },
	{ { .magic = __builtin_bswap32(DBLP_FAB_MAGIC) }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC ^ 0x100 }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .type = DBLP_FAB_TYPES - 1 }, 0 },
	{ { .magic = DBLP_FAB_MAGIC, .type = DBLP_FAB_TYPES }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .role = DBLP_FAB_ROLES }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .from = DBLP_FAB_WORKERS_MAX - 1 }, 0 },
	{ { .magic = DBLP_FAB_MAGIC, .from = DBLP_FAB_WORKERS_MAX }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .place = DBLP_FAB_WORKERS_MAX }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .error = 4096 }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .updates = DBLP_FAB_WORKERS_MAX }, 0 },
	{ { .magic = DBLP_FAB_MAGIC, .updates = DBLP_FAB_WORKERS_MAX + 1 }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .type = DBLP_FAB_PUSH }, -EBADMSG },
	{ { .magic = DBLP_FAB_MAGIC, .type = DBLP_FAB_PUSH, .updates = 1 }, 0 },
};

TEST(only_valid_messages_of_a_sender_are_accepted)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(messages); i++)
		EXPECT_EQ(dblp_fab_check(&messages[i].m), messages[i].err) {
			TH_LOG("message %u", i);
		}
}

TEST(norms)
{
	float v[] = { 3, -4 };

	EXPECT_EQ(dblp_fab_norm(v, 2), 5);
	v[0] = INFINITY;
	EXPECT_TRUE(isnan(dblp_fab_norm(v, 2)));
	v[0] = NAN;
	EXPECT_TRUE(isnan(dblp_fab_norm(v, 2)));
}

FIXTURE(fabric) {
	char			at[32];
	struct options		o;
	pid_t			scheduler;
	pid_t			server;
	struct dblp_fabric	*f;
};

static struct dblp_fabric_attr attr_of(const char *at, u32 worker)
{
	return (struct dblp_fabric_attr) {
		.size = sizeof(struct dblp_fabric_attr), .worker = worker,
		.scheduler = at, .transport = "tcp", .count = COUNT,
	};
}

FIXTURE_SETUP(fabric)
{
	struct dblp_fabric_attr attr;

	fabric_options(&self->o, self->at);
	attr = attr_of(self->at, 1);
	self->scheduler = begin_scheduler(&self->o);
	self->server = begin(&self->o, SERVE);
	ASSERT_EQ(dblp_fabric_open(&self->f, &attr), 0);
}

FIXTURE_TEARDOWN(fabric)
{
	int status;

	dblp_fabric_close(self->f);
	EXPECT_EQ(end_well(self->scheduler), 0);
	waitpid(self->server, &status, 0);
	EXPECT_EQ(status, 0);
}

TEST_F(fabric, steps_follow_delay)
{
	const float u[COUNT] = { 2, 0, 0, -4, 0 };
	struct dblp_pushed p;
	float m[COUNT];
	u64 i;
	uint64_t version;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(dblp_push(self->f, u, COUNT, 0, &p, sizeof(p)), 0);
		EXPECT_EQ(p.version, i + 1);
		EXPECT_EQ(p.tries, 1);
		EXPECT_EQ(p.dropped, 0);
	}
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, 4);
	EXPECT_LT(fabs(m[0] + 1 + 1 / sqrt(2) + 1 / sqrt(3) + 0.5), 1e-6);
	EXPECT_LT(fabs(m[3] - 2 * (1 + 1 / sqrt(2) + 1 / sqrt(3) + 0.5)), 1e-6);
	EXPECT_EQ(m[1], 0);
	/* Until the delay bound */
	for (; i < 10; i++)
		ASSERT_EQ(dblp_push(self->f, u, COUNT, 0, &p, sizeof(p)), 0);
	EXPECT_EQ(p.dropped, 0);
	ASSERT_EQ(dblp_push(self->f, u, COUNT, 0, &p, sizeof(p)), 0);
	EXPECT_EQ(p.dropped, 1);
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, 10);
}

TEST_F(fabric, bad_calls_change_nothing)
{
	float u[COUNT] = { 1 }, m[COUNT];
	struct dblp_fabric_attr attr;
	struct dblp_fabric *other;
	uint64_t version;

	EXPECT_EQ(dblp_push(self->f, u, COUNT - 1, 0, NULL, 0), -EMSGSIZE);
	EXPECT_EQ(dblp_pull(self->f, m, COUNT + 1, &version), -EMSGSIZE);
	EXPECT_EQ(dblp_push(self->f, u, COUNT, 1, NULL, 0), -ERANGE);
	EXPECT_EQ(dblp_push(self->f, u, COUNT, UINT64_MAX, NULL, 0), -ERANGE);
	u[2] = NAN;
	EXPECT_EQ(dblp_push(self->f, u, COUNT, 0, NULL, 0), -EDOM);
	u[2] = INFINITY;
	EXPECT_EQ(dblp_push(self->f, u, COUNT, 0, NULL, 0), -EDOM);
	attr = attr_of(self->at, 2);
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -ENOENT);
	attr.worker = 1;
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -EEXIST);
	attr.worker = 0;
	attr.count++;
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -EMSGSIZE);
	attr.count = 0;
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -EINVAL);
	attr = attr_of("nowhere", 0);
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -EINVAL);
	attr = attr_of(self->at, 0);
	attr.size = 8;
	EXPECT_EQ(dblp_fabric_open(&other, &attr), -EINVAL);
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, 0);
	EXPECT_EQ(m[0], 0);
}

/* Join as a worker by hand; returns the server's address and the secret */
static void join_by_hand(struct __test_metadata *_metadata, FIXTURE_DATA(fabric) *self,
			 struct dblp_fab_conn *ctl, uint64_t *secret,
			 struct dblp_fab_msg *server)
{
	const struct dblp_fab_msg hello = { .type = DBLP_FAB_JOIN, .count = COUNT };

	ASSERT_EQ(dblp_fab_dial(ctl, &self->o.scheduler, IPPROTO_TCP, HEAR_MS), 0);
	ASSERT_EQ(dblp_fab_join(ctl, &hello, secret), 0);
	ASSERT_EQ(dblp_fab_recv(ctl, server), 0);
	ASSERT_EQ(server->type, DBLP_FAB_SERVER);
}

TEST_F(fabric, bad_pushes_are_refused)
{
	static const struct {
		float		first;
		u64		version;
		u64		next;
		int		err;
	} bad[] = {
		{ NAN, 0, 1, EDOM },
		{ 1, 1, 1, ERANGE },
		{ 1, 0, 2, ESTALE },
		{ 1, 0, 1, 0 },
	};
	struct dblp_fab_msg server, ack;
	struct dblp_fab_conn ctl, c;
	float u[COUNT] = { 0 }, m[COUNT];
	uint64_t version, secret;
	u32 i;

	join_by_hand(_metadata, self, &ctl, &secret, &server);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct dblp_fab_msg push = {
			.type = DBLP_FAB_PUSH, .updates = 1, .fabric = secret, .run = 7,
			.version = bad[i].version, .first = bad[i].next,
		};

		u[0] = bad[i].first;
		ASSERT_EQ(dblp_fab_dial(&c, &server.addr, IPPROTO_TCP, HEAR_MS), 0);
		ASSERT_EQ(dblp_fab_push(&c, &push, u, COUNT, &ack), 0);
		EXPECT_EQ(ack.error, bad[i].err);
		EXPECT_EQ(ack.version, bad[i].err ? 0 : 1);
		dblp_fab_hang_up(&c);
	}
	ASSERT_EQ(dblp_fab_dial(&c, &server.addr, IPPROTO_TCP, 8000), 0);
	EXPECT_EQ(dblp_fab_pull(&c, secret, 2, &version), -ERANGE);
	dblp_fab_hang_up(&c);
	dblp_fab_hang_up(&ctl);
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, 1);
	EXPECT_EQ(m[0], -0.5f);
}

/* Open @n connections that send nothing */
static void be_silent(const struct sockaddr_dblp *to, int n)
{
	struct dblp_fab_conn c;

	while (n--)
		if (dblp_fab_dial(&c, to, IPPROTO_TCP, HEAR_MS))
			abort();
}

/* More connections than the scheduler has room for, or the server has descriptors for */
TEST(silent_connections_make_room_for_members)
{
	const struct rlimit few = { 48, 48 };
	struct rlimit all;
	struct dblp_pushed pushed;
	const float u[COUNT] = { 2 };
	struct dblp_fabric *f;
	struct dblp_fabric_attr attr;
	struct sockaddr_dblp at;
	struct dblp_fab_msg m;
	struct dblp_fab_conn c;
	struct options o;
	pid_t scheduler, server;
	char text[32];
	int status;

	getrlimit(RLIMIT_NOFILE, &all);
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
	fabric_options(&o, text);
	/* No connection is closed by its timeout */
	o.timeout_ms = 600000;
	scheduler = begin_scheduler(&o);
	server = begin(&o, SERVE);
	be_silent(&o.scheduler, 1200);
	ASSERT_EQ(join_as(&c, &o, 1, DBLP_FAB_WORKER, 0), 0);
	ASSERT_EQ(hear(&c, DBLP_FAB_SERVER, &m, HEAR_MS), 0);
	at = m.addr;
	ASSERT_EQ(prlimit(server, RLIMIT_NOFILE, &few, NULL), 0);
	be_silent(&at, 100);
	attr = attr_of(text, 1);
	ASSERT_EQ(dblp_fabric_open(&f, &attr), 0);
	ASSERT_EQ(dblp_push(f, u, COUNT, 0, &pushed, sizeof(pushed)), 0);
	EXPECT_EQ(pushed.version, 1);
	dblp_fabric_close(f);
	dblp_fab_hang_up(&c);
	EXPECT_EQ(end_well(scheduler), 0);
	waitpid(server, &status, 0);
	EXPECT_EQ(status, 0);
}

TEST_F(fabric, unauthenticated_messages_are_refused)
{
	const struct dblp_fab_msg types[] = {
		{ .type = DBLP_FAB_PUSH, .updates = 1, .fabric = 1 },
		{ .type = DBLP_FAB_PULL }, { .type = DBLP_FAB_FOLLOW },
		{ .type = DBLP_FAB_APPLIED, .version = 9 },
	};
	struct dblp_fab_msg server, answer;
	struct dblp_fab_conn ctl, c;
	float m[COUNT];
	uint64_t version, secret;
	u32 i;

	join_by_hand(_metadata, self, &ctl, &secret, &server);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		ASSERT_EQ(dblp_fab_dial(&c, &server.addr, IPPROTO_TCP, HEAR_MS), 0);
		ASSERT_EQ(dblp_fab_send(&c, &types[i]), 0);
		EXPECT_EQ(dblp_fab_recv(&c, &answer), -ECONNRESET);
		dblp_fab_hang_up(&c);
	}
	/* A worker may not send a server's message */
	ASSERT_EQ(dblp_fab_send(&ctl, &types[3]), 0);
	ASSERT_EQ(dblp_fab_recv(&ctl, &answer), 0);
	EXPECT_EQ(answer.type, DBLP_FAB_REFUSE);
	EXPECT_EQ(answer.error, EPROTO);
	EXPECT_EQ(dblp_fab_recv(&ctl, &answer), -ECONNRESET);
	dblp_fab_hang_up(&ctl);
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, 0);
}

/* A push that stops halfway fails after the timeout, and then the next run may leave */
TEST_F(fabric, a_silent_push_delays_others_by_the_timeout_only)
{
	struct dblp_fab_msg m, push = { .type = DBLP_FAB_PUSH, .updates = 1, .first = 1 };
	const float u[COUNT] = { 2 };
	struct dblp_fab_conn ctl, c;
	struct dblp_pushed p;

	join_by_hand(_metadata, self, &ctl, &push.fabric, &m);
	ASSERT_EQ(say(&ctl, DBLP_FAB_READY, 0, 0, 0), 0);
	ASSERT_EQ(hear(&ctl, DBLP_FAB_GRANT, &m, HEAR_MS), 0);
	push.run = m.run;
	ASSERT_EQ(dblp_fab_dial(&c, &m.addr, IPPROTO_TCP, HEAR_MS), 0);
	ASSERT_EQ(dblp_fab_send(&c, &push), 0);
	ASSERT_EQ(dblp_fab_send_bytes(&c, u, 8), 0);
	ASSERT_EQ(dblp_push(self->f, u, COUNT, 0, &p, sizeof(p)), 0);
	EXPECT_EQ(p.version, 1);
}

/* An infinite element would destroy the model */
TEST_F(fabric, models_stay_finite)
{
	const float u[COUNT] = { 0, -FLT_MAX };
	float m[COUNT];
	uint64_t version;
	int err = 0, n;

	for (n = 0; !err && n < 9; n++)
		err = dblp_push(self->f, u, COUNT, n, NULL, 0);
	EXPECT_EQ(err, -EDOM);
	ASSERT_EQ(dblp_pull(self->f, m, COUNT, &version), 0);
	EXPECT_EQ(version, n - 1);
	EXPECT_TRUE(isfinite(m[1]));
}

/* The test plays the scheduler and the old server */
TEST(a_late_copy_of_the_model_changes_nothing)
{
	const float copy[COUNT] = { 9, 9, 9, 9, 9 }, u[COUNT] = { 2, 2, 2, 2, 2 };
	struct dblp_fab_msg m, ack, push = { .type = DBLP_FAB_PUSH, .updates = 1, .fabric = 77 };
	struct dblp_fab_conn ctl = { -1, IPPROTO_TCP }, leads = ctl, c;
	struct sockaddr_dblp leader, replica;
	int listener, door, i;
	struct options o;
	float model[COUNT];
	uint64_t version;
	char at[32];
	pid_t pid;

	fabric_options(&o, at);
	listener = dblp_fab_listen(&o.listen, IPPROTO_TCP);
	ASSERT_GE(listener, 0);
	pid = begin(&o, REPLICA);
	ctl.fd = dblp_accept(listener);
	ASSERT_EQ(hear(&ctl, DBLP_FAB_JOIN, &m, HEAR_MS), 0);
	replica = m.addr;
	leader = o.listen;
	leader.sdblp_port = 0;
	door = dblp_fab_listen(&leader, IPPROTO_TCP);
	ASSERT_GE(door, 0);
	ASSERT_EQ(dblp_fab_name(door, false, &leader), 0);
	m = (struct dblp_fab_msg) { .type = DBLP_FAB_WELCOME, .fabric = push.fabric };
	ASSERT_EQ(dblp_fab_send(&ctl, &m), 0);
	m = (struct dblp_fab_msg) { .type = DBLP_FAB_SERVER, .addr = leader };
	ASSERT_EQ(dblp_fab_send(&ctl, &m), 0);
	leads.fd = dblp_accept(door);
	ASSERT_EQ(hear(&leads, DBLP_FAB_FOLLOW, &m, HEAR_MS), 0);
	ASSERT_EQ(say(&leads, DBLP_FAB_MODEL, 0, 0, 4), 0);
	ASSERT_EQ(dblp_fab_send_bytes(&leads, copy, 8), 0);
	ASSERT_EQ(say(&ctl, DBLP_FAB_PROMOTE, 0, 0, 4), 0);
	ASSERT_EQ(hear(&ctl, DBLP_FAB_APPLIED, &m, HEAR_MS), 0);
	ASSERT_EQ(dblp_fab_dial(&c, &replica, IPPROTO_TCP, HEAR_MS), 0);
	push.version = 4;
	ASSERT_EQ(dblp_fab_push(&c, &push, u, COUNT, &ack), 0);
	ASSERT_EQ(ack.error, 0);
	ASSERT_EQ(dblp_fab_send_bytes(&leads, copy + 2, sizeof(copy) - 8), 0);
	EXPECT_EQ(dblp_fab_recv(&leads, &m), -ECONNRESET);
	ASSERT_EQ(dblp_fab_pull(&c, push.fabric, 5, &version), 0);
	ASSERT_EQ(dblp_fab_recv_bytes(&c, model, sizeof(model)), 0);
	for (i = 0; i < COUNT; i++)
		EXPECT_EQ(model[i], -1);
	m = (struct dblp_fab_msg) { .type = DBLP_FAB_REFUSE, .error = ESHUTDOWN };
	ASSERT_EQ(dblp_fab_send(&ctl, &m), 0);
	EXPECT_EQ(waitpid(pid, &i, 0), pid);
	EXPECT_EQ(i, 0);
}

TEST_HARNESS_MAIN
