/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside the scheduler: schedule.c handles messages, runs.c makes decisions. */
#ifndef FABRIC_SCHEDULE_H
#define FABRIC_SCHEDULE_H

#include "process.h"
#include "rates.h"

/* Servers, replicas, and hosts that join updates */
#define OTHERS_MAX	1024
/* Hosts whose rates are kept */
#define HOSTS_MAX	(DBLP_FAB_WORKERS_MAX + OTHERS_MAX)

/* State of a worker's update */
enum place {
	NOWHERE,
	READY,
	PLANNED,
	ON_ITS_WAY,
	THERE,
};

/* A connected process; @known after it has joined */
struct peer {
	struct dblp_fab_conn	conn;
	uint64_t		since;
	struct dblp_fab_msg	in;
	size_t			got;
	bool			known;
	uint8_t			role;
	uint32_t		number;
	uint32_t		host;
	struct sockaddr_dblp	addr;
	/*
	 * Update of a worker; @again: the next one is ready before APPLIED for this one
	 */
	enum place		place;
	uint64_t		version;
	uint64_t		ready;
	struct run		*run;
	double			used;
	bool			again;
};

/* An update of a run. @worker is NULL if it left after its update had arrived */
struct part {
	struct peer		*worker;
	uint64_t		version;
};

/* Updates that reach the server as one message; a list in the order of the plans */
struct run {
	struct run		*next;
	uint64_t		id;
	struct peer		*at;
	bool			leaves;
	uint32_t		n;
	struct part		part[DBLP_FAB_WORKERS_MAX];
};

/* Counters that the scheduler prints at its end */
struct counters {
	uint64_t	applied;
	uint64_t	dropped;
	uint64_t	runs;
	uint64_t	joined;
	uint64_t	failed;
	uint64_t	refused;
	uint64_t	strangers;
	uint64_t	takeovers;
};

struct scheduler {
	const struct options	*o;
	int			listener;
	bool			deaf;
	uint64_t		secret;
	uint32_t		n_peers;
	uint32_t		room;
	struct peer		**peer;
	struct pollfd		*poll;
	struct in6_addr		*host;
	struct rates		rates;
	struct run		*runs;
	struct peer		*server;
	struct peer		*replica;
	uint64_t		version;
	uint64_t		last_run;
	uint64_t		events;
	uint64_t		idle_since;
	bool			held;
	int			wait_ms;
	struct counters		count;
};

#define NS		1000000000ULL

/** now_ns() - monotonic time */
uint64_t now_ns(void);
/** tell() - send a message; a process that does not read its messages is disconnected */
void tell(struct peer *p, const struct dblp_fab_msg *m);
/** next_peer() - next process with this role, from index @i on; advances @i. NULL: none */
struct peer *next_peer(const struct scheduler *s, enum dblp_fab_role role, uint32_t *i);
/** find_run() - run with number @id, or NULL */
struct run *find_run(const struct scheduler *s, uint64_t id);
/** leaving() - updates on their way to the server, which may already be applied */
uint32_t leaving(const struct scheduler *s);
/** stop_using() - release the rate reserved for a worker's update */
void stop_using(struct scheduler *s, struct peer *w);
/** take_back() - remove a worker's update from its run; @ready: it needs a new plan */
void take_back(struct peer *w, bool ready);
/** free_run() - free a run after take_back() for all its workers */
void free_run(struct scheduler *s, struct run *run);
/** fail_run() - end a run that will not reach the server */
void fail_run(struct scheduler *s, struct run *run, bool tell_joiner);
/** joiner_at() - process that joins updates at @host, or NULL */
struct peer *joiner_at(const struct scheduler *s, uint32_t host);
/** act() - plan and send updates; sets @wait_ms, the time limit of the next call */
void act(struct scheduler *s);

#endif /* FABRIC_SCHEDULE_H */
