// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host that joins updates: it keeps those of a run until the scheduler says that the run
 * leaves. Only then their delays are known, and so what each is multiplied with. Those who
 * sent them are answered when the server has the sum. Workers pull from here what they
 * have pushed to here: the model is fetched once for all of a run, and passed on while it
 * is still coming.
 */
#include <err.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "order.h"

/* A version of the model, as much of it as has come */
struct image {
	uint32_t	users;
	uint64_t	version;
	uint64_t	have;
	int		error;
	char		bytes[];
};

/* An update that waits for its run to leave, in the stack of its thread */
struct waiting {
	struct waiting			*next;
	const struct dblp_fab_msg	*m;
	const float			*update;
	bool				ended;
	int				error;
	uint64_t			version;
};

/* A connection to the server */
struct link {
	struct dblp_fab_conn	conn;
	struct sockaddr_dblp	to;
};

/**
 * struct joiner - a host that joins updates
 * @o: the command line
 * @member: the scheduler
 * @door: connections for data
 * @lock: protects what is below
 * @changed: any of it
 * @waiting: updates that have come
 * @image: the last version of the model that was asked for, or NULL
 * @server: its address
 * @fetching: protects @down
 * @down: models come by this one
 * @up: sums go by this one, in the main thread
 * @sum: the main thread's sum
 */
struct joiner {
	const struct options	*o;
	struct member		member;
	struct door		door;
	pthread_mutex_t		lock;
	pthread_cond_t		changed;
	struct waiting		*waiting;
	struct image		*image;
	struct sockaddr_dblp	server;
	pthread_mutex_t		fetching;
	struct link		down;
	struct link		up;
	float			*sum;
};

static void lock(struct joiner *j)
{
	pthread_mutex_lock(&j->lock);
}

