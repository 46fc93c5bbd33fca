// SPDX-License-Identifier: GPL-2.0-only
/*
 * Outgoing messages: from the user's bytes to segments, which of them goes
 * next, and what became of them.
 *
 * A message is started (credit is taken for it), goes through its first pass,
 * is repaired as far as needed, is closed, and is settled once its loss map is
 * known. A message that came complete is closed by the acknowledgment of its last
 * segment, all others by the receiver's CLOSE: only the receiver knows what it
 * has forgiven.
 */
#include <linux/random.h>
#include <linux/udp.h>

#include "dblp.h"
#include "trace.h"

static void dblp_tx_free_segs(struct dblp_tx_msg *msg)
{
	if (msg->segs != msg->few_segs)
		kvfree(msg->segs);
	msg->segs = NULL;
}

/** dblp_tx_free() - free a message that is on no list, and its charge */
void dblp_tx_free(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (!msg)
		return;
	if (msg->joined) {
		dblp_whole_free(dsk, dblp_tx_whole(msg));
		return;
	}
	dblp_whole_put(dsk, msg->whole);
	dblp_txbuf_free(dsk, msg);
	dblp_tx_free_segs(msg);
	kfree(msg->lossmap.bits);
	dblp_tx_uncharge(dsk, msg, msg->truesize);
	kfree(msg);
}

