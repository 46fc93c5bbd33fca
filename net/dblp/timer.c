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
	at = dblp_earliest(dsk->handshake_at, dsk->pace_at);
	at = dblp_earliest(at, dsk->sent.loss_time);
	at = dblp_earliest(at, dsk->pto_at);
	at = dblp_earliest(at, dsk->ack_at);
	at = dblp_earliest(at, dsk->keepalive_at);
	at = dblp_earliest(at, dsk->work_at);
	at = dblp_earliest(at, dsk->spare_at);
	at = dblp_earliest(at, dsk->orphan_at);
	at = dblp_earliest(at, dsk->refused_until);
	if (!at || (dsk->timer_at && dsk->timer_at <= at))
		return;

	dsk->timer_at = at;
	hrtimer_start(&dsk->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/** dblp_work_soon() - schedule dblp_work() */
void dblp_work_soon(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->work_at = dblp_earliest(dsk->work_at, ktime_get_ns());
}

/**
 * dblp_last_heard() - when the peer was last heard
 * @dsk: connection
 *
 * Return: time of the last packet or acknowledgment from the peer, or since
 * when one is awaited, if that is later.
 */
u64 dblp_last_heard(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return max(dsk->progress, dsk->largest_at);
}

/**
 * dblp_patience() - user timeout in force, in nanoseconds
 * @dsk: socket
 *
 * After close() it is at most DBLP_FAREWELL_MS once all messages are settled
 * and only control frames, such as FIN, are not acknowledged.
 */
u64 dblp_patience(const struct dblp_sock *dsk)
{
	u32 ms = dsk->user_timeout_ms;

	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_CLOSING && list_empty(&dsk->tx_msgs))
		ms = min_t(u32, ms, DBLP_FAREWELL_MS);
	return (u64)ms * NSEC_PER_MSEC;
}

/**
 * dblp_keepalive_set() - set the keepalive deadline of an idle connection
 * @dsk: connection with no packet in flight; the caller updates the timer
 */
void dblp_keepalive_set(struct dblp_sock *dsk)
{
	u64 at;

	sock_owned_by_me(&dsk->sk);
	dsk->keepalive_at = 0;
	if (!sock_flag(&dsk->sk, SOCK_KEEPOPEN) ||
	    dsk->state != DBLP_STATE_ESTABLISHED)
		return;
	at = dblp_last_heard(dsk) + (u64)dsk->keepalive_ms * NSEC_PER_MSEC;
	dsk->keepalive_at = max(at, ktime_get_ns() + DBLP_KEEPALIVE_SOON_NS);
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
	dsk->keepalive_ms = ms;
	dblp_keepalive(&dsk->sk, sock_flag(&dsk->sk, SOCK_KEEPOPEN));
}
