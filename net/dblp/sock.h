/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket.
 */
#ifndef _NET_DBLP_SOCK_H
#define _NET_DBLP_SOCK_H

#include <linux/dblp.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/stddef.h>
#include <linux/timerqueue.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "auth.h"
#include "cc/cc.h"
#include "core/closing.h"
#include "core/ecn.h"
#include "core/pmtu.h"
#include "core/ranges.h"
#include "core/recovery.h"
#include "core/values.h"
#include "core/wire.h"
#include "ctl.h"
#include "net.h"

/** enum dblp_deferred - work left to release_sock() */
enum dblp_deferred {
	DBLP_DEFER_TIMER,
	DBLP_DEFER_MTU,
	DBLP_DEFER_TSQ,
	/* Not for release_sock(): @tsq_tasklet is scheduled */
	DBLP_TSQ_QUEUED,
};

/*
 * Counters of a socket, as the fields of struct dblp_info with the same names;
 * messages are counted by enum dblp_reason.
 */
struct dblp_counts {
	u64			bytes_first;
	u64			bytes_again;
	u64			bytes_delivered;
	u64			bytes_forgiven_unsent;
	u64			bytes_forgiven_sent;
	u64			bytes_received;
	u64			bytes_missing;
	u64			bytes_elided;
	u64			msgs_sent[__DBLP_REASON_MAX];
	u64			msgs_received[__DBLP_REASON_MAX];
	u64			pkts_sent;
	u64			pkts_lost;
	u64			pkts_received;
	u64			delivery_rate;
};

/**
 * struct dblp_handshake - state of a client's handshake
 * @cookie: cookie from the INIT-ACK
 * @since: when the present state began, ns
 * @sent: when the last packet of that state was sent, ns
 * @wait: interval until that packet is repeated, ns
 * @rtt: round-trip time of INIT and INIT-ACK, ns, 0 if unknown
 */
struct dblp_handshake {
	struct dblp_cookie	cookie;
	u64			since;
	u64			sent;
	u64			wait;
	u64			rtt;
};

