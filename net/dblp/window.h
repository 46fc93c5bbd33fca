/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped area of a buffer that moves from fragment to fragment, so that
 * finding a packet does not walk the buffer from its start.
 */
#ifndef _NET_DBLP_WINDOW_H
#define _NET_DBLP_WINDOW_H

#include <linux/skbuff.h>

#define DBLP_WINDOW_BUF	64

/**
 * struct dblp_window - one area of a buffer: the linear part, or a fragment
 * @skb: the buffer
 * @p: address of byte @from of the buffer
 * @from: offset of the area in the buffer
 * @to: end of the mapped bytes; @from if the area is not mapped
 * @end: end of the area, mapped or not
 * @next: index of the next area: 0 is the linear part, n is fragment n - 1
 */
struct dblp_window {
	const struct sk_buff	*skb;
	const u8		*p;
	u32			from;
	u32			to;
	u32			end;
	u32			next;
};

void dblp_window_move(struct dblp_window *w, u32 at);
const u8 *dblp_window_piece(struct dblp_window *w, u32 from, u32 to, u8 *buf,
			    u32 *n);

/**
 * dblp_window_peek() - get bytes that are contiguous in a buffer
 * @w: the window; moved to the area of the bytes
 * @at: offset of the first byte
 * @len: number of bytes
 *
 * Return: the bytes, valid until the window moves. NULL if they do not exist,
 * lie in several areas, or are not mapped; skb_copy_bits() may get them then.
 */
static inline const u8 *dblp_window_peek(struct dblp_window *w, u32 at, u32 len)
{
	if (unlikely(at < w->from || at + len > w->to)) {
		dblp_window_move(w, at);
		if (at < w->from || at + len > w->to)
			return NULL;
	}
	return w->p + (at - w->from);
}

#endif /* _NET_DBLP_WINDOW_H */
