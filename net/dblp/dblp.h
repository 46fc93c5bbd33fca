/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_DBLP: the private header.
 *
 * Reading order: uapi/linux/dblp.h (the user API), core/wire.h (the packets),
 * this file, net.h, sock.h and msg.h (the structures) and LAYERS (the order of
 * calls, and the header of each layer). Then af_dblp.c from top to bottom,
 * send.c and recv.c (system calls), conn.c (the states of a connection),
 * input.c, addr.c, frames.c, output.c, packet.c and sent.c (the way of a
 * packet), rx_data.c, rx.c, rx_close.c, tx.c and tx_close.c (the life of a
 * message), timer.c and timeout.c. core/ uses neither sockets nor the kernel,
 * cc/ has the congestion controls, netlink/ the control plane.
 *
 * Glossary
 * ========
 *
 * =========== =================================================================
 * message     unit that one sendmsg() sends and the peer receives
 * piece       part of a message that is too long to be sent whole (msg.c). A
 *             piece is sent like a message, with its own message ID
 * segment     part of a message that one packet carries; all segments of a
 *             message but the last have the same size
 * packet      one UDP payload: headers, control frames, and at most one segment
 *             or zero map
 * train       packets of one sender in one buffer, of one size except the last
 *             (GSO, GRO); a single packet is a train of one
 * run         consecutive packets of a received train that are processed
 *             together, with consecutive segments: &struct dblp_run. Their
 *             segments in a queued buffer: &struct dblp_skb_run
 * row         consecutive segments, or their packets, at equal distances in
 *             memory, which are copied or recorded together (usercopy.c)
 * slot        position of a segment in the sending order of its message, which
 *             is also its place in memory. The sent ring has "entries"
 * stretch     aligned group of segments that one zero map or LOSSMAP frame
 *             covers
 * settled     state of an outgoing message whose outcome is known, with its
 *             loss map (tx.c)
 * =========== =================================================================
 *
 * Locking and lifetime
 * ====================
 *
 * *The socket lock.* The socket lock protects all of struct dblp_sock, except
 * fields whose description says otherwise. Process context takes it with
 * lock_sock(). Packets and timers run in softirq context: they take the
 * spinlock with bh_lock_sock() and check whether a process owns the socket. If
 * so, a packet is added to the backlog, and a timer sets a bit in @deferred;
 * release_sock() handles both before it gives up ownership. So each connection
 * has one lock, which is never held while user memory is accessed, and packets
 * never wait for it. Functions that are called from other files assert the lock
 * by sock_owned_by_me(). selftests/lint lists the exceptions: functions for new
 * and dying sockets, which no other code can reach, and the conditions of
 * poll() and of waits, which follow no pointer to protected data.
 *
 * *Order.* A listener's lock is taken before its child's, with
 * SINGLE_DEPTH_NESTING, while the child is made, accepted or dropped. The
 * spinlocks of struct dblp_net nest inside the socket lock, and no lock is
 * taken under them. The mutex of the configuration comes before the lock of any
 * socket, because both are held while a socket is put in a phase or job. The
 * mutex under which ports are added to endpoints of a namespace comes after the
 * socket lock. Walks over sockets hold no lock but that of one socket, so that
 * no other user waits. Functions that need one of these assert it by
 * lockdep_assert_held().
 *
 * *Finding a socket.* Packets find connections in @conns, by the connection ID
 * that they are sent to. Resets also find them in @peers, by the connection ID
 * of the other end. Netlink finds sockets in @socks, by number. All three are
 * walked under RCU and hold no reference: a lookup takes one with
 * refcount_inc_not_zero(), and sockets are freed after a grace period
 * (SOCK_RCU_FREE). A listener is found through its endpoint in the same way.
 *
 * *References to a socket.* (1) The initial reference lasts from
 * sock_init_data() to dblp_release(). If messages are not acknowledged by then,
 * it lasts to dblp_done(), which dblp_orphan_check() ensures. The initial
 * reference of a child that is not accepted yet belongs to its listener's
 * queue. (2) Each lookup holds a reference while the socket is used. (3)
 * Packets in lower queues, and the tasklet that is scheduled when they have
 * left, hold one through sk_wmem_alloc. The timer holds none: it may expire
 * until dblp_destruct() cancels it, and finds state CLOSED at worst.
 *
 * *Endpoints.* A struct dblp_endpoint is one bound UDP socket, with the UDP
 * sockets of further ports that are used for sending only (DBLP_SPRAY). A
 * listener and the connections that it accepted share it, and each of these
 * sockets holds a reference. A work item releases the UDP socket after the last
 * reference, because that is not possible in softirq context.
 *
 * *Messages.* A struct dblp_tx_msg belongs to the lists of one socket. A struct
 * dblp_rx_msg is reference counted, without atomics because the socket lock
 * protects it. References are held by the list it is on, by each control frame
 * about it that the peer has not acknowledged, and by the reader that copies
 * it.
 *
 * *Bytes.* The bytes that a user sends are copied once, into the memory of
 * their message (txbuf.c). Packets refer to that memory and keep it after the
 * message is freed. It does not change while packets refer to it: segments
 * never change, and headers are written before the first packet refers to them.
 *
 * Received data stays in the buffers of IP until it is copied to the user. A
 * buffer can have many packets (input.c). It is on the queue of one message,
 * and clones of it are on the queues of others. Each of these messages is
 * charged for all of the buffer and all of the pages that it refers to;
 * segments too small for that are copied (rx_data.c). A process of this machine
 * may share the memory of a buffer that it has sent, so headers in such memory
 * are copied before they are validated.
 *
 * *Memory.* Memory is charged before it is allocated, and the charge equals the
 * memory held. Memory for sending is charged to sk_wmem_queued, memory for
 * receiving to sk_rmem_alloc. Both are charged by sk_mem_charge() too, which
 * counts them in the limit of all sockets and in the memory cgroup. If a charge
 * is refused, the caller waits, drops the packet, or does with less, but never
 * allocates. Memory needed later to release an object is charged with that
 * object. A charge is given back where the memory is freed: see memory.c and
 * dblp_tx_free(). Links and reports of a message are part of the message, which
 * saves charges.
 *
 * Small memory of fixed size that each connection has is not charged: &struct
 * dblp_sock, the first block of its sent ring, its ports and &struct dblp_auth.
 * selftests/system/charged.c compares charges with allocations.
 *
 * *Objects used without the lock.* A call releases the lock while it copies
 * from or to the user, or waits. Other calls may then change everything except
 * the object that the call is using:
 *
 * ============================= =============== ==============================
 * object in use                 protected by    possible changes meanwhile
 * ============================= =============== ==============================
 * received message, or segments @rx.reader      Other readers wait. Mode,
 * of it, copied to the user                     budget and fill may change.
 *                                               Segments may arrive. It may be
 *                                               cancelled or purged; otherwise
 *                                               it is put back to its place
 * its outcome, or a report, as  no list has it  None; it is not put back
 * control messages
 * message or piece, copied from @tx.busy        Other senders wait. Options
 * the user                                      DBLP_ELEMENT, DBLP_PARTIAL_SEND
 *                                               fail with EBUSY. State and
 *                                               budget are checked again before
 *                                               it is queued
 * message with further pieces   @tx.part        The end of the connection frees
 *                                               it: looked up again
 * message being cancelled       its number      Other messages are queued and
 *                                               settled: looked up again, by ID
 * job, phase                    a reference, or It cannot be deleted
 *                               the mutex
 * ============================= =============== ==============================
 *
 * Other waits, such as those in connect(), accept() and close(), use no such
 * object, and read the state again afterwards. No call keeps a pointer to a
 * message over an unlock without one of these protections.
 *
 * *From UDP.* UDP queues a packet, and its data_ready callback takes it out
 * again, in the same softirq, or on another CPU that is in the callback
 * already. The locks of the queue are not held when the socket lock is taken.
 *
 * *Network namespaces.* User sockets hold a reference to their namespace; the
 * UDP sockets hold none. Only the work item of an endpoint outlives the sockets
 * that use it, and it is flushed when the namespace is destroyed.
 */
#ifndef _NET_DBLP_H
#define _NET_DBLP_H

#include "conn.h"
#include "input.h"
#include "msg.h"
#include "net.h"
#include "packet.h"
#include "sock.h"
#include "syscall.h"

#endif /* _NET_DBLP_H */
