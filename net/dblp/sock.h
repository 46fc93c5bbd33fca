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

#include "cc/cc.h"
#include "core/closing.h"
#include "core/ecn.h"
#include "core/pmtu.h"
#include "core/ranges.h"
#include "core/recovery.h"
#include "core/values.h"
#include "core/wire.h"
#include "msg.h"
#include "net.h"

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

/* State of a client's handshake; 0 outside of it */
struct dblp_handshake {
	/* Cookie from the INIT-ACK */
	struct dblp_cookie	cookie;
	/* When the present state began, ns */
	u64			since;
	/* When the last packet of that state was sent, ns */
	u64			sent;
	/* Interval until that packet is repeated, ns */
	u64			wait;
	/* Round-trip time of INIT and INIT-ACK, ns, 0 if unknown */
	u64			rtt;
};

/*
 * The fields of a socket, by owner. The socket lock protects all of them,
 * except where a field says otherwise. Fields used for each packet are close to
 * each other, at the start of a structure or at its end.
 */

/* Options, see &enum dblp_sockopt */
struct dblp_sock_opt {
	u32			budget;		/* DBLP_BUDGET */
	u32			policy;		/* DBLP_CLOSE_POLICY */
	u32			order;		/* DBLP_ORDER */
	u32			fill;		/* DBLP_FILL */
	u32			phase;		/* DBLP_PHASE */
	/* DBLP_NOTIFY; may be read without the lock */
	u32			notify;
	u32			partial;	/* DBLP_PARTIAL_SEND */
	u32			element;	/* DBLP_ELEMENT */
	u32			elide;		/* DBLP_ELIDE */
	u32			ect;		/* DBLP_ECT */
	u32			tos;		/* DBLP_TOS */
	/*
	 * DBLP_SPRAY; in a connection, the number of ports that each end sends
	 * from
	 */
	u32			spray;
	u32			deadline;	/* DBLP_DEADLINE */
	u32			user_timeout_ms;	/* DBLP_USER_TIMEOUT */
	u32			keepalive_ms;	/* DBLP_KEEPALIVE */
	u32			placement;	/* DBLP_PLACEMENT */
	u32			cap;		/* DBLP_BUDGET_CAP */
};

/* Phase and job, which set budget, cap, policy, order and fill (config.c) */
struct dblp_sock_conf {
	/* DBLP_JOB; a reference is held */
	struct dblp_job		*job;
	/* @seq of the configuration when its settings were last applied */
	u32			seq;
	/* @seq of @job at that time */
	u32			job_seq;
	/* DBLP_OWN() of the options that were set for this socket */
	u32			own;
	/* Cap of the namespace at the time of socket(), or DBLP_INHERIT */
	u32			default_cap;
	/* In @socks of @job, under its @lock */
	struct rb_node		job_node;
};

/* Times at which timeouts are due, ns, 0: not set. The timer expires at the earliest (timer.c) */
struct dblp_sock_due {
	/* Repeat INIT or COOKIE-ECHO */
	u64			handshake;
	/* Check whether an orphan makes progress */
	u64			orphan;
	/* Free @tx.chunk_cache and unused blocks of @sent */
	u64			spare;
	/* Probe an idle peer */
	u64			keepalive;
	/*
	 * Retry after memory for sending was refused. Until then the send
	 * buffer counts as full; may be read without the lock
	 */
	u64			charge;
	/* Call dblp_work() */
	u64			work;
	/* Send a delayed ACK */
	u64			ack;
	/* Send a probe */
	u64			pto;
	/* Send the next packet */
	u64			pace;
	/* When @timer will expire */
	u64			armed;
};

