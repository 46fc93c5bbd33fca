// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fuzzing peer: fuzzpeer [PACKETS [SEED [SECONDS]]], which ends after PACKETS packets or
 * SECONDS seconds. A grammar makes its packets (lib/grammar.c), mostly valid, so that
 * connections make progress, and some spoiled. They are sent by UDP, in trains and one by
 * one, and through tap devices, as buffers of all shapes (lib/tap.c). Some connections have
 * a key at both ends; most spoiled packets then have a valid tag. At the other end threads
 * make all calls of a socket (lib/users.c).
 *
 * Bugs show as kernel reports. The test itself checks that delivered and reported messages
 * are consistent and within their budgets, that living connections answer, that normal
 * connections are not harmed, and that no socket is left. It also fails if most packets are
 * dropped early, because such a run would prove nothing. The same seed makes the same
 * choices, but from packets whose timing differs.
 */
#define _GNU_SOURCE
#include "lib/grammar.h"
#include "lib/sock.h"
#include "lib/tap.h"
#include "lib/traffic.h"
#include "lib/users.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PACKETS		20000
#define TWINS		2
#define UDP_MOST	65000U
#define MTU		1500U
#define UDP_HDRS(v6)	((v6) ? 48U : 28U)
#define TRAIN		24
/* Ports of each end */
#define PORTS		4
/* Maximum packets of a connection */
#define LIFE		1200
#define WAIT_MS		20000
#define MINUTE		60000
#define KEY		"the key of both ends"
/* Number of listeners, that is, of sockets without connections */
#define LISTENERS	(4 * WAY_MAX)

/* Interface of a connection: lo or a tap device */
enum way {
	WAY_LO,
	WAY_TAP,
	WAY_MAX = WAY_TAP + __TAP_KIND_MAX,
};

/**
 * struct beside - state of the normal connections
 * @stop: set to stop them
 * @messages: number of received messages
 * @connections: number of connections that carried all their messages
 */
struct beside {
	volatile bool		stop;
	volatile unsigned long	messages;
	volatile unsigned long	connections;
};

/**
 * struct session - a connection, or two with the same ports
 * @way: interface
 * @v6: IPv6
 * @keyed: both ends have a key
 * @n: number of connections
 * @t: fuzzing peers
 * @u: threads that use the other ends
 * @packets: packets sent
 */
struct session {
	enum way		way;
	bool			v6;
	bool			keyed;
	u32			n;
	struct talker		t[TWINS];
	struct user		u[TWINS];
	u32			packets;
};

static struct beside *beside;
static struct tap taps[__TAP_KIND_MAX];
static struct session session;
static struct packet train[TRAIN];
static u64 random_state;
static struct tags tags;
static int listeners[LISTENERS];
static struct sockaddr_dblp addresses[LISTENERS];

/**
 * struct tally - totals of the run
 * @packets: packets sent, of which @numbered have a packet number
 * @taken: numbered packets that connections accepted
 * @trains: buffers of several packets
 * @connections: connections made
 * @keyed: connections with a key, of which @keyed_lived were alive at the end
 * @strays: connections that packets of an ended session made
 * @lived: connections alive at the end
 * @lied: ended connections that had received false frames
 * @stalled: connections that should have answered and did not
 * @errors: ended connections by errno
 * @received: messages received, of which @early had bytes missing
 * @reported: reports of sent messages
 */
static struct {
	u64 packets;
	u64 numbered;
	u64 taken;
	u64 trains;
	u64 connections;
	u64 keyed;
	u64 keyed_lived;
	u64 strays;
	u64 lived;
	u64 lied;
	u64 stalled;
	u64 errors[140];
	u64 received;
	u64 early;
	u64 reported;
} tally;

static u32 below(u32 n)
{
	return random_next(&random_state) % n;
}

static bool once_in(u32 n)
{
	return !below(n);
}

/*
 * Normal connections
 */
static void be_honest(void)
{
	struct traffic t[2];
	u32 i;

	/* End with the parent, also if it fails */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	traffic_start(&t[0], "127.0.0.1", 1);
	traffic_start(&t[1], "::1", 2);
	for (i = 0; !beside->stop; i++) {
		traffic_one(&t[i % 2]);
		beside->messages = t[0].messages + t[1].messages;
		beside->connections = t[0].connections + t[1].connections;
		sleep_ms(20);
	}
	_exit(0);
}

/*
 * Handshakes
 */
static struct tap *tap_of(const struct session *s)
{
	return s->way == WAY_LO ? NULL : &taps[s->way - WAY_TAP];
}

