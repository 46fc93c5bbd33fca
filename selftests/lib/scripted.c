// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "scripted.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#define WAIT_MS	10000

void make_packet(struct packet *p, u8 type, u32 pn, u64 dcid)
{
	struct dblp_hdr h = { .type = type, .pn = pn, .dcid = dcid };

	memset(p->byte, 0, 256);
	p->len = dblp_put_hdr(p->byte, &h) - p->byte;
}

void put_bytes(struct packet *p, const void *bytes, u32 len)
{
	memcpy(p->byte + p->len, bytes, len);
	p->len += len;
}

void put_zero(struct packet *p, u32 len)
{
	memset(p->byte + p->len, 0, len);
	p->len += len;
}

void poke(struct packet *p, u32 at, u32 size, u64 value)
{
	while (size) {
		size--;
		p->byte[at + size] = value;
		value >>= 8;
	}
}

void put_word(struct packet *p, u32 word)
{
	poke(p, p->len, 4, word);
	p->len += 4;
}

void put_u64_be(struct packet *p, u64 v)
{
	poke(p, p->len, 8, v);
	p->len += 8;
}

void make_init(struct packet *p, u64 cid)
{
	make_packet(p, DBLP_PKT_INIT, 0, 0);
	put_u64_be(p, cid);
	put_zero(p, DBLP_INIT_LEN - p->len);
}

void make_echo(struct packet *p, const struct peer *peer,
	       const struct dblp_params *ours)
{
	make_packet(p, DBLP_PKT_COOKIE_ECHO, 0, peer->cookie.scid);
	put_u64_be(p, peer->cid);
	dblp_put_cookie(p->byte + p->len, &peer->cookie);
	p->len += DBLP_COOKIE_LEN;
	dblp_put_params(p->byte + p->len, ours);
	p->len += DBLP_PARAMS_LEN;
	put_u64_be(p, peer->cid);
}

void make_init_ack(struct packet *p, const struct peer *peer,
		   const struct dblp_cookie *cookie)
{
	make_packet(p, DBLP_PKT_INIT_ACK, 0, peer->scid);
	dblp_put_cookie(p->byte + p->len, cookie);
	p->len += DBLP_COOKIE_LEN;
	put_u64_be(p, peer->time);
}

void make_cookie_ack(struct packet *p, const struct peer *peer,
		     const struct dblp_params *ours)
{
	make_packet(p, DBLP_PKT_COOKIE_ACK, 0, peer->scid);
	dblp_put_params(p->byte + p->len, ours);
	p->len += DBLP_PARAMS_LEN;
	put_u64_be(p, peer->time);
}

void make_rst(struct packet *p, u64 dcid, u32 reason, u64 echo)
{
	make_packet(p, DBLP_PKT_RST, 0, dcid);
	put_word(p, reason);
	put_word(p, 0);
	put_u64_be(p, echo);
}

void add_frame(struct packet *p, const struct dblp_frame *f)
{
	bool data = (p->byte[0] & 0xf) == DBLP_PKT_DATA;
	u32 at = DBLP_HDR_LEN + (data ? DBLP_DATA_HDR_LEN : 0) + 4 * p->byte[1];
	u8 frame[DBLP_CTL_MAX];
	u32 len;
	u8 *end;

	if (!f)
		return;
	end = dblp_put_frame(frame, frame + sizeof(frame), f);
	errno = 0;
	if (!end)
		die("frame %u cannot be written", f->type);
	len = end - frame;
	memmove(p->byte + at + len, p->byte + at, p->len - at);
	memcpy(p->byte + at, frame, len);
	p->byte[1] += len / 4;
	p->len += len;
}

void add_filler(struct packet *p, u32 len)
{
	struct dblp_frame f;

	memset(&f, 0, sizeof(f));
	for (; len; len -= f.type == DBLP_FRAME_PING ? 12 : 8) {
		if (len < 8)
			die("no frames of %u bytes", len);
		f.type = len % 12 ? DBLP_FRAME_ARRIVAL : DBLP_FRAME_PING;
		add_frame(p, &f);
	}
}

void make_ctrl(struct packet *p, struct peer *peer, const struct dblp_frame *f)
{
	make_packet(p, DBLP_PKT_CTRL, peer->pn++, peer->scid);
	add_frame(p, f);
}

void send_frame(struct peer *peer, struct packet *p,
		const struct dblp_frame *f)
{
	make_ctrl(p, peer, f);
	send_packet(peer, p);
}

