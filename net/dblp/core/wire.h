/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packet formats and their codec. Documentation/protocol.rst has the diagrams
 * and says when each packet is sent; it uses the names of this file.
 *
 * Pure: free of kernel and socket calls, also built into the unit tests and
 * fuzzers in user space.
 */
#ifndef _NET_DBLP_WIRE_H
#define _NET_DBLP_WIRE_H

#include <asm/byteorder.h>
#include <linux/string.h>
#include <linux/types.h>

#define DBLP_VERSION		3	/* of the protocol */
#define DBLP_SHARE_UNIT		64U	/* bytes; wraps in 5 s at 400 Gbit/s */

/** enum dblp_pkt_type - low four bits of the first byte of each packet */
enum dblp_pkt_type {
	DBLP_PKT_INIT = 1,	/* client -> server: asks for a cookie */
	DBLP_PKT_INIT_ACK,	/* server -> client: the cookie; no state held */
	DBLP_PKT_COOKIE_ECHO,	/* client -> server: the cookie, parameters */
	DBLP_PKT_COOKIE_ACK,	/* server -> client: parameters; established */
	DBLP_PKT_VERSION,	/* the versions that the sender supports */
	DBLP_PKT_RST,		/* the connection has ended or is unknown */
	DBLP_PKT_ACK,		/* frames only, without a packet number */
	DBLP_PKT_CTRL,		/* frames only, numbered and acknowledged */
	DBLP_PKT_DATA,		/* frames and one segment of a message */
	DBLP_PKT_PROBE,		/* tests whether its size passes; numbered */
	__DBLP_PKT_MAX
};

/** enum dblp_frame_type - first byte of each control frame */
enum dblp_frame_type {
	DBLP_FRAME_ACK = 1,	/* ranges of packet numbers received */
	DBLP_FRAME_ECN,		/* counts of ECN marks received */
	DBLP_FRAME_FLOW,	/* credit of the receiver */
	DBLP_FRAME_CLOSE,	/* a message was closed with bytes missing */
	DBLP_FRAME_LOSSMAP,	/* a stretch of the loss map of that message */
	DBLP_FRAME_META,	/* attributes not in the data header */
	DBLP_FRAME_FIN,		/* no more messages will be sent */
	DBLP_FRAME_PING,	/* asks for an ACK and for credit */
	DBLP_FRAME_SHARE,	/* connections sending to this end */
	DBLP_FRAME_BUDGET,	/* the budget of a message has changed */
	DBLP_FRAME_AUTH,	/* authenticates the packet, see auth.c */
	DBLP_FRAME_CANCEL,	/* the sender cancels a message */
	DBLP_FRAME_ARRIVAL,	/* arrival time of the latest packet */
	__DBLP_FRAME_MAX
};

/** enum dblp_rst_reason - why a connection has ended, in a RST */
enum dblp_rst_reason {
	DBLP_RST_UNKNOWN = 1,	/* unknown connection */
	DBLP_RST_REFUSED,	/* no socket listens */
	DBLP_RST_CLOSED,	/* closed before all messages were read */
	DBLP_RST_PROTOCOL,	/* the peer violated the protocol */
	DBLP_RST_TIMEOUT,	/* the user timeout expired */
	DBLP_RST_AUTH,		/* the keys of the two ends differ */
	DBLP_RST_SPRAY,		/* the client asks for too many ports */
	__DBLP_RST_MAX
};

