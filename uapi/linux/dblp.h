/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * AF_DBLP sockets: messages with a loss budget, over UDP.
 *
 * The structures are the same for 32-bit and 64-bit programs: every field is
 * naturally aligned and all padding is explicit. Programs must set reserved
 * fields to zero, and the kernel returns them as zero. Documentation/abi.rst
 * says how structures grow and what is reserved.
 */
#ifndef _UAPI_LINUX_DBLP_H
#define _UAPI_LINUX_DBLP_H

#include <linux/types.h>
#include <linux/in6.h>
#include <linux/socket.h>

/*
 * A module cannot get a new address family number, so the family uses one that
 * is reserved (for Ash) and that no kernel uses.
 */
#ifndef AF_DBLP
#define AF_DBLP		18
#define PF_DBLP		AF_DBLP
#endif

/** SOL_DBLP - level of the socket options and control messages below */
#define SOL_DBLP	318

/** DBLP_PPM - a share of 1 in parts per million, the unit of loss budgets */
#define DBLP_PPM	1000000

/** DBLP_CC_NAME_MAX - longest congestion control name, with its NUL byte */
#define DBLP_CC_NAME_MAX	16

/** DBLP_PHASES - number of phases; a phase is 0 ... DBLP_PHASES - 1 */
#define DBLP_PHASES	8

/** DBLP_NAME_MAX - longest name of a phase or a job, with its NUL byte */
#define DBLP_NAME_MAX	16

/** DBLP_INHERIT - option value: use the inherited setting, as a new socket */
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
 * @DBLP_POLICY_EAGER: as soon as the missing bytes fit the budget. The sender
 *	holds back the budget's share of the message until it is needed
 * @DBLP_POLICY_EARLY: as soon as the missing bytes fit the budget and are
 *	probably lost. They are if each segment was sent once and those in
 *	flight had time to arrive, or if the message takes longer than expected.
 *	The sender holds nothing back
 */
enum dblp_policy {
	DBLP_POLICY_FULL,
	DBLP_POLICY_EAGER,
	DBLP_POLICY_EARLY,
};

/**
 * enum dblp_order - order in which the segments of a message are first sent
 * @DBLP_ORDER_AUTO: shuffled for a message with a deadline, or with a budget of
 *	at least one of its segments; else sequential
 * @DBLP_ORDER_SEQUENTIAL: by offset; missing bytes are biased to the tail
 * @DBLP_ORDER_SHUFFLED: in a new random order for each message
 */
enum dblp_order {
	DBLP_ORDER_AUTO,
	DBLP_ORDER_SEQUENTIAL,
	DBLP_ORDER_SHUFFLED,
};

/**
 * enum dblp_fill - what recvmsg() writes where bytes are missing
 * @DBLP_FILL_ZERO: zero bytes
 * @DBLP_FILL_KEEP: nothing; the caller's buffer keeps its bytes there
 */
enum dblp_fill {
	DBLP_FILL_ZERO,
	DBLP_FILL_KEEP,
};

/**
 * enum dblp_clr_mode - what moves a job between its phases low and high
 * @DBLP_CLR_OFF: operators only
 * @DBLP_CLR_ON: the detector of critical learning regimes, from the norms that
 *	%DBLP_NORM reports
 * @DBLP_CLR_HELD: operators only: the detector was on, then an operator set the
 *	phase. It stays so until an operator sets %DBLP_CLR_ON again
 */
enum dblp_clr_mode {
	DBLP_CLR_OFF,
	DBLP_CLR_ON,
	DBLP_CLR_HELD,
};

/**
 * enum dblp_regime - last decision of a job's detector
 * @DBLP_REGIME_CRITICAL: the job is in a critical learning regime
 * @DBLP_REGIME_TOLERANT: the job is in no critical learning regime
 */
enum dblp_regime {
	DBLP_REGIME_CRITICAL,
	DBLP_REGIME_TOLERANT,
};

