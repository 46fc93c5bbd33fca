/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_DBLP: the private header.
 *
 * Reading order: uapi/linux/dblp.h (what users see), core/wire.h (what the peer
 * sees), this file and msg.h (the messages), LAYERS (what calls what), then af_dblp.c
 * from top to bottom, send.c and recv.c (the users' calls), conn.c (the states of a
 * connection), input.c, frames.c, output.c, packet.c and sent.c (the way of a packet),
 * rx_data.c, rx.c, tx.c and tx_close.c (the life of a message), timer.c and timeout.c.
 * core/ has what is free of sockets and of the kernel, cc/ the congestion controls,
 * netlink/ the control plane.
 *
 * Locking and lifetime
 * ====================
 *
 * *The socket lock.* All of struct dblp_sock is under the socket lock, unless
 * its field says otherwise. Process context takes it with lock_sock(). Packets
 * and timers come in softirq context, take the spinlock with bh_lock_sock() and
 * look whether a process owns the socket: a packet then goes to the backlog,
 * a timer sets a bit in @deferred, and release_sock() attends to both before
 * the owner is gone. So there is one lock a connection, it is never held while
 * user memory is touched, and a packet never waits. The functions by which one
 * file enters another say so by sock_owned_by_me(): with lockdep, who calls them
 * without the lock is told. The exceptions are in selftests/lint: what new and
 * dying sockets go through, which nobody else has, and what poll() asks, or who
 * is about to sleep. That follows no pointer to what the lock protects.
 *
 * *Order.* Listener before its child (a child's lock is taken under its
 * listener's, with SINGLE_DEPTH_NESTING, while it is being made, accepted or
 * dropped). The spinlocks of struct dblp_net nest inside the socket lock
 * and hold nothing else. The mutex of its configuration comes before the lock of
 * any socket, as whoever changes phases walks over the sockets with it. What needs
 * a lock of these asserts it by lockdep_assert_held().
 *
 * *Finding a socket.* Packets find connections in @conns (by the connection ID
 * they are sent to), resets also in @peers (by the connection ID of the other
 * end), netlink finds sockets in @socks (by number). All three are walked under
 * RCU and hold no reference: who finds a socket takes one with
 * refcount_inc_not_zero(), and sockets are freed after a grace period
 * (SOCK_RCU_FREE). A listener hangs off its endpoint in the same way.
 *
 * *References to a socket.* (1) Its life: from sock_init_data() until
 * dblp_release(), or, when messages are still to be acknowledged then, until
 * dblp_done(), which dblp_orphan_look() sees to; a child that nobody has accepted yet owes
 * this one to its listener's queue. (2) Whoever found it, while he holds it. (3)
 * Packets in queues below us, through sk_wmem_alloc. The timer has none: it may expire
 * until dblp_destruct() cancels it, and finds a socket in state CLOSED at worst.
 *
 * *Endpoints.* A struct dblp_endpoint is one bound UDP socket, shared by a
 * listener and the connections it accepted. Every socket that uses it holds a
 * reference. A UDP socket cannot be released in softirq context, so the last
 * reference leaves that to a work item.
 *
 * *Messages.* A struct dblp_tx_msg belongs to the socket's lists alone. A
 * struct dblp_rx_msg is reference counted, without atomics as that is under the
 * socket lock too: one for the list it is on, one for each control frame that
 * still has to tell the peer about it, one for the reader who copies it.
 *
 * *Bytes.* What a user sends is copied once, into the memory of its message
 * (txbuf.c). Packets refer to it, and keep it when the message goes. It does not
 * change under them: segments never do, and headers are written there before
 * the first packet refers to them. What comes in stays in the buffers that IP
 * brought it in until it is copied to the user. A buffer can have many packets
 * (input.c): it is on the queue of one message, and clones of it are on those
 * of others. Each of these messages is charged for all of it, and what is not
 * worth that is copied (rx_data.c). Buffers may share memory with their sender,
 * who may be a process of this machine: headers in such memory are copied before
 * they are judged.
 *
 * *Memory.* Charge before you allocate; charged is what is held. What a user
 * sends is charged to sk_wmem_queued, what a peer makes us hold to sk_rmem_alloc,
 * and both by sk_mem_charge(), so that the limit of all sockets and the memory
 * cgroup see it. A charge that is refused is a reason to wait, to drop a packet, or
 * to do with less, never to allocate all the same; what is needed later to get rid
 * of something is charged with that thing. Who frees gives the charge back in the
 * same breath: see memory.c, and dblp_tx_free(). The best charge is none: what finds
 * or tells of a message is in the message. What each connection has, whatever its peer
 * or user does, is small and of a fixed size, and not charged: &struct dblp_sock, the
 * first block of its ring, &struct dblp_auth. selftests/system/charged.c compares.
 *
 * *From UDP.* A packet is queued by UDP and taken out again in its data_ready
 * callback, in the same softirq, or by another CPU that is there already. The
 * queue's locks are not held when the socket lock is taken.
 *
 * *Network namespaces.* User sockets hold their namespace. The UDP sockets do
 * not, but no endpoint outlives its users but for its work item, which is
 * flushed when the namespace goes.
 */
