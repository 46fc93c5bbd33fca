// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings in force for a socket: from its phase, its job, and its own options;
 * and changes of these.
 *
 * A socket caches the settings in force. The table (phase.c) and each job have
 * a sequence number. If one has changed when the socket sends or receives a
 * message, the socket reads the settings again. So packets need no lookup in
 * the table. Messages are walked only if a setting differs.
 *
 * A change of the table or of a job also walks over the sockets concerned, to
 * reach messages in flight: the sockets of the job, or for a phase, all of the
 * namespace. A walk holds the lock of one socket only, so walks may overlap.
 * Each walk makes sockets apply the latest settings.
 *
 * The budget of messages in flight can be changed. Each DATA packet carries the
 * budget, and the highest packet number has the latest. A BUDGET frame carries
 * a changed budget, too, in case no more DATA packets follow.
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
 * Shuffle the unsent segments of a message that was started in sequence, so
 * that the bytes missing at close are not its tail. The bytes are not moved, so
 * trains of these segments are not possible.
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

/* Change the budget of a message. @budget_most covers all packets sent */
static void dblp_budget_move(struct dblp_tx_msg *msg, u32 ppm)
{
	msg->budget = ppm;
	msg->budget_most = dblp_tx_begun(msg) ? max(msg->budget_most, ppm) :
						ppm;
	if (ppm)
		dblp_budget_reorder(msg);
}

/*
 * Set the budget of a socket, and of its queued messages that have no budget of
 * their own.
 */
static void dblp_set_budget(struct dblp_sock *dsk, u32 ppm)
{
	struct dblp_tx_msg *msg;

	/* All messages that may change have this budget */
	if (dsk->opt.budget == ppm)
		return;
	list_for_each_entry(msg, &dsk->tx.msgs, list) {
		if (!dblp_budget_movable(msg, ppm))
			continue;
		if (dblp_tx_begun(msg))
			dblp_ctl_budget(dsk, msg);
		dblp_budget_move(msg, ppm);
	}
	/* Pieces that are not queued yet */
	if (dsk->tx.part && dblp_budget_movable(&dsk->tx.part->msg, ppm))
		dsk->tx.part->msg.budget = ppm;
	dsk->opt.budget = ppm;
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	dblp_tx_recount(dsk);
	dblp_flush(dsk);
}

/**
 * dblp_tx_refresh_budget() - update the budget of a message before it is queued
 * @dsk: socket, locked
 * @msg: message or piece of which nothing was sent
 *
 * The budget of the socket may have changed while the socket was unlocked to
 * copy the bytes.
 */
void dblp_tx_refresh_budget(const struct dblp_sock *dsk,
			    struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_budget_movable(msg, dsk->opt.budget))
		dblp_budget_move(msg, dsk->opt.budget);
}

/* Set the receive budget cap, also for open messages */
static void dblp_set_cap(struct dblp_sock *dsk, u32 ppm)
{
	if (dsk->opt.cap == ppm)
		return;
	dsk->opt.cap = ppm;
	/* The peer may already have received the parameters of this end */
	if (dsk->state == DBLP_STATE_COOKIE_SENT)
		dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	if (dsk->state != DBLP_STATE_ESTABLISHED)
		return;
	dblp_rx_judge_all(dsk);
	dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	dblp_flush(dsk);
}

/* Has the program accepted missing bytes without setting a cap? */
static bool dblp_accepts_loss(const struct dblp_sock *dsk)
{
	return dsk->opt.placement || dsk->conf.own & DBLP_OWN(DBLP_FILL);
}

/* Cap of a socket with phase @p that has no cap of its own */
static u32 dblp_look_up_cap(const struct dblp_sock *dsk,
			    const struct dblp_phase *p)
{
	if (dsk->conf.job && dsk->conf.job->conf.cap != DBLP_INHERIT)
		return dsk->conf.job->conf.cap;
	if (p->cap != DBLP_INHERIT)
		return p->cap;
	if (dsk->conf.default_cap != DBLP_INHERIT)
		return dsk->conf.default_cap;
	return dblp_accepts_loss(dsk) ? DBLP_PPM : 0;
}

/* Look up the settings of a socket's phase and job, under @seq of both */
static void dblp_look_up(struct dblp_sock *dsk, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->conf.job;
	u32 budget;

	if (!(dsk->conf.own & DBLP_OWN(DBLP_PHASE)))
		dsk->opt.phase = job ? job->conf.phase : 0;
	*p = c->phases[dsk->opt.phase];
	p->cap = dblp_look_up_cap(dsk, p);
	if (!job || dsk->conf.own & DBLP_OWN(DBLP_PHASE))
		return;
	budget = dblp_job_budget(&job->conf);
	if (budget != DBLP_INHERIT)
		p->budget = budget;
}

