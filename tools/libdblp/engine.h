/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: internals of a communicator.
 *
 * Threads of the program append operations to the inbox of a communicator. Its
 * engine, a thread that waits for sockets, carries out their steps and owns
 * everything else. &struct dblp_comm says which fields the lock protects.
 *
 *	comm.c		functions that programs call
 *	env.c		attributes from the environment
 *	why.c		reasons of failures, as text
 *	join.h		finding the other ranks, before the engine starts
 *	files.c		limit of open files
 *	control.c	connections to rank 0, which decides which rank has failed
 *	sched.c		plans, and dependencies between their steps
 *	lane.c		socket options and loss budgets of lanes
 *	link.c		connections for data: one for each peer, lane and device, made
 *			when an operation needs it
 *	engine.c	steps, message by message
 *	packed.c	messages without blocks of zeroes
 *	losses.c	residuals, counts of contributions, and budgets
 *	late.c		continuing without late ranks
 *	limit.c		time limits of operations
 *	fork.c		closing sockets in children
 *	transport.c	messages over AF_DBLP or a stream
 *
 * Glossary
 *
 *	operation	a call such as dblp_allreduce(), on all ranks; a request
 *			(&struct dblp_req) is the operation on this rank
 *	step		one message, or a local action, of an operation's plan, see
 *			collective.h; a task is a step with its state
 *	message		what is sent at once: a head and at most @message_bytes of data.
 *			A step may take several
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
 *	suspect		a rank that has failed, as far as this rank knows; rank 0
 *			decides which one all ranks report
 *	digest		hash of what all ranks must agree on
 *	told, heard	reported to rank 0; received from a peer
 */
#ifndef DBLP_ENGINE_H
#define DBLP_ENGINE_H

#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "comm.h"
#include "head.h"
#include "lanes.h"
#include "libdblp.h"

#define DBLP_COMM_VERSION	2
#define DBLP_NICS_MAX		16
/* Connections of unknown peers at a time, in addition to those of ranks */
#define DBLP_STRANGERS		64
#define DBLP_WHY_TEXT		256
/* Bytes of the secret, of keys derived from it, and of MACs */
#define DBLP_MAC		16

#define MS_NS			1000000ULL

/* sched.c */

/**
 * struct dblp_sched - the steps of a rank, and their dependencies
 * @plan: the plan
 * @layout: lanes and parts of the plan; @layout.part is a copy
 * @refs: users; protected by the communicator's lock
 * @n: number of steps
 * @step: the steps
 * @way: lane of each step, and which elements it carries
 * @waits: for each step, the number of steps for which it waits
 * @after: for each step, index in @next of the first step that waits for it;
 *	@after[@n] is the end of the last one's
 * @next: indices of the waiting steps
 */
struct dblp_sched {
	struct dblp_plan	plan;
	struct dblp_layout	layout;
	unsigned int		refs;
	uint32_t		n;
	struct dblp_step	*step;
	struct dblp_way		*way;
	uint32_t		*waits;
	uint32_t		*after;
	uint32_t		*next;
};

/*
 * dblp_sched_new() - compute steps and dependencies, with one reference; 0 or a
 *	negative errno
 */
int dblp_sched_new(const struct dblp_plan *plan, const struct dblp_layout *layout,
		   struct dblp_sched **sched);
void dblp_sched_put(struct dblp_sched *s);

/* Operations */

/**
 * struct dblp_task - a step of an operation, with its state
 * @req: the operation
 * @step: the step
 * @next: next task in the queue of the link
 * @waits: steps that must end before it may begin
 * @reports: sent messages whose report has not arrived
 * @done: elements whose messages were sent or received completely
 * @begun: some bytes were sent or received
 * @ended: no other step waits for it any more
 * @late: the operation has continued without it
 * @own: copy of the data that is still to be sent to a late rank, or NULL
 * @own_from: @done when @own was copied: its first element
 */
struct dblp_task {
	struct dblp_req		*req;
	const struct dblp_step	*step;
	struct dblp_task	*next;
	uint32_t		waits;
	uint32_t		reports;
	uint64_t		done;
	bool			begun;
	bool			ended;
	bool			late;
	char			*own;
	uint64_t		own_from;
};

