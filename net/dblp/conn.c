// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections and sockets as objects: their tables, the timer, how they end,
 * and what netlink may see of them.
 */
#include "dblp.h"
#include "trace.h"

static const struct rhashtable_params dblp_conns_params = {
	.key_len		= sizeof(u64),
	.key_offset		= offsetof(struct dblp_sock, cid),
	.head_offset		= offsetof(struct dblp_sock, conn_node),
	.automatic_shrinking	= true,
};

static const struct rhashtable_params dblp_peers_params = {
	.key_len		= sizeof(struct dblp_peer_key),
	.key_offset		= offsetof(struct dblp_sock, peer_key),
	.head_offset		= offsetof(struct dblp_sock, peer_node),
	.automatic_shrinking	= true,
};

int dblp_conns_init(struct dblp_net *dn)
{
	int err;

	err = rhashtable_init(&dn->conns, &dblp_conns_params);
	if (err)
		return err;
	err = rhashtable_init(&dn->peers, &dblp_peers_params);
	if (err)
		goto err_conns;
	xa_init_flags(&dn->socks, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	return 0;

err_conns:
	rhashtable_destroy(&dn->conns);
	return err;
}

void dblp_conns_exit(struct dblp_net *dn)
{
	WARN_ON_ONCE(!xa_empty(&dn->socks));
	xa_destroy(&dn->socks);
	rhashtable_destroy(&dn->peers);
	rhashtable_destroy(&dn->conns);
}

/**
 * dblp_conn_find() - connection by the ID that its packets are sent to
 * @net: namespace
 * @cid: our connection ID
 *
 * Return: the connection with a reference, or NULL.
 */
struct dblp_sock *dblp_conn_find(struct net *net, u64 cid)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = rhashtable_lookup(&dn->conns, &cid, dblp_conns_params);
	if (dsk && !refcount_inc_not_zero(&dsk->sk.sk_refcnt))
		dsk = NULL;
	rcu_read_unlock();
	return dsk;
}

/**
 * dblp_conn_find_peer() - connection by its other end
 * @net: namespace
 * @key: connection ID and address of the other end
 *
 * Return: the connection with a reference, or NULL.
 */
struct dblp_sock *dblp_conn_find_peer(struct net *net,
				      const struct dblp_peer_key *key)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = rhashtable_lookup(&dn->peers, key, dblp_peers_params);
	if (dsk && !refcount_inc_not_zero(&dsk->sk.sk_refcnt))
		dsk = NULL;
	rcu_read_unlock();
	return dsk;
}

/**
 * dblp_conn_hash() - let packets find a connection
 * @dsk: socket with its connection ID set
 *
 * A client is in @peers only once it knows its peer's connection ID: it calls
 * this again then.
 *
 * Return: 0, -EEXIST if the ID is taken, or -ENOMEM.
 */
int dblp_conn_hash(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (!dsk->hashed) {
		err = rhashtable_lookup_insert_fast(&dn->conns,
						    &dsk->conn_node,
						    dblp_conns_params);
		if (err)
			return err;
		dsk->hashed = true;
	}
	if (!dsk->peer_key.cid || dsk->peer_hashed)
		return 0;

	err = rhashtable_lookup_insert_fast(&dn->peers, &dsk->peer_node,
					    dblp_peers_params);
	if (!err)
		dsk->peer_hashed = true;
	return err;
}

/** dblp_conn_unhash_peer() - the other end has no connection ID any more */
void dblp_conn_unhash_peer(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	sock_owned_by_me(&dsk->sk);
	if (dsk->peer_hashed)
		rhashtable_remove_fast(&dn->peers, &dsk->peer_node,
				       dblp_peers_params);
	dsk->peer_hashed = false;
}

/** dblp_conn_unhash() - no packet finds a connection any more */
void dblp_conn_unhash(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	sock_owned_by_me(&dsk->sk);
	dblp_conn_unhash_peer(dsk);
	if (dsk->hashed)
		rhashtable_remove_fast(&dn->conns, &dsk->conn_node,
				       dblp_conns_params);
	dsk->hashed = false;
}

/**
 * dblp_conn_start() - make a socket ready to be a connection
 * @dsk: socket with path and connection ID
 * @gfp: how to allocate
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

	/* The hash is an IPv6 flow label too: see dblp_path_timeout() */
	sk_set_txhash(&dsk->sk);
	dsk->rx_window = max_t(u64, window, DBLP_WINDOW_MIN);
	dsk->rx_max_data = dsk->rx_window;
	dsk->rx_max_msg = DBLP_MSG_WINDOW;
	dsk->rx_msg_max = dsk->placement ? DBLP_MSG_MAX :
					   dsk->rx_window - DBLP_MSG_COST;
	return 0;
}

