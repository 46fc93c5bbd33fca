// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control frames that are repeated until they are acknowledged: FLOW, CLOSE,
 * LOSSMAP, FIN, PING, BUDGET.
 *
 * A frame remembers the last two packets that carried it, as a probe sends two.
 * The acknowledgment of either ends it, the loss of the last puts it back into
 * the queue. What it says is written when it is sent, so a repeated FLOW tells
 * the state of then.
 */
#include <linux/unaligned.h>

#include "dblp.h"

static struct dblp_ctl *dblp_ctl_alloc(u8 type)
{
	struct dblp_ctl *ctl;

	ctl = kzalloc(sizeof(*ctl), GFP_ATOMIC);
	if (!ctl)
		return NULL;
	ctl->type = type;
	ctl->pn = U64_MAX;
	ctl->pn_before = U64_MAX;
	return ctl;
}

static void dblp_ctl_free(struct dblp_sock *dsk, struct dblp_ctl *ctl)
{
	list_del(&ctl->list);
	dsk->ctl_late -= ctl->late;
	if (ctl->msg)
		dblp_rx_put(dsk, ctl->msg);
	kfree(ctl);
}

/**
 * dblp_ctl_add() - queue a frame that says something of the connection
 * @dsk: socket
 * @type: FLOW, FIN or PING
 *
 * Return: 0, also when one is waiting already, or -ENOMEM.
 */
int dblp_ctl_add(struct dblp_sock *dsk, u8 type)
{
	struct dblp_ctl *ctl;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(ctl, &dsk->ctl_queue, list)
		if (ctl->type == type)
			return 0;
	ctl = dblp_ctl_alloc(type);
	if (!ctl)
		return -ENOMEM;
	list_add_tail(&ctl->list, &dsk->ctl_queue);
	return 0;
}

static struct dblp_ctl *dblp_ctl_alloc_msg(struct list_head *to, u8 type,
					   struct dblp_rx_msg *msg)
{
	struct dblp_ctl *ctl;

	ctl = dblp_ctl_alloc(type);
	if (!ctl)
		return NULL;
	ctl->msg = msg;
	ctl->id = msg->id;
	msg->refs++;
	list_add_tail(&ctl->list, to);
	return ctl;
}

/* One LOSSMAP frame for each stretch of the map that has a hole */
static int dblp_ctl_add_map(struct list_head *to, struct dblp_rx_msg *msg)
{
	const struct dblp_segmap *have = &msg->have;
	struct dblp_ctl *ctl;
	u32 at = 0, words;

	while ((at = dblp_segmap_next_hole(have, at)) < have->n) {
		ctl = dblp_ctl_alloc_msg(to, DBLP_FRAME_LOSSMAP, msg);
		if (!ctl)
			return -ENOMEM;
		ctl->first = round_down(at, 32);
		words = DIV_ROUND_UP(have->n - ctl->first, 32);
		ctl->words = min_t(u32, words, DBLP_LOSSMAP_WORDS_MAX);
		at = ctl->first + 32 * ctl->words;
	}
	return 0;
}

/**
 * dblp_ctl_add_close() - tell the peer that a message is closed with bytes missing
 * @dsk: socket
 * @msg: the message; its loss map will not change any more
 *
 * CLOSE goes before everything that waits: it stops a sender.
 *
 * Return: 0, or -ENOMEM and nothing changed.
 */
int dblp_ctl_add_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	LIST_HEAD(frames);

	sock_owned_by_me(&dsk->sk);
	if (!dblp_ctl_alloc_msg(&frames, DBLP_FRAME_CLOSE, msg))
		return -ENOMEM;
	if (dblp_ctl_add_map(&frames, msg))
		goto err_free;
	list_splice(&frames, &dsk->ctl_queue);
	return 0;

err_free:
	dblp_ctl_free_list(dsk, &frames);
	return -ENOMEM;
}

static void dblp_ctl_mark_late(struct dblp_sock *dsk, struct list_head *list,
			       u32 id)
{
	struct dblp_ctl *ctl;

	list_for_each_entry(ctl, list, list) {
		if (ctl->type != DBLP_FRAME_CLOSE || ctl->id != id)
			continue;
		dsk->ctl_late += !ctl->late;
		ctl->late = true;
		return;
	}
}