/**
 * enum dblp_reason - why a message was closed
 * @DBLP_REASON_COMPLETE: every byte has arrived
 * @DBLP_REASON_BUDGET: the missing bytes fit the effective budget
 * @DBLP_REASON_DEADLINE: its deadline has passed. The missing bytes may exceed
 *	the budget, see %DBLP_RCV_OVER_BUDGET
 * @DBLP_REASON_CANCELLED: its sender has cancelled it, see %DBLP_CANCEL. All of
 *	its bytes count as missing, received ones too
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
 * @DBLP_STATE_INIT_SENT: connecting: INIT was sent, INIT-ACK is awaited
 * @DBLP_STATE_COOKIE_SENT: connecting: COOKIE-ECHO was sent
 * @DBLP_STATE_ESTABLISHED: connected
 * @DBLP_STATE_CLOSING: close() was called; messages or the FIN are not
 *	acknowledged yet
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
 *	this socket sends. It also applies to messages in flight, except those
 *	with a budget from %DBLP_SNDINFO. While it is not set, or set to
 *	%DBLP_INHERIT, the socket's phase decides; the same holds for close
 *	policy, order and fill
 * @DBLP_BUDGET_CAP: __u32, ppm: the most loss that this socket accepts. The
 *	effective budget of a message is the smaller of the sender's budget and
 *	the receiver's cap. With a cap of 0 no bytes are ever missing, not even
 *	after a deadline. While it is not set, or set to %DBLP_INHERIT, it is
 *	the first cap that operators have set: the job's, the phase's, or the
 *	namespace's at the time of socket(). If they have set none, it is
 *	DBLP_PPM once %DBLP_FILL or %DBLP_PLACEMENT was set, as these ask for
 *	messages with holes; else 0
 * @DBLP_CLOSE_POLICY: __u32, &enum dblp_policy: for messages sent from now on
 * @DBLP_ORDER: __u32, &enum dblp_order: for messages sent from now on
 * @DBLP_ELEMENT: __u32, bytes, 1 ... 256: size of an element. Segments are
 *	multiples of it, so no element is cut; default 8
 * @DBLP_FILL: __u32, &enum dblp_fill: for messages received from now on
 * @DBLP_CONGESTION: string: name of the congestion control
 * @DBLP_NOTIFY: __u32, 0 or 1: report closed messages to their sender, on the
 *	error queue, as %DBLP_CLOSEINFO and %DBLP_RANGES; for messages begun
 *	from now on
 * @DBLP_USER_TIMEOUT: __u32, milliseconds, 1 ... 3600000: time without any
 *	acknowledgment from the peer after which the connection ends with
 *	ETIMEDOUT; default 30000
 * @DBLP_INFO: get only: &struct dblp_info
 * @DBLP_LOSSMAP: get only: &struct dblp_lossmap of the message last received
 * @DBLP_SENT_LOSSMAP: get only: &struct dblp_lossmap of the message last taken
 *	from the error queue
 * @DBLP_DEADLINE: __u32, microseconds, at most an hour, 0 means none: for
 *	messages sent from now on; default 0. It counts from the arrival of the
 *	first segment. Once it has passed, the receiver closes the message as
 *	soon as no critical byte is missing, even beyond the budget; both ends
 *	get %DBLP_RCV_OVER_BUDGET then
 * @DBLP_ELIDE: __u32, 0 or 1: segments that are all zero, of messages sent from
 *	now on, are described instead of sent, and count as delivered; default 1
 * @DBLP_TOS: __u32, 0 ... 0xfc: TOS byte (IPv6: traffic class) of the packets
 *	with data that this socket sends from now on. Its two ECN bits must be
 *	0; default 0. Control packets have DSCP EF
 * @DBLP_KEEPALIVE: __u32, milliseconds, 10 ... 86400000: idle time after which
 *	the peer is probed, with SO_KEEPALIVE. A connection is idle while no
 *	packet arrives and none is in flight; default 15000
 * @DBLP_PLACEMENT: __u32, 0 or 1: recvmsg() puts segments at their offsets in
 *	the caller's buffer as they arrive. If it was set before the handshake,
 *	the peer may send messages of up to DBLP_MSG_MAX bytes. It can be set to
 *	1 at any time, and to 0 only before the handshake (EISCONN)
 * @DBLP_PHASE: __u32: number of the socket's phase (ENOENT if it does not
 *	exist), or %DBLP_INHERIT, the initial value: the phase of its job, or
 *	phase 0 without a job
 * @DBLP_JOB: __u32: number of the socket's job (ENOENT if it does not exist,
 *	EPERM if it belongs to another user), 0 for none
 * @DBLP_NORM: set only: __u64, in units of 2^-32 (so 1 << 32 is 1.0): norm of
 *	the gradient, for the detector of the socket's job (ENOENT if it has
 *	none, EPERM if that belongs to another user). One socket of the job
 *	reports it, once a round. If it changes the phase, the new phase is in
 *	force when the call returns
 * @DBLP_AUTH_KEY: set only: &struct dblp_auth_key: key of the connection;
 *	default none. Only a peer with the same key can connect and send valid
 *	packets. A listener passes it to the connections that it accepts from
 *	then on
 * @DBLP_PARTIAL_SEND: __u32, 0 or 1: sendmsg() may take a part of a message
 *	larger than the buffers, and return the number of bytes taken. The next
 *	call must have exactly the rest. With 0, the default, it takes all or
 *	nothing, and a non-blocking call gets EMSGSIZE for such a message. EBUSY
 *	while a message is taken in part
 * @DBLP_CANCEL: set only: __u64, tag: cancel the oldest message with this tag
 *	that was sent and is not closed. The sender stops sending it and frees
 *	its bytes. The receiver drops it, unless the receiver has closed it
 *	before; the report (%DBLP_NOTIFY) says which. In its place, recvmsg() of
 *	the receiver fails once with ECANCELED. ENOENT if no message has this
 *	tag, EALREADY if all of them are cancelled or closed, EBUSY while it is
 *	taken in part, EOPNOTSUPP if the peer does not support it
 * @DBLP_ECT: __u32, 0 or 1: packets with data that this socket sends from now
 *	on are ECT(0), if the congestion control responds to marks and the path
 *	carries them; default 1. With 0 they are Not-ECT, and queues drop them
 *	instead of marking them
 * @DBLP_SPRAY: __u32, 1 ... 16: UDP ports that each end of a connection sends
 *	from, so that routers spread its packets over several paths; default 1.
 *	connect() asks for this number. listen() accepts up to this number, and
 *	a client that asks for more gets EMLINK. EISCONN after either call
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
	DBLP_LOSSMAP		= 11,
	DBLP_SENT_LOSSMAP	= 12,
	DBLP_PLACEMENT		= 13,
	DBLP_DEADLINE		= 14,
	DBLP_ELIDE		= 15,
	DBLP_PARTIAL_SEND	= 16,
	DBLP_TOS		= 17,
	DBLP_KEEPALIVE		= 18,
	DBLP_PHASE		= 19,
	DBLP_JOB		= 20,
	DBLP_NORM		= 21,
	DBLP_AUTH_KEY		= 22,
	DBLP_CANCEL		= 23,
	DBLP_ECT		= 24,
	DBLP_SPRAY		= 25,
};

/* Bytes of a key */
#define DBLP_AUTH_KEY_MIN	16
#define DBLP_AUTH_KEY_MAX	64

