/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: internals of a communicator.
 *
 * Threads of the program append operations to the inbox of a communicator. Its
 * engine, a thread that waits for sockets, carries out their steps and owns
 * everything else. &struct dblp_comm says which fields the lock protects.
 *
 *	comm.h		functions that programs call
 *	join.h		finding the other ranks, before the engine starts
 *	control.h	connections to rank 0, which decides which rank has failed
 *	task.h		operations and their steps
 *	link.h		connections for data, and messages on them
 *	transport.h	messages over AF_DBLP or a stream
 *
 * LAYERS lists all files.
 *
 * An allreduce
 *
 *	op.c		checks it, gets its plan from sched.c, appends a request to
 *			the inbox
 *	engine.c	begins it: appends each step to a queue of its link
 *	link.c		connects if this is the higher rank; accept.c accepts
 *	send.c		sends the first step of a queue, message by message, if that
 *			step waits for no other one
 *	receive.c	receives, adds (reduce.c), counts contributions (losses.c)
 *	task.c		ends a step and wakes the steps that wait for it; the last one
 *			ends the request
 *	op.c		dblp_wait() returns the result
 *
 * A failure
 *
 *	failure.c	records it, wherever it is found
 *	control.c	dblp_ctl_agree(), next in the loop: reports it to rank 0, or
 *			rank 0's decision to all ranks
 *	engine.c	ends all operations after the decision
 *
 * Glossary
 *
 *	operation	a call such as dblp_allreduce(), on all ranks; a request
 *			(&struct dblp_req) is the operation on this rank
 *	step		a range of the vector that one rank sends to another, or a local
 *			action, of an operation's plan, see plan.h; a task is a step
 *			with its state
 *	message		a head and at most @message_bytes of data. A step may take several
 *	contribution	a rank's own vector, or a sum of such vectors that is not final
 *	sum		the final sum, which its owner sends to the others
 *	run		consecutive elements with the same number of contributions
 *	link		a connection for data
 *	device		a network interface of &struct dblp_comm_attr, in code "nic"
 *	lane		a set of links, one to each peer over each device
 *	key		number of a vector whose residual and saved budget are kept
 *			from one operation to the next one
 *	late		a rank whose contribution has not arrived within @wait_ms
 *	limit		time limit of an operation; "absent" are the ranks for which it
 *			waited when the limit passed
 *	suspicion	a failure that this rank has found; rank 0 decides which
 *			failure all ranks report
 *	digest		hash of what all ranks must agree on
 */
#ifndef DBLP_ENGINE_H
#define DBLP_ENGINE_H

#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>

#include "comm.h"
#include "control.h"
#include "link.h"
#include "task.h"
#include "transport.h"
#include "util.h"

#define DBLP_NICS_MAX		16
/* Connections of unknown peers at a time, in addition to those of ranks */
#define DBLP_UNKNOWN_PEERS		64
#define DBLP_WHY_TEXT		256
/* Bytes of the secret, of keys derived from it, and of MACs */
#define DBLP_MAC		16
#define DBLP_DIGESTS		256

