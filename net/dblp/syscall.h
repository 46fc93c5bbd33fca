/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System calls.
 */
#ifndef _NET_DBLP_SYSCALL_H
#define _NET_DBLP_SYSCALL_H

#include <linux/net.h>
#include <linux/socket.h>
#include <linux/sockptr.h>

struct dblp_ahead;
struct dblp_range;
struct dblp_rx_cursor;
struct dblp_rx_msg;
struct dblp_sock;
struct proto_accept_arg;
struct sk_buff;
struct sk_buff_head;

/* af_dblp.c */
extern const struct proto_ops dblp_proto_ops;

int dblp_accept(struct socket *sock, struct socket *newsock,
		struct proto_accept_arg *arg);

/* sockopt.c */
int dblp_setsockopt(struct socket *sock, int level, int name, sockptr_t optval,
		    unsigned int optlen);
int dblp_getsockopt(struct socket *sock, int level, int name,
		    char __user *optval, int __user *optlen);

/* send.c: sendmsg() */
int dblp_sendmsg(struct socket *sock, struct msghdr *m, size_t len);

/* recv.c: recvmsg() */
int dblp_recvmsg(struct socket *sock, struct msghdr *m, size_t size, int flags);
u64 dblp_place_bytes(struct dblp_sock *dsk);
u64 dblp_unread_bytes(struct dblp_sock *dsk);

/* recv_ahead.c: copying segments of a message that is not complete */
void dblp_ahead_init(struct dblp_ahead *a, const struct msghdr *m, bool may);
int dblp_ahead_wait(struct dblp_sock *dsk, struct dblp_ahead *a, long *timeo);
void dblp_ahead_end(struct dblp_sock *dsk, struct dblp_ahead *a);

/* recv_copy.c: common to both receive modes */
bool dblp_rx_next_zeros(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb, u32 *at, u32 *offset,
			u32 *bytes);
u32 dblp_rx_zeros_bytes(const struct dblp_rx_msg *msg,
			const struct sk_buff *skb);
u32 dblp_rx_take_zeros(struct sk_buff *skb, u32 most);
void dblp_rx_cursor_init(struct dblp_rx_cursor *c, const struct iov_iter *to);
int dblp_rx_copy(const struct dblp_rx_msg *msg, struct sk_buff_head *skbs,
		 struct sk_buff *after, u32 base, struct dblp_rx_cursor *c);
int dblp_rx_fill_holes(const struct dblp_rx_msg *msg, struct dblp_rx_cursor *c);
size_t dblp_cmsg_len(const struct msghdr *m, size_t size);
void dblp_put_ranges(struct msghdr *m, struct dblp_range *r, u32 ranges);
void dblp_put_rcvinfo(struct msghdr *m, const struct list_head *pieces);
void dblp_copy_begin(struct dblp_sock *dsk);
void dblp_copy_end(struct dblp_sock *dsk);
void dblp_rx_release(struct dblp_sock *dsk);
int dblp_wait_readable(struct dblp_sock *dsk, long *timeo, bool keep,
		       const struct dblp_ahead *ahead);
void dblp_rx_was_read(struct dblp_sock *dsk, struct list_head *pieces);

#endif /* _NET_DBLP_SYSCALL_H */
