// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs: the sockets of one training run, which share a phase.
 *
 * The table of a namespace is under @lock of its configuration. A socket gets to
 * its job without any lock but its own, as it holds a reference.
 */
#include "dblp.h"

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
 * dblp_job_add() - a new job
 * @c: configuration, with @lock held
 * @id: number, not 0 and not taken
 * @name: its name, or ""
 * @phase: number of an existing phase
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_job_add(struct dblp_config *c, u32 id, const char *name, u8 phase)
{
	struct dblp_job *job;
	int err;

	lockdep_assert_held(&c->lock);
	job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return -ENOMEM;
	job->id = id;
	job->phase = phase;
	strscpy(job->name, name, sizeof(job->name));
	refcount_set(&job->refs, 1);
	job->since = ktime_get_ns();
	err = xa_insert(&c->jobs, id, job, GFP_KERNEL_ACCOUNT);
	if (err) {
		kfree(job);
		return err;
	}
	c->jobs_generation++;
	return 0;
}

/**
 * dblp_job_set() - name a job, move its sockets to a phase
 * @net: namespace, with @lock of its configuration held
 * @job: job
 * @name: its name from now on, or ""
 * @phase: number of an existing phase; when this returns it is in force
 */
void dblp_job_set(struct net *net, struct dblp_job *job, const char *name,
		  u8 phase)
{
	struct dblp_config *c = dblp_config(net);
	u64 now = ktime_get_ns();

	lockdep_assert_held(&c->lock);
	strscpy(job->name, name, sizeof(job->name));
	if (job->phase == phase)
		return;
	job->spent[job->phase] += now - job->since;
	job->since = now;
	write_seqlock_bh(&c->seq);
	job->phase = phase;
	write_sequnlock_bh(&c->seq);
	dblp_config_push(net);
}

/**
 * dblp_job_delete() - forget a job
 * @c: configuration, with @lock held
 * @job: job
 *
 * Return: 0, or -EBUSY if there are sockets in it.
 */
int dblp_job_delete(struct dblp_config *c, struct dblp_job *job)
{
	lockdep_assert_held(&c->lock);
	if (dblp_job_sockets(job))
		return -EBUSY;
	xa_erase(&c->jobs, job->id);
	c->jobs_generation++;
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

	if (job->phase == phase)
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

	if (!job)
		return;
	atomic64_inc(&job->messages[phase]);
	atomic64_add(len, &job->bytes[phase]);
	if (missing)
		atomic64_add(missing, &job->forgiven[phase]);
}
