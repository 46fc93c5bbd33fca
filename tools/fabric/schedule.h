/* SPDX-License-Identifier: GPL-2.0-only */
/* The inside of the scheduler: schedule.c hears, runs.c decides. */
#ifndef FABRIC_SCHEDULE_H
#define FABRIC_SCHEDULE_H

#include "process.h"
#include "rates.h"

/* Servers, replicas, and hosts that join updates */
#define OTHERS_MAX	1024
/* Hosts whose rates are remembered */
#define HOSTS_MAX	(DBLP_FAB_WORKERS_MAX + OTHERS_MAX)

/* Where a worker's update is */
enum place {
	NOWHERE,
	READY,
	PLANNED,
	ON_ITS_WAY,
	THERE,
};

/* Somebody who has connected */
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
	/* A worker's update */
	enum place		place;
	uint64_t		version;
	uint64_t		ready;
	struct run		*run;
	double			used;
	bool			again;
};

/* An update of a run; its worker may have left when it has come to where it is joined */
struct part {
	struct peer		*worker;
	uint64_t		version;
};

/* Updates that reach the server as one message; in the order of their plans */
struct run {
	struct run		*next;
	uint64_t		id;
	struct peer		*at;
	bool			leaves;
	uint32_t		n;
	struct part		part[DBLP_FAB_WORKERS_MAX];
};

/* What has happened */
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

/** now_ns() - time that nobody sets */
uint64_t now_ns(void);
/** tell() - send a message; who has no room for it does not read, and is lost */
void tell(struct peer *p, const struct dblp_fab_msg *m);
/** next_peer() - who has this role, from @i on; @i is behind it then. NULL: nobody else */
struct peer *next_peer(const struct scheduler *s, enum dblp_fab_role role, uint32_t *i);
/** find_run() - by its number, or NULL */
struct run *find_run(const struct scheduler *s, uint64_t id);
/** leaving() - updates that may be applied although nobody has told us yet */
uint32_t leaving(const struct scheduler *s);
/** stop_using() - a worker's update has come, or never will */
void stop_using(struct scheduler *s, struct peer *w);
/** take_back() - a worker's run has ended; it may be ready again */
void take_back(struct peer *w, bool ready);
/** free_run() - after all its workers were taken back */
void free_run(struct scheduler *s, struct run *run);
/** fail_run() - a run will not reach the server */
void fail_run(struct scheduler *s, struct run *run, bool tell_joiner);
/** joiner_at() - who joins updates at a host, or NULL */
struct peer *joiner_at(const struct scheduler *s, uint32_t host);
/** act() - plan, and send what can go; sets @wait_ms to when to look again at the latest */
void act(struct scheduler *s);

#endif /* FABRIC_SCHEDULE_H */
