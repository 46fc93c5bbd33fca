/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * AF_DBLP sockets: messages with a loss budget, over UDP.
 *
 * The structures are the same for 32-bit and 64-bit programs: every field is
 * naturally aligned and all padding is explicit. Reserved fields must be zero
 * when given to the kernel and are zero when they come from it. How structures
 * grow, and what is reserved, is in Documentation/abi.rst.
 */
#ifndef _UAPI_LINUX_DBLP_H
#define _UAPI_LINUX_DBLP_H

#include <linux/types.h>
#include <linux/in6.h>
#include <linux/socket.h>

/*
 * The number space of address families is closed to modules, so the family
 * lives under a number which is reserved (for Ash) and that no kernel uses.
 */
#ifndef AF_DBLP
#define AF_DBLP		18
#define PF_DBLP		AF_DBLP
#endif

/** SOL_DBLP - level of the socket options and control messages below */
#define SOL_DBLP	318

/** DBLP_PPM - one, in the unit of every loss budget: parts per million */
#define DBLP_PPM	1000000

/** DBLP_CC_NAME_MAX - longest congestion control name, with its NUL byte */
#define DBLP_CC_NAME_MAX	16

/** DBLP_PHASES - number of phases; a phase is 0 ... DBLP_PHASES - 1 */
#define DBLP_PHASES	8

/** DBLP_NAME_MAX - longest name of a phase or a job, with its NUL byte */
#define DBLP_NAME_MAX	16

/** DBLP_INHERIT - value of an option: as the phase says, as at the start */
#define DBLP_INHERIT	0xffffffffU

/** DBLP_MSG_MAX - largest message in bytes that any socket can carry */
#define DBLP_MSG_MAX	0x7fff0000U

/**
 * struct sockaddr_dblp - address of an AF_DBLP socket
 * @sdblp_family: AF_DBLP
 * @sdblp_port: UDP port, network byte order; 0 in bind() means any
 * @sdblp_flowinfo: IPv6 flow label, network byte order; 0 with IPv4
 * @sdblp_addr: IPv6 address, or IPv4-mapped (::ffff:a.b.c.d); :: in bind()
 *	means any address of either protocol
 * @sdblp_scope_id: interface index of a link-local address, else 0
 *
 * Same layout as struct sockaddr_in6. The address length given to bind() and
 * connect() is the size of this structure or more.
 */
struct sockaddr_dblp {
	__kernel_sa_family_t	sdblp_family;
	__be16			sdblp_port;
	__be32			sdblp_flowinfo;
	struct in6_addr		sdblp_addr;
	__u32			sdblp_scope_id;
};

/**
 * enum dblp_policy - when a receiver closes a message
 * @DBLP_POLICY_FULL: when every byte has arrived; the budget is not used
 * @DBLP_POLICY_EAGER: as soon as what is missing fits the budget; the sender
 *	holds back the budget's share until it is needed
 * @DBLP_POLICY_EARLY: as soon as what is missing fits the budget and is lost as
 *	far as can be known: everything was sent once and what is still on its
 *	way had time to arrive, or the message takes longer than it should. The
 *	sender holds nothing back
 */
enum dblp_policy {
	DBLP_POLICY_FULL,
	DBLP_POLICY_EAGER,
	DBLP_POLICY_EARLY,
};

/**
 * enum dblp_order - order in which the segments of a message first go out
 * @DBLP_ORDER_AUTO: shuffled for messages with a deadline, or a budget worth one
 *	of their segments at least, else sequential
 * @DBLP_ORDER_SEQUENTIAL: by offset: what is missing is biased to the tail
 * @DBLP_ORDER_SHUFFLED: in a new random order for each message
 */
enum dblp_order {
	DBLP_ORDER_AUTO,
	DBLP_ORDER_SEQUENTIAL,
	DBLP_ORDER_SHUFFLED,
};

/**
 * enum dblp_fill - what recvmsg() puts where bytes are missing
 * @DBLP_FILL_ZERO: zero bytes
 * @DBLP_FILL_KEEP: nothing, the caller's buffer stays as it was
 */
enum dblp_fill {
	DBLP_FILL_ZERO,
	DBLP_FILL_KEEP,
};

