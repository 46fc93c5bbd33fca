// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way to the peer: which route, how large a packet may be on it, and what
 * is done when that changes under a connection.
 */
#include "dblp.h"

/**
 * dblp_conn_dst() - the route to the peer as it is now
 * @dsk: socket with a path
 *
 * Return: the route, whose reference is the socket's; NULL if there is none.
 */
struct dst_entry *dblp_conn_dst(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;
	struct dst_entry *dst;

	dst = __sk_dst_check(sk, dsk->path.cookie);
	if (dst)
		return dst;
	dst = dblp_route(sock_net(sk), &dsk->path);
	if (IS_ERR(dst)) {
		WRITE_ONCE(sk->sk_err_soft, -PTR_ERR(dst));
		return NULL;
	}
	sk_dst_set(sk, dst);
	return dst;
}

/**
 * dblp_mss() - UDP payload of a full packet on the present path
 * @dsk: socket
 * @dstp: where the route goes (no reference), may be NULL
 *
 * Return: bytes; what IPv6 guarantees when there is no route.
 */
u32 dblp_mss(struct dblp_sock *dsk, struct dst_entry **dstp)
{
	struct dst_entry *dst = dblp_conn_dst(dsk);
	u32 mtu = dst ? dst_mtu(dst) : IPV6_MIN_MTU;
	u32 ip_len = sizeof(struct ipv6hdr);

	if (dsk->path.family == AF_INET)
		ip_len = sizeof(struct iphdr);
	if (dstp)
		*dstp = dst;
	mtu = clamp_t(u32, mtu, 576, DBLP_MTU_MAX);
	return mtu - ip_len - sizeof(struct udphdr);
}

/**
 * dblp_seg_size() - bytes of message in a full packet
 * @dsk: socket
 * @meta: packets carry a META frame besides
 *
 * Return: a multiple of the element size.
 */
u32 dblp_seg_size(struct dblp_sock *dsk, bool meta)
{
	u32 room = dblp_mss(dsk, NULL) - DBLP_HDR_LEN - DBLP_DATA_HDR_LEN;

	if (meta)
		room -= DBLP_META_LEN;
	return rounddown(room, dsk->element);
}

/**
 * dblp_mtu_reduced() - the path has become narrower for packets under way
 * @dsk: socket; the caller has a reference besides the socket's own
 *
 * What was too large is sent again at once, in fragments if it was cut for the
 * old size. It was no congestion that it did not arrive.
 */
void dblp_mtu_reduced(struct dblp_sock *dsk)
{
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	DBLP_INC_STATS(sock_net(&dsk->sk), DBLP_MIB_MTUREDUCED);
	dblp_lose_larger(dsk, dblp_mss(dsk, NULL));
	dblp_push(dsk);
}
