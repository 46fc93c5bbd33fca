/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: communicators, which carry out collective operations between ranks.
 *
 * A communicator has an engine: a thread that sends, receives and adds.
 * Functions return 0 or a negative errno unless stated otherwise; none prints
 * or ends the program. Threads may call them concurrently, also for one
 * communicator. The exception is dblp_comm_close(): no other call may use the
 * communicator then. All ranks must begin operations in the same order.
 *
 * When a rank fails or ranks disagree, the communicator fails on all ranks,
 * with the same error and the same rank in &struct dblp_result: rank 0 decides
 * which. Operations that ended before succeeded, all others fail. A failed
 * communicator can only be closed.
 *
 * After fork() the child has no communicators: it must not call these functions
 * for those of its parent.
 *
 * Structures that the program fills begin with their size, so that later
 * versions can add fields: zero them, set @size, and leave 0 where the default
 * will do. Functions that fill a structure take its size as an argument.
 */
#ifndef DBLP_COMM_H
#define DBLP_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dblp_comm;
struct dblp_req;

/** DBLP_COMM_RANK_ENV - for @rank and @nranks: take the value from the environment */
#define DBLP_COMM_RANK_ENV	(-1)

/** DBLP_COMM_BYTES - default of @message_bytes, bytes */
#define DBLP_COMM_BYTES		(1U << 20)

/**
 * DBLP_THREAD_NAME - name of an engine's thread, followed by the rank
 *
 * Tools such as dblpctl(8) find the rank of a process by it.
 */
#define DBLP_THREAD_NAME	"dblp-rank-"

/** DBLP_ABSENT_RANKS - most ranks that dblp_comm_absent() names */
#define DBLP_ABSENT_RANKS	12

/** DBLP_LANES_MAX - most lanes of a communicator */
#define DBLP_LANES_MAX		8

/**
 * enum dblp_lane_flags - flags of a lane
 * @DBLP_LANE_BUDGET: @budget is set and replaces the budget of operations. An
 *	operation with a budget of 0 stays reliable
 * @DBLP_LANE_POLICY: @policy is set and replaces the policy of operations
 * @DBLP_LANE_NOT_ECT: data is not ECT(0): queues drop it where they mark ECT(0)
 *	("dblp" only, see %DBLP_ECT)
 * @DBLP_LANE_AFTER: not for lane 0: in each round of a plan, messages to a rank
 *	wait until those to it by lane 0 are closed (TCP: taken by the socket).
 *	If the network sends lane 0 first, it would drop them meanwhile
 */
enum dblp_lane_flags {
	DBLP_LANE_BUDGET	= 1 << 0,
	DBLP_LANE_POLICY	= 1 << 1,
	DBLP_LANE_NOT_ECT	= 1 << 2,
	DBLP_LANE_AFTER		= 1 << 3,
};

