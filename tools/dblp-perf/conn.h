/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections that carry messages of known length over any transport.
 */
#ifndef DBLP_PERF_CONN_H
#define DBLP_PERF_CONN_H

#include <libdblp.h>

#include "perf.h"

/**
 * struct proto - a transport
 * @name: on the command line
 * @timers: prefix of the names of its timer functions in the kernel
 * @protocol: as dblp_socket() takes it
 * @most: most bytes for one send(); larger messages are sent in pieces
 * @lossy: it can carry messages with a loss budget
 * @cc_level: of the socket option for congestion control, 0 if there is none
 * @cc_option: that option
 * @setup: set options before connecting; optional
 * @sender: set options for the messages of a run; optional
 * @recv: receive some of a message into @buf, at most @len bytes; as recv().
 *	Counts missing bytes in @c
 */
struct proto {
	const char	*name;
	const char	*timers;
	int		protocol;
	uint32_t	most;
	bool		lossy;
	int		cc_level;
	int		cc_option;
	void		(*setup)(int fd);
	void		(*sender)(int fd);
	ssize_t		(*recv)(struct conn *c, void *buf, size_t len,
				int flags);
};

extern const struct proto proto_dblp, proto_tcp, proto_sctp;

/** proto_find() - by name, NULL if there is none */
const struct proto *proto_find(const char *name);

/**
 * struct conn - one connection
 * @fd: socket
 * @proto: transport
 * @index: number within the run; connecting ends count from 0
 * @got: bytes of the message that is being received
 * @received: messages received with conn_take()
 * @missing: bytes missing in the last of them
 * @msg: loss map of the last of them
 */
struct conn {
	int			fd;
	const struct proto	*proto;
	unsigned int		index;
	uint32_t		got;
	uint64_t		received;
	uint32_t		missing;
	struct dblp_msg		msg;
};

/** enum received - result of conn_take() */
enum received {
	RECEIVED_END,		/* the peer sends no more */
	RECEIVED_PART,		/* nothing, or only a part of a message */
	RECEIVED_MESSAGE,
};

/** conn_listener() - a listening socket of @flavour */
int conn_listener(const struct flavour *flavour, unsigned int port);

/**
 * conn_accept() - the next connection
 * @c: filled; its index comes from the connecting end
 * @fd: listening socket
 * @flavour: of that socket
 */
void conn_accept(struct conn *c, int fd, const struct flavour *flavour);

/** conn_accept_all() - all connections of the run, by their index */
struct conn *conn_accept_all(void);

/** conn_connect() - a connection to the listening end, as number @index */
void conn_connect(struct conn *c, const struct flavour *flavour,
		  unsigned int port, unsigned int index);

/** conn_finish() - send no more, wait until the peer does not either, close */
void conn_finish(struct conn *c);

/** conn_send() - send a message */
void conn_send(struct conn *c, const void *buf, size_t len);

/**
 * conn_take() - continue receiving a message of the run
 * @c: the connection
 * @buf: for the message, the same from call to call
 * @len: length of the message
 * @wait: until it is complete
 */
enum received conn_take(struct conn *c, void *buf, uint32_t len, bool wait);

/** conn_expect() - wait for a message of the run; the end is a failure */
void conn_expect(struct conn *c, void *buf, uint32_t len);

/** conn_signal() - send one reliable byte */
void conn_signal(struct conn *c);
/** conn_await() - wait for that byte; false: the peer has ended */
bool conn_await(struct conn *c);

/** conn_note_cc() - put the congestion control in the results */
void conn_note_cc(const struct conn *c, unsigned int side);

/** contents_word() - noise: word @at of the contents with the number @key */
uint64_t contents_word(uint64_t key, uint64_t at);
/** contents_new() - memory for a message, filled with noise */
void *contents_new(void);
/** contents_make() - with --verify, fill in the contents of message @n of @c */
void contents_make(const struct conn *c, void *buf, uint64_t n);
/** contents_check() - with --verify, check the message last received */
void contents_check(const struct conn *c, const void *buf);

/** fail() - print a message, with strerror() if errno is set, and end */
void fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/** lacking() - the same, with EXIT_MISSING */
void lacking(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

#endif /* DBLP_PERF_CONN_H */
