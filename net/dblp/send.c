// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendmsg(): from the user's message to tx.c.
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/socket.h>

#include "dblp.h"

/** dblp_writable() - does the send buffer take another message? */
bool dblp_writable(const struct dblp_sock *dsk)
{
	return READ_ONCE(dsk->sk.sk_wmem_queued) < READ_ONCE(dsk->sk.sk_sndbuf);
}

/** dblp_write_space() - wake those who wait for dblp_writable() */
void dblp_write_space(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;
	struct socket_wq *wq;

	if (!dblp_writable(dsk))
		return;
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/* What a message is sent with: the socket's settings, or those of a cmsg */
static int dblp_get_sndinfo(struct msghdr *m, u32 len,
			    struct dblp_sndinfo *info, bool *given)
{
	struct cmsghdr *cmsg;

	*given = false;
	memset(info, 0, sizeof(*info));
	for_each_cmsghdr(cmsg, m) {
		if (!CMSG_OK(m, cmsg) || cmsg->cmsg_level != SOL_DBLP ||
		    cmsg->cmsg_type != DBLP_SNDINFO || *given ||
		    cmsg->cmsg_len != CMSG_LEN(sizeof(*info)))
			return -EINVAL;
		memcpy(info, CMSG_DATA(cmsg), sizeof(*info));
		*given = true;
	}
	if (info->flags & ~(DBLP_SND_BUDGET | DBLP_SND_POLICY |
			    DBLP_SND_PHASE) ||
	    info->budget > DBLP_PPM || info->critical > len ||
	    info->phase >= DBLP_PHASES || info->policy >= __DBLP_POLICY_MAX ||
	    info->reserved[0] || info->reserved[1])
		return -EINVAL;
	if ((info->budget && !(info->flags & DBLP_SND_BUDGET)) ||
	    (info->policy && !(info->flags & DBLP_SND_POLICY)) ||
	    (info->phase && !(info->flags & DBLP_SND_PHASE)))
		return -EINVAL;
	return 0;
}

/* The message's own settings count most, then its phase, then the socket's */
static int dblp_set_msg(const struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			const struct dblp_sndinfo *info)
{
	struct dblp_phase phase = {
		.policy = dsk->policy,
		.budget = dsk->budget,
	};

	msg->phase = dsk->phase;
	if (info->flags & DBLP_SND_PHASE) {
		if (!dblp_phase_get(sock_net(&dsk->sk), info->phase, &phase))
			return -ENOENT;
		msg->phase = info->phase;
	}
	msg->policy = info->flags & DBLP_SND_POLICY ? info->policy :
						      phase.policy;
	msg->budget = info->flags & DBLP_SND_BUDGET ? info->budget :
						      phase.budget;
	if (msg->policy == DBLP_POLICY_FULL)
		msg->budget = 0;
	msg->tag = info->tag;
	msg->critical = info->critical;
	msg->meta = info->tag || info->critical;
	msg->shuffled = dsk->order == DBLP_ORDER_SHUFFLED ||
			(dsk->order == DBLP_ORDER_AUTO && msg->budget);
	return 0;
}

/* May a message of @len bytes be sent at all? */
static int dblp_may_sendmsg(struct dblp_sock *dsk, size_t len)
{
	struct sock *sk = &dsk->sk;

	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return -EPIPE;
	if (dsk->state != DBLP_STATE_ESTABLISHED)
		return -ENOTCONN;
	if (len > dsk->peer_msg_max)
		return -EMSGSIZE;
	if (dsk->notify && dsk->tx_n_reports >= DBLP_NOTIFY_MAX)
		return -ENOBUFS;
	return 0;
}

/* Wait until a message may be sent and the send buffer has room for it */
static int dblp_wait_send(struct dblp_sock *dsk, size_t len, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	int err;

	if (dblp_connecting(dsk)) {
		err = dblp_wait_connected(dsk, timeo);
		if (err)
			return err;
	}
	add_wait_queue(sk_sleep(sk), &wait);
	while (!(err = dblp_may_sendmsg(dsk, len)) && !dblp_writable(dsk)) {
		if (!timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err)
			break;
		sk_wait_event(sk, &timeo, dblp_writable(dsk) || sk->sk_err ||
			      (sk->sk_shutdown & SEND_SHUTDOWN), &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* A message with its options, cut for the present path, without its bytes */
static int dblp_new_msg(struct dblp_sock *dsk, u32 len,
			const struct dblp_sndinfo *info,
			struct dblp_tx_msg **msgp)
{
	struct dblp_tx_msg *msg;
	int err;

	msg = dblp_tx_alloc(len);
	if (!msg)
		return -ENOMEM;
	dblp_settle_config(dsk);
	err = dblp_set_msg(dsk, msg, info) ?: dblp_tx_cut(dsk, msg);
	if (err)
		dblp_tx_free(msg);
	else
		*msgp = msg;
	return err;
}

int dblp_sendmsg(struct socket *sock, struct msghdr *m, size_t len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	struct dblp_tx_msg *msg = NULL;
	struct dblp_sndinfo info;
	bool given;
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
	err = dblp_get_sndinfo(m, min_t(size_t, len, U32_MAX), &info, &given);
	if (err)
		return err;

	lock_sock(sk);
	err = dblp_wait_send(dsk, len,
			     sock_sndtimeo(sk, m->msg_flags & MSG_DONTWAIT));
	if (!err)
		err = dblp_new_msg(dsk, len, &info, &msg);
	release_sock(sk);
	if (err)
		goto out;
	err = dblp_txbuf_alloc(msg) ?: dblp_txbuf_copy(msg, &m->msg_iter);
	if (err)
		goto out;

	/* Others may have sent meanwhile: the buffer may overflow by these */
	lock_sock(sk);
	err = dblp_may_sendmsg(dsk, len);
	if (!err)
		err = dblp_tx_queue(dsk, msg);
	if (!err)
		dblp_push(dsk);
	release_sock(sk);
out:
	if (err)
		dblp_tx_free(msg);
	if (err == -EPIPE && !(m->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err ?: len;
}
