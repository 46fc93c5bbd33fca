// SPDX-License-Identifier: GPL-2.0-only
/*
 * The socket family: system calls except sendmsg(), recvmsg() and options.
 */
#include <linux/bpf-cgroup.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sockios.h>
#include <net/ipv6.h>
#include <net/rps.h>
#include <asm/ioctls.h>

#include "dblp.h"

static int dblp_check_addr(const struct sockaddr_unsized *uaddr, int len)
{
	const struct sockaddr_dblp *a = (const struct sockaddr_dblp *)uaddr;
	int type;

	if (len < (int)sizeof(a->sdblp_family))
		return -EINVAL;
	if (a->sdblp_family != AF_DBLP)
		return -EAFNOSUPPORT;
	/* A longer structure, such as sockaddr_storage, is valid */
	if (len < (int)sizeof(*a) || (a->sdblp_flowinfo & ~IPV6_FLOWLABEL_MASK))
		return -EINVAL;
	/* Link-local addresses need a scope, no others have one */
	type = ipv6_addr_type(&a->sdblp_addr);
	if (!(type & IPV6_ADDR_LINKLOCAL) != !a->sdblp_scope_id)
		return -EINVAL;
	if (type & IPV6_ADDR_MULTICAST)
		return -EADDRNOTAVAIL;
	/* Without IPv6 the wildcard address means the one of IPv4 */
	if (!ipv6_addr_v4mapped(&a->sdblp_addr))
		return ipv6_mod_enabled() || type == IPV6_ADDR_ANY ?
		       0 : -EAFNOSUPPORT;
	if (a->sdblp_flowinfo)
		return -EINVAL;
	return ipv4_is_multicast(a->sdblp_addr.s6_addr32[3]) ? -EADDRNOTAVAIL :
							       0;
}

/* Is the scope of a link-local address the device or the VRF of the socket? */
static bool dblp_scope_fits(struct sock *sk, const struct sockaddr_dblp *addr)
{
	return !addr->sdblp_scope_id ||
	       sk_dev_equal_l3scope(sk, addr->sdblp_scope_id);
}

static int dblp_bind_locked(struct dblp_sock *dsk,
			    const struct sockaddr_dblp *addr)
{
	if (!dblp_scope_fits(&dsk->sk, addr))
		return -EINVAL;
	return dblp_endpoint_bind(dsk, addr, &dblp_rcv_ops);
}

static int dblp_bind(struct socket *sock, struct sockaddr_unsized *uaddr,
		     int len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	int err;

	err = dblp_check_addr(uaddr, len);
	if (err)
		return err;
	lock_sock(&dsk->sk);
	err = -EINVAL;
	if (dsk->state == DBLP_STATE_CLOSED && !dsk->ep)
		err = dblp_bind_locked(dsk, (struct sockaddr_dblp *)uaddr);
	if (!err)
		dsk->bound = dsk->local;
	release_sock(&dsk->sk);
	return err;
}

/* Bind to any port, with the peer's IP version */
static int dblp_autobind(struct dblp_sock *dsk,
			 const struct sockaddr_dblp *peer)
{
	struct sockaddr_dblp any = { .sdblp_family = AF_DBLP };

	if (dsk->ep)
		return 0;
	if (peer && ipv6_addr_v4mapped(&peer->sdblp_addr))
		ipv6_addr_set_v4mapped(0, &any.sdblp_addr);
	return dblp_bind_locked(dsk, &any);
}

static bool dblp_addr_any(const struct in6_addr *a)
{
	return ipv6_addr_any(a) || (ipv6_addr_v4mapped(a) && !a->s6_addr32[3]);
}

