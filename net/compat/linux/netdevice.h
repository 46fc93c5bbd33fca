/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.10 allocates devices that are there for NAPI alone, and frees them too */
#ifndef _NET_DBLP_COMPAT_LINUX_NETDEVICE_H
#define _NET_DBLP_COMPAT_LINUX_NETDEVICE_H

#include_next <linux/netdevice.h>

#ifdef DBLP_LACKS_ALLOC_NETDEV_DUMMY
#include <linux/slab.h>

static inline struct net_device *alloc_netdev_dummy(int sizeof_priv)
{
	struct net_device *dev;

	dev = kzalloc(sizeof(*dev) + sizeof_priv, GFP_KERNEL);
	if (dev)
		init_dummy_netdev(dev);
	return dev;
}

/* The module has no other devices */
static inline void dblp_compat_free_netdev(struct net_device *dev)
{
	kfree(dev);
}

#define free_netdev	dblp_compat_free_netdev
#endif

#endif
