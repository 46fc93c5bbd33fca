// SPDX-License-Identifier: GPL-2.0-only
/*
 * Message objects: allocation and release, and messages in pieces.
 *
 * A user's message that exceeds dblp_single_max() is sent as several messages
 * of the protocol, its pieces. Each piece has its own ID, credit, loss budget
 * and loss map, so that lower layers see single messages only. META has the
 * offset of a piece in the user's message. This file joins the outcomes of
 * pieces, for the sender's report and for recv.c.
 */
#include "dblp.h"

static void dblp_tx_free_segs(struct dblp_tx_msg *msg)
{
	if (msg->segs != msg->few_segs)
		kvfree(msg->segs);
	msg->segs = NULL;
}

static void dblp_multi_free(struct dblp_sock *dsk, struct dblp_tx_multi *multi);

/** dblp_tx_free() - free and uncharge a message that is on no list */
void dblp_tx_free(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (!msg)
		return;
	if (msg->joined) {
		dblp_multi_free(dsk, dblp_tx_multi(msg));
		return;
	}
	dblp_multi_put(dsk, msg->multi);
	dblp_txbuf_free(dsk, msg);
	dblp_tx_free_segs(msg);
	kfree(msg->lossmap.bits);
	dblp_tx_uncharge(dsk, msg, msg->truesize);
	kfree(msg);
}

/** dblp_tx_strip() - free all memory of a message except its loss map */
void dblp_tx_strip(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	u32 keep = kmalloc_size_roundup(sizeof(*msg));

	sock_owned_by_me(&dsk->sk);
	if (msg->lossmap.bits)
		keep += dblp_segmap_bytes(msg->lossmap.n);
	dblp_txbuf_free(dsk, msg);
	dblp_tx_free_segs(msg);
	dblp_tx_uncharge(dsk, msg, msg->truesize - keep);
	if (msg->missing_segs)
		msg->ranges = dblp_segmap_ranges(&msg->lossmap);
}

/**
 * dblp_tx_zalloc() - charge a socket for memory of a message, and allocate it
 * @dsk: socket, locked
 * @size: bytes; set to the bytes charged, as rounded up by the allocator
 *
 * The caller adds @size to @truesize of the message.
 *
 * Context: process.
 * Return: zeroed memory, for kvfree(), or ERR_PTR() of -ENOBUFS or -ENOMEM.
 */
void *dblp_tx_zalloc(struct dblp_sock *dsk, u32 *size)
{
	int err;
	void *p;

	sock_owned_by_me(&dsk->sk);
	*size = kmalloc_size_roundup(*size);
	err = dblp_tx_charge(dsk, *size);
	if (err)
		return ERR_PTR(err);
	p = kvzalloc(*size, DBLP_GFP_SEND);
	if (p)
		return p;
	sk_wmem_queued_add(&dsk->sk, -(int)*size);
	sk_mem_uncharge(&dsk->sk, *size);
	return ERR_PTR(-ENOMEM);
}

/**
 * dblp_tx_alloc() - allocate a message
 * @dsk: socket, locked
 * @len: bytes, at least 1
 *
 * The caller sets its options, cuts it, copies the bytes and queues it.
 *
 * Context: process.
 * Return: the message, or ERR_PTR() of -ENOBUFS or -ENOMEM.
 */
struct dblp_tx_msg *dblp_tx_alloc(struct dblp_sock *dsk, u32 len)
{
	struct dblp_tx_msg *msg;
	u32 size = sizeof(*msg);

	sock_owned_by_me(&dsk->sk);
	msg = dblp_tx_zalloc(dsk, &size);
	if (IS_ERR(msg))
		return msg;
	INIT_LIST_HEAD(&msg->list);
	INIT_LIST_HEAD(&msg->lost_node);
	msg->len = len;
	msg->total = len;
	msg->truesize = size;
	return msg;
}

/**
 * dblp_multi_alloc() - allocate a message in pieces
 * @dsk: socket
 * @total: bytes
 *
 * Context: process.
 * Return: the message with one reference, or ERR_PTR() of -ENOBUFS or -ENOMEM.
 */
struct dblp_tx_multi *dblp_multi_alloc(struct dblp_sock *dsk, u32 total)
{
	struct dblp_tx_multi *multi;
	u32 size = sizeof(*multi);

