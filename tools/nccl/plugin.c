// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Functions that NCCL calls. They send messages between hosts over AF_DBLP.
 */

#include "plugin.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Does the kernel support AF_DBLP? This loads an installed module */
static enum nccl_result try_socket(void)
{
	const char *net = getenv("NCCL_NET");
	struct sockaddr_dblp any;
	int fd = dblp_addr_parse("::", &any) ?: dblp_socket(&any, 0);

	if (fd >= 0) {
		close(fd);
		return ncclSuccess;
	}
	net_warn("no AF_DBLP socket: %s%s; %s", strerror(-fd),
		 fd == -EAFNOSUPPORT ? " (is dblp.ko loaded?)" : "",
		 net && !strcasecmp(net, "dblp") ?
		 "NCCL_NET=DBLP requires it, so NCCL ends" :
		 "NCCL uses another network, unless NCCL_NET=DBLP is set");
	return ncclSystemError;
}

static enum nccl_result init_v8(nccl_logger log)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	enum nccl_result result;

	pthread_mutex_lock(&lock);
	net_log = log;
	result = try_socket() ?: net_classes_init() ?: net_devices_init();
	pthread_mutex_unlock(&lock);
	return result;
}

static enum nccl_result init_v10(nccl_logger log, void *profiler)
{
	(void)profiler;
	return init_v8(log);
}

static enum nccl_result init_v11(void **context, uint64_t comm, struct nccl_config *config,
				 nccl_logger log, void *profiler)
{
	enum nccl_result result = init_v10(log, profiler);

	(void)comm;
	*context = NULL;
	if (result)
		return result;
	*context = net_context_new(config ? config->traffic_class : NCCL_NO_CLASS);
	return *context ? ncclSuccess : ncclSystemError;
}

static enum nccl_result finalize(void *context)
{
	if (!context)
		return ncclSuccess;
	net_forget(context);
	net_context_put(context);
	return ncclSuccess;
}

static enum nccl_result set_attr(void *context, struct nccl_attr *attr)
{
	if (context)
		net_context_set(context, attr);
	return ncclSuccess;
}

static enum nccl_result devices(int *n)
{
	*n = net_devices();
	return ncclSuccess;
}

static enum nccl_result properties_v12(int number, struct nccl_properties_v12 *p)
{
	struct net_device *d = net_device_of(number);

	if (!d)
		return ncclInternalError;
	*p = (struct nccl_properties_v12) {
		.name = d->name,
		.pci_path = d->pci_path,
		.guid = (uint64_t)number,
		.memory = NCCL_PTR_HOST,
		.mbit_s = d->mbit_s,
		.conns_max = 65536,
		.recvs_max = 1,
		.nic = { .n = 1, .device = { number } },
		.p2p_max = NET_BYTES_MAX,
		.collective_max = NET_BYTES_MAX,
		.requests_max = 1,
		.rail = NCCL_NO_ID,
		.plane = NCCL_NO_ID,
	};
	return ncclSuccess;
}

/* Versions 10 to 12 begin with the same properties */
static enum nccl_result properties_v11(int number, struct nccl_properties_v11 *p)
{
	struct nccl_properties_v12 all;
	enum nccl_result result = properties_v12(number, &all);

	if (result)
		return result;
	memcpy(p, &all, offsetof(struct nccl_properties_v12, nic));
	p->nic = (struct nccl_nic_v10) { .n = 1, .device = { number } };
	p->p2p_max = all.p2p_max;
	p->collective_max = all.collective_max;
	p->requests_max = all.requests_max;
	return ncclSuccess;
}

/* Version 11 added a property at the end */
static enum nccl_result properties_v10(int number, struct nccl_properties_v10 *p)
{
	struct nccl_properties_v11 all;
	enum nccl_result result = properties_v11(number, &all);

	if (!result)
		memcpy(p, &all, sizeof(*p));
	return result;
}

static enum nccl_result properties_v8(int number, struct nccl_properties_v8 *p)
{
	struct nccl_properties_v12 all;
	enum nccl_result result = properties_v12(number, &all);

	if (result)
		return result;
	*p = (struct nccl_properties_v8) {
		.name = all.name,
		.pci_path = all.pci_path,
		.guid = all.guid,
		.memory = all.memory,
		.mbit_s = all.mbit_s,
		.conns_max = all.conns_max,
		.recvs_max = all.recvs_max,
	};
	return ncclSuccess;
}

static enum nccl_result listen_v11(void *ctx, int device, void *handle, void **listener)
{
	(void)ctx;
	return net_listen(device, handle, listener);
}

static enum nccl_result connect_v8(int device, void *handle, void **conn,
				   void **offload)
{
	(void)offload;
	return net_connect(NULL, device, NCCL_NO_CLASS, handle, conn);
}