/**
 * struct dblp_lane - a set of connections, one to each peer and device
 * @flags: &enum dblp_lane_flags
 * @budget: ppm, with %DBLP_LANE_BUDGET
 * @policy: &enum dblp_policy of <linux/dblp.h>, with %DBLP_LANE_POLICY
 * @priority: SO_PRIORITY of its sockets; 0: the system's default. Above 6
 *	CAP_NET_ADMIN is needed
 * @tos: TOS byte of its data: 0 ... 0xfc, a multiple of 4
 * @large: ppm; 0: all. This lane carries only this share of the elements of
 *	each message with contributions: blocks with the largest elements. Lane
 *	@rest carries the others
 * @rest: lane for the other elements, which has no @large itself; 0 if @large
 *	is 0
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
 * @rank: this rank, 0 ... @nranks - 1. %DBLP_COMM_RANK_ENV: RANK,
 *	OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID of the environment
 * @nranks: number of ranks. %DBLP_COMM_RANK_ENV: WORLD_SIZE,
 *	OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_NTASKS
 * @epoch: number of the job's attempt. A rank with an older epoch is refused, a
 *	rank with a newer one ends the attempt. 0 with "env":
 *	TORCHELASTIC_RESTART_COUNT of the environment, if set
 * @rendezvous: where rank 0 listens, over TCP. "tcp://HOST:PORT". "file:PATH":
 *	a list with one line ADDRESS:PORT for each rank; each rank uses its
 *	address, and rank 0 also its port. "kv": by @kv_set and @kv_get. "env"
 *	(also NULL): MASTER_ADDR of the environment, port DBLP_PORT or
 *	MASTER_PORT + 1. HOST may be another name or address on each rank; rank
 *	0 uses only the port
 * @transport: transport of the data: "dblp" (also NULL), "tcp", or "tcp:CC"
 *	with that congestion control
 * @devices: names of network devices, separated by commas: level l of a plan uses
 *	device l modulo their number. NULL: as routed. Then other ranks connect to the
 *	address from which a rank reached rank 0, and to rank 0 at the address where
 *	they reached it
 * @kv_set: "kv": store @n bytes at @v under @key, for other ranks. Return: 0 or
 *	a negative errno
 * @kv_get: "kv": copy the value of @key, at most *@n bytes, to @v, and set *@n
 *	to its length. Return: 0 or a negative errno; -EAGAIN if there is no
 *	value yet: it is called again
 * @kv: first argument of both
 * @job: number of the job of "dblp" sockets, 0: none
 * @join_ms: timeout for all ranks to join, ms; 0: 60000. A rank that has
 *	reached rank 0 waits up to @timeout_ms longer, to learn which ranks are
 *	missing
 * @timeout_ms: ms until a host that is silent on all connections has failed,
 *	and timeout of a connection for data; 0: 5000
 * @keepalive_ms: interval of keepalives, ms: at least 1000 and at most half of
 *	@timeout_ms; 0: 1000
 * @message_bytes: largest size of a message with data, bytes, a multiple of 8.
 *	Longer steps take several messages, each with a loss budget of its own.
 *	The sum of a message returns while later messages still arrive.
 *	0: %DBLP_COMM_BYTES
 * @lanes: number of entries of @lane; 0: one lane with defaults
 * @lane: lanes, see &struct dblp_lane_part; copied
 * @secret: 32 hexadecimal digits, shared by all ranks. A process without them
 *	cannot join, connect for data or impersonate rank 0. NULL: the first
 *	line of the file named by DBLP_SECRET_FILE of the environment, or no
 *	secret
 * @ports: "40000-40100": ports to listen at for data, and with "kv" for joining
 *	ranks. NULL: DBLP_PORTS of the environment, or any free port
 * @bind: rank 0: address to listen at. NULL: DBLP_BIND of the environment, or
 *	all addresses
 * @operation_ms: time limit of operations, ms; 0: none. After it the
 *	communicator fails with -ETIMEDOUT on all ranks, see dblp_comm_absent()
 *	and dblp_comm_why()
 * @authenticate: 1: data connections of "dblp" have a key derived from the
 *	secret (%DBLP_AUTH_KEY): an on-path attacker cannot alter data, and each
 *	end hashes each byte. 0: as DBLP_AUTHENTICATE of the environment says, or
 *	only the first message of a connection proves that its rank knows the
 *	secret
 *
 * All ranks give the same @nranks, @transport, @message_bytes, @lane, @secret,
 * @authenticate and number of @devices. Where @join_ms, @timeout_ms or @operation_ms is 0,
 * DBLP_JOIN_MS, DBLP_TIMEOUT_MS or DBLP_OPERATION_MS of the environment
 * replaces the default.
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
	uint32_t	authenticate;
};

/**
 * dblp_comm_open() - join the other ranks
 * @comm: set to the new communicator; close it by dblp_comm_close()
 * @attr: attributes; strings are copied
 *
 * Returns when all ranks have joined, or after the timeout. A rank that ends
 * before that may join again. This thread calls the callbacks before it
 * returns. Rank 0 calls @kv_set with its address. The others call @kv_get
 * before each attempt to reach rank 0, so that a value of an earlier run does
 * no harm.
 *
 * Raises the soft limit of open files (RLIMIT_NOFILE) as far as connections
 * with all ranks need.
 *
 * Return: 0 or a negative errno, such as
 *
 *	-EACCES		@secret differs from rank 0's, or others may read its file
 *	-EADDRINUSE	no port is free
 *	-EADDRNOTAVAIL	a rank has an address that another cannot reach
 *	-EAFNOSUPPORT	no AF_DBLP, or an address needs IPv6, which is missing
 *	-E2BIG		@attr has fields that this library does not know
 *	-EEXIST		this rank has joined already
 *	-EINVAL		@attr contradicts itself, or another rank's: then on all ranks
 *	-EMFILE		the limit of open files cannot be raised
 *	-ENODEV		a device does not exist
 *	-EPERM		this process may not use the priority of a lane
 *	-EPROTONOSUPPORT rank 0 has another version
 *	-ESTALE		@epoch is older than that of other ranks
 *	-ETIMEDOUT	not all ranks have joined
 */