	sock_owned_by_me(&dsk->sk);
	multi = dblp_tx_zalloc(dsk, &size);
	if (IS_ERR(multi))
		return multi;
	multi->msg.truesize = size;
	INIT_LIST_HEAD(&multi->msg.list);
	INIT_LIST_HEAD(&multi->msg.lost_node);
	INIT_LIST_HEAD(&multi->pieces);
	multi->msg.len = total;
	multi->msg.total = total;
	multi->msg.joined = 1;
	multi->refs = 1;
	return multi;
}

/* Free and uncharge a message in pieces that is on no list */
static void dblp_multi_free(struct dblp_sock *dsk, struct dblp_tx_multi *multi)
{
	struct dblp_tx_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, &multi->pieces, list)
		dblp_tx_free(dsk, msg);
	dblp_tx_uncharge(dsk, &multi->msg, multi->msg.truesize);
	kfree(multi);
}

/** dblp_multi_put() - drop a reference to a message in pieces */
void dblp_multi_put(struct dblp_sock *dsk, struct dblp_tx_multi *multi)
{
	if (multi && !--multi->refs)
		dblp_multi_free(dsk, multi);
}

/* Keep the pieces sorted. Search from the end, as most settle in order */
static void dblp_multi_add_map(struct dblp_tx_multi *multi,
			       struct dblp_tx_msg *msg)
{
	struct dblp_tx_msg *before;

	list_for_each_entry_reverse(before, &multi->pieces, list)
		if (before->offset < msg->offset)
			break;
	list_add(&msg->list, &before->list);
	multi->msg.ranges += msg->ranges;
}

/* Count a range that continues across a boundary of pieces only once */
static void dblp_multi_count(struct dblp_tx_multi *multi)
{
	struct dblp_tx_msg *msg, *prev = NULL;

	list_for_each_entry(msg, &multi->pieces, list) {
		if (prev && prev->offset + prev->len == msg->offset &&
		    dblp_segmap_touch(&prev->lossmap, &msg->lossmap))
			multi->msg.ranges--;
		prev = msg;
	}
}

/**
 * dblp_multi_settled() - add the outcome of a settled piece to its message
 * @dsk: socket
 * @msg: the piece, on no list; freed, or kept for its loss map
 * @keep: the loss map will be needed
 *
 * Return: the message if this was its last piece, else NULL.
 */
struct dblp_tx_msg *dblp_multi_settled(struct dblp_sock *dsk,
				       struct dblp_tx_msg *msg, bool keep)
{
	struct dblp_tx_multi *multi = msg->multi;

	sock_owned_by_me(&dsk->sk);
	msg->multi = NULL;
	multi->msg.missing += msg->missing;
	multi->msg.reason = max(multi->msg.reason, msg->reason);
	multi->msg.flags |= msg->flags;
	/* Pieces may differ in budget: report the largest */
	if (!msg->offset || msg->missing)
		multi->msg.budget_most = max(multi->msg.budget_most,
					     msg->budget);
	if (keep && msg->missing) {
		dblp_tx_strip(dsk, msg);
		dblp_multi_add_map(multi, msg);
	} else {
		dblp_tx_free(dsk, msg);
	}
	if (--multi->refs)
		return NULL;
	dblp_tx_leave_buffer(dsk, &multi->msg);
	multi->msg.budget = multi->msg.budget_most;
	if (multi->msg.reason == DBLP_REASON_CANCELLED) {
		/* The receiver has also dropped the pieces closed earlier */
		multi->msg.missing = multi->msg.total;
		multi->msg.ranges = 1;
		multi->msg.flags = 0;
	} else {
		dblp_multi_count(multi);
	}
	return &multi->msg;
}

/**
 * dblp_tx_ranges() - loss map of a message that was sent
 * @msg: settled message with @ranges > 0
 *
 * Return: its ranges by rising offset, to be freed with kvfree(), or NULL.
 */
struct dblp_range *dblp_tx_ranges(struct dblp_tx_msg *msg)
{
	struct dblp_tx_msg *piece;
	struct dblp_range *r;
	u32 n = 0;

	r = kvcalloc(msg->ranges, sizeof(*r), DBLP_GFP_CALL);
	if (!r)
		return NULL;
	if (msg->reason == DBLP_REASON_CANCELLED) {
		*r = (struct dblp_range) { .length = msg->total };
		return r;
	}
	if (!msg->joined) {
		dblp_segmap_list(&msg->lossmap, msg->seg_size, msg->len, 0, r,
				 0);
		return r;
	}
	list_for_each_entry(piece, &dblp_tx_multi(msg)->pieces, list)
		n = dblp_segmap_list(&piece->lossmap, piece->seg_size,
				     piece->len, piece->offset, r, n);
	return r;
}

