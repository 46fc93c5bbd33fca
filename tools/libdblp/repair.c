// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Elements of a vector that a rank lacks, and their repair: see repair.h.
 */

#include "repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Index of the first span that ends after element @i */
static uint32_t find(const struct dblp_stale *s, uint64_t i)
{
	uint32_t from = 0, to = s->n, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (s->span[mid].end > i)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

static int more_room(struct dblp_stale *s)
{
	const uint32_t room = s->room * 2 + 16;
	void *span = reallocarray(s->span, room, sizeof(*s->span));

	if (!span)
		return -ENOMEM;
	s->span = span;
	s->room = room;
	return 0;
}

int dblp_stale_add(struct dblp_stale *s, struct dblp_span span)
{
	const uint32_t i = find(s, span.first);
	int err;

	if (i && s->span[i - 1].end == span.first) {
		s->span[i - 1].end = span.end;
		return 0;
	}
	if (s->n == s->room && (err = more_room(s)))
		return err;
	memmove(&s->span[i + 1], &s->span[i], (s->n - i) * sizeof(*s->span));
	s->span[i] = span;
	s->n++;
	return 0;
}

uint64_t dblp_stale_count(const struct dblp_stale *s, struct dblp_span range)
{
	uint64_t count = 0;
	uint32_t i;

	for (i = find(s, range.first); i < s->n && s->span[i].first < range.end; i++)
		count += min64(s->span[i].end, range.end) -
			 (s->span[i].first > range.first ? s->span[i].first : range.first);
	return count;
}

void dblp_stale_free(struct dblp_stale *s)
{
	free(s->span);
	*s = (struct dblp_stale) { 0 };
}

void dblp_pieces_begin(struct dblp_pieces *p, const struct dblp_stale *old,
		       struct dblp_span range, const struct dblp_loss *loss)
{
	*p = (struct dblp_pieces) {
		.old = old,
		.loss = *loss,
		.next = find(old, range.first),
		.span = { range.first, range.first },
		.end = range.end,
		.repaired = dblp_stale_count(old, range),
	};
	p->loss.head += (uint32_t)p->repaired * loss->esize;
	p->loss.count -= p->repaired;
	p->is_lost = dblp_loss_lost(&p->loss, &p->at);
}

/* Shorten a piece that was not repaired, so that all or none of it is lost */
static bool cut(struct dblp_pieces *p)
{
	const uint64_t i = p->sent[1];
	bool lost;

	while (p->is_lost && p->at.lost.end <= i)
		p->is_lost = dblp_loss_lost(&p->loss, &p->at);
	lost = p->is_lost && p->at.lost.first <= i;
	if (p->is_lost)
		p->span.end = min64(p->span.end, p->span.first - i +
				    (lost ? p->at.lost.end : p->at.lost.first));
	return lost;
}

enum dblp_piece dblp_pieces_next(struct dblp_pieces *p)
{
	const struct dblp_span *old = p->next < p->old->n ?
				      &p->old->span[p->next] : NULL;
	enum dblp_piece what = DBLP_PIECE_SENT;
	struct dblp_span *span = &p->span;
	bool repaired;

	span->first = span->end;
	if (span->first == p->end)
		return DBLP_PIECE_END;
	repaired = old && old->first <= span->first;
	span->end = old ? min64(repaired ? old->end : old->first, p->end) : p->end;
	p->packed = p->sent[!repaired] + (repaired ? 0 : p->repaired);
	if (repaired) {
		p->next++;
		what = DBLP_PIECE_REPAIRED;
	} else if (cut(p)) {
		what = DBLP_PIECE_LOST;
	}
	p->sent[!repaired] += span->end - span->first;
	return what;
}
