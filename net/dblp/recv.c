// SPDX-License-Identifier: GPL-2.0-only
/*
 * recvmsg(): from rx.c to the user, and reports of messages sent. What is
 * different in placement mode is in place.c.
 */
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <net/compat.h>

#include "dblp.h"

/** dblp_cmsg_len() - what a control message takes, for a 32-bit program less */
size_t dblp_cmsg_len(const struct msghdr *m, size_t size)
{
#ifdef CONFIG_COMPAT
	if (m->msg_flags & MSG_CMSG_COMPAT)
		return sizeof(struct compat_cmsghdr) + size;
#endif
	return CMSG_LEN(size);
}

/**
 * dblp_put_ranges() - give a loss map to the user, whole or not at all
 * @m: of the user
 * @r: the ranges, freed here; NULL if there was no memory
 * @ranges: how many
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
 * dblp_put_rcvinfo() - tell the user what became of a message
 * @m: of the user
 * @pieces: of the message, see dblp_rx_join()
 */
void dblp_put_rcvinfo(struct msghdr *m, const struct list_head *pieces)
{
	struct dblp_rcvinfo info;
	size_t size;

	dblp_rx_join(pieces, &info);
	/* Who wants to know nothing still sees MSG_CTRUNC if bytes are missing */
	if (!m->msg_controllen && !info.missing)
		return;
	put_cmsg(m, SOL_DBLP, DBLP_RCVINFO, sizeof(info), &info);
	if (!info.ranges)
		return;
	size = info.ranges * sizeof(struct dblp_range);
	dblp_put_ranges(m, m->msg_controllen < dblp_cmsg_len(m, size) ? NULL :
			   dblp_rx_ranges(pieces, info.ranges), info.ranges);
}

