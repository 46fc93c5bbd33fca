// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings in force for a socket: those of its phase and job, and its own; and
 * changes to them.
 *
 * A socket caches the settings in force. Before it sends or receives, it
 * compares the sequence numbers of the table (phase.c) and of its job, and takes
 * the settings from there again if one has changed. So packets need not look
 * into the table, and messages do so in one place. Settings that are the same as
 * before change nothing, and messages are not walked for them.
 *
 * A change also walks over the sockets that it concerns, to reach messages in
 * flight: those of the job, or for a phase all of the namespace. No lock is held
 * meanwhile except that of one socket, so walks may overlap. Each makes sockets
 * apply the latest settings.
 *
 * The budget of messages in flight can be changed. Each DATA packet carries it,
 * and the highest packet number has the latest. As there may be no more DATA, a
 * BUDGET frame carries a changed budget, too.
 */
#include <linux/random.h>

#include "dblp.h"
#include "trace.h"

static bool dblp_budget_movable(const struct dblp_tx_msg *msg, u32 ppm)
{
	return !dblp_tx_over(msg) && !msg->own_budget && msg->budget != ppm &&
	       msg->policy != DBLP_POLICY_FULL;
}

/*
 * Shuffle the unsent segments of a message that was begun in sequence: what
 * will be missing must not be its tail. Its bytes stay where they are, so these
 * segments are sent one by one.
 */
static void dblp_budget_reorder(struct dblp_tx_msg *msg)
{
	u32 base = max(msg->cursor, msg->crit_segs);

	if (!msg->auto_order || msg->shuffled || msg->reshuffled ||
	    base >= msg->acked.n)
		return;
	msg->reshuffled = 1;
	msg->shuffle_base = base;
	dblp_shuffle_init(&msg->shuffle, msg->acked.n - base,
			  get_random_u64());
	if (dblp_tx_begun(msg))
		dblp_elide_skip(msg);
}

/* If nothing of a message was sent, no packet has carried its old budget */
static void dblp_budget_move(struct dblp_tx_msg *msg, u32 ppm)
{
	msg->budget = ppm;
	msg->budget_most = dblp_tx_begun(msg) ? max(msg->budget_most, ppm) :
						ppm;
	if (ppm)
		dblp_budget_reorder(msg);
}

/*
 * Set the budget of messages to be sent, and of those in flight without one of
 * their own
 */
static void dblp_set_budget(struct dblp_sock *dsk, u32 ppm)
{
	struct dblp_tx_msg *msg;

	/* All that are movable have it */
	if (dsk->budget == ppm)
		return;
	list_for_each_entry(msg, &dsk->tx_msgs, list) {
		if (!dblp_budget_movable(msg, ppm))
			continue;
		if (dblp_tx_begun(msg))
			dblp_ctl_budget(dsk, msg);
		dblp_budget_move(msg, ppm);
	}
	/* Pieces not yet taken from the user */
	if (dsk->tx_part && dblp_budget_movable(&dsk->tx_part->msg, ppm))
		dsk->tx_part->msg.budget = ppm;
	dsk->budget = ppm;
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	dblp_tx_recount(dsk);
	dblp_flush(dsk);
}

/**
 * dblp_tx_refresh_budget() - give a message the budget that its socket has now
 * @dsk: socket, locked
 * @msg: message or piece about to be queued, of which nothing was sent: the
 *	socket was not locked while its bytes were copied
 */
void dblp_tx_refresh_budget(const struct dblp_sock *dsk,
			    struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_budget_movable(msg, dsk->budget))
		dblp_budget_move(msg, dsk->budget);
}

/* Set the receive budget cap, also of messages under way */
static void dblp_set_cap(struct dblp_sock *dsk, u32 ppm)
{
	if (dsk->cap == ppm)
		return;
	dsk->cap = ppm;
	/* The peer may have our parameters already */
	if (dsk->state == DBLP_STATE_COOKIE_SENT)
		dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	if (dsk->state != DBLP_STATE_ESTABLISHED)
		return;
	dblp_rx_judge_all(dsk);
	dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	dblp_flush(dsk);
}

/* Has the program asked for messages with bytes missing, without a number? */
static bool dblp_asks_for_holes(const struct dblp_sock *dsk)
{
	return dsk->placement || dsk->own & DBLP_OWN(DBLP_FILL);
}

