// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: effects of a change of phase on messages in flight, and the detector of critical
 * regimes with norms of DBLP_NORM.
 */
#define _GNU_SOURCE
#include "lib/hits.h"
#include "lib/nltest.h"
#include "lib/sock.h"
#include "values.h"
#include "lib/trap.h"

#include <libdblp.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "kselftest_harness.h"

#define RELIABLE	0
#define CRITICAL	1
#define TOLERANT	2

/* bytes of a message, which takes 4 s at 20 Mbit/s */
#define BIG		10000000
/* ppm of a message that a receiver can do without */
#define MOST		900000
#define RTT_MS		200

static char big[BIG];

FIXTURE(job)
{
	int listener;
	int client;
	int server;
};

static int job_phase(uint8_t cmd, uint32_t phase)
{
	return result(ASK(cmd, DBLP_A_JOB_ID, 7, DBLP_A_JOB_PHASE, phase));
}

static int phase_budget(uint32_t id, uint32_t budget)
{
	return result(ASK(DBLP_CMD_PHASE_SET, DBLP_A_PHASE_ID, id, DBLP_A_PHASE_BUDGET, budget));
}

FIXTURE_SETUP(job)
{
	struct sockaddr_dblp addr;

	netns_new();
	open_netlink();
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_ADD, RELIABLE));
	ASSERT_EQ(0, phase_budget(TOLERANT, MOST));
	netem("delay 100ms rate 20mbit");
	self->listener = new_listener("::1", 4, &addr);
	self->client = new_socket();
	set_u32(self->client, DBLP_JOB, 7);
	set_u32(self->client, DBLP_NOTIFY, 1);
	ASSERT_EQ(0, connect_to(self->client, &addr));
	self->server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, self->server);
	pattern_fill(big, sizeof(big), 0, 1, 1);
}

FIXTURE_ENDS_BY_EXIT(job);

/* Start a message, and wait until a quarter of it has arrived */
static void begin_message(struct __test_metadata *_metadata,
			  FIXTURE_DATA(job) *self,
			  const struct dblp_sndinfo *info)
{
	struct dblp_info now = { 0 };

	ASSERT_EQ(BIG, sndinfo_send(self->client, big, BIG, 0, info));
	while (now.bytes_first < now.inflight + BIG / 4) {
		ASSERT_FALSE(wait_for(self->server, POLLIN, 20));
		now = get_info(self->client);
	}
}

/* Receive the message; both ends must agree, and its bytes must be right */
static struct dblp_rcvinfo end_message(struct __test_metadata *_metadata,
				       FIXTURE_DATA(job) *self)
{
	static char got_big[BIG];
	struct message m, sent;
	uint32_t i, at = 0;

	EXPECT_TRUE(wait_for(self->server, POLLIN, 30 * SECONDS));
	EXPECT_EQ(BIG, message_recv(self->server, got_big, BIG, 0, &m));
	EXPECT_TRUE(wait_for(self->client, POLLERR, 30 * SECONDS));
	EXPECT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &sent));
	EXPECT_EQ(m.info.missing, sent.info.missing);
	EXPECT_EQ(m.info.budget, sent.info.budget);
	for (i = 0; i < m.n; at = m.range[i].offset + m.range[i].length, i++)
		EXPECT_EQ(-1, pattern_check(got_big + at,
					    m.range[i].offset - at, at, 1, 1));
	EXPECT_EQ(-1, pattern_check(got_big + at, BIG - at, at, 1, 1));
	message_free(&m);
	message_free(&sent);
	return m.info;
}

/* Ways to make the same change */
static void by_job(FIXTURE_DATA(job) *self)
{
	if (job_phase(DBLP_CMD_JOB_SET, TOLERANT))
		die("job-set");
}

static void by_phase(FIXTURE_DATA(job) *self)
{
	if (phase_budget(TOLERANT, MOST))
		die("phase-set");
}

static void by_option(FIXTURE_DATA(job) *self)
{
	set_u32(self->client, DBLP_PHASE, TOLERANT);
}

static void by_joining(FIXTURE_DATA(job) *self)
{
	set_u32(self->client, DBLP_JOB, 7);
}

static void by_inheriting(FIXTURE_DATA(job) *self)
{
	set_u32(self->client, DBLP_BUDGET, DBLP_INHERIT);
}

