// SPDX-License-Identifier: GPL-2.0-only
/*
 * States of a connection: established, closing, closed; close(), abort, orphan.
 */
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <net/proto_memory.h>

#include "dblp.h"
#include "trace.h"

/**
 * dblp_conn_start() - prepare a socket for a connection
 * @dsk: socket with a path
 * @gfp: allocation flags
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_conn_start(struct dblp_sock *dsk, gfp_t gfp)
{
	u64 window = min_t(u64, READ_ONCE(dsk->sk.sk_rcvbuf) / 2, DBLP_MSG_MAX);
	int err;

	err = dblp_ring_init(dsk, gfp);
	if (err)
		return err;

	/* The hash also sets the IPv6 flow label: see dblp_path_timeout() */
	sk_set_txhash(&dsk->sk);
	dsk->arrival_epoch = get_random_u32();
	dsk->rx.window_max = max_t(u32, window, DBLP_WINDOW_MIN);
	dsk->rx.window = dblp_first_credit(dsk);
	dsk->rx.data_limit = dsk->rx.window;
	dsk->rx.id_limit = DBLP_MSG_WINDOW;
	dsk->rx.len_max = dsk->opt.placement ? DBLP_MSG_MAX :
					   dsk->rx.window_max - DBLP_MSG_COST;
	return 0;
}

/**
 * dblp_set_state() - change the state of a connection
 * @dsk: socket
 * @state: &enum dblp_state
 * @err: positive errno that ends the connection, or 0
 */
void dblp_set_state(struct dblp_sock *dsk, u8 state, int err)
{
	sock_owned_by_me(&dsk->sk);
	trace_dblp_conn_state(dsk, state, err);
	dsk->state = state;
}

/**
 * dblp_conn_established() - enter state ESTABLISHED after the handshake
 * @dsk: socket
 * @p: parameters of the peer
 * @rtt: round-trip time of the handshake in nanoseconds, 0 if unknown
 */
void dblp_conn_established(struct dblp_sock *dsk, const struct dblp_params *p,
			   u64 rtt)
{
	const struct dblp_cc_ops *ops = dsk->cc.ops;
	u64 now = ktime_get_ns();
	u32 mss;

	sock_owned_by_me(&dsk->sk);
	/* @hs, the handshake of a client, used this memory until now */
	memset(&dsk->rtt, 0, sizeof(dsk->rtt));
	dsk->tx.cap = p->cap;
	dsk->tx.id_limit = p->max_msg;
	dsk->tx.data_limit = p->max_data;
	dsk->tx.len_max = p->msg_max;
	dsk->tx.window = p->window;
	dblp_set_state(dsk, DBLP_STATE_ESTABLISHED, 0);
	dsk->sk.sk_state = TCP_ESTABLISHED;
	dsk->due.handshake = 0;
	dsk->tx.progress = now;

	mss = dblp_mss(dsk, NULL);
	dblp_cc_start(&dsk->cc, ops, mss, now);
	if (rtt)
		dblp_rtt_sample(&dsk->rtt, rtt, 0, now);
	dblp_keepalive_set(dsk);
	dblp_timer_update(dsk);
	dblp_event_conn_begin(dsk);
}

/**
 * dblp_wait_connected() - wait until an attempt to connect ends
 * @dsk: socket, locked
 * @timeo: maximum wait in jiffies
 *
 * Return: 0 if connected, else a negative errno.
 */
