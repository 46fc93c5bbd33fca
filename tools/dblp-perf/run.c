// SPDX-License-Identifier: GPL-2.0-only
/* The run: its configuration, its results, and the measured time. */
#include <unistd.h>

#include "perf.h"

struct config cfg;
struct results *results;
int ready_pipe[2];

static uint64_t span_idle;

unsigned int total_connections(void)
{
	return cfg.n_from * cfg.per_host * (cfg.other.proto ? 2 : 1);
}

void listening(void)
{
	if (write(ready_pipe[1], "", 1) != 1)
		fail("pipe");
	close(ready_pipe[1]);
}

void span_begin(void)
{
	span_idle = idle_ns();
	results->started_ns = now_ns();
}

void span_end(void)
{
	uint64_t idle, total;

	results->elapsed_ns = now_ns() - results->started_ns;
	idle = idle_ns();
	results->busy_ns = UNKNOWN;
	if (span_idle != UNKNOWN && idle != UNKNOWN) {
		/* Clock and idle time are not read at the same time: @idle may exceed @total */
		total = results->elapsed_ns * cpus();
		idle -= span_idle;
		results->busy_ns = total > idle ? total - idle : 0;
	}
	results->valid = true;
}
