/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Since Linux 6.2, encap_err_rcv() gets the errno of an ICMP error. Since Linux
 * 7.3 at the latest, setup_udp_tunnel_sock() gets a struct sock instead of a
 * struct socket.
 */
#ifndef _NET_DBLP_COMPAT_NET_UDP_TUNNEL_H
#define _NET_DBLP_COMPAT_NET_UDP_TUNNEL_H

#include_next <net/udp_tunnel.h>

#ifdef DBLP_LACKS_UDP_TUNNEL_SK
static inline void dblp_compat_sk_setup(struct net *net, struct sock *sk,
					struct udp_tunnel_sock_cfg *cfg)
{
	setup_udp_tunnel_sock(net, sk->sk_socket, cfg);
}

#define setup_udp_tunnel_sock	dblp_compat_sk_setup
#endif

#ifdef DBLP_LACKS_ERR_RCV_ARGS
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <net/icmp.h>

typedef void (*dblp_compat_err_rcv_t)(struct sock *sk, struct sk_buff *skb,
				      int err, __be16 port, u32 info,
				      u8 *payload);

/* All UDP sockets of the module have the same callback */
static dblp_compat_err_rcv_t dblp_compat_err_rcv;

static int dblp_compat_icmp_errno(const struct sk_buff *skb)
{
	int err = 0;

	if (ip_hdr(skb)->version == 6) {
		icmpv6_err_convert(icmp6_hdr(skb)->icmp6_type,
				   icmp6_hdr(skb)->icmp6_code, &err);
		return err;
	}
	if (icmp_hdr(skb)->type == ICMP_DEST_UNREACH &&
	    icmp_hdr(skb)->code <= NR_ICMP_UNREACH)
		err = icmp_err_convert[icmp_hdr(skb)->code].errno;
	return err;
}

static void dblp_compat_err_thunk(struct sock *sk, struct sk_buff *skb,
				  unsigned int udp_offset)
{
	struct udphdr *uh = (struct udphdr *)(skb->data + udp_offset);

	if (!pskb_may_pull(skb, udp_offset + sizeof(*uh)))
		return;
	uh = (struct udphdr *)(skb->data + udp_offset);
	dblp_compat_err_rcv(sk, skb, dblp_compat_icmp_errno(skb), uh->dest, 0,
			    (u8 *)(uh + 1));
}

struct dblp_compat_udp_tunnel_sock_cfg {
	void			*sk_user_data;
	u8			encap_type;
	udp_tunnel_encap_rcv_t	encap_rcv;
	udp_tunnel_encap_err_lookup_t encap_err_lookup;
	dblp_compat_err_rcv_t	encap_err_rcv;
};

static inline void
dblp_compat_setup(struct net *net, struct sock *sk,
		  struct dblp_compat_udp_tunnel_sock_cfg *cfg)
{
	struct udp_tunnel_sock_cfg old = {
		.sk_user_data = cfg->sk_user_data,
		.encap_type = cfg->encap_type,
		.encap_rcv = cfg->encap_rcv,
		.encap_err_lookup = cfg->encap_err_lookup,
		.encap_err_rcv = dblp_compat_err_thunk,
	};

	dblp_compat_err_rcv = cfg->encap_err_rcv;
	setup_udp_tunnel_sock(net, sk, &old);
}

#undef setup_udp_tunnel_sock
#define udp_tunnel_sock_cfg	dblp_compat_udp_tunnel_sock_cfg
#define setup_udp_tunnel_sock	dblp_compat_setup
#endif

#endif
