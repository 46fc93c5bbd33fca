/* SPDX-License-Identifier: GPL-2.0-only */
/* Gathers one record of each rank at all ranks. */
#ifndef TRAIN_GATHER_H
#define TRAIN_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include <comm.h>

/**
 * struct gather - a gather of records
 * @comm: the communicator
 * @each: bytes of a record, a multiple of 4
 * @nranks: number of ranks
 * @rank: this rank
 * @all: the records by rank, valid after gather_end()
 * @req: the request in flight, or NULL
 */
struct gather {
	struct dblp_comm	*comm;
	size_t			each;
	uint32_t		nranks;
	uint32_t		rank;
	char			*all;
	struct dblp_req		*req;
};

/* Each returns 0 or a negative errno. */

int gather_open(struct gather *g, struct dblp_comm *comm, size_t each);
/** gather_begin() - send our record to all ranks; does not wait */
int gather_begin(struct gather *g, const void *mine);
/** gather_end() - wait for the records of all ranks */
int gather_end(struct gather *g);
void gather_free(struct gather *g);

#endif /* TRAIN_GATHER_H */
