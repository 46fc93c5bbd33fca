// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Corrections of a reduction with losses: see rule.h.
 */

#include "rule.h"

#include <errno.h>
#include <string.h>

#include "reduce.h"

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool dblp_loss_lost(const struct dblp_loss *loss, struct dblp_loss_at *at)
{
	struct dblp_span *span = &at->lost;
	uint64_t done = span->end;

	while (at->range < loss->n) {
		const struct dblp_range *r = &loss->range[at->range++];
		uint64_t from = r->offset, to = from + r->length;

		if (to <= loss->head)
			continue;
		from = from > loss->head ? from - loss->head : 0;
		to -= loss->head;
		span->first = from / loss->esize;
		span->end = min64((to + loss->esize - 1) / loss->esize,
				  loss->count);
		/* Two ranges may touch the same element */
		if (span->first < done)
			span->first = done;
		if (span->first < span->end)
			return true;
	}
	return false;
}

bool dblp_loss_next(const struct dblp_loss *loss, struct dblp_loss_at *at,
		    struct dblp_span *span)
{
	if (!loss->sparse) {
		if (!dblp_loss_lost(loss, at))
			return false;
		*span = at->lost;
		return true;
	}
	while (!dblp_sparse_next(loss->sparse, &at->place, at->lost.end, span)) {
		if (!dblp_loss_lost(loss, at))
			return false;
		at->place.packed = at->lost.first;
	}
	return true;
}

static void *at_element(void *v, uint64_t i, uint32_t esize)
{
	return (char *)v + i * esize;
}

/* Output array of runs; @n also counts runs beyond @room */
struct filled {
	struct dblp_run	*run;
	uint32_t	n;
	uint32_t	room;
};

static void fill(struct filled *f, uint64_t end, uint32_t contributions)
{
	if (f->n && f->n <= f->room &&
	    f->run[f->n - 1].contributions == contributions) {
		f->run[f->n - 1].end = end;
		return;
	}
	if (f->n < f->room)
		f->run[f->n] = (struct dblp_run) { end, contributions };
	f->n++;
}

/* Position in an added message, by elements of the vector */
struct cursor {
	uint64_t		offset;
	const struct dblp_run	*run;
	uint32_t		n;
	const struct dblp_loss	*loss;
	struct dblp_loss_at	at;
	struct dblp_span	span;
	bool			more;
};

/*
 * Contributions of the message at @pos. *@end is lowered to the next element
 * where they change
 */
static uint32_t contributions_at(struct cursor *m, uint64_t pos, uint64_t *end)
{
	uint64_t i = pos - m->offset;

	if (pos < m->offset) {
		*end = min64(*end, m->offset);
		return 0;
	}
	while (m->more && m->span.end <= i)
		m->more = dblp_loss_next(m->loss, &m->at, &m->span);
	if (m->more && m->span.first <= i) {
		*end = min64(*end, m->offset + m->span.end);
		return 0;
	}
	if (m->more)
		*end = min64(*end, m->offset + m->span.first);
	for (; m->n && m->run->end <= i; m->n--)
		m->run++;
	if (!m->n)
		return 0;
	*end = min64(*end, m->offset + m->run->end);
	return m->run->contributions;
}

void dblp_counts_set(struct dblp_counts *c, uint64_t count,
		     uint32_t contributions)
{
	c->n = !!count;
	if (count)
		c->run[0] = (struct dblp_run) { count, contributions };
}

