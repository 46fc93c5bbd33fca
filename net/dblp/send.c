// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendmsg(): takes a message from the user and queues it in tx.c.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/proto_memory.h>
#include <net/rps.h>

#include "core/values.h"
#include "dblp.h"

/* Are all options of a message valid? */
static int dblp_check_sndinfo(const struct dblp_sndinfo *info)
{
	if (info->flags & ~(DBLP_SND_BUDGET | DBLP_SND_POLICY |
			    DBLP_SND_PHASE | DBLP_SND_DEADLINE) ||
	    info->budget > DBLP_PPM || info->phase >= DBLP_PHASES ||
	    info->policy >= __DBLP_POLICY_MAX ||
	    info->deadline > DBLP_DEADLINE_MAX ||
	    memchr_inv(info->reserved, 0, sizeof(info->reserved)))
		return -EINVAL;
	if ((info->budget && !(info->flags & DBLP_SND_BUDGET)) ||
	    (info->policy && !(info->flags & DBLP_SND_POLICY)) ||
	    (info->deadline && !(info->flags & DBLP_SND_DEADLINE)) ||
	    (info->phase && !(info->flags & DBLP_SND_PHASE)))
		return -EINVAL;
	return 0;
}

/*
 * Get the options of a message from its control messages. Other levels are
 * ignored. SOL_SOCKET is checked as for TCP, but without effect: packets have
 * the mark and priority of the connection.
 */
static int dblp_get_sndinfo(struct sock *sk, struct msghdr *m,
			    struct dblp_sndinfo *info)
{
	struct sockcm_cookie sockc;
	struct cmsghdr *cmsg;
	bool given = false;
	int err;

	if (!m->msg_controllen)
		return 0;
	sockcm_init(&sockc, sk);
	err = sock_cmsg_send(sk, m, &sockc);
	if (err)
		return err;
	for_each_cmsghdr(cmsg, m) {
		if (!CMSG_OK(m, cmsg))
			return -EINVAL;
		if (cmsg->cmsg_level != SOL_DBLP)
			continue;
		if (cmsg->cmsg_type != DBLP_SNDINFO || given)
			return -EINVAL;
		given = true;
		err = dblp_copy_struct(info, sizeof(*info), DBLP_SNDINFO_FIRST,
				       KERNEL_SOCKPTR(CMSG_DATA(cmsg)),
				       cmsg->cmsg_len - CMSG_LEN(0));
		if (err)
			return err;
	}
	return dblp_check_sndinfo(info);
}

/**
 * struct dblp_send - one call of sendmsg()
 * @m: the user's message
 * @info: options from the control message
 * @len: bytes to send
 * @done: bytes queued so far
 * @short_of_memory: allocating or charging the next piece failed
 * @timeo: jiffies left to wait
 */
struct dblp_send {
	struct msghdr		*m;
	struct dblp_sndinfo	info;
	size_t			len;
	u32			done;
	bool			short_of_memory;
	long			timeo;
};

/* Settings of the message override its phase, which overrides the socket */
static int dblp_set_msg(const struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			const struct dblp_sndinfo *info)
{
	struct dblp_phase phase = {
		.policy = dsk->opt.policy,
		.budget = dsk->opt.budget,
	};

	msg->phase = dsk->opt.phase;
	if (info->flags & DBLP_SND_PHASE) {
		if (!dblp_phase_get(sock_net(&dsk->sk), info->phase, &phase))
			return -ENOENT;
		msg->phase = info->phase;
	}
	msg->policy = info->flags & DBLP_SND_POLICY ? info->policy :
						      phase.policy;
	msg->budget = info->flags & DBLP_SND_BUDGET ? info->budget :
						      phase.budget;
	msg->own_budget = !!(info->flags & (DBLP_SND_BUDGET | DBLP_SND_PHASE));
	if (msg->policy == DBLP_POLICY_FULL)
		msg->budget = 0;
	msg->budget_most = msg->budget;
	msg->deadline = info->flags & DBLP_SND_DEADLINE ? info->deadline :
							  dsk->opt.deadline;
	msg->tag = info->tag;
	msg->critical = info->critical;
	msg->meta = info->tag || info->critical || msg->deadline;
	msg->notify = dsk->opt.notify;
	msg->auto_order = dsk->opt.order == DBLP_ORDER_AUTO;
	msg->shuffled = dsk->opt.order == DBLP_ORDER_SHUFFLED ||
			(msg->auto_order && dblp_tx_forgivable(msg));
	return 0;
}

