// SPDX-License-Identifier: GPL-2.0-only
/*
 * Incoming messages: opening, closing, and delivery in order.
 *
 * The first segment that arrives opens a message (rx_data.c). core/closing.c
 * decides when to close it. A closed message waits for its turn, is read, and
 * is kept until the peer has acknowledged all control frames about it.
 */
#include "dblp.h"
#include "trace.h"

/**
 * dblp_rx_may_open() - may the peer begin this message?
 * @dsk: socket
 * @id: message ID
 * @bytes: bytes of the message that use credit
 */
bool dblp_rx_may_open(const struct dblp_sock *dsk, u32 id, u32 bytes)
{
	sock_owned_by_me(&dsk->sk);
	if (!dblp_before(id, dsk->rx_max_msg))
		return false;
	if (dsk->rx_fin && !dblp_before(id, dsk->rx_end))
		return false;
	return dsk->rx_opened + bytes + DBLP_MSG_COST <= dsk->rx_max_data;
}

/* A connection with open messages counts as an active sender, see SHARE */
static void dblp_rx_begin(struct dblp_sock *dsk)
{
	if (!dsk->rx_open++)
		atomic_inc(&dsk->ep->receiving);
}

static void dblp_rx_end(struct dblp_sock *dsk)
{
	if (!--dsk->rx_open)
		atomic_dec(&dsk->ep->receiving);
}

static int dblp_rx_cmp(const void *id, const struct rb_node *node)
{
	return (s32)(*(const u32 *)id -
		     rb_entry(node, struct dblp_rx_msg, node)->id);
}

static bool dblp_rx_less(struct rb_node *a, const struct rb_node *b)
{
	return dblp_rx_cmp(&rb_entry(a, struct dblp_rx_msg, node)->id, b) < 0;
}

/**
 * dblp_rx_open() - open a message
 * @dsk: socket
 * @d: data header of a packet; dblp_rx_may_open() has permitted the message
 * @seg_size: size of its segments in bytes
 *
 * Return: the message, or NULL without memory.
 */
struct dblp_rx_msg *dblp_rx_open(struct dblp_sock *dsk,
				 const struct dblp_data *d, u32 seg_size)
{
	u32 n = DIV_ROUND_UP(d->msg_len, seg_size), size;
	struct dblp_rx_msg *msg;

	sock_owned_by_me(&dsk->sk);
	/* Upper bound of the memory that kzalloc() uses */
	size = roundup_pow_of_two(struct_size(msg, bits, 0) +
				  dblp_segmap_bytes(n));
	if (!dblp_rx_may_hold(dsk, size, d->msg_id))
		return NULL;
	msg = kzalloc(struct_size(msg, bits, 0) + dblp_segmap_bytes(n),
		      GFP_ATOMIC | __GFP_NOWARN);
	if (!msg)
		return NULL;
	INIT_LIST_HEAD(&msg->list);
	INIT_LIST_HEAD(&msg->place_node);
	timerqueue_init(&msg->due);
	__skb_queue_head_init(&msg->skbs);
	__skb_queue_head_init(&msg->taken);
	dblp_segmap_init(&msg->have, msg->bits, n);
	msg->refs = 1;
	msg->id = d->msg_id;
	msg->len = d->msg_len;
	msg->total = d->msg_len;
	msg->seg_size = seg_size;
	msg->missing = d->msg_len;
	msg->budget = d->budget;
	msg->policy = d->policy;
	msg->phase = d->phase;
	msg->meta = d->meta;
	msg->meta_missing = d->meta;
	if (msg->id == dsk->rx_next)
		dsk->rx_turn = msg;
	else
		rb_add(&msg->node, &dsk->rx_msgs, dblp_rx_less);
	msg->truesize = size;
	dblp_rmem_charge(&dsk->sk, size);
	dsk->rx_opened += dblp_rx_cost(msg);
	dblp_rx_begin(dsk);
	return msg;
}

/**
 * dblp_rx_find() - find a message that is not delivered
 * @dsk: socket
 * @id: message ID
 *
 * Return: the message or NULL.
 */
struct dblp_rx_msg *dblp_rx_find(struct dblp_sock *dsk, u32 id)
{
	struct rb_node *node;

