// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets in one buffer, whether the sender or the stack has put them there, must be
 * processed as if each had arrived alone in its own memory. Therefore each test sends its
 * packets to several equal connections: one by one, as a train, and both in pages that are
 * not copied on the way. Counters, ACKs, answers and messages must be the same.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "lib/scripted.h"
#include "lib/sock.h"

#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define WAIT_MS		10000

/* Messages of twelve segments; full packets have the same length in any train */
#define SEG		600U
#define SEGS		12U
#define LENGTH		(SEG * SEGS - 100)
#define PACKET		(DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + SEG)
/* More bytes than META and AUTH have: such packets are parsed in a copy */
#define FRAMES		60U
#define TRAIN		16U
#define PAGES		(4 * 4096)

/* Ways to send packets; on a cable only the first two */
enum way { ALONE, TOGETHER, ALONE_IN_PAGES, TOGETHER_IN_PAGES, WAYS };

/**
 * struct side - one of the receivers
 * @netns: its namespace
 * @out: namespace of its senders, may be the same
 * @listener: AF_DBLP listener
 * @fd: two connections
 * @peer: their scripted peers; both send from one address and port
 * @guest: a client at the same address and port that has a cookie
 * @stranger: another client, at another port
 * @over: the first connection has ended, so that packets to it get no ACK
 */
struct side {
	int			netns;
	int			out;
	int			listener;
	int			fd[2];
	struct peer		peer[2];
	struct peer		guest;
	struct peer		stranger;
	bool			over;
};

static void side_begin(struct side *s, const char *at, bool cable, bool gro)
{
	struct sockaddr_dblp addr;
	int i;

	memset(s, 0, sizeof(*s));
	one_cpu();
	netns_new();
	s->netns = netns_this();
	s->out = s->netns;
	/* The stack segments trains on output, and GRO makes them again on input */
	if (cable)
		s->out = netns_cable(gro ? "gro on" : "gro off",
				     "tx-udp-segmentation off tso off");
	else
		netns_set_mtu(1500);
	s->listener = new_listener(cable ? "10.9.0.2" : at, 8, &addr);
	netns_set(s->out);
	peer_connect(&s->stranger, &addr);
	peer_connect(&s->guest, &addr);
	peer_get_cookie(&s->guest);
	for (i = 0; i < 2; i++) {
		peer_connect(&s->peer[i], &addr);
		close(s->peer[i].udp);
		s->peer[i].udp = s->guest.udp;
		s->peer[i].twin = &s->peer[!i];
		peer_handshake(&s->peer[i]);
		s->fd[i] = accept(s->listener, NULL, NULL);
		if (s->fd[i] < 0)
			die("accept()");
	}
	netns_set(s->netns);
}

static void side_end(struct side *s)
{
	close(s->fd[0]);
	close(s->fd[1]);
	close(s->listener);
	peer_close(&s->peer[0]);
	peer_close(&s->stranger);
	close(s->out);
	if (s->netns != s->out)
		close(s->netns);
}

/*
 * Kinds of packets of a train. Each has PACKET bytes, except the last. Or all have another
 * length: PACKET + FRAMES, or that of a handshake packet or RST.
 */
enum wagon {
	END,
	NEXT,		/* the next segment */
	BACK,		/* the last segment not sent yet: from the end */
	OTHER,		/* the next segment of message 1 */
	SKIP,		/* NEXT, after unused packet numbers */
	REPEATED,	/* duplicate of the packet before it */
	AGAIN,		/* segment 0 with a new packet number */
	ALTERED,	/* segment 0 with a new packet number and other contents */
	NEIGHBOUR,	/* of the second connection */
	UNKNOWN,	/* of an unknown connection */
	NOBODY,		/* of connection ID 0 */
	VERSION,	/* NEXT, but of version 2 */
	TYPE,		/* ... of an unknown type */
	NO_TRAIN,	/* ... with the type of INIT, which has another length */
	SIZE,		/* ... with a segment size of a byte less */
	LONGER,		/* ... with a longer length of control frames */
	RESERVED,	/* ... with a reserved bit */
	BUDGET,		/* ... with a budget of more than 100 % */
	LENGTH_0,	/* ... of an empty message */
	OFFSET,		/* ... between segments */
	OTHER_LENGTH,	/* ... of a longer message */
	OTHER_POLICY,	/* ... with policy early */
	FAR,		/* ... of a message beyond the credit */
	PINGS,		/* CTRL */
	BAD_PING,	/* CTRL with one invalid frame */
	PROBE,
	BAD_PROBE,	/* with contents that are not zero */
	RESET,		/* RST that is too long */
	RST,		/* RST that ends the connection */
	FORGED,		/* RST without both connection IDs */
	HELLO,		/* INIT */
	FOREIGN,	/* INIT, of version 2 */
	BAD_HELLO,	/* INIT with nonzero padding */
	ECHO,		/* COOKIE-ECHO of this connection */
	GUEST,		/* COOKIE-ECHO that makes another connection */
	BAD_COOKIE,	/* COOKIE-ECHO with an invalid cookie */
	COOKIE,		/* INIT-ACK */
	WELCOME,	/* COOKIE-ACK */
	SPOKEN,		/* VERSION */
	SPOKEN_ELSE,	/* VERSION, of another version */
	ZEROS,		/* the next whole message, in a zero map */
	BAD_ZEROS,	/* ... of no segment */
	ACK,		/* last: ACK of nothing, 16 bytes */
	SHORT,		/* last: NEXT, a byte too short */
	HEADER,		/* last: NEXT without its data */
	HALF,		/* last: half of NEXT's header */
	BYTE,		/* last: a byte of NEXT */
	LAST,		/* last: the last segment of message 0 */
	FRAMED,		/* NEXT, with frames without effect */
	NEWS,		/* NEXT, with ACK and FLOW */
	BAD_NEWS,	/* NEWS with an invalid second frame */
	META,		/* the next segment of message 2, which has META */
	BAD_META,	/* ... of another message */
	TAGGED,		/* NEXT with a tag, without a key */
	EARLY_TAG,	/* NEXT, with a tag before another frame */
	FIN,		/* CTRL with FIN and frames without effect */
};

