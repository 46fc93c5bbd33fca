/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The detector of critical learning regimes: the loss that training tolerates
 * depends on its regime. After DBLP (arXiv 2605.01989): a regime is critical
 * while the norm of the gradient changes by a share of at least eta from one
 * report to the next. Training begins in a critical regime.
 *
 * Pure: see wire.h.
 */
#ifndef _NET_DBLP_CLR_H
#define _NET_DBLP_CLR_H

#include <linux/types.h>

/* The paper's threshold: half of the norm, in ppm */
#define DBLP_CLR_ETA_DEFAULT	500000

/**
 * struct dblp_clr - a detector
 * @norm: latest norm, in any fixed unit
 * @previous: norm reported before @norm
 * @change: difference of @norm and @previous, ppm of @previous, rounded down,
 *	at most U32_MAX; U32_MAX if only @previous is zero
 * @eta: ppm: a regime is critical if @change is at least this
 * @hold: further reports for which a critical regime stays critical
 * @left: reports of @hold that remain
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
