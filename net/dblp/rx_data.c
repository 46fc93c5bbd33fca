// SPDX-License-Identifier: GPL-2.0-only
/*
 * Received segments: finding their message, and holding their buffers.
 *
 * A received buffer is queued to its message without copying, and the message
 * is charged for all of it. If the buffer has segments of several messages,
 * each message is charged. The charge is for whole pages, compound pages
 * included, because a reference keeps all of a page allocated. So the charge is
 * never less than the memory held.
 *
 * Consecutive packets often share a page, which is memory of a sender on this
 * machine, or a receive buffer of a device. Consecutive buffers of a message
 * that share pages are a batch. Each page is charged once, with the last buffer
 * that refers to it, as this buffer is freed last.
 *
 * A batch is held only if its charge is at most DBLP_HELD_MOST times the bytes
 * that the message needs of it. Otherwise these bytes are copied to memory of
 * the message, and the buffers are freed. So the credit of a peer bounds the
 * memory that the peer can occupy. If a batch ends within a page that the next
 * buffer shares, the page may remain with the batch. So the bytes of the batch
 * must then justify all of the page.
 *
 * A buffer with a zero map is held like buffers with segments. Each segment is
 * either sent or described: a map is refused if only some of its segments have
 * arrived before.
 */
#include <linux/sizes.h>

#include "dblp.h"
#include "trace.h"

enum {
	/* Maximum bytes held per byte of credit */
	DBLP_HELD_MOST		= 4,
	/* Maximum bytes expected to follow in the last page of a batch */
	DBLP_BATCH_MORE		= SZ_64K,
	/* Maximum buffers in a batch, which may all be copied at once */
	DBLP_BATCH_BUFFERS	= 64,
	/* Bytes of a buffer for copies of several small segments */
	DBLP_PACKED		= SKB_WITH_OVERHEAD(2048),
	/* Maximum words of a copied zero map: hardly more memory than one */
	DBLP_PACKED_WORDS	= 32,
};

static void dblp_rx_cb_init(struct sk_buff *skb, u32 stride)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	cb->n_runs = 0;
	cb->is_zeros = false;
	cb->stride = stride;
}

/* First page that a buffer refers to, or NULL */
static struct page *dblp_page_first(const struct sk_buff *skb)
{
	if (skb->head_frag)
		return virt_to_head_page(skb->head);
	if (!skb_shinfo(skb)->nr_frags)
		return NULL;
	return compound_head(skb_frag_page(&skb_shinfo(skb)->frags[0]));
}

/*
 * Bytes of all pages that a buffer refers to, counting consecutive references
 * to the same page once. @last is set to the last page, or to NULL.
 */
static size_t dblp_page_bytes(const struct sk_buff *skb, struct page **last)
{
	struct page *page = dblp_page_first(skb), *next;
	size_t size = page ? page_size(page) : 0;
	u32 i = skb->head_frag ? 0 : 1;

	for (; i < skb_shinfo(skb)->nr_frags; i++) {
		next = compound_head(skb_frag_page(&skb_shinfo(skb)->frags[i]));
		if (next != page)
			size += page_size(next);
		page = next;
	}
	*last = page;
	return size;
}

/*
 * Bytes of memory that a buffer holds. @truesize may be less, because senders
 * and drivers count only the bytes of a page that the buffer uses.
 */
static size_t dblp_rx_truesize(const struct sk_buff *skb, struct page **last)
{
	u32 head = skb->head_frag ? 0 : skb_end_offset(skb);
	const struct sk_buff *part;
	size_t size;

	size = SKB_TRUESIZE(head) + dblp_page_bytes(skb, last);
	skb_walk_frags(skb, part)
		size += dblp_rx_truesize(part, last);
	return max_t(size_t, size, skb->truesize);
}

/**
 * dblp_rx_measure() - compute the memory that the buffer of a train holds
 * @t: train; @truesize, @page_first and @page_last are set
 *
 * Return: false if this exceeds the limit of any message for the train. Then
 * the caller must copy the buffer.
 */
bool dblp_rx_measure(struct dblp_train *t)
{
	const struct skb_shared_info *shinfo = skb_shinfo(t->skb);
	size_t size;

	if (!t->skb->head_frag && !skb_is_nonlinear(t->skb))
		return true;
	/* Device memory has no pages. Copying it fails, which drops it */
	if (shinfo->nr_frags && !skb_frag_page(&shinfo->frags[0]))
		return false;
	size = dblp_rx_truesize(t->skb, &t->page_last);
	if (size > DBLP_HELD_MOST * (t->skb->len + DBLP_BATCH_MORE))
		return false;
	t->truesize = size;
	t->page_first = dblp_page_first(t->skb);
	return true;
}

