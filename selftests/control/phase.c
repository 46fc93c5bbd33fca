// SPDX-License-Identifier: GPL-2.0-only
/*
 * Phases and jobs: their effects on sockets and messages, and their tables in netlink.
 * Refusals are in refusals.c, permissions in rights.c.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/nltest.h"
#include "lib/sock.h"
#include "values.h"

#include "kselftest_harness.h"

/* Numbers of the default phases */
#define RELIABLE	0
#define CRITICAL	1
#define TOLERANT	2

/* A phase as the kernel dumps it */
struct phase {
	uint32_t	id, budget, policy, order, fill, sockets;
	char		name[32];
};

static struct nlmsghdr *phase_request(uint8_t cmd, uint32_t id)
{
	struct nlmsghdr *nlh = begin(family, cmd, 0);

	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, id);
	return nlh;
}

/* Set an attribute of a phase; returns 0 or the errno */
static int set_attr(uint32_t id, uint16_t attr, uint32_t value)
{
	struct nlmsghdr *nlh = phase_request(DBLP_CMD_PHASE_SET, id);

	mnl_attr_put_u32(nlh, attr, value);
	return result(nlh);
}

static int make_phase(uint32_t id, const char *name, uint32_t budget)
{
	struct nlmsghdr *nlh = phase_request(DBLP_CMD_PHASE_SET, id);

	mnl_attr_put_strz(nlh, DBLP_A_PHASE_NAME, name);
	mnl_attr_put_u32(nlh, DBLP_A_PHASE_BUDGET, budget);
	return result(nlh);
}

static int del_phase(uint32_t id)
{
	return result(phase_request(DBLP_CMD_PHASE_DEL, id));
}

/* Phases of a dump, or a single phase */
struct seen {
	unsigned int	n;
	struct phase	phase[DBLP_PHASES];
};

static void note_phase(const struct nlmsghdr *nlh, void *arg)
{
	uint32_t *to[DBLP_A_PHASE_MAX + 1] = { 0 };
	const struct nlattr *attr;
	struct seen *seen = arg;
	struct phase *p;
	uint16_t type;

	if (seen->n == DBLP_PHASES)
		die("too many phases");
	p = &seen->phase[seen->n++];
	to[DBLP_A_PHASE_ID] = &p->id;
	to[DBLP_A_PHASE_BUDGET] = &p->budget;
	to[DBLP_A_PHASE_POLICY] = &p->policy;
	to[DBLP_A_PHASE_ORDER] = &p->order;
	to[DBLP_A_PHASE_FILL] = &p->fill;
	to[DBLP_A_PHASE_SOCKETS] = &p->sockets;
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		type = mnl_attr_get_type(attr);
		if (type == DBLP_A_PHASE_NAME)
			snprintf(p->name, sizeof(p->name), "%s",
				 mnl_attr_get_str(attr));
		else if (type <= DBLP_A_PHASE_MAX && to[type])
			*to[type] = mnl_attr_get_u32(attr);
	}
}

static struct seen all_phases(void)
{
	struct seen seen = { 0 };

	result_each(begin(family, DBLP_CMD_PHASE_GET, NLM_F_DUMP), note_phase,
		    &seen);
	return seen;
}

static struct phase one_phase(uint32_t id)
{
	struct nlmsghdr *nlh = phase_request(DBLP_CMD_PHASE_GET, id);
	struct seen seen = { 0 };

	result_each(nlh, note_phase, &seen);
	return seen.phase[0];
}

FIXTURE(phase)
{
	struct sockaddr_dblp addr;
	int listener;
	int client;
	int server;
};

FIXTURE_SETUP(phase)
{
	netns_new();
	open_netlink();
	self->listener = new_listener("::1", 4, &self->addr);
	connect_pair(&self->addr, self->listener, &self->client,
		     &self->server);
}

FIXTURE_ENDS_BY_EXIT(phase);

/* Send and receive a message; returns its DBLP_RCVINFO */
static struct dblp_rcvinfo carry(int from, int to,
				 const struct dblp_sndinfo *info)
{
	struct message m;
	char buf[16];

	if (sndinfo_send(from, "text", 4, 0, info) != 4)
		die("sendmsg()");
	if (message_recv(to, buf, sizeof(buf), 0, &m) != 4)
		die("recvmsg()");
	message_free(&m);
	return m.info;
}

