// SPDX-License-Identifier: GPL-2.0-only
/*
 * Incoming messages: opening, and delivery in order.
 *
 * The first segment that arrives opens a message (rx_data.c), rx_close.c
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
	if (!dblp_before(id, dsk->rx.id_limit))
		return false;
	if (dsk->rx.fin && !dblp_before(id, dsk->rx.end))
		return false;
	return dsk->rx.opened + bytes + DBLP_MSG_COST <= dsk->rx.data_limit;
}

/* A connection with open messages counts as an active sender, see SHARE */
static void dblp_rx_begin(struct dblp_sock *dsk)
{
	if (!dsk->rx.n_open++)
		atomic_inc(&dsk->ep->receiving);
}

static void dblp_rx_end(struct dblp_sock *dsk)
{
	if (!--dsk->rx.n_open)
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
	if (msg->id == dsk->rx.next)
		dsk->rx.turn = msg;
	else
		rb_add(&msg->node, &dsk->rx.msgs, dblp_rx_less);
	msg->truesize = size;
	dblp_rmem_charge(&dsk->sk, size);
	dsk->rx.opened += dblp_rx_cost(msg);
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
	if (id == dsk->rx.next)
		return dsk->rx.turn;
	/* Consecutive packets mostly belong to one message */
	if (dsk->rx.found && dsk->rx.found->id == id)
		return dsk->rx.found;
	node = rb_find(&id, &dsk->rx.msgs, dblp_rx_cmp);
	dsk->rx.found = rb_entry_safe(node, struct dblp_rx_msg, node);
	return dsk->rx.found;
}

static void dblp_rx_erase(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	if (msg == dsk->rx.turn) {
		dsk->rx.turn = NULL;
		return;
	}
	dsk->rx.found = NULL;
	rb_erase(&msg->node, &dsk->rx.msgs);
}

/** dblp_rx_unwait() - do not judge an open message again */
void dblp_rx_unwait(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	list_del_init(&msg->list);
	if (!RB_EMPTY_NODE(&msg->due.node))
		timerqueue_del(&dsk->rx.due, &msg->due);
}

/** dblp_rx_unopen() - undo dblp_rx_open() when the packet is refused */
void dblp_rx_unopen(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_unwait(dsk, msg);
	dblp_rx_erase(dsk, msg);
	dsk->rx.opened -= dblp_rx_cost(msg);
	dblp_rx_end(dsk);
	dblp_rx_put(dsk, msg);
}

/* Does this piece continue the ones before it? */
static bool dblp_rx_follows(const struct dblp_sock *dsk,
			    const struct dblp_rx_msg *msg)
{
	return msg->offset == dsk->rx.chain.offset &&
	       msg->total <= dsk->rx.len_max &&
	       (!msg->offset || (msg->total == dsk->rx.chain.total &&
				 msg->tag == dsk->rx.chain.tag));
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
		dsk->rx.chain.reason = DBLP_REASON_COMPLETE;
		dsk->rx.chain.budget = msg->budget;
		dsk->rx.chain.missing = 0;
	}
	/* As in dblp_rx_join() */
	if (msg->missing)
		dsk->rx.chain.budget = max(dsk->rx.chain.budget, msg->budget);
	dsk->rx.chain.reason = max(dsk->rx.chain.reason, msg->reason);
	dsk->rx.chain.missing += msg->missing;
	dsk->rx.chain.total = msg->total;
	dsk->rx.chain.tag = msg->tag;
	msg->number = dsk->rx.number;
	dsk->rx.chain.offset = msg->offset + msg->len;
	if (dsk->rx.chain.offset < msg->total) {
		if (dsk->opt.placement)
			return;
		/*
		 * Return the credit of the piece except that of its bytes: a
		 * message that just fits the window needs no more in pieces
		 */
		msg->spent = 1;
		dblp_rx_give_back(dsk, msg);
		return;
	}
	dsk->rx.chain.offset = 0;
	if (dsk->rx.chain.reason == DBLP_REASON_CANCELLED)
		dsk->rx.chain.missing = msg->total;
	dsk->rx.n_readable++;
	dsk->rx.unread += msg->total;
	dblp_rx_count(dsk, dsk->rx.chain.reason);
	if (dsk->rx.chain.reason != DBLP_REASON_COMPLETE)
		dblp_event_msg_closed(dsk);
	dsk->rx.number++;
}

