// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Operations: beginning them, and waiting for their end.
 */

#include "engine.h"
#include "reduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Size in release 0.1, the first one: it never changes */
#define OP_LEAST	(offsetof(struct dblp_op, key) + 8)

/**
 * struct what - kind of an operation
 * @half: &enum dblp_plan_flags: one half of an allreduce, or 0
 * @rooted: only the root has the sum, or the vector
 * @pair: send and recv: a plan of 2 ranks, of which rank 0 sends
 * @me: with @pair: this rank's number in that plan
 * @peer: with @pair: the other rank of the communicator
 */
struct what {
	uint32_t	half;
	bool		rooted;
	bool		pair;
	uint32_t	me;
	uint32_t	peer;
};

/*
 * With other algorithms, a vector holds partial sums where its old elements
 * should be kept
 */
static bool may_keep(const struct dblp_op *op, uint32_t half)
{
	return !(op->flags & DBLP_OP_SPARSE) &&
	       (half == DBLP_PLAN_SPREAD || op->algo == DBLP_PS ||
		op->algo == DBLP_TRANSPOSE || op->algo == DBLP_AVERAGE);
}

/*
 * Only where owners send to all ranks: a rank that passes elements on may have
 * kept old ones
 */
static bool may_repair(const struct dblp_op *op, uint32_t half)
{
	return op->flags & DBLP_OP_KEEP && half == DBLP_PLAN_SPREAD && !op->wait_ms &&
	       (op->algo == DBLP_PS || op->algo == DBLP_TRANSPOSE);
}

static int check_op(const struct dblp_op *op, const struct what *what)
{
	const uint32_t flags = DBLP_OP_BUDGET | DBLP_OP_POLICY | DBLP_OP_PHASE |
			       DBLP_OP_AVERAGE | DBLP_OP_CARRY | DBLP_OP_SPARSE |
			       DBLP_OP_KEEP | DBLP_OP_ENERGY | DBLP_OP_REPAIR;

	if (op->flags & ~flags || !dblp_dtype_size(op->dtype) ||
	    op->rule >= DBLP_RULES || op->budget > DBLP_PPM ||
	    op->policy > DBLP_POLICY_EARLY || op->phase >= DBLP_PHASES ||
	    op->plan_flags & ~(uint32_t)DBLP_PLAN_SERVER)
		return -EINVAL;
	if (op->flags & DBLP_OP_KEEP && !may_keep(op, what->half))
		return -EINVAL;
	if (op->flags & DBLP_OP_REPAIR && !may_repair(op, what->half))
		return -EINVAL;
	if (op->flags & DBLP_OP_ENERGY && (what->half || what->rooted))
		return -EINVAL;
	if (what->rooted && op->algo != DBLP_PS && op->algo != DBLP_TREE)
		return -EINVAL;
	if (op->flags & DBLP_OP_CARRY && !(op->flags & DBLP_OP_BUDGET))
		return -EINVAL;
	if ((op->prune || op->block) && !(op->flags & DBLP_OP_SPARSE))
		return -EINVAL;
	if (op->prune >= DBLP_PPM || (op->prune && op->rule != DBLP_FEEDBACK) ||
	    op->block & (op->block - 1) || op->block > DBLP_BLOCK_MAX)
		return -EINVAL;
	return 0;
}

static struct dblp_plan plan_of(const struct dblp_comm *comm, uint64_t count,
				const struct dblp_op *op, const struct what *what)
{
	struct dblp_plan plan;

	/* Clear padding, too: plans are compared byte by byte */
	memset(&plan, 0, sizeof(plan));
	plan.algo = op->algo;
	plan.nranks = what->pair ? 2 : comm->nranks;
	plan.rank = what->pair ? what->me : comm->rank;
	plan.flags = op->plan_flags | what->half;
	plan.root = op->root;
	plan.fanin = op->fanin;
	plan.turn = op->turn;
	plan.levels = op->levels;
	memcpy(plan.radix, op->radix, sizeof(plan.radix));
	plan.count = count;
	return plan;
}

static bool is_of(const struct dblp_sched *s, const struct dblp_plan *plan,
		  const struct dblp_layout *layout)
{
	return !memcmp(&s->plan, plan, sizeof(*plan)) &&
	       s->layout.parts == layout->parts &&
	       s->layout.most == layout->most &&
	       (!layout->parts || !memcmp(s->layout.part, layout->part,
					  layout->parts * sizeof(*layout->part)));
}

/* Index of this plan among the last ones, or of the oldest one */
static size_t find_sched(const struct dblp_comm *comm,
			 const struct dblp_plan *plan,
			 const struct dblp_layout *layout)
{
	const size_t last = sizeof(comm->sched) / sizeof(*comm->sched) - 1;
	size_t i;

	for (i = 0; i < last && comm->sched[i]; i++)
		if (is_of(comm->sched[i], plan, layout))
			break;
	return i;
}

/* Move a plan, @found at index @i or new, to the front, and take a reference */
static void use_sched(struct dblp_comm *comm, size_t i, struct dblp_sched *found)
{
	if (comm->sched[i] != found)
		dblp_sched_put(comm->sched[i]);
	memmove(&comm->sched[1], &comm->sched[0], i * sizeof(*comm->sched));
	comm->sched[0] = found;
	found->refs++;
}

