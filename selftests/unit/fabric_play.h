/* SPDX-License-Identifier: GPL-2.0-only */
/* Starts processes of a fabric over TCP on this host; the test plays the others itself */
#ifndef _UNIT_FABRIC_PLAY_H
#define _UNIT_FABRIC_PLAY_H

#include <arpa/inet.h>
#include <process.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT	5
/* Long enough for a busy machine */
#define HEAR_MS	30000

enum play { SCHEDULE, SERVE, REPLICA, JOIN };

/* Secret of the fabric that was joined last */
static __attribute__((unused)) uint64_t secret_of_all;

/* Set @o and the scheduler's address, of which @at, 32 bytes, gets the text */
static inline void fabric_options(struct options *o, char *at)
{
	const int pid = getpid();

	snprintf(at, 32, "127.%d.%d.%d:%d", 64 + (pid >> 16), pid >> 8 & 255, pid & 255,
		 20000 + pid % 10000);
	*o = (struct options) {
		.transport = "tcp", .workers = 2, .bound = 9, .count = COUNT, .eta = 0.5,
		.timeout_ms = 5000,
	};
	if (dblp_addr_parse(at, &o->scheduler))
		abort();
	o->listen = o->scheduler;
}

static inline pid_t begin(const struct options *o, enum play play)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(9);
	if (play == JOIN)
		_exit(join(o));
	_exit(play == SCHEDULE ? schedule(o) : serve(o, play == REPLICA));
}

/* Start a scheduler and wait until it listens */
static inline pid_t begin_scheduler(const struct options *o)
{
	pid_t pid = begin(o, SCHEDULE);
	struct dblp_fab_conn c;
	int i, err = -1;

	for (i = 0; i < 100 && err; i++) {
		usleep(50000);
		err = dblp_fab_dial(&c, &o->scheduler, IPPROTO_TCP, HEAR_MS);
		dblp_fab_hang_up(&c);
	}
	return pid;
}

/* Stop a process by SIGTERM; returns its status */
static inline int end_well(pid_t pid)
{
	int status;

	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	return status;
}

/* Connect to the scheduler from 127.0.0.0 + @host: addresses identify hosts */
static inline int dial_from(struct dblp_fab_conn *c, const struct options *o, u32 host)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host),
	};

	*c = (struct dblp_fab_conn) { dblp_socket(&o->scheduler, IPPROTO_TCP), IPPROTO_TCP };
	if (bind(c->fd, (struct sockaddr *)&from, sizeof(from)))
		return -errno;
	return dblp_fab_setup(c, 9000) ?: dblp_connect(c->fd, &o->scheduler, 9000);
}

/* Join as @role, with @port for data */
static inline int join_at(struct dblp_fab_conn *c, const struct options *o, u32 host,
			  enum dblp_fab_role role, u32 number, u16 port)
{
	const struct dblp_fab_msg hello = {
		.type = DBLP_FAB_JOIN, .role = role, .from = number, .count = o->count,
		.addr.sdblp_port = port,
	};
	int err = dial_from(c, o, host);

	return err ?: dblp_fab_join(c, &hello, &secret_of_all);
}

/* Join with a port for data on which no socket listens */
static inline int join_as(struct dblp_fab_conn *c, const struct options *o, u32 host,
			  enum dblp_fab_role role, u32 number)
{
	return join_at(c, o, host, role, number, htons(9));
}

static inline int say(const struct dblp_fab_conn *c, enum dblp_fab_type type, u64 run,
		      u32 from, u64 version)
{
	const struct dblp_fab_msg m = {
		.type = type, .run = run, .from = from, .version = version,
		.updates = type == DBLP_FAB_APPLIED,
	};

	return dblp_fab_send(c, &m);
}

/* Receive the next message of this type; -ETIMEDOUT after @ms */
static inline int hear(const struct dblp_fab_conn *c, enum dblp_fab_type type,
		       struct dblp_fab_msg *m, int ms)
{
	const struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	int err;

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	do {
		err = dblp_fab_recv(c, m);
	} while (!err && m->type != type);
	return err;
}

#endif /* _UNIT_FABRIC_PLAY_H */