#define EXPECT_SETTINGS(fd, wanted_phase, wanted_budget, wanted_policy) do { \
	struct dblp_info info_ = get_info(fd); \
	EXPECT_EQ(wanted_phase, info_.phase); \
	EXPECT_EQ(wanted_budget, info_.budget); \
	EXPECT_EQ(wanted_policy, info_.policy); \
	EXPECT_EQ(wanted_phase, get_u32(fd, DBLP_PHASE)); \
	EXPECT_EQ(wanted_budget, get_u32(fd, DBLP_BUDGET)); \
	EXPECT_EQ(wanted_policy, get_u32(fd, DBLP_CLOSE_POLICY)); \
} while (0)

TEST_F(phase, a_new_socket_is_reliable)
{
	int fd = new_socket();

	EXPECT_SETTINGS(fd, RELIABLE, 0, DBLP_POLICY_EAGER);
	EXPECT_SETTINGS(self->client, RELIABLE, 0, DBLP_POLICY_EAGER);
	EXPECT_SETTINGS(self->server, RELIABLE, 0, DBLP_POLICY_EAGER);
}

TEST_F(phase, each_configures_its_sockets)
{
	set_u32(self->client, DBLP_PHASE, TOLERANT);
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);
	EXPECT_EQ(408000, carry(self->client, self->server, NULL).budget);
	EXPECT_EQ(TOLERANT, carry(self->client, self->server, NULL).phase);

	set_u32(self->client, DBLP_PHASE, CRITICAL);
	EXPECT_SETTINGS(self->client, CRITICAL, 8000, DBLP_POLICY_EARLY);
	EXPECT_EQ(8000, carry(self->client, self->server, NULL).budget);
	EXPECT_EQ(CRITICAL, carry(self->client, self->server, NULL).phase);

	set_u32(self->client, DBLP_PHASE, RELIABLE);
	EXPECT_SETTINGS(self->client, RELIABLE, 0, DBLP_POLICY_EAGER);
	EXPECT_EQ(0, carry(self->client, self->server, NULL).budget);

	set_u32(self->client, DBLP_PHASE, TOLERANT);
	set_u32(self->client, DBLP_PHASE, DBLP_INHERIT);
	EXPECT_SETTINGS(self->client, RELIABLE, 0, DBLP_POLICY_EAGER);
}

TEST_F(phase, unknown_phases)
{
	uint64_t wide = TOLERANT;

	set_u32(self->client, DBLP_PHASE, TOLERANT);
	EXPECT_ERR(ENOENT, try_u32(self->client, DBLP_PHASE, 3));
	EXPECT_ERR(ENOENT, try_u32(self->client, DBLP_PHASE, 7));
	EXPECT_ERR(EINVAL, try_u32(self->client, DBLP_PHASE, 8));
	EXPECT_ERR(EINVAL, try_u32(self->client, DBLP_PHASE, DBLP_INHERIT - 1));
	EXPECT_ERR(EINVAL, setsockopt(self->client, SOL_DBLP, DBLP_PHASE, &wide,
				      sizeof(wide)));
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);
}

TEST_F(phase, settings_of_the_socket_take_precedence)
{
	int fd = self->client;

	set_u32(fd, DBLP_BUDGET, 20000);
	set_u32(fd, DBLP_PHASE, TOLERANT);
	EXPECT_SETTINGS(fd, TOLERANT, 20000, DBLP_POLICY_EAGER);
	set_u32(fd, DBLP_PHASE, CRITICAL);
	EXPECT_SETTINGS(fd, CRITICAL, 20000, DBLP_POLICY_EARLY);
	/* A phase without a budget does not disable the socket's own budget */
	set_u32(fd, DBLP_PHASE, RELIABLE);
	EXPECT_SETTINGS(fd, RELIABLE, 20000, DBLP_POLICY_EAGER);
	EXPECT_EQ(20000, carry(fd, self->server, NULL).budget);

	set_u32(fd, DBLP_CLOSE_POLICY, DBLP_POLICY_FULL);
	set_u32(fd, DBLP_PHASE, TOLERANT);
	EXPECT_SETTINGS(fd, TOLERANT, 20000, DBLP_POLICY_FULL);
	EXPECT_EQ(0, carry(fd, self->server, NULL).budget);

	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_BUDGET, 300000));
	EXPECT_SETTINGS(fd, TOLERANT, 20000, DBLP_POLICY_FULL);
	set_u32(fd, DBLP_BUDGET, DBLP_INHERIT);
	EXPECT_SETTINGS(fd, TOLERANT, 300000, DBLP_POLICY_FULL);
	set_u32(fd, DBLP_CLOSE_POLICY, DBLP_INHERIT);
	EXPECT_SETTINGS(fd, TOLERANT, 300000, DBLP_POLICY_EAGER);
}

