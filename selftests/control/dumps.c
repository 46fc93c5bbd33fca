// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps of the generic netlink family: of several messages, of very many objects, and with
 * changes during the dump.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "kselftest_harness.h"

#define CRITICAL	1
#define TOLERANT	2

/* Objects for a dump of several messages */
#define SOME		500
/* Sockets that reveal a cost that grows faster than their number */
#define MANY_SOCKETS	10000
#define MANY_JOBS	100000
/* Distance of job numbers, which go up to the maximum */
#define JOB_STEP	21474
#define JOB_ID(i)	(0x7fffffff - (MANY_JOBS - 1 - (i)) * JOB_STEP)

FIXTURE(dump)
{
	int listener;
};

/* A second netlink socket, for changes during the dump */
static struct mnl_socket *other;
static int fds[MANY_SOCKETS];

FIXTURE_SETUP(dump)
{
	struct rlimit limit = { MANY_SOCKETS + 100, MANY_SOCKETS + 100 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit()");
	netns_new();
	open_netlink();
	other = nl;
	open_netlink();
}

FIXTURE_ENDS_BY_EXIT(dump);

/* Send a request that must succeed, and keep @got of the dump */
static void change(struct nlmsghdr *nlh)
{
	struct mnl_socket *mine = nl;
	struct nl_got keep = got;

	nl = other;
	if (result(nlh))
		die("a change was refused: %s", got.msg);
	nl = mine;
	got = keep;
}

static void change_u32(uint8_t cmd, uint16_t id_attr, uint32_t id,
		       uint16_t attr, uint32_t value)
{
	struct nlmsghdr *nlh = begin(family, cmd, 0);

	if (id_attr)
		mnl_attr_put_u32(nlh, id_attr, id);
	if (attr)
		mnl_attr_put_u32(nlh, attr, value);
	change(nlh);
}

static void open_sockets(int n)
{
	int i;

	for (i = 0; i < n; i++)
		fds[i] = new_socket();
}

static void close_sockets(int n)
{
	int i;

	for (i = 0; i < n; i++)
		close(fds[i]);
}

/* Send many requests in one call; only a refusal is answered */
static void add_jobs(int from, int n)
{
	static _Alignas(8) char many[1 << 16];
	struct nlmsghdr *nlh;
	size_t len = 0;
	int i;

	for (i = from; i < from + n; i++) {
		nlh = begin(family, DBLP_CMD_JOB_ADD, 0);
		mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, JOB_ID(i));
		memcpy(many + len, nlh, nlh->nlmsg_len);
		len += MNL_ALIGN(nlh->nlmsg_len);
		if (i < from + n - 1 && len + nlh->nlmsg_len < sizeof(many))
			continue;
		if (mnl_socket_sendto(other, many, len) != (ssize_t)len)
			die("sendmsg(netlink)");
		len = 0;
	}
}

/* Contents of a dump */
struct seen {
	unsigned int	n, parts;
	uint16_t	id_attr;
	uint32_t	*id;
};

static void note_id(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;
	struct seen *seen = arg;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == seen->id_attr && seen->id)
			seen->id[seen->n] = mnl_attr_get_u32(attr);
	if (seen->n++ == MANY_JOBS)
		die("more objects than there are");
}

/* Do a dump with a change after, or before, its first part was received */
static struct seen dump(uint8_t cmd, uint16_t id_attr, uint32_t *id,
			void (*happens)(void), bool early)
{
	struct seen seen = { .parts = 1, .id_attr = id_attr, .id = id };
	bool ended;

	ask(begin(family, cmd, NLM_F_DUMP));
	if (happens && early)
		happens();
	ended = receive(note_id, &seen);
	if (happens && !early)
		happens();
	for (; !ended; seen.parts++)
		ended = receive(note_id, &seen);
	if (got.err)
		die("the dump failed: %s", got.msg);
	return seen;
}

/* Changes during a dump */

static void socket_comes(void)
{
	fds[SOME] = new_socket();
}