static void by_norm(FIXTURE_DATA(job) *self)
{
	if (try_u64(self->client, DBLP_NORM, 1ULL << 32))
		die("setsockopt(DBLP_NORM)");
}

/* The receiver learns of the change and closes; the sender knows one RTT later */
static void closes_at_once(struct __test_metadata *_metadata,
			   FIXTURE_DATA(job) *self,
			   void (*change)(FIXTURE_DATA(job) *self))
{
	uint32_t rtt = get_info(self->client).srtt_us / 1000;
	uint64_t before, took;
	struct dblp_rcvinfo info;

	EXPECT_LE(RTT_MS, rtt);
	before = now_ms();
	change(self);
	EXPECT_TRUE(wait_for(self->client, POLLERR, 10 * SECONDS));
	took = now_ms() - before;
	TH_LOG("%llu ms after the change, with a round-trip time of %u ms",
	       (unsigned long long)took, rtt);
	EXPECT_LE(RTT_MS, took);
	/* A busy machine may need several RTTs; the whole message would take 3 s more */
	EXPECT_GE(rtt + (virtual_time() ? RTT_MS / 2 : 5 * RTT_MS), took);
	EXPECT_TRUE(wait_for(self->server, POLLIN, 0));
	info = end_message(_metadata, self);
	EXPECT_EQ(MOST, info.budget);
	EXPECT_LE(BIG / 10, info.missing);
	EXPECT_GE(budget_bytes(MOST, BIG), info.missing);
}

TEST_F(job, a_new_phase_reaches_messages_in_flight)
{
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_job);
}

TEST_F(job, a_changed_phase_reaches_messages_in_flight)
{
	ASSERT_EQ(0, phase_budget(TOLERANT, 0));
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_phase);
}

TEST_F(job, a_chosen_phase_reaches_messages_in_flight)
{
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_option);
}

TEST_F(job, a_chosen_job_reaches_messages_in_flight)
{
	set_u32(self->client, DBLP_JOB, 0);
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_joining);
}

TEST_F(job, the_phase_s_budget_reaches_messages_in_flight)
{
	set_u32(self->client, DBLP_BUDGET, 0);
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_inheriting);
}

/* The peer's cap is the limit, whatever an operator sets here */
TEST_F(job, a_new_phase_stays_within_the_cap)
{
	struct dblp_rcvinfo info;

	set_u32(self->server, DBLP_BUDGET_CAP, DBLP_PPM / 2);
	begin_message(_metadata, self, NULL);
	by_job(self);
	info = end_message(_metadata, self);
	EXPECT_LT(0, info.missing);
	EXPECT_GE(BIG / 2, info.missing);
}

TEST_F(job, back_to_reliable_in_flight)
{
	struct dblp_rcvinfo info;

	/* Segments in flight arrive before the change; they must not be enough to close */
	ASSERT_EQ(0, phase_budget(TOLERANT, DBLP_PPM / 5));
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	begin_message(_metadata, self, NULL);
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, RELIABLE));
	info = end_message(_metadata, self);
	EXPECT_EQ(0, info.missing);
}

/* A message with its own phase or budget keeps it */
TEST_F(job, a_new_phase_keeps_settings_of_a_message)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_PHASE, .phase = RELIABLE,
	};

	begin_message(_metadata, self, &info);
	by_job(self);
	EXPECT_EQ(0, end_message(_metadata, self).missing);
	EXPECT_EQ(MOST, get_u32(self->client, DBLP_BUDGET));
}

struct sending {
	int		fd;
	struct trap	trap;
};

static void *send_trap(void *arg)
{
	struct sending *s = arg;

	if (send(s->fd, s->trap.at, s->trap.len, 0) != s->trap.len)
		die("send()");
	return NULL;
}

/* While its bytes are copied, a message is not in any list of the socket */
TEST_F(job, a_new_phase_reaches_messages_being_copied)
{
	static char got_small[1 << 20];
	struct sending s = {
		.fd = self->client, .trap = trap_make(sizeof(got_small)),
	};
	struct message m;
	pthread_t thread;

	/* The trap is filled with zeroes, which shall not be elided */
	set_u32(self->client, DBLP_ELIDE, 0);
	if (pthread_create(&thread, NULL, send_trap, &s))
		die("pthread_create()");
	ASSERT_TRUE(wait_for(s.trap.fd, POLLIN, 5 * SECONDS));
	by_job(self);
	trap_fill(&s.trap);
	ASSERT_TRUE(wait_for(self->server, POLLIN, 5 * SECONDS));
	ASSERT_EQ(sizeof(got_small), message_recv(self->server, got_small,
						  sizeof(got_small), 0, &m));
	EXPECT_EQ(MOST, m.info.budget);
	EXPECT_LT(0, m.info.missing);
	message_free(&m);
	pthread_join(thread, NULL);
}