TEST_F(phase, order_and_fill)
{
	int fd = self->client;

	set_u32(fd, DBLP_PHASE, TOLERANT);
	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_ORDER,
			      DBLP_ORDER_SHUFFLED));
	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_FILL, DBLP_FILL_KEEP));
	EXPECT_EQ(DBLP_ORDER_SHUFFLED, get_u32(fd, DBLP_ORDER));
	EXPECT_EQ(DBLP_FILL_KEEP, get_u32(fd, DBLP_FILL));
	set_u32(fd, DBLP_ORDER, DBLP_ORDER_SEQUENTIAL);
	set_u32(fd, DBLP_FILL, DBLP_FILL_ZERO);
	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_ORDER, DBLP_ORDER_AUTO));
	EXPECT_EQ(DBLP_ORDER_SEQUENTIAL, get_u32(fd, DBLP_ORDER));
	EXPECT_EQ(DBLP_FILL_ZERO, get_u32(fd, DBLP_FILL));
	set_u32(fd, DBLP_ORDER, DBLP_INHERIT);
	set_u32(fd, DBLP_FILL, DBLP_INHERIT);
	EXPECT_EQ(DBLP_ORDER_AUTO, get_u32(fd, DBLP_ORDER));
	EXPECT_EQ(DBLP_FILL_KEEP, get_u32(fd, DBLP_FILL));
}

/* Do not read settings in between, because this would update them */
TEST_F(phase, a_change_reaches_the_next_message)
{
	uint32_t budget;

	set_u32(self->client, DBLP_PHASE, TOLERANT);
	for (budget = 1; budget < DBLP_PPM; budget *= 10) {
		EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_BUDGET, budget));
		EXPECT_EQ(budget,
			  carry(self->client, self->server, NULL).budget);
	}
	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_POLICY,
			      DBLP_POLICY_FULL));
	EXPECT_EQ(0, carry(self->client, self->server, NULL).budget);
	/* Sockets without a setting are in phase 0 */
	EXPECT_EQ(0, set_attr(RELIABLE, DBLP_A_PHASE_POLICY,
			      DBLP_POLICY_EAGER));
	EXPECT_EQ(0, set_attr(RELIABLE, DBLP_A_PHASE_BUDGET, 1234));
	EXPECT_EQ(1234, carry(self->server, self->client, NULL).budget);
}

TEST_F(phase, of_one_message)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_PHASE, .phase = TOLERANT,
	};
	struct dblp_rcvinfo got;

	got = carry(self->client, self->server, &info);
	EXPECT_EQ(TOLERANT, got.phase);
	EXPECT_EQ(408000, got.budget);
	/* Precedence: settings of the message, phase of the message, settings of the socket */
	set_u32(self->client, DBLP_BUDGET, 20000);
	got = carry(self->client, self->server, &info);
	EXPECT_EQ(408000, got.budget);
	info.flags |= DBLP_SND_BUDGET;
	info.budget = 1;
	got = carry(self->client, self->server, &info);
	EXPECT_EQ(TOLERANT, got.phase);
	EXPECT_EQ(1, got.budget);
	/* In a phase with policy full the message is reliable */
	info = (struct dblp_sndinfo) {
		.flags = DBLP_SND_PHASE, .phase = RELIABLE,
	};
	EXPECT_EQ(0, carry(self->client, self->server, &info).budget);
	/* The next message has the socket's settings */
	got = carry(self->client, self->server, NULL);
	EXPECT_EQ(RELIABLE, got.phase);
	EXPECT_EQ(20000, got.budget);

	info.phase = 5;
	EXPECT_ERR(ENOENT, sndinfo_send(self->client, "text", 4, 0, &info));
	EXPECT_EQ(0, make_phase(5, "fifth", 77));
	got = carry(self->client, self->server, &info);
	EXPECT_EQ(5, got.phase);
	EXPECT_EQ(77, got.budget);
}

