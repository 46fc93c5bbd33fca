/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: functions for programs that use AF_DBLP.
 *
 * Unless stated otherwise, a function returns 0 or a negative errno. None
 * prints, ends the program, or retries after a signal (-EINTR). The library
 * keeps no state between calls: threads may call it concurrently, each with a
 * struct dblp_msg of its own.
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

/** DBLP_ADDR_TEXT - bytes for any address as text, with its NUL */
#define DBLP_ADDR_TEXT	72

/**
 * dblp_addr_parse() - parse an address
 * @text: 192.0.2.1, 2001:db8::1 or fe80::1%eth0 (also with the number of the
 *	interface); with a port 192.0.2.1:7018, [2001:db8::1]:7018
 * @addr: filled, IPv4 as IPv4-mapped; its port is 0 if @text has none.
 *	Unchanged on failure
 *
 * Return: 0; -EINVAL if @text is not an address; -ENODEV if the interface does
 * not exist.
 */
int dblp_addr_parse(const char *text, struct sockaddr_dblp *addr);

/**
 * dblp_addr_format() - format an address
 * @addr: address; a port of 0 is omitted
 * @text: filled; dblp_addr_parse() accepts it
 */
void dblp_addr_format(const struct sockaddr_dblp *addr,
		      char text[DBLP_ADDR_TEXT]);

/* Shares and times, as options of programs: a number without its unit is refused */

/** DBLP_VALUE_TEXT - bytes for any share or time as text, with its NUL */
#define DBLP_VALUE_TEXT	40

/**
 * dblp_share_parse() - parse a share
 * @text: "2%", "0.8%" or "8000ppm", from 0% to 100%
 * @ppm: filled; unchanged on failure
 *
 * Return: NULL, or the reason why @text is wrong, to follow it in a message:
 * "has no unit: % or ppm".
 */
const char *dblp_share_parse(const char *text, uint32_t *ppm);

/** dblp_share_format() - format a share for dblp_share_parse(), in percent */
void dblp_share_format(uint32_t ppm, char text[DBLP_VALUE_TEXT]);

/**
 * dblp_time_parse() - parse a time
 * @text: "10ms", "1.5s", "2min" or "1h"
 * @ms: filled; unchanged on failure
 *
 * Return: NULL, or the reason why @text is wrong, to follow it in a message.
 */
const char *dblp_time_parse(const char *text, uint32_t *ms);

/** dblp_time_format() - format a time for dblp_time_parse(), exactly */
void dblp_time_format(uint32_t ms, char text[DBLP_VALUE_TEXT]);

/* Connections over AF_DBLP, and over TCP or SCTP for comparisons */

/**
 * dblp_socket() - create a socket
 * @addr: address that it will be bound or connected to
 * @protocol: 0 for AF_DBLP, IPPROTO_TCP or IPPROTO_SCTP
 *
 * The socket is close-on-exec. TCP and SCTP get NODELAY: they send without
 * delay.
 *
 * Return: a file descriptor, or a negative errno.
 */
int dblp_socket(const struct sockaddr_dblp *addr, int protocol);

/**
 * dblp_listen() - bind a socket and listen
 * @fd: from dblp_socket()
 * @addr: address and port; port 0: any free port
 *
 * Sets SO_REUSEADDR: old connections at this address do not prevent it.
 */
int dblp_listen(int fd, const struct sockaddr_dblp *addr);

/**
 * dblp_accept() - accept a connection
 * @fd: listening socket
 *
 * Return: a file descriptor, close-on-exec, or a negative errno.
 */
int dblp_accept(int fd);

/**
 * dblp_connect() - connect
 * @fd: from dblp_socket()
 * @addr: address and port of the peer
 * @timeout_ms: ms until -ETIMEDOUT. Negative: as connect(): the protocol's
 *	timeout on a blocking socket, -EINPROGRESS on a non-blocking one
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
 * Return: @len; less if the stream ended first; or a negative errno.
 */
ssize_t dblp_recv_all(int fd, void *buf, size_t len);

/* Messages */

/**
 * struct dblp_msg - information about a message, and its loss map
 * @info: information about the message, all zero if there was none
 * @flags: MSG_TRUNC and other flags of recvmsg()
 * @n: number of missing ranges
 * @room: allocated entries of @range
 * @range: missing ranges by rising offset; owned by the library
 *
 * Zero it before its first use, use it for any number of messages, then pass it
 * to dblp_msg_free(). A call that fails without a message (such as -EAGAIN)
 * leaves it unchanged.
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
 * @len: its length, bytes
 * @flags: as for send(); MSG_NOSIGNAL is always set
 * @info: attributes of the message; NULL: those of the socket
 *
 * Return: @len (with DBLP_PARTIAL_SEND, bytes sent), or a negative errno.
 */