/* The detector. Norms are in thousandths. */

#define MILLI		((1ULL << 32) / 1000)
#define HALF		(DBLP_PPM / 2)

/* State of a job's detector */
struct clr {
	uint32_t	phase, clr, low, high, low_phase, high_phase, eta, hold;
	uint32_t	regime, change, reports;
	uint64_t	norm;
};

static void note_clr(const struct nlmsghdr *nlh, void *arg)
{
	struct clr *c = arg;
	uint32_t *to[DBLP_A_JOB_MAX + 1] = {
		[DBLP_A_JOB_PHASE] = &c->phase, [DBLP_A_JOB_CLR] = &c->clr,
		[DBLP_A_JOB_LOW] = &c->low, [DBLP_A_JOB_HIGH] = &c->high,
		[DBLP_A_JOB_LOW_PHASE] = &c->low_phase,
		[DBLP_A_JOB_HIGH_PHASE] = &c->high_phase,
		[DBLP_A_JOB_ETA] = &c->eta, [DBLP_A_JOB_HOLD] = &c->hold,
		[DBLP_A_JOB_REGIME] = &c->regime,
		[DBLP_A_JOB_CHANGE] = &c->change,
		[DBLP_A_JOB_REPORTS] = &c->reports,
	};
	const struct nlattr *attr;
	uint16_t type;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		type = mnl_attr_get_type(attr);
		if (type == DBLP_A_JOB_NORM)
			c->norm = mnl_attr_get_u64(attr);
		else if (type <= DBLP_A_JOB_MAX && to[type])
			*to[type] = mnl_attr_get_u32(attr);
	}
}

static struct clr job_clr(void)
{
	struct nlmsghdr *nlh = job_request(DBLP_CMD_JOB_GET, 7);
	struct clr c = { .low = DBLP_INHERIT, .high = DBLP_INHERIT };

	result_each(nlh, note_clr, &c);
	return c;
}

/* Set one or two attributes of job 7; returns 0 or the errno */
static int job_attrs(uint16_t attr, uint32_t value, uint16_t attr2,
		     uint32_t value2)
{
	struct nlmsghdr *nlh = job_request(DBLP_CMD_JOB_SET, 7);

	mnl_attr_put_u32(nlh, attr, value);
	if (attr2)
		mnl_attr_put_u32(nlh, attr2, value2);
	return result(nlh);
}

static int job_attr(uint16_t attr, uint32_t value)
{
	return job_attrs(attr, value, 0, 0);
}

static void tell_norm(FIXTURE_DATA(job) *self, uint32_t milli)
{
	if (try_u64(self->client, DBLP_NORM, milli * MILLI))
		die("setsockopt(DBLP_NORM)");
}

#define EXPECT_PLACE(fd, wanted_phase, wanted_budget) do { \
	struct dblp_info info_ = get_info(fd); \
	EXPECT_EQ(wanted_phase, info_.phase); \
	EXPECT_EQ(wanted_budget, info_.budget); \
} while (0)

#define MANY		10000

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* When the request is answered, every socket has the new settings */
TEST_F(job, ten_thousand_sockets_move_at_once)
{
	struct rlimit limit = { MANY + 100, MANY + 100 };
	int i, n = less_if_slow(MANY, 10, "sockets");
	static int fds[MANY];
	uint64_t before;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit()");
	for (i = 0; i < n; i++) {
		fds[i] = new_socket();
		set_u32(fds[i], DBLP_JOB, 7);
	}
	before = now_us();
	EXPECT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	TH_LOG("%d sockets moved in %llu us", n,
	       (unsigned long long)(now_us() - before));
	for (i = 0; i < n; i++)
		ASSERT_EQ(TOLERANT, get_u32(fds[i], DBLP_PHASE));
	for (i = 0; i < n; i++)
		close(fds[i]);
}

/* As in unit/test_clr.c */
static const uint32_t paper[] = {
	40000, 18000, 8000, 3900, 3000, 2600, 2400, 2300, 2250, 2200,
	1000, 980, 960, 950, 945, 940, 400, 395, 393, 392,
};

