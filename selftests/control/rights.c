// SPDX-License-Identifier: GPL-2.0-only
/*
 * Permissions of netlink: every user reads the namespace of its netlink socket;
 * changes need CAP_NET_ADMIN in the user namespace that owns it.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"

#include <errno.h>
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

/* Objects that prepare() creates */
#define A_JOB		7
#define OTHER_JOB	8
#define NEW_JOB		9

static uint32_t socket_id;

/*
 * Each operation that changes objects or reads those of root, with a request that can be
 * refused only because of missing rights
 */
static const struct {
	uint8_t		cmd;
	bool		changes;
	bool		owned;
	uint16_t	id_attr;
	uint32_t	id;
	uint16_t	attr;
	const char	*text;
} operations[] = {
	{ DBLP_CMD_SOCKET_GET, false, true, DBLP_A_SOCKET_ID, 0, 0, NULL },
	{ DBLP_CMD_SOCKET_SET, true, false, DBLP_A_SOCKET_ID, 0,
	  DBLP_A_SOCKET_BUDGET, NULL },
	{ DBLP_CMD_STATS_GET, false, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PHASE_GET, false, false, DBLP_A_PHASE_ID, 1, 0, NULL },
	{ DBLP_CMD_PHASE_SET, true, false, DBLP_A_PHASE_ID, TOLERANT,
	  DBLP_A_PHASE_BUDGET, NULL },
	{ DBLP_CMD_PHASE_DEL, true, false, DBLP_A_PHASE_ID, CRITICAL, 0,
	  NULL },
	{ DBLP_CMD_JOB_GET, false, true, DBLP_A_JOB_ID, A_JOB, 0, NULL },
	{ DBLP_CMD_JOB_ADD, true, false, DBLP_A_JOB_ID, NEW_JOB, 0, NULL },
	{ DBLP_CMD_JOB_SET, true, false, DBLP_A_JOB_ID, A_JOB,
	  DBLP_A_JOB_HOLD, NULL },
	{ DBLP_CMD_JOB_REPLACE, true, false, DBLP_A_JOB_ID, A_JOB,
	  DBLP_A_JOB_ETA, NULL },
	{ DBLP_CMD_JOB_DEL, true, false, DBLP_A_JOB_ID, OTHER_JOB, 0, NULL },
	{ DBLP_CMD_PARAM_GET, false, false, 0, 0, 0, NULL },
	{ DBLP_CMD_PARAM_SET, true, false, 0, 0, DBLP_A_PARAM_BUDGET_CAP,
	  NULL },
	{ DBLP_CMD_CC_GET, false, false, 0, 0, DBLP_A_CC_NAME, "lossy" },
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

static void note_group(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr, *nest, *one;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != CTRL_ATTR_MCAST_GROUPS)
			continue;
		mnl_attr_for_each_nested(nest, attr)
			mnl_attr_for_each_nested(one, nest)
				if (mnl_attr_get_type(one) ==
				    CTRL_ATTR_MCAST_GRP_ID)
					*(uint32_t *)arg = mnl_attr_get_u32(one);
	}
}

static void count(const struct nlmsghdr *nlh, void *arg)
{
	(void)nlh;
	++*(unsigned int *)arg;
}

static unsigned int dumped(uint8_t cmd)
{
	unsigned int n = 0;

	result_each(begin(family, cmd, NLM_F_DUMP), count, &n);
	return n;
}

static uint32_t events_group(void)
{
	struct nlmsghdr *nlh = begin(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
				     NLM_F_ACK);
	uint32_t group = 0;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, DBLP_FAMILY_NAME);
	result_each(nlh, note_group, &group);
	return group;
}

static int join_events(void)
{
	uint32_t group = events_group();

	if (mnl_socket_setsockopt(nl, NETLINK_ADD_MEMBERSHIP, &group,
				  sizeof(group)))
		return errno;
	return mnl_socket_setsockopt(nl, NETLINK_DROP_MEMBERSHIP, &group,
				     sizeof(group)) ? errno : 0;
}

/*
 * With the capability all objects can be read, without it only those without an owner.
 */
