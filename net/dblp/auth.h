/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Authentication of packets: see auth.c.
 */
#ifndef _NET_DBLP_AUTH_H
#define _NET_DBLP_AUTH_H

#include <linux/sockptr.h>
#include <linux/types.h>

#include "mib.h"
#include "core/wire.h"

struct dblp_auth;
struct dblp_echo;
struct dblp_run;
struct dblp_sock;
struct sk_buff;

/* Per packet, called only if the socket has a key */
void dblp_auth_add(struct dblp_sock *dsk, struct sk_buff *skb);
u8 *dblp_auth_put(struct dblp_sock *dsk, u8 *p);
void dblp_auth_sign(struct dblp_sock *dsk, struct sk_buff *skb);
struct sk_buff *dblp_auth_own(const struct dblp_sock *dsk, struct sk_buff *skb);

enum dblp_mib_item dblp_auth_run(struct dblp_sock *dsk, struct dblp_run *run);
int dblp_auth_accept(const struct dblp_sock *listener,
		     const struct dblp_run *run, const struct dblp_echo *echo,
		     struct dblp_auth **ap);
void dblp_auth_connect(struct dblp_sock *dsk);
void dblp_auth_connected(struct dblp_sock *dsk);
void dblp_auth_reset(struct dblp_sock *dsk);
bool dblp_auth_doubts(struct dblp_sock *dsk, int err);
int dblp_auth_refused(struct dblp_sock *dsk, u64 now, bool timed_out);
int dblp_auth_set(struct dblp_sock *dsk, sockptr_t optval, unsigned int optlen);
u32 dblp_auth_state(const struct dblp_sock *dsk);
void dblp_auth_free(struct dblp_sock *dsk);

#endif /* _NET_DBLP_AUTH_H */
