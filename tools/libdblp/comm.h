/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: communicators, which carry out collective operations between ranks.
 *
 * A communicator has a thread of its own, which sends, receives and adds. Functions
 * return 0 or a negative errno; none prints or ends the program. Threads may call them
 * at the same time, for one communicator, too, but for dblp_comm_close(); operations
 * have to begin in the same order on all ranks.
 *
 * When a rank fails or ranks disagree, the communicator fails on all of them, with the
 * same error and the same rank in &struct dblp_result: rank 0 decides which. Only what
 * ended before has ended well; a failed communicator can only be closed.
 *
 * After fork() the child has no communicators; it must not call these functions for
 * those of its parent.
 *
 * Structures that programs fill begin with their size, so that they can grow: zero
 * them, set @size, and what is left 0 is the default. Of those that are filled for them
 * the size is an argument.
 */
#ifndef DBLP_COMM_H
#define DBLP_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "collective.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dblp_comm;
struct dblp_req;

/** DBLP_COMM_RANK_ENV - as @rank and @nranks: what the environment says */
#define DBLP_COMM_RANK_ENV	(-1)

/** DBLP_COMM_BYTES - default of @message_bytes */
#define DBLP_COMM_BYTES		(1U << 20)

/**
 * DBLP_THREAD_NAME - the thread of a communicator has this name, followed by the rank, so
 *	that tools such as dblpctl(8) know which rank a process is
 */
#define DBLP_THREAD_NAME	"dblp-rank-"

/** DBLP_ABSENT_RANKS - the most ranks that dblp_comm_absent() names */
#define DBLP_ABSENT_RANKS	12

/** DBLP_LANES_MAX - the most lanes of a communicator */
#define DBLP_LANES_MAX		8

/**
 * enum dblp_lane_flags - flags of a lane
 * @DBLP_LANE_BUDGET: @budget is set, and counts instead of that of operations; but where
 *	that is 0 nothing is lost
 * @DBLP_LANE_POLICY: @policy is set, and counts instead of that of operations
 * @DBLP_LANE_NOT_ECT: data is not ECT(0), so that queues which mark drop it instead
 *	("dblp" only, see %DBLP_ECT)
 */
enum dblp_lane_flags {
	DBLP_LANE_BUDGET	= 1 << 0,
	DBLP_LANE_POLICY	= 1 << 1,
	DBLP_LANE_NOT_ECT	= 1 << 2,
};

/**
 * struct dblp_lane - connections of their own, one to each peer and device
 * @flags: &enum dblp_lane_flags
 * @budget: ppm
 * @policy: &enum dblp_policy of <linux/dblp.h>
 * @priority: SO_PRIORITY of its sockets, 0: that of a new socket; above 6 it takes
 *	CAP_NET_ADMIN
 * @tos: 0 ... 0xfc, a multiple of 4: TOS byte of its data
 * @large: ppm, 0: all. Of each message with contributions only this share of the
 *	elements goes by this lane: blocks with the largest elements. The others go by
 *	lane @rest
 * @rest: that lane, which has no @large; 0 if this one has none
 * @reserved: 0
 */
struct dblp_lane {
	uint32_t	flags;
	uint32_t	budget;
	uint32_t	policy;
	uint32_t	priority;
	uint32_t	tos;
	uint32_t	large;
	uint32_t	rest;
	uint32_t	reserved;
};

