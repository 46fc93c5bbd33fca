// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copying ahead: a waiting reader copies received segments of the next message
 * to its buffer before the message is closed. On a fast path, copying takes as
 * long as receiving, and otherwise starts only when all has been received. The
 * reader is woken after each quarter of a message, so that little is left to
 * copy at the end.
 *
 * Copied buffers stay with the message, marked by @copied. If the call ends
 * early, by a signal or a timeout, the next call copies all of the message.
 * While buffers are marked, @rx.reader excludes other readers.
 *
 * Pieces are walked, and their buffers taken, as in placement mode: see recv.c.
 */
#include "dblp.h"

/**
 * dblp_ahead_init() - begin a call of recvmsg()
 * @a: state to initialise
 * @m: the user's message header
 * @may: whether the call may copy ahead: it waits, and consumes the message
 */
void dblp_ahead_init(struct dblp_ahead *a, const struct msghdr *m, bool may)
{
	INIT_LIST_HEAD(&a->parts);
	dblp_rx_cursor_init(&a->cursor, &m->msg_iter);
	a->may = may;
}

/* Take the buffers of a message that are not copied yet */
static void dblp_ahead_take_skbs(struct dblp_rx_msg *msg)
{
	struct sk_buff *skb;

	while ((skb = msg->copied ? skb_peek_next(msg->copied, &msg->skbs) :
				    skb_peek(&msg->skbs))) {
		__skb_unlink(skb, &msg->skbs);
		__skb_queue_tail(&msg->taken, skb);
	}
	/* Do not change buffers after they are copied */
	msg->batch = (struct dblp_rx_batch){};
	msg->packed = NULL;
}

static void dblp_ahead_take(struct dblp_sock *dsk, struct dblp_ahead *a)
{
	struct dblp_rx_msg *msg = dsk->rx.turn;
	u32 base;

	/* Even if an invalid offset prevents copying */
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

/* Return buffers to their message, behind those copied before */
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
	/* The mode may have changed while no buffers were in the queue */
	if (dsk->opt.placement)
		dblp_place_wake(dsk);
	return err;
}

/**
 * dblp_ahead_wait() - wait for a readable message, and copy ahead meanwhile
 * @dsk: socket, locked
 * @a: state of the call
 * @timeo: maximum wait in jiffies; reduced by the time waited
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

/** dblp_ahead_end() - forget copied buffers at the end of a call */
void dblp_ahead_end(struct dblp_sock *dsk, struct dblp_ahead *a)
{
	struct dblp_rx_msg *msg, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(msg, tmp, &a->parts, place_node) {
		list_del_init(&msg->place_node);
		/* The next reader must copy the message from its start */
		msg->copied = NULL;
		msg->seen = 0;
		dblp_rx_put(dsk, msg);
	}
}
