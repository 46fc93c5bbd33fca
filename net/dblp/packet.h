/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets that go out: see packet.c.
 */
#ifndef _NET_DBLP_PACKET_H
#define _NET_DBLP_PACKET_H

#include <linux/types.h>

struct dblp_sock;
struct dblp_tx_msg;
struct dst_entry;
struct sk_buff;

/**
 * struct dblp_out - a buffer that is about to be sent, with a packet or a train
 * @dst: route, whose reference is the socket's
 * @mss: UDP payload of a full packet on it, in bytes
 * @now: the time
 * @skb: the buffer
 * @type: &enum dblp_pkt_type of all packets in it
 * @n: number of packets in it, for each of which there is room in the ring
 * @msg: message of DATA packets, NULL of others
 * @seg: DATA: the segment of the first packet, or an elided one that its map is to
 *	describe
 * @again: DATA: that was sent before; then @n is 1
 * @slot: DATA: position of @seg in the sending order; those of the others follow
 * @hdr: DATA: headers to be written in the room before each segment, NULL if the
 *	one packet has its headers already
 * @hdr_len: bytes of each packet before its segment, 0 if it has none
 */
struct dblp_out {
	struct dst_entry	*dst;
	u32			mss;
	u64			now;
	struct sk_buff		*skb;
	u8			type;
	u32			n;
	struct dblp_tx_msg	*msg;
	u32			seg;
	bool			again;
	u32			slot;
	u8			*hdr;
	u32			hdr_len;
};

int dblp_send_raw(struct dblp_sock *dsk, const u8 *data, u32 len);
void dblp_send_rst(struct dblp_sock *dsk, u32 reason);
void dblp_send_ack(struct dblp_sock *dsk);
bool dblp_send_ctl(struct dblp_sock *dsk, struct dblp_out *out, int probe);
bool dblp_send_segs(struct dblp_sock *dsk, struct dblp_out *out);
bool dblp_send_size_probe(struct dblp_sock *dsk, struct dblp_out *out, u32 len);

#endif /* _NET_DBLP_PACKET_H */
