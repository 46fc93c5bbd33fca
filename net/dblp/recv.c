// SPDX-License-Identifier: GPL-2.0-only
/*
 * recvmsg(): received messages, in whole or placement mode, and reports about
 * sent messages.
 */
#include <linux/socket.h>
#include <linux/sort.h>
#include <net/rps.h>

#include "dblp.h"

/* MSG_ERRQUEUE: report a sent message that was closed */
static int dblp_recv_report(struct dblp_sock *dsk, struct msghdr *m)
{
	struct sock *sk = &dsk->sk;
	struct dblp_rcvinfo info = {};
	struct dblp_tx_msg *msg;

	lock_sock(sk);
	msg = list_first_entry_or_null(&dsk->tx.reports, struct dblp_tx_msg,
				       list);
	if (msg) {
		list_del_init(&msg->list);
		WRITE_ONCE(dsk->tx.n_reports, dsk->tx.n_reports - 1);
		dblp_write_space(dsk);
	}
	release_sock(sk);
	if (!msg)
		return -EAGAIN;

	info.tag = msg->tag;
	info.msg_id = msg->number;
	info.length = msg->len;
	info.missing = msg->missing;
	info.ranges = msg->ranges;
	info.budget = msg->budget;
	info.phase = msg->phase;
	info.reason = msg->reason;
	info.flags = msg->flags;
	put_cmsg(m, SOL_DBLP, DBLP_CLOSEINFO, sizeof(info), &info);
	if (msg->ranges)
		dblp_put_ranges(m, dblp_tx_ranges(msg), msg->ranges);
	m->msg_flags |= MSG_ERRQUEUE;

	lock_sock(sk);
	swap(dsk->tx.reported, msg);
	dblp_tx_free(dsk, msg);
	release_sock(sk);
	return 0;
}

/* Take the pieces of the next message to be read */
static void dblp_take_whole(struct dblp_sock *dsk)
{
	struct dblp_rx_msg *msg;

	do {
		msg = list_first_entry(&dsk->rx.ready, struct dblp_rx_msg,
				       list);
		list_move_tail(&msg->list, &dsk->rx.taken);
	} while (msg->offset + msg->len < msg->total);
}

/* Put the message back. If the mode has changed meanwhile, it can be placed */
static void dblp_untake_whole(struct dblp_sock *dsk)
{
	list_splice_init(&dsk->rx.taken, &dsk->rx.ready);
	if (dsk->opt.placement)
		dblp_place_wake(dsk);
}

static int dblp_copy_pieces(const struct list_head *pieces, struct msghdr *m,
			    u8 fill)
{
	struct dblp_rx_cursor c;
	struct dblp_rx_msg *msg;
	int err;

	dblp_rx_cursor_init(&c, &m->msg_iter);
	list_for_each_entry(msg, pieces, list) {
		err = dblp_rx_copy(msg, &msg->skbs, msg->copied, msg->offset,
				   &c);
		if (!err && fill == DBLP_FILL_ZERO)
			err = dblp_rx_fill_holes(msg, &c);
		if (err)
			return err;
	}
	dblp_put_rcvinfo(m, pieces);
	m->msg_flags |= MSG_EOR;
	return 0;
}

/* Copy the taken message to the user, with the socket unlocked */
static int dblp_copy_whole(struct dblp_sock *dsk, struct msghdr *m, size_t size,
			   u32 len)
{
	u32 fill;
	int err;

	dblp_refresh_config(dsk);
	fill = dsk->opt.fill;
	dblp_copy_begin(dsk);
	err = dblp_copy_pieces(&dsk->rx.taken, m, fill);
	if (!err) {
		iov_iter_advance(&m->msg_iter, min_t(size_t, len, size));
		m->msg_flags |= len > size ? MSG_TRUNC : 0;
	}
	dblp_copy_end(dsk);
	return err;
}

/* Account for a message that is read to its end */
static void dblp_count_read(struct dblp_sock *dsk,
			    const struct list_head *pieces)
{
	dsk->rx.n_readable--;
	dsk->rx.unread -= list_first_entry(pieces, struct dblp_rx_msg,
					   list)->total;
}

static void dblp_consume_whole(struct dblp_sock *dsk)
{
	struct dblp_rx_msg *msg;

	list_for_each_entry(msg, &dsk->rx.taken, list)
		dblp_rx_consume(dsk, msg);
	dblp_count_read(dsk, &dsk->rx.taken);
	dblp_rx_was_read(dsk, &dsk->rx.taken);
	if (dblp_rx_offer(dsk))
		dblp_flush(dsk);
}

