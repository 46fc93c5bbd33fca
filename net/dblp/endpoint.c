// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: the UDP sockets below AF_DBLP, validation of ICMP errors, sharing
 * by SO_REUSEADDR. Received packets are passed to the endpoint's operations.
 */
#include <linux/bpf-cgroup.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include "dblp.h"

/* Any value but 0: users cannot read it */
#define DBLP_ENCAP_TYPE		1

/* UDP receive buffer, for packets that arrive while others are processed */
#define DBLP_UDP_QUEUE		(4 << 20)

static struct workqueue_struct *dblp_wq;

/* Endpoints to be released */
static LLIST_HEAD(dblp_released);

static void dblp_endpoint_unshare(struct dblp_endpoint *ep)
{
	struct dblp_net *dn = dblp_pernet(ep->net);

	spin_lock(&dn->shared_lock);
	list_del_init(&ep->shared);
	spin_unlock(&dn->shared_lock);
}

static void dblp_udp_release(struct sock *usk)
{
	rcu_assign_sk_user_data(usk, NULL);
	usk->sk_prot->close(usk, 0);
}

/*
 * Receivers under RCU may still use the endpoint and its UDP socket, so both
 * are freed by RCU callbacks. A wait for the grace period could take seconds
 * while many callbacks are pending.
 */
static void dblp_endpoint_release(struct dblp_endpoint *ep)
{
	u32 i;

	dblp_endpoint_unshare(ep);
	for (i = 1; i < ep->n_ports; i++)
		dblp_udp_release(ep->extra[i]);
	kfree(ep->extra);
	dblp_udp_release(ep->usk);
	atomic_dec(&dblp_pernet(ep->net)->endpoints);
	kfree_rcu(ep, rcu);
}

static void dblp_endpoints_release(struct work_struct *work)
{
	struct llist_node *list = llist_del_all(&dblp_released);
	struct dblp_endpoint *ep, *next;

	llist_for_each_entry_safe(ep, next, list, release) {
		dblp_endpoint_release(ep);
		cond_resched();
	}
}

static DECLARE_WORK(dblp_release_work, dblp_endpoints_release);

/**
 * dblp_endpoint_get() - take a reference to an endpoint for a socket
 * @ep: the endpoint; the caller has a reference
 */
void dblp_endpoint_get(struct dblp_endpoint *ep)
{
	refcount_inc(&ep->refs);
}

/**
 * dblp_endpoint_put() - drop a socket's reference to an endpoint
 * @ep: the endpoint
 *
 * Context: any; the UDP socket is released later, in process context.
 */
void dblp_endpoint_put(struct dblp_endpoint *ep)
{
	if (!refcount_dec_and_test(&ep->refs))
		return;
	llist_add(&ep->release, &dblp_released);
	/* Always queue: a flush must also wait for the latest endpoint */
	queue_work(dblp_wq, &dblp_release_work);
}

/**
 * union dblp_udp_addr - an address for UDP
 * @sa: generic address
 * @in: IPv4 address
 * @in6: IPv6 address
 */
union dblp_udp_addr {
	struct sockaddr		sa;
	struct sockaddr_in	in;
	struct sockaddr_in6	in6;
};

/* Convert an address for UDP; returns its length */
static int dblp_to_udp(union dblp_udp_addr *u, sa_family_t family,
		       const struct sockaddr_dblp *a)
{
	memset(u, 0, sizeof(*u));
	u->sa.sa_family = family;
	if (family == AF_INET) {
		u->in.sin_port = a->sdblp_port;
		u->in.sin_addr.s_addr = a->sdblp_addr.s6_addr32[3];
		return sizeof(u->in);
	}
	u->in6.sin6_port = a->sdblp_port;
	u->in6.sin6_addr = a->sdblp_addr;
	u->in6.sin6_scope_id = a->sdblp_scope_id;
	return sizeof(u->in6);
}