static void socket_goes(void)
{
	close(fds[SOME]);
}

static void socket_is_set(void)
{
	set_u32(fds[0], DBLP_BUDGET, 1);
}

static void job_comes(void)
{
	change_u32(DBLP_CMD_JOB_ADD, DBLP_A_JOB_ID, 1, 0, 0);
}

static void job_goes(void)
{
	change_u32(DBLP_CMD_JOB_DEL, DBLP_A_JOB_ID, 1, 0, 0);
}

static void job_moves(void)
{
	change_u32(DBLP_CMD_JOB_SET, DBLP_A_JOB_ID, JOB_ID(0),
		   DBLP_A_JOB_PHASE, CRITICAL);
}

static void job_is_named(void)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_JOB_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, JOB_ID(0));
	mnl_attr_put_strz(nlh, DBLP_A_JOB_NAME, "named");
	change(nlh);
}

static void job_hears_a_norm(void)
{
	set_u32(fds[0], DBLP_JOB, JOB_ID(0));
	if (try_u64(fds[0], DBLP_NORM, 1))
		die("setsockopt(DBLP_NORM)");
}

static void detector_is_switched_on(void)
{
	change_u32(DBLP_CMD_JOB_SET, DBLP_A_JOB_ID, JOB_ID(0),
		   DBLP_A_JOB_CLR, DBLP_CLR_ON);
}

/* A program of the job's owner can do this at any rate */
static void detector_moves_job(void)
{
	job_hears_a_norm();
	job_hears_a_norm();
	if (get_u32(fds[0], DBLP_PHASE) != TOLERANT)
		die("the job stays");
}

static void phase_comes(void)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_PHASE_SET, 0);

	mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, 5);
	mnl_attr_put_strz(nlh, DBLP_A_PHASE_NAME, "new");
	change(nlh);
}

static void phase_is_set(void)
{
	change_u32(DBLP_CMD_PHASE_SET, DBLP_A_PHASE_ID, TOLERANT,
		   DBLP_A_PHASE_BUDGET, 1);
}

static void phase_goes(void)
{
	change_u32(DBLP_CMD_PHASE_DEL, DBLP_A_PHASE_ID, 5, 0, 0);
}

static void default_is_set(void)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_PARAM_SET, 0);

	mnl_attr_put_strz(nlh, DBLP_A_PARAM_CONGESTION, "lossy");
	change(nlh);
}

struct happening {
	const char	*name;
	void		(*happens)(void);
	bool		tears;
};

#define H(what, tears)	{ #what, what, tears }
#define NOTHING		{ "nothing", NULL, false }

/*
 * Make each change in the list, before and during a dump. If all objects fit one part, the
 * end of the dump, which is a separate part, reports the interruption.
 */
#define CHECK(cmd, early, list) do { \
	size_t i_; \
	for (i_ = 0; i_ < sizeof(list) / sizeof((list)[0]); i_++) { \
		struct seen seen_ = dump(cmd, 0, NULL, (list)[i_].happens, \
					 early); \
		EXPECT_LE((early) ? 2 : 4, seen_.parts); \
		EXPECT_EQ((list)[i_].tears, got.torn) \
			TH_LOG("after: %s", (list)[i_].name); \
	} \
} while (0)

TEST_F(dump, of_sockets_reports_changes)
{
	static const struct happening list[] = {
		NOTHING, H(socket_comes, true), H(socket_goes, true),
		H(socket_is_set, false), H(job_moves, false),
		H(phase_is_set, false), H(default_is_set, false), NOTHING,
	};

	open_sockets(SOME);
	add_jobs(0, 1);
	CHECK(DBLP_CMD_SOCKET_GET, false, list);
}

