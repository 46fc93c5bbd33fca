/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Messages between the processes of a fabric, see fabric.h.
 *
 * A message is a &struct dblp_fab_msg. Numbers and elements of models have the
 * byte order of the host: a host with another order finds a wrong magic number.
 * %DBLP_FAB_PUSH and %DBLP_FAB_MODEL are followed by the elements. All messages
 * are reliable.
 */
#ifndef DBLP_FABRIC_MSG_H
#define DBLP_FABRIC_MSG_H

#include <libdblp.h>

/** DBLP_FAB_MAGIC - the last byte is the version */
#define DBLP_FAB_MAGIC		0x64626601U

/** DBLP_FAB_CHUNK - most bytes of elements in one message */
#define DBLP_FAB_CHUNK		16384

/** DBLP_FAB_COUNT_MAX - most elements of a model */
#define DBLP_FAB_COUNT_MAX	(UINT64_C(1) << 30)

/** DBLP_FAB_WORKERS_MAX - most workers */
#define DBLP_FAB_WORKERS_MAX	1024

/**
 * enum dblp_fab_type - types of messages
 * @DBLP_FAB_JOIN: to the scheduler: role and number of the sender, size of the
 *	model, and port for data
 * @DBLP_FAB_WELCOME: scheduler's answer: the secret of the fabric
 * @DBLP_FAB_REFUSE: scheduler's refusal, or its last message on a connection:
 *	@error is the reason
 * @DBLP_FAB_SERVER: from the scheduler: address of the server
 * @DBLP_FAB_READY: from a worker: an update is ready
 * @DBLP_FAB_GRANT: from the scheduler: send the update to @addr
 * @DBLP_FAB_DROP: from the scheduler: drop the update
 * @DBLP_FAB_LEAVE: from the scheduler: send the summed updates of the run to
 *	the server
 * @DBLP_FAB_ABANDON: from the scheduler: the run will never leave
 * @DBLP_FAB_RECEIVED: to the scheduler: an update has reached the host that
 *	sums it
 * @DBLP_FAB_APPLIED: from the server: the model has changed
 * @DBLP_FAB_FAILED: to the scheduler: its instruction cannot be carried out
 * @DBLP_FAB_RATE: to the scheduler: delivery rate of the last message
 * @DBLP_FAB_PROMOTE: from the scheduler to a replica: become the server
 * @DBLP_FAB_PUSH: an update, or a sum of updates
 * @DBLP_FAB_PULL: request of the model
 * @DBLP_FAB_FOLLOW: from a replica to the server: send the model whenever it
 *	changes
 * @DBLP_FAB_MODEL: the model
 * @DBLP_FAB_ACK: the elements were used, or with an error: they were not
 * @DBLP_FAB_TYPES: number of types
 */
enum dblp_fab_type {
	DBLP_FAB_JOIN,
	DBLP_FAB_WELCOME,
	DBLP_FAB_REFUSE,
	DBLP_FAB_SERVER,
	DBLP_FAB_READY,
	DBLP_FAB_GRANT,
	DBLP_FAB_DROP,
	DBLP_FAB_LEAVE,
	DBLP_FAB_ABANDON,
	DBLP_FAB_RECEIVED,
	DBLP_FAB_APPLIED,
	DBLP_FAB_FAILED,
	DBLP_FAB_RATE,
	DBLP_FAB_PROMOTE,
	DBLP_FAB_PUSH,
	DBLP_FAB_PULL,
	DBLP_FAB_FOLLOW,
	DBLP_FAB_MODEL,
	DBLP_FAB_ACK,
	DBLP_FAB_TYPES,
};

/** enum dblp_fab_role - roles of processes: worker, server, replica, summing host */
enum dblp_fab_role {
	DBLP_FAB_WORKER,
	DBLP_FAB_SERVES,
	DBLP_FAB_REPLICA,
	DBLP_FAB_JOINS,
	DBLP_FAB_ROLES,
};

/**
 * struct dblp_fab_msg - a message
 * @magic: %DBLP_FAB_MAGIC, set by dblp_fab_send()
 * @type: &enum dblp_fab_type
 * @role: join, push: &enum dblp_fab_role of the sender
 * @error: positive errno
 * @from: number of the worker
 * @place: position of an update in its run
 * @updates: push: number of updates in the sum
 * @addr: address of a host; join: only its port for data
 * @fabric: random number of the fabric, known only to processes that have
 *	joined
 * @run: number of the run
 * @version: version of the model: from which an update was computed, the least
 *	one wanted, or the present one
 * @first: version that the first update of a run makes; 0: the next one
 * @count: join: number of elements
 * @rate: bytes per second
 */