/**
 * dblp_set_state() - where a connection has got
 * @dsk: socket
 * @state: &enum dblp_state
 * @err: positive errno that ends it so, or 0
 */
void dblp_set_state(struct dblp_sock *dsk, u8 state, int err)
{
	sock_owned_by_me(&dsk->sk);
	trace_dblp_conn_state(dsk, state, err);
	dsk->state = state;
}

/**
 * dblp_conn_established() - the handshake is over
 * @dsk: socket
 * @p: what the peer said of itself
 * @rtt: round trip in nanoseconds that the handshake took, 0 if unknown
 */
void dblp_conn_established(struct dblp_sock *dsk, const struct dblp_params *p,
			   u64 rtt)
{
	const struct dblp_cc_ops *ops = dsk->cc.ops;
	u64 now = ktime_get_ns();
	u32 mss;

	sock_owned_by_me(&dsk->sk);
	dsk->peer_cap = p->cap;
	dsk->peer_max_msg = p->max_msg;
	dsk->peer_max_data = p->max_data;
	dsk->peer_msg_max = p->msg_max;
	dsk->peer_window = p->max_data;
	dblp_set_state(dsk, DBLP_STATE_ESTABLISHED, 0);
	dsk->sk.sk_state = TCP_ESTABLISHED;
	dsk->handshake_at = 0;
	dsk->progress = now;

	mss = dblp_mss(dsk, NULL);
	dblp_cc_start(&dsk->cc, ops, mss, now);
	if (rtt)
		dblp_rtt_sample(&dsk->rtt, rtt, 0, now);
	dblp_keepalive_set(dsk);
	dblp_timer_update(dsk);
	dblp_event_conn_begin(dsk);
}

/* Whoever looks without being the owner of the socket sees it whole or not at all */
static void dblp_leave_endpoint(struct dblp_sock *dsk)
{
	struct dblp_endpoint *ep = dsk->ep;

	WRITE_ONCE(dsk->ep, NULL);
	if (ep)
		dblp_endpoint_put(ep);
}

/**
 * dblp_conn_unstart() - an attempt to connect has failed
 * @dsk: socket that no packet finds any more
 *
 * It is as before connect(): the next one chooses protocol, address and port
 * anew, but for what bind() has said, and nothing that was learnt on the way to
 * one peer is taken for true of another.
 */
void dblp_conn_unstart(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->bound.sdblp_port)
		dblp_leave_endpoint(dsk);
	dsk->local = dsk->bound;
	dsk->cid = 0;
	memset(&dsk->peer, 0, sizeof(dsk->peer));
	memset(&dsk->peer_key, 0, sizeof(dsk->peer_key));
	memset(&dsk->path, 0, sizeof(dsk->path));
	memset(&dsk->pmtu, 0, sizeof(dsk->pmtu));
	memset(&dsk->cookie, 0, sizeof(dsk->cookie));
	dsk->handshake_rtt = 0;
	dsk->stuck_since = 0;
	clear_bit(DBLP_DEFER_MTU, &dsk->deferred);
	dblp_ring_free(dsk);
	memset(&dsk->sent, 0, sizeof(dsk->sent));
	sk_dst_reset(&dsk->sk);
	WRITE_ONCE(dsk->sk.sk_err_soft, 0);
}

/* The socket's own reference is over: nobody can reach it by number now */
static void dblp_end_life(struct dblp_sock *dsk)
{
	dblp_orphan_end(dsk);
	dblp_leave_config(dsk);
	dblp_sock_unnumber(dsk);
	/* The port is free as soon as the socket is closed */
	dblp_leave_endpoint(dsk);
	sock_put(&dsk->sk);
}