int dblp_comm_open(struct dblp_comm **comm, const struct dblp_comm_attr *attr);

/**
 * dblp_comm_why() - describe a failure, for people
 * @comm: a communicator that has failed, or NULL: the last dblp_comm_open() of
 *	this thread that failed
 *
 * Return: text without a newline; "" if the error says it all. It is valid as
 * long as @comm; with NULL, until this thread calls dblp_comm_open() again.
 */
const char *dblp_comm_why(struct dblp_comm *comm);

/**
 * dblp_comm_close() - leave
 * @comm: freed, with its requests, for which no thread may be waiting. NULL:
 *	nothing
 *
 * Messages already sent are still delivered. Those still queued for late ranks
 * (@wait_ms) are not: wait for a barrier first. Returns when rank 0 (on rank 0:
 * all others) knows that this rank has left: after a round trip, at most
 * @timeout_ms. Other ranks that still need this rank fail with -ECONNRESET and
 * its number, at the latest @timeout_ms later. Rank 0 should leave last:
 * operations of others fail if they have not ended @timeout_ms after it has
 * left.
 */
void dblp_comm_close(struct dblp_comm *comm);

/**
 * dblp_comm_abort() - let the communicator fail, on all ranks
 * @comm: the communicator
 * @error: positive errno that all ranks get, with the number of this rank;
 *	ECANCELED replaces 0, EAGAIN and invalid values
 */
void dblp_comm_abort(struct dblp_comm *comm, int error);

/**
 * dblp_comm_rank() - number of this rank
 * @comm: the communicator
 *
 * Return: 0 ... dblp_comm_nranks() - 1.
 */
uint32_t dblp_comm_rank(const struct dblp_comm *comm);

/**
 * dblp_comm_nranks() - number of ranks
 * @comm: the communicator
 *
 * Return: at least 1.
 */
uint32_t dblp_comm_nranks(const struct dblp_comm *comm);

/**
 * dblp_comm_describe() - describe transport, devices and lanes in use
 * @comm: the communicator
 *
 * Return: one line of text without a newline, valid as long as @comm.
 */
const char *dblp_comm_describe(const struct dblp_comm *comm);

/**
 * dblp_comm_error() - has the communicator failed?
 * @comm: the communicator
 * @rank: set to the rank that has failed, or to -1; may be NULL
 *
 * Return: 0, or the negative errno that all ranks get.
 */
int dblp_comm_error(struct dblp_comm *comm, int32_t *rank);

/**
 * dblp_comm_absent() - ranks for which an operation waited when its time limit
 *	passed
 * @comm: the communicator
 * @rank: filled with the lowest numbers, in rising order
 * @room: entries of @rank; at most %DBLP_ABSENT_RANKS are filled
 *
 * These ranks have not begun the operation, or their process is stopped. For
 * dblp_comm_send() and dblp_comm_recv() it is the peer.
 *
 * Return: number of such ranks, which may exceed @room; 0 if all ranks have
 * begun the operation, or no time limit ended the communicator.
 */
int dblp_comm_absent(struct dblp_comm *comm, uint32_t *rank, size_t room);

/**
 * dblp_comm_fd() - file descriptor for poll()
 * @comm: the communicator
 *
 * Readable while requests have ended for which dblp_wait() was not called
 * since. Only for polling; dblp_comm_close() closes it.
 */
int dblp_comm_fd(const struct dblp_comm *comm);

