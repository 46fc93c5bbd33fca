// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <choose.h>
#include <comm.h>
#include <head.h>
#include <reduce.h>

#include "alloc.h"
#include "closing.h"
#include "lossy.h"
#include "text.h"

/* Elements of the longest message: the engine splits longer steps */
#define MOST		(DBLP_COMM_BYTES / sizeof(float))

static void more_room(struct dblp_counts *c, uint32_t room)
{
	c->run = reallocarray(c->run, room, sizeof(*c->run));
	c->spare = reallocarray(c->spare, room, sizeof(*c->spare));
	if (!c->run || !c->spare)
		err(1, NULL);
	c->room = room;
}

static void open_rank(struct lossy *l, struct lossy_rank *r,
		      const struct dblp_plan *plan)
{
	r->vector = zeroed(plan->count, sizeof(float));
	copy_init(&r->copy, zeroed(plan->count, sizeof(float)), plan->count);
	if (l->attr.rule == DBLP_FEEDBACK)
		r->residual = zeroed(plan->count, sizeof(float));
	more_room(&r->counts, 64);
	r->step = zeroed(r->steps, sizeof(*r->step));
	dblp_plan_steps(plan, r->step, r->steps);
}

int lossy_open(struct lossy *l, const struct lossy_attr *attr)
{
	const size_t segments = (DBLP_HEAD_LEN + dblp_sparse_bound(MOST, sizeof(float))) /
				attr->segment + 1;
	struct dblp_plan plan = attr->plan;
	uint32_t i;

	plan.rank = 0;
	plan.flags &= ~DBLP_PLAN_SPREAD;
	plan.flags |= DBLP_PLAN_REDUCE;
	if (dblp_plan_steps(&plan, NULL, 0) < 0)
		return -EINVAL;
	*l = (struct lossy){ .attr = *attr, .rng = attr->seed };
	l->rank = zeroed(plan.nranks, sizeof(*l->rank));
	l->range = zeroed(segments, sizeof(*l->range));
	l->order = zeroed(segments, sizeof(*l->order));
	l->chosen = zeroed(MOST, sizeof(float));
	l->packed = zeroed(dblp_sparse_bound(MOST, sizeof(float)), 1);
	for (i = 0; i < plan.nranks; i++) {
		plan.rank = i;
		l->rank[i].steps = dblp_plan_steps(&plan, NULL, 0);
		open_rank(l, &l->rank[i], &plan);
	}
	return 0;
}