#ifndef _NET_DBLP_H
#define _NET_DBLP_H

#include <linux/dblp.h>
#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/pkt_sched.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/flow.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "auth.h"
#include "cc/cc.h"
#include "core/closing.h"
#include "ctl.h"
#include "core/early.h"
#include "core/ecn.h"
#include "netlink/event.h"
#include "mib.h"
#include "msg.h"
#include "packet.h"
#include "phase.h"
#include "core/pmtu.h"
#include "core/ranges.h"
#include "core/recovery.h"
#include "core/segmap.h"
#include "core/wire.h"
#include "core/zeromap.h"

/* No reason to drop a packet */
#define DBLP_MIB_NONE	__DBLP_MIB_MAX

/* Limits and times */
enum dblp_limits {
	/* Credit that a message uses besides its bytes: see FLOW */
	DBLP_MSG_COST		= 1024,
	/* Messages that may be open at once in one direction */
	DBLP_MSG_WINDOW		= 4096,
	/* Closed messages whose report nobody fetched: then ENOBUFS */
	DBLP_NOTIFY_MAX		= 4096,
	/* Message bytes: default receive window and send buffer */
	DBLP_WINDOW_DEFAULT	= 32 << 20,
	DBLP_WINDOW_MIN		= 4096,
	/* A data packet in every so many is acknowledged, */
	DBLP_ACK_EVERY		= 2,
	/* but of those that come fast, one in so many, */
	DBLP_ACK_EVERY_FAST	= 64,
	/* after so many from the start of the connection */
	DBLP_ACK_QUICKLY	= 128,
	/* Bytes of CLOSE frames that a packet repeats, before the ACK */
	DBLP_CLOSES_AGAIN	= 256,
	/*
	 * What is sent in answer, besides window and pacer, is at most so many
	 * times what came; and of that, no more is remembered: it goes at once, as
	 * the largest train does. An ACK can always say what came last
	 */
	DBLP_ANSWER_TIMES	= 3,
	DBLP_ANSWER_MAX		= 65536,
	DBLP_ANSWER_MIN		= 64,
	/* Messages of those that something concerns that are attended to at once */
	DBLP_STEPS		= 32,
	/* Packets in flight that a probe looks at for a segment to repeat */
	DBLP_PROBE_LOOK		= 64,
	/* Packets of a probe: RFC 9002 section 6.2.4, and one of control frames */
	DBLP_PROBE_PKTS		= 3,
	/* Bytes of a probe that are left for CLOSE frames, marks and an ACK */
	DBLP_NEWS_ROOM		= DBLP_CLOSES_AGAIN + 64,
	DBLP_SENT_RING_MIN	= 8,
	DBLP_SENT_RING_MAX	= 1 << 16,
	/* Bytes that may wait for who has a socket, besides its receive buffer */
	DBLP_BACKLOG_MAX	= 1 << 20,
	/* DSCP EF: a CLOSE must overtake the data it makes useless */
	DBLP_CTL_TOS		= 0xb8,
	/* What routers make of that, for the queues of this machine */
	DBLP_CTL_PRIORITY	= TC_PRIO_INTERACTIVE,
	/* Resets to strangers of one source, of which so many are told apart */
	DBLP_RST_PER_SECOND	= 1000,
	DBLP_RST_QUOTAS		= 256,
	/* Of each kind: who listens, here or elsewhere, slows nobody */
	DBLP_EVENTS_PER_SECOND	= 1000,
	DBLP_USER_TIMEOUT_MS	= 30000,
	DBLP_USER_TIMEOUT_MIN_MS = 1,
	DBLP_USER_TIMEOUT_MAX_MS = 3600000,
	DBLP_KEEPALIVE_MS	= 15000,
	DBLP_KEEPALIVE_MIN_MS	= 10,
	DBLP_KEEPALIVE_MAX_MS	= 86400000,
	DBLP_FAREWELL_MS	= 5000,
	/* Connections that nobody has any more, in a namespace */
	DBLP_ORPHANS_MAX	= 16384,
	DBLP_COOKIE_LIFE_MS	= 5000,
	DBLP_ELEMENT_MAX	= 256,
	DBLP_MTU_MAX		= 64000,
};

/* No memory for what is sent is an error, and nobody is killed */
#define DBLP_GFP_SEND	(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

#define DBLP_ACK_DELAY_NS	(1 * NSEC_PER_MSEC)
/* ACKs closer to each other than this would tell the sender nothing new */
#define DBLP_ACK_SPACE_NS	(100 * NSEC_PER_USEC)
/* Handshake packets are repeated after this, doubling, then by dblp_backoff() */
#define DBLP_HANDSHAKE_MIN_NS	(20 * NSEC_PER_MSEC)
#define DBLP_HANDSHAKE_MAX_NS	(250 * NSEC_PER_MSEC)
/* A peer that owes us something and is silent is asked after this */
#define DBLP_PERSIST_NS		(500 * NSEC_PER_MSEC)
#define DBLP_DEADLINE_MAX	3600000000U	/* microseconds */
/* When there is no memory or no route, try again after this, or dblp_backoff() */
#define DBLP_RETRY_NS		(10 * NSEC_PER_MSEC)
/* How far pacing may run ahead: hides the timer's latency */
#define DBLP_PACE_AHEAD_NS	(100 * NSEC_PER_USEC)

