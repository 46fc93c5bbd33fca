// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Losses: contributions of each element, residuals of this rank, and saved
 * budgets. See rule.h.
 */

#include "engine.h"
#include "reduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_FIRST	64

static bool is_reduced(const struct dblp_req *req)
{
	const uint32_t halves = DBLP_PLAN_REDUCE | DBLP_PLAN_SPREAD;

	return (req->sched->plan.flags & halves) != DBLP_PLAN_SPREAD;
}

static bool has_feedback(const struct dblp_req *req)
{
	return req->op.rule == DBLP_FEEDBACK && is_reduced(req);
}

static bool has_carry(const struct dblp_req *req)
{
	return req->op.flags & DBLP_OP_CARRY && is_reduced(req);
}

static bool has_repair(const struct dblp_req *req)
{
	return req->op.flags & DBLP_OP_REPAIR;
}

static bool has_counts(const struct dblp_req *req)
{
	return req->op.rule == DBLP_RESCALE && is_reduced(req);
}

/*
 * Divide contributions to a mean of 16-bit elements before they are added,
 * because their sum may overflow where the mean does not. Not with
 * %DBLP_OP_KEEP, where the vector must stay as it is.
 */
static bool is_divided(const struct dblp_req *req)
{
	return (req->op.flags & (DBLP_OP_AVERAGE | DBLP_OP_KEEP)) ==
	       DBLP_OP_AVERAGE && req->esize == 2 && is_reduced(req);
}

/* Number of vectors in a sum of this operation, if nothing is lost */
static uint32_t contributions(const struct dblp_plan *plan)
{
	if (plan->algo == DBLP_AVERAGE && plan->levels)
		return plan->radix[plan->turn % plan->levels];
	return plan->nranks - (plan->flags & DBLP_PLAN_SERVER ? 1 : 0);
}

/* Keys */

static size_t links(const struct dblp_comm *comm)
{
	return (size_t)comm->nranks * comm->n_links;
}

static void free_key(const struct dblp_comm *comm, struct dblp_key *k)
{
	size_t i;

	for (i = 0; k->repair && i < 2 * links(comm); i++) {
		dblp_stale_free(&k->repair[i / 2][i % 2].old);
		dblp_stale_free(&k->repair[i / 2][i % 2].lost);
	}
	free(k->repair);
	free(k->residual);
	free(k->carry);
	free(k);
}

void dblp_keys_free(struct dblp_comm *comm)
{
	struct dblp_key *k;

	while ((k = comm->key)) {
		comm->key = k->next;
		free_key(comm, k);
	}
}

/* What a key keeps */
#define RESIDUAL	(1 << 0)
#define CARRY		(1 << 1)
#define REPAIR		(1 << 2)

static unsigned int kept_by(const struct dblp_req *req)
{
	return (has_feedback(req) ? RESIDUAL : 0) | (has_carry(req) ? CARRY : 0) |
	       (has_repair(req) ? REPAIR : 0);
}

/* Allocate what the key needs */
static int fill_key(struct dblp_comm *comm, struct dblp_key *k, unsigned int kept)
{
	size_t i, n = links(comm);

	if (kept & RESIDUAL && !k->residual) {
		k->residual = calloc(k->count ?: 1, dblp_dtype_size(k->dtype));
		if (!k->residual)
			return -ENOMEM;
	}
	if (kept & REPAIR && !k->repair) {
		k->repair = calloc(n, sizeof(*k->repair));
		if (!k->repair)
			return -ENOMEM;
	}
	if (kept & CARRY && !k->carry) {
		k->carry = calloc(n, sizeof(*k->carry));
		if (!k->carry)
			return -ENOMEM;
		for (i = 0; i < n; i++)
			dblp_carry_init(&k->carry[i], comm->attr.message_bytes);
	}
	return 0;
}

