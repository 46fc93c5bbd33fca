// SPDX-License-Identifier: GPL-2.0-only
/*
 * Phases: named sets of what a socket sends and receives with.
 *
 * A socket keeps the settings that are in force for it and takes them from the
 * table anew when that has changed, which it sees by a sequence number before
 * it sends or receives. So no packet looks into the table, and a message in
 * one place only. Whoever changes the table walks over the sockets besides, to
 * reach messages in flight.
 */
#include "dblp.h"
#include "trace.h"

static const struct dblp_phase dblp_phase_defaults[] = {
	{ .name = "reliable", .policy = DBLP_POLICY_FULL },
	[DBLP_PHASE_CRITICAL] = {
		.name = "critical", .policy = DBLP_POLICY_EARLY, .budget = 8000,
	},
	[DBLP_PHASE_TOLERANT] = {
		.name = "tolerant", .policy = DBLP_POLICY_EAGER,
		.budget = 408000,
	},
};

/** dblp_defaults_init() - what sockets of a new namespace begin with */
void dblp_defaults_init(struct dblp_defaults *d)
{
	d->cc = dblp_cc_at(0);
	d->cap = DBLP_PPM;
	d->user_timeout_ms = DBLP_USER_TIMEOUT_MS;
	d->keepalive_ms = DBLP_KEEPALIVE_MS;
}

/** dblp_defaults_read() - what sockets made now begin with */
void dblp_defaults_read(struct dblp_config *c, struct dblp_defaults *d)
{
	d->cc = READ_ONCE(c->defaults.cc);
	d->cap = READ_ONCE(c->defaults.cap);
	d->user_timeout_ms = READ_ONCE(c->defaults.user_timeout_ms);
	d->keepalive_ms = READ_ONCE(c->defaults.keepalive_ms);
}

/** dblp_defaults_write() - change them, with @lock held */
void dblp_defaults_write(struct dblp_config *c, const struct dblp_defaults *d)
{
	lockdep_assert_held(&c->lock);
	WRITE_ONCE(c->defaults.cc, d->cc);
	WRITE_ONCE(c->defaults.cap, d->cap);
	WRITE_ONCE(c->defaults.user_timeout_ms, d->user_timeout_ms);
	WRITE_ONCE(c->defaults.keepalive_ms, d->keepalive_ms);
	c->defaults_generation++;
}

/** dblp_config_init() - the table of a new namespace */
void dblp_config_init(struct dblp_config *c)
{
	mutex_init(&c->lock);
	seqlock_init(&c->seq);
	xa_init(&c->jobs);
	dblp_defaults_init(&c->defaults);
	memcpy(c->phases, dblp_phase_defaults, sizeof(dblp_phase_defaults));
}

/** dblp_config() - what operators have set for a namespace */
struct dblp_config *dblp_config(struct net *net)
{
	return &dblp_pernet(net)->config;
}

/**
 * dblp_phase_get() - look a phase up
 * @net: namespace
 * @id: number
 * @p: filled with the phase of one moment
 *
 * Return: false if there is no such phase.
 */
bool dblp_phase_get(struct net *net, u32 id, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(net);
	unsigned int seq;

	if (id >= DBLP_PHASES)
		return false;
	do {
		seq = read_seqbegin(&c->seq);
		*p = c->phases[id];
	} while (read_seqretry(&c->seq, seq));
	return *p->name;
}

/* The phase of a socket, and what it says there; under @seq */
static void dblp_look_up(struct dblp_sock *dsk, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->job;
	u32 budget;

	if (dsk->own & DBLP_OWN(DBLP_PHASE)) {
		*p = c->phases[dsk->phase];
		return;
	}
	dsk->phase = job ? job->conf.phase : 0;
	*p = c->phases[dsk->phase];
	budget = job ? dblp_job_budget(&job->conf) : DBLP_INHERIT;
	if (budget != DBLP_INHERIT)
		p->budget = budget;
}

/**
 * dblp_apply_config() - take over what the table says
 * @dsk: socket, locked, with a reference: packets may be sent, which may end it
 *
 * What was set for the socket itself wins. A phase with policy full is one
 * without a budget: a budget of the socket's own is used all the same. A budget
 * is that of messages under way, too.
 */