/**
 * struct dblp_rate - how often something happened in a second
 * @since: jiffies when the second began
 * @count: so many times in it
 */
struct dblp_rate {
	u32	since;
	u32	count;
};

/**
 * dblp_rate_count() - it happens once more
 * @r: how often it did; from any context, races lose a few counts
 * @most: how often it may in a second
 *
 * Return: how often it had in this second; @most the first time it is too often,
 * and more from then on.
 */
static inline u32 dblp_rate_count(struct dblp_rate *r, u32 most)
{
	u32 now = jiffies, count = READ_ONCE(r->count);

	if (now - READ_ONCE(r->since) > HZ) {
		WRITE_ONCE(r->since, now);
		count = 0;
	}
	if (count <= most)
		WRITE_ONCE(r->count, count + 1);
	return count;
}

/**
 * struct dblp_net - what a network namespace has
 * @conns: connections by the connection ID their packets are sent to
 * @peers: connections by the connection ID of their other end
 * @socks: all sockets by number
 * @next_id: where the search for a free number begins; under the lock of @socks
 * @generation: changes with @socks, for consistent dumps
 * @cookie_key: nobody else can make cookies
 * @spent: cookies that may not be used again, see handshake.c; NULL until somebody
 *	listens, and does not change then
 * @rst: resets sent to strangers, by a hash of whose packets they answer
 * @events: those that were told, of each kind
 * @endpoints: number of endpoints alive
 * @config: what operators set
 * @orphans: connections that their user has closed, see conn.c
 * @sysctl_rmem_default: SO_RCVBUF that a socket begins with
 * @sysctl_wmem_default: SO_SNDBUF that a socket begins with
 * @sysctl_max_orphans: that @orphans may be at most
 * @sysctl: these, for whoever may change them
 * @sysctl_table: freed when @sysctl goes
 * @shared: endpoints that SO_REUSEADDR lets others join
 * @shared_lock: protects @shared
 * @mib: counters
 */
struct dblp_net {
	struct rhashtable	conns;
	struct rhashtable	peers;
	struct xarray		socks;
	u32			next_id;
	atomic_t		generation;
	siphash_key_t		cookie_key;
	struct dblp_spent_place	*spent;
	struct dblp_rate	rst[DBLP_RST_QUOTAS];
	struct dblp_rate	events[DBLP_EVENT_KINDS];
	atomic_t		endpoints;
	struct list_head	shared;
	spinlock_t		shared_lock;	/* for @shared */
	struct dblp_config	config;
	atomic_t		orphans;
	int			sysctl_rmem_default;
	int			sysctl_wmem_default;
	int			sysctl_max_orphans;
	struct ctl_table_header	*sysctl;
	struct ctl_table	*sysctl_table;
	struct dblp_mib __percpu *mib;
};

struct dblp_endpoint;

/**
 * struct dblp_endpoint_ops - what is done with that which comes in at an endpoint
 * @rcv: a packet behind its UDP header, whose checksum is right, or a train of
 *	packets; consumes it. In softirq context, under RCU
 * @err: a genuine ICMP error for a packet that the connection has sent:
 *	ECONNREFUSED or EMSGSIZE. In softirq context, under bh_lock_sock(), with a
 *	reference; a process may own the socket
 */
struct dblp_endpoint_ops {
	void	(*rcv)(struct dblp_endpoint *ep, struct sk_buff *skb);
	void	(*err)(struct dblp_sock *dsk, int err);
};

/**
 * struct dblp_endpoint - a bound UDP socket
 * @refs: sockets that use it
 * @sock: the UDP socket
 * @listener: who accepts connections here; written under the listener's lock,
 *	read under RCU
 * @net: its namespace
 * @ops: who takes what comes in
 * @shared: in the list of the namespace, if others may join
 * @addr: then: as it was bound
 * @ifindex: then: interface it was bound to, 0 for none
 * @uid: then: the user who bound it
 * @receiving: connections here that are amid a message from their peer
 * @release: in the list of those whose @sock is to be released
 * @rcu: frees it
 */
struct dblp_endpoint {
	refcount_t		refs;
	struct socket		*sock;
	struct dblp_sock __rcu	*listener;
	struct net		*net;
	const struct dblp_endpoint_ops *ops;
	struct list_head	shared;
	struct sockaddr_dblp	addr;
	int			ifindex;
	kuid_t			uid;
	atomic_t		receiving;
	struct llist_node	release;
	struct rcu_head		rcu;
};

/**
 * struct dblp_path - where packets go
 * @fl: route key; also the addresses in the IP header
 * @gateway: next hop of that route, as IPv6 address or IPv4-mapped
 * @ifindex: interface it goes through
 * @cookie: of the cached route
 * @mtu: larger packets are fragmented, 0 if the route's MTU is all that counts
 * @family: AF_INET or AF_INET6
 * @sport: UDP ports
 * @dport: UDP ports
 */