/**
 * dblp_ctl_late() - a segment of a closed message has come
 * @dsk: socket
 * @id: the message
 *
 * Its packet will be acknowledged. If the message was closed without it, and the
 * peer may not know that yet, it has to be told before: see dblp_ctl_fill_late().
 */
void dblp_ctl_late(struct dblp_sock *dsk, u32 id)
{
	sock_owned_by_me(&dsk->sk);
	dblp_ctl_mark_late(dsk, &dsk->ctl_flight, id);
	dblp_ctl_mark_late(dsk, &dsk->ctl_queue, id);
}

/**
 * dblp_ctl_make_budget() - make a frame that says the budget of a message
 * @dsk: socket
 * @msg: message sent, at least in part
 * @to: list for dblp_ctl_queue(); nothing is added if one waits already
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_ctl_make_budget(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			 struct list_head *to)
{
	struct dblp_ctl *ctl;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(ctl, &dsk->ctl_queue, list)
		if (ctl->tx == msg)
			return 0;
	ctl = dblp_ctl_alloc(DBLP_FRAME_BUDGET);
	if (!ctl)
		return -ENOMEM;
	ctl->tx = msg;
	ctl->id = msg->id;
	list_add_tail(&ctl->list, to);
	return 0;
}

/** dblp_ctl_queue() - let frames that were made wait to be sent */
void dblp_ctl_queue(struct dblp_sock *dsk, struct list_head *frames)
{
	list_splice_tail_init(frames, &dsk->ctl_queue);
}

/** dblp_ctl_free_list() - free frames on a list */
void dblp_ctl_free_list(struct dblp_sock *dsk, struct list_head *frames)
{
	struct dblp_ctl *ctl, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(ctl, tmp, frames, list)
		dblp_ctl_free(dsk, ctl);
}

/** dblp_ctl_forget() - a message is closed: nothing is to be said of it */
void dblp_ctl_forget(struct dblp_sock *dsk, const struct dblp_tx_msg *tx)
{
	struct dblp_ctl *ctl, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_queue, list)
		if (ctl->tx == tx)
			dblp_ctl_free(dsk, ctl);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_flight, list)
		if (ctl->tx == tx)
			dblp_ctl_free(dsk, ctl);
}

/**
 * dblp_ctl_flow() - fill a FLOW frame, which is sent for sure
 * @dsk: socket
 * @f: frame
 */
void dblp_ctl_flow(struct dblp_sock *dsk, struct dblp_frame *f)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_credit(dsk);
	f->flow.max_msg = dsk->rx_max_msg;
	f->flow.max_data = dsk->rx_max_data;
	f->flow.cap = dsk->cap;
}

static void dblp_ctl_lossmap(const struct dblp_ctl *ctl, struct dblp_frame *f,
			     u8 *bits)
{
	u32 i;

	for (i = 0; i < ctl->words; i++)
		put_unaligned_be32(dblp_segmap_missing_word(&ctl->msg->have,
							    ctl->first +
							    32 * i),
				   bits + 4 * i);
	f->lossmap.msg_id = ctl->msg->id;
	f->lossmap.first = ctl->first;
	f->lossmap.words = ctl->words;
	f->lossmap.bits = bits;
}

static void dblp_ctl_close(const struct dblp_ctl *ctl, struct dblp_frame *f)
{
	const struct dblp_rx_msg *msg = ctl->msg;

	f->close.msg_id = ctl->id;
	f->close.missing = msg->missing;
	f->close.missing_segs = msg->have.n - msg->have.count;
	f->close.budget = msg->budget;
	f->close.reason = msg->reason;
	f->close.flags = msg->flags;
}

static u8 *dblp_ctl_put(struct dblp_sock *dsk, const struct dblp_ctl *ctl,
			u8 *p, const u8 *end)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	struct dblp_frame f;

	f.type = ctl->type;
	switch (ctl->type) {
	case DBLP_FRAME_FLOW:
		dblp_ctl_flow(dsk, &f);
		break;
	case DBLP_FRAME_CLOSE:
		dblp_ctl_close(ctl, &f);
		break;
	case DBLP_FRAME_LOSSMAP:
		dblp_ctl_lossmap(ctl, &f, bits);
		break;
	case DBLP_FRAME_FIN:
		f.fin.end = dsk->tx_next_id;
		break;
	case DBLP_FRAME_BUDGET:
		f.budget.msg_id = ctl->id;
		f.budget.ppm = ctl->tx->budget;
		break;
	}
	return dblp_put_frame(p, end, &f);
}