int dblp_wait_connected(struct dblp_sock *dsk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	int err = 0;

	sock_owned_by_me(&dsk->sk);
	add_wait_queue(sk_sleep(sk), &wait);
	while (dblp_connecting(dsk)) {
		err = timeo ? 0 : -EAGAIN;
		if (!err && signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err)
			break;
		sk_wait_event(sk, &timeo, !dblp_connecting(dsk), &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	if (err)
		return err;
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return sock_error(sk) ?: -ECONNABORTED;
	return 0;
}

/* WRITE_ONCE(), because some readers of @ep do not own the socket */
static void dblp_leave_endpoint(struct dblp_sock *dsk)
{
	struct dblp_endpoint *ep = dsk->ep;

	WRITE_ONCE(dsk->ep, NULL);
	if (ep)
		dblp_endpoint_put(ep);
}

/**
 * dblp_handshake_reset() - return to the state before the first INIT
 * @dsk: socket of a client, during or after its handshake
 */
void dblp_handshake_reset(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dblp_conn_unhash(dsk);
	dsk->cid = 0;
	dsk->peer_key.cid = 0;
	dsk->features = 0;
	memset(&dsk->hs, 0, sizeof(dsk->hs));
	dblp_auth_reset(dsk);
}

/**
 * dblp_conn_unstart() - reset a socket after a failed connect() or listen()
 * @dsk: socket
 *
 * Restores the state before the call. The next call chooses IP version, address
 * and port again, unless bind() has set them. Measurements of the path to one
 * peer must not be used for another.
 */
void dblp_conn_unstart(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->bound.sdblp_port)
		dblp_leave_endpoint(dsk);
	dsk->local = dsk->bound;
	dblp_handshake_reset(dsk);
	dblp_ring_free(dsk);
	memset(&dsk->attempt, 0, sizeof(dsk->attempt));
	memset(&dsk->rx.limits, 0, sizeof(dsk->rx.limits));
	if (dsk->sk.sk_socket)
		dsk->sk.sk_socket->state = SS_UNCONNECTED;
	clear_bit(DBLP_DEFER_MTU, &dsk->deferred);
	sk_dst_reset(&dsk->sk);
	WRITE_ONCE(dsk->sk.sk_err_soft, 0);
}

/*
 * Orphans: connections that the user has closed, with messages left to deliver.
 *
 * No process waits for an orphan or can free its memory. A peer keeps an orphan
 * alive only by progress, of which there is a finite amount: segments
 * acknowledged for the first time, and messages settled. The number of orphans
 * per namespace is limited. When memory for sockets is nearly used up, orphans
 * without progress are aborted.
 */

/*
 * Interval of checks for progress. It need not depend on the path: it is the
 * precision of dblp_user_timeout(), which ends orphans, and the delay until a
 * shortage of memory is noticed.
 */
#define DBLP_ORPHAN_CHECK_NS	((u64)NSEC_PER_SEC)

static void dblp_orphan_check_again(struct dblp_sock *dsk, u64 now)
{
	dsk->due.orphan = now + min_t(u64, dblp_user_timeout(dsk),
				      DBLP_ORPHAN_CHECK_NS);
}

/* Make an orphan of a closed socket, whose connection is in state CLOSING */
static void dblp_orphan_begin(struct dblp_sock *dsk)
{
	int most = READ_ONCE(dsk->dn->sysctl_max_orphans);
	u64 now = ktime_get_ns();

	dsk->is_orphan = true;
	if (atomic_inc_return(&dsk->dn->orphans) > most) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANTOOMANY);
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		return;
	}
	dsk->orphan.moved = dsk->tx.moved;
	dsk->orphan.since = now;
	dblp_orphan_check_again(dsk, now);
	dblp_timer_update(dsk);
}

/* Is memory at least halfway from the pressure threshold to the hard limit? */
static bool dblp_orphan_memory_short(const struct dblp_sock *dsk)
{
	const struct sock *sk = &dsk->sk;

	return sk->sk_wmem_queued > SOCK_MIN_SNDBUF &&
	       sk_memory_allocated(sk) > (sk_prot_mem_limits(sk, 1) +
					  sk_prot_mem_limits(sk, 2)) / 2;
}

/**
 * dblp_orphan_check() - check an orphan for progress
 * @dsk: socket; the caller has a reference besides the socket's own, or RCU
 * @now: the time
 */
void dblp_orphan_check(struct dblp_sock *dsk, u64 now)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->orphan.moved != dsk->tx.moved) {
		dsk->orphan.moved = dsk->tx.moved;
		dsk->orphan.since = now;
	} else if (now - dsk->orphan.since >= dblp_user_timeout(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANTIMEOUT);
		dblp_abort(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
		return;
	} else if (dblp_orphan_memory_short(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ORPHANMEMORY);
		dblp_abort(dsk, DBLP_RST_CLOSED, ENOBUFS);
		return;
	}
	dblp_orphan_check_again(dsk, now);
}

/* Hide a socket from all lookups, and drop its own reference */
static void dblp_sock_release(struct dblp_sock *dsk)
{
	if (dsk->is_orphan)
		atomic_dec(&dsk->dn->orphans);
	dsk->is_orphan = false;
	dblp_leave_config(dsk);
	dblp_sock_unnumber(dsk);
	/* Free the port as soon as the socket is closed */
	dblp_leave_endpoint(dsk);
	sock_put(&dsk->sk);
}

/*
 * Do all deferred work at once, because users see its results after the end of
 * the connection. dblp_rx_deliver() sets an error if a message lacks pieces.
 */
