/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of a network namespace.
 *
 * Only the netlink specification lists and explains the counters; &enum
 * dblp_mib_item in mib-gen.h is generated from it.
 */
#ifndef _NET_DBLP_MIB_H
#define _NET_DBLP_MIB_H

#include <linux/percpu.h>
#include <linux/u64_stats_sync.h>
#include <net/ip.h>
#include <net/snmp.h>

#include "mib-gen.h"

/**
 * struct dblp_mib - counters of one CPU
 * @mibs: by &enum dblp_mib_item
 * @syncp: for consistent reads where a u64 takes two loads
 */
struct dblp_mib {
	u64			mibs[__DBLP_MIB_MAX];
	struct u64_stats_sync	syncp;
};

/* From any context but NMI; the network namespace outlives the call */
#define DBLP_INC_STATS(net, item) \
	SNMP_INC_STATS64(dblp_pernet(net)->mib, item)
#define DBLP_ADD_STATS(net, item, n) \
	SNMP_ADD_STATS64(dblp_pernet(net)->mib, item, n)
/* For a socket, without a lookup of its namespace */
#define DBLP_INC_SK_STATS(dsk, item) \
	SNMP_INC_STATS64((dsk)->dn->mib, item)
#define DBLP_ADD_SK_STATS(dsk, item, n) \
	SNMP_ADD_STATS64((dsk)->dn->mib, item, n)

struct dblp_mib __percpu *dblp_mib_alloc(void);
u64 dblp_mib_sum(struct dblp_mib __percpu *mib, enum dblp_mib_item item);

#endif /* _NET_DBLP_MIB_H */
