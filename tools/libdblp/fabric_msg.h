/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: what the processes of a fabric tell each other, see fabric.h.
 *
 * A message is a &struct dblp_fab_msg. All numbers, as the elements of models, have the
 * byte order of the host: the magic number of another one is wrong. %DBLP_FAB_PUSH and
 * %DBLP_FAB_MODEL are followed by the elements. Nothing of all that may be lost.
 */
#ifndef DBLP_FABRIC_MSG_H
#define DBLP_FABRIC_MSG_H

#include "libdblp.h"

/** DBLP_FAB_MAGIC - the last byte is the version */
#define DBLP_FAB_MAGIC		0x64626601U

/** DBLP_FAB_CHUNK - the most bytes of elements that travel as one message */
#define DBLP_FAB_CHUNK		16384

/** DBLP_FAB_COUNT_MAX - the most elements of a model */
#define DBLP_FAB_COUNT_MAX	(UINT64_C(1) << 30)

/** DBLP_FAB_WORKERS_MAX - the most workers */
#define DBLP_FAB_WORKERS_MAX	1024

/**
 * enum dblp_fab_type - types of messages
 * @DBLP_FAB_JOIN: to the scheduler: who this is, what the model is, and the port of data
 * @DBLP_FAB_WELCOME: its answer: the secret of the fabric
 * @DBLP_FAB_REFUSE: the other answer, and the end of a connection: why
 * @DBLP_FAB_SERVER: of the scheduler: where the server is
 * @DBLP_FAB_READY: of a worker: an update is ready
 * @DBLP_FAB_GRANT: of the scheduler: send it there
 * @DBLP_FAB_DROP: of the scheduler: do not send it
 * @DBLP_FAB_LEAVE: of the scheduler: send what was joined to the server
 * @DBLP_FAB_ABANDON: of the scheduler: this run will never leave
 * @DBLP_FAB_RECEIVED: to the scheduler: an update has come to where it is joined
 * @DBLP_FAB_APPLIED: of the server: the model has changed
 * @DBLP_FAB_FAILED: to the scheduler: what it said cannot be done
 * @DBLP_FAB_RATE: to the scheduler: how fast the last message was
 * @DBLP_FAB_PROMOTE: of the scheduler to a replica: be the server
 * @DBLP_FAB_PUSH: an update, or a sum of updates
 * @DBLP_FAB_PULL: send the model
 * @DBLP_FAB_FOLLOW: of a replica to the server: send the model whenever it changes
 * @DBLP_FAB_MODEL: the model
 * @DBLP_FAB_ACK: what came was used; an error: it was not
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

/** enum dblp_fab_role - who has joined */
enum dblp_fab_role {
	DBLP_FAB_WORKER,
	DBLP_FAB_SERVES,
	DBLP_FAB_REPLICA,
	DBLP_FAB_JOINS,
	DBLP_FAB_ROLES,
};

/**
 * struct dblp_fab_msg - a message
 * @magic: %DBLP_FAB_MAGIC, which who sends it need not set
 * @type: &enum dblp_fab_type
 * @role: &enum dblp_fab_role of who joins the fabric, or pushes
 * @error: positive errno
 * @from: number of the worker
 * @place: of an update in its run
 * @updates: how many a push is the sum of
 * @addr: of a host; join: only the port of its data
 * @fabric: random number of the fabric, which only who was welcomed knows
 * @run: number of the run
 * @version: of the model that an update was computed from, that is wanted at least, or
 *	that is there now
 * @first: the version that the first update of a run makes; 0: the next one
 * @count: join: number of elements
 * @rate: bytes a second
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
 * dblp_fab_check() - is this a message?
 * @m: as it has come
 *
 * Return: 0; -EBADMSG if a sender must not send it; -EPROTONOSUPPORT if it is of another
 * version.
 */
int dblp_fab_check(const struct dblp_fab_msg *m);

/* Connections, which block; 0 or a negative errno. 0 bytes are -ECONNRESET */

/**
 * struct dblp_fab_conn - a connection
 * @fd: -1: there is none
 * @protocol: as of dblp_socket()
 */
struct dblp_fab_conn {
	int	fd;
	int	protocol;
};

/** dblp_fab_protocol() - that of "dblp" or "tcp", or -EINVAL */
int dblp_fab_protocol(const char *transport);
/**
 * dblp_fab_dial() - connect
 * @c: set
 * @to: address and port
 * @protocol: as of dblp_socket()
 * @timeout_ms: for this, and each later send and receive
 */
int dblp_fab_dial(struct dblp_fab_conn *c, const struct sockaddr_dblp *to,
		  int protocol, uint32_t timeout_ms);
/** dblp_fab_join() - join a fabric by a connection to its scheduler; -errno: why not */
int dblp_fab_join(const struct dblp_fab_conn *c, const struct dblp_fab_msg *hello,
		  uint64_t *secret);
/** dblp_fab_listen() - a socket, or a negative errno */
int dblp_fab_listen(const struct sockaddr_dblp *at, int protocol);
/** dblp_fab_setup() - prepare @c, which was accepted; it is closed on failure */
int dblp_fab_setup(struct dblp_fab_conn *c, uint32_t timeout_ms);
/** dblp_fab_hang_up() - close */
void dblp_fab_hang_up(struct dblp_fab_conn *c);
/** dblp_fab_name() - the address of the peer, or the own one */
int dblp_fab_name(int fd, bool peer, struct sockaddr_dblp *addr);
/** dblp_fab_rate() - delivery rate by DBLP_INFO or TCP_INFO, bytes a second; 0: unknown */
uint64_t dblp_fab_rate(const struct dblp_fab_conn *c);

/** dblp_fab_wait() - until something comes; -1 ms: for ever. 0, -ETIMEDOUT, or another errno */
int dblp_fab_wait(const struct dblp_fab_conn *c, int timeout_ms);
int dblp_fab_send(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m);
int dblp_fab_recv(const struct dblp_fab_conn *c, struct dblp_fab_msg *m);
/** dblp_fab_chunk() - bytes of the next message, if so many are left */
static inline size_t dblp_fab_chunk(size_t left)
{
	return left < DBLP_FAB_CHUNK ? left : DBLP_FAB_CHUNK;
}

/** dblp_fab_send_bytes() - send elements, or a part of them of whole chunks */
int dblp_fab_send_bytes(const struct dblp_fab_conn *c, const void *p, size_t len);
int dblp_fab_recv_bytes(const struct dblp_fab_conn *c, void *p, size_t len);

/** dblp_fab_push() - send an update, and wait for what became of it: @ack */
int dblp_fab_push(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m,
		  const float *v, uint64_t n, struct dblp_fab_msg *ack);
/** dblp_fab_pull() - ask for a model; its elements come next */
int dblp_fab_pull(const struct dblp_fab_conn *c, uint64_t fabric, uint64_t wanted,
		  uint64_t *version);

/** dblp_fab_norm() - Euclidean norm; NAN if an element is infinite or no number */
double dblp_fab_norm(const float *v, uint64_t n);

#endif /* DBLP_FABRIC_MSG_H */