/**
 * struct dblp_req - an operation
 * @comm: the communicator
 * @entry: in a list of the communicator
 * @op: its attributes
 * @sched: its steps
 * @peer: send and recv: the other rank, in a plan of 2 ranks; else -1
 * @word: the vector of a barrier, or of a send or recv without elements
 * @buf: the vector
 * @esize: bytes of an element
 * @seq: number of the operation: among those of all ranks, or from one rank to
 *	another
 * @digest: hash of what all ranks must agree on
 * @begin: when the program began it, ns
 * @told: it took longer than REPORT_MS and was reported to rank 0
 * @ran_out: its time limit has passed and was reported to rank 0
 * @late_at: next time at which a contribution becomes late, ns
 * @left: tasks that have not ended
 * @lane_left: the same, for each lane
 * @queued: late tasks and copies for late ranks that are still in the queue of
 *	a link
 * @key: residual and saved budget for the next operation, or NULL
 * @counts: contributions of each element
 * @budgets: received messages whose budget is in @result
 * @users: references: the program (until dblp_wait()), the engine (until the
 *	request leaves @over of the communicator)
 * @ended: the program may take the result
 * @result: the result
 * @task: one for each step
 */
struct dblp_req {
	struct dblp_comm	*comm;
	TAILQ_ENTRY(dblp_req)	entry;
	struct dblp_op		op;
	struct dblp_sched	*sched;
	int32_t			peer;
	uint64_t		word;
	char			*buf;
	uint32_t		esize;
	uint32_t		seq;
	uint64_t		digest;
	uint64_t		begin;
	bool			told;
	bool			ran_out;
	uint64_t		late_at;
	uint32_t		left;
	uint32_t		lane_left[DBLP_LANES_MAX];
	uint32_t		queued;
	struct dblp_key		*key;
	struct dblp_counts	counts;
	uint64_t		budgets;
	unsigned int		users;
	bool			ended;
	struct dblp_result	result;
	struct dblp_task	task[];
};

TAILQ_HEAD(dblp_reqs, dblp_req);

/**
 * struct dblp_key - state kept from one operation to the next one
 * @next: next key of the communicator
 * @key: number of the vector
 * @count: elements of the vector
 * @dtype: &enum dblp_dtype
 * @busy: an operation with this key has not ended
 * @residual: %DBLP_FEEDBACK: lost and pruned contributions, or NULL
 * @carry: %DBLP_OP_CARRY: saved budgets, by rank and link, or NULL
 */
struct dblp_key {
	struct dblp_key		*next;
	uint64_t		key;
	uint64_t		count;
	uint32_t		dtype;
	bool			busy;
	void			*residual;
	struct dblp_carry	*carry;
};

/**
 * struct dblp_record - a sent message whose report has not arrived
 * @next: next record of the link
 * @tag: tag of the message
 * @task: its task
 * @offset: first element of the vector in the message
 * @count: elements of the vector in the message
 * @bytes: bytes of elements that were sent
 * @budget: budget of the message, ppm
 * @is_sparse: @sparse and @front are valid
 * @sparse: blocks of the packed vector; its bitmap is in @front
 * @front: copy of the front of the packed vector
 */
struct dblp_record {
	struct dblp_record	*next;
	uint64_t		tag;
	struct dblp_task	*task;
	uint64_t		offset;
	uint64_t		count;
	uint32_t		bytes;
	uint32_t		budget;
	bool			is_sparse;
	struct dblp_sparse	sparse;
	uint8_t			front[];
};

/* Messages */

/**
 * struct dblp_unreached - a failed connection for data
 * @from: rank that tried to connect
 * @port: port to which it tried to connect, in network byte order; 0: no
 *	connection failed
 * @reserved: 0
 * @addr: address to which it tried to connect
 */
struct dblp_unreached {
	uint32_t	from;
	uint16_t	port;
	uint16_t	reserved;
	struct in6_addr	addr;
};

/**
 * struct dblp_ctl - message between a rank and rank 0
 * @magic: %DBLP_CTL_MAGIC
 * @version: %DBLP_COMM_VERSION
 * @type: &enum dblp_ctl_type
 * @rank: sender; abort, suspect: the failed rank; bye: the rank that has left,
 *	also if rank 0 forwards it
 * @error: positive errno
 * @nranks: join: number of ranks; late, absent: number of absent ranks
 * @epoch: join, table
 * @nics: join, table: number of devices; late, absent: 1 for a send or recv
 * @message_bytes: join; late, absent: the time limit, ms
 * @seq: report, late, absent: number of the operation; begun, bye: number of the
 *	next operation
 * @reserved: 0
 * @digest: join: hash of the lanes; report: digest of the operation
 * @comm: table: random number of the communicator; join: the one wanted, 0: any
 * @transport: join: its name; late, absent: @rank of &struct dblp_absent
 * @unreached: abort, suspect: the failed connection, if one is the cause
 *
 * Join and table are followed by addresses: one for each device, of that rank
 * or of all ranks.
 */