/* Outgoing messages (tx.c, tx_close.c), and what the peer allows */
struct dblp_sock_tx {
	/* First message with segments of its first pass to send, or NULL */
	struct dblp_tx_msg	*cur;
	/* Messages of @msgs that have segments to repair */
	struct list_head	lost;
	/* Messages that are not settled */
	struct list_head	msgs;
	/* The messages of @msgs, by ID */
	struct rb_root		ids;
	/* Settled messages that are not accounted for yet */
	struct list_head	settled;
	/*
	 * First message of @msgs whose segments to send must be counted again,
	 * or NULL
	 */
	struct dblp_tx_msg	*recount;
	/* Bytes of unsettled messages; may be read without the lock */
	u64			bytes;
	/* Number of segments acknowledged plus messages settled */
	u64			moved;
	/* Bytes of credit used by messages started */
	u64			cost;
	/* Total credit from the peer, bytes */
	u64			data_limit;
	/* First message ID that the peer does not allow yet */
	u32			id_limit;
	/* Largest message that the peer accepts, bytes */
	u32			len_max;
	/* Largest credit that the peer ever leaves outstanding, bytes */
	u32			window;
	/* Number of the latest numbered packet with FLOW */
	u64			flow_pn;
	/* Budget cap of the peer, ppm */
	u32			cap;
	/* Bytes of credit asked for by PING since the last FLOW, or 0 */
	u64			asked;
	/* When the last ack-eliciting packet was sent, ns */
	u64			last_sent;
	/*
	 * When a packet was last newly acknowledged, or since when one has been
	 * in flight, ns
	 */
	u64			progress;
	/* Probe timeouts since the last progress */
	u32			pto_count;
	/* A call of sendmsg() is sending, so others must wait */
	u8			busy:1;
	/* A call waits for @busy */
	u8			wanted:1;
	/* FIN was queued, so no further message can be sent */
	u8			fin_queued:1;
	/* The peer has acknowledged FIN */
	u8			fin_acked:1;
	/* A queue of this machine was full since the last ACK */
	u8			queue_full:1;
	/* ID of the next message or piece */
	u32			next_id;
	/* Number of the next message of the user */
	u32			next_number;
	/*
	 * Message of which only some pieces were taken from the user, or NULL.
	 * It may be compared with NULL without the lock
	 */
	struct dblp_tx_multi	*part;
	/* Chunks of settled messages, for new ones; the oldest first */
	struct list_head	chunk_cache;
	/* Chunks that dblp_work() must free */
	struct list_head	waste;
	/* Length of @chunk_cache */
	u32			n_cached;
	/* Length of @reports; may be read without the lock */
	u32			n_reports;
	/* Settled messages to be reported on the error queue */
	struct list_head	reports;
	/* Message last reported, for DBLP_SENT_LOSSMAP */
	struct dblp_tx_msg	*reported;
	/* Bytes that were queued when memory was refused, see @due.charge */
	int			charge_queued;
};

/* Pacer (output.c) */
struct dblp_sock_pace {
	/* When the next packet is allowed, ns */
	u64			next;
	/* Delay by late timers that the pacer has not made up for, ns */
	u64			late;
};

/* TCP small queues (tsq.c) */
struct dblp_sock_tsq {
	/*
	 * Sending waits until at most this many bytes are in queues of this
	 * machine; 0 if it does not wait; may be read without the lock
	 */
	u32			max;
	/* Resumes sending then; holds 1 of sk_wmem_alloc while scheduled */
	struct tasklet_struct	tasklet;
};

/* Control frames that are repeated until they are acknowledged (ctl.c) */
struct dblp_sock_ctl {
	/* Frames to be sent, by &enum dblp_ctl_rank */
	struct list_head	queue[__DBLP_CTL_RANKS];
	/* Frames in flight, the oldest first */
	struct list_head	flight[__DBLP_CTL_RANKS];
	/*
	 * Notices of @notices whose CLOSE must precede the ACK of packets that
	 * arrived after the close
	 */
	struct list_head	late;
	/* Largest number of such a packet, while @late is not empty */
	u64			late_pn;
	/* Notices of closed messages with unacknowledged frames, by ID */
	struct rb_root		notices;
	/* Frames about the connection */
	struct dblp_ctl		flow;
	struct dblp_ctl		fin_ping;
};

/* Incoming messages (rx.c, recv.c), and what the peer may send */
struct dblp_sock_rx {
	/* Message with ID @next, or NULL if it was not opened yet */
	struct dblp_rx_msg	*turn;
	/* Message of @msgs that was last looked up, or NULL */
	struct dblp_rx_msg	*found;
	/* ID of the next message for @ready */
	u32			next;
	/*
	 * Number of messages whose last piece is in @ready or @taken; may be
	 * read without the lock
	 */
	u32			n_readable;
	/*
	 * In placement mode: recvmsg() finds bytes or a message to return; may
	 * be read without the lock
	 */
	bool			placeable;
	/* A reader that may copy ahead waits */
	bool			ahead;
	/* The call of @reader copies to its user, instead of waiting */
	bool			copying;
	/* A call was refused because of @reader while a message was ready */
	bool			refused;
	/* A call of recvmsg() has placed bytes of the message of @chain */
	bool			begun;
	/* The peer has sent FIN */
	bool			fin;
	/* A message was read on this connection */
	bool			any_read;
	/*
	 * Task whose call holds a message or segments of it without the lock,
	 * or NULL; other calls wait until it ends. Only compared with current
	 */
	struct task_struct	*reader;