/**
 * enum dblp_clr_mode - who moves a job between its phases low and high
 * @DBLP_CLR_OFF: operators only
 * @DBLP_CLR_ON: the detector of critical learning regimes, as %DBLP_NORM tells
 *	it norms
 * @DBLP_CLR_HELD: the detector, but for an operator who has set the phase since
 */
enum dblp_clr_mode {
	DBLP_CLR_OFF,
	DBLP_CLR_ON,
	DBLP_CLR_HELD,
};

/**
 * enum dblp_regime - what a detector last decided
 * @DBLP_REGIME_CRITICAL: the run is in a critical learning regime
 * @DBLP_REGIME_TOLERANT: it is not
 */
enum dblp_regime {
	DBLP_REGIME_CRITICAL,
	DBLP_REGIME_TOLERANT,
};

/**
 * enum dblp_reason - why a message was closed
 * @DBLP_REASON_COMPLETE: every byte has arrived
 * @DBLP_REASON_BUDGET: what is missing fits the effective budget
 * @DBLP_REASON_DEADLINE: its deadline has passed; what is missing may exceed the
 *	budget, see %DBLP_RCV_OVER_BUDGET
 * @DBLP_REASON_CANCELLED: its sender has cancelled it, see %DBLP_CANCEL: all of it
 *	is missing, whatever has come
 */
enum dblp_reason {
	DBLP_REASON_COMPLETE,
	DBLP_REASON_BUDGET,
	DBLP_REASON_DEADLINE,
	DBLP_REASON_CANCELLED,
};

/**
 * enum dblp_state - state of a socket, as in &struct dblp_info
 * @DBLP_STATE_CLOSED: neither connected nor listening
 * @DBLP_STATE_LISTEN: listen() was called
 * @DBLP_STATE_INIT_SENT: connecting: INIT sent, no cookie yet
 * @DBLP_STATE_COOKIE_SENT: connecting: the cookie was sent back
 * @DBLP_STATE_ESTABLISHED: connected
 * @DBLP_STATE_CLOSING: close() was called, messages or the FIN are still to be
 *	acknowledged
 */
enum dblp_state {
	DBLP_STATE_CLOSED,
	DBLP_STATE_LISTEN,
	DBLP_STATE_INIT_SENT,
	DBLP_STATE_COOKIE_SENT,
	DBLP_STATE_ESTABLISHED,
	DBLP_STATE_CLOSING,
};