/*
 * Bytes of the page in which @skb ends and @next begins, 0 if they do not share
 * one. @next has the charge for this page.
 */
static u32 dblp_rx_shared(const struct sk_buff *skb, const struct sk_buff *next)
{
	struct page *page;

	if (!skb)
		return 0;
	dblp_rx_truesize(skb, &page);
	return page && page == dblp_page_first(next) ? page_size(page) : 0;
}

static void dblp_rx_move_charge(struct sk_buff *from, struct sk_buff *to,
				u32 size)
{
	if (!size)
		return;
	from->truesize -= size;
	to->truesize += size;
}

static void dblp_rx_free(struct dblp_train *t, struct sk_buff *skb)
{
	skb_orphan(skb);
	if (skb == t->skb)
		t->queued = false;
	kfree_skb(skb);
}

/* Append a new, charged buffer of @size bytes to the queue of a message */
static struct sk_buff *dblp_rx_memory(struct dblp_sock *dsk,
				      struct dblp_rx_msg *msg, u32 size)
{
	struct sock *sk = &dsk->sk;
	struct sk_buff *skb;

	if (!dblp_rmem_schedule(sk, SKB_TRUESIZE(size)))
		return NULL;
	skb = alloc_skb(size, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	/* Now includes the rounding by the allocator */
	if (!dblp_rmem_schedule(sk, skb->truesize)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_set_owner_r(skb, sk);
	dblp_rx_cb_init(skb, msg->seg_size);
	__skb_queue_tail(&msg->skbs, skb);
	return skb;
}

/* Get a buffer of the message itself with room for a segment of @len bytes */
static struct sk_buff *dblp_rx_packed(struct dblp_sock *dsk,
				      struct dblp_rx_msg *msg, u32 len)
{
	struct sk_buff *skb = msg->packed;
	u32 size;

	if (skb && skb_tailroom(skb) >= len &&
	    DBLP_SKB_CB(skb)->n_runs < DBLP_SKB_RUNS)
		return skb;
	size = max(len, min_t(u32, DBLP_PACKED, len + msg->missing));
	skb = dblp_rx_memory(dsk, msg, size);
	if (skb)
		msg->packed = skb;
	return skb;
}

/* Record a segment that will be appended to @skb */
static void dblp_rx_pack_note(const struct dblp_rx_msg *msg,
			      struct sk_buff *skb, u32 offset)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);
	struct dblp_skb_run *r = &cb->run[cb->n_runs];

	if (cb->n_runs && r[-1].n < U8_MAX &&
	    r[-1].offset + r[-1].n * msg->seg_size == offset) {
		r[-1].n++;
		return;
	}
	r->offset = offset;
	r->first = skb->len / cb->stride;
	r->hdr_len = skb->len % cb->stride;
	r->n = 1;
	cb->n_runs++;
}

static bool dblp_rx_pack_run(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			     const struct sk_buff *from, struct dblp_skb_run *r)
{
	struct sk_buff *to;
	u32 len, at;

	for (; r->n; r->n--, r->first++, r->offset += msg->seg_size) {
		len = min(msg->seg_size, msg->len - r->offset);
		to = dblp_rx_packed(dsk, msg, len);
		if (!to)
			return false;
		dblp_rx_pack_note(msg, to, r->offset);
		at = r->first * DBLP_SKB_CB(from)->stride + r->hdr_len;
		/* Cannot fail, because the bounds were validated */
		WARN_ON_ONCE(skb_copy_bits(from, at, skb_put(to, len), len));
	}
	return true;
}

