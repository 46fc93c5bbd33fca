// SPDX-License-Identifier: GPL-2.0-only
/*
 * Received segments: their message, and the buffers that it holds for them.
 *
 * A buffer is queued to a message as it came, and the message is charged for
 * all of it; if it has segments of several messages, each of them is. So no
 * less is charged than is held. A buffer is held only if it has at most
 * DBLP_HELD_MOST times the bytes that the message needs of it. Otherwise these
 * are copied into memory of the message, and the buffer is freed. So the peer's
 * credit bounds all that it can make us hold.
 *
 * A buffer with a zero map is kept like those with segments. A segment comes in
 * one way or the other: a map of which only some segments have arrived is
 * refused.
 */
#include "dblp.h"
#include "trace.h"

enum {
	/* Most bytes held per byte of credit */
	DBLP_HELD_MOST		= 4,
	/* Memory of a message: has room for several small segments */
	DBLP_PACKED		= SKB_WITH_OVERHEAD(2048),
	/* Words of a zero map: these need hardly more memory than one */
	DBLP_PACKED_WORDS	= 32,
};

static void dblp_rx_cb_init(struct sk_buff *skb, u32 stride)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	cb->n_runs = 0;
	cb->is_zeros = false;
	cb->stride = stride;
}

/*
 * Queue the buffer of a train, or a clone of it, to a message, with no segments
 * for it yet. Of several for one message, the last one has the charge, as it is
 * freed last. Returns NULL if there is no memory.
 */
static struct sk_buff *dblp_rx_buffer(struct dblp_sock *dsk,
				      struct dblp_rx_msg *msg,
				      struct dblp_train *t)
{
	struct sk_buff *skb;

	if (t->msg != msg) {
		dblp_rx_settle(dsk, t);
		t->msg = msg;
		msg->refs++;
	}
	skb = t->queued ? skb_clone(t->skb, GFP_ATOMIC) : skb_get(t->skb);
	if (!skb)
		return NULL;
	skb->truesize = t->tail ? sizeof(*skb) : t->truesize;
	if (!dblp_rx_may_hold(dsk, skb->truesize, msg->id)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_set_owner_r(skb, &dsk->sk);
	if (t->tail)
		swap(t->tail->truesize, skb->truesize);
	dblp_rx_cb_init(skb, t->stride);
	__skb_queue_tail(&msg->skbs, skb);
	t->queued = true;
	t->tail = skb;
	t->n_skbs++;
	return skb;
}

static void dblp_rx_free(struct dblp_train *t, struct sk_buff *skb)
{
	skb_orphan(skb);
	if (skb == t->skb)
		t->queued = false;
	kfree_skb(skb);
}

/* Undo the last dblp_rx_buffer() */
static void dblp_rx_unbuffer(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct sk_buff *skb = t->tail;

	t->tail = --t->n_skbs ? skb_queue_prev(&msg->skbs, skb) : NULL;
	if (t->tail)
		swap(t->tail->truesize, skb->truesize);
	__skb_unlink(skb, &msg->skbs);
	dblp_rx_free(t, skb);
}

/* Queue segments, each behind @hdr_len bytes of its packet, to their message.
 * Returns false if there is no memory
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
	t->bytes += dblp_rx_run_bytes(msg, r);
	return true;
}

/* Undo the last dblp_rx_attach() */
static void dblp_rx_detach(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(t->tail);

	t->bytes -= dblp_rx_run_bytes(msg, &cb->run[--cb->n_runs]);
	if (!cb->n_runs)
		dblp_rx_unbuffer(msg, t);
}

/* Add memory of a message itself, charged, to the end of its queue */
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
	/* Includes what the allocator rounds it up to */
	if (!dblp_rmem_schedule(sk, skb->truesize)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_set_owner_r(skb, sk);
	dblp_rx_cb_init(skb, msg->seg_size);
	__skb_queue_tail(&msg->skbs, skb);
	return skb;
}

/* Get memory of a message that has room for a segment of @len bytes */
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

/* Note a segment that is about to be appended */
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
		/* Cannot fail: they were validated there */
		WARN_ON_ONCE(skb_copy_bits(from, at, skb_put(to, len), len));
	}
	return true;
}

/* Copy a zero map without empty words, as it may describe little */
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

/* Copy what a message took of a train; without memory, keep the train */
static void dblp_rx_pack(struct dblp_sock *dsk, struct dblp_train *t)
{
	struct dblp_rx_msg *msg = t->msg;
	struct sk_buff_head old;
	struct sk_buff *skb;

	__skb_queue_head_init(&old);
	for (; t->n_skbs; t->n_skbs--) {
		skb = __skb_dequeue_tail(&msg->skbs);
		__skb_queue_head(&old, skb);
	}
	while ((skb = skb_peek(&old)) && dblp_rx_pack_skb(dsk, msg, skb)) {
		__skb_unlink(skb, &old);
		dblp_rx_free(t, skb);
	}
	skb_queue_splice_tail(&old, &msg->skbs);
}