/* Give a piece the settings that its message had at its start */
static void dblp_set_piece(struct dblp_tx_msg *msg, struct dblp_tx_multi *multi)
{
	const struct dblp_tx_msg *all = &multi->msg;

	msg->multi = multi;
	multi->refs++;
	msg->number = all->number;
	msg->offset = multi->taken;
	msg->total = all->total;
	msg->policy = all->policy;
	msg->budget = all->budget;
	msg->budget_most = all->budget;
	msg->own_budget = all->own_budget;
	msg->auto_order = all->auto_order;
	msg->deadline = all->deadline;
	msg->tag = all->tag;
	msg->phase = all->phase;
	msg->meta = 1;
	/* The budget may have changed since */
	msg->shuffled = all->shuffled ||
			(msg->auto_order && dblp_tx_forgivable(msg));
	if (all->critical > msg->offset)
		msg->critical = min(all->critical - msg->offset, msg->len);
}

/*
 * Can the socket send? If this call will return a partial count, sk_err is kept
 * for the next call.
 */
static int dblp_may_sendmsg(struct dblp_sock *dsk, const struct dblp_send *s)
{
	struct sock *sk = &dsk->sk;

	if (sk->sk_err)
		return s->done && dsk->opt.partial ? -EPIPE : sock_error(sk);
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (dsk->state != DBLP_STATE_ESTABLISHED)
		return -ENOTCONN;
	return 0;
}

/*
 * May the message be split into pieces? Either the call waits until all pieces
 * are queued, or the user has set DBLP_PARTIAL_SEND and sends the rest later.
 */
static bool dblp_may_split(const struct dblp_sock *dsk,
			   const struct dblp_send *s)
{
	return dsk->opt.partial || s->timeo == MAX_SCHEDULE_TIMEOUT;
}

/* Must this call send the rest of its message, as no later call may? */
static bool dblp_must_end(const struct dblp_sock *dsk,
			  const struct dblp_send *s)
{
	return s->done && dsk->tx.part && !dsk->opt.partial;
}

/* May the call begin? If it continues a message, it must have all the rest */
static int dblp_may_begin(struct dblp_sock *dsk, const struct dblp_send *s)
{
	const struct dblp_tx_multi *part = dsk->tx.part;

	if (part)
		return s->len == part->msg.total - part->taken ? 0 : -EINVAL;
	if (s->info.critical > s->len)
		return -EINVAL;
	if (s->len > dsk->tx.len_max ||
	    (s->len > dblp_single_max(dsk) && !dblp_may_split(dsk, s)))
		return -EMSGSIZE;
	return 0;
}

/* Pieces are a quarter of the largest allowed, but at least this many bytes */
#define DBLP_PIECE_MIN	(64 << 10)

/*
 * Return the length of the piece at @offset of @total bytes: @total if the
 * message is sent as a whole, else a multiple of the element size, or the rest.
 *
 * A piece takes at most half of the send buffer, so that one piece can be
 * filled while another is sent. If memory is short, pieces are small.
 */
static u32 dblp_piece_len(const struct dblp_sock *dsk, u32 offset, u32 total,
			  bool short_of_memory)
{
	u32 limit = dblp_single_max(dsk), len;

	if (short_of_memory)
		limit = min_t(u32, limit, DBLP_PIECE_MIN);
	if (!offset && total <= limit)
		return total;
	len = min(max_t(u32, limit / 4, DBLP_PIECE_MIN), limit);
	len = max(rounddown(len, dsk->opt.element), dsk->opt.element);
	return min(len, total - offset);
}

/*
 * Length of the next piece. If memory is short, senders use small pieces, so
 * that all make progress. A non-blocking call does not begin with one: a
 * message that fits is queued as a whole or not at all.
 */
static u32 dblp_next_len(const struct dblp_sock *dsk, const struct dblp_send *s)
{
	const struct dblp_tx_multi *part = dsk->tx.part;
	bool little = s->short_of_memory || sk_under_memory_pressure(&dsk->sk);

	if (part)
		return dblp_piece_len(dsk, part->taken, part->msg.total,
				      little);
	if (!dblp_may_split(dsk, s))
		return s->len;
	return dblp_piece_len(dsk, 0, s->len, little && s->timeo);
}

/* Called without the socket lock, too, so @tx.part may be freed at any time */
static bool dblp_send_room(const struct dblp_sock *dsk,
			   const struct dblp_send *s, u32 len)
{
	if (s->short_of_memory && READ_ONCE(dsk->due.charge))
		return false;
	if (dblp_reports_full(dsk))
		return false;
	if (dblp_writable(dsk))
		return true;
	return !sk_under_memory_pressure(&dsk->sk) &&
	       dsk->sk.sk_wmem_queued + len <= READ_ONCE(dsk->sk.sk_sndbuf);
}

