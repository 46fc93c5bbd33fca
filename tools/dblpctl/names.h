/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of netlink attributes and commands, generated from the netlink spec.
 */
#ifndef DBLPCTL_NAMES_H
#define DBLPCTL_NAMES_H

#include <linux/dblp_netlink.h>

/**
 * struct counter - a counter of the network namespace
 * @name: shown to users; NULL for attributes that are not counters
 * @meaning: a short description
 */
struct counter {
	const char	*name;
	const char	*meaning;
};

/* By attribute */
extern const struct counter counters[DBLP_A_STATS_MAX + 1];
extern const char *const socket_attrs[DBLP_A_SOCKET_MAX + 1];
extern const char *const phase_attrs[DBLP_A_PHASE_MAX + 1];
extern const char *const job_attrs[DBLP_A_JOB_MAX + 1];
extern const char *const job_phase_attrs[DBLP_A_JOB_PHASE_MAX + 1];
extern const char *const param_attrs[DBLP_A_PARAM_MAX + 1];
extern const char *const cc_attrs[DBLP_A_CC_MAX + 1];
extern const char *const event_attrs[DBLP_A_EVENT_MAX + 1];

/* By command, NULL for commands that are not events */
extern const char *const event_names[DBLP_CMD_MAX + 1];

#endif /* DBLPCTL_NAMES_H */
