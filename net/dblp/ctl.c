// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control frames that are repeated until they are acknowledged: FLOW, CLOSE,
 * LOSSMAP, FIN, PING, BUDGET, CANCEL. They are sent in CTRL packets.
 *
 * A packet refers to the frames in it, and a frame refers to the last two
 * packets with it, as a probe sends two packets. An ACK of either packet
 * completes the frame, and loss of the latest one queues it again. The content
 * is written when the frame is sent, so a repeated FLOW has the current state.
 *
 * FIN and PING share an entry to save memory, and are repeated together. FLOW
 * has its own: it answers a PING, and an answer that repeated a PING would be
 * answered in turn, forever.
 *
 * There may be thousands of frames, for as many messages. So each operation
 * examines at most the frames that fit a packet.
 */
#include <linux/unaligned.h>
#include <net/proto_memory.h>

#include "dblp.h"

/* Initialise a zeroed frame that is on no list */
static void dblp_ctl_init(struct dblp_ctl *ctl, u8 type)
{
	int i;

	INIT_LIST_HEAD(&ctl->list);
	ctl->type = type;
	for (i = 0; i < ARRAY_SIZE(ctl->carried); i++) {
		ctl->carried[i].index = i;
		ctl->carried[i].pn = DBLP_CARRIED_NONE;
	}
}

/** dblp_ctl_begin() - initialise the control frames of a new socket */
void dblp_ctl_begin(struct dblp_sock *dsk)
{
	int i;

	dblp_ctl_init(&dsk->ctl.flow, DBLP_FRAME_FLOW);
	dblp_ctl_init(&dsk->ctl.fin_ping, 0);
	for (i = 0; i < __DBLP_CTL_RANKS; i++) {
		INIT_LIST_HEAD(&dsk->ctl.queue[i]);
		INIT_LIST_HEAD(&dsk->ctl.flight[i]);
	}
	INIT_LIST_HEAD(&dsk->ctl.late);
	dsk->ctl.notices = RB_ROOT;
}

static enum dblp_ctl_rank dblp_ctl_rank(const struct dblp_ctl *ctl)
{
	return ctl->type == DBLP_FRAME_CLOSE ? DBLP_CTL_STOP : DBLP_CTL_OTHER;
}

static struct dblp_ctl *dblp_ctl_of(struct dblp_carried *c)
{
	return container_of(c - c->index, struct dblp_ctl, carried[0]);
}

/* Detach a frame from a packet that carried it */
static void dblp_ctl_uncarry(struct dblp_sock *dsk, struct dblp_carried *c)
{
	struct dblp_sent_pkt *pkt;

	if (c->pn == DBLP_CARRIED_NONE)
		return;
	pkt = dblp_sent_pkt(&dsk->sent, c->pn);
	if (c->prev)
		c->prev->next = c->next;
	else if (pkt)
		pkt->carried = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->pn = DBLP_CARRIED_NONE;
}

static void dblp_ctl_unlink(struct dblp_sock *dsk, struct dblp_ctl *ctl)
{
	dblp_ctl_uncarry(dsk, &ctl->carried[0]);
	dblp_ctl_uncarry(dsk, &ctl->carried[1]);
	list_del_init(&ctl->list);
}

/* Queue a frame, unless it is queued */
static void dblp_ctl_wait(struct dblp_sock *dsk, struct dblp_ctl *ctl)
{
	if (!list_empty(&ctl->list) && ctl->waits)
		return;
	ctl->waits = 1;
	list_move_tail(&ctl->list, &dsk->ctl.queue[dblp_ctl_rank(ctl)]);
}

/* Queue a frame whose content has changed: ACKs of earlier copies are ignored */
static void dblp_ctl_send(struct dblp_sock *dsk, struct dblp_ctl *ctl)
{
	dblp_ctl_unlink(dsk, ctl);
	dblp_ctl_wait(dsk, ctl);
}

