/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs: the sockets of one training run, which share a phase.
 */
#ifndef _NET_DBLP_JOB_H
#define _NET_DBLP_JOB_H

#include <linux/atomic.h>
#include <linux/dblp.h>
#include <linux/ktime.h>
#include <linux/refcount.h>
#include <linux/types.h>

struct dblp_config;
struct dblp_sock;
struct net;

/**
 * struct dblp_job - a job
 * @id: number, 1 ... INT_MAX
 * @name: "" if it has none
 * @refs: one of the table, and one of each socket in it. A new one comes under
 *	@lock of the configuration, or for a child whose listener has one; so
 *	who has that lock and sees one reference has the job alone
 * @phase: that its sockets are in; written and read under @seq
 * @since: when that began, ns; under @lock
 * @spent: time in each phase before that, ns; under @lock
 * @messages: sent by its sockets and closed, by the phase they were sent in
 * @bytes: of those
 * @forgiven: of those bytes, the ones that were missing
 */
struct dblp_job {
	u32		id;
	char		name[DBLP_NAME_MAX];
	refcount_t	refs;
	u8		phase;
	u64		since;
	u64		spent[DBLP_PHASES];
	atomic64_t	messages[DBLP_PHASES];
	atomic64_t	bytes[DBLP_PHASES];
	atomic64_t	forgiven[DBLP_PHASES];
};

/** dblp_job_sockets() - number of sockets in a job */
static inline u32 dblp_job_sockets(const struct dblp_job *job)
{
	return refcount_read(&job->refs) - 1;
}

/** dblp_job_id() - its number, 0 for none */
static inline u32 dblp_job_id(const struct dblp_job *job)
{
	return job ? job->id : 0;
}

struct dblp_job *dblp_job_find(struct dblp_config *c, u32 id);
int dblp_job_add(struct dblp_config *c, u32 id, const char *name, u8 phase);
void dblp_job_set(struct net *net, struct dblp_job *job, const char *name,
		  u8 phase);
int dblp_job_delete(struct dblp_config *c, struct dblp_job *job);
u64 dblp_job_spent(const struct dblp_job *job, u8 phase);
void dblp_jobs_exit(struct dblp_config *c);

void dblp_inherit_job(struct dblp_sock *child,
		      const struct dblp_sock *listener);
void dblp_leave_job(struct dblp_sock *dsk);
void dblp_job_account(struct dblp_sock *dsk, u8 phase, u32 len, u32 missing);

#endif /* _NET_DBLP_JOB_H */
