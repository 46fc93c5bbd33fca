// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer of a socket, which expires at the earliest deadline. timeout.c
 * handles expired deadlines.
 *
 * Keepalive: an idle connection sends nothing and has no timer, so it would
 * never detect that its peer is unreachable. With SO_KEEPALIVE it sends a PING
 * when it has received nothing for DBLP_KEEPALIVE. The PING must be
 * acknowledged like any other frame: probe timeouts repeat it, and the user
 * timeout ends the connection.
 */
#include "dblp.h"

/* Least time from setting the keepalive deadline to its expiry */
#define DBLP_KEEPALIVE_SOON_NS	((u64)DBLP_KEEPALIVE_MIN_MS * NSEC_PER_MSEC)

/**
 * dblp_defer() - do work of dblp_release_cb() now, or on release_sock()
 * @dsk: socket
 * @what: the work
 *
 * Context: softirq; the caller has a reference in addition to the socket's own,
 * or is under RCU.
 */
void dblp_defer(struct dblp_sock *dsk, enum dblp_deferred what)
{
	struct sock *sk = &dsk->sk;

	bh_lock_sock(sk);
	set_bit(what, &dsk->deferred);
	if (!sock_owned_by_user(sk))
		sk->sk_prot->release_cb(sk);
	bh_unlock_sock(sk);
}

static enum hrtimer_restart dblp_timer_expired(struct hrtimer *timer)
{
	struct dblp_sock *dsk = container_of(timer, struct dblp_sock, timer);

	/* The last reference may be dropped here; RCU delays the free */
	rcu_read_lock();
	dblp_defer(dsk, DBLP_DEFER_TIMER);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

void dblp_timer_init(struct dblp_sock *dsk)
{
	hrtimer_setup(&dsk->timer, dblp_timer_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

/**
 * dblp_timer_update() - arm the timer for the earliest deadline
 * @dsk: socket
 *
 * A timer that expires before the earliest deadline is not changed; it is armed
 * again on expiry. So a busy connection does not restart it with every packet.
 */
void dblp_timer_update(struct dblp_sock *dsk)
{
	u64 at;

	sock_owned_by_me(&dsk->sk);
	at = dblp_earliest(dsk->due.handshake, dsk->due.pace);
	at = dblp_earliest(at, dsk->sent.loss_time);
	at = dblp_earliest(at, dsk->due.pto);
	at = dblp_earliest(at, dsk->due.ack);
	at = dblp_earliest(at, dsk->due.keepalive);
	at = dblp_earliest(at, dsk->due.work);
	at = dblp_earliest(at, dsk->due.spare);
	at = dblp_earliest(at, dsk->due.orphan);
	at = dblp_earliest(at, dsk->due.charge);
	if (!at || (dsk->due.armed && dsk->due.armed <= at))
		return;

	dsk->due.armed = at;
	hrtimer_start(&dsk->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/** dblp_work_soon() - schedule dblp_work() */
void dblp_work_soon(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->due.work = dblp_earliest(dsk->due.work, ktime_get_ns());
}

/**
 * dblp_last_received() - when a packet of the peer was last received
 * @dsk: connection
 *
 * Return: time of the last packet or acknowledgment from the peer, or since
 * when one is awaited, if that is later.
 */
u64 dblp_last_received(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return max(dsk->tx.progress, dsk->acks.largest_at);
}

/**
 * dblp_user_timeout() - user timeout in force, in nanoseconds
 * @dsk: socket
 *
 * After close() it is at most DBLP_CLOSE_TIMEOUT_MS, or DBLP_CLOSE_PROBES probe
 * timeouts if these are longer, once all messages are settled and only control
 * frames, such as FIN, are not acknowledged.
 */
u64 dblp_user_timeout(const struct dblp_sock *dsk)
{
	u64 own = (u64)dsk->opt.user_timeout_ms * NSEC_PER_MSEC, most;

	sock_owned_by_me(&dsk->sk);
	if (dsk->state != DBLP_STATE_CLOSING || !list_empty(&dsk->tx.msgs))
		return own;
	most = max_t(u64, (u64)DBLP_CLOSE_TIMEOUT_MS * NSEC_PER_MSEC,
		     DBLP_CLOSE_PROBES *
		     dblp_pto(&dsk->rtt, DBLP_ACK_DELAY_NS, 0));
	return min(own, most);
}

/**
 * dblp_keepalive_set() - set the keepalive deadline of an idle connection
 * @dsk: connection with no packet in flight; the caller updates the timer
 */
void dblp_keepalive_set(struct dblp_sock *dsk)
{
	u64 at;

	sock_owned_by_me(&dsk->sk);
	dsk->due.keepalive = 0;
	if (!sock_flag(&dsk->sk, SOCK_KEEPOPEN) ||
	    dsk->state != DBLP_STATE_ESTABLISHED)
		return;
	at = dblp_last_received(dsk) +
	     (u64)dsk->opt.keepalive_ms * NSEC_PER_MSEC;
	dsk->due.keepalive = max(at, ktime_get_ns() + DBLP_KEEPALIVE_SOON_NS);
}

/**
 * dblp_keepalive() - setsockopt(SO_KEEPALIVE)
 * @sk: socket, locked
 * @on: new value
 */
void dblp_keepalive(struct sock *sk, int on)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	sock_owned_by_me(sk);
	sock_valbool_flag(sk, SOCK_KEEPOPEN, on);
	if (dsk->sent.inflight_pkts || dsk->state != DBLP_STATE_ESTABLISHED)
		return;
	dblp_keepalive_set(dsk);
	dblp_timer_update(dsk);
}

/**
 * dblp_keepalive_tune() - setsockopt(DBLP_KEEPALIVE)
 * @dsk: socket, locked
 * @ms: idle time, milliseconds
 */
void dblp_keepalive_tune(struct dblp_sock *dsk, u32 ms)
{
	sock_owned_by_me(&dsk->sk);
	dsk->opt.keepalive_ms = ms;
	dblp_keepalive(&dsk->sk, sock_flag(&dsk->sk, SOCK_KEEPOPEN));
}
