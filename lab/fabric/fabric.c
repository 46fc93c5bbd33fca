// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * A worker of a fabric: see fabric.h. It has a connection to the scheduler, and
 * one to each host to which the scheduler has directed it.
 */

#include "fabric.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric_msg.h"

#define TIMEOUT_MS	10000
/* Attempts to send an update: hosts may fail meanwhile */
#define TRIES		8
/* Most connections for data that stay open */
#define PEERS		32

struct peer {
	struct sockaddr_dblp	addr;
	struct dblp_fab_conn	conn;
	uint64_t		used;
};

/**
 * struct dblp_fabric - a worker
 * @attr: its attributes
 * @protocol: protocol of the data
 * @ctl: connection to the scheduler
 * @secret: secret of the fabric
 * @server: address of the server; port 0: there is none
 * @source: host whose model has the last own update; port 0: none
 * @wanted: version of the model with that update
 * @peer: connections for data
 * @uses: counter for @used of &struct peer
 */
struct dblp_fabric {
	struct dblp_fabric_attr	attr;
	int			protocol;
	struct dblp_fab_conn	ctl;
	uint64_t		secret;
	struct sockaddr_dblp	server;
	struct sockaddr_dblp	source;
	uint64_t		wanted;
	struct peer		peer[PEERS];
	uint64_t		uses;
};

/* Connections for data */

static bool same(const struct sockaddr_dblp *a, const struct sockaddr_dblp *b)
{
	return a->sdblp_port == b->sdblp_port &&
	       !memcmp(&a->sdblp_addr, &b->sdblp_addr, sizeof(a->sdblp_addr));
}

/* The connection to an address, or the least recently used entry, closed */
static struct peer *peer_of(struct dblp_fabric *f, const struct sockaddr_dblp *to)
{
	struct peer *p, *oldest = f->peer;

	for (p = f->peer; p < f->peer + PEERS; p++) {
		if (p->conn.fd >= 0 && same(&p->addr, to))
			return p;
		if (p->used < oldest->used)
			oldest = p;
	}
	dblp_fab_hang_up(&oldest->conn);
	return oldest;
}

static int reach(struct dblp_fabric *f, const struct sockaddr_dblp *to,
		 struct peer **peer)
{
	struct peer *p = peer_of(f, to);
	int err = 0;

	if (p->conn.fd < 0)
		err = dblp_fab_dial(&p->conn, to, f->protocol,
				    f->attr.timeout_ms);
	p->addr = *to;
	p->used = err ? 0 : ++f->uses;
	*peer = p;
	return err;
}

static void lose(struct peer *p)
{
	dblp_fab_hang_up(&p->conn);
	p->used = 0;
}

/* The scheduler */

/*
 * Receive the scheduler's next message. Its silence is no failure: keepalive
 * detects that
 */
static int hear(struct dblp_fabric *f, struct dblp_fab_msg *m, int timeout_ms)
{
	int err = dblp_fab_wait(&f->ctl, timeout_ms);

	if (err)
		return err;
	if (dblp_fab_recv(&f->ctl, m))
		return -ENOTCONN;
	if (m->type == DBLP_FAB_SERVER) {
		f->server = m->addr;
		/* The failed server may have lost the last own update */
		if (f->wanted > m->version)
			f->wanted = m->version;
	}
	return m->type == DBLP_FAB_REFUSE ? -(int)m->error : 0;
}

/* Receive the next message of these types, a bit mask */
static int await(struct dblp_fabric *f, uint32_t types, struct dblp_fab_msg *m,
		 int timeout_ms)
{
	int err;

	do {
		err = hear(f, m, timeout_ms);
	} while (!err && !(1U << m->type & types));
	return err;
}

/* Read pending messages about servers */
static int catch_up(struct dblp_fabric *f)
{
	struct dblp_fab_msg m;
	int err = await(f, 0, &m, 0);

	return err == -ETIMEDOUT ? 0 : err;
}

