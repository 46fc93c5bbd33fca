// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path to the peer: routes, IP headers, path MTU and ECN, and their changes
 * during a connection.
 *
 * This file and endpoint.c have nearly all code that differs between IPv4 and
 * IPv6.
 */
#include <linux/bpf-cgroup.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/security.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/udp.h>

#include "dblp.h"

/* Set the fields of the socket that routing rules and IPsec policies match */
static void dblp_path_owner(struct dblp_path *path, struct sock *sk)
{
	path->fl.flowi_mark = READ_ONCE(sk->sk_mark);
	path->fl.flowi_uid = sock_net_uid(sock_net(sk), sk);
	security_sk_classify_flow(sk, &path->fl.u.__fl_common);
}

/**
 * dblp_path_init() - initialize the path to a peer, without looking up a route
 * @path: initialized here
 * @local: our address, :: if the route chooses it
 * @peer: address of the peer; it selects IPv4 or IPv6
 * @sk: socket that sends on the path
 * @ifindex: interface to use, 0 for any
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

/* RCU, because a route gets another device when its device is unregistered */
static int dblp_dst_ifindex(const struct dst_entry *dst)
{
	int ifindex;

	rcu_read_lock();
	ifindex = dst_dev_rcu(dst)->ifindex;
	rcu_read_unlock();
	return ifindex;
}

/* An IPv4 route may have an IPv6 gateway */
static void dblp_path_hop4(struct dblp_path *path, const struct rtable *rt)
{
	if (rt->rt_gw_family == AF_INET6)
		path->gateway = rt->rt_gw6;
	else
		ipv6_addr_set_v4mapped(rt->rt_gw4, &path->gateway);
	path->ifindex = dblp_dst_ifindex(&rt->dst);
}

/*
 * As for bound UDP sockets, only routes by the device of the flow count.
 * ip6_dst_lookup_flow() ignores the device of a flow with a source address,
 * unless it gets a bound socket of IPv6.
 */
static struct dst_entry *dblp_route6(struct net *net, struct flowi6 *fl)
{
	struct dst_entry *dst;
	int err;

	if (!fl->flowi6_oif || ipv6_addr_any(&fl->saddr))
		return ip6_dst_lookup_flow(net, NULL, fl, NULL);
	dst = ip6_route_output_flags(net, NULL, fl, RT6_LOOKUP_F_IFACE);
	err = dst->error;
	if (err) {
		dst_release(dst);
		return ERR_PTR(err);
	}
	return xfrm_lookup_route(net, dst, flowi6_to_flowi(fl), NULL, 0);
}

/**
 * dblp_route() - look up a route
 * @net: namespace
 * @path: path to the peer; sets the source address if the route chooses it
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

	if (!ipv6_mod_enabled())
		return ERR_PTR(-EAFNOSUPPORT);
	dst = dblp_route6(net, &fl.u.ip6);
	if (IS_ERR(dst))
		return dst;
	path->fl.u.ip6.saddr = fl.u.ip6.saddr;
	path->cookie = rt6_get_cookie((struct rt6_info *)dst);
	path->gateway = ((struct rt6_info *)dst)->rt6i_gateway;
	path->ifindex = dblp_dst_ifindex(dst);
	return dst;
}

/**
 * dblp_skb_alloc() - allocate a packet with headroom for lower layers
 * @len: bytes of the linear part after the UDP header, without an AUTH frame
 * @gfp: allocation flags
 */
struct sk_buff *dblp_skb_alloc(u32 len, gfp_t gfp)
{
	u32 room = MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr);
	struct sk_buff *skb;

	skb = alloc_skb(room + len + DBLP_AUTH_LEN, gfp | __GFP_NOWARN);
	if (skb)
		skb_reserve(skb, room);
	return skb;
}

/*
 * Run the egress program of the endpoint's cgroup, as IP does for its own
 * sockets. IP would use skb->sk, which must stay our socket for filters that
 * match its owner. The program gets the packet before netfilter, and a train as
 * one packet. Returns 0; otherwise the packet was freed.
 */
static int dblp_egress(struct sock *sk, struct sk_buff *skb,
		       const struct dst_entry *dst)
{
	struct sock *owner = skb->sk;
	int err;

	rcu_read_lock();
	skb->dev = dst_dev_rcu(dst);
	skb->sk = sk;
	err = BPF_CGROUP_RUN_PROG_INET_EGRESS(sk, skb);
	skb->sk = owner;
	/* IP sets it again */
	skb->dev = NULL;
	rcu_read_unlock();
	if (err == NET_XMIT_SUCCESS || err == NET_XMIT_CN)
		return 0;
	kfree_skb(skb);
	return err;
}

