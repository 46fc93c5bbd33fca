// SPDX-License-Identifier: GPL-2.0-only
/*
 * All refusals of the generic netlink family: errno, message, the attribute that it names,
 * and that nothing has changed.
 *
 * refusal-messages.h is made from the module's sources, so that a message without a case
 * here is found.
 */
#define _GNU_SOURCE
#include "lib/nltest.h"
#include "lib/sock.h"
#include "refusal-messages.h"
#include "values.h"

#include <string.h>

#include "kselftest_harness.h"

#define N(array)	(sizeof(array) / sizeof((array)[0]))

/* Numbers of phases */
#define RELIABLE	0
#define CRITICAL	1
#define TOLERANT	2
#define BUSY		3
#define ABSENT		6
/* A phase of a job's detector that is off: see setup() */
#define GONE		5

/* Numbers of jobs */
#define PLAIN		1
#define CROWDED		2
#define DETECTING	3
#define LOST		4
#define NO_JOB		9

#define NOBODY		65534

/* Placeholder for the number of a socket */
#define A_SOCKET	0xabcdef01

enum kind {
	END,
	U32,
	U16,
	U64,
	STR,
};

struct attr {
	uint16_t	type;
	enum kind	kind;
	uint32_t	value;
	const char	*text;
};

/*
 * A refused request. @msg is NULL if the message is not the module's. @bad is the attribute
 * that the refusal names as invalid, @missing as missing.
 */
struct refusal {
	uint8_t		cmd;
	bool		dump;
	struct attr	attrs[5];
	int		err;
	const char	*msg;
	uint16_t	bad, missing;
};

#define U(attr, value)	{ DBLP_A_##attr, U32, value, NULL }
#define S(attr, text)	{ DBLP_A_##attr, STR, 0, text }
#define UNKNOWN		{ 4000, U32, 1, NULL }
#define DO(cmd, ...)	DBLP_CMD_##cmd, false, { __VA_ARGS__ }
#define DUMP(cmd, ...)	DBLP_CMD_##cmd, true, { __VA_ARGS__ }
#define BAD(attr)	DBLP_A_##attr, 0
#define MISSING(attr)	0, DBLP_A_##attr
#define NO_ATTR		0, 0
#define NO_REFUSAL	0, NULL, NO_ATTR

#define NO_SOCKET_MSG \
	"no socket has this number in this network namespace"
#define SHARE_MSG	"a share of loss is at most 1000000 ppm (100 %)"
#define NAME_MSG	"a name is a letter, then letters, digits, - and _"
#define JOBS_MSG	"jobs are numbered 1 to 2147483647"
#define NO_JOB_MSG	"there is no such job"
#define NO_PHASE_MSG	"there is no such phase"
#define PHASES_MSG	"phases are numbered 0 to 7"
#define GOAL_MSG	"the detector's low-phase or high-phase does not exist"
#define SAME_MSG	"low-phase and high-phase are the same"
#define DETECTOR_MSG \
	"with clr on, the detector chooses the phase, at first low-phase"
#define TIMEOUT_MSG	"a user timeout is 1 ms to 1 h"
#define KEEPALIVE_MSG	"a keepalive time is 10 ms to 24 h"
#define OTHER_MSG	"it belongs to another user: CAP_NET_ADMIN is needed"
#define CC_MSG		"there is no such congestion control"

