// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload memory of outgoing messages.
 *
 * Segments are stored in the order of their first transmission, each behind
 * headroom for the headers of its packet. So a train of packets is contiguous,
 * and passes through the stack by reference, in one or two fragments. Headers
 * are written to the headroom at the first transmission, when no packet refers
 * to it. At a retransmission, packets with the old headers may still be queued,
 * here or at the receiver, so the new headers have their own memory. The
 * segment itself never changes.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/proto_memory.h>

#include "dblp.h"

/* Messages up to this many bytes are copied to packets: cheaper than a page */
#define DBLP_SMALL_MAX		512

/* Largest order that is easy to allocate: packets have few fragments */
#define DBLP_CHUNK_ORDER	PAGE_ALLOC_COSTLY_ORDER
#define DBLP_CHUNK_SIZE		(PAGE_SIZE << DBLP_CHUNK_ORDER)

/* Chunks cached for later messages: 4 MiB with pages of 4 KiB */
#define DBLP_CHUNK_CACHE_MAX	128

/* Chunks of a message freed at once; dblp_work() frees those of larger ones */
#define DBLP_CHUNKS_FEW		8

static void dblp_txbuf_put(struct dblp_tx_msg *msg)
{
	u32 i;

	for (i = 0; i < msg->n_chunks; i++)
		if (msg->chunks[i])
			put_page(msg->chunks[i]);
	msg->n_chunks = 0;
}

/** dblp_txbuf_free() - free the memory; packets keep their references to it */
void dblp_txbuf_free(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	dblp_txbuf_put(msg);
	kvfree(msg->chunks);
	msg->chunks = NULL;
	kfree(msg->small);
	msg->small = NULL;
	dblp_tx_uncharge(dsk, msg, msg->buf_truesize);
	msg->buf_truesize = 0;
}

static u32 dblp_chunk_size(const struct dblp_tx_msg *msg)
{
	return PAGE_SIZE << msg->chunk_order;
}

static u32 dblp_txbuf_size(const struct dblp_tx_msg *msg)
{
	u32 n = msg->acked.n;

	/* If shuffled, the last segment, which is shorter, is not at the end */
	return msg->shuffled ? n * (msg->room + msg->seg_size) :
	       n * msg->room + msg->len;
}

/* Pages in chunks for @size bytes, the last chunk rounded to a power of two */
static u32 dblp_txbuf_pages(u32 size, u32 order)
{
	u32 rest = size & ((PAGE_SIZE << order) - 1);

	return (size - rest) / PAGE_SIZE + (rest ? 1 << get_order(rest) : 0);
}

static int dblp_txbuf_array(struct dblp_tx_msg *msg, u32 size, u32 order)
{
	kvfree(msg->chunks);
	msg->chunk_order = order;
	msg->chunks = kvmalloc_array(DIV_ROUND_UP(size, PAGE_SIZE << order),
				     sizeof(*msg->chunks), DBLP_GFP_SEND);
	return msg->chunks ? 0 : -ENOMEM;
}

/* Allocate chunks: all have the same size, the last may be smaller */
static int dblp_txbuf_fill(struct dblp_tx_msg *msg, u32 size)
{
	u32 most = dblp_chunk_size(msg), part;
	gfp_t gfp = DBLP_GFP_SEND;
	struct page *page;

	if (msg->chunk_order)
		gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY;
	size -= msg->n_chunks * most;
	for (; size; size -= part) {
		cond_resched();
		part = min(size, most);
		page = alloc_pages(gfp, get_order(part));
		if (!page) {
			dblp_txbuf_put(msg);
			return -ENOMEM;
		}
		msg->chunks[msg->n_chunks++] = page;
	}
	return 0;
}

/*
 * Move a chunk to a list of the socket. It stays charged, but takes no room in
 * the send buffer.
 */
static void dblp_txbuf_move(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			    struct page *page, struct list_head *to)
{
	u32 size = page_size(page);

	list_add_tail(&page->lru, to);
	msg->truesize -= size;
	msg->buf_truesize -= size;
	sk_wmem_queued_add(&dsk->sk, -(int)size);
}

/**
 * dblp_txbuf_sweep() - free chunks that are not cached
 * @dsk: socket
 * @most: maximum number of chunks; dblp_work() frees the others
 */
