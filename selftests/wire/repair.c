// SPDX-License-Identifier: GPL-2.0-only
/*
 * Order of retransmissions and new segments at a sender, and repeated frames of a receiver.
 * The other end is a scripted peer.
 */
#define _GNU_SOURCE
#include <linux/sockios.h>

#include "lib/peer.h"

#include <linux/sockios.h>
#include <netinet/in.h>

#define WAIT_MS		10000
#define HALF		(DBLP_PPM / 2)

/**
 * struct sent - segments received from the kernel, by offset
 * @distinct: number of different segments
 * @again: number of retransmitted segments
 * @before: @distinct when the first retransmission arrived
 * @seen: offsets received
 */
struct sent {
	u32	distinct;
	u32	again;
	u32	before;
	bool	seen[200000];
};

static void note_segment(struct sent *s, const struct packet *p)
{
	struct dblp_data d = packet_data(p);

	if (!s->seen[d.offset]) {
		s->seen[d.offset] = true;
		s->distinct++;
		return;
	}
	if (!s->again++)
		s->before = s->distinct;
}

/* Acknowledge all received packets except 2 and 4, which are lost */
static void ack_others(struct peer *peer, struct packet *p)
{
	struct dblp_frame f = {
		.type = DBLP_FRAME_ACK,
		.ack.n = 3,
		.ack.range = { { 5, peer->largest - 1 }, { 3, 3 }, { 0, 1 } },
	};

	if (peer->largest < 8)
		return;
	send_frame(peer, p, &f);
}

/*
 * Send a message, lose two of its segments, and see when they are retransmitted. The delay is
 * long, so that a busy machine does not cause a probe timeout.
 */
static struct sent lose_two(FIXTURE_DATA(peer) *self, u32 budget)
{
	static struct peer peer;
	static char buf[150000];
	struct dblp_sndinfo info = SNDINFO(budget, EARLY);
	struct sent s = { };
	int fd;

	if (system("tc qdisc add dev lo root netem delay 50ms"))
		die("tc");
	fd = peer_join(&peer, &self->addr, self->listener);
	/* The peer may be slower than the opening window */
	set_int(peer.udp, SO_RCVBUFFORCE, 4 << 20);
	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 0);
	if (sndinfo_send(fd, buf, sizeof(buf), 0, &info) != sizeof(buf))
		die("sendmsg()");
	while (s.again < 2) {
		if (!peer_expect(&peer, DBLP_PKT_DATA, WAIT_MS))
			die("%u segments came, %u again", s.distinct, s.again);
		note_segment(&s, &peer.last[DBLP_PKT_DATA]);
		ack_others(&peer, &self->p);
	}
	close(fd);
	peer_close(&peer);
	return s;
}

/* 150000 bytes are about a hundred segments */
TEST_F(peer, unsent_before_lost_when_repairing)
{
	struct sent s = lose_two(self, HALF);

	TH_LOG("the first one again after %u", s.before);
	EXPECT_LE(104, s.before);
	EXPECT_EQ(s.distinct, s.before);
}

TEST_F(peer, lost_before_unsent_without_a_budget)
{
	struct sent s = lose_two(self, 0);

	TH_LOG("the first one again after %u", s.before);
	EXPECT_GT(90, s.before);
}

static void acknowledge_until(FIXTURE_DATA(peer) *self, u32 complete)
{
	while (get_info(self->fd).msgs_sent_complete < complete) {
		peer_ack_all(&self->peer);
		if (!peer_sync(&self->peer))
			die("nothing is acknowledged");
	}
}

/* A peer that sends but acknowledges nothing gets more copies of a segment, or of a zero map,
 * than the counter can hold
 */
TEST_F(peer, copies_in_flight_are_counted)
{
	static char buf[1000] = { 1 };
	struct dblp_info info;
	int zeros, unsent;
	u64 probes;
	u32 n;

	/* Measure the round-trip time, from which the probe timeout follows */
	for (n = 0; n < 8; n++) {
		ASSERT_EQ(sizeof(buf), send(self->fd, buf, sizeof(buf), 0));
		acknowledge_until(self, n + 1);
	}
	for (zeros = 0; zeros < 2; zeros++) {
		buf[0] = !zeros;
		ASSERT_EQ(sizeof(buf), send(self->fd, buf, sizeof(buf), 0));
		probes = mib("PtoExpired");
		while (mib("PtoExpired") < probes + 150) {
			/* Each packet of the peer delays the probe, and silence does, too */
			sleep_ms(50);
			ASSERT_TRUE(peer_sync(&self->peer));
		}
		info = get_info(self->fd);
		EXPECT_EQ((n + 1) * sizeof(buf), info.bytes_first);
		EXPECT_EQ(zeros * sizeof(buf), info.bytes_elided);
		ASSERT_EQ(0, ioctl(self->fd, SIOCOUTQNSD, &unsent));
		EXPECT_EQ(0, unsent);
		acknowledge_until(self, n + 1 + zeros);
		ASSERT_EQ(0, ioctl(self->fd, SIOCOUTQNSD, &unsent));
		EXPECT_EQ(0, unsent);
	}
}