/* Advance to the next message in order */
static void dblp_rx_next_turn(struct dblp_sock *dsk)
{
	struct rb_node *first = rb_first(&dsk->rx.msgs);
	struct dblp_rx_msg *msg;

	dsk->rx.next++;
	dsk->rx.turn = NULL;
	msg = rb_entry_safe(first, struct dblp_rx_msg, node);
	if (!msg || msg->id != dsk->rx.next)
		return;
	dblp_rx_erase(dsk, msg);
	dsk->rx.turn = msg;
}

/** dblp_rx_any_open() - are there messages that are not delivered? */
bool dblp_rx_any_open(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dsk->rx.turn || !RB_EMPTY_ROOT(&dsk->rx.msgs);
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
	while ((msg = dsk->rx.turn) && msg->closed) {
		if (!most--) {
			dblp_work_soon(dsk);
			break;
		}
		if (!dblp_rx_follows(dsk, msg)) {
			dblp_end(dsk, DBLP_RST_PROTOCOL, EPROTO);
			break;
		}
		dblp_rx_next_turn(dsk);
		list_add_tail(&msg->list, &dsk->rx.ready);
		dsk->rx.deadline_at = msg->deadline_at;
		dblp_rx_chain(dsk, msg);
		any |= dsk->opt.placement || !dsk->rx.chain.offset;
	}
	if (dsk->rx.fin && dsk->rx.next == dsk->rx.end && dsk->rx.chain.offset)
		dblp_end(dsk, DBLP_RST_CLOSED, ECONNRESET);
	if (any && dsk->opt.placement)
		dsk->rx.placeable = true;
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
	dblp_rx_grow_window(dsk, msg);
	if (msg == dsk->rx.turn)
		dblp_rx_deliver(dsk, DBLP_STEPS);
	dblp_rx_offer(dsk);
}

/** dblp_rx_eof() - have all messages before the peer's FIN been read? */
bool dblp_rx_eof(const struct dblp_sock *dsk)
{
	return dblp_rx_ended(dsk) && list_empty(&dsk->rx.ready);
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
	struct rb_node *last = rb_last(&dsk->rx.msgs);

	sock_owned_by_me(&dsk->sk);
	if (dsk->rx.fin)
		return dsk->rx.end == end ? 0 : -EPROTO;
	if (dblp_before(end, dsk->rx.next) ||
	    (dsk->rx.turn && end == dsk->rx.next))
		return -EPROTO;
	if (last && dblp_rx_cmp(&end, last) <= 0)
		return -EPROTO;
	dsk->rx.fin = true;
	dsk->rx.end = end;
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

	if (dsk->rx.turn)
		dblp_rx_drop(dsk, dsk->rx.turn);
	while ((node = rb_first(&dsk->rx.msgs)))
		dblp_rx_drop(dsk, rb_entry(node, struct dblp_rx_msg, node));
}

/** dblp_rx_purge() - drop all messages */
void dblp_rx_purge(struct dblp_sock *dsk)
{
	dblp_rx_purge_open(dsk);
	dblp_rx_put_list(dsk, &dsk->rx.ready);
	dblp_rx_put_list(dsk, &dsk->rx.part);
	dblp_rx_put_list(dsk, &dsk->rx.last);
	dsk->rx.n_readable = 0;
	dsk->rx.unread = 0;
	dsk->rx.placed = 0;
	dsk->rx.begun = false;
	dsk->rx.placeable = false;
}