struct dblp_path {
	struct flowi	fl;
	struct in6_addr	gateway;
	int		ifindex;
	u32		cookie;
	u32		mtu;
	sa_family_t	family;
	__be16		sport;
	__be16		dport;
};

/**
 * struct dblp_echo - what a COOKIE-ECHO carries
 * @client_cid: connection ID of the client
 * @cookie: with ours
 * @params: what the client says of itself
 */
struct dblp_echo {
	u64			client_cid;
	struct dblp_cookie	cookie;
	struct dblp_params	params;
};

/** enum dblp_deferred - what release_sock() has to do */
enum dblp_deferred {
	DBLP_DEFER_TIMER,
	DBLP_DEFER_MTU,
};

/**
 * struct dblp_peer_key - how a reset finds its connection
 * @cid: connection ID of the other end
 * @addr: its address
 * @port: its port
 * @pad: 0
 */
struct dblp_peer_key {
	u64		cid;
	struct in6_addr	addr;
	__be16		port;
	u8		pad[6];
};

/**
 * struct dblp_sock - an AF_DBLP socket
 * @sk: must be first
 * @inet: the same: IP looks at skb->sk of the packets it sends and takes it for
 *	one of its own. All of it but @sk stays zero
 * @dn: what its namespace has
 * @conn_node: in @conns of the namespace
 * @peer_node: in @peers of the namespace
 * @cid: connection ID that the peer sends to; never 0 once connecting
 * @peer_key: connection ID that we send to, and where
 * @id: number of the socket, for netlink; fixed
 * @state: &enum dblp_state
 * @end_reason: &enum dblp_rst_reason: for this the connection has to end, see
 *	dblp_flush(); 0 if it has not
 * @end_err: positive errno that it ends with then
 * @hashed: in @conns
 * @peer_hashed: in @peers
 * @ep: UDP socket, NULL until bound
 * @bound: address and port that bind() gave it, port 0 without
 * @local: the same, and as connected
 * @peer: address, fixed for the connection
 * @path: route to it
 * @pmtu: how large a packet may be on it
 * @accept_queue: listener: children nobody has accepted yet
 * @accept_node: child: in there
 * @passive: a listener has made it
 *
 * Options, see &enum dblp_sockopt:
 * @budget: DBLP_BUDGET
 * @cap: DBLP_BUDGET_CAP
 * @element: DBLP_ELEMENT
 * @user_timeout_ms: DBLP_USER_TIMEOUT
 * @keepalive_ms: DBLP_KEEPALIVE
 * @policy: DBLP_CLOSE_POLICY
 * @deadline: DBLP_DEADLINE
 * @order: DBLP_ORDER
 * @fill: DBLP_FILL
 * @notify: DBLP_NOTIFY
 * @phase: DBLP_PHASE; budget, policy, order and fill are what it says, as far
 *	as they are not in @own
 * @own: DBLP_OWN() of the options that were set for this socket
 * @config_seq: of the configuration that these were taken from
 * @placement: DBLP_PLACEMENT
 * @job: DBLP_JOB; a reference is held
 * @job_node: in @socks of the job
 * @tos: DBLP_TOS
 * @elide: DBLP_ELIDE
 * @auth: DBLP_AUTH_KEY, NULL if there is none; fixed while it is a connection
 *
 * Timer: one, for the earliest of these; 0 means not set:
 * @timer: cancelled by dblp_destruct() at the latest
 * @timer_at: when it will expire
 * @deferred: &enum dblp_deferred bits; atomic
 * @handshake_at: repeat INIT or COOKIE_ECHO
 * @pace_at: the next packet may leave
 * @pto_at: probe
 * @ack_at: acknowledge
 * @keepalive_at: ask an idle peer whether it is alive
 * @work_at: dblp_work() has something to do
 * @spare_at: give @tx_spare back
 * @orphan_at: look whether an orphan gets on
 *
 * Handshake, client:
 * @cookie: from INIT_ACK
 * @handshake_start: when connect() was called
 * @handshake_sent: when the last packet of it was sent
 * @handshake_wait: until its repetition
 * @handshake_tries: packets sent in this state
 * @handshake_rtt: round trip that INIT and INIT-ACK took, 0 if unknown
 *
 * Sending:
 * @tx_msgs: messages that are not closed, or whose loss map is awaited
 * @tx_started: of those, the ones that were started, by ID
 * @tx_lost: of those, the ones with segments to repair
 * @tx_settled: messages of which all is known, to be accounted for
 * @tx_recount: of @tx_msgs, the first that is to be counted anew; or NULL
 * @tx_reports: settled messages to be reported on the error queue
 * @tx_spare: memory of messages settled, for those to come; the oldest first
 * @tx_spares: chunks in there
 * @tx_cur: first message with segments of its first pass to send; or NULL
 * @tx_reported: the one last reported, for DBLP_SENT_LOSSMAP
 * @tx_part: message of which only some pieces were taken from the user
 * @tx_n_reports: length of @tx_reports
 * @tx_next_id: of the next message of the protocol
 * @tx_next_number: of the next message of the user
 * @tx_bytes: bytes of messages not settled
 * @tx_moved: segments acknowledged for the first time, and messages settled
 * @orphan_moved: of an orphan: @tx_moved when that was looked at last
 * @orphan_since: since when it has not changed
 * @orphan: counted in @orphans of the namespace
 * @tx_cost: credit taken by messages started
 * @peer_max_msg: first message ID that the peer does not allow yet
 * @peer_max_data: credit that the peer gave in all
 * @peer_msg_max: largest message the peer takes
 * @peer_window: credit that the peer gave at first
 * @peer_cap: ppm
 * @tx_busy: somebody is in sendmsg(): others have to wait for their turn
 * @tx_wanted: somebody did not get it
 * @blocked: the peer was told that we wait for credit
 * @fin_queued: FIN is on its way: nothing more can be sent
 * @fin_acked: the peer has it
 * @pace_next: when the pacer lets the next packet go
 * @sent: packets sent
 * @rtt: round-trip time
 * @cc: congestion control
 * @pto_count: probe timeouts since the last progress
 * @ecn: marks sent, and what the peer says of them
 * @share: from the SHARE frame of this packet, 0 if it has none
 * @last_sent: when the last packet that wants an ACK was sent
 * @stuck_since: since when nothing could be sent for want of memory or a
 *	route, 0 if it can, or if packets are in flight
 * @progress: when the peer last acknowledged something new, or when we began
 *	to wait for that
 * @answer: bytes that may be sent in answer to what came
 * @ctl_queue: control frames to be sent, by &enum dblp_ctl_rank
 * @ctl_flight: control frames in flight, the longest first
 * @ctl_own: those that say something of the connection
 * @ctl_notices: closed messages that the peer may not know all about, by ID
 * @ctl_late: of these, the ones without whose CLOSE no ACK may be sent
 *
 * Receiving:
 * @rx_turn: the message whose turn it is, if it has been opened
 * @rx_msgs: open messages, and closed ones, whose turn has not come, by ID
 * @rx_found: of those, the one that was looked for last, or NULL
 * @rx_waits: open messages that could not be closed when they were looked at
 * @rx_judge: those that are to be looked at again, the first one first
 * @rx_due: those that are to be looked at when their time has come
 * @rx_ready: closed messages and pieces to be read, in order
 * @rx_part: pieces of the message being placed of which all was placed: the
 *	first, and those with bytes missing
 * @rx_last: pieces of the message last read, for DBLP_LOSSMAP
 * @rx_next: ID of the next message for @rx_ready
 * @rx_whole: messages of which the last piece is in @rx_ready
 * @rx_number: of the user's message that @rx_chain is about
 * @rx_placed: bytes of that message in pieces that left @rx_ready
 * @rx_begun: a call of recvmsg() has placed some of it
 * @rx_placeable: placement: there is something to be placed
 * @rx_busy: somebody copies a message that others must not touch
 * @rx_wanted: somebody waits for that to end
 * @rx_msg_max: largest message that the peer may send
 * @rx_chain: where the next piece for @rx_ready belongs: offset 0 if it begins
 *	a message, else the message is the one with this length and tag, and
 *	@reason is why its pieces were closed so far, the highest &enum
 *	dblp_reason, @missing is what they lack, and @budget is the first one's
 * @rx_window: credit that is out at most
 * @rx_opened: credit used by messages opened
 * @rx_open: messages opened and not closed
 * @rx_consumed: credit of messages read
 * @rx_consumed_msgs: messages read
 * @rx_max_data: credit given, as last told
 * @rx_max_msg: first message ID not allowed, as last told
 * @rx_fin: the peer has sent FIN
 * @rx_end: messages that it sends in all
 * @peer_waits: the peer waits for credit
 * @rx_deadline_at: of the message that was last before @rx_next
 * @early: what policy early has learnt
 * @pns: packet numbers received
 * @largest_at: when the largest of them was
 * @ack_pending: packets received that want an ACK
 * @ack_now: and want it at once
 * @acked_at: when the last ACK was sent
 * @ecn_ce: marks counted
 * @ecn_ect0: marks counted
 * @ecn_ect1: marks counted
 *
 * @info: counters, the fields of &struct dblp_info that count
 */
