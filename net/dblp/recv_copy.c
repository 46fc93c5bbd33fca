// SPDX-License-Identifier: GPL-2.0-only
/*
 * Common to both receive modes: copying messages to the user, control messages,
 * and waiting for a readable message.
 */
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/compat.h>

#include "dblp.h"
#include "window.h"

/* Zero map of a buffer */
static struct dblp_zeromap dblp_rx_zeromap(const struct sk_buff *skb)
{
	const struct dblp_skb_zeros *zeros = &DBLP_SKB_CB(skb)->zeros;

	return (struct dblp_zeromap) {
		.p = skb->data + zeros->hdr_len,
		.first = zeros->first,
		.words = zeros->words,
	};
}

/**
 * dblp_rx_next_zeros() - find the next bytes that a zero map describes
 * @msg: the message
 * @skb: buffer with a zero map
 * @at: bit of the map to search from, @from of the map at first; moved past the
 *	bits found
 * @offset: set to the offset of the first byte in the message
 * @bytes: set to the number of bytes
 *
 * Return: false if the map describes no more bytes before its @to.
 */
bool dblp_rx_next_zeros(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb, u32 *at, u32 *offset,
			u32 *bytes)
{
	struct dblp_zeromap z = dblp_rx_zeromap(skb);
	u32 first, n;

	if (*at >= DBLP_SKB_CB(skb)->zeros.to ||
	    !dblp_zeromap_next(&z, at, &first, &n))
		return false;
	*offset = first * msg->seg_size;
	*bytes = min(n * msg->seg_size, msg->len - *offset);
	return true;
}

/** dblp_rx_zeros_bytes() - bytes that a zero map describes, not placed yet */
u32 dblp_rx_zeros_bytes(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb)
{
	u32 at = DBLP_SKB_CB(skb)->zeros.from, offset, bytes, sum = 0;

	while (dblp_rx_next_zeros(msg, skb, &at, &offset, &bytes))
		sum += bytes;
	return sum;
}

/**
 * dblp_rx_take_zeros() - take runs of segments from a zero map, to place them
 * @skb: buffer with a zero map; its @to is moved past the runs taken
 * @most: maximum number of runs
 *
 * Return: number of runs taken.
 */
u32 dblp_rx_take_zeros(struct sk_buff *skb, u32 most)
{
	struct dblp_skb_zeros *zeros = &DBLP_SKB_CB(skb)->zeros;
	struct dblp_zeromap z = dblp_rx_zeromap(skb);
	u32 at = zeros->from, first, n, runs = 0;

	while (runs < most && dblp_zeromap_next(&z, &at, &first, &n))
		runs++;
	zeros->to = at;
	/* If only zero bits follow, the map is used up */
	if (!dblp_zeromap_next(&z, &at, &first, &n))
		zeros->to = 32 * zeros->words;
	return runs;
}

/**
 * dblp_rx_cursor_init() - begin to copy a message to the user
 * @c: cursor to initialise
 * @to: user memory; not advanced
 */
void dblp_rx_cursor_init(struct dblp_rx_cursor *c, const struct iov_iter *to)
{
	c->base = *to;
	c->at = c->base;
	c->pos = 0;
	c->size = iov_iter_count(to);
}

/* Cheap, because segments mostly arrive in order */
static struct iov_iter *dblp_rx_seek(struct dblp_rx_cursor *c, size_t pos)
{
	if (pos < c->pos) {
		c->at = c->base;
		c->pos = 0;
	}
	if (pos != c->pos)
		iov_iter_advance(&c->at, pos - c->pos);
	c->pos = pos;
	return &c->at;
}

/* Bytes of a message at @base that fit user memory */
static u32 dblp_rx_room(const struct dblp_rx_msg *msg, u32 base,
			const struct dblp_rx_cursor *c)
{
	return c->size > base ? min_t(size_t, msg->len, c->size - base) : 0;
}

/* Copy a segment that lies in several fragments */
static bool dblp_rx_copy_across(struct dblp_window *w, u32 from, u32 len,
				struct iov_iter *to)
{
	const u8 *p;
	u32 n;

