/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs: the sockets of one training job, which share a phase.
 */
#ifndef _NET_DBLP_JOB_H
#define _NET_DBLP_JOB_H

#include <linux/atomic.h>
#include <linux/dblp.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <linux/dblp_netlink.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "core/clr.h"
#include "rate.h"

struct dblp_config;
struct dblp_sock;
struct net;

/**
 * struct dblp_job_conf - settings of a job
 * @name: "" if the job has none
 * @phase: phase of its sockets
 * @clr: &enum dblp_clr_mode
 * @low_phase: phase for critical regimes
 * @high_phase: phase for tolerant regimes, not @low_phase
 * @low: budget in @low_phase unless @clr is off, ppm, or DBLP_INHERIT
 * @high: budget in @high_phase, likewise
 * @cap: DBLP_BUDGET_CAP in any phase, ppm, or DBLP_INHERIT
 * @eta: ppm: see &struct dblp_clr
 * @hold: number of reports: see &struct dblp_clr
 * @owner: user whose programs may add sockets to the job and report norms
 */
struct dblp_job_conf {
	char	name[DBLP_NAME_MAX];
	u8	phase;
	u8	clr;
	u8	low_phase;
	u8	high_phase;
	u32	low;
	u32	high;
	u32	cap;
	u32	eta;
	u32	hold;
	kuid_t	owner;
};

/**
 * struct dblp_job - a job
 * @id: number, 1 ... INT_MAX
 * @refs: references: of the table, of each socket in the job, and of a caller
 *	that moves it
 * @turn: serializes changes of @conf and @detector; taken after @lock of the
 *	configuration. It is not held while sockets are walked
 * @lock: protects the fields below, except the counters; taken inside socket
 *	locks
 * @seq: written with @lock held around each change of @conf, so that only the
 *	sockets of this job notice it
 * @socks: sockets of the job, by number. Added under @lock of the
 *	configuration, or for a child whose listener is one of them
 * @n_socks: number of sockets
 * @conf: settings; written with @turn and @lock held and under @seq, read with
 *	one of these. All settings but the phase are also written with @lock of
 *	the configuration held, and may be read with it
 * @events: rate of events about phases that the detector chose; under @turn
 * @detector: detector, which gets all norms, even while it moves no phase;
 *	written with @turn held
 * @since: when the present phase began, ns
 * @spent: time in each phase before @since, ns
 * @messages: closed outgoing messages of its sockets, by the phase they were
 *	sent in
 * @bytes: bytes of @messages
 * @forgiven: missing bytes of @messages
 */
struct dblp_job {
	u32		id;
	refcount_t	refs;
	struct mutex	turn;	/* for changes */
	spinlock_t	lock;	/* for the fields below */
	seqcount_spinlock_t seq;
	struct rb_root	socks;
	u32		n_socks;
	struct dblp_job_conf conf;
	struct dblp_rate events;
	struct dblp_clr	detector;
	u64		since;
	u64		spent[DBLP_PHASES];
	atomic64_t	messages[DBLP_PHASES];
	atomic64_t	bytes[DBLP_PHASES];
	atomic64_t	forgiven[DBLP_PHASES];
};

/** dblp_job_sockets() - number of sockets in a job */
static inline u32 dblp_job_sockets(const struct dblp_job *job)
{
	return READ_ONCE(job->n_socks);
}

/** dblp_job_id() - number of a job, 0 for none */
static inline u32 dblp_job_id(const struct dblp_job *job)
{
	return job ? job->id : 0;
}

struct dblp_job *dblp_job_find(struct dblp_config *c, u32 id);
bool dblp_job_allows(const struct net *net, const struct dblp_job *job);
void dblp_job_conf_init(struct dblp_job_conf *conf);
u8 dblp_job_choice(const struct dblp_job *job,
		   const struct dblp_job_conf *conf);
u32 dblp_job_budget(const struct dblp_job_conf *conf);
int dblp_job_add(struct net *net, u32 id, const struct dblp_job_conf *conf);
void dblp_job_put(struct dblp_job *job);
int dblp_job_delete(struct net *net, struct dblp_job *job);
u64 dblp_job_spent(const struct dblp_job *job, u8 phase);
void dblp_jobs_exit(struct dblp_config *c);

void dblp_enter_job(struct dblp_sock *dsk, struct dblp_job *job);
void dblp_leave_job(struct dblp_sock *dsk);
void dblp_job_account(struct dblp_sock *dsk, u8 phase, u32 len, u32 missing);

#endif /* _NET_DBLP_JOB_H */
