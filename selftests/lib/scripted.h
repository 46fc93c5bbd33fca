/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The other end of a connection, played by a test over an ordinary UDP socket:
 * it sends whatever it is told to and notes what comes back. It has no timers
 * and acknowledges nothing by itself.
 */
#ifndef DBLP_SCRIPTED_H
#define DBLP_SCRIPTED_H

#include <linux/types.h>
#include <stdbool.h>

#include "ranges.h"
#include "tags.h"
#include "testlib.h"
#include "wire.h"

/* Of the protocol: that of before */
#define ANOTHER_VERSION	(DBLP_VERSION - 1)

/** struct packet - bytes of a packet */
struct packet {
	u32	len;
	u8	byte[66000];
};

/**
 * struct peer - the scripted end
 * @udp: its socket, connected to the other end
 * @cid: its own connection ID
 * @scid: connection ID of the other end
 * @rtt_us: round-trip time that it reports in the handshake
 * @features: that it has; none, unless a test says so
 * @ports: that it asks for, 0 for one
 * @pn: its next packet number
 * @cookie: from the INIT-ACK
 * @tags: its key, or NULL; what it sends has tags then, once the cookie is known
 * @time: from the last packet of the handshake, for its answer to echo
 * @theirs: from the COOKIE-ACK (or COOKIE-ECHO, when it plays the server)
 * @n: number of packets that came, by type
 * @bytes: bytes of those
 * @last: the last packet that came, by type
 * @rst_reason: of the last RST
 * @rst_echo: of the last RST
 * @acked: packet numbers below 4096 that were acknowledged
 * @close: the last CLOSE
 * @n_close: number of CLOSE frames that came
 * @n_fin: number of FIN frames that came
 * @budget: the last BUDGET
 * @cancel: the last CANCEL
 * @n_cancel: number of CANCEL frames that came
 * @flow: the last FLOW
 * @largest_acked: largest packet number that was acknowledged
 * @share: number of senders to the other end, as told with the newest ACK
 * @share_all: what all of them have sent, from the same frame
 * @arrival: when a packet of its came, by the other end's clock, as told with that ACK
 * @n_arrival: number of such reports
 * @largest: largest packet number that came, plus 1
 * @came: packet numbers that came; peer_ack_all() acknowledges them
 * @came_mem: memory of @came
 * @twin: another connection over the same UDP socket, or NULL; its packets are
 *	recorded there
 * @seen: if set, called for each packet recorded
 */
struct peer {
	int			udp;
	u64			cid;
	u64			scid;
	u32			rtt_us;
	u16			features;
	u16			ports;
	u32			pn;
	struct dblp_cookie	cookie;
	struct tags		*tags;
	u64			time;
	struct dblp_params	theirs;
	unsigned int		n[16];
	u64			bytes;
	struct packet		last[16];
	u32			rst_reason;
	u64			rst_echo;
	bool			acked[4096];
	struct dblp_frame	close;
	unsigned int		n_close;
	unsigned int		n_fin;
	struct dblp_frame	budget;
	struct dblp_frame	cancel;
	unsigned int		n_cancel;
	struct dblp_frame	flow;
	u32			largest_acked;
	u32			share;
	u32			share_all;
	u32			arrival;
	unsigned int		n_arrival;
	u32			largest;
	struct dblp_ranges	came;
	struct dblp_pn_range	came_mem[DBLP_RANGES_MAX];
	struct peer		*twin;
	void			(*seen)(struct peer *peer, const struct packet *p);
};

/* Making packets. The first argument determines the header. */
void make_packet(struct packet *p, u8 type, u32 pn, u64 dcid);
void put_bytes(struct packet *p, const void *bytes, u32 len);
void put_zero(struct packet *p, u32 len);
void put_word(struct packet *p, u32 word);
void put_u64_be(struct packet *p, u64 v);
void make_init(struct packet *p, u64 cid);
/** make_init_ack(), make_cookie_ack() - as a server, with the time that came last */
void make_init_ack(struct packet *p, const struct peer *peer,
		   const struct dblp_cookie *cookie);
