/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AF_DBLP: messages, their segments, and the buffers of these segments. The
 * nouns are defined in dblp.h.
 */
#ifndef _NET_DBLP_MSG_H
#define _NET_DBLP_MSG_H

#include <linux/dblp.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <linux/timerqueue.h>
#include <linux/uio.h>

#include "core/closing.h"
#include "core/segmap.h"
#include "core/wire.h"
#include "mib.h"

struct dblp_ctl;
struct dblp_notice;
struct dblp_rcvinfo;
struct dblp_rx_msg;
struct dblp_sent_pkt;
struct dblp_sock;
struct dblp_tx_msg;

/* Instead of a packet number: no packet */
#define DBLP_CARRIED_NONE	(U64_MAX >> 1)

/**
 * struct dblp_carried - link between a frame and a packet that carries it
 * @next: next frame in the packet
 * @prev: previous frame in the packet, NULL if this is the first
 * @pn: number of the packet, or DBLP_CARRIED_NONE
 * @index: in @carried of the frame
 */
struct dblp_carried {
	struct dblp_carried	*next;
	struct dblp_carried	*prev;
	u64			pn:63;
	u64			index:1;
};

/**
 * struct dblp_ctl - a control frame that is repeated until it is acknowledged,
 *	or FIN and PING, which are repeated together
 * @list: on @ctl.queue (to be sent) or @ctl.flight (sent) of the socket; empty
 *	once the frame is acknowledged
 * @carried: the last two packets that carried the frame
 * @last: index in @carried of the latest packet
 * @waits: @list is on @ctl.queue
 * @type: &enum dblp_frame_type; 0 for FIN and PING
 * @words: LOSSMAP: number of words
 * @types: with @type 0: bits of the types to be sent or in flight
 * @first: LOSSMAP: first segment
 * @notice: CLOSE, LOSSMAP: notice that the frame belongs to
 */
struct dblp_ctl {
	struct list_head	list;
	struct dblp_carried	carried[2];
	u8			last:1;
	u8			waits:1;
	u8			type;
	union {
		u16		words;
		u16		types;
	};
	u32			first;
	struct dblp_notice	*notice;
};

/**
 * struct dblp_notice - frames about a message that was closed with bytes
 *	missing; freed when all of them are acknowledged
 * @node: in @ctl.notices of the socket, by message ID
 * @late: on @ctl.late of the socket, if missing segments arrived after the
 *	message was closed while its CLOSE is not acknowledged
 * @msg: the message; a reference is held
 * @owed: number of frames that are not acknowledged
 * @truesize: bytes charged to the socket for this structure
 * @frame: CLOSE, then a LOSSMAP for each stretch with a missing segment
 */
struct dblp_notice {
	struct rb_node		node;
	struct list_head	late;
	struct dblp_rx_msg	*msg;
	u32			owed;
	u32			truesize;
	struct dblp_ctl		frame[];
};

/* Priority of frames: CLOSE is sent first, because it stops the sender */
enum dblp_ctl_rank {
	DBLP_CTL_STOP,
	DBLP_CTL_OTHER,
	__DBLP_CTL_RANKS,
};

