// SPDX-License-Identifier: GPL-2.0-only
/*
 * Outgoing messages: ACK, loss, CLOSE, LOSSMAP, CANCEL, and reports.
 */
#include <linux/unaligned.h>

#include "dblp.h"
#include "trace.h"

static void dblp_tx_settled(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	dblp_tx_leave(dsk, msg);
	list_move_tail(&msg->list, &dsk->tx.settled);
}

/*
 * Settle a closed message if its loss map is complete. Returns -EPROTO if the
 * map contradicts the CLOSE.
 */
static int dblp_tx_match_map(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	u32 named = 0, bytes = 0;

	if (msg->lossmap.bits) {
		named = msg->lossmap.n - msg->lossmap.count;
		bytes = dblp_segmap_missing(&msg->lossmap, msg->seg_size,
					    msg->len);
	}
	if (named < msg->missing_segs)
		return 0;
	if (named > msg->missing_segs || bytes != msg->missing)
		return -EPROTO;
	dblp_tx_settled(dsk, msg);
	return 0;
}

/* Stop sending a message */
static void dblp_tx_stop(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	dblp_ctl_forget(dsk, msg);
	list_del_init(&msg->lost_node);
	if (dsk->tx.cur == msg)
		dblp_tx_advance(dsk);
}

/*
 * Close a message, and settle it unless its loss map is still awaited. Returns
 * -EPROTO if the map contradicts the CLOSE.
 */