void make_cookie_ack(struct packet *p, const struct peer *peer,
		     const struct dblp_params *ours);
void make_echo(struct packet *p, const struct peer *peer,
	       const struct dblp_params *ours);
/** send_echo(), send_rst() - make such a packet, and send it */
void send_echo(struct peer *peer, struct packet *p, const struct dblp_params *ours);
void make_rst(struct packet *p, u64 dcid, u32 reason, u64 echo);
void send_rst(struct peer *peer, struct packet *p, u64 dcid, u32 reason, u64 echo);
/** make_ctrl() - CTRL packet with one frame and a new number */
void make_ctrl(struct packet *p, struct peer *peer, const struct dblp_frame *f);
/** FRAME() - initializer of a frame of this type, whose @member has these fields */
#define FRAME(TYPE, member, ...) \
	{ .type = DBLP_FRAME_##TYPE, .member = { __VA_ARGS__ } }
/** send_frame() - make such a packet, and send it */
void send_frame(struct peer *peer, struct packet *p,
		const struct dblp_frame *f);
/** send_fin() - send a FIN after @end messages */
void send_fin(struct peer *peer, struct packet *p, u32 end);

/** enum half - the ends that have shut down sending, bit by bit */
enum half {
	HALF_NONE,
	HALF_PEER,
	HALF_OURS,
	HALF_BOTH,
};

/** PLAYED_CONNECTION - of a fixture: a connection whose other end is played by the test */
#define PLAYED_CONNECTION \
	struct sockaddr_dblp addr; \
	struct peer peer; \
	struct packet p; \
	int listener; \
	int fd

/** FIXTURE_BY_HALF() - a fixture before and after both ends have shut down sending */
#define FIXTURE_BY_HALF(name) \
	FIXTURE_VARIANT(name) { enum half half; }; \
	FIXTURE_VARIANT_ADD(name, open) { .half = HALF_NONE }; \
	FIXTURE_VARIANT_ADD(name, half_closed) { .half = HALF_BOTH }

/**
 * half_close() - let ends of a connection shut down sending
 * @peer: the scripted end
 * @fd: the other end
 * @half: the ends
 * @end: messages of the peer, which all may follow its FIN
 */
void half_close(struct peer *peer, int fd, enum half half, u32 end);
/**
 * make_data() - DATA packet with a new number
 * @p: filled
 * @peer: the sender
 * @d: the segment; @seg_len is computed, the contents are those of pattern_fill()
 *	with the seed SCRIPTED_SEED
 * @seg_size: bytes of each segment but the last
 * @f: control frame, or NULL
 */
void make_data(struct packet *p, struct peer *peer, const struct dblp_data *d,
	       u32 seg_size, const struct dblp_frame *f);
#define SCRIPTED_SEED	4711
/** send_one() - make such a packet, and send it */
void send_one(struct peer *peer, struct packet *p, const struct dblp_data *d,
		 u32 seg_size, const struct dblp_frame *f);
/** send_data() - make such packets of the segments @first ... @first + @n - 1, and send them */
void send_data(struct peer *peer, struct packet *p, struct dblp_data *d,
	       u32 seg_size, u32 first, u32 n, const struct dblp_frame *f);
/** make_zeros() - the same with a zero map of @words words from the offset of @d on */
void make_zeros(struct packet *p, struct peer *peer, const struct dblp_data *d,
		u32 seg_size, const struct dblp_frame *f, const u32 *map,
		u32 words);
/** send_zeromap() - make such a packet, and send it */
void send_zeromap(struct peer *peer, struct packet *p, const struct dblp_data *d,
		  u32 seg_size, const struct dblp_frame *f, const u32 *map, u32 words);
/** send_lossmap() - send a LOSSMAP of one word, whose first bit is segment @first */
void send_lossmap(struct peer *peer, struct packet *p, u32 id, u32 first, u32 word);

/** add_frame() - append a frame to those of the packet; NULL if there is no room */
void add_frame(struct packet *p, const struct dblp_frame *f);
/** add_filler() - append frames that say nothing, of @len bytes: 0, 8, 12 ... */
void add_filler(struct packet *p, u32 len);

/** poke() - write @size bytes of a field, most significant first */
void poke(struct packet *p, u32 at, u32 size, u64 value);

/** packet_data() - the data header of a valid DATA packet */
struct dblp_data packet_data(const struct packet *p);

void send_packet(const struct peer *peer, const struct packet *p);
/** send_packet_to() - from the peer's port to another address */
void send_packet_to(const struct peer *peer, const struct packet *p,
		    const struct sockaddr_dblp *to);

/** sign_packets() - give @n packets their tags, if the peer has a key */
void sign_packets(const struct peer *peer, struct packet *p, u32 n);

/** send_train() - @n packets in one buffer: all of one length but the last; not signed */
void send_train(const struct peer *peer, const struct packet *p, u32 n);

/** large_pages() - memory of @n pages of @size bytes, a power of two; never freed */
void *large_pages(u32 size, u32 n);

/**
 * splice_train() - the same, from memory that is not copied
 * @peer: the sender; Linux 6.1 copies it nonetheless, for IPv6
 * @pages: memory into which the packets are put
 * @p: the packets
 * @n: number of packets
 */
void splice_train(const struct peer *peer, void *pages, const struct packet *p,
		  u32 n);

/** peer_connect() - UDP socket to @to; no packet is sent */
void peer_connect(struct peer *peer, const struct sockaddr_dblp *to);
/** peer_listen() - UDP socket at @text; its address goes to @at */
void peer_listen(struct peer *peer, const char *text, struct sockaddr_dblp *at);
void peer_close(struct peer *peer);

/**
 * peer_expect() - receive packets until one of @type comes
 * @ms: time limit
 *
 * Return: true if it came.
 */
bool peer_expect(struct peer *peer, u8 type, int ms);
/** peer_drain() - receive packets without waiting */
void peer_drain(struct peer *peer);

/** params_default() - parameters of the scripted end in the handshake */
struct dblp_params params_default(void);
/** peer_get_cookie() - INIT and INIT-ACK */
void peer_get_cookie(struct peer *peer);
/** peer_handshake() - all four packets, as a client */
void peer_handshake(struct peer *peer);
/** peer_join() - connect to @listener at @to; returns the accepted socket */
int peer_join(struct peer *peer, const struct sockaddr_dblp *to, int listener);

/**
 * peer_sync() - wait until all packets sent have been processed
 *
 * By a PING: packets of one connection are not reordered on the loopback interface.
 *
 * Return: false if it is not acknowledged.
 */
bool peer_sync(struct peer *peer);
/** peer_ask() - peer_sync() by a PING that asks for @wanted bytes of credit in all */
bool peer_ask(struct peer *peer, uint64_t wanted);
/** peer_ack() - acknowledge packet numbers @first ... @last */
void peer_ack(struct peer *peer, u32 first, u32 last);
/**
 * peer_ack_all() - acknowledge all packets that came, and no skipped numbers
 */
void peer_ack_all(struct peer *peer);
/**
 * peer_ack_closes() - acknowledge all packets that came, so that no CLOSE is repeated
 *
 * One that came twice counts as heard when the latest copies are acknowledged.
 *
 * Return: false if that is not heard.
 */
bool peer_ack_closes(struct peer *peer);
/** peer_came() - record the number of a packet not received by peer_expect() */
void peer_came(struct peer *peer, u32 pn);
/** frame_of_all() - the frame of peer_ack_all() */
struct dblp_frame frame_of_all(const struct peer *peer);

/** random_next() - next random number; @state begins as the seed */
u32 random_next(u64 *state);

#endif /* DBLP_SCRIPTED_H */
