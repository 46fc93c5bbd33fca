/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: links, which are connections for data, and the messages on them.
 *
 *	link.c		connecting; links that may be able to send or receive
 *	accept.c	connections from higher ranks
 *	send.c		sending the messages of steps
 *	receive.c	receiving them
 *	packed.c	messages without blocks of zeroes
 *	budget.c	what a message may lose
 */
#ifndef DBLP_LINK_H
#define DBLP_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "head.h"
#include "libdblp.h"
#include "sparse.h"
#include "transport.h"

struct dblp_comm;
struct dblp_record;
struct dblp_run;
struct dblp_task;

/**
 * struct dblp_nic - a device
 * @source: %DBLP_SOURCE_LISTENER
 * @index: its index
 * @name: its name; "": as routed
 * @is_listed: the list of "file:" has its address, which is not a loopback one
 * @listener: listening socket for data
 * @paused_until: descriptors or memory ran out: accept no connection until then,
 *	ns; 0: accept
 * @failing_since: when accept() first failed, ns; 0: the last one succeeded
 * @addr: its address, with the port of @listener
 */
struct dblp_nic {
	enum dblp_source	source;
	uint32_t		index;
	char			name[IFNAMSIZ];
	bool			is_listed;
	int			listener;
	uint64_t		paused_until;
	uint64_t		failing_since;
	struct sockaddr_dblp	addr;
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
 * struct dblp_out_msg - the message being sent on a link
 * @part: its kind
 * @tag: tag of the last message with data
 * @budget: its budget, ppm
 * @head: its head
 * @runs: encoded runs, or NULL
 * @n_runs: their number
 * @runs_sent: the runs of the next message with data were sent, or there are
 *	none
 * @packed: packed vector, see sparse.h, elements in the order of repair.h, or NULL
 * @n_packed: bytes of @packed; 0: the message has the elements of the vector
 * @sparse: blocks in @packed
 * @n_repaired: elements in its critical part
 * @is_ready: @info, @head and the data were prepared
 * @info: its attributes
 * @sent: bytes of it that were sent
 */
struct dblp_out_msg {
	enum dblp_part		part;
	uint64_t		tag;
	uint32_t		budget;
	uint8_t			head[DBLP_HEAD_LEN];
	uint8_t			*runs;
	uint32_t		n_runs;
	bool			runs_sent;
	uint8_t			*packed;
	size_t			n_packed;
	struct dblp_sparse	sparse;
	uint64_t		n_repaired;
	bool			is_ready;
	struct dblp_sndinfo	info;
	size_t			sent;
};

/**
 * struct dblp_in_msg - the message being received on a link
 * @part: its kind
 * @head: its head
 * @head_ok: @head has arrived and is the expected one
 * @runs: encoded runs, or NULL
 * @n_runs: their number
 * @runs_received: the runs of the next message with data were received, or
 *	there are none
 * @inbox: state of its reception, unless its length is 0
 * @stage: received data to be added or unpacked
 * @n_stage: bytes allocated for @stage
 */
struct dblp_in_msg {
	enum dblp_part		part;
	uint8_t			head[DBLP_HEAD_LEN];
	bool			head_ok;
	uint8_t			*runs;
	uint32_t		n_runs;
	bool			runs_received;
	struct dblp_inbox	inbox;
	char			*stage;
	size_t			n_stage;
};

/**
 * struct dblp_queue - tasks of a link, in order
 * @first: the first one, or NULL
 * @end: where to append
 */
struct dblp_queue {
	struct dblp_task	*first;
	struct dblp_task	**end;
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
 * @never_connected: with @error: the connection was not established
 * @phase: DBLP_PHASE of the socket, %DBLP_INHERIT: not set
 * @own_budget: DBLP_BUDGET of the socket, %DBLP_INHERIT: not set
 * @next_woken: next entry in @woken of the communicator
 * @is_woken: it is in that list
 * @can_read: epoll reported readable, and no EAGAIN since
 * @can_write: epoll reported writable, and no EAGAIN since
 * @sends: tasks to send
 * @receives: tasks to receive
 * @record: sent messages whose report is awaited, in order
 * @record_end: end of @record, valid unless that is empty
 * @out: the message of the first entry of @sends
 * @in: the message of the first entry of @receives
 * @run: scratch memory for decoded runs, shared by both directions
 * @shift: last block sizes of packed vectors: of contributions, and of sums
 * @chosen: elements of a message that this lane carries, others zero
 * @n_chosen: bytes allocated for @chosen
 * @is_late: scratch flag of late.c, in the first link of each peer
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
	bool			never_connected;
	uint32_t		phase;
	uint32_t		own_budget;
	struct dblp_link	*next_woken;
	bool			is_woken;
	bool			can_read;
	bool			can_write;
	struct dblp_queue	sends;
	struct dblp_queue	receives;
	struct dblp_record	*record;
	struct dblp_record	**record_end;
	struct dblp_out_msg	out;
	struct dblp_in_msg	in;
	struct dblp_run		*run;
	uint32_t		shift[2];
	char			*chosen;
	size_t			n_chosen;
	bool			is_late;
	uint32_t		n_sends;
	uint32_t		n_recvs;
};

/* link.c */

/** dblp_links_begin() - initialise links and watch listeners; 0 or a negative errno */
int dblp_links_begin(struct dblp_comm *comm);
void dblp_links_end(struct dblp_comm *comm);
#define DBLP_LINK_EVENTS	(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

/** dblp_watch() - add, change or remove an epoll entry; 0 or a negative errno */
int dblp_watch(struct dblp_comm *comm, int op, int fd, uint32_t events, void *source);
/** dblp_link_wake() - schedule a link that may be able to send or receive */
void dblp_link_wake(struct dblp_link *l);
/*
 * dblp_link_want() - an operation needs this link: connect if this is the
 *	higher rank
 */
void dblp_link_want(struct dblp_link *l);
/** dblp_link_connected() - the connection is established, or has failed */
void dblp_link_connected(struct dblp_link *l);
/** dblp_link_ready() - data can be sent and received by @fd */
void dblp_link_ready(struct dblp_link *l, int fd);
/** dblp_link_died() - the connection has failed: record the failed rank */
void dblp_link_died(struct dblp_link *l, int error);
/** dblp_link_timeout() - time out connection attempts, as dblp_ctl_timeout() */
uint64_t dblp_link_timeout(struct dblp_comm *comm, uint64_t now);
/** dblp_link_hello() - the first message on a link, from rank @from to rank @to */
void dblp_link_hello(const struct dblp_link *l, uint32_t from, uint32_t to,
		     uint8_t p[DBLP_HEAD_LEN]);
/** dblp_link_runs() - allocate @run for @n decoded runs; 0 or -ENOMEM */
int dblp_link_runs(struct dblp_link *l, uint32_t n);
/** dblp_runs_alloc() - allocate *@encoded for @n encoded runs; 0 or -ENOMEM */
int dblp_runs_alloc(uint8_t **encoded, uint32_t n);

/* accept.c */

void dblp_listener_event(struct dblp_comm *comm, struct dblp_nic *nic);
void dblp_pending_event(struct dblp_comm *comm, struct dblp_pending *p);
/** dblp_pending_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_pending_timeout(struct dblp_comm *comm, uint64_t now);
/** dblp_pending_free() - close and free all pending connections */
void dblp_pending_free(struct dblp_comm *comm);

/* send.c */

/** dblp_link_send() - send a part of a message; true on progress */
bool dblp_link_send(struct dblp_link *l);
/** dblp_link_reports() - read the reports about sent messages */
void dblp_link_reports(struct dblp_link *l);

/* receive.c */

/** dblp_link_receive() - receive a part of a message; true on progress */
bool dblp_link_receive(struct dblp_link *l);

/* budget.c */

/** dblp_budget_set() - set what the next message may lose; 0 or a negative errno */
int dblp_budget_set(struct dblp_link *l, const struct dblp_task *t,
		    struct dblp_sndinfo *info);

/* packed.c */

/** dblp_link_stage() - allocate at least @n bytes for @stage; 0 or -ENOMEM */
int dblp_link_stage(struct dblp_link *l, size_t n);
/** dblp_pack() - pack the next message of a step; 0 or -ENOMEM */
int dblp_pack(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_expect() - expect a packed vector; 0 or -ENOMEM */
int dblp_packed_expect(struct dblp_link *l, const struct dblp_task *t);
/** dblp_packed_rest() - stream: its first bytes have arrived; 0 or -EPROTO */
int dblp_packed_rest(struct dblp_link *l, const struct dblp_task *t);
/** dblp_repair_pack() - the next message has lost elements first; 0 or -ENOMEM */
int dblp_repair_pack(struct dblp_link *l, const struct dblp_task *t);
/*
 * dblp_kept_take() - copy received elements, where lost ones keep their old
 *	value; 0 or -ENOMEM
 */
int dblp_kept_take(struct dblp_link *l, const struct dblp_task *t);
/*
 * dblp_packed_take() - add or copy a received packed vector, and fill @s; 0 or
 *	-EPROTO
 */
int dblp_packed_take(struct dblp_link *l, struct dblp_task *t,
		     struct dblp_sparse *s);

#endif /* DBLP_LINK_H */