/**
 * dblp_ctl_add() - queue a frame of the connection
 * @dsk: socket
 * @type: FLOW, FIN or PING
 */
void dblp_ctl_add(struct dblp_sock *dsk, u8 type)
{
	sock_owned_by_me(&dsk->sk);
	if (type == DBLP_FRAME_FLOW) {
		dblp_ctl_send(dsk, &dsk->ctl.flow);
		return;
	}
	dsk->ctl.fin_ping.types |= BIT(type);
	dblp_ctl_send(dsk, &dsk->ctl.fin_ping);
}

/** dblp_ctl_waits() - are frames queued? */
bool dblp_ctl_waits(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return !list_empty(&dsk->ctl.queue[DBLP_CTL_STOP]) ||
	       !list_empty(&dsk->ctl.queue[DBLP_CTL_OTHER]);
}

/** dblp_ctl_owed() - are frames queued or in flight? */
bool dblp_ctl_owed(const struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dblp_ctl_waits(dsk) ||
	       !list_empty(&dsk->ctl.flight[DBLP_CTL_STOP]) ||
	       !list_empty(&dsk->ctl.flight[DBLP_CTL_OTHER]);
}

/* Credit limits the bytes that the peer may send before the user reads: FLOW */

/** dblp_rx_cost() - credit that a message uses, in bytes */
u64 dblp_rx_cost(const struct dblp_rx_msg *msg)
{
	return (msg->bare ? 0 : (u64)msg->len) + DBLP_MSG_COST;
}

/**
 * dblp_rx_credit_waits() - credit in bytes that is not yet granted to the peer
 * @dsk: socket
 *
 * Credit that was granted is not revoked when the window shrinks.
 */
u64 dblp_rx_credit_waits(const struct dblp_sock *dsk)
{
	u64 end = dsk->rx.consumed + dsk->rx.window;

	sock_owned_by_me(&dsk->sk);
	return end - min(end, dsk->rx.data_limit);
}

/*
 * The credit window is a promise of memory. It starts small, and grows with
 * each message closed, like cwnd in slow start. So, apart from its first value,
 * the credit outstanding is at most the bytes already received, whose memory
 * cost is known. While memory is short, for all sockets or the cgroup, each
 * grant halves the window, because data without memory is dropped.
 */

/** dblp_rx_grow_window() - grow the credit window after a message was closed */
void dblp_rx_grow_window(struct dblp_sock *dsk, const struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->rx.window < dsk->rx.window_max &&
	    !sk_under_memory_pressure(&dsk->sk))
		dsk->rx.window = min_t(u64, dsk->rx.window_max,
				       dsk->rx.window + dblp_rx_cost(msg));
}

/*
 * Does the peer wait for credit while no message is open? It cannot continue
 * until it has the credit for its next message. If memory is short, or the
 * window cannot grow, the user must first read the readable messages.
 */
static bool dblp_rx_peer_waits(const struct dblp_sock *dsk)
{
	if (dsk->rx.asked <= dsk->rx.data_limit || dsk->rx.n_open)
		return false;
	return !dblp_readable(dsk) || (dsk->rx.window < dsk->rx.window_max &&
				       !sk_under_memory_pressure(&dsk->sk));
}

static void dblp_rx_adapt(struct dblp_sock *dsk)
{
	u64 window = dsk->rx.window;

	if (dblp_rx_peer_waits(dsk))
		window = max(window, dsk->rx.asked - dsk->rx.consumed);
	else if (dblp_rx_credit_waits(dsk) &&
		 sk_under_memory_pressure(&dsk->sk))
		window = max_t(u64, window / 2, DBLP_WINDOW_MIN);
	dsk->rx.window = min_t(u64, window, dsk->rx.window_max);
}

/* Grant the peer the credit of messages that were read */
static void dblp_rx_credit(struct dblp_sock *dsk)
{
	dblp_rx_adapt(dsk);
	dsk->rx.data_limit += dblp_rx_credit_waits(dsk);
	dsk->rx.id_limit = dsk->rx.consumed_msgs + DBLP_MSG_WINDOW;
}