TEST_F(dump, of_jobs_reports_changes)
{
	static const struct happening list[] = {
		NOTHING, H(job_comes, true), H(job_goes, true),
		H(job_moves, true), H(job_is_named, true),
		H(job_hears_a_norm, false), H(detector_is_switched_on, true),
		H(detector_moves_job, false), H(socket_comes, false),
		H(socket_goes, false), H(phase_is_set, false),
		H(default_is_set, false), NOTHING,
	};

	open_sockets(1);
	add_jobs(0, SOME);
	CHECK(DBLP_CMD_JOB_GET, false, list);
}

TEST_F(dump, of_phases_reports_changes)
{
	static const struct happening list[] = {
		NOTHING, H(phase_comes, true), H(phase_is_set, true),
		H(phase_goes, true), H(job_moves, false),
		H(socket_comes, false), H(socket_goes, false),
		H(default_is_set, false), NOTHING,
	};

	add_jobs(0, 1);
	CHECK(DBLP_CMD_PHASE_GET, true, list);
}

TEST_F(dump, of_congestion_controls_reports_changes)
{
	static const struct happening list[] = {
		NOTHING, H(default_is_set, true), H(phase_is_set, false),
		H(socket_comes, false), H(socket_goes, false), NOTHING,
	};

	CHECK(DBLP_CMD_CC_GET, true, list);
}

static uint64_t cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* Check that a dump has each object once, by number; returns its time */
static uint64_t dump_all(struct __test_metadata *_metadata, uint8_t cmd,
			 uint16_t id_attr, uint32_t *id, unsigned int n)
{
	uint64_t before = cpu_us();
	struct seen seen = dump(cmd, id_attr, id, NULL, false);
	uint64_t took = cpu_us() - before;

	EXPECT_EQ(n, seen.n);
	EXPECT_FALSE(got.torn);
	EXPECT_LT(n / 200, seen.parts);
	return took;
}

/*
 * Ten dumps of a tenth of the objects take as long as one dump of all, within the tolerance
 * of a busy host. A dump that scans all objects for each part would take ten times as long.
 */
#define TENTH		10
#define LINEAR		4

TEST_F_TIMEOUT(dump, of_very_many_jobs, 100)
{
	int n = less_if_slow(MANY_JOBS, 10, "jobs"), first = MANY_JOBS - n;
	static uint32_t id[MANY_JOBS];
	uint64_t few = 0, many;
	int i;

	add_jobs(first, n / TENTH);
	for (i = 0; i < TENTH; i++)
		few += dump_all(_metadata, DBLP_CMD_JOB_GET, DBLP_A_JOB_ID, id,
				n / TENTH);
	add_jobs(first + n / TENTH, n - n / TENTH);
	many = dump_all(_metadata, DBLP_CMD_JOB_GET, DBLP_A_JOB_ID, id, n);
	TH_LOG("%u us, ten of a tenth %u us", (uint32_t)many, (uint32_t)few);
	if (virtual_time())
		EXPECT_GT(LINEAR * few, many);
	for (i = 0; i < n; i++)
		ASSERT_EQ(JOB_ID(first + i), id[i]);
	EXPECT_EQ(0x7fffffff, id[n - 1]);
}

TEST_F_TIMEOUT(dump, of_very_many_sockets, 100)
{
	int n = less_if_slow(MANY_SOCKETS, 10, "sockets");
	static uint32_t id[MANY_SOCKETS + 1];
	uint64_t few = 0, many;
	int i;

	open_sockets(n / TENTH);
	for (i = 0; i < TENTH; i++)
		few += dump_all(_metadata, DBLP_CMD_SOCKET_GET,
				DBLP_A_SOCKET_ID, id, n / TENTH);
	close_sockets(n / TENTH);
	open_sockets(n);
	many = dump_all(_metadata, DBLP_CMD_SOCKET_GET, DBLP_A_SOCKET_ID, id,
			n);
	TH_LOG("%u us, ten of a tenth %u us", (uint32_t)many, (uint32_t)few);
	if (virtual_time())
		EXPECT_GT(LINEAR * few, many);
	for (i = 0; i < n; i++)
		ASSERT_EQ(get_info(fds[i]).id, id[i]);
}

TEST_HARNESS_MAIN