/**
 * struct dblp_comm_stats - counters of refused connections and late messages
 * @strangers: connections of other programs, of ranks of another communicator,
 *	with another secret, beyond the expected number, or silent
 * @versions: connections of ranks with another version
 * @stale: connections of ranks with an older epoch
 * @late: messages that arrived after @wait_ms, and were dropped
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
 * @size: sizeof(*@stats)
 */
void dblp_comm_stats(struct dblp_comm *comm, struct dblp_comm_stats *stats,
		     size_t size);

/**
 * DBLP_CARRY_TIMES - largest loss of a message, as a multiple of its budget
 *
 * For %DBLP_OP_CARRY: enough to lose a segment of a short message, too little
 * to lose a whole message.
 */
#define DBLP_CARRY_TIMES	8

/** DBLP_BLOCK_MAX - most elements of a block, with %DBLP_OP_SPARSE */
#define DBLP_BLOCK_MAX		(1U << 20)

/**
 * enum dblp_op_flags - flags of an operation
 * @DBLP_OP_BUDGET: @budget is set; else the phase gives it. If an operator then
 *	sets a socket's budget, that one holds from the next message on, until
 *	operations have another budget. A budget of 0 cannot be raised
 * @DBLP_OP_POLICY: @policy is set; else the phase gives it
 * @DBLP_OP_PHASE: @phase is set; else the job gives it
 * @DBLP_OP_AVERAGE: divide the sum by the number of ranks (of contributions, if
 *	an algorithm sums fewer). Elements of 16 bits are divided before they
 *	are added, unless %DBLP_OP_KEEP is set: then a mean cannot overflow
 *	where its sum would
 * @DBLP_OP_CARRY: save unused budget for later messages with the same @key, at
 *	most that of one message. A budget is unused if a message is too short
 *	for it, or nothing was lost. A message may lose at most
 *	%DBLP_CARRY_TIMES its budget. Needs %DBLP_OP_BUDGET
 * @DBLP_OP_SPARSE: do not send blocks of elements that are all zero (0.0, not
 *	-0.0), in either direction. The block size is chosen for each message,
 *	unless @block is set. The list of blocks is never lost, and budgets are
 *	shares of the elements sent
 * @DBLP_OP_KEEP: allow losses in the spread half, too: the vector of a rank
 *	keeps its old elements where sums were lost, so ranks may differ. For
 *	parameters: plans ps, transpose and average, and dblp_allgather(); not
 *	with %DBLP_OP_SPARSE
 * @DBLP_OP_REPAIR: with %DBLP_OP_KEEP: elements that a rank has lost are not lost
 *	again in the next operation with the same @key and plan. So no element of
 *	a rank is older than one operation, and one with a budget of 0 makes all
 *	ranks equal. dblp_allgather() and dblp_broadcast() only, with %DBLP_PS or
 *	%DBLP_TRANSPOSE and without @wait_ms. See dblp_comm_stale()
 * @DBLP_OP_ENERGY: fill @energy_sent, @energy_lost and @energy_mean of the result,
 *	for dblp_tune_round(). dblp_allreduce() only
 *
 * Without the first three flags and without a job, operations are reliable.
 */
enum dblp_op_flags {
	DBLP_OP_BUDGET	= 1 << 0,
	DBLP_OP_POLICY	= 1 << 1,
	DBLP_OP_PHASE	= 1 << 2,
	DBLP_OP_AVERAGE	= 1 << 3,
	DBLP_OP_CARRY	= 1 << 4,
	DBLP_OP_SPARSE	= 1 << 5,
	DBLP_OP_KEEP	= 1 << 6,
	DBLP_OP_ENERGY	= 1 << 7,
	DBLP_OP_REPAIR	= 1 << 8,
};

/**
 * struct dblp_lane_part - elements of an operation that travel by a lane
 * @first: first element
 * @end: end of the range, exclusive
 * @lane: index of the lane
 * @reserved: 0
 *
 * The elements of each lane are divided among all ranks as if they were a
 * vector of their own, and each part has its own messages.
 */
struct dblp_lane_part {
	uint64_t	first;
	uint64_t	end;
	uint32_t	lane;
	uint32_t	reserved;
};