static const struct refusal sockets[] = {
	{ DO(SOCKET_GET), EINVAL, "the number of a socket is needed",
	  MISSING(SOCKET_ID) },
	{ DO(SOCKET_GET, U(SOCKET_ID, 0)), ENOENT, NO_SOCKET_MSG,
	  BAD(SOCKET_ID) },
	{ DO(SOCKET_GET, U(SOCKET_ID, UINT32_MAX)), ENOENT, NO_SOCKET_MSG,
	  BAD(SOCKET_ID) },
	{ DUMP(SOCKET_GET, U(SOCKET_ID, A_SOCKET)), EINVAL,
	  "the dump of sockets takes no attributes", NO_ATTR },
	{ DO(SOCKET_SET), EINVAL,
	  "nothing to set: a budget, a budget cap, a phase or a job is needed",
	  NO_ATTR },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET)), EINVAL,
	  "nothing to set: a budget, a budget cap, a phase or a job is needed",
	  NO_ATTR },
	{ DO(SOCKET_SET, U(SOCKET_BUDGET, 1)), EINVAL,
	  "the number of a socket is needed", MISSING(SOCKET_ID) },
	{ DO(SOCKET_SET, U(SOCKET_ID, 99999), U(SOCKET_BUDGET, 1)), ENOENT,
	  NO_SOCKET_MSG, BAD(SOCKET_ID) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET),
	     U(SOCKET_BUDGET, DBLP_PPM + 1), U(SOCKET_BUDGET_CAP, 5)),
	  EINVAL, SHARE_MSG, BAD(SOCKET_BUDGET) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET),
	     U(SOCKET_BUDGET, DBLP_INHERIT - 1)),
	  EINVAL, SHARE_MSG, BAD(SOCKET_BUDGET) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 5),
	     U(SOCKET_BUDGET_CAP, DBLP_PPM + 1)),
	  EINVAL, SHARE_MSG, BAD(SOCKET_BUDGET_CAP) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 5),
	     U(SOCKET_BUDGET_CAP, DBLP_INHERIT - 1)),
	  EINVAL, SHARE_MSG, BAD(SOCKET_BUDGET_CAP) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 5),
	     U(SOCKET_JOB, PLAIN), U(SOCKET_PHASE, ABSENT)),
	  ENOENT, NO_PHASE_MSG, BAD(SOCKET_PHASE) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_PHASE, 8)),
	  ENOENT, NO_PHASE_MSG, BAD(SOCKET_PHASE) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 5),
	     U(SOCKET_PHASE, TOLERANT), U(SOCKET_JOB, NO_JOB)),
	  ENOENT, NO_JOB_MSG, BAD(SOCKET_JOB) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 5),
	     U(SOCKET_CWND, 1)), EINVAL, NULL, BAD(SOCKET_CWND) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET),
	     { DBLP_A_SOCKET_BUDGET_CAP, U16, 5, NULL }),
	  EINVAL, NULL, BAD(SOCKET_BUDGET_CAP) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), { DBLP_A_SOCKET_BUDGET, U64, 1, NULL }),
	  EINVAL, NULL, BAD(SOCKET_BUDGET) },
	{ DO(SOCKET_SET, U(SOCKET_ID, A_SOCKET), U(SOCKET_BUDGET, 1), UNKNOWN),
	  EINVAL, NULL, 4000, 0 },
	{ DO(STATS_GET, U(STATS_CONN_ACTIVE, 1)), EINVAL, NULL,
	  BAD(STATS_CONN_ACTIVE) },
};