static int dblp_tx_closed(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	msg->closed = 1;
	dblp_tx_stop(dsk, msg);
	return dblp_tx_match_map(dsk, msg);
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

/*
 * Decrement the copies in flight of @n segments, eight at a time. Each counter
 * is at least 1, so the 64-bit subtraction cannot borrow.
 */
static void dblp_tx_drop_copies(u8 *sent, u32 n)
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
 * The receiver has all of the message: if it had closed the message with bytes
 * missing, the CLOSE would have preceded the ACK. After a LOSSMAP, wait for the
 * CLOSE, which must follow.
 */
static void dblp_tx_complete(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (msg->lossmap.bits)
		return;
	msg->reason = DBLP_REASON_COMPLETE;
	/* Cannot fail without a LOSSMAP */
	dblp_tx_closed(dsk, msg);
}

/**
 * dblp_tx_acked() - process the acknowledgment of segments
 * @dsk: socket
 * @msg: their message
 * @seg: the first segment
 * @n: number of segments
 * @was_lost: the packets had been declared lost
 */
void dblp_tx_acked(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		   u32 n, bool was_lost)
{
	sock_owned_by_me(&dsk->sk);
	if (msg->closed)
		return;
	if (!was_lost)
		dblp_tx_drop_copies(msg->sent + seg, n);
	msg->meta_acked = 1;
	dsk->tx.moved -= msg->acked.count;
	dblp_tx_segs_acked(msg, seg, n);
	dsk->tx.moved += msg->acked.count;
	dblp_tx_unmark_lost(msg);

	if (msg->acked.count == msg->acked.n) {
		dblp_tx_complete(dsk, msg);
		return;
	}
	if (!dblp_tx_forgivable(msg))
		return;
	/*
	 * All segments sent have arrived. If they were enough, a CLOSE would
	 * have preceded the ACK. So the receiver needs more: send the rest.
	 */
	if (msg->acked.count >= msg->first_pass &&
	    msg->acked.count == dblp_tx_live(msg)) {
		msg->first_pass = msg->acked.n;
		dblp_tx_mark_lost(dsk, msg);
	}
}

/**
 * dblp_tx_lost() - process the loss of a packet with a segment
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

/* Does a CLOSE forgive no more than the message allows? */
static bool dblp_tx_may_close(const struct dblp_tx_msg *msg,
			      const struct dblp_frame *f)
{
	u32 most = msg->len - msg->critical;

	if (!dblp_tx_forgivable(msg) || !dblp_tx_begun(msg))
		return false;
	/* The receiver may have closed before the latest budget arrived */
	if (msg->budget_sent ? f->close.budget > msg->budget_most :
			       f->close.budget != msg->budget)
		return false;
	if (f->close.reason == DBLP_REASON_DEADLINE && !msg->deadline)
		return false;
	if (!(f->close.flags & DBLP_RCV_OVER_BUDGET))
		most = dblp_budget_bytes(f->close.budget, most);
	return f->close.missing <= most &&
	       f->close.missing_segs <= msg->acked.n;
}

/*
 * The receiver has dropped a cancelled message: settle it. Returns -EPROTO if
 * the message was not cancelled, or a LOSSMAP arrived before.
 */
static int dblp_tx_dropped(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (!msg->cancelled || msg->lossmap.bits)
		return -EPROTO;
	msg->missing = msg->len;
	msg->ranges = 1;
	msg->reason = DBLP_REASON_CANCELLED;
	msg->closed = 1;
	dblp_tx_stop(dsk, msg);
	dblp_tx_settled(dsk, msg);
	return 0;
}

/**
 * dblp_tx_close() - process a CLOSE frame
 * @dsk: socket
 * @f: CLOSE frame
 *
 * Return: 0, or -EPROTO if the receiver forgave too much.
 */
int dblp_tx_close(struct dblp_sock *dsk, const struct dblp_frame *f)
{
	struct dblp_tx_msg *msg = dblp_tx_find(dsk, f->close.msg_id);

	sock_owned_by_me(&dsk->sk);
	if (!msg)
		return dblp_before(f->close.msg_id, dsk->tx.next_id) ?
		       0 : -EPROTO;
	if (msg->closed)
		return 0;
	if (f->close.reason == DBLP_REASON_CANCELLED)
		return dblp_tx_dropped(dsk, msg);
	if (!dblp_tx_may_close(msg, f))
		return -EPROTO;

	msg->missing = f->close.missing;
	msg->missing_segs = f->close.missing_segs;
	msg->reason = f->close.reason;
	msg->flags = f->close.flags;
	msg->budget = f->close.budget;
	/* Packets in flight refer to the memory, and keep it */
	dblp_txbuf_retire(dsk, msg);
	dblp_txbuf_free(dsk, msg);
	return dblp_tx_closed(dsk, msg);
}

/* Allocate the loss map, which dblp_tx_cut() charged */
static int dblp_tx_lossmap_init(struct dblp_tx_msg *msg)
{
	unsigned long *bits;

	if (msg->lossmap.bits)
		return 0;
	bits = kzalloc(dblp_segmap_bytes(msg->acked.n),
		       GFP_ATOMIC | __GFP_NOWARN);
	if (!bits)
		return -ENOMEM;
	dblp_segmap_init(&msg->lossmap, bits, msg->acked.n);
	dblp_segmap_fill(&msg->lossmap);
	return 0;
}

/**
 * dblp_tx_lossmap() - process a LOSSMAP frame: a piece of a loss map
 * @dsk: socket
 * @f: LOSSMAP frame; may arrive before the CLOSE
 *
 * Return: 0, -EPROTO if the map is invalid, or -ENOMEM without any change.
 */
int dblp_tx_lossmap(struct dblp_sock *dsk, const struct dblp_frame *f)
{
	struct dblp_tx_msg *msg = dblp_tx_find(dsk, f->lossmap.msg_id);
	u32 i, word, seg = f->lossmap.first;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (!msg)
		return dblp_before(f->lossmap.msg_id, dsk->tx.next_id) ?
		       0 : -EPROTO;
	if (!dblp_tx_forgivable(msg) || !dblp_tx_begun(msg))
		return -EPROTO;
	err = dblp_tx_lossmap_init(msg);
	if (err)
		return err;

	for (i = 0; i < f->lossmap.words; i++, seg += 32) {
		word = get_unaligned_be32(f->lossmap.bits + 4 * i);
		if (!word)
			continue;
		if (seg + __fls(word) >= msg->lossmap.n ||
		    seg + __ffs(word) < msg->crit_segs)
			return -EPROTO;
		dblp_segmap_del_word(&msg->lossmap, seg, word);
	}
	return msg->closed ? dblp_tx_match_map(dsk, msg) : 0;
}

/*
 * Cancel a message or piece. If it is not started, it stays in the queue, and
 * its CANCEL is sent when it is started, because message IDs have no gaps.
 */
static void dblp_tx_give_up(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	msg->cancelled = 1;
	if (msg->started) {
		dblp_tx_stop(dsk, msg);
		/* Packets in flight refer to the memory, and keep it */
		dblp_txbuf_free(dsk, msg);
		dblp_ctl_cancel(dsk, msg);
	} else {
		msg->bare = 1;
		dblp_tx_strip(dsk, msg);
	}
	dblp_write_space(dsk);
}

/* Is @msg, which has the tag, to be cancelled? Sets @err of @c */
static bool dblp_tx_is_next(const struct dblp_sock *dsk,
			    const struct dblp_tx_msg *msg,
			    struct dblp_tx_cancel *c)
{
	const struct dblp_tx_multi *part = dsk->tx.part;

	if (c->found)
		return !dblp_tx_over(msg);
	if (dblp_tx_over(msg)) {
		c->err = -EALREADY;
		return false;
	}
	c->found = true;
	c->number = msg->number;
	c->err = part && part->msg.number == msg->number ? -EBUSY : 0;
	return !c->err;
}

/**
 * dblp_tx_cancel() - cancel a queued message, with all its pieces
 * @dsk: socket
 * @c: the message. Before the first call: @next is the ID of the oldest
 *	message, @end the ID of the next new one, @err is -ENOENT
 *
 * Each call examines at most DBLP_STEPS messages, as there may be thousands.
 *
 * Return: true if the caller must call again, false when done.
 */
bool dblp_tx_cancel(struct dblp_sock *dsk, struct dblp_tx_cancel *c)
{
	struct dblp_tx_msg *msg = dblp_tx_from(dsk, c->next);
	int n = DBLP_STEPS;

	sock_owned_by_me(&dsk->sk);
	for (; msg && n; msg = dblp_tx_after(dsk, msg), n--) {
		if (!dblp_before(msg->id, c->end) ||
		    (c->found && msg->number != c->number))
			return false;
		if (msg->tag == c->tag && dblp_tx_is_next(dsk, msg, c))
			dblp_tx_give_up(dsk, msg);
		if (c->err == -EBUSY)
			return false;
		c->next = msg->id + 1;
	}
	return msg;
}

/**
 * dblp_tx_cancel_acked() - process the ACK of a CANCEL without a CLOSE
 * @dsk: socket
 * @msg: the message
 *
 * If the receiver had dropped the message, or closed it with bytes missing, its
 * CLOSE would have preceded this ACK. So the message was complete before the
 * CANCEL arrived. The ACKs of its segments were lost and will not be repeated.
 */
void dblp_tx_cancel_acked(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_tx_unsent(msg))
		dblp_end(dsk, DBLP_RST_PROTOCOL, EPROTO);
	else
		dblp_tx_complete(dsk, msg);
}

