// SPDX-License-Identifier: GPL-2.0-only
/*
 * What messages hold of the buffers that their segments came in.
 *
 * A buffer waits in the queue of a message as it came, and the message is charged
 * for all of it: if segments of several messages are in one, each of them is.
 * That is more than is held, never less, and it is little: what is held is worth
 * it, at most DBLP_HELD_MOST times the bytes that the message needs of it. If
 * not, they are copied into memory of the message, and the buffer goes. So the
 * credit of the peer bounds all that he can make us hold.
 */
#include "dblp.h"

enum {
	/* Bytes that may be held for a byte of credit */
	DBLP_HELD_MOST		= 4,
	/* Memory of a message: for several of the smallest segments */
	DBLP_PACKED		= SKB_WITH_OVERHEAD(2048),
	/* Words of a zero map: so many need hardly more memory than one */
	DBLP_PACKED_WORDS	= 32,
};

/**
 * dblp_rx_may_hold() - may a message hold more?
 * @dsk: socket
 * @size: bytes that would be charged
 * @id: the message
 *
 * Return: true if sk_mem_charge() may follow.
 */
bool dblp_rx_may_hold(struct dblp_sock *dsk, u32 size, u32 id)
{
	struct sock *sk = &dsk->sk;

	sock_owned_by_me(&dsk->sk);
	/* The message whose turn it is must go on, or nothing ever would */
	if (atomic_read(&sk->sk_rmem_alloc) > READ_ONCE(sk->sk_rcvbuf) &&
	    id != dsk->rx_next)
		return false;
	return dblp_rmem_schedule(sk, size);
}

static void dblp_rx_cb_init(struct sk_buff *skb, u32 stride)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(skb);

	cb->n_runs = 0;
	cb->is_zeros = false;
	cb->stride = stride;
}

/**
 * dblp_rx_buffer() - put a buffer into the queue of a message
 * @dsk: socket
 * @msg: the message
 * @t: packets that came: itself is queued, or a clone
 *
 * Of several for one message, the last one has the charge, as it is freed last.
 *
 * Return: the buffer, in which nothing is said to be for the message yet, or
 * NULL.
 */
struct sk_buff *dblp_rx_buffer(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			       struct dblp_train *t)
{
	struct sk_buff *skb;

	sock_owned_by_me(&dsk->sk);
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

/**
 * dblp_rx_unbuffer() - take out again what dblp_rx_buffer() put in last
 * @msg: the message
 * @t: packets that came
 */
void dblp_rx_unbuffer(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct sk_buff *skb = t->tail;

	t->tail = --t->n_skbs ? skb_queue_prev(&msg->skbs, skb) : NULL;
	if (t->tail)
		swap(t->tail->truesize, skb->truesize);
	__skb_unlink(skb, &msg->skbs);
	dblp_rx_free(t, skb);
}

/**
 * dblp_rx_attach() - put segments into the queue of their message
 * @dsk: socket
 * @msg: the message
 * @run: the packets
 * @offset: of the first segment
 * @hdr_len: bytes before it in its packet
 *
 * Return: false if there is no memory.
 */
bool dblp_rx_attach(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
		    const struct dblp_run *run, u32 offset, u32 hdr_len)
{
	struct dblp_train *t = run->train;
	struct sk_buff *skb = t->msg == msg ? t->tail : NULL;
	struct dblp_skb_run *r;

	sock_owned_by_me(&dsk->sk);
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

/**
 * dblp_rx_detach() - take out again what dblp_rx_attach() put in last
 * @msg: the message
 * @t: packets that came
 */
void dblp_rx_detach(struct dblp_rx_msg *msg, struct dblp_train *t)
{
	struct dblp_skb_cb *cb = DBLP_SKB_CB(t->tail);

	t->bytes -= dblp_rx_run_bytes(msg, &cb->run[--cb->n_runs]);
	if (!cb->n_runs)
		dblp_rx_unbuffer(msg, t);
}

/* Memory of a message itself, charged, at the end of its queue */
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
	/* It is what the allocator rounds it up to */
	if (!dblp_rmem_schedule(sk, skb->truesize)) {
		kfree_skb(skb);
		return NULL;
	}
	skb_set_owner_r(skb, sk);
	dblp_rx_cb_init(skb, msg->seg_size);
	__skb_queue_tail(&msg->skbs, skb);
	return skb;
}

/* Memory of a message that has room for a segment of @len bytes */
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

/* Note a segment that is about to be put behind others */
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
		/* They were looked at there, and are */
		WARN_ON_ONCE(skb_copy_bits(from, at, skb_put(to, len), len));
	}
	return true;
}

/* Words without a bit are left out: it need not describe much of what it covers */
static bool dblp_rx_pack_zeros(struct dblp_sock *dsk, struct dblp_rx_msg *msg,
			       struct sk_buff *from)
{
	struct dblp_skb_zeros *z = &DBLP_SKB_CB(from)->zeros, *to;
	struct sk_buff *skb;
	const u8 *p;
	u32 n;

	for (; z->words; z->words -= n, z->first += 32 * n, z->hdr_len += 4 * n) {
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

/* Copy what a message took of a train; if there is no memory, the train stays */
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
 * dblp_rx_settle() - the message that took packets of a train takes no more
 * @dsk: socket
 * @t: the train; others may take of it, or it is over
 */
void dblp_rx_settle(struct dblp_sock *dsk, struct dblp_train *t)
{
	struct dblp_rx_msg *msg = t->msg;
	u64 worth;

	sock_owned_by_me(&dsk->sk);
	if (!msg)
		return;
	worth = t->bytes;
	/* With it all of the message is there: so is its credit */
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
