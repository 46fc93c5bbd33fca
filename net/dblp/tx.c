// SPDX-License-Identifier: GPL-2.0-only
/*
 * Outgoing messages: cutting them into segments, and choosing the segment to
 * send next. tx_close.c has acknowledgment, loss and close.
 *
 * A message is started (takes credit), sent in a first pass, repaired as far as
 * needed, closed, and settled once its loss map is known. The ACK of its last
 * segment closes a complete message. The receiver's CLOSE closes any other,
 * because only the receiver knows which bytes it forgives.
 */
#include <linux/random.h>
#include <linux/udp.h>

#include "dblp.h"
#include "trace.h"

static u32 dblp_tx_first_pass(const struct dblp_sock *dsk,
			      const struct dblp_tx_msg *msg)
{
	u32 budget = min(msg->budget, dsk->tx.cap);
	u32 n;

	n = dblp_first_pass(msg->acked.n, msg->seg_size, msg->len,
			    msg->critical, budget, msg->policy,
			    dblp_sent_loss(&dsk->sent));
	return max(n, msg->least);
}

/*
 * Does the sending order affect which bytes may be missing? If no byte may be
 * missing, avoid the cost of shuffling: a run of segments that is contiguous in
 * the message is copied and recorded at once.
 */
static bool dblp_tx_order_matters(const struct dblp_tx_msg *msg)
{
	if (msg->acked.n - msg->crit_segs < 2)
		return false;
	return !msg->auto_order || msg->deadline ||
	       dblp_may_miss(msg->seg_size, msg->len, msg->critical,
			     msg->budget);
}

/**
 * dblp_tx_cut() - cut a message into segments for the current path MTU
 * @dsk: socket, locked
 * @msg: message with its options set
 *
 * The loss map is charged here, too. It is allocated when a LOSSMAP frame
 * arrives, in softirq context, which cannot wait for a charge.
 *
 * Context: process.
 * Return: 0, or -ENOBUFS or -ENOMEM; then the message must be freed.
 */
int dblp_tx_cut(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	u32 bits, size, n;
	int err;

	sock_owned_by_me(&dsk->sk);
	msg->room = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN;
	if (msg->meta)
		msg->room += DBLP_META_LEN;
	msg->room += dblp_auth_len(dsk);
	msg->seg_size = dblp_seg_size(dsk, msg->meta);
	n = DIV_ROUND_UP(msg->len, msg->seg_size);
	bits = dblp_segmap_bytes(n);
	size = (2 + dsk->opt.elide) * bits + n;
	err = dblp_tx_charge(dsk, bits);
	if (err)
		return err;
	msg->truesize += bits;
	msg->segs = msg->few_segs;
	if (size > sizeof(msg->few_segs)) {
		msg->segs = dblp_tx_zalloc(dsk, &size);
		if (IS_ERR(msg->segs)) {
			err = PTR_ERR(msg->segs);
			msg->segs = NULL;
			return err;
		}
		msg->truesize += size;
	}
	/* Bitmaps first, because they need the alignment */
	dblp_segmap_init(&msg->acked, msg->segs, n);
	dblp_segmap_init(&msg->need, msg->segs + bits, n);
	if (dsk->opt.elide)
		dblp_segmap_init(&msg->zeros, msg->segs + 2 * bits, n);
	msg->sent = msg->segs + (2 + dsk->opt.elide) * bits;

	msg->crit_segs = DIV_ROUND_UP(msg->critical, msg->seg_size);
	msg->least = msg->crit_segs;
	msg->shuffled &= dblp_tx_order_matters(msg);
	if (msg->shuffled)
		dblp_shuffle_init(&msg->shuffle, n - msg->crit_segs,
				  get_random_u64());
	msg->short_slot = U32_MAX;
	if (msg->len % msg->seg_size)
		msg->short_slot = dblp_tx_slot(msg, n - 1);
	return 0;
}

/* Delay a resuming sender, so that many of them do not burst at once */
static void dblp_tx_resume(struct dblp_sock *dsk)
{
	u64 now;

	if (!list_empty(&dsk->tx.msgs) || !dsk->cc.ops->resume)
		return;
	now = ktime_get_ns();
	dsk->pace.next = max(dsk->pace.next,
			     now + dsk->cc.ops->resume(&dsk->cc, now));
}

