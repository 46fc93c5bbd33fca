/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernels without UDP-Lite have one set of statistics */
#ifndef _NET_DBLP_COMPAT_NET_UDP_H
#define _NET_DBLP_COMPAT_NET_UDP_H

#include_next <net/udp.h>

#ifdef DBLP_LACKS_PLAIN_UDP_STATS
#undef __UDP_INC_STATS
#define __UDP_INC_STATS(net, field)					\
	__SNMP_INC_STATS((net)->mib.udp_statistics, field)
#endif

#endif
