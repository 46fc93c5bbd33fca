// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages and connections of a fabric: over AF_DBLP, or in sequence on a TCP
 * stream.
 */

#include "fabric_msg.h"

#include <engine.h>

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
/* The C library's <netinet/tcp.h> lacks the delivery rate */
#include <linux/tcp.h>

/* Interval of keepalives, seconds */
#define ASK_S		1

int dblp_fab_check(const struct dblp_fab_msg *m)
{
	if ((m->magic ^ DBLP_FAB_MAGIC) > 0xff)
		return -EBADMSG;
	if (m->magic != DBLP_FAB_MAGIC)
		return -EPROTONOSUPPORT;
	return m->type < DBLP_FAB_TYPES && m->role < DBLP_FAB_ROLES &&
	       m->from < DBLP_FAB_WORKERS_MAX &&
	       m->place < DBLP_FAB_WORKERS_MAX && m->error <= 4095 &&
	       m->updates <= DBLP_FAB_WORKERS_MAX &&
	       (m->type != DBLP_FAB_PUSH || m->updates) ? 0 : -EBADMSG;
}

int dblp_fab_protocol(const char *transport)
{
	if (!strcmp(transport, "dblp"))
		return 0;
	return strcmp(transport, "tcp") ? -EINVAL : IPPROTO_TCP;
}

int dblp_fab_setup(struct dblp_fab_conn *c, uint32_t timeout_ms)
{
	const struct timeval t = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	const int other = c->protocol ? SOL_DBLP : IPPROTO_TCP;
	const struct {
		int	level;
		int	name;
		int	value;
	} o[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, ASK_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, ASK_S },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, (int)timeout_ms },
		{ SOL_DBLP, DBLP_KEEPALIVE, ASK_S * 1000 },
		{ SOL_DBLP, DBLP_USER_TIMEOUT, (int)timeout_ms },
	};
	int err = setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) ||
		  setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	size_t i;

	for (i = 0; !err && i < sizeof(o) / sizeof(*o); i++)
		if (o[i].level != other)
			err = setsockopt(c->fd, o[i].level, o[i].name,
					 &o[i].value, sizeof(o[i].value));
	if (!err)
		return 0;
	err = -errno;
	dblp_fab_hang_up(c);
	return err;
}

int dblp_fab_dial(struct dblp_fab_conn *c, const struct sockaddr_dblp *to,
		  int protocol, uint32_t timeout_ms)
{
	int err;

	*c = (struct dblp_fab_conn) { dblp_socket(to, protocol), protocol };
	if (c->fd < 0)
		return c->fd;
	err = dblp_fab_setup(c, timeout_ms);
	if (err)
		return err;
	err = dblp_connect(c->fd, to, (int)timeout_ms);
	if (err)
		dblp_fab_hang_up(c);
	return err;
}

int dblp_fab_join(const struct dblp_fab_conn *c, const struct dblp_fab_msg *hello,
		  uint64_t *secret)
{
	struct dblp_fab_msg m;
	int err = dblp_fab_send(c, hello);

	if (!err)
		err = dblp_fab_recv(c, &m);
	if (err)
		return err;
	if (m.type == DBLP_FAB_REFUSE && m.error)
		return -(int)m.error;
	*secret = m.fabric;
	return m.type == DBLP_FAB_WELCOME ? 0 : -EPROTO;
}

int dblp_fab_listen(const struct sockaddr_dblp *at, int protocol)
{
	int fd = dblp_socket(at, protocol), err;

	if (fd < 0)
		return fd;
	err = dblp_listen(fd, at);
	if (!err)
		return fd;
	close(fd);
	return err;
}