struct dblp_ctl {
	uint32_t	magic;
	uint16_t	version;
	uint16_t	type;
	uint32_t	rank;
	uint32_t	error;
	uint32_t	nranks;
	uint32_t	epoch;
	uint32_t	nics;
	uint32_t	message_bytes;
	uint32_t	seq;
	uint32_t	reserved;
	uint64_t	digest;
	uint64_t	comm;
	union {
		char		transport[24];
		struct dblp_unreached unreached;
	};
};

#define DBLP_CTL_MAGIC	0x64626c43

_Static_assert(sizeof(struct dblp_ctl) == 80, "what ranks tell each other");

/**
 * enum dblp_ctl_type - types of messages between ranks and rank 0
 * @DBLP_CTL_JOIN: to rank 0: first message of a rank
 * @DBLP_CTL_TABLE: from rank 0: all ranks have joined, and their addresses
 * @DBLP_CTL_REFUSE: from rank 0: the rank cannot join
 * @DBLP_CTL_SUSPECT: to rank 0: a rank has failed
 * @DBLP_CTL_ABORT: from rank 0: the communicator fails
 * @DBLP_CTL_REPORT: to rank 0: digest of an operation that takes long
 * @DBLP_CTL_BYE: a rank has left
 * @DBLP_CTL_LATE: to rank 0: an operation has exceeded its time limit
 * @DBLP_CTL_ASK: from rank 0: which operations have begun?
 * @DBLP_CTL_BEGUN: to rank 0: the answer
 * @DBLP_CTL_ABSENT: from rank 0: ranks that have not begun the operation
 * @DBLP_CTL_CHALLENGE: from rank 0: answer to a join, with a nonce and a proof
 */
enum dblp_ctl_type {
	DBLP_CTL_JOIN,
	DBLP_CTL_TABLE,
	DBLP_CTL_REFUSE,
	DBLP_CTL_SUSPECT,
	DBLP_CTL_ABORT,
	DBLP_CTL_REPORT,
	DBLP_CTL_BYE,
	DBLP_CTL_LATE,
	DBLP_CTL_ASK,
	DBLP_CTL_BEGUN,
	DBLP_CTL_ABSENT,
	DBLP_CTL_CHALLENGE,
};

/**
 * struct dblp_absent - ranks for which an operation waits
 * @n: their number
 * @rank: the first %DBLP_ABSENT_RANKS of them
 */
struct dblp_absent {
	uint32_t	n;
	uint16_t	rank[DBLP_ABSENT_RANKS];
};

/* Type of the object behind an epoll event: its first field */
enum dblp_source {
	DBLP_SOURCE_WAKE,
	DBLP_SOURCE_CTL,
	DBLP_SOURCE_LISTENER,
	DBLP_SOURCE_PENDING,
	DBLP_SOURCE_LINK,
};

/**
 * struct dblp_ctlconn - a control connection: to rank 0, or on rank 0 to
 *	another rank
 * @source: %DBLP_SOURCE_CTL
 * @fd: the socket; -1: closed
 * @rank: the peer
 * @bye: the peer has left in order
 * @heard_at: last time when the peer owed no answer on any connection, or
 *	@heard had grown, ns
 * @heard: count of packets and bytes received from the peer, as the transport
 *	knows it
 * @reported: @told and @digest are valid
 * @told: number of the operation that the peer reported last
 * @digest: digest of that operation
 * @answered: the peer has answered the last %DBLP_CTL_ASK, or has left: @begun is valid
 * @begun: number of operations that the peer has begun
 * @n_left: entries of @left of the communicator that were sent to the peer
 * @got: bytes in @in
 * @in: the received part of a message
 * @n_out: bytes in @out
 * @out: messages to be sent
 */
struct dblp_ctlconn {
	enum dblp_source	source;
	int			fd;
	uint32_t		rank;
	bool			bye;
	uint64_t		heard_at;
	uint64_t		heard;
	bool			reported;
	uint32_t		told;
	uint64_t		digest;
	bool			answered;
	uint32_t		begun;
	uint32_t		n_left;
	size_t			got;
	char			in[sizeof(struct dblp_ctl)];
	size_t			n_out;
	char			out[8 * sizeof(struct dblp_ctl)];
};