/**
 * struct maker - makes a train
 * @side: receiver
 * @next: next segment of message 0
 * @back: next segment of message 0 from the end
 * @other: next segment of message 1
 * @meta: next segment of message 2
 * @zeros: next message of ZEROS
 */
struct maker {
	struct side	*side;
	u32		next;
	u32		back;
	u32		other;
	u32		meta;
	u32		zeros;
};

/* Message 2 has a META frame in each packet */
static void make_segment(struct packet *p, struct peer *peer, u32 id, u32 seg)
{
	struct dblp_data d = {
		.msg_id = id, .offset = seg * SEG, .msg_len = LENGTH,
		.meta = id == 2,
	};
	const struct dblp_frame meta = FRAME(META, meta, .msg_id = id, .total = LENGTH,
							 .tag = 4711);

	make_data(p, peer, &d, SEG, id == 2 ? &meta : NULL);
}

static void make_zero_message(struct maker *m, struct packet *p, bool bad)
{
	struct dblp_data d = { .msg_id = m->zeros++, .msg_len = LENGTH };
	u32 map = bad ? 0 : (1 << SEGS) - 1;

	make_zeros(p, &m->side->peer[0], &d, SEG, NULL, &map, 1);
}

static void make_pings(struct packet *p, struct peer *peer, bool bad)
{
	make_packet(p, DBLP_PKT_CTRL, peer->pn++, peer->scid);
	add_filler(p, PACKET - p->len);
	/* Spoil the argument of a frame */
	p->byte[PACKET - 12 * 15 + 3] = bad;
}

static void add_tag(struct packet *p, bool early)
{
	static const u8 tag[DBLP_TAG_LEN];
	const struct dblp_frame f = { .type = DBLP_FRAME_AUTH, .auth.tag = tag };

	add_filler(p, FRAMES - DBLP_AUTH_LEN - 12 * early);
	add_frame(p, &f);
	add_filler(p, 12 * early);
}

/* Make a handshake packet or RST */
static bool make_hello(struct side *s, struct packet *p, enum wagon w)
{
	const struct dblp_params ours = params_default();
	struct peer *peer = &s->peer[0];

	switch (w) {
	case RST:
	case FORGED:
		make_rst(p, peer->scid, DBLP_RST_CLOSED,
			 peer->cid ^ (w == FORGED));
		return true;
	case HELLO:
	case FOREIGN:
	case BAD_HELLO:
		make_init(p, 0x1234);
		p->byte[0] += w == FOREIGN ? 0x10 : 0;
		p->byte[100] = w == BAD_HELLO;
		return true;
	case ECHO:
		make_echo(p, peer, &ours);
		return true;
	case GUEST:
	case BAD_COOKIE:
		make_echo(p, &s->guest, &ours);
		p->byte[DBLP_HDR_LEN + 30] ^= w == BAD_COOKIE;
		return true;
	case COOKIE:
	case WELCOME:
		make_packet(p, w == COOKIE ? DBLP_PKT_INIT_ACK :
					     DBLP_PKT_COOKIE_ACK, 0,
			    peer->scid);
		put_zero(p, DBLP_INIT_ACK_LEN - DBLP_HDR_LEN);
		return true;
	case SPOKEN:
	case SPOKEN_ELSE:
		make_packet(p, DBLP_PKT_VERSION, 0, 0);
		p->byte[0] += w == SPOKEN_ELSE ? 0x10 : 0;
		put_u64_be(p, peer->scid);
		put_zero(p, DBLP_INIT_ACK_LEN - DBLP_HDR_LEN - 8);
		return true;
	default:
		return false;
	}
}

/* Add frames that repeat known values */
static void add_news(struct packet *p, bool bad)
{
	struct dblp_params ours = params_default();
	struct dblp_frame ack = FRAME(ACK, ack, .n = 1);
	struct dblp_frame flow = FRAME(FLOW, flow, .max_msg = ours.max_msg,
						   .max_data = ours.max_data,
						   .cap = bad ? DBLP_PPM + 1 : ours.cap);

	add_frame(p, &ack);
	add_frame(p, &flow);
	add_filler(p, FRAMES - 4 * p->byte[1]);
}