/**
 * struct dblp_comm - a communicator
 * @attr: attributes, without strings
 * @rank: this rank
 * @nranks: number of ranks
 * @id: random number of the communicator, chosen by rank 0
 * @transport: transport of the data
 * @cc: congestion control of TCP, or ""
 * @n_nics: number of devices
 * @nic: the devices
 * @n_lanes: number of lanes
 * @lane: the lanes; the entry after the last one has defaults, for send and
 *	recv
 * @n_links: links with each rank: lanes x devices, and one for send and recv
 * @has_secret: there is a secret; else @secret is zero
 * @secret: shared by all ranks
 * @data_key: key derived from @secret, for connections for data
 * @port_first: first port to listen at
 * @n_ports: number of ports; 0: any port
 * @table: addresses, by rank and device
 * @epoll: epoll instance of the engine
 * @wake: eventfd that wakes the engine
 * @wake_source: %DBLP_SOURCE_WAKE
 * @ended_fd: eventfd of dblp_comm_fd()
 * @thread: the engine
 * @running: the engine was started
 * @ctl: control connections: on rank 0 by rank, elsewhere [0] to rank 0
 * @n_ctl: their number
 * @suspicion: first failure that this rank has found
 * @suspect_until: when to stop waiting for rank 0's decision about @suspicion,
 *	ns; 0: it was not reported to rank 0
 * @decision: failure that all ranks report
 * @check_at: when to check next which ranks answer, ns
 * @join_listener: rank 0: listening socket for joining ranks, or -1
 * @candidate: rank 0, while ranks join: connections without proof, or NULL
 * @n_candidates: entries of @candidate
 * @left: ranks that have left, in order
 * @n_left: their number
 * @left_at: by rank, when it left, ns, or 0
 * @link: links, by rank, lane and device
 * @woken: links that may be able to send or receive, in order
 * @woken_end: end of @woken
 * @n_connecting: links to which this rank is connecting
 * @pending: connections whose hello has not arrived
 * @n_pending: number of these with an open socket
 * @digest: digests of the last operations, by number
 * @begun: number of the next operation, as the engine knows it
 * @owned: bytes copied for late ranks
 * @reqs: operations with work left for the engine, in order
 * @first: first entry of @reqs that has not ended and involves all ranks, or
 *	NULL
 * @over: operations without work left, to be moved to @done
 * @due: when an entry of @reqs may have late ranks or reach its limit, ns; ~0:
 *	never
 * @has_late: an entry of @reqs has continued without late ranks
 * @querying: a question about the operation of @late is open: rank 0 has asked
 *	all ranks, or this rank has asked rank 0
 * @query_until: timeout of that question, ns
 * @late: message about that operation
 * @sched: the last plans; protected by the lock
 * @key: state kept by key; protected by the lock
 * @next_comm: next communicator of this process
 * @files: descriptors that it may open; protected by the lock of process.c
 * @describe: text of dblp_comm_describe()
 * @why: text of dblp_comm_why(); constant once it is set
 * @lock: protects the fields below, unless stated otherwise
 * @cond: signalled when an operation has ended
 * @quit: the engine should end
 * @abort: positive errno of dblp_comm_abort(), or 0
 * @error: negative errno; 0: the communicator works
 * @failed_rank: rank that has failed, or -1
 * @absent: ranks for which an operation waited when its limit passed
 * @n_accepted: links that higher ranks have connected
 * @seq: number of the next operation
 * @inbox: operations that the engine has not taken
 * @done: operations that only wait for dblp_wait()
 * @stats: counters
 */
struct dblp_comm {
	struct dblp_comm_attr		attr;
	uint32_t			rank;
	uint32_t			nranks;
	uint64_t			id;
	const struct dblp_transport	*transport;
	char				cc[16];
	uint32_t			n_nics;
	struct dblp_nic			nic[DBLP_NICS_MAX];
	uint32_t			n_lanes;
	struct dblp_lane		lane[DBLP_LANES_MAX + 1];
	uint32_t			n_links;
	bool				has_secret;
	uint8_t				secret[DBLP_MAC];
	uint8_t				data_key[DBLP_MAC];
	uint16_t			port_first;
	uint32_t			n_ports;
	struct sockaddr_dblp		*table;
	int				epoll;
	int				wake;
	enum dblp_source		wake_source;
	int				ended_fd;
	pthread_t			thread;
	bool				running;
	struct dblp_ctlconn		*ctl;
	uint32_t			n_ctl;
	struct dblp_failure		suspicion;
	uint64_t			suspect_until;
	struct dblp_failure		decision;
	uint64_t			check_at;
	int				join_listener;
	struct dblp_candidate		*candidate;
	uint32_t			n_candidates;
	uint32_t			*left;
	uint32_t			n_left;
	uint64_t			*left_at;
	struct dblp_link		*link;
	struct dblp_link		*woken;
	struct dblp_link		**woken_end;
	uint32_t			n_connecting;
	struct dblp_pending		*pending;
	uint32_t			n_pending;
	uint32_t			n_accepted;
	uint64_t			digest[DBLP_DIGESTS];
	uint32_t			begun;
	size_t				owned;
	struct dblp_reqs		reqs;
	struct dblp_req			*first;
	struct dblp_reqs		over;
	uint64_t			due;
	bool				has_late;
	bool				querying;
	uint64_t			query_until;
	struct dblp_ctl			late;
	struct dblp_sched		*sched[8];
	struct dblp_key			*key;
	struct dblp_comm		*next_comm;
	uint64_t			files;
	char				describe[256];
	char				why[DBLP_WHY_TEXT];