/**
 * enum dblp_sockopt - options of level SOL_DBLP
 * @DBLP_BUDGET: __u32, ppm, 0 ... DBLP_PPM: loss budget of the messages that
 *	this socket sends, also of those under way that were not given one by
 *	%DBLP_SNDINFO. Like close policy, order and fill it is
 *	what the socket's phase says until it is set, and again after
 *	%DBLP_INHERIT was set
 * @DBLP_BUDGET_CAP: __u32, ppm: the most loss this socket accepts, whatever
 *	its peer allows. The effective budget of a message is the smaller of the
 *	sender's budget and the receiver's cap; with a cap of 0 nothing is ever
 *	missing, not even after a deadline. Until it is set, and again after
 *	%DBLP_INHERIT was set, it is the first of these that operators have set:
 *	the job's, the phase's, the namespace's when the socket was made. If they
 *	have set none, it is DBLP_PPM once %DBLP_FILL or %DBLP_PLACEMENT was set,
 *	which ask for messages with holes, and else 0
 * @DBLP_CLOSE_POLICY: __u32, &enum dblp_policy: for messages sent from now on
 * @DBLP_ORDER: __u32, &enum dblp_order: for messages sent from now on
 * @DBLP_ELEMENT: __u32, bytes, 1 ... 256: segments are multiples of it, so that
 *	no element is cut; default 8
 * @DBLP_FILL: __u32, &enum dblp_fill: for messages received from now on
 * @DBLP_CONGESTION: string: name of the congestion control
 * @DBLP_NOTIFY: __u32, 0 or 1: messages that are begun from now on are reported
 *	to the sender when they are closed, on the error queue, as
 *	%DBLP_CLOSEINFO and %DBLP_RANGES
 * @DBLP_USER_TIMEOUT: __u32, milliseconds, 1 ... 3600000: a peer that
 *	acknowledges nothing for so long is dead (ETIMEDOUT); default 30000
 * @DBLP_INFO: get only: &struct dblp_info
 * @DBLP_LOSSMAP: get only: &struct dblp_lossmap of the message last received
 * @DBLP_SENT_LOSSMAP: get only: &struct dblp_lossmap of the message last taken
 *	from the error queue
 * @DBLP_DEADLINE: __u32, microseconds, at most an hour, 0 means none: for
 *	messages sent from now on; default 0. So long after its first segment
 *	came, the receiver closes a message whatever is missing but critical
 *	bytes. The budget is exceeded then if need be, and both ends are told
 * @DBLP_ELIDE: __u32, 0 or 1: segments that are all zero, of messages sent from
 *	now on, are described instead of sent, and count as delivered; default 1
 * @DBLP_TOS: __u32, 0 ... 0xfc: TOS byte (IPv6: traffic class) of the packets
 *	with data that this socket sends from now on, without its two ECN bits,
 *	which must be 0; default 0. Control packets have DSCP EF
 * @DBLP_KEEPALIVE: __u32, milliseconds, 10 ... 86400000: with SO_KEEPALIVE, a
 *	peer that was not heard for so long while nothing was under way is
 *	probed; default 15000
 * @DBLP_PLACEMENT: __u32, 0 or 1: recvmsg() puts segments at their offsets in
 *	the caller's buffer as they arrive, and the peer may send messages of up
 *	to DBLP_MSG_MAX bytes if this was set before the handshake began. It can
 *	be set to 1 at any time, and to 0 only before the handshake (EISCONN)
 * @DBLP_PHASE: __u32: number of the phase the socket is in (ENOENT if there is
 *	none), or %DBLP_INHERIT: that of its job, or phase 0, as at the start
 * @DBLP_JOB: __u32: number of the job the socket is in (ENOENT if there is
 *	none, EPERM if it is another user's), 0 for none
 * @DBLP_NORM: set only: __u64, in units of 2^-32 (so 1 << 32 is 1.0): the norm
 *	of the gradient, for the detector of the socket's job (ENOENT if it is
 *	in none, EPERM if that is another user's). For one of its sockets, once a
 *	round; if that changes the phase, it is in force when the call returns
 * @DBLP_AUTH_KEY: set only: &struct dblp_auth_key: only who has the same key can
 *	connect, and make packets of the connection; default none. What listens
 *	gives it to the connections that it accepts from then on
 * @DBLP_PARTIAL_SEND: __u32, 0 or 1: sendmsg() may take a part of a message that
 *	is larger than the buffers, and return how many bytes that is; the next
 *	call must have exactly the rest. With 0, the default, it takes all or
 *	nothing: who does not wait gets EMSGSIZE for such a message. EBUSY in
 *	the midst of a message
 * @DBLP_CANCEL: set only: __u64, tag: give up the oldest message with this tag that
 *	was sent and is not closed. Nothing more of it is sent, its bytes are
 *	freed, and its receiver drops it, unless that has closed it already: the
 *	report (%DBLP_NOTIFY) says which. recvmsg() of the receiver fails with
 *	ECANCELED once in its place. ENOENT if there is none, EALREADY if those
 *	with this tag are cancelled or closed, EBUSY in the midst of it,
 *	EOPNOTSUPP if the peer is too old to be told
 * @DBLP_ECT: __u32, 0 or 1: packets with data that this socket sends from now on
 *	are ECT(0), if the congestion control heeds marks and the path carries
 *	them; default 1. With 0 none is: queues that mark drop them instead
 * @DBLP_SPRAY: __u32, 1 ... 16: UDP ports that each end of a connection sends
 *	from, so that routers spread its packets over several paths; default 1.
 *	connect() asks for as many; listen() takes up to as many, and who asks
 *	for more gets EMLINK. EISCONN after either of these
 */