static int dblp_recv_whole(struct dblp_sock *dsk, struct msghdr *m, size_t size,
			   int flags)
{
	bool keep = flags & MSG_PEEK;
	int err = -ECANCELED;
	u32 len;

	dblp_take_whole(dsk);
	len = list_first_entry(&dsk->rx.taken, struct dblp_rx_msg, list)->total;
	/* A cancelled message is read as an error */
	if (!dblp_rx_cancelled(&dsk->rx.taken)) {
		err = dblp_copy_whole(dsk, m, size, len);
		keep |= err < 0;
	}
	if (keep)
		dblp_untake_whole(dsk);
	else
		dblp_consume_whole(dsk);
	if (err)
		return err;
	return flags & MSG_TRUNC ? len : min_t(size_t, len, size);
}

/*
 * Placement mode: recvmsg() copies received segments to their offsets in the
 * user's buffer, even while the message and its pieces are open. So the receive
 * buffer need not hold a complete message.
 *
 * Segments are taken off the message with the socket locked, copied without the
 * lock, and put back if copying fails. Meanwhile @rx.reader excludes other
 * readers, and references keep the messages allocated. Closed pieces without
 * segments are taken, too: their holes are filled, and their credit is returned
 * to the peer.
 */

/*
 * No ranges are reported if the control buffer has room for fewer. A received
 * buffer is taken as a whole, and may have this many ranges.
 */
#define DBLP_PLACED_MIN	8

/**
 * struct dblp_place - one call of recvmsg() in placement mode
 * @m: the user's message header
 * @size: size of the user's buffer in bytes
 * @flags: flags of the call
 * @parts: messages and pieces with segments in @taken; references are held
 * @done: closed pieces taken
 * @placed: ranges placed so far, sorted and joined; with MSG_WAITALL there may
 *	be more than @room
 * @n_placed: number of ranges in @placed
 * @room: number of ranges that fit the control buffer
 * @tell: whether to report the ranges
 * @runs: number of ranges taken in this round, before joining
 * @partial: piece of which this round took a zero map in part, or NULL
 * @bytes: return value of the call
 * @eor: the message is closed and taken to its end
 */
struct dblp_place {
	struct msghdr		*m;
	size_t			size;
	int			flags;
	struct list_head	parts;
	struct list_head	done;
	struct dblp_range	*placed;
	u32			n_placed;
	u32			room;
	bool			tell;
	u32			runs;
	struct dblp_rx_msg	*partial;
	u32			bytes;
	bool			eor;
};

/**
 * dblp_place_bytes() - bytes that recvmsg() could place now
 * @dsk: socket
 *
 * While a reader copies the last piece of a message without the lock, the first
 * piece on @rx.ready belongs to the next message.
 */
u64 dblp_place_bytes(struct dblp_sock *dsk)
{
	struct dblp_rx_msg *msg = NULL;
	const struct dblp_skb_cb *cb;
	struct sk_buff *skb;
	u64 sum = 0;
	u32 base, i;

	sock_owned_by_me(&dsk->sk);
	while ((msg = dblp_place_next(dsk, msg, &base)) &&
	       (msg->meta_missing || msg->offset == base))
		skb_queue_walk(&msg->skbs, skb) {
			cb = DBLP_SKB_CB(skb);
			if (cb->is_zeros)
				sum += dblp_rx_zeros_bytes(msg, skb);
			for (i = 0; i < cb->n_runs; i++)
				sum += dblp_rx_run_bytes(msg, &cb->run[i]);
		}
	return sum;
}

/** dblp_unread_bytes() - bytes of all messages that recvmsg() could return now */
u64 dblp_unread_bytes(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	return dsk->opt.placement ? dblp_place_bytes(dsk) : dsk->rx.unread;
}

/* Number of ranges in a buffer. Takes up to @most ranges of a zero map */
static u32 dblp_place_runs(struct sk_buff *skb, u32 most)
{
	return DBLP_SKB_CB(skb)->is_zeros ? dblp_rx_take_zeros(skb, most) :
					    DBLP_SKB_CB(skb)->n_runs;
}

/* Is a buffer a zero map of which only a part was taken? */
static bool dblp_place_more_zeros(const struct sk_buff *skb)
{
	const struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	return cb->is_zeros && cb->zeros.to < 32 * cb->zeros.words;
}

/*
 * Take buffers, but without MSG_WAITALL no more ranges than can be reported. A
 * zero map, which may have any number of ranges, can be taken in part. Returns
 * false if the search must stop.
 */
