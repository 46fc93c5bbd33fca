// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trains of what came one by one: where a device has no GRO, the stack handles
 * each packet by itself, though many in one softirq. Here they become trains
 * again, as GRO would have made them, before a connection sees them.
 *
 * A packet after which more of its message must come is held, one on each CPU,
 * and those that continue it are put behind it. It is handed on with them when
 * another packet comes, at the end of the message, or when NAPI polls us. We are
 * in its list behind the device that is being polled, so nothing is held for
 * longer than that device's turn takes.
 *
 * What is decided here is only what goes into one buffer. train.c looks at each
 * packet in it.
 */
#include <linux/netdevice.h>
#include <linux/skbuff_ref.h>
#include <linux/unaligned.h>

#include "dblp.h"

enum {
	/* Headers of a DATA packet, */
	DBLP_COALESCE_FIXED	= DBLP_HDR_LEN + DBLP_DATA_HDR_LEN,
	/* with the frames that may be there */
	DBLP_COALESCE_CTL	= DBLP_META_LEN + DBLP_AUTH_LEN,
	DBLP_COALESCE_HDR	= DBLP_COALESCE_FIXED + DBLP_COALESCE_CTL,
	/* As much as GRO takes */
	DBLP_COALESCE_BYTES	= 65535,
	/* After so many that were held in vain, */
	DBLP_COALESCE_VAIN	= 4,
	/* so many packets are not held */
	DBLP_COALESCE_PAUSE	= 16,
};

/**
 * struct dblp_coalescer - what a CPU holds
 * @lock: for all of it; innermost
 * @napi: for the poll by which nothing is forgotten
 * @scheduled: that one will come
 * @vain: polls in a row that found a packet alone
 * @pause: packets that are not held, therefore
 * @skb: the buffer, NULL for none
 * @ep: where it came in; under RCU outside of @lock
 * @n: packets in @skb
 * @hdr_len: bytes of each one before its segment
 * @seg_size: bytes of the segment, except of the message's last
 * @pn: low 32 bits of the number of the packet that comes next
 * @offset: of its segment
 * @end: bytes of the message
 * @hdr: what the first one has before its segment
 */
struct dblp_coalescer {
	spinlock_t		lock;	/* see above */
	struct napi_struct	napi;
	bool			scheduled;
	u8			vain;
	u8			pause;
	struct sk_buff		*skb;
	struct dblp_endpoint	*ep;
	u32			n;
	u32			hdr_len;
	u32			seg_size;
	u32			pn;
	u32			offset;
	u32			end;
	u8			hdr[DBLP_COALESCE_HDR];
};

static struct dblp_coalescer __percpu *dblp_coalescers;
static struct net_device *dblp_napi_dev;

/* The first bytes, if they are in one piece and can be looked at */
static const u8 *dblp_coalesce_peek(const struct sk_buff *skb, u32 len)
{
	const skb_frag_t *frag = skb_shinfo(skb)->frags;

	if (skb_headlen(skb))
		return skb_headlen(skb) >= len ? skb->data : NULL;
	if (!skb_shinfo(skb)->nr_frags || skb_frag_size(frag) < len ||
	    PageHighMem(skb_frag_page(frag)))
		return NULL;
	return skb_frag_address(frag);
}

/* The headers of a packet that may be held, or continue one, else NULL */
static const u8 *dblp_coalesce_data(const struct sk_buff *skb)
{
	const u8 *p;

	if (skb_is_gso(skb))
		return NULL;
	p = dblp_coalesce_peek(skb, DBLP_COALESCE_FIXED);
	return p && p[0] == (DBLP_VERSION << 4 | DBLP_PKT_DATA) ? p : NULL;
}

/* Has it the last segment of its message? A guess, as dblp_coalesce_begin() will
 * look again.
 */
static bool dblp_coalesce_last(const u8 *p)
{
	return get_unaligned_be32(p + DBLP_HDR_LEN + 8) -
	       get_unaligned_be32(p + DBLP_HDR_LEN + 4) <=
	       get_unaligned_be16(p + 2);
}

