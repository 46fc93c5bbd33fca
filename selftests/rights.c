// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may do what by netlink: everybody reads what is in the namespace of its
 * netlink socket; only CAP_NET_ADMIN in the user namespace that owns it changes
 * anything.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"

#define N(array)	(sizeof(array) / sizeof((array)[0]))
#define NOBODY		65534
#define CRITICAL	1
#define TOLERANT	2

/* What there is at the beginning: see prepare() */
#define A_JOB		7
#define OTHER_JOB	8
#define NEW_JOB		9

static uint32_t socket_id;

/* Each operation, with a request that only a lack of rights can stop */
static const struct {
	uint8_t		cmd;
	bool		changes;
	uint16_t	id_attr;
	uint32_t	id;
	uint16_t	attr;
	const char	*text;
} operations[] = {
	{ DBLP_CMD_SOCKET_GET, false, DBLP_A_SOCKET_ID, 0, 0, NULL },
	{ DBLP_CMD_SOCKET_SET, true, DBLP_A_SOCKET_ID, 0,
	  DBLP_A_SOCKET_BUDGET, NULL },
	{ DBLP_CMD_STATS_GET, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PHASE_GET, false, DBLP_A_PHASE_ID, 1, 0, NULL },
	{ DBLP_CMD_PHASE_SET, true, DBLP_A_PHASE_ID, TOLERANT,
	  DBLP_A_PHASE_BUDGET, NULL },
	{ DBLP_CMD_PHASE_DEL, true, DBLP_A_PHASE_ID, CRITICAL, 0, NULL },
	{ DBLP_CMD_JOB_GET, false, DBLP_A_JOB_ID, A_JOB, 0, NULL },
	{ DBLP_CMD_JOB_ADD, true, DBLP_A_JOB_ID, NEW_JOB, 0, NULL },
	{ DBLP_CMD_JOB_SET, true, DBLP_A_JOB_ID, A_JOB, DBLP_A_JOB_HOLD,
	  NULL },
	{ DBLP_CMD_JOB_DEL, true, DBLP_A_JOB_ID, OTHER_JOB, 0, NULL },
	{ DBLP_CMD_PARAM_GET, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PARAM_SET, true, 0, 0, DBLP_A_PARAM_BUDGET_CAP, NULL },
	{ DBLP_CMD_CC_GET, false, 0, 0, DBLP_A_CC_NAME, "bdp" },
};

static int try_operation(size_t i)
{
	struct nlmsghdr *nlh = begin(family, operations[i].cmd, 0);
	bool on_socket = operations[i].id_attr == DBLP_A_SOCKET_ID &&
			 operations[i].cmd <= DBLP_CMD_SOCKET_SET;

	if (operations[i].id_attr)
		mnl_attr_put_u32(nlh, operations[i].id_attr,
				 on_socket ? socket_id : operations[i].id);
	if (operations[i].text)
		mnl_attr_put_strz(nlh, operations[i].attr, operations[i].text);
	else if (operations[i].attr)
		mnl_attr_put_u32(nlh, operations[i].attr, 1);
	return result(nlh);
}

static void add_job(uint32_t id)
{
	struct nlmsghdr *nlh = begin(family, DBLP_CMD_JOB_ADD, 0);

	mnl_attr_put_u32(nlh, DBLP_A_JOB_ID, id);
	if (result(nlh))
		die("job-add: %s", got.msg);
}

static void prepare(void)
{
	socket_id = get_info(new_socket()).id;
	add_job(A_JOB);
	add_job(OTHER_JOB);
}

/* All reads are answered; changes are not, or they are; and they change it */
static void check(struct __test_metadata *_metadata, bool may_change)
{
	static struct nl_state before, after;
	size_t i;

	for (i = 0; i < N(operations); i++) {
		nl_state_take(&before);
		EXPECT_EQ(operations[i].changes && !may_change ? EPERM : 0,
			  try_operation(i))
			TH_LOG("command %u", operations[i].cmd);
		nl_state_take(&after);
		EXPECT_EQ(operations[i].changes && may_change,
			  before.len != after.len ||
			  memcmp(before.bytes, after.bytes, after.len))
			TH_LOG("command %u", operations[i].cmd);
	}
}

FIXTURE(rights)
{
};

FIXTURE_SETUP(rights)
{
	netns_new();
	open_netlink();
	prepare();
}

FIXTURE_TEARDOWN(rights)
{
	mnl_socket_close(nl);
}

/* Becomes a user, with this capability or none */
static void become_nobody(int capability)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { 0 };

	if (capability >= 0)
		data[0].effective = data[0].permitted = 1U << capability;
	if (prctl(PR_SET_KEEPCAPS, 1) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) ||
	    syscall(SYS_capset, &header, data) || prctl(PR_SET_DUMPABLE, 1))
		die("becoming another user");
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("%s", name);
	close(fd);
}

