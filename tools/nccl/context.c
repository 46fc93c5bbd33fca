// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Communicators, from version 11 of the interface.
 */

#include "plugin.h"

#include <stdlib.h>

#define REDUCTIONS	(NCCL_OP_REDUCE | NCCL_OP_REDUCE_SCATTER | NCCL_OP_ALL_REDUCE)

struct net_context *net_context_new(int traffic_class)
{
	struct net_context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->traffic_class = traffic_class;
	ctx->users = 1;
	return ctx;
}

struct net_context *net_context_get(struct net_context *ctx)
{
	if (ctx)
		__atomic_add_fetch(&ctx->users, 1, __ATOMIC_RELAXED);
	return ctx;
}

void net_context_put(struct net_context *ctx)
{
	if (ctx && !__atomic_sub_fetch(&ctx->users, 1, __ATOMIC_ACQ_REL))
		free(ctx);
}

/* NCCL sets attributes of new connections from another thread: they are unknown ones */
void net_context_set(struct net_context *ctx, const struct nccl_attr *attr)
{
	bool may_lose = attr->op && !(attr->op & ~REDUCTIONS) &&
			attr->proto == NCCL_PROTO_SIMPLE;

	__atomic_store_n(&ctx->may_lose, may_lose, __ATOMIC_RELAXED);
}

bool net_context_may_lose(const struct net_context *ctx)
{
	return !ctx || __atomic_load_n(&ctx->may_lose, __ATOMIC_RELAXED);
}