/**
 * struct dblp_tx_msg - an outgoing message or piece
 * @list: on @tx.msgs of the socket by rising @id, then on @tx.reports, or on
 *	@pieces of @multi
 * @node: in @tx.ids of the socket while it is on @tx.msgs
 * @lost_node: on @tx.lost of the socket while it has segments to repair
 * @tag: tag from the user
 * @multi: user's message that this is a piece of, NULL if it is no piece
 * @ctl: BUDGET frame, with @budget_sent; then CANCEL frame, with @cancelled and
 *	@started
 * @id: message ID
 * @number: number of the user's message, as reported
 * @len: bytes of this message or piece
 * @offset: bytes of the user's message before this piece
 * @total: bytes of the user's message
 * @seg_size: bytes of each segment but the last
 * @critical: bytes at the start that may not be missing
 * @crit_segs: segments with critical bytes; sent first and in sequence
 * @budget: ppm; with @closed: the budget that the receiver used
 * @budget_most: largest budget that a packet has carried, ppm
 * @deadline: microseconds, 0: none
 * @first_pass: segments that must be in flight or acknowledged
 * @cursor: slot of the next segment never sent, not counting elided segments
 * @missing: with @closed: bytes that are missing
 * @missing_segs: with @closed: segments that are missing
 * @ranges: number of ranges of the loss map, set when it is complete
 * @policy: &enum dblp_policy
 * @phase: number of its phase, which packets carry
 * @reason: with @closed: &enum dblp_reason
 * @flags: with @closed: &enum dblp_rcv_flags
 * @meta: it has a META frame
 * @meta_acked: the peer has the META frame
 * @started: it has taken its credit, so segments may be sent
 * @closed: the receiver has closed it; at most its loss map is awaited
 * @shuffled: segments are in random order
 * @auto_order: the order depends on the budget
 * @reshuffled: segments are in sequence below @shuffle_base and in random order
 *	from there on
 * @own_budget: changes of the socket's budget do not apply
 * @joined: this is the @msg of a &struct dblp_tx_multi
 * @budget_sent: a BUDGET frame was queued, so a CLOSE may use an earlier budget
 * @off_buffer: it is settled, and @truesize does not count in the send buffer
 * @cancelled: the user has cancelled it: no further segments are sent, and only
 *	the memory of @acked, @need, @zeros and @sent is left
 * @bare: it was cancelled before it was started: it has not even that memory,
 *	and uses no credit for its bytes
 * @notify: DBLP_NOTIFY when it was begun; not set in pieces
 * @shuffle_base: with @reshuffled: first slot that is not in sequence
 * @shuffle: permutation of the segments after the critical ones, or from
 *	@shuffle_base on
 * @acked: segments acknowledged
 * @need: segments to be repaired: lost, without a copy in flight
 * @lossmap: segments that no LOSSMAP frame has listed as missing; without bits
 *	before the first frame
 * @zeros: segments that are elided, see tx_seg.c; without bits if there are
 *	none
 * @ahead: number of elided segments in slots from @cursor on
 * @undescribed: number of elided segments in @need
 * @described: number of elided segments that were ever described
 * @least: least segments of a first pass: those with critical bytes, and elided
 *	ones
 * @segs: memory of @acked, @need, @zeros and @sent
 * @few_segs: memory for @segs if the segments are few; zeroed
 * @sent: for each segment: number of copies in flight, and whether it was ever
 *	sent
 * @room: bytes kept free before each segment, for the headers of its packet
 * @short_slot: slot of a segment that is shorter than the others, U32_MAX if
 *	there is none
 * @truesize: bytes charged to the socket for the message
 * @buf_truesize: part of @truesize that is for the bytes of the message
 * @n_chunks: number of chunks
 * @chunk_order: order of the chunks' size in pages; the last chunk may be
 *	smaller
 * @chunks: memory of the bytes, see txbuf.c; freed when the message is closed.
 *	NULL for a chunk whose segments are all elided
 * @small: memory of the bytes, instead of @chunks, if they are few
 */