/* Copy a zero map without its zero words, as it may have few other words */
static bool dblp_rx_pack_zeros(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			       struct sk_buff *from)
{
	struct dblp_skb_zeros *z = &DBLP_SKB_CB(from)->zeros, *to;
	struct sk_buff *skb;
	const u8 *p;
	u32 n;

	for (; z->words;
	     z->words -= n, z->first += 32 * n, z->hdr_len += 4 * n) {
		z->to = 32 * z->words;
		p = from->data + z->hdr_len;
		n = 1;
		if (!memchr_inv(p, 0, 4))
			continue;
		n = min_t(u32, z->words, DBLP_PACKED_WORDS);
		skb = dblp_rx_memory(dsk, msg, 4 * n);
		if (!skb)
			return false;
		skb_put_data(skb, p, 4 * n);
		DBLP_SKB_CB(skb)->is_zeros = true;
		to = &DBLP_SKB_CB(skb)->zeros;
		*to = (struct dblp_skb_zeros) {
			.first = z->first, .words = n, .to = 32 * n,
		};
	}
	return true;
}

static bool dblp_rx_pack_skb(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			     struct sk_buff *skb)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	if (cb->is_zeros)
		return dblp_rx_pack_zeros(dsk, msg, skb);
	for (; cb->n_runs; cb->n_runs--) {
		if (!dblp_rx_pack_run(dsk, msg, skb, &cb->run[0]))
			return false;
		memmove(&cb->run[0], &cb->run[1],
			(cb->n_runs - 1) * sizeof(cb->run[0]));
	}
	return true;
}

/*
 * Replace the buffers of the last batch by copies of the bytes that the message
 * needs. Without memory, keep the buffers. @last: buffer that will be queued
 * next, or NULL.
 */
static void dblp_rx_pack(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			 struct dblp_train *t, const struct sk_buff *last)
{
	const struct sk_buff *next;
	struct sk_buff *skb, *before;
	struct sk_buff_head old;

	__skb_queue_head_init(&old);
	for (; msg->batch.n; msg->batch.n--) {
		skb = __skb_dequeue_tail(&msg->skbs);
		__skb_queue_head(&old, skb);
	}
	before = skb_peek_tail(&msg->skbs);
	while ((skb = skb_peek(&old)) && dblp_rx_pack_skb(dsk, msg, skb)) {
		next = skb_peek_next(skb, &old) ?: last;
		if (!next || !dblp_rx_shared(before, next))
			dblp_rx_move_charge(skb, before,
					    dblp_rx_shared(before, skb));
		__skb_unlink(skb, &old);
		dblp_rx_free(t, skb);
	}
	skb_queue_splice_tail(&old, &msg->skbs);
}

/* Bytes that the last batch of a message may hold if @more bytes follow */
static u64 dblp_rx_batch_most(const struct dblp_rx_msg *msg, u32 more)
{
	u64 most = (u64)msg->batch.bytes + more;

	/* A single segment uses all credit of its message */
	if (msg->len <= msg->seg_size)
		most += DBLP_MSG_COST;
	return DBLP_HELD_MOST * most;
}

/**
 * dblp_rx_train_done() - decide whether a message holds or copies its buffers
 * @dsk: socket
 * @t: train; the current message takes no more packets of it
 */
void dblp_rx_train_done(struct dblp_sock *dsk, struct dblp_train *t)
{
	struct dblp_rx_msg *msg = t->msg;
	u32 more = 0;

	sock_owned_by_me(&dsk->sk);
	if (!msg)
		return;
	if (!msg->closed && msg->batch.page)
		more = min_t(u32, msg->missing, DBLP_BATCH_MORE);
	if (t->tail && msg->batch.held > dblp_rx_batch_most(msg, more)) {
		dblp_rx_pack(dsk, msg, t, NULL);
		msg->batch = (struct dblp_rx_batch){};
	}
	t->msg = NULL;
	t->tail = NULL;
	t->n_skbs = 0;
	dblp_rx_put(dsk, msg);
}

/*
 * @skb will be queued next, and has taken over the charge of @shared bytes for
 * the page in which the last batch ends. End that batch unless @skb continues
 * it. If that batch is held, its bytes justify the page, and the next batch
 * does not count it.
 */
static void dblp_rx_next_batch(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			       struct dblp_train *t,
			       const struct sk_buff *skb, u32 shared)
{
	bool worth = msg->batch.held <= dblp_rx_batch_most(msg, 0);

	if (shared && msg->batch.n < DBLP_BATCH_BUFFERS &&
	    (!worth || t->page_last == t->page_first))
		return;
	if (!worth)
		dblp_rx_pack(dsk, msg, t, skb);
	msg->batch = (struct dblp_rx_batch){ .held = worth ? 0 : shared };
}

/*
 * Queue the buffer of a train, or a clone of it, to a message, without segments
 * as yet. If a message has several clones, the last one has the charge, as it
 * is freed last. Returns NULL without memory.
 */
