// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket objects: allocation, inheritance, release, access by netlink.
 */
#include <linux/memcontrol.h>

#include "dblp.h"

/*
 * Count sockets for /proc/net/protocols. Kernel sockets hold no reference to
 * their namespace, so its counters may end before them.
 */
static void dblp_count_in_proc(struct sock *sk, int n)
{
	if (sk->sk_net_refcnt)
		sock_prot_inuse_add(sock_net(sk), sk->sk_prot, n);
}

static void dblp_destruct(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	hrtimer_cancel(&dsk->timer);
	dblp_leave_config(dsk);
	dblp_rx_purge(dsk);
	dblp_tx_purge_reports(dsk);
	dblp_tx_free(dsk, dsk->tx.reported);
	dblp_ring_free(dsk);
	dblp_ranges_free(dsk);
	dblp_auth_free(dsk);
	if (dsk->ep)
		dblp_endpoint_put(dsk->ep);
	__skb_queue_purge(&sk->sk_error_queue);
	__skb_queue_purge(&sk->sk_receive_queue);
	sk_mem_reclaim_final(sk);
	WARN_ON_ONCE(atomic_read(&sk->sk_rmem_alloc));
	WARN_ON_ONCE(sk->sk_wmem_queued);
	WARN_ON_ONCE(sk->sk_forward_alloc);
	dst_release(rcu_dereference_check(sk->sk_dst_cache, 1));
	dblp_count_in_proc(sk, -1);
	sk_sockets_allocated_dec(sk);
}

/* Initialise the fields of struct dblp_sock after @sk, which are zero */
static void dblp_sock_init(struct dblp_sock *dsk)
{
	struct net *net = sock_net(&dsk->sk);
	struct dblp_defaults defaults;

	dsk->dn = dblp_pernet(net);
	dblp_count_in_proc(&dsk->sk, 1);
	dblp_defaults_read(dblp_config(net), &defaults);
	dsk->cc.ops = defaults.cc;
	dsk->conf.default_cap = defaults.cap;
	dsk->opt.user_timeout_ms = defaults.user_timeout_ms;
	dsk->opt.keepalive_ms = defaults.keepalive_ms;
	dsk->opt.element = 8;
	dsk->opt.elide = 1;
	dsk->opt.ect = 1;
	dsk->opt.spray = 1;
	INIT_LIST_HEAD(&dsk->accept);
	INIT_LIST_HEAD(&dsk->tx.msgs);
	dsk->tx.ids = RB_ROOT;
	INIT_LIST_HEAD(&dsk->tx.lost);
	INIT_LIST_HEAD(&dsk->tx.settled);
	INIT_LIST_HEAD(&dsk->tx.reports);
	INIT_LIST_HEAD(&dsk->tx.chunk_cache);
	INIT_LIST_HEAD(&dsk->tx.waste);
	dblp_ctl_begin(dsk);
	INIT_LIST_HEAD(&dsk->rx.waits);
	INIT_LIST_HEAD(&dsk->rx.judge);
	timerqueue_init_head(&dsk->rx.due);
	INIT_LIST_HEAD(&dsk->rx.ready);
	INIT_LIST_HEAD(&dsk->rx.taken);
	init_waitqueue_head(&dsk->rx.waiters);
	INIT_LIST_HEAD(&dsk->rx.part);
	INIT_LIST_HEAD(&dsk->rx.last);
	dsk->rx.msgs = RB_ROOT;
	dblp_ranges_init(&dsk->acks.pns);
	dblp_timer_init(dsk);
	dblp_tsq_init(dsk);
	dblp_apply_config(dsk);
}

/**
 * dblp_sock_alloc() - allocate a socket in state CLOSED, without a number
 * @net: namespace
 * @prot: the protocol
 * @kern: whether the socket belongs to the kernel
 *
 * Return: the socket with its initial reference, or NULL.
 */
struct sock *dblp_sock_alloc(struct net *net, struct proto *prot, int kern)
{
	struct sock *sk;

	sk = sk_alloc(net, PF_DBLP, GFP_KERNEL, prot, kern);
	if (!sk)
		return NULL;
	sock_init_data(NULL, sk);
	sk->sk_type = SOCK_SEQPACKET;
	sk->sk_destruct = dblp_destruct;
	sk->sk_backlog_rcv = prot->backlog_rcv;
	sk->sk_state = TCP_CLOSE;
	sk->sk_rcvbuf = READ_ONCE(dblp_pernet(net)->sysctl_rmem_default);
	sk->sk_sndbuf = READ_ONCE(dblp_pernet(net)->sysctl_wmem_default);
	sk->sk_txrehash = READ_ONCE(net->core.sysctl_txrehash);
	sock_set_flag(sk, SOCK_RCU_FREE);
	sk_sockets_allocated_inc(sk);
	dblp_sock_init(dblp_sk(sk));
	return sk;
}