static int dblp_tx_cmp(const void *id, const struct rb_node *node)
{
	return (s32)(*(const u32 *)id -
		     rb_entry(node, struct dblp_tx_msg, node)->id);
}

static bool dblp_tx_less(struct rb_node *a, const struct rb_node *b)
{
	return dblp_tx_cmp(&rb_entry(a, struct dblp_tx_msg, node)->id, b) < 0;
}

/**
 * dblp_tx_queue() - queue a message to be sent
 * @dsk: socket
 * @msg: message that was cut and filled
 */
void dblp_tx_queue(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_tx_resume(dsk);
	dblp_elide_queue(msg);
	WRITE_ONCE(dsk->tx.bytes, dsk->tx.bytes + msg->len);
	msg->id = dsk->tx.next_id++;
	trace_dblp_msg_open(dsk, msg, NULL);
	list_add_tail(&msg->list, &dsk->tx.msgs);
	rb_add(&msg->node, &dsk->tx.ids, dblp_tx_less);
	if (!dsk->tx.cur)
		dsk->tx.cur = msg;
}

/**
 * dblp_tx_find() - find a message that is started and not settled
 * @dsk: socket
 * @id: its ID
 *
 * Return: the message or NULL.
 */
struct dblp_tx_msg *dblp_tx_find(const struct dblp_sock *dsk, u32 id)
{
	struct dblp_tx_msg *msg;

	sock_owned_by_me(&dsk->sk);
	msg = rb_entry_safe(rb_find(&id, &dsk->tx.ids, dblp_tx_cmp),
			    struct dblp_tx_msg, node);
	return msg && msg->started ? msg : NULL;
}

/** dblp_tx_from() - first message of @tx.msgs with this ID or a later one */
struct dblp_tx_msg *dblp_tx_from(const struct dblp_sock *dsk, u32 id)
{
	struct rb_node *node = dsk->tx.ids.rb_node, *from = NULL;

	sock_owned_by_me(&dsk->sk);
	while (node) {
		bool before = dblp_tx_cmp(&id, node) > 0;

		from = before ? from : node;
		node = before ? node->rb_right : node->rb_left;
	}
	return rb_entry_safe(from, struct dblp_tx_msg, node);
}

/** dblp_tx_after() - the next message of @tx.msgs, or NULL */
struct dblp_tx_msg *dblp_tx_after(const struct dblp_sock *dsk,
				  struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	return list_is_last(&msg->list, &dsk->tx.msgs) ? NULL :
	       list_next_entry(msg, list);
}

/** dblp_tx_leave() - hide a settled message from packets and frames */
void dblp_tx_leave(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	rb_erase(&msg->node, &dsk->tx.ids);
	if (dsk->tx.recount == msg)
		dsk->tx.recount = dblp_tx_after(dsk, msg);
}

/*
 * Is a message less than DBLP_MSG_WINDOW IDs after the oldest unsettled one?
 * This bounds each walk over started messages, whatever the peer allows.
 */
static bool dblp_tx_in_window(const struct dblp_sock *dsk,
			      const struct dblp_tx_msg *msg)
{
	return msg->id - list_first_entry(&dsk->tx.msgs, struct dblp_tx_msg,
					  list)->id < DBLP_MSG_WINDOW;
}

/* Credit that a message uses, in bytes */
static u64 dblp_tx_cost(const struct dblp_tx_msg *msg)
{
	return (msg->bare ? 0 : (u64)msg->len) + DBLP_MSG_COST;
}

static bool dblp_tx_may_start(const struct dblp_sock *dsk,
			      const struct dblp_tx_msg *msg)
{
	return dblp_before(msg->id, dsk->tx.id_limit) &&
	       dsk->tx.cost + dblp_tx_cost(msg) <= dsk->tx.data_limit;
}

/** dblp_tx_wants() - total credit that the next message waits for, or 0 */
u64 dblp_tx_wants(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dsk->tx.cur || dsk->tx.cur->started ||
	    dblp_tx_may_start(dsk, dsk->tx.cur))
		return 0;
	return dsk->tx.cost + dblp_tx_cost(dsk->tx.cur);
}

