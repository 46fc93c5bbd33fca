// SPDX-License-Identifier: GPL-2.0-only
/*
 * The way to the peer: which route, how large a packet may be on it, and what
 * is done when that changes under a connection.
 */
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>

#include "dblp.h"

/* Bytes of a packet around its UDP payload */
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

/* Another next hop: whatever was in the way may be gone, or be there now */
static void dblp_path_changed(struct dblp_sock *dsk, const struct dst_entry *dst)
{
	bool v4 = dsk->path.family == AF_INET;

	dblp_pmtu_init(&dsk->pmtu, v4 ? DBLP_PMTU_MIN : IPV6_MIN_MTU,
		       v4 ? DBLP_PMTU_BASE : IPV6_MIN_MTU,
		       dblp_path_route_mtu(dst));
}

/**
 * dblp_conn_dst() - the route to the peer as it is now
 * @dsk: socket with a path
 *
 * Return: the route, whose reference is the socket's; NULL if there is none.
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
	dst = dblp_route(sock_net(sk), &dsk->path);
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
 * dblp_mss() - UDP payload of a full packet on the present path
 * @dsk: socket
 * @dstp: where the route goes (no reference), may be NULL
 *
 * Return: bytes; what IPv6 guarantees when there has been no route yet.
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

/* UDP payload of the smallest packet that a path has to pass, see dblp_pmtu_init() */
#define DBLP_MSS_MIN	(DBLP_PMTU_MIN - sizeof(struct iphdr) - \
			 sizeof(struct udphdr))
/* What it has for a segment, with all that may come before */
#define DBLP_ROOM_MIN	(DBLP_MSS_MIN - DBLP_HDR_LEN - DBLP_DATA_HDR_LEN - \
			 DBLP_META_LEN - DBLP_AUTH_LEN)

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

	sock_owned_by_me(&dsk->sk);
	/* Elements of any size fit, and fill more than half of the room */
	BUILD_BUG_ON(DBLP_ROOM_MIN < DBLP_ELEMENT_MAX);
	BUILD_BUG_ON(DBLP_ROOM_MIN / 2 < DBLP_SEG_MIN);
	BUILD_BUG_ON(DBLP_MSS_MIN - DBLP_AUTH_LEN <
		     DBLP_HDR_LEN + DBLP_LOSSMAP_LEN_MAX);
	if (meta)
		room -= DBLP_META_LEN;
	room -= dblp_auth_len(dsk);
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
	sock_owned_by_me(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED)
		return;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUREDUCED);
	dblp_lose_larger(dsk, dblp_mss(dsk, NULL));
	dblp_push(dsk);
}

/**
 * dblp_path_data_tos() - TOS byte of data packets that are about to be sent
 * @dsk: socket
 * @n: how many
 *
 * Return: DSCP and ECN; they are noted as marked if it has ECT(0).
 */
u8 dblp_path_data_tos(struct dblp_sock *dsk, u32 n)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->cc.ops->ecn || !dblp_ecn_marks(&dsk->ecn))
		return dsk->tos;
	dblp_ecn_sent(&dsk->ecn, n);
	return dsk->tos | INET_ECN_ECT_0;
}

/**
 * dblp_path_ce() - congestion marks that an ACK has brought
 * @dsk: socket
 *
 * Return: packets newly reported with CE.
 */
u32 dblp_path_ce(struct dblp_sock *dsk)
{
	u8 before = dsk->ecn.state;
	u32 ce;

	sock_owned_by_me(&dsk->sk);
	ce = dblp_ecn_check(&dsk->ecn);
	if (dsk->ecn.state == DBLP_ECN_FAILED && before != DBLP_ECN_FAILED)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_ECNFAILED);
	return ce;
}

/* What became of a packet tells of the path, unless it went in pieces */
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
		dsk->pto_count = 0;
		dsk->progress = now;
	}
	dblp_pmtu_acked(&dsk->pmtu, dblp_path_size(dsk, pkt), pkt->probe, now);
}

/**
 * dblp_path_acked() - packets arrived
 * @dsk: socket
 * @pkt: the first of them
 * @n: how many; if one is a probe, all are
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

	sock_owned_by_me(&dsk->sk);
	if (pkt->ect)
		dblp_ecn_lost(&dsk->ecn);
	dblp_pmtu_lost(p, dblp_path_size(dsk, pkt), pkt->probe,
		       ktime_get_ns());
	if (p->mtu < before)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUBLACKHOLE);
}

/**
 * dblp_path_timeout() - the probe timeout expired
 * @dsk: socket; @pto_count counts this one
 *
 * Return: false if it means nothing: only probes of the path's size were in
 * flight, and those are as likely to vanish as not.
 */
bool dblp_path_timeout(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_lose_size_probes(dsk))
		return false;
	dblp_pmtu_timeout(&dsk->pmtu, dsk->pto_count + 1);
	dblp_ecn_timeout(&dsk->ecn, dsk->pto_count + 1);
	/* One may be the tail of a burst; two, and perhaps the path is dead */
	if (dsk->pto_count && sk_rethink_txhash(&dsk->sk))
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_REHASH);
	return true;
}

/**
 * dblp_path_probe() - is a probe of the path's size wanted?
 * @dsk: socket
 * @now: the time
 *
 * Only while others are in flight: an idle connection stays idle.
 *
 * Return: UDP payload of the probe in bytes; dblp_path_probed() has to follow. 0 if
 * there is to be none.
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
 * dblp_path_probed() - a probe of the path's size was to be sent
 * @dsk: socket
 * @sent: it was
 */
void dblp_path_probed(struct dblp_sock *dsk, bool sent)
{
	sock_owned_by_me(&dsk->sk);
	if (sent)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MTUPROBE);
	else
		dblp_pmtu_unsent(&dsk->pmtu);
	dsk->path.mtu = dsk->pmtu.mtu;
}
