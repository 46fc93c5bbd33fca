// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small sorted array. It is searched from its upper end, because nearly all
 * new packet numbers belong there.
 */
#include <linux/string.h>
#include <linux/types.h>

#include "ranges.h"

void dblp_ranges_init(struct dblp_ranges *s)
{
	memset(s, 0, sizeof(*s));
	s->r = s->few;
	s->room = DBLP_RANGES_FEW;
}

void dblp_ranges_grow(struct dblp_ranges *s, struct dblp_pn_range *mem)
{
	memcpy(mem, s->r, s->n * sizeof(*mem));
	s->r = mem;
	s->room = DBLP_RANGES_MAX;
}

/* Number of ranges that begin at @pn or below */
static u32 ranges_upto(const struct dblp_ranges *s, u64 pn)
{
	u32 i = s->n;

	while (i && s->r[i - 1].first > pn)
		i--;
	return i;
}

static void ranges_remove(struct dblp_ranges *s, u32 i)
{
	s->n--;
	memmove(&s->r[i], &s->r[i + 1], (s->n - i) * sizeof(s->r[0]));
}

/*
 * Insert a range of one number at @i; if there is no room, drop the lowest
 * range
 */
static void ranges_insert(struct dblp_ranges *s, u32 i, u64 pn)
{
	if (s->n == s->room) {
		if (!i) {
			s->floor = pn + 1;
			return;
		}
		s->floor = s->r[0].last + 1;
		ranges_remove(s, 0);
		i--;
	}
	memmove(&s->r[i + 1], &s->r[i], (s->n - i) * sizeof(s->r[0]));
	s->r[i].first = pn;
	s->r[i].last = pn;
	s->n++;
}

static void ranges_forget(struct dblp_ranges *s)
{
	u64 largest = s->r[s->n - 1].last;
	u32 i = 0;

	while (largest - s->r[i].last >= DBLP_RANGES_SPAN)
		i++;
	if (!i)
		return;
	s->floor = s->r[i - 1].last + 1;
	s->n -= i;
	memmove(&s->r[0], &s->r[i], s->n * sizeof(s->r[0]));
}

bool dblp_ranges_add(struct dblp_ranges *s, u64 pn)
{
	u32 i = ranges_upto(s, pn);
	bool joins_prev, joins_next;

	if (pn < s->floor || (i && pn <= s->r[i - 1].last))
		return false;
	joins_prev = i && pn - s->r[i - 1].last == 1;
	joins_next = i < s->n && s->r[i].first - pn == 1;
	if (joins_prev && joins_next) {
		s->r[i - 1].last = s->r[i].last;
		ranges_remove(s, i);
	} else if (joins_prev) {
		s->r[i - 1].last = pn;
	} else if (joins_next) {
		s->r[i].first = pn;
	} else {
		ranges_insert(s, i, pn);
	}
	ranges_forget(s);
	return true;
}

void dblp_ranges_add_run(struct dblp_ranges *s, u64 pn, u32 n)
{
	if (!dblp_ranges_add(s, pn))
		return;
	s->r[s->n - 1].last = pn + n - 1;
	ranges_forget(s);
}

bool dblp_ranges_has(const struct dblp_ranges *s, u64 pn)
{
	u32 i = ranges_upto(s, pn);

	return pn < s->floor || (i && pn <= s->r[i - 1].last);
}
