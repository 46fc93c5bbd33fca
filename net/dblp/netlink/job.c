// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: jobs.
 */
#include <net/genetlink.h>

#include "../dblp.h"
#include "netlink.h"
#include "gen.h"

static int dblp_nl_put_job_phase(struct sk_buff *skb, struct dblp_job *job,
				 u32 phase)
{
	u64 ms = div_u64(dblp_job_spent(job, phase), NSEC_PER_MSEC);
	struct nlattr *nest;

	nest = nla_nest_start(skb, DBLP_A_JOB_STATS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, DBLP_A_JOB_PHASE_PHASE, phase) ||
	    nla_put_u64_64bit(skb, DBLP_A_JOB_PHASE_MESSAGES,
			      atomic64_read(&job->messages[phase]),
			      DBLP_A_JOB_PHASE_PAD) ||
	    nla_put_u64_64bit(skb, DBLP_A_JOB_PHASE_BYTES,
			      atomic64_read(&job->bytes[phase]),
			      DBLP_A_JOB_PHASE_PAD) ||
	    nla_put_u64_64bit(skb, DBLP_A_JOB_PHASE_FORGIVEN,
			      atomic64_read(&job->forgiven[phase]),
			      DBLP_A_JOB_PHASE_PAD) ||
	    nla_put_u64_64bit(skb, DBLP_A_JOB_PHASE_TIME_MS, ms,
			      DBLP_A_JOB_PHASE_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Was the job never in this phase, without messages sent in it? */
static bool dblp_nl_job_phase_is_blank(struct dblp_job *job, u32 phase)
{
	return !dblp_job_spent(job, phase) &&
	       !atomic64_read(&job->messages[phase]);
}

static int dblp_nl_put_job_clr(struct sk_buff *skb, const struct dblp_job *job)
{
	const struct dblp_job_conf *conf = &job->conf;
	const struct dblp_clr *clr = &job->detector;
	u32 regime = clr->tolerant ? DBLP_REGIME_TOLERANT :
				     DBLP_REGIME_CRITICAL;

	if (nla_put_u32(skb, DBLP_A_JOB_CLR, conf->clr) ||
	    dblp_nl_put_own_share(skb, DBLP_A_JOB_LOW, conf->low) ||
	    dblp_nl_put_own_share(skb, DBLP_A_JOB_HIGH, conf->high) ||
	    nla_put_u32(skb, DBLP_A_JOB_LOW_PHASE, conf->low_phase) ||
	    nla_put_u32(skb, DBLP_A_JOB_HIGH_PHASE, conf->high_phase) ||
	    nla_put_u32(skb, DBLP_A_JOB_ETA, conf->eta) ||
	    nla_put_u32(skb, DBLP_A_JOB_HOLD, conf->hold) ||
	    nla_put_u32(skb, DBLP_A_JOB_REGIME, regime) ||
	    nla_put_u64_64bit(skb, DBLP_A_JOB_NORM, clr->norm,
			      DBLP_A_JOB_PAD) ||
	    nla_put_u32(skb, DBLP_A_JOB_CHANGE, clr->change) ||
	    nla_put_u32(skb, DBLP_A_JOB_REPORTS, clr->reports))
		return -EMSGSIZE;
	return 0;
}

static int dblp_nl_put_job_locked(struct sk_buff *skb, struct dblp_job *job,
				  const struct sock *reader)
{
	uid_t owner = from_kuid_munged(sk_user_ns(reader), job->conf.owner);
	u32 phase;

	if (nla_put_u32(skb, DBLP_A_JOB_ID, job->id) ||
	    nla_put_string(skb, DBLP_A_JOB_NAME, job->conf.name) ||
	    nla_put_u32(skb, DBLP_A_JOB_PHASE, job->conf.phase) ||
	    nla_put_u32(skb, DBLP_A_JOB_SOCKETS, dblp_job_sockets(job)) ||
	    nla_put_u32(skb, DBLP_A_JOB_OWNER, owner) ||
	    dblp_nl_put_own_share(skb, DBLP_A_JOB_BUDGET_CAP,
				  job->conf.cap) ||
	    dblp_nl_put_job_clr(skb, job))
		return -EMSGSIZE;
	for (phase = 0; phase < DBLP_PHASES; phase++)
		if (!dblp_nl_job_phase_is_blank(job, phase) &&
		    dblp_nl_put_job_phase(skb, job, phase))
			return -EMSGSIZE;
	return 0;
}

/*
 * Append the attributes of a job. User IDs are in the user namespace of @reader
 */
static int dblp_nl_put_job(struct sk_buff *skb, struct dblp_job *job,
			   const struct sock *reader)
{
	int err;

	spin_lock_bh(&job->lock);
	err = dblp_nl_put_job_locked(skb, job, reader);
	spin_unlock_bh(&job->lock);
	return err;
}

static int dblp_nl_job_id(struct genl_info *info, u32 *id)
{
	struct nlattr *attr = info->attrs[DBLP_A_JOB_ID];

	if (GENL_REQ_ATTR_CHECK(info, DBLP_A_JOB_ID)) {
		NL_SET_ERR_MSG(info->extack, "the number of a job is needed");
		return -EINVAL;
	}
	*id = nla_get_u32(attr);
	if (*id && *id <= INT_MAX)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, attr,
			    "jobs are numbered 1 to 2147483647");
	return -EINVAL;
}

/* Find the job that a request names, with @lock of the configuration held */
static struct dblp_job *dblp_nl_job(struct genl_info *info, u32 id)
{
	struct dblp_job *job;

	job = dblp_job_find(dblp_config(genl_info_net(info)), id);
	if (job)
		return job;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_JOB_ID],
			    "there is no such job");
	return ERR_PTR(-ENOENT);
}

