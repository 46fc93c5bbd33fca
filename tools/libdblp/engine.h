/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: the inside of a communicator.
 *
 * Threads of the program put operations into the inbox of a communicator; all the rest
 * belongs to its engine, a thread that waits for sockets and lets the steps of the
 * operations go on. What both touch is protected by the lock.
 *
 *	comm.c		what programs call
 *	env.c		attributes that the environment gives
 *	why.c		reasons of failures, as text
 *	join.h		finding the other ranks, before the engine begins
 *	files.c		descriptors
 *	control.c	the connections to rank 0, which decides who has failed
 *	sched.c		plans, and which of their steps wait for which
 *	lane.c		options of the connections of a lane, and what may be lost there
 *	link.c		the connections for data: one for each peer, lane and device, made
 *			when an operation needs it
 *	engine.c	steps, message by message
 *	packed.c	messages without zeroes
 *	losses.c	what becomes of losses
 *	late.c		going on without ranks that are late
 *	limit.c		operations that take too long
 *	fork.c		what children must not have
 *	transport.c	messages over AF_DBLP or a stream
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
#define DBLP_WHY_TEXT		256
/* Bytes of the secret, of keys made from it, and of MACs */
#define DBLP_MAC		16

#define MS_NS			1000000ULL

/* sched.c */

/**
 * struct dblp_sched - the steps of a rank, and their order
 * @plan: what they were computed from
 * @layout: the same; its parts are a copy
 * @refs: who uses it
 * @n: number of steps
 * @step: the steps
 * @way: how each of them travels
 * @waits: of each step, how many others it waits for
 * @after: of each step, the first entry of @next of those that wait for it; those
 *	of the last one end at @after[@n]
 * @next: numbers of steps
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

/** dblp_sched_new() - 0 or a negative errno; with one reference */
int dblp_sched_new(const struct dblp_plan *plan, const struct dblp_layout *layout,
		   struct dblp_sched **sched);
void dblp_sched_put(struct dblp_sched *s);

/* Operations */

/**
 * struct dblp_task - a step of an operation
 * @req: the operation
 * @step: the step
 * @next: next one in the queue of the link
 * @waits: steps that have to end before
 * @done: elements whose message was sent, or has come
 * @reports: messages whose report is still to come
 * @begun: something was sent, or has come
 * @ended: it holds nothing up any more
 * @late: the operation has gone on without it
 * @own: a copy of the data, from @done on when it was made, or NULL
 * @own_from: @done at that time
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
 * @op: how
 * @sched: what
 * @peer: send and recv: the other rank, and the plan is one of these two; else -1
 * @word: the vector of a barrier
 * @buf: the vector
 * @esize: bytes of an element
 * @seq: number of the operation: of all ranks, or of those from one rank to another
 * @digest: of all that ranks must agree upon
 * @begin: when it began
 * @told: rank 0 was told of it, since it takes long
 * @ran_out: rank 0 was told that it has taken longer than its limit
 * @late_at: nothing can be late before
 * @left: tasks that have not ended
 * @lane_left: the same, by lane
 * @queued: tasks that are still in the queue of a link, late ones too
 * @key: what is kept for the next one, or NULL
 * @counts: contributions of each element
 * @budgets: messages whose budget is in the result
 * @users: the program (until dblp_wait()), the engine (until it is in @over)
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
	uint32_t		word;
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

/* What is kept from one operation to the next one */
struct dblp_key {
	struct dblp_key		*next;
	uint64_t		key;
	uint64_t		count;
	uint32_t		dtype;
	bool			busy;
	void			*residual;
	struct dblp_carry	*carry;
};

/* A message that was sent, and is to be reported: elements, and bytes of them */
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
 * struct dblp_unreached - a rank has got no connection for data to another one
 * @from: that rank
 * @port: port to which it tried to connect, in network byte order; 0: it is not that
 * @reserved: 0
 * @addr: the address
 */
struct dblp_unreached {
	uint32_t	from;
	uint16_t	port;
	uint16_t	reserved;
	struct in6_addr	addr;
};