enum dblp_sockopt {
	DBLP_BUDGET		= 1,
	DBLP_BUDGET_CAP		= 2,
	DBLP_CLOSE_POLICY	= 3,
	DBLP_ORDER		= 4,
	DBLP_ELEMENT		= 5,
	DBLP_FILL		= 6,
	DBLP_CONGESTION		= 7,
	DBLP_NOTIFY		= 8,
	DBLP_USER_TIMEOUT	= 9,
	DBLP_INFO		= 10,
	/* 11 and 12 are reserved: they were loss maps without an offset */
	DBLP_PLACEMENT		= 13,
	DBLP_DEADLINE		= 14,
	DBLP_ELIDE		= 15,
	/* 16 is reserved */
	DBLP_TOS		= 17,
	DBLP_KEEPALIVE		= 18,
	DBLP_PHASE		= 19,
	DBLP_JOB		= 20,
	DBLP_NORM		= 21,
	DBLP_AUTH_KEY		= 22,
	DBLP_LOSSMAP		= 23,
	DBLP_SENT_LOSSMAP	= 24,
	DBLP_PARTIAL_SEND	= 25,
	DBLP_CANCEL		= 26,
	DBLP_ECT		= 27,
	DBLP_SPRAY		= 28,
};

/* Bytes of a key */
#define DBLP_AUTH_KEY_MIN	16
#define DBLP_AUTH_KEY_MAX	64

/**
 * enum dblp_auth_flags - how a key is set
 * @DBLP_AUTH_ONLY: forget the one before, else that stays good as well: for
 *	whoever connects to a listener until it is forgotten, for a connection
 *	until its peer has the new one, too (until then another one is EBUSY)
 */
enum dblp_auth_flags {
	DBLP_AUTH_ONLY	= 1 << 0,
};

/**
 * struct dblp_auth_key - key that both ends of a connection have
 * @flags: &enum dblp_auth_flags; others are EINVAL
 * @length: bytes of @key, DBLP_AUTH_KEY_MIN ... DBLP_AUTH_KEY_MAX. 0 for no key
 *	from now on, which a connection cannot have any more, nor can it get its
 *	first one (EISCONN)
 * @key: secret bytes, not a word that could be guessed; what is behind @length
 *	must be 0
 */
struct dblp_auth_key {
	__u32	flags;
	__u32	length;
	__u8	key[DBLP_AUTH_KEY_MAX];
};

/**
 * enum dblp_auth_state - what is known of a socket's keys
 * @DBLP_AUTH_ON: it has one
 * @DBLP_AUTH_OLD: the one before it is still good
 * @DBLP_AUTH_SENDS_OLD: packets are made with that one: the peer has not shown
 *	that it has the newest
 */
enum dblp_auth_state {
	DBLP_AUTH_ON		= 1 << 0,
	DBLP_AUTH_OLD		= 1 << 1,
	DBLP_AUTH_SENDS_OLD	= 1 << 2,
};

/**
 * enum dblp_cmsg - control messages of level SOL_DBLP
 * @DBLP_SNDINFO: sendmsg(): &struct dblp_sndinfo
 * @DBLP_RCVINFO: recvmsg(): &struct dblp_rcvinfo
 * @DBLP_RANGES: recvmsg(), also from the error queue: array of &struct
 *	dblp_range, the loss map by rising offset; left out when nothing is
 *	missing. MSG_CTRUNC says that it did not fit: then ask for
 *	%DBLP_LOSSMAP or %DBLP_SENT_LOSSMAP
 * @DBLP_CLOSEINFO: recvmsg() with MSG_ERRQUEUE: &struct dblp_rcvinfo of a
 *	message which this socket has sent, as its receiver saw it
 * @DBLP_PLACED: recvmsg() with %DBLP_PLACEMENT: array of &struct dblp_range,
 *	what this call has placed, by rising offset; left out by a call that
 *	places all of a message
 */
enum dblp_cmsg {
	DBLP_SNDINFO		= 1,
	DBLP_RCVINFO		= 2,
	DBLP_RANGES		= 3,
	DBLP_CLOSEINFO		= 4,
	DBLP_PLACED		= 5,
};

/**
 * enum dblp_snd_flags - which fields of &struct dblp_sndinfo override the socket
 * @DBLP_SND_BUDGET: @budget is set
 * @DBLP_SND_POLICY: @policy is set
 * @DBLP_SND_DEADLINE: @deadline is set
 * @DBLP_SND_PHASE: @phase is set: budget and policy are that phase's, where
 *	they are not set themselves
 */
enum dblp_snd_flags {
	DBLP_SND_BUDGET		= 1 << 0,
	DBLP_SND_POLICY		= 1 << 1,
	DBLP_SND_DEADLINE	= 1 << 2,
	/* 1 << 3 is reserved */
	DBLP_SND_PHASE		= 1 << 4,
};