/* Read the table and the job consistently, and record their sequence numbers */
static void dblp_read_config(struct dblp_sock *dsk, struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->conf.job;
	unsigned int seq, job_seq = 0;

	do {
		seq = read_seqbegin(&c->seq);
		if (job)
			job_seq = read_seqcount_begin(&job->seq);
		dblp_look_up(dsk, p);
	} while (read_seqretry(&c->seq, seq) ||
		 (job && read_seqcount_retry(&job->seq, job_seq)));
	dsk->conf.seq = seq;
	dsk->conf.job_seq = job_seq;
}

/**
 * dblp_apply_config() - apply the settings of the table
 * @dsk: socket, locked; the caller has a reference, because sending may end the
 *	connection
 *
 * The socket's own settings take precedence: its own budget is used even if the
 * policy of the phase is full. Budget and cap apply to messages in flight, too.
 *
 * A receiver gets no holes unless its program or its operator has set a cap,
 * fill or placement: otherwise the cap is 0.
 */
void dblp_apply_config(struct dblp_sock *dsk)
{
	u32 phase = dsk->opt.phase;
	struct dblp_phase p;

	dblp_read_config(dsk, &p);
	if (dsk->opt.phase != phase)
		trace_dblp_phase_changed(sock_net(&dsk->sk), dsk, dsk->conf.job,
					 phase, dsk->opt.phase);

	if (p.policy == DBLP_POLICY_FULL)
		p.policy = DBLP_POLICY_EAGER;
	if (!(dsk->conf.own & DBLP_OWN(DBLP_CLOSE_POLICY)))
		dsk->opt.policy = p.policy;
	if (!(dsk->conf.own & DBLP_OWN(DBLP_ORDER)))
		dsk->opt.order = p.order;
	if (!(dsk->conf.own & DBLP_OWN(DBLP_FILL)))
		dsk->opt.fill = p.fill;
	if (!(dsk->conf.own & DBLP_OWN(DBLP_BUDGET)))
		dblp_set_budget(dsk, p.budget);
	if (!(dsk->conf.own & DBLP_OWN(DBLP_BUDGET_CAP)))
		dblp_set_cap(dsk, p.cap);
}

/* Has the table or the job changed since the socket read them? */
static bool dblp_config_changed(const struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));
	const struct dblp_job *job = dsk->conf.job;

	return dsk->conf.seq != read_seqbegin(&c->seq) ||
	       (job && dsk->conf.job_seq != read_seqcount_begin(&job->seq));
}

/**
 * dblp_refresh_config() - apply the settings of the table if they have changed
 * @dsk: socket, locked; the caller has a reference
 */
void dblp_refresh_config(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (unlikely(dblp_config_changed(dsk)))
		dblp_apply_config(dsk);
}

static void dblp_store_own(struct dblp_sock *dsk, int option, u32 val)
{
	dsk->conf.own |= DBLP_OWN(option);
	switch (option) {
	case DBLP_BUDGET:
		dblp_set_budget(dsk, val);
		break;
	case DBLP_BUDGET_CAP:
		dblp_set_cap(dsk, val);
		break;
	case DBLP_CLOSE_POLICY:
		dsk->opt.policy = val;
		break;
	case DBLP_ORDER:
		dsk->opt.order = val;
		break;
	case DBLP_FILL:
		dsk->opt.fill = val;
		break;
	}
}

/**
 * dblp_set_own() - set an option of the socket, or return to that of its phase
 * @dsk: socket, locked
 * @option: one of DBLP_OWN_OPTS except DBLP_PHASE
 * @val: valid value of the option, or DBLP_INHERIT
 *
 * Budget and cap apply to messages in flight, too.
 */
void dblp_set_own(struct dblp_sock *dsk, int option, u32 val)
{
	sock_owned_by_me(&dsk->sk);
	if (val == DBLP_INHERIT)
		dsk->conf.own &= ~DBLP_OWN(option);
	else
		dblp_store_own(dsk, option, val);
	/* DBLP_FILL accepts missing bytes, so the cap may change */
	dblp_apply_config(dsk);
}

/* Has the socket ended? Then dblp_leave_config() will not be called again */
static bool dblp_sock_ended(const struct dblp_sock *dsk)
{
	return sock_flag(&dsk->sk, SOCK_DEAD) &&
	       dsk->state == DBLP_STATE_CLOSED;
}

