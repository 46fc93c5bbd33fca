/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A scripted peer: a test plays the other end of a connection over a UDP socket. The
 * peer sends only packets that the test makes, and records received ones. It has no
 * timers and does not acknowledge by itself.
 */
#ifndef DBLP_SCRIPTED_H
#define DBLP_SCRIPTED_H

#include <linux/types.h>
#include <stdbool.h>

#include "ranges.h"
#include "tags.h"
#include "testlib.h"
#include "wire.h"

/* Version of the protocol before this one */
#define ANOTHER_VERSION	(DBLP_VERSION - 1)

/** struct packet - bytes of a packet */
struct packet {
	u32	len;
	u8	byte[66000];
};

/**
 * struct peer - the scripted peer
 * @udp: its socket, connected to the other end
 * @cid: its own connection ID
 * @scid: connection ID of the other end
 * @rtt_us: round-trip time that it reports in the handshake
 * @features: features that it supports; default none
 * @ports: number of ports that it requests, 0 for one
 * @pn: its next packet number
 * @cookie: cookie of the INIT-ACK
 * @tags: its key, or NULL; with a key its packets have tags once the cookie is known
 * @time: time in the last packet of the handshake, to be echoed
 * @theirs: parameters of the COOKIE-ACK (as a server, of the COOKIE-ECHO)
 * @n: number of received packets, by type
 * @bytes: bytes of received packets, by type
 * @last: the last received packet, by type
 * @rst_reason: reason of the last RST
 * @rst_echo: echo field of the last RST
 * @acked: acknowledged packet numbers below 4096
 * @close: the last CLOSE
 * @n_close: number of received CLOSE frames
 * @n_fin: number of received FIN frames
 * @budget: the last BUDGET
 * @cancel: the last CANCEL
 * @n_cancel: number of received CANCEL frames
 * @flow: the last FLOW
 * @largest_acked: largest acknowledged packet number
 * @share: number of senders to the other end, from the newest ACK
 * @share_all: bytes that all of these have sent, from the same frame
 * @arrival: arrival time of a packet by the other end's clock, from the newest ACK
 * @n_arrival: number of received arrival times
 * @largest: largest received packet number, plus 1
 * @came: received packet numbers; peer_ack_all() acknowledges them
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

/* Functions that make packets. The type determines the header. */
void make_packet(struct packet *p, u8 type, u32 pn, u64 dcid);
void put_bytes(struct packet *p, const void *bytes, u32 len);
void put_zero(struct packet *p, u32 len);
void put_word(struct packet *p, u32 word);
void put_u64_be(struct packet *p, u64 v);
void make_init(struct packet *p, u64 cid);
/** make_init_ack(), make_cookie_ack() - as a server, with the last received time */
void make_init_ack(struct packet *p, const struct peer *peer,
		   const struct dblp_cookie *cookie);
void make_cookie_ack(struct packet *p, const struct peer *peer,
		     const struct dblp_params *ours);
void make_echo(struct packet *p, const struct peer *peer,
	       const struct dblp_params *ours);