void dblp_txbuf_sweep(struct dblp_sock *dsk, u32 most)
{
	struct page *page;

	sock_owned_by_me(&dsk->sk);
	while ((page = list_first_entry_or_null(&dsk->tx.waste, struct page,
						lru))) {
		if (!most--) {
			dblp_work_soon(dsk);
			break;
		}
		list_del(&page->lru);
		sk_mem_uncharge(&dsk->sk, page_size(page));
		put_page(page);
	}
}

/**
 * dblp_txbuf_retire() - cache the chunks of a message for later messages
 * @dsk: socket
 * @msg: message whose bytes are not needed any more; the charge of chunks that
 *	are cached, or freed later, passes to the socket
 *
 * Caching saves the allocation, and the clearing that some kernels do. A cached
 * chunk is reused when nothing else refers to it: packets may still be queued,
 * here or at a receiver on this machine. Many chunks that are not cached are
 * freed by dblp_work(), because one packet can close a large message.
 */
void dblp_txbuf_retire(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	bool cache = msg->chunk_order == DBLP_CHUNK_ORDER &&
		     !sk_under_memory_pressure(&dsk->sk);
	u32 whole = cache ? dblp_txbuf_size(msg) / DBLP_CHUNK_SIZE : 0, i;
	bool few = msg->n_chunks <= DBLP_CHUNKS_FEW;
	struct page *page;

	sock_owned_by_me(&dsk->sk);
	if (!msg->n_chunks || (few && !cache))
		return;
	for (i = 0; i < msg->n_chunks; i++) {
		page = msg->chunks[i];
		if (!page)
			continue;
		if (i < whole && dsk->tx.n_cached < DBLP_CHUNK_CACHE_MAX &&
		    !page_is_pfmemalloc(page)) {
			dblp_txbuf_move(dsk, msg, page, &dsk->tx.chunk_cache);
			dsk->tx.n_cached++;
		} else if (few) {
			put_page(page);
		} else {
			dblp_txbuf_move(dsk, msg, page, &dsk->tx.waste);
		}
	}
	msg->n_chunks = 0;
	if (!list_empty(&dsk->tx.waste))
		dblp_work_soon(dsk);
	dsk->due.spare = ktime_get_ns() + DBLP_SPARE_NS;
}

/* Take the oldest cached chunk: if @any, even if packets refer to it */
static struct page *dblp_chunk_cache_take(struct dblp_sock *dsk, bool any)
{
	struct page *page;

	page = list_first_entry_or_null(&dsk->tx.chunk_cache, struct page, lru);
	if (!page || (!any && page_ref_count(page) != 1))
		return NULL;
	list_del(&page->lru);
	dsk->tx.n_cached--;
	sk_mem_uncharge(&dsk->sk, DBLP_CHUNK_SIZE);
	return page;
}

/** dblp_txbuf_drop_cache() - free all chunks outside messages */
void dblp_txbuf_drop_cache(struct dblp_sock *dsk)
{
	struct page *page;

	sock_owned_by_me(&dsk->sk);
	dblp_txbuf_sweep(dsk, U32_MAX);
	while ((page = dblp_chunk_cache_take(dsk, true)))
		put_page(page);
}

/* Drop the cache and retry before the charge fails */
static int dblp_txbuf_charge(struct dblp_sock *dsk, struct dblp_tx_msg *msg,
			     u32 size)
{
	int err = dblp_tx_charge(dsk, size);

	if (err && (dsk->tx.n_cached || !list_empty(&dsk->tx.waste))) {
		dblp_txbuf_drop_cache(dsk);
		err = dblp_tx_charge(dsk, size);
	}
	if (err)
		return err;
	msg->truesize += size;
	msg->buf_truesize = size;
	return 0;
}

/**
 * dblp_txbuf_reserve() - charge a socket for the payload memory of a message
 * @dsk: socket
 * @msg: message that was cut
 *
 * The array of chunks is charged for chunks of one page. Cached chunks are
 * taken, and a small message gets its memory.
 *
 * Context: process, with the socket locked.
 * Return: 0, or -ENOBUFS or -ENOMEM; then the message must be freed.
 */
