// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: the sockets of one training run, which share a phase.
 *
 * The table of a namespace is under @lock of its configuration. A socket gets to
 * its job without any lock but its own, as it holds a reference.
 *
 * A job belongs to a user. Who else wants to put a socket in it, or to move it
 * by a norm, needs CAP_NET_ADMIN. What a norm costs is paid by who reports it: it
 * takes no lock that others need for long, and walks over the sockets of the job
 * and no more.
 */
#include <linux/cred.h>

#include "dblp.h"
#include "trace.h"

/**
 * dblp_job_find() - job by number
 * @c: configuration, with @lock held
 * @id: number
 *
 * Return: the job, good as long as @lock is held, or NULL.
 */
struct dblp_job *dblp_job_find(struct dblp_config *c, u32 id)
{
	lockdep_assert_held(&c->lock);
	return xa_load(&c->jobs, id);
}

/**
 * dblp_job_allows() - may the caller have sockets in a job and tell it norms?
 * @net: namespace
 * @job: job, with its @turn or @lock of the configuration held
 */
bool dblp_job_allows(const struct net *net, const struct dblp_job *job)
{
	return uid_eq(current_fsuid(), job->conf.owner) ||
	       ns_capable(net->user_ns, CAP_NET_ADMIN);
}

/** dblp_job_conf_init() - what a job has that was told nothing */
void dblp_job_conf_init(struct dblp_job_conf *conf)
{
	*conf = (struct dblp_job_conf) {
		.low_phase = DBLP_PHASE_CRITICAL,
		.high_phase = DBLP_PHASE_TOLERANT,
		.low = DBLP_INHERIT,
		.high = DBLP_INHERIT,
		.eta = DBLP_CLR_ETA_DEFAULT,
		.owner = current_fsuid(),
	};
}

/**
 * dblp_job_choice() - the phase that the detector wants
 * @job: job, with its @turn held, or NULL for a new one
 * @conf: what it is about to be set to
 *
 * A detector that is switched on begins in a critical regime.
 */
u8 dblp_job_choice(const struct dblp_job *job, const struct dblp_job_conf *conf)
{
	if (job && job->conf.clr != DBLP_CLR_OFF && job->detector.tolerant)
		return conf->high_phase;
	return conf->low_phase;
}

/**
 * dblp_job_budget() - the budget of a job, in ppm
 * @conf: what is set for it, read under @seq
 *
 * Return: DBLP_INHERIT if it is that of its phase.
 */
u32 dblp_job_budget(const struct dblp_job_conf *conf)
{
	if (conf->clr == DBLP_CLR_OFF)
		return DBLP_INHERIT;
	if (conf->phase == conf->low_phase)
		return conf->low;
	return conf->phase == conf->high_phase ? conf->high : DBLP_INHERIT;
}

/** dblp_job_needs_phase() - is a job in a phase, or may its detector go there? */
bool dblp_job_needs_phase(struct dblp_job *job, u32 phase)
{
	const struct dblp_job_conf *conf = &job->conf;
	bool needs;

	spin_lock_bh(&job->lock);
	needs = conf->phase == phase ||
		(conf->clr != DBLP_CLR_OFF &&
		 (conf->low_phase == phase || conf->high_phase == phase));
	spin_unlock_bh(&job->lock);
	return needs;
}

static void dblp_job_put(struct dblp_job *job)
{
	if (!refcount_dec_and_test(&job->refs))
		return;
	mutex_destroy(&job->turn);
	kfree(job);
}

