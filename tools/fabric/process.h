/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processes of a fabric: a scheduler, a server, its replica, and hosts that join
 * updates. What they tell each other is in libdblp's fabric_msg.h.
 *
 *	main.c		the command line
 *	schedule.c	the scheduler: who is there, and what all others say
 *	runs.c		and what becomes of updates
 *	rates.c		how fast hosts are
 *	order.c		what the scheduler decides, pure
 *	serve.c		the server, and the replica until it is one
 *	join.c		joining updates, and passing on models
 *	member.c	what all these have: the scheduler, and connections for data
 */
#ifndef FABRIC_PROCESS_H
#define FABRIC_PROCESS_H

#include <stdio.h>

#include <fabric_msg.h>

/**
 * struct options - the command line
 * @listen: scheduler: where
 * @scheduler: where it is
 * @transport: of data
 * @workers: scheduler: how many there may be
 * @fifo: scheduler: every update goes to the server at once
 * @bound: scheduler: see &struct fab_state
 * @count: elements of the model
 * @eta: server: step size
 * @div_max: server: see &struct fab_divergence; 0: it keeps no bound
 * @log: server: what was applied, or NULL
 * @timeout_ms: how long a host may be silent
 */
struct options {
	struct sockaddr_dblp	listen;
	struct sockaddr_dblp	scheduler;
	const char		*transport;
	uint32_t		workers;
	bool			fifo;
	uint32_t		bound;
	uint64_t		count;
	double			eta;
	double			div_max;
	FILE			*log;
	uint32_t		timeout_ms;
};

/* Each runs until it fails or the scheduler ends; the exit status */
int schedule(const struct options *o);
int serve(const struct options *o, bool replica);
int join(const struct options *o);

#endif /* FABRIC_PROCESS_H */