int dblp_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct dblp_job *job;
	struct sk_buff *msg;
	void *hdr;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	mutex_lock(&c->lock);
	job = dblp_nl_job(info, id);
	if (IS_ERR(job))
		err = PTR_ERR(job);
	else
		err = dblp_nl_check_access(info, skb, job->conf.owner,
					   DBLP_A_JOB_ID) ?:
		      dblp_nl_put_job(msg, job, NETLINK_CB(skb).sk);
	mutex_unlock(&c->lock);
	return dblp_nl_reply_end(info, msg, hdr, err);
}

static int dblp_nl_dump_job(struct sk_buff *skb, struct netlink_callback *cb,
			    struct dblp_job *job)
{
	void *hdr;
	int err;

	hdr = dblp_nl_dump_begin(skb, cb, DBLP_CMD_JOB_GET);
	if (!hdr)
		return -EMSGSIZE;
	err = dblp_nl_put_job(skb, job, NETLINK_CB(cb->skb).sk);
	return dblp_nl_dump_end(skb, hdr, err);
}

/* Jobs that are examined before other requests get the lock */
#define DBLP_NL_JOBS_AT_ONCE	256

/*
 * Dump jobs from @next on, with @lock held. The caller may release the lock
 * after -EAGAIN without making the dump inconsistent, because @skb is still
 * empty then.
 */
static int dblp_nl_dump_jobs(struct sk_buff *skb, struct netlink_callback *cb,
			     struct dblp_config *c, u32 *next)
{
	bool all = dblp_nl_sees_all(cb->skb);
	struct dblp_job *job;
	unsigned long id;
	int err = 0;
	u32 n = 0;

	dblp_nl_dump_generation(cb, atomic_read(&c->jobs_generation));
	xa_for_each_start(&c->jobs, id, job, *next) {
		if (all || dblp_nl_owns(cb->skb, job->conf.owner))
			err = dblp_nl_dump_job(skb, cb, job);
		if (err)
			return err;
		*next = job->id + 1;
		if (!skb->len && ++n == DBLP_NL_JOBS_AT_ONCE)
			return -EAGAIN;
	}
	return 0;
}

int dblp_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dblp_config *c = dblp_config(sock_net(skb->sk));
	u32 *next = (u32 *)cb->ctx;
	int err;

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack,
			       "the dump of jobs takes no attributes");
		return -EINVAL;
	}
	do {
		mutex_lock(&c->lock);
		err = dblp_nl_dump_jobs(skb, cb, c, next);
		mutex_unlock(&c->lock);
	} while (err == -EAGAIN);
	/* The next message begins with the job that did not fit */
	return skb->len ?: err;
}

/* Read and check the name in a request, if any; "" removes the name */
static int dblp_nl_job_name(struct genl_info *info, u32 id, char *name)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct nlattr *attr = info->attrs[DBLP_A_JOB_NAME];
	struct dblp_job *job;
	unsigned long other;
	int err;

	if (!attr)
		return 0;
	if (!nla_strcmp(attr, "")) {
		memset(name, 0, DBLP_NAME_MAX);
		return 0;
	}
	err = dblp_nl_name(info, DBLP_A_JOB_NAME, name);
	if (err)
		return err;
	xa_for_each(&c->jobs, other, job) {
		if (other == id || strcmp(job->conf.name, name))
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "another job has this name");
		return -EEXIST;
	}
	return 0;
}