/**
 * struct dblp_ctl - what ranks and rank 0 tell each other
 * @magic: %DBLP_CTL_MAGIC
 * @version: %DBLP_COMM_VERSION
 * @type: &enum dblp_ctl_type
 * @rank: sender; abort, suspect: who has failed; bye: who has left, also if rank 0
 *	says so
 * @error: positive errno
 * @nranks: join; late, absent: how many ranks are named
 * @epoch: join, table
 * @nics: join, table: devices; late, absent: 1: of a send or recv
 * @message_bytes: join; late, absent: the limit, ms
 * @seq: report, late, absent: number of the operation; begun: of the one that is next
 * @reserved: 0
 * @digest: join: of the lanes; report: of the operation
 * @comm: table: random number of the communicator
 * @transport: join: its name; late, absent: the first ranks of &struct dblp_absent
 * @unreached: abort, suspect: where that rank was not reached
 *
 * Join and table are followed by addresses: one for each device, of that rank, or of
 * all.
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
 * struct dblp_absent - ranks that an operation waits for
 * @n: their number
 * @rank: the first %DBLP_ABSENT_RANKS
 */
struct dblp_absent {
	uint32_t	n;
	uint16_t	rank[DBLP_ABSENT_RANKS];
};

/* What epoll finds; first field of each */
enum dblp_source {
	DBLP_SOURCE_WAKE,
	DBLP_SOURCE_CTL,
	DBLP_SOURCE_LISTENER,
	DBLP_SOURCE_PENDING,
	DBLP_SOURCE_LINK,
};

/**
 * struct dblp_ctlconn - a connection to rank 0, or of rank 0
 * @source: what it is
 * @fd: -1: none any more
 * @rank: the other end
 * @bye: it has left as it should
 * @heard_at: when that rank last owed no answer, on this connection or another one, or
 *	something had come from it
 * @heard: what had come from it by then
 * @reported: it has reported an operation
 * @told: number of the one that it has reported last
 * @digest: of that
 * @answered: it has said how many operations it has begun, since that was asked
 * @begun: that number
 * @n_left: how many of those that have left it was told of
 * @got: bytes in @in
 * @in: what has come of a message
 * @n_out: bytes in @out
 * @out: what is to be sent
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
 * @source: what it is
 * @index: which one
 * @name: its name, or "": whatever the routes take
 * @is_listed: the rendezvous names the address of this rank
 * @listener: listens for connections for data
 * @deaf_until: no connection is accepted until then, for want of descriptors; 0: all are
 * @deaf_since: when that began; 0: the last one was accepted
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
 * Room for what comes beside a message: 128 ranges and the rcvinfo; more ranges if the
 * module's is shorter than that of its header here
 */
#define DBLP_INBOX_CONTROL						\
	(CMSG_SPACE(sizeof(struct dblp_rcvinfo)) +			\
	 CMSG_SPACE(128 * sizeof(struct dblp_range)))

/**
 * struct dblp_inbox - a message that is coming
 * @iov: where it goes: head and data
 * @len: its length
 * @is_most: it may be shorter: @len becomes its length once it is closed
 * @got: bytes that have come
 * @closed: nothing more comes
 * @n: number of ranges
 * @range: what the last call has placed
 * @map: what is missing, once it is closed
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

/* A connection that has not said who it is */
struct dblp_pending {
	enum dblp_source	source;
	int			fd;
	uint32_t		nic;
	struct dblp_pending	*next;
	uint64_t		since;
	uint8_t			head[DBLP_HEAD_LEN];
	struct dblp_inbox	in;
};

enum dblp_link_state {
	DBLP_LINK_NONE,
	DBLP_LINK_CONNECTING,
	DBLP_LINK_READY,
	DBLP_LINK_DEAD,
};

/*
 * What travels of a step: data; before it, if some may lack contributions, the head of
 * the same message with the number of runs, and these, as messages of their own. So
 * each end knows how long a message will be before it comes.
 */
enum dblp_part {
	DBLP_PART_DATA,
	DBLP_PART_COUNTS,
	DBLP_PART_RUNS,
};

