// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choice of the port that sends next, and of the dead port to probe.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "recovery.h"
#include "spray.h"

#define PART		64U	/* resolution: this part of the shortest RTT */
#define TIMES_MAX	64U	/* longest RTT that counts, in shortest RTTs */

static u64 round_trip(const struct dblp_port *p, u64 srtt)
{
	return max_t(u64, p->srtt ?: srtt, 1);
}

static bool any_lives(const struct dblp_port *ports, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!dblp_port_dead(&ports[i]))
			return true;
	return false;
}

/* If all ports are dead, any announced port may send */
static bool may_send(const struct dblp_port *p, bool any)
{
	return any ? !dblp_port_dead(p) : p->announced;
}

static u64 shortest(const struct dblp_port *ports, u32 n, u64 srtt, bool any)
{
	u64 least = U64_MAX;
	u32 i;

	for (i = 0; i < n; i++)
		if (may_send(&ports[i], any))
			least = min(least, round_trip(&ports[i], srtt));
	return least;
}

/*
 * Cost of a byte sent from a port: PART * PART with the shortest RTT and
 * without loss, at most 2^21 times as much
 */
static u64 cost(const struct dblp_port *p, u64 srtt, u64 least)
{
	u64 part = max_t(u64, div_u64(least, PART), 1);
	u64 times = clamp_t(u64, div64_u64(round_trip(p, srtt), part), 1,
			    PART * TIMES_MAX);
	u64 its = times * times;

	if (p->recent)
		its += div_u64(its * DBLP_SPRAY_LOSS * p->recent_lost, p->recent);
	return its << p->missed;
}

/* A port that may not send must not accumulate a claim for later */
static void keep_up(struct dblp_port *ports, u32 n, bool any, u64 pass)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (!may_send(&ports[i], any))
			ports[i].pass = pass;
}

u32 dblp_port_pick(struct dblp_port *ports, u32 n, u64 srtt, u32 bytes)
{
	struct dblp_port *best = NULL, *p;
	bool any = any_lives(ports, n);

	for (p = ports; p < ports + n; p++)
		if (may_send(p, any) &&
		    (!best || (s64)(p->pass - best->pass) < 0))
			best = p;
	keep_up(ports, n, any, best->pass);
	best->pass += bytes * cost(best, srtt, shortest(ports, n, srtt, any));
	return best - ports;
}

u32 dblp_port_next(struct dblp_sent *s, u32 len, u32 cwnd, u64 srtt, bool force)
{
	if (force || s->port_left < len || s->ports[s->port].missed) {
		s->port_left = max(len, cwnd / DBLP_SPRAY_PARTS);
		s->port = dblp_port_pick(s->ports, s->n_ports, srtt,
					 s->port_left);
	}
	s->port_left -= len;
	return s->port;
}

u32 dblp_port_due(struct dblp_port *ports, u32 n, u64 wait, u64 now)
{
	struct dblp_port *p;

	for (p = ports; p < ports + n; p++) {
		if (!dblp_port_dead(p) || now < p->probe_at)
			continue;
		if (!p->acked_at)
			p->acked_at = now;
		p->probe_at = now + min_t(u64, max(now - p->acked_at, wait),
					  DBLP_PTO_MAX_NS);
		break;
	}
	return p - ports;
}
