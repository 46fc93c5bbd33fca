// SPDX-License-Identifier: GPL-2.0-only
/*
 * Segments of an outgoing message: their sending order, and which are elided.
 *
 * Segments that are all zero are elided: one packet with a zero map
 * (core/segmap.h) describes many of them. They count as delivered when the map
 * has arrived.
 *
 * txbuf.c finds these segments while it copies from the user. The message is
 * divided into stretches of as many segments as the map of one packet can
 * describe. Segments to be described are in @need, like lost ones. They precede
 * all others, because a map delivers many segments at low cost. The first
 * elided segment of a stretch represents its map: the sent ring has its number,
 * and its copies in flight are those of the map.
 */
#include <linux/bitmap.h>

#include "dblp.h"

/** dblp_tx_slot_seg() - segment at a position in the sending order */
u32 dblp_tx_slot_seg(const struct dblp_tx_msg *msg, u32 slot)
{
	if (!msg->shuffled || slot < msg->crit_segs)
		return slot;
	return msg->crit_segs +
	       dblp_shuffle_at(&msg->shuffle, slot - msg->crit_segs);
}

/**
 * dblp_tx_next_seg() - segment at @cursor
 * @msg: message, perhaps @reshuffled
 */
u32 dblp_tx_next_seg(const struct dblp_tx_msg *msg)
{
	if (!msg->reshuffled || msg->cursor < msg->shuffle_base)
		return dblp_tx_slot_seg(msg, msg->cursor);
	return msg->shuffle_base +
	       dblp_shuffle_at(&msg->shuffle, msg->cursor - msg->shuffle_base);
}

/** dblp_tx_slot() - position of a segment in the sending order */
u32 dblp_tx_slot(const struct dblp_tx_msg *msg, u32 seg)
{
	if (!msg->shuffled || seg < msg->crit_segs)
		return seg;
	return msg->crit_segs +
	       dblp_shuffle_find(&msg->shuffle, seg - msg->crit_segs);
}

/**
 * dblp_tx_row() - length of a row: consecutive segments of one size
 * @msg: message that was not @reshuffled
 * @slot: position in the sending order
 *
 * Return: number of positions from @slot on, at least 1, whose segments are
 * consecutive in the message and of one size.
 */
u32 dblp_tx_row(const struct dblp_tx_msg *msg, u32 slot)
{
	u32 end = msg->acked.n - 1;

	if (msg->shuffled)
		end = min(end, msg->crit_segs);
	return slot < end ? end - slot : 1;
}

/** dblp_tx_seg_len() - bytes of one segment */
u32 dblp_tx_seg_len(const struct dblp_tx_msg *msg, u32 seg)
{
	return min(msg->seg_size, msg->len - seg * msg->seg_size);
}

/* Segments in a stretch: the map of a stretch is no longer than a segment */
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

/** dblp_elide_first() - first elided segment of the map with @seg */
u32 dblp_elide_first(const struct dblp_tx_msg *msg, u32 seg)
{
	return dblp_segmap_next(&msg->zeros, dblp_elide_begin(msg, seg));
}

/**
 * dblp_elide_queue() - queue the elided segments of a new message
 * @msg: message of which nothing was sent
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

/** dblp_elide_next() - next segment to be described */
u32 dblp_elide_next(const struct dblp_tx_msg *msg)
{
	return dblp_segmap_next_common(&msg->need, &msg->zeros);
}

/** dblp_elide_skip() - move @cursor past elided segments */
void dblp_elide_skip(struct dblp_tx_msg *msg)
{
	while (msg->cursor < msg->acked.n &&
	       dblp_tx_elided(msg, dblp_tx_next_seg(msg))) {
		msg->cursor++;
		msg->ahead--;
	}
}

/**
 * dblp_elide_run() - number of segments before the next elided one
 * @msg: message with elided segments; the one at @cursor is not elided
 * @n: maximum number of segments from @cursor on
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
 * dblp_elide_map() - length of the map with an elided segment
 * @msg: its message
 * @seg: the segment
 *
 * Return: number of 32-bit words, at least 1.
 */
u32 dblp_elide_map(const struct dblp_tx_msg *msg, u32 seg)
{
	u32 first = round_down(dblp_elide_first(msg, seg), 32);

	return dblp_zeromap_words(&msg->zeros, first, dblp_elide_end(msg, seg));
}

/** dblp_elide_put() - write the map with @seg, see dblp_zeromap_put() */
u8 *dblp_elide_put(const struct dblp_tx_msg *msg, u32 seg, u8 *p)
{
	u32 first = round_down(dblp_elide_first(msg, seg), 32);

	return dblp_zeromap_put(p, &msg->zeros, first,
				dblp_elide_map(msg, seg));
}

/** dblp_elide_ends_pass() - does the map with @seg end the first pass? */
bool dblp_elide_ends_pass(const struct dblp_tx_msg *msg, u32 seg)
{
	u32 n = dblp_segmap_common(&msg->need, &msg->zeros,
				   dblp_elide_begin(msg, seg),
				   dblp_elide_end(msg, seg));

	return n == msg->undescribed &&
	       msg->cursor + msg->ahead >= msg->first_pass;
}

/* Count the segments of a map as sent for the first time */
static void dblp_elide_count(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			     u32 seg, u32 end)
{
	u64 bytes = 0;

	for (; seg < end; seg = dblp_segmap_next(&msg->zeros, seg + 1)) {
		msg->sent[seg] = DBLP_SEG_SENT;
		msg->described++;
		bytes += dblp_tx_seg_len(msg, seg);
	}
	dsk->counts.bytes_elided += bytes;
	DBLP_ADD_SK_STATS(dsk, DBLP_MIB_BYTESELIDED, bytes);
}

/* Add the segments of a map to @need, or remove them */
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
 * dblp_elide_sent() - account for a zero map that was sent
 * @dsk: socket
 * @msg: its message
 * @seg: an elided segment of the map
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
 * dblp_elide_acked() - account for a zero map that was acknowledged
 * @msg: its message
 * @seg: first elided segment of the map
 */
void dblp_elide_acked(struct dblp_tx_msg *msg, u32 seg)
{
	dblp_elide_move(msg, seg, false);
	dblp_segmap_add_of(&msg->acked, &msg->zeros, seg,
			   dblp_elide_end(msg, seg));
}

/**
 * dblp_elide_lost() - queue a lost zero map again
 * @msg: its message
 * @seg: first elided segment of the map, not acknowledged, no copy in flight
 */
void dblp_elide_lost(struct dblp_tx_msg *msg, u32 seg)
{
	dblp_elide_move(msg, seg, true);
}