enum dblp_wire_size {
	DBLP_HDR_LEN		= 16,
	DBLP_DATA_HDR_LEN	= 16,	/* follows the header */
	DBLP_CTL_MAX		= 255 * 4,
	DBLP_INIT_LEN		= 128,	/* padded: no answer is longer */
	DBLP_COOKIE_LEN		= 24,
	DBLP_PARAMS_LEN		= 24,
	DBLP_PARAMS_RTT_MAX	= 60000000,	/* microseconds */
	DBLP_TIME_LEN		= 8,	/* echoed, to measure a round trip */
	DBLP_INIT_ACK_LEN	= DBLP_HDR_LEN + DBLP_COOKIE_LEN +
				  DBLP_TIME_LEN,
	DBLP_ECHO_PARAMS	= DBLP_HDR_LEN + 8 + DBLP_COOKIE_LEN,
	DBLP_ECHO_LEN		= DBLP_ECHO_PARAMS + DBLP_PARAMS_LEN +
				  DBLP_TIME_LEN,
	DBLP_COOKIE_ACK_LEN	= DBLP_HDR_LEN + DBLP_PARAMS_LEN +
				  DBLP_TIME_LEN,
	DBLP_RST_LEN		= DBLP_HDR_LEN + 16,
	/* Bytes of a segment of a message with several: see path.c */
	DBLP_SEG_MIN		= 224,
	DBLP_SEG_MAX		= 65528,
	DBLP_ACK_RANGES_MAX	= 64,
	DBLP_LOSSMAP_WORDS_MAX	= 120,	/* fits the smallest path MTU */
	DBLP_LOSSMAP_LEN_MAX	= 12 + 4 * DBLP_LOSSMAP_WORDS_MAX,
	DBLP_META_LEN		= 32,
	DBLP_AUTH_LEN		= 24,
	DBLP_TAG_LEN		= 16,	/* tag at the end of an AUTH frame */
};

/**
 * enum dblp_feature - optional features of this protocol version
 * @DBLP_FEATURE_CANCEL: CANCEL frames are understood
 * @DBLP_FEATURE_ARRIVAL: ARRIVAL frames are understood
 * @DBLP_FEATURE_SPRAY: a COOKIE-ECHO may ask for several ports
 * @DBLP_FEATURES: all features of this implementation
 */
enum dblp_feature {
	DBLP_FEATURE_CANCEL	= 1 << 0,
	DBLP_FEATURE_ARRIVAL	= 1 << 1,
	DBLP_FEATURE_SPRAY	= 1 << 2,
	DBLP_FEATURES		= DBLP_FEATURE_CANCEL | DBLP_FEATURE_ARRIVAL |
				  DBLP_FEATURE_SPRAY,
};

/* Bits of the last word of a data header */
#define DBLP_ATTR_BUDGET_SHIFT	12	/* ppm, 20 bits */
#define DBLP_ATTR_POLICY_SHIFT	10	/* enum dblp_policy, 2 bits */
#define DBLP_ATTR_PHASE_SHIFT	7	/* 3 bits */
#define DBLP_ATTR_CLASS_SHIFT	5	/* importance, 2 bits, reserved: 0 */
#define DBLP_ATTR_REPAIR	0x10	/* the first pass is over, see @repair */
#define DBLP_ATTR_META		0x08	/* the message has a META frame */
#define DBLP_ATTR_ZEROS		0x04	/* a zero map, no segment */
#define DBLP_ATTR_RESERVED	0x03	/* zero */

/**
 * struct dblp_hdr - header of every packet, in host byte order
 * @type: &enum dblp_pkt_type
 * @ctl_len: bytes of control frames
 * @seg_size: DATA: bytes of each segment of the message but the last; PROBE:
 *	index of the port that it announces; COOKIE-ECHO: number of ports of
 *	each end, or 0 for one; others: 0
 * @pn: low 32 bits of the packet number; 0 in packets without a number
 * @dcid: connection ID chosen by the receiver, 0 before it has chosen one
 */
struct dblp_hdr {
	u8	type;
	u16	ctl_len;
	u16	seg_size;
	u32	pn;
	u64	dcid;
};

/**
 * struct dblp_data - the segment of a DATA packet, in host byte order
 * @msg_id: message ID, counted from 0 in each direction, modulo 2^32
 * @offset: offset of the segment in the message, bytes, a multiple of seg_size.
 *	With a zero map: offset of its first segment, whose index is a multiple
 *	of 32
 * @msg_len: bytes of the message, 1 ... DBLP_MSG_MAX
 * @seg_len: bytes of this segment, or of the zero map
 * @budget: ppm
 * @policy: &enum dblp_policy
 * @phase: 0 ... 7
 * @repair: the first pass of the message ended before or with this packet
 * @meta: the message has a META frame
 * @zeros: the packet has a zero map instead of a segment, see segmap.h
 */
