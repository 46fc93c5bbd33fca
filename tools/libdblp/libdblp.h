/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: functions for programs that use AF_DBLP.
 *
 * Unless stated otherwise, a function returns 0 or a negative errno. None prints,
 * ends the program, or retries after a signal (-EINTR). None has state: threads may
 * call them at the same time, each with a struct dblp_msg of its own.
 */
#ifndef LIBDBLP_H
#define LIBDBLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The C library first: both define struct in6_addr */
#include <netinet/in.h>
#include <linux/dblp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Addresses */

/** DBLP_ADDR_TEXT - room for any address as text, with its NUL byte */
#define DBLP_ADDR_TEXT	72

/**
 * dblp_addr_parse() - parse an address
 * @text: 192.0.2.1, 2001:db8::1 or fe80::1%eth0 (also with the number of the
 *	interface); with a port 192.0.2.1:7018, [2001:db8::1]:7018
 * @addr: filled, IPv4 as IPv4-mapped; its port is 0 if @text has none. Not
 *	changed on failure
 *
 * Return: 0, -EINVAL if @text is not an address, -ENODEV if there is no such
 * interface.
 */
int dblp_addr_parse(const char *text, struct sockaddr_dblp *addr);

/**
 * dblp_addr_format() - format an address
 * @addr: address; a port of 0 is not written
 * @text: filled; dblp_addr_parse() accepts it
 */
void dblp_addr_format(const struct sockaddr_dblp *addr,
		      char text[DBLP_ADDR_TEXT]);

/* Connections: over AF_DBLP, or over TCP or SCTP to compare it with them */

/**
 * dblp_socket() - create a socket
 * @addr: address that it will be bound or connected to
 * @protocol: 0 for AF_DBLP, IPPROTO_TCP or IPPROTO_SCTP
 *
 * It is closed on exec(). TCP and SCTP send at once (NODELAY).
 *
 * Return: a file descriptor, or a negative errno.
 */
int dblp_socket(const struct sockaddr_dblp *addr, int protocol);

/**
 * dblp_listen() - listen
 * @fd: from dblp_socket()
 * @addr: address and port, 0: any free port
 *
 * Old connections at this address are no obstacle (SO_REUSEADDR).
 */
int dblp_listen(int fd, const struct sockaddr_dblp *addr);

/**
 * dblp_accept() - accept a connection
 * @fd: listening socket
 *
 * Return: a file descriptor that is closed on exec(), or a negative errno.
 */
int dblp_accept(int fd);

/**
 * dblp_connect() - connect
 * @fd: from dblp_socket()
 * @addr: address and port of the peer
 * @timeout_ms: milliseconds until -ETIMEDOUT; negative: as connect(), which waits
 *	as long as the protocol does, or not at all
 *
 * After a failure @fd can only be closed.
 */
int dblp_connect(int fd, const struct sockaddr_dblp *addr, int timeout_ms);

/**
 * dblp_recv_all() - receive a given number of bytes from a stream
 * @fd: connected socket
 * @buf: filled
 * @len: number of bytes
 *
 * Continues after a signal, since some bytes may have been received.
 *
 * Return: @len, less if the stream ended before, or a negative errno.
 */
ssize_t dblp_recv_all(int fd, void *buf, size_t len);

/* Messages */

/**
 * struct dblp_msg - information about a message, and its loss map
 * @info: of the message, all zero if there was none
 * @flags: MSG_TRUNC and other flags of recvmsg()
 * @n: number of missing ranges
 * @room: entries that @range has room for
 * @range: the missing ranges by rising offset
 *
 * Zero it before its first use, use it for any number of messages, then pass it to
 * dblp_msg_free(). A call that fails without a message (such as -EAGAIN) does not
 * change it.
 */
struct dblp_msg {
	struct dblp_rcvinfo	info;
	int			flags;
	uint32_t		n;
	uint32_t		room;
	struct dblp_range	*range;
};

/**
 * dblp_send() - send a message
 * @fd: connected socket
 * @buf: the message
 * @len: its length
 * @flags: as for send(); MSG_NOSIGNAL is always set
 * @info: attributes of the message, NULL: those of the socket
 *
 * Return: @len (with DBLP_PARTIAL_SEND, bytes sent), or a negative errno.
 */
ssize_t dblp_send(int fd, const void *buf, size_t len, int flags,
		  const struct dblp_sndinfo *info);