/**
 * struct dblp_sock - an AF_DBLP socket
 * @sk: must be first
 * @inet: overlays @sk, because IP treats skb->sk of the packets that it sends
 *	as an inet socket. All of it but @sk stays zero
 * @dn: its namespace
 * @conn_node: in @conns of the namespace
 * @peer_node: in @peers of the namespace
 * @id: number of the socket, for netlink; fixed
 * @state: &enum dblp_state
 * @end_reason: &enum dblp_rst_reason with which dblp_flush() must end the
 *	connection, or 0
 * @end_err: positive errno for the user, with @end_reason
 * @hashed: in @conns
 * @peer_hashed: in @peers
 * @ep: UDP socket, NULL until bound
 * @bound: address and port of bind(), port 0 before it
 * @local: address and port in use
 * @accept_queue: listener: children not accepted yet
 * @accept_node: child: in @accept_queue
 * @passive: the socket was made by a listener
 *
 * Fields that an attempt to connect sets:
 * @attempt: all fields up to @arrival_epoch, 0 in a socket that is not
 *	connected: see dblp_conn_unstart(). Each field that connect() or a
 *	packet of the handshake sets belongs here
 * @cid: our connection ID, which the peer sends to
 * @peer_key: connection ID and address of the peer
 * @peer: address of the peer, fixed for the connection
 * @peer_ports: UDP ports that the peer sends from, 0 for one not announced yet;
 *	the first is not used
 * @path: route to the peer
 * @pmtu: path MTU discovery
 * @connect_at: when connect() was called
 * @hs: state of a client's handshake
 * @features: &enum dblp_feature that both ends have
 * @answer: bytes that may be sent in answer to received packets
 * @stuck_since: since when sending has failed for lack of memory or of a route;
 *	0 if sending works, or if packets are in flight
 * @sent: packets sent
 * @rx_msg_max: largest message that the peer may send, bytes
 * @rx_window: bytes of credit that may be outstanding, see dblp_rx_adapt()
 * @rx_window_max: limit of @rx_window: the most that a message may need
 * @rx_max_data: total credit given, bytes, as last sent
 * @rx_max_msg: first message ID not allowed, as last sent
 * @arrival_epoch: origin of the times in ARRIVAL frames, which hides this
 *	machine's clock
 *
 * Options, see &enum dblp_sockopt:
 * @budget: DBLP_BUDGET
 * @cap: DBLP_BUDGET_CAP
 * @default_cap: cap of the namespace at the time of socket(), or DBLP_INHERIT
 * @element: DBLP_ELEMENT
 * @user_timeout_ms: DBLP_USER_TIMEOUT
 * @keepalive_ms: DBLP_KEEPALIVE
 * @policy: DBLP_CLOSE_POLICY
 * @deadline: DBLP_DEADLINE
 * @order: DBLP_ORDER
 * @fill: DBLP_FILL
 * @notify: DBLP_NOTIFY
 * @partial: DBLP_PARTIAL_SEND
 * @phase: DBLP_PHASE; it sets budget, cap, policy, order and fill, except those
 *	in @own
 * @own: DBLP_OWN() of the options that were set for this socket
 * @config_seq: @seq of the configuration when its settings were last applied
 * @job_seq: @seq of @job at that time
 * @placement: DBLP_PLACEMENT
 * @job: DBLP_JOB; a reference is held
 * @job_node: in @socks of the job
 * @tos: DBLP_TOS
 * @elide: DBLP_ELIDE
 * @ect: DBLP_ECT
 * @spray: DBLP_SPRAY; in a connection, the number of ports that each end sends
 *	from
 * @auth: DBLP_AUTH_KEY, NULL without a key; the pointer is fixed in a
 *	connection
 *
 * Deadlines, ns, 0 means not set. One timer expires at the earliest:
 * @timer: cancelled by dblp_destruct() at the latest
 * @timer_at: when @timer will expire
 * @deferred: &enum dblp_deferred bits; atomic
 * @handshake_at: repeat INIT or COOKIE-ECHO
 * @pace_at: send the next packet
 * @pto_at: send a probe
 * @ack_at: send a delayed ACK
 * @keepalive_at: probe an idle peer
 * @work_at: call dblp_work()
 * @spare_at: free @tx_chunk_cache and unused blocks of @sent
 * @orphan_at: check whether an orphan makes progress
 * @refused_until: retry after memory for sending was refused. Until then the
 *	send buffer counts as full; may be read without the lock
 * @refused_queued: bytes that were queued when memory was refused
 *
 * Sending:
 * @tx_msgs: messages that are not settled
 * @tx_ids: the messages of @tx_msgs, by ID
 * @tx_lost: messages of @tx_msgs that have segments to repair
 * @tx_settled: settled messages that are not accounted for yet
 * @tx_recount: first message of @tx_msgs whose segments to send must be counted
 *	again, or NULL
 * @tx_reports: settled messages to be reported on the error queue
 * @tx_chunk_cache: chunks of settled messages, for new ones; the oldest first
 * @tx_n_cached: length of @tx_chunk_cache
 * @tx_waste: chunks that dblp_work() must free
 * @tx_cur: first message with segments of its first pass to send, or NULL
 * @tx_reported: message last reported, for DBLP_SENT_LOSSMAP
 * @tx_part: message of which only some pieces were taken from the user, or NULL
 * @tx_n_reports: length of @tx_reports
 * @tx_next_id: ID of the next message or piece
 * @tx_next_number: number of the next message of the user
 * @tx_bytes: bytes of messages that are not settled
 * @tx_moved: number of segments acknowledged plus messages settled
 * @orphan_moved: in an orphan: @tx_moved at the last check
 * @orphan_since: in an orphan: since when @tx_moved has not changed, ns
 * @orphan: the socket counts in @orphans of the namespace
 * @tx_cost: bytes of credit used by messages started
 * @tx_asked: bytes of credit asked for by PING since the last FLOW, or 0
 * @peer_max_msg: first message ID that the peer does not allow yet
 * @peer_max_data: total credit from the peer, bytes
 * @peer_msg_max: largest message that the peer accepts, bytes
 * @peer_window: most credit from the peer that will be outstanding, bytes
 * @peer_cap: budget cap of the peer, ppm
 * @tx_busy: a call of sendmsg() is sending, so others must wait
 * @tx_wanted: a call waits for @tx_busy
 * @fin_queued: FIN was queued, so no further message can be sent
 * @fin_acked: the peer has acknowledged FIN
 * @refused: a queue of this machine was full since the last ACK
 * @pace_next: when the pacer allows the next packet, ns
 * @pace_late: delay by late timers that the pacer has not made up for, ns
 * @tsq_max: sending waits until at most this many bytes are in queues of this
 *	machine; 0 if it does not wait (tsq.c); read without the lock
 * @tsq_tasklet: resumes sending then; holds 1 of sk_wmem_alloc while scheduled
 * @ack_port: index of the port that the last ACK was sent from
 * @rtt: round-trip time
 * @cc: congestion control
 * @pto_count: probe timeouts since the last progress
 * @ecn: marks sent, and the peer's counts of them
 * @share: number of connections from the SHARE frame of the packet being
 *	processed, 0 if it has none
 * @share_all: count of bytes from the same frame
 * @arrival: time from the ARRIVAL frame of the packet being processed
 * @arrival_told: that packet has an ARRIVAL frame
 * @last_sent: when the last ack-eliciting packet was sent, ns
 * @progress: when a packet was last newly acknowledged, or since when one has
 *	been in flight, ns
 * @ctl_queue: control frames to be sent, by &enum dblp_ctl_rank
 * @ctl_flight: control frames in flight, the oldest first
 * @ctl_own: control frames about the connection
 * @ctl_notices: notices of closed messages with unacknowledged frames, by ID
 * @ctl_late: notices of @ctl_notices whose CLOSE must precede the ACK of
 *	packets that arrived after the close
 * @late_pn: largest number of such a packet, while @ctl_late is not empty
 *
 * Receiving:
 * @rx_turn: message with ID @rx_next, or NULL if it was not opened yet
 * @rx_msgs: messages that are not in @rx_ready yet, open or closed, by ID
 * @rx_found: message of @rx_msgs that was last looked up, or NULL
 * @rx_waits: open messages that could not be closed when last judged
 * @rx_judge: open messages to be judged again, in this order
 * @rx_due: open messages to be judged at a given time
 * @rx_ready: closed messages and pieces to be read, in order
 * @rx_taken: pieces of the message that @rx_reader is copying, in whole mode
 * @rx_part: pieces of the message being placed that are fully placed: the
 *	first, and those with bytes missing
 * @rx_last: pieces of the message last read, for DBLP_LOSSMAP
 * @rx_next: ID of the next message for @rx_ready
 * @rx_whole: number of messages whose last piece is in @rx_ready or @rx_taken
 * @rx_number: number of the user's message of @rx_chain
 * @rx_placed: bytes of that message in pieces that left @rx_ready
 * @rx_begun: a call of recvmsg() has placed bytes of that message
 * @rx_placeable: in placement mode: recvmsg() finds bytes or a message to
 *	return
 * @rx_reader: task whose call holds a message or segments of it without the
 *	lock, or NULL; other calls wait until it ends. Only compared with
 *	current
 * @rx_copying: that call copies to its user, and does not wait for the peer
 * @rx_refused: a call was refused because of @rx_reader while a message was
 *	ready
 * @rx_waiters: calls that wait for @rx_reader
 * @rx_ahead: a reader that may copy ahead waits
 * @rx_chain: position of the next piece for @rx_ready: @offset is 0 if the
 *	piece begins a message. Else @total and @tag are those of its message,
 *	and the other fields sum up its earlier pieces: the highest @reason, the
 *	bytes @missing, and the @budget as dblp_rx_join() reports it
 * @rx_opened: bytes of credit used by messages opened
 * @rx_open: number of messages that are open
 * @rx_consumed: bytes of credit of messages read
 * @rx_consumed_msgs: number of messages read
 * @peer_wants: bytes of credit that the peer has asked for by PING
 * @rx_fin: the peer has sent FIN
 * @rx_end: total number of the peer's messages, with @rx_fin
 * @rx_deadline_at: deadline of the message before @rx_next
 * @early: estimates for policy early
 * @pns: packet numbers received
 * @largest_at: arrival time of the largest number in @pns, ns
 * @ack_pending: number of ack-eliciting packets that are not acknowledged yet
 * @ack_now: an ACK must be sent at once
 * @acked_at: when the last ACK was sent, ns
 * @ecn_ce: packets received with CE
 * @ecn_ect0: packets received with ECT(0)
 * @ecn_ect1: packets received with ECT(1)
 *
 * @counts: counters of the socket
 */