/* Copy the options of level SOL_DBLP from a listener to a new connection */
static void dblp_inherit(struct dblp_sock *child,
			 const struct dblp_sock *listener)
{
	child->opt.element = listener->opt.element;
	child->opt.user_timeout_ms = listener->opt.user_timeout_ms;
	child->opt.keepalive_ms = listener->opt.keepalive_ms;
	child->opt.deadline = listener->opt.deadline;
	child->opt.notify = listener->opt.notify;
	child->opt.partial = listener->opt.partial;
	child->opt.placement = listener->opt.placement;
	child->opt.elide = listener->opt.elide;
	child->opt.tos = listener->opt.tos;
	child->opt.ect = listener->opt.ect;
	child->cc.ops = listener->cc.ops;
	dblp_inherit_config(child, listener);
}

/**
 * dblp_sock_clone() - allocate a socket for a connection of a listener
 * @listener: locked
 *
 * As for TCP, the kernel clones options of level SOL_SOCKET, cgroup, security
 * label, user, and BPF storage. It leaves out the priority, which is copied
 * here. Memory is charged to the cgroup of the listener first, see
 * dblp_accept_memory().
 *
 * Return: the socket in state CLOSED, without a number, with its initial
 * reference, or NULL.
 */
struct dblp_sock *dblp_sock_clone(struct dblp_sock *listener)
{
	const struct sock *from = &listener->sk;
	struct dblp_sock *dsk;
	struct sock *sk;

	sock_owned_by_me(&listener->sk);
	sk = sk_clone(from, GFP_ATOMIC, false);
	if (!sk)
		return NULL;
	/* sk_clone() takes a second reference, for a table of sockets */
	__sock_put(sk);
	/* A reader of SO_PEERCRED may have held the lock when it was copied */
	spin_lock_init(&sk->sk_peer_lock);
	atomic64_set(&sk->sk_cookie, 0);
	/* sk_clone() neither copies nor initialises the RX queue */
	sk_rx_queue_clear(sk);
	sk->sk_state = TCP_CLOSE;
	sk->sk_ack_backlog = 0;
	sk->sk_max_ack_backlog = 0;
	sk->sk_priority = READ_ONCE(from->sk_priority);
	mem_cgroup_sk_inherit(from, sk);

	dsk = dblp_sk(sk);
	memset_startat(dsk, 0, dn);
	dblp_sock_init(dsk);
	dblp_inherit(dsk, listener);
	return dsk;
}

#ifdef CONFIG_MEMCG
/**
 * dblp_accept_memory() - charge a connection to the accepting cgroup
 * @sk: connection, locked, not accepted before
 *
 * The memory of the connection is charged to the cgroup of its listener. Charge
 * the accepting cgroup, then uncharge that of the listener, like
 * inet_csk_accept(), but by functions that are exported to modules.
 *
 * Context: process.
 */
void dblp_accept_memory(struct sock *sk)
{
	int size = PAGE_ALIGN(sk->sk_forward_alloc +
			      atomic_read(&sk->sk_rmem_alloc) +
			      dblp_ring_truesize(dblp_sk(sk)));
	struct mem_cgroup *theirs = sk->sk_memcg, *ours;
	bool charged;

	sock_owned_by_me(sk);
	if (!mem_cgroup_sockets_enabled)
		return;
	sk->sk_memcg = NULL;
	mem_cgroup_sk_alloc(sk);
	ours = sk->sk_memcg;
	if (ours == theirs || !size) {
		mem_cgroup_put(theirs);
		return;
	}
	/* Like received packets, charge this even if the cgroup is full */
	local_bh_disable();
	charged = __sk_mem_schedule(sk, size, SK_MEM_RECV);
	local_bh_enable();
	sk->sk_memcg = theirs;
	if (charged)
		__sk_mem_reclaim(sk, size);
	else
		swap(ours, theirs);
	sk->sk_memcg = ours;
	mem_cgroup_put(theirs);
}
#endif

/* Number of messages that were not complete */
static u64 dblp_count_early(const u64 *msgs)
{
	return msgs[DBLP_REASON_BUDGET] + msgs[DBLP_REASON_DEADLINE] +
	       msgs[DBLP_REASON_CANCELLED];
}