struct dblp_tx_msg {
	struct list_head	list;
	struct rb_node		node;
	struct list_head	lost_node;
	u64			tag;
	struct dblp_tx_multi	*multi;
	struct dblp_ctl		ctl;
	u32			id;
	u32			number;
	u32			len;
	u32			offset;
	u32			total;
	u32			seg_size;
	u32			critical;
	u32			crit_segs;
	u32			budget;
	u32			budget_most;
	u32			deadline;
	u32			first_pass;
	u32			cursor;
	u32			missing;
	u32			missing_segs;
	u32			ranges;
	u8			policy;
	u8			phase;
	u8			reason;
	u8			flags;
	u8			meta:1;
	u8			meta_acked:1;
	u8			started:1;
	u8			closed:1;
	u8			shuffled:1;
	u8			auto_order:1;
	u8			reshuffled:1;
	u8			own_budget:1;
	u8			joined:1;
	u8			budget_sent:1;
	u8			off_buffer:1;
	u8			cancelled:1;
	u8			bare:1;
	u8			notify:1;
	u32			shuffle_base;
	struct dblp_shuffle	shuffle;
	struct dblp_segmap	acked;
	struct dblp_segmap	need;
	struct dblp_segmap	lossmap;
	struct dblp_segmap	zeros;
	u32			ahead;
	u32			undescribed;
	u32			described;
	u32			least;
	void			*segs;
	unsigned long		few_segs[4];
	u8			*sent;
#define DBLP_SEG_SENT		0x80
#define DBLP_SEG_COPIES		0x7f
	u32			room;
	u32			short_slot;
	u32			truesize;
	u32			buf_truesize;
	u32			n_chunks;
	u32			chunk_order;
	struct page		**chunks;
	u8			*small;
};

/**
 * struct dblp_tx_multi - a user's message that is sent in pieces
 * @msg: common attributes and joint outcome of the pieces; it has neither bytes
 *	nor segments, and becomes the report
 * @pieces: settled pieces with bytes missing, by offset, for the loss map
 * @refs: number of pieces that are not settled, plus one until the last piece
 *	was taken from the user
 * @taken: bytes taken from the user
 */
struct dblp_tx_multi {
	struct dblp_tx_msg	msg;
	struct list_head	pieces;
	u32			refs;
	u32			taken;
};

/**
 * struct dblp_tx_cancel - progress of cancelling a message, piece by piece
 * @tag: tag of the message
 * @number: number of the user's message, with @found
 * @next: message ID at which to continue
 * @end: message ID before which to stop
 * @found: a message with @tag was found that could be cancelled
 * @err: result so far
 */
struct dblp_tx_cancel {
	u64	tag;
	u32	number;
	u32	next;
	u32	end;
	bool	found;
	int	err;
};

static inline struct dblp_tx_multi *dblp_tx_multi(struct dblp_tx_msg *msg)
{
	return container_of(msg, struct dblp_tx_multi, msg);
}

/**
 * struct dblp_rx_batch - the last buffers of a message, if each begins in the
 *	page where the previous one ends; see rx_data.c
 * @n: number of buffers
 * @bytes: bytes of the message in these buffers
 * @held: bytes charged for these buffers
 * @page: page that the last buffer ends in, or NULL
 */
struct dblp_rx_batch {
	u32		n;
	u32		bytes;
	u32		held;
	struct page	*page;
};

/**
 * struct dblp_rx_msg - an incoming message or piece
 * @node: in @rx.msgs of the socket, until all earlier messages are closed too
 * @list: on @rx.waits or @rx.judge of the socket while it is open; later on
 *	@rx.ready, then on @rx.part or @rx.last
 * @due: in @rx.due of the socket
 * @refs: references, see "Messages" in dblp.h
 * @tag: tag from the META frame
 * @id: message ID
 * @number: number of the user's message, as reported; set when it is put on
 *	@rx.ready
 * @len: bytes of this message or piece
 * @offset: bytes of the user's message before this piece, from the META frame
 * @total: bytes of the user's message, from the META frame
 * @seg_size: bytes of each segment but the last
 * @missing: bytes that have not arrived
 * @elided: bytes of segments that were described, see tx_seg.c
 * @critical: bytes at the start that may not be missing
 * @budget: the sender's budget, ppm
 * @budget_pn: number of the packet that carried @budget
 * @ranges: number of ranges of the loss map, set at close
 * @hole: all segments with a lower index have arrived
 * @policy: &enum dblp_policy
 * @phase: number of the sender's phase
 * @reason: with @closed: &enum dblp_reason
 * @flags: with @closed: &enum dblp_rcv_flags
 * @meta: it has a META frame
 * @meta_missing: the META frame has not arrived yet
 * @closed: it takes no further segments
 * @spent: it was read, or is a piece to be joined, so its credit, except that
 *	for its bytes, must be given back
 * @noticed: it was closed with bytes missing, and frames about that are not
 *	acknowledged yet
 * @given_back: the credit of @spent was given back
 * @bare: it was cancelled before it was started, so its bytes use no credit
 * @deadline: deadline from the META frame, microseconds
 * @deadline_at: time from which all bytes but critical ones may be missing; 0:
 *	never
 * @timing: with policy early: arrival times of its segments
 * @have: segments that have arrived
 * @truesize: bytes charged to the socket for this structure and @bits
 * @skbs: buffers of these segments, in order of arrival; &struct dblp_skb_cb
 * @batch: last buffers of @skbs that may still be copied together; empty once a
 *	reader has taken a buffer
 * @packed: buffer of @skbs that was allocated for the message and may have
 *	room, or NULL
 * @copied: last buffer of @skbs that a reader has copied ahead, see
 *	recv_ahead.c, or NULL
 * @seen: bytes that had arrived when a reader last copied ahead
 * @place_node: on the list of a reader that copies before the message is
 *	complete
 * @taken: buffers of @skbs that this reader is copying
 * @base: bytes of the user's message before this piece, for this reader
 * @bits: memory of @have
 */
