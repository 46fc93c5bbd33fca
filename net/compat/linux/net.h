/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Since Linux 6.2, a family can refuse options of level SOL_SOCKET. Older
 * kernels ignore the flag, and accept options without effect. Since 6.5,
 * splice() uses sendmsg(), and before, sendpage().
 */
#ifndef _NET_DBLP_COMPAT_LINUX_NET_H
#define _NET_DBLP_COMPAT_LINUX_NET_H

#include_next <linux/net.h>

#ifdef DBLP_LACKS_CUSTOM_SOCKOPT
#define SOCK_CUSTOM_SOCKOPT	6
#endif

#ifdef DBLP_LACKS_SPLICE_TO_SOCKET
static inline ssize_t dblp_no_sendpage(struct socket *sock, struct page *page,
				       int offset, size_t size, int flags)
{
	return -EINVAL;
}

#define DBLP_NO_SENDPAGE	.sendpage = dblp_no_sendpage,
#else
#define DBLP_NO_SENDPAGE
#endif

#endif