/**
 * dblp_rx_free_bytes() - free the buffers of a message, and keep its map
 * @msg: message
 * @read: the buffers were read: drop monitors must not count them as drops
 */
void dblp_rx_free_bytes(struct dblp_rx_msg *msg, bool read)
{
	struct sk_buff *skb;

	while (read && (skb = __skb_dequeue(&msg->skbs)))
		consume_skb(skb);
	__skb_queue_purge(&msg->skbs);
	msg->batch = (struct dblp_rx_batch){};
	msg->packed = NULL;
	msg->copied = NULL;
}

/**
 * dblp_rx_drop_cancelled() - free the buffers being read if cancelled meanwhile
 * @msg: message; a reader has unlocked the socket to copy its @taken buffers
 */
void dblp_rx_drop_cancelled(struct dblp_rx_msg *msg)
{
	if (msg->reason == DBLP_REASON_CANCELLED)
		__skb_queue_purge(&msg->taken);
}

/** dblp_rx_put() - drop a reference to a message */
void dblp_rx_put(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	if (--msg->refs)
		return;
	__skb_queue_purge(&msg->skbs);
	__skb_queue_purge(&msg->taken);
	dblp_rmem_uncharge(&dsk->sk, msg->truesize);
	kfree(msg);
}

/** dblp_rx_put_list() - empty a list of messages, dropping its references */
void dblp_rx_put_list(struct dblp_sock *dsk, struct list_head *msgs)
{
	struct dblp_rx_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, msgs, list) {
		list_del_init(&msg->list);
		dblp_rx_put(dsk, msg);
	}
}

/** dblp_rx_cancelled() - was a message with these pieces cancelled? */
bool dblp_rx_cancelled(const struct list_head *pieces)
{
	const struct dblp_rx_msg *msg;

	list_for_each_entry(msg, pieces, list)
		if (msg->reason == DBLP_REASON_CANCELLED)
			return true;
	return false;
}

/**
 * dblp_rx_ranges() - loss map of a received message
 * @pieces: its pieces by offset; complete pieces may be left out
 * @ranges: number of ranges, at least 1
 *
 * Return: the ranges by rising offset, to be freed with kvfree(), or NULL.
 */
struct dblp_range *dblp_rx_ranges(const struct list_head *pieces, u32 ranges)
{
	struct dblp_rx_msg *msg;
	struct dblp_range *r;
	u32 n = 0;

	r = kvcalloc(ranges, sizeof(*r), DBLP_GFP_CALL);
	if (!r)
		return NULL;
	if (dblp_rx_cancelled(pieces)) {
		msg = list_first_entry(pieces, struct dblp_rx_msg, list);
		*r = (struct dblp_range) { .length = msg->total };
		return r;
	}
	list_for_each_entry(msg, pieces, list)
		n = dblp_segmap_list(&msg->have, msg->seg_size, msg->len,
				     msg->offset, r, n);
	return r;
}

/**
 * dblp_rx_join() - join the outcomes of pieces to that of their message
 * @pieces: pieces by offset, at least the first and those with bytes missing
 * @info: set to the outcome
 */
void dblp_rx_join(const struct list_head *pieces, struct dblp_rcvinfo *info)
{
	struct dblp_rx_msg *msg, *prev = NULL;

	memset(info, 0, sizeof(*info));
	list_for_each_entry(msg, pieces, list) {
		if (!prev) {
			info->tag = msg->tag;
			info->msg_id = msg->number;
			info->length = msg->total;
			info->phase = msg->phase;
		} else if (prev->offset + prev->len == msg->offset &&
			   dblp_segmap_touch(&prev->have, &msg->have)) {
			info->ranges--;
		}
		if (!prev || msg->missing)
			info->budget = max(info->budget, msg->budget);
		info->missing += msg->missing;
		info->ranges += msg->ranges;
		info->reason = max(info->reason, msg->reason);
		info->flags |= msg->flags;
		prev = msg;
	}
	if (info->reason != DBLP_REASON_CANCELLED)
		return;
	info->missing = info->length;
	info->ranges = 1;
	info->flags = 0;
}
