// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server, which has the model, and the replica, which has a copy and becomes the
 * server when that fails.
 *
 * A step is made only if the replica is not too far behind thereafter. If it would be, the
 * model with the step goes to the replica first, and to all others when it is there. Else
 * the replica gets the model when nobody else does.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "member.h"
#include "order.h"

/*
 * A copy takes as much of the network as a model for a worker does: without need none is
 * made for less than this share of the bound
 */
#define WORTH_A_COPY	0.5
/* A replica that has lost the server tries again, unless it is to take its place */
#define RETRY_US	100000

/**
 * struct server - a server, or a replica
 * @o: the command line
 * @member: the scheduler
 * @door: connections for data
 * @turn: held by who applies an update, from beginning to end
 * @lock: protects all below
 * @changed: any of it
 * @serves: it is the server, not a replica
 * @model: the model
 * @next: the model after the step that waits for the replica
 * @version: of @model
 * @next_version: of @next, 0: none
 * @followed: there is a replica
 * @pulls: models on their way to workers
 * @behind: how far the replica is behind
 * @copies: models sent to the replica
 * @first: those because it would have been too far behind
 * @leader: replica: where the server is; port 0: nowhere
 */
struct server {
	const struct options	*o;
	struct member		member;
	struct door		door;
	pthread_mutex_t		turn;
	pthread_mutex_t		lock;
	pthread_cond_t		changed;
	bool			serves;
	float			*model;
	float			*next;
	uint64_t		version;
	uint64_t		next_version;
	bool			followed;
	uint32_t		pulls;
	struct fab_divergence	behind;
	uint64_t		copies;
	uint64_t		first;
	struct sockaddr_dblp	leader;
};

static void *zeroed(const struct options *o)
{
	float *v = calloc(o->count, sizeof(*v));

	if (!v)
		err(1, NULL);
	return v;
}

static void lock(struct server *s)
{
	pthread_mutex_lock(&s->lock);
}

