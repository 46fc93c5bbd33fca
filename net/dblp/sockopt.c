// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of level SOL_DBLP, and the supported ones of level SOL_SOCKET.
 */
#include <linux/security.h>
#include <net/inet_ecn.h>

#include "core/values.h"
#include "dblp.h"
#include "trace.h"

/* An option with a u32 value: offset in struct dblp_sock, and range */
struct dblp_u32_opt {
	u32	offset;
	u32	min;
	u32	max;
};

#define DBLP_U32_OPT(field, lo, hi) {			\
	.offset = offsetof(struct dblp_sock, opt.field),	\
	.min = (lo), .max = (hi) }

static const struct dblp_u32_opt dblp_u32_opts[] = {
	[DBLP_BUDGET]		= DBLP_U32_OPT(budget, 0, DBLP_PPM),
	[DBLP_BUDGET_CAP]	= DBLP_U32_OPT(cap, 0, DBLP_PPM),
	[DBLP_CLOSE_POLICY]	= DBLP_U32_OPT(policy, 0,
					       __DBLP_POLICY_MAX - 1),
	[DBLP_DEADLINE]		= DBLP_U32_OPT(deadline, 0,
					       DBLP_DEADLINE_MAX),
	[DBLP_ORDER]		= DBLP_U32_OPT(order, 0, __DBLP_ORDER_MAX - 1),
	[DBLP_ELEMENT]		= DBLP_U32_OPT(element, 1, DBLP_ELEMENT_MAX),
	[DBLP_FILL]		= DBLP_U32_OPT(fill, 0, __DBLP_FILL_MAX - 1),
	[DBLP_NOTIFY]		= DBLP_U32_OPT(notify, 0, 1),
	[DBLP_PARTIAL_SEND]	= DBLP_U32_OPT(partial, 0, 1),
	[DBLP_ELIDE]		= DBLP_U32_OPT(elide, 0, 1),
	[DBLP_TOS]		= DBLP_U32_OPT(tos, 0, 0xfc),
	[DBLP_USER_TIMEOUT]	= DBLP_U32_OPT(user_timeout_ms,
					       DBLP_USER_TIMEOUT_MIN_MS,
					       DBLP_USER_TIMEOUT_MAX_MS),
	[DBLP_KEEPALIVE]	= DBLP_U32_OPT(keepalive_ms,
					       DBLP_KEEPALIVE_MIN_MS,
					       DBLP_KEEPALIVE_MAX_MS),
	[DBLP_PLACEMENT]	= DBLP_U32_OPT(placement, 0, 1),
	[DBLP_PHASE]		= DBLP_U32_OPT(phase, 0, DBLP_PHASES - 1),
	[DBLP_ECT]		= DBLP_U32_OPT(ect, 0, 1),
	[DBLP_SPRAY]		= DBLP_U32_OPT(spray, 1, DBLP_SPRAY_MAX),
};

static const struct dblp_u32_opt *dblp_find_opt(int name)
{
	if (name < 0 || name >= (int)ARRAY_SIZE(dblp_u32_opts) ||
	    !dblp_u32_opts[name].offset)
		return NULL;
	return &dblp_u32_opts[name];
}

/*
 * Placement mode cannot be left once there is a window: the peer may send
 * messages larger than this window, which can only be placed. Whole mode can be
 * left at any time, because messages are not read in part.
 */
static int dblp_set_placement(struct dblp_sock *dsk, bool on)
{
	if (!on && dsk->rx.window)
		return dsk->opt.placement ? -EISCONN : 0;
	dsk->opt.placement = on;
	if (on)
		dblp_place_wake(dsk);
	/* Placement mode accepts missing bytes, so the cap may change */
	dblp_apply_config(dsk);
	return 0;
}

