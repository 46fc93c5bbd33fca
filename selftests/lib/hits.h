/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts calls of a function in the kernel: a measure of work that does not depend on the
 * load of the machine.
 */
#ifndef DBLP_TEST_HITS_H
#define DBLP_TEST_HITS_H

#include "sock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HITS_TRACING	"/sys/kernel/tracing/"

/* Does this kernel have kprobe events? */
static inline bool can_hit(void)
{
	return !access(HITS_TRACING "kprobe_events", W_OK);
}

/* Start counting calls of @function, "dblp:" and a name if it is in the module; one at a time */
static inline void hits_open(const char *function)
{
	run("echo 'p:dblp_hits/hits %s' >> " HITS_TRACING "kprobe_events && "
	    "echo 1 > " HITS_TRACING "events/dblp_hits/hits/enable",
	    function);
}

/* Remove the probe, which would prevent unloading of the module */
static inline void hits_close(void)
{
	run("echo 0 > " HITS_TRACING "events/dblp_hits/hits/enable && "
	    "echo '-:dblp_hits/hits' >> " HITS_TRACING "kprobe_events");
}

/* Calls since hits_open() */
static inline unsigned long hits(void)
{
	FILE *f = fopen(HITS_TRACING "kprobe_profile", "r");
	unsigned long n, sum = 0;
	char name[64];

	if (!f)
		die("kprobe_profile");
	while (fscanf(f, "%63s %lu %*u", name, &n) == 2)
		if (!strcmp(name, "hits"))
			sum += n;
	fclose(f);
	return sum;
}

#endif
