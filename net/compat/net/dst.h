/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux 6.18 added dst_dev_rcu(). Before, RCU readers could use dst->dev */
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