struct dblp_sock {
	union {
		struct sock		sk;
		struct inet_sock	inet;
	};
	struct dblp_net		*dn;
	struct rhash_head	conn_node;
	struct rhash_head	peer_node;
	u32			id;
	u8			state;
	u8			end_reason;
	bool			hashed;
	bool			peer_hashed;
	struct dblp_endpoint	*ep;
	struct sockaddr_dblp	bound;
	struct sockaddr_dblp	local;
	int			end_err;
	struct list_head	accept_queue;
	struct list_head	accept_node;

	struct_group_tagged(dblp_attempt, attempt, /* see above */
		u64			cid;
		struct dblp_peer_key	peer_key;
		struct sockaddr_dblp	peer;
		__be16			peer_ports[DBLP_SPRAY_MAX];
		struct dblp_path	path;
		struct dblp_pmtu	pmtu;
		u64			connect_at;
		struct dblp_handshake	hs;
		u16			features;
		u32			answer;
		u64			stuck_since;
		struct dblp_sent	sent;
		u32			rx_msg_max;
		u32			rx_window;
		u32			rx_window_max;
		u32			rx_max_msg;
		u64			rx_max_data;
		u32			arrival_epoch;
	);

	u32			budget;
	u32			cap;
	u32			default_cap;
	u32			element;
	u32			user_timeout_ms;
	u32			keepalive_ms;
	u32			policy;
	u32			deadline;
	u32			order;
	u32			fill;
	u32			notify;
	u32			partial;
	u32			phase;
	u32			own;
	u32			config_seq;
	u32			job_seq;
	u32			placement;
	struct dblp_job		*job;
	struct rb_node		job_node;
	u32			tos;
	u32			elide;
	u32			ect;
	u32			spray;
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
	u64			refused_until;
	int			refused_queued;

