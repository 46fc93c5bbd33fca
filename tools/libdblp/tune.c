// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The controller of a loss budget: see tune.h.
 */

#include "tune.h"

#include <float.h>
#include <math.h>

#include "libdblp.h"
#include "plan.h"

/* Weight of a round in the running means */
#define WEIGHT		0.2
/* Budgets are multiples of this, ppm */
#define STEP		1000
/* Ranks that agree more than this have no measurable noise */
#define AGREEMENT_MAX	0.999
/* More contributions than this have E(1/k) = 1/E(k) */
#define INVERSE_MAX	64

static double clamp(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

static double target_of(const struct dblp_tune *t)
{
	const double most = t->rule == DBLP_FEEDBACK ? 1 : 1.0 / 3;

	return (t->target ? t->target : most * DBLP_TUNE_TARGET) / DBLP_PPM;
}

/* The positive root x of @q x^2 + x = @r, in a form without cancellation */
static double root(double q, double r)
{
	return 2 * r / (1 + sqrt(1 + 4 * q * r));
}

uint32_t dblp_tune_budget(const struct dblp_tune *t, uint32_t cap)
{
	const double may = target_of(t) * (1 + t->saved / DBLP_TUNE_SAVED);
	double q, x;

	if (!t->rounds || t->contributions < 2 || may <= 0 ||
	    t->agreement >= AGREEMENT_MAX)
		return 0;
	q = (t->contributions - 1) * t->agreement;
	x = clamp(root(q, may * (1 - t->agreement)), 0, cap / (double)DBLP_PPM);
	/* The half makes up for rounding: a cap of 10 % is 100 steps, not 99 */
	return (uint32_t)(x * DBLP_PPM + 0.5) / STEP * STEP;
}

/* Share of the sent energy that was lost */
static double lost_share(const struct dblp_energy *e)
{
	if (e->rule == DBLP_FEEDBACK)
		return clamp(e->lost / e->sent, 0, 1);
	return e->bytes ? clamp((double)e->missing / (double)e->bytes, 0, 1) : 0;
}

/* E(1/k): k of @n contributions arrive, each with probability @p; 0 for k = 0 */
static double mean_inverse(uint32_t n, double p)
{
	/* Of k contributions, from k = 0 on */
	double chance = pow(1 - p, n), sum = 0;
	uint32_t k;

	/* The sum multiplies the chance, which has no digits below DBL_MIN */
	if (n > INVERSE_MAX || p <= 0 || p >= 1 || chance < DBL_MIN)
		return p > 0 ? 1 / (n * p) : 0;
	for (k = 1; k <= n; k++) {
		chance *= (n - k + 1) * p / (k * (1 - p));
		sum += chance / k;
	}
	return sum;
}

/*
 * Agreement of ranks. The running means weigh rounds by the pairs that arrived,
 * because a round that lost nearly all says little about it.
 */
static void learn_agreement(struct dblp_tune *t, const struct dblp_energy *e,
			    double x)
{
	const double n = e->contributions, weight = t->rounds ? WEIGHT : 1;
	/* Energy of single ranks and of pairs of equal ranks in the mean */
	double single = (1 - x) / n, pairs = (n - 1) / n * (1 - x) * (1 - x);

	if (e->rule == DBLP_RESCALE) {
		single = mean_inverse(e->contributions, 1 - x);
		pairs = 1 - pow(x, n) - single;
	}
	t->common += weight * (n * e->mean / e->sent - single - t->common);
	t->most += weight * (pairs - t->most);
	t->agreement = t->most > 0 ? clamp(t->common / t->most, 0, 1) : 0;
}

void dblp_tune_round(struct dblp_tune *t, const struct dblp_energy *e)
{
	double x, c, spent;

	t->contributions = e->contributions;
	t->rule = e->rule;
	if (e->contributions < 2 || !(e->sent > 0) || !isfinite(e->sent) ||
	    !isfinite(e->mean) || !isfinite(e->lost))
		return;
	x = lost_share(e);
	learn_agreement(t, e, x);
	t->rounds++;
	c = clamp(t->agreement, 0, AGREEMENT_MAX);
	spent = (x + x * x * (e->contributions - 1) * c) / (1 - c);
	t->saved = clamp(t->saved + 1 - spent / target_of(t),
			 -DBLP_TUNE_SAVED, DBLP_TUNE_SAVED);
}