/* Get back address and port, which a program of the cgroup may have changed */
static void dblp_from_udp(struct sockaddr_dblp *a,
			  const union dblp_udp_addr *u)
{
	if (u->sa.sa_family == AF_INET6) {
		a->sdblp_port = u->in6.sin6_port;
		a->sdblp_addr = u->in6.sin6_addr;
		return;
	}
	a->sdblp_port = u->in.sin_port;
	/* Without IPv6, :: stands for the wildcard address of IPv4 */
	if (u->in.sin_addr.s_addr || !ipv6_addr_any(&a->sdblp_addr))
		ipv6_addr_set_v4mapped(u->in.sin_addr.s_addr, &a->sdblp_addr);
}

/*
 * Move a new UDP socket to the cgroup of the AF_DBLP socket above it. The
 * kernel has put it in the cgroup of the process, which may be another one: a
 * socket can be passed to a process, and a process can be moved. As with TCP,
 * only the programs of the socket's cgroup count.
 */
static void dblp_udp_regroup(struct sock *usk, struct sock *sk)
{
#ifdef CONFIG_CGROUP_BPF
	struct cgroup *from = sock_cgroup_ptr(&usk->sk_cgrp_data);
	struct cgroup *to = sock_cgroup_ptr(&sk->sk_cgrp_data);

	cgroup_get(to);
	cgroup_bpf_get(to);
	usk->sk_cgrp_data.cgroup = to;
	cgroup_bpf_put(from);
	cgroup_put(from);
#endif
}

/* Make a UDP socket for @sk */
static int dblp_udp_open(struct sock *sk, const struct sockaddr_dblp *addr,
			 sa_family_t family, int ifindex,
			 struct socket **sockp)
{
	struct socket *sock;
	int err;

	err = sock_create_kern(sock_net(sk), family, SOCK_DGRAM, 0, &sock);
	if (err)
		return err;
	dblp_udp_regroup(sock->sk, sk);
	/* Keeps IPv4 fields for dblp_skb_is_via() and dblp_skb_is_unicast() */
	ip_sock_set_pktinfo(sock->sk);
	/* The wildcard address receives both protocols */
	if (family == AF_INET6 && !ipv6_addr_any(&addr->sdblp_addr))
		err = ip6_sock_set_v6only(sock->sk);
	ifindex = addr->sdblp_scope_id ?: ifindex;
	if (!err && ifindex)
		err = sock_bindtoindex(sock->sk, ifindex, true);
	if (err)
		sock_release(sock);
	else
		*sockp = sock;
	return err;
}

/* Bind a UDP socket. @addr is updated, even if this fails */
static int dblp_udp_bind(struct socket *sock, struct sockaddr_dblp *addr)
{
	union dblp_udp_addr u;
	int len = dblp_to_udp(&u, sock->sk->sk_family, addr), err;

	/* kernel_bind() would not return an address changed by a program */
	err = sock->ops->bind(sock, (struct sockaddr_unsized *)&u, len);
	dblp_from_udp(addr, &u);
	return err;
}

/* Drop and count a damaged packet like UDP, which may be IPv4 on IPv6 */
static void dblp_drop_damaged(struct sock *usk, struct sk_buff *skb)
{
	struct udp_mib __percpu *mib =
		__UDPX_MIB(usk, skb->protocol == htons(ETH_P_IP));

	sk_drops_inc(usk);
	__SNMP_INC_STATS(mib, UDP_MIB_CSUMERRORS);
	__SNMP_INC_STATS(mib, UDP_MIB_INERRORS);
	kfree_skb(skb);
}

/* Is each packet of a train a RST? */
static bool dblp_is_rst(const struct sk_buff *skb)
{
	u32 stride = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;
	u32 at;
	u8 first;

	for (at = 0; at < skb->len; at += stride)
		if (skb_copy_bits(skb, at, &first, sizeof(first)) ||
		    first != (DBLP_VERSION << 4 | DBLP_PKT_RST))
			return false;
	return skb->len;
}