	sock_owned_by_me(&dsk->sk);
	if (id == dsk->rx_next)
		return dsk->rx_turn;
	/* Consecutive packets mostly belong to one message */
	if (dsk->rx_found && dsk->rx_found->id == id)
		return dsk->rx_found;
	node = rb_find(&id, &dsk->rx_msgs, dblp_rx_cmp);
	dsk->rx_found = rb_entry_safe(node, struct dblp_rx_msg, node);
	return dsk->rx_found;
}

static void dblp_rx_erase(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	if (msg == dsk->rx_turn) {
		dsk->rx_turn = NULL;
		return;
	}
	dsk->rx_found = NULL;
	rb_erase(&msg->node, &dsk->rx_msgs);
}

/*
 * Schedule the next judgment of an open message: when the cap changes, when a
 * first pass ends, and at time @at unless that is 0.
 */
static void dblp_rx_wait(struct dblp_sock *dsk, struct dblp_rx_msg *msg, u64 at)
{
	if (list_empty(&msg->list))
		list_add_tail(&msg->list, &dsk->rx_waits);
	if (!at)
		return;
	/* A judgment that is too early does no harm */
	if (!RB_EMPTY_NODE(&msg->due.node)) {
		if (msg->due.expires <= at)
			return;
		timerqueue_del(&dsk->rx_due, &msg->due);
	}
	msg->due.expires = at;
	timerqueue_add(&dsk->rx_due, &msg->due);
	dsk->work_at = dblp_earliest(dsk->work_at, at);
}

/* Undo dblp_rx_wait() */
static void dblp_rx_unwait(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	list_del_init(&msg->list);
	if (!RB_EMPTY_NODE(&msg->due.node))
		timerqueue_del(&dsk->rx_due, &msg->due);
}

/** dblp_rx_unopen() - undo dblp_rx_open() when the packet is refused */
void dblp_rx_unopen(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_unwait(dsk, msg);
	dblp_rx_erase(dsk, msg);
	dsk->rx_opened -= dblp_rx_cost(msg);
	dblp_rx_end(dsk);
	dblp_rx_put(dsk, msg);
}

/* Minimum round-trip time in ns, or a default before the first sample */
static u64 dblp_rx_rtt(const struct dblp_sock *dsk)
{
	return dsk->rtt.min ?: DBLP_INITIAL_RTT_NS;
}

static u64 dblp_rx_largest(const struct dblp_sock *dsk)
{
	const struct dblp_ranges *s = &dsk->pns;

	return s->n ? s->r[s->n - 1].last : 0;
}

/* Bytes received in segments, without those described by zero maps */
static u32 dblp_rx_sent(const struct dblp_rx_msg *msg)
{
	return msg->len - msg->missing - msg->elided;
}

/* Is a critical byte missing? The search continues at the last hole */
static bool dblp_rx_lacks_critical(struct dblp_rx_msg *msg)
{
	if (!msg->critical)
		return false;
	msg->hole = dblp_segmap_next_hole(&msg->have, msg->hole);
	return msg->hole < msg->have.n &&
	       (u64)msg->hole * msg->seg_size < msg->critical;
}

static enum dblp_verdict dblp_rx_verdict(struct dblp_sock *dsk,
					 struct dblp_rx_msg *msg)
{
	enum dblp_verdict verdict;
	struct dblp_close_state s = {
		.length = msg->len,
		.missing = msg->missing,
		.critical = msg->critical,
		.critical_missing = dblp_rx_lacks_critical(msg),
		.meta_missing = msg->meta_missing,
		.budget = min(msg->budget, dsk->cap),
		.policy = msg->policy,
		/* With a cap of 0, deadlines must not cause loss, either */
		.deadline_at = dsk->cap ? msg->deadline_at : 0,
	};

	if (msg->policy == DBLP_POLICY_EARLY || s.deadline_at)
		s.now = ktime_get_ns();
	if (msg->policy == DBLP_POLICY_EARLY)
		s.early_at = dblp_early_at(&dsk->early, &msg->timing,
					   msg->len - msg->elided,
					   dblp_rx_sent(msg),
					   dblp_rx_largest(dsk),
					   dblp_rx_rtt(dsk));
	verdict = dblp_close_decide(&s);
	if (verdict == DBLP_WAIT)
		dblp_rx_wait(dsk, msg, dblp_close_again(&s));
	return verdict;
}

