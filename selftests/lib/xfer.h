/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Command line of dblp-xfer.
 */
#ifndef DBLP_TEST_XFER_H
#define DBLP_TEST_XFER_H

#include <stdbool.h>
#include <stdint.h>

extern struct xfer_config {
	const char *from;		/* namespace of the connecting end */
	const char *to;			/* namespace of the listening end */
	const char *address;		/* address of the listening end */
	const char *cc;
	const char *connected;		/* command to run when connected */
	const char *halfway;		/* command to run halfway */
	bool settled;			/* halfway: wait until all are closed */
	uint32_t then;			/* ppm: budget after @halfway */
	unsigned int count;
	unsigned int n_sizes;
	uint32_t size[16];		/* message i has size i modulo n_sizes */
	uint32_t budget;		/* ppm */
	uint32_t cap;			/* ppm, UINT32_MAX: not set */
	uint32_t critical;		/* bytes */
	uint32_t element;
	uint32_t spray;
	uint32_t policy;
	uint32_t deadline;		/* microseconds */
	uint32_t order;
	uint32_t fill;
	uint32_t ect;			/* value of DBLP_ECT */
	uint32_t zeros;			/* percent of the contents */
	uint64_t expect_elided;		/* minimum of elided bytes */
	uint64_t seed;
	unsigned int timeout;		/* seconds */
	bool duplex;
	bool per_message;		/* budget by DBLP_SNDINFO */
	bool nonblock;
	bool spread;			/* check invariant 5 */
	uint64_t expect_missing;	/* minimum of missing bytes */
	uint64_t allow_missing;		/* maximum of missing bytes */
} cfg;

/** xfer_parse() - fill cfg from the command line; on an error print it and exit(2) */
void xfer_parse(int argc, char **argv);

#endif /* DBLP_TEST_XFER_H */
