/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of a ring of sent packets, as in net/dblp/sent.c. */
#ifndef DBLP_LAB_RING_H
#define DBLP_LAB_RING_H

#include <stdlib.h>

#include "recovery.h"

static inline void ring_init(struct dblp_sent *s, u32 size)
{
	dblp_sent_init(s, calloc(size, sizeof(struct dblp_sent_pkt)), size);
}

static inline void ring_grow(struct dblp_sent *s)
{
	u32 size = s->mask + 1, n = dblp_sent_blocks(s), i;
	struct dblp_sent_pkt **blocks, **old;

	if (size < DBLP_SENT_BLOCK) {
		free(dblp_sent_grow_block(s, calloc(2 * size,
						    sizeof(**blocks)),
					  2 * size));
		return;
	}
	blocks = calloc(2 * n, sizeof(*blocks));
	for (i = n; i < 2 * n; i++)
		blocks[i] = calloc(DBLP_SENT_BLOCK, sizeof(**blocks));
	old = dblp_sent_grow(s, blocks);
	if (old != &s->first)
		free(old);
}

static inline void ring_free(struct dblp_sent *s)
{
	u32 i;

	for (i = 0; s->blocks && i < dblp_sent_blocks(s); i++)
		free(s->blocks[i]);
	if (s->blocks != &s->first)
		free(s->blocks);
}

static inline void ring_shrink(struct dblp_sent *s, u32 size)
{
	ring_free(s);
	dblp_sent_shrink(s, calloc(size, sizeof(struct dblp_sent_pkt)), size);
}

#endif /* DBLP_LAB_RING_H */