static void make_wagon(struct maker *m, struct packet *p, enum wagon w)
{
	struct peer *peer = &m->side->peer[0];

	if (make_hello(m->side, p, w))
		return;
	switch (w) {
	case BACK:
		make_segment(p, peer, 0, m->back--);
		return;
	case OTHER:
		make_segment(p, peer, 1, m->other++);
		return;
	case SKIP:
		peer->pn += 3;
		break;
	case REPEATED:
		memcpy(p, p - 1, sizeof(*p));
		return;
	case AGAIN:
	case ALTERED:
		make_segment(p, peer, 0, 0);
		p->byte[PACKET - 1] ^= w == ALTERED;
		return;
	case NEIGHBOUR:
		make_segment(p, &m->side->peer[1], 0, m->other++);
		return;
	case PINGS:
	case BAD_PING:
		make_pings(p, peer, w == BAD_PING);
		return;
	case PROBE:
	case BAD_PROBE:
		make_packet(p, DBLP_PKT_PROBE, peer->pn++, peer->scid);
		put_zero(p, PACKET - p->len);
		p->byte[PACKET - 1] = w == BAD_PROBE;
		return;
	case RESET:
		make_rst(p, peer->scid, DBLP_RST_CLOSED, peer->cid);
		put_zero(p, PACKET - p->len);
		return;
	case ZEROS:
	case BAD_ZEROS:
		make_zero_message(m, p, w == BAD_ZEROS);
		return;
	case META:
	case BAD_META:
		make_segment(p, peer, 2, m->meta++);
		p->byte[DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + 7] ^= w == BAD_META;
		return;
	case FIN:
		make_ctrl(p, peer, &(struct dblp_frame) {
			.type = DBLP_FRAME_FIN, .fin.end = 3,
		});
		add_filler(p, PACKET + FRAMES - p->len);
		return;
	case ACK:
		make_packet(p, DBLP_PKT_ACK, 0, peer->scid);
		return;
	case LAST:
		make_segment(p, peer, 0, SEGS - 1);
		return;
	default:
		break;
	}
	make_segment(p, peer, 0, m->next++);
	if (w == FRAMED)
		add_filler(p, FRAMES);
	if (w == TAGGED || w == EARLY_TAG)
		add_tag(p, w == EARLY_TAG);
	if (w == NEWS || w == BAD_NEWS)
		add_news(p, w == BAD_NEWS);
}

/* Changes that make a valid packet invalid */
static const struct spoiled {
	u32	at;
	u32	size;
	u64	value;
	u32	len;
} spoiled[] = {
	[UNKNOWN]	= { 8, 8, 0x1122334455667788 },
	[NOBODY]	= { 8, 8, 0 },
	[VERSION]	= { 0, 1, ANOTHER_VERSION << 4 | DBLP_PKT_DATA },
	[TYPE]		= { 0, 1, DBLP_VERSION << 4 | 15 },
	[NO_TRAIN]	= { 0, 1, DBLP_VERSION << 4 | DBLP_PKT_INIT },
	[SIZE]		= { 2, 2, SEG - 1 },
	[LONGER]	= { 1, 1, 4 },
	[RESERVED]	= { 28, 4, 1 },
	[BUDGET]	= { 28, 4, 1000001ULL << 12 },
	[LENGTH_0]	= { 24, 4, 0 },
	[OFFSET]	= { 20, 4, SEG / 2 },
	[OTHER_LENGTH]	= { 24, 4, LENGTH + 1 },
	[OTHER_POLICY]	= { 28, 4, DBLP_POLICY_EARLY << 10 },
	[FAR]		= { 16, 4, 0x7fffffff },
	[SHORT]		= { .len = PACKET - 1 },
	[HEADER]	= { .len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN },
	[HALF]		= { .len = DBLP_HDR_LEN / 2 },
	[BYTE]		= { .len = 1 },
	[FIN]		= { },
};

static void make_train(struct side *s, struct packet *p, const u8 *wagons)
{
	struct maker m = { .side = s, .back = SEGS - 2 };

	for (; *wagons; wagons++, p++) {
		const struct spoiled *how = &spoiled[*wagons];

		make_wagon(&m, p, *wagons);
		poke(p, how->at, how->size, how->value);
		if (how->len)
			p->len = how->len;
	}
}

static struct packet train[WAYS][TRAIN];

/* Number of buffers that devices passed to IP in this namespace */
static unsigned long buffers(void)
{
	unsigned long value = 0;
	char line[512];
	FILE *f = fopen("/proc/thread-self/net/snmp", "r");

	if (!f)
		die("/proc/net/snmp");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Ip: %*u %*u %lu", &value) == 1)
			break;
	fclose(f);
	return value;
}

/*
 * Send packets in one way, then a PING; on a cable check the number of received buffers. Each
 * buffer has its own pages, because sent pages may not be changed.
 */