struct dblp_rx_msg {
	struct rb_node		node;
	struct list_head	list;
	struct timerqueue_node	due;
	u32			refs;
	u32			id;
	u64			tag;
	u32			number;
	u32			len;
	u32			offset;
	u32			total;
	u32			seg_size;
	u32			missing;
	u32			elided;
	u32			critical;
	u32			budget;
	u64			budget_pn;
	u32			ranges;
	u32			hole;
	u8			policy;
	u8			phase;
	u8			reason;
	u8			flags;
	u8			meta:1;
	u8			meta_missing:1;
	u8			closed:1;
	u8			spent:1;
	u8			noticed:1;
	u8			given_back:1;
	u8			bare:1;
	u32			deadline;
	u64			deadline_at;
	struct dblp_rx_timing	timing;
	struct dblp_segmap	have;
	u32			truesize;
	struct sk_buff_head	skbs;
	struct dblp_rx_batch	batch;
	struct sk_buff		*packed;
	struct sk_buff		*copied;
	u32			seen;
	struct list_head	place_node;
	struct sk_buff_head	taken;
	u32			base;
	unsigned long		bits[];
};

/**
 * struct dblp_skb_run - consecutive segments in consecutive packets of a buffer
 * @offset: offset of the first segment in its message, bytes
 * @hdr_len: bytes of each packet before its segment
 * @first: index in the train of the first packet
 * @n: number of segments
 */
struct dblp_skb_run {
	u32	offset;
	u16	hdr_len;
	u8	first;
	u8	n;
};

/**
 * struct dblp_skb_zeros - zero map that is the only content of a buffer
 * @first: segment of the first bit of the map
 * @words: length of the map, words
 * @from: first bit whose segment was not placed yet
 * @to: end of the bits that are being placed; all in whole mode
 * @hdr_len: bytes of the packet before the map
 */
struct dblp_skb_zeros {
	u32	first;
	u32	words;
	u32	from;
	u32	to;
	u16	hdr_len;
};

/**
 * struct dblp_skb_cb - AF_DBLP's part of a received buffer's control block
 * @run: segments that the message uses of this buffer, once it is queued there
 * @zeros: with @is_zeros: the zero map
 * @n_runs: number of runs
 * @stride: bytes from one packet of the train to the next, or of a single
 *	packet
 * @n: number of packets. This field and the next ones do not overlap IP's part
 * @ecn: ECN field of the IP header
 * @is_zeros: the buffer has a zero map instead of segments, see tx_seg.c
 */
struct dblp_skb_cb {
#define DBLP_SKB_RUNS	5
	union {
		struct dblp_skb_run	run[DBLP_SKB_RUNS];
		struct dblp_skb_zeros	zeros;
	};
	u16			stride;
	u16			n;
	u8			n_runs;
	u8			ecn;
	bool			is_zeros;
};

