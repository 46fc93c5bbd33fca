// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans, and runs of updates on their way. A plan is made when all runs of the last plan
 * have left for the server and two updates are ready. Further updates may join its last
 * run while it waits. Its first run leaves when it has the updates of half of the
 * workers, or the server's link has been idle for the time of one update.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "order.h"
#include "schedule.h"

/* Maximum wait for more updates, seconds, if the server's link is slow */
#define LEG_MAX_S	1

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* A short message only fails if the process does not read. hear() then sees its EOF */
void tell(struct peer *p, const struct dblp_fab_msg *m)
{
	struct dblp_fab_msg sent = *m;

	sent.magic = DBLP_FAB_MAGIC;
	if (p->conn.fd >= 0 && send(p->conn.fd, &sent, sizeof(sent), MSG_DONTWAIT |
				    MSG_NOSIGNAL) != sizeof(sent))
		shutdown(p->conn.fd, SHUT_RDWR);
}

struct peer *next_peer(const struct scheduler *s, enum dblp_fab_role role, uint32_t *i)
{
	struct peer *p;

	while (*i < s->n_peers) {
		p = s->peer[(*i)++];
		if (p->known && p->role == role)
			return p;
	}
	return NULL;
}

struct run *find_run(const struct scheduler *s, uint64_t id)
{
	struct run *r = s->runs;

	while (r && r->id != id)
		r = r->next;
	return r;
}

static uint32_t count_updates(const struct scheduler *s, bool leaves)
{
	const struct run *r;
	uint32_t n = 0;

	for (r = s->runs; r; r = r->next)
		n += r->leaves == leaves ? r->n : 0;
	return n;
}

uint32_t leaving(const struct scheduler *s)
{
	return count_updates(s, true);
}

static uint32_t ahead(const struct scheduler *s)
{
	return count_updates(s, false);
}

void stop_using(struct scheduler *s, struct peer *w)
{
	const struct peer *to = w->run->at ?: s->server;

	if (to) {
		s->rates.host[w->host][RATE_TX].used -= w->used;
		s->rates.host[to->host][RATE_RX].used -= w->used;
	}
	w->used = 0;
}

void free_run(struct scheduler *s, struct run *run)
{
	struct run **at = &s->runs;
	uint32_t i;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	for (i = 0; i < run->n; i++) {
		if (!run->part[i].worker)
			continue;
		stop_using(s, run->part[i].worker);
		run->part[i].worker->run = NULL;
	}
	if (run->leaves)
		s->idle_since = now_ns();
	free(run);
}

/* The worker may have sent READY again before the end of its run was known */
void take_back(struct peer *w, bool ready)
{
	w->place = ready || w->again ? READY : NOWHERE;
	w->again = false;
}

/*
 * Ends a run that will not reach the server. Its unsent updates are ready again. A worker
 * that has sent its update gets an error from the receiver, and sends READY again.
 */
void fail_run(struct scheduler *s, struct run *run, bool tell_joiner)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_ABANDON, .run = run->id };
	uint32_t i;

	s->count.failed++;
	if (run->at && tell_joiner)
		tell(run->at, &m);
	for (i = 0; i < run->n; i++) {
		struct peer *w = run->part[i].worker;

		if (w)
			take_back(w, w->place == PLANNED);
	}
	free_run(s, run);
}

static void grant(struct scheduler *s, struct run *run, uint32_t place, uint64_t first)
{
	const struct peer *to = run->at ?: s->server;
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_GRANT, .run = run->id, .place = place, .first = first,
		.addr = to->addr,
	};
	struct peer *w = run->part[place].worker;

	w->place = ON_ITS_WAY;
	if (w->host != to->host)
		w->used = rates_use(&s->rates, w->host, to->host);
	tell(w, &m);
}

static bool has_room(const struct scheduler *s, const struct peer *from, const struct peer *to)
{
	return from->host == to->host || rates_left(&s->rates, to->host, RATE_RX) >=
					 rates_of(&s->rates, to->host, RATE_RX) / 2;
}

