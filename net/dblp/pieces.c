// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages in pieces.
 *
 * A message that does not fit the send buffer or the peer's window goes as
 * several messages of the protocol, its pieces: each with an ID, credit, loss
 * budget and loss map of its own, so that nothing below knows more than one of
 * them. META says where in the user's message a piece belongs. What makes one
 * message of them again is here, for the sender's report, and in place.c and
 * recv.c for the receiver.
 */
#include "dblp.h"

/* Pieces are a quarter of what may be under way, but not smaller than this */
#define DBLP_PIECE_MIN	(64 << 10)

/**
 * dblp_piece_len() - how much of a message goes as the next piece
 * @dsk: socket
 * @offset: bytes of the message before it
 * @total: bytes of the message
 * @short_of_memory: no more is to be taken than is worth the trouble
 *
 * Half of the send buffer is the most that a piece takes, so that one can be
 * filled while the other is sent.
 *
 * Return: bytes, @total if it goes as a whole; else a multiple of the element
 * size, or the rest.
 */
u32 dblp_piece_len(const struct dblp_sock *dsk, u32 offset, u32 total,
		   bool short_of_memory)
{
	u64 window = max_t(u64, dsk->peer_window, DBLP_WINDOW_MIN);
	u32 limit, len;

	sock_owned_by_me(&dsk->sk);
	limit = min_t(u64, window - DBLP_MSG_COST,
		      READ_ONCE(dsk->sk.sk_sndbuf) / 2);
	if (short_of_memory)
		limit = min_t(u32, limit, DBLP_PIECE_MIN);
	if (!offset && total <= limit)
		return total;
	len = min(max_t(u32, limit / 4, DBLP_PIECE_MIN), limit);
	len = max(rounddown(len, dsk->element), dsk->element);
	return min(len, total - offset);
}

/**
 * dblp_whole_alloc() - begin a message in pieces
 * @dsk: socket
 * @total: bytes
 *
 * Context: process.
 * Return: the message with one reference, or ERR_PTR() of -ENOBUFS, -ENOMEM.
 */
struct dblp_tx_whole *dblp_whole_alloc(struct dblp_sock *dsk, u32 total)
{
	struct dblp_tx_whole *whole;

	sock_owned_by_me(&dsk->sk);
	whole = dblp_tx_zalloc(dsk, sizeof(*whole));
	if (IS_ERR(whole))
		return whole;
	whole->msg.truesize = sizeof(*whole);
	INIT_LIST_HEAD(&whole->msg.list);
	INIT_LIST_HEAD(&whole->msg.lost_node);
	INIT_LIST_HEAD(&whole->pieces);
	whole->msg.len = total;
	whole->msg.total = total;
	whole->msg.joined = 1;
	whole->refs = 1;
	return whole;
}

/** dblp_whole_free() - free a message in pieces that is on no list, and its charge */
void dblp_whole_free(struct dblp_sock *dsk, struct dblp_tx_whole *whole)
{
	struct dblp_tx_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, &whole->pieces, list)
		dblp_tx_free(dsk, msg);
	dblp_tx_uncharge(dsk, &whole->msg, whole->msg.truesize);
	kfree(whole);
}

/** dblp_whole_put() - one reference less, as the connection is over */
void dblp_whole_put(struct dblp_sock *dsk, struct dblp_tx_whole *whole)
{
	if (whole && !--whole->refs)
		dblp_whole_free(dsk, whole);
}

/* Pieces are settled in nearly the order in which they were sent */
static void dblp_whole_add_map(struct dblp_tx_whole *whole,
			       struct dblp_tx_msg *msg)
{
	struct dblp_tx_msg *before;

	list_for_each_entry_reverse(before, &whole->pieces, list)
		if (before->offset < msg->offset)
			break;
	list_add(&msg->list, &before->list);
	whole->msg.ranges += msg->ranges;
}

/* Ranges that touch where pieces meet were counted twice */
static void dblp_whole_count(struct dblp_tx_whole *whole)
{
	struct dblp_tx_msg *msg, *prev = NULL;

	list_for_each_entry(msg, &whole->pieces, list) {
		if (prev && prev->offset + prev->len == msg->offset &&
		    dblp_segmap_touch(&prev->lossmap, &msg->lossmap))
			whole->msg.ranges--;
		prev = msg;
	}
}

/**
 * dblp_whole_settled() - a piece is settled
 * @dsk: socket
 * @msg: the piece, on no list; it belongs to its message now
 * @keep: its loss map will be asked for
 *
 * Return: the message if that was its last piece, else NULL.
 */
struct dblp_tx_msg *dblp_whole_settled(struct dblp_sock *dsk,
				       struct dblp_tx_msg *msg, bool keep)
{
	struct dblp_tx_whole *whole = msg->whole;

	sock_owned_by_me(&dsk->sk);
	msg->whole = NULL;
	whole->msg.missing += msg->missing;
	whole->msg.reason = max(whole->msg.reason, msg->reason);
	whole->msg.flags |= msg->flags;
	/* It may have changed in between: all that is missing is within the largest */
	if (!msg->offset || msg->missing)
		whole->msg.budget_most = max(whole->msg.budget_most,
					     msg->budget);
	if (keep && msg->missing) {
		dblp_tx_strip(dsk, msg);
		dblp_whole_add_map(whole, msg);
	} else {
		dblp_tx_free(dsk, msg);
	}
	if (--whole->refs)
		return NULL;
	dblp_tx_leave_buffer(dsk, &whole->msg);
	whole->msg.budget = whole->msg.budget_most;
	dblp_whole_count(whole);
	return &whole->msg;
}

/**
 * dblp_tx_ranges() - the loss map of a message that was sent
 * @msg: settled message with @ranges > 0
 *
 * Return: its ranges by rising offset, to be freed with kvfree(), or NULL.
 */
struct dblp_range *dblp_tx_ranges(struct dblp_tx_msg *msg)
{
	struct dblp_tx_msg *piece;
	struct dblp_range *r;
	u32 n = 0;

	r = kvmalloc_array(msg->ranges, sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return NULL;
	if (!msg->joined) {
		dblp_segmap_list(&msg->lossmap, msg->seg_size, msg->len, 0, r,
				 0);
		return r;
	}
	list_for_each_entry(piece, &dblp_tx_whole(msg)->pieces, list)
		n = dblp_segmap_list(&piece->lossmap, piece->seg_size,
				     piece->len, piece->offset, r, n);
	return r;
}

/**
 * dblp_rx_ranges() - the loss map of a message that was received
 * @pieces: its pieces by offset; those with nothing missing may be left out
 * @ranges: how many ranges that are, at least 1
 *
 * Return: the ranges by rising offset, to be freed with kvfree(), or NULL.
 */
struct dblp_range *dblp_rx_ranges(const struct list_head *pieces, u32 ranges)
{
	struct dblp_rx_msg *msg;
	struct dblp_range *r;
	u32 n = 0;

	r = kvmalloc_array(ranges, sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return NULL;
	list_for_each_entry(msg, pieces, list)
		n = dblp_segmap_list(&msg->have, msg->seg_size, msg->len,
				     msg->offset, r, n);
	return r;
}

/**
 * dblp_rx_join() - what users are told of a message
 * @pieces: its pieces by offset, at least the first and those with anything
 *	missing
 * @info: filled
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
}