/**
 * enum dblp_auth_flags - how a key is set
 * @DBLP_AUTH_ONLY: the previous key becomes invalid at once. Without this flag
 *	a listener accepts clients with either key, and a connection accepts
 *	either key until its peer has used the new one (EBUSY for another key
 *	until then)
 */
enum dblp_auth_flags {
	DBLP_AUTH_ONLY	= 1 << 0,
};

/**
 * struct dblp_auth_key - key that both ends of a connection share
 * @flags: &enum dblp_auth_flags; others are EINVAL
 * @length: bytes of @key, DBLP_AUTH_KEY_MIN ... DBLP_AUTH_KEY_MAX, or 0 to
 *	remove the key. A connection can neither remove its key nor add a first
 *	one (EISCONN)
 * @key: random secret bytes, not a password; bytes from @length on must be 0
 */
struct dblp_auth_key {
	__u32	flags;
	__u32	length;
	__u8	key[DBLP_AUTH_KEY_MAX];
};

/**
 * enum dblp_auth_state - state of a socket's keys
 * @DBLP_AUTH_ON: the socket has a key
 * @DBLP_AUTH_OLD: the previous key is still valid
 * @DBLP_AUTH_SENDS_OLD: packets are sent with the previous key, because the
 *	peer has not used the new one yet
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
 *	dblp_range, the loss map by rising offset; absent if no byte is missing.
 *	MSG_CTRUNC means that it did not fit: use %DBLP_LOSSMAP or
 *	%DBLP_SENT_LOSSMAP instead
 * @DBLP_CLOSEINFO: recvmsg() with MSG_ERRQUEUE: &struct dblp_rcvinfo of a
 *	message that this socket has sent, with the outcome at its receiver
 * @DBLP_PLACED: recvmsg() with %DBLP_PLACEMENT: array of &struct dblp_range,
 *	the bytes placed by this call, by rising offset; absent if the call
 *	placed a whole message
 */
