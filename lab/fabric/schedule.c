// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler: its connections, and the messages that it receives. runs.c sends the
 * answers.
 *
 * Messages have a fixed length. A process that does not read its messages, or sends an
 * invalid one, is disconnected.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schedule.h"

/* Maximum number of connections without a JOIN, in addition to members */
#define STRANGERS	64
/* Timeout for JOIN on a new connection */
#define SILENT_S	5
/* Maximum time between two checks of this timeout */
#define IDLE_MS		1000

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Sending */

static void refuse(struct scheduler *s, struct peer *p, int error)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_REFUSE, .error = (uint16_t)error };

	s->count.refused++;
	tell(p, &m);
}

static void tell_server(const struct scheduler *s, struct peer *p)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_SERVER, .addr = s->server->addr, .version = s->version,
	};

	tell(p, &m);
}

/* Joining */

static bool has_worker(const struct scheduler *s, uint32_t number)
{
	const struct peer *p;
	uint32_t i = 0;

	while ((p = next_peer(s, DBLP_FAB_WORKER, &i)))
		if (p->number == number)
			return true;
	return false;
}

/* Number of a host, or the number of hosts if it is unknown */
static uint32_t host_of(const struct scheduler *s, const struct sockaddr_dblp *addr)
{
	uint32_t i = 0;

	while (i < s->rates.hosts &&
	       memcmp(&s->host[i], &addr->sdblp_addr, sizeof(*s->host)))
		i++;
	return i;
}

/* Number of a host without processes, or the number of hosts if there is none */
static uint32_t left_host(const struct scheduler *s)
{
	bool used[HOSTS_MAX] = { 0 };
	uint32_t i;

	for (i = 0; i < s->n_peers; i++)
		if (s->peer[i]->known)
			used[s->peer[i]->host] = true;
	for (i = 0; i < s->rates.hosts && used[i];)
		i++;
	return i;
}

/* If the table is full, a new host replaces one without processes */
static int add_host(struct scheduler *s, struct peer *p)
{
	p->host = host_of(s, &p->addr);
	if (p->host < s->rates.hosts)
		return 0;
	if (s->rates.hosts == HOSTS_MAX)
		p->host = left_host(s);
	else
		s->rates.hosts++;
	if (p->host == HOSTS_MAX)
		return ENOSPC;
	s->host[p->host] = p->addr.sdblp_addr;
	memset(s->rates.host[p->host], 0, sizeof(*s->rates.host));
	return 0;
}

static int may_join(const struct scheduler *s, const struct dblp_fab_msg *m)
{
	if (m->count != s->o->count)
		return EMSGSIZE;
	if (m->role != DBLP_FAB_WORKER && !m->addr.sdblp_port)
		return EBADMSG;
	switch (m->role) {
	case DBLP_FAB_WORKER:
		if (m->from >= s->o->workers)
			return ENOENT;
		return has_worker(s, m->from) ? EEXIST : 0;
	case DBLP_FAB_SERVES:
		/* A second server would start with a model of 0 */
		return s->server || s->version ? EEXIST : 0;
	case DBLP_FAB_REPLICA:
		return s->replica ? EEXIST : 0;
	default:
		return 0;
	}
}

static void welcome(struct scheduler *s, struct peer *p)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_WELCOME, .fabric = s->secret };
	uint32_t i;

	tell(p, &m);
	if (p->role == DBLP_FAB_REPLICA)
		s->replica = p;
	if (p->role != DBLP_FAB_SERVES) {
		if (s->server)
			tell_server(s, p);
		return;
	}
	s->server = p;
	for (i = 0; i < s->n_peers; i++)
		if (s->peer[i]->known)
			tell_server(s, s->peer[i]);
}

static int on_join(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	int error = may_join(s, m);

	if (!error)
		error = -dblp_fab_name(p->conn.fd, true, &p->addr);
	if (!error)
		error = add_host(s, p);
	if (!error && m->role == DBLP_FAB_JOINS && joiner_at(s, p->host))
		error = EEXIST;
	if (error)
		return error;
	p->role = m->role;
	p->number = m->from;
	p->addr.sdblp_port = m->addr.sdblp_port;
	p->known = true;
	welcome(s, p);
	return 0;
}

/* Updates */

/* READY may overtake APPLIED: the server answers the worker first. @again remembers it */
static void on_ready(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	const bool again = (p->place == ON_ITS_WAY || p->place == THERE) && !p->again;

	if (p->place != NOWHERE && !again) {
		refuse(s, p, EBUSY);
		return;
	}
	if (m->version > s->version + leaving(s)) {
		refuse(s, p, ERANGE);
		return;
	}
	if (again)
		p->again = true;
	else
		p->place = READY;
	p->version = m->version;
	p->ready = ++s->events;
}