struct dblp_data {
	u32	msg_id;
	u32	offset;
	u32	msg_len;
	u32	seg_len;
	u32	budget;
	u8	policy;
	u8	phase;
	bool	repair;
	bool	meta;
	bool	zeros;
};

/**
 * struct dblp_params - parameters that each end sends in the handshake
 * @cap: ppm: receive budget cap
 * @max_msg: first message ID that may not be sent yet
 * @window: bytes: most credit that will be outstanding
 * @max_data: initial credit, bytes: sum of the costs of the messages that may
 *	be sent, see FLOW
 * @msg_max: bytes: largest message that this end accepts
 * @rtt_us: microseconds: round-trip time that this end has measured, 0 if none
 * @features: &enum dblp_feature, 12 bits: from a client, the features that both
 *	it and the cookie have; from a server 0
 */
struct dblp_params {
	u32	cap;
	u32	max_msg;
	u32	window;
	u32	max_data;
	u32	msg_max;
	u32	rtt_us;
	u16	features;
};

/**
 * struct dblp_cookie - proves that a client receives packets at its address
 * @scid: connection ID that the server will use
 * @born_ms: creation time, milliseconds of the server's clock, 48 bits
 * @features: &enum dblp_feature of the server
 * @mac: keyed hash over the fields above, both connection IDs and both
 *	addresses
 */
struct dblp_cookie {
	u64	scid;
	u64	born_ms;
	u16	features;
	u64	mac;
};

/**
 * struct dblp_frame - one control frame, in host byte order
 * @type: &enum dblp_frame_type
 * @ack: ranges by falling packet number, low 32 bits; the first has the largest
 * @ecn: number of packets received with each mark
 * @flow: credit and cap of the receiver
 * @close: @missing is in bytes, not 0; @reason is an &enum dblp_reason other
 *	than complete; @flags are &enum dblp_rcv_flags; @budget is the latest of
 *	the sender's that the receiver has. For a cancelled message all fields
 *	but @msg_id and @reason are 0
 * @lossmap: @bits points into the packet, big-endian words; bit i of word w,
 *	counted from the least significant, is segment first + 32 w + i; 1 means
 *	missing
 * @meta: attributes that do not fit the data header; @offset and @total refer
 *	to the user's message, of which this one may be a piece
 * @fin: @end is the total number of messages sent
 * @ping: @wanted is the credit that the next message waits for, as @max_data of
 *	@flow, or 0
 * @share: @n is the number of connections that receive messages, 1 ... 65535;
 *	@all counts the bytes that they have received, in units of
 *	DBLP_SHARE_UNIT bytes
 * @budget: the changed budget of a message
 * @auth: @key names the newest key of the sender; @number is the low 32 bits of
 *	the packet number if the header has none, else 0; @tag points into the
 *	packet
 * @cancel: attributes of the message, for a receiver that has no packet of it
 * @arrival: @at is the arrival time of the largest packet number of the ACK
 *	that follows, nanoseconds of the sender's clock, modulo 2^32
 */