TEST_F(job, a_detector_moves_all_its_sockets)
{
	static const char regimes[] = "CCCCTTTTTTCTTTTTCTTT";
	uint32_t i, phase;

	set_u32(self->server, DBLP_JOB, 7);
	/* A phase may be set together with clr only if the detector starts in it */
	EXPECT_EQ(0, job_attrs(DBLP_A_JOB_CLR, DBLP_CLR_ON, DBLP_A_JOB_PHASE, CRITICAL));
	EXPECT_PLACE(self->client, CRITICAL, 8000);
	for (i = 0; i < sizeof(paper) / sizeof(paper[0]); i++) {
		tell_norm(self, paper[i]);
		phase = regimes[i] == 'C' ? CRITICAL : TOLERANT;
		EXPECT_PLACE(self->client, phase,
			     phase == CRITICAL ? 8000 : MOST);
		EXPECT_EQ(phase, get_info(self->server).phase);
		EXPECT_EQ(phase, job_clr().phase);
		EXPECT_EQ(i + 1, job_clr().reports);
		EXPECT_EQ(paper[i] * MILLI, job_clr().norm);
	}
	EXPECT_EQ(DBLP_REGIME_TOLERANT, job_clr().regime);
	/* (393 - 392) / 393 */
	EXPECT_EQ(2544, job_clr().change);
}

TEST_F(job, a_detector_begins_critical_in_a_new_job)
{
	set_u32(self->client, DBLP_JOB, 0);
	EXPECT_EQ(0, result(job_request(DBLP_CMD_JOB_DEL, 7)));
	EXPECT_EQ(0, result(ASK(DBLP_CMD_JOB_ADD, DBLP_A_JOB_ID, 7, DBLP_A_JOB_CLR, DBLP_CLR_ON,
				DBLP_A_JOB_LOW, 1, DBLP_A_JOB_HIGH, HALF, DBLP_A_JOB_LOW_PHASE,
				TOLERANT, DBLP_A_JOB_HIGH_PHASE, RELIABLE, DBLP_A_JOB_ETA, 100,
				DBLP_A_JOB_HOLD, 1)));
	set_u32(self->client, DBLP_JOB, 7);
	EXPECT_PLACE(self->client, TOLERANT, 1);
	tell_norm(self, 1000);
	tell_norm(self, 1000);
	EXPECT_PLACE(self->client, TOLERANT, 1);
	tell_norm(self, 1000);
	/* The budget is that of the job, although the phase has policy full */
	EXPECT_PLACE(self->client, RELIABLE, HALF);
	/* With the detector off, the budget is that of the phase */
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_OFF));
	EXPECT_PLACE(self->client, RELIABLE, 0);
}

/* Changed settings of an active detector apply when the request is answered */
TEST_F(job, a_detector_is_tuned_live)
{
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_LOW, 77));
	EXPECT_PLACE(self->client, CRITICAL, 77);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_LOW_PHASE, RELIABLE));
	EXPECT_PLACE(self->client, RELIABLE, 77);
	tell_norm(self, 1000);
	tell_norm(self, 900);
	EXPECT_PLACE(self->client, TOLERANT, MOST);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_HIGH, 88));
	EXPECT_PLACE(self->client, TOLERANT, 88);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_ETA, 1000));
	tell_norm(self, 899);
	EXPECT_PLACE(self->client, RELIABLE, 77);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_HIGH, DBLP_INHERIT));
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_HOLD, 2));
	tell_norm(self, 1899);
	tell_norm(self, 1899);
	tell_norm(self, 1899);
	EXPECT_PLACE(self->client, RELIABLE, 77);
	tell_norm(self, 1899);
	EXPECT_PLACE(self->client, TOLERANT, MOST);
}