/** dblp_tx_strip() - free all of a settled message but its loss map */
void dblp_tx_strip(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	u32 keep = sizeof(*msg);

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
 * @size: bytes
 *
 * Context: process.
 * Return: zeroed memory, for kvfree(), which the caller adds to @truesize of the
 * message; or ERR_PTR() of -ENOBUFS, -ENOMEM.
 */
void *dblp_tx_zalloc(struct dblp_sock *dsk, u32 size)
{
	int err;
	void *p;

	sock_owned_by_me(&dsk->sk);
	err = dblp_tx_charge(dsk, size);
	if (err)
		return ERR_PTR(err);
	p = kvzalloc(size, DBLP_GFP_SEND);
	if (p)
		return p;
	sk_wmem_queued_add(&dsk->sk, -(int)size);
	sk_mem_uncharge(&dsk->sk, size);
	return ERR_PTR(-ENOMEM);
}

/**
 * dblp_tx_alloc() - a new message
 * @dsk: socket, locked
 * @len: bytes, at least 1
 *
 * Its options are to be set next, then it is cut, gets its memory and is
 * queued.
 *
 * Context: process.
 * Return: the message, or ERR_PTR() of -ENOBUFS, -ENOMEM.
 */
struct dblp_tx_msg *dblp_tx_alloc(struct dblp_sock *dsk, u32 len)
{
	struct dblp_tx_msg *msg;

	sock_owned_by_me(&dsk->sk);
	msg = dblp_tx_zalloc(dsk, sizeof(*msg));
	if (IS_ERR(msg))
		return msg;
	INIT_LIST_HEAD(&msg->list);
	INIT_LIST_HEAD(&msg->lost_node);
	msg->len = len;
	msg->total = len;
	msg->truesize = sizeof(*msg);
	return msg;
}

static u32 dblp_tx_first_pass(const struct dblp_sock *dsk,
			      const struct dblp_tx_msg *msg)
{
	u32 budget = min(msg->budget, dsk->peer_cap);
	u32 n;

	n = dblp_first_pass(msg->acked.n, msg->seg_size, msg->len,
			    msg->critical, budget, msg->policy,
			    dblp_sent_loss(&dsk->sent));
	return max(n, msg->least);
}

/*
 * Does the order decide what may be missing? If nothing may be, it is not worth its
 * price: segments out of order do not continue each other, neither in the memory of
 * the message nor in the trains that they travel in.
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
 * dblp_tx_cut() - cut a message into segments for the present path
 * @dsk: socket, locked
 * @msg: message with its options set
 *
 * What its loss map may need is charged, too: there is no other memory that a peer's
 * frame has us allocate for what is sent, and no time to ask for it then.
 *
 * Context: process.
 * Return: 0, or -ENOBUFS, -ENOMEM and the message can only be freed.
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
	size = (2 + dsk->elide) * bits + n;
	err = dblp_tx_charge(dsk, bits);
	if (err)
		return err;
	msg->truesize += bits;
	msg->segs = msg->few_segs;
	if (size > sizeof(msg->few_segs)) {
		msg->segs = dblp_tx_zalloc(dsk, size);
		if (IS_ERR(msg->segs)) {
			err = PTR_ERR(msg->segs);
			msg->segs = NULL;
			return err;
		}
		msg->truesize += size;
	}
	/* The bitmaps come first: they want the alignment */
	dblp_segmap_init(&msg->acked, msg->segs, n);
	dblp_segmap_init(&msg->need, msg->segs + bits, n);
	if (dsk->elide)
		dblp_segmap_init(&msg->zeros, msg->segs + 2 * bits, n);
	msg->sent = msg->segs + (2 + dsk->elide) * bits;

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

/* Senders who begin together must not do it in one moment */
static void dblp_tx_resume(struct dblp_sock *dsk)
{
	u64 now = ktime_get_ns();

	if (dsk->sent.inflight_pkts || dsk->tx_cur || !dsk->cc.ops->resume)
		return;
	dsk->pace_next = max(dsk->pace_next,
			     now + dsk->cc.ops->resume(&dsk->cc, now));
}

/**
 * dblp_tx_queue() - a message joins those to be sent
 * @dsk: socket
 * @msg: message that was cut and has its bytes
 */
void dblp_tx_queue(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_tx_resume(dsk);
	dblp_elide_queue(msg);
	dsk->tx_bytes += msg->len;
	msg->id = dsk->tx_next_id++;
	trace_dblp_msg_open(dsk, msg, NULL);
	list_add_tail(&msg->list, &dsk->tx_msgs);
	if (!dsk->tx_cur)
		dsk->tx_cur = msg;
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
 * dblp_tx_find() - a message that was started and is not settled
 * @dsk: socket
 * @id: its ID
 *
 * Return: the message or NULL.
 */
struct dblp_tx_msg *dblp_tx_find(const struct dblp_sock *dsk, u32 id)
{
	struct rb_node *node;

	sock_owned_by_me(&dsk->sk);
	node = rb_find(&id, &dsk->tx_started, dblp_tx_cmp);
	return node ? rb_entry(node, struct dblp_tx_msg, node) : NULL;
}

/** dblp_tx_after() - the next message of @tx_msgs, or NULL */
struct dblp_tx_msg *dblp_tx_after(const struct dblp_sock *dsk,
				  struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	return list_is_last(&msg->list, &dsk->tx_msgs) ? NULL :
	       list_next_entry(msg, list);
}

/** dblp_tx_leave() - a message is settled: neither packets nor frames find it */
void dblp_tx_leave(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (msg->started)
		rb_erase(&msg->node, &dsk->tx_started);
	if (dsk->tx_recount == msg)
		dsk->tx_recount = dblp_tx_after(dsk, msg);
}

/*
 * Whatever the peer allows, fewer than DBLP_MSG_WINDOW IDs lie between a message
 * and the oldest that is not settled. What has to look at all of them knows how
 * many these can be.
 */
static bool dblp_tx_near(const struct dblp_sock *dsk,
			 const struct dblp_tx_msg *msg)
{
	return msg->id - list_first_entry(&dsk->tx_msgs, struct dblp_tx_msg,
					  list)->id < DBLP_MSG_WINDOW;
}

static bool dblp_tx_may_start(const struct dblp_sock *dsk,
			      const struct dblp_tx_msg *msg)
{
	return dblp_before(msg->id, dsk->peer_max_msg) &&
	       dsk->tx_cost + msg->len + DBLP_MSG_COST <= dsk->peer_max_data;
}

/** dblp_tx_blocked() - does the next message wait for the peer's credit? */
bool dblp_tx_blocked(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dsk->tx_cur && !dsk->tx_cur->started &&
	       !dblp_tx_may_start(dsk, dsk->tx_cur);
}

static bool dblp_tx_start(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (msg->started)
		return true;
	if (!dblp_tx_may_start(dsk, msg) || !dblp_tx_near(dsk, msg))
		return false;
	rb_add(&msg->node, &dsk->tx_started, dblp_tx_less);
	dsk->tx_cost += msg->len + DBLP_MSG_COST;
	msg->first_pass = dblp_tx_first_pass(dsk, msg);
	msg->started = 1;
	return true;
}

/* Segments acknowledged, with a copy in flight, or described */
static u32 dblp_tx_live(const struct dblp_tx_msg *msg)
{
	return msg->cursor + msg->ahead - msg->need.count;
}

/** dblp_tx_slot_seg() - which segment is at a position in the sending order */
u32 dblp_tx_slot_seg(const struct dblp_tx_msg *msg, u32 slot)
{
	if (!msg->shuffled || slot < msg->crit_segs)
		return slot;
	return msg->crit_segs +
	       dblp_shuffle_at(&msg->shuffle, slot - msg->crit_segs);
}

/**
 * dblp_tx_next_seg() - which segment is at @cursor
 * @msg: message, perhaps under way when its budget came
 */
u32 dblp_tx_next_seg(const struct dblp_tx_msg *msg)
{
	if (!msg->reshuffled || msg->cursor < msg->shuffle_base)
		return dblp_tx_slot_seg(msg, msg->cursor);
	return msg->shuffle_base +
	       dblp_shuffle_at(&msg->shuffle, msg->cursor - msg->shuffle_base);
}

/** dblp_tx_slot() - position of a segment in the sending order */
u32 dblp_tx_slot(const struct dblp_tx_msg *msg, u32 seg)
{
	if (!msg->shuffled || seg < msg->crit_segs)
		return seg;
	return msg->crit_segs +
	       dblp_shuffle_find(&msg->shuffle, seg - msg->crit_segs);
}

/**
 * dblp_tx_row() - how many segments are alike
 * @msg: message that was not @reshuffled
 * @slot: position in the sending order
 *
 * Return: so many positions from @slot on have segments that follow each other
 * in the message and are all of one size, at least 1.
 */
u32 dblp_tx_row(const struct dblp_tx_msg *msg, u32 slot)
{
	u32 end = msg->acked.n - 1;

	if (msg->shuffled)
		end = min(end, msg->crit_segs);
	return slot < end ? end - slot : 1;
}

/**
 * dblp_tx_run() - how many segments can follow each other in one train
 * @msg: message of which dblp_tx_pick() gave a segment never sent before
 *
 * Return: their number from @cursor on, at least 1; the first pass allows so
 * many, and all but the last are of full size.
 */
u32 dblp_tx_run(const struct dblp_tx_msg *msg)
{
	u32 n = min(msg->first_pass - dblp_tx_live(msg),
		    msg->acked.n - msg->cursor);

	if (msg->reshuffled)
		return 1;
	/* There may be none: U32_MAX */
	if (msg->short_slot - msg->cursor < n)
		n = msg->short_slot - msg->cursor + 1;
	if (msg->zeros.count)
		n = dblp_elide_run(msg, min_t(u32, n, UDP_MAX_SEGMENTS));
	return n;
}

/*
 * The segment to be repaired next. Where the order is shuffled, repair is too:
 * what is still missing when the message closes must not be its tail.
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
 * Within a budget any byte that arrives counts the same, so what was never sent
 * goes before what was lost. Without one, and where bytes are critical, what
 * was lost holds everything else up and goes first. What is to be described goes
 * before both.
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

/** dblp_tx_advance() - the message at @tx_cur has nothing to send for now */
void dblp_tx_advance(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->tx_cur = dblp_tx_after(dsk, dsk->tx_cur);
}

/**
 * dblp_tx_pick() - the segment to be sent next
 * @dsk: socket
 * @seg: where its number goes
 * @again: set if it was sent before
 *
 * Return: its message, or NULL if there is nothing to send now.
 */
struct dblp_tx_msg *dblp_tx_pick(struct dblp_sock *dsk, u32 *seg, bool *again)
{
	struct dblp_tx_msg *msg, *tmp;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry_safe(msg, tmp, &dsk->tx_lost, lost_node) {
		if (dblp_tx_pick_seg(msg, seg, again))
			return msg;
		/* Enough of it is under way, until more is lost */
		list_del_init(&msg->lost_node);
	}

	while ((msg = dsk->tx_cur)) {
		if (!dblp_tx_start(dsk, msg))
			return NULL;
		if (dblp_tx_pick_seg(msg, seg, again))
			return msg;
		dblp_tx_advance(dsk);
	}
	return NULL;
}

/** dblp_tx_seg_len() - bytes of one segment */
u32 dblp_tx_seg_len(const struct dblp_tx_msg *msg, u32 seg)
{
	return min(msg->seg_size, msg->len - seg * msg->seg_size);
}

/* Whether a message has more to do than its first pass in order */
static void dblp_tx_mark_lost(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (list_empty(&msg->lost_node))
		list_add_tail(&msg->lost_node, &dsk->tx_lost);
}

static void dblp_tx_unmark_lost(struct dblp_tx_msg *msg)
{
	if (!msg->need.count && dblp_tx_live(msg) >= msg->first_pass)
		list_del_init(&msg->lost_node);
}

/**
 * dblp_tx_sent() - segments went out
 * @dsk: socket
 * @msg: their message
 * @seg: the first
 * @n: number of segments, see dblp_tx_row(); 1 if @again
 * @again: it was sent before
 */
void dblp_tx_sent(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		  u32 n, bool again)
{
	u32 bytes = n * dblp_tx_seg_len(msg, seg);

	sock_owned_by_me(&dsk->sk);
	if (again) {
		msg->sent[seg] = (msg->sent[seg] + 1) | DBLP_SEG_SENT;
		dblp_segmap_del(&msg->need, seg);
		dsk->info.bytes_again += bytes;
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_SEGAGAIN);
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESAGAIN, bytes);
	} else {
		memset(msg->sent + seg, DBLP_SEG_SENT | 1, n);
		msg->cursor += n;
		if (msg->ahead)
			dblp_elide_skip(msg);
		dsk->info.bytes_first += bytes;
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_SEGFIRST, n);
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESFIRST, bytes);
	}
	dblp_tx_unmark_lost(msg);
}