	u32			tx_n_cached;
	struct list_head	tx_msgs;
	struct rb_root		tx_ids;
	struct list_head	tx_lost;
	struct list_head	tx_settled;
	struct dblp_tx_msg	*tx_recount;
	struct list_head	tx_reports;
	struct list_head	tx_chunk_cache;
	struct list_head	tx_waste;
	struct dblp_tx_msg	*tx_cur;
	struct dblp_tx_msg	*tx_reported;
	struct dblp_tx_whole	*tx_part;
	u32			tx_n_reports;
	u32			tx_next_id;
	u32			tx_next_number;
	u32			peer_max_msg;
	u64			tx_bytes;
	u64			tx_moved;
	u64			orphan_moved;
	u64			orphan_since;
	u64			tx_cost;
	u64			tx_asked;
	u64			peer_max_data;
	u32			peer_window;
	u32			peer_msg_max;
	u32			peer_cap;
	u8			tx_busy:1;
	u8			tx_wanted:1;
	u8			fin_queued:1;
	u8			fin_acked:1;
	u8			refused:1;
	u8			orphan:1;
	u8			arrival_told:1;
	bool			passive;
	u16			share;
	u32			share_all;
	u32			arrival;
	u64			pace_next;
	u64			pace_late;
	u32			tsq_max;
	struct tasklet_struct	tsq_tasklet;
	u8			ack_port;
	struct dblp_rtt		rtt;
	struct dblp_cc		cc;
	u32			pto_count;
	struct dblp_ecn		ecn;
	u64			last_sent;
	u64			progress;
	struct list_head	ctl_queue[__DBLP_CTL_RANKS];
	struct list_head	ctl_flight[__DBLP_CTL_RANKS];
	struct dblp_ctl		ctl_own[3];
	struct rb_root		ctl_notices;
	struct list_head	ctl_late;
	u64			late_pn;

