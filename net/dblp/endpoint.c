// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: the UDP sockets under AF_DBLP.
 */
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include "dblp.h"

/* Any value but 0: there is no ioctl to ask for this type */
#define DBLP_ENCAP_TYPE		1

/* Bytes that may come in while others are being attended to */
#define DBLP_UDP_QUEUE		(4 << 20)

static struct workqueue_struct *dblp_wq;

/* Those that nobody uses any more */
static LLIST_HEAD(dblp_released);

/*
 * All that wait share one grace period, however many there are: who opens and
 * closes sockets in a loop keeps one worker busy, and nobody waiting for long.
 */
static void dblp_endpoints_release(struct work_struct *work)
{
	struct llist_node *list = llist_del_all(&dblp_released);
	struct dblp_endpoint *ep, *next;

	llist_for_each_entry(ep, list, release) {
		dblp_endpoint_unshare(ep);
		rcu_assign_sk_user_data(ep->sock->sk, NULL);
	}
	synchronize_rcu();
	llist_for_each_entry_safe(ep, next, list, release) {
		kernel_sock_shutdown(ep->sock, SHUT_RDWR);
		sock_release(ep->sock);
		atomic_dec(&dblp_pernet(ep->net)->endpoints);
		kfree_rcu(ep, rcu);
		cond_resched();
	}
}

static DECLARE_WORK(dblp_release_work, dblp_endpoints_release);

/**
 * dblp_endpoint_get() - one more socket uses an endpoint
 * @ep: the endpoint, to which the caller has a reference
 */
void dblp_endpoint_get(struct dblp_endpoint *ep)
{
	refcount_inc(&ep->refs);
}

/**
 * dblp_endpoint_put() - one socket less uses an endpoint
 * @ep: the endpoint
 *
 * Context: any; the UDP socket goes in process context later.
 */
void dblp_endpoint_put(struct dblp_endpoint *ep)
{
	if (!refcount_dec_and_test(&ep->refs))
		return;
	llist_add(&ep->release, &dblp_released);
	/* Also if others are there: who flushes must not be before their work */
	queue_work(dblp_wq, &dblp_release_work);
}

static int dblp_udp_create(struct net *net, const struct sockaddr_dblp *addr,
			   sa_family_t family, int ifindex,
			   struct socket **sockp)
{
	struct udp_port_cfg cfg = {
		.family = family,
		.local_udp_port = addr->sdblp_port,
		.bind_ifindex = ifindex,
		.use_udp_checksums = 1,
		.use_udp6_tx_checksums = 1,
		.use_udp6_rx_checksums = 1,
	};

	if (family == AF_INET) {
		cfg.local_ip.s_addr = addr->sdblp_addr.s6_addr32[3];
	} else {
		cfg.local_ip6 = addr->sdblp_addr;
		/* The wildcard address takes both protocols */
		cfg.ipv6_v6only = !ipv6_addr_any(&addr->sdblp_addr);
		if (ipv6_addr_type(&addr->sdblp_addr) & IPV6_ADDR_LINKLOCAL)
			cfg.bind_ifindex = addr->sdblp_scope_id ?: ifindex;
	}
	return udp_sock_create(net, &cfg, sockp);
}

/* As UDP itself does. An IPv6 socket may have got a packet of IPv4 */
static void dblp_drop_damaged(struct sock *usk, struct sk_buff *skb)
{
	bool ipv4 = skb->protocol == htons(ETH_P_IP);

	sk_drops_inc(usk);
	__SNMP_INC_STATS(__UDPX_MIB(usk, ipv4), UDP_MIB_CSUMERRORS);
	__SNMP_INC_STATS(__UDPX_MIB(usk, ipv4), UDP_MIB_INERRORS);
	kfree_skb(skb);
}

/*
 * UDP has queued a packet. It does not hand trains of packets to encap_rcv(),
 * but cuts them up before: others who use that have tunnels, where a train would
 * be taken for a packet of its contents. So we let it queue, and dequeue at once.
 */
static void dblp_data_ready(struct sock *usk)
{
	struct sk_buff *skb;
	int err;

	/* One call for each packet queued; more if one had come before setup */
	do {
		skb = skb_recv_udp(usk, MSG_DONTWAIT, &err);
		if (!skb)
			return;
		skb->dev = NULL;
		if (!udp_lib_checksum_complete(skb)) {
			dblp_rcv(usk, skb);
			continue;
		}
		dblp_drop_damaged(usk, skb);
	} while (!skb_queue_empty_lockless(&usk->sk_receive_queue));
}

/* From now on packets are ours, trains included */
static void dblp_udp_receive(struct socket *sock)
{
	struct sock *usk = sock->sk;
	int on = 1;

	WRITE_ONCE(usk->sk_ll_usec, 0);
	WRITE_ONCE(usk->sk_rcvbuf, DBLP_UDP_QUEUE);
	write_lock_bh(&usk->sk_callback_lock);
	usk->sk_data_ready = dblp_data_ready;
	write_unlock_bh(&usk->sk_callback_lock);
	/* Without it the stack cuts trains up for us */
	sock->ops->setsockopt(sock, SOL_UDP, UDP_GRO, KERNEL_SOCKPTR(&on),
			      sizeof(on));
}

