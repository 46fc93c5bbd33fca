// SPDX-License-Identifier: GPL-2.0-only
/*
 * Path MTU discovery: see pmtu.h.
 *
 * A black hole has to be told from loss. Large packets lost in a row raise a
 * doubt, and so do timeouts. Then probes of a small size are sent, one in a round
 * trip, until a large packet arrives (there is no hole), or until so many large
 * ones have vanished that loss at the rate which the probes see would hardly do
 * that: a path that loses nine packets of ten must not be taken for one that
 * loses the large ones.
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "pmtu.h"

/* What to go back to when packets of the present size vanish */
static u32 fallback(const struct dblp_pmtu *p)
{
	return p->mtu > p->base && !p->lower ? p->base : p->min;
}

static void forget_doubt(struct dblp_pmtu *p)
{
	p->doubt = false;
	p->lower = false;
	p->hole = 0;
	p->lost = 0;
	p->passed = 0;
	p->missed = 0;
}

static void set_mtu(struct dblp_pmtu *p, u32 mtu)
{
	p->mtu = mtu;
	p->tries = 0;
	forget_doubt(p);
}

static void search_anew(struct dblp_pmtu *p)
{
	p->state = DBLP_PMTU_SEARCH;
	p->high = p->max + 1;
	p->tries = 0;
}

static void check_complete(struct dblp_pmtu *p, u64 now)
{
	if (p->state != DBLP_PMTU_SEARCH)
		return;
	if (p->mtu < p->max && p->high - p->mtu > DBLP_PMTU_STEP)
		return;
	p->state = DBLP_PMTU_COMPLETE;
	p->raise_at = now + DBLP_PMTU_RAISE_NS;
}

void dblp_pmtu_init(struct dblp_pmtu *p, u32 min, u32 base, u32 max)
{
	memset(p, 0, sizeof(*p));
	p->min = min;
	p->base = max(base, min);
	p->max = max(max, min);
	p->mtu = p->max;
	p->high = p->max + 1;
}

void dblp_pmtu_route(struct dblp_pmtu *p, u32 max)
{
	bool believed = p->mtu == p->max;

	max = max(max, p->min);
	if (max == p->max)
		return;
	p->max = max;
	if (believed || p->mtu >= max) {
		p->state = DBLP_PMTU_COMPLETE;
		p->high = max + 1;
		set_mtu(p, max);
		return;
	}
	search_anew(p);
}

/* The whole first: what was in the way may be gone, or never was there */
static u32 search_size(const struct dblp_pmtu *p)
{
	if (p->high > p->max)
		return p->max;
	return p->mtu + (p->high - p->mtu) / 2;
}

u32 dblp_pmtu_next(struct dblp_pmtu *p, u64 now)
{
	if (p->probe)
		return 0;
	if (p->doubt) {
		/* After a few, only large packets can tell more */
		if (p->passed >= DBLP_PMTU_PROBES && p->asked == p->lost)
			return 0;
		p->asked = p->lost;
		p->probe = fallback(p);
		return p->probe;
	}
	if (p->state == DBLP_PMTU_COMPLETE && p->mtu < p->max &&
	    now >= p->raise_at)
		search_anew(p);
	if (p->state == DBLP_PMTU_SEARCH)
		p->probe = search_size(p);
	return p->probe;
}

void dblp_pmtu_unsent(struct dblp_pmtu *p)
{
	p->probe = 0;
}

/*
 * With losses at the rate that the small probes see, q, would as many large
 * packets vanish in a row by chance? That is q^lost, which is below
 * exp(-(1 - q) lost): so (1 - q) lost has to be DBLP_PMTU_PROOF. Of q it is
 * known what came of the probes; one more of each stands for what is not known.
 */
static bool is_black_hole(const struct dblp_pmtu *p)
{
	return p->passed >= DBLP_PMTU_PROBES && p->hole &&
	       (u64)p->lost * (p->passed + 1) >=
	       (u64)DBLP_PMTU_PROOF * (p->passed + p->missed + 2);
}

static void judge(struct dblp_pmtu *p)
{
	if (!p->doubt || !is_black_hole(p))
		return;
	set_mtu(p, fallback(p));
	search_anew(p);
}

static void probe_acked(struct dblp_pmtu *p, u32 size, u64 now)
{
	if (size == p->probe)
		p->probe = 0;
	if (p->doubt && size <= fallback(p)) {
		p->passed++;
		judge(p);
		return;
	}
	if (size <= p->mtu || size > p->max)
		return;
	set_mtu(p, size);
	p->high = max(p->high, size + 1);
	check_complete(p, now);
}

void dblp_pmtu_acked(struct dblp_pmtu *p, u32 size, bool probe, u64 now)
{
	if (probe)
		probe_acked(p, size, now);
	else if (p->hole ? size >= p->hole : size > fallback(p))
		forget_doubt(p);
}

static void probe_lost(struct dblp_pmtu *p, u32 size, u64 now)
{
	if (size != p->probe)
		return;
	p->probe = 0;
	if (p->doubt) {
		p->missed += size <= fallback(p);
		if (!p->passed && p->missed % DBLP_PMTU_PROBES == 0)
			p->lower = !p->lower;
		return;
	}
	if (p->state != DBLP_PMTU_SEARCH || size <= p->mtu ||
	    ++p->tries < DBLP_PMTU_PROBES)
		return;
	p->tries = 0;
	p->high = size;
	check_complete(p, now);
}

void dblp_pmtu_lost(struct dblp_pmtu *p, u32 size, bool probe, u64 now)
{
	if (probe) {
		probe_lost(p, size, now);
		return;
	}
	if (size <= fallback(p) || size > p->mtu || size < p->hole)
		return;
	if (!p->hole)
		p->hole = size;
	p->lost++;
	if (p->lost >= DBLP_PMTU_PROBES)
		p->doubt = true;
	judge(p);
}

void dblp_pmtu_timeout(struct dblp_pmtu *p, u32 count)
{
	if (count >= DBLP_PMTU_DOUBT && p->mtu > fallback(p))
		p->doubt = true;
}