struct dblp_sock {
	union {
		struct sock		sk;
		struct inet_sock	inet;
	};
	struct dblp_net		*dn;
	struct rhash_head	conn_node;
	struct rhash_head	peer_node;
	u64			cid;
	struct dblp_peer_key	peer_key;
	u32			id;
	u8			state;
	u8			end_reason;
	int			end_err;
	bool			hashed;
	bool			peer_hashed;
	struct dblp_endpoint	*ep;
	struct sockaddr_dblp	bound;
	struct sockaddr_dblp	local;
	struct sockaddr_dblp	peer;
	struct dblp_path	path;
	struct dblp_pmtu	pmtu;
	struct list_head	accept_queue;
	struct list_head	accept_node;
	bool			passive;

	u32			budget;
	u32			cap;
	u32			element;
	u32			user_timeout_ms;
	u32			keepalive_ms;
	u32			policy;
	u32			deadline;
	u32			order;
	u32			fill;
	u32			notify;
	u32			phase;
	u32			own;
	u32			config_seq;
	u32			placement;
	struct dblp_job		*job;
	struct rb_node		job_node;
	u32			tos;
	u32			elide;
	struct dblp_auth	*auth;

	struct hrtimer		timer;
	u64			timer_at;
	unsigned long		deferred;
	u64			handshake_at;
	u64			pace_at;
	u64			pto_at;
	u64			ack_at;
	u64			keepalive_at;
	u64			work_at;
	u64			spare_at;
	u64			orphan_at;

