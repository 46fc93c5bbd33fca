/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_DBLP: the private header.
 *
 * Reading order: uapi/linux/dblp.h (what users see), core/wire.h (what the peer
 * sees), this file, net.h, sock.h and msg.h (the structures), LAYERS (what
 * calls what), then af_dblp.c from top to bottom, send.c and recv.c (the users'
 * calls), conn.c (the states of a connection), input.c, addr.c, frames.c, output.c,
 * packet.c and sent.c (the way of a packet), rx_data.c, rx.c, tx.c and
 * tx_close.c (the life of a message), timer.c and timeout.c. core/ is free of
 * sockets and of the kernel, cc/ has the congestion controls, netlink/ the
 * control plane.
 *
 * Locking and lifetime
 * ====================
 *
 * *The socket lock.* All of struct dblp_sock is under the socket lock, unless
 * its field says otherwise. Process context takes it with lock_sock(). Packets
 * and timers come in softirq context, take the spinlock with bh_lock_sock() and
 * check whether a process owns the socket: if so, a packet goes to the backlog,
 * a timer sets a bit in @deferred, and release_sock() handles both before it
 * gives up ownership. So there is one lock per connection, it is never held
 * while user memory is touched, and a packet never waits. Functions that are
 * called from other files assert it by sock_owned_by_me(). The exceptions are
 * in selftests/lint: functions for new and dying sockets, which nothing else
 * can reach, and the conditions of poll() and of waits, which follow no pointer
 * to what the lock protects.
 *
 * *Order.* Listener before its child (a child's lock is taken under its
 * listener's, with SINGLE_DEPTH_NESTING, while it is being made, accepted or
 * dropped). The spinlocks of struct dblp_net nest inside the socket lock and
 * hold nothing else. The mutex of its configuration comes before the lock of
 * any socket, as a socket is put in a phase or job with both held; that under
 * which ports are added to endpoints of a namespace comes after it. Walks over
 * sockets hold no lock but that of one socket, so that no other user waits.
 * Functions that need one of these assert it by lockdep_assert_held().
 *
 * *Finding a socket.* Packets find connections in @conns (by the connection ID
 * they are sent to), resets also in @peers (by the connection ID of the other
 * end), netlink finds sockets in @socks (by number). All three are walked under
 * RCU and hold no reference: a lookup takes one with refcount_inc_not_zero(),
 * and sockets are freed after a grace period (SOCK_RCU_FREE). A listener is
 * found through its endpoint in the same way.
 *
 * *References to a socket.* (1) The initial one: from sock_init_data() until
 * dblp_release(), or, if messages are still to be acknowledged then, until
 * dblp_done(), which dblp_orphan_look() ensures; that of a child not accepted
 * yet belongs to its listener's queue. (2) One for each lookup, while it is
 * used. (3) Packets in queues below us, and the tasklet that is scheduled when
 * they leave, through sk_wmem_alloc. The timer has none: it may expire until
 * dblp_destruct() cancels it, and at worst finds state CLOSED.
 *
 * *Endpoints.* A struct dblp_endpoint is one bound UDP socket, and those of
 * further ports that are only sent from (DBLP_SPRAY), shared by a listener and
 * the connections it accepted. Every socket that uses it holds a
 * reference. A UDP socket cannot be released in softirq context, so the last
 * reference leaves that to a work item.
 *
 * *Messages.* A struct dblp_tx_msg belongs to the socket's lists alone. A
 * struct dblp_rx_msg is reference counted, without atomics as that is under the
 * socket lock too: one for the list it is on, one for each control frame about
 * it that the peer has not acknowledged, one for the reader that copies it.
 *
 * *Bytes.* What a user sends is copied once, into the memory of its message
 * (txbuf.c). Packets refer to it, and keep it when the message goes. It does
 * not change under them: segments never do, and headers are written there
 * before the first packet refers to them. Received data stays in the buffers
 * that came from IP until it is copied to the user. A buffer can have many
 * packets (input.c): it is on the queue of one message, and clones of it are on
 * those of others. Each of these messages is charged for all of it, and for all
 * of the pages that it refers to; segments too small for that are copied
 * (rx_data.c). Buffers may share memory with their sender, if that is a process
 * of this machine: headers in such memory are copied before they are validated.
 *
 * *Memory.* Charge before you allocate; charged is what is held. What a user
 * sends is charged to sk_wmem_queued, what a peer makes us hold to
 * sk_rmem_alloc, and both by sk_mem_charge(), so that the limit of all sockets
 * and the memory cgroup see it. If a charge is refused, wait, drop the packet,
 * or do with less, but never allocate; memory needed later to release an object
 * is charged with that object. A charge is given back where the memory is
 * freed: see memory.c, and dblp_tx_free(). The best charge is none: links and
 * reports of a message are in the message. What each connection has regardless
 * of peer and user is small and of a fixed size, and not charged: &struct
 * dblp_sock, the first block of its ring, its ports, &struct dblp_auth.
 * selftests/system/charged.c compares.
 *
 * *In hand.* A call lets go of the lock where it copies from or to the user, or
 * waits, and others may change all but what it has in hand:
 *
 * ============================= =============== ==============================
 * in hand                       kept by         meanwhile
 * ============================= =============== ==============================
 * received message, or segments @rx_reader      readers wait. Mode, budget and
 * of it, copied to the user                     fill may change, the rest of it
 *                                               may arrive, be cancelled or be
 *                                               purged: it is put back to where
 *                                               it was, if it is still wanted
 * its outcome, or a report, as  no list         nothing: it is not put back
 * control messages
 * message or piece, copied from @tx_busy        senders wait, DBLP_ELEMENT and
 * the user                                      DBLP_PARTIAL_SEND are EBUSY.
 *                                               State and budget are looked at
 *                                               again before it is queued
 * message with pieces to come   @tx_part        the end of the connection frees
 *                                               it: looked up again
 * message being cancelled       its number      others are queued and settled:
 *                                               looked up again, by ID
 * job, phase                    a reference, or it cannot be deleted
 *                               the mutex
 * ============================= =============== ==============================
 *
 * Other waits, as those in connect(), accept() and close(), have nothing in
 * hand, and look at the state anew. No call keeps a pointer to a message over
 * an unlock without one of these.
 *
 * *From UDP.* A packet is queued by UDP and taken out again in its data_ready
 * callback, in the same softirq, or by another CPU that is doing so already.
 * The queue's locks are not held when the socket lock is taken.
 *
 * *Network namespaces.* User sockets hold their namespace. The UDP sockets do
 * not, but only the work item of an endpoint outlives its users, and that is
 * flushed when the namespace goes.
 */