struct dblp_fab_msg {
	uint32_t		magic;
	uint8_t			type;
	uint8_t			role;
	uint16_t		error;
	uint32_t		from;
	uint32_t		place;
	uint32_t		updates;
	struct sockaddr_dblp	addr;
	uint64_t		fabric;
	uint64_t		run;
	uint64_t		version;
	uint64_t		first;
	uint64_t		count;
	uint64_t		rate;
};

_Static_assert(sizeof(struct dblp_fab_msg) == 96, "a message has no holes");

/**
 * dblp_fab_check() - is this a valid message?
 * @m: as received
 *
 * Return: 0; -EBADMSG if it is invalid; -EPROTONOSUPPORT if it has another
 * version.
 */
int dblp_fab_check(const struct dblp_fab_msg *m);

/*
 * Blocking connections. Functions return 0 or a negative errno; -ECONNRESET at
 * the end of the stream
 */

/**
 * struct dblp_fab_conn - a connection
 * @fd: the socket; -1: none
 * @protocol: as of dblp_socket()
 */
struct dblp_fab_conn {
	int	fd;
	int	protocol;
};

/** dblp_fab_protocol() - protocol of "dblp" or "tcp", or -EINVAL */
int dblp_fab_protocol(const char *transport);
/**
 * dblp_fab_dial() - connect
 * @c: set
 * @to: address and port
 * @protocol: as of dblp_socket()
 * @timeout_ms: timeout of the attempt, and of each later send and receive, ms
 */
int dblp_fab_dial(struct dblp_fab_conn *c, const struct sockaddr_dblp *to,
		  int protocol, uint32_t timeout_ms);
/*
 * dblp_fab_join() - join a fabric by a connection to its scheduler, and get its
 *	secret
 */
int dblp_fab_join(const struct dblp_fab_conn *c, const struct dblp_fab_msg *hello,
		  uint64_t *secret);
/** dblp_fab_listen() - a listening socket, or a negative errno */
int dblp_fab_listen(const struct sockaddr_dblp *at, int protocol);
/*
 * dblp_fab_setup() - set the options of the accepted connection @c; closed on
 *	failure
 */
int dblp_fab_setup(struct dblp_fab_conn *c, uint32_t timeout_ms);
/** dblp_fab_hang_up() - close */
void dblp_fab_hang_up(struct dblp_fab_conn *c);
/** dblp_fab_name() - peer or local address of a socket */
int dblp_fab_name(int fd, bool peer, struct sockaddr_dblp *addr);
/*
 * dblp_fab_rate() - delivery rate by DBLP_INFO or TCP_INFO, bytes per second;
 *	0: unknown
 */
uint64_t dblp_fab_rate(const struct dblp_fab_conn *c);

/*
 * dblp_fab_wait() - wait for data; -1 ms: no timeout. 0, -ETIMEDOUT, or another
 *	errno
 */
int dblp_fab_wait(const struct dblp_fab_conn *c, int timeout_ms);
int dblp_fab_send(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m);
int dblp_fab_recv(const struct dblp_fab_conn *c, struct dblp_fab_msg *m);
/** dblp_fab_chunk() - length of the next message if @left bytes are left to send */
static inline size_t dblp_fab_chunk(size_t left)
{
	return left < DBLP_FAB_CHUNK ? left : DBLP_FAB_CHUNK;
}

/*
 * dblp_fab_send_bytes() - send elements, or a part of them that consists of
 *	whole chunks
 */
int dblp_fab_send_bytes(const struct dblp_fab_conn *c, const void *p, size_t len);
int dblp_fab_recv_bytes(const struct dblp_fab_conn *c, void *p, size_t len);

/** dblp_fab_push() - send an update, and wait for its @ack */
int dblp_fab_push(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m,
		  const float *v, uint64_t n, struct dblp_fab_msg *ack);
/** dblp_fab_pull() - request a model; its elements are received next */
int dblp_fab_pull(const struct dblp_fab_conn *c, uint64_t fabric, uint64_t wanted,
		  uint64_t *version);

/** dblp_fab_norm() - Euclidean norm; NAN if the sum of squares is not finite */
double dblp_fab_norm(const float *v, uint64_t n);

#endif /* DBLP_FABRIC_MSG_H */