/* The cap of a socket that has none of its own; @p is its phase */
static u32 dblp_look_up_cap(const struct dblp_sock *dsk,
			    const struct dblp_phase *p)
{
	if (dsk->job && dsk->job->conf.cap != DBLP_INHERIT)
		return dsk->job->conf.cap;
	if (p->cap != DBLP_INHERIT)
		return p->cap;
	if (dsk->default_cap != DBLP_INHERIT)
		return dsk->default_cap;
	return dblp_asks_for_holes(dsk) ? DBLP_PPM : 0;
}

/* Look up the settings of a socket's phase and job, under @seq of both */
static void dblp_look_up(struct dblp_sock *dsk, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->job;
	u32 budget;

	if (!(dsk->own & DBLP_OWN(DBLP_PHASE)))
		dsk->phase = job ? job->conf.phase : 0;
	*p = c->phases[dsk->phase];
	p->cap = dblp_look_up_cap(dsk, p);
	if (!job || dsk->own & DBLP_OWN(DBLP_PHASE))
		return;
	budget = dblp_job_budget(&job->conf);
	if (budget != DBLP_INHERIT)
		p->budget = budget;
}

/* Read the table and the job consistently, and note what was read */
static void dblp_read_config(struct dblp_sock *dsk, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->job;
	unsigned int seq, job_seq = 0;

	do {
		seq = read_seqbegin(&c->seq);
		if (job)
			job_seq = read_seqcount_begin(&job->seq);
		dblp_look_up(dsk, p);
	} while (read_seqretry(&c->seq, seq) ||
		 (job && read_seqcount_retry(&job->seq, job_seq)));
	dsk->config_seq = seq;
	dsk->job_seq = job_seq;
}

/**
 * dblp_apply_config() - apply the settings of the table
 * @dsk: socket, locked, with a reference: packets may be sent, which may end it
 *
 * The socket's own settings take precedence. A phase with policy full has no
 * budget, but one of the socket's own is used nevertheless. A budget and a cap
 * apply to messages in flight, too.
 *
 * Nobody receives a hole who has not asked for it, himself or by the operator of
 * his machine: the cap is 0 if neither has set anything.
 */
void dblp_apply_config(struct dblp_sock *dsk)
{
	u32 phase = dsk->phase;
	struct dblp_phase p;

	dblp_read_config(dsk, &p);
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
	if (!(dsk->own & DBLP_OWN(DBLP_BUDGET_CAP)))
		dblp_set_cap(dsk, p.cap);
}

/* Has the table or the job changed since the socket has read it? */
static bool dblp_config_changed(const struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->job;

	return dsk->config_seq != read_seqbegin(&c->seq) ||
	       (job && dsk->job_seq != read_seqcount_begin(&job->seq));
}

/**
 * dblp_settle_config() - apply the settings of the table if they have changed
 * @dsk: socket, locked, with a reference
 */
void dblp_settle_config(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (unlikely(dblp_config_changed(dsk)))
		dblp_apply_config(dsk);
}