struct dblp_frame {
	u8	type;
	union {
		struct {
			u32	delay_us;
			u32	n;
			struct {
				u32	first;
				u32	last;
			} range[DBLP_ACK_RANGES_MAX];
		} ack;
		struct {
			u32	ect0;
			u32	ect1;
			u32	ce;
		} ecn;
		struct {
			u32	max_msg;
			u32	cap;
			u64	max_data;
		} flow;
		struct {
			u32	msg_id;
			u32	missing;	/* bytes */
			u32	missing_segs;
			u32	budget;		/* ppm */
			u8	reason;		/* enum dblp_reason */
			u8	flags;		/* enum dblp_rcv_flags */
		} close;
		struct {
			u32	msg_id;
			u32	first;		/* multiple of 32 */
			u32	words;
			const u8 *bits;
		} lossmap;
		struct {
			u32	msg_id;
			u32	critical;	/* bytes */
			u32	deadline;	/* microseconds, 0: none */
			u32	offset;		/* bytes before this piece */
			u32	total;		/* bytes of all pieces */
			u64	tag;
		} meta;
		struct {
			u32	end;		/* messages sent in all */
		} fin;
		struct {
			u64	wanted;
		} ping;
		struct {
			u16	n;
			u32	all;
		} share;
		struct {
			u32	msg_id;
			u32	ppm;
		} budget;
		struct {
			u16	key;
			u32	number;
			const u8 *tag;	/* DBLP_TAG_LEN bytes */
		} auth;
		struct {
			u32	msg_id;
			u32	len;		/* bytes of this piece */
			u32	offset;		/* bytes before it */
			u32	total;		/* bytes of all pieces */
			u64	tag;
			bool	started;	/* its bytes use credit */
		} cancel;
		struct {
			u32	at;
		} arrival;
	};
};

/**
 * enum dblp_wire_error - why a packet was refused; most have a MIB counter
 * @DBLP_WIRE_OK: it was accepted
 * @DBLP_WIRE_SHORT: shorter than its fields say
 * @DBLP_WIRE_VERSION: of another version
 * @DBLP_WIRE_TYPE: of an unknown type
 * @DBLP_WIRE_FIELD: a field has an invalid value
 * @DBLP_WIRE_TRAILING: longer than its fields say
 * @DBLP_WIRE_AUTH: it has an AUTH frame, but the connection has no key
 */
enum dblp_wire_error {
	DBLP_WIRE_OK,
	DBLP_WIRE_SHORT,
	DBLP_WIRE_VERSION,
	DBLP_WIRE_TYPE,
	DBLP_WIRE_FIELD,
	DBLP_WIRE_TRAILING,
	DBLP_WIRE_AUTH,
};