static void on_received(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	const struct dblp_fab_msg none = { .type = DBLP_FAB_ABANDON, .run = m->run };
	struct run *run = find_run(s, m->run);
	uint32_t i;

	for (i = 0; run && run->at == p && i < run->n; i++) {
		struct peer *w = run->part[i].worker;

		if (w && w->number == m->from && w->place == ON_ITS_WAY) {
			stop_using(s, w);
			w->place = THERE;
			return;
		}
	}
	tell(p, &none);
}

static void on_applied(struct scheduler *s, const struct dblp_fab_msg *m)
{
	struct run *run = find_run(s, m->run);
	uint32_t i;

	if (m->version > s->version)
		s->version = m->version;
	s->count.applied += m->updates;
	s->count.runs += !!m->updates;
	if (!run)
		return;
	s->count.joined += run->n > 1 ? run->n : 0;
	for (i = 0; i < run->n; i++)
		if (run->part[i].worker)
			take_back(run->part[i].worker, false);
	free_run(s, run);
}

static void on_failed(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	struct run *run = find_run(s, m->run);

	if (run && (p->run == run || p == run->at || (p == s->server && run->leaves)))
		fail_run(s, run, run->at != p);
}

static void on_rate(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	const uint32_t to = host_of(s, &m->addr);

	if (to < s->rates.hosts && to != p->host && m->rate)
		rates_sample(&s->rates, p->host, to, m->rate);
}

/* Returns 0, or a positive errno: the process is disconnected */
static int on_message(struct scheduler *s, struct peer *p, const struct dblp_fab_msg *m)
{
	const bool worker = p->known && p->role == DBLP_FAB_WORKER;
	const bool joiner = p->known && p->role == DBLP_FAB_JOINS;

	if (m->type == DBLP_FAB_JOIN && !p->known)
		return on_join(s, p, m);
	if (m->type == DBLP_FAB_READY && worker)
		on_ready(s, p, m);
	else if (m->type == DBLP_FAB_RECEIVED && joiner)
		on_received(s, p, m);
	else if (m->type == DBLP_FAB_APPLIED && p == s->server)
		on_applied(s, m);
	else if (m->type == DBLP_FAB_FAILED && p->known)
		on_failed(s, p, m);
	else if (m->type == DBLP_FAB_RATE && p->known)
		on_rate(s, p, m);
	else
		return EPROTO;
	return 0;
}

/* Leaving */

/*
 * The run on its way to the old server may be applied, and workers may have read its
 * model. So the new server's versions continue after that run, or updates of such a
 * model would have an unknown version.
 */
static void promote(struct scheduler *s)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_PROMOTE, .version = s->version + leaving(s),
	};
	struct run *run, *next;
	uint32_t i;

	s->version = m.version;
	for (run = s->runs; run; run = next) {
		next = run->next;
		if (run->leaves)
			fail_run(s, run, true);
	}
	s->server = s->replica;
	s->replica = NULL;
	if (!s->server)
		return;
	s->count.takeovers++;
	s->server->role = DBLP_FAB_SERVES;
	tell(s->server, &m);
	for (i = 0; i < s->n_peers; i++)
		if (s->peer[i]->known && s->peer[i] != s->server)
			tell_server(s, s->peer[i]);
}

static void lose_worker(struct scheduler *s, struct peer *p)
{
	uint32_t i;

	if (!p->run)
		return;
	if (p->place != THERE) {
		fail_run(s, p->run, true);
		return;
	}
	for (i = 0; i < p->run->n; i++)
		if (p->run->part[i].worker == p)
			p->run->part[i].worker = NULL;
}

static void lose_joiner(struct scheduler *s, struct peer *p)
{
	struct run *run, *next;

	for (run = s->runs; run; run = next) {
		next = run->next;
		if (run->at == p)
			fail_run(s, run, false);
	}
}

/* Remove a process; one that has not joined counts as a stranger */
static void lose(struct scheduler *s, uint32_t i)
{
	struct peer *p = s->peer[i];

	dblp_fab_hang_up(&p->conn);
	s->peer[i] = s->peer[--s->n_peers];
	if (!p->known)
		s->count.strangers++;
	else if (p->role == DBLP_FAB_WORKER)
		lose_worker(s, p);
	else if (p->role == DBLP_FAB_JOINS)
		lose_joiner(s, p);
	else if (p == s->server)
		promote(s);
	else if (p == s->replica)
		s->replica = NULL;
	free(p);
}

/* Connections */

