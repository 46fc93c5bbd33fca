// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>

#include "clr.h"

void clr_init(struct clr *c, double eta, unsigned int epoch)
{
	*c = (struct clr){
		.eta = eta,
		.epoch = epoch,
		.last = -1,
		.critical = true,
	};
}

bool clr_round(struct clr *c, double norm)
{
	double mean;

	c->sum += norm;
	if (++c->rounds < c->epoch)
		return c->critical;

	mean = c->sum / c->rounds;
	if (c->last >= 0)
		c->critical = fabs(c->last - mean) >= c->eta * c->last;
	c->last = mean;
	c->sum = 0;
	c->rounds = 0;
	return c->critical;
}
