// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: the UDP sockets under AF_DBLP, and the way to and from IP.
 *
 * Nothing outside this file tells IPv4 from IPv6.
 */
#include <linux/bpf-cgroup.h>
#include <linux/ip.h>
#include <linux/security.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
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

/**
 * dblp_path_owner() - let rules of routing and of IPsec see whose packets they are
 * @path: way to a peer
 * @sk: the socket, with mark, user and label
 */
void dblp_path_owner(struct dblp_path *path, struct sock *sk)
{
	path->fl.flowi_mark = READ_ONCE(sk->sk_mark);
	path->fl.flowi_uid = sock_net_uid(sock_net(sk), sk);
	security_sk_classify_flow(sk, &path->fl.u.__fl_common);
}

/**
 * dblp_path_init() - describe the way to a peer
 * @path: filled; no route is looked up
 * @local: our address, :: if the route is to choose it
 * @peer: its address; decides between IPv4 and IPv6
 * @sk: whose packets go there
 * @ifindex: interface to be used, 0 for any
 */
void dblp_path_init(struct dblp_path *path, const struct sockaddr_dblp *local,
		    const struct sockaddr_dblp *peer, struct sock *sk,
		    int ifindex)
{
	struct flowi4 *fl4 = &path->fl.u.ip4;
	struct flowi6 *fl6 = &path->fl.u.ip6;

	memset(path, 0, sizeof(*path));
	path->sport = local->sdblp_port;
	path->dport = peer->sdblp_port;
	path->fl.flowi_proto = IPPROTO_UDP;
	path->fl.flowi_oif = ifindex;
	dblp_path_owner(path, sk);
	if (ipv6_addr_v4mapped(&peer->sdblp_addr)) {
		path->family = AF_INET;
		fl4->daddr = peer->sdblp_addr.s6_addr32[3];
		fl4->saddr = local->sdblp_addr.s6_addr32[3];
		fl4->fl4_sport = path->sport;
		fl4->fl4_dport = path->dport;
		return;
	}
	path->family = AF_INET6;
	fl6->daddr = peer->sdblp_addr;
	fl6->saddr = local->sdblp_addr;
	fl6->flowlabel = (peer->sdblp_flowinfo ?: local->sdblp_flowinfo) &
			 IPV6_FLOWLABEL_MASK;
	fl6->fl6_sport = path->sport;
	fl6->fl6_dport = path->dport;
	if (ipv6_addr_type(&peer->sdblp_addr) & IPV6_ADDR_LINKLOCAL)
		fl6->flowi6_oif = peer->sdblp_scope_id ?: ifindex;
}

/* An IPv4 route may have an IPv6 gateway */
static void dblp_path_hop4(struct dblp_path *path, const struct rtable *rt)
{
	if (rt->rt_gw_family == AF_INET6)
		path->gateway = rt->rt_gw6;
	else
		ipv6_addr_set_v4mapped(rt->rt_gw4, &path->gateway);
	path->ifindex = rt->dst.dev->ifindex;
}

/**
 * dblp_route() - look a route up
 * @net: namespace
 * @path: way to the peer; the source address is filled in if it was open
 *
 * Return: the route with a reference, or an ERR_PTR().
 */
struct dst_entry *dblp_route(struct net *net, struct dblp_path *path)
{
	struct dst_entry *dst;
	struct flowi fl = path->fl;
	struct rtable *rt;

	if (path->family == AF_INET) {
		rt = ip_route_output_flow(net, &fl.u.ip4, NULL);
		if (IS_ERR(rt))
			return ERR_CAST(rt);
		if (rt->rt_flags & (RTCF_MULTICAST | RTCF_BROADCAST)) {
			ip_rt_put(rt);
			return ERR_PTR(-ENETUNREACH);
		}
		path->fl.u.ip4.saddr = fl.u.ip4.saddr;
		path->cookie = 0;
		dblp_path_hop4(path, rt);
		return &rt->dst;
	}

	dst = ip6_dst_lookup_flow(net, NULL, &fl.u.ip6, NULL);
	if (IS_ERR(dst))
		return dst;
	path->fl.u.ip6.saddr = fl.u.ip6.saddr;
	path->cookie = rt6_get_cookie((struct rt6_info *)dst);
	path->gateway = ((struct rt6_info *)dst)->rt6i_gateway;
	path->ifindex = dst->dev->ifindex;
	return dst;
}

/**
 * dblp_skb_alloc() - a packet with room for everything below us
 * @len: bytes of the linear part above UDP, besides an AUTH frame
 * @gfp: how to allocate
 */
struct sk_buff *dblp_skb_alloc(u32 len, gfp_t gfp)
{
	u32 room = MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr);
	struct sk_buff *skb;

	skb = alloc_skb(room + len + DBLP_AUTH_LEN, gfp);
	if (skb)
		skb_reserve(skb, room);
	return skb;
}