	struct_group(limits, /* for the peer, see dblp_conn_start() */
		/* Bytes of the largest message */
		u32		len_max;
		/* First message ID not allowed, as last sent */
		u32		id_limit;
		/* Total credit given, bytes, as last sent */
		u64		data_limit;
		/* Bytes of credit that may be outstanding, dblp_rx_adapt() */
		u32		window;
		/* Limit of @window: the most that a message may need */
		u32		window_max;
	);
	/* Bytes of credit used by messages opened */
	u64			opened;
	/* Bytes of credit of messages read */
	u64			consumed;
	/* Bytes of the messages of @n_readable */
	u64			unread;
	/* Bytes of credit that the peer has asked for by PING */
	u64			asked;
	/* Number of messages read */
	u32			consumed_msgs;
	/* Number of messages that are open */
	u32			n_open;
	/* Open messages that could not be closed when last judged */
	struct list_head	waits;
	/* Messages that are not in @ready yet, open or closed, by ID */
	struct rb_root		msgs;
	/* Closed messages and pieces to be read, in order */
	struct list_head	ready;
	/* Open messages to be judged again, in this order */
	struct list_head	judge;
	/* Open messages to be judged at a given time */
	struct timerqueue_head	due;
	/* Total number of the peer's messages, with @fin */
	u32			end;
	/* Deadline of the piece before @next, for later pieces, ns */
	u64			deadline_at;
	/*
	 * Position of the next piece for @ready: @offset is 0 if the piece
	 * begins a message. Else @total and @tag are those of its message, and
	 * the other fields sum up its earlier pieces: the highest @reason, the
	 * bytes @missing, and the @budget as dblp_rx_join() reports it
	 */
	struct {
		u32		offset;
		u32		total;
		u64		tag;
		u32		missing;
		u32		budget;
		u8		reason;
	} chain;
	/* Number of the user's message of @chain */
	u32			number;
	/* Bytes of that message in pieces that left @ready */
	u32			placed;
	/* Pieces of the message that @reader is copying, in whole mode */
	struct list_head	taken;
	/*
	 * Pieces of the message being placed that are fully placed: the first,
	 * and those with bytes missing
	 */
	struct list_head	part;
	/* Pieces of the message last read if bytes are missing, for DBLP_LOSSMAP */
	struct list_head	last;
	/* With @any_read: tag and number of that message */
	u64			last_tag;
	u32			last_number;
	/* Calls that wait for @reader */
	wait_queue_head_t	waiters;
	/* Estimates for policy early */
	struct dblp_early	early;
};

/* Packets received, and ACKs of them (frames.c) */
struct dblp_sock_acks {
	/* Packet numbers received */
	struct dblp_ranges	pns;
	/* Arrival time of the largest number in @pns, ns */
	u64			largest_at;
	/* When the last ACK was sent, ns */
	u64			sent_at;
	/* Number of ack-eliciting packets that are not acknowledged yet */
	u32			pending;
	/* An ACK must be sent at once */
	bool			now;
	/* Index of the port that the last ACK was sent from */
	u8			port;
	/* Packets received with CE, ECT(0), ECT(1) */
	u32			ecn_ce;
	u32			ecn_ect0;
	u32			ecn_ect1;
};

/* Frames of the packet being processed */
struct dblp_sock_pkt {
	/* Count of bytes from the SHARE frame */
	u32			share_all;
	/* Number of connections from the SHARE frame, 0 without one */
	u16			share;
	/* The packet has an ARRIVAL frame */
	bool			has_arrival;
	/* Time from the ARRIVAL frame */
	u32			arrival;
};

/* Connections closed by their user (conn.c) */
struct dblp_sock_orphan {
	/* @tx.moved at the last check */
	u64			moved;
	/* Since when that has not changed, ns */
	u64			since;
};

/* An AF_DBLP socket */
struct dblp_sock {
	/*
	 * @sk must be first. IP treats skb->sk of the packets that it sends as
	 * a struct inet_sock. Its fields before cork stay zero here; cork and
	 * later ones are for calls on an IP socket only
	 */
	union {
		struct sock		sk;
		u8			inet[offsetof(struct inet_sock, cork)];
	};
	/* Namespace; fixed */
	struct dblp_net		*dn;
	/* UDP socket, NULL until bound; lookups read it without the lock */
	struct dblp_endpoint	*ep;
	/* DBLP_AUTH_KEY, NULL without a key; fixed in a connection */
	struct dblp_auth	*auth;
	/* &enum dblp_deferred bits; atomic */
	unsigned long		deferred;
	/* In @conns if @hashed, in @peers if @peer_hashed; under RCU */
	struct rhash_head	conn_node;
	struct rhash_head	peer_node;
	bool			hashed;
	bool			peer_hashed;
	/* &enum dblp_state; may be read without the lock */
	u8			state;
	/*
	 * &enum dblp_rst_reason with which dblp_flush() must end the
	 * connection, or 0
	 */
	u8			end_reason;
	/* Positive errno for the user, with @end_reason */
	int			end_err;
	/* Number of the socket, for netlink; fixed */
	u32			id;
	/* The socket was made by a listener */
	bool			passive;
	/* It counts in @orphans of the namespace */
	bool			is_orphan;
	/* Address and port of bind(), port 0 before it */
	struct sockaddr_dblp	bound;
	/* Address and port in use */
	struct sockaddr_dblp	local;