/* Send updates to joining hosts, as many at a time as their devices have room for */
static void send_members(struct scheduler *s)
{
	struct run *run;
	struct peer *w;
	uint32_t i;

	for (run = s->runs; run; run = run->next) {
		for (i = 0; run->at && i < run->n; i++) {
			w = run->part[i].worker;
			if (w && w->place == PLANNED && has_room(s, w, run->at))
				grant(s, run, i, 0);
		}
	}
}

static bool is_whole(const struct run *run)
{
	uint32_t i;

	for (i = 0; run->at && i < run->n; i++)
		if (run->part[i].worker && run->part[i].worker->place != THERE)
			return false;
	return true;
}

static double leg_seconds(const struct scheduler *s, const struct run *run)
{
	const struct peer *from = run->at ?: run->part[0].worker;
	const double tx = rates_left(&s->rates, from->host, RATE_TX);
	const double rx = rates_left(&s->rates, s->server->host, RATE_RX);

	return 1 / (tx < rx ? tx : rx);
}

static void leave(struct scheduler *s, struct run *run)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_LEAVE, .run = run->id, .first = s->version + 1,
		.updates = run->n,
	};

	run->leaves = true;
	if (run->at)
		tell(run->at, &m);
	else
		grant(s, run, 0, s->version + 1);
}

static uint32_t count_workers(const struct scheduler *s)
{
	uint32_t n = 0, i = 0;

	while (next_peer(s, DBLP_FAB_WORKER, &i))
		n++;
	return n;
}

/* May a run of @n updates leave? If more updates are worth waiting for, sets @wait_ms */
static bool is_time(struct scheduler *s, uint32_t n)
{
	const double leg = s->o->count * sizeof(float) /
			   rates_of(&s->rates, s->server->host, RATE_RX);
	const uint64_t until = s->idle_since + (leg < LEG_MAX_S ? leg : LEG_MAX_S) * NS;
	const uint64_t now = now_ns();

	if (2 * n >= count_workers(s))
		return true;
	if (leaving(s))
		return false;
	if (now < until)
		s->wait_ms = (until - now) / 1000000 + 1;
	return now >= until;
}

/* The runs that fab_next() decides on, with the versions of all their updates */
struct legs {
	struct run	*run[FAB_UPDATES_MAX];
	struct fab_leg	leg[FAB_UPDATES_MAX];
	uint64_t	version[FAB_UPDATES_MAX];
	uint32_t	n;
};

static void list_legs(const struct scheduler *s, struct legs *l)
{
	uint64_t *v = l->version;
	struct run *run;
	uint32_t i;

	l->n = 0;
	for (run = s->runs; run; run = run->next) {
		l->run[l->n] = run;
		l->leg[l->n++] = (struct fab_leg) {
			run->n, v, is_whole(run), leg_seconds(s, run),
		};
		for (i = 0; i < run->n; i++)
			*v++ = run->part[i].version;
	}
}

/*
 * Send a run to the server if none is on its way. A late run fails: plan() then drops its
 * updates.
 */
static void send_run(struct scheduler *s)
{
	struct legs l;
	uint32_t late;
	int next;

	if (leaving(s) || (s->held && !is_time(s, ahead(s))))
		return;
	s->held = false;
	list_legs(s, &l);
	while ((late = fab_late(s->version, s->o->bound, l.leg, l.n)) < l.n) {
		fail_run(s, l.run[late], true);
		list_legs(s, &l);
		s->wait_ms = 0;
	}
	next = fab_next(s->version, s->o->bound, l.leg, l.n);
	if (next >= 0)
		leave(s, l.run[next]);
}

/* Plans */

static struct run *new_run(struct scheduler *s, struct peer *at)
{
	struct run *run = calloc(1, sizeof(*run)), **last = &s->runs;

	if (!run)
		err(1, NULL);
	run->id = ++s->last_run;
	run->at = at;
	while (*last)
		last = &(*last)->next;
	*last = run;
	return run;
}

static void put_part(struct run *run, struct peer *w)
{
	run->part[run->n++] = (struct part) { w, w->version };
	w->run = run;
	w->place = PLANNED;
}

static void drop(struct scheduler *s, struct peer *w)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_DROP, .version = s->version };

	s->count.dropped++;
	w->place = NOWHERE;
	tell(w, &m);
}

