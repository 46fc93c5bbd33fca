// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Failures are recorded where they are found, in the middle of other work. The
 * engine acts on them between its other work, see dblp_engine_agree(): so a
 * failure frees nothing that a caller still uses.
 */

#include "engine.h"

static bool record(struct dblp_failure *f, uint32_t rank, uint32_t error,
		   const struct dblp_unreached *unreached)
{
	if (f->is_set)
		return false;
	*f = (struct dblp_failure) {
		.is_set = true,
		.rank = rank,
		.error = error,
	};
	if (unreached)
		f->unreached = *unreached;
	return true;
}

bool dblp_suspect(struct dblp_comm *comm, uint32_t rank, int error,
		  const struct dblp_unreached *unreached)
{
	return record(&comm->suspicion, rank, (uint32_t)-error, unreached);
}

bool dblp_decide(struct dblp_comm *comm, uint32_t rank, uint32_t error,
		 const struct dblp_unreached *unreached)
{
	return record(&comm->decision, rank, error, unreached);
}