static const struct refusal phases[] = {
	{ DO(PHASE_GET), EINVAL, "the number of a phase is needed",
	  MISSING(PHASE_ID) },
	{ DO(PHASE_GET, U(PHASE_ID, 8)), EINVAL, PHASES_MSG, BAD(PHASE_ID) },
	{ DO(PHASE_GET, U(PHASE_ID, ABSENT)), ENOENT, NO_PHASE_MSG,
	  BAD(PHASE_ID) },
	{ DUMP(PHASE_GET, U(PHASE_ID, 1)), EINVAL,
	  "the dump of phases takes no attributes", NO_ATTR },
	{ DO(PHASE_SET, S(PHASE_NAME, "x")), EINVAL,
	  "the number of a phase is needed", MISSING(PHASE_ID) },
	{ DO(PHASE_SET, U(PHASE_ID, 8), S(PHASE_NAME, "x")), EINVAL,
	  PHASES_MSG, BAD(PHASE_ID) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT)), EINVAL,
	  "nothing to set: a name, budget, policy, order, fill or budget cap is needed",
	  NO_ATTR },
	{ DO(PHASE_SET, U(PHASE_ID, ABSENT), U(PHASE_BUDGET, 1)), ENOENT,
	  "there is no such phase, and a new one needs a name",
	  BAD(PHASE_ID) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1),
	     S(PHASE_NAME, "1st")), EINVAL, NAME_MSG, BAD(PHASE_NAME) },
	{ DO(PHASE_SET, U(PHASE_ID, ABSENT), S(PHASE_NAME, "")), EINVAL,
	  NAME_MSG, BAD(PHASE_NAME) },
	{ DO(PHASE_SET, U(PHASE_ID, ABSENT),
	     S(PHASE_NAME, "sixteen-letters-")), EINVAL, NULL,
	  BAD(PHASE_NAME) },
	{ DO(PHASE_SET, U(PHASE_ID, ABSENT), U(PHASE_BUDGET, 1),
	     S(PHASE_NAME, "tolerant")), EEXIST,
	  "another phase has this name", BAD(PHASE_NAME) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), S(PHASE_NAME, "critical")),
	  EEXIST, "another phase has this name", BAD(PHASE_NAME) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_FILL, 1),
	     U(PHASE_BUDGET, DBLP_PPM + 1)), EINVAL, SHARE_MSG,
	  BAD(PHASE_BUDGET) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT),
	     U(PHASE_BUDGET_CAP, DBLP_PPM + 1)),
	  EINVAL, SHARE_MSG, BAD(PHASE_BUDGET_CAP) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, DBLP_INHERIT)),
	  EINVAL, SHARE_MSG, BAD(PHASE_BUDGET) },
	{ DO(PHASE_SET, U(PHASE_ID, RELIABLE), U(PHASE_BUDGET, 1)), EINVAL,
	  "policy full allows no budget: set another policy",
	  BAD(PHASE_BUDGET) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), S(PHASE_NAME, "other"),
	     U(PHASE_BUDGET, 1), U(PHASE_POLICY, DBLP_POLICY_FULL)), EINVAL,
	  "policy full allows no budget: set another policy",
	  BAD(PHASE_BUDGET) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1),
	     U(PHASE_POLICY, __DBLP_POLICY_MAX)), ERANGE, NULL,
	  BAD(PHASE_POLICY) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1),
	     U(PHASE_ORDER, __DBLP_ORDER_MAX)), ERANGE, NULL,
	  BAD(PHASE_ORDER) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1),
	     U(PHASE_FILL, __DBLP_FILL_MAX)), ERANGE, NULL,
	  BAD(PHASE_FILL) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1),
	     U(PHASE_SOCKETS, 1)), EINVAL, NULL, BAD(PHASE_SOCKETS) },
	{ DO(PHASE_SET, U(PHASE_ID, TOLERANT), U(PHASE_BUDGET, 1), UNKNOWN),
	  EINVAL, NULL, 4000, 0 },
	{ DO(PHASE_DEL), EINVAL, "the number of a phase is needed",
	  MISSING(PHASE_ID) },
	{ DO(PHASE_DEL, U(PHASE_ID, UINT32_MAX)), EINVAL, PHASES_MSG,
	  BAD(PHASE_ID) },
	{ DO(PHASE_DEL, U(PHASE_ID, ABSENT)), ENOENT, NO_PHASE_MSG,
	  BAD(PHASE_ID) },
	{ DO(PHASE_DEL, U(PHASE_ID, RELIABLE)), EBUSY,
	  "phase 0 cannot be deleted: sockets without a phase use it", BAD(PHASE_ID) },
	{ DO(PHASE_DEL, U(PHASE_ID, BUSY)), EBUSY,
	  "sockets or jobs are in this phase, or a detector may choose it", BAD(PHASE_ID) },
	{ DO(PHASE_DEL, U(PHASE_ID, CRITICAL)), EBUSY,
	  "sockets or jobs are in this phase, or a detector may choose it", BAD(PHASE_ID) },
};

