// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints themselves: see trace.h.
 */
#include <linux/module.h>

#define CREATE_TRACE_POINTS
#include "trace.h"