static bool dblp_tx_start(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (msg->started)
		return true;
	if (!dblp_tx_may_start(dsk, msg) || !dblp_tx_in_window(dsk, msg))
		return false;
	dsk->tx.cost += dblp_tx_cost(msg);
	msg->first_pass = dblp_tx_first_pass(dsk, msg);
	msg->started = 1;
	if (msg->bare)
		dblp_ctl_cancel(dsk, msg);
	return true;
}

/**
 * dblp_tx_run() - number of segments that can be sent in one train
 * @msg: message of which dblp_tx_pick() returned a segment never sent before
 *
 * Return: number of segments from @cursor on, at least 1: within the first
 * pass, and all except the last of full size.
 */
u32 dblp_tx_run(const struct dblp_tx_msg *msg)
{
	u32 n = min(msg->first_pass - dblp_tx_live(msg),
		    msg->acked.n - msg->cursor);

	if (msg->reshuffled)
		return 1;
	/* @short_slot is U32_MAX if there is none */
	if (msg->short_slot - msg->cursor < n)
		n = msg->short_slot - msg->cursor + 1;
	if (msg->zeros.count)
		n = dblp_elide_run(msg, min_t(u32, n, UDP_MAX_SEGMENTS));
	return n;
}

/*
 * The segment to repair next. If the order is shuffled, pick a random one, so
 * that the bytes missing at close are not the tail of the message.
 */
static u32 dblp_tx_lost_seg(const struct dblp_tx_msg *msg)
{
	u32 first = dblp_segmap_next(&msg->need, 0), seg;

	if (!(msg->shuffled || msg->reshuffled) || first < msg->crit_segs ||
	    first == msg->need.n)
		return first;
	seg = dblp_segmap_next(&msg->need,
			       reciprocal_scale(get_random_u32(), msg->need.n));
	return seg < msg->need.n ? seg : first;
}

/*
 * With a budget, any byte delivered counts the same: send new segments before
 * lost ones. Without a budget, or if the lost bytes are critical, the loss
 * delays the message: repair first. Elided segments precede both.
 */
static bool dblp_tx_pick_seg(const struct dblp_tx_msg *msg, u32 *seg,
			     bool *again)
{
	bool any_lost;
	u32 lost;

	*again = true;
	if (msg->undescribed) {
		*seg = dblp_elide_next(msg);
		return true;
	}
	lost = dblp_tx_lost_seg(msg);
	any_lost = lost < msg->need.n;
	if (any_lost && (!msg->budget || lost < msg->crit_segs)) {
		*seg = lost;
		return true;
	}
	if (dblp_tx_live(msg) >= msg->first_pass)
		return false;
	if (msg->cursor < msg->acked.n) {
		*seg = dblp_tx_next_seg(msg);
		*again = false;
		return true;
	}
	*seg = lost;
	return any_lost;
}

/** dblp_tx_advance() - move @tx.cur to the next message */
void dblp_tx_advance(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->tx.cur = dblp_tx_after(dsk, dsk->tx.cur);
}

/**
 * dblp_tx_pick() - pick the segment to send next
 * @dsk: socket
 * @seg: set to the segment's number
 * @again: set to whether the segment was sent before
 *
 * Return: message of the segment, or NULL if there is nothing to send now.
 */
struct dblp_tx_msg *dblp_tx_pick(struct dblp_sock *dsk, u32 *seg, bool *again)
{
	struct dblp_tx_msg *msg, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(msg, tmp, &dsk->tx.lost, lost_node) {
		if (dblp_tx_pick_seg(msg, seg, again))
			return msg;
		/* Enough segments are in flight, until more are lost */
		list_del_init(&msg->lost_node);
	}

	while ((msg = dsk->tx.cur)) {
		if (!dblp_tx_start(dsk, msg))
			return NULL;
		if (!msg->cancelled && dblp_tx_pick_seg(msg, seg, again))
			return msg;
		dblp_tx_advance(dsk);
	}
	return NULL;
}