static void unlock(struct server *s)
{
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void wait_change(struct server *s)
{
	pthread_cond_wait(&s->changed, &s->lock);
}

/* A replica is not the server before the scheduler says so. For as long as a host may be silent */
static bool wait_until_it_serves(struct server *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += s->o->timeout_ms / 1000;
	while (!s->serves)
		if (pthread_cond_clockwait(&s->changed, &s->lock, CLOCK_MONOTONIC, &until))
			return false;
	return true;
}

/* Updates */

static int check(const struct server *s, const struct dblp_fab_msg *m, double norm)
{
	if (isnan(norm))
		return -EDOM;
	if (m->first && m->first != s->version + 1)
		return -ESTALE;
	return m->version > s->version ? -ERANGE : 0;
}

/* The next model goes to the replica first */
static void lead(struct server *s, uint64_t version)
{
	s->next_version = version;
	s->first++;
	pthread_cond_broadcast(&s->changed);
	while (s->next_version)
		wait_change(s);
}

static void become(struct server *s, float **next, uint64_t version)
{
	float *old = s->model;

	s->model = *next;
	*next = old;
	s->version = version;
}

/* The model after a step; false: an element of it is not finite, so nobody could go on */
static bool make_next(struct server *s, const float *u, double step)
{
	bool finite = true;
	uint64_t i;

	for (i = 0; i < s->o->count; i++) {
		s->next[i] = s->model[i] - step * u[i];
		finite &= !!isfinite(s->next[i]);
	}
	return finite;
}

static int step(struct server *s, const float *u, double step, double norm,
		uint32_t updates)
{
	if (!make_next(s, u, step))
		return -EDOM;
	if (s->followed && s->o->div_max && !fab_divergence_fits(&s->behind, norm))
		lead(s, s->version + updates);
	else if (s->followed)
		fab_divergence_step(&s->behind, norm);
	become(s, &s->next, s->version + updates);
	return 0;
}

static void log_step(struct server *s, const struct dblp_fab_msg *m, double norm,
		     uint64_t delay)
{
	if (!s->o->log)
		return;
	fprintf(s->o->log, "applied %" PRIu64 " %u %.9g %.9g %" PRIu64 "\n", s->version,
		m->updates, norm, s->behind.open + s->behind.sent, delay);
	fflush(s->o->log);
}

/* Sums of others have their weights already. The version it has become, or an error */
static int apply(struct server *s, const struct dblp_fab_msg *m, const float *u,
		 uint64_t *version)
{
	const double norm = dblp_fab_norm(u, s->o->count);
	double eta = s->o->eta;
	uint64_t delay = 0;
	int error;

	pthread_mutex_lock(&s->turn);
	lock(s);
	error = wait_until_it_serves(s) ? check(s, m, norm) : -EHOSTDOWN;
	if (!error) {
		if (m->role != DBLP_FAB_JOINS) {
			delay = s->version - m->version;
			eta *= fab_weight(delay);
		}
		error = step(s, u, eta, eta * norm, m->updates);
	}
	if (!error)
		log_step(s, m, eta * norm, delay);
	*version = s->version;
	unlock(s);
	pthread_mutex_unlock(&s->turn);
	return error;
}

static bool push(struct server *s, const struct dblp_fab_conn *c,
		 const struct dblp_fab_msg *m)
{
	struct dblp_fab_msg told = {
		.type = DBLP_FAB_APPLIED, .run = m->run, .updates = m->updates,
	};
	float *u = door_update(&s->door, c);
	int error;

	if (!u) {
		member_fail(&s->member, m->run);
		return false;
	}
	error = apply(s, m, u, &told.version);
	if (!error)
		member_tell(&s->member, &told);
	free(u);
	return door_ack(&s->door, c, told.version, error);
}

static bool send_model(const struct server *s, const struct dblp_fab_conn *c,
		       const float *v, uint64_t version)
{
	const struct dblp_fab_msg m = { .type = DBLP_FAB_MODEL, .version = version };

	return !dblp_fab_send(c, &m) &&
	       !dblp_fab_send_bytes(c, v, s->o->count * sizeof(*v));
}

static bool pull(struct server *s, const struct dblp_fab_conn *c,
		 const struct dblp_fab_msg *m)
{
	const size_t bytes = s->o->count * sizeof(float);
	float *copy = malloc(bytes);
	uint64_t version;
	bool sent;
	int error;

	if (!copy)
		return door_ack(&s->door, c, 0, -ENOMEM);
	lock(s);
	error = !wait_until_it_serves(s) ? -ETIMEDOUT : m->version > s->version ? -ERANGE : 0;
	version = s->version;
	s->pulls += !error;
	if (!error)
		memcpy(copy, s->model, bytes);
	unlock(s);
	sent = error ? door_ack(&s->door, c, version, error) : send_model(s, c, copy, version);
	if (sent && !error)
		member_tell_rate(&s->member, c);
	lock(s);
	s->pulls -= !error;
	unlock(s);
	free(copy);
	return sent;
}

/* A replica */

/* What it is to have now, and of which version that is */
static uint64_t next_copy(struct server *s, float *copy, bool *is_next)
{
	uint64_t version;

	lock(s);
	while (!s->next_version && (s->pulls || !s->behind.open ||
				    s->behind.open < WORTH_A_COPY * s->behind.max))
		wait_change(s);
	*is_next = s->next_version;
	version = *is_next ? s->next_version : s->version;
	memcpy(copy, *is_next ? s->next : s->model, s->o->count * sizeof(*copy));
	fab_divergence_send(&s->behind);
	s->copies++;
	unlock(s);
	return version;
}

static bool acknowledged(const struct dblp_fab_conn *c)
{
	struct dblp_fab_msg m;

	return !dblp_fab_recv(c, &m) && m.type == DBLP_FAB_ACK && !m.error;
}

/* Only this thread sends copies, so that all that was sent is acknowledged */
static void copied(struct server *s, bool is_next, bool alive)
{
	lock(s);
	if (alive)
		fab_divergence_ack(&s->behind);
	else
		s->followed = false;
	if (is_next || !alive)
		s->next_version = 0;
	unlock(s);
}

/* The first copy: before it has come, it is no replica. false: there is one, or no server */
static bool begin_copies(struct server *s, float *copy, uint64_t *version)
{
	bool begins;

	lock(s);
	begins = s->serves && !s->followed;
	if (begins) {
		*version = s->version;
		memcpy(copy, s->model, s->o->count * sizeof(*copy));
		s->behind = (struct fab_divergence) { .max = s->o->div_max };
		s->followed = true;
	}
	unlock(s);
	return begins;
}

static void lead_replica(struct server *s, const struct dblp_fab_conn *c, float *copy,
			 uint64_t version)
{
	bool alive, is_next = false;

	do {
		alive = send_model(s, c, copy, version) && acknowledged(c);
		copied(s, is_next, alive);
		if (alive)
			version = next_copy(s, copy, &is_next);
	} while (alive);
	warnx("the replica has failed");
}

/* At the lowest priority: what the network has time for */
static void yield_to_others(const struct server *s, const struct dblp_fab_conn *c)
{
	const struct timeval soon = { s->o->timeout_ms / 2000, 0 };
	const int lowest = 1;

	setsockopt(c->fd, SOL_SOCKET, SO_PRIORITY, &lowest, sizeof(lowest));
	/* Before those give up who wait for a step that waits for the replica */
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
}

static bool follow(struct server *s, const struct dblp_fab_conn *c)
{
	float *copy = malloc(s->o->count * sizeof(*copy));
	uint64_t version;

	if (copy && begin_copies(s, copy, &version)) {
		yield_to_others(s, c);
		lead_replica(s, c, copy, version);
	} else {
		door_ack(&s->door, c, 0, copy ? -EEXIST : -ENOMEM);
	}
	free(copy);
	return false;
}

static bool answer(void *of, const struct dblp_fab_conn *c, const struct dblp_fab_msg *m)
{
	switch (m->type) {
	case DBLP_FAB_PUSH:
		return push(of, c, m);
	case DBLP_FAB_PULL:
		return pull(of, c, m);
	case DBLP_FAB_FOLLOW:
		return follow(of, c);
	default:
		return false;
	}
}

/* Being a replica */

/* A copy becomes the model once it is whole, unless we have become the server meanwhile */
static int take_copy(struct server *s, const struct dblp_fab_conn *c, float **copy)
{
	const struct dblp_fab_msg ack = { .type = DBLP_FAB_ACK };
	struct dblp_fab_msg m;
	int error = dblp_fab_recv(c, &m);

	if (!error && m.type != DBLP_FAB_MODEL)
		return -EPROTO;
	if (!error)
		error = dblp_fab_recv_bytes(c, *copy, s->o->count * sizeof(**copy));
	if (error)
		return error;
	lock(s);
	error = s->serves ? -ESTALE : 0;
	if (!error) {
		become(s, copy, m.version);
		s->copies++;
	}
	unlock(s);
	return error ?: dblp_fab_send(c, &ack);
}

/* The next copy may take as long as it likes */
static void take_copies(struct server *s, struct dblp_fab_conn *c, float **copy)
{
	const struct timeval forever = { 0 };
	const struct dblp_fab_msg hello = {
		.type = DBLP_FAB_FOLLOW, .fabric = s->door.secret,
	};

	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	if (!dblp_fab_send(c, &hello))
		while (!take_copy(s, c, copy))
			;
	dblp_fab_hang_up(c);
}

static void *be_replica(void *arg)
{
	struct server *s = arg;
	float *copy = zeroed(s->o);
	struct sockaddr_dblp leader;
	struct dblp_fab_conn c;
	bool serves;

	for (;;) {
		lock(s);
		leader = s->leader;
		serves = s->serves;
		unlock(s);
		if (serves)
			break;
		if (leader.sdblp_port &&
		    !dblp_fab_dial(&c, &leader, dblp_fab_protocol(s->o->transport),
				   s->o->timeout_ms))
			take_copies(s, &c, &copy);
		usleep(RETRY_US);
	}
	free(copy);
	return NULL;
}

/*
 * What is lost of the old server's model is that from our version on. We may be ahead of
 * what the scheduler knows, by a step that the old server has made nowhere else.
 */
static void promote(struct server *s, uint64_t version)
{
	struct dblp_fab_msg told = { .type = DBLP_FAB_APPLIED };

	lock(s);
	if (!s->serves) {
		printf("promoted at version %" PRIu64 " of %" PRIu64 "\n", s->version, version);
		s->serves = true;
		if (s->version < version)
			s->version = version;
	}
	told.version = s->version;
	unlock(s);
	member_tell(&s->member, &told);
}

static void report(struct server *s)
{
	lock(s);
	printf("version %" PRIu64 ", copies %" PRIu64 ", copies first %" PRIu64
	       ", refused %" PRIu64 ", strangers %" PRIu64 "\n", s->version, s->copies, s->first,
	       s->door.refused, s->door.strangers);
	unlock(s);
}

int serve(const struct options *o, bool replica)
{
	/* Its threads go on until the program ends */
	static struct server s = {
		.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER, .door = { .answer = answer, .of = &s },
	};
	struct dblp_fab_msg m;
	pthread_t thread;

	s.o = s.door.o = o;
	s.serves = !replica;
	s.model = zeroed(o);
	s.next = zeroed(o);
	member_join(&s.member, &s.door, replica ? DBLP_FAB_REPLICA : DBLP_FAB_SERVES);
	if (replica && pthread_create(&thread, NULL, be_replica, &s))
		errx(1, "cannot make a thread");
	while (member_hear(&s.member, &m)) {
		if (m.type == DBLP_FAB_PROMOTE)
			promote(&s, m.version);
		if (m.type == DBLP_FAB_SERVER) {
			lock(&s);
			s.leader = m.addr;
			unlock(&s);
		}
	}
	report(&s);
	return 0;
}