TEST_F(phase, is_inherited_from_the_listener)
{
	int client, server;

	set_u32(self->listener, DBLP_PHASE, TOLERANT);
	set_u32(self->listener, DBLP_CLOSE_POLICY, DBLP_POLICY_FULL);
	connect_pair(&self->addr, self->listener, &client, &server);
	EXPECT_EQ(2, one_phase(TOLERANT).sockets);
	EXPECT_SETTINGS(server, TOLERANT, 408000, DBLP_POLICY_FULL);
	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_BUDGET, 300000));
	EXPECT_SETTINGS(server, TOLERANT, 300000, DBLP_POLICY_FULL);
	/* Later changes of the listener do not affect it */
	set_u32(self->listener, DBLP_PHASE, CRITICAL);
	EXPECT_EQ(1, one_phase(TOLERANT).sockets);
	EXPECT_SETTINGS(server, TOLERANT, 300000, DBLP_POLICY_FULL);
}

TEST_F(phase, the_default_table)
{
	static const struct phase wanted[] = {
		{ .id = 0, .name = "reliable", .policy = DBLP_POLICY_FULL },
		{ .id = 1, .name = "critical", .policy = DBLP_POLICY_EARLY,
		  .budget = 8000 },
		{ .id = 2, .name = "tolerant", .policy = DBLP_POLICY_EAGER,
		  .budget = 408000 },
	};
	struct seen seen = all_phases();
	struct phase p;
	int i;

	EXPECT_EQ(0, got.err);
	EXPECT_FALSE(got.torn);
	ASSERT_EQ(3, seen.n);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, memcmp(&wanted[i], &seen.phase[i], sizeof(p)));
		p = one_phase(i);
		EXPECT_EQ(0, memcmp(&wanted[i], &p, sizeof(p)));
	}
}

TEST_F(phase, a_new_one)
{
	struct phase p;

	EXPECT_EQ(0, make_phase(6, "warm-up_2", 20000));
	EXPECT_EQ(4, all_phases().n);
	p = one_phase(6);
	EXPECT_STREQ("warm-up_2", p.name);
	EXPECT_EQ(20000, p.budget);
	EXPECT_EQ(DBLP_POLICY_EAGER, p.policy);
	EXPECT_EQ(0, p.order + p.fill + p.sockets);
	set_u32(self->client, DBLP_PHASE, 6);
	EXPECT_SETTINGS(self->client, 6, 20000, DBLP_POLICY_EAGER);

	/* Rename it; the old name is free */
	EXPECT_EQ(0, make_phase(6, "warm-up_3", 20000));
	EXPECT_EQ(0, make_phase(7, "warm-up_2", 1));
	EXPECT_EQ(20000, one_phase(6).budget);
}

TEST_F(phase, deleted_unless_a_socket_is_in_it)
{
	struct dblp_sndinfo info = {
		.flags = DBLP_SND_PHASE, .phase = TOLERANT,
	};
	int fd = new_socket();

	set_u32(fd, DBLP_PHASE, TOLERANT);
	set_u32(self->client, DBLP_PHASE, TOLERANT);
	EXPECT_EQ(2, one_phase(TOLERANT).sockets);
	REFUSED(EBUSY, phase_request(DBLP_CMD_PHASE_DEL, TOLERANT));
	close(fd);
	EXPECT_EQ(1, one_phase(TOLERANT).sockets);
	REFUSED(EBUSY, phase_request(DBLP_CMD_PHASE_DEL, TOLERANT));
	set_u32(self->client, DBLP_PHASE, CRITICAL);
	EXPECT_EQ(0, del_phase(TOLERANT));
	EXPECT_EQ(2, all_phases().n);

	EXPECT_ERR(ENOENT, try_u32(self->client, DBLP_PHASE, TOLERANT));
	EXPECT_ERR(ENOENT, sndinfo_send(self->client, "text", 4, 0, &info));
	REFUSED(ENOENT, phase_request(DBLP_CMD_PHASE_DEL, TOLERANT));
	REFUSED(ENOENT, phase_request(DBLP_CMD_PHASE_GET, TOLERANT));
	REFUSED(EBUSY, phase_request(DBLP_CMD_PHASE_DEL, RELIABLE));
	REFUSED(EBUSY, phase_request(DBLP_CMD_PHASE_DEL, CRITICAL));
}