/**
 * struct dblp_op - attributes of an operation
 * @size: sizeof(struct dblp_op)
 * @flags: &enum dblp_op_flags
 * @algo: &enum dblp_algo
 * @rule: &enum dblp_rule
 * @dtype: &enum dblp_dtype
 * @budget: ppm: share of all contributions that may be lost; of
 *	dblp_allgather() and dblp_broadcast(): share of each message
 * @policy: &enum dblp_policy of <linux/dblp.h>
 * @phase: number of a phase
 * @wait_ms: time for late contributions, ms for each round, counted from the
 *	start of the operation on this rank; 0: no limit. After it the operation
 *	continues without contributions of which nothing has arrived, if they
 *	may be lost. Reliable messages, and sums of elements that a late rank
 *	owns, are still awaited
 * @plan_flags: %DBLP_PLAN_SERVER or 0
 * @root: see &struct dblp_plan, as for the next four
 * @fanin: children of a rank in a tree
 * @turn: number of earlier averages
 * @levels: number of digits
 * @radix: radices of the digits
 * @key: for %DBLP_FEEDBACK, %DBLP_OP_CARRY and %DBLP_OP_REPAIR: number of the
 *	vector. Residual, saved budget and lists of lost elements are kept for
 *	the next operation with the same number.
 *	@dtype, number of elements and %DBLP_OP_AVERAGE must be the same each
 *	time (-EINVAL), and the last operation must have ended (-EBUSY). See
 *	dblp_residual_get()
 * @prune: ppm, for %DBLP_OP_SPARSE with %DBLP_FEEDBACK: share of the squared
 *	norm of each message with contributions that is not sent: blocks with
 *	the least norm. They are added to the next vector, as lost elements are
 * @block: for %DBLP_OP_SPARSE: elements of a block, a power of two, at most
 *	%DBLP_BLOCK_MAX; 0: the size that takes the fewest bytes. With
 *	%DBLP_FEEDBACK, blocks of contributions that two lanes share have at
 *	most 16 elements
 * @parts: number of entries of @part; 0: lane 0 carries all elements
 * @limit_ms: time limit, ms; 0: @operation_ms of the communicator. After it the
 *	communicator fails with -ETIMEDOUT. Ranks may have different limits
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
 * struct dblp_lane_result - result of one lane, on this rank
 * @asked: as in &struct dblp_result, for this lane only
 * @missing: as in &struct dblp_result, for this lane only
 * @ns: time until the last step of this lane ended on this rank, ns; 0: it had
 *	no steps
 */
struct dblp_lane_result {
	uint64_t	asked;
	uint64_t	missing;
	uint64_t	ns;
};

/**
 * struct dblp_result - result of an operation, on this rank
 * @asked: bytes of contributions, and with %DBLP_OP_KEEP of sums, that this
 *	rank expected
 * @missing: bytes of these that were lost, or arrived too late
 * @lost: %DBLP_FEEDBACK: bytes sent by this rank and lost, to be added to its
 *	next vector. Bytes that arrived late at others are not included
 * @none: %DBLP_RESCALE: elements owned by this rank that got no contribution:
 *	they are 0
 * @ns: duration, ns
 * @least: %DBLP_RESCALE: least number of contributions of an element that this
 *	rank owns
 * @late_ranks: number of ranks whose contributions were not awaited
 * @failed_rank: the rank that has failed; on -EPROTO the rank whose operation
 *	differs; on -ETIMEDOUT the first of dblp_comm_absent(), or the rank
 *	whose limit passed if all have begun the operation; -1: none
 * @error: negative errno, or 0
 * @budget_least: ppm: smallest budget of the messages received with
 *	contributions, times the contributions in each: from @op, or set by an
 *	operator
 * @budget_most: ppm: the largest one. Both are 0 if no such message arrived
 * @sent: bytes of messages sent by this rank, with their heads
 * @pruned: bytes not sent because of @prune
 * @lane: result of each lane
 * @energy_sent: %DBLP_OP_ENERGY: squared norm of this rank's contribution, with
 *	its residual; 0 for a server
 * @energy_lost: %DBLP_OP_ENERGY with %DBLP_FEEDBACK: squared norm of the new
 *	residual: lost and pruned elements
 * @energy_mean: %DBLP_OP_ENERGY: squared norm of the mean of all contributions,
 *	even without %DBLP_OP_AVERAGE
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
	double		energy_sent;
	double		energy_lost;
	double		energy_mean;
};

/**
 * dblp_allreduce() - sum a vector over all ranks
 * @comm: the communicator
 * @buf: the vector, aligned to its elements: this rank's contribution, replaced
 *	by the sum. Not to be touched until the operation ends
 * @count: number of its elements
 * @op: attributes of the operation
 * @req: set; for dblp_wait()
 *
 * Returns at once. Operations of a communicator run concurrently, and end in
 * any order. All ranks must begin them in the same order, except for
 * dblp_comm_send() and dblp_comm_recv().
 *
 * Return: 0; -EINVAL if @op contradicts itself, or its parts overlap or have
 * gaps; -ENOENT if a lane does not exist; -E2BIG if @op has fields that this
 * library does not know, or its steps have 2^32 dependencies; -ENOMEM; the
 * communicator's error if it has failed.
 */