/*
 * Pass a packet to the endpoint. A released endpoint drops all packets.
 * Additional ports accept RSTs only: a peer sends them to the port of the
 * packet that they answer.
 */
static void dblp_udp_rcv(struct sock *usk, struct sk_buff *skb)
{
	struct dblp_endpoint *ep = rcu_dereference_sk_user_data(usk);

	if (ep && (usk == ep->usk || dblp_is_rst(skb))) {
		ep->ops->rcv(ep, skb);
		return;
	}
	if (ep)
		DBLP_INC_STATS(ep->net, DBLP_MIB_DROPPORT);
	kfree_skb(skb);
}

/*
 * UDP has queued a packet: dequeue it at once. encap_rcv() would get packets
 * without a queue, but UDP segments trains before it, for tunnels that would
 * mistake a train for one packet.
 */
static void dblp_data_ready(struct sock *usk)
{
	struct sk_buff *skb;
	int err;

	/* One packet per call, or more if some arrived before the setup */
	do {
		skb = skb_recv_udp(usk, MSG_DONTWAIT, &err);
		if (!skb)
			return;
		skb->dev = NULL;
		if (!udp_lib_checksum_complete(skb)) {
			dblp_udp_rcv(usk, skb);
			continue;
		}
		dblp_drop_damaged(usk, skb);
	} while (!skb_queue_empty_lockless(&usk->sk_receive_queue));
}

/* Receive packets and trains by dblp_data_ready() from now on */
static void dblp_udp_receive(struct socket *sock)
{
	struct sock *usk = sock->sk;
	int on = 1;

	WRITE_ONCE(usk->sk_ll_usec, 0);
	WRITE_ONCE(usk->sk_rcvbuf, DBLP_UDP_QUEUE);
	write_lock_bh(&usk->sk_callback_lock);
	usk->sk_data_ready = dblp_data_ready;
	write_unlock_bh(&usk->sk_callback_lock);
	/* Without UDP_GRO the stack segments trains before it queues them */
	sock->ops->setsockopt(sock, SOL_UDP, UDP_GRO, KERNEL_SOCKPTR(&on),
			      sizeof(on));
}

/*
 * Validation of ICMP errors.
 *
 * An off-path attacker may guess the ports of a connection, so an error counts
 * only if the packet that it quotes has the connection ID. For a "packet too
 * big", IPv6 before Linux 7 calls dblp_err_lookup() before it changes the MTU
 * of its route; IPv4 never does.
 */

/**
 * struct dblp_quote - the packet that an ICMP error quotes
 * @key: destination and its connection ID
 * @local: source
 * @cid: in the handshake, if @key has no connection ID: that of the source
 */
struct dblp_quote {
	struct dblp_peer_key	key;
	struct sockaddr_dblp	local;
	u64			cid;
};

/* Parse a quote, which may be truncated after the connection ID */
static bool dblp_get_quote(struct dblp_quote *q, const struct sk_buff *skb,
			   u32 udp_offset)
{
	const struct ipv6hdr *ip6h = (const struct ipv6hdr *)skb->data;
	const struct iphdr *iph = (const struct iphdr *)skb->data;
	u8 buf[sizeof(struct udphdr) + DBLP_HDR_LEN + 8];
	u32 len = skb->len - udp_offset;
	const struct udphdr *uh;
	struct dblp_hdr h;
	const u8 *p;

	memset(q, 0, sizeof(*q));
	if (skb->len < udp_offset + sizeof(*uh) + DBLP_HDR_LEN)
		return false;
	len = min_t(u32, len, sizeof(buf));
	p = skb_header_pointer(skb, udp_offset, len, buf);
	if (!p)
		return false;
	uh = (const struct udphdr *)p;
	q->key.port = uh->dest;
	q->local.sdblp_port = uh->source;
	if (iph->version == 4) {
		ipv6_addr_set_v4mapped(iph->daddr, &q->key.addr);
		ipv6_addr_set_v4mapped(iph->saddr, &q->local.sdblp_addr);
	} else {
		q->key.addr = ip6h->daddr;
		q->local.sdblp_addr = ip6h->saddr;
	}
	q->key.zone = dblp_skb_zone(skb, &q->key.addr, &q->local.sdblp_addr);

	/* Ignore errors, because the quote lacks the end of the packet */
	p += sizeof(*uh);
	len -= sizeof(*uh);
	dblp_get_hdr(&h, p, len);
	q->key.cid = h.dcid;
	if (h.type != DBLP_PKT_INIT && h.type != DBLP_PKT_COOKIE_ECHO)
		return q->key.cid;
	if (len < DBLP_HDR_LEN + 8)
		return false;
	q->cid = dblp_get_u64(p + DBLP_HDR_LEN);
	return q->cid;
}