/**
 * struct dblp_comm_attr - how to find the other ranks
 * @size: sizeof(struct dblp_comm_attr)
 * @rank: this rank, 0 ... @nranks - 1, or %DBLP_COMM_RANK_ENV: RANK,
 *	OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID of the environment
 * @nranks: number of ranks, or %DBLP_COMM_RANK_ENV: WORLD_SIZE,
 *	OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_NTASKS
 * @epoch: which attempt of the job this is: a rank with an older one is refused, one with
 *	a newer one ends the attempt. 0 with "env": TORCHELASTIC_RESTART_COUNT of the
 *	environment, if set
 * @rendezvous: where rank 0 is to be found, over TCP: "tcp://HOST:PORT";
 *	"file:PATH", a list with ADDRESS:PORT of each rank in a line, of which each
 *	rank uses the address, and rank 0 the port; "kv", by @kv_set and @kv_get; "env"
 *	(also NULL): MASTER_ADDR of the environment, and DBLP_PORT or the port behind
 *	MASTER_PORT. HOST may be another name or address on each rank; rank 0 uses the
 *	port only
 * @transport: of the data: "dblp" (also NULL), "tcp", or "tcp:CC" with that congestion
 *	control
 * @devices: names of network devices, separated by commas: level l of a plan uses the
 *	l-th, modulo their number. NULL: whatever the route to rank 0 takes: the others
 *	connect to the address from which a rank reached rank 0, and to rank 0 at the
 *	address at which they reached it
 * @kv_set: "kv": store @n bytes at @v under @key, for other ranks
 * @kv_get: "kv": get what is stored under @key, at most *@n bytes, and set *@n;
 *	-EAGAIN if there is nothing yet: then it is called again
 * @kv: first argument of both
 * @job: number of the job that sockets of "dblp" are in, 0: none
 * @join_ms: how long to wait for all ranks to join; 0: 60000. A rank that has reached
 *	rank 0 waits up to @timeout_ms longer, to hear which ones are missing
 * @timeout_ms: how long a host may be silent, on all connections, until it has failed,
 *	and how long a connection for data may take to be made; 0: 5000
 * @keepalive_ms: how often hosts are asked, 1000 at least and at most half of
 *	@timeout_ms; 0: 1000
 * @message_bytes: the most bytes of a message with data, a multiple of 8. Longer
 *	steps take several; each has a loss budget of its own. 0: %DBLP_COMM_BYTES
 * @lanes: number of @lane, 0: one of which nothing is set
 * @lane: lanes, see &struct dblp_lane_part; copied
 * @secret: 32 hexadecimal digits that all ranks know and nobody else: a process without
 *	them cannot join, connect for data or pass for rank 0. NULL: the first line of
 *	the file that DBLP_SECRET_FILE of the environment names, or none
 * @ports: "40000-40100": ports to listen at for data, and with "kv" for ranks that
 *	join. NULL: DBLP_PORTS of the environment, or any free port
 * @bind: rank 0: address to listen at. NULL: DBLP_BIND of the environment, or all
 * @operation_ms: how long an operation may take; 0: no limit. Then the communicator fails
 *	with -ETIMEDOUT on all ranks, see dblp_comm_absent() and dblp_comm_why()
 * @reserved: 0
 *
 * All ranks give the same @nranks, @transport, @message_bytes, @lane, @secret and number
 * of @devices. Where @join_ms, @timeout_ms or @operation_ms is 0, DBLP_JOIN_MS,
 * DBLP_TIMEOUT_MS or DBLP_OPERATION_MS of the environment counts, if set.
 */
struct dblp_comm_attr {
	uint32_t	size;
	int32_t		rank;
	int32_t		nranks;
	uint32_t	epoch;
	const char	*rendezvous;
	const char	*transport;
	const char	*devices;
	int		(*kv_set)(void *kv, const char *key, const void *v,
				  size_t n);
	int		(*kv_get)(void *kv, const char *key, void *v,
				  size_t *n);
	void		*kv;
	uint32_t	job;
	uint32_t	join_ms;
	uint32_t	timeout_ms;
	uint32_t	keepalive_ms;
	uint32_t	message_bytes;
	uint32_t	lanes;
	const struct dblp_lane *lane;
	const char	*secret;
	const char	*ports;
	const char	*bind;
	uint32_t	operation_ms;
	uint32_t	reserved;
};

