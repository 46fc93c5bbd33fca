/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Building and sending packets: see packet.c.
 */
#ifndef _NET_DBLP_PACKET_H
#define _NET_DBLP_PACKET_H

#include <linux/types.h>

struct dblp_sock;
struct dblp_tx_msg;
struct dst_entry;
struct sk_buff;

/**
 * struct dblp_out - a buffer to be sent, with a packet or a train
 * @dst: route; the socket holds the reference
 * @mss: UDP payload of a full packet on the route, in bytes
 * @now: the time, ns
 * @ahead: allowed lead of the pacer over @now, ns
 * @skb: the buffer
 * @type: &enum dblp_pkt_type of all packets in @skb
 * @n: number of packets in @skb; the sent ring has room for them
 * @msg: message of DATA packets, NULL for others
 * @seg: DATA: segment of the first packet, or an elided segment that a zero map
 *	describes
 * @again: DATA: @seg was sent before; @n is 1 then
 * @slot: DATA: slot of @seg in the sending order; the other segments follow
 * @hdr: DATA: headers to write in the headroom of each segment, NULL if the
 *	only packet has its headers already
 * @hdr_len: bytes of each packet before its segment, 0 if it has no segment
 */
struct dblp_out {
	struct dst_entry	*dst;
	u32			mss;
	u64			now;
	u64			ahead;
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
void dblp_send_ack(struct dblp_sock *dsk, u64 now);
bool dblp_send_ctl(struct dblp_sock *dsk, struct dblp_out *out, int probe);
bool dblp_send_segs(struct dblp_sock *dsk, struct dblp_out *out);
bool dblp_send_size_probe(struct dblp_sock *dsk, struct dblp_out *out, u32 len);
bool dblp_send_port_probe(struct dblp_sock *dsk, struct dblp_out *out,
			  u32 port);

#endif /* _NET_DBLP_PACKET_H */