#define DBLP_SKB_CB(skb)	((struct dblp_skb_cb *)(skb)->cb)

/** dblp_rx_run_bytes() - bytes of the segments of a run of @msg */
static inline u32 dblp_rx_run_bytes(const struct dblp_rx_msg *msg,
				    const struct dblp_skb_run *r)
{
	return min(r->n * msg->seg_size, msg->len - r->offset);
}

/**
 * struct dblp_rx_cursor - position in user memory that a message is copied to
 * @base: position of the message's first byte
 * @at: position of byte @pos
 * @pos: offset in the message, bytes
 * @size: bytes of user memory
 */
struct dblp_rx_cursor {
	struct iov_iter	base;
	struct iov_iter	at;
	size_t		pos;
	size_t		size;
};

/**
 * struct dblp_ahead - copying ahead by a call of recvmsg(), see recv_ahead.c
 * @parts: messages and pieces that buffers were taken of; references are held
 * @cursor: position in user memory
 * @may: the call may copy ahead
 */
struct dblp_ahead {
	struct list_head	parts;
	struct dblp_rx_cursor	cursor;
	bool			may;
};

/* Packets of a train; only malicious senders make longer ones */
#define DBLP_TRAIN_MAX	255

/**
 * struct dblp_train - packets received in one buffer: joined by GRO, or sent in
 *	one buffer by GSO and split by no device on the path
 * @skb: buffer with the packets one after another; a reference is held
 * @truesize: bytes of memory that @skb holds
 * @page_first: first page that @skb refers to, or NULL
 * @page_last: last page that @skb refers to
 * @msg: message that took the latest segments, with a reference; or NULL
 * @tail: last buffer with these segments in the queue of @msg: @skb or a clone
 *	of it; NULL if there is none
 * @n_skbs: number of such buffers in that queue
 * @queued: @skb is on the queue of a message
 * @stride: bytes from one packet to the next, or of a single packet; not 0 if
 *	there are several. The last packet may be shorter
 * @n: number of packets, at least 1
 * @now: when its connection began to process it
 */
struct dblp_train {
	struct sk_buff		*skb;
	u32			truesize;
	struct page		*page_first;
	struct page		*page_last;
	struct dblp_rx_msg	*msg;
	struct sk_buff		*tail;
	u32			n_skbs;
	bool			queued;
	u32			stride;
	u32			n;
	u64			now;
};

/**
 * struct dblp_run - consecutive packets of a train, processed together
 * @train: the train
 * @h: header of the first packet
 * @d: data header of the first packet, if it has one
 * @pn: full packet number of the first packet; 0 for an ACK
 * @p: headers and control frames of the first packet, in memory that its sender
 *	cannot write to
 * @len: bytes of the first packet
 * @first: index of the first packet in the train
 * @n: number of packets; reduced to the number that was processed
 * @apart: the first packet cannot be processed in place, see dblp_run_hdr()
 * @hdr: copy of headers in memory that the sender can write to
 */
struct dblp_run {
	struct dblp_train	*train;
	struct dblp_hdr		h;
	struct dblp_data	d;
	u64			pn;
	const u8		*p;
	u32			len;
	u32			first;
	u32			n;
	bool			apart;
	u8			hdr[DBLP_HDR_LEN + DBLP_DATA_HDR_LEN +
				    DBLP_META_LEN + DBLP_AUTH_LEN];
};

/** dblp_run_ctl() - control frames of the first packet of a run */
static inline const u8 *dblp_run_ctl(const struct dblp_run *run)
{
	return run->p + DBLP_HDR_LEN +
	       (run->h.type == DBLP_PKT_DATA ? DBLP_DATA_HDR_LEN : 0);
}

/** dblp_tx_forgivable() - may a message be closed with bytes missing? */
static inline bool dblp_tx_forgivable(const struct dblp_tx_msg *msg)
{
	return msg->budget_most || msg->deadline;
}