/* Pointer to the list entry of a key, or to the NULL at the end */
static struct dblp_key **find_key(struct dblp_comm *comm, uint64_t key)
{
	struct dblp_key **at = &comm->key;

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

/* May the key be used for this vector now? */
static int check_key(const struct dblp_key *k, uint32_t dtype, uint64_t count)
{
	if (k->busy)
		return -EBUSY;
	return k->dtype != dtype || k->count != count ? -EINVAL : 0;
}

/* The key is created only if there is memory */
static int new_key(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		   uint64_t count, unsigned int kept)
{
	struct dblp_key *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->key = key;
	k->dtype = dtype;
	k->count = count;
	if (fill_key(comm, k, kept)) {
		free_key(comm, k);
		return -ENOMEM;
	}
	k->next = comm->key;
	comm->key = k;
	return 0;
}

static int get_key(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		   uint64_t count, unsigned int kept)
{
	struct dblp_key *k = *find_key(comm, key);

	if (!k)
		return new_key(comm, key, dtype, count, kept);
	return check_key(k, dtype, count) ?: fill_key(comm, k, kept);
}

/* Does the unit of the residual differ: contributions to a sum, or to a mean? */
static bool has_other_unit(const struct dblp_key *k, bool average)
{
	return k && !k->busy && k->used && k->average != average;
}

static int use_key(struct dblp_req *req)
{
	const bool average = req->op.flags & DBLP_OP_AVERAGE;
	int err;

	if (has_other_unit(*find_key(req->comm, req->op.key), average))
		return -EINVAL;
	err = get_key(req->comm, req->op.key, req->op.dtype, req->sched->plan.count,
		      kept_by(req));
	if (err)
		return err;
	req->key = *find_key(req->comm, req->op.key);
	req->key->busy = true;
	req->key->used = true;
	req->key->average = average;
	return 0;
}

int dblp_residual_get(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      void *v, uint64_t count)
{
	struct dblp_key *k;
	int err;

	pthread_mutex_lock(&comm->lock);
	k = *find_key(comm, key);
	err = comm->error;
	if (!err)
		err = k && k->residual ? check_key(k, dtype, count) : -ENOENT;
	if (!err)
		memcpy(v, k->residual, count * dblp_dtype_size(dtype));
	pthread_mutex_unlock(&comm->lock);
	return err;
}

int dblp_residual_set(struct dblp_comm *comm, uint64_t key, uint32_t dtype,
		      const void *v, uint64_t count)
{
	struct dblp_key *k;
	int err;

	if (!dblp_dtype_size(dtype) || count > DBLP_COUNT_MAX)
		return -EINVAL;
	pthread_mutex_lock(&comm->lock);
	err = get_key(comm, key, dtype, count, RESIDUAL);
	if (!err) {
		k = *find_key(comm, key);
		memcpy(k->residual, v, count * dblp_dtype_size(dtype));
		dblp_reduce_finite(dtype, k->residual, count);
	}
	pthread_mutex_unlock(&comm->lock);
	return err;
}

int dblp_key_forget(struct dblp_comm *comm, uint64_t key)
{
	struct dblp_key **at, *k;
	int err = 0;

	pthread_mutex_lock(&comm->lock);
	at = find_key(comm, key);
	k = *at;
	if (k && k->busy) {
		err = -EBUSY;
	} else if (k) {
		*at = k->next;
		free_key(comm, k);
	}
	pthread_mutex_unlock(&comm->lock);
	return err;
}

/* Add the spans of a list to those of dblp_comm_stale() */
static void put_spans(const struct dblp_stale *s, struct dblp_span *span, size_t room, size_t *n)
{
	uint32_t i;

	for (i = 0; i < s->n; i++, ++*n)
		if (*n < room)
			span[*n] = s->span[i];
}

int dblp_comm_stale(struct dblp_comm *comm, uint64_t key, uint32_t rank,
		    struct dblp_span *span, size_t room)
{
	const bool own = rank == comm->rank;
	const struct dblp_key *k;
	size_t i, n = 0;
	int err;

