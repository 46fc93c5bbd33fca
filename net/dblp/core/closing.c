// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loss budget in bytes and in segments. All rounding favours the data: what
 * may be missing is rounded down, what must be sent is rounded up.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include <linux/dblp.h>

#include "closing.h"

u32 dblp_budget_bytes(u32 budget, u32 droppable)
{
	return div_u64((u64)min_t(u32, budget, DBLP_PPM) * droppable, DBLP_PPM);
}

bool dblp_may_miss(u32 seg_size, u32 length, u32 critical, u32 budget)
{
	u32 last = length % seg_size ?: seg_size;

	/* The last segment is the smallest, and farthest from the critical start */
	return critical <= length - last &&
	       last <= dblp_budget_bytes(budget, length - critical);
}

/* Could the message close with what is missing now? */
static bool fits_budget(const struct dblp_close_state *s)
{
	u32 critical = min(s->critical, s->length);

	if (s->meta_missing || s->critical_missing)
		return false;
	if (s->policy != DBLP_POLICY_EAGER && s->policy != DBLP_POLICY_EARLY)
		return false;
	return s->missing <= dblp_budget_bytes(s->budget,
					       s->length - critical);
}

/**
 * dblp_close_decide() - may the receiver declare this message done?
 * @s: what has become of it so far
 *
 * Return: what to do.
 */
enum dblp_verdict dblp_close_decide(const struct dblp_close_state *s)
{
	if (s->meta_missing)
		return DBLP_WAIT;
	if (!s->missing)
		return DBLP_CLOSE_COMPLETE;
	if (fits_budget(s) &&
	    (s->policy != DBLP_POLICY_EARLY || s->now >= s->early_at))
		return DBLP_CLOSE_BUDGET;
	if (s->deadline_at && s->now >= s->deadline_at && !s->critical_missing)
		return DBLP_CLOSE_DEADLINE;
	return DBLP_WAIT;
}

/**
 * dblp_close_again() - when to ask again though no packet has come
 * @s: the state of a message that had to wait
 *
 * Return: the time, or 0 if nothing but packets can change the decision.
 */
u64 dblp_close_again(const struct dblp_close_state *s)
{
	u64 at = s->deadline_at;

	if (s->meta_missing || s->critical_missing)
		return 0;
	if (s->policy == DBLP_POLICY_EARLY && fits_budget(s))
		at = at ? min(at, s->early_at) : s->early_at;
	return at;
}

u32 dblp_first_pass(u32 n, u32 seg_size, u32 length, u32 critical, u32 budget,
		    u8 policy, u32 loss)
{
	u32 spare, need, arrive;

	if (policy != DBLP_POLICY_EAGER)
		return n;
	critical = min(critical, length);
	spare = dblp_budget_bytes(budget, length - critical) / seg_size;
	need = spare < n ? n - spare : 1;
	arrive = DBLP_PPM - min_t(u32, loss, DBLP_PPM / 2);
	return min_t(u64, n, div_u64((u64)need * DBLP_PPM + arrive / 2, arrive));
}