/*
 * The program needs an IPv6 header, but must run before ip6_xmit() writes it:
 * write one here for the program.
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

/* Not ip_queue_xmit(): it takes mark and priority of the UDP socket */
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
	if (!skb->ignore_df && !ip_mtu_locked(dst) &&
	    !READ_ONCE(net->ipv4.sysctl_ip_no_pmtu_disc))
		iph->frag_off = htons(IP_DF);
	iph->ttl = ip4_dst_hoplimit(dst);
	iph->protocol = IPPROTO_UDP;
	iph->saddr = fl4->saddr;
	iph->daddr = fl4->daddr;
	ip_select_ident_segs(net, skb, NULL, skb_shinfo(skb)->gso_segs ?: 1);
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
 * dblp_ip_xmit() - send a packet or a train
 * @ep: endpoint whose UDP socket sends it
 * @skb: UDP payload, with the priority set; consumed
 * @dst: route; a reference is taken
 * @path: addresses and ports
 * @tos: DSCP and ECN
 *
 * Context: softirq, or process with the socket locked.
 * Return: 0; > 0 if a queue of this machine was full; < 0 if the packet was
 * dropped here for another reason.
 */
int dblp_ip_xmit(struct dblp_endpoint *ep, struct sk_buff *skb,
		 struct dst_entry *dst, struct dblp_path *path, u8 tos)
{
	struct flowi6 *fl6 = &path->fl.u.ip6;
	struct sock *usk = ep->usk;
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
	/* Fragment packets that exceed a path MTU that has become smaller */
	skb->ignore_df = !skb_is_gso(skb) && skb->len + ip_len > mtu;
	if (skb_is_gso(skb)) {
		skb->ip_summed = CHECKSUM_PARTIAL;
		skb->csum_start = skb_transport_header(skb) - skb->head;
		skb->csum_offset = offsetof(struct udphdr, check);
	}
	skb_dst_set(skb, dst_clone(dst));
	skb->mark = path->fl.flowi_mark;

	if (!IS_ENABLED(CONFIG_IPV6) || path->family == AF_INET) {
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
 * dblp_reply() - answer a packet statelessly
 * @ep: endpoint that received the packet
 * @to: the packet
 * @data: the answer
 * @len: length of the answer in bytes
 *
 * Context: softirq, RCU.
 */
void dblp_reply(struct dblp_endpoint *ep, const struct sk_buff *to,
		const u8 *data, u32 len)
{
	struct dblp_sock *listener = rcu_dereference(ep->listener);
	struct sock *sk = listener ? &listener->sk : ep->usk;
	struct sockaddr_dblp local, peer;
	struct dblp_path path;
	struct dst_entry *dst;
	struct sk_buff *skb;

	/* A listener may have joined the endpoint from another cgroup */
	if (!dblp_same_policy(sk, ep->usk, CGROUP_INET_EGRESS))
		goto err;
	dblp_skb_addrs(to, &peer, &local);
	dblp_path_init(&path, &local, &peer, sk, dblp_skb_device(to, ep, sk));
	dst = dblp_route(ep->net, &path);
	if (IS_ERR(dst))
		goto err;
	skb = dblp_skb_alloc(len, GFP_ATOMIC);
	if (!skb)
		goto err_dst;

	skb_put_data(skb, data, len);
	skb->priority = DBLP_CTL_PRIORITY;
	if (dblp_ip_xmit(ep, skb, dst, &path, DBLP_CTL_TOS))
		DBLP_INC_STATS(ep->net, DBLP_MIB_XMITERROR);
	dst_release(dst);
	return;

err_dst:
	dst_release(dst);
err:
	DBLP_INC_STATS(ep->net, DBLP_MIB_XMITERROR);
}

/* Bytes of the IP and UDP headers of a packet */
static u32 dblp_path_overhead(const struct dblp_path *path)
{
	return sizeof(struct udphdr) + (path->family == AF_INET ?
					sizeof(struct iphdr) :
					sizeof(struct ipv6hdr));
}

static u32 dblp_path_route_mtu(const struct dst_entry *dst)
{
	return min_t(u32, dst_mtu(dst), DBLP_MTU_MAX);
}

/* The next hop has changed: restart PMTU discovery */
static void dblp_path_changed(struct dblp_sock *dsk,
			      const struct dst_entry *dst)
{
	bool v4 = dsk->path.family == AF_INET;

	dblp_pmtu_init(&dsk->pmtu, v4 ? DBLP_PMTU_MIN : IPV6_MIN_MTU,
		       v4 ? DBLP_PMTU_BASE : IPV6_MIN_MTU,
		       dblp_path_route_mtu(dst));
}

/**
 * dblp_conn_dst() - current route to the peer
 * @dsk: socket with a path
 *
 * Return: the route, with the socket's reference; NULL if there is none.
 */
struct dst_entry *dblp_conn_dst(struct dblp_sock *dsk)
{
	struct in6_addr gateway = dsk->path.gateway;
	int ifindex = dsk->path.ifindex;
	struct sock *sk = &dsk->sk;
	struct dst_entry *dst;

	sock_owned_by_me(&dsk->sk);
	dst = __sk_dst_check(sk, dsk->path.cookie);
	if (dst)
		return dst;
	/* SO_MARK and SO_BINDTODEVICE reset the route */
	dblp_path_owner(&dsk->path, sk);
	dsk->path.fl.flowi_oif = dsk->peer.sdblp_scope_id ?:
				 READ_ONCE(sk->sk_bound_dev_if);
	if (sk_dev_equal_l3scope(sk, dsk->path.fl.flowi_oif))
		dst = dblp_route(sock_net(sk), &dsk->path);
	else
		dst = ERR_PTR(-ENETUNREACH);
	if (IS_ERR(dst)) {
		WRITE_ONCE(sk->sk_err_soft, -PTR_ERR(dst));
		return NULL;
	}
	WRITE_ONCE(sk->sk_err_soft, 0);
	sk_dst_set(sk, dst);
	if (ifindex != dsk->path.ifindex ||
	    !ipv6_addr_equal(&gateway, &dsk->path.gateway))
		dblp_path_changed(dsk, dst);
	return dst;
}

/**
 * dblp_mss() - UDP payload of a full packet on the current path
 * @dsk: socket
 * @dstp: set to the route (no reference), may be NULL
 *
 * Return: bytes; before the first route, for the minimum MTU of IPv6.
 */
u32 dblp_mss(struct dblp_sock *dsk, struct dst_entry **dstp)
{
	struct dst_entry *dst = dblp_conn_dst(dsk);
	u32 mtu = IPV6_MIN_MTU;

	sock_owned_by_me(&dsk->sk);
	if (dst && !dsk->pmtu.max)
		dblp_path_changed(dsk, dst);
	else if (dst)
		dblp_pmtu_route(&dsk->pmtu, dblp_path_route_mtu(dst));
	if (dsk->pmtu.max)
		mtu = dsk->pmtu.mtu;
	dsk->path.mtu = mtu;
	if (dstp)
		*dstp = dst;
	mtu -= dblp_path_overhead(&dsk->path);
	dsk->cc.mss = mtu;
	return mtu;
}

/* UDP payload at the smallest path MTU, see dblp_pmtu_init() */
#define DBLP_MSS_MIN	(DBLP_PMTU_MIN - sizeof(struct iphdr) - \
			 sizeof(struct udphdr))
/* Bytes of a segment in such a packet, after the longest headers */
#define DBLP_ROOM_MIN	(DBLP_MSS_MIN - DBLP_HDR_LEN - DBLP_DATA_HDR_LEN - \
			 DBLP_META_LEN - DBLP_AUTH_LEN)

