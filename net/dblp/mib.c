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
	const struct dblp_mib *m;
	u64 sum = 0, value;
	unsigned int start;
	int cpu;

	/* As snmp_fold_field64(), which newer kernels do not export */
	for_each_possible_cpu(cpu) {
		m = per_cpu_ptr(mib, cpu);
		do {
			start = u64_stats_fetch_begin(&m->syncp);
			value = m->mibs[item];
		} while (u64_stats_fetch_retry(&m->syncp, start));
		sum += value;
	}
	return sum;
}
