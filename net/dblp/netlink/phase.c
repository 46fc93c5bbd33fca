// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: the table of phases.
 */
#include <net/genetlink.h>

#include "../dblp.h"
#include "netlink.h"
#include "gen.h"

static int dblp_nl_put_phase(struct sk_buff *skb, struct dblp_config *c, u32 id,
			     const struct dblp_phase *p)
{
	if (nla_put_u32(skb, DBLP_A_PHASE_ID, id) ||
	    nla_put_string(skb, DBLP_A_PHASE_NAME, p->name) ||
	    nla_put_u32(skb, DBLP_A_PHASE_BUDGET, p->budget) ||
	    nla_put_u32(skb, DBLP_A_PHASE_POLICY, p->policy) ||
	    nla_put_u32(skb, DBLP_A_PHASE_ORDER, p->order) ||
	    nla_put_u32(skb, DBLP_A_PHASE_FILL, p->fill) ||
	    dblp_nl_put_own_share(skb, DBLP_A_PHASE_BUDGET_CAP, p->cap) ||
	    nla_put_u32(skb, DBLP_A_PHASE_SOCKETS, atomic_read(&c->users[id])))
		return -EMSGSIZE;
	return 0;
}

/* Read and check the number in a request; extack explains an error */
static int dblp_nl_phase_id(struct genl_info *info, u32 *id)
{
	struct nlattr *attr = info->attrs[DBLP_A_PHASE_ID];

	if (GENL_REQ_ATTR_CHECK(info, DBLP_A_PHASE_ID)) {
		NL_SET_ERR_MSG(info->extack, "the number of a phase is needed");
		return -EINVAL;
	}
	*id = nla_get_u32(attr);
	if (*id < DBLP_PHASES)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, attr, "phases are numbered 0 to 7");
	return -EINVAL;
}

static int dblp_nl_no_phase(struct genl_info *info)
{
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_PHASE_ID],
			    "there is no such phase");
	return -ENOENT;
}

int dblp_nl_phase_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct dblp_phase p;
	struct sk_buff *msg;
	void *hdr;
	u32 id;
	int err;

	err = dblp_nl_phase_id(info, &id);
	if (err)
		return err;
	if (!dblp_phase_get(net, id, &p))
		return dblp_nl_no_phase(info);

	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	err = dblp_nl_put_phase(msg, dblp_config(net), id, &p);
	return dblp_nl_reply_end(info, msg, hdr, err);
}

static int dblp_nl_dump_phase(struct sk_buff *skb, struct netlink_callback *cb,
			      u32 id)
{
	struct net *net = sock_net(skb->sk);
	struct dblp_phase p;
	void *hdr;
	int err;

	if (!dblp_phase_get(net, id, &p))
		return 0;
	hdr = dblp_nl_dump_begin(skb, cb, DBLP_CMD_PHASE_GET);
	if (!hdr)
		return -EMSGSIZE;
	err = dblp_nl_put_phase(skb, dblp_config(net), id, &p);
	return dblp_nl_dump_end(skb, hdr, err);
}

int dblp_nl_phase_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dblp_config *c = dblp_config(sock_net(skb->sk));
	u32 *next = (u32 *)cb->ctx;
	int err = 0;

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack,
			       "the dump of phases takes no attributes");
		return -EINVAL;
	}
	mutex_lock(&c->lock);
	dblp_nl_dump_generation(cb, c->phases_generation);
	for (; *next < DBLP_PHASES; ++*next) {
		err = dblp_nl_dump_phase(skb, cb, *next);
		if (err)
			break;
	}
	mutex_unlock(&c->lock);
	return skb->len ?: err;
}