/* Index of the run that contains element @pos, or the number of runs */
static uint32_t find_run(const struct dblp_counts *c, uint64_t pos)
{
	uint32_t from = 0, to = c->n, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (c->run[mid].end > pos)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

/*
 * Rebuilds the runs that the message touches, and one on each side, which may
 * merge with them
 */
int dblp_counts_add(struct dblp_counts *c, uint64_t offset,
		    const struct dblp_run *run, uint32_t n,
		    const struct dblp_loss *loss)
{
	struct cursor m = { .offset = offset, .run = run, .n = n, .loss = loss };
	struct filled f = { .run = c->spare, .room = c->room };
	const uint64_t behind = offset + (n ? run[n - 1].end : 0);
	uint32_t first = find_run(c, offset), i, more;
	uint64_t pos, end;
	bool last = false;

	first -= first > 0;
	pos = first ? c->run[first - 1].end : 0;
	m.more = dblp_loss_next(loss, &m.at, &m.span);
	for (i = first; i < c->n && !last; i++) {
		last = pos >= behind;
		for (; pos < c->run[i].end; pos = end) {
			end = c->run[i].end;
			more = contributions_at(&m, pos, &end);
			fill(&f, end, c->run[i].contributions + more);
		}
	}
	if ((uint64_t)first + f.n + (c->n - i) > c->room)
		return -ENOSPC;
	if (first + f.n != i)
		memmove(c->run + first + f.n, c->run + i,
			(c->n - i) * sizeof(*run));
	memcpy(c->run + first, f.run, f.n * sizeof(*run));
	c->n = first + f.n + (c->n - i);
	return 0;
}

int dblp_counts_cut(const struct dblp_counts *c, uint64_t offset,
		    uint64_t count, struct dblp_run *run, uint32_t room)
{
	struct filled f = { .run = run, .room = room };
	uint32_t i;

	for (i = find_run(c, offset); i < c->n; i++) {
		fill(&f, min64(c->run[i].end - offset, count),
		     c->run[i].contributions);
		if (c->run[i].end >= offset + count)
			break;
	}
	return f.n > f.room ? -ENOSPC : (int)f.n;
}

static void finish_run(const struct dblp_finish *f, void *v, uint64_t count,
		       uint32_t contributions, struct dblp_finished *found)
{
	uint32_t mul = f->average ? 1 : f->contributions;

	if (contributions < found->least)
		found->least = contributions;
	if (!contributions) {
		found->none += count;
		memset(v, 0, count * dblp_dtype_size(f->dtype));
	} else if (mul != contributions) {
		dblp_reduce_scale(f->dtype, v, count, mul, contributions);
	}
}

struct dblp_finished dblp_rule_finish(const struct dblp_finish *f, void *v,
				      const struct dblp_run *run, uint32_t n,
				      uint64_t count)
{
	const struct dblp_run all = { count, f->contributions };
	struct dblp_finished found = { .least = f->contributions };
	uint32_t esize = dblp_dtype_size(f->dtype), i;
	uint64_t done = 0;

	if (f->rule != DBLP_RESCALE) {
		run = &all;
		n = 1;
	}
	for (i = 0; i < n; i++) {
		finish_run(f, at_element(v, done, esize), run[i].end - done,
			   run[i].contributions, &found);
		done = run[i].end;
	}
	return found;
}

void dblp_feedback_apply(uint32_t dtype, void *v, void *residual,
			 uint64_t count)
{
	dblp_reduce_add(dtype, v, residual, count);
	memset(residual, 0, count * dblp_dtype_size(dtype));
}

void dblp_feedback_send(uint32_t dtype, void *residual, const void *v,
			uint64_t count)
{
	memcpy(residual, v, count * dblp_dtype_size(dtype));
}

/* Next elements of the vector in the message, from @place up to @end */
static bool next_span(const struct dblp_loss *loss, struct dblp_sparse_at *place,
		      uint64_t end, struct dblp_span *span)
{
	if (loss->sparse)
		return dblp_sparse_next(loss->sparse, place, end, span);
	*span = (struct dblp_span) { place->packed, end };
	place->packed = end;
	return span->first < end;
}

/*
 * Clear the residual of delivered elements; of lost ones, keep those that are
 * finite
 */
static void settle(uint32_t dtype, const struct dblp_loss *loss, void *residual,
		   struct dblp_sparse_at *place, uint64_t end, bool lost)
{
	const uint32_t esize = loss->esize;
	struct dblp_span span;
	uint64_t n;
	void *v;

	while (next_span(loss, place, end, &span)) {
		v = at_element(residual, span.first, esize);
		n = span.end - span.first;
		if (lost)
			dblp_reduce_finite(dtype, v, n);
		else
			memset(v, 0, n * esize);
	}
}

uint64_t dblp_feedback_report(uint32_t dtype, void *residual,
			      const struct dblp_loss *loss)
{
	struct dblp_sparse_at place = { 0 };
	struct dblp_loss_at at = { 0 };
	uint64_t lost = 0;

	while (dblp_loss_lost(loss, &at)) {
		settle(dtype, loss, residual, &place, at.lost.first, false);
		settle(dtype, loss, residual, &place, at.lost.end, true);
		lost += at.lost.end - at.lost.first;
	}
	settle(dtype, loss, residual, &place, loss->count, false);
	return lost;
}

#define PPM		1000000
#define CREDIT_MAX	(INT64_MAX / 4)

/* Credit that a loss of @ppm costs, at most CREDIT_MAX */
static int64_t cost(uint32_t bytes, uint32_t contributions, uint32_t ppm)
{
	uint64_t all = (uint64_t)bytes * contributions;

	return all && ppm > CREDIT_MAX / all ? CREDIT_MAX : (int64_t)(all * ppm);
}

/* Set the credit, within its limits */
static void carry_set(struct dblp_carry *c, int64_t credit)
{
	if (credit > c->limit)
		credit = c->limit;
	c->credit = credit > -CREDIT_MAX ? credit : -CREDIT_MAX;
}

void dblp_carry_init(struct dblp_carry *c, uint64_t bytes)
{
	c->credit = 0;
	c->limit = bytes > CREDIT_MAX / PPM ? CREDIT_MAX : (int64_t)bytes * PPM;
}

uint32_t dblp_carry_take(struct dblp_carry *c, uint32_t bytes,
			 uint32_t contributions, uint32_t budget,
			 uint32_t most)
{
	int64_t credit = c->credit + cost(bytes, 1, budget);
	uint64_t all = (uint64_t)bytes * contributions, ppm = 0;

	if (credit > 0 && all)
		ppm = min64(credit / all, most < PPM ? most : PPM);
	carry_set(c, credit - (int64_t)(all * ppm));
	return (uint32_t)ppm;
}

void dblp_carry_give(struct dblp_carry *c, uint32_t bytes,
		     uint32_t contributions, uint32_t taken, uint32_t missing)
{
	carry_set(c, c->credit + cost(bytes, contributions, taken) -
		     cost(missing, contributions, PPM));
}