/**
 * dblp_job_add() - a new job
 * @net: namespace, with @lock of its configuration held
 * @id: number, not 0 and not taken
 * @conf: what is set for it; the phases exist
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_job_add(struct net *net, u32 id, const struct dblp_job_conf *conf)
{
	struct dblp_config *c = dblp_config(net);
	struct dblp_job *job;
	int err;

	lockdep_assert_held(&c->lock);
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return -ENOMEM;
	job->id = id;
	job->conf = *conf;
	job->detector.eta = conf->eta;
	job->detector.hold = conf->hold;
	refcount_set(&job->refs, 1);
	mutex_init(&job->turn);
	spin_lock_init(&job->lock);
	job->socks = RB_ROOT;
	job->since = ktime_get_ns();
	err = xa_insert(&c->jobs, id, job, GFP_KERNEL_ACCOUNT);
	if (err) {
		dblp_job_put(job);
		return err;
	}
	atomic_inc(&c->jobs_generation);
	dblp_event_job(net, DBLP_CMD_JOB_ADD_NTF, job);
	return 0;
}

/* The socket in a job with the smallest number from @id on, with a reference */
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
	/* One that is about to be freed is still here, and has none to give */
	while (found && !refcount_inc_not_zero(&found->sk.sk_refcnt)) {
		node = rb_next(&found->job_node);
		found = rb_entry_safe(node, struct dblp_sock, job_node);
	}
	spin_unlock_bh(&job->lock);
	return found;
}

/* Have the sockets of a job look at what is set for it */
static void dblp_job_push(struct dblp_job *job)
{
	struct dblp_sock *dsk;
	u32 id = 1;

	lockdep_assert_held(&job->turn);
	while ((dsk = dblp_job_next(job, id))) {
		id = dsk->id + 1;
		dblp_sock_push(dsk);
	}
}

/* The time in the phase that a job leaves now */
static void dblp_job_leave_phase(struct dblp_job *job)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&job->lock);
	job->spent[job->conf.phase] += now - job->since;
	job->since = now;
}

/* What was written is in force when this returns */
static void dblp_job_follow(struct net *net, struct dblp_job *job,
			    const struct dblp_job_conf *was,
			    enum dblp_actor by)
{
	bool moved = job->conf.phase != was->phase;

	lockdep_assert_held(&job->turn);
	atomic_inc(&dblp_config(net)->jobs_generation);
	if (moved)
		trace_dblp_phase_changed(net, NULL, job, was->phase,
					 job->conf.phase);
	if (moved || dblp_job_budget(&job->conf) != dblp_job_budget(was))
		dblp_job_push(job);
	if (moved)
		dblp_event_job_phase(net, job, was->phase, by);
}

/**
 * dblp_job_set() - change what is set for a job, and move its sockets
 * @net: namespace, with @lock of its configuration held
 * @job: job, with @turn held
 * @conf: what is set from now on; the phases exist. When this returns it is in
 *	force
 */
void dblp_job_set(struct net *net, struct dblp_job *job,
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
	write_seqlock(&c->seq);
	job->conf = *conf;
	write_sequnlock(&c->seq);
	spin_unlock_bh(&job->lock);
	dblp_job_follow(net, job, &was, DBLP_ACTOR_OPERATOR);
}

/* The job of a socket, with a reference */
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

/* A norm for the detector, which may move the job */
static void dblp_job_report(struct net *net, struct dblp_job *job, u64 norm)
{
	struct dblp_config *c = dblp_config(net);
	struct dblp_job_conf was = job->conf;
	u8 phase = was.phase;

	spin_lock_bh(&job->lock);
	dblp_clr_report(&job->detector, norm);
	if (was.clr == DBLP_CLR_ON)
		phase = dblp_job_choice(job, &was);
	if (phase != was.phase) {
		dblp_job_leave_phase(job);
		write_seqlock(&c->seq);
		job->conf.phase = phase;
		write_sequnlock(&c->seq);
	}
	spin_unlock_bh(&job->lock);
	if (phase != was.phase)
		dblp_job_follow(net, job, &was, DBLP_ACTOR_DETECTOR);
}