/**
 * struct dblp_link - connection for data with a rank, of a lane, over a device
 * @source: what it is
 * @comm: the communicator
 * @rank: the peer
 * @lane: the lane
 * @nic: the device
 * @fd: the socket, or -1
 * @state: &enum dblp_link_state
 * @since: when this rank began to connect
 * @error: negative errno, if it is dead
 * @phase: that the socket was set to, %DBLP_INHERIT: none
 * @own_budget: the same
 * @next_woken: next one in @woken of the communicator
 * @is_woken: it is there
 * @can_read: EAGAIN was not seen since there was something
 * @can_write: the same
 * @out: steps to send, in order
 * @out_end: where the next one is put
 * @in: steps to receive, in order
 * @in_end: where the next one is put
 * @record: messages that were sent, and are to be reported, in order
 * @record_end: where the next one is put, unless there is none
 * @tag: of the message that is being sent
 * @budget: of it
 * @part_out: which part it is
 * @runs_out: runs to be sent, encoded, or NULL
 * @n_out: number of them
 * @counted: they were sent before the data that is next, or need not be
 * @head_out: of the message that is being sent
 * @packed: data of that message, without zeroes, or NULL
 * @n_packed: bytes of it
 * @sparse: where it belongs
 * @shift: block sizes of the last ones: of contributions, and of sums
 * @prepared: the message that is next is @info, @head_out and what belongs to them
 * @info: how it is sent
 * @sent: bytes of it that were sent
 * @part_in: which part comes
 * @runs_in: runs that came, encoded, or NULL
 * @run: memory for runs
 * @n_in: number of those that came
 * @counts: they came before the data that is next, or need not
 * @head_in: of the message that comes
 * @good: @head_in was looked at
 * @inbox: the message that comes, if its length is not 0
 * @stage: data that is to be added, or unpacked
 * @n_stage: its length
 * @chosen: memory for the elements of a message that go by this lane
 * @n_chosen: its length
 * @left_out: first one of a peer: for late.c
 * @n_sends: send: number of the next operation; protected by the communicator's lock
 * @n_recvs: recv: the same
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
 * struct dblp_transport - how messages travel
 * @name: its name
 * @protocol: for dblp_socket()
 * @setup: options of a new socket, also of one that listens
 * @lane: those of a lane
 * @send: send a part of @len bytes from @iov (whose first bytes, as many as the head
 *	has, are critical); bytes sent, or a negative errno
 * @recv: receive what has come of a message; 1, 0 at the end of all, or a negative
 *	errno
 * @answers: nothing that was sent, nor a question by keepalive, has been repeated in vain;
 *	adds to @heard, which grows with what comes from there, if that is known
 *
 * None waits.
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

/** dblp_addr_from() - an address of IPv4, as IPv4-mapped, IPv6 or AF_DBLP; false: another */
bool dblp_addr_from(struct sockaddr_dblp *addr, const struct sockaddr *sa);
/*
 * Is a socket of TCP connected to itself? That happens where nobody listens, if the port
 * is one that the kernel may choose for the end that connects.
 */
bool dblp_is_own_peer(int fd);

/* transport.c */

extern const struct dblp_transport dblp_transport_dblp;
extern const struct dblp_transport dblp_transport_tcp;

/** dblp_inbox_set() - a message of @head and @data is to come */
void dblp_inbox_set(struct dblp_inbox *in, void *head, size_t head_len,
		    void *data, size_t data_len);

/** dblp_iov_skip() - what is behind the first @n bytes */
void dblp_iov_skip(struct iovec iov[2], size_t n);
/** dblp_tcp_tos() - set the TOS byte of what it sends; 0 or a negative errno */
int dblp_tcp_tos(int fd, uint32_t tos);
/** dblp_tcp_keep_alive() - ask the host of an idle connection; 0 or a negative errno */
int dblp_tcp_keep_alive(const struct dblp_comm *comm, int fd);

#define DBLP_DIGESTS	256
#define DBLP_HASH	0xcbf29ce484222325ULL

