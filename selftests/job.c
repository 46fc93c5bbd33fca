// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs at work: what a change of phase does to messages under way.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"

#define RELIABLE	0
#define TOLERANT	2

/* Bytes of a message: takes 4 s at 20 Mbit/s */
#define BIG		10000000
/* Of which a receiver can do without */
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
	struct nlmsghdr *nlh = begin(family, cmd, 0);

	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, 7);
	mnl_attr_put_u32(nlh, DBLP_A_JOB_PHASE, phase);
	return result(nlh);
}

static int phase_budget(uint32_t id, uint32_t budget)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_PHASE_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, id);
	mnl_attr_put_u32(nlh, DBLP_A_PHASE_BUDGET, budget);
	return result(nlh);
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

FIXTURE_TEARDOWN(job)
{
	close(self->server);
	close(self->client);
	close(self->listener);
	mnl_socket_close(nl);
}

/* Lets a good quarter of a message arrive, which is amid its way then */
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

/* Both ends agree on what became of it; nothing of it is wrong */
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

/* The ways to one and the same change */
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

/* The receiver hears of it, and closes; the sender knows that one RTT later */
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
	/* Half of one for machines that are busy */
	EXPECT_GE(rtt + RTT_MS / 2, took);
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

/* What the peer allows is the border, whatever an operator does here */
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

	ASSERT_EQ(0, phase_budget(TOLERANT, DBLP_PPM / 2));
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, TOLERANT));
	begin_message(_metadata, self, NULL);
	ASSERT_EQ(0, job_phase(DBLP_CMD_JOB_SET, RELIABLE));
	info = end_message(_metadata, self);
	EXPECT_EQ(0, info.missing);
}

/* Not those that name their phase or their budget themselves */
TEST_F(job, a_new_phase_leaves_what_a_message_chose)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_PHASE, .phase = RELIABLE,
	};

	begin_message(_metadata, self, &info);
	by_job(self);
	EXPECT_EQ(0, end_message(_metadata, self).missing);
	EXPECT_EQ(MOST, get_u32(self->client, DBLP_BUDGET));
}

/* Memory whose first use stops whoever uses it, until it is filled */
struct trap {
	int	fd;
	char	*at;
	size_t	len;
};

static struct trap trap_make(size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct trap t = { .len = len };

	t.fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	t.at = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (unsigned long)t.at;
	reg.range.len = len;
	if (t.fd < 0 || t.at == MAP_FAILED || ioctl(t.fd, UFFDIO_API, &api) ||
	    ioctl(t.fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	return t;
}

static void trap_fill(const struct trap *t)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (unsigned long)t->at, .len = t->len },
	};

	if (ioctl(t->fd, UFFDIO_ZEROPAGE, &zero))
		die("UFFDIO_ZEROPAGE");
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

/* While its bytes are copied, a message is on none of the socket's lists */
TEST_F(job, a_new_phase_reaches_messages_being_copied)
{
	static char got_small[65536];
	struct sending s = {
		.fd = self->client, .trap = trap_make(sizeof(got_small)),
	};
	struct message m;
	pthread_t thread;

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

TEST_HARNESS_MAIN
