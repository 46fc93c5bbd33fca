/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: control connections, and agreeing on the rank that has failed.
 *
 *	control.c	messages and timeouts: rank 0 decides which rank has failed
 *	limit.c		time limits of operations
 *	failure.c	records of failures, on which the engine acts
 *	ctlconn.c	sending messages
 */
#ifndef DBLP_CONTROL_H
#define DBLP_CONTROL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "comm.h"
#include "util.h"

struct dblp_comm;
struct dblp_req;

#define DBLP_COMM_VERSION	3

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
 * @authenticate: join: data connections have a key
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
	uint32_t	authenticate;
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

/**
 * struct dblp_ctlconn - a control connection: to rank 0, or on rank 0 to
 *	another rank
 * @source: %DBLP_SOURCE_CTL
 * @fd: the socket; -1: closed
 * @rank: the peer
 * @bye: the peer has left in order
 * @alive_at: last time when the peer owed no answer on any connection, or
 *	@received had grown, ns
 * @received: count of packets and bytes received from the peer, as the transport
 *	knows it
 * @reported: @reported_seq and @digest are valid
 * @reported_seq: number of the operation that the peer reported last
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
	uint64_t		alive_at;
	uint64_t		received;
	bool			reported;
	uint32_t		reported_seq;
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
 * struct dblp_failure - a recorded failure
 * @is_set: the other fields are valid
 * @rank: the failed rank
 * @error: positive errno
 * @cannot_accept: the cause is that this rank cannot accept connections
 * @unreached: the failed connection for data, if one is the cause
 */
struct dblp_failure {
	bool			is_set;
	bool			cannot_accept;
	uint32_t		rank;
	uint32_t		error;
	struct dblp_unreached	unreached;
};

/* control.c */

/** dblp_ctl_begin() - add control connections to the engine; 0 or a negative errno */
int dblp_ctl_begin(struct dblp_comm *comm);
/** dblp_ctl_event() - a control connection is readable or writable */
void dblp_ctl_event(struct dblp_comm *comm, struct dblp_ctlconn *c);
/** dblp_ctl_report() - report a slow operation to rank 0, which compares digests */
void dblp_ctl_report(struct dblp_comm *comm, const struct dblp_req *req);
/*
 * dblp_ctl_began() - on rank 0: compare a new operation with earlier reports
 *	about it
 */
void dblp_ctl_began(struct dblp_comm *comm, const struct dblp_req *req);
/** dblp_ctl_timeout() - handle timeouts; returns when to call it next, ns, or ~0 */
uint64_t dblp_ctl_timeout(struct dblp_comm *comm, uint64_t now);
/**
 * dblp_ctl_agree() - act on recorded failures
 * @comm: the communicator, which has not failed
 *
 * Report a suspicion to rank 0, and rank 0's decision to all.
 *
 * Return: the failure that all ranks report, or NULL.
 */
const struct dblp_failure *dblp_ctl_agree(struct dblp_comm *comm);
/** dblp_ctl_bye() - leave: send BYE and wait until it was received */
void dblp_ctl_bye(struct dblp_comm *comm);

/* limit.c */

/** dblp_limit_until() - when the time limit of an operation passes, ns, or ~0 */
uint64_t dblp_limit_until(const struct dblp_req *req);
/** dblp_limit_over() - the time limit of an operation has passed */
void dblp_limit_over(struct dblp_req *req);
/** dblp_limit_timeout() - as dblp_ctl_timeout() */
uint64_t dblp_limit_timeout(struct dblp_comm *comm, uint64_t now);
/*
 * dblp_limit_message() - handle a message about time limits; false: invalid, or
 *	of another kind
 */
bool dblp_limit_message(struct dblp_comm *comm, struct dblp_ctlconn *c,
			const struct dblp_ctl *ctl);

/* failure.c */

/**
 * dblp_suspect() - record that @rank has failed
 * @comm: the communicator
 * @rank: the failed rank, as far as this rank knows
 * @error: negative errno
 * @unreached: the failed connection for data, if one is the cause, or NULL
 *
 * Only the first failure is recorded. Rank 0 decides which one all ranks report.
 *
 * Return: was it recorded?
 */
bool dblp_suspect(struct dblp_comm *comm, uint32_t rank, int error,
		  const struct dblp_unreached *unreached);
/**
 * dblp_decide() - record the failure that all ranks report
 * @comm: the communicator
 * @rank: the failed rank
 * @error: positive errno
 * @unreached: the failed connection for data, if one is the cause, or NULL
 *
 * On rank 0, on behalf of rank 0, or without a connection to it. Only the first
 * decision counts.
 *
 * Return: was it recorded?
 */
bool dblp_decide(struct dblp_comm *comm, uint32_t rank, uint32_t error,
		 const struct dblp_unreached *unreached);

/* ctlconn.c */

/** dblp_ctl_make() - a message from this rank */
struct dblp_ctl dblp_ctl_make(const struct dblp_comm *comm, uint16_t type);
/*
 * dblp_ctl_put() - queue a message, unless that leaves no room for @more others
 */
bool dblp_ctl_put(struct dblp_ctlconn *c, const struct dblp_ctl *ctl, uint32_t more);
/** dblp_ctl_flush() - send queued messages */
void dblp_ctl_flush(const struct dblp_comm *comm, struct dblp_ctlconn *c);
/** dblp_ctl_send() - queue and send a message; drop it if the queue is full */
void dblp_ctl_send(const struct dblp_comm *comm, struct dblp_ctlconn *c,
		   const struct dblp_ctl *ctl);

#endif /* DBLP_CONTROL_H */