/** send_echo(), send_rst() - make and send a COOKIE-ECHO or an RST */
void send_echo(struct peer *peer, struct packet *p, const struct dblp_params *ours);
void make_rst(struct packet *p, u64 dcid, u32 reason, u64 echo);
void send_rst(struct peer *peer, struct packet *p, u64 dcid, u32 reason, u64 echo);
/** make_ctrl() - make a CTRL packet with one frame and a new packet number */
void make_ctrl(struct packet *p, struct peer *peer, const struct dblp_frame *f);
/** FRAME() - initializer of a frame of @TYPE, with these fields of @member */
#define FRAME(TYPE, member, ...) \
	{ .type = DBLP_FRAME_##TYPE, .member = { __VA_ARGS__ } }
/** send_frame() - make and send a CTRL packet with one frame */
void send_frame(struct peer *peer, struct packet *p,
		const struct dblp_frame *f);
/** send_fin() - send a FIN after @end messages */
void send_fin(struct peer *peer, struct packet *p, u32 end);

/** enum half - bit mask of the ends that have shut down sending */
enum half {
	HALF_NONE,
	HALF_PEER,
	HALF_OURS,
	HALF_BOTH,
};

/** PLAYED_CONNECTION - members of a fixture: a connection to a scripted peer */
#define PLAYED_CONNECTION \
	struct sockaddr_dblp addr; \
	struct peer peer; \
	struct packet p; \
	int listener; \
	int fd

/** FIXTURE_BY_HALF() - variants of a fixture: before and after both ends shut down sending */
#define FIXTURE_BY_HALF(name) \
	FIXTURE_VARIANT(name) { enum half half; }; \
	FIXTURE_VARIANT_ADD(name, open) { .half = HALF_NONE }; \
	FIXTURE_VARIANT_ADD(name, half_closed) { .half = HALF_BOTH }

/**
 * half_close() - let ends of a connection shut down sending
 * @peer: the scripted peer
 * @fd: the other end
 * @half: the ends
 * @end: number of messages of the peer, which may all follow its FIN
 */
void half_close(struct peer *peer, int fd, enum half half, u32 end);
/**
 * make_data() - make a DATA packet with a new packet number
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
/** send_one() - make and send one DATA packet */
void send_one(struct peer *peer, struct packet *p, const struct dblp_data *d,
		 u32 seg_size, const struct dblp_frame *f);
/** send_data() - make and send DATA packets of segments @first ... @first + @n - 1 */
void send_data(struct peer *peer, struct packet *p, struct dblp_data *d,
	       u32 seg_size, u32 first, u32 n, const struct dblp_frame *f);
/** make_zeros() - make a DATA packet with a zero map of @words words from the offset of @d */
void make_zeros(struct packet *p, struct peer *peer, const struct dblp_data *d,
		u32 seg_size, const struct dblp_frame *f, const u32 *map,
		u32 words);
/** send_zeromap() - make and send a DATA packet with a zero map */
void send_zeromap(struct peer *peer, struct packet *p, const struct dblp_data *d,
		  u32 seg_size, const struct dblp_frame *f, const u32 *map, u32 words);
/** send_lossmap() - send a LOSSMAP of one word, whose first bit is segment @first */
void send_lossmap(struct peer *peer, struct packet *p, u32 id, u32 first, u32 word);

/** add_frame() - append a frame to those of the packet; NULL if there is no room */
void add_frame(struct packet *p, const struct dblp_frame *f);
/** add_filler() - append @len bytes of frames without effect: 0, 8, 12 ... */
void add_filler(struct packet *p, u32 len);

/** poke() - write @size bytes of a field, most significant first */
void poke(struct packet *p, u32 at, u32 size, u64 value);

/** packet_data() - parse the data header of a valid DATA packet */
struct dblp_data packet_data(const struct packet *p);

void send_packet(const struct peer *peer, const struct packet *p);
/** send_packet_to() - send a packet from the peer's port to another address */
void send_packet_to(const struct peer *peer, const struct packet *p,
		    const struct sockaddr_dblp *to);

/** sign_packets() - add tags to @n packets, if the peer has a key */
void sign_packets(const struct peer *peer, struct packet *p, u32 n);

/** send_train() - send @n packets as one buffer; only the last may be shorter; not signed */
void send_train(const struct peer *peer, const struct packet *p, u32 n);

/** large_pages() - allocate @n pages of @size bytes, a power of two; never freed */
void *large_pages(u32 size, u32 n);

/**
 * splice_train() - as send_train(), from memory that is not copied
 * @peer: the sender; Linux 6.1 copies nevertheless with IPv6
 * @pages: memory into which the packets are put
 * @p: the packets
 * @n: number of packets
 */
void splice_train(const struct peer *peer, void *pages, const struct packet *p,
		  u32 n);

/** peer_connect() - open a UDP socket to @to; sends no packet */
void peer_connect(struct peer *peer, const struct sockaddr_dblp *to);
/** peer_listen() - open a UDP socket at @text; stores its address in @at */
void peer_listen(struct peer *peer, const char *text, struct sockaddr_dblp *at);
void peer_close(struct peer *peer);

/**
 * peer_expect() - receive packets until one of @type arrives
 * @ms: time limit
 *
 * Return: false after the time limit.
 */
bool peer_expect(struct peer *peer, u8 type, int ms);
/** peer_drain() - receive packets without waiting */
void peer_drain(struct peer *peer);

/** params_default() - parameters of the scripted peer in the handshake */
struct dblp_params params_default(void);
/** peer_get_cookie() - exchange INIT and INIT-ACK */
void peer_get_cookie(struct peer *peer);
/** peer_handshake() - do the whole handshake, as a client */
void peer_handshake(struct peer *peer);
/** peer_join() - connect to @listener at @to; returns the accepted socket */
int peer_join(struct peer *peer, const struct sockaddr_dblp *to, int listener);

/**
 * peer_sync() - wait until all sent packets have been processed
 *
 * Sends a PING and waits for its ACK: the loopback interface does not reorder packets of
 * a connection.
 *
 * Return: false if the PING is not acknowledged.
 */
bool peer_sync(struct peer *peer);
/** peer_ask() - peer_sync(), with a PING that requests @wanted bytes of credit in all */
bool peer_ask(struct peer *peer, uint64_t wanted);
/** peer_ack() - acknowledge packet numbers @first ... @last */
void peer_ack(struct peer *peer, u32 first, u32 last);
/**
 * peer_ack_all() - acknowledge all received packets, and no skipped numbers
 */
void peer_ack_all(struct peer *peer);
/**
 * peer_ack_closes() - acknowledge all received packets, so that no CLOSE is repeated
 *
 * A repeated CLOSE counts as acknowledged when its latest copies are.
 *
 * Return: false if the other end does not process the ACK.
 */
bool peer_ack_closes(struct peer *peer);
/** peer_came() - record a received packet number, if peer_expect() did not */
void peer_came(struct peer *peer, u32 pn);
/** frame_of_all() - the ACK frame of peer_ack_all() */
struct dblp_frame frame_of_all(const struct peer *peer);

/** random_next() - next random number; the initial @state is the seed */
u32 random_next(u64 *state);

#endif /* DBLP_SCRIPTED_H */
