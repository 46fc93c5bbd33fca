/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Linux 6.10 passes the arguments of accept() in a structure. 6.18 added
 * sk_drops_inc(), mem_cgroup_sk_enabled() and mem_cgroup_sk_inherit(). 6.19 can
 * clone a socket without locking it. The functions that set the memory cgroup of
 * a socket are not exported to modules by all kernels. Features of 6.0 and older
 * are needed.
 */
#ifndef _NET_DBLP_COMPAT_NET_SOCK_H
#define _NET_DBLP_COMPAT_NET_SOCK_H

#include_next <net/sock.h>

#ifdef DBLP_LACKS_FW_ALLOC
#error The kernel is too old for dblp: struct proto has no per_cpu_fw_alloc, as since Linux 6.0
#endif

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

/* No deadlock: the lock of the clone, of the same class, is not visible yet */
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

#ifdef DBLP_LACKS_MEM_CGROUP_SK_ENABLED
#include <linux/memcontrol.h>

static inline bool mem_cgroup_sk_enabled(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	return mem_cgroup_sockets_enabled && sk->sk_memcg;
#else
	return false;
#endif
}
#endif

#if defined(DBLP_LACKS_MEM_CGROUP_SK_ALLOC) && defined(CONFIG_MEMCG)
#include <linux/cgroup.h>
#include <linux/memcontrol.h>
#include <linux/sched.h>

/* The memory controller of cgroup version 1 supports TCP only */
static inline void dblp_mem_cgroup_sk_alloc(struct sock *sk)
{
	struct mem_cgroup *memcg;

	if (!mem_cgroup_sockets_enabled || !in_task() ||
	    !cgroup_subsys_on_dfl(memory_cgrp_subsys))
		return;
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	/* The root cgroup has no limits: sockets in it are not charged */
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