/**
 * dblp_done() - a connection is over
 * @dsk: socket; the caller has a reference besides the socket's own
 * @err: positive errno for the user, 0 for none
 *
 * What was received stays readable.
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
	err = err ?: dsk->rx_broken;
	dblp_set_state(dsk, DBLP_STATE_CLOSED, err);
	dsk->handshake_at = 0;
	dsk->pace_at = 0;
	dsk->pto_at = 0;
	dsk->ack_at = 0;
	dsk->keepalive_at = 0;
	dsk->orphan_at = 0;
	dsk->sent.loss_time = 0;
	dblp_timer_update(dsk);
	dblp_ctl_purge(dsk);
	dblp_tx_purge(dsk);
	dblp_txbuf_forget_spares(dsk);
	dblp_rx_purge_open(dsk);

	sk->sk_state = TCP_CLOSE;
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (err)
		WRITE_ONCE(sk->sk_err, err);
	dblp_event_conn_end(dsk, state, err);
	if (connecting)
		dblp_conn_unstart(dsk);
	if (sock_flag(sk, SOCK_DEAD)) {
		dblp_end_life(dsk);
		return;
	}
	sk->sk_state_change(sk);
	if (err)
		sk_error_report(sk);
}

/**
 * dblp_abort() - end a connection and tell the peer
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
 * dblp_check_closing() - is a closed socket through with its duties?
 * @dsk: socket
 *
 * After close() a connection lives on until all messages are settled, the peer
 * knows what was closed with loss, and has acknowledged the FIN. What comes
 * later is answered by a RST, as connection IDs are never used twice.
 */
void dblp_check_closing(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state == DBLP_STATE_CLOSING && dsk->fin_acked &&
	    list_empty(&dsk->tx_msgs) && list_empty(&dsk->tx_settled) &&
	    !dblp_ctl_owed(dsk))
		dblp_done(dsk, 0);
}

/**
 * dblp_stop_listening() - a listener is one no more
 * @dsk: socket, locked; children that nobody has accepted are reset
 *
 * Netlink may have the lock of a child, so that to keep packets out is not
 * enough.
 *
 * Context: process.
 */
void dblp_stop_listening(struct dblp_sock *dsk)
{
	struct dblp_sock *child, *tmp;

	sock_owned_by_me(&dsk->sk);
	RCU_INIT_POINTER(dsk->ep->listener, NULL);
	list_for_each_entry_safe(child, tmp, &dsk->accept_queue, accept_node) {
		list_del_init(&child->accept_node);
		sk_acceptq_removed(&dsk->sk);
		sock_hold(&child->sk);
		lock_sock_nested(&child->sk, SINGLE_DEPTH_NESTING);
		sock_set_flag(&child->sk, SOCK_DEAD);
		if (child->state == DBLP_STATE_CLOSED)
			dblp_end_life(child);
		else
			dblp_abort(child, DBLP_RST_CLOSED, 0);
		release_sock(&child->sk);
		sock_put(&child->sk);
	}
	dblp_set_state(dsk, DBLP_STATE_CLOSED, 0);
	dsk->sk.sk_state = TCP_CLOSE;
	dsk->sk.sk_state_change(&dsk->sk);
}

/* Say farewell to the peer, or break off if there is something amiss */
static void dblp_begin_closing(struct dblp_sock *dsk, bool abort)
{
	if (abort) {
		dblp_abort(dsk, DBLP_RST_CLOSED, 0);
		return;
	}
	dblp_queue_fin(dsk);
	dblp_set_state(dsk, DBLP_STATE_CLOSING, 0);
	dblp_push(dsk);
	dblp_check_closing(dsk);
}

/* SO_LINGER: close() waits until nothing is left to be acknowledged */
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
 * dblp_close() - the user is gone
 * @dsk: socket, locked; the caller has a reference besides the socket's own
 *
 * A process that is killed does not linger, like with any other family.
 */
void dblp_close(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;
	bool linger = sock_flag(sk, SOCK_LINGER);
	bool unread = !list_empty(&dsk->rx_ready) ||
		      dblp_rx_any_open(dsk) || dsk->rx_placed;

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
	sock_orphan(sk);
	if (dsk->state == DBLP_STATE_CLOSED)
		dblp_end_life(dsk);
	else if (dsk->state == DBLP_STATE_CLOSING)
		dblp_orphan_begin(dsk);
	else
		dblp_done(dsk, 0);
}

/** dblp_queue_fin() - say that no more messages will come */
void dblp_queue_fin(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->fin_queued)
		dblp_ctl_add(dsk, DBLP_FRAME_FIN);
	dsk->fin_queued = 1;
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

static void dblp_pto_expired(struct dblp_sock *dsk, u64 now)
{
	if (!dsk->sent.inflight_pkts)
		dsk->progress = now;
	if (now - dsk->progress >= dblp_patience(dsk)) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_CONNTIMEOUT);
		dblp_abort(dsk, DBLP_RST_TIMEOUT, ETIMEDOUT);
		return;
	}
	if (!dblp_path_timeout(dsk))
		return;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_PTOEXPIRED);
	dsk->pto_count++;
	trace_dblp_pto(dsk);
	if (dsk->cc.ops->timeout)
		dsk->cc.ops->timeout(&dsk->cc, dsk->pto_count, now);
	dblp_probe(dsk, now);
}