static const struct refusal jobs[] = {
	{ DO(JOB_GET), EINVAL, "the number of a job is needed",
	  MISSING(JOB_ID) },
	{ DO(JOB_GET, U(JOB_ID, 0)), EINVAL, JOBS_MSG, BAD(JOB_ID) },
	{ DO(JOB_GET, U(JOB_ID, NO_JOB)), ENOENT, NO_JOB_MSG, BAD(JOB_ID) },
	{ DUMP(JOB_GET, U(JOB_ID, PLAIN)), EINVAL,
	  "the dump of jobs takes no attributes", NO_ATTR },
	{ DO(JOB_ADD, S(JOB_NAME, "x")), EINVAL,
	  "the number of a job is needed", MISSING(JOB_ID) },
	{ DO(JOB_ADD, U(JOB_ID, 1U << 31)), EINVAL, JOBS_MSG, BAD(JOB_ID) },
	{ DO(JOB_ADD, U(JOB_ID, PLAIN), S(JOB_NAME, "x")), EEXIST,
	  "another job has this number", BAD(JOB_ID) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), S(JOB_NAME, "plain")), EEXIST,
	  "another job has this name", BAD(JOB_NAME) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), S(JOB_NAME, "a/b")), EINVAL,
	  NAME_MSG, BAD(JOB_NAME) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), S(JOB_NAME, "sixteen-letters-")),
	  EINVAL, NULL, BAD(JOB_NAME) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_PHASE, ABSENT)), ENOENT,
	  NO_PHASE_MSG, BAD(JOB_PHASE) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_LOW_PHASE, ABSENT)), ENOENT,
	  NO_PHASE_MSG, BAD(JOB_LOW_PHASE) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_HIGH_PHASE, 8)), ENOENT,
	  NO_PHASE_MSG, BAD(JOB_HIGH_PHASE) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_LOW, DBLP_PPM + 1)), EINVAL,
	  SHARE_MSG, BAD(JOB_LOW) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_BUDGET_CAP, DBLP_INHERIT - 1)),
	  EINVAL, SHARE_MSG, BAD(JOB_BUDGET_CAP) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_HIGH, DBLP_INHERIT - 1)),
	  EINVAL, SHARE_MSG, BAD(JOB_HIGH) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_CLR, DBLP_CLR_HELD)), EINVAL,
	  "to hold the detector, set the phase", BAD(JOB_CLR) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_CLR, __DBLP_CLR_MAX)), ERANGE,
	  NULL, BAD(JOB_CLR) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_ETA, 0)), ERANGE, NULL,
	  BAD(JOB_ETA) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_REGIME, 0)), EINVAL, NULL,
	  BAD(JOB_REGIME) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_LOW_PHASE, TOLERANT)), EINVAL,
	  SAME_MSG, BAD(JOB_LOW_PHASE) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_HIGH_PHASE, CRITICAL)),
	  EINVAL, SAME_MSG, BAD(JOB_HIGH_PHASE) },
	{ DO(JOB_ADD, U(JOB_ID, NO_JOB), U(JOB_CLR, DBLP_CLR_ON),
	     U(JOB_PHASE, TOLERANT)), EINVAL, DETECTOR_MSG, BAD(JOB_PHASE) },
	{ DO(JOB_SET, S(JOB_NAME, "x")), EINVAL,
	  "the number of a job is needed", MISSING(JOB_ID) },
	{ DO(JOB_REPLACE, S(JOB_NAME, "x")), EINVAL,
	  "the number of a job is needed", MISSING(JOB_ID) },
	{ DO(JOB_REPLACE, U(JOB_ID, NO_JOB), S(JOB_NAME, "plain")), EEXIST,
	  "another job has this name", BAD(JOB_NAME) },
	{ DO(JOB_REPLACE, U(JOB_ID, PLAIN), U(JOB_PHASE, ABSENT)), ENOENT,
	  NO_PHASE_MSG, BAD(JOB_PHASE) },
	{ DO(JOB_SET, U(JOB_ID, 0), S(JOB_NAME, "x")), EINVAL, JOBS_MSG,
	  BAD(JOB_ID) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN)), EINVAL,
	  "nothing to set: a name, phase, owner, budget cap or setting of the detector is needed",
	  NO_ATTR },
	{ DO(JOB_SET, U(JOB_ID, NO_JOB), U(JOB_HOLD, 1)), ENOENT, NO_JOB_MSG,
	  BAD(JOB_ID) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN), S(JOB_NAME, "1st")), EINVAL, NAME_MSG,
	  BAD(JOB_NAME) },
	{ DO(JOB_SET, U(JOB_ID, CROWDED), U(JOB_HOLD, 1),
	     S(JOB_NAME, "plain")), EEXIST, "another job has this name",
	  BAD(JOB_NAME) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN), S(JOB_NAME, "other"),
	     U(JOB_PHASE, ABSENT)), ENOENT, NO_PHASE_MSG, BAD(JOB_PHASE) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN), U(JOB_PHASE, CRITICAL),
	     U(JOB_LOW, DBLP_PPM + 1)), EINVAL, SHARE_MSG, BAD(JOB_LOW) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN), U(JOB_HOLD, 1),
	     U(JOB_LOW_PHASE, CRITICAL), U(JOB_HIGH_PHASE, CRITICAL)), EINVAL,
	  SAME_MSG, BAD(JOB_LOW_PHASE) },
	{ DO(JOB_SET, U(JOB_ID, DETECTING), U(JOB_CLR, DBLP_CLR_HELD)),
	  EINVAL, "to hold the detector, set the phase", BAD(JOB_CLR) },
	{ DO(JOB_SET, U(JOB_ID, DETECTING), U(JOB_CLR, DBLP_CLR_ON),
	     U(JOB_PHASE, TOLERANT)), EINVAL, DETECTOR_MSG, BAD(JOB_PHASE) },
	{ DO(JOB_SET, U(JOB_ID, PLAIN), U(JOB_HOLD, 1),
	     U(JOB_OWNER, UINT32_MAX)), EINVAL,
	  "there is no such user in your user namespace", BAD(JOB_OWNER) },
	{ DO(JOB_SET, U(JOB_ID, LOST), U(JOB_CLR, DBLP_CLR_ON)), ENOENT,
	  GOAL_MSG, BAD(JOB_CLR) },
	{ DO(JOB_SET, U(JOB_ID, LOST), U(JOB_CLR, DBLP_CLR_ON),
	     U(JOB_LOW_PHASE, RELIABLE)), ENOENT, GOAL_MSG, BAD(JOB_CLR) },
	{ DO(JOB_DEL), EINVAL, "the number of a job is needed",
	  MISSING(JOB_ID) },
	{ DO(JOB_DEL, U(JOB_ID, UINT32_MAX)), EINVAL, JOBS_MSG,
	  BAD(JOB_ID) },
	{ DO(JOB_DEL, U(JOB_ID, NO_JOB)), ENOENT, NO_JOB_MSG, BAD(JOB_ID) },
	{ DO(JOB_DEL, U(JOB_ID, CROWDED)), EBUSY,
	  "there are sockets in this job", BAD(JOB_ID) },
};