/**
 * struct dblp_nic - a device
 * @source: %DBLP_SOURCE_LISTENER
 * @index: its index
 * @name: its name; "": as routed
 * @is_listed: the list of "file:" has its address, which is not a loopback one
 * @listener: listening socket for data
 * @deaf_until: descriptors or memory ran out: accept no connection until then,
 *	ns; 0: accept
 * @deaf_since: when accept() first failed, ns; 0: the last one succeeded
 * @addr: its address, with the port of @listener
 */
struct dblp_nic {
	enum dblp_source	source;
	uint32_t		index;
	char			name[IFNAMSIZ];
	bool			is_listed;
	int			listener;
	uint64_t		deaf_until;
	uint64_t		deaf_since;
	struct sockaddr_dblp	addr;
};

/*
 * Room for the control messages of a message: rcvinfo and 128 ranges. A module
 * with a shorter rcvinfo leaves room for more ranges.
 */
#define DBLP_INBOX_CONTROL						\
	(CMSG_SPACE(sizeof(struct dblp_rcvinfo)) +			\
	 CMSG_SPACE(128 * sizeof(struct dblp_range)))

/**
 * struct dblp_inbox - a message being received
 * @iov: buffers for head and data
 * @len: length of the message, bytes; 0: none is expected
 * @is_most: @len is an upper bound, until the message is closed
 * @got: bytes received
 * @closed: the message is complete, except for the losses in @map
 * @n: number of entries of @range
 * @range: bytes placed by the last call
 * @map: loss map, valid when @closed
 */
struct dblp_inbox {
	struct iovec		iov[2];
	size_t			len;
	bool			is_most;
	size_t			got;
	bool			closed;
	uint32_t		n;
	struct dblp_range	range[DBLP_INBOX_CONTROL /
				      sizeof(struct dblp_range)];
	struct dblp_msg		map;
};

/**
 * struct dblp_pending - an accepted connection whose hello has not arrived
 * @source: %DBLP_SOURCE_PENDING
 * @fd: the socket; -1: to be freed
 * @nic: device at which it was accepted
 * @next: next pending connection of the communicator
 * @since: when it was accepted, ns
 * @head: the hello
 * @in: state of its reception
 */
struct dblp_pending {
	enum dblp_source	source;
	int			fd;
	uint32_t		nic;
	struct dblp_pending	*next;
	uint64_t		since;
	uint8_t			head[DBLP_HEAD_LEN];
	struct dblp_inbox	in;
};

/**
 * enum dblp_link_state - states of a link
 * @DBLP_LINK_NONE: not needed yet, or not accepted yet
 * @DBLP_LINK_CONNECTING: this rank connects, or has not sent its hello
 * @DBLP_LINK_READY: connected
 * @DBLP_LINK_DEAD: the connection has failed
 */
enum dblp_link_state {
	DBLP_LINK_NONE,
	DBLP_LINK_CONNECTING,
	DBLP_LINK_READY,
	DBLP_LINK_DEAD,
};

/*
 * Kinds of messages of a step. If a partial sum may lack contributions, two
 * more messages precede each message with data: its head with the number of
 * runs, and the runs. So both ends know the length of each message in advance.
 */
enum dblp_part {
	DBLP_PART_DATA,
	DBLP_PART_COUNTS,
	DBLP_PART_RUNS,
};

/**
 * struct dblp_link - connection for data with a rank, of a lane, over a device
 * @source: %DBLP_SOURCE_LINK
 * @comm: the communicator
 * @rank: the peer
 * @lane: index of the lane
 * @nic: index of the device
 * @fd: the socket, or -1
 * @state: &enum dblp_link_state
 * @since: when this rank began to connect, ns
 * @error: negative errno of a dead link
 * @phase: DBLP_PHASE of the socket, %DBLP_INHERIT: not set
 * @own_budget: DBLP_BUDGET of the socket, %DBLP_INHERIT: not set
 * @next_woken: next entry in @woken of the communicator
 * @is_woken: it is in that list
 * @can_read: epoll reported readable, and no EAGAIN since
 * @can_write: epoll reported writable, and no EAGAIN since
 * @out: tasks to send, in order
 * @out_end: end of @out
 * @in: tasks to receive, in order
 * @in_end: end of @in
 * @record: sent messages whose report is awaited, in order
 * @record_end: end of @record, valid unless that is empty
 * @tag: tag of the message being sent
 * @budget: budget of the message being sent, ppm
 * @part_out: its kind
 * @runs_out: encoded runs to send, or NULL
 * @n_out: their number
 * @counted: the runs of the next message with data were sent, or there are none
 * @head_out: head of the message being sent
 * @packed: its packed vector, see sparse.h, or NULL
 * @n_packed: bytes of @packed
 * @sparse: blocks in @packed
 * @shift: last block sizes: of contributions, and of sums
 * @prepared: @info, @head_out and the data are ready for the next message
 * @info: attributes of the message being sent
 * @sent: bytes of it that were sent
 * @part_in: kind of the message being received
 * @runs_in: encoded runs received, or NULL
 * @run: scratch memory for decoded runs, shared by both directions
 * @n_in: number of runs received
 * @counts: the runs of the next message with data were received, or there are
 *	none
 * @head_in: head of the message being received
 * @good: @head_in has arrived and is the expected one
 * @inbox: the message being received, unless its length is 0
 * @stage: received data to be added or unpacked
 * @n_stage: bytes allocated for @stage
 * @chosen: elements of a message that this lane carries, others zero
 * @n_chosen: bytes allocated for @chosen
 * @left_out: scratch flag of late.c, in the first link of each peer
 * @n_sends: number of the next send to the peer; protected by the
 *	communicator's lock
 * @n_recvs: number of the next recv from the peer; protected by the same lock
 */