static void send_buffers(struct __test_metadata *_metadata, struct side *s,
			 const struct packet *p, u32 n, enum way way)
{
	bool together = way == TOGETHER || way == TOGETHER_IN_PAGES;
	bool pages = way == ALONE_IN_PAGES || way == TOGETHER_IN_PAGES;
	u32 step = together ? n : 1, i;
	unsigned long before;

	netns_set(s->netns);
	before = buffers();
	for (i = 0; i < n; i += step) {
		if (pages)
			splice_train(&s->peer[0], new_pages(PAGES), p + i,
				     step);
		else if (together)
			send_train(&s->peer[0], p, n);
		else
			send_packet(&s->peer[0], &p[i]);
	}
	EXPECT_TRUE(peer_sync(&s->peer[s->over]));
	if (s->out != s->netns)
		EXPECT_EQ(before + n / step + 1, buffers());
}

static void send_all(struct __test_metadata *_metadata, struct side *sides,
		     u32 ways, u32 n)
{
	enum way way;

	for (way = ALONE; way < ways; way++)
		send_buffers(_metadata, &sides[way], train[way], n, way);
}

static const char * const counters[] = {
	"PktReceived", "MsgReceived", "MsgReceivedEarly", "BytesReceived",
	"BytesMissing", "ConnReset", "CookieSent", "CookieBad", "RstSent",
	"RstReceived", "ConnPassive", "CookieStale", "DropAuth",
	"DropShort", "DropVersion", "DropType", "DropField",
	"DropTrailing", "DropUnknownConn", "DropWrongPeer", "DropDuplicate",
	"DropLate", "DropWindow", "DropMismatch", "DropMemory", "DropState",
	"DropNoListener",
};

#define COUNTERS	(sizeof(counters) / sizeof(counters[0]))

static uint64_t *side_counters(struct side *s)
{
	netns_set(s->netns);
	return mib_all();
}

/* Compare the state of two sides */
static void compare_two(struct __test_metadata *_metadata, struct side *a,
			struct side *b, u64 want[COUNTERS])
{
	struct side *sides[] = { a, b };
	struct dblp_info info[2];
	uint64_t *all[2];
	u32 i, k, n[2];

	for (i = 0; i < 2; i++)
		all[i] = side_counters(sides[i]);
	for (k = 0; k < COUNTERS; k++) {
		if (want)
			want[k] = mib_of(all[1], counters[k]);
		EXPECT_EQ(mib_of(all[0], counters[k]),
			  mib_of(all[1], counters[k]))
			TH_LOG("%s", counters[k]);
	}
	for (k = 0; k < 2; k++) {
		/* A delayed ACK may wait for a next packet; after a RST there is none */
		if (k || !a->over)
			EXPECT_EQ(0, memcmp(a->peer[k].acked,
					    b->peer[k].acked,
					    sizeof(a->peer[k].acked)))
				TH_LOG("acknowledgments of connection %u", k);
		for (i = 0; i < 2; i++)
			info[i] = get_info(sides[i]->fd[k]);
		EXPECT_EQ(info[0].state, info[1].state);
		EXPECT_EQ(info[0].pkts_received, info[1].pkts_received);
		EXPECT_EQ(info[0].bytes_received, info[1].bytes_received);
	}
	/* Answers to @stranger are not read */
	for (k = DBLP_PKT_INIT; k <= DBLP_PKT_RST; k++) {
		for (i = 0; i < 2; i++)
			n[i] = sides[i]->peer[0].n[k] + sides[i]->peer[1].n[k];
		EXPECT_EQ(n[0], n[1])
			TH_LOG("answers of type %u", k);
	}
	for (i = 0; i < 2; i++)
		free(all[i]);
}

static void compare(struct __test_metadata *_metadata, struct side *sides,
		    u32 ways, u64 want[COUNTERS])
{
	enum way way;

	for (way = TOGETHER; way < ways; way++) {
		TH_LOG("way %u", way);
		compare_two(_metadata, &sides[ALONE], &sides[way], want);
	}
}

/* Read all messages of a connection into @buf */
static u32 read_all(struct side *s, u32 k, unsigned char *buf, u32 size)
{
	ssize_t len;
	u32 n = 0;

	while ((len = recv(s->fd[k], buf + n, size - n, MSG_DONTWAIT)) > 0)
		n += len;
	if (errno != EAGAIN)
		die("recv() gave %zd", len);
	return n;
}

/* Complete a message: after all its segments were sent, it must be exact */
static void complete(struct __test_metadata *_metadata, struct side *s, u32 k,
		     u32 id)
{
	static unsigned char buf[LENGTH + 1];
	struct message m = {};
	u32 seg;

	netns_set(s->netns);
	for (seg = 0; seg < SEGS; seg++) {
		make_segment(&train[0][0], &s->peer[k], id, seg);
		send_packet(&s->peer[k], &train[0][0]);
	}
	ASSERT_TRUE(wait_for(s->fd[k], POLLIN, WAIT_MS));
	ASSERT_EQ(LENGTH, message_recv(s->fd[k], buf, sizeof(buf), MSG_DONTWAIT,
				       &m));
	EXPECT_EQ(id, m.info.msg_id);
	EXPECT_EQ(0, m.info.missing);
	EXPECT_EQ(-1, pattern_check(buf, LENGTH, 0, SCRIPTED_SEED, id));
	message_free(&m);
}

/* Static, because it is too large for the stack */
static struct side the_sides[WAYS];

FIXTURE(train) {
	struct side *sides;
	u32 ways;
};

