// SPDX-License-Identifier: GPL-2.0-only
#include <math.h>
#include <stddef.h>

#include "order.h"

/* A host that sends at less than this share of the server's rate would hold it up */
#define SLOW		0.5

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Transfer time of an update, seconds; 0 within a host */
static double seconds(const struct fab_state *s, uint32_t from, uint32_t to)
{
	const double rate = least(s->host[from].tx, s->host[to].rx);

	if (from == to)
		return 0;
	return rate > 0 ? s->bytes / rate : INFINITY;
}

/*
 * Updates that may still be applied before the update of a model with @of updates, if
 * @version updates are applied first. Negative: the bound is exceeded. @of may be larger
 * than @version, because a run that counts as failed may have reached the server.
 */
static int64_t slack_of(uint32_t bound, uint64_t version, uint64_t of)
{
	return bound - (int64_t)(version - of);
}

static int64_t slack(const struct fab_state *s, const struct fab_update *u,
		     uint32_t place)
{
	return slack_of(s->bound, s->version + s->ahead + place, u->version);
}

/*
 * Smallest slack k that more than k updates do not exceed. These updates need all of the
 * next k + 1 places, so one of them must be next. INT64_MAX: any update may be next.
 */
static int64_t pressing(const struct fab_state *s, const struct fab_update *u,
			const struct fab_plan *plan, uint32_t n)
{
	uint32_t count[FAB_UPDATES_MAX] = { 0 }, sum = 0, i;

	for (i = plan->sent; i < n; i++) {
		const int64_t left = slack(s, &u[plan->order[i]], plan->sent);

		if (left >= 0 && left < n)
			count[left]++;
	}
	for (i = 0; i < n; i++) {
		sum += count[i];
		if (sum > i)
			return i;
	}
	return INT64_MAX;
}

static bool goes_before(const struct fab_state *s, const struct fab_update *a,
			const struct fab_update *b)
{
	const double at = seconds(s, a->host, s->server);
	const double bt = seconds(s, b->host, s->server);

	return at != bt ? at < bt : a->since < b->since;
}

/* Choose the next update, as a position in the order; @n: all that remain are too late */
static uint32_t choose(const struct fab_state *s, const struct fab_update *u,
		       const struct fab_plan *plan, uint32_t n)
{
	const int64_t limit = pressing(s, u, plan, n);
	uint32_t best = n, i;

	for (i = plan->sent; i < n; i++) {
		const struct fab_update *it = &u[plan->order[i]];
		const int64_t left = slack(s, it, plan->sent);

		if (left >= 0 && left <= limit &&
		    (best == n || goes_before(s, it, &u[plan->order[best]])))
			best = i;
	}
	return best;
}

static void put_in_order(const struct fab_state *s, const struct fab_update *u,
			 uint32_t n, struct fab_plan *plan)
{
	uint32_t i, best, number;

	for (i = 0; i < n; i++)
		plan->order[i] = i;
	for (plan->sent = 0; plan->sent < n; plan->sent++) {
		best = choose(s, u, plan, n);
		if (best == n)
			return;
		number = plan->order[best];
		/* Shift the others, which keeps their order */
		for (i = best; i > plan->sent; i--)
			plan->order[i] = plan->order[i - 1];
		plan->order[plan->sent] = number;
	}
}

/* Joining */

static uint32_t host_of(const struct fab_update *u, const struct fab_plan *plan, uint32_t place)
{
	return u[plan->order[place]].host;
}

static bool taken(const struct fab_plan *plan, uint32_t at)
{
	uint32_t i;

	for (i = 0; i < plan->runs; i++)
		if (plan->run[i].at == at)
			return true;
	return false;
}

/* Host with the least time to collect updates @first to @end - 1 and reach the server */
static uint32_t meeting(const struct fab_state *s, const struct fab_update *u,
			const struct fab_plan *plan, uint32_t first, uint32_t end)
{
	uint32_t best = FAB_DIRECT, at, i;
	double least_time = INFINITY, time;

	for (at = 0; at < s->hosts; at++) {
		if (!s->host[at].joins || at == s->server || taken(plan, at))
			continue;
		time = seconds(s, at, s->server);
		for (i = first; i < end; i++)
			time += seconds(s, host_of(u, plan, i), at);
		if (time < least_time) {
			least_time = time;
			best = at;
		}
	}
	return best;
}

/* Does an update arrive at @at no later than a message from there reaches the server? */
static bool in_time(const struct fab_state *s, uint32_t host, uint32_t at)
{
	return seconds(s, host, at) <= seconds(s, at, s->server);
}

/*
 * Joins consecutive updates while they arrive in time. A single update takes a detour
 * only if its host is so slow that it would hold up the server.
 */
static struct fab_run next_run(const struct fab_state *s, const struct fab_update *u,
			       const struct fab_plan *plan, uint32_t first)
{
	struct fab_run r = { .first = first, .at = meeting(s, u, plan, first, plan->sent) };
	const uint32_t host = host_of(u, plan, first);

	while (r.at != FAB_DIRECT && first + r.n < plan->sent &&
	       in_time(s, host_of(u, plan, first + r.n), r.at))
		r.n++;
	if (r.n > 1)
		return r;
	r.n = 1;
	r.at = s->host[host].tx < SLOW * s->host[s->server].rx ?
	       meeting(s, u, plan, first, first + 1) : FAB_DIRECT;
	return r;
}

void fab_order(const struct fab_state *s, const struct fab_update *update,
	       uint32_t n, struct fab_plan *plan)
{
	uint32_t at;

	put_in_order(s, update, n, plan);
	plan->runs = 0;
	for (at = 0; at < plan->sent; at += plan->run[plan->runs++].n)
		plan->run[plan->runs] = next_run(s, update, plan, at);
}

bool fab_comes_along(const struct fab_state *s, const struct fab_update *u,
		     uint32_t at)
{
	return slack(s, u, 0) >= 0 && in_time(s, u->host, at);
}

/* First run that exceeds its bound if all except @gone leave in order; @n: none does */
static uint32_t first_late(uint64_t version, uint32_t bound, const struct fab_leg *leg,
			   uint32_t n, uint32_t gone)
{
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		if (i == gone)
			continue;
		for (k = 0; k < leg[i].n; k++, version++)
			if (slack_of(bound, version, leg[i].version[k]) < 0)
				return i;
	}
	return n;
}

uint32_t fab_late(uint64_t version, uint32_t bound, const struct fab_leg *leg, uint32_t n)
{
	return first_late(version, bound, leg, n, n);
}

int fab_next(uint64_t version, uint32_t bound, const struct fab_leg *leg,
	     uint32_t n)
{
	int best = -1;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (leg[i].whole &&
		    (best < 0 || leg[i].seconds < leg[best].seconds) &&
		    first_late(version + leg[i].n, bound, leg, n, i) == n)
			best = (int)i;
	return best;
}

double fab_weight(uint64_t delay)
{
	return 1 / sqrt(1 + (double)delay);
}

bool fab_divergence_fits(const struct fab_divergence *d, double norm)
{
	return d->open + d->sent + norm <= d->max;
}

void fab_divergence_step(struct fab_divergence *d, double norm)
{
	d->open += norm;
}

void fab_divergence_send(struct fab_divergence *d)
{
	d->sent += d->open;
	d->open = 0;
}

void fab_divergence_ack(struct fab_divergence *d)
{
	d->sent = 0;
}