/** dblp_tx_mark_lost() - put a message with segments to repair on @tx.lost */
void dblp_tx_mark_lost(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (list_empty(&msg->lost_node) && !msg->cancelled)
		list_add_tail(&msg->lost_node, &dsk->tx.lost);
}

/** dblp_tx_unmark_lost() - remove a message from @tx.lost if repaired */
void dblp_tx_unmark_lost(struct dblp_tx_msg *msg)
{
	if (!msg->need.count && dblp_tx_live(msg) >= msg->first_pass)
		list_del_init(&msg->lost_node);
}

/**
 * dblp_tx_sent() - account for segments that were sent
 * @dsk: socket
 * @msg: their message
 * @seg: the first segment
 * @n: number of segments, see dblp_tx_row(); 1 if @again
 * @again: @seg was sent before
 */
void dblp_tx_sent(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		  u32 n, bool again)
{
	u32 bytes = n * dblp_tx_seg_len(msg, seg);

	sock_owned_by_me(&dsk->sk);
	if (again) {
		msg->sent[seg] = (msg->sent[seg] + 1) | DBLP_SEG_SENT;
		dblp_segmap_del(&msg->need, seg);
		dsk->counts.bytes_again += bytes;
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_SEGAGAIN);
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESAGAIN, bytes);
	} else {
		memset(msg->sent + seg, DBLP_SEG_SENT | 1, n);
		msg->cursor += n;
		if (msg->ahead)
			dblp_elide_skip(msg);
		dsk->counts.bytes_first += bytes;
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_SEGFIRST, n);
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESFIRST, bytes);
	}
	dblp_tx_unmark_lost(msg);
}

/**
 * dblp_tx_described() - account for a zero map that was sent
 * @dsk: socket
 * @msg: its message
 * @seg: an elided segment of the map
 */
void dblp_tx_described(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_elide_sent(dsk, msg, seg);
	dblp_tx_unmark_lost(msg);
}

/* See dblp_tx_recount() */
static void dblp_tx_recount_msg(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	msg->first_pass = dblp_tx_first_pass(dsk, msg);
	if (dblp_tx_live(msg) < msg->first_pass)
		dblp_tx_mark_lost(dsk, msg);
}

/**
 * dblp_tx_recount() - recompute first passes after a change of budget or cap
 * @dsk: socket; dblp_work() does this in steps
 */
void dblp_tx_recount(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->tx.recount = list_first_entry_or_null(&dsk->tx.msgs,
						   struct dblp_tx_msg, list);
	dblp_work_soon(dsk);
}

/** dblp_tx_recount_some() - recompute some first passes, for dblp_work() */
void dblp_tx_recount_some(struct dblp_sock *dsk)
{
	struct dblp_tx_msg *msg;
	int n = DBLP_STEPS;

	sock_owned_by_me(&dsk->sk);
	while (n-- && (msg = dsk->tx.recount)) {
		/* Later messages are not started either */
		if (!msg->started) {
			dsk->tx.recount = NULL;
			break;
		}
		if (!msg->closed)
			dblp_tx_recount_msg(dsk, msg);
		dsk->tx.recount = dblp_tx_after(dsk, msg);
	}
	if (dsk->tx.recount)
		dblp_work_soon(dsk);
}

/** dblp_tx_unsent() - bytes of a message never sent nor described */
u32 dblp_tx_unsent(const struct dblp_tx_msg *msg)
{
	u32 n = msg->acked.n - msg->cursor - msg->ahead, last, bytes;

	if (msg->bare)
		return msg->len;
	n += msg->zeros.count - msg->described;
	if (!n)
		return 0;
	last = msg->acked.n - 1;
	bytes = n * msg->seg_size;
	if (!(msg->sent[last] & DBLP_SEG_SENT))
		bytes -= msg->seg_size - dblp_tx_seg_len(msg, last);
	return bytes;
}

/** dblp_tx_never_sent() - bytes never sent, of all messages */
u64 dblp_tx_never_sent(const struct dblp_sock *dsk)
{
	struct dblp_tx_msg *msg;
	u64 sum = 0;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(msg, &dsk->tx.msgs, list)
		if (!dblp_tx_over(msg))
			sum += dblp_tx_unsent(msg);
	return sum;
}