/** dblp_load_u32() - read 4 bytes, most significant first */
static inline u32 dblp_load_u32(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

/** dblp_load_u64() - read 8 bytes, most significant first */
static inline u64 dblp_load_u64(const u8 *p)
{
	return (u64)dblp_load_u32(p) << 32 | dblp_load_u32(p + 4);
}

/*
 * Parsers. Each reads @len bytes at @p, never beyond, and needs no alignment.
 * They refuse every packet that deviates from the format.
 */
enum dblp_wire_error dblp_get_hdr(struct dblp_hdr *h, const u8 *p, u32 len);
enum dblp_wire_error dblp_check_len(const struct dblp_hdr *h, u32 len);
enum dblp_wire_error dblp_get_data(struct dblp_data *d,
				   const struct dblp_hdr *h,
				   const u8 *p, u32 len, u32 pkt_len);
enum dblp_wire_error dblp_get_frame(struct dblp_frame *f, const u8 **p,
				    u32 *len);
u32 dblp_auth_at(const struct dblp_hdr *h, u32 len);
enum dblp_wire_error dblp_get_params(struct dblp_params *a, const u8 *p);
void dblp_get_cookie(struct dblp_cookie *c, const u8 *p);

/*
 * Builders. Each writes at @p and returns the address after the last byte
 * written. The frame builders write nothing and return NULL if the frame would
 * exceed @end.
 */
u8 *dblp_put_hdr(u8 *p, const struct dblp_hdr *h);
u8 *dblp_put_data(u8 *p, const struct dblp_data *d);
bool dblp_needs_ack(u8 type);
u8 *dblp_put_frame(u8 *p, const u8 *end, const struct dblp_frame *f);
u8 *dblp_put_params(u8 *p, const struct dblp_params *a);
u8 *dblp_put_cookie(u8 *p, const struct dblp_cookie *c);
u8 *dblp_put_u64(u8 *p, u64 v);
u64 dblp_get_u64(const u8 *p);

/** dblp_store_u32() - write 4 bytes, most significant first */
static inline void dblp_store_u32(u8 *p, u32 v)
{
	__be32 be = __cpu_to_be32(v);

	memcpy(p, &be, sizeof(be));
}

/** dblp_numbered() - do packets of this type have a packet number? */
static inline bool dblp_numbered(u8 type)
{
	return type >= DBLP_PKT_CTRL;
}

/**
 * dblp_put_next() - change headers of a DATA packet into those of another one
 * @p: header and data header
 * @pn: packet number of the other packet, of the same message
 * @offset: offset of its segment in the message
 */
static inline void dblp_put_next(u8 *p, u32 pn, u32 offset)
{
	dblp_store_u32(p + 4, pn);
	dblp_store_u32(p + DBLP_HDR_LEN + 4, offset);
}

/**
 * dblp_put_row() - write the headers of DATA packets of a row
 * @p: place for the headers of the first packet
 * @stride: bytes from one packet to the next
 * @n: number of packets
 * @hdr: headers of any packet of the row
 * @len: bytes of @hdr, at least a header and a data header
 * @pn: packet number of the first packet
 * @offset: offset of the first segment in the message
 * @seg_size: bytes of each segment
 */
static inline void dblp_put_row(u8 *p, u32 stride, u32 n, const u8 *hdr,
				u32 len, u32 pn, u32 offset, u32 seg_size)
{
	for (; n; n--, p += stride, offset += seg_size, pn++) {
		/* A constant length makes memcpy() faster */
		if (len == DBLP_HDR_LEN + DBLP_DATA_HDR_LEN)
			memcpy(p, hdr, DBLP_HDR_LEN + DBLP_DATA_HDR_LEN);
		else
			memcpy(p, hdr, len);
		dblp_put_next(p, pn, offset);
	}
}

/**
 * dblp_hdr_follows() - do headers belong to a given segment of the message?
 * @p: header and data header of a packet
 * @first: header and data header of a DATA packet
 * @pn: low 32 bits of the expected packet number
 * @offset: expected offset of the segment
 *
 * Return: true if @p has @pn and @offset and is equal to @first in all other
 * fields.
 */
static inline bool dblp_hdr_follows(const u8 *p, const u8 *first, u32 pn,
				    u32 offset)
{
	u64 hdr = (u64)dblp_load_u32(first) << 32 | pn;
	u64 data = (u64)dblp_load_u32(first + DBLP_HDR_LEN) << 32 | offset;

	return dblp_load_u64(p) == hdr && !memcmp(p + 8, first + 8, 8) &&
	       dblp_load_u64(p + DBLP_HDR_LEN) == data &&
	       !memcmp(p + 24, first + 24, 8);
}

/**
 * dblp_ctl_alike() - bytes of control frames that are equal in packets of a run
 * @ctl: control frames of one of the packets
 * @len: bytes of @ctl
 *
 * Return: @len, less DBLP_TAG_LEN if the last frame is an AUTH frame.
 */
static inline u32 dblp_ctl_alike(const u8 *ctl, u32 len)
{
	const u32 first = DBLP_FRAME_AUTH << 24 | DBLP_AUTH_LEN / 4 << 16;

	if (len < DBLP_AUTH_LEN ||
	    (dblp_load_u32(ctl + len - DBLP_AUTH_LEN) & 0xffff0000) != first)
		return len;
	return len - DBLP_TAG_LEN;
}

/**
 * dblp_has_zeromap() - does a DATA packet have a zero map instead of a segment?
 * @p: header and data header, not validated yet
 */
static inline bool dblp_has_zeromap(const u8 *p)
{
	return p[DBLP_HDR_LEN + DBLP_DATA_HDR_LEN - 1] & DBLP_ATTR_ZEROS;
}

/**
 * dblp_pn_expand() - full packet number from its low 32 bits
 * @largest: largest packet number received, U64_MAX before the first
 * @pn: low 32 bits
 *
 * RFC 9000, appendix A.3, for a window of 2^32.
 *
 * Return: the packet number with these low bits that is nearest to
 * @largest + 1.
 */
static inline u64 dblp_pn_expand(u64 largest, u32 pn)
{
	return largest + 1 + (s64)(s32)(pn - (u32)(largest + 1));
}

#endif /* _NET_DBLP_WIRE_H */