	pthread_mutex_lock(&comm->lock);
	k = *find_key(comm, key);
	err = comm->error;
	if (!err && (!k || !k->repair || rank >= comm->nranks))
		err = -ENOENT;
	if (!err && k->busy)
		err = -EBUSY;
	for (i = 0; !err && i < links(comm); i++)
		if (own || i / comm->n_links == rank)
			put_spans(&k->repair[i][own].lost, span, room, &n);
	pthread_mutex_unlock(&comm->lock);
	return err ?: (int)n;
}

/* Counts */

static int more_room(struct dblp_counts *c, uint32_t room)
{
	void *run = reallocarray(c->run, room, sizeof(*c->run)), *spare;

	if (!run)
		return -ENOMEM;
	c->run = run;
	spare = reallocarray(c->spare, room, sizeof(*c->spare));
	if (!spare)
		return -ENOMEM;
	c->spare = spare;
	c->room = room;
	return 0;
}

int dblp_losses_prepare(struct dblp_req *req)
{
	int err = 0;

	if (has_counts(req))
		err = more_room(&req->counts, RUNS_FIRST);
	/* Last, because the key stays allocated */
	if (!err && kept_by(req))
		err = use_key(req);
	return err;
}

void dblp_losses_free(struct dblp_req *req)
{
	if (req->key)
		req->key->busy = false;
	req->key = NULL;
	free(req->counts.run);
	free(req->counts.spare);
	req->counts.run = NULL;
	req->counts.spare = NULL;
}

static bool contributes(const struct dblp_req *req)
{
	const struct dblp_plan *plan = &req->sched->plan;

	return !(plan->flags & DBLP_PLAN_SERVER) || req->comm->rank != plan->root;
}

/* Squared norm; contributions may have been divided */
static double energy_of(const struct dblp_req *req, const void *v, bool contribution)
{
	const struct dblp_plan *plan = &req->sched->plan;
	const double n = contribution && is_divided(req) ? contributions(plan) : 1;

	return n * n * dblp_reduce_squares(req->op.dtype, v, plan->count);
}

/* What the last operation has lost is repaired in this one */
static void begin_repair(struct dblp_req *req)
{
	size_t i;

	for (i = 0; i < 2 * links(req->comm); i++) {
		struct dblp_repair *r = &req->key->repair[i / 2][i % 2];
		const struct dblp_stale old = r->old;

		r->old = r->lost;
		r->lost = old;
		r->lost.n = 0;
	}
}

void dblp_losses_begin(struct dblp_req *req)
{
	const struct dblp_plan *plan = &req->sched->plan;
	const uint64_t count = plan->count;

	if (is_divided(req))
		dblp_reduce_scale(req->op.dtype, req->buf, count, 1,
				  contributions(plan));
	if (has_feedback(req))
		dblp_feedback_apply(req->op.dtype, req->buf, req->key->residual,
				    count);
	if (has_repair(req))
		begin_repair(req);
	if (has_counts(req))
		dblp_counts_set(&req->counts, count, 1);
	if (req->op.flags & DBLP_OP_ENERGY && contributes(req))
		req->result.energy_sent = energy_of(req, req->buf, true);
}

void dblp_losses_end(struct dblp_req *req)
{
	const double n = contributions(&req->sched->plan);

	if (!(req->op.flags & DBLP_OP_ENERGY))
		return;
	if (has_feedback(req))
		req->result.energy_lost = energy_of(req, req->key->residual, true);
	req->result.energy_mean = energy_of(req, req->buf, false);
	if (!(req->op.flags & DBLP_OP_AVERAGE))
		req->result.energy_mean /= n * n;
}

void dblp_losses_clear(struct dblp_task *t)
{
	/*
	 * Only whole vectors are cleared, piece by piece, before anything is
	 * added
	 */
	if (has_counts(t->req))
		dblp_counts_set(&t->req->counts, t->req->sched->plan.count, 0);
}

bool dblp_losses_need_counts(const struct dblp_task *t)
{
	return has_counts(t->req) && !t->step->reliable &&
	       t->step->contributions > 1;
}

int dblp_losses_added(struct dblp_task *t, uint64_t count,
		      const struct dblp_sparse *sparse,
		      const struct dblp_msg *map, const struct dblp_run *run,
		      uint32_t n)
{
	const struct dblp_loss loss = dblp_loss_of(map, t->req->esize, count,
						   sparse);
	const struct dblp_run one = { count, t->step->contributions };
	struct dblp_counts *c = &t->req->counts;
	int err;

	if (!has_counts(t->req) || t->step->op != DBLP_STEP_ADD)
		return 0;
	if (!n) {
		run = &one;
		n = 1;
	}
	while ((err = dblp_counts_add(c, t->step->offset + t->done, run, n,
				      &loss)) == -ENOSPC) {
		err = more_room(c, c->room * 2 + n);
		if (err)
			break;
	}
	return err;
}

int dblp_losses_cut(const struct dblp_task *t, uint64_t count,
		    struct dblp_run *run, uint32_t room)
{
	return dblp_counts_cut(&t->req->counts, t->step->offset + t->done,
			       count, run, room);
}

/* Add a part's result: a rank may own several parts */
static void add_result(struct dblp_result *result, struct dblp_finished got)
{
	bool first = !result->none && !result->least;

	if (first || got.least < result->least)
		result->least = got.least;
	result->none += got.none;
}

/* Finish the sum of an owned part, run by run */
int dblp_losses_finish(struct dblp_task *t)
{
	const struct dblp_step *step = t->step;
	struct dblp_req *req = t->req;
	const struct dblp_finish f = {
		.dtype = req->op.dtype,
		.rule = req->op.rule,
		.contributions = step->contributions,
		.average = req->op.flags & DBLP_OP_AVERAGE && !is_divided(req),
	};
	const uint32_t room = has_counts(req) ? req->counts.n + 1 : 0;
	struct dblp_run *run = NULL;
	int n = 0;

	if (room) {
		run = calloc(room, sizeof(*run));
		if (!run)
			return -ENOMEM;
		n = dblp_counts_cut(&req->counts, step->offset, step->count, run,
				    room);
	}
	if (n >= 0)
		add_result(&req->result,
			   dblp_rule_finish(&f, req->buf +
					    step->offset * req->esize, run,
					    (uint32_t)n, step->count));
	free(run);
	return n < 0 ? n : 0;
}

/* Budgets and reports */

static struct dblp_carry *carry_of(const struct dblp_link *l,
				   const struct dblp_task *t)
{
	return has_carry(t->req) && !t->step->reliable ?
	       &t->req->key->carry[l->rank * l->comm->n_links +
				     dblp_link_index(l)] : NULL;
}

uint32_t dblp_losses_budget(struct dblp_link *l, const struct dblp_task *t,
			    uint32_t bytes, uint32_t budget)
{
	const uint32_t shares = is_reduced(t->req) ? t->step->contributions : 1;
	const uint32_t own = dblp_keeps(t) ? budget / shares :
					     dblp_step_budget(t->step, budget);
	struct dblp_carry *c = carry_of(l, t);

	/* dblp_carry_take() limits the budget to 100 % */
	l->out.budget = c ? dblp_carry_take(c, bytes, t->step->contributions, budget,
					own * DBLP_CARRY_TIMES) : own;
	return l->out.budget;
}

struct dblp_repair *dblp_losses_repair(const struct dblp_link *l,
				       const struct dblp_task *t)
{
	return dblp_repairs(t) ?
	       &t->req->key->repair[l->rank * l->comm->n_links + dblp_link_index(l)]
				   [t->step->op == DBLP_STEP_COPY] : NULL;
}

void *dblp_losses_pruned(const struct dblp_task *t)
{
	uint64_t offset = t->step->offset + t->done;

	return t->req->op.prune && has_feedback(t->req) && !t->step->reliable ?
	       (char *)t->req->key->residual + offset * t->req->esize : NULL;
}

static struct dblp_record *new_record(const struct dblp_link *l,
				      struct dblp_task *t, uint64_t tag,
				      uint64_t count)
{
	const bool sparse = dblp_is_sparse(t);
	size_t front = sparse ? dblp_sparse_front(count, l->out.sparse.shift) : 0;
	struct dblp_record *r = malloc(sizeof(*r) + front);

	if (!r)
		return NULL;
	*r = (struct dblp_record) {
		.tag = tag,
		.task = t,
		.offset = t->step->offset + t->done,
		.count = count,
		.bytes = (uint32_t)((sparse ? l->out.sparse.packed : count) *
				    t->req->esize),
		.budget = l->out.budget,
		.is_sparse = sparse,
	};
	if (sparse) {
		r->sparse = l->out.sparse;
		memcpy(r->front, l->out.packed, front);
		r->sparse.bitmap = r->front + DBLP_SPARSE_HEAD;
	}
	return r;
}

/*
 * Keep sent elements as lost until they are reported. A packed vector's other
 * elements travel by another lane, or were pruned
 */
static void keep_sent(struct dblp_req *req, uint64_t offset, uint64_t count,
		      const struct dblp_sparse *sparse)
{
	char *residual = (char *)req->key->residual + offset * req->esize;
	const char *v = req->buf + offset * req->esize;
	struct dblp_span span;
	struct dblp_sparse_at at = { 0 };

	if (!sparse)
		dblp_feedback_send(req->op.dtype, residual, v, count);
	while (sparse && dblp_sparse_next(sparse, &at, sparse->packed, &span))
		dblp_feedback_send(req->op.dtype,
				   residual + span.first * req->esize,
				   v + span.first * req->esize,
				   span.end - span.first);
}

int dblp_losses_sent(struct dblp_link *l, struct dblp_task *t, uint64_t tag,
		     uint64_t count)
{
	uint64_t offset = t->step->offset + t->done;
	struct dblp_req *req = t->req;
	const bool feedback = has_feedback(req) && !t->step->reliable;
	struct dblp_record *r;

	if (l->comm->transport->protocol || t->own ||
	    !(feedback || carry_of(l, t) || dblp_repairs(t) || dblp_task_way(t).awaited))
		return 0;
	r = new_record(l, t, tag, count);
	if (!r)
		return -ENOMEM;
	/* Append: reports arrive roughly in the order of messages */
	if (!l->record)
		l->record_end = &l->record;
	*l->record_end = r;
	l->record_end = &r->next;
	t->reports++;
	if (feedback)
		keep_sent(req, offset, count, r->is_sparse ? &r->sparse : NULL);
	return 0;
}

/* Remember the lost elements of a message, to repair them */
static int note_lost(struct dblp_repair *r, struct dblp_span range,
		     const struct dblp_loss *loss)
{
	struct dblp_pieces p;
	enum dblp_piece what;
	int err = 0;

	dblp_pieces_begin(&p, &r->old, range, loss);
	while (!err && (what = dblp_pieces_next(&p)))
		if (what == DBLP_PIECE_LOST)
			err = dblp_stale_add(&r->lost, p.span);
	return err;
}

struct dblp_task *dblp_losses_reported(struct dblp_link *l,
				       const struct dblp_msg *m)
{
	struct dblp_record **at = &l->record, *r;
	struct dblp_loss loss;
	struct dblp_task *t;

	while (*at && (*at)->tag != m->info.tag)
		at = &(*at)->next;
	r = *at;
	if (!r)
		return NULL;
	*at = r->next;
	if (!*at)
		l->record_end = at;
	t = r->task;
	loss = dblp_loss_of(m, t->req->esize, r->count,
			    r->is_sparse ? &r->sparse : NULL);
	if (has_feedback(t->req) && !t->step->reliable)
		t->req->result.lost += t->req->esize *
			dblp_feedback_report(t->req->op.dtype,
					     (char *)t->req->key->residual +
					     r->offset * loss.esize, &loss);
	if (dblp_repairs(t) &&
	    note_lost(dblp_losses_repair(l, t),
		      (struct dblp_span) { r->offset, r->offset + r->count }, &loss))
		dblp_suspect(l->comm, l->comm->rank, -ENOMEM, NULL);
	if (carry_of(l, t))
		dblp_carry_give(carry_of(l, t), r->bytes,
				t->step->contributions, r->budget,
				m->info.missing);
	free(r);
	t->reports--;
	return t;
}

void dblp_records_free(struct dblp_link *l)
{
	struct dblp_record *r;

	while ((r = l->record)) {
		l->record = r->next;
		free(r);
	}
}