	for (; len; from += n, len -= n) {
		p = dblp_window_peek(w, from, 1);
		if (!p)
			return !skb_copy_datagram_iter(w->skb, from, to, len);
		n = min(len, w->to - from);
		/* No check_copy_size(), because the bounds are trusted */
		if (_copy_to_iter(p, n, to) != n)
			return false;
	}
	return true;
}

/* Copy @bytes of segments that are @stride bytes apart, the first at @from */
static int dblp_rx_copy_row(struct dblp_window *w, u32 from, u32 stride,
			    u32 seg_size, u32 bytes, struct iov_iter *to)
{
	u32 len, n;
	const u8 *p;

	for (; bytes; bytes -= n * len, from += n * stride) {
		len = min(seg_size, bytes);
		n = 1;
		p = dblp_window_peek(w, from, len);
		if (p && len == seg_size)
			n = min(bytes / len, 1 + (w->to - from - len) / stride);
		if (p ? !dblp_row_to_iter(p, stride, len, n, to) :
			!dblp_rx_copy_across(w, from, len, to))
			return -EFAULT;
	}
	return 0;
}

static int dblp_rx_copy_run(const struct dblp_rx_msg *msg,
			    const struct sk_buff *skb,
			    const struct dblp_skb_run *r, u32 base,
			    struct dblp_rx_cursor *c)
{
	u32 from = r->first * DBLP_SKB_CB(skb)->stride + r->hdr_len;
	struct dblp_window w = { .skb = skb };
	u32 offset = r->offset, end;

	end = min(offset + dblp_rx_run_bytes(msg, r),
		  dblp_rx_room(msg, base, c));
	if (offset >= end)
		return 0;
	dblp_rx_seek(c, (size_t)base + offset);
	c->pos = (size_t)base + end;
	return dblp_rx_copy_row(&w, from, DBLP_SKB_CB(skb)->stride,
				msg->seg_size, end - offset, &c->at);
}

static int dblp_rx_copy_zeros(const struct dblp_rx_msg *msg,
			      const struct sk_buff *skb, u32 base,
			      struct dblp_rx_cursor *c)
{
	u32 at = DBLP_SKB_CB(skb)->zeros.from, room, offset, bytes;
	struct iov_iter *to;

	room = dblp_rx_room(msg, base, c);
	while (dblp_rx_next_zeros(msg, skb, &at, &offset, &bytes)) {
		if (offset >= room)
			break;
		to = dblp_rx_seek(c, (size_t)base + offset);
		bytes = min(bytes, room - offset);
		if (iov_iter_zero(bytes, to) != bytes)
			return -EFAULT;
		c->pos += bytes;
	}
	return 0;
}

/**
 * dblp_rx_copy() - copy segments of a message to the user
 * @msg: their message or piece; the caller has a reference
 * @skbs: their buffers
 * @after: last buffer to skip, or NULL
 * @base: bytes of the user's message before @msg
 * @c: position in user memory; bytes beyond its end are not copied
 *
 * Context: process, without the socket lock.
 * Return: 0 or -EFAULT.
 */
int dblp_rx_copy(const struct dblp_rx_msg *msg, struct sk_buff_head *skbs,
		 struct sk_buff *after, u32 base, struct dblp_rx_cursor *c)
{
	const struct dblp_skb_cb *cb;
	struct sk_buff *skb;
	u32 i;

	skb = after ? skb_peek_next(after, skbs) : skb_peek(skbs);
	for (; skb; skb = skb_peek_next(skb, skbs)) {
		/* Let ksoftirqd process packets */
		cond_resched();
		cb = DBLP_SKB_CB(skb);
		if (cb->is_zeros && dblp_rx_copy_zeros(msg, skb, base, c))
			return -EFAULT;
		for (i = 0; i < cb->n_runs; i++)
			if (dblp_rx_copy_run(msg, skb, &cb->run[i], base, c))
				return -EFAULT;
	}
	return 0;
}

/**
 * dblp_rx_fill_holes() - write zeroes where bytes of a message are missing
 * @msg: closed message or piece; the caller has a reference
 * @c: position in user memory
 *
 * Context: process, without the socket lock.
 * Return: 0 or -EFAULT.
 */
