// SPDX-License-Identifier: GPL-2.0-only
/*
 * The phases (named sets of socket settings) and jobs of a network namespace,
 * as set by operators. config.c applies them to sockets.
 */
#include <linux/cred.h>

#include "dblp.h"
#include "trace.h"

static const struct dblp_phase dblp_phase_defaults[] = {
	{
		.name = "reliable", .policy = DBLP_POLICY_FULL,
		.cap = DBLP_INHERIT,
	},
	[DBLP_PHASE_CRITICAL] = {
		.name = "critical", .policy = DBLP_POLICY_EARLY, .budget = 8000,
		.cap = DBLP_INHERIT,
	},
	[DBLP_PHASE_TOLERANT] = {
		.name = "tolerant", .policy = DBLP_POLICY_EAGER,
		.budget = 408000, .cap = DBLP_INHERIT,
	},
};

/** dblp_defaults_init() - initial defaults of a namespace */
void dblp_defaults_init(struct dblp_defaults *d)
{
	d->cc = dblp_cc_at(0);
	d->cap = DBLP_INHERIT;
	d->user_timeout_ms = DBLP_USER_TIMEOUT_MS;
	d->keepalive_ms = DBLP_KEEPALIVE_MS;
	d->gso = 1;
}

/** dblp_defaults_read() - read the defaults of new sockets */
void dblp_defaults_read(struct dblp_config *c, struct dblp_defaults *d)
{
	d->cc = READ_ONCE(c->defaults.cc);
	d->cap = READ_ONCE(c->defaults.cap);
	d->user_timeout_ms = READ_ONCE(c->defaults.user_timeout_ms);
	d->keepalive_ms = READ_ONCE(c->defaults.keepalive_ms);
	d->gso = READ_ONCE(c->defaults.gso);
}

/** dblp_defaults_write() - set the defaults of new sockets, with @lock held */
void dblp_defaults_write(struct dblp_config *c, const struct dblp_defaults *d)
{
	lockdep_assert_held(&c->lock);
	WRITE_ONCE(c->defaults.cc, d->cc);
	WRITE_ONCE(c->defaults.cap, d->cap);
	WRITE_ONCE(c->defaults.user_timeout_ms, d->user_timeout_ms);
	WRITE_ONCE(c->defaults.keepalive_ms, d->keepalive_ms);
	WRITE_ONCE(c->defaults.gso, d->gso);
	c->defaults_generation++;
}

/** dblp_config_init() - initialize the table of a namespace */
void dblp_config_init(struct dblp_config *c)
{
	mutex_init(&c->lock);
	seqlock_init(&c->seq);
	xa_init(&c->jobs);
	dblp_defaults_init(&c->defaults);
	memcpy(c->phases, dblp_phase_defaults, sizeof(dblp_phase_defaults));
}

/** dblp_config() - settings of operators for a namespace */
struct dblp_config *dblp_config(struct net *net)
{
	return &dblp_pernet(net)->config;
}

/**
 * dblp_phase_get() - look up a phase
 * @net: namespace
 * @id: number
 * @p: set to a consistent copy
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

/**
 * dblp_drop_phase() - let a socket leave the phase that it chose
 * @dsk: socket, locked or being destroyed
 */
void dblp_drop_phase(struct dblp_sock *dsk)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));

	if (!(dsk->conf.own & DBLP_OWN(DBLP_PHASE)))
		return;
	dsk->conf.own &= ~DBLP_OWN(DBLP_PHASE);
	if (dsk->opt.phase)
		atomic_dec(&c->users[dsk->opt.phase]);
}

/**
 * dblp_choose_phase() - set the phase that a socket chooses
 * @dsk: socket, locked, or new
 * @id: number of the phase, which exists
 */
void dblp_choose_phase(struct dblp_sock *dsk, u8 id)
{
	struct dblp_config *c = dblp_config(sock_net(&dsk->sk));

	dblp_drop_phase(dsk);
	if (dsk->opt.phase != id)
		trace_dblp_phase_changed(sock_net(&dsk->sk), dsk, dsk->conf.job,
					 dsk->opt.phase, id);
	dsk->opt.phase = id;
	dsk->conf.own |= DBLP_OWN(DBLP_PHASE);
	if (id)
		atomic_inc(&c->users[id]);
}

/* Is a job in a phase, or may its detector choose it? */
static bool dblp_job_needs_phase(struct dblp_job *job, u32 phase)
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

/**
 * dblp_phase_delete() - delete a phase
 * @net: namespace
 * @id: number, less than DBLP_PHASES
 *
 * Context: process, with @lock of the configuration held.
 * Return: 0, or -EBUSY if a socket or a job uses the phase, or if it is phase
 * 0, the phase of all sockets that choose none.
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

/*
 * Jobs: the sockets of one training job, which share a phase.
 *
 * @lock of the configuration protects the table of a namespace. A socket
 * accesses its job with its own lock only, because it holds a reference.
 *
 * A job belongs to a user. Other users need CAP_NET_ADMIN to put a socket in
 * it, or to move it by a norm. The cost of a norm falls on the process that
 * reports it, and on the sockets of the job. The report holds no lock for long
 * that others need and walks over these sockets only, and no other socket reads
 * the table again.
 */

/**
 * dblp_job_find() - job by number
 * @c: configuration, with @lock held
 * @id: number
 *
 * Return: the job, valid while @lock is held, or NULL.
 */