/**
 * dblp_rx_offer() - queue a FLOW frame if enough credit was freed
 * @dsk: socket
 *
 * A FIN has the total number of messages. Messages that wait for credit may
 * follow it, so credit is offered until all messages have arrived.
 *
 * Return: true if dblp_flush() must follow.
 */
bool dblp_rx_offer(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->state != DBLP_STATE_ESTABLISHED || dblp_rx_ended(dsk))
		return false;
	if (!dblp_rx_peer_waits(dsk) &&
	    dblp_rx_credit_waits(dsk) < dsk->rx.window / 4 &&
	    dsk->rx.id_limit - dsk->rx.consumed_msgs > DBLP_MSG_WINDOW / 2)
		return false;
	dblp_ctl_add(dsk, DBLP_FRAME_FLOW);
	return true;
}

/**
 * dblp_rx_give_back() - free the credit of a message, except that of its bytes
 * @dsk: socket
 * @msg: message; nothing happens unless it is read, and its frames acknowledged
 *
 * A message and its credit are kept until the peer has acknowledged the CLOSE
 * and loss map. Otherwise a peer that sends no ACKs could make us keep more
 * than a window of messages.
 */
void dblp_rx_give_back(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	if (!msg->spent || msg->noticed || msg->given_back)
		return;
	msg->given_back = 1;
	dsk->rx.consumed += DBLP_MSG_COST;
	dsk->rx.consumed_msgs++;
	dblp_rx_offer(dsk);
}

/**
 * dblp_rx_consume() - free the bytes and the credit of a message that was read
 * @dsk: socket
 * @msg: message or piece; its loss map is kept
 *
 * See also dblp_rx_give_back().
 */
void dblp_rx_consume(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_free_bytes(msg, true);
	dsk->rx.consumed += dblp_rx_cost(msg) - DBLP_MSG_COST;
	msg->spent = 1;
	dblp_rx_give_back(dsk, msg);
}

static struct dblp_notice *dblp_notice_find(const struct dblp_sock *dsk, u32 id)
{
	struct rb_node *node = dsk->ctl.notices.rb_node;
	struct dblp_notice *n;

	while (node) {
		n = rb_entry(node, struct dblp_notice, node);
		if (n->msg->id == id)
			return n;
		node = dblp_before(id, n->msg->id) ? node->rb_left :
						     node->rb_right;
	}
	return NULL;
}

static bool dblp_notice_less(struct rb_node *a, const struct rb_node *b)
{
	return dblp_before(rb_entry(a, struct dblp_notice, node)->msg->id,
			   rb_entry(b, struct dblp_notice, node)->msg->id);
}

/* Find the next stretch of a map with a hole, from @at on; moves @at past it */
static bool dblp_notice_stretch(const struct dblp_segmap *have, u32 *at,
				u32 *first, u16 *words)
{
	*at = dblp_segmap_next_hole(have, *at);
	if (*at >= have->n)
		return false;
	*first = round_down(*at, 32);
	*words = min_t(u32, DIV_ROUND_UP(have->n - *first, 32),
		       DBLP_LOSSMAP_WORDS_MAX);
	*at = *first + 32 * *words;
	return true;
}

static struct dblp_notice *dblp_notice_alloc(struct dblp_sock *dsk,
					     struct dblp_rx_msg *msg)
{
	u32 at = 0, frames = 1, i, first, size;
	struct sock *sk = &dsk->sk;
	struct dblp_notice *n;
	u16 words;

