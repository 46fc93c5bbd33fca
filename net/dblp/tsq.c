// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small queues, as TCP has them: few buffers of a socket wait in the queues of
 * this machine.
 *
 * What waits there is a standing queue that no other host sees, behind which
 * our ACKs wait, too. So a socket passes on no more while two full packets are
 * there, or what the pacer sends in the time in which devices tell that packets
 * have left: 2^-sk_pacing_shift seconds, which is the kernel's, and which
 * drivers change. It sends on when one has left. If a queue is full of others',
 * and has refused one, it sends on when an ACK shows that it passes on packets.
 *
 * A buffer is owned by its socket until it leaves, also in pieces, if a queue
 * segments it: only those that sock_wfree() frees are. It calls
 * sk_write_space(), in any context, with any lock held, while the socket may be
 * owned, so a tasklet does the work.
 */
#include "dblp.h"

/* Truesize of buffers of this socket that have not left, plus 1 */
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
 * dblp_tsq_full() - do queues of this machine take no more from a socket for now?
 * @dsk: socket
 * @mss: the largest packet
 *
 * With nothing in flight it may send anyway: no device that keeps buffers stops
 * a connection.
 *
 * Return: if so, true, and dblp_push() will be called when one has left, or an
 * ACK has come.
 */
bool dblp_tsq_full(struct dblp_sock *dsk, u32 mss)
{
	u32 max = dblp_tsq_max(dsk, mss);

	sock_owned_by_me(&dsk->sk);
	if (!dsk->sent.inflight_pkts)
		return false;
	if (dsk->refused)
		return true;
	if (dblp_tsq_queued(dsk) <= max)
		return false;
	WRITE_ONCE(dsk->tsq_max, max);
	/* Pairs with the barrier in dblp_tsq_freed() */
	smp_mb();
	return dblp_tsq_queued(dsk) > max;
}

/* SO_SNDBUF may be larger: all else that makes room does so under the lock */
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

/* A buffer has left, sock_wfree() keeps 1 of it; or SO_SNDBUF was set */
static void dblp_tsq_freed(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);
	u32 max;

	/* The buffer was subtracted. Pairs with smp_mb() in dblp_tsq_full() */
	smp_mb__after_atomic();
	max = READ_ONCE(dsk->tsq_max);
	if ((!max || dblp_tsq_queued(dsk) > max + 1) && !dblp_tsq_writable(dsk))
		return;
	if (test_and_set_bit(DBLP_TSQ_QUEUED, &dsk->deferred))
		return;
	refcount_inc(&sk->sk_wmem_alloc);
	tasklet_schedule(&dsk->tsq_tasklet);
}

static void dblp_tsq_run(struct tasklet_struct *t)
{
	struct dblp_sock *dsk = container_of(t, struct dblp_sock, tsq_tasklet);

	clear_bit(DBLP_TSQ_QUEUED, &dsk->deferred);
	/* What is freed from here on queues it again */
	smp_mb__after_atomic();
	dblp_defer(dsk, DBLP_DEFER_TSQ);
	sk_free(&dsk->sk);
}

/** dblp_tsq_init() - of a socket that sends nothing yet */
void dblp_tsq_init(struct dblp_sock *dsk)
{
	tasklet_setup(&dsk->tsq_tasklet, dblp_tsq_run);
	dsk->sk.sk_write_space = dblp_tsq_freed;
}