/** dblp_tx_begun() - was any segment of a message sent or described? */
static inline bool dblp_tx_begun(const struct dblp_tx_msg *msg)
{
	return msg->cursor || msg->described;
}

/** dblp_tx_over() - is a message closed or cancelled? */
static inline bool dblp_tx_over(const struct dblp_tx_msg *msg)
{
	return msg->closed || msg->cancelled;
}

/** dblp_tx_elided() - is this segment described instead of sent? */
static inline bool dblp_tx_elided(const struct dblp_tx_msg *msg, u32 seg)
{
	return msg->zeros.count && dblp_segmap_test(&msg->zeros, seg);
}

/** dblp_tx_copies_full() - is the count of copies of a segment full? */
static inline bool dblp_tx_copies_full(const struct dblp_tx_msg *msg, u32 seg)
{
	return (msg->sent[seg] & DBLP_SEG_COPIES) == DBLP_SEG_COPIES;
}

/** dblp_tx_live() - number of segments acknowledged, in flight, or described */
static inline u32 dblp_tx_live(const struct dblp_tx_msg *msg)
{
	return msg->cursor + msg->ahead - msg->need.count;
}

/** dblp_before() - is message ID @a before @b, modulo 2^32? */
static inline bool dblp_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* rx_data.c: received segments */
bool dblp_rx_measure(struct dblp_train *t);
struct dblp_zeromap dblp_run_zeromap(const struct dblp_run *run);
int dblp_rx_data(struct dblp_sock *dsk, struct dblp_run *run,
		 const struct dblp_frame *meta, enum dblp_mib_item *why);
void dblp_rx_train_done(struct dblp_sock *dsk, struct dblp_train *t);

/* rx_cancel.c: incoming messages that their sender has cancelled */
int dblp_rx_cancel(struct dblp_sock *dsk, const struct dblp_frame *f, u64 pn);

/* rx_wake.c: time to wake a reader of a message that is not closed */
struct dblp_rx_msg *dblp_place_next(struct dblp_sock *dsk,
				    struct dblp_rx_msg *msg, u32 *base);
bool dblp_place_any(struct dblp_sock *dsk);
void dblp_place_wake(struct dblp_sock *dsk);
bool dblp_ahead_due(const struct dblp_sock *dsk);
void dblp_ahead_wake(struct dblp_sock *dsk);