	/* A cancelled message needs no map, because all of it is missing */
	while (msg->reason != DBLP_REASON_CANCELLED &&
	       dblp_notice_stretch(&msg->have, &at, &first, &words))
		frames++;
	/* Upper bound of the memory that kzalloc() uses */
	size = roundup_pow_of_two(struct_size(n, frame, frames));
	if (!dblp_rmem_schedule(sk, size))
		return NULL;
	n = kzalloc(struct_size(n, frame, frames), GFP_ATOMIC | __GFP_NOWARN);
	if (!n)
		return NULL;
	n->truesize = size;
	dblp_rmem_charge(sk, size);
	INIT_LIST_HEAD(&n->late);
	n->msg = msg;
	n->owed = frames;
	dblp_ctl_init(&n->frame[0], DBLP_FRAME_CLOSE);
	for (at = 0, i = 1; i < frames; i++) {
		dblp_ctl_init(&n->frame[i], DBLP_FRAME_LOSSMAP);
		dblp_notice_stretch(&msg->have, &at, &n->frame[i].first,
				    &n->frame[i].words);
	}
	return n;
}

/**
 * dblp_ctl_add_close() - queue CLOSE and LOSSMAP frames of a message
 * @dsk: socket
 * @msg: message with bytes missing; its loss map is final
 *
 * Return: 0, or -ENOMEM without any change.
 */
int dblp_ctl_add_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	struct dblp_notice *n = dblp_notice_alloc(dsk, msg);
	u32 i;

	sock_owned_by_me(&dsk->sk);
	if (!n)
		return -ENOMEM;
	msg->refs++;
	msg->noticed = 1;
	rb_add(&n->node, &dsk->ctl.notices, dblp_notice_less);
	for (i = 0; i < n->owed; i++) {
		n->frame[i].notice = n;
		dblp_ctl_wait(dsk, &n->frame[i]);
	}
	return 0;
}

static void dblp_notice_free(struct dblp_sock *dsk, struct dblp_notice *n)
{
	rb_erase(&n->node, &dsk->ctl.notices);
	n->msg->noticed = 0;
	dblp_rx_give_back(dsk, n->msg);
	dblp_rx_put(dsk, n->msg);
	dblp_rmem_uncharge(&dsk->sk, n->truesize);
	kfree(n);
}

/* Drop a frame that is acknowledged or obsolete */
static void dblp_ctl_drop(struct dblp_sock *dsk, struct dblp_ctl *ctl)
{
	struct dblp_notice *n = ctl->notice;

	dblp_ctl_unlink(dsk, ctl);
	if (!ctl->type)
		ctl->types = 0;
	if (ctl->type == DBLP_FRAME_CLOSE)
		list_del_init(&n->late);
	else if (ctl->type != DBLP_FRAME_LOSSMAP)
		return;
	if (!--n->owed)
		dblp_notice_free(dsk, n);
}

/**
 * dblp_ctl_late() - note a segment or CANCEL received for a closed message
 * @dsk: socket
 * @id: message ID
 * @pn: largest number of the packets that carried it
 *
 * If the message was closed with bytes missing, and its CLOSE is not
 * acknowledged, the CLOSE must precede the ACK of these packets: see
 * dblp_ctl_fill_late().
 */
void dblp_ctl_late(struct dblp_sock *dsk, u32 id, u64 pn)
{
	struct dblp_notice *n = dblp_notice_find(dsk, id);

	sock_owned_by_me(&dsk->sk);
	if (!n || list_empty(&n->frame[0].list))
		return;
	dsk->ctl.late_pn = max(dsk->ctl.late_pn, pn);
	if (list_empty(&n->late))
		list_add_tail(&n->late, &dsk->ctl.late);
}

/**
 * dblp_ctl_budget() - queue a BUDGET frame of a message
 * @dsk: socket
 * @tx: message of which a segment was sent
 */
void dblp_ctl_budget(struct dblp_sock *dsk, struct dblp_tx_msg *tx)
{
	sock_owned_by_me(&dsk->sk);
	if (!tx->budget_sent)
		dblp_ctl_init(&tx->ctl, DBLP_FRAME_BUDGET);
	tx->budget_sent = 1;
	dblp_ctl_send(dsk, &tx->ctl);
}

