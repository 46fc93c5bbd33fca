// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Opens connections. NCCL passes a handle from the listening to the connecting end, whose
 * first message proves that it has the handle. Other connections are closed.
 */

#include "plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MAGIC		0x64626c6e63636c31ULL	/* dblnccl1 */
/*
 * Maximum number of accepted connections before the first message; more close the
 * oldest
 */
#define PENDING_MAX	16

/**
 * struct net_handle - data that NCCL passes to the connecting end
 * @magic: %MAGIC
 * @nonce: random number that authenticates the connecting end
 * @attempt: 0; net_connect() sets it to the number of its connection
 * @addr: address of the listening end
 */
struct net_handle {
	uint64_t		magic;
	uint64_t		nonce;
	uint64_t		attempt;
	struct sockaddr_dblp	addr;
};

_Static_assert(sizeof(struct net_handle) <= NCCL_HANDLE_BYTES, "NCCL's room");

struct net_listener {
	int		fd;
	uint64_t	nonce;
	unsigned int	oldest;
	struct net_conn	*pending[PENDING_MAX];
};

/* Connections that are not open yet, found by attempt */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct net_conn *attempts;

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int no_wait(int fd)
{
	return fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) ? -errno : 0;
}

static enum nccl_result failed(const char *what, const char *whom, int err)
{
	net_warn("%s %s: %s", what, whom, strerror(-err));
	return err == -ECONNREFUSED || err == -ETIMEDOUT ? ncclRemoteError :
							   ncclSystemError;
}

/* Get the loss budget of a traffic class, and check that NCCL tolerates losses */
static enum nccl_result ask_budget(int traffic_class, bool sees_proto, uint32_t *budget)
{
	*budget = net_class_budget(traffic_class);
	if (!*budget)
		return ncclSuccess;
	if (sees_proto || net_only_simple()) {
		net_info("traffic class %d has a loss budget of %u ppm%s", traffic_class,
			 *budget, sees_proto ? ", for reductions with the protocol Simple" : "");
		return ncclSuccess;
	}
	net_warn("DBLP_NCCL_LOSSY lets traffic class %d lose data, which NCCL's protocols LL and LL128 do not tolerate: set NCCL_PROTO=Simple and NCCL_P2P_LL_THRESHOLD=0 on all ranks",
		 traffic_class);
	return ncclInvalidUsage;
}

/* Cap 0, whatever phases and jobs set, until net_accept() knows the traffic class */
static int make_listener(int fd, struct sockaddr_dblp *addr)
{
	socklen_t len = sizeof(*addr);
	int err = no_wait(fd);

	err = err ?: set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	err = err ?: set(fd, SOL_DBLP, DBLP_PLACEMENT, 1);
	err = err ?: set(fd, SOL_DBLP, DBLP_FILL, DBLP_FILL_ZERO);
	err = err ?: set(fd, SOL_DBLP, DBLP_BUDGET_CAP, 0);
	err = err ?: dblp_listen(fd, addr);
	if (!err && getsockname(fd, (struct sockaddr *)addr, &len))
		err = -errno;
	return err;
}

enum nccl_result net_listen(int device, void *handle, void **listener)
{
	struct net_device *d = net_device_of(device);
	struct net_handle h = { .magic = MAGIC };
	struct net_listener *l;
	int err;

	if (!d)
		return ncclInternalError;
	l = calloc(1, sizeof(*l));
	if (!l)
		return failed("listening on", d->name, -ENOMEM);
	h.addr = d->addr;
	l->fd = dblp_socket(&h.addr, 0);
	err = l->fd < 0 ? l->fd : make_listener(l->fd, &h.addr);
	if (!err && getrandom(&h.nonce, sizeof(h.nonce), 0) < 0)
		err = -errno;
	if (err) {
		net_close_listen(l);
		return failed("listening on", d->name, err);
	}
	l->nonce = h.nonce;
	memset(handle, 0, NCCL_HANDLE_BYTES);
	memcpy(handle, &h, sizeof(h));
	*listener = l;
	return ncclSuccess;
}

enum nccl_result net_close_listen(void *listener)
{
	struct net_listener *l = listener;
	int i;

	for (i = 0; i < PENDING_MAX; i++)
		if (l->pending[i])
			net_conn_free(l->pending[i]);
	if (l->fd >= 0)
		close(l->fd);
	free(l);
	return ncclSuccess;
}

/* Add a connection, in place of the oldest one */
static void add_pending(struct net_listener *l, int fd)
{
	struct net_conn **at = &l->pending[l->oldest];
	struct sockaddr_dblp addr = { 0 };
	socklen_t len = sizeof(addr);

	if (*at)
		net_conn_free(*at);
	getpeername(fd, (struct sockaddr *)&addr, &len);
	*at = net_conn_new(fd, false, &addr);
	l->oldest = (l->oldest + 1) % PENDING_MAX;
}

/* Open a connection after its first message. The smaller budget of both ends applies */
static enum nccl_result let_in(struct net_conn *c)
{
	enum nccl_result result = ask_budget(c->hello.traffic_class,
					     c->hello.flags & NET_HELLO_SEES_PROTO,
					     &c->budget);
	int err = 0;

	if (!result && c->budget)
		err = set(c->fd, SOL_DBLP, DBLP_BUDGET_CAP, (int)c->budget);
	if (err)
		return failed("accepting", c->peer, err);
	c->bytes = 0;
	c->is_open = !result;
	return result;
}