int dblp_allreduce(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_reduce_scatter() - sum a vector, each rank a part of it
 * @comm: the communicator
 * @buf: as for dblp_allreduce(), but only the parts that dblp_comm_owned()
 *	returns become sums; the rest is undefined
 * @count: elements of the whole vector
 * @op: attributes of the operation
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_allreduce().
 */
int dblp_reduce_scatter(struct dblp_comm *comm, void *buf, uint64_t count,
			const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_allgather() - copy the parts of a vector to all ranks
 * @comm: the communicator
 * @buf: the vector; this rank provides the parts that dblp_comm_owned()
 *	returns, the rest is filled
 * @count: elements of the whole vector
 * @op: attributes of the operation
 * @req: set; for dblp_wait()
 *
 * Reliable unless %DBLP_OP_KEEP is set.
 *
 * Return: as dblp_allreduce().
 */
int dblp_allgather(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_reduce() - sum a vector at one rank
 * @comm: the communicator
 * @buf: this rank's contribution; becomes the sum at @root of @op, and
 *	undefined elsewhere
 * @count: number of its elements
 * @op: attributes of the operation, with %DBLP_TREE or %DBLP_PS
 * @req: set; for dblp_wait()
 *
 * Return: as dblp_allreduce(); -EINVAL for other algorithms.
 */
int dblp_reduce(struct dblp_comm *comm, void *buf, uint64_t count,
		const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_broadcast() - copy the vector of one rank to all others
 * @comm: the communicator
 * @buf: the vector: sent by @root of @op, filled on all other ranks
 * @count: number of its elements
 * @op: attributes of the operation, with %DBLP_TREE or %DBLP_PS
 * @req: set; for dblp_wait()
 *
 * Reliable unless %DBLP_OP_KEEP is set.
 *
 * Return: as dblp_reduce().
 */
int dblp_broadcast(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req);

/**
 * dblp_barrier() - wait until all ranks have called it
 * @comm: the communicator
 * @req: set; for dblp_wait(), which returns when all ranks have begun the
 *	barrier
 *
 * Return: 0; -ENOMEM; the communicator's error if it has failed.
 */
int dblp_barrier(struct dblp_comm *comm, struct dblp_req **req);

/**
 * dblp_comm_send() - send a vector to another rank, reliably
 * @comm: the communicator
 * @buf: the vector, not to be changed until the operation ends
 * @count: number of its elements, as at the receiver
 * @dtype: &enum dblp_dtype, as at the receiver; %DBLP_UINT8 for other data
 * @to: rank of the receiver
 * @req: set; for dblp_wait()
 *
 * Vectors from one rank to another are received in the order of sending. They
 * use a separate connection, so their order relative to operations of all ranks
 * does not matter.
 *
 * Return: 0; -EINVAL if @to is this rank or does not exist, or for an unknown
 * type; -ENOMEM; the communicator's error if it has failed.
 */
int dblp_comm_send(struct dblp_comm *comm, const void *buf, uint64_t count,
		   uint32_t dtype, uint32_t to, struct dblp_req **req);

/**
 * dblp_comm_recv() - receive a vector from another rank
 * @comm: the communicator
 * @buf: filled
 * @count: number of its elements
 * @dtype: &enum dblp_dtype
 * @from: rank of the sender
 * @req: set; for dblp_wait()
 *
 * The communicator fails with -EPROTO if the sender gives another @count or
 * @dtype.
 *
 * Return: as dblp_comm_send().
 */
int dblp_comm_recv(struct dblp_comm *comm, void *buf, uint64_t count,
		   uint32_t dtype, uint32_t from, struct dblp_req **req);

/**
 * dblp_comm_owned() - parts of a vector that this rank owns
 * @comm: the communicator
 * @count: elements of the whole vector
 * @op: attributes of the operation
 * @part: filled with the first parts, none of them empty
 * @room: entries of @part, may be 0
 *
 * %DBLP_BCUBE: at most one part for each level, not adjacent to each other.
 * Other algorithms: at most one part. With lanes, each lane has as many; a part
 * is cut where the elements of its lane are not contiguous.
 *
 * Return: number of parts, which may exceed @room; -EINVAL, -ENOENT, -E2BIG or
 * -ENOMEM.
 */
int dblp_comm_owned(struct dblp_comm *comm, uint64_t count,
		    const struct dblp_op *op, struct dblp_span *part,
		    size_t room);

/**
 * dblp_comm_stale() - elements that a rank lacks (%DBLP_OP_REPAIR)
 * @comm: the communicator
 * @key: as in &struct dblp_op
 * @rank: this rank: elements that it has lost in the last operation with @key.
 *	Another rank: elements that this rank has sent to it and that it has lost
 * @span: filled with the first ranges of elements, by rising number for each
 *	lane
 * @room: entries of @span, may be 0
 *
 * A rank has the values of the operation before for these elements. The others
 * are those of the last operation.
 *
 * Return: number of ranges, which may exceed @room; -ENOENT if the key had no
 * operation with %DBLP_OP_REPAIR, or @rank does not exist; -EBUSY if its last
 * operation has not ended; the communicator's error if it has failed.
 */
int dblp_comm_stale(struct dblp_comm *comm, uint64_t key, uint32_t rank,
		    struct dblp_span *span, size_t room);

/**
 * dblp_wait() - wait for the end of an operation
 * @req: freed, unless -EAGAIN is returned
 * @timeout_ms: timeout, ms; negative: none
 * @result: filled
 * @size: sizeof(*@result); 0: nothing is filled
 *
 * Return: 0; the error of the operation (@error of @result); -EAGAIN if it has
 * not ended yet.
 */
int dblp_wait(struct dblp_req *req, int timeout_ms, struct dblp_result *result,
	      size_t size);

/**
 * dblp_residual_get() - copy the residual of a key
 * @comm: the communicator
 * @key: as in &struct dblp_op
 * @dtype: &enum dblp_dtype
 * @v: filled
 * @count: elements of the vector of this key
 *
 * The residual is the sum of this rank's contributions that were lost or
 * pruned. The next operation adds it to its vector. Infinities and NaNs are
 * never kept. If all ranks change their loss scale, multiply the residual by
 * the ratio of new to old scale, and set it.
 *
 * Return: 0; -ENOENT if the key has no residual; -EINVAL if @dtype or @count
 * differ from those of the key; -EBUSY if its last operation has not ended; the
 * communicator's error if it has failed, because its residuals are incomplete.
 */
int dblp_residual_get(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      void *v, uint64_t count);

/**
 * dblp_residual_set() - set the residual of a key, which may be new
 * @comm: the communicator
 * @key: as in &struct dblp_op
 * @dtype: &enum dblp_dtype
 * @v: copied; infinities and NaNs become 0
 * @count: elements of the vector of this key
 *
 * Return: 0; -EINVAL for an unknown type, or if @dtype or @count differ from
 * those of the key; -EBUSY if its last operation has not ended; -ENOMEM.
 */
int dblp_residual_set(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      const void *v, uint64_t count);

/**
 * dblp_key_forget() - free all that is kept for a key
 * @comm: the communicator
 * @key: as in &struct dblp_op
 *
 * Return: 0, also if the key is unknown; -EBUSY if its last operation has not
 * ended.
 */
int dblp_key_forget(struct dblp_comm *comm, uint64_t key);

#ifdef __cplusplus
}
#endif

#endif /* DBLP_COMM_H */