static struct sk_buff *dblp_rx_buffer(struct dblp_sock *dsk,
				      struct dblp_rx_msg *msg,
				      struct dblp_train *t)
{
	struct sk_buff *skb, *before;
	u32 shared = 0;

	if (t->msg != msg) {
		dblp_rx_train_done(dsk, t);
		t->msg = msg;
		msg->refs++;
	}
	before = skb_peek_tail(&msg->skbs);
	if (t->tail)
		shared = t->truesize - sizeof(*skb);
	else if (t->page_first && t->page_first == msg->batch.page)
		shared = page_size(t->page_first);
	skb = t->queued ? skb_clone(t->skb, GFP_ATOMIC) : skb_get(t->skb);
	if (!skb)
		return NULL;
	skb->truesize = t->truesize - shared;
	if (!dblp_rx_may_hold(dsk, skb->truesize, msg->id)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_set_owner_r(skb, &dsk->sk);
	dblp_rx_move_charge(before, skb, shared);
	if (!t->tail)
		dblp_rx_next_batch(dsk, msg, t, skb, shared);
	msg->batch.n++;
	msg->batch.page = t->page_last;
	msg->batch.held += t->truesize - shared;
	dblp_rx_cb_init(skb, t->stride);
	__skb_queue_tail(&msg->skbs, skb);
	t->queued = true;
	t->tail = skb;
	t->n_skbs++;
	return skb;
}

/* Undo the last dblp_rx_buffer() */
static void dblp_rx_unbuffer(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct sk_buff *skb = __skb_dequeue_tail(&msg->skbs);
	struct sk_buff *before = skb_peek_tail(&msg->skbs);
	u32 shared;

	t->tail = --t->n_skbs ? before : NULL;
	shared = t->tail ? t->truesize - sizeof(*skb) :
			   dblp_rx_shared(before, skb);
	dblp_rx_move_charge(skb, before, shared);
	msg->batch.held -= skb->truesize;
	if (--msg->batch.n)
		dblp_rx_truesize(before, &msg->batch.page);
	else
		msg->batch = (struct dblp_rx_batch){};
	dblp_rx_free(t, skb);
}

/*
 * Queue segments, each behind @hdr_len bytes of its packet, to their message.
 * Returns false without memory.
 */
static bool dblp_rx_attach(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			   const struct dblp_run *run, u32 offset, u32 hdr_len)
{
	struct dblp_train *t = run->train;
	struct sk_buff *skb = t->msg == msg ? t->tail : NULL;
	struct dblp_skb_run *r;

	if (!skb || DBLP_SKB_CB(skb)->n_runs == DBLP_SKB_RUNS)
		skb = dblp_rx_buffer(dsk, msg, t);
	if (!skb)
		return false;
	r = &DBLP_SKB_CB(skb)->run[DBLP_SKB_CB(skb)->n_runs++];
	r->offset = offset;
	r->hdr_len = hdr_len;
	r->first = run->first;
	r->n = run->n;
	msg->batch.bytes += dblp_rx_run_bytes(msg, r);
	return true;
}

/* Undo the last dblp_rx_attach() */
static void dblp_rx_detach(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(t->tail);

	msg->batch.bytes -= dblp_rx_run_bytes(msg, &cb->run[--cb->n_runs]);
	if (!cb->n_runs)
		dblp_rx_unbuffer(msg, t);
}

/** dblp_run_zeromap() - zero map of a DATA packet in linear memory */
struct dblp_zeromap dblp_run_zeromap(const struct dblp_run *run)
{
	return (struct dblp_zeromap) {
		.p = run->p + DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len,
		.first = run->d.offset / run->h.seg_size,
		.words = run->d.seg_len / 4,
	};
}

/*
 * Have the segments that a packet describes arrived before? Returns 1 if all
 * have, 0 if none has, or -EINVAL if some have, which violates the protocol.
 */
static int dblp_rx_zeros_known(const struct dblp_rx_msg *msg,
			       const struct dblp_run *run)
{
	struct dblp_zeromap z = dblp_run_zeromap(run);
	u32 count, common;

	common = dblp_zeromap_common(&z, &msg->have, &count);
	return common == count ? 1 : common ? -EINVAL : 0;
}

/*
 * Add the segments that a packet describes, all of them new. Returns their
 * bytes, 0 without memory.
 */
static u32 dblp_rx_add_zeros(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			     const struct dblp_run *run)
{
	struct dblp_zeromap z = dblp_run_zeromap(run);
	struct dblp_train *t = run->train;
	struct dblp_skb_cb *cb;
	struct sk_buff *skb;
	u32 bytes;

	skb = dblp_rx_buffer(dsk, msg, t);
	if (!skb)
		return 0;
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
	msg->batch.bytes += bytes;
	msg->elided += bytes;
	return bytes;
}

/* Undo dblp_rx_add_zeros() */
static void dblp_rx_del_zeros(struct dblp_rx_msg *msg,
			      const struct dblp_run *run, u32 bytes)
{
	struct dblp_zeromap z = dblp_run_zeromap(run);

	msg->elided -= bytes;
	dblp_zeromap_del(&z, &msg->have);
	msg->hole = min(msg->hole, z.first);
	msg->batch.bytes -= bytes;
	dblp_rx_unbuffer(msg, run->train);
}

/* Does a packet match earlier ones of its message? The budget may differ */
static bool dblp_rx_agrees(const struct dblp_rx_msg *msg,
			   const struct dblp_run *run,
			   const struct dblp_frame *meta)
{
	const struct dblp_data *d = &run->d;

	if (msg->len != d->msg_len || msg->seg_size != run->h.seg_size ||
	    msg->policy != d->policy || msg->phase != d->phase ||
	    msg->meta != d->meta)
		return false;
	if (!meta)
		return true;
	if (meta->meta.msg_id != d->msg_id || !d->meta ||
	    meta->meta.critical > msg->len ||
	    meta->meta.total - meta->meta.offset < msg->len)
		return false;
	return msg->meta_missing || (meta->meta.tag == msg->tag &&
				     meta->meta.critical == msg->critical &&
				     meta->meta.deadline == msg->deadline &&
				     meta->meta.offset == msg->offset &&
				     meta->meta.total == msg->total);
}

/* Bytes of the run's segments */
static u32 dblp_rx_bytes(const struct dblp_rx_msg *msg,
			 const struct dblp_run *run)
{
	return min(run->n * msg->seg_size, msg->len - run->d.offset);
}

/* Add new segments to an open message. Returns their bytes, 0 without memory */
static u32 dblp_rx_add_segs(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			    const struct dblp_run *run)
{
	u32 hdr_len = DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len;
	u32 offset = run->d.offset;

	if (!dblp_rx_attach(dsk, msg, run, offset, hdr_len))
		return 0;
	dblp_segmap_add_run(&msg->have, offset / msg->seg_size, run->n);
	return dblp_rx_bytes(msg, run);
}

/* Undo dblp_rx_add_segs() */
static void dblp_rx_del_segs(struct dblp_rx_msg *msg,
			     const struct dblp_run *run)
{
	u32 seg = run->d.offset / msg->seg_size;

	dblp_segmap_del_run(&msg->have, seg, run->n);
	msg->hole = min(msg->hole, seg);
	dblp_rx_detach(msg, run->train);
}

/*
 * Add the new segments of a run to an open message, which may close it. Returns
 * false and changes nothing without memory.
 */
static bool dblp_rx_take(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			 const struct dblp_run *run)
{
	u32 bytes = run->d.zeros ? dblp_rx_add_zeros(dsk, msg, run) :
				   dblp_rx_add_segs(dsk, msg, run);

	if (!bytes)
		return false;
	msg->missing -= bytes;
	if (!dblp_rx_try_close(dsk, msg)) {
		if (dsk->opt.placement)
			dblp_place_wake(dsk);
		else if (dsk->rx.ahead)
			dblp_ahead_wake(dsk);
		return true;
	}
	msg->missing += bytes;
	if (run->d.zeros)
		dblp_rx_del_zeros(msg, run, bytes);
	else
		dblp_rx_del_segs(msg, run);
	return false;
}

/*
 * Start the deadline of a message when its META arrives. All pieces of a large
 * message share one deadline, so take it from the preceding piece.
 */
static void dblp_rx_deadline(struct dblp_sock *dsk, struct dblp_rx_msg *msg)
{
	const struct dblp_rx_msg *before;

	if (!msg->deadline)
		return;
	if (msg->offset) {
		before = dblp_rx_find(dsk, msg->id - 1);
		if (before)
			msg->deadline_at = before->deadline_at;
		else if (msg->id == dsk->rx.next)
			msg->deadline_at = dsk->rx.deadline_at;
	}
	if (!msg->deadline_at)
		msg->deadline_at = ktime_get_ns() +
				   (u64)msg->deadline * NSEC_PER_USEC;
}

static void dblp_rx_note_timing(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
				const struct dblp_run *run, bool known)
{
	u32 bytes = run->d.zeros ? 0 : dblp_rx_bytes(msg, run);
	u64 now = ktime_get_ns();

	if (!known)
		dblp_rx_timing_segment(&msg->timing, bytes, now);
	if (run->d.repair)
		dblp_rx_timing_pass(&msg->timing, &dsk->rx.early, run->pn, now);
}

/**
 * dblp_rx_data() - process the segments of DATA packets
 * @dsk: socket
 * @run: packets; @n is lowered to those that are handled like the first
 * @meta: META frame of the first packet, or NULL
 * @why: set to the drop reason unless the segments are taken
 *
 * Return: 1 if the segments are taken, 0 if they are not needed but must be
 * acknowledged, or -1 if the packets are refused and nothing was changed.
 */
int dblp_rx_data(struct dblp_sock *dsk, struct dblp_run *run,
		 const struct dblp_frame *meta, enum dblp_mib_item *why)
{
	const struct dblp_data *d = &run->d;
	u32 seg_size = run->h.seg_size, seg = d->offset / seg_size;
	bool opened = false, budget_changed;
	struct dblp_rx_msg *msg;
	u32 budget;
	int known;
	u64 pn;

	sock_owned_by_me(&dsk->sk);
	if (run->pn < dsk->rx.early.pass_pn)
		dblp_rx_straggler(dsk, run->pn);
	msg = dblp_rx_find(dsk, d->msg_id);
	if (!msg && dblp_before(d->msg_id, dsk->rx.next)) {
		dblp_ctl_late(dsk, d->msg_id, run->pn + run->n - 1);
		*why = DBLP_MIB_DROPLATE;
		return 0;
	}
	if (!msg) {
		*why = DBLP_MIB_DROPWINDOW;
		if (!dblp_rx_may_open(dsk, d->msg_id, d->msg_len))
			return -1;
		*why = DBLP_MIB_DROPMEMORY;
		msg = dblp_rx_open(dsk, d, seg_size);
		if (!msg)
			return -1;
		opened = true;
	}

	*why = DBLP_MIB_DROPMISMATCH;
	/* A cancelled message may have been opened by its CANCEL alone */
	if (msg->reason != DBLP_REASON_CANCELLED &&
	    !dblp_rx_agrees(msg, run, meta))
		goto refuse;
	*why = DBLP_MIB_DROPLATE;
	if (msg->closed) {
		dblp_ctl_late(dsk, d->msg_id, run->pn + run->n - 1);
		return 0;
	}
	known = d->zeros ? dblp_rx_zeros_known(msg, run) :
			   dblp_segmap_test(&msg->have, seg);
	if (known < 0) {
		*why = DBLP_MIB_DROPMISMATCH;
		goto refuse;
	}
	if (meta && msg->meta_missing) {
		msg->tag = meta->meta.tag;
		msg->critical = meta->meta.critical;
		msg->offset = meta->meta.offset;
		msg->total = meta->meta.total;
		msg->deadline = meta->meta.deadline;
		msg->meta_missing = 0;
		dblp_rx_deadline(dsk, msg);
	}
	if (opened)
		trace_dblp_msg_open(dsk, NULL, msg);
	budget = msg->budget;
	pn = msg->budget_pn;
	budget_changed = dblp_rx_update_budget(msg, d->budget, run->pn);
	if (run->n > 1)
		run->n = max(dblp_segmap_free(&msg->have, seg, run->n), 1U);
	if (msg->policy == DBLP_POLICY_EARLY)
		dblp_rx_note_timing(dsk, msg, run, known);
	if (known) {
		if (budget_changed)
			dblp_rx_judge(dsk, msg);
		return 0;
	}
	*why = DBLP_MIB_DROPMEMORY;
	if (dblp_rx_take(dsk, msg, run))
		return 1;
	/* Otherwise a later packet with the same budget would cause no judgment */
	msg->budget = budget;
	msg->budget_pn = pn;
refuse:
	if (opened)
		dblp_rx_unopen(dsk, msg);
	return -1;
}
