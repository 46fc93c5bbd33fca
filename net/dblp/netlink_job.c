// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: jobs.
 */
#include <net/genetlink.h>

#include "dblp.h"
#include "netlink.h"
#include "netlink-gen.h"

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

/* Phases that it was never in, and that nothing was sent in, say nothing */
static bool dblp_nl_job_phase_is_blank(struct dblp_job *job, u32 phase)
{
	return !dblp_job_spent(job, phase) &&
	       !atomic64_read(&job->messages[phase]);
}

static int dblp_nl_put_job(struct sk_buff *skb, struct dblp_job *job)
{
	u32 phase;

	if (nla_put_u32(skb, DBLP_A_JOB_ID, job->id) ||
	    nla_put_string(skb, DBLP_A_JOB_NAME, job->name) ||
	    nla_put_u32(skb, DBLP_A_JOB_PHASE, job->phase) ||
	    nla_put_u32(skb, DBLP_A_JOB_SOCKETS, dblp_job_sockets(job)))
		return -EMSGSIZE;
	for (phase = 0; phase < DBLP_PHASES; phase++)
		if (!dblp_nl_job_phase_is_blank(job, phase) &&
		    dblp_nl_put_job_phase(skb, job, phase))
			return -EMSGSIZE;
	return 0;
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

/* The job that a request names, with @lock of the configuration held */
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
	err = IS_ERR(job) ? PTR_ERR(job) : dblp_nl_put_job(msg, job);
	mutex_unlock(&c->lock);
	return dblp_nl_reply_end(info, msg, hdr, err);
}

static int dblp_nl_dump_job(struct sk_buff *skb, struct netlink_callback *cb,
			    struct dblp_job *job)
{
	void *hdr = dblp_nl_dump_begin(skb, cb, DBLP_CMD_JOB_GET);

	if (!hdr)
		return -EMSGSIZE;
	return dblp_nl_dump_end(skb, hdr, dblp_nl_put_job(skb, job));
}

int dblp_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dblp_config *c = dblp_config(sock_net(skb->sk));
	u32 *next = (u32 *)cb->ctx;
	struct dblp_job *job;
	unsigned long id;
	int err = 0;

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack,
			       "all jobs are dumped, which needs no attribute");
		return -EINVAL;
	}
	mutex_lock(&c->lock);
	/* A generation of zero would switch the check off */
	cb->seq = c->jobs_generation ?: 1;
	xa_for_each_start(&c->jobs, id, job, *next) {
		err = dblp_nl_dump_job(skb, cb, job);
		if (err)
			break;
		*next = job->id + 1;
	}
	mutex_unlock(&c->lock);
	/* What did not fit any more comes first the next time */
	return skb->len ?: err;
}

/* The name in a request, checked; unchanged if there is none */
static int dblp_nl_job_name(struct genl_info *info, u32 id, char *name)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct nlattr *attr = info->attrs[DBLP_A_JOB_NAME];
	struct dblp_job *job;
	unsigned long other;
	int err;

	if (!attr)
		return 0;
	err = dblp_nl_name(info, DBLP_A_JOB_NAME, name);
	if (err)
		return err;
	xa_for_each(&c->jobs, other, job) {
		if (other == id || strcmp(job->name, name))
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "another job is called so");
		return -EEXIST;
	}
	return 0;
}

/* The phase in a request, checked; unchanged if there is none */
static int dblp_nl_job_phase(struct genl_info *info, u8 *phase)
{
	struct nlattr *attr = info->attrs[DBLP_A_JOB_PHASE];
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

int dblp_nl_job_add_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	char name[DBLP_NAME_MAX] = "";
	u8 phase = 0;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	mutex_lock(&c->lock);
	if (dblp_job_find(c, id)) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_JOB_ID],
				    "another job has this number");
		err = -EEXIST;
	}
	err = err ?: dblp_nl_job_name(info, id, name) ?:
		     dblp_nl_job_phase(info, &phase) ?:
		     dblp_job_add(c, id, name, phase);
	mutex_unlock(&c->lock);
	return err;
}

int dblp_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct dblp_config *c = dblp_config(net);
	char name[DBLP_NAME_MAX];
	struct dblp_job *job;
	u8 phase;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	if (!info->attrs[DBLP_A_JOB_NAME] && !info->attrs[DBLP_A_JOB_PHASE]) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: a name or a phase is needed");
		return -EINVAL;
	}
	mutex_lock(&c->lock);
	job = dblp_nl_job(info, id);
	if (IS_ERR(job)) {
		err = PTR_ERR(job);
		goto unlock;
	}
	strscpy(name, job->name, sizeof(name));
	phase = job->phase;
	err = dblp_nl_job_name(info, id, name) ?:
	      dblp_nl_job_phase(info, &phase);
	if (!err)
		dblp_job_set(net, job, name, phase);
unlock:
	mutex_unlock(&c->lock);
	return err;
}

int dblp_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct dblp_job *job;
	u32 id;
	int err;

	err = dblp_nl_job_id(info, &id);
	if (err)
		return err;
	mutex_lock(&c->lock);
	job = dblp_nl_job(info, id);
	err = IS_ERR(job) ? PTR_ERR(job) : dblp_job_delete(c, job);
	mutex_unlock(&c->lock);
	if (err == -EBUSY)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_JOB_ID],
				    "there are sockets in this job");
	return err;
}