#ifndef _NET_DBLP_H
#define _NET_DBLP_H

#include <linux/workqueue.h>

#include "core/closing.h"
#include "core/segmap.h"
#include "msg.h"
#include "net.h"
#include "packet.h"
#include "sock.h"

/**
 * struct dblp_echo - content of a COOKIE-ECHO
 * @client_cid: connection ID of the client
 * @cookie: contains our connection ID
 * @params: parameters of the client
 * @ports: that each end sends from
 * @time: that the COOKIE-ACK echoes
 */
struct dblp_echo {
	u64			client_cid;
	struct dblp_cookie	cookie;
	struct dblp_params	params;
	u32			ports;
	u64			time;
};

/* af_dblp.c */
extern const struct proto_ops dblp_proto_ops;

int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg);

/* sockopt.c */
int dblp_setsockopt(struct socket *sock, int level, int name, sockptr_t optval,
		    unsigned int optlen);
int dblp_getsockopt(struct socket *sock, int level, int name,
		    char __user *optval, int __user *optlen);

/* send.c: sendmsg() */
int dblp_sendmsg(struct socket *sock, struct msghdr *m, size_t len);

/* recv.c: recvmsg() */
int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size, int flags);
u64 dblp_place_bytes(struct dblp_sock *dsk);

/* recv_copy.c: common to both receive modes */
bool dblp_rx_next_zeros(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb, u32 *at, u32 *offset,
			u32 *bytes);