/* Does this piece continue the ones before it? */
static bool dblp_rx_follows(const struct dblp_sock *dsk,
			    const struct dblp_rx_msg *msg)
{
	return msg->offset == dsk->rx_chain.offset &&
	       msg->total <= dsk->rx_msg_max &&
	       (!msg->offset || (msg->total == dsk->rx_chain.total &&
				 msg->tag == dsk->rx_chain.tag));
}

/*
 * In whole mode, return the credit of a piece except that of its bytes. A
 * message that just fits the window must not need more credit in pieces.
 */
static void dblp_rx_refund(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	msg->spent = 1;
	dblp_rx_give_back(dsk, msg);
}

/* Count a message of which all pieces are closed */
static void dblp_rx_count(struct dblp_sock *dsk, enum dblp_reason reason)
{
	dsk->counts.msgs_received[reason]++;
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVED);
	if (reason == DBLP_REASON_COMPLETE) {
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVEDCOMPLETE);
		return;
	}
	DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVEDEARLY);
	if (reason == DBLP_REASON_BUDGET)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVEDBUDGET);
	else if (reason == DBLP_REASON_DEADLINE)
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVEDDEADLINE);
	else
		DBLP_INC_SK_STATS(dsk, DBLP_MIB_MSGRECEIVEDCANCELLED);
}

/* Add a closed piece to its message, which is closed with the last piece */
static void dblp_rx_chain(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	if (!msg->offset) {
		dsk->rx_chain.reason = DBLP_REASON_COMPLETE;
		dsk->rx_chain.budget = msg->budget;
		dsk->rx_chain.missing = 0;
	}
	/* As in dblp_rx_join() */
	if (msg->missing)
		dsk->rx_chain.budget = max(dsk->rx_chain.budget, msg->budget);
	dsk->rx_chain.reason = max(dsk->rx_chain.reason, msg->reason);
	dsk->rx_chain.missing += msg->missing;
	dsk->rx_chain.total = msg->total;
	dsk->rx_chain.tag = msg->tag;
	msg->number = dsk->rx_number;
	dsk->rx_chain.offset = msg->offset + msg->len;
	if (dsk->rx_chain.offset < msg->total) {
		if (!dsk->placement)
			dblp_rx_refund(dsk, msg);
		return;
	}
	dsk->rx_chain.offset = 0;
	if (dsk->rx_chain.reason == DBLP_REASON_CANCELLED)
		dsk->rx_chain.missing = msg->total;
	dsk->rx_whole++;
	dblp_rx_count(dsk, dsk->rx_chain.reason);
	if (dsk->rx_chain.reason != DBLP_REASON_COMPLETE)
		dblp_event_msg_closed(dsk);
	dsk->rx_number++;
}

/* Advance to the next message in order */
static void dblp_rx_next_turn(struct dblp_sock *dsk)
{
	struct rb_node *first = rb_first(&dsk->rx_msgs);
	struct dblp_rx_msg *msg;

	dsk->rx_next++;
	dsk->rx_turn = NULL;
	msg = rb_entry_safe(first, struct dblp_rx_msg, node);
	if (!msg || msg->id != dsk->rx_next)
		return;
	dblp_rx_erase(dsk, msg);
	dsk->rx_turn = msg;
}

/** dblp_rx_any_open() - are there messages that are not delivered? */
bool dblp_rx_any_open(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dsk->rx_turn || !RB_EMPTY_ROOT(&dsk->rx_msgs);
}

/**
 * dblp_rx_deliver() - make closed messages readable, in order
 * @dsk: socket
 * @most: maximum number of messages; dblp_work() delivers the others
 */