/* Close the oldest connection without a JOIN; false: all are members */
static bool make_room(struct scheduler *s)
{
	uint32_t i, oldest = s->n_peers;

	for (i = 0; i < s->n_peers; i++)
		if (!s->peer[i]->known &&
		    (oldest == s->n_peers || s->peer[i]->since < s->peer[oldest]->since))
			oldest = i;
	if (oldest == s->n_peers)
		return false;
	lose(s, oldest);
	return true;
}

static void let_in(struct scheduler *s)
{
	const int fd = dblp_accept(s->listener);
	struct peer *p;

	/* Out of descriptors or memory: accept again when a connection has ended */
	s->deaf = is_exhausted(fd) && !make_room(s);
	if (fd < 0)
		return;
	p = s->n_peers < s->room || make_room(s) ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		s->count.strangers++;
		close(fd);
		return;
	}
	p->conn = (struct dblp_fab_conn) { fd, IPPROTO_TCP };
	p->since = now_ns();
	s->peer[s->n_peers++] = p;
	if (dblp_fab_setup(&p->conn, s->o->timeout_ms))
		lose(s, s->n_peers - 1);
}

/* Receive a part of the next message; false: EOF, an error, or an invalid message */
static bool hear(struct scheduler *s, struct peer *p)
{
	ssize_t n = recv(p->conn.fd, (char *)&p->in + p->got, sizeof(p->in) - p->got,
			 MSG_DONTWAIT);
	int error;

	if (n <= 0)
		return n && (errno == EAGAIN || errno == EINTR);
	p->got += (size_t)n;
	if (p->got < sizeof(p->in))
		return true;
	p->got = 0;
	error = -dblp_fab_check(&p->in);
	if (!error)
		error = on_message(s, p, &p->in);
	if (error)
		refuse(s, p, error);
	return !error;
}

/* Iterate backwards: lose() moves the last entry into the hole */
static void hear_all(struct scheduler *s)
{
	const uint64_t now = now_ns();
	uint32_t i;

	for (i = s->n_peers; i--;) {
		struct peer *p = s->peer[i];

		if ((s->poll[i + 1].revents && !hear(s, p)) ||
		    (!p->known && now - p->since > SILENT_S * NS))
			lose(s, i);
	}
}

static void wait_for_events(struct scheduler *s)
{
	uint32_t i;

	s->poll[0] = (struct pollfd) { s->deaf ? -1 : s->listener, POLLIN, 0 };
	s->deaf = false;
	for (i = 0; i < s->n_peers; i++)
		s->poll[i + 1] = (struct pollfd) { s->peer[i]->conn.fd, POLLIN, 0 };
	if (poll(s->poll, s->n_peers + 1, s->wait_ms) < 0)
		return;
	hear_all(s);
	if (s->poll[0].revents)
		let_in(s);
	s->wait_ms = IDLE_MS;
	act(s);
}

static void set_up(struct scheduler *s)
{
	struct sigaction action = { .sa_handler = end };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	s->room = s->o->workers + OTHERS_MAX + STRANGERS;
	s->peer = calloc(s->room, sizeof(*s->peer));
	s->poll = calloc(s->room + 1, sizeof(*s->poll));
	s->host = calloc(HOSTS_MAX, sizeof(*s->host));
	s->rates.host = calloc(HOSTS_MAX, sizeof(*s->rates.host));
	if (!s->peer || !s->poll || !s->host || !s->rates.host ||
	    getrandom(&s->secret, sizeof(s->secret), 0) != sizeof(s->secret))
		err(1, NULL);
	s->secret |= 1;
	s->listener = dblp_fab_listen(&s->o->listen, IPPROTO_TCP);
	errno = -s->listener;
	if (s->listener < 0)
		err(1, "cannot listen");
}

static void finish(struct scheduler *s, int error)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_REFUSE, .error = (uint16_t)error };
	const struct counters *c = &s->count;
	uint32_t i;

	for (i = 0; i < s->n_peers; i++)
		tell(s->peer[i], &m);
	printf("version %" PRIu64 ", applied %" PRIu64 ", messages %" PRIu64 ", joined %" PRIu64
	       ", dropped %" PRIu64 ", failed %" PRIu64 ", refused %" PRIu64 ", strangers %" PRIu64
	       ", takeovers %" PRIu64 "\n", s->version, c->applied, c->runs, c->joined, c->dropped,
	       c->failed, c->refused, c->strangers, c->takeovers);
}

int schedule(const struct options *o)
{
	struct scheduler s = { .o = o };

	set_up(&s);
	while (!ended && (s.server || !s.version))
		wait_for_events(&s);
	finish(&s, ended ? ESHUTDOWN : EHOSTDOWN);
	if (!ended)
		warnx("the server has failed, and there is no replica");
	return ended ? 0 : 1;
}