/**
 * struct dblp_comm - a communicator
 * @attr: attributes, without strings
 * @rank: this rank
 * @nranks: number of ranks
 * @id: random number
 * @transport: of data
 * @cc: congestion control of TCP, or ""
 * @n_nics: number of devices
 * @nic: the devices
 * @n_lanes: number of lanes
 * @lane: the lanes, and a plain one for send and recv
 * @n_links: lanes x devices, and one for send and recv: connections with a rank
 * @has_secret: there is one; else @secret is zero
 * @secret: known to all ranks, and to nobody else
 * @data_key: made from it, for connections for data
 * @port_first: first port to listen at
 * @n_ports: number of them; 0: any port
 * @table: addresses: of each rank, of each device
 * @epoll: what the engine waits for
 * @wake: eventfd for the engine
 * @wake_source: for epoll
 * @ended_fd: eventfd, for dblp_comm_fd()
 * @thread: the engine
 * @running: it was started
 * @ctl: connections: on rank 0 to all others by rank, else only that to rank 0, [0]
 * @n_ctl: number of them
 * @suspect: rank that has failed, as far as this one knows, or -1
 * @suspect_error: positive errno
 * @suspect_until: rank 0 is waited for until then
 * @look_at: when to look again which ranks answer
 * @unreached: the first connection that this rank, or on rank 0 any rank, has not got
 * @door: rank 0: listens while ranks come, or -1
 * @left: ranks that have left, in order
 * @n_left: number of them
 * @left_at: by rank, when it left, or 0
 * @link: by rank, lane and device
 * @woken: of these, the ones that may be able to go on, in order
 * @woken_end: where the next one is put
 * @n_connecting: links that this rank is connecting
 * @pending: connections that have not said who they are
 * @n_pending: number of those that were not sent away
 * @digest: of the last operations, by number
 * @begun: number of the operation that begins next
 * @owned: bytes of copies for late ranks
 * @reqs: operations for which the engine has something left to do, in order
 * @first: of these the first one of all ranks that has not ended, or NULL
 * @over: those that have ended since it last looked
 * @due: when one of @reqs may have late ranks or run out, ~0: never
 * @left_out: one of @reqs goes on without late ranks
 * @asking: ranks were asked whether they have begun the operation of @late: rank 0 asks
 *	all, and another rank asks it
 * @ask_until: until then
 * @late: what was said of it
 * @sched: of the last plans
 * @key: what is kept from one operation to the next one, with the lock
 * @next_comm: for fork()
 * @describe: text
 * @why: what is known of its failure, or ""; never changes once it is set
 * @lock: protects what follows
 * @cond: something has ended
 * @quit: the engine is to end
 * @abort: positive errno, dblp_comm_abort() was called
 * @error: negative errno, 0: it works
 * @failed_rank: who, or -1
 * @absent: whom an operation that has run out waits for
 * @seq: number of the next operation
 * @inbox: operations that the engine has not seen
 * @done: operations that wait for dblp_wait() only
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

/** dblp_link_of() - connection @i, lane x devices + device, with a rank */
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

/** dblp_pair_link() - the connection for send and recv */
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

/** dblp_is_sparse() - some elements of its messages are left out, or go elsewhere */
static inline bool dblp_is_sparse(const struct dblp_task *t)
{
	return t->req->op.flags & DBLP_OP_SPARSE || dblp_task_way(t).choice;
}

/** dblp_keeps() - are messages of this step sums that may be lost? */
static inline bool dblp_keeps(const struct dblp_task *t)
{
	return t->step->reliable && t->req->op.flags & DBLP_OP_KEEP;
}

/** dblp_loss_of() - loss map @m of a message of @count elements, or of @sparse */
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

/** dblp_task_data() - elements of the next message of a step */
static inline char *dblp_task_data(const struct dblp_task *t)
{
	if (t->own)
		return t->own + (t->done - t->own_from) * t->req->esize;
	return t->req->buf + (t->step->offset + t->done) * t->req->esize;
}

/** dblp_task_part() - elements of the next message of a step */
static inline uint64_t dblp_task_part(const struct dblp_task *t)
{
	uint64_t most = dblp_task_comm(t)->attr.message_bytes / t->req->esize;
	uint64_t left = t->step->count - t->done;

	return left < most ? left : most;
}

