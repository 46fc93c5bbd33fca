// SPDX-License-Identifier: GPL-2.0-only
/*
 * Segments that are all zero are elided: a zero map (zeromap.h) describes many
 * of them in one packet, and they count as delivered when that has arrived.
 *
 * The sender finds them while it copies from the user (txbuf.c). From then on
 * the segments of a message are divided into stretches, as long as a map in a
 * packet can be. What is to be described is in @need, like what was lost, and
 * goes before everything else: it settles much for little. The first elided
 * segment of a stretch stands for its map: among the packets sent that is the
 * segment they carry, and its copies in flight are those of the map.
 *
 * The receiver keeps the buffer with the map in the queue of the message, as it
 * keeps those with segments. A segment has come in one way or the other: a map
 * that names some that are there and some that are not is refused.
 */
#include <linux/bitmap.h>

#include "dblp.h"

/* Segments in a stretch: the map is no longer than a segment */
static u32 dblp_elide_stretch(const struct dblp_tx_msg *msg)
{
	return max(8 * round_down(msg->seg_size, 4), 32U);
}

static u32 dblp_elide_begin(const struct dblp_tx_msg *msg, u32 seg)
{
	return rounddown(seg, dblp_elide_stretch(msg));
}

static u32 dblp_elide_end(const struct dblp_tx_msg *msg, u32 seg)
{
	return min(dblp_elide_begin(msg, seg) + dblp_elide_stretch(msg),
		   msg->zeros.n);
}

/** dblp_elide_first() - first of the elided segments whose map @seg is in */
u32 dblp_elide_first(const struct dblp_tx_msg *msg, u32 seg)
{
	return dblp_segmap_next(&msg->zeros, dblp_elide_begin(msg, seg));
}

/**
 * dblp_elide_queue() - a message joins those to be sent: describe its zeroes
 * @msg: the message, of which nothing was sent
 */
void dblp_elide_queue(struct dblp_tx_msg *msg)
{
	u32 crit = msg->crit_segs, n = msg->zeros.n;

	if (!msg->zeros.count)
		return;
	bitmap_copy(msg->need.bits, msg->zeros.bits, msg->zeros.n);
	msg->need.count = msg->zeros.count;
	msg->ahead = msg->zeros.count;
	msg->undescribed = msg->zeros.count;
	if (crit < n)
		msg->least += dblp_segmap_common(&msg->zeros, &msg->zeros, crit,
						 n);
}

/** dblp_elide_next() - a segment that is to be described */
u32 dblp_elide_next(const struct dblp_tx_msg *msg)
{
	return dblp_segmap_next_common(&msg->need, &msg->zeros);
}

/** dblp_elide_skip() - move @cursor to a segment that is to be sent */
void dblp_elide_skip(struct dblp_tx_msg *msg)
{
	while (msg->cursor < msg->acked.n &&
	       dblp_tx_elided(msg, dblp_tx_next_seg(msg))) {
		msg->cursor++;
		msg->ahead--;
	}
}

/**
 * dblp_elide_run() - how many segments follow each other without an elided one
 * @msg: message with elided segments
 * @n: look at so many from @cursor on; the first is not elided
 */
u32 dblp_elide_run(const struct dblp_tx_msg *msg, u32 n)
{
	u32 i = 1;

	while (i < n && !dblp_tx_elided(msg, dblp_tx_slot_seg(msg, msg->cursor +
								   i)))
		i++;
	return i;
}

/**
 * dblp_elide_map() - length of the map that an elided segment is in
 * @msg: its message
 * @seg: the segment
 *
 * Return: words, at least 1.
 */
u32 dblp_elide_map(const struct dblp_tx_msg *msg, u32 seg)
{
	u32 first = round_down(dblp_elide_first(msg, seg), 32);

	return dblp_zeromap_words(&msg->zeros, first, dblp_elide_end(msg, seg));
}

/** dblp_elide_put() - write that map; see dblp_zeromap_put() */
u8 *dblp_elide_put(const struct dblp_tx_msg *msg, u32 seg, u8 *p)
{
	u32 first = round_down(dblp_elide_first(msg, seg), 32);

	return dblp_zeromap_put(p, &msg->zeros, first,
				dblp_elide_map(msg, seg));
}