static void dblp_work_finish(struct dblp_sock *dsk)
{
	dblp_rx_deliver(dsk, U32_MAX);
	dblp_tx_settle(dsk, U32_MAX);
	dsk->due.work = 0;
}

/**
 * dblp_done() - end a connection
 * @dsk: socket; the caller has a reference besides the socket's own
 * @err: positive errno for the user, or 0
 *
 * Delivered messages stay readable.
 */
void dblp_done(struct dblp_sock *dsk, int err)
{
	bool connecting = dblp_connecting(dsk);
	struct sock *sk = &dsk->sk;
	u8 state = dsk->state;

	sock_owned_by_me(&dsk->sk);
	if (state == DBLP_STATE_CLOSED)
		return;

	dblp_conn_unhash(dsk);
	dblp_work_finish(dsk);
	err = err ?: dsk->end_err;
	dblp_set_state(dsk, DBLP_STATE_CLOSED, err);
	dsk->due = (struct dblp_sock_due) { .armed = dsk->due.armed };
	dsk->sent.loss_time = 0;
	dblp_timer_update(dsk);
	dblp_ctl_purge(dsk);
	dblp_tx_purge(dsk);
	dblp_txbuf_drop_cache(dsk);
	dblp_ring_free(dsk);
	dblp_rx_purge_open(dsk);

	sk->sk_state = TCP_CLOSE;
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (err)
		WRITE_ONCE(sk->sk_err, err);
	dblp_event_conn_end(dsk, state, err);
	if (connecting)
		dblp_conn_unstart(dsk);
	if (sock_flag(sk, SOCK_DEAD)) {
		dblp_sock_release(dsk);
		return;
	}
	sk->sk_state_change(sk);
	if (err)
		sk_error_report(sk);
}

/**
 * dblp_rst_errno() - errno of a received RST
 * @dsk: socket
 * @reason: &enum dblp_rst_reason
 *
 * Return: a negative errno, or 0 if all messages had been delivered.
 */
int dblp_rst_errno(const struct dblp_sock *dsk, u32 reason)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return reason == DBLP_RST_AUTH ? -EKEYREJECTED :
		       reason == DBLP_RST_SPRAY ? -EMLINK : -ECONNREFUSED;
	/* All messages of both ends have been delivered */
	if (dblp_rx_ended(dsk) && list_empty(&dsk->tx.msgs))
		return 0;
	return reason == DBLP_RST_PROTOCOL ? -EPROTO : -ECONNRESET;
}

/** dblp_peer_gone() - end a connection that the peer has reset or refused */
void dblp_peer_gone(struct dblp_sock *dsk, u32 reason)
{
	sock_owned_by_me(&dsk->sk);
	DBLP_INC_SK_STATS(dsk, dblp_connecting(dsk) ? DBLP_MIB_CONNREFUSED :
						      DBLP_MIB_CONNRESET);
	/* Deliver first: dblp_rst_errno() checks for undelivered messages */
	dblp_work_finish(dsk);
	dblp_done(dsk, -dblp_rst_errno(dsk, reason));
}

/**
 * dblp_abort() - end a connection, and reset it at the peer
 * @dsk: socket, see dblp_done()
 * @reason: for the peer
 * @err: positive errno for the user
 */
void dblp_abort(struct dblp_sock *dsk, enum dblp_rst_reason reason, int err)
{
	sock_owned_by_me(&dsk->sk);
	dblp_send_rst(dsk, reason);
	dblp_done(dsk, err);
}

/**
 * dblp_flush() - send all that may be sent now; may end the connection
 * @dsk: socket; the caller has a reference besides the socket's own
 *
 * Code that processes or sends packets calls dblp_end() if the connection must
 * end. dblp_flush() ends it, when no caller uses the state any more.
 */
void dblp_flush(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dblp_push(dsk);
	if (dsk->end_reason)
		dblp_abort(dsk, dsk->end_reason, dsk->end_err);
}

/**
 * dblp_check_closing() - end a closed connection that has nothing left to do
 * @dsk: socket
 *
 * After close(), a connection exists until all messages are settled, and the
 * peer has acknowledged the FIN and all other control frames. Later packets are
 * answered with a RST, which is safe because connection IDs are not reused.
 */
void dblp_check_closing(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_CLOSING && dsk->tx.fin_acked &&
	    list_empty(&dsk->tx.msgs) && list_empty(&dsk->tx.settled) &&
	    !dblp_ctl_owed(dsk))
		dblp_done(dsk, 0);
}

