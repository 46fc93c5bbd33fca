/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control frames that are repeated until they are acknowledged.
 */
#ifndef _NET_DBLP_CTL_H
#define _NET_DBLP_CTL_H

#include <linux/list.h>
#include <linux/types.h>

struct dblp_frame;
struct dblp_rx_msg;
struct dblp_sock;
struct dblp_tx_msg;

/**
 * struct dblp_ctl - a control frame that is repeated until it is acknowledged
 * @list: on @ctl_queue (to be sent) or @ctl_flight (sent)
 * @type: &enum dblp_frame_type
 * @pn: packet that carried it last; U64_MAX if none
 * @pn_before: the one that did before that
 * @late: CLOSE: segments have come that the message was closed without
 * @msg: CLOSE, LOSSMAP: the message; a reference is held
 * @tx: BUDGET: the message
 * @id: CLOSE, BUDGET: of the message
 * @first: LOSSMAP: first segment
 * @words: LOSSMAP: number of words
 */
struct dblp_ctl {
	struct list_head	list;
	u8			type;
	bool			late;
	u64			pn;
	u64			pn_before;
	struct dblp_rx_msg	*msg;
	struct dblp_tx_msg	*tx;
	u32			id;
	u32			first;
	u32			words;
};

int dblp_ctl_add(struct dblp_sock *dsk, u8 type);
int dblp_ctl_add_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_ctl_flow(struct dblp_sock *dsk, struct dblp_frame *f);
u8 *dblp_ctl_fill(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 pn);
bool dblp_ctl_fill_late(struct dblp_sock *dsk, u8 **p, const u8 *end);
u8 *dblp_ctl_fill_closes(struct dblp_sock *dsk, u8 *p, const u8 *end);
void dblp_ctl_acked(struct dblp_sock *dsk, u64 pn);
void dblp_ctl_lost(struct dblp_sock *dsk, u64 pn);
void dblp_ctl_requeue(struct dblp_sock *dsk);
void dblp_ctl_purge(struct dblp_sock *dsk);
int dblp_ctl_make_budget(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			 struct list_head *to);
void dblp_ctl_queue(struct dblp_sock *dsk, struct list_head *frames);
void dblp_ctl_free_list(struct dblp_sock *dsk, struct list_head *frames);
void dblp_ctl_forget(struct dblp_sock *dsk, const struct dblp_tx_msg *tx);
void dblp_ctl_late(struct dblp_sock *dsk, u32 id);

#endif /* _NET_DBLP_CTL_H */