/* TOS or traffic class of the next packet */
static int next_tos(int udp, struct packet *p)
{
	char control[128] __attribute__((aligned(8)));
	struct iovec iov = { p->byte, sizeof(p->byte) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t len;

	if (!wait_for(udp, POLLIN, WAIT_MS))
		die("no packet came");
	len = recvmsg(udp, &msg, 0);
	if (len < 0)
		die("recvmsg()");
	p->len = len;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_IP && c->cmsg_type == IP_TOS)
			return *(unsigned char *)CMSG_DATA(c);
		if (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_TCLASS)
			return *(int *)CMSG_DATA(c);
	}
	errno = 0;
	die("no TOS came");
}

static void show_tos(int udp)
{
	int one = 1;

	if (setsockopt(udp, SOL_IPV6, IPV6_RECVTCLASS, &one, sizeof(one)) ||
	    setsockopt(udp, SOL_IP, IP_RECVTOS, &one, sizeof(one)))
		die("asking for the TOS");
}

/* Find the first frame of @type in a packet; false if it has none */
static bool find_frame(const struct packet *p, u8 type, struct dblp_frame *f)
{
	const u8 *at = p->byte + DBLP_HDR_LEN;
	struct dblp_hdr h;
	u32 len;

	if (dblp_get_hdr(&h, p->byte, p->len))
		return false;
	if (h.type == DBLP_PKT_DATA)
		at += DBLP_DATA_HDR_LEN;
	for (len = h.ctl_len; len && !dblp_get_frame(f, &at, &len);)
		if (f->type == type)
			return true;
	return false;
}

static bool has_close(const struct packet *p)
{
	struct dblp_frame f;

	return (p->byte[0] & 0xf) != DBLP_PKT_DATA &&
	       find_frame(p, DBLP_FRAME_CLOSE, &f);
}

/* Send one segment of two, with which the kernel closes the message */
static void have_closed(FIXTURE_DATA(peer) *self, u32 id)
{
	struct dblp_data d = {
		.msg_id = id, .msg_len = 1200, .budget = HALF,
		.policy = DBLP_POLICY_EAGER,
	};

	send_one(&self->peer, &self->p, &d, 600, NULL);
}

TEST_F(peer, closes_have_the_dscp_that_overtakes)
{
	static struct packet p;
	u32 n = 0;
	int tos;

	show_tos(self->peer.udp);
	have_closed(self, 0);
	/* The repeated CLOSE, too */
	while (n < 3) {
		tos = next_tos(self->peer.udp, &p);
		if (!has_close(&p))
			continue;
		EXPECT_EQ(0xb8, tos);
		n++;
	}
}

TEST_F(peer, closes_are_repeated_until_acknowledged)
{
	uint64_t end = now_ms() + WAIT_MS;
	u32 n;

	have_closed(self, 0);
	while (self->peer.n_close < 4 && now_ms() < end)
		peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS);
	ASSERT_EQ(4, self->peer.n_close);
	EXPECT_EQ(600, self->peer.close.close.missing);

	peer_drain(&self->peer);
	EXPECT_TRUE(peer_ack_closes(&self->peer));
	n = self->peer.n_close;
	/* No more follow within a time longer than the last interval */
	sleep_ms(1500);
	peer_drain(&self->peer);
	EXPECT_EQ(n, self->peer.n_close);
}

/*
 * Returns the next full segment of the second message. Nothing is acknowledged, also if the
 * first message is repeated in between.
 */
static const struct packet *next_of_second(FIXTURE_DATA(peer) *self)
{
	const struct packet *p = &self->peer.last[DBLP_PKT_DATA];
	struct dblp_data d;
	struct dblp_hdr h;

	while (peer_expect(&self->peer, DBLP_PKT_DATA, WAIT_MS)) {
		d = packet_data(p);
		if (dblp_get_hdr(&h, p->byte, p->len))
			die("not a packet");
		if (!d.msg_id)
			peer_ack(&self->peer, h.pn, h.pn);
		else if (d.offset + h.seg_size <= d.msg_len)
			return p;
	}
	errno = 0;
	die("no DATA of the second message came");
}