/*
 * Ask the egress program of the endpoint's cgroup, as IP does for sockets of its
 * own: it looks at skb->sk, which is ours, so that who filters by owner sees that.
 * The program sees the packet before netfilter does, and a train as one packet.
 * Returns 0, or the packet is gone.
 */
static int dblp_egress(struct sock *sk, struct sk_buff *skb,
		       const struct dst_entry *dst)
{
	struct sock *owner = skb->sk;
	int err;

	skb->dev = dst->dev;
	skb->sk = sk;
	err = BPF_CGROUP_RUN_PROG_INET_EGRESS(sk, skb);
	skb->sk = owner;
	if (err == NET_XMIT_SUCCESS || err == NET_XMIT_CN)
		return 0;
	kfree_skb(skb);
	return err;
}

/* ip6_xmit() writes the header when it is too late for that: here is one to be
 * looked at
 */
static int dblp_egress6(struct sock *usk, struct sk_buff *skb,
			const struct dst_entry *dst, const struct flowi6 *fl6,
			u8 tos)
{
	u32 len = skb->len;
	struct ipv6hdr *hdr;
	int err;

	if (!cgroup_bpf_enabled(CGROUP_INET_EGRESS))
		return 0;
	hdr = skb_push(skb, sizeof(*hdr));
	skb_reset_network_header(skb);
	ip6_flow_hdr(hdr, tos, fl6->flowlabel);
	hdr->payload_len = htons(len);
	hdr->nexthdr = IPPROTO_UDP;
	hdr->hop_limit = ip6_dst_hoplimit((struct dst_entry *)dst);
	hdr->saddr = fl6->saddr;
	hdr->daddr = fl6->daddr;
	skb->protocol = htons(ETH_P_IPV6);
	err = dblp_egress(usk, skb, dst);
	if (!err)
		skb_pull(skb, sizeof(*hdr));
	return err;
}

/* ip_queue_xmit() would take mark and priority from the UDP socket */
static int dblp_ip4_xmit(struct sock *sk, struct sk_buff *skb,
			 struct dst_entry *dst, const struct flowi4 *fl4,
			 u8 tos)
{
	struct net *net = sock_net(sk);
	struct iphdr *iph;
	int err;

	skb_push(skb, sizeof(*iph));
	skb_reset_network_header(skb);
	iph = ip_hdr(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = tos;
	iph->frag_off = 0;
	if (!skb->ignore_df && !dst_metric_locked(dst, RTAX_MTU) &&
	    !READ_ONCE(net->ipv4.sysctl_ip_no_pmtu_disc))
		iph->frag_off = htons(IP_DF);
	iph->ttl = ip4_dst_hoplimit(dst);
	iph->protocol = IPPROTO_UDP;
	iph->saddr = fl4->saddr;
	iph->daddr = fl4->daddr;
	ip_select_ident_segs(net, skb, NULL, skb_shinfo(skb)->gso_segs ?: 1);
	skb->mark = fl4->flowi4_mark;
	if (cgroup_bpf_enabled(CGROUP_INET_EGRESS)) {
		iph->tot_len = htons(skb->len);
		skb->protocol = htons(ETH_P_IP);
		err = dblp_egress(sk, skb, dst);
		if (err)
			return err;
	}
	return ip_local_out(net, sk, skb);
}

/**
 * dblp_ip_xmit() - send one packet, or a train of them
 * @ep: from whose UDP socket
 * @skb: what is above UDP, and the priority; consumed
 * @dst: route; a reference is taken
 * @path: addresses and ports
 * @tos: DSCP and ECN
 *
 * Context: softirq, or process with the socket locked.
 * Return: 0, or < 0 when it was dropped on this machine.
 */
int dblp_ip_xmit(struct dblp_endpoint *ep, struct sk_buff *skb,
		 struct dst_entry *dst, struct dblp_path *path, u8 tos)
{
	struct flowi6 *fl6 = &path->fl.u.ip6;
	struct sock *usk = ep->sock->sk;
	u32 ip_len = sizeof(struct ipv6hdr);
	u32 mtu = dst_mtu(dst);
	struct udphdr *uh;
	int err;

	if (path->mtu)
		mtu = min(mtu, path->mtu);
	if (path->family == AF_INET)
		ip_len = sizeof(struct iphdr);
	uh = __skb_push(skb, sizeof(*uh));
	skb_reset_transport_header(skb);
	uh->source = path->sport;
	uh->dest = path->dport;
	uh->len = htons(skb->len);
	uh->check = 0;
	/* Segments keep their size when the path's MTU shrinks under them */
	skb->ignore_df = !skb_is_gso(skb) && skb->len + ip_len > mtu;
	if (skb_is_gso(skb)) {
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_transport_header(skb) - skb->head;
		skb->csum_offset = offsetof(struct udphdr, check);
	}
	skb_dst_set(skb, dst_clone(dst));

	if (path->family == AF_INET) {
		struct flowi4 *fl4 = &path->fl.u.ip4;

		udp_set_csum(false, skb, fl4->saddr, fl4->daddr, skb->len);
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		IPCB(skb)->frag_max_size = skb->ignore_df ? mtu : 0;
		return dblp_ip4_xmit(usk, skb, dst, fl4, tos);
	}

	udp6_set_csum(false, skb, &fl6->saddr, &fl6->daddr, skb->len);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	IP6CB(skb)->frag_max_size = skb->ignore_df ? mtu : 0;
	err = dblp_egress6(usk, skb, dst, fl6, tos);
	if (err)
		return err;
	return ip6_xmit(usk, skb, fl6, fl6->flowi6_mark, NULL, tos,
			skb->priority);
}

/**
 * dblp_skb_addrs() - where a received packet comes from and goes to
 * @skb: packet as encap_rcv gets it, or behind its UDP header
 * @saddr: filled, may be NULL
 * @daddr: filled, may be NULL
 */
void dblp_skb_addrs(const struct sk_buff *skb, struct sockaddr_dblp *saddr,
		    struct sockaddr_dblp *daddr)
{
	const struct udphdr *uh = udp_hdr(skb);
	struct sockaddr_dblp s = { .sdblp_family = AF_DBLP };
	struct sockaddr_dblp d = { .sdblp_family = AF_DBLP };

	s.sdblp_port = uh->source;
	d.sdblp_port = uh->dest;
	if (skb->protocol == htons(ETH_P_IP)) {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &s.sdblp_addr);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &d.sdblp_addr);
	} else {
		s.sdblp_addr = ipv6_hdr(skb)->saddr;
		d.sdblp_addr = ipv6_hdr(skb)->daddr;
		s.sdblp_scope_id = ipv6_iface_scope_id(&s.sdblp_addr,
						       inet6_iif(skb));
		d.sdblp_scope_id = ipv6_iface_scope_id(&d.sdblp_addr,
						       inet6_iif(skb));
	}
	if (saddr)
		*saddr = s;
	if (daddr)
		*daddr = d;
}