enum dblp_cmsg {
	DBLP_SNDINFO		= 1,
	DBLP_RCVINFO		= 2,
	DBLP_RANGES		= 3,
	DBLP_CLOSEINFO		= 4,
	DBLP_PLACED		= 5,
};

/**
 * enum dblp_snd_flags - fields of &struct dblp_sndinfo that override the socket
 * @DBLP_SND_BUDGET: @budget is set
 * @DBLP_SND_POLICY: @policy is set
 * @DBLP_SND_DEADLINE: @deadline is set
 * @DBLP_SND_PHASE: @phase is set; it also gives the budget and policy if these
 *	are not set here
 */
enum dblp_snd_flags {
	DBLP_SND_BUDGET		= 1 << 0,
	DBLP_SND_POLICY		= 1 << 1,
	DBLP_SND_DEADLINE	= 1 << 2,
	DBLP_SND_PHASE		= 1 << 3,
};

/**
 * struct dblp_sndinfo - how one message is sent
 * @tag: any value; the receiver gets it in &struct dblp_rcvinfo
 * @flags: &enum dblp_snd_flags; others are EINVAL
 * @budget: ppm, 0 ... DBLP_PPM
 * @critical: bytes at the start of the message that may never be missing
 * @deadline: microseconds, 0 means none: see %DBLP_DEADLINE
 * @phase: 0 ... DBLP_PHASES - 1; by default that of the socket
 * @policy: &enum dblp_policy
 * @reserved: 0
 *
 * A program may pass a shorter structure, of an earlier version of this header:
 * the fields beyond its end count as 0. It may pass a longer one if the bytes
 * that the kernel does not know are 0 (else E2BIG).
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
 * enum dblp_rcv_flags - further outcome of a message
 * @DBLP_RCV_OVER_BUDGET: the missing bytes exceed the effective budget, because
 *	the deadline has passed
 */
enum dblp_rcv_flags {
	DBLP_RCV_OVER_BUDGET = 1 << 0,
};