static int dblp_apply_u32(struct dblp_sock *dsk, int name, u32 val, u32 *field)
{
	switch (name) {
	case DBLP_KEEPALIVE:
		dblp_keepalive_tune(dsk, val);
		return 0;
	case DBLP_PLACEMENT:
		return dblp_set_placement(dsk, val);
	case DBLP_SPRAY:
		/* Both ends agree on it in the handshake */
		if (dsk->state != DBLP_STATE_CLOSED || dsk->tx.len_max)
			return -EISCONN;
		break;
	case DBLP_NOTIFY:
		WRITE_ONCE(dsk->opt.notify, val);
		dblp_write_space(dsk);
		return 0;
	case DBLP_ELEMENT:
	case DBLP_PARTIAL_SEND:
		/* Both must stay the same until all pieces are queued */
		if (dsk->tx.busy || dsk->tx.part)
			return -EBUSY;
		break;
	}
	if (DBLP_OWN(name) & DBLP_OWN_OPTS)
		dblp_set_own(dsk, name, val);
	else
		*field = val;
	return 0;
}

static int dblp_set_u32(struct dblp_sock *dsk, int name,
			const struct dblp_u32_opt *opt, sockptr_t optval,
			unsigned int optlen)
{
	u32 *field = (void *)dsk + opt->offset;
	bool own = DBLP_OWN(name) & DBLP_OWN_OPTS;
	int err;
	u32 val;

	if (optlen != sizeof(val))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	if ((val < opt->min || val > opt->max) &&
	    !(own && val == DBLP_INHERIT))
		return -EINVAL;
	/* The transport sets the ECN field */
	if (name == DBLP_TOS && (val & INET_ECN_MASK))
		return -EINVAL;
	if (name == DBLP_PHASE)
		return dblp_sock_set_place(dsk, &val, NULL);

	lock_sock(&dsk->sk);
	err = dblp_apply_u32(dsk, name, val, field);
	release_sock(&dsk->sk);
	return err;
}

static int dblp_set_job(struct dblp_sock *dsk, sockptr_t optval,
			unsigned int optlen)
{
	u32 id;
	int err;

	if (optlen != sizeof(id))
		return -EINVAL;
	if (copy_from_sockptr(&id, optval, sizeof(id)))
		return -EFAULT;
	err = dblp_sock_set_place(dsk, NULL, &id);
	return err == -ESRCH ? -ENOENT : err;
}

static int dblp_set_norm(struct dblp_sock *dsk, sockptr_t optval,
			 unsigned int optlen)
{
	u64 norm;

	if (optlen != sizeof(norm))
		return -EINVAL;
	if (copy_from_sockptr(&norm, optval, sizeof(norm)))
		return -EFAULT;
	return dblp_job_norm(dsk, norm);
}

static int dblp_set_cc(struct dblp_sock *dsk, sockptr_t optval,
		       unsigned int optlen)
{
	const struct dblp_cc_ops *ops;
	char name[DBLP_CC_NAME_MAX] = {};

	if (!optlen || optlen > sizeof(name))
		return -EINVAL;
	if (copy_from_sockptr(name, optval, optlen))
		return -EFAULT;
	if (name[sizeof(name) - 1])
		return -EINVAL;
	ops = dblp_cc_find(name);
	if (!ops)
		return -ENOENT;

	lock_sock(&dsk->sk);
	if (dsk->state < DBLP_STATE_ESTABLISHED) {
		WRITE_ONCE(dsk->cc.ops, ops);
	} else if (dsk->cc.ops != ops) {
		trace_dblp_cc_switched(dsk, ops);
		dblp_cc_switch(&dsk->cc, ops, ktime_get_ns());
	}
	release_sock(&dsk->sk);
	return 0;
}

/* Cancel some pieces, as there may be thousands. Returns false when done */
static bool dblp_cancel_some(struct dblp_sock *dsk, struct dblp_tx_cancel *c)
{
	bool more = false;

	if (dsk->state != DBLP_STATE_ESTABLISHED)
		c->err = -ENOTCONN;
	else if (!(dsk->features & DBLP_FEATURE_CANCEL))
		c->err = -EOPNOTSUPP;
	else
		more = dblp_tx_cancel(dsk, c);
	dblp_flush(dsk);
	return more;
}