/* A phase set by hand holds until clr is set to on again */
TEST_F(job, an_operator_holds_the_detector)
{
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	tell_norm(self, 1000);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_PHASE, CRITICAL));
	EXPECT_EQ(DBLP_CLR_HELD, job_clr().clr);
	tell_norm(self, 1000);
	tell_norm(self, 1000);
	EXPECT_PLACE(self->client, CRITICAL, 8000);
	/* A held detector still processes norms */
	EXPECT_EQ(DBLP_REGIME_TOLERANT, job_clr().regime);
	EXPECT_EQ(3, job_clr().reports);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_ETA, HALF));
	EXPECT_EQ(DBLP_CLR_HELD, job_clr().clr);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_EQ(DBLP_CLR_ON, job_clr().clr);
	EXPECT_PLACE(self->client, TOLERANT, MOST);

	/* A detector that is off processes norms, too; turning it on resets it */
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_OFF));
	EXPECT_PLACE(self->client, TOLERANT, MOST);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_PHASE, RELIABLE));
	EXPECT_EQ(DBLP_CLR_OFF, job_clr().clr);
	tell_norm(self, 1000);
	EXPECT_EQ(4, job_clr().reports);
	EXPECT_PLACE(self->client, RELIABLE, 0);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_PLACE(self->client, CRITICAL, 8000);
	EXPECT_EQ(0, job_clr().reports);
}

/* The detector does not change a phase that a program has set */
TEST_F(job, a_detector_leaves_a_socket_s_own_phase)
{
	set_u32(self->client, DBLP_PHASE, RELIABLE);
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_LOW, 5));
	EXPECT_PLACE(self->client, RELIABLE, 0);
	set_u32(self->client, DBLP_PHASE, CRITICAL);
	EXPECT_PLACE(self->client, CRITICAL, 8000);
	set_u32(self->client, DBLP_PHASE, DBLP_INHERIT);
	EXPECT_PLACE(self->client, CRITICAL, 5);
}

TEST_F(job, a_detector_s_phases_are_not_deleted)
{
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	REFUSED(EBUSY, ASK(DBLP_CMD_PHASE_DEL, DBLP_A_PHASE_ID, TOLERANT));
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_OFF));
	EXPECT_EQ(0, result(ASK(DBLP_CMD_PHASE_DEL, DBLP_A_PHASE_ID, TOLERANT)));
	/* It cannot be turned on with a phase that does not exist */
	EXPECT_EQ(ENOENT, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_NE(0, strlen(got.msg));
	EXPECT_EQ(DBLP_CLR_OFF, job_clr().clr);
}

/* Returns the minimum time of several reports, us */
static uint64_t norm_us(FIXTURE_DATA(job) *self)
{
	uint64_t least = UINT64_MAX, before;
	int i;

	tell_norm(self, 1);
	tell_norm(self, 1);
	for (i = 0; i < 50; i++) {
		before = now_us();
		tell_norm(self, i & 2 ? 1 : 1000);
		before = now_us() - before;
		least = before < least ? before : least;
		if (job_clr().phase != (i & 1 ? TOLERANT : CRITICAL))
			die("the phase stays");
	}
	return least;
}

/* The time of a report depends on the reporter's own sockets only */
TEST_F(job, a_norm_costs_the_same_beside_ten_thousand_sockets)
{
	struct rlimit limit = { MANY + 100, MANY + 100 };
	int i, n = less_if_slow(MANY, 10, "sockets");
	uint64_t alone, beside;
	static int fds[MANY];

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit()");
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	alone = norm_us(self);
	for (i = 0; i < n; i++)
		fds[i] = new_socket();
	beside = norm_us(self);
	TH_LOG("%llu us, and beside %d sockets %llu us",
	       (unsigned long long)alone, n, (unsigned long long)beside);
	EXPECT_GE(5 * alone + 100, beside);
	for (i = 0; i < n; i++)
		close(fds[i]);
}

/* Function that applies settings to a socket */
#define APPLY		"dblp:dblp_apply_config"
#define SENDS		300
#define MANY_MESSAGES	1500

/* Returns the time of some messages of @fd, each after a norm by @mover, us */
static uint64_t sends_us(int mover, int fd, bool moves)
{
	uint64_t sum = 0, before;
	int i;

	for (i = 0; i < SENDS; i++) {
		if (try_u64(mover, DBLP_NORM, moves && !(i & 2) ? 1000 : 1))
			die("setsockopt(DBLP_NORM)");
		before = now_us();
		if (send(fd, big, 8, 0) != 8)
			die("send()");
		sum += now_us() - before;
	}
	return sum;
}

