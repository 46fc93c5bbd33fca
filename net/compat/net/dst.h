/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.18 named the device of a route for readers under RCU. It was safe before */
#ifndef _NET_DBLP_COMPAT_NET_DST_H
#define _NET_DBLP_COMPAT_NET_DST_H

#include_next <net/dst.h>

#ifdef DBLP_LACKS_DST_DEV_RCU
static inline struct net_device *dst_dev_rcu(const struct dst_entry *dst)
{
	return READ_ONCE(dst->dev);
}
#endif

#endif /* _NET_DBLP_COMPAT_NET_DST_H */
