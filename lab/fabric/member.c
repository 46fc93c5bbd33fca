// SPDX-License-Identifier: GPL-2.0-only
#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "member.h"

/* Connections for data, each served by a thread */

/* Maximum number of connections, including those not yet authenticated */
#define OPEN_MAX	(2 * DBLP_FAB_WORKERS_MAX)
/* Further threads that may exist while they end */
#define ENDING		64
/* Pause of accept() when descriptors or memory run out, us */
#define DEAF_US		100000

struct guest {
	struct door		*door;
	struct dblp_fab_conn	conn;
	struct guest		*next;
};

bool door_ack(struct door *d, const struct dblp_fab_conn *c, uint64_t version, int error)
{
	const struct dblp_fab_msg ack = {
		.type = DBLP_FAB_ACK, .version = version, .error = (uint16_t)-error,
	};

	d->refused += !!error;
	return !dblp_fab_send(c, &ack);
}

float *door_update(struct door *d, const struct dblp_fab_conn *c)
{
	const size_t bytes = d->o->count * sizeof(float);
	float *u = malloc(bytes);

	if (!u)
		door_ack(d, c, 0, -ENOMEM);
	if (u && !dblp_fab_recv_bytes(c, u, bytes))
		return u;
	free(u);
	return NULL;
}

/* Remove a connection that is authenticated, or about to end, from @guests */
static void forget(struct guest *g)
{
	struct door *d = g->door;
	struct guest **at;

	pthread_mutex_lock(&d->lock);
	for (at = &d->guests; *at && *at != g;)
		at = &(*at)->next;
	if (*at)
		*at = g->next;
	pthread_mutex_unlock(&d->lock);
}

/*
 * Closes the unauthenticated connection that has been silent for longest. Its thread then
 * gets EOF.
 */
static void make_room(struct door *d)
{
	struct guest **at = &d->guests;

	pthread_mutex_lock(&d->lock);
	while (*at && (*at)->next)
		at = &(*at)->next;
	if (*at) {
		shutdown((*at)->conn.fd, SHUT_RDWR);
		*at = NULL;
	}
	pthread_mutex_unlock(&d->lock);
}

static void *serve_guest(void *arg)
{
	struct guest *g = arg;
	struct door *d = g->door;
	struct dblp_fab_msg m;
	bool known = false;
	int error;

	do {
		error = dblp_fab_recv(&g->conn, &m);
		if (error || m.fabric != d->secret) {
			d->strangers += !known || !error || error == -EBADMSG;
			break;
		}
		if (!known)
			forget(g);
		known = true;
		/* No timeout between messages, but within one */
	} while (d->answer(d->of, &g->conn, &m) && !dblp_fab_wait(&g->conn, -1));
	forget(g);
	dblp_fab_hang_up(&g->conn);
	d->open--;
	free(g);
	return NULL;
}

static bool let_in(struct door *d, int fd)
{
	struct guest *g = ++d->open <= OPEN_MAX + ENDING ? calloc(1, sizeof(*g)) : NULL;
	pthread_t thread;

	if (d->open > OPEN_MAX)
		make_room(d);

	if (!g) {
		close(fd);
		return false;
	}
	*g = (struct guest) { d, { fd, dblp_fab_protocol(d->o->transport) }, NULL };
	pthread_mutex_lock(&d->lock);
	g->next = d->guests;
	d->guests = g;
	pthread_mutex_unlock(&d->lock);
	if (!dblp_fab_setup(&g->conn, d->o->timeout_ms) &&
	    !pthread_create(&thread, NULL, serve_guest, g)) {
		pthread_detach(thread);
		return true;
	}
	forget(g);
	dblp_fab_hang_up(&g->conn);
	free(g);
	return false;
}

static void *accept_all(void *arg)
{
	struct door *d = arg;
	int fd;

	for (;;) {
		fd = dblp_accept(d->listener);
		if (fd >= 0 && !let_in(d, fd)) {
			d->open--;
			d->strangers++;
		}
		if (fd >= 0 || fd == -EINTR || fd == -ECONNABORTED)
			continue;
		if (is_exhausted(fd))
			make_room(d);
		usleep(DEAF_US);
	}
	return NULL;
}

static void listen_at(struct door *d, struct sockaddr_dblp *at)
{
	struct sockaddr_dblp name;
	int error;

	d->listener = dblp_fab_listen(at, dblp_fab_protocol(d->o->transport));
	if (d->listener == -EAFNOSUPPORT)
		errx(1, "%s", access("/sys/module/dblp", F_OK) ?
		     "no AF_DBLP (is dblp.ko loaded?)" :
		     "this kernel has no IPv6, which the address needs");
	error = d->listener < 0 ? d->listener : dblp_fab_name(d->listener, false, &name);
	errno = -error;
	if (error)
		err(1, "cannot listen for data");
	at->sdblp_port = name.sdblp_port;
}

static void open_door(struct door *d)
{
	pthread_t thread;

	pthread_mutex_init(&d->lock, NULL);
	if (pthread_create(&thread, NULL, accept_all, d))
		errx(1, "cannot make a thread");
	pthread_detach(thread);
}

/* The scheduler */

static void cannot_join(const struct options *o, int error)
{
	if (error == -EMSGSIZE)
		errx(1, "the scheduler's model does not have %llu elements",
		     (unsigned long long)o->count);
	if (error == -EEXIST)
		errx(1, "a process with this subcommand has joined already (join: on this host)");
	errx(1, "cannot join the scheduler: %s", strerror(-error));
}

void member_join(struct member *m, struct door *d, enum dblp_fab_role role)
{
	const struct options *o = d->o;
	struct dblp_fab_msg hello = { .type = DBLP_FAB_JOIN, .role = role, .count = o->count };
	int error = dblp_fab_dial(&m->ctl, &o->scheduler, IPPROTO_TCP, o->timeout_ms);

	pthread_mutex_init(&m->lock, NULL);
	if (!error)
		error = dblp_fab_name(m->ctl.fd, false, &hello.addr);
	if (error)
		cannot_join(o, error);
	hello.addr.sdblp_port = 0;
	listen_at(d, &hello.addr);
	error = dblp_fab_join(&m->ctl, &hello, &d->secret);
	if (error)
		cannot_join(o, error);
	open_door(d);
}

void member_tell(struct member *m, const struct dblp_fab_msg *msg)
{
	pthread_mutex_lock(&m->lock);
	dblp_fab_send(&m->ctl, msg);
	pthread_mutex_unlock(&m->lock);
}

void member_fail(struct member *m, uint64_t run)
{
	const struct dblp_fab_msg failed = { .type = DBLP_FAB_FAILED, .run = run };

	member_tell(m, &failed);
}

void member_tell_rate(struct member *m, const struct dblp_fab_conn *c)
{
	struct dblp_fab_msg msg = { .type = DBLP_FAB_RATE, .rate = dblp_fab_rate(c) };

	if (msg.rate && !dblp_fab_name(c->fd, true, &msg.addr))
		member_tell(m, &msg);
}

bool member_hear(struct member *m, struct dblp_fab_msg *msg)
{
	int error = dblp_fab_wait(&m->ctl, -1);

	if (!error)
		error = dblp_fab_recv(&m->ctl, msg);
	if (error)
		errx(1, "the scheduler has failed: %s", strerror(-error));
	if (msg->type == DBLP_FAB_REFUSE && msg->error != ESHUTDOWN)
		errx(1, "the scheduler has given up: %s", strerror(msg->error));
	return msg->type != DBLP_FAB_REFUSE;
}
