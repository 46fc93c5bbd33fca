// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Connections over AF_DBLP, TCP and SCTP.
 */

#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* This header does not include the headers it needs. */
#include <linux/sctp.h>

union name {
	struct sockaddr		any;
	struct sockaddr_in	v4;
	struct sockaddr_in6	v6;
	struct sockaddr_dblp	dblp;
};

/* TCP and SCTP use AF_INET for IPv4; AF_DBLP has IPv4-mapped addresses */
static int other_family(const struct sockaddr_dblp *addr)
{
	return IN6_IS_ADDR_V4MAPPED(&addr->sdblp_addr) ? AF_INET : AF_INET6;
}

/* Fills @name with @addr in the family of @fd; its length, or a negative errno */
static int make_name(int fd, const struct sockaddr_dblp *addr, union name *name)
{
	int family;
	socklen_t len = sizeof(family);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len))
		return -errno;
	memset(name, 0, sizeof(*name));
	if (family == AF_INET) {
		name->v4.sin_family = AF_INET;
		name->v4.sin_port = addr->sdblp_port;
		memcpy(&name->v4.sin_addr, &addr->sdblp_addr.s6_addr[12],
		       sizeof(name->v4.sin_addr));
		return sizeof(name->v4);
	}
	name->dblp = *addr;
	name->any.sa_family = (sa_family_t)family;
	return sizeof(name->dblp);
}

_Static_assert(sizeof(struct sockaddr_dblp) == sizeof(struct sockaddr_in6) &&
	       offsetof(struct sockaddr_dblp, sdblp_scope_id) ==
	       offsetof(struct sockaddr_in6, sin6_scope_id),
	       "addresses have the layout of those of IPv6");

bool dblp_addr_from(struct sockaddr_dblp *addr, const struct sockaddr *sa)
{
	const struct sockaddr_in *in = (const void *)sa;

	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		memset(&addr->sdblp_addr.s6_addr[10], 0xff, 2);
		memcpy(&addr->sdblp_addr.s6_addr[12], &in->sin_addr, 4);
		addr->sdblp_port = in->sin_port;
	} else if (sa->sa_family == AF_INET6 || sa->sa_family == AF_DBLP) {
		memcpy(addr, sa, sizeof(*addr));
		addr->sdblp_flowinfo = 0;
	} else {
		return false;
	}
	addr->sdblp_family = AF_DBLP;
	return true;
}

static int no_delay(int fd, int protocol)
{
	const int one = 1;
	int name = protocol == IPPROTO_TCP ? TCP_NODELAY : SCTP_NODELAY;

	return setsockopt(fd, protocol, name, &one, sizeof(one)) ? -errno : 0;
}

int dblp_socket(const struct sockaddr_dblp *addr, int protocol)
{
	int family = protocol ? other_family(addr) : AF_DBLP;
	int type = protocol ? SOCK_STREAM : SOCK_SEQPACKET;
	int fd = socket(family, type | SOCK_CLOEXEC, protocol), err;

	if (fd < 0)
		return -errno;
	err = protocol ? no_delay(fd, protocol) : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int dblp_listen(int fd, const struct sockaddr_dblp *addr)
{
	const int one = 1;
	union name name;
	int len = make_name(fd, addr, &name);

	if (len < 0)
		return len;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, &name.any, (socklen_t)len) || listen(fd, SOMAXCONN))
		return -errno;
	return 0;
}

int dblp_accept(int fd)
{
	int child = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	return child < 0 ? -errno : child;
}

/* Wait for the end of an attempt to connect */
static int await_connection(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int err = 0, n = poll(&p, 1, timeout_ms);
	socklen_t len = sizeof(err);

	if (!n)
		return -ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

bool dblp_is_own_peer(int fd)
{
	union name own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	memset(&own, 0, sizeof(own));
	memset(&peer, 0, sizeof(peer));
	return !getsockname(fd, &own.any, &own_len) &&
	       !getpeername(fd, &peer.any, &peer_len) &&
	       !memcmp(&own, &peer, sizeof(own));
}

/*
 * Close without TIME_WAIT, to free the port for the program that will listen
 * there
 */
static int end_own_peer(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	return -ECONNREFUSED;
}

int dblp_connect(int fd, const struct sockaddr_dblp *addr, int timeout_ms)
{
	union name name;
	int len = make_name(fd, addr, &name), flags, err;

	if (len < 0)
		return len;
	if (timeout_ms < 0)
		return connect(fd, &name.any, (socklen_t)len) ? -errno : 0;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	err = connect(fd, &name.any, (socklen_t)len) ? -errno : 0;
	if (err == -EINPROGRESS)
		err = await_connection(fd, timeout_ms);
	if (!err && dblp_is_own_peer(fd))
		err = end_own_peer(fd);
	if (!err && fcntl(fd, F_SETFL, flags))
		return -errno;
	return err;
}

ssize_t dblp_recv_all(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = recv(fd, (char *)buf + done, len - done,
				 MSG_WAITALL);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			break;
		if (n > 0)
			done += (size_t)n;
	}
	return (ssize_t)done;
}
