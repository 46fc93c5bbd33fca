// SPDX-License-Identifier: GPL-2.0-only
/*
 * ICMP errors: which are believed, and what they change.
 *
 * Whoever knows the ports of a connection could forge an error, so one counts
 * only if the packet that it quotes carries what no stranger knows, a connection
 * ID. IP asks before it does anything itself: a "packet too big" that fails
 * here does not touch the route's MTU.
 */
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/ipv6.h>

#include "dblp.h"

/**
 * struct dblp_quote - what an ICMP error says of the packet that caused it
 * @key: whom it went to, and with which connection ID
 * @local: where it came from
 * @cid: of the sender, when @key has none: in the handshake
 */
struct dblp_quote {
	struct dblp_peer_key	key;
	struct sockaddr_dblp	local;
	u64			cid;
};

/* The packet may be cut behind the connection ID, but not before it */
static bool dblp_get_quote(struct dblp_quote *q, const struct sk_buff *skb,
			   u32 udp_offset)
{
	u8 buf[sizeof(struct udphdr) + DBLP_HDR_LEN + 8];
	const struct udphdr *uh;
	u32 len = skb->len - udp_offset;
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
	if (((const struct iphdr *)skb->data)->version == 4) {
		const struct iphdr *iph = (const struct iphdr *)skb->data;

		ipv6_addr_set_v4mapped(iph->daddr, &q->key.addr);
		ipv6_addr_set_v4mapped(iph->saddr, &q->local.sdblp_addr);
	} else {
		q->key.addr = ((const struct ipv6hdr *)skb->data)->daddr;
		q->local.sdblp_addr = ((const struct ipv6hdr *)skb->data)->saddr;
	}

	/* What does not fit the quote cannot be checked */
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

static bool dblp_quote_fits(const struct dblp_sock *dsk,
			    const struct dblp_quote *q, const struct sock *usk)
{
	const struct dblp_endpoint *ep = READ_ONCE(dsk->ep);

	return ep && ep->sock->sk == usk &&
	       dsk->peer.sdblp_port == q->key.port &&
	       dsk->local.sdblp_port == q->local.sdblp_port &&
	       ipv6_addr_equal(&dsk->peer.sdblp_addr, &q->key.addr) &&
	       ipv6_addr_equal(&dsk->local.sdblp_addr, &q->local.sdblp_addr);
}

/* The connection that perhaps sent the quoted packet, with a reference */
static struct dblp_sock *dblp_err_find(struct sock *usk,
				       const struct sk_buff *skb,
				       u32 udp_offset, struct dblp_quote *q)
{
	struct net *net = sock_net(usk);

	if (!dblp_get_quote(q, skb, udp_offset))
		return NULL;
	return q->cid ? dblp_conn_find(net, q->cid) :
			dblp_conn_find_peer(net, &q->key);
}

/**
 * dblp_err_lookup() - is an ICMP error for one of our connections genuine?
 * @usk: UDP socket
 * @skb: the error, from the IP header of the packet it quotes
 *
 * Context: softirq, RCU.
 * Return: 0 if it is; else IP drops it.
 */
int dblp_err_lookup(struct sock *usk, struct sk_buff *skb)
{
	struct dblp_sock *dsk;
	struct dblp_quote q;
	bool fits = false;

	dsk = dblp_err_find(usk, skb, skb_transport_offset(skb), &q);
	if (dsk) {
		bh_lock_sock(&dsk->sk);
		fits = dblp_quote_fits(dsk, &q, usk);
		bh_unlock_sock(&dsk->sk);
		sock_put(&dsk->sk);
	}
	if (!fits)
		DBLP_INC_STATS(sock_net(usk), DBLP_MIB_ICMPREFUSED);
	return fits ? 0 : -ENOENT;
}

static void dblp_err_apply(struct dblp_sock *dsk, int err)
{
	bool owned = sock_owned_by_user(&dsk->sk);

	if (err == EMSGSIZE && owned)
		set_bit(DBLP_DEFER_MTU, &dsk->deferred);
	else if (err == EMSGSIZE)
		dblp_mtu_reduced(dsk);
	else if (!owned && !dblp_auth_doubts(dsk, ECONNREFUSED))
		dblp_peer_gone(dsk, DBLP_RST_UNKNOWN);
}

/**
 * dblp_err_rcv() - an ICMP error that dblp_err_lookup() has let pass
 * @usk: UDP socket
 * @skb: the error, from the IP header of the packet it quotes
 * @err: errno that it stands for
 * @port: destination of the packet
 * @info: not used: the route knows its MTU by now
 * @payload: of the packet, behind its UDP header
 *
 * "Port unreachable" says that nobody has the peer's port any more. A
 * connection cannot survive that, as its peer's end lives in that UDP socket.
 * Other errors may pass.
 *
 * Context: softirq, RCU.
 */
void dblp_err_rcv(struct sock *usk, struct sk_buff *skb, int err, __be16 port,
		  u32 info, u8 *payload)
{
	struct dblp_sock *dsk;
	struct dblp_quote q;

	if (err != ECONNREFUSED && err != EMSGSIZE)
		return;
	dsk = dblp_err_find(usk, skb, payload - skb->data -
			    sizeof(struct udphdr), &q);
	if (!dsk)
		return;
	bh_lock_sock(&dsk->sk);
	if (dblp_quote_fits(dsk, &q, usk))
		dblp_err_apply(dsk, err);
	bh_unlock_sock(&dsk->sk);
	sock_put(&dsk->sk);
}