/**
 * struct dblp_sndinfo - how one message is sent
 * @tag: free for the sender's use, comes out at the receiver
 * @flags: &enum dblp_snd_flags; others are EINVAL
 * @budget: ppm, 0 ... DBLP_PPM
 * @critical: bytes at the start of the message that may never be missing
 * @deadline: microseconds, 0 means none: see %DBLP_DEADLINE
 * @phase: 0 ... DBLP_PHASES - 1; by default that of the socket
 * @policy: &enum dblp_policy
 * @reserved: 0
 *
 * A program may give a shorter structure, as it was in the program's time: what
 * is behind its end counts as 0. It may give a longer one if the kernel knows
 * all of it that is not 0 (else E2BIG).
 */
struct dblp_sndinfo {
	__u64	tag;
	__u32	flags;
	__u32	budget;
	__u32	critical;
	__u32	deadline;
	__u8	phase;
	__u8	policy;
	__u8	reserved[38];
};

/**
 * enum dblp_rcv_flags - more of what became of a message
 * @DBLP_RCV_OVER_BUDGET: more is missing than the effective budget allows: the
 *	deadline has passed
 */
enum dblp_rcv_flags {
	DBLP_RCV_OVER_BUDGET = 1 << 0,
};

/**
 * struct dblp_rcvinfo - what became of one message
 * @tag: from the sender's &struct dblp_sndinfo, else 0
 * @msg_id: counts the messages of one direction of a connection, from 0,
 *	modulo 2^32
 * @length: bytes of the message, missing ones counted
 * @missing: bytes that are missing
 * @ranges: number of ranges of the loss map
 * @budget: ppm: the budget the sender asked for; if it was changed while the message
 *	was on its way in pieces, the largest that was used
 * @phase: phase that the message was sent in
 * @reason: &enum dblp_reason
 * @flags: &enum dblp_rcv_flags
 * @reserved: 0
 *
 * It keeps this size, as control buffers are made for it.
 */
struct dblp_rcvinfo {
	__u64	tag;
	__u32	msg_id;
	__u32	length;
	__u32	missing;
	__u32	ranges;
	__u32	budget;
	__u8	phase;
	__u8	reason;
	__u8	flags;
	__u8	reserved[33];
};

/**
 * struct dblp_range - bytes of a message
 * @offset: first byte
 * @length: number of bytes, never 0
 */
struct dblp_range {
	__u32	offset;
	__u32	length;
};

/**
 * struct dblp_lossmap - what getsockopt(DBLP_LOSSMAP) gives
 * @tag: of the message
 * @msg_id: of the message
 * @ranges: number of ranges the message has; only those that fit the buffer
 *	are in it
 * @offset: bytes from the start of this structure to the missing ranges, which
 *	are &struct dblp_range by rising offset. It may be more than this
 *	structure has: all ranges need a buffer of @offset bytes and 8 for each
 * @reserved: 0
 */
struct dblp_lossmap {
	__u64	tag;
	__u32	msg_id;
	__u32	ranges;
	__u32	offset;
	__u32	reserved[3];
};

/** dblp_lossmap_range() - the first range of a loss map */
static inline struct dblp_range *dblp_lossmap_range(struct dblp_lossmap *map)
{
	return (struct dblp_range *)((char *)map + map->offset);
}