void dblp_rx_deliver(struct dblp_sock *dsk, u32 most)
{
	struct dblp_rx_msg *msg;
	bool any = false;

	sock_owned_by_me(&dsk->sk);
	while ((msg = dsk->rx_turn) && msg->closed) {
		if (!most--) {
			dblp_work_soon(dsk);
			break;
		}
		if (!dblp_rx_follows(dsk, msg)) {
			dblp_end(dsk, DBLP_RST_PROTOCOL, EPROTO);
			break;
		}
		dblp_rx_next_turn(dsk);
		list_add_tail(&msg->list, &dsk->rx_ready);
		dsk->rx_deadline_at = msg->deadline_at;
		dblp_rx_chain(dsk, msg);
		any |= dsk->placement || !dsk->rx_chain.offset;
	}
	if (dsk->rx_fin && dsk->rx_next == dsk->rx_end && dsk->rx_chain.offset)
		dblp_end(dsk, DBLP_RST_CLOSED, ECONNRESET);
	if (any && dsk->placement)
		dsk->rx_placeable = true;
	if (sock_flag(&dsk->sk, SOCK_DEAD))
		return;
	if (any)
		dsk->sk.sk_data_ready(&dsk->sk);
	/* Also wake processes that wait for the end of the stream */
	if (dblp_rx_ended(dsk))
		dsk->sk.sk_state_change(&dsk->sk);
}

static void dblp_rx_account(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	dsk->counts.bytes_received += msg->len;
	dsk->counts.bytes_missing += msg->missing;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESRECEIVED, msg->len);
	if (msg->missing)
		DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESMISSING, msg->missing);
}

static const u8 dblp_rx_reasons[] = {
	[DBLP_CLOSE_COMPLETE]	= DBLP_REASON_COMPLETE,
	[DBLP_CLOSE_BUDGET]	= DBLP_REASON_BUDGET,
	[DBLP_CLOSE_DEADLINE]	= DBLP_REASON_DEADLINE,
};

static bool dblp_rx_over_budget(const struct dblp_sock *dsk,
				const struct dblp_rx_msg *msg)
{
	u32 budget = min(msg->budget, dsk->cap);

	return msg->missing > dblp_budget_bytes(budget,
						msg->len - msg->critical);
}

/**
 * dblp_rx_closed() - mark a message as closed, and deliver it in order
 * @dsk: socket
 * @msg: message with reason and loss map set
 */
void dblp_rx_closed(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	msg->closed = 1;
	dblp_rx_unwait(dsk, msg);
	dblp_rx_end(dsk);
	trace_dblp_msg_close(dsk, NULL, msg);
	dblp_rx_account(dsk, msg);
	dblp_rx_widen(dsk, msg);
	if (msg == dsk->rx_turn)
		dblp_rx_deliver(dsk, DBLP_STEPS);
	dblp_rx_offer(dsk);
}

/* Close a message. A complete one needs no CLOSE, because its ACKs suffice */
static int dblp_rx_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			 enum dblp_verdict verdict)
{
	int err;

	msg->reason = dblp_rx_reasons[verdict];
	msg->flags = dblp_rx_over_budget(dsk, msg) ? DBLP_RCV_OVER_BUDGET : 0;
	if (msg->missing) {
		err = dblp_ctl_add_close(dsk, msg);
		if (err)
			return err;
	}
	if (msg->policy == DBLP_POLICY_EARLY)
		dblp_early_done(&dsk->early, &msg->timing,
				dblp_rx_sent(msg), dblp_rx_rtt(dsk));
	msg->ranges = dblp_segmap_ranges(&msg->have);
	dblp_rx_closed(dsk, msg);
	return 0;
}

/**
 * dblp_rx_try_close() - close a message if allowed
 * @dsk: socket
 * @msg: open message
 *
 * Return: 0, or -ENOMEM without any change.
 */
int dblp_rx_try_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	enum dblp_verdict verdict;

	sock_owned_by_me(&dsk->sk);
	/* Fast path: most messages must be complete, and are not yet */
	if (msg->missing && !msg->budget && !msg->deadline_at)
		return 0;
	verdict = dblp_rx_verdict(dsk, msg);
	return verdict == DBLP_WAIT ? 0 : dblp_rx_close(dsk, msg, verdict);
}

/**
 * dblp_rx_judge() - close a message if allowed; without memory, retry later
 * @dsk: socket
 * @msg: open message
 */
void dblp_rx_judge(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_unwait(dsk, msg);
	if (dblp_rx_try_close(dsk, msg))
		dblp_rx_wait(dsk, msg, ktime_get_ns() + DBLP_RETRY_NS);
}