/* rx_close.c: incoming messages: closed */
int dblp_rx_try_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_judge(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_judge_all(struct dblp_sock *dsk);
void dblp_rx_judge_some(struct dblp_sock *dsk, u64 now);
bool dblp_rx_update_budget(struct dblp_rx_msg *msg, u32 ppm, u64 pn);
bool dblp_budget_known(struct dblp_sock *dsk, u32 id);
void dblp_rx_budget(struct dblp_sock *dsk, const struct dblp_frame *f, u64 pn);
void dblp_rx_straggler(struct dblp_sock *dsk, u64 pn);
void dblp_rx_pass_ended(struct dblp_sock *dsk);

/* rx.c: incoming messages: opened, delivered */
bool dblp_rx_may_open(const struct dblp_sock *dsk, u32 id, u32 bytes);
struct dblp_rx_msg *dblp_rx_open(struct dblp_sock *dsk,
				 const struct dblp_data *d, u32 seg_size);
void dblp_rx_unopen(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_unwait(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
struct dblp_rx_msg *dblp_rx_find(struct dblp_sock *dsk, u32 id);
bool dblp_rx_any_open(struct dblp_sock *dsk);
void dblp_rx_deliver(struct dblp_sock *dsk, u32 most);
void dblp_rx_closed(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
bool dblp_rx_eof(const struct dblp_sock *dsk);
int dblp_rx_fin(struct dblp_sock *dsk, u32 end);
void dblp_rx_purge_open(struct dblp_sock *dsk);
void dblp_rx_purge(struct dblp_sock *dsk);

/* tx_close.c: the end of outgoing messages */
void dblp_tx_acked(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		   u32 n, bool was_lost);
void dblp_tx_lost(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg);
int dblp_tx_close(struct dblp_sock *dsk, const struct dblp_frame *f);
int dblp_tx_lossmap(struct dblp_sock *dsk, const struct dblp_frame *f);
bool dblp_tx_cancel(struct dblp_sock *dsk, struct dblp_tx_cancel *c);
void dblp_tx_cancel_acked(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
void dblp_tx_settle(struct dblp_sock *dsk, u32 most);
void dblp_tx_purge(struct dblp_sock *dsk);
void dblp_tx_purge_reports(struct dblp_sock *dsk);

/* tx.c: outgoing messages */
int dblp_tx_cut(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
void dblp_tx_queue(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
struct dblp_tx_msg *dblp_tx_find(const struct dblp_sock *dsk, u32 id);
struct dblp_tx_msg *dblp_tx_from(const struct dblp_sock *dsk, u32 id);
struct dblp_tx_msg *dblp_tx_after(const struct dblp_sock *dsk,
				  struct dblp_tx_msg *msg);
void dblp_tx_leave(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
u64 dblp_tx_wants(const struct dblp_sock *dsk);
u32 dblp_tx_run(const struct dblp_tx_msg *msg);
void dblp_tx_advance(struct dblp_sock *dsk);
struct dblp_tx_msg *dblp_tx_pick(struct dblp_sock *dsk, u32 *seg, bool *again);
void dblp_tx_mark_lost(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
void dblp_tx_unmark_lost(struct dblp_tx_msg *msg);
void dblp_tx_sent(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg,
		  u32 n, bool again);
void dblp_tx_described(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg);
void dblp_tx_recount(struct dblp_sock *dsk);
void dblp_tx_recount_some(struct dblp_sock *dsk);
u32 dblp_tx_unsent(const struct dblp_tx_msg *msg);
u64 dblp_tx_never_sent(const struct dblp_sock *dsk);

/* ctl.c: control frames repeated until acknowledged; credit */
void dblp_ctl_begin(struct dblp_sock *dsk);
void dblp_ctl_add(struct dblp_sock *dsk, u8 type);
int dblp_ctl_add_close(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_ctl_flow(struct dblp_sock *dsk, struct dblp_frame *f);
u64 dblp_rx_cost(const struct dblp_rx_msg *msg);
void dblp_rx_grow_window(struct dblp_sock *dsk, const struct dblp_rx_msg *msg);
u64 dblp_rx_credit_waits(const struct dblp_sock *dsk);
bool dblp_rx_offer(struct dblp_sock *dsk);
void dblp_rx_give_back(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_consume(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
bool dblp_ctl_waits(const struct dblp_sock *dsk);
bool dblp_ctl_owed(const struct dblp_sock *dsk);
u8 *dblp_ctl_fill(struct dblp_sock *dsk, u8 *p, const u8 *end, u64 pn,
		  int probe, struct dblp_carried **first);
bool dblp_ctl_fill_late(struct dblp_sock *dsk, u8 **p, const u8 *end);
u8 *dblp_ctl_fill_closes(struct dblp_sock *dsk, u8 *p, const u8 *end);
struct dblp_tx_msg *dblp_ctl_acked(struct dblp_sock *dsk,
				   struct dblp_sent_pkt *pkt);
u32 dblp_ctl_lost(struct dblp_sock *dsk, const struct dblp_sent_pkt *pkt);
void dblp_ctl_purge(struct dblp_sock *dsk);
void dblp_ctl_budget(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_cancel(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_forget(struct dblp_sock *dsk, struct dblp_tx_msg *tx);
void dblp_ctl_late(struct dblp_sock *dsk, u32 id, u64 pn);

/* msg.c: message objects, and messages in pieces */
void *dblp_tx_zalloc(struct dblp_sock *dsk, u32 *size);
struct dblp_tx_msg *dblp_tx_alloc(struct dblp_sock *dsk, u32 len);
void dblp_tx_free(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
void dblp_tx_strip(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
struct dblp_tx_multi *dblp_multi_alloc(struct dblp_sock *dsk, u32 total);
void dblp_multi_put(struct dblp_sock *dsk, struct dblp_tx_multi *multi);
struct dblp_tx_msg *dblp_multi_settled(struct dblp_sock *dsk,
				       struct dblp_tx_msg *msg, bool keep);
struct dblp_range *dblp_tx_ranges(struct dblp_tx_msg *msg);
void dblp_rx_free_bytes(struct dblp_rx_msg *msg, bool read);
void dblp_rx_drop_cancelled(struct dblp_rx_msg *msg);
void dblp_rx_put(struct dblp_sock *dsk, struct dblp_rx_msg *msg);
void dblp_rx_put_list(struct dblp_sock *dsk, struct list_head *msgs);
struct dblp_range *dblp_rx_ranges(const struct list_head *pieces, u32 ranges);
bool dblp_rx_cancelled(const struct list_head *pieces);
void dblp_rx_join(const struct list_head *pieces, struct dblp_rcvinfo *info);

/* txbuf.c: the memory of outgoing messages */
int dblp_txbuf_reserve(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
int dblp_txbuf_alloc(struct dblp_tx_msg *msg);
void dblp_txbuf_retire(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
void dblp_txbuf_sweep(struct dblp_sock *dsk, u32 most);
void dblp_txbuf_drop_cache(struct dblp_sock *dsk);
void dblp_txbuf_free(struct dblp_sock *dsk, struct dblp_tx_msg *msg);
u32 dblp_txbuf_trim(struct dblp_tx_msg *msg);
int dblp_txbuf_copy(struct dblp_tx_msg *msg, struct iov_iter *from);
void dblp_txbuf_write(struct dblp_tx_msg *msg, u32 slot, u32 n, u8 *hdr,
		      u32 pn, u32 seg);
void dblp_txbuf_frags(const struct dblp_tx_msg *msg, struct sk_buff *skb,
		      u32 pos, u32 len);

/* tx_seg.c: sending order of segments, segments that are all zero */
u32 dblp_tx_slot_seg(const struct dblp_tx_msg *msg, u32 slot);
u32 dblp_tx_next_seg(const struct dblp_tx_msg *msg);
u32 dblp_tx_slot(const struct dblp_tx_msg *msg, u32 seg);
u32 dblp_tx_row(const struct dblp_tx_msg *msg, u32 slot);
u32 dblp_tx_seg_len(const struct dblp_tx_msg *msg, u32 seg);
void dblp_elide_queue(struct dblp_tx_msg *msg);
void dblp_elide_skip(struct dblp_tx_msg *msg);
u32 dblp_elide_next(const struct dblp_tx_msg *msg);
u32 dblp_elide_run(const struct dblp_tx_msg *msg, u32 n);
u32 dblp_elide_first(const struct dblp_tx_msg *msg, u32 seg);
u32 dblp_elide_map(const struct dblp_tx_msg *msg, u32 seg);
u8 *dblp_elide_put(const struct dblp_tx_msg *msg, u32 seg, u8 *p);
bool dblp_elide_ends_pass(const struct dblp_tx_msg *msg, u32 seg);
void dblp_elide_sent(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg);
void dblp_elide_acked(struct dblp_tx_msg *msg, u32 seg);
void dblp_elide_lost(struct dblp_tx_msg *msg, u32 seg);

/*
 * usercopy.c: rows of segments from and to the user, structures from the user
 */
int dblp_copy_struct(void *to, u32 size, u32 first, sockptr_t from, u32 len);
bool dblp_row_from_iter(void *to, u32 stride, u32 len, u32 n,
			struct iov_iter *from);
bool dblp_row_to_iter(const void *from, u32 stride, u32 len, u32 n,
		      struct iov_iter *to);

#endif /* _NET_DBLP_MSG_H */
