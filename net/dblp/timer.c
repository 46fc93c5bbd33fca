// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer of a socket: when is something due? What is done then: timeout.c.
 *
 * Keepalive: a connection on which nothing is under way sends nothing and has no
 * timer, so it never notices that its peer has gone. With SO_KEEPALIVE it asks by a
 * PING when the peer was not heard for DBLP_KEEPALIVE. From then on that PING
 * is something that waits to be acknowledged like anything else: it is repeated
 * by probe timeouts and the user timeout ends the connection.
 */
#include "dblp.h"

/* A connection is asked no sooner than this after it was looked at */
#define DBLP_KEEPALIVE_SOON_NS	((u64)DBLP_KEEPALIVE_MIN_MS * NSEC_PER_MSEC)

static enum hrtimer_restart dblp_timer_expired(struct hrtimer *timer)
{
	struct dblp_sock *dsk = container_of(timer, struct dblp_sock, timer);
	struct sock *sk = &dsk->sk;

	/* The socket may come to its end here, but is not freed before that */
	rcu_read_lock();
	bh_lock_sock(sk);
	set_bit(DBLP_DEFER_TIMER, &dsk->deferred);
	if (!sock_owned_by_user(sk))
		sk->sk_prot->release_cb(sk);
	bh_unlock_sock(sk);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

void dblp_timer_init(struct dblp_sock *dsk)
{
	hrtimer_setup(&dsk->timer, dblp_timer_expired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

/**
 * dblp_timer_update() - have the timer expire when something is due next
 * @dsk: socket
 *
 * A timer that would expire too early, or for nothing, is left alone: it looks
 * again then. So a busy connection does not restart it with every packet.
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
	at = dblp_earliest(at, dsk->chunk_cache_at);
	at = dblp_earliest(at, dsk->orphan_at);
	if (!at || (dsk->timer_at && dsk->timer_at <= at))
		return;

	dsk->timer_at = at;
	hrtimer_start(&dsk->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/** dblp_work_soon() - there is something for dblp_work() */
void dblp_work_soon(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->work_at = dblp_earliest(dsk->work_at, ktime_get_ns());
}

/**
 * dblp_last_heard() - when the peer last sent something that counts
 * @dsk: connection
 *
 * Return: the time, or that when we began to wait for it.
 */
u64 dblp_last_heard(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return max(dsk->progress, dsk->largest_at);
}

/**
 * dblp_patience() - how long a peer may keep silent, in nanoseconds
 * @dsk: socket
 *
 * When all messages have arrived and only the peer's farewell is missing, there
 * is little to wait for.
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
 * dblp_keepalive_set() - decide when an idle connection asks its peer
 * @dsk: connection with nothing in flight; the caller updates the timer
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
 * @on: what it becomes
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
 * @ms: idle time
 */
void dblp_keepalive_tune(struct dblp_sock *dsk, u32 ms)
{
	sock_owned_by_me(&dsk->sk);
	dsk->keepalive_ms = ms;
	dblp_keepalive(&dsk->sk, sock_flag(&dsk->sk, SOCK_KEEPOPEN));
}