/**
 * dblp_tx_described() - a zero map went out
 * @dsk: socket
 * @msg: its message
 * @seg: an elided segment of it
 */
void dblp_tx_described(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_elide_sent(dsk, msg, seg);
	dblp_tx_unmark_lost(msg);
}

static void dblp_tx_segs_acked(struct dblp_tx_msg *msg, u32 seg, u32 n)
{
	u32 end = seg + n;

	if (!msg->need.count && !msg->zeros.count &&
	    dblp_segmap_free(&msg->acked, seg, n) == n) {
		dblp_segmap_add_run(&msg->acked, seg, n);
		return;
	}
	for (; seg < end; seg++) {
		if (dblp_tx_elided(msg, seg)) {
			dblp_elide_acked(msg, seg);
			continue;
		}
		dblp_segmap_add(&msg->acked, seg);
		dblp_segmap_del(&msg->need, seg);
	}
}

/* One copy less of each of @n segments is in flight. All were sent, so that
 * nothing is borrowed from the next one
 */
static void dblp_tx_landed(u8 *sent, u32 n)
{
	u64 eight;

	for (; n >= sizeof(eight); n -= sizeof(eight), sent += sizeof(eight)) {
		memcpy(&eight, sent, sizeof(eight));
		eight -= 0x0101010101010101ULL;
		memcpy(sent, &eight, sizeof(eight));
	}
	while (n--)
		--*sent++;
}

