/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the scheduler of asynchronous updates decides. Pure: no sockets, no clock; the same
 * numbers in are the same decision out.
 *
 * An update goes in two steps: to the host at which a run of updates is joined, and from
 * there, as one message, to the server. A run gets its versions, and with them the delays
 * of its updates, when it leaves for the server; only one run is on that leg at a time. So
 * two decisions are to be made: fab_order() says which updates that are ready are sent,
 * and where to, and fab_next() which run leaves next.
 */
#ifndef FABRIC_ORDER_H
#define FABRIC_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* FAB_UPDATES_MAX - the most updates in one plan */
#define FAB_UPDATES_MAX	1024

/* FAB_DIRECT - as @at of a run: it goes to the server as it is */
#define FAB_DIRECT	UINT32_MAX

/**
 * struct fab_host - a host's network device
 * @tx: residual rate of what it sends, bytes a second
 * @rx: residual rate of what it receives
 * @joins: it can join updates
 */
struct fab_host {
	double	tx;
	double	rx;
	bool	joins;
};

/**
 * struct fab_update - an update that is ready
 * @host: where it is
 * @version: of the model that it was computed from
 * @since: when it got ready; the older one goes first if nothing else decides
 */
struct fab_update {
	uint32_t	host;
	uint64_t	version;
	uint64_t	since;
};

/**
 * struct fab_state - what is known of the rest
 * @version: of the model, with what is on its way from the last host to the server
 * @ahead: updates that were sent and have no version yet
 * @bound: the most updates that may be applied between reading a model and applying
 *	what was computed from it
 * @bytes: of an update
 * @server: host of the server
 * @hosts: number of hosts
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
 * @first: place of the first one in the order
 * @n: how many
 * @at: host that joins them, or %FAB_DIRECT
 */
struct fab_run {
	uint32_t	first;
	uint32_t	n;
	uint32_t	at;
};

/**
 * struct fab_plan - a decision
 * @order: numbers of the updates that are sent, in order; behind them those that are
 *	dropped
 * @sent: how many are sent
 * @run: contiguous parts of what is sent, in order
 * @runs: how many
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
 * @update: those that are ready
 * @n: how many, at most %FAB_UPDATES_MAX
 * @plan: filled
 *
 * Dropped is what would be applied beyond its bound even in the best order: no order
 * drops fewer. Of the others goes first what has no slack left, then what is at the
 * server soonest, by the least residual rate on its way. They are joined where they are
 * together and at the server soonest, but those that come there later than another message
 * comes from there to the server.
 */
void fab_order(const struct fab_state *s, const struct fab_update *update,
	       uint32_t n, struct fab_plan *plan);

/**
 * fab_comes_along() - may an update still be joined to the last run?
 * @s: the state
 * @u: the update
 * @at: host that joins the run
 *
 * It may if it keeps its bound behind all that were sent, and comes there in time, as for
 * fab_order().
 */
bool fab_comes_along(const struct fab_state *s, const struct fab_update *u,
		     uint32_t at);

/**
 * struct fab_leg - a run on its way
 * @n: number of updates
 * @version: of the model that each of them was computed from
 * @whole: all of them have come to where they are joined
 * @seconds: how long the rest of the way takes
 */
struct fab_leg {
	uint32_t	n;
	const uint64_t	*version;
	bool		whole;
	double		seconds;
};

/**
 * fab_late() - which run cannot keep its bound any more?
 * @version: of the model
 * @bound: see &struct fab_state
 * @leg: the runs without versions, in the order of their plans
 * @n: how many
 *
 * None can be late by its plan. But a run that was thought to have failed, as its worker
 * has, may come to the server, and then all others have less slack than was planned. Where
 * such runs are left, fab_next() may find none that can go, for ever.
 *
 * Return: the number of the first run that is late in the order of their plans, or @n.
 */
uint32_t fab_late(uint64_t version, uint32_t bound, const struct fab_leg *leg, uint32_t n);

/**
 * fab_next() - which run leaves for the server?
 * @version: of the model
 * @bound: see &struct fab_state
 * @leg: the runs without versions, in the order of their plans
 * @n: how many
 *
 * A run may go before others if, thereafter, all can keep their bound in the order of
 * their plans. So what has no slack goes first, and is waited for.
 *
 * Return: the number of the run, or -1: none now.
 */
int fab_next(uint64_t version, uint32_t bound, const struct fab_leg *leg,
	     uint32_t n);

/** fab_weight() - what the server multiplies an update of this delay with */
double fab_weight(uint64_t delay);

/**
 * struct fab_divergence - how far a replica may be behind its server
 * @max: the most that the sum of @open and @sent may be
 * @open: sum of the norms of the steps that were made since the last one that was sent
 * @sent: the same of what was sent and is not acknowledged
 */
struct fab_divergence {
	double	max;
	double	open;
	double	sent;
};

/** fab_divergence_fits() - may a step of this norm be made now? */
bool fab_divergence_fits(const struct fab_divergence *d, double norm);
/** fab_divergence_step() - it was made */
void fab_divergence_step(struct fab_divergence *d, double norm);
/** fab_divergence_send() - the model as it is now was sent */
void fab_divergence_send(struct fab_divergence *d);
/** fab_divergence_ack() - it has come; nothing else was sent meanwhile */
void fab_divergence_ack(struct fab_divergence *d);

#endif /* FABRIC_ORDER_H */
