// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Messages with packed vectors, see sparse.h, or with lost elements first, see
 * repair.h. The front is critical, as the head is; so are repaired elements.
 */

#include "choose.h"
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int dblp_link_stage(struct dblp_link *l, size_t n)
{
	char *stage;

	if (n <= l->in.n_stage)
		return 0;
	stage = realloc(l->in.stage, n);
	if (!stage)
		return -ENOMEM;
	l->in.stage = stage;
	l->in.n_stage = n;
	return 0;
}

/* Elements of a message that this lane carries, or NULL */
static const char *choose(struct dblp_link *l, const struct dblp_task *t,
			  uint64_t count)
{
	const struct dblp_way way = dblp_task_way(t);
	size_t len = count * t->req->esize;

	if (!way.choice)
		return dblp_task_data(t);
	if (len > l->n_chosen) {
		char *p = realloc(l->chosen, len);

		if (!p)
			return NULL;
		l->chosen = p;
		l->n_chosen = len;
	}
	dblp_choose(t->req->op.dtype, dblp_task_data(t), count, way.large,
		    way.choice == DBLP_CHOICE_LARGE, l->chosen);
	return l->chosen;
}

/*
 * Largest block size, as a shift; 0: no limit. Residuals are kept by blocks: a
 * block must not have elements of another lane, which keeps them, too.
 */
static uint32_t most_shift(const struct dblp_task *t)
{
	return dblp_task_way(t).choice && t->req->op.rule == DBLP_FEEDBACK ?
	       (uint32_t)__builtin_ctz(DBLP_CHOOSE_BLOCK) : 0;
}

/*
 * Pack the next message of a step into @packed. The last block sizes of
 * contributions and of sums are kept apart, because their density differs.
 */
int dblp_pack(struct dblp_link *l, const struct dblp_task *t)
{
	const uint64_t count = dblp_task_part(t);
	const uint32_t block = t->req->op.block;
	uint32_t *shift = &l->shift[t->step->reliable];
	struct dblp_sparse_how how = {
		.dtype = t->req->op.dtype,
		.last = block ? (uint32_t)__builtin_ctz(block) : *shift,
		.fixed = block,
		.most = most_shift(t),
		.residual = dblp_losses_pruned(t),
	};
	const char *v;
	uint8_t *p;

	v = choose(l, t, count);
	if (!v)
		return -ENOMEM;
	p = realloc(l->out.packed, dblp_sparse_bound(count, t->req->esize));
	if (!p)
		return -ENOMEM;
	l->out.packed = p;
	if (how.residual)
		how.prune = t->req->op.prune;
	l->out.n_packed = dblp_sparse_put(&how, v, count, p, &l->out.sparse);
	*shift = l->out.sparse.shift;
	/* As in send.c: the result is final once the operation has ended */
	if (!t->req->ended)
		t->req->result.pruned += l->out.sparse.pruned * t->req->esize;
	return 0;
}

/*
 * The length of a packed vector is in its first bytes. A stream reads these
 * first; over AF_DBLP the message has an end.
 */
int dblp_packed_expect(struct dblp_link *l, const struct dblp_task *t)
{
	const bool stream = l->comm->transport->protocol;
	size_t most = dblp_sparse_bound(dblp_task_part(t), t->req->esize);
	int err = dblp_link_stage(l, most);

	if (err)
		return err;
	dblp_inbox_set(&l->in.inbox, l->in.head, sizeof(l->in.head), l->in.stage,
		       stream ? DBLP_SPARSE_HEAD : most);
	l->in.inbox.is_most = !stream;
	return 0;
}

/* Stream: expect the bytes after the first ones, at least one */
int dblp_packed_rest(struct dblp_link *l, const struct dblp_task *t)
{
	size_t len = dblp_sparse_len((uint8_t *)l->in.stage, dblp_task_part(t),
				     t->req->esize);

	if (!len)
		return -EPROTO;
	l->in.inbox.iov[1].iov_len = len;
	l->in.inbox.len = sizeof(l->in.head) + len;
	l->in.inbox.closed = false;
	return 0;
}

/* Add or copy the received elements of a packed vector */
static void unpack(const struct dblp_link *l, const struct dblp_task *t,
		   const struct dblp_sparse *s, const struct dblp_loss *loss)
{
	const char *elements = l->in.stage + loss->head - sizeof(l->in.head);
	const uint32_t dtype = t->req->op.dtype;
	struct dblp_sparse_at place = { 0 };
	struct dblp_loss_at at = { 0 };

	if (t->step->op == DBLP_STEP_COPY) {
		dblp_sparse_copy(s, dtype, dblp_task_data(t), elements);
		return;
	}
	while (dblp_loss_lost(loss, &at)) {
		dblp_sparse_add(s, dtype, dblp_task_data(t), elements, &place,
				at.lost.first);
		place.packed = at.lost.end;
	}
	dblp_sparse_add(s, dtype, dblp_task_data(t), elements, &place, s->packed);
}

/* A packed vector has arrived, except for elements that may be lost */
int dblp_packed_take(struct dblp_link *l, struct dblp_task *t,
		     struct dblp_sparse *s)
{
	const struct dblp_msg *map = &l->in.inbox.map;
	struct dblp_loss loss;

	if (l->in.inbox.len < sizeof(l->in.head) ||
	    dblp_sparse_get((uint8_t *)l->in.stage,
			    l->in.inbox.len - sizeof(l->in.head), dblp_task_part(t),
			    t->req->esize, s))
		return -EPROTO;
	loss = dblp_loss_of(map, t->req->esize, dblp_task_part(t), s);
	if (map->n && (t->step->reliable || map->range[0].offset < loss.head))
		return -EPROTO;
	unpack(l, t, s, &loss);
	return 0;
}

/* Nothing to repair */
static const struct dblp_stale none;

int dblp_repair_pack(struct dblp_link *l, const struct dblp_task *t)
{
	const struct dblp_stale *old = &dblp_losses_repair(l, t)->old;
	const struct dblp_span range = dblp_task_range(t);
	const size_t esize = t->req->esize, len = dblp_task_part(t) * esize;
	const struct dblp_loss loss = { .esize = t->req->esize };
	struct dblp_pieces p;
	uint8_t *packed;

	l->out.n_repaired = dblp_stale_count(old, range);
	if (!l->out.n_repaired)
		return 0;
	packed = realloc(l->out.packed, len);
	if (!packed)
		return -ENOMEM;
	l->out.packed = packed;
	l->out.n_packed = len;
	dblp_pieces_begin(&p, old, range, &loss);
	while (dblp_pieces_next(&p))
		memcpy(packed + p.packed * esize, t->req->buf + p.span.first * esize,
		       (p.span.end - p.span.first) * esize);
	return 0;
}

int dblp_kept_take(struct dblp_link *l, const struct dblp_task *t)
{
	const struct dblp_loss loss = dblp_loss_of(&l->in.inbox.map, t->req->esize,
						   dblp_task_part(t), NULL);
	struct dblp_repair *r = dblp_losses_repair(l, t);
	const size_t esize = t->req->esize;
	struct dblp_pieces p;
	enum dblp_piece what;
	int err = 0;

	dblp_pieces_begin(&p, r ? &r->old : &none, dblp_task_range(t), &loss);
	while (!err && (what = dblp_pieces_next(&p)))
		if (what != DBLP_PIECE_LOST)
			memcpy(t->req->buf + p.span.first * esize,
			       l->in.stage + p.packed * esize,
			       (p.span.end - p.span.first) * esize);
		else if (r)
			err = dblp_stale_add(&r->lost, p.span);
	return err;
}