/* Has the first message arrived? A connection without the nonce is closed */
static bool has_come(struct net_listener *l, struct net_conn **c)
{
	int done;

	if (!*c)
		return false;
	if (net_test(&(*c)->request[0], &done, NULL) ||
	    (done && (*c)->hello.nonce != l->nonce)) {
		net_info("%s does not have our handle: connection closed", (*c)->peer);
		net_conn_free(*c);
		*c = NULL;
		return false;
	}
	return done;
}

enum nccl_result net_accept(void *listener, void **conn, void **offload)
{
	struct net_listener *l = listener;
	enum nccl_result result;
	struct net_conn *c;
	int fd, i;

	(void)offload;
	*conn = NULL;
	for (i = 0; i < PENDING_MAX && (fd = dblp_accept(l->fd)) >= 0; i++)
		add_pending(l, fd);
	if (i < PENDING_MAX && fd != -EAGAIN && fd != -EINTR &&
	    fd != -ECONNABORTED)
		return failed("accepting", "a connection", fd);
	for (i = 0; i < PENDING_MAX; i++) {
		if (!has_come(l, &l->pending[i]))
			continue;
		c = l->pending[i];
		l->pending[i] = NULL;
		result = let_in(c);
		if (result)
			net_conn_free(c);
		else
			*conn = c;
		return result;
	}
	return ncclSuccess;
}

/* Without a budget the connection is reliable, whatever phases and jobs set */
static int make_sender(int fd, uint32_t budget)
{
	uint32_t policy = budget ? DBLP_POLICY_EARLY : DBLP_POLICY_FULL;
	int err = no_wait(fd);

	err = err ?: set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	err = err ?: set(fd, SOL_DBLP, DBLP_PARTIAL_SEND, 1);
	err = err ?: set(fd, SOL_DBLP, DBLP_BUDGET, (int)budget);
	return err ?: set(fd, SOL_DBLP, DBLP_CLOSE_POLICY, (int)policy);
}

/* 0 or a negative errno */
static int begin(struct net_device *d, const struct net_handle *h, uint32_t budget,
		 struct net_conn **c)
{
	int fd = dblp_socket(&h->addr, 0), err;

	if (fd < 0)
		return fd;
	err = make_sender(fd, budget) ?: net_route_by(d, fd, &h->addr);
	if (err) {
		close(fd);
		return err;
	}
	*c = net_conn_new(fd, true, &h->addr);
	if (!*c)
		return -ENOMEM;
	(*c)->budget = budget;
	(*c)->hello.nonce = h->nonce;
	return 0;
}

/* Keep a connection until NCCL calls net_connect() with this handle again */
static void keep(struct net_conn *c, struct net_handle *h)
{
	static uint64_t count;

	pthread_mutex_lock(&lock);
	if (!c->attempt)
		c->attempt = ++count;
	h->attempt = c->attempt;
	c->next = attempts;
	attempts = c;
	pthread_mutex_unlock(&lock);
}

/* Take a kept connection, if any. The nonce is compared, too: handles may be forged */
static struct net_conn *take(const struct net_handle *h)
{
	struct net_conn **at = &attempts, *c;

	pthread_mutex_lock(&lock);
	while ((c = *at) && (c->attempt != h->attempt ||
			     c->hello.nonce != h->nonce))
		at = &c->next;
	if (c)
		*at = c->next;
	pthread_mutex_unlock(&lock);
	return c;
}

void net_forget(const struct net_context *ctx)
{
	struct net_conn **at = &attempts, *c;

	pthread_mutex_lock(&lock);
	while ((c = *at)) {
		if (ctx && c->ctx != ctx) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		net_conn_free(c);
	}
	pthread_mutex_unlock(&lock);
}

static void __attribute__((destructor)) forget_all(void)
{
	net_forget(NULL);
}

/*
 * Connect and send the first message; the connection is open when the socket has taken
 * it
 */
static enum nccl_result go_on(struct net_conn *c,
			      const struct sockaddr_dblp *addr)
{
	int err = dblp_connect(c->fd, addr, -1), done;

	if (err == -EINPROGRESS || err == -EALREADY || err == -EINTR)
		return ncclSuccess;
	if (err && err != -EISCONN)
		return failed("connecting to", c->peer, err);
	if (net_test(&c->request[0], &done, NULL))
		return c->error;
	c->is_open = done;
	return ncclSuccess;
}

static enum nccl_result find_or_begin(struct net_context *ctx, struct net_device *d,
				      const struct net_handle *h, int traffic_class,
				      struct net_conn **c)
{
	enum nccl_result result;
	uint32_t budget;
	int err;

	*c = take(h);
	if (*c)
		return ncclSuccess;
	result = ask_budget(traffic_class, ctx, &budget);
	if (result)
		return result;
	err = begin(d, h, budget, c);
	if (err)
		return failed("connecting", "a socket", err);
	(*c)->ctx = net_context_get(ctx);
	(*c)->hello.traffic_class = traffic_class;
	(*c)->hello.flags = ctx ? NET_HELLO_SEES_PROTO : 0;
	return ncclSuccess;
}

enum nccl_result net_connect(struct net_context *ctx, int device, int traffic_class,
			     void *handle, void **conn)
{
	struct net_device *d = net_device_of(device);
	struct net_handle *h = handle;
	enum nccl_result result;
	struct net_conn *c;

	*conn = NULL;
	if (!d)
		return ncclInternalError;
	if (h->magic != MAGIC) {
		net_warn("connecting: the handle is of another version of the plugin");
		return ncclInvalidUsage;
	}
	result = find_or_begin(ctx, d, h, traffic_class, &c);
	if (result)
		return result;
	result = go_on(c, &h->addr);
	if (result)
		net_conn_free(c);
	else if (c->is_open)
		*conn = c;
	else
		keep(c, h);
	return result;
}