static bool dblp_place_take_skbs(struct dblp_rx_msg *msg, struct dblp_place *p)
{
	bool few = p->tell && !(p->flags & MSG_WAITALL);
	struct sk_buff *skb;
	u32 n, room;

	while ((skb = skb_peek(&msg->skbs))) {
		room = few ? p->room - p->runs : U32_MAX;
		n = room ? dblp_place_runs(skb, room) : 0;
		if (!n || n > room)
			return false;
		p->runs += n;
		__skb_unlink(skb, &msg->skbs);
		__skb_queue_tail(&msg->taken, skb);
		msg->batch = (struct dblp_rx_batch){};
		if (skb == msg->packed)
			msg->packed = NULL;
		if (dblp_place_more_zeros(skb)) {
			p->partial = msg;
			return false;
		}
	}
	return true;
}

static void dblp_place_take_parts(struct dblp_sock *dsk, struct dblp_place *p)
{
	struct dblp_rx_msg *msg = NULL;
	bool more = true;
	u32 base;

	p->runs = 0;
	p->partial = NULL;
	while (more && (msg = dblp_place_next(dsk, msg, &base))) {
		if (!msg->meta_missing && msg->total > p->size)
			p->m->msg_flags |= MSG_TRUNC;
		more = dblp_place_take_skbs(msg, p);
		if (skb_queue_empty(&msg->taken))
			continue;
		msg->base = base;
		msg->refs++;
		list_add_tail(&msg->place_node, &p->parts);
	}
}

static void dblp_place_take(struct dblp_sock *dsk, struct dblp_place *p)
{
	struct dblp_rx_msg *msg, *tmp;

	dblp_place_take_parts(dsk, p);
	list_for_each_entry_safe(msg, tmp, &dsk->rx.ready, list) {
		if (!skb_queue_empty(&msg->skbs) || msg == p->partial)
			break;
		list_move_tail(&msg->list, &p->done);
		if (msg->offset + msg->len == msg->total) {
			p->eor = true;
			break;
		}
	}
	dsk->rx.placeable = dblp_place_any(dsk);
}

static void dblp_place_put_parts(struct dblp_sock *dsk, struct dblp_place *p)
{
	struct dblp_rx_msg *msg, *tmp;

	list_for_each_entry_safe(msg, tmp, &p->parts, place_node) {
		list_del_init(&msg->place_node);
		dblp_rx_put(dsk, msg);
	}
}

/* Put everything back after a failure */
static void dblp_place_untake(struct dblp_sock *dsk, struct dblp_place *p)
{
	struct dblp_rx_msg *msg;
	struct sk_buff *skb;

	list_for_each_entry(msg, &p->parts, place_node) {
		dblp_rx_drop_cancelled(msg);
		skb_queue_walk(&msg->taken, skb)
			dblp_place_runs(skb, U32_MAX);
		skb_queue_splice_init(&msg->taken, &msg->skbs);
	}
	dblp_place_put_parts(dsk, p);
	list_splice_init(&p->done, &dsk->rx.ready);
	p->eor = false;
}

static int dblp_range_cmp(const void *a, const void *b)
{
	const struct dblp_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sort ranges that do not overlap, and join those that touch */
static u32 dblp_ranges_sort(struct dblp_range *r, u32 n)
{
	u32 i, last = 0;

	sort(r, n, sizeof(*r), dblp_range_cmp, NULL);
	for (i = 1; i < n; i++) {
		if (r[last].offset + r[last].length == r[i].offset)
			r[last].length += r[i].length;
		else
			r[++last] = r[i];
	}
	return n ? last + 1 : 0;
}

static void dblp_place_note_run(struct dblp_place *p,
				const struct dblp_rx_msg *msg,
				u32 offset, u32 bytes, struct dblp_range *r)
{
	size_t at = (size_t)msg->base + offset;
	u32 len;

	len = at < p->size ? min_t(size_t, bytes, p->size - at) : 0;
	if (len < bytes)
		p->m->msg_flags |= MSG_TRUNC;
	p->bytes += p->flags & MSG_TRUNC ? bytes : len;
	*r = (struct dblp_range) { at, len };
}

/* Count the placed bytes of a buffer. Append its ranges to @r if not NULL */
static u32 dblp_place_note_skb(struct dblp_place *p,
			       const struct dblp_rx_msg *msg,
			       const struct sk_buff *skb, struct dblp_range *r,
			       u32 n)
{
	const struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);
	u32 i, at, offset, bytes;
	struct dblp_range last;

	for (i = 0; i < cb->n_runs; i++) {
		dblp_place_note_run(p, msg, cb->run[i].offset,
				    dblp_rx_run_bytes(msg, &cb->run[i]), &last);
		if (r && last.length)
			r[n++] = last;
	}
	if (!cb->is_zeros)
		return n;
	at = cb->zeros.from;
	while (dblp_rx_next_zeros(msg, skb, &at, &offset, &bytes)) {
		dblp_place_note_run(p, msg, offset, bytes, &last);
		if (r && last.length)
			r[n++] = last;
	}
	return n;
}