/**
 * dblp_stop_listening() - stop accepting connections
 * @dsk: listener, locked; its children that are not accepted are aborted
 *
 * Netlink may own a child, so lock_sock() is necessary: disabling softirqs does
 * not suffice.
 *
 * Context: process.
 */
void dblp_stop_listening(struct dblp_sock *dsk)
{
	struct dblp_sock *child, *tmp;

	sock_owned_by_me(&dsk->sk);
	RCU_INIT_POINTER(dsk->ep->listener, NULL);
	list_for_each_entry_safe(child, tmp, &dsk->accept, accept) {
		list_del_init(&child->accept);
		sk_acceptq_removed(&dsk->sk);
		sock_hold(&child->sk);
		lock_sock_nested(&child->sk, SINGLE_DEPTH_NESTING);
		sock_set_flag(&child->sk, SOCK_DEAD);
		if (child->state == DBLP_STATE_CLOSED)
			dblp_sock_release(child);
		else
			dblp_abort(child, DBLP_RST_CLOSED, 0);
		release_sock(&child->sk);
		sock_put(&child->sk);
	}
	dblp_set_state(dsk, DBLP_STATE_CLOSED, 0);
	dsk->sk.sk_state = TCP_CLOSE;
	dsk->sk.sk_state_change(&dsk->sk);
}

/* Queue a FIN: no more messages will follow */
static void dblp_queue_fin(struct dblp_sock *dsk)
{
	dblp_ctl_add(dsk, DBLP_FRAME_FIN);
	dsk->tx.fin_queued = 1;
	dsk->tx.fin_acked = 0;
}

/*
 * Does a FIN sent earlier suffice for close()? A FIN shares its packet with an
 * ACK. Packets received after an earlier FIN may not be acknowledged yet, and
 * will not be after the end of the connection.
 */
static bool dblp_fin_suffices(const struct dblp_sock *dsk)
{
	return dsk->tx.fin_queued && dblp_rx_ended(dsk) && !dsk->acks.pending;
}

/**
 * dblp_shut_sending() - send no more messages; may end the connection
 * @dsk: connected socket; the caller has a reference besides the socket's own
 *
 * If only some pieces of a message were queued, the peer gets the messages
 * before it, and then an error.
 */
void dblp_shut_sending(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(sk);
	if (!dsk->tx.fin_queued)
		dblp_queue_fin(dsk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SEND_SHUTDOWN);
	sk->sk_state_change(sk);
	dblp_flush(dsk);
}

/* Queue a FIN and enter state CLOSING, or abort the connection */
static void dblp_begin_closing(struct dblp_sock *dsk, bool abort)
{
	if (abort) {
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		return;
	}
	if (!dblp_fin_suffices(dsk))
		dblp_queue_fin(dsk);
	dblp_set_state(dsk, DBLP_STATE_CLOSING, 0);
	dblp_flush(dsk);
	dblp_check_closing(dsk);
}

/* SO_LINGER: wait in close() until the connection has ended */
static void dblp_linger(struct dblp_sock *dsk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;

	add_wait_queue(sk_sleep(sk), &wait);
	while (timeo && dsk->state == DBLP_STATE_CLOSING &&
	       !signal_pending(current))
		sk_wait_event(sk, &timeo, dsk->state != DBLP_STATE_CLOSING,
			      &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
}

/**
 * dblp_close() - process close() of a socket
 * @dsk: socket, locked; the caller has a reference besides the socket's own
 *
 * As in other families, an exiting process does not linger.
 */
void dblp_close(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;
	bool linger = sock_flag(sk, SOCK_LINGER);
	bool unread = !list_empty(&dsk->rx.ready) ||
		      dblp_rx_any_open(dsk) || dsk->rx.placed;

	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_LISTEN)
		dblp_stop_listening(dsk);
	dblp_rx_purge(dsk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (dsk->state == DBLP_STATE_ESTABLISHED)
		dblp_begin_closing(dsk, unread || (linger &&
						   !sk->sk_lingertime));
	if (linger && !(current->flags & PF_EXITING))
		dblp_linger(dsk, sk->sk_lingertime);

	dblp_tx_purge_reports(dsk);
	/* The reservation of SO_RESERVE_MEM ends with close() */
	sk_mem_reclaim_final(sk);
	sock_orphan(sk);
	if (dsk->state == DBLP_STATE_CLOSED)
		dblp_sock_release(dsk);
	else if (dsk->state == DBLP_STATE_CLOSING)
		dblp_orphan_begin(dsk);
	else
		dblp_done(dsk, 0);
}