static int dblp_nl_phase_name(struct genl_info *info, u32 id,
			      struct dblp_phase *p)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct nlattr *attr = info->attrs[DBLP_A_PHASE_NAME];
	int err;
	u32 i;

	if (!attr && *p->name)
		return 0;
	if (!attr) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_PHASE_ID],
				    "there is no such phase, and a new one needs a name");
		return -ENOENT;
	}
	err = dblp_nl_name(info, DBLP_A_PHASE_NAME, p->name);
	if (err)
		return err;
	for (i = 0; i < DBLP_PHASES; i++) {
		if (i == id || strcmp(c->phases[i].name, p->name))
			continue;
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "another phase has this name");
		return -EEXIST;
	}
	return 0;
}

static int dblp_nl_phase_budget(struct genl_info *info, struct dblp_phase *p)
{
	struct nlattr *budget = info->attrs[DBLP_A_PHASE_BUDGET];
	struct nlattr *policy = info->attrs[DBLP_A_PHASE_POLICY];
	int err;

	err = dblp_nl_check_share(info, DBLP_A_PHASE_BUDGET) ?:
	      dblp_nl_own_share(info, DBLP_A_PHASE_BUDGET_CAP, &p->cap);
	if (err)
		return err;
	if (policy)
		p->policy = nla_get_u32(policy);
	if (budget)
		p->budget = nla_get_u32(budget);
	if (p->policy != DBLP_POLICY_FULL)
		return 0;
	if (budget && p->budget) {
		NL_SET_ERR_MSG_ATTR(info->extack, budget,
				    "policy full allows no budget: set another policy");
		return -EINVAL;
	}
	p->budget = 0;
	return 0;
}

int dblp_nl_phase_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct dblp_config *c = dblp_config(net);
	struct nlattr **attrs = info->attrs;
	bool differs = false;
	struct dblp_phase p;
	u32 id;
	int err;

	err = dblp_nl_phase_id(info, &id);
	if (err)
		return err;
	if (!attrs[DBLP_A_PHASE_NAME] && !attrs[DBLP_A_PHASE_BUDGET] &&
	    !attrs[DBLP_A_PHASE_POLICY] && !attrs[DBLP_A_PHASE_ORDER] &&
	    !attrs[DBLP_A_PHASE_FILL] && !attrs[DBLP_A_PHASE_BUDGET_CAP]) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: a name, budget, policy, order, fill or budget cap is needed");
		return -EINVAL;
	}

	mutex_lock(&c->lock);
	/* A new phase has budget 0 and no cap, unless the request sets them */
	if (!dblp_phase_get(net, id, &p)) {
		p.policy = DBLP_POLICY_EAGER;
		p.cap = DBLP_INHERIT;
	}
	err = dblp_nl_phase_name(info, id, &p) ?:
	      dblp_nl_phase_budget(info, &p);
	if (err)
		goto unlock;
	if (attrs[DBLP_A_PHASE_ORDER])
		p.order = nla_get_u32(attrs[DBLP_A_PHASE_ORDER]);
	if (attrs[DBLP_A_PHASE_FILL])
		p.fill = nla_get_u32(attrs[DBLP_A_PHASE_FILL]);
	differs = dblp_phase_change(net, id, &p);
unlock:
	mutex_unlock(&c->lock);
	/* The change must be in force when the request is answered */
	if (differs)
		dblp_config_push(net);
	return err;
}

int dblp_nl_phase_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct dblp_config *c = dblp_config(net);
	struct dblp_phase p;
	u32 id;
	int err;

	err = dblp_nl_phase_id(info, &id);
	if (err)
		return err;
	mutex_lock(&c->lock);
	if (!dblp_phase_get(net, id, &p))
		err = dblp_nl_no_phase(info);
	else
		err = dblp_phase_delete(net, id);
	mutex_unlock(&c->lock);
	if (err != -EBUSY)
		return err;
	if (id)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_PHASE_ID],
				    "sockets or jobs are in this phase, or a detector may choose it");
	else
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[DBLP_A_PHASE_ID],
				    "phase 0 cannot be deleted: sockets without a phase use it");
	return err;
}