/** dblp_elide_ends_pass() - is the first pass over with the map that @seg is in? */
bool dblp_elide_ends_pass(const struct dblp_tx_msg *msg, u32 seg)
{
	u32 n = dblp_segmap_common(&msg->need, &msg->zeros,
				   dblp_elide_begin(msg, seg),
				   dblp_elide_end(msg, seg));

	return n == msg->undescribed &&
	       msg->cursor + msg->ahead >= msg->first_pass;
}

/* The segments of a map were sent for the first time, so to speak */
static void dblp_elide_count(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			     u32 seg, u32 end)
{
	u64 bytes = 0;

	for (; seg < end; seg = dblp_segmap_next(&msg->zeros, seg + 1)) {
		msg->sent[seg] = DBLP_SEG_SENT;
		msg->described++;
		bytes += dblp_tx_seg_len(msg, seg);
	}
	dsk->info.bytes_elided += bytes;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESELIDED, bytes);
}

/* The segments of a map need no repair any more, or do again */
static void dblp_elide_move(struct dblp_tx_msg *msg, u32 seg, bool need)
{
	u32 end = dblp_elide_end(msg, seg);

	if (need)
		msg->undescribed += dblp_segmap_add_of(&msg->need, &msg->zeros,
						       seg, end);
	else
		msg->undescribed -= dblp_segmap_del_of(&msg->need, &msg->zeros,
						       seg, end);
}

/**
 * dblp_elide_sent() - a zero map went out
 * @dsk: socket
 * @msg: its message
 * @seg: an elided segment of it
 */
void dblp_elide_sent(struct dblp_sock *dsk, struct dblp_tx_msg *msg, u32 seg)
{
	sock_owned_by_me(&dsk->sk);
	seg = dblp_elide_first(msg, seg);
	if (!(msg->sent[seg] & DBLP_SEG_SENT))
		dblp_elide_count(dsk, msg, seg, dblp_elide_end(msg, seg));
	msg->sent[seg]++;
	dblp_elide_move(msg, seg, false);
	dblp_elide_skip(msg);
}

/**
 * dblp_elide_acked() - a zero map has arrived
 * @msg: its message
 * @seg: the first elided segment of it
 */
void dblp_elide_acked(struct dblp_tx_msg *msg, u32 seg)
{
	dblp_elide_move(msg, seg, false);
	dblp_segmap_add_of(&msg->acked, &msg->zeros, seg,
			   dblp_elide_end(msg, seg));
}

/**
 * dblp_elide_lost() - a zero map was lost, and no copy is in flight
 * @msg: its message
 * @seg: the first elided segment of it; it was not acknowledged
 */
void dblp_elide_lost(struct dblp_tx_msg *msg, u32 seg)
{
	dblp_elide_move(msg, seg, true);
}

/* The zero map in a buffer */
static struct dblp_zeromap dblp_rx_zeromap(const struct sk_buff *skb)
{
	const struct dblp_skb_zeros *zeros = &DBLP_SKB_CB(skb)->zeros;

	return (struct dblp_zeromap) {
		.p = skb->data + zeros->hdr_len,
		.first = zeros->first,
		.words = zeros->words,
	};
}

/**
 * dblp_rx_next_zeros() - next bytes of a message that a buffer says are zero
 * @msg: the message
 * @skb: buffer with a zero map
 * @at: bit of the map to start at, @from of the map at first; moved behind them
 * @offset: where the offset of the first goes
 * @bytes: where their number goes
 *
 * Return: false if there are no more up to @to.
 */
bool dblp_rx_next_zeros(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb, u32 *at, u32 *offset,
			u32 *bytes)
{
	struct dblp_zeromap z = dblp_rx_zeromap(skb);
	u32 first, n;

	if (*at >= DBLP_SKB_CB(skb)->zeros.to ||
	    !dblp_zeromap_next(&z, at, &first, &n))
		return false;
	*offset = first * msg->seg_size;
	*bytes = min(n * msg->seg_size, msg->len - *offset);
	return true;
}