TEST_F(phase, by_netlink_for_a_socket)
{
	uint32_t id = get_info(self->client).id;

	EXPECT_EQ(0, result(ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, id, DBLP_A_SOCKET_PHASE,
				TOLERANT)));
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);

	REFUSED(ENOENT, ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, id, DBLP_A_SOCKET_BUDGET, 5,
			    DBLP_A_SOCKET_PHASE, 3));
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);

	EXPECT_EQ(0, result(ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, id, DBLP_A_SOCKET_BUDGET,
				5, DBLP_A_SOCKET_PHASE, DBLP_INHERIT)));
	EXPECT_SETTINGS(self->client, RELIABLE, 5, DBLP_POLICY_EAGER);

	EXPECT_EQ(0, result(ASK(DBLP_CMD_SOCKET_SET, DBLP_A_SOCKET_ID, id, DBLP_A_SOCKET_BUDGET,
				DBLP_INHERIT)));
	EXPECT_SETTINGS(self->client, RELIABLE, 0, DBLP_POLICY_EAGER);
}

static const struct nlattr *wrong_attr(void)
{
	return (const void *)(request + got.offset);
}

TEST_F(phase, names)
{
	static const char *const bad[] = {
		"", "1st", "-x", "_x", "with space", "a/b", "a\n", "\xc3\xa4",
		"sixteen-letters-",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_NE(0, make_phase(3, bad[i], 1)) TH_LOG("case %zu", i);
		EXPECT_NE(0, strlen(got.msg)) TH_LOG("case %zu", i);
		EXPECT_EQ(DBLP_A_PHASE_NAME, mnl_attr_get_type(wrong_attr()));
	}
	EXPECT_EQ(EEXIST, make_phase(3, "tolerant", 1));
	EXPECT_EQ(EEXIST, make_phase(TOLERANT, "critical", 1));
	EXPECT_NE(0, strlen(got.msg));
	EXPECT_EQ(3, all_phases().n);
	EXPECT_EQ(0, make_phase(3, "fifteen-letters", 1));
	EXPECT_STREQ("fifteen-letters", one_phase(3).name);
	EXPECT_EQ(0, make_phase(TOLERANT, "tolerant", 1));
}

TEST_F(phase, of_another_namespace)
{
	int fd;

	EXPECT_EQ(0, set_attr(TOLERANT, DBLP_A_PHASE_BUDGET, 1));
	netns_new();
	mnl_socket_close(nl);
	open_netlink();
	EXPECT_EQ(408000, one_phase(TOLERANT).budget);
	fd = new_socket();
	set_u32(fd, DBLP_PHASE, TOLERANT);
	EXPECT_SETTINGS(fd, TOLERANT, 408000, DBLP_POLICY_EAGER);
	/* The socket of the fixture is still in its namespace */
	set_u32(self->client, DBLP_PHASE, TOLERANT);
	EXPECT_SETTINGS(self->client, TOLERANT, 1, DBLP_POLICY_EAGER);
}

/* Jobs */

static int job_with_phase(uint8_t cmd, uint32_t id, uint32_t phase)
{
	return result(ASK(cmd, DBLP_A_JOB_ID, id, DBLP_A_JOB_PHASE, phase));
}

/* A job as the kernel dumps it; of a dump the last one */
struct job {
	unsigned int	n;
	uint32_t	id, phase, sockets;
	uint64_t	messages[DBLP_PHASES], bytes[DBLP_PHASES];
	uint64_t	forgiven[DBLP_PHASES];
};

static void note_stats(const struct nlattr *nest, struct job *job)
{
	const struct nlattr *attr;
	uint32_t phase = 0;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case DBLP_A_JOB_PHASE_PHASE:
			phase = mnl_attr_get_u32(attr);
			break;
		case DBLP_A_JOB_PHASE_MESSAGES:
			job->messages[phase] = mnl_attr_get_u64(attr);
			break;
		case DBLP_A_JOB_PHASE_BYTES:
			job->bytes[phase] = mnl_attr_get_u64(attr);
			break;
		case DBLP_A_JOB_PHASE_FORGIVEN:
			job->forgiven[phase] = mnl_attr_get_u64(attr);
			break;
		}
	}
}