/* Read and check a phase in a request; without one it stays unchanged */
static int dblp_nl_job_phase(struct genl_info *info, int attrtype, u8 *phase)
{
	struct nlattr *attr = info->attrs[attrtype];
	struct dblp_phase p;

	if (!attr)
		return 0;
	if (!dblp_phase_get(genl_info_net(info), nla_get_u32(attr), &p)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "there is no such phase");
		return -ENOENT;
	}
	*phase = nla_get_u32(attr);
	return 0;
}

/* Read the state of the detector; setting only the phase holds it */
static int dblp_nl_job_switch(struct genl_info *info, u8 *clr)
{
	struct nlattr *attr = info->attrs[DBLP_A_JOB_CLR];

	if (!attr) {
		if (info->attrs[DBLP_A_JOB_PHASE] && *clr == DBLP_CLR_ON)
			*clr = DBLP_CLR_HELD;
		return 0;
	}
	if (nla_get_u32(attr) == DBLP_CLR_HELD) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "to hold the detector, set the phase");
		return -EINVAL;
	}
	*clr = nla_get_u32(attr);
	return 0;
}

/* Check that a phase of the detector exists: it may have been deleted */
static int dblp_nl_job_goal(struct genl_info *info, int attrtype, u8 phase)
{
	struct nlattr *attr = info->attrs[attrtype] ?:
			      info->attrs[DBLP_A_JOB_CLR];
	struct dblp_phase p;

	if (dblp_phase_get(genl_info_net(info), phase, &p))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, attr,
			    "the detector's low-phase or high-phase does not exist");
	return -ENOENT;
}

/*
 * Check the detector of a job to be changed, or to be added if @job is NULL.
 * While it is on, only the detector chooses the phase.
 */
static int dblp_nl_job_clr(struct genl_info *info, const struct dblp_job *job,
			   struct dblp_job_conf *conf)
{
	struct nlattr *phase = info->attrs[DBLP_A_JOB_PHASE];
	struct nlattr *high = info->attrs[DBLP_A_JOB_HIGH_PHASE];
	struct nlattr *low = info->attrs[DBLP_A_JOB_LOW_PHASE];
	int err;

	if (conf->low_phase == conf->high_phase) {
		NL_SET_ERR_MSG_ATTR(info->extack, low ?: high,
				    "low-phase and high-phase are the same");
		return -EINVAL;
	}
	if (conf->clr == DBLP_CLR_OFF)
		return 0;
	err = dblp_nl_job_goal(info, DBLP_A_JOB_LOW_PHASE, conf->low_phase) ?:
	      dblp_nl_job_goal(info, DBLP_A_JOB_HIGH_PHASE, conf->high_phase);
	if (err || conf->clr != DBLP_CLR_ON)
		return err;
	if (phase && conf->phase != dblp_job_choice(job, conf)) {
		NL_SET_ERR_MSG_ATTR(info->extack, phase,
				    "with clr on, the detector chooses the phase, at first low-phase");
		return -EINVAL;
	}
	conf->phase = dblp_job_choice(job, conf);
	return 0;
}

/* Read and check the owner in a request; without one it stays unchanged */
static int dblp_nl_job_owner(struct genl_info *info, kuid_t *owner)
{
	struct nlattr *attr = info->attrs[DBLP_A_JOB_OWNER];
	kuid_t uid;

	if (!attr)
		return 0;
	uid = make_kuid(current_user_ns(), nla_get_u32(attr));
	if (!uid_valid(uid)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "there is no such user in your user namespace");
		return -EINVAL;
	}
	*owner = uid;
	return 0;
}

/* Read and check all settings in a request; others stay unchanged */
static int dblp_nl_job_conf(struct genl_info *info, u32 id,
			    const struct dblp_job *job,
			    struct dblp_job_conf *conf)
{
	int err;