struct dblp_link {
	enum dblp_source	source;
	struct dblp_comm	*comm;
	uint32_t		rank;
	uint32_t		lane;
	uint32_t		nic;
	int			fd;
	enum dblp_link_state	state;
	uint64_t		since;
	int			error;
	uint32_t		phase;
	uint32_t		own_budget;
	struct dblp_link	*next_woken;
	bool			is_woken;
	bool			can_read;
	bool			can_write;
	struct dblp_task	*out;
	struct dblp_task	**out_end;
	struct dblp_task	*in;
	struct dblp_task	**in_end;
	struct dblp_record	*record;
	struct dblp_record	**record_end;
	uint64_t		tag;
	uint32_t		budget;
	enum dblp_part		part_out;
	uint8_t			*runs_out;
	uint32_t		n_out;
	bool			counted;
	uint8_t			head_out[DBLP_HEAD_LEN];
	uint8_t			*packed;
	size_t			n_packed;
	struct dblp_sparse	sparse;
	uint32_t		shift[2];
	bool			prepared;
	struct dblp_sndinfo	info;
	size_t			sent;
	enum dblp_part		part_in;
	uint8_t			*runs_in;
	struct dblp_run		*run;
	uint32_t		n_in;
	bool			counts;
	uint8_t			head_in[DBLP_HEAD_LEN];
	bool			good;
	struct dblp_inbox	inbox;
	char			*stage;
	size_t			n_stage;
	char			*chosen;
	size_t			n_chosen;
	bool			left_out;
	uint32_t		n_sends;
	uint32_t		n_recvs;
};

/**
 * struct dblp_transport - operations of a transport
 * @name: its name
 * @protocol: protocol for dblp_socket(); 0 is AF_DBLP
 * @setup: set the options of a new socket, also of a listening one
 * @lane: set the options of a lane
 * @send: send a part of the message @iov, whose critical bytes are in @info.
 *	Return: bytes sent, or a negative errno
 * @recv: receive a part of a message. Return: 1; 0 at the end of the stream; or
 *	a negative errno
 * @answers: is the connection alive, without an unanswered retransmission or
 *	keepalive probe? Adds to @heard the count of packets and bytes received,
 *	if the transport has one
 *
 * None blocks.
 */
struct dblp_transport {
	const char	*name;
	int		protocol;
	int		(*setup)(const struct dblp_comm *comm, int fd);
	int		(*lane)(int fd, const struct dblp_lane *lane);
	ssize_t		(*send)(int fd, const struct iovec *iov,
				const struct dblp_sndinfo *info);
	int		(*recv)(int fd, struct dblp_inbox *in);
	bool		(*answers)(int fd, uint64_t *heard);
};

/* conn.c */

/*
 * dblp_addr_from() - convert an IPv4, IPv6 or AF_DBLP address; false: another
 *	family
 */
bool dblp_addr_from(struct sockaddr_dblp *addr, const struct sockaddr *sa);
/*
 * Is a TCP socket connected to itself? That can happen if no socket listens at
 * a port of the ephemeral range.
 */
bool dblp_is_own_peer(int fd);

/* transport.c */

extern const struct dblp_transport dblp_transport_dblp;
extern const struct dblp_transport dblp_transport_tcp;

/** dblp_inbox_set() - expect a message of @head and @data */
void dblp_inbox_set(struct dblp_inbox *in, void *head, size_t head_len,
		    void *data, size_t data_len);