/* Changes of a job cost time in its own sockets only */
TEST_F(job, a_norm_concerns_no_socket_outside_the_job)
{
	int mover = new_socket(), i;
	uint64_t still, moving;
	unsigned long n;

	if (!can_hit())
		SKIP(return, "needs kprobes");
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	set_u32(mover, DBLP_JOB, 7);
	set_u32(self->client, DBLP_JOB, 0);
	for (i = 0; i < MANY_MESSAGES; i++)
		ASSERT_EQ(8, send(self->client, big, 8, 0));
	/* Start in the critical phase, so that later norms change it or not */
	ASSERT_EQ(0, try_u64(mover, DBLP_NORM, 1));
	ASSERT_EQ(0, try_u64(mover, DBLP_NORM, 1));
	hits_open(APPLY);
	n = hits();
	still = sends_us(mover, self->client, false);
	EXPECT_EQ(0, hits() - n);
	n = hits();
	moving = sends_us(mover, self->client, true);
	/* Settings are applied to the job's socket, at each change of the phase */
	EXPECT_LE(SENDS / 2, hits() - n);
	EXPECT_GE(SENDS, hits() - n);
	TH_LOG("%d messages in %llu us, and while a job moves in %llu us",
	       SENDS, (unsigned long long)still, (unsigned long long)moving);
	if (virtual_time())
		EXPECT_GE(2 * still, moving);
	hits_close();
}

/* Setting an unchanged value applies nothing to any socket */
TEST_F(job, an_unchanged_setting_is_applied_to_no_socket)
{
	unsigned long n;

	if (!can_hit())
		SKIP(return, "needs kprobes");
	EXPECT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	hits_open(APPLY);
	n = hits();
	EXPECT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	EXPECT_EQ(0, phase_budget(TOLERANT, MOST));
	EXPECT_EQ(0, hits() - n);
	hits_close();
}

TEST_F(job, norms_that_are_refused)
{
	struct clr before = job_clr(), after;
	uint64_t norm = 1;
	uint32_t half = 1;

	EXPECT_ERR(ENOENT, try_u64(self->server, DBLP_NORM, 1));
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_NORM, &half,
				      sizeof(half)));
	EXPECT_ERR(EFAULT, setsockopt(self->client, SOL_DBLP, DBLP_NORM, NULL,
				      sizeof(norm)));
	after = job_clr();
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	/* All numbers are valid norms */
	EXPECT_EQ(0, try_u64(self->client, DBLP_NORM, 0));
	EXPECT_EQ(0, try_u64(self->client, DBLP_NORM, UINT64_MAX));
	EXPECT_EQ(UINT32_MAX, job_clr().change);
	EXPECT_EQ(UINT64_MAX, job_clr().norm);
}

/* Norms by libdblp, as doubles; the detector does not get refused ones */
TEST_F(job, norms_by_libdblp)
{
	struct clr before, after;

	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	EXPECT_EQ(0, dblp_job_norm(7, 8));
	EXPECT_PLACE(self->client, CRITICAL, 8000);
	EXPECT_EQ(8ULL << 32, job_clr().norm);
	EXPECT_EQ(0, dblp_job_norm(7, 7.5));
	EXPECT_PLACE(self->client, TOLERANT, MOST);

	before = job_clr();
	EXPECT_EQ(-EINVAL, dblp_job_norm(7, NAN));
	EXPECT_EQ(-EINVAL, dblp_job_norm(7, INFINITY));
	EXPECT_EQ(-EINVAL, dblp_job_norm(7, -INFINITY));
	EXPECT_EQ(-EINVAL, dblp_job_norm(7, -0.5));
	EXPECT_EQ(-ERANGE, dblp_job_norm(7, 0x1p32));
	EXPECT_EQ(-ENOENT, dblp_job_norm(8, 1));
	EXPECT_EQ(-ENOENT, dblp_job_norm(0, 1));
	after = job_clr();
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));

	EXPECT_EQ(0, dblp_job_norm(7, 0x1.fffffffffffffp31));
	EXPECT_EQ(UINT64_MAX - 0x7ff, job_clr().norm);
	EXPECT_EQ(0, dblp_job_norm(7, 0));
	EXPECT_EQ(0, job_clr().norm);
}

/* Decisions of the detector affect messages in flight, too */
TEST_F(job, a_detector_reaches_messages_in_flight)
{
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_CLR, DBLP_CLR_ON));
	/* A message keeps its policy; early would close it later */
	EXPECT_EQ(0, job_attr(DBLP_A_JOB_LOW_PHASE, RELIABLE));
	tell_norm(self, 1000);
	begin_message(_metadata, self, NULL);
	closes_at_once(_metadata, self, by_norm);
}

TEST_HARNESS_MAIN
