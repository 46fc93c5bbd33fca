// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is it time to wake a reader, before a message is closed? In placement mode,
 * when segments can be placed; in whole mode, when enough bytes of the next
 * message have arrived to copy them ahead (recv_ahead.c).
 */
#include "dblp.h"

/*
 * Maximum number of pieces searched for segments to place, per packet and per
 * call. A sender with enough memory has fewer pieces in flight, see
 * dblp_piece_len(). Later pieces are placed when earlier ones have been.
 */
#define DBLP_PLACE_AHEAD	256U

/* Is @msg on @rx.ready? */
static bool dblp_place_is_ready(const struct dblp_sock *dsk,
				const struct dblp_rx_msg *msg)
{
	return msg->closed && dblp_before(msg->id, dsk->rx.next);
}

/**
 * dblp_place_next() - walk the pieces of the next message that may be placed
 * @dsk: socket
 * @msg: preceding piece, NULL to get the first one
 * @base: offset of @msg in the user's message; set to that of the next piece
 *
 * Only pieces with a known offset may be placed, up to DBLP_PLACE_AHEAD.
 *
 * Return: the next piece, or NULL.
 */
struct dblp_rx_msg *dblp_place_next(struct dblp_sock *dsk,
				    struct dblp_rx_msg *msg, u32 *base)
{
	u32 id = dsk->rx.next;

	sock_owned_by_me(&dsk->sk);
	if (!msg) {
		*base = dsk->rx.placed;
		if (!list_empty(&dsk->rx.ready))
			return list_first_entry(&dsk->rx.ready,
						struct dblp_rx_msg, list);
	} else {
		if (msg->meta_missing || msg->total - *base <= msg->len)
			return NULL;
		*base += msg->len;
		if (!dblp_place_is_ready(dsk, msg))
			id = msg->id + 1;
		else if (!list_is_last(&msg->list, &dsk->rx.ready))
			return list_next_entry(msg, list);
	}
	if (id - dsk->rx.next >= DBLP_PLACE_AHEAD)
		return NULL;
	msg = dblp_rx_find(dsk, id);
	if (msg && !msg->meta_missing && msg->offset != *base)
		return NULL;
	return msg;
}

/** dblp_place_any() - is there anything to place? */
bool dblp_place_any(struct dblp_sock *dsk)
{
	struct dblp_rx_msg *msg = NULL;
	u32 base;

	sock_owned_by_me(&dsk->sk);
	if (!list_empty(&dsk->rx.ready))
		return true;
	while ((msg = dblp_place_next(dsk, msg, &base)))
		if (!skb_queue_empty(&msg->skbs))
			return true;
	return false;
}

/**
 * dblp_place_wake() - wake readers if something can be placed
 * @dsk: socket in placement mode
 */
void dblp_place_wake(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->rx.placeable || !dblp_place_any(dsk))
		return;
	dsk->rx.placeable = true;
	if (!sock_flag(&dsk->sk, SOCK_DEAD))
		dsk->sk.sk_data_ready(&dsk->sk);
}

/* Minimum bytes to copy ahead: waking a reader costs less than copying them */
#define DBLP_AHEAD_MIN	(64U << 10)

/**
 * dblp_ahead_due() - has enough of the next message arrived to copy ahead?
 * @dsk: socket in whole mode
 */
bool dblp_ahead_due(const struct dblp_sock *dsk)
{
	const struct dblp_rx_msg *msg = dsk->rx.turn;

	sock_owned_by_me(&dsk->sk);
	return msg && msg->len - msg->missing >=
		      msg->seen + max(msg->len / 4, DBLP_AHEAD_MIN);
}

/**
 * dblp_ahead_wake() - wake readers if dblp_ahead_due()
 * @dsk: socket in whole mode
 */
void dblp_ahead_wake(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dblp_ahead_due(dsk))
		return;
	dsk->rx.ahead = false;
	/* Not sk_data_ready(): the message cannot be read yet */
	if (!sock_flag(&dsk->sk, SOCK_DEAD))
		wake_up_interruptible(sk_sleep(&dsk->sk));
}