/** dblp_rx_judge_all() - have dblp_work() judge all open messages again */
void dblp_rx_judge_all(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (list_empty(&dsk->rx_waits))
		return;
	list_splice_tail_init(&dsk->rx_waits, &dsk->rx_judge);
	dblp_work_soon(dsk);
}

/* Next message to judge: one that is due, or the first of @rx_judge */
static struct dblp_rx_msg *dblp_rx_next_judged(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due = timerqueue_getnext(&dsk->rx_due);

	if (due && due->expires <= now)
		return container_of(due, struct dblp_rx_msg, due);
	return list_first_entry_or_null(&dsk->rx_judge, struct dblp_rx_msg,
					list);
}

/**
 * dblp_rx_judge_some() - judge some messages, for dblp_work()
 * @dsk: socket
 * @now: the time
 */
void dblp_rx_judge_some(struct dblp_sock *dsk, u64 now)
{
	struct timerqueue_node *due;
	struct dblp_rx_msg *msg;
	int n = DBLP_STEPS;

	sock_owned_by_me(&dsk->sk);
	while (n-- && (msg = dblp_rx_next_judged(dsk, now)))
		dblp_rx_judge(dsk, msg);
	if (dblp_rx_next_judged(dsk, now)) {
		dblp_work_soon(dsk);
		return;
	}
	due = timerqueue_getnext(&dsk->rx_due);
	if (due)
		dsk->work_at = dblp_earliest(dsk->work_at, due->expires);
}

/**
 * dblp_rx_update_budget() - update the budget of an open message
 * @msg: the message
 * @ppm: the budget
 * @pn: number of the packet with the budget; an older budget is ignored
 *
 * Return: true if the budget has changed.
 */
bool dblp_rx_update_budget(struct dblp_rx_msg *msg, u32 ppm, u64 pn)
{
	if (pn < msg->budget_pn)
		return false;
	msg->budget_pn = pn;
	if (msg->budget == ppm)
		return false;
	msg->budget = ppm;
	return true;
}

/**
 * dblp_budget_known() - has any packet of a message been received?
 * @dsk: socket
 * @id: message ID
 *
 * A BUDGET that arrives before its message is refused, and its sender repeats
 * it. So no memory is allocated for a message that may never arrive.
 */
bool dblp_budget_known(struct dblp_sock *dsk, u32 id)
{
	sock_owned_by_me(&dsk->sk);
	return dblp_before(id, dsk->rx_next) || dblp_rx_find(dsk, id);
}

/**
 * dblp_rx_budget() - process a BUDGET frame
 * @dsk: socket
 * @f: BUDGET frame for which dblp_budget_known() is true
 * @pn: number of its packet
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_rx_budget(struct dblp_sock *dsk, const struct dblp_frame *f, u64 pn)
{
	struct dblp_rx_msg *msg = dblp_rx_find(dsk, f->budget.msg_id);

	sock_owned_by_me(&dsk->sk);
	if (!msg || msg->closed || !dblp_rx_update_budget(msg, f->budget.ppm, pn))
		return 0;
	return dblp_rx_try_close(dsk, msg);
}

/**
 * dblp_rx_straggler() - note a packet of a first pass received after its end
 * @dsk: socket
 * @pn: packet number
 */
void dblp_rx_straggler(struct dblp_sock *dsk, u64 pn)
{
	sock_owned_by_me(&dsk->sk);
	dblp_early_straggler(&dsk->early, pn, dblp_rx_largest(dsk),
			     dblp_rx_rtt(dsk), ktime_get_ns());
}

/** dblp_rx_passed() - judge again if a received packet ends a first pass */
void dblp_rx_passed(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dblp_early_passed(&dsk->early, dblp_rx_largest(dsk)))
		dblp_rx_judge_all(dsk);
}

/*
 * Maximum number of pieces searched for segments to place, per packet and per
 * call. A sender with enough memory has fewer pieces in flight, see
 * dblp_piece_len(). Later pieces are placed when earlier ones have been.
 */
#define DBLP_PLACE_AHEAD	256U