	err = dblp_nl_job_name(info, id, conf->name) ?:
	      dblp_nl_job_phase(info, DBLP_A_JOB_PHASE, &conf->phase) ?:
	      dblp_nl_job_phase(info, DBLP_A_JOB_LOW_PHASE,
				&conf->low_phase) ?:
	      dblp_nl_job_phase(info, DBLP_A_JOB_HIGH_PHASE,
				&conf->high_phase) ?:
	      dblp_nl_own_share(info, DBLP_A_JOB_LOW, &conf->low) ?:
	      dblp_nl_own_share(info, DBLP_A_JOB_HIGH, &conf->high) ?:
	      dblp_nl_own_share(info, DBLP_A_JOB_BUDGET_CAP, &conf->cap) ?:
	      dblp_nl_job_switch(info, &conf->clr) ?:
	      dblp_nl_job_owner(info, &conf->owner);
	if (err)
		return err;
	if (info->attrs[DBLP_A_JOB_ETA])
		conf->eta = nla_get_u32(info->attrs[DBLP_A_JOB_ETA]);
	if (info->attrs[DBLP_A_JOB_HOLD])
		conf->hold = nla_get_u32(info->attrs[DBLP_A_JOB_HOLD]);
	return dblp_nl_job_clr(info, job, conf);
}

static int dblp_nl_job_new(struct genl_info *info, u32 id)
{
	struct dblp_job_conf conf;

	dblp_job_conf_init(&conf);
	return dblp_nl_job_conf(info, id, NULL, &conf) ?:
	       dblp_job_add(genl_info_net(info), id, &conf);
}

/*
 * Change a job. *@moved is set to it, with a reference, if its sockets must
 * follow
 */
static int dblp_nl_job_change(struct genl_info *info, struct dblp_job *job,
			      struct dblp_job **moved)
{
	struct dblp_job_conf conf;
	int err;

	mutex_lock(&job->turn);
	conf = job->conf;
	err = dblp_nl_job_conf(info, job->id, job, &conf);
	if (!err && dblp_job_set(genl_info_net(info), job, &conf)) {
		refcount_inc(&job->refs);
		*moved = job;
	}
	mutex_unlock(&job->turn);
	return err;
}

/* Does a request set nothing? The policy allows only the number and settings */
static bool dblp_nl_job_sets_nothing(const struct genl_info *info)
{
	int attr;

	for (attr = DBLP_A_JOB_ID + 1; attr <= DBLP_A_JOB_BUDGET_CAP; attr++)
		if (info->attrs[attr])
			return false;
	return true;
}

/*
 * Change a job; with NLM_F_CREATE add it if it does not exist; with NLM_F_EXCL
 * too, only add it. Each combination is an operation, because new netlink
 * families should not use these flags. The lock is held from the lookup to the
 * change.
 */
static int dblp_nl_job_write(struct genl_info *info, u16 flags)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct dblp_job *job, *moved = NULL;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	if (!(flags & NLM_F_CREATE) && dblp_nl_job_sets_nothing(info)) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: a name, phase, owner, budget cap or setting of the detector is needed");
		return -EINVAL;
	}
	mutex_lock(&c->lock);
	job = flags & NLM_F_CREATE ? dblp_job_find(c, id) :
				     dblp_nl_job(info, id);
	if (IS_ERR(job)) {
		err = PTR_ERR(job);
	} else if (!job) {
		err = dblp_nl_job_new(info, id);
	} else if (flags & NLM_F_EXCL) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_JOB_ID],
				    "another job has this number");
		err = -EEXIST;
	} else {
		err = dblp_nl_job_change(info, job, &moved);
	}
	mutex_unlock(&c->lock);
	/* The settings must be in force when the request is answered */
	if (moved) {
		dblp_job_push(moved);
		dblp_job_put(moved);
	}
	return err;
}

int dblp_nl_job_add_doit(struct sk_buff *skb, struct genl_info *info)
{
	return dblp_nl_job_write(info, NLM_F_CREATE | NLM_F_EXCL);
}

/* The request may have no settings: the job must exist afterwards */
int dblp_nl_job_replace_doit(struct sk_buff *skb, struct genl_info *info)
{
	return dblp_nl_job_write(info, NLM_F_CREATE | NLM_F_REPLACE);
}

int dblp_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	return dblp_nl_job_write(info, NLM_F_REPLACE);
}

int dblp_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct dblp_config *c = dblp_config(net);
	struct dblp_job *job;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	mutex_lock(&c->lock);
	job = dblp_nl_job(info, id);
	err = IS_ERR(job) ? PTR_ERR(job) : dblp_job_delete(net, job);
	mutex_unlock(&c->lock);
	if (err == -EBUSY)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_JOB_ID],
				    "there are sockets in this job");
	return err;
}
