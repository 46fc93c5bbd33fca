/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters in Prometheus' text format.
 */
#ifndef DBLPCTL_PROMETHEUS_H
#define DBLPCTL_PROMETHEUS_H

#include "cmd.h"

/** print_prometheus() - print counters, and what sockets and jobs have in sum */
enum status print_prometheus(void);

#endif /* DBLPCTL_PROMETHEUS_H */
