// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory accounting.
 *
 * The bytes of messages, and what holds them, are charged to their socket, and
 * through it to the protocol and to the memory cgroup of the process that made
 * or accepted it, or until then of its listener. So they are not charged to the
 * cgroup where they are allocated.
 *
 * What a user sends is charged before it is allocated: a sender that is refused
 * waits without memory, so that any number of senders stays within the limit of
 * all sockets. Each message knows its charge, which is given back when it is
 * freed.
 */
#include <linux/memcontrol.h>
#include <linux/mmzone.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <net/proto_memory.h>

#include "dblp.h"

/*
 * The smallest charge that does not invoke the OOM killer when a cgroup is
 * full: see mem_cgroup_oom().
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
	/* The excess goes back with the next sk_mem_uncharge() */
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
 * dblp_tx_uncharge() - uncharge a socket for memory of a message
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
 * dblp_rmem_schedule() - may a socket be charged for what it received?
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

/** dblp_rmem_uncharge() - uncharge memory; the socket may have no users */
void dblp_rmem_uncharge(struct sock *sk, int size)
{
	atomic_sub(size, &sk->sk_rmem_alloc);
	sk_mem_uncharge(sk, size);
}

/* While memory is short, may a socket have as much as it has? */
static bool dblp_within_share(struct sock *sk)
{
	u64 sockets = sk_sockets_allocated_read_positive(sk);

	if (!READ_ONCE(*sk->sk_prot->memory_pressure))
		return true;
	return sk_prot_mem_limits(sk, 2) >
	       sockets * sk_mem_pages(sk->sk_wmem_queued +
				      atomic_read(&sk->sk_rmem_alloc) +
				      sk->sk_forward_alloc);
}

/**
 * dblp_rx_may_hold() - may a message hold more?
 * @dsk: socket
 * @size: bytes that would be charged
 * @id: the message
 *
 * The message that is to be read next may exceed SO_RCVBUF, and the share that
 * a socket has while memory is short. What is held of later messages was
 * acknowledged and cannot be dropped, and can only be read after this one.
 *
 * Return: true if sk_mem_charge() may follow.
 */
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(&dsk->sk);
	if (id != dsk->rx_next &&
	    (atomic_read(&sk->sk_rmem_alloc) > READ_ONCE(sk->sk_rcvbuf) ||
	     !dblp_within_share(sk)))
		return false;
	return dblp_rmem_schedule(sk, size);
}

/**
 * dblp_tx_refused() - there was no memory for what a process sends
 * @dsk: socket
 *
 * Until memory of the socket is freed, or for a fifth of a second at most, it
 * takes no more: nothing tells when memory of other sockets is freed. Sockets
 * wait for different times, as those of TCP do, so that not all retry at once.
 */
void dblp_tx_refused(struct dblp_sock *dsk)
{
	u64 wait = jiffies_to_nsecs(2 + reciprocal_scale(get_random_u32(),
							 HZ / 5));

	sock_owned_by_me(&dsk->sk);
	dsk->refused_queued = dsk->sk.sk_wmem_queued;
	WRITE_ONCE(dsk->refused_until, ktime_get_ns() + wait);
	dblp_timer_update(dsk);
}

/**
 * dblp_writable() - does the send buffer take another message?
 * @dsk: socket, perhaps not locked
 *
 * No piece takes more than half of the buffer, so when half of it is free any
 * will fit. Under memory pressure each socket sends what it has before it takes
 * more, as receivers need memory, too. What it has are bytes not settled: a
 * message of which more is to come stays charged without any. Nor is anything
 * taken while nobody takes reports, so that these stay few.
 */
bool dblp_writable(const struct dblp_sock *dsk)
{
	if (dblp_reports_full(dsk) || READ_ONCE(dsk->refused_until))
		return false;
	if (READ_ONCE(dsk->tx_bytes) && sk_under_memory_pressure(&dsk->sk))
		return false;
	return READ_ONCE(dsk->sk.sk_wmem_queued) <=
	       READ_ONCE(dsk->sk.sk_sndbuf) / 2;
}

/** dblp_wake_writers() - wake processes that wait to send */
void dblp_wake_writers(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;
	struct socket_wq *wq;

	sock_owned_by_me(sk);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/**
 * dblp_no_space() - note that a process may wait for dblp_writable()
 * @dsk: socket of a process in a call
 *
 * The caller must test it once more. Without this no process is woken, so that
 * those that wait for other events, as for an answer, are not woken in vain.
 */
void dblp_no_space(struct dblp_sock *dsk)
{
	set_bit(SOCK_NOSPACE, &dsk->sk.sk_socket->flags);
	/* Pairs with smp_mb() in dblp_write_space() */
	smp_mb__after_atomic();
}

/** dblp_write_space() - wake processes that wait for dblp_writable() */
void dblp_write_space(struct dblp_sock *dsk)
{
	struct socket *sock = dsk->sk.sk_socket;

	sock_owned_by_me(&dsk->sk);
	if (dsk->sk.sk_wmem_queued < dsk->refused_queued)
		WRITE_ONCE(dsk->refused_until, 0);
	/* Pairs with smp_mb__after_atomic() in dblp_no_space() */
	smp_mb();
	if (!sock || !test_bit(SOCK_NOSPACE, &sock->flags) ||
	    !dblp_writable(dsk))
		return;
	clear_bit(SOCK_NOSPACE, &sock->flags);
	dblp_wake_writers(dsk);
}