u32 dblp_rx_zeros_bytes(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb);
u32 dblp_rx_take_zeros(struct sk_buff *skb, u32 most);
void dblp_rx_cursor_init(struct dblp_rx_cursor *c, const struct iov_iter *to);
int dblp_rx_copy(const struct dblp_rx_msg *msg, struct sk_buff_head *skbs,
		 struct sk_buff *after, u32 base, struct dblp_rx_cursor *c);
int dblp_rx_fill_holes(const struct dblp_rx_msg *msg, struct dblp_rx_cursor *c);
size_t dblp_cmsg_len(const struct msghdr *m, size_t size);
void dblp_put_ranges(struct msghdr *m, struct dblp_range *r, u32 ranges);
void dblp_put_rcvinfo(struct msghdr *m, const struct list_head *pieces);
void dblp_copy_begin(struct dblp_sock *dsk);
void dblp_copy_end(struct dblp_sock *dsk);
void dblp_rx_release(struct dblp_sock *dsk);
int dblp_wait_readable(struct dblp_sock *dsk, long *timeo, bool keep,
		       const struct dblp_ahead *ahead);
void dblp_rx_was_read(struct dblp_sock *dsk, struct list_head *pieces);

/* recv_ahead.c: copying what has come of a message that is not complete */
void dblp_ahead_init(struct dblp_ahead *a, const struct msghdr *m, bool may);
int dblp_ahead_wait(struct dblp_sock *dsk, struct dblp_ahead *a, long *timeo);
void dblp_ahead_end(struct dblp_sock *dsk, struct dblp_ahead *a);

/* timeout.c: timeouts handled */
void dblp_release_cb(struct sock *sk);

/* input.c: packets in */
extern const struct dblp_endpoint_ops dblp_rcv_ops;

int dblp_backlog_rcv(struct sock *sk, struct sk_buff *skb);

/* handshake.c */
int dblp_handshake_start(struct dblp_sock *dsk);
void dblp_handshake_repeat(struct dblp_sock *dsk, u64 now);
enum dblp_mib_item dblp_handshake_init(struct dblp_endpoint *ep,
				       const struct dblp_run *run);
void dblp_handshake_version(struct dblp_endpoint *ep,
			    const struct dblp_run *run);
enum dblp_mib_item dblp_handshake_echo(struct dblp_endpoint *ep,
				       const struct dblp_run *run,
				       struct dblp_sock **dsk);
enum dblp_mib_item dblp_rcv_init_ack(struct dblp_sock *dsk,
				     struct dblp_run *run);
enum dblp_mib_item dblp_rcv_cookie_echo(struct dblp_sock *dsk,
					struct dblp_run *run);
enum dblp_mib_item dblp_rcv_cookie_ack(struct dblp_sock *dsk,
				       struct dblp_run *run);
enum dblp_mib_item dblp_rcv_version(struct dblp_sock *dsk,
				    struct dblp_run *run);
void dblp_rst_stranger(struct dblp_endpoint *ep, const struct dblp_run *run);
int dblp_cookies_prepare(struct dblp_net *dn);
void dblp_cookies_exit(struct dblp_net *dn);

/* sock.c: socket objects */
struct sock *dblp_sock_alloc(struct net *net, struct proto *prot, int kern);
struct dblp_sock *dblp_sock_clone(struct dblp_sock *listener);
void dblp_accept_memory(struct sock *sk);
void dblp_sock_info(struct dblp_sock *dsk, struct dblp_info *info);
void dblp_sock_addrs(struct dblp_sock *dsk, struct sockaddr_dblp *local,
		     struct sockaddr_dblp *peer);
const char *dblp_sock_cc_name(struct dblp_sock *dsk);
void dblp_sock_set_share(struct dblp_sock *dsk, int option, u32 ppm);

/* conn.c: the states of a connection */
void dblp_conn_established(struct dblp_sock *dsk, const struct dblp_params *p,
			   u64 rtt);
