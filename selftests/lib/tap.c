// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "tap.h"

#include "sock.h"

#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/uio.h>

/* Newer than the headers of Debian 12 */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5
#endif
#ifndef TUN_F_USO4
#define TUN_F_USO4	0x20
#define TUN_F_USO6	0x40
#endif

#define FRAME_MAX	70000
#define PIECES		16

/* An Ethernet frame, and its virtio-net header */
struct frame {
	struct virtio_net_hdr	vnet;
	u32			len;
	u8			byte[FRAME_MAX];
};

static const u8 macs[12] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };

static u32 below(struct tap *t, u32 n)
{
	return random_next(&t->random) % n;
}

static void address(u8 *at, const char *text, bool v6)
{
	if (inet_pton(v6 ? AF_INET6 : AF_INET, text, at) != 1)
		die("address %s", text);
}

static void there(const struct tap *t, char *text, bool v6)
{
	/* The stack's address ends in 1 */
	strcpy(text, t->here[v6]);
	text[strlen(text) - 1] = '2';
}

/* Write a frame to the device, in one piece or several */
static bool put_frame(struct tap *t, struct frame *f)
{
	u32 left = f->len, at = 0, n = 1, len;
	struct iovec iov[PIECES + 1] = {
		{ &f->vnet, sizeof(f->vnet) },
	};
	ssize_t ret;

	/* The first piece becomes the linear part; it has all headers below AF_DBLP */
	for (; left && n < PIECES && t->kind == TAP_FRAGS; n++, at += len, left -= len) {
		len = n == 1 ? 64 + below(t, 64) : 1 + below(t, 900);
		if (len > left)
			len = left;
		/* The kernel accepts pieces of at most a page */
		iov[n] = (struct iovec) { f->byte + at, len };
	}
	if (t->kind == TAP_FRAGS && left > 4096) {
		t->refused++;
		return false;
	}
	if (left)
		iov[n++] = (struct iovec) { f->byte + at, left };
	ret = writev(t->fd, iov, n);
	if (ret < 0)
		t->refused++;
	return ret > 0;
}

static u8 *put_ip(const struct tap *t, u8 *at, u32 len, u32 id, u16 frag)
{
	char text[16];

	there(t, text, t->v6);
	memcpy(at, macs, sizeof(macs));
	at[12] = t->v6 ? 0x86 : 0x08;
	at[13] = t->v6 ? 0xdd : 0x00;
	at += ETH_HLEN;
	if (t->v6) {
		struct ip6_hdr ip = {
			.ip6_plen = htons(len), .ip6_nxt = IPPROTO_UDP,
			.ip6_hlim = 64,
		};

		ip.ip6_vfc = 6 << 4;
		address((u8 *)&ip.ip6_src, text, true);
		address((u8 *)&ip.ip6_dst, t->here[1], true);
		memcpy(at, &ip, sizeof(ip));
		return at + sizeof(ip);
	}
	struct iphdr ip = {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.id = htons(id), .frag_off = htons(frag),
		.tot_len = htons(len + sizeof(ip)),
	};

	address((u8 *)&ip.saddr, text, false);
	address((u8 *)&ip.daddr, t->here[0], false);
	ip.check = inet_checksum(inet_sum(0, &ip, sizeof(ip)));
	memcpy(at, &ip, sizeof(ip));
	return at + sizeof(ip);
}

/* Checksum of the pseudo-header */
static u32 pseudo_sum(const struct tap *t, u32 len)
{
	char text[16];
	u8 addrs[32];
	u32 size = t->v6 ? 16 : 4;

	there(t, text, t->v6);
	address(addrs, text, t->v6);
	address(addrs + size, t->here[t->v6], t->v6);
	return inet_sum(IPPROTO_UDP + len, addrs, 2 * size);
}

static u32 ip_len(const struct tap *t)
{
	return t->v6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr);
}