static const char *here(const struct session *s)
{
	struct tap *tap = tap_of(s);

	if (tap)
		return tap->here[s->v6];
	return s->v6 ? "::1" : "127.0.0.1";
}

static u16 new_port(void)
{
	static u16 port = 10000;

	port = port < 30000 ? port + 1 : 10000;
	return htons(port);
}

static struct dblp_params our_params(void)
{
	struct dblp_params ours = params_default();

	ours.rtt_us = once_in(2) ? below(2000) : 0;
	if (once_in(8))
		ours.cap = below(DBLP_PPM);
	return ours;
}

/* Close connections that late packets of an ended session made */
static void turn_away(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		tally.strays++;
		close(fd);
	}
}

/* Set the key of the peer, if the session has one */
static void begin_key(struct session *s)
{
	tags_key(&tags, KEY);
	s->t[0].peer.tags = s->keyed ? &tags : NULL;
}

/* Connect to a listener */
static int join(struct session *s, u32 i)
{
	u32 at = 2 * s->way + s->v6 + (s->keyed ? LISTENERS / 2 : 0);
	struct peer *peer = &s->t[i].peer;
	struct tap *tap = tap_of(s);

	turn_away(listeners[at]);
	if (i) {
		int udp = s->t[0].peer.udp;

		memset(peer, 0, sizeof(*peer));
		peer->udp = udp;
		peer->cid = s->t[0].peer.cid ^ 0x55555555ULL << 16;
		peer->twin = &s->t[0].peer;
		s->t[0].peer.twin = peer;
	} else if (tap) {
		tap_peer(tap, peer, s->v6, new_port(),
			 addresses[at].sdblp_port);
	} else {
		peer_connect(peer, &addresses[at]);
	}
	begin_key(s);
	/* Some peers are older and have no features */
	peer->features = once_in(4) ? 0 : DBLP_FEATURES;
	peer->ports = once_in(2) ? 0 : 2 + below(PORTS - 1);
	peer_handshake(peer);
	return accept4(listeners[at], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void send_answer(struct peer *peer, u8 type)
{
	struct dblp_params ours = our_params();
	struct packet *p = train;

	/* Sometimes an arbitrary time */
	if (once_in(8))
		peer->time = once_in(2) ? below(UINT32_MAX) : UINT64_MAX;
	if (type == DBLP_PKT_INIT_ACK) {
		peer->cookie = (struct dblp_cookie){
			.scid = peer->cid, .features = peer->features,
			.mac = 42,
		};
		make_init_ack(p, peer, &peer->cookie);
	} else {
		make_cookie_ack(p, peer, &ours);
		peer->theirs.max_msg = 0;
	}
	send_packet(peer, p);
}

static void expect(struct peer *peer, u8 type)
{
	bool good = peer_expect(peer, type, WAIT_MS);

	errno = 0;
	if (!good)
		die("no packet of type %u came", type);
}

/* Let a socket connect to the peer; its COOKIE-ECHO has its parameters */
static int be_joined(struct session *s)
{
	struct peer *peer = &s->t[0].peer;
	struct tap *tap = tap_of(s);
	struct sockaddr_dblp at;
	char text[16];
	int fd = socket(AF_DBLP, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	if (tap) {
		addr_parse(&at, here(s), 0);
		strcpy(text, here(s));
		text[strlen(text) - 1] = '2';
		addr_parse(&at, text, 0);
		at.sdblp_port = new_port();
		tap_peer(tap, peer, s->v6, at.sdblp_port, 0);
		peer->scid = 1;
	} else {
		peer_listen(peer, s->v6 ? "::1" : "::ffff:127.0.0.1", &at);
	}
	peer->ports = once_in(2) ? 0 : 2 + below(PORTS - 1);
	peer->features = !peer->ports && once_in(4) ? 0 : DBLP_FEATURES;
	set_u32(fd, DBLP_SPRAY, peer->ports ?: 1);
	begin_key(s);
	if (s->keyed)
		set_key(fd, KEY);
	if (fd < 0 || !connect_to(fd, &at) || errno != EINPROGRESS)
		die("connect()");
	expect(peer, DBLP_PKT_INIT);
	peer->scid = dblp_get_u64(peer->last[DBLP_PKT_INIT].byte +
				  DBLP_HDR_LEN);
	send_answer(peer, DBLP_PKT_INIT_ACK);
	expect(peer, DBLP_PKT_COOKIE_ECHO);
	dblp_get_params(&peer->theirs,
			peer->last[DBLP_PKT_COOKIE_ECHO].byte +
			DBLP_ECHO_PARAMS);
	struct dblp_params theirs = peer->theirs;

	if (s->keyed)
		tags_begin(&tags, peer->scid, &peer->cookie, false);
	send_answer(peer, DBLP_PKT_COOKIE_ACK);
	peer->theirs = theirs;
	errno = 0;
	if (!wait_for(fd, POLLOUT, WAIT_MS))
		die("a connection is not established");
	return fd;
}

static void begin_user(struct session *s, u32 i, int fd)
{
	struct user *u = &s->u[i];
	struct talker *t = &s->t[i];

	if (fd < 0)
		die("accept()");
	memset(u, 0, sizeof(*u));
	u->fd = fd;
	u->random = random_next(&random_state);
	u->fill = t->fill;
	u->zeros = &t->zeros;
	u->placement = t->placement = once_in(3);
	t->zeros = once_in(2);
	t->spoils = once_in(4) ? 4 : 12;
	t->lies = once_in(4) ? 60 : once_in(2) ? 1000 : 0;

	t->stride = s->t[0].stride;
	t->random = &random_state;
	talker_listen(t);
	user_begin(u);
}

static void begin_session(struct session *s)
{
	bool client = once_in(3);
	u32 i;

	s->way = below(WAY_MAX);
	s->v6 = once_in(3);
	s->keyed = once_in(4);
	s->n = client || s->keyed ? 1 : 1 + once_in(3);
	s->packets = 0;
	for (i = 0; i < s->n; i++) {
		talker_begin(&s->t[i], i ? 0xa5 : 0x5a);
		s->t[i].stride = i ? s->t[0].stride :
				 4 * (125 + below(once_in(2) ? 130 : 240)) -
				 (s->keyed ? DBLP_AUTH_LEN : 0);
		begin_user(s, i, client ? be_joined(s) : join(s, i));
	}
	tally.connections += s->n;
	tally.keyed += s->keyed;
}

/*
 * Sending
 */

/* Do @n packets make a train? Packets that may have no tag are shorter */
static bool is_train(u32 n)
{
	u32 i;

	for (i = 1; i < n - 1; i++)
		if (train[i].len != train[0].len)
			return false;
	return train[n - 1].len <= train[0].len;
}

static void send_packets(struct session *s, u32 n)
{
	struct tap *tap = tap_of(s);
	struct peer *peer = &s->t[0].peer;
	u32 i, len = 0;

	for (i = 0; i < n; i++) {
		tally.numbered += dblp_numbered(train[i].byte[0] & 0xf);
		len += train[i].len;
	}
	/* Sometimes send from a port that was not announced */
	if (tap && peer->ports)
		tap->from = once_in(3) ? htons(31000 + below(PORTS)) : 0;
	else if (tap)
		tap->from = 0;
	tally.packets += n;
	tally.trains += n > 1;
	s->packets += n;
	if (tap && n > 1 && !once_in(40))
		return tap_send(tap, train, n, TAP_TRAIN);
	if (tap)
		return tap_send(tap, train, n, below(__TAP_HOW_MAX));
	/* UDP refuses a train that exceeds a datagram or the path MTU */
	if (n > 1 && len <= UDP_MOST &&
	    train[0].len <= MTU - UDP_HDRS(s->v6) && is_train(n))
		return send_train(peer, train, n);
	for (i = 0; i < n; i++)
		if (train[i].len <= UDP_MOST)
			send_packet(peer, &train[i]);
}

/* Few tags are invalid, because the module drops such packets at once */
static void send_session(struct session *s, u32 n)
{
	struct peer *peer = &s->t[0].peer;
	struct tags *key = peer->tags;

	sign_packets(peer, train, n);
	if (key && once_in(50))
		train[0].byte[below(train[0].len)] ^= 1 << below(8);
	peer->tags = NULL;
	send_packets(s, n);
	peer->tags = key;
}

static bool is_over(const struct session *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (!s->u[i].err && !s->t[i].over)
			return false;
	return true;
}

static void run_session(struct session *s)
{
	u32 life = 50 + below(LIFE), most = 2 + below(TRAIN - 1), rest = 3, k, n;

	while (s->packets < life && rest) {
		k = s->n > 1 && once_in(3);
		n = talker_train(&s->t[k], s->n > 1 ? &s->t[!k] : NULL, train,
				 most);
		send_session(s, n);
		peer_drain(&s->t[0].peer);
		/* Receive packets of the other end */
		if (once_in(6))
			wait_for(s->t[0].peer.udp, POLLIN, 2);
		/* After the end of the connection, send only a few packets, which are dropped */
		rest -= is_over(s);
	}
}

/*
 * End of a session
 */

/* Does the connection acknowledge a PING, or has it ended? */
static bool answers(struct session *s, u32 i)
{
	struct dblp_frame ping = { .type = DBLP_FRAME_PING };
	struct peer *peer = &s->t[i].peer;
	u64 end = now_ms() + WAIT_MS;
	u32 before = 0;

	if (s->u[i].err || s->t[i].over)
		return false;
	/* Skip packet numbers that it may consider old */
	while (now_ms() < end) {
		before = peer->n[DBLP_PKT_ACK] + peer->n[DBLP_PKT_CTRL] +
			 peer->n[DBLP_PKT_DATA];
		send_frame(peer, train, &ping);
		wait_for(peer->udp, POLLIN, 200);
		peer_drain(peer);
		if (s->u[i].err || s->t[i].over)
			return false;
		if (before != peer->n[DBLP_PKT_ACK] + peer->n[DBLP_PKT_CTRL] +
		    peer->n[DBLP_PKT_DATA])
			return true;
	}
	tally.stalled++;
	return false;
}

/* Close with a short user timeout */
static void forget(struct session *s, u32 i)
{
	struct peer *peer = &s->t[i].peer;

	if (once_in(20))
		return;
	peer_drain(peer);
	send_rst(peer, train, peer->scid, DBLP_RST_CLOSED, peer->cid);
}

static void end_user(struct session *s, u32 i)
{
	struct user *u = &s->u[i];
	struct dblp_info info;
	bool well = answers(s, i);

	user_end(u);
	info = get_info(u->fd);
	if (!u->err && info.state != DBLP_STATE_ESTABLISHED)
		u->err = get_int(u->fd, SO_ERROR);
	if (well && info.state == DBLP_STATE_ESTABLISHED) {
		tally.lived++;
		tally.keyed_lived += s->keyed;
	} else {
		tally.errors[u->err < 140 ? u->err : 0]++;
		tally.lied += s->t[i].lied;
	}
	tally.taken += info.pkts_received;
	tally.received += u->received;
	tally.early += u->early;
	tally.reported += u->reported;
	close(u->fd);
	forget(s, i);
}

static void end_session(struct session *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		end_user(s, i);
	if (!tap_of(s))
		peer_close(&s->t[0].peer);
}

/*
 * Main program
 */
static void set_up(void)
{
	u32 i;

	netns_new();
	netns_set_mtu(MTU);
	for (i = 0; i < __TAP_KIND_MAX; i++)
		tap_open(&taps[i], i, i);
	for (i = 0; i < LISTENERS; i++) {
		const struct session s = {
			.way = i / 2 % WAY_MAX, .v6 = i % 2,
			.keyed = i >= LISTENERS / 2,
		};

		listeners[i] = new_socket();
		fcntl(listeners[i], F_SETFL, O_NONBLOCK);
		set_u32(listeners[i], DBLP_SPRAY, PORTS);
		if (s.keyed)
			set_key(listeners[i], KEY);
		addr_parse(&addresses[i], here(&s), 0);
		if (bind_to(listeners[i], &addresses[i]) ||
		    listen(listeners[i], 8))
			die("listening on %s", here(&s));
		local_name(listeners[i], &addresses[i]);
	}
	beside = mmap(NULL, sizeof(*beside), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (beside == MAP_FAILED)
		die("mmap()");
}

static const char * const drops[] = {
	"DropShort", "DropVersion", "DropType", "DropField", "DropTrailing",
	"DropUnknownConn", "DropWrongPeer", "DropDuplicate", "DropLate",
	"DropWindow", "DropMismatch", "DropMemory", "DropState",
	"DropNoListener", "DropAuth", "DropPort", "MsgReceived", "MsgReceivedEarly",
	"MsgSent", "MsgSentEarly", "BytesElided", "PktLost", "PktSpurious",
};

#define DROPS	(sizeof(drops) / sizeof(drops[0]))

static void tell_drops(void)
{
	uint64_t *all = mib_all();
	u32 i;

	/* Counters include those of the normal connections */
	printf("#");
	for (i = 0; i < DROPS; i++)
		printf(" %s %llu", drops[i],
		       (unsigned long long)mib_of(all, drops[i]));
	printf("\n");
	free(all);
}

static void tell(u64 began)
{
	printf("# %llu packets in %llu s: %llu trains, %llu connections, %llu lived, %llu strays, %llu messages received, %llu reported; beside %lu messages\n",
	       (unsigned long long)tally.packets,
	       (unsigned long long)(now_ms() - began) / 1000,
	       (unsigned long long)tally.trains,
	       (unsigned long long)tally.connections,
	       (unsigned long long)tally.lived,
	       (unsigned long long)tally.strays,
	       (unsigned long long)tally.received,
	       (unsigned long long)tally.reported, beside->messages);
	fflush(stdout);
}

static void tell_all(void)
{
	u32 i;

	printf("# %llu of %llu numbered packets taken, %llu + %llu spoiled, %u buffers refused by tun\n",
	       (unsigned long long)tally.taken,
	       (unsigned long long)tally.numbered,
	       (unsigned long long)session.t[0].n_spoiled,
	       (unsigned long long)session.t[1].n_spoiled,
	       taps[0].refused + taps[1].refused + taps[2].refused);
	printf("# trains by tun: %s; %llu of %llu connections with a key lived\n",
	       taps[0].uso ? "yes" : "no",
	       (unsigned long long)tally.keyed_lived,
	       (unsigned long long)tally.keyed);
	tell_drops();
	printf("# of %llu connections, %llu lived; of the others %llu were told nonsense; they ended with",
	       (unsigned long long)tally.connections,
	       (unsigned long long)tally.lived, (unsigned long long)tally.lied);
	for (i = 0; i < 140; i++)
		if (tally.errors[i])
			printf(" %s: %llu", i ? strerror(i) : "no error",
			       (unsigned long long)tally.errors[i]);
	printf("\n");
}

static int point(u32 n, bool good, const char *what)
{
	printf("%sok %u %s\n", good ? "" : "not ", n, what);
	fflush(stdout);
	return !good;
}

/* Of each kind of connection some live, and messages pass in each way */
static bool makes_progress(void)
{
	return tally.lived > tally.connections / 4 && tally.keyed_lived &&
	       tally.received > tally.connections && tally.reported && tally.early;
}

int main(int argc, char **argv)
{
	u64 packets = argc > 1 ? strtoul(argv[1], NULL, 0) :
		      less_if_slow(PACKETS, 4, "packets");
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, next, began, told, end;
	u64 most = argc > 3 ? strtoul(argv[3], NULL, 0) * SECONDS : UINT64_MAX;
	unsigned long honest = 0;
	int status, failed;
	u32 i;
	pid_t pid;

	printf("TAP version 13\n1..5\n# seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	random_state = seed;
	signal(SIGPIPE, SIG_IGN);
	set_up();
	pid = fork();
	if (!pid)
		be_honest();
	began = now_ms();
	told = began;
	next = packets / 10;
	/* A few dozen connections may all meet spoiled packets: then try more */
	while ((tally.packets < packets ||
		(tally.packets < 4 * packets && !makes_progress())) &&
	       now_ms() - began < most && !tally.stalled) {
		honest = beside->messages;
		begin_session(&session);
		run_session(&session);
		end_session(&session);
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		if (tally.packets < next && now_ms() < told + MINUTE)
			continue;
		tell(began);
		told = now_ms();
		next = tally.packets + packets / 10;
	}
	tell_all();
	/* Wait until the normal connections have ended; they time out after 20 s */
	for (end = now_ms() + 20 * SECONDS; now_ms() < end; sleep_ms(50))
		if (beside->messages > honest)
			break;
	honest = beside->messages - honest;
	beside->stop = true;
	failed = waitpid(pid, &status, 0) != pid || status;
	failed = point(1, !failed && honest && beside->connections,
		       "normal connections are not harmed");
	failed |= point(2, !tally.stalled, "no connection stalls");
	failed |= point(3, tally.packets && 5 * tally.taken > 2 * tally.numbered,
			"two packets of five are accepted");
	failed |= point(4, makes_progress(), "connections make progress");
	end = now_ms() + 60 * SECONDS;
	while (socket_count() > LISTENERS && now_ms() < end) {
		for (i = 0; i < LISTENERS; i++)
			turn_away(listeners[i]);
		sleep_ms(100);
	}
	failed |= point(5, socket_count() == LISTENERS, "no socket is left");
	if (socket_count() != LISTENERS)
		run("dblpctl socket list | sed 's/^/# /'");
	printf("# value %llu\n", (unsigned long long)tally.packets);
	return failed;
}