/**
 * dblp_recv() - receive a message and its loss map
 * @fd: connected socket, without DBLP_PLACEMENT
 * @buf: for the message
 * @len: its size
 * @flags: as for recv()
 * @m: filled, with the whole loss map, however long
 *
 * Nothing is missing unless the program has asked for that, by DBLP_BUDGET_CAP,
 * DBLP_FILL or DBLP_PLACEMENT, or its operator has.
 *
 * A loss map of more than 512 ranges is fetched by a second system call: no other
 * thread may receive from @fd meanwhile, and MSG_PEEK cannot fetch it (-EBADMSG,
 * which the socket itself never returns). After -EBADMSG or -ENOMEM the message is
 * in @buf, but its loss map is lost.
 *
 * -ECANCELED stands for a message that its sender has cancelled: @m has its tag, number
 * and length, and all of it is missing; no other thread may receive meanwhile. With
 * MSG_PEEK @m is not changed.
 *
 * Return: bytes in @buf, 0 when the peer sends no more, or a negative errno.
 */
ssize_t dblp_recv(int fd, void *buf, size_t len, int flags,
		  struct dblp_msg *m);

/**
 * dblp_cancel() - give up a message that was sent
 * @fd: connected socket
 * @tag: of the message; of several the oldest one is meant that is not closed
 *
 * Nothing more of it is sent, and its receiver drops what has come, unless that has
 * closed it before: its report says which.
 *
 * Return: 0; -ENOENT if no such message is under way, -EALREADY if all with this tag are
 * cancelled or closed, -EBUSY if only a part of it was taken, -EOPNOTSUPP if the peer is
 * too old to be told, or another negative errno. Nothing has changed then.
 */
int dblp_cancel(int fd, uint64_t tag);

/**
 * dblp_report() - read the report about a message that was sent
 * @fd: connected socket with DBLP_NOTIFY
 * @flags: as for recv(). It does not wait for a report: poll for POLLERR
 * @m: filled, as by dblp_recv()
 *
 * Return: 0, -EAGAIN if there is no report, or another negative errno.
 */
int dblp_report(int fd, int flags, struct dblp_msg *m);

/**
 * dblp_msg_free() - free a loss map
 * @m: may be used again
 */
void dblp_msg_free(struct dblp_msg *m);

/* Jobs */

/**
 * dblp_job_norm() - report the norm of a gradient to the detector of a job
 * @job: number of the job, in the network namespace of the thread
 * @norm: of the gradient, at least 0 and less than 2^32
 *
 * If its detector is on, the job is in the phase that follows from the norm when this
 * returns, with all its sockets. One call for each time that the rule is to be applied,
 * by one of the programs of the job in this namespace: the same norm once more looks
 * like calm.
 *
 * Return: 0; -EINVAL if @norm is no number, infinite or negative; -ERANGE if it is too
 * large: scale all norms; -ENOENT if there is no such job; -EPERM if it is another
 * user's; -EAFNOSUPPORT without AF_DBLP; another negative errno. Nothing has changed
 * then.
 */
int dblp_job_norm(uint32_t job, double norm);

/* Namespaces */

/**
 * dblp_netns_enter() - move the thread to another network namespace
 * @name: its name in `ip netns`, or with a slash the path of its file
 *
 * Return: 0; -ENOENT if there is none, -EPERM without CAP_SYS_ADMIN, -EINVAL if it
 * is not a network namespace, or another negative errno.
 */
int dblp_netns_enter(const char *name);

/* Netlink */

struct nlmsghdr;

/**
 * struct dblp_nl_end - end of the reply to a netlink request
 * @err: positive errno, 0 on success
 * @msg: the kernel's error message or NULL; points into the netlink message
 * @offset: offset of the wrong attribute in the request, 0: none
 * @missing: type of an attribute missing in the request, 0: none
 */
struct dblp_nl_end {
	int		err;
	const char	*msg;
	uint32_t	offset;
	uint32_t	missing;
};

/**
 * dblp_nl_ended() - does a message end a reply?
 * @nlh: message of the reply
 * @end: filled if @nlh ends it
 */
bool dblp_nl_ended(const struct nlmsghdr *nlh, struct dblp_nl_end *end);

/**
 * DBLP_NAMES - room in each array of names: it is compiled into programs, so that it
 * cannot grow with the arrays
 */
#define DBLP_NAMES	32

/* Names of values, by value; NULL behind the last */

extern const char *const dblp_state_names[DBLP_NAMES];
extern const char *const dblp_policy_names[DBLP_NAMES];
extern const char *const dblp_order_names[DBLP_NAMES];
extern const char *const dblp_fill_names[DBLP_NAMES];
extern const char *const dblp_clr_names[DBLP_NAMES];
extern const char *const dblp_regime_names[DBLP_NAMES];
extern const char *const dblp_reason_names[DBLP_NAMES];
extern const char *const dblp_actor_names[DBLP_NAMES];
extern const char *const dblp_algo_names[DBLP_NAMES];
extern const char *const dblp_rule_names[DBLP_NAMES];

#ifdef __cplusplus
}
#endif

#endif /* LIBDBLP_H */