/**
 * struct dblp_info - state of one socket
 * @state: &enum dblp_state
 * @policy: &enum dblp_policy
 * @order: &enum dblp_order
 * @fill: &enum dblp_fill
 * @id: the socket's number in dblpctl, unique in the network namespace
 * @budget: ppm
 * @budget_cap: ppm
 * @peer_budget_cap: ppm, as the peer last said
 * @peer_msg_max: bytes: largest message that the peer takes
 * @seg_size: bytes of message in a full packet on the present path
 * @srtt_us: smoothed round-trip time, microseconds
 * @rttvar_us: its mean deviation, microseconds
 * @min_rtt_us: smallest round-trip time seen lately, microseconds
 * @cwnd: congestion window, bytes
 * @inflight: bytes sent and neither acknowledged nor lost
 * @pto_count: probe timeouts in a row
 * @reordering: packets of reordering that loss detection tolerates
 * @pacing_rate: bytes a second
 * @delivery_rate: bytes a second, latest sample that was not limited by the
 *	application
 * @bytes_first: message bytes sent for the first time
 * @bytes_again: message bytes sent again
 * @bytes_delivered: bytes of closed messages sent by this socket that arrived
 * @bytes_forgiven_unsent: bytes of closed messages missing and never sent
 * @bytes_forgiven_sent: bytes of closed messages missing though sent
 * @bytes_received: bytes of messages received that were closed
 * @bytes_missing: of those, the missing ones
 * @msgs_sent: messages sent that were closed
 * @msgs_sent_early: of those, closed with bytes missing
 * @msgs_received: messages received that were closed
 * @msgs_received_early: of those, closed with bytes missing
 * @pkts_sent: packets with a number that were sent
 * @pkts_lost: of those, declared lost
 * @pkts_received: packets accepted
 * @spurious: packets declared lost that were acknowledged later
 * @phase: number of the phase the socket is in
 * @job: number of the job the socket is in, 0 for none
 * @msgs_sent_complete: of @msgs_sent, those closed for %DBLP_REASON_COMPLETE
 * @msgs_sent_budget: of @msgs_sent, those closed for %DBLP_REASON_BUDGET
 * @msgs_sent_deadline: of @msgs_sent, those closed for %DBLP_REASON_DEADLINE
 * @msgs_received_complete: of @msgs_received, those closed for %DBLP_REASON_COMPLETE
 * @msgs_received_budget: of @msgs_received, those closed for %DBLP_REASON_BUDGET
 * @msgs_received_deadline: of @msgs_received, those closed for %DBLP_REASON_DEADLINE
 *
 * A message in pieces counts as one. Its reason is that of the piece which was
 * closed for the latest of them in &enum dblp_reason.
 * @bytes_elided: message bytes that were all zero, and described instead of
 *	sent
 * @auth: &enum dblp_auth_state
 * @own: which of the values above are the socket's own: bit n is set if option n
 *	was set for it, by its program or by an operator. It is for
 *	%DBLP_BUDGET, %DBLP_BUDGET_CAP, %DBLP_CLOSE_POLICY, %DBLP_ORDER,
 *	%DBLP_FILL and %DBLP_PHASE; all others of these are inherited
 * @whole_max: bytes: largest message that a call of sendmsg() takes which should
 *	not wait; it depends on SO_SNDBUF and the peer
 * @reports: reports on the error queue
 * @msgs_sent_cancelled: of @msgs_sent, those closed for %DBLP_REASON_CANCELLED
 * @msgs_received_cancelled: of @msgs_received, those closed for
 *	%DBLP_REASON_CANCELLED
 */
struct dblp_info {
	__u8	state;
	__u8	policy;
	__u8	order;
	__u8	fill;
	__u32	id;
	__u32	budget;
	__u32	budget_cap;
	__u32	peer_budget_cap;
	__u32	peer_msg_max;
	__u32	seg_size;
	__u32	srtt_us;
	__u32	rttvar_us;
	__u32	min_rtt_us;
	__u32	cwnd;
	__u32	inflight;
	__u32	pto_count;
	__u32	reordering;
	__u64	pacing_rate;
	__u64	delivery_rate;
	__u64	bytes_first;
	__u64	bytes_again;
	__u64	bytes_delivered;
	__u64	bytes_forgiven_unsent;
	__u64	bytes_forgiven_sent;
	__u64	bytes_received;
	__u64	bytes_missing;
	__u64	msgs_sent;
	__u64	msgs_sent_early;
	__u64	msgs_received;
	__u64	msgs_received_early;
	__u64	pkts_sent;
	__u64	pkts_lost;
	__u64	pkts_received;
	__u64	spurious;
	__u32	phase;
	__u32	job;
	__u64	msgs_sent_complete;
	__u64	msgs_sent_budget;
	__u64	msgs_sent_deadline;
	__u64	msgs_received_complete;
	__u64	msgs_received_budget;
	__u64	msgs_received_deadline;
	__u64	bytes_elided;
	__u32	auth;
	__u32	own;
	__u32	whole_max;
	__u32	reports;
	__u64	msgs_sent_cancelled;
	__u64	msgs_received_cancelled;
};

#endif /* _UAPI_LINUX_DBLP_H */