static const struct refusal params[] = {
	{ DO(PARAM_GET, U(PARAM_BUDGET_CAP, 1)), EINVAL, NULL,
	  BAD(PARAM_BUDGET_CAP) },
	{ DO(PARAM_SET), EINVAL,
	  "nothing to set: a congestion control, budget cap, user timeout, keepalive time or gso is needed",
	  NO_ATTR },
	{ DO(PARAM_SET, U(PARAM_BUDGET_CAP, 5),
	     S(PARAM_CONGESTION, "nosuch")), ENOENT, CC_MSG,
	  BAD(PARAM_CONGESTION) },
	{ DO(PARAM_SET, U(PARAM_BUDGET_CAP, 5), S(PARAM_CONGESTION, "")),
	  ENOENT, CC_MSG, BAD(PARAM_CONGESTION) },
	{ DO(PARAM_SET, S(PARAM_CONGESTION, "sixteen-letters-")), EINVAL,
	  NULL, BAD(PARAM_CONGESTION) },
	{ DO(PARAM_SET, S(PARAM_CONGESTION, "lossy"),
	     U(PARAM_BUDGET_CAP, DBLP_PPM + 1)), EINVAL, SHARE_MSG,
	  BAD(PARAM_BUDGET_CAP) },
	{ DO(PARAM_SET, U(PARAM_BUDGET_CAP, DBLP_INHERIT - 1)), EINVAL,
	  SHARE_MSG, BAD(PARAM_BUDGET_CAP) },
	{ DO(PARAM_SET, U(PARAM_BUDGET_CAP, 5), U(PARAM_USER_TIMEOUT_MS, 0)),
	  EINVAL, TIMEOUT_MSG, BAD(PARAM_USER_TIMEOUT_MS) },
	{ DO(PARAM_SET, U(PARAM_KEEPALIVE_MS, 99),
	     U(PARAM_USER_TIMEOUT_MS, 3600001)), EINVAL, TIMEOUT_MSG,
	  BAD(PARAM_USER_TIMEOUT_MS) },
	{ DO(PARAM_SET, U(PARAM_USER_TIMEOUT_MS, 5),
	     U(PARAM_KEEPALIVE_MS, 9)), EINVAL, KEEPALIVE_MSG,
	  BAD(PARAM_KEEPALIVE_MS) },
	{ DO(PARAM_SET, U(PARAM_KEEPALIVE_MS, 86400001)), EINVAL,
	  KEEPALIVE_MSG, BAD(PARAM_KEEPALIVE_MS) },
	{ DO(PARAM_SET, U(PARAM_USER_TIMEOUT_MS, 5), U(PARAM_GSO, 2)), ERANGE,
	  NULL, BAD(PARAM_GSO) },
	{ DO(CC_GET), EINVAL, "the name of a congestion control is needed",
	  MISSING(CC_NAME) },
	{ DO(CC_GET, S(CC_NAME, "nosuch")), ENOENT, CC_MSG, BAD(CC_NAME) },
	{ DUMP(CC_GET, S(CC_NAME, "lossy")), EINVAL,
	  "the dump of congestion controls takes no attributes",
	  NO_ATTR },
};

