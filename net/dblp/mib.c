// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of a network namespace.
 */

#include "mib.h"

/**
 * dblp_mib_alloc() - allocate the counters of a namespace, all zero
 *
 * Return: the counters, for free_percpu(), or NULL.
 */
struct dblp_mib __percpu *dblp_mib_alloc(void)
{
	struct dblp_mib __percpu *mib = alloc_percpu(struct dblp_mib);
	int cpu;

	if (!mib)
		return NULL;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(mib, cpu)->syncp);
	return mib;
}

/**
 * dblp_mib_sum() - value of one counter
 * @mib: the counters of a namespace
 * @item: which
 *
 * Return: the sum over all CPUs, without stopping them.
 */
u64 dblp_mib_sum(struct dblp_mib __percpu *mib, enum dblp_mib_item item)
{
	return snmp_fold_field64(mib, item, offsetof(struct dblp_mib, syncp));
}
