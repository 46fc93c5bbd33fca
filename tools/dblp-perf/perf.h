/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dblp-perf: the same message workloads over AF_DBLP, TCP and SCTP.
 *
 * The listening end of a run is one process in one namespace. The connecting end is
 * one process per connection (mode idle: one for all), in one or more namespaces,
 * which stand for hosts. Mode collective has only connecting ends, its ranks.
 * Processes write their results to shared memory, and their parent prints them.
 * Each end can also run alone, on its own machine.
 *
 * Every failure ends the program, because the results would be useless.
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
	EXIT_FAILED	= 1,	/* the run failed */
	EXIT_USAGE	= 2,	/* the command line is wrong */
	EXIT_MISSING	= 4,	/* this kernel does not support the run */
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
 * @address: address of the listening end
 * @port: port of the listening end, host byte order; mode share also uses the next one
 * @listens: this program starts the listening end
 * @connects: this program starts the connecting ends
 * @per_host: connections of each host; mode share: of each side
 * @size: bytes of a message
 * @count: measured messages or rounds
 * @warmup: messages or rounds before the measured ones; mode share: ms
 * @time_ms: modes share and idle: duration of the measurement
 * @budget: loss budget of the connecting end's messages, ppm
 * @has_budget: @budget was given
 * @policy: enum dblp_policy of these messages, negative: the kernel's default
 * @order: enum dblp_order of these messages, negative: the kernel's default
 * @spray: ports that each end sends from, 0: the kernel's default
 * @key: authentication key of both ends, NULL: none
 * @buffer: SO_SNDBUF and SO_RCVBUF in bytes, 0: the kernel's default
 * @hook: mode fanin: command before each measured round, NULL: none
 * @seed: seed of the contents
 * @verify: check every delivered byte
 * @timeout_ms: time after which the run fails
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
	uint32_t		time_ms;
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
	uint32_t		timeout_ms;
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
 * struct timers - timers that expired during a measurement
 * @known: the other fields are valid: the kernel allowed tracing
 * @n: number of entries in @timer
 * @timer: expirations by function
 */
struct timers {
	bool			known;
	unsigned int		n;
	struct timer_count	timer[MAX_TIMERS];
};

/** struct memory - memory in use, bytes */
struct memory {
	uint64_t	used;
	uint64_t	slab;
};

#define UNKNOWN		UINT64_MAX

/**
 * struct results - results of a run
 * @valid: this process or a child has measured; the other fields are valid
 * @cc: congestion control used, of cfg.main and cfg.other
 * @started_ns: start of the measurement, CLOCK_MONOTONIC
 * @elapsed_ns: duration of the measurement
 * @busy_ns: non-idle time of all CPUs during the measurement, or UNKNOWN
 * @sent: bytes that the connecting ends on this machine sent, with the warm-up;
 *	mode collective: bytes that all ranks sent in measured rounds, with headers
 *	of libdblp
 * @delivered: delivered bytes of measured messages
 * @missing: missing bytes of measured messages
 * @asked: mode collective: bytes of contributions that all ranks were to receive
 * @late_ranks: mode collective: how often a rank continued without another one
 * @early: measured messages with bytes missing
 * @side: mode share: bytes that each side delivered
 * @memory: mode idle: memory before and with the connections
 * @timers: mode idle: timers before and with the connections
 * @n: number of samples
 * @sample: duration of each message or round, ns
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
 * @one_connector: one process opens all connections
 * @prepare: called before processes are started; optional
 * @listen: run the listening end
 * @connect: run process @index of the connecting end
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

/* run.c */

extern struct config cfg;
extern struct results *results;

/** ready_pipe - listening() writes a byte to it */
extern int ready_pipe[2];

/** total_connections() - number of connections of the run; mode share: of both sides */
unsigned int total_connections(void);

/** listening() - the listening end listens: start the connecting ends */
void listening(void);

/** span_begin() - start measuring results->elapsed_ns and results->busy_ns */
void span_begin(void);
/** span_end() - end the measurement that span_begin() started */
void span_end(void);

/* report.c */

/** report() - print the results */
void report(void);

/** report_samples() - print quantiles of results->n samples, as a JSON member or a line */
void report_samples(const uint64_t *sample);

/* system.c */

/** now_ns() - CLOCK_MONOTONIC */
uint64_t now_ns(void);

/**
 * idle_ns() - idle time of all CPUs of this machine since boot
 *
 * Return: nanoseconds, or UNKNOWN if the kernel does not report it.
 */
uint64_t idle_ns(void);

/** cpus() - number of online CPUs */
unsigned int cpus(void);

/** netns_enter() - move to another namespace, or fail; see dblp_netns_enter() */
void netns_enter(const char *name);

/** want_files() - raise the limit of open files to @n */
void want_files(unsigned int n);

/** read_memory() - memory in use now */
void read_memory(struct memory *m);

/** count_timers() - count the timers that expire in the next @ms milliseconds */
void count_timers(struct timers *t, uint32_t ms);

void *xcalloc(size_t n, size_t size);
void sleep_ns(uint64_t ns);

/** fail() - print a message, with strerror() if errno is set, and exit */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/** lacking() - as fail(), with exit status EXIT_MISSING */
void lacking(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

#endif /* DBLP_PERF_H */