/* Refusals to other users than root; the other lists run as root */
static const struct refusal others[] = {
	{ DO(SOCKET_GET, U(SOCKET_ID, A_SOCKET)), EPERM, OTHER_MSG,
	  BAD(SOCKET_ID) },
	{ DO(JOB_GET, U(JOB_ID, PLAIN)), EPERM, OTHER_MSG, BAD(JOB_ID) },
};

static const struct {
	const struct refusal	*list;
	size_t			n;
} all[] = {
	{ sockets, N(sockets) }, { phases, N(phases) }, { jobs, N(jobs) },
	{ params, N(params) }, { others, N(others) },
};

FIXTURE(refusals)
{
	int fd, in_job;
	uint32_t id;
};

static void put_attr(struct nlmsghdr *nlh, const struct attr *a, uint32_t id)
{
	uint32_t value = a->value == A_SOCKET ? id : a->value;

	switch (a->kind) {
	case END:
		break;
	case U32:
		mnl_attr_put_u32(nlh, a->type, value);
		break;
	case U16:
		mnl_attr_put_u16(nlh, a->type, value);
		break;
	case U64:
		mnl_attr_put_u64(nlh, a->type, value);
		break;
	case STR:
		mnl_attr_put_strz(nlh, a->type, a->text);
		break;
	}
}

static struct nlmsghdr *build(const struct refusal *r, uint32_t id)
{
	struct nlmsghdr *nlh = begin(family, r->cmd, r->dump ? NLM_F_DUMP : 0);
	size_t i;

	for (i = 0; i < N(r->attrs); i++)
		put_attr(nlh, &r->attrs[i], id);
	return nlh;
}

static void make(const struct refusal *r)
{
	if (result(build(r, 0)))
		die("setting up: %s", got.msg);
}

