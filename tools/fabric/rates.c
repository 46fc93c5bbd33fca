// SPDX-License-Identifier: GPL-2.0-only
#include <stdbool.h>

#include "rates.h"

/* The share of a rate that is always thought to be left */
#define LEFT	0.05

/* Who can do so many times as much has not held up a message */
#define CLEARLY	1.25

static void put(struct rate *r, uint32_t peer, double rate)
{
	r->peer[r->n % RATE_SAMPLES] = peer;
	r->rate[r->n % RATE_SAMPLES] = rate;
	r->n++;
}

void rates_sample(struct rates *r, uint32_t from, uint32_t to, double rate)
{
	put(&r->host[from][RATE_TX], to, rate);
	put(&r->host[to][RATE_RX], from, rate);
}

static uint32_t samples(const struct rate *r)
{
	return r->n < RATE_SAMPLES ? r->n : RATE_SAMPLES;
}

/* What it has done */
static double done(const struct rate *r)
{
	double most = 0;
	uint32_t i;

	for (i = 0; i < samples(r); i++)
		if (r->rate[i] > most)
			most = r->rate[i];
	return most;
}

/* Has it held up a message itself? */
static bool is_limit(const struct rates *r, uint32_t host, enum rate_way way)
{
	const struct rate *own = &r->host[host][way];
	uint32_t i;

	for (i = 0; i < samples(own); i++)
		if (done(&r->host[own->peer[i]][!way]) > CLEARLY * own->rate[i])
			return true;
	return false;
}

static double fastest(const struct rates *r)
{
	double most = 0, rate;
	uint32_t i;

	for (i = 0; i < r->hosts * RATE_WAYS; i++) {
		rate = done(&r->host[i / RATE_WAYS][i % RATE_WAYS]);
		if (rate > most)
			most = rate;
	}
	return most > 0 ? most : RATE_UNKNOWN;
}

double rates_of(const struct rates *r, uint32_t host, enum rate_way way)
{
	return is_limit(r, host, way) ? done(&r->host[host][way]) : fastest(r);
}

double rates_left(const struct rates *r, uint32_t host, enum rate_way way)
{
	const double rate = rates_of(r, host, way);
	const double left = rate - r->host[host][way].used;

	return left > LEFT * rate ? left : LEFT * rate;
}

double rates_use(struct rates *r, uint32_t from, uint32_t to)
{
	const double tx = rates_left(r, from, RATE_TX), rx = rates_left(r, to, RATE_RX);
	const double used = tx < rx ? tx : rx;

	r->host[from][RATE_TX].used += used;
	r->host[to][RATE_RX].used += used;
	return used;
}