/**
 * dblp_rx_settle() - the message of a train takes no more packets of it
 * @dsk: socket
 * @t: the train; it is at its end, or other messages follow
 */
void dblp_rx_settle(struct dblp_sock *dsk, struct dblp_train *t)
{
	struct dblp_rx_msg *msg = t->msg;
	u64 worth;

	sock_owned_by_me(&dsk->sk);
	if (!msg)
		return;
	worth = t->bytes;
	/* A single segment uses all credit of its message */
	if (msg->len <= msg->seg_size)
		worth += DBLP_MSG_COST;
	if (t->n_skbs && t->truesize > worth * DBLP_HELD_MOST)
		dblp_rx_pack(dsk, t);
	t->msg = NULL;
	t->tail = NULL;
	t->n_skbs = 0;
	t->bytes = 0;
	dblp_rx_put(dsk, msg);
}

/** dblp_run_zeromap() - the zero map of a DATA packet that is contiguous */
struct dblp_zeromap dblp_run_zeromap(const struct dblp_run *run)
{
	return (struct dblp_zeromap) {
		.p = run->p + DBLP_HDR_LEN + DBLP_DATA_HDR_LEN + run->h.ctl_len,
		.first = run->d.offset / run->h.seg_size,
		.words = run->d.seg_len / 4,
	};
}

/* Have the segments that a packet describes arrived? Returns 1 if all have, 0
 * if none has, -EINVAL if only some have: then the sender contradicts itself
 */
static int dblp_rx_zeros_known(const struct dblp_rx_msg *msg,
			       const struct dblp_run *run)
{
	struct dblp_zeromap z = dblp_run_zeromap(run);
	u32 count, common;

	common = dblp_zeromap_common(&z, &msg->have, &count);
	return common == count ? 1 : common ? -EINVAL : 0;
}

/* Add the segments that a packet describes, all of them new. Returns their
 * bytes, 0 if there is no memory
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
	t->bytes += bytes;
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
	run->train->bytes -= bytes;
	dblp_rx_unbuffer(msg, run->train);
}

/* All packets of a message agree about it, but for its budget */
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

/* Add new segments of an open message. Returns their bytes, 0 without memory */
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

/* Take what is new to an open message, which may close it. Returns false and
 * changes nothing if there is no memory
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
		if (dsk->placement)
			dblp_place_arrived(dsk);
		else if (dsk->rx_ahead)
			dblp_ahead_arrived(dsk);
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
 * The META of a message comes with its first segment, which starts the
 * deadline. All pieces of a large message share one: that of the piece before.
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
		else if (msg->id == dsk->rx_next)
			msg->deadline_at = dsk->rx_deadline_at;
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
		dblp_rx_timing_pass(&msg->timing, &dsk->early, run->pn, now);
}

/**
 * dblp_rx_data() - take the segments of DATA packets
 * @dsk: socket
 * @run: the packets; @n is lowered to those that are handled like the first
 * @meta: META frame of the first, or NULL
 * @why: set to the reason if they are not taken
 *
 * Return: 1 if they were taken, 0 if they are not needed and to be
 * acknowledged, -1 if they are refused and nothing was changed.
 */
int dblp_rx_data(struct dblp_sock *dsk, struct dblp_run *run,
		 const struct dblp_frame *meta, enum dblp_mib_item *why)
{
	const struct dblp_data *d = &run->d;
	u32 seg_size = run->h.seg_size, seg = d->offset / seg_size;
	struct dblp_rx_msg *msg;
	bool opened = false, budget_changed;
	int known;

	sock_owned_by_me(&dsk->sk);
	if (run->pn < dsk->early.pass_pn)
		dblp_rx_straggler(dsk, run->pn);
	msg = dblp_rx_find(dsk, d->msg_id);
	if (!msg && dblp_before(d->msg_id, dsk->rx_next)) {
		dblp_ctl_late(dsk, d->msg_id);
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
	/* It may be that nothing of a cancelled message was known */
	if (msg->reason != DBLP_REASON_CANCELLED &&
	    !dblp_rx_agrees(msg, run, meta))
		goto refuse;
	*why = DBLP_MIB_DROPLATE;
	if (msg->closed) {
		dblp_ctl_late(dsk, d->msg_id);
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
refuse:
	if (opened)
		dblp_rx_unopen(dsk, msg);
	return -1;
}
