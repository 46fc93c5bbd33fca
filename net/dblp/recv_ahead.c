// SPDX-License-Identifier: GPL-2.0-only
/*
 * A reader that waits copies ahead: what has come of the next message goes to
 * its buffer before the message is closed. On a fast path, copying takes as
 * long as the message is on its way, and would begin when that has ended. It is
 * woken by each quarter of a message: so little is left to be copied at the end.
 *
 * What was copied stays with the message, marked by @copied: if the call ends
 * without it, by a signal or a timeout, another call gets all of it. While
 * anything is marked, @rx_reader keeps other readers away.
 *
 * The parts of the message are walked and their buffers taken as in placement
 * mode, see recv.c.
 */
#include "dblp.h"

/**
 * dblp_ahead_init() - begin a call of recvmsg()
 * @a: filled
 * @m: from the user
 * @may: the call may wait, and takes what it copies
 */
void dblp_ahead_init(struct dblp_ahead *a, const struct msghdr *m, bool may)
{
	INIT_LIST_HEAD(&a->parts);
	dblp_rx_cursor_init(&a->cursor, &m->msg_iter);
	a->may = may;
}

/* Take the buffers of a message that were not copied */
static void dblp_ahead_take_skbs(struct dblp_rx_msg *msg)
{
	struct sk_buff *skb;

	while ((skb = msg->copied ? skb_peek_next(msg->copied, &msg->skbs) :
				    skb_peek(&msg->skbs))) {
		__skb_unlink(skb, &msg->skbs);
		__skb_queue_tail(&msg->taken, skb);
	}
	/* What is copied stays as it is */
	msg->batch = (struct dblp_rx_batch){};
	msg->packed = NULL;
}

static void dblp_ahead_take(struct dblp_sock *dsk, struct dblp_ahead *a)
{
	struct dblp_rx_msg *msg = dsk->rx_turn;
	u32 base;

	/* Also if it cannot be copied, as its offset is wrong */
	if (msg)
		msg->seen = msg->len - msg->missing;
	msg = NULL;
	while ((msg = dblp_place_next(dsk, msg, &base))) {
		dblp_ahead_take_skbs(msg);
		msg->base = base;
		if (!list_empty(&msg->place_node))
			continue;
		msg->refs++;
		list_add_tail(&msg->place_node, &a->parts);
	}
}

/* Give buffers back to their message, behind those that were copied before */
static void dblp_ahead_return_skbs(struct dblp_rx_msg *msg)
{
	struct sk_buff *last, *prev;

	dblp_rx_drop_cancelled(msg);
	last = skb_peek_tail(&msg->taken);
	if (!last)
		return;
	prev = msg->copied ?: (struct sk_buff *)&msg->skbs;
	__skb_queue_splice(&msg->taken, prev, prev->next);
	msg->skbs.qlen += msg->taken.qlen;
	__skb_queue_head_init(&msg->taken);
	msg->copied = last;
}

static int dblp_ahead_copy(struct dblp_sock *dsk, struct dblp_ahead *a)
{
	struct dblp_rx_msg *msg;
	int err = 0;

	dblp_ahead_take(dsk, a);
	dblp_copy_begin(dsk);
	list_for_each_entry(msg, &a->parts, place_node)
		err = err ?: dblp_rx_copy(msg, &msg->taken, NULL, msg->base,
					  &a->cursor);
	dblp_copy_end(dsk);
	list_for_each_entry(msg, &a->parts, place_node)
		dblp_ahead_return_skbs(msg);
	/* The mode may have been changed, with nothing there to be placed */
	if (dsk->placement)
		dblp_place_arrived(dsk);
	return err;
}

/**
 * dblp_ahead_wait() - wait until there is something to be read
 * @dsk: socket, locked
 * @a: the call
 * @timeo: jiffies to wait at most
 *
 * Return: as dblp_wait_readable(), or -EFAULT.
 */
int dblp_ahead_wait(struct dblp_sock *dsk, struct dblp_ahead *a, long *timeo)
{
	int ret;

	sock_owned_by_me(&dsk->sk);
	do {
		ret = dblp_wait_readable(dsk, timeo, false, a);
		if (ret <= 0 || dblp_readable(dsk))
			return ret;
		ret = dblp_ahead_copy(dsk, a);
	} while (!ret);
	return ret;
}

/** dblp_ahead_end() - forget what was copied: the call ends */
void dblp_ahead_end(struct dblp_sock *dsk, struct dblp_ahead *a)
{
	struct dblp_rx_msg *msg, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(msg, tmp, &a->parts, place_node) {
		list_del_init(&msg->place_node);
		/* The next reader has to copy it again */
		msg->copied = NULL;
		msg->seen = 0;
		dblp_rx_put(dsk, msg);
	}
}