/*
 * Find or compute a plan; new ones are computed without the lock. With a
 * reference
 */
static int get_sched(struct dblp_comm *comm, const struct dblp_plan *plan,
		     const struct dblp_layout *layout, struct dblp_sched **sched)
{
	struct dblp_sched *s;
	size_t i;
	int err;

	pthread_mutex_lock(&comm->lock);
	i = find_sched(comm, plan, layout);
	s = comm->sched[i];
	if (!s || !is_of(s, plan, layout)) {
		pthread_mutex_unlock(&comm->lock);
		err = dblp_sched_new(plan, layout, &s);
		if (err)
			return err;
		pthread_mutex_lock(&comm->lock);
		/*
		 * Another thread may have added the same plan, or replaced
		 * entry @i
		 */
		i = find_sched(comm, plan, layout);
	}
	use_sched(comm, i, s);
	pthread_mutex_unlock(&comm->lock);
	*sched = s;
	return 0;
}

/* Hash of what all ranks must give alike */
static uint64_t digest_of(const struct dblp_req *req)
{
	struct dblp_op op = req->op;
	uint64_t h;

	op.size = 0;
	op.limit_ms = 0;
	op.part = NULL;
	h = dblp_hash(req->sched->digest, &op, sizeof(op));
	return dblp_hash(h, req->sched->layout.part,
			 op.parts * sizeof(*op.part));
}

/* A request with the steps of @sched, whose reference it takes; NULL without memory */
static struct dblp_req *req_of(struct dblp_comm *comm, void *buf, const struct dblp_op *op,
			       const struct what *what, struct dblp_sched *sched)
{
	struct dblp_req *req = calloc(1, sizeof(*req) + sched->n * sizeof(*req->task));
	uint32_t i;

	if (!req)
		return NULL;
	req->comm = comm;
	req->op = *op;
	req->sched = sched;
	req->peer = what->pair ? (int32_t)what->peer : -1;
	req->buf = buf;
	req->esize = dblp_dtype_size(op->dtype);
	req->digest = digest_of(req);
	req->left = sched->n;
	req->users = 2;
	req->result.failed_rank = -1;
	for (i = 0; i < sched->n; i++) {
		req->task[i].req = req;
		req->task[i].step = &sched->step[i];
		req->task[i].waits = sched->waits[i];
		req->lane_left[sched->way[i].lane]++;
	}
	return req;
}

static int new_req(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, const struct what *what,
		   struct dblp_req **new)
{
	struct dblp_layout layout = {
		.lane = comm->lane, .lanes = comm->n_lanes,
	};
	struct dblp_sched *sched;
	struct dblp_plan plan;
	struct dblp_op own;
	int err = dblp_sized_take(&own, sizeof(own), op, OP_LEAST);

	if (!err)
		err = check_op(&own, what);
	if (err)
		return err;
	layout.part = own.part;
	layout.parts = own.parts;
	layout.most = comm->attr.message_bytes / dblp_dtype_size(own.dtype);
	err = dblp_parts_check(&layout, count);
	/* Runs cannot say which elements travelled by which lane */
	if (!err && own.rule == DBLP_RESCALE && dblp_layout_splits(&layout))
		err = -EINVAL;
	if (err)
		return err;
	plan = plan_of(comm, count, &own, what);
	err = get_sched(comm, &plan, &layout, &sched);
	if (err)
		return err;
	*new = req_of(comm, buf, &own, what, sched);
	if (*new)
		return 0;
	pthread_mutex_lock(&comm->lock);
	dblp_sched_put(sched);
	pthread_mutex_unlock(&comm->lock);
	return -ENOMEM;
}

/* Number of an operation: of all ranks, or from one rank to another */
static uint32_t next_seq(struct dblp_req *req)
{
	struct dblp_link *l;

	if (req->peer < 0)
		return req->comm->seq++;
	l = dblp_pair_link(req->comm, (uint32_t)req->peer);
	return req->sched->plan.rank ? l->n_recvs++ : l->n_sends++;
}

static int submit(struct dblp_req *req, struct dblp_req **new)
{
	struct dblp_comm *comm = req->comm;
	int err;

	pthread_mutex_lock(&comm->lock);
	err = comm->error ?: dblp_losses_prepare(req);
	if (!err) {
		req->seq = next_seq(req);
		req->begin = dblp_comm_now();
		TAILQ_INSERT_TAIL(&comm->inbox, req, entry);
		*new = req;
	} else {
		req->users = 1;
		dblp_req_put(req);
	}
	pthread_mutex_unlock(&comm->lock);
	if (!err)
		dblp_engine_wake(comm);
	return err;
}

static int begin(struct dblp_comm *comm, void *buf, uint64_t count,
		 const struct dblp_op *op, struct what what, struct dblp_req **new)
{
	struct dblp_req *req;

	return new_req(comm, buf, count, op, &what, &req) ?: submit(req, new);
}