/*
 * Had the receiver closed it without one of its segments, we would have heard of
 * that before the ACK of the segment. Who has sent a LOSSMAP owes the CLOSE still.
 */
static void dblp_tx_complete(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (msg->lossmap.bits)
		return;
	msg->reason = DBLP_REASON_COMPLETE;
	/* Nothing was said that this could contradict */
	dblp_tx_closed(dsk, msg);
}

/**
 * dblp_tx_acked() - packets with segments were acknowledged
 * @dsk: socket
 * @msg: their message
 * @seg: the first segment
 * @n: number of segments
 * @late: the packets had been declared lost
 */
void dblp_tx_acked(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		   u32 n, bool late)
{
	sock_owned_by_me(&dsk->sk);
	if (msg->closed)
		return;
	if (!late)
		dblp_tx_landed(msg->sent + seg, n);
	msg->meta_acked = 1;
	dsk->tx_moved -= msg->acked.count;
	dblp_tx_segs_acked(msg, seg, n);
	dsk->tx_moved += msg->acked.count;
	dblp_tx_unmark_lost(msg);

	if (msg->acked.count == msg->acked.n) {
		dblp_tx_complete(dsk, msg);
		return;
	}
	if (!dblp_tx_forgivable(msg))
		return;
	/*
	 * All that was sent has arrived, and that was enough as far as we know:
	 * a CLOSE would have come with the ACK. So the receiver wants more.
	 */
	if (msg->acked.count >= msg->first_pass &&
	    msg->acked.count == dblp_tx_live(msg)) {
		msg->first_pass = msg->acked.n;
		dblp_tx_mark_lost(dsk, msg);
	}
}