int dblp_rx_fill_holes(const struct dblp_rx_msg *msg, struct dblp_rx_cursor *c)
{
	u32 room = dblp_rx_room(msg, msg->offset, c);
	u32 from = 0, offset, length;
	struct iov_iter *at;

	if (msg->reason == DBLP_REASON_CANCELLED)
		return 0;
	while (msg->missing &&
	       dblp_segmap_next_missing(&msg->have, msg->seg_size, msg->len,
					&from, &offset, &length)) {
		if (offset >= room)
			break;
		at = dblp_rx_seek(c, (size_t)msg->offset + offset);
		length = min(length, room - offset);
		if (iov_iter_zero(length, at) != length)
			return -EFAULT;
		c->pos += length;
	}
	return 0;
}

/** dblp_cmsg_len() - bytes of a control message, also of a 32-bit program */
size_t dblp_cmsg_len(const struct msghdr *m, size_t size)
{
#ifdef CONFIG_COMPAT
	if (m->msg_flags & MSG_CMSG_COMPAT)
		return sizeof(struct compat_cmsghdr) + size;
#endif
	return CMSG_LEN(size);
}

/**
 * dblp_put_ranges() - report a loss map to the user, completely or not at all
 * @m: the user's message header
 * @r: ranges, freed here; NULL without memory
 * @ranges: number of ranges
 */
void dblp_put_ranges(struct msghdr *m, struct dblp_range *r, u32 ranges)
{
	size_t size = ranges * sizeof(*r);

	if (!r || m->msg_controllen < dblp_cmsg_len(m, size))
		m->msg_flags |= MSG_CTRUNC;
	else
		put_cmsg(m, SOL_DBLP, DBLP_RANGES, size, r);
	kvfree(r);
}

/**
 * dblp_put_rcvinfo() - report the outcome of a message to the user
 * @m: the user's message header
 * @pieces: pieces of the message, see dblp_rx_join()
 */
void dblp_put_rcvinfo(struct msghdr *m, const struct list_head *pieces)
{
	struct dblp_rcvinfo info;
	size_t size;

	dblp_rx_join(pieces, &info);
	/* Without a control buffer, missing bytes still cause MSG_CTRUNC */
	if (!m->msg_controllen && !info.missing)
		return;
	put_cmsg(m, SOL_DBLP, DBLP_RCVINFO, sizeof(info), &info);
	if (!info.ranges)
		return;
	size = info.ranges * sizeof(struct dblp_range);
	dblp_put_ranges(m, m->msg_controllen < dblp_cmsg_len(m, size) ? NULL :
			   dblp_rx_ranges(pieces, info.ranges), info.ranges);
}

/*
 * Readers take turns. A call that has taken buffers of a message keeps its turn
 * until it returns, because it may have to put them back. Until then no other
 * call may read the rest of the message, or the next message. So the buffers
 * return to their place, even if the receive mode has changed.
 */

/* Is it the turn of another call? */
static bool dblp_rx_blocked(const struct dblp_sock *dsk)
{
	return dsk->rx.reader && dsk->rx.reader != current;
}

/* Wake waiting readers. Pollers are not woken, because no data has arrived */
static void dblp_wake_readers(struct dblp_sock *dsk)
{
	/* No barrier: readers enter the queue with the socket locked */
	if (waitqueue_active(&dsk->rx.waiters))
		wake_up_interruptible(&dsk->rx.waiters);
}

/**
 * dblp_copy_begin() - begin the turn of a call, and unlock the socket to copy
 * @dsk: socket, locked; it is not the turn of another call
 */
void dblp_copy_begin(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	WARN_ON_ONCE(dblp_rx_blocked(dsk));
	dsk->rx.reader = current;
	dsk->rx.copying = true;
	release_sock(&dsk->sk);
}

/** dblp_copy_end() - lock the socket again, and keep the turn */
void dblp_copy_end(struct dblp_sock *dsk)
{
	lock_sock(&dsk->sk);
	dsk->rx.copying = false;
	dblp_wake_readers(dsk);
}

/** dblp_rx_release() - end the turn of this call, if any */
void dblp_rx_release(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	if (dsk->rx.reader != current)
		return;
	dsk->rx.reader = NULL;
	dblp_wake_readers(dsk);
	/* No other event would wake an edge-triggered poller */
	if (dsk->rx.refused && dblp_readable(dsk) &&
	    !sock_flag(&dsk->sk, SOCK_DEAD))
		dsk->sk.sk_data_ready(&dsk->sk);
	dsk->rx.refused = false;
}

