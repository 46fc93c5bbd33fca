/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control frames that are repeated until they are acknowledged.
 */
#ifndef _NET_DBLP_CTL_H
#define _NET_DBLP_CTL_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct dblp_ctl;
struct dblp_frame;
struct dblp_rx_msg;
struct dblp_sent_pkt;
struct dblp_sock;
struct dblp_tx_msg;

/**
 * struct dblp_carried - link between a frame and a packet that carries it
 * @next: next frame in the packet
 * @prev: previous frame in the packet, NULL if this is the first
 * @ctl: the frame
 * @pn: number of the packet, U64_MAX if no packet carries the frame
 */
struct dblp_carried {
	struct dblp_carried	*next;
	struct dblp_carried	*prev;
	struct dblp_ctl		*ctl;
	u64			pn;
};

/**
 * struct dblp_ctl - a control frame that is repeated until it is acknowledged
 * @list: on @ctl_queue (to be sent) or @ctl_flight (sent) of the socket; empty
 *	once the frame is acknowledged
 * @carried: the last two packets that carried the frame
 * @last: index in @carried of the latest packet
 * @waits: @list is on @ctl_queue
 * @type: &enum dblp_frame_type
 * @words: LOSSMAP: number of words
 * @first: LOSSMAP: first segment
 * @notice: CLOSE, LOSSMAP: notice that the frame belongs to
 */
struct dblp_ctl {
	struct list_head	list;
	struct dblp_carried	carried[2];
	u8			last:1;
	u8			waits:1;
	u8			type;
	u16			words;
	u32			first;
	struct dblp_notice	*notice;
};

/**
 * struct dblp_notice - frames about a message that was closed with bytes
 *	missing; freed when all of them are acknowledged
 * @node: in @ctl_notices of the socket, by message ID
 * @late: on @ctl_late of the socket, if missing segments arrived after the
 *	message was closed while its CLOSE is not acknowledged
 * @msg: the message; a reference is held
 * @owed: number of frames that are not acknowledged
 * @truesize: bytes charged to the socket for this structure
 * @frame: CLOSE, then a LOSSMAP for each stretch with a missing segment
 */
struct dblp_notice {
	struct rb_node		node;
	struct list_head	late;
	struct dblp_rx_msg	*msg;
	u32			owed;
	u32			truesize;
	struct dblp_ctl		frame[];
};

/* Priority of frames: CLOSE is sent first, because it stops the sender */
enum dblp_ctl_rank {
	DBLP_CTL_STOP,
	DBLP_CTL_OTHER,
	__DBLP_CTL_RANKS,
};

void dblp_ctl_begin(struct dblp_sock *dsk);
void dblp_ctl_add(struct dblp_sock *dsk, u8 type);
int dblp_ctl_add_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_ctl_flow(struct dblp_sock *dsk, struct dblp_frame *f);
u64 dblp_rx_cost(const struct dblp_rx_msg *msg);
void dblp_rx_widen(struct dblp_sock *dsk, const struct dblp_rx_msg *msg);
u64 dblp_rx_credit_waits(const struct dblp_sock *dsk);
bool dblp_rx_offer(struct dblp_sock *dsk);
void dblp_rx_give_back(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_consume(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
bool dblp_ctl_waits(const struct dblp_sock *dsk);
bool dblp_ctl_owed(const struct dblp_sock *dsk);
u8 *dblp_ctl_fill(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 pn,
		  int probe, struct dblp_carried **first);
bool dblp_ctl_fill_late(struct dblp_sock *dsk, u8 **p, const u8 *end);
u8 *dblp_ctl_fill_closes(struct dblp_sock *dsk, u8 *p, const u8 *end);
struct dblp_tx_msg *dblp_ctl_acked(struct dblp_sock *dsk,
				   struct dblp_sent_pkt *pkt);
u32 dblp_ctl_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt);
void dblp_ctl_purge(struct dblp_sock *dsk);
void dblp_ctl_budget(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_cancel(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_forget(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_late(struct dblp_sock *dsk, u32 id, u64 pn);

#endif /* _NET_DBLP_CTL_H */