static int dblp_cancel(struct dblp_sock *dsk, sockptr_t optval,
		       unsigned int optlen)
{
	struct dblp_tx_cancel c = { .err = -ENOENT };
	struct sock *sk = &dsk->sk;

	if (optlen != sizeof(c.tag))
		return -EINVAL;
	if (copy_from_sockptr(&c.tag, optval, sizeof(c.tag)))
		return -EFAULT;
	lock_sock(sk);
	c.end = dsk->tx.next_id;
	c.next = list_empty(&dsk->tx.msgs) ? c.end :
		 list_first_entry(&dsk->tx.msgs, struct dblp_tx_msg, list)->id;
	while (dblp_cancel_some(dsk, &c)) {
		/* Let waiters for the socket and the backlog run */
		release_sock(sk);
		lock_sock(sk);
	}
	/* All queued pieces of the message may be settled */
	if (c.err == -ENOENT && dsk->tx.part && dsk->tx.part->msg.tag == c.tag)
		c.err = -EBUSY;
	release_sock(sk);
	return c.err;
}

/*
 * Options of level SOL_SOCKET that work: see the table in
 * Documentation/dblp.rst. All others are refused, including those that later
 * kernels add.
 */
static bool dblp_is_generic_opt(int name)
{
	switch (name) {
	case SO_BINDTODEVICE:
	case SO_BINDTOIFINDEX:
	case SO_BUF_LOCK:
	case SO_CNX_ADVICE:
	case SO_KEEPALIVE:
	case SO_LINGER:
	case SO_MARK:
	case SO_MAX_PACING_RATE:
	case SO_PRIORITY:
	case SO_RCVBUF:
	case SO_RCVBUFFORCE:
	case SO_RCVTIMEO_NEW:
	case SO_RCVTIMEO_OLD:
	case SO_RESERVE_MEM:
	case SO_REUSEADDR:
	case SO_SNDBUF:
	case SO_SNDBUFFORCE:
	case SO_SNDTIMEO_NEW:
	case SO_SNDTIMEO_OLD:
	case SO_TXREHASH:
		return true;
	default:
		return false;
	}
}

int dblp_setsockopt(struct socket *sock, int level, int name, sockptr_t optval,
		    unsigned int optlen)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	const struct dblp_u32_opt *opt = dblp_find_opt(name);

	if (level == SOL_SOCKET)
		return dblp_is_generic_opt(name) ?
		       sock_setsockopt(sock, level, name, optval, optlen) :
		       -EOPNOTSUPP;
	if (level != SOL_DBLP)
		return -ENOPROTOOPT;
	if (opt)
		return dblp_set_u32(dsk, name, opt, optval, optlen);
	if (name == DBLP_CONGESTION)
		return dblp_set_cc(dsk, optval, optlen);
	if (name == DBLP_JOB)
		return dblp_set_job(dsk, optval, optlen);
	if (name == DBLP_NORM)
		return dblp_set_norm(dsk, optval, optlen);
	if (name == DBLP_CANCEL)
		return dblp_cancel(dsk, optval, optlen);
	if (name == DBLP_AUTH_KEY)
		return dblp_auth_set(dsk, optval, optlen);
	return -ENOPROTOOPT;
}

static int dblp_give(char __user *optval, int __user *optlen, const void *val,
		     int len)
{
	if (put_user(len, optlen))
		return -EFAULT;
	return copy_to_user(optval, val, len) ? -EFAULT : 0;
}

static int dblp_get_u32(struct dblp_sock *dsk, const struct dblp_u32_opt *opt,
			char __user *optval, int __user *optlen, int len)
{
	u32 val;

	if (len < (int)sizeof(val))
		return -EINVAL;
	lock_sock(&dsk->sk);
	dblp_refresh_config(dsk);
	val = *(const u32 *)((const void *)dsk + opt->offset);
	release_sock(&dsk->sk);
	return dblp_give(optval, optlen, &val, sizeof(val));
}

