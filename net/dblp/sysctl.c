// SPDX-License-Identifier: GPL-2.0-only
/*
 * net.dblp.*: how much memory sockets may have. What they do with it is set by
 * netlink, see phase.c.
 */
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "dblp.h"

/* With less a window would not hold a message; with more an int would not do */
static int dblp_buffer_min = DBLP_WINDOW_MIN;
static int dblp_buffer_max = 1 << 30;

/* Where each is in struct dblp_net, until that is known. The first namespace has
 * the last one, too; the others end before it
 */
static const struct ctl_table dblp_sysctls[] = {
	{
		.procname	= "rmem_default",
		.data		= (void *)offsetof(struct dblp_net,
						   sysctl_rmem_default),
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &dblp_buffer_min,
		.extra2		= &dblp_buffer_max,
	},
	{
		.procname	= "wmem_default",
		.data		= (void *)offsetof(struct dblp_net,
						   sysctl_wmem_default),
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &dblp_buffer_min,
		.extra2		= &dblp_buffer_max,
	},
	{
		.procname	= "max_orphans",
		.data		= (void *)offsetof(struct dblp_net,
						   sysctl_max_orphans),
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_INT_MAX,
	},
	{
		.procname	= "mem",
		.maxlen		= 3 * sizeof(long),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
	{ }
};

#define DBLP_SYSCTLS	(ARRAY_SIZE(dblp_sysctls) - 1)

/**
 * dblp_sysctl_init() - what a new namespace begins with, and who may change it
 * @net: namespace
 * @dn: what it has of ours
 * @mem: the limits of the protocol's memory, in pages
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_sysctl_init(struct net *net, struct dblp_net *dn, long *mem)
{
	u32 i, n = DBLP_SYSCTLS - !net_eq(net, &init_net);
	struct ctl_table *table;

	dn->sysctl_rmem_default = 2 * DBLP_WINDOW_DEFAULT;
	dn->sysctl_wmem_default = 2 * DBLP_WINDOW_DEFAULT;
	dn->sysctl_max_orphans = DBLP_ORPHANS_MAX;
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	table = kmemdup(dblp_sysctls, sizeof(dblp_sysctls), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < DBLP_SYSCTLS - 1; i++)
		table[i].data = (void *)dn + (unsigned long)table[i].data;
	table[i].data = mem;
	/* Which also ends the table, for older kernels */
	if (n == i)
		memset(&table[i], 0, sizeof(table[i]));
	dn->sysctl_table = table;
	dn->sysctl = register_net_sysctl_sz(net, "net/dblp", table, n);
	if (dn->sysctl)
		return 0;
	kfree(table);
	return -ENOMEM;
}

/** dblp_sysctl_exit() - a namespace goes */
void dblp_sysctl_exit(struct dblp_net *dn)
{
	if (!dn->sysctl)
		return;
	unregister_net_sysctl_table(dn->sysctl);
	kfree(dn->sysctl_table);
}