void dblp_fab_hang_up(struct dblp_fab_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

int dblp_fab_name(int fd, bool peer, struct sockaddr_dblp *addr)
{
	union {
		struct sockaddr		any;
		struct sockaddr_in6	v6;
		struct sockaddr_dblp	dblp;
	} name;
	socklen_t len = sizeof(name);

	if (peer ? getpeername(fd, &name.any, &len) : getsockname(fd, &name.any, &len))
		return -errno;
	if (!dblp_addr_from(addr, &name.any))
		*addr = name.dblp;
	return 0;
}

uint64_t dblp_fab_rate(const struct dblp_fab_conn *c)
{
	struct dblp_info info = { 0 };
	struct tcp_info tcp = { 0 };
	socklen_t len = c->protocol ? sizeof(tcp) : sizeof(info);

	if (c->protocol)
		return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &tcp, &len) ?
		       0 : tcp.tcpi_delivery_rate;
	return getsockopt(c->fd, SOL_DBLP, DBLP_INFO, &info, &len) ?
	       0 : info.delivery_rate;
}

int dblp_fab_wait(const struct dblp_fab_conn *c, int timeout_ms)
{
	struct pollfd p = { c->fd, POLLIN, 0 };
	int n;

	do {
		n = poll(&p, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : n ? -errno : -ETIMEDOUT;
}

/* Send a part, at least one byte; reliable, whatever the socket's budget */
static ssize_t send_some(const struct dblp_fab_conn *c, const void *p, size_t len)
{
	const struct dblp_sndinfo info = { .flags = DBLP_SND_BUDGET };
	ssize_t n;

	if (!c->protocol)
		return dblp_send(c->fd, p, len, 0, &info);
	n = send(c->fd, p, len, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/* EAGAIN means that SO_SNDTIMEO has passed: do not retry */
int dblp_fab_send_bytes(const struct dblp_fab_conn *c, const void *p, size_t len)
{
	const char *at = p;
	ssize_t n;

	while (len) {
		n = send_some(c, at, dblp_fab_chunk(len));
		if (n == -EINTR)
			continue;
		if (n < 0)
			return n == -EAGAIN ? -ETIMEDOUT : (int)n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Not MSG_WAITALL: on a timeout that returns a part */
int dblp_fab_recv_bytes(const struct dblp_fab_conn *c, void *p, size_t len)
{
	char *at = p;
	ssize_t n;

	while (len) {
		n = recv(c->fd, at, dblp_fab_chunk(len), c->protocol ? 0 : MSG_TRUNC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (!n)
			return -ECONNRESET;
		if (!c->protocol && (size_t)n != dblp_fab_chunk(len))
			return -EBADMSG;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int dblp_fab_send(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m)
{
	struct dblp_fab_msg sent = *m;

	sent.magic = DBLP_FAB_MAGIC;
	return dblp_fab_send_bytes(c, &sent, sizeof(sent));
}

int dblp_fab_recv(const struct dblp_fab_conn *c, struct dblp_fab_msg *m)
{
	int err = dblp_fab_recv_bytes(c, m, sizeof(*m));

	return err ?: dblp_fab_check(m);
}

int dblp_fab_push(const struct dblp_fab_conn *c, const struct dblp_fab_msg *m,
		  const float *v, uint64_t n, struct dblp_fab_msg *ack)
{
	int err = dblp_fab_send(c, m);

	if (!err)
		err = dblp_fab_send_bytes(c, v, n * sizeof(*v));
	if (!err)
		err = dblp_fab_recv(c, ack);
	return !err && ack->type != DBLP_FAB_ACK ? -EPROTO : err;
}

int dblp_fab_pull(const struct dblp_fab_conn *c, uint64_t fabric, uint64_t wanted,
		  uint64_t *version)
{
	const struct dblp_fab_msg ask = {
		.type = DBLP_FAB_PULL,
		.fabric = fabric,
		.version = wanted,
	};
	struct dblp_fab_msg m;
	int err = dblp_fab_send(c, &ask);

	if (!err)
		err = dblp_fab_recv(c, &m);
	if (err)
		return err;
	*version = m.version;
	return m.type == DBLP_FAB_MODEL ? 0 : m.error ? -(int)m.error : -EPROTO;
}

double dblp_fab_norm(const float *v, uint64_t n)
{
	double sum = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		sum += (double)v[i] * v[i];
	return isfinite(sum) ? sqrt(sum) : NAN;
}