/**
 * dblp_comm_open() - join the other ranks
 * @comm: set
 * @attr: attributes; strings are copied
 *
 * Returns when all ranks have joined, or -ETIMEDOUT. A rank that ends before may join
 * again. The callbacks are called by this thread, before it returns: @kv_set by rank 0,
 * with its address, and @kv_get by the others, before each attempt to reach it, so that
 * a value of an earlier run does no harm.
 *
 * If the limit of open files (RLIMIT_NOFILE) is too low for connections with all ranks,
 * it is raised as far as needed.
 *
 * Return: 0; -EINVAL if @attr contradicts itself, or that of another rank: then on all
 * ranks; -E2BIG if it has more than this library knows; -EPROTONOSUPPORT if rank 0
 * speaks another version; -EPERM if a lane has a priority that this process may not have;
 * -ESTALE if @epoch is older than that of others; -EEXIST if
 * this rank has joined already; -EACCES if @secret is not that of rank 0, or others may
 * read its file; -EMFILE if the limit of open files cannot be raised; -EADDRINUSE if there
 * is no free port; -EADDRNOTAVAIL if ranks have addresses that others cannot reach; -EAFNOSUPPORT without AF_DBLP, or without IPv6 if an
 * address needs it; -ENODEV if there is no
 * such device; another negative errno.
 */
int dblp_comm_open(struct dblp_comm **comm, const struct dblp_comm_attr *attr);

/**
 * dblp_comm_why() - what is known of a failure, for people
 * @comm: a communicator that has failed, or NULL: the last dblp_comm_open() of this
 *	thread that did
 *
 * Return: text without a line end, "" if there is nothing to add to the error. It lives
 * as long as @comm, or until this thread calls dblp_comm_open() again.
 */
const char *dblp_comm_why(struct dblp_comm *comm);

/**
 * dblp_comm_close() - leave
 * @comm: freed, with its requests, which no thread may be waiting for. NULL: nothing
 *
 * Returns when those who decide who has failed have heard of it, which takes a round
 * trip, and at most @timeout_ms. What was sent is still delivered. Other ranks fail if they need this one later, with
 * -ECONNRESET and this rank, at the latest after @timeout_ms. Rank 0 leaves last: what
 * others do that has not ended @timeout_ms after it left fails, too.
 */
void dblp_comm_close(struct dblp_comm *comm);

/**
 * dblp_comm_abort() - let the communicator fail, on all ranks
 * @comm: the communicator
 * @error: positive errno that all get, with this rank; 0, EAGAIN or what is none:
 *	ECANCELED
 */
void dblp_comm_abort(struct dblp_comm *comm, int error);

/**
 * dblp_comm_rank() - which rank this is
 * @comm: the communicator
 *
 * Return: 0 ... dblp_comm_nranks() - 1.
 */
uint32_t dblp_comm_rank(const struct dblp_comm *comm);

/**
 * dblp_comm_nranks() - how many ranks there are
 * @comm: the communicator
 *
 * Return: 1 at least.
 */
uint32_t dblp_comm_nranks(const struct dblp_comm *comm);

/**
 * dblp_comm_describe() - what is in use
 * @comm: the communicator
 *
 * Return: one line of text without its end, that lives as long as @comm.
 */
const char *dblp_comm_describe(const struct dblp_comm *comm);

/**
 * dblp_comm_error() - has it failed?
 * @comm: the communicator
 * @rank: set to the rank that has failed, -1: none; or NULL
 *
 * Return: 0, or the negative errno that all ranks get.
 */
int dblp_comm_error(struct dblp_comm *comm, int32_t *rank);

/**
 * dblp_comm_absent() - which ranks has an operation that took too long waited for?
 * @comm: the communicator
 * @rank: filled with the first ones, by rising number
 * @room: entries of @rank; more than %DBLP_ABSENT_RANKS are of no use
 *
 * They have not begun the operation, or their process is stopped, or it is the peer of
 * dblp_comm_send() or dblp_comm_recv().
 *
 * Return: number of ranks that there are, also if @room is less; 0 if all ranks have begun
 * the operation, or the communicator has not failed because of one.
 */
