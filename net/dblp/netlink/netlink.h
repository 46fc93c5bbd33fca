/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family, with which dblpctl reads and changes sockets.
 */
#ifndef _NET_DBLP_NETLINK_H
#define _NET_DBLP_NETLINK_H

#include <net/genetlink.h>

extern struct genl_family dblp_nl_family;

struct sk_buff *dblp_nl_reply_new(struct genl_info *info, void **hdr);
int dblp_nl_reply_end(struct genl_info *info, struct sk_buff *msg, void *hdr,
		      int err);

/**
 * dblp_nl_dump_generation() - detect changes during a dump
 * @cb: dump
 * @generation: changes with the dumped objects; compared between messages
 */
static inline void dblp_nl_dump_generation(struct netlink_callback *cb,
					   u32 generation)
{
	/* Zero would disable the check */
	cb->seq = generation << 1 | 1;
}

void *dblp_nl_dump_begin(struct sk_buff *skb, struct netlink_callback *cb,
			 u8 cmd);
int dblp_nl_dump_end(struct sk_buff *skb, void *hdr, int err);
bool dblp_nl_sees_all(struct sk_buff *skb);
bool dblp_nl_owns(struct sk_buff *skb, kuid_t owner);
int dblp_nl_check_access(struct genl_info *info, struct sk_buff *skb,
			 kuid_t owner, int attrtype);
int dblp_nl_check_share(struct genl_info *info, int attrtype);
int dblp_nl_own_share(struct genl_info *info, int attrtype, u32 *ppm);

/** dblp_nl_put_own_share() - append a share of loss, unless it is inherited */
static inline int dblp_nl_put_own_share(struct sk_buff *skb, int attrtype,
					u32 ppm)
{
	return ppm == DBLP_INHERIT ? 0 : nla_put_u32(skb, attrtype, ppm);
}

int dblp_nl_name(struct genl_info *info, int attrtype, char *name);
int dblp_nl_init(const struct genl_ops *ops, u32 n);
void dblp_nl_exit(void);

#endif /* _NET_DBLP_NETLINK_H */
