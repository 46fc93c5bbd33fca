/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network namespaces.
 */
#ifndef DBLPCTL_NETNS_H
#define DBLPCTL_NETNS_H

#include "cmd.h"

/* Name of the entered namespace, or NULL */
extern const char *netns_name;

/**
 * netns_enter() - enter another network namespace
 * @name: its name in `ip netns`, or with a slash the path of its file
 */
enum status netns_enter(const char *name);

#endif /* DBLPCTL_NETNS_H */