int dblp_txbuf_reserve(struct dblp_sock *dsk, struct dblp_tx_msg *msg)
{
	u32 size = dblp_txbuf_size(msg), order, n;
	struct page *page;
	int err;

	sock_owned_by_me(&dsk->sk);
	if (size <= DBLP_SMALL_MAX && msg->acked.n == 1) {
		err = dblp_txbuf_charge(dsk, msg, kmalloc_size_roundup(size));
		if (err)
			return err;
		msg->small = kmalloc(size, DBLP_GFP_SEND);
		return msg->small ? 0 : -ENOMEM;
	}
	/* The first chunk is always full, so that the last one wastes little */
	order = min_t(u32, ilog2(DIV_ROUND_UP(size, PAGE_SIZE)),
		      DBLP_CHUNK_ORDER);
	n = dblp_txbuf_pages(size, order);
	err = dblp_txbuf_charge(dsk, msg, n * (PAGE_SIZE + sizeof(page))) ?:
	      dblp_txbuf_array(msg, size, order);
	if (err)
		return err;
	if (order < DBLP_CHUNK_ORDER)
		return 0;
	for (n = size / DBLP_CHUNK_SIZE; n; n--) {
		page = dblp_chunk_cache_take(dsk, false);
		if (!page)
			break;
		msg->chunks[msg->n_chunks++] = page;
	}
	return 0;
}

/**
 * dblp_txbuf_alloc() - allocate the chunks of a message
 * @msg: message for which dblp_txbuf_reserve() has succeeded
 *
 * Context: process, without the socket lock.
 * Return: 0 or -ENOMEM.
 */
int dblp_txbuf_alloc(struct dblp_tx_msg *msg)
{
	u32 size = dblp_txbuf_size(msg);
	int err;

	if (msg->small)
		return 0;
	err = dblp_txbuf_fill(msg, size);
	if (!err || !msg->chunk_order)
		return err;
	return dblp_txbuf_array(msg, size, 0) ?: dblp_txbuf_fill(msg, size);
}

/* Address of byte @pos; @n is set to the number of contiguous bytes there */
static void *dblp_txbuf_at(const struct dblp_tx_msg *msg, u32 pos, u32 *n)
{
	u32 shift = PAGE_SHIFT + msg->chunk_order;
	u32 at = pos & (dblp_chunk_size(msg) - 1);

	if (msg->small) {
		*n = DBLP_SMALL_MAX;
		return msg->small + pos;
	}
	*n = dblp_chunk_size(msg) - at;
	return page_address(msg->chunks[pos >> shift]) + at;
}

static bool dblp_txbuf_zero_across(const struct dblp_tx_msg *msg, u32 pos,
				   u32 len)
{
	void *p;
	u32 n;

	for (; len; pos += n, len -= n) {
		p = dblp_txbuf_at(msg, pos, &n);
		n = min(n, len);
		if (!dblp_all_zero(p, n))
			return false;
	}
	return true;
}

/**
 * dblp_txbuf_trim() - free chunks in which all segments are elided
 * @msg: message with its bytes copied
 *
 * Context: process, without the socket lock.
 * Return: bytes freed; the caller uncharges and subtracts from @buf_truesize.
 */
u32 dblp_txbuf_trim(struct dblp_tx_msg *msg)
{
	u32 stride = msg->room + msg->seg_size, size = dblp_chunk_size(msg);
	u32 left = dblp_txbuf_size(msg), i, part, slot, end, freed = 0;

	if (!msg->zeros.count)
		return 0;
	for (i = 0; i < msg->n_chunks; i++, left -= part) {
		part = min(left, size);
		/* The first segment may begin in the preceding chunk */
		slot = i * size / stride;
		end = DIV_ROUND_UP(i * size + part, stride);
		while (slot < end &&
		       dblp_tx_elided(msg, dblp_tx_slot_seg(msg, slot)))
			slot++;
		if (slot < end)
			continue;
		put_page(msg->chunks[i]);
		msg->chunks[i] = NULL;
		freed += PAGE_SIZE << get_order(part);
	}
	return freed;
}

static int dblp_txbuf_copy_across(struct dblp_tx_msg *msg, u32 pos, u32 len,
				  struct iov_iter *from)
{
	void *to;
	u32 n;

	for (; len; pos += n, len -= n) {
		to = dblp_txbuf_at(msg, pos, &n);
		n = min(n, len);
		/* No check_copy_size(), because the bounds are trusted */
		if (_copy_from_iter(to, n, from) != n)
			return -EFAULT;
	}
	return 0;
}

/* Record which of @n consecutive segments are all zero */
static void dblp_txbuf_look(struct dblp_tx_msg *msg, const void *p, u32 seg,
			    u32 n)
{
	u32 stride = msg->room + msg->seg_size;
	u32 len = dblp_tx_seg_len(msg, seg);

	for (; n; n--, seg++, p += stride)
		if (unlikely(dblp_all_zero(p, len)))
			dblp_segmap_add(&msg->zeros, seg);
}