/* Add the ranges of this round to those of earlier rounds */
static int dblp_place_note(struct dblp_place *p)
{
	bool keep = p->tell && p->n_placed <= p->room;
	struct dblp_range *r = NULL;
	struct dblp_rx_msg *msg;
	u32 n = p->n_placed;
	struct sk_buff *skb;

	if (keep && p->runs) {
		r = kvcalloc(n + p->runs, sizeof(*r), DBLP_GFP_CALL);
		if (!r)
			return -ENOMEM;
		memcpy(r, p->placed, n * sizeof(*r));
	}
	list_for_each_entry(msg, &p->parts, place_node)
		skb_queue_walk(&msg->taken, skb)
			n = dblp_place_note_skb(p, msg, skb, r, n);
	if (!r)
		return 0;
	kvfree(p->placed);
	p->placed = r;
	p->n_placed = dblp_ranges_sort(r, n);
	return 0;
}

static int dblp_place_copy(struct dblp_place *p, u8 fill)
{
	struct dblp_rx_cursor c;
	struct dblp_rx_msg *msg;
	int err = 0;

	dblp_rx_cursor_init(&c, &p->m->msg_iter);
	list_for_each_entry(msg, &p->parts, place_node)
		err = err ?: dblp_rx_copy(msg, &msg->taken, NULL, msg->base,
					  &c);
	list_for_each_entry(msg, &p->done, list)
		if (!err && fill == DBLP_FILL_ZERO)
			err = dblp_rx_fill_holes(msg, &c);
	return err ?: dblp_place_note(p);
}

/* Free placed buffers, but keep the rest of a zero map */
static void dblp_place_drop(struct dblp_rx_msg *msg)
{
	struct dblp_skb_zeros *zeros;
	struct sk_buff *skb;

	dblp_rx_drop_cancelled(msg);
	while ((skb = __skb_dequeue(&msg->taken))) {
		if (!dblp_place_more_zeros(skb)) {
			consume_skb(skb);
			continue;
		}
		zeros = &DBLP_SKB_CB(skb)->zeros;
		zeros->from = zeros->to;
		zeros->to = 32 * zeros->words;
		__skb_queue_head(&msg->skbs, skb);
	}
}

/* Return the credit of placed pieces to the peer */
static void dblp_place_consume(struct dblp_sock *dsk, struct dblp_place *p)
{
	struct dblp_rx_msg *msg, *tmp;

	list_for_each_entry(msg, &p->parts, place_node)
		dblp_place_drop(msg);
	dblp_place_put_parts(dsk, p);
	list_for_each_entry_safe(msg, tmp, &p->done, list) {
		dblp_rx_consume(dsk, msg);
		dsk->rx.placed = msg->offset + msg->len;
		list_del_init(&msg->list);
		if (msg->missing || !msg->offset)
			list_add_tail(&msg->list, &dsk->rx.part);
		else
			dblp_rx_put(dsk, msg);
	}
	if (dblp_rx_offer(dsk))
		dblp_flush(dsk);
}

/* One round: take received segments, copy them, and free them */
static int dblp_place_round(struct dblp_sock *dsk, struct dblp_place *p)
{
	int err;
	u8 fill;

	dblp_refresh_config(dsk);
	fill = dsk->opt.fill;
	dblp_place_take(dsk, p);
	dblp_copy_begin(dsk);
	err = dblp_place_copy(p, fill);
	dblp_copy_end(dsk);
	if (err)
		dblp_place_untake(dsk, p);
	else
		dblp_place_consume(dsk, p);
	dblp_place_wake(dsk);
	return err;
}

static void dblp_place_report(const struct dblp_place *p)
{
	struct msghdr *m = p->m;

	if (!m->msg_controllen || !p->bytes)
		return;
	if (!p->tell || p->n_placed > p->room)
		m->msg_flags |= MSG_CTRUNC;
	else if (p->n_placed)
		put_cmsg(m, SOL_DBLP, DBLP_PLACED,
			 p->n_placed * sizeof(*p->placed), p->placed);
}

