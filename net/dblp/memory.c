// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whom memory is charged to.
 *
 * The bytes of messages, and what holds them, are charged to their socket, and
 * through it to the protocol and to the memory cgroup of whoever made or
 * accepted it, or of its listener as long as nobody has. So they are not charged
 * to the cgroup where they are allocated.
 *
 * What a user sends is charged before it is allocated: who may not have it waits
 * without it, so that no number of senders takes more than all sockets may have.
 * It comes back when it is freed, which is why each message knows what was charged
 * for it.
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
 * dblp_wmem_schedule() - may a socket be charged for what it sends?
 * @sk: socket, locked
 * @size: bytes
 *
 * Return: true if sk_mem_charge() may follow; false if the socket's cgroup, or
 * all sockets together, have too much.
 */
bool dblp_wmem_schedule(struct sock *sk, int size)
{
	int need = size - sk->sk_forward_alloc;

	if (need <= 0)
		return true;
	/* What it is too much goes back with the next sk_mem_uncharge() */
	if (mem_cgroup_sockets_enabled && sk->sk_memcg)
		need = max(need, DBLP_CHARGE_MIN);
	return __sk_mem_schedule(sk, need, SK_MEM_SEND);
}

/**
 * dblp_tx_charge() - charge a socket for memory of a message
 * @dsk: socket, locked
 * @size: bytes that are about to be allocated
 *
 * They take room in the send buffer.
 *
 * Context: process.
 * Return: 0, or -ENOBUFS and nothing may be allocated.
 */
int dblp_tx_charge(struct dblp_sock *dsk, u32 size)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(&dsk->sk);
	if (!dblp_wmem_schedule(sk, size))
		return -ENOBUFS;
	sk_mem_charge(sk, size);
	sk_wmem_queued_add(sk, size);
	return 0;
}

/**
 * dblp_tx_uncharge() - memory of a message was freed
 * @dsk: socket, locked, or without users
 * @msg: the message
 * @size: bytes, of those that were charged for it
 */
void dblp_tx_uncharge(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 size)
{
	struct sock *sk = &dsk->sk;

	msg->truesize -= size;
	if (!msg->off_buffer)
		sk_wmem_queued_add(sk, -(int)size);
	sk_mem_uncharge(sk, size);
}

/**
 * dblp_tx_leave_buffer() - a settled message takes no room in the send buffer
 * @dsk: socket
 * @msg: the message; what is left of it stays charged, for its report
 */
void dblp_tx_leave_buffer(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	sk_wmem_queued_add(&dsk->sk, -(int)msg->truesize);
	msg->off_buffer = 1;
}

/**
 * dblp_rmem_schedule() - may a socket be charged for what came in?
 * @sk: socket, locked
 * @size: bytes
 *
 * Return: true if dblp_rmem_charge() may follow.
 */
bool dblp_rmem_schedule(struct sock *sk, int size)
{
	int need = size - sk->sk_forward_alloc;

	sock_owned_by_me(sk);
	return need <= 0 || __sk_mem_schedule(sk, need, SK_MEM_RECV);
}

/**
 * dblp_rmem_charge() - charge a socket for memory besides buffers
 * @sk: socket, locked, for which dblp_rmem_schedule() has allowed it
 * @size: bytes
 */
void dblp_rmem_charge(struct sock *sk, int size)
{
	sock_owned_by_me(sk);
	atomic_add(size, &sk->sk_rmem_alloc);
	sk_mem_charge(sk, size);
}

/** dblp_rmem_uncharge() - that memory was freed; the socket may have no users */
void dblp_rmem_uncharge(struct sock *sk, int size)
{
	atomic_sub(size, &sk->sk_rmem_alloc);
	sk_mem_uncharge(sk, size);
}

/**
 * dblp_accept_memory() - who accepts a connection pays for what it has
 * @sk: connection, locked, that nobody has seen yet
 *
 * Its listener has paid for what came before. Charge who accepts it for that, too,
 * then give it back for the listener: what inet_csk_accept() does, with what
 * modules may use.
 *
 * Context: process.
 */
void dblp_accept_memory(struct sock *sk)
{
	int size = PAGE_ALIGN(sk->sk_forward_alloc +
			      atomic_read(&sk->sk_rmem_alloc) +
			      dblp_ring_truesize(dblp_sk(sk)));
	struct mem_cgroup *theirs = sk->sk_memcg, *ours;
	bool charged;

	sock_owned_by_me(sk);
	if (!mem_cgroup_sockets_enabled)
		return;
	sk->sk_memcg = NULL;
	mem_cgroup_sk_alloc(sk);
	ours = sk->sk_memcg;
	if (ours == theirs || !size) {
		mem_cgroup_put(theirs);
		return;
	}
	/* Like packets that come in, it is charged though the cgroup be full */
	local_bh_disable();
	charged = __sk_mem_schedule(sk, size, SK_MEM_RECV);
	local_bh_enable();
	sk->sk_memcg = theirs;
	if (charged)
		__sk_mem_reclaim(sk, size);
	else
		swap(ours, theirs);
	sk->sk_memcg = ours;
	mem_cgroup_put(theirs);
}
