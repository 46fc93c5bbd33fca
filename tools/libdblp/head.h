/* SPDX-License-Identifier: LGPL-2.1-or-later OR MIT */
/*
 * libdblp: heads of the messages of collective operations.
 *
 * Pure: no sockets. Each message begins with a head, which is critical: never
 * lost. If a partial sum lacks contributions (rescale), runs precede it, which
 * are critical, too. All fields are big-endian. Lengths are multiples of 8, so
 * that the transport, which cuts messages at such offsets, cuts no element.
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
 * @nic: hello: index of the link: lane x devices + device; data: 0
 * @epoch: number of the job's attempt
 * @from: rank of the sender
 * @comm: random number of the communicator
 * @digest: digest of the operation; hello: MAC of the head with a digest of 0
 * @seq: number of the operation; hello: 0
 * @round: round of the step; hello: rank of the receiver
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
 * @p: bytes from a peer
 * @len: their number
 * @h: filled; unchanged on failure
 *
 * Return: 0; -EBADMSG if it is not a head, too short or invalid;
 * -EPROTONOSUPPORT if it has another version.
 */
int dblp_head_get(const uint8_t *p, size_t len, struct dblp_head *h);

/**
 * dblp_runs_put() - encode runs
 * @run: runs of a message, starting at its element 0
 * @n: their number
 * @p: filled, %DBLP_RUN_LEN bytes for each
 */
void dblp_runs_put(const struct dblp_run *run, uint32_t n, uint8_t *p);

/**
 * dblp_runs_get() - decode runs
 * @h: head of the message
 * @p: @h->runs runs from a peer
 * @most: contributions of the plan: the maximum of each run
 * @run: filled with @h->runs runs
 *
 * Return: 0; -EBADMSG if the runs do not match the message.
 */
int dblp_runs_get(const struct dblp_head *h, const uint8_t *p, uint32_t most,
		  struct dblp_run *run);

#endif /* DBLP_HEAD_H */
