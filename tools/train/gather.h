/* SPDX-License-Identifier: GPL-2.0-only */
/* What each rank tells all others: a record of its own beside those of the others. */
#ifndef TRAIN_GATHER_H
#define TRAIN_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include <comm.h>

/**
 * struct gather - an exchange of records
 * @comm: the communicator
 * @each: bytes of a record, a multiple of 4
 * @nranks: number of records
 * @rank: which one is ours
 * @all: the records by rank, valid after gather_end()
 * @req: under way, or NULL
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
/** gather_begin() - tell all others; does not wait for them */
int gather_begin(struct gather *g, const void *mine);
/** gather_end() - wait until all have told */
int gather_end(struct gather *g);
void gather_free(struct gather *g);

#endif /* TRAIN_GATHER_H */
