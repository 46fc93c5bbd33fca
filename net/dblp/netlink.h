/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The generic netlink family: how dblpctl sees and steers sockets.
 */
#ifndef _NET_DBLP_NETLINK_H
#define _NET_DBLP_NETLINK_H

int dblp_nl_init(void);
void dblp_nl_exit(void);

#endif /* _NET_DBLP_NETLINK_H */
