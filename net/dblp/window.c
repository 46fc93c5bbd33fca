// SPDX-License-Identifier: GPL-2.0-only
#include "window.h"

static void dblp_window_set(struct dblp_window *w, const u8 *p, u32 len)
{
	w->p = p;
	w->from = w->end;
	w->to = p ? w->end + len : w->end;
	w->end += len;
	w->next++;
}

/** dblp_window_move() - move a window to the area that contains byte @at */
void dblp_window_move(struct dblp_window *w, u32 at)
{
	const struct skb_shared_info *shinfo = skb_shinfo(w->skb);
	const skb_frag_t *frag;

	if (at < w->from) {
		w->end = 0;
		w->next = 0;
	}
	if (!w->next)
		dblp_window_set(w, w->skb->data, skb_headlen(w->skb));
	while (at >= w->end && w->next <= shinfo->nr_frags) {
		frag = &shinfo->frags[w->next - 1];
		dblp_window_set(w, PageHighMem(skb_frag_page(frag)) ? NULL :
				   skb_frag_address(frag), skb_frag_size(frag));
	}
}

/**
 * dblp_window_piece() - get the contiguous bytes at the start of a range
 * @w: the window; moved to the area of the bytes
 * @from: offset of the range in the buffer
 * @to: end of the range
 * @buf: room for DBLP_WINDOW_BUF bytes, to copy bytes that are not mapped or
 *	are in the frag_list
 * @n: set to the number of bytes
 *
 * Return: the bytes, valid until the window moves; NULL if they do not exist.
 */
const u8 *dblp_window_piece(struct dblp_window *w, u32 from, u32 to, u8 *buf,
			    u32 *n)
{
	const u8 *p = dblp_window_peek(w, from, 1);

	if (likely(p)) {
		*n = min(to, w->to) - from;
		return p;
	}
	*n = min_t(u32, to - from, DBLP_WINDOW_BUF);
	return skb_copy_bits(w->skb, from, buf, *n) ? NULL : buf;
}
