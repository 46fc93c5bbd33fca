// SPDX-License-Identifier: GPL-2.0-only
/*
 * Credit: how much the peer may send before the user has read, see FLOW.
 */
#include "dblp.h"

/** dblp_rx_cost() - credit that a message uses */
u64 dblp_rx_cost(const struct dblp_rx_msg *msg)
{
	return (u64)msg->len + DBLP_MSG_COST;
}

/** dblp_rx_credit() - give the peer the credit of what was read */
void dblp_rx_credit(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->rx_max_data = dsk->rx_consumed + dsk->rx_window;
	dsk->rx_max_msg = dsk->rx_consumed_msgs + DBLP_MSG_WINDOW;
}

/** dblp_rx_credit_waits() - is there credit that the peer was not told of? */
u64 dblp_rx_credit_waits(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dsk->rx_consumed + dsk->rx_window - dsk->rx_max_data;
}

/**
 * dblp_rx_offer() - tell the peer of its credit if it is worth a frame
 * @dsk: socket
 *
 * Return: true if dblp_flush() must follow.
 */
bool dblp_rx_offer(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state != DBLP_STATE_ESTABLISHED || dsk->rx_fin)
		return false;
	if (!dsk->peer_waits &&
	    dblp_rx_credit_waits(dsk) < dsk->rx_window / 4 &&
	    dsk->rx_max_msg - dsk->rx_consumed_msgs > DBLP_MSG_WINDOW / 2)
		return false;
	dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	dsk->peer_waits = false;
	return true;
}

/**
 * dblp_rx_give_back() - give back the credit of a message, but for its bytes
 * @dsk: socket
 * @msg: message of which perhaps nothing is held any more
 *
 * While the peer may not know how it was closed, the message is kept to tell it.
 * Had the peer its credit back, nothing would bound how many are kept: whoever
 * acknowledges nothing gets no more than a window of them.
 */
void dblp_rx_give_back(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (!msg->spent || msg->noticed || msg->given_back)
		return;
	msg->given_back = 1;
	dsk->rx_consumed += DBLP_MSG_COST;
	dsk->rx_consumed_msgs++;
	dblp_rx_offer(dsk);
}

/**
 * dblp_rx_consume() - a message or piece was read
 * @dsk: socket
 * @msg: the message; its bytes are freed, its loss map stays
 *
 * Its credit is given back, but see dblp_rx_give_back().
 */
void dblp_rx_consume(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	__skb_queue_purge(&msg->skbs);
	msg->packed = NULL;
	dsk->rx_consumed += msg->len;
	msg->spent = 1;
	dblp_rx_give_back(dsk, msg);
}