static enum nccl_result connect_v10(int device, struct nccl_config *config,
				    void *handle, void **conn, void **offload)
{
	(void)offload;
	return net_connect(NULL, device, config ? config->traffic_class :
			   NCCL_NO_CLASS, handle, conn);
}

static enum nccl_result connect_v11(void *context, int device, void *handle,
				    void **conn, void **offload)
{
	struct net_context *ctx = context;

	(void)offload;
	return net_connect(ctx, device, ctx->traffic_class, handle, conn);
}

static enum nccl_result reg_mr(void *conn, void *data, size_t size, int memory,
			       void **region)
{
	(void)conn;
	(void)size;
	if (memory != NCCL_PTR_HOST) {
		net_warn("only host memory is supported, not kind %d",
			 memory);
		return ncclInternalError;
	}
	*region = data;
	return ncclSuccess;
}

static enum nccl_result dereg_mr(void *conn, void *region)
{
	(void)conn;
	(void)region;
	return ncclSuccess;
}

static enum nccl_result isend_v10(void *conn, void *data, size_t size, int tag,
				  void *region, void *profile, void **request)
{
	enum nccl_result result = net_post(conn, data, size, tag, request);

	(void)region;
	(void)profile;
	return result ?: net_progress(conn);
}

static enum nccl_result isend_v8(void *conn, void *data, int size, int tag,
				 void *region, void **request)
{
	return isend_v10(conn, data, (size_t)size, tag, region, NULL, request);
}

static enum nccl_result irecv(struct net_conn *c, int n, void *data,
			      size_t size, int tag, void **request)
{
	if (n == 1)
		return net_post(c, data, size, tag, request);
	net_warn("%d messages in one receive, but 1 is supported", n);
	return ncclInternalError;
}

static enum nccl_result irecv_v8(void *conn, int n, void **data, int *sizes,
				 int *tags, void **regions, void **request)
{
	(void)regions;
	return irecv(conn, n, data[0], (size_t)sizes[0], tags[0], request);
}

/*
 * NCCL_PROTO covers collectives only, so this checks each receive, too, unless the sender
 * does
 */
static enum nccl_result irecv_v10(void *conn, int n, void **data,
				  size_t *sizes, int *tags, void **regions,
				  void **profiles, void **request)
{
	struct net_conn *c = conn;

	(void)regions;
	(void)profiles;
	if (c->budget && !(c->hello.flags & NET_HELLO_SEES_PROTO) &&
	    *request == NCCL_FLAGS_IN_DATA) {
		net_warn("%s may lose data, but NCCL uses a protocol that does not tolerate losses",
			 c->peer);
		return ncclInvalidUsage;
	}
	return irecv(c, n, data[0], sizes[0], tags[0], request);
}

/* Host memory needs no flush */
static enum nccl_result iflush(void *conn, int n, void **data, int *sizes,
			       void **regions, void **request)
{
	(void)conn;
	(void)n;
	(void)data;
	(void)sizes;
	(void)regions;
	*request = NULL;
	return ncclSuccess;
}

static enum nccl_result close_conn(void *conn)
{
	net_conn_free(conn);
	return ncclSuccess;
}

/* make_nic() is absent, so NCCL merges no devices */
#define SINCE_V8				\
	.name = "DBLP",				\
	.devices = devices,			\
	.accept = net_accept,			\
	.reg_mr = reg_mr,			\
	.dereg_mr = dereg_mr,			\
	.iflush = iflush,			\
	.test = net_test,			\
	.close_send = close_conn,		\
	.close_recv = close_conn,		\
	.close_listen = net_close_listen

#define SINCE_V10				\
	SINCE_V8,				\
	.isend = isend_v10,			\
	.irecv = irecv_v10

#define SINCE_V11				\
	SINCE_V10,				\
	.init = init_v11,			\
	.listen = listen_v11,			\
	.connect = connect_v11,			\
	.finalize = finalize,			\
	.set_attr = set_attr

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	SINCE_V8,
	.init = init_v8,
	.properties = properties_v8,
	.listen = net_listen,
	.connect = connect_v8,
	.isend = isend_v8,
	.irecv = irecv_v8,
};

const struct nccl_net_v10 ncclNetPlugin_v10 = {
	SINCE_V10,
	.init = init_v10,
	.properties = properties_v10,
	.listen = net_listen,
	.connect = connect_v10,
};

const struct nccl_net_v11 ncclNetPlugin_v11 = {
	SINCE_V11,
	.properties = properties_v11,
};

const struct nccl_net_v12 ncclNetPlugin_v12 = {
	SINCE_V11,
	.properties = properties_v12,
};
