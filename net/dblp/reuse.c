// SPDX-License-Identifier: GPL-2.0-only
/*
 * SO_REUSEADDR: a server that is started again gets its port though
 * connections of its predecessor live on.
 *
 * Packets find their connection by its ID, whoever else uses the same UDP
 * socket. So sockets may share an endpoint, as a listener does with what it
 * accepts, and there is no conflict but that of two listeners. They belong to
 * one user, as what comes to an endpoint counts for all who use it.
 */
#include <linux/bpf-cgroup.h>
#include <net/ip.h>

#include "dblp.h"

/** dblp_reuse_init() - prepare a namespace */
void dblp_reuse_init(struct dblp_net *dn)
{
	INIT_LIST_HEAD(&dn->shared);
	spin_lock_init(&dn->shared_lock);
}

/* Nobody gets out of what binds his cgroup by joining another one */
static bool dblp_same_policy(struct sock *sk, struct sock *usk)
{
#ifdef CONFIG_CGROUP_BPF
	static const enum cgroup_bpf_attach_type types[] = {
		CGROUP_INET_EGRESS, CGROUP_INET_INGRESS,
	};
	u32 i;

	if (sock_cgroup_ptr(&sk->sk_cgrp_data) ==
	    sock_cgroup_ptr(&usk->sk_cgrp_data))
		return true;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (cgroup_bpf_enabled(types[i]) &&
		    (cgroup_bpf_sock_enabled(sk, types[i]) ||
		     cgroup_bpf_sock_enabled(usk, types[i])))
			return false;
#endif
	return true;
}

static bool dblp_may_share(const struct dblp_endpoint *ep,
			   const struct sockaddr_dblp *addr, struct sock *sk)
{
	lockdep_assert_held(&dblp_pernet(ep->net)->shared_lock);
	return ep->addr.sdblp_port == addr->sdblp_port &&
	       ep->ifindex == sk->sk_bound_dev_if &&
	       uid_eq(ep->uid, sk->sk_uid) &&
	       dblp_same_policy(sk, ep->sock->sk) &&
	       ep->addr.sdblp_scope_id == addr->sdblp_scope_id &&
	       ipv6_addr_equal(&ep->addr.sdblp_addr, &addr->sdblp_addr) &&
	       !rcu_access_pointer(ep->listener);
}

/**
 * dblp_endpoint_join() - find an endpoint that others have and will share
 * @dsk: socket with SO_REUSEADDR that is being bound
 * @addr: to this address
 *
 * Context: process.
 * Return: the endpoint with a reference, NULL if there is none to be shared,
 * or ERR_PTR(-EACCES).
 */
struct dblp_endpoint *dblp_endpoint_join(struct dblp_sock *dsk,
					 const struct sockaddr_dblp *addr)
{
	struct net *net = sock_net(&dsk->sk);
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_endpoint *ep;

	sock_owned_by_me(&dsk->sk);
	/* UDP has asked this of the one who bound it, not of us */
	if (inet_port_requires_bind_service(net, ntohs(addr->sdblp_port)) &&
	    !ns_capable(net->user_ns, CAP_NET_BIND_SERVICE))
		return ERR_PTR(-EACCES);
	spin_lock(&dn->shared_lock);
	list_for_each_entry(ep, &dn->shared, shared)
		if (dblp_may_share(ep, addr, &dsk->sk) &&
		    refcount_inc_not_zero(&ep->refs))
			goto out;
	ep = NULL;
out:
	spin_unlock(&dn->shared_lock);
	return ep;
}

/**
 * dblp_endpoint_share() - let others join an endpoint
 * @dsk: socket with SO_REUSEADDR that has just bound it
 */
void dblp_endpoint_share(struct dblp_sock *dsk)
{
	struct dblp_endpoint *ep = dsk->ep;
	struct dblp_net *dn = dsk->dn;

	sock_owned_by_me(&dsk->sk);
	ep->addr = dsk->local;
	ep->ifindex = dsk->sk.sk_bound_dev_if;
	ep->uid = dsk->sk.sk_uid;
	spin_lock(&dn->shared_lock);
	list_add(&ep->shared, &dn->shared);
	spin_unlock(&dn->shared_lock);
}

/**
 * dblp_endpoint_unshare() - nobody uses an endpoint any more
 * @ep: without references
 *
 * Context: process.
 */
void dblp_endpoint_unshare(struct dblp_endpoint *ep)
{
	struct dblp_net *dn = dblp_pernet(ep->net);

	spin_lock(&dn->shared_lock);
	list_del_init(&ep->shared);
	spin_unlock(&dn->shared_lock);
}

/**
 * dblp_endpoint_listen() - become the one who takes connections
 * @dsk: bound socket
 *
 * Return: 0, or -EADDRINUSE: there is one already.
 */
int dblp_endpoint_listen(struct dblp_sock *dsk)
{
	struct dblp_sock *old;

	sock_owned_by_me(&dsk->sk);
	old = unrcu_pointer(cmpxchg(&dsk->ep->listener, NULL,
				    RCU_INITIALIZER(dsk)));
	return old ? -EADDRINUSE : 0;
}
