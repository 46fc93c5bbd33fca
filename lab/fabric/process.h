/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processes of a fabric: a scheduler, a server, its replica, and hosts that join
 * updates. Their messages are in fabric_msg.h.
 *
 *	main.c		parses the command line
 *	schedule.c	the scheduler: connections and received messages
 *	runs.c		the scheduler: plans, and runs of updates
 *	rates.c		the scheduler: estimated rates of hosts, pure
 *	order.c		the scheduler: order and hosts of updates, pure
 *	serve.c		the server and its replica
 *	join.c		joins updates, and passes on models
 *	member.c	shared by serve.c and join.c: the scheduler, and connections for data
 */
#ifndef FABRIC_PROCESS_H
#define FABRIC_PROCESS_H

#include <errno.h>
#include <stdio.h>

#include "fabric_msg.h"

/**
 * struct options - values of the options
 * @listen: schedule: address to listen at
 * @scheduler: address of the scheduler
 * @transport: transport of updates and models
 * @workers: schedule: number of workers
 * @fifo: schedule: policy fifo, each update goes to the server at once
 * @bound: schedule: see &struct fab_state
 * @count: elements of the model
 * @eta: serve: step size
 * @div_max: serve: @max of &struct fab_divergence; 0: no bound
 * @log: serve: log of the steps, or NULL
 * @timeout_ms: timeout of a connection on which a message is due
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

/* Is @error of dblp_accept() one that closing another connection may end? */
static inline bool is_exhausted(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS;
}

/* Each runs until it fails or the scheduler stops, and returns the exit status */
int schedule(const struct options *o);
int serve(const struct options *o, bool replica);
int join(const struct options *o);

#endif /* FABRIC_PROCESS_H */
