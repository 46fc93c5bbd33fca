// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/dblp.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "gen.h"

#include <uapi/linux/dblp_netlink.h>
#include <linux/dblp.h>

/* DBLP_CMD_SOCKET_GET - do */
const struct nla_policy dblp_socket_get_nl_policy[DBLP_A_SOCKET_ID + 1] = {
	[DBLP_A_SOCKET_ID] = { .type = NLA_U32, },
};

/* DBLP_CMD_SOCKET_SET - do */
const struct nla_policy dblp_socket_set_nl_policy[DBLP_A_SOCKET_JOB + 1] = {
	[DBLP_A_SOCKET_ID] = { .type = NLA_U32, },
	[DBLP_A_SOCKET_BUDGET] = { .type = NLA_U32, },
	[DBLP_A_SOCKET_BUDGET_CAP] = { .type = NLA_U32, },
	[DBLP_A_SOCKET_PHASE] = { .type = NLA_U32, },
	[DBLP_A_SOCKET_JOB] = { .type = NLA_U32, },
};

/* DBLP_CMD_STATS_GET - do */
const struct nla_policy dblp_stats_get_nl_policy[DBLP_A_STATS_NONZERO + 1] = {
	[DBLP_A_STATS_NONZERO] = { .type = NLA_FLAG, },
};

/* DBLP_CMD_PHASE_GET - do */
const struct nla_policy dblp_phase_get_nl_policy[DBLP_A_PHASE_ID + 1] = {
	[DBLP_A_PHASE_ID] = { .type = NLA_U32, },
};

/* DBLP_CMD_PHASE_SET - do */
const struct nla_policy dblp_phase_set_nl_policy[DBLP_A_PHASE_BUDGET_CAP + 1] = {
	[DBLP_A_PHASE_ID] = { .type = NLA_U32, },
	[DBLP_A_PHASE_NAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[DBLP_A_PHASE_BUDGET] = { .type = NLA_U32, },
	[DBLP_A_PHASE_POLICY] = NLA_POLICY_MAX(NLA_U32, 2),
	[DBLP_A_PHASE_ORDER] = NLA_POLICY_MAX(NLA_U32, 2),
	[DBLP_A_PHASE_FILL] = NLA_POLICY_MAX(NLA_U32, 1),
	[DBLP_A_PHASE_BUDGET_CAP] = { .type = NLA_U32, },
};

/* DBLP_CMD_PHASE_DEL - do */
const struct nla_policy dblp_phase_del_nl_policy[DBLP_A_PHASE_ID + 1] = {
	[DBLP_A_PHASE_ID] = { .type = NLA_U32, },
};

/* DBLP_CMD_JOB_GET - do */
const struct nla_policy dblp_job_get_nl_policy[DBLP_A_JOB_ID + 1] = {
	[DBLP_A_JOB_ID] = { .type = NLA_U32, },
};

/* DBLP_CMD_JOB_ADD - do */
const struct nla_policy dblp_job_add_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1] = {
	[DBLP_A_JOB_ID] = { .type = NLA_U32, },
	[DBLP_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[DBLP_A_JOB_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_CLR] = NLA_POLICY_MAX(NLA_U32, 2),
	[DBLP_A_JOB_LOW] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH] = { .type = NLA_U32, },
	[DBLP_A_JOB_LOW_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_ETA] = NLA_POLICY_MIN(NLA_U32, 1),
	[DBLP_A_JOB_HOLD] = { .type = NLA_U32, },
	[DBLP_A_JOB_OWNER] = { .type = NLA_U32, },
	[DBLP_A_JOB_BUDGET_CAP] = { .type = NLA_U32, },
};

/* DBLP_CMD_JOB_SET - do */
const struct nla_policy dblp_job_set_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1] = {
	[DBLP_A_JOB_ID] = { .type = NLA_U32, },
	[DBLP_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[DBLP_A_JOB_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_CLR] = NLA_POLICY_MAX(NLA_U32, 2),
	[DBLP_A_JOB_LOW] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH] = { .type = NLA_U32, },
	[DBLP_A_JOB_LOW_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_ETA] = NLA_POLICY_MIN(NLA_U32, 1),
	[DBLP_A_JOB_HOLD] = { .type = NLA_U32, },
	[DBLP_A_JOB_OWNER] = { .type = NLA_U32, },
	[DBLP_A_JOB_BUDGET_CAP] = { .type = NLA_U32, },
};

/* DBLP_CMD_JOB_DEL - do */
const struct nla_policy dblp_job_del_nl_policy[DBLP_A_JOB_ID + 1] = {
	[DBLP_A_JOB_ID] = { .type = NLA_U32, },
};

/* DBLP_CMD_PARAM_GET - do */
const struct nla_policy dblp_param_get_nl_policy[DBLP_A_PARAM_INITIAL + 1] = {
	[DBLP_A_PARAM_INITIAL] = { .type = NLA_FLAG, },
};