/*
 * Wait until the call that has the turn ends, or has copied. With MSG_DONTWAIT,
 * wait only while that call copies, as for the lock of a TCP socket, and not
 * while it waits for the peer.
 */
static int dblp_wait_turn(struct dblp_sock *dsk, long *timeo)
{
	long left = *timeo ?: MAX_SCHEDULE_TIMEOUT;
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;

	if (!*timeo && !dsk->rx.copying) {
		dsk->rx.refused |= dblp_readable(dsk);
		return -EAGAIN;
	}
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(&dsk->rx.waiters, &wait);
	sk_wait_event(sk, &left, false, &wait);
	remove_wait_queue(&dsk->rx.waiters, &wait);
	*timeo = *timeo ? left : 0;
	return 0;
}

static bool dblp_may_read(const struct dblp_sock *dsk,
			  const struct dblp_ahead *ahead)
{
	if (dblp_rx_blocked(dsk))
		return false;
	return dblp_readable(dsk) ||
	       (ahead && ahead->may && !dsk->opt.placement &&
		dblp_ahead_due(dsk));
}

/**
 * dblp_wait_readable() - wait until recvmsg() can read or place something
 * @dsk: socket, locked
 * @timeo: maximum wait in jiffies; reduced by the time waited
 * @keep: whether to keep an error of the socket for the next call
 * @ahead: state of a call that may copy ahead, or NULL; data to copy ahead also
 *	ends the wait
 *
 * Return: 1 if readable, 0 at the end of the stream, or a negative errno.
 */
int dblp_wait_readable(struct dblp_sock *dsk, long *timeo, bool keep,
		       const struct dblp_ahead *ahead)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	int err = 0;

	sock_owned_by_me(&dsk->sk);
	/* dblp_work() may not have delivered everything yet */
	if (!dblp_readable(dsk))
		dblp_rx_deliver(dsk, DBLP_STEPS);
	if (dblp_may_read(dsk, ahead))
		return 1;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!dblp_may_read(dsk, ahead)) {
		if (dblp_rx_blocked(dsk)) {
			err = dblp_wait_turn(dsk, timeo);
			if (err)
				break;
			continue;
		}
		if (dblp_rx_eof(dsk)) {
			break;
		} else if (sk->sk_err) {
			err = keep ? -sk->sk_err : sock_error(sk);
		} else if (sk->sk_shutdown & RCV_SHUTDOWN) {
			break;
		} else if (dsk->state < DBLP_STATE_ESTABLISHED &&
			   !dblp_connecting(dsk)) {
			err = -ENOTCONN;
		} else if (!*timeo) {
			err = -EAGAIN;
		}
		if (!err && signal_pending(current))
			err = sock_intr_errno(*timeo);
		if (err)
			break;
		dsk->rx.ahead |= ahead && ahead->may;
		/* Each event that ends the loop wakes us: no condition here */
		sk_wait_event(sk, timeo, false, &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err ?: dblp_may_read(dsk, ahead);
}

/**
 * dblp_rx_was_read() - keep the loss map of a message that was read
 * @dsk: socket
 * @pieces: consumed pieces, at least the first; if bytes are missing, they are
 *	kept for DBLP_LOSSMAP until the next read, else freed
 */
void dblp_rx_was_read(struct dblp_sock *dsk, struct list_head *pieces)
{
	const struct dblp_rx_msg *msg;
	bool missing = false;

	sock_owned_by_me(&dsk->sk);
	list_for_each_entry(msg, pieces, list)
		missing |= msg->reason != DBLP_REASON_COMPLETE;
	msg = list_first_entry(pieces, struct dblp_rx_msg, list);
	dsk->rx.last_tag = msg->tag;
	dsk->rx.last_number = msg->number;
	dsk->rx.any_read = true;
	dblp_rx_put_list(dsk, &dsk->rx.last);
	if (missing)
		list_splice_init(pieces, &dsk->rx.last);
	else
		dblp_rx_put_list(dsk, pieces);
}