/**
 * dblp_sock_set_place() - set phase and job of a socket
 * @dsk: socket, not locked
 * @phase: number of the phase, or DBLP_INHERIT; NULL for no change
 * @job_id: number of the job, or 0 for none; NULL for no change
 *
 * Return: 0. Without any change: -ENOENT if the phase does not exist, -ESRCH if
 * the job does not exist, -EPERM if the job is another user's, -ESTALE if the
 * socket has ended.
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
		dblp_leave_job(dsk);
	if (job)
		dblp_enter_job(dsk, job);
release:
	/* Do not let other users wait while messages are walked */
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
 * dblp_inherit_config() - copy the settings of a listener to a connection
 * @child: new socket that is not visible yet
 * @listener: locked
 *
 * The job is not copied, because it lists its sockets by number, which the
 * child lacks.
 */
void dblp_inherit_config(struct dblp_sock *child,
			 const struct dblp_sock *listener)
{
	sock_owned_by_me(&listener->sk);
	child->opt.phase = listener->opt.phase;
	child->opt.budget = listener->opt.budget;
	child->opt.cap = listener->opt.cap;
	child->conf.default_cap = listener->conf.default_cap;
	child->opt.policy = listener->opt.policy;
	child->opt.order = listener->opt.order;
	child->opt.fill = listener->opt.fill;
	child->conf.seq = listener->conf.seq;
	child->conf.job_seq = listener->conf.job_seq;
	child->conf.own = listener->conf.own & ~DBLP_OWN(DBLP_PHASE);
	/* The phase cannot be deleted while the listener is in it */
	if (listener->conf.own & DBLP_OWN(DBLP_PHASE))
		dblp_choose_phase(child, listener->opt.phase);
}

/* Make a socket apply the configuration, and drop a reference to it */
static void dblp_sock_push(struct dblp_sock *dsk)
{
	lock_sock(&dsk->sk);
	if (!dblp_sock_ended(dsk))
		dblp_refresh_config(dsk);
	release_sock(&dsk->sk);
	sock_put(&dsk->sk);
	cond_resched();
}

/**
 * dblp_config_push() - make all sockets of a namespace apply the table
 * @net: namespace
 *
 * On return all sockets have applied it. New sockets apply it by themselves.
 */
void dblp_config_push(struct net *net)
{
	struct dblp_sock *dsk;
	u32 id = 1;

	for (; (dsk = dblp_sock_next(net, &id)); id++)
		dblp_sock_push(dsk);
}

/* Do the settings of two phases differ for sockets? */
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
 * Return: true if the caller must call dblp_config_push(), without @lock.
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
		dsk = rb_entry(node, struct dblp_sock, conf.job_node);
		if (dsk->id >= id)
			found = dsk;
		node = dsk->id >= id ? node->rb_left : node->rb_right;
	}
	/* Skip sockets without references, which are about to be freed */
	while (found && !refcount_inc_not_zero(&found->sk.sk_refcnt)) {
		node = rb_next(&found->conf.job_node);
		found = rb_entry_safe(node, struct dblp_sock, conf.job_node);
	}
	spin_unlock_bh(&job->lock);
	return found;
}

/**
 * dblp_job_push() - make the sockets of a job apply its settings
 * @job: job, with a reference
 *
 * On return all sockets have applied them. Sockets that enter the job apply
 * them by themselves.
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

/* Account for the time that a job spent in the phase that it leaves */
static void dblp_job_leave_phase(struct dblp_job *job)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&job->lock);
	job->spent[job->conf.phase] += now - job->since;
	job->since = now;
}

/* Announce a new phase of a job, before its sockets apply it */
static void dblp_job_moved(struct net *net, struct dblp_job *job, u8 was,
			   enum dblp_actor by)
{
	lockdep_assert_held(&job->turn);
	trace_dblp_phase_changed(net, NULL, job, was, job->conf.phase);
	dblp_event_job_phase(net, job, was, by);
}

/**
 * dblp_job_set() - change the settings of a job
 * @net: namespace, with @lock of its configuration held
 * @job: job, with @turn held
 * @conf: new settings, whose phases exist
 *
 * Return: true if the caller must call dblp_job_push(), without these locks.
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

/* Get the job of a socket, with a reference, or NULL */
static struct dblp_job *dblp_job_of(struct dblp_sock *dsk)
{
	struct dblp_job *job;

	lock_sock(&dsk->sk);
	job = dsk->conf.job;
	if (job)
		refcount_inc(&job->refs);
	release_sock(&dsk->sk);
	return job;
}

/* Pass a norm to the detector. Returns true if the job has changed its phase */
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
 * dblp_job_norm() - process the norm of a gradient, reported by a program
 * @dsk: a socket of its job, not locked
 * @norm: norm in any unit, which must not change
 *
 * The detector may set the phase of the job, unless it is off or held.
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