	struct dblp_rx_msg	*rx_turn;
	struct rb_root		rx_msgs;
	struct dblp_rx_msg	*rx_found;
	struct list_head	rx_waits;
	struct list_head	rx_judge;
	struct timerqueue_head	rx_due;
	struct list_head	rx_ready;
	struct list_head	rx_taken;
	struct list_head	rx_part;
	struct list_head	rx_last;
	u32			rx_next;
	u32			rx_whole;
	u32			rx_number;
	u32			rx_placed;
	bool			rx_begun;
	bool			rx_placeable;
	bool			rx_copying;
	bool			rx_refused;
	bool			rx_ahead;
	struct task_struct	*rx_reader;
	wait_queue_head_t	rx_waiters;
	struct {
		u32		offset;
		u32		total;
		u64		tag;
		u32		missing;
		u32		budget;
		u8		reason;
	} rx_chain;
	u64			rx_opened;
	u64			rx_consumed;
	u64			peer_wants;
	u32			rx_open;
	u32			rx_consumed_msgs;
	u32			rx_end;
	u64			rx_deadline_at;
	struct dblp_early	early;
	struct dblp_ranges	pns;
	u64			largest_at;
	u64			acked_at;
	bool			rx_fin;
	bool			ack_now;
	u32			ack_pending;
	u32			ecn_ce;
	u32			ecn_ect0;
	u32			ecn_ect1;

	struct dblp_counts	counts;
};

static inline struct dblp_sock *dblp_sk(const struct sock *sk)
{
	return (struct dblp_sock *)sk;
}

/** dblp_sock_graft() - connect a sock with the socket of its file */
static inline void dblp_sock_graft(struct sock *sk, struct socket *sock)
{
	/* dblp_setsockopt() also takes options of level SOL_SOCKET */
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
	sock_graft(sk, sock);
}

/** dblp_readable() - would recvmsg() find a message, or bytes to place? */
static inline bool dblp_readable(const struct dblp_sock *dsk)
{
	return dsk->placement ? READ_ONCE(dsk->rx_placeable) :
				READ_ONCE(dsk->rx_whole);
}

/** dblp_rx_ended() - have all messages before the peer's FIN arrived? */
static inline bool dblp_rx_ended(const struct dblp_sock *dsk)
{
	return dsk->rx_fin && dsk->rx_next == dsk->rx_end &&
	       !dsk->rx_chain.offset;
}

/** dblp_auth_len() - bytes of the AUTH frame of each packet, or 0 */
static inline u32 dblp_auth_len(const struct dblp_sock *dsk)
{
	return unlikely(dsk->auth) ? DBLP_AUTH_LEN : 0;
}

/**
 * dblp_first_credit() - credit in bytes that the handshake gives
 * @dsk: socket
 *
 * It is a part of the window, because the credit promised to all connections
 * may exceed the memory.
 */
static inline u32 dblp_first_credit(const struct dblp_sock *dsk)
{
	u32 max = dsk->rx_window_max;

	return max(max / 16, min_t(u32, max, DBLP_WINDOW_FIRST));
}

/**
 * dblp_whole_max() - bytes of the largest message that is not sent in pieces
 * @dsk: connected socket
 *
 * It fits half of the send buffer, and the peer's window.
 */
static inline u32 dblp_whole_max(const struct dblp_sock *dsk)
{
	u32 window = max_t(u32, dsk->peer_window, DBLP_WINDOW_MIN);

	return min_t(u64, window - DBLP_MSG_COST,
		     READ_ONCE(dsk->sk.sk_sndbuf) / 2);
}

/**
 * dblp_reports_full() - must reports be read before the next message begins?
 * @dsk: socket, perhaps not locked
 */
static inline bool dblp_reports_full(const struct dblp_sock *dsk)
{
	return READ_ONCE(dsk->tx_n_reports) >= DBLP_NOTIFY_MAX &&
	       READ_ONCE(dsk->notify) && !READ_ONCE(dsk->tx_part);
}

/** dblp_connecting() - is the handshake of connect() under way? */
static inline bool dblp_connecting(const struct dblp_sock *dsk)
{
	return dsk->state == DBLP_STATE_INIT_SENT ||
	       dsk->state == DBLP_STATE_COOKIE_SENT;
}

/**
 * dblp_pn_full() - full packet number of a received packet
 * @seen: numbers received before
 * @low: low 32 bits of the packet number
 *
 * Return: the number; negative as s64 if @low is invalid.
 */
static inline u64 dblp_pn_full(const struct dblp_ranges *seen, u32 low)
{
	return dblp_pn_expand(seen->n ? seen->r[seen->n - 1].last : U64_MAX,
			      low);
}

/**
 * dblp_end() - note that a connection must end
 * @dsk: socket; dblp_flush() ends it
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

#endif /* _NET_DBLP_SOCK_H */