	pthread_mutex_t			lock;
	pthread_cond_t			cond;
	bool				quit;
	uint32_t			abort;
	int				error;
	int32_t				failed_rank;
	struct dblp_absent		absent;
	uint32_t			seq;
	struct dblp_reqs		inbox;
	struct dblp_reqs		done;
	struct dblp_comm_stats		stats;
};

/** dblp_link_of() - link @i with a rank: lane x devices + device */
static inline struct dblp_link *dblp_link_of(const struct dblp_comm *comm,
					     uint32_t rank, uint32_t i)
{
	return &comm->link[(size_t)rank * comm->n_links + i];
}

static inline uint32_t dblp_link_index(const struct dblp_link *l)
{
	return l->lane * l->comm->n_nics + l->nic;
}

static inline struct dblp_comm *dblp_task_comm(const struct dblp_task *t)
{
	return t->req->comm;
}

static inline struct dblp_way dblp_task_way(const struct dblp_task *t)
{
	const struct dblp_sched *s = t->req->sched;

	return s->way[t->step - s->step];
}

/** dblp_pair_link() - the link for send and recv */
static inline struct dblp_link *dblp_pair_link(const struct dblp_comm *comm,
					       uint32_t rank)
{
	return dblp_link_of(comm, rank, comm->n_links - 1);
}

static inline struct dblp_link *dblp_task_link(const struct dblp_task *t)
{
	const struct dblp_comm *comm = dblp_task_comm(t);

	if (t->req->peer >= 0)
		return dblp_pair_link(comm, (uint32_t)t->req->peer);
	return dblp_link_of(comm, t->step->peer,
			    dblp_task_way(t).lane * comm->n_nics +
			    t->step->lane % comm->n_nics);
}

/** dblp_is_sparse() - do its messages carry packed vectors, without some elements? */
static inline bool dblp_is_sparse(const struct dblp_task *t)
{
	return t->req->op.flags & DBLP_OP_SPARSE || dblp_task_way(t).choice;
}

/** dblp_keeps() - may messages of this step lose sums? */
static inline bool dblp_keeps(const struct dblp_task *t)
{
	return t->step->reliable && t->req->op.flags & DBLP_OP_KEEP;
}

/** dblp_repairs() - are lost elements of this step repaired in the next operation? */
static inline bool dblp_repairs(const struct dblp_task *t)
{
	return t->step->reliable && t->req->op.flags & DBLP_OP_REPAIR;
}

/*
 * dblp_loss_of() - loss map @m of a message of @count elements, packed as
 *	@sparse says
 */
static inline struct dblp_loss dblp_loss_of(const struct dblp_msg *m,
					    uint32_t esize, uint64_t count,
					    const struct dblp_sparse *sparse)
{
	return (struct dblp_loss) {
		.range = m->range,
		.n = m->n,
		.head = DBLP_HEAD_LEN + (sparse ?
			(uint32_t)dblp_sparse_front(count, sparse->shift) : 0),
		.esize = esize,
		.count = sparse ? sparse->packed : count,
		.sparse = sparse,
	};
}

/** dblp_task_data() - address of the elements of the next message of a step */
static inline char *dblp_task_data(const struct dblp_task *t)
{
	if (t->own)
		return t->own + (t->done - t->own_from) * t->req->esize;
	return t->req->buf + (t->step->offset + t->done) * t->req->esize;
}

/** dblp_task_part() - number of elements of the next message of a step */
static inline uint64_t dblp_task_part(const struct dblp_task *t)
{
	uint64_t most = dblp_task_comm(t)->attr.message_bytes / t->req->esize;
	uint64_t left = t->step->count - t->done;

	return left < most ? left : most;
}

/** dblp_task_range() - elements of the next message of a step */
static inline struct dblp_span dblp_task_range(const struct dblp_task *t)
{
	const uint64_t first = t->step->offset + t->done;

	return (struct dblp_span) { first, first + dblp_task_part(t) };
}

/*
 * dblp_link_bytes() - bytes of elements in the next message of a step, packed
 *	or not
 */
static inline uint32_t dblp_link_bytes(const struct dblp_link *l,
				       const struct dblp_task *t)
{
	return (uint32_t)(dblp_is_sparse(t) ? l->out.sparse.packed :
			  dblp_task_part(t)) * t->req->esize;
}