/** dblp_iov_skip() - remove the first @n bytes */
void dblp_iov_skip(struct iovec iov[2], size_t n);
/** dblp_tcp_tos() - set the TOS byte of sent packets; 0 or a negative errno */
int dblp_tcp_tos(int fd, uint32_t tos);
/** dblp_tcp_keep_alive() - probe idle connections; 0 or a negative errno */
int dblp_tcp_keep_alive(const struct dblp_comm *comm, int fd);

#define DBLP_DIGESTS	256
#define DBLP_HASH	0xcbf29ce484222325ULL

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
 * @suspect: rank that has failed, as far as this rank knows, or -1
 * @suspect_error: positive errno
 * @suspect_until: when to stop waiting for rank 0's decision, ns
 * @look_at: when to check next which ranks answer, ns
 * @unreached: first failed connection for data of this rank, on rank 0 of any
 *	rank
 * @door: rank 0: listening socket for joining ranks, or -1
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
 * @left_out: an entry of @reqs has continued without late ranks
 * @asking: a question about the operation of @late is open: rank 0 has asked
 *	all ranks, or this rank has asked rank 0
 * @ask_until: timeout of that question, ns
 * @late: message about that operation
 * @sched: the last plans; protected by the lock
 * @key: state kept by key; protected by the lock
 * @next_comm: next communicator of this process, for fork()
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
	int32_t				suspect;
	uint32_t			suspect_error;
	uint64_t			suspect_until;
	uint64_t			look_at;
	struct dblp_unreached		unreached;
	int				door;
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
	bool				left_out;
	bool				asking;
	uint64_t			ask_until;
	struct dblp_ctl			late;
	struct dblp_sched		*sched[8];
	struct dblp_key			*key;
	struct dblp_comm		*next_comm;
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

/*
 * dblp_link_bytes() - bytes of elements in the next message of a step, packed
 *	or not
 */
static inline uint32_t dblp_link_bytes(const struct dblp_link *l,
				       const struct dblp_task *t)
{
	return (uint32_t)(dblp_is_sparse(t) ? l->sparse.packed :
			  dblp_task_part(t)) * t->req->esize;
}

/* comm.c */

/** dblp_comm_now() - monotonic time, ns */
uint64_t dblp_comm_now(void);
/** dblp_hash() - continue an FNV-1a hash, which starts with %DBLP_HASH */
uint64_t dblp_hash(uint64_t h, const void *data, size_t len);
/** dblp_comm_count() - increment a field of @stats; takes the lock */
void dblp_comm_count(struct dblp_comm *comm, uint64_t *field);
/*
 * dblp_fd_close() - close *@fd unless it is -1, and set it to -1, atomically
 *	for fork()
 */
void dblp_fd_close(int *fd);
/** dblp_req_put() - drop a reference; with the lock */
void dblp_req_put(struct dblp_req *req);

/* env.c */

/** dblp_attr_env() - fill unset attributes from the environment; 0 or -EINVAL */
int dblp_attr_env(struct dblp_comm_attr *a);

/* why.c */

/**
 * dblp_why() - describe why this thread's dblp_comm_open() fails
 * @error: negative errno
 * @format: as printf(). Only the first text after dblp_why_forget() is kept,
 *	because it is closest to the cause
 *
 * Return: @error.
 */
