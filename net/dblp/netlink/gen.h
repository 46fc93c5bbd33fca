/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/dblp.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_DBLP_GEN_H
#define _LINUX_DBLP_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/dblp_netlink.h>
#include <linux/dblp.h>

extern const struct nla_policy dblp_socket_get_nl_policy[DBLP_A_SOCKET_ID + 1];

extern const struct nla_policy dblp_socket_set_nl_policy[DBLP_A_SOCKET_JOB + 1];

extern const struct nla_policy dblp_stats_get_nl_policy[DBLP_A_STATS_NONZERO + 1];

extern const struct nla_policy dblp_phase_get_nl_policy[DBLP_A_PHASE_ID + 1];

extern const struct nla_policy dblp_phase_set_nl_policy[DBLP_A_PHASE_BUDGET_CAP + 1];

extern const struct nla_policy dblp_phase_del_nl_policy[DBLP_A_PHASE_ID + 1];

extern const struct nla_policy dblp_job_get_nl_policy[DBLP_A_JOB_ID + 1];

extern const struct nla_policy dblp_job_add_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1];

extern const struct nla_policy dblp_job_set_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1];

extern const struct nla_policy dblp_job_del_nl_policy[DBLP_A_JOB_ID + 1];

extern const struct nla_policy dblp_param_get_nl_policy[DBLP_A_PARAM_INITIAL + 1];

extern const struct nla_policy dblp_param_set_nl_policy[DBLP_A_PARAM_GSO + 1];

extern const struct nla_policy dblp_cc_get_nl_policy[DBLP_A_CC_NAME + 1];

extern const struct nla_policy dblp_job_replace_nl_policy[DBLP_A_JOB_BUDGET_CAP + 1];

/* Ops table for dblp */
extern const struct genl_ops dblp_nl_ops[14];

int dblp_nl_socket_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_socket_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int dblp_nl_socket_set_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_phase_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_phase_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int dblp_nl_phase_set_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_phase_del_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int dblp_nl_job_add_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_param_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_param_set_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_cc_get_doit(struct sk_buff *skb, struct genl_info *info);
int dblp_nl_cc_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int dblp_nl_job_replace_doit(struct sk_buff *skb, struct genl_info *info);

enum {
	DBLP_NLGRP_EVENTS,
};

#endif /* _LINUX_DBLP_GEN_H */