void dblp_apply_config(struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	u32 phase = dsk->phase;
	struct dblp_phase p;
	unsigned int seq;

	do {
		seq = read_seqbegin(&c->seq);
		dblp_look_up(dsk, &p);
	} while (read_seqretry(&c->seq, seq));
	dsk->config_seq = seq;
	if (dsk->phase != phase)
		trace_dblp_phase_changed(sock_net(&dsk->sk), dsk, dsk->job,
					 phase, dsk->phase);

	if (p.policy == DBLP_POLICY_FULL)
		p.policy = DBLP_POLICY_EAGER;
	if (!(dsk->own & DBLP_OWN(DBLP_CLOSE_POLICY)))
		dsk->policy = p.policy;
	if (!(dsk->own & DBLP_OWN(DBLP_ORDER)))
		dsk->order = p.order;
	if (!(dsk->own & DBLP_OWN(DBLP_FILL)))
		dsk->fill = p.fill;
	if (!(dsk->own & DBLP_OWN(DBLP_BUDGET)))
		dblp_set_budget(dsk, p.budget);
}

/**
 * dblp_settle_config() - see whether the table has changed
 * @dsk: socket, locked, with a reference
 */
void dblp_settle_config(struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));

	sock_owned_by_me(&dsk->sk);
	if (unlikely(dsk->config_seq != read_seqbegin(&c->seq)))
		dblp_apply_config(dsk);
}

/**
 * dblp_set_own() - a setting of the socket's own, or back to the phase's
 * @dsk: socket, locked
 * @option: DBLP_BUDGET, DBLP_CLOSE_POLICY, DBLP_ORDER or DBLP_FILL
 * @val: valid for it, or DBLP_INHERIT
 *
 * A budget is that of messages under way, too.
 */
void dblp_set_own(struct dblp_sock *dsk, int option, u32 val)
{
	sock_owned_by_me(&dsk->sk);
	if (val == DBLP_INHERIT) {
		dsk->own &= ~DBLP_OWN(option);
		dblp_apply_config(dsk);
		return;
	}
	dsk->own |= DBLP_OWN(option);
	switch (option) {
	case DBLP_BUDGET:
		dblp_set_budget(dsk, val);
		break;
	case DBLP_CLOSE_POLICY:
		dsk->policy = val;
		break;
	case DBLP_ORDER:
		dsk->order = val;
		break;
	case DBLP_FILL:
		dsk->fill = val;
		break;
	}
}

/* The socket is not in a phase of its own any more */
static void dblp_drop_phase(struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));

	if (!(dsk->own & DBLP_OWN(DBLP_PHASE)))
		return;
	dsk->own &= ~DBLP_OWN(DBLP_PHASE);
	if (dsk->phase)
		atomic_dec(&c->users[dsk->phase]);
}

/* The socket leaves the phase that it chose, and enters one: it is counted */
static void dblp_choose_phase(struct dblp_sock *dsk, u8 id)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));

	dblp_drop_phase(dsk);
	if (dsk->phase != id)
		trace_dblp_phase_changed(sock_net(&dsk->sk), dsk, dsk->job,
					 dsk->phase, id);
	dsk->phase = id;
	dsk->own |= DBLP_OWN(DBLP_PHASE);
	if (id)
		atomic_inc(&c->users[id]);
}

/** dblp_sock_ended() - is its life over, so that nothing undoes what is set? */
bool dblp_sock_ended(const struct dblp_sock *dsk)
{
	return sock_flag(&dsk->sk, SOCK_DEAD) &&
	       dsk->state == DBLP_STATE_CLOSED;
}

static void dblp_choose_job(struct dblp_sock *dsk, struct dblp_job *job)
{
	dblp_leave_job(dsk);
	if (job)
		dblp_enter_job(dsk, job);
}

/**
 * dblp_sock_set_place() - choose phase and job for a socket
 * @dsk: socket, not locked
 * @phase: number of the phase, or DBLP_INHERIT; NULL to leave it
 * @job_id: number of the job, or 0 for none; NULL to leave it
 *
 * Return: 0; or nothing was changed: -ENOENT if there is no such phase, -ESRCH
 * if there is no such job, -EPERM if it is another user's, -ESTALE if the socket
 * is over.
 */