FIXTURE_VARIANT(train) {
	u8 wagons[TRAIN];
	const char *at;		/* address, except on a cable; NULL: 127.0.0.1 */
	bool broken;		/* message 0 differs from the one of complete() */
	bool over;		/* and the connection has ended */
	struct {
		const char *counter;
		u32 n;
	} drops[4];
};

/* Kinds of packets of a train, and the expected drops */
#define DROPS(...)	.drops = { __VA_ARGS__ }
#define VARIANT(name, ...) FIXTURE_VARIANT_ADD(train, name) { __VA_ARGS__ }

VARIANT(good, .wagons = { NEXT, NEXT, NEXT, NEXT, NEXT });
VARIANT(complete, .wagons = { NEXT, NEXT, NEXT, NEXT, NEXT, NEXT, NEXT, NEXT,
			      NEXT, NEXT, NEXT, LAST });
/* More ranges than a buffer can record: clones of it are queued, too */
VARIANT(backwards, .wagons = { BACK, BACK, BACK, BACK, BACK, BACK, BACK, BACK,
			       BACK, BACK, BACK, LAST });
VARIANT(gaps_in_numbers, .wagons = { NEXT, SKIP, SKIP, NEXT, SKIP, SKIP, SKIP,
				     SKIP, NEXT, SKIP });
VARIANT(two_messages, .wagons = { NEXT, NEXT, OTHER, OTHER, NEXT, OTHER,
				  NEXT, OTHER, NEXT, NEXT });
VARIANT(repeated, .wagons = { NEXT, REPEATED, NEXT, NEXT, REPEATED, REPEATED },
	DROPS({ "DropDuplicate", 3 }));
VARIANT(segments_again, .wagons = { NEXT, AGAIN, NEXT, ALTERED, NEXT, AGAIN });
VARIANT(neighbours, .wagons = { NEXT, NEIGHBOUR, NEXT, NEIGHBOUR, NEIGHBOUR,
				NEXT });
VARIANT(the_neighbour_first, .wagons = { NEIGHBOUR, NEXT, NEXT, NEXT });
VARIANT(the_neighbour_last, .wagons = { NEXT, NEXT, NEXT, NEIGHBOUR });
VARIANT(an_unknown_connection, .wagons = { NEXT, NEXT, UNKNOWN, NEXT },
	DROPS({ "DropUnknownConn", 1 }, { "RstSent", 1 }));
VARIANT(unknown_first, .wagons = { UNKNOWN, NEXT, NEXT },
	DROPS({ "DropUnknownConn", 1 }, { "RstSent", 1 }));
VARIANT(unknown_all, .wagons = { UNKNOWN, UNKNOWN, UNKNOWN, NOBODY },
	DROPS({ "DropUnknownConn", 4 }, { "RstSent", 4 }));
VARIANT(versions, .wagons = { NEXT, VERSION, NEXT, NEXT },
	DROPS({ "DropVersion", 1 }));
VARIANT(a_version_first, .wagons = { VERSION, NEXT, NEXT },
	DROPS({ "DropVersion", 1 }));
VARIANT(types, .wagons = { NEXT, TYPE, NEXT, NO_TRAIN, NEXT, RESET, NEXT },
	DROPS({ "DropType", 1 }, { "DropField", 1 }, { "DropTrailing", 1 }));
VARIANT(lengths, .wagons = { NEXT, SIZE, NEXT, LONGER, NEXT },
	DROPS({ "DropField", 1 }, { "DropShort", 1 }));
VARIANT(reserved_bits, .wagons = { NEXT, NEXT, RESERVED, NEXT, NEXT },
	DROPS({ "DropField", 1 }));
VARIANT(reserved_bits_first, .wagons = { RESERVED, RESERVED, NEXT, NEXT },
	DROPS({ "DropField", 2 }));
VARIANT(fields, .wagons = { NEXT, BUDGET, NEXT, LENGTH_0, NEXT, OFFSET, NEXT },
	DROPS({ "DropField", 3 }));
VARIANT(contradictions, .wagons = { NEXT, OTHER_LENGTH, NEXT, OTHER_POLICY,
				    NEXT },
	DROPS({ "DropMismatch", 2 }));
VARIANT(a_contradiction_before, .wagons = { OTHER_LENGTH, NEXT, NEXT, NEXT },
	.broken = true, DROPS({ "DropMismatch", 3 }));
VARIANT(no_credit, .wagons = { NEXT, FAR, NEXT, FAR, NEXT },
	DROPS({ "DropWindow", 2 }));
VARIANT(control_packets, .wagons = { NEXT, PINGS, NEXT, PROBE, NEXT, PINGS });
VARIANT(bad_control_packets, .wagons = { NEXT, BAD_PING, NEXT, BAD_PROBE, NEXT },
	DROPS({ "DropField", 2 }));
VARIANT(an_ack_at_the_end, .wagons = { NEXT, NEXT, NEXT, ACK });
VARIANT(a_short_end, .wagons = { NEXT, NEXT, NEXT, SHORT },
	DROPS({ "DropShort", 1 }));
VARIANT(only_a_header_at_the_end, .wagons = { NEXT, NEXT, HEADER },
	DROPS({ "DropShort", 1 }));
VARIANT(half_a_header_at_the_end, .wagons = { NEXT, NEXT, HALF },
	DROPS({ "DropShort", 1 }));
