/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A window on a buffer that moves from piece to piece of it, so that its packets
 * need not be searched from the buffer's start each.
 */
#ifndef _NET_DBLP_WINDOW_H
#define _NET_DBLP_WINDOW_H

#include <linux/skbuff.h>

#define DBLP_WINDOW_BUF	64

/**
 * struct dblp_window - a piece of a buffer
 * @skb: the buffer
 * @p: its byte @from
 * @from: first byte
 * @to: byte behind the last
 * @end: the same, also of a piece that is not mapped, which has none in @to
 * @next: the piece behind it: 0 the linear part, n the fragment before n
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
 * dblp_window_peek() - look at some bytes
 * @w: the window, moved to where they are
 * @at: first byte
 * @len: number of bytes
 *
 * Return: the bytes until the window is moved, or NULL if they are not there,
 * not in one piece, or not mapped: then skb_copy_bits() can tell.
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
