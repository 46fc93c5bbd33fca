// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>

#include <libdblp.h>

#include "detector.h"

/* The kernel's unit of norms is 2^-32. Norms from 2^32 on give the maximum. */
static uint64_t norm_units(double norm)
{
	return norm < 0x1p32 ? (uint64_t)(norm * 0x1p32) : UINT64_MAX;
}

double gradient_norm(const float *v, size_t size)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < size; i++)
		sum += (double)v[i] * v[i];
	return sqrt(sum);
}

void detector_init(struct detector *d, double eta, uint32_t epoch)
{
	d->clr.eta = eta * DBLP_PPM + 0.5;
	d->epoch = epoch;
	dblp_clr_start(&d->clr);
}

int detector_round(struct detector *d, double norm, uint32_t job)
{
	double mean;

	d->sum += norm;
	if (++d->rounds < d->epoch)
		return 0;
	mean = d->sum / d->rounds;
	d->sum = 0;
	d->rounds = 0;
	dblp_clr_report(&d->clr, norm_units(mean));
	return job ? dblp_job_norm(job, mean) : 0;
}