/* DBLP_CMD_PARAM_SET - do */
const struct nla_policy dblp_param_set_nl_policy[DBLP_A_PARAM_GSO + 1] = {
	[DBLP_A_PARAM_CONGESTION] = { .type = NLA_NUL_STRING, .len = 15, },
	[DBLP_A_PARAM_BUDGET_CAP] = { .type = NLA_U32, },
	[DBLP_A_PARAM_USER_TIMEOUT_MS] = { .type = NLA_U32, },
	[DBLP_A_PARAM_KEEPALIVE_MS] = { .type = NLA_U32, },
	[DBLP_A_PARAM_GSO] = NLA_POLICY_MAX(NLA_U32, 1),
};

/* DBLP_CMD_CC_GET - do */
const struct nla_policy dblp_cc_get_nl_policy[DBLP_A_CC_NAME + 1] = {
	[DBLP_A_CC_NAME] = { .type = NLA_NUL_STRING, .len = 15, },
};

/* DBLP_CMD_JOB_REPLACE - do */
const struct nla_policy dblp_job_replace_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1] = {
	[DBLP_A_JOB_ID] = { .type = NLA_U32, },
	[DBLP_A_JOB_NAME] = { .type = NLA_NUL_STRING, .len = 15, },
	[DBLP_A_JOB_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_CLR] = NLA_POLICY_MAX(NLA_U32, 2),
	[DBLP_A_JOB_LOW] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH] = { .type = NLA_U32, },
	[DBLP_A_JOB_LOW_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_HIGH_PHASE] = { .type = NLA_U32, },
	[DBLP_A_JOB_ETA] = NLA_POLICY_MIN(NLA_U32, 1),
	[DBLP_A_JOB_HOLD] = { .type = NLA_U32, },
	[DBLP_A_JOB_OWNER] = { .type = NLA_U32, },
	[DBLP_A_JOB_BUDGET_CAP] = { .type = NLA_U32, },
};

/* Ops table for dblp */
const struct genl_ops dblp_nl_ops[14] = {
	{
		.cmd		= DBLP_CMD_SOCKET_GET,
		.doit		= dblp_nl_socket_get_doit,
		.dumpit		= dblp_nl_socket_get_dumpit,
		.policy		= dblp_socket_get_nl_policy,
		.maxattr	= DBLP_A_SOCKET_ID,
	},
	{
		.cmd		= DBLP_CMD_SOCKET_SET,
		.doit		= dblp_nl_socket_set_doit,
		.policy		= dblp_socket_set_nl_policy,
		.maxattr	= DBLP_A_SOCKET_JOB,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_STATS_GET,
		.doit		= dblp_nl_stats_get_doit,
		.policy		= dblp_stats_get_nl_policy,
		.maxattr	= DBLP_A_STATS_NONZERO,
	},
	{
		.cmd		= DBLP_CMD_PHASE_GET,
		.doit		= dblp_nl_phase_get_doit,
		.dumpit		= dblp_nl_phase_get_dumpit,
		.policy		= dblp_phase_get_nl_policy,
		.maxattr	= DBLP_A_PHASE_ID,
	},
	{
		.cmd		= DBLP_CMD_PHASE_SET,
		.doit		= dblp_nl_phase_set_doit,
		.policy		= dblp_phase_set_nl_policy,
		.maxattr	= DBLP_A_PHASE_BUDGET_CAP,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_PHASE_DEL,
		.doit		= dblp_nl_phase_del_doit,
		.policy		= dblp_phase_del_nl_policy,
		.maxattr	= DBLP_A_PHASE_ID,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_JOB_GET,
		.doit		= dblp_nl_job_get_doit,
		.dumpit		= dblp_nl_job_get_dumpit,
		.policy		= dblp_job_get_nl_policy,
		.maxattr	= DBLP_A_JOB_ID,
	},
	{
		.cmd		= DBLP_CMD_JOB_ADD,
		.doit		= dblp_nl_job_add_doit,
		.policy		= dblp_job_add_nl_policy,
		.maxattr	= DBLP_A_JOB_BUDGET_CAP,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_JOB_SET,
		.doit		= dblp_nl_job_set_doit,
		.policy		= dblp_job_set_nl_policy,
		.maxattr	= DBLP_A_JOB_BUDGET_CAP,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_JOB_DEL,
		.doit		= dblp_nl_job_del_doit,
		.policy		= dblp_job_del_nl_policy,
		.maxattr	= DBLP_A_JOB_ID,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_PARAM_GET,
		.doit		= dblp_nl_param_get_doit,
		.policy		= dblp_param_get_nl_policy,
		.maxattr	= DBLP_A_PARAM_INITIAL,
	},
	{
		.cmd		= DBLP_CMD_PARAM_SET,
		.doit		= dblp_nl_param_set_doit,
		.policy		= dblp_param_set_nl_policy,
		.maxattr	= DBLP_A_PARAM_GSO,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= DBLP_CMD_CC_GET,
		.doit		= dblp_nl_cc_get_doit,
		.dumpit		= dblp_nl_cc_get_dumpit,
		.policy		= dblp_cc_get_nl_policy,
		.maxattr	= DBLP_A_CC_NAME,
	},
	{
		.cmd		= DBLP_CMD_JOB_REPLACE,
		.doit		= dblp_nl_job_replace_doit,
		.policy		= dblp_job_replace_nl_policy,
		.maxattr	= DBLP_A_JOB_BUDGET_CAP,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
};