static void unlock(struct joiner *j)
{
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

/* Updates */

/* Waits for the end of the run; the error that it had */
static int await_run(struct joiner *j, const struct dblp_fab_msg *m, const float *u,
		     uint64_t *version)
{
	const struct dblp_fab_msg told = {
		.type = DBLP_FAB_RECEIVED, .run = m->run, .from = m->from,
	};
	struct waiting w = { .m = m, .update = u }, **at;

	lock(j);
	w.next = j->waiting;
	j->waiting = &w;
	member_tell(&j->member, &told);
	while (!w.ended)
		pthread_cond_wait(&j->changed, &j->lock);
	for (at = &j->waiting; *at != &w;)
		at = &(*at)->next;
	*at = w.next;
	unlock(j);
	*version = w.version;
	return w.error;
}

/* Ends the wait of all of a run */
static void end_run(struct joiner *j, uint64_t run, int error, uint64_t version)
{
	struct waiting *w;

	lock(j);
	for (w = j->waiting; w; w = w->next) {
		if (w->m->run != run)
			continue;
		w->ended = true;
		w->error = error;
		w->version = version;
	}
	unlock(j);
}

/* Who has sent anything of it is to push again */
static void fail_run(struct joiner *j, uint64_t run)
{
	member_fail(&j->member, run);
	end_run(j, run, -ECANCELED, 0);
}

/* A sum with it is finite, whatever the others are, or the server would refuse all of them */
static bool fits(const struct joiner *j, const float *update)
{
	return dblp_fab_norm(update, j->o->count) <= FLT_MAX / DBLP_FAB_WORKERS_MAX;
}

static bool push(struct joiner *j, const struct dblp_fab_conn *c,
		 const struct dblp_fab_msg *m)
{
	float *u = door_update(&j->door, c);
	uint64_t version = 0;
	int error;

	if (!u) {
		fail_run(j, m->run);
		return false;
	}
	error = fits(j, u) ? await_run(j, m, u, &version) : -EDOM;
	free(u);
	return door_ack(&j->door, c, version, error);
}

static void add(struct joiner *j, const float *update, double weight)
{
	uint64_t i;

	for (i = 0; i < j->o->count; i++)
		j->sum[i] += weight * update[i];
}

/* Each with the weight of its delay, which its place in the run decides; how many */
static uint32_t add_up(struct joiner *j, const struct dblp_fab_msg *leave)
{
	const struct waiting *w;
	uint32_t n = 0;

	memset(j->sum, 0, j->o->count * sizeof(*j->sum));
	lock(j);
	for (w = j->waiting; w; w = w->next) {
		if (w->m->run != leave->run)
			continue;
		add(j, w->update, fab_weight(leave->first - 1 + w->m->place - w->m->version));
		n++;
	}
	unlock(j);
	return n;
}

/* A connection to the server as it is now: that, or a new one */
static int reach(struct joiner *j, struct link *l)
{
	struct sockaddr_dblp to;

	lock(j);
	to = j->server;
	unlock(j);
	if (l->conn.fd >= 0 && !memcmp(&to, &l->to, sizeof(to)))
		return 0;
	dblp_fab_hang_up(&l->conn);
	l->to = to;
	return dblp_fab_dial(&l->conn, &to, dblp_fab_protocol(j->o->transport),
			     j->o->timeout_ms);
}

static int send_sum(struct joiner *j, const struct dblp_fab_msg *leave,
		    struct dblp_fab_msg *ack)
{
	const struct dblp_fab_msg m = {
		.type = DBLP_FAB_PUSH, .role = DBLP_FAB_JOINS, .updates = leave->updates,
		.fabric = j->door.secret, .run = leave->run, .first = leave->first,
	};
	int error = reach(j, &j->up);

	if (!error)
		error = dblp_fab_push(&j->up.conn, &m, j->sum, j->o->count, ack);
	if (error)
		dblp_fab_hang_up(&j->up.conn);
	return error ?: -(int)ack->error;
}

static void leave_run(struct joiner *j, const struct dblp_fab_msg *m)
{
	struct dblp_fab_msg ack = { 0 };

	if (add_up(j, m) != m->updates || send_sum(j, m, &ack)) {
		fail_run(j, m->run);
		return;
	}
	member_tell_rate(&j->member, &j->up.conn);
	end_run(j, m->run, 0, ack.version);
}

/* Models */

static void put_image(struct image *i)
{
	if (i && !--i->users)
		free(i);
}

static size_t bytes_of(const struct joiner *j)
{
	return j->o->count * sizeof(float);
}

/* Receives a model, chunk by chunk, for all who wait for it; one thread at a time */
static void fetch(struct joiner *j, struct image *image, uint64_t wanted)
{
	uint64_t version;
	size_t at, n;
	int error;

	pthread_mutex_lock(&j->fetching);
	error = reach(j, &j->down);
	if (!error)
		error = dblp_fab_pull(&j->down.conn, j->door.secret, wanted, &version);
	for (at = 0; !error && at < bytes_of(j); at += n) {
		n = dblp_fab_chunk(bytes_of(j) - at);
		error = dblp_fab_recv_bytes(&j->down.conn, image->bytes + at, n);
		lock(j);
		image->version = version;
		image->have = error ? at : at + n;
		unlock(j);
	}
	if (error)
		dblp_fab_hang_up(&j->down.conn);
	pthread_mutex_unlock(&j->fetching);
	lock(j);
	image->error = error;
	unlock(j);
}

/* One that has this version, or will have it: of two users, this thread and the list */
static struct image *image_for(struct joiner *j, uint64_t wanted)
{
	struct image *image;
	bool mine;

	lock(j);
	image = j->image;
	mine = !image || image->error || image->version < wanted;
	if (mine) {
		image = calloc(1, sizeof(*image) + bytes_of(j));
		put_image(j->image);
		j->image = image;
	}
	if (image) {
		image->users += 1 + mine;
		image->version = mine ? wanted : image->version;
	}
	unlock(j);
	if (image && mine)
		fetch(j, image, wanted);
	return image;
}

/* How much of it there is, once it is more than @at; an error, or 0: nothing comes */
static ssize_t await_bytes(struct joiner *j, const struct image *image, size_t at)
{
	ssize_t n;

	lock(j);
	while (image->have <= at && !image->error)
		pthread_cond_wait(&j->changed, &j->lock);
	n = image->have > at ? (ssize_t)image->have : image->error;
	unlock(j);
	return n;
}

/* An error while it is being passed on ends the connection: the model cannot be whole */
static bool pass_on(struct joiner *j, const struct dblp_fab_conn *c, const struct image *image)
{
	struct dblp_fab_msg m = { .type = DBLP_FAB_MODEL };
	ssize_t have = await_bytes(j, image, 0);
	size_t at, n;
	int error;

	if (have < 0)
		return door_ack(&j->door, c, 0, (int)have);
	m.version = image->version;
	error = dblp_fab_send(c, &m);
	for (at = 0; !error && at < bytes_of(j); at += n) {
		n = dblp_fab_chunk(bytes_of(j) - at);
		have = await_bytes(j, image, at + n - 1);
		error = have < 0 ? (int)have : dblp_fab_send_bytes(c, image->bytes + at, n);
	}
	return !error;
}

static bool pull(struct joiner *j, const struct dblp_fab_conn *c, const struct dblp_fab_msg *m)
{
	struct image *image = image_for(j, m->version);
	bool sent;

	if (!image)
		return door_ack(&j->door, c, 0, -ENOMEM);
	sent = pass_on(j, c, image);
	if (sent)
		member_tell_rate(&j->member, c);
	lock(j);
	put_image(image);
	unlock(j);
	return sent;
}

static bool answer(void *of, const struct dblp_fab_conn *c, const struct dblp_fab_msg *m)
{
	if (m->type == DBLP_FAB_PUSH)
		return push(of, c, m);
	return m->type == DBLP_FAB_PULL && pull(of, c, m);
}

int join(const struct options *o)
{
	/* Its threads go on until the program ends */
	static struct joiner j = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,
		.fetching = PTHREAD_MUTEX_INITIALIZER, .up.conn.fd = -1, .down.conn.fd = -1,
		.door = { .answer = answer, .of = &j },
	};
	struct dblp_fab_msg m;

	j.o = j.door.o = o;
	j.sum = calloc(o->count, sizeof(*j.sum));
	if (!j.sum)
		err(1, NULL);
	member_join(&j.member, &j.door, DBLP_FAB_JOINS);
	while (member_hear(&j.member, &m)) {
		if (m.type == DBLP_FAB_SERVER) {
			lock(&j);
			j.server = m.addr;
			unlock(&j);
		}
		if (m.type == DBLP_FAB_LEAVE)
			leave_run(&j, &m);
		if (m.type == DBLP_FAB_ABANDON)
			end_run(&j, m.run, -ECANCELED, 0);
	}
	printf("refused %" PRIu64 ", strangers %" PRIu64 "\n", j.door.refused, j.door.strangers);
	return 0;
}
