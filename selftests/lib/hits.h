/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How often the kernel calls one of its functions, which no load of the machine
 * changes.
 */
#ifndef DBLP_TEST_HITS_H
#define DBLP_TEST_HITS_H

#include "sock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HITS_TRACING	"/sys/kernel/tracing/"

/* Has this kernel got what counts them? */
static inline bool can_hit(void)
{
	return !access(HITS_TRACING "kprobe_events", W_OK);
}

/* @function: its name, of a module behind "dblp:"; one at a time */
static inline void hits_open(const char *function)
{
	run("echo 'p:dblp_hits/hits %s' >> " HITS_TRACING "kprobe_events && "
	    "echo 1 > " HITS_TRACING "events/dblp_hits/hits/enable",
	    function);
}

/* A probe that stays keeps the module from being unloaded */
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
