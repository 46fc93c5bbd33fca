/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler's decisions on asynchronous updates. Pure: no sockets and no clock, so
 * that equal input gives equal output.
 *
 * Updates that reach the server as one message are a run. An update is sent twice: to the
 * host that joins the updates of its run, then with the run to the server. When a run
 * leaves that host, it gets its versions, and with them the delays of its updates. One
 * run at a time is on its way to the server.
 *
 * fab_order() decides which of the ready updates are sent, in which order, and joined
 * where. fab_next() decides which run leaves next.
 */
#ifndef FABRIC_ORDER_H
#define FABRIC_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* FAB_UPDATES_MAX - maximum number of updates in a plan */
#define FAB_UPDATES_MAX	1024

/* FAB_DIRECT - @at of a run whose single update goes to the server directly */
#define FAB_DIRECT	UINT32_MAX

/**
 * struct fab_host - network device of a host
 * @tx: residual sending rate, bytes/s
 * @rx: residual receiving rate, bytes/s
 * @joins: a process on the host can join updates
 */
struct fab_host {
	double	tx;
	double	rx;
	bool	joins;
};

/**
 * struct fab_update - an update that is ready
 * @host: host of its worker
 * @version: version of the model that it was computed from
 * @since: position in the order in which updates became ready; the lower one goes first
 *	among equal ones
 */
struct fab_update {
	uint32_t	host;
	uint64_t	version;
	uint64_t	since;
};

/**
 * struct fab_state - state of the fabric, except the ready updates
 * @version: version of the model, including the run on its way to the server
 * @ahead: updates in runs that have not left for the server
 * @bound: maximum number of updates applied between reading a model and applying the
 *	update computed from it
 * @bytes: bytes of an update
 * @server: host of the server
 * @hosts: number of @host
 * @host: the hosts
 */
struct fab_state {
	uint64_t		version;
	uint32_t		ahead;
	uint32_t		bound;
	uint64_t		bytes;
	uint32_t		server;
	uint32_t		hosts;
	const struct fab_host	*host;
};

/**
 * struct fab_run - updates that reach the server as one message
 * @first: position of its first update in the order
 * @n: number of updates
 * @at: host that joins them, or %FAB_DIRECT
 */
struct fab_run {
	uint32_t	first;
	uint32_t	n;
	uint32_t	at;
};

/**
 * struct fab_plan - a decision of fab_order()
 * @order: numbers of the updates to send, in order, followed by those to drop
 * @sent: number of updates to send
 * @run: consecutive ranges of @order, which cover all updates to send
 * @runs: number of @run
 */
struct fab_plan {
	uint32_t	order[FAB_UPDATES_MAX];
	uint32_t	sent;
	struct fab_run	run[FAB_UPDATES_MAX];
	uint32_t	runs;
};

/**
 * fab_order() - order, drop, and join updates
 * @s: the state
 * @update: the ready updates
 * @n: number of @update, at most %FAB_UPDATES_MAX
 * @plan: filled
 *
 * Updates that exceed the bound in any order are dropped; no order drops fewer. Next is
 * an update without slack, else the one with the shortest transfer time to the server at
 * residual rates. Updates are joined at the host that minimises the time to collect them
 * there and to reach the server. A run takes only updates that arrive there no later than
 * a message from there reaches the server.
 */
void fab_order(const struct fab_state *s, const struct fab_update *update,
	       uint32_t n, struct fab_plan *plan);

/**
 * fab_comes_along() - may an update still join the last run?
 * @s: the state
 * @u: the update
 * @at: host that joins the run
 *
 * It may if it keeps its bound after all updates ahead, and arrives in time, as for
 * fab_order().
 */
bool fab_comes_along(const struct fab_state *s, const struct fab_update *u,
		     uint32_t at);

/**
 * struct fab_leg - a run that has not left for the server
 * @n: number of updates
 * @version: version of the model that each of them was computed from
 * @whole: all of them have arrived where they are joined
 * @seconds: time of the transfer to the server, in any unit
 */
struct fab_leg {
	uint32_t	n;
	const uint64_t	*version;
	bool		whole;
	double		seconds;
};

/**
 * fab_late() - find a run that exceeds its bound
 * @version: version of the model
 * @bound: see &struct fab_state
 * @leg: the runs without versions, in the order of their plans
 * @n: number of @leg
 *
 * A plan has no late run. But a run that counts as failed, because its worker failed, may
 * still reach the server, and takes slack from all others. A late run that stays in the
 * list may keep fab_next() from finding any run.
 *
 * Return: the number of the first late run, in the order of the plans, or @n.
 */
uint32_t fab_late(uint64_t version, uint32_t bound, const struct fab_leg *leg, uint32_t n);

/**
 * fab_next() - choose the run that leaves for the server
 * @version: version of the model
 * @bound: see &struct fab_state
 * @leg: the runs without versions, in the order of their plans
 * @n: number of @leg
 *
 * A run may overtake others only if all of those keep their bounds thereafter, in the
 * order of their plans. So other runs wait for a run without slack.
 *
 * Return: the number of the run, or -1 if none may leave now.
 */
int fab_next(uint64_t version, uint32_t bound, const struct fab_leg *leg,
	     uint32_t n);

/** fab_weight() - factor by which the server multiplies an update of this delay */
double fab_weight(uint64_t delay);

/**
 * struct fab_divergence - distance of a replica from its server
 * @max: bound of @open + @sent
 * @open: sum of the norms of the steps since the last model sent to the replica
 * @sent: sum of the norms of the steps in models that are sent and not acknowledged
 */
struct fab_divergence {
	double	max;
	double	open;
	double	sent;
};

/** fab_divergence_fits() - does a step of this norm keep the bound? */
bool fab_divergence_fits(const struct fab_divergence *d, double norm);
/** fab_divergence_step() - add a step */
void fab_divergence_step(struct fab_divergence *d, double norm);
/** fab_divergence_send() - the current model was sent to the replica */
void fab_divergence_send(struct fab_divergence *d);
/** fab_divergence_ack() - the replica has it; no other model was sent meanwhile */
void fab_divergence_ack(struct fab_divergence *d);

#endif /* FABRIC_ORDER_H */