/* May the connection have sent from this port? */
static bool dblp_is_own_port(const struct dblp_sock *dsk,
			     const struct dblp_endpoint *ep, __be16 port)
{
	u32 i;

	for (i = 1; i < dsk->opt.spray; i++)
		if (ep->ports[i] == port)
			return true;
	return dsk->local.sdblp_port == port;
}

static bool dblp_quote_fits(const struct dblp_sock *dsk,
			    const struct dblp_quote *q,
			    const struct sk_buff *skb)
{
	const struct dblp_endpoint *ep = READ_ONCE(dsk->ep);

	return ep && dsk->peer.sdblp_port == q->key.port &&
	       dblp_is_own_port(dsk, ep, q->local.sdblp_port) &&
	       ipv6_addr_equal(&dsk->peer.sdblp_addr, &q->key.addr) &&
	       ipv6_addr_equal(&dsk->local.sdblp_addr, &q->local.sdblp_addr) &&
	       dblp_skb_in_zone(skb, dsk);
}

/* Find the connection that may have sent the quote; takes a reference */
static struct dblp_sock *dblp_err_find(struct sock *usk,
				       const struct sk_buff *skb,
				       u32 udp_offset, struct dblp_quote *q)
{
	struct dblp_endpoint *ep = rcu_dereference_sk_user_data(usk);

	if (!ep || !dblp_get_quote(q, skb, udp_offset))
		return NULL;
	return q->cid ? dblp_conn_find(ep, q->cid) :
			dblp_conn_find_peer(ep, &q->key);
}

/*
 * Validate an ICMP error. @skb begins with the IP header of the quoted packet.
 * Returns 0 if the error is genuine and for one of our connections; else IP
 * drops it.
 */
static int dblp_err_lookup(struct sock *usk, struct sk_buff *skb)
{
	struct dblp_sock *dsk;
	struct dblp_quote q;
	bool fits = false;

	dsk = dblp_err_find(usk, skb, skb_transport_offset(skb), &q);
	if (dsk) {
		bh_lock_sock(&dsk->sk);
		fits = dblp_quote_fits(dsk, &q, skb);
		bh_unlock_sock(&dsk->sk);
		sock_put(&dsk->sk);
	}
	if (!fits)
		DBLP_INC_STATS(sock_net(usk), DBLP_MIB_ICMPREFUSED);
	return fits ? 0 : -ENOENT;
}

/*
 * Must the connection get an error? ECONNREFUSED counts for the first port
 * only, because a firewall of the peer may refuse packets from the other ports.
 */
static bool dblp_err_counts(const struct dblp_sock *dsk,
			    const struct dblp_quote *q, int err)
{
	return err == EMSGSIZE ||
	       (err == ECONNREFUSED &&
		q->local.sdblp_port == dsk->local.sdblp_port);
}

/*
 * Receive an error that dblp_err_lookup() has accepted. @info, the new MTU, is
 * not used, because the route has it.
 */
