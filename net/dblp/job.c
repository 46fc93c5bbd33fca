// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: the sockets of one training run, which share a phase.
 *
 * The table of a namespace is under @lock of its configuration. A socket gets to
 * its job without any lock but its own, as it holds a reference.
 */
#include "dblp.h"
#include "event.h"
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

/** dblp_job_conf_init() - what a job has that was told nothing */
void dblp_job_conf_init(struct dblp_job_conf *conf)
{
	*conf = (struct dblp_job_conf) {
		.low_phase = DBLP_PHASE_CRITICAL,
		.high_phase = DBLP_PHASE_TOLERANT,
		.low = DBLP_INHERIT,
		.high = DBLP_INHERIT,
		.eta = DBLP_CLR_ETA_DEFAULT,
	};
}

/**
 * dblp_job_choice() - the phase that the detector wants
 * @job: job, with @lock of the configuration held, or NULL for a new one
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
bool dblp_job_needs_phase(const struct dblp_job *job, u32 phase)
{
	const struct dblp_job_conf *conf = &job->conf;

	return conf->phase == phase ||
	       (conf->clr != DBLP_CLR_OFF &&
		(conf->low_phase == phase || conf->high_phase == phase));
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
	job->since = ktime_get_ns();
	err = xa_insert(&c->jobs, id, job, GFP_KERNEL_ACCOUNT);
	if (err) {
		kfree(job);
		return err;
	}
	c->jobs_generation++;
	dblp_event_job(net, DBLP_CMD_JOB_ADD_NTF, job);
	return 0;
}

/* The time in the phase that a job leaves now */
static void dblp_job_leave_phase(struct dblp_job *job)
{
	u64 now = ktime_get_ns();

	job->spent[job->conf.phase] += now - job->since;
	job->since = now;
}

/**
 * dblp_job_set() - change what is set for a job, and move its sockets
 * @net: namespace, with @lock of its configuration held
 * @job: job
 * @conf: what is set from now on; the phases exist. When this returns it is in
 *	force
 * @by: who does it
 */
void dblp_job_set(struct net *net, struct dblp_job *job,
		  const struct dblp_job_conf *conf, enum dblp_actor by)
{
	bool moved = job->conf.phase != conf->phase;
	struct dblp_config *c = dblp_config(net);
	bool other = dblp_job_budget(&job->conf) != dblp_job_budget(conf);
	u8 old_phase = job->conf.phase;

	lockdep_assert_held(&c->lock);
	if (job->conf.clr == DBLP_CLR_OFF && conf->clr != DBLP_CLR_OFF)
		dblp_clr_start(&job->detector);
	job->detector.eta = conf->eta;
	job->detector.hold = conf->hold;
	c->jobs_generation++;
	if (moved) {
		trace_dblp_phase_changed(net, NULL, job, old_phase,
					 conf->phase);
		dblp_job_leave_phase(job);
	}
	write_seqlock_bh(&c->seq);
	job->conf = *conf;
	write_sequnlock_bh(&c->seq);
	if (moved || other)
		dblp_config_push(net);
	if (moved)
		dblp_event_job_phase(net, job, old_phase, by);
}

/* The job of a socket, good as long as @lock of the configuration is held */
static struct dblp_job *dblp_job_of(struct dblp_sock *dsk)
{
	struct dblp_job *job;

	lock_sock(&dsk->sk);
	job = dsk->job;
	release_sock(&dsk->sk);
	return job;
}

/**
 * dblp_job_norm() - a program tells the norm of its gradient
 * @dsk: a socket of its job, not locked
 * @norm: in any unit that stays
 *
 * Unless the detector is off or held, it moves the job as an operator would.
 *
 * Return: 0, or -ENOENT if the socket is in no job.
 */
int dblp_job_norm(struct dblp_sock *dsk, u64 norm)
{
	struct net *net = sock_net(&dsk->sk);
	struct dblp_config *c = dblp_config(net);
	struct dblp_job_conf conf;
	struct dblp_job *job;

	mutex_lock(&c->lock);
	job = dblp_job_of(dsk);
	if (job) {
		dblp_clr_report(&job->detector, norm);
		conf = job->conf;
		if (conf.clr == DBLP_CLR_ON)
			conf.phase = dblp_job_choice(job, &conf);
		if (conf.phase != job->conf.phase)
			dblp_job_set(net, job, &conf, DBLP_ACTOR_DETECTOR);
	}
	mutex_unlock(&c->lock);
	return job ? 0 : -ENOENT;
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
	c->jobs_generation++;
	dblp_event_job(net, DBLP_CMD_JOB_DEL_NTF, job);
	kfree(job);
	return 0;
}

/**
 * dblp_job_spent() - how long a job has been in a phase, ns
 * @job: job, with @lock of the configuration held
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
		WARN_ON_ONCE(dblp_job_sockets(job));
		kfree(job);
	}
	xa_destroy(&c->jobs);
}

/**
 * dblp_inherit_job() - a connection is in the job of its listener
 * @child: new socket that nobody else knows
 * @listener: locked
 */
void dblp_inherit_job(struct dblp_sock *child, const struct dblp_sock *listener)
{
	sock_owned_by_me(&listener->sk);
	child->job = listener->job;
	if (child->job)
		refcount_inc(&child->job->refs);
}

/**
 * dblp_leave_job() - the socket is in no job any more
 * @dsk: socket, locked or at its end
 */
void dblp_leave_job(struct dblp_sock *dsk)
{
	/* The table has a reference: this is not the last */
	if (dsk->job)
		refcount_dec(&dsk->job->refs);
	dsk->job = NULL;
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