int dblp_comm_absent(struct dblp_comm *comm, uint32_t *rank, size_t room);

/**
 * dblp_comm_fd() - file descriptor for poll()
 * @comm: the communicator
 *
 * It is readable while there are requests that have ended and that dblp_wait() has not
 * been called for since. Only to be polled.
 */
int dblp_comm_fd(const struct dblp_comm *comm);

/**
 * struct dblp_comm_stats - what was refused, and what came late
 * @strangers: connections of other programs, of ranks of another communicator, with
 *	another secret or too many, and silent ones
 * @versions: ranks of another version
 * @stale: connections of an older epoch
 * @late: messages that came after their operation had gone on without them
 */
struct dblp_comm_stats {
	uint64_t	strangers;
	uint64_t	versions;
	uint64_t	stale;
	uint64_t	late;
};

/**
 * dblp_comm_stats() - read counters
 * @comm: the communicator
 * @stats: filled
 * @size: its size
 */
void dblp_comm_stats(struct dblp_comm *comm, struct dblp_comm_stats *stats,
		     size_t size);

/**
 * DBLP_CARRY_TIMES - how many times its budget a message may lose
 *
 * With %DBLP_OP_CARRY: enough for a segment of messages that are short, too little to
 * lose a message as a whole.
 */
#define DBLP_CARRY_TIMES	8

/** DBLP_BLOCK_MAX - the most elements of a block, with %DBLP_OP_SPARSE */
#define DBLP_BLOCK_MAX		(1U << 20)

/**
 * enum dblp_op_flags - flags of an operation
 * @DBLP_OP_BUDGET: @budget is set; else it is that of the phase. What an operator then sets
 *	a socket to counts from the next message on, until operations have another
 *	budget; but where it is 0 nothing is lost
 * @DBLP_OP_POLICY: @policy is set; else it is that of the phase
 * @DBLP_OP_PHASE: @phase is set; else it is that of the job
 * @DBLP_OP_AVERAGE: the sum is divided by the number of ranks (of contributions, if
 *	an algorithm sums fewer). Elements of 16 bits are divided before they are added,
 *	unless %DBLP_OP_KEEP is set: a mean does not overflow although the sum would
 * @DBLP_OP_CARRY: budget that messages could not use, because they were too short or
 *	nothing was lost, is left for later ones with the same @key, as much as is worth
 *	one message, each of which may lose %DBLP_CARRY_TIMES its budget at most; with
 *	%DBLP_OP_BUDGET only
 * @DBLP_OP_SPARSE: blocks of elements that are all zero (0.0, not -0.0) are not sent,
 *	in either direction; how large blocks are is chosen for each message, unless
 *	@block says so. Which they are is never lost, and budgets are shares of what
 *	is sent
 * @DBLP_OP_KEEP: sums may be lost, too, on their way back: what is lost of them this rank's
 *	vector keeps as it was, so ranks may differ then. For parameters: of plans ps,
 *	transpose and average, and of dblp_allgather(); not with %DBLP_OP_SPARSE
 *
 * Without any of the first three and without a job nothing is lost.
 */
enum dblp_op_flags {
	DBLP_OP_BUDGET	= 1 << 0,
	DBLP_OP_POLICY	= 1 << 1,
	DBLP_OP_PHASE	= 1 << 2,
	DBLP_OP_AVERAGE	= 1 << 3,
	DBLP_OP_CARRY	= 1 << 4,
	DBLP_OP_SPARSE	= 1 << 5,
	DBLP_OP_KEEP	= 1 << 6,
};

/**
 * struct dblp_lane_part - elements of an operation that go by a lane
 * @first: first one
 * @end: first one behind them
 * @lane: the lane
 * @reserved: 0
 *
 * The elements of a lane are divided among all ranks by themselves, as a vector of their
 * own would be, and each part takes messages of its own.
 */