VARIANT(a_byte_at_the_end, .wagons = { NEXT, NEXT, BYTE },
	DROPS({ "DropShort", 1 }));
VARIANT(resets_at_the_end, .wagons = { NEXT, NEXT, NEXT, RST },
	.broken = true, .over = true, DROPS({ "RstReceived", 1 }));
VARIANT(a_forged_reset_at_the_end, .wagons = { NEXT, NEXT, NEXT, FORGED },
	DROPS({ "RstReceived", 0 }, { "DropField", 1 }));
VARIANT(resets, .wagons = { FORGED, FORGED, RST, FORGED, RST },
	.broken = true, .over = true,
	DROPS({ "RstReceived", 1 }, { "DropField", 2 },
	      { "DropUnknownConn", 2 }));
VARIANT(hellos, .wagons = { HELLO, FOREIGN, BAD_HELLO, HELLO },
	DROPS({ "CookieSent", 5 }, { "DropVersion", 1 }, { "DropField", 1 }));
VARIANT(a_hello_at_the_end, .wagons = { NEXT, NEXT, NEXT, HELLO },
	DROPS({ "CookieSent", 4 }));
VARIANT(a_foreign_hello_at_the_end, .wagons = { NEXT, NEXT, FOREIGN },
	DROPS({ "DropVersion", 1 }));
VARIANT(cookies, .wagons = { ECHO, BAD_COOKIE, GUEST, GUEST, ECHO },
	DROPS({ "ConnPassive", 3 }, { "CookieBad", 1 }));
VARIANT(a_cookie_at_the_end, .wagons = { NEXT, NEXT, NEXT, GUEST },
	DROPS({ "ConnPassive", 3 }));
VARIANT(answers, .wagons = { COOKIE, WELCOME, SPOKEN, SPOKEN_ELSE, WELCOME },
	DROPS({ "DropState", 5 }));
VARIANT(zero_maps, .wagons = { ZEROS, ZEROS, BAD_ZEROS, ZEROS, BAD_ZEROS },
	.broken = true,
	DROPS({ "MsgReceived", 2 }, { "DropField", 2 }));
VARIANT(a_zero_map_at_the_end, .wagons = { OTHER, OTHER, ZEROS },
	.broken = true, DROPS({ "MsgReceived", 1 }));
VARIANT(messages_with_meta, .wagons = { META, META, BAD_META, META, META },
	DROPS({ "DropMismatch", 1 }));
VARIANT(tags, .wagons = { FRAMED, TAGGED, FRAMED, EARLY_TAG, FRAMED },
	DROPS({ "DropAuth", 2 }));
VARIANT(the_last_message, .wagons = { FIN, FRAMED, FIN, FRAMED });
VARIANT(frames, .wagons = { FRAMED, FRAMED });
VARIANT(frames_of_all_kinds, .at = "::1",
	.wagons = { NEWS, FRAMED, BAD_NEWS, NEWS, FRAMED, BAD_NEWS, LAST },
	DROPS({ "DropField", 2 }));
VARIANT(everything, .wagons = { NEXT, UNKNOWN, RESERVED, REPEATED, NEIGHBOUR,
				PINGS, BAD_PROBE, NEXT, OTHER, OTHER_LENGTH,
				FAR, TYPE, NEXT, NEXT, HALF });

FIXTURE_SETUP(train)
{
	self->sides = the_sides;
}

FIXTURE_ENDS_BY_EXIT(train);

/* Let the other end send a message, which can be acknowledged */
static void ask(struct __test_metadata *_metadata, struct peer *peer)
{
	ASSERT_TRUE(peer_sync(peer));
	if (!peer->largest)
		ASSERT_TRUE(peer_expect(peer, DBLP_PKT_CTRL, WAIT_MS));
}

/* Read the messages, which must be the same as if the packets had arrived alone */
static u32 read_and_compare(struct __test_metadata *_metadata,
			    struct side *sides, u32 ways, u32 k)
{
	static unsigned char buf[WAYS][16 * LENGTH];
	u32 len[WAYS] = {};
	enum way way;

	for (way = ALONE; way < ways; way++) {
		netns_set(sides[way].netns);
		len[way] = read_all(&sides[way], k, buf[way], sizeof(buf[way]));
		EXPECT_EQ(len[ALONE], len[way]);
		EXPECT_EQ(0, memcmp(buf[ALONE], buf[way], len[way]));
	}
	return len[ALONE];
}

