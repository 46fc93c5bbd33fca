/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 6.2 lets a family refuse options of level SOL_SOCKET: older kernels ignore the
 * flag, and take options that do nothing. 6.5 lets splice() use sendmsg(), before
 * there was sendpage() besides.
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