/** dblp_ctl_forget() - drop the BUDGET or CANCEL frame of a closed message */
void dblp_ctl_forget(struct dblp_sock *dsk, struct dblp_tx_msg *tx)
{
	sock_owned_by_me(&dsk->sk);
	if (tx->ctl.type)
		dblp_ctl_unlink(dsk, &tx->ctl);
}

/**
 * dblp_ctl_cancel() - queue the CANCEL frame of a message
 * @dsk: socket
 * @tx: message that was started and is cancelled
 */
void dblp_ctl_cancel(struct dblp_sock *dsk, struct dblp_tx_msg *tx)
{
	sock_owned_by_me(&dsk->sk);
	dblp_ctl_forget(dsk, tx);
	dblp_ctl_init(&tx->ctl, DBLP_FRAME_CANCEL);
	dblp_ctl_send(dsk, &tx->ctl);
}

/**
 * dblp_ctl_flow() - fill in a FLOW frame, which the caller must send
 * @dsk: socket
 * @f: frame
 */
void dblp_ctl_flow(struct dblp_sock *dsk, struct dblp_frame *f)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_credit(dsk);
	f->flow.max_msg = dsk->rx.id_limit;
	f->flow.max_data = dsk->rx.data_limit;
	f->flow.cap = dsk->opt.cap;
}

static void dblp_ctl_lossmap(const struct dblp_ctl *ctl, struct dblp_frame *f,
			     u8 *bits)
{
	const struct dblp_rx_msg *msg = ctl->notice->msg;
	u32 i;

	for (i = 0; i < ctl->words; i++)
		put_unaligned_be32(dblp_segmap_missing_word(&msg->have,
							    ctl->first +
							    32 * i),
				   bits + 4 * i);
	f->lossmap.msg_id = msg->id;
	f->lossmap.first = ctl->first;
	f->lossmap.words = ctl->words;
	f->lossmap.bits = bits;
}

static void dblp_ctl_close(const struct dblp_ctl *ctl, struct dblp_frame *f)
{
	const struct dblp_rx_msg *msg = ctl->notice->msg;

	f->close = (typeof(f->close)) {
		.msg_id = msg->id,
		.reason = msg->reason,
	};
	if (msg->reason == DBLP_REASON_CANCELLED)
		return;
	f->close.missing = msg->missing;
	f->close.missing_segs = msg->have.n - msg->have.count;
	f->close.budget = msg->budget;
	f->close.flags = msg->flags;
}

static void dblp_ctl_cancelled(const struct dblp_tx_msg *tx,
			       struct dblp_frame *f)
{
	f->cancel.msg_id = tx->id;
	f->cancel.len = tx->len;
	f->cancel.offset = tx->offset;
	f->cancel.total = tx->total;
	f->cancel.tag = tx->tag;
	f->cancel.started = !tx->bare;
}

/* Write FIN and PING, or the one that is owed; NULL if they do not fit */
static u8 *dblp_ctl_put_fin_ping(const struct dblp_sock *dsk, u8 *p,
				 const u8 *end)
{
	u16 types = dsk->ctl.fin_ping.types;
	struct dblp_frame f;

	if (types & BIT(DBLP_FRAME_FIN)) {
		f.type = DBLP_FRAME_FIN;
		f.fin.end = dsk->tx.next_id;
		p = dblp_put_frame(p, end, &f);
	}
	if (p && types & BIT(DBLP_FRAME_PING)) {
		f.type = DBLP_FRAME_PING;
		f.ping.wanted = dsk->tx.asked;
		p = dblp_put_frame(p, end, &f);
	}
	return p;
}

