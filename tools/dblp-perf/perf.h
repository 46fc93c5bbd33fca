/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dblp-perf: the same message workloads over AF_DBLP, TCP and SCTP.
 *
 * A run has two ends: the listening end is one process in one namespace, the
 * connecting end is one process for each connection (mode idle: one for all),
 * in one or more namespaces, which stand for hosts. Mode collective has only
 * connecting ends, its ranks. Whatever is measured lands
 * in memory that the processes share, and is printed by the one that has
 * started them. Each end can also be started alone, on its own machine.
 *
 * A failure ends the program: there is nothing to be measured then.
 */
#ifndef DBLP_PERF_H
#define DBLP_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct conn;
struct mode;
struct proto;

/** enum exit_status - exit statuses other than 0 */
enum exit_status {
	EXIT_FAILED	= 1,	/* the run has failed */
	EXIT_USAGE	= 2,	/* the command line is wrong */
	EXIT_MISSING	= 4,	/* this kernel lacks what the run needs */
};

#define MAX_HOSTS	1024

/**
 * struct flavour - a transport and its congestion control
 * @proto: the transport
 * @cc: name of the congestion control, NULL: the kernel's default
 */
struct flavour {
	const struct proto	*proto;
	const char		*cc;
};

/**
 * struct config - the command line
 * @mode: the workload
 * @main: the transport
 * @other: mode share: the other side's transport
 * @to: namespace of the listening end, NULL: this one
 * @from: namespaces of the connecting ends
 * @n_from: number of namespaces, at least 1 (NULL: this one)
 * @address: of the listening end
 * @port: of the listening end, host byte order; mode share uses the next one, too
 * @listens: this program starts the listening end
 * @connects: this program starts the connecting ends
 * @per_host: connections of each host, in mode share of each side
 * @size: bytes of a message
 * @count: messages or rounds that are measured
 * @warmup: messages or rounds before them; in mode share seconds
 * @seconds: modes share and idle: duration of the measurement
 * @budget: ppm, of the messages of the connecting end
 * @has_budget: it was given
 * @policy: enum dblp_policy of those, negative: the kernel's default
 * @order: enum dblp_order of those, negative: the kernel's default
 * @spray: ports that each end sends from, 0: the kernel's default
 * @key: key of both ends, NULL: none
 * @buffer: bytes, SO_SNDBUF and SO_RCVBUF, 0: the kernel's default
 * @hook: mode fanin: command before each measured round, NULL: none
 * @seed: of the contents
 * @verify: check every byte that is delivered
 * @timeout: seconds after which the run has failed
 * @json: print one JSON object
 * @samples: include all samples
 */
struct config {
	const struct mode	*mode;
	struct flavour		main;
	struct flavour		other;
	const char		*to;
	const char		*from[MAX_HOSTS];
	unsigned int		n_from;
	const char		*address;
	unsigned int		port;
	bool			listens;
	bool			connects;
	unsigned int		per_host;
	uint32_t		size;
	uint32_t		count;
	uint32_t		warmup;
	unsigned int		seconds;
	uint32_t		budget;
	bool			has_budget;
	int			policy;
	int			order;
	uint32_t		spray;
	const struct dblp_auth_key *key;
	unsigned int		buffer;
	const char		*hook;
	uint64_t		seed;
	bool			verify;
	unsigned int		timeout;
	bool			json;
	bool			samples;
};

#define MAX_TIMERS	64

/**
 * struct timer_count - how often the kernel ran one timer function
 * @name: symbol, followed by " [module]" if it belongs to one
 * @count: expirations
 */
struct timer_count {
	char		name[80];
	uint64_t	count;
};

/**
 * struct timers - timers that expired in a span of time
 * @known: the kernel could be asked
 * @n: entries of @timer
 * @timer: by function
 */
struct timers {
	bool			known;
	unsigned int		n;
	struct timer_count	timer[MAX_TIMERS];
};

/** struct memory - what the kernel uses, bytes */
struct memory {
	uint64_t	used;
	uint64_t	slab;
};

#define UNKNOWN		UINT64_MAX

/**
 * struct results - what a run has measured
 * @valid: anything was measured here
 * @cc: congestion control that was used, of @main and @other
 * @started_ns: when that which was measured began, CLOCK_MONOTONIC
 * @elapsed_ns: of all that was measured
 * @busy_ns: in which the machine's CPUs were not idle, or UNKNOWN
 * @sent: bytes of measured messages that the connecting ends have sent, if
 *	they run here, warm-up counted; mode collective: that all ranks have sent in
 *	measured rounds, with what stands before the elements
 * @delivered: bytes of measured messages that were delivered
 * @missing: bytes of measured messages that were not
 * @asked: mode collective: bytes of contributions that all ranks should have received
 * @late_ranks: mode collective: ranks that others went on without, of all rounds and ranks
 * @early: measured messages with bytes missing
 * @side: mode share: bytes that each side delivered
 * @memory: mode idle: before and with the connections
 * @timers: mode idle: before and with the connections
 * @n: samples
 * @sample: nanoseconds of each message or round
 */
struct results {
	bool		valid;
	char		cc[2][16];
	uint64_t	started_ns;
	uint64_t	elapsed_ns;
	uint64_t	busy_ns;
	uint64_t	sent;
	uint64_t	delivered;
	uint64_t	missing;
	uint64_t	asked;
	uint64_t	late_ranks;
	uint64_t	early;
	uint64_t	side[2];
	struct memory	memory[2];
	struct timers	timers[2];
	uint32_t	n;
	uint64_t	sample[];
};

/**
 * struct mode - a workload
 * @name: on the command line
 * @summary: for --help
 * @one_connector: one process makes all connections
 * @prepare: called before there are processes; optional
 * @listen: the listening end
 * @connect: the connecting end; @index tells the processes of it apart
 */
struct mode {
	const char	*name;
	const char	*summary;
	bool		one_connector;
	void		(*prepare)(void);
	void		(*listen)(void);
	void		(*connect)(unsigned int index);
};

extern const struct mode mode_bulk, mode_fanin, mode_rr, mode_latency,
			 mode_idle, mode_share, mode_collective;

extern struct config cfg;
extern struct results *results;

/** total_connections() - of the run, both sides of mode share together */
unsigned int total_connections(void);

/** listening() - the listening end can be connected to: start the others */
void listening(void);

/* report.c */

/** report() - print the results */
void report(void);

/** report_samples() - print the quantiles of results->n, within a line of JSON or as a line */
void report_samples(const uint64_t *sample);

/* system.c */

/** now_ns() - CLOCK_MONOTONIC */
uint64_t now_ns(void);

/**
 * idle_ns() - time this machine's CPUs have been idle for, summed up
 *
 * Return: nanoseconds, or UNKNOWN if the kernel does not tell.
 */
uint64_t idle_ns(void);

/** cpus() - number of those that are online */
unsigned int cpus(void);

/** span_begin() - what is measured begins here: elapsed_ns and busy_ns count */
void span_begin(void);
/** span_end() - to here */
void span_end(void);

/** netns_enter() - move to another namespace, as dblp_netns_enter() */
void netns_enter(const char *name);

/** want_files() - have room for @n open files */
void want_files(unsigned int n);

/** read_memory() - what the kernel uses now */
void read_memory(struct memory *m);

/** count_timers() - wait for some seconds and count the timers that expire */
void count_timers(struct timers *t, unsigned int seconds);

void *xcalloc(size_t n, size_t size);
void sleep_ns(uint64_t ns);

#endif /* DBLP_PERF_H */
