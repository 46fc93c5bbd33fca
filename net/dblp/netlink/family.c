// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family, with which dblpctl reads and changes sockets.
 *
 * Operations, attributes and policies are generated from
 * Documentation/netlink/specs/dblp.yaml. The family has no state, so requests
 * run in parallel; sockets are found by number and held by a reference.
 */

#include <linux/ctype.h>
#include <net/genetlink.h>

#include "../dblp.h"
#include "netlink.h"
#include "gen.h"

/* A request for the family loads the module */
MODULE_ALIAS_GENL_FAMILY(DBLP_FAMILY_NAME);

static const struct genl_multicast_group dblp_nl_groups[] = {
	[DBLP_NLGRP_EVENTS] = {
		.name	= DBLP_MCGRP_EVENTS,
		.flags	= GENL_MCAST_CAP_NET_ADMIN,
	},
};

struct genl_family dblp_nl_family __ro_after_init = {
	.name		= DBLP_FAMILY_NAME,
	.version	= DBLP_FAMILY_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= true,
	.parallel_ops	= true,
	.mcgrps		= dblp_nl_groups,
	.n_mcgrps	= ARRAY_SIZE(dblp_nl_groups),
};

/**
 * dblp_nl_reply_new() - begin the reply to a request
 * @info: request
 * @hdr: set to the header, for dblp_nl_reply_end()
 *
 * Return: a message to add attributes to, or -ENOMEM or -EMSGSIZE.
 */
struct sk_buff *dblp_nl_reply_new(struct genl_info *info, void **hdr)
{
	struct sk_buff *msg;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return ERR_PTR(-ENOMEM);
	*hdr = genlmsg_put_reply(msg, info, &dblp_nl_family, 0,
				 info->genlhdr->cmd);
	if (*hdr)
		return msg;
	nlmsg_free(msg);
	return ERR_PTR(-EMSGSIZE);
}

/**
 * dblp_nl_reply_end() - send the reply to a request
 * @info: request
 * @msg: from dblp_nl_reply_new(), consumed
 * @hdr: from dblp_nl_reply_new()
 * @err: error of adding attributes; if not 0, nothing is sent
 *
 * Return: @err, or the result of genlmsg_reply().
 */
int dblp_nl_reply_end(struct genl_info *info, struct sk_buff *msg, void *hdr,
		      int err)
{
	if (err) {
		nlmsg_free(msg);
		return err;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/**
 * dblp_nl_dump_begin() - begin one object of a dump
 * @skb: message with a part of the dump
 * @cb: dump, with its generation
 * @cmd: command of the message
 *
 * Return: @hdr for dblp_nl_dump_end(), or NULL if @skb is full.
 */
void *dblp_nl_dump_begin(struct sk_buff *skb, struct netlink_callback *cb,
			 u8 cmd)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &dblp_nl_family, NLM_F_MULTI, cmd);
	if (hdr)
		genl_dump_check_consistent(cb, hdr);
	return hdr;
}

/**
 * dblp_nl_dump_end() - end one object of a dump, or remove it on error
 * @skb: message with a part of the dump
 * @hdr: from dblp_nl_dump_begin()
 * @err: error of adding attributes
 *
 * Return: @err.
 */
int dblp_nl_dump_end(struct sk_buff *skb, void *hdr, int err)
{
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

/**
 * dblp_nl_sees_all() - may a request read the sockets and jobs of all users?
 * @skb: request
 *
 * As for changes, both the process that made the netlink socket and the one
 * that sends the request need the capability.
 */
bool dblp_nl_sees_all(struct sk_buff *skb)
{
	const struct net *net = sock_net(NETLINK_CB(skb).sk);

	return netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN);
}

/**
 * dblp_nl_owns() - does a request come from a given user?
 * @skb: request
 * @owner: owner of the object
 */
bool dblp_nl_owns(struct sk_buff *skb, kuid_t owner)
{
	return uid_eq(owner, current_fsuid()) &&
	       uid_eq(owner, READ_ONCE(NETLINK_CB(skb).sk->sk_uid));
}

/**
 * dblp_nl_check_access() - may a request read an object?
 * @info: request
 * @skb: the same request
 * @owner: owner of the object
 * @attrtype: attribute that names the object
 *
 * Return: 0, or -EPERM, which extack explains.
 */
int dblp_nl_check_access(struct genl_info *info, struct sk_buff *skb,
			 kuid_t owner, int attrtype)
{
	if (dblp_nl_owns(skb, owner) || dblp_nl_sees_all(skb))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[attrtype],
			    "it belongs to another user: CAP_NET_ADMIN is needed");
	return -EPERM;
}

/**
 * dblp_nl_check_share() - check an attribute that is a share of loss
 * @info: request
 * @attrtype: attribute, which may be absent
 *
 * Return: 0 if it is absent or at most DBLP_PPM, else -EINVAL.
 */
int dblp_nl_check_share(struct genl_info *info, int attrtype)
{
	struct nlattr *attr = info->attrs[attrtype];

	if (!attr || nla_get_u32(attr) <= DBLP_PPM)
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, attr,
			    "a share of loss is at most 1000000 ppm (100 %)");
	return -EINVAL;
}

/**
 * dblp_nl_own_share() - read a share of loss that may be inherited
 * @info: request
 * @attrtype: attribute, which may be absent
 * @ppm: set to its value, or to DBLP_INHERIT; unchanged if it is absent
 *
 * Return: 0, or -EINVAL, which extack explains.
 */
int dblp_nl_own_share(struct genl_info *info, int attrtype, u32 *ppm)
{
	struct nlattr *attr = info->attrs[attrtype];
	int err = 0;

	if (!attr)
		return 0;
	if (nla_get_u32(attr) != DBLP_INHERIT)
		err = dblp_nl_check_share(info, attrtype);
	if (!err)
		*ppm = nla_get_u32(attr);
	return err;
}

/* Is a name easy to type, and not a number? */
static bool dblp_nl_name_is_fine(const char *name)
{
	if (!isascii(*name) || !isalpha(*name))
		return false;
	while (isascii(*name) &&
	       (isalnum(*name) || *name == '-' || *name == '_'))
		name++;
	return !*name;
}

/**
 * dblp_nl_name() - read a name from a request
 * @info: request
 * @attrtype: attribute, which must be present
 * @name: set to the name, padded with zeros to DBLP_NAME_MAX bytes
 *
 * Return: 0, or -EINVAL, which extack explains.
 */
int dblp_nl_name(struct genl_info *info, int attrtype, char *name)
{
	struct nlattr *attr = info->attrs[attrtype];

	/* This also pads */
	nla_strscpy(name, attr, DBLP_NAME_MAX);
	if (dblp_nl_name_is_fine(name))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, attr,
			    "a name is a letter, then letters, digits, - and _");
	return -EINVAL;
}

/**
 * dblp_nl_init() - register the family
 * @ops: its operations, from gen.c
 * @n: number of operations
 *
 * Requests may arrive at once, so all that they use must be initialized before.
 *
 * Return: 0 or an error of genl_register_family().
 */
int __init dblp_nl_init(const struct genl_ops *ops, u32 n)
{
	dblp_nl_family.ops = ops;
	dblp_nl_family.n_ops = n;
	return genl_register_family(&dblp_nl_family);
}

/**
 * dblp_nl_exit() - unregister the family; waits for running requests
 */
void dblp_nl_exit(void)
{
	genl_unregister_family(&dblp_nl_family);
}