static void note_job(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;
	struct job *job = arg;

	job->n++;
	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(attr)) {
		case DBLP_A_JOB_ID:
			job->id = mnl_attr_get_u32(attr);
			break;
		case DBLP_A_JOB_PHASE:
			job->phase = mnl_attr_get_u32(attr);
			break;
		case DBLP_A_JOB_SOCKETS:
			job->sockets = mnl_attr_get_u32(attr);
			break;
		case DBLP_A_JOB_STATS:
			note_stats(attr, job);
			break;
		}
	}
}

static struct job one_job(uint32_t id)
{
	struct nlmsghdr *nlh = job_request(DBLP_CMD_JOB_GET, id);
	struct job job = { 0 };

	result_each(nlh, note_job, &job);
	return job;
}

TEST_F(phase, a_job_moves_its_sockets)
{
	EXPECT_ERR(ENOENT, try_u32(self->client, DBLP_JOB, 7));
	EXPECT_EQ(0, get_u32(self->client, DBLP_JOB));
	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_ADD, 7, CRITICAL));
	set_u32(self->client, DBLP_JOB, 7);
	set_u32(self->server, DBLP_JOB, 7);
	EXPECT_EQ(7, get_u32(self->client, DBLP_JOB));
	EXPECT_EQ(7, get_info(self->client).job);
	EXPECT_EQ(2, one_job(7).sockets);
	EXPECT_SETTINGS(self->client, CRITICAL, 8000, DBLP_POLICY_EARLY);

	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_SET, 7, TOLERANT));
	EXPECT_EQ(408000, carry(self->client, self->server, NULL).budget);
	EXPECT_EQ(408000, carry(self->server, self->client, NULL).budget);
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);

	/* A phase that the socket has set takes precedence, until it is unset */
	set_u32(self->client, DBLP_PHASE, CRITICAL);
	EXPECT_SETTINGS(self->client, CRITICAL, 8000, DBLP_POLICY_EARLY);
	set_u32(self->client, DBLP_PHASE, DBLP_INHERIT);
	EXPECT_SETTINGS(self->client, TOLERANT, 408000, DBLP_POLICY_EAGER);

	set_u32(self->client, DBLP_JOB, 0);
	EXPECT_SETTINGS(self->client, RELIABLE, 0, DBLP_POLICY_EAGER);
	EXPECT_EQ(1, one_job(7).sockets);
}

TEST_F(phase, a_job_is_inherited_from_the_listener)
{
	int client, server;

	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_ADD, 1, TOLERANT));
	set_u32(self->listener, DBLP_JOB, 1);
	connect_pair(&self->addr, self->listener, &client, &server);
	EXPECT_EQ(1, get_u32(server, DBLP_JOB));
	EXPECT_EQ(2, one_job(1).sockets);
	EXPECT_SETTINGS(server, TOLERANT, 408000, DBLP_POLICY_EAGER);
}

TEST_F(phase, a_job_counts_what_it_sends)
{
	struct job job;
	static char big[1 << 20];
	struct message m;

	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_ADD, 1, RELIABLE));
	set_u32(self->client, DBLP_JOB, 1);
	set_u32(self->client, DBLP_NOTIFY, 1);
	carry(self->client, self->server, NULL);
	ASSERT_TRUE(wait_for(self->client, POLLERR, 5000));
	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_SET, 1, TOLERANT));
	ASSERT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	pattern_fill(big, sizeof(big), 0, 1, 1);
	ASSERT_EQ(sizeof(big), send(self->client, big, sizeof(big), 0));
	ASSERT_TRUE(wait_for(self->client, POLLERR, 5000));
	ASSERT_EQ(0, message_recv(self->client, NULL, 0, MSG_ERRQUEUE, &m));
	job = one_job(1);
	EXPECT_EQ(1, job.messages[RELIABLE]);
	EXPECT_EQ(4, job.bytes[RELIABLE]);
	EXPECT_EQ(0, job.forgiven[RELIABLE]);
	EXPECT_EQ(1, job.messages[TOLERANT]);
	EXPECT_EQ(sizeof(big), job.bytes[TOLERANT]);
	EXPECT_EQ(m.info.missing, job.forgiven[TOLERANT]);
	EXPECT_LT(0, m.info.missing);
	EXPECT_EQ(0, job.messages[CRITICAL]);
}