/* List the workers with a ready update; returns their number */
static uint32_t list_ready(const struct scheduler *s, struct peer **w)
{
	uint32_t n = 0, i = 0;
	struct peer *p;

	while ((p = next_peer(s, DBLP_FAB_WORKER, &i)))
		if (p->place == READY)
			w[n++] = p;
	return n;
}

struct peer *joiner_at(const struct scheduler *s, uint32_t host)
{
	struct peer *p;
	uint32_t i = 0;

	while ((p = next_peer(s, DBLP_FAB_JOINS, &i)))
		if (p->host == host)
			return p;
	return NULL;
}

static void look_at_hosts(const struct scheduler *s, struct fab_host *host,
			  double (*rate)(const struct rates *r, uint32_t host, enum rate_way way))
{
	struct peer *p;
	uint32_t i;

	for (i = 0; i < s->rates.hosts; i++)
		host[i] = (struct fab_host) {
			rate(&s->rates, i, RATE_TX), rate(&s->rates, i, RATE_RX), false,
		};
	for (i = 0; (p = next_peer(s, DBLP_FAB_JOINS, &i));)
		host[p->host].joins = true;
}

/* Policy fifo: send each update at once */
static void plan_fifo(struct scheduler *s, struct peer **w, uint32_t n)
{
	struct run *run;
	uint32_t i;

	for (i = 0; i < n; i++) {
		run = new_run(s, NULL);
		put_part(run, w[i]);
		run->leaves = true;
		grant(s, run, 0, 0);
	}
}

static void carry_out(struct scheduler *s, struct peer **w, uint32_t n,
		      const struct fab_plan *plan)
{
	struct run *run;
	uint32_t i, k;

	for (i = 0; i < plan->runs; i++) {
		const struct fab_run *r = &plan->run[i];

		run = new_run(s, r->at == FAB_DIRECT ? NULL : joiner_at(s, r->at));
		for (k = 0; k < r->n; k++)
			put_part(run, w[plan->order[r->first + k]]);
	}
	for (i = plan->sent; i < n; i++)
		drop(s, w[plan->order[i]]);
}

static struct fab_update update_of(const struct peer *w)
{
	return (struct fab_update) { w->host, w->version, w->ready };
}

/*
 * Add updates that arrive in time to the last run; returns the number of the others. The
 * limit is needed, because the updates of a worker that left and joined again count, too.
 */
static uint32_t come_along(struct fab_state *state, struct run *last, struct peer **w, uint32_t n)
{
	uint32_t i, left = 0;

	while (last && last->next)
		last = last->next;
	for (i = 0; i < n; i++) {
		const struct fab_update u = update_of(w[i]);

		if (last && last->at && !last->leaves && state->ahead < FAB_UPDATES_MAX &&
		    fab_comes_along(state, &u, last->at->host)) {
			put_part(last, w[i]);
			state->ahead++;
		} else {
			w[left++] = w[i];
		}
	}
	return left;
}

static void plan(struct scheduler *s)
{
	struct fab_host host[HOSTS_MAX];
	struct fab_update u[DBLP_FAB_WORKERS_MAX];
	struct peer *w[DBLP_FAB_WORKERS_MAX];
	uint32_t n = list_ready(s, w), i;
	struct fab_state state = {
		.version = s->version + leaving(s), .ahead = ahead(s), .bound = s->o->bound,
		.bytes = s->o->count * sizeof(float), .server = s->server->host,
		.hosts = s->rates.hosts, .host = host,
	};
	static struct fab_plan p;

	if (s->o->fifo)
		plan_fifo(s, w, n);
	if (s->o->fifo || !n)
		return;
	look_at_hosts(s, host, rates_of);
	n = come_along(&state, s->runs, w, n);
	if (!n || state.ahead || (n == 1 && !is_time(s, n)))
		return;
	s->held = true;
	look_at_hosts(s, host, rates_left);
	for (i = 0; i < n; i++)
		u[i] = update_of(w[i]);
	fab_order(&state, u, n, &p);
	carry_out(s, w, n, &p);
}

void act(struct scheduler *s)
{
	if (!s->server)
		return;
	plan(s);
	send_members(s);
	send_run(s);
}
