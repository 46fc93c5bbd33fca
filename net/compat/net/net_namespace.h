/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Linux 6.6 added register_net_sysctl_sz(). Earlier tables end with an empty
 * entry.
 */
#ifndef DBLP_COMPAT_NET_NET_NAMESPACE_H
#define DBLP_COMPAT_NET_NET_NAMESPACE_H

#include_next <net/net_namespace.h>

#ifdef DBLP_LACKS_REGISTER_NET_SYSCTL_SZ
#define register_net_sysctl_sz(net, path, table, size) \
	register_net_sysctl(net, path, table)
#endif

#endif /* DBLP_COMPAT_NET_NET_NAMESPACE_H */
