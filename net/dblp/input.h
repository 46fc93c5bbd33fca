/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets received, and expired timers.
 */
#ifndef _NET_DBLP_INPUT_H
#define _NET_DBLP_INPUT_H

struct dblp_endpoint_ops;
struct sk_buff;
struct sock;

/* timeout.c: handling of expired timeouts */
void dblp_release_cb(struct sock *sk);

/* input.c: received packets */
extern const struct dblp_endpoint_ops dblp_rcv_ops;

int dblp_backlog_rcv(struct sock *sk, struct sk_buff *skb);

#endif /* _NET_DBLP_INPUT_H */