/**
 * dblp_seg_size() - message bytes in a full packet
 * @dsk: socket
 * @meta: packets also carry a META frame
 *
 * Return: a multiple of the element size.
 */
u32 dblp_seg_size(struct dblp_sock *dsk, bool meta)
{
	u32 room = dblp_mss(dsk, NULL) - DBLP_HDR_LEN - DBLP_DATA_HDR_LEN;

	sock_owned_by_me(&dsk->sk);
	/* Elements of any size fit, in segments of DBLP_SEG_MIN at least */
	BUILD_BUG_ON(DBLP_ROOM_MIN < DBLP_ELEMENT_MAX);
	BUILD_BUG_ON(DBLP_ROOM_MIN / 2 < DBLP_SEG_MIN);
	BUILD_BUG_ON(DBLP_MSS_MIN - DBLP_AUTH_LEN <
		     DBLP_HDR_LEN + DBLP_LOSSMAP_LEN_MAX);
	if (meta)
		room -= DBLP_META_LEN;
	room -= dblp_auth_len(dsk);
	return rounddown(room, dsk->opt.element);
}

/**
 * dblp_path_data_tos() - TOS byte of data packets to be sent
 * @dsk: socket
 * @n: number of packets
 *
 * Return: DSCP and ECN bits. With ECT(0), the packets are counted as marked.
 */
u8 dblp_path_data_tos(struct dblp_sock *dsk, u32 n)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->opt.ect || !dsk->cc.ops->ecn || !dblp_ecn_marks(&dsk->ecn))
		return dsk->opt.tos;
	dblp_ecn_sent(&dsk->ecn, n);
	return dsk->opt.tos | INET_ECN_ECT_0;
}

/* Count a path on which ECN has failed; @before: previous state */
static void dblp_count_ecn(const struct dblp_sock *dsk, u8 before)
{
	if (dsk->ecn.state == DBLP_ECN_FAILED && before != DBLP_ECN_FAILED)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ECNFAILED);
}

