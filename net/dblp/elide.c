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