int dblp_conn_start(struct dblp_sock *dsk, gfp_t gfp);
int dblp_wait_connected(struct dblp_sock *dsk, long timeo);
void dblp_set_state(struct dblp_sock *dsk, u8 state, int err);
void dblp_done(struct dblp_sock *dsk, int err);
int dblp_rst_errno(const struct dblp_sock *dsk, u32 reason);
void dblp_peer_gone(struct dblp_sock *dsk, u32 reason);
void dblp_handshake_reset(struct dblp_sock *dsk);
void dblp_conn_unstart(struct dblp_sock *dsk);
void dblp_abort(struct dblp_sock *dsk, enum dblp_rst_reason reason, int err);
void dblp_flush(struct dblp_sock *dsk);
void dblp_close(struct dblp_sock *dsk);
void dblp_stop_listening(struct dblp_sock *dsk);
void dblp_shut_sending(struct dblp_sock *dsk);
void dblp_check_closing(struct dblp_sock *dsk);
void dblp_orphan_look(struct dblp_sock *dsk, u64 now);

/* output.c: what is sent, and when */
void dblp_push(struct dblp_sock *dsk);
void dblp_probe(struct dblp_sock *dsk, u64 now);

/* frames.c: frames that are not retransmitted, and received frames */
void dblp_ack_done(struct dblp_sock *dsk, u64 now);
u8 *dblp_put_ecn(struct dblp_sock *dsk, u8 *p, const u8 *end);
u8 *dblp_put_ack_frames(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now);
u8 *dblp_put_meta(const struct dblp_tx_msg *msg, u8 *p, const u8 *end);
void dblp_ranges_free(struct dblp_sock *dsk);
void dblp_note_received(struct dblp_sock *dsk, const struct dblp_run *run);
enum dblp_wire_error dblp_check_frames(struct dblp_sock *dsk,
				       const struct dblp_run *run,
				       struct dblp_frame *f,
				       struct dblp_frame *meta);
int dblp_apply_frames(struct dblp_sock *dsk, const struct dblp_run *run,
		      struct dblp_frame *f);

/* sent.c: packets sent */
u32 dblp_ring_truesize(const struct dblp_sock *dsk);
int dblp_ring_init(struct dblp_sock *dsk, gfp_t gfp);
void dblp_ring_free(struct dblp_sock *dsk);
void dblp_ring_idle(struct dblp_sock *dsk);
void dblp_ring_shrink(struct dblp_sock *dsk);
u32 dblp_ring_room(struct dblp_sock *dsk, u32 want);
int dblp_sent_acked(struct dblp_sock *dsk, const struct dblp_frame *f, u64 now);
void dblp_cap_rate(struct dblp_sock *dsk);
void dblp_loss_expired(struct dblp_sock *dsk, u64 now);
bool dblp_lose_size_probes(struct dblp_sock *dsk);
void dblp_lose_larger(struct dblp_sock *dsk, u32 mss);
void dblp_lose_oldest(struct dblp_sock *dsk, u32 n);

/* memory.c: memory accounting */
bool dblp_wmem_schedule(struct sock *sk, int size);
int dblp_tx_charge(struct dblp_sock *dsk, u32 size);
void dblp_tx_uncharge(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 size);
void dblp_tx_leave_buffer(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
bool dblp_rmem_schedule(struct sock *sk, int size);
void dblp_rmem_charge(struct sock *sk, int size);
void dblp_rmem_uncharge(struct sock *sk, int size);
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id);
void dblp_tx_refused(struct dblp_sock *dsk);
bool dblp_writable(const struct dblp_sock *dsk);
void dblp_wake_writers(struct dblp_sock *dsk);
void dblp_no_space(struct dblp_sock *dsk);
void dblp_write_space(struct dblp_sock *dsk);

/* tsq.c: small queues */
bool dblp_tsq_full(struct dblp_sock *dsk, u32 mss);
void dblp_tsq_init(struct dblp_sock *dsk);

/* timer.c: timeouts set */
void dblp_defer(struct dblp_sock *dsk, enum dblp_deferred what);
void dblp_timer_init(struct dblp_sock *dsk);
void dblp_timer_update(struct dblp_sock *dsk);
void dblp_work_soon(struct dblp_sock *dsk);
void dblp_keepalive_set(struct dblp_sock *dsk);
u64 dblp_last_heard(const struct dblp_sock *dsk);
u64 dblp_patience(const struct dblp_sock *dsk);
void dblp_keepalive(struct sock *sk, int on);
void dblp_keepalive_tune(struct dblp_sock *dsk, u32 ms);

#endif /* _NET_DBLP_H */
