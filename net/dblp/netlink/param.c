// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: defaults of new sockets, and congestion controls.
 */
#include <net/genetlink.h>

#include "../dblp.h"
#include "netlink.h"
#include "gen.h"

static int dblp_nl_put_defaults(struct sk_buff *skb,
				const struct dblp_defaults *d)
{
	if (nla_put_string(skb, DBLP_A_PARAM_CONGESTION, d->cc->name) ||
	    dblp_nl_put_own_share(skb, DBLP_A_PARAM_BUDGET_CAP, d->cap) ||
	    nla_put_u32(skb, DBLP_A_PARAM_USER_TIMEOUT_MS,
			d->user_timeout_ms) ||
	    nla_put_u32(skb, DBLP_A_PARAM_KEEPALIVE_MS, d->keepalive_ms) ||
	    nla_put_u32(skb, DBLP_A_PARAM_GSO, d->gso))
		return -EMSGSIZE;
	return 0;
}

int dblp_nl_param_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_defaults defaults;
	struct sk_buff *msg;
	void *hdr;

	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	if (info->attrs[DBLP_A_PARAM_INITIAL])
		dblp_defaults_init(&defaults);
	else
		dblp_defaults_read(dblp_config(genl_info_net(info)),
				   &defaults);
	return dblp_nl_reply_end(info, msg, hdr,
				 dblp_nl_put_defaults(msg, &defaults));
}

/* Find the congestion control that @attr names; extack explains an error */
static const struct dblp_cc_ops *dblp_nl_cc(struct genl_info *info,
					    struct nlattr *attr)
{
	const struct dblp_cc_ops *ops;
	char name[DBLP_CC_NAME_MAX];

	nla_strscpy(name, attr, sizeof(name));
	ops = dblp_cc_find(name);
	if (ops)
		return ops;
	NL_SET_ERR_MSG_ATTR(info->extack, attr,
			    "there is no such congestion control");
	return ERR_PTR(-ENOENT);
}

/* Read and check the defaults in a request; others stay unchanged */
static int dblp_nl_take_defaults(struct genl_info *info,
				 struct dblp_defaults *d)
{
	struct nlattr *timeout = info->attrs[DBLP_A_PARAM_USER_TIMEOUT_MS];
	struct nlattr *keepalive = info->attrs[DBLP_A_PARAM_KEEPALIVE_MS];
	struct nlattr *cc = info->attrs[DBLP_A_PARAM_CONGESTION];
	struct nlattr *gso = info->attrs[DBLP_A_PARAM_GSO];

	if (gso)
		d->gso = nla_get_u32(gso);
	if (timeout)
		d->user_timeout_ms = nla_get_u32(timeout);
	if (keepalive)
		d->keepalive_ms = nla_get_u32(keepalive);
	if (cc)
		d->cc = dblp_nl_cc(info, cc);
	if (IS_ERR(d->cc))
		return PTR_ERR(d->cc);
	if (d->user_timeout_ms < DBLP_USER_TIMEOUT_MIN_MS ||
	    d->user_timeout_ms > DBLP_USER_TIMEOUT_MAX_MS) {
		NL_SET_ERR_MSG_ATTR(info->extack, timeout,
				    "a user timeout is 1 ms to 1 h");
		return -EINVAL;
	}
	if (d->keepalive_ms < DBLP_KEEPALIVE_MIN_MS ||
	    d->keepalive_ms > DBLP_KEEPALIVE_MAX_MS) {
		NL_SET_ERR_MSG_ATTR(info->extack, keepalive,
				    "a keepalive time is 10 ms to 24 h");
		return -EINVAL;
	}
	return dblp_nl_own_share(info, DBLP_A_PARAM_BUDGET_CAP, &d->cap);
}

int dblp_nl_param_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct dblp_config *c = dblp_config(genl_info_net(info));
	struct dblp_defaults defaults;
	int err;

	if (!info->attrs[DBLP_A_PARAM_CONGESTION] &&
	    !info->attrs[DBLP_A_PARAM_BUDGET_CAP] &&
	    !info->attrs[DBLP_A_PARAM_USER_TIMEOUT_MS] &&
	    !info->attrs[DBLP_A_PARAM_KEEPALIVE_MS] &&
	    !info->attrs[DBLP_A_PARAM_GSO]) {
		NL_SET_ERR_MSG(info->extack,
			       "nothing to set: a congestion control, budget cap, user timeout, keepalive time or gso is needed");
		return -EINVAL;
	}
	mutex_lock(&c->lock);
	dblp_defaults_read(c, &defaults);
	err = dblp_nl_take_defaults(info, &defaults);
	if (!err)
		dblp_defaults_write(c, &defaults);
	mutex_unlock(&c->lock);
	return err;
}

static int dblp_nl_put_cc(struct sk_buff *skb, struct net *net,
			  const struct dblp_cc_ops *ops)
{
	bool is_default = ops == READ_ONCE(dblp_config(net)->defaults.cc);

	if (nla_put_string(skb, DBLP_A_CC_NAME, ops->name) ||
	    nla_put_u32(skb, DBLP_A_CC_DEFAULT, is_default))
		return -EMSGSIZE;
	return 0;
}

int dblp_nl_cc_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	const struct dblp_cc_ops *ops;
	struct sk_buff *msg;
	void *hdr;

	if (GENL_REQ_ATTR_CHECK(info, DBLP_A_CC_NAME)) {
		NL_SET_ERR_MSG(info->extack,
			       "the name of a congestion control is needed");
		return -EINVAL;
	}
	ops = dblp_nl_cc(info, info->attrs[DBLP_A_CC_NAME]);
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	msg = dblp_nl_reply_new(info, &hdr);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	return dblp_nl_reply_end(info, msg, hdr,
				 dblp_nl_put_cc(msg, genl_info_net(info), ops));
}

static int dblp_nl_dump_cc(struct sk_buff *skb, struct netlink_callback *cb,
			   const struct dblp_cc_ops *ops)
{
	void *hdr = dblp_nl_dump_begin(skb, cb, DBLP_CMD_CC_GET);

	if (!hdr)
		return -EMSGSIZE;
	return dblp_nl_dump_end(skb, hdr,
				dblp_nl_put_cc(skb, sock_net(skb->sk), ops));
}

int dblp_nl_cc_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dblp_config *c = dblp_config(sock_net(skb->sk));
	u32 *next = (u32 *)cb->ctx;
	const struct dblp_cc_ops *ops;
	int err = 0;

	if (nlmsg_attrlen(cb->nlh, GENL_HDRLEN)) {
		NL_SET_ERR_MSG(cb->extack,
			       "the dump of congestion controls takes no attributes");
		return -EINVAL;
	}
	/* Only the default can change during the dump */
	mutex_lock(&c->lock);
	dblp_nl_dump_generation(cb, c->defaults_generation);
	for (; (ops = dblp_cc_at(*next)); ++*next) {
		err = dblp_nl_dump_cc(skb, cb, ops);
		if (err)
			break;
	}
	mutex_unlock(&c->lock);
	return skb->len ?: err;
}
