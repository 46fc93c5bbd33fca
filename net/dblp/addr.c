// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source and destination of received packets: addresses, devices, links and
 * VRFs.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "dblp.h"

/**
 * dblp_skb_addrs() - source and destination of a received packet
 * @skb: packet with or without its UDP header, with the offsets of its headers
 *	set
 * @saddr: set to the source, may be NULL
 * @daddr: set to the destination, may be NULL
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
		/* The link; inet6_iif() would return its VRF */
		s.sdblp_scope_id = ipv6_iface_scope_id(&s.sdblp_addr,
						       IP6CB(skb)->iif);
		d.sdblp_scope_id = ipv6_iface_scope_id(&d.sdblp_addr,
						       IP6CB(skb)->iif);
	}
	if (saddr)
		*saddr = s;
	if (daddr)
		*daddr = d;
}

/**
 * dblp_skb_source() - source of a received packet, for limits per source
 * @skb: packet as for dblp_skb_addrs()
 *
 * Return: the IPv4 source address, or the /64 prefix of the IPv6 source
 * address, because a host can usually use any address with that prefix.
 */
u64 dblp_skb_source(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return (__force u32)ip_hdr(skb)->saddr;
	return get_unaligned((const u64 *)&ipv6_hdr(skb)->saddr);
}

/*
 * Is the destination of an IPv4 packet an address of this host alone? Then it
 * is also the address for an answer, which IP_PKTINFO has stored.
 */
static bool dblp_skb_is_unicast4(const struct sk_buff *skb)
{
	return PKTINFO_SKB_CB(skb)->ipi_spec_dst.s_addr == ip_hdr(skb)->daddr;
}

/**
 * dblp_skb_is_unicast() - was a packet sent from one host to this one alone?
 * @skb: packet as for dblp_skb_addrs()
 *
 * IP has dropped packets with a multicast source, and those with a loopback
 * address from outside.
 */
bool dblp_skb_is_unicast(const struct sk_buff *skb)
{
	const struct in6_addr *saddr = &ipv6_hdr(skb)->saddr;

	if (skb->pkt_type != PACKET_HOST)
		return false;
	if (skb->protocol == htons(ETH_P_IP))
		return dblp_skb_is_unicast4(skb);
	return !ipv6_addr_is_multicast(&ipv6_hdr(skb)->daddr) &&
	       !ipv6_addr_any(saddr) && !ipv6_addr_v4mapped(saddr);
}

/**
 * dblp_skb_is_via() - was a packet received by a device, or by a device of a
 *	VRF?
 * @skb: packet as for dblp_skb_addrs()
 * @ifindex: index of the device or VRF; 0 for any
 */
bool dblp_skb_is_via(const struct sk_buff *skb, int ifindex)
{
	int iif = skb->protocol == htons(ETH_P_IP) ? IPCB(skb)->iif :
						     IP6CB(skb)->iif;

	return !ifindex || ifindex == iif || ifindex == skb->skb_iif;
}

/* VRF that a packet was received in, or 0 */
static int dblp_skb_vrf(const struct sk_buff *skb)
{
	bool is = skb->protocol == htons(ETH_P_IP) ?
		  ipv4_l3mdev_skb(IPCB(skb)->flags) :
		  ipv6_l3mdev_skb(IP6CB(skb)->flags);

	return is ? skb->skb_iif : 0;
}

/**
 * dblp_skb_device() - device for answers to a packet
 * @skb: packet as for dblp_skb_addrs()
 * @ep: endpoint that received it
 * @sk: the listener, or the UDP socket if there is none
 *
 * As with TCP, a listener that is bound to no device accepts connections of
 * each VRF, and each connection stays in its VRF.
 *
 * Return: index of the device or VRF, 0 for any.
 */
int dblp_skb_device(const struct sk_buff *skb, const struct dblp_endpoint *ep,
		    const struct sock *sk)
{
	int bound = READ_ONCE(sk->sk_bound_dev_if) ?: ep->usk->sk_bound_dev_if;

	return bound && dblp_skb_is_via(skb, bound) ? bound : dblp_skb_vrf(skb);
}

static bool dblp_addr_is_of_link(const struct in6_addr *addr)
{
	return ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL;
}

/**
 * dblp_skb_zone() - network that the addresses of a packet belong to
 * @skb: packet as for dblp_skb_addrs(), or an ICMP error for one
 * @peer: address of the peer
 * @local: our address
 *
 * A link-local address is unique only on its link (a zone of RFC 4007), and any
 * address only in its VRF.
 *
 * Return: index of the link or of the VRF, 0 if there is none.
 */
int dblp_skb_zone(const struct sk_buff *skb, const struct in6_addr *peer,
		  const struct in6_addr *local)
{
	if (skb->protocol == htons(ETH_P_IPV6) &&
	    (dblp_addr_is_of_link(peer) || dblp_addr_is_of_link(local)))
		return IP6CB(skb)->iif;
	return dblp_skb_vrf(skb);
}

/**
 * dblp_skb_in_zone() - is a packet from the peer's link or VRF?
 * @skb: packet or ICMP error with the addresses of the connection
 * @dsk: the connection
 */
bool dblp_skb_in_zone(const struct sk_buff *skb, const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	/* Routes may lead to another VRF: the first answer determines it */
	if (READ_ONCE(dsk->state) == DBLP_STATE_INIT_SENT &&
	    !dsk->peer.sdblp_scope_id)
		return true;
	return dblp_skb_zone(skb, &dsk->peer.sdblp_addr,
			     &dsk->local.sdblp_addr) == dsk->peer_key.zone;
}

static bool dblp_addr_is_v4(const struct sockaddr_dblp *addr, __be32 v4)
{
	return addr->sdblp_addr.s6_addr32[3] == v4 &&
	       ipv6_addr_v4mapped(&addr->sdblp_addr);
}

/**
 * dblp_skb_is_between() - does a packet have the given addresses?
 * @skb: packet as for dblp_skb_addrs()
 * @peer: source address
 * @local: destination address
 */
bool dblp_skb_is_between(const struct sk_buff *skb,
			 const struct sockaddr_dblp *peer,
			 const struct sockaddr_dblp *local)
{
	if (skb->protocol == htons(ETH_P_IP))
		return dblp_addr_is_v4(peer, ip_hdr(skb)->saddr) &&
		       dblp_addr_is_v4(local, ip_hdr(skb)->daddr);
	return ipv6_addr_equal(&ipv6_hdr(skb)->saddr, &peer->sdblp_addr) &&
	       ipv6_addr_equal(&ipv6_hdr(skb)->daddr, &local->sdblp_addr);
}