/** dblp_queue_add() - append a task */
static inline void dblp_queue_add(struct dblp_queue *q, struct dblp_task *t)
{
	*q->end = t;
	q->end = &t->next;
}

/** dblp_queue_pop() - remove the first task */
static inline void dblp_queue_pop(struct dblp_queue *q)
{
	q->first = q->first->next;
	if (!q->first)
		q->end = &q->first;
}

/** dblp_has_failure() - is there a recorded failure on which to act? */
static inline bool dblp_has_failure(const struct dblp_comm *comm)
{
	return !comm->error && (comm->decision.is_set ||
				(comm->suspicion.is_set && !comm->suspect_until));
}

/* util.c */

/** dblp_comm_count() - increment a field of @stats; takes the lock */
void dblp_comm_count(struct dblp_comm *comm, uint64_t *field);

/* attr.c */

/** dblp_attr_set() - take and check attributes; 0 or a negative errno */
int dblp_attr_set(struct dblp_comm *comm, const struct dblp_comm_attr *attr);

/* why.c */

/**
 * dblp_why() - describe why this thread's dblp_comm_open() fails
 * @error: negative errno
 * @format: as printf(). Only the first text after dblp_why_clear() is kept,
 *	because it is closest to the cause
 *
 * Return: @error.
 */
int dblp_why(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void dblp_why_clear(void);
/** dblp_comm_explain() - describe why a communicator fails; without the lock */
void dblp_comm_explain(struct dblp_comm *comm, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* secret.c */

/*
 * dblp_secret_take() - get the secret from @attr or the environment; 0 or a
 *	negative errno
 */
int dblp_secret_take(struct dblp_comm *comm);
/** dblp_mac() - SipHash-2-4 of 128 bits */
void dblp_mac(const uint8_t key[DBLP_MAC], const void *data, size_t len,
	      uint8_t mac[DBLP_MAC]);
/** dblp_mac_64() - the first 64 bits of dblp_mac() */
uint64_t dblp_mac_64(const uint8_t key[DBLP_MAC], const void *data, size_t len);
/** dblp_is_equal() - compare in constant time */
bool dblp_is_equal(const void *a, const void *b, size_t len);
/* dblp_lock_data() - authenticate a "dblp" socket, if @attr.authenticate says so */
int dblp_lock_data(const struct dblp_comm *comm, int fd);

/* process.c */

/** dblp_process_add() - close the sockets of @comm in children; 0 or a negative errno */
int dblp_process_add(struct dblp_comm *comm);
void dblp_process_del(struct dblp_comm *comm);
/*
 * dblp_process_reserve() - raise the limit of open files as the communicators of
 *	this process need; 0 or a negative errno
 */
int dblp_process_reserve(struct dblp_comm *comm);

/* join.c, admit.c, listen.c, device.c */

/**
 * dblp_join() - join rank 0
 * @comm: the communicator
 * @until: timeout, ns
 *
 * Fills @ctl, @table and @id.
 *
 * Return: 0 or a negative errno.
 */
int dblp_join(struct dblp_comm *comm, uint64_t until);
/** dblp_admit() - rank 0: wait until all ranks have joined; as dblp_join() */
int dblp_admit(struct dblp_comm *comm, uint64_t until);
/** dblp_ports_parse() - parse the range of ports of @attr; 0 or -EINVAL */
int dblp_ports_parse(struct dblp_comm *comm);
/*
 * dblp_device_is_inner() - by its name, is the device part of a network inside
 *	this host?
 */
bool dblp_device_is_inner(const char *name);
/*
 * dblp_bind_device() - bind a socket to @nic, if it has a name; 0 or a negative
 *	errno
 */
int dblp_bind_device(const struct dblp_nic *nic, int fd);

/* engine.c */

/** dblp_engine() - main function of the engine's thread */
void *dblp_engine(void *comm);
/** dblp_engine_wake() - the program has something for the engine */
void dblp_engine_wake(struct dblp_comm *comm);
/** dblp_engine_agree() - act on recorded failures, which may end all operations */
void dblp_engine_agree(struct dblp_comm *comm);
/** dblp_link_event() - handle epoll events */
void dblp_link_event(struct dblp_link *l, uint32_t events);

#endif /* DBLP_ENGINE_H */