/* Write the UDP header before the payload */
static void put_udp(struct tap *t, struct frame *f, u32 bytes, bool partial)
{
	u32 len = sizeof(struct udphdr) + bytes, sum = pseudo_sum(t, len);
	u8 *at = f->byte + ETH_HLEN + ip_len(t);
	struct udphdr udp = {
		.source = t->from ?: t->port, .dest = t->to, .len = htons(len),
	};

	memset(&f->vnet, 0, sizeof(f->vnet));
	if (partial) {
		/* The kernel adds the checksum of the payload */
		udp.check = ~inet_checksum(sum);
		f->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		f->vnet.csum_start = at - f->byte;
		f->vnet.csum_offset = offsetof(struct udphdr, check);
	} else {
		sum = inet_sum(sum, &udp, sizeof(udp));
		udp.check = inet_checksum(inet_sum(sum, at + sizeof(udp), bytes));
		udp.check = udp.check ?: 0xffff;
	}
	memcpy(at, &udp, sizeof(udp));
	put_ip(t, f->byte, len, below(t, 65536), 0);
	f->len = ETH_HLEN + ip_len(t) + len;
	/* Requested length of the linear part; the kernel does not trust it */
	f->vnet.hdr_len = ETH_HLEN + below(t, 4) * below(t, 30) * 4;
	if (f->vnet.hdr_len > f->len)
		f->vnet.hdr_len = f->len;
}

static u8 *payload(const struct tap *t, struct frame *f)
{
	return f->byte + ETH_HLEN + ip_len(t) + sizeof(struct udphdr);
}

static void send_single(struct tap *t, struct frame *f, const struct packet *p)
{
	if (p->len > 65000)
		return;
	memcpy(payload(t, f), p->byte, p->len);
	put_udp(t, f, p->len, below(t, 2));
	put_frame(t, f);
}

/* Send all packets as one buffer, of UDP segments or one UFO datagram */
static bool send_buffer(struct tap *t, struct frame *f, const struct packet *p,
			u32 n, bool ufo)
{
	u32 bytes = 0, i;

	for (i = 0; i < n && bytes + p[i].len < 65000; bytes += p[i++].len)
		memcpy(payload(t, f) + bytes, p[i].byte, p[i].len);
	put_udp(t, f, bytes, true);
	f->vnet.gso_type = ufo ? VIRTIO_NET_HDR_GSO_UDP :
				 VIRTIO_NET_HDR_GSO_UDP_L4;
	f->vnet.gso_size = ufo ? 8 * (1 + below(t, 180)) : p->len;
	return put_frame(t, f);
}

/* Send a packet in random IP fragments, perhaps the last one first; IPv4 only */
static void send_fragments(struct tap *t, struct frame *f,
			   const struct packet *p)
{
	static struct frame part;
	u32 id = below(t, 65536), len, at, n, total;
	const u8 *from;

	if (p->len > 65000)
		return;
	memcpy(payload(t, f), p->byte, p->len);
	put_udp(t, f, p->len, false);
	from = f->byte + ETH_HLEN + ip_len(t);
	total = sizeof(struct udphdr) + p->len;
	for (at = 0; at < total; at += n) {
		len = 8 * (1 + below(t, 170));
		n = at + len < total ? len : total - at;
		memset(&part.vnet, 0, sizeof(part.vnet));
		memcpy(put_ip(t, part.byte, n, id,
			      at / 8 | (at + n < total ? IP_MF : 0)),
		       from + at, n);
		part.len = ETH_HLEN + ip_len(t) + n;
		put_frame(t, &part);
	}
}

void tap_send(struct tap *t, const struct packet *p, u32 n, enum tap_how how)
{
	static struct frame f;
	u32 i;

	if (how == TAP_TRAIN && t->uso && send_buffer(t, &f, p, n, false))
		return;
	if (how == TAP_UFO && send_buffer(t, &f, p, n, true))
		return;
	for (i = 0; i < n; i++)
		if (how == TAP_FRAGMENTS && !t->v6)
			send_fragments(t, &f, &p[i]);
		else
			send_single(t, &f, &p[i]);
}

/* Pass the packets of a frame that the stack sent to the test's socket */
static void take_frame(struct tap *t, const struct frame *f, u32 len)
{
	u32 hdr_len = ETH_HLEN + ip_len(t) + sizeof(struct udphdr), size, n;
	const u8 *at = f->byte + hdr_len;
	struct udphdr udp;

	if (len < hdr_len || f->byte[12] != (t->v6 ? 0x86 : 0x08) ||
	    at[-8 - (t->v6 ? 34 : 11)] != IPPROTO_UDP)
		return;
	memcpy(&udp, at - sizeof(udp), sizeof(udp));
	/* The source port may vary */
	if (udp.dest != t->port)
		return;
	t->to = t->to ?: udp.source;
	len -= hdr_len;
	size = f->vnet.gso_type ? f->vnet.gso_size : len;
	for (; len; len -= n, at += n) {
		n = size < len ? size : len;
		/* If the socket is full, the packet is lost */
		if (send(t->pair[1], at, n, MSG_DONTWAIT) < 0)
			return;
	}
}