/**
 * dblp_path_ce() - CE marks newly reported by an ACK
 * @dsk: socket
 *
 * Return: number of packets newly reported with CE.
 */
u32 dblp_path_ce(struct dblp_sock *dsk)
{
	u8 before = dsk->ecn.state;
	u32 ce;

	sock_owned_by_me(&dsk->sk);
	ce = dblp_ecn_check(&dsk->ecn);
	dblp_count_ecn(dsk, before);
	return ce;
}

/* Packet size for PMTU discovery; 0 for a fragmented packet, no test */
static u32 dblp_path_size(const struct dblp_sock *dsk,
			  const struct dblp_sent_pkt *pkt)
{
	if (pkt->fragmented)
		return 0;
	return (pkt->probe ? pkt->seg : pkt->bytes) +
	       dblp_path_overhead(&dsk->path);
}

static void dblp_path_acked_one(struct dblp_sock *dsk,
				const struct dblp_sent_pkt *pkt, u64 now)
{
	if (pkt->probe) {
		dsk->tx.pto_count = 0;
		dsk->tx.progress = now;
	}
	if (dblp_tries_port(pkt))
		return;
	dblp_pmtu_acked(&dsk->pmtu, dblp_path_size(dsk, pkt), pkt->probe, now);
}

/**
 * dblp_path_acked() - packets were acknowledged
 * @dsk: socket
 * @pkt: first packet
 * @n: number of packets; all are probes, or none is
 */
void dblp_path_acked(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt,
		     u32 n)
{
	u32 before = dsk->pmtu.mtu, i;
	u64 now;

	sock_owned_by_me(&dsk->sk);
	for (i = 0; dsk->ecn.sent && i < n; i++)
		if (pkt[i].ect)
			dblp_ecn_acked(&dsk->ecn);
	if (!pkt->probe && dblp_pmtu_quiet(&dsk->pmtu))
		return;
	now = ktime_get_ns();
	for (i = 0; i < n; i++)
		dblp_path_acked_one(dsk, &pkt[i], now);
	if (dsk->pmtu.mtu < before)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUBLACKHOLE);
}

/**
 * dblp_path_lost() - a packet was declared lost
 * @dsk: socket
 * @pkt: the packet
 */
void dblp_path_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt)
{
	struct dblp_pmtu *p = &dsk->pmtu;
	u32 before = p->mtu;
	u8 ecn = dsk->ecn.state;

	sock_owned_by_me(&dsk->sk);
	if (pkt->ect) {
		dblp_ecn_lost(&dsk->ecn);
		dblp_count_ecn(dsk, ecn);
	}
	if (dblp_tries_port(pkt))
		return;
	dblp_pmtu_lost(p, dblp_path_size(dsk, pkt), pkt->probe,
		       ktime_get_ns());
	if (p->mtu < before)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUBLACKHOLE);
}

/**
 * dblp_path_timeout() - the probe timeout expired
 * @dsk: socket; @pto_count does not include this timeout yet
 *
 * It is not called if only PMTU probes were in flight, because their loss is no
 * sign of a dead path: see dblp_lose_size_probes().
 */
void dblp_path_timeout(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dblp_pmtu_timeout(&dsk->pmtu, dsk->tx.pto_count + 1);
	dblp_ecn_timeout(&dsk->ecn, dsk->tx.pto_count + 1);
	/* Rehash from the second timeout on: one may be a loss burst */
	if (dsk->tx.pto_count && sk_rethink_txhash(&dsk->sk))
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_REHASH);
}

/**
 * dblp_path_probe() - UDP payload of the next PMTU probe
 * @dsk: socket
 * @now: the time
 *
 * Probes are sent only while other packets are in flight, so that an idle
 * connection stays idle.
 *
 * Return: bytes; dblp_path_probed() must follow. 0 if no probe is due.
 */
u32 dblp_path_probe(struct dblp_sock *dsk, u64 now)
{
	struct dblp_pmtu *p = &dsk->pmtu;
	u32 size;

	sock_owned_by_me(&dsk->sk);
	if (!dsk->sent.inflight || dblp_pmtu_known(p))
		return 0;
	size = dblp_pmtu_next(p, now);
	if (!size)
		return 0;
	dsk->path.mtu = max(size, p->mtu);
	return size - dblp_path_overhead(&dsk->path);
}

/**
 * dblp_path_probed() - result of sending a PMTU probe
 * @dsk: socket
 * @probe: UDP payload of the probe, from dblp_path_probe()
 * @sent: the probe was sent
 */
void dblp_path_probed(struct dblp_sock *dsk, u32 probe, bool sent)
{
	sock_owned_by_me(&dsk->sk);
	if (sent)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUPROBE);
	else
		dblp_pmtu_unsent(&dsk->pmtu,
				 probe + dblp_path_overhead(&dsk->path));
	dsk->path.mtu = dsk->pmtu.mtu;
}