static u8 *dblp_ctl_put(struct dblp_sock *dsk, const struct dblp_ctl *ctl,
			u8 *p, const u8 *end)
{
	u8 bits[4 * DBLP_LOSSMAP_WORDS_MAX];
	const struct dblp_tx_msg *tx;
	struct dblp_frame f;

	f.type = ctl->type;
	switch (ctl->type) {
	case 0:
		return dblp_ctl_put_fin_ping(dsk, p, end);
	case DBLP_FRAME_FLOW:
		dblp_ctl_flow(dsk, &f);
		break;
	case DBLP_FRAME_CLOSE:
		dblp_ctl_close(ctl, &f);
		break;
	case DBLP_FRAME_LOSSMAP:
		dblp_ctl_lossmap(ctl, &f, bits);
		break;
	case DBLP_FRAME_BUDGET:
		tx = container_of(ctl, struct dblp_tx_msg, ctl);
		f.budget.msg_id = tx->id;
		f.budget.ppm = tx->budget;
		break;
	case DBLP_FRAME_CANCEL:
		dblp_ctl_cancelled(container_of(ctl, struct dblp_tx_msg, ctl),
				   &f);
		break;
	}
	return dblp_put_frame(p, end, &f);
}

/* Record that packet @pn carries a frame; @first: frames of the packet */
static void dblp_ctl_carry(struct dblp_sock *dsk, struct dblp_ctl *ctl, u64 pn,
			   struct dblp_carried **first)
{
	struct dblp_carried *c;

	ctl->last ^= 1;
	c = &ctl->carried[ctl->last];
	dblp_ctl_uncarry(dsk, c);
	c->pn = pn;
	c->prev = NULL;
	c->next = *first;
	if (*first)
		(*first)->prev = c;
	*first = c;
	ctl->waits = 0;
	list_move_tail(&ctl->list, &dsk->ctl.flight[dblp_ctl_rank(ctl)]);
}

static bool dblp_ctl_carried_by(const struct dblp_ctl *ctl, u64 pn)
{
	return ctl->carried[ctl->last].pn == pn;
}

/* May the peer refuse the frame, and with it all that its packet carries? */
static bool dblp_ctl_refusable(const struct dblp_ctl *ctl)
{
	return ctl->type == DBLP_FRAME_BUDGET || ctl->type == DBLP_FRAME_CANCEL;
}

/* Write as many frames of a list as fit. Returns false if some do not fit */
static bool dblp_ctl_fill_from(struct dblp_sock *dsk, struct list_head *from,
			       u8 **p, const u8 *end, u64 pn,
			       struct dblp_carried **first)
{
	struct dblp_ctl *ctl;
	u8 *next;

	while (!list_empty(from)) {
		ctl = list_first_entry(from, struct dblp_ctl, list);
		if (dblp_ctl_carried_by(ctl, pn))
			break;
		if (*first && dblp_ctl_refusable(ctl) !=
			      dblp_ctl_refusable(dblp_ctl_of(*first)))
			return false;
		next = dblp_ctl_put(dsk, ctl, *p, end);
		if (!next)
			return false;
		*p = next;
		dblp_ctl_carry(dsk, ctl, pn, first);
	}
	return true;
}

/**
 * dblp_ctl_fill() - write queued frames to a packet
 * @dsk: socket
 * @p: where to write
 * @end: end of the room
 * @pn: number of the packet, which the caller must send
 * @probe: -1 for queued frames only; else add frames in flight, oldest first,
 *	starting with this &enum dblp_ctl_rank
 * @first: set to the frames of the packet, for its @carried
 *
 * Return: the end of the last frame.
 */
u8 *dblp_ctl_fill(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 pn,
		  int probe, struct dblp_carried **first)
{
	bool room = true;
	int i;

	sock_owned_by_me(&dsk->sk);
	*first = NULL;
	for (i = 0; i < __DBLP_CTL_RANKS && room; i++)
		room = dblp_ctl_fill_from(dsk, &dsk->ctl.queue[i], &p, end, pn,
					  first);
	for (i = 0; i < __DBLP_CTL_RANKS && room && probe >= 0; i++)
		room = dblp_ctl_fill_from(dsk, &dsk->ctl.flight[probe ^ i], &p,
					  end, pn, first);
	return p;
}