static int dblp_get_job(struct dblp_sock *dsk, char __user *optval,
			int __user *optlen, int len)
{
	u32 id;

	if (len < (int)sizeof(id))
		return -EINVAL;
	lock_sock(&dsk->sk);
	id = dblp_job_id(dsk->conf.job);
	release_sock(&dsk->sk);
	return dblp_give(optval, optlen, &id, sizeof(id));
}

static int dblp_get_cc(struct dblp_sock *dsk, char __user *optval,
		       int __user *optlen, int len)
{
	char name[DBLP_CC_NAME_MAX] = {};

	strscpy(name, dblp_sock_cc_name(dsk), sizeof(name));
	return dblp_give(optval, optlen, name,
			 min_t(int, len, sizeof(name)));
}

static int dblp_get_info(struct dblp_sock *dsk, char __user *optval,
			 int __user *optlen, int len)
{
	struct dblp_info info;

	dblp_sock_info(dsk, &info);
	return dblp_give(optval, optlen, &info,
			 min_t(int, len, sizeof(info)));
}

/* Copy a loss map to the user: as many ranges as fit */
static int dblp_give_lossmap(char __user *optval, int __user *optlen, int len,
			     const struct dblp_lossmap *head,
			     const struct dblp_range *r)
{
	u32 n = (len - head->offset) / sizeof(*r);
	int size;

	n = min(n, head->ranges);
	size = head->offset + n * sizeof(*r);
	if (copy_to_user(optval, head, head->offset) ||
	    copy_to_user(optval + head->offset, r, n * sizeof(*r)))
		return -EFAULT;
	return put_user(size, optlen);
}

static int dblp_get_lossmap(struct dblp_sock *dsk, bool sent,
			    char __user *optval, int __user *optlen, int len)
{
	struct dblp_lossmap head = { .offset = sizeof(head) };
	struct dblp_range *r = NULL;
	struct dblp_rcvinfo info;
	struct dblp_tx_msg *msg;
	int err = -ENODATA;

	if (len < (int)sizeof(head))
		return -EINVAL;
	lock_sock(&dsk->sk);
	msg = dsk->tx.reported;
	if (sent && msg) {
		err = 0;
		head.tag = msg->tag;
		head.msg_id = msg->number;
		head.ranges = msg->ranges;
		if (head.ranges)
			r = dblp_tx_ranges(msg);
	} else if (!sent && dsk->rx.any_read) {
		err = 0;
		dblp_rx_join(&dsk->rx.last, &info);
		head.tag = dsk->rx.last_tag;
		head.msg_id = dsk->rx.last_number;
		head.ranges = info.ranges;
		if (head.ranges)
			r = dblp_rx_ranges(&dsk->rx.last, info.ranges);
	}
	release_sock(&dsk->sk);
	if (!err && head.ranges && !r)
		err = -ENOMEM;
	if (!err)
		err = dblp_give_lossmap(optval, optlen, len, &head, r);
	kvfree(r);
	return err;
}

int dblp_getsockopt(struct socket *sock, int level, int name,
		    char __user *optval, int __user *optlen)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	const struct dblp_u32_opt *opt = dblp_find_opt(name);
	int len;

	if (level != SOL_DBLP)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	if (opt)
		return dblp_get_u32(dsk, opt, optval, optlen, len);
	switch (name) {
	case DBLP_CONGESTION:
		return dblp_get_cc(dsk, optval, optlen, len);
	case DBLP_JOB:
		return dblp_get_job(dsk, optval, optlen, len);
	case DBLP_INFO:
		return dblp_get_info(dsk, optval, optlen, len);
	case DBLP_LOSSMAP:
	case DBLP_SENT_LOSSMAP:
		return dblp_get_lossmap(dsk, name == DBLP_SENT_LOSSMAP, optval,
					optlen, len);
	default:
		return -ENOPROTOOPT;
	}
}
