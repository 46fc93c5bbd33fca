// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>

#include "rates.h"

/* Minimum residual share of a rate */
#define LEFT	0.05

/* A device at least this many times faster than a message was not its bottleneck */
#define CLEARLY	1.25

static void put(struct rate *r, uint32_t peer, double rate)
{
	r->peer[r->n % RATE_SAMPLES] = peer;
	r->rate[r->n % RATE_SAMPLES] = rate;
	r->n++;
}

static uint32_t samples(const struct rate *r)
{
	return r->n < RATE_SAMPLES ? r->n : RATE_SAMPLES;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* Highest remembered rate */
static double done(const struct rate *r)
{
	double rate = 0;
	uint32_t i;

	for (i = 0; i < samples(r); i++)
		rate = most(rate, r->rate[i]);
	return rate;
}

/* Was this device the bottleneck of a remembered message? */
static bool is_limit(const struct rates *r, uint32_t host, enum rate_way way)
{
	const struct rate *own = &r->host[host][way];
	uint32_t i;

	for (i = 0; i < samples(own); i++)
		if (done(&r->host[own->peer[i]][!way]) > CLEARLY * own->rate[i])
			return true;
	return false;
}

void rates_sample(struct rates *r, uint32_t from, uint32_t to, double rate)
{
	uint32_t i;

	put(&r->host[from][RATE_TX], to, rate);
	put(&r->host[to][RATE_RX], from, rate);
	r->fastest = 0;
	for (i = 0; i < r->hosts * RATE_WAYS; i++)
		r->fastest = most(r->fastest, done(&r->host[i / RATE_WAYS][i % RATE_WAYS]));
}

double rates_of(const struct rates *r, uint32_t host, enum rate_way way)
{
	if (is_limit(r, host, way))
		return done(&r->host[host][way]);
	return r->fastest > 0 ? r->fastest : RATE_UNKNOWN;
}

double rates_left(const struct rates *r, uint32_t host, enum rate_way way)
{
	const double rate = rates_of(r, host, way);

	return most(rate - r->host[host][way].used, LEFT * rate);
}

double rates_use(struct rates *r, uint32_t from, uint32_t to)
{
	const double tx = rates_left(r, from, RATE_TX), rx = rates_left(r, to, RATE_RX);
	const double used = tx < rx ? tx : rx;

	r->host[from][RATE_TX].used += used;
	r->host[to][RATE_RX].used += used;
	return used;
}