/** dblp_rx_zeros_bytes() - bytes that a buffer describes and that nobody took */
u32 dblp_rx_zeros_bytes(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb)
{
	u32 at = DBLP_SKB_CB(skb)->zeros.from, offset, bytes, sum = 0;

	while (dblp_rx_next_zeros(msg, skb, &at, &offset, &bytes))
		sum += bytes;
	return sum;
}

/**
 * dblp_rx_take_zeros() - take what a buffer describes, to place it
 * @skb: buffer with a zero map
 * @most: so many runs of segments at most
 *
 * Return: number of runs taken: those from @from to @to of the map.
 */
u32 dblp_rx_take_zeros(struct sk_buff *skb, u32 most)
{
	struct dblp_skb_zeros *zeros = &DBLP_SKB_CB(skb)->zeros;
	struct dblp_zeromap z = dblp_rx_zeromap(skb);
	u32 at = zeros->from, first, n, runs = 0;

	while (runs < most && dblp_zeromap_next(&z, &at, &first, &n))
		runs++;
	zeros->to = at;
	/* Nothing but bits that are 0 may follow */
	if (!dblp_zeromap_next(&z, &at, &first, &n))
		zeros->to = 32 * zeros->words;
	return runs;
}

/** dblp_run_zeromap() - the zero map of a DATA packet that is all in one piece */
struct dblp_zeromap dblp_run_zeromap(const struct dblp_run *run,
				     const struct dblp_data *d)
{
	return (struct dblp_zeromap) {
		.p = run->p + DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len,
		.first = d->offset / run->h.seg_size,
		.words = d->seg_len / 4,
	};
}

/**
 * dblp_rx_zeros_known() - is what a packet describes there already?
 * @msg: open message
 * @run: DATA packet with a zero map
 * @d: its data header
 *
 * Return: 1 if it is, 0 if none of it is, -EINVAL if only some is: then the
 * sender contradicts itself.
 */
int dblp_rx_zeros_known(const struct dblp_rx_msg *msg,
			const struct dblp_run *run, const struct dblp_data *d)
{
	struct dblp_zeromap z = dblp_run_zeromap(run, d);
	u32 count, common;

	common = dblp_zeromap_common(&z, &msg->have, &count);
	return common == count ? 1 : common ? -EINVAL : 0;
}

/**
 * dblp_rx_zeros() - take the zero map of a DATA packet
 * @dsk: socket
 * @msg: open message, of which none of these segments is there
 * @run: the packet
 * @d: its data header
 *
 * Return: false if there is no memory: then it never came.
 */
bool dblp_rx_zeros(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
		   const struct dblp_run *run, const struct dblp_data *d)
{
	struct dblp_zeromap z = dblp_run_zeromap(run, d);
	struct dblp_train *t = run->train;
	struct dblp_skb_cb *cb;
	struct sk_buff *skb;
	u32 bytes;

	sock_owned_by_me(&dsk->sk);
	skb = dblp_rx_buffer(dsk, msg, t);
	if (!skb)
		return false;
	cb = DBLP_SKB_CB(skb);
	cb->is_zeros = true;
	cb->zeros.first = z.first;
	cb->zeros.words = z.words;
	cb->zeros.from = 0;
	cb->zeros.to = 32 * z.words;
	cb->zeros.hdr_len = z.p - run->p;
	dblp_zeromap_add(&z, &msg->have);
	bytes = msg->missing - dblp_segmap_missing(&msg->have, msg->seg_size,
						   msg->len);
	t->bytes += bytes;
	msg->missing -= bytes;
	msg->elided += bytes;
	if (!dblp_rx_try_close(dsk, msg)) {
		if (dsk->placement)
			dblp_place_arrived(dsk);
		return true;
	}

	msg->elided -= bytes;
	msg->missing += bytes;
	dblp_zeromap_del(&z, &msg->have);
	msg->hole = min(msg->hole, z.first);
	t->bytes -= bytes;
	dblp_rx_unbuffer(msg, t);
	return false;
}