/* Find a route, which determines the local address of the connection */
static int dblp_connect_route(struct dblp_sock *dsk)
{
	struct dblp_path *path = &dsk->path;
	struct sockaddr_dblp from = dsk->local;
	struct sock *sk = &dsk->sk;
	struct dst_entry *dst;

	if (dblp_addr_any(&from.sdblp_addr))
		memset(&from.sdblp_addr, 0, sizeof(from.sdblp_addr));
	dblp_path_init(path, &from, &dsk->peer, sk, sk->sk_bound_dev_if);
	dst = dblp_route(sock_net(sk), path);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	sk_dst_set(sk, dst);
	if (path->family == AF_INET)
		ipv6_addr_set_v4mapped(path->fl.u.ip4.saddr,
				       &dsk->local.sdblp_addr);
	else
		dsk->local.sdblp_addr = path->fl.u.ip6.saddr;
	dsk->local.sdblp_scope_id =
		ipv6_iface_scope_id(&dsk->local.sdblp_addr,
				    dsk->peer.sdblp_scope_id ?: path->ifindex);
	return 0;
}

static int dblp_connect_start(struct dblp_sock *dsk,
			      const struct sockaddr_dblp *peer)
{
	const struct in6_addr *local = &dsk->local.sdblp_addr;
	bool v4 = ipv6_addr_v4mapped(&peer->sdblp_addr);
	int err;

	if (!peer->sdblp_port || dblp_addr_any(&peer->sdblp_addr))
		return -EADDRNOTAVAIL;
	if (!dblp_scope_fits(&dsk->sk, peer) ||
	    (dsk->ep && !dblp_scope_fits(dsk->ep->usk, peer)))
		return -EINVAL;
	if (dsk->ep && !ipv6_addr_any(local) && ipv6_addr_v4mapped(local) != v4)
		return -EAFNOSUPPORT;
	err = dblp_autobind(dsk, peer);
	if (err)
		return err;

	dsk->peer = *peer;
	err = dblp_endpoint_connect(dsk, &dsk->peer) ?:
	      dblp_endpoint_spray(dsk);
	dsk->peer_key = (struct dblp_peer_key) {
		.addr = dsk->peer.sdblp_addr,
		.port = dsk->peer.sdblp_port,
		.zone = dsk->peer.sdblp_scope_id,
	};
	if (!err)
		err = dblp_connect_route(dsk);
	if (!err)
		err = dblp_handshake_start(dsk);
	if (err)
		dblp_conn_unstart(dsk);
	else
		WRITE_ONCE(dsk->sk.sk_shutdown, 0);
	return err;
}

static int dblp_connect(struct socket *sock, struct sockaddr_unsized *uaddr,
			int len, int flags)
{
	struct sock *sk = sock->sk;
	struct dblp_sock *dsk = dblp_sk(sk);
	int pending = -EALREADY;
	long timeo;
	int err;

	err = dblp_check_addr(uaddr, len);
	if (err)
		return err;
	lock_sock(sk);
	timeo = sock_sndtimeo(sk, flags & O_NONBLOCK);
	switch (dsk->state) {
	case DBLP_STATE_CLOSED:
		/* Report the error of the previous attempt first */
		err = sock_error(sk);
		if (err)
			goto out;
		/* A socket connects only once */
		err = dsk->tx.len_max ? -EISCONN :
		      dblp_connect_start(dsk, (struct sockaddr_dblp *)uaddr);
		if (err)
			goto out;
		sock->state = SS_CONNECTING;
		pending = -EINPROGRESS;
		break;
	case DBLP_STATE_INIT_SENT:
	case DBLP_STATE_COOKIE_SENT:
		break;
	default:
		/* Non-blocking connect: succeed once, then -EISCONN */
		if (sock->state != SS_CONNECTING)
			err = -EISCONN;
	}
	if (err)
		goto out;
	err = dblp_wait_connected(dsk, timeo);
	if (err == -EAGAIN)
		err = pending;
	if (!err)
		sock->state = SS_CONNECTED;
out:
	/* The failed attempt is reported: poll() must not report it again */
	if (err && dsk->state == DBLP_STATE_CLOSED && !dsk->tx.len_max)
		WRITE_ONCE(sk->sk_shutdown, 0);
	release_sock(sk);
	return err;
}

