// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory accounting.
 *
 * The memory of messages is charged to their socket, and through it to the
 * protocol and to a memory cgroup. That is the cgroup of the process that made
 * or accepted the socket; until accept(), it is that of the listener. So it is
 * not charged to the cgroup of the process that allocates it.
 *
 * Memory for sending is charged before it is allocated. A sender whose charge
 * is refused waits without memory, so any number of senders stays within the
 * limit of all sockets. Each message holds its charge, which is given back when
 * it is freed.
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
 * dblp_wmem_schedule() - may memory for sending be charged to a socket?
 * @sk: socket, locked
 * @size: bytes
 *
 * Return: true if sk_mem_charge() may follow; false at the limit of the
 * socket's cgroup, or of all sockets.
 */
bool dblp_wmem_schedule(struct sock *sk, int size)
{
	int need = size - sk->sk_forward_alloc;

	if (need <= 0)
		return true;
	/* The excess goes back with the next sk_mem_uncharge() */
	if (mem_cgroup_sk_enabled(sk))
		need = max(need, DBLP_CHARGE_MIN);
	return __sk_mem_schedule(sk, need, SK_MEM_SEND);
}

/**
 * dblp_tx_charge() - charge a socket for memory of a message
 * @dsk: socket, locked
 * @size: bytes that the caller allocates afterwards
 *
 * The bytes count in the send buffer.
 *
 * Context: process.
 * Return: 0; or -ENOBUFS, and the caller must not allocate.
 */
int dblp_tx_charge(struct dblp_sock *dsk, u32 size)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(&dsk->sk);
	/* root may set a send buffer of 2 GiB */
	if (size > (u32)(INT_MAX - sk->sk_wmem_queued) ||
	    !dblp_wmem_schedule(sk, size))
		return -ENOBUFS;
	sk_mem_charge(sk, size);
	sk_wmem_queued_add(sk, size);
	return 0;
}

/**
 * dblp_tx_uncharge() - uncharge a socket for memory of a message
 * @dsk: socket, locked, or without users
 * @msg: the message
 * @size: bytes, part of the charge of the message
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
 * dblp_tx_leave_buffer() - stop counting a settled message in the send buffer
 * @dsk: socket
 * @msg: the message; memory kept for its report stays charged
 */
void dblp_tx_leave_buffer(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	sk_wmem_queued_add(&dsk->sk, -(int)msg->truesize);
	msg->off_buffer = 1;
}

/**
 * dblp_rmem_schedule() - may memory for receiving be charged to a socket?
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
 * dblp_rmem_charge() - charge a socket for memory other than buffers
 * @sk: socket, locked, after dblp_rmem_schedule() has returned true
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

/* Is a socket within its share of memory, or is memory not short? */
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
 * dblp_rx_may_hold() - may further memory be charged for an incoming message?
 * @dsk: socket
 * @size: bytes to charge
 * @id: message ID
 *
 * The message to be read next may exceed SO_RCVBUF, and the socket's share
 * while memory is short. Later messages were acknowledged, so they cannot be
 * dropped, and they are read only after this one.
 *
 * Return: true if sk_mem_charge() may follow.
 */
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(&dsk->sk);
	if (id != dsk->rx.next &&
	    (atomic_read(&sk->sk_rmem_alloc) > READ_ONCE(sk->sk_rcvbuf) ||
	     !dblp_within_share(sk)))
		return false;
	return dblp_rmem_schedule(sk, size);
}

/**
 * dblp_tx_refused() - memory for sending was refused
 * @dsk: socket
 *
 * The send buffer counts as full until memory of the socket is freed, at most
 * for a fifth of a second: sockets are not notified when memory of others is
 * freed. The time is random, as with TCP, so that not all sockets retry at
 * once. The connection may have ended since the caller has looked; then the
 * timer would find nothing to do, again and again.
 */
void dblp_tx_refused(struct dblp_sock *dsk)
{
	u64 wait = jiffies_to_nsecs(2 + reciprocal_scale(get_random_u32(),
							 HZ / 5));

	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_CLOSED)
		return;
	dsk->tx.charge_queued = dsk->sk.sk_wmem_queued;
	WRITE_ONCE(dsk->due.charge, ktime_get_ns() + wait);
	dblp_timer_update(dsk);
}

/**
 * dblp_writable() - does the send buffer accept another message?
 * @dsk: socket, perhaps not locked
 *
 * A piece uses at most half of the send buffer, so any piece fits if half of it
 * is free. Under memory pressure a socket accepts a message only when all
 * earlier bytes are settled, because receivers need memory too. @tx.bytes shows
 * that; a message with further pieces stays charged without bytes. Messages are
 * also refused while too many reports are unread.
 */
bool dblp_writable(const struct dblp_sock *dsk)
{
	if (dblp_reports_full(dsk) || READ_ONCE(dsk->due.charge))
		return false;
	if (READ_ONCE(dsk->tx.bytes) && sk_under_memory_pressure(&dsk->sk))
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
 * The caller must call dblp_writable() again afterwards. Without this note no
 * process is woken, so that processes that wait for other events are not woken
 * in vain.
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
	if (dsk->sk.sk_wmem_queued < dsk->tx.charge_queued)
		WRITE_ONCE(dsk->due.charge, 0);
	/* Pairs with smp_mb__after_atomic() in dblp_no_space() */
	smp_mb();
	if (!sock || !test_bit(SOCK_NOSPACE, &sock->flags) ||
	    !dblp_writable(dsk))
		return;
	clear_bit(SOCK_NOSPACE, &sock->flags);
	dblp_wake_writers(dsk);
}