/* Copy @n segments that are consecutive in both memories */
static int dblp_txbuf_copy_row(struct dblp_tx_msg *msg, u32 slot, u32 seg,
			       u32 n, struct iov_iter *from)
{
	u32 stride = msg->room + msg->seg_size, have, part;
	u32 pos = slot * stride + msg->room;
	bool elide = msg->zeros.bits && !msg->small;
	u32 len = dblp_tx_seg_len(msg, seg);
	void *to;

	for (; n; n -= part, seg += part, pos += part * stride) {
		/* Let ksoftirqd process packets */
		cond_resched();
		to = dblp_txbuf_at(msg, pos, &have);
		if (unlikely(have < len)) {
			part = 1;
			if (dblp_txbuf_copy_across(msg, pos, len, from))
				return -EFAULT;
			if (elide && dblp_txbuf_zero_across(msg, pos, len))
				dblp_segmap_add(&msg->zeros, seg);
			continue;
		}
		part = min(n, 1 + (have - len) / stride);
		if (!dblp_row_from_iter(to, stride, len, part, from))
			return -EFAULT;
		if (elide)
			dblp_txbuf_look(msg, to, seg, part);
	}
	return 0;
}

/**
 * dblp_txbuf_copy() - copy the bytes of a message from the user
 * @msg: message that was cut and has memory
 * @from: user memory
 *
 * This also finds segments that are all zero, see dblp_txbuf_trim(). The only
 * segment of a small message is never elided.
 *
 * Context: process, without the socket lock, because user memory may be slow.
 * Return: 0 or -EFAULT.
 */
int dblp_txbuf_copy(struct dblp_tx_msg *msg, struct iov_iter *from)
{
	u32 seg, slot, row;
	int err = 0;

	for (seg = 0; seg < msg->acked.n && !err; seg += row) {
		slot = dblp_tx_slot(msg, seg);
		row = dblp_tx_row(msg, slot);
		err = dblp_txbuf_copy_row(msg, slot, seg, row, from);
	}
	return err;
}

/* Write headers that lie across two chunks */
static void dblp_txbuf_write_across(struct dblp_tx_msg *msg, u32 pos,
				    const u8 *hdr, u32 len)
{
	void *to;
	u32 n;

	for (; len; pos += n, hdr += n, len -= n) {
		to = dblp_txbuf_at(msg, pos, &n);
		n = min(n, len);
		memcpy(to, hdr, n);
	}
}

/**
 * dblp_txbuf_write() - write the headers of segments in their headroom
 * @msg: message
 * @slot: position of the first segment in the sending order
 * @n: number of segments, consecutive in the message and never sent
 * @hdr: headers of any of them, @room bytes
 * @pn: packet number of the first segment
 * @seg: the first segment
 */
void dblp_txbuf_write(struct dblp_tx_msg *msg, u32 slot, u32 n, u8 *hdr,
		      u32 pn, u32 seg)
{
	u32 stride = msg->room + msg->seg_size, len = msg->room;
	u32 offset = seg * msg->seg_size, pos = slot * stride, have, part;
	void *to;

	for (; n; n -= part, pn += part) {
		to = dblp_txbuf_at(msg, pos, &have);
		part = 1;
		if (unlikely(have < len)) {
			dblp_put_next(hdr, pn, offset);
			dblp_txbuf_write_across(msg, pos, hdr, len);
		} else {
			part = min(n, 1 + (have - len) / stride);
			dblp_put_row(to, stride, part, hdr, len, pn, offset,
				     msg->seg_size);
		}
		pos += part * stride;
		offset += part * msg->seg_size;
	}
}

/**
 * dblp_txbuf_frags() - append consecutive bytes of the memory to a packet
 * @msg: message
 * @skb: packet; gets references, or a copy if the message is small
 * @pos: first byte
 * @len: number of bytes; the caller ensures that MAX_SKB_FRAGS suffices
 */
void dblp_txbuf_frags(const struct dblp_tx_msg *msg, struct sk_buff *skb,
		      u32 pos, u32 len)
{
	u32 shift = PAGE_SHIFT + msg->chunk_order;
	u32 size = dblp_chunk_size(msg), n;
	struct page *page;

	if (msg->small) {
		skb_put_data(skb, msg->small + pos, len);
		return;
	}
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	for (; len; pos += n, len -= n) {
		page = msg->chunks[pos >> shift];
		n = min(len, size - (pos & (size - 1)));
		get_page(page);
		skb_fill_page_desc(skb, skb_shinfo(skb)->nr_frags, page,
				   pos & (size - 1), n);
	}
}