int dblp_sock_set_place(struct dblp_sock *dsk, const u32 *phase,
			const u32 *job_id)
{
	struct net *net = sock_net(&dsk->sk);
	struct dblp_config *c = dblp_config(net);
	struct dblp_job *job = NULL;
	struct dblp_phase p;
	int err = 0;

	mutex_lock(&c->lock);
	if (job_id && *job_id) {
		job = dblp_job_find(c, *job_id);
		err = job ? 0 : -ESRCH;
		if (job && !dblp_job_allows(net, job))
			err = -EPERM;
	}
	if (!err && phase && *phase != DBLP_INHERIT &&
	    !dblp_phase_get(net, *phase, &p))
		err = -ENOENT;
	if (err)
		goto unlock;

	lock_sock(&dsk->sk);
	if (dblp_sock_ended(dsk)) {
		err = -ESTALE;
		goto release;
	}
	if (phase && *phase == DBLP_INHERIT)
		dblp_drop_phase(dsk);
	else if (phase)
		dblp_choose_phase(dsk, *phase);
	if (job_id)
		dblp_choose_job(dsk, job);
	dblp_apply_config(dsk);
release:
	release_sock(&dsk->sk);
unlock:
	mutex_unlock(&c->lock);
	return err;
}

/**
 * dblp_inherit_config() - a connection begins with what its listener has
 * @child: new socket that nobody else knows
 * @listener: locked
 *
 * But for the job, which is for sockets that have a number.
 */
void dblp_inherit_config(struct dblp_sock *child,
			 const struct dblp_sock *listener)
{
	sock_owned_by_me(&listener->sk);
	child->phase = listener->phase;
	child->budget = listener->budget;
	child->policy = listener->policy;
	child->order = listener->order;
	child->fill = listener->fill;
	child->config_seq = listener->config_seq;
	child->own = listener->own & ~DBLP_OWN(DBLP_PHASE);
	/* The listener's own use keeps the phase there meanwhile */
	if (listener->own & DBLP_OWN(DBLP_PHASE))
		dblp_choose_phase(child, listener->phase);
}

/**
 * dblp_leave_config() - the socket holds on to no phase and no job any more
 * @dsk: socket, locked or at its end
 */
void dblp_leave_config(struct dblp_sock *dsk)
{
	dblp_drop_phase(dsk);
	dblp_leave_job(dsk);
}

/**
 * dblp_sock_push() - have a socket look at the configuration
 * @dsk: socket, not locked; its reference is consumed
 */
void dblp_sock_push(struct dblp_sock *dsk)
{
	lock_sock(&dsk->sk);
	if (!dblp_sock_ended(dsk))
		dblp_settle_config(dsk);
	release_sock(&dsk->sk);
	sock_put(&dsk->sk);
	cond_resched();
}

/* All sockets of a namespace; those that come meanwhile look for themselves */
static void dblp_config_push(struct net *net)
{
	struct dblp_sock *dsk;
	u32 id = 1;

	lockdep_assert_held(&dblp_config(net)->lock);
	for (; (dsk = dblp_sock_next(net, &id)); id++)
		dblp_sock_push(dsk);
}

/**
 * dblp_phase_change() - write a phase; when this returns it is in force
 * @net: namespace
 * @id: number, less than DBLP_PHASES
 * @p: what it is from now on
 *
 * Context: process, with @lock of the configuration held.
 */
void dblp_phase_change(struct net *net, u32 id, const struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(net);

	lockdep_assert_held(&c->lock);
	write_seqlock_bh(&c->seq);
	c->phases[id] = *p;
	write_sequnlock_bh(&c->seq);
	c->phases_generation++;
	dblp_config_push(net);
	dblp_event_phase(net, DBLP_CMD_PHASE_SET_NTF, id, p);
}

/**
 * dblp_phase_delete() - forget a phase
 * @net: namespace
 * @id: number, less than DBLP_PHASES
 *
 * Context: process, with @lock of the configuration held.
 * Return: 0, or -EBUSY if a socket or a job is in it, or all sockets are as long
 * as they choose no other.
 */
int dblp_phase_delete(struct net *net, u32 id)
{
	struct dblp_config *c = dblp_config(net);
	struct dblp_phase was;
	struct dblp_job *job;
	unsigned long i;

	lockdep_assert_held(&c->lock);
	if (!id || atomic_read(&c->users[id]))
		return -EBUSY;
	xa_for_each(&c->jobs, i, job)
		if (dblp_job_needs_phase(job, id))
			return -EBUSY;
	was = c->phases[id];
	write_seqlock_bh(&c->seq);
	memset(&c->phases[id], 0, sizeof(c->phases[id]));
	write_sequnlock_bh(&c->seq);
	c->phases_generation++;
	dblp_event_phase(net, DBLP_CMD_PHASE_DEL_NTF, id, &was);
	return 0;
}
