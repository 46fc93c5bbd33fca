/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: what programs that use AF_DBLP have in common.
 *
 * Unless it says otherwise, a function returns 0 or a negative errno. None
 * prints, ends the program, or tries again after a signal (-EINTR). None keeps
 * anything between two calls: threads may call them at the same time, each with
 * a message of its own.
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
 * dblp_addr_parse() - make an address of text
 * @text: 192.0.2.1, 2001:db8::1 or fe80::1%eth0 (also with the number of the
 *	interface); with a port 192.0.2.1:7018, [2001:db8::1]:7018
 * @addr: filled, IPv4 as IPv4-mapped; its port is 0 if @text has none. Not
 *	changed on failure
 *
 * Return: 0, -EINVAL if @text is no address, -ENODEV if there is no such
 * interface.
 */
int dblp_addr_parse(const char *text, struct sockaddr_dblp *addr);

/**
 * dblp_addr_format() - make text of an address
 * @addr: address; without a port (0) none is written
 * @text: filled with what dblp_addr_parse() takes
 */
void dblp_addr_format(const struct sockaddr_dblp *addr,
		      char text[DBLP_ADDR_TEXT]);

/* Connections: over AF_DBLP, or over TCP or SCTP to compare it with them */

/**
 * dblp_socket() - make a socket
 * @addr: what it will be bound or connected to
 * @protocol: 0 for AF_DBLP, IPPROTO_TCP or IPPROTO_SCTP
 *
 * It is closed on exec(). TCP and SCTP do not wait until they have more to send
 * (NODELAY).
 *
 * Return: a file descriptor, or a negative errno.
 */
int dblp_socket(const struct sockaddr_dblp *addr, int protocol);

/**
 * dblp_listen() - listen
 * @fd: from dblp_socket()
 * @addr: where; with port 0 at any port
 *
 * Connections that somebody else had there before, and that are not over yet,
 * are no hindrance (SO_REUSEADDR).
 */
int dblp_listen(int fd, const struct sockaddr_dblp *addr);

/**
 * dblp_accept() - take the next connection
 * @fd: listening socket
 *
 * Return: a file descriptor that is closed on exec(), or a negative errno.
 */
int dblp_accept(int fd);

/**
 * dblp_connect() - connect
 * @fd: from dblp_socket()
 * @addr: to whom
 * @timeout_ms: -ETIMEDOUT after so many milliseconds; negative: as connect(),
 *	which waits for as long as the protocol does, or not at all
 *
 * After a failure @fd is good for close() only.
 */
int dblp_connect(int fd, const struct sockaddr_dblp *addr, int timeout_ms);

/**
 * dblp_recv_all() - receive from a stream until there is enough
 * @fd: connected socket
 * @buf: filled
 * @len: bytes that are wanted
 *
 * Goes on after a signal, since some may have been taken.
 *
 * Return: @len, less if the stream has ended before, or a negative errno.
 */
ssize_t dblp_recv_all(int fd, void *buf, size_t len);

/* Messages */

/**
 * struct dblp_msg - what became of a message, and its loss map
 * @info: of the message, zeroes if there was none
 * @flags: MSG_TRUNC and the others that recvmsg() gives
 * @n: number of missing ranges
 * @room: entries that @range has room for
 * @range: the missing ranges by rising offset
 *
 * All zeroes before it is first used, then for one message after the other, at
 * last for dblp_msg_free(). A call that fails for want of a message (-EAGAIN and
 * the like) leaves it as it was.
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
 * @info: how it is sent, NULL: as the socket's options say
 *
 * Return: bytes taken, or a negative errno.
 */
ssize_t dblp_send(int fd, const void *buf, size_t len, int flags,
		  const struct dblp_sndinfo *info);

/**
 * dblp_recv() - receive a message, and what of it is missing
 * @fd: connected socket, without DBLP_PLACEMENT
 * @buf: for the message
 * @len: its size
 * @flags: as for recv()
 * @m: filled, with the whole loss map, however long that is
 *
 * A loss map of more than 512 ranges is fetched by a second call: no other
 * thread may receive from @fd meanwhile, and MSG_PEEK cannot have it (-EBADMSG,
 * which the socket itself never gives). With that or -ENOMEM the message is in
 * @buf, but its loss map is lost.
 *
 * Return: bytes put into @buf, 0 when the peer sends no more, or a negative
 * errno.
 */
ssize_t dblp_recv(int fd, void *buf, size_t len, int flags,
		  struct dblp_msg *m);

/**
 * dblp_report() - what became of a message that was sent
 * @fd: connected socket with DBLP_NOTIFY
 * @flags: as for recv(). There is no waiting for reports: see POLLERR
 * @m: filled, as by dblp_recv()
 *
 * Return: 0, -EAGAIN if there is no report, or another negative errno.
 */
int dblp_report(int fd, int flags, struct dblp_msg *m);

/**
 * dblp_msg_free() - free a loss map
 * @m: as if never used after that
 */
void dblp_msg_free(struct dblp_msg *m);

/* Namespaces */

/**
 * dblp_netns_enter() - move the thread to another network namespace
 * @name: what `ip netns` calls it, or with a slash the path of its file
 *
 * Return: 0; -ENOENT if there is none, -EPERM without CAP_SYS_ADMIN, -EINVAL if
 * that is no network namespace, or another negative errno.
 */
int dblp_netns_enter(const char *name);

/* Netlink */

struct nlmsghdr;

/**
 * struct dblp_nl_end - how the answer to a request of netlink has ended
 * @err: errno, 0 if it was not refused
 * @msg: why, in the kernel's words, or NULL; part of the message
 * @offset: of the attribute of the request that was wrong, 0: none
 * @missing: type of an attribute that the request should have, 0: none
 */
struct dblp_nl_end {
	int		err;
	const char	*msg;
	uint32_t	offset;
	uint32_t	missing;
};

/**
 * dblp_nl_ended() - look for the end of an answer
 * @nlh: a message of it
 * @end: filled if @nlh is the end
 *
 * Return: is @nlh the end?
 */
bool dblp_nl_ended(const struct nlmsghdr *nlh, struct dblp_nl_end *end);

/* Names of values, by value; NULL behind the last */

extern const char *const dblp_state_names[];
extern const char *const dblp_policy_names[];
extern const char *const dblp_order_names[];
extern const char *const dblp_fill_names[];
extern const char *const dblp_clr_names[];
extern const char *const dblp_regime_names[];
extern const char *const dblp_reason_names[];
extern const char *const dblp_actor_names[];

#ifdef __cplusplus
}
#endif

#endif /* LIBDBLP_H */
