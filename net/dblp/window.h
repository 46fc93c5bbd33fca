/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A window on a buffer that moves from fragment to fragment, so that finding a
 * packet does not walk the buffer from its start.
 */
#ifndef _NET_DBLP_WINDOW_H
#define _NET_DBLP_WINDOW_H

#include <linux/skbuff.h>

#define DBLP_WINDOW_BUF	64

/**
 * struct dblp_window - a piece of a buffer: the linear part, or a fragment
 * @skb: the buffer
 * @p: byte @from of the buffer
 * @from: first byte
 * @to: end of the piece, @from if it is not mapped
 * @end: end of the piece, mapped or not
 * @next: index of the next piece: 0 is the linear part, n is fragment n - 1
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
 * dblp_window_peek() - get bytes that are in one piece
 * @w: the window, moved to the piece
 * @at: first byte
 * @len: number of bytes
 *
 * Return: the bytes, valid until the window moves. NULL if they do not exist,
 * are not in one piece, or not mapped: then try skb_copy_bits().
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