/**
 * dblp_ctl_fill_late() - write the CLOSE frames that must precede an ACK
 * @dsk: socket
 * @p: where to write; moved behind the last frame
 * @end: end of the room
 *
 * A peer treats a message as complete when all of its segments, or its CANCEL,
 * are acknowledged. So the CLOSE of a message must precede the ACK of later
 * segments and of a CANCEL.
 *
 * Return: false if not all frames fit; then only packets after @late_pn may be
 * acknowledged.
 */
bool dblp_ctl_fill_late(struct dblp_sock *dsk, u8 **p, const u8 *end)
{
	struct dblp_notice *n;
	u8 *next;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(n, &dsk->ctl.late, late) {
		if (dblp_ctl_carried_by(&n->frame[0], dsk->sent.next))
			continue;
		next = dblp_ctl_put(dsk, &n->frame[0], *p, end);
		if (!next)
			return false;
		*p = next;
	}
	return true;
}

/**
 * dblp_ctl_fill_closes() - repeat CLOSE frames that may have been lost
 * @dsk: socket
 * @p: where to write
 * @end: end of the room
 *
 * All ACKs carry them, so that the peer stops early. Frames written by
 * dblp_ctl_fill_late() are skipped.
 *
 * Return: the end of the last frame.
 */
u8 *dblp_ctl_fill_closes(struct dblp_sock *dsk, u8 *p, const u8 *end)
{
	struct dblp_ctl *ctl;
	u8 *next;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(ctl, &dsk->ctl.flight[DBLP_CTL_STOP], list) {
		if (dblp_ctl_carried_by(ctl, dsk->sent.next))
			break;
		if (!list_empty(&ctl->notice->late))
			continue;
		next = dblp_ctl_put(dsk, ctl, p, end);
		if (!next)
			break;
		p = next;
	}
	return p;
}

/**
 * dblp_ctl_acked() - process the ACK of a CTRL packet
 * @dsk: socket
 * @pkt: the packet
 *
 * Return: a message whose CANCEL was acknowledged, then the caller must call
 * again; or NULL when done.
 */
struct dblp_tx_msg *dblp_ctl_acked(struct dblp_sock *dsk,
				   struct dblp_sent_pkt *pkt)
{
	struct dblp_ctl *ctl;
	u8 type;

	sock_owned_by_me(&dsk->sk);
	while (pkt->carried) {
		ctl = dblp_ctl_of(pkt->carried);
		type = ctl->type;
		if (!type && ctl->types & BIT(DBLP_FRAME_FIN))
			dsk->tx.fin_acked = 1;
		/* May free a notice, but never a message */
		dblp_ctl_drop(dsk, ctl);
		if (type == DBLP_FRAME_CANCEL)
			return container_of(ctl, struct dblp_tx_msg, ctl);
	}
	return NULL;
}

/**
 * dblp_ctl_lost() - queue the frames of a lost CTRL packet again
 * @dsk: socket
 * @pkt: the packet; its ACK may still arrive
 *
 * Return: number of frames in it.
 */
u32 dblp_ctl_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt)
{
	struct dblp_carried *c;
	u32 n = 0;

	sock_owned_by_me(&dsk->sk);
	for (c = pkt->carried; c; c = c->next, n++)
		if (c->index == dblp_ctl_of(c)->last)
			dblp_ctl_wait(dsk, dblp_ctl_of(c));
	return n;
}

/** dblp_ctl_purge() - drop all frames */
void dblp_ctl_purge(struct dblp_sock *dsk)
{
	struct dblp_ctl *ctl, *tmp;
	int i;

	sock_owned_by_me(&dsk->sk);
	for (i = 0; i < __DBLP_CTL_RANKS; i++) {
		list_splice_init(&dsk->ctl.queue[i], &dsk->ctl.flight[i]);
		list_for_each_entry_safe(ctl, tmp, &dsk->ctl.flight[i], list)
			dblp_ctl_drop(dsk, ctl);
	}
}