static void dblp_timer_attend(struct dblp_sock *dsk, u64 now)
{
	if (dsk->handshake_at && now >= dsk->handshake_at)
		dblp_handshake_repeat(dsk, now);
	if (dsk->state == DBLP_STATE_CLOSED)
		return;
	if (dsk->sent.loss_time && now >= dsk->sent.loss_time)
		dblp_loss_expired(dsk, now);
	if (dsk->pto_at && now >= dsk->pto_at)
		dblp_pto_expired(dsk, now);
	if (dsk->orphan_at && now >= dsk->orphan_at)
		dblp_orphan_look(dsk, now);
	if (dsk->state == DBLP_STATE_CLOSED)
		return;
	if (dsk->ack_at && now >= dsk->ack_at)
		dblp_send_ack(dsk);
	if (dsk->keepalive_at && now >= dsk->keepalive_at)
		dblp_keepalive_expired(dsk);
	if (dsk->spare_at && now >= dsk->spare_at)
		dblp_txbuf_forget_spares(dsk);
	dblp_push(dsk);
	dblp_check_closing(dsk);
}

/* What is done in steps goes on when others have had as much time as this one took */
static u64 dblp_after_pause(u64 at, u64 since)
{
	u64 now = ktime_get_ns();

	return at && at <= now ? now + (now - since) : at;
}

/**
 * dblp_timer_run() - attend to everything that is due
 * @dsk: socket; the caller has a reference besides the socket's own, or RCU
 */
void dblp_timer_run(struct dblp_sock *dsk)
{
	u64 now = ktime_get_ns();

	sock_owned_by_me(&dsk->sk);
	if (dsk->state != DBLP_STATE_CLOSED)
		dblp_timer_attend(dsk, now);
	dsk->work_at = dblp_after_pause(dsk->work_at, now);
	dsk->sent.loss_time = dblp_after_pause(dsk->sent.loss_time, now);
	/* Whoever wanted it to be updated meanwhile has it done now */
	dsk->timer_at = 0;
	dblp_timer_update(dsk);
}

static enum hrtimer_restart dblp_timer_expired(struct hrtimer *timer)
{
	struct dblp_sock *dsk = container_of(timer, struct dblp_sock, timer);
	struct sock *sk = &dsk->sk;

	/* The socket may come to its end here, but is not freed before that */
	rcu_read_lock();
	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk))
		dblp_timer_run(dsk);
	else
		set_bit(DBLP_DEFER_TIMER, &dsk->deferred);
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
	at = dblp_earliest(at, dsk->spare_at);
	at = dblp_earliest(at, dsk->orphan_at);
	if (!at || (dsk->timer_at && dsk->timer_at <= at))
		return;

	dsk->timer_at = at;
	hrtimer_start(&dsk->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/**
 * dblp_sock_number() - give a new socket its number
 * @dsk: socket
 * @gfp: how to allocate
 *
 * Return: 0 or -ENOMEM, -EBUSY.
 */
int dblp_sock_number(struct dblp_sock *dsk, gfp_t gfp)
{
	struct dblp_net *dn = dsk->dn;
	int err;

	err = xa_alloc_cyclic_bh(&dn->socks, &dsk->id, dsk,
				 XA_LIMIT(1, INT_MAX), &dn->next_id, gfp);
	if (err < 0)
		return err;
	atomic_inc(&dn->generation);
	return 0;
}

/** dblp_sock_unnumber() - nobody reaches the socket by its number any more */
void dblp_sock_unnumber(struct dblp_sock *dsk)
{
	struct dblp_net *dn = dsk->dn;

	xa_erase_bh(&dn->socks, dsk->id);
	atomic_inc(&dn->generation);
}

/**
 * dblp_sock_next() - walk the sockets of a namespace
 * @net: namespace
 * @id: number to start at; set to that of the socket found
 *
 * Return: the socket with the smallest number >= @id, with a reference, or
 * NULL.
 */
struct dblp_sock *dblp_sock_next(struct net *net, u32 *id)
{
	struct dblp_net *dn = dblp_pernet(net);
	unsigned long index = *id;
	struct dblp_sock *dsk;

	rcu_read_lock();
	xa_for_each_start(&dn->socks, index, dsk, *id)
		if (refcount_inc_not_zero(&dsk->sk.sk_refcnt))
			break;
	rcu_read_unlock();
	*id = index;
	return dsk;
}

/**
 * dblp_sock_by_id() - socket by number
 * @net: namespace
 * @id: number
 *
 * Return: the socket with a reference, or NULL.
 */
struct dblp_sock *dblp_sock_by_id(struct net *net, u32 id)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_sock *dsk;

	rcu_read_lock();
	dsk = xa_load(&dn->socks, id);
	if (dsk && !refcount_inc_not_zero(&dsk->sk.sk_refcnt))
		dsk = NULL;
	rcu_read_unlock();
	return dsk;
}