/* End a call before the end of the message */
static void dblp_place_pause(struct dblp_sock *dsk, const struct dblp_place *p)
{
	dsk->rx.begun |= p->bytes > 0;
	dblp_copy_begin(dsk);
	dblp_place_report(p);
	dblp_copy_end(dsk);
}

/* Report the outcome of a message that is closed and placed */
static int dblp_place_end(struct dblp_sock *dsk, struct dblp_place *p)
{
	bool begun = dsk->rx.begun;
	LIST_HEAD(pieces);
	bool cancelled;

	list_splice_init(&dsk->rx.part, &pieces);
	cancelled = dblp_rx_cancelled(&pieces);
	dsk->rx.placed = 0;
	dsk->rx.begun = false;
	dblp_count_read(dsk, &pieces);
	dblp_place_wake(dsk);
	dblp_copy_begin(dsk);
	/* If a single call placed the message, its loss map suffices */
	if (begun)
		dblp_place_report(p);
	dblp_put_rcvinfo(p->m, &pieces);
	p->m->msg_flags |= MSG_EOR;
	dblp_copy_end(dsk);
	dblp_rx_was_read(dsk, &pieces);
	/* The placed bytes of a cancelled message are worthless */
	return cancelled ? -ECANCELED : p->bytes;
}

static void dblp_place_init(struct dblp_place *p)
{
	size_t others = dblp_cmsg_len(p->m, 0), room = p->m->msg_controllen;

	others += ALIGN(others + sizeof(struct dblp_rcvinfo), sizeof(long));
	room = room > others ? (room - others) / sizeof(*p->placed) : 0;
	p->room = min_t(size_t, room, U32_MAX);
	p->tell = room >= DBLP_PLACED_MIN;
	INIT_LIST_HEAD(&p->parts);
	INIT_LIST_HEAD(&p->done);
}

/*
 * recvmsg() in placement mode, after dblp_wait_readable(). Returns the bytes
 * placed, including with MSG_TRUNC those that did not fit the buffer, or a
 * negative errno.
 */
static int dblp_place_msg(struct dblp_sock *dsk, struct msghdr *m, size_t size,
			  int flags, long timeo)
{
	struct dblp_place p = { .m = m, .size = size, .flags = flags };
	int ret;

	if (flags & MSG_PEEK)
		return -EOPNOTSUPP;
	dblp_place_init(&p);
	do {
		ret = dblp_place_round(dsk, &p);
		if (ret || p.eor || (p.bytes && !(flags & MSG_WAITALL)))
			break;
		ret = dblp_wait_readable(dsk, &timeo, p.bytes, NULL);
	} while (ret > 0);

	if (p.eor)
		ret = dblp_place_end(dsk, &p);
	else
		dblp_place_pause(dsk, &p);
	kvfree(p.placed);
	return p.bytes && !p.eor ? p.bytes : ret;
}

/* Receive a message, or in placement mode the segments received so far */
static int dblp_recv_msg(struct dblp_sock *dsk, struct msghdr *m, size_t size,
			 int flags)
{
	long timeo = sock_rcvtimeo(&dsk->sk, flags & MSG_DONTWAIT);
	struct dblp_ahead ahead;
	bool place;
	int ret;

	if (dsk->opt.placement && (flags & MSG_PEEK))
		return -EOPNOTSUPP;
	dblp_ahead_init(&ahead, m, timeo && !(flags & MSG_PEEK));
	ret = dblp_ahead_wait(dsk, &ahead, &timeo);
	/* Another thread may have changed the mode during the wait */
	place = dsk->opt.placement;
	if (ret > 0 && !place)
		ret = dblp_recv_whole(dsk, m, size, flags);
	dblp_ahead_end(dsk, &ahead);
	if (ret > 0 && place)
		ret = dblp_place_msg(dsk, m, size, flags, timeo);
	dblp_rx_release(dsk);
	return ret;
}

int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size, int flags)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	int ret;

	m->msg_namelen = 0;
	if (flags & ~(MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_WAITALL |
		      MSG_ERRQUEUE | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC |
		      MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return dblp_recv_report(dsk, m);

	/* Process packets on the CPU of their reader */
	sock_rps_record_flow(sk);
	lock_sock(sk);
	ret = dblp_recv_msg(dsk, m, size, flags);
	release_sock(sk);
	return ret;
}