void send_fin(struct peer *peer, struct packet *p, u32 end)
{
	struct dblp_frame f = { .type = DBLP_FRAME_FIN, .fin.end = end };

	send_frame(peer, p, &f);
}

void half_close(struct peer *peer, int fd, enum half half, u32 end)
{
	struct packet p;

	if (half & HALF_PEER)
		send_fin(peer, &p, end);
	if (half & HALF_OURS && shutdown(fd, SHUT_WR))
		die("shutdown()");
}

void make_data(struct packet *p, struct peer *peer, const struct dblp_data *d,
	       u32 seg_size, const struct dblp_frame *f)
{
	u32 len = d->msg_len - d->offset;

	if (len > seg_size)
		len = seg_size;
	make_packet(p, DBLP_PKT_DATA, peer->pn++, peer->scid);
	poke(p, 2, 2, seg_size);
	dblp_put_data(p->byte + p->len, d);
	p->len += DBLP_DATA_HDR_LEN;
	add_frame(p, f);
	pattern_fill(p->byte + p->len, len, d->offset, SCRIPTED_SEED,
		     d->msg_id);
	p->len += len;
}

void send_data(struct peer *peer, struct packet *p, struct dblp_data *d,
	       u32 seg_size, u32 first, u32 n, const struct dblp_frame *f)
{
	for (; n; n--, first++) {
		d->offset = first * seg_size;
		send_one(peer, p, d, seg_size, f);
	}
}

void send_one(struct peer *peer, struct packet *p, const struct dblp_data *d,
		 u32 seg_size, const struct dblp_frame *f)
{
	make_data(p, peer, d, seg_size, f);
	send_packet(peer, p);
}

void send_zeromap(struct peer *peer, struct packet *p, const struct dblp_data *d,
		  u32 seg_size, const struct dblp_frame *f, const u32 *map, u32 words)
{
	make_zeros(p, peer, d, seg_size, f, map, words);
	send_packet(peer, p);
}

void send_echo(struct peer *peer, struct packet *p, const struct dblp_params *ours)
{
	make_echo(p, peer, ours);
	send_packet(peer, p);
}

void send_rst(struct peer *peer, struct packet *p, u64 dcid, u32 reason, u64 echo)
{
	make_rst(p, dcid, reason, echo);
	send_packet(peer, p);
}

void send_lossmap(struct peer *peer, struct packet *p, u32 id, u32 first, u32 word)
{
	u8 bits[4] = { word >> 24, word >> 16, word >> 8, word };
	struct dblp_frame f = FRAME(LOSSMAP, lossmap, .msg_id = id, .first = first, .words = 1,
				    .bits = bits);

	send_frame(peer, p, &f);
}

void make_zeros(struct packet *p, struct peer *peer, const struct dblp_data *d,
		u32 seg_size, const struct dblp_frame *f, const u32 *map,
		u32 words)
{
	struct dblp_data zeros = *d;

	zeros.zeros = true;
	make_packet(p, DBLP_PKT_DATA, peer->pn++, peer->scid);
	poke(p, 2, 2, seg_size);
	dblp_put_data(p->byte + p->len, &zeros);
	p->len += DBLP_DATA_HDR_LEN;
	add_frame(p, f);
	while (words--)
		put_word(p, *map++);
}

struct dblp_data packet_data(const struct packet *p)
{
	struct dblp_data d;
	struct dblp_hdr h;

	errno = 0;
	if (dblp_get_hdr(&h, p->byte, p->len) ||
	    dblp_get_data(&d, &h, p->byte + DBLP_HDR_LEN, p->len - DBLP_HDR_LEN,
			  p->len))
		die("received an invalid DATA packet");
	return d;
}

void sign_packets(const struct peer *peer, struct packet *p, u32 n)
{
	for (; peer->tags && n; n--, p++)
		if (p->len + DBLP_AUTH_LEN <= sizeof(p->byte))
			p->len = tags_sign(peer->tags, p->byte, p->len);
}

void send_packet(const struct peer *peer, const struct packet *p)
{
	struct packet signed_one;

	if (peer->tags) {
		signed_one.len = p->len;
		memcpy(signed_one.byte, p->byte, p->len);
		sign_packets(peer, &signed_one, 1);
		p = &signed_one;
	}
	/* Retry: the error may be the ICMP error of an earlier packet */
	if (send(peer->udp, p->byte, p->len, 0) < 0 &&
	    send(peer->udp, p->byte, p->len, 0) < 0)
		die("sending %u bytes of UDP", p->len);
}

