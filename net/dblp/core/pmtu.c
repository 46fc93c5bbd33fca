// SPDX-License-Identifier: GPL-2.0-only
/*
 * Path MTU discovery: see pmtu.h.
 *
 * A black hole must be distinguished from loss. Large packets lost in a row, or
 * timeouts, make the sender suspect one (@suspected). It then sends small
 * probes, one at a time. A round ends when its probe has arrived and a large
 * packet was lost since the round began. The arrival of a large packet ends the
 * suspicion.
 *
 * If size did not matter, the next packet to arrive would be a large one at
 * least as often as a small one, at any loss rate. So small packets win n
 * rounds in a row with a probability of at most 2^-n. Each round needs a loss
 * of its own, so no loss counts twice.
 *
 * In the last rounds the lost packet must be a large probe, because a receiver
 * without memory drops all data but accepts probes. A smaller size would not
 * help there.
 */
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "pmtu.h"

/* The size to fall back to if packets of the present size are black-holed */
static u32 fallback(const struct dblp_pmtu *p)
{
	return p->mtu > p->base && !p->lower ? p->base : p->min;
}

static void end_suspicion(struct dblp_pmtu *p)
{
	p->suspected = false;
	p->lower = false;
	p->hole = 0;
	p->lost = 0;
	p->rounds = 0;
	p->missed = 0;
	p->large_lost = false;
	p->small_passed = false;
}

static void set_mtu(struct dblp_pmtu *p, u32 mtu)
{
	p->mtu = mtu;
	p->tries = 0;
	end_suspicion(p);
}

static void restart_search(struct dblp_pmtu *p)
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
	restart_search(p);
}

/* Try the full MTU of the route first, because the path may carry it by now */
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
	if (p->suspected) {
		if (p->rounds >= DBLP_PMTU_PROOF && !p->large &&
		    !p->large_lost) {
			p->large = p->mtu;
			return p->large;
		}
		/* This round waits for a large packet */
		if (p->small_passed)
			return 0;
		p->probe = fallback(p);
		return p->probe;
	}
	if (p->state == DBLP_PMTU_COMPLETE && p->mtu < p->max &&
	    now >= p->raise_at)
		restart_search(p);
	if (p->state == DBLP_PMTU_SEARCH)
		p->probe = search_size(p);
	return p->probe;
}

/* A probe has left the network. Return true if it was the large one */
static bool land(struct dblp_pmtu *p, u32 size)
{
	if (size == p->probe) {
		p->probe = 0;
		return false;
	}
	if (size != p->large)
		return false;
	p->large = 0;
	return true;
}

void dblp_pmtu_unsent(struct dblp_pmtu *p, u32 size)
{
	land(p, size);
}

/* Count the round if it is over; fall back after the last round */
static void judge(struct dblp_pmtu *p)
{
	if (!p->suspected || !p->small_passed || !p->large_lost)
		return;
	p->small_passed = false;
	p->large_lost = false;
	if (++p->rounds < DBLP_PMTU_PROOF + DBLP_PMTU_PROBES)
		return;
	set_mtu(p, fallback(p));
	restart_search(p);
}

static void probe_acked(struct dblp_pmtu *p, u32 size, u64 now)
{
	land(p, size);
	if (p->suspected && size <= fallback(p)) {
		p->small_passed = true;
		p->missed = 0;
		judge(p);
		return;
	}
	if (p->suspected && size == p->mtu)
		end_suspicion(p);
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
		end_suspicion(p);
}

static void probe_lost(struct dblp_pmtu *p, u32 size, u64 now)
{
	bool known = size == p->probe;

	if (land(p, size)) {
		p->large_lost = true;
		judge(p);
		return;
	}
	if (!known)
		return;
	if (p->suspected) {
		/* Keep the rounds: a probe of either small size counts */
		p->missed += size <= fallback(p);
		if (p->missed % DBLP_PMTU_PROBES == 0)
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
	if (p->rounds < DBLP_PMTU_PROOF)
		p->large_lost = true;
	if (p->lost >= DBLP_PMTU_PROBES)
		p->suspected = true;
	judge(p);
}

void dblp_pmtu_timeout(struct dblp_pmtu *p, u32 count)
{
	if (count >= DBLP_PMTU_DOUBT && p->mtu > fallback(p))
		p->suspected = true;
}