static void *pump(void *arg)
{
	static _Thread_local struct frame f;
	static _Thread_local struct packet p;
	struct tap *t = arg, own = *t;
	struct iovec iov[2] = {
		{ &f.vnet, sizeof(f.vnet) }, { f.byte, sizeof(f.byte) },
	};
	struct pollfd fds[2] = {
		{ .fd = t->fd, .events = POLLIN },
		{ .fd = t->pair[1], .events = POLLIN },
	};
	ssize_t ret;

	own.random++;
	while (poll(fds, 2, -1) >= 0) {
		ret = fds[0].revents ? readv(t->fd, iov, 2) : 0;
		if (ret > (ssize_t)sizeof(f.vnet))
			take_frame(t, &f, ret - sizeof(f.vnet));
		if (!fds[1].revents)
			continue;
		ret = recv(t->pair[1], p.byte, sizeof(p.byte), 0);
		if (ret <= 0)
			break;
		p.len = ret;
		own.v6 = t->v6;
		own.port = t->port;
		own.to = t->to;
		send_single(&own, &f, &p);
	}
	return NULL;
}

/* Set a long GRO timeout, so that buffers are merged */
static void set_gro(const char *name)
{
	run("mkdir -p /run/tap-sys && mount -t sysfs none /run/tap-sys && "
	    "echo 500000 > /run/tap-sys/class/net/%s/gro_flush_timeout && "
	    "umount /run/tap-sys", name);
}

static void set_addresses(struct tap *t, const char *name, u32 net)
{
	char text[16];
	int i;

	snprintf(t->here[0], sizeof(t->here[0]), "10.8.%u.1", net);
	snprintf(t->here[1], sizeof(t->here[1]), "fd08:%u::1", net);
	run("ip link set %s address 02:00:00:00:00:01 up", name);
	for (i = 0; i < 2; i++) {
		there(t, text, i);
		run("ip addr add %s/%u dev %s%s", t->here[i], i ? 64 : 24, name,
		    i ? " nodad" : "");
		run("ip neigh add %s lladdr 02:00:00:00:00:02 dev %s", text,
		    name);
	}
}

void tap_open(struct tap *t, u32 net, enum tap_kind kind)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	unsigned int offload = TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6;

	memset(t, 0, sizeof(*t));
	t->kind = kind;
	t->random = 1 + net;
	if (kind != TAP_PLAIN)
		ifr.ifr_flags |= IFF_NAPI;
	if (kind == TAP_FRAGS)
		ifr.ifr_flags |= IFF_NAPI_FRAGS;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "tap%u", net);
	if (access("/dev/net/tun", F_OK))
		run("modprobe tun");
	t->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (t->fd < 0 || ioctl(t->fd, TUNSETIFF, &ifr) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, t->pair))
		die("tun");
	/* Since Linux 6.2 */
	t->uso = !ioctl(t->fd, TUNSETOFFLOAD, offload);
	if (!t->uso && ioctl(t->fd, TUNSETOFFLOAD, TUN_F_CSUM))
		die("TUNSETOFFLOAD");
	set_addresses(t, ifr.ifr_name, net);
	if (kind == TAP_GRO)
		set_gro(ifr.ifr_name);
	errno = 0;
	if (pthread_create(&t->thread, NULL, pump, t))
		die("pthread_create()");
}

void tap_peer(struct tap *t, struct peer *peer, bool v6, u16 port, u16 to)
{
	char rest[64];

	memset(peer, 0, sizeof(*peer));
	t->port = 0;
	while (recv(t->pair[0], rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	t->v6 = v6;
	t->to = to;
	t->port = port;
	peer->udp = t->pair[0];
	peer->cid = (u64)random_next(&t->random) << 32 | port | 1;
}