/**
 * struct dblp_rcvinfo - outcome of one message
 * @tag: from the sender's &struct dblp_sndinfo, else 0
 * @msg_id: counts the messages of one direction of a connection, from 0,
 *	modulo 2^32
 * @length: bytes of the message, including missing ones
 * @missing: bytes that are missing
 * @ranges: number of ranges in the loss map
 * @budget: ppm, the sender's budget; the largest that was used, if it changed
 *	while the pieces of a long message were sent
 * @phase: phase that the message was sent in
 * @reason: &enum dblp_reason
 * @flags: &enum dblp_rcv_flags
 * @reserved: 0
 *
 * Its size never changes, because programs size control buffers by it.
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
 * struct dblp_lossmap - loss map, from getsockopt()
 * @tag: tag of the message
 * @msg_id: number of the message, as in &struct dblp_rcvinfo
 * @ranges: number of missing ranges; the buffer holds those of them that fit
 * @offset: bytes from the start of this structure to the missing ranges, which
 *	are &struct dblp_range by rising offset. It may exceed the size of this
 *	structure. All ranges need a buffer of @offset bytes plus 8 per range
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
 * @peer_budget_cap: ppm, the latest cap received from the peer
 * @peer_msg_max: bytes: largest message that the peer accepts
 * @seg_size: message bytes in a full packet on the present path
 * @srtt_us: smoothed round-trip time, microseconds
 * @rttvar_us: its mean deviation, microseconds
 * @min_rtt_us: smallest round-trip time seen lately, microseconds
 * @cwnd: congestion window, bytes
 * @inflight: bytes in flight: sent, neither acknowledged nor declared lost
 * @pto_count: probe timeouts in a row
 * @reordering: packets of reordering that loss detection tolerates
 * @pacing_rate: bytes a second
 * @delivery_rate: bytes a second, latest sample that was not limited by the
 *	application
 * @bytes_first: message bytes sent for the first time
 * @bytes_again: message bytes sent again
 * @bytes_delivered: bytes of closed outgoing messages that arrived
 * @bytes_forgiven_unsent: missing bytes of closed outgoing messages that were
 *	never sent
 * @bytes_forgiven_sent: missing bytes of closed outgoing messages that had been
 *	sent
 * @bytes_received: bytes of closed incoming messages, including missing ones
 * @bytes_missing: missing bytes in @bytes_received
 * @msgs_sent: closed outgoing messages
 * @msgs_sent_early: messages in @msgs_sent that were closed with bytes missing
 * @msgs_received: closed incoming messages
 * @msgs_received_early: messages in @msgs_received that were closed with bytes
 *	missing
 * @pkts_sent: numbered packets sent
 * @pkts_lost: packets in @pkts_sent that were declared lost
 * @pkts_received: packets accepted
 * @spurious: packets declared lost that were acknowledged later
 * @phase: number of the phase the socket is in
 * @job: number of the job the socket is in, 0 for none
 * @msgs_sent_complete: of @msgs_sent, those closed for %DBLP_REASON_COMPLETE
 * @msgs_sent_budget: of @msgs_sent, those closed for %DBLP_REASON_BUDGET
 * @msgs_sent_deadline: of @msgs_sent, those closed for %DBLP_REASON_DEADLINE
 * @msgs_received_complete: of @msgs_received, those closed for
 *	%DBLP_REASON_COMPLETE
 * @msgs_received_budget: of @msgs_received, those closed for
 *	%DBLP_REASON_BUDGET
 * @msgs_received_deadline: of @msgs_received, those closed for
 *	%DBLP_REASON_DEADLINE
 * @bytes_elided: message bytes in segments that were all zero, and described
 *	instead of sent
 * @auth: &enum dblp_auth_state
 * @own: settings that are the socket's own: bit n is set if the program or an
 *	operator has set option n of this socket. Bits exist for %DBLP_BUDGET,
 *	%DBLP_BUDGET_CAP, %DBLP_CLOSE_POLICY, %DBLP_ORDER, %DBLP_FILL and
 *	%DBLP_PHASE. Without its bit, such a setting is inherited
 * @whole_max: bytes: largest message that a non-blocking sendmsg() takes whole;
 *	it depends on SO_SNDBUF and the peer
 * @reports: reports on the error queue
 * @msgs_sent_cancelled: of @msgs_sent, those closed for %DBLP_REASON_CANCELLED
 * @msgs_received_cancelled: of @msgs_received, those closed for
 *	%DBLP_REASON_CANCELLED
 *
 * A message in pieces counts as one message. Its reason is the latest, in the
 * order of &enum dblp_reason, of the reasons of its pieces.
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