/* Hold a packet? Nothing is held; @p is what dblp_coalesce_data() found. */
static bool dblp_coalesce_begin(struct dblp_coalescer *c,
				struct dblp_endpoint *ep, struct sk_buff *skb,
				const u8 *p)
{
	u32 ctl_len, offset;

	if (c->pause) {
		c->pause--;
		return false;
	}
	/* Packets may share memory with their sender */
	memcpy(c->hdr, p, DBLP_COALESCE_FIXED);
	ctl_len = c->hdr[1] * 4;
	c->hdr_len = DBLP_COALESCE_FIXED + ctl_len;
	c->seg_size = get_unaligned_be16(c->hdr + 2);
	offset = get_unaligned_be32(c->hdr + DBLP_HDR_LEN + 4);
	c->end = get_unaligned_be32(c->hdr + DBLP_HDR_LEN + 8);
	if (!c->seg_size || skb->len != c->hdr_len + c->seg_size ||
	    offset >= c->end || c->end - offset <= c->seg_size ||
	    ctl_len > DBLP_COALESCE_CTL || dblp_has_zeromap(c->hdr) ||
	    skb_cloned(skb) || READ_ONCE(ep->released))
		return false;
	if (ctl_len) {
		p = dblp_coalesce_peek(skb, c->hdr_len);
		if (!p)
			return false;
		memcpy(c->hdr + DBLP_COALESCE_FIXED, p + DBLP_COALESCE_FIXED,
		       ctl_len);
	}
	c->pn = get_unaligned_be32(c->hdr + 4) + 1;
	c->offset = offset + c->seg_size;
	c->n = 1;
	c->ep = ep;
	c->skb = skb;
	return true;
}

/* Does a packet continue what is held, and is it as long as it should be? */
static bool dblp_coalesce_follows(const struct dblp_coalescer *c,
				  const struct sk_buff *skb, const u8 *p)
{
	u32 ctl_len = c->hdr_len - DBLP_COALESCE_FIXED;

	if (!dblp_hdr_follows(p, c->hdr, c->pn, c->offset) ||
	    skb->len != c->hdr_len + min(c->seg_size, c->end - c->offset))
		return false;
	if (ctl_len) {
		p = dblp_coalesce_peek(skb, c->hdr_len);
		if (!p || memcmp(p + DBLP_COALESCE_FIXED,
				 c->hdr + DBLP_COALESCE_FIXED,
				 dblp_ctl_alike(c->hdr + DBLP_COALESCE_FIXED,
						ctl_len)))
			return false;
	}
	return dblp_skb_same_way(skb, c->skb);
}

/* Fragment @i may go on where the one before it ends, as in the sender's memory
 * or a ring's: then a train has room for more packets.
 */
static void dblp_coalesce_frags(struct sk_buff *skb, u32 i)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	skb_frag_t *frag = &shinfo->frags[i];

	if (i >= shinfo->nr_frags ||
	    !skb_can_coalesce(skb, i, skb_frag_page(frag), skb_frag_off(frag)))
		return;
	skb_frag_size_add(frag - 1, skb_frag_size(frag));
	skb_frag_unref(skb, i);
	shinfo->nr_frags--;
	memmove(frag, frag + 1, (shinfo->nr_frags - i) * sizeof(*frag));
}

/* Put a packet behind what is held? */
static bool dblp_coalesce_add(struct dblp_coalescer *c, struct sk_buff *skb,
			      const u8 *p)
{
	struct sk_buff *to = c->skb;
	u32 frags = skb_shinfo(to)->nr_frags;
	bool stolen;
	int delta;

	if (c->n == DBLP_TRAIN_MAX ||
	    to->len + skb->len > DBLP_COALESCE_BYTES ||
	    !dblp_coalesce_follows(c, skb, p) ||
	    !skb_try_coalesce(to, skb, &stolen, &delta))
		return false;
	kfree_skb_partial(skb, stolen);
	to->truesize += delta;
	dblp_coalesce_frags(to, frags);
	c->n++;
	c->pn++;
	c->offset += c->seg_size;
	c->vain = 0;
	return true;
}

/* What is held, if anything, to be handed on */
static struct sk_buff *dblp_coalesce_take(struct dblp_coalescer *c)
{
	struct sk_buff *skb = c->skb;

	c->skb = NULL;
	if (skb && c->n > 1) {
		skb_shinfo(skb)->gso_size = c->hdr_len + c->seg_size;
		skb_shinfo(skb)->gso_segs = c->n;
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	}
	return skb;
}

/**
 * dblp_coalesce() - hand on what came in, perhaps a moment later with more
 * @ep: where
 * @skb: packet behind its UDP header, ECN noted, or a train; consumed
 *
 * Context: softirq, RCU.
 */