/* Send to the scheduler. If that fails, pending messages may give the reason */
static int tell(struct dblp_fabric *f, const struct dblp_fab_msg *m)
{
	if (!dblp_fab_send(&f->ctl, m))
		return 0;
	return catch_up(f) ?: -ENOTCONN;
}

static int join(struct dblp_fabric *f)
{
	const struct dblp_fab_msg hello = {
		.type = DBLP_FAB_JOIN,
		.role = DBLP_FAB_WORKER,
		.from = f->attr.worker,
		.count = f->attr.count,
	};
	struct dblp_fab_msg m;
	int err = dblp_fab_join(&f->ctl, &hello, &f->secret);

	return err ?: await(f, 1U << DBLP_FAB_SERVER, &m, -1);
}

static int check(struct dblp_fabric_attr *own, const struct dblp_fabric_attr *attr)
{
	size_t i, size = attr->size;

	if (size < offsetof(struct dblp_fabric_attr, timeout_ms))
		return -EINVAL;
	for (i = sizeof(*own); i < size; i++)
		if (((const char *)attr)[i])
			return -E2BIG;
	memset(own, 0, sizeof(*own));
	memcpy(own, attr, size < sizeof(*own) ? size : sizeof(*own));
	if (!own->transport)
		own->transport = "dblp";
	if (!own->timeout_ms)
		own->timeout_ms = TIMEOUT_MS;
	if (!own->scheduler || own->reserved || !own->count ||
	    own->count > DBLP_FAB_COUNT_MAX || own->timeout_ms > INT32_MAX ||
	    own->worker >= DBLP_FAB_WORKERS_MAX ||
	    dblp_fab_protocol(own->transport) < 0)
		return -EINVAL;
	return 0;
}

int dblp_fabric_open(struct dblp_fabric **fabric,
		     const struct dblp_fabric_attr *attr)
{
	struct sockaddr_dblp at;
	struct dblp_fabric *f = calloc(1, sizeof(*f));
	int i, err = f ? check(&f->attr, attr) : -ENOMEM;

	if (!err)
		err = dblp_addr_parse(f->attr.scheduler, &at);
	if (!err && !at.sdblp_port)
		err = -EINVAL;
	if (err) {
		free(f);
		return err;
	}
	f->protocol = dblp_fab_protocol(f->attr.transport);
	for (i = 0; i < PEERS; i++)
		f->peer[i].conn.fd = -1;
	err = dblp_fab_dial(&f->ctl, &at, IPPROTO_TCP, f->attr.timeout_ms);
	if (!err)
		err = join(f);
	if (err)
		dblp_fabric_close(f);
	else
		*fabric = f;
	return err;
}

void dblp_fabric_close(struct dblp_fabric *f)
{
	int i;

	if (!f)
		return;
	for (i = 0; i < PEERS; i++)
		dblp_fab_hang_up(&f->peer[i].conn);
	dblp_fab_hang_up(&f->ctl);
	free(f);
}

/* Pulling */

static int fetch(struct dblp_fabric *f, const struct sockaddr_dblp *from,
		 float *model, uint64_t *version)
{
	struct peer *p;
	int err = reach(f, from, &p);

	if (!err)
		err = dblp_fab_pull(&p->conn, f->secret, f->wanted, version);
	if (!err)
		err = dblp_fab_recv_bytes(&p->conn, model,
					  f->attr.count * sizeof(*model));
	if (err)
		lose(p);
	return err;
}

int dblp_pull(struct dblp_fabric *f, float *model, uint64_t count,
	      uint64_t *version)
{
	struct sockaddr_dblp server;
	struct dblp_fab_msg m;
	int err, tries;

	if (count != f->attr.count)
		return -EMSGSIZE;
	err = catch_up(f);
	if (!err && f->source.sdblp_port) {
		if (!fetch(f, &f->source, model, version))
			return 0;
		/*
		 * Do not try a failed host again: each attempt would take the
		 * timeout
		 */
		f->source.sdblp_port = 0;
	}
	for (tries = 0; !err && tries < TRIES; tries++) {
		server = f->server;
		err = fetch(f, &server, model, version);
		if (!err)
			return 0;
		err = catch_up(f);
		/* The server has failed: wait for the next one */
		if (!err && same(&server, &f->server))
			err = await(f, 1U << DBLP_FAB_SERVER, &m,
				    (int)f->attr.timeout_ms);
	}
	return err ?: -EHOSTDOWN;
}