static void judge(struct __test_metadata *_metadata, FIXTURE_DATA(train) *self,
		  const FIXTURE_VARIANT(train) *variant, bool cable)
{
	u32 n = strlen((const char *)variant->wagons), i, k;
	u64 counted[COUNTERS];

	self->ways = cable ? TOGETHER + 1 : WAYS;
	for (i = 0; i < self->ways; i++) {
		side_begin(&self->sides[i], variant->at ?: "127.0.0.1", cable,
			   i == TOGETHER);
		self->sides[i].over = variant->over;
		if (strchr((const char *)variant->wagons, NEWS))
			ask(_metadata, &self->sides[i].peer[0]);
		make_train(&self->sides[i], train[i], variant->wagons);
	}
	send_all(_metadata, self->sides, self->ways, n);
	for (i = 0; i < self->ways; i++)
		EXPECT_TRUE(peer_sync(&self->sides[i].peer[1]));
	compare(_metadata, self->sides, self->ways, counted);
	for (i = 0; i < 4 && variant->drops[i].counter; i++) {
		for (k = 0; strcmp(counters[k], variant->drops[i].counter);)
			k++;
		EXPECT_EQ(variant->drops[i].n, counted[k])
			TH_LOG("%s", counters[k]);
	}
	if (variant->broken && !variant->over)
		read_and_compare(_metadata, self->sides, self->ways, 0);
	for (i = 0; i < self->ways; i++) {
		for (k = 0; k < 3 && !variant->broken; k++)
			complete(_metadata, &self->sides[i], 0, k);
		complete(_metadata, &self->sides[i], 1, 0);
	}
}

TEST_F_TIMEOUT(train, made_by_its_sender, 60)
{
	judge(_metadata, self, variant, false);
}

TEST_F_TIMEOUT(train, made_by_the_stack, 60)
{
	judge(_metadata, self, variant, true);
}

/* The loopback interface passes a train as one buffer */
TEST(a_train_is_one_buffer)
{
	static const u8 wagons[] = { NEXT, NEXT, NEXT, NEXT, NEXT, NEXT, NEXT,
				     NEXT, NEXT, NEXT, NEXT, END };
	unsigned long before;
	struct side side;

	side_begin(&side, "127.0.0.1", false, false);
	make_train(&side, train[0], wagons);
	before = buffers();
	send_train(&side.peer[0], train[0], 11);
	EXPECT_TRUE(peer_sync(&side.peer[0]));
	/* Plus a PING and its answer, which a slow machine repeats */
	EXPECT_GT(before + 11, buffers());
	EXPECT_LE(12, get_info(side.fd[0]).pkts_received);
	side_end(&side);
}

/* More than forty packets with the MTU of netns_set_mtu() below */
#define LONG		60000
#define LONG_PACKETS	40

/* Send a message, and return the number of received buffers, ACKs included */
static unsigned long buffers_of_message(int from, int to)
{
	static char sent[LONG], received[LONG];
	unsigned long before = buffers();

	memset(sent, 1, sizeof(sent));
	if (send(from, sent, LONG, 0) != LONG || recv(to, received, LONG, 0) != LONG)
		die("message");
	return buffers() - before;
}

/* The parameter applies to existing sockets: gso off sends each packet separately */
TEST(no_trains_with_gso_off)
{
	struct sockaddr_dblp addr;
	int listener, from, to;

	netns_new();
	netns_set_mtu(1500);
	listener = new_listener("127.0.0.1", 1, &addr);
	connect_pair(&addr, listener, &from, &to);
	EXPECT_GT(LONG_PACKETS, buffers_of_message(from, to));
	EXPECT_EQ(0, system("dblpctl param set gso off"));
	EXPECT_LE(LONG_PACKETS, buffers_of_message(from, to));
	EXPECT_EQ(0, system("dblpctl param set gso on"));
	EXPECT_GT(LONG_PACKETS, buffers_of_message(from, to));
}

/* Single packets are fragmented there, and trains would be dropped */
TEST(no_trains_over_a_route_of_a_small_mtu)
{
	struct sockaddr_dblp addr;
	int listener, from, to;

	netns_new();
	netns_set_mtu(552);
	listener = new_listener("127.0.0.1", 1, &addr);
	connect_pair(&addr, listener, &from, &to);
	buffers_of_message(from, to);
	EXPECT_EQ(0, get_info(from).pkts_lost);
}

/* Whatever comes: the seed is fixed, so what fails once fails again */
/* Bits of headers except most of the packet number, which would make later packets old */
static void flip_bits(struct packet *p, u64 *state)
{
	u32 flips = 1 + random_next(state) % 3, at;

	while (flips--) {
		at = random_next(state) % 32;
		if (at < 4 || at > 6)
			p->byte[at] ^= 1 << random_next(state) % 8;
	}
}

/* Number of messages of random packets, without the one with META, which is longer */
#define RANDOM	4U

static u32 random_id(u64 *state)
{
	u32 id = random_next(state) % RANDOM;

	return id == 2 ? 0 : id;
}

/* Make random segments, some of the second connection; a third is spoiled */
static void make_random(struct side *s, struct packet *p, u32 n, u64 state)
{
	u32 id = random_id(&state), seg = random_next(&state) % SEGS;
	u32 k = 0, i;

	for (i = 0; i < n; i++, p++) {
		if (random_next(&state) % 4 == 0) {
			id = random_id(&state);
			seg = random_next(&state) % SEGS;
			k = random_next(&state) % 8 == 0;
		}
		make_segment(p, &s->peer[k], id, seg++ % (SEGS - 1));
		if (random_next(&state) % 3 == 0)
			flip_bits(p, &state);
	}
	if (random_next(&state) % 2)
		p[-1].len = 1 + random_next(&state) % PACKET;
}

FIXTURE(spoiled) {
	struct side *sides;
};

FIXTURE_SETUP(spoiled)
{
	enum way way;

	self->sides = the_sides;
	for (way = ALONE; way < WAYS; way++)
		side_begin(&self->sides[way], "127.0.0.1", false, false);
}

