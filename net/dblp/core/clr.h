/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The detector of critical learning regimes: the loss that training tolerates
 * depends on its regime. After DBLP (arXiv 2605.01989): a regime is critical while
 * the norm of the gradient changes by a share of at least eta from one report to
 * the next. Training begins in a critical regime.
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
 * @eta: ppm: a regime is critical if @change is at least this
 * @hold: further reports for which a regime stays critical
 * @left: of @hold, the reports still to come
 * @reports: number of reports, saturates at U32_MAX
 * @tolerant: the regime is tolerant, not critical
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