static void dblp_fill_sent(const struct dblp_counts *c, struct dblp_info *info)
{
	info->bytes_first = c->bytes_first;
	info->bytes_again = c->bytes_again;
	info->bytes_delivered = c->bytes_delivered;
	info->bytes_forgiven_unsent = c->bytes_forgiven_unsent;
	info->bytes_forgiven_sent = c->bytes_forgiven_sent;
	info->bytes_elided = c->bytes_elided;
	info->msgs_sent_complete = c->msgs_sent[DBLP_REASON_COMPLETE];
	info->msgs_sent_budget = c->msgs_sent[DBLP_REASON_BUDGET];
	info->msgs_sent_deadline = c->msgs_sent[DBLP_REASON_DEADLINE];
	info->msgs_sent_cancelled = c->msgs_sent[DBLP_REASON_CANCELLED];
	info->msgs_sent_early = dblp_count_early(c->msgs_sent);
	info->msgs_sent = info->msgs_sent_complete + info->msgs_sent_early;
	info->pkts_sent = c->pkts_sent;
	info->pkts_lost = c->pkts_lost;
	info->delivery_rate = c->delivery_rate;
}

static void dblp_fill_received(const struct dblp_counts *c,
			       struct dblp_info *info)
{
	info->bytes_received = c->bytes_received;
	info->bytes_missing = c->bytes_missing;
	info->msgs_received_complete = c->msgs_received[DBLP_REASON_COMPLETE];
	info->msgs_received_budget = c->msgs_received[DBLP_REASON_BUDGET];
	info->msgs_received_deadline = c->msgs_received[DBLP_REASON_DEADLINE];
	info->msgs_received_cancelled = c->msgs_received[DBLP_REASON_CANCELLED];
	info->msgs_received_early = dblp_count_early(c->msgs_received);
	info->msgs_received = info->msgs_received_complete +
			      info->msgs_received_early;
	info->pkts_received = c->pkts_received;
}

/* Fill in the state of a socket for users */
static void dblp_fill_info(struct dblp_sock *dsk, struct dblp_info *info)
{
	memset(info, 0, sizeof(*info));
	dblp_fill_sent(&dsk->counts, info);
	dblp_fill_received(&dsk->counts, info);
	info->state = dsk->state;
	info->policy = dsk->opt.policy;
	info->order = dsk->opt.order;
	info->fill = dsk->opt.fill;
	info->id = dsk->id;
	info->budget = dsk->opt.budget;
	info->budget_cap = dsk->opt.cap;
	info->spurious = dsk->sent.spurious;
	info->phase = dsk->opt.phase;
	info->job = dblp_job_id(dsk->conf.job);
	info->auth = dblp_auth_state(dsk);
	info->own = dsk->conf.own;
	info->reports = dsk->tx.n_reports;
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;

	info->peer_budget_cap = dsk->tx.cap;
	info->peer_msg_max = dsk->tx.len_max;
	info->whole_max = min(dblp_single_max(dsk), dsk->tx.len_max);
	info->seg_size = dblp_seg_size(dsk, false);
	info->srtt_us = div_u64(dsk->rtt.srtt, NSEC_PER_USEC);
	info->rttvar_us = div_u64(dsk->rtt.var, NSEC_PER_USEC);
	info->min_rtt_us = div_u64(dsk->rtt.min, NSEC_PER_USEC);
	info->cwnd = dsk->cc.cwnd;
	info->inflight = dsk->sent.inflight;
	info->pto_count = dsk->tx.pto_count;
	info->reordering = dsk->sent.reorder;
	info->pacing_rate = dsk->cc.pacing_rate;
}

/**
 * dblp_sock_info() - get the state of a socket for users
 * @dsk: socket, not locked
 * @info: set to the state
 */
void dblp_sock_info(struct dblp_sock *dsk, struct dblp_info *info)
{
	lock_sock(&dsk->sk);
	dblp_refresh_config(dsk);
	dblp_fill_info(dsk, info);
	release_sock(&dsk->sk);
}

/**
 * dblp_sock_addrs() - get the addresses of a socket
 * @dsk: socket, not locked
 * @local: set to the local address, zeroes if unbound
 * @peer: set to the peer's address, zeroes if not connected
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
 * dblp_sock_set_share() - set budget or budget cap, see dblp_set_own()
 * @dsk: socket, not locked
 * @option: DBLP_BUDGET or DBLP_BUDGET_CAP
 * @ppm: 0 ... DBLP_PPM, or DBLP_INHERIT
 */
void dblp_sock_set_share(struct dblp_sock *dsk, int option, u32 ppm)
{
	lock_sock(&dsk->sk);
	dblp_set_own(dsk, option, ppm);
	release_sock(&dsk->sk);
}
