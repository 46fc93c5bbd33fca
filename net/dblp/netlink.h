/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family: how dblpctl sees and steers sockets.
 */
#ifndef _NET_DBLP_NETLINK_H
#define _NET_DBLP_NETLINK_H

#include <net/genetlink.h>

extern struct genl_family dblp_nl_family;

int dblp_nl_check_share(struct genl_info *info, int attrtype);
bool dblp_name_is_fine(const char *name);
int dblp_nl_init(void);
void dblp_nl_exit(void);

#endif /* _NET_DBLP_NETLINK_H */