/**
 * dblp_tx_lost() - a packet with a segment was declared lost
 * @dsk: socket
 * @msg: its message
 * @seg: the segment
 */
void dblp_tx_lost(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg)
{
	sock_owned_by_me(&dsk->sk);
	if (msg->closed)
		return;
	msg->sent[seg]--;
	if ((msg->sent[seg] & DBLP_SEG_COPIES) ||
	    dblp_segmap_test(&msg->acked, seg))
		return;
	if (dblp_tx_elided(msg, seg))
		dblp_elide_lost(msg, seg);
	else
		dblp_segmap_add(&msg->need, seg);
	dblp_tx_mark_lost(dsk, msg);
}

/**
 * dblp_tx_recount_msg() - see dblp_tx_recount()
 * @dsk: socket
 * @msg: message that was started and is not closed
 */
void dblp_tx_recount_msg(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	msg->first_pass = dblp_tx_first_pass(dsk, msg);
	if (dblp_tx_live(msg) < msg->first_pass)
		dblp_tx_mark_lost(dsk, msg);
}

/** dblp_tx_unsent() - bytes of a message that were never sent, nor described */
u32 dblp_tx_unsent(const struct dblp_tx_msg *msg)
{
	u32 n = msg->acked.n - msg->cursor - msg->ahead, last, bytes;

	n += msg->zeros.count - msg->described;
	if (!n)
		return 0;
	last = msg->acked.n - 1;
	bytes = n * msg->seg_size;
	if (!(msg->sent[last] & DBLP_SEG_SENT))
		bytes -= msg->seg_size - dblp_tx_seg_len(msg, last);
	return bytes;
}

/** dblp_tx_never_sent() - bytes of messages that were never sent */
u64 dblp_tx_never_sent(const struct dblp_sock *dsk)
{
	struct dblp_tx_msg *msg;
	u64 sum = 0;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(msg, &dsk->tx_msgs, list)
		if (!msg->closed)
			sum += dblp_tx_unsent(msg);
	return sum;
}

static void dblp_tx_purge_list(struct dblp_sock *dsk, struct list_head *list)
{
	struct dblp_tx_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, list, list) {
		list_del(&msg->list);
		list_del(&msg->lost_node);
		dblp_tx_free(dsk, msg);
	}
}

/** dblp_tx_purge() - drop all messages; packets in flight are nobody's now */
void dblp_tx_purge(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->tx_cur = NULL;
	dsk->tx_recount = NULL;
	dsk->tx_started = RB_ROOT;
	dblp_tx_purge_list(dsk, &dsk->tx_msgs);
	dblp_tx_purge_list(dsk, &dsk->tx_settled);
	dsk->tx_bytes = 0;
	dblp_whole_put(dsk, dsk->tx_part);
	dsk->tx_part = NULL;
	INIT_LIST_HEAD(&dsk->tx_lost);
}

/** dblp_tx_purge_reports() - nobody will ask for them */
void dblp_tx_purge_reports(struct dblp_sock *dsk)
{
	dblp_tx_purge_list(dsk, &dsk->tx_reports);
	dsk->tx_n_reports = 0;
}
