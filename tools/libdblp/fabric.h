/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: asynchronous updates of a model, by way of a scheduler.
 *
 * A server has the model. A worker pulls it, computes an update, and pushes that; nobody
 * waits for other workers. A scheduler, dblp-fabric(1), says when an update is sent and
 * where to: to the server, or to a host that joins several to one message. What would come
 * too late to be of use it drops before it is sent. Version v of the model is what v
 * updates have made of zero:
 *
 *	model -= eta / sqrt(1 + delay) * update
 *
 * where the delay is how many others were applied since the version that the update was
 * computed from.
 *
 * Functions return 0 or a negative errno; none prints or ends the program. One thread at
 * a time may use a fabric.
 */
#ifndef DBLP_FABRIC_H
#define DBLP_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dblp_fabric;

/**
 * struct dblp_fabric_attr - how to join
 * @size: sizeof(struct dblp_fabric_attr)
 * @worker: number of this worker, less than the scheduler's number of workers
 * @scheduler: its address and port, over TCP
 * @transport: of updates and models: "dblp" (also NULL) or "tcp"
 * @count: elements of the model, float32
 * @timeout_ms: how long a host may be silent while something is expected of it; 0: 10000
 * @reserved: 0
 */
struct dblp_fabric_attr {
	uint32_t	size;
	uint32_t	worker;
	const char	*scheduler;
	const char	*transport;
	uint64_t	count;
	uint32_t	timeout_ms;
	uint32_t	reserved;
};

/**
 * dblp_fabric_open() - join
 * @fabric: set
 * @attr: attributes
 *
 * Return: 0; -EINVAL if @attr contradicts itself; -E2BIG if it has more than this library
 * knows; -ENOENT if the scheduler knows no such worker; -EEXIST if that worker has joined
 * already; -EMSGSIZE if the model has another number of elements; -EPROTONOSUPPORT if the
 * scheduler speaks another version; -EAFNOSUPPORT without AF_DBLP, or without IPv6 if an address
 * needs it; another negative errno.
 */
int dblp_fabric_open(struct dblp_fabric **fabric,
		     const struct dblp_fabric_attr *attr);

/** dblp_fabric_close() - leave; NULL: nothing */
void dblp_fabric_close(struct dblp_fabric *fabric);

/**
 * dblp_pull() - get the model
 * @fabric: the fabric
 * @model: filled with @count elements; undefined on failure
 * @count: as of the fabric
 * @version: set: how many updates are in it
 *
 * It has the last own update that was applied, unless a server has failed since.
 *
 * Return: 0; -EMSGSIZE if @count is not that of the fabric; -ENOTCONN if the scheduler
 * has failed, -ESHUTDOWN if it was ended; -EHOSTDOWN if there is no server; another
 * negative errno.
 */
int dblp_pull(struct dblp_fabric *fabric, float *model, uint64_t count,
	      uint64_t *version);

/**
 * struct dblp_pushed - what became of an update
 * @version: of the model with it
 * @dropped: it was not sent, as it would have been too late
 * @tries: how often it was sent, or would have been; more than once if a host failed
 */
struct dblp_pushed {
	uint64_t	version;
	uint32_t	dropped;
	uint32_t	tries;
};

/**
 * dblp_push() - let an update be applied
 * @fabric: the fabric
 * @update: of @count elements
 * @count: as of the fabric
 * @version: that dblp_pull() has set
 * @pushed: filled, or NULL
 * @size: its size
 *
 * Returns when the update is in the model or was dropped, which is no failure.
 *
 * Return: 0; -EMSGSIZE if @count is not that of the fabric; -EDOM if an element of it, or
 * of the model with it, is no number or infinite; -ERANGE if there is no such version yet;
 * -ENOTCONN if the scheduler has failed, -ESHUTDOWN if it was ended; -EHOSTDOWN if there is
 * no server; another negative errno. It is not in the model then.
 */
int dblp_push(struct dblp_fabric *fabric, const float *update, uint64_t count,
	      uint64_t version, struct dblp_pushed *pushed, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* DBLP_FABRIC_H */