static void dblp_err_rcv(struct sock *usk, struct sk_buff *skb, int err,
			 __be16 port, u32 info, u8 *payload)
{
	struct dblp_endpoint *ep = rcu_dereference_sk_user_data(usk);
	struct dblp_sock *dsk;
	struct dblp_quote q;

	if (!ep)
		return;
	dsk = dblp_err_find(usk, skb, payload - skb->data -
			    sizeof(struct udphdr), &q);
	if (!dsk)
		return;
	bh_lock_sock(&dsk->sk);
	if (dblp_quote_fits(dsk, &q, skb) && dblp_err_counts(dsk, &q, err))
		ep->ops->err(dsk, err);
	bh_unlock_sock(&dsk->sk);
	sock_put(&dsk->sk);
}

/*
 * Free the struct socket of a UDP socket that needs no system calls any more.
 * It is part of an inode, which takes nearly as much memory as the UDP socket.
 * This is sock_orphan(), but UDP must still notify the socket of packets.
 */
static struct sock *dblp_udp_detach(struct socket *sock)
{
	struct sock *usk = sock->sk;

	write_lock_bh(&usk->sk_callback_lock);
	sk_set_socket(usk, NULL);
	RCU_INIT_POINTER(usk->sk_wq, NULL);
	write_unlock_bh(&usk->sk_callback_lock);
	sock->sk = NULL;
	sock_release(sock);
	return usk;
}

/* Pass packets and errors of the UDP socket to the endpoint from now on */
static struct sock *dblp_udp_begin(struct dblp_endpoint *ep,
				   struct socket *sock)
{
	struct udp_tunnel_sock_cfg cfg = {
		.sk_user_data = ep,
		.encap_type = DBLP_ENCAP_TYPE,
		.encap_err_lookup = dblp_err_lookup,
		.encap_err_rcv = dblp_err_rcv,
	};

	dblp_encap_keep(sock->sk->sk_family);
	setup_udp_tunnel_sock(ep->net, sock->sk, &cfg);
	dblp_udp_receive(sock);
	return dblp_udp_detach(sock);
}

static struct dblp_endpoint *dblp_endpoint_new(struct net *net,
					       struct socket *sock,
					       const struct dblp_endpoint_ops *ops)
{
	struct dblp_endpoint *ep = kzalloc(sizeof(*ep), GFP_KERNEL_ACCOUNT);

	if (!ep)
		return NULL;
	refcount_set(&ep->refs, 1);
	ep->usk = sock->sk;
	INIT_LIST_HEAD(&ep->shared);
	ep->net = net;
	ep->ops = ops;
	atomic_inc(&dblp_pernet(net)->endpoints);
	ep->ports[0] = inet_sk(ep->usk)->inet_sport;
	ep->n_ports = 1;
	dblp_udp_begin(ep, sock);
	return ep;
}

/* Bind a further port, so that no other socket can use it */
static int dblp_add_port(struct dblp_endpoint *ep, struct sock *sk)
{
	struct sockaddr_dblp addr = {};
	struct socket *sock;
	int err;

	if (ep->usk->sk_family == AF_INET)
		ipv6_addr_set_v4mapped(0, &addr.sdblp_addr);
	dblp_endpoint_name(ep, &addr);
	addr.sdblp_port = 0;
	addr.sdblp_scope_id = ipv6_iface_scope_id(&addr.sdblp_addr,
						  ep->usk->sk_bound_dev_if);
	err = dblp_udp_open(sk, &addr, ep->usk->sk_family,
			    ep->usk->sk_bound_dev_if, &sock);
	if (err)
		return err;
	err = dblp_udp_bind(sock, &addr);
	if (err) {
		sock_release(sock);
		return err;
	}
	sk = dblp_udp_begin(ep, sock);
	ep->extra[ep->n_ports] = sk;
	ep->ports[ep->n_ports] = inet_sk(sk)->inet_sport;
	ep->n_ports++;
	return 0;
}

