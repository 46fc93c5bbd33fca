// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keepalive: is the peer of an idle connection alive?
 *
 * A connection on which nothing is under way sends nothing and has no timer,
 * so it never notices that its peer has gone. With SO_KEEPALIVE it asks by a
 * PING when the peer was not heard for DBLP_KEEPALIVE. From then on that PING
 * is something that waits to be acknowledged like anything else: it is repeated
 * by probe timeouts and the user timeout ends the connection.
 */
#include "dblp.h"

/* A connection is asked no sooner than this after it was looked at */
#define DBLP_KEEPALIVE_SOON_NS	((u64)DBLP_KEEPALIVE_MIN_MS * NSEC_PER_MSEC)

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
 * dblp_keepalive_expired() - ask the peer
 * @dsk: connection; the caller pushes
 */
void dblp_keepalive_expired(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->keepalive_at = 0;
	dblp_ctl_add(dsk, DBLP_FRAME_PING);
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_KEEPALIVESENT);
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