static void dblp_store_own(struct dblp_sock *dsk, int option, u32 val)
{
	dsk->own |= DBLP_OWN(option);
	switch (option) {
	case DBLP_BUDGET:
		dblp_set_budget(dsk, val);
		break;
	case DBLP_BUDGET_CAP:
		dblp_set_cap(dsk, val);
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

/**
 * dblp_set_own() - set an option of the socket, or go back to the phase's
 * @dsk: socket, locked
 * @option: one of DBLP_OWN_OPTS, but not DBLP_PHASE
 * @val: valid for it, or DBLP_INHERIT
 *
 * A budget and a cap apply to messages in flight, too.
 */
void dblp_set_own(struct dblp_sock *dsk, int option, u32 val)
{
	sock_owned_by_me(&dsk->sk);
	if (val == DBLP_INHERIT)
		dsk->own &= ~DBLP_OWN(option);
	else
		dblp_store_own(dsk, option, val);
	/* A fill asks for holes, so the cap may be another one */
	dblp_apply_config(dsk);
}

/* Is the socket over, so that nothing would undo what is set? */
static bool dblp_sock_ended(const struct dblp_sock *dsk)
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
 * if there is no such job, -EPERM if it is another user's, -ESTALE if the
 * socket is over.
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
release:
	/* The socket's messages are no reason for other users to wait */
	mutex_unlock(&c->lock);
	if (!err)
		dblp_apply_config(dsk);
	release_sock(&dsk->sk);
	return err;
unlock:
	mutex_unlock(&c->lock);
	return err;
}

/**
 * dblp_inherit_config() - give a connection the settings of its listener
 * @child: new socket that is not visible yet
 * @listener: locked
 *
 * All but the job, which lists its sockets by number: the child has none yet.
 */
void dblp_inherit_config(struct dblp_sock *child,
			 const struct dblp_sock *listener)
{
	sock_owned_by_me(&listener->sk);
	child->phase = listener->phase;
	child->budget = listener->budget;
	child->cap = listener->cap;
	child->default_cap = listener->default_cap;
	child->policy = listener->policy;
	child->order = listener->order;
	child->fill = listener->fill;
	child->config_seq = listener->config_seq;
	child->job_seq = listener->job_seq;
	child->own = listener->own & ~DBLP_OWN(DBLP_PHASE);
	/* The phase cannot be deleted while the listener is in it */
	if (listener->own & DBLP_OWN(DBLP_PHASE))
		dblp_choose_phase(child, listener->phase);
}

/* Make a socket apply the configuration, and drop its reference */
static void dblp_sock_push(struct dblp_sock *dsk)
{
	lock_sock(&dsk->sk);
	if (!dblp_sock_ended(dsk))
		dblp_settle_config(dsk);
	release_sock(&dsk->sk);
	sock_put(&dsk->sk);
	cond_resched();
}

/**
 * dblp_config_push() - make all sockets of a namespace apply the table
 * @net: namespace
 *
 * New sockets do so by themselves. All sockets have applied it on return.
 */
void dblp_config_push(struct net *net)
{
	struct dblp_sock *dsk;
	u32 id = 1;

	for (; (dsk = dblp_sock_next(net, &id)); id++)
		dblp_sock_push(dsk);
}

/* Does a socket see that a phase has become another one? */
static bool dblp_phase_differs(const struct dblp_phase *a,
			       const struct dblp_phase *b)
{
	return a->budget != b->budget || a->cap != b->cap ||
	       a->policy != b->policy || a->order != b->order ||
	       a->fill != b->fill;
}

/**
 * dblp_phase_change() - write a phase
 * @net: namespace, with @lock of its configuration held
 * @id: number, less than DBLP_PHASES
 * @p: its new settings
 *
 * Return: true if dblp_config_push() has to follow, without @lock.
 */
bool dblp_phase_change(struct net *net, u32 id, const struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(net);
	bool differs = dblp_phase_differs(&c->phases[id], p);

	lockdep_assert_held(&c->lock);
	write_seqlock_bh(&c->seq);
	c->phases[id] = *p;
	write_sequnlock_bh(&c->seq);
	c->phases_generation++;
	dblp_event_phase(net, DBLP_CMD_PHASE_SET_NTF, id, p);
	return differs;
}

/* Find the first socket of a job from number @id on, and take a reference */
static struct dblp_sock *dblp_job_next(struct dblp_job *job, u32 id)
{
	struct dblp_sock *dsk, *found = NULL;
	struct rb_node *node;

	spin_lock_bh(&job->lock);
	for (node = job->socks.rb_node; node;) {
		dsk = rb_entry(node, struct dblp_sock, job_node);
		if (dsk->id >= id)
			found = dsk;
		node = dsk->id >= id ? node->rb_left : node->rb_right;
	}
	/* A socket about to be freed is still here, without references */
	while (found && !refcount_inc_not_zero(&found->sk.sk_refcnt)) {
		node = rb_next(&found->job_node);
		found = rb_entry_safe(node, struct dblp_sock, job_node);
	}
	spin_unlock_bh(&job->lock);
	return found;
}

/**
 * dblp_job_push() - make the sockets of a job apply its settings
 * @job: job, with a reference
 *
 * New sockets do so by themselves. All sockets have applied them on return.
 */
void dblp_job_push(struct dblp_job *job)
{
	struct dblp_sock *dsk;
	u32 id = 1;

	while ((dsk = dblp_job_next(job, id))) {
		id = dsk->id + 1;
		dblp_sock_push(dsk);
	}
}

/* Add up the time in the phase that a job leaves */
static void dblp_job_leave_phase(struct dblp_job *job)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&job->lock);
	job->spent[job->conf.phase] += now - job->since;
	job->since = now;
}