struct dblp_job *dblp_job_find(struct dblp_config *c, u32 id)
{
	lockdep_assert_held(&c->lock);
	return xa_load(&c->jobs, id);
}

/**
 * dblp_job_allows() - may the caller put sockets in a job and report norms?
 * @net: namespace
 * @job: job, with its @turn or @lock of the configuration held
 */
bool dblp_job_allows(const struct net *net, const struct dblp_job *job)
{
	return uid_eq(current_fsuid(), job->conf.owner) ||
	       ns_capable(net->user_ns, CAP_NET_ADMIN);
}

/** dblp_job_conf_init() - default settings of a job */
void dblp_job_conf_init(struct dblp_job_conf *conf)
{
	*conf = (struct dblp_job_conf) {
		.low_phase = DBLP_PHASE_CRITICAL,
		.high_phase = DBLP_PHASE_TOLERANT,
		.low = DBLP_INHERIT,
		.high = DBLP_INHERIT,
		.cap = DBLP_INHERIT,
		.eta = DBLP_CLR_ETA_DEFAULT,
		.owner = current_fsuid(),
	};
}

/**
 * dblp_job_choice() - the phase that the detector chooses
 * @job: job, with its @turn held, or NULL for a new one
 * @conf: new settings of the job
 *
 * A detector that is switched on starts in a critical regime.
 */
u8 dblp_job_choice(const struct dblp_job *job, const struct dblp_job_conf *conf)
{
	if (job && job->conf.clr != DBLP_CLR_OFF && job->detector.tolerant)
		return conf->high_phase;
	return conf->low_phase;
}

/**
 * dblp_job_budget() - budget of a job
 * @conf: settings of the job, read under @seq
 *
 * Return: ppm; DBLP_INHERIT if the job uses the budget of its phase.
 */
u32 dblp_job_budget(const struct dblp_job_conf *conf)
{
	if (conf->clr == DBLP_CLR_OFF)
		return DBLP_INHERIT;
	if (conf->phase == conf->low_phase)
		return conf->low;
	return conf->phase == conf->high_phase ? conf->high : DBLP_INHERIT;
}

/** dblp_job_put() - drop a reference */
void dblp_job_put(struct dblp_job *job)
{
	if (!refcount_dec_and_test(&job->refs))
		return;
	mutex_destroy(&job->turn);
	kfree(job);
}

/**
 * dblp_job_add() - add a job
 * @net: namespace, with @lock of its configuration held
 * @id: unused number, not 0
 * @conf: settings; the phases exist
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
	seqcount_spinlock_init(&job->seq, &job->lock);
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

/**
 * dblp_job_delete() - delete a job
 * @net: namespace, with @lock of its configuration held
 * @job: job
 *
 * Return: 0, or -EBUSY if the job has sockets.
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
 * dblp_job_spent() - time that a job has been in a phase, ns
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

/** dblp_jobs_exit() - free the jobs of a namespace without sockets */
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
 * dblp_enter_job() - put a socket into a job
 * @dsk: socket with a number and without a job, locked
 * @job: job, which cannot be deleted meanwhile
 */
void dblp_enter_job(struct dblp_sock *dsk, struct dblp_job *job)
{
	struct rb_node **at, *parent = NULL;
	struct dblp_sock *other;

	sock_owned_by_me(&dsk->sk);
	refcount_inc(&job->refs);
	dsk->conf.job = job;
	spin_lock_bh(&job->lock);
	for (at = &job->socks.rb_node; *at;) {
		parent = *at;
		other = rb_entry(parent, struct dblp_sock, conf.job_node);
		at = dsk->id < other->id ? &parent->rb_left :
					   &parent->rb_right;
	}
	rb_link_node(&dsk->conf.job_node, parent, at);
	rb_insert_color(&dsk->conf.job_node, &job->socks);
	WRITE_ONCE(job->n_socks, job->n_socks + 1);
	spin_unlock_bh(&job->lock);
}

/**
 * dblp_leave_job() - take a socket out of its job
 * @dsk: socket, locked or being destroyed
 */
void dblp_leave_job(struct dblp_sock *dsk)
{
	struct dblp_job *job = dsk->conf.job;

	if (!job)
		return;
	dsk->conf.job = NULL;
	spin_lock_bh(&job->lock);
	rb_erase(&dsk->conf.job_node, &job->socks);
	WRITE_ONCE(job->n_socks, job->n_socks - 1);
	spin_unlock_bh(&job->lock);
	dblp_job_put(job);
}

/**
 * dblp_job_account() - count a settled message in its job
 * @dsk: socket that sent the message, locked
 * @phase: phase that the message was sent in
 * @len: bytes of the message
 * @missing: missing bytes of the message
 *
 * It is called once per message, so per-CPU counters are not needed.
 */
void dblp_job_account(struct dblp_sock *dsk, u8 phase, u32 len, u32 missing)
{
	struct dblp_job *job = dsk->conf.job;

	sock_owned_by_me(&dsk->sk);
	if (!job)
		return;
	atomic64_inc(&job->messages[phase]);
	atomic64_add(len, &job->bytes[phase]);
	if (missing)
		atomic64_add(missing, &job->forgiven[phase]);
}

/**
 * dblp_leave_config() - let a socket leave its phase and its job
 * @dsk: socket, locked or being destroyed
 */
void dblp_leave_config(struct dblp_sock *dsk)
{
	dblp_drop_phase(dsk);
	dblp_leave_job(dsk);
}