/** dblp_link_bytes() - bytes of these elements, of which zeroes may be left out */
static inline uint32_t dblp_link_bytes(const struct dblp_link *l,
				       const struct dblp_task *t)
{
	return (uint32_t)(dblp_is_sparse(t) ? l->sparse.packed :
			  dblp_task_part(t)) * t->req->esize;
}

/* comm.c */

/** dblp_comm_now() - nanoseconds */
uint64_t dblp_comm_now(void);
/** dblp_hash() - FNV-1a, which begins with %DBLP_HASH */
uint64_t dblp_hash(uint64_t h, const void *data, size_t len);
/** dblp_comm_count() - one more in a field of @stats */
void dblp_comm_count(struct dblp_comm *comm, uint64_t *field);
/** dblp_fd_close() - close *@fd, if it is not -1; children do not do so again */
void dblp_fd_close(int *fd);
/** dblp_req_put() - a user less; with the lock */
void dblp_req_put(struct dblp_req *req);

/* env.c */

/** dblp_attr_env() - take what @a leaves open from the environment; 0 or -EINVAL */
int dblp_attr_env(struct dblp_comm_attr *a);

/* why.c */

/**
 * dblp_why() - say why this thread's dblp_comm_open() fails
 * @error: negative errno
 * @format: as printf(); the first text after dblp_why_forget() counts, since it is the
 *	one nearest to the cause
 *
 * Return: @error.
 */