ssize_t dblp_send(int fd, const void *buf, size_t len, int flags,
		  const struct dblp_sndinfo *info);

/**
 * dblp_recv() - receive a message and its loss map
 * @fd: connected socket, without DBLP_PLACEMENT
 * @buf: for the message
 * @len: size of @buf, bytes
 * @flags: as for recv()
 * @m: filled, with the complete loss map, whatever its length
 *
 * Nothing is missing unless the program has set DBLP_BUDGET_CAP, DBLP_FILL or
 * DBLP_PLACEMENT, or the operator of its machine has set a cap.
 *
 * A loss map of more than 512 ranges takes a second system call: no other
 * thread may receive from @fd meanwhile, and MSG_PEEK cannot fetch it
 * (-EBADMSG, which the socket itself never returns). After -EBADMSG or -ENOMEM
 * the message is in @buf, but its loss map is lost.
 *
 * -ECANCELED stands for a message that its sender has cancelled: @m has its
 * tag, number and length, and all of it is missing. No other thread may receive
 * meanwhile. With MSG_PEEK @m is unchanged.
 *
 * Return: bytes in @buf; 0 when the peer has shut down sending; or a negative
 * errno.
 */
ssize_t dblp_recv(int fd, void *buf, size_t len, int flags,
		  struct dblp_msg *m);

/**
 * dblp_cancel() - cancel a message that was sent
 * @fd: connected socket
 * @tag: tag of the message; of several, the oldest that is not closed
 *
 * The sender sends no more of it. The receiver drops it, unless it has closed
 * it before; its report says which.
 *
 * Return: 0; -ENOENT if no message in flight has this tag; -EALREADY if all
 * with this tag are cancelled or closed; -EBUSY if only a part of it was taken;
 * -EOPNOTSUPP if the peer is too old to cancel messages; or another negative
 * errno. On failure nothing has changed.
 */
int dblp_cancel(int fd, uint64_t tag);

/**
 * dblp_report() - read the report about a message that was sent
 * @fd: connected socket with DBLP_NOTIFY
 * @flags: as for recv(). The call does not wait for a report: poll for POLLERR
 * @m: filled, as by dblp_recv()
 *
 * Return: 0; -EAGAIN if there is no report; or another negative errno.
 */
int dblp_report(int fd, int flags, struct dblp_msg *m);

/**
 * dblp_msg_free() - free a loss map
 * @m: its loss map is freed; it may be used again
 */
void dblp_msg_free(struct dblp_msg *m);

/* Jobs */

/**
 * dblp_job_norm() - report the norm of a gradient to the detector of a job
 * @job: number of the job, in the network namespace of the thread
 * @norm: norm of the gradient, at least 0 and less than 2^32
 *
 * If the detector is on, the job and all its sockets are in the phase that the
 * norm selects when this returns. Call it once for each application of the
 * rule, in one program of the job in this namespace: a repeated norm would look
 * like a calm regime.
 *
 * Return: 0; -EINVAL if @norm is NaN, infinite or negative; -ERANGE if it is
 * too large: scale all norms; -ENOENT if the job does not exist; -EPERM if
 * another user owns it; -EAFNOSUPPORT without AF_DBLP; another negative errno.
 * On failure nothing has changed.
 */
int dblp_job_norm(uint32_t job, double norm);

/* Namespaces */

/**
 * dblp_netns_enter() - move the thread to another network namespace
 * @name: its name in `ip netns`, or the path of its file if it contains a slash
 *
 * Return: 0; -ENOENT if it does not exist; -EPERM without CAP_SYS_ADMIN;
 * -EINVAL if it is not a network namespace; or another negative errno.
 */
int dblp_netns_enter(const char *name);

/* Netlink */

struct nlmsghdr;

/**
 * struct dblp_nl_end - end of the reply to a netlink request
 * @err: positive errno, 0 on success
 * @msg: the kernel's error message or NULL; points into the netlink message
 * @offset: offset of the rejected attribute in the request, bytes; 0: none
 * @missing: type of the attribute that the request lacks; 0: none
 */
struct dblp_nl_end {
	int		err;
	const char	*msg;
	uint32_t	offset;
	uint32_t	missing;
};

/**
 * dblp_nl_ended() - is this message the end of a reply?
 * @nlh: message of the reply
 * @end: filled if @nlh ends it
 */
bool dblp_nl_ended(const struct nlmsghdr *nlh, struct dblp_nl_end *end);

/**
 * DBLP_NAMES - entries of each array of names
 *
 * Programs have it compiled in, so it stays the same when names are added.
 */
#define DBLP_NAMES	32

/* Names of values, indexed by value; NULL after the last one */

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