/**
 * dblp_endpoint_spray() - bind the ports that a socket sends from
 * @dsk: bound socket that will listen or connect with @spray ports
 *
 * Context: process.
 * Return: 0, -ENOMEM or an error of bind().
 */
int dblp_endpoint_spray(struct dblp_sock *dsk)
{
	struct mutex *lock = &dsk->dn->spray_lock;
	struct dblp_endpoint *ep = dsk->ep;
	int err = 0;

	sock_owned_by_me(&dsk->sk);
	if (dsk->opt.spray == 1)
		return 0;
	/* Sockets that share the endpoint may call this at the same time */
	mutex_lock(lock);
	if (!ep->extra)
		ep->extra = kcalloc(DBLP_SPRAY_MAX, sizeof(*ep->extra),
				    GFP_KERNEL_ACCOUNT);
	if (!ep->extra)
		err = -ENOMEM;
	while (!err && ep->n_ports < dsk->opt.spray)
		err = dblp_add_port(ep, &dsk->sk);
	mutex_unlock(lock);
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
	dblp_encap_exit();
}

/**
 * dblp_endpoints_flush() - wait until the UDP sockets of unused endpoints are
 * released
 */
void dblp_endpoints_flush(void)
{
	flush_workqueue(dblp_wq);
}

/**
 * dblp_endpoint_name() - get the address that an endpoint is bound to
 * @ep: the endpoint
 * @addr: address passed to bind(); updated, because a cgroup program may have
 *	changed it
 */
void dblp_endpoint_name(const struct dblp_endpoint *ep,
			struct sockaddr_dblp *addr)
{
	const struct sock *usk = ep->usk;
	const struct in6_addr *bound = inet6_rcv_saddr(usk);

	addr->sdblp_port = inet_sk(usk)->inet_sport;
	if (usk->sk_family == AF_INET && inet_sk(usk)->inet_rcv_saddr)
		ipv6_addr_set_v4mapped(inet_sk(usk)->inet_rcv_saddr,
				       &addr->sdblp_addr);
	else if (bound && !ipv6_addr_any(bound))
		addr->sdblp_addr = *bound;
}

/**
 * dblp_endpoint_connect() - run the connect() program of the cgroup
 * @dsk: bound socket
 * @peer: destination; the program may change it
 *
 * This is the first step of UDP's connect(). The UDP socket stays unconnected.
 *
 * Context: process.
 * Return: 0 or -EPERM.
 */
int dblp_endpoint_connect(struct dblp_sock *dsk, struct sockaddr_dblp *peer)
{
	bool v4 = ipv6_addr_v4mapped(&peer->sdblp_addr);
	struct sock *usk = dsk->ep->usk;
	union dblp_udp_addr u;
	int len, err;

	sock_owned_by_me(&dsk->sk);
	if (!dblp_same_policy(&dsk->sk, usk, CGROUP_INET4_CONNECT) ||
	    !dblp_same_policy(&dsk->sk, usk, CGROUP_INET6_CONNECT))
		return -EPERM;
	if (!usk->sk_prot->pre_connect)
		return 0;
	len = dblp_to_udp(&u, v4 ? AF_INET : AF_INET6, peer);
	err = usk->sk_prot->pre_connect(usk, (void *)&u, len);
	dblp_from_udp(peer, &u);
	return err;
}

/*
 * SO_REUSEADDR: a restarted server can bind its port while connections of the
 * previous process exist.
 *
 * Packets find their connection by ID, so sockets can share an endpoint, as a
 * listener and its children do; only two listeners conflict. All sockets of an
 * endpoint belong to one user, because they share the receive buffer. The same
 * cgroup programs must run for all of them, because programs for packets and
 * connect() run for the UDP socket. If different programs are attached later,
 * no packet passes.
 */

/** dblp_reuse_init() - prepare a namespace */
void dblp_reuse_init(struct dblp_net *dn)
{
	INIT_LIST_HEAD(&dn->shared);
	spin_lock_init(&dn->shared_lock);
	mutex_init(&dn->spray_lock);
}

