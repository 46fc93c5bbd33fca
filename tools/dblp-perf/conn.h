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
 * @protocol: argument of dblp_socket()
 * @most: maximum bytes of one send(); larger messages take several
 * @lossy: the transport supports loss budgets
 * @cc_level: level of the congestion control option, 0 if it does not exist
 * @cc_option: the congestion control option
 * @setup: set options before connect() or listen(); optional
 * @sender: set options of the measured messages; optional
 * @recv: receive up to @len bytes of a message, as recv(), and set @missing of the
 *	connection
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

/**
 * struct conn - one connection
 * @fd: socket
 * @proto: transport
 * @index: number of the connection in the run, from 0
 * @got: received bytes of the current message
 * @received: number of messages received by conn_take()
 * @missing: missing bytes of the last of these messages
 * @msg: loss map of the last of these messages
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
	RECEIVED_END,		/* the peer has shut down sending */
	RECEIVED_PART,		/* the message is not complete */
	RECEIVED_MESSAGE,
};

/** conn_listener() - open a listening socket of @flavour */
int conn_listener(const struct flavour *flavour, unsigned int port);

/**
 * conn_accept() - accept the next connection
 * @c: filled; the connecting end sends its index
 * @fd: listening socket
 * @flavour: transport of @fd
 */
void conn_accept(struct conn *c, int fd, const struct flavour *flavour);

/** conn_accept_all() - accept all connections of the run; returns them by index */
struct conn *conn_accept_all(void);

/** conn_connect() - connect to the listening end, as connection @index */
void conn_connect(struct conn *c, const struct flavour *flavour,
		  unsigned int port, unsigned int index);

/** conn_finish() - shut down sending, wait for the peer to do so, close */
void conn_finish(struct conn *c);

/** conn_send() - send a message */
void conn_send(struct conn *c, const void *buf, size_t len);

/**
 * conn_take() - continue to receive a message of the run
 * @c: the connection
 * @buf: buffer of the whole message, the same in each call
 * @len: length of the message
 * @wait: wait until the message is complete
 */
enum received conn_take(struct conn *c, void *buf, uint32_t len, bool wait);

/** conn_expect() - wait for a message of the run; fail if the peer ends */
void conn_expect(struct conn *c, void *buf, uint32_t len);

/**
 * struct watched - all connections of the run, at the listening end
 * @conn: connections
 * @buf: message buffer of each connection
 * @n: number of connections
 * @epoll: descriptor that polls all of them
 */
struct watched {
	struct conn	*conn;
	void		**buf;
	unsigned int	n;
	int		epoll;
};

#define WATCH_MAX	64

/** watch_all() - accept all connections of the run, and poll them */
void watch_all(struct watched *w);
/**
 * watch_wait() - wait until connections are readable
 * @w: the connections
 * @which: filled with their numbers
 *
 * Return: how many, 0 after a signal.
 */
unsigned int watch_wait(const struct watched *w, unsigned int which[WATCH_MAX]);
/** watch_end() - no longer poll connection @i */
void watch_end(const struct watched *w, unsigned int i);

/** conn_signal() - send one reliable byte */
void conn_signal(struct conn *c);
/** conn_await() - wait for the byte of conn_signal(); false: the peer has ended */
bool conn_await(struct conn *c);

/** conn_note_cc() - store the name of the congestion control in the results */
void conn_note_cc(const struct conn *c, unsigned int side);

/** contents_word() - pseudo-random word @at of sequence @key */
uint64_t contents_word(uint64_t key, uint64_t at);
/** contents_new() - allocate a message of pseudo-random bytes */
void *contents_new(void);
/** contents_make() - with --verify, write the contents of message @n of @c */
void contents_make(const struct conn *c, void *buf, uint64_t n);
/** contents_check() - with --verify, check the last received message of @c */
void contents_check(const struct conn *c, const void *buf);

#endif /* DBLP_PERF_CONN_H */