void dblp_coalesce(struct dblp_endpoint *ep, struct sk_buff *skb)
{
	struct dblp_coalescer *c = this_cpu_ptr(dblp_coalescers);
	const u8 *p = dblp_coalesce_data(skb);
	struct dblp_endpoint *held_ep;
	struct sk_buff *held = NULL;
	bool schedule = false;

	/* No lock for whom nobody waits, and who waits for nobody */
	if (!READ_ONCE(c->skb) && (!p || dblp_coalesce_last(p)))
		return dblp_rcv_now(ep, skb);

	spin_lock(&c->lock);
	held_ep = c->ep;
	if (p && c->skb && ep == held_ep && dblp_coalesce_add(c, skb, p)) {
		skb = NULL;
		if (c->offset >= c->end)
			held = dblp_coalesce_take(c);
	} else {
		held = dblp_coalesce_take(c);
		if (p && dblp_coalesce_begin(c, ep, skb, p)) {
			skb = NULL;
			schedule = !c->scheduled;
			c->scheduled = true;
		}
	}
	spin_unlock(&c->lock);

	if (schedule)
		napi_schedule(&c->napi);
	if (held)
		dblp_rcv_now(held_ep, held);
	if (skb)
		dblp_rcv_now(ep, skb);
}

/* Who finds packets alone waits less often */
static int dblp_coalesce_poll(struct napi_struct *napi, int budget)
{
	struct dblp_coalescer *c = container_of(napi, struct dblp_coalescer,
						napi);
	struct dblp_endpoint *ep;
	struct sk_buff *skb;

	rcu_read_lock();
	spin_lock(&c->lock);
	c->scheduled = false;
	if (c->skb && c->n == 1 && ++c->vain >= DBLP_COALESCE_VAIN) {
		c->vain--;
		c->pause = DBLP_COALESCE_PAUSE;
	}
	ep = c->ep;
	skb = dblp_coalesce_take(c);
	spin_unlock(&c->lock);

	napi_complete_done(napi, 0);
	if (skb)
		dblp_rcv_now(ep, skb);
	rcu_read_unlock();
	return 0;
}

/**
 * dblp_coalesce_release() - hold nothing of an endpoint any more
 * @ep: the endpoint, that nobody uses
 *
 * What is held goes, as there is nobody it could be for. A CPU that has just
 * taken something to hand it on may still do so: the caller waits for an RCU
 * grace period before he lets the endpoint and its namespace go.
 *
 * Context: process.
 */
void dblp_coalesce_release(struct dblp_endpoint *ep)
{
	struct dblp_coalescer *c;
	struct sk_buff *skb;
	int cpu;
	u32 n;

	WRITE_ONCE(ep->released, true);
	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(dblp_coalescers, cpu);
		spin_lock_bh(&c->lock);
		skb = c->ep == ep ? dblp_coalesce_take(c) : NULL;
		n = c->n;
		spin_unlock_bh(&c->lock);
		if (!skb)
			continue;
		dblp_count_drops(ep->net, NULL, DBLP_MIB_DROPUNKNOWNCONN, n);
		kfree_skb(skb);
	}
}

int __init dblp_coalesce_init(void)
{
	struct dblp_coalescer *c;
	int cpu;

	dblp_napi_dev = alloc_netdev_dummy(0);
	if (!dblp_napi_dev)
		return -ENOMEM;
	dblp_coalescers = alloc_percpu(struct dblp_coalescer);
	if (!dblp_coalescers)
		goto err_dev;

	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(dblp_coalescers, cpu);
		spin_lock_init(&c->lock);
		/* Nobody waits for packets of this device, so it has no ID */
		set_bit(NAPI_STATE_NO_BUSY_POLL, &c->napi.state);
		netif_napi_add(dblp_napi_dev, &c->napi, dblp_coalesce_poll);
		napi_enable(&c->napi);
	}
	return 0;

err_dev:
	free_netdev(dblp_napi_dev);
	return -ENOMEM;
}

/* All endpoints are gone */
void dblp_coalesce_exit(void)
{
	struct dblp_coalescer *c;
	int cpu;

	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr(dblp_coalescers, cpu);
		napi_disable(&c->napi);
		__netif_napi_del(&c->napi);
	}
	synchronize_net();
	free_percpu(dblp_coalescers);
	free_netdev(dblp_napi_dev);
}