/* Pushing */

/* Ask the scheduler whether and where to send an update */
static int ask(struct dblp_fabric *f, uint64_t version,
	       struct dblp_fab_msg *answer)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_READY,
		.version = version,
	};

	return tell(f, &m) ?: await(f, 1U << DBLP_FAB_GRANT | 1U << DBLP_FAB_DROP,
				    answer, -1);
}

static int deliver(struct dblp_fabric *f, const float *update, uint64_t version,
		   const struct dblp_fab_msg *grant, struct dblp_fab_msg *ack,
		   uint64_t *rate)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_PUSH,
		.from = f->attr.worker,
		.place = grant->place,
		.updates = 1,
		.fabric = f->secret,
		.run = grant->run,
		.version = version,
		.first = grant->first,
	};
	struct peer *p;
	int err = reach(f, &grant->addr, &p);

	if (!err)
		err = dblp_fab_push(&p->conn, &m, update, f->attr.count, ack);
	if (err)
		lose(p);
	else
		*rate = dblp_fab_rate(&p->conn);
	return err;
}

/* An update was delivered: report the delivery rate */
static int delivered(struct dblp_fabric *f, const struct dblp_fab_msg *grant,
		     const struct dblp_fab_msg *ack, uint64_t rate)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_RATE, .rate = rate, .addr = grant->addr,
	};

	f->source = grant->addr;
	f->wanted = ack->version;
	return rate ? tell(f, &m) : 0;
}

/* Try once; -ECANCELED: retry */
static int push_once(struct dblp_fabric *f, const float *update, uint64_t version,
		     struct dblp_pushed *pushed)
{
	struct dblp_fab_msg m = { .type = DBLP_FAB_FAILED }, grant, ack;
	uint64_t rate = 0;
	int err = ask(f, version, &grant);

	if (err)
		return err;
	pushed->tries++;
	pushed->dropped = grant.type == DBLP_FAB_DROP;
	pushed->version = grant.version;
	if (pushed->dropped) {
		/* Pull from the server: the model at @source may be too old */
		f->source.sdblp_port = 0;
		f->wanted = grant.version;
		return 0;
	}
	err = deliver(f, update, version, &grant, &ack, &rate);
	if (!err && !ack.error) {
		pushed->version = ack.version;
		return delivered(f, &grant, &ack, rate);
	}
	m.run = grant.run;
	/*
	 * ESTALE: a new server may have a later version than the scheduler knew
	 */
	if (err || ack.error == ESTALE)
		ack.error = ECANCELED;
	return tell(f, &m) ?: -(int)ack.error;
}

/*
 * The scheduler detects a failed server itself, and then has another one, or
 * none. The pauses give it a second for that.
 */
static void pause_before(uint32_t tries)
{
	const struct timespec t = { .tv_nsec = 4000000L << tries };

	nanosleep(&t, NULL);
}

int dblp_push(struct dblp_fabric *f, const float *update, uint64_t count,
	      uint64_t version, struct dblp_pushed *pushed, size_t size)
{
	struct dblp_pushed own = { 0 };
	int err;

	if (count != f->attr.count)
		return -EMSGSIZE;
	if (isnan(dblp_fab_norm(update, count)))
		return -EDOM;
	while ((err = push_once(f, update, version, &own)) == -ECANCELED && own.tries < TRIES)
		pause_before(own.tries);
	if (pushed)
		memcpy(pushed, &own, size < sizeof(own) ? size : sizeof(own));
	return err;
}