/*
 * Segments that were cut for a larger MTU leave no room for META, without which their message
 * cannot be closed: META is sent with them nevertheless.
 */
TEST_F(peer, meta_is_sent_after_the_mtu_has_shrunk)
{
	/* An earlier message delays it */
	static char front[150000], buf[15000];
	struct dblp_sndinfo info = { .tag = 77, .critical = 100 };
	const struct packet *p;
	struct dblp_frame f;
	u32 cut, i;

	pattern_fill(front, sizeof(front), 0, SCRIPTED_SEED, 0);
	pattern_fill(buf, sizeof(buf), 0, SCRIPTED_SEED, 1);
	ASSERT_EQ(sizeof(front), send(self->fd, front, sizeof(front), 0));
	ASSERT_EQ(sizeof(buf), sndinfo_send(self->fd, buf, sizeof(buf), 0,
					    &info));
	cut = get_info(self->fd).seg_size;
	netns_set_mtu(1300);
	for (i = 0; i < 4; i++) {
		p = next_of_second(self);
		EXPECT_LT(1300, p->len);
		EXPECT_LT(get_info(self->fd).seg_size, cut);
		ASSERT_TRUE(find_frame(p, DBLP_FRAME_META, &f));
		EXPECT_EQ(1, f.meta.msg_id);
		EXPECT_EQ(77, f.meta.tag);
		EXPECT_EQ(100, f.meta.critical);
		EXPECT_EQ(sizeof(buf), f.meta.total);
	}
}

/* Each ACK has the arrival time, for peers with this feature */
TEST_F(peer, arrival_times_are_reported)
{
	u64 sent, acked, again;
	struct peer other;
	u32 at, told;

	for (told = 0; told < 2; told++) {
		peer_connect(&other, &self->addr);
		other.features = told ? DBLP_FEATURE_ARRIVAL : 0;
		peer_handshake(&other);
		sent = now_ms();
		EXPECT_TRUE(peer_sync(&other));
		acked = now_ms();
		at = other.arrival;
		usleep(50000);
		again = now_ms();
		EXPECT_TRUE(peer_sync(&other));
		EXPECT_EQ(told, other.n_arrival >= 2);
		at = other.arrival - at;
		if (told) {
			EXPECT_GE(at, (again - acked - 1) * 1000000);
			EXPECT_LE(at, (now_ms() - sent + 1) * 1000000);
		}
		peer_close(&other);
	}
}

/* Increase of the count of sent bytes by a packet of 600 bytes, and maximum increase by the
 * PINGs of peer_sync()
 */
#define SHARE_OF_600	(600 / DBLP_SHARE_UNIT)
#define SHARE_OF_SYNC	(128 / DBLP_SHARE_UNIT + 1)

/* Each ACK has the number of present senders, and the bytes that all have sent */
TEST_F(peer, the_number_of_senders_is_reported)
{
	static struct peer others[15], stranger;
	struct dblp_data d = { .msg_len = 1200 };
	struct sockaddr_dblp addr;
	int listener;
	u32 i, all;

	for (i = 0; i < 15; i++) {
		peer_connect(&others[i], &self->addr);
		peer_handshake(&others[i]);
		send_one(&others[i], &self->p, &d, 600, NULL);
		EXPECT_TRUE(peer_sync(&others[i]));
		/* A single sender gets no SHARE frame */
		EXPECT_EQ(i ? i + 1 : 0, others[i].share);
	}
	for (i = 0; i < 15; i++) {
		EXPECT_TRUE(peer_sync(&others[i]));
		EXPECT_EQ(15, others[i].share);
	}
	EXPECT_LE(15 * SHARE_OF_600, others[14].share_all);
	EXPECT_GE(15 * (SHARE_OF_600 + 2 * SHARE_OF_SYNC), others[14].share_all);
	EXPECT_TRUE(peer_sync(&others[4]));
	all = others[4].share_all;
	/* One sender has finished */
	d.offset = 600;
	send_one(&others[3], &self->p, &d, 600, NULL);
	EXPECT_TRUE(peer_sync(&others[3]));
	EXPECT_TRUE(peer_sync(&others[4]));
	EXPECT_EQ(14, others[4].share);
	EXPECT_LE(SHARE_OF_600, others[4].share_all - all);
	EXPECT_GE(SHARE_OF_600 + 2 * SHARE_OF_SYNC, others[4].share_all - all);
	all = others[4].share_all;
	/* Connections to another listener do not count */
	listener = new_listener("::1", 4, &addr);
	peer_connect(&stranger, &addr);
	peer_handshake(&stranger);
	d.offset = 0;
	send_one(&stranger, &self->p, &d, 600, NULL);
	EXPECT_TRUE(peer_sync(&stranger));
	EXPECT_EQ(0, stranger.share);
	EXPECT_TRUE(peer_sync(&others[4]));
	EXPECT_EQ(14, others[4].share);
	EXPECT_GE(SHARE_OF_SYNC, others[4].share_all - all);
	peer_close(&stranger);
	close(listener);
	for (i = 0; i < 15; i++)
		peer_close(&others[i]);
}