	/*
	 * Fields that an attempt to connect sets, 0 in a socket that is not
	 * connected: see dblp_conn_unstart(). Each field that connect() or a
	 * packet of the handshake sets belongs here
	 */
	struct_group_tagged(dblp_attempt, attempt, /* see above */
		/* Address of the peer, fixed for the connection */
		struct sockaddr_dblp	peer;
		/* Bytes that may be sent in answer to received packets */
		u32			answer;
		/*
		 * With DBLP_SPRAY: UDP ports that the peer sends from, 0 for
		 * one not announced yet; the first is not used
		 */
		__be16			*peer_ports;
		/* Connection ID that the peer sends to */
		u64			cid;
		/* Connection ID and address of the peer */
		struct dblp_peer_key	peer_key;
		/* &enum dblp_feature that both ends have */
		u16			features;
		/*
		 * Origin of the times in ARRIVAL frames, which hides the clock
		 * of this machine
		 */
		u32			arrival_epoch;
		/* Route to the peer */
		struct dblp_path	path;
		/* Path MTU discovery */
		struct dblp_pmtu	pmtu;
		/* Packets sent */
		struct dblp_sent	sent;
		/*
		 * Since when sending has failed for lack of memory or of a
		 * route; 0 if sending works, or if packets are in flight
		 */
		u64			stuck_since;
		/* When connect() was called */
		u64			connect_at;
	);

	struct dblp_sock_opt	opt;
	struct dblp_sock_pkt	pkt;
	struct dblp_sock_acks	acks;
	struct dblp_sock_rx	rx;
	struct dblp_sock_due	due;
	struct dblp_sock_pace	pace;
	struct dblp_sock_tx	tx;
	union {
		/* Round-trip time, 0 before the connection is established */
		struct dblp_rtt		rtt;
		/* Until then: handshake of a client */
		struct dblp_handshake	hs;
	};
	/* Congestion control; @ops may be read without the lock */
	struct dblp_cc		cc;
	/* Marks sent, and the peer's counts of them */
	struct dblp_ecn		ecn;
	struct dblp_counts	counts;
	struct dblp_sock_conf	conf;
	struct dblp_sock_ctl	ctl;
	struct dblp_sock_tsq	tsq;
	/* Cancelled by dblp_destruct() at the latest */
	struct hrtimer		timer;
	struct dblp_sock_orphan	orphan;
	/*
	 * Listener: children not accepted yet. Child: in this list of its
	 * listener
	 */
	struct list_head	accept;
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
	return dsk->opt.placement ? READ_ONCE(dsk->rx.placeable) :
				    READ_ONCE(dsk->rx.n_readable);
}

/** dblp_rx_ended() - have all messages before the peer's FIN arrived? */
static inline bool dblp_rx_ended(const struct dblp_sock *dsk)
{
	return dsk->rx.fin && dsk->rx.next == dsk->rx.end &&
	       !dsk->rx.chain.offset;
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
	u32 max = dsk->rx.window_max;

	return max(max / 16, min_t(u32, max, DBLP_WINDOW_FIRST));
}

/**
 * dblp_single_max() - bytes of the largest message that is not sent in pieces
 * @dsk: connected socket
 *
 * It fits half of the send buffer, and the peer's window.
 */
static inline u32 dblp_single_max(const struct dblp_sock *dsk)
{
	u32 window = max_t(u32, dsk->tx.window, DBLP_WINDOW_MIN);

	return min_t(u64, window - DBLP_MSG_COST,
		     READ_ONCE(dsk->sk.sk_sndbuf) / 2);
}

/**
 * dblp_reports_full() - must reports be read before the next message begins?
 * @dsk: socket, perhaps not locked
 */
static inline bool dblp_reports_full(const struct dblp_sock *dsk)
{
	return READ_ONCE(dsk->tx.n_reports) >= DBLP_NOTIFY_MAX &&
	       READ_ONCE(dsk->opt.notify) && !READ_ONCE(dsk->tx.part);
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