/**
 * dblp_ctl_fill() - put waiting frames into a packet
 * @dsk: socket
 * @p: where
 * @end: how far at most
 * @pn: number of the packet, which is sent for sure
 *
 * Return: the byte behind the last frame.
 */
u8 *dblp_ctl_fill(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 pn)
{
	struct dblp_ctl *ctl, *tmp;
	u8 *next;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_queue, list) {
		next = dblp_ctl_put(dsk, ctl, p, end);
		if (!next)
			break;
		p = next;
		ctl->pn_before = ctl->pn;
		ctl->pn = pn;
		list_move_tail(&ctl->list, &dsk->ctl_flight);
	}
	return p;
}

/* Write CLOSE frames that are not in the packet yet; false if one has no room */
static bool dblp_ctl_put_closes(struct dblp_sock *dsk,
				const struct list_head *list, bool late,
				u8 **p, const u8 *end)
{
	struct dblp_ctl *ctl;
	u8 *next;

	list_for_each_entry(ctl, list, list) {
		if (ctl->type != DBLP_FRAME_CLOSE || ctl->late != late ||
		    ctl->pn == dsk->sent.next)
			continue;
		next = dblp_ctl_put(dsk, ctl, *p, end);
		if (!next)
			return false;
		*p = next;
	}
	return true;
}

/**
 * dblp_ctl_fill_late() - write what has to be known before an ACK is
 * @dsk: socket
 * @p: where; moved behind the last frame
 * @end: how far at most
 *
 * A peer that sees all segments of a message acknowledged takes it for complete.
 * So it has to know a CLOSE before the ACK of a segment that came after.
 *
 * Return: whether there was room for all; if not, no ACK may follow.
 */
bool dblp_ctl_fill_late(struct dblp_sock *dsk, u8 **p, const u8 *end)
{
	sock_owned_by_me(&dsk->sk);
	return !dsk->ctl_late ||
	       (dblp_ctl_put_closes(dsk, &dsk->ctl_flight, true, p, end) &&
		dblp_ctl_put_closes(dsk, &dsk->ctl_queue, true, p, end));
}

/**
 * dblp_ctl_fill_closes() - repeat CLOSE frames that may have been lost
 * @dsk: socket
 * @p: where
 * @end: how far at most
 *
 * Whatever goes to the peer takes them along: the sooner it stops the better.
 *
 * Return: the byte behind the last frame.
 */
u8 *dblp_ctl_fill_closes(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	sock_owned_by_me(&dsk->sk);
	dblp_ctl_put_closes(dsk, &dsk->ctl_flight, false, &p, end);
	return p;
}

/**
 * dblp_ctl_acked() - a CTRL packet has arrived
 * @dsk: socket
 * @pn: its number
 */
void dblp_ctl_acked(struct dblp_sock *dsk, u64 pn)
{
	struct dblp_ctl *ctl, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_flight, list) {
		if (ctl->pn != pn && ctl->pn_before != pn)
			continue;
		if (ctl->type == DBLP_FRAME_FIN)
			dsk->fin_acked = 1;
		dblp_ctl_free(dsk, ctl);
	}
}

/**
 * dblp_ctl_lost() - a CTRL packet was lost
 * @dsk: socket
 * @pn: its number
 */
void dblp_ctl_lost(struct dblp_sock *dsk, u64 pn)
{
	struct dblp_ctl *ctl, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_flight, list)
		if (ctl->pn == pn)
			list_move_tail(&ctl->list, &dsk->ctl_queue);
}

/** dblp_ctl_requeue() - send everything that is in flight again, as a probe */
void dblp_ctl_requeue(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	list_splice_tail_init(&dsk->ctl_flight, &dsk->ctl_queue);
}

/** dblp_ctl_purge() - forget all frames */
void dblp_ctl_purge(struct dblp_sock *dsk)
{
	struct dblp_ctl *ctl, *tmp;

	sock_owned_by_me(&dsk->sk);
	dblp_ctl_requeue(dsk);
	list_for_each_entry_safe(ctl, tmp, &dsk->ctl_queue, list)
		dblp_ctl_free(dsk, ctl);
}