/**
 * dblp_skb_source() - who is answerable for a received packet
 * @skb: packet as for dblp_skb_addrs()
 *
 * Return: its source address; the network of that, of IPv6, as whoever has one
 * address has 2^64.
 */
u64 dblp_skb_source(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return (__force u32)ip_hdr(skb)->saddr;
	return get_unaligned((const u64 *)&ipv6_hdr(skb)->saddr);
}

static bool dblp_addr_is_v4(const struct sockaddr_dblp *addr, __be32 v4)
{
	return addr->sdblp_addr.s6_addr32[3] == v4 &&
	       ipv6_addr_v4mapped(&addr->sdblp_addr);
}

/**
 * dblp_skb_is_from() - did a received packet come from this port, to this
 * address?
 * @skb: packet as for dblp_skb_addrs()
 * @peer: source address and port
 * @local: destination address
 */
bool dblp_skb_is_from(const struct sk_buff *skb,
		      const struct sockaddr_dblp *peer,
		      const struct sockaddr_dblp *local)
{
	if (udp_hdr(skb)->source != peer->sdblp_port)
		return false;
	if (skb->protocol == htons(ETH_P_IP))
		return dblp_addr_is_v4(peer, ip_hdr(skb)->saddr) &&
		       dblp_addr_is_v4(local, ip_hdr(skb)->daddr);
	return ipv6_addr_equal(&ipv6_hdr(skb)->saddr, &peer->sdblp_addr) &&
	       ipv6_addr_equal(&ipv6_hdr(skb)->daddr, &local->sdblp_addr);
}

/**
 * dblp_reply() - answer a packet without keeping state
 * @ep: where it came in
 * @to: the packet
 * @data: the answer
 * @len: its length in bytes
 *
 * Context: softirq, RCU.
 */
void dblp_reply(struct dblp_endpoint *ep, const struct sk_buff *to,
		const u8 *data, u32 len)
{
	struct dblp_sock *listener = rcu_dereference(ep->listener);
	struct sockaddr_dblp local, peer;
	struct dblp_path path;
	struct dst_entry *dst;
	struct sk_buff *skb;

	dblp_skb_addrs(to, &peer, &local);
	dblp_path_init(&path, &local, &peer,
		       listener ? &listener->sk : ep->sock->sk,
		       ep->sock->sk->sk_bound_dev_if);
	dst = dblp_route(ep->net, &path);
	if (IS_ERR(dst))
		goto err;
	skb = dblp_skb_alloc(len, GFP_ATOMIC);
	if (!skb)
		goto err_dst;

	skb_put_data(skb, data, len);
	skb->priority = DBLP_CTL_PRIORITY;
	if (dblp_ip_xmit(ep, skb, dst, &path, DBLP_CTL_TOS) < 0)
		DBLP_INC_STATS(ep->net, DBLP_MIB_XMITERROR);
	dst_release(dst);
	return;

err_dst:
	dst_release(dst);
err:
	DBLP_INC_STATS(ep->net, DBLP_MIB_XMITERROR);
}