/* Bind a socket and its ports. On failure, undo an automatic bind */
static int dblp_listen_start(struct dblp_sock *dsk)
{
	bool bound = dsk->ep;
	int err;

	err = dblp_cookies_prepare(dsk->dn) ?: dblp_autobind(dsk, NULL);
	if (err)
		return err;
	err = dblp_endpoint_spray(dsk);
	if (err && !bound)
		dblp_conn_unstart(dsk);
	return err;
}

static int dblp_listen(struct socket *sock, int backlog)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	int err = -EINVAL;

	lock_sock(sk);
	if (dsk->state == DBLP_STATE_LISTEN)
		err = 0;
	else if (dsk->state == DBLP_STATE_CLOSED && !dsk->tx.len_max)
		err = dblp_listen_start(dsk);
	if (err)
		goto out;

	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	if (dsk->state == DBLP_STATE_LISTEN)
		goto out;
	err = dblp_endpoint_listen(dsk);
	if (err)
		goto out;
	WRITE_ONCE(sk->sk_shutdown, 0);
	dblp_set_state(dsk, DBLP_STATE_LISTEN, 0);
	sk->sk_state = TCP_LISTEN;
out:
	release_sock(sk);
	return err;
}

static int dblp_wait_child(struct dblp_sock *dsk, long timeo)
{
	struct sock *sk = &dsk->sk;
	DEFINE_WAIT(wait);
	int err = 0;

	for (;;) {
		prepare_to_wait_exclusive(sk_sleep(sk), &wait,
					  TASK_INTERRUPTIBLE);
		if (dsk->state != DBLP_STATE_LISTEN)
			err = -EINVAL;
		else if (!list_empty(&dsk->accept))
			break;
		else if (!timeo)
			err = -EAGAIN;
		else if (signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err)
			break;
		release_sock(sk);
		timeo = schedule_timeout(timeo);
		lock_sock(sk);
	}
	finish_wait(sk_sleep(sk), &wait);
	return err;
}

int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg)
{
	struct sock *sk = sock->sk;
	struct dblp_sock *dsk = dblp_sk(sk);
	struct dblp_sock *child;
	int err;

	lock_sock(sk);
	err = dblp_wait_child(dsk, sock_rcvtimeo(sk, arg->flags & O_NONBLOCK));
	if (err)
		goto out;
	child = list_first_entry(&dsk->accept, struct dblp_sock, accept);
	list_del_init(&child->accept);
	sk_acceptq_removed(sk);

	lock_sock_nested(&child->sk, SINGLE_DEPTH_NESTING);
	dblp_accept_memory(&child->sk);
	dblp_sock_graft(&child->sk, newsock);
	sock_rps_record_flow(&child->sk);
	release_sock(&child->sk);
	newsock->state = SS_CONNECTED;
out:
	release_sock(sk);
	return err;
}

static int dblp_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	int err = sizeof(struct sockaddr_dblp);

	lock_sock(&dsk->sk);
	if (peer && dsk->state < DBLP_STATE_ESTABLISHED)
		err = -ENOTCONN;
	else
		memcpy(uaddr, peer ? &dsk->peer : &dsk->local,
		       sizeof(struct sockaddr_dblp));
	((struct sockaddr_dblp *)uaddr)->sdblp_family = AF_DBLP;
	release_sock(&dsk->sk);
	return err;
}

static int dblp_shutdown(struct socket *sock, int how)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	int err = -ENOTCONN;

	how++;
	if ((how & ~SHUTDOWN_MASK) || !how)
		return -EINVAL;
	lock_sock(sk);
	if (dsk->state == DBLP_STATE_LISTEN && how & RCV_SHUTDOWN) {
		dblp_stop_listening(dsk);
		err = 0;
		goto out;
	}
	/* In either direction, as with TCP */
	if (dblp_connecting(dsk)) {
		dblp_done(dsk, ECONNRESET);
		err = 0;
	}
	if (dsk->state != DBLP_STATE_ESTABLISHED)
		goto out;
	err = 0;
	/* Set both bits before waking, so that a waiter sees them together */
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
	if (how & SEND_SHUTDOWN)
		dblp_shut_sending(dsk);
	else
		sk->sk_state_change(sk);