/* Create objects for the requests */
FIXTURE_SETUP(refusals)
{
	static const struct refusal setup[] = {
		{ DO(PHASE_SET, U(PHASE_ID, BUSY), S(PHASE_NAME, "busy")),
		  NO_REFUSAL },
		{ DO(PHASE_SET, U(PHASE_ID, GONE), S(PHASE_NAME, "gone")),
		  NO_REFUSAL },
		{ DO(JOB_ADD, U(JOB_ID, PLAIN), S(JOB_NAME, "plain")),
		  NO_REFUSAL },
		{ DO(JOB_ADD, U(JOB_ID, CROWDED), S(JOB_NAME, "crowded")),
		  NO_REFUSAL },
		{ DO(JOB_ADD, U(JOB_ID, DETECTING), U(JOB_CLR, DBLP_CLR_ON)),
		  NO_REFUSAL },
		{ DO(JOB_ADD, U(JOB_ID, LOST), U(JOB_HIGH_PHASE, GONE)),
		  NO_REFUSAL },
		{ DO(PHASE_DEL, U(PHASE_ID, GONE)), NO_REFUSAL },
	};
	size_t i;

	netns_new();
	open_netlink();
	for (i = 0; i < N(setup); i++)
		make(&setup[i]);
	self->fd = new_socket();
	set_u32(self->fd, DBLP_PHASE, BUSY);
	self->in_job = new_socket();
	set_u32(self->in_job, DBLP_JOB, CROWDED);
	self->id = get_info(self->fd).id;
}

FIXTURE_ENDS_BY_EXIT(refusals);

static uint16_t named_attr(void)
{
	if (!got.offset)
		return 0;
	return mnl_attr_get_type((const void *)(request + got.offset));
}

static void check(struct __test_metadata *_metadata, const struct refusal *r,
		  uint32_t id)
{
	static struct nl_state before, after;
	const struct attr *a = r->attrs;
	int passed = _metadata->passed;

	_metadata->passed = 1;
	nl_state_take(&before);
	EXPECT_EQ(r->err, result(build(r, id)));
	EXPECT_EQ(r->missing, got.missing);
	EXPECT_EQ(r->bad, named_attr());
	EXPECT_NE(0, strlen(got.msg));
	if (r->msg)
		EXPECT_STREQ(r->msg, got.msg);
	nl_state_take(&after);
	EXPECT_EQ(before.len, after.len);
	EXPECT_EQ(0, memcmp(before.bytes, after.bytes, after.len));
	if (!_metadata->passed)
		TH_LOG("command %u, attributes %u %u %u %u", r->cmd, a[0].type,
		       a[1].type, a[2].type, a[3].type);
	_metadata->passed &= passed;
}

TEST_F(refusals, one_by_one)
{
	size_t i, j;

	for (i = 0; i < N(all); i++)
		for (j = 0; all[i].list != others && j < all[i].n; j++)
			check(_metadata, &all[i].list[j], self->id);
}

TEST_F(refusals, of_others)
{
	size_t i;

	if (setresuid(NOBODY, NOBODY, NOBODY))
		die("setresuid()");
	mnl_socket_close(nl);
	open_netlink();
	for (i = 0; i < N(others); i++)
		check(_metadata, &others[i], self->id);
}

/*
 * A socket that is closed between lookup and lock is a matter of chance, and not tested.
 */
static bool is_provoked(const char *msg)
{
	bool found = !strcmp(msg, "the socket is being closed");
	size_t i, j;

	for (i = 0; i < N(all); i++)
		for (j = 0; j < all[i].n; j++)
			if (all[i].list[j].msg &&
			    !strcmp(all[i].list[j].msg, msg))
				found = true;
	if (!found)
		fprintf(stderr, "# nothing provokes: %s\n", msg);
	return found;
}

TEST_F(refusals, every_message_has_a_case)
{
	size_t i;

	EXPECT_LT(20, N(refusal_messages));
	for (i = 0; i < N(refusal_messages); i++)
		EXPECT_TRUE(is_provoked(refusal_messages[i]));
}

TEST_HARNESS_MAIN