	struct dblp_cookie	cookie;
	u64			handshake_start;
	u64			handshake_sent;
	u64			handshake_wait;
	u32			handshake_tries;
	u64			handshake_rtt;

	struct list_head	tx_msgs;
	struct rb_root		tx_started;
	struct list_head	tx_lost;
	struct list_head	tx_settled;
	struct dblp_tx_msg	*tx_recount;
	struct list_head	tx_reports;
	struct list_head	tx_spare;
	u32			tx_spares;
	struct dblp_tx_msg	*tx_cur;
	struct dblp_tx_msg	*tx_reported;
	struct dblp_tx_whole	*tx_part;
	u32			tx_n_reports;
	u32			tx_next_id;
	u32			tx_next_number;
	u64			tx_bytes;
	u64			tx_moved;
	u64			orphan_moved;
	u64			orphan_since;
	u64			tx_cost;
	u32			peer_max_msg;
	u64			peer_max_data;
	u32			peer_msg_max;
	u64			peer_window;
	u32			peer_cap;
	u8			tx_busy:1;
	u8			tx_wanted:1;
	u8			blocked:1;
	u8			fin_queued:1;
	u8			fin_acked:1;
	u8			orphan:1;
	u64			pace_next;
	struct dblp_sent	sent;
	struct dblp_rtt		rtt;
	struct dblp_cc		cc;
	u32			pto_count;
	struct dblp_ecn		ecn;
	u16			share;
	u64			last_sent;
	u64			stuck_since;
	u64			progress;
	u32			answer;
	struct list_head	ctl_queue[__DBLP_CTL_RANKS];
	struct list_head	ctl_flight[__DBLP_CTL_RANKS];
	struct dblp_ctl		ctl_own[3];
	struct rb_root		ctl_notices;
	struct list_head	ctl_late;

	struct dblp_rx_msg	*rx_turn;
	struct rb_root		rx_msgs;
	struct dblp_rx_msg	*rx_found;
	struct list_head	rx_waits;
	struct list_head	rx_judge;
	struct timerqueue_head	rx_due;
	struct list_head	rx_ready;
	struct list_head	rx_part;
	struct list_head	rx_last;
	u32			rx_next;
	u32			rx_whole;
	u32			rx_number;
	u32			rx_placed;
	bool			rx_begun;
	bool			rx_placeable;
	bool			rx_busy;
	bool			rx_wanted;
	u32			rx_msg_max;
	struct {
		u32		offset;
		u32		total;
		u64		tag;
		u32		missing;
		u32		budget;
		u8		reason;
	} rx_chain;
	u64			rx_window;
	u64			rx_opened;
	u32			rx_open;
	u64			rx_consumed;
	u32			rx_consumed_msgs;
	u64			rx_max_data;
	u32			rx_max_msg;
	bool			rx_fin;
	bool			peer_waits;
	u32			rx_end;
	u64			rx_deadline_at;
	struct dblp_early	early;
	struct dblp_ranges	pns;
	u64			largest_at;
	u32			ack_pending;
	u64			acked_at;
	bool			ack_now;
	u32			ecn_ce;
	u32			ecn_ect0;
	u32			ecn_ect1;

	struct dblp_info	info;
};

static inline struct dblp_sock *dblp_sk(const struct sock *sk)
{
	return (struct dblp_sock *)sk;
}

/** dblp_auth_len() - bytes of the AUTH frame that each packet has, if any */
static inline u32 dblp_auth_len(const struct dblp_sock *dsk)
{
	return unlikely(dsk->auth) ? DBLP_AUTH_LEN : 0;
}

/** dblp_connecting() - has connect() begun and not come to an end? */
static inline bool dblp_connecting(const struct dblp_sock *dsk)
{
	return dsk->state == DBLP_STATE_INIT_SENT ||
	       dsk->state == DBLP_STATE_COOKIE_SENT;
}

/**
 * dblp_pn_full() - the number in full of a packet that came
 * @seen: numbers that came before
 * @low: its low 32 bits
 *
 * Return: the number, negative as s64 if it cannot be one.
 */
static inline u64 dblp_pn_full(const struct dblp_ranges *seen, u32 low)
{
	return dblp_pn_expand(seen->n ? seen->r[seen->n - 1].last : U64_MAX,
			      low);
}

/**
 * dblp_end() - a connection has to end
 * @dsk: socket; dblp_flush() is to follow
 * @reason: for the peer
 * @err: positive errno for the user
 */
static inline void dblp_end(struct dblp_sock *dsk, enum dblp_rst_reason reason,
			    int err)
{
	if (dsk->end_reason)
		return;
	dsk->end_reason = reason;
	dsk->end_err = err;
}

/** dblp_earliest() - the earlier of two times; 0 means never */
static inline u64 dblp_earliest(u64 a, u64 b)
{
	return a && b ? min(a, b) : a ?: b;
}

