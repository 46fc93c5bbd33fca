// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages. They are sent and received in the order of NCCL's calls. A test of any of
 * them lets the first one progress.
 */

#include "plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum calls of send() or recv() in a row: a fast peer must not delay others */
#define CALLS_MAX	64

static bool is_remote(int err)
{
	return err == -ECONNRESET || err == -ECONNREFUSED || err == -EPIPE ||
	       err == -ETIMEDOUT || err == -EKEYREJECTED;
}

/* An error ends the connection. An unauthenticated peer must not cause warnings */
static void fail(struct net_conn *c, int err)
{
	const char *what = c->sends ? "sending to" : "receiving from";

	c->error = is_remote(err) ? ncclRemoteError : ncclSystemError;
	if (c->is_open || c->sends)
		net_warn("%s %s: %s", what, c->peer, strerror(-err));
	else
		net_info("%s %s: %s", what, c->peer, strerror(-err));
}

static void done(struct net_conn *c)
{
	c->request[c->turn].state = NET_DONE;
	c->turn = (c->turn + 1) % NCCL_REQUESTS_MAX;
}

/* 0 or a negative errno */
static int send_some(struct net_conn *c, struct net_request *r)
{
	struct iovec iov[2] = { { &r->tag, sizeof(r->tag) },
				{ r->data, r->size } };
	/* A budget of 0 that a message sets itself is not raised by operators */
	struct dblp_sndinfo info = {
		.flags = r->exact ? DBLP_SND_BUDGET : 0,
		.critical = c->sent ? 0 : sizeof(r->tag),
	};
	ssize_t n;

	dblp_iov_skip(iov, c->sent);
	n = dblp_transport_dblp.send(c->fd, iov, &info);
	if (n < 0)
		return (int)n;
	c->sent += (size_t)n;
	if (c->sent == sizeof(r->tag) + r->size) {
		c->sent = 0;
		done(c);
	}
	return 0;
}

/* Is the received message invalid? Logs the reason */
static bool is_wrong(struct net_conn *c, const struct net_request *r)
{
	uint32_t length = c->in.map.info.length;

	if (length < sizeof(r->tag)) {
		net_warn("%s sent an invalid message", c->peer);
		c->error = ncclRemoteError;
	} else if (length - sizeof(r->tag) > r->size) {
		net_warn("%s sent %zu bytes, where %zu were expected: do all ranks have the same environment (NCCL_PROTO, NCCL_ALGO)?",
			 c->peer, length - sizeof(r->tag), r->size);
		c->error = ncclInvalidUsage;
	} else if (c->tag != r->tag) {
		net_warn("%s sent tag %#llx, where %#llx was expected", c->peer,
			 (unsigned long long)c->tag,
			 (unsigned long long)r->tag);
		c->error = ncclInternalError;
	}
	return c->error;
}

/* Log the first loss at once; net_conn_free() logs the total */
static void received(struct net_conn *c, struct net_request *r)
{
	const struct dblp_rcvinfo *info = &c->in.map.info;

	r->size = info->length - sizeof(r->tag);
	c->bytes += r->size;
	if (info->missing && !c->missing)
		net_info("first loss: %u of %zu bytes from %s are missing, and zero",
			 info->missing, r->size, c->peer);
	c->missing += info->missing;
	done(c);
}

/* 0 or a negative errno */
static int recv_some(struct net_conn *c, struct net_request *r)
{
	int n;

	if (!c->in.len)
		dblp_inbox_set(&c->in, &c->tag, sizeof(c->tag), r->data,
			       r->size);
	n = dblp_transport_dblp.recv(c->fd, &c->in);
	/* -EPROTO: the message is larger or smaller than the buffer, but complete */
	if (n == -EPROTO && c->in.closed)
		n = 1;
	if (n <= 0)
		return n ?: -ECONNRESET;
	if (!c->in.closed)
		return 0;
	c->in.len = 0;
	if (!is_wrong(c, r))
		received(c, r);
	return 0;
}

enum nccl_result net_progress(struct net_conn *c)
{
	int err = 0, i;

	for (i = 0; i < CALLS_MAX && !c->error && err != -EAGAIN &&
	     c->request[c->turn].state == NET_QUEUED; i++) {
		err = (c->sends ? send_some : recv_some)(c,
							&c->request[c->turn]);
		if (err && err != -EAGAIN && err != -EINTR)
			fail(c, err);
	}
	return c->error;
}

enum nccl_result net_post(struct net_conn *c, void *data, size_t size, int tag,
			  void **request)
{
	struct net_request *r = &c->request[c->free];

	*request = NULL;
	if (c->error)
		return c->error;
	if (size > NET_BYTES_MAX) {
		net_warn("a message of %zu bytes exceeds the maximum of %u", size,
			 NET_BYTES_MAX);
		return ncclInvalidUsage;
	}
	if (r->state != NET_FREE)
		return ncclSuccess;
	*r = (struct net_request) {
		.conn = c,
		.state = NET_QUEUED,
		.exact = !net_context_may_lose(c->ctx),
		.data = data,
		.size = size,
		.tag = (uint32_t)tag,
	};
	c->free = (c->free + 1) % NCCL_REQUESTS_MAX;
	*request = r;
	return ncclSuccess;
}

enum nccl_result net_test(void *request, int *is_done, int *size)
{
	struct net_request *r = request;

	*is_done = 0;
	if (!r || r->state == NET_FREE) {
		net_warn("test of an unused request");
		return ncclInternalError;
	}
	if (r->state == NET_QUEUED && net_progress(r->conn))
		return r->conn->error;
	if (r->state == NET_QUEUED)
		return ncclSuccess;
	*is_done = 1;
	if (size)
		*size = (int)r->size;
	r->state = NET_FREE;
	return ncclSuccess;
}

struct net_conn *net_conn_new(int fd, bool sends,
			      const struct sockaddr_dblp *addr)
{
	struct net_conn *c = calloc(1, sizeof(*c));
	void *request;

	if (!c) {
		close(fd);
		return NULL;
	}
	c->fd = fd;
	c->sends = sends;
	dblp_addr_format(addr, c->peer);
	net_post(c, &c->hello, sizeof(c->hello), 0, &request);
	c->request[0].exact = true;
	return c;
}

void net_conn_free(struct net_conn *c)
{
	if (c->is_open && c->budget && !c->sends)
		net_info("%llu of %llu bytes from %s were missing",
			 (unsigned long long)c->missing,
			 (unsigned long long)c->bytes, c->peer);
	close(c->fd);
	net_context_put(c->ctx);
	dblp_msg_free(&c->in.map);
	free(c);
}