/* Account for the bytes of a settled message or piece */
static void dblp_tx_account(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	struct dblp_counts *counts = &dsk->counts;
	/* A dishonest receiver may report fewer missing bytes than unsent */
	u32 sent = msg->missing - min(msg->missing, dblp_tx_unsent(msg));

	counts->bytes_delivered += msg->len - msg->missing;
	counts->bytes_forgiven_sent += sent;
	counts->bytes_forgiven_unsent += msg->missing - sent;
	if (!msg->missing)
		return;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESFORGIVENSENT, sent);
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESFORGIVENUNSENT,
			  msg->missing - sent);
}

static void dblp_tx_report(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	if (!msg->joined)
		dblp_tx_strip(dsk, msg);
	list_add_tail(&msg->list, &dsk->tx.reports);
	WRITE_ONCE(dsk->tx.n_reports, dsk->tx.n_reports + 1);
	sk_error_report(&dsk->sk);
}

static void dblp_tx_count(struct dblp_sock *dsk, enum dblp_reason reason)
{
	dsk->counts.msgs_sent[reason]++;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENT);
	if (reason == DBLP_REASON_COMPLETE) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENTCOMPLETE);
		return;
	}
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENTEARLY);
	if (reason == DBLP_REASON_BUDGET)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENTBUDGET);
	else if (reason == DBLP_REASON_DEADLINE)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENTDEADLINE);
	else
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGSENTCANCELLED);
}

/* Report or free a settled message; for a piece, when it is the last one */
static void dblp_tx_finish(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	bool report = msg->multi ? msg->multi->msg.notify : msg->notify;

	report &= !sock_flag(&dsk->sk, SOCK_DEAD);
	if (msg->multi) {
		msg = dblp_multi_settled(dsk, msg, report);
		if (!msg)
			return;
	}
	/* Cancelled bytes are not a loss */
	if (msg->reason != DBLP_REASON_CANCELLED)
		dblp_job_account(dsk, msg->phase, msg->len, msg->missing);
	dblp_tx_count(dsk, msg->reason);
	if (report)
		dblp_tx_report(dsk, msg);
	else
		dblp_tx_free(dsk, msg);
}

/**
 * dblp_tx_settle() - account for settled messages, then report or free them
 * @dsk: socket
 * @most: maximum number of messages; dblp_work() handles the others
 */
void dblp_tx_settle(struct dblp_sock *dsk, u32 most)
{
	struct dblp_tx_msg *msg, *tmp;

	sock_owned_by_me(&dsk->sk);
	if (list_empty(&dsk->tx.settled))
		return;
	list_for_each_entry_safe(msg, tmp, &dsk->tx.settled, list) {
		if (!most--) {
			dblp_work_soon(dsk);
			break;
		}
		list_del_init(&msg->list);
		dblp_tx_account(dsk, msg);
		trace_dblp_msg_close(dsk, msg, NULL);
		dblp_txbuf_retire(dsk, msg);
		WRITE_ONCE(dsk->tx.bytes, dsk->tx.bytes - msg->len);
		dsk->tx.moved++;
		dblp_tx_leave_buffer(dsk, msg);
		dblp_tx_finish(dsk, msg);
	}
	dblp_write_space(dsk);
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

/** dblp_tx_purge() - drop all messages that are not reported */
void dblp_tx_purge(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->tx.cur = NULL;
	dsk->tx.recount = NULL;
	dsk->tx.ids = RB_ROOT;
	dblp_tx_purge_list(dsk, &dsk->tx.msgs);
	dblp_tx_purge_list(dsk, &dsk->tx.settled);
	WRITE_ONCE(dsk->tx.bytes, 0);
	dblp_multi_put(dsk, dsk->tx.part);
	WRITE_ONCE(dsk->tx.part, NULL);
	INIT_LIST_HEAD(&dsk->tx.lost);
}

/** dblp_tx_purge_reports() - drop unread reports */
void dblp_tx_purge_reports(struct dblp_sock *dsk)
{
	dblp_tx_purge_list(dsk, &dsk->tx.reports);
	WRITE_ONCE(dsk->tx.n_reports, 0);
}