static void check(struct __test_metadata *_metadata, bool may_change)
{
	static struct nl_state before, after;
	size_t i;

	EXPECT_EQ(may_change ? 1 : 0, dumped(DBLP_CMD_SOCKET_GET));
	EXPECT_EQ(may_change ? 2 : 0, dumped(DBLP_CMD_JOB_GET));
	EXPECT_EQ(may_change ? 0 : EPERM, join_events());
	for (i = 0; i < N(operations); i++) {
		nl_state_take(&before);
		EXPECT_EQ((operations[i].changes || operations[i].owned) &&
			  !may_change ? EPERM : 0, try_operation(i))
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

FIXTURE_ENDS_BY_EXIT(rights);

/* Become an ordinary user, with one capability or none */
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

/* Become root of a new user namespace */
static void become_root_of(int namespaces)
{
	become_nobody(-1);
	if (unshare(CLONE_NEWUSER | namespaces))
		die("unshare()");
	file_write("/proc/self/setgroups", "deny");
	file_write("/proc/self/uid_map", "0 65534 1");
	file_write("/proc/self/gid_map", "0 65534 1");
}

TEST_F(rights, of_root)
{
	check(_metadata, true);
}

TEST_F(rights, of_a_user)
{
	become_nobody(-1);
	/* First with root's netlink socket, then with its own */
	check(_metadata, false);
	mnl_socket_close(nl);
	open_netlink();
	check(_metadata, false);
	/* A program may set its own sockets */
	set_u32(new_socket(), DBLP_PHASE, TOLERANT);
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

/* It has the capability, but not in the owner of this network namespace */
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
	/* A netlink socket stays in its namespace */
	nl = theirs;
	socket_id = their_socket;
	check(_metadata, false);
}

static int set_owner(uint32_t id, uint32_t uid)
{
	return result(ASK(DBLP_CMD_JOB_SET, DBLP_A_JOB_ID, id, DBLP_A_JOB_OWNER, uid));
}

/* A user can see and use only sockets and jobs of the same user */
TEST_F(rights, of_an_owner)
{
	int theirs = new_socket(), mine;

	ASSERT_EQ(0, try_u32(theirs, DBLP_JOB, OTHER_JOB));
	ASSERT_EQ(0, set_owner(A_JOB, NOBODY));
	EXPECT_EQ(EINVAL, set_owner(A_JOB, UINT32_MAX));
	EXPECT_STREQ("there is no such user in your user namespace", got.msg);
	become_nobody(-1);
	mine = new_socket();
	/* Both the creator and the user of a netlink socket need the right */
	EXPECT_EQ(0, dumped(DBLP_CMD_SOCKET_GET));
	EXPECT_EQ(0, dumped(DBLP_CMD_JOB_GET));
	mnl_socket_close(nl);
	open_netlink();
	EXPECT_EQ(1, dumped(DBLP_CMD_SOCKET_GET));
	EXPECT_EQ(1, dumped(DBLP_CMD_JOB_GET));
	socket_id = get_info(mine).id;
	EXPECT_EQ(0, try_operation(0));
	EXPECT_EQ(EPERM, set_owner(A_JOB, NOBODY));

	EXPECT_ERR(EPERM, try_u32(mine, DBLP_JOB, OTHER_JOB));
	EXPECT_EQ(0, get_u32(mine, DBLP_JOB));
	EXPECT_EQ(0, try_u32(mine, DBLP_JOB, A_JOB));
	EXPECT_EQ(0, try_u64(mine, DBLP_NORM, 1));
	EXPECT_EQ(A_JOB, get_u32(mine, DBLP_JOB));
	/* Also not with a socket in the job */
	EXPECT_ERR(EPERM, try_u64(theirs, DBLP_NORM, 1));
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

	result_each(begin(family, DBLP_CMD_SOCKET_GET, NLM_F_DUMP), note_uid,
		    &uid);
	return uid;
}

static void enter_netns_of(pid_t pid)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d/ns/net", (int)pid);
	netns_enter(name);
}

/* User numbers are those of the reader's user namespace */
TEST_F(rights, owners_are_numbers_of_the_reader)
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
	/* Root of the initial namespace may change everything */
	add_job(NEW_JOB);
	EXPECT_EQ(1, write(to_child[1], "x", 1));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

static int take_over(const struct sockaddr_dblp *addr)
{
	int fd = new_socket(), err;

	set_int(fd, SO_REUSEADDR, 1);
	err = bind_to(fd, addr) ? errno : 0;
	close(fd);
	return err;
}

/* A port belongs to the user with connections there */
TEST_F(rights, of_sharing_a_port)
{
	struct sockaddr_dblp addr;
	int listener = new_socket(), client, server;

	addr_parse(&addr, "::1", 7777);
	set_int(listener, SO_REUSEADDR, 1);
	ASSERT_EQ(0, bind_to(listener, &addr));
	ASSERT_EQ(0, listen(listener, 1));
	connect_pair(&addr, listener, &client, &server);
	close(listener);
	EXPECT_EQ(0, take_over(&addr));
	become_nobody(-1);
	EXPECT_EQ(EADDRINUSE, take_over(&addr));
}

#define EVENTS_A_SECOND		1000
#define JOB_EVENTS_A_SECOND	100

/* Returns the number of pending events; ENOBUFS means that events were lost */
static unsigned int hear(struct mnl_socket *ear, bool *lost)
{
	static _Alignas(8) char event[8192];
	int fd = mnl_socket_get_fd(ear);
	unsigned int n = 0;

	*lost = false;
	for (;;) {
		if (recv(fd, event, sizeof(event), MSG_DONTWAIT) >= 0)
			n++;
		else if (errno == ENOBUFS)
			*lost = true;
		else
			return n;
	}
}

/* Open a subscriber of events with a large buffer */
static struct mnl_socket *open_ear(void)
{
	struct mnl_socket *ear = mnl_socket_open(NETLINK_GENERIC);
	uint32_t group = events_group();
	int size = 64 << 20;

	if (!ear || mnl_socket_bind(ear, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_setsockopt(ear, NETLINK_ADD_MEMBERSHIP, &group,
				  sizeof(group)) ||
	    setsockopt(mnl_socket_get_fd(ear), SOL_SOCKET, SO_RCVBUFFORCE,
		       &size, sizeof(size)))
		die("netlink");
	return ear;
}

/* The rate of events is limited, so that a subscriber does not slow other users */
TEST_F(rights, events_per_second_are_limited)
{
	struct mnl_socket *ear = open_ear();
	unsigned int i, n, most;
	struct nlmsghdr *nlh;
	uint64_t begun;
	bool lost;

	begun = now_ms();
	for (i = 0; i < 4 * EVENTS_A_SECOND; i++) {
		nlh = begin(family, DBLP_CMD_PHASE_SET, 0);
		mnl_attr_put_u32(nlh, DBLP_A_PHASE_ID, TOLERANT);
		mnl_attr_put_u32(nlh, DBLP_A_PHASE_BUDGET, i);
		ASSERT_EQ(0, result(nlh));
	}
	/* The limit is per second, and both the first and the last second may be partial */
	most = EVENTS_A_SECOND * ((now_ms() - begun) / 1000 + 2);
	n = hear(ear, &lost);
	TH_LOG("%u of %u events in %llu ms", n, i,
	       (unsigned long long)(now_ms() - begun));
	EXPECT_GE(most, n);
	EXPECT_EQ(n < i, lost);
}

/* Events of one job's detector do not use up the rate of other jobs */
TEST_F(rights, events_by_norms_per_second_are_limited)
{
	struct mnl_socket *ear = open_ear();
	int fd = new_socket();
	unsigned int i, n, most;
	uint64_t begun;
	bool lost;

	ASSERT_EQ(0, result(ASK(DBLP_CMD_JOB_ADD, DBLP_A_JOB_ID, 9, DBLP_A_JOB_CLR, DBLP_CLR_ON)));
	set_u32(fd, DBLP_JOB, 9);
	begun = now_ms();
	for (i = 0; i < 4 * EVENTS_A_SECOND; i++) {
		/* Each norm changes the phase */
		ASSERT_EQ(0, try_u64(fd, DBLP_NORM, i & 2 ? 1 : 1000));
	}
	most = JOB_EVENTS_A_SECOND * ((now_ms() - begun) / 1000 + 2);
	/* Minus the event of the added job */
	n = hear(ear, &lost) - 1;
	TH_LOG("%u of %u events in %llu ms", n, i,
	       (unsigned long long)(now_ms() - begun));
	EXPECT_LT(0, n);
	EXPECT_GE(most, n);
	EXPECT_TRUE(lost);
}

/* Operations of the family, as the kernel reports them */
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
	result_each(nlh, note_operations, &f);
	EXPECT_EQ(N(operations), f.n);
	for (i = 0; i < N(operations); i++)
		EXPECT_EQ(operations[i].changes ? GENL_UNS_ADMIN_PERM : 0,
			  f.flags[operations[i].cmd] &
			  (GENL_UNS_ADMIN_PERM | GENL_ADMIN_PERM));
}

TEST_HARNESS_MAIN