#ifdef CONFIG_CGROUP_BPF
/**
 * dblp_same_programs() - do the same programs run for sockets of both cgroups?
 * @sk: a socket
 * @usk: the UDP socket below it, for which IP and UDP run programs
 * @type: &enum cgroup_bpf_attach_type
 *
 * The cgroups can differ if the UDP socket is shared.
 */
bool dblp_same_programs(struct sock *sk, struct sock *usk, int type)
{
	struct cgroup *a = sock_cgroup_ptr(&sk->sk_cgrp_data);
	struct cgroup *b = sock_cgroup_ptr(&usk->sk_cgrp_data);
	const struct bpf_prog_array_item *i, *j;
	bool same;

	if (a == b)
		return true;
	rcu_read_lock();
	i = rcu_dereference(a->bpf.effective[type])->items;
	j = rcu_dereference(b->bpf.effective[type])->items;
	while (i->prog && i->prog == j->prog) {
		i++;
		j++;
	}
	same = i->prog == j->prog;
	rcu_read_unlock();
	return same;
}
#endif

static bool dblp_may_share(const struct dblp_endpoint *ep,
			   const struct sockaddr_dblp *addr, struct sock *sk)
{
	lockdep_assert_held(&dblp_pernet(ep->net)->shared_lock);
	return ep->addr.sdblp_port == addr->sdblp_port &&
	       ep->ifindex == sk->sk_bound_dev_if &&
	       uid_eq(ep->uid, sk->sk_uid) &&
	       dblp_same_policy(sk, ep->usk, CGROUP_INET_EGRESS) &&
	       dblp_same_policy(sk, ep->usk, CGROUP_INET_INGRESS) &&
	       dblp_same_policy(sk, ep->usk, CGROUP_INET4_CONNECT) &&
	       dblp_same_policy(sk, ep->usk, CGROUP_INET6_CONNECT) &&
	       ep->addr.sdblp_scope_id == addr->sdblp_scope_id &&
	       ipv6_addr_equal(&ep->addr.sdblp_addr, &addr->sdblp_addr) &&
	       !rcu_access_pointer(ep->listener);
}

static struct dblp_endpoint *dblp_find_shared(struct sock *sk,
					      const struct sockaddr_dblp *addr)
{
	struct dblp_net *dn = dblp_pernet(sock_net(sk));
	struct dblp_endpoint *ep;

	spin_lock(&dn->shared_lock);
	list_for_each_entry(ep, &dn->shared, shared)
		if (dblp_may_share(ep, addr, sk) &&
		    refcount_inc_not_zero(&ep->refs))
			goto out;
	ep = NULL;
out:
	spin_unlock(&dn->shared_lock);
	return ep;
}