TEST_F(phase, a_job_is_deleted_unless_a_socket_is_in_it)
{
	int fd = new_socket();

	EXPECT_EQ(0, job_with_phase(DBLP_CMD_JOB_ADD, 1, TOLERANT));
	REFUSED(EBUSY, phase_request(DBLP_CMD_PHASE_DEL, TOLERANT));
	set_u32(fd, DBLP_JOB, 1);
	REFUSED(EBUSY, job_request(DBLP_CMD_JOB_DEL, 1));
	close(fd);
	EXPECT_EQ(0, result(job_request(DBLP_CMD_JOB_DEL, 1)));
	REFUSED(ENOENT, job_request(DBLP_CMD_JOB_DEL, 1));
	REFUSED(ENOENT, job_request(DBLP_CMD_JOB_GET, 1));
	EXPECT_EQ(ENOENT, job_with_phase(DBLP_CMD_JOB_SET, 1, CRITICAL));
	EXPECT_EQ(0, del_phase(TOLERANT));
}

/* Add, set or replace a job; returns 0 or the errno */
static int write_job(uint8_t cmd, uint32_t id, uint32_t hold)
{
	return result(ASK(cmd, DBLP_A_JOB_ID, id, DBLP_A_JOB_HOLD, hold));
}

static void note_hold(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == DBLP_A_JOB_HOLD)
			*(uint32_t *)arg = mnl_attr_get_u32(attr);
}

/* Returns the value that was set, or -1 without such a job */
static int hold_of(uint32_t id)
{
	struct nlmsghdr *nlh = job_request(DBLP_CMD_JOB_GET, id);
	uint32_t hold = -1;

	result_each(nlh, note_hold, &hold);
	return hold;
}

TEST_F(phase, a_job_is_added_set_or_replaced)
{
	static const uint16_t flags[] = {
		NLM_F_CREATE, NLM_F_REPLACE, NLM_F_EXCL,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_EXCL,
	};
	struct nlmsghdr *nlh;
	size_t i;

	EXPECT_EQ(ENOENT, write_job(DBLP_CMD_JOB_SET, 7, 1));
	EXPECT_EQ(-1, hold_of(7));
	EXPECT_EQ(0, write_job(DBLP_CMD_JOB_REPLACE, 7, 1));
	EXPECT_EQ(1, hold_of(7));
	EXPECT_EQ(0, write_job(DBLP_CMD_JOB_REPLACE, 7, 2));
	EXPECT_EQ(2, hold_of(7));
	EXPECT_EQ(EEXIST, write_job(DBLP_CMD_JOB_ADD, 7, 5));
	EXPECT_STREQ("another job has this number", got.msg);
	EXPECT_EQ(0, write_job(DBLP_CMD_JOB_SET, 7, 4));
	EXPECT_EQ(4, hold_of(7));
	/* A replacement without attributes changes nothing */
	EXPECT_EQ(0, result(job_request(DBLP_CMD_JOB_REPLACE, 7)));
	EXPECT_EQ(4, hold_of(7));
	EXPECT_EQ(0, result(job_request(DBLP_CMD_JOB_REPLACE, 8)));
	EXPECT_EQ(0, hold_of(8));
	/* Flags with this meaning, as in older families, are not misunderstood */
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		nlh = job_request(DBLP_CMD_JOB_SET, 7);
		nlh->nlmsg_flags |= flags[i];
		mnl_attr_put_u32(nlh, DBLP_A_JOB_HOLD, 9);
		EXPECT_EQ(EINVAL, result(nlh));
	}
	EXPECT_EQ(4, hold_of(7));
}

/* Another process adds and deletes the job concurrently */
TEST_F(phase, a_job_is_replaced_despite_concurrent_changes)
{
	unsigned int n = less_if_slow(4000, 10, "replacements"), i;
	int status, failed = 0;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_netlink();
		for (;;)
			if (result(job_request(DBLP_CMD_JOB_ADD, 7)) == EPERM ||
			    result(job_request(DBLP_CMD_JOB_DEL, 7)) == EPERM)
				_exit(1);
	}
	for (i = 0; i < n; i++)
		failed += !!write_job(DBLP_CMD_JOB_REPLACE, 7, i);
	EXPECT_EQ(0, failed);
	kill(pid, SIGKILL);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_HARNESS_MAIN
