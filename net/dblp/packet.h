/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets: when they are sent, what they contain, their acknowledgment.
 */
#ifndef _NET_DBLP_PACKET_H
#define _NET_DBLP_PACKET_H

#include <linux/sockptr.h>
#include <linux/types.h>

#include "core/wire.h"
#include "mib.h"

struct dblp_auth;
struct dblp_echo;
struct dblp_frame;
struct dblp_run;
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

/* output.c: what is sent, and when */
void dblp_push(struct dblp_sock *dsk);
void dblp_probe(struct dblp_sock *dsk, u64 now);

/* packet.c: building packets */
int dblp_send_raw(struct dblp_sock *dsk, const u8 *data, u32 len);
void dblp_send_rst(struct dblp_sock *dsk, u32 reason);
void dblp_send_ack(struct dblp_sock *dsk, u64 now);
bool dblp_send_ctl(struct dblp_sock *dsk, struct dblp_out *out, int probe);
bool dblp_send_segs(struct dblp_sock *dsk, struct dblp_out *out);
bool dblp_send_size_probe(struct dblp_sock *dsk, struct dblp_out *out, u32 len);
bool dblp_send_port_probe(struct dblp_sock *dsk, struct dblp_out *out,
			  u32 port);

/* frames.c: frames that are not retransmitted, and received frames */
void dblp_ack_done(struct dblp_sock *dsk, u64 now);
u8 *dblp_put_ecn(struct dblp_sock *dsk, u8 *p, const u8 *end);
u8 *dblp_put_ack_frames(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now);
u8 *dblp_put_meta(const struct dblp_tx_msg *msg, u8 *p, const u8 *end);
void dblp_ranges_free(struct dblp_sock *dsk);
void dblp_note_received(struct dblp_sock *dsk, const struct dblp_run *run);
enum dblp_wire_error dblp_check_frames(struct dblp_sock *dsk,
				       const struct dblp_run *run,
				       struct dblp_frame *f,
				       const u8 **meta);
int dblp_apply_frames(struct dblp_sock *dsk, const struct dblp_run *run,
		      struct dblp_frame *f);

/* sent.c: packets sent */
u32 dblp_ring_truesize(const struct dblp_sock *dsk);
int dblp_ring_init(struct dblp_sock *dsk, gfp_t gfp);
void dblp_ring_free(struct dblp_sock *dsk);
void dblp_ring_idle(struct dblp_sock *dsk);
void dblp_ring_shrink(struct dblp_sock *dsk);
u32 dblp_ring_room(struct dblp_sock *dsk, u32 want);
int dblp_sent_acked(struct dblp_sock *dsk, const struct dblp_frame *f, u64 now);
void dblp_cap_rate(struct dblp_sock *dsk);
void dblp_loss_expired(struct dblp_sock *dsk, u64 now);
bool dblp_lose_size_probes(struct dblp_sock *dsk);
void dblp_lose_larger(struct dblp_sock *dsk, u32 mss);
void dblp_lose_oldest(struct dblp_sock *dsk, u32 n);

/* auth.c: authentication tags; per packet, only if the socket has a key */
void dblp_auth_add(struct dblp_sock *dsk, struct sk_buff *skb);
u8 *dblp_auth_put(struct dblp_sock *dsk, u8 *p);
void dblp_auth_sign(struct dblp_sock *dsk, struct sk_buff *skb);
struct sk_buff *dblp_auth_own(const struct dblp_sock *dsk, struct sk_buff *skb);

enum dblp_mib_item dblp_auth_run(struct dblp_sock *dsk, struct dblp_run *run);
int dblp_auth_accept(const struct dblp_sock *listener,
		     const struct dblp_run *run, const struct dblp_echo *echo,
		     struct dblp_auth **ap);
void dblp_auth_connect(struct dblp_sock *dsk);
void dblp_auth_connected(struct dblp_sock *dsk);
void dblp_auth_reset(struct dblp_sock *dsk);
bool dblp_auth_note_refusal(struct dblp_sock *dsk, int err);
int dblp_auth_refused(struct dblp_sock *dsk, u64 now, bool timed_out);
int dblp_auth_set(struct dblp_sock *dsk, sockptr_t optval, unsigned int optlen);
u32 dblp_auth_state(const struct dblp_sock *dsk);
void dblp_auth_free(struct dblp_sock *dsk);

#endif /* _NET_DBLP_PACKET_H */