/* Is @msg on @rx_ready? */
static bool dblp_place_is_ready(const struct dblp_sock *dsk,
				const struct dblp_rx_msg *msg)
{
	return msg->closed && dblp_before(msg->id, dsk->rx_next);
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
	u32 id = dsk->rx_next;

	sock_owned_by_me(&dsk->sk);
	if (!msg) {
		*base = dsk->rx_placed;
		if (!list_empty(&dsk->rx_ready))
			return list_first_entry(&dsk->rx_ready,
						struct dblp_rx_msg, list);
	} else {
		if (msg->meta_missing || msg->total - *base <= msg->len)
			return NULL;
		*base += msg->len;
		if (!dblp_place_is_ready(dsk, msg))
			id = msg->id + 1;
		else if (!list_is_last(&msg->list, &dsk->rx_ready))
			return list_next_entry(msg, list);
	}
	if (id - dsk->rx_next >= DBLP_PLACE_AHEAD)
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
	if (!list_empty(&dsk->rx_ready))
		return true;
	while ((msg = dblp_place_next(dsk, msg, &base)))
		if (!skb_queue_empty(&msg->skbs))
			return true;
	return false;
}

/**
 * dblp_place_arrived() - wake readers if something can be placed
 * @dsk: socket in placement mode
 */
void dblp_place_arrived(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->rx_placeable || !dblp_place_any(dsk))
		return;
	dsk->rx_placeable = true;
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
	const struct dblp_rx_msg *msg = dsk->rx_turn;

	sock_owned_by_me(&dsk->sk);
	return msg && msg->len - msg->missing >=
		      msg->seen + max(msg->len / 4, DBLP_AHEAD_MIN);
}

/**
 * dblp_ahead_arrived() - wake readers if dblp_ahead_due()
 * @dsk: socket in whole mode
 */
void dblp_ahead_arrived(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (!dblp_ahead_due(dsk))
		return;
	dsk->rx_ahead = false;
	/* Not sk_data_ready(): the message cannot be read yet */
	if (!sock_flag(&dsk->sk, SOCK_DEAD))
		wake_up_interruptible(sk_sleep(&dsk->sk));
}

/** dblp_rx_eof() - have all messages before the peer's FIN been read? */
bool dblp_rx_eof(const struct dblp_sock *dsk)
{
	return dblp_rx_ended(dsk) && list_empty(&dsk->rx_ready);
}

/**
 * dblp_rx_fin() - process a FIN frame
 * @dsk: socket
 * @end: total number of messages from the peer
 *
 * Return: 0, or -EPROTO if the peer has already sent more messages.
 */
int dblp_rx_fin(struct dblp_sock *dsk, u32 end)
{
	struct rb_node *last = rb_last(&dsk->rx_msgs);

	sock_owned_by_me(&dsk->sk);
	if (dsk->rx_fin)
		return dsk->rx_end == end ? 0 : -EPROTO;
	if (dblp_before(end, dsk->rx_next) ||
	    (dsk->rx_turn && end == dsk->rx_next))
		return -EPROTO;
	if (last && dblp_rx_cmp(&end, last) <= 0)
		return -EPROTO;
	dsk->rx_fin = true;
	dsk->rx_end = end;
	dblp_rx_deliver(dsk, DBLP_STEPS);
	return 0;
}

static void dblp_rx_drop(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	dblp_rx_unwait(dsk, msg);
	dblp_rx_erase(dsk, msg);
	if (!msg->closed)
		dblp_rx_end(dsk);
	dblp_rx_put(dsk, msg);
}

/** dblp_rx_purge_open() - drop messages that are not delivered */
void dblp_rx_purge_open(struct dblp_sock *dsk)
{
	struct rb_node *node;

	if (dsk->rx_turn)
		dblp_rx_drop(dsk, dsk->rx_turn);
	while ((node = rb_first(&dsk->rx_msgs)))
		dblp_rx_drop(dsk, rb_entry(node, struct dblp_rx_msg, node));
}

/** dblp_rx_purge() - drop all messages */
void dblp_rx_purge(struct dblp_sock *dsk)
{
	dblp_rx_purge_open(dsk);
	dblp_rx_put_list(dsk, &dsk->rx_ready);
	dblp_rx_put_list(dsk, &dsk->rx_part);
	dblp_rx_put_list(dsk, &dsk->rx_last);
	dsk->rx_whole = 0;
	dsk->rx_placed = 0;
	dsk->rx_begun = false;
	dsk->rx_placeable = false;
}
