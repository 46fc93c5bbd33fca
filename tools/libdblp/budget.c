// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Loss budgets: what a message may lose, by the lane and the operation.
 */

#include "engine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Set an option of the socket, unless *@is has this value already */
static int set_link(struct dblp_link *l, int option, uint32_t value,
		    uint32_t *is)
{
	if (value == *is)
		return 0;
	if (setsockopt(l->fd, SOL_DBLP, option, &value, sizeof(value)))
		return -errno;
	*is = value;
	return 0;
}

/*
 * Budget of a message before it is shared among contributions. A reliable
 * operation is reliable on every lane.
 */
static uint32_t wanted_budget(const struct dblp_link *l, const struct dblp_op *op)
{
	const struct dblp_lane *lane = &l->comm->lane[l->lane];

	if (op->flags & DBLP_OP_BUDGET && !op->budget)
		return 0;
	if (lane->flags & DBLP_LANE_BUDGET)
		return lane->budget;
	return op->flags & DBLP_OP_BUDGET ? op->budget : DBLP_INHERIT;
}

/*
 * Set the budget on the socket, where an operator can see and change it, until
 * an operation has another one. A budget of 0 is set on the message, so
 * operators cannot raise it.
 */
static int budget_of(struct dblp_link *l, const struct dblp_op *op,
		     uint32_t *budget)
{
	socklen_t len = sizeof(*budget);
	int err;

	*budget = wanted_budget(l, op);
	if (!*budget)
		return 0;
	err = set_link(l, DBLP_BUDGET, *budget, &l->own_budget);
	if (!err && getsockopt(l->fd, SOL_DBLP, DBLP_BUDGET, budget, &len))
		err = -errno;
	return err;
}

int dblp_budget_set(struct dblp_link *l, const struct dblp_task *t,
		   struct dblp_sndinfo *info)
{
	const struct dblp_lane *lane = &l->comm->lane[l->lane];
	const struct dblp_op *op = &t->req->op;
	uint32_t phase = op->flags & DBLP_OP_PHASE ? op->phase : DBLP_INHERIT;
	uint32_t budget;
	int err;

	memset(info, 0, sizeof(*info));
	info->critical = DBLP_HEAD_LEN;
	if (dblp_is_sparse(t))
		info->critical += (uint32_t)l->out.n_packed - dblp_link_bytes(l, t);
	info->critical += (uint32_t)l->out.n_repaired * t->req->esize;
	info->flags = DBLP_SND_BUDGET;
	if (dblp_task_comm(t)->transport->protocol)
		return 0;
	info->tag = ++l->out.tag;
	if (t->step->reliable && !dblp_keeps(t)) {
		info->flags |= DBLP_SND_POLICY;
		info->policy = DBLP_POLICY_FULL;
		return 0;
	}
	err = set_link(l, DBLP_PHASE, phase, &l->phase);
	if (!err)
		err = budget_of(l, op, &budget);
	if (err)
		return err;
	info->budget = dblp_losses_budget(l, t, dblp_link_bytes(l, t), budget);
	if (lane->flags & DBLP_LANE_POLICY || op->flags & DBLP_OP_POLICY) {
		info->flags |= DBLP_SND_POLICY;
		info->policy = (uint8_t)(lane->flags & DBLP_LANE_POLICY ?
					 lane->policy : op->policy);
	}
	return 0;
}
