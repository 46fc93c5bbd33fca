// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small queues, as with TCP: few buffers of a socket wait in the queues of this
 * machine.
 *
 * Packets in these queues are a standing queue that no other host sees, and our
 * ACKs wait behind them. So a socket stops sending while two full packets are
 * there, or the bytes that the pacer sends in 2^-sk_pacing_shift seconds if
 * that is more. In about that time devices report packets as sent; drivers can
 * change it. The socket continues when a buffer has left. If a queue is full
 * and has refused a packet, the socket continues when an ACK shows that packets
 * leave it.
 *
 * A buffer belongs to its socket until it leaves. If a queue segments it, so do
 * the segments. sock_wfree() frees it and calls sk_write_space(), in any
 * context, with any lock held, while the socket may be owned. So a tasklet does
 * the work.
 */
#include "dblp.h"

/* Truesize of the socket's buffers in queues of this machine, plus 1 */
static u32 dblp_tsq_queued(const struct dblp_sock *dsk)
{
	return refcount_read(&dsk->sk.sk_wmem_alloc);
}

static u32 dblp_tsq_max(const struct dblp_sock *dsk, u32 mss)
{
	u64 rate = dsk->cc.pacing_rate;

	return clamp_t(u64, rate >> READ_ONCE(dsk->sk.sk_pacing_shift),
		       2 * SKB_TRUESIZE(mss), INT_MAX);
}

/**
 * dblp_tsq_full() - must a socket wait for its buffers to leave this machine?
 * @dsk: socket
 * @mss: bytes of the largest packet
 *
 * With no packet in flight it may send, so that a device that keeps buffers
 * does not stop a connection.
 *
 * Return: true if so; dblp_push() will be called when a buffer has left, or an
 * ACK arrives.
 */
bool dblp_tsq_full(struct dblp_sock *dsk, u32 mss)
{
	u32 max = dblp_tsq_max(dsk, mss);

	sock_owned_by_me(&dsk->sk);
	if (!dsk->sent.inflight_pkts)
		return false;
	if (dsk->tx.queue_full)
		return true;
	if (dblp_tsq_queued(dsk) <= max)
		return false;
	WRITE_ONCE(dsk->tsq.max, max);
	/* Pairs with the barrier in dblp_tsq_freed() */
	smp_mb();
	return dblp_tsq_queued(dsk) > max;
}

/*
 * Has SO_SNDBUF been raised so that a process can send? All other changes that
 * make room are made under the socket lock.
 */
static bool dblp_tsq_writable(const struct dblp_sock *dsk)
{
	const struct socket *sock;
	bool writable;

	/* RCU delays the free of sockets */
	rcu_read_lock();
	sock = READ_ONCE(dsk->sk.sk_socket);
	writable = sock && test_bit(SOCK_NOSPACE, &sock->flags) &&
		   dblp_writable(dsk);
	rcu_read_unlock();
	return writable;
}

/* A buffer has left, but for 1 byte at sock_wfree(); or SO_SNDBUF was set */
static void dblp_tsq_freed(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);
	u32 max;

	/* The buffer was subtracted. Pairs with smp_mb() in dblp_tsq_full() */
	smp_mb__after_atomic();
	max = READ_ONCE(dsk->tsq.max);
	if ((!max || dblp_tsq_queued(dsk) > max + 1) && !dblp_tsq_writable(dsk))
		return;
	if (test_and_set_bit(DBLP_TSQ_QUEUED, &dsk->deferred))
		return;
	refcount_inc(&sk->sk_wmem_alloc);
	tasklet_schedule(&dsk->tsq.tasklet);
}

static void dblp_tsq_run(struct tasklet_struct *t)
{
	struct dblp_sock *dsk = container_of(t, struct dblp_sock,
					      tsq.tasklet);

	clear_bit(DBLP_TSQ_QUEUED, &dsk->deferred);
	/* A buffer freed from here on schedules the tasklet again */
	smp_mb__after_atomic();
	dblp_defer(dsk, DBLP_DEFER_TSQ);
	sk_free(&dsk->sk);
}

/** dblp_tsq_init() - initialize a socket that has sent nothing yet */
void dblp_tsq_init(struct dblp_sock *dsk)
{
	tasklet_setup(&dsk->tsq.tasklet, dblp_tsq_run);
	dsk->sk.sk_write_space = dblp_tsq_freed;
}
