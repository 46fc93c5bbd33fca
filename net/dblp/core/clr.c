// SPDX-License-Identifier: GPL-2.0-only
/*
 * The detector of critical learning regimes.
 *
 * A norm may be any 64-bit number, so its product with a million needs 84 bits.
 * Some of the kernel's divisions of such numbers trap or round. The division
 * here works bit by bit and is exact; it runs once per training round.
 */
#include <linux/dblp.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

#include "clr.h"

/* Above all bits of DBLP_PPM */
#define PPM_BITS	20

/* Add @a to *@sum modulo @m, both below @m; return the carry */
static u32 add_modulo(u64 *sum, u64 a, u64 m)
{
	if (*sum < m - a) {
		*sum += a;
		return 0;
	}
	*sum -= m - a;
	return 1;
}

/* @part / @whole in ppm, rounded down; @part < @whole */
static u32 share_ppm(u64 part, u64 whole)
{
	u32 ppm = 0;
	u64 rest = 0;
	int bit;

	/* Multiply by a million bit by bit, dividing after each bit */
	for (bit = PPM_BITS - 1; bit >= 0; bit--) {
		ppm = 2 * ppm + add_modulo(&rest, rest, whole);
		if (DBLP_PPM >> bit & 1)
			ppm += add_modulo(&rest, part, whole);
	}
	return ppm;
}

/**
 * dblp_clr_change() - share by which a norm has changed
 * @previous: previous norm
 * @norm: present norm
 *
 * Return: ppm of @previous, rounded down, at most U32_MAX; U32_MAX if only
 * @previous is zero.
 */
u32 dblp_clr_change(u64 previous, u64 norm)
{
	u64 diff = norm > previous ? norm - previous : previous - norm;
	u64 times, rest, ppm;

	if (!diff)
		return 0;
	if (!previous)
		return U32_MAX;
	times = div64_u64_rem(diff, previous, &rest);
	if (times > U32_MAX / DBLP_PPM)
		return U32_MAX;
	ppm = times * DBLP_PPM + share_ppm(rest, previous);
	return ppm < U32_MAX ? ppm : U32_MAX;
}

/**
 * dblp_clr_start() - restart a detector, in a critical regime
 * @clr: detector; it keeps @eta and @hold
 */
void dblp_clr_start(struct dblp_clr *clr)
{
	clr->norm = 0;
	clr->previous = 0;
	clr->change = 0;
	clr->left = 0;
	clr->reports = 0;
	clr->tolerant = false;
}

/**
 * dblp_clr_report() - report a norm to a detector, which decides on the regime
 * @clr: detector
 * @norm: norm of the gradient
 *
 * As in the DBLP paper: critical if |norm - previous| / previous >= eta. The
 * first report leaves the regime critical, because no previous norm exists.
 *
 * Return: true if the regime has changed.
 */
bool dblp_clr_report(struct dblp_clr *clr, u64 norm)
{
	bool first = !clr->reports, was = clr->tolerant;

	clr->previous = clr->norm;
	clr->norm = norm;
	clr->change = first ? 0 : dblp_clr_change(clr->previous, norm);
	if (clr->reports < U32_MAX)
		clr->reports++;
	if (first || clr->change >= clr->eta) {
		clr->left = clr->hold;
		clr->tolerant = false;
	} else if (clr->left) {
		clr->left--;
	} else {
		clr->tolerant = true;
	}
	return clr->tolerant != was;
}