/**
 * dblp_job_norm() - a program tells the norm of its gradient
 * @dsk: a socket of its job, not locked
 * @norm: in any unit that stays
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
	int err = 0;

	job = dblp_job_of(dsk);
	if (!job)
		return -ENOENT;
	mutex_lock(&job->turn);
	if (dblp_job_allows(net, job))
		dblp_job_report(net, job, norm);
	else
		err = -EPERM;
	mutex_unlock(&job->turn);
	dblp_job_put(job);
	return err;
}

/**
 * dblp_job_delete() - forget a job
 * @net: namespace, with @lock of its configuration held
 * @job: job
 *
 * Return: 0, or -EBUSY if there are sockets in it.
 */
int dblp_job_delete(struct net *net, struct dblp_job *job)
{
	struct dblp_config *c = dblp_config(net);

	lockdep_assert_held(&c->lock);
	if (dblp_job_sockets(job))
		return -EBUSY;
	xa_erase(&c->jobs, job->id);
	atomic_inc(&c->jobs_generation);
	dblp_event_job(net, DBLP_CMD_JOB_DEL_NTF, job);
	dblp_job_put(job);
	return 0;
}

/**
 * dblp_job_spent() - how long a job has been in a phase, ns
 * @job: job, with its @lock held
 * @phase: number of the phase
 */
u64 dblp_job_spent(const struct dblp_job *job, u8 phase)
{
	u64 spent = job->spent[phase];

	if (job->conf.phase == phase)
		spent += ktime_get_ns() - job->since;
	return spent;
}

/** dblp_jobs_exit() - the namespace goes, and its sockets have gone */
void dblp_jobs_exit(struct dblp_config *c)
{
	struct dblp_job *job;
	unsigned long id;

	xa_for_each(&c->jobs, id, job) {
		WARN_ON_ONCE(refcount_read(&job->refs) != 1);
		dblp_job_put(job);
	}
	xa_destroy(&c->jobs);
}

/**
 * dblp_enter_job() - the socket is in a job
 * @dsk: socket with a number and in no job, locked
 * @job: job, which cannot be deleted meanwhile
 */
void dblp_enter_job(struct dblp_sock *dsk, struct dblp_job *job)
{
	struct rb_node **at, *parent = NULL;
	struct dblp_sock *other;

	sock_owned_by_me(&dsk->sk);
	refcount_inc(&job->refs);
	dsk->job = job;
	spin_lock_bh(&job->lock);
	for (at = &job->socks.rb_node; *at;) {
		parent = *at;
		other = rb_entry(parent, struct dblp_sock, job_node);
		at = dsk->id < other->id ? &parent->rb_left :
					   &parent->rb_right;
	}
	rb_link_node(&dsk->job_node, parent, at);
	rb_insert_color(&dsk->job_node, &job->socks);
	WRITE_ONCE(job->n_socks, job->n_socks + 1);
	spin_unlock_bh(&job->lock);
}

/**
 * dblp_leave_job() - the socket is in no job any more
 * @dsk: socket, locked or at its end
 */
void dblp_leave_job(struct dblp_sock *dsk)
{
	struct dblp_job *job = dsk->job;

	if (!job)
		return;
	dsk->job = NULL;
	spin_lock_bh(&job->lock);
	rb_erase(&dsk->job_node, &job->socks);
	WRITE_ONCE(job->n_socks, job->n_socks - 1);
	spin_unlock_bh(&job->lock);
	dblp_job_put(job);
}

/**
 * dblp_job_account() - a message is settled
 * @dsk: socket that sent it, locked
 * @phase: in which
 * @len: its bytes
 * @missing: of those, the missing ones
 *
 * Once for a message, so that counters of each CPU would not pay.
 */
void dblp_job_account(struct dblp_sock *dsk, u8 phase, u32 len, u32 missing)
{
	struct dblp_job *job = dsk->job;

	sock_owned_by_me(&dsk->sk);
	if (!job)
		return;
	atomic64_inc(&job->messages[phase]);
	atomic64_add(len, &job->bytes[phase]);
	if (missing)
		atomic64_add(missing, &job->forgiven[phase]);
}