struct dblp_lane_part {
	uint64_t	first;
	uint64_t	end;
	uint32_t	lane;
	uint32_t	reserved;
};

/**
 * struct dblp_op - how an operation is done
 * @size: sizeof(struct dblp_op)
 * @flags: &enum dblp_op_flags
 * @algo: &enum dblp_algo
 * @rule: &enum dblp_rule
 * @dtype: &enum dblp_dtype
 * @budget: ppm: share of all contributions that may be lost
 * @policy: &enum dblp_policy of <linux/dblp.h>
 * @phase: number of a phase
 * @wait_ms: so long after it began here, for each round, go on without contributions
 *	that may be lost and of which nothing has come yet; 0: never. What such a rank
 *	owns, and all that is reliable, is waited for
 * @plan_flags: %DBLP_PLAN_SERVER or 0
 * @root: see &struct dblp_plan, as those below
 * @fanin: children of a rank in a tree
 * @turn: how often was averaged before
 * @levels: number of digits
 * @radix: their radices
 * @key: %DBLP_FEEDBACK, %DBLP_OP_CARRY: what was lost, and which credit there is, is
 *	kept for the next operation with this number: one for each vector that is reduced
 *	again and again, with the same @dtype and number of elements (-EINVAL), with
 *	the same %DBLP_OP_AVERAGE, and not before the last time has ended (-EBUSY).
 *	See dblp_residual_get()
 * @prune: %DBLP_OP_SPARSE, %DBLP_FEEDBACK: ppm: which share of the squared norm of each
 *	message with contributions is not sent either, whole blocks of the least norm:
 *	they are added to the next vector, as what was lost is
 * @block: %DBLP_OP_SPARSE: elements of a block, a power of two, at most
 *	%DBLP_BLOCK_MAX; 0: whatever takes the fewest bytes. Of contributions that are
 *	divided between two lanes, with %DBLP_FEEDBACK, at most 16
 * @parts: number of @part, 0: all goes by lane 0
 * @limit_ms: how long it may take; 0: @operation_ms of the communicator. Then the
 *	communicator fails with -ETIMEDOUT. Ranks may have limits of their own
 * @part: parts of the vector, in order and without gaps; copied
 *
 * All ranks give the same, except for @limit_ms.
 */
struct dblp_op {
	uint32_t	size;
	uint32_t	flags;
	uint32_t	algo;
	uint32_t	rule;
	uint32_t	dtype;
	uint32_t	budget;
	uint32_t	policy;
	uint32_t	phase;
	uint32_t	wait_ms;
	uint32_t	plan_flags;
	uint32_t	root;
	uint32_t	fanin;
	uint32_t	turn;
	uint32_t	levels;
	uint32_t	radix[DBLP_LEVELS_MAX];
	uint64_t	key;
	uint32_t	prune;
	uint32_t	block;
	uint32_t	parts;
	uint32_t	limit_ms;
	const struct dblp_lane_part *part;
};

/**
 * struct dblp_lane_result - what became of a lane
 * @asked: as that of &struct dblp_result, of what should have come by this lane
 * @missing: the same
 * @ns: nanoseconds until nothing of this lane was left to be done here, 0: it had nothing
 */
struct dblp_lane_result {
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	ns;
};