int dblp_why(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void dblp_why_forget(void);
/** dblp_because() - the same for a communicator that fails; without the lock */
void dblp_because(struct dblp_comm *comm, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* secret.c */

/** dblp_secret_take() - from @attr or the environment; 0 or a negative errno */
int dblp_secret_take(struct dblp_comm *comm);
/** dblp_mac() - SipHash-2-4 of 128 bits */
void dblp_mac(const uint8_t key[DBLP_MAC], const void *data, size_t len,
	      uint8_t mac[DBLP_MAC]);
/** dblp_mac_64() - the first 64 bits of dblp_mac() */
uint64_t dblp_mac_64(const uint8_t key[DBLP_MAC], const void *data, size_t len);
/** dblp_is_equal() - as memcmp(), in a time that does not depend on the bytes */
bool dblp_is_equal(const void *a, const void *b, size_t len);
/** dblp_lock_data() - a socket of "dblp" takes only who knows the secret */
int dblp_lock_data(const struct dblp_comm *comm, int fd);

/* files.c */

/** dblp_files_reserve() - let this process have as many descriptors as @comm may need */
int dblp_files_reserve(const struct dblp_comm *comm);

/* join.c, listen.c, device.c */

/** dblp_join() - fill in what the other ranks say; 0 or a negative errno */
int dblp_join(struct dblp_comm *comm);
/** dblp_ports_parse() - the range of ports of @attr; 0 or -EINVAL */
int dblp_ports_parse(struct dblp_comm *comm);
/** dblp_device_is_inner() - is it a network inside of this host, by its name? */
bool dblp_device_is_inner(const char *name);
/** dblp_bind_device() - use only @nic, if it has a name */
int dblp_bind_device(const struct dblp_nic *nic, int fd);

/* fork.c */

/** dblp_fork_add() - children close the sockets of @comm; 0 or a negative errno */
int dblp_fork_add(struct dblp_comm *comm);
void dblp_fork_del(struct dblp_comm *comm);

/* control.c */

/** dblp_ctl_make() - a message of this rank */
struct dblp_ctl dblp_ctl_make(const struct dblp_comm *comm, uint16_t type);
/** dblp_ctl_begin() - the engine begins; 0 or a negative errno */
int dblp_ctl_begin(struct dblp_comm *comm);
/** dblp_ctl_event() - something has come, or can be sent */
void dblp_ctl_event(struct dblp_comm *comm, struct dblp_ctlconn *c);
/** dblp_ctl_tell() - send a message; what has no room is left out */
void dblp_ctl_tell(const struct dblp_comm *comm, struct dblp_ctlconn *c,
		   const struct dblp_ctl *ctl);
/** dblp_ctl_decide() - rank 0, or a rank without it: @rank has failed */
void dblp_ctl_decide(struct dblp_comm *comm, uint32_t rank, uint32_t error);
/** dblp_ctl_suspect() - @rank has failed, as far as is known here */
void dblp_ctl_suspect(struct dblp_comm *comm, uint32_t rank, int error);
/** dblp_ctl_report() - an operation takes long: do all ranks mean the same by it? */
void dblp_ctl_report(struct dblp_comm *comm, const struct dblp_req *req);
/** dblp_ctl_began() - an operation begins: rank 0 looks what it was told about it */
void dblp_ctl_began(struct dblp_comm *comm, const struct dblp_req *req);
/** dblp_earlier() - of two times at which something is due, ~0: nothing is */
static inline uint64_t dblp_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/** dblp_ctl_timeout() - time has passed; when it should be called next, or ~0 */
uint64_t dblp_ctl_timeout(struct dblp_comm *comm, uint64_t now);
/** dblp_ctl_bye() - leave */
void dblp_ctl_bye(struct dblp_comm *comm);

/* lane.c */

/** dblp_lanes_try() - may this process have such sockets? 0 or a negative errno */
int dblp_lanes_try(const struct dblp_comm *comm);
/** dblp_lanes_digest() - of what all ranks have to give alike; 0: nothing */
uint64_t dblp_lanes_digest(const struct dblp_comm *comm);
/** dblp_lane_loss() - what may be lost of the next message; 0 or a negative errno */
int dblp_lane_loss(struct dblp_link *l, const struct dblp_task *t,
		   struct dblp_sndinfo *info);
/** dblp_task_share() - bytes of contributions that a step brings, if nothing is lost */
uint64_t dblp_task_share(const struct dblp_task *t);
/** dblp_task_missing() - so many bytes of them are lost, or too late */
void dblp_task_missing(const struct dblp_task *t, uint64_t bytes);

/* link.c */

/** dblp_links_begin() - listen; 0 or a negative errno */
int dblp_links_begin(struct dblp_comm *comm);
void dblp_links_end(struct dblp_comm *comm);
/** dblp_link_wake() - it may be able to send, or to receive */
void dblp_link_wake(struct dblp_link *l);
/** dblp_link_want() - connect if that is this rank's part */
void dblp_link_want(struct dblp_link *l);
/** dblp_link_event() - epoll says so */
void dblp_link_event(struct dblp_link *l, uint32_t events);
void dblp_link_died(struct dblp_link *l, int error);
void dblp_listener_event(struct dblp_comm *comm, struct dblp_nic *nic);
void dblp_pending_event(struct dblp_comm *comm, struct dblp_pending *p);
/** dblp_pending_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_pending_timeout(struct dblp_comm *comm, uint64_t now);

/* packed.c */

/** dblp_link_stage() - let @stage have so many bytes; 0 or -ENOMEM */
int dblp_link_stage(struct dblp_link *l, size_t n);
/** dblp_pack() - pack the next message of a step; 0 or -ENOMEM */
int dblp_pack(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_expect() - a packed vector comes; 0 or -ENOMEM */
int dblp_packed_expect(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_rest() - its first bytes have come, of a stream; 0 or -EPROTO */
int dblp_packed_rest(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_take() - it has come: add or copy it, and fill @s; 0 or -EPROTO */
int dblp_packed_take(struct dblp_link *l, struct dblp_task *t,
		     struct dblp_sparse *s);

/* losses.c */

void dblp_keys_free(struct dblp_comm *comm);
/** dblp_losses_prepare() - memory for @req; with the lock. 0 or a negative errno */
int dblp_losses_prepare(struct dblp_req *req);
/** dblp_losses_free() - free it; with the lock */
void dblp_losses_free(struct dblp_req *req);
void dblp_losses_begin(struct dblp_req *req);
/** dblp_losses_clear() - nothing was contributed here */
void dblp_losses_clear(struct dblp_task *t);
/** dblp_losses_need_counts() - do numbers of contributions go before the data? */
bool dblp_losses_need_counts(const struct dblp_task *t);
/**
 * dblp_losses_added() - a message was added
 * @t: the step
 * @count: elements of the vector in the message
 * @sparse: the only ones of these that were sent, or NULL
 * @map: what was lost of it
 * @run: contributions in it
 * @n: number of runs; 0: those of the plan
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_losses_added(struct dblp_task *t, uint64_t count,
		      const struct dblp_sparse *sparse,
		      const struct dblp_msg *map, const struct dblp_run *run,
		      uint32_t n);
/** dblp_losses_cut() - runs of the next message, no more than there are in all */
int dblp_losses_cut(const struct dblp_task *t, uint64_t count,
		    struct dblp_run *run, uint32_t room);
/** dblp_losses_finish() - apply the rule; 0 or -ENOMEM */
int dblp_losses_finish(struct dblp_task *t);
/** dblp_losses_budget() - what the next message may lose of so many bytes, ppm */
uint32_t dblp_losses_budget(struct dblp_link *l, const struct dblp_task *t,
			    uint32_t bytes, uint32_t budget);
/** dblp_losses_pruned() - where what is pruned of the next message is kept, or NULL */
void *dblp_losses_pruned(const struct dblp_task *t);
/** dblp_losses_sent() - a message was sent, l->sparse if it is; 0 or -ENOMEM */
int dblp_losses_sent(struct dblp_link *l, struct dblp_task *t, uint64_t tag,
		     uint64_t count);
/** dblp_losses_reported() - returns whose message it was, or NULL */
struct dblp_task *dblp_losses_reported(struct dblp_link *l,
				       const struct dblp_msg *m);
void dblp_losses_forget(struct dblp_link *l);

/* late.c */

/** dblp_late_timeout() - as dblp_ctl_timeout(), for an operation with @wait_ms */
uint64_t dblp_late_timeout(struct dblp_req *req, uint64_t now);
/** dblp_late_forget() - the copy of what is sent to a late rank is not needed */
void dblp_late_forget(struct dblp_task *t);

/* limit.c */

/** dblp_limit_until() - when an operation runs out, or ~0 */
uint64_t dblp_limit_until(const struct dblp_req *req);
/** dblp_limit_over() - it has */
void dblp_limit_over(struct dblp_req *req);
/** dblp_limit_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_limit_timeout(struct dblp_comm *comm, uint64_t now);
/** dblp_limit_heard() - take a message of this kind; false: it is none, or none that can be */
bool dblp_limit_heard(struct dblp_comm *comm, struct dblp_ctlconn *c,
		      const struct dblp_ctl *ctl);

/* engine.c */

/** dblp_round_until() - when an operation goes on without what a round brings, ns */
static inline uint64_t dblp_round_until(uint64_t begin, uint32_t wait_ms,
					uint32_t round)
{
	uint64_t until;

	return __builtin_mul_overflow(wait_ms * MS_NS, (uint64_t)round + 1,
				      &until) ||
	       __builtin_add_overflow(until, begin, &until) ? UINT64_MAX : until;
}

/** dblp_poll_ms() - for how long to poll until so many ns are over */
static inline int dblp_poll_ms(uint64_t ns)
{
	if (ns / MS_NS >= INT32_MAX)
		return INT32_MAX;
	return ns ? (int)(ns / MS_NS) + 1 : 0;
}

/** dblp_req_unqueue() - a late task less; it may be the last thing left of @req */
void dblp_req_unqueue(struct dblp_req *req);
/** dblp_task_end() - a step has ended: what waited for it may be able to go on */
void dblp_task_end(struct dblp_task *t);
/** dblp_engine() - the thread */
void *dblp_engine(void *comm);
/** dblp_link_reports() - take the reports about what was sent */
void dblp_link_reports(struct dblp_link *l);
/** dblp_engine_fail() - all operations end with @error; what is no errno is ECANCELED */
void dblp_engine_fail(struct dblp_comm *comm, uint32_t rank, uint32_t error);

#endif /* DBLP_ENGINE_H */
