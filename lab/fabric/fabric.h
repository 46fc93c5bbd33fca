/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * Asynchronous updates of a model, by way of a scheduler.
 *
 * A server holds the model. A worker pulls it, computes an update, and pushes
 * that; workers do not wait for each other. A scheduler, dblp-fabric(1),
 * decides when an update is sent, and where: to the server, or to a host that
 * sums several updates into one message. It drops an update before it is sent
 * if it would arrive too late. Version v of the model is the result of v
 * updates, starting from zero:
 *
 *	model -= eta / sqrt(1 + delay) * update
 *
 * The delay is the number of other updates applied since the version from which
 * the update was computed.
 *
 * Functions return 0 or a negative errno; none prints or ends the program. Only
 * one thread at a time may use a fabric.
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
 * @scheduler: address and port of the scheduler, over TCP
 * @transport: transport of updates and models: "dblp" (also NULL) or "tcp"
 * @count: elements of the model, float32
 * @timeout_ms: ms until a host has failed that is silent while an answer is
 *	due; 0: 10000
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
 * @fabric: set to the new fabric; close it by dblp_fabric_close()
 * @attr: attributes
 *
 * Return: 0; -EINVAL if @attr contradicts itself; -E2BIG if it has fields that
 * this library does not know; -ENOENT if the scheduler has no such worker;
 * -EEXIST if that worker has joined already; -EMSGSIZE if the model has another
 * number of elements; -EPROTONOSUPPORT if the scheduler has another version;
 * -EAFNOSUPPORT without AF_DBLP, or without IPv6 if an address needs it;
 * another negative errno.
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
 * @version: set to the number of updates in the model
 *
 * The model includes this worker's last applied update, unless a server has
 * failed since.
 *
 * Return: 0; -EMSGSIZE if @count is not that of the fabric; -ENOTCONN if the
 * scheduler has failed; -ESHUTDOWN if the scheduler was shut down; -EHOSTDOWN
 * if there is no server; another negative errno.
 */
int dblp_pull(struct dblp_fabric *fabric, float *model, uint64_t count,
	      uint64_t *version);

/**
 * struct dblp_pushed - result of a push
 * @version: version of the model with the update
 * @dropped: the update was not sent, because it would have been too late
 * @tries: attempts to send it, including dropped ones; more than one if a host
 *	failed
 */
struct dblp_pushed {
	uint64_t	version;
	uint32_t	dropped;
	uint32_t	tries;
};

/**
 * dblp_push() - apply an update to the model
 * @fabric: the fabric
 * @update: @count elements
 * @count: as of the fabric
 * @version: set by dblp_pull()
 * @pushed: filled, or NULL
 * @size: sizeof(*@pushed)
 *
 * Returns when the update is in the model, or was dropped, which is not a
 * failure.
 *
 * Return: 0; -EMSGSIZE if @count is not that of the fabric; -EDOM if an element
 * of the update, or of the updated model, is NaN or infinite; -ERANGE if
 * @version does not exist yet; -ENOTCONN if the scheduler has failed;
 * -ESHUTDOWN if the scheduler was shut down; -EHOSTDOWN if there is no server;
 * another negative errno. On failure the update is not in the model, unless the
 * scheduler failed at that moment.
 */
int dblp_push(struct dblp_fabric *fabric, const float *update, uint64_t count,
	      uint64_t version, struct dblp_pushed *pushed, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* DBLP_FABRIC_H */
