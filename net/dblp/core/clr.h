/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The detector of critical learning regimes: how much loss a training run bears
 * depends on where it stands, which the norm of its gradient tells. After DBLP
 * (arXiv 2605.01989): from one report to the next it changes by a share of at
 * least eta in a critical regime, and training begins in one.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_CLR_H
#define _NET_DBLP_CLR_H

#include <linux/types.h>

/* Half of the norm: what the paper takes */
#define DBLP_CLR_ETA_DEFAULT	500000

/**
 * struct dblp_clr - a detector
 * @norm: as last reported, in any fixed unit
 * @previous: the report before that
 * @change: between those two, ppm of @previous, rounded down; U32_MAX if it is
 *	that or more, or @previous was zero and @norm is not
 * @eta: ppm: from this change on a regime is critical
 * @hold: reports that a regime stays critical after the last one that says so
 * @left: of those, still to come
 * @reports: how many there were; it stays at U32_MAX
 * @tolerant: the regime, which is critical else
 */
struct dblp_clr {
	u64	norm;
	u64	previous;
	u32	change;
	u32	eta;
	u32	hold;
	u32	left;
	u32	reports;
	bool	tolerant;
};

u32 dblp_clr_change(u64 previous, u64 norm);
void dblp_clr_start(struct dblp_clr *clr);
bool dblp_clr_report(struct dblp_clr *clr, u64 norm);

#endif /* _NET_DBLP_CLR_H */