/**
 * struct dblp_result - what became of an operation, on this rank
 * @asked: bytes of contributions, and with %DBLP_OP_KEEP of sums, that it should have
 *	received
 * @missing: bytes of those that were lost, or came too late
 * @lost: %DBLP_FEEDBACK: bytes that this rank sent and that were lost: they are added
 *	to its vector the next time. What others went on without is not among them
 * @none: %DBLP_RESCALE: elements of what this rank owns that have no contribution:
 *	they are 0
 * @ns: nanoseconds that it took
 * @least: %DBLP_RESCALE: the least number of contributions of an element that this
 *	rank owns
 * @late_ranks: ranks that it went on without
 * @failed_rank: which rank has failed, or means another operation than others do
 *	(-EPROTO), or is the first of dblp_comm_absent() or, if all ranks have begun the
 *	operation, the one where it took too long (-ETIMEDOUT); -1: none
 * @error: negative errno, or 0
 * @budget_least: ppm: least budget that messages with contributions to this rank came
 *	with, times the contributions in each: that of @op, or what an operator has set
 * @budget_most: ppm: the largest one; both are 0 if none came
 * @sent: bytes of messages that this rank has sent, with their heads
 * @pruned: bytes that were not sent for the sake of @prune
 * @lane: of each lane
 */
struct dblp_result {
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	lost;
	uint64_t	none;
	uint64_t	ns;
	uint32_t	least;
	uint32_t	late_ranks;
	int32_t		failed_rank;
	int32_t		error;
	uint32_t	budget_least;
	uint32_t	budget_most;
	uint64_t	sent;
	uint64_t	pruned;
	struct dblp_lane_result lane[DBLP_LANES_MAX];
};

/**
 * dblp_allreduce() - sum a vector over all ranks
 * @comm: the communicator
 * @buf: the vector, aligned to its elements: this rank's contribution, then the sum.
 *	Not to be touched until the end
 * @count: its elements
 * @op: how
 * @req: set; for dblp_wait()
 *
 * Operations of a communicator are carried out side by side, and end in any order. They
 * begin in the same order on all ranks, except for dblp_comm_send() and dblp_comm_recv().
 *
 * Return: 0; -EINVAL if @op contradicts itself, or its parts leave elements out or have
 * some twice; -ENOENT if there is no such lane; -E2BIG if it has more than this library
 * knows or steps wait for others 2^32 times, -ENOMEM; the communicator's error if it has
 * failed.
 */
