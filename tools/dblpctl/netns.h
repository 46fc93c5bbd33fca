/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Network namespaces.
 */
#ifndef DBLPCTL_NETNS_H
#define DBLPCTL_NETNS_H

#include "dblpctl.h"

/**
 * netns_enter() - go to another network namespace
 * @name: what `ip netns` calls it, or with a slash the path of its file
 */
enum status netns_enter(const char *name);

#endif /* DBLPCTL_NETNS_H */