/**
 * dblp_endpoint_create() - bind a new UDP socket
 * @net: namespace
 * @addr: address and port; port 0 is any free one
 * @ifindex: interface to be bound to, 0 for none
 * @epp: where the endpoint goes, with one reference
 *
 * Context: process.
 * Return: 0, -EADDRINUSE, -EADDRNOTAVAIL or another error of bind().
 */
int dblp_endpoint_create(struct net *net, const struct sockaddr_dblp *addr,
			 int ifindex, struct dblp_endpoint **epp)
{
	struct udp_tunnel_sock_cfg cfg = {
		.encap_type = DBLP_ENCAP_TYPE,
		.encap_err_lookup = dblp_err_lookup,
		.encap_err_rcv = dblp_err_rcv,
	};
	struct dblp_endpoint *ep;
	sa_family_t family;
	int err;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);
	if (!ep)
		return -ENOMEM;

	family = ipv6_addr_v4mapped(&addr->sdblp_addr) ? AF_INET : AF_INET6;
	err = dblp_udp_create(net, addr, family, ifindex, &ep->sock);
	if (err == -EADDRINUSE && addr->sdblp_port) {
		/* Perhaps by one that is on its way out */
		flush_workqueue(dblp_wq);
		err = dblp_udp_create(net, addr, family, ifindex, &ep->sock);
	}
	if (err == -EAFNOSUPPORT && ipv6_addr_any(&addr->sdblp_addr))
		err = dblp_udp_create(net, addr, AF_INET, ifindex, &ep->sock);
	if (err)
		goto err_free;

	refcount_set(&ep->refs, 1);
	INIT_LIST_HEAD(&ep->shared);
	ep->net = net;
	atomic_inc(&dblp_pernet(net)->endpoints);
	cfg.sk_user_data = ep;
	setup_udp_tunnel_sock(net, ep->sock->sk, &cfg);
	dblp_udp_receive(ep->sock);
	*epp = ep;
	return 0;

err_free:
	kfree(ep);
	return err;
}

int dblp_endpoints_init(void)
{
	dblp_wq = alloc_workqueue("dblp", WQ_UNBOUND, 0);
	return dblp_wq ? 0 : -ENOMEM;
}

void dblp_endpoints_exit(void)
{
	destroy_workqueue(dblp_wq);
}

/**
 * dblp_endpoints_flush() - wait until released endpoints are gone
 */
void dblp_endpoints_flush(void)
{
	flush_workqueue(dblp_wq);
}

/**
 * dblp_endpoint_name() - what an endpoint is really bound to
 * @ep: the endpoint
 * @addr: what was asked for; a program of the cgroup may have changed it
 */
void dblp_endpoint_name(const struct dblp_endpoint *ep,
			struct sockaddr_dblp *addr)
{
	const struct sock *usk = ep->sock->sk;

	addr->sdblp_port = inet_sk(usk)->inet_sport;
	if (usk->sk_family == AF_INET && inet_sk(usk)->inet_rcv_saddr)
		ipv6_addr_set_v4mapped(inet_sk(usk)->inet_rcv_saddr,
				       &addr->sdblp_addr);
	else if (usk->sk_family == AF_INET6 &&
		 !ipv6_addr_any(&usk->sk_v6_rcv_saddr))
		addr->sdblp_addr = usk->sk_v6_rcv_saddr;
}

/**
 * dblp_endpoint_connect() - may the cgroup talk to this peer?
 * @ep: from there
 * @peer: a program of the cgroup may change it
 *
 * What connect() of UDP asks before it does anything: nothing else is done.
 *
 * Context: process.
 * Return: 0 or -EPERM.
 */
int dblp_endpoint_connect(struct dblp_endpoint *ep, struct sockaddr_dblp *peer)
{
	struct sock *usk = ep->sock->sk;
	union {
		struct sockaddr		sa;
		struct sockaddr_in	in;
		struct sockaddr_in6	in6;
	} to = {};
	int err;

	if (!usk->sk_prot->pre_connect)
		return 0;
	if (ipv6_addr_v4mapped(&peer->sdblp_addr)) {
		to.in.sin_family = AF_INET;
		to.in.sin_port = peer->sdblp_port;
		to.in.sin_addr.s_addr = peer->sdblp_addr.s6_addr32[3];
		err = usk->sk_prot->pre_connect(usk, (void *)&to.sa,
						sizeof(to.in));
		peer->sdblp_port = to.in.sin_port;
		peer->sdblp_addr.s6_addr32[3] = to.in.sin_addr.s_addr;
		return err;
	}
	to.in6.sin6_family = AF_INET6;
	to.in6.sin6_port = peer->sdblp_port;
	to.in6.sin6_addr = peer->sdblp_addr;
	to.in6.sin6_scope_id = peer->sdblp_scope_id;
	err = usk->sk_prot->pre_connect(usk, (void *)&to.sa, sizeof(to.in6));
	peer->sdblp_port = to.in6.sin6_port;
	peer->sdblp_addr = to.in6.sin6_addr;
	return err;
}
