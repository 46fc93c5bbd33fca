// SPDX-License-Identifier: GPL-2.0-only
/*
 * recvmsg(): from rx.c to the user, and reports of messages sent.
 */
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <net/compat.h>

#include "dblp.h"

/* What a control message takes of the buffer, for a 32-bit program less */
static size_t dblp_cmsg_len(const struct msghdr *m, size_t size)
{
#ifdef CONFIG_COMPAT
	if (m->msg_flags & MSG_CMSG_COMPAT)
		return sizeof(struct compat_cmsghdr) + size;
#endif
	return CMSG_LEN(size);
}

static struct dblp_range *dblp_list_ranges(const struct dblp_segmap *map,
					   u32 seg_size, u32 len, u32 ranges)
{
	u32 from = 0, offset, length, n = 0;
	struct dblp_range *r;

	r = kvmalloc_array(ranges, sizeof(*r), GFP_KERNEL);
	if (!r)
		return NULL;
	while (n < ranges &&
	       dblp_segmap_next_missing(map, seg_size, len, &from, &offset,
					&length))
		r[n++] = (struct dblp_range) { offset, length };
	return r;
}

/* The loss map goes out whole or not at all */
static void dblp_put_ranges(struct msghdr *m, const struct dblp_segmap *map,
			    u32 seg_size, u32 len, u32 ranges)
{
	size_t size = ranges * sizeof(struct dblp_range);
	struct dblp_range *r;

	if (!ranges)
		return;
	r = m->msg_controllen < dblp_cmsg_len(m, size) ? NULL :
	    dblp_list_ranges(map, seg_size, len, ranges);
	if (!r) {
		m->msg_flags |= MSG_CTRUNC;
		return;
	}
	put_cmsg(m, SOL_DBLP, DBLP_RANGES, size, r);
	kvfree(r);
}

static void dblp_put_rcvinfo(struct msghdr *m, const struct dblp_rx_msg *msg)
{
	struct dblp_rcvinfo info = {
		.tag = msg->tag,
		.msg_id = msg->id,
		.length = msg->len,
		.missing = msg->missing,
		.ranges = msg->ranges,
		.budget = msg->budget,
		.phase = msg->phase,
		.reason = msg->reason,
	};

	/* Who wants to know nothing still sees MSG_CTRUNC if bytes are missing */
	if (!m->msg_controllen && !msg->missing)
		return;
	put_cmsg(m, SOL_DBLP, DBLP_RCVINFO, sizeof(info), &info);
	dblp_put_ranges(m, &msg->have, msg->seg_size, msg->len, msg->ranges);
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
	info.msg_id = msg->id;
	info.length = msg->len;
	info.missing = msg->missing;
	info.ranges = msg->ranges;
	info.budget = msg->budget;
	info.phase = msg->phase;
	info.reason = msg->reason;
	put_cmsg(m, SOL_DBLP, DBLP_CLOSEINFO, sizeof(info), &info);
	dblp_put_ranges(m, &msg->lossmap, msg->seg_size, msg->len,
			msg->ranges);
	m->msg_flags |= MSG_ERRQUEUE;

	lock_sock(sk);
	swap(dsk->tx_reported, msg);
	release_sock(sk);
	dblp_tx_free(msg);
	return 0;
}

/* Wait for a message; 0 without one means that no more will come */
static int dblp_wait_msg(struct dblp_sock *dsk, long timeo,
			 struct dblp_rx_msg **msgp)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (!(*msgp = dblp_rx_peek(dsk)) && !dblp_rx_eof(dsk)) {
		if (sk->sk_err)
			err = sock_error(sk);
		else if (sk->sk_shutdown & RCV_SHUTDOWN)
			break;
		else if (dsk->state < DBLP_STATE_ESTABLISHED &&
			 !dblp_connecting(dsk))
			err = -ENOTCONN;
		else if (!timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err)
			break;
		sk_wait_event(sk, &timeo, dblp_rx_peek(dsk) || sk->sk_err ||
			      (sk->sk_shutdown & RCV_SHUTDOWN) ||
			      dblp_rx_eof(dsk), &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size,
			int flags)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_rx_msg *msg = NULL;
	struct sock *sk = sock->sk;
	int err, copied;
	u8 fill;

	m->msg_namelen = 0;
	if (flags & ~(MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_WAITALL |
		      MSG_ERRQUEUE | MSG_NOSIGNAL | MSG_CMSG_CLOEXEC |
		      MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return dblp_recv_report(dsk, m);

	lock_sock(sk);
	err = dblp_wait_msg(dsk, sock_rcvtimeo(sk, flags & MSG_DONTWAIT), &msg);
	if (!msg) {
		release_sock(sk);
		return err;
	}
	if (flags & MSG_PEEK) {
		msg->refs++;
	} else {
		list_del_init(&msg->list);
		dsk->rx_bytes -= msg->len;
	}
	dblp_settle_config(dsk);
	fill = dsk->fill;
	release_sock(sk);

	err = dblp_rx_copy(msg, &m->msg_iter, fill);
	if (!err) {
		dblp_put_rcvinfo(m, msg);
		m->msg_flags |= MSG_EOR;
		m->msg_flags |= msg->len > size ? MSG_TRUNC : 0;
		copied = flags & MSG_TRUNC ? msg->len :
					     min_t(size_t, msg->len, size);
	}

	lock_sock(sk);
	if (flags & MSG_PEEK) {
		dblp_rx_put(dsk, msg);
	} else if (err) {
		list_add(&msg->list, &dsk->rx_ready);
		dsk->rx_bytes += msg->len;
	} else {
		dblp_rx_consumed(dsk, msg);
	}
	release_sock(sk);
	return err ?: copied;
}