/* Run the program that runs after a successful bind() */
static int dblp_post_bind(struct sock *usk, const struct sockaddr_dblp *addr)
{
	struct inet_sock *inet = inet_sk(usk);
	int err = 0;

	inet->inet_num = ntohs(addr->sdblp_port);
	if (usk->sk_family == AF_INET) {
		inet->inet_rcv_saddr = addr->sdblp_addr.s6_addr32[3];
		err = BPF_CGROUP_RUN_PROG_INET4_POST_BIND(usk);
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (usk->sk_family == AF_INET6) {
		usk->sk_v6_rcv_saddr = addr->sdblp_addr;
		err = BPF_CGROUP_RUN_PROG_INET6_POST_BIND(usk);
	}
#endif
	inet->inet_num = 0;
	return err;
}

/*
 * Join an endpoint after bind() of @sock has failed because the endpoint has
 * the port. All earlier checks of bind() have passed, such as the programs of
 * the cgroup and the check for privileged ports. Returns -EADDRINUSE if no
 * endpoint can be shared.
 */
static int dblp_endpoint_join(struct dblp_sock *dsk, struct socket *sock,
			      const struct sockaddr_dblp *addr)
{
	struct dblp_endpoint *ep = dblp_find_shared(&dsk->sk, addr);
	int err;

	if (!ep)
		return -EADDRINUSE;
	err = dblp_post_bind(sock->sk, addr);
	if (err) {
		dblp_endpoint_put(ep);
		return err;
	}
	sock_release(sock);
	dsk->local = *addr;
	dsk->ep = ep;
	return 0;
}

static void dblp_endpoint_share(struct dblp_sock *dsk)
{
	struct dblp_endpoint *ep = dsk->ep;
	struct dblp_net *dn = dsk->dn;

	ep->addr = dsk->local;
	ep->ifindex = dsk->sk.sk_bound_dev_if;
	ep->uid = dsk->sk.sk_uid;
	spin_lock(&dn->shared_lock);
	list_add(&ep->shared, &dn->shared);
	spin_unlock(&dn->shared_lock);
}

static int dblp_endpoint_own(struct dblp_sock *dsk, struct socket *sock,
			     const struct sockaddr_dblp *addr,
			     const struct dblp_endpoint_ops *ops)
{
	struct dblp_endpoint *ep;

	ep = dblp_endpoint_new(sock_net(&dsk->sk), sock, ops);
	if (!ep)
		return -ENOMEM;
	dsk->ep = ep;
	dsk->local = *addr;
	dblp_endpoint_name(ep, &dsk->local);
	if (dsk->sk.sk_reuse)
		dblp_endpoint_share(dsk);
	return 0;
}

/**
 * dblp_endpoint_bind() - bind a new UDP socket, or share one with SO_REUSEADDR
 * @dsk: socket without endpoint; its endpoint and local address are set here
 * @addr: address and port; port 0 means any free port
 * @ops: operations for received packets and errors
 *
 * Context: process.
 * Return: 0, -EADDRINUSE, -EADDRNOTAVAIL or another error of bind().
 */
int dblp_endpoint_bind(struct dblp_sock *dsk, const struct sockaddr_dblp *addr,
		       const struct dblp_endpoint_ops *ops)
{
	bool v4 = ipv6_addr_v4mapped(&addr->sdblp_addr);
	int ifindex = dsk->sk.sk_bound_dev_if;
	struct sockaddr_dblp to = *addr;
	struct sock *sk = &dsk->sk;
	struct socket *sock;
	int err;

	sock_owned_by_me(sk);
	err = dblp_udp_open(sk, addr, v4 ? AF_INET : AF_INET6, ifindex, &sock);
	if (err == -EAFNOSUPPORT && ipv6_addr_any(&addr->sdblp_addr))
		err = dblp_udp_open(sk, addr, AF_INET, ifindex, &sock);
	if (err)
		return err;

	err = dblp_udp_bind(sock, &to);
	if (err == -EADDRINUSE && dsk->sk.sk_reuse && to.sdblp_port) {
		err = dblp_endpoint_join(dsk, sock, &to);
		if (!err)
			return 0;
	}
	/* Retry once after closed sockets with that port have been released */
	if (err == -EADDRINUSE) {
		flush_workqueue(dblp_wq);
		to = *addr;
		err = dblp_udp_bind(sock, &to);
	}
	if (!err)
		err = dblp_endpoint_own(dsk, sock, &to, ops);
	if (err)
		sock_release(sock);
	return err;
}

/**
 * dblp_endpoint_listen() - make a socket the listener of its endpoint
 * @dsk: bound socket
 *
 * Return: 0, or -EADDRINUSE if the endpoint has a listener.
 */
int dblp_endpoint_listen(struct dblp_sock *dsk)
{
	struct dblp_sock *old;

	sock_owned_by_me(&dsk->sk);
	old = unrcu_pointer(cmpxchg(&dsk->ep->listener, NULL,
				    RCU_INITIALIZER(dsk)));
	return old ? -EADDRINUSE : 0;
}
