// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: its protocol, its namespaces, how it comes and goes.
 */
#define pr_fmt(fmt) "dblp: " fmt

#include <linux/bpf-cgroup.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/swap.h>
#include <net/netns/generic.h>

#include "dblp.h"
#include "netlink/netlink.h"

unsigned int dblp_net_id __read_mostly;

static atomic_long_t dblp_memory_allocated ____cacheline_aligned_in_smp;
static DEFINE_PER_CPU(int, dblp_memory_per_cpu_fw_alloc);
static struct percpu_counter dblp_sockets_allocated;
static unsigned long dblp_memory_pressure;
static long dblp_sysctl_mem[3] __read_mostly;
/* That a socket may have under pressure; the core wants to know no more of it */
static int dblp_mem_least = DBLP_WINDOW_MIN;

/** dblp_pernet() - what a namespace has for us */
struct dblp_net *dblp_pernet(struct net *net)
{
	return net_generic(net, dblp_net_id);
}

static void dblp_enter_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(dblp_memory_pressure, 1);
}

/* The owner lets the socket go: do what others left behind */
static void dblp_release_cb(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	if (test_and_clear_bit(DBLP_DEFER_TIMER, &dsk->deferred))
		dblp_timer_run(dsk);
	if (test_and_clear_bit(DBLP_DEFER_MTU, &dsk->deferred))
		dblp_mtu_reduced(dsk);
}

struct proto dblp_prot = {
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
	.sysctl_rmem		= &dblp_mem_least,
	.sysctl_wmem		= &dblp_mem_least,
};

static void dblp_destruct(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	hrtimer_cancel(&dsk->timer);
	dblp_leave_config(dsk);
	dblp_rx_purge(dsk);
	dblp_tx_purge_reports(dsk);
	dblp_tx_free(dsk, dsk->tx_reported);
	dblp_ring_free(dsk);
	dblp_ranges_free(dsk);
	dblp_auth_free(dsk);
	if (dsk->ep)
		dblp_endpoint_put(dsk->ep);
	__skb_queue_purge(&sk->sk_error_queue);
	__skb_queue_purge(&sk->sk_receive_queue);
	sk_mem_reclaim(sk);
	WARN_ON_ONCE(atomic_read(&sk->sk_rmem_alloc));
	WARN_ON_ONCE(sk->sk_wmem_queued);
	WARN_ON_ONCE(sk->sk_forward_alloc);
	dst_release(rcu_dereference_check(sk->sk_dst_cache, 1));
	sk_sockets_allocated_dec(sk);
}

/**
 * dblp_sock_alloc() - a new socket in state CLOSED, without a number
 * @net: namespace
 * @gfp: how to allocate
 * @kern: made by the kernel for itself
 *
 * Return: the socket with the reference that is its life, or NULL.
 */
struct sock *dblp_sock_alloc(struct net *net, gfp_t gfp, int kern)
{
	struct dblp_defaults defaults;
	struct dblp_sock *dsk;
	struct sock *sk;

	sk = sk_alloc(net, PF_DBLP, gfp, &dblp_prot, kern);
	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	sk->sk_type = SOCK_SEQPACKET;
	sk->sk_destruct = dblp_destruct;
	sk->sk_backlog_rcv = dblp_prot.backlog_rcv;
	sk->sk_state = TCP_CLOSE;
	sk->sk_rcvbuf = READ_ONCE(dblp_pernet(net)->sysctl_rmem_default);
	sk->sk_sndbuf = READ_ONCE(dblp_pernet(net)->sysctl_wmem_default);
	sk->sk_txrehash = READ_ONCE(net->core.sysctl_txrehash);
	sock_set_flag(sk, SOCK_RCU_FREE);
	/* Packets that leave the queues below do not mean room for messages */
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	sk_sockets_allocated_inc(sk);

	dsk = dblp_sk(sk);
	dsk->dn = dblp_pernet(net);
	dblp_defaults_read(dblp_config(net), &defaults);
	dsk->cc.ops = defaults.cc;
	dsk->cap = defaults.cap;
	dsk->user_timeout_ms = defaults.user_timeout_ms;
	dsk->keepalive_ms = defaults.keepalive_ms;
	dsk->element = 8;
	dsk->elide = 1;
	INIT_LIST_HEAD(&dsk->accept_queue);
	INIT_LIST_HEAD(&dsk->accept_node);
	INIT_LIST_HEAD(&dsk->tx_msgs);
	dsk->tx_started = RB_ROOT;
	INIT_LIST_HEAD(&dsk->tx_lost);
	INIT_LIST_HEAD(&dsk->tx_settled);
	INIT_LIST_HEAD(&dsk->tx_reports);
	INIT_LIST_HEAD(&dsk->tx_spare);
	dblp_ctl_begin(dsk);
	INIT_LIST_HEAD(&dsk->rx_waits);
	INIT_LIST_HEAD(&dsk->rx_judge);
	timerqueue_init_head(&dsk->rx_due);
	INIT_LIST_HEAD(&dsk->rx_ready);
	INIT_LIST_HEAD(&dsk->rx_part);
	INIT_LIST_HEAD(&dsk->rx_last);
	dsk->rx_msgs = RB_ROOT;
	dblp_ranges_init(&dsk->pns);
	dblp_timer_init(dsk);
	dblp_apply_config(dsk);
	return sk;
}

static int dblp_create(struct net *net, struct socket *sock, int protocol,
		       int kern)
{
	struct sock *sk;
	int err;

	if (sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol)
		return -EPROTONOSUPPORT;
	sk = dblp_sock_alloc(net, GFP_KERNEL, kern);
	if (!sk)
		return -ENOBUFS;
	/* It may say by which device, with which mark and priority */
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
	sock_graft(sk, sock);
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
	err = dblp_sysctl_init(net, dn);
	if (err)
		goto err_mib;
	err = dblp_conns_init(dn);
	if (err)
		goto err_sysctl;
	get_random_bytes(&dn->cookie_key, sizeof(dn->cookie_key));
	dblp_reuse_init(dn);
	return 0;

err_sysctl:
	dblp_sysctl_exit(dn);
err_mib:
	free_percpu(dn->mib);
	return err;
}

static void __net_exit dblp_net_exit(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);

	dblp_endpoints_flush();
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
	.exit	= dblp_net_exit,
	.id	= &dblp_net_id,
	.size	= sizeof(struct dblp_net),
};

/* As TCP and SCTP do: an eighth of memory, and pressure below that */
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
	BUILD_BUG_ON(sizeof(struct dblp_sndinfo) != 32);
	BUILD_BUG_ON(sizeof(struct dblp_rcvinfo) != 32);
	BUILD_BUG_ON(sizeof(struct dblp_range) != 8);
	BUILD_BUG_ON(sizeof(struct dblp_lossmap) != 16);
	BUILD_BUG_ON(sizeof(struct dblp_info) != 264);
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
	err = dblp_nl_init();
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
	/* Sockets are freed by RCU callbacks that are ours */
	rcu_barrier();
}

module_init(dblp_init);
module_exit(dblp_exit);

MODULE_DESCRIPTION("AF_DBLP: messages with a loss budget, over UDP");
MODULE_AUTHOR("The AF_DBLP developers");
MODULE_LICENSE("GPL");
/* That of dkms.conf: see doctor.sh */
MODULE_VERSION("0.1.0");
MODULE_ALIAS_NETPROTO(PF_DBLP);
