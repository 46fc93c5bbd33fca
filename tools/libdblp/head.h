/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: what stands before the elements of a message of a collective operation.
 *
 * Pure. A message has a head, which is critical: never lost. If a partial sum lacks
 * contributions (rescale), runs say so, and may not be lost either. All is big-endian,
 * and its length a multiple of 8, so that no element is cut where the transport cuts a
 * message.
 */
#ifndef DBLP_HEAD_H
#define DBLP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "rule.h"

/** DBLP_HEAD_LEN - bytes of a head */
#define DBLP_HEAD_LEN	56

/** DBLP_RUN_LEN - bytes of a run */
#define DBLP_RUN_LEN	8

/**
 * enum dblp_head_type - types of messages
 * @DBLP_HEAD_HELLO: first message of a connection
 * @DBLP_HEAD_DATA: elements
 * @DBLP_HEAD_TYPES: number of types
 */
enum dblp_head_type {
	DBLP_HEAD_HELLO,
	DBLP_HEAD_DATA,
	DBLP_HEAD_TYPES,
};

/**
 * struct dblp_head - head of a message
 * @type: &enum dblp_head_type
 * @dtype: &enum dblp_dtype of the elements; hello: 0
 * @nic: hello: which lane and device the connection is for; data: 0
 * @epoch: how often the communicator was made anew
 * @from: rank of the sender
 * @comm: random number of the communicator
 * @digest: of all that ranks must agree upon in the operation; hello: MAC of the head with
 *	a digest of 0
 * @seq: number of the operation; hello: 0
 * @round: of the step; hello: rank of the receiver
 * @offset: first element
 * @count: number of elements, at least 1; hello: 0
 * @runs: number of runs; 0: all elements have the contributions of the plan
 */
struct dblp_head {
	uint8_t		type;
	uint8_t		dtype;
	uint8_t		nic;
	uint32_t	epoch;
	uint32_t	from;
	uint64_t	comm;
	uint64_t	digest;
	uint32_t	seq;
	uint32_t	round;
	uint64_t	offset;
	uint32_t	count;
	uint32_t	runs;
};

/**
 * dblp_head_put() - encode a head
 * @h: the head
 * @p: filled
 */
void dblp_head_put(const struct dblp_head *h, uint8_t p[DBLP_HEAD_LEN]);

/**
 * dblp_head_get() - decode a head
 * @p: bytes of a peer
 * @len: their number
 * @h: filled; not changed on failure
 *
 * Whatever a sender must not do is refused.
 *
 * Return: 0; -EBADMSG if it is no head, is cut short or contradicts itself;
 * -EPROTONOSUPPORT if it is one of another version.
 */
int dblp_head_get(const uint8_t *p, size_t len, struct dblp_head *h);

/**
 * dblp_runs_put() - encode runs
 * @run: runs of a message, from its element 0 on
 * @n: their number
 * @p: filled, %DBLP_RUN_LEN bytes for each
 */
void dblp_runs_put(const struct dblp_run *run, uint32_t n, uint8_t *p);

/**
 * dblp_runs_get() - decode runs
 * @h: head of the message
 * @p: @h->runs runs of a peer
 * @most: contributions of the plan, of which no element has more
 * @run: filled with @h->runs runs
 *
 * Return: 0, -EBADMSG if they do not fit the message.
 */
int dblp_runs_get(const struct dblp_head *h, const uint8_t *p, uint32_t most,
		  struct dblp_run *run);

#endif /* DBLP_HEAD_H */