/*
 * A full queue before a slow link, which is the only path in this namespace: it has segments,
 * and a CLOSE that makes them useless.
 */
#define QUEUED		400U
#define TC		"tc qdisc add dev lo "

FIXTURE(queue) {
	PLAYED_CONNECTION;
};

FIXTURE_VARIANT(queue) {
	const char *address;
	const char *qdisc;
};

/* Queues that use skb->priority; then queues that use the DSCP, as routers do */
FIXTURE_VARIANT_ADD(queue, pfifo_fast_ipv4) {
	.address = "127.0.0.1", .qdisc = TC "parent 1:1 pfifo_fast",
};

FIXTURE_VARIANT_ADD(queue, pfifo_fast_ipv6) {
	.address = "::1", .qdisc = TC "parent 1:1 pfifo_fast",
};

FIXTURE_VARIANT_ADD(queue, prio_ipv6) {
	.address = "::1", .qdisc = TC "parent 1:1 prio",
};

#define BY_DSCP(match) \
	TC "parent 1:1 handle 10: prio priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 && " \
	"tc filter add dev lo parent 10: " match " flowid 10:1"

FIXTURE_VARIANT_ADD(queue, dscp_ipv4) {
	.address = "127.0.0.1",
	.qdisc = BY_DSCP("protocol ip u32 match ip tos 0xb8 0xfc"),
};

FIXTURE_VARIANT_ADD(queue, dscp_ipv6) {
	.address = "::1",
	.qdisc = BY_DSCP("protocol ipv6 u32 match ip6 priority 0xb8 0xfc"),
};

FIXTURE_SETUP(queue)
{
	netns_new();
	netns_set_mtu(1500);
	self->listener = new_listener(variant->address, 1, &self->addr);
	self->fd = peer_join(&self->peer, &self->addr, self->listener);
	ASSERT_LE(0, self->fd);
	set_int(self->peer.udp, SO_SNDBUFFORCE, 4 << 20);
	ASSERT_EQ(0, system(TC "root handle 1: tbf rate 10mbit burst 4000 "
			    "limit 10000000"));
	ASSERT_EQ(0, system(variant->qdisc));
}

FIXTURE_ENDS_BY_EXIT(queue);

/* Memory of the peer's packets in the queue, bytes */
static int queued(const struct peer *peer)
{
	int bytes;

	if (ioctl(peer->udp, SIOCOUTQ, &bytes))
		die("SIOCOUTQ");
	return bytes;
}

/* Half of the message has arrived, the other half is in the queue */
TEST_F(queue, a_close_overtakes_a_full_queue)
{
	struct dblp_data d = {
		.msg_len = QUEUED * 1400, .budget = HALF,
		.policy = DBLP_POLICY_EAGER,
	};
	uint64_t start = now_ms(), closed;
	int all, left;

	send_data(&self->peer, &self->p, &d, 1400, 0, QUEUED, NULL);
	all = queued(&self->peer);
	while (!self->peer.n_close)
		ASSERT_TRUE(peer_expect(&self->peer, DBLP_PKT_CTRL, WAIT_MS));
	left = queued(&self->peer);
	closed = now_ms();
	EXPECT_EQ(DBLP_REASON_BUDGET, self->peer.close.close.reason);
	EXPECT_LE(all / 4, left);
	while (queued(&self->peer) && now_ms() < closed + WAIT_MS)
		sleep_ms(5);
	TH_LOG("stopped after %u ms, with %d of %d bytes queued; empty after %u ms",
	       (u32)(closed - start), left, all, (u32)(now_ms() - start));
}

TEST_HARNESS_MAIN