int dblp_why(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void dblp_why_forget(void);
/** dblp_because() - describe why a communicator fails; without the lock */
void dblp_because(struct dblp_comm *comm, const char *format, ...)
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
/*
 * dblp_lock_data() - authenticate a "dblp" socket with a key derived from the
 *	secret
 */
int dblp_lock_data(const struct dblp_comm *comm, int fd);

/* files.c */

/*
 * dblp_files_reserve() - raise the limit of open files as @comm needs; 0 or a
 *	negative errno
 */
int dblp_files_reserve(const struct dblp_comm *comm);

/* join.c, listen.c, device.c */

/*
 * dblp_join() - join the other ranks: fill @ctl, @table and @id; 0 or a
 *	negative errno
 */
int dblp_join(struct dblp_comm *comm);
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

/* fork.c */

/** dblp_fork_add() - close the sockets of @comm in children; 0 or a negative errno */
int dblp_fork_add(struct dblp_comm *comm);
void dblp_fork_del(struct dblp_comm *comm);

/* control.c */

/** dblp_ctl_make() - a message from this rank */
struct dblp_ctl dblp_ctl_make(const struct dblp_comm *comm, uint16_t type);
/** dblp_ctl_begin() - add control connections to the engine; 0 or a negative errno */
int dblp_ctl_begin(struct dblp_comm *comm);
/** dblp_ctl_event() - a control connection is readable or writable */
void dblp_ctl_event(struct dblp_comm *comm, struct dblp_ctlconn *c);
/** dblp_ctl_tell() - queue and send a message; drop it if the queue is full */
void dblp_ctl_tell(const struct dblp_comm *comm, struct dblp_ctlconn *c,
		   const struct dblp_ctl *ctl);
/*
 * dblp_ctl_decide() - fail because of @rank: on rank 0, or without a connection
 *	to it
 */
void dblp_ctl_decide(struct dblp_comm *comm, uint32_t rank, uint32_t error);
/** dblp_ctl_suspect() - report to rank 0 that @rank has failed */
void dblp_ctl_suspect(struct dblp_comm *comm, uint32_t rank, int error);
/** dblp_ctl_report() - report a slow operation to rank 0, which compares digests */
void dblp_ctl_report(struct dblp_comm *comm, const struct dblp_req *req);
/*
 * dblp_ctl_began() - on rank 0: compare a new operation with earlier reports
 *	about it
 */
void dblp_ctl_began(struct dblp_comm *comm, const struct dblp_req *req);
/** dblp_earlier() - the earlier of two times, ns; ~0: never */
static inline uint64_t dblp_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** dblp_ctl_timeout() - handle timeouts; returns when to call it next, ns, or ~0 */
uint64_t dblp_ctl_timeout(struct dblp_comm *comm, uint64_t now);
/** dblp_ctl_bye() - leave: send BYE and wait until it was received */
void dblp_ctl_bye(struct dblp_comm *comm);

/* lane.c */

/*
 * dblp_lanes_try() - may this process set the options of its lanes? 0 or a
 *	negative errno
 */
int dblp_lanes_try(const struct dblp_comm *comm);
/** dblp_lanes_digest() - hash of the lanes, on which ranks must agree; 0: defaults */
uint64_t dblp_lanes_digest(const struct dblp_comm *comm);
/** dblp_lane_loss() - set what the next message may lose; 0 or a negative errno */
int dblp_lane_loss(struct dblp_link *l, const struct dblp_task *t,
		   struct dblp_sndinfo *info);
/** dblp_task_share() - bytes of contributions in a step, if nothing is lost */
uint64_t dblp_task_share(const struct dblp_task *t);
/** dblp_task_missing() - count bytes of contributions that are lost or late */
void dblp_task_missing(const struct dblp_task *t, uint64_t bytes);

/* link.c */

/** dblp_links_begin() - initialise links and watch listeners; 0 or a negative errno */
int dblp_links_begin(struct dblp_comm *comm);
void dblp_links_end(struct dblp_comm *comm);
/** dblp_link_wake() - schedule a link that may be able to send or receive */
void dblp_link_wake(struct dblp_link *l);
/*
 * dblp_link_want() - an operation needs this link: connect if this is the
 *	higher rank
 */
void dblp_link_want(struct dblp_link *l);
/** dblp_link_event() - handle epoll events */
void dblp_link_event(struct dblp_link *l, uint32_t events);
void dblp_link_died(struct dblp_link *l, int error);
void dblp_listener_event(struct dblp_comm *comm, struct dblp_nic *nic);
void dblp_pending_event(struct dblp_comm *comm, struct dblp_pending *p);
/** dblp_pending_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_pending_timeout(struct dblp_comm *comm, uint64_t now);

/* packed.c */

/** dblp_link_stage() - allocate at least @n bytes for @stage; 0 or -ENOMEM */
int dblp_link_stage(struct dblp_link *l, size_t n);
/** dblp_pack() - pack the next message of a step; 0 or -ENOMEM */
int dblp_pack(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_expect() - expect a packed vector; 0 or -ENOMEM */
int dblp_packed_expect(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_rest() - stream: its first bytes have arrived; 0 or -EPROTO */
int dblp_packed_rest(struct dblp_link *l, const struct dblp_task *t);
/*
 * dblp_packed_take() - add or copy a received packed vector, and fill @s; 0 or
 *	-EPROTO
 */
int dblp_packed_take(struct dblp_link *l, struct dblp_task *t,
		     struct dblp_sparse *s);

/* losses.c */

void dblp_keys_free(struct dblp_comm *comm);
/*
 * dblp_losses_prepare() - allocate memory for @req; with the lock. 0 or a
 *	negative errno
 */
int dblp_losses_prepare(struct dblp_req *req);
/** dblp_losses_free() - free that memory; with the lock */
void dblp_losses_free(struct dblp_req *req);
void dblp_losses_begin(struct dblp_req *req);
/** dblp_losses_clear() - the vector was cleared: no element has a contribution */
void dblp_losses_clear(struct dblp_task *t);
/** dblp_losses_need_counts() - do runs precede the messages of this step? */
bool dblp_losses_need_counts(const struct dblp_task *t);
/**
 * dblp_losses_added() - count the contributions of an added message
 * @t: the step
 * @count: elements of the vector in the message
 * @sparse: blocks of the vector that were sent, or NULL: all
 * @map: loss map of the message
 * @run: contributions in it
 * @n: number of runs; 0: all elements have the contributions of the plan
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_losses_added(struct dblp_task *t, uint64_t count,
		      const struct dblp_sparse *sparse,
		      const struct dblp_msg *map, const struct dblp_run *run,
		      uint32_t n);
/** dblp_losses_cut() - runs of the next message: their number, or a negative errno */
int dblp_losses_cut(const struct dblp_task *t, uint64_t count,
		    struct dblp_run *run, uint32_t room);
/** dblp_losses_finish() - apply the rule; 0 or -ENOMEM */
int dblp_losses_finish(struct dblp_task *t);
/*
 * dblp_losses_budget() - budget of the next message, of @bytes bytes of
 *	elements, ppm
 */
uint32_t dblp_losses_budget(struct dblp_link *l, const struct dblp_task *t,
			    uint32_t bytes, uint32_t budget);
/** dblp_losses_pruned() - residual for pruned elements of the next message, or NULL */
void *dblp_losses_pruned(const struct dblp_task *t);
/*
 * dblp_losses_sent() - record a sent message, packed as l->sparse says if it is
 *	sparse; 0 or -ENOMEM
 */
int dblp_losses_sent(struct dblp_link *l, struct dblp_task *t, uint64_t tag,
		     uint64_t count);
/*
 * dblp_losses_reported() - handle a report; returns the step of the message, or
 *	NULL
 */
struct dblp_task *dblp_losses_reported(struct dblp_link *l,
				       const struct dblp_msg *m);
void dblp_losses_forget(struct dblp_link *l);

/* late.c */

/** dblp_late_timeout() - as dblp_ctl_timeout(), for an operation with @wait_ms */
uint64_t dblp_late_timeout(struct dblp_req *req, uint64_t now);
/** dblp_late_forget() - free the copy of data for a late rank */
void dblp_late_forget(struct dblp_task *t);

/* limit.c */

/** dblp_limit_until() - when the time limit of an operation passes, ns, or ~0 */
uint64_t dblp_limit_until(const struct dblp_req *req);
/** dblp_limit_over() - the time limit of an operation has passed */
void dblp_limit_over(struct dblp_req *req);
/** dblp_limit_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_limit_timeout(struct dblp_comm *comm, uint64_t now);
/*
 * dblp_limit_heard() - handle a message about time limits; false: invalid, or
 *	of another kind
 */
bool dblp_limit_heard(struct dblp_comm *comm, struct dblp_ctlconn *c,
		      const struct dblp_ctl *ctl);

/* engine.c */

/** dblp_round_until() - when contributions of a round become late, ns */
static inline uint64_t dblp_round_until(uint64_t begin, uint32_t wait_ms,
					uint32_t round)
{
	uint64_t until;

	return __builtin_mul_overflow(wait_ms * MS_NS, (uint64_t)round + 1,
				      &until) ||
	       __builtin_add_overflow(until, begin, &until) ? UINT64_MAX : until;
}

/** dblp_poll_ms() - timeout for poll(), ms, that covers @ns */
static inline int dblp_poll_ms(uint64_t ns)
{
	if (ns / MS_NS >= INT32_MAX)
		return INT32_MAX;
	return ns ? (int)(ns / MS_NS) + 1 : 0;
}

/** dblp_req_unqueue() - a late task or copy has left its queue; may hand @req over */
void dblp_req_unqueue(struct dblp_req *req);
/** dblp_task_end() - a step has ended: wake the steps that wait for it */
void dblp_task_end(struct dblp_task *t);
/** dblp_engine() - main function of the engine's thread */
void *dblp_engine(void *comm);
/** dblp_link_reports() - read the reports about sent messages */
void dblp_link_reports(struct dblp_link *l);
/*
 * dblp_engine_fail() - end all operations with @error; ECANCELED replaces an
 *	invalid one
 */
void dblp_engine_fail(struct dblp_comm *comm, uint32_t rank, uint32_t error);

#endif /* DBLP_ENGINE_H */