/* A message that this socket has sent was closed: MSG_ERRQUEUE */
static int dblp_recv_report(struct dblp_sock *dsk, struct msghdr *m)
{
	struct sock *sk = &dsk->sk;
	struct dblp_rcvinfo info = {};
	struct dblp_tx_msg *msg;

	lock_sock(sk);
	msg = list_first_entry_or_null(&dsk->tx_reports, struct dblp_tx_msg,
				       list);
	if (msg) {
		list_del_init(&msg->list);
		dsk->tx_n_reports--;
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
	swap(dsk->tx_reported, msg);
	dblp_tx_free(dsk, msg);
	release_sock(sk);
	return 0;
}

/** dblp_readable() - would recvmsg() find something? */
bool dblp_readable(const struct dblp_sock *dsk)
{
	return dsk->placement ? READ_ONCE(dsk->rx_placeable) :
				READ_ONCE(dsk->rx_whole);
}

static bool dblp_may_read(const struct dblp_sock *dsk)
{
	return !dsk->rx_busy && dblp_readable(dsk);
}

/** dblp_rx_release() - others may read again; see @rx_busy */
void dblp_rx_release(struct dblp_sock *dsk)
{
	sock_owned_by_me(&dsk->sk);
	dsk->rx_busy = false;
	if (!dsk->rx_wanted)
		return;
	dsk->rx_wanted = false;
	if (!sock_flag(&dsk->sk, SOCK_DEAD))
		dsk->sk.sk_data_ready(&dsk->sk);
}

/**
 * dblp_wait_readable() - wait until there is something to be read
 * @dsk: socket, locked
 * @timeo: jiffies to wait at most; what is left of them
 * @keep: leave an error of the socket for the next call
 *
 * Return: 1 if there is, 0 if nothing more will come, or a negative errno.
 */
int dblp_wait_readable(struct dblp_sock *dsk, long *timeo, bool keep)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	int err = 0;

	sock_owned_by_me(&dsk->sk);
	/* There may be more than was done so far, see dblp_work() */
	if (!dblp_readable(dsk))
		dblp_rx_deliver(dsk, DBLP_STEPS);
	if (dblp_may_read(dsk))
		return 1;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!dblp_may_read(dsk)) {
		if (dsk->rx_busy) {
			dsk->rx_wanted = true;
			err = *timeo ? 0 : -EAGAIN;
		} else if (dblp_rx_eof(dsk)) {
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
		/* Whatever ends this loop wakes: nothing is read without the lock */
		sk_wait_event(sk, timeo, false, &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err ?: dblp_may_read(dsk);
}

/* Take the pieces of the message to be read from the list */
static void dblp_take_whole(struct dblp_sock *dsk, struct list_head *pieces)
{
	struct dblp_rx_msg *msg;

	do {
		msg = list_first_entry(&dsk->rx_ready, struct dblp_rx_msg,
				       list);
		list_move_tail(&msg->list, pieces);
	} while (msg->offset + msg->len < msg->total);
	dsk->rx_whole--;
}

static void dblp_untake_whole(struct dblp_sock *dsk, struct list_head *pieces)
{
	list_splice(pieces, &dsk->rx_ready);
	dsk->rx_whole++;
	if (!sock_flag(&dsk->sk, SOCK_DEAD))
		dsk->sk.sk_data_ready(&dsk->sk);
}

/**
 * dblp_rx_was_read() - a message was read
 * @dsk: socket
 * @pieces: its pieces, consumed; their loss maps stay until the next one is
 */
void dblp_rx_was_read(struct dblp_sock *dsk, struct list_head *pieces)
{
	sock_owned_by_me(&dsk->sk);
	dblp_rx_put_list(dsk, &dsk->rx_last);
	list_splice_init(pieces, &dsk->rx_last);
}

static int dblp_copy_whole(const struct list_head *pieces, struct msghdr *m,
			   u8 fill)
{
	struct dblp_rx_cursor c;
	struct dblp_rx_msg *msg;
	int err;

	dblp_rx_cursor_init(&c, &m->msg_iter);
	list_for_each_entry(msg, pieces, list) {
		err = dblp_rx_copy(msg, &msg->skbs, msg->offset, &c);
		if (!err && fill == DBLP_FILL_ZERO)
			err = dblp_rx_fill_holes(msg, &c);
		if (err)
			return err;
	}
	dblp_put_rcvinfo(m, pieces);
	m->msg_flags |= MSG_EOR;
	return 0;
}

static void dblp_consume_whole(struct dblp_sock *dsk, struct list_head *pieces)
{
	struct dblp_rx_msg *msg;

	list_for_each_entry(msg, pieces, list)
		dblp_rx_consume(dsk, msg);
	dblp_rx_was_read(dsk, pieces);
	if (dblp_rx_offer(dsk))
		dblp_flush(dsk);
}

static int dblp_recv_whole(struct dblp_sock *dsk, struct msghdr *m, size_t size,
			   int flags)
{
	bool peek = flags & MSG_PEEK;
	struct sock *sk = &dsk->sk;
	LIST_HEAD(pieces);
	u32 len, fill;
	int err;

	dblp_take_whole(dsk, &pieces);
	/* What is peeked at goes back; nobody may get ahead of it meanwhile */
	dsk->rx_busy = peek;
	dblp_settle_config(dsk);
	fill = dsk->fill;
	release_sock(sk);

	len = list_first_entry(&pieces, struct dblp_rx_msg, list)->total;
	err = dblp_copy_whole(&pieces, m, fill);
	if (!err) {
		iov_iter_advance(&m->msg_iter, min_t(size_t, len, size));
		m->msg_flags |= len > size ? MSG_TRUNC : 0;
	}

	lock_sock(sk);
	if (peek || err)
		dblp_untake_whole(dsk, &pieces);
	else
		dblp_consume_whole(dsk, &pieces);
	if (peek)
		dblp_rx_release(dsk);
	if (err)
		return err;
	return flags & MSG_TRUNC ? len : min_t(size_t, len, size);
}

int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size, int flags)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	long timeo;
	int ret;

	m->msg_namelen = 0;
	if (flags & ~(MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_WAITALL |
		      MSG_ERRQUEUE | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC |
		      MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return dblp_recv_report(dsk, m);

	lock_sock(sk);
	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	ret = -EOPNOTSUPP;
	if (!dsk->placement || !(flags & MSG_PEEK))
		ret = dblp_wait_readable(dsk, &timeo, false);
	if (ret > 0)
		ret = dsk->placement ?
		      dblp_place_msg(dsk, m, size, flags, timeo) :
		      dblp_recv_whole(dsk, m, size, flags);
	release_sock(sk);
	return ret;
}