int dblp_allreduce(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op, (struct what) { 0 }, req);
}

int dblp_reduce_scatter(struct dblp_comm *comm, void *buf, uint64_t count,
			const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_REDUCE }, req);
}

int dblp_allgather(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_SPREAD }, req);
}

int dblp_reduce(struct dblp_comm *comm, void *buf, uint64_t count,
		const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_REDUCE, .rooted = true }, req);
}

int dblp_broadcast(struct dblp_comm *comm, void *buf, uint64_t count,
		   const struct dblp_op *op, struct dblp_req **req)
{
	return begin(comm, buf, count, op,
		     (struct what) { .half = DBLP_PLAN_SPREAD, .rooted = true }, req);
}

/* Reliable, whatever the budget of the job */
static struct dblp_op reliable(uint32_t algo, uint32_t dtype)
{
	return (struct dblp_op) {
		.size = sizeof(struct dblp_op),
		.flags = DBLP_OP_BUDGET,
		.algo = algo,
		.dtype = dtype,
	};
}

/* An allreduce of one element: its sum needs all ranks */
int dblp_barrier(struct dblp_comm *comm, struct dblp_req **new)
{
	const struct dblp_op op = reliable(DBLP_TREE, DBLP_INT32);
	struct dblp_req *req;
	int err = new_req(comm, NULL, 1, &op, &(struct what) { 0 }, &req);

	if (err)
		return err;
	req->buf = (char *)&req->word;
	return submit(req, new);
}

static int begin_pair(struct dblp_comm *comm, void *buf, uint64_t count, uint32_t dtype,
		      uint32_t me, uint32_t peer, struct dblp_req **new)
{
	const struct dblp_op op = reliable(DBLP_PS, dtype);
	const struct what what = {
		.half = DBLP_PLAN_SPREAD, .pair = true, .me = me, .peer = peer,
	};
	struct dblp_req *req;
	int err;

	if (peer >= comm->nranks || peer == comm->rank)
		return -EINVAL;
	err = new_req(comm, buf, count ?: 1, &op, &what, &req);
	if (err)
		return err;
	/* Without elements a word is sent, whose digest differs from that of one element */
	if (!count) {
		req->buf = (char *)&req->word;
		req->digest = ~req->digest;
	}
	return submit(req, new);
}

int dblp_comm_send(struct dblp_comm *comm, const void *buf, uint64_t count,
		   uint32_t dtype, uint32_t to, struct dblp_req **req)
{
	return begin_pair(comm, (void *)buf, count, dtype, 0, to, req);
}

int dblp_comm_recv(struct dblp_comm *comm, void *buf, uint64_t count,
		   uint32_t dtype, uint32_t from, struct dblp_req **req)
{
	return begin_pair(comm, buf, count, dtype, 1, from, req);
}

int dblp_comm_owned(struct dblp_comm *comm, uint64_t count,
		    const struct dblp_op *op, struct dblp_span *part,
		    size_t room)
{
	const struct what what = { .half = DBLP_PLAN_REDUCE };
	struct dblp_req *req;
	size_t n = 0;
	uint32_t i;
	int err = new_req(comm, NULL, count, op, &what, &req);

	if (err)
		return err;
	for (i = 0; i < req->sched->n; i++) {
		const struct dblp_step *step = &req->sched->step[i];

		const uint64_t end = step->offset + step->count;

		if (step->op != DBLP_STEP_FINISH)
			continue;
		if (req->sched->way[i].goes_on) {
			if (n <= room)
				part[n - 1].end = end;
			continue;
		}
		if (n < room)
			part[n] = (struct dblp_span) {
				step->offset, end
			};
		n++;
	}
	pthread_mutex_lock(&comm->lock);
	req->users = 1;
	dblp_req_put(req);
	pthread_mutex_unlock(&comm->lock);
	return (int)n;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec) {
		.tv_sec = (time_t)(ns / 1000000000ULL),
		.tv_nsec = (long)(ns % 1000000000ULL),
	};
}

int dblp_wait(struct dblp_req *req, int timeout_ms, struct dblp_result *result,
	      size_t size)
{
	struct dblp_comm *comm = req->comm;
	const struct timespec until = time_of(dblp_comm_now() +
		(timeout_ms > 0 ? (uint64_t)timeout_ms * MS_NS : 0));
	int err = 0;
	uint64_t one;

	pthread_mutex_lock(&comm->lock);
	while (!req->ended && !err)
		err = timeout_ms < 0 ?
		      pthread_cond_wait(&comm->cond, &comm->lock) :
		      pthread_cond_timedwait(&comm->cond, &comm->lock, &until);
	if (!req->ended) {
		pthread_mutex_unlock(&comm->lock);
		return -EAGAIN;
	}
	if (read(comm->ended_fd, &one, sizeof(one)) < 0) {
		/* It was incremented when the operation ended */
	}
	dblp_sized_fill(result, size, &req->result, sizeof(req->result));
	err = req->result.error;
	if (req->users == 1)
		TAILQ_REMOVE(&comm->done, req, entry);
	dblp_req_put(req);
	pthread_mutex_unlock(&comm->lock);
	return err;
}