/** dblp_sock_generation() - changes when a socket comes or goes */
u32 dblp_sock_generation(struct net *net)
{
	return atomic_read(&dblp_pernet(net)->generation);
}

/**
 * dblp_fill_info() - state of a socket as users see it
 * @dsk: socket, locked
 * @info: filled
 */
void dblp_fill_info(struct dblp_sock *dsk, struct dblp_info *info)
{
	sock_owned_by_me(&dsk->sk);
	*info = dsk->info;
	info->state = dsk->state;
	info->policy = dsk->policy;
	info->order = dsk->order;
	info->fill = dsk->fill;
	info->id = dsk->id;
	info->budget = dsk->budget;
	info->budget_cap = dsk->cap;
	info->spurious = dsk->sent.spurious;
	info->phase = dsk->phase;
	info->job = dblp_job_id(dsk->job);
	info->auth = dblp_auth_state(dsk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;

	info->peer_budget_cap = dsk->peer_cap;
	info->peer_msg_max = dsk->peer_msg_max;
	info->seg_size = dblp_seg_size(dsk, false);
	info->srtt_us = div_u64(dsk->rtt.srtt, NSEC_PER_USEC);
	info->rttvar_us = div_u64(dsk->rtt.var, NSEC_PER_USEC);
	info->min_rtt_us = div_u64(dsk->rtt.min, NSEC_PER_USEC);
	info->cwnd = dsk->cc.cwnd;
	info->inflight = dsk->sent.inflight;
	info->pto_count = dsk->pto_count;
	info->reordering = dsk->sent.reorder;
	info->pacing_rate = dsk->cc.pacing_rate;
}

/** dblp_sock_info() - dblp_fill_info() of a socket that is not locked */
void dblp_sock_info(struct dblp_sock *dsk, struct dblp_info *info)
{
	lock_sock(&dsk->sk);
	dblp_settle_config(dsk);
	dblp_fill_info(dsk, info);
	release_sock(&dsk->sk);
}

/**
 * dblp_sock_addrs() - addresses of a socket
 * @dsk: socket, not locked
 * @local: filled, zeroes if unbound
 * @peer: filled, zeroes if not connected
 */
void dblp_sock_addrs(struct dblp_sock *dsk, struct sockaddr_dblp *local,
		     struct sockaddr_dblp *peer)
{
	lock_sock(&dsk->sk);
	*local = dsk->local;
	*peer = dsk->peer;
	release_sock(&dsk->sk);
}

/** dblp_sock_cc_name() - name of the congestion control, never NULL */
const char *dblp_sock_cc_name(struct dblp_sock *dsk)
{
	return READ_ONCE(dsk->cc.ops)->name;
}

/**
 * dblp_sock_set_budget() - budget of messages to be sent and under way
 * @dsk: socket, not locked
 * @ppm: 0 ... DBLP_PPM, or DBLP_INHERIT
 *
 * Return: 0 or -EINVAL.
 */
int dblp_sock_set_budget(struct dblp_sock *dsk, u32 ppm)
{
	if (ppm > DBLP_PPM && ppm != DBLP_INHERIT)
		return -EINVAL;
	lock_sock(&dsk->sk);
	dblp_set_own(dsk, DBLP_BUDGET, ppm);
	release_sock(&dsk->sk);
	return 0;
}

/**
 * dblp_sock_set_budget_cap() - most loss that is accepted from now on
 * @dsk: socket, not locked
 * @ppm: 0 ... DBLP_PPM
 *
 * Return: 0 or -EINVAL.
 */
int dblp_sock_set_budget_cap(struct dblp_sock *dsk, u32 ppm)
{
	if (ppm > DBLP_PPM)
		return -EINVAL;
	lock_sock(&dsk->sk);
	dblp_set_cap(dsk, ppm);
	release_sock(&dsk->sk);
	return 0;
}
