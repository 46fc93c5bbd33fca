/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 6.10 put the arguments of accept() into a structure. 6.18 spreads counters of
 * drops, and lets a socket inherit its memory cgroup. 6.19 can clone a socket
 * without locking it. What gives a socket to the memory cgroup of a process, or of
 * another socket, is not exported to modules.
 */
#ifndef _NET_DBLP_COMPAT_NET_SOCK_H
#define _NET_DBLP_COMPAT_NET_SOCK_H

#include_next <net/sock.h>

#ifdef DBLP_LACKS_ACCEPT_ARG
struct proto_accept_arg {
	int	flags;
	int	err;
	int	is_empty;
	bool	kern;
};

int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg);

static inline int dblp_accept_op(struct socket *sock, struct socket *newsock,
				 int flags, bool kern)
{
	struct proto_accept_arg arg = {
		.flags = flags,
		.kern = kern,
	};

	return dblp_accept(sock, newsock, &arg);
}
#else
#define dblp_accept_op dblp_accept
#endif

#ifdef DBLP_LACKS_SK_CLONE
#include <linux/lockdep.h>

/* Nothing can find the clone, so that its lock, of the same class, is free */
static inline struct sock *dblp_sk_clone(const struct sock *sk, gfp_t priority,
					 bool lock)
{
	struct sock *newsk;

	local_bh_disable();
	lockdep_off();
	newsk = sk_clone_lock(sk, priority);
	if (newsk)
		bh_unlock_sock(newsk);
	lockdep_on();
	local_bh_enable();
	return newsk;
}

#define sk_clone dblp_sk_clone
#endif

#ifdef DBLP_LACKS_SK_DROPS_INC
static inline void sk_drops_inc(struct sock *sk)
{
	atomic_inc(&sk->sk_drops);
}
#endif

#if defined(DBLP_LACKS_MEM_CGROUP_SK_ALLOC) && defined(CONFIG_MEMCG)
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>

/* That of version 1 counts nothing but TCP */
static inline void dblp_mem_cgroup_sk_alloc(struct sock *sk)
{
	struct mem_cgroup *memcg;

	if (!mem_cgroup_sockets_enabled || !in_task() ||
	    !cgroup_subsys_on_dfl(memory_cgrp_subsys))
		return;
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	/* The root has no limits, and sockets in it none to be charged to */
	if (parent_mem_cgroup(memcg) && css_tryget(&memcg->css))
		sk->sk_memcg = memcg;
	rcu_read_unlock();
}

#define mem_cgroup_sk_alloc dblp_mem_cgroup_sk_alloc
#endif

#ifdef DBLP_LACKS_MEM_CGROUP_SK_INHERIT
#include <linux/memcontrol.h>

static inline void dblp_mem_cgroup_sk_inherit(const struct sock *sk,
					      struct sock *newsk)
{
#ifdef CONFIG_MEMCG
	if (sk->sk_memcg == newsk->sk_memcg)
		return;
	mem_cgroup_put(newsk->sk_memcg);
	if (sk->sk_memcg)
		css_get(&sk->sk_memcg->css);
	newsk->sk_memcg = sk->sk_memcg;
#endif
}

#define mem_cgroup_sk_inherit dblp_mem_cgroup_sk_inherit
#endif

#endif