/* Wake a killable sender, too: wakers wake interruptible tasks only */
static int dblp_send_woken(struct wait_queue_entry *wait, unsigned int mode,
			   int sync, void *key)
{
	return woken_wake_function(wait, TASK_NORMAL, sync, key);
}

/*
 * Only a fatal signal interrupts the wait of a call that must send the rest of
 * its message.
 */
static void dblp_wait_room(struct dblp_sock *dsk, struct dblp_send *s, u32 len,
			   bool mine)
{
	unsigned int mode = dblp_must_end(dsk, s) ?
			    TASK_KILLABLE | TASK_FREEZABLE : TASK_INTERRUPTIBLE;
	DEFINE_WAIT_FUNC(wait, dblp_send_woken);
	struct sock *sk = &dsk->sk;
	long left = s->timeo;

	add_wait_queue(sk_sleep(sk), &wait);
	release_sock(sk);
	if (!READ_ONCE(sk->sk_err) &&
	    !(READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN) &&
	    !((mine || !dsk->tx.busy) && dblp_send_room(dsk, s, len)))
		left = wait_woken(&wait, mode, left);
	lock_sock(sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	if (s->timeo != MAX_SCHEDULE_TIMEOUT)
		s->timeo = left;
}

/*
 * Wait until the next piece may be sent and has room. Before its first piece, a
 * call also waits until no other call is sending. Returns the bytes of the
 * piece, or a negative errno.
 */
static int dblp_wait_send(struct dblp_sock *dsk, struct dblp_send *s)
{
	bool mine = s->done || s->short_of_memory;
	int err, len;

	for (;;) {
		err = dblp_may_sendmsg(dsk, s);
		if (!err && !mine && !dsk->tx.busy)
			err = dblp_may_begin(dsk, s);
		len = dblp_next_len(dsk, s);
		if (err || ((mine || !dsk->tx.busy) &&
			    dblp_send_room(dsk, s, len)))
			return err ?: len;
		dblp_no_space(dsk);
		if (!s->timeo)
			err = -EAGAIN;
		else if (dblp_must_end(dsk, s) ?
			 fatal_signal_pending(current) :
			 signal_pending(current))
			err = sock_intr_errno(s->timeo);
		if (!mine && dsk->tx.busy)
			dsk->tx.wanted = 1;
		if (err)
			return err;
		dblp_wait_room(dsk, s, len, mine);
	}
}

/* Begin a message that is sent in pieces */
static int dblp_begin_multi(struct dblp_sock *dsk, const struct dblp_send *s)
{
	struct dblp_tx_multi *multi;
	int err;

	multi = dblp_multi_alloc(dsk, s->len);
	if (IS_ERR(multi))
		return PTR_ERR(multi);
	dblp_refresh_config(dsk);
	err = dblp_set_msg(dsk, &multi->msg, &s->info);
	if (err) {
		dblp_multi_put(dsk, multi);
		return err;
	}
	multi->msg.number = dsk->tx.next_number++;
	WRITE_ONCE(dsk->tx.part, multi);
	return 0;
}

/* End a message of which all pieces or none were queued */
static void dblp_end_multi(struct dblp_sock *dsk)
{
	struct dblp_tx_multi *multi = dsk->tx.part;

	WRITE_ONCE(dsk->tx.part, NULL);
	if (!multi->taken)
		dsk->tx.next_number--;
	dblp_multi_put(dsk, multi);
}

/* Make a message or piece with its options, cut for the current path MTU */
static struct dblp_tx_msg *dblp_new_piece(struct dblp_sock *dsk,
					  const struct dblp_send *s, u32 len)
{
	struct dblp_tx_msg *msg;
	int err = 0;

	msg = dblp_tx_alloc(dsk, len);
	if (IS_ERR(msg))
		return msg;
	if (dsk->tx.part) {
		dblp_set_piece(msg, dsk->tx.part);
	} else {
		dblp_refresh_config(dsk);
		err = dblp_set_msg(dsk, msg, &s->info);
		msg->number = dsk->tx.next_number;
	}
	if (!err)
		err = dblp_tx_cut(dsk, msg) ?: dblp_txbuf_reserve(dsk, msg);
	if (err) {
		dblp_tx_free(dsk, msg);
		return ERR_PTR(err);
	}
	return msg;
}

static int dblp_queue_piece(struct dblp_sock *dsk, struct dblp_send *s,
			    struct dblp_tx_msg *msg)
{
	struct dblp_tx_multi *multi = msg->multi;
	int err;

	dblp_tx_refresh_budget(dsk, msg);
	err = dblp_may_sendmsg(dsk, s);
	if (err)
		return err;
	dblp_tx_queue(dsk, msg);
	if (!multi)
		dsk->tx.next_number++;
	else
		multi->taken += msg->len;
	if (multi && multi->taken == multi->msg.total)
		dblp_end_multi(dsk);
	s->done += msg->len;
	if (!dblp_writable(dsk))
		dblp_no_space(dsk);
	dblp_flush(dsk);
	return 0;
}

/*
 * Copy one piece from the user and queue it. It is charged first. The socket is
 * unlocked while user memory is read.
 */
static int dblp_send_piece(struct dblp_sock *dsk, struct dblp_send *s, u32 len)
{
	struct iov_iter *from = &s->m->msg_iter;
	size_t before = iov_iter_count(from);
	struct sock *sk = &dsk->sk;
	struct dblp_tx_msg *msg;
	u32 trimmed = 0;
	int err;

	msg = dblp_new_piece(dsk, s, len);
	if (IS_ERR(msg))
		return PTR_ERR(msg);
	release_sock(sk);
	err = dblp_txbuf_alloc(msg) ?: dblp_txbuf_copy(msg, from);
	if (!err)
		trimmed = dblp_txbuf_trim(msg);
	lock_sock(sk);
	msg->buf_truesize -= trimmed;
	dblp_tx_uncharge(dsk, msg, trimmed);
	if (!err)
		err = dblp_queue_piece(dsk, s, msg);
	if (!err)
		return 0;
	dblp_tx_free(dsk, msg);
	iov_iter_revert(from, before - iov_iter_count(from));
	return err;
}

/*
 * May the call retry a piece that failed with @err? A refused charge (-ENOBUFS)
 * is handled like a full send buffer. A failed allocation (-ENOMEM) is retried
 * if unsettled messages will free memory, or if the call must send the rest of
 * its message.
 */
static bool dblp_may_retry(struct dblp_sock *dsk, struct dblp_send *s, int err)
{
	s->short_of_memory = err == -ENOBUFS ||
			     (err == -ENOMEM &&
			      (dsk->tx.bytes || dblp_must_end(dsk, s)));
	if (!s->short_of_memory)
		return !err;
	dblp_tx_refused(dsk);
	return true;
}

/*
 * Send the message, or as many of its pieces as the timeout allows; @len: bytes
 * of the first
 */
static int dblp_send_pieces(struct dblp_sock *dsk, struct dblp_send *s, int len)
{
	int err;

	do {
		err = 0;
		if (!dsk->tx.part && len < s->len)
			err = dblp_begin_multi(dsk, s);
		err = err ?: dblp_send_piece(dsk, s, len);
		if (s->done == s->len || !dblp_may_retry(dsk, s, err))
			break;
		len = dblp_wait_send(dsk, s);
		err = min(len, 0);
	} while (!err);
	/* The end of the connection would have freed @tx.part */
	if (dsk->tx.part && !dsk->tx.part->taken)
		dblp_end_multi(dsk);
	/* The next call must not be mistaken for the rest of this message */
	if (dblp_must_end(dsk, s))
		dblp_shut_sending(dsk);
	return err;
}

static int dblp_send_all(struct dblp_sock *dsk, struct dblp_send *s)
{
	int err, len;

	if (dblp_connecting(dsk)) {
		err = dblp_wait_connected(dsk, s->timeo);
		if (err)
			return err;
	}
	len = dblp_wait_send(dsk, s);
	if (len < 0)
		return len;
	dsk->tx.busy = 1;
	err = dblp_send_pieces(dsk, s, len);
	dsk->tx.busy = 0;
	if (dsk->tx.wanted) {
		dsk->tx.wanted = 0;
		dblp_wake_writers(dsk);
	}
	return err;
}

int dblp_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_send s = { .m = m, .len = len };
	struct sock *sk = sock->sk;
	int err;

	/* From splice(): see dblp_splice_read() */
	if (m->msg_flags & MSG_SPLICE_PAGES)
		return -EINVAL;
	if (m->msg_flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR | MSG_BATCH |
			     MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (m->msg_namelen)
		return -EISCONN;
	if (!len)
		return -EINVAL;
	err = dblp_get_sndinfo(sk, m, &s.info);
	if (err)
		return err;

	sock_rps_record_flow(sk);
	lock_sock(sk);
	s.timeo = sock_sndtimeo(sk, m->msg_flags & MSG_DONTWAIT);
	err = dblp_send_all(dsk, &s);
	if (s.done < len && !dsk->opt.partial)
		s.done = 0;
	release_sock(sk);
	if (s.done)
		return s.done;
	if (err == -EPIPE && !(m->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err;
}
