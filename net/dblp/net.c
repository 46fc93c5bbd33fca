// SPDX-License-Identifier: GPL-2.0-only
/*
 * State of a network namespace: counters, the tables of connections and
 * sockets, and the sysctls net.dblp.*. The tracepoints are created here.
 */
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "dblp.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

unsigned int dblp_net_id __read_mostly;

static const struct rhashtable_params dblp_conns_params = {
	.key_len		= sizeof(u64),
	.key_offset		= offsetof(struct dblp_sock, cid),
	.head_offset		= offsetof(struct dblp_sock, conn_node),
	.automatic_shrinking	= true,
};

static const struct rhashtable_params dblp_peers_params = {
	.key_len		= sizeof(struct dblp_peer_key),
	.key_offset		= offsetof(struct dblp_sock, peer_key),
	.head_offset		= offsetof(struct dblp_sock, peer_node),
	.automatic_shrinking	= true,
};

/** dblp_pernet() - state of AF_DBLP in a namespace */
struct dblp_net *dblp_pernet(struct net *net)
{
	return net_generic(net, dblp_net_id);
}

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
 * @item: the counter
 *
 * Return: the sum over all CPUs, without stopping them.
 */
u64 dblp_mib_sum(struct dblp_mib __percpu *mib, enum dblp_mib_item item)
{
	const struct dblp_mib *m;
	u64 sum = 0, value;
	unsigned int start;
	int cpu;

	/* Like snmp_fold_field64(), which newer kernels do not export */
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

/**
 * dblp_count_drops() - count and trace dropped packets
 * @net: namespace
 * @dsk: destination socket, NULL if unknown
 * @why: drop reason
 * @n: number of packets
 */
void dblp_count_drops(struct net *net, const struct dblp_sock *dsk,
		      enum dblp_mib_item why, u32 n)
{
	DBLP_ADD_STATS(net, why, n);
	trace_dblp_packet_dropped(net, dsk, why, n);
}

int dblp_conns_init(struct dblp_net *dn)
{
	int err;

	err = rhashtable_init(&dn->conns, &dblp_conns_params);
	if (err)
		return err;
	err = rhashtable_init(&dn->peers, &dblp_peers_params);
	if (err)
		goto err_conns;
	xa_init_flags(&dn->socks, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	return 0;

err_conns:
	rhashtable_destroy(&dn->conns);
	return err;
}

void dblp_conns_exit(struct dblp_net *dn)
{
	WARN_ON_ONCE(!xa_empty(&dn->socks));
	xa_destroy(&dn->socks);
	rhashtable_destroy(&dn->peers);
	rhashtable_destroy(&dn->conns);
}

/*
 * Take a reference to a connection if it uses the endpoint. Packets of other
 * endpoints have passed other filters of ports, cgroups and devices, so they
 * are refused.
 */
static struct dblp_sock *dblp_conn_get(struct dblp_sock *dsk,
				       const struct dblp_endpoint *ep)
{
	if (!dsk || READ_ONCE(dsk->ep) != ep ||
	    !refcount_inc_not_zero(&dsk->sk.sk_refcnt))
		return NULL;
	return dsk;
}

/**
 * dblp_conn_find() - find a connection by our connection ID
 * @ep: endpoint that has received a packet or an ICMP error for the connection
 * @cid: our connection ID
 *
 * Return: the connection with a reference, or NULL.
 */
struct dblp_sock *dblp_conn_find(const struct dblp_endpoint *ep, u64 cid)
{
	struct dblp_net *dn = dblp_pernet(ep->net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = rhashtable_lookup(&dn->conns, &cid, dblp_conns_params);
	dsk = dblp_conn_get(dsk, ep);
	rcu_read_unlock();
	return dsk;
}

/**
 * dblp_conn_find_peer() - find a connection by its peer
 * @ep: as for dblp_conn_find()
 * @key: connection ID and address of the peer
 *
 * Return: the connection with a reference, or NULL.
 */
struct dblp_sock *dblp_conn_find_peer(const struct dblp_endpoint *ep,
				      const struct dblp_peer_key *key)
{
	struct dblp_net *dn = dblp_pernet(ep->net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = rhashtable_lookup(&dn->peers, key, dblp_peers_params);
	dsk = dblp_conn_get(dsk, ep);
	rcu_read_unlock();
	return dsk;
}

/**
 * dblp_conn_hash() - enter a connection in the tables, for received packets
 * @dsk: socket with its connection ID set
 *
 * A client calls this again when it has its peer's connection ID, which enters
 * it in @peers.
 *
 * Return: 0, -EEXIST if the ID is in use, or -ENOMEM.
 */
int dblp_conn_hash(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (!dsk->hashed) {
		err = rhashtable_lookup_insert_fast(&dn->conns,
						    &dsk->conn_node,
						    dblp_conns_params);
		if (err)
			return err;
		dsk->hashed = true;
	}
	if (!dsk->peer_key.cid || dsk->peer_hashed)
		return 0;

	err = rhashtable_lookup_insert_fast(&dn->peers, &dsk->peer_node,
					    dblp_peers_params);
	if (!err)
		dsk->peer_hashed = true;
	return err;
}

/** dblp_conn_unhash_peer() - remove a connection from @peers */
void dblp_conn_unhash_peer(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	sock_owned_by_me(&dsk->sk);
	if (dsk->peer_hashed)
		rhashtable_remove_fast(&dn->peers, &dsk->peer_node,
				       dblp_peers_params);
	dsk->peer_hashed = false;
}

/** dblp_conn_unhash() - remove a connection from @conns and @peers */
void dblp_conn_unhash(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	sock_owned_by_me(&dsk->sk);
	dblp_conn_unhash_peer(dsk);
	if (dsk->hashed)
		rhashtable_remove_fast(&dn->conns, &dsk->conn_node,
				       dblp_conns_params);
	dsk->hashed = false;
}

/**
 * dblp_sock_number() - allocate the number of a new socket
 * @dsk: socket
 * @gfp: allocation flags
 *
 * Return: 0 or -ENOMEM, -EBUSY.
 */
int dblp_sock_number(struct dblp_sock *dsk, gfp_t gfp)
{
	struct dblp_net *dn = dsk->dn;
	int err;

	err = xa_alloc_cyclic_bh(&dn->socks, &dsk->id, dsk,
				 XA_LIMIT(1, INT_MAX), &dn->next_id, gfp);
	if (err < 0)
		return err;
	atomic_inc(&dn->generation);
	return 0;
}

/** dblp_sock_unnumber() - free the number of a socket */
void dblp_sock_unnumber(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	xa_erase_bh(&dn->socks, dsk->id);
	atomic_inc(&dn->generation);
}

/**
 * dblp_sock_next() - walk the sockets of a namespace
 * @net: namespace
 * @id: number to start at; set to the number of the socket found
 *
 * Return: the socket with the smallest number >= @id, with a reference, or
 * NULL.
 */
struct dblp_sock *dblp_sock_next(struct net *net, u32 *id)
{
	struct dblp_net *dn = dblp_pernet(net);
	unsigned long index = *id;
	struct dblp_sock *dsk;

	rcu_read_lock();
	xa_for_each_start(&dn->socks, index, dsk, *id)
		if (refcount_inc_not_zero(&dsk->sk.sk_refcnt))
			break;
	rcu_read_unlock();
	*id = index;
	return dsk;
}

/**
 * dblp_sock_by_id() - find a socket by number
 * @net: namespace
 * @id: number
 *
 * Return: the socket with a reference, or NULL.
 */
struct dblp_sock *dblp_sock_by_id(struct net *net, u32 id)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = xa_load(&dn->socks, id);
	if (dsk && !refcount_inc_not_zero(&dsk->sk.sk_refcnt))
		dsk = NULL;
	rcu_read_unlock();
	return dsk;
}

/** dblp_sock_generation() - changes when a socket is made or freed */
u32 dblp_sock_generation(struct net *net)
{
	return atomic_read(&dblp_pernet(net)->generation);
}

/* Sysctls. Netlink sets all other parameters, see netlink/param.c */

/* A smaller window cannot hold a message; with a larger one an int overflows */
static int dblp_buffer_min = DBLP_WINDOW_MIN;
static int dblp_buffer_max = 1 << 30;

/*
 * @data is an offset in struct dblp_net, which dblp_sysctl_init() replaces.
 * Only init_net has the last entry, whose data are global
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
 * dblp_sysctl_init() - set the defaults of a namespace and register its sysctls
 * @net: namespace
 * @dn: state of the namespace
 * @mem: limits of the protocol's memory, in pages
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
	/* The zeroed entry also ends the table, for older kernels */
	if (n == i)
		memset(&table[i], 0, sizeof(table[i]));
	dn->sysctl_table = table;
	dn->sysctl = register_net_sysctl_sz(net, "net/dblp", table, n);
	if (dn->sysctl)
		return 0;
	kfree(table);
	return -ENOMEM;
}

/** dblp_sysctl_exit() - unregister the sysctls of a namespace */
void dblp_sysctl_exit(struct dblp_net *dn)
{
	if (!dn->sysctl)
		return;
	unregister_net_sysctl_table(dn->sysctl);
	kfree(dn->sysctl_table);
}
