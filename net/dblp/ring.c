// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of the ring of packets sent, see recovery.h.
 *
 * It grows in softirq context, so it is made of blocks that are no larger than a
 * page each, and is charged for them before. Up to one block is part of what each
 * connection has, like the socket itself: with that it can send what it has queued
 * when nobody may be charged any more. A ring that cannot grow stays as it is:
 * packets that were lost are not remembered for so long, and what has no room waits.
 */
#include <linux/build_bug.h>
#include <linux/slab.h>

#include "dblp.h"

#define DBLP_RING_GFP	(GFP_ATOMIC | __GFP_NOWARN)

/* What is charged for a ring of so many packets */
static u32 dblp_ring_size(u32 pkts)
{
	if (pkts <= DBLP_SENT_BLOCK)
		return 0;
	return pkts * sizeof(struct dblp_sent_pkt) +
	       pkts / DBLP_SENT_BLOCK * sizeof(struct dblp_sent_pkt *);
}

/** dblp_ring_truesize() - bytes that a socket is charged for its ring */
u32 dblp_ring_truesize(const struct dblp_sock *dsk)
{
	return dsk->sent.blocks ? dblp_ring_size(dsk->sent.mask + 1) : 0;
}

/**
 * dblp_ring_init() - a ring for a connection that begins
 * @dsk: socket without one
 * @gfp: how to allocate
 *
 * Return: 0 or -ENOMEM.
 */
int dblp_ring_init(struct dblp_sock *dsk, gfp_t gfp)
{
	struct dblp_sent_pkt *block;

	BUILD_BUG_ON(DBLP_SENT_BLOCK * sizeof(*block) > PAGE_SIZE);
	/* The peer forgets what we have forgotten, and nothing else */
	BUILD_BUG_ON(DBLP_RANGES_SPAN < DBLP_SENT_RING_MAX);
	block = kcalloc(DBLP_SENT_RING_MIN, sizeof(*block), gfp);
	if (!block)
		return -ENOMEM;
	dblp_sent_init(&dsk->sent, block, DBLP_SENT_RING_MIN);
	return 0;
}

static void dblp_ring_free_blocks(struct dblp_sent_pkt **blocks, u32 from,
				  u32 to)
{
	for (; from < to; from++)
		kfree(blocks[from]);
}

/** dblp_ring_free() - the connection is over, and nothing looks into its ring */
void dblp_ring_free(struct dblp_sock *dsk)
{
	struct dblp_sent *s = &dsk->sent;

	if (!s->blocks)
		return;
	sk_mem_uncharge(&dsk->sk, dblp_ring_truesize(dsk));
	dblp_ring_free_blocks(s->blocks, 0, dblp_sent_blocks(s));
	if (s->blocks != &s->first)
		kfree(s->blocks);
	s->blocks = NULL;
}

static bool dblp_ring_grow_block(struct dblp_sent *s)
{
	u32 size = 2 * (s->mask + 1);
	struct dblp_sent_pkt *block;

	block = kcalloc(size, sizeof(*block), DBLP_RING_GFP);
	if (block)
		kfree(dblp_sent_grow_block(s, block, size));
	return block;
}

/* As many blocks more as there are */
static bool dblp_ring_add_blocks(struct dblp_sent *s)
{
	u32 n = dblp_sent_blocks(s), i;
	struct dblp_sent_pkt **blocks, **old;

	blocks = kcalloc(2 * n, sizeof(*blocks), DBLP_RING_GFP);
	if (!blocks)
		return false;
	for (i = n; i < 2 * n; i++) {
		blocks[i] = kcalloc(DBLP_SENT_BLOCK, sizeof(**blocks),
				    DBLP_RING_GFP);
		if (blocks[i])
			continue;
		dblp_ring_free_blocks(blocks, n, i);
		kfree(blocks);
		return false;
	}
	old = dblp_sent_grow(s, blocks);
	if (old != &s->first)
		kfree(old);
	return true;
}

static bool dblp_ring_grow(struct dblp_sock *dsk)
{
	u32 size = dsk->sent.mask + 1, more;

	if (2 * size > DBLP_SENT_RING_MAX)
		return false;
	if (size < DBLP_SENT_BLOCK)
		return dblp_ring_grow_block(&dsk->sent);
	more = dblp_ring_size(2 * size) - dblp_ring_size(size);
	if (!dblp_wmem_schedule(&dsk->sk, more))
		return false;
	sk_mem_charge(&dsk->sk, more);
	if (dblp_ring_add_blocks(&dsk->sent))
		return true;
	sk_mem_uncharge(&dsk->sk, more);
	return false;
}

/**
 * dblp_ring_room() - make room for packets that are to be sent
 * @dsk: socket
 * @want: packets
 *
 * Return: for how many of them there is room.
 */
u32 dblp_ring_room(struct dblp_sock *dsk, u32 want)
{
	sock_owned_by_me(&dsk->sk);
	while (dblp_sent_free(&dsk->sent) < want && dblp_ring_grow(dsk))
		;
	return dblp_sent_trim(&dsk->sent, want);
}