/* Announce a new phase of a job; its sockets follow */
static void dblp_job_moved(struct net *net, struct dblp_job *job, u8 was,
			   enum dblp_actor by)
{
	lockdep_assert_held(&job->turn);
	trace_dblp_phase_changed(net, NULL, job, was, job->conf.phase);
	dblp_event_job_phase(net, job, was, by);
}

/**
 * dblp_job_set() - change what is set for a job
 * @net: namespace, with @lock of its configuration held
 * @job: job, with @turn held
 * @conf: its new settings, of phases that exist
 *
 * Return: true if dblp_job_push() has to follow, without these locks.
 */
bool dblp_job_set(struct net *net, struct dblp_job *job,
		  const struct dblp_job_conf *conf)
{
	struct dblp_config *c = dblp_config(net);
	struct dblp_job_conf was = job->conf;

	lockdep_assert_held(&c->lock);
	lockdep_assert_held(&job->turn);
	spin_lock_bh(&job->lock);
	if (was.clr == DBLP_CLR_OFF && conf->clr != DBLP_CLR_OFF)
		dblp_clr_start(&job->detector);
	job->detector.eta = conf->eta;
	job->detector.hold = conf->hold;
	if (was.phase != conf->phase)
		dblp_job_leave_phase(job);
	write_seqcount_begin(&job->seq);
	job->conf = *conf;
	write_seqcount_end(&job->seq);
	spin_unlock_bh(&job->lock);
	atomic_inc(&c->jobs_generation);
	if (was.phase != conf->phase)
		dblp_job_moved(net, job, was.phase, DBLP_ACTOR_OPERATOR);
	return was.phase != conf->phase || was.cap != conf->cap ||
	       dblp_job_budget(&was) != dblp_job_budget(conf);
}

/* Get the job of a socket and a reference */
static struct dblp_job *dblp_job_of(struct dblp_sock *dsk)
{
	struct dblp_job *job;

	lock_sock(&dsk->sk);
	job = dsk->job;
	if (job)
		refcount_inc(&job->refs);
	release_sock(&dsk->sk);
	return job;
}

/* Give a norm to the detector; true if that has moved the job */
static bool dblp_job_report(struct net *net, struct dblp_job *job, u64 norm)
{
	u8 was = job->conf.phase, phase = was;

	lockdep_assert_held(&job->turn);
	spin_lock_bh(&job->lock);
	dblp_clr_report(&job->detector, norm);
	if (job->conf.clr == DBLP_CLR_ON)
		phase = dblp_job_choice(job, &job->conf);
	if (phase != was) {
		dblp_job_leave_phase(job);
		write_seqcount_begin(&job->seq);
		job->conf.phase = phase;
		write_seqcount_end(&job->seq);
	}
	spin_unlock_bh(&job->lock);
	if (phase != was)
		dblp_job_moved(net, job, was, DBLP_ACTOR_DETECTOR);
	return phase != was;
}

/**
 * dblp_job_norm() - a program reports the norm of its gradient
 * @dsk: a socket of its job, not locked
 * @norm: in any unit, always the same
 *
 * Unless the detector is off or held, it moves the job as an operator would.
 *
 * Return: 0, -ENOENT if the socket is in no job, -EPERM if the job is another
 * user's.
 */
int dblp_job_norm(struct dblp_sock *dsk, u64 norm)
{
	struct net *net = sock_net(&dsk->sk);
	struct dblp_job *job;
	bool moved = false;
	int err = 0;

	job = dblp_job_of(dsk);
	if (!job)
		return -ENOENT;
	mutex_lock(&job->turn);
	if (dblp_job_allows(net, job))
		moved = dblp_job_report(net, job, norm);
	else
		err = -EPERM;
	mutex_unlock(&job->turn);
	if (moved)
		dblp_job_push(job);
	dblp_job_put(job);
	return err;
}