out:
	release_sock(sk);
	return err;
}

static __poll_t dblp_poll(struct file *file, struct socket *sock,
			  poll_table *wait)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	u8 shutdown, state;
	__poll_t mask = 0;

	sock_poll_wait(file, sock, wait);
	state = READ_ONCE(dsk->state);
	if (state == DBLP_STATE_LISTEN)
		return list_empty(&dsk->accept) ? 0 :
		       EPOLLIN | EPOLLRDNORM;

	if (READ_ONCE(sk->sk_err) || !list_empty(&dsk->tx.reports))
		mask |= EPOLLERR;
	shutdown = READ_ONCE(sk->sk_shutdown);
	if (dblp_rx_ended(dsk))
		shutdown |= RCV_SHUTDOWN;
	if (shutdown == SHUTDOWN_MASK || state == DBLP_STATE_CLOSED)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (dblp_readable(dsk))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!dblp_writable(dsk))
		dblp_no_space(dsk);
	if (!dblp_connecting(dsk) && (dblp_writable(dsk) ||
				      (shutdown & SEND_SHUTDOWN)))
		mask |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return mask;
}

/* Bytes of the next message to read, or in placement mode, bytes to place */
static u64 dblp_inq(struct dblp_sock *dsk)
{
	const struct list_head *next = &dsk->rx.taken;

	if (dsk->opt.placement)
		return dblp_place_bytes(dsk);
	if (!dsk->rx.n_readable)
		return 0;
	/* A message that a reader has taken is the next until it is read */
	if (list_empty(next))
		next = &dsk->rx.ready;
	return list_first_entry(next, struct dblp_rx_msg, list)->total;
}

static int dblp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	u64 bytes = 0;

	lock_sock(&dsk->sk);
	switch (cmd) {
	case SIOCINQ:
		bytes = dblp_inq(dsk);
		break;
	case SIOCOUTQ:
		bytes = dsk->tx.bytes;
		break;
	case SIOCOUTQNSD:
		bytes = dblp_tx_never_sent(dsk);
		break;
	default:
		release_sock(&dsk->sk);
		return -ENOIOCTLCMD;
	}
	release_sock(&dsk->sk);
	return put_user((int)min_t(u64, bytes, INT_MAX), (int __user *)arg);
}

static int dblp_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	if (!sk->sk_kern_sock)
		BPF_CGROUP_RUN_PROG_INET_SOCK_RELEASE(sk);
	sock_hold(sk);
	lock_sock(sk);
	dblp_close(dblp_sk(sk));
	sock->sk = NULL;
	release_sock(sk);
	sock_put(sk);
	return 0;
}

/*
 * Refuse splice(), because a pipe has no message boundaries: the bytes that fit
 * would become a message, and the rest be lost. Programs use read() on EINVAL.
 */
static ssize_t dblp_splice_read(struct socket *sock, loff_t *ppos,
				struct pipe_inode_info *pipe, size_t len,
				unsigned int flags)
{
	return -EINVAL;
}

const struct proto_ops dblp_proto_ops = {
	.family		= PF_DBLP,
	.owner		= THIS_MODULE,
	.release	= dblp_release,
	.bind		= dblp_bind,
	.connect	= dblp_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= dblp_accept_op,
	.getname	= dblp_getname,
	.poll		= dblp_poll,
	.ioctl		= dblp_ioctl,
	.listen		= dblp_listen,
	.shutdown	= dblp_shutdown,
	.setsockopt	= dblp_setsockopt,
	.getsockopt	= dblp_getsockopt,
	.sendmsg	= dblp_sendmsg,
	.recvmsg	= dblp_recvmsg,
	.mmap		= sock_no_mmap,
	.splice_read	= dblp_splice_read,
	DBLP_NO_SENDPAGE
};