void send_train(const struct peer *peer, const struct packet *p, u32 n)
{
	char control[CMSG_SPACE(sizeof(u16))] __attribute__((aligned(8))) = {};
	struct iovec iov[64];
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = n,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	u16 size = p[0].len;
	u32 i;

	errno = 0;
	for (i = 0; i < n; i++) {
		iov[i] = (struct iovec) { (void *)p[i].byte, p[i].len };
		if (i >= 64 || p[i].len > size || (p[i].len < size && i < n - 1))
			die("packet %u of %u bytes makes no train", i, p[i].len);
	}
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
	/* Retry, as in send_packet() */
	if (sendmsg(peer->udp, &msg, 0) < 0 && sendmsg(peer->udp, &msg, 0) < 0)
		die("sending a train of %u packets of %u bytes", n, size);
}

static void set_udp(const struct peer *peer, int option, int value)
{
	if (setsockopt(peer->udp, SOL_UDP, option, &value, sizeof(value)))
		die("option %d of UDP", option);
}

void *large_pages(u32 size, u32 n)
{
	/* The ring of a packet socket has such pages */
	struct tpacket_req req = {
		.tp_block_size = size, .tp_block_nr = n,
		.tp_frame_size = size, .tp_frame_nr = n,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	void *map = MAP_FAILED;

	if (!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		map = mmap(NULL, (size_t)size * n, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("%u pages of %u bytes", n, size);
	return map;
}

void splice_train(const struct peer *peer, void *pages, const struct packet *p,
		  u32 n)
{
	struct iovec iov = { .iov_base = pages };
	int pipes[2];
	u32 i;

	for (i = 0; i < n; i++) {
		memcpy((u8 *)pages + iov.iov_len, p[i].byte, p[i].len);
		iov.iov_len += p[i].len;
	}
	set_udp(peer, UDP_SEGMENT, p->len);
	/* Linux 6.1 splices page by page */
	set_udp(peer, UDP_CORK, 1);
	if (pipe(pipes) ||
	    vmsplice(pipes[1], &iov, 1, 0) != (ssize_t)iov.iov_len ||
	    splice(pipes[0], NULL, peer->udp, NULL, iov.iov_len, 0) !=
	    (ssize_t)iov.iov_len)
		die("splicing %zu bytes", iov.iov_len);
	set_udp(peer, UDP_CORK, 0);
	set_udp(peer, UDP_SEGMENT, 0);
	close(pipes[0]);
	close(pipes[1]);
}

static void to_sockaddr(struct sockaddr_in6 *sin6,
			const struct sockaddr_dblp *a)
{
	memset(sin6, 0, sizeof(*sin6));
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = a->sdblp_port;
	memcpy(&sin6->sin6_addr, &a->sdblp_addr, 16);
	sin6->sin6_scope_id = a->sdblp_scope_id;
}

void send_packet_to(const struct peer *peer, const struct packet *p,
		    const struct sockaddr_dblp *to)
{
	struct sockaddr_in6 sin6;

	to_sockaddr(&sin6, to);
	if (sendto(peer->udp, p->byte, p->len, 0, (struct sockaddr *)&sin6,
		   sizeof(sin6)) != (ssize_t)p->len)
		die("sendto()");
}

static u64 random_cid(void)
{
	u64 cid;

	if (getrandom(&cid, sizeof(cid), 0) != sizeof(cid))
		die("getrandom()");
	return cid | 1;
}

void peer_connect(struct peer *peer, const struct sockaddr_dblp *to)
{
	struct sockaddr_in6 sin6;

	memset(peer, 0, sizeof(*peer));
	peer->cid = random_cid();
	peer->udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	to_sockaddr(&sin6, to);
	if (peer->udp < 0 ||
	    connect(peer->udp, (struct sockaddr *)&sin6, sizeof(sin6)))
		die("UDP socket");
}

void peer_listen(struct peer *peer, const char *text, struct sockaddr_dblp *at)
{
	struct sockaddr_in6 sin6;
	socklen_t len = sizeof(sin6);

	memset(peer, 0, sizeof(*peer));
	peer->scid = 0;
	peer->cid = random_cid();
	peer->udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	addr_parse(at, text, 0);
	to_sockaddr(&sin6, at);
	if (peer->udp < 0 ||
	    bind(peer->udp, (struct sockaddr *)&sin6, sizeof(sin6)) ||
	    getsockname(peer->udp, (struct sockaddr *)&sin6, &len))
		die("UDP socket");
	at->sdblp_port = sin6.sin6_port;
}

void peer_close(struct peer *peer)
{
	close(peer->udp);
}

/* Returns false for an ACK older than the last one: CPUs can reorder packets */
static bool note_ack(struct peer *peer, const struct dblp_frame *f)
{
	bool newest = f->ack.range[0].last >= peer->largest_acked;
	u32 i, pn;

	if (newest)
		peer->largest_acked = f->ack.range[0].last;
	for (i = 0; i < f->ack.n; i++)
		for (pn = f->ack.range[i].first; pn <= f->ack.range[i].last &&
		     pn < 4096; pn++)
			peer->acked[pn] = true;
	return newest;
}

static void note_frames(struct peer *peer, const u8 *p, u32 len)
{
	struct dblp_frame f, share = { }, arrival = { };
	bool newest = false;

	while (len) {
		errno = 0;
		if (dblp_get_frame(&f, &p, &len) != DBLP_WIRE_OK)
			die("received an invalid frame (%u bytes left)", len);
		if (f.type == DBLP_FRAME_ACK)
			newest = note_ack(peer, &f);
		if (f.type == DBLP_FRAME_FLOW)
			peer->flow = f;
		if (f.type == DBLP_FRAME_SHARE)
			share = f;
		if (f.type == DBLP_FRAME_ARRIVAL)
			arrival = f;
		if (f.type == DBLP_FRAME_FIN)
			peer->n_fin++;
		if (f.type == DBLP_FRAME_CLOSE) {
			peer->close = f;
			peer->n_close++;
		}
		if (f.type == DBLP_FRAME_BUDGET)
			peer->budget = f;
		if (f.type == DBLP_FRAME_CANCEL) {
			peer->cancel = f;
			peer->n_cancel++;
		}
	}
	if (newest && share.type) {
		peer->share = share.share.n;
		peer->share_all = share.share.all;
	}
	if (newest && arrival.type) {
		peer->arrival = arrival.arrival.at;
		peer->n_arrival++;
	}
}

void peer_came(struct peer *peer, u32 pn)
{
	if (!peer->came.room) {
		dblp_ranges_init(&peer->came);
		dblp_ranges_grow(&peer->came, peer->came_mem);
	}
	dblp_ranges_add(&peer->came, pn);
	if (pn >= peer->largest)
		peer->largest = pn + 1;
}

static void note_packet(struct peer *peer, const struct packet *p)
{
	const u8 *rest = p->byte + DBLP_HDR_LEN;
	struct dblp_hdr h;

	errno = 0;
	if (dblp_get_hdr(&h, p->byte, p->len) != DBLP_WIRE_OK)
		die("received an invalid packet of %u bytes, first byte %#x", p->len,
		    p->byte[0]);
	if (peer->twin && h.dcid == peer->twin->cid)
		peer = peer->twin;
	peer->n[h.type]++;
	peer->bytes += p->len;
	peer->last[h.type].len = p->len;
	memcpy(peer->last[h.type].byte, p->byte, p->len);

	switch (h.type) {
	case DBLP_PKT_INIT:
		peer->time = dblp_get_u64(rest + 8);
		break;
	case DBLP_PKT_INIT_ACK:
		dblp_get_cookie(&peer->cookie, rest);
		peer->time = dblp_get_u64(rest + DBLP_COOKIE_LEN);
		break;
	case DBLP_PKT_COOKIE_ECHO:
		peer->time = dblp_get_u64(p->byte + DBLP_ECHO_LEN -
					  DBLP_TIME_LEN);
		break;
	case DBLP_PKT_COOKIE_ACK:
		peer->time = dblp_get_u64(rest + DBLP_PARAMS_LEN);
		if (dblp_get_params(&peer->theirs, rest) != DBLP_WIRE_OK)
			die("bad parameters in COOKIE-ACK");
		break;
	case DBLP_PKT_RST:
		peer->rst_reason = dblp_get_u64(rest) >> 32;
		peer->rst_echo = dblp_get_u64(rest + 8);
		break;
	case DBLP_PKT_DATA:
		note_frames(peer, rest + DBLP_DATA_HDR_LEN, h.ctl_len);
		break;
	default:
		note_frames(peer, rest, h.ctl_len);
	}
	if (h.type >= DBLP_PKT_CTRL)
		peer_came(peer, h.pn);
	if (peer->seen)
		peer->seen(peer, p);
}

/* Returns the type of the next packet, 0 after @ms */
static u8 take_packet(struct peer *peer, int ms)
{
	static struct packet p;
	struct sockaddr_in6 from;
	socklen_t len = sizeof(from);
	ssize_t ret;

	for (;;) {
		if (!wait_for(peer->udp, POLLIN | POLLERR, ms))
			return 0;
		ret = recvfrom(peer->udp, p.byte, sizeof(p.byte), MSG_DONTWAIT,
			       (struct sockaddr *)&from, &len);
		if (ret >= 0)
			break;
		/* Ignore ICMP errors */
		if (errno != ECONNREFUSED)
			die("receiving UDP");
	}
	p.len = ret;
	note_packet(peer, &p);
	/* As a server, connect to the sender of the first INIT */
	if (!peer->scid && (p.byte[0] & 0xf) == DBLP_PKT_INIT &&
	    connect(peer->udp, (struct sockaddr *)&from, len))
		die("connect()");
	return p.byte[0] & 0xf;
}

bool peer_expect(struct peer *peer, u8 type, int ms)
{
	uint64_t end = now_ms() + ms;
	u8 got;

	do {
		int64_t left = end - now_ms();

		got = take_packet(peer, left > 0 ? left : 0);
	} while (got && got != type);
	return got == type;
}

void peer_drain(struct peer *peer)
{
	while (take_packet(peer, 0))
		;
}

struct dblp_params params_default(void)
{
	return (struct dblp_params) {
		.cap		= DBLP_PPM,
		.max_msg	= 1000,
		.window		= 64 << 20,
		.max_data	= 64 << 20,
		.msg_max	= 32 << 20,
	};
}

void peer_get_cookie(struct peer *peer)
{
	struct packet p;

	make_init(&p, peer->cid);
	send_packet(peer, &p);
	errno = 0;
	if (!peer_expect(peer, DBLP_PKT_INIT_ACK, WAIT_MS))
		die("received no INIT-ACK");
}

void peer_handshake(struct peer *peer)
{
	struct dblp_params ours = params_default();
	struct packet p;

	ours.rtt_us = peer->rtt_us;
	ours.features = peer->features;
	peer_get_cookie(peer);
	peer->scid = peer->cookie.scid;
	if (peer->tags)
		tags_begin(peer->tags, peer->cid, &peer->cookie, true);
	make_echo(&p, peer, &ours);
	poke(&p, 2, 2, peer->ports);
	send_packet(peer, &p);
	errno = 0;
	if (!peer_expect(peer, DBLP_PKT_COOKIE_ACK, WAIT_MS))
		die("received no COOKIE-ACK");
}

int peer_join(struct peer *peer, const struct sockaddr_dblp *to, int listener)
{
	peer_connect(peer, to);
	peer_handshake(peer);
	return accept(listener, NULL, NULL);
}

/* Retry: the reply may have been dropped by a full receive buffer */
bool peer_ask(struct peer *peer, uint64_t wanted)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING, .ping = { wanted } };
	uint64_t end = now_ms() + WAIT_MS;
	struct packet p;
	u32 pn;

	do {
		pn = peer->pn;
		send_frame(peer, &p, &ping);
		while (!peer->acked[pn] && now_ms() < end)
			if (!take_packet(peer, WAIT_MS / 2))
				break;
	} while (!peer->acked[pn] && now_ms() < end);
	peer_drain(peer);
	return peer->acked[pn];
}

bool peer_sync(struct peer *peer)
{
	return peer_ask(peer, 0);
}

void peer_ack(struct peer *peer, u32 first, u32 last)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_ACK,
		.ack.n = 1,
		.ack.range = { { first, last } },
	};
	struct packet p;

	send_frame(peer, &p, &f);
}

struct dblp_frame frame_of_all(const struct peer *peer)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_ACK, .ack.n = peer->came.n,
	};
	u32 i;

	for (i = 0; i < f.ack.n; i++) {
		f.ack.range[i].first = peer->came.r[f.ack.n - 1 - i].first;
		f.ack.range[i].last = peer->came.r[f.ack.n - 1 - i].last;
	}
	return f;
}

void peer_ack_all(struct peer *peer)
{
	struct dblp_frame f = frame_of_all(peer);
	struct packet p;

	if (f.ack.n)
		send_frame(peer, &p, &f);
}

bool peer_ack_closes(struct peer *peer)
{
	unsigned int n;

	do {
		n = peer->n_close;
		peer_ack_all(peer);
		if (!peer_sync(peer))
			return false;
	} while (peer->n_close != n);
	return true;
}

u32 random_next(u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}
