// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"

int gather_open(struct gather *g, struct dblp_comm *comm, size_t each)
{
	*g = (struct gather){ .comm = comm, .each = each };
	g->rank = dblp_comm_rank(comm);
	g->nranks = dblp_comm_nranks(comm);
	g->all = malloc(g->nranks * each);
	return g->all ? 0 : -ENOMEM;
}

/* A vector of one record for each rank: each rank owns the part with its own record */
int gather_begin(struct gather *g, const void *mine)
{
	const struct dblp_op op = {
		.size = sizeof(op),
		.algo = DBLP_TRANSPOSE,
		.dtype = DBLP_INT32,
	};

	memcpy(g->all + g->rank * g->each, mine, g->each);
	return dblp_allgather(g->comm, g->all, g->nranks * g->each / 4, &op,
			      &g->req);
}

int gather_end(struct gather *g)
{
	struct dblp_req *req = g->req;

	g->req = NULL;
	return dblp_wait(req, -1, NULL, 0);
}

void gather_free(struct gather *g)
{
	free(g->all);
}