extern const struct proto_ops dblp_proto_ops;

/* af_dblp.c */
int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg);

/* send.c: sendmsg() */
int dblp_sendmsg(struct socket *sock, struct msghdr *m, size_t len);

/* recv.c: recvmsg() */
int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size, int flags);
u64 dblp_place_bytes(struct dblp_sock *dsk);

/* recv_copy.c: what both ways to receive share */
bool dblp_rx_next_zeros(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb, u32 *at, u32 *offset,
			u32 *bytes);
u32 dblp_rx_zeros_bytes(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb);
u32 dblp_rx_take_zeros(struct sk_buff *skb, u32 most);
void dblp_rx_cursor_init(struct dblp_rx_cursor *c, const struct iov_iter *to);
int dblp_rx_copy(const struct dblp_rx_msg *msg, struct sk_buff_head *skbs,
		 u32 base, struct dblp_rx_cursor *c);
int dblp_rx_fill_holes(const struct dblp_rx_msg *msg, struct dblp_rx_cursor *c);
size_t dblp_cmsg_len(const struct msghdr *m, size_t size);
void dblp_put_ranges(struct msghdr *m, struct dblp_range *r, u32 ranges);
void dblp_put_rcvinfo(struct msghdr *m, const struct list_head *pieces);
bool dblp_readable(const struct dblp_sock *dsk);
void dblp_rx_release(struct dblp_sock *dsk);
int dblp_wait_readable(struct dblp_sock *dsk, long *timeo, bool keep);
void dblp_rx_was_read(struct dblp_sock *dsk, struct list_head *pieces);

/* sockopt.c */
int dblp_setsockopt(struct socket *sock, int level, int name, sockptr_t optval,
		    unsigned int optlen);
int dblp_getsockopt(struct socket *sock, int level, int name,
		    char __user *optval, int __user *optlen);

/* net.c: what a namespace has */
extern unsigned int dblp_net_id;

struct dblp_net *dblp_pernet(struct net *net);
int dblp_conns_init(struct dblp_net *dn);
void dblp_conns_exit(struct dblp_net *dn);
struct dblp_sock *dblp_conn_find(struct net *net, u64 cid);
struct dblp_sock *dblp_conn_find_peer(struct net *net,
				      const struct dblp_peer_key *key);
int dblp_conn_hash(struct dblp_sock *dsk);
void dblp_conn_unhash_peer(struct dblp_sock *dsk);
void dblp_conn_unhash(struct dblp_sock *dsk);
int dblp_sock_number(struct dblp_sock *dsk, gfp_t gfp);
void dblp_sock_unnumber(struct dblp_sock *dsk);
struct dblp_sock *dblp_sock_by_id(struct net *net, u32 id);
struct dblp_sock *dblp_sock_next(struct net *net, u32 *id);
u32 dblp_sock_generation(struct net *net);
void dblp_count_drops(struct net *net, const struct dblp_sock *dsk,
		      enum dblp_mib_item why, u32 n);
int dblp_sysctl_init(struct net *net, struct dblp_net *dn, long *mem);
void dblp_sysctl_exit(struct dblp_net *dn);

/* sock.c: sockets as objects */
struct sock *dblp_sock_alloc(struct net *net, struct proto *prot, gfp_t gfp,
			     int kern);
void dblp_inherit(struct dblp_sock *child, const struct dblp_sock *listener);
void dblp_accept_memory(struct sock *sk);
void dblp_fill_info(struct dblp_sock *dsk, struct dblp_info *info);
void dblp_sock_info(struct dblp_sock *dsk, struct dblp_info *info);
void dblp_sock_addrs(struct dblp_sock *dsk, struct sockaddr_dblp *local,
		     struct sockaddr_dblp *peer);
const char *dblp_sock_cc_name(struct dblp_sock *dsk);
int dblp_sock_set_budget(struct dblp_sock *dsk, u32 ppm);
int dblp_sock_set_budget_cap(struct dblp_sock *dsk, u32 ppm);

/* timer.c: when something is due; timeout.c: what is done then */
void dblp_timer_init(struct dblp_sock *dsk);
void dblp_timer_update(struct dblp_sock *dsk);
void dblp_work_soon(struct dblp_sock *dsk);
void dblp_keepalive_set(struct dblp_sock *dsk);
u64 dblp_last_heard(const struct dblp_sock *dsk);
u64 dblp_patience(const struct dblp_sock *dsk);
void dblp_keepalive(struct sock *sk, int on);
void dblp_keepalive_tune(struct dblp_sock *dsk, u32 ms);
void dblp_release_cb(struct sock *sk);

/* conn.c: the states of a connection */
void dblp_conn_established(struct dblp_sock *dsk, const struct dblp_params *p,
			   u64 rtt);