FIXTURE_ENDS_BY_EXIT(spoiled);

/* Wait for the last ACKs, which may be delayed */
static void await_acks(struct __test_metadata *_metadata, struct side *sides)
{
	u32 i, k;

	for (i = 0; i < WAYS; i++)
		for (k = 0; k < 2; k++)
			EXPECT_TRUE(peer_sync(&sides[i].peer[k]));
}

TEST_F_TIMEOUT(spoiled, hundreds_of_them, 120)
{
	u32 i, k, n;

	for (k = 0; k < 300; k++) {
		n = 2 + k % (TRAIN - 1);
		for (i = 0; i < WAYS; i++)
			make_random(&self->sides[i], train[i], n, k);
		send_all(_metadata, self->sides, WAYS, n);
		if (k % 30 != 29)
			continue;
		await_acks(_metadata, self->sides);
		compare(_metadata, self->sides, WAYS, NULL);
	}
	for (k = 0; k < 2; k++) {
		for (n = 0; n < RANDOM * SEGS; n++)
			for (i = 0; i < WAYS; i++) {
				netns_set(self->sides[i].netns);
				make_segment(train[i], &self->sides[i].peer[k],
					     n / SEGS, n % SEGS);
				send_packet(&self->sides[i].peer[k], train[i]);
				EXPECT_TRUE(n % SEGS ||
					    peer_sync(&self->sides[i].peer[k]));
			}
		await_acks(_metadata, self->sides);
		compare(_metadata, self->sides, WAYS, NULL);
		EXPECT_LT(0, read_and_compare(_metadata, self->sides, WAYS, k));
	}
}

/*
 * Pages spliced into a UDP socket reach another local socket without a copy (Linux 6.1
 * copies them): the receiver shares them with the sender, which can still write to
 * them.
 */
FIXTURE(shared) {
	struct side side;
	unsigned char *page;
};

FIXTURE_SETUP(shared)
{
	side_begin(&self->side, "127.0.0.1", false, false);
	self->page = new_pages(PAGES);
}

FIXTURE_ENDS_BY_EXIT(shared);

/* A message of five segments with a short last one */
#define SHARED_LEN	(5 * SEG - 40)

static void make_shared(struct side *s, u32 id)
{
	struct dblp_data d = { .msg_id = id, .msg_len = SHARED_LEN };
	u32 i;

	for (i = 0; i < 5; i++) {
		d.offset = i * SEG;
		make_data(&train[0][i], &s->peer[0], &d, SEG, NULL);
	}
}

TEST_F(shared, headers_that_change_after_the_check)
{
	static unsigned char buf[SHARED_LEN + 1];
	u32 i;

	make_shared(&self->side, 0);
	splice_train(&self->side.peer[0], self->page, train[0], 5);
	ASSERT_TRUE(peer_sync(&self->side.peer[0]));
	for (i = 0; i < 5; i++)
		memset(self->page + i * PACKET, 0xff, 32);
	/* The sender may spoil message bytes, but not the state of the receiver */
	self->page[32] ^= 0xff;
	ASSERT_EQ(SHARED_LEN, recv(self->side.fd[0], buf, sizeof(buf),
				   MSG_DONTWAIT));
	if (!pattern_check(buf, SHARED_LEN, 0, SCRIPTED_SEED, 0)) {
		TH_LOG("pages are shared");
		buf[0] ^= 0xff;
	}
	EXPECT_EQ(-1, pattern_check(buf, SHARED_LEN, 0, SCRIPTED_SEED, 0));
}

static volatile bool altering;

/* Thread that repeatedly spoils and restores all headers except the first */
static void *alter(void *arg)
{
	static const struct {
		u8 at, bits;
	} flips[] = {
		{ 0, 0x0f }, { 1, 0xff }, { 2, 0x80 }, { 7, 0x10 }, { 8, 0x01 },
		{ 20, 0xff }, { 22, 0x02 }, { 24, 0x80 }, { 28, 0xff },
	};
	unsigned char *page = arg;
	u32 i, k;

	while (altering)
		for (i = 0; i < 9; i++)
			for (k = 1; k < 5; k++) {
				page[k * PACKET + flips[i].at] ^= flips[i].bits;
				page[k * PACKET + flips[i].at] ^= flips[i].bits;
			}
	return NULL;
}

TEST_F(shared, headers_that_change_during_the_check)
{
	pthread_t thread;
	u32 i;

	altering = true;
	ASSERT_EQ(0, pthread_create(&thread, NULL, alter, self->page));
	for (i = 0; i < 300; i++) {
		make_shared(&self->side, 1);
		splice_train(&self->side.peer[0], self->page, train[0], 5);
	}
	altering = false;
	pthread_join(thread, NULL);

	/* The connection and earlier messages were not harmed */
	EXPECT_TRUE(peer_sync(&self->side.peer[0]));
	EXPECT_EQ(DBLP_STATE_ESTABLISHED, get_info(self->side.fd[0]).state);
	complete(_metadata, &self->side, 0, 0);
	complete(_metadata, &self->side, 1, 0);
}

TEST_HARNESS_MAIN