/* A user makes itself root of a user namespace */
static void become_root_of(int namespaces)
{
	become_nobody(-1);
	if (unshare(CLONE_NEWUSER | namespaces))
		die("unshare()");
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", "0 65534 1");
	write_file("/proc/self/gid_map", "0 65534 1");
}

TEST_F(rights, of_root)
{
	check(_metadata, true);
}

TEST_F(rights, of_a_user)
{
	become_nobody(-1);
	/* The netlink socket is root's, then its own */
	check(_metadata, false);
	mnl_socket_close(nl);
	open_netlink();
	check(_metadata, false);
}

TEST_F(rights, of_a_user_with_another_capability)
{
	become_nobody(CAP_SYS_ADMIN);
	mnl_socket_close(nl);
	open_netlink();
	check(_metadata, false);
}

TEST_F(rights, of_a_user_with_the_capability)
{
	become_nobody(CAP_NET_ADMIN);
	mnl_socket_close(nl);
	open_netlink();
	check(_metadata, true);
}

/* It has the capability, but not where this network namespace belongs */
TEST_F(rights, of_root_in_a_user_namespace)
{
	become_root_of(0);
	check(_metadata, false);
	mnl_socket_close(nl);
	open_netlink();
	check(_metadata, false);
}

TEST_F(rights, of_root_in_its_own_namespaces)
{
	struct mnl_socket *theirs = nl;
	uint32_t their_socket = socket_id;

	become_root_of(CLONE_NEWNET);
	open_netlink();
	prepare();
	check(_metadata, true);
	mnl_socket_close(nl);
	/* A netlink socket stays where it was made */
	nl = theirs;
	socket_id = their_socket;
	check(_metadata, false);
}

static void note_uid(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == DBLP_A_SOCKET_UID)
			*(uint32_t *)arg = mnl_attr_get_u32(attr);
}

static uint32_t uid_of_sockets(void)
{
	uint32_t uid = UINT32_MAX;

	ask(begin(family, DBLP_CMD_SOCKET_GET, NLM_F_DUMP));
	while (!receive(note_uid, &uid))
		;
	return uid;
}

static void enter_netns_of(pid_t pid)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/ns/net", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("setns()");
	close(fd);
}

/* Users are told by the names that the reader has for them */
TEST_F(rights, owners_are_named_for_the_reader)
{
	int to_child[2], to_parent[2], status;
	pid_t pid;
	char c;

	EXPECT_EQ(0, uid_of_sockets());
	if (pipe(to_child) || pipe(to_parent))
		die("pipe()");
	pid = fork();
	if (!pid) {
		become_root_of(CLONE_NEWNET);
		open_netlink();
		prepare();
		status = uid_of_sockets() != 0;
		if (write(to_parent[1], "x", 1) != 1 ||
		    read(to_child[0], &c, 1) != 1)
			_exit(2);
		_exit(status);
	}
	ASSERT_EQ(1, read(to_parent[0], &c, 1));
	enter_netns_of(pid);
	mnl_socket_close(nl);
	open_netlink();
	EXPECT_EQ(NOBODY, uid_of_sockets());
	/* And who owns the machine may change all that is on it */
	add_job(NEW_JOB);
	EXPECT_EQ(1, write(to_child[1], "x", 1));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Operations that the family has, by what the kernel says of it */
struct family {
	unsigned int	n;
	uint32_t	flags[DBLP_CMD_MAX + 1];
};

static void note_operation(const struct nlattr *nest, struct family *f)
{
	uint32_t id = 0, flags = 0;
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_OP_ID)
			id = mnl_attr_get_u32(attr);
		if (mnl_attr_get_type(attr) == CTRL_ATTR_OP_FLAGS)
			flags = mnl_attr_get_u32(attr);
	}
	if (!id || id > DBLP_CMD_MAX)
		die("operation %u", id);
	f->n++;
	f->flags[id] = flags;
}

static void note_operations(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr, *nest;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == CTRL_ATTR_OPS)
			mnl_attr_for_each_nested(nest, attr)
				note_operation(nest, arg);
}

TEST_F(rights, of_no_other_operation)
{
	struct nlmsghdr *nlh = begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
				     NLM_F_ACK);
	struct family f = { 0 };
	size_t i;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, DBLP_FAMILY_NAME);
	ask(nlh);
	while (!receive(note_operations, &f))
		;
	EXPECT_EQ(N(operations), f.n);
	for (i = 0; i < N(operations); i++)
		EXPECT_EQ(operations[i].changes ? GENL_UNS_ADMIN_PERM : 0,
			  f.flags[operations[i].cmd] &
			  (GENL_UNS_ADMIN_PERM | GENL_ADMIN_PERM));
}

TEST_HARNESS_MAIN
