// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: init and exit, the protocol, network namespaces.
 */
#define pr_fmt(fmt) "dblp: " fmt

#include <linux/bpf-cgroup.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/swap.h>
#include <net/netns/generic.h>

#include "dblp.h"
#include "netlink/gen.h"
#include "netlink/netlink.h"

static atomic_long_t dblp_memory_allocated ____cacheline_aligned_in_smp;
static DEFINE_PER_CPU(int, dblp_memory_per_cpu_fw_alloc);
static struct percpu_counter dblp_sockets_allocated;
static unsigned long dblp_memory_pressure;
static long dblp_sysctl_mem[3] __read_mostly;
/* Bytes that a socket may have queued to send even under memory pressure */
static int dblp_wmem_least = DBLP_WINDOW_MIN;
/* No limit here: dblp_rx_may_hold() limits received bytes */
static int dblp_rmem_least = INT_MAX;

static void dblp_enter_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(dblp_memory_pressure, 1);
}

static struct proto dblp_prot = {
	.name			= "DBLP",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct dblp_sock),
	.backlog_rcv		= dblp_backlog_rcv,
	.release_cb		= dblp_release_cb,
	.keepalive		= dblp_keepalive,
	.enter_memory_pressure	= dblp_enter_memory_pressure,
	.memory_allocated	= &dblp_memory_allocated,
	.per_cpu_fw_alloc	= &dblp_memory_per_cpu_fw_alloc,
	.sockets_allocated	= &dblp_sockets_allocated,
	.memory_pressure	= &dblp_memory_pressure,
	.sysctl_mem		= dblp_sysctl_mem,
	.sysctl_rmem		= &dblp_rmem_least,
	.sysctl_wmem		= &dblp_wmem_least,
};

static int dblp_create(struct net *net, struct socket *sock, int protocol,
		       int kern)
{
	struct sock *sk;
	int err;

	if (sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol)
		return -EPROTONOSUPPORT;
	sk = dblp_sock_alloc(net, &dblp_prot, kern);
	if (!sk)
		return -ENOBUFS;
	/* The program may set device, mark and priority */
	err = kern ? 0 : BPF_CGROUP_RUN_PROG_INET_SOCK(sk);
	if (!err)
		err = dblp_sock_number(dblp_sk(sk), GFP_KERNEL);
	if (err) {
		sock_set_flag(sk, SOCK_DEAD);
		sock_put(sk);
		return err;
	}
	sock->ops = &dblp_proto_ops;
	sock->state = SS_UNCONNECTED;
	dblp_sock_graft(sk, sock);
	return 0;
}

static const struct net_proto_family dblp_family = {
	.family	= PF_DBLP,
	.create	= dblp_create,
	.owner	= THIS_MODULE,
};

static int __net_init dblp_net_init(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);
	int err;

	dblp_config_init(&dn->config);
	dn->mib = dblp_mib_alloc();
	if (!dn->mib)
		return -ENOMEM;
	err = dblp_sysctl_init(net, dn, dblp_sysctl_mem);
	if (err)
		goto err_mib;
	err = dblp_conns_init(dn);
	if (err)
		goto err_sysctl;
	get_random_bytes(&dn->cookie_key, sizeof(dn->cookie_key));
	/* 47 bits, so that the sum with any uptime fits 48 bits */
	dn->cookie_epoch_ms = get_random_u64() >> 17;
	dblp_reuse_init(dn);
	return 0;

err_sysctl:
	dblp_sysctl_exit(dn);
err_mib:
	free_percpu(dn->mib);
	return err;
}

/* A grace period lies between this and dblp_net_exit() */
static void __net_exit dblp_net_pre_exit(struct net *net)
{
	dblp_endpoints_flush();
}

/* No receiver under RCU uses the namespace any more */
static void __net_exit dblp_net_exit(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);

	WARN_ON_ONCE(atomic_read(&dn->endpoints));
	WARN_ON_ONCE(atomic_read(&dn->orphans));
	dblp_sysctl_exit(dn);
	dblp_jobs_exit(&dn->config);
	dblp_cookies_exit(dn);
	dblp_conns_exit(dn);
	free_percpu(dn->mib);
}

static struct pernet_operations dblp_net_ops = {
	.init	= dblp_net_init,
	.pre_exit = dblp_net_pre_exit,
	.exit	= dblp_net_exit,
	.id	= &dblp_net_id,
	.size	= sizeof(struct dblp_net),
};

/* As with TCP and SCTP, memory pressure begins at an eighth of memory */
static void __init dblp_mem_init(void)
{
	unsigned long limit = max(nr_free_buffer_pages() / 8, 128UL);

	dblp_sysctl_mem[0] = limit / 4 * 3;
	dblp_sysctl_mem[1] = limit;
	dblp_sysctl_mem[2] = dblp_sysctl_mem[0] * 2;
}

static void __init dblp_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct sockaddr_dblp) != 28);
	BUILD_BUG_ON(sizeof(struct dblp_sndinfo) != 64);
	BUILD_BUG_ON(sizeof(struct dblp_rcvinfo) != 64);
	BUILD_BUG_ON(sizeof(struct dblp_range) != 8);
	BUILD_BUG_ON(sizeof(struct dblp_lossmap) != 32);
	BUILD_BUG_ON(sizeof(struct dblp_info) != 288);
	BUILD_BUG_ON(sizeof(struct dblp_auth_key) != 72);
	BUILD_BUG_ON(sizeof(struct dblp_skb_cb) >
		     sizeof_field(struct sk_buff, cb));
}

static int __init dblp_init(void)
{
	int err;

	dblp_check_abi();
	dblp_mem_init();
	err = percpu_counter_init(&dblp_sockets_allocated, 0, GFP_KERNEL);
	if (err)
		return err;
	err = dblp_endpoints_init();
	if (err)
		goto err_counter;
	err = register_pernet_subsys(&dblp_net_ops);
	if (err)
		goto err_endpoints;
	err = proto_register(&dblp_prot, 1);
	if (err)
		goto err_pernet;
	err = sock_register(&dblp_family);
	if (err) {
		pr_err("address family %d is taken by another module\n",
		       PF_DBLP);
		goto err_proto;
	}
	err = dblp_nl_init(dblp_nl_ops, ARRAY_SIZE(dblp_nl_ops));
	if (err)
		goto err_family;
	return 0;

err_family:
	sock_unregister(PF_DBLP);
err_proto:
	proto_unregister(&dblp_prot);
err_pernet:
	unregister_pernet_subsys(&dblp_net_ops);
err_endpoints:
	dblp_endpoints_exit();
err_counter:
	percpu_counter_destroy(&dblp_sockets_allocated);
	return err;
}

static void __exit dblp_exit(void)
{
	dblp_nl_exit();
	sock_unregister(PF_DBLP);
	proto_unregister(&dblp_prot);
	unregister_pernet_subsys(&dblp_net_ops);
	dblp_endpoints_exit();
	percpu_counter_destroy(&dblp_sockets_allocated);
	/* Sockets are freed by RCU callbacks of this module */
	rcu_barrier();
}

module_init(dblp_init);
module_exit(dblp_exit);

MODULE_DESCRIPTION("AF_DBLP: messages with a loss budget, over UDP");
MODULE_AUTHOR("The AF_DBLP developers");
MODULE_LICENSE("GPL");
/* Set by Kbuild, with the commit, so that dblpctl doctor can compare builds */
MODULE_VERSION(DBLP_BUILD);
MODULE_ALIAS_NETPROTO(PF_DBLP);