int dblp_conn_start(struct dblp_sock *dsk, gfp_t gfp);
int dblp_wait_connected(struct dblp_sock *dsk, long timeo);
void dblp_set_state(struct dblp_sock *dsk, u8 state, int err);
void dblp_done(struct dblp_sock *dsk, int err);
void dblp_conn_unstart(struct dblp_sock *dsk);
void dblp_abort(struct dblp_sock *dsk, enum dblp_rst_reason reason, int err);
void dblp_flush(struct dblp_sock *dsk);
void dblp_close(struct dblp_sock *dsk);
void dblp_stop_listening(struct dblp_sock *dsk);
void dblp_queue_fin(struct dblp_sock *dsk);
void dblp_check_closing(struct dblp_sock *dsk);
void dblp_orphan_look(struct dblp_sock *dsk, u64 now);

/* endpoint.c: UDP sockets */
int dblp_endpoint_create(struct net *net, const struct sockaddr_dblp *addr,
			 int ifindex, const struct dblp_endpoint_ops *ops,
			 struct dblp_endpoint **epp);
void dblp_endpoint_name(const struct dblp_endpoint *ep,
			struct sockaddr_dblp *addr);
int dblp_endpoint_connect(struct dblp_endpoint *ep, struct sockaddr_dblp *peer);
void dblp_endpoint_get(struct dblp_endpoint *ep);
void dblp_endpoint_put(struct dblp_endpoint *ep);
int dblp_endpoints_init(void);
void dblp_endpoints_exit(void);
void dblp_endpoints_flush(void);
void dblp_reuse_init(struct dblp_net *dn);
struct dblp_endpoint *dblp_endpoint_join(struct dblp_sock *dsk,
					 const struct sockaddr_dblp *addr);
void dblp_endpoint_share(struct dblp_sock *dsk);
int dblp_endpoint_listen(struct dblp_sock *dsk);

/* path.c: routes, IP headers, the MTU, what changes there */
struct dst_entry *dblp_route(struct net *net, struct dblp_path *path);
struct sk_buff *dblp_skb_alloc(u32 len, gfp_t gfp);
int dblp_ip_xmit(struct dblp_endpoint *ep, struct sk_buff *skb,
		 struct dst_entry *dst, struct dblp_path *path, u8 tos);
bool dblp_skb_is_from(const struct sk_buff *skb,
		      const struct sockaddr_dblp *peer,
		      const struct sockaddr_dblp *local);
u64 dblp_skb_source(const struct sk_buff *skb);
void dblp_skb_addrs(const struct sk_buff *skb, struct sockaddr_dblp *saddr,
		    struct sockaddr_dblp *daddr);
void dblp_path_owner(struct dblp_path *path, struct sock *sk);
void dblp_path_init(struct dblp_path *path, const struct sockaddr_dblp *local,
		    const struct sockaddr_dblp *peer, struct sock *sk,
		    int ifindex);
void dblp_reply(struct dblp_endpoint *ep, const struct sk_buff *to,
		const u8 *data, u32 len);
struct dst_entry *dblp_conn_dst(struct dblp_sock *dsk);
u32 dblp_mss(struct dblp_sock *dsk, struct dst_entry **dstp);
u32 dblp_seg_size(struct dblp_sock *dsk, bool meta);
u8 dblp_path_data_tos(struct dblp_sock *dsk, u32 n);
u32 dblp_path_ce(struct dblp_sock *dsk);
void dblp_path_acked(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt,
		     u32 n);
void dblp_path_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt);
void dblp_path_timeout(struct dblp_sock *dsk);
u32 dblp_path_probe(struct dblp_sock *dsk, u64 now);
void dblp_path_probed(struct dblp_sock *dsk, bool sent);

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

/* input.c: packets in */
extern const struct dblp_endpoint_ops dblp_rcv_ops;

int dblp_backlog_rcv(struct sock *sk, struct sk_buff *skb);

/* output.c: what is sent, and when */
void dblp_push(struct dblp_sock *dsk);
void dblp_probe(struct dblp_sock *dsk, u64 now);

/* frames.c: frames that are not repeated by themselves, and those that come */
void dblp_ack_done(struct dblp_sock *dsk);
u8 *dblp_put_ecn(struct dblp_sock *dsk, u8 *p, const u8 *end);
u8 *dblp_put_news(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 now);
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
u32 dblp_ring_room(struct dblp_sock *dsk, u32 want);
int dblp_sent_acked(struct dblp_sock *dsk, const struct dblp_frame *f, u64 now);
void dblp_loss_expired(struct dblp_sock *dsk, u64 now);
bool dblp_lose_size_probes(struct dblp_sock *dsk);
void dblp_lose_larger(struct dblp_sock *dsk, u32 mss);
void dblp_lose_oldest(struct dblp_sock *dsk, u32 n);

/* memory.c: whom memory is charged to */
bool dblp_wmem_schedule(struct sock *sk, int size);
int dblp_tx_charge(struct dblp_sock *dsk, u32 size);
void dblp_tx_uncharge(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 size);
void dblp_tx_leave_buffer(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
bool dblp_rmem_schedule(struct sock *sk, int size);
void dblp_rmem_charge(struct sock *sk, int size);
void dblp_rmem_uncharge(struct sock *sk, int size);
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id);
bool dblp_writable(const struct dblp_sock *dsk);
void dblp_wake_writers(struct dblp_sock *dsk);
void dblp_no_space(struct dblp_sock *dsk);
void dblp_write_space(struct dblp_sock *dsk);

#endif /* _NET_DBLP_H */