void lossy_close(struct lossy *l)
{
	uint32_t i;

	for (i = 0; i < l->attr.plan.nranks; i++) {
		free(l->rank[i].vector);
		free(l->rank[i].copy.param);
		copy_free(&l->rank[i].copy);
		dblp_stale_free(&l->rank[i].old);
		dblp_stale_free(&l->rank[i].lost);
		free(l->rank[i].residual);
		free(l->rank[i].counts.run);
		free(l->rank[i].counts.spare);
		free(l->rank[i].step);
	}
	free(l->rank);
	free(l->range);
	free(l->order);
	free(l->chosen);
	free(l->packed);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * Loses random whole segments of a message of @bytes, after its @head, of @left bytes in
 * total; returns their number
 */
static uint32_t lose(struct lossy *l, uint32_t bytes, uint32_t head, uint32_t left)
{
	const uint32_t seg = l->attr.segment, end = (bytes + seg - 1) / seg;
	const uint32_t first = (head + seg - 1) / seg;
	uint32_t n = 0, i, j, taken, len;

	for (i = first; i < end; i++)
		l->order[i - first] = i;
	for (i = 0; first + i < end && left; i++) {
		j = i + rng_next(&l->rng) % (end - first - i);
		taken = l->order[j];
		l->order[j] = l->order[i];
		len = taken + 1 < end ? seg : bytes - taken * seg;
		if (len > left)
			continue;
		left -= len;
		l->missing += len;
		l->order[n++] = taken;
	}
	qsort(l->order, n, sizeof(*l->order), by_number);
	for (i = 0; i < n; i++)
		l->range[i] = (struct dblp_range){ l->order[i] * seg, seg };
	return n;
}

static void add_counts(struct dblp_counts *to, const struct dblp_counts *from,
		       uint64_t offset, uint64_t count,
		       const struct dblp_loss *loss)
{
	struct dblp_run *run = zeroed(from->n + 1, sizeof(*run));
	const int n = dblp_counts_cut(from, offset, count, run, from->n + 1);

	while (dblp_counts_add(to, offset, run, n, loss) == -ENOSPC)
		more_room(to, to->room * 2 + n);
	free(run);
}

static void add_rest(float *to, const float *from, const struct dblp_loss *loss)
{
	struct dblp_span span;
	uint64_t done = 0;
	struct dblp_loss_at at = { 0 };

	while (dblp_loss_next(loss, &at, &span)) {
		dblp_reduce_add(DBLP_FLOAT32, to + done, from + done,
				span.first - done);
		done = span.end;
	}
	dblp_reduce_add(DBLP_FLOAT32, to + done, from + done, loss->count - done);
}

/* Adds the received elements of a packed message */
static void add_packed(float *to, const float *packed, const struct dblp_sparse *s,
		       const struct dblp_loss *loss)
{
	struct dblp_sparse_at place = { 0 };
	struct dblp_loss_at at = { 0 };

	while (dblp_loss_lost(loss, &at)) {
		dblp_sparse_add(s, DBLP_FLOAT32, to, packed, &place, at.lost.first);
		place.packed = at.lost.end;
	}
	dblp_sparse_add(s, DBLP_FLOAT32, to, packed, &place, s->packed);
}

/* Adds the large elements, which are not lost; returns a vector of the small ones */
static const float *small_ones(struct lossy *l, const float *v, uint64_t count, float *to)
{
	dblp_choose(DBLP_FLOAT32, v, count, l->attr.large, true, l->chosen);
	dblp_reduce_add(DBLP_FLOAT32, to, l->chosen, count);
	dblp_choose(DBLP_FLOAT32, v, count, l->attr.large, false, l->chosen);
	return l->chosen;
}

static void settle(const struct lossy *l, struct lossy_rank *from, struct lossy_rank *to,
		   uint64_t offset, const float *v, const struct dblp_loss *loss, uint64_t count)
{
	if (l->attr.rule == DBLP_RESCALE)
		add_counts(&to->counts, &from->counts, offset, count, loss);
	if (!from->residual)
		return;
	dblp_feedback_send(DBLP_FLOAT32, from->residual + offset, v, count);
	dblp_feedback_report(DBLP_FLOAT32, from->residual + offset, loss);
}

/*
 * Sends a message packed as by dblp_comm(3). The budget counts all elements, but only
 * small ones are lost.
 * ones are lost.
 */
static void packed_message(struct lossy *l, struct lossy_rank *from, struct lossy_rank *to,
			   uint64_t offset, uint64_t count, uint32_t budget)
{
	const struct dblp_sparse_how how = {
		.dtype = DBLP_FLOAT32, .last = DBLP_SPARSE_SHIFTS,
	};
	const float *v = from->vector + offset;
	struct dblp_loss loss = { .range = l->range, .esize = sizeof(float) };
	struct dblp_sparse s;
	uint32_t bytes, asked;

	bytes = dblp_sparse_put(&how, v, count, l->packed, &s);
	asked = s.packed * sizeof(float);
	l->asked += asked;
	if (l->attr.large) {
		v = small_ones(l, v, count, to->vector + offset);
		bytes = dblp_sparse_put(&how, v, count, l->packed, &s);
	}
	loss.head = DBLP_HEAD_LEN + dblp_sparse_front(count, s.shift);
	loss.n = lose(l, DBLP_HEAD_LEN + bytes, loss.head, dblp_budget_bytes(budget, asked));
	loss.count = s.packed;
	loss.sparse = &s;
	add_packed(to->vector + offset,
		   (const float *)(l->packed + loss.head - DBLP_HEAD_LEN), &s, &loss);
	settle(l, from, to, offset, v, &loss, count);
}

/* Sends a message, adds its received elements at @to, and reports lost ones to @from */
static void message(struct lossy *l, struct lossy_rank *from,
		    struct lossy_rank *to, uint64_t offset, uint64_t count,
		    uint32_t budget)
{
	const uint32_t bytes = count * sizeof(float);
	const float *v = from->vector + offset;
	struct dblp_loss loss = {
		.range = l->range,
		.head = DBLP_HEAD_LEN,
		.esize = sizeof(float),
		.count = count,
	};

	if (l->attr.sparse) {
		packed_message(l, from, to, offset, count, budget);
		return;
	}
	l->asked += bytes;
	loss.n = lose(l, DBLP_HEAD_LEN + bytes, DBLP_HEAD_LEN, dblp_budget_bytes(budget, bytes));
	add_rest(to->vector + offset, v, &loss);
	settle(l, from, to, offset, v, &loss, count);
}

static void send_step(struct lossy *l, struct lossy_rank *from,
		      const struct dblp_step *s)
{
	const uint32_t budget = dblp_step_budget(s, l->attr.budget);
	uint64_t done, count;

	for (done = 0; done < s->count; done += count) {
		count = s->count - done < MOST ? s->count - done : MOST;
		message(l, from, &l->rank[s->peer], s->offset + done, count,
			budget);
	}
}

static void finish(const struct lossy *l, struct lossy_rank *r,
		   const struct dblp_step *s, float *average)
{
	const struct dblp_finish f = {
		.dtype = DBLP_FLOAT32,
		.rule = l->attr.rule,
		.contributions = s->contributions,
		.average = true,
	};
	struct dblp_run *run = zeroed(r->counts.n + 1, sizeof(*run));
	const int n = dblp_counts_cut(&r->counts, s->offset, s->count, run,
				      r->counts.n + 1);

	dblp_rule_finish(&f, r->vector + s->offset, run, n, s->count);
	memcpy(average + s->offset, r->vector + s->offset,
	       s->count * sizeof(float));
	free(run);
}

static void carry_out(struct lossy *l, struct lossy_rank *r,
		      const struct dblp_step *s, float *average)
{
	switch (s->op) {
	case DBLP_STEP_CLEAR:
		memset(r->vector + s->offset, 0, s->count * sizeof(float));
		dblp_counts_set(&r->counts, l->attr.plan.count, 0);
		break;
	case DBLP_STEP_SEND:
		send_step(l, r, s);
		break;
	case DBLP_STEP_FINISH:
		finish(l, r, s, average);
		break;
	}
}

static void begin(struct lossy *l)
{
	const struct dblp_plan *plan = &l->attr.plan;
	const uint32_t server = !!(plan->flags & DBLP_PLAN_SERVER);
	const uint64_t count = plan->count;
	uint32_t i;

	l->energy = (struct dblp_energy){
		.contributions = plan->nranks - server,
		.rule = l->attr.rule,
		.bytes = (plan->nranks - server) * count * sizeof(float),
		.missing = -l->missing,
	};
	for (i = 0; i < plan->nranks; i++) {
		struct lossy_rank *r = &l->rank[i];

		if (r->residual)
			dblp_feedback_apply(DBLP_FLOAT32, r->vector, r->residual,
					    count);
		if (i || !server)
			l->energy.sent += dblp_reduce_squares(DBLP_FLOAT32, r->vector, count);
		dblp_counts_set(&r->counts, count, 1);
	}
}

static void end(struct lossy *l, const float *average)
{
	const uint64_t count = l->attr.plan.count;
	uint32_t i;

	l->energy.missing += l->missing;
	l->energy.mean = dblp_reduce_squares(DBLP_FLOAT32, average, count);
	for (i = 0; i < l->attr.plan.nranks; i++)
		if (l->rank[i].residual)
			l->energy.lost += dblp_reduce_squares(DBLP_FLOAT32, l->rank[i].residual,
							      count);
}

/* Steps of the same round do not conflict, so their order is free */
void lossy_average(struct lossy *l, float *average)
{
	const uint32_t nranks = l->attr.plan.nranks;
	size_t *at = zeroed(nranks, sizeof(*at));
	uint32_t round, i;
	bool more = true;

	begin(l);
	for (round = 0; more; round++) {
		more = false;
		for (i = 0; i < nranks; i++) {
			struct lossy_rank *r = &l->rank[i];

			for (; at[i] < r->steps && r->step[at[i]].round == round; at[i]++)
				carry_out(l, r, &r->step[at[i]], average);
			more |= at[i] < r->steps;
		}
	}
	end(l, average);
	free(at);
}

static void spread_message(struct lossy *l, struct lossy_rank *to, struct dblp_span range,
			   const float *param, uint32_t budget)
{
	const uint32_t bytes = (range.end - range.first) * sizeof(float);
	const uint32_t repaired = dblp_stale_count(&to->old, range) * sizeof(float);
	struct dblp_loss loss = {
		.range = l->range,
		.head = DBLP_HEAD_LEN,
		.esize = sizeof(float),
		.count = range.end - range.first,
	};
	enum dblp_piece what;
	struct dblp_pieces p;

	l->asked += bytes;
	loss.n = lose(l, DBLP_HEAD_LEN + bytes, DBLP_HEAD_LEN + repaired,
		      dblp_budget_bytes(budget, bytes - repaired));
	dblp_pieces_begin(&p, &to->old, range, &loss);
	while ((what = dblp_pieces_next(&p)))
		if (what != DBLP_PIECE_LOST)
			memcpy(to->copy.param + p.span.first, param + p.span.first,
			       (p.span.end - p.span.first) * sizeof(float));
		else if (dblp_stale_add(&to->lost, p.span))
			err(1, NULL);
}

/* Owners have their part already; others receive it */
static void spread_step(struct lossy *l, struct lossy_rank *r, const struct dblp_step *s,
			const float *param, uint32_t budget)
{
	const uint64_t end = s->offset + s->count;
	struct dblp_span range;

	if (s->op == DBLP_STEP_SEND)
		memcpy(r->copy.param + s->offset, param + s->offset, s->count * sizeof(float));
	for (range.first = s->offset; s->op == DBLP_STEP_COPY && range.first < end; range.first = range.end) {
		range.end = end - range.first < MOST ? end : range.first + MOST;
		spread_message(l, r, range, param, budget);
	}
}

void lossy_start(struct lossy *l, const float *param)
{
	uint32_t i;

	for (i = 0; i < l->attr.plan.nranks; i++) {
		struct copy *c = &l->rank[i].copy;

		memcpy(c->param, param, c->size * sizeof(float));
		copy_reset(c);
	}
}

void lossy_spread(struct lossy *l, const float *param, uint32_t budget)
{
	struct dblp_plan plan = l->attr.plan;
	uint32_t i;

	plan.flags &= ~DBLP_PLAN_REDUCE;
	plan.flags |= DBLP_PLAN_SPREAD;
	for (i = 0; i < plan.nranks; i++) {
		struct lossy_rank *r = &l->rank[i];
		const struct dblp_stale old = r->old;
		struct dblp_step *step;
		ssize_t n, k;

		r->old = r->lost;
		r->lost = old;
		r->lost.n = 0;
		plan.rank = i;
		n = dblp_plan_steps(&plan, NULL, 0);
		step = zeroed(n, sizeof(*step));
		dblp_plan_steps(&plan, step, n);
		copy_begin(&r->copy);
		for (k = 0; k < n; k++)
			spread_step(l, r, &step[k], param, budget);
		copy_end(&r->copy, r->lost.span, r->lost.n);
		free(step);
	}
}
