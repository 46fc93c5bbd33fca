// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whom memory is charged to.
 *
 * The bytes of messages, and what holds them, are charged to their socket, and
 * through it to the protocol and to the memory cgroup of whoever made or
 * accepted it. So they are not charged to the cgroup where they are allocated.
 * What lives longer, or is not counted in the size of a message, is.
 */
#include <linux/memcontrol.h>
#include <linux/mmzone.h>

#include "dblp.h"

/*
 * The smallest charge for which no process is killed when a cgroup is full, as
 * nothing but small amounts are worth that: see mem_cgroup_oom().
 */
#define DBLP_CHARGE_MIN		((int)(PAGE_SIZE << (PAGE_ALLOC_COSTLY_ORDER + 1)))

/**
 * dblp_wmem_schedule() - may a socket be charged for a message to be sent?
 * @sk: socket, locked
 * @size: bytes
 *
 * Context: process.
 * Return: true if sk_mem_charge() may follow; false if the socket's cgroup, or
 * all sockets together, have too much.
 */
bool dblp_wmem_schedule(struct sock *sk, int size)
{
	int need = size - sk->sk_forward_alloc;

	sock_owned_by_me(sk);
	if (need <= 0)
		return true;
	/* What it is too much goes back with the next sk_mem_uncharge() */
	if (mem_cgroup_sockets_enabled && sk->sk_memcg)
		need = max(need, DBLP_CHARGE_MIN);
	return __sk_mem_schedule(sk, need, SK_MEM_SEND);
}

/**
 * dblp_accept_memory() - who accepts a connection pays for what it has
 * @sk: connection, locked, that nobody has seen yet
 *
 * It was made by a packet. What inet_csk_accept() does, with what modules may
 * use: charge everybody again, then give back what was charged before, which
 * was not to a cgroup.
 *
 * Context: process.
 */
void dblp_accept_memory(struct sock *sk)
{
	int size = PAGE_ALIGN(sk->sk_forward_alloc +
			      atomic_read(&sk->sk_rmem_alloc));
	struct mem_cgroup *memcg;
	bool charged;

	sock_owned_by_me(sk);
	if (!mem_cgroup_sockets_enabled || sk->sk_memcg)
		return;
	mem_cgroup_sk_alloc(sk);
	memcg = sk->sk_memcg;
	if (!memcg || !size)
		return;
	/* Like packets that come in, it is charged though the cgroup be full */
	local_bh_disable();
	charged = __sk_mem_schedule(sk, size, SK_MEM_RECV);
	local_bh_enable();
	sk->sk_memcg = NULL;
	if (charged) {
		__sk_mem_reclaim(sk, size);
		sk->sk_memcg = memcg;
	} else {
		mem_cgroup_put(memcg);
	}
}