int dblp_allreduce(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_reduce_scatter() - sum a vector, each rank a part of it
 * @comm: the communicator
 * @buf: as for dblp_allreduce(), but only what dblp_comm_owned() names becomes the sum,
 *	the rest whatever it may be
 * @count: elements of the whole vector
 * @op: how
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_allreduce().
 */
int dblp_reduce_scatter(struct dblp_comm *comm, void *buf, uint64_t count,
			const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_allgather() - give all ranks all parts of a vector; nothing is lost without
 *	%DBLP_OP_KEEP
 * @comm: the communicator
 * @buf: the vector; what dblp_comm_owned() names is this rank's, the rest is filled
 * @count: elements of the whole vector
 * @op: how
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_allreduce().
 */
int dblp_allgather(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_reduce() - sum a vector at one rank
 * @comm: the communicator
 * @buf: this rank's contribution; at @root of @op the sum in the end, elsewhere whatever
 *	it may be
 * @count: its elements
 * @op: how: %DBLP_TREE or %DBLP_PS
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_allreduce(); -EINVAL for other algorithms.
 */
int dblp_reduce(struct dblp_comm *comm, void *buf, uint64_t count,
		const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_broadcast() - give all ranks the vector of one; nothing is lost without
 *	%DBLP_OP_KEEP
 * @comm: the communicator
 * @buf: that of @root of @op is copied to all others
 * @count: its elements
 * @op: how: %DBLP_TREE or %DBLP_PS
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_reduce().
 */
int dblp_broadcast(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_barrier() - ends when all ranks have begun it
 * @comm: the communicator
 * @req: set; for dblp_wait()
 *
 * Return: 0; -ENOMEM; the communicator's error if it has failed.
 */
int dblp_barrier(struct dblp_comm *comm, struct dblp_req **req);

/**
 * dblp_comm_send() - send a vector to another rank; nothing of it is lost
 * @comm: the communicator
 * @buf: the vector, not to be changed until the end
 * @count: its elements, as many as the receiver gives
 * @dtype: &enum dblp_dtype, the same as the receiver's; of anything %DBLP_UINT8
 * @to: that rank
 * @req: set; for dblp_wait()
 *
 * What a rank sends to another one is received in the same order. It goes by a
 * connection of its own, so its place among the operations of all ranks does not matter.
 *
 * Return: 0; -EINVAL if there is no such rank, or it is this one, or there is no such
 * type; -ENOMEM; the communicator's error if it has failed.
 */
int dblp_comm_send(struct dblp_comm *comm, const void *buf, uint64_t count,
		   uint32_t dtype, uint32_t to, struct dblp_req **req);

/**
 * dblp_comm_recv() - receive a vector that another rank sends
 * @comm: the communicator
 * @buf: filled
 * @count: its elements
 * @dtype: &enum dblp_dtype
 * @from: that rank
 * @req: set; for dblp_wait()
 *
 * The communicator fails with -EPROTO if the sender gives another @count or @dtype.
 *
 * Return: as dblp_comm_send().
 */
int dblp_comm_recv(struct dblp_comm *comm, void *buf, uint64_t count,
		   uint32_t dtype, uint32_t from, struct dblp_req **req);

/**
 * dblp_comm_owned() - which parts of a vector this rank owns
 * @comm: the communicator
 * @count: elements of the whole vector
 * @op: how it is reduced
 * @part: filled with the first parts, none of them empty
 * @room: entries of @part, may be 0
 *
 * %DBLP_BCUBE: at most one for each level, and not side by side; others: at most one. Of an
 * operation with parts each lane has as many, cut where its parts are not side by side.
 *
 * Return: number of parts that there are, also if @room is less; -EINVAL, -ENOENT, -E2BIG
 * or -ENOMEM.
 */
int dblp_comm_owned(struct dblp_comm *comm, uint64_t count,
		    const struct dblp_op *op, struct dblp_span *part,
		    size_t room);

/**
 * dblp_wait() - wait for the end of an operation
 * @req: freed, unless -EAGAIN is returned
 * @timeout_ms: how long to wait at most; negative: for ever
 * @result: filled
 * @size: its size; 0: nothing is filled
 *
 * Return: 0, the error of the operation (@error of @result), or -EAGAIN: it has not
 * ended yet.
 */
int dblp_wait(struct dblp_req *req, int timeout_ms, struct dblp_result *result,
	      size_t size);

/**
 * dblp_residual_get() - copy the residual of a key: the contributions of this rank that
 *	were lost or pruned, and that the next operation adds to its vector
 * @comm: the communicator
 * @key: as that of &struct dblp_op
 * @dtype: &enum dblp_dtype
 * @v: filled
 * @count: elements of the vector of this key
 *
 * Infinities and NaNs are never kept. If all ranks multiply their vectors by another loss
 * scale from now on, multiply the residual by the ratio of both, and set it.
 *
 * Return: 0; -ENOENT if the key has no residual, -EINVAL if @dtype or @count differ
 * from those of the key, -EBUSY if its last operation has not ended.
 */
int dblp_residual_get(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      void *v, uint64_t count);

/**
 * dblp_residual_set() - set the residual of a key, which may be new
 * @comm: the communicator
 * @key: as that of &struct dblp_op
 * @dtype: &enum dblp_dtype
 * @v: copied; what is not finite becomes 0
 * @count: elements of the vector of this key
 *
 * Return: 0; -EINVAL if there is no such type, or @dtype or @count differ from those of
 * the key, -EBUSY if its last operation has not ended, -ENOMEM.
 */
int dblp_residual_set(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      const void *v, uint64_t count);

/**
 * dblp_key_forget() - free what is kept for a key: its residual and its credit
 * @comm: the communicator
 * @key: as that of &struct dblp_op
 *
 * Return: 0, also if there is nothing; -EBUSY if its last operation has not ended.
 */
int dblp_key_forget(struct dblp_comm *comm, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif /* DBLP_COMM_H */
